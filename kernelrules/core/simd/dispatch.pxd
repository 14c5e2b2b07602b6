# The vectorised passes of dispatch.h under one name for both float types. A table is addressed by an untyped pointer
# `simd`, which simd_table gives for a level and a type; the typed arguments of a pass choose its members.

from libc.string cimport memcpy

from kernelrules.core.base.types cimport real_t


cdef extern from "simd/tables.h" nogil:
    enum:
        KR_SUM_PRODUCTS
        KR_SUM_SQUARES
        KR_SUM_MAGNITUDES
        KR_SUM_ADD
        KR_SUM_LOWER

    double KR_NEVER
    double KR_NOTHING

    ctypedef struct kr_packed_rows:
        const void *slivers
        Py_ssize_t step
        Py_ssize_t n

    ctypedef struct kr_scan:
        double up
        double low
        Py_ssize_t where

    ctypedef struct kr_partner_search:
        double tau
        double highest_up
        double inverse
        const double *low
        const double *gradient
        Py_ssize_t n

    ctypedef struct kr_simd_d:
        Py_ssize_t sliver
        void (*sums)(int, kr_packed_rows, kr_packed_rows, Py_ssize_t, double *, Py_ssize_t, int) noexcept nogil
        void (*pack)(const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double *, double, double *, Py_ssize_t,
                     double *) noexcept nogil
        void (*transpose)(const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, double *, Py_ssize_t) noexcept nogil
        void (*stream_row)(const double *, double *, Py_ssize_t) noexcept nogil
        double (*largest_magnitude)(const double *, Py_ssize_t) noexcept nogil
        kr_scan (*update_gradient)(const double *, const double *, double, const double *, const double *, double *,
                                   Py_ssize_t) noexcept nogil
        Py_ssize_t (*select_partner)(const double *, const double *, double, const kr_partner_search *,
                                     double *) noexcept nogil
        void (*add_rows)(const double *const *, Py_ssize_t, const double *, Py_ssize_t, double *,
                         Py_ssize_t) noexcept nogil
        double (*dot)(const double *, const double *, Py_ssize_t) noexcept nogil

    ctypedef struct kr_simd_f:
        Py_ssize_t sliver
        void (*sums)(int, kr_packed_rows, kr_packed_rows, Py_ssize_t, float *, Py_ssize_t, int) noexcept nogil
        void (*pack)(const float *, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double *, double, float *, Py_ssize_t,
                     double *) noexcept nogil
        void (*transpose)(const float *, Py_ssize_t, Py_ssize_t, Py_ssize_t, float *, Py_ssize_t) noexcept nogil
        void (*stream_row)(const float *, float *, Py_ssize_t) noexcept nogil
        float (*largest_magnitude)(const float *, Py_ssize_t) noexcept nogil
        kr_scan (*update_gradient)(const float *, const float *, double, const double *, const double *, double *,
                                   Py_ssize_t) noexcept nogil
        Py_ssize_t (*select_partner)(const float *, const float *, float, const kr_partner_search *,
                                     double *) noexcept nogil
        void (*add_rows)(const float *const *, Py_ssize_t, const double *, Py_ssize_t, double *,
                         Py_ssize_t) noexcept nogil
        double (*dot)(const float *, const double *, Py_ssize_t) noexcept nogil


cdef int best_level() noexcept nogil            # of this processor: 0 baseline, 1 AVX2 + FMA, 2 AVX-512
cdef void stream_fence() noexcept nogil         # after streamed rows, before another thread may read them
cdef const void *simd_table(int level, bint single) noexcept nogil      # for float32 if single, else for float64
cdef Py_ssize_t sliver_rows(int level, bint single) noexcept nogil      # rows of a sliver


cdef inline kr_packed_rows packed_rows(const void *slivers, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    cdef kr_packed_rows rows
    rows.slivers, rows.step, rows.n = slivers, step, n
    return rows


cdef inline void sums(const void *simd, int sum, kr_packed_rows x, kr_packed_rows z, Py_ssize_t depth, real_t *out,
                      Py_ssize_t stride, int flags) noexcept nogil:
    if real_t is double:
        (<const kr_simd_d *> simd).sums(sum, x, z, depth, out, stride, flags)
    else:
        (<const kr_simd_f *> simd).sums(sum, x, z, depth, out, stride, flags)


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


cdef inline void write_row(const void *simd, bint streamed, const real_t *source, real_t *out,
                           Py_ssize_t n) noexcept nogil:
    """out[:n] = source[:n]; streamed past the caches for results that they could not hold (stream_fence() follows)."""
    if not streamed:
        memcpy(out, source, n * sizeof(real_t))
    elif real_t is double:
        (<const kr_simd_d *> simd).stream_row(source, out, n)
    else:
        (<const kr_simd_f *> simd).stream_row(source, out, n)


cdef inline real_t largest_magnitude(const void *simd, const real_t *numbers, Py_ssize_t n) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).largest_magnitude(numbers, n)
    else:
        return (<const kr_simd_f *> simd).largest_magnitude(numbers, n)


# The passes of the SMO solver; solver.h describes them.
cdef inline kr_scan update_gradient(const void *simd, const real_t *row_i, const real_t *row_j, double step,
                                    const double *up, const double *low, double *gradient, Py_ssize_t n) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).update_gradient(row_i, row_j, step, up, low, gradient, n)
    else:
        return (<const kr_simd_f *> simd).update_gradient(row_i, row_j, step, up, low, gradient, n)


cdef inline Py_ssize_t select_partner(const void *simd, const real_t *row_i, const real_t *diagonal, real_t k_ii,
                                      const kr_partner_search *search, double *gain) noexcept nogil:
    if real_t is double:
        return (<const kr_simd_d *> simd).select_partner(row_i, diagonal, k_ii, search, gain)
    else:
        return (<const kr_simd_f *> simd).select_partner(row_i, diagonal, k_ii, search, gain)


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
