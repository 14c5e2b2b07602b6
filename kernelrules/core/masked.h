/* Sums over the rows whose bit is set, of up to four rules at once; compiled for two instruction-set levels like simd.h.
 * Included by terms.pyx and descent.pyx only.
 *
 * A sum has KR_MASKED_LANES parts, row i being added to part i mod KR_MASKED_LANES, and these are added in pairs: with
 * AVX-512 a mask takes eight rows at a time, and rows that are read once serve four rules.
 *
 * Invariant: the same bits on every level: each part is a sum in the order of rows.
 */
#ifndef KERNELRULES_MASKED_H
#define KERNELRULES_MASKED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KR_MASKED_LANES 16
#define KR_MASKED_TOGETHER 4

#if defined(__x86_64__) && !defined(KR_SIMD_BASELINE_ONLY)
#include <immintrin.h>
#define KR_MASKED_X86 1
#endif

/* Of the words first, first + 1, ... of one rule, with the parts so far. */
static inline void kr_masked_rest(const uint64_t *bits, const double *x, ptrdiff_t n, ptrdiff_t first, double *parts)
{
    for (ptrdiff_t word = first; 64 * word < n; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            int i = __builtin_ctzll(left);
            parts[i % KR_MASKED_LANES] += x[64 * word + i];
        }
}

static inline double kr_masked_total(double *parts)
{
    for (int half = KR_MASKED_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            parts[i] += parts[i + half];
    return parts[0];
}

#ifdef KR_MASKED_X86
#define KR_MASKED_V4 __attribute__((target("avx512f,avx512dq")))

static inline __attribute__((always_inline)) KR_MASKED_V4 void kr_masked_words(
    const int count, const uint64_t *const *bits, const double *x, ptrdiff_t n_words, double (*parts)[KR_MASKED_LANES])
{
    __m512d low[KR_MASKED_TOGETHER], high[KR_MASKED_TOGETHER];
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
        _mm512_storeu_pd(parts[c], low[c]);
        _mm512_storeu_pd(parts[c] + 8, high[c]);
    }
}

static KR_MASKED_V4 void kr_masked_words_v4(int count, const uint64_t *const *bits, const double *x, ptrdiff_t n_words,
                                            double (*parts)[KR_MASKED_LANES])
{
    switch (count) {
        case 1: kr_masked_words(1, bits, x, n_words, parts); return;
        case 2: kr_masked_words(2, bits, x, n_words, parts); return;
        case 3: kr_masked_words(3, bits, x, n_words, parts); return;
        default: kr_masked_words(4, bits, x, n_words, parts); return;
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

/* Σ x over the rows of `count` rules, at most KR_MASKED_TOGETHER. */
static inline void kr_masked_sums(int level, int count, const uint64_t *const *bits, const double *x, ptrdiff_t n,
                                  double *out)
{
    double parts[KR_MASKED_TOGETHER][KR_MASKED_LANES];
    ptrdiff_t done = 0;
    memset(parts, 0, sizeof parts);
#ifdef KR_MASKED_X86
    if (level >= 2) {
        done = n / 64;
        kr_masked_words_v4(count, bits, x, done, parts);
    }
#endif
    (void)level;
    for (int c = 0; c < count; c++) {
        kr_masked_rest(bits[c], x, n, done, parts[c]);
        out[c] = kr_masked_total(parts[c]);
    }
}

/* to += by, where the bit is set. */
static inline void kr_masked_add(int level, const uint64_t *bits, ptrdiff_t n, double by, double *to)
{
    ptrdiff_t word = 0;
#ifdef KR_MASKED_X86
    if (level >= 2) {
        word = n / 64;
        kr_masked_add_v4(bits, word, by, to);
    }
#endif
    (void)level;
    for (; 64 * word < n; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1)
            to[64 * word + __builtin_ctzll(left)] += by;
}

/* to = times · from where the bit is set, and 0 elsewhere. */
static inline void kr_masked_copy(int level, const uint64_t *bits, ptrdiff_t n, double times, const double *from,
                                  double *to)
{
    ptrdiff_t word = 0;
#ifdef KR_MASKED_X86
    if (level >= 2) {
        word = n / 64;
        kr_masked_copy_v4(bits, word, times, from, to);
    }
#endif
    (void)level;
    memset(to + 64 * word, 0, (size_t)(n - 64 * word) * sizeof(double));
    for (; 64 * word < n; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            int i = __builtin_ctzll(left);
            to[64 * word + i] = times * from[64 * word + i];
        }
}

/* down -= by · from and up += by, where the bit is set. */
static inline void kr_masked_move(const uint64_t *bits, ptrdiff_t n, double by, const double *from, double *up,
                                  double *down)
{
    for (ptrdiff_t word = 0; 64 * word < n; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            ptrdiff_t i = 64 * word + __builtin_ctzll(left);
            up[i] += by;
            down[i] -= by * from[i];
        }
}

#endif
