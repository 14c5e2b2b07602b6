"""Scores of rows under an additive model: out[i] += Σ weights[r] over the rules r that hold for row i.

The rows that satisfy a condition are bits (core/rules/match.pyx); those of a rule are the conjunction of these words.

Invariant: a row's score is one sum in the order of the rules, so that any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

from kernelrules.core.base.bits cimport WORD, kr_lowest, rows_of_word
from kernelrules.core.base.team cimport run_team

cdef enum:
    WORDS_PER_TASK = 16


cdef struct ScoreTask:      # rule r has the conditions ids[start[r]] to ids[start[r + 1] - 1]
    const uint64_t *masks
    Py_ssize_t n_words
    const int64_t *start
    const int64_t *ids
    Py_ssize_t n_rules
    const double *weights
    Py_ssize_t n_scores
    uint64_t last_word_rows
    double *out


cdef void score_words(const ScoreTask *s, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Py_ssize_t r, w, k, m, row
    cdef uint64_t holds
    for r in range(s.n_rules):
        for w in range(first, last):
            holds = s.last_word_rows if w == s.n_words - 1 else ~<uint64_t> 0
            for k in range(s.start[r], s.start[r + 1]):
                holds &= s.masks[s.ids[k] * s.n_words + w]
            while holds:
                row = w * WORD + kr_lowest(holds)
                holds &= holds - 1
                for m in range(s.n_scores):
                    s.out[row * s.n_scores + m] += s.weights[r * s.n_scores + m]


cdef void run_score_tasks(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const ScoreTask *task = <const ScoreTask *> context
    cdef Py_ssize_t t
    for t in range(first, last):
        score_words(task, t * WORDS_PER_TASK, min((t + 1) * WORDS_PER_TASK, task.n_words))


def add_scores(const uint64_t[:, ::1] masks, const int64_t[::1] start, const int64_t[::1] ids,
               const double[:, ::1] weights, double[:, ::1] out, int n_threads):
    """Add weights[r] to the rows of `out` for which rule r holds, for all rules r."""
    cdef Py_ssize_t n = out.shape[0], n_words = (n + WORD - 1) // WORD
    cdef Py_ssize_t n_tasks = (n_words + WORDS_PER_TASK - 1) // WORDS_PER_TASK
    cdef Py_ssize_t n_rules = weights.shape[0], n_scores = weights.shape[1]
    cdef ScoreTask task
    if n == 0 or n_rules == 0 or n_scores == 0:
        return
    if start.shape[0] != n_rules + 1 or masks.shape[1] != n_words or out.shape[1] != n_scores:
        raise ValueError("the shapes of the rules, the masks and the scores do not agree")
    task.masks, task.ids, task.start = NULL, NULL, &start[0]
    if masks.shape[0] > 0 and ids.shape[0] > 0:
        task.masks, task.ids = &masks[0, 0], &ids[0]
    task.n_words, task.last_word_rows = n_words, rows_of_word(n_words - 1, n)
    task.weights, task.n_rules, task.n_scores = &weights[0, 0], n_rules, n_scores
    task.out = &out[0, 0]
    with nogil:
        run_team(0, n_tasks, 1, n_threads, run_score_tasks, &task)
    PyErr_CheckSignals()
