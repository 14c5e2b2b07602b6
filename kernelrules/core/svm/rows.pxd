# Kernel values for the dual solver. A RowStore supplies the kernel rows of some points, and the block of kernel values
# between some points.

from kernelrules.core.gram.dense cimport GramPlan
from kernelrules.core.gram.csr cimport CsrPlan
from kernelrules.core.base.types cimport real_t

cdef extern from "kernelrules/api.h" nogil:
    ctypedef struct kr_row_source:
        void *state
        int (*fill)(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept nogil

cdef enum StoreKind:
    WHOLE_MATRIX                # the kernel matrix is in memory
    CACHED_ROWS                 # missing rows are computed in batches, and cached in a ring of slots
    LINEAR_PRODUCTS             # linear kernel: no rows, but the vector w = Xᵀ·beta

cdef struct Segment:            # consecutive variables that belong to consecutive points
    Py_ssize_t start            # the first variable
    Py_ssize_t n
    Py_ssize_t point            # the point of the first variable
    int group                   # the equality constraint the variables are in

cdef struct FeatureRows:        # data of the linear kernel: dense if indices is NULL, else CSR
    const double *data
    const int *indices
    const Py_ssize_t *indptr
    Py_ssize_t stride
    Py_ssize_t n_features

cdef struct RowStore:
    StoreKind kind
    bint single                 # kernel values are float32, else float64
    Py_ssize_t n                # points
    const void *simd
    const void *diagonal        # k(x, x) of every point
    int n_threads
    Py_ssize_t n_computed       # rows computed so far
    # WHOLE_MATRIX
    const void *matrix
    Py_ssize_t stride
    # CACHED_ROWS: a ring of slots; a new batch takes the next ones
    GramPlan *dense             # one of these three computes rows
    CsrPlan *sparse
    const kr_row_source *source
    void **chunks               # each has memory for chunk_slots rows; NULL until used
    Py_ssize_t chunk_slots
    Py_ssize_t n_slots
    Py_ssize_t head             # the next slot to fill
    Py_ssize_t *slot_of         # by point; -1: the row is not cached
    Py_ssize_t *point_in        # by slot; -1: free
    Py_ssize_t *missing         # points of the next batch
    # LINEAR_PRODUCTS
    FeatureRows features
    double *w_change            # (n_features,)
    Py_ssize_t *entries         # sparse data: pairs (member, entry) of the working set, by feature
    Py_ssize_t *entry_starts    # start of each feature in `entries`
    Py_ssize_t entries_capacity

cdef Py_ssize_t item_size(const RowStore *store) noexcept nogil
cdef int make_slots(RowStore *store, Py_ssize_t n_slots) noexcept nogil
cdef void free_slots(RowStore *store) noexcept nogil
cdef double row_cost(const RowStore *store) noexcept nogil
cdef void gather_row(const real_t *row, const Py_ssize_t *points, Py_ssize_t n, real_t *out) noexcept nogil
cdef int find_block(RowStore *store, const Py_ssize_t *points, Py_ssize_t n, const void **rows,
                    const Py_ssize_t *old_place, const void *old, Py_ssize_t n_old, void *block) noexcept nogil
cdef int find_rows(RowStore *store, const Py_ssize_t *points, Py_ssize_t n, const void **rows) noexcept nogil
cdef int threads_for(const RowStore *store, double nanoseconds) noexcept nogil


cdef class KernelRows:
    cdef RowStore store
    cdef GramPlan dense
    cdef CsrPlan sparse
    cdef kr_row_source source
    cdef readonly bint single
    cdef readonly int kind
    cdef object kept            # arrays that the store points into
    cdef object error           # exception that a Python row function raised
    cdef object row_function
