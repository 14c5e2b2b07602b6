"""The k nearest neighbours of every row, by exact distances, without the matrix of distances.

Inner products are made tile by tile in cache. With them |x-z|² = |x|² + |z|² - 2x·z is known but for rounding: whatever
could be among the k nearest so far, rounding allowed for, has its distance made again from the differences x - z, in
float64. That is what lists are kept by, in ascending order of (distance, index).

Inner products may be those of float32 copies of float64 rows: if each row is rounded by less than e, a true distance d
is computed as less than d + 2e, and candidates are accepted up to that bound.

Dense data: only tiles on or below the diagonal are made, each serves the lists of its rows and of its columns. Rows are
divided into blocks of some tiles, and pairs of blocks taken in rounds I + J ≡ r (mod number of blocks): in a round
every block occurs once, so threads never meet in a list. Sparse data: one row against all others.

Invariant: a list is the k smallest pairs (distance, index) whatever the order in which they came, so any number of
threads, and any other way to find candidates, gives the same bits. A row is not its own neighbour; its duplicate is.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memmove, memset

from kernelrules.core.gram cimport csr as gram_csr
from kernelrules.core.gram.dense cimport (
    SUM_DEPTH, TILE, TILE_WORK, DenseRows, GramPlan, GramTile, aligned, dense_rows, free_plan, plan_gram, sum_tile,
)
from kernelrules.core.gram.kernels cimport LINEAR, SQUARED_DISTANCE
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.base.status cimport NO_MEMORY, OK, kr_kernel
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef extern from "graph/neighbour_filter.h" nogil:
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
    NO_NEIGHBOUR = 0x7fffffff   # index in a list that is not full

cdef struct NeighbourLists:     # of all rows, k entries each
    int *indices
    double *squares
    Py_ssize_t k
    void *norms                 # half the squared length of each row, shortened by what rounding may hide
    void *reaches               # half the largest squared distance in a list, infinite where it is not full
    const double *exact         # the rows that x is a blurred copy of; NULL where x itself is exact
    Py_ssize_t stride           # of these
    double blur                 # how much further off two rows may look than they are


# ---- lists -----------------------------------------------------------------------------------------------------

cdef bint insert(const NeighbourLists *lists, Py_ssize_t i, double square, int j) noexcept nogil:
    """Insert j into the list of row i if it is nearer than the last entry; returns whether it was."""
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


cdef bint has_better(const NeighbourLists *lists, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Whether the list of row i is full of duplicates of it that come before j: no distance lets j in."""
    cdef Py_ssize_t last = i * lists.k + lists.k - 1
    return lists.squares[last] == 0 and lists.indices[last] < j


cdef void set_reach(const NeighbourLists *lists, Py_ssize_t i, real_t *reach) noexcept nogil:
    """reach = half the largest squared distance in the list of row i, with the blur added, rounded up."""
    cdef double square = lists.squares[i * lists.k + lists.k - 1]
    if lists.blur > 0:
        square = (sqrt(square) + lists.blur) * (sqrt(square) + lists.blur)
    reach[0] = <real_t> (square * (0.5 + (1e-6 if real_t is float else 1e-15)))


cdef void clear(const NeighbourLists *lists, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t e
    for e in range(n * lists.k):
        lists.squares[e], lists.indices[e] = INFINITY, NO_NEIGHBOUR


cdef double shortened(double share, Py_ssize_t n_terms, bint single) noexcept nogil:
    """share less the rounding error of |x|² + |z|² - 2x·z, relative to |x|² + |z|², in sums of n_terms."""
    return share - share * (2 * n_terms + 32) * (1.2e-7 if single else 2.3e-16)


def rounding_of_float32(Py_ssize_t p):
    """Return a bound of the error of |x|² + |z|² - 2x·z in float32, relative to |x|² + |z|²."""
    return 1 - shortened(1.0, terms_of(p), True)


cdef Py_ssize_t terms_of(Py_ssize_t p) noexcept nogil:
    """Return the number of terms that are added one after another in a tile's sums."""
    return min(p, <Py_ssize_t> SUM_DEPTH) + p // SUM_DEPTH


cdef double square_between(int level, const real_t *x, const real_t *z, Py_ssize_t p) noexcept nogil:
    if real_t is double:
        return kr_square_d(level, x, z, p)
    else:
        return kr_square_f(level, x, z, p)


# ---- dense rows ------------------------------------------------------------------------------------------------

cdef void serve_tile(const GramPlan *plan, const NeighbourLists *lists, Py_ssize_t row, Py_ssize_t column, int level,
                     real_t *work) noexcept nogil:
    """Offer the pairs of a tile to the lists of both their members."""
    cdef const real_t *x = <const real_t *> plan.x.data
    cdef const real_t *norms = <const real_t *> lists.norms
    cdef real_t *reaches = <real_t *> lists.reaches
    cdef Py_ssize_t i, j, h, n_hits, width
    cdef int hits[TILE]
    cdef double square
    cdef const real_t *sums
    cdef GramTile at
    at.i0, at.n_i = row * TILE, min(<Py_ssize_t> TILE, plan.x.n - row * TILE)
    at.j0, at.n_j = column * TILE, min(<Py_ssize_t> TILE, plan.x.n - column * TILE)
    at.diagonal = row == column
    sum_tile(plan, &at, work)
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
            if insert(lists, i, square, <int> j):
                set_reach(lists, i, &reaches[i])
            if insert(lists, j, square, <int> i):
                set_reach(lists, j, &reaches[j])


cdef void serve_blocks(const GramPlan *plan, const NeighbourLists *lists, Py_ssize_t block, Py_ssize_t other,
                       Py_ssize_t span, int level, real_t *work) noexcept nogil:
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


cdef struct BlockLoop:              # pairs of blocks of rows, each at most once
    const GramPlan *plan
    const NeighbourLists *lists
    Py_ssize_t n_blocks
    Py_ssize_t span                 # tiles of a block
    int level
    void *work                      # of each thread, one after the other
    bint single


cdef void serve_pairs(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef BlockLoop *loop = <BlockLoop *> context
    cdef Py_ssize_t i, block, other, n_blocks = loop.n_blocks, skipped = worker * <Py_ssize_t> TILE_WORK
    for i in range(first, last):
        block = i % n_blocks
        other = block if i < n_blocks else (i // n_blocks + n_blocks - block) % n_blocks
        if i >= n_blocks and block <= other:
            continue
        if loop.single:
            serve_blocks(loop.plan, loop.lists, block, other, loop.span, loop.level, <float *> loop.work + skipped)
        else:
            serve_blocks(loop.plan, loop.lists, block, other, loop.span, loop.level, <double *> loop.work + skipped)


def nearest_dense(const real_t[:, :] x, int[:, ::1] indices, double[:, ::1] squares, int n_threads, tick=None,
                  const double[:, :] exact=None, double blur=0):
    """Fill row i of `indices` and `squares` with the k rows of x nearest to x_i, and their squared distances.

    The rows of x have no gaps; there are more of them than k, and fewer than 2³¹. Squares of differences, summed, do
    not overflow the type of x. Where `exact` is given, its rows are meant, and two rows of x are at most `blur` further
    from each other than they are.
    """
    cdef GramPlan plan
    cdef NeighbourLists lists
    cdef kr_kernel spec
    cdef DenseRows rows
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], n_tiles = (n + TILE - 1) // TILE, itemsize = sizeof(real_t)
    cdef Py_ssize_t task = 0, last, round_end, step = n_threads, i
    cdef Py_ssize_t span = tiles_in_block(n_tiles, p, n_threads), n_blocks = (n_tiles + span - 1) // span
    cdef int status, level = simd_level()
    cdef double half = shortened(0.5, terms_of(p), real_t is float)
    cdef double least = 2e-38 if real_t is float else 3e-308    # what underflow may hide
    cdef real_t *norms = <real_t *> malloc(2 * n * sizeof(real_t))
    cdef BlockLoop loop
    if norms == NULL:
        raise_for_status(NO_MEMORY)
    lists.indices, lists.squares, lists.k = &indices[0, 0], &squares[0, 0], indices.shape[1]
    lists.norms, lists.reaches, lists.exact, lists.blur = norms, norms + n, NULL, blur
    if exact is not None:
        lists.exact, lists.stride = &exact[0, 0], max(exact.strides[0] // <Py_ssize_t> sizeof(double), p)
    spec.kind, spec.degree, spec.gamma, spec.coef0 = SQUARED_DISTANCE, 0, 1.0, 0.0
    rows = dense_rows(&x[0, 0], n, max(x.strides[0] // itemsize, p))
    with nogil:
        clear(&lists, n)
        status = plan_gram(&plan, &rows, NULL, p, &spec, real_t is float, level, n_threads)
        if status == OK:
            for i in range(n):
                norms[i] = <real_t> (half * (<real_t *> plan.x.norms)[i] - least)
                norms[n + i] = <real_t> INFINITY
    loop.plan, loop.lists, loop.n_blocks, loop.span, loop.level = &plan, &lists, n_blocks, span, level
    loop.work, loop.single = aligned(plan.work), real_t is float
    try:
        # Round 0 is the diagonal: where rows in order are near each other, lists are good before anything else comes.
        while status == OK and task < n_blocks * (n_blocks + 1):
            round_end = (task // n_blocks + 1) * n_blocks
            last = min(task + step, round_end)
            started = perf_counter()
            with nogil:
                run_team(task, last, 1, plan.n_threads, serve_pairs, &loop)
            task, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(task, n_blocks * (n_blocks + 1))
    finally:
        free_plan(&plan)
        free(norms)
    raise_for_status(status)


cdef struct RankLoop:
    const void *x
    Py_ssize_t stride
    Py_ssize_t p
    const Py_ssize_t *rows
    const Py_ssize_t *candidates
    Py_ssize_t n_candidates         # of each row
    const NeighbourLists *lists
    int level
    bint single


cdef void rank_row(const RankLoop *loop, Py_ssize_t r, const real_t *x) noexcept nogil:
    cdef const Py_ssize_t *candidates = loop.candidates + r * loop.n_candidates
    cdef Py_ssize_t c, j, i = loop.rows[r]
    for c in range(loop.n_candidates):
        j = candidates[c]
        if j != i:
            insert(loop.lists, r, square_between(loop.level, x + i * loop.stride, x + j * loop.stride, loop.p), <int> j)


cdef void rank_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef RankLoop *loop = <RankLoop *> context
    cdef Py_ssize_t r
    for r in range(first, last):
        if loop.single:
            rank_row(loop, r, <const float *> loop.x)
        else:
            rank_row(loop, r, <const double *> loop.x)


def rank_dense(const real_t[:, :] x, const Py_ssize_t[::1] rows, const Py_ssize_t[:, ::1] candidates,
               int[:, ::1] indices, double[:, ::1] squares, int n_threads):
    """The k nearest of the candidates of some rows: rows[r]'s are candidates[r], each once, and itself left out."""
    cdef NeighbourLists lists
    cdef RankLoop loop
    cdef Py_ssize_t n_rows = rows.shape[0], p = x.shape[1], itemsize = sizeof(real_t)
    if n_rows == 0:
        return
    loop.x, loop.stride, loop.p, loop.rows = &x[0, 0], max(x.strides[0] // itemsize, p), p, &rows[0]
    loop.candidates, loop.n_candidates, loop.lists = &candidates[0, 0], candidates.shape[1], &lists
    loop.level, loop.single = simd_level(), real_t is float
    lists.indices, lists.squares, lists.k = &indices[0, 0], &squares[0, 0], indices.shape[1]
    with nogil:
        clear(&lists, n_rows)
        run_team(0, n_rows, 0, n_threads, rank_rows, &loop)


# ---- sparse rows -----------------------------------------------------------------------------------------------

cdef double square_between_sparse(const gram_csr.CsrOperand *rows, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """By merging the two rows: the same sums as square_between, which also adds zeros."""
    cdef gram_csr.RowMerge at = gram_csr.start_merge(rows, i, rows, j)
    cdef const double *data = <const double *> rows.data
    cdef double sums[KR_NEAR_LANES]
    cdef double gap = 0
    cdef Py_ssize_t column = 0
    memset(sums, 0, sizeof(sums))
    while gram_csr.next_difference(rows, data, rows, data, &at, &column, &gap):
        sums[column % KR_NEAR_LANES] += gap * gap
    return kr_near_total(sums)


cdef void serve_row(const gram_csr.CsrPlan *plan, const NeighbourLists *lists, Py_ssize_t i, int level, double *work,
                    int *hits) noexcept nogil:
    """Offer all rows to the list of row i. A block at a time is judged, so that the list shrinks early."""
    cdef const double *norms = <const double *> lists.norms
    cdef double *no_reaches = work + 3 * plan.x.n   # -infinity: only the list of row i counts
    cdef double *sums = work + 2 * plan.x.n
    cdef double reach = INFINITY
    cdef Py_ssize_t n = plan.x.n, j0 = 0, j, h, n_hits
    gram_csr.sparse_row(plan, i, n, work, work + n, sums)
    while j0 < n:
        n_hits = kr_near_d(level, sums + j0, norms + j0, no_reaches, norms[i], reach, min(<Py_ssize_t> TILE, n - j0),
                           hits)
        for h in range(n_hits):
            j = j0 + hits[h]
            if j == i or sums[j] - norms[j] + reach < norms[i]:
                continue
            if insert(lists, i, square_between_sparse(&plan.x, i, j), <int> j):
                set_reach(lists, i, &reach)
        j0 += TILE


cdef struct SparseRowLoop:
    const gram_csr.CsrPlan *plan
    const NeighbourLists *lists
    int level
    double *work                    # of each thread, one after the other, and
    Py_ssize_t share                # numbers in it
    int *hits                       # TILE of each thread


cdef void serve_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef SparseRowLoop *loop = <SparseRowLoop *> context
    cdef Py_ssize_t i
    for i in range(first, last):
        serve_row(loop.plan, loop.lists, i, loop.level, loop.work + worker * loop.share,
                  loop.hits + worker * <Py_ssize_t> TILE)


def nearest_csr(x, columns, int[:, ::1] indices, double[:, ::1] squares, int n_threads, tick=None):
    """The same for sparse x in float64; `columns` holds it by columns."""
    cdef gram_csr.CsrPlan plan
    cdef NeighbourLists lists
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], i, a, first = 0, last, step = 16 * n_threads
    cdef Py_ssize_t share = 3 * n + TILE
    cdef int status, level = simd_level()
    cdef double half, length
    cdef SparseRowLoop loop
    cdef double *norms = NULL
    cdef double *work = NULL
    cdef int *hits = NULL
    memset(&plan, 0, sizeof(gram_csr.CsrPlan))
    plan.kernel.kind, plan.kernel.degree, plan.kernel.gamma, plan.kernel.coef0 = LINEAR, 0, 1.0, 0.0
    gram_csr.read_rows(&plan.x, x, p, False)
    gram_csr.read_rows(&plan.z, x, p, False)
    gram_csr.read_rows(&plan.columns, columns, n, False)
    lists.indices, lists.squares, lists.k = &indices[0, 0], &squares[0, 0], indices.shape[1]
    with nogil:
        status = gram_csr.complete_plan(&plan, level)
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
                half = shortened(0.5, plan.x.indptr[i + 1] - plan.x.indptr[i], False)
                for a in range(plan.x.indptr[i], plan.x.indptr[i + 1]):
                    length += (<const double *> plan.x.data)[a] * (<const double *> plan.x.data)[a]
                norms[i] = half * length - 3e-308
            for i in range(n_threads):
                for a in range(TILE):
                    work[i * share + 3 * n + a] = -INFINITY
    loop.plan, loop.lists, loop.level = &plan, &lists, level
    loop.work, loop.share, loop.hits = work, share, hits
    try:
        while status == OK and first < n:
            last = min(first + step, n)
            started = perf_counter()
            with nogil:
                run_team(first, last, 8, n_threads, serve_rows, &loop)
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
