# Columns as ranks of their values. See ranks.pyx.

from libc.stdint cimport uint32_t


cdef struct RankedColumns:      # an entry is a row of a column whose rank is not the implicit one
    Py_ssize_t n
    Py_ssize_t n_columns
    Py_ssize_t capacity         # length of `row` and `rank_code`
    Py_ssize_t *start           # first entry of each column
    Py_ssize_t *n_entries       # entries of each column
    Py_ssize_t *n_known         # those whose value is not missing: they come first, by ascending rank
    uint32_t *row               # row of each entry
    uint32_t *rank_code         # 2 · rank of each entry; the lowest bit is free for the class (grow_rule.pyx)
    uint32_t *implicit_rank     # rank of all rows of a column without an entry
    Py_ssize_t *n_ranks
    double **values             # value of each rank, ascending; NULL for categories, whose ranks are their codes


cdef class RankedData:
    cdef RankedColumns columns
