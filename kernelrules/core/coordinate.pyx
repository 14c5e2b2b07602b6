"""Coordinate descent for an L1 problem over rules: each column is 0/1 and kept as the list of rows where it is 1.

    minimise over b, β     Σ_i w_i ℓ(y_i, f_i) + λ Σ_j |β_j|,     f = b + Σ_j β_j c_j,     Σ w = 1
    squared   ℓ = (y - f)² / 2                logistic   ℓ = log(1 + e^f) - y f,  y 0 or 1

Newton's steps outside: ℓ becomes a weighted square, the same for the squared loss. Inside, coordinate descent over a
working set, with the intercept at its best after every step: by the matrix of the set's products where it is small, else
by residuals, with the intercept as a scalar beside them, so that a step costs the rows of its list. The dual point is
the residual, scaled until no column exceeds λ; the gap certifies each solution.

A column is looked at only if its last gradient, and how far the residuals have moved since, allow it to exceed λ.

Invariant: one thread, sums in a fixed order: the bits depend on the data alone.
"""

from libc.math cimport exp, fabs, fmax, fmin, log, log1p, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcpy

import numpy as np

cdef enum:
    SQUARED = 0
    LOGISTIC = 1
    BUDGET = 50000000       # rows of lists gone through between two breaths
    MOST_EPOCHS = 500       # of coordinate descent in a Newton step
    POLISH = 4              # epochs between two steps straight to the minimum
    SMALL = 1024            # columns of a working set whose matrix is made
    MOST_HALVINGS = 30
    FEW = 20                # columns that may always join the working set
    PATIENCE = 6            # steps without a smaller gap or objective: rounding is all that is left

cdef double LEAST_CURVATURE = 1e-6      # of the logistic loss, where it is almost flat
cdef double MANY = 1e300                # products of factors up to 2 are not larger than twice this
cdef double ALIKE = 1e-9                # share of its curvature that a column has apart from the others, at least
cdef double FLAT = 1e-12                # share of its curvature that a column which is the same everywhere may have
cdef double INNER = 1e-3                # coordinate descent stops where gains are this share of the gap, squared
cdef double ROUGHER = 1e4               # times that, where the set is large and epochs are dear
cdef double QUICK = 30                  # times the tolerance: closer than this, the gap is computed as it is
cdef double SAME = 1e-14                # relative size of what is rounding


cdef struct Term:
    Py_ssize_t start, size      # its rows in the index
    double sign                 # c = sign on these rows, 0 on the others
    double *value               # or c itself, for all rows; NULL for rules


cdef int ascending(const void *a, const void *b) noexcept nogil:
    cdef double x = (<const double *> a)[0], y = (<const double *> b)[0]
    return (x > y) - (x < y)


cdef double sum_over(const double *x, const int32_t *rows, Py_ssize_t m) noexcept nogil:
    """Four sums side by side: an addition does not wait for the one before."""
    cdef double a = 0, b = 0, c = 0, d = 0
    cdef Py_ssize_t k = 0
    while k + 4 <= m:
        a += x[rows[k]]
        b += x[rows[k + 1]]
        c += x[rows[k + 2]]
        d += x[rows[k + 3]]
        k += 4
    while k < m:
        a += x[rows[k]]
        k += 1
    return (a + b) + (c + d)


cdef double product(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(n):
        total += x[i] * y[i]
    return total


cdef inline double entropy(double q) noexcept nogil:
    """-q log q - (1 - q) log(1 - q)."""
    return (-q * log(q) if q > 0 else 0) - ((1 - q) * log1p(-q) if q < 1 else 0)


cdef inline double shrunk(double x, double by) noexcept nogil:
    return x - by if x > by else x + by if x < -by else 0


cdef class Solver:
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

    cdef Py_ssize_t n, n_terms, room, n_index, index_room, n_working, n_active, work_done
    cdef int loss
    cdef bint even                      # whether all weights that are not 0 are the same
    cdef bint current                   # whether r, s and risk are those of f
    cdef double intercept, start, drift, risk
    cdef double entropies               # at most the dual objective of the logistic loss, before scaling
    cdef public Py_ssize_t small        # columns of a working set that is solved by its matrix, at most
    cdef readonly double largest        # |gradient| of the columns that may exceed λ, when they were last looked at
    cdef uint64_t all_keys
    cdef double *memory
    cdef double *w
    cdef double *y
    cdef double *f                      # scores
    cdef double *base                   # scores before a step
    cdef double *r                      # -dℓ/df
    cdef double *s                      # w·(dual point before it is scaled to λ)
    cdef double *s_before
    cdef double *u                      # w·r less what the steps took off, but for the intercept's
    cdef double *v                      # w·curvature
    cdef double *d                      # change of f, but for the intercept's
    cdef uint64_t *keys
    cdef char *mark
    cdef Term *terms
    cdef int32_t *index
    cdef double *beta
    cdef double *old                    # beta before a step
    cdef double *gradient               # Σ s c, when it was last looked at
    cdef double *looked                 # the drift then
    cdef double *slope                  # Σ v c
    cdef double *curvature              # Σ v c²
    cdef double *sorted
    cdef double *matrix                 # of the working set; a factor of it; a line
    cdef Py_ssize_t matrix_room
    cdef Py_ssize_t *places
    cdef double *dense                  # v·c of one column, otherwise 0
    cdef Py_ssize_t *working
    cdef set known

    def __cinit__(self, const double[::1] y, const double[::1] weights, bint logistic, const uint64_t[::1] keys):
        cdef Py_ssize_t n = y.shape[0], i
        cdef double share = 0, heaviest = 0
        self.n, self.loss, self.known = n, LOGISTIC if logistic else SQUARED, set()
        if weights.shape[0] != n or keys.shape[0] != n or n == 0:
            raise ValueError("targets, weights and keys differ in length")
        self.memory = <double *> calloc(11 * n, sizeof(double))
        self.keys = <uint64_t *> malloc(n * sizeof(uint64_t))
        self.mark = <char *> calloc(n, 1)
        if self.memory == NULL or self.keys == NULL or self.mark == NULL:
            raise MemoryError
        self.w, self.y, self.f = self.memory, self.memory + n, self.memory + 2 * n
        self.base, self.r, self.s = self.memory + 3 * n, self.memory + 4 * n, self.memory + 5 * n
        self.s_before, self.u = self.memory + 6 * n, self.memory + 7 * n
        self.v, self.d, self.dense = self.memory + 8 * n, self.memory + 9 * n, self.memory + 10 * n
        self.small = SMALL
        for i in range(n):
            self.w[i], self.y[i], self.keys[i] = weights[i], y[i], keys[i]
            heaviest = fmax(heaviest, weights[i])
            share += weights[i] * y[i]
            self.all_keys += keys[i]
        self.start, self.even = share, True
        for i in range(n):
            self.even = self.even and (weights[i] == 0 or weights[i] == heaviest)
        if logistic:
            if not 0 < share < 1:
                raise ValueError("the logistic loss needs rows of both classes")
            self.start = log(share / (1 - share))
        self.restart()

    def __dealloc__(self):
        cdef Py_ssize_t j
        if self.terms != NULL:
            for j in range(self.n_terms):
                free(self.terms[j].value)
        for block in (<size_t> self.memory, <size_t> self.keys, <size_t> self.mark, <size_t> self.terms,
                      <size_t> self.index, <size_t> self.beta, <size_t> self.working, <size_t> self.matrix,
                      <size_t> self.places):
            free(<void *> <size_t> block)

    def restart(self):
        """Nothing but the intercept: all coefficients are 0 again."""
        cdef Py_ssize_t i
        self.intercept, self.current, self.drift = self.start, False, 0
        for i in range(self.n):
            self.f[i], self.s_before[i] = self.start, 0
        for i in range(self.n_terms):
            self.beta[i], self.looked[i] = 0, -1

    # ---- columns ------------------------------------------------------------------------------------------------

    cdef int make_room(self, Py_ssize_t n_terms, Py_ssize_t n_index) except -1:
        """For so many more."""
        cdef Py_ssize_t most, k
        cdef void *block
        cdef double *numbers
        if self.n_terms + n_terms > self.room:
            most = 2 * (self.n_terms + n_terms) + 64
            block = realloc(self.terms, most * sizeof(Term))
            if block == NULL:
                raise MemoryError
            self.terms = <Term *> block
            block = realloc(self.working, most * sizeof(Py_ssize_t))
            if block == NULL:
                raise MemoryError
            self.working = <Py_ssize_t *> block
            numbers = <double *> calloc(7 * most, sizeof(double))
            if numbers == NULL:
                raise MemoryError
            for k in range(7):
                if self.n_terms:
                    memcpy(numbers + k * most, self.beta + k * self.room, self.n_terms * sizeof(double))
            free(self.beta)
            self.beta, self.old, self.gradient = numbers, numbers + most, numbers + 2 * most
            self.looked, self.slope = numbers + 3 * most, numbers + 4 * most
            self.curvature, self.sorted = numbers + 5 * most, numbers + 6 * most
            self.room = most
        if self.n_index + n_index > self.index_room:
            most = 2 * (self.n_index + n_index)
            block = realloc(self.index, most * sizeof(int32_t))
            if block == NULL:
                raise MemoryError
            self.index = <int32_t *> block
            self.index_room = most
        return 0

    cdef int append(self, Term term) except -1:
        """A column, whose rows are in the index already."""
        cdef Py_ssize_t j = self.n_terms
        self.terms[j] = term
        self.beta[j] = self.old[j] = self.gradient[j] = self.slope[j] = self.curvature[j] = 0
        self.looked[j] = -1
        self.n_terms += 1
        self.n_index += term.size if term.value == NULL else 0
        return 0

    def add_rules(self, const int32_t[::1] rows, const int64_t[::1] start, const unsigned char[::1] negated,
                  double above):
        """Add those rules that are new and whose gradient, at the solution that was found last, exceeds `above`.

        Parameters
        ----------
        rows : ndarray of int32
            Lists of rows.
        start : ndarray (m + 1,) of int64
            Where the lists begin.
        negated : ndarray (m,) of uint8
            Whether the rule holds where the list has nothing.
        above : float
            As a rule, λ.

        Returns
        -------
        ndarray
            Numbers of the lists that became columns, in order.
        """
        cdef Py_ssize_t m = start.shape[0] - 1, k, size, i, n_found = 0
        cdef const int32_t *at
        cdef int32_t *to
        cdef uint64_t key
        cdef double total
        cdef Term term
        cdef bint flip
        self.refresh()
        found = np.empty(m, dtype=np.int64)
        cdef int64_t[::1] numbers = found
        for k in range(m):
            size = start[k + 1] - start[k]
            if size == 0 or size >= self.n:
                continue
            at = &rows[start[k]]
            total, key = sum_over(self.s, at, size), 0
            if not fabs(total) > above:
                continue
            for i in range(size):
                key += self.keys[at[i]]
            key = min(key, self.all_keys - key)
            if key == 0 or key in self.known:
                continue
            self.known.add(key)
            flip = 2 * size > self.n
            self.make_room(1, self.n - size if flip else size)
            to = self.index + self.n_index
            term.start, term.value = self.n_index, NULL
            term.size = self.n - size if flip else size
            term.sign = -1.0 if flip != (negated[k] != 0) else 1.0
            if flip:
                complement(at, size, self.mark, self.n, to)
            else:
                memcpy(to, at, size * sizeof(int32_t))
            self.append(term)
            numbers[n_found] = k
            n_found += 1
        return found[:n_found]

    def add_values(self, const double[::1] values):
        """Add a column that is no rule."""
        cdef Term term
        self.make_room(1, 0)
        term.start, term.size, term.sign = 0, self.n, 1.0
        term.value = <double *> malloc(self.n * sizeof(double))
        if term.value == NULL:
            raise MemoryError
        memcpy(term.value, &values[0], self.n * sizeof(double))
        self.append(term)

    # ---- what a solution is ---------------------------------------------------------------------------------------

    @property
    def n_columns(self):
        """Columns that there are."""
        return self.n_terms

    @property
    def n_nonzero(self):
        """Coefficients that are not 0."""
        cdef Py_ssize_t j, n = 0
        for j in range(self.n_terms):
            n += self.beta[j] != 0
        return n

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
        cdef double heaviest = 0
        cdef double risk = 0, rise = 0, fall = 0, along = 0, factors = 1, p, e, up, down
        if self.loss == SQUARED:
            for i in range(self.n):
                self.r[i] = self.y[i] - self.f[i]
                self.s[i] = self.w[i] * self.r[i]
                risk += self.s[i] * self.r[i]
            self.risk = risk / 2
        else:
            for i in range(self.n):
                if self.w[i] == 0:
                    self.r[i] = self.s[i] = 0
                    continue
                e = exp(-fabs(self.f[i]))
                p = 1 / (1 + e) if self.f[i] > 0 else e / (1 + e)
                self.r[i] = self.y[i] - p
                if self.y[i] > 0.5 and self.f[i] > 0:
                    self.r[i] = e / (1 + e)             # 1 - p, without cancellation
                risk += self.w[i] * (fmax(self.f[i], 0) - self.y[i] * self.f[i])
                along += self.w[i] * self.r[i] * self.f[i]
                if self.even:                           # one logarithm for many rows
                    factors *= 1 + e
                    heaviest = self.w[i]
                    if factors > MANY:
                        risk += heaviest * log(factors)
                        factors = 1
                else:
                    risk += self.w[i] * log1p(e)
                if self.y[i] > 0.5:
                    rise += self.w[i] * self.r[i]
                else:
                    fall -= self.w[i] * self.r[i]
            risk += heaviest * log(factors)
            up, down = fmin(1, fall / rise) if rise > 0 else 0, fmin(1, rise / fall) if fall > 0 else 0
            for i in range(self.n):
                self.s[i] = self.w[i] * self.r[i] * (up if self.y[i] > 0.5 else down)
            self.risk, self.entropies = risk, fmin(up, down) * (risk + along)
        rise = fall = 0
        for i in range(self.n):
            e = self.s[i] - self.s_before[i]
            self.s_before[i] = self.s[i]
            if e > 0:
                rise += e
            else:
                fall -= e
        self.drift += fmax(rise, fall)          # no sum over a list has changed by more
        self.current = True

    cdef double dual(self, double lam, double largest) noexcept nogil:
        """The dual objective at the dual point, scaled so that |gradients| <= λ."""
        cdef double most = 1 if largest <= lam else lam / largest, scale = most, along = 0, square = 0, total = 0
        cdef Py_ssize_t i
        if self.loss == SQUARED:
            for i in range(self.n):
                along += self.s[i] * self.y[i]
                square += self.s[i] * self.r[i]
            if square > 0:
                most = lam / largest if largest > 0 else 1e300
                scale = fmax(-most, fmin(along / square, most))
            return scale * along - scale * scale * square / 2
        for i in range(self.n):
            if self.w[i] > 0:
                total += self.w[i] * entropy(fmin(fmax(self.y[i] - scale * self.s[i] / self.w[i], 0), 1))
        return total

    cdef double quick_dual(self, double lam) noexcept nogil:
        """A lower bound of the dual objective: of the logistic loss without logarithms.

        Entropies are concave in the scale, and 0 where it is 0: scaled by c, they are at least c times as large.
        """
        if self.loss == SQUARED:
            return self.dual(lam, self.largest)
        return self.entropies * (1 if self.largest <= lam else lam / self.largest)

    # ---- gradients --------------------------------------------------------------------------------------------------

    cdef double correlation(self, Py_ssize_t j, const double *x) noexcept nogil:
        cdef const Term *term = &self.terms[j]
        self.work_done += term.size
        if term.value != NULL:
            return product(term.value, x, self.n)
        return term.sign * sum_over(x, self.index + term.start, term.size)

    cdef void look(self, double lam) noexcept nogil:
        """Gradients of all columns that may exceed λ; the largest of them."""
        cdef Py_ssize_t j
        self.largest = 0
        for j in range(self.n_terms):
            if (self.beta[j] == 0 and self.looked[j] >= 0 and self.terms[j].value == NULL
                    and fabs(self.gradient[j]) + (self.drift - self.looked[j]) < lam * (1 - SAME)):
                continue
            self.gradient[j], self.looked[j] = self.correlation(j, self.s), self.drift
            self.largest = fmax(self.largest, fabs(self.gradient[j]))

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

    # ---- steps ------------------------------------------------------------------------------------------------------

    cdef double model(self) noexcept nogil:
        """The quadratic model at f: u, v, and what the working set needs of them. Gives Σ v."""
        cdef Py_ssize_t i, k, j
        cdef const Term *term
        cdef double total = 0, a
        for i in range(self.n):
            self.d[i], self.u[i], self.v[i] = 0, self.w[i] * self.r[i], self.w[i]
            if self.loss == LOGISTIC:
                a = fabs(self.r[i])
                self.v[i] *= fmax(a * (1 - a), LEAST_CURVATURE)
            total += self.v[i]
        for k in range(self.n_working):
            j = self.working[k]
            term = &self.terms[j]
            self.old[j] = self.beta[j]
            self.slope[j] = self.correlation(j, self.v)
            self.curvature[j] = fabs(self.slope[j])
            if term.value != NULL:
                a = 0
                for i in range(self.n):
                    a += self.v[i] * term.value[i] * term.value[i]
                self.curvature[j] = a
        return total

    cdef double move(self, Py_ssize_t j, double lam, double total, double *shift) noexcept nogil:
        """Coordinate j to its best place, and the intercept with it; gives what that took off the model."""
        cdef const Term *term = &self.terms[j]
        cdef const int32_t *rows = self.index + term.start
        cdef double slope = self.slope[j], bend = self.curvature[j] - slope * slope / total, change, here
        cdef Py_ssize_t k
        if bend <= FLAT * self.curvature[j]:
            return 0                            # the same for all rows that count
        here = self.correlation(j, self.u) - shift[0] * slope
        change = shrunk(bend * self.beta[j] + here, lam) / bend - self.beta[j]
        if change == 0:
            return 0
        self.beta[j] += change
        self.work_done += term.size
        if term.value != NULL:
            for k in range(self.n):
                self.d[k] += change * term.value[k]
                self.u[k] -= change * term.value[k] * self.v[k]
        else:
            here = change * term.sign
            for k in range(term.size):
                self.d[rows[k]] += here
                self.u[rows[k]] -= here * self.v[rows[k]]
        shift[0] -= change * slope / total
        return bend * change * change

    cdef double descend(self, double lam, double total, double enough) noexcept nogil:
        """Epochs over the working set, most of them over what is not 0, until one takes off no more than `enough`."""
        cdef Py_ssize_t k, epoch
        cdef double shift = 0, gained
        cdef bint everything = True
        for k in range(self.n):
            shift += self.u[k]
        shift /= total
        for epoch in range(MOST_EPOCHS):
            gained = 0
            for k in range(self.n_working):
                if everything or self.beta[self.working[k]] != 0:
                    gained += self.move(self.working[k], lam, total, &shift)
            if gained <= enough:
                if everything:
                    break
                everything = True
            elif self.work_done > BUDGET:
                break
            else:
                everything = False
        return shift

    cdef bint has_matrix(self) noexcept nogil:
        """Whether there is memory for the matrix of the working set."""
        cdef Py_ssize_t m = self.n_working
        if m > self.matrix_room:
            m = min(2 * m, max(m, self.small))
            free(self.matrix)
            free(self.places)
            self.matrix = <double *> malloc((2 * m + 1) * m * sizeof(double))
            self.places = <Py_ssize_t *> malloc(m * sizeof(Py_ssize_t))
            self.matrix_room = m if self.matrix != NULL and self.places != NULL else 0
        return self.matrix_room > 0

    cdef void make_matrix(self, double total) noexcept nogil:
        """Products of the working set's columns, centred; columns with many rows are spread, the others look them up."""
        cdef Py_ssize_t m = self.n_working, a, b, i, j, k
        cdef const Term *term
        cdef const int32_t *rows
        cdef double found
        for a in range(m):
            j = self.working[a]
            term, rows = &self.terms[j], self.index + self.terms[j].start
            for i in range(term.size):
                if term.value != NULL:
                    self.dense[i] = self.v[i] * term.value[i]
                else:
                    self.dense[rows[i]] = self.v[rows[i]] * term.sign
            for b in range(m):
                k = self.working[b]
                if a == b:
                    self.matrix[a * m + a] = self.curvature[j] - self.slope[j] * self.slope[j] / total
                elif self.terms[k].size < term.size or (self.terms[k].size == term.size and b > a):
                    found = self.correlation(k, self.dense) - self.slope[j] * self.slope[k] / total
                    self.matrix[a * m + b] = self.matrix[b * m + a] = found
            for i in range(term.size):
                self.dense[i if term.value != NULL else rows[i]] = 0

    cdef void polish(self, double lam, double *gradient) noexcept nogil:
        """Straight to the minimum over the coefficients that are not 0, as far as none changes its sign.

        Coordinate descent is slow where columns are much alike; a factor L Lᵀ of their part of the matrix is not.
        """
        cdef Py_ssize_t m = self.n_working, n_some = 0, a, b, c, stopped = -1
        cdef Py_ssize_t *some = self.places
        cdef double *factor = self.matrix + m * m
        cdef double *step = factor + m * m
        cdef double total, size = 1
        for a in range(self.n_working):
            if self.beta[self.working[a]] != 0:
                some[n_some] = a
                n_some += 1
        for a in range(n_some):
            step[a] = gradient[some[a]] - (lam if self.beta[self.working[some[a]]] > 0 else -lam)
            for b in range(a + 1):
                total = self.matrix[some[a] * m + some[b]]
                for c in range(b):
                    total -= factor[a * m + c] * factor[b * m + c]
                if b < a:
                    factor[a * m + b] = total / factor[b * m + b] if factor[b * m + b] > 0 else 0
                else:                           # a column that the others make up stays where it is
                    factor[a * m + a] = (
                        sqrt(total) if total > ALIKE * self.matrix[some[a] * m + some[a]] else 0)
        for a in range(n_some):
            for c in range(a):
                step[a] -= factor[a * m + c] * step[c]
            step[a] = step[a] / factor[a * m + a] if factor[a * m + a] > 0 else 0
        for a in range(n_some - 1, -1, -1):
            for c in range(a + 1, n_some):
                step[a] -= factor[c * m + a] * step[c]
            step[a] = step[a] / factor[a * m + a] if factor[a * m + a] > 0 else 0
        for a in range(n_some):
            total = self.beta[self.working[some[a]]]
            if (total + step[a] > 0) != (total > 0) and -total / step[a] < size:
                size, stopped = -total / step[a], a
        for a in range(n_some):
            total = size * step[a] if a != stopped else -self.beta[self.working[some[a]]]
            self.beta[self.working[some[a]]] += total
            for b in range(self.n_working):
                gradient[b] -= total * self.matrix[some[a] * m + b]

    cdef double descend_by_matrix(self, double lam, double total, double enough) noexcept nogil:
        """What `descend` does, where the working set is small."""
        cdef Py_ssize_t m = self.n_working, a, b, j, epoch, i
        cdef double shift = 0, gained, bend, change
        cdef double *gradient = self.sorted
        cdef const double *line
        cdef const int32_t *rows
        self.make_matrix(total)
        for i in range(self.n):
            shift += self.u[i]
        shift /= total
        for a in range(m):
            gradient[a] = self.correlation(self.working[a], self.u) - shift * self.slope[self.working[a]]
        for epoch in range(MOST_EPOCHS):
            gained = 0
            for a in range(m):
                j, line = self.working[a], self.matrix + a * m
                bend = line[a]
                if bend <= FLAT * self.curvature[j]:
                    continue
                change = shrunk(bend * self.beta[j] + gradient[a], lam) / bend - self.beta[j]
                if change == 0:
                    continue
                self.beta[j] += change
                gained += bend * change * change
                for b in range(m):
                    gradient[b] -= change * line[b]
            if gained <= enough:
                break
            if epoch % POLISH == POLISH - 1:
                self.polish(lam, gradient)
        for a in range(m):
            j = self.working[a]
            change = self.beta[j] - self.old[j]
            if change == 0:
                continue
            shift -= change * self.slope[j] / total
            if self.terms[j].value != NULL:
                for i in range(self.n):
                    self.d[i] += change * self.terms[j].value[i]
            else:
                rows, change = self.index + self.terms[j].start, change * self.terms[j].sign
                for i in range(self.terms[j].size):
                    self.d[rows[i]] += change
        return shift

    cdef bint step(self, double lam, double total, double enough) noexcept nogil:
        """A Newton step, halved until the objective falls; False where rounding leaves none."""
        cdef double before = self.risk + lam * self.norm(), size = 1, intercept = self.intercept, shift, after
        cdef Py_ssize_t i, k, j, halving
        memcpy(self.base, self.f, self.n * sizeof(double))
        if self.n_working <= self.small and self.has_matrix():
            shift = self.descend_by_matrix(lam, total, enough)
        else:
            shift = self.descend(lam, total, ROUGHER * enough)
        for k in range(self.n_working):
            j = self.working[k]
            self.sorted[k] = self.beta[j] - self.old[j]
        for halving in range(MOST_HALVINGS):
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
        self.refresh()
        for steps in range(max_steps + 1):
            with nogil:
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
            if air is not None and since > BUDGET:
                since = 0
                air()
        return primal, dual


cdef void complement(const int32_t *rows, Py_ssize_t m, char *mark, Py_ssize_t n, int32_t *out) noexcept nogil:
    """All rows but these; the marks are left as they were, at 0."""
    cdef Py_ssize_t i, k = 0
    for i in range(m):
        mark[rows[i]] = 1
    for i in range(n):
        if not mark[i]:
            out[k] = <int32_t> i
            k += 1
    for i in range(m):
        mark[rows[i]] = 0
