/* Which of 64 values lie in an interval, as the bits of a word; compiled for every instruction-set level like
 * simd/dispatch.h. Included by match.pyx only.
 *
 *     bit i  =  low < values[i] <= high, or values[i] is NaN and `missing`
 *
 * Values are finite or NaN, so that an infinite limit is no limit.
 *
 * Invariant: the result has the same bits on every level, because nothing is rounded.
 */
#ifndef KERNELRULES_THRESHOLD_MASKS_H
#define KERNELRULES_THRESHOLD_MASKS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "simd/targets.h"

#define KR_WORD 64

#define KR_MASK_PASTE_(a, b) a##_##b
#define KR_MASK_PASTE(a, b) KR_MASK_PASTE_(a, b)
#define KR_MASK_PASTE3_(a, b, c) a##_##b##_##c
#define KR_MASK_PASTE3(a, b, c) KR_MASK_PASTE3_(a, b, c)

#if KR_X86
#include <immintrin.h>
#endif

#define KR_REAL double
#define KR_SUFFIX pd
#define KR_VEC256 __m256d
#include "rules/threshold_masks_body.h"
#undef KR_REAL
#undef KR_SUFFIX
#undef KR_VEC256

#define KR_REAL float
#define KR_SUFFIX ps
#define KR_VEC256 __m256
#include "rules/threshold_masks_body.h"
#undef KR_REAL
#undef KR_SUFFIX
#undef KR_VEC256

#if KR_X86
#define KR_MASK_SELECT(suffix, ...)                                                                                  \
    return level >= 2   ? mask_v4_##suffix(__VA_ARGS__)                                                            \
           : level == 1 ? mask_v3_##suffix(__VA_ARGS__)                                                            \
                        : mask_base_##suffix(__VA_ARGS__)
#else
#define KR_MASK_SELECT(suffix, ...)                                                                                  \
    (void)level;                                                                                                   \
    return mask_base_##suffix(__VA_ARGS__)
#endif

/* The largest float that is not above x. Comparing a float with it by > or <= is the same as comparing with x. */
static inline float kr_float_below(double x)
{
    float near = (float)x;
    return (double)near > x ? nextafterf(near, -INFINITY) : near;
}

static inline uint64_t kr_threshold_mask_d(int level, const double *values, double low, double high, int missing)
{
    KR_MASK_SELECT(pd, values, low, high, missing);
}

/* The limits must come from kr_float_below. */
static inline uint64_t kr_threshold_mask_f(int level, const float *values, float low, float high, int missing)
{
    KR_MASK_SELECT(ps, values, low, high, missing);
}

#endif
