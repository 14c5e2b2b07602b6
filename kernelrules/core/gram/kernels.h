/* THE table of kernels: one row per kernel. Everything that depends on the kernel reads it: the vectorised loops
 * (kernel_values.h), the check of parameters, the dense, the sparse and the diagonal path, and the classes of
 * kernelrules/kernels/specs.py. A kernel is a function of one sum over the features.
 *
 *     name          the name of the Python class in capitals
 *     number        kr_kernel.kind. Compiled callers hold these numbers: none is ever changed
 *     sum           what is summed: PRODUCTS x·z, SQUARES (x - z)², MAGNITUDES |x - z|
 *     parameters    those that the kernel has: GAMMA (finite, > 0), COEF0 (finite), DEGREE (>= 0)
 *     unit          whether k(x, x) = 1 for every x: such entries are exactly 1
 *     semidefinite  whether every matrix of the kernel is positive semi-definite, as an expression of the parameters;
 *                   0 if that is not known
 *     value         k as an expression of the sum s and the parameters
 *
 * Both expressions are read twice, by the C compiler (on vectors) and as text by Python (on NumPy arrays): arithmetic,
 * comparisons, EXP (of what is not positive), TANH and POWER mean the same in both.
 *
 * A kernel of differences (SQUARES, MAGNITUDES) is a decreasing function of the product gamma * s alone whose relative
 * change is at most the change of gamma * s: then |k'| <= k, and the bounds of the rounding errors in dense.pyx and
 * csr.pyx hold. Squared distances are no kernel, but are computed as if they were one.
 */
#ifndef KERNELRULES_KERNELS_H
#define KERNELRULES_KERNELS_H

#include <stddef.h>

#include "simd/tables.h"

enum { KR_GAMMA = 1, KR_COEF0 = 2, KR_DEGREE = 4 };

#define KR_KERNELS(KERNEL)                                                                                         \
    /*     name, number, sum, parameters, unit, semidefinite, value */                                             \
    KERNEL(SQUARED_DISTANCE, -1, SQUARES, 0, 0, 0, s)                                                              \
    KERNEL(LINEAR, 0, PRODUCTS, 0, 0, 1, s)                                                                        \
    KERNEL(POLYNOMIAL, 1, PRODUCTS, KR_GAMMA | KR_COEF0 | KR_DEGREE, 0, coef0 >= 0, POWER(gamma * s + coef0, degree)) \
    KERNEL(RBF, 2, SQUARES, KR_GAMMA, 1, 1, EXP(-gamma * s))                                                       \
    KERNEL(LAPLACIAN, 3, MAGNITUDES, KR_GAMMA, 1, 1, EXP(-gamma * s))                                              \
    KERNEL(SIGMOID, 4, PRODUCTS, KR_GAMMA | KR_COEF0, 0, 0, TANH(gamma * s + coef0))                               \
    /* a new kernel: a row above this line */

#define KR_KERNEL_NUMBER(name, number, sum, parameters, unit, semidefinite, value) KR_KERNEL_##name = number,
enum { KR_KERNELS(KR_KERNEL_NUMBER) };
#undef KR_KERNEL_NUMBER

/* A row of the table. */
typedef struct {
    const char *name;
    int number;
    int sum;                  /* KR_SUM_* of simd/tables.h */
    int parameters;           /* flags */
    int unit;
    const char *semidefinite; /* the expression */
    const char *value;        /* the expression */
} kr_kernel_row;

/* The function of the sum with its parameters, for one instruction-set level. */
typedef struct kr_kernel_function {
    int kind;
    int expanded; /* whether s = max(0, norm_i + norm_j - 2 * sum), of data that are multiplied by sqrt(gamma) already */
    int degree;
    double gamma;
    double coef0;
    void (*row_d)(const struct kr_kernel_function *, double norm_i, const double *norm_j, double *row, ptrdiff_t n);
    void (*row_f)(const struct kr_kernel_function *, float norm_i, const float *norm_j, float *row, ptrdiff_t n);
} kr_kernel_function;

#endif
