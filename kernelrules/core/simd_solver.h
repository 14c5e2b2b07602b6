/* The passes of the SMO solver over kernel rows, written once. KR_REAL is the type of a kernel value; gradients, masks
 * and coefficients are double always. As many kernel values are read at a time as there are doubles in a vector.
 *
 * Masks are added instead of tested: `up` is minus infinity (KR_NEVER) where a variable cannot grow, `low` where it
 * cannot shrink, so every pass is one stream without a branch.
 */
#define DVEC KR_NAME(solver_dvec)
#define DUVEC KR_NAME(solver_duvec)
#define RVEC KR_NAME(solver_rvec)
#define RUVEC KR_NAME(solver_ruvec)
#define DLANES ((int)(KR_BYTES / sizeof(double)))
#define SCAN_BLOCK 256 /* the best of a block is found by value, its place by a second look at that block only */
#define ROWS_AT_ONCE 8

typedef double DVEC __attribute__((vector_size(KR_BYTES)));
typedef double DUVEC __attribute__((vector_size(KR_BYTES), aligned(sizeof(double)), may_alias));
typedef KR_REAL RVEC __attribute__((vector_size(KR_BYTES / sizeof(double) * sizeof(KR_REAL))));
typedef KR_REAL RUVEC
    __attribute__((vector_size(KR_BYTES / sizeof(double) * sizeof(KR_REAL)), aligned(sizeof(KR_REAL)), may_alias));

static inline DVEC KR_NAME(load_double)(const double *at) { return *(const DUVEC *)at; }
static inline RVEC KR_NAME(load_kernel)(const KR_REAL *at) { return *(const RUVEC *)at; }
static inline DVEC KR_NAME(widen)(RVEC v) { return __builtin_convertvector(v, DVEC); }
static inline double KR_NAME(highest)(DVEC v)
{
    double most = v[0];
    for (int l = 1; l < DLANES; l++)
        most = v[l] > most ? v[l] : most;
    return most;
}

/* gradient += step (row_i - row_j) (row_i NULL: no change); then the highest of up - gradient, with its place, and the
 * highest of low + gradient. */
static kr_scan KR_NAME(descend)(const KR_REAL *row_i, const KR_REAL *row_j, double step, const double *up,
                                const double *low, double *gradient, ptrdiff_t n)
{
    kr_scan best = {KR_NOTHING, KR_NOTHING, -1};
    ptrdiff_t found = -1;
    for (ptrdiff_t start = 0; start < n; start += SCAN_BLOCK) {
        ptrdiff_t end = start + SCAN_BLOCK < n ? start + SCAN_BLOCK : n, k = start;
        DVEC most_up = KR_NOTHING - (DVEC){0}, most_low = most_up;
        for (; k + DLANES <= end; k += DLANES) {
            DVEC g = KR_NAME(load_double)(gradient + k);
            if (row_i != NULL) {
                g += step * (KR_NAME(widen)(KR_NAME(load_kernel)(row_i + k)) -
                             KR_NAME(widen)(KR_NAME(load_kernel)(row_j + k)));
                *(DUVEC *)(gradient + k) = g;
            }
            most_up = KR_MAX_D(most_up, KR_NAME(load_double)(up + k) - g);
            most_low = KR_MAX_D(most_low, KR_NAME(load_double)(low + k) + g);
        }
        double highest_up = KR_NAME(highest)(most_up), highest_low = KR_NAME(highest)(most_low);
        for (; k < end; k++) {
            if (row_i != NULL)
                gradient[k] += step * ((double)row_i[k] - (double)row_j[k]);
            highest_up = up[k] - gradient[k] > highest_up ? up[k] - gradient[k] : highest_up;
            highest_low = low[k] + gradient[k] > highest_low ? low[k] + gradient[k] : highest_low;
        }
        if (highest_up > best.up) {
            best.up = highest_up;
            found = start;
        }
        best.low = highest_low > best.low ? highest_low : best.low;
    }
    for (ptrdiff_t k = found; k >= 0 && k < n; k++)
        if (up[k] - gradient[k] == best.up) {
            best.where = k;
            break;
        }
    return best;
}

/* What the partners start <= k < end promise, into `promised`; the highest, at least 0. */
static inline KR_REAL KR_NAME(promises)(const KR_REAL *row_i, const KR_REAL *diagonal, KR_REAL k_ii, KR_REAL least,
                                        double highest_up, double inverse, const double *low, const double *gradient,
                                        ptrdiff_t start, ptrdiff_t end, KR_REAL *promised)
{
    RVEC most = {0}, floor = least - (RVEC){0}, zero = {0};
    KR_REAL highest = 0;
    ptrdiff_t k = start;
    for (; k + DLANES <= end; k += DLANES) {
        DVEC b = (KR_NAME(load_double)(low + k) + KR_NAME(load_double)(gradient + k) + highest_up) * inverse;
        RVEC size = KR_MAX_R(__builtin_convertvector(b, RVEC), zero);
        RVEC curve = (k_ii + KR_NAME(load_kernel)(diagonal + k)) - 2 * KR_NAME(load_kernel)(row_i + k);
        RVEC promise = size * size / KR_MAX_R(curve, floor);
        *(RUVEC *)(promised + k - start) = promise;
        most = KR_MAX_R(most, promise);
    }
    for (int l = 0; l < DLANES; l++)
        highest = most[l] > highest ? most[l] : highest;
    for (; k < end; k++) {
        KR_REAL size = (KR_REAL)((low[k] + gradient[k] + highest_up) * inverse);
        KR_REAL curve = (k_ii + diagonal[k]) - 2 * row_i[k];
        promised[k - start] = size > 0 ? size * size / (curve > least ? curve : least) : 0;
        highest = promised[k - start] > highest ? promised[k - start] : highest;
    }
    return highest;
}

/* The partner j of i that promises the largest decrease of the objective, b_j² / max(tau, k_ii + k_jj - 2 k_ij), with
 * b_j = highest_up + low_j + gradient_j > 0. `inverse` scales the b to at most 1, so that squares fit the type. Gives
 * the highest and its place, -1 where none is above zero. Promises are not kept but made again for the best block. */
static ptrdiff_t KR_NAME(partner)(const KR_REAL *row_i, const KR_REAL *diagonal, KR_REAL k_ii, double tau,
                                  double highest_up, double inverse, const double *low, const double *gradient,
                                  ptrdiff_t n, double *gain)
{
    KR_REAL promised[SCAN_BLOCK], best = 0;
    ptrdiff_t found = -1;
    for (ptrdiff_t start = 0; start < n; start += SCAN_BLOCK) {
        ptrdiff_t end = start + SCAN_BLOCK < n ? start + SCAN_BLOCK : n;
        KR_REAL highest = KR_NAME(promises)(row_i, diagonal, k_ii, (KR_REAL)tau, highest_up, inverse, low, gradient,
                                            start, end, promised);
        if (highest > best) {
            best = highest;
            found = start;
        }
    }
    *gain = (double)best;
    if (found < 0)
        return -1;
    ptrdiff_t end = found + SCAN_BLOCK < n ? found + SCAN_BLOCK : n;
    KR_NAME(promises)(row_i, diagonal, k_ii, (KR_REAL)tau, highest_up, inverse, low, gradient, found, end, promised);
    for (ptrdiff_t k = found; k < end; k++)
        if (promised[k - found] == best)
            return k;
    return -1;
}

/* out[k] += sum over r of coefficients[r] rows[r][offset + k], several rows in one pass over out. */
static void KR_NAME(add_rows)(const KR_REAL *const *rows, ptrdiff_t offset, const double *coefficients,
                              ptrdiff_t n_rows, double *out, ptrdiff_t n)
{
    for (ptrdiff_t r0 = 0; r0 < n_rows; r0 += ROWS_AT_ONCE) {
        const KR_REAL *row[ROWS_AT_ONCE];
        double factor[ROWS_AT_ONCE];
        ptrdiff_t k = 0;
        for (int r = 0; r < ROWS_AT_ONCE; r++) { /* past the end the first row counts with factor zero */
            row[r] = rows[r0 + r < n_rows ? r0 + r : r0] + offset;
            factor[r] = r0 + r < n_rows ? coefficients[r0 + r] : 0.0;
        }
        for (; k + DLANES <= n; k += DLANES) {
            DVEC sum = KR_NAME(load_double)(out + k);
            for (int r = 0; r < ROWS_AT_ONCE; r++)
                sum += factor[r] * KR_NAME(widen)(KR_NAME(load_kernel)(row[r] + k));
            *(DUVEC *)(out + k) = sum;
        }
        for (; k < n; k++)
            for (int r = 0; r < ROWS_AT_ONCE; r++)
                out[k] += factor[r] * (double)row[r][k];
    }
}

/* The inner product of a kernel row with coefficients. */
static double KR_NAME(dot)(const KR_REAL *row, const double *coefficients, ptrdiff_t n)
{
    DVEC sum[4] = {{0}, {0}, {0}, {0}};
    double total = 0;
    ptrdiff_t k = 0;
    for (; k + 4 * DLANES <= n; k += 4 * DLANES)
        for (int v = 0; v < 4; v++)
            sum[v] += KR_NAME(widen)(KR_NAME(load_kernel)(row + k + v * DLANES)) *
                      KR_NAME(load_double)(coefficients + k + v * DLANES);
    for (; k < n; k++)
        total += (double)row[k] * coefficients[k];
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int l = 0; l < DLANES; l++)
        total += sum[0][l];
    return total;
}

#undef DVEC
#undef DUVEC
#undef RVEC
#undef RUVEC
#undef DLANES
#undef SCAN_BLOCK
#undef ROWS_AT_ONCE
