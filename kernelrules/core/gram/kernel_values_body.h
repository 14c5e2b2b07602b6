/* One instruction-set level and float type of kernel_values.h. Included through levels.h only. */

#define EXP(x) KR_NAME(exp_negative)(x)
#define TANH(x) KR_NAME(tanh)(x)
#define POWER(x, n) KR_NAME(power)(x, n)
#define KR_KERNEL_VALUE(name, number, sum, parameters, unit, semidefinite, value)                                  \
    if (kind == number)                                                                                            \
        return value;

static inline VEC KR_NAME(kernel_value)(int kind, int degree, VEC gamma, VEC coef0, VEC s)
{
    KR_KERNELS(KR_KERNEL_VALUE)
    return s;
}

#undef EXP
#undef TANH
#undef POWER
#undef KR_KERNEL_VALUE

/* |x - z|² = |x|² + |z|² - 2 x·z, not below 0. */
static inline VEC KR_NAME(expand)(VEC product, VEC norm_i, VEC norm_j)
{
    VEC distance = (norm_i + norm_j) - 2 * product;
    return KR_NAME(only)(distance > 0, distance);
}

/* The loop with kind, expansion and small degrees as constants, so that the compiler makes one tight loop of each. */
static inline __attribute__((always_inline)) void KR_NAME(kernel_loop)(
    int kind, int expanded, int degree, const kr_kernel_function *function, KR_REAL norm_i, const KR_REAL *norm_j,
    KR_REAL *row, ptrdiff_t n)
{
    VEC gamma = KR_NAME(splat)(expanded ? 1 : (KR_REAL)function->gamma);
    VEC coef0 = KR_NAME(splat)((KR_REAL)function->coef0);
    VEC here = KR_NAME(splat)(norm_i), other = KR_NAME(splat)(0), s = KR_NAME(splat)(0);
    ptrdiff_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        s = KR_NAME(load)(row + j);
        if (expanded)
            s = KR_NAME(expand)(s, here, KR_NAME(load)(norm_j + j));
        KR_NAME(store)(row + j, KR_NAME(kernel_value)(kind, degree, gamma, coef0, s));
    }
    if (j < n) {
        s = KR_NAME(splat)(0);
        memcpy(&s, row + j, (size_t)(n - j) * sizeof(KR_REAL));
        if (expanded) {
            memcpy(&other, norm_j + j, (size_t)(n - j) * sizeof(KR_REAL));
            s = KR_NAME(expand)(s, here, other);
        }
        s = KR_NAME(kernel_value)(kind, degree, gamma, coef0, s);
        memcpy(row + j, &s, (size_t)(n - j) * sizeof(KR_REAL));
    }
}

/* row[j] := k as a function of the sum row[j]. norm_j is read for expanded squared distances only. */
static void KR_NAME(kernel_row)(const kr_kernel_function *function, KR_REAL norm_i, const KR_REAL *norm_j, KR_REAL *row,
                                ptrdiff_t n)
{
#define KR_LOOP(number, expanded, degree)                                                                          \
    KR_NAME(kernel_loop)(number, expanded, degree, function, norm_i, norm_j, row, n)
#define KR_KERNEL_CASE(name, number, sum, parameters, unit, semidefinite, value)                                   \
    case number:                                                                                                   \
        if (KR_SUM_##sum == KR_SUM_SQUARES && function->expanded)                                                  \
            KR_LOOP(number, 1, 0);                                                                                 \
        else if (!((parameters) & KR_DEGREE))                                                                      \
            KR_LOOP(number, 0, 0);                                                                                 \
        else if (function->degree == 2)                                                                            \
            KR_LOOP(number, 0, 2);                                                                                 \
        else if (function->degree == 3)                                                                            \
            KR_LOOP(number, 0, 3);                                                                                 \
        else                                                                                                       \
            KR_LOOP(number, 0, function->degree);                                                                  \
        return;
    switch (function->kind) {
        KR_KERNELS(KR_KERNEL_CASE)
    }
#undef KR_KERNEL_CASE
#undef KR_LOOP
}
