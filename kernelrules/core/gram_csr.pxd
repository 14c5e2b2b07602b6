# Rows of Gram matrices of sparse data, for callers inside core.

from kernelrules.core.simd cimport kr_finish
from kernelrules.core.status cimport kr_kernel
from kernelrules.core.types cimport real_t


cdef struct Rows:                   # rows of data: sparse, or dense where indices is NULL
    const void *data
    const int *indices              # columns, ascending within a row
    const Py_ssize_t *indptr
    Py_ssize_t n
    Py_ssize_t stride               # of dense rows
    Py_ssize_t n_features
    double *norms                   # squared or absolute lengths, each in two parts: at 2i and 2i + 1
    double largest_norm
    Py_ssize_t longest              # most entries in a row

cdef struct Plan:
    Rows x
    Rows z
    Rows columns                    # z by columns: indptr runs over features, indices are rows of z
    kr_kernel kernel
    kr_finish finish
    bint symmetric
    bint distance
    bint absolute
    bint streamed                   # whether the result is written past the caches
    const void *simd

cdef int read_rows(Rows *rows, source, Py_ssize_t n_features, const real_t *example) except -1
cdef int make_plan(Plan *plan, int level, const real_t *example) noexcept nogil
cdef void free_plan(Plan *plan) noexcept nogil
cdef void sparse_row(const Plan *plan, Py_ssize_t i, Py_ssize_t n, double *high, double *low,
                     real_t *row) noexcept nogil
