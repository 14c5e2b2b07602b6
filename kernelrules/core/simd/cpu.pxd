# The SIMD level in use, and the limit on threads.

cpdef enum:
    MAX_THREADS = 1024     # per call, whatever the caller requests: working memory is allocated for each

cdef int simd_level() noexcept nogil     # 0 baseline, 1 AVX2 + FMA, 2 AVX-512: chosen once, when the module is loaded
