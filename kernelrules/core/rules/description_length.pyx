"""Description lengths, in bits, of rules and of their exceptions, by the minimum description length principle [1]_.

    theory       ½ (|k| + S(m, k, k/m)): k of the m possible conditions; |k| bits encode an integer
    exceptions   log2 (n + 1) + S(covered, fp, ·) + S(uncovered, fn, ·): which rows are wrong
    S(n, k, p) = -k log2 p - (n - k) log2 (1 - p): which k of n elements, each expected with probability p

This is the encoding of [2]_ in RIPPER [3]_, as in Weka's JRip. For the larger of the two sets of rows, p comes from the
expected errors (all errors times the class's share; for uncovered rows times one minus the share); for the smaller set
it is the observed rate. Weights count as numbers of rows.

References
----------
.. [1] J. Rissanen, "Modeling by shortest data description", Automatica 14(5), 1978.
.. [2] J. R. Quinlan, "MDL and categorical theories (continued)", ICML 1995.
.. [3] W. W. Cohen, "Fast effective rule induction", ICML 1995.
"""

from libc.math cimport log2
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from kernelrules.core.rules.cover cimport take_covered
from kernelrules.core.base.status cimport NO_MEMORY

from kernelrules.core.base.status import raise_for_status


cdef double subset_length(double n, double k, double p) noexcept nogil:
    cdef double length = 0
    if p >= 1:                      # only an expected rate can be that large: use the observed one
        p = k / n
    if k > 0 and p > 0:
        length -= k * log2(p)
    if p < 1:
        length -= (n - k) * log2(1 - p)
    return length


cdef double exception_length(double share, double covered, double uncovered, double false_positive,
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
    """Return the bits that encode which k of n elements are chosen, each with probability p; for tests."""
    return subset_length(n, k, p)


def exception_bits(double share, double covered, double uncovered, double false_positive, double false_negative):
    """Return the bits that encode which covered and uncovered rows a rule list gets wrong; for tests."""
    return exception_length(share, covered, uncovered, false_positive, false_negative)


def theory_bits(Py_ssize_t n_conditions, Py_ssize_t n_possible):
    """Return the bits that encode which of `n_possible` possible conditions a rule has."""
    cdef double size
    if n_conditions == 0:
        return 0.0
    size = log2(n_conditions)
    if n_conditions > 1:
        size += 2 * log2(size)
    return 0.5 * (size + subset_length(n_possible, n_conditions, <double> n_conditions / n_possible))


cdef struct ListSums:       # sums over the rules of a list
    double covered          # weight of the rows that it covers
    double true_positive    # weight of the positive ones among them
    double bits             # length of the rules


cdef struct CoveredLists:   # the rules and rows from which lists are made
    const uint64_t *covers  # (m, n_words) rows that each rule covers
    const double *bits      # length of each rule
    const uint64_t *positive
    const double *weights
    Py_ssize_t n_words
    double share


cdef void add_rule(const CoveredLists *lists, Py_ssize_t k, ListSums *sums, uint64_t *rest) noexcept nogil:
    """Append rule k to the list."""
    take_covered(lists.covers + k * lists.n_words, rest, lists.n_words, lists.positive, lists.weights, &sums.covered,
                 &sums.true_positive)
    sums.bits += lists.bits[k]


cdef double list_length(const CoveredLists *lists, const ListSums *sums, uint64_t *rest) noexcept nogil:
    """Return the length of a list with these sums, which leaves `rest` uncovered."""
    cdef double uncovered = 0, missed = 0
    take_covered(NULL, rest, lists.n_words, lists.positive, lists.weights, &uncovered, &missed)
    return sums.bits + exception_length(lists.share, sums.covered, uncovered, sums.covered - sums.true_positive, missed)


cdef double drop_rules_from_last(const CoveredLists *lists, Py_ssize_t m, Py_ssize_t kept, uint64_t *before,
                                 ListSums *sums, uint64_t *rest, uint8_t *active) noexcept nogil:
    """Drop the rules, from the last to `kept`, without which the list is not longer; return its length.

    before[k - kept] and sums[k - kept] are those of the list of rules 0 to k - 1; the first ones must be set.
    """
    cdef Py_ssize_t n_words = lists.n_words, place, k
    cdef size_t n_bytes = n_words * sizeof(uint64_t)
    cdef double length, without
    cdef ListSums here
    for place in range(kept, m):
        k = place - kept
        active[place] = 1
        memcpy(before + (k + 1) * n_words, before + k * n_words, n_bytes)
        sums[k + 1] = sums[k]
        add_rule(lists, place, sums + k + 1, before + (k + 1) * n_words)
    length = list_length(lists, sums + m - kept, before + (m - kept) * n_words)
    for place in range(m - 1, kept - 1, -1):
        here = sums[place - kept]
        memcpy(rest, before + (place - kept) * n_words, n_bytes)
        for k in range(place + 1, m):
            if active[k]:
                add_rule(lists, k, &here, rest)
        without = list_length(lists, &here, rest)
        if without <= length:
            length = without
            active[place] = 0
    return length


def drop_costly_rules(const uint64_t[:, ::1] covers, const double[::1] bits, Py_ssize_t kept, const uint64_t[::1] rows,
                      const uint64_t[::1] positive, const double[::1] weights, double share, uint8_t[::1] active):
    """Drop the rules without which the list is not longer, one after the other from the last to `kept`.

    Parameters
    ----------
    covers : ndarray (m, n_words) of uint64
        Rows that each rule covers.
    bits : ndarray (m,)
        Lengths of the rules.
    kept : int
        Number of rules at the beginning that stay.
    rows, positive : ndarray (n_words,) of uint64
        Rows to count, and rows of the class.
    weights : ndarray (64 · n_words,) or None
        Sample weights; None for 1.
    share : float
        Share of the class, among it and the classes that are learned after it.
    active : ndarray (m,) of uint8
        Set to 1 for the rules that stay, to 0 for the others.

    Returns
    -------
    float
        Length of the list in bits.
    """
    cdef Py_ssize_t m = covers.shape[0], n_words = rows.shape[0], place
    cdef uint64_t *before = <uint64_t *> malloc((m - kept + 2) * n_words * sizeof(uint64_t))
    cdef ListSums *sums = <ListSums *> malloc((m - kept + 1) * sizeof(ListSums))
    cdef uint8_t *active_at = &active[0] if m else NULL
    cdef CoveredLists lists
    cdef double length = 0
    lists.covers = &covers[0, 0] if m else NULL
    lists.bits = &bits[0] if m else NULL
    lists.positive, lists.n_words, lists.share = &positive[0], n_words, share
    lists.weights = NULL if weights is None else &weights[0]
    if before != NULL and sums != NULL:
        with nogil:
            memcpy(before, &rows[0], n_words * sizeof(uint64_t))
            sums.covered = sums.true_positive = sums.bits = 0
            for place in range(kept):
                active[place] = 1
                add_rule(&lists, place, sums, before)
            length = drop_rules_from_last(&lists, m, kept, before, sums, before + (m - kept + 1) * n_words, active_at)
    free(before)
    free(sums)
    if before == NULL or sums == NULL:
        raise_for_status(NO_MEMORY)
    return length
