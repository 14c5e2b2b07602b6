/* Forward substitution with a lower triangular matrix of few diagonals, for many columns at once; compiled for the
 * instruction-set levels of dispatch.h. Included by banded.pyx only.
 *
 *     L z = b,   z_i = (b_i - Σ_{k=1..width} L_{i,i-k} z_{i-k}) / L_ii
 *
 * on KR_BAND_COLUMNS columns side by side, of which only the sums of z² are kept. Rows are found KR_BAND_ROWS at a
 * time: what they need of earlier rows is a product that stays in registers, with the last rows of z in a window that
 * stays in the first-level cache; what they need of one another comes after.
 *
 * Packed, L has for every KR_BAND_ROWS rows i: L[i+r][i-width+k] at k · KR_BAND_ROWS + r, zero where that is outside
 * the band; then the triangle among themselves, L[i+r][i+c] at r · KR_BAND_ROWS + c, with 1 / L[i+r][i+r] on its
 * diagonal. Rows past the end are those of the identity.
 */
#ifndef KERNELRULES_BANDED_SOLVE_H
#define KERNELRULES_BANDED_SOLVE_H

#include <stddef.h>
#include <string.h>

#include "simd/targets.h"

#define KR_BAND_ROWS 4
#define KR_BAND_COLUMNS 32
#define KR_BAND_WINDOW 32 /* rows of z beyond the band that the window holds, a multiple of KR_BAND_ROWS */

#define KR_BAND_PASTE_(a, b) a##_##b
#define KR_BAND_PASTE(a, b) KR_BAND_PASTE_(a, b)
#define KR_BAND_NAME(a) KR_BAND_PASTE(a, KR_BAND_LEVEL)

#define KR_BAND_LEVEL base
#define KR_BAND_BYTES 16
#define KR_BAND_VECTORS 2
#include "linalg/banded_solve_body.h"
#undef KR_BAND_LEVEL
#undef KR_BAND_BYTES
#undef KR_BAND_VECTORS

#if KR_X86
KR_BEGIN("avx2,fma")
#define KR_BAND_LEVEL v3
#define KR_BAND_BYTES 32
#define KR_BAND_VECTORS 2
#include "linalg/banded_solve_body.h"
#undef KR_BAND_LEVEL
#undef KR_BAND_BYTES
#undef KR_BAND_VECTORS
KR_END
KR_BEGIN("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")
#define KR_BAND_LEVEL v4
#define KR_BAND_BYTES 64
#define KR_BAND_VECTORS 4
#include "linalg/banded_solve_body.h"
#undef KR_BAND_LEVEL
#undef KR_BAND_BYTES
#undef KR_BAND_VECTORS
KR_END
#define KR_BAND_PICK(level) ((level) >= 2 ? banded_squares_v4 : (level) >= 1 ? banded_squares_v3 : banded_squares_base)
#else
#define KR_BAND_PICK(level) ((void)(level), banded_squares_base)
#endif

/* total[c] = sum of z² over the n_blocks · KR_BAND_ROWS rows of column c of `right`. `window` is a buffer of
 * (width + KR_BAND_WINDOW) · KR_BAND_COLUMNS numbers. */
static inline void kr_banded_squares(int level, const double *packed, ptrdiff_t width, const double *right,
                                     ptrdiff_t n_blocks, double *window, double *total)
{
    KR_BAND_PICK(level)(packed, width, right, n_blocks, window, total);
}

#endif
