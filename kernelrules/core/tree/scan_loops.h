/* The inner loops of the split scanner over one presorted column, compiled for every instruction-set level like dispatch.h,
 * but without fused multiply-adds: a split's score has the same bits on every level.
 *
 * An entry of a column is id | class << shift | differs << 31. `differs` says that the entry's value is larger than that
 * of the entry before, so a cut may go there. A cut at i sends entries [0, i) left, together with the rows that went
 * there before (`weight0`, `sum0`: missing ones).
 *
 *     score(i) = (sum_left W - weight_left S)² / (weight_left weight_right)
 *
 * is W / 2 times the gain in gini of two classes (sum: rows of class 1), and W times that in squared error.
 *
 * Invariant: of equal scores the first is found.
 */
#ifndef KERNELRULES_SCAN_LOOPS_H
#define KERNELRULES_SCAN_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "tree/gini_score.h"
#include "simd/targets.h"

#define KR_DIFFERS 0x80000000u
#define KR_NO_CUT -1.0 /* below every score */
#define KR_FEW_CUTS 40 /* below, one loop is faster than two */
#define KR_CHAINS 4     /* sums of a block that are added up side by side: one waits for its last addition */
#define KR_CUTS 256    /* the best of a block is found by value, its place by a second look at that block only */

typedef struct {
    double score;
    ptrdiff_t at; /* the cut, -1 for none */
    double sum;   /* on its left */
} kr_cut;

/* What is known of a column before its scan: cuts from `first` to `last` are allowed. */
typedef struct {
    ptrdiff_t first, last;
    double weight0, sum0; /* on the left from the start */
    double weight, sum;   /* of all rows */
    double squares;       /* of several classes: sum of the squares of their rows */
    const double *inverse; /* 1 / (weight_left weight_right) of every cut, where sums are rounded anyway; or NULL */
} kr_range;

#define KR_SCAN_PASTE_(a, b) a##_##b
#define KR_SCAN_PASTE(a, b) KR_SCAN_PASTE_(a, b)
#define KR_SCAN_NAME(a) KR_SCAN_PASTE(a, KR_SCAN_LEVEL)

#define KR_SCAN_LEVEL base
#include "tree/scan_loops_body.h"
#undef KR_SCAN_LEVEL

#if KR_X86
KR_BEGIN("avx2")
#define KR_SCAN_LEVEL v3
#include "tree/scan_loops_body.h"
#undef KR_SCAN_LEVEL
KR_END
KR_BEGIN("avx2,avx512f,avx512bw,avx512dq,avx512vl")
#define KR_SCAN_LEVEL v4
#include "tree/scan_loops_body.h"
#undef KR_SCAN_LEVEL
KR_END
#define KR_SCAN_DISPATCH(NAME, ...)                                                                                \
    return level >= 2 ? NAME##_v4(__VA_ARGS__) : level == 1 ? NAME##_v3(__VA_ARGS__) : NAME##_base(__VA_ARGS__)
#else
#define KR_SCAN_DISPATCH(NAME, ...)                                                                                \
    (void)level;                                                                                                   \
    return NAME##_base(__VA_ARGS__)
#endif

static inline kr_cut kr_cut_two(int level, const uint32_t *entries, int shift, const kr_range *range)
{
    KR_SCAN_DISPATCH(cut_two, entries, shift, range);
}

static inline kr_cut kr_cut_mean(int level, const uint32_t *entries, uint32_t id_mask, const double *y, double shift,
                                 const kr_range *range)
{
    KR_SCAN_DISPATCH(cut_mean, entries, id_mask, y, shift, range);
}

/* The gain in entropy of two classes times W, up to a constant; logs[c] = c log2 c. */
static inline kr_cut kr_cut_entropy(const uint32_t *entries, int shift, const double *logs, double base,
                                    const kr_range *range)
{
    kr_cut best = {KR_NO_CUT, -1, 0};
    ptrdiff_t ones = (ptrdiff_t)range->sum0, all = (ptrdiff_t)range->weight, all_ones = (ptrdiff_t)range->sum;
    ptrdiff_t weight0 = (ptrdiff_t)range->weight0;
    for (ptrdiff_t i = 0; i <= range->last; i++) {
        if (i >= range->first && entries[i] & KR_DIFFERS) {
            ptrdiff_t left = weight0 + i, right = all - left, more = all_ones - ones;
            double score = (logs[left - ones] + logs[ones] - logs[left]) +
                           (logs[right - more] + logs[more] - logs[right]) - base;
            if (score > best.score) {
                best.score = score;
                best.at = i;
            }
        }
        ones += entries[i] >> shift & 1;
    }
    return best;
}

/* The spread of several classes: sums of squares and of products with all change by one class a row. `all` and `left`
 * are sums: what belongs to class k is in place 1 + k. `left` holds what is on the left from the start, and does so again
 * in the end. */
static inline kr_cut kr_cut_classes(const uint32_t *entries, int shift, const double *all, double *left,
                                    ptrdiff_t n_sums, const kr_range *range)
{
    kr_cut best = {KR_NO_CUT, -1, 0};
    double squares = range->squares, squares_left = 0, products = 0, weight = range->weight;
    double *of_class = left + 1;
    const double *all_of_class = all + 1;
    for (ptrdiff_t k = 1; range->weight0 > 0 && k < n_sums; k++) {
        squares_left += left[k] * left[k];
        products += left[k] * all[k];
    }
    double least = squares; /* what W times the sides' squares, over L R, must reach: rounding is left to kr_gini_score */
    for (ptrdiff_t i = 0; i <= range->last; i++) {
        if (i >= range->first && entries[i] & KR_DIFFERS) {
            double before = range->weight0 + (double)i, after = weight - before;
            double squares_right = squares - 2 * products + squares_left;
            double both = squares_left * after + squares_right * before;
            if (best.at < 0 || both * weight >= least * (before * after)) {
                double score = kr_gini_score(squares_left, squares_right, squares, before, weight);
                if (score > best.score) {
                    best.score = score;
                    best.at = i;
                    least = (squares + score) * (1 - 1e-14);
                }
            }
        }
        uint32_t k = (entries[i] & ~KR_DIFFERS) >> shift;
        squares_left += 2 * of_class[k] + 1;
        products += all_of_class[k];
        of_class[k] += 1;
    }
    for (ptrdiff_t i = 0; i <= range->last; i++)
        of_class[(entries[i] & ~KR_DIFFERS) >> shift] -= 1;
    return best;
}

#endif
