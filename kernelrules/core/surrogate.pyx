"""Surrogate splits, as CART and rpart have them: where a split's column is missing, another one stands in.

For every other column the split is found that sends most of the rows where the node's own split sends them; rows that
are missing there count as sent wrongly. Of those that beat sending all rows with the majority, the best MOST are kept:

    agreement = (weight sent alike - majority) / (weight of all - majority)

A row is sent by the first of them that it has a value for, else with the majority (left, if the sides are equal).

Invariant: rows with a value of the split's column keep their side; after the search every row has one.
"""

from libc.math cimport NAN
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from kernelrules.core.lists cimport more_room
from kernelrules.core.presort cimport Table, value_of
from kernelrules.core.scan cimport Scratch, View, halfway

cdef enum:
    MOST = 5                # surrogates of a node
    SIDES = 2               # rows that each side of a surrogate must have

cdef double LEAST_AGREEMENT = 1e-10     # what is no more than this is rounding


cdef struct Sides:          # weights of rows by the side that the node's split sends them to, and their number
    double left
    double right
    Py_ssize_t n
    bint seen               # whether there are rows at all, also of no side


cdef Py_ssize_t keep_flags(Flags *flags, const uint8_t *marks, Py_ssize_t n) noexcept nogil:
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


cdef inline void count(const View *view, uint32_t row, Sides *sides) noexcept nogil:
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


cdef Sides count_all(const View *view) noexcept nogil:
    cdef Sides all = Sides(0, 0, 0, False)
    cdef Py_ssize_t i
    for i in range(view.m):
        count(view, view.arena.rows[view.start + i] & view.table.id_mask, &all)
    return all


cdef inline void compare(const Sides *below, const Sides *known, double low, double high, double *best,
                         StandIn *out) noexcept nogil:
    """Take a threshold if it sends more rows alike, in one direction or the other."""
    cdef double alike = below.left + known.right - below.right, against = below.right + known.left - below.left
    if below.n < SIDES or known.n - below.n < SIDES or max(alike, against) <= best[0]:
        return
    best[0] = max(alike, against)
    out.threshold, out.below_left = halfway(low, high), alike >= against


cdef double try_ordered(const View *view, Py_ssize_t column, StandIn *out) noexcept nogil:
    """The weight that the best threshold of an ordered column sends alike."""
    cdef const Table *table = view.table
    cdef Py_ssize_t place = table.place[column], i, last = -1
    cdef Py_ssize_t n_known = view.known[place] if view.known != NULL else view.m
    cdef const uint32_t *entries = view.arena.order[place] + view.start
    cdef Sides known = Sides(0, 0, 0, False), below = Sides(0, 0, 0, False)
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


cdef double try_coded(const View *view, Py_ssize_t column, const Sides *all, Scratch *scratch,
                      StandIn *out) noexcept nogil:
    """The weight that the best threshold, or the best subset of levels, of a coded column sends alike."""
    cdef const Table *table = view.table
    cdef Py_ssize_t place = -1 - table.place[column], n_bins = table.n_bins[place], n_known_bins, i, bin, last = -1
    cdef Sides *sides = <Sides *> scratch.keys
    cdef Sides known = Sides(0, 0, 0, False), below = Sides(0, 0, 0, False)
    cdef double best = 0
    cdef uint32_t row
    cdef const double *values = table.bin_value + table.bin_start[place]
    memset(sides, 0, n_bins * sizeof(Sides))
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


cdef int keep(StandIns *found, Py_ssize_t first, const StandIn *one) noexcept nogil:
    """Put a surrogate in its place among the node's, which begin at `first`; the last of too many is dropped."""
    cdef Py_ssize_t at
    cdef void *longer
    if found.n == found.room:
        longer = more_room(found.list, &found.room, found.n + 1, sizeof(StandIn))
        if longer == NULL:
            return -1
        found.list = <StandIn *> longer
    at = found.n
    while at > first and found.list[at - 1].agreement < one.agreement:
        found.list[at] = found.list[at - 1]
        at -= 1
    found.list[at] = one[0]
    found.n = min(found.n + 1, first + MOST)
    return 0


cdef int side_by(const View *view, const StandIn *one, const Flags *flags, uint32_t row) noexcept nogil:
    """The side that a surrogate sends a row to; 2 if it cannot tell."""
    cdef double value = value_of(view.table, view.arena.origin[row], one.feature)
    cdef uint8_t flag
    if value != value:
        return 2
    if one.subset >= 0:
        flag = flags.list[one.subset + <Py_ssize_t> value]
        return 2 if flag == 2 else 1 - flag
    return (value <= one.threshold) != one.below_left


cdef Py_ssize_t find_stand_ins(const View *view, Py_ssize_t column, Scratch *scratch, StandIns *found, Flags *flags,
                               bint *majority_left) noexcept nogil:
    """Surrogates of a node's split, whose sides are set, added to the list; and sides of the rows that had none.

    Gives how many there are, -1 if there is no memory; and the side of rows that no surrogate helps.
    """
    cdef const Table *table = view.table
    cdef Sides all = count_all(view)
    cdef Py_ssize_t first = found.n, j, i, k
    cdef double majority = max(all.left, all.right), total = all.left + all.right, alike
    cdef StandIn one
    cdef uint32_t row
    cdef int side
    majority_left[0] = all.left >= all.right
    for j in range(table.n_columns):
        if j == column:
            continue
        one.feature, one.subset, one.threshold, one.below_left = j, -1, NAN, True
        if table.place[j] >= 0:
            alike = try_ordered(view, j, &one)
        else:
            alike = try_coded(view, j, &all, scratch, &one)
        one.agreement = (alike - majority) / (total - majority) if total > majority else 0
        if one.threshold != one.threshold and not table.n_levels[j]:
            continue                        # no cut; weights may add up to more than the majority by rounding
        if one.agreement <= LEAST_AGREEMENT:
            continue
        if found.n == first + MOST and one.agreement <= found.list[found.n - 1].agreement:
            continue
        if table.n_levels[j]:
            one.subset = keep_flags(flags, scratch.left_of, table.n_levels[j])
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
