/* A sparse row times vectors that stand side by side; compiled for two instruction-set levels like simd.h. Included by
 * multigrid.pyx only.
 *
 *     out[c] -= Σ_e data[e] · x[indices[e] · width + c],   c < width
 *
 * Up to KR_BESIDE_MOST the width is a constant of the loop, so that the sums stay in registers.
 *
 * Invariant: each sum is in the order of the entries, whatever the level; there are no fused multiply-adds.
 */
#ifndef KERNELRULES_BESIDE_H
#define KERNELRULES_BESIDE_H

#include <stddef.h>

#include "targets.h"

#define KR_BESIDE_MOST 16

#define KR_BESIDE_PASTE_(a, b) a##_##b
#define KR_BESIDE_PASTE(a, b) KR_BESIDE_PASTE_(a, b)
#define KR_BESIDE_NAME(a) KR_BESIDE_PASTE(a, KR_BESIDE_LEVEL)

#define KR_BESIDE_LEVEL base
#include "beside_body.h"
#undef KR_BESIDE_LEVEL

#if KR_X86
KR_BEGIN("avx2")
#define KR_BESIDE_LEVEL v3
#include "beside_body.h"
#undef KR_BESIDE_LEVEL
KR_END
#define KR_BESIDE_PICK(level) ((level) >= 1 ? beside_v3 : beside_base)
#else
#define KR_BESIDE_PICK(level) ((void)(level), beside_base)
#endif

static inline void kr_beside(int level, const int *indices, const double *data, ptrdiff_t n, const double *x,
                             ptrdiff_t width, double *out)
{
    KR_BESIDE_PICK(level)(indices, data, n, x, width, out);
}

#endif
