/* The logistic loss, its gradient and its dual objective, several rows at a time; compiled for the instruction-set
 * levels of simd/dispatch.h. Included by l1_solver.pyx only.
 *
 * exp   x = k ln2 + r, |r| ≤ ½ ln2, Taylor series in r
 * log   x = 2^k m, sqrt(½) ≤ m < sqrt(2), series of artanh in (m - 1) / (m + 1)
 *
 * Both are accurate to a few units in the last place on the ranges used here: exp for x ≤ 0, log for x > 0.
 *
 * Arrays have KR_LANES entries per block; rows that pad the last block have weight 0. A sum has KR_LANES partial sums:
 * row i is added to partial sum i mod KR_LANES. Vectors have the width of the widest level; for narrower levels the
 * compiler splits them, so that the code is written once.
 *
 * Invariant: the result has the same bits on every level. There are no fused multiply-adds, and each partial sum adds
 * rows in ascending order.
 */
#ifndef KERNELRULES_LOGISTIC_H
#define KERNELRULES_LOGISTIC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simd/targets.h"

#define KR_LANES 8
#define KR_MAX_FACTORS 1000   /* factors of at most 2 whose product does not overflow */
#define KR_ROUND 0x1.8p52 /* added to a number, leaves its integer part in the lowest bits */
#define KR_LN2_HIGH 0x1.62e42feep-1
#define KR_LN2_LOW 0x1.a39ef35793c76p-33
#define KR_SQRT_HALF 0x3fe6a09e667f3bcd /* the bits of sqrt(½) */
#define KR_INLINE static inline __attribute__((always_inline))

typedef double kr_lanes __attribute__((vector_size(KR_LANES * sizeof(double)), aligned(sizeof(double)), may_alias));
typedef int64_t kr_masks __attribute__((vector_size(KR_LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

KR_INLINE kr_lanes kr_load(const double *at)
{
    return *(const kr_lanes *)at;
}

KR_INLINE void kr_store(double *at, kr_lanes x)
{
    *(kr_lanes *)at = x;
}

KR_INLINE kr_lanes kr_broadcast(double x)
{
    return x - (kr_lanes){0};
}

/* a where the mask is set, otherwise b. */
KR_INLINE kr_lanes kr_select(kr_masks mask, kr_lanes a, kr_lanes b)
{
    return (kr_lanes)((mask & (kr_masks)a) | (~mask & (kr_masks)b));
}

KR_INLINE kr_lanes kr_exp_nonpositive(kr_lanes x)
{
    x = kr_select(x < -708.0, kr_broadcast(-708.0), x);
    const kr_lanes shifted = x * 0x1.71547652b82fep0 + KR_ROUND, k = shifted - KR_ROUND;
    const kr_lanes r = (x - k * KR_LN2_HIGH) - k * KR_LN2_LOW;
    kr_lanes sum = kr_broadcast(1.0 / 479001600);
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    return sum * (kr_lanes)(((kr_masks)shifted + 1023) << 52);
}

KR_INLINE kr_lanes kr_log(kr_lanes x)
{
    const kr_masks bits = (kr_masks)x + (0x3ff0000000000000 - KR_SQRT_HALF);
    const kr_lanes k = (kr_lanes)((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    const kr_lanes m = (kr_lanes)((bits & 0x000fffffffffffff) + KR_SQRT_HALF);
    const kr_lanes s = (m - 1.0) / (m + 1.0), z = s * s;
    kr_lanes sum = kr_broadcast(2.0 / 23);
    sum = sum * z + 2.0 / 21;
    sum = sum * z + 2.0 / 19;
    sum = sum * z + 2.0 / 17;
    sum = sum * z + 2.0 / 15;
    sum = sum * z + 2.0 / 13;
    sum = sum * z + 2.0 / 11;
    sum = sum * z + 2.0 / 9;
    sum = sum * z + 2.0 / 7;
    sum = sum * z + 2.0 / 5;
    sum = sum * z + 2.0 / 3;
    return k * KR_LN2_HIGH + (2.0 * s + (s * z * sum + k * KR_LN2_LOW));
}

KR_INLINE double kr_sum_lanes(kr_lanes parts)
{
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

/* r = y - p, and out = (risk, Σ w r f, Σ w |r| over rows with y = 1, Σ w |r| over rows with y = 0). If every weight is
 * `common_weight` or 0, one logarithm serves KR_MAX_FACTORS blocks; `common_weight` is 0 if weights differ. */
KR_INLINE void kr_logistic_body(ptrdiff_t n_blocks, double common_weight, const double *f, const double *y,
                                const double *w, double *r, double *out)
{
    const kr_lanes zero = kr_broadcast(0), one = kr_broadcast(1);
    kr_lanes risk = zero, along = zero, rise = zero, fall = zero, factor = one;
    for (ptrdiff_t block = 0; block < n_blocks; block++, f += KR_LANES, y += KR_LANES, w += KR_LANES, r += KR_LANES) {
        const kr_lanes labels = kr_load(y), weights = kr_load(w), sign = 1.0 - 2.0 * labels;
        const kr_lanes z = sign * kr_load(f); /* the loss is log(1 + exp(z)) */
        const kr_masks above = z > 0.0;
        const kr_lanes e = kr_exp_nonpositive(kr_select(above, -z, z)), whole = 1.0 + e;
        const kr_lanes size = kr_select(above, one, e) / whole, weighted = weights * size;
        if (common_weight > 0) {
            risk += weights * kr_select(above, z, zero);
            factor *= kr_select(weights > 0.0, whole, one);
            if (block % KR_MAX_FACTORS == KR_MAX_FACTORS - 1 || block == n_blocks - 1) {
                risk += common_weight * kr_log(factor);
                factor = one;
            }
        } else {
            risk += weights * (kr_select(above, z, zero) + kr_log(whole));
        }
        along -= weighted * z;
        rise += weighted * labels;
        fall += weighted * (1.0 - labels);
        kr_store(r, -sign * size);
    }
    out[0] = kr_sum_lanes(risk);
    out[1] = kr_sum_lanes(along);
    out[2] = kr_sum_lanes(rise);
    out[3] = kr_sum_lanes(fall);
}

/* s = w r · up for rows with y = 1, w r · down for rows with y = 0. out = (sum of the positive changes s - before, minus
 * the sum of the negative ones); afterwards before = s. */
KR_INLINE void kr_dual_point_body(ptrdiff_t n_blocks, const double *y, const double *w, const double *r, double up,
                             double down, double *s, double *before, double *out)
{
    const kr_lanes zero = kr_broadcast(0);
    kr_lanes rise = zero, fall = zero;
    for (ptrdiff_t i = 0; i < n_blocks * KR_LANES; i += KR_LANES) {
        const kr_lanes scale = kr_select(kr_load(y + i) > 0.5, kr_broadcast(up), kr_broadcast(down));
        const kr_lanes point = kr_load(w + i) * kr_load(r + i) * scale, change = point - kr_load(before + i);
        rise += kr_select(change > 0.0, change, zero);
        fall -= kr_select(change > 0.0, zero, change);
        kr_store(s + i, point);
        kr_store(before + i, point);
    }
    out[0] = kr_sum_lanes(rise);
    out[1] = kr_sum_lanes(fall);
}

/* u = w r, v = w max(|r| (1 - |r|), min_curvature); returns Σ v. */
KR_INLINE double kr_quadratic_model_body(ptrdiff_t n_blocks, const double *w, const double *r, double min_curvature,
                                         double *u, double *v)
{
    kr_lanes total = kr_broadcast(0);
    for (ptrdiff_t i = 0; i < n_blocks * KR_LANES; i += KR_LANES) {
        const kr_lanes slope = kr_load(r + i), weights = kr_load(w + i);
        const kr_lanes size = kr_select(slope < 0.0, -slope, slope), bend = size * (1.0 - size);
        const kr_lanes curvature = weights * kr_select(bend > min_curvature, bend, kr_broadcast(min_curvature));
        kr_store(u + i, weights * slope);
        kr_store(v + i, curvature);
        total += curvature;
    }
    return kr_sum_lanes(total);
}

/* Σ w · entropy(q), q = y - scale s / w clipped to [0, 1]. */
KR_INLINE double kr_entropy_body(ptrdiff_t n_blocks, const double *y, const double *w, const double *s, double scale)
{
    const kr_lanes zero = kr_broadcast(0), one = kr_broadcast(1);
    kr_lanes total = zero;
    for (ptrdiff_t i = 0; i < n_blocks * KR_LANES; i += KR_LANES) {
        const kr_lanes weights = kr_load(w + i);
        kr_lanes q = kr_load(y + i) - scale * kr_load(s + i) / kr_select(weights > 0.0, weights, one);
        q = kr_select(q < 0.0, zero, kr_select(q > 1.0, one, q));
        const kr_lanes p = 1.0 - q;
        total -= weights * (q * kr_log(kr_select(q > 1e-300, q, one)) + p * kr_log(kr_select(p > 1e-300, p, one)));
    }
    return kr_sum_lanes(total);
}

#define KR_LOGISTIC_LEVEL(name, target)                                                                              \
    target static void logistic_##name(ptrdiff_t n, double common_weight, const double *f, const double *y,          \
                                       const double *w, double *r, double *out)                                      \
    {                                                                                                                \
        if (common_weight > 0)                                                                                       \
            kr_logistic_body(n, common_weight, f, y, w, r, out);                                                     \
        else                                                                                                         \
            kr_logistic_body(n, 0, f, y, w, r, out);                                                                 \
    }                                                                                                                \
    target static void dual_point_##name(ptrdiff_t n, const double *y, const double *w, const double *r, double up,  \
                                         double down, double *s, double *before, double *out)                        \
    {                                                                                                                \
        kr_dual_point_body(n, y, w, r, up, down, s, before, out);                                                    \
    }                                                                                                                \
    target static double quadratic_model_##name(ptrdiff_t n, const double *w, const double *r, double min_curvature, \
                                                double *u, double *v)                                                \
    {                                                                                                                \
        return kr_quadratic_model_body(n, w, r, min_curvature, u, v);                                                \
    }                                                                                                                \
    target static double entropy_##name(ptrdiff_t n, const double *y, const double *w, const double *s, double scale)\
    {                                                                                                                \
        return kr_entropy_body(n, y, w, s, scale);                                                                   \
    }

KR_LOGISTIC_LEVEL(base, )
#if KR_X86
KR_LOGISTIC_LEVEL(v3, __attribute__((target("avx2"))))
KR_LOGISTIC_LEVEL(v4, __attribute__((target("avx2,avx512f,avx512dq,avx512vl"))))
#define KR_LOGISTIC_SELECT(level, name) ((level) >= 2 ? name##_v4 : (level) >= 1 ? name##_v3 : name##_base)
#else
#define KR_LOGISTIC_SELECT(level, name) ((void)(level), name##_base)
#endif

static inline void kr_logistic(int level, ptrdiff_t n_blocks, double common_weight, const double *f, const double *y,
                               const double *w, double *r, double *out)
{
    KR_LOGISTIC_SELECT(level, logistic)(n_blocks, common_weight, f, y, w, r, out);
}

static inline void kr_dual_point(int level, ptrdiff_t n_blocks, const double *y, const double *w, const double *r,
                                 double up, double down, double *s, double *before, double *out)
{
    KR_LOGISTIC_SELECT(level, dual_point)(n_blocks, y, w, r, up, down, s, before, out);
}

static inline double kr_quadratic_model(int level, ptrdiff_t n_blocks, const double *w, const double *r,
                                        double min_curvature, double *u, double *v)
{
    return KR_LOGISTIC_SELECT(level, quadratic_model)(n_blocks, w, r, min_curvature, u, v);
}

static inline double kr_entropy(int level, ptrdiff_t n_blocks, const double *y, const double *w, const double *s,
                                double scale)
{
    return KR_LOGISTIC_SELECT(level, entropy)(n_blocks, y, w, s, scale);
}

#endif
