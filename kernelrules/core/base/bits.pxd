# Sets of rows or of levels as bits, a word of 64 at a time: bit i % 64 of word i // 64 is row i. See also bits.h.

from libc.stdint cimport uint64_t

cdef extern from "base/bits.h" nogil:
    int kr_lowest(uint64_t word) noexcept

cdef enum:
    WORD = 64           # bits of a word


cdef inline int n_bits(uint64_t word) noexcept nogil:
    """Return the number of set bits; for the builtin, compilers call a function unless they may use popcnt."""
    word -= (word >> 1) & 0x5555555555555555ULL
    word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0FULL
    return <int> ((word * 0x0101010101010101ULL) >> 56)


cdef inline uint64_t rows_of_word(Py_ssize_t word, Py_ssize_t n) noexcept nogil:
    """Return the bits of this word that belong to rows, of which there are n."""
    return ~<uint64_t> 0 if n - word * WORD >= WORD else (<uint64_t> 1 << (n - word * WORD)) - 1
