# Presorted columns: what a tree is grown from. See presort.pyx.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kernelrules.core.base.types cimport real_t


cdef extern from "tree/scan_loops.h" nogil:
    const uint32_t DIFFERS "KR_DIFFERS"


cdef struct PresortedTable:                  # the columns of the data, as they were sorted in or coded
    Py_ssize_t n
    Py_ssize_t n_columns
    Py_ssize_t n_ordered
    Py_ssize_t n_coded
    Py_ssize_t n_bins_all
    int shift                       # of the class in an entry
    uint32_t id_mask
    bint wide                       # codes of two bytes, not one
    bint some_missing               # in an ordered column
    Py_ssize_t *place               # of a column among the ordered ones, or -1 - its place among the coded ones
    Py_ssize_t *ordered             # the columns that are
    Py_ssize_t *coded
    Py_ssize_t *n_levels            # of a column; 0: numerical
    Py_ssize_t *n_bins              # of a coded column; its last is for missing values, if there are any
    Py_ssize_t *bin_start           # where the bins of a coded column are in a histogram
    double *bin_value               # the values of a numerical coded column, ascending, from bin_start on
    uint8_t *missing                # of a column: whether values are
    uint8_t *tied                   # of an ordered column: whether values repeat
    const char *values              # the data themselves, for thresholds
    Py_ssize_t row_stride
    Py_ssize_t column_stride
    bint single


cdef struct SampleArena:                  # rows that are numbered from 0, with their part of every column
    Py_ssize_t n
    uint32_t **order                # one for each ordered column, then that of the targets where they are sorted
    Py_ssize_t n_orders
    uint32_t *block                 # the memory of all orders
    uint32_t *rows                  # entries of all rows in some order
    bint own_rows                   # otherwise `rows` is order[0]
    uint32_t *origin                # number of a row in the data
    uint32_t *number                # scratch: new numbers
    void *codes                     # (n, n_coded)
    uint8_t *side                   # scratch: 0 left, 1 right
    double *y                       # (n, n_outputs), NULL for classes
    double *w                       # NULL: all 1


ctypedef fused key_t:               # a float's bits, changed so that they ascend with it
    uint32_t
    uint64_t


cdef inline void set_key(real_t value, key_t *key) noexcept nogil:
    """Set a key to bits that ascend with the value; all of them are set for NaN."""
    cdef uint32_t narrow
    cdef uint64_t wide
    if value != value:
        key[0] = <key_t> ~(<key_t> 0)
        return
    if value == 0:
        value = 0           # -0 equals 0
    if real_t is float:
        memcpy(&narrow, &value, 4)
        key[0] = <key_t> (~narrow if narrow >> 31 else narrow | <uint32_t> 0x80000000)
    else:
        memcpy(&wide, &value, 8)
        key[0] = <key_t> (~wide if wide >> 63 else wide | <uint64_t> 1 << 63)


cdef int sort_entries(key_t *keys, key_t *other_keys, uint32_t *entries, uint32_t *other_entries, Py_ssize_t n,
                      Py_ssize_t n_known) noexcept nogil
cdef inline const char *address_of(const PresortedTable *table, Py_ssize_t row, Py_ssize_t column) noexcept nogil:
    """Where a value of the data is."""
    return table.values + row * table.row_stride + column * table.column_stride


cdef inline double value_of(const PresortedTable *table, Py_ssize_t row, Py_ssize_t column) noexcept nogil:
    """A value of the data."""
    cdef const char *at = address_of(table, row, column)
    return (<const float *> at)[0] if table.single else (<const double *> at)[0]


cdef SampleArena *part_of_arena(const PresortedTable *table, const SampleArena *whole, Py_ssize_t start, Py_ssize_t m,
                                Py_ssize_t n_outputs, uint32_t *number) noexcept nogil
cdef void free_arena(SampleArena *arena) noexcept nogil
cdef Py_ssize_t partition(uint32_t *entries, Py_ssize_t n, Py_ssize_t n_known, const uint8_t *side, uint32_t id_mask,
                          bint tied, uint32_t *scratch) noexcept nogil
cdef Py_ssize_t keep_side(uint32_t *entries, Py_ssize_t n, Py_ssize_t n_known, const uint8_t *side, uint32_t id_mask,
                          int kept) noexcept nogil


cdef class Presorted:
    cdef PresortedTable table
    cdef SampleArena *root
    cdef object values              # keeps the data alive

    cdef int _make_root(self, const uint32_t[::1] labels, const double[:, ::1] y, const double[::1] w,
                        bint sort_targets, uint32_t *block, uint16_t **codes) except -1
