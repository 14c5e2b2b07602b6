/* The passes of the SMO solver over kernel rows. KR_REAL is the type of kernel values; gradients, masks and coefficients
 * are always double. As many kernel values are read at a time as there are doubles in a vector.
 *
 * Masks are added instead of tested: `up` is minus infinity (KR_NEVER) where a variable cannot grow, `low` where it
 * cannot shrink, so every pass is one stream without a branch.
 */
#define DVEC KR_NAME(solver_dvec)
#define DUVEC KR_NAME(solver_duvec)
#define RVEC KR_NAME(solver_rvec)
#define RUVEC KR_NAME(solver_ruvec)
#define DLANES ((int)(KR_BYTES / sizeof(double)))
#define SCAN_BLOCK 256 /* the best value is found per block, its place by a second pass over the best block only */
#define ROWS_AT_ONCE 8 /* rows per pass over the output, which is read and written once for all of them */

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

/* gradient += step (row_i - row_j) (row_i NULL: no change); then finds the highest of up - gradient, with its place, and
 * the highest of low + gradient. */
static kr_scan KR_NAME(update_gradient)(const KR_REAL *row_i, const KR_REAL *row_j, double step, const double *up,
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

/* decrease[k - start] = the decrease of the objective that partner k allows, for start <= k < end; returns the largest,
 * at least 0. */
static inline KR_REAL KR_NAME(decreases)(const KR_REAL *row_i, const KR_REAL *diagonal, KR_REAL k_ii,
                                         const kr_partner_search *search, ptrdiff_t start, ptrdiff_t end,
                                         KR_REAL *decrease)
{
    const double *low = search->low, *gradient = search->gradient;
    const double highest_up = search->highest_up, inverse = search->inverse;
    const KR_REAL least = (KR_REAL)search->tau;
    RVEC most = {0}, floor = least - (RVEC){0}, zero = {0};
    KR_REAL highest = 0;
    ptrdiff_t k = start;
    for (; k + DLANES <= end; k += DLANES) {
        DVEC b = (KR_NAME(load_double)(low + k) + KR_NAME(load_double)(gradient + k) + highest_up) * inverse;
        RVEC size = KR_MAX_R(__builtin_convertvector(b, RVEC), zero);
        RVEC curve = (k_ii + KR_NAME(load_kernel)(diagonal + k)) - 2 * KR_NAME(load_kernel)(row_i + k);
        RVEC here = size * size / KR_MAX_R(curve, floor);
        *(RUVEC *)(decrease + k - start) = here;
        most = KR_MAX_R(most, here);
    }
    for (int l = 0; l < DLANES; l++)
        highest = most[l] > highest ? most[l] : highest;
    for (; k < end; k++) {
        KR_REAL size = (KR_REAL)((low[k] + gradient[k] + highest_up) * inverse);
        KR_REAL curve = (k_ii + diagonal[k]) - 2 * row_i[k];
        decrease[k - start] = size > 0 ? size * size / (curve > least ? curve : least) : 0;
        highest = decrease[k - start] > highest ? decrease[k - start] : highest;
    }
    return highest;
}

/* Second-order selection (Fan, Chen and Lin 2005): the partner j of i with the largest decrease of the objective,
 * b_j² / max(tau, k_ii + k_jj - 2 k_ij), where b_j = highest_up + low_j + gradient_j > 0. Writes the decrease to `gain`
 * and returns j, -1 if none is above zero. Decreases are not stored but computed again for the best block. */
static ptrdiff_t KR_NAME(select_partner)(const KR_REAL *row_i, const KR_REAL *diagonal, KR_REAL k_ii,
                                         const kr_partner_search *search, double *gain)
{
    KR_REAL decrease[SCAN_BLOCK], best = 0;
    ptrdiff_t found = -1, n = search->n;
    for (ptrdiff_t start = 0; start < n; start += SCAN_BLOCK) {
        ptrdiff_t end = start + SCAN_BLOCK < n ? start + SCAN_BLOCK : n;
        KR_REAL highest = KR_NAME(decreases)(row_i, diagonal, k_ii, search, start, end, decrease);
        if (highest > best) {
            best = highest;
            found = start;
        }
    }
    *gain = (double)best;
    if (found < 0)
        return -1;
    ptrdiff_t end = found + SCAN_BLOCK < n ? found + SCAN_BLOCK : n;
    KR_NAME(decreases)(row_i, diagonal, k_ii, search, found, end, decrease);
    for (ptrdiff_t k = found; k < end; k++)
        if (decrease[k - found] == best)
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
        for (int r = 0; r < ROWS_AT_ONCE; r++) { /* past the end: the first row with factor zero */
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
