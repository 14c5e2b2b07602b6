"""Coordinate descent on a quadratic model, over a working set of columns, the intercept at its best all the time.

    minimise over δb, β     Σ_i v_i (u_i / v_i - δb - Σ_j (β_j - old_j) c_ij)² / 2 + λ Σ_j |β_j|

Small sets are solved by the matrix of their centred products, with steps straight to the minimum over the coefficients
that are not 0; large ones by residuals, with the intercept as a scalar beside them: a step costs the rows of its list.
The matrix has a column's products with v by rows, over which the lists and bits of others are summed.

Invariant: one thread, sums in a fixed order: the bits depend on the data alone.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.terms cimport Term

cdef extern from "masked.h" nogil:
    void kr_masked_copy(int level, const uint64_t *bits, Py_ssize_t n_words, double times, const double *from_,
                        double *to) noexcept
    void kr_masked_move(const uint64_t *bits, Py_ssize_t n_words, double by, const double *from_, double *up,
                        double *down) noexcept

cdef enum:
    BUDGET = 50000000       # rows of lists gone through between two breaths
    MOST_EPOCHS = 500
    POLISH = 4              # epochs between two steps straight to the minimum
    SMALL = 1024            # columns of a working set whose matrix is made

cdef double ALIKE = 1e-9                # share of its curvature that a column has apart from the others, at least
cdef double FLAT = 1e-12                # share of its curvature that a column which is the same everywhere may have
cdef double ROUGHER = 1e8               # times as much is left to gain where the set is large and epochs are dear


cdef inline double shrunk(double x, double by) noexcept nogil:
    return x - by if x > by else x + by if x < -by else 0


cdef class Descent(Terms):
    """The model u, v of what is to be minimised, and its minimum."""

    def __cinit__(self, *_):
        self.small = SMALL

    def __dealloc__(self):
        free(self.matrix)
        free(self.places)

    cdef double minimise(self, double lam, double total, double enough) noexcept nogil:
        """New coefficients of the working set, and their scores in d; gives the intercept's change. total is Σ v."""
        if self.n_working <= self.small and self.has_matrix():
            return self.descend_by_matrix(lam, total, enough)
        return self.descend(lam, total, ROUGHER * enough)

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
        elif term.by_bits:
            kr_masked_move(self.bits + term.start, self.n_words, change * term.sign, self.v, self.d, self.u)
        else:
            here = change * term.sign
            for k in range(term.size):
                self.d[rows[k]] += here
                self.u[rows[k]] -= here * self.v[rows[k]]
        shift[0] -= change * slope / total
        return bend * change * change

    cdef double descend(self, double lam, double total, double enough) noexcept nogil:
        """Epochs over the working set, most of them over what is not 0, until one takes off no more than `enough`."""
        cdef Py_ssize_t k
        cdef double shift = 0, gained
        cdef bint everything = True
        for k in range(self.n):
            shift += self.u[k]
        shift /= total
        for _ in range(MOST_EPOCHS):
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
            self.places = <Py_ssize_t *> malloc(2 * m * sizeof(Py_ssize_t))
            self.matrix_room = m if self.matrix != NULL and self.places != NULL else 0
        return self.matrix_room > 0

    cdef void spread(self, Py_ssize_t j) noexcept nogil:
        """v·c of a column, by rows; `dense` is 0 before."""
        cdef const Term *term = &self.terms[j]
        cdef const int32_t *rows = self.index + term.start
        cdef Py_ssize_t i
        if term.by_bits:
            kr_masked_copy(self.level, self.bits + term.start, self.n_words, term.sign, self.v, self.dense)
        elif term.value != NULL:
            for i in range(self.n):
                self.dense[i] = self.v[i] * term.value[i]
        else:
            for i in range(term.size):
                self.dense[rows[i]] = self.v[rows[i]] * term.sign

    cdef void unspread(self, Py_ssize_t j) noexcept nogil:
        cdef const Term *term = &self.terms[j]
        cdef Py_ssize_t i
        if term.by_bits or term.value != NULL:
            memset(self.dense, 0, self.n * sizeof(double))
        else:
            for i in range(term.size):
                self.dense[self.index[term.start + i]] = 0

    cdef void make_matrix(self, double total) noexcept nogil:
        """Centred products of the working set: of two columns the dearer one is spread out, and the other summed."""
        cdef Py_ssize_t m = self.n_working, a, b, i, j, k, n_others, cost
        cdef Py_ssize_t *others = self.places           # columns, and
        cdef Py_ssize_t *lines = self.places + m        # where they stand in the working set
        cdef double *sums = self.matrix + m * m
        for a in range(m):
            j, n_others, cost = self.working[a], 0, self.terms[self.working[a]].cost
            self.matrix[a * m + a] = self.curvature[j] - self.slope[j] * self.slope[j] / total
            for b in range(m):
                k = self.working[b]
                if self.terms[k].cost < cost or (self.terms[k].cost == cost and b > a):
                    others[n_others], lines[n_others] = k, b
                    n_others += 1
            if n_others == 0:
                continue
            self.spread(j)
            self.correlations(others, n_others, self.dense, sums)
            self.unspread(j)
            for i in range(n_others):
                b, k = lines[i], others[i]
                self.matrix[a * m + b] = self.matrix[b * m + a] = sums[i] - self.slope[j] * self.slope[k] / total

    cdef bint slide(self, double *gradient, Py_ssize_t a) noexcept nogil:
        """Where column a is a sum of those before it: along that, until Σ|β| has lost a coefficient. False: nowhere."""
        cdef Py_ssize_t m = self.n_working, b, c, stopped = -1
        cdef Py_ssize_t *some = self.places
        cdef const double *factor = self.matrix + m * m
        cdef double *way = self.matrix + 2 * m * m
        cdef double slope = 0, length = 0, size = 1e300, here
        way[a] = 1
        for b in range(a - 1, -1, -1):
            here = factor[b * m + a]
            for c in range(b + 1, a):
                here += factor[b * m + c] * way[c]
            way[b] = -here / factor[b * m + b] if factor[b * m + b] > 0 else 0
        for b in range(a + 1):
            slope += way[b] if self.beta[self.working[some[b]]] > 0 else -way[b]
            length += fabs(way[b])
        if fabs(slope) <= 1e-9 * length:
            return False
        for b in range(a + 1):
            here = self.beta[self.working[some[b]]] / way[b] * (1 if slope > 0 else -1) if way[b] != 0 else -1
            if 0 < here < size:
                size, stopped = here, b
        if stopped < 0:
            return False
        for b in range(a + 1):
            here = -size * way[b] * (1 if slope > 0 else -1)
            here = here if b != stopped else -self.beta[self.working[some[b]]]
            self.beta[self.working[some[b]]] += here
            for c in range(m):
                gradient[c] -= here * self.matrix[some[b] * m + c]
        return True

    cdef bint polish(self, double lam, double *gradient) noexcept nogil:
        """Straight to the minimum over the coefficients that are not 0, as far as none changes its sign.

        Coordinate descent is slow where columns are much alike; a factor LLᵀ of their part of the matrix is not. Where
        a column is a sum of others, as nodes of trees are, a coefficient becomes 0 instead. True if one did: call anew.
        """
        cdef Py_ssize_t m = self.n_working, n_some = 0, a, b, c, stopped = -1
        cdef Py_ssize_t *some = self.places
        cdef double *factor = self.matrix + m * m
        cdef double *step = factor + m * m
        cdef double *line
        cdef double total, times, size = 1
        for a in range(self.n_working):
            if self.beta[self.working[a]] != 0:
                some[n_some] = a
                n_some += 1
        for a in range(n_some):                 # line a of Lᵀ, from those before
            line = factor + a * m
            for b in range(a, n_some):
                line[b] = self.matrix[some[a] * m + some[b]]
            for c in range(a):
                times = factor[c * m + a]
                for b in range(a, n_some):
                    line[b] -= times * factor[c * m + b]
            if line[a] > ALIKE * self.matrix[some[a] * m + some[a]]:
                times = 1 / sqrt(line[a])
            elif self.slide(gradient, a):
                return True
            else:
                times = 0                       # it stays where it is
            for b in range(a, n_some):
                line[b] *= times
        for a in range(n_some):
            step[a] = gradient[some[a]] - (lam if self.beta[self.working[some[a]]] > 0 else -lam)
        for a in range(n_some):
            line = factor + a * m
            step[a] = step[a] / line[a] if line[a] > 0 else 0
            for b in range(a + 1, n_some):
                step[b] -= line[b] * step[a]
        for a in range(n_some - 1, -1, -1):
            line = factor + a * m
            for c in range(a + 1, n_some):
                step[a] -= line[c] * step[c]
            step[a] = step[a] / line[a] if line[a] > 0 else 0
        for a in range(n_some):
            total = self.beta[self.working[some[a]]]
            if (total + step[a] > 0) != (total > 0) and -total / step[a] < size:
                size, stopped = -total / step[a], a
        for a in range(n_some):
            total = size * step[a] if a != stopped else -self.beta[self.working[some[a]]]
            self.beta[self.working[some[a]]] += total
            for b in range(self.n_working):
                gradient[b] -= total * self.matrix[some[a] * m + b]
        return stopped >= 0

    cdef double descend_by_matrix(self, double lam, double total, double enough) noexcept nogil:
        """What `descend` does, where the working set is small."""
        cdef Py_ssize_t m = self.n_working, a, b, j, epoch, i
        cdef double shift = 0, gained, bend, change
        cdef bint polished = False
        cdef double *gradient = self.sorted
        cdef const double *line
        self.make_matrix(total)
        for i in range(self.n):
            shift += self.u[i]
        shift /= total
        self.correlations(self.working, m, self.u, gradient)
        for a in range(m):
            gradient[a] -= shift * self.slope[self.working[a]]
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
            if gained <= enough and polished:
                break
            polished = gained <= enough or epoch % POLISH == POLISH - 1
            if polished:                        # small gains may be many: they do not mean that the minimum is near
                while self.polish(lam, gradient):
                    pass
        for a in range(m):
            j = self.working[a]
            change = self.beta[j] - self.old[j]
            if change == 0:
                continue
            shift -= change * self.slope[j] / total
            self.add_to(j, change, self.d)
        return shift
