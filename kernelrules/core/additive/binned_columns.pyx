"""Columns as codes of bins, and histograms of residuals by bin.

A column of numbers is divided into at most MAX_BINS bins of ranks (core/rules/ranks.pyx) with about equal numbers of
rows; the levels of a column of categories are its bins. A row's bin is its code, and the last code of a column is that
of missing values. A column that has one code, the default code, in most rows is sparse: its other codes are stored row
by row, and the sums of the default code are those of the node less all others.

Invariant: one thread and sums in the order of rows, so that the bits depend on the data alone.
"""

from libc.stdint cimport int32_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.rules.ranks cimport RankedColumns, RankedData

import numpy as np

from kernelrules.core.base.status import raise_for_status

cdef enum:
    MAX_BINS = 256          # bins of a column of numbers
    MAX_CODES = 65535       # codes are 16 bits wide, and the last one is of missing values
    COLUMNS_PER_PASS = 4    # columns added in one pass, so that sums of one bin do not wait for one another


cdef class BinnedColumns:
    """Columns as bin codes, on which residual trees are grown.

    Parameters
    ----------
    ranked : RankedData
        The columns as ranks.
    """

    def __cinit__(self, RankedData ranked):
        cdef const RankedColumns *columns = &ranked.columns
        cdef Py_ssize_t n = columns.n, p = columns.n_columns, j, k, n_bins = 0
        cdef int32_t *count = NULL
        self.ranked, self.n, self.p = ranked, n, p
        self.codes = <uint16_t *> malloc(max(n * p, 1) * sizeof(uint16_t))
        self.bin_start = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t))
        self.dense_columns = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t))
        self.default_code = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t))
        self.row_start = <Py_ssize_t *> calloc(n + 2, sizeof(Py_ssize_t))
        self.is_category = <char *> calloc(p + 1, 1)
        if (self.codes == NULL or self.bin_start == NULL or self.dense_columns == NULL or self.default_code == NULL
                or self.row_start == NULL or self.is_category == NULL):
            raise_for_status(NO_MEMORY)
        for j in range(p):
            self.is_category[j] = columns.values[j] == NULL
            if self.is_category[j] and columns.n_ranks[j] >= MAX_CODES:
                raise ValueError(f"column {j} has {columns.n_ranks[j]} categories; at most {MAX_CODES - 1} are allowed")
            self.bin_start[j] = n_bins
            n_bins += 1 + (columns.n_ranks[j] if self.is_category[j]
                           else min(columns.n_ranks[j], <Py_ssize_t> MAX_BINS))
        self.bin_start[p] = self.n_bins = n_bins
        self.last_rank = <int32_t *> calloc(n_bins + 1, sizeof(int32_t))
        k = 0
        for j in range(p):
            k = max(k, columns.n_ranks[j])
        count = <int32_t *> malloc((2 * k + 2) * sizeof(int32_t))
        try:
            if self.last_rank == NULL or count == NULL:
                raise_for_status(NO_MEMORY)
            for j in range(p):
                with nogil:
                    self.bin_column(columns, j, count, count + k + 1)
            self.list_sparse_rows(columns)
        finally:
            free(count)

    def __dealloc__(self):
        free(self.codes)
        free(self.bin_start)
        free(self.dense_columns)
        free(self.default_code)
        free(self.sparse_bins)
        free(self.row_start)
        free(self.is_category)
        free(self.last_rank)

    cdef void bin_column(self, const RankedColumns *columns, Py_ssize_t j, int32_t *count,
                         int32_t *bins) noexcept nogil:
        """Assign ranks to bins, one each or with about equal numbers of rows, and rows to codes."""
        cdef Py_ssize_t start = columns.start[j], n_ranks = columns.n_ranks[j], k, b = 0, left, here = 0, target
        cdef Py_ssize_t n_bins = self.bin_start[j + 1] - self.bin_start[j] - 1
        cdef uint16_t *codes = self.codes + j * self.n
        cdef int32_t *last = self.last_rank + self.bin_start[j]
        if n_ranks <= n_bins:
            for k in range(n_ranks):
                bins[k] = <int32_t> k
        else:
            memset(count, 0, n_ranks * sizeof(int32_t))
            for k in range(columns.n_known[j]):
                count[columns.rank_code[start + k] // 2] += 1
            count[columns.implicit_rank[j]] += <int32_t> (columns.n - columns.n_entries[j])
            left = columns.n - (columns.n_entries[j] - columns.n_known[j])
            target = left / n_bins
            for k in range(n_ranks):
                if here > 0 and (here + count[k] / 2 > target or n_ranks - k <= n_bins - 1 - b) and b < n_bins - 1:
                    b += 1
                    left -= here
                    here = 0
                    target = left / (n_bins - b)
                bins[k] = <int32_t> b
                here += count[k]
        for k in range(n_ranks):
            last[bins[k]] = <int32_t> k
        b = bins[columns.implicit_rank[j]] if n_ranks else n_bins
        for k in range(self.n):
            codes[k] = <uint16_t> b
        for k in range(columns.n_entries[j]):
            codes[columns.row[start + k]] = <uint16_t> (
                bins[columns.rank_code[start + k] // 2] if k < columns.n_known[j] else n_bins)

    cdef int list_sparse_rows(self, const RankedColumns *columns) except -1:
        """Store the columns that have one code in most rows sparsely, row by row."""
        cdef Py_ssize_t n = self.n, j, i, k, total = 0, at
        cdef const uint16_t *codes
        for j in range(self.p):
            if columns.n_ranks[j] == 0 or 2 * columns.n_entries[j] > n or self.n_bins >> 32:
                self.default_code[j] = -1
                self.dense_columns[self.n_dense] = j
                self.n_dense += 1
        with nogil:
            for j in range(self.p):
                if self.default_code[j] < 0:
                    continue
                codes = self.codes + j * n
                self.default_code[j] = self.find_default_code(columns, j)
                for k in range(columns.n_entries[j]):
                    i = columns.row[columns.start[j] + k]
                    if codes[i] != self.default_code[j]:
                        self.row_start[i + 2] += 1
                        total += 1
            for i in range(n):
                self.row_start[i + 2] += self.row_start[i + 1]
        self.sparse_bins = <uint32_t *> malloc(max(total, 1) * sizeof(uint32_t))
        if self.sparse_bins == NULL:
            raise_for_status(NO_MEMORY)
        with nogil:                             # row_start[i + 1] is the next free place of row i, and last its end
            for j in range(self.p):
                if self.default_code[j] < 0:
                    continue
                codes = self.codes + j * n
                for k in range(columns.n_entries[j]):
                    i = columns.row[columns.start[j] + k]
                    if codes[i] != self.default_code[j]:
                        at = self.row_start[i + 1]
                        self.sparse_bins[at] = <uint32_t> (self.bin_start[j] + codes[i])
                        self.row_start[i + 1] = at + 1
        return 0

    cdef Py_ssize_t find_default_code(self, const RankedColumns *columns, Py_ssize_t j) noexcept nogil:
        """Return the code of the implicit rank, that of a row without an entry."""
        cdef const int32_t *last = self.last_rank + self.bin_start[j]
        cdef Py_ssize_t b = 0
        while last[b] < <int32_t> columns.implicit_rank[j]:
            b += 1
        return b

    cdef void add_sparse_columns(self, const int32_t *rows, Py_ssize_t m, const double *s, const double *w,
                                 BinSums *bins) noexcept nogil:
        """Add rows to the histograms of the sparse columns, except for their default codes."""
        cdef Py_ssize_t k, e
        cdef double s_here, w_here
        for k in range(m):
            s_here, w_here = s[rows[k]], w[rows[k]]
            for e in range(self.row_start[rows[k]], self.row_start[rows[k] + 1]):
                add_row(bins + self.sparse_bins[e], s_here, w_here)

    cdef void fill_default_codes(self, BinSums total, BinSums *histogram) noexcept nogil:
        """Set the sums of the default codes: the total, less those of the other codes."""
        cdef Py_ssize_t j, b
        cdef BinSums *bins
        cdef BinSums rest
        for j in range(self.p):
            if self.default_code[j] < 0:
                continue
            bins, rest = histogram + self.bin_start[j], total
            for b in range(self.bin_start[j + 1] - self.bin_start[j]):
                rest = subtract_sums(rest, bins[b])
            bins[self.default_code[j]] = rest if rest.n else BinSums(0, 0, 0)

    cdef void add_dense_columns(self, const int32_t *rows, Py_ssize_t m, const double *s, const double *w,
                                Py_ssize_t first, Py_ssize_t last, BinSums *bins) noexcept nogil:
        """Add rows to the histograms of some of the dense columns, COLUMNS_PER_PASS at a time."""
        cdef Py_ssize_t i = first, j, k, c, width
        cdef const uint16_t *codes[COLUMNS_PER_PASS]
        cdef BinSums *here[COLUMNS_PER_PASS]
        while i < last:
            width = min(<Py_ssize_t> COLUMNS_PER_PASS, last - i)
            for c in range(width):
                j = self.dense_columns[i + c]
                codes[c], here[c] = self.codes + j * self.n, bins + self.bin_start[j]
            if width == COLUMNS_PER_PASS:
                for k in range(m):
                    for c in range(COLUMNS_PER_PASS):
                        add_row(here[c] + codes[c][rows[k]], s[rows[k]], w[rows[k]])
            else:
                for c in range(width):
                    for k in range(m):
                        add_row(here[c] + codes[c][rows[k]], s[rows[k]], w[rows[k]])
            i += width

    def last_ranks(self, Py_ssize_t column):
        """Return the highest rank of each bin of a column of numbers."""
        cdef Py_ssize_t first = self.bin_start[column], k, m = self.bin_start[column + 1] - first - 1
        return [self.last_rank[first + k] for k in range(m)]

    def rows_passing(self, Py_ssize_t column, const unsigned char[::1] passes):
        """Return which rows have a code that passes, as an array of bool."""
        cdef const uint16_t *codes = self.codes + column * self.n
        cdef Py_ssize_t i
        if passes.shape[0] != self.n_codes(column):
            raise ValueError("passes must have a flag for every code")
        out = np.empty(self.n, dtype=np.bool_)
        cdef unsigned char[::1] holds = out.view(np.uint8)
        for i in range(self.n):
            holds[i] = passes[codes[i]] != 0
        return out

    def n_codes(self, Py_ssize_t column):
        """Return the number of codes of a column, that of missing values included."""
        return self.bin_start[column + 1] - self.bin_start[column]
