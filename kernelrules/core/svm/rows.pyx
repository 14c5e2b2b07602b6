"""Kernel rows for the SMO solver: computed, cached, or read from a matrix.

    WHOLE_MATRIX     the matrix is in memory: a row is an address
    CACHED_ROWS      rows are computed in batches, by matrix products if possible, and cached in a ring of slots
    LINEAR_PRODUCTS  K·beta = X·(Xᵀ·beta), so no row is ever computed; only blocks between few points are

Cached rows are computed from dense data, from sparse data, or by a kr_row_source of the caller. All kernel values of a
store have one type: float32 for kernels bounded by 1, float64 for the others. Addresses of kernel values are untyped
here; `store.single` is the type, and is read when values are computed or added.

Invariant: a row depends neither on the number of threads nor on the rows requested before it. The order in which rows
are added to a gradient does depend on the latter, if the cache cannot hold all rows.
"""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.gram cimport csr as gram_csr
from kernelrules.core.base.memory cimport give_back, take
from kernelrules.core.gram.dense cimport (
    TILE, DenseRows, dense_rows, fill_gram, fill_rows, fill_square, free_plan, plan_rows,
)
from kernelrules.core.gram.kernels cimport LINEAR
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.simd.dispatch cimport KR_SUM_PRODUCTS, simd_table
from kernelrules.core.base.status cimport BAD_ARGUMENT, CALLBACK, NO_MEMORY, OK, kr_kernel
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from kernelrules.core.base.status import raise_for_status

cdef enum:
    MIN_THREAD_NS = 200000      # nanoseconds of work per thread: a wake-up on a busy machine costs a fraction of a ms
    CHUNK_BYTES = 128 << 20     # memory for rows is taken in pieces of this size, which the next fit reuses


cdef int threads_for(const RowStore *store, double nanoseconds) noexcept nogil:
    """Return the number of threads that is worthwhile for this much work."""
    return <int> max(1.0, min(<double> store.n_threads, nanoseconds / MIN_THREAD_NS))


cdef Py_ssize_t item_size(const RowStore *store) noexcept nogil:
    """Bytes of a kernel value."""
    return sizeof(float) if store.single else sizeof(double)


# ---- rows ------------------------------------------------------------------------------------------------------

cdef double row_cost(const RowStore *store) noexcept nogil:
    """Approximate nanoseconds that one thread takes for a row; 0 for rows of the caller."""
    cdef double entries
    if store.dense != NULL:
        return store.n * (1 + (0.03 if store.dense.sum == KR_SUM_PRODUCTS else 0.15) * store.dense.n_features)
    if store.sparse == NULL:
        return 0.0
    entries = store.sparse.x.indptr[store.n]    # each entry of a row meets those of its column
    return 5.0 * store.n + 2 * entries / store.n * (entries / store.sparse.x.n_features)


cdef struct SparseKernelLoop:       # kernel rows of some points of sparse data
    const RowStore *store
    const Py_ssize_t *points
    void *out
    double *scratch                 # 2·n numbers per thread


cdef void compute_sparse_row(const SparseKernelLoop *loop, Py_ssize_t r, real_t *out, double *scratch) noexcept nogil:
    cdef Py_ssize_t n = loop.store.n
    gram_csr.sparse_row(loop.store.sparse, loop.points[r], n, scratch, scratch + n, out + r * n)
    if loop.store.sparse.unit_diagonal:
        out[r * n + loop.points[r]] = 1


cdef void compute_sparse_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef SparseKernelLoop *loop = <SparseKernelLoop *> context
    cdef double *scratch = loop.scratch + worker * 2 * loop.store.n
    cdef Py_ssize_t r
    for r in range(first, last):
        if loop.store.single:
            compute_sparse_row(loop, r, <float *> loop.out, scratch)
        else:
            compute_sparse_row(loop, r, <double *> loop.out, scratch)


cdef int compute_rows(RowStore *store, const Py_ssize_t *points, Py_ssize_t n_points, void *out) noexcept nogil:
    """Compute the rows of the points, one after the other."""
    cdef SparseKernelLoop loop
    cdef int status = OK
    store.n_computed += n_points
    if store.dense != NULL:
        store.dense.n_threads = threads_for(store, n_points * row_cost(store))
        return fill_rows(store.dense, points, n_points, out)
    if store.sparse != NULL:
        loop.store, loop.points, loop.out = store, points, out
        loop.scratch = <double *> malloc(store.n_threads * 2 * store.n * sizeof(double))
        if loop.scratch == NULL:
            return NO_MEMORY
        run_team(0, n_points, 4, threads_for(store, n_points * row_cost(store)), compute_sparse_rows, &loop)
        free(loop.scratch)
        return OK
    status = store.source.fill(store.source.state, points, n_points, <double *> out)
    return CALLBACK if status > 0 else status


cdef Py_ssize_t list_missing(RowStore *store, const Py_ssize_t *points, Py_ssize_t n) noexcept nogil:
    """List the points whose rows are not cached, or whose slots the new rows take: those are computed again."""
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


cdef inline void *slot_at(const RowStore *store, Py_ssize_t slot) noexcept nogil:
    cdef Py_ssize_t place = slot % store.chunk_slots
    return <char *> store.chunks[slot // store.chunk_slots] + place * store.n * item_size(store)


cdef void empty_slots(RowStore *store, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    """Remove the rows in these slots from the cache."""
    cdef Py_ssize_t slot
    for slot in range(first, first + n):
        if store.point_in[slot] >= 0:
            store.slot_of[store.point_in[slot]] = -1
            store.point_in[slot] = -1


cdef int fill_slots(RowStore *store, const Py_ssize_t *points, Py_ssize_t n) noexcept nogil:
    """Compute rows into the next n slots, which lie in one chunk."""
    cdef Py_ssize_t chunk = store.head // store.chunk_slots, r, n_slots
    cdef int status
    if store.chunks[chunk] == NULL:
        n_slots = min(store.chunk_slots, store.n_slots - chunk * store.chunk_slots)
        store.chunks[chunk] = take(n_slots * store.n * item_size(store))
        if store.chunks[chunk] == NULL:
            return NO_MEMORY
    empty_slots(store, store.head, n)
    status = compute_rows(store, points, n, slot_at(store, store.head))
    if status != OK:
        return status
    for r in range(n):
        store.point_in[store.head + r] = points[r]
        store.slot_of[points[r]] = store.head + r
    store.head = (store.head + n) % store.n_slots
    return OK


cdef int find_rows(RowStore *store, const Py_ssize_t *points, Py_ssize_t n, const void **rows) noexcept nogil:
    """rows[i] = the address of the kernel row of points[i], valid until the next call. The points differ from one
    another, and there are at most n_slots of them."""
    cdef Py_ssize_t i, batch, done = 0, n_missing
    cdef int status
    if store.kind == WHOLE_MATRIX:
        for i in range(n):
            rows[i] = <const char *> store.matrix + points[i] * store.stride * item_size(store)
        return OK
    if n > store.n_slots:
        return BAD_ARGUMENT
    n_missing = list_missing(store, points, n)
    for i in range(n_missing):
        if store.slot_of[store.missing[i]] >= 0:
            empty_slots(store, store.slot_of[store.missing[i]], 1)
    while done < n_missing:                 # up to the end of a chunk, or of the ring
        batch = min(store.n_slots - store.head, store.chunk_slots - store.head % store.chunk_slots)
        batch = min(batch, n_missing - done)
        status = fill_slots(store, store.missing + done, batch)
        if status != OK:
            return status
        done += batch
    for i in range(n):
        rows[i] = slot_at(store, store.slot_of[points[i]])
    return OK


# ---- blocks ----------------------------------------------------------------------------------------------------

cdef void gather_row(const real_t *row, const Py_ssize_t *points, Py_ssize_t n, real_t *out) noexcept nogil:
    """out[j] = row[points[j]]."""
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = row[points[j]]


cdef struct GatherLoop:             # out[i, j] = rows[i][columns[j]]
    const void **rows
    const Py_ssize_t *columns
    Py_ssize_t width
    bint lower                      # only where j <= i
    bint single
    void *out


cdef void gather_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef GatherLoop *loop = <GatherLoop *> context
    cdef Py_ssize_t i, n
    for i in range(first, last):
        n = min(i + 1, loop.width) if loop.lower else loop.width
        if loop.single:
            gather_row(<const float *> loop.rows[i], loop.columns, n, <float *> loop.out + i * loop.width)
        else:
            gather_row(<const double *> loop.rows[i], loop.columns, n, <double *> loop.out + i * loop.width)


cdef int sort_entries(RowStore *store, const Py_ssize_t *points, Py_ssize_t n) noexcept nogil:
    """Sort the entries of the points' sparse rows by feature, into store.entries and store.entry_starts."""
    cdef const FeatureRows *data = &store.features
    cdef Py_ssize_t i, e, total = 0, p = data.n_features, at
    for i in range(n):
        total += data.indptr[points[i] + 1] - data.indptr[points[i]]
    if 2 * total > store.entries_capacity:
        free(store.entries)
        store.entries_capacity = 2 * total
        store.entries = <Py_ssize_t *> malloc(store.entries_capacity * sizeof(Py_ssize_t))
        if store.entries == NULL:
            store.entries_capacity = 0
            return NO_MEMORY
    memset(store.entry_starts, 0, (p + 2) * sizeof(Py_ssize_t))
    for i in range(n):
        for e in range(data.indptr[points[i]], data.indptr[points[i] + 1]):
            store.entry_starts[data.indices[e] + 2] += 1
    for i in range(2, p + 2):
        store.entry_starts[i] += store.entry_starts[i - 1]
    for i in range(n):
        for e in range(data.indptr[points[i]], data.indptr[points[i] + 1]):
            at = store.entry_starts[data.indices[e] + 1]
            store.entries[2 * at], store.entries[2 * at + 1] = i, e
            store.entry_starts[data.indices[e] + 1] = at + 1
    return OK


cdef void sparse_products(const RowStore *store, Py_ssize_t point, Py_ssize_t n, double *row) noexcept nogil:
    """row[j] = x_point · x_j, for the j-th of the points passed to sort_entries."""
    cdef const FeatureRows *data = &store.features
    cdef Py_ssize_t e, a
    memset(row, 0, n * sizeof(double))
    for e in range(data.indptr[point], data.indptr[point + 1]):
        for a in range(store.entry_starts[data.indices[e]], store.entry_starts[data.indices[e] + 1]):
            row[store.entries[2 * a]] += data.data[e] * data.data[store.entries[2 * a + 1]]


cdef struct ProductLoop:            # rows of a block of inner products; arguments of products_block
    RowStore *store
    const Py_ssize_t *points
    Py_ssize_t n
    const Py_ssize_t *old_place
    const double *old
    Py_ssize_t n_old
    double *block


cdef void product_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef ProductLoop *loop = <ProductLoop *> context
    cdef const Py_ssize_t *old_place = loop.old_place
    cdef Py_ssize_t i, j, n = loop.n
    for i in range(first, last):
        if old_place[i] < 0:
            sparse_products(loop.store, loop.points[i], n, loop.block + i * n)
            continue
        for j in range(n):
            if old_place[j] >= 0:
                loop.block[i * n + j] = loop.old[old_place[i] * loop.n_old + old_place[j]]


cdef int products_block(RowStore *store, const Py_ssize_t *points, Py_ssize_t n, const Py_ssize_t *old_place,
                        const double *old, Py_ssize_t n_old, double *block) noexcept nogil:
    """Inner products between the points. old_place[i] is the place of point i in the previous block `old`, or -1; for
    sparse data, products that are in that block are copied."""
    cdef const FeatureRows *data = &store.features
    cdef kr_kernel linear
    cdef DenseRows rows
    cdef Py_ssize_t i, j, p = data.n_features
    cdef double *gathered
    cdef ProductLoop loop
    cdef int status = OK
    if data.indices == NULL:
        linear.kind, linear.degree, linear.gamma, linear.coef0 = LINEAR, 0, 1.0, 0.0
        gathered = <double *> malloc(n * p * sizeof(double))
        if gathered == NULL:
            return NO_MEMORY
        for i in range(n):
            memcpy(gathered + i * p, data.data + points[i] * data.stride, p * sizeof(double))
        rows = dense_rows(gathered, n, p)
        status = fill_gram(&rows, NULL, p, &linear, False, block, n, threads_for(store, n * n * (0.5 + 0.02 * p)))
        free(gathered)
        return status
    status = sort_entries(store, points, n)
    if status != OK:
        return status
    loop.store, loop.points, loop.n, loop.old_place = store, points, n, old_place
    loop.old, loop.n_old, loop.block = old, n_old, block
    run_team(0, n, 8, threads_for(store, n * <double> n * 5), product_rows, &loop)
    for i in range(n):
        if old_place[i] >= 0:
            for j in range(n):
                if old_place[j] < 0:
                    block[i * n + j] = block[j * n + i]
    return OK


cdef int find_block(RowStore *store, const Py_ssize_t *points, Py_ssize_t n, const void **rows,
                    const Py_ssize_t *old_place, const void *old, Py_ssize_t n_old, void *block) noexcept nogil:
    """block[i, j] = the kernel value of points i and j. `rows` is a buffer of n addresses; `old_place`, `old` and
    `n_old` are as in products_block."""
    cdef GatherLoop loop
    cdef int status
    if store.kind == LINEAR_PRODUCTS:
        store.n_computed += n
        return products_block(store, points, n, old_place, <const double *> old, n_old, <double *> block)
    if store.dense != NULL:         # computed again: faster than gathering values from distant rows
        store.dense.n_threads = threads_for(store, 0.5 * n / store.n * n * row_cost(store))
        return fill_square(store.dense, points, n, block)
    status = find_rows(store, points, n, rows)
    if status != OK:
        return status
    loop.rows, loop.columns, loop.width, loop.out = rows, points, n, block
    loop.lower, loop.single = False, store.single
    run_team(0, n, 0, threads_for(store, n * <double> n), gather_rows, &loop)
    return OK


# ---- made from Python ------------------------------------------------------------------------------------------

cdef int fill_from_python(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept nogil:
    """kr_row_source.fill of a Python function."""
    with gil:
        return call_row_function(<KernelRows> state, rows, n_rows, out)


cdef int call_row_function(KernelRows self, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept:
    cdef Py_ssize_t n = self.store.n
    try:
        numbers = <Py_ssize_t[:n_rows]> rows
        self.row_function(numbers, <double[:n_rows, :n]> out)
    except BaseException as error:
        self.error = error
        return CALLBACK
    return OK


cdef class KernelRows:
    """A store of kernel rows, made by one of the functions below; `single` means float32 values."""

    def __cinit__(self):
        memset(&self.store, 0, sizeof(RowStore))
        memset(&self.dense, 0, sizeof(GramPlan))
        memset(&self.sparse, 0, sizeof(CsrPlan))

    def __dealloc__(self):
        if self.store.dense != NULL:
            free_plan(&self.dense)
        if self.store.sparse != NULL:
            gram_csr.free_plan(&self.sparse)
        free_slots(&self.store)
        free(self.store.w_change)
        free(self.store.entries)
        free(self.store.entry_starts)

    @property
    def n(self):
        """The number of points."""
        return self.store.n

    @property
    def n_computed(self):
        """Rows computed so far."""
        return self.store.n_computed

    def add_computed(self, Py_ssize_t n_rows):
        """Count rows of the same kernel that another process computed."""
        self.store.n_computed += n_rows

    def pop_error(self):
        """The exception that a Python row function raised, or None; it is then forgotten."""
        error, self.error = self.error, None
        return error


cdef int init_store(KernelRows rows, StoreKind kind, Py_ssize_t n, int n_threads, const real_t[::1] diagonal) except -1:
    rows.store.kind, rows.store.n, rows.store.n_threads = kind, n, n_threads
    rows.kind = kind
    rows.single = rows.store.single = real_t is float
    rows.store.diagonal = &diagonal[0]
    rows.store.simd = simd_table(simd_level(), real_t is float)
    return 0


cdef int make_slots(RowStore *store, Py_ssize_t n_slots) noexcept nogil:
    """Make a cache of n_slots rows, whose memory is taken when first used. free_slots() must follow."""
    cdef Py_ssize_t n = store.n, i
    n_slots = min(max(n_slots, <Py_ssize_t> 2), n)      # a step needs two
    store.n_slots = n_slots
    store.chunk_slots = min(n_slots, max(<Py_ssize_t> 2 * TILE, CHUNK_BYTES // (n * item_size(store))))
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


cdef void free_slots(RowStore *store) noexcept nogil:
    cdef Py_ssize_t chunk
    if store.chunks != NULL:
        for chunk in range((store.n_slots - 1) // store.chunk_slots + 1):
            give_back(store.chunks[chunk])
    free(store.chunks)
    free(store.slot_of)
    free(store.point_in)
    free(store.missing)


def whole_matrix(const real_t[:, :] matrix, const real_t[::1] diagonal, int n_threads):
    """Rows of a kernel matrix in memory, each without gaps."""
    cdef KernelRows rows = KernelRows()
    init_store(rows, WHOLE_MATRIX, matrix.shape[0], n_threads, diagonal)
    rows.store.matrix = &matrix[0, 0]
    rows.store.stride = matrix.strides[0] // <Py_ssize_t> sizeof(real_t)
    rows.kept = (matrix, diagonal)
    return rows


def cached_rows(x, columns, kernel, const real_t[::1] diagonal, Py_ssize_t n_slots, int n_threads):
    """Rows of a kernel of dense data, or of sparse data with its columns; at most n_slots of them are cached."""
    cdef KernelRows rows = KernelRows()
    cdef const real_t[:, :] data
    cdef DenseRows points
    cdef kr_kernel spec
    cdef Py_ssize_t n = diagonal.shape[0], p = x.shape[1]
    cdef int status, level = simd_level()
    init_store(rows, CACHED_ROWS, n, n_threads, diagonal)
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    if columns is None:
        data = x
        rows.store.dense = &rows.dense
        points = dense_rows(&data[0, 0], n, max(data.strides[0] // <Py_ssize_t> sizeof(real_t), p))
        status = plan_rows(&rows.dense, &points, p, &spec, rows.single, level, n_threads)
    else:
        rows.store.sparse = &rows.sparse
        rows.sparse.kernel, rows.sparse.symmetric, rows.sparse.single = spec, True, rows.single
        gram_csr.read_rows(&rows.sparse.x, x, p, rows.single)
        gram_csr.read_rows(&rows.sparse.z, x, p, rows.single)
        gram_csr.read_rows(&rows.sparse.columns, columns, n, rows.single)
        status = gram_csr.complete_plan(&rows.sparse, level)
    raise_for_status(status)
    raise_for_status(make_slots(&rows.store, n_slots))
    rows.kept = (x, columns, diagonal)
    return rows


def supplied_rows(row_function, const double[::1] diagonal, Py_ssize_t n_slots):
    """Rows from a Python function row_function(rows, out), which fills `out` with them."""
    cdef KernelRows rows = KernelRows()
    init_store(rows, CACHED_ROWS, diagonal.shape[0], 1, diagonal)
    rows.row_function = row_function
    rows.source.state, rows.source.fill = <void *> rows, fill_from_python
    rows.store.source = &rows.source
    raise_for_status(make_slots(&rows.store, n_slots))
    rows.kept = diagonal
    return rows


def linear_products(x, const double[::1] diagonal, int n_threads):
    """The linear kernel of dense or sparse float64 data."""
    cdef KernelRows rows = KernelRows()
    cdef const double[:, :] dense
    cdef gram_csr.CsrOperand sparse
    cdef Py_ssize_t p = x.shape[1]
    cdef FeatureRows *data = &rows.store.features
    init_store(rows, LINEAR_PRODUCTS, diagonal.shape[0], n_threads, diagonal)
    data.n_features = p
    rows.kept = (x, diagonal)
    if hasattr(x, "indptr"):
        memset(&sparse, 0, sizeof(sparse))
        gram_csr.read_rows(&sparse, x, p, False)
        data.data, data.indices, data.indptr = <const double *> sparse.data, sparse.indices, sparse.indptr
        rows.store.entry_starts = <Py_ssize_t *> calloc(p + 2, sizeof(Py_ssize_t))
        if rows.store.entry_starts == NULL:
            raise_for_status(NO_MEMORY)
    else:
        dense = x
        data.data = &dense[0, 0]
        data.stride = max(dense.strides[0] // <Py_ssize_t> sizeof(double), p)
    rows.store.w_change = <double *> calloc(p, sizeof(double))
    if rows.store.w_change == NULL:
        raise_for_status(NO_MEMORY)
    return rows


def submatrix(KernelRows rows, const Py_ssize_t[::1] first, const Py_ssize_t[::1] second, real_t[:, ::1] out,
              bint lower=False):
    """out[i, j] = K[first[i], second[j]] of a whole matrix, whose type `out` has; `lower`: only where j <= i."""
    cdef Py_ssize_t n = first.shape[0], width = second.shape[0]
    cdef const void **addresses
    cdef GatherLoop loop
    if rows.store.kind != WHOLE_MATRIX or rows.single != (sizeof(real_t) == sizeof(float)):
        raise ValueError("a submatrix requires rows of a whole matrix, and `out` of the same type")
    if out.shape[0] != n or out.shape[1] != width:
        raise ValueError("out must have a row for each of the first points and a column for each of the second")
    if n == 0 or width == 0:
        return
    addresses = <const void **> malloc(n * sizeof(void *))
    if addresses == NULL:
        raise_for_status(NO_MEMORY)
    loop.rows, loop.columns, loop.width, loop.out = addresses, &second[0], width, &out[0, 0]
    loop.lower, loop.single = lower, rows.store.single
    with nogil:
        find_rows(&rows.store, &first[0], n, addresses)
        run_team(0, n, 16, threads_for(&rows.store, <double> n * width), gather_rows, &loop)
        free(addresses)


CACHED_KIND = CACHED_ROWS       # KernelRows.kind of rows that are computed when requested
WHOLE_KIND = WHOLE_MATRIX       # and of a whole matrix
