# Rows of Gram matrices of sparse data, for callers inside core.

from kernelrules.core.simd cimport kr_finish
from kernelrules.core.status cimport kr_kernel
from kernelrules.core.types cimport PY_SSIZE_T_MAX, real_t


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

cdef struct Merge:                  # two rows walked side by side, feature by feature
    Py_ssize_t a
    Py_ssize_t a_first
    Py_ssize_t a_end
    Py_ssize_t b
    Py_ssize_t b_first
    Py_ssize_t b_end

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


cdef inline void bounds(const Rows *rows, Py_ssize_t i, Py_ssize_t *first, Py_ssize_t *last) noexcept nogil:
    """Where the entries of row i are."""
    if rows.indices == NULL:
        first[0] = i * rows.stride
        last[0] = first[0] + rows.n_features
    else:
        first[0], last[0] = rows.indptr[i], rows.indptr[i + 1]


cdef inline void start_merge(const Rows *x, Py_ssize_t i, const Rows *z, Py_ssize_t j, Merge *at) noexcept nogil:
    """Stand before the first entries of row i of x and row j of z."""
    bounds(x, i, &at.a_first, &at.a_end)
    bounds(z, j, &at.b_first, &at.b_end)
    at.a, at.b = at.a_first, at.b_first


cdef inline bint next_gap(const Rows *x, const Rows *z, Merge *at, Py_ssize_t *column, double *gap,
                          const real_t *example) noexcept nogil:
    """Step to the next feature that either row has, and give their difference there; False at the end of both."""
    cdef const real_t *x_data = <const real_t *> x.data
    cdef const real_t *z_data = <const real_t *> z.data
    cdef Py_ssize_t a_column = PY_SSIZE_T_MAX, b_column = PY_SSIZE_T_MAX
    if at.a < at.a_end:
        a_column = at.a - at.a_first if x.indices == NULL else x.indices[at.a]
    if at.b < at.b_end:
        b_column = at.b - at.b_first if z.indices == NULL else z.indices[at.b]
    if at.a == at.a_end and at.b == at.b_end:
        return False
    column[0] = min(a_column, b_column)
    gap[0] = 0
    if a_column == column[0]:
        gap[0] = x_data[at.a]
        at.a += 1
    if b_column == column[0]:
        gap[0] -= z_data[at.b]
        at.b += 1
    return True
