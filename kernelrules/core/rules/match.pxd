# The distinct conditions of rules, for all modules that test rows against them. See match.pyx.

from libc.stdint cimport int64_t

cdef struct Condition:
    int64_t column
    double low, high                    # low < x <= high
    float low_single, high_single       # the same limits for float32 values
    bint missing                        # whether a missing value satisfies it
    const unsigned char *levels         # NULL for numbers; else a flag for unseen levels, then one per level
    int64_t n_levels


cdef class ConditionTable:
    cdef Condition *conditions
    cdef object flags                   # keeps the flags of all levels alive
    cdef readonly Py_ssize_t n, n_columns


cdef bint satisfies(const Condition *condition, double value) noexcept nogil
