"""Gram matrices of dense data, K[i, j] = k(x_i, z_j), by square tiles spread over threads.

Each tile is made in a buffer that stays in the second-level cache: sums over the features by register blocks (inner
products, or powers of differences), then the kernel's function in place, then one write of the result and, where Z is
X, of its mirror image: only tiles on or below the diagonal are computed, so the matrix is exactly symmetric.

RBF expands |x-z|² = |x|² + |z|² - 2x·z on data moved to a common centre and scaled by sqrt(gamma). The expansion loses
a few ulp of |x|² + |z|²; tiles in which that exceeds `SAFE_NORM`, and in which an entry does not vanish anyway, are
made again from the differences x - z. The Laplacian kernel is always made from the differences.

Invariant: the tiles, and all arithmetic inside one, depend on the shapes alone and never on the number of threads, so
any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport fabs, floor, frexp, isfinite, ldexp, sqrt
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.machine cimport MOST_THREADS, simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.simd cimport (
    KR_FINISH_DISTANCE, KR_FINISH_EXP, KR_FINISH_LINEAR, KR_FINISH_POLYNOMIAL, KR_FINISH_RBF, KR_FINISH_SIGMOID,
    KR_SUM_ADD, KR_SUM_LOWER, KR_SUM_MAGNITUDES, KR_SUM_PRODUCTS, KR_SUM_SQUARES, finish_row, kr_finish, pack, pick,
    put_row, sliver_rows, stream_fence, sums, transpose,
)
from kernelrules.core.status cimport (
    BAD_ARGUMENT, LAPLACIAN, LINEAR, NO_MEMORY, OK, POLYNOMIAL, RBF, SIGMOID, kr_kernel,
)
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef enum:
    DIFFERENCE_DEPTH = 32       # the same for differences, whose terms are all positive
    LONG = 1024                 # features after which a new tile of partial sums is begun, a multiple of both
    CENTRE_ROWS = 512           # rows that decide the centre: it has to be near, not exact
    KEPT_BYTES = 24 << 20       # largest operand that is kept in slivers; of a larger one each tile makes its own
    PAGE = 4096
    TOUCHED = 128 << 20         # bytes between two looks at signals
    LARGE_PAGE = 2 << 20
    MOST_SLIVER = 64            # no level has longer slivers

# |x|² + |z|² (scaled and centred) up to which |x-z|² is expanded. On data of many kinds the expansion's error stays
# below 4 ulp of that sum, hence K's relative error below 120 ulp: 3e-14 in float64, 2e-5 in float32.
cdef double SAFE_NORM = 30.0


# ---- what is computed once -------------------------------------------------------------------------------------

cdef bint kernel_is_valid(const kr_kernel *kernel) noexcept nogil:
    if kernel.kind == LINEAR or kernel.kind == DISTANCE:
        return True
    if not (isfinite(kernel.gamma) and kernel.gamma > 0):
        return False
    if kernel.kind == POLYNOMIAL:
        return kernel.degree >= 0 and isfinite(kernel.coef0)
    if kernel.kind == SIGMOID:
        return isfinite(kernel.coef0)
    return kernel.kind == RBF or kernel.kind == LAPLACIAN


cdef int finish_of(const kr_kernel *kernel) noexcept nogil:
    """What is made of the sum over the features: of an inner product, or of a distance."""
    if kernel.kind == POLYNOMIAL:
        return KR_FINISH_POLYNOMIAL
    if kernel.kind == SIGMOID:
        return KR_FINISH_SIGMOID
    if kernel.kind == LINEAR:
        return KR_FINISH_LINEAR
    if kernel.kind == DISTANCE:
        return KR_FINISH_DISTANCE
    return KR_FINISH_EXP


cdef double exact_factor(double gamma, int power, double largest, int most_exponent) noexcept nogil:
    """A power of two near gamma^(1/power): data scaled by it do not round, and the sum of their differences' powers
    neither overflows nor vanishes where gamma is extreme. `largest`, the data's largest magnitude, stays in range."""
    cdef int exponent = 0, room = 0
    frexp(gamma, &exponent)
    exponent = <int> floor(exponent / <double> power)
    frexp(largest, &room)
    return ldexp(1.0, min(exponent, most_exponent - 1 - room))


cdef void scale_differences(Plan *plan, int power, const real_t *example) noexcept nogil:
    """Sum powers of differences of the data as they are, but for an exact factor."""
    plan.sum = KR_SUM_SQUARES if power == 2 else KR_SUM_MAGNITUDES
    plan.factor = exact_factor(plan.gamma, power, plan.largest, 127 if real_t is float else 1023)
    plan.finish.finish = KR_FINISH_EXP
    plan.finish.gamma = plan.gamma / (plan.factor * plan.factor if power == 2 else plan.factor)
    plan.finish.gamma = min(plan.finish.gamma, 3.4e38 if real_t is float else 1.7e308)  # infinity times 0 would be NaN


cdef void find_largest(Plan *plan, const Operand *operand, const real_t *example) noexcept nogil:
    cdef const real_t *data = <const real_t *> operand.data
    cdef Py_ssize_t i, k
    for i in range(operand.n):
        for k in range(plan.n_features):
            plan.largest = max(plan.largest, fabs(<double> data[i * operand.stride + k]))


cdef void choose_sums(Plan *plan, const kr_kernel *kernel, const real_t *example) noexcept nogil:
    """How the kernel is put together: what is summed of which data, and what is made of the sum."""
    plan.gamma, plan.factor, plan.sum = kernel.gamma, 1.0, KR_SUM_PRODUCTS
    plan.finish.finish = finish_of(kernel)
    plan.finish.degree, plan.finish.gamma, plan.finish.coef0 = kernel.degree, kernel.gamma, kernel.coef0
    plan.unit_diagonal = kernel.kind == RBF or kernel.kind == LAPLACIAN
    if plan.unit_diagonal and kernel.gamma >= 1:    # otherwise data are scaled down, which is safe whatever they are
        find_largest(plan, &plan.x, example)
        find_largest(plan, &plan.z, example)
    if kernel.kind == RBF:
        plan.finish.finish = KR_FINISH_RBF
        plan.factor = sqrt(kernel.gamma)
    elif kernel.kind == LAPLACIAN:
        scale_differences(plan, 1, example)


cdef void add_to_centre(const real_t *data, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t n_features, double share,
                        double *centre) noexcept nogil:
    """centre += share · mean of at most CENTRE_ROWS evenly spaced rows; weighted first, so that it cannot overflow."""
    cdef Py_ssize_t step = 1 + (n - 1) // CENTRE_ROWS, n_rows = 1 + (n - 1) // step, i, k
    cdef double weight = share / n_rows
    cdef const real_t *row
    for i in range(n_rows):
        row = data + i * step * stride
        for k in range(n_features):
            centre[k] += weight * row[k]


cdef void prepare_sliver(const Plan *plan, const Operand *operand, Py_ssize_t index, real_t *example) noexcept nogil:
    cdef double norms[MOST_SLIVER]
    cdef Py_ssize_t i, i0 = index * plan.sliver, n_rows = min(plan.sliver, operand.n - i0)
    cdef Py_ssize_t step = plan.sliver * plan.n_features
    cdef real_t *slivers = <real_t *> operand.slivers
    pack(plan.simd, <const real_t *> operand.data + i0 * operand.stride, operand.stride, n_rows, plan.n_features,
         plan.centre, plan.factor, NULL if slivers == NULL else slivers + index * step, step,
         NULL if operand.norms == NULL else norms)
    if operand.norms != NULL:
        for i in range(n_rows):
            (<real_t *> operand.norms)[i0 + i] = <real_t> norms[i]


cdef int prepare(const Plan *plan, Operand *operand, int n_threads, real_t *example) noexcept nogil:
    """The operand's slivers, where they are small, and norms, where they are needed. `example` only names the type."""
    cdef Py_ssize_t n_slivers = (operand.n + plan.sliver - 1) // plan.sliver, s
    cdef Py_ssize_t rows_kept = KEPT_BYTES // <Py_ssize_t> sizeof(real_t) // plan.n_features
    cdef int team = <int> min(<Py_ssize_t> n_threads, n_slivers)
    if n_slivers * plan.sliver <= rows_kept:
        operand.slivers = malloc(n_slivers * plan.sliver * plan.n_features * sizeof(real_t))
        if operand.slivers == NULL:
            return NO_MEMORY
    if plan.finish.finish == KR_FINISH_RBF or plan.finish.finish == KR_FINISH_DISTANCE:
        operand.norms = malloc(operand.n * sizeof(real_t))
        if operand.norms == NULL:
            return NO_MEMORY
    if operand.slivers != NULL or operand.norms != NULL:
        for s in prange(n_slivers, num_threads=team, schedule="static"):
            prepare_sliver(plan, operand, s, example)
    return OK


cdef int plan_gram(Plan *plan, const real_t *x, Py_ssize_t n_x, Py_ssize_t stride_x, const real_t *z, Py_ssize_t n_z,
                   Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, int level,
                   int n_threads) noexcept nogil:
    """Check the arguments and prepare what all tiles share. z NULL means that z is x. free_plan() must follow."""
    cdef Py_ssize_t tiles_down, k
    cdef int status
    cdef real_t example = 0
    memset(plan, 0, sizeof(Plan))
    plan.symmetric = z == NULL
    if plan.symmetric:
        z, n_z, stride_z = x, n_x, stride_x
    if n_x < 0 or n_z < 0 or n_features < 1 or n_threads < 1 or stride_x < n_features or stride_z < n_features:
        return BAD_ARGUMENT
    if kernel == NULL or not kernel_is_valid(kernel) or (x == NULL and n_x > 0):
        return BAD_ARGUMENT
    plan.x.data, plan.x.n, plan.x.stride = x, n_x, stride_x
    plan.z.data, plan.z.n, plan.z.stride = z, n_z, stride_z
    plan.n_features = n_features
    plan.simd = pick(level, &example)
    plan.sliver = sliver_rows(plan.simd, &example)
    choose_sums(plan, kernel, &example)
    tiles_down = (n_x + TILE - 1) // TILE
    plan.tiles_across = (n_z + TILE - 1) // TILE
    plan.n_tiles = tiles_down * (tiles_down + 1) // 2 if plan.symmetric else tiles_down * plan.tiles_across
    plan.streamed = n_x * n_z * <double> sizeof(real_t) > STREAM_BYTES
    if plan.n_tiles == 0:
        return OK

    if kernel.kind == RBF or kernel.kind == DISTANCE:
        plan.centre = <double *> calloc(n_features, sizeof(double))
        if plan.centre == NULL:
            return NO_MEMORY
        add_to_centre(x, n_x, stride_x, n_features, 1.0 if plan.symmetric else 0.5, plan.centre)
        if not plan.symmetric:
            add_to_centre(z, n_z, stride_z, n_features, 0.5, plan.centre)
        for k in range(n_features):
            plan.centre[k] = <real_t> plan.centre[k]    # then x - centre is exact for x of about the centre's size
    plan.n_threads = <int> min(<Py_ssize_t> n_threads, plan.n_tiles)
    plan.work = malloc(plan.n_threads * WORK * sizeof(real_t) + ALIGNMENT)
    if plan.work == NULL:
        return NO_MEMORY
    status = prepare(plan, &plan.x, n_threads, &example)
    if plan.symmetric:
        plan.z = plan.x
    elif status == OK:
        status = prepare(plan, &plan.z, n_threads, &example)
    return status


cdef void free_plan(Plan *plan) noexcept nogil:
    if not plan.symmetric:
        free(plan.z.slivers)
        free(plan.z.norms)
    free(plan.x.slivers)
    free(plan.x.norms)
    free(plan.centre)
    free(plan.work)


cdef int plan_rows(Plan *plan, const real_t *x, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t n_features,
                   const kr_kernel *kernel, int level, int n_threads) noexcept nogil:
    """A plan of the rows of x against arbitrary blocks of rows, which fill_rows or an apply supplies later."""
    cdef int status = plan_gram(plan, x, n, stride, <const real_t *> NULL, 0, 0, n_features, kernel, level, n_threads)
    if status != OK:
        return status
    plan.symmetric = False
    memset(&plan.x, 0, sizeof(Operand))
    free(plan.work)         # a block may have more tiles than threads, whatever the whole matrix has
    plan.n_threads = n_threads
    plan.work = malloc(n_threads * WORK * sizeof(real_t) + ALIGNMENT)
    return OK if plan.work != NULL else NO_MEMORY


cdef int bind_rows(Plan *plan, const real_t *x, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    """Give a plan of plan_rows its block of rows; unbind_rows() must follow."""
    cdef real_t example = 0
    memset(&plan.x, 0, sizeof(Operand))
    plan.x.data, plan.x.n, plan.x.stride = x, n, stride
    plan.n_tiles = (n + TILE - 1) // TILE * plan.tiles_across
    plan.streamed = n * plan.z.n * <double> sizeof(real_t) > STREAM_BYTES
    return prepare(plan, &plan.x, plan.n_threads, &example)


cdef void unbind_rows(Plan *plan) noexcept nogil:
    free(plan.x.slivers)
    free(plan.x.norms)
    memset(&plan.x, 0, sizeof(Operand))


cdef real_t *gathered(const Plan *plan, const Py_ssize_t *rows, Py_ssize_t n_rows, real_t *example) noexcept nogil:
    """A copy of some rows of the plan's data, without gaps; NULL where memory ends."""
    cdef Py_ssize_t p = plan.n_features, r
    cdef real_t *block = <real_t *> malloc(n_rows * p * sizeof(real_t))
    for r in range(n_rows if block != NULL else 0):
        memcpy(block + r * p, <const real_t *> plan.z.data + rows[r] * plan.z.stride, p * sizeof(real_t))
    return block


cdef int fill_rows(Plan *plan, const Py_ssize_t *rows, Py_ssize_t n_rows, real_t *out) noexcept nogil:
    """out[r] = row rows[r] of the Gram matrix of the plan's data, without gaps."""
    cdef Py_ssize_t n = plan.z.n, r
    cdef real_t *block = gathered(plan, rows, n_rows, out)
    cdef int status
    if block == NULL:
        return NO_MEMORY
    status = bind_rows(plan, block, n_rows, plan.n_features)
    if status == OK:
        status = run_tiles(plan, 0, plan.n_tiles, out, n)
    unbind_rows(plan)
    free(block)
    if plan.unit_diagonal:
        for r in range(n_rows):
            out[r * n + rows[r]] = 1
    return status


cdef int fill_square(const Plan *plan, const Py_ssize_t *points, Py_ssize_t n, real_t *out) noexcept nogil:
    """out[i, j] = entry (points[i], points[j]) of the Gram matrix of the plan's data, without gaps."""
    cdef Plan square = plan[0]
    cdef Py_ssize_t tiles = (n + TILE - 1) // TILE
    cdef real_t *block = gathered(plan, points, n, out)
    cdef int status
    if block == NULL:
        return NO_MEMORY
    status = bind_rows(&square, block, n, plan.n_features)
    square.z, square.symmetric, square.tiles_across = square.x, True, tiles
    square.n_tiles = tiles * (tiles + 1) // 2
    square.streamed = n * n * <double> sizeof(real_t) > STREAM_BYTES
    if status == OK:
        status = run_tiles(&square, 0, square.n_tiles, out, n)
    unbind_rows(&square)
    free(block)
    return status


# ---- one tile --------------------------------------------------------------------------------------------------

cdef const real_t *kept_or_packed(const Plan *plan, const Operand *operand, Py_ssize_t i0, Py_ssize_t n, Py_ssize_t k0,
                                  Py_ssize_t depth, real_t *buffer, Py_ssize_t *step) noexcept nogil:
    """Slivers of rows i0.. and features k0..: a place in those that were kept, or made in the buffer."""
    cdef Py_ssize_t sliver = plan.sliver
    if operand.slivers != NULL:
        step[0] = sliver * plan.n_features
        return <const real_t *> operand.slivers + i0 // sliver * step[0] + k0 * sliver
    step[0] = sliver * depth
    pack(plan.simd, <const real_t *> operand.data + i0 * operand.stride + k0, operand.stride, n, depth,
         NULL if plan.centre == NULL else plan.centre + k0, plan.factor, buffer, step[0], NULL)
    return buffer


cdef void add_tile(const Block *at, const real_t *part, real_t *tile) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(at.n_i):
        for j in range(at.n_j):
            tile[i * TILE + j] += part[i * TILE + j]


cdef void sum_over_features(const Plan *plan, const Block *at, real_t *tile, real_t *pack_x,
                            real_t *pack_z) noexcept nogil:
    """Sums of sums of sums, of at most DEPTH, LONG / DEPTH and p / LONG terms: one long sum would lose digits."""
    cdef Py_ssize_t most = DEPTH if plan.sum == KR_SUM_PRODUCTS else DIFFERENCE_DEPTH
    cdef Py_ssize_t b, k0, depth, step_x = 0, step_z = 0
    cdef const real_t *x
    cdef const real_t *z
    cdef real_t *part = pack_z + TILE * DEPTH
    for b in range((plan.n_features + most - 1) // most):
        k0 = b * most
        depth = min(most, plan.n_features - k0)
        x = kept_or_packed(plan, &plan.x, at.i0, at.n_i, k0, depth, pack_x, &step_x)
        z = kept_or_packed(plan, &plan.z, at.j0, at.n_j, k0, depth, pack_z, &step_z)
        sums(plan.simd, plan.sum, x, step_x, at.n_i, z, step_z, at.n_j, depth, tile if k0 < LONG else part, TILE,
             (KR_SUM_ADD if k0 % LONG > 0 else 0) | (KR_SUM_LOWER if at.diagonal else 0))
        if k0 >= LONG and ((k0 + depth) % LONG == 0 or k0 + depth == plan.n_features):
            add_tile(at, part, tile)


cdef bint expansion_fails(const Plan *plan, const Block *at, const real_t *tile) noexcept nogil:
    """Whether an entry of the tile is neither accurate by the expansion nor zero for certain. NaN counts as failing."""
    cdef const real_t *norm_x = <const real_t *> plan.x.norms + at.i0
    cdef const real_t *norm_z = <const real_t *> plan.z.norms + at.j0
    cdef double vanishing = 88.0 if real_t is float else 709.0
    cdef double doubt = 1e-6 if real_t is float else 2e-15      # of the expansion, relative to `size`
    cdef double largest_x = 0, largest_z = 0, size
    cdef Py_ssize_t i, j
    for i in range(at.n_i):
        if not norm_x[i] <= largest_x:
            largest_x = norm_x[i]
    for j in range(at.n_j):
        if not norm_z[j] <= largest_z:
            largest_z = norm_z[j]
    if largest_x + largest_z <= SAFE_NORM:
        return False
    for i in range(at.n_i):
        for j in range(i if at.diagonal else at.n_j):
            size = <double> norm_x[i] + norm_z[j]
            if size <= SAFE_NORM:
                continue
            if not size - 2 * <double> tile[i * TILE + j] - doubt * size >= vanishing:
                return True
    return False


cdef kr_finish sum_tile(const Plan *plan, const Block *at, real_t *tile, real_t *pack_x, real_t *pack_z) noexcept nogil:
    """The sums of the block, into a tile of TILE columns; and what is to be made of them."""
    cdef Plan by_differences
    sum_over_features(plan, at, tile, pack_x, pack_z)
    if plan.finish.finish != KR_FINISH_RBF or not expansion_fails(plan, at, tile):
        return plan.finish
    by_differences = plan[0]
    by_differences.x.slivers = by_differences.z.slivers = by_differences.centre = NULL
    scale_differences(&by_differences, 2, tile)
    sum_over_features(&by_differences, at, tile, pack_x, pack_z)
    return by_differences.finish


cdef void put_mirrored(const void *simd, bint streamed, const real_t *block, Py_ssize_t stride, Py_ssize_t n_rows,
                       Py_ssize_t n_columns, real_t *strip, real_t *out, Py_ssize_t stride_out) noexcept nogil:
    """out[j, i] = block[i, j], by strips of MIRRORED columns, turned in a buffer of MIRRORED × n_rows."""
    cdef Py_ssize_t s, j, j0, width
    for s in range((n_columns + MIRRORED - 1) // MIRRORED):
        j0 = s * MIRRORED
        width = min(<Py_ssize_t> MIRRORED, n_columns - j0)
        transpose(simd, block + j0, stride, n_rows, width, strip, n_rows)
        for j in range(width):
            put_row(simd, streamed, strip + j * n_rows, out + (j0 + j) * stride_out, n_rows)


cdef Block block_of_tile(const Plan *plan, Py_ssize_t index) noexcept nogil:
    """Where tile `index` lies: by rows, of a symmetric matrix those on and below the diagonal."""
    cdef Py_ssize_t row, column
    cdef Block at
    if plan.symmetric:
        row = <Py_ssize_t> ((sqrt(8.0 * index + 1) - 1) / 2)
        while row * (row + 1) // 2 > index:
            row -= 1
        while (row + 1) * (row + 2) // 2 <= index:
            row += 1
        column = index - row * (row + 1) // 2
    else:
        row = index // plan.tiles_across
        column = index - row * plan.tiles_across
    at.i0, at.j0 = row * TILE, column * TILE
    at.n_i, at.n_j = min(<Py_ssize_t> TILE, plan.x.n - at.i0), min(<Py_ssize_t> TILE, plan.z.n - at.j0)
    at.diagonal = plan.symmetric and row == column
    return at


cdef void place_tile(const Plan *plan, Py_ssize_t index, real_t *out, Py_ssize_t stride_out,
                     real_t *work) noexcept nogil:
    """Make tile `index` and write it, and its mirror image where the matrix is symmetric."""
    cdef Block at = block_of_tile(plan, index)
    cdef real_t *tile = work
    cdef real_t *row
    cdef real_t *strip = work + TILE * TILE     # over the packed features, which are not needed any more
    cdef real_t *corner = out + at.i0 * stride_out + at.j0
    cdef const real_t *norm_x = <const real_t *> plan.x.norms
    cdef const real_t *norm_z = <const real_t *> plan.z.norms
    cdef kr_finish how = sum_tile(plan, &at, tile, work + TILE * TILE, work + TILE * (TILE + DEPTH))
    cdef Py_ssize_t i, j, width
    for i in range(at.n_i):
        row, width = tile + i * TILE, i + 1 if at.diagonal else at.n_j
        if how.finish == KR_FINISH_RBF or how.finish == KR_FINISH_DISTANCE:
            finish_row(plan.simd, &how, norm_x[at.i0 + i], norm_z + at.j0, row, width)
        else:
            finish_row(plan.simd, &how, <real_t> 0, NULL, row, width)
        if at.diagonal and plan.unit_diagonal:
            row[i] = 1
        put_row(plan.simd, plan.streamed, row, corner + i * stride_out, width)
    if at.diagonal:
        for i in range(at.n_i):
            for j in range(i):
                corner[j * stride_out + i] = tile[i * TILE + j]
    elif plan.symmetric:
        put_mirrored(plan.simd, plan.streamed, tile, TILE, at.n_i, at.n_j, strip,
                     out + at.j0 * stride_out + at.i0, stride_out)
    stream_fence()


# ---- all tiles -------------------------------------------------------------------------------------------------

cdef int run_tiles(const Plan *plan, Py_ssize_t first, Py_ssize_t last, real_t *out,
                   Py_ssize_t stride_out) noexcept nogil:
    """Tiles first <= t < last of the plan, into out."""
    cdef Py_ssize_t t
    cdef char *raw = <char *> plan.work
    cdef real_t *work = <real_t *> (raw + (ALIGNMENT - <uintptr_t> raw % ALIGNMENT))
    if stride_out < plan.z.n or (out == NULL and plan.n_tiles > 0):
        return BAD_ARGUMENT
    for t in prange(first, last, num_threads=max(plan.n_threads, 1), schedule="dynamic", chunksize=1):
        place_tile(plan, t, out, stride_out, work + threadid() * <Py_ssize_t> WORK)
    return OK


cdef void touch_pages(char *out, Py_ssize_t n_bytes, int n_threads) noexcept nogil:
    """Make the system supply fresh memory, each thread its own large pages.

    Threads that work side by side write to the same large page: each would clear it, and one of the two in vain."""
    cdef Py_ssize_t n_chunks = (n_bytes + LARGE_PAGE - 1) // LARGE_PAGE, c, at
    for c in prange(n_chunks, num_threads=n_threads, schedule="static"):
        at = c * LARGE_PAGE
        while at < min((c + 1) * LARGE_PAGE, n_bytes):
            out[at] = 0
            at = at + PAGE


cdef int touch_fresh(char *out, Py_ssize_t n_bytes, int n_threads) except -1:
    """touch_pages with a look at signals every so many bytes: a slow system takes seconds for a large matrix."""
    cdef Py_ssize_t at = 0, batch
    if n_bytes <= STREAM_BYTES:
        return 0
    while at < n_bytes:
        batch = min(n_bytes - at, <Py_ssize_t> TOUCHED)
        with nogil:
            touch_pages(out + at, batch, n_threads)
        at += batch
        PyErr_CheckSignals()
    return 0


cdef int fill_gram(const real_t *x, Py_ssize_t n_x, Py_ssize_t stride_x, const real_t *z, Py_ssize_t n_z,
                   Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, real_t *out,
                   Py_ssize_t stride_out, int n_threads) noexcept nogil:
    """The whole matrix in one go, for callers without Python."""
    cdef Plan plan
    cdef int status = plan_gram(&plan, x, n_x, stride_x, z, n_z, stride_z, n_features, kernel, simd_level(),
                                min(n_threads, <int> MOST_THREADS))
    if status == OK:
        status = run_tiles(&plan, 0, plan.n_tiles, out, stride_out)
    free_plan(&plan)
    return status


def gram_dense(const real_t[:, :] x, z, kernel, real_t[:, :] out, int n_threads, tick=None, bint fresh=False,
               int level=-1):
    """Fill `out` with the Gram matrix of x and z (None: of x with itself). The rows of all three have no gaps.

    `kernel` is the tuple (kind, degree, gamma, coef0).
    `tick(done, total)` is called, and signals are looked at, several times a second. `fresh` says that out was
    just allocated, without gaps, and never written. `level` lowers the SIMD level, for tests.
    """
    cdef const real_t[:, :] other
    cdef kr_kernel spec
    cdef Plan plan
    cdef Py_ssize_t n_features = x.shape[1], first = 0, last, itemsize = sizeof(real_t)
    # A tile takes longer the more features there are: the first look at signals comes after hundredths of a second.
    cdef Py_ssize_t step = n_threads * max(<Py_ssize_t> 1, min(<Py_ssize_t> 64, 50000 // n_features))
    cdef Py_ssize_t n_x = x.shape[0], n_z = n_x, stride_z = 0
    cdef Py_ssize_t stride_x = x.strides[0] // itemsize, stride_out = out.strides[0] // itemsize
    cdef const real_t *at_z = NULL
    cdef int status
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    if z is not None:
        other = z
        n_z, stride_z, at_z = other.shape[0], other.strides[0] // itemsize, &other[0, 0]
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    level = simd_level() if level < 0 else min(level, simd_level())
    with nogil:
        status = plan_gram(&plan, &x[0, 0], n_x, max(stride_x, n_features), at_z, n_z, max(stride_z, n_features),
                           n_features, &spec, level, n_threads)
    try:
        if fresh and status == OK:
            touch_fresh(<char *> &out[0, 0], n_x * n_z * itemsize, n_threads)
        while status == OK and first < plan.n_tiles:
            started = perf_counter()
            last = min(first + step, plan.n_tiles)
            with nogil:
                status = run_tiles(&plan, first, last, &out[0, 0], max(stride_out, n_z))
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, plan.n_tiles)
    finally:
        free_plan(&plan)
    raise_for_status(status)


def distances_dense(const real_t[:, ::1] x, real_t[:, ::1] out, int n_threads, tick=None):
    """Fill `out` with the squared distances between the rows of x."""
    gram_dense(x, None, (DISTANCE, 0, 1.0, 0.0), out, n_threads, tick, True)


def exp_of_distances(const real_t[:, ::1] squares, double gamma, real_t[:, ::1] out, int n_threads):
    """out = exp(-gamma·squares), exactly 1 on the diagonal. Signals are looked at several times a second."""
    cdef Py_ssize_t n = squares.shape[0], i, first = 0, last, step = 64
    cdef const void *simd
    cdef kr_finish how
    if n == 0:
        return
    simd = pick(simd_level(), &out[0, 0])
    how.finish, how.degree, how.gamma, how.coef0 = KR_FINISH_EXP, 0, gamma, 0.0
    while first < n:
        started = perf_counter()
        last = min(first + step, n)
        for i in prange(first, last, num_threads=n_threads, schedule="static", nogil=True):
            memcpy(&out[i, 0], &squares[i, 0], n * sizeof(real_t))
            finish_row(simd, &how, <real_t> 0, NULL, &out[i, 0], n)
            out[i, i] = 1
        first, step = last, better_step(step, perf_counter() - started)
        PyErr_CheckSignals()
