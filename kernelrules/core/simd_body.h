/* The vectorised kernels, written once. KR_REAL, KR_BYTES and the constants come from simd.h and simd_types.h;
 * every function's name carries its level and type.
 *
 * exp:  x = k ln2 + r, |r| ≤ ½ ln2;  exp(x) = 2^k (1 + r + r²q(r)), 2^k put together in the exponent's bits.
 *       1 exactly at 0, at most 1 below 0, 0 below KR_EXP_LOW.
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

static inline VEC KR_NAME(finish)(int what, int degree, VEC gamma, VEC coef0, VEC value, VEC norm_i, VEC norm_j)
{
    if (what == KR_FINISH_RBF) {
        VEC distance = (norm_i + norm_j) - 2 * value;
        return KR_NAME(exp_negative)(-KR_NAME(only)(distance > 0, distance));
    }
    if (what == KR_FINISH_DISTANCE) {
        VEC distance = (norm_i + norm_j) - 2 * value;
        return KR_NAME(only)(distance > 0, distance);
    }
    if (what == KR_FINISH_EXP)
        return KR_NAME(exp_negative)(-gamma * value);
    if (what == KR_FINISH_POLYNOMIAL)
        return KR_NAME(power)(gamma * value + coef0, degree);
    if (what == KR_FINISH_SIGMOID)
        return KR_NAME(tanh)(gamma * value + coef0);
    return value;
}

/* The loop with `what` (and small degrees) as constants, so that the compiler makes one tight loop of each. */
static inline __attribute__((always_inline)) void KR_NAME(finish_loop)(
    int what, int degree, const kr_finish *how, KR_REAL norm_i, const KR_REAL *norm_j, KR_REAL *row, ptrdiff_t n)
{
    VEC gamma = KR_NAME(splat)((KR_REAL)how->gamma), coef0 = KR_NAME(splat)((KR_REAL)how->coef0);
    VEC here = KR_NAME(splat)(norm_i), other = KR_NAME(splat)(0);
    ptrdiff_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        if (what == KR_FINISH_RBF || what == KR_FINISH_DISTANCE)
            other = KR_NAME(load)(norm_j + j);
        KR_NAME(store)(row + j, KR_NAME(finish)(what, degree, gamma, coef0, KR_NAME(load)(row + j), here, other));
    }
    if (j < n) {
        VEC tail = KR_NAME(splat)(0);
        memcpy(&tail, row + j, (size_t)(n - j) * sizeof(KR_REAL));
        if (what == KR_FINISH_RBF || what == KR_FINISH_DISTANCE)
            memcpy(&other, norm_j + j, (size_t)(n - j) * sizeof(KR_REAL));
        tail = KR_NAME(finish)(what, degree, gamma, coef0, tail, here, other);
        memcpy(row + j, &tail, (size_t)(n - j) * sizeof(KR_REAL));
    }
}

/* row[j] := f(row[j]), in place:
 *   RBF         exp(-max(0, norm_i + norm_j - 2 row))   (of data scaled by sqrt(gamma))
 *   DISTANCE    max(0, norm_i + norm_j - 2 row)
 *   EXP         exp(-gamma row)                          (row ≥ 0 a distance)
 *   POLYNOMIAL  (gamma row + coef0)^degree
 *   SIGMOID     tanh(gamma row + coef0)
 * norm_j is read for RBF and DISTANCE only. */
static void KR_NAME(finish_row)(const kr_finish *how, KR_REAL norm_i, const KR_REAL *norm_j, KR_REAL *row, ptrdiff_t n)
{
    switch (how->finish) {
    case KR_FINISH_RBF: KR_NAME(finish_loop)(KR_FINISH_RBF, 0, how, norm_i, norm_j, row, n); return;
    case KR_FINISH_DISTANCE: KR_NAME(finish_loop)(KR_FINISH_DISTANCE, 0, how, norm_i, norm_j, row, n); return;
    case KR_FINISH_EXP: KR_NAME(finish_loop)(KR_FINISH_EXP, 0, how, norm_i, norm_j, row, n); return;
    case KR_FINISH_SIGMOID: KR_NAME(finish_loop)(KR_FINISH_SIGMOID, 0, how, norm_i, norm_j, row, n); return;
    case KR_FINISH_POLYNOMIAL:
        switch (how->degree) {
        case 2: KR_NAME(finish_loop)(KR_FINISH_POLYNOMIAL, 2, how, norm_i, norm_j, row, n); return;
        case 3: KR_NAME(finish_loop)(KR_FINISH_POLYNOMIAL, 3, how, norm_i, norm_j, row, n); return;
        default: KR_NAME(finish_loop)(KR_FINISH_POLYNOMIAL, how->degree, how, norm_i, norm_j, row, n); return;
        }
    }
}

/* Slivers. An operand's rows are stored SLIVER at a time, feature by feature: sliver[k * SLIVER + r] is feature k of
 * the sliver's row r, rows past the end being zero. A tile of the result is then made of ROWS × SLIVER blocks held
 * in registers while k runs; the same layout serves both operands. */
#define ROWS 4
#define SLIVER (KR_SLIVER_VECTORS * LANES)

static inline __attribute__((always_inline)) void KR_NAME(block)(
    int what, const KR_REAL *x, const KR_REAL *z, ptrdiff_t depth, KR_REAL *out, ptrdiff_t stride, int add)
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
                if (what == KR_SUM_PRODUCTS)
                    sum[i][v] += row * columns[v];
                else if (what == KR_SUM_SQUARES)
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
    int what, const KR_REAL *x, ptrdiff_t step_x, ptrdiff_t n_x, const KR_REAL *z, ptrdiff_t step_z, ptrdiff_t n_z,
    ptrdiff_t depth, KR_REAL *out, ptrdiff_t stride, int flags)
{
    int add = flags & KR_SUM_ADD, lower = flags & KR_SUM_LOWER;
    for (ptrdiff_t j = 0; j < n_z; j += SLIVER)
        for (ptrdiff_t i = 0; i < n_x; i += ROWS) {
            if (lower && i + ROWS <= j)
                continue;
            KR_NAME(block)(what, x + i / SLIVER * step_x + i % SLIVER, z + j / SLIVER * step_z, depth,
                           out + i * stride + j, stride, add);
        }
}

/* out[i][j] = sum over k < depth of x_ik z_jk, (x_ik - z_jk)² or |x_ik - z_jk|, or its increase with KR_SUM_ADD; with
 * KR_SUM_LOWER blocks strictly above the diagonal are left out. Slivers stand step_x and step_z numbers apart. n_x and
 * n_z are rounded up to whole blocks: out has room for that. */
static void KR_NAME(sums)(int what, const KR_REAL *x, ptrdiff_t step_x, ptrdiff_t n_x, const KR_REAL *z,
                          ptrdiff_t step_z, ptrdiff_t n_z, ptrdiff_t depth, KR_REAL *out, ptrdiff_t stride, int flags)
{
    if (what == KR_SUM_PRODUCTS)
        KR_NAME(blocks)(KR_SUM_PRODUCTS, x, step_x, n_x, z, step_z, n_z, depth, out, stride, flags);
    else if (what == KR_SUM_SQUARES)
        KR_NAME(blocks)(KR_SUM_SQUARES, x, step_x, n_x, z, step_z, n_z, depth, out, stride, flags);
    else
        KR_NAME(blocks)(KR_SUM_MAGNITUDES, x, step_x, n_x, z, step_z, n_z, depth, out, stride, flags);
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

/* out[j][i] = in[i][j]. Squares of LANES × LANES are turned in registers: log2(LANES) rounds of interleaving row i with
 * row i + LANES / 2 transpose them. */
static void KR_NAME(transpose)(const KR_REAL *in, ptrdiff_t stride_in, ptrdiff_t n_rows, ptrdiff_t n_columns,
                               KR_REAL *out, ptrdiff_t stride_out)
{
    ptrdiff_t whole_rows = 0, whole_columns = 0;
#ifdef KR_SHUFFLE
    whole_rows = n_rows / LANES * LANES;
    whole_columns = n_columns / LANES * LANES;
    for (ptrdiff_t j = 0; j < whole_columns; j += LANES)
        for (ptrdiff_t i = 0; i < whole_rows; i += LANES) {
            VEC rows[LANES], turned[LANES];
            for (int l = 0; l < LANES; l++)
                rows[l] = KR_NAME(load)(in + (i + l) * stride_in + j);
            for (int round = 1; round < LANES; round *= 2) {
                for (int l = 0; l < LANES / 2; l++) {
                    turned[2 * l] = KR_NAME(interleave)(rows[l], rows[l + LANES / 2], 0);
                    turned[2 * l + 1] = KR_NAME(interleave)(rows[l], rows[l + LANES / 2], 1);
                }
                for (int l = 0; l < LANES; l++)
                    rows[l] = turned[l];
            }
            for (int l = 0; l < LANES; l++)
                KR_NAME(store)(out + (j + l) * stride_out + i, rows[l]);
        }
#endif
    for (ptrdiff_t i = 0; i < n_rows; i++)
        for (ptrdiff_t j = i < whole_rows ? whole_columns : 0; j < n_columns; j++)
            out[j * stride_out + i] = in[i * stride_in + j];
}

#define CHUNK 32
#define PARTS 16 /* one running sum would lose digits in proportion to the square root of its length */

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
 * for none. Gives the squared lengths of what was stored in norms (NULL: not wanted). */
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
static KR_REAL KR_NAME(largest)(const KR_REAL *numbers, ptrdiff_t n)
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

#include "simd_solver.h"

static const KR_TABLE KR_NAME(table) = {SLIVER, KR_NAME(finish_row), KR_NAME(sums), KR_NAME(pack), KR_NAME(transpose),
                                        KR_NAME(stream_row), KR_NAME(largest), KR_NAME(descend), KR_NAME(partner),
                                        KR_NAME(add_rows), KR_NAME(dot)};

#undef VEC
#undef IVEC
#undef UVEC
#undef BVEC
#undef KR_BITS
#undef LANES
#undef ROWS
#undef SLIVER
#undef CHUNK
#undef PARTS
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
