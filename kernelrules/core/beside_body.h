/* One level of beside.h. Included by beside.h only. */

static inline __attribute__((always_inline)) void KR_BESIDE_NAME(beside_of)(
    const int width, const int *indices, const double *data, ptrdiff_t n, const double *x, double *out)
{
    double sums[KR_BESIDE_MOST] = {0};
    for (ptrdiff_t e = 0; e < n; e++) {
        const double value = data[e], *row = x + (ptrdiff_t)indices[e] * width;
        for (int c = 0; c < width; c++)
            sums[c] += value * row[c];
    }
    for (int c = 0; c < width; c++)
        out[c] -= sums[c];
}

static void KR_BESIDE_NAME(beside)(const int *indices, const double *data, ptrdiff_t n, const double *x,
                                   ptrdiff_t width, double *out)
{
#define KR_BESIDE_CASE(w)                                                                                          \
    case w: KR_BESIDE_NAME(beside_of)(w, indices, data, n, x, out); return;
    switch (width) {
        KR_BESIDE_CASE(1)
        KR_BESIDE_CASE(2)
        KR_BESIDE_CASE(3)
        KR_BESIDE_CASE(4)
        KR_BESIDE_CASE(5)
        KR_BESIDE_CASE(6)
        KR_BESIDE_CASE(7)
        KR_BESIDE_CASE(8)
        KR_BESIDE_CASE(9)
        KR_BESIDE_CASE(10)
        KR_BESIDE_CASE(11)
        KR_BESIDE_CASE(12)
        KR_BESIDE_CASE(13)
        KR_BESIDE_CASE(14)
        KR_BESIDE_CASE(15)
        KR_BESIDE_CASE(16)
    }
#undef KR_BESIDE_CASE
    for (ptrdiff_t e = 0; e < n; e++)
        for (ptrdiff_t c = 0; c < width; c++)
            out[c] -= data[e] * x[indices[e] * width + c];
}
