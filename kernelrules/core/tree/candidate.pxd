# Comparing one way to divide a node with the best so far, and the bins of a coded column. Inlined into scan.pyx and
# category_subsets.pyx.

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from kernelrules.core.tree.criteria cimport Criterion, score_of, spread_score
from kernelrules.core.tree.scan cimport BestSplit, SplitRules, NodeView, rounded_score, is_constrained


cdef inline double value_in(const Criterion *criterion, const NodeView *view, const double *sums,
                            const double *less) noexcept nogil:
    """What a node of these sums, without those of `less`, predicts: the share of class 1, or the mean."""
    cdef double weight = sums[0] - (less[0] if less != NULL else 0)
    cdef Py_ssize_t k = 2 if criterion.of_classes else 1
    cdef double mean = (sums[k] - (less[k] if less != NULL else 0)) / weight
    return mean if criterion.of_classes else mean + view.shift[0]


cdef inline bint keeps_order(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                             Py_ssize_t column, const double *left, const double *all) noexcept nogil:
    """Whether the children's values keep the column's monotone constraint, and the bounds that splits above set."""
    cdef double below = value_in(criterion, view, left, NULL), above = value_in(criterion, view, all, left)
    if rules.monotone[column] * (above - below) < 0:
        return False
    return min(below, above) >= view.low and max(below, above) <= view.high


cdef inline void try_candidate(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                               Py_ssize_t column, const double *left, Py_ssize_t n_left, const double *all,
                               Py_ssize_t n_all, double base, Py_ssize_t at, bint missing_left, double *room,
                               BestSplit *found) noexcept nogil:
    """Keep this way to divide if it is allowed and better than the best so far."""
    cdef double score, raw, second = 0
    if n_left < rules.min_leaf or n_all - n_left < rules.min_leaf:
        return
    if min(left[0], all[0] - left[0]) < rules.min_weight:
        return
    if view.unit > 0 and min(left[0], all[0] - left[0]) <= 1e-12 * all[0]:     # rounded sums cannot tell it from 0
        return
    if is_constrained(rules, column) and not keeps_order(criterion, rules, view, column, left, all):
        return
    raw = max(score_of(criterion, left, all, base, room), 0.0)        # below 0 by rounding only
    score = rounded_score(raw, view.unit)
    if score < found.score:
        return
    if criterion.ties_by_gini:
        second = spread_score(criterion, left, all)
    if score > found.score or second > found.second or (second == found.second and at < found.at):
        found.score, found.second, found.at, found.missing_left = score, second, at, missing_left
        found.raw = raw
        found.left_weight, found.weight = left[0], all[0]


cdef struct ColumnBins:                   # of one column in one node
    const double *cells
    Py_ssize_t size                 # of a cell; 0: packed
    bint weighted
    const Py_ssize_t *list          # those with rows, ascending; of known values
    Py_ssize_t n
    Py_ssize_t missing              # the bin of missing values, -1: no row is


cdef inline void add_cell(const Criterion *criterion, const ColumnBins *bins, Py_ssize_t bin, double sign,
                          double *sums) noexcept nogil:
    cdef Py_ssize_t k
    cdef uint64_t packed
    cdef double rows, ones
    if bins.size == 0:
        packed = (<const uint64_t *> bins.cells)[bin]
        rows, ones = <double> <uint32_t> packed, <double> (packed >> 32)
        sums[0] += sign * rows
        sums[1] += sign * (rows - ones)
        sums[2] += sign * ones
        return
    for k in range(criterion.n_sums):
        sums[k] += sign * bins.cells[bin * bins.size + k]


cdef inline Py_ssize_t rows_in(const ColumnBins *bins, Py_ssize_t bin) noexcept nogil:
    if bins.size == 0:
        return <uint32_t> (<const uint64_t *> bins.cells)[bin]
    return <Py_ssize_t> bins.cells[bin * bins.size + (bins.size - 1 if bins.weighted else 0)]


cdef inline Py_ssize_t sums_of_counted_rows(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                                            const ColumnBins *bins, double *all) noexcept nogil:
    """Sums and number of the rows that count, with those that are missing or without."""
    memcpy(all, view.sums, criterion.n_sums * sizeof(double))
    if bins.missing < 0 or not rules.missing_apart:
        return view.m
    add_cell(criterion, bins, bins.missing, -1, all)
    return view.m - rows_in(bins, bins.missing)
