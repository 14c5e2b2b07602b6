# Rows that rules cover, as bits. See cover.pyx.

from libc.stdint cimport uint64_t

cdef void take_covered(const uint64_t *cover, uint64_t *rest, Py_ssize_t n_words, const uint64_t *positive,
                       const double *weights, double *total, double *true_positive) noexcept nogil
