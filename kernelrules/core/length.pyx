"""Description lengths, in bits, of rules and of data given rules (Cohen 1995, after Quinlan 1995).

    theory    ½ (|k| + S(m, k, k/m)): k conditions out of the m that there are; |k| the bits that send a whole number
    data      log2 (n + 1) + S(covered, fp, ·) + S(uncovered, fn, ·): which rows are wrong
    S(n, k, p) = -k log2 p - (n - k) log2 (1 - p): which k of n things, when each is expected with probability p

The larger of the two sets of rows uses the errors that are expected there (all of them times the class's share, for
uncovered rows times the rest), the smaller its own rate. Weights stand for numbers of rows. Weka's JRip has the same.
"""

from libc.math cimport log2
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from kernelrules.core.cover cimport take_matches


cdef double subset_length(double n, double k, double p) noexcept nogil:
    cdef double length = 0
    if p >= 1:                      # only estimates reach it; the rate itself stands in
        p = k / n
    if k > 0 and p > 0:
        length -= k * log2(p)
    if p < 1:
        length -= (n - k) * log2(1 - p)
    return length


cdef double data_length(double share, double covered, double uncovered, double false_positive,
                        double false_negative) noexcept nogil:
    cdef double errors = false_positive + false_negative, length = log2(covered + uncovered + 1)
    if covered > uncovered:
        length += subset_length(covered, false_positive, share * errors / covered)
        if uncovered > 0:
            length += subset_length(uncovered, false_negative, false_negative / uncovered)
        return length
    if covered > 0:
        length += subset_length(covered, false_positive, false_positive / covered)
    if uncovered > 0:
        length += subset_length(uncovered, false_negative, (1 - share) * errors / uncovered)
    return length


def subset_bits(double n, double k, double p):
    """Bits that say which k of n things are meant, each expected with probability p."""
    return subset_length(n, k, p)


def data_bits(double share, double covered, double uncovered, double false_positive, double false_negative):
    """Bits that say which rows a list of rules gets wrong: of the covered, and of the uncovered rows."""
    return data_length(share, covered, uncovered, false_positive, false_negative)


def theory_bits(Py_ssize_t n_conditions, Py_ssize_t n_tests):
    """Bits that say which conditions a rule has, of those that there are."""
    cdef double size
    if n_conditions == 0:
        return 0.0
    size = log2(n_conditions)
    if n_conditions > 1:
        size += 2 * log2(size)
    return 0.5 * (size + subset_length(n_tests, n_conditions, <double> n_conditions / n_tests))


cdef struct Sums:                   # of a list of rules, on some rows
    double covered
    double hit                      # the positive ones among them
    double bits                     # of the rules


cdef double list_length(const uint64_t *covers, const double *bits, const uint8_t *active, Py_ssize_t first,
                        Py_ssize_t last, Sums sums, uint64_t *rest, Py_ssize_t n_words, const uint64_t *positive,
                        const double *weights, double share, Sums *out) noexcept nogil:
    """Length of the list that goes on, after rules of these sums, with active ones from first to last."""
    cdef double uncovered = 0, missed = 0
    cdef Py_ssize_t k
    for k in range(first, last):
        if active[k]:
            take_matches(covers + k * n_words, rest, n_words, positive, weights, &sums.covered, &sums.hit)
            sums.bits += bits[k]
    if out != NULL:
        out[0] = sums
    take_matches(NULL, rest, n_words, positive, weights, &uncovered, &missed)
    return sums.bits + data_length(share, sums.covered, uncovered, sums.covered - sums.hit, missed)


def shorten(const uint64_t[:, ::1] covers, const double[::1] bits, Py_ssize_t kept, const uint64_t[::1] rows,
            const uint64_t[::1] positive, const double[::1] weights, double share, uint8_t[::1] active):
    """The length of a list after rules that do not pay were dropped, one after the other from the last to `kept`.

    Parameters
    ----------
    covers : ndarray (m, n_words) of uint64
        Rows that each rule covers.
    bits : ndarray (m,)
        Lengths of the rules.
    kept : int
        The first so many rules stay.
    rows, positive : ndarray (n_words,) of uint64
        Rows to look at, and rows of the class.
    weights : ndarray (64 · n_words,) or None
        Of the rows; None is 1 for all.
    share : float
        Of the class, among it and those that are learned after it.
    active : ndarray (m,) of uint8
        Becomes 1 for the rules that stay.

    Returns
    -------
    float
        Bits.
    """
    cdef Py_ssize_t m = covers.shape[0], n_words = rows.shape[0], place
    cdef size_t n_bytes = n_words * sizeof(uint64_t)
    cdef uint64_t *start = <uint64_t *> malloc(2 * n_bytes + 1)
    cdef uint64_t *rest = start + n_words
    cdef const uint64_t *covers_at = &covers[0, 0] if m else NULL
    cdef const double *bits_at = &bits[0] if m else NULL
    cdef const double *weights_at = NULL if weights is None else &weights[0]
    cdef uint8_t *active_at = &active[0] if m else NULL
    cdef Sums sums
    cdef double length, without
    if start == NULL:
        raise MemoryError
    with nogil:
        sums.covered = sums.hit = sums.bits = 0
        for place in range(m):
            active[place] = 1
        memcpy(start, &rows[0], n_bytes)
        list_length(covers_at, bits_at, active_at, 0, kept, sums, start, n_words, &positive[0], weights_at, share,
                    &sums)
        memcpy(rest, start, n_bytes)
        length = list_length(covers_at, bits_at, active_at, kept, m, sums, rest, n_words, &positive[0], weights_at,
                             share, NULL)
        for place in range(m - 1, kept - 1, -1):
            active[place] = 0
            memcpy(rest, start, n_bytes)
            without = list_length(covers_at, bits_at, active_at, kept, m, sums, rest, n_words, &positive[0], weights_at,
                                  share, NULL)
            if without <= length:
                length = without
            else:
                active[place] = 1
    free(start)
    return length
