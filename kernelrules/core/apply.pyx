"""Products of a kernel matrix with coefficients, out = k(X, Z)·C, without the matrix: decision values of kernel
machines, and exact gradients.

Each task takes a tile's height of rows of X and goes through Z by tiles: a tile of the Gram matrix is made in
second-level cache and multiplied away. Columns of C that are zero for all points of a tile are left out, so many
machines that share few points (one-vs-one) cost little more than one.

Invariant: an entry of `out` is one sum in a fixed order, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core cimport gram_csr
from kernelrules.core.gram cimport (
    ALIGNMENT, DEPTH, TILE, WORK, Block, Plan, bind_rows, free_plan, plan_rows, sum_tile, unbind_rows,
)
from kernelrules.core.machine cimport simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.simd cimport KR_FINISH_RBF, dot, finish_row, kr_finish
from kernelrules.core.status cimport NO_MEMORY, OK, kr_kernel
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

HEIGHT = TILE       # rows that are treated together


cdef char *columns_in_use(const double *coefficients, Py_ssize_t n_columns, Py_ssize_t n) noexcept nogil:
    """For every tile of points and every column of C, whether there is a coefficient that is not zero."""
    cdef Py_ssize_t n_tiles = (n + TILE - 1) // TILE, c, j
    cdef char *used = <char *> calloc(n_tiles * n_columns + 1, 1)
    if used == NULL:
        return NULL
    for c in range(n_columns):
        for j in range(n):
            if coefficients[c * n + j] != 0:
                used[j // TILE * n_columns + c] = 1
    return used


cdef void apply_tiles(const Plan *plan, Py_ssize_t row, const double *coefficients, Py_ssize_t n_columns,
                      const char *used, const unsigned char *wanted, double *out, real_t *work) noexcept nogil:
    """out[i, c] += sum over j of k(x_i, z_j) C[c, j] for the rows of tile row `row` and the wanted columns."""
    cdef Py_ssize_t n = plan.z.n, t, i, c
    cdef real_t *tile = work
    cdef const real_t *norm_x = <const real_t *> plan.x.norms
    cdef const real_t *norm_z = <const real_t *> plan.z.norms
    cdef kr_finish how
    cdef Block at
    at.i0, at.n_i, at.diagonal = row * TILE, min(<Py_ssize_t> TILE, plan.x.n - row * TILE), False
    for t in range(plan.tiles_across):
        at.j0, at.n_j = t * TILE, min(<Py_ssize_t> TILE, n - t * TILE)
        how = sum_tile(plan, &at, tile, work + TILE * TILE, work + TILE * (TILE + DEPTH))
        for i in range(at.n_i):
            if how.finish == KR_FINISH_RBF:
                finish_row(plan.simd, &how, norm_x[at.i0 + i], norm_z + at.j0, tile + i * TILE, at.n_j)
            else:
                finish_row(plan.simd, &how, <real_t> 0, NULL, tile + i * TILE, at.n_j)
            for c in range(n_columns):
                if used[t * n_columns + c] and (wanted == NULL or wanted[c]):
                    out[(at.i0 + i) * n_columns + c] += dot(plan.simd, tile + i * TILE, coefficients + c * n + at.j0,
                                                            at.n_j)


def apply_dense(const real_t[:, :] x, const real_t[:, :] z, kernel, const double[:, ::1] coefficients,
                double[:, ::1] out, int n_threads, tick=None, const unsigned char[:, ::1] wanted=None):
    """out += k(x, z)·Cᵀ, with C = `coefficients` of one row a column of `out`. The rows of x and z have no gaps.

    `wanted` tells, for every HEIGHT rows of x, which columns of `out` are of interest; the others may be left out.
    """
    cdef Plan plan
    cdef kr_kernel spec
    cdef Py_ssize_t itemsize = sizeof(real_t), n_columns = coefficients.shape[0], p = x.shape[1], n_x = x.shape[0]
    cdef Py_ssize_t stride_x = max(x.strides[0] // itemsize, p), stride_z = max(z.strides[0] // itemsize, p)
    cdef Py_ssize_t block, first = 0, last, step = n_threads, n_blocks = (n_x + TILE - 1) // TILE
    cdef const unsigned char *interest = NULL
    cdef char *used
    cdef char *raw
    cdef real_t *work
    cdef int status
    if n_x == 0 or z.shape[0] == 0 or n_columns == 0:
        return
    if wanted is not None:
        interest = &wanted[0, 0]
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    used = columns_in_use(&coefficients[0, 0], n_columns, z.shape[0])
    if used == NULL:
        raise_for_status(NO_MEMORY)
    with nogil:
        status = plan_rows(&plan, &z[0, 0], z.shape[0], stride_z, p, &spec, simd_level(), n_threads)
    raw = <char *> plan.work
    work = <real_t *> (raw + (ALIGNMENT - <uintptr_t> raw % ALIGNMENT))
    try:
        while status == OK and first < n_blocks:
            last = min(first + step, n_blocks)
            started = perf_counter()
            with nogil:
                status = bind_rows(&plan, &x[0, 0] + first * TILE * stride_x, min(last * TILE, n_x) - first * TILE,
                                   stride_x)
                if status == OK:
                    for block in prange(last - first, num_threads=n_threads, schedule="dynamic", chunksize=1):
                        apply_tiles(&plan, block, &coefficients[0, 0], n_columns, used,
                                    interest + (first + block) * n_columns if interest != NULL else NULL,
                                    &out[first * TILE, 0], work + threadid() * <Py_ssize_t> WORK)
                unbind_rows(&plan)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(min(first * TILE, n_x), n_x)
    finally:
        free_plan(&plan)
        free(used)
    raise_for_status(status)


cdef void apply_sparse_row(const gram_csr.Plan *plan, Py_ssize_t i, const double *coefficients, Py_ssize_t n_columns,
                           double *out, double *work, const real_t *example) noexcept nogil:
    cdef Py_ssize_t n = plan.z.n, c
    cdef real_t *row = <real_t *> (work + 2 * n)
    gram_csr.sparse_row(plan, i, n, work, work + n, row)
    for c in range(n_columns):
        out[i * n_columns + c] += dot(plan.simd, row, coefficients + c * n, n)


def apply_csr(x, z, columns, kernel, const real_t[::1] example, const double[:, ::1] coefficients,
              double[:, ::1] out, int n_threads, tick=None):
    """The same for sparse x and z, of the type of `example`; `columns` holds z by columns."""
    cdef gram_csr.Plan plan
    cdef Py_ssize_t n_columns = coefficients.shape[0], n_x = x.shape[0], n_z = z.shape[0], p = x.shape[1]
    cdef Py_ssize_t i, first = 0, last, step = 16 * n_threads
    cdef double *work
    cdef int status
    if n_x == 0 or n_z == 0 or n_columns == 0:
        return
    memset(&plan, 0, sizeof(gram_csr.Plan))
    plan.kernel.kind, plan.kernel.degree, plan.kernel.gamma, plan.kernel.coef0 = kernel
    gram_csr.read_rows(&plan.x, x, p, &example[0])
    gram_csr.read_rows(&plan.z, z, p, &example[0])
    gram_csr.read_rows(&plan.columns, columns, n_z, &example[0])
    with nogil:
        status = gram_csr.make_plan(&plan, simd_level(), &example[0])
        work = <double *> malloc(n_threads * 3 * n_z * sizeof(double))
        status = NO_MEMORY if work == NULL else status
    try:
        while status == OK and first < n_x:
            last = min(first + step, n_x)
            started = perf_counter()
            for i in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=8, nogil=True):
                apply_sparse_row(&plan, i, &coefficients[0, 0], n_columns, &out[0, 0], work + threadid() * 3 * n_z,
                                 &example[0])
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, n_x)
    finally:
        gram_csr.free_plan(&plan)
        free(work)
    raise_for_status(status)
