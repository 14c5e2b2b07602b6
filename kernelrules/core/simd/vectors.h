/* Vectors of one instruction-set level and one float type, and functions of them; then KR_BODY, which is written with
 * them. Included by types.h only, which defines KR_REAL and the constants of that type; levels.h defines KR_BYTES. Every
 * name carries its level and type.
 *
 * exp:  x = k ln2 + r, |r| ≤ ½ ln2;  exp(x) = 2^k (1 + r + r²q(r)), with 2^k assembled in the bits of the exponent.
 *       Exactly 1 at 0, at most 1 below 0, and 0 below KR_EXP_LOW.
 * tanh: from expm1(2|x|) = 2^k (r + r²q(r)) + (2^k - 1), so that small arguments keep their digits.
 */
#define VEC KR_NAME(vec)
#define IVEC KR_NAME(ivec)
#define UVEC KR_NAME(uvec)
#define BVEC KR_NAME(bvec)
#define LANES ((int)(KR_BYTES / sizeof(KR_REAL)))

typedef KR_REAL VEC __attribute__((vector_size(KR_BYTES)));
typedef KR_INT IVEC __attribute__((vector_size(KR_BYTES))); /* masks, as comparisons give them */
typedef KR_BITS BVEC __attribute__((vector_size(KR_BYTES))); /* bits: unsigned, so that shifts and sums may wrap */
/* The same at any address: what loads and stores go through. */
typedef KR_REAL UVEC __attribute__((vector_size(KR_BYTES), aligned(sizeof(KR_REAL)), may_alias));

static inline VEC KR_NAME(load)(const KR_REAL *at) { return *(const UVEC *)at; }
static inline void KR_NAME(store)(KR_REAL *at, VEC v) { *(UVEC *)at = v; }
static inline VEC KR_NAME(splat)(KR_REAL a) { return a - (VEC){0}; }
static inline VEC KR_NAME(only)(IVEC mask, VEC v) { return (VEC)(mask & (IVEC)v); }
static inline VEC KR_NAME(magnitude)(VEC v) { return (VEC)((BVEC)v & ((BVEC){0} + (KR_BITS)-1 / 2)); }

/* exp(x) = 2^k (1 + e): gives e and 2^k. Exact for the k that a float's exponent holds. */
static inline VEC KR_NAME(exp_parts)(VEC x, VEC *power_of_two)
{
    static const KR_REAL q[KR_EXP_TERMS] = {KR_EXP_COEFFICIENTS};
    const KR_REAL log2_e = (KR_REAL)1.4426950408889634;
    VEC shifted = x * log2_e + KR_ROUND;
    VEC k = shifted - KR_ROUND;
    VEC r = (x - k * KR_LN2_HIGH) - k * KR_LN2_LOW;
    VEC sum = KR_NAME(splat)(q[0]);
    for (int i = 1; i < KR_EXP_TERMS; i++)
        sum = sum * r + q[i];
    *power_of_two = (VEC)(((BVEC)shifted << KR_MANTISSA) + (KR_BITS)KR_ONE_BITS);
    return r + r * r * sum;
}

/* exp for x ≤ 0. */
static inline VEC KR_NAME(exp_negative)(VEC x)
{
    VEC scale;
    VEC e = KR_NAME(exp_parts)(x, &scale);
    return KR_NAME(only)(x > KR_EXP_LOW, (1 + e) * scale);
}

static inline VEC KR_NAME(tanh)(VEC x)
{
    VEC size = KR_NAME(magnitude)(x), scale;
    IVEC moderate = size < KR_TANH_HIGH;
    size = (VEC)((moderate & (IVEC)size) | (~moderate & (IVEC)KR_NAME(splat)(KR_TANH_HIGH)));
    VEC e = KR_NAME(exp_parts)(2 * size, &scale);
    VEC expm1 = scale * e + (scale - 1);
    VEC t = expm1 / (expm1 + 2);
    return (VEC)((IVEC)t | ((IVEC)x & ~(IVEC)KR_NAME(magnitude)(x)));
}

/* base^degree by repeated squaring; degree 0 gives 1. */
static inline VEC KR_NAME(power)(VEC base, int degree)
{
    VEC result = KR_NAME(splat)(1);
    for (; degree > 0; degree >>= 1) {
        if (degree & 1)
            result *= base;
        base *= base;
    }
    return result;
}

#include KR_BODY

#undef VEC
#undef IVEC
#undef UVEC
#undef BVEC
#undef KR_BITS
#undef LANES
#undef KR_MAX_R
#undef KR_REAL
#undef KR_INT
#undef KR_SUFFIX
#undef KR_TABLE
#undef KR_MANTISSA
#undef KR_ONE_BITS
#undef KR_ROUND
#undef KR_LN2_HIGH
#undef KR_LN2_LOW
#undef KR_EXP_LOW
#undef KR_TANH_HIGH
#undef KR_EXP_TERMS
#undef KR_EXP_COEFFICIENTS
