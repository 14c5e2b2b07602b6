"""The best subset of a categorical column's levels to go left.

    two classes, and targets    levels in the order of their mean, where the best subset is a cut
    more classes                every subset of at most 12 levels; beyond that a cut in the order of the levels'
                                projections on the first principal component of their class shares, a heuristic
    one_category                each level against the rest

The order of means is exact for two classes and one target (Fisher 1958; Breiman et al. 1984, section 4.2.2).

Missing values are one more level, unless `missing_apart`. Of equal scores the lowest is taken: the shortest cut, the
first level, the lowest bits.

Invariant: sums of a subset are those of its levels added or subtracted one at a time, in an order of the levels alone.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint8_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from kernelrules.core.base.bits cimport kr_lowest
from kernelrules.core.tree.criteria cimport Criterion, base_of
from kernelrules.core.tree.candidate cimport ColumnBins, add_cell, sums_of_counted_rows, try_candidate, rows_in
from kernelrules.core.tree.scan cimport NO_CUT, BestSplit, LevelKey, SplitRules, ScanBuffers, NodeView, is_stopped

cdef enum:
    MAX_POWER_STEPS = 100             # of the power method: it converges linearly

cdef double DIRECTION_TOL = 1e-10   # a direction that changes by less has come to rest


cdef enum SubsetForm:              # to divide levels
    PREFIX                     # the first of them left
    ANY_SUBSET                    # those whose bits are set
    SINGLE_LEVEL                     # a single one


cdef int ascending(const void *a, const void *b) noexcept nogil:
    """By key, then by bin."""
    cdef const LevelKey *x = <const LevelKey *> a
    cdef const LevelKey *y = <const LevelKey *> b
    if x.key != y.key:
        return 1 if x.key > y.key else -1
    return (x.bin > y.bin) - (x.bin < y.bin)


cdef void principal_component(const Criterion *criterion, const SplitRules *rules, const ColumnBins *bins,
                              Py_ssize_t n_levels, const LevelKey *levels, double *room) noexcept nogil:
    """Leading direction of the levels' class shares about their mean, weighted, in the first n_classes of room.

    The power method: sum_l W_l (share_l - mean) ((share_l - mean)·direction), until it turns no more.
    """
    cdef Py_ssize_t n = criterion.n_sums - 1, size = bins.size, lev, j, worked = 0
    cdef double *direction = room
    cdef double *other = room + n
    cdef double *mean = other + n
    cdef const double *cell
    cdef double total = 0, length, along, change
    cdef int turn
    memset(room, 0, 3 * n * sizeof(double))
    for lev in range(n_levels):
        cell = bins.cells + levels[lev].bin * size
        total += cell[0]
        for j in range(n):
            mean[j] += cell[1 + j]
    for j in range(n):
        mean[j] /= total
    for lev in range(n_levels):         # start along the level that is farthest out, so never at a right angle to all
        cell = bins.cells + levels[lev].bin * size
        length = 0
        for j in range(n):
            along = cell[1 + j] / cell[0] - mean[j]
            length += cell[0] * along * along
        if length > other[0]:
            other[0] = length
            for j in range(n):
                direction[j] = cell[1 + j] / cell[0] - mean[j]
    for turn in range(MAX_POWER_STEPS):
        memset(other, 0, n * sizeof(double))
        for lev in range(n_levels):
            worked += n
            if is_stopped(rules, &worked):
                return
            cell = bins.cells + levels[lev].bin * size
            along = 0
            for j in range(n):
                along += (cell[1 + j] / cell[0] - mean[j]) * direction[j]
            for j in range(n):
                other[j] += cell[0] * along * (cell[1 + j] / cell[0] - mean[j])
        length, change = 0, 0
        for j in range(n):
            length += other[j] * other[j]
        if length == 0:
            return
        length = sqrt(length)
        for j in range(n):
            change += fabs(other[j] / length - direction[j])
            direction[j] = other[j] / length
        if turn > 0 and change < DIRECTION_TOL:
            return


cdef void order_levels(const Criterion *criterion, const SplitRules *rules, const ColumnBins *bins,
                       ScanBuffers *scratch, LevelKey *levels, Py_ssize_t n) noexcept nogil:
    """Levels in ascending order of what they predict; of several classes, along the principal component."""
    cdef Py_ssize_t lev, k
    cdef const double *cell
    cdef double *sums = scratch.sums
    if criterion.of_classes and criterion.n_sums > 3:
        principal_component(criterion, rules, bins, n, levels, scratch.classes)
        for lev in range(n):
            cell = bins.cells + levels[lev].bin * bins.size
            for k in range(criterion.n_sums - 1):
                levels[lev].key += scratch.classes[k] * cell[1 + k] / cell[0]
    else:
        for lev in range(n):
            memset(sums, 0, criterion.n_sums * sizeof(double))
            add_cell(criterion, bins, levels[lev].bin, 1, sums)
            for k in range(1 + criterion.of_classes, criterion.n_sums):
                levels[lev].key += sums[k] / sums[0]
    qsort(levels, n, sizeof(LevelKey), ascending)


cdef void mark_left(const LevelKey *levels, Py_ssize_t n, Py_ssize_t n_bins, SubsetForm form, Py_ssize_t at,
                    uint8_t *left_of) noexcept nogil:
    """For each bin 1 left, 0 right, 2 no rows."""
    cdef Py_ssize_t lev
    memset(left_of, 2, n_bins)
    for lev in range(n):
        if form == PREFIX:
            left_of[levels[lev].bin] = lev < at
        else:
            left_of[levels[lev].bin] = lev == at if form == SINGLE_LEVEL else (at >> lev) & 1


cdef void scan_subsets(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                       const ColumnBins *bins, ScanBuffers *scratch, BestSplit *found, uint8_t *left_of) noexcept nogil:
    """The best subset of categories to go left; it is written where it is wanted."""
    cdef LevelKey *levels = <LevelKey *> scratch.keys
    cdef Py_ssize_t n_sums = criterion.n_sums, lev, n_left = 0, code, gray = 0, flipped
    cdef Py_ssize_t n = bins.n + (bins.missing >= 0 and not rules.missing_apart)
    cdef double *left = scratch.sums
    cdef double *all = left + n_sums
    cdef double *room = all + n_sums
    cdef Py_ssize_t n_all
    cdef double base, sign
    cdef SubsetForm form = PREFIX
    for lev in range(n):
        levels[lev].bin, levels[lev].key = bins.list[lev], 0
    if rules.one_category:
        form = SINGLE_LEVEL
    elif criterion.n_sums > (3 if criterion.of_classes else 2) and n <= MAX_ENUMERATED_LEVELS:
        form = ANY_SUBSET
    else:
        order_levels(criterion, rules, bins, scratch, levels, n)
    n_all = sums_of_counted_rows(criterion, rules, view, bins, all)
    base = base_of(criterion, all)
    memset(left, 0, n_sums * sizeof(double))
    if form == SINGLE_LEVEL:
        for lev in range(n if n > 2 else n - 1):      # of two levels, one says it all
            memset(left, 0, n_sums * sizeof(double))
            add_cell(criterion, bins, levels[lev].bin, 1, left)
            n_left = rows_in(bins, levels[lev].bin)
            try_candidate(criterion, rules, view, column, left, n_left, all, n_all, base, lev, False, room, found)
    elif form == ANY_SUBSET:
        for code in range(1, <Py_ssize_t> 1 << (n - 1) if n else 0):
            flipped = kr_lowest(code)           # a Gray code changes one level at a time
            gray ^= <Py_ssize_t> 1 << flipped
            sign = 1 if (gray >> flipped) & 1 else -1
            add_cell(criterion, bins, levels[flipped].bin, sign, left)
            n_left += <Py_ssize_t> sign * rows_in(bins, levels[flipped].bin)
            try_candidate(criterion, rules, view, column, left, n_left, all, n_all, base, gray, False, room, found)
    else:
        for lev in range(n - 1):
            add_cell(criterion, bins, levels[lev].bin, 1, left)
            n_left += rows_in(bins, levels[lev].bin)
            try_candidate(criterion, rules, view, column, left, n_left, all, n_all, base, lev + 1, False, room, found)
    if found.score > NO_CUT and left_of != NULL:
        mark_left(levels, n, view.table.n_bins[-1 - view.table.place[column]], form, found.at, left_of)
        found.missing_left = bins.missing >= 0 and not rules.missing_apart and left_of[bins.missing] == 1
