"""A weak learner of rules with one condition: the best there is.

    best_stumps    for every column the test x ≤ t, or x in a set of levels, with the largest |Σ s| of its rows

Columns are read as ranks (ranked.pyx): a stump costs the entries of its column once.

Invariant: one thread, sums in the order of entries: the bits depend on the data alone.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.ranked cimport Columns, Ranked
from kernelrules.core.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.status import raise_for_status

cdef enum:
    BUDGET = 50000000       # entries between two breaths


def threshold(Ranked ranked, Py_ssize_t column, Py_ssize_t rank):
    """Halfway between the numbers of this rank and the next; infinite above the highest."""
    cdef const Columns *columns = &ranked.columns
    cdef double low, high, half
    if rank + 1 >= columns.n_ranks[column]:
        return INFINITY
    low, high = columns.value[column][rank], columns.value[column][rank + 1]
    half = low / 2 + high / 2
    return half if low <= half < high else low


cdef void scan_numbers(const Columns *columns, Py_ssize_t j, const double *s, double total, double *best, int64_t *cut,
                       int64_t *with_missing) noexcept nogil:
    """The rank that x may have at most, and whether a missing value counts as well."""
    cdef Py_ssize_t start = columns.start[j], known = columns.known[j], usual = columns.usual[j], k, rank, before = -1
    cdef double listed = 0, absent = 0, below = 0
    cdef bint passed = False, some_missing = columns.size[j] > known
    for k in range(known, columns.size[j]):
        absent += s[columns.row[start + k]]
    for k in range(known):
        listed += s[columns.row[start + k]]
    best[0], cut[0], with_missing[0] = 0, -1, 0
    for k in range(known + 1):
        rank = columns.tag[start + k] // 2 if k < known else columns.n_ranks[j]
        if not passed and rank > usual:         # the rows without an entry come between
            if before >= 0:
                keep_better(below, absent, some_missing, before, best, cut, with_missing)
            below += total - listed - absent
            passed, before = True, usual
        if before >= 0 and rank != before:
            keep_better(below, absent, some_missing, before, best, cut, with_missing)
        if k < known:
            below += s[columns.row[start + k]]
            before = rank


cdef inline void keep_better(double below, double absent, bint some_missing, int64_t rank, double *best, int64_t *cut,
                             int64_t *with_missing) noexcept nogil:
    if fabs(below) > fabs(best[0]):
        best[0], cut[0], with_missing[0] = below, rank, 0
    if some_missing and fabs(below + absent) > fabs(best[0]):
        best[0], cut[0], with_missing[0] = below + absent, rank, 1


cdef void sums_of_levels(const Columns *columns, Py_ssize_t j, const double *s, double total,
                         double *sums) noexcept nogil:
    """Of each level, and last of missing values."""
    cdef Py_ssize_t start = columns.start[j], n_levels = columns.n_ranks[j], k, level
    cdef double rest = total
    memset(sums, 0, (n_levels + 1) * sizeof(double))
    for k in range(columns.size[j]):
        level = columns.tag[start + k] // 2 if k < columns.known[j] else n_levels
        sums[level] += s[columns.row[start + k]]
    for level in range(n_levels + 1):
        rest -= sums[level]
    if n_levels:
        sums[columns.usual[j]] += rest


def best_stumps(Ranked ranked, const double[::1] s, double[::1] best, int64_t[::1] cut, int64_t[::1] with_missing,
                air=None):
    """For each column the largest |Σ s| of a stump, with its sign, and the stump: a rank, or -1 for sets of levels.

    The best set has the levels with positive sums, missing values being one: `level_sums` has them.
    """
    cdef const Columns *columns = &ranked.columns
    cdef Py_ssize_t p = columns.n_columns, j, i, most = 0, since = 0, level
    cdef double total = 0
    cdef double *sums
    if s.shape[0] != columns.n or not best.shape[0] == cut.shape[0] == with_missing.shape[0] == p:
        raise ValueError("the shapes of the columns, the residuals and the results do not agree")
    for i in range(columns.n):
        total += s[i]
    for j in range(p):
        if columns.value[j] == NULL:
            most = max(most, columns.n_ranks[j])
    sums = <double *> malloc((most + 1) * sizeof(double))
    if sums == NULL:
        raise_for_status(NO_MEMORY)
    try:
        for j in range(p):
            with nogil:
                if columns.value[j] != NULL:
                    scan_numbers(columns, j, &s[0], total, &best[j], &cut[j], &with_missing[j])
                else:
                    sums_of_levels(columns, j, &s[0], total, sums)
                    best[j], cut[j], with_missing[j] = 0, -1, 0
                    for level in range(columns.n_ranks[j] + 1):
                        best[j] += max(sums[level], 0.0)
            since += columns.size[j]
            if air is not None and since > BUDGET:
                since = 0
                air()
    finally:
        free(sums)


def level_sums(Ranked ranked, Py_ssize_t column, const double[::1] s):
    """Σ s of each level of a column of categories, and of missing values."""
    cdef const Columns *columns = &ranked.columns
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(columns.n):
        total += s[i]
    out = np.empty(columns.n_ranks[column] + 1)
    cdef double[::1] sums = out
    sums_of_levels(columns, column, &s[0], total, &sums[0])
    return out


def stump_rows(Ranked ranked, Py_ssize_t column, const unsigned char[::1] passes):
    """Rows of a stump as a list, and whether it holds for the others instead.

    `passes` has a flag for every rank, and one for missing values.
    """
    cdef const Columns *columns = &ranked.columns
    cdef Py_ssize_t start = columns.start[column], n_ranks = columns.n_ranks[column], k, n = 0, rank
    cdef bint usual
    if passes.shape[0] != n_ranks + 1:
        raise ValueError("there must be a flag for every rank, and one for missing values")
    usual = n_ranks > 0 and columns.size[column] < columns.n and passes[columns.usual[column]]
    out = np.empty(columns.size[column], dtype=np.int32)
    cdef int32_t[::1] rows = out
    for k in range(columns.size[column]):
        rank = columns.tag[start + k] // 2 if k < columns.known[column] else n_ranks
        if passes[rank] != usual:
            rows[n] = <int32_t> columns.row[start + k]
            n += 1
    return out[:n], bool(usual)
