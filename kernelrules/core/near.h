/* Which inner products of a row are large enough to belong to near neighbours, compiled for every instruction-set
 * level like simd.h. Included by neighbours.pyx only.
 *
 * With `norms` half the squared lengths, a little shortened, and `reaches` half the squared distance at which a point
 * stops to be interested, the pair (i, j) is near for one of the two if
 *
 *     x_i·x_j - norms[j] + max(reaches[i], reaches[j]) ≥ norms[i].
 *
 * near(...) writes the places j that are, in ascending order, and returns how many.
 *
 * Invariant: nothing near is left out, on any level; what is not near may be let through and costs time only.
 */
#ifndef KERNELRULES_NEAR_H
#define KERNELRULES_NEAR_H

#include <stddef.h>

#define KR_NEAR_LOOK 16 /* products that are judged together: nearly always none is large enough */

#define KR_NEAR_PASTE_(a, b, c) a##_##b##_##c
#define KR_NEAR_PASTE(a, b, c) KR_NEAR_PASTE_(a, b, c)
#define KR_NEAR_NAME(a) KR_NEAR_PASTE(a, KR_NEAR_LEVEL, KR_REAL)

#define KR_NEAR_LEVEL base
#define KR_REAL double
#include "near_body.h"
#undef KR_REAL
#define KR_REAL float
#include "near_body.h"
#undef KR_REAL
#undef KR_NEAR_LEVEL

#if defined(__x86_64__) && !defined(KR_SIMD_BASELINE_ONLY)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define KR_NEAR_LEVEL v3
#define KR_REAL double
#include "near_body.h"
#undef KR_REAL
#define KR_REAL float
#include "near_body.h"
#undef KR_REAL
#undef KR_NEAR_LEVEL
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#define KR_NEAR_PICK(REAL) (level >= 1 ? near_v3_##REAL : near_base_##REAL)
#else
#define KR_NEAR_PICK(REAL) ((void)level, near_base_##REAL)
#endif

static inline ptrdiff_t kr_near_d(int level, const double *sums, const double *norms, const double *reaches,
                                  double norm, double reach, ptrdiff_t n, int *hits)
{
    return KR_NEAR_PICK(double)(sums, norms, reaches, norm, reach, n, hits);
}

static inline ptrdiff_t kr_near_f(int level, const float *sums, const float *norms, const float *reaches, float norm,
                                  float reach, ptrdiff_t n, int *hits)
{
    return KR_NEAR_PICK(float)(sums, norms, reaches, norm, reach, n, hits);
}

#endif
