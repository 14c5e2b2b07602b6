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
from kernelrules.core.status cimport NO_MEMORY

from kernelrules.core.status import raise_for_status


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
    """Bits that say which k of n things are meant, each expected with probability p; for tests."""
    return subset_length(n, k, p)


def data_bits(double share, double covered, double uncovered, double false_positive, double false_negative):
    """Bits that say which rows a list of rules gets wrong: of the covered, and of the uncovered rows; for tests."""
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


cdef struct Sums:                   # of a list of rules
    double covered
    double hit                      # the positive ones among them
    double bits                     # of the rules


cdef struct Lists:                  # what lists are made of
    const uint64_t *covers
    const double *bits
    const uint64_t *positive
    const double *weights
    Py_ssize_t n_words
    double share


cdef void add_rule(const Lists *lists, Py_ssize_t k, Sums *sums, uint64_t *rest) noexcept nogil:
    """The list goes on with rule k."""
    take_matches(lists.covers + k * lists.n_words, rest, lists.n_words, lists.positive, lists.weights, &sums.covered,
                 &sums.hit)
    sums.bits += lists.bits[k]


cdef double length_of(const Lists *lists, const Sums *sums, uint64_t *rest) noexcept nogil:
    """Length of a list of these sums, which leaves this rest."""
    cdef double uncovered = 0, missed = 0
    take_matches(NULL, rest, lists.n_words, lists.positive, lists.weights, &uncovered, &missed)
    return sums.bits + data_length(lists.share, sums.covered, uncovered, sums.covered - sums.hit, missed)


cdef double drop_rules(const Lists *lists, Py_ssize_t m, Py_ssize_t kept, uint64_t *before, Sums *sums, uint64_t *rest,
                       uint8_t *active) noexcept nogil:
    """Length after rules from the last to `kept` were dropped where that is not longer.

    before[k - kept] and sums[k - kept] are of the list of rules 0 to k - 1. Those of the first are given.
    """
    cdef Py_ssize_t n_words = lists.n_words, place, k
    cdef size_t n_bytes = n_words * sizeof(uint64_t)
    cdef double length, without
    cdef Sums here
    for place in range(kept, m):
        k = place - kept
        active[place] = 1
        memcpy(before + (k + 1) * n_words, before + k * n_words, n_bytes)
        sums[k + 1] = sums[k]
        add_rule(lists, place, sums + k + 1, before + (k + 1) * n_words)
    length = length_of(lists, sums + m - kept, before + (m - kept) * n_words)
    for place in range(m - 1, kept - 1, -1):
        here = sums[place - kept]
        memcpy(rest, before + (place - kept) * n_words, n_bytes)
        for k in range(place + 1, m):
            if active[k]:
                add_rule(lists, k, &here, rest)
        without = length_of(lists, &here, rest)
        if without <= length:
            length = without
            active[place] = 0
    return length


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
    cdef uint64_t *before = <uint64_t *> malloc((m - kept + 2) * n_words * sizeof(uint64_t))
    cdef Sums *sums = <Sums *> malloc((m - kept + 1) * sizeof(Sums))
    cdef uint8_t *active_at = &active[0] if m else NULL
    cdef Lists lists
    cdef double length = 0
    lists.covers = &covers[0, 0] if m else NULL
    lists.bits = &bits[0] if m else NULL
    lists.positive, lists.n_words, lists.share = &positive[0], n_words, share
    lists.weights = NULL if weights is None else &weights[0]
    if before != NULL and sums != NULL:
        with nogil:
            memcpy(before, &rows[0], n_words * sizeof(uint64_t))
            sums.covered = sums.hit = sums.bits = 0
            for place in range(kept):
                active[place] = 1
                add_rule(&lists, place, sums, before)
            length = drop_rules(&lists, m, kept, before, sums, before + (m - kept + 1) * n_words, active_at)
    free(before)
    free(sums)
    if before == NULL or sums == NULL:
        raise_for_status(NO_MEMORY)
    return length
