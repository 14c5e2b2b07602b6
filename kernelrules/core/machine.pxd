# What this processor and this build can do.

cpdef enum:
    MOST_THREADS = 1024     # of a call, whatever its caller says: OpenMP ends a process that cannot have what it asks

cdef int simd_level() noexcept nogil     # 0 baseline, 1 AVX2 + FMA, 2 AVX-512: chosen once, when the module is loaded
