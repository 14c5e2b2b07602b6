"""Products of a symmetric matrix with coefficients, out = K·C, each entry of K read or made once and used for both of
its places: K_ij c_j goes to row i, K_ij c_i to row j.

`apply_symmetric`    K is a Gram matrix that is never held: tiles are made in second-level cache and multiplied away
`multiply_stored`    K is held, but only above its diagonal: below it an in-place factor may lie

A strip is a row of tiles. Strips are dealt out in pairs (one long, one short) to a fixed number of groups; each group
has sums of its own, added up at the end in the order of the groups.

Invariant: groups depend on the shapes alone, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from kernelrules.core.gram cimport (
    ALIGNMENT, DEPTH, TILE, WORK, Block, Plan, free_plan, plan_gram, sum_tile,
)
from kernelrules.core.machine cimport simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.simd cimport KR_FINISH_RBF, add_rows, dot, finish_row, kr_finish, pick
from kernelrules.core.status cimport NO_MEMORY, OK, kr_kernel
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef enum:
    MOST_GROUPS = 32
    MOST_SUMS = 1 << 25         # numbers in the sums of all groups together


cdef struct Deal:               # how strips are dealt out
    Py_ssize_t n                # rows of the matrix
    Py_ssize_t n_columns        # of coefficients
    Py_ssize_t n_strips
    Py_ssize_t n_pairs
    Py_ssize_t n_groups
    double *sums                # (n_groups, n_columns, n)
    const unsigned char *wanted     # (n_strips, n_columns), or NULL


cdef Deal deal_out(Py_ssize_t n, Py_ssize_t n_columns) noexcept nogil:
    cdef Deal deal
    deal.n, deal.n_columns, deal.wanted = n, n_columns, NULL
    deal.n_strips = (n + TILE - 1) // TILE
    deal.n_pairs = (deal.n_strips + 1) // 2
    deal.n_groups = max(<Py_ssize_t> 1, min(min(<Py_ssize_t> MOST_GROUPS, MOST_SUMS // max(n * n_columns, 1)),
                                            deal.n_pairs))
    deal.sums = <double *> calloc(deal.n_groups * n_columns * n, sizeof(double))
    return deal


cdef void use_tile(const void *simd, const Block *at, const real_t *tile, Py_ssize_t stride, const Deal *deal,
                   const double *coefficients, double *sums, bint both) noexcept nogil:
    """Add the tile's products to the sums of its rows and, for both, of its columns; of coefficients that are wanted in
    its strip and in its column of tiles."""
    cdef const real_t *rows[TILE]
    cdef const unsigned char *here = NULL
    cdef const unsigned char *there = NULL
    cdef Py_ssize_t i, c, n = deal.n
    cdef const double *v
    cdef double *total
    for i in range(at.n_i):
        rows[i] = tile + i * stride
    if deal.wanted != NULL:
        here = deal.wanted + at.i0 // TILE * deal.n_columns
        there = deal.wanted + at.j0 // TILE * deal.n_columns
    for c in range(deal.n_columns):
        if here != NULL and not (here[c] and there[c]):
            continue
        v, total = coefficients + c * n, sums + c * n
        for i in range(at.n_i):
            total[at.i0 + i] += dot(simd, rows[i], v + at.j0, at.n_j)
        if both:
            add_rows(simd, <const real_t **> rows, 0, v + at.i0, at.n_i, total + at.j0, at.n_j)


cdef void made_strip(const Plan *plan, Py_ssize_t strip, const Deal *deal, const double *coefficients, double *sums,
                     real_t *tile) noexcept nogil:
    """The tiles of a strip of the Gram matrix up to the diagonal, made and used."""
    cdef const real_t *norms = <const real_t *> plan.x.norms
    cdef Py_ssize_t column, i, j, width
    cdef kr_finish how
    cdef Block at
    at.i0, at.n_i = strip * TILE, min(<Py_ssize_t> TILE, deal.n - strip * TILE)
    for column in range(strip + 1):
        at.j0, at.n_j = column * TILE, min(<Py_ssize_t> TILE, deal.n - column * TILE)
        at.diagonal = column == strip
        how = sum_tile(plan, &at, tile, tile + TILE * TILE, tile + TILE * (TILE + DEPTH))
        for i in range(at.n_i):
            width = i + 1 if at.diagonal else at.n_j
            if how.finish == KR_FINISH_RBF:
                finish_row(plan.simd, &how, norms[at.i0 + i], norms + at.j0, tile + i * TILE, width)
            else:
                finish_row(plan.simd, &how, <real_t> 0, NULL, tile + i * TILE, width)
        if at.diagonal:
            for i in range(at.n_i):
                for j in range(i):
                    tile[j * TILE + i] = tile[i * TILE + j]
                if plan.unit_diagonal:
                    tile[i * TILE + i] = 1
        use_tile(plan.simd, &at, tile, TILE, deal, coefficients, sums, not at.diagonal)


cdef void stored_strip(const void *simd, const real_t *upper, const double *diagonal, Py_ssize_t strip,
                       const Deal *deal, const double *coefficients, double *sums) noexcept nogil:
    """The tiles of a strip from the diagonal on: a tile is used twice while it is in cache."""
    cdef Py_ssize_t column, i, j, c, n = deal.n
    cdef const real_t *row
    cdef const double *v
    cdef double *total
    cdef double value
    cdef Block at
    at.i0, at.n_i, at.diagonal = strip * TILE, min(<Py_ssize_t> TILE, n - strip * TILE), False
    for c in range(deal.n_columns):
        v, total = coefficients + c * n, sums + c * n
        for i in range(at.i0, at.i0 + at.n_i):
            row, value = upper + i * n, diagonal[i] * v[i]
            for j in range(i + 1, at.i0 + at.n_i):
                value = value + row[j] * v[j]
                total[j] += row[j] * v[i]
            total[i] += value
    for column in range(strip + 1, deal.n_strips):
        at.j0, at.n_j = column * TILE, min(<Py_ssize_t> TILE, n - column * TILE)
        use_tile(simd, &at, upper + at.i0 * n + at.j0, n, deal, coefficients, sums, True)


cdef void add_groups(const Deal *deal, double *out, int n_threads) noexcept nogil:
    """out += the groups' sums, in their order."""
    cdef Py_ssize_t size = deal.n_columns * deal.n, k, g
    for k in prange(size, num_threads=n_threads, schedule="static"):
        for g in range(deal.n_groups):
            out[k] = out[k] + deal.sums[g * size + k]


cdef inline Py_ssize_t end_of_batch(const Deal *deal, Py_ssize_t first, Py_ssize_t step) noexcept nogil:
    """Pairs from `first` on that may run side by side: no two of one group."""
    return min(min(first + step, (first // deal.n_groups + 1) * deal.n_groups), deal.n_pairs)


def apply_symmetric(const real_t[:, :] x, kernel, const double[:, ::1] coefficients, double[:, ::1] out, int n_threads,
                    tick=None, const unsigned char[:, ::1] wanted=None):
    """out += C·k(x, x), both with a row of n for each column of coefficients. The rows of x have no gaps.

    `wanted` tells, for every TILE rows of x, which columns have coefficients there or are of interest there; what the
    others would add may be left out.
    """
    cdef Plan plan
    cdef kr_kernel spec
    cdef Deal deal
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], stride = max(x.strides[0] // <Py_ssize_t> sizeof(real_t), p)
    cdef Py_ssize_t first = 0, last, pair, other, step = n_threads
    cdef double *sums
    cdef char *raw
    cdef real_t *work
    cdef int status
    if n == 0 or coefficients.shape[0] == 0:
        return
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    deal = deal_out(n, coefficients.shape[0])
    if deal.sums == NULL:
        raise_for_status(NO_MEMORY)
    if wanted is not None:
        deal.wanted = &wanted[0, 0]
    with nogil:
        status = plan_gram(&plan, &x[0, 0], n, stride, <const real_t *> NULL, 0, 0, p, &spec, simd_level(), n_threads)
    raw = <char *> plan.work
    work = <real_t *> (raw + (ALIGNMENT - <uintptr_t> raw % ALIGNMENT))
    try:
        while status == OK and first < deal.n_pairs:
            started = perf_counter()
            last = end_of_batch(&deal, first, step)
            for pair in prange(first, last, num_threads=plan.n_threads, schedule="dynamic", chunksize=1, nogil=True):
                sums = deal.sums + pair % deal.n_groups * deal.n_columns * n
                other = deal.n_strips - 1 - pair
                made_strip(&plan, pair, &deal, &coefficients[0, 0], sums, work + threadid() * <Py_ssize_t> WORK)
                if other != pair:
                    made_strip(&plan, other, &deal, &coefficients[0, 0], sums, work + threadid() * <Py_ssize_t> WORK)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, deal.n_pairs)
        if status == OK:
            with nogil:
                add_groups(&deal, &out[0, 0], plan.n_threads)
    finally:
        free_plan(&plan)
        free(deal.sums)
    raise_for_status(status)


def multiply_stored(const real_t[:, ::1] upper, const double[::1] diagonal, const double[:, ::1] coefficients,
                    double[:, ::1] out, int n_threads):
    """out += C·K, where K is `upper` above the diagonal and `diagonal` on it; what lies below is not read."""
    cdef Deal deal
    cdef Py_ssize_t n = upper.shape[0], first = 0, last, pair, other, step = 4 * n_threads
    cdef const void *simd
    cdef double *sums
    if n == 0 or coefficients.shape[0] == 0:
        return
    simd = pick(simd_level(), <const real_t *> &upper[0, 0])
    deal = deal_out(n, coefficients.shape[0])
    if deal.sums == NULL:
        raise_for_status(NO_MEMORY)
    try:
        while first < deal.n_pairs:
            started = perf_counter()
            last = end_of_batch(&deal, first, step)
            for pair in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=1, nogil=True):
                sums = deal.sums + pair % deal.n_groups * deal.n_columns * n
                other = deal.n_strips - 1 - pair
                stored_strip(simd, &upper[0, 0], &diagonal[0], pair, &deal, &coefficients[0, 0], sums)
                if other != pair:
                    stored_strip(simd, &upper[0, 0], &diagonal[0], other, &deal, &coefficients[0, 0], sums)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
        with nogil:
            add_groups(&deal, &out[0, 0], n_threads)
    finally:
        free(deal.sums)
