/* The table of vectorised kernels that simd.h makes for each instruction-set level and float type. The functions are
 * described where they are written, in simd_body.h. */
#ifndef KERNELRULES_SIMD_TABLES_H
#define KERNELRULES_SIMD_TABLES_H

#include <stddef.h>

/* What finish_row makes of a row of inner products or distances; see simd_body.h. */
enum { KR_FINISH_LINEAR, KR_FINISH_POLYNOMIAL, KR_FINISH_SIGMOID, KR_FINISH_RBF, KR_FINISH_EXP };

/* What `sums` adds up over the features, and its flags. */
enum { KR_SUM_PRODUCTS, KR_SUM_SQUARES, KR_SUM_MAGNITUDES };
enum { KR_SUM_ADD = 1, KR_SUM_LOWER = 2 };

typedef struct {
    int finish;      /* one of KR_FINISH_* */
    int degree;      /* of the polynomial */
    double gamma;    /* scale of the inner product, or of the distance for KR_FINISH_EXP */
    double coef0;    /* constant term */
} kr_finish;

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
    } NAME;
KR_SIMD_TABLE(kr_simd_d, double)
KR_SIMD_TABLE(kr_simd_f, float)
#undef KR_SIMD_TABLE

#endif
