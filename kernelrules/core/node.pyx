"""A node of a growing tree: its sums, its loss, and its best split.

Sums, loss and value come from the node's rows (`describe`), so they are the same however the tree came here. The best
split is the best of the columns' (`find_split`), each scanned by one thread; of equal ones that of the lowest column.

Invariant: what a node finds depends on its rows only.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, frexp, ldexp, log, log2
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from kernelrules.core.criteria cimport (
    ABSOLUTE, GAIN_RATIO, POISSON, SQUARED, Criterion, class_loss, gain_of, has_exact_scores, score_scale,
)
from kernelrules.core.lists cimport more_room
from kernelrules.core.presort cimport DIFFERS, Arena, Table
from kernelrules.core.scan cimport NO_CUT, Found, View, cell_size, fill_histogram, is_packed, scan_column, scan_columns
from kernelrules.core.status cimport NO_MEMORY, OK, STOPPED

cdef enum:
    DIGITS = 43             # bits of a score that are trusted where sums are rounded


# ---- lists that grow -------------------------------------------------------------------------------------------

cdef Py_ssize_t new_node(Grower *grower) noexcept nogil:
    """Number of one more node, a leaf until it is split; -1 if there is no memory."""
    cdef Py_ssize_t n_sums = grower.criterion.n_sums, room = grower.room
    cdef void *longer
    cdef Node *node
    if grower.n_nodes == grower.room:
        longer = more_room(grower.nodes, &room, grower.n_nodes + 1, sizeof(Node))
        if longer == NULL:
            return -1
        grower.nodes = <Node *> longer
        longer = realloc(grower.sums, room * n_sums * sizeof(double))
        if longer == NULL:
            return -1
        grower.sums = <double *> longer
        grower.room = room
    node = grower.nodes + grower.n_nodes
    memset(node, 0, sizeof(Node))
    node.feature = node.task = -1
    node.subset = -1
    grower.n_nodes += 1
    return grower.n_nodes - 1


cdef int push(Work **list, Py_ssize_t *n, Py_ssize_t *room, const Work *work) noexcept nogil:
    cdef void *longer
    if n[0] == room[0]:
        longer = more_room(list[0], room, n[0] + 1, sizeof(Work))
        if longer == NULL:
            return NO_MEMORY
        list[0] = <Work *> longer
    list[0][n[0]] = work[0]
    n[0] += 1
    return OK


cdef void *new_histogram(Grower *grower) noexcept nogil:
    """Memory for sums by bin, used before where possible: fresh memory is slow."""
    cdef const Table *table = grower.table
    cdef bint weighted = grower.arenas[0].w != NULL
    cdef Py_ssize_t size = 1 if is_packed(grower.criterion, weighted) else cell_size(grower.criterion, weighted)
    if grower.n_spare:
        grower.n_spare -= 1
        return grower.spare[grower.n_spare]
    return malloc(table.n_bins_all * size * 8)


cdef void drop_histogram(Grower *grower, void *histogram) noexcept nogil:
    cdef void *longer
    if histogram == NULL:
        return
    if grower.n_spare == grower.spare_room:
        longer = more_room(grower.spare, &grower.spare_room, grower.n_spare + 1, sizeof(void *))
        if longer == NULL:
            free(histogram)
            return
        grower.spare = <void **> longer
    grower.spare[grower.n_spare] = histogram
    grower.n_spare += 1


# ---- what a node is --------------------------------------------------------------------------------------------

cdef void describe_classes(const Criterion *criterion, const Table *table, const Arena *arena, const uint32_t *rows,
                           Py_ssize_t m, double *sums, Node *node) noexcept nogil:
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
    judge_classes(criterion, sums, node)


cdef void judge_classes(const Criterion *criterion, const double *sums, Node *node) noexcept nogil:
    """Whether there is one class only, and the loss."""
    cdef Py_ssize_t k, present = 0
    for k in range(1, criterion.n_sums):
        present += sums[k] > 0
    node.pure = present == 1
    node.loss = 0 if node.pure else max(0.0, class_loss(criterion, sums))


cdef void describe_targets(const Criterion *criterion, const Table *table, const Arena *arena, const uint32_t *rows,
                           Py_ssize_t m, double *sums, Node *node) noexcept nogil:
    """Sums of the targets, and the loss, in a second look: from their squares it would lose digits."""
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
            if criterion.kind == POISSON:
                loss += weight * (off * log(off / mean) - (off - mean) if off > 0 else mean)
            else:
                loss += weight * (off - mean) * (off - mean)
    node.loss = max(0.0, loss)
    node.value = sums[1] / sums[0]


cdef void describe_sorted(const Table *table, const Arena *arena, const uint32_t *by_target, Py_ssize_t m,
                          double *sums, Node *node) noexcept nogil:
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


cdef void describe(const Grower *grower, const Arena *arena, Py_ssize_t start, Py_ssize_t m,
                   Py_ssize_t number) noexcept nogil:
    """Sums, loss and value of a node, from its rows."""
    cdef Node *node = grower.nodes + number
    cdef double *sums = grower.sums + number * grower.criterion.n_sums
    node.n = <unsigned int> m
    if grower.criterion.classes:
        describe_classes(grower.criterion, grower.table, arena, arena.rows + start, m, sums, node)
    elif grower.criterion.kind == ABSOLUTE:
        describe_sorted(grower.table, arena, arena.order[grower.table.n_ordered] + start, m, sums, node)
    else:
        describe_targets(grower.criterion, grower.table, arena, arena.rows + start, m, sums, node)


cdef void describe_children(const Grower *grower, const Arena *arena, const Work *work, Py_ssize_t m_left,
                            Py_ssize_t first, Py_ssize_t second) noexcept nogil:
    """Sums, losses and values of two children; where weights of classes are exact, of the larger by difference."""
    cdef Py_ssize_t m_right = work.m - m_left, n_sums = grower.criterion.n_sums, k
    cdef Py_ssize_t small = first if m_left <= m_right else second, large = second if m_left <= m_right else first
    cdef const double *all = grower.sums + work.node * n_sums
    if not (grower.criterion.classes and grower.limits.exact):
        describe(grower, arena, work.start, m_left, first)
        describe(grower, arena, work.start + m_left, m_right, second)
        return
    describe(grower, arena, work.start if small == first else work.start + m_left, min(m_left, m_right), small)
    for k in range(n_sums):
        grower.sums[large * n_sums + k] = all[k] - grower.sums[small * n_sums + k]
    grower.nodes[large].n = <unsigned int> max(m_left, m_right)
    judge_classes(grower.criterion, grower.sums + large * n_sums, grower.nodes + large)


cdef bint is_final(const Grower *grower, Py_ssize_t number, Py_ssize_t depth) noexcept nogil:
    """Whether a node is a leaf without a look at its columns."""
    cdef const Node *node = grower.nodes + number
    cdef const Limits *limits = grower.limits
    return (node.pure or depth >= limits.max_depth or node.n < limits.min_split or node.n < 2 * limits.min_leaf
            or grower.sums[number * grower.criterion.n_sums] < 2 * limits.min_weight)


# ---- finding a node's split ------------------------------------------------------------------------------------

cdef uint64_t mixed(uint64_t key) noexcept nogil:
    """A number that looks random, from any other (a finaliser of multiplications and shifts)."""
    key += <uint64_t> 0x9e3779b97f4a7c15
    key = (key ^ (key >> 30)) * <uint64_t> 0xbf58476d1ce4e5b9
    key = (key ^ (key >> 27)) * <uint64_t> 0x94d049bb133111eb
    return key ^ (key >> 31)


cdef void draw_columns(Grower *grower, uint64_t key) noexcept nogil:
    """All columns in an order that depends on the node alone; those to look at come first."""
    cdef Py_ssize_t p = grower.table.n_columns, j, other, column
    for j in range(p):
        grower.columns[j] = j
    if grower.limits.max_features == p:
        return
    for j in range(p - 1):
        key = mixed(key)
        other = j + <Py_ssize_t> (key % <uint64_t> (p - j))
        column = grower.columns[j]
        grower.columns[j] = grower.columns[other]
        grower.columns[other] = column


cdef void view_of(Grower *grower, const Work *work, View *view) noexcept nogil:
    """What the scanner is told of a node."""
    cdef const Arena *arena = grower.arenas[work.arena]
    cdef const double *sums = grower.sums + work.node * grower.criterion.n_sums
    cdef const uint32_t *by_target
    cdef Py_ssize_t i
    cdef uint32_t row
    cdef int exponent
    view.table, view.arena, view.start, view.m = grower.table, arena, work.start, work.m
    view.sums, view.shift = sums, grower.shift
    view.known, view.histogram = work.known, work.histogram
    view.low, view.high = work.low, work.high
    view.unit = 0
    if not (grower.limits.exact and has_exact_scores(grower.criterion)):    # gains lie between 0 and the loss
        frexp(grower.nodes[work.node].loss * score_scale(grower.criterion, sums[0]), &exponent)
        view.unit = ldexp(1, exponent - DIGITS)
    view.rank, view.sorted_y, view.sorted_w = NULL, NULL, NULL
    if grower.criterion.kind == ABSOLUTE:
        by_target = arena.order[grower.table.n_ordered] + work.start
        grower.sorted_y[0] = 0              # the end of the list, which may be read but does not count
        for i in range(work.m):
            row = by_target[i] & grower.table.id_mask
            grower.rank[row] = <uint32_t> i
            grower.sorted_y[i + 1] = arena.y[row]
            if arena.w != NULL:
                grower.sorted_w[i] = arena.w[row]
        view.rank, view.sorted_y = grower.rank, grower.sorted_y + 1
        if arena.w != NULL:
            view.sorted_w = grower.sorted_w


cdef void centre(Grower *grower, View *view) noexcept nogil:
    """Take the means off the targets of a node, where that does not cost exactness."""
    cdef const Criterion *criterion = grower.criterion
    cdef double *centred = grower.shift + criterion.n_sums
    cdef Py_ssize_t k
    memcpy(centred, view.sums, criterion.n_sums * sizeof(double))
    memset(grower.shift, 0, criterion.n_sums * sizeof(double))
    if criterion.kind == SQUARED and not grower.limits.exact:
        for k in range(1, criterion.n_sums):
            grower.shift[k - 1] = view.sums[k] / view.sums[0]
            centred[k] = view.sums[k] - grower.shift[k - 1] * view.sums[0]
    view.sums = centred


cdef Py_ssize_t scan_range(Grower *grower, const View *view, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
    """Columns from `first` to `end` of those that were drawn, by the threads that pay; gives where it stopped.

    Columns in ascending order need not be looked at behind a perfect split: of equal ones the lowest is taken.
    """
    cdef Py_ssize_t j
    cdef bint may_stop = (grower.limits.max_features == grower.table.n_columns and not grower.rules.missing_apart
                          and grower.criterion.kind != GAIN_RATIO)
    cdef int n_threads = grower.n_threads if view.m * (end - first) >= SHARED else 1
    if n_threads == 1:
        return scan_columns(grower.criterion, grower.rules, view, grower.columns, first, end, may_stop,
                            grower.scratch[0], grower.found)
    for j in prange(first, end, num_threads=n_threads, schedule="dynamic", chunksize=1):
        scan_column(grower.criterion, grower.rules, view, grower.columns[j], grower.scratch[threadid()],
                    grower.found + grower.columns[j], NULL)
    return end


cdef double ratio_of(const Found *found) noexcept nogil:
    """Gain over split information: how many bits the split itself takes."""
    cdef double right = found.weight - found.left_weight
    cdef double information = (found.weight * log2(found.weight) - found.left_weight * log2(found.left_weight)
                               - right * log2(right))
    return found.score / information if information > 0 else 0


cdef Py_ssize_t choose(Grower *grower, Py_ssize_t n_drawn) noexcept nogil:
    """The column with the best split, the lowest of equal ones; -1 if there is none."""
    cdef Py_ssize_t best = -1, j, column, n_valid = 0
    cdef double highest = -1, second = 0, average = 0, score
    cdef const Found *found
    cdef bint by_ratio = grower.criterion.kind == GAIN_RATIO
    if by_ratio:
        for j in range(n_drawn):
            found = grower.found + grower.columns[j]
            if found.score > NO_CUT:
                average += found.score
                n_valid += 1
        average = average / n_valid * (1 - 1e-10) if n_valid else 0     # not lost to rounding where all are equal
    for j in range(n_drawn):
        column = grower.columns[j]
        found = grower.found + column
        if found.score == NO_CUT or (by_ratio and found.score < average):
            continue
        if by_ratio:
            score = ratio_of(found)
        elif grower.rules.missing_apart:            # columns do not have the same rows
            score = gain_of(grower.criterion, found.score, found.weight)
        else:
            score = found.score
        if (score > highest or (score == highest and (found.second > second
                                                      or (found.second == second and column < best)))):
            best, highest, second = column, score, found.second
    return best


cdef int find_split(Grower *grower, Work *work) noexcept nogil:
    """The best split of a node, left in `work`; its column is -1 if there is none."""
    cdef const Table *table = grower.table
    cdef Py_ssize_t p = table.n_columns, n_drawn = grower.limits.max_features, k, n_shares
    cdef View view
    cdef int n_threads
    view_of(grower, work, &view)
    centre(grower, &view)
    if table.n_coded and work.m > FEW and work.histogram == NULL:
        work.histogram = new_histogram(grower)
        if work.histogram == NULL:
            return NO_MEMORY
        n_threads = grower.n_threads if work.m * table.n_coded >= SHARED else 1
        n_shares = min(n_threads, table.n_coded)
        if n_shares == 1:
            fill_histogram(grower.criterion, &view, 0, table.n_coded, work.histogram)
        else:
            for k in prange(n_shares, num_threads=n_threads, schedule="static"):
                fill_histogram(grower.criterion, &view, k * table.n_coded // n_shares,
                               (k + 1) * table.n_coded // n_shares, work.histogram)
    view.histogram = work.histogram
    draw_columns(grower, work.key)
    n_drawn = scan_range(grower, &view, 0, n_drawn)
    if grower.rules.stop != NULL and grower.rules.stop[0]:
        return STOPPED
    work.column = choose(grower, n_drawn)
    while work.column < 0 and n_drawn < p:          # none of those drawn can be split: draw another
        scan_range(grower, &view, n_drawn, n_drawn + 1)
        n_drawn += 1
        work.column = choose(grower, n_drawn)
    if work.column >= 0:
        work.found = grower.found[work.column]
        work.gain = gain_of(grower.criterion, work.found.raw, work.found.weight)
        if work.gain / grower.limits.weight < grower.limits.min_gain:
            work.column = -1
    return OK
