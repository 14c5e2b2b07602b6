# The tests of rules, for all that asks which rows pass them.

from libc.stdint cimport int64_t, uint64_t

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


cdef inline int n_bits(uint64_t word) noexcept nogil:
    """How many are set; compilers call a function for the builtin unless they may use an instruction."""
    word -= (word >> 1) & 0x5555555555555555ULL
    word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0FULL
    return <int> ((word * 0x0101010101010101ULL) >> 56)
