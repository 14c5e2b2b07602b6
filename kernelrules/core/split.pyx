"""Making a node's split: a side for every row, and every column's entries moved to their child's segment.

A column's left entries go to the front of the node's segment, so the children are segments again. Children that will be
leaves are not moved, the column that the node is split on is in order already, and the histogram of the larger child is
the node's less that of the smaller, where sums are whole numbers and differences therefore exact.

Invariant: all columns of a node list the same rows, in their own order.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove, memset

from kernelrules.core.criteria cimport ABSOLUTE
from kernelrules.core.node cimport (
    FEW, SHARED, Grower, Node, Work, centre, describe_children, drop_histogram, is_final, mixed, new_histogram,
    new_node, push, view_of,
)
from kernelrules.core.presort cimport DIFFERS, Arena, Table, address_of, keep_side, partition, value_of
from kernelrules.core.scan cimport View, cell_size, fill_histogram, halfway, is_packed, scan_column
from kernelrules.core.status cimport NO_MEMORY, OK
from kernelrules.core.surrogate cimport find_stand_ins, keep_flags

cdef extern from "fetch.h":
    void kr_fetch(const void *address) noexcept nogil

ctypedef fused code_t:
    uint8_t
    uint16_t


cdef bint is_parted(const Grower *grower, const Work *work, Py_ssize_t place) noexcept nogil:
    """Whether an ordered column is the one that the node is split on, so that its left rows come first already."""
    return place == grower.table.place[work.column] and (work.known == NULL or work.known[place] == work.m)


cdef double side_by_order(const Grower *grower, const Work *work, int missing_side) noexcept nogil:
    """Sides of the rows for a cut of an ordered column; gives its threshold."""
    cdef const Table *table = grower.table
    cdef const Arena *arena = grower.arenas[work.arena]
    cdef Py_ssize_t place = table.place[work.column], at = work.found.at, i
    cdef Py_ssize_t n_known = work.known[place] if work.known != NULL else work.m
    cdef const uint32_t *entries = arena.order[place] + work.start
    cdef uint32_t id_mask = table.id_mask
    if (grower.rules.missing_apart or arena.own_rows or arena.n_orders > 1
            or not is_parted(grower, work, place)):             # otherwise nobody asks
        for i in range(at):
            arena.side[entries[i] & id_mask] = 0
        for i in range(at, n_known):
            arena.side[entries[i] & id_mask] = 1
        for i in range(n_known, work.m):
            arena.side[entries[i] & id_mask] = <uint8_t> missing_side
    if at == n_known:
        return INFINITY
    return halfway(value_of(table, arena.origin[entries[at - 1] & id_mask], work.column),
                   value_of(table, arena.origin[entries[at] & id_mask], work.column))


cdef void side_by_code(const code_t *codes, const Grower *grower, const Work *work, Py_ssize_t place,
                       Py_ssize_t *last_left, Py_ssize_t *first_right) noexcept nogil:
    """Sides of the rows by the flags of their bins; and the bins on either side of the cut."""
    cdef const Table *table = grower.table
    cdef const Arena *arena = grower.arenas[work.arena]
    cdef const uint32_t *rows = arena.rows + work.start
    cdef Py_ssize_t i, bin, highest = -1, lowest = table.n_bins[place]
    cdef uint32_t row
    cdef uint8_t flag
    for i in range(work.m):
        row = rows[i] & table.id_mask
        bin = codes[row * table.n_coded + place]
        flag = grower.left_of[bin]
        arena.side[row] = flag
        highest = max(highest, bin if flag == 0 and bin < work.found.at else -1)
        lowest = min(lowest, bin if flag == 1 and bin >= work.found.at else table.n_bins[place])
    last_left[0], first_right[0] = highest, lowest


cdef double side_by_bins(Grower *grower, const Work *work, int missing_side) noexcept nogil:
    """Sides of the rows for a split of a coded column; gives its threshold, NaN for categories."""
    cdef const Table *table = grower.table
    cdef const Arena *arena = grower.arenas[work.arena]
    cdef Py_ssize_t place = -1 - table.place[work.column], n_bins = table.n_bins[place], b, low, high
    cdef bint is_levels = table.n_levels[work.column] > 0
    cdef const double *values = table.bin_value + table.bin_start[place]
    for b in range(n_bins):             # from 1 for left to the number of the side
        if is_levels:
            grower.left_of[b] = 0 if grower.left_of[b] == 1 else 1
        else:
            grower.left_of[b] = b >= work.found.at
    if table.missing[work.column]:
        grower.left_of[n_bins - 1] = <uint8_t> missing_side
    if table.wide:
        side_by_code(<const uint16_t *> arena.codes, grower, work, place, &low, &high)
    else:
        side_by_code(<const uint8_t *> arena.codes, grower, work, place, &low, &high)
    if is_levels:
        return NAN
    return halfway(values[low], values[high]) if high < n_bins - table.missing[work.column] else INFINITY


cdef bint is_significant(const Grower *grower, Py_ssize_t parent, Py_ssize_t child) noexcept nogil:
    """Whether left and right differ in their classes by more than chance would often make them."""
    cdef Py_ssize_t n_sums = grower.criterion.n_sums, k, present = 0
    cdef const double *all = grower.sums + parent * n_sums
    cdef const double *left = grower.sums + child * n_sums
    cdef double statistic = 0, expected, right, off
    if grower.limits.critical == NULL:
        return True
    right = all[0] - left[0]
    for k in range(1, n_sums):
        if all[k] > 0:
            present += 1
            expected = all[k] * left[0] / all[0]
            off = left[k] - expected
            statistic += off * off / expected + off * off / (all[k] * right / all[0])
    return statistic >= grower.limits.critical[present - 1]


cdef void move_columns(Grower *grower, const Work *work, Work *left, Work *right, int kept) noexcept nogil:
    """Entries of every column to their child's segment; of one child only (kept 0 or 1), or of both (kept -1)."""
    cdef const Table *table = grower.table
    cdef Arena *arena = grower.arenas[work.arena]
    cdef Py_ssize_t k, first = 0 if arena.own_rows else 1
    cdef int n_threads = grower.n_threads if work.m * table.n_ordered >= SHARED else 1
    if not arena.own_rows and table.n_ordered:
        move_column(grower, work, left, right, kept, 0, True, grower.scratch[0].entries)
    if n_threads == 1:
        for k in range(first, table.n_ordered):
            move_column(grower, work, left, right, kept, k, False, grower.scratch[0].entries)
        return
    for k in prange(first, table.n_ordered, num_threads=n_threads, schedule="dynamic", chunksize=1):
        move_column(grower, work, left, right, kept, k, False, grower.scratch[threadid()].entries)


cdef void move_column(Grower *grower, const Work *work, Work *left, Work *right, int kept, Py_ssize_t k, bint moved,
                      uint32_t *room) noexcept nogil:
    """One of them; the one that lists the rows as well has been moved before, for both children."""
    cdef Arena *arena = grower.arenas[work.arena]
    cdef uint32_t *entries = arena.order[k] + work.start
    cdef Py_ssize_t n_known = work.known[k] if work.known != NULL else work.m, n_left
    if not moved and is_parted(grower, work, k):
        moved = True
        entries[left.m] |= DIFFERS
        if work.known != NULL and kept != 1:
            left.known[k] = <uint32_t> left.m
        if work.known != NULL and kept != 0:
            right.known[k] = <uint32_t> right.m
    if moved:
        if kept == 1:
            memmove(entries, entries + left.m, right.m * sizeof(uint32_t))
        return
    if kept >= 0:
        n_left = keep_side(entries, work.m, n_known, arena.side, grower.table.id_mask, kept)
        if work.known != NULL:
            (left if kept == 0 else right).known[k] = <uint32_t> n_left
        return
    n_left = partition(entries, work.m, n_known, arena.side, grower.table.id_mask, grower.table.tied[k], room)
    if work.known != NULL:
        left.known[k] = <uint32_t> n_left
        right.known[k] = <uint32_t> (n_known - n_left)


cdef void move_list(uint32_t *entries, Py_ssize_t n, Py_ssize_t n_left, int kept) noexcept nogil:
    """A list that has been parted: where only the right child is kept, to the front with it."""
    if kept == 1:
        memmove(entries, entries + n_left, (n - n_left) * sizeof(uint32_t))


cdef int share_histogram(Grower *grower, Work *work, Work *left, Work *right, bint left_final,
                         bint right_final) noexcept nogil:
    """The children's histograms: that of the smaller is counted, the other's is the difference, which is exact."""
    cdef const Table *table = grower.table
    cdef bint want_left = not left_final and left.m > FEW, want_right = not right_final and right.m > FEW
    cdef Work *small = left if left.m <= right.m else right
    cdef Work *large = right if left.m <= right.m else left
    cdef bint want_small = want_left if left.m <= right.m else want_right
    cdef bint want_large = want_right if left.m <= right.m else want_left
    cdef bint weighted = grower.arenas[0].w != NULL, packed = is_packed(grower.criterion, weighted)
    cdef Py_ssize_t k, n = table.n_bins_all * (1 if packed else cell_size(grower.criterion, weighted))
    cdef void *counted
    cdef View view
    if work.histogram == NULL:
        return OK
    if not grower.limits.exact or not want_large:
        drop_histogram(grower, work.histogram)
        work.histogram = NULL
        return OK
    counted = new_histogram(grower)
    if counted == NULL:
        return NO_MEMORY
    view_of(grower, small, &view)
    memset(grower.shift, 0, grower.criterion.n_sums * sizeof(double))
    fill_histogram(grower.criterion, &view, 0, table.n_coded, counted)
    if packed:
        for k in range(n):
            (<uint64_t *> work.histogram)[k] -= (<uint64_t *> counted)[k]
    else:
        for k in range(n):
            (<double *> work.histogram)[k] -= (<double *> counted)[k]
    large.histogram, work.histogram = work.histogram, NULL
    if want_small:
        small.histogram = counted
    else:
        drop_histogram(grower, counted)
    return OK


cdef void fetch_neighbours(const Grower *grower, const Work *work) noexcept nogil:
    """Ask for the two values around a cut ahead of need: they lie anywhere in the data."""
    cdef const Table *table = grower.table
    cdef const Arena *arena = grower.arenas[work.arena]
    cdef Py_ssize_t place = table.place[work.column], at = work.found.at
    cdef const uint32_t *entries
    if place >= 0 and at < work.m:
        entries = arena.order[place] + work.start
        kr_fetch(address_of(table, arena.origin[entries[at - 1] & table.id_mask], work.column))
        kr_fetch(address_of(table, arena.origin[entries[at] & table.id_mask], work.column))


cdef int set_sides(Grower *grower, Work *work) noexcept nogil:
    """Side of every row, and what the node's split is in the result."""
    cdef const Table *table = grower.table
    cdef Node *node = grower.nodes + work.node
    cdef Py_ssize_t column = work.column
    cdef int missing_side
    cdef View view
    if table.n_levels[column] or grower.rules.missing_apart:
        view_of(grower, work, &view)
    else:
        fetch_neighbours(grower, work)
    node.feature, node.gain = <int> column, work.gain
    if table.n_levels[column]:              # once more, to know which levels go left
        centre(grower, &view)
        scan_column(grower.criterion, grower.rules, &view, column, grower.scratch[0], &work.found, grower.left_of)
        node.subset = keep_flags(&grower.flags, grower.left_of, table.n_levels[column])
        if node.subset < 0:
            return NO_MEMORY
    missing_side = 2 if grower.rules.missing_apart else 0 if work.found.missing_left else 1
    if table.place[column] >= 0:
        node.threshold = side_by_order(grower, work, missing_side)
    else:
        node.threshold = side_by_bins(grower, work, missing_side)
    if grower.rules.missing_apart:
        node.stand_ins = grower.stand_ins.n
        node.n_stand_ins = <int> find_stand_ins(&view, column, grower.scratch[0], &grower.stand_ins, &grower.flags,
                                                &node.missing_left)
        if node.n_stand_ins < 0:
            return NO_MEMORY
    return OK


cdef int split(Grower *grower, Work *work) noexcept nogil:
    """Make the split that was found; children that may be split are pushed on the stack. They may take the node's
    histogram, which is then NULL."""
    cdef const Table *table = grower.table
    cdef Arena *arena = grower.arenas[work.arena]
    cdef Py_ssize_t first, second, m_left, n_sums = grower.criterion.n_sums
    cdef Work left, right
    cdef bint left_final, right_final
    cdef int status, kept
    cdef Node *node
    status = set_sides(grower, work)
    if status != OK:
        return status
    m_left = partition_rows(grower, work)
    first, second = new_node(grower), new_node(grower)
    if first < 0 or second < 0:
        return NO_MEMORY
    describe_children(grower, arena, work, m_left, first, second)
    node = grower.nodes + work.node
    if not is_significant(grower, work.node, first):
        node.feature, node.gain, node.subset, node.n_stand_ins = -1, 0, -1, 0
        grower.n_nodes -= 2
        return OK
    node.left, node.right = <unsigned int> first, <unsigned int> second
    if not grower.rules.missing_apart:      # there it is the side of most known rows
        if has_missing(grower, work):
            node.missing_left = work.found.missing_left
        else:
            node.missing_left = grower.sums[first * n_sums] >= grower.sums[second * n_sums]
    left = right = work[0]
    left.node, right.node = first, second
    left.depth = right.depth = work.depth + 1
    left.m, right.m = m_left, work.m - m_left
    left.histogram = right.histogram = NULL
    left.known = right.known = NULL
    left.key, right.key = mixed(work.key ^ 1), mixed(work.key ^ 2)
    set_bounds(grower, work, &left, &right)
    left_final = is_final(grower, first, left.depth)
    right_final = is_final(grower, second, right.depth)
    if left_final and right_final:
        return OK
    kept = 1 if left_final else 0 if right_final else -1
    if work.known != NULL:
        left.known = <uint32_t *> malloc(table.n_ordered * sizeof(uint32_t)) if not left_final else NULL
        right.known = <uint32_t *> malloc(table.n_ordered * sizeof(uint32_t)) if not right_final else NULL
        if (left.known == NULL and not left_final) or (right.known == NULL and not right_final):
            free(left.known)
            free(right.known)
            return NO_MEMORY
    right.start = work.start + m_left
    status = share_histogram(grower, work, &left, &right, left_final, right_final)     # both lists of rows are there
    move_columns(grower, work, &left, &right, kept)
    if arena.own_rows:
        move_list(arena.rows + work.start, work.m, m_left, kept)
    if grower.criterion.kind == ABSOLUTE:
        move_list(arena.order[table.n_ordered] + work.start, work.m, m_left, kept)
    right.start = work.start + (m_left if kept < 0 else 0)
    return push_children(grower, &left, &right, left_final, right_final, status)


cdef int push_children(Grower *grower, Work *left, Work *right, bint left_final, bint right_final,
                       int status) noexcept nogil:
    """Put the children that may be split on the stack; what belongs to one that cannot be put there is freed."""
    cdef Work *child
    cdef int side
    for side in range(2):
        child = left if side else right
        if status == OK and not (left_final if side else right_final):
            status = push(&grower.stack, &grower.n_stack, &grower.stack_room, child)
            if status == OK:
                continue
        drop_histogram(grower, child.histogram)
        free(child.known)
    return status


cdef bint has_missing(const Grower *grower, const Work *work) noexcept nogil:
    """Whether the split's column is missing in some row of the node."""
    cdef const Table *table = grower.table
    cdef Py_ssize_t place = table.place[work.column], i, bin
    cdef const Arena *arena = grower.arenas[work.arena]
    cdef const uint32_t *rows = arena.rows + work.start
    if not table.missing[work.column]:
        return False
    if place >= 0:
        return work.known[place] < work.m
    for i in range(work.m):
        bin = (rows[i] & table.id_mask) * table.n_coded - 1 - place
        bin = (<const uint16_t *> arena.codes)[bin] if table.wide else (<const uint8_t *> arena.codes)[bin]
        if bin == table.n_bins[-1 - place] - 1:
            return True
    return False


cdef Py_ssize_t partition_rows(Grower *grower, const Work *work) noexcept nogil:
    """Left rows before right ones in the list of rows, and in that of targets; gives how many are left."""
    cdef const Table *table = grower.table
    cdef Arena *arena = grower.arenas[work.arena]
    cdef uint32_t *room = grower.scratch[0].entries
    cdef Py_ssize_t m_left
    if not arena.own_rows and is_parted(grower, work, 0):
        m_left = work.found.at
        arena.rows[work.start + m_left] |= DIFFERS
    else:
        m_left = partition(arena.rows + work.start, work.m, work.m, arena.side, table.id_mask,
                           not arena.own_rows and table.tied[0], room)
    if grower.criterion.kind == ABSOLUTE and arena.rows != arena.order[table.n_ordered]:
        partition(arena.order[table.n_ordered] + work.start, work.m, work.m, arena.side, table.id_mask, False, room)
    return m_left


cdef double value_for_bounds(const Grower *grower, Py_ssize_t number) noexcept nogil:
    """What must rise or fall: the target's mean or median, or the share of the second class."""
    cdef const double *sums = grower.sums + number * grower.criterion.n_sums
    return sums[2] / sums[0] if grower.criterion.classes else grower.nodes[number].value


cdef void set_bounds(Grower *grower, const Work *work, Work *left, Work *right) noexcept nogil:
    """A monotone split leaves its children on different sides of the middle of their values; all keep their bounds."""
    if grower.rules.monotone == NULL:
        return
    if grower.rules.monotone[work.column]:
        part_bounds(grower, work, left, right)
    keep_within(grower, left)
    keep_within(grower, right)


cdef void keep_within(Grower *grower, const Work *work) noexcept nogil:
    """Cut a node's value off at its bounds: splits on free columns may lead beyond them."""
    cdef Node *node = grower.nodes + work.node
    node.value = min(max(value_for_bounds(grower, work.node), work.low), work.high)


cdef void part_bounds(Grower *grower, const Work *work, Work *left, Work *right) noexcept nogil:
    """The middle of the children's values is a bound of both."""
    cdef double middle = (value_for_bounds(grower, left.node) + value_for_bounds(grower, right.node)) / 2
    if grower.rules.monotone[work.column] > 0:
        left.high = right.low = middle
    else:
        left.low = right.high = middle
