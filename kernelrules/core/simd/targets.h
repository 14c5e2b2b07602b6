/* Parts of a file that are compiled for more than the build's own instructions. A header that has a body for each level
 * (see dispatch.h) writes
 *
 *     #if KR_X86
 *     KR_BEGIN("avx2,fma")
 *     #include "x_body.h"
 *     KR_END
 *     #endif
 *
 * Functions between the two may use these instructions, and may be called only where the processor has them.
 */
#ifndef KERNELRULES_TARGETS_H
#define KERNELRULES_TARGETS_H

#if defined(__x86_64__) && !defined(KR_SIMD_BASELINE_ONLY)
#define KR_X86 1
#else
#define KR_X86 0
#endif

#define KR_PRAGMA_(text) _Pragma(#text)
#define KR_PRAGMA(text) KR_PRAGMA_(text)
#if defined(__clang__)
#define KR_BEGIN(features) KR_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define KR_END KR_PRAGMA(clang attribute pop)
#else
#define KR_BEGIN(features) KR_PRAGMA(GCC push_options) KR_PRAGMA(GCC target(features))
#define KR_END KR_PRAGMA(GCC pop_options)
#endif

#endif
