/* One level of csr_multivector.h. Included by csr_multivector.h only. */

static inline __attribute__((always_inline)) void KR_MULTIVECTOR_NAME(subtract_product_of_width)(
    const int width, const int *indices, const double *data, ptrdiff_t n, const double *x, double *out)
{
    double sums[KR_MULTIVECTOR_MAX_WIDTH] = {0};
    for (ptrdiff_t e = 0; e < n; e++) {
        const double value = data[e], *row = x + (ptrdiff_t)indices[e] * width;
        for (int c = 0; c < width; c++)
            sums[c] += value * row[c];
    }
    for (int c = 0; c < width; c++)
        out[c] -= sums[c];
}

static void KR_MULTIVECTOR_NAME(subtract_product)(const int *indices, const double *data, ptrdiff_t n, const double *x,
                                   ptrdiff_t width, double *out)
{
#define KR_MULTIVECTOR_CASE(w)                                                                                     \
    case w: KR_MULTIVECTOR_NAME(subtract_product_of_width)(w, indices, data, n, x, out); return;
    switch (width) {
        KR_MULTIVECTOR_CASE(1)
        KR_MULTIVECTOR_CASE(2)
        KR_MULTIVECTOR_CASE(3)
        KR_MULTIVECTOR_CASE(4)
        KR_MULTIVECTOR_CASE(5)
        KR_MULTIVECTOR_CASE(6)
        KR_MULTIVECTOR_CASE(7)
        KR_MULTIVECTOR_CASE(8)
        KR_MULTIVECTOR_CASE(9)
        KR_MULTIVECTOR_CASE(10)
        KR_MULTIVECTOR_CASE(11)
        KR_MULTIVECTOR_CASE(12)
        KR_MULTIVECTOR_CASE(13)
        KR_MULTIVECTOR_CASE(14)
        KR_MULTIVECTOR_CASE(15)
        KR_MULTIVECTOR_CASE(16)
    }
#undef KR_MULTIVECTOR_CASE
    for (ptrdiff_t e = 0; e < n; e++)
        for (ptrdiff_t c = 0; c < width; c++)
            out[c] -= data[e] * x[indices[e] * width + c];
}
