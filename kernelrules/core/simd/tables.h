/* The table of vectorised passes that dispatch.h makes for each instruction-set level and float type. body.h and
 * solver.h describe the functions. */
#ifndef KERNELRULES_SIMD_TABLES_H
#define KERNELRULES_SIMD_TABLES_H

#include <stddef.h>

/* What `sums` adds up over the features, and its flags. */
enum { KR_SUM_PRODUCTS, KR_SUM_SQUARES, KR_SUM_MAGNITUDES };
enum { KR_SUM_ADD = 1, KR_SUM_LOWER = 2 };

/* n rows of data in slivers (body.h) that begin `step` numbers apart. */
typedef struct {
    const void *slivers;
    ptrdiff_t step;
    ptrdiff_t n;
} kr_packed_rows;

/* Masks of the solver: added to a gradient they exclude a variable. KR_NOTHING is below every value with a mask. */
#define KR_NEVER -1e300
#define KR_NOTHING -1e301

/* The maximal violation of the optimality conditions over some variables. */
typedef struct {
    double up;       /* the highest of up - gradient */
    double low;      /* the highest of low + gradient */
    ptrdiff_t where; /* the variable with the highest up - gradient */
} kr_scan;

/* Candidates for the second variable of a working pair whose first one is i. */
typedef struct {
    double tau;        /* the least curvature */
    double highest_up; /* up_i - gradient_i */
    double inverse;    /* scales highest_up + low_j + gradient_j to at most 1, so that squares fit the type */
    const double *low;
    const double *gradient;
    ptrdiff_t n;
} kr_partner_search;

#define KR_SIMD_TABLE(NAME, REAL)                                                                                  \
    typedef struct {                                                                                               \
        ptrdiff_t sliver;                                                                                          \
        void (*sums)(int sum, kr_packed_rows x, kr_packed_rows z, ptrdiff_t depth, REAL *out, ptrdiff_t stride,    \
                     int flags);                                                                                   \
        void (*pack)(const REAL *rows, ptrdiff_t stride, ptrdiff_t n_rows, ptrdiff_t depth, const double *centre,  \
                     double factor, REAL *slivers, ptrdiff_t step, double *norms);                                 \
        void (*transpose)(const REAL *in, ptrdiff_t stride_in, ptrdiff_t n_rows, ptrdiff_t n_columns, REAL *out,   \
                          ptrdiff_t stride_out);                                                                   \
        void (*stream_row)(const REAL *in, REAL *out, ptrdiff_t n);                                                \
        REAL (*largest_magnitude)(const REAL *numbers, ptrdiff_t n);                                               \
        kr_scan (*update_gradient)(const REAL *row_i, const REAL *row_j, double step, const double *up,            \
                                   const double *low, double *gradient, ptrdiff_t n);                              \
        ptrdiff_t (*select_partner)(const REAL *row_i, const REAL *diagonal, REAL k_ii,                            \
                                    const kr_partner_search *search, double *gain);                                \
        void (*add_rows)(const REAL *const *rows, ptrdiff_t offset, const double *coefficients, ptrdiff_t n_rows,  \
                         double *out, ptrdiff_t n);                                                                \
        double (*dot)(const REAL *row, const double *coefficients, ptrdiff_t n);                                   \
    } NAME;
KR_SIMD_TABLE(kr_simd_d, double)
KR_SIMD_TABLE(kr_simd_f, float)
#undef KR_SIMD_TABLE

#endif
