/* How far the class counts of two sides are apart, the score of the Gini index:
 *
 *     sum_k (left_k W - L all_k)² / (L R) = (W (R sum_k left_k² + L sum_k right_k²) - L R sum_k all_k²) / (L R)
 *
 * of L rows left, R right, W in all. The numerator is a whole number, computed without rounding, so equal splits have
 * equal scores in whatever order their rows came, and the running sums of a scan serve: a row costs the same whatever
 * the number of classes.
 */
#ifndef KERNELRULES_SPREAD_H
#define KERNELRULES_SPREAD_H

#include <stdint.h>

#define KR_EXACT_ROWS 9000.0     /* up to which doubles hold the numerator: fourth powers below 2^53 */
#define KR_MOST_COUNTED 9.0e7    /* squares below 2^53: what the sums of squares may reach */

static inline double kr_spread(double squares_left, double squares_right, double squares, double left, double all)
{
    double right = all - left, sides = left * right;
#ifdef __SIZEOF_INT128__
    if (all > KR_EXACT_ROWS) {
        typedef unsigned __int128 wide;
        wide both = (wide)(uint64_t)squares_left * (uint64_t)right + (wide)(uint64_t)squares_right * (uint64_t)left;
        return (double)(both * (uint64_t)all - (wide)(uint64_t)squares * (uint64_t)sides) / sides;
    }
#endif
    return (all * (squares_left * right + squares_right * left) - squares * sides) / sides;
}

#endif
