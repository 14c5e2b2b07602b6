"""The vectorised passes: the one module that compiles dispatch.h, and gives the other modules its tables."""

cdef extern from "simd/dispatch.h" nogil:
    int kr_simd_best()
    void kr_stream_fence()
    const kr_simd_d *kr_simd_pick_d(int level)
    const kr_simd_f *kr_simd_pick_f(int level)


cdef int best_level() noexcept nogil:
    return kr_simd_best()


cdef void stream_fence() noexcept nogil:
    kr_stream_fence()


cdef const void *simd_table(int level, bint single) noexcept nogil:
    if single:
        return kr_simd_pick_f(level)
    return kr_simd_pick_d(level)


cdef Py_ssize_t sliver_rows(int level, bint single) noexcept nogil:
    return kr_simd_pick_f(level).sliver if single else kr_simd_pick_d(level).sliver
