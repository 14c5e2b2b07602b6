"""Applying a node's split: a side for every row, and every column's entries moved to their child's segment.

A column's left entries go to the front of the node's segment, so the children are segments again. Children that will be
leaves are not moved, the column that the node is split on is in order already, and the histogram of the larger child is
the node's less that of the smaller, where sums are whole numbers and differences therefore exact.

Invariant: all columns of a node list the same rows, in their own order.
"""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove, memset

from kernelrules.core.tree.node cimport (HISTOGRAM_MIN_ROWS, MIN_SHARED_ENTRIES, TreeBuilder, Node, PendingNode, centre,
                                         describe_children, drop_histogram, is_final, mixed_key, new_histogram,
                                         new_node, push, set_view,)
from kernelrules.core.tree.presort cimport (
    DIFFERS, PresortedTable, SampleArena, address_of, keep_side, partition, value_of,
)
from kernelrules.core.tree.scan cimport NodeView, cell_size, fill_histogram, halfway, is_packed, scan_column
from kernelrules.core.base.status cimport NO_MEMORY, OK
from kernelrules.core.tree.surrogate cimport find_surrogates, append_flags
from kernelrules.core.base.team cimport run_team

cdef extern from "base/prefetch.h":
    void kr_fetch(const void *address) noexcept nogil

ctypedef fused code_t:
    uint8_t
    uint16_t


cdef bint is_parted(const TreeBuilder *builder, const PendingNode *pending, Py_ssize_t place) noexcept nogil:
    """Whether an ordered column is the one that the node is split on, so that its left rows come first already."""
    return place == builder.table.place[pending.column] and (pending.known == NULL or pending.known[place] == pending.m)


cdef double side_by_order(const TreeBuilder *builder, const PendingNode *pending, int missing_side) noexcept nogil:
    """Sides of the rows for a cut of an ordered column; gives its threshold."""
    cdef const PresortedTable *table = builder.table
    cdef const SampleArena *arena = builder.arenas[pending.arena]
    cdef Py_ssize_t place = table.place[pending.column], at = pending.found.at, i
    cdef Py_ssize_t n_known = pending.known[place] if pending.known != NULL else pending.m
    cdef const uint32_t *entries = arena.order[place] + pending.start
    cdef uint32_t id_mask = table.id_mask
    if (builder.rules.missing_apart or arena.own_rows or arena.n_orders > 1
            or not is_parted(builder, pending, place)):             # otherwise `side` is never read
        for i in range(at):
            arena.side[entries[i] & id_mask] = 0
        for i in range(at, n_known):
            arena.side[entries[i] & id_mask] = 1
        for i in range(n_known, pending.m):
            arena.side[entries[i] & id_mask] = <uint8_t> missing_side
    if at == n_known:
        return INFINITY
    return halfway(value_of(table, arena.origin[entries[at - 1] & id_mask], pending.column),
                   value_of(table, arena.origin[entries[at] & id_mask], pending.column))


cdef void side_by_code(const code_t *codes, const TreeBuilder *builder, const PendingNode *pending, Py_ssize_t place,
                       Py_ssize_t *last_left, Py_ssize_t *first_right) noexcept nogil:
    """Sides of the rows by the flags of their bins; and the bins on either side of the cut."""
    cdef const PresortedTable *table = builder.table
    cdef const SampleArena *arena = builder.arenas[pending.arena]
    cdef const uint32_t *rows = arena.rows + pending.start
    cdef Py_ssize_t i, bin, highest = -1, lowest = table.n_bins[place]
    cdef uint32_t row
    cdef uint8_t flag
    for i in range(pending.m):
        row = rows[i] & table.id_mask
        bin = codes[row * table.n_coded + place]
        flag = builder.left_of[bin]
        arena.side[row] = flag
        highest = max(highest, bin if flag == 0 and bin < pending.found.at else -1)
        lowest = min(lowest, bin if flag == 1 and bin >= pending.found.at else table.n_bins[place])
    last_left[0], first_right[0] = highest, lowest


cdef double side_by_bins(TreeBuilder *builder, const PendingNode *pending, int missing_side) noexcept nogil:
    """Sides of the rows for a split of a coded column; gives its threshold, NaN for categories."""
    cdef const PresortedTable *table = builder.table
    cdef const SampleArena *arena = builder.arenas[pending.arena]
    cdef Py_ssize_t place = -1 - table.place[pending.column], n_bins = table.n_bins[place], b, low, high
    cdef bint is_levels = table.n_levels[pending.column] > 0
    cdef const double *values = table.bin_value + table.bin_start[place]
    for b in range(n_bins):             # from 1 for left to the number of the side
        if is_levels:
            builder.left_of[b] = 0 if builder.left_of[b] == 1 else 1
        else:
            builder.left_of[b] = b >= pending.found.at
    if table.missing[pending.column]:
        builder.left_of[n_bins - 1] = <uint8_t> missing_side
    if table.wide:
        side_by_code(<const uint16_t *> arena.codes, builder, pending, place, &low, &high)
    else:
        side_by_code(<const uint8_t *> arena.codes, builder, pending, place, &low, &high)
    if is_levels:
        return NAN
    return halfway(values[low], values[high]) if high < n_bins - table.missing[pending.column] else INFINITY


cdef bint is_significant(const TreeBuilder *builder, Py_ssize_t parent, Py_ssize_t child) noexcept nogil:
    """Whether left and right differ in their classes by more than chance would often make them."""
    cdef Py_ssize_t n_sums = builder.criterion.n_sums, k, present = 0
    cdef const double *all = builder.sums + parent * n_sums
    cdef const double *left = builder.sums + child * n_sums
    cdef double statistic = 0, expected, right, off
    if builder.limits.critical == NULL:
        return True
    right = all[0] - left[0]
    for k in range(1, n_sums):
        if all[k] > 0:
            present += 1
            expected = all[k] * left[0] / all[0]
            off = left[k] - expected
            statistic += off * off / expected + off * off / (all[k] * right / all[0])
    return statistic >= builder.limits.critical[present - 1]


cdef struct EntryMove:           # of a node's entries to its children
    TreeBuilder *builder
    const PendingNode *pending
    PendingNode *left
    PendingNode *right
    int kept                # one child only (0 or 1), or both (-1)


cdef void move_columns(EntryMove *move) noexcept nogil:
    """Entries of every column to their child's segment."""
    cdef TreeBuilder *builder = move.builder
    cdef Py_ssize_t n_ordered = builder.table.n_ordered
    cdef bint own_rows = builder.arenas[move.pending.arena].own_rows
    cdef int n_threads = builder.n_threads if move.pending.m * n_ordered >= MIN_SHARED_ENTRIES else 1
    if not own_rows and n_ordered:
        move_column(move, 0, True, builder.scratch[0].entries)
    run_team(0 if own_rows else 1, n_ordered, 0, n_threads, move_some, move)


cdef void move_some(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const EntryMove *move = <const EntryMove *> context
    cdef Py_ssize_t k
    for k in range(first, last):
        move_column(move, k, False, move.builder.scratch[worker].entries)


cdef void move_column(const EntryMove *move, Py_ssize_t k, bint moved, uint32_t *room) noexcept nogil:
    """One of them; the one that lists the rows as well has been moved before, for both children."""
    cdef const TreeBuilder *builder = move.builder
    cdef const PendingNode *pending = move.pending
    cdef PendingNode *left = move.left
    cdef PendingNode *right = move.right
    cdef int kept = move.kept
    cdef SampleArena *arena = builder.arenas[pending.arena]
    cdef uint32_t *entries = arena.order[k] + pending.start
    cdef Py_ssize_t n_known = pending.known[k] if pending.known != NULL else pending.m, n_left
    if not moved and is_parted(builder, pending, k):
        moved = True
        entries[left.m] |= DIFFERS
        if pending.known != NULL and kept != 1:
            left.known[k] = <uint32_t> left.m
        if pending.known != NULL and kept != 0:
            right.known[k] = <uint32_t> right.m
    if moved:
        if kept == 1:
            memmove(entries, entries + left.m, right.m * sizeof(uint32_t))
        return
    if kept >= 0:
        n_left = keep_side(entries, pending.m, n_known, arena.side, builder.table.id_mask, kept)
        if pending.known != NULL:
            (left if kept == 0 else right).known[k] = <uint32_t> n_left
        return
    n_left = partition(entries, pending.m, n_known, arena.side, builder.table.id_mask, builder.table.tied[k], room)
    if pending.known != NULL:
        left.known[k] = <uint32_t> n_left
        right.known[k] = <uint32_t> (n_known - n_left)


cdef void move_list(uint32_t *entries, Py_ssize_t n, Py_ssize_t n_left, int kept) noexcept nogil:
    """A list that has been parted: where only the right child is kept, to the front with it."""
    if kept == 1:
        memmove(entries, entries + n_left, (n - n_left) * sizeof(uint32_t))


cdef int share_histogram(TreeBuilder *builder, PendingNode *pending, PendingNode *left, PendingNode *right,
                         bint left_final, bint right_final) noexcept nogil:
    """The children's histograms: that of the smaller is counted, the other's is the difference, which is exact."""
    cdef const PresortedTable *table = builder.table
    cdef bint want_left = not left_final and left.m > HISTOGRAM_MIN_ROWS
    cdef bint want_right = not right_final and right.m > HISTOGRAM_MIN_ROWS
    cdef PendingNode *small = left if left.m <= right.m else right
    cdef PendingNode *large = right if left.m <= right.m else left
    cdef bint want_small = want_left if left.m <= right.m else want_right
    cdef bint want_large = want_right if left.m <= right.m else want_left
    cdef bint weighted = builder.arenas[0].w != NULL, packed = is_packed(builder.criterion, weighted)
    cdef Py_ssize_t k, n = table.n_bins_all * (1 if packed else cell_size(builder.criterion, weighted))
    cdef void *counted
    cdef NodeView view
    if pending.histogram == NULL:
        return OK
    if not builder.limits.exact or not want_large:
        drop_histogram(builder, pending.histogram)
        pending.histogram = NULL
        return OK
    counted = new_histogram(builder)
    if counted == NULL:
        return NO_MEMORY
    set_view(builder, small, &view)
    memset(builder.shift, 0, builder.criterion.n_sums * sizeof(double))
    fill_histogram(builder.criterion, &view, 0, table.n_coded, counted)
    if packed:
        for k in range(n):
            (<uint64_t *> pending.histogram)[k] -= (<uint64_t *> counted)[k]
    else:
        for k in range(n):
            (<double *> pending.histogram)[k] -= (<double *> counted)[k]
    large.histogram, pending.histogram = pending.histogram, NULL
    if want_small:
        small.histogram = counted
    else:
        drop_histogram(builder, counted)
    return OK


cdef void fetch_neighbours(const TreeBuilder *builder, const PendingNode *pending) noexcept nogil:
    """Prefetch the two values around a cut: they lie anywhere in the data."""
    cdef const PresortedTable *table = builder.table
    cdef const SampleArena *arena = builder.arenas[pending.arena]
    cdef Py_ssize_t place = table.place[pending.column], at = pending.found.at
    cdef const uint32_t *entries
    if place >= 0 and at < pending.m:
        entries = arena.order[place] + pending.start
        kr_fetch(address_of(table, arena.origin[entries[at - 1] & table.id_mask], pending.column))
        kr_fetch(address_of(table, arena.origin[entries[at] & table.id_mask], pending.column))


cdef int set_sides(TreeBuilder *builder, PendingNode *pending) noexcept nogil:
    """Side of every row, and what the node's split is in the result."""
    cdef const PresortedTable *table = builder.table
    cdef Node *node = builder.nodes + pending.node
    cdef Py_ssize_t column = pending.column
    cdef int missing_side
    cdef NodeView view
    if table.n_levels[column] or builder.rules.missing_apart:
        set_view(builder, pending, &view)
    else:
        fetch_neighbours(builder, pending)
    node.feature, node.gain = <int> column, pending.gain
    if table.n_levels[column]:              # once more, to know which levels go left
        centre(builder, &view)
        scan_column(builder.criterion, builder.rules, &view, column, builder.scratch[0], &pending.found,
                    builder.left_of)
        node.subset = append_flags(&builder.flags, builder.left_of, table.n_levels[column])
        if node.subset < 0:
            return NO_MEMORY
    missing_side = 2 if builder.rules.missing_apart else 0 if pending.found.missing_left else 1
    if table.place[column] >= 0:
        node.threshold = side_by_order(builder, pending, missing_side)
    else:
        node.threshold = side_by_bins(builder, pending, missing_side)
    if builder.rules.missing_apart:
        node.surrogates = builder.surrogates.n
        node.n_surrogates = <int> find_surrogates(builder.rules, &view, column, builder.scratch[0],
                                                  &builder.surrogates, &builder.flags, &node.missing_left)
        if node.n_surrogates < 0:
            return NO_MEMORY
    return OK


cdef int split(TreeBuilder *builder, PendingNode *pending) noexcept nogil:
    """Make the split that was found; children that may be split are pushed on the stack. They may take the node's
    histogram, which is then NULL."""
    cdef const PresortedTable *table = builder.table
    cdef SampleArena *arena = builder.arenas[pending.arena]
    cdef Py_ssize_t first, second, m_left, n_sums = builder.criterion.n_sums
    cdef PendingNode left, right
    cdef EntryMove move
    cdef bint left_final, right_final
    cdef int status, kept
    cdef Node *node
    status = set_sides(builder, pending)
    if status != OK:
        return status
    m_left = partition_rows(builder, pending)
    first, second = new_node(builder), new_node(builder)
    if first < 0 or second < 0:
        return NO_MEMORY
    describe_children(builder, arena, pending, m_left, first, second)
    node = builder.nodes + pending.node
    if not is_significant(builder, pending.node, first):
        node.feature, node.gain, node.subset, node.n_surrogates = -1, 0, -1, 0
        builder.n_nodes -= 2
        return OK
    node.left, node.right = <unsigned int> first, <unsigned int> second
    if not builder.rules.missing_apart:      # there it is the side of most known rows
        if has_missing(builder, pending):
            node.missing_left = pending.found.missing_left
        else:
            node.missing_left = builder.sums[first * n_sums] >= builder.sums[second * n_sums]
    left = right = pending[0]
    left.node, right.node = first, second
    left.depth = right.depth = pending.depth + 1
    left.m, right.m = m_left, pending.m - m_left
    left.histogram = right.histogram = NULL
    left.known = right.known = NULL
    left.key, right.key = mixed_key(pending.key ^ 1), mixed_key(pending.key ^ 2)
    set_bounds(builder, pending, &left, &right)
    left_final = is_final(builder, first, left.depth)
    right_final = is_final(builder, second, right.depth)
    if left_final and right_final:
        return OK
    kept = 1 if left_final else 0 if right_final else -1
    if pending.known != NULL:
        left.known = <uint32_t *> malloc(table.n_ordered * sizeof(uint32_t)) if not left_final else NULL
        right.known = <uint32_t *> malloc(table.n_ordered * sizeof(uint32_t)) if not right_final else NULL
        if (left.known == NULL and not left_final) or (right.known == NULL and not right_final):
            free(left.known)
            free(right.known)
            return NO_MEMORY
    right.start = pending.start + m_left
    # both lists of rows are there
    status = share_histogram(builder, pending, &left, &right, left_final, right_final)
    move.builder, move.pending, move.left, move.right, move.kept = builder, pending, &left, &right, kept
    move_columns(&move)
    if arena.own_rows:
        move_list(arena.rows + pending.start, pending.m, m_left, kept)
    if builder.criterion.sorts_targets:
        move_list(arena.order[table.n_ordered] + pending.start, pending.m, m_left, kept)
    right.start = pending.start + (m_left if kept < 0 else 0)
    return push_children(builder, &left, &right, left_final, right_final, status)


cdef int push_children(TreeBuilder *builder, PendingNode *left, PendingNode *right, bint left_final, bint right_final,
                       int status) noexcept nogil:
    """Put the children that may be split on the stack; what belongs to one that cannot be put there is freed."""
    cdef PendingNode *child
    cdef int side
    for side in range(2):
        child = left if side else right
        if status == OK and not (left_final if side else right_final):
            status = push(&builder.stack, &builder.n_stack, &builder.stack_capacity, child)
            if status == OK:
                continue
        drop_histogram(builder, child.histogram)
        free(child.known)
    return status


cdef bint has_missing(const TreeBuilder *builder, const PendingNode *pending) noexcept nogil:
    """Whether the split's column is missing in some row of the node."""
    cdef const PresortedTable *table = builder.table
    cdef Py_ssize_t place = table.place[pending.column], i, bin
    cdef const SampleArena *arena = builder.arenas[pending.arena]
    cdef const uint32_t *rows = arena.rows + pending.start
    if not table.missing[pending.column]:
        return False
    if place >= 0:
        return pending.known[place] < pending.m
    for i in range(pending.m):
        bin = (rows[i] & table.id_mask) * table.n_coded - 1 - place
        bin = (<const uint16_t *> arena.codes)[bin] if table.wide else (<const uint8_t *> arena.codes)[bin]
        if bin == table.n_bins[-1 - place] - 1:
            return True
    return False


cdef Py_ssize_t partition_rows(TreeBuilder *builder, const PendingNode *pending) noexcept nogil:
    """Left rows before right ones in the list of rows, and in that of targets; gives how many are left."""
    cdef const PresortedTable *table = builder.table
    cdef SampleArena *arena = builder.arenas[pending.arena]
    cdef uint32_t *room = builder.scratch[0].entries
    cdef Py_ssize_t m_left
    if not arena.own_rows and is_parted(builder, pending, 0):
        m_left = pending.found.at
        arena.rows[pending.start + m_left] |= DIFFERS
    else:
        m_left = partition(arena.rows + pending.start, pending.m, pending.m, arena.side, table.id_mask,
                           not arena.own_rows and table.tied[0], room)
    if builder.criterion.sorts_targets and arena.rows != arena.order[table.n_ordered]:
        partition(arena.order[table.n_ordered] + pending.start, pending.m, pending.m, arena.side, table.id_mask, False,
                  room)
    return m_left


cdef double value_for_bounds(const TreeBuilder *builder, Py_ssize_t number) noexcept nogil:
    """What must rise or fall: the target's mean or median, or the share of the second class."""
    cdef const double *sums = builder.sums + number * builder.criterion.n_sums
    return sums[2] / sums[0] if builder.criterion.of_classes else builder.nodes[number].value


cdef void set_bounds(TreeBuilder *builder, const PendingNode *pending, PendingNode *left,
                     PendingNode *right) noexcept nogil:
    """A monotone split leaves its children on different sides of the middle of their values; all keep their bounds."""
    if builder.rules.monotone == NULL:
        return
    if builder.rules.monotone[pending.column]:
        part_bounds(builder, pending, left, right)
    keep_within(builder, left)
    keep_within(builder, right)


cdef void keep_within(TreeBuilder *builder, const PendingNode *pending) noexcept nogil:
    """Cut a node's value off at its bounds: splits on free columns may lead beyond them."""
    cdef Node *node = builder.nodes + pending.node
    node.value = min(max(value_for_bounds(builder, pending.node), pending.low), pending.high)


cdef void part_bounds(TreeBuilder *builder, const PendingNode *pending, PendingNode *left,
                      PendingNode *right) noexcept nogil:
    """The middle of the children's values is a bound of both."""
    cdef double middle = (value_for_bounds(builder, left.node) + value_for_bounds(builder, right.node)) / 2
    if builder.rules.monotone[pending.column] > 0:
        left.high = right.low = middle
    else:
        left.low = right.high = middle
