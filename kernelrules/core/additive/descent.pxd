# Coordinate descent on a quadratic model. See descent.pyx.

from kernelrules.core.additive.rule_columns cimport RuleColumns


cdef struct Coefficient:    # of one column
    double beta
    double before           # beta before the Newton step
    double slope            # Σ v c
    double curvature        # Σ v c²


cdef class QuadraticModel:
    cdef RuleColumns columns
    cdef Py_ssize_t n_working, coefficient_capacity, matrix_capacity
    cdef public Py_ssize_t matrix_max_columns
    cdef Coefficient *coef              # one per column
    cdef Py_ssize_t *working            # the working set: numbers of columns
    cdef double *gradient               # one per column of the working set
    cdef double *rows                   # the next four, one entry per row each
    cdef double *u                      # residuals of the model, without the change of the intercept
    cdef double *v                      # curvatures
    cdef double *score_change           # without the change of the intercept
    cdef double *scattered              # v·c of one column, otherwise 0
    cdef double *matrix                 # (m, m) centred products of the working set
    cdef double *factor                 # (m, m) Cholesky factor of its part on the support
    cdef double *direction              # (m,) a step on the support
    cdef double *products               # (m,) products of the scattered column with its partners
    cdef Py_ssize_t *support            # places in the working set with a nonzero coefficient
    cdef Py_ssize_t *partners           # columns to multiply with the scattered one,
    cdef Py_ssize_t *partner_places     # and their places in the working set

    cdef int reserve(self, Py_ssize_t n_columns) except -1
    cdef double l1_norm(self) noexcept nogil
    cdef double minimise(self, double lam, double sum_v, double gain_tol) noexcept nogil
    cdef double update_coordinate(self, Py_ssize_t j, double lam, double sum_v, double *shift) noexcept nogil
    cdef double descend_by_residuals(self, double lam, double sum_v, double gain_tol) noexcept nogil
    cdef bint reserve_matrix(self) noexcept nogil
    cdef void scatter(self, Py_ssize_t j) noexcept nogil
    cdef void clear_scattered(self, Py_ssize_t j) noexcept nogil
    cdef void fill_matrix(self, double sum_v) noexcept nogil
    cdef void add_to_coefficient(self, Py_ssize_t place, double change) noexcept nogil
    cdef bint move_along_null_vector(self, Py_ssize_t a) noexcept nogil
    cdef bint minimise_on_support(self, double lam) noexcept nogil
    cdef double descend_by_matrix(self, double lam, double sum_v, double gain_tol) noexcept nogil
