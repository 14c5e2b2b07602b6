"""What rules and lists of rules cover of a set of rows, sets being bits (bits.pxd).

Of a list, a row belongs to the first rule that covers it.
"""

from libc.stdint cimport uint8_t, uint16_t, uint64_t

from kernelrules.core.bits cimport kr_lowest, n_bits


cdef inline double weight_of(uint64_t word, const double *weights) noexcept nogil:
    """Of the rows in a word; weights begin at its first row."""
    cdef double total = 0
    while word:
        total += weights[kr_lowest(word)]
        word &= word - 1
    return total


cdef void take_matches(const uint64_t *cover, uint64_t *rest, Py_ssize_t n_words, const uint64_t *positive,
                       const double *weights, double *total, double *hit) noexcept nogil:
    """Take the rows that a rule covers from the rest, adding up their weights; cover is NULL: weigh the rest."""
    cdef Py_ssize_t n_total = 0, n_hit = 0, i
    cdef double sum_total = 0, sum_hit = 0
    cdef uint64_t here
    for i in range(n_words):
        here = rest[i] if cover == NULL else rest[i] & cover[i]
        if not here:
            continue
        if weights == NULL:
            n_total += n_bits(here)
            n_hit += n_bits(here & positive[i])
        else:
            sum_total += weight_of(here, weights + 64 * i)
            sum_hit += weight_of(here & positive[i], weights + 64 * i)
        if cover != NULL:
            rest[i] ^= here
    total[0] += n_total + sum_total
    hit[0] += n_hit + sum_hit


def pack(const uint16_t[::1] depth, Py_ssize_t least, uint64_t[::1] out):
    """The set of rows whose depth, as `Grower.depths` gives it, is at least this."""
    cdef Py_ssize_t i
    with nogil:
        out[:] = 0
        for i in range(depth.shape[0]):
            out[i // 64] |= <uint64_t> (depth[i] >= least) << (i % 64)


def unpack(const uint64_t[::1] words, uint8_t[::1] out):
    """A set as an array with 1 for each of its rows."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = (words[i // 64] >> (i % 64)) & 1


def first_matches(const uint64_t[:, ::1] covers, const Py_ssize_t[::1] order, uint64_t[::1] rest,
                  const uint64_t[::1] positive, const double[::1] weights, double[:, ::1] out):
    """Weights of all and of positive rows that belong to each rule of a list, and to none (the last line).

    Parameters
    ----------
    covers : ndarray (m, n_words) of uint64
        Rows that rules cover.
    order : ndarray (k,) of intp
        Which of these rules are in the list, in order.
    rest : ndarray (n_words,) of uint64
        Rows to look at; those that no rule covers afterwards.
    positive : ndarray (n_words,) of uint64
        Rows of the class.
    weights : ndarray (64 · n_words,) or None
        Of the rows; None is 1 for all.
    out : ndarray (k + 1, 2)
        The weights.
    """
    cdef Py_ssize_t n_rules = order.shape[0], k
    cdef const double *at = NULL if weights is None else &weights[0]
    with nogil:
        for k in range(n_rules + 1):
            out[k, 0] = out[k, 1] = 0
            take_matches(&covers[order[k], 0] if k < n_rules else NULL, &rest[0], rest.shape[0], &positive[0], at,
                         &out[k, 0], &out[k, 1])


def weights_by_depth(const uint16_t[::1] depth, const uint8_t[::1] chosen, const uint8_t[::1] positive,
                     const double[::1] weights, double[:, ::1] out):
    """Weights of all and of positive rows by depth, as `Grower.depths` gives it; only of chosen rows."""
    cdef Py_ssize_t i
    cdef double w
    with nogil:
        out[:, :] = 0
        for i in range(depth.shape[0]):
            if chosen[i]:
                w = 1 if weights is None else weights[i]
                out[depth[i], 0] += w
                out[depth[i], 1] += w * positive[i]


def deal(const uint8_t[::1] rows, const int[::1] classes, double[::1] left, double[::1] wanted,
         const double[::1] draws, uint8_t[::1] grow, uint8_t[::1] prune):
    """Deal rows to two sets: of every class so many, drawn at random, are to grow on, the others to prune on.

    Parameters
    ----------
    rows : ndarray (n,) of uint8
        1 for the rows to deal.
    classes : ndarray (n,) of int32
        Of all rows.
    left, wanted : ndarray (n_classes,)
        Rows of each class, and how many of them to grow on; both are counted down.
    draws : ndarray (n,)
        Random numbers, at least 0 and less than 1.
    grow, prune : ndarray (n,) of uint8
        Become 1 for the rows of each set.
    """
    cdef Py_ssize_t i
    cdef bint chosen
    cdef int k
    with nogil:
        for i in range(rows.shape[0]):
            grow[i] = prune[i] = 0
            if rows[i]:
                k = classes[i]
                chosen = draws[i] * left[k] < wanted[k]
                left[k] -= 1
                wanted[k] -= chosen
                grow[i], prune[i] = chosen, not chosen
