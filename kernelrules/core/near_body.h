/* One level and one type of near.h. Included by near.h only. */

static ptrdiff_t KR_NEAR_NAME(near)(const KR_REAL *sums, const KR_REAL *norms, const KR_REAL *reaches, KR_REAL norm,
                                    KR_REAL reach, ptrdiff_t n, int *hits)
{
    ptrdiff_t n_hits = 0, j0 = 0;
    for (; j0 < n; j0 += KR_NEAR_LOOK) {
        ptrdiff_t width = n - j0 < KR_NEAR_LOOK ? n - j0 : KR_NEAR_LOOK;
        int any = 0;
        if (width == KR_NEAR_LOOK) {
            for (ptrdiff_t j = 0; j < KR_NEAR_LOOK; j++) {
                KR_REAL wider = reaches[j0 + j] > reach ? reaches[j0 + j] : reach;
                any |= (sums[j0 + j] - norms[j0 + j]) + wider >= norm;
            }
            if (!any)
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
