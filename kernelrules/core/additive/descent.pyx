"""Coordinate descent on the quadratic model of a Newton step, over a working set of columns.

    minimise over δb, β     Σ_i v_i (u_i / v_i - δb - Σ_j (β_j - before_j) c_ij)² / 2 + λ Σ_j |β_j|

The intercept δb is kept at its optimum, so that steps use centred products. A small working set is solved with the
matrix of these products (the covariance updates of [1]_), with exact steps on the support, which are our own. A large
working set is solved with the residuals u (the naive updates of [1]_), where a step costs the rows of its column.

Invariant: one thread and a fixed order of summation, so that the bits depend on the data alone.

References
----------
.. [1] J. Friedman, T. Hastie and R. Tibshirani, "Regularization paths for generalized linear models via coordinate
   descent", Journal of Statistical Software 33(1), 2010.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.additive.rule_columns cimport RuleColumn, RuleColumns, resized
from kernelrules.core.base.bits cimport WORD
from kernelrules.core.base.status cimport NO_MEMORY

from kernelrules.core.base.status import raise_for_status

cdef extern from "additive/masked_sums.h" nogil:
    void kr_masked_copy(int level, const uint64_t *bits, Py_ssize_t n_words, double times, const double *from_,
                        double *to) noexcept
    void kr_masked_update(const uint64_t *bits, Py_ssize_t n_words, double by, const double *curvature, double *score,
                          double *residual) noexcept

cdef enum:
    MAX_ROWS_READ = 50_000_000  # descent by residuals ends after reading so many rows, so that signals are checked
    MAX_EPOCHS = 500
    EPOCHS_PER_SUPPORT_STEP = 4
    MATRIX_MAX_COLUMNS = 1024   # largest working set whose matrix is computed: matrix and factor take 2 · 8 MB

cdef double PIVOT_RTOL = 1e-9           # a pivot below this share of the curvature: the column is a sum of others
cdef double CONSTANT_RTOL = 1e-12       # a centred curvature below this share of the curvature: the column is constant
cdef double NULL_SLOPE_RTOL = 1e-9      # a smaller relative slope of Σ|β| along a null vector is rounding
cdef double LARGE_SET_TOL_FACTOR = 1e8  # looser, because epochs over rows are expensive and the next step refines


cdef inline double soft_threshold(double x, double by) noexcept nogil:
    return x - by if x > by else x + by if x < -by else 0


cdef inline double sign_of(double x) noexcept nogil:
    return 1 if x > 0 else -1


cdef class QuadraticModel:
    """The model given by u and v over the design matrix, and the coefficients that minimise it."""

    def __cinit__(self, RuleColumns columns):
        cdef Py_ssize_t m = WORD * columns.n_words
        self.columns, self.matrix_max_columns = columns, MATRIX_MAX_COLUMNS
        self.rows = <double *> calloc(4 * m, sizeof(double))
        if self.rows == NULL:
            raise_for_status(NO_MEMORY)
        self.u, self.v, self.score_change, self.scattered = (
            self.rows, self.rows + m, self.rows + 2 * m, self.rows + 3 * m)

    def __dealloc__(self):
        free(self.rows)
        free(self.coef)
        free(self.working)
        free(self.gradient)
        free(self.matrix)
        free(self.factor)
        free(self.direction)
        free(self.support)

    cdef int reserve(self, Py_ssize_t n_columns) except -1:
        """Allocate `n_columns` columns; new ones have the coefficient 0."""
        cdef Py_ssize_t capacity = 2 * n_columns + 64
        if n_columns > self.coefficient_capacity:
            self.coef = <Coefficient *> resized(self.coef, capacity * sizeof(Coefficient))
            self.working = <Py_ssize_t *> resized(self.working, capacity * sizeof(Py_ssize_t))
            self.gradient = <double *> resized(self.gradient, capacity * sizeof(double))
            memset(self.coef + self.coefficient_capacity, 0,
                   (capacity - self.coefficient_capacity) * sizeof(Coefficient))
            self.coefficient_capacity = capacity
        return 0

    cdef double l1_norm(self) noexcept nogil:
        cdef double total = 0
        cdef Py_ssize_t j
        for j in range(self.columns.n_columns):
            total += fabs(self.coef[j].beta)
        return total

    cdef double minimise(self, double lam, double sum_v, double gain_tol) noexcept nogil:
        """Set the coefficients of the working set and `score_change`; return the change of the intercept.

        Stops after an epoch that lowers the model by no more than `gain_tol`.
        """
        if self.n_working <= self.matrix_max_columns and self.reserve_matrix():
            return self.descend_by_matrix(lam, sum_v, gain_tol)
        return self.descend_by_residuals(lam, sum_v, LARGE_SET_TOL_FACTOR * gain_tol)

    # ---- residual updates ---------------------------------------------------------------------------------------

    cdef double update_coordinate(self, Py_ssize_t j, double lam, double sum_v, double *shift) noexcept nogil:
        """Minimise over coefficient j and the intercept; return twice the decrease of the model."""
        cdef const RuleColumn *column = &self.columns.columns[j]
        cdef const int32_t *rows = self.columns.index + column.start
        cdef Coefficient *coef = &self.coef[j]
        cdef double slope = coef.slope, centred = coef.curvature - slope * slope / sum_v, change, here
        cdef Py_ssize_t k
        if centred <= CONSTANT_RTOL * coef.curvature:
            return 0
        here = self.columns.correlation(j, self.u) - shift[0] * slope
        change = soft_threshold(centred * coef.beta + here, lam) / centred - coef.beta
        if change == 0:
            return 0
        coef.beta += change
        self.columns.work_done += column.size
        if column.value != NULL:
            for k in range(self.columns.n):
                self.score_change[k] += change * column.value[k]
                self.u[k] -= change * column.value[k] * self.v[k]
        elif column.by_bits:
            kr_masked_update(self.columns.bits + column.start, self.columns.n_words, change * column.sign, self.v,
                             self.score_change, self.u)
        else:
            here = change * column.sign
            for k in range(column.size):
                self.score_change[rows[k]] += here
                self.u[rows[k]] -= here * self.v[rows[k]]
        shift[0] -= change * slope / sum_v
        return centred * change * change

    cdef double descend_by_residuals(self, double lam, double sum_v, double gain_tol) noexcept nogil:
        """Alternate an epoch over the whole working set with epochs over its support, until both gain little."""
        cdef Py_ssize_t k
        cdef double shift = 0, gained
        cdef bint everything = True
        for k in range(self.columns.n):
            shift += self.u[k]
        shift /= sum_v
        for _ in range(MAX_EPOCHS):
            gained = 0
            for k in range(self.n_working):
                if everything or self.coef[self.working[k]].beta != 0:
                    gained += self.update_coordinate(self.working[k], lam, sum_v, &shift)
            if gained <= gain_tol:
                if everything:
                    break
                everything = True
            elif self.columns.work_done > MAX_ROWS_READ:
                break
            else:
                everything = False
        return shift

    # ---- covariance updates -------------------------------------------------------------------------------------

    cdef bint reserve_matrix(self) noexcept nogil:
        """Allocate the matrix of the working set; return False if there is no memory."""
        cdef Py_ssize_t m = self.n_working
        if m > self.matrix_capacity:
            m = min(2 * m, max(m, self.matrix_max_columns))
            free(self.matrix)
            free(self.factor)
            free(self.direction)
            free(self.support)
            self.matrix = <double *> malloc(m * m * sizeof(double))
            self.factor = <double *> malloc(m * m * sizeof(double))
            self.direction = <double *> malloc(2 * m * sizeof(double))
            self.support = <Py_ssize_t *> malloc(3 * m * sizeof(Py_ssize_t))
            self.matrix_capacity = 0
            if self.matrix != NULL and self.factor != NULL and self.direction != NULL and self.support != NULL:
                self.products, self.matrix_capacity = self.direction + m, m
                self.partners, self.partner_places = self.support + m, self.support + 2 * m
        return self.matrix_capacity > 0

    cdef void scatter(self, Py_ssize_t j) noexcept nogil:
        """Set scattered = v·c of column j; all entries must be 0."""
        cdef const RuleColumn *column = &self.columns.columns[j]
        cdef const int32_t *rows = self.columns.index + column.start
        cdef Py_ssize_t i
        if column.by_bits:
            kr_masked_copy(self.columns.simd_level, self.columns.bits + column.start, self.columns.n_words, column.sign,
                           self.v, self.scattered)
        elif column.value != NULL:
            for i in range(self.columns.n):
                self.scattered[i] = self.v[i] * column.value[i]
        else:
            for i in range(column.size):
                self.scattered[rows[i]] = self.v[rows[i]] * column.sign

    cdef void clear_scattered(self, Py_ssize_t j) noexcept nogil:
        cdef const RuleColumn *column = &self.columns.columns[j]
        cdef Py_ssize_t i
        if column.by_bits or column.value != NULL:
            memset(self.scattered, 0, self.columns.n * sizeof(double))
        else:
            for i in range(column.size):
                self.scattered[self.columns.index[column.start + i]] = 0

    cdef void fill_matrix(self, double sum_v) noexcept nogil:
        """Compute the centred products of the working set.

        Of two columns, the one that costs more rows is scattered and the other is summed.
        """
        cdef Py_ssize_t m = self.n_working, a, b, i, j, k, n_partners, cost
        cdef const RuleColumn *columns = self.columns.columns
        cdef double slope
        for a in range(m):
            j, n_partners, cost = self.working[a], 0, columns[self.working[a]].cost
            slope = self.coef[j].slope
            self.matrix[a * m + a] = self.coef[j].curvature - slope * slope / sum_v
            for b in range(m):
                k = self.working[b]
                if columns[k].cost < cost or (columns[k].cost == cost and b > a):
                    self.partners[n_partners], self.partner_places[n_partners] = k, b
                    n_partners += 1
            if n_partners == 0:
                continue
            self.scatter(j)
            self.columns.correlations(self.partners, n_partners, self.scattered, self.products)
            self.clear_scattered(j)
            for i in range(n_partners):
                b, k = self.partner_places[i], self.partners[i]
                self.matrix[a * m + b] = self.matrix[b * m + a] = (
                    self.products[i] - slope * self.coef[k].slope / sum_v)

    cdef void add_to_coefficient(self, Py_ssize_t place, double change) noexcept nogil:
        """Change a coefficient of the working set and update the gradient."""
        cdef const double *line = self.matrix + place * self.n_working
        cdef Py_ssize_t b
        self.coef[self.working[place]].beta += change
        for b in range(self.n_working):
            self.gradient[b] -= change * line[b]

    cdef bint move_along_null_vector(self, Py_ssize_t a) noexcept nogil:
        """Move along a null vector of the matrix, in the direction in which Σ|β| falls, until a coefficient is 0.

        The null vector exists because support column a is a combination of those before it. Return False if Σ|β| does
        not fall.
        """
        cdef Py_ssize_t m = self.n_working, b, c, stopped = -1
        cdef const double *factor = self.factor
        cdef double *null = self.direction
        cdef double slope = 0, length = 0, size = 1e300, here
        null[a] = 1
        for b in range(a - 1, -1, -1):
            here = factor[b * m + a]
            for c in range(b + 1, a):
                here += factor[b * m + c] * null[c]
            null[b] = -here / factor[b * m + b] if factor[b * m + b] > 0 else 0
        for b in range(a + 1):
            slope += null[b] if self.coef[self.working[self.support[b]]].beta > 0 else -null[b]
            length += fabs(null[b])
        if fabs(slope) <= NULL_SLOPE_RTOL * length:
            return False
        for b in range(a + 1):
            here = self.coef[self.working[self.support[b]]].beta / null[b] * sign_of(slope) if null[b] != 0 else -1
            if 0 < here < size:
                size, stopped = here, b
        if stopped < 0:
            return False
        for b in range(a + 1):
            here = -size * null[b] * sign_of(slope)
            here = here if b != stopped else -self.coef[self.working[self.support[b]]].beta
            self.add_to_coefficient(self.support[b], here)
        return True

    cdef bint minimise_on_support(self, double lam) noexcept nogil:
        """Step to the minimum over the nonzero coefficients, or to the first point where one of them becomes 0.

        Coordinate descent is slow if columns are nearly collinear; a Cholesky factorisation LLᵀ of their part of the
        matrix is not. If a column is a sum of others, as nodes of trees are, a coefficient becomes 0 instead. Return
        True if one became 0, that is, if the support changed.
        """
        cdef Py_ssize_t m = self.n_working, n_support = 0, a, b, c, stopped = -1
        cdef Py_ssize_t *support = self.support
        cdef double *factor = self.factor
        cdef double *step = self.direction
        cdef double *line
        cdef double beta, times, size = 1
        for a in range(m):
            if self.coef[self.working[a]].beta != 0:
                support[n_support] = a
                n_support += 1
        for a in range(n_support):              # line a of Lᵀ, from the lines before it
            line = factor + a * m
            for b in range(a, n_support):
                line[b] = self.matrix[support[a] * m + support[b]]
            for c in range(a):
                times = factor[c * m + a]
                for b in range(a, n_support):
                    line[b] -= times * factor[c * m + b]
            if line[a] > PIVOT_RTOL * self.matrix[support[a] * m + support[a]]:
                times = 1 / sqrt(line[a])
            elif self.move_along_null_vector(a):
                return True
            else:
                times = 0                       # the coefficient does not move
            for b in range(a, n_support):
                line[b] *= times
        for a in range(n_support):
            step[a] = self.gradient[support[a]] - lam * sign_of(self.coef[self.working[support[a]]].beta)
        for a in range(n_support):              # solve with L, then with Lᵀ
            line = factor + a * m
            step[a] = step[a] / line[a] if line[a] > 0 else 0
            for b in range(a + 1, n_support):
                step[b] -= line[b] * step[a]
        for a in range(n_support - 1, -1, -1):
            line = factor + a * m
            for c in range(a + 1, n_support):
                step[a] -= line[c] * step[c]
            step[a] = step[a] / line[a] if line[a] > 0 else 0
        for a in range(n_support):
            beta = self.coef[self.working[support[a]]].beta
            if (beta + step[a] > 0) != (beta > 0) and -beta / step[a] < size:
                size, stopped = -beta / step[a], a
        for a in range(n_support):
            self.add_to_coefficient(
                support[a], size * step[a] if a != stopped else -self.coef[self.working[support[a]]].beta)
        return stopped >= 0

    cdef double descend_by_matrix(self, double lam, double sum_v, double gain_tol) noexcept nogil:
        """Do the same as `descend_by_residuals`, for a small working set."""
        cdef Py_ssize_t m = self.n_working, a, b, epoch, i
        cdef double shift = 0, gained, centred, change
        cdef bint support_solved = False
        cdef Coefficient *coef
        cdef const double *line
        self.fill_matrix(sum_v)
        for i in range(self.columns.n):
            shift += self.u[i]
        shift /= sum_v
        self.columns.correlations(self.working, m, self.u, self.gradient)
        for a in range(m):
            self.gradient[a] -= shift * self.coef[self.working[a]].slope
        for epoch in range(MAX_EPOCHS):
            gained = 0
            for a in range(m):
                coef, line = &self.coef[self.working[a]], self.matrix + a * m
                centred = line[a]
                if centred <= CONSTANT_RTOL * coef.curvature:
                    continue
                change = soft_threshold(centred * coef.beta + self.gradient[a], lam) / centred - coef.beta
                if change == 0:
                    continue
                coef.beta += change
                gained += centred * change * change
                for b in range(m):
                    self.gradient[b] -= change * line[b]
            if gained <= gain_tol and support_solved:
                break
            support_solved = gained <= gain_tol or epoch % EPOCHS_PER_SUPPORT_STEP == EPOCHS_PER_SUPPORT_STEP - 1
            if support_solved:                  # small gains do not imply that the minimum is near
                while self.minimise_on_support(lam):
                    pass
        for a in range(m):
            coef = &self.coef[self.working[a]]
            change = coef.beta - coef.before
            if change == 0:
                continue
            shift -= change * coef.slope / sum_v
            self.columns.add_multiple(self.working[a], change, self.score_change)
        return shift
