# Criteria of a split, one small contract: sums of a node's rows in, score of dividing them out.
#
#     sums     [W, weight of class 0, weight of class 1, ...]   or   [W, sum of w·y of target 0, ...]
#     score    of (left, all): the larger the better; gain(score) is what the split takes off the loss W·Q
#
# Gini and squared error are one formula, sum_k (left_k W - W_left all_k)² / (W_left W_right), a single division, so
# that equal splits of whole weights get equal bits. Of classes without weights it is put together as in
# spread.h: scans get the same bits from running sums. To add a criterion: its number here, a branch in `score_of` and
# `base_of`, and its name in grow.CRITERIA.

from libc.math cimport log, log2

cdef extern from "spread.h" nogil:
    const double KR_MOST_COUNTED
    double kr_spread(double squares_left, double squares_right, double squares, double left, double all)
    double kr_spread_of_two(double of_left, double of_all, double left, double all)


cdef enum CriterionKind:
    GINI
    ENTROPY
    MISCLASSIFICATION
    GAIN_RATIO
    SQUARED
    ABSOLUTE
    POISSON
    OWN


cdef struct Criterion:
    int kind
    Py_ssize_t n_sums                   # 1 + classes or targets
    bint classes                        # sums are weights of classes
    bint counts                         # ... and weights are numbers of rows
    const double *logs                  # c log2 c for whole numbers c; NULL where weights are none
    double (*own)(void *, const double *, Py_ssize_t) noexcept nogil    # W·Q of class weights
    void *state


cdef inline double weight_log(const Criterion *criterion, double weight) noexcept nogil:
    """weight · log2 weight, 0 at 0."""
    if criterion.logs != NULL:
        return criterion.logs[<Py_ssize_t> weight]
    return weight * log2(weight) if weight > 0 else 0


cdef inline double entropy_part(const Criterion *criterion, const double *all, const double *taken) noexcept nogil:
    """sum_k c_k log2 c_k - W log2 W of all - taken (NULL: of all)."""
    cdef double total = 0
    cdef Py_ssize_t k
    for k in range(1, criterion.n_sums):
        total += weight_log(criterion, all[k] - taken[k] if taken != NULL else all[k])
    return total - weight_log(criterion, all[0] - taken[0] if taken != NULL else all[0])


cdef inline double poisson_part(double weight, double total) noexcept nogil:
    """sum · log(sum / W), 0 at 0."""
    return total * log(total / weight) if total > 0 else 0


cdef inline double base_of(const Criterion *criterion, const double *all) noexcept nogil:
    """What every score has taken off it: that of not dividing."""
    cdef double base = 0
    cdef Py_ssize_t k
    if criterion.kind == ENTROPY or criterion.kind == GAIN_RATIO:
        base = entropy_part(criterion, all, NULL)
    elif criterion.kind == MISCLASSIFICATION:
        for k in range(1, criterion.n_sums):
            base = max(base, all[k])
    elif criterion.kind == POISSON:
        for k in range(1, criterion.n_sums):
            base += poisson_part(all[0], all[k])
    elif criterion.kind == OWN:
        base = -criterion.own(criterion.state, all + 1, criterion.n_sums - 1)
    return base


cdef inline double spread_score(const Criterion *criterion, const double *left, const double *all) noexcept nogil:
    """Score of gini and of squared error."""
    cdef double total = 0, squares_left = 0, squares_right = 0, cross
    cdef Py_ssize_t k
    if criterion.counts:
        for k in range(1, criterion.n_sums):
            squares_left += left[k] * left[k]
            squares_right += (all[k] - left[k]) * (all[k] - left[k])
            total += all[k] * all[k]
        return kr_spread(squares_left, squares_right, total, left[0], all[0])
    for k in range(1, criterion.n_sums):
        cross = left[k] * all[0] - left[0] * all[k]
        total += cross * cross
    return total / (left[0] * (all[0] - left[0]))


cdef inline double score_of(const Criterion *criterion, const double *left, const double *all, double base,
                            double *right) noexcept nogil:
    """Score of dividing; `right` is room for as many sums."""
    cdef double most_left = 0, most_right = 0, total
    cdef Py_ssize_t k
    if criterion.kind == GINI or criterion.kind == SQUARED:
        return spread_score(criterion, left, all)
    if criterion.kind == ENTROPY or criterion.kind == GAIN_RATIO:
        return entropy_part(criterion, left, NULL) + entropy_part(criterion, all, left) - base
    if criterion.kind == MISCLASSIFICATION:
        for k in range(1, criterion.n_sums):
            most_left = max(most_left, left[k])
            most_right = max(most_right, all[k] - left[k])
        return most_left + most_right - base
    if criterion.kind == POISSON:
        total = 0
        for k in range(1, criterion.n_sums):
            total += poisson_part(left[0], left[k]) + poisson_part(all[0] - left[0], all[k] - left[k])
        return total - base
    for k in range(criterion.n_sums):
        right[k] = all[k] - left[k]
    return (-criterion.own(criterion.state, left + 1, criterion.n_sums - 1)
            - criterion.own(criterion.state, right + 1, criterion.n_sums - 1) - base)


cdef inline bint has_exact_scores(const Criterion *criterion) noexcept nogil:
    """Whether equal splits have equal scores where sums are exact: no logarithms, nothing of the caller's."""
    return (criterion.kind == GINI or criterion.kind == MISCLASSIFICATION or criterion.kind == SQUARED
            or criterion.kind == ABSOLUTE)


cdef inline double score_scale(const Criterion *criterion, double weight) noexcept nogil:
    """Score of a gain of 1."""
    return weight if criterion.kind == GINI or criterion.kind == SQUARED else 1


cdef inline double gain_of(const Criterion *criterion, double score, double weight) noexcept nogil:
    """What a split of that score takes off the loss."""
    return score / score_scale(criterion, weight)


cdef inline double class_loss(const Criterion *criterion, const double *all) noexcept nogil:
    """W·Q of class weights."""
    cdef double total = 0
    cdef Py_ssize_t k
    if criterion.kind == GINI:
        for k in range(1, criterion.n_sums):
            total += all[k] * all[k]
        return all[0] - total / all[0]
    if criterion.kind == MISCLASSIFICATION:
        return all[0] - base_of(criterion, all)
    return -base_of(criterion, all)
