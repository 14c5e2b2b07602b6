/* Forward substitution with a lower triangular matrix of few diagonals, for many columns at once; compiled for the
 * instruction-set levels of simd.h. Included by sweep.pyx only.
 *
 *     L z = b,   z_i = (b_i - Σ_{k=1..width} L_{i,i-k} z_{i-k}) / L_ii
 *
 * on KR_SWEEP_COLUMNS columns side by side, of which only the sums of z² are kept. Rows are found KR_SWEEP_ROWS at a
 * time: what they need of earlier rows is a product that stays in registers, with the last rows of z in a window that
 * stays in the first-level cache; what they need of one another comes after.
 *
 * Packed, L has for every KR_SWEEP_ROWS rows i: L[i+r][i-width+k] at k · KR_SWEEP_ROWS + r, zero where that is outside
 * the band; then the triangle among themselves, L[i+r][i+c] at r · KR_SWEEP_ROWS + c, with 1 / L[i+r][i+r] on its
 * diagonal. Rows past the end are those of the identity.
 */
#ifndef KERNELRULES_SWEEP_H
#define KERNELRULES_SWEEP_H

#include <stddef.h>
#include <string.h>

#include "targets.h"

#define KR_SWEEP_ROWS 4
#define KR_SWEEP_COLUMNS 32
#define KR_SWEEP_SPAN 32 /* rows of z beyond the band that the window holds, a multiple of KR_SWEEP_ROWS */

#define KR_SWEEP_PASTE_(a, b) a##_##b
#define KR_SWEEP_PASTE(a, b) KR_SWEEP_PASTE_(a, b)
#define KR_SWEEP_NAME(a) KR_SWEEP_PASTE(a, KR_SWEEP_LEVEL)

#define KR_SWEEP_LEVEL base
#define KR_SWEEP_BYTES 16
#define KR_SWEEP_VECTORS 2
#include "sweep_body.h"
#undef KR_SWEEP_LEVEL
#undef KR_SWEEP_BYTES
#undef KR_SWEEP_VECTORS

#if KR_X86
KR_BEGIN("avx2,fma")
#define KR_SWEEP_LEVEL v3
#define KR_SWEEP_BYTES 32
#define KR_SWEEP_VECTORS 2
#include "sweep_body.h"
#undef KR_SWEEP_LEVEL
#undef KR_SWEEP_BYTES
#undef KR_SWEEP_VECTORS
KR_END
KR_BEGIN("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
#define KR_SWEEP_LEVEL v4
#define KR_SWEEP_BYTES 64
#define KR_SWEEP_VECTORS 4
#include "sweep_body.h"
#undef KR_SWEEP_LEVEL
#undef KR_SWEEP_BYTES
#undef KR_SWEEP_VECTORS
KR_END
#define KR_SWEEP_PICK(level) ((level) >= 2 ? sweep_v4 : (level) >= 1 ? sweep_v3 : sweep_base)
#else
#define KR_SWEEP_PICK(level) ((void)(level), sweep_base)
#endif

/* total[c] = sum of z² over the n_blocks · KR_SWEEP_ROWS rows of column c of `right`. `window` has room for
 * (width + KR_SWEEP_SPAN) · KR_SWEEP_COLUMNS numbers. */
static inline void kr_sweep(int level, const double *packed, ptrdiff_t width, const double *right, ptrdiff_t n_blocks,
                            double *window, double *total)
{
    KR_SWEEP_PICK(level)(packed, width, right, n_blocks, window, total);
}

#endif
