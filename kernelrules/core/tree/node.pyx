"""A node of a growing tree: its sums, its loss, and its best split.

Sums, loss and value are computed from the node's rows (`describe`), whatever the order of growth. Each column is
scanned by one thread; `find_split` takes the best of the columns' splits, and of equal ones that of the lowest column.

Invariant: a node's split depends on its rows only.
"""

from libc.math cimport INFINITY, frexp, ldexp, log2
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from kernelrules.core.tree.criteria cimport (
    SQUARED_ERROR, Criterion, gain_of, row_loss, score_scale,
)
from kernelrules.core.base.growable cimport more_room
from kernelrules.core.tree.presort cimport DIFFERS, SampleArena, PresortedTable
from kernelrules.core.tree.scan cimport NO_CUT, BestSplit, NodeView, cell_size, fill_histogram, is_packed, scan_columns
from kernelrules.core.base.status cimport NO_MEMORY, OK, STOPPED
from kernelrules.core.base.team cimport run_team, status_so_far

cdef enum:
    SCORE_BITS = 43             # of a score that are kept if sums are rounded: equal splits then have equal scores
    MAX_COLUMNS_PER_COUNT = 4   # coded columns that a thread counts in one pass over the rows


# ---- lists that grow -------------------------------------------------------------------------------------------

cdef Py_ssize_t new_node(TreeBuilder *builder) noexcept nogil:
    """Number of one more node, a leaf until it is split; -1 if there is no memory."""
    cdef Py_ssize_t n_sums = builder.criterion.n_sums, room = builder.room
    cdef void *longer
    cdef Node *node
    if builder.n_nodes == builder.room:
        longer = more_room(builder.nodes, &room, builder.n_nodes + 1, sizeof(Node))
        if longer == NULL:
            return -1
        builder.nodes = <Node *> longer
        longer = realloc(builder.sums, room * n_sums * sizeof(double))
        if longer == NULL:
            return -1
        builder.sums = <double *> longer
        builder.room = room
    node = builder.nodes + builder.n_nodes
    memset(node, 0, sizeof(Node))
    node.feature = node.task = -1
    node.subset = -1
    builder.n_nodes += 1
    return builder.n_nodes - 1


cdef int push(PendingNode **list, Py_ssize_t *n, Py_ssize_t *room, const PendingNode *pending) noexcept nogil:
    cdef void *longer
    if n[0] == room[0]:
        longer = more_room(list[0], room, n[0] + 1, sizeof(PendingNode))
        if longer == NULL:
            return NO_MEMORY
        list[0] = <PendingNode *> longer
    list[0][n[0]] = pending[0]
    n[0] += 1
    return OK


cdef void *new_histogram(TreeBuilder *builder) noexcept nogil:
    """Return memory for sums by bin, reused if possible: fresh memory is slow."""
    cdef const PresortedTable *table = builder.table
    cdef bint weighted = builder.arenas[0].w != NULL
    cdef Py_ssize_t size = 1 if is_packed(builder.criterion, weighted) else cell_size(builder.criterion, weighted)
    if builder.n_spare:
        builder.n_spare -= 1
        return builder.spare[builder.n_spare]
    return malloc(table.n_bins_all * size * 8)


cdef void drop_histogram(TreeBuilder *builder, void *histogram) noexcept nogil:
    cdef void *longer
    if histogram == NULL:
        return
    if builder.n_spare == builder.spare_capacity:
        longer = more_room(builder.spare, &builder.spare_capacity, builder.n_spare + 1, sizeof(void *))
        if longer == NULL:
            free(histogram)
            return
        builder.spare = <void **> longer
    builder.spare[builder.n_spare] = histogram
    builder.n_spare += 1


# ---- what a node is --------------------------------------------------------------------------------------------

cdef void describe_classes(const Criterion *criterion, const PresortedTable *table, const SampleArena *arena,
                           const uint32_t *rows, Py_ssize_t m, double *sums, Node *node) noexcept nogil:
    """Weights of the classes, and the loss."""
    cdef Py_ssize_t i, ones = 0
    cdef uint32_t entry
    cdef double weight
    memset(sums, 0, criterion.n_sums * sizeof(double))
    if arena.w == NULL and criterion.n_sums == 3:
        for i in range(m):
            ones += rows[i] >> table.shift & 1
        sums[0], sums[1], sums[2] = m, m - ones, ones
    else:
        for i in range(m):
            entry = rows[i]
            weight = arena.w[entry & table.id_mask] if arena.w != NULL else 1
            sums[0] += weight
            sums[1 + ((entry & ~DIFFERS) >> table.shift)] += weight
    set_class_loss(criterion, sums, node)


cdef void set_class_loss(const Criterion *criterion, const double *sums, Node *node) noexcept nogil:
    """Whether there is one class only, and the loss."""
    cdef Py_ssize_t k, present = 0
    for k in range(1, criterion.n_sums):
        present += sums[k] > 0
    node.pure = present == 1
    node.loss = 0 if node.pure else max(0.0, criterion.row.loss(criterion, sums))


cdef void describe_targets(const Criterion *criterion, const PresortedTable *table, const SampleArena *arena,
                           const uint32_t *rows, Py_ssize_t m, double *sums, Node *node) noexcept nogil:
    """Sums of the targets, and the loss in a second pass: computed from their squares it would lose digits."""
    cdef Py_ssize_t i, k, n = criterion.n_sums - 1
    cdef const double *y
    cdef double weight, mean, off, total, loss = 0, lowest, highest
    cdef uint32_t id_mask = table.id_mask
    node.pure = True
    sums[0] = 0
    for i in range(m):
        sums[0] += arena.w[rows[i] & id_mask] if arena.w != NULL else 1
    for k in range(n):
        y = arena.y + k
        total = 0
        lowest, highest = INFINITY, -INFINITY
        for i in range(m):
            off = y[(rows[i] & id_mask) * n]
            lowest, highest = min(lowest, off), max(highest, off)
            total += (arena.w[rows[i] & id_mask] if arena.w != NULL else 1) * off
        sums[1 + k] = total
        if lowest == highest:
            continue
        node.pure = False
        mean = total / sums[0]
        for i in range(m):
            weight = arena.w[rows[i] & id_mask] if arena.w != NULL else 1
            off = y[(rows[i] & id_mask) * n]
            loss += row_loss(criterion.row, weight, off, mean)
    node.loss = max(0.0, loss)
    node.value = sums[1] / sums[0]


cdef void describe_sorted(const PresortedTable *table, const SampleArena *arena, const uint32_t *by_target,
                          Py_ssize_t m, double *sums, Node *node) noexcept nogil:
    """Median and absolute loss, of rows in the order of their targets.

    The lowest target up to which lies half of the weight is the node's value, which constraints compare. Where that is
    exactly half, any target up to the next is a median: the middle comes to the place of the sum.
    """
    cdef uint32_t id_mask = table.id_mask
    cdef Py_ssize_t i
    cdef double weight = 0, below = 0, of_row, median = 0, loss = 0
    cdef bint reached = False
    sums[0] = 0
    for i in range(m):
        sums[0] += arena.w[by_target[i] & id_mask] if arena.w != NULL else 1
    for i in range(m):
        of_row = arena.w[by_target[i] & id_mask] if arena.w != NULL else 1
        weight += of_row
        if not reached and 2 * weight >= sums[0]:
            median, reached = arena.y[by_target[i] & id_mask], True
            sums[1] = median
            if 2 * weight == sums[0] and i + 1 < m:
                sums[1] = (median + arena.y[by_target[i + 1] & id_mask]) / 2
            loss += median * (weight - of_row) - below
        elif not reached:
            below += of_row * arena.y[by_target[i] & id_mask]
        else:
            loss += of_row * (arena.y[by_target[i] & id_mask] - median)
    node.pure = arena.y[by_target[0] & id_mask] == arena.y[by_target[m - 1] & id_mask]
    node.value, node.loss = median, 0 if node.pure else max(0.0, loss)


cdef void describe(const TreeBuilder *builder, const SampleArena *arena, Py_ssize_t start, Py_ssize_t m,
                   Py_ssize_t number) noexcept nogil:
    """Sums, loss and value of a node, from its rows."""
    cdef Node *node = builder.nodes + number
    cdef double *sums = builder.sums + number * builder.criterion.n_sums
    node.n = <unsigned int> m
    if builder.criterion.of_classes:
        describe_classes(builder.criterion, builder.table, arena, arena.rows + start, m, sums, node)
    elif builder.criterion.sorts_targets:
        describe_sorted(builder.table, arena, arena.order[builder.table.n_ordered] + start, m, sums, node)
    else:
        describe_targets(builder.criterion, builder.table, arena, arena.rows + start, m, sums, node)


cdef void describe_children(const TreeBuilder *builder, const SampleArena *arena, const PendingNode *pending,
                            Py_ssize_t m_left, Py_ssize_t first, Py_ssize_t second) noexcept nogil:
    """Sums, losses and values of two children; where weights of classes are exact, of the larger by difference."""
    cdef Py_ssize_t m_right = pending.m - m_left, n_sums = builder.criterion.n_sums, k
    cdef Py_ssize_t small = first if m_left <= m_right else second, large = second if m_left <= m_right else first
    cdef const double *all = builder.sums + pending.node * n_sums
    if not (builder.criterion.of_classes and builder.limits.exact):
        describe(builder, arena, pending.start, m_left, first)
        describe(builder, arena, pending.start + m_left, m_right, second)
        return
    describe(builder, arena, pending.start if small == first else pending.start + m_left, min(m_left, m_right), small)
    for k in range(n_sums):
        builder.sums[large * n_sums + k] = all[k] - builder.sums[small * n_sums + k]
    builder.nodes[large].n = <unsigned int> max(m_left, m_right)
    set_class_loss(builder.criterion, builder.sums + large * n_sums, builder.nodes + large)


cdef bint is_final(const TreeBuilder *builder, Py_ssize_t number, Py_ssize_t depth) noexcept nogil:
    """Whether a node is a leaf whatever its columns are."""
    cdef const Node *node = builder.nodes + number
    cdef const GrowthLimits *limits = builder.limits
    return (node.pure or depth >= limits.max_depth or node.n < limits.min_split or node.n < 2 * limits.min_leaf
            or builder.sums[number * builder.criterion.n_sums] < 2 * limits.min_weight)


# ---- finding a node's split ------------------------------------------------------------------------------------

cdef uint64_t mixed_key(uint64_t key) noexcept nogil:
    """A number that looks random, from any other (a finaliser of multiplications and shifts)."""
    key += <uint64_t> 0x9e3779b97f4a7c15
    key = (key ^ (key >> 30)) * <uint64_t> 0xbf58476d1ce4e5b9
    key = (key ^ (key >> 27)) * <uint64_t> 0x94d049bb133111eb
    return key ^ (key >> 31)


cdef void draw_columns(TreeBuilder *builder, uint64_t key) noexcept nogil:
    """Order the columns by the node's key alone; those to scan come first."""
    cdef Py_ssize_t p = builder.table.n_columns, j, other, column
    for j in range(p):
        builder.columns[j] = j
    if builder.limits.max_features == p:
        return
    for j in range(p - 1):
        key = mixed_key(key)
        other = j + <Py_ssize_t> (key % <uint64_t> (p - j))
        column = builder.columns[j]
        builder.columns[j] = builder.columns[other]
        builder.columns[other] = column


cdef void set_view(TreeBuilder *builder, const PendingNode *pending, NodeView *view) noexcept nogil:
    """Set the scanner's view of a node."""
    cdef const SampleArena *arena = builder.arenas[pending.arena]
    cdef const double *sums = builder.sums + pending.node * builder.criterion.n_sums
    cdef const uint32_t *by_target
    cdef Py_ssize_t i
    cdef uint32_t row
    cdef int exponent
    view.table, view.arena, view.start, view.m = builder.table, arena, pending.start, pending.m
    view.sums, view.shift = sums, builder.shift
    view.known, view.histogram = pending.known, pending.histogram
    view.low, view.high = pending.low, pending.high
    view.unit = 0
    if not (builder.limits.exact and builder.criterion.row.has_exact_scores):    # gains lie between 0 and the loss
        frexp(builder.nodes[pending.node].loss * score_scale(builder.criterion, sums[0]), &exponent)
        view.unit = ldexp(1, exponent - SCORE_BITS)
    view.rank, view.sorted_y, view.sorted_w = NULL, NULL, NULL
    if builder.criterion.sorts_targets:
        by_target = arena.order[builder.table.n_ordered] + pending.start
        builder.sorted_y[0] = 0              # the end of the list, which may be read but does not count
        for i in range(pending.m):
            row = by_target[i] & builder.table.id_mask
            builder.rank[row] = <uint32_t> i
            builder.sorted_y[i + 1] = arena.y[row]
            if arena.w != NULL:
                builder.sorted_w[i] = arena.w[row]
        view.rank, view.sorted_y = builder.rank, builder.sorted_y + 1
        if arena.w != NULL:
            view.sorted_w = builder.sorted_w


cdef void centre(TreeBuilder *builder, NodeView *view) noexcept nogil:
    """Subtract the means from the targets of a node, unless sums are exact."""
    cdef const Criterion *criterion = builder.criterion
    cdef double *centred = builder.shift + criterion.n_sums
    cdef Py_ssize_t k
    memcpy(centred, view.sums, criterion.n_sums * sizeof(double))
    memset(builder.shift, 0, criterion.n_sums * sizeof(double))
    if criterion.number == SQUARED_ERROR and not builder.limits.exact:
        for k in range(1, criterion.n_sums):
            builder.shift[k - 1] = view.sums[k] / view.sums[0]
            centred[k] = view.sums[k] - builder.shift[k - 1] * view.sums[0]
    view.sums = centred


cdef struct ColumnSearch:                 # for a node's split, of several threads
    const TreeBuilder *builder
    const NodeView *view
    void *histogram


cdef void fill_column_range(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const ColumnSearch *search = <const ColumnSearch *> context
    fill_histogram(search.builder.criterion, search.view, first, last, search.histogram)


cdef void scan_column_range(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const ColumnSearch *search = <const ColumnSearch *> context
    cdef const TreeBuilder *builder = search.builder
    scan_columns(builder.criterion, builder.rules, search.view, builder.columns, first, last, False,
                 builder.scratch[worker], builder.found)


cdef Py_ssize_t scan_range(TreeBuilder *builder, const NodeView *view, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
    """Columns from `first` to `end` of those that were drawn, by the threads that pay; gives where it stopped.

    Columns in ascending order need not be looked at behind a perfect split: of equal ones the lowest is taken.
    """
    cdef ColumnSearch search
    cdef bint may_stop = (builder.limits.max_features == builder.table.n_columns and not builder.rules.missing_apart
                          and not builder.criterion.row.by_ratio)
    cdef int n_threads = builder.n_threads if view.m * (end - first) >= MIN_SHARED_ENTRIES else 1
    if n_threads == 1:
        return scan_columns(builder.criterion, builder.rules, view, builder.columns, first, end, may_stop,
                            builder.scratch[0], builder.found)
    search.builder, search.view, search.histogram = builder, view, NULL
    run_team(first, end, 0, n_threads, scan_column_range, &search)
    return end


cdef double ratio_of(const BestSplit *found) noexcept nogil:
    """Gain over split information, the entropy of the two sides (Quinlan 1993)."""
    cdef double right = found.weight - found.left_weight
    cdef double information = (found.weight * log2(found.weight) - found.left_weight * log2(found.left_weight)
                               - right * log2(right))
    return found.score / information if information > 0 else 0


cdef Py_ssize_t best_column(TreeBuilder *builder, Py_ssize_t n_drawn) noexcept nogil:
    """The column with the best split, the lowest of equal ones; -1 if there is none."""
    cdef Py_ssize_t best = -1, j, column, n_valid = 0
    cdef double highest = -1, second = 0, average = 0, score
    cdef const BestSplit *found
    cdef bint by_ratio = builder.criterion.row.by_ratio
    if by_ratio:
        for j in range(n_drawn):
            found = builder.found + builder.columns[j]
            if found.score > NO_CUT:
                average += found.score
                n_valid += 1
        average = average / n_valid * (1 - 1e-10) if n_valid else 0     # not lost to rounding where all are equal
    for j in range(n_drawn):
        column = builder.columns[j]
        found = builder.found + column
        if found.score == NO_CUT or (by_ratio and found.score < average):
            continue
        if by_ratio:
            score = ratio_of(found)
        elif builder.rules.missing_apart:            # columns do not have the same rows
            score = gain_of(builder.criterion, found.score, found.weight)
        else:
            score = found.score
        if (score > highest or (score == highest and (found.second > second
                                                      or (found.second == second and column < best)))):
            best, highest, second = column, score, found.second
    return best


cdef int find_split(TreeBuilder *builder, PendingNode *pending) noexcept nogil:
    """Find the best split of a node and store it in `pending`, with column -1 if there is none."""
    cdef const PresortedTable *table = builder.table
    cdef Py_ssize_t p = table.n_columns, n_drawn = builder.limits.max_features, share
    cdef NodeView view
    cdef ColumnSearch search
    set_view(builder, pending, &view)
    centre(builder, &view)
    if table.n_coded and pending.m > HISTOGRAM_MIN_ROWS and pending.histogram == NULL:
        pending.histogram = new_histogram(builder)
        if pending.histogram == NULL:
            return NO_MEMORY
        search.builder, search.view, search.histogram = builder, &view, pending.histogram
        share = max(<Py_ssize_t> 1, min(<Py_ssize_t> MAX_COLUMNS_PER_COUNT, table.n_coded // (2 * builder.n_threads)))
        run_team(0, table.n_coded, share, builder.n_threads if pending.m * table.n_coded >= MIN_SHARED_ENTRIES else 1,
                 fill_column_range, &search)
    view.histogram = pending.histogram
    draw_columns(builder, pending.key)
    n_drawn = scan_range(builder, &view, 0, n_drawn)
    if builder.rules.stop != NULL and status_so_far(builder.rules.stop):
        return STOPPED
    pending.column = best_column(builder, n_drawn)
    while pending.column < 0 and n_drawn < p:          # none of those drawn can be split: draw another
        scan_range(builder, &view, n_drawn, n_drawn + 1)
        n_drawn += 1
        pending.column = best_column(builder, n_drawn)
    if pending.column >= 0:
        pending.found = builder.found[pending.column]
        pending.gain = gain_of(builder.criterion, pending.found.raw, pending.found.weight)
        if pending.gain / builder.limits.weight < builder.limits.min_gain:
            pending.column = -1
    return OK
