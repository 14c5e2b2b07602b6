/* One instruction-set level: KR_BODY for double, then for float. Included by levels.h only, once per level. */

#define KR_REAL double
#define KR_INT int64_t
#define KR_BITS uint64_t
#define KR_SUFFIX _d
#define KR_TABLE kr_simd_d
#define KR_MAX_R(a, b) KR_MAX_D(a, b)
#define KR_MANTISSA 52
#define KR_ONE_BITS 0x3ff0000000000000
#define KR_ROUND 0x1.8p52 /* adding it rounds to a whole number, which its low bits then hold */
#define KR_LN2_HIGH 0x1.62e42fefap-1
#define KR_LN2_LOW 0x1.cf79abc9e3b3ap-40
#define KR_EXP_LOW -708.0 /* below it exp is 0: results are never subnormal, which would slow every later use */
#define KR_TANH_HIGH 22.0 /* tanh rounds to 1 beyond */
/* q of exp(r) = 1 + r + r²q(r) on |r| ≤ ½ ln 2, minimax in relative error: 2.9e-16 */
#define KR_EXP_TERMS 9
#define KR_EXP_COEFFICIENTS                                                                                        \
    0x1.27079c3217152p-22, 0x1.72e928913dc73p-19, 0x1.a01b7c749599ep-16, 0x1.a0198d4c7e35bp-13,                    \
        0x1.6c16c0c818ae1p-10, 0x1.11111125b70cbp-7, 0x1.5555555589169p-5, 0x1.55555555507b5p-3,                   \
        0x1.ffffffffffed2p-2
#include "simd/vectors.h"

#define KR_REAL float
#define KR_INT int32_t
#define KR_BITS uint32_t
#define KR_SUFFIX _f
#define KR_TABLE kr_simd_f
#define KR_MAX_R(a, b) KR_MAX_F(a, b)
#define KR_MANTISSA 23
#define KR_ONE_BITS 0x3f800000
#define KR_ROUND 0x1.8p23f
#define KR_LN2_HIGH 0x1.62e4p-1f
#define KR_LN2_LOW 0x1.7f7d1cp-20f
#define KR_EXP_LOW -87.0f
#define KR_TANH_HIGH 10.0f
#define KR_EXP_TERMS 5 /* relative error 3.1e-9 */
#define KR_EXP_COEFFICIENTS 0.00138145986467f, 0.00836871687973f, 0.0416683880453f, 0.166665206317f, 0.499999934478f
#include "simd/vectors.h"
