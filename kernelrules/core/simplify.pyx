"""Rules made simpler: tests dropped one after the other, as long as the rule does not get worse.

A rule is judged by the rows that it covers: by the weighted share whose class it predicts, by a pessimistic estimate of
it (C4.5's: the upper limit of the share of errors), or by the mean squared error. Each time the test goes whose removal
leaves the best rule; of equals that with more rows covered, and then the later. What differs by rounding is equal. A
rule that covers nothing has no worth, and may lose any test.

Rows are bits, 64 in a word. Invariant: what becomes of a rule depends on no other, so any number of threads gives the
same.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, fabs, pow, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.bits cimport kr_lowest, n_bits, rows_of_word
from kernelrules.core.pace cimport better_step
from kernelrules.core.status cimport NO_MEMORY

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef double _NOISE = 2.0 ** -40         # of 1, or of a mean squared error
NOISE = _NOISE                          # for rules/simplify.py

cdef struct Worth:
    double score, covered

cdef struct Judge:
    Py_ssize_t n, n_words, n_targets
    const double *weight                # NULL: 1 for every row
    const uint64_t *classes             # rows of each class; NULL: regression
    const double *targets
    double confidence, deviate          # confidence 0: the share itself


cdef double added_errors(double n, double e, double confidence, double deviate) noexcept nogil:
    """C4.5's errors beyond e of n: the upper limit of a binomial proportion, less e. Exact for e = 0, a line from there
    to e = 1, the normal approximation with a half added beyond."""
    cdef double f, at_none
    if e < 1:
        at_none = n * (1 - pow(confidence, 1 / n))
        return at_none if e == 0 else at_none + e * (added_errors(n, 1, confidence, deviate) - at_none)
    if e + 0.5 >= n:
        return max(n - e, 0)
    f = (e + 0.5) / n
    return (f + deviate * deviate / (2 * n) + deviate * sqrt(f / n - f * f / n + deviate * deviate / (4 * n * n))
            ) / (1 + deviate * deviate / n) * n - e


cdef double total(uint64_t word, Py_ssize_t first, const double *values) noexcept nogil:
    """The sum of `values` over the rows of a word, or their number."""
    cdef double found = 0
    if values == NULL:
        return n_bits(word)
    while word != 0:
        found += values[first + kr_lowest(word)]
        word &= word - 1
    return found


cdef Worth worth_of(const Judge *judge, double covered, double good) noexcept nogil:
    """Of a rule that covers so much, and so much of it well: the weight of its class, or less the losses."""
    cdef double wrong
    cdef Worth worth
    worth.covered, worth.score = covered, -INFINITY
    if covered > 0:
        worth.score = good / covered
        if judge.confidence > 0:
            wrong = max(covered - good, 0)
            worth.score = 1 - (wrong + added_errors(covered, wrong, judge.confidence, judge.deviate)) / covered
    return worth


cdef inline void add_rows(const Judge *judge, uint64_t word, Py_ssize_t w, int64_t code, const double *losses,
                          double *covered, double *good) noexcept nogil:
    """Add rows of word w to what a rule covers."""
    covered[0] += total(word, 64 * w, judge.weight)
    if judge.classes != NULL:
        good[0] += total(word & judge.classes[code * judge.n_words + w], 64 * w, judge.weight)
    else:
        good[0] -= total(word, 64 * w, losses)


cdef bint as_good(const Judge *judge, double score, double other) noexcept nogil:
    """Whether scores are equal, but for rounding."""
    return score == other or fabs(score - other) <= _NOISE * (1 if judge.classes != NULL else min(-score, -other))


cdef bint is_better(const Judge *judge, const Worth *one, const Worth *other) noexcept nogil:
    """Whether one is as good at least: a later test with as good a removal is dropped first."""
    if as_good(judge, one.score, other.score):
        return one.covered >= (1 - _NOISE) * other.covered
    return one.score > other.score


cdef void fill_losses(const Judge *judge, const double *prediction, double *losses) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef double error
    for i in range(judge.n):
        losses[i] = 0
        for k in range(judge.n_targets):
            error = judge.targets[i * judge.n_targets + k] - prediction[k]
            losses[i] += error * error
        if judge.weight != NULL:
            losses[i] *= judge.weight[i]


cdef Worth drop_tests(const Judge *judge, const uint64_t *masks, const uint64_t *all_rows, const int64_t *ids,
                      Py_ssize_t n_tests, int64_t code, unsigned char *kept, uint64_t *work,
                      const double *losses) noexcept nogil:
    """Drop tests of one rule; `work` has room for three masks.

    Without a test, a rule covers the rows that pass all tests and those that fail this one alone: rows that fail one
    test only are found once for all tests.
    """
    cdef Py_ssize_t n_words = judge.n_words, k, w, e, n_single, best_test
    cdef uint64_t *failed = work                # at least one test
    cdef uint64_t *twice = work + n_words       # at least two
    cdef int64_t *place = <int64_t *> work + 2 * n_words
    cdef uint64_t fails
    cdef const uint64_t *mask
    cdef double covered, good, more, more_good
    cdef Worth worth, best, tried
    worth.score, worth.covered = -INFINITY, 0
    for k in range(n_tests):
        kept[k] = 1
    while True:
        memset(work, 0, 2 * n_words * sizeof(uint64_t))
        for k in range(n_tests):
            if kept[k]:
                mask = masks + ids[k] * n_words
                for w in range(n_words):
                    fails = ~mask[w]
                    twice[w] |= failed[w] & fails
                    failed[w] |= fails
        covered, good, n_single = 0, 0, 0
        for w in range(n_words):
            fails = ~failed[w] & all_rows[w]
            if fails != 0:
                add_rows(judge, fails, w, code, losses, &covered, &good)
            fails = failed[w] & ~twice[w] & all_rows[w]
            if fails != 0:                      # from here on packed: the words with rows that fail one test
                failed[n_single], place[n_single] = fails, w
                n_single += 1
        worth = worth_of(judge, covered, good)
        best.score, best.covered, best_test = -INFINITY, -1, -1
        for k in range(n_tests):
            if not kept[k]:
                continue
            mask, more, more_good = masks + ids[k] * n_words, covered, good
            for e in range(n_single):
                fails = failed[e] & ~mask[place[e]]
                if fails != 0:
                    add_rows(judge, fails, place[e], code, losses, &more, &more_good)
            tried = worth_of(judge, more, more_good)
            if is_better(judge, &tried, &best):
                best, best_test = tried, k
        if best_test < 0 or (best.score < worth.score and not as_good(judge, best.score, worth.score)):
            return worth
        kept[best_test] = 0


def simplify(const uint64_t[:, ::1] masks, const int64_t[::1] start, const int64_t[::1] ids, Py_ssize_t n,
             const double[::1] weight, const uint64_t[:, ::1] classes, const int64_t[::1] codes,
             const double[:, ::1] targets, const double[:, ::1] predictions, double confidence, double deviate,
             unsigned char[::1] kept, double[::1] score, double[::1] covered, int n_threads, tick=None):
    """kept[e] = whether test e of a rule is kept, and the score and the covered weight of what becomes of the rules.

    Rule r has the tests ids[start[r]] to ids[start[r + 1] - 1], rows of `masks`. Classification gives the rows of each
    class and what the rules predict (`codes`), regression `targets` and `predictions`; `weight` may be None. A
    `confidence` above 0 asks for the pessimistic estimate, with `deviate` the normal deviate of it.
    """
    cdef Judge judge
    cdef Py_ssize_t n_rules = start.shape[0] - 1, r, w, first = 0, last, step = 16 * n_threads, room
    cdef uint64_t *work
    cdef double *losses = NULL
    cdef uint64_t *all_rows
    judge.n, judge.n_words, judge.n_targets = n, (n + 63) // 64, 0
    judge.weight, judge.classes, judge.targets = NULL, NULL, NULL
    judge.confidence, judge.deviate = confidence, deviate
    if weight is not None:
        judge.weight = &weight[0]
    if classes is not None:
        judge.classes = &classes[0, 0]
    else:
        judge.targets, judge.n_targets = &targets[0, 0], targets.shape[1]
    if (masks.shape[1] != judge.n_words or kept.shape[0] != ids.shape[0] or score.shape[0] != n_rules
            or covered.shape[0] != n_rules):
        raise ValueError("the shapes of the rules, the rows and the masks do not agree")
    if n_rules == 0:
        return
    room = 3 * judge.n_words
    work = <uint64_t *> malloc((n_threads * room + judge.n_words) * sizeof(uint64_t))
    if judge.n_targets > 0:
        losses = <double *> malloc(n_threads * n * sizeof(double))
    if work == NULL or (judge.n_targets > 0 and losses == NULL):
        free(work)
        free(losses)
        raise_for_status(NO_MEMORY)
    all_rows = work + n_threads * room
    for w in range(judge.n_words):
        all_rows[w] = rows_of_word(w, n)
    try:
        while first < n_rules:
            last = min(first + step, n_rules)
            started = perf_counter()
            for r in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=1, nogil=True):
                simplify_rule(&judge, &masks[0, 0] if masks.shape[0] else NULL, all_rows, &start[0],
                              &ids[0] if ids.shape[0] else NULL, r, codes[r] if judge.classes != NULL else 0,
                              &predictions[r, 0] if judge.n_targets > 0 else NULL, &kept[0] if kept.shape[0] else NULL,
                              work + threadid() * room, losses + threadid() * n if judge.n_targets > 0 else NULL,
                              &score[0], &covered[0])
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, n_rules)
    finally:
        free(work)
        free(losses)


cdef void simplify_rule(const Judge *judge, const uint64_t *masks, const uint64_t *all_rows, const int64_t *start,
                        const int64_t *ids, Py_ssize_t r, int64_t code, const double *prediction, unsigned char *kept,
                        uint64_t *work, double *losses, double *score, double *covered) noexcept nogil:
    cdef Worth worth
    if prediction != NULL:
        fill_losses(judge, prediction, losses)
    worth = drop_tests(judge, masks, all_rows, ids + start[r], start[r + 1] - start[r], code, kept + start[r], work,
                       losses)
    score[r], covered[r] = worth.score, worth.covered
