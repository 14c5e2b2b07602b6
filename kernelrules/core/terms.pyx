"""Columns of an L1 problem over rules: a rule is the list of its rows, or of the others where these are fewer.

    c = 1 on the list, for a rule that is kept by the others -1; the difference, 1 everywhere, goes to the intercept

A list that has many of the rows is kept as bits, one a row: sums over these take several rows and rules at a time.

Invariant: no rule has the same rows as another, or exactly the others. Rows have random keys, and the sums of these are
compared.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from kernelrules.core.lists cimport more_room
from kernelrules.core.machine cimport simd_level
from kernelrules.core.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.status import raise_for_status

cdef extern from "masked.h" nogil:
    enum:
        KR_MASKED_TOGETHER
    void kr_masked_sums(int level, int count, const uint64_t *const *bits, const double *x, Py_ssize_t n_words,
                        double *out) noexcept
    void kr_masked_add(int level, const uint64_t *bits, Py_ssize_t n_words, double by, double *to) noexcept

cdef enum:
    MANY = 8                # a list with more than one row in so many is kept as bits


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


cdef class Terms:
    """The columns, their coefficients, and what is known of them."""

    def __cinit__(self, const double[::1] y, const double[::1] weights, bint logistic, const uint64_t[::1] keys):
        cdef Py_ssize_t n = y.shape[0], i
        self.n, self.known, self.n_words, self.level = n, set(), (n + 63) // 64, simd_level()
        if weights.shape[0] != n or keys.shape[0] != n or n == 0:
            raise ValueError("targets, weights and keys differ in length")
        self.keys = <uint64_t *> malloc(n * sizeof(uint64_t))
        self.mark = <char *> calloc(n, 1)
        if self.keys == NULL or self.mark == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(n):
            self.keys[i] = keys[i]
            self.all_keys += keys[i]

    def __dealloc__(self):
        cdef Py_ssize_t j
        if self.terms != NULL:
            for j in range(self.n_terms):
                free(self.terms[j].value)
        free(self.keys)
        free(self.mark)
        free(self.terms)
        free(self.index)
        free(self.bits)
        free(self.beta)
        free(self.working)

    cdef void refresh(self) noexcept nogil:
        """Bring s up to date."""
        pass

    cdef int make_room(self, Py_ssize_t n_terms, Py_ssize_t n_index, Py_ssize_t n_bits) except -1:
        """For so many more."""
        cdef Py_ssize_t most, k
        cdef void *block
        cdef double *numbers
        if self.n_terms + n_terms > self.room:
            most = 2 * (self.n_terms + n_terms) + 64
            block = realloc(self.terms, most * sizeof(Term))
            if block == NULL:
                raise_for_status(NO_MEMORY)
            self.terms = <Term *> block
            block = realloc(self.working, most * sizeof(Py_ssize_t))
            if block == NULL:
                raise_for_status(NO_MEMORY)
            self.working = <Py_ssize_t *> block
            numbers = <double *> calloc(7 * most, sizeof(double))
            if numbers == NULL:
                raise_for_status(NO_MEMORY)
            for k in range(7):
                if self.n_terms:
                    memcpy(numbers + k * most, self.beta + k * self.room, self.n_terms * sizeof(double))
            free(self.beta)
            self.beta, self.old, self.gradient = numbers, numbers + most, numbers + 2 * most
            self.looked, self.slope = numbers + 3 * most, numbers + 4 * most
            self.curvature, self.sorted = numbers + 5 * most, numbers + 6 * most
            self.room = most
        if self.n_index + n_index > self.index_room:
            block = more_room(self.index, &self.index_room, self.n_index + n_index, sizeof(int32_t))
            if block == NULL:
                raise_for_status(NO_MEMORY)
            self.index = <int32_t *> block
        if self.n_bits + n_bits > self.bits_room:
            block = more_room(self.bits, &self.bits_room, self.n_bits + n_bits, sizeof(uint64_t))
            if block == NULL:
                raise_for_status(NO_MEMORY)
            self.bits = <uint64_t *> block
        return 0

    cdef int append(self, Term term) except -1:
        """A column, whose rows are in the index or the bits already."""
        cdef Py_ssize_t j = self.n_terms
        self.terms[j] = term
        self.beta[j] = self.old[j] = self.gradient[j] = self.slope[j] = self.curvature[j] = 0
        self.looked[j] = -1
        self.n_terms += 1
        if term.by_bits:
            self.n_bits += self.n_words
        elif term.value == NULL:
            self.n_index += term.size
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
        cdef uint64_t key
        found, sums = np.empty(m, dtype=np.int64), np.zeros(m, dtype=np.uint64)
        cdef int64_t[::1] numbers = found
        cdef uint64_t[::1] keys = sums
        with nogil:
            self.refresh()
            for k in range(m):
                size = start[k + 1] - start[k]
                if size == 0 or size >= self.n:
                    continue
                at = &rows[start[k]]
                if fabs(sum_over(self.s, at, size)) > above:
                    for i in range(size):
                        keys[k] += self.keys[at[i]]
        for k in range(m):
            key = min(keys[k], self.all_keys - keys[k])
            if key != 0 and key not in self.known:
                self.known.add(key)
                self.add_rule(&rows[start[k]], start[k + 1] - start[k], negated[k])
                numbers[n_found] = k
                n_found += 1
        return found[:n_found]

    cdef int add_rule(self, const int32_t *rows, Py_ssize_t size, bint negated) except -1:
        cdef bint flip = 2 * size > self.n
        cdef Py_ssize_t k
        cdef uint64_t *to
        cdef Term term
        term.value, term.size, term.sign = NULL, self.n - size if flip else size, -1.0 if flip != negated else 1.0
        term.by_bits = term.size > self.n // MANY
        term.cost = self.n if term.by_bits else term.size
        term.start = self.n_bits if term.by_bits else self.n_index
        self.make_room(1, 0 if term.by_bits else term.size, self.n_words if term.by_bits else 0)
        if term.by_bits:
            to = self.bits + term.start
            memset(to, 0, self.n_words * sizeof(uint64_t))
            for k in range(size):
                to[rows[k] >> 6] |= <uint64_t> 1 << (rows[k] & 63)
            if flip:
                for k in range(self.n_words):
                    to[k] = ~to[k]
                if self.n & 63:
                    to[self.n_words - 1] &= (<uint64_t> 1 << (self.n & 63)) - 1
        elif flip:
            complement(rows, size, self.mark, self.n, self.index + term.start)
        else:
            memcpy(self.index + term.start, rows, size * sizeof(int32_t))
        return self.append(term)

    def add_values(self, const double[::1] values):
        """Add a column that is no rule."""
        cdef Term term
        self.make_room(1, 0, 0)
        term.start, term.size, term.cost, term.sign, term.by_bits = 0, self.n, self.n, 1.0, False
        term.value = <double *> malloc(self.n * sizeof(double))
        if term.value == NULL:
            raise_for_status(NO_MEMORY)
        memcpy(term.value, &values[0], self.n * sizeof(double))
        self.append(term)

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

    cdef double correlation(self, Py_ssize_t j, const double *x) noexcept nogil:
        """Σ_i x_i c_ij."""
        cdef double total
        self.correlations(&j, 1, x, &total)
        return total

    cdef void correlations(self, const Py_ssize_t *some, Py_ssize_t m, const double *x, double *out) noexcept nogil:
        """Σ_i x_i c_ij of some columns."""
        cdef const uint64_t *bits[KR_MASKED_TOGETHER]
        cdef Py_ssize_t places[KR_MASKED_TOGETHER]
        cdef double sums[KR_MASKED_TOGETHER]
        cdef const Term *term
        cdef Py_ssize_t k, i
        cdef int n_bits = 0
        for k in range(m + 1):
            if n_bits == KR_MASKED_TOGETHER or k == m and n_bits:
                kr_masked_sums(self.level, n_bits, bits, x, self.n_words, sums)
                for i in range(n_bits):
                    out[places[i]] = self.terms[some[places[i]]].sign * sums[i]
                n_bits = 0
            if k == m:
                break
            term = &self.terms[some[k]]
            self.work_done += term.size
            if term.by_bits:
                bits[n_bits], places[n_bits] = self.bits + term.start, k
                n_bits += 1
            elif term.value != NULL:
                out[k] = product(term.value, x, self.n)
            else:
                out[k] = term.sign * sum_over(x, self.index + term.start, term.size)

    cdef void add_to(self, Py_ssize_t j, double by, double *to) noexcept nogil:
        """to += by · c_j."""
        cdef const Term *term = &self.terms[j]
        cdef const int32_t *rows = self.index + term.start
        cdef Py_ssize_t i
        if term.by_bits:
            kr_masked_add(self.level, self.bits + term.start, self.n_words, by * term.sign, to)
        elif term.value != NULL:
            for i in range(self.n):
                to[i] += by * term.value[i]
        else:
            by *= term.sign
            for i in range(term.size):
                to[rows[i]] += by
