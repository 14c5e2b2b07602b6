"""The design matrix of an L1 problem over rules, column by column.

    c_ij = 1 if rule j holds for row i, otherwise 0

A rule is stored as the list of its rows, or of the other rows if those are fewer. A rule stored by its complement has
c = -1 on the list: the difference, 1 everywhere, belongs to the intercept. A list with more than n / BITS_MIN_SHARE
rows is stored as bits, one per row, so that a sum reads several rows and rules at a time (masked_sums.h).

Invariant: no two rules have the same rows or complementary rows. Every row has a random 64-bit key; rules are compared
by the sum of the keys of their rows (Zobrist hashing).
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from kernelrules.core.base.bits cimport WORD, rows_of_word
from kernelrules.core.base.growable cimport more_room
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.base.status import raise_for_status

cdef extern from "additive/masked_sums.h" nogil:
    enum:
        KR_MASKED_MAX_RULES
    void kr_masked_sums(int level, int count, const uint64_t *const *bits, const double *x, Py_ssize_t n_words,
                        double *out) noexcept
    void kr_masked_add(int level, const uint64_t *bits, Py_ssize_t n_words, double by, double *to) noexcept

cdef enum:
    BITS_MIN_SHARE = 8      # lists with more than n / 8 rows become bits: from there on, masked sums are faster


cdef void *resized(void *block, size_t n_bytes) except NULL:
    """Return the block with this size. Raises MemoryError if there is no memory; the block then stays as it is."""
    cdef void *longer = realloc(block, n_bytes)
    if longer == NULL:
        raise_for_status(NO_MEMORY)
    return longer


cdef double sum_over(const double *x, const int32_t *rows, Py_ssize_t m) noexcept nogil:
    """Σ x over the listed rows, in four partial sums, so that an addition does not wait for the previous one."""
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


cdef double dot(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(n):
        total += x[i] * y[i]
    return total


cdef void complement(const int32_t *rows, Py_ssize_t m, char *mark, Py_ssize_t n, int32_t *out) noexcept nogil:
    """Write all rows but these, ascending."""
    cdef Py_ssize_t i, k = 0
    for i in range(m):
        mark[rows[i]] = 1
    for i in range(n):
        if not mark[i]:
            out[k] = <int32_t> i
            k += 1
    for i in range(m):
        mark[rows[i]] = 0


cdef class RuleColumns:
    """The columns of the design matrix, in the order in which they were added.

    Parameters
    ----------
    keys : ndarray (n,) of uint64
        Random keys; 0 for rows that do not distinguish rules.
    """

    def __cinit__(self, const uint64_t[::1] keys):
        cdef Py_ssize_t n = keys.shape[0], i
        self.n, self.known, self.n_words, self.simd_level = n, set(), (n + WORD - 1) // WORD, simd_level()
        self.keys = <uint64_t *> malloc(n * sizeof(uint64_t))
        self.mark = <char *> calloc(n, 1)
        if self.keys == NULL or self.mark == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(n):
            self.keys[i] = keys[i]
            self.all_keys += keys[i]

    def __dealloc__(self):
        cdef Py_ssize_t j
        if self.columns != NULL:
            for j in range(self.n_columns):
                free(self.columns[j].value)
        free(self.keys)
        free(self.mark)
        free(self.columns)
        free(self.index)
        free(self.bits)

    cdef int reserve(self, Py_ssize_t n_index, Py_ssize_t n_bits) except -1:
        """Allocate one more column with `n_index` rows in its list, or `n_bits` words of bits."""
        cdef void *block
        if self.n_columns == self.column_capacity:
            self.columns = <RuleColumn *> resized(self.columns, (2 * self.n_columns + 64) * sizeof(RuleColumn))
            self.column_capacity = 2 * self.n_columns + 64
        if self.n_index + n_index > self.index_capacity:
            block = more_room(self.index, &self.index_capacity, self.n_index + n_index, sizeof(int32_t))
            if block == NULL:
                raise_for_status(NO_MEMORY)
            self.index = <int32_t *> block
        if self.n_bits + n_bits > self.bits_capacity:
            block = more_room(self.bits, &self.bits_capacity, self.n_bits + n_bits, sizeof(uint64_t))
            if block == NULL:
                raise_for_status(NO_MEMORY)
            self.bits = <uint64_t *> block
        return 0

    cdef void append(self, RuleColumn column) noexcept:
        """Add a column whose rows are in `index` or `bits` already."""
        self.columns[self.n_columns] = column
        self.n_columns += 1
        if column.by_bits:
            self.n_bits += self.n_words
        elif column.value == NULL:
            self.n_index += column.size

    cdef Py_ssize_t add_new(self, const int32_t[::1] rows, const int64_t[::1] start, const unsigned char[::1] negated,
                            const double *s, double above, int64_t[::1] added) except -1:
        """Add the rules that are new and have |Σ s| > above over their list of rows.

        The indices of their lists are written to `added`; their number is returned.
        """
        cdef Py_ssize_t m = start.shape[0] - 1, k, size, i, n_added = 0
        cdef const int32_t *at
        cdef uint64_t key
        cdef uint64_t[::1] keys = np.zeros(m, dtype=np.uint64)
        with nogil:
            for k in range(m):
                size = start[k + 1] - start[k]
                if size == 0 or size >= self.n:
                    continue
                at = &rows[start[k]]
                if fabs(sum_over(s, at, size)) > above:
                    for i in range(size):
                        keys[k] += self.keys[at[i]]
        for k in range(m):
            key = min(keys[k], self.all_keys - keys[k])
            if key != 0 and key not in self.known:
                self.known.add(key)
                self.add_rule(&rows[start[k]], start[k + 1] - start[k], negated[k])
                added[n_added] = k
                n_added += 1
        return n_added

    cdef int add_rule(self, const int32_t *rows, Py_ssize_t size, bint negated) except -1:
        cdef bint flip = 2 * size > self.n
        cdef Py_ssize_t k
        cdef uint64_t *to
        cdef RuleColumn column
        column.value, column.size, column.sign = NULL, self.n - size if flip else size, -1.0 if flip != negated else 1.0
        column.by_bits = column.size > self.n // BITS_MIN_SHARE
        column.cost = self.n if column.by_bits else column.size
        column.start = self.n_bits if column.by_bits else self.n_index
        self.reserve(0 if column.by_bits else column.size, self.n_words if column.by_bits else 0)
        if column.by_bits:
            to = self.bits + column.start
            memset(to, 0, self.n_words * sizeof(uint64_t))
            for k in range(size):
                to[rows[k] // WORD] |= <uint64_t> 1 << (rows[k] % WORD)
            if flip:
                for k in range(self.n_words):
                    to[k] = ~to[k] & rows_of_word(k, self.n)
        elif flip:
            complement(rows, size, self.mark, self.n, self.index + column.start)
        else:
            memcpy(self.index + column.start, rows, size * sizeof(int32_t))
        self.append(column)
        return 0

    cdef int add_values(self, const double[::1] values) except -1:
        """Add a numerical column."""
        cdef RuleColumn column
        self.reserve(0, 0)
        column.start, column.size, column.cost, column.sign, column.by_bits = 0, self.n, self.n, 1.0, False
        column.value = <double *> malloc(self.n * sizeof(double))
        if column.value == NULL:
            raise_for_status(NO_MEMORY)
        memcpy(column.value, &values[0], self.n * sizeof(double))
        self.append(column)
        return 0

    cdef double correlation(self, Py_ssize_t j, const double *x) noexcept nogil:
        """Σ_i x_i c_ij."""
        cdef double total
        self.correlations(&j, 1, x, &total)
        return total

    cdef void correlations(self, const Py_ssize_t *chosen, Py_ssize_t m, const double *x, double *out) noexcept nogil:
        """out[k] = Σ_i x_i c_ij for the m chosen columns j. Columns of bits are summed several at a time."""
        cdef const uint64_t *bits[KR_MASKED_MAX_RULES]
        cdef Py_ssize_t places[KR_MASKED_MAX_RULES]
        cdef double sums[KR_MASKED_MAX_RULES]
        cdef const RuleColumn *column
        cdef Py_ssize_t k, i
        cdef int n_bits = 0
        for k in range(m + 1):
            if n_bits == KR_MASKED_MAX_RULES or k == m and n_bits:
                kr_masked_sums(self.simd_level, n_bits, bits, x, self.n_words, sums)
                for i in range(n_bits):
                    out[places[i]] = self.columns[chosen[places[i]]].sign * sums[i]
                n_bits = 0
            if k == m:
                break
            column = &self.columns[chosen[k]]
            self.work_done += column.size
            if column.by_bits:
                bits[n_bits], places[n_bits] = self.bits + column.start, k
                n_bits += 1
            elif column.value != NULL:
                out[k] = dot(column.value, x, self.n)
            else:
                out[k] = column.sign * sum_over(x, self.index + column.start, column.size)

    cdef void add_multiple(self, Py_ssize_t j, double by, double *to) noexcept nogil:
        """to += by · c_j."""
        cdef const RuleColumn *column = &self.columns[j]
        cdef const int32_t *rows = self.index + column.start
        cdef Py_ssize_t i
        if column.by_bits:
            kr_masked_add(self.simd_level, self.bits + column.start, self.n_words, by * column.sign, to)
        elif column.value != NULL:
            for i in range(self.n):
                to[i] += by * column.value[i]
        else:
            by *= column.sign
            for i in range(column.size):
                to[rows[i]] += by
