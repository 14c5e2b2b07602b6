"""Home of the vectorised kernels: the one module that compiles simd.h, and hands out its tables to the others."""

cdef extern from "simd.h" nogil:
    int kr_simd_best()
    void kr_stream_fence()
    const kr_simd_d *kr_simd_pick_d(int level)
    const kr_simd_f *kr_simd_pick_f(int level)


cdef int best_level() noexcept nogil:
    return kr_simd_best()


cdef void stream_fence() noexcept nogil:
    kr_stream_fence()


cdef const kr_simd_d *table_d(int level) noexcept nogil:
    return kr_simd_pick_d(level)


cdef const kr_simd_f *table_f(int level) noexcept nogil:
    return kr_simd_pick_f(level)
