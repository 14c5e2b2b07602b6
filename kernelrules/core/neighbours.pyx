"""The k nearest neighbours of every row, by exact distances, without the matrix of distances.

Inner products are made tile by tile in cache. With them |x-z|² = |x|² + |z|² - 2x·z is known but for rounding: whatever
could be among the k nearest so far, rounding allowed for, has its distance made again from the differences x - z, in
float64. That is what lists are kept by, in ascending order of (distance, index).

Inner products may be those of float32 copies of float64 rows: with rows blurred by less than e each, what is at
distance d is seen at less than d + 2e, and the lists reach out so much further.

Dense data: only tiles on or below the diagonal are made, each serves the lists of its rows and of its columns. Rows are
divided into blocks of some tiles, and pairs of blocks taken in rounds I + J ≡ r (mod number of blocks): in a round
every block occurs once, so threads never meet in a list. Sparse data: one row against all others.

Invariant: a list is the k smallest pairs (distance, index) whatever the order in which they came, so any number of
threads, and any other way to find candidates, gives the same bits. A row is not its own neighbour; its duplicate is.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove, memset

from kernelrules.core cimport gram_csr
from kernelrules.core.gram cimport (
    ALIGNMENT, DEPTH, DISTANCE, TILE, WORK, Block, Plan, free_plan, plan_gram, sum_tile,
)
from kernelrules.core.machine cimport simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.status cimport LINEAR, NO_MEMORY, OK, kr_kernel
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef extern from "near.h" nogil:
    Py_ssize_t kr_near_d(int level, const double *sums, const double *norms, const double *reaches, double norm,
                         double reach, Py_ssize_t n, int *hits) noexcept
    Py_ssize_t kr_near_f(int level, const float *sums, const float *norms, const float *reaches, float norm,
                         float reach, Py_ssize_t n, int *hits) noexcept
    double kr_square_d(int level, const double *x, const double *z, Py_ssize_t p) noexcept
    double kr_square_f(int level, const float *x, const float *z, Py_ssize_t p) noexcept
    double kr_near_total(const double *sums) noexcept
    enum:
        KR_NEAR_LANES

cdef enum:
    NOBODY = 0x7fffffff         # index in a list that is not full

cdef struct Lists:              # of all rows, k entries each
    int *indices
    double *squares
    Py_ssize_t k
    void *norms                 # half the squared length of each row, shortened by what rounding may hide
    void *reaches               # half the largest squared distance in a list, infinite where it is not full
    const double *exact         # the rows that x is a blurred copy of; NULL where x itself is exact
    Py_ssize_t stride           # of these
    double blur                 # how much further off two rows may look than they are


# ---- lists -----------------------------------------------------------------------------------------------------

cdef bint enters(const Lists *lists, Py_ssize_t i, double square, int j) noexcept nogil:
    """Put j into the list of row i if it is nearer than the last one there; whether it was."""
    cdef double *squares = lists.squares + i * lists.k
    cdef int *indices = lists.indices + i * lists.k
    cdef Py_ssize_t last = lists.k - 1, low = 0, high = last, middle
    if square > squares[last] or (square == squares[last] and j >= indices[last]):
        return False
    while low < high:
        middle = (low + high) // 2
        if squares[middle] < square or (squares[middle] == square and indices[middle] < j):
            low = middle + 1
        else:
            high = middle
    memmove(squares + low + 1, squares + low, (last - low) * sizeof(double))
    memmove(indices + low + 1, indices + low, (last - low) * sizeof(int))
    squares[low], indices[low] = square, j
    return True


cdef bint has_better(const Lists *lists, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Whether the list of row i is full of duplicates of it that come before j: no distance lets j in."""
    cdef Py_ssize_t last = i * lists.k + lists.k - 1
    return lists.squares[last] == 0 and lists.indices[last] < j


cdef real_t reach_of(const Lists *lists, Py_ssize_t i, const real_t *example) noexcept nogil:
    """Half the largest square of the list, as the rows may look, rounded up."""
    cdef double square = lists.squares[i * lists.k + lists.k - 1]
    if lists.blur > 0:
        square = (sqrt(square) + lists.blur) * (sqrt(square) + lists.blur)
    return <real_t> (square * (0.5 + (1e-6 if real_t is float else 1e-15)))


cdef void clear(const Lists *lists, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t e
    for e in range(n * lists.k):
        lists.squares[e], lists.indices[e] = INFINITY, NOBODY


cdef double shortened(double share, Py_ssize_t n_terms, const real_t *example) noexcept nogil:
    """share less what rounding may change in |x|² + |z|² - 2x·z, relative to |x|² + |z|², if n_terms are added up."""
    return share - share * (2 * n_terms + 32) * (1.2e-7 if real_t is float else 2.3e-16)


def rounding_of_float32(Py_ssize_t p):
    """What |x|² + |z|² - 2x·z is allowed to be off by in float32, over |x|² + |z|²."""
    return 1 - shortened(1.0, terms_of(p), <const float *> NULL)


cdef Py_ssize_t terms_of(Py_ssize_t p) noexcept nogil:
    """That are added up one after the other in a tile's sums."""
    return min(p, <Py_ssize_t> DEPTH) + p // DEPTH


cdef double square_between(int level, const real_t *x, const real_t *z, Py_ssize_t p) noexcept nogil:
    if real_t is double:
        return kr_square_d(level, x, z, p)
    else:
        return kr_square_f(level, x, z, p)


# ---- dense rows ------------------------------------------------------------------------------------------------

cdef void serve_tile(const Plan *plan, const Lists *lists, Py_ssize_t row, Py_ssize_t column, int level,
                     real_t *work) noexcept nogil:
    """Offer the pairs of a tile to the lists of both their members."""
    cdef const real_t *x = <const real_t *> plan.x.data
    cdef const real_t *norms = <const real_t *> lists.norms
    cdef real_t *reaches = <real_t *> lists.reaches
    cdef Py_ssize_t i, j, h, n_hits, width
    cdef int hits[TILE]
    cdef double square
    cdef const real_t *sums
    cdef Block at
    at.i0, at.n_i = row * TILE, min(<Py_ssize_t> TILE, plan.x.n - row * TILE)
    at.j0, at.n_j = column * TILE, min(<Py_ssize_t> TILE, plan.x.n - column * TILE)
    at.diagonal = row == column
    sum_tile(plan, &at, work, work + TILE * TILE, work + TILE * (TILE + DEPTH))
    for i in range(at.i0, at.i0 + at.n_i):
        sums = work + (i - at.i0) * TILE
        width = i - at.i0 if at.diagonal else at.n_j
        if real_t is double:
            n_hits = kr_near_d(level, sums, norms + at.j0, reaches + at.j0, norms[i], reaches[i], width, hits)
        else:
            n_hits = kr_near_f(level, sums, norms + at.j0, reaches + at.j0, norms[i], reaches[i], width, hits)
        for h in range(n_hits):
            j = at.j0 + hits[h]
            if sums[hits[h]] - norms[j] + max(reaches[i], reaches[j]) < norms[i]:
                continue                # the row's list has become better since
            if has_better(lists, i, j) and has_better(lists, j, i):
                continue
            if lists.exact != NULL:
                square = kr_square_d(level, lists.exact + i * lists.stride, lists.exact + j * lists.stride,
                                     plan.n_features)
            else:
                square = square_between(level, x + i * plan.x.stride, x + j * plan.x.stride, plan.n_features)
            if enters(lists, i, square, <int> j):
                reaches[i] = reach_of(lists, i, work)
            if enters(lists, j, square, <int> i):
                reaches[j] = reach_of(lists, j, work)


cdef void serve_blocks(const Plan *plan, const Lists *lists, Py_ssize_t block, Py_ssize_t other, Py_ssize_t span,
                       int level, real_t *work) noexcept nogil:
    """All tiles of a pair of blocks of `span` tiles; of a block with itself those on or below the diagonal."""
    cdef Py_ssize_t row, column
    for row in range(block * span, min((block + 1) * span, plan.tiles_across)):
        for column in range(other * span, min((other + 1) * span, row + 1 if block == other else plan.tiles_across)):
            serve_tile(plan, lists, row, column, level, work)


cdef Py_ssize_t tiles_in_block(Py_ssize_t n_tiles, Py_ssize_t p, int n_threads) noexcept nogil:
    """Few blocks, since threads wait for each other after every round; but several pairs for each thread in a round,
    and none that takes longer than some hundredths of a second, for the sake of signals."""
    cdef Py_ssize_t quick = 1 + <Py_ssize_t> sqrt(25000.0 / (16 + p)) // 2
    return max(<Py_ssize_t> 1, min(quick, n_tiles // (4 * n_threads)))


def nearest_dense(const real_t[:, :] x, int[:, ::1] indices, double[:, ::1] squares, int n_threads, tick=None,
                  const double[:, :] exact=None, double blur=0):
    """Fill row i of `indices` and `squares` with the k rows of x nearest to x_i, and their squared distances.

    The rows of x have no gaps; there are more of them than k, and fewer than 2³¹. Squares of differences, summed, do
    not overflow the type of x. Where `exact` is given, its rows are meant, and two rows of x are at most `blur` further
    from each other than they are.
    """
    cdef Plan plan
    cdef Lists lists
    cdef kr_kernel spec
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], n_tiles = (n + TILE - 1) // TILE, itemsize = sizeof(real_t)
    cdef Py_ssize_t task = 0, last, round_end, step = n_threads, block, other, i
    cdef Py_ssize_t span = tiles_in_block(n_tiles, p, n_threads), n_blocks = (n_tiles + span - 1) // span
    cdef int status, level = simd_level()
    cdef double half = shortened(0.5, terms_of(p), &x[0, 0])
    cdef double least = 2e-38 if real_t is float else 3e-308    # what underflow may hide
    cdef real_t *norms = <real_t *> malloc(2 * n * sizeof(real_t))
    cdef real_t *work
    if norms == NULL:
        raise_for_status(NO_MEMORY)
    lists.indices, lists.squares, lists.k = &indices[0, 0], &squares[0, 0], indices.shape[1]
    lists.norms, lists.reaches, lists.exact, lists.blur = norms, norms + n, NULL, blur
    if exact is not None:
        lists.exact, lists.stride = &exact[0, 0], max(exact.strides[0] // <Py_ssize_t> sizeof(double), p)
    spec.kind, spec.degree, spec.gamma, spec.coef0 = DISTANCE, 0, 1.0, 0.0
    with nogil:
        clear(&lists, n)
        status = plan_gram(&plan, &x[0, 0], n, max(x.strides[0] // itemsize, p), <const real_t *> NULL, 0, 0, p, &spec,
                           level, n_threads)
        if status == OK:
            for i in range(n):
                norms[i] = <real_t> (half * (<real_t *> plan.x.norms)[i] - least)
                norms[n + i] = <real_t> INFINITY
        work = <real_t *> (<char *> plan.work + (ALIGNMENT - <uintptr_t> plan.work % ALIGNMENT))
    try:
        # Round 0 is the diagonal: where rows in order are near each other, lists are good before anything else comes.
        while status == OK and task < n_blocks * (n_blocks + 1):
            round_end = (task // n_blocks + 1) * n_blocks
            last = min(task + step, round_end)
            started = perf_counter()
            for i in prange(task, last, num_threads=plan.n_threads, schedule="dynamic", chunksize=1, nogil=True):
                block = i % n_blocks
                other = block if i < n_blocks else (i // n_blocks + n_blocks - block) % n_blocks
                if i < n_blocks or block > other:
                    serve_blocks(&plan, &lists, block, other, span, level, work + threadid() * <Py_ssize_t> WORK)
            task, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(task, n_blocks * (n_blocks + 1))
    finally:
        free_plan(&plan)
        free(norms)
    raise_for_status(status)


cdef void rank_row(int level, const real_t *x, Py_ssize_t stride, Py_ssize_t p, Py_ssize_t i,
                   const Py_ssize_t *candidates, Py_ssize_t n_candidates, const Lists *lists,
                   Py_ssize_t place) noexcept nogil:
    cdef Py_ssize_t c, j
    for c in range(n_candidates):
        j = candidates[c]
        if j != i:
            enters(lists, place, square_between(level, x + i * stride, x + j * stride, p), <int> j)


def rank_dense(const real_t[:, :] x, const Py_ssize_t[::1] rows, const Py_ssize_t[:, ::1] candidates,
               int[:, ::1] indices, double[:, ::1] squares, int n_threads):
    """The k nearest of the candidates of some rows: rows[r]'s are candidates[r], each once, and itself left out."""
    cdef Lists lists
    cdef Py_ssize_t n_rows = rows.shape[0], p = x.shape[1], itemsize = sizeof(real_t), r
    cdef Py_ssize_t stride = max(x.strides[0] // itemsize, p)
    cdef int level = simd_level()
    if n_rows == 0:
        return
    lists.indices, lists.squares, lists.k = &indices[0, 0], &squares[0, 0], indices.shape[1]
    with nogil:
        clear(&lists, n_rows)
        for r in prange(n_rows, num_threads=n_threads, schedule="static"):
            rank_row(level, &x[0, 0], stride, p, rows[r], &candidates[r, 0], candidates.shape[1], &lists, r)


# ---- sparse rows -----------------------------------------------------------------------------------------------

cdef double square_between_sparse(const gram_csr.Rows *rows, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """By merging the two rows: the same sums as square_between, which also adds zeros."""
    cdef gram_csr.Merge at
    cdef double sums[KR_NEAR_LANES]
    cdef double gap = 0
    cdef Py_ssize_t column = 0
    memset(sums, 0, sizeof(sums))
    gram_csr.start_merge(rows, i, rows, j, &at)
    while gram_csr.next_gap(rows, rows, &at, &column, &gap, <const double *> rows.data):
        sums[column % KR_NEAR_LANES] += gap * gap
    return kr_near_total(sums)


cdef void serve_row(const gram_csr.Plan *plan, const Lists *lists, Py_ssize_t i, int level, double *work,
                    int *hits) noexcept nogil:
    """Offer all rows to the list of row i. A block at a time is judged, so that the list shrinks early."""
    cdef const double *norms = <const double *> lists.norms
    cdef double *nothing = work + 3 * plan.x.n      # nobody else's list counts
    cdef double *sums = work + 2 * plan.x.n
    cdef double reach = INFINITY
    cdef Py_ssize_t n = plan.x.n, j0 = 0, j, h, n_hits
    gram_csr.sparse_row(plan, i, n, work, work + n, sums)
    while j0 < n:
        n_hits = kr_near_d(level, sums + j0, norms + j0, nothing, norms[i], reach, min(<Py_ssize_t> TILE, n - j0), hits)
        for h in range(n_hits):
            j = j0 + hits[h]
            if j == i or sums[j] - norms[j] + reach < norms[i]:
                continue
            if enters(lists, i, square_between_sparse(&plan.x, i, j), <int> j):
                reach = reach_of(lists, i, work)
        j0 += TILE


def nearest_csr(x, columns, int[:, ::1] indices, double[:, ::1] squares, int n_threads, tick=None):
    """The same for sparse x in float64; `columns` holds it by columns."""
    cdef gram_csr.Plan plan
    cdef Lists lists
    cdef double example = 0
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], i, a, first = 0, last, step = 16 * n_threads
    cdef Py_ssize_t share = 3 * n + TILE
    cdef int status, level = simd_level()
    cdef double half, length
    cdef double *norms = NULL
    cdef double *work = NULL
    cdef int *hits = NULL
    memset(&plan, 0, sizeof(gram_csr.Plan))
    plan.kernel.kind, plan.kernel.degree, plan.kernel.gamma, plan.kernel.coef0 = LINEAR, 0, 1.0, 0.0
    gram_csr.read_rows(&plan.x, x, p, <const double *> &example)
    gram_csr.read_rows(&plan.z, x, p, <const double *> &example)
    gram_csr.read_rows(&plan.columns, columns, n, <const double *> &example)
    lists.indices, lists.squares, lists.k = &indices[0, 0], &squares[0, 0], indices.shape[1]
    with nogil:
        status = gram_csr.make_plan(&plan, level, <const double *> &example)
        norms = <double *> malloc(n * sizeof(double))
        work = <double *> malloc(n_threads * share * sizeof(double))
        hits = <int *> malloc(n_threads * TILE * sizeof(int))
        if norms == NULL or work == NULL or hits == NULL:
            status = NO_MEMORY
        if status == OK:
            clear(&lists, n)
            lists.norms = norms
            for i in range(n):
                length = 0
                half = shortened(0.5, plan.x.indptr[i + 1] - plan.x.indptr[i], <const double *> &example)
                for a in range(plan.x.indptr[i], plan.x.indptr[i + 1]):
                    length += (<const double *> plan.x.data)[a] * (<const double *> plan.x.data)[a]
                norms[i] = half * length - 3e-308
            for i in range(n_threads):
                for a in range(TILE):
                    work[i * share + 3 * n + a] = -INFINITY
    try:
        while status == OK and first < n:
            last = min(first + step, n)
            started = perf_counter()
            for i in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=8, nogil=True):
                serve_row(&plan, &lists, i, level, work + threadid() * share, hits + threadid() * <Py_ssize_t> TILE)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, n)
    finally:
        gram_csr.free_plan(&plan)
        free(norms)
        free(work)
        free(hits)
    raise_for_status(status)
