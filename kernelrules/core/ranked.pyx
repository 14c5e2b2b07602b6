"""Columns as ranks of their values, listed for the rows that differ from the usual.

    entries of column j    (row, rank) by ascending rank, then the rows whose value is missing
    usual[j]               the rank of every row that has no entry: that of the most frequent value, of sparse data zero

Numbers have the ranks 0, 1, ... of the column's distinct values; categories are ranks themselves. Whatever a rule asks
of a column is then an interval of ranks: its rows are a stretch of the entries, and the usual ones or not. Sparse and
dense data are the same from here on, and cost what is unusual in them.

Invariant: what a column's entries are depends on its values and row numbers only, never on threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from kernelrules.core.blocks cimport give_back, take
from kernelrules.core.presort cimport DIFFERS, key_of, key_t, sort_entries
from kernelrules.core.status cimport NO_MEMORY, OK
from kernelrules.core.types cimport real_t

from kernelrules.core.status import raise_for_status


cdef enum:
    AT_ONCE = 10000000      # entries sorted between looks at signals


cdef struct Work:                   # of one column that is being sorted; one a thread
    void *values
    void *keys
    void *other_keys
    uint32_t *order
    uint32_t *other_order


cdef int sort_column(Columns *columns, Py_ssize_t j, const real_t *values, const int *rows, Py_ssize_t m,
                     bint category, key_t example, Work *work) noexcept nogil:
    """The entries of a column of m values; rows is NULL where these are of rows 0, 1, ...; the other rows are 0."""
    cdef key_t *keys = <key_t *> work.keys
    cdef uint32_t *order = work.order
    cdef Py_ssize_t n_known = 0, i
    for i in range(m):
        keys[i] = key_of(values[i], example)
        order[i] = <uint32_t> i
        n_known += values[i] == values[i]
    sort_entries(keys, <key_t *> work.other_keys, order, work.other_order, m, n_known)
    return list_entries(columns, j, values, rows, m, n_known, category, order)


cdef int list_entries(Columns *columns, Py_ssize_t j, const real_t *values, const int *rows, Py_ssize_t m,
                      Py_ssize_t n_known, bint category, const uint32_t *order) noexcept nogil:
    """Entries from the order of the values, without those that have the usual one."""
    cdef Py_ssize_t n_zeros = columns.n - m, n_runs = 0, run_start = 0, longest = 0, zero_at = -1, rank = -1, i, at
    cdef Py_ssize_t usual = 0, start = columns.start[j], n_kept = 0
    cdef double *distinct = NULL
    cdef double value
    for i in range(n_known):
        n_runs += order[i] >> 31
    if not category:
        distinct = <double *> malloc((n_runs + (n_zeros > 0) + 1) * sizeof(double))
        if distinct == NULL:
            return NO_MEMORY
        columns.value[j] = distinct
    for i in range(n_known + 1):                # the most frequent value, of equals the lowest; distinct values
        if i < n_known and not order[i] & DIFFERS:
            continue
        if i > 0 and i - run_start > longest:
            longest, usual = i - run_start, rank
        if i == n_known:
            break
        run_start = i
        value = values[order[i] & ~DIFFERS]
        if category:
            rank = <Py_ssize_t> value
            continue
        if n_zeros and zero_at < 0 and value > 0:
            zero_at = rank + 1
            rank += 1
            distinct[rank] = 0
        rank += 1
        distinct[rank] = value
    if n_zeros:
        if zero_at < 0:
            rank += 1
            zero_at = rank
            distinct[rank] = 0
        usual = zero_at
    if not category:
        columns.n_ranks[j] = rank + 1
    columns.usual[j] = <uint32_t> usual
    rank = -1
    for i in range(m):
        at = order[i] & ~DIFFERS
        if i < n_known and order[i] & DIFFERS:
            rank = <Py_ssize_t> values[at] if category else rank + 1 + (n_zeros > 0 and rank + 1 == zero_at)
        if i < n_known and rank == usual:
            continue
        columns.row[start + n_kept] = <uint32_t> (at if rows == NULL else rows[at])
        columns.tag[start + n_kept] = <uint32_t> (2 * rank)
        n_kept += 1
        columns.known[j] += i < n_known
    columns.size[j] = n_kept
    return OK


cdef int read_dense(Columns *columns, const real_t *at, Py_ssize_t row_step, Py_ssize_t column_step, Py_ssize_t j,
                    bint category, Work *work) noexcept nogil:
    """One column of a matrix."""
    cdef real_t *values = <real_t *> work.values
    cdef Py_ssize_t i
    at = <const real_t *> (<const char *> at + j * column_step)
    for i in range(columns.n):
        values[i] = (<const real_t *> (<const char *> at + i * row_step))[0]
    if real_t is float:
        return sort_column(columns, j, values, NULL, columns.n, category, <uint32_t> 0, work)
    else:
        return sort_column(columns, j, values, NULL, columns.n, category, <uint64_t> 0, work)


cdef int read_sparse(Columns *columns, const real_t *data, const int *rows, Py_ssize_t j, Py_ssize_t m,
                     Work *work) noexcept nogil:
    """One column of sparse data, where zeros are not stored."""
    if real_t is float:
        return sort_column(columns, j, data, rows, m, False, <uint32_t> 0, work)
    else:
        return sort_column(columns, j, data, rows, m, False, <uint64_t> 0, work)


cdef Work *new_work(Py_ssize_t n, Py_ssize_t n_threads) noexcept nogil:
    cdef Work *work = <Work *> calloc(n_threads, sizeof(Work))
    cdef Py_ssize_t k
    if work == NULL:
        return NULL
    for k in range(n_threads):
        work[k].values = malloc(n * sizeof(double))
        work[k].keys = malloc(n * sizeof(uint64_t))
        work[k].other_keys = malloc(n * sizeof(uint64_t))
        work[k].order = <uint32_t *> malloc(n * sizeof(uint32_t))
        work[k].other_order = <uint32_t *> malloc(n * sizeof(uint32_t))
        if (work[k].values == NULL or work[k].keys == NULL or work[k].other_keys == NULL or work[k].order == NULL
                or work[k].other_order == NULL):
            free_work(work, n_threads)
            return NULL
    return work


cdef void free_work(Work *work, Py_ssize_t n_threads) noexcept nogil:
    cdef Py_ssize_t k
    if work == NULL:
        return
    for k in range(n_threads):
        free(work[k].values)
        free(work[k].keys)
        free(work[k].other_keys)
        free(work[k].order)
        free(work[k].other_order)
    free(work)


cdef class Ranked:
    """Columns as ranks; made by `ranked_dense` and `ranked_sparse`.

    Parameters
    ----------
    n, p : int
        Rows, less than 2**31, and columns.
    n_entries : int
        Room for entries.
    """

    def __cinit__(self, Py_ssize_t n, Py_ssize_t p, Py_ssize_t n_entries):
        cdef Columns *columns = &self.columns
        columns.n, columns.n_columns, columns.n_entries = n, p, n_entries
        columns.start = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t))
        columns.size = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        columns.known = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        columns.usual = <uint32_t *> calloc(p, sizeof(uint32_t))
        columns.n_ranks = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        columns.value = <double **> calloc(p, sizeof(double *))
        columns.row = <uint32_t *> take(max(n_entries, 1) * sizeof(uint32_t))
        columns.tag = <uint32_t *> take(max(n_entries, 1) * sizeof(uint32_t))
        if (columns.start == NULL or columns.size == NULL or columns.known == NULL or columns.usual == NULL
                or columns.n_ranks == NULL or columns.value == NULL or columns.row == NULL or columns.tag == NULL):
            raise_for_status(NO_MEMORY)

    def __dealloc__(self):
        cdef Columns *columns = &self.columns
        cdef Py_ssize_t j
        if columns.value != NULL:
            for j in range(columns.n_columns):
                free(columns.value[j])
        free(columns.start)
        free(columns.size)
        free(columns.known)
        free(columns.usual)
        free(columns.n_ranks)
        free(columns.value)
        give_back(columns.row)
        give_back(columns.tag)

    @property
    def n_rows(self):
        """Rows."""
        return self.columns.n

    @property
    def n_columns(self):
        """Columns."""
        return self.columns.n_columns

    def n_ranks(self, Py_ssize_t column):
        """Distinct numbers of a column, or its levels."""
        return self.columns.n_ranks[column]

    def n_tests(self, bint ask_missing):
        """Conditions that there are: one a level of categories, two a distinct number, one for missing values."""
        cdef Py_ssize_t j, total = 0
        for j in range(self.columns.n_columns):
            total += self.columns.n_ranks[j] * (1 if self.columns.value[j] == NULL else 2)
            total += ask_missing and self.columns.size[j] > self.columns.known[j]
        return total


def ranked_dense(const real_t[:, :] values, const Py_ssize_t[::1] n_levels, int n_threads):
    """The columns of a matrix; n_levels is 0 for numbers, for codes of categories their number; NaN is missing."""
    cdef Py_ssize_t n = values.shape[0], p = values.shape[1], j, first, last, step
    cdef Ranked ranked = Ranked(n, p, n * p)
    cdef Columns *columns = &ranked.columns
    cdef Work *work = new_work(n, n_threads)
    cdef int status = OK
    if work == NULL:
        raise_for_status(NO_MEMORY)
    try:
        for j in range(p):
            columns.start[j] = j * n
            columns.n_ranks[j] = n_levels[j]
        columns.start[p] = p * n
        step = max(n_threads, AT_ONCE // max(n, 1))
        for first in range(0, p, step):
            last = min(first + step, p)
            for j in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=1, nogil=True):
                # |=, which OpenMP gathers: of = only that of the last column would be left
                status |= read_dense(columns, &values[0, 0], values.strides[0], values.strides[1], j,
                                     columns.n_ranks[j] > 0, work + threadid())
            raise_for_status(status)
            PyErr_CheckSignals()
    finally:
        free_work(work, n_threads)
    return ranked


def ranked_sparse(const real_t[::1] data, const int[::1] rows, const Py_ssize_t[::1] start, Py_ssize_t n,
                  int n_threads):
    """The columns of sparse data by columns, without stored zeros."""
    cdef Py_ssize_t p = start.shape[0] - 1, j, first = 0, last, size
    cdef Ranked ranked = Ranked(n, p, data.shape[0])
    cdef Columns *columns = &ranked.columns
    cdef Work *work = new_work(n, n_threads)
    cdef const real_t *data_at = &data[0] if data.shape[0] else NULL
    cdef const int *rows_at = &rows[0] if data.shape[0] else NULL
    cdef int status = OK
    if work == NULL:
        raise_for_status(NO_MEMORY)
    try:
        for j in range(p + 1):
            columns.start[j] = start[j]
        while first < p:
            last, size = first, 0
            while last < p and size < AT_ONCE:
                size += start[last + 1] - start[last]
                last += 1
            for j in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=16, nogil=True):
                status |= read_sparse(columns, data_at + columns.start[j], rows_at + columns.start[j], j,
                                      columns.start[j + 1] - columns.start[j], work + threadid())
            first = last
            raise_for_status(status)
            PyErr_CheckSignals()
    finally:
        free_work(work, n_threads)
    return ranked
