"""Gram matrices of data of which one operand or both are sparse (CSR).

Sparse × sparse goes by rows: the other operand is stored by columns as well, and for each entry of x_i the entries of
that feature in all z_j are added to the sums of row i. Dense × sparse goes by panels: PANEL_ROWS rows of the dense
operand lie side by side, feature by feature, and each entry of a sparse row is one step for all of them.

Every kernel needs a sum over the common entries only: x·z, and for the distances
    |x-z|²  = |x|² + |z|² - 2 sum x z           |x-z|_1 = |x|_1 + |z|_1 - 2 sum min(|x|, |z|) if the signs agree.
All sums are in float64. If gamma times the lengths of x and z is so large that the subtraction would leave too few
digits, lengths and sums are carried in two parts (error-free sums and products), which doubles the digits. If even
these are too few, the pairs whose values do not vanish are computed again from the differences of their entries.

Invariant: one task makes whole rows in a fixed order, so any number of threads gives the same bits.

References
----------
Ogita, T., Rump, S. M. and Oishi, S. (2005). "Accurate sum and dot product". SIAM Journal on Scientific Computing 26(6).
The sums in two parts.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.float cimport DBL_MAX
from libc.math cimport fabs, fma, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.gram.dense cimport MIRROR_COLUMNS, STREAM_MIN_BYTES, touch_fresh, write_mirrored
from kernelrules.core.gram.kernels cimport (
    KernelRow, evaluate_row, function_of_kernel, kernel_is_valid, row_of_kernel, vanishing_sum,
)
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.simd.dispatch cimport (
    KR_SUM_MAGNITUDES, KR_SUM_PRODUCTS, simd_table, stream_fence, write_row,
)
from kernelrules.core.base.status cimport BAD_ARGUMENT, NO_MEMORY, OK
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef enum:
    PANEL_ROWS = 8          # dense rows side by side: their sums stay in registers
    PANEL_CHUNK = 512       # sparse rows that meet a panel at a time: their sums stay in first-level cache
    STRIP_ROWS = 64         # rows of the result per task; mirrored together if it is symmetric

cdef double SAFE_NORM = 30.0        # gamma times the lengths up to which plain float64 keeps K to 3e-14
cdef double TWOFOLD_ERROR = 1.3e-32     # of sums in two parts, relative to the lengths, per term
cdef double MAX_EXPONENT_ERROR = 1e-14  # error of gamma times a distance above which it is computed again
cdef double EXP_ZERO = 760.0        # exp(-t) is 0 in either type beyond this t


# ---- sums ------------------------------------------------------------------------------------------------------

cdef inline double common(bint absolute, double a, double b) noexcept nogil:
    """Return the term of a common entry."""
    if absolute:
        return min(fabs(a), fabs(b)) if (a > 0) == (b > 0) else 0.0
    return a * b


cdef inline void add_twofold(bint absolute, double a, double b, double *high, double *low) noexcept nogil:
    """Add a common entry to a sum in two parts, without rounding error but in the lower part."""
    cdef double term = common(absolute, a, b)
    cdef double total = high[0] + term
    cdef double back = total - high[0]
    low[0] += (high[0] - (total - back)) + (term - back)
    if not absolute:
        low[0] += fma(a, b, -term)
    high[0] = total


cdef int find_norms(const CsrPlan *plan, CsrOperand *rows, const real_t *data) noexcept nogil:
    """Compute the length of every row in two parts, and the largest length and number of entries."""
    cdef Py_ssize_t i, e, first = 0, last = 0
    cdef double high, low
    rows.norms = <double *> calloc(2 * rows.n + 1, sizeof(double))
    if rows.norms == NULL:
        return NO_MEMORY
    for i in range(rows.n):
        entries_of(rows, i, &first, &last)
        high = low = 0
        for e in range(first, last):
            add_twofold(plan.absolute, data[e], data[e], &high, &low)
        rows.norms[2 * i] = high + low      # the nearest float64 to the length, then the remainder
        rows.norms[2 * i + 1] = low - (rows.norms[2 * i] - high)
        rows.largest_norm = max(rows.largest_norm, rows.norms[2 * i])
        rows.longest = max(rows.longest, last - first)
    return OK


cdef int norms_of(const CsrPlan *plan, CsrOperand *rows) noexcept nogil:
    if plan.single:
        return find_norms(plan, rows, <const float *> rows.data)
    return find_norms(plan, rows, <const double *> rows.data)


cdef int complete_plan(CsrPlan *plan, int level) noexcept nogil:
    """Complete a plan whose operands, type and kernel are set."""
    cdef const KernelRow *row
    cdef int status = OK
    if not kernel_is_valid(&plan.kernel):
        return BAD_ARGUMENT
    row = row_of_kernel(plan.kernel.kind)
    plan.simd = simd_table(level, plan.single)
    plan.distance = row.sum != KR_SUM_PRODUCTS
    plan.absolute = row.sum == KR_SUM_MAGNITUDES
    plan.unit_diagonal = row.unit
    plan.streamed = plan.x.n * plan.z.n * <double> (4 if plan.single else 8) > STREAM_MIN_BYTES
    plan.function = function_of_kernel(&plan.kernel, level)
    if plan.distance:
        plan.function.gamma = 1.0       # the distances are multiplied by gamma
        plan.vanishing = vanishing_sum(&plan.function, EXP_ZERO, plan.single)
        status = norms_of(plan, &plan.x)
        if plan.symmetric:
            plan.z.norms, plan.z.largest_norm, plan.z.longest = plan.x.norms, plan.x.largest_norm, plan.x.longest
        elif status == OK:
            status = norms_of(plan, &plan.z)
    return status


cdef void free_plan(CsrPlan *plan) noexcept nogil:
    if not plan.symmetric:
        free(plan.z.norms)
    free(plan.x.norms)


cdef bint needs_two_parts(const CsrPlan *plan, double norm, double largest_other) noexcept nogil:
    """Whether a plain sum could lose too many digits of a distance: its error is some ulps of the lengths, and grows
    with the number of terms."""
    cdef double terms = min(plan.x.longest, plan.z.longest)
    return plan.distance and not plan.kernel.gamma * (norm + largest_other) * sqrt(1 + terms / 32) <= SAFE_NORM


cdef double distance_between(const CsrPlan *plan, const CsrOperand *x, const real_t *x_data, Py_ssize_t i,
                             const CsrOperand *z, const real_t *z_data, Py_ssize_t j) noexcept nogil:
    """The distance from the differences of the entries: nothing cancels, and the sum is carried in two parts."""
    cdef RowMerge at = start_merge(x, i, z, j)
    cdef Py_ssize_t column = 0
    cdef double gap = 0, high = 0, low = 0
    while next_difference(x, x_data, z, z_data, &at, &column, &gap):
        add_twofold(plan.absolute, gap, gap, &high, &low)
    return high + low if high <= DBL_MAX else high


cdef void recompute_inexact(const CsrPlan *plan, const CsrOperand *x, Py_ssize_t i, const CsrOperand *z, Py_ssize_t j0,
                            Py_ssize_t n, real_t *row) noexcept nogil:
    """Compute gamma times the distance again wherever sums in two parts are too inexact and the value is not 0."""
    cdef double terms = 8 + min(x.longest, z.longest)
    cdef double doubt = plan.kernel.gamma * (x.norms[2 * i] + z.largest_norm) * terms * TWOFOLD_ERROR
    cdef Py_ssize_t j
    if doubt <= MAX_EXPONENT_ERROR:
        return
    for j in range(n):
        if not row[j] > plan.vanishing + doubt:
            row[j] = <real_t> (plan.kernel.gamma * distance_between(
                plan, x, <const real_t *> x.data, i, z, <const real_t *> z.data, j0 + j))


cdef void evaluate_sums(const CsrPlan *plan, const CsrOperand *x, Py_ssize_t i, const CsrOperand *z, Py_ssize_t j0,
                        Py_ssize_t n, const double *high, const double *low, real_t *row) noexcept nogil:
    """row[j] = k(x_i, z_(j0 + j)) from the sum over common entries; low is NULL if the sums have one part."""
    cdef double gamma = plan.kernel.gamma, size, back, gap
    cdef const double *norm
    cdef const double *others
    cdef Py_ssize_t j
    if not plan.distance:
        for j in range(n):
            row[j] = <real_t> high[j]
    else:
        norm, others = x.norms + 2 * i, z.norms + 2 * j0
        for j in range(n):
            size = norm[0] + others[2 * j]
            gap = size - 2 * high[j]
            if low != NULL:
                back = size - norm[0]
                gap += ((norm[0] - (size - back)) + (others[2 * j] - back) + norm[1] + others[2 * j + 1]) - 2 * low[j]
            row[j] = <real_t> (gamma * gap if gap > 0 else 0)
        if low != NULL:
            recompute_inexact(plan, x, i, z, j0, n, row)
    evaluate_row(&plan.function, <real_t> 0, NULL, row, n)


# ---- sparse × sparse -------------------------------------------------------------------------------------------

cdef inline Py_ssize_t entries_below(const int *rows, Py_ssize_t first, Py_ssize_t last, Py_ssize_t n) noexcept nogil:
    """The first entry with row n or more among the ascending rows[first:last]: the rest is left to the mirror image."""
    cdef Py_ssize_t middle
    if last == first or rows[last - 1] < n:
        return last
    while first < last:
        middle = first + (last - first) // 2
        if rows[middle] < n:
            first = middle + 1
        else:
            last = middle
    return first


cdef void sparse_row(const CsrPlan *plan, Py_ssize_t i, Py_ssize_t n, double *high, double *low,
                     real_t *row) noexcept nogil:
    """row[:n] = k(x_i, z_j) for j < n."""
    cdef const real_t *x = <const real_t *> plan.x.data
    cdef const real_t *z = <const real_t *> plan.columns.data
    cdef const int *rows = plan.columns.indices
    cdef Py_ssize_t a, b, first, last
    cdef double value
    cdef bint absolute = plan.absolute
    cdef bint two_parts = plan.distance and needs_two_parts(plan, plan.x.norms[2 * i], plan.z.largest_norm)
    memset(high, 0, n * sizeof(double))
    if two_parts:
        memset(low, 0, n * sizeof(double))
    for a in range(plan.x.indptr[i], plan.x.indptr[i + 1]):
        value = x[a]
        first = plan.columns.indptr[plan.x.indices[a]]
        last = entries_below(rows, first, plan.columns.indptr[plan.x.indices[a] + 1], n)
        if two_parts:
            for b in range(first, last):
                add_twofold(absolute, value, z[b], &high[rows[b]], &low[rows[b]])
        elif absolute:
            for b in range(first, last):
                high[rows[b]] += common(True, value, z[b])
        else:
            for b in range(first, last):
                high[rows[b]] += value * z[b]
    evaluate_sums(plan, &plan.x, i, &plan.z, 0, n, high, low if two_parts else NULL, row)


cdef void sparse_strip(const CsrPlan *plan, Py_ssize_t strip, real_t *out, Py_ssize_t stride_out,
                       double *work) noexcept nogil:
    """STRIP_ROWS rows; of a symmetric matrix up to the diagonal, and kept until they are mirrored."""
    cdef Py_ssize_t n = plan.z.n, i0 = strip * STRIP_ROWS, n_i = min(<Py_ssize_t> STRIP_ROWS, plan.x.n - i0)
    cdef Py_ssize_t i, j, width
    cdef real_t *rows = <real_t *> (work + 2 * n)
    cdef real_t *row = rows
    for i in range(i0, i0 + n_i):
        width = n
        if plan.symmetric:
            row, width = rows + (i - i0) * n, i + 1
        sparse_row(plan, i, width, work, work + n, row)
        if plan.symmetric and plan.unit_diagonal:
            row[i] = 1
        write_row(plan.simd, plan.streamed, row, out + i * stride_out, width)
    if plan.symmetric:
        write_mirrored(plan.simd, plan.streamed, rows, n, n_i, i0, rows + STRIP_ROWS * n, out + i0, stride_out)
        for i in range(i0, i0 + n_i):
            for j in range(i0, i):
                out[j * stride_out + i] = rows[(i - i0) * n + j]
    stream_fence()


# ---- dense × sparse --------------------------------------------------------------------------------------------

cdef void panel_sums(const CsrPlan *plan, const CsrOperand *sparse, const real_t *data, Py_ssize_t s,
                     const double *panel, bint two_parts, double *high, double *low) noexcept nogil:
    """The sums of sparse row s with each of the PANEL_ROWS dense rows, written PANEL_CHUNK numbers apart."""
    cdef double total[PANEL_ROWS]
    cdef double rest[PANEL_ROWS]
    cdef const double *values
    cdef Py_ssize_t e, d
    memset(total, 0, sizeof(total))
    memset(rest, 0, sizeof(rest))
    for e in range(sparse.indptr[s], sparse.indptr[s + 1]):
        values = panel + sparse.indices[e] * <Py_ssize_t> PANEL_ROWS
        if two_parts:
            for d in range(PANEL_ROWS):
                add_twofold(plan.absolute, values[d], data[e], &total[d], &rest[d])
        elif plan.absolute:
            for d in range(PANEL_ROWS):
                total[d] += common(True, values[d], data[e])
        else:
            for d in range(PANEL_ROWS):
                total[d] += values[d] * data[e]
    for d in range(PANEL_ROWS):
        high[d * PANEL_CHUNK], low[d * PANEL_CHUNK] = total[d], rest[d]


cdef void panel_strip(const CsrPlan *plan, Py_ssize_t strip, real_t *out, Py_ssize_t stride_out,
                      double *work) noexcept nogil:
    """PANEL_ROWS rows of the dense side against all rows of the sparse side."""
    cdef bint swapped = plan.x.indices != NULL         # then the dense side is z
    cdef const CsrOperand *dense = &plan.z if swapped else &plan.x
    cdef const CsrOperand *sparse = &plan.x if swapped else &plan.z
    cdef const real_t *data = <const real_t *> dense.data
    cdef Py_ssize_t p = dense.n_features, d0 = strip * PANEL_ROWS, n_d = min(<Py_ssize_t> PANEL_ROWS, dense.n - d0)
    cdef Py_ssize_t chunk, s0, n_s, s, k, d
    cdef double *panel = work
    cdef double *high = panel + p * PANEL_ROWS
    cdef double *low = high + PANEL_CHUNK * PANEL_ROWS
    cdef real_t *row = <real_t *> (low + PANEL_CHUNK * PANEL_ROWS)
    cdef bint two_parts = False
    for d in range(PANEL_ROWS):
        for k in range(p):
            panel[k * PANEL_ROWS + d] = data[(d0 + d) * dense.stride + k] if d < n_d else 0
        if plan.distance and d < n_d and needs_two_parts(plan, dense.norms[2 * (d0 + d)], sparse.largest_norm):
            two_parts = True
    for chunk in range((sparse.n + PANEL_CHUNK - 1) // PANEL_CHUNK):
        s0 = chunk * PANEL_CHUNK
        n_s = min(<Py_ssize_t> PANEL_CHUNK, sparse.n - s0)
        for s in range(n_s):
            panel_sums(plan, sparse, <const real_t *> sparse.data, s0 + s, panel, two_parts, high + s, low + s)
        for d in range(n_d):
            evaluate_sums(plan, dense, d0 + d, sparse, s0, n_s, high + d * PANEL_CHUNK,
                          low + d * PANEL_CHUNK if two_parts else NULL, row)
            for s in range(n_s):
                if swapped:
                    out[(s0 + s) * stride_out + d0 + d] = row[s]
                else:
                    out[(d0 + d) * stride_out + s0 + s] = row[s]


# ---- all rows --------------------------------------------------------------------------------------------------

cdef struct StripLoop:
    const CsrPlan *plan
    void *out
    Py_ssize_t stride_out
    double *work
    Py_ssize_t work_size    # numbers per thread
    bint both_sparse


cdef void make_strip(const StripLoop *loop, Py_ssize_t s, real_t *out, double *work) noexcept nogil:
    if loop.both_sparse:
        sparse_strip(loop.plan, s, out, loop.stride_out, work)
    else:
        panel_strip(loop.plan, s, out, loop.stride_out, work)


cdef void make_strips(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef StripLoop *loop = <StripLoop *> context
    cdef double *work = loop.work + worker * loop.work_size
    cdef Py_ssize_t s
    for s in range(first, last):
        if loop.plan.single:
            make_strip(loop, s, <float *> loop.out, work)
        else:
            make_strip(loop, s, <double *> loop.out, work)


cdef int run_strips(const CsrPlan *plan, Py_ssize_t first, Py_ssize_t last, void *out, Py_ssize_t stride_out,
                    int n_threads) noexcept nogil:
    cdef Py_ssize_t rows_kept = STRIP_ROWS if plan.symmetric else 1
    cdef StripLoop loop
    loop.plan, loop.out, loop.stride_out = plan, out, stride_out
    loop.both_sparse = plan.x.indices != NULL and plan.z.indices != NULL
    loop.work_size = (2 + rows_kept) * plan.z.n + STRIP_ROWS * MIRROR_COLUMNS
    if not loop.both_sparse:
        loop.work_size = PANEL_ROWS * (plan.x.n_features + 2 * PANEL_CHUNK) + PANEL_CHUNK
    loop.work = <double *> malloc(n_threads * loop.work_size * sizeof(double))
    if loop.work == NULL:
        return NO_MEMORY
    run_team(first, last, 1, n_threads, make_strips, &loop)
    free(loop.work)
    return OK


cdef int read_dense(CsrOperand *rows, const real_t[:, :] data) except -1:
    rows.n = data.shape[0]
    rows.data = &data[0, 0]
    rows.stride = max(data.strides[0] // <Py_ssize_t> sizeof(real_t), rows.n_features)
    return 0


cdef int read_entries(CsrOperand *rows, const real_t[::1] data) except -1:
    """An empty matrix has no first entry: any address serves, since none is read."""
    rows.data = &data[0] if data.shape[0] else <const void *> rows.indptr
    return 0


cdef int read_rows(CsrOperand *rows, source, Py_ssize_t n_features, bint single) except -1:
    """Point at the arrays of a dense matrix or of CSR data, which the caller keeps alive."""
    cdef const int[::1] indices
    cdef const Py_ssize_t[::1] indptr
    cdef const float[::1] entries_f
    cdef const double[::1] entries
    cdef const float[:, :] dense_f
    cdef const double[:, :] dense
    rows.n_features = n_features
    if hasattr(source, "indptr"):
        indices, indptr = source.indices, source.indptr
        rows.n = indptr.shape[0] - 1
        rows.indptr = &indptr[0]
        rows.indices = &indices[0] if indices.shape[0] else <const int *> rows.indptr
        if single:
            entries_f = source.data
            return read_entries(rows, entries_f)
        entries = source.data
        return read_entries(rows, entries)
    if single:
        dense_f = source
        return read_dense(rows, dense_f)
    dense = source
    return read_dense(rows, dense)


cdef Py_ssize_t count_strips(const CsrPlan *plan) noexcept nogil:
    """The number of tasks."""
    if plan.x.indices != NULL and plan.z.indices != NULL:
        return (plan.x.n + STRIP_ROWS - 1) // STRIP_ROWS
    return ((plan.z.n if plan.x.indices != NULL else plan.x.n) + PANEL_ROWS - 1) // PANEL_ROWS


def gram_csr(x, z, columns, Py_ssize_t n_features, kernel, real_t[:, :] out, int n_threads, tick=None,
             bint fresh=False, int level=-1):
    """Fill `out` with the Gram matrix of x and z, at least one of them sparse (z None: of x with itself).

    Sparse operands have attributes data, indices (int, ascending and unique in a row) and indptr (Py_ssize_t);
    `columns` holds z (or x) by columns in the same form, and is read if both are sparse. `kernel` is the tuple
    (kind, degree, gamma, coef0); the rest is as in `dense.gram_dense`.
    """
    cdef CsrPlan plan
    cdef Py_ssize_t n_strips, first = 0, last, step = n_threads, itemsize = sizeof(real_t)
    cdef Py_ssize_t stride_out = out.strides[0] // itemsize
    cdef int status
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    memset(&plan, 0, sizeof(CsrPlan))
    plan.symmetric = z is None
    plan.single = real_t is float
    read_rows(&plan.x, x, n_features, plan.single)
    read_rows(&plan.z, x if z is None else z, n_features, plan.single)
    if columns is not None:
        read_rows(&plan.columns, columns, plan.z.n, plan.single)
    plan.kernel.kind, plan.kernel.degree, plan.kernel.gamma, plan.kernel.coef0 = kernel
    n_strips = count_strips(&plan)
    level = simd_level() if level < 0 else min(level, simd_level())
    with nogil:
        status = complete_plan(&plan, level)
    try:
        if fresh and status == OK:
            touch_fresh(<char *> &out[0, 0], plan.x.n * plan.z.n * itemsize, n_threads)
        while status == OK and first < n_strips:
            started = perf_counter()
            last = min(first + step, n_strips)
            with nogil:
                status = run_strips(&plan, first, last, &out[0, 0], max(stride_out, plan.z.n), n_threads)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, n_strips)
    finally:
        free_plan(&plan)
    raise_for_status(status)
