# Columns as ranks of their values, listed for the rows that differ from the usual. See ranked.pyx.

from libc.stdint cimport uint32_t


cdef struct Columns:
    Py_ssize_t n
    Py_ssize_t n_columns
    Py_ssize_t n_entries            # room in `row` and `tag`
    Py_ssize_t *start               # where the entries of a column begin
    Py_ssize_t *size                # how many there are
    Py_ssize_t *known               # how many of them are known: these come first, by ascending rank
    uint32_t *row                   # of an entry
    uint32_t *tag                   # of an entry: twice its rank
    uint32_t *usual                 # rank of all rows without an entry
    Py_ssize_t *n_ranks
    double **value                  # of a rank, ascending; NULL for categories, whose ranks are their codes


cdef class Ranked:
    cdef Columns columns
