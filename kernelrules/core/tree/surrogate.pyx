"""Surrogate splits: splits on other columns that replace a node's split for rows whose value is missing.

A surrogate of a column is the split that sends most weight to the side of the node's own split; rows whose value is
missing there count as sent to the wrong side. The MAX_SURROGATES best ones that beat sending all rows with the majority
are kept, in descending order of

    agreement = (weight sent alike - majority) / (weight of all - majority) .

A row follows the first surrogate that it has a value for, otherwise the majority (left, if the sides are equal).

References: Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees", section 5.3; Therneau and
Atkinson, "An Introduction to Recursive Partitioning Using the RPART Routines".

Invariant: rows with a value of the split's column keep their side; after the search every row has one.
"""

from libc.math cimport NAN
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from kernelrules.core.base.growable cimport more_room
from kernelrules.core.tree.presort cimport PresortedTable, value_of
from kernelrules.core.tree.scan cimport NodeView, ScanBuffers, SplitRules, halfway, is_stopped

cdef enum:
    MAX_SURROGATES = 5              # of a node, as in rpart
    MIN_SIDE_ROWS = 2               # on each side of a surrogate, as in rpart
    WORK_PER_ROW = 32               # of a column, in sums of a scan: each row is read at random places

cdef double MIN_AGREEMENT = 1e-10     # what is no more than this is rounding


cdef struct SideWeights:          # weights of rows by the side that the node's split sends them to, and their number
    double left
    double right
    Py_ssize_t n
    bint seen               # whether there are rows at all, also of no side


cdef Py_ssize_t append_flags(SubsetFlags *flags, const uint8_t *marks, Py_ssize_t n) noexcept nogil:
    """Add flags to the list; gives where they start, -1 if there is no memory."""
    cdef void *longer
    if flags.n + n > flags.room:
        longer = more_room(flags.list, &flags.room, flags.n + n, 1)
        if longer == NULL:
            return -1
        flags.list = <uint8_t *> longer
    memcpy(flags.list + flags.n, marks, n)
    flags.n += n
    return flags.n - n


cdef inline void count(const NodeView *view, uint32_t row, SideWeights *sides) noexcept nogil:
    """Add a row whose side is known."""
    cdef double weight = view.arena.w[row] if view.arena.w != NULL else 1
    sides.seen = True
    if view.arena.side[row] == 2:
        return
    sides.n += 1
    if view.arena.side[row]:
        sides.right += weight
    else:
        sides.left += weight


cdef SideWeights count_all(const NodeView *view) noexcept nogil:
    cdef SideWeights all = SideWeights(0, 0, 0, False)
    cdef Py_ssize_t i
    for i in range(view.m):
        count(view, view.arena.rows[view.start + i] & view.table.id_mask, &all)
    return all


cdef inline void compare(const SideWeights *below, const SideWeights *known, double low, double high, double *best,
                         Surrogate *out) noexcept nogil:
    """Take a threshold if it sends more rows alike, in one direction or the other."""
    cdef double alike = below.left + known.right - below.right, against = below.right + known.left - below.left
    if below.n < MIN_SIDE_ROWS or known.n - below.n < MIN_SIDE_ROWS or max(alike, against) <= best[0]:
        return
    best[0] = max(alike, against)
    out.threshold, out.below_left = halfway(low, high), alike >= against


cdef double best_ordered_surrogate(const NodeView *view, Py_ssize_t column, Surrogate *out) noexcept nogil:
    """The weight that the best threshold of an ordered column sends alike."""
    cdef const PresortedTable *table = view.table
    cdef Py_ssize_t place = table.place[column], i, last = -1
    cdef Py_ssize_t n_known = view.known[place] if view.known != NULL else view.m
    cdef const uint32_t *entries = view.arena.order[place] + view.start
    cdef SideWeights known = SideWeights(0, 0, 0, False), below = SideWeights(0, 0, 0, False)
    cdef double best = 0, value, before = 0
    for i in range(n_known):
        count(view, entries[i] & table.id_mask, &known)
    best = max(known.left, known.right)     # going with the majority is no split
    for i in range(n_known):
        value = value_of(table, view.arena.origin[entries[i] & table.id_mask], column)
        if last >= 0 and value > before:
            compare(&below, &known, before, value, &best, out)
        before, last = value, i
        count(view, entries[i] & table.id_mask, &below)
    return best


cdef double best_coded_surrogate(const NodeView *view, Py_ssize_t column, const SideWeights *all, ScanBuffers *scratch,
                                 Surrogate *out) noexcept nogil:
    """The weight that the best threshold, or the best subset of levels, of a coded column sends alike."""
    cdef const PresortedTable *table = view.table
    cdef Py_ssize_t place = -1 - table.place[column], n_bins = table.n_bins[place], n_known_bins, i, bin, last = -1
    cdef SideWeights *sides = <SideWeights *> scratch.keys
    cdef SideWeights known = SideWeights(0, 0, 0, False), below = SideWeights(0, 0, 0, False)
    cdef double best = 0
    cdef uint32_t row
    cdef const double *values = table.bin_value + table.bin_start[place]
    memset(sides, 0, n_bins * sizeof(SideWeights))
    for i in range(view.m):
        row = view.arena.rows[view.start + i] & table.id_mask
        bin = row * table.n_coded + place
        bin = (<const uint16_t *> view.arena.codes)[bin] if table.wide else (<const uint8_t *> view.arena.codes)[bin]
        count(view, row, sides + bin)
    n_known_bins = n_bins - table.missing[column]
    if table.n_levels[column]:
        memset(scratch.left_of, 2, n_bins)
        for bin in range(n_known_bins):
            if sides[bin].n:                # equal weights go with the majority
                scratch.left_of[bin] = (sides[bin].left > sides[bin].right
                                        or (sides[bin].left == sides[bin].right and all.left > all.right))
                best += max(sides[bin].left, sides[bin].right)
        return best
    for bin in range(n_known_bins):
        known.left += sides[bin].left
        known.right += sides[bin].right
        known.n += sides[bin].n
    best = max(known.left, known.right)     # going with the majority is no split
    for bin in range(n_known_bins):
        if not sides[bin].seen:
            continue
        if last >= 0:
            compare(&below, &known, values[last], values[bin], &best, out)
        last = bin
        below.left += sides[bin].left
        below.right += sides[bin].right
        below.n += sides[bin].n
    return best


cdef int keep(SurrogateList *found, Py_ssize_t first, const Surrogate *one) noexcept nogil:
    """Put a surrogate in its place among the node's, which begin at `first`; the last of too many is dropped."""
    cdef Py_ssize_t at
    cdef void *longer
    if found.n == found.room:
        longer = more_room(found.list, &found.room, found.n + 1, sizeof(Surrogate))
        if longer == NULL:
            return -1
        found.list = <Surrogate *> longer
    at = found.n
    while at > first and found.list[at - 1].agreement < one.agreement:
        found.list[at] = found.list[at - 1]
        at -= 1
    found.list[at] = one[0]
    found.n = min(found.n + 1, first + MAX_SURROGATES)
    return 0


cdef int side_by(const NodeView *view, const Surrogate *one, const SubsetFlags *flags, uint32_t row) noexcept nogil:
    """The side that a surrogate sends a row to; 2 if it cannot tell."""
    cdef double value = value_of(view.table, view.arena.origin[row], one.feature)
    cdef uint8_t flag
    if value != value:
        return 2
    if one.subset >= 0:
        flag = flags.list[one.subset + <Py_ssize_t> value]
        return 2 if flag == 2 else 1 - flag
    return (value <= one.threshold) != one.below_left


cdef Py_ssize_t find_surrogates(const SplitRules *rules, const NodeView *view, Py_ssize_t column, ScanBuffers *scratch,
                                SurrogateList *found, SubsetFlags *flags, bint *majority_left) noexcept nogil:
    """Surrogates of a node's split, whose sides are set, added to the list; and sides of the rows that had none.

    Gives how many there are, -1 if there is no memory; and the side of rows that no surrogate helps.
    """
    cdef const PresortedTable *table = view.table
    cdef SideWeights all = count_all(view)
    cdef Py_ssize_t first = found.n, j, i, k, worked = 0
    cdef double majority = max(all.left, all.right), total = all.left + all.right, alike
    cdef Surrogate one
    cdef uint32_t row
    cdef int side
    majority_left[0] = all.left >= all.right
    for j in range(table.n_columns):
        if j == column:
            continue
        worked += WORK_PER_ROW * view.m
        if is_stopped(rules, &worked):
            break
        one.feature, one.subset, one.threshold, one.below_left = j, -1, NAN, True
        if table.place[j] >= 0:
            alike = best_ordered_surrogate(view, j, &one)
        else:
            alike = best_coded_surrogate(view, j, &all, scratch, &one)
        one.agreement = (alike - majority) / (total - majority) if total > majority else 0
        if one.threshold != one.threshold and not table.n_levels[j]:
            continue                        # no cut; weights may add up to more than the majority by rounding
        if one.agreement <= MIN_AGREEMENT:
            continue
        if found.n == first + MAX_SURROGATES and one.agreement <= found.list[found.n - 1].agreement:
            continue
        if table.n_levels[j]:
            one.subset = append_flags(flags, scratch.left_of, table.n_levels[j])
            if one.subset < 0:
                return -1
        if keep(found, first, &one) < 0:
            return -1
    for i in range(view.m):
        row = view.arena.rows[view.start + i] & table.id_mask
        k = first
        while view.arena.side[row] == 2:
            side = side_by(view, found.list + k, flags, row) if k < found.n else not majority_left[0]
            view.arena.side[row] = <uint8_t> side
            k += 1
    return found.n - first
