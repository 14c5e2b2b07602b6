# The tests of rules, for all that asks which rows pass them.

from libc.stdint cimport int64_t

cdef struct Test:
    int64_t column
    double low, high                    # low < x <= high
    float low_single, high_single       # the same of float32 numbers
    bint missing                        # whether a missing value passes
    const unsigned char *levels         # NULL: numbers; else a flag for unseen levels and one for each level
    int64_t n_levels


cdef class Tests:
    cdef Test *tests
    cdef object kept
    cdef readonly Py_ssize_t n, n_columns


cdef bint passes(const Test *test, double value) noexcept nogil
