"""The change of the gradient when some coefficients change: gradient += K[:, points] · coefficients.

Kernel rows come from a RowStore (rows.pyx), a batch at a time. The linear kernel has no rows: its change is
computed through w = Xᵀ·beta. Threads divide the gradient into parts that stay in the second-level cache.

Invariant: an entry of the gradient is summed in the order of the points, whatever the number of threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.svm.rows cimport (
    LINEAR_PRODUCTS, WHOLE_MATRIX, FeatureRows, KernelRows, RowStore, Segment, find_rows, threads_for,
)
from kernelrules.core.simd.dispatch cimport add_rows, dot
from kernelrules.core.base.status cimport NO_MEMORY, OK
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from kernelrules.core.base.status import raise_for_status

cdef enum:
    PART_POINTS = 1024          # entries of the gradient changed together: they stay in the second-level cache


cdef void add_features(const FeatureRows *data, Py_ssize_t point, double coefficient, double *w) noexcept nogil:
    cdef Py_ssize_t e
    for e in range(data.indptr[point], data.indptr[point + 1]):
        w[data.indices[e]] += coefficient * data.data[e]


cdef double sparse_dot(const FeatureRows *data, Py_ssize_t point, const double *w) noexcept nogil:
    cdef Py_ssize_t e
    cdef double total = 0
    for e in range(data.indptr[point], data.indptr[point + 1]):
        total += data.data[e] * w[data.indices[e]]
    return total


cdef void products_part(const RowStore *store, const Segment *segment, Py_ssize_t first, Py_ssize_t last,
                        double *gradient) noexcept nogil:
    cdef const FeatureRows *data = &store.features
    cdef Py_ssize_t k
    for k in range(first, last):
        if data.indices == NULL:
            gradient[segment.start + k] += dot(store.simd, data.data + (segment.point + k) * data.stride,
                                               store.w_change, data.n_features)
        else:
            gradient[segment.start + k] += sparse_dot(data, segment.point + k, store.w_change)


cdef struct GradientLoop:           # over parts of PART_POINTS entries of a segment of the gradient
    const RowStore *store
    const Segment *segment
    const double *coefficients
    Py_ssize_t n                    # rows to add
    const void **rows               # their addresses
    double *gradient


cdef void add_to_part(const GradientLoop *loop, Py_ssize_t part, const real_t **rows) noexcept nogil:
    cdef Py_ssize_t start = part * PART_POINTS
    add_rows(loop.store.simd, rows, loop.segment.point + start, loop.coefficients, loop.n,
             loop.gradient + loop.segment.start + start, min(<Py_ssize_t> PART_POINTS, loop.segment.n - start))


cdef void add_to_parts(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef GradientLoop *loop = <GradientLoop *> context
    cdef Py_ssize_t part
    for part in range(first, last):
        if loop.store.single:
            add_to_part(loop, part, <const float **> loop.rows)
        else:
            add_to_part(loop, part, <const double **> loop.rows)


cdef void add_products_to_parts(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef GradientLoop *loop = <GradientLoop *> context
    products_part(loop.store, loop.segment, first * PART_POINTS, min(last * PART_POINTS, loop.segment.n), loop.gradient)


cdef void add_rows_of(RowStore *store, const double *coefficients, Py_ssize_t n, const void **rows,
                      const Segment *segments, int n_segments, double *gradient) noexcept nogil:
    """gradient += Σ coefficient · row."""
    cdef GradientLoop loop
    cdef int s
    loop.store, loop.coefficients, loop.n, loop.rows = store, coefficients, n, rows
    loop.gradient = gradient
    for s in range(n_segments):
        loop.segment = segments + s
        run_team(0, (segments[s].n + PART_POINTS - 1) // PART_POINTS, 0, threads_for(store, segments[s].n * 0.3 * n),
                 add_to_parts, &loop)


cdef void add_products(RowStore *store, const Py_ssize_t *points, const double *coefficients, Py_ssize_t n,
                       const Segment *segments, int n_segments, double *gradient) noexcept nogil:
    """gradient += X·(Xᵀ·coefficients), for the linear kernel."""
    cdef const FeatureRows *data = &store.features
    cdef const double *features
    cdef Py_ssize_t i
    cdef double point_ns = 0.2 * data.n_features if data.indices == NULL else 100.0
    cdef GradientLoop loop
    cdef int s
    memset(store.w_change, 0, data.n_features * sizeof(double))
    for i in range(n):
        if data.indices == NULL:
            features = data.data + points[i] * data.stride
            add_rows(store.simd, &features, 0, coefficients + i, 1, store.w_change, data.n_features)
        else:
            add_features(data, points[i], coefficients[i], store.w_change)
    loop.store, loop.gradient = store, gradient
    for s in range(n_segments):
        loop.segment = segments + s
        run_team(0, (segments[s].n + PART_POINTS - 1) // PART_POINTS, 0, threads_for(store, segments[s].n * point_ns),
                 add_products_to_parts, &loop)


cdef Py_ssize_t kept_first(const RowStore *store, Py_ssize_t *points, double *coefficients,
                           Py_ssize_t n) noexcept nogil:
    """Move the points whose rows are cached to the front. Returns their number."""
    cdef Py_ssize_t i, n_kept = 0
    for i in range(n):
        if store.slot_of[points[i]] >= 0:
            points[i], points[n_kept] = points[n_kept], points[i]
            coefficients[i], coefficients[n_kept] = coefficients[n_kept], coefficients[i]
            n_kept += 1
    return n_kept


cdef int add_change(RowStore *store, Py_ssize_t *points, double *coefficients, Py_ssize_t n, const void **rows,
                    const Segment *segments, int n_segments, double *gradient) noexcept nogil:
    """gradient += K[:, points] · coefficients, for the variables of all segments. `rows` is a buffer of n
    addresses; points and coefficients may be reordered.

    Cached rows are added first. If the cache cannot hold all rows, new ones replace at most half of it, and then one
    another: otherwise a solver that uses more points than slots in each round would never find a cached row."""
    cdef Py_ssize_t n_kept, first = 0, batch, head
    cdef Py_ssize_t most = store.n_slots if store.n_slots >= store.n else max(store.n_slots // 2, <Py_ssize_t> 1)
    cdef int status
    if store.kind == LINEAR_PRODUCTS:
        add_products(store, points, coefficients, n, segments, n_segments, gradient)
        return OK
    n_kept = n if store.kind == WHOLE_MATRIX else kept_first(store, points, coefficients, n)
    while first < n:
        batch = n_kept if first < n_kept else min(n - first, most)
        head = store.head
        status = find_rows(store, points + first, batch, rows)
        if status != OK:
            return status
        add_rows_of(store, coefficients + first, batch, rows, segments, n_segments, gradient)
        first += batch
        if first < n:
            store.head = head
    return OK


def multiply(KernelRows rows, const double[::1] beta, double[::1] out, runs):
    """out += K·beta at runs (first point, length) of points, from a whole matrix or from products."""
    cdef Py_ssize_t n = rows.store.n, i, n_used = 0, chunk, first, last, n_out = 0
    cdef int n_runs = <int> len(runs)
    cdef Segment *segments = <Segment *> malloc((n_runs + 1) * sizeof(Segment))
    cdef Py_ssize_t *points = <Py_ssize_t *> malloc(n * sizeof(Py_ssize_t))
    cdef double *used = <double *> malloc(n * sizeof(double))
    cdef const void **addresses = <const void **> malloc(n * sizeof(void *))
    cdef bint any_missing = segments == NULL or points == NULL or used == NULL or addresses == NULL
    cdef int status = NO_MEMORY if any_missing else OK
    try:
        raise_for_status(status)
        for i in range(n_runs):
            segments[i].point, segments[i].n = runs[i]
            segments[i].start, segments[i].group = n_out, 0
            n_out += segments[i].n
        for i in range(n):
            if beta[i] != 0:
                points[n_used], used[n_used] = i, beta[i]
                n_used += 1
        for chunk in range((n_used + PART_POINTS - 1) // PART_POINTS if n_out > 0 else 0):
            first, last = chunk * PART_POINTS, min((chunk + 1) * PART_POINTS, n_used)
            with nogil:
                status = add_change(&rows.store, points + first, used + first, last - first, addresses, segments,
                                    n_runs, &out[0])
            raise_for_status(status)
            PyErr_CheckSignals()
    finally:
        free(segments)
        free(points)
        free(used)
        free(addresses)
