/* One level of scan_loops.h. Sums before each entry of a block first, one after the other; then the scores, vectorised.
 *
 * Places are ptrdiff_t: Python's compiler flags hold -fwrapv, under which an int index may wrap, and the compiler would
 * gather and scatter what lies side by side. */

static inline kr_cut KR_SCAN_NAME(better)(kr_cut best, const double *sums, const double *scores, double highest,
                                          ptrdiff_t start, ptrdiff_t from, ptrdiff_t end)
{
    if (highest > best.score)
        for (ptrdiff_t i = from; i < end; i++)
            if (scores[i - start] == highest) {
                best.score = highest;
                best.at = i;
                best.sum = sums[i - start];
                break;
            }
    return best;
}

static inline double KR_SCAN_NAME(scores)(const uint32_t *entries, const double *sums, ptrdiff_t start, ptrdiff_t from,
                                          ptrdiff_t end, const kr_range *range, double *scores)
{
    double weight = range->weight, sum = range->sum, weight0 = range->weight0, highest = KR_NO_CUT;
    double first = weight0 + (double)start;
    const uint32_t *block = entries + start;
    if (range->inverse != NULL) {
        const double *inverse = range->inverse + start;
#pragma omp simd reduction(max : highest)
        for (ptrdiff_t j = from - start; j < end - start; j++) {
            double cross = sums[j] * weight - (first + (double)(int)j) * sum;
            double score = cross * cross * inverse[j];
            score = block[j] >> 31 ? score : KR_NO_CUT;
            scores[j] = score;
            highest = score > highest ? score : highest;
        }
        return highest;
    }
#pragma omp simd reduction(max : highest)
    for (ptrdiff_t j = from - start; j < end - start; j++) {
        double left = first + (double)(int)j;
        double cross = sums[j] * weight - left * sum;
        double score = cross * cross / (left * (weight - left));
        score = block[j] >> 31 ? score : KR_NO_CUT;
        scores[j] = score;
        highest = score > highest ? score : highest;
    }
    return highest;
}

static inline kr_cut KR_SCAN_NAME(better_at)(kr_cut best, double sum, ptrdiff_t i, const kr_range *range)
{
    double left = range->weight0 + (double)i;
    double cross = sum * range->weight - left * range->sum;
    double score = range->inverse != NULL ? cross * cross * range->inverse[i]
                                          : cross * cross / (left * (range->weight - left));
    if (score > best.score) {
        best.score = score;
        best.at = i;
        best.sum = sum;
    }
    return best;
}

static kr_cut KR_SCAN_NAME(cut_two)(const uint32_t *entries, int shift, const kr_range *range)
{
    kr_cut best = {KR_NO_CUT, -1, 0};
    if (range->last < KR_FEW_CUTS) {
        double sum = range->sum0;
        for (ptrdiff_t i = 0; i <= range->last; i++) {
            if (i >= range->first && entries[i] & KR_DIFFERS)
                best = KR_SCAN_NAME(better_at)(best, sum, i, range);
            sum += (double)(entries[i] >> shift & 1);
        }
        return best;
    }
    double sums[KR_CUTS], scores[KR_CUTS];
    ptrdiff_t last = range->last;
    int32_t count = (int32_t)range->sum0;
    for (ptrdiff_t start = 0; start <= last; start += KR_CUTS) {
        ptrdiff_t end = last + 1 - start < KR_CUTS ? last + 1 : start + KR_CUTS;
        ptrdiff_t from = range->first > start ? range->first : start;
        for (ptrdiff_t i = start; i < end; i++) {
            sums[i - start] = (double)count;
            count += (int32_t)(entries[i] >> shift & 1);
        }
        if (from < end) {
            double highest = KR_SCAN_NAME(scores)(entries, sums, start, from, end, range, scores);
            best = KR_SCAN_NAME(better)(best, sums, scores, highest, start, from, end);
        }
    }
    return best;
}

static kr_cut KR_SCAN_NAME(cut_mean)(const uint32_t *entries, uint32_t id_mask, const double *y, double shift,
                                     const kr_range *range)
{
    kr_cut best = {KR_NO_CUT, -1, 0};
    if (range->last < KR_FEW_CUTS) {
        double sum = range->sum0;
        for (ptrdiff_t i = 0; i <= range->last; i++) {
            if (i >= range->first && entries[i] & KR_DIFFERS)
                best = KR_SCAN_NAME(better_at)(best, sum, i, range);
            sum += y[entries[i] & id_mask] - shift;
        }
        return best;
    }
    double sums[KR_CUTS], scores[KR_CUTS], sum = range->sum0;
    ptrdiff_t last = range->last;
    for (ptrdiff_t start = 0; start <= last; start += KR_CUTS) {
        ptrdiff_t end = last + 1 - start < KR_CUTS ? last + 1 : start + KR_CUTS;
        ptrdiff_t from = range->first > start ? range->first : start;
        const uint32_t *block = entries + start;
        ptrdiff_t n = end - start, length = n / KR_CHAINS;
        double chain[KR_CHAINS] = {0};
        for (ptrdiff_t j = 0; j < length; j++)
            for (int k = 0; k < KR_CHAINS; k++) {
                sums[k * length + j] = chain[k];
                chain[k] += y[block[k * length + j] & id_mask] - shift;
            }
        for (ptrdiff_t j = KR_CHAINS * length; j < n; j++) {
            sums[j] = chain[KR_CHAINS - 1];
            chain[KR_CHAINS - 1] += y[block[j] & id_mask] - shift;
        }
        for (int k = 0; k < KR_CHAINS; k++) {
            ptrdiff_t beyond = k + 1 < KR_CHAINS ? (k + 1) * length : n;
            for (ptrdiff_t j = k * length; j < beyond; j++)
                sums[j] += sum;
            sum += chain[k];
        }
        if (from < end) {
            double highest = KR_SCAN_NAME(scores)(entries, sums, start, from, end, range, scores);
            best = KR_SCAN_NAME(better)(best, sums, scores, highest, start, from, end);
        }
    }
    return best;
}
