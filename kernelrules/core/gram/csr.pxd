# Rows of Gram matrices of sparse data, for callers inside core.

from kernelrules.core.gram.kernels cimport KernelFunction
from kernelrules.core.base.status cimport kr_kernel
from kernelrules.core.base.types cimport PY_SSIZE_T_MAX, real_t


cdef struct CsrOperand:             # rows of data: sparse, or dense if indices is NULL
    const void *data
    const int *indices              # columns, ascending within a row
    const Py_ssize_t *indptr
    Py_ssize_t n
    Py_ssize_t stride               # numbers from one dense row to the next
    Py_ssize_t n_features
    double *norms                   # squared or absolute lengths, each in two parts: at 2i and 2i + 1
    double largest_norm
    Py_ssize_t longest              # largest number of entries in a row

cdef struct RowMerge:               # a position in two rows that are read together, feature by feature
    Py_ssize_t a
    Py_ssize_t a_first
    Py_ssize_t a_end
    Py_ssize_t b
    Py_ssize_t b_first
    Py_ssize_t b_end

cdef struct CsrPlan:
    CsrOperand x
    CsrOperand z
    CsrOperand columns                    # z by columns: indptr runs over features, indices are rows of z
    kr_kernel kernel
    KernelFunction function         # of distances that are multiplied by gamma, or of inner products
    bint single                     # data and values are float32, else float64
    bint symmetric
    bint distance                   # the kernel is a function of a distance, else of an inner product
    bint absolute                   # the distance is |x-z|_1, else |x-z|²
    bint unit_diagonal
    double vanishing                # distances times gamma beyond which values are 0
    bint streamed                   # the result is written past the caches
    const void *simd

cdef int read_rows(CsrOperand *rows, source, Py_ssize_t n_features, bint single) except -1
cdef int complete_plan(CsrPlan *plan, int level) noexcept nogil
cdef void free_plan(CsrPlan *plan) noexcept nogil
cdef void sparse_row(const CsrPlan *plan, Py_ssize_t i, Py_ssize_t n, double *high, double *low,
                     real_t *row) noexcept nogil


cdef inline void entries_of(const CsrOperand *rows, Py_ssize_t i, Py_ssize_t *first, Py_ssize_t *last) noexcept nogil:
    """The entries of row i are first <= e < last."""
    if rows.indices == NULL:
        first[0] = i * rows.stride
        last[0] = first[0] + rows.n_features
    else:
        first[0], last[0] = rows.indptr[i], rows.indptr[i + 1]


cdef inline RowMerge start_merge(const CsrOperand *x, Py_ssize_t i, const CsrOperand *z, Py_ssize_t j) noexcept nogil:
    """The position before the first entries of row i of x and row j of z."""
    cdef RowMerge at
    entries_of(x, i, &at.a_first, &at.a_end)
    entries_of(z, j, &at.b_first, &at.b_end)
    at.a, at.b = at.a_first, at.b_first
    return at


cdef inline bint next_difference(const CsrOperand *x, const real_t *x_data, const CsrOperand *z, const real_t *z_data,
                                 RowMerge *at, Py_ssize_t *column, double *difference) noexcept nogil:
    """Step to the next feature that either row has, and write their difference there; False at the end of both."""
    cdef Py_ssize_t a_column = PY_SSIZE_T_MAX, b_column = PY_SSIZE_T_MAX
    if at.a < at.a_end:
        a_column = at.a - at.a_first if x.indices == NULL else x.indices[at.a]
    if at.b < at.b_end:
        b_column = at.b - at.b_first if z.indices == NULL else z.indices[at.b]
    if at.a == at.a_end and at.b == at.b_end:
        return False
    column[0] = min(a_column, b_column)
    difference[0] = 0
    if a_column == column[0]:
        difference[0] = x_data[at.a]
        at.a += 1
    if b_column == column[0]:
        difference[0] -= z_data[at.b]
        at.b += 1
    return True
