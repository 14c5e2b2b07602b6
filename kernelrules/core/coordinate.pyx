"""L1 problems over rules, solved for one λ after another, with a certificate for each.

    minimise over b, β     Σ_i w_i ℓ(y_i, f_i) + λ Σ_j |β_j|,     f = b + Σ_j β_j c_j,     Σ w = 1
    squared   ℓ = (y - f)² / 2                logistic   ℓ = log(1 + e^f) - y f,  y 0 or 1

    terms.pyx     the columns: lists of rows          descent.pyx     the quadratic model of a Newton step

Newton's steps outside: ℓ becomes a weighted square, the same for the squared loss, and is minimised over a working set.
The dual point is the residual, scaled until no column exceeds λ; the gap certifies each solution. A column is looked at
only if its last gradient, and how far the residuals have moved since, allow it to exceed λ.

Invariant: one thread, sums in a fixed order: the bits depend on the data alone.
"""

from libc.math cimport fabs, fmax, fmin, log
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.descent cimport Descent
from kernelrules.core.status cimport NO_MEMORY
from kernelrules.core.terms cimport Term

import numpy as np

from kernelrules.core.status import raise_for_status

cdef extern from "logistic.h" nogil:
    enum:
        KR_LANES
    void kr_logistic(int level, Py_ssize_t n_blocks, double even, const double *f, const double *y, const double *w,
                     double *r, double *out) noexcept
    void kr_point(int level, Py_ssize_t n_blocks, const double *y, const double *w, const double *r, double up,
                  double down, double *s, double *before, double *out) noexcept
    double kr_model(int level, Py_ssize_t n_blocks, const double *w, const double *r, double least, double *u,
                    double *v) noexcept
    double kr_entropy(int level, Py_ssize_t n_blocks, const double *y, const double *w, const double *s,
                      double scale) noexcept

cdef enum:
    SQUARED = 0
    LOGISTIC = 1
    BUDGET = 50000000       # rows of lists gone through between two breaths
    MOST_HALVINGS = 30
    FEW = 20                # columns that may always join the working set
    PATIENCE = 6            # steps without a smaller gap or objective: rounding is all that is left

cdef double LEAST_CURVATURE = 1e-6      # of the logistic loss, where it is almost flat
cdef double INNER = 1e-5                # coordinate descent stops where gains are this share of the gap, squared
cdef double QUICK = 30                  # times the tolerance: closer than this, the gap is computed as it is
cdef double SAME = 1e-14                # relative size of what is rounding


cdef int ascending(const void *a, const void *b) noexcept nogil:
    cdef double x = (<const double *> a)[0], y = (<const double *> b)[0]
    return (x > y) - (x < y)


cdef class Solver(Descent):
    """The L1 problem of one target: columns are added as they are found, and it is solved for one λ after another.

    Parameters
    ----------
    y : ndarray (n,)
        Targets, for the logistic loss 0 and 1.
    weights : ndarray (n,)
        They sum to 1. Rows of weight 0 get a score, and count nowhere else.
    logistic : bool
        Which loss.
    keys : ndarray (n,) of uint64
        Random numbers: two rules with the same sum of these have the same rows. 0 for rows of weight 0.
    """

    cdef Py_ssize_t n_active, n_blocks
    cdef int loss
    cdef double even                    # all weights that are not 0, where they are the same; otherwise 0
    cdef bint current                   # whether r, s and risk are those of f
    cdef double intercept, start, drift, risk
    cdef double entropies               # at most the dual objective of the logistic loss, before scaling
    cdef readonly double largest        # |gradient| of the columns that may exceed λ, when they were last looked at
    cdef double *memory
    cdef double *w
    cdef double *y
    cdef double *f                      # scores
    cdef double *base                   # scores before a step
    cdef double *r                      # -dℓ/df
    cdef double *s_before

    def __cinit__(self, const double[::1] y, const double[::1] weights, bint logistic, const uint64_t[::1] keys):
        cdef Py_ssize_t n = y.shape[0], i, m = 64 * self.n_words    # bits and blocks then end with them
        cdef double share = 0, heaviest = 0
        self.loss, self.n_blocks = LOGISTIC if logistic else SQUARED, m // KR_LANES
        self.memory = <double *> calloc(11 * m, sizeof(double))
        if self.memory == NULL:
            raise_for_status(NO_MEMORY)
        self.w, self.y, self.f = self.memory, self.memory + m, self.memory + 2 * m
        self.base, self.r, self.s = self.memory + 3 * m, self.memory + 4 * m, self.memory + 5 * m
        self.s_before, self.u = self.memory + 6 * m, self.memory + 7 * m
        self.v, self.d, self.dense = self.memory + 8 * m, self.memory + 9 * m, self.memory + 10 * m
        for i in range(n):
            self.w[i], self.y[i] = weights[i], y[i]
            heaviest = fmax(heaviest, weights[i])
            share += weights[i] * y[i]
        self.start, self.even = share, heaviest
        for i in range(n):
            if weights[i] != 0 and weights[i] != heaviest:
                self.even = 0
        if logistic:
            if not 0 < share < 1:
                raise ValueError("the logistic loss needs rows of both classes")
            self.start = log(share / (1 - share))
        self.restart()

    def __dealloc__(self):
        free(self.memory)

    def restart(self):
        """Nothing but the intercept: all coefficients are 0 again."""
        cdef Py_ssize_t i
        self.intercept, self.current, self.drift = self.start, False, 0
        for i in range(self.n):
            self.f[i], self.s_before[i] = self.start, 0
        for i in range(self.n_terms):
            self.beta[i], self.looked[i] = 0, -1

    # ---- what a solution is -------------------------------------------------------------------------------------

    def coefficients(self):
        """Of the columns as they were given, and the intercept that belongs to them."""
        cdef Py_ssize_t j
        cdef double constant = self.intercept
        out = np.zeros(self.n_terms)
        cdef double[::1] values = out
        for j in range(self.n_terms):
            values[j] = self.beta[j]
            if self.terms[j].value == NULL and self.terms[j].sign < 0:
                constant -= self.beta[j]        # 1 - list: what the list takes off was added everywhere
        return out, constant

    def scores(self):
        """f of all rows."""
        out = np.empty(self.n)
        cdef double[::1] values = out
        memcpy(&values[0], self.f, self.n * sizeof(double))
        return out

    def residuals(self):
        """The dual point before it is scaled, times the weights; it sums to 0."""
        self.refresh()
        out = np.empty(self.n)
        cdef double[::1] values = out
        memcpy(&values[0], self.s, self.n * sizeof(double))
        return out

    def largest_gradient(self):
        """max_j |Σ_i s_i c_ij| over all columns: from this λ on, the present solution's dual point is feasible."""
        self.refresh()
        with nogil:
            self.look(0.0)
        return self.largest

    def certificate(self, double lam, double largest):
        """(primal, dual) objectives, where no column's gradient exceeds `largest`."""
        self.refresh()
        return self.risk + lam * self.norm(), self.dual(lam, largest)

    cdef void refresh(self) noexcept nogil:
        if not self.current:
            self.evaluate()

    cdef double norm(self) noexcept nogil:
        cdef double total = 0
        cdef Py_ssize_t j
        for j in range(self.n_terms):
            total += fabs(self.beta[j])
        return total

    cdef void evaluate(self) noexcept nogil:
        """Risk, residuals and the dual point at f.

        The dual point must sum to 0, which the residuals do up to the intercept's last step: of the two classes the
        residuals of one are made smaller, which keeps them between y - 1 and y.
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
            kr_logistic(self.level, self.n_blocks, self.even, self.f, self.y, self.w, self.r, sums)
            up = fmin(1, sums[3] / sums[2]) if sums[2] > 0 else 0
            down = fmin(1, sums[2] / sums[3]) if sums[3] > 0 else 0
            self.risk, self.entropies = sums[0], fmin(up, down) * (sums[0] + sums[1])
        kr_point(self.level, self.n_blocks, self.y, self.w, self.r, up, down, self.s, self.s_before, sums)
        self.drift += fmax(sums[0], sums[1])    # no sum over a list has changed by more
        self.current = True

    cdef double dual(self, double lam, double largest) noexcept nogil:
        """The dual objective at the dual point, scaled so that |gradients| <= λ."""
        cdef double most = 1 if largest <= lam else lam / largest, scale = most, along = 0, square = 0
        cdef Py_ssize_t i
        if self.loss == SQUARED:
            for i in range(self.n):
                along += self.s[i] * self.y[i]
                square += self.s[i] * self.r[i]
            if square > 0:
                most = lam / largest if largest > 0 else 1e300
                scale = fmax(-most, fmin(along / square, most))
            return scale * along - scale * scale * square / 2
        return kr_entropy(self.level, self.n_blocks, self.y, self.w, self.s, scale)

    cdef double quick_dual(self, double lam) noexcept nogil:
        """A lower bound of the dual objective: of the logistic loss without logarithms.

        Entropies are concave in the scale, and 0 where it is 0: scaled by c, they are at least c times as large.
        """
        if self.loss == SQUARED:
            return self.dual(lam, self.largest)
        return self.entropies * (1 if self.largest <= lam else lam / self.largest)

    # ---- steps --------------------------------------------------------------------------------------------------

    cdef void look(self, double lam) noexcept nogil:
        """Gradients of all columns that may exceed λ; the largest of them."""
        cdef Py_ssize_t j, k, n_some = 0
        self.largest = 0
        for j in range(self.n_terms):
            if (self.beta[j] == 0 and self.looked[j] >= 0 and self.terms[j].value == NULL
                    and fabs(self.gradient[j]) + (self.drift - self.looked[j]) < lam * (1 - SAME)):
                continue
            self.working[n_some] = j
            n_some += 1
        self.correlations(self.working, n_some, self.s, self.sorted)
        for k in range(n_some):
            j = self.working[k]
            self.gradient[j], self.looked[j] = self.sorted[k], self.drift
            self.largest = fmax(self.largest, fabs(self.sorted[k]))

    cdef void choose(self, double lam) noexcept nogil:
        """The working set: all columns in use, and those that violate optimality most."""
        cdef Py_ssize_t j, n_out = 0, most
        cdef double least = lam
        self.n_working = 0
        for j in range(self.n_terms):
            if self.beta[j] != 0:
                self.working[self.n_working] = j
                self.n_working += 1
            elif self.looked[j] == self.drift and fabs(self.gradient[j]) > lam:
                self.sorted[n_out] = fabs(self.gradient[j])
                n_out += 1
        self.n_active = self.n_working
        most = 2 * self.n_active + FEW
        if n_out > most:
            qsort(self.sorted, n_out, sizeof(double), ascending)
            least = self.sorted[n_out - most - 1]
        for j in range(self.n_terms):
            if self.beta[j] == 0 and self.looked[j] == self.drift and fabs(self.gradient[j]) > least:
                self.working[self.n_working] = j
                self.n_working += 1

    cdef double model(self) noexcept nogil:
        """The quadratic model at f: u, v, and what the working set needs of them. Gives Σ v."""
        cdef Py_ssize_t i, k, j
        cdef const Term *term
        cdef double total = 0, a
        memset(self.d, 0, self.n * sizeof(double))
        if self.loss == LOGISTIC:
            total = kr_model(self.level, self.n_blocks, self.w, self.r, LEAST_CURVATURE, self.u, self.v)
        else:
            for i in range(self.n):
                self.u[i], self.v[i] = self.w[i] * self.r[i], self.w[i]
                total += self.v[i]
        self.correlations(self.working, self.n_working, self.v, self.sorted)
        for k in range(self.n_working):
            j = self.working[k]
            term = &self.terms[j]
            self.old[j], self.slope[j] = self.beta[j], self.sorted[k]
            self.curvature[j] = fabs(self.slope[j])
            if term.value != NULL:
                a = 0
                for i in range(self.n):
                    a += self.v[i] * term.value[i] * term.value[i]
                self.curvature[j] = a
        return total

    cdef bint step(self, double lam, double total, double enough) noexcept nogil:
        """A Newton step, halved until the objective falls; False where rounding leaves none."""
        cdef double before = self.risk + lam * self.norm(), size = 1, intercept = self.intercept, shift, after
        cdef Py_ssize_t i, k, j
        memcpy(self.base, self.f, self.n * sizeof(double))
        shift = self.minimise(lam, total, enough)
        for k in range(self.n_working):
            j = self.working[k]
            self.sorted[k] = self.beta[j] - self.old[j]
        for _ in range(MOST_HALVINGS):
            for i in range(self.n):
                self.f[i] = self.base[i] + size * (self.d[i] + shift)
            self.intercept = intercept + size * shift
            self.evaluate()
            after = self.risk + lam * self.norm()
            if after <= before * (1 + SAME):
                return True
            size /= 2
            for k in range(self.n_working):
                j = self.working[k]
                self.beta[j] = self.old[j] + size * self.sorted[k]
        memcpy(self.f, self.base, self.n * sizeof(double))
        self.intercept = intercept
        for k in range(self.n_working):
            self.beta[self.working[k]] = self.old[self.working[k]]
        self.evaluate()
        return False

    def solve(self, double lam, double tol, Py_ssize_t max_steps, air=None):
        """Solve for λ from the present solution on, until the gap is at most `tol`.

        Parameters
        ----------
        lam : float
            At least 0.
        tol : float
            In units of the objective.
        max_steps : int
            Of Newton's, at most.
        air : callable, optional
            Called about ten times a second.

        Returns
        -------
        primal, dual : float
            The objectives; the second is a lower bound over all columns that there are.
        """
        cdef double primal = 0, dual = 0, enough, least = 1e300, lowest = 1e300
        cdef Py_ssize_t steps, since = 0, idle = 0
        cdef bint going = True
        with nogil:
            self.refresh()
            for steps in range(max_steps + 1):
                self.work_done = 0
                self.look(lam)
                primal, dual = self.risk + lam * self.norm(), self.quick_dual(lam)
                if primal - dual > tol and primal - dual < QUICK * tol or steps == max_steps or not going:
                    dual = fmax(dual, self.dual(lam, self.largest))
                idle = 0 if primal - dual < least or primal < lowest * (1 - SAME) else idle + 1
                least, lowest = fmin(least, primal - dual), fmin(lowest, primal)
                if primal - dual <= tol or steps == max_steps or not going or idle == PATIENCE:
                    break
                self.choose(lam)
                enough = INNER * (primal - dual)
                going = self.step(lam, self.model(), enough * enough / (primal + 1e-300))
                since += self.work_done + self.n
                if since > BUDGET:
                    since = 0
                    with gil:
                        if air is not None:
                            air()
        return primal, dual
