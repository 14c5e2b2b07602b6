"""The loops of growing: depth-first with a stack, best-first with a heap, and subtrees apart.

Nodes that have become small get an arena of their own (presort.part_of_arena), in which rows are numbered anew and
everything fits a cache. A subtree that is grown apart has its own grower, so threads share nothing but what they read.

Invariant: the tree does not depend on the order in which nodes are split, nor on which thread splits them.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.criteria cimport ABSOLUTE, POISSON, Criterion
from kernelrules.core.node cimport (
    Grower, Limits, Work, describe, drop_histogram, find_split, is_final, new_node, push,
)
from kernelrules.core.presort cimport Arena, Table, free_arena, part_of_arena, value_of
from kernelrules.core.scan cimport Found, Rules, Scratch
from kernelrules.core.split cimport split
from kernelrules.core.status cimport NO_MEMORY, OK

cdef enum:
    SLOW = 10               # entries of vectorised loops that one of absolute error costs


# ---- the loops -------------------------------------------------------------------------------------------------

cdef void release(Grower *grower, Work *work) noexcept nogil:
    """What belongs to a node that is done with."""
    drop_histogram(grower, work.histogram)
    free(work.known)


cdef int enter_arena(Grower *grower, Work *work, Py_ssize_t limit) noexcept nogil:
    """Give a node that has become small an arena of its own; arenas of subtrees that are done are freed."""
    cdef Arena *whole = grower.arenas[work.arena]
    cdef Arena *part
    cdef Py_ssize_t n_outputs = 0 if grower.criterion.classes else grower.criterion.n_sums - 1
    while grower.n_arenas - 1 > work.arena:
        grower.n_arenas -= 1
        free_arena(grower.arenas[grower.n_arenas])
    if work.m > limit or whole.n <= 2 * limit:
        return OK
    part = part_of_arena(grower.table, whole, work.start, work.m, n_outputs,
                         grower.number if work.arena == 0 else whole.number)
    if part == NULL:
        return NO_MEMORY
    work.arena, work.start = grower.n_arenas, 0
    grower.arenas[grower.n_arenas] = part
    grower.n_arenas += 1
    return OK


cdef int grow_some(Grower *grower, Py_ssize_t budget) noexcept nogil:
    """Split nodes, depth-first, until none is left or so many entries have been worked on."""
    cdef Work work
    cdef int status = OK
    while status == OK and grower.n_stack and budget > 0:
        grower.n_stack -= 1
        work = grower.stack[grower.n_stack]
        budget -= work.m * grower.table.n_columns * grower.entry_cost + grower.node_cost
        if work.m <= grower.alone:
            status = push(&grower.tasks, &grower.n_tasks, &grower.task_room, &work)
            if status != OK:
                release(grower, &work)
            grower.nodes[work.node].task = <int> (grower.n_tasks - 1)
            continue
        status = enter_arena(grower, &work, CLOSE)
        if status == OK:
            status = find_split(grower, &work)
        if status == OK and work.column >= 0:
            status = split(grower, &work)
        release(grower, &work)
    return status


cdef inline bint is_ahead(const Work *a, const Work *b) noexcept nogil:
    return a.gain > b.gain or (a.gain == b.gain and a.node < b.node)


cdef int into_heap(Grower *grower, Work *work) noexcept nogil:
    """Keep a node that can be split, by what it gains; `tasks` is the heap of best-first growth."""
    cdef Py_ssize_t at = grower.n_tasks, above
    cdef int status = find_split(grower, work)
    cdef Work *heap
    if status != OK or work.column < 0:
        release(grower, work)
        return status
    status = push(&grower.tasks, &grower.n_tasks, &grower.task_room, work)
    if status != OK:
        release(grower, work)
        return status
    heap = grower.tasks
    while at > 0:
        above = (at - 1) // 2
        if not is_ahead(work, heap + above):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = work[0]
    return OK


cdef void out_of_heap(Grower *grower, Work *best) noexcept nogil:
    """The node that gains most."""
    cdef Work *heap = grower.tasks
    cdef Work moved
    cdef Py_ssize_t at = 0, below, n
    best[0] = heap[0]
    grower.n_tasks -= 1
    n = grower.n_tasks
    moved = heap[n]
    while 2 * at + 1 < n:
        below = 2 * at + 1
        if below + 1 < n and is_ahead(heap + below + 1, heap + below):
            below += 1
        if not is_ahead(heap + below, &moved):
            break
        heap[at] = heap[below]
        at = below
    if n:
        heap[at] = moved


cdef int grow_best(Grower *grower, Py_ssize_t *n_leaves) noexcept nogil:
    """Split the leaf that gains most, if there is one yet, and look at its children, or at the root."""
    cdef Work work
    cdef int status = OK
    if grower.n_tasks:
        out_of_heap(grower, &work)
        status = split(grower, &work)
        release(grower, &work)
        if grower.nodes[work.node].feature >= 0:
            n_leaves[0] += 1
    while status == OK and grower.n_stack and n_leaves[0] < grower.limits.max_leaves:
        grower.n_stack -= 1
        work = grower.stack[grower.n_stack]
        status = into_heap(grower, &work)
    return status


# ---- growers ---------------------------------------------------------------------------------------------------

cdef Grower *new_grower(const Table *table, const Criterion *criterion, const Rules *rules, const Limits *limits,
                        Arena *arena, bint own, Scratch **scratch, int n_threads) noexcept nogil:
    """Memory for growing from an arena, which is freed with it if it is its own. NULL if there is none: the arena is
    then the caller's still."""
    cdef Grower *grower = <Grower *> calloc(1, sizeof(Grower))
    cdef Py_ssize_t widest = 1, k
    if grower == NULL:
        return NULL
    for k in range(table.n_coded):
        widest = max(widest, table.n_bins[k])
    grower.table, grower.criterion, grower.rules, grower.limits = table, criterion, rules, limits
    grower.arenas[0], grower.n_arenas, grower.own_first = arena, 1, own
    grower.scratch, grower.n_threads = scratch, n_threads
    grower.number = arena.number
    set_costs(grower)
    grower.found = <Found *> malloc(table.n_columns * sizeof(Found))
    grower.columns = <Py_ssize_t *> malloc(table.n_columns * sizeof(Py_ssize_t))
    grower.shift = <double *> calloc(2 * criterion.n_sums, sizeof(double))
    grower.left_of = <uint8_t *> malloc(widest)
    if criterion.kind == ABSOLUTE:
        grower.rank = <uint32_t *> malloc(arena.n * sizeof(uint32_t))
        grower.sorted_y = <double *> malloc((arena.n + 1) * sizeof(double))
        grower.sorted_w = <double *> malloc(arena.n * sizeof(double))
    if (grower.found == NULL or grower.columns == NULL or grower.shift == NULL or grower.left_of == NULL
            or (criterion.kind == ABSOLUTE and (grower.rank == NULL or grower.sorted_y == NULL
                                                or grower.sorted_w == NULL))):
        grower.n_arenas = 0
        free_grower(grower)
        return NULL
    return grower


cdef void set_costs(Grower *grower) noexcept nogil:
    """What growing costs, in entries scanned by the vectorised loops: so that signals are looked at in time."""
    cdef const Table *table = grower.table
    cdef const Criterion *criterion = grower.criterion
    cdef Py_ssize_t k, n_levels
    cdef bint simple = criterion.n_sums <= 3 and criterion.kind != POISSON and grower.arenas[0].w == NULL
    grower.entry_cost = SLOW if criterion.kind == ABSOLUTE else 1 if simple else 2 + criterion.n_sums
    grower.node_cost = 100
    for k in range(table.n_coded):
        n_levels = table.n_levels[table.coded[k]]
        if n_levels:                        # subsets, or turns of the power method
            grower.node_cost += min(n_levels * 100, 4096) * criterion.n_sums


cdef void free_grower(Grower *grower) noexcept nogil:
    if grower == NULL:
        return
    free_after_growing(grower)
    free(grower.nodes)
    free(grower.sums)
    free(grower.flags.list)
    free(grower.stand_ins.list)
    free(grower)


cdef void free_after_growing(Grower *grower) noexcept nogil:
    """All but what was grown."""
    cdef Py_ssize_t k
    for k in range(grower.n_stack):
        free(grower.stack[k].histogram)
        free(grower.stack[k].known)
    for k in range(grower.n_tasks):
        free(grower.tasks[k].histogram)
        free(grower.tasks[k].known)
    for k in range(grower.n_spare):
        free(grower.spare[k])
    for k in range(0 if grower.own_first else 1, grower.n_arenas):
        free_arena(grower.arenas[k])
    free(grower.found)
    free(grower.columns)
    free(grower.shift)
    free(grower.left_of)
    free(grower.rank)
    free(grower.sorted_y)
    free(grower.sorted_w)
    free(grower.stack)
    free(grower.tasks)
    free(grower.spare)
    grower.found, grower.columns, grower.shift, grower.left_of = NULL, NULL, NULL, NULL
    grower.rank, grower.sorted_y, grower.sorted_w = NULL, NULL, NULL
    grower.stack, grower.tasks, grower.spare = NULL, NULL, NULL
    grower.n_stack = grower.n_tasks = grower.n_spare = grower.n_arenas = 0


cdef int start_root(Grower *grower) noexcept nogil:
    """The node of all rows, on the stack unless it is final."""
    cdef const Table *table = grower.table
    cdef Arena *arena = grower.arenas[0]
    cdef Work work
    cdef Py_ssize_t k, i
    memset(&work, 0, sizeof(Work))
    work.node = new_node(grower)
    if work.node < 0:
        return NO_MEMORY
    work.m, work.key, work.low, work.high = arena.n, grower.limits.seed, -INFINITY, INFINITY
    work.column = -1
    describe(grower, arena, 0, arena.n, work.node)
    if is_final(grower, work.node, 0):
        return OK
    if table.some_missing:
        work.known = <uint32_t *> malloc(table.n_ordered * sizeof(uint32_t))
        if work.known == NULL:
            return NO_MEMORY
        for k in range(table.n_ordered):
            i = arena.n
            if table.missing[table.ordered[k]]:     # missing ones are at the end
                while i > 0 and is_missing(table, arena.order[k][i - 1], table.ordered[k]):
                    i -= 1
            work.known[k] = <uint32_t> i
    if push(&grower.stack, &grower.n_stack, &grower.stack_room, &work) != OK:
        free(work.known)
        return NO_MEMORY
    return OK


cdef inline bint is_missing(const Table *table, uint32_t entry, Py_ssize_t column) noexcept nogil:
    cdef double value = value_of(table, entry & table.id_mask, column)
    return value != value


cdef int grow_task(Grower *top, Py_ssize_t number, Grower **subtree, Scratch **scratch, uint32_t *numbers,
                   Py_ssize_t budget) noexcept nogil:
    """Go on with a subtree, or begin it: in its own arena, by one thread, whose room is given."""
    cdef Work *task = top.tasks + number
    cdef Work work
    cdef Arena *arena
    cdef Grower *grower = subtree[0]
    cdef Py_ssize_t n_outputs = 0 if top.criterion.classes else top.criterion.n_sums - 1
    if grower == NULL:
        arena = part_of_arena(top.table, top.arenas[0], task.start, task.m, n_outputs, numbers)
        if arena == NULL:
            return NO_MEMORY
        grower = new_grower(top.table, top.criterion, top.rules, top.limits, arena, True, scratch, 1)
        if grower == NULL:
            free_arena(arena)
            return NO_MEMORY
        subtree[0] = grower
        work = task[0]
        task.histogram, task.known = NULL, NULL         # it has them now
        work.start, work.arena = 0, 0
        work.node = new_node(grower)
        if work.node < 0 or push(&grower.stack, &grower.n_stack, &grower.stack_room, &work) != OK:
            free(work.histogram)
            free(work.known)
            return NO_MEMORY
        grower.nodes[0] = top.nodes[task.node]
        grower.nodes[0].task = -1
        memcpy(grower.sums, top.sums + task.node * top.criterion.n_sums, top.criterion.n_sums * sizeof(double))
    grower.scratch = scratch
    return grow_some(grower, budget)


cdef int grow_tasks(Grower *top, Grower **subtrees, Py_ssize_t first, Py_ssize_t end, Scratch **scratch,
                    uint32_t **numbers, int n_threads, Py_ssize_t budget) noexcept nogil:
    """Some subtrees side by side, each for a while."""
    cdef Py_ssize_t k
    cdef int status = OK, one
    for k in prange(first, end, num_threads=n_threads, schedule="dynamic", chunksize=1):
        if subtrees[k] == NULL or subtrees[k].n_stack:
            one = grow_task(top, k, subtrees + k, scratch + threadid(), numbers[threadid()], budget)
            status |= one           # OpenMP gathers it: of = only that of the last subtree would be left
            if one == OK and subtrees[k].n_stack == 0:
                free_after_growing(subtrees[k])
    return status
