"""Rows that rules and lists of rules cover; sets of rows are bits (core/base/bits.pxd).

In a list, a row belongs to the first rule that covers it.
"""

from libc.stdint cimport uint8_t, uint16_t, uint64_t

from kernelrules.core.base.bits cimport kr_lowest, n_bits


cdef inline double word_weight(uint64_t word, const double *weights) noexcept nogil:
    """Return the weight of the rows in a word; `weights` begins at its first row."""
    cdef double total = 0
    while word:
        total += weights[kr_lowest(word)]
        word &= word - 1
    return total


cdef void take_covered(const uint64_t *cover, uint64_t *rest, Py_ssize_t n_words, const uint64_t *positive,
                       const double *weights, double *total, double *true_positive) noexcept nogil:
    """Remove the rows that a rule covers from `rest`, and add their weights to `total` and `true_positive`.

    If `cover` is NULL, the weights of all of `rest` are added.
    """
    cdef Py_ssize_t n_total = 0, n_true = 0, i
    cdef double sum_total = 0, sum_true = 0
    cdef uint64_t here
    for i in range(n_words):
        here = rest[i] if cover == NULL else rest[i] & cover[i]
        if not here:
            continue
        if weights == NULL:
            n_total += n_bits(here)
            n_true += n_bits(here & positive[i])
        else:
            sum_total += word_weight(here, weights + 64 * i)
            sum_true += word_weight(here & positive[i], weights + 64 * i)
        if cover != NULL:
            rest[i] ^= here
    total[0] += n_total + sum_total
    true_positive[0] += n_true + sum_true


def pack_at_least(const uint16_t[::1] depth, Py_ssize_t least, uint64_t[::1] out):
    """Set `out` to the set of rows whose depth (`RuleGrower.depths`) is at least `least`."""
    cdef Py_ssize_t i
    with nogil:
        out[:] = 0
        for i in range(depth.shape[0]):
            out[i // 64] |= <uint64_t> (depth[i] >= least) << (i % 64)


def unpack(const uint64_t[::1] words, uint8_t[::1] out):
    """Set `out` to 1 for each row of a set, to 0 for the others."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = (words[i // 64] >> (i % 64)) & 1


def first_rule_weights(const uint64_t[:, ::1] covers, const Py_ssize_t[::1] order, uint64_t[::1] rest,
                       const uint64_t[::1] positive, const double[::1] weights, double[:, ::1] out):
    """Compute the weights of all and of positive rows that belong to each rule of a list, and last to none.

    Parameters
    ----------
    covers : ndarray (m, n_words) of uint64
        Rows that each rule covers.
    order : ndarray (k,) of intp
        The rules of the list, in order.
    rest : ndarray (n_words,) of uint64
        Rows to count; on return, those that no rule covers.
    positive : ndarray (n_words,) of uint64
        Rows of the class.
    weights : ndarray (64 · n_words,) or None
        Sample weights; None for 1.
    out : ndarray (k + 1, 2)
        The result.
    """
    cdef Py_ssize_t n_rules = order.shape[0], k
    cdef const double *at = NULL if weights is None else &weights[0]
    with nogil:
        for k in range(n_rules + 1):
            out[k, 0] = out[k, 1] = 0
            take_covered(&covers[order[k], 0] if k < n_rules else NULL, &rest[0], rest.shape[0], &positive[0], at,
                         &out[k, 0], &out[k, 1])


def weights_by_depth(const uint16_t[::1] depth, const uint8_t[::1] chosen, const uint8_t[::1] positive,
                     const double[::1] weights, double[:, ::1] out):
    """Compute the weights of all and of positive chosen rows by depth (`RuleGrower.depths`)."""
    cdef Py_ssize_t i
    cdef double w
    with nogil:
        out[:, :] = 0
        for i in range(depth.shape[0]):
            if chosen[i]:
                w = 1 if weights is None else weights[i]
                out[depth[i], 0] += w
                out[depth[i], 1] += w * positive[i]


def split_rows(const uint8_t[::1] rows, const int[::1] classes, double[::1] left, double[::1] n_grow,
               const double[::1] draws, uint8_t[::1] grow, uint8_t[::1] prune):
    """Split rows at random into a growing set and a pruning set, stratified by class.

    Parameters
    ----------
    rows : ndarray (n,) of uint8
        1 for the rows to split.
    classes : ndarray (n,) of int32
        Class of each row.
    left, n_grow : ndarray (n_classes,)
        Rows of each class, and how many of them to grow on; both are counted down to 0.
    draws : ndarray (n,)
        Random numbers in [0, 1).
    grow, prune : ndarray (n,) of uint8
        Set to 1 for the rows of each set.
    """
    cdef Py_ssize_t i
    cdef bint chosen
    cdef int k
    with nogil:
        for i in range(rows.shape[0]):
            grow[i] = prune[i] = 0
            if rows[i]:
                k = classes[i]
                chosen = draws[i] * left[k] < n_grow[k]
                left[k] -= 1
                n_grow[k] -= chosen
                grow[i], prune[i] = chosen, not chosen
