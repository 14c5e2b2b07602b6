# Columns as codes of bins, and histograms of residuals by bin. See binned_columns.pyx.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

from kernelrules.core.rules.ranks cimport RankedColumns, RankedData


cdef struct BinSums:
    double s, w         # Σ w·residual and Σ w
    int64_t n           # number of rows


cdef inline BinSums add_sums(BinSums a, BinSums b) noexcept nogil:
    return BinSums(a.s + b.s, a.w + b.w, a.n + b.n)


cdef inline BinSums subtract_sums(BinSums a, BinSums b) noexcept nogil:
    return BinSums(a.s - b.s, a.w - b.w, a.n - b.n)


cdef inline void add_row(BinSums *bin, double s, double w) noexcept nogil:
    bin.s += s
    bin.w += w
    bin.n += 1


cdef class BinnedColumns:
    cdef Py_ssize_t n, p, n_bins, n_dense
    cdef uint16_t *codes            # (p, n)
    cdef Py_ssize_t *dense_columns  # columns read by their codes; the others are sparse
    cdef Py_ssize_t *default_code   # code of each sparse column that is not stored; -1 for dense columns
    cdef uint32_t *sparse_bins      # bins of the sparse columns, row by row
    cdef Py_ssize_t *row_start      # offsets of the rows in `sparse_bins`
    cdef Py_ssize_t *bin_start      # first bin of each column; its last bin is of missing values
    cdef char *is_category
    cdef int32_t *last_rank         # highest rank of each bin of numbers
    cdef readonly RankedData ranked

    cdef void bin_column(self, const RankedColumns *columns, Py_ssize_t j, int32_t *count,
                         int32_t *bins) noexcept nogil
    cdef int list_sparse_rows(self, const RankedColumns *columns) except -1
    cdef Py_ssize_t find_default_code(self, const RankedColumns *columns, Py_ssize_t j) noexcept nogil
    cdef void add_sparse_columns(self, const int32_t *rows, Py_ssize_t m, const double *s, const double *w,
                                 BinSums *bins) noexcept nogil
    cdef void fill_default_codes(self, BinSums total, BinSums *histogram) noexcept nogil
    cdef void add_dense_columns(self, const int32_t *rows, Py_ssize_t m, const double *s, const double *w,
                                Py_ssize_t first, Py_ssize_t last, BinSums *bins) noexcept nogil
