/* The product of a sparse row with several vectors, stored as rows of a C array; compiled for two instruction-set levels.
 * Included by multigrid.pyx only.
 *
 *     out[c] -= Σ_e data[e] · x[indices[e] · width + c],   c < width
 *
 * Up to KR_MULTIVECTOR_MAX_WIDTH the width is a constant of the loop, so that the sums stay in registers.
 *
 * Invariant: each sum is in the order of the entries, whatever the level; there are no fused multiply-adds.
 */
#ifndef KERNELRULES_CSR_MULTIVECTOR_H
#define KERNELRULES_CSR_MULTIVECTOR_H

#include <stddef.h>

#include "simd/targets.h"

#define KR_MULTIVECTOR_MAX_WIDTH 16

#define KR_MULTIVECTOR_PASTE_(a, b) a##_##b
#define KR_MULTIVECTOR_PASTE(a, b) KR_MULTIVECTOR_PASTE_(a, b)
#define KR_MULTIVECTOR_NAME(a) KR_MULTIVECTOR_PASTE(a, KR_MULTIVECTOR_LEVEL)

#define KR_MULTIVECTOR_LEVEL base
#include "linalg/csr_multivector_body.h"
#undef KR_MULTIVECTOR_LEVEL

#if KR_X86
KR_BEGIN("avx2")
#define KR_MULTIVECTOR_LEVEL v3
#include "linalg/csr_multivector_body.h"
#undef KR_MULTIVECTOR_LEVEL
KR_END
#define KR_MULTIVECTOR_PICK(level) ((level) >= 1 ? subtract_product_v3 : subtract_product_base)
#else
#define KR_MULTIVECTOR_PICK(level) ((void)(level), subtract_product_base)
#endif

static inline void kr_subtract_product(int level, const int *indices, const double *data, ptrdiff_t n, const double *x,
                             ptrdiff_t width, double *out)
{
    KR_MULTIVECTOR_PICK(level)(indices, data, n, x, width, out);
}

#endif
