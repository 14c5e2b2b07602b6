/* One level of banded_solve.h. Included by banded_solve.h only. */

#define SVEC KR_BAND_NAME(banded_vec)
#define SLANES ((int)(KR_BAND_BYTES / sizeof(double)))
#define SGROUP (KR_BAND_VECTORS * SLANES) /* columns whose sums are in registers together */

typedef double SVEC __attribute__((vector_size(KR_BAND_BYTES), aligned(sizeof(double)), may_alias));

/* Rows of z at `at`, of SGROUP columns, from as many of `right` and the `width` rows of z before them. */
static inline __attribute__((always_inline)) void KR_BAND_NAME(solve_rows)(
    const double *packed, ptrdiff_t width, const double *right, double *at, double *total)
{
    SVEC sum[KR_BAND_ROWS][KR_BAND_VECTORS];
    const double *before = at - width * KR_BAND_COLUMNS;
    for (int r = 0; r < KR_BAND_ROWS; r++)
        for (int v = 0; v < KR_BAND_VECTORS; v++)
            sum[r][v] = *(const SVEC *)(right + r * KR_BAND_COLUMNS + v * SLANES);
    for (ptrdiff_t k = 0; k < width; k++) {
        SVEC row[KR_BAND_VECTORS];
        for (int v = 0; v < KR_BAND_VECTORS; v++)
            row[v] = *(const SVEC *)(before + k * KR_BAND_COLUMNS + v * SLANES);
        for (int r = 0; r < KR_BAND_ROWS; r++)
            for (int v = 0; v < KR_BAND_VECTORS; v++)
                sum[r][v] -= packed[k * KR_BAND_ROWS + r] * row[v];
    }
    const double *triangle = packed + width * KR_BAND_ROWS;
#pragma GCC unroll 4 /* whole, or the sums go through memory */
    for (int r = 0; r < KR_BAND_ROWS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < KR_BAND_VECTORS; v++) {
#pragma GCC unroll 4
            for (int c = 0; c < r; c++)
                sum[r][v] -= triangle[r * KR_BAND_ROWS + c] * sum[c][v];
            sum[r][v] *= triangle[r * KR_BAND_ROWS + r];
            *(SVEC *)(at + r * KR_BAND_COLUMNS + v * SLANES) = sum[r][v];
            *(SVEC *)(total + v * SLANES) += sum[r][v] * sum[r][v];
        }
}

static void KR_BAND_NAME(banded_squares)(const double *packed, ptrdiff_t width, const double *right, ptrdiff_t n_blocks,
                                 double *window, double *total)
{
    double *first = window + width * KR_BAND_COLUMNS, *at = first, *end = first + KR_BAND_WINDOW * KR_BAND_COLUMNS;
    memset(window, 0, (size_t)width * KR_BAND_COLUMNS * sizeof(double));
    memset(total, 0, KR_BAND_COLUMNS * sizeof(double));
    for (ptrdiff_t block = 0; block < n_blocks; block++) {
        for (int column = 0; column < KR_BAND_COLUMNS; column += SGROUP)
            KR_BAND_NAME(solve_rows)(packed, width, right + column, at + column, total + column);
        packed += (width + KR_BAND_ROWS) * KR_BAND_ROWS;
        right += KR_BAND_ROWS * KR_BAND_COLUMNS;
        at += KR_BAND_ROWS * KR_BAND_COLUMNS;
        if (at == end) {
            memmove(window, end - width * KR_BAND_COLUMNS, (size_t)width * KR_BAND_COLUMNS * sizeof(double));
            at = first;
        }
    }
}

#undef SVEC
#undef SLANES
#undef SGROUP
