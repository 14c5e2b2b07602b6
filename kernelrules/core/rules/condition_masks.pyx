"""Masks of conditions from the sorted rows of a column, and numbers of rows of rules from masks.

A mask has a bit per row, 64 per word; `match.fill_masks` computes others.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from kernelrules.core.base.bits cimport WORD, n_bits, rows_of_word
from kernelrules.core.rules.match cimport Condition, ConditionTable
from kernelrules.core.base.status cimport NO_MEMORY

from kernelrules.core.base.status import raise_for_status

cdef enum:
    WORDS_PER_BLOCK = 256         # words combined at a time: 2 KB, which stay in the L1 cache
    RULES_BETWEEN_SIGNAL_CHECKS = 256


def fill_thresholds(ConditionTable conditions, const int64_t[::1] chosen, const int64_t[::1] below,
                    const int64_t[::1] order, Py_ssize_t n_known, uint64_t[:, ::1] masks):
    """Set bit i % 64 of masks[t, i // 64] to whether row i satisfies condition t; bits past the last row are 0.

    The chosen t are conditions on one column with one limit each, in ascending order of the limits. `order` has the
    rows by their values in this column, the n_known rows with a value first; below[e] is the number of rows at or below
    the limit of chosen[e]. From one limit to the next, only the rows between them change.
    """
    cdef Py_ssize_t n = order.shape[0], n_words = masks.shape[1], e, w, at = 0
    cdef uint64_t *lower
    cdef uint64_t *known
    cdef uint64_t *mask
    cdef const Condition *condition
    if n_words != (n + WORD - 1) // WORD or below.shape[0] != chosen.shape[0] or masks.shape[0] != conditions.n:
        raise ValueError("the shapes of the rows, the conditions and the masks do not agree")
    if n == 0:
        return
    lower = <uint64_t *> calloc(2 * n_words, sizeof(uint64_t))
    if lower == NULL:
        raise_for_status(NO_MEMORY)
    known = lower + n_words
    with nogil:
        for e in range(n_known):
            known[order[e] // WORD] |= <uint64_t> 1 << (order[e] % WORD)
        for e in range(chosen.shape[0]):
            while at < below[e]:
                lower[order[at] // WORD] |= <uint64_t> 1 << (order[at] % WORD)
                at += 1
            condition, mask = &conditions.conditions[chosen[e]], &masks[chosen[e], 0]
            for w in range(n_words):
                mask[w] = lower[w] if condition.high < INFINITY else known[w] & ~lower[w]
            if condition.missing:
                for w in range(n_words):
                    mask[w] |= ~known[w]
                mask[n_words - 1] &= rows_of_word(n_words - 1, n)
    free(lower)


cdef int64_t count_rule(const uint64_t *masks, Py_ssize_t n_words, const int64_t *ids, Py_ssize_t n_ids,
                        Py_ssize_t n) noexcept nogil:
    """Count the rows that satisfy all of the conditions."""
    cdef uint64_t holding[WORDS_PER_BLOCK]
    cdef Py_ssize_t first = 0, here, w, k
    cdef const uint64_t *mask
    cdef int64_t found = 0
    if n_ids == 0:
        return n
    while first < n_words:
        here = min(<Py_ssize_t> WORDS_PER_BLOCK, n_words - first)
        memcpy(holding, masks + ids[0] * n_words + first, here * sizeof(uint64_t))
        for k in range(1, n_ids):
            mask = masks + ids[k] * n_words + first
            for w in range(here):
                holding[w] &= mask[w]
        for w in range(here):
            found += n_bits(holding[w])
        first += here
    return found


def count_rows(const uint64_t[:, ::1] masks, const int64_t[::1] start, const int64_t[::1] ids, Py_ssize_t n,
               int64_t[::1] counts):
    """Add to counts[r] the number of rows that satisfy the conditions ids[start[r]] to ids[start[r + 1] - 1]."""
    cdef Py_ssize_t n_words = masks.shape[1], r, first = 0, n_rules = counts.shape[0]
    cdef const uint64_t *words = NULL
    cdef const int64_t *listed = NULL
    if masks.shape[0] > 0 and n_words > 0 and ids.shape[0] > 0:
        words, listed = &masks[0, 0], &ids[0]
    if start.shape[0] != n_rules + 1 or n_words != (n + WORD - 1) // WORD:
        raise ValueError("the shapes of the rules, the masks and the counts do not agree")
    while first < n_rules:
        with nogil:
            for r in range(first, min(first + RULES_BETWEEN_SIGNAL_CHECKS, n_rules)):
                counts[r] += count_rule(words, n_words, listed + start[r], start[r + 1] - start[r], n)
        first += RULES_BETWEEN_SIGNAL_CHECKS
        PyErr_CheckSignals()
