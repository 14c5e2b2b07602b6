"""What tree.grow calls: a tree built from presorted columns, and its nodes as arrays.

    more than MAX_SUBTREE_ROWS rows    nodes one after another; threads share the columns of a node
    fewer rows                         subtrees side by side; each thread has its own builder and arena
    max_leaves                         best-first: a heap holds the best split of every leaf, the largest gain on top

The loops over nodes are in builder.pyx. Between them this module checks for signals and reports progress.

Invariant: neither threads nor the order of nodes change a bit of the tree.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport NAN
from libc.stdint cimport int8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from kernelrules.core.tree.criteria cimport Criterion, criterion_row_of, make_criterion
from kernelrules.core.tree.builder cimport (
    MAX_CACHED_ROWS, free_builder, split_best_leaf, build_depth_first, build_subtrees, new_builder, push_root,
)
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.tree.node cimport TreeBuilder, GrowthLimits, Node
from kernelrules.core.tree.presort cimport SampleArena, Presorted, PresortedTable
from kernelrules.core.tree.scan cimport SplitRules, ScanBuffers, free_scratch, new_scratch
from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.tree.surrogate cimport Surrogate
from kernelrules.core.base.team cimport gather_status

import numpy as np

from kernelrules.core.base.status import raise_for_status

cdef extern from "Python.h":
    int check_signals_with_gil "PyErr_CheckSignals"() noexcept     # leaves the exception for the caller to find
    void *PyErr_Occurred() noexcept

cdef enum:
    MAX_SUBTREE_ROWS = 32768                # one thread builds a subtree of so few rows; more rows fit no cache
    ENTRIES_BETWEEN_SIGNAL_CHECKS = 100000000
    EXPECTED_SUBTREE_DEPTH = 16             # estimates the work of a subtree
    LARGE_TREE_NODES = 200000               # their arrays need about as much memory as the sorted columns


# ---- the result ------------------------------------------------------------------------------------------------

cdef class TreeArrays:
    """The nodes of a tree in depth-first order, as arrays."""

    cdef readonly object feature, threshold, left, right, n_samples, loss, gain, value, sums, missing_left, subset_start
    cdef readonly object subset_left, surrogate_start, surrogates

    def __cinit__(self, Py_ssize_t n, Py_ssize_t n_sums):
        self.feature = np.empty(n, np.int64)
        self.left, self.right = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        self.n_samples, self.subset_start = np.empty(n, np.int64), np.empty(n, np.int64)
        self.threshold, self.loss, self.gain, self.value = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        self.sums = np.empty((n, n_sums))
        self.missing_left = np.empty(n, np.bool_)
        self.surrogate_start = np.zeros(n + 1, np.int64)


cdef struct NodeVisit:
    const TreeBuilder *builder
    Py_ssize_t node
    Py_ssize_t parent
    bint is_left


cdef int collect(const TreeBuilder *top, TreeBuilder **subtrees, NodeVisit *stack, TreeArrays out, list flags,
                 list surrogates) except -1:
    """Write the nodes of all builders, parents first and left children next to them."""
    cdef long long[::1] feature = out.feature, left = out.left, right = out.right, n_samples = out.n_samples
    cdef long long[::1] subset_start = out.subset_start, surrogate_start = out.surrogate_start
    cdef double[::1] threshold = out.threshold, loss = out.loss, gain = out.gain, value = out.value
    cdef double[:, ::1] sums = out.sums
    cdef unsigned char[::1] missing_left = out.missing_left.view(np.uint8)
    cdef Py_ssize_t n_stack = 1, at = 0, n_flags = 0, n_levels, k
    cdef NodeVisit visit
    cdef const TreeBuilder *builder
    cdef const Node *node
    cdef const Surrogate *one
    stack[0] = NodeVisit(top, 0, -1, False)
    while n_stack:
        n_stack -= 1
        visit = stack[n_stack]
        builder, node = visit.builder, visit.builder.nodes + visit.node
        if node.task >= 0 and builder == top and subtrees != NULL and subtrees[node.task] != NULL:
            visit.builder, visit.node = subtrees[node.task], 0
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
        memcpy(&sums[at, 0], builder.sums + (node - builder.nodes) * builder.criterion.n_sums,
               builder.criterion.n_sums * sizeof(double))
        if node.feature >= 0:
            if node.subset >= 0:
                n_levels = builder.table.n_levels[node.feature]
                flags.append((<char *> builder.flags.list)[node.subset:node.subset + n_levels])
                subset_start[at] = n_flags
                n_flags += n_levels
            for k in range(node.n_surrogates):
                one = builder.surrogates.list + node.surrogates + k
                if one.subset >= 0:
                    n_levels = builder.table.n_levels[one.feature]
                    flags.append((<char *> builder.flags.list)[one.subset:one.subset + n_levels])
                surrogates.append((one.feature, one.threshold, one.below_left, n_flags if one.subset >= 0 else -1,
                                  one.agreement))
                n_flags += builder.table.n_levels[one.feature] if one.subset >= 0 else 0
            stack[n_stack] = NodeVisit(builder, node.right, at, False)
            stack[n_stack + 1] = NodeVisit(builder, node.left, at, True)
            n_stack += 2
        surrogate_start[at + 1] = len(surrogates)
        at += 1
    return 0


cdef Py_ssize_t count_nodes(const TreeBuilder *top, TreeBuilder **subtrees, Py_ssize_t n_tasks) noexcept nogil:
    cdef Py_ssize_t n = top.n_nodes, k
    for k in range(n_tasks):
        n += subtrees[k].n_nodes - 1        # its first node is one of ours
    return n


def build_tree(Presorted presorted, int criterion, Py_ssize_t n_classes, Py_ssize_t n_outputs, *, Py_ssize_t max_depth,
               Py_ssize_t max_leaves, Py_ssize_t min_split, Py_ssize_t min_leaf, double min_weight, double min_gain,
               double weight, const double[::1] critical, bint missing_apart, bint one_category,
               const int8_t[::1] monotone, Py_ssize_t max_features, unsigned long long seed, bint exact,
               const double[::1] logs, int n_threads, tick=None):
    """Build a tree; kernelrules.tree.grow describes the settings. Returns `TreeArrays`.

    `critical` has the critical values of chi2 by degrees of freedom, `logs` c·log2 c for whole numbers c; either may be
    None. `exact` says that all sums are of whole numbers. The rows of `presorted` are left in another order.
    """
    cdef Criterion how
    cdef SplitRules rules
    cdef GrowthLimits limits
    cdef const PresortedTable *table = &presorted.table
    cdef TreeBuilder *top = NULL
    cdef ScanBuffers **scratch = <ScanBuffers **> calloc(n_threads, sizeof(ScanBuffers *))
    cdef bint weighted = presorted.root.w != NULL
    cdef Py_ssize_t k
    cdef int stop = 0
    cdef list out = []
    how = make_criterion(criterion_row_of(criterion), max(n_classes, n_outputs), weighted)
    how.logs = &logs[0] if logs is not None else NULL
    rules.min_leaf, rules.min_weight = min_leaf, min_weight
    rules.missing_apart, rules.one_category = missing_apart, one_category
    rules.monotone = &monotone[0] if monotone is not None else NULL
    rules.level, rules.stop, rules.check_signals = simd_level(), &stop, check_signals
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
        top = new_builder(table, &how, &rules, &limits, presorted.root, False, scratch, n_threads)
        if top == NULL:
            raise_for_status(NO_MEMORY)
        raise_for_status(push_root(top))
        if max_leaves:
            best_first(top, tick, out)
        else:
            depth_first(top, scratch, n_threads, tick, out)
        return out[0]
    finally:
        free_builder(top)
        if scratch != NULL:
            for k in range(n_threads):
                free_scratch(scratch[k])
        free(scratch)


cdef void check_signals(int *stop) noexcept nogil:
    """Check for signals within a scan; the exception is raised after the builder has stopped."""
    with gil:
        if check_signals_with_gil():
            gather_status(stop, 1)


cdef int raise_pending_error() except -1:
    """Raise the exception that `check_signals` has set."""
    return -1 if PyErr_Occurred() != NULL else 0


cdef int report_progress(tick, Py_ssize_t done, Py_ssize_t total) except -1:
    """Check for signals, and report progress."""
    PyErr_CheckSignals()
    if tick is not None:
        tick(done, total)
    return 0


cdef int collect_tree(TreeBuilder *top, TreeBuilder **subtrees, Py_ssize_t n_tasks, list out) except -1:
    """Put the nodes into arrays. For a large tree the memory of the sorted columns is freed first."""
    cdef Py_ssize_t n = count_nodes(top, subtrees, n_tasks)
    cdef NodeVisit *stack = <NodeVisit *> malloc((n + 2) * sizeof(NodeVisit))
    cdef list flags = [], surrogates = []
    cdef SampleArena *sorted_columns = top.arenas[0]
    cdef TreeArrays grown
    if stack == NULL:
        raise_for_status(NO_MEMORY)
    try:
        if n > LARGE_TREE_NODES:
            free(sorted_columns.block)
            sorted_columns.block = NULL
        grown = TreeArrays(n, top.criterion.n_sums)
        collect(top, subtrees, stack, grown, flags, surrogates)
    finally:
        free(stack)
    grown.subset_left = np.frombuffer(b"".join(flags), dtype=np.uint8)
    grown.surrogates = surrogates
    out.append(grown)
    return 0


cdef int best_first(TreeBuilder *top, tick, list out) except -1:
    """Split the leaf that gains most, until there are enough leaves."""
    cdef Py_ssize_t n_leaves = 1, most = top.limits.max_leaves
    cdef int status
    while n_leaves < most and (top.n_stack or top.n_tasks):
        with nogil:
            status = split_best_leaf(top, &n_leaves)
        raise_pending_error()
        raise_for_status(status)
        report_progress(tick, n_leaves, most)
    return collect_tree(top, NULL, 0, out)


cdef int depth_first(TreeBuilder *top, ScanBuffers **scratch, int n_threads, tick, list out) except -1:
    """Split large nodes one by one, then build subtrees side by side."""
    cdef Py_ssize_t n = top.table.n
    cdef int status
    top.max_subtree_rows = MAX_SUBTREE_ROWS
    if n_threads > 1:
        top.max_subtree_rows = max(MAX_CACHED_ROWS, min(MAX_SUBTREE_ROWS, n // (4 * n_threads)))
    if n <= top.max_subtree_rows:
        top.max_subtree_rows = 0                       # nothing to postpone: small nodes get arenas here
    while top.n_stack:
        with nogil:
            status = build_depth_first(top, ENTRIES_BETWEEN_SIGNAL_CHECKS)
        raise_pending_error()
        raise_for_status(status)
        report_progress(tick, 0, n)
    return build_all_subtrees(top, scratch, n_threads, tick, out)


cdef int build_all_subtrees(TreeBuilder *top, ScanBuffers **scratch, int n_threads, tick, list out) except -1:
    """Build the subtrees that were postponed, in batches, and collect the whole tree."""
    cdef Py_ssize_t n_tasks = top.n_tasks, first = 0, end, k, rows, done = 0, share
    cdef Py_ssize_t cost = top.table.n_columns * top.entry_cost
    cdef Py_ssize_t rows_per_thread = ENTRIES_BETWEEN_SIGNAL_CHECKS // EXPECTED_SUBTREE_DEPTH
    cdef TreeBuilder **subtrees = <TreeBuilder **> calloc(max(n_tasks, 1), sizeof(TreeBuilder *))
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
            while end < n_tasks and (end == first or rows * cost < n_threads * rows_per_thread):
                rows += top.tasks[end].m
                end += 1
            going, share = True, max(ENTRIES_BETWEEN_SIGNAL_CHECKS * n_threads // (end - first),
                                     ENTRIES_BETWEEN_SIGNAL_CHECKS // 100)
            while going:
                with nogil:
                    status = build_subtrees(top, subtrees, first, end, scratch, numbers, n_threads, share)
                raise_pending_error()
                raise_for_status(status)
                report_progress(tick, done, top.table.n)
                going = False
                for k in range(first, end):
                    going = going or subtrees[k].n_stack > 0
            done += rows
            first = end
        report_progress(tick, top.table.n, top.table.n)
        collect_tree(top, subtrees, n_tasks, out)
    finally:
        if subtrees != NULL:
            for k in range(n_tasks):
                free_builder(subtrees[k])
        free(subtrees)
        if numbers != NULL:
            for k in range(1, n_threads):
                free(numbers[k])
        free(numbers)
    return 0
