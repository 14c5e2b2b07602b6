# What this processor and this build can do.

cdef int simd_level() noexcept nogil     # 0 baseline, 1 AVX2 + FMA, 2 AVX-512: chosen once, when the module is loaded
