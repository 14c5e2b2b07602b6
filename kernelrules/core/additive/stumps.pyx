"""Stumps, that is, rules of one condition: an exact weak learner.

    best_stumps    for each column the condition x ≤ t, or x in a set of levels, whose rows have the largest |Σ s|

RankedColumns are read as ranks (core/rules/ranks.pyx): finding a stump reads the entries of its column once.

Invariant: one thread and sums in the order of entries, so that the bits depend on the data alone.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.rules.ranks cimport RankedColumns, RankedData
from kernelrules.core.base.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.base.status import raise_for_status

cdef enum:
    ENTRIES_BETWEEN_SIGNAL_CHECKS = 50_000_000     # about a tenth of a second


def threshold(RankedData ranked, Py_ssize_t column, Py_ssize_t rank):
    """Return the midpoint between the values of this rank and the next; infinity above the highest."""
    cdef const RankedColumns *columns = &ranked.columns
    cdef double low, high, half
    if rank + 1 >= columns.n_ranks[column]:
        return INFINITY
    low, high = columns.values[column][rank], columns.values[column][rank + 1]
    half = low / 2 + high / 2
    return half if low <= half < high else low


cdef struct Stump:
    double sum          # Σ s over its rows
    int64_t rank        # the highest rank that satisfies it; -1 for a set of levels
    bint with_missing   # whether a missing value satisfies it


cdef Stump scan_thresholds(const RankedColumns *columns, Py_ssize_t j, const double *s, double total) noexcept nogil:
    """Return the best threshold of a column of numbers."""
    cdef Stump best = Stump(0, -1, False)
    cdef Py_ssize_t start = columns.start[j], n_known = columns.n_known[j], implicit = columns.implicit_rank[j]
    cdef Py_ssize_t k, rank, previous = -1
    cdef double entry_sum = 0, missing_sum = 0, below = 0
    cdef bint implicit_passed = False, some_missing = columns.n_entries[j] > n_known
    for k in range(n_known, columns.n_entries[j]):
        missing_sum += s[columns.row[start + k]]
    for k in range(n_known):
        entry_sum += s[columns.row[start + k]]
    for k in range(n_known + 1):
        rank = columns.rank_code[start + k] // 2 if k < n_known else columns.n_ranks[j]
        if not implicit_passed and rank > implicit:         # the rows without an entry come in between
            if previous >= 0:
                keep_better(below, missing_sum, some_missing, previous, &best)
            below += total - entry_sum - missing_sum
            implicit_passed, previous = True, implicit
        if previous >= 0 and rank != previous:
            keep_better(below, missing_sum, some_missing, previous, &best)
        if k < n_known:
            below += s[columns.row[start + k]]
            previous = rank
    return best


cdef inline void keep_better(double below, double missing_sum, bint some_missing, int64_t rank,
                             Stump *best) noexcept nogil:
    if fabs(below) > fabs(best.sum):
        best[0] = Stump(below, rank, False)
    if some_missing and fabs(below + missing_sum) > fabs(best.sum):
        best[0] = Stump(below + missing_sum, rank, True)


cdef void sum_levels(const RankedColumns *columns, Py_ssize_t j, const double *s, double total,
                     double *sums) noexcept nogil:
    """Σ s of each level, and last of missing values."""
    cdef Py_ssize_t start = columns.start[j], n_levels = columns.n_ranks[j], k, level
    cdef double rest = total
    memset(sums, 0, (n_levels + 1) * sizeof(double))
    for k in range(columns.n_entries[j]):
        level = columns.rank_code[start + k] // 2 if k < columns.n_known[j] else n_levels
        sums[level] += s[columns.row[start + k]]
    for level in range(n_levels + 1):
        rest -= sums[level]
    if n_levels:
        sums[columns.implicit_rank[j]] += rest


def best_stumps(RankedData ranked, const double[::1] s, double[::1] best, int64_t[::1] ranks, int64_t[::1] with_missing,
                check_interrupt=None):
    """Find the stump of each column with the largest |Σ s|: that sum, and the stump's rank, or -1 for a set of levels.

    The best set has the levels with positive sums (`level_sums`), where missing values are one level.
    """
    cdef const RankedColumns *columns = &ranked.columns
    cdef Py_ssize_t p = columns.n_columns, j, i, max_levels = 0, entries_since_check = 0, level
    cdef double total = 0
    cdef double *sums
    cdef Stump stump
    if s.shape[0] != columns.n or not best.shape[0] == ranks.shape[0] == with_missing.shape[0] == p:
        raise ValueError("the shapes of the columns, the residuals and the results do not agree")
    for i in range(columns.n):
        total += s[i]
    for j in range(p):
        if columns.values[j] == NULL:
            max_levels = max(max_levels, columns.n_ranks[j])
    sums = <double *> malloc((max_levels + 1) * sizeof(double))
    if sums == NULL:
        raise_for_status(NO_MEMORY)
    try:
        for j in range(p):
            with nogil:
                if columns.values[j] != NULL:
                    stump = scan_thresholds(columns, j, &s[0], total)
                else:
                    stump = Stump(0, -1, False)
                    sum_levels(columns, j, &s[0], total, sums)
                    for level in range(columns.n_ranks[j] + 1):
                        stump.sum += max(sums[level], 0.0)
                best[j], ranks[j], with_missing[j] = stump.sum, stump.rank, stump.with_missing
            entries_since_check += columns.n_entries[j]
            if check_interrupt is not None and entries_since_check > ENTRIES_BETWEEN_SIGNAL_CHECKS:
                entries_since_check = 0
                check_interrupt()
    finally:
        free(sums)


def level_sums(RankedData ranked, Py_ssize_t column, const double[::1] s):
    """Σ s of each level of a column of categories, and of missing values."""
    cdef const RankedColumns *columns = &ranked.columns
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(columns.n):
        total += s[i]
    out = np.empty(columns.n_ranks[column] + 1)
    cdef double[::1] sums = out
    sum_levels(columns, column, &s[0], total, &sums[0])
    return out


def stump_rows(RankedData ranked, Py_ssize_t column, const unsigned char[::1] passes):
    """Return a list of rows, and whether the stump holds for the rows outside the list instead.

    `passes` has a flag per rank, and one for missing values.
    """
    cdef const RankedColumns *columns = &ranked.columns
    cdef Py_ssize_t start = columns.start[column], n_ranks = columns.n_ranks[column], k, n = 0, rank
    cdef bint implicit
    if passes.shape[0] != n_ranks + 1:
        raise ValueError("there must be a flag for every rank, and one for missing values")
    implicit = n_ranks > 0 and columns.n_entries[column] < columns.n and passes[columns.implicit_rank[column]]
    out = np.empty(columns.n_entries[column], dtype=np.int32)
    cdef int32_t[::1] rows = out
    for k in range(columns.n_entries[column]):
        rank = columns.rank_code[start + k] // 2 if k < columns.n_known[column] else n_ranks
        if passes[rank] != implicit:
            rows[n] = <int32_t> columns.row[start + k]
            n += 1
    return out[:n], bool(implicit)
