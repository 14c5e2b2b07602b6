/* How far the class counts of two sides are apart, the score of the Gini index:
 *
 *     sum_k (left_k W - L all_k)² / (L R) = (W (R sum_k left_k² + L sum_k right_k²) - L R sum_k all_k²) / (L R)
 *
 * of L rows left, R right, W in all. The numerator is a whole number, computed without rounding, so equal splits have
 * equal scores in whatever order their rows came, and the running sums of a scan serve: a row costs the same whatever
 * the number of classes.
 */
#ifndef KERNELRULES_GINI_SCORE_H
#define KERNELRULES_GINI_SCORE_H

#include <stdint.h>

#define KR_MAX_DOUBLE_ROWS 9000.0     /* up to which doubles hold the numerator: fourth powers below 2^53 */
#define KR_MAX_SQUARED_ROWS 9.0e7    /* squares below 2^53: what the sums of squares may reach */

#ifdef __SIZEOF_INT128__
typedef unsigned __int128 kr_wide;

/* A fraction of whole numbers that is the same double for all fractions of the same value: rounding the numerator before
 * the division would part them. */
static inline double kr_fraction(kr_wide numerator, uint64_t denominator)
{
    uint64_t whole = (uint64_t)(numerator / denominator);
    return (double)whole + (double)(uint64_t)(numerator - (kr_wide)whole * denominator) / (double)denominator;
}
#endif

static inline double kr_gini_score(double squares_left, double squares_right, double squares, double left, double all)
{
    double right = all - left, sides = left * right;
#ifdef __SIZEOF_INT128__
    if (all > KR_MAX_DOUBLE_ROWS) {
        kr_wide both = (kr_wide)(uint64_t)squares_left * (uint64_t)right +
                       (kr_wide)(uint64_t)squares_right * (uint64_t)left;
        return kr_fraction(both * (uint64_t)all - (kr_wide)(uint64_t)squares * (uint64_t)sides, (uint64_t)sides);
    }
#endif
    return (all * (squares_left * right + squares_right * left) - squares * sides) / sides;
}

/* The same of two classes from the rows of one of them: 2 (of_left W - L of_all)² / (L R). */
static inline double kr_gini_score_of_two(double of_left, double of_all, double left, double all)
{
    double cross = of_left * all - left * of_all, sides = left * (all - left);
#ifdef __SIZEOF_INT128__
    if (all > KR_MAX_DOUBLE_ROWS) {
        uint64_t size = (uint64_t)(cross < 0 ? -cross : cross);
        return kr_fraction((kr_wide)size * size * 2, (uint64_t)sides);
    }
#endif
    return 2 * (cross * cross) / sides;
}

#endif
