"""Products of a kernel matrix with coefficients, out = k(X, Z)·C, without storing the matrix: decision values of kernel
machines, and exact gradients.

Each task takes TILE rows of X and goes through Z by tiles: a tile of the Gram matrix is made in second-level cache,
multiplied with the coefficients, and overwritten. Columns of C that are zero for all points of a tile are left out, so
many machines that share few points (one-vs-one) cost little more than one.

Invariant: an entry of `out` is one sum in a fixed order, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.gram cimport csr as gram_csr
from kernelrules.core.gram.dense cimport (
    TILE, TILE_WORK, DenseRows, GramPlan, GramTile, aligned, bind_rows, dense_rows, evaluate_tile_row, free_plan,
    plan_rows, sum_tile, unbind_rows,
)
from kernelrules.core.gram.kernels cimport KernelFunction
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.simd.dispatch cimport dot
from kernelrules.core.base.status cimport NO_MEMORY, OK, kr_kernel
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

HEIGHT = TILE       # rows of X per task

cdef double FIRST_BATCH_SECONDS = 0.01      # estimated work before the first check for signals


cdef char *columns_in_use(const double *coefficients, Py_ssize_t n_columns, Py_ssize_t n) noexcept nogil:
    """For every tile of points and every column of C, whether some coefficient is not zero."""
    cdef Py_ssize_t n_tiles = (n + TILE - 1) // TILE, c, j
    cdef char *used = <char *> calloc(n_tiles * n_columns + 1, 1)
    if used == NULL:
        return NULL
    for c in range(n_columns):
        for j in range(n):
            if coefficients[c * n + j] != 0:
                used[j // TILE * n_columns + c] = 1
    return used


cdef struct ApplyLoop:              # rows of tiles that are applied in parallel
    const GramPlan *plan
    const double *coefficients
    Py_ssize_t n_columns
    const char *used
    const unsigned char *wanted     # (rows of tiles, n_columns), or NULL: all columns are wanted
    double *out
    void *work                      # TILE_WORK numbers per thread


cdef void apply_tiles(const ApplyLoop *loop, Py_ssize_t row, real_t *work) noexcept nogil:
    """out[i, c] += sum over j of k(x_i, z_j) C[c, j] for the rows of tile row `row` and the wanted columns."""
    cdef const GramPlan *plan = loop.plan
    cdef Py_ssize_t n = plan.z.n, n_columns = loop.n_columns, t, i, c
    cdef const unsigned char *wanted = loop.wanted + row * n_columns if loop.wanted != NULL else NULL
    cdef KernelFunction function
    cdef GramTile at
    at.i0, at.n_i, at.diagonal = row * TILE, min(<Py_ssize_t> TILE, plan.x.n - row * TILE), False
    for t in range(plan.tiles_across):
        at.j0, at.n_j = t * TILE, min(<Py_ssize_t> TILE, n - t * TILE)
        function = sum_tile(plan, &at, work)
        for i in range(at.n_i):
            evaluate_tile_row(plan, &function, &at, i, at.n_j, work + i * TILE)
            for c in range(n_columns):
                if loop.used[t * n_columns + c] and (wanted == NULL or wanted[c]):
                    loop.out[(at.i0 + i) * n_columns + c] += dot(plan.simd, work + i * TILE,
                                                                 loop.coefficients + c * n + at.j0, at.n_j)


cdef void apply_tile_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef ApplyLoop *loop = <ApplyLoop *> context
    cdef Py_ssize_t row, skipped = worker * <Py_ssize_t> TILE_WORK
    for row in range(first, last):
        if loop.plan.single:
            apply_tiles(loop, row, <float *> loop.work + skipped)
        else:
            apply_tiles(loop, row, <double *> loop.work + skipped)


def apply_dense(const real_t[:, :] x, const real_t[:, :] z, kernel, const double[:, ::1] coefficients,
                double[:, ::1] out, int n_threads, tick=None, const unsigned char[:, ::1] wanted=None):
    """out += k(x, z)·Cᵀ, with C = `coefficients` of one row per column of `out`. The rows of x and z have no gaps.

    `wanted[t, c]` is whether column c of `out` is needed for the rows t·HEIGHT.. of x; others may be left out.
    """
    cdef GramPlan plan
    cdef kr_kernel spec
    cdef Py_ssize_t itemsize = sizeof(real_t), n_columns = coefficients.shape[0], p = x.shape[1], n_x = x.shape[0]
    cdef Py_ssize_t stride = max(x.strides[0] // itemsize, p), n_blocks = (n_x + TILE - 1) // TILE
    cdef Py_ssize_t first = 0, last, step
    cdef const unsigned char *all_wanted = NULL
    cdef DenseRows rows, columns
    cdef ApplyLoop loop
    cdef char *used
    cdef int status
    if n_x == 0 or z.shape[0] == 0 or n_columns == 0:
        return
    # A kernel value takes about 1 ns and 0.05 ns per feature; threads that meet rarely wait rarely for each other.
    step = max(n_threads, <Py_ssize_t> (FIRST_BATCH_SECONDS * 1e9 * n_threads / (TILE * (1 + 0.05 * p) * z.shape[0])))
    if wanted is not None:
        all_wanted = &wanted[0, 0]
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    used = columns_in_use(&coefficients[0, 0], n_columns, z.shape[0])
    if used == NULL:
        raise_for_status(NO_MEMORY)
    columns = dense_rows(&z[0, 0], z.shape[0], max(z.strides[0] // itemsize, p))
    with nogil:
        status = plan_rows(&plan, &columns, p, &spec, real_t is float, simd_level(), n_threads)
    loop.plan, loop.coefficients, loop.n_columns, loop.used = &plan, &coefficients[0, 0], n_columns, used
    loop.work = aligned(plan.work)
    try:
        while status == OK and first < n_blocks:
            last = min(first + step, n_blocks)
            started = perf_counter()
            rows = dense_rows(&x[0, 0] + first * TILE * stride, min(last * TILE, n_x) - first * TILE, stride)
            with nogil:
                status = bind_rows(&plan, &rows)
                if status == OK:
                    loop.wanted = all_wanted + first * n_columns if all_wanted != NULL else NULL
                    loop.out = &out[first * TILE, 0]
                    run_team(0, last - first, 1, n_threads, apply_tile_rows, &loop)
                unbind_rows(&plan)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(min(first * TILE, n_x), n_x)
    finally:
        free_plan(&plan)
        free(used)
    raise_for_status(status)


cdef struct ApplyCsrLoop:
    const gram_csr.CsrPlan *plan
    const double *coefficients
    Py_ssize_t n_columns
    double *out
    double *work            # 3·n numbers per thread: sums in two parts, and a row of values


cdef void apply_sparse_row(const ApplyCsrLoop *loop, Py_ssize_t i, double *work, real_t *row) noexcept nogil:
    cdef Py_ssize_t n = loop.plan.z.n, c
    gram_csr.sparse_row(loop.plan, i, n, work, work + n, row)
    for c in range(loop.n_columns):
        loop.out[i * loop.n_columns + c] += dot(loop.plan.simd, row, loop.coefficients + c * n, n)


cdef void apply_sparse_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef ApplyCsrLoop *loop = <ApplyCsrLoop *> context
    cdef Py_ssize_t i, n = loop.plan.z.n
    cdef double *work = loop.work + worker * 3 * n
    for i in range(first, last):
        if loop.plan.single:
            apply_sparse_row(loop, i, work, <float *> (work + 2 * n))
        else:
            apply_sparse_row(loop, i, work, work + 2 * n)


def apply_csr(x, z, columns, kernel, const double[:, ::1] coefficients, double[:, ::1] out, int n_threads, tick=None,
              bint single=False):
    """The same for sparse x and z, in float32 if `single`; `columns` holds z by columns."""
    cdef gram_csr.CsrPlan plan
    cdef Py_ssize_t n_columns = coefficients.shape[0], n_x = x.shape[0], n_z = z.shape[0], p = x.shape[1]
    cdef Py_ssize_t first = 0, last, step = 16 * n_threads
    cdef ApplyCsrLoop loop
    cdef int status
    if n_x == 0 or n_z == 0 or n_columns == 0:
        return
    memset(&plan, 0, sizeof(gram_csr.CsrPlan))
    plan.kernel.kind, plan.kernel.degree, plan.kernel.gamma, plan.kernel.coef0 = kernel
    plan.single = single
    gram_csr.read_rows(&plan.x, x, p, single)
    gram_csr.read_rows(&plan.z, z, p, single)
    gram_csr.read_rows(&plan.columns, columns, n_z, single)
    with nogil:
        status = gram_csr.complete_plan(&plan, simd_level())
        loop.work = <double *> malloc(n_threads * 3 * n_z * sizeof(double))
        status = NO_MEMORY if loop.work == NULL else status
    loop.plan, loop.coefficients, loop.n_columns, loop.out = &plan, &coefficients[0, 0], n_columns, &out[0, 0]
    try:
        while status == OK and first < n_x:
            last = min(first + step, n_x)
            started = perf_counter()
            with nogil:
                run_team(first, last, 8, n_threads, apply_sparse_rows, &loop)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, n_x)
    finally:
        gram_csr.free_plan(&plan)
        free(loop.work)
    raise_for_status(status)
