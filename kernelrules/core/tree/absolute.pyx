"""Splits by absolute error: sum of w |y - median| of both sides, for every cut of a column in linear time.

The targets of the node are a linked list in ascending order. Rows are taken out of it one after the other from the far
end of the column: the median moves to a neighbour, and with

    loss = T - 2 B - median (W - 2 W_B)         T: sum of w·y, B and W_B: sum and weight of what is below the median

each step is a few additions. One pass from the right gives the losses of all left sides, one from the left those of all
right sides. The list needs the order of the targets in the node, which is carried along like a column.

Invariant: the list holds the ranks that are still in, and `middle` is the lowest whose weight with all below it reaches
half.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from kernelrules.core.tree.criteria cimport Criterion
from kernelrules.core.tree.category_subsets cimport MAX_ENUMERATED_LEVELS, ascending
from kernelrules.core.tree.presort cimport DIFFERS, PresortedTable
from kernelrules.core.tree.scan cimport (
    NO_CUT, BestSplit, LevelKey, NodeView, ScanBuffers, SplitRules, is_constrained, is_stopped, rounded_score,
)

cdef enum:
    WORK_PER_ROW = 32       # of a column, in sums of a scan by other criteria: each row is read at random places


cdef struct RunningMedian:                 # of the ranks in a list; rank r is at place r + 1, place 0 is both ends
    uint32_t *next
    uint32_t *before
    uint32_t middle
    double weight
    double total
    double weight_below
    double below
    Py_ssize_t count                # of rows, where all weights are 1


cdef inline double weight_at(const NodeView *view, uint32_t place) noexcept nogil:
    """Of the row at a place."""
    return view.sorted_w[place - 1] if view.sorted_w != NULL else 1


cdef inline double target_at(const NodeView *view, uint32_t place) noexcept nogil:
    """Of the row at a place."""
    return view.sorted_y[place - 1]


cdef inline void move_to_median(const NodeView *view, RunningMedian *median) noexcept nogil:
    """Move to the lowest place whose weight with all below reaches half."""
    cdef uint32_t place
    cdef double weight
    while median.weight_below > 0 and 2 * median.weight_below >= median.weight:
        place = median.before[median.middle]
        if place == 0:
            break
        median.middle = place
        weight = weight_at(view, place)
        median.weight_below -= weight
        median.below -= weight * target_at(view, place)
    while 2 * (median.weight_below + weight_at(view, median.middle)) < median.weight:
        weight = weight_at(view, median.middle)
        place = median.next[median.middle]
        if place == 0:
            break
        median.weight_below += weight
        median.below += weight * target_at(view, median.middle)
        median.middle = place


cdef void start_median(const NodeView *view, RunningMedian *median) noexcept nogil:
    """All targets of the node."""
    cdef Py_ssize_t m = view.m, r
    for r in range(m + 1):
        median.next[r] = <uint32_t> (r + 1)
        median.before[r] = <uint32_t> (r - 1)
    median.next[m] = 0
    median.before[0] = <uint32_t> m
    median.weight = median.total = median.weight_below = median.below = 0
    for r in range(m):
        median.weight += weight_at(view, <uint32_t> (r + 1))
        median.total += weight_at(view, <uint32_t> (r + 1)) * view.sorted_y[r]
    median.middle = 1
    if view.sorted_w == NULL:           # straight to the middle
        median.middle = <uint32_t> ((m - 1) // 2 + 1)
        median.weight_below = (m - 1) // 2
        for r in range((m - 1) // 2):
            median.below += view.sorted_y[r]
    move_to_median(view, median)


cdef inline void remove_row(const NodeView *view, RunningMedian *median, uint32_t entry) noexcept nogil:
    """One row less; at least one must be left."""
    cdef uint32_t place = view.rank[entry & view.table.id_mask] + 1
    cdef uint32_t after = median.next[place], ahead = median.before[place]
    cdef double weight = weight_at(view, place), mass = weight * target_at(view, place)
    median.next[ahead] = after
    median.before[after] = ahead
    median.weight -= weight
    median.total -= mass
    if place < median.middle:
        median.weight_below -= weight
        median.below -= mass
    elif place == median.middle:
        if after:
            median.middle = after
        else:
            median.middle = ahead
            median.weight_below -= weight_at(view, ahead)
            median.below -= weight_at(view, ahead) * target_at(view, ahead)
    move_to_median(view, median)


cdef inline double loss_of(const NodeView *view, const RunningMedian *median) noexcept nogil:
    return max(0.0, median.total - 2 * median.below
               - target_at(view, median.middle) * (median.weight - 2 * median.weight_below))


cdef inline void remove_unit_row(const double *y, RunningMedian *median, uint32_t place, double *loss,
                                 double *middle) noexcept nogil:
    """Remove a row if all weights are 1, without unpredictable branches; y is by place.

    The lower median of c rows has (c - 1) // 2 below it. Taking a row out of an odd number leaves one less below, out
    of an even number as many as before; so the median stays, or moves to the one neighbour.
    """
    cdef uint32_t *next = median.next
    cdef uint32_t *before = median.before
    cdef uint32_t after = next[place], ahead = before[place], old = median.middle, neighbour
    cdef uint32_t if_below = 0 - <uint32_t> (place < old), if_above = 0 - <uint32_t> (place > old)   # masks
    median.total -= y[place]
    if median.count & 1:                    # alternates
        neighbour = before[old]
        median.below -= y[neighbour ^ ((place ^ neighbour) & if_below)]
        median.middle = neighbour ^ ((old ^ neighbour) & if_below)
    else:
        neighbour = next[old]
        median.below += y[old] - y[old ^ ((place ^ old) & if_below)]
        median.middle = neighbour ^ ((old ^ neighbour) & if_above)
    next[ahead] = after
    before[after] = ahead
    median.count -= 1
    loss[0] = max(0.0, median.total - 2 * median.below - y[median.middle] * (2 - (median.count & 1)))
    middle[0] = y[median.middle]


cdef void losses_of_cuts(const NodeView *view, RunningMedian *first, RunningMedian *second, const uint32_t *sequence,
                         Py_ssize_t n, double *left, double *left_medians, double *right,
                         double *right_medians) noexcept nogil:
    """Take the rows out of one list from the end and out of the other from the start, all but one, side by side: each
    waits for its own memory. Notes loss and median after each."""
    cdef Py_ssize_t j
    cdef RunningMedian a = first[0], b = second[0]
    cdef const double *y = view.sorted_y - 1        # there is one before the first, for the end of the list
    cdef const uint32_t *rank = view.rank
    cdef uint32_t id_mask = view.table.id_mask
    if view.sorted_w == NULL:
        a.count, b.count = <Py_ssize_t> a.weight, <Py_ssize_t> b.weight
        for j in range(n - 1):
            remove_unit_row(y, &a, rank[sequence[n - 1 - j] & id_mask] + 1, left + j, left_medians + j)
            remove_unit_row(y, &b, rank[sequence[j] & id_mask] + 1, right + j, right_medians + j)
        return
    for j in range(n - 1):
        remove_row(view, &a, sequence[n - 1 - j])
        left[j], left_medians[j] = loss_of(view, &a), target_at(view, a.middle)
        remove_row(view, &b, sequence[j])
        right[j], right_medians[j] = loss_of(view, &b), target_at(view, b.middle)


cdef void scan_sequence(const SplitRules *rules, const NodeView *view, Py_ssize_t column, const uint32_t *sequence,
                        Py_ssize_t n, const uint32_t *others, Py_ssize_t n_others, Py_ssize_t n_first, Py_ssize_t end,
                        Py_ssize_t only, bint missing_left, ScanBuffers *scratch, BestSplit *found) noexcept nogil:
    """The best cut of rows in a given order: between entries that differ, from n_first to `end`, or at `only` alone.

    `others` are rows of the node that do not count. What is found is numbered from n_first.
    """
    cdef RunningMedian first, second
    cdef Py_ssize_t room = view.arena.n + 2, i
    cdef double *left = scratch.losses              # by rows taken out: of n - 1, n - 2, ... rows
    cdef double *left_medians = left + room
    cdef double *right = left_medians + room
    cdef double *right_medians = right + room
    cdef double all, raw, score, below, above, whole, weight_left = 0
    if n < 2:
        return
    first.next, first.before = scratch.links, scratch.links + room
    second.next, second.before = scratch.links + 2 * room, scratch.links + 3 * room
    start_median(view, &first)
    for i in range(n_others):
        remove_row(view, &first, others[i])
    all, whole = loss_of(view, &first), first.weight
    second.middle, second.weight, second.total = first.middle, first.weight, first.total
    second.weight_below, second.below = first.weight_below, first.below
    memcpy(second.next, first.next, 2 * room * sizeof(uint32_t))
    losses_of_cuts(view, &first, &second, sequence, n, left, left_medians, right, right_medians)
    for i in range(1, min(n - 1, n - rules.min_leaf) + 1):
        if rules.min_weight > 0:
            weight_left += weight_at(view, view.rank[sequence[i - 1] & view.table.id_mask] + 1)
        if i < rules.min_leaf or (rules.min_weight > 0 and min(weight_left, whole - weight_left) < rules.min_weight):
            continue
        if only >= 0:
            if i != only:
                continue
        elif i <= n_first or i >= end or not sequence[i] & DIFFERS:
            continue
        raw = max(0.0, all - left[n - 1 - i] - right[i - 1])
        score = rounded_score(raw, view.unit)
        if score < found.score or (score == found.score and i - n_first >= found.at):
            continue
        if is_constrained(rules, column):
            below, above = left_medians[n - 1 - i], right_medians[i - 1]
            if (rules.monotone[column] * (above - below) < 0 or min(below, above) + view.shift[0] < view.low
                    or max(below, above) + view.shift[0] > view.high):
                continue
        found.score, found.raw, found.at, found.missing_left = score, raw, i - n_first, missing_left
        found.left_weight, found.weight = i, n


cdef inline Py_ssize_t code_of(const NodeView *view, Py_ssize_t place, uint32_t entry) noexcept nogil:
    cdef Py_ssize_t at = (entry & view.table.id_mask) * view.table.n_coded + place
    if view.table.wide:
        return (<const uint16_t *> view.arena.codes)[at]
    return (<const uint8_t *> view.arena.codes)[at]


cdef Py_ssize_t order_by_median(const NodeView *view, Py_ssize_t place, Py_ssize_t without, ScanBuffers *scratch,
                                Py_ssize_t *counts) noexcept nogil:
    """Levels that have rows, but for the one `without`, ascending by their median target; and rows by bin."""
    cdef const PresortedTable *table = view.table
    cdef const uint32_t *by_target = view.arena.order[table.n_ordered] + view.start
    cdef LevelKey *levels = <LevelKey *> scratch.keys
    cdef Py_ssize_t n_bins = table.n_bins[place], i, bin, n = 0
    cdef double *weights = scratch.cells
    cdef double *so_far = scratch.cells + n_bins
    memset(counts, 0, n_bins * sizeof(Py_ssize_t))
    for i in range(view.m):
        bin = code_of(view, place, by_target[i])
        counts[bin] += 1
        weights[bin] += view.sorted_w[i] if view.sorted_w != NULL else 1
    for i in range(view.m):
        bin = code_of(view, place, by_target[i])
        if bin == without or so_far[bin] >= weights[bin]:
            continue
        so_far[bin] += 2 * (view.sorted_w[i] if view.sorted_w != NULL else 1)
        if so_far[bin] >= weights[bin]:
            levels[n].bin, levels[n].key = bin, view.sorted_y[i]
            so_far[bin] = INFINITY
            n += 1
    memset(scratch.cells, 0, 2 * n_bins * sizeof(double))
    qsort(levels, n, sizeof(LevelKey), ascending)
    return n


cdef Py_ssize_t order_rows_by_level(const NodeView *view, Py_ssize_t place, const LevelKey *levels, Py_ssize_t n,
                                    const Py_ssize_t *counts, Py_ssize_t *ends, uint32_t *sequence) noexcept nogil:
    """Rows level by level, the first of each marked, then those of no level. Gives how many come before these."""
    cdef const uint32_t *rows = view.arena.rows + view.start
    cdef Py_ssize_t lev, i, bin, total = 0, n_others
    for bin in range(view.table.n_bins[place]):
        ends[bin] = -1
    for lev in range(n):
        ends[levels[lev].bin] = total
        total += counts[levels[lev].bin]
    n_others = total
    for i in range(view.m):
        bin = code_of(view, place, rows[i])
        if ends[bin] >= 0:
            sequence[ends[bin]] = rows[i] & ~DIFFERS
            ends[bin] += 1
        else:
            sequence[n_others] = rows[i] & ~DIFFERS
            n_others += 1
    for lev in range(n):
        sequence[ends[levels[lev].bin] - counts[levels[lev].bin]] |= DIFFERS
    return total


cdef double subset_loss(const NodeView *view, Py_ssize_t place, const uint8_t *left_of, double *medians,
                        Py_ssize_t *counts, double *weight) noexcept nogil:
    """Loss of both sides of a subset of levels, with medians, numbers and weights of rows; 2 in left_of: not there."""
    cdef const uint32_t *by_target = view.arena.order[view.table.n_ordered] + view.start
    cdef double total[2]
    cdef double weight_below[2]
    cdef double below[2]
    cdef bint reached[2]
    cdef double of_row, loss = 0
    cdef Py_ssize_t i, side
    for side in range(2):
        weight[side] = total[side] = weight_below[side] = below[side] = medians[side] = 0
        reached[side] = False
        counts[side] = 0
    for i in range(view.m):
        side = left_of[code_of(view, place, by_target[i])]
        if side < 2:
            of_row = view.sorted_w[i] if view.sorted_w != NULL else 1
            weight[side] += of_row
            total[side] += of_row * view.sorted_y[i]
            counts[side] += 1
    for i in range(view.m):
        side = left_of[code_of(view, place, by_target[i])]
        if side < 2 and not reached[side]:
            of_row = view.sorted_w[i] if view.sorted_w != NULL else 1
            if 2 * (weight_below[side] + of_row) >= weight[side]:
                medians[side] = view.sorted_y[i]
                reached[side] = True
            else:
                weight_below[side] += of_row
                below[side] += of_row * view.sorted_y[i]
    for side in range(2):
        loss += total[side] - 2 * below[side] - medians[side] * (weight[side] - 2 * weight_below[side])
    return loss


cdef void scan_all_subsets(const SplitRules *rules, const NodeView *view, Py_ssize_t column, Py_ssize_t n,
                           ScanBuffers *scratch, BestSplit *found) noexcept nogil:
    """The best of all subsets of the levels, or of single ones; it is left in scratch.left_of."""
    cdef const LevelKey *levels = <const LevelKey *> scratch.keys
    cdef Py_ssize_t place = -1 - view.table.place[column], n_bins = view.table.n_bins[place], lev, code, n_codes
    cdef uint8_t *left_of = scratch.left_of
    cdef double medians[2]
    cdef double weights[2]
    cdef Py_ssize_t counts[2]
    cdef double all, raw, score
    memset(left_of, 2, n_bins)
    for lev in range(n):
        left_of[levels[lev].bin] = 0
    all = subset_loss(view, place, left_of, medians, counts, weights)
    n_codes = (n if n > 2 else n - 1) if rules.one_category else (<Py_ssize_t> 1 << (n - 1)) - 1
    for code in range(1, n_codes + 1):
        for lev in range(n):
            left_of[levels[lev].bin] = lev == code - 1 if rules.one_category else (code >> lev) & 1
        raw = max(0.0, all - subset_loss(view, place, left_of, medians, counts, weights))
        score = rounded_score(raw, view.unit)
        if (score <= found.score or min(counts[0], counts[1]) < rules.min_leaf
                or min(weights[0], weights[1]) < rules.min_weight):
            continue
        found.score, found.raw, found.at = score, raw, code
        found.left_weight, found.weight = counts[1], counts[0] + counts[1]
    if found.at >= 0:
        for lev in range(n):
            left_of[levels[lev].bin] = lev == found.at - 1 if rules.one_category else (found.at >> lev) & 1


cdef void scan_levels(const SplitRules *rules, const NodeView *view, Py_ssize_t column, ScanBuffers *scratch,
                      BestSplit *found, uint8_t *left_of) noexcept nogil:
    """The best subset of categories: of all while they are few, else a cut in the order of their medians."""
    cdef const PresortedTable *table = view.table
    cdef Py_ssize_t place = -1 - table.place[column], n_bins = table.n_bins[place], n, lev, n_laid
    cdef LevelKey *levels = <LevelKey *> scratch.keys
    cdef Py_ssize_t *counts = scratch.bins
    cdef Py_ssize_t missing = n_bins - 1 if table.missing[column] else -1
    n = order_by_median(view, place, missing if rules.missing_apart else -1, scratch, counts)
    if n < 2:
        return
    if n <= MAX_ENUMERATED_LEVELS or rules.one_category:
        scan_all_subsets(rules, view, column, n, scratch, found)
    else:
        n_laid = order_rows_by_level(view, place, levels, n, counts, counts + n_bins, scratch.entries)
        scan_sequence(rules, view, column, scratch.entries, n_laid, scratch.entries + n_laid, view.m - n_laid, 0,
                      n_laid, -1, False, scratch, found)
        n_laid = 0
        memset(scratch.left_of, 2, n_bins)
        for lev in range(n):
            scratch.left_of[levels[lev].bin] = n_laid < found.at
            n_laid += counts[levels[lev].bin]
    if found.score > NO_CUT and left_of != NULL:
        memcpy(left_of, scratch.left_of, n_bins)
        found.missing_left = missing >= 0 and left_of[missing] == 1


cdef void scan_absolute(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                        ScanBuffers *scratch, BestSplit *found, uint8_t *left_of) noexcept nogil:
    """As scan.scan_column does for other criteria."""
    cdef Py_ssize_t place = view.table.place[column], n_known = view.m, n_missing, worked = WORK_PER_ROW * view.m
    cdef const uint32_t *entries
    if is_stopped(rules, &worked):
        return
    if place < 0:
        scan_levels(rules, view, column, scratch, found, left_of)
        return
    if view.known != NULL:
        n_known = view.known[place]
    n_missing = view.m - n_known
    entries = view.arena.order[place] + view.start
    if n_missing == 0 or rules.missing_apart:
        scan_sequence(rules, view, column, entries, n_known, entries + n_known, n_missing, 0, n_known, -1, False,
                      scratch, found)
        return
    scan_sequence(rules, view, column, entries, view.m, NULL, 0, 0, n_known, -1, False, scratch, found)
    memcpy(scratch.entries, entries + n_known, n_missing * sizeof(uint32_t))
    memcpy(scratch.entries + n_missing, entries, n_known * sizeof(uint32_t))
    scan_sequence(rules, view, column, scratch.entries, view.m, NULL, 0, n_missing, view.m, -1, True, scratch, found)
    scan_sequence(rules, view, column, entries, view.m, NULL, 0, 0, view.m, n_known, False, scratch, found)
