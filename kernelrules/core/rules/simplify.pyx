"""Simplification of rules: conditions are dropped one after the other, as long as the rule does not get worse.

The score of a rule is, over the rows that it covers, the weighted share of its class, or one minus C4.5's pessimistic
error rate [1]_, or minus the mean squared error. In each step the condition is dropped whose removal leaves the rule
with the highest score; of ties the one with the larger covered weight, then the later one. Scores that differ by
rounding are equal. A rule that covers no row has the score -infinity, and may lose any condition.

Sets of rows are bits, 64 per word.

Invariant: a simplified rule depends on no other rule, so that any number of threads gives the same result.

References
----------
.. [1] J. R. Quinlan, "C4.5: Programs for Machine Learning", chapter 5, Morgan Kaufmann, 1993.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs, pow, sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.base.bits cimport kr_lowest, n_bits, rows_of_word
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.base.team cimport run_team

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef double _ROUNDING_RTOL = 2.0 ** -40     # a smaller difference, relative to 1 or a mean squared error, is rounding
ROUNDING_RTOL = _ROUNDING_RTOL              # for rules/simplify.py


cdef struct RuleScore:
    double value, covered


cdef struct ScoringRows:        # rows by which rules are scored; pointers are borrowed
    Py_ssize_t n, n_words, n_targets
    const double *weight        # NULL: 1 for every row
    const uint64_t *classes     # (n_classes, n_words) rows of each class; NULL: regression
    const double *targets       # (n, n_targets)
    double confidence, deviate  # of the pessimistic error rate; confidence 0: the observed one


cdef struct SimplifyTask:       # rule r has the conditions ids[start[r]] to ids[start[r + 1] - 1]
    const ScoringRows *scoring
    const uint64_t *masks
    const uint64_t *all_rows
    const int64_t *start
    const int64_t *ids
    const int64_t *codes        # class of each rule; NULL: regression
    const double *predictions   # (n_rules, n_targets)
    unsigned char *kept
    double *score
    double *covered
    uint64_t *row_sets          # per thread, three sets of rows
    double *losses              # per thread, one per row; NULL: classification


cdef double added_errors(double n, double e, double confidence, double deviate) noexcept nogil:
    """Return C4.5's added errors: the upper confidence limit of e errors in n, less e.

    It is exact for e = 0, linear from there to e = 1, and a normal approximation with continuity correction beyond.
    """
    cdef double f, at_none
    if e < 1:
        at_none = n * (1 - pow(confidence, 1 / n))
        return at_none if e == 0 else at_none + e * (added_errors(n, 1, confidence, deviate) - at_none)
    if e + 0.5 >= n:
        return max(n - e, 0)
    f = (e + 0.5) / n
    return (f + deviate * deviate / (2 * n) + deviate * sqrt(f / n - f * f / n + deviate * deviate / (4 * n * n))
            ) / (1 + deviate * deviate / n) * n - e


cdef double sum_rows(uint64_t word, Py_ssize_t first, const double *values) noexcept nogil:
    """Return the sum of `values` over the rows of a word, or their number if `values` is NULL."""
    cdef double found = 0
    if values == NULL:
        return n_bits(word)
    while word != 0:
        found += values[first + kr_lowest(word)]
        word &= word - 1
    return found


cdef RuleScore score_of(const ScoringRows *scoring, double covered, double good) noexcept nogil:
    """Return the score of a rule that covers this weight; `good` is the weight of its class, or minus its loss."""
    cdef double wrong
    cdef RuleScore score
    score.covered, score.value = covered, -INFINITY
    if covered > 0:
        score.value = good / covered
        if scoring.confidence > 0:
            wrong = max(covered - good, 0)
            score.value = 1 - (wrong + added_errors(covered, wrong, scoring.confidence, scoring.deviate)) / covered
    return score


cdef inline void add_rows(const ScoringRows *scoring, uint64_t word, Py_ssize_t w, int64_t code, const double *losses,
                          double *covered, double *good) noexcept nogil:
    """Add rows of word w to the covered weight of a rule."""
    covered[0] += sum_rows(word, 64 * w, scoring.weight)
    if scoring.classes != NULL:
        good[0] += sum_rows(word & scoring.classes[code * scoring.n_words + w], 64 * w, scoring.weight)
    else:
        good[0] -= sum_rows(word, 64 * w, losses)


cdef bint equal_scores(const ScoringRows *scoring, double score, double other) noexcept nogil:
    """Return whether scores are equal up to rounding."""
    cdef double scale = 1 if scoring.classes != NULL else min(-score, -other)
    return score == other or fabs(score - other) <= _ROUNDING_RTOL * scale


cdef bint is_better(const ScoringRows *scoring, const RuleScore *one, const RuleScore *other) noexcept nogil:
    """Return whether `one` is at least as good, so that of ties the later condition is dropped."""
    if equal_scores(scoring, one.value, other.value):
        return one.covered >= (1 - _ROUNDING_RTOL) * other.covered
    return one.value > other.value


cdef void fill_losses(const ScoringRows *scoring, const double *prediction, double *losses) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef double error
    for i in range(scoring.n):
        losses[i] = 0
        for k in range(scoring.n_targets):
            error = scoring.targets[i * scoring.n_targets + k] - prediction[k]
            losses[i] += error * error
        if scoring.weight != NULL:
            losses[i] *= scoring.weight[i]


cdef RuleScore drop_conditions(const ScoringRows *scoring, const uint64_t *masks, const uint64_t *all_rows,
                               const int64_t *ids, Py_ssize_t n_conditions, int64_t code, unsigned char *kept,
                               uint64_t *row_sets, const double *losses) noexcept nogil:
    """Drop conditions of one rule; `row_sets` is a buffer of three sets of rows.

    Without a condition, a rule covers the rows that satisfy all conditions and those that fail this one alone. The rows
    that fail exactly one condition are found once for all conditions.
    """
    cdef Py_ssize_t n_words = scoring.n_words, k, w, e, n_single, best_condition
    cdef uint64_t *failed = row_sets                # rows that fail at least one condition
    cdef uint64_t *failed_twice = row_sets + n_words       # rows that fail at least two
    cdef int64_t *single_word = <int64_t *> row_sets + 2 * n_words        # words with rows that fail exactly one
    cdef uint64_t fails
    cdef const uint64_t *mask
    cdef double covered, good, more, more_good
    cdef RuleScore score, best, tried
    score.value, score.covered = -INFINITY, 0
    for k in range(n_conditions):
        kept[k] = 1
    while True:
        memset(row_sets, 0, 2 * n_words * sizeof(uint64_t))
        for k in range(n_conditions):
            if kept[k]:
                mask = masks + ids[k] * n_words
                for w in range(n_words):
                    fails = ~mask[w]
                    failed_twice[w] |= failed[w] & fails
                    failed[w] |= fails
        covered, good, n_single = 0, 0, 0
        for w in range(n_words):
            fails = ~failed[w] & all_rows[w]
            if fails != 0:
                add_rows(scoring, fails, w, code, losses, &covered, &good)
            fails = failed[w] & ~failed_twice[w] & all_rows[w]
            if fails != 0:                      # from here on `failed` has only the words with such rows
                failed[n_single], single_word[n_single] = fails, w
                n_single += 1
        score = score_of(scoring, covered, good)
        best.value, best.covered, best_condition = -INFINITY, -1, -1
        for k in range(n_conditions):
            if not kept[k]:
                continue
            mask, more, more_good = masks + ids[k] * n_words, covered, good
            for e in range(n_single):
                fails = failed[e] & ~mask[single_word[e]]
                if fails != 0:
                    add_rows(scoring, fails, single_word[e], code, losses, &more, &more_good)
            tried = score_of(scoring, more, more_good)
            if is_better(scoring, &tried, &best):
                best, best_condition = tried, k
        if best_condition < 0 or (best.value < score.value and not equal_scores(scoring, best.value, score.value)):
            return score
        kept[best_condition] = 0


cdef void simplify_rules(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const SimplifyTask *task = <const SimplifyTask *> context
    cdef const ScoringRows *scoring = task.scoring
    cdef uint64_t *row_sets = task.row_sets + worker * 3 * scoring.n_words
    cdef double *losses = NULL if task.losses == NULL else task.losses + worker * scoring.n
    cdef Py_ssize_t r, start
    cdef RuleScore score
    for r in range(first, last):
        start = task.start[r]
        if losses != NULL:
            fill_losses(scoring, task.predictions + r * scoring.n_targets, losses)
        score = drop_conditions(scoring, task.masks, task.all_rows, task.ids + start, task.start[r + 1] - start,
                                0 if task.codes == NULL else task.codes[r], task.kept + start, row_sets, losses)
        task.score[r], task.covered[r] = score.value, score.covered


cdef class RuleScorer:
    """The rows by which rules are scored.

    Parameters
    ----------
    n : int
        Number of rows.
    weight : ndarray (n,) or None
        Sample weights; None for 1.
    classes : ndarray (n_classes, n_words) of uint64, or None
        Rows of each class; None for regression.
    targets : ndarray (n, n_targets) or None
        Targets of regression.
    confidence, deviate : float
        Confidence of the pessimistic error rate and its normal deviate; 0 for the observed error rate.
    """

    cdef ScoringRows scoring
    cdef object kept_alive

    def __cinit__(self, Py_ssize_t n, const double[::1] weight, const uint64_t[:, ::1] classes,
                  const double[:, ::1] targets, double confidence, double deviate):
        cdef ScoringRows *scoring = &self.scoring
        scoring.n, scoring.n_words, scoring.n_targets = n, (n + 63) // 64, 0
        scoring.confidence, scoring.deviate = confidence, deviate
        scoring.weight = NULL if weight is None else &weight[0]
        scoring.classes = NULL if classes is None else &classes[0, 0]
        scoring.targets = NULL
        if classes is None:
            scoring.targets, scoring.n_targets = &targets[0, 0], targets.shape[1]
        self.kept_alive = weight, classes, targets

    def simplify(self, const uint64_t[:, ::1] masks, const int64_t[::1] start, const int64_t[::1] ids, predictions,
                 unsigned char[::1] kept, double[::1] score, double[::1] covered, int n_threads, tick=None):
        """Set kept[e] to whether condition e of a rule is kept, and the score and covered weight of each result.

        Rule r has the conditions ids[start[r]] to ids[start[r + 1] - 1], rows of `masks`. `predictions` are the codes
        of the classes that rules predict, or for regression an array (n_rules, n_targets).
        """
        cdef const ScoringRows *scoring = &self.scoring
        cdef SimplifyTask task
        cdef Py_ssize_t n_rules = start.shape[0] - 1, w, first = 0, last, step = 16 * n_threads
        cdef Py_ssize_t set_words = 3 * scoring.n_words
        cdef uint64_t *row_sets
        cdef double *losses = NULL
        cdef uint64_t *all_rows
        cdef const int64_t[::1] codes
        cdef const double[:, ::1] values
        if (masks.shape[1] != scoring.n_words or kept.shape[0] != ids.shape[0] or score.shape[0] != n_rules
                or covered.shape[0] != n_rules):
            raise ValueError("the shapes of the rules, the rows and the masks do not agree")
        if n_rules == 0:
            return
        task.codes, task.predictions = NULL, NULL
        if scoring.classes != NULL:
            codes = predictions
            task.codes = &codes[0]
        else:
            values = predictions
            task.predictions = &values[0, 0]
        row_sets = <uint64_t *> malloc((n_threads * set_words + scoring.n_words) * sizeof(uint64_t))
        if scoring.n_targets > 0:
            losses = <double *> malloc(n_threads * scoring.n * sizeof(double))
        if row_sets == NULL or (scoring.n_targets > 0 and losses == NULL):
            free(row_sets)
            free(losses)
            raise_for_status(NO_MEMORY)
        all_rows = row_sets + n_threads * set_words
        for w in range(scoring.n_words):
            all_rows[w] = rows_of_word(w, scoring.n)
        task.scoring, task.all_rows, task.start = scoring, all_rows, &start[0]
        task.row_sets, task.losses = row_sets, losses
        task.masks, task.ids = &masks[0, 0] if masks.shape[0] else NULL, &ids[0] if ids.shape[0] else NULL
        task.kept, task.score, task.covered = &kept[0] if kept.shape[0] else NULL, &score[0], &covered[0]
        try:
            while first < n_rules:
                last = min(first + step, n_rules)
                started = perf_counter()
                with nogil:
                    run_team(first, last, 1, n_threads, simplify_rules, &task)
                first, step = last, better_step(step, perf_counter() - started)
                PyErr_CheckSignals()
                if tick is not None:
                    tick(first, n_rules)
        finally:
            free(row_sets)
            free(losses)
