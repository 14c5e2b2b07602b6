"""Row sources of the SMO solver: where kernel values come from, and which of them are kept.

    WHOLE      the matrix is in memory: a row is an address
    CACHED     rows are computed in batches, so that a supplier can use matrix products, and kept in a ring of slots
    PRODUCTS   the linear kernel: K·beta = X·(Xᵀ·beta), so no row is ever made; blocks between few points are

Suppliers of rows are dense data, sparse data, or a kr_row_source of the caller's. All kernel values of a store have one
type, float32 for kernels bounded by 1 and float64 for the others.

Invariant: nothing depends on the number of threads. Rows do not depend on what else was asked for before; the order in
which they are added to gradients does, where only some of them can be kept.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core cimport gram_csr
from kernelrules.core.blocks cimport give_back, take
from kernelrules.core.gram cimport TILE, fill_gram, fill_rows, fill_square, free_plan, plan_rows
from kernelrules.core.machine cimport simd_level
from kernelrules.core.simd cimport KR_SUM_PRODUCTS, add_rows, dot, pick
from kernelrules.core.status cimport BAD_ARGUMENT, CALLBACK, LINEAR, NO_MEMORY, OK, kr_kernel
from kernelrules.core.types cimport real_t

from kernelrules.core.status import raise_for_status

cdef enum:
    PART = 1024                 # points whose gradients are changed together, in second-level cache
    WORTH = 200000              # nanoseconds of work that are worth a thread
    CHUNK_BYTES = 128 << 20     # memory for rows is taken in such pieces: a few, which are kept for the next fit


cdef int threads_for(const Store *store, double nanoseconds) noexcept nogil:
    """Threads that pay for so much work: waiting for one that a busy machine keeps from running costs more than a
    fraction of a millisecond saves."""
    return <int> max(1.0, min(<double> store.n_threads, nanoseconds / WORTH))


# ---- rows ------------------------------------------------------------------------------------------------------

cdef double row_cost(const Store *store) noexcept nogil:
    """Nanoseconds that a thread takes for a row, about; 0 where a caller supplies it."""
    cdef double entries
    if store.dense != NULL:
        return store.n * (1 + (0.03 if store.dense.sum == KR_SUM_PRODUCTS else 0.15) * store.dense.n_features)
    if store.sparse == NULL:
        return 0.0
    entries = store.sparse.x.indptr[store.n]    # each of a row's meets those of its column
    return 5.0 * store.n + 2 * entries / store.n * (entries / store.sparse.x.n_features)


cdef int compute_rows(Store *store, const Py_ssize_t *points, Py_ssize_t n_points, real_t *out) noexcept nogil:
    """Rows of the points, one after the other, by whoever supplies them."""
    cdef Py_ssize_t n = store.n, r
    cdef double *work
    cdef int status = OK, n_threads
    store.n_computed += n_points
    if store.dense != NULL:
        store.dense.n_threads = threads_for(store, n_points * row_cost(store))
        return fill_rows(store.dense, points, n_points, out)
    if store.sparse != NULL:
        work = <double *> malloc(store.n_threads * 2 * n * sizeof(double))
        if work == NULL:
            return NO_MEMORY
        n_threads = threads_for(store, n_points * row_cost(store))
        for r in prange(n_points, num_threads=n_threads, schedule="dynamic", chunksize=4):
            gram_csr.sparse_row(store.sparse, points[r], n, work + threadid() * 2 * n, work + (threadid() * 2 + 1) * n,
                                out + r * n)
            if store.sparse.distance:
                out[r * n + points[r]] = 1
        free(work)
        return OK
    if real_t is double:
        status = store.source.fill(store.source.state, points, n_points, out)
        return CALLBACK if status > 0 else status
    else:
        return BAD_ARGUMENT


cdef Py_ssize_t list_missing(Store *store, const Py_ssize_t *points, Py_ssize_t n) noexcept nogil:
    """Points whose rows are not there, or would be overwritten by those: they are written again with the others."""
    cdef Py_ssize_t n_missing = 0, before = -1, i, slot
    while before != n_missing:
        before = n_missing
        n_missing = 0
        for i in range(n):
            slot = store.slot_of[points[i]]
            if slot < 0 or (slot - store.head + store.n_slots) % store.n_slots < before:
                store.missing[n_missing] = points[i]
                n_missing += 1
    return n_missing


cdef inline real_t *slot_at(const Store *store, Py_ssize_t slot, const real_t *example) noexcept nogil:
    return <real_t *> store.chunks[slot // store.chunk_slots] + slot % store.chunk_slots * store.n


cdef void empty_slots(Store *store, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    """Forget what is in these slots."""
    cdef Py_ssize_t slot
    for slot in range(first, first + n):
        if store.point_in[slot] >= 0:
            store.slot_of[store.point_in[slot]] = -1
            store.point_in[slot] = -1


cdef int fill_slots(Store *store, const Py_ssize_t *points, Py_ssize_t n, const real_t *example) noexcept nogil:
    """Compute rows into the next n slots, which lie in one chunk."""
    cdef Py_ssize_t chunk = store.head // store.chunk_slots, r, room
    cdef int status
    if store.chunks[chunk] == NULL:
        room = min(store.chunk_slots, store.n_slots - chunk * store.chunk_slots)
        store.chunks[chunk] = take(room * store.n * sizeof(real_t))
        if store.chunks[chunk] == NULL:
            return NO_MEMORY
    empty_slots(store, store.head, n)
    status = compute_rows(store, points, n, slot_at(store, store.head, example))
    if status != OK:
        return status
    for r in range(n):
        store.point_in[store.head + r] = points[r]
        store.slot_of[points[r]] = store.head + r
    store.head = (store.head + n) % store.n_slots
    return OK


cdef int find_rows(Store *store, const Py_ssize_t *points, Py_ssize_t n, const real_t **rows) noexcept nogil:
    """rows[i] = where the kernel row of points[i] is, until the next call. The points differ, and fit the slots."""
    cdef Py_ssize_t i, batch, done = 0, n_missing
    cdef const real_t *example = NULL
    cdef int status
    if store.kind == WHOLE:
        for i in range(n):
            rows[i] = <const real_t *> store.matrix + points[i] * store.stride
        return OK
    if n > store.n_slots:
        return BAD_ARGUMENT
    n_missing = list_missing(store, points, n)
    for i in range(n_missing):
        if store.slot_of[store.missing[i]] >= 0:
            empty_slots(store, store.slot_of[store.missing[i]], 1)
    while done < n_missing:                 # to the end of a chunk, or of the ring
        batch = min(store.n_slots - store.head, store.chunk_slots - store.head % store.chunk_slots)
        batch = min(batch, n_missing - done)
        status = fill_slots(store, store.missing + done, batch, example)
        if status != OK:
            return status
        done += batch
    for i in range(n):
        rows[i] = slot_at(store, store.slot_of[points[i]], example)
    return OK


# ---- blocks ----------------------------------------------------------------------------------------------------

cdef void gather_row(const real_t *row, const Py_ssize_t *points, Py_ssize_t n, real_t *out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = row[points[j]]


cdef int sort_entries(Store *store, const Py_ssize_t *points, Py_ssize_t n) noexcept nogil:
    """The entries of the points' sparse rows by feature: order holds (member, entry) pairs, starts where each feature
    begins."""
    cdef const Data *data = &store.data
    cdef Py_ssize_t i, e, total = 0, p = data.n_features, at
    for i in range(n):
        total += data.indptr[points[i] + 1] - data.indptr[points[i]]
    if 2 * total > store.n_entries:
        free(store.order)
        store.n_entries = 2 * total
        store.order = <Py_ssize_t *> malloc(store.n_entries * sizeof(Py_ssize_t))
        if store.order == NULL:
            store.n_entries = 0
            return NO_MEMORY
    memset(store.starts, 0, (p + 2) * sizeof(Py_ssize_t))
    for i in range(n):
        for e in range(data.indptr[points[i]], data.indptr[points[i] + 1]):
            store.starts[data.indices[e] + 2] += 1
    for i in range(2, p + 2):
        store.starts[i] += store.starts[i - 1]
    for i in range(n):
        for e in range(data.indptr[points[i]], data.indptr[points[i] + 1]):
            at = store.starts[data.indices[e] + 1]
            store.order[2 * at], store.order[2 * at + 1] = i, e
            store.starts[data.indices[e] + 1] = at + 1
    return OK


cdef void sparse_products(const Store *store, Py_ssize_t point, Py_ssize_t n, double *row) noexcept nogil:
    """row[j] = x_point · x of the j-th of the points that sort_entries saw."""
    cdef const Data *data = &store.data
    cdef Py_ssize_t e, a
    memset(row, 0, n * sizeof(double))
    for e in range(data.indptr[point], data.indptr[point + 1]):
        for a in range(store.starts[data.indices[e]], store.starts[data.indices[e] + 1]):
            row[store.order[2 * a]] += data.data[e] * data.data[store.order[2 * a + 1]]


cdef int products_block(Store *store, const Py_ssize_t *points, Py_ssize_t n, const Py_ssize_t *before,
                        const double *old, Py_ssize_t n_old, double *block) noexcept nogil:
    """Inner products between the points. before[i] is the place of point i in the block made last, or -1: what stood
    there is copied."""
    cdef const Data *data = &store.data
    cdef kr_kernel linear
    cdef Py_ssize_t i, j, p = data.n_features
    cdef double *gathered
    cdef int status = OK, n_threads
    if data.indices == NULL:
        linear.kind, linear.degree, linear.gamma, linear.coef0 = LINEAR, 0, 1.0, 0.0
        gathered = <double *> malloc(n * p * sizeof(double))
        if gathered == NULL:
            return NO_MEMORY
        for i in range(n):
            memcpy(gathered + i * p, data.data + points[i] * data.stride, p * sizeof(double))
        status = fill_gram(gathered, n, p, <const double *> NULL, 0, 0, p, &linear, block, n,
                           threads_for(store, n * n * (0.5 + 0.02 * p)))
        free(gathered)
        return status
    status = sort_entries(store, points, n)
    if status != OK:
        return status
    n_threads = threads_for(store, n * <double> n * 5)
    for i in prange(n, num_threads=n_threads, schedule="dynamic", chunksize=8):
        if before[i] < 0:
            sparse_products(store, points[i], n, block + i * n)
        else:
            for j in range(n):
                if before[j] >= 0:
                    block[i * n + j] = old[before[i] * n_old + before[j]]
    for i in range(n):
        if before[i] >= 0:
            for j in range(n):
                if before[j] < 0:
                    block[i * n + j] = block[j * n + i]
    return OK


cdef int find_block(Store *store, const Py_ssize_t *points, Py_ssize_t n, const real_t **rows, const Py_ssize_t *before,
                    const real_t *old, Py_ssize_t n_old, real_t *block) noexcept nogil:
    """block[i, j] = k of points i and j. `rows` is room for n addresses; `before`, `old`: as in products_block."""
    cdef Py_ssize_t i
    cdef int status, n_threads = threads_for(store, n * <double> n)
    if store.kind == PRODUCTS:
        if real_t is double:
            store.n_computed += n
            return products_block(store, points, n, before, old, n_old, block)
        else:
            return BAD_ARGUMENT
    if store.dense != NULL:         # computed anew: that takes less time than finding them in rows all over memory
        store.dense.n_threads = threads_for(store, 0.5 * n / store.n * n * row_cost(store))
        return fill_square(store.dense, points, n, block)
    status = find_rows(store, points, n, rows)
    if status != OK:
        return status
    for i in prange(n, num_threads=n_threads, schedule="static"):
        gather_row(rows[i], points, n, block + i * n)
    return OK


# ---- changes of the gradient -----------------------------------------------------------------------------------

cdef void add_features(const Data *data, Py_ssize_t point, double coefficient, double *w) noexcept nogil:
    cdef Py_ssize_t e
    for e in range(data.indptr[point], data.indptr[point + 1]):
        w[data.indices[e]] += coefficient * data.data[e]


cdef double sparse_dot(const Data *data, Py_ssize_t point, const double *w) noexcept nogil:
    cdef Py_ssize_t e
    cdef double total = 0
    for e in range(data.indptr[point], data.indptr[point + 1]):
        total += data.data[e] * w[data.indices[e]]
    return total


cdef void products_part(const Store *store, const Segment *segment, Py_ssize_t first, Py_ssize_t last,
                        double *gradient) noexcept nogil:
    cdef const Data *data = &store.data
    cdef Py_ssize_t k
    for k in range(first, last):
        if data.indices == NULL:
            gradient[segment.start + k] += dot(store.simd, data.data + (segment.point + k) * data.stride, store.change,
                                               data.n_features)
        else:
            gradient[segment.start + k] += sparse_dot(data, segment.point + k, store.change)


cdef void add_rows_of(Store *store, const double *coefficients, Py_ssize_t n, const real_t **rows,
                      const Segment *segments, int n_segments, double *gradient) noexcept nogil:
    """gradient += the rows times their coefficients."""
    cdef Py_ssize_t part, length
    cdef int s, n_threads
    for s in range(n_segments):
        length = segments[s].n
        n_threads = threads_for(store, length * 0.3 * n)
        for part in prange((length + PART - 1) // PART, num_threads=n_threads, schedule="static"):
            add_rows(store.simd, rows, segments[s].point + part * PART, coefficients, n,
                     gradient + segments[s].start + part * PART, min(<Py_ssize_t> PART, length - part * PART))


cdef void add_products(Store *store, const Py_ssize_t *points, const double *coefficients, Py_ssize_t n,
                       const Segment *segments, int n_segments, double *gradient) noexcept nogil:
    """The same for the linear kernel: gradient += X·(Xᵀ·coefficients)."""
    cdef const Data *data = &store.data
    cdef const double *features
    cdef Py_ssize_t i, part, length
    cdef double each = 0.2 * data.n_features if data.indices == NULL else 100.0
    cdef int s, n_threads
    memset(store.change, 0, data.n_features * sizeof(double))
    for i in range(n):
        if data.indices == NULL:
            features = data.data + points[i] * data.stride
            add_rows(store.simd, &features, 0, coefficients + i, 1, store.change, data.n_features)
        else:
            add_features(data, points[i], coefficients[i], store.change)
    for s in range(n_segments):
        length = segments[s].n
        n_threads = threads_for(store, length * each)
        for part in prange((length + PART - 1) // PART, num_threads=n_threads, schedule="static"):
            products_part(store, &segments[s], part * PART, min((part + 1) * PART, length), gradient)


cdef Py_ssize_t kept_first(const Store *store, Py_ssize_t *points, double *coefficients,
                           Py_ssize_t n) noexcept nogil:
    """Bring the points whose rows are there to the front; how many they are."""
    cdef Py_ssize_t i, n_kept = 0
    for i in range(n):
        if store.slot_of[points[i]] >= 0:
            points[i], points[n_kept] = points[n_kept], points[i]
            coefficients[i], coefficients[n_kept] = coefficients[n_kept], coefficients[i]
            n_kept += 1
    return n_kept


cdef int add_change(Store *store, Py_ssize_t *points, double *coefficients, Py_ssize_t n, const real_t **rows,
                    const Segment *segments, int n_segments, double *gradient) noexcept nogil:
    """gradient += K[:, points] · coefficients, for the variables of all segments. `rows` is room for n addresses;
    points and coefficients may come back in another order.

    Rows that are there come first. Where not all can be kept, others take the place of half of them, and then that of
    each other: a solver that goes through more points than there are slots, round after round, would else find none of
    them again."""
    cdef Py_ssize_t n_kept, first = 0, batch, head
    cdef Py_ssize_t most = store.n_slots if store.n_slots >= store.n else max(store.n_slots // 2, <Py_ssize_t> 1)
    cdef int status
    if store.kind == PRODUCTS:
        add_products(store, points, coefficients, n, segments, n_segments, gradient)
        return OK
    n_kept = n if store.kind == WHOLE else kept_first(store, points, coefficients, n)
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


# ---- made from Python ------------------------------------------------------------------------------------------

cdef int ask_python(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept nogil:
    """kr_row_source.fill of a Python supplier."""
    with gil:
        return call_supplier(<KernelRows> state, rows, n_rows, out)


cdef int call_supplier(KernelRows self, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept:
    cdef Py_ssize_t n = self.store.n
    try:
        wanted = <Py_ssize_t[:n_rows]> rows
        self.supplier(wanted, <double[:n_rows, :n]> out)
    except BaseException as error:
        self.failure = error
        return CALLBACK
    return OK


cdef class KernelRows:
    """A store of kernel rows, made by one of the functions below; `single` says that values are float32."""

    def __cinit__(self):
        memset(&self.store, 0, sizeof(Store))
        memset(&self.dense, 0, sizeof(DensePlan))
        memset(&self.sparse, 0, sizeof(SparsePlan))

    def __dealloc__(self):
        if self.store.dense != NULL:
            free_plan(&self.dense)
        if self.store.sparse != NULL:
            gram_csr.free_plan(&self.sparse)
        free_slots(&self.store)
        free(self.store.change)
        free(self.store.order)
        free(self.store.starts)

    @property
    def n(self):
        """Points."""
        return self.store.n

    @property
    def n_computed(self):
        """Rows computed so far."""
        return self.store.n_computed

    def add_computed(self, Py_ssize_t n_rows):
        """Count rows that another process computed of the same kernel."""
        self.store.n_computed += n_rows

    def give_failure(self):
        """What a Python supplier raised, or None; forgotten once told."""
        failure, self.failure = self.failure, None
        return failure


cdef int start(KernelRows rows, StoreKind kind, Py_ssize_t n, int n_threads, const real_t[::1] diagonal) except -1:
    rows.store.kind, rows.store.n, rows.store.n_threads = kind, n, n_threads
    rows.kind = kind
    rows.single = real_t is float
    rows.store.diagonal = &diagonal[0]
    rows.store.simd = pick(simd_level(), &diagonal[0])
    return 0


cdef int make_slots(Store *store, Py_ssize_t n_slots, Py_ssize_t itemsize) noexcept nogil:
    """Room for rows to be kept, of which memory is taken when it is used. free_slots() must follow."""
    cdef Py_ssize_t n = store.n, i
    n_slots = min(max(n_slots, <Py_ssize_t> 2), n)      # a step needs two
    store.n_slots = n_slots
    store.chunk_slots = min(n_slots, max(<Py_ssize_t> 2 * TILE, CHUNK_BYTES // (n * itemsize)))
    store.chunks = <void **> calloc((n_slots - 1) // store.chunk_slots + 1, sizeof(void *))
    store.slot_of = <Py_ssize_t *> malloc(n * sizeof(Py_ssize_t))
    store.point_in = <Py_ssize_t *> malloc(n_slots * sizeof(Py_ssize_t))
    store.missing = <Py_ssize_t *> malloc(n * sizeof(Py_ssize_t))
    if store.chunks == NULL or store.slot_of == NULL or store.point_in == NULL or store.missing == NULL:
        return NO_MEMORY
    for i in range(n):
        store.slot_of[i] = -1
    for i in range(n_slots):
        store.point_in[i] = -1
    return OK


cdef void free_slots(Store *store) noexcept nogil:
    cdef Py_ssize_t chunk
    if store.chunks != NULL:
        for chunk in range((store.n_slots - 1) // store.chunk_slots + 1):
            give_back(store.chunks[chunk])
    free(store.chunks)
    free(store.slot_of)
    free(store.point_in)
    free(store.missing)


def whole_matrix(const real_t[:, :] matrix, const real_t[::1] diagonal, int n_threads):
    """The matrix itself, its rows without gaps."""
    cdef KernelRows rows = KernelRows()
    start(rows, WHOLE, matrix.shape[0], n_threads, diagonal)
    rows.store.matrix = &matrix[0, 0]
    rows.store.stride = matrix.strides[0] // <Py_ssize_t> sizeof(real_t)
    rows.kept = (matrix, diagonal)
    return rows


def cached_rows(x, columns, kernel, const real_t[::1] diagonal, Py_ssize_t n_slots, int n_threads):
    """Rows of a kernel of dense data, or of sparse data with its columns, at most n_slots of them kept."""
    cdef KernelRows rows = KernelRows()
    cdef const real_t[:, :] data
    cdef kr_kernel spec
    cdef Py_ssize_t n = diagonal.shape[0], p = x.shape[1]
    cdef int status, level = simd_level()
    start(rows, CACHED, n, n_threads, diagonal)
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    if columns is None:
        data = x
        rows.store.dense = &rows.dense
        status = plan_rows(&rows.dense, &data[0, 0], n, max(data.strides[0] // <Py_ssize_t> sizeof(real_t), p), p,
                           &spec, level, n_threads)
    else:
        rows.store.sparse = &rows.sparse
        rows.sparse.kernel, rows.sparse.symmetric = spec, True
        gram_csr.read_rows(&rows.sparse.x, x, p, &diagonal[0])
        gram_csr.read_rows(&rows.sparse.z, x, p, &diagonal[0])
        gram_csr.read_rows(&rows.sparse.columns, columns, n, &diagonal[0])
        status = gram_csr.make_plan(&rows.sparse, level, &diagonal[0])
    raise_for_status(status)
    raise_for_status(make_slots(&rows.store, n_slots, sizeof(real_t)))
    rows.kept = (x, columns, diagonal)
    return rows


def supplied_rows(supplier, const double[::1] diagonal, Py_ssize_t n_slots):
    """Rows from a Python function, supplier(rows, out), which fills `out` with them."""
    cdef KernelRows rows = KernelRows()
    start(rows, CACHED, diagonal.shape[0], 1, diagonal)
    rows.supplier = supplier
    rows.source.state, rows.source.fill = <void *> rows, ask_python
    rows.store.source = &rows.source
    raise_for_status(make_slots(&rows.store, n_slots, sizeof(double)))
    rows.kept = diagonal
    return rows


def linear_products(x, const double[::1] diagonal, int n_threads):
    """The linear kernel of dense or sparse float64 data."""
    cdef KernelRows rows = KernelRows()
    cdef const double[:, :] dense
    cdef gram_csr.Rows sparse
    cdef Py_ssize_t p = x.shape[1]
    cdef Data *data = &rows.store.data
    start(rows, PRODUCTS, diagonal.shape[0], n_threads, diagonal)
    data.n_features = p
    rows.kept = (x, diagonal)
    if hasattr(x, "indptr"):
        memset(&sparse, 0, sizeof(sparse))
        gram_csr.read_rows(&sparse, x, p, &diagonal[0])
        data.data, data.indices, data.indptr = <const double *> sparse.data, sparse.indices, sparse.indptr
        rows.store.starts = <Py_ssize_t *> calloc(p + 2, sizeof(Py_ssize_t))
        if rows.store.starts == NULL:
            raise_for_status(NO_MEMORY)
    else:
        dense = x
        data.data = &dense[0, 0]
        data.stride = max(dense.strides[0] // <Py_ssize_t> sizeof(double), p)
    rows.store.change = <double *> calloc(p, sizeof(double))
    if rows.store.change == NULL:
        raise_for_status(NO_MEMORY)
    return rows


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
        for chunk in range((n_used + PART - 1) // PART if n_out > 0 else 0):
            first, last = chunk * PART, min((chunk + 1) * PART, n_used)
            with nogil:
                if rows.single:
                    status = add_change(&rows.store, points + first, used + first, last - first,
                                        <const float **> addresses, segments, n_runs, &out[0])
                else:
                    status = add_change(&rows.store, points + first, used + first, last - first,
                                        <const double **> addresses, segments, n_runs, &out[0])
            raise_for_status(status)
            PyErr_CheckSignals()
    finally:
        free(segments)
        free(points)
        free(used)
        free(addresses)


def part(KernelRows rows, const Py_ssize_t[::1] first, const Py_ssize_t[::1] second, real_t[:, ::1] out,
         bint lower=False):
    """out[i, j] = K[first[i], second[j]] from a whole matrix, whose type `out` has; `lower`: only where j <= i."""
    cdef Py_ssize_t n = first.shape[0], width = second.shape[0], i, stride = rows.store.stride
    cdef const real_t *matrix = <const real_t *> rows.store.matrix
    cdef int n_threads = threads_for(&rows.store, <double> n * width)
    if rows.store.kind != WHOLE or rows.single != (sizeof(real_t) == sizeof(float)):
        raise ValueError("a part is taken from a whole matrix, in its type")
    if out.shape[0] != n or out.shape[1] != width:
        raise ValueError("out must have a row for each of the first points and a column for each of the second")
    if n == 0 or width == 0:
        return
    with nogil:
        for i in prange(n, num_threads=n_threads, schedule="dynamic", chunksize=16):
            gather_row(matrix + first[i] * stride, &second[0], min(i + 1, width) if lower else width, &out[i, 0])


CACHED_KIND = CACHED        # KernelRows.kind of rows that are computed when asked for
WHOLE_KIND = WHOLE          # and of a matrix
