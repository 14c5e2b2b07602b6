/* Vectorised kernels of the Gram builder and the SMO solver, dispatched at run time. Included by simd.pyx only.
 *
 * simd_body.h is the one source. It is compiled here for every instruction-set level and both float types, and each
 * result is one table of function pointers (simd_tables.h). kr_simd_best() asks the processor which level it has, so
 * the same binary runs everywhere: no -march=native.
 *
 *     level 0  baseline   what the compiler targets by default (SSE2 on x86-64, NEON on aarch64)
 *     level 1  v3         AVX2 + FMA
 *     level 2  v4         AVX-512 F, BW, DQ, VL
 *
 * Invariant: a level changes the rounding of a result by a few ulp, never its meaning; tests run each level against
 * libm. The generic vectors of gcc and clang are used, so a compiler must be one of the two.
 */
#ifndef KERNELRULES_SIMD_H
#define KERNELRULES_SIMD_H

#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) && !defined(__clang__) /* clang-cl calls itself clang only */
#error "kernelrules needs gcc or clang (on Windows: clang-cl): it uses their generic vectors"
#endif

#include "simd_tables.h"
#include "targets.h"

#if !defined(__clang__) /* clang shuffles by constants in the source only: there rows are turned one by one */
#define KR_SHUFFLE(a, b, order) __builtin_shuffle(a, b, order)
#endif

#define KR_PASTE_(a, b, c) a##_##b##c
#define KR_PASTE(a, b, c) KR_PASTE_(a, b, c)
#define KR_NAME(a) KR_PASTE(a, KR_LEVEL, KR_SUFFIX)

#if KR_X86
#include <immintrin.h>
#endif

#define KR_LEVEL base
#define KR_BYTES 16
#if defined(__clang__)
#define KR_STREAM(at, value) __builtin_nontemporal_store(value, (__typeof__(value) *)(at))
#elif KR_X86
#define KR_STREAM(at, value) _mm_stream_si128((__m128i *)(at), (__m128i)(value))
#else
#define KR_STREAM(at, value) KR_NAME(store)(at, value)
#endif
/* The larger of two vectors of doubles, and of as many floats, lane by lane; b where a is NaN. */
#define KR_LARGER(a, b)                                                                                            \
    ({                                                                                                             \
        __typeof__(a) a_ = (a), b_ = (b);                                                                          \
        __typeof__(a_ > b_) more_ = a_ > b_;                                                                       \
        (__typeof__(a_))((more_ & (__typeof__(more_))a_) | (~more_ & (__typeof__(more_))b_));                      \
    })
#define KR_MAX_D(a, b) KR_LARGER(a, b)
#define KR_MAX_F(a, b) KR_LARGER(a, b)
#if defined(__aarch64__) /* 32 vector registers */
#define KR_SLIVER_VECTORS 4
#else
#define KR_SLIVER_VECTORS 2
#endif
#include "simd_types.h"
#undef KR_BYTES
#undef KR_LEVEL
#undef KR_SLIVER_VECTORS

#if KR_X86
#define KR_SLIVER_VECTORS 3
KR_BEGIN("avx2,fma")
#if !defined(__clang__)
#undef KR_STREAM
#define KR_STREAM(at, value) _mm256_stream_si256((__m256i *)(at), (__m256i)(value))
#endif
#if !defined(_MSC_VER) /* there immintrin.h has only what the command line asks for */
#undef KR_MAX_D
#undef KR_MAX_F
#define KR_MAX_D(a, b) ((__typeof__(a))_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define KR_MAX_F(a, b) ((__typeof__(a))_mm_max_ps((__m128)(a), (__m128)(b)))
#endif
#define KR_LEVEL v3
#define KR_BYTES 32
#include "simd_types.h"
#undef KR_BYTES
#undef KR_LEVEL
KR_END
KR_BEGIN("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
#if !defined(__clang__)
#undef KR_STREAM
#define KR_STREAM(at, value) _mm512_stream_si512((__m512i *)(at), (__m512i)(value))
#endif
#if !defined(_MSC_VER)
#undef KR_MAX_D
#undef KR_MAX_F
#define KR_MAX_D(a, b) ((__typeof__(a))_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define KR_MAX_F(a, b) ((__typeof__(a))_mm256_max_ps((__m256)(a), (__m256)(b)))
#endif
#define KR_LEVEL v4
#define KR_BYTES 64
#include "simd_types.h"
#undef KR_BYTES
#undef KR_LEVEL
KR_END
#endif

/* Makes streamed rows visible to other threads: after the last one, before handing the result on. */
static inline void kr_stream_fence(void)
{
#if KR_X86
    _mm_sfence();
#endif
}

static inline int kr_simd_best(void)
{
#if KR_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 1;
#endif
    return 0;
}

#define KR_SIMD_PICK(TYPE, SUFFIX)                                                                                 \
    static inline const TYPE *kr_simd_pick##SUFFIX(int level)                                                      \
    {                                                                                                              \
        KR_SIMD_PICK_X86(SUFFIX)                                                                                   \
        (void)level;                                                                                               \
        return &table_base##SUFFIX;                                                                                \
    }
#if KR_X86
#define KR_SIMD_PICK_X86(SUFFIX)                                                                                   \
    if (level >= 2)                                                                                                \
        return &table_v4##SUFFIX;                                                                                  \
    if (level == 1)                                                                                                \
        return &table_v3##SUFFIX;
#else
#define KR_SIMD_PICK_X86(SUFFIX)
#endif
KR_SIMD_PICK(kr_simd_d, _d)
KR_SIMD_PICK(kr_simd_f, _f)

#endif
