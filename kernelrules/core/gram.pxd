# The dense Gram builder, for callers inside core and for cython_api.

from kernelrules.core.simd cimport kr_finish
from kernelrules.core.status cimport kr_kernel
from kernelrules.core.types cimport real_t


cdef enum:
    DISTANCE = -1               # squared distances: no kernel, but what RBF matrices of several gammas are made of
    TILE = 240                  # rows and columns of a tile, a multiple of every sliver: 460 kB in float64
    DEPTH = 64                  # features whose products are summed at a time: partial sums keep rounding small
    WORK = TILE * (2 * TILE + 2 * DEPTH)    # numbers that a thread works in: two tiles, two packed operands
    ALIGNMENT = 64
    STREAM_BYTES = 8 << 20      # larger results are written past the caches, which could not hold them
    MIRRORED = 16               # columns that are mirrored at a time, in first-level cache

cdef struct Operand:            # n rows of data, `stride` numbers apart, and what was made of them once
    const void *data
    Py_ssize_t n
    Py_ssize_t stride
    void *slivers               # factor·(row - centre) in the layout of simd_body.h; NULL where tiles make their own
    void *norms                 # squared lengths of the same; NULL unless squared distances are expanded by them

cdef struct Plan:
    Operand x
    Operand z                   # is x where symmetric
    Py_ssize_t n_features
    Py_ssize_t n_tiles
    Py_ssize_t tiles_across
    Py_ssize_t sliver           # rows in a sliver
    const void *simd            # the table of vectorised kernels
    bint symmetric
    bint unit_diagonal
    bint streamed               # whether the result is written past the caches
    int sum                     # what is added up over the features
    double gamma
    double largest              # magnitude in the data, where it decides the factor
    double factor               # data are multiplied by it before they are summed
    double *centre              # and this is subtracted before that; NULL: nothing
    kr_finish finish            # what is made of the sum
    int n_threads
    void *work                  # a tile and packed features for each thread

cdef struct Block:              # where a tile lies
    Py_ssize_t i0
    Py_ssize_t n_i
    Py_ssize_t j0
    Py_ssize_t n_j
    bint diagonal               # of a symmetric matrix: only its lower half is computed

cdef bint kernel_is_valid(const kr_kernel *kernel) noexcept nogil
cdef void put_mirrored(const void *simd, bint streamed, const real_t *block, Py_ssize_t stride, Py_ssize_t n_rows,
                       Py_ssize_t n_columns, real_t *strip, real_t *out, Py_ssize_t stride_out) noexcept nogil
cdef int touch_fresh(char *out, Py_ssize_t n_bytes, int n_threads) except -1
cdef int finish_of(const kr_kernel *kernel) noexcept nogil
cdef int plan_gram(Plan *plan, const real_t *x, Py_ssize_t n_x, Py_ssize_t stride_x, const real_t *z, Py_ssize_t n_z,
                   Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, int level,
                   int n_threads) noexcept nogil
cdef void free_plan(Plan *plan) noexcept nogil
cdef int fill_gram(const real_t *x, Py_ssize_t n_x, Py_ssize_t stride_x, const real_t *z, Py_ssize_t n_z,
                   Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, real_t *out,
                   Py_ssize_t stride_out, int n_threads) noexcept nogil
cdef kr_finish sum_tile(const Plan *plan, const Block *at, real_t *tile, real_t *pack_x, real_t *pack_z) noexcept nogil
cdef int plan_rows(Plan *plan, const real_t *x, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t n_features,
                   const kr_kernel *kernel, int level, int n_threads) noexcept nogil
cdef int bind_rows(Plan *plan, const real_t *x, Py_ssize_t n, Py_ssize_t stride) noexcept nogil
cdef void unbind_rows(Plan *plan) noexcept nogil
cdef int fill_rows(Plan *plan, const Py_ssize_t *rows, Py_ssize_t n_rows, real_t *out) noexcept nogil
cdef int fill_square(const Plan *plan, const Py_ssize_t *points, Py_ssize_t n, real_t *out) noexcept nogil
