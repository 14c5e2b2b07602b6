# The vectorised kernels of simd.h under one name for both float types. `level` is machine.simd_level() or lower.

from libc.string cimport memcpy

from kernelrules.core.types cimport real_t


cdef extern from "simd_tables.h" nogil:
    enum:
        KR_FINISH_LINEAR
        KR_FINISH_POLYNOMIAL
        KR_FINISH_SIGMOID
        KR_FINISH_RBF
        KR_FINISH_EXP
        KR_FINISH_DISTANCE
        KR_SUM_PRODUCTS
        KR_SUM_SQUARES
        KR_SUM_MAGNITUDES
        KR_SUM_ADD
        KR_SUM_LOWER

    ctypedef struct kr_finish:
        int finish
        int degree
        double gamma
        double coef0

    double KR_NEVER
    double KR_NOTHING

    ctypedef struct kr_scan:
        double up
        double low
        Py_ssize_t where

    ctypedef struct kr_simd_d:
        Py_ssize_t sliver
        void (*finish_row)(const kr_finish *, double, const double *, double *, Py_ssize_t) noexcept nogil
        void (*sums)(int, const double *, Py_ssize_t, Py_ssize_t, const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                     double *, Py_ssize_t, int) noexcept nogil
        void (*pack)(const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double *, double, double *, Py_ssize_t,
                     double *) noexcept nogil
        void (*transpose)(const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, double *, Py_ssize_t) noexcept nogil
        void (*stream_row)(const double *, double *, Py_ssize_t) noexcept nogil
        double (*largest)(const double *, Py_ssize_t) noexcept nogil
        kr_scan (*descend)(const double *, const double *, double, const double *, const double *, double *,
                           Py_ssize_t) noexcept nogil
        Py_ssize_t (*partner)(const double *, const double *, double, double, double, double, const double *,
                              const double *, Py_ssize_t, double *) noexcept nogil
        void (*add_rows)(const double *const *, Py_ssize_t, const double *, Py_ssize_t, double *,
                         Py_ssize_t) noexcept nogil
        double (*dot)(const double *, const double *, Py_ssize_t) noexcept nogil

    ctypedef struct kr_simd_f:
        Py_ssize_t sliver
        void (*finish_row)(const kr_finish *, float, const float *, float *, Py_ssize_t) noexcept nogil
        void (*sums)(int, const float *, Py_ssize_t, Py_ssize_t, const float *, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                     float *, Py_ssize_t, int) noexcept nogil
        void (*pack)(const float *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double *, double, float *, Py_ssize_t,
                     double *) noexcept nogil
        void (*transpose)(const float *, Py_ssize_t, Py_ssize_t, Py_ssize_t, float *, Py_ssize_t) noexcept nogil
        void (*stream_row)(const float *, float *, Py_ssize_t) noexcept nogil
        float (*largest)(const float *, Py_ssize_t) noexcept nogil
        kr_scan (*descend)(const float *, const float *, double, const double *, const double *, double *,
                           Py_ssize_t) noexcept nogil
        Py_ssize_t (*partner)(const float *, const float *, float, double, double, double, const double *,
                              const double *, Py_ssize_t, double *) noexcept nogil
        void (*add_rows)(const float *const *, Py_ssize_t, const double *, Py_ssize_t, double *,
                         Py_ssize_t) noexcept nogil
        double (*dot)(const float *, const double *, Py_ssize_t) noexcept nogil


cdef int best_level() noexcept nogil            # that this processor has: 0 baseline, 1 AVX2 + FMA, 2 AVX-512
cdef void stream_fence() noexcept nogil         # after streamed rows, before another thread may read them
cdef const kr_simd_d *table_d(int level) noexcept nogil
cdef const kr_simd_f *table_f(int level) noexcept nogil


# The table for the type of `example`, which is not read.
cdef inline const void *pick(int level, const real_t *example) noexcept nogil:
    if real_t is double:
        return table_d(level)
    else:
        return table_f(level)


cdef inline Py_ssize_t sliver_rows(const void *simd, const real_t *example) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).sliver
    else:
        return (<const kr_simd_f *> simd).sliver


cdef inline void finish_row(const void *simd, const kr_finish *how, real_t norm_i, const real_t *norm_j, real_t *row,
                            Py_ssize_t n) noexcept nogil:
    if how.finish == KR_FINISH_LINEAR:
        return
    if real_t is double:
        (<const kr_simd_d *> simd).finish_row(how, norm_i, norm_j, row, n)
    else:
        (<const kr_simd_f *> simd).finish_row(how, norm_i, norm_j, row, n)


cdef inline void sums(const void *simd, int what, const real_t *x, Py_ssize_t step_x, Py_ssize_t n_x, const real_t *z,
                      Py_ssize_t step_z, Py_ssize_t n_z, Py_ssize_t depth, real_t *out, Py_ssize_t stride,
                      int flags) noexcept nogil:
    if real_t is double:
        (<const kr_simd_d *> simd).sums(what, x, step_x, n_x, z, step_z, n_z, depth, out, stride, flags)
    else:
        (<const kr_simd_f *> simd).sums(what, x, step_x, n_x, z, step_z, n_z, depth, out, stride, flags)


cdef inline void pack(const void *simd, const real_t *rows, Py_ssize_t stride, Py_ssize_t n_rows, Py_ssize_t depth,
                      const double *centre, double factor, real_t *slivers, Py_ssize_t step,
                      double *norms) noexcept nogil:
    if real_t is double:
        (<const kr_simd_d *> simd).pack(rows, stride, n_rows, depth, centre, factor, slivers, step, norms)
    else:
        (<const kr_simd_f *> simd).pack(rows, stride, n_rows, depth, centre, factor, slivers, step, norms)


cdef inline void transpose(const void *simd, const real_t *source, Py_ssize_t stride_source, Py_ssize_t n_rows,
                           Py_ssize_t n_columns, real_t *out, Py_ssize_t stride_out) noexcept nogil:
    if real_t is double:
        (<const kr_simd_d *> simd).transpose(source, stride_source, n_rows, n_columns, out, stride_out)
    else:
        (<const kr_simd_f *> simd).transpose(source, stride_source, n_rows, n_columns, out, stride_out)


# out[:n] = source[:n]; streamed past the caches for results that they could not hold (then stream_fence() at the end).
cdef inline void put_row(const void *simd, bint streamed, const real_t *source, real_t *out,
                         Py_ssize_t n) noexcept nogil:
    if not streamed:
        memcpy(out, source, n * sizeof(real_t))
    elif real_t is double:
        (<const kr_simd_d *> simd).stream_row(source, out, n)
    else:
        (<const kr_simd_f *> simd).stream_row(source, out, n)


cdef inline real_t largest(const void *simd, const real_t *numbers, Py_ssize_t n) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).largest(numbers, n)
    else:
        return (<const kr_simd_f *> simd).largest(numbers, n)


# The solver's passes; described in simd_solver.h.
cdef inline kr_scan descend(const void *simd, const real_t *row_i, const real_t *row_j, double step, const double *up,
                            const double *low, double *gradient, Py_ssize_t n) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).descend(row_i, row_j, step, up, low, gradient, n)
    else:
        return (<const kr_simd_f *> simd).descend(row_i, row_j, step, up, low, gradient, n)


cdef inline Py_ssize_t partner(const void *simd, const real_t *row_i, const real_t *diagonal, real_t k_ii, double tau,
                               double highest_up, double inverse, const double *low, const double *gradient,
                               Py_ssize_t n, double *gain) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).partner(row_i, diagonal, k_ii, tau, highest_up, inverse, low, gradient, n,
                                                  gain)
    else:
        return (<const kr_simd_f *> simd).partner(row_i, diagonal, k_ii, tau, highest_up, inverse, low, gradient, n,
                                                  gain)


cdef inline void add_rows(const void *simd, const real_t **rows, Py_ssize_t offset, const double *coefficients,
                          Py_ssize_t n_rows, double *out, Py_ssize_t n) noexcept nogil:
    if real_t is double:
        (<const kr_simd_d *> simd).add_rows(rows, offset, coefficients, n_rows, out, n)
    else:
        (<const kr_simd_f *> simd).add_rows(rows, offset, coefficients, n_rows, out, n)


cdef inline double dot(const void *simd, const real_t *row, const double *coefficients, Py_ssize_t n) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).dot(row, coefficients, n)
    else:
        return (<const kr_simd_f *> simd).dot(row, coefficients, n)
