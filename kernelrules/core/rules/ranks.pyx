"""Columns as ranks of their values, stored sparsely.

    entries of column j    (row, rank) by ascending rank, then the rows whose value is missing
    implicit_rank[j]       the rank of every row without an entry: zero's in sparse data, else the most frequent one

Numbers have the ranks 0, 1, ... of the column's distinct values; categories have their codes as ranks. A condition on a
column is then an interval of ranks, and its rows are a range of the entries, with or without the rows that have no
entry. Sparse and dense data look the same, and cost the number of their entries.

Invariant: the entries of a column depend on its values and row numbers only, never on the number of threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from kernelrules.core.base.memory cimport give_back, take
from kernelrules.core.tree.presort cimport DIFFERS, key_t, set_key, sort_entries
from kernelrules.core.base.status cimport NO_MEMORY, OK
from kernelrules.core.base.team cimport gather_status, run_team
from kernelrules.core.base.types cimport real_t

from kernelrules.core.base.status import raise_for_status


cdef enum:
    ENTRIES_BETWEEN_SIGNAL_CHECKS = 10_000_000
    SPARSE_COLUMNS_PER_TASK = 16    # a sparse column is short


cdef struct SortBuffers:            # buffers of one thread, for the column that it sorts
    void *values
    void *keys
    void *other_keys
    uint32_t *order
    uint32_t *other_order


cdef int rank_values(RankedColumns *columns, Py_ssize_t j, const real_t *values, const int *rows, Py_ssize_t m,
                     key_t *keys, const SortBuffers *buffers) noexcept nogil:
    """List the entries of a column of m values; `rows` is NULL for those of rows 0, 1, ...; all other rows are 0."""
    cdef uint32_t *order = buffers.order
    cdef Py_ssize_t n_known = 0, i
    for i in range(m):
        set_key(values[i], keys + i)
        order[i] = <uint32_t> i
        n_known += values[i] == values[i]
    sort_entries(keys, <key_t *> buffers.other_keys, order, buffers.other_order, m, n_known)
    return list_entries(columns, j, values, rows, m, n_known, order)


cdef int list_entries(RankedColumns *columns, Py_ssize_t j, const real_t *values, const int *rows, Py_ssize_t m,
                      Py_ssize_t n_known, const uint32_t *order) noexcept nogil:
    """List the entries in the order of the values, without those of the implicit rank."""
    cdef bint category = columns.n_ranks[j] > 0
    cdef Py_ssize_t n_zeros = columns.n - m, n_runs = 0, run_start = 0, longest = 0, zero_rank = -1, rank = -1, i, at
    cdef Py_ssize_t implicit = 0, start = columns.start[j], n_kept = 0
    cdef double *distinct = NULL
    cdef double value
    for i in range(n_known):
        n_runs += order[i] >> 31
    if not category:
        distinct = <double *> malloc((n_runs + (n_zeros > 0) + 1) * sizeof(double))
        if distinct == NULL:
            return NO_MEMORY
        columns.values[j] = distinct
    for i in range(n_known + 1):                # the most frequent value (of ties the lowest) and the distinct values
        if i < n_known and not order[i] & DIFFERS:
            continue
        if i > 0 and i - run_start > longest:
            longest, implicit = i - run_start, rank
        if i == n_known:
            break
        run_start = i
        value = values[order[i] & ~DIFFERS]
        if category:
            rank = <Py_ssize_t> value
            continue
        if n_zeros and zero_rank < 0 and value > 0:
            zero_rank = rank + 1
            rank += 1
            distinct[rank] = 0
        rank += 1
        distinct[rank] = value
    if n_zeros:
        if zero_rank < 0:
            rank += 1
            zero_rank = rank
            distinct[rank] = 0
        implicit = zero_rank
    if not category:
        columns.n_ranks[j] = rank + 1
    columns.implicit_rank[j] = <uint32_t> implicit
    rank = -1
    for i in range(m):
        at = order[i] & ~DIFFERS
        if i < n_known and order[i] & DIFFERS:
            rank = <Py_ssize_t> values[at] if category else rank + 1 + (n_zeros > 0 and rank + 1 == zero_rank)
        if i < n_known and rank == implicit:
            continue
        columns.row[start + n_kept] = <uint32_t> (at if rows == NULL else rows[at])
        columns.rank_code[start + n_kept] = <uint32_t> (2 * rank)
        n_kept += 1
        columns.n_known[j] += i < n_known
    columns.n_entries[j] = n_kept
    return OK


cdef struct RankingTask:    # ranks columns of a dense matrix, or of sparse data by columns
    RankedColumns *columns
    const void *data
    bint is_float32
    const int *rows         # row of each stored value of sparse data; NULL for a dense matrix
    Py_ssize_t row_step     # strides of a dense matrix, in bytes
    Py_ssize_t column_step
    SortBuffers *buffers    # one per thread
    int status


cdef int rank_column(const RankingTask *task, Py_ssize_t j, const SortBuffers *buffers, real_t *copy) noexcept nogil:
    """Rank column j; `copy` holds the values of a column of a dense matrix."""
    cdef RankedColumns *columns = task.columns
    cdef Py_ssize_t start = columns.start[j], m = columns.start[j + 1] - start, i
    cdef const char *at = <const char *> task.data + j * task.column_step
    cdef const int *rows = NULL
    cdef const real_t *values = copy
    if task.rows != NULL:
        values, rows = <const real_t *> task.data + start, task.rows + start
    else:
        for i in range(m):
            copy[i] = (<const real_t *> (at + i * task.row_step))[0]
    if real_t is float:
        return rank_values(columns, j, values, rows, m, <uint32_t *> buffers.keys, buffers)
    else:
        return rank_values(columns, j, values, rows, m, <uint64_t *> buffers.keys, buffers)


cdef void rank_columns(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef RankingTask *task = <RankingTask *> context
    cdef SortBuffers *buffers = task.buffers + worker
    cdef Py_ssize_t j
    for j in range(first, last):
        if task.is_float32:
            gather_status(&task.status, rank_column(task, j, buffers, <float *> buffers.values))
        else:
            gather_status(&task.status, rank_column(task, j, buffers, <double *> buffers.values))


cdef int rank_all(RankingTask *task, Py_ssize_t columns_per_task, int n_threads) except -1:
    """Rank all columns, with a check for signals now and then."""
    cdef RankedColumns *columns = task.columns
    cdef Py_ssize_t first = 0, last, p = columns.n_columns
    task.buffers, task.status = new_buffers(columns.n, n_threads), OK
    if task.buffers == NULL:
        raise_for_status(NO_MEMORY)
    try:
        while first < p:
            last = first + 1
            while last < p and (last - first < n_threads
                                or columns.start[last] - columns.start[first] < ENTRIES_BETWEEN_SIGNAL_CHECKS):
                last += 1
            with nogil:
                run_team(first, last, columns_per_task, n_threads, rank_columns, task)
            first = last
            raise_for_status(task.status)
            PyErr_CheckSignals()
    finally:
        free_buffers(task.buffers, n_threads)
    return 0


cdef SortBuffers *new_buffers(Py_ssize_t n, Py_ssize_t n_threads) noexcept nogil:
    cdef SortBuffers *buffers = <SortBuffers *> calloc(n_threads, sizeof(SortBuffers))
    cdef Py_ssize_t k
    if buffers == NULL:
        return NULL
    for k in range(n_threads):
        buffers[k].values = malloc(n * sizeof(double))
        buffers[k].keys = malloc(n * sizeof(uint64_t))
        buffers[k].other_keys = malloc(n * sizeof(uint64_t))
        buffers[k].order = <uint32_t *> malloc(n * sizeof(uint32_t))
        buffers[k].other_order = <uint32_t *> malloc(n * sizeof(uint32_t))
        if (buffers[k].values == NULL or buffers[k].keys == NULL or buffers[k].other_keys == NULL
                or buffers[k].order == NULL or buffers[k].other_order == NULL):
            free_buffers(buffers, n_threads)
            return NULL
    return buffers


cdef void free_buffers(SortBuffers *buffers, Py_ssize_t n_threads) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n_threads):
        free(buffers[k].values)
        free(buffers[k].keys)
        free(buffers[k].other_keys)
        free(buffers[k].order)
        free(buffers[k].other_order)
    free(buffers)


cdef class RankedData:
    """Columns as ranks; made by `rank_dense` and `rank_sparse`.

    Parameters
    ----------
    n, p : int
        Numbers of rows, less than 2**31, and of columns.
    capacity : int
        Largest number of entries.
    """

    def __cinit__(self, Py_ssize_t n, Py_ssize_t p, Py_ssize_t capacity):
        cdef RankedColumns *columns = &self.columns
        columns.n, columns.n_columns, columns.capacity = n, p, capacity
        columns.start = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t))
        columns.n_entries = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        columns.n_known = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        columns.implicit_rank = <uint32_t *> calloc(p, sizeof(uint32_t))
        columns.n_ranks = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        columns.values = <double **> calloc(p, sizeof(double *))
        columns.row = <uint32_t *> take(max(capacity, 1) * sizeof(uint32_t))
        columns.rank_code = <uint32_t *> take(max(capacity, 1) * sizeof(uint32_t))
        if (columns.start == NULL or columns.n_entries == NULL or columns.n_known == NULL
                or columns.implicit_rank == NULL or columns.n_ranks == NULL or columns.values == NULL
                or columns.row == NULL or columns.rank_code == NULL):
            raise_for_status(NO_MEMORY)

    def __dealloc__(self):
        cdef RankedColumns *columns = &self.columns
        cdef Py_ssize_t j
        if columns.values != NULL:
            for j in range(columns.n_columns):
                free(columns.values[j])
        free(columns.start)
        free(columns.n_entries)
        free(columns.n_known)
        free(columns.implicit_rank)
        free(columns.n_ranks)
        free(columns.values)
        give_back(columns.row)
        give_back(columns.rank_code)

    @property
    def n_rows(self):
        """Number of rows."""
        return self.columns.n

    @property
    def n_columns(self):
        """Number of columns."""
        return self.columns.n_columns

    def n_ranks(self, Py_ssize_t column):
        """Number of distinct values or of levels of a column."""
        return self.columns.n_ranks[column]

    def n_conditions(self, bint ask_missing):
        """Number of possible conditions: one per level, two per distinct number, one per column with missing values."""
        cdef Py_ssize_t j, total = 0
        for j in range(self.columns.n_columns):
            total += self.columns.n_ranks[j] * (1 if self.columns.values[j] == NULL else 2)
            total += ask_missing and self.columns.n_entries[j] > self.columns.n_known[j]
        return total


def rank_dense(const real_t[:, :] values, const Py_ssize_t[::1] n_levels, int n_threads):
    """Rank the columns of a matrix; n_levels is 0 for numbers, else the number of levels; NaN is missing."""
    cdef Py_ssize_t n = values.shape[0], p = values.shape[1], j
    cdef RankedData ranked = RankedData(n, p, n * p)
    cdef RankingTask task
    task.columns, task.is_float32, task.rows = &ranked.columns, real_t is float, NULL
    task.data, task.row_step, task.column_step = NULL, values.strides[0], values.strides[1]
    if n > 0 and p > 0:
        task.data = &values[0, 0]
    for j in range(p):
        ranked.columns.start[j], ranked.columns.n_ranks[j] = j * n, n_levels[j]
    ranked.columns.start[p] = p * n
    rank_all(&task, 1, n_threads)
    return ranked


def rank_sparse(const real_t[::1] data, const int[::1] rows, const Py_ssize_t[::1] start, Py_ssize_t n,
                int n_threads):
    """Rank the columns of sparse data in CSC form without stored zeros."""
    cdef Py_ssize_t p = start.shape[0] - 1, j
    cdef RankedData ranked = RankedData(n, p, data.shape[0])
    cdef RankingTask task
    cdef int no_rows = 0
    task.columns, task.is_float32, task.row_step, task.column_step = &ranked.columns, real_t is float, 0, 0
    task.data, task.rows = NULL, &no_rows           # never read without stored values
    if data.shape[0] > 0:
        task.data, task.rows = &data[0], &rows[0]
    for j in range(p + 1):
        ranked.columns.start[j] = start[j]
    rank_all(&task, SPARSE_COLUMNS_PER_TASK, n_threads)
    return ranked
