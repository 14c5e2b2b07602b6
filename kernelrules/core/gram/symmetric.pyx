"""Products of a symmetric matrix with coefficients, out = K·C. Each entry of K is read or computed once and used twice:
K_ij c_j is added to row i, K_ij c_i to row j.

`apply_symmetric`    K is a Gram matrix that is never stored: tiles are made in second-level cache and overwritten
`multiply_stored`    K is stored above its diagonal; below it an in-place factor may lie

A strip is a row of tiles. Strips are assigned in pairs (one long, one short) to a fixed number of groups; each group
has its own sums, which are added at the end in the order of the groups.

Invariant: groups depend on the shapes alone, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport calloc, free

from kernelrules.core.gram.dense cimport (
    TILE, TILE_WORK, DenseRows, GramPlan, GramTile, aligned, dense_rows, evaluate_tile_row, free_plan, plan_gram,
    sum_tile,
)
from kernelrules.core.gram.kernels cimport KernelFunction
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.simd.dispatch cimport add_rows, dot, simd_table
from kernelrules.core.base.status cimport NO_MEMORY, OK, kr_kernel
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef enum:
    MAX_GROUPS = 32             # enough for as many threads; each group costs one addition to the result
    MAX_GROUP_SUMS = 1 << 25    # numbers in the sums of all groups: 256 MB


cdef struct StripGroups:        # the assignment of strips to groups
    Py_ssize_t n                # rows of the matrix
    Py_ssize_t n_columns        # of coefficients
    Py_ssize_t n_strips
    Py_ssize_t n_pairs
    Py_ssize_t n_groups
    double *sums                # (n_groups, n_columns, n)
    const unsigned char *wanted     # (n_strips, n_columns), or NULL


cdef StripGroups group_strips(Py_ssize_t n, Py_ssize_t n_columns) noexcept nogil:
    cdef StripGroups groups
    groups.n, groups.n_columns, groups.wanted = n, n_columns, NULL
    groups.n_strips = (n + TILE - 1) // TILE
    groups.n_pairs = (groups.n_strips + 1) // 2
    groups.n_groups = min(min(<Py_ssize_t> MAX_GROUPS, MAX_GROUP_SUMS // max(n * n_columns, 1)), groups.n_pairs)
    groups.n_groups = max(<Py_ssize_t> 1, groups.n_groups)
    groups.sums = <double *> calloc(groups.n_groups * n_columns * n, sizeof(double))
    return groups


cdef void add_tile_products(const void *simd, const GramTile *at, const real_t *tile, Py_ssize_t stride,
                            const StripGroups *groups, const double *coefficients, double *sums,
                            bint both) noexcept nogil:
    """Add the tile's products to the sums of its rows and, with `both`, of its columns, for the columns of coefficients
    that are wanted in its strip and in its column of tiles."""
    cdef const real_t *rows[TILE]
    cdef const unsigned char *here = NULL
    cdef const unsigned char *there = NULL
    cdef Py_ssize_t i, c, n = groups.n
    cdef const double *v
    cdef double *total
    for i in range(at.n_i):
        rows[i] = tile + i * stride
    if groups.wanted != NULL:
        here = groups.wanted + at.i0 // TILE * groups.n_columns
        there = groups.wanted + at.j0 // TILE * groups.n_columns
    for c in range(groups.n_columns):
        if here != NULL and not (here[c] and there[c]):
            continue
        v, total = coefficients + c * n, sums + c * n
        for i in range(at.n_i):
            total[at.i0 + i] += dot(simd, rows[i], v + at.j0, at.n_j)
        if both:
            add_rows(simd, <const real_t **> rows, 0, v + at.i0, at.n_i, total + at.j0, at.n_j)


cdef void computed_strip(const GramPlan *plan, Py_ssize_t strip, const StripGroups *groups, const double *coefficients,
                         double *sums, real_t *tile) noexcept nogil:
    """Compute the tiles of a strip of the Gram matrix up to the diagonal, and add their products."""
    cdef Py_ssize_t column, i, j
    cdef KernelFunction function
    cdef GramTile at
    at.i0, at.n_i = strip * TILE, min(<Py_ssize_t> TILE, groups.n - strip * TILE)
    for column in range(strip + 1):
        at.j0, at.n_j = column * TILE, min(<Py_ssize_t> TILE, groups.n - column * TILE)
        at.diagonal = column == strip
        function = sum_tile(plan, &at, tile)
        for i in range(at.n_i):
            evaluate_tile_row(plan, &function, &at, i, i + 1 if at.diagonal else at.n_j, tile + i * TILE)
        if at.diagonal:
            for i in range(at.n_i):
                for j in range(i):
                    tile[j * TILE + i] = tile[i * TILE + j]
                if plan.unit_diagonal:
                    tile[i * TILE + i] = 1
        add_tile_products(plan.simd, &at, tile, TILE, groups, coefficients, sums, not at.diagonal)


cdef void stored_strip(const void *simd, const real_t *upper, const double *diagonal, Py_ssize_t strip,
                       const StripGroups *groups, const double *coefficients, double *sums) noexcept nogil:
    """Add the products of a strip from the diagonal on: a tile is used twice while it is in cache."""
    cdef Py_ssize_t column, i, j, c, n = groups.n
    cdef const real_t *row
    cdef const double *v
    cdef double *total
    cdef double value
    cdef GramTile at
    at.i0, at.n_i, at.diagonal = strip * TILE, min(<Py_ssize_t> TILE, n - strip * TILE), False
    for c in range(groups.n_columns):
        v, total = coefficients + c * n, sums + c * n
        for i in range(at.i0, at.i0 + at.n_i):
            row, value = upper + i * n, diagonal[i] * v[i]
            for j in range(i + 1, at.i0 + at.n_i):
                value = value + row[j] * v[j]
                total[j] += row[j] * v[i]
            total[i] += value
    for column in range(strip + 1, groups.n_strips):
        at.j0, at.n_j = column * TILE, min(<Py_ssize_t> TILE, n - column * TILE)
        add_tile_products(simd, &at, upper + at.i0 * n + at.j0, n, groups, coefficients, sums, True)


cdef struct PairLoop:               # pairs of strips, a short and a long one
    const GramPlan *plan            # for tiles that are computed
    const void *simd
    const void *upper               # the matrix, if it is stored, else NULL
    const double *diagonal
    const StripGroups *groups
    const double *coefficients
    double *out
    void *work                      # TILE_WORK numbers per thread, for computed tiles
    bint single


cdef void add_strip(const PairLoop *loop, Py_ssize_t strip, double *sums, real_t *work) noexcept nogil:
    if loop.upper == NULL:
        computed_strip(loop.plan, strip, loop.groups, loop.coefficients, sums, work)
    else:
        stored_strip(loop.simd, <const real_t *> loop.upper, loop.diagonal, strip, loop.groups, loop.coefficients, sums)


cdef void add_pair(const PairLoop *loop, Py_ssize_t pair, real_t *work) noexcept nogil:
    cdef const StripGroups *groups = loop.groups
    cdef double *sums = groups.sums + pair % groups.n_groups * groups.n_columns * groups.n
    cdef Py_ssize_t other = groups.n_strips - 1 - pair
    add_strip(loop, pair, sums, work)
    if other != pair:
        add_strip(loop, other, sums, work)


cdef void add_pairs(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef PairLoop *loop = <PairLoop *> context
    cdef Py_ssize_t pair, skipped = worker * <Py_ssize_t> TILE_WORK
    for pair in range(first, last):
        if loop.single:
            add_pair(loop, pair, <float *> loop.work + skipped if loop.work != NULL else NULL)
        else:
            add_pair(loop, pair, <double *> loop.work + skipped if loop.work != NULL else NULL)


cdef void add_sums(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    """out += the groups' sums, in their order."""
    cdef PairLoop *loop = <PairLoop *> context
    cdef Py_ssize_t size = loop.groups.n_columns * loop.groups.n, k, g
    for k in range(first, last):
        for g in range(loop.groups.n_groups):
            loop.out[k] += loop.groups.sums[g * size + k]


cdef void add_groups(PairLoop *loop, int n_threads) noexcept nogil:
    run_team(0, loop.groups.n_columns * loop.groups.n, 0, n_threads, add_sums, loop)


cdef inline Py_ssize_t end_of_batch(const StripGroups *groups, Py_ssize_t first, Py_ssize_t step) noexcept nogil:
    """The end of the pairs from `first` on that may run in parallel: no two belong to one group."""
    return min(min(first + step, (first // groups.n_groups + 1) * groups.n_groups), groups.n_pairs)


def apply_symmetric(const real_t[:, :] x, kernel, const double[:, ::1] coefficients, double[:, ::1] out, int n_threads,
                    tick=None, const unsigned char[:, ::1] wanted=None):
    """out += C·k(x, x), both with one row of n per set of coefficients. The rows of x have no gaps.

    `wanted[t, c]` is whether row c of C has coefficients, or is needed, at the rows t·TILE.. of x; the rest may be left
    out.
    """
    cdef GramPlan plan
    cdef kr_kernel spec
    cdef StripGroups groups
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], stride = max(x.strides[0] // <Py_ssize_t> sizeof(real_t), p)
    cdef Py_ssize_t first = 0, last, step = n_threads
    cdef DenseRows rows
    cdef PairLoop loop
    cdef int status
    if n == 0 or coefficients.shape[0] == 0:
        return
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    groups = group_strips(n, coefficients.shape[0])
    if groups.sums == NULL:
        raise_for_status(NO_MEMORY)
    if wanted is not None:
        groups.wanted = &wanted[0, 0]
    rows = dense_rows(&x[0, 0], n, stride)
    with nogil:
        status = plan_gram(&plan, &rows, NULL, p, &spec, real_t is float, simd_level(), n_threads)
    loop.plan, loop.upper, loop.groups, loop.coefficients = &plan, NULL, &groups, &coefficients[0, 0]
    loop.out, loop.single = &out[0, 0], real_t is float
    loop.work = aligned(plan.work)
    try:
        while status == OK and first < groups.n_pairs:
            started = perf_counter()
            last = end_of_batch(&groups, first, step)
            with nogil:
                run_team(first, last, 1, plan.n_threads, add_pairs, &loop)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, groups.n_pairs)
        if status == OK:
            with nogil:
                add_groups(&loop, plan.n_threads)
    finally:
        free_plan(&plan)
        free(groups.sums)
    raise_for_status(status)


def multiply_stored(const real_t[:, ::1] upper, const double[::1] diagonal, const double[:, ::1] coefficients,
                    double[:, ::1] out, int n_threads):
    """out += C·K, where K is `upper` above the diagonal and `diagonal` on it; `upper` is not read below it."""
    cdef StripGroups groups
    cdef Py_ssize_t n = upper.shape[0], first = 0, last, step = 4 * n_threads
    cdef PairLoop loop
    if n == 0 or coefficients.shape[0] == 0:
        return
    loop.simd = simd_table(simd_level(), real_t is float)
    groups = group_strips(n, coefficients.shape[0])
    if groups.sums == NULL:
        raise_for_status(NO_MEMORY)
    loop.upper, loop.diagonal, loop.groups, loop.coefficients = &upper[0, 0], &diagonal[0], &groups, &coefficients[0, 0]
    loop.out, loop.work, loop.single = &out[0, 0], NULL, real_t is float
    try:
        while first < groups.n_pairs:
            started = perf_counter()
            last = end_of_batch(&groups, first, step)
            with nogil:
                run_team(first, last, 1, n_threads, add_pairs, &loop)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
        with nogil:
            add_groups(&loop, n_threads)
    finally:
        free(groups.sums)
