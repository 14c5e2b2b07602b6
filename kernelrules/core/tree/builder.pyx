"""The loops over nodes: depth-first with a stack, best-first with a heap, and subtrees side by side.

A node that has become small gets its own arena (presort.part_of_arena), in which rows are numbered anew and everything
fits a cache. A subtree that one thread builds has its own builder, so threads share only what they read.

Invariant: the tree does not depend on the order in which nodes are split, nor on which thread splits them.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.tree.criteria cimport Criterion
from kernelrules.core.tree.node cimport (
    TreeBuilder, GrowthLimits, PendingNode, describe, drop_histogram, find_split, is_final, new_node, push,
)
from kernelrules.core.tree.presort cimport SampleArena, PresortedTable, free_arena, part_of_arena, value_of
from kernelrules.core.tree.scan cimport BestSplit, SplitRules, ScanBuffers
from kernelrules.core.tree.split cimport split
from kernelrules.core.base.status cimport NO_MEMORY, OK
from kernelrules.core.base.team cimport gather_status, run_team

cdef enum:
    ABSOLUTE_ERROR_COST = 10               # entries of vectorised loops that one of absolute error costs


# ---- the loops -------------------------------------------------------------------------------------------------

cdef void release(TreeBuilder *builder, PendingNode *pending) noexcept nogil:
    """Free what belongs to a finished node."""
    drop_histogram(builder, pending.histogram)
    free(pending.known)


cdef int enter_arena(TreeBuilder *builder, PendingNode *pending, Py_ssize_t limit) noexcept nogil:
    """Give a node that has become small its own arena; free the arenas of finished subtrees."""
    cdef SampleArena *whole = builder.arenas[pending.arena]
    cdef SampleArena *part
    cdef Py_ssize_t n_outputs = 0 if builder.criterion.of_classes else builder.criterion.n_sums - 1
    while builder.n_arenas - 1 > pending.arena:
        builder.n_arenas -= 1
        free_arena(builder.arenas[builder.n_arenas])
    if pending.m > limit or whole.n <= 2 * limit:
        return OK
    part = part_of_arena(builder.table, whole, pending.start, pending.m, n_outputs,
                         builder.number if pending.arena == 0 else whole.number)
    if part == NULL:
        return NO_MEMORY
    pending.arena, pending.start = builder.n_arenas, 0
    builder.arenas[builder.n_arenas] = part
    builder.n_arenas += 1
    return OK


cdef int build_depth_first(TreeBuilder *builder, Py_ssize_t budget) noexcept nogil:
    """Split nodes, depth-first, until none is left or so many entries have been worked on."""
    cdef PendingNode pending
    cdef int status = OK
    while status == OK and builder.n_stack and budget > 0:
        builder.n_stack -= 1
        pending = builder.stack[builder.n_stack]
        budget -= pending.m * builder.table.n_columns * builder.entry_cost + builder.node_cost
        if pending.m <= builder.max_subtree_rows:
            status = push(&builder.tasks, &builder.n_tasks, &builder.task_capacity, &pending)
            if status != OK:
                release(builder, &pending)
            builder.nodes[pending.node].task = <int> (builder.n_tasks - 1)
            continue
        status = enter_arena(builder, &pending, MAX_CACHED_ROWS)
        if status == OK:
            status = find_split(builder, &pending)
        if status == OK and pending.column >= 0:
            status = split(builder, &pending)
        release(builder, &pending)
    return status


cdef inline bint gains_more(const PendingNode *a, const PendingNode *b) noexcept nogil:
    return a.gain > b.gain or (a.gain == b.gain and a.node < b.node)


cdef int push_leaf(TreeBuilder *builder, PendingNode *pending) noexcept nogil:
    """Push a node that can be split onto the heap, ordered by gain; `tasks` is the heap of best-first growth."""
    cdef Py_ssize_t at = builder.n_tasks, above
    cdef int status = find_split(builder, pending)
    cdef PendingNode *heap
    if status != OK or pending.column < 0:
        release(builder, pending)
        return status
    status = push(&builder.tasks, &builder.n_tasks, &builder.task_capacity, pending)
    if status != OK:
        release(builder, pending)
        return status
    heap = builder.tasks
    while at > 0:
        above = (at - 1) // 2
        if not gains_more(pending, heap + above):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = pending[0]
    return OK


cdef void pop_best_leaf(TreeBuilder *builder, PendingNode *best) noexcept nogil:
    """Pop the node that gains most."""
    cdef PendingNode *heap = builder.tasks
    cdef PendingNode moved
    cdef Py_ssize_t at = 0, below, n
    best[0] = heap[0]
    builder.n_tasks -= 1
    n = builder.n_tasks
    moved = heap[n]
    while 2 * at + 1 < n:
        below = 2 * at + 1
        if below + 1 < n and gains_more(heap + below + 1, heap + below):
            below += 1
        if not gains_more(heap + below, &moved):
            break
        heap[at] = heap[below]
        at = below
    if n:
        heap[at] = moved


cdef int split_best_leaf(TreeBuilder *builder, Py_ssize_t *n_leaves) noexcept nogil:
    """Split the leaf that gains most, if there is one, and find the splits of its children, or of the root."""
    cdef PendingNode pending
    cdef int status = OK
    if builder.n_tasks:
        pop_best_leaf(builder, &pending)
        status = split(builder, &pending)
        release(builder, &pending)
        if builder.nodes[pending.node].feature >= 0:
            n_leaves[0] += 1
    while status == OK and builder.n_stack and n_leaves[0] < builder.limits.max_leaves:
        builder.n_stack -= 1
        pending = builder.stack[builder.n_stack]
        status = push_leaf(builder, &pending)
    return status


# ---- builders ---------------------------------------------------------------------------------------------------

cdef TreeBuilder *new_builder(const PresortedTable *table, const Criterion *criterion, const SplitRules *rules,
                              const GrowthLimits *limits, SampleArena *arena, bint own, ScanBuffers **scratch,
                              int n_threads) noexcept nogil:
    """Allocate a builder for an arena, which is freed with it if `own`. NULL: no memory; the arena is not freed."""
    cdef TreeBuilder *builder = <TreeBuilder *> calloc(1, sizeof(TreeBuilder))
    cdef Py_ssize_t widest = 1, k
    if builder == NULL:
        return NULL
    for k in range(table.n_coded):
        widest = max(widest, table.n_bins[k])
    builder.table, builder.criterion, builder.rules, builder.limits = table, criterion, rules, limits
    builder.arenas[0], builder.n_arenas, builder.own_first = arena, 1, own
    builder.scratch, builder.n_threads = scratch, n_threads
    builder.number = arena.number
    set_costs(builder)
    builder.found = <BestSplit *> malloc(table.n_columns * sizeof(BestSplit))
    builder.columns = <Py_ssize_t *> malloc(table.n_columns * sizeof(Py_ssize_t))
    builder.shift = <double *> calloc(2 * criterion.n_sums, sizeof(double))
    builder.left_of = <uint8_t *> malloc(widest)
    if criterion.sorts_targets:
        builder.rank = <uint32_t *> malloc(arena.n * sizeof(uint32_t))
        builder.sorted_y = <double *> malloc((arena.n + 1) * sizeof(double))
        builder.sorted_w = <double *> malloc(arena.n * sizeof(double))
    if (builder.found == NULL or builder.columns == NULL or builder.shift == NULL or builder.left_of == NULL
            or (criterion.sorts_targets
                and (builder.rank == NULL or builder.sorted_y == NULL or builder.sorted_w == NULL))):
        builder.n_arenas = 0
        free_builder(builder)
        return NULL
    return builder


cdef void set_costs(TreeBuilder *builder) noexcept nogil:
    """Set costs in units of entries of the vectorised loops, so that signals are checked in time."""
    cdef const PresortedTable *table = builder.table
    cdef const Criterion *criterion = builder.criterion
    cdef Py_ssize_t k, n_levels
    cdef bint simple = (criterion.n_sums <= 3 and builder.arenas[0].w == NULL
                        and (criterion.row.has_exact_scores or criterion.logs != NULL))
    builder.entry_cost = ABSOLUTE_ERROR_COST if criterion.sorts_targets else 1 if simple else 2 + criterion.n_sums
    builder.node_cost = 100
    for k in range(table.n_coded):
        n_levels = table.n_levels[table.coded[k]]
        if n_levels:                        # subsets, or turns of the power method
            builder.node_cost += min(n_levels * 100, 4096) * criterion.n_sums


cdef void free_builder(TreeBuilder *builder) noexcept nogil:
    if builder == NULL:
        return
    free_buffers_of_builder(builder)
    free(builder.nodes)
    free(builder.sums)
    free(builder.flags.list)
    free(builder.surrogates.list)
    free(builder)


cdef void free_buffers_of_builder(TreeBuilder *builder) noexcept nogil:
    """Free everything but the nodes."""
    cdef Py_ssize_t k
    for k in range(builder.n_stack):
        free(builder.stack[k].histogram)
        free(builder.stack[k].known)
    for k in range(builder.n_tasks):
        free(builder.tasks[k].histogram)
        free(builder.tasks[k].known)
    for k in range(builder.n_spare):
        free(builder.spare[k])
    for k in range(0 if builder.own_first else 1, builder.n_arenas):
        free_arena(builder.arenas[k])
    free(builder.found)
    free(builder.columns)
    free(builder.shift)
    free(builder.left_of)
    free(builder.rank)
    free(builder.sorted_y)
    free(builder.sorted_w)
    free(builder.stack)
    free(builder.tasks)
    free(builder.spare)
    builder.found, builder.columns, builder.shift, builder.left_of = NULL, NULL, NULL, NULL
    builder.rank, builder.sorted_y, builder.sorted_w = NULL, NULL, NULL
    builder.stack, builder.tasks, builder.spare = NULL, NULL, NULL
    builder.n_stack = builder.n_tasks = builder.n_spare = builder.n_arenas = 0


cdef int push_root(TreeBuilder *builder) noexcept nogil:
    """Make the node of all rows; push it onto the stack unless it is final."""
    cdef const PresortedTable *table = builder.table
    cdef SampleArena *arena = builder.arenas[0]
    cdef PendingNode pending
    cdef Py_ssize_t k, i
    memset(&pending, 0, sizeof(PendingNode))
    pending.node = new_node(builder)
    if pending.node < 0:
        return NO_MEMORY
    pending.m, pending.key, pending.low, pending.high = arena.n, builder.limits.seed, -INFINITY, INFINITY
    pending.column = -1
    describe(builder, arena, 0, arena.n, pending.node)
    if is_final(builder, pending.node, 0):
        return OK
    if table.some_missing:
        pending.known = <uint32_t *> malloc(table.n_ordered * sizeof(uint32_t))
        if pending.known == NULL:
            return NO_MEMORY
        for k in range(table.n_ordered):
            i = arena.n
            if table.missing[table.ordered[k]]:     # missing ones are at the end
                while i > 0 and is_missing(table, arena.order[k][i - 1], table.ordered[k]):
                    i -= 1
            pending.known[k] = <uint32_t> i
    if push(&builder.stack, &builder.n_stack, &builder.stack_capacity, &pending) != OK:
        free(pending.known)
        return NO_MEMORY
    return OK


cdef inline bint is_missing(const PresortedTable *table, uint32_t entry, Py_ssize_t column) noexcept nogil:
    cdef double value = value_of(table, entry & table.id_mask, column)
    return value != value


cdef struct SubtreeBuilders:               # that are grown side by side
    TreeBuilder *top
    TreeBuilder **subtrees
    ScanBuffers **scratch               # of a thread
    uint32_t **numbers              # of a thread
    Py_ssize_t budget
    int status


cdef int build_subtree(const SubtreeBuilders *apart, Py_ssize_t number, int worker) noexcept nogil:
    """Continue a subtree, or begin it: in its own arena, with the buffers of the thread."""
    cdef TreeBuilder *top = apart.top
    cdef ScanBuffers **scratch = apart.scratch + worker
    cdef PendingNode *task = top.tasks + number
    cdef PendingNode pending
    cdef SampleArena *arena
    cdef TreeBuilder *builder = apart.subtrees[number]
    cdef Py_ssize_t n_outputs = 0 if top.criterion.of_classes else top.criterion.n_sums - 1
    if builder == NULL:
        arena = part_of_arena(top.table, top.arenas[0], task.start, task.m, n_outputs, apart.numbers[worker])
        if arena == NULL:
            return NO_MEMORY
        builder = new_builder(top.table, top.criterion, top.rules, top.limits, arena, True, scratch, 1)
        if builder == NULL:
            free_arena(arena)
            return NO_MEMORY
        apart.subtrees[number] = builder
        pending = task[0]
        task.histogram, task.known = NULL, NULL         # it has them now
        pending.start, pending.arena = 0, 0
        pending.node = new_node(builder)
        if pending.node < 0 or push(&builder.stack, &builder.n_stack, &builder.stack_capacity, &pending) != OK:
            free(pending.histogram)
            free(pending.known)
            return NO_MEMORY
        builder.nodes[0] = top.nodes[task.node]
        builder.nodes[0].task = -1
        memcpy(builder.sums, top.sums + task.node * top.criterion.n_sums, top.criterion.n_sums * sizeof(double))
    builder.scratch = scratch
    return build_depth_first(builder, apart.budget)


cdef void build_subtree_range(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef SubtreeBuilders *apart = <SubtreeBuilders *> context
    cdef TreeBuilder **subtrees = apart.subtrees
    cdef Py_ssize_t k
    cdef int one
    for k in range(first, last):
        if subtrees[k] == NULL or subtrees[k].n_stack:
            one = build_subtree(apart, k, worker)
            gather_status(&apart.status, one)
            if one == OK and subtrees[k].n_stack == 0:
                free_buffers_of_builder(subtrees[k])


cdef int build_subtrees(TreeBuilder *top, TreeBuilder **subtrees, Py_ssize_t first, Py_ssize_t end,
                        ScanBuffers **scratch, uint32_t **numbers, int n_threads, Py_ssize_t budget) noexcept nogil:
    """Build some subtrees side by side, each until its budget is used."""
    cdef SubtreeBuilders apart
    apart.top, apart.subtrees, apart.scratch, apart.numbers = top, subtrees, scratch, numbers
    apart.budget, apart.status = budget, OK
    run_team(first, end, 1, n_threads, build_subtree_range, &apart)
    return apart.status
