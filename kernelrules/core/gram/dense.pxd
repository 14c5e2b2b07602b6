# Dense Gram matrices, for callers inside core and for cython_api.

from libc.stdint cimport uintptr_t

from kernelrules.core.gram.kernels cimport KernelFunction, evaluate_row
from kernelrules.core.base.status cimport kr_kernel
from kernelrules.core.base.types cimport real_t


cdef enum:
    TILE = 240                  # rows and columns of a tile, a multiple of every sliver: 460 kB in float64
    SUM_DEPTH = 64              # features that are summed at a time: partial sums keep rounding errors small
    TILE_WORK = TILE * (2 * TILE + 2 * SUM_DEPTH)   # numbers that a thread works in: two tiles, two packed operands
    ALIGNMENT = 64              # bytes of a cache line, and of the widest vector
    STREAM_MIN_BYTES = 8 << 20  # larger results are written past the caches, which could not hold them
    MIRROR_COLUMNS = 16         # columns that are mirrored at a time, in first-level cache

cdef struct DenseRows:          # n rows of data that begin `stride` numbers apart
    const void *data
    Py_ssize_t n
    Py_ssize_t stride

cdef struct GramOperand:        # the same, and what is prepared once for all tiles
    const void *data
    Py_ssize_t n
    Py_ssize_t stride
    void *slivers               # factor·(row - centre) in the layout of body.h; NULL if every tile packs its own
    void *norms                 # squared lengths of factor·(row - centre); NULL unless squared distances are expanded

cdef struct GramPlan:
    GramOperand x
    GramOperand z               # equal to x if symmetric
    Py_ssize_t n_features
    Py_ssize_t n_tiles
    Py_ssize_t tiles_across
    Py_ssize_t sliver           # rows of a sliver
    const void *simd            # the table of vectorised passes
    bint single                 # data and values are float32, else float64
    bint symmetric
    bint unit_diagonal
    bint streamed               # the result is written past the caches
    int sum                     # what is summed over the features: KR_SUM_*
    double gamma
    double largest              # largest magnitude in the data, if it decides the factor
    double factor               # data are multiplied by it before they are summed
    double *centre              # subtracted from the data before that; NULL: nothing
    KernelFunction function     # the kernel as a function of the sum
    bint checks_expansion       # tiles are made again from differences if the expansion loses digits
    double vanishing            # gamma·|x-z|² beyond which values are 0
    int n_threads
    void *work                  # TILE_WORK numbers per thread

cdef struct GramTile:           # rows i0.. and columns j0.. of the matrix
    Py_ssize_t i0
    Py_ssize_t n_i
    Py_ssize_t j0
    Py_ssize_t n_j
    bint diagonal               # on the diagonal of a symmetric matrix: only the lower half is computed

cdef void write_mirrored(const void *simd, bint streamed, const real_t *block, Py_ssize_t stride, Py_ssize_t n_rows,
                         Py_ssize_t n_columns, real_t *strip, real_t *out, Py_ssize_t stride_out) noexcept nogil
cdef int touch_fresh(char *out, Py_ssize_t n_bytes, int n_threads) except -1
cdef int plan_gram(GramPlan *plan, const DenseRows *x, const DenseRows *z, Py_ssize_t n_features,
                   const kr_kernel *kernel, bint single, int level, int n_threads) noexcept nogil
cdef void free_plan(GramPlan *plan) noexcept nogil
cdef int fill_gram(const DenseRows *x, const DenseRows *z, Py_ssize_t n_features, const kr_kernel *kernel, bint single,
                   void *out, Py_ssize_t stride_out, int n_threads) noexcept nogil
cdef KernelFunction sum_tile(const GramPlan *plan, const GramTile *at, real_t *work) noexcept nogil
cdef int plan_rows(GramPlan *plan, const DenseRows *x, Py_ssize_t n_features, const kr_kernel *kernel, bint single,
                   int level, int n_threads) noexcept nogil
cdef int bind_rows(GramPlan *plan, const DenseRows *x) noexcept nogil
cdef void unbind_rows(GramPlan *plan) noexcept nogil
cdef int fill_rows(GramPlan *plan, const Py_ssize_t *rows, Py_ssize_t n_rows, void *out) noexcept nogil
cdef int fill_square(const GramPlan *plan, const Py_ssize_t *points, Py_ssize_t n, void *out) noexcept nogil


cdef inline DenseRows dense_rows(const void *data, Py_ssize_t n, Py_ssize_t stride) noexcept nogil:
    cdef DenseRows rows
    rows.data, rows.n, rows.stride = data, n, stride
    return rows


cdef inline void *aligned(void *memory) noexcept nogil:
    """The next multiple of ALIGNMENT after an address, at most ALIGNMENT bytes further."""
    return <char *> memory + (ALIGNMENT - <uintptr_t> memory % ALIGNMENT)


cdef inline void evaluate_tile_row(const GramPlan *plan, const KernelFunction *function, const GramTile *at,
                                   Py_ssize_t i, Py_ssize_t width, real_t *row) noexcept nogil:
    """The kernel's values from the sums in row i of a tile, of which `width` are needed."""
    if function.expanded:
        evaluate_row(function, (<const real_t *> plan.x.norms)[at.i0 + i], <const real_t *> plan.z.norms + at.j0, row,
                     width)
    else:
        evaluate_row(function, <real_t> 0, NULL, row, width)
