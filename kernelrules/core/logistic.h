/* The logistic loss of many rows, its slopes, and the objective of its dual; compiled for the instruction-set levels of
 * simd.h. Included by coordinate.pyx only.
 *
 * exp   x = k ln2 + r, |r| ≤ ½ ln2, Taylor's series of r
 * log   x = 2^k m, m between sqrt(½) and sqrt(2), the series of artanh in (m - 1) / (m + 1)
 *
 * Both are within a few units of the last place where they are used: exp for x ≤ 0, log for x > 0.
 *
 * Arrays have KR_LANES numbers for every block, and rows that only fill the last one have weight 0. A sum has KR_LANES
 * parts, row i being added to part i mod KR_LANES. Vectors are as long as the widest level's: on others the compiler
 * makes several of each, so that this is written once.
 *
 * Invariant: the same bits on every level: there are no fused multiply-adds, and parts are sums in the order of rows.
 */
#ifndef KERNELRULES_LOGISTIC_H
#define KERNELRULES_LOGISTIC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "targets.h"

#define KR_LANES 8
#define KR_FACTORS 1000   /* up to 2 each, of which a product does not overflow */
#define KR_ROUND 0x1.8p52 /* added to a number, leaves its whole part in the lowest bits */
#define KR_LN2_HIGH 0x1.62e42feep-1
#define KR_LN2_LOW 0x1.a39ef35793c76p-33
#define KR_SQRT_HALF 0x3fe6a09e667f3bcd /* its bits */
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

KR_INLINE kr_lanes kr_all(double x)
{
    return x - (kr_lanes){0};
}

/* a where the mask is set, otherwise b. */
KR_INLINE kr_lanes kr_choose(kr_masks mask, kr_lanes a, kr_lanes b)
{
    return (kr_lanes)((mask & (kr_masks)a) | (~mask & (kr_masks)b));
}

KR_INLINE kr_lanes kr_exp_below(kr_lanes x)
{
    x = kr_choose(x < -708.0, kr_all(-708.0), x);
    const kr_lanes shifted = x * 0x1.71547652b82fep0 + KR_ROUND, k = shifted - KR_ROUND;
    const kr_lanes r = (x - k * KR_LN2_HIGH) - k * KR_LN2_LOW;
    kr_lanes sum = kr_all(1.0 / 479001600);
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
    kr_lanes sum = kr_all(2.0 / 23);
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

KR_INLINE double kr_total(kr_lanes parts)
{
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}

/* r = y - p, and out: the risk, Σ w r f, and Σ w |r| of the rows with y = 1 and of those with y = 0. Where all weights
 * are `even` or 0, one logarithm serves many rows. */
KR_INLINE void kr_logistic_body(ptrdiff_t n_blocks, double even, const double *f, const double *y, const double *w,
                                double *r, double *out)
{
    const kr_lanes none = kr_all(0), one = kr_all(1);
    kr_lanes risk = none, along = none, rise = none, fall = none, factor = one;
    for (ptrdiff_t block = 0; block < n_blocks; block++, f += KR_LANES, y += KR_LANES, w += KR_LANES, r += KR_LANES) {
        const kr_lanes labels = kr_load(y), weights = kr_load(w), sign = 1.0 - 2.0 * labels;
        const kr_lanes z = sign * kr_load(f); /* the loss is log(1 + exp(z)) */
        const kr_masks above = z > 0.0;
        const kr_lanes e = kr_exp_below(kr_choose(above, -z, z)), whole = 1.0 + e;
        const kr_lanes size = kr_choose(above, one, e) / whole, weighted = weights * size;
        if (even > 0) {
            risk += weights * kr_choose(above, z, none);
            factor *= kr_choose(weights > 0.0, whole, one);
            if (block % KR_FACTORS == KR_FACTORS - 1 || block == n_blocks - 1) {
                risk += even * kr_log(factor);
                factor = one;
            }
        } else {
            risk += weights * (kr_choose(above, z, none) + kr_log(whole));
        }
        along -= weighted * z;
        rise += weighted * labels;
        fall += weighted * (1.0 - labels);
        kr_store(r, -sign * size);
    }
    out[0] = kr_total(risk);
    out[1] = kr_total(along);
    out[2] = kr_total(rise);
    out[3] = kr_total(fall);
}

/* s = w r · (up where y = 1, down where y = 0), and out: Σ (s - before) of the rows where that is positive, and -Σ of
 * the others; before = s. */
KR_INLINE void kr_point_body(ptrdiff_t n_blocks, const double *y, const double *w, const double *r, double up,
                             double down, double *s, double *before, double *out)
{
    const kr_lanes none = kr_all(0);
    kr_lanes rise = none, fall = none;
    for (ptrdiff_t i = 0; i < n_blocks * KR_LANES; i += KR_LANES) {
        const kr_lanes scale = kr_choose(kr_load(y + i) > 0.5, kr_all(up), kr_all(down));
        const kr_lanes point = kr_load(w + i) * kr_load(r + i) * scale, change = point - kr_load(before + i);
        rise += kr_choose(change > 0.0, change, none);
        fall -= kr_choose(change > 0.0, none, change);
        kr_store(s + i, point);
        kr_store(before + i, point);
    }
    out[0] = kr_total(rise);
    out[1] = kr_total(fall);
}

/* u = w r, v = w max(|r| (1 - |r|), least); gives Σ v. */
KR_INLINE double kr_model_body(ptrdiff_t n_blocks, const double *w, const double *r, double least, double *u, double *v)
{
    kr_lanes total = kr_all(0);
    for (ptrdiff_t i = 0; i < n_blocks * KR_LANES; i += KR_LANES) {
        const kr_lanes slope = kr_load(r + i), weights = kr_load(w + i);
        const kr_lanes size = kr_choose(slope < 0.0, -slope, slope), bend = size * (1.0 - size);
        const kr_lanes curvature = weights * kr_choose(bend > least, bend, kr_all(least));
        kr_store(u + i, weights * slope);
        kr_store(v + i, curvature);
        total += curvature;
    }
    return kr_total(total);
}

/* Σ w · entropy of y - scale s / w, cut off at 0 and 1. */
KR_INLINE double kr_entropy_body(ptrdiff_t n_blocks, const double *y, const double *w, const double *s, double scale)
{
    const kr_lanes none = kr_all(0), one = kr_all(1);
    kr_lanes total = none;
    for (ptrdiff_t i = 0; i < n_blocks * KR_LANES; i += KR_LANES) {
        const kr_lanes weights = kr_load(w + i);
        kr_lanes q = kr_load(y + i) - scale * kr_load(s + i) / kr_choose(weights > 0.0, weights, one);
        q = kr_choose(q < 0.0, none, kr_choose(q > 1.0, one, q));
        const kr_lanes p = 1.0 - q;
        total -= weights * (q * kr_log(kr_choose(q > 1e-300, q, one)) + p * kr_log(kr_choose(p > 1e-300, p, one)));
    }
    return kr_total(total);
}

#define KR_LOGISTIC_LEVEL(name, target)                                                                            \
    target static void logistic_##name(ptrdiff_t n, double even, const double *f, const double *y, const double *w, \
                                       double *r, double *out)                                                     \
    {                                                                                                              \
        if (even > 0)                                                                                              \
            kr_logistic_body(n, even, f, y, w, r, out);                                                            \
        else                                                                                                       \
            kr_logistic_body(n, 0, f, y, w, r, out);                                                               \
    }                                                                                                              \
    target static void point_##name(ptrdiff_t n, const double *y, const double *w, const double *r, double up,     \
                                    double down, double *s, double *before, double *out)                           \
    {                                                                                                              \
        kr_point_body(n, y, w, r, up, down, s, before, out);                                                       \
    }                                                                                                              \
    target static double model_##name(ptrdiff_t n, const double *w, const double *r, double least, double *u,      \
                                      double *v)                                                                   \
    {                                                                                                              \
        return kr_model_body(n, w, r, least, u, v);                                                                \
    }                                                                                                              \
    target static double entropy_##name(ptrdiff_t n, const double *y, const double *w, const double *s,            \
                                        double scale)                                                              \
    {                                                                                                              \
        return kr_entropy_body(n, y, w, s, scale);                                                                 \
    }

KR_LOGISTIC_LEVEL(base, )
#if KR_X86
KR_LOGISTIC_LEVEL(v3, __attribute__((target("avx2"))))
KR_LOGISTIC_LEVEL(v4, __attribute__((target("avx2,avx512f,avx512dq,avx512vl"))))
#define KR_LOGISTIC_PICK(level, name) ((level) >= 2 ? name##_v4 : (level) >= 1 ? name##_v3 : name##_base)
#else
#define KR_LOGISTIC_PICK(level, name) ((void)(level), name##_base)
#endif

static inline void kr_logistic(int level, ptrdiff_t n_blocks, double even, const double *f, const double *y,
                               const double *w, double *r, double *out)
{
    KR_LOGISTIC_PICK(level, logistic)(n_blocks, even, f, y, w, r, out);
}

static inline void kr_point(int level, ptrdiff_t n_blocks, const double *y, const double *w, const double *r, double up,
                            double down, double *s, double *before, double *out)
{
    KR_LOGISTIC_PICK(level, point)(n_blocks, y, w, r, up, down, s, before, out);
}

static inline double kr_model(int level, ptrdiff_t n_blocks, const double *w, const double *r, double least, double *u,
                              double *v)
{
    return KR_LOGISTIC_PICK(level, model)(n_blocks, w, r, least, u, v);
}

static inline double kr_entropy(int level, ptrdiff_t n_blocks, const double *y, const double *w, const double *s,
                                double scale)
{
    return KR_LOGISTIC_PICK(level, entropy)(n_blocks, y, w, s, scale);
}

#endif
