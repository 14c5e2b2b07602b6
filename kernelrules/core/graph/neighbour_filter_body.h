/* One level and one type of neighbour_filter.h. Included by neighbour_filter.h only. */

#define NEAR_VEC KR_NEAR_NAME(near_vec)
#define NEAR_BITS KR_NEAR_NAME(near_bits)
#define NEAR_LANES ((int)(KR_NEAR_BYTES / sizeof(KR_REAL)))

typedef KR_REAL NEAR_VEC __attribute__((vector_size(KR_NEAR_BYTES), aligned(sizeof(KR_REAL)), may_alias));
typedef long long NEAR_BITS __attribute__((vector_size(KR_NEAR_BYTES)));

static ptrdiff_t KR_NEAR_NAME(near)(const KR_REAL *sums, const KR_REAL *norms, const KR_REAL *reaches, KR_REAL norm,
                                    KR_REAL reach, ptrdiff_t n, int *hits)
{
    ptrdiff_t n_hits = 0, j0 = 0;
    for (; j0 < n; j0 += KR_NEAR_BATCH) {
        ptrdiff_t width = n - j0 < KR_NEAR_BATCH ? n - j0 : KR_NEAR_BATCH;
        if (width == KR_NEAR_BATCH) {
            NEAR_BITS any = {0};
            for (ptrdiff_t j = j0; j < j0 + KR_NEAR_BATCH; j += NEAR_LANES) {
                NEAR_VEC rest = *(const NEAR_VEC *)(sums + j) - *(const NEAR_VEC *)(norms + j);
                any |= (NEAR_BITS)(rest + reach >= norm) | (NEAR_BITS)(rest + *(const NEAR_VEC *)(reaches + j) >= norm);
            }
            long long some = 0;
            for (int lane = 0; lane < (int)(KR_NEAR_BYTES / sizeof(some)); lane++)
                some |= any[lane];
            if (!some)
                continue;
        }
        for (ptrdiff_t j = j0; j < j0 + width; j++) {
            KR_REAL wider = reaches[j] > reach ? reaches[j] : reach;
            if ((sums[j] - norms[j]) + wider >= norm)
                hits[n_hits++] = (int)j;
        }
    }
    return n_hits;
}

static double KR_NEAR_NAME(square)(const KR_REAL *x, const KR_REAL *z, ptrdiff_t p)
{
    double sums[KR_NEAR_LANES] = {0};
    ptrdiff_t k = 0;
    for (; k + KR_NEAR_LANES <= p; k += KR_NEAR_LANES)
        for (int lane = 0; lane < KR_NEAR_LANES; lane++) {
            double gap = (double)x[k + lane] - (double)z[k + lane];
            sums[lane] += gap * gap;
        }
    for (int lane = 0; k + lane < p; lane++) {
        double gap = (double)x[k + lane] - (double)z[k + lane];
        sums[lane] += gap * gap;
    }
    return kr_near_total(sums);
}

#undef NEAR_VEC
#undef NEAR_BITS
#undef NEAR_LANES
