/* Compiles one source, KR_BODY, for every instruction-set level and both float types:
 *
 *     #define KR_BODY "folder/x_body.h"
 *     #include "simd/levels.h"
 *
 *     level 0  baseline   what the compiler targets by default (SSE2 on x86-64, NEON on AArch64)
 *     level 1  v3         AVX2 + FMA
 *     level 2  v4         AVX-512 F, BW, DQ, VL
 *
 * KR_BODY names its functions KR_NAME(f); KR_AT_LEVEL(f, _d, level) is then the address of f for double. The processor's
 * level is chosen at run time (cpu.pyx), so the same binary runs everywhere: no -march=native.
 */
#ifndef KERNELRULES_LEVELS_H
#define KERNELRULES_LEVELS_H

#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) && !defined(__clang__) /* clang-cl calls itself clang only */
#error "kernelrules needs gcc or clang (on Windows: clang-cl): it uses their generic vectors"
#endif

#include "simd/targets.h"

#if !defined(__clang__) /* clang shuffles by constants in the source only: there entries are transposed one by one */
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
#include "simd/types.h"
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
#include "simd/types.h"
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
#include "simd/types.h"
#undef KR_BYTES
#undef KR_LEVEL
KR_END
#endif

#if KR_X86
#define KR_AT_LEVEL(name, suffix, level)                                                                           \
    ((level) >= 2 ? &name##_v4##suffix : (level) == 1 ? &name##_v3##suffix : &name##_base##suffix)
#else
#define KR_AT_LEVEL(name, suffix, level) ((void)(level), &name##_base##suffix)
#endif

#endif
