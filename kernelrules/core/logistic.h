/* The logistic loss of many rows, its slopes, and the objective of its dual; compiled for the instruction-set levels of
 * simd.h. Included by coordinate.pyx only.
 *
 * exp: x = k ln2 + r, |r| ≤ ½ ln2, Taylor's series of r.   log: x = 2^k m, m near 1, the series of artanh in (m-1)/(m+1).
 * Both are within a few units of the last place where they are used: exp for x ≤ 0, log for x > 0.
 *
 * Arrays have KR_LANES · n_blocks numbers; rows that are there to fill the last block have weight 0. A sum has KR_LANES
 * parts, row i being added to part i mod KR_LANES.
 *
 * Invariant: the same bits on every level: there are no fused multiply-adds, and parts are sums in the order of rows.
 */
#ifndef KERNELRULES_LOGISTIC_H
#define KERNELRULES_LOGISTIC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KR_LANES 8
#define KR_FACTORS 1000 /* up to 2 each, of which a product does not overflow */
#define KR_ROUND 0x1.8p52 /* added to a number, leaves its whole part in the lowest bits */
#define KR_LN2_HIGH 0x1.62e42feep-1
#define KR_LN2_LOW 0x1.a39ef35793c76p-33
#define KR_INLINE static inline __attribute__((always_inline))

KR_INLINE uint64_t kr_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

KR_INLINE double kr_number(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

KR_INLINE double kr_exp_below(double x)
{
    x = x < -708.0 ? -708.0 : x;
    const double shifted = x * 0x1.71547652b82fep0 + KR_ROUND, k = shifted - KR_ROUND;
    const double r = (x - k * KR_LN2_HIGH) - k * KR_LN2_LOW;
    double sum = 1.0 / 479001600;
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
    return sum * kr_number((kr_bits(shifted) + 1023) << 52);
}

KR_INLINE double kr_log_near(double x)
{
    /* 2^k with m = x / 2^k between sqrt(½) and sqrt(2) */
    const uint64_t bits = kr_bits(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    const double k = kr_number((bits >> 52) | 0x4330000000000000u) - (0x1p52 + 1023);
    const double m = kr_number((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
    const double s = (m - 1) / (m + 1), z = s * s;
    double sum = 2.0 / 23;
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
    return k * KR_LN2_HIGH + (2 * s + (s * z * sum + k * KR_LN2_LOW));
}

KR_INLINE double kr_total(double *parts)
{
    for (int half = KR_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            parts[i] += parts[i + half];
    return parts[0];
}

/* r = y - p, and out: the risk, Σ w r f, and Σ w |r| of the rows with y = 1 and of those with y = 0. Where all weights
 * are `even` or 0, one logarithm serves many rows. */
KR_INLINE void kr_logistic_body(ptrdiff_t n_blocks, double even, const double *f, const double *y, const double *w,
                                double *r, double *out)
{
    double risk[KR_LANES] = {0}, along[KR_LANES] = {0}, rise[KR_LANES] = {0}, fall[KR_LANES] = {0}, factor[KR_LANES];
    for (int i = 0; i < KR_LANES; i++)
        factor[i] = 1;
    for (ptrdiff_t block = 0; block < n_blocks; block++, f += KR_LANES, y += KR_LANES, w += KR_LANES, r += KR_LANES) {
        for (int i = 0; i < KR_LANES; i++) {
            const double sign = 1 - 2 * y[i], z = sign * f[i]; /* the loss is log(1 + exp(z)) */
            const double e = kr_exp_below(z > 0 ? -z : z), whole = 1 + e;
            const double size = (z > 0 ? 1 : e) / whole, weighted = w[i] * size;
            if (even > 0) {
                risk[i] += w[i] * (z > 0 ? z : 0);
                factor[i] *= w[i] > 0 ? whole : 1;
            } else {
                risk[i] += w[i] * ((z > 0 ? z : 0) + kr_log_near(whole));
            }
            along[i] -= weighted * z;
            rise[i] += weighted * y[i];
            fall[i] += weighted * (1 - y[i]);
            r[i] = -sign * size;
        }
        if (even > 0 && (block % KR_FACTORS == KR_FACTORS - 1 || block == n_blocks - 1))
            for (int i = 0; i < KR_LANES; i++) {
                risk[i] += even * kr_log_near(factor[i]);
                factor[i] = 1;
            }
    }
    out[0] = kr_total(risk);
    out[1] = kr_total(along);
    out[2] = kr_total(rise);
    out[3] = kr_total(fall);
}

/* s = w r · (up where y = 1, down where y = 0), and out: Σ (s - before) of the rows where that is positive, and -Σ of
 * the others; before = s. */
KR_INLINE void kr_point_body(ptrdiff_t n_blocks, const double *y, const double *w, const double *r, double up, double down,
                             double *s, double *before, double *out)
{
    double rise[KR_LANES] = {0}, fall[KR_LANES] = {0};
    for (ptrdiff_t at = 0; at < n_blocks * KR_LANES; at += KR_LANES)
        for (int i = 0; i < KR_LANES; i++) {
            const double new = w[at + i] * r[at + i] * (y[at + i] > 0.5 ? up : down), change = new - before[at + i];
            s[at + i] = before[at + i] = new;
            rise[i] += change > 0 ? change : 0;
            fall[i] += change > 0 ? 0 : -change;
        }
    out[0] = kr_total(rise);
    out[1] = kr_total(fall);
}

/* u = w r, v = w max(|r| (1 - |r|), least); gives Σ v. */
KR_INLINE double kr_model_body(ptrdiff_t n_blocks, const double *w, const double *r, double least, double *u, double *v)
{
    double total[KR_LANES] = {0};
    for (ptrdiff_t at = 0; at < n_blocks * KR_LANES; at += KR_LANES)
        for (int i = 0; i < KR_LANES; i++) {
            const double size = r[at + i] < 0 ? -r[at + i] : r[at + i], bend = size * (1 - size);
            u[at + i] = w[at + i] * r[at + i];
            v[at + i] = w[at + i] * (bend > least ? bend : least);
            total[i] += v[at + i];
        }
    return kr_total(total);
}

/* Σ w · entropy of y - scale s / w, cut off at 0 and 1. */
KR_INLINE double kr_entropy_body(ptrdiff_t n_blocks, const double *y, const double *w, const double *s, double scale)
{
    double total[KR_LANES] = {0};
    for (ptrdiff_t block = 0; block < n_blocks; block++, y += KR_LANES, w += KR_LANES, s += KR_LANES)
        for (int i = 0; i < KR_LANES; i++) {
            const double weight = w[i] > 0 ? w[i] : 1;
            double q = y[i] - scale * s[i] / weight;
            q = q < 0 ? 0 : q > 1 ? 1 : q;
            const double p = 1 - q;
            total[i] -= w[i] * (q * kr_log_near(q > 1e-300 ? q : 1) + p * kr_log_near(p > 1e-300 ? p : 1));
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
    target static void point_##name(ptrdiff_t n, const double *y, const double *w, const double *r, double up,      \
                                    double down, double *s, double *before, double *out)                           \
    {                                                                                                              \
        kr_point_body(n, y, w, r, up, down, s, before, out);                                                       \
    }                                                                                                              \
    target static double model_##name(ptrdiff_t n, const double *w, const double *r, double least, double *u,       \
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
#if defined(__x86_64__) && !defined(KR_SIMD_BASELINE_ONLY)
KR_LOGISTIC_LEVEL(v3, __attribute__((target("avx2"))))
KR_LOGISTIC_LEVEL(v4, __attribute__((target("avx2,avx512f,avx512dq,avx512vl,prefer-vector-width=512"))))
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
