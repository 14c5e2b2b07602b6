"""Gram matrices of dense data, K[i, j] = k(x_i, z_j), by square tiles spread over threads.

Each tile is made in a buffer that stays in second-level cache: sums over the features by register blocks (inner
products, or squares or magnitudes of differences), then the kernel's function in place, then one write of the result
and, if Z is X, of its mirror image: only tiles on or below the diagonal are computed, so the matrix is exactly
symmetric.

Kernels of |x-z|² expand it to |x|² + |z|² - 2x·z, on data moved to a common centre and scaled by sqrt(gamma). The
expansion loses a few ulp of |x|² + |z|². Tiles in which that exceeds `SAFE_NORM`, and in which some value is not 0
anyway, are made again from the differences x - z. Kernels of |x-z|_1 are always made from the differences.

Invariant: the tiles, and all arithmetic inside one, depend on the shapes alone and never on the number of threads, so
any number of threads gives the same bits.

References
----------
Goto, K. and van de Geijn, R. A. (2008). "Anatomy of high-performance matrix multiplication". ACM Transactions on
Mathematical Software 34(3). Packing and register blocks follow it; the second sum by differences is our own.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport fabs, floor, frexp, ldexp, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.simd.cpu cimport MAX_THREADS, simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.gram.kernels cimport (
    KR_GAMMA, SQUARED_DISTANCE, KernelFunction, KernelRow, function_of_kernel, kernel_is_valid,
    row_of_kernel, vanishing_sum,
)
from kernelrules.core.simd.dispatch cimport (
    KR_SUM_ADD, KR_SUM_LOWER, KR_SUM_MAGNITUDES, KR_SUM_PRODUCTS, KR_SUM_SQUARES, kr_packed_rows, pack, packed_rows,
    simd_table, sliver_rows, stream_fence, sums, transpose, write_row,
)
from kernelrules.core.base.status cimport BAD_ARGUMENT, NO_MEMORY, OK, kr_kernel
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef enum:
    DIFFERENCE_DEPTH = 32               # SUM_DEPTH for differences, whose terms are all positive
    PARTIAL_FEATURES = 1024             # features after which a new tile of partial sums begins; a multiple of both
    CENTRE_ROWS = 512                   # rows that decide the centre: it has to be near, not exact
    MAX_KEPT_BYTES = 24 << 20           # largest operand kept in slivers; of a larger one each tile packs its own
    PAGE_BYTES = 4096
    LARGE_PAGE_BYTES = 2 << 20
    TOUCH_BATCH_BYTES = 128 << 20       # memory touched between two checks for signals
    MAX_SLIVER_ROWS = 64                # no level has longer slivers
    FIRST_BATCH_WORK = 50000            # features times tiles of a thread before the first check for signals

# |x|² + |z|² (scaled and centred) up to which |x-z|² is expanded. On data of many kinds the expansion's error stays
# below 4 ulp of that sum, hence K's relative error below 120 ulp: 3e-14 in float64, 2e-5 in float32.
cdef double SAFE_NORM = 30.0

# exp(-t) is 0 in float32 and in float64 beyond these t.
cdef double EXP_ZERO_FLOAT = 88.0
cdef double EXP_ZERO_DOUBLE = 709.0


# ---- the plan --------------------------------------------------------------------------------------------------

cdef double exact_factor(double gamma, int power, double largest, int max_exponent) noexcept nogil:
    """A power of two near gamma^(1/power): data scaled by it do not round, and the sum of their differences' powers
    neither overflows nor vanishes for extreme gammas. `largest`, the data's largest magnitude, stays in range."""
    cdef int exponent = 0, data_exponent = 0
    frexp(gamma, &exponent)
    exponent = <int> floor(exponent / <double> power)
    frexp(largest, &data_exponent)
    return ldexp(1.0, min(exponent, max_exponent - 1 - data_exponent))


cdef void scale_differences(GramPlan *plan, int power) noexcept nogil:
    """Sum powers of differences of the data, which are only scaled by an exact factor."""
    plan.sum = KR_SUM_SQUARES if power == 2 else KR_SUM_MAGNITUDES
    plan.factor = exact_factor(plan.gamma, power, plan.largest, 127 if plan.single else 1023)
    plan.function.expanded = False
    plan.function.gamma = plan.gamma / (plan.factor * plan.factor if power == 2 else plan.factor)
    plan.function.gamma = min(plan.function.gamma, 3.4e38 if plan.single else 1.7e308)  # infinity · 0 would be NaN


cdef double largest_entry(const GramPlan *plan, const real_t *data, const GramOperand *operand) noexcept nogil:
    """The largest magnitude in the data of an operand."""
    cdef double largest = 0
    cdef Py_ssize_t i, k
    for i in range(operand.n):
        for k in range(plan.n_features):
            largest = max(largest, fabs(<double> data[i * operand.stride + k]))
    return largest


cdef void find_largest(GramPlan *plan, const GramOperand *operand) noexcept nogil:
    if plan.single:
        plan.largest = max(plan.largest, largest_entry(plan, <const float *> operand.data, operand))
    else:
        plan.largest = max(plan.largest, largest_entry(plan, <const double *> operand.data, operand))


cdef void choose_sums(GramPlan *plan, const kr_kernel *kernel, int level) noexcept nogil:
    """Choose what is summed of which data, and the function of the sum, by the kernel's row of the table."""
    cdef const KernelRow *row = row_of_kernel(kernel.kind)
    plan.function = function_of_kernel(kernel, level)
    plan.gamma, plan.factor, plan.sum = plan.function.gamma, 1.0, KR_SUM_PRODUCTS
    plan.unit_diagonal = row.unit
    if row.sum == KR_SUM_PRODUCTS:
        return
    if row.parameters & KR_GAMMA and plan.gamma >= 1:   # for a smaller gamma data are scaled down: no overflow
        find_largest(plan, &plan.x)
        find_largest(plan, &plan.z)
    if row.sum == KR_SUM_SQUARES:
        plan.function.expanded = True
        plan.factor = sqrt(plan.gamma)
        plan.checks_expansion = kernel.kind != SQUARED_DISTANCE
        plan.vanishing = vanishing_sum(&plan.function, EXP_ZERO_FLOAT if plan.single else EXP_ZERO_DOUBLE, plan.single)
    else:
        scale_differences(plan, 1)


cdef void add_to_centre(const real_t *data, const GramOperand *operand, Py_ssize_t n_features, double share,
                        double *centre) noexcept nogil:
    """centre += share · mean of at most CENTRE_ROWS evenly spaced rows; weighted first, so that it cannot overflow."""
    cdef Py_ssize_t step = 1 + (operand.n - 1) // CENTRE_ROWS, n_rows = 1 + (operand.n - 1) // step, i, k
    cdef double weight = share / n_rows
    cdef const real_t *row
    for i in range(n_rows):
        row = data + i * step * operand.stride
        for k in range(n_features):
            centre[k] += weight * row[k]


cdef int find_centre(GramPlan *plan) noexcept nogil:
    """The mean of some rows of both operands, rounded to the type of the data: then x - centre is exact for x of about
    the centre's size."""
    cdef double share = 1.0 if plan.symmetric else 0.5
    cdef Py_ssize_t k
    plan.centre = <double *> calloc(plan.n_features, sizeof(double))
    if plan.centre == NULL:
        return NO_MEMORY
    if plan.single:
        add_to_centre(<const float *> plan.x.data, &plan.x, plan.n_features, share, plan.centre)
        if not plan.symmetric:
            add_to_centre(<const float *> plan.z.data, &plan.z, plan.n_features, share, plan.centre)
        for k in range(plan.n_features):
            plan.centre[k] = <float> plan.centre[k]
    else:
        add_to_centre(<const double *> plan.x.data, &plan.x, plan.n_features, share, plan.centre)
        if not plan.symmetric:
            add_to_centre(<const double *> plan.z.data, &plan.z, plan.n_features, share, plan.centre)
    return OK


cdef void prepare_sliver(const GramPlan *plan, const GramOperand *operand, Py_ssize_t index,
                         const real_t *data) noexcept nogil:
    cdef double norms[MAX_SLIVER_ROWS]
    cdef Py_ssize_t i, i0 = index * plan.sliver, n_rows = min(plan.sliver, operand.n - i0)
    cdef Py_ssize_t step = plan.sliver * plan.n_features
    cdef real_t *slivers = <real_t *> operand.slivers
    pack(plan.simd, data + i0 * operand.stride, operand.stride, n_rows, plan.n_features, plan.centre, plan.factor,
         NULL if slivers == NULL else slivers + index * step, step, NULL if operand.norms == NULL else norms)
    if operand.norms != NULL:
        for i in range(n_rows):
            (<real_t *> operand.norms)[i0 + i] = <real_t> norms[i]


cdef struct SliverLoop:
    const GramPlan *plan
    GramOperand *operand


cdef void prepare_slivers(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef SliverLoop *loop = <SliverLoop *> context
    cdef Py_ssize_t s
    for s in range(first, last):
        if loop.plan.single:
            prepare_sliver(loop.plan, loop.operand, s, <const float *> loop.operand.data)
        else:
            prepare_sliver(loop.plan, loop.operand, s, <const double *> loop.operand.data)


cdef Py_ssize_t item_size(const GramPlan *plan) noexcept nogil:
    """Bytes of a number of the data, and of the result."""
    return sizeof(float) if plan.single else sizeof(double)


cdef int prepare(const GramPlan *plan, GramOperand *operand, int n_threads) noexcept nogil:
    """Make the operand's slivers, if they are small enough to be kept, and its norms, if they are needed."""
    cdef Py_ssize_t n_slivers = (operand.n + plan.sliver - 1) // plan.sliver
    cdef Py_ssize_t rows_kept = MAX_KEPT_BYTES // item_size(plan) // plan.n_features
    cdef SliverLoop loop
    if n_slivers * plan.sliver <= rows_kept:
        operand.slivers = malloc(n_slivers * plan.sliver * plan.n_features * item_size(plan))
        if operand.slivers == NULL:
            return NO_MEMORY
    if plan.function.expanded:
        operand.norms = malloc(operand.n * item_size(plan))
        if operand.norms == NULL:
            return NO_MEMORY
    if operand.slivers != NULL or operand.norms != NULL:
        loop.plan, loop.operand = plan, operand
        run_team(0, n_slivers, 0, n_threads, prepare_slivers, &loop)
    return OK


cdef int allocate_work(GramPlan *plan, int n_threads) noexcept nogil:
    free(plan.work)
    plan.n_threads = n_threads
    plan.work = malloc(n_threads * TILE_WORK * item_size(plan) + ALIGNMENT)
    return OK if plan.work != NULL else NO_MEMORY


cdef inline bint is_streamed(const GramPlan *plan, Py_ssize_t n_x, Py_ssize_t n_z) noexcept nogil:
    return n_x * n_z * <double> item_size(plan) > STREAM_MIN_BYTES


cdef int plan_gram(GramPlan *plan, const DenseRows *x, const DenseRows *z, Py_ssize_t n_features,
                   const kr_kernel *kernel, bint single, int level, int n_threads) noexcept nogil:
    """Check the arguments and prepare what all tiles share. z NULL means that z is x. free_plan() must follow."""
    cdef Py_ssize_t tiles_down
    cdef int status
    memset(plan, 0, sizeof(GramPlan))
    plan.symmetric, plan.single = z == NULL, single
    if plan.symmetric:
        z = x
    if x.n < 0 or z.n < 0 or n_features < 1 or n_threads < 1 or x.stride < n_features or z.stride < n_features:
        return BAD_ARGUMENT
    if kernel == NULL or not kernel_is_valid(kernel) or (x.data == NULL and x.n > 0):
        return BAD_ARGUMENT
    plan.x.data, plan.x.n, plan.x.stride = x.data, x.n, x.stride
    plan.z.data, plan.z.n, plan.z.stride = z.data, z.n, z.stride
    plan.n_features = n_features
    plan.simd, plan.sliver = simd_table(level, single), sliver_rows(level, single)
    choose_sums(plan, kernel, level)
    tiles_down = (x.n + TILE - 1) // TILE
    plan.tiles_across = (z.n + TILE - 1) // TILE
    plan.n_tiles = tiles_down * (tiles_down + 1) // 2 if plan.symmetric else tiles_down * plan.tiles_across
    plan.streamed = is_streamed(plan, x.n, z.n)
    if plan.n_tiles == 0:
        return OK
    status = find_centre(plan) if plan.function.expanded else OK
    if status == OK:
        status = allocate_work(plan, <int> min(<Py_ssize_t> n_threads, plan.n_tiles))
    if status != OK:
        return status
    status = prepare(plan, &plan.x, n_threads)
    if plan.symmetric:
        plan.z = plan.x
    elif status == OK:
        status = prepare(plan, &plan.z, n_threads)
    return status


cdef void free_plan(GramPlan *plan) noexcept nogil:
    if not plan.symmetric:
        free(plan.z.slivers)
        free(plan.z.norms)
    free(plan.x.slivers)
    free(plan.x.norms)
    free(plan.centre)
    free(plan.work)


cdef int plan_rows(GramPlan *plan, const DenseRows *x, Py_ssize_t n_features, const kr_kernel *kernel, bint single,
                   int level, int n_threads) noexcept nogil:
    """A plan of the rows of x against blocks of rows that fill_rows or bind_rows supplies later."""
    cdef int status = plan_gram(plan, x, NULL, n_features, kernel, single, level, n_threads)
    if status != OK:
        return status
    plan.symmetric = False
    memset(&plan.x, 0, sizeof(GramOperand))
    return allocate_work(plan, n_threads)   # a block may have more tiles than the whole matrix has


cdef int bind_rows(GramPlan *plan, const DenseRows *x) noexcept nogil:
    """Give a plan of plan_rows its block of rows; unbind_rows() must follow."""
    memset(&plan.x, 0, sizeof(GramOperand))
    plan.x.data, plan.x.n, plan.x.stride = x.data, x.n, x.stride
    plan.n_tiles = (x.n + TILE - 1) // TILE * plan.tiles_across
    plan.streamed = is_streamed(plan, x.n, plan.z.n)
    return prepare(plan, &plan.x, plan.n_threads)


cdef void unbind_rows(GramPlan *plan) noexcept nogil:
    free(plan.x.slivers)
    free(plan.x.norms)
    memset(&plan.x, 0, sizeof(GramOperand))


cdef DenseRows gather_rows(const GramPlan *plan, const Py_ssize_t *rows, Py_ssize_t n_rows) noexcept nogil:
    """A copy of some rows of the plan's data, without gaps, to be freed; its data are NULL if memory is exhausted."""
    cdef Py_ssize_t width = plan.n_features * item_size(plan), r
    cdef char *block = <char *> malloc(n_rows * width)
    for r in range(n_rows if block != NULL else 0):
        memcpy(block + r * width, <const char *> plan.z.data + rows[r] * plan.z.stride * item_size(plan), width)
    return dense_rows(block, n_rows, plan.n_features)


cdef int fill_rows(GramPlan *plan, const Py_ssize_t *rows, Py_ssize_t n_rows, void *out) noexcept nogil:
    """out[r] = row rows[r] of the Gram matrix of the plan's data, without gaps."""
    cdef DenseRows block = gather_rows(plan, rows, n_rows)
    cdef Py_ssize_t n = plan.z.n, r
    cdef int status
    if block.data == NULL:
        return NO_MEMORY
    status = bind_rows(plan, &block)
    if status == OK:
        status = run_tiles(plan, 0, plan.n_tiles, out, n)
    unbind_rows(plan)
    free(<void *> block.data)
    if plan.unit_diagonal:
        for r in range(n_rows):
            if plan.single:
                (<float *> out)[r * n + rows[r]] = 1
            else:
                (<double *> out)[r * n + rows[r]] = 1
    return status


cdef int fill_square(const GramPlan *plan, const Py_ssize_t *points, Py_ssize_t n, void *out) noexcept nogil:
    """out[i, j] = entry (points[i], points[j]) of the Gram matrix of the plan's data, without gaps."""
    cdef DenseRows block = gather_rows(plan, points, n)
    cdef Py_ssize_t tiles = (n + TILE - 1) // TILE
    cdef GramPlan square = plan[0]
    cdef int status
    if block.data == NULL:
        return NO_MEMORY
    status = bind_rows(&square, &block)
    square.z, square.symmetric, square.tiles_across = square.x, True, tiles
    square.n_tiles, square.streamed = tiles * (tiles + 1) // 2, is_streamed(plan, n, n)
    if status == OK:
        status = run_tiles(&square, 0, square.n_tiles, out, n)
    unbind_rows(&square)
    free(<void *> block.data)
    return status


# ---- one tile --------------------------------------------------------------------------------------------------

cdef kr_packed_rows slivers_of(const GramPlan *plan, const GramOperand *operand, Py_ssize_t i0, Py_ssize_t n,
                               Py_ssize_t k0, Py_ssize_t depth, real_t *buffer) noexcept nogil:
    """Slivers of rows i0.. and features k0..: those that are kept, or packed into the buffer."""
    cdef Py_ssize_t sliver = plan.sliver, step = sliver * plan.n_features
    if operand.slivers != NULL:
        return packed_rows(<const real_t *> operand.slivers + i0 // sliver * step + k0 * sliver, step, n)
    pack(plan.simd, <const real_t *> operand.data + i0 * operand.stride + k0, operand.stride, n, depth,
         NULL if plan.centre == NULL else plan.centre + k0, plan.factor, buffer, sliver * depth, NULL)
    return packed_rows(buffer, sliver * depth, n)


cdef void add_tile(const GramTile *at, const real_t *part, real_t *tile) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(at.n_i):
        for j in range(at.n_j):
            tile[i * TILE + j] += part[i * TILE + j]


cdef void sum_over_features(const GramPlan *plan, const GramTile *at, real_t *work) noexcept nogil:
    """Sums of sums of sums, of at most SUM_DEPTH, PARTIAL_FEATURES / SUM_DEPTH and p / PARTIAL_FEATURES terms: one
    long sum would lose digits. `work` is the tile, two packed operands, and a tile of partial sums."""
    cdef Py_ssize_t max_depth = SUM_DEPTH if plan.sum == KR_SUM_PRODUCTS else DIFFERENCE_DEPTH
    cdef Py_ssize_t b, k0, depth
    cdef kr_packed_rows x, z
    cdef real_t *pack_x = work + TILE * TILE
    cdef real_t *pack_z = pack_x + TILE * SUM_DEPTH
    cdef real_t *part = pack_z + TILE * SUM_DEPTH
    for b in range((plan.n_features + max_depth - 1) // max_depth):
        k0 = b * max_depth
        depth = min(max_depth, plan.n_features - k0)
        x = slivers_of(plan, &plan.x, at.i0, at.n_i, k0, depth, pack_x)
        z = slivers_of(plan, &plan.z, at.j0, at.n_j, k0, depth, pack_z)
        sums(plan.simd, plan.sum, x, z, depth, work if k0 < PARTIAL_FEATURES else part, TILE,
             (KR_SUM_ADD if k0 % PARTIAL_FEATURES > 0 else 0) | (KR_SUM_LOWER if at.diagonal else 0))
        if k0 >= PARTIAL_FEATURES and ((k0 + depth) % PARTIAL_FEATURES == 0 or k0 + depth == plan.n_features):
            add_tile(at, part, work)


cdef bint expansion_fails(const GramPlan *plan, const GramTile *at, const real_t *tile) noexcept nogil:
    """Whether an entry of the tile is neither accurate by the expansion nor certainly 0. NaN counts as failing."""
    cdef const real_t *norm_x = <const real_t *> plan.x.norms + at.i0
    cdef const real_t *norm_z = <const real_t *> plan.z.norms + at.j0
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
            if not size - 2 * <double> tile[i * TILE + j] - doubt * size >= plan.vanishing:
                return True
    return False


cdef KernelFunction sum_tile(const GramPlan *plan, const GramTile *at, real_t *work) noexcept nogil:
    """Write the sums of a tile to the first TILE × TILE numbers of `work`; returns the function of these sums."""
    cdef GramPlan by_differences
    sum_over_features(plan, at, work)
    if not plan.checks_expansion or not expansion_fails(plan, at, work):
        return plan.function
    by_differences = plan[0]
    by_differences.x.slivers = by_differences.z.slivers = by_differences.centre = NULL
    scale_differences(&by_differences, 2)
    sum_over_features(&by_differences, at, work)
    return by_differences.function


cdef void write_mirrored(const void *simd, bint streamed, const real_t *block, Py_ssize_t stride, Py_ssize_t n_rows,
                         Py_ssize_t n_columns, real_t *strip, real_t *out, Py_ssize_t stride_out) noexcept nogil:
    """out[j, i] = block[i, j]; `strip` is a buffer of MIRROR_COLUMNS × n_rows, in which columns are transposed."""
    cdef Py_ssize_t s, j, j0, width
    for s in range((n_columns + MIRROR_COLUMNS - 1) // MIRROR_COLUMNS):
        j0 = s * MIRROR_COLUMNS
        width = min(<Py_ssize_t> MIRROR_COLUMNS, n_columns - j0)
        transpose(simd, block + j0, stride, n_rows, width, strip, n_rows)
        for j in range(width):
            write_row(simd, streamed, strip + j * n_rows, out + (j0 + j) * stride_out, n_rows)


cdef GramTile tile_at(const GramPlan *plan, Py_ssize_t index) noexcept nogil:
    """Tile `index`, counted row by row; of a symmetric matrix only those on and below the diagonal count."""
    cdef Py_ssize_t row, column
    cdef GramTile at
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


cdef void make_tile(const GramPlan *plan, Py_ssize_t index, real_t *out, Py_ssize_t stride_out,
                    real_t *work) noexcept nogil:
    """Compute tile `index` and write it, and its mirror image if the matrix is symmetric."""
    cdef GramTile at = tile_at(plan, index)
    cdef real_t *tile = work
    cdef real_t *row
    cdef real_t *strip = work + TILE * TILE     # over the packed operands, which are not needed any more
    cdef real_t *corner = out + at.i0 * stride_out + at.j0
    cdef KernelFunction function = sum_tile(plan, &at, work)
    cdef Py_ssize_t i, j, width
    for i in range(at.n_i):
        row, width = tile + i * TILE, i + 1 if at.diagonal else at.n_j
        evaluate_tile_row(plan, &function, &at, i, width, row)
        if at.diagonal and plan.unit_diagonal:
            row[i] = 1
        write_row(plan.simd, plan.streamed, row, corner + i * stride_out, width)
    if at.diagonal:
        for i in range(at.n_i):
            for j in range(i):
                corner[j * stride_out + i] = tile[i * TILE + j]
    elif plan.symmetric:
        write_mirrored(plan.simd, plan.streamed, tile, TILE, at.n_i, at.n_j, strip,
                       out + at.j0 * stride_out + at.i0, stride_out)
    stream_fence()


# ---- all tiles -------------------------------------------------------------------------------------------------

cdef struct TileLoop:
    const GramPlan *plan
    void *out
    Py_ssize_t stride_out
    void *work              # TILE_WORK numbers per thread


cdef void make_tiles(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef TileLoop *loop = <TileLoop *> context
    cdef Py_ssize_t t, skipped = worker * <Py_ssize_t> TILE_WORK
    for t in range(first, last):
        if loop.plan.single:
            make_tile(loop.plan, t, <float *> loop.out, loop.stride_out, <float *> loop.work + skipped)
        else:
            make_tile(loop.plan, t, <double *> loop.out, loop.stride_out, <double *> loop.work + skipped)


cdef int run_tiles(const GramPlan *plan, Py_ssize_t first, Py_ssize_t last, void *out,
                   Py_ssize_t stride_out) noexcept nogil:
    """Compute tiles first <= t < last of the plan into out."""
    cdef TileLoop loop
    if stride_out < plan.z.n or (out == NULL and plan.n_tiles > 0):
        return BAD_ARGUMENT
    loop.plan, loop.out, loop.stride_out, loop.work = plan, out, stride_out, aligned(plan.work)
    run_team(first, last, 1, plan.n_threads, make_tiles, &loop)
    return OK


cdef struct PageLoop:
    char *out
    Py_ssize_t n_bytes


cdef void touch_large_pages(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef PageLoop *loop = <PageLoop *> context
    cdef Py_ssize_t at = first * LARGE_PAGE_BYTES
    while at < min(last * LARGE_PAGE_BYTES, loop.n_bytes):
        loop.out[at] = 0
        at += PAGE_BYTES


cdef void touch_pages(char *out, Py_ssize_t n_bytes, int n_threads) noexcept nogil:
    """Make the system supply fresh memory, each thread its own large pages.

    Threads that work side by side would otherwise write to the same large page first, and each would clear it."""
    cdef PageLoop pages
    pages.out, pages.n_bytes = out, n_bytes
    run_team(0, (n_bytes + LARGE_PAGE_BYTES - 1) // LARGE_PAGE_BYTES, 0, n_threads, touch_large_pages, &pages)


cdef int touch_fresh(char *out, Py_ssize_t n_bytes, int n_threads) except -1:
    """touch_pages with a check for signals after every batch: a slow system takes seconds for a large matrix."""
    cdef Py_ssize_t at = 0, batch
    if n_bytes <= STREAM_MIN_BYTES:
        return 0
    while at < n_bytes:
        batch = min(n_bytes - at, <Py_ssize_t> TOUCH_BATCH_BYTES)
        with nogil:
            touch_pages(out + at, batch, n_threads)
        at += batch
        PyErr_CheckSignals()
    return 0


cdef int fill_gram(const DenseRows *x, const DenseRows *z, Py_ssize_t n_features, const kr_kernel *kernel, bint single,
                   void *out, Py_ssize_t stride_out, int n_threads) noexcept nogil:
    """Compute the whole matrix at once, for callers without Python."""
    cdef GramPlan plan
    cdef int status = plan_gram(&plan, x, z, n_features, kernel, single, simd_level(),
                                min(n_threads, <int> MAX_THREADS))
    if status == OK:
        status = run_tiles(&plan, 0, plan.n_tiles, out, stride_out)
    free_plan(&plan)
    return status


def gram_dense(const real_t[:, :] x, z, kernel, real_t[:, :] out, int n_threads, tick=None, bint fresh=False,
               int level=-1):
    """Fill `out` with the Gram matrix of x and z (None: of x with itself). The rows of all three have no gaps.

    `kernel` is the tuple (kind, degree, gamma, coef0).
    `tick(done, total)` is called, and signals are checked, several times a second. `fresh` means that out was just
    allocated, without gaps, and never written. `level` lowers the SIMD level, for tests.
    """
    cdef const real_t[:, :] other
    cdef kr_kernel spec
    cdef GramPlan plan
    cdef DenseRows rows, columns
    cdef Py_ssize_t n_features = x.shape[1], first = 0, last, itemsize = sizeof(real_t)
    # A tile takes longer the more features there are: signals are checked after hundredths of a second at first.
    cdef Py_ssize_t step = n_threads * max(<Py_ssize_t> 1, min(<Py_ssize_t> 64, FIRST_BATCH_WORK // n_features))
    cdef Py_ssize_t stride_out = out.strides[0] // itemsize
    cdef bint symmetric = z is None
    cdef int status
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    rows = columns = dense_rows(&x[0, 0], x.shape[0], max(x.strides[0] // itemsize, n_features))
    if z is not None:
        other = z
        columns = dense_rows(&other[0, 0], other.shape[0], max(other.strides[0] // itemsize, n_features))
    spec.kind, spec.degree, spec.gamma, spec.coef0 = kernel
    level = simd_level() if level < 0 else min(level, simd_level())
    with nogil:
        status = plan_gram(&plan, &rows, NULL if symmetric else &columns, n_features, &spec, real_t is float, level,
                           n_threads)
    try:
        if fresh and status == OK:
            touch_fresh(<char *> &out[0, 0], rows.n * columns.n * itemsize, n_threads)
        while status == OK and first < plan.n_tiles:
            started = perf_counter()
            last = min(first + step, plan.n_tiles)
            with nogil:
                status = run_tiles(&plan, first, last, &out[0, 0], max(stride_out, columns.n))
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, plan.n_tiles)
    finally:
        free_plan(&plan)
    raise_for_status(status)
