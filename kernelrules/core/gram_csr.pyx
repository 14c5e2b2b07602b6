"""Gram matrices where one side or both are sparse (CSR).

Sparse × sparse goes by rows: with the other factor stored by columns (its transpose), the sums of row i grow by
walking, for each entry of x_i, the entries of that feature in all z_j. Dense × sparse goes by panels: PANEL rows of the
dense side stand side by side, feature by feature, and each entry of a sparse row is one step for all of them.

Every kernel needs a sum over the common entries only: x·z, and for the distances
    |x-z|²  = |x|² + |z|² - 2 sum x z           |x-z|_1 = |x|_1 + |z|_1 - 2 sum min(|x|, |z|) where the signs agree.
All sums are in float64. Where gamma times the sizes of x and z is so large that the subtraction would leave too few
digits, sizes and sums are carried in two parts (error-free sums and products), good to twice the digits. Where even
these are too few, the pairs whose values do not vanish are computed again from the differences of their entries.

Invariant: one task makes whole rows in a fixed order, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.float cimport DBL_MAX
from libc.math cimport fabs, fma, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.gram cimport (
    MIRRORED, STREAM_BYTES, finish_of, kernel_is_valid, put_mirrored, touch_fresh,
)
from kernelrules.core.machine cimport simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.simd cimport finish_row, pick, put_row, stream_fence
from kernelrules.core.status cimport BAD_ARGUMENT, LAPLACIAN, NO_MEMORY, OK, RBF
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef enum:
    PANEL = 8               # dense rows side by side
    CHUNK = 512             # sparse rows that meet a panel at a time
    STRIP = 64              # rows of the result made by one task, and mirrored where it is symmetric

cdef double SAFE_NORM = 30.0        # gamma times the sizes up to which plain float64 keeps K to 3e-14; see needs_care
cdef double TWOFOLD = 1.3e-32       # of the sizes and a term: what sums in two parts may lose
cdef double MOST_LOST = 1e-14       # of an exponent
cdef double VANISHED = 760.0        # exponents beyond which K is zero in either type


# ---- sums ------------------------------------------------------------------------------------------------------

cdef inline double common(bint absolute, double a, double b) noexcept nogil:
    """What a common entry adds to the sum."""
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


cdef int find_norms(const Plan *plan, Rows *rows, const real_t *example) noexcept nogil:
    cdef const real_t *data = <const real_t *> rows.data
    cdef Py_ssize_t i, e, first = 0, last = 0
    cdef double high, low
    rows.norms = <double *> calloc(2 * rows.n + 1, sizeof(double))
    if rows.norms == NULL:
        return NO_MEMORY
    for i in range(rows.n):
        bounds(rows, i, &first, &last)
        high = low = 0
        for e in range(first, last):
            add_twofold(plan.absolute, data[e], data[e], &high, &low)
        rows.norms[2 * i] = high + low      # the nearest float64 to the length, then what is missing
        rows.norms[2 * i + 1] = low - (rows.norms[2 * i] - high)
        rows.largest_norm = max(rows.largest_norm, rows.norms[2 * i])
        rows.longest = max(rows.longest, last - first)
    return OK


cdef int make_plan(Plan *plan, int level, const real_t *example) noexcept nogil:
    """Complete a plan whose operands and kernel are set."""
    cdef int status = OK
    if not kernel_is_valid(&plan.kernel):
        return BAD_ARGUMENT
    plan.simd = pick(level, example)
    plan.distance = plan.kernel.kind == RBF or plan.kernel.kind == LAPLACIAN
    plan.absolute = plan.kernel.kind == LAPLACIAN
    plan.streamed = plan.x.n * plan.z.n * <double> sizeof(real_t) > STREAM_BYTES
    plan.finish.finish = finish_of(&plan.kernel)
    plan.finish.degree, plan.finish.gamma, plan.finish.coef0 = plan.kernel.degree, plan.kernel.gamma, plan.kernel.coef0
    if plan.distance:
        plan.finish.gamma = 1.0         # the distances come multiplied by gamma
        status = find_norms(plan, &plan.x, example)
        if plan.symmetric:
            plan.z.norms, plan.z.largest_norm, plan.z.longest = plan.x.norms, plan.x.largest_norm, plan.x.longest
        elif status == OK:
            status = find_norms(plan, &plan.z, example)
    return status


cdef void free_plan(Plan *plan) noexcept nogil:
    if not plan.symmetric:
        free(plan.z.norms)
    free(plan.x.norms)


cdef bint needs_care(const Plan *plan, double norm, double largest_other) noexcept nogil:
    """Whether a plain sum could lose too many digits of a distance: it errs by ulps of the sizes, and by the more of
    them the more terms it has."""
    cdef double terms = min(plan.x.longest, plan.z.longest)
    return plan.distance and not plan.kernel.gamma * (norm + largest_other) * sqrt(1 + terms / 32) <= SAFE_NORM


cdef double distance_between(const Plan *plan, const Rows *x, Py_ssize_t i, const Rows *z, Py_ssize_t j,
                             const real_t *example) noexcept nogil:
    """From the differences of the entries: nothing cancels, and the sum is carried in two parts."""
    cdef Merge at
    cdef Py_ssize_t column = 0
    cdef double gap = 0, high = 0, low = 0
    start_merge(x, i, z, j, &at)
    while next_gap(x, z, &at, &column, &gap, example):
        add_twofold(plan.absolute, gap, gap, &high, &low)
    return high + low if high <= DBL_MAX else high


cdef void mend_lost(const Plan *plan, const Rows *x, Py_ssize_t i, const Rows *z, Py_ssize_t j0, Py_ssize_t n,
                    real_t *row) noexcept nogil:
    """Compute again the exponents that sums in two parts leave in doubt, and that are not too large to matter."""
    cdef double terms = 8 + min(x.longest, z.longest)
    cdef double doubt = plan.kernel.gamma * (x.norms[2 * i] + z.largest_norm) * terms * TWOFOLD
    cdef Py_ssize_t j
    if doubt <= MOST_LOST:
        return
    for j in range(n):
        if not row[j] > VANISHED + doubt:
            row[j] = <real_t> (plan.kernel.gamma * distance_between(plan, x, i, z, j0 + j, <const real_t *> row))


cdef void finish_sums(const Plan *plan, const Rows *x, Py_ssize_t i, const Rows *z, Py_ssize_t j0, Py_ssize_t n,
                      const double *high, const double *low, real_t *row) noexcept nogil:
    """row[j] = the kernel's value of x_i and z_(j0 + j) from the sum over common entries; low is NULL where the sums
    have one part."""
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
            mend_lost(plan, x, i, z, j0, n, row)
    finish_row(plan.simd, &plan.finish, <real_t> 0, NULL, row, n)


# ---- sparse × sparse -------------------------------------------------------------------------------------------

cdef inline Py_ssize_t entries_below(const int *rows, Py_ssize_t first, Py_ssize_t last, Py_ssize_t n) noexcept nogil:
    """Where the ascending rows[first:last] reach n: what lies beyond is the mirror image of a later row's work."""
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


cdef void sparse_row(const Plan *plan, Py_ssize_t i, Py_ssize_t n, double *high, double *low,
                     real_t *row) noexcept nogil:
    """row[:n] = k(x_i, z_j) for j < n."""
    cdef const real_t *x = <const real_t *> plan.x.data
    cdef const real_t *z = <const real_t *> plan.columns.data
    cdef const int *rows = plan.columns.indices
    cdef Py_ssize_t a, b, first, last
    cdef double value
    cdef bint absolute = plan.absolute
    cdef bint care = plan.distance and needs_care(plan, plan.x.norms[2 * i], plan.z.largest_norm)
    memset(high, 0, n * sizeof(double))
    if care:
        memset(low, 0, n * sizeof(double))
    for a in range(plan.x.indptr[i], plan.x.indptr[i + 1]):
        value = x[a]
        first = plan.columns.indptr[plan.x.indices[a]]
        last = entries_below(rows, first, plan.columns.indptr[plan.x.indices[a] + 1], n)
        if care:
            for b in range(first, last):
                add_twofold(absolute, value, z[b], &high[rows[b]], &low[rows[b]])
        elif absolute:
            for b in range(first, last):
                high[rows[b]] += common(True, value, z[b])
        else:
            for b in range(first, last):
                high[rows[b]] += value * z[b]
    finish_sums(plan, &plan.x, i, &plan.z, 0, n, high, low if care else NULL, row)


cdef void sparse_strip(const Plan *plan, Py_ssize_t strip, real_t *out, Py_ssize_t stride_out,
                       double *work) noexcept nogil:
    """STRIP rows; of a symmetric matrix up to the diagonal, and kept until they are mirrored."""
    cdef Py_ssize_t n = plan.z.n, i0 = strip * STRIP, n_i = min(<Py_ssize_t> STRIP, plan.x.n - i0), i, j, width
    cdef real_t *rows = <real_t *> (work + 2 * n)
    cdef real_t *row = rows
    for i in range(i0, i0 + n_i):
        width = n
        if plan.symmetric:
            row, width = rows + (i - i0) * n, i + 1
        sparse_row(plan, i, width, work, work + n, row)
        if plan.symmetric and plan.distance:
            row[i] = 1
        put_row(plan.simd, plan.streamed, row, out + i * stride_out, width)
    if plan.symmetric:
        put_mirrored(plan.simd, plan.streamed, rows, n, n_i, i0, rows + STRIP * n, out + i0, stride_out)
        for i in range(i0, i0 + n_i):
            for j in range(i0, i):
                out[j * stride_out + i] = rows[(i - i0) * n + j]
    stream_fence()


# ---- dense × sparse --------------------------------------------------------------------------------------------

cdef void panel_sums(const Plan *plan, const Rows *sparse, Py_ssize_t s, const double *panel, bint care, double *high,
                     double *low, const real_t *example) noexcept nogil:
    """The sums of sparse row s with each of the PANEL dense rows, CHUNK numbers apart."""
    cdef const real_t *data = <const real_t *> sparse.data
    cdef double total[PANEL]
    cdef double rest[PANEL]
    cdef const double *beside
    cdef Py_ssize_t e, d
    memset(total, 0, sizeof(total))
    memset(rest, 0, sizeof(rest))
    for e in range(sparse.indptr[s], sparse.indptr[s + 1]):
        beside = panel + sparse.indices[e] * <Py_ssize_t> PANEL
        if care:
            for d in range(PANEL):
                add_twofold(plan.absolute, beside[d], data[e], &total[d], &rest[d])
        elif plan.absolute:
            for d in range(PANEL):
                total[d] += common(True, beside[d], data[e])
        else:
            for d in range(PANEL):
                total[d] += beside[d] * data[e]
    for d in range(PANEL):
        high[d * CHUNK], low[d * CHUNK] = total[d], rest[d]


cdef void panel_strip(const Plan *plan, Py_ssize_t strip, real_t *out, Py_ssize_t stride_out,
                      double *work) noexcept nogil:
    """PANEL rows of the dense side against all rows of the sparse side."""
    cdef bint swapped = plan.x.indices != NULL         # then the dense side is z
    cdef const Rows *dense = &plan.z if swapped else &plan.x
    cdef const Rows *sparse = &plan.x if swapped else &plan.z
    cdef const real_t *data = <const real_t *> dense.data
    cdef Py_ssize_t p = dense.n_features, d0 = strip * PANEL, n_d = min(<Py_ssize_t> PANEL, dense.n - d0)
    cdef Py_ssize_t chunk, s0, n_s, s, k, d
    cdef double *panel = work
    cdef double *high = panel + p * PANEL
    cdef double *low = high + CHUNK * PANEL
    cdef real_t *row = <real_t *> (low + CHUNK * PANEL)
    cdef bint care = False
    for d in range(PANEL):
        for k in range(p):
            panel[k * PANEL + d] = data[(d0 + d) * dense.stride + k] if d < n_d else 0
        if plan.distance and d < n_d and needs_care(plan, dense.norms[2 * (d0 + d)], sparse.largest_norm):
            care = True
    for chunk in range((sparse.n + CHUNK - 1) // CHUNK):
        s0 = chunk * CHUNK
        n_s = min(<Py_ssize_t> CHUNK, sparse.n - s0)
        for s in range(n_s):
            panel_sums(plan, sparse, s0 + s, panel, care, high + s, low + s, out)
        for d in range(n_d):
            finish_sums(plan, dense, d0 + d, sparse, s0, n_s, high + d * CHUNK, low + d * CHUNK if care else NULL, row)
            for s in range(n_s):
                if swapped:
                    out[(s0 + s) * stride_out + d0 + d] = row[s]
                else:
                    out[(d0 + d) * stride_out + s0 + s] = row[s]


# ---- all of it -------------------------------------------------------------------------------------------------

cdef int run_strips(const Plan *plan, Py_ssize_t first, Py_ssize_t last, real_t *out, Py_ssize_t stride_out,
                    int n_threads) noexcept nogil:
    cdef bint both = plan.x.indices != NULL and plan.z.indices != NULL
    cdef Py_ssize_t rows_kept = STRIP if plan.symmetric else 1
    cdef Py_ssize_t numbers = (2 + rows_kept) * plan.z.n + STRIP * MIRRORED, s
    cdef double *work
    if not both:
        numbers = PANEL * (plan.x.n_features + 2 * CHUNK) + CHUNK
    work = <double *> malloc(n_threads * numbers * sizeof(double))
    if work == NULL:
        return NO_MEMORY
    n_threads = <int> max(<Py_ssize_t> 1, min(<Py_ssize_t> n_threads, last - first))
    for s in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=1):
        if both:
            sparse_strip(plan, s, out, stride_out, work + threadid() * numbers)
        else:
            panel_strip(plan, s, out, stride_out, work + threadid() * numbers)
    free(work)
    return OK


cdef int read_rows(Rows *rows, source, Py_ssize_t n_features, const real_t *example) except -1:
    """Point at the arrays of a dense matrix or of CSR data, which the caller keeps alive."""
    cdef const real_t[:, :] dense
    cdef const real_t[::1] data
    cdef const int[::1] indices
    cdef const Py_ssize_t[::1] indptr
    rows.n_features = n_features
    if hasattr(source, "indptr"):
        data, indices, indptr = source.data, source.indices, source.indptr
        rows.n = indptr.shape[0] - 1
        rows.indptr = &indptr[0]
        # An empty matrix has no first entry to point at; any address serves, since none is read.
        rows.data = &data[0] if data.shape[0] else <const void *> rows.indptr
        rows.indices = &indices[0] if indices.shape[0] else <const int *> rows.indptr
    else:
        dense = source
        rows.n = dense.shape[0]
        rows.data = &dense[0, 0]
        rows.stride = max(dense.strides[0] // <Py_ssize_t> sizeof(real_t), n_features)
    return 0


cdef Py_ssize_t count_strips(const Plan *plan) noexcept nogil:
    """How many tasks there are."""
    if plan.x.indices != NULL and plan.z.indices != NULL:
        return (plan.x.n + STRIP - 1) // STRIP
    return ((plan.z.n if plan.x.indices != NULL else plan.x.n) + PANEL - 1) // PANEL


def gram_csr(x, z, columns, Py_ssize_t n_features, kernel, real_t[:, :] out, int n_threads, tick=None,
             bint fresh=False, int level=-1):
    """Fill `out` with the Gram matrix of x and z, at least one of them sparse (z None: of x with itself).

    Sparse operands have attributes data, indices (int, ascending and unique in a row) and indptr (Py_ssize_t);
    `columns` holds z (or x) by columns in the same form, and is used where both are sparse. `kernel` is the tuple
    (kind, degree, gamma, coef0); the rest is as in `gram.gram_dense`.
    """
    cdef Plan plan
    cdef Py_ssize_t n_strips, first = 0, last, step = n_threads, itemsize = sizeof(real_t)
    cdef Py_ssize_t stride_out = out.strides[0] // itemsize
    cdef int status
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    memset(&plan, 0, sizeof(Plan))
    plan.symmetric = z is None
    read_rows(&plan.x, x, n_features, &out[0, 0])
    read_rows(&plan.z, x if z is None else z, n_features, &out[0, 0])
    if columns is not None:
        read_rows(&plan.columns, columns, plan.z.n, &out[0, 0])
    plan.kernel.kind, plan.kernel.degree, plan.kernel.gamma, plan.kernel.coef0 = kernel
    n_strips = count_strips(&plan)
    level = simd_level() if level < 0 else min(level, simd_level())
    with nogil:
        status = make_plan(&plan, level, &out[0, 0])
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
