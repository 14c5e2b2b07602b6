/* Sums over the rows whose bit is set, for up to four rules at once; compiled for two instruction-set levels like
 * simd/dispatch.h. Included by rule_columns.pyx and descent.pyx only.
 *
 * Arrays have 64 entries per word; bits past the last row are 0. A sum has KR_MASKED_LANES partial sums, which are added
 * in pairs at the end: row i is added to partial sum i mod KR_MASKED_LANES. With AVX-512, a mask selects eight rows at a
 * time, and a row that is read once serves four rules.
 *
 * Invariant: the result has the same bits on every level, because each partial sum adds rows in ascending order.
 */
#ifndef KERNELRULES_MASKED_SUMS_H
#define KERNELRULES_MASKED_SUMS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "simd/targets.h"

#define KR_MASKED_LANES 16
#define KR_MASKED_MAX_RULES 4

#if KR_X86
#include <immintrin.h>
#define KR_MASKED_V4 __attribute__((target("avx512f,avx512dq")))

static inline __attribute__((always_inline)) KR_MASKED_V4 void kr_masked_words(
    const int count, const uint64_t *const *bits, const double *x, ptrdiff_t n_words, double *out)
{
    __m512d low[KR_MASKED_MAX_RULES], high[KR_MASKED_MAX_RULES];
    for (int c = 0; c < count; c++)
        low[c] = high[c] = _mm512_setzero_pd();
    for (ptrdiff_t word = 0; word < n_words; word++)
#pragma GCC unroll 4
        for (int k = 0; k < 64; k += KR_MASKED_LANES) {
            const __m512d a = _mm512_loadu_pd(x + 64 * word + k), b = _mm512_loadu_pd(x + 64 * word + k + 8);
#pragma GCC unroll 4
            for (int c = 0; c < count; c++) {
                const uint64_t here = bits[c][word] >> k;
                low[c] = _mm512_mask_add_pd(low[c], (__mmask8)here, low[c], a);
                high[c] = _mm512_mask_add_pd(high[c], (__mmask8)(here >> 8), high[c], b);
            }
        }
    for (int c = 0; c < count; c++) {
        const __m512d eight = _mm512_add_pd(low[c], high[c]);
        const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
        const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
        out[c] = _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
    }
}

static KR_MASKED_V4 void kr_masked_sums_v4(int count, const uint64_t *const *bits, const double *x, ptrdiff_t n_words,
                                           double *out)
{
    switch (count) {
        case 1: kr_masked_words(1, bits, x, n_words, out); return;
        case 2: kr_masked_words(2, bits, x, n_words, out); return;
        case 3: kr_masked_words(3, bits, x, n_words, out); return;
        default: kr_masked_words(4, bits, x, n_words, out); return;
    }
}

static KR_MASKED_V4 void kr_masked_add_v4(const uint64_t *bits, ptrdiff_t n_words, double by, double *to)
{
    const __m512d change = _mm512_set1_pd(by);
    for (ptrdiff_t word = 0; word < n_words; word++)
        for (int k = 0; k < 64; k += 8) {
            const __m512d here = _mm512_loadu_pd(to + 64 * word + k);
            _mm512_storeu_pd(to + 64 * word + k, _mm512_mask_add_pd(here, (__mmask8)(bits[word] >> k), here, change));
        }
}

static KR_MASKED_V4 void kr_masked_copy_v4(const uint64_t *bits, ptrdiff_t n_words, double times, const double *from,
                                           double *to)
{
    const __m512d factor = _mm512_set1_pd(times);
    for (ptrdiff_t word = 0; word < n_words; word++)
        for (int k = 0; k < 64; k += 8)
            _mm512_storeu_pd(to + 64 * word + k, _mm512_maskz_mul_pd((__mmask8)(bits[word] >> k), factor,
                                                                     _mm512_loadu_pd(from + 64 * word + k)));
}
#endif

static inline double kr_masked_sum(const uint64_t *bits, const double *x, ptrdiff_t n_words)
{
    double parts[KR_MASKED_LANES] = {0};
    for (ptrdiff_t word = 0; word < n_words; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            int i = kr_lowest(left);
            parts[i % KR_MASKED_LANES] += x[64 * word + i];
        }
    for (int half = KR_MASKED_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            parts[i] += parts[i + half];
    return parts[0];
}

/* out[c] = Σ x over the rows of rule c, for `count` ≤ KR_MASKED_MAX_RULES rules. */
static inline void kr_masked_sums(int level, int count, const uint64_t *const *bits, const double *x, ptrdiff_t n_words,
                                  double *out)
{
#if KR_X86
    if (level >= 2) {
        kr_masked_sums_v4(count, bits, x, n_words, out);
        return;
    }
#endif
    (void)level;
    for (int c = 0; c < count; c++)
        out[c] = kr_masked_sum(bits[c], x, n_words);
}

/* to += by on the rows whose bit is set. */
static inline void kr_masked_add(int level, const uint64_t *bits, ptrdiff_t n_words, double by, double *to)
{
#if KR_X86
    if (level >= 2) {
        kr_masked_add_v4(bits, n_words, by, to);
        return;
    }
#endif
    (void)level;
    for (ptrdiff_t word = 0; word < n_words; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1)
            to[64 * word + kr_lowest(left)] += by;
}

/* to = times · from on the rows whose bit is set, and 0 elsewhere. */
static inline void kr_masked_copy(int level, const uint64_t *bits, ptrdiff_t n_words, double times, const double *from,
                                  double *to)
{
#if KR_X86
    if (level >= 2) {
        kr_masked_copy_v4(bits, n_words, times, from, to);
        return;
    }
#endif
    (void)level;
    memset(to, 0, (size_t)n_words * 64 * sizeof(double));
    for (ptrdiff_t word = 0; word < n_words; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            ptrdiff_t i = 64 * word + kr_lowest(left);
            to[i] = times * from[i];
        }
}

/* score += by and residual -= by · curvature on the rows whose bit is set. */
static inline void kr_masked_update(const uint64_t *bits, ptrdiff_t n_words, double by, const double *curvature,
                                    double *score, double *residual)
{
    for (ptrdiff_t word = 0; word < n_words; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            ptrdiff_t i = 64 * word + kr_lowest(left);
            score[i] += by;
            residual[i] -= by * curvature[i];
        }
}

#endif
