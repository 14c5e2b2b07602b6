# Columns of the design matrix: rules and numerical columns. See rule_columns.pyx.

from libc.stdint cimport int32_t, int64_t, uint64_t


cdef struct RuleColumn:
    Py_ssize_t start, size  # its rows in `index`; or its first word in `bits` and the number of bits set
    Py_ssize_t cost         # rows that a sum over it reads
    bint by_bits
    double sign             # c = sign on these rows, 0 on the others
    double *value           # c of all rows, for a numerical column; NULL for rules


cdef class RuleColumns:
    cdef Py_ssize_t n, n_words, n_columns, column_capacity, n_index, index_capacity, n_bits, bits_capacity
    cdef public int simd_level
    cdef Py_ssize_t work_done   # rows read by sums over columns
    cdef uint64_t all_keys      # the sum of all keys
    cdef uint64_t *keys
    cdef char *mark             # scratch of `complement`, one flag per row, all 0 between calls
    cdef RuleColumn *columns
    cdef int32_t *index
    cdef uint64_t *bits
    cdef set known              # keys of the rules present

    cdef int reserve(self, Py_ssize_t n_index, Py_ssize_t n_bits) except -1
    cdef void append(self, RuleColumn column) noexcept
    cdef Py_ssize_t add_new(self, const int32_t[::1] rows, const int64_t[::1] start,
                            const unsigned char[::1] negated, const double *s, double above,
                            int64_t[::1] added) except -1
    cdef int add_rule(self, const int32_t *rows, Py_ssize_t size, bint negated) except -1
    cdef int add_values(self, const double[::1] values) except -1
    cdef double correlation(self, Py_ssize_t j, const double *x) noexcept nogil
    cdef void correlations(self, const Py_ssize_t *chosen, Py_ssize_t m, const double *x, double *out) noexcept nogil
    cdef void add_multiple(self, Py_ssize_t j, double by, double *to) noexcept nogil


cdef void *resized(void *block, size_t n_bytes) except NULL
