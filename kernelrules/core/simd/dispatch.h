/* The vectorised passes of body.h, dispatched at run time: one table of function pointers (tables.h) per
 * instruction-set level and float type. Included by dispatch.pyx only.
 *
 * Invariant: a level changes the rounding of a result by a few ulp, never its meaning; tests run each level against
 * libm.
 */
#ifndef KERNELRULES_SIMD_H
#define KERNELRULES_SIMD_H

#include "simd/tables.h"

#define KR_BODY "simd/body.h"
#include "simd/levels.h"

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

static inline const kr_simd_d *kr_simd_pick_d(int level) { return KR_AT_LEVEL(table, _d, level); }
static inline const kr_simd_f *kr_simd_pick_f(int level) { return KR_AT_LEVEL(table, _f, level); }

#endif
