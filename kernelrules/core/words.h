/* Which of 64 numbers lie in an interval, as the bits of a word; compiled for every instruction-set level like simd.h.
 * Included by match.pyx only.
 *
 *     bit i  =  low < values[i] <= high, or values[i] is NaN and `missing`
 *
 * The numbers are finite or NaN: a limit that is infinite is none. Invariant: the same bits on every level, as nothing is
 * rounded.
 */
#ifndef KERNELRULES_WORDS_H
#define KERNELRULES_WORDS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "bits.h"
#include "targets.h"

#define KR_WORD 64

#define KR_WORD_PASTE_(a, b) a##_##b
#define KR_WORD_PASTE(a, b) KR_WORD_PASTE_(a, b)
#define KR_WORD_PASTE3_(a, b, c) a##_##b##_##c
#define KR_WORD_PASTE3(a, b, c) KR_WORD_PASTE3_(a, b, c)

#if KR_X86
#include <immintrin.h>
#endif

#define KR_REAL double
#define KR_SUFFIX pd
#define KR_VEC256 __m256d
#include "words_body.h"
#undef KR_REAL
#undef KR_SUFFIX
#undef KR_VEC256

#define KR_REAL float
#define KR_SUFFIX ps
#define KR_VEC256 __m256
#include "words_body.h"
#undef KR_REAL
#undef KR_SUFFIX
#undef KR_VEC256

#if KR_X86
#define KR_WORD_PICK(suffix, ...)                                                                                  \
    return level >= 2   ? word_v4_##suffix(__VA_ARGS__)                                                            \
           : level == 1 ? word_v3_##suffix(__VA_ARGS__)                                                            \
                        : word_base_##suffix(__VA_ARGS__)
#else
#define KR_WORD_PICK(suffix, ...)                                                                                  \
    (void)level;                                                                                                   \
    return word_base_##suffix(__VA_ARGS__)
#endif

/* The largest float that is not above x: among floats, both > and <= have the same answers with it. */
static inline float kr_float_below(double x)
{
    float near = (float)x;
    return (double)near > x ? nextafterf(near, -INFINITY) : near;
}

static inline uint64_t kr_word_d(int level, const double *values, double low, double high, int missing)
{
    KR_WORD_PICK(pd, values, low, high, missing);
}

/* Limits as kr_float_below has them. */
static inline uint64_t kr_word_f(int level, const float *values, float low, float high, int missing)
{
    KR_WORD_PICK(ps, values, low, high, missing);
}

#endif
