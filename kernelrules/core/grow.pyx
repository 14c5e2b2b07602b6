"""Growing a tree from presorted columns, depth-first or best-first, without recursion.

    node.pyx      what a node is, and its best split          split.pyx    making that split
    grower.pyx    loops over nodes                            here         who grows what, and the result as arrays

    more than ALONE rows    nodes one after the other; threads share the columns of a node
    fewer                   subtrees, each by one thread with its own arena, so that threads meet no more

Best-first growth (max_leaves) keeps the best split of every leaf in a heap and makes the one that gains most.

Invariant: neither threads nor the order of nodes change a bit of the tree.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport NAN
from libc.stdint cimport int8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from kernelrules.core.criteria cimport (
    ABSOLUTE, ENTROPY, GAIN_RATIO, GINI, MISCLASSIFICATION, POISSON, SQUARED, Criterion,
)
from kernelrules.core.grower cimport (
    CLOSE, free_grower, grow_best, grow_some, grow_tasks, new_grower, start_root,
)
from kernelrules.core.machine cimport simd_level
from kernelrules.core.node cimport Grower, Limits, Node
from kernelrules.core.presort cimport Arena, Presorted, Table
from kernelrules.core.scan cimport Rules, Scratch, free_scratch, new_scratch
from kernelrules.core.status cimport NO_MEMORY
from kernelrules.core.surrogate cimport StandIn

import numpy as np

from kernelrules.core.status import raise_for_status

cdef extern from "Python.h":
    int signals_are_bad "PyErr_CheckSignals"() noexcept     # leaves the exception for the caller to find
    void *PyErr_Occurred() noexcept

cdef enum:
    ALONE = 32768           # rows from which on threads share a node: above, what belongs to them fits no cache
    BUDGET = 100000000      # entries worked on between looks at signals
    LEVELS = 16             # that a subtree may have, to guess its work
    MANY_NODES = 200000     # whose arrays take about as much memory as the sorted columns

CRITERIA = {
    "gini": GINI,
    "entropy": ENTROPY,
    "misclassification": MISCLASSIFICATION,
    "gain_ratio": GAIN_RATIO,
    "squared_error": SQUARED,
    "absolute_error": ABSOLUTE,
    "poisson": POISSON,
}


# ---- the result ------------------------------------------------------------------------------------------------

cdef class Grown:
    """The nodes of a tree in depth-first order, as arrays."""

    cdef readonly object feature, threshold, left, right, n_samples, loss, gain, value, sums, missing_left, subset_start
    cdef readonly object subset_left, stand_in_start, stand_ins

    def __cinit__(self, Py_ssize_t n, Py_ssize_t n_sums):
        self.feature = np.empty(n, np.int64)
        self.left, self.right = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        self.n_samples, self.subset_start = np.empty(n, np.int64), np.empty(n, np.int64)
        self.threshold, self.loss, self.gain, self.value = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        self.sums = np.empty((n, n_sums))
        self.missing_left = np.empty(n, np.bool_)
        self.stand_in_start = np.zeros(n + 1, np.int64)


cdef struct Visit:
    const Grower *grower
    Py_ssize_t node
    Py_ssize_t parent
    bint is_left


cdef int collect(const Grower *top, Grower **subtrees, Visit *stack, Grown out, list flags, list stand_ins) except -1:
    """Write the nodes of all growers, parents first and left children next to them."""
    cdef long long[::1] feature = out.feature, left = out.left, right = out.right, n_samples = out.n_samples
    cdef long long[::1] subset_start = out.subset_start, stand_in_start = out.stand_in_start
    cdef double[::1] threshold = out.threshold, loss = out.loss, gain = out.gain, value = out.value
    cdef double[:, ::1] sums = out.sums
    cdef unsigned char[::1] missing_left = out.missing_left.view(np.uint8)
    cdef Py_ssize_t n_stack = 1, at = 0, n_flags = 0, n_levels, k
    cdef Visit visit
    cdef const Grower *grower
    cdef const Node *node
    cdef const StandIn *one
    stack[0] = Visit(top, 0, -1, False)
    while n_stack:
        n_stack -= 1
        visit = stack[n_stack]
        grower, node = visit.grower, visit.grower.nodes + visit.node
        if node.task >= 0 and grower == top and subtrees != NULL and subtrees[node.task] != NULL:
            visit.grower, visit.node = subtrees[node.task], 0
            stack[n_stack] = visit
            n_stack += 1
            continue
        if visit.parent >= 0:
            if visit.is_left:
                left[visit.parent] = at
            else:
                right[visit.parent] = at
        feature[at], n_samples[at], loss[at] = node.feature, node.n, node.loss
        gain[at], value[at] = node.gain, node.value
        threshold[at] = node.threshold if node.feature >= 0 and node.subset < 0 else NAN
        missing_left[at] = node.missing_left
        subset_start[at] = -1
        memcpy(&sums[at, 0], grower.sums + (node - grower.nodes) * grower.criterion.n_sums,
               grower.criterion.n_sums * sizeof(double))
        if node.feature >= 0:
            if node.subset >= 0:
                n_levels = grower.table.n_levels[node.feature]
                flags.append((<char *> grower.flags.list)[node.subset:node.subset + n_levels])
                subset_start[at] = n_flags
                n_flags += n_levels
            for k in range(node.n_stand_ins):
                one = grower.stand_ins.list + node.stand_ins + k
                if one.subset >= 0:
                    n_levels = grower.table.n_levels[one.feature]
                    flags.append((<char *> grower.flags.list)[one.subset:one.subset + n_levels])
                stand_ins.append((one.feature, one.threshold, one.below_left, n_flags if one.subset >= 0 else -1,
                                  one.agreement))
                n_flags += grower.table.n_levels[one.feature] if one.subset >= 0 else 0
            stack[n_stack] = Visit(grower, node.right, at, False)
            stack[n_stack + 1] = Visit(grower, node.left, at, True)
            n_stack += 2
        stand_in_start[at + 1] = len(stand_ins)
        at += 1
    return 0


cdef Py_ssize_t count_nodes(const Grower *top, Grower **subtrees, Py_ssize_t n_tasks) noexcept nogil:
    cdef Py_ssize_t n = top.n_nodes, k
    for k in range(n_tasks):
        n += subtrees[k].n_nodes - 1        # its first stands for one of ours
    return n


def grow(Presorted presorted, str criterion, Py_ssize_t n_classes, Py_ssize_t n_outputs, *, Py_ssize_t max_depth,
         Py_ssize_t max_leaves, Py_ssize_t min_split, Py_ssize_t min_leaf, double min_weight, double min_gain,
         double weight, const double[::1] critical, bint missing_apart, bint one_level, const int8_t[::1] monotone,
         Py_ssize_t max_features, unsigned long long seed, bint exact, const double[::1] logs, int n_threads,
         tick=None):
    """Grow a tree; see kernelrules.tree.grow. Gives a `Grown`.

    `critical` has the critical values of chi2 by degrees of freedom, `logs` c·log2 c for whole numbers c; either may be
    None. `exact` says that all sums are of whole numbers. The rows of `presorted` are left in another order.
    """
    cdef Criterion how
    cdef Rules rules
    cdef Limits limits
    cdef const Table *table = &presorted.table
    cdef Grower *top = NULL
    cdef Scratch **scratch = <Scratch **> calloc(n_threads, sizeof(Scratch *))
    cdef bint weighted = presorted.root.w != NULL
    cdef Py_ssize_t k
    cdef int stop = 0
    cdef list out = []
    how.kind, how.classes, how.n_sums = CRITERIA[criterion], n_classes > 0, 1 + max(n_classes, n_outputs)
    how.counts = n_classes > 0 and not weighted
    how.logs, how.own, how.state = &logs[0] if logs is not None else NULL, NULL, NULL
    rules.min_leaf, rules.min_weight = min_leaf, min_weight
    rules.missing_apart, rules.one_level = missing_apart, one_level
    rules.monotone = &monotone[0] if monotone is not None else NULL
    rules.level, rules.stop, rules.look = simd_level(), &stop, look
    limits.max_depth, limits.max_leaves, limits.min_split, limits.min_leaf = max_depth, max_leaves, min_split, min_leaf
    limits.min_weight = min_weight
    limits.min_gain, limits.weight, limits.critical = min_gain, weight, &critical[0] if critical is not None else NULL
    limits.max_features, limits.seed, limits.exact = max_features, seed, exact
    try:
        if scratch == NULL:
            raise_for_status(NO_MEMORY)
        for k in range(n_threads):
            scratch[k] = new_scratch(table, &how, weighted, table.n)
            if scratch[k] == NULL:
                raise_for_status(NO_MEMORY)
        top = new_grower(table, &how, &rules, &limits, presorted.root, False, scratch, n_threads)
        if top == NULL:
            raise_for_status(NO_MEMORY)
        raise_for_status(start_root(top))
        if max_leaves:
            best_first(top, tick, out)
        else:
            depth_first(top, scratch, n_threads, tick, out)
        return out[0]
    finally:
        free_grower(top)
        if scratch != NULL:
            for k in range(n_threads):
                free_scratch(scratch[k])
        free(scratch)


cdef void look(int *stop) noexcept nogil:
    """Look at signals from within a scan; the exception waits until the grower has stopped."""
    with gil:
        if signals_are_bad():
            stop[0] = 1


cdef int raise_waiting() except -1:
    """Raise what `look` left behind."""
    return -1 if PyErr_Occurred() != NULL else 0


cdef int breathe(tick, Py_ssize_t done, Py_ssize_t total) except -1:
    """Look at signals, and tell of progress."""
    PyErr_CheckSignals()
    if tick is not None:
        tick(done, total)
    return 0


cdef int finish(Grower *top, Grower **subtrees, Py_ssize_t n_tasks, list out) except -1:
    """Put what was grown into arrays. For a large tree the sorted columns make room, and are not kept for the next."""
    cdef Py_ssize_t n = count_nodes(top, subtrees, n_tasks)
    cdef Visit *stack = <Visit *> malloc((n + 2) * sizeof(Visit))
    cdef list flags = [], stand_ins = []
    cdef Arena *sorted_columns = top.arenas[0]
    cdef Grown grown
    if stack == NULL:
        raise_for_status(NO_MEMORY)
    try:
        if n > MANY_NODES:
            free(sorted_columns.block)
            sorted_columns.block = NULL
        grown = Grown(n, top.criterion.n_sums)
        collect(top, subtrees, stack, grown, flags, stand_ins)
    finally:
        free(stack)
    grown.subset_left = np.frombuffer(b"".join(flags), dtype=np.uint8)
    grown.stand_ins = stand_ins
    out.append(grown)
    return 0


cdef int best_first(Grower *top, tick, list out) except -1:
    """Grow by the leaf that gains most."""
    cdef Py_ssize_t n_leaves = 1, most = top.limits.max_leaves
    cdef int status
    while n_leaves < most and (top.n_stack or top.n_tasks):
        with nogil:
            status = grow_best(top, &n_leaves)
        raise_waiting()
        raise_for_status(status)
        breathe(tick, n_leaves, most)
    return finish(top, NULL, 0, out)


cdef int depth_first(Grower *top, Scratch **scratch, int n_threads, tick, list out) except -1:
    """Large nodes one by one, then subtrees side by side."""
    cdef Py_ssize_t n = top.table.n
    cdef int status
    top.alone = max(CLOSE, min(ALONE, n // (4 * n_threads))) if n_threads > 1 else ALONE
    if n <= top.alone:
        top.alone = 0                       # nothing to put off: small nodes get arenas here
    while top.n_stack:
        with nogil:
            status = grow_some(top, BUDGET)
        raise_waiting()
        raise_for_status(status)
        breathe(tick, 0, n)
    return subtrees_of(top, scratch, n_threads, tick, out)


cdef int subtrees_of(Grower *top, Scratch **scratch, int n_threads, tick, list out) except -1:
    """Grow the subtrees that were put off, by batches, and put all together."""
    cdef Py_ssize_t n_tasks = top.n_tasks, first = 0, end, k, rows, done = 0, share
    cdef Py_ssize_t cost = top.table.n_columns * top.entry_cost
    cdef Grower **subtrees = <Grower **> calloc(max(n_tasks, 1), sizeof(Grower *))
    cdef uint32_t **numbers = <uint32_t **> calloc(n_threads, sizeof(uint32_t *))
    cdef int status
    cdef bint going
    try:
        if subtrees == NULL or numbers == NULL:
            raise_for_status(NO_MEMORY)
        numbers[0] = top.number
        for k in range(1, n_threads if n_tasks else 1):
            numbers[k] = <uint32_t *> malloc(top.table.n * sizeof(uint32_t))
            if numbers[k] == NULL:
                raise_for_status(NO_MEMORY)
        while first < n_tasks:
            end, rows = first, 0
            while end < n_tasks and (end == first or rows * cost < n_threads * (BUDGET // LEVELS)):
                rows += top.tasks[end].m
                end += 1
            going, share = True, max(BUDGET * n_threads // (end - first), BUDGET // 100)
            while going:
                with nogil:
                    status = grow_tasks(top, subtrees, first, end, scratch, numbers, n_threads, share)
                raise_waiting()
                raise_for_status(status)
                breathe(tick, done, top.table.n)
                going = False
                for k in range(first, end):
                    going = going or subtrees[k].n_stack > 0
            done += rows
            first = end
        breathe(tick, top.table.n, top.table.n)
        finish(top, subtrees, n_tasks, out)
    finally:
        if subtrees != NULL:
            for k in range(n_tasks):
                free_grower(subtrees[k])
        free(subtrees)
        if numbers != NULL:
            for k in range(1, n_threads):
                free(numbers[k])
        free(numbers)
    return 0
