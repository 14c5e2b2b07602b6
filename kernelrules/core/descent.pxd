# Coordinate descent on a quadratic model. See descent.pyx.

from kernelrules.core.terms cimport Terms


cdef class Descent(Terms):
    cdef Py_ssize_t n_working
    cdef public Py_ssize_t small        # columns of a working set that is solved by its matrix, at most
    cdef double *u                      # residuals of the model, but for what the intercept takes off
    cdef double *v                      # its curvatures
    cdef double *d                      # change of the scores, but for the intercept's
    cdef double *dense                  # v·c of one column, otherwise 0
    cdef double *matrix                 # of the working set; a factor of it; a line
    cdef Py_ssize_t matrix_room
    cdef Py_ssize_t *places

    cdef double minimise(self, double lam, double total, double enough) noexcept nogil
    cdef double move(self, Py_ssize_t j, double lam, double total, double *shift) noexcept nogil
    cdef double descend(self, double lam, double total, double enough) noexcept nogil
    cdef bint has_matrix(self) noexcept nogil
    cdef void spread(self, Py_ssize_t j) noexcept nogil
    cdef void unspread(self, Py_ssize_t j) noexcept nogil
    cdef void make_matrix(self, double total) noexcept nogil
    cdef bint slide(self, double *gradient, Py_ssize_t a) noexcept nogil
    cdef bint polish(self, double lam, double *gradient) noexcept nogil
    cdef double descend_by_matrix(self, double lam, double total, double enough) noexcept nogil
