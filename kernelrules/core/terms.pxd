# Columns of an L1 problem. See terms.pyx.

from libc.stdint cimport int32_t, uint64_t


cdef struct Term:
    Py_ssize_t start, size      # its rows in the index; or where its bits begin, and how many are set
    Py_ssize_t cost             # what a sum over it takes
    bint by_bits
    double sign                 # c = sign on these rows, 0 on the others
    double *value               # or c itself, for all rows; NULL for rules


cdef class Terms:
    cdef Py_ssize_t n, n_terms, room, n_index, index_room, n_words, n_bits, bits_room
    cdef public int level               # of instructions
    cdef Py_ssize_t work_done           # rows of lists gone through
    cdef uint64_t all_keys
    cdef uint64_t *keys
    cdef char *mark
    cdef Term *terms
    cdef int32_t *index
    cdef uint64_t *bits
    cdef Py_ssize_t *working            # numbers of the columns that are being worked on
    cdef double *s                      # what a new rule's rows must have a large sum of
    cdef double *beta
    cdef double *old                    # beta before a step
    cdef double *gradient               # Σ s c, when it was last looked at
    cdef double *looked                 # the drift then
    cdef double *slope                  # Σ v c
    cdef double *curvature              # Σ v c²
    cdef double *sorted                 # scratch
    cdef set known

    cdef int make_room(self, Py_ssize_t n_terms, Py_ssize_t n_index, Py_ssize_t n_bits) except -1
    cdef int append(self, Term term) except -1
    cdef void refresh(self) noexcept nogil
    cdef int add_rule(self, const int32_t *rows, Py_ssize_t size, bint negated) except -1
    cdef double correlation(self, Py_ssize_t j, const double *x) noexcept nogil
    cdef void correlations(self, const Py_ssize_t *some, Py_ssize_t m, const double *x, double *out) noexcept nogil
    cdef void add_to(self, Py_ssize_t j, double by, double *to) noexcept nogil
