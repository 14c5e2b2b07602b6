"""Scores of rows under an additive model of rules: out[i] += Σ over rules r that hold for row i of weights[r].

Rows that pass a test are bits (match.pyx); those of a rule are the words of its tests, combined.

Invariant: a row's score is one sum in the order of the rules, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint64_t

from kernelrules.core.bits cimport WORD, kr_lowest, rows_of_word

cdef enum:
    WORDS = 16          # of one task


cdef void score_words(const uint64_t *masks, Py_ssize_t n_words, Py_ssize_t first, Py_ssize_t last,
                      const int64_t *start, const int64_t *ids, Py_ssize_t n_rules, const double *weights,
                      Py_ssize_t n_scores, uint64_t rows_of_last, double *out) noexcept nogil:
    cdef Py_ssize_t r, w, k, m, row
    cdef uint64_t held
    for r in range(n_rules):
        for w in range(first, last):
            held = rows_of_last if w == n_words - 1 else ~<uint64_t> 0
            for k in range(start[r], start[r + 1]):
                held &= masks[ids[k] * n_words + w]
            while held:
                row = w * WORD + kr_lowest(held)
                held &= held - 1
                for m in range(n_scores):
                    out[row * n_scores + m] += weights[r * n_scores + m]


def add_scores(const uint64_t[:, ::1] masks, const int64_t[::1] start, const int64_t[::1] ids,
               const double[:, ::1] weights, double[:, ::1] out, int n_threads):
    """Add weights[r] to the rows of `out` that pass the tests ids[start[r]] to ids[start[r + 1] - 1], for all r."""
    cdef Py_ssize_t n = out.shape[0], n_words = (n + WORD - 1) // WORD, n_tasks = (n_words + WORDS - 1) // WORDS, t
    cdef Py_ssize_t n_rules = weights.shape[0], n_scores = weights.shape[1]
    cdef uint64_t rows_of_last = rows_of_word(n_words - 1, n)
    cdef const uint64_t *words = NULL
    cdef const int64_t *listed = NULL
    if n == 0 or n_rules == 0 or n_scores == 0:
        return
    if start.shape[0] != n_rules + 1 or masks.shape[1] != n_words or out.shape[1] != n_scores:
        raise ValueError("the shapes of the rules, the masks and the scores do not agree")
    if masks.shape[0] > 0 and ids.shape[0] > 0:
        words, listed = &masks[0, 0], &ids[0]
    for t in prange(n_tasks, num_threads=n_threads, schedule="dynamic", chunksize=1, nogil=True):
        score_words(words, n_words, t * WORDS, min((t + 1) * WORDS, n_words), &start[0], listed, n_rules,
                    &weights[0, 0], n_scores, rows_of_last, &out[0, 0])
    PyErr_CheckSignals()
