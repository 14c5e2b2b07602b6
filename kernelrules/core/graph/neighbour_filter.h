/* Which inner products of a row are large enough to belong to near neighbours, and exact distances; compiled for two
 * instruction-set levels, without fused multiply-adds. Included by neighbours.pyx only.
 *
 * With `norms` half the squared lengths, a little shortened, and `reaches` half the squared radius beyond which
 * no candidate can enter a point's list, the pair (i, j) is near for one of the two if
 *
 *     x_i·x_j - norms[j] + max(reaches[i], reaches[j]) ≥ norms[i].
 *
 * near(...) writes the places j that are, in ascending order, and returns how many. square(...) is |x-z|² from the
 * differences, in float64: sums by column modulo KR_NEAR_LANES, so that sparse rows can be added up in the same order.
 *
 * Invariant: nothing near is left out, on any level; what is not near may be let through and costs time only. Distances
 * have the same bits on every level.
 */
#ifndef KERNELRULES_NEIGHBOUR_FILTER_H
#define KERNELRULES_NEIGHBOUR_FILTER_H

#include <stddef.h>

#include "simd/targets.h"

#define KR_NEAR_BATCH 32 /* products that are compared together: mostly none is large enough */

#define KR_NEAR_LANES 8 /* independent partial sums of a distance */

static inline double kr_near_total(const double *sums)
{
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

#define KR_NEAR_PASTE_(a, b, c) a##_##b##_##c
#define KR_NEAR_PASTE(a, b, c) KR_NEAR_PASTE_(a, b, c)
#define KR_NEAR_NAME(a) KR_NEAR_PASTE(a, KR_NEAR_LEVEL, KR_REAL)

#define KR_NEAR_LEVEL base
#define KR_NEAR_BYTES 16
#define KR_REAL double
#include "graph/neighbour_filter_body.h"
#undef KR_REAL
#define KR_REAL float
#include "graph/neighbour_filter_body.h"
#undef KR_REAL
#undef KR_NEAR_LEVEL
#undef KR_NEAR_BYTES

#if KR_X86
KR_BEGIN("avx2")
#define KR_NEAR_LEVEL v3
#define KR_NEAR_BYTES 32
#define KR_REAL double
#include "graph/neighbour_filter_body.h"
#undef KR_REAL
#define KR_REAL float
#include "graph/neighbour_filter_body.h"
#undef KR_REAL
#undef KR_NEAR_LEVEL
#undef KR_NEAR_BYTES
KR_END
#define KR_NEAR_PICK(NAME, REAL) (level >= 1 ? NAME##_v3_##REAL : NAME##_base_##REAL)
#else
#define KR_NEAR_PICK(NAME, REAL) ((void)level, NAME##_base_##REAL)
#endif

static inline ptrdiff_t kr_near_d(int level, const double *sums, const double *norms, const double *reaches,
                                  double norm, double reach, ptrdiff_t n, int *hits)
{
    return KR_NEAR_PICK(near, double)(sums, norms, reaches, norm, reach, n, hits);
}

static inline ptrdiff_t kr_near_f(int level, const float *sums, const float *norms, const float *reaches, float norm,
                                  float reach, ptrdiff_t n, int *hits)
{
    return KR_NEAR_PICK(near, float)(sums, norms, reaches, norm, reach, n, hits);
}

static inline double kr_square_d(int level, const double *x, const double *z, ptrdiff_t p)
{
    return KR_NEAR_PICK(square, double)(x, z, p);
}

static inline double kr_square_f(int level, const float *x, const float *z, ptrdiff_t p)
{
    return KR_NEAR_PICK(square, float)(x, z, p);
}

#endif
