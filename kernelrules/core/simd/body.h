/* Vectorised passes over dense rows, written once for every instruction-set level and float type (levels.h): sums over
 * the features by register blocks, transposition, packing, and the passes of the SMO solver (solver.h).
 */
/* Slivers. An operand's rows are stored SLIVER at a time, feature by feature: sliver[k * SLIVER + r] is feature k of
 * the sliver's row r, rows past the end being zero. A tile of the result is then made of ROWS × SLIVER blocks held
 * in registers while k runs; the same layout serves both operands. */
#define ROWS 4
#define SLIVER (KR_SLIVER_VECTORS * LANES)

static inline __attribute__((always_inline)) void KR_NAME(block)(
    int kind, const KR_REAL *x, const KR_REAL *z, ptrdiff_t depth, KR_REAL *out, ptrdiff_t stride, int add)
{
    VEC sum[ROWS][KR_SLIVER_VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < KR_SLIVER_VECTORS; v++)
            sum[i][v] = KR_NAME(splat)(0);
    for (ptrdiff_t k = 0; k < depth; k++) {
        VEC columns[KR_SLIVER_VECTORS];
        for (int v = 0; v < KR_SLIVER_VECTORS; v++)
            columns[v] = KR_NAME(load)(z + k * SLIVER + v * LANES);
        for (int i = 0; i < ROWS; i++) {
            VEC row = KR_NAME(splat)(x[k * SLIVER + i]);
            for (int v = 0; v < KR_SLIVER_VECTORS; v++) {
                if (kind == KR_SUM_PRODUCTS)
                    sum[i][v] += row * columns[v];
                else if (kind == KR_SUM_SQUARES)
                    sum[i][v] += (row - columns[v]) * (row - columns[v]);
                else
                    sum[i][v] += KR_NAME(magnitude)(row - columns[v]);
            }
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < KR_SLIVER_VECTORS; v++) {
            KR_REAL *at = out + i * stride + v * LANES;
            KR_NAME(store)(at, add ? KR_NAME(load)(at) + sum[i][v] : sum[i][v]);
        }
}

static inline __attribute__((always_inline)) void KR_NAME(blocks)(
    int sum, kr_packed_rows x, kr_packed_rows z, ptrdiff_t depth, KR_REAL *out, ptrdiff_t stride, int flags)
{
    const KR_REAL *x_slivers = x.slivers, *z_slivers = z.slivers;
    int add = flags & KR_SUM_ADD, lower = flags & KR_SUM_LOWER;
    for (ptrdiff_t j = 0; j < z.n; j += SLIVER)
        for (ptrdiff_t i = 0; i < x.n; i += ROWS) {
            if (lower && i + ROWS <= j)
                continue;
            KR_NAME(block)(sum, x_slivers + i / SLIVER * x.step + i % SLIVER, z_slivers + j / SLIVER * z.step, depth,
                           out + i * stride + j, stride, add);
        }
}

/* out[i][j] = sum over k < depth of x_ik z_jk, (x_ik - z_jk)² or |x_ik - z_jk|, or its increase with KR_SUM_ADD; with
 * KR_SUM_LOWER blocks strictly above the diagonal are left out. The numbers of rows are rounded up to whole blocks, and
 * `out` must be that large. */
static void KR_NAME(sums)(int sum, kr_packed_rows x, kr_packed_rows z, ptrdiff_t depth, KR_REAL *out, ptrdiff_t stride,
                          int flags)
{
    if (sum == KR_SUM_PRODUCTS)
        KR_NAME(blocks)(KR_SUM_PRODUCTS, x, z, depth, out, stride, flags);
    else if (sum == KR_SUM_SQUARES)
        KR_NAME(blocks)(KR_SUM_SQUARES, x, z, depth, out, stride, flags);
    else
        KR_NAME(blocks)(KR_SUM_MAGNITUDES, x, z, depth, out, stride, flags);
}

#ifdef KR_SHUFFLE
/* The first (half 0) or second (half 1) halves of a and b, interleaved. */
static inline VEC KR_NAME(interleave)(VEC a, VEC b, int half)
{
    IVEC order;
    for (int l = 0; l < LANES; l++)
        order[l] = half * (LANES / 2) + l / 2 + l % 2 * LANES;
    return KR_SHUFFLE(a, b, order);
}
#endif

/* out[j][i] = in[i][j]. Squares of LANES × LANES are transposed in registers: log2(LANES) rounds of interleaving
 * row i with row i + LANES / 2. */
static void KR_NAME(transpose)(const KR_REAL *in, ptrdiff_t stride_in, ptrdiff_t n_rows, ptrdiff_t n_columns,
                               KR_REAL *out, ptrdiff_t stride_out)
{
    ptrdiff_t whole_rows = 0, whole_columns = 0;
#ifdef KR_SHUFFLE
    whole_rows = n_rows / LANES * LANES;
    whole_columns = n_columns / LANES * LANES;
    for (ptrdiff_t j = 0; j < whole_columns; j += LANES)
        for (ptrdiff_t i = 0; i < whole_rows; i += LANES) {
            VEC rows[LANES], interleaved[LANES];
            for (int l = 0; l < LANES; l++)
                rows[l] = KR_NAME(load)(in + (i + l) * stride_in + j);
            for (int round = 1; round < LANES; round *= 2) {
                for (int l = 0; l < LANES / 2; l++) {
                    interleaved[2 * l] = KR_NAME(interleave)(rows[l], rows[l + LANES / 2], 0);
                    interleaved[2 * l + 1] = KR_NAME(interleave)(rows[l], rows[l + LANES / 2], 1);
                }
                for (int l = 0; l < LANES; l++)
                    rows[l] = interleaved[l];
            }
            for (int l = 0; l < LANES; l++)
                KR_NAME(store)(out + (j + l) * stride_out + i, rows[l]);
        }
#endif
    for (ptrdiff_t i = 0; i < n_rows; i++)
        for (ptrdiff_t j = i < whole_rows ? whole_columns : 0; j < n_columns; j++)
            out[j * stride_out + i] = in[i * stride_in + j];
}

#define CHUNK 32 /* features that are scaled and transposed together, in registers and first-level cache */
#define PARTS 16 /* partial sums: one running sum would lose digits in proportion to the square root of its length */

/* values[k] = factor (row[k] - centre[k]) for k < n ≤ CHUNK, zero beyond; returns their squared length, in double. */
static inline double KR_NAME(scale)(const KR_REAL *row, const double *centre, double factor, ptrdiff_t n,
                                    KR_REAL *values)
{
    double parts[PARTS] = {0}, norm = 0;
    if (centre == NULL)
        for (ptrdiff_t k = 0; k < n; k++)
            values[k] = (KR_REAL)(factor * row[k]);
    else
        for (ptrdiff_t k = 0; k < n; k++)
            values[k] = (KR_REAL)(factor * (row[k] - centre[k]));
    for (ptrdiff_t k = n; k < CHUNK; k++)
        values[k] = 0;
    for (int k = 0; k < CHUNK; k += PARTS)
        for (int part = 0; part < PARTS; part++)
            parts[part] += (double)values[k + part] * values[k + part];
    for (int part = 0; part < PARTS; part++)
        norm += parts[part];
    return norm;
}

/* Rows `stride` numbers apart into slivers `step` numbers apart (NULL: not stored): factor (row - centre), centre NULL
 * for none. Writes the squared lengths of what was stored to norms (NULL: not computed). */
static void KR_NAME(pack)(const KR_REAL *rows, ptrdiff_t stride, ptrdiff_t n_rows, ptrdiff_t depth,
                          const double *centre, double factor, KR_REAL *slivers, ptrdiff_t step, double *norms)
{
    KR_REAL values[SLIVER * CHUNK];
    for (ptrdiff_t i = 0; i < n_rows; i += SLIVER) {
        double high[SLIVER], low[SLIVER]; /* the lengths in two parts, so that many chunks add up without loss */
        memset(high, 0, sizeof(high));
        memset(low, 0, sizeof(low));
        for (ptrdiff_t k = 0; k < depth; k += CHUNK) {
            ptrdiff_t here = depth - k < CHUNK ? depth - k : CHUNK;
            for (ptrdiff_t r = 0; r < SLIVER; r++) {
                if (i + r >= n_rows) {
                    memset(values + r * CHUNK, 0, CHUNK * sizeof(KR_REAL));
                    continue;
                }
                double norm = KR_NAME(scale)(rows + (i + r) * stride + k, centre == NULL ? NULL : centre + k, factor,
                                             here, values + r * CHUNK);
                double total = high[r] + norm, back = total - high[r];
                low[r] += (high[r] - (total - back)) + (norm - back);
                high[r] = total;
            }
            if (slivers != NULL)
                KR_NAME(transpose)(values, CHUNK, SLIVER, here, slivers + i / SLIVER * step + k * SLIVER, SLIVER);
        }
        for (ptrdiff_t r = 0; norms != NULL && r < SLIVER && i + r < n_rows; r++)
            norms[i + r] = high[r] + low[r];
    }
}

/* out[:n] = in[:n] past the caches, for results too large to stay in them: a normal store would first read the line.
 * Whole lines of 64 bytes only: part of a line written past the caches costs more than it saves. */
static void KR_NAME(stream_row)(const KR_REAL *in, KR_REAL *out, ptrdiff_t n)
{
    const ptrdiff_t line = (ptrdiff_t)(64 / sizeof(KR_REAL));
    ptrdiff_t head = (ptrdiff_t)((-(uintptr_t)out % 64) / sizeof(KR_REAL)), j;
    head = head < n ? head : n;
    memcpy(out, in, (size_t)head * sizeof(KR_REAL));
    for (j = head; j + line <= n; j += line)
        for (int v = 0; v < 64 / KR_BYTES; v++)
            KR_STREAM(out + j + v * LANES, KR_NAME(load)(in + j + v * LANES));
    memcpy(out + j, in + j, (size_t)(n - j) * sizeof(KR_REAL));
}

/* The largest magnitude among n numbers; NaN if one of them is infinite or NaN. */
static KR_REAL KR_NAME(largest_magnitude)(const KR_REAL *numbers, ptrdiff_t n)
{
    VEC most = KR_NAME(splat)(0), taint = KR_NAME(splat)(0); /* x - x is 0 for a finite x and NaN for others */
    KR_REAL largest = 0, sum = 0;
    ptrdiff_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        VEC here = KR_NAME(load)(numbers + j), size = KR_NAME(magnitude)(here);
        IVEC more = size > most;
        most = (VEC)((more & (IVEC)size) | (~more & (IVEC)most));
        taint += here - here;
    }
    for (; j < n; j++) {
        KR_REAL size = numbers[j] < 0 ? -numbers[j] : numbers[j];
        largest = size > largest ? size : largest;
        sum += numbers[j] - numbers[j];
    }
    for (int l = 0; l < LANES; l++) {
        largest = most[l] > largest ? most[l] : largest;
        sum += taint[l];
    }
    return largest + sum;
}

#include "simd/solver.h"

static const KR_TABLE KR_NAME(table) = {SLIVER, KR_NAME(sums), KR_NAME(pack), KR_NAME(transpose),
                                        KR_NAME(stream_row), KR_NAME(largest_magnitude), KR_NAME(update_gradient),
                                        KR_NAME(select_partner), KR_NAME(add_rows), KR_NAME(dot)};

#undef ROWS
#undef SLIVER
#undef CHUNK
#undef PARTS
