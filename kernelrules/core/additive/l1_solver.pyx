"""The L1 problem over the columns known so far, solved for one λ after another, with a certificate for each.

    minimise over b, β     Σ_i w_i ℓ(y_i, f_i) + λ Σ_j |β_j|,     f = b + Σ_j β_j c_j,     Σ w = 1
    squared   ℓ = (y - f)² / 2                logistic   ℓ = log(1 + e^f) - y f,  y 0 or 1

A proximal Newton method: ℓ is replaced by its quadratic model (exact for the squared loss), which is minimised over a
working set of columns (descent.pyx) as in [1]_. The dual point is the residual, scaled until no column exceeds λ; the
duality gap certifies the solution. A gradient is recomputed only if its last value and the drift of the residuals since
then allow it to exceed λ: a safe screening rule in the spirit of [2]_, where the bound by the drift is our own.

Invariant: one thread and a fixed order of summation, so that the bits depend on the data alone.

References
----------
.. [1] J. Friedman, T. Hastie and R. Tibshirani, "Regularization paths for generalized linear models via coordinate
   descent", Journal of Statistical Software 33(1), 2010.
.. [2] O. Fercoq, A. Gramfort and J. Salmon, "Mind the duality gap: safer rules for the Lasso", ICML 2015.
"""

from libc.math cimport fabs, fmax, fmin, log
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.additive.descent cimport Coefficient, QuadraticModel
from kernelrules.core.additive.rule_columns cimport RuleColumn, RuleColumns, resized
from kernelrules.core.base.bits cimport WORD
from kernelrules.core.base.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.base.status import raise_for_status

cdef extern from "additive/logistic.h" nogil:
    enum:
        KR_LANES
    void kr_logistic(int level, Py_ssize_t n_blocks, double common_weight, const double *f, const double *y,
                     const double *w, double *r, double *out) noexcept
    void kr_dual_point(int level, Py_ssize_t n_blocks, const double *y, const double *w, const double *r, double up,
                       double down, double *s, double *before, double *out) noexcept
    double kr_quadratic_model(int level, Py_ssize_t n_blocks, const double *w, const double *r, double min_curvature,
                              double *u, double *v) noexcept
    double kr_entropy(int level, Py_ssize_t n_blocks, const double *y, const double *w, const double *s,
                      double scale) noexcept

cdef enum:
    SQUARED = 0
    LOGISTIC = 1
    WORK_BETWEEN_SIGNAL_CHECKS = 50_000_000     # rows read: about a tenth of a second
    MAX_HALVINGS = 30
    MIN_ENTERING = 20                           # columns that may enter the working set, however small it is
    MAX_IDLE_STEPS = 6  # after so many steps without a smaller gap or objective, only rounding is left

cdef double MIN_CURVATURE = 1e-6        # lower bound of the curvature of the logistic loss, which is flat far out
cdef double INNER_GAP_SHARE = 1e-5      # the descent stops at gains of (this share of the gap)² / objective
cdef double EXACT_GAP_FACTOR = 30       # below this multiple of the tolerance, the exact gap is computed
cdef double ROUNDING_RTOL = 1e-14       # smaller relative differences are rounding


cdef struct GradientBound:  # of one column: |Σ s c| now is at most |value| + (drift now - drift)
    double value            # Σ s c when it was last computed
    double drift            # the drift then; -1: never computed


cdef int compare_doubles(const void *a, const void *b) noexcept nogil:
    cdef double x = (<const double *> a)[0], y = (<const double *> b)[0]
    return (x > y) - (x < y)


cdef class L1Solver:
    """Solver of the L1 problem of one target, for one λ after another. Columns are added as they are found.

    Parameters
    ----------
    y : ndarray (n,)
        Targets, for the logistic loss 0 and 1.
    weights : ndarray (n,)
        Sample weights, which sum to 1. Rows of weight 0 get a score and have no other effect.
    logistic : bool
        Whether the loss is logistic; otherwise it is squared.
    keys : ndarray (n,) of uint64
        Random keys by which rules are compared (`RuleColumns`); 0 for rows of weight 0.
    """

    cdef readonly RuleColumns columns
    cdef readonly QuadraticModel model
    cdef Py_ssize_t n, n_blocks, column_capacity
    cdef int loss
    cdef double common_weight           # weight of all rows whose weight is not 0; 0 if these weights differ
    cdef bint current                   # whether r, s and risk are those of f
    cdef double intercept, null_intercept, risk
    cdef double drift                   # sum over all steps of the largest change of any Σ s over a set of rows
    cdef double unscaled_dual_bound     # a lower bound of the logistic dual objective, before scaling
    cdef readonly double max_gradient   # largest |gradient| of the columns that may exceed λ, when last computed
    cdef double *rows                   # the next seven, one entry per row each
    cdef double *w
    cdef double *y
    cdef double *f                      # scores
    cdef double *f_before               # scores before a step
    cdef double *r                      # -dℓ/df
    cdef double *s                      # the dual point before scaling, times the weights
    cdef double *s_before               # at the evaluation before
    cdef GradientBound *bounds          # one per column, as are the next four
    cdef Py_ssize_t *unscreened         # columns whose gradients are computed
    cdef double *sums                   # Σ s c of the unscreened columns, or Σ v c of the working set
    cdef double *violations             # |gradients| of the columns that may enter the working set
    cdef double *changes                # changes of the working set's coefficients by a full step

    def __cinit__(self, const double[::1] y, const double[::1] weights, bint logistic, const uint64_t[::1] keys):
        cdef Py_ssize_t n = y.shape[0], i, m
        cdef double share = 0, heaviest = 0
        if weights.shape[0] != n or keys.shape[0] != n or n == 0:
            raise ValueError("targets, weights and keys differ in length")
        self.columns = RuleColumns(keys)
        self.model = QuadraticModel(self.columns)
        m = WORD * self.columns.n_words         # whole words of bits, and whole blocks of lanes
        self.n, self.loss, self.n_blocks = n, LOGISTIC if logistic else SQUARED, m // KR_LANES
        self.rows = <double *> calloc(7 * m, sizeof(double))
        if self.rows == NULL:
            raise_for_status(NO_MEMORY)
        self.w, self.y, self.f, self.f_before = self.rows, self.rows + m, self.rows + 2 * m, self.rows + 3 * m
        self.r, self.s, self.s_before = self.rows + 4 * m, self.rows + 5 * m, self.rows + 6 * m
        for i in range(n):
            self.w[i], self.y[i] = weights[i], y[i]
            heaviest = fmax(heaviest, weights[i])
            share += weights[i] * y[i]
        self.null_intercept, self.common_weight = share, heaviest
        for i in range(n):
            if weights[i] != 0 and weights[i] != heaviest:
                self.common_weight = 0
        if logistic:
            if not 0 < share < 1:
                raise ValueError("the logistic loss needs rows of both classes")
            self.null_intercept = log(share / (1 - share))
        self.restart()

    def __dealloc__(self):
        free(self.rows)
        free(self.bounds)
        free(self.unscreened)
        free(self.sums)
        free(self.violations)
        free(self.changes)

    cdef int reserve(self, Py_ssize_t n_columns) except -1:
        """Allocate `n_columns` columns."""
        cdef Py_ssize_t capacity = 2 * n_columns + 64, j
        self.model.reserve(n_columns)
        if n_columns > self.column_capacity:
            self.bounds = <GradientBound *> resized(self.bounds, capacity * sizeof(GradientBound))
            self.unscreened = <Py_ssize_t *> resized(self.unscreened, capacity * sizeof(Py_ssize_t))
            self.sums = <double *> resized(self.sums, capacity * sizeof(double))
            self.violations = <double *> resized(self.violations, capacity * sizeof(double))
            self.changes = <double *> resized(self.changes, capacity * sizeof(double))
            for j in range(self.column_capacity, capacity):
                self.bounds[j].value, self.bounds[j].drift = 0, -1
            self.column_capacity = capacity
        return 0

    def restart(self):
        """Set all coefficients to 0 and the intercept to its optimum without columns."""
        cdef Py_ssize_t i
        self.intercept, self.current, self.drift = self.null_intercept, False, 0
        for i in range(self.n):
            self.f[i], self.s_before[i] = self.null_intercept, 0
        for i in range(self.columns.n_columns):
            self.model.coef[i].beta, self.bounds[i].drift = 0, -1

    # ---- columns ------------------------------------------------------------------------------------------------

    def add_rules(self, const int32_t[::1] rows, const int64_t[::1] start, const unsigned char[::1] negated,
                  double above):
        """Add the rules that are new and whose |gradient| at the present solution exceeds `above`.

        Parameters
        ----------
        rows : ndarray of int32
            Lists of rows, one after the other.
        start : ndarray (m + 1,) of int64
            Offsets of the lists in `rows`.
        negated : ndarray (m,) of uint8
            1 if the rule holds for the rows outside its list.
        above : float
            Threshold of the |gradient|, usually λ.

        Returns
        -------
        ndarray
            Indices of the lists that became columns, ascending.
        """
        self.update_dual_point()
        self.reserve(self.columns.n_columns + start.shape[0] - 1)
        added = np.empty(start.shape[0] - 1, dtype=np.int64)
        return added[:self.columns.add_new(rows, start, negated, self.s, above, added)]

    def add_values(self, const double[::1] values):
        """Add a numerical column."""
        self.reserve(self.columns.n_columns + 1)
        self.columns.add_values(values)

    @property
    def n_columns(self):
        """Number of columns."""
        return self.columns.n_columns

    @property
    def n_nonzero(self):
        """Number of coefficients that are not 0."""
        cdef Py_ssize_t j, n = 0
        for j in range(self.columns.n_columns):
            n += self.model.coef[j].beta != 0
        return n

    # ---- solutions ----------------------------------------------------------------------------------------------

    def coefficients(self):
        """Coefficients of the columns as they were added, and the intercept that belongs to them."""
        cdef Py_ssize_t j
        cdef double constant = self.intercept
        out = np.zeros(self.columns.n_columns)
        cdef double[::1] values = out
        for j in range(self.columns.n_columns):
            values[j] = self.model.coef[j].beta
            if self.columns.columns[j].value == NULL and self.columns.columns[j].sign < 0:
                constant -= values[j]           # the column is stored less 1 everywhere
        return out, constant

    def scores(self):
        """Scores f of all rows."""
        return np.array(<double[:self.n]> self.f)

    def residuals(self):
        """The dual point before scaling, times the weights; it sums to 0."""
        self.update_dual_point()
        return np.array(<double[:self.n]> self.s)

    def largest_gradient(self):
        """max_j |Σ_i s_i c_ij| over all columns: for this λ or a larger one, the present dual point is feasible."""
        self.update_dual_point()
        with nogil:
            self.screen_columns(0.0)
        return self.max_gradient

    def certificate(self, double lam, double max_gradient):
        """(primal, dual) objectives, given that no column's |gradient| exceeds `max_gradient`."""
        self.update_dual_point()
        return self.primal(lam), self.dual(lam, max_gradient)

    cdef double primal(self, double lam) noexcept nogil:
        return self.risk + lam * self.model.l1_norm()

    cdef void update_dual_point(self) noexcept nogil:
        if not self.current:
            self.evaluate_loss()

    cdef void evaluate_loss(self) noexcept nogil:
        """Compute the risk, the residuals and the dual point at f.

        The dual point must sum to 0, as the residuals do up to the last step of the intercept. For the logistic loss,
        the residuals of one class are therefore scaled down, which keeps them between y - 1 and y.
        """
        cdef Py_ssize_t i
        cdef double sums[4]
        cdef double risk = 0, up = 1, down = 1
        if self.loss == SQUARED:
            for i in range(self.n):
                self.r[i] = self.y[i] - self.f[i]
                risk += self.w[i] * self.r[i] * self.r[i]
            self.risk = risk / 2
        else:
            kr_logistic(self.columns.simd_level, self.n_blocks, self.common_weight, self.f, self.y, self.w, self.r,
                        sums)
            up = fmin(1, sums[3] / sums[2]) if sums[2] > 0 else 0
            down = fmin(1, sums[2] / sums[3]) if sums[3] > 0 else 0
            self.risk, self.unscaled_dual_bound = sums[0], fmin(up, down) * (sums[0] + sums[1])
        kr_dual_point(self.columns.simd_level, self.n_blocks, self.y, self.w, self.r, up, down, self.s, self.s_before,
                      sums)
        self.drift += fmax(sums[0], sums[1])    # no sum over a set of rows has changed by more
        self.current = True

    cdef double dual(self, double lam, double max_gradient) noexcept nogil:
        """Dual objective at the dual point, which is scaled so that |gradients| <= λ."""
        cdef double scale = 1 if max_gradient <= lam else lam / max_gradient, along = 0, square = 0, max_scale
        cdef Py_ssize_t i
        if self.loss == SQUARED:
            for i in range(self.n):
                along += self.s[i] * self.y[i]
                square += self.s[i] * self.r[i]
            if square > 0:
                max_scale = lam / max_gradient if max_gradient > 0 else 1e300
                scale = fmax(-max_scale, fmin(along / square, max_scale))
            return scale * along - scale * scale * square / 2
        return kr_entropy(self.columns.simd_level, self.n_blocks, self.y, self.w, self.s, scale)

    cdef double dual_bound(self, double lam) noexcept nogil:
        """Lower bound of the dual objective, which for the logistic loss takes no logarithms.

        Entropies are concave in the scale and 0 at scale 0: at scale c <= 1 they are at least c times those at scale 1.
        """
        if self.loss == SQUARED:
            return self.dual(lam, self.max_gradient)
        return self.unscaled_dual_bound * (1 if self.max_gradient <= lam else lam / self.max_gradient)

    # ---- Newton steps -------------------------------------------------------------------------------------------

    cdef void screen_columns(self, double lam) noexcept nogil:
        """Compute the gradients of all columns that may exceed λ, and their maximum."""
        cdef Py_ssize_t j, k, n_unscreened = 0
        cdef GradientBound *bound
        self.max_gradient = 0
        for j in range(self.columns.n_columns):
            bound = &self.bounds[j]
            if (self.model.coef[j].beta == 0 and bound.drift >= 0 and self.columns.columns[j].value == NULL
                    and fabs(bound.value) + (self.drift - bound.drift) < lam * (1 - ROUNDING_RTOL)):
                continue
            self.unscreened[n_unscreened] = j
            n_unscreened += 1
        self.columns.correlations(self.unscreened, n_unscreened, self.s, self.sums)
        for k in range(n_unscreened):
            bound = &self.bounds[self.unscreened[k]]
            bound.value, bound.drift = self.sums[k], self.drift
            self.max_gradient = fmax(self.max_gradient, fabs(self.sums[k]))

    cdef bint violates(self, Py_ssize_t j, double limit) noexcept nogil:
        """Return whether column j has coefficient 0 and a gradient above the limit."""
        return (self.model.coef[j].beta == 0 and self.bounds[j].drift == self.drift
                and fabs(self.bounds[j].value) > limit)

    cdef void choose_working_set(self, double lam) noexcept nogil:
        """Choose the columns with a nonzero coefficient and those that violate optimality most.

        At most 2 · (nonzero coefficients) + MIN_ENTERING columns enter.
        """
        cdef Py_ssize_t j, n_violations = 0, max_entering, n_working = 0
        cdef Py_ssize_t *working = self.model.working
        cdef double threshold = lam
        for j in range(self.columns.n_columns):
            if self.model.coef[j].beta != 0:
                working[n_working] = j
                n_working += 1
            elif self.violates(j, lam):
                self.violations[n_violations] = fabs(self.bounds[j].value)
                n_violations += 1
        max_entering = 2 * n_working + MIN_ENTERING
        if n_violations > max_entering:
            qsort(self.violations, n_violations, sizeof(double), compare_doubles)
            threshold = self.violations[n_violations - max_entering - 1]
        for j in range(self.columns.n_columns):
            if self.violates(j, threshold):
                working[n_working] = j
                n_working += 1
        self.model.n_working = n_working

    cdef double set_quadratic_model(self) noexcept nogil:
        """Set the quadratic model at f: u, v, slopes and curvatures of the working set. Return Σ v."""
        cdef Py_ssize_t i, k, j
        cdef const RuleColumn *column
        cdef Coefficient *coef
        cdef double total = 0, a
        memset(self.model.score_change, 0, self.n * sizeof(double))
        if self.loss == LOGISTIC:
            total = kr_quadratic_model(self.columns.simd_level, self.n_blocks, self.w, self.r, MIN_CURVATURE,
                                       self.model.u, self.model.v)
        else:
            for i in range(self.n):
                self.model.u[i], self.model.v[i] = self.w[i] * self.r[i], self.w[i]
                total += self.model.v[i]
        self.columns.correlations(self.model.working, self.model.n_working, self.model.v, self.sums)
        for k in range(self.model.n_working):
            j = self.model.working[k]
            column, coef = &self.columns.columns[j], &self.model.coef[j]
            coef.before, coef.slope, coef.curvature = coef.beta, self.sums[k], fabs(self.sums[k])
            if column.value != NULL:
                a = 0
                for i in range(self.n):
                    a += self.model.v[i] * column.value[i] * column.value[i]
                coef.curvature = a
        return total

    cdef bint newton_step(self, double lam, double sum_v, double gain_tol) noexcept nogil:
        """Take a Newton step, halved until the objective falls. Return False if only rounding is left."""
        cdef double before = self.primal(lam), size = 1, intercept = self.intercept, shift
        cdef Py_ssize_t i, k, n_working = self.model.n_working
        cdef Py_ssize_t *working = self.model.working
        cdef Coefficient *coef = self.model.coef
        memcpy(self.f_before, self.f, self.n * sizeof(double))
        shift = self.model.minimise(lam, sum_v, gain_tol)
        for k in range(n_working):
            self.changes[k] = coef[working[k]].beta - coef[working[k]].before
        for _ in range(MAX_HALVINGS):
            for i in range(self.n):
                self.f[i] = self.f_before[i] + size * (self.model.score_change[i] + shift)
            self.intercept = intercept + size * shift
            self.evaluate_loss()
            if self.primal(lam) <= before * (1 + ROUNDING_RTOL):
                return True
            size /= 2
            for k in range(n_working):
                coef[working[k]].beta = coef[working[k]].before + size * self.changes[k]
        memcpy(self.f, self.f_before, self.n * sizeof(double))
        self.intercept = intercept
        for k in range(n_working):
            coef[working[k]].beta = coef[working[k]].before
        self.evaluate_loss()
        return False

    def solve(self, double lam, double tol, Py_ssize_t max_steps, check_interrupt=None):
        """Solve for λ, starting from the present solution, until the gap is at most `tol`.

        Parameters
        ----------
        lam : float
            λ, at least 0.
        tol : float
            Largest duality gap, in units of the objective.
        max_steps : int
            Largest number of Newton steps.
        check_interrupt : callable, optional
            Called about ten times per second; may raise.

        Returns
        -------
        primal, dual : float
            The objectives; the second is a lower bound over all columns added so far.
        """
        cdef double primal = 0, dual = 0, inner_gap, smallest_gap = 1e300, lowest = 1e300
        cdef Py_ssize_t steps, since_check = 0, idle = 0
        cdef bint moving = True
        with nogil:
            self.update_dual_point()
            for steps in range(max_steps + 1):
                self.columns.work_done = 0
                self.screen_columns(lam)
                primal, dual = self.primal(lam), self.dual_bound(lam)
                if tol < primal - dual < EXACT_GAP_FACTOR * tol or steps == max_steps or not moving:
                    dual = fmax(dual, self.dual(lam, self.max_gradient))
                idle = 0 if primal - dual < smallest_gap or primal < lowest * (1 - ROUNDING_RTOL) else idle + 1
                smallest_gap, lowest = fmin(smallest_gap, primal - dual), fmin(lowest, primal)
                if primal - dual <= tol or steps == max_steps or not moving or idle == MAX_IDLE_STEPS:
                    break
                self.choose_working_set(lam)
                inner_gap = INNER_GAP_SHARE * (primal - dual)
                moving = self.newton_step(lam, self.set_quadratic_model(), inner_gap * inner_gap / (primal + 1e-300))
                since_check += self.columns.work_done + self.n
                if since_check > WORK_BETWEEN_SIGNAL_CHECKS:
                    since_check = 0
                    with gil:
                        if check_interrupt is not None:
                            check_interrupt()
        return primal, dual
