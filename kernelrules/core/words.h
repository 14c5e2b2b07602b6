/* Which of 64 numbers lie in an interval, as the bits of a word; compiled for every instruction-set level like simd.h.
 * Included by match.pyx only.
 *
 *     bit i  =  low < values[i] <= high, or values[i] is NaN and `missing`
 *
 * Invariant: the same bits on every level, as nothing is rounded.
 */
#ifndef KERNELRULES_WORDS_H
#define KERNELRULES_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define KR_WORD 64

#if defined(__x86_64__) && !defined(KR_SIMD_BASELINE_ONLY)
#include <immintrin.h>

__attribute__((target("avx512f"))) static uint64_t kr_word_v4(const double *values, double low, double high,
                                                              int missing)
{
    const __m512d lows = _mm512_set1_pd(low), highs = _mm512_set1_pd(high);
    const __mmask8 gaps = missing ? 0xff : 0;
    uint64_t word = 0;
    for (int i = 0; i < KR_WORD; i += 8) {
        __m512d x = _mm512_loadu_pd(values + i);
        __mmask8 inside = _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, lows, _CMP_GT_OQ), x, highs, _CMP_LE_OQ);
        inside |= _mm512_mask_cmp_pd_mask(gaps, x, x, _CMP_UNORD_Q);
        word |= (uint64_t)inside << i;
    }
    return word;
}

__attribute__((target("avx2"))) static uint64_t kr_word_v3(const double *values, double low, double high, int missing)
{
    const __m256d lows = _mm256_set1_pd(low), highs = _mm256_set1_pd(high);
    const __m256d gaps = _mm256_castsi256_pd(_mm256_set1_epi64x(missing ? -1 : 0));
    uint64_t word = 0;
    for (int i = 0; i < KR_WORD; i += 4) {
        __m256d x = _mm256_loadu_pd(values + i);
        __m256d inside = _mm256_and_pd(_mm256_cmp_pd(x, lows, _CMP_GT_OQ), _mm256_cmp_pd(x, highs, _CMP_LE_OQ));
        inside = _mm256_or_pd(inside, _mm256_and_pd(_mm256_cmp_pd(x, x, _CMP_UNORD_Q), gaps));
        word |= (uint64_t)_mm256_movemask_pd(inside) << i;
    }
    return word;
}
#define KR_WORD_PICK(...)                                                                                          \
    return level >= 2 ? kr_word_v4(__VA_ARGS__) : level == 1 ? kr_word_v3(__VA_ARGS__) : kr_word_base(__VA_ARGS__)
#else
#define KR_WORD_PICK(...)                                                                                          \
    (void)level;                                                                                                   \
    return kr_word_base(__VA_ARGS__)
#endif

static uint64_t kr_word_base(const double *values, double low, double high, int missing)
{
    unsigned char flags[KR_WORD];
    uint64_t word = 0;
    for (int i = 0; i < KR_WORD; i++) /* without branches, so that it is vectorised */
        flags[i] = ((low < values[i]) & (values[i] <= high)) | ((values[i] != values[i]) & (missing != 0));
    for (int i = 0; i < KR_WORD; i++)
        word |= (uint64_t)flags[i] << i;
    return word;
}

/* The place of the lowest bit of a word that is not 0. */
static inline int kr_lowest(uint64_t word)
{
    return __builtin_ctzll(word);
}

static inline uint64_t kr_word(int level, const double *values, double low, double high, int missing)
{
    KR_WORD_PICK(values, low, high, missing);
}

#endif
