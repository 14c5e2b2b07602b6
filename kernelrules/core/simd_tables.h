/* The table of vectorised kernels that simd.h makes for each instruction-set level and float type. The functions are
 * described where they are written, in simd_body.h. */
#ifndef KERNELRULES_SIMD_TABLES_H
#define KERNELRULES_SIMD_TABLES_H

#include <stddef.h>

/* What finish_row makes of a row of inner products or distances; see simd_body.h. */
enum { KR_FINISH_LINEAR, KR_FINISH_POLYNOMIAL, KR_FINISH_SIGMOID, KR_FINISH_RBF, KR_FINISH_EXP, KR_FINISH_DISTANCE };

/* What `sums` adds up over the features, and its flags. */
enum { KR_SUM_PRODUCTS, KR_SUM_SQUARES, KR_SUM_MAGNITUDES };
enum { KR_SUM_ADD = 1, KR_SUM_LOWER = 2 };

typedef struct {
    int finish;      /* one of KR_FINISH_* */
    int degree;      /* of the polynomial */
    double gamma;    /* scale of the inner product, or of the distance for KR_FINISH_EXP */
    double coef0;    /* constant term */
} kr_finish;

/* Masks of the solver: added to a gradient they take a variable out. KR_NOTHING is below all that can be found. */
#define KR_NEVER -1e300
#define KR_NOTHING -1e301

typedef struct {
    double up;       /* the highest of up - gradient */
    double low;      /* the highest of low + gradient */
    ptrdiff_t where; /* of `up` */
} kr_scan;

#define KR_SIMD_TABLE(NAME, REAL)                                                                                  \
    typedef struct {                                                                                               \
        ptrdiff_t sliver;                                                                                          \
        void (*finish_row)(const kr_finish *how, REAL norm_i, const REAL *norm_j, REAL *row, ptrdiff_t n);         \
        void (*sums)(int what, const REAL *x, ptrdiff_t step_x, ptrdiff_t n_x, const REAL *z, ptrdiff_t step_z,    \
                     ptrdiff_t n_z, ptrdiff_t depth, REAL *out, ptrdiff_t stride, int flags);                      \
        void (*pack)(const REAL *rows, ptrdiff_t stride, ptrdiff_t n_rows, ptrdiff_t depth, const double *centre,  \
                     double factor, REAL *slivers, ptrdiff_t step, double *norms);                                 \
        void (*transpose)(const REAL *in, ptrdiff_t ld_in, ptrdiff_t n_rows, ptrdiff_t n_cols, REAL *out,          \
                          ptrdiff_t ld_out);                                                                       \
        void (*stream_row)(const REAL *in, REAL *out, ptrdiff_t n);                                                \
        REAL (*largest)(const REAL *numbers, ptrdiff_t n);                                                         \
        kr_scan (*descend)(const REAL *row_i, const REAL *row_j, double step, const double *up, const double *low, \
                           double *gradient, ptrdiff_t n);                                                         \
        ptrdiff_t (*partner)(const REAL *row_i, const REAL *diagonal, REAL k_ii, double tau, double highest_up,    \
                             double inverse, const double *low, const double *gradient, ptrdiff_t n, double *gain); \
        void (*add_rows)(const REAL *const *rows, ptrdiff_t offset, const double *coefficients, ptrdiff_t n_rows,  \
                         double *out, ptrdiff_t n);                                                                \
        double (*dot)(const REAL *row, const double *coefficients, ptrdiff_t n);                                   \
    } NAME;
KR_SIMD_TABLE(kr_simd_d, double)
KR_SIMD_TABLE(kr_simd_f, float)
#undef KR_SIMD_TABLE

#endif
