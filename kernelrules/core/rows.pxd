# Where the solver gets kernel values from. A Store answers three questions: the rows of some points, the square block
# between some points, and the change of K·beta where some coefficients change.

from kernelrules.core.gram cimport Plan as DensePlan
from kernelrules.core.gram_csr cimport Plan as SparsePlan
from kernelrules.core.types cimport real_t

cdef extern from "kernelrules/api.h" nogil:
    ctypedef struct kr_row_source:
        void *state
        int (*fill)(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept nogil

cdef enum StoreKind:
    WHOLE                       # the matrix is in memory
    CACHED                      # rows are computed by blocks where they are missing, and kept as long as there is room
    PRODUCTS                    # linear kernel: no rows at all, but the vector w

cdef struct Segment:            # consecutive variables that belong to consecutive points
    Py_ssize_t start            # the first of them
    Py_ssize_t n
    Py_ssize_t point            # the first one's point
    int group                   # the equality constraint they are in

cdef struct Data:               # rows of numbers: dense where indices is NULL
    const double *data
    const int *indices
    const Py_ssize_t *indptr
    Py_ssize_t stride
    Py_ssize_t n_features

cdef struct Store:
    StoreKind kind
    Py_ssize_t n                # points
    const void *simd
    const void *diagonal        # k(x, x) of every point, real_t
    int n_threads
    Py_ssize_t n_computed       # rows computed so far
    # WHOLE
    const void *matrix
    Py_ssize_t stride
    # CACHED: a ring of slots; a new batch takes the next ones
    DensePlan *dense            # who computes rows: one of these three
    SparsePlan *sparse
    const kr_row_source *source
    void **chunks               # memory of so many slots each; NULL: not used yet
    Py_ssize_t chunk_slots
    Py_ssize_t n_slots
    Py_ssize_t head
    Py_ssize_t *slot_of         # of a point; -1: not there
    Py_ssize_t *point_in        # a slot; -1: free
    Py_ssize_t *missing         # points of the next batch
    # PRODUCTS
    Data data
    double *change              # of w
    double *work                # for each thread, a row of the block
    Py_ssize_t *order           # of sparse data: the working set's entries by feature
    Py_ssize_t *starts
    Py_ssize_t n_entries        # that order has room for

cdef int make_slots(Store *store, Py_ssize_t n_slots, Py_ssize_t itemsize) noexcept nogil
cdef void free_slots(Store *store) noexcept nogil
cdef double row_cost(const Store *store) noexcept nogil
cdef void gather_row(const real_t *row, const Py_ssize_t *points, Py_ssize_t n, real_t *out) noexcept nogil
cdef int find_block(Store *store, const Py_ssize_t *points, Py_ssize_t n, const real_t **rows, const Py_ssize_t *before,
                    const real_t *old, Py_ssize_t n_old, real_t *block) noexcept nogil
cdef int add_change(Store *store, Py_ssize_t *points, double *coefficients, Py_ssize_t n, const real_t **rows,
                    const Segment *segments, int n_segments, double *gradient) noexcept nogil


cdef class KernelRows:
    cdef Store store
    cdef DensePlan dense
    cdef SparsePlan sparse
    cdef kr_row_source source
    cdef readonly bint single
    cdef readonly int kind
    cdef object kept            # arrays that the store points into
    cdef object failure         # what a Python supplier raised
    cdef object supplier
