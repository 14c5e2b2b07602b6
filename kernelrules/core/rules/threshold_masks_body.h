/* threshold_masks.h for one float type. Included by threshold_masks.h only. */

#if KR_X86
/* Sixty-four comparisons with one limit; the predicate `way` must be a constant. */
#define KR_COMPARED(limit, way)                                                                                    \
    KR_MASK_PASTE3(_mm512_cmp, KR_SUFFIX, mask)                                                                    \
    (KR_MASK_PASTE(_mm512_loadu, KR_SUFFIX)(values + i), KR_MASK_PASTE(_mm512_set1, KR_SUFFIX)(limit), way)
#define KR_ALL_COMPARED(compared)                                                                                  \
    for (int i = 0; i < KR_WORD; i += (int)(64 / sizeof(KR_REAL)))                                                 \
    word |= (uint64_t)(compared) << i

__attribute__((target("avx512f"))) static uint64_t KR_MASK_PASTE(mask_v4, KR_SUFFIX)(const KR_REAL *values,
                                                                                     KR_REAL low, KR_REAL high,
                                                                                     int missing)
{
    uint64_t word = 0;
    if (high == (KR_REAL)INFINITY) {
        if (missing)
            KR_ALL_COMPARED(KR_COMPARED(low, _CMP_NLE_UQ));
        else
            KR_ALL_COMPARED(KR_COMPARED(low, _CMP_GT_OQ));
    } else if (low == -(KR_REAL)INFINITY) {
        if (missing)
            KR_ALL_COMPARED(KR_COMPARED(high, _CMP_NGT_UQ));
        else
            KR_ALL_COMPARED(KR_COMPARED(high, _CMP_LE_OQ));
    } else if (missing) /* unordered comparisons: NaN passes both */
        KR_ALL_COMPARED(KR_COMPARED(low, _CMP_NLE_UQ) & KR_COMPARED(high, _CMP_NGT_UQ));
    else
        KR_ALL_COMPARED(KR_COMPARED(low, _CMP_GT_OQ) & KR_COMPARED(high, _CMP_LE_OQ));
    return word;
}
#undef KR_ALL_COMPARED
#undef KR_COMPARED

__attribute__((target("avx2"))) static uint64_t KR_MASK_PASTE(mask_v3, KR_SUFFIX)(const KR_REAL *values, KR_REAL low,
                                                                                  KR_REAL high, int missing)
{
    const KR_VEC256 lows = KR_MASK_PASTE(_mm256_set1, KR_SUFFIX)(low);
    const KR_VEC256 highs = KR_MASK_PASTE(_mm256_set1, KR_SUFFIX)(high);
    const KR_VEC256 pass_nan = KR_MASK_PASTE(_mm256_castsi256, KR_SUFFIX)(_mm256_set1_epi64x(missing ? -1 : 0));
    uint64_t word = 0;
    for (int i = 0; i < KR_WORD; i += (int)(32 / sizeof(KR_REAL))) {
        KR_VEC256 x = KR_MASK_PASTE(_mm256_loadu, KR_SUFFIX)(values + i);
        KR_VEC256 above = KR_MASK_PASTE(_mm256_cmp, KR_SUFFIX)(x, lows, _CMP_GT_OQ);
        KR_VEC256 below = KR_MASK_PASTE(_mm256_cmp, KR_SUFFIX)(x, highs, _CMP_LE_OQ);
        KR_VEC256 is_nan = KR_MASK_PASTE(_mm256_cmp, KR_SUFFIX)(x, x, _CMP_UNORD_Q);
        KR_VEC256 inside = KR_MASK_PASTE(_mm256_and, KR_SUFFIX)(above, below);
        inside = KR_MASK_PASTE(_mm256_or, KR_SUFFIX)(inside, KR_MASK_PASTE(_mm256_and, KR_SUFFIX)(is_nan, pass_nan));
        word |= (uint64_t)KR_MASK_PASTE(_mm256_movemask, KR_SUFFIX)(inside) << i;
    }
    return word;
}
#endif

static uint64_t KR_MASK_PASTE(mask_base, KR_SUFFIX)(const KR_REAL *values, KR_REAL low, KR_REAL high, int missing)
{
    unsigned char flags[KR_WORD];
    uint64_t word = 0;
    for (int i = 0; i < KR_WORD; i++) /* without branches, so that the compiler vectorises it */
        flags[i] = ((low < values[i]) & (values[i] <= high)) | ((values[i] != values[i]) & (missing != 0));
    for (int i = 0; i < KR_WORD; i++)
        word |= (uint64_t)flags[i] << i;
    return word;
}
