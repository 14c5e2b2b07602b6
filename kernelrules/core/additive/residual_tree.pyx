"""Small regression trees on residuals: a weak learner whose nodes, except the root, are rules of several conditions.

Trees are grown best split first, by squared error, on histograms of the residuals (binned_columns.pyx). The histogram
of the larger child is the difference of its parent's and its sibling's. Rows outside the sample follow the splits but
do not influence them. Nodes that cannot be split get no histogram.

Rules from the nodes of small trees follow [1]_; growing the trees on the residuals of the current L1 solution is our
own.

Invariant: one thread and sums in the order of rows, so that the bits depend on the data alone.

References
----------
.. [1] J. H. Friedman and B. E. Popescu, "Predictive learning via rule ensembles", Annals of Applied Statistics 2(3),
   2008.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.additive.binned_columns cimport BinnedColumns, BinSums, add_row, add_sums, subtract_sums
from kernelrules.core.base.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.base.status import raise_for_status

cdef extern from "Python.h":
    ctypedef struct PyObject

cdef enum:
    ENTRIES_BETWEEN_SIGNAL_CHECKS = 50_000_000     # about a tenth of a second

cdef double GAIN_RTOL = 1e-12       # a smaller relative difference of scores is rounding


cdef struct ResidualSplit:
    double gain
    Py_ssize_t column   # -1: none
    Py_ssize_t cut      # the last bin that goes left; for levels, the number of levels that go left
    bint missing_left


cdef struct ResidualNode:
    Py_ssize_t first, last              # its rows of the sample
    Py_ssize_t other_first, other_last  # its other rows
    Py_ssize_t parent, depth
    bint is_left
    BinSums total
    BinSums *bins
    ResidualSplit split
    Py_ssize_t flags                    # first flag of its split; -1 in leaves


cdef struct LevelMean:
    double mean
    Py_ssize_t bin


cdef struct TreeGrowth:         # the data and the limits of one tree, and its buffers
    const double *s
    const double *w
    int32_t *rows
    int32_t *scratch
    LevelMean *levels
    char *flags
    BinSums *bins
    Py_ssize_t max_leaves, max_depth, min_rows
    PyObject *check_interrupt   # called now and then, may raise; or NULL


cdef inline bint may_split(const ResidualNode *node, const TreeGrowth *task) noexcept nogil:
    return node.depth < task.max_depth and node.last - node.first >= max(2 * task.min_rows, <Py_ssize_t> 2)


cdef inline int poll_interrupt(const TreeGrowth *task, bint going_on) except -1 nogil:
    if going_on and task.check_interrupt != NULL:
        with gil:
            (<object> task.check_interrupt)()
    return 0


cdef int compare_means(const void *a, const void *b) noexcept nogil:
    cdef const LevelMean *x = <const LevelMean *> a
    cdef const LevelMean *y = <const LevelMean *> b
    if x.mean != y.mean:
        return 1 if x.mean > y.mean else -1
    return (x.bin > y.bin) - (x.bin < y.bin)


cdef inline double split_score(BinSums left, BinSums right) noexcept nogil:
    return left.s * left.s / left.w + right.s * right.s / right.w


cdef inline bint scores_higher(BinSums left, BinSums right, double than) noexcept nogil:
    """Return whether `split_score` exceeds `than` by more than rounding, so that the first of ties stays.

    Computed without a division.
    """
    return left.s * left.s * right.w + right.s * right.s * left.w > than * left.w * right.w * (1 + GAIN_RTOL)


cdef class Histograms:
    """Buffer for the histograms of a tree, kept from one tree to the next; used by one thread at a time."""

    cdef BinSums *bins
    cdef size_t capacity

    def __dealloc__(self):
        free(self.bins)

    cdef int reserve(self, size_t n_bins) except -1:
        """Allocate `n_bins` bins."""
        if n_bins > self.capacity:
            free(self.bins)
            self.bins = <BinSums *> malloc(n_bins * sizeof(BinSums))
            self.capacity = n_bins if self.bins != NULL else 0
            if self.bins == NULL:
                raise_for_status(NO_MEMORY)
        return 0


cdef Py_ssize_t n_flags(BinnedColumns binned, Py_ssize_t column) noexcept nogil:
    """Return the number of flags of a split: one per code, missing values included, and one for unseen levels."""
    return binned.bin_start[column + 1] - binned.bin_start[column] + 1


cdef void find_threshold(BinnedColumns binned, Py_ssize_t j, const ResidualNode *node, Py_ssize_t min_rows,
                         ResidualSplit *best) noexcept nogil:
    cdef const BinSums *bins = node.bins + binned.bin_start[j]
    cdef Py_ssize_t n_bins = binned.bin_start[j + 1] - binned.bin_start[j] - 1, b, side
    cdef BinSums left, right
    for side in range(2 if bins[n_bins].n else 1):
        left = bins[n_bins] if side else BinSums(0, 0, 0)
        for b in range(n_bins if bins[n_bins].n else n_bins - 1):
            if not bins[b].n:
                continue
            left = add_sums(left, bins[b])
            right = subtract_sums(node.total, left)
            if left.n < min_rows:
                continue
            if right.n < min_rows or right.n == 0:
                break
            if scores_higher(left, right, best.gain):
                best[0] = ResidualSplit(split_score(left, right), j, b, side)


cdef Py_ssize_t order_levels(BinnedColumns binned, Py_ssize_t j, const ResidualNode *node,
                             LevelMean *levels) noexcept nogil:
    cdef const BinSums *bins = node.bins + binned.bin_start[j]
    cdef Py_ssize_t b, m = 0
    for b in range(binned.bin_start[j + 1] - binned.bin_start[j]):
        if bins[b].n:
            levels[m].mean, levels[m].bin = bins[b].s / bins[b].w, b
            m += 1
    qsort(levels, m, sizeof(LevelMean), compare_means)
    return m


cdef void find_subset(BinnedColumns binned, Py_ssize_t j, const ResidualNode *node, Py_ssize_t min_rows,
                      LevelMean *levels, ResidualSplit *best) noexcept nogil:
    """Find the best subset of levels: for squared error, it is a prefix of the levels in the order of their means.

    Breiman et al. (1984), "Classification and Regression Trees", section 4.2.2, after Fisher (1958).
    """
    cdef const BinSums *bins = node.bins + binned.bin_start[j]
    cdef Py_ssize_t m = order_levels(binned, j, node, levels), k
    cdef BinSums left = BinSums(0, 0, 0), right
    for k in range(m - 1):
        left = add_sums(left, bins[levels[k].bin])
        right = subtract_sums(node.total, left)
        if left.n < min_rows:
            continue
        if right.n < min_rows:
            break
        if scores_higher(left, right, best.gain):
            best[0] = ResidualSplit(split_score(left, right), j, k + 1, False)


cdef void find_split(BinnedColumns binned, ResidualNode *node, Py_ssize_t min_rows, LevelMean *levels) noexcept nogil:
    cdef Py_ssize_t j
    cdef double least = node.total.s * node.total.s / node.total.w
    node.split = ResidualSplit(least * (1 + GAIN_RTOL) + 1e-300, -1, 0, False)
    for j in range(binned.p):
        if binned.is_category[j]:
            find_subset(binned, j, node, min_rows, levels, &node.split)
        else:
            find_threshold(binned, j, node, min_rows, &node.split)
    node.split.gain -= least


cdef void set_flags(BinnedColumns binned, const ResidualNode *node, LevelMean *levels, char *left) noexcept nogil:
    """Set which codes go left, and in the last flag whether codes that the node does not have do.

    These go with the larger weight.
    """
    cdef Py_ssize_t j = node.split.column, n_bins = binned.bin_start[j + 1] - binned.bin_start[j] - 1, b, m, k
    cdef const BinSums *bins = node.bins + binned.bin_start[j]
    cdef double heavy = 0
    if not binned.is_category[j]:
        for b in range(n_bins):
            left[b] = b <= node.split.cut
            heavy += bins[b].w if left[b] else 0
        heavy += bins[n_bins].w if node.split.missing_left else 0
        left[n_bins + 1] = 2 * heavy >= node.total.w
        left[n_bins] = node.split.missing_left if bins[n_bins].n else left[n_bins + 1]
        return
    m = order_levels(binned, j, node, levels)
    for k in range(node.split.cut):
        heavy += bins[levels[k].bin].w
    memset(left, 2 * heavy >= node.total.w, n_bins + 2)
    for k in range(m):
        left[levels[k].bin] = k < node.split.cut


cdef int build_histogram(BinnedColumns binned, ResidualNode *node, const TreeGrowth *task) except -1 nogil:
    """Compute the sums of a node, in total and by bin."""
    cdef Py_ssize_t m = node.last - node.first, done = 0, next, i
    cdef const int32_t *rows = task.rows + node.first
    node.total = BinSums(0, 0, 0)
    for i in range(m):
        add_row(&node.total, task.s[rows[i]], task.w[rows[i]])
    memset(node.bins, 0, binned.n_bins * sizeof(BinSums))
    while done < m and binned.n_dense < binned.p:
        next = min(m, done + max(1, ENTRIES_BETWEEN_SIGNAL_CHECKS // binned.p))
        binned.add_sparse_columns(rows + done, next - done, task.s, task.w, node.bins)
        done = next
        poll_interrupt(task, done < m)
    binned.fill_default_codes(node.total, node.bins)
    done = 0
    while done < binned.n_dense:
        next = min(binned.n_dense, done + max(1, ENTRIES_BETWEEN_SIGNAL_CHECKS // (m + 1)))
        binned.add_dense_columns(rows, m, task.s, task.w, done, next, node.bins)
        done = next
        poll_interrupt(task, done < binned.n_dense)
    return 0


cdef int find_child_splits(BinnedColumns binned, ResidualNode *nodes, Py_ssize_t k, Py_ssize_t first, BinSums *bins,
                           const TreeGrowth *task) except -1 nogil:
    """Find the splits of both children; the histogram of the larger one is a difference."""
    cdef Py_ssize_t i, small = first, large = first + 1
    if nodes[first].last - nodes[first].first > nodes[first + 1].last - nodes[first + 1].first:
        small, large = large, small
    nodes[small].bins, nodes[large].bins = bins, nodes[k].bins
    build_histogram(binned, &nodes[small], task)
    for i in range(binned.n_bins):
        nodes[large].bins[i] = subtract_sums(nodes[large].bins[i], nodes[small].bins[i])
    nodes[large].total = subtract_sums(nodes[k].total, nodes[small].total)
    for i in range(first, first + 2):
        if may_split(&nodes[i], task):
            find_split(binned, &nodes[i], task.min_rows, task.levels)
    return 0


cdef Py_ssize_t partition_rows(int32_t *rows, Py_ssize_t first, Py_ssize_t last, const uint16_t *codes,
                               const char *left, int32_t *scratch) noexcept nogil:
    """Move the rows that go left to the front, keeping the order on both sides; return where the right ones begin."""
    cdef Py_ssize_t k, at = first, n_right = 0
    cdef int32_t row
    for k in range(first, last):
        row = rows[k]
        if left[codes[row]]:
            rows[at] = row
            at += 1
        else:
            scratch[n_right] = row
            n_right += 1
    if n_right:
        memcpy(rows + at, scratch, n_right * sizeof(int32_t))
    return at


cdef void make_children(BinnedColumns binned, ResidualNode *nodes, Py_ssize_t k, Py_ssize_t first,
                        const TreeGrowth *task, char *left) noexcept nogil:
    cdef ResidualNode *node = &nodes[k]
    cdef const uint16_t *codes = binned.codes + node.split.column * binned.n
    cdef Py_ssize_t middle, other_middle
    set_flags(binned, node, task.levels, left)
    middle = partition_rows(task.rows, node.first, node.last, codes, left, task.scratch)
    other_middle = partition_rows(task.rows, node.other_first, node.other_last, codes, left, task.scratch)
    nodes[first].first, nodes[first].last = node.first, middle
    nodes[first].other_first, nodes[first].other_last = node.other_first, other_middle
    nodes[first + 1].first, nodes[first + 1].last = middle, node.last
    nodes[first + 1].other_first, nodes[first + 1].other_last = other_middle, node.other_last
    nodes[first].is_left, nodes[first + 1].is_left = True, False
    nodes[first].parent = nodes[first + 1].parent = k
    nodes[first].depth = nodes[first + 1].depth = node.depth + 1
    nodes[first].flags = nodes[first + 1].flags = -1
    nodes[first].split.column = nodes[first + 1].split.column = -1


cdef Py_ssize_t split_nodes(BinnedColumns binned, ResidualNode *nodes, const TreeGrowth *task,
                            Py_ssize_t *total_flags) except -1 nogil:
    """Make the best split of all leaves, again and again; return the number of nodes."""
    cdef Py_ssize_t n_nodes = 1, n_leaves = 1, k, best
    if may_split(&nodes[0], task):
        build_histogram(binned, &nodes[0], task)
        find_split(binned, &nodes[0], task.min_rows, task.levels)
    while n_leaves < task.max_leaves:
        best = -1
        for k in range(n_nodes):
            if (nodes[k].flags < 0 and nodes[k].split.column >= 0
                    and (best < 0 or nodes[k].split.gain > nodes[best].split.gain)):
                best = k
        if best < 0:
            break
        make_children(binned, nodes, best, n_nodes, task, task.flags + total_flags[0])
        nodes[best].flags = total_flags[0]
        total_flags[0] += n_flags(binned, nodes[best].split.column)
        n_leaves += 1
        if n_leaves < task.max_leaves and (
                may_split(&nodes[n_nodes], task) or may_split(&nodes[n_nodes + 1], task)):
            find_child_splits(binned, nodes, best, n_nodes, task.bins + (n_leaves - 1) * binned.n_bins, task)
        n_nodes += 2
    return n_nodes


cdef int append_node_arrays(const ResidualNode *nodes, Py_ssize_t n_nodes, const int32_t *rows,
                            list arrays) except -1:
    """Append the arrays of the nodes, all but the last of the result of `grow_tree`."""
    cdef Py_ssize_t m = n_nodes - 1, total = 0, k, at = 0, size
    for k in range(1, n_nodes):
        total += nodes[k].last - nodes[k].first + nodes[k].other_last - nodes[k].other_first
    lists, start = np.empty(max(total, 1), dtype=np.int32), np.zeros(m + 1, dtype=np.int64)
    parent, is_left, column = (np.empty(m, dtype=np.int64) for _ in range(3))
    flag_start = np.empty(m, dtype=np.int64)
    cdef int32_t[::1] to = lists
    cdef int64_t[::1] starts = start, parents = parent, lefts = is_left, columns = column, flagged = flag_start
    for k in range(1, n_nodes):
        size = nodes[k].last - nodes[k].first
        memcpy(&to[at], rows + nodes[k].first, size * sizeof(int32_t))
        at += size
        size = nodes[k].other_last - nodes[k].other_first
        if size:
            memcpy(&to[at], rows + nodes[k].other_first, size * sizeof(int32_t))
            at += size
        starts[k] = at
        parents[k - 1], lefts[k - 1] = nodes[k].parent - 1, nodes[k].is_left
        columns[k - 1], flagged[k - 1] = nodes[nodes[k].parent].split.column, nodes[nodes[k].parent].flags
    arrays += [lists, start, parent, is_left, column, flag_start]
    return 0


def grow_tree(BinnedColumns binned, const double[::1] s, const double[::1] w, const int32_t[::1] sample,
              const int32_t[::1] others, Py_ssize_t max_leaves, Py_ssize_t max_depth, Py_ssize_t min_rows,
              Histograms histograms, check_interrupt=None):
    """Grow a tree on the residuals s / w of the sample.

    Returns
    -------
    tuple
        rows, start : lists of the rows of nodes 1, 2, ..., first those of the sample, then the others;
        parent, is_left, column : of these nodes, where the column is that of the parent's split;
        flag_start, flags : which codes, and last unseen levels, go left in the split of each node's parent.
    """
    cdef Py_ssize_t n_nodes, total_flags = 0
    cdef Py_ssize_t n_sample = sample.shape[0], n_others = others.shape[0]
    cdef ResidualNode *nodes = <ResidualNode *> calloc(2 * max_leaves - 1, sizeof(ResidualNode))
    cdef LevelMean *levels = <LevelMean *> malloc((binned.n_bins + 1) * sizeof(LevelMean))
    cdef int32_t *rows = <int32_t *> malloc((2 * binned.n + 2) * sizeof(int32_t))
    cdef char *flags = <char *> malloc(max_leaves * <size_t> (binned.n_bins + 2))
    cdef TreeGrowth task
    cdef list arrays = []
    try:
        if nodes == NULL or levels == NULL or rows == NULL or flags == NULL:
            raise_for_status(NO_MEMORY)
        if s.shape[0] != binned.n or w.shape[0] != binned.n or n_sample + n_others != binned.n or n_sample == 0:
            raise ValueError("the shapes of the columns, the residuals and the sample do not agree")
        histograms.reserve(max_leaves * <size_t> binned.n_bins)
        task.s, task.w, task.rows, task.scratch = &s[0], &w[0], rows, rows + binned.n + 1
        task.levels, task.flags, task.bins = levels, flags, histograms.bins
        task.max_leaves, task.max_depth, task.min_rows = max_leaves, max_depth, min_rows
        task.check_interrupt = NULL if check_interrupt is None else <PyObject *> check_interrupt
        memcpy(rows, &sample[0], n_sample * sizeof(int32_t))
        if n_others:
            memcpy(rows + n_sample, &others[0], n_others * sizeof(int32_t))
        nodes[0].last, nodes[0].other_first, nodes[0].other_last = n_sample, n_sample, binned.n
        nodes[0].parent, nodes[0].flags, nodes[0].bins, nodes[0].split.column = -1, -1, histograms.bins, -1
        with nogil:
            n_nodes = split_nodes(binned, nodes, &task, &total_flags)
        append_node_arrays(nodes, n_nodes, rows, arrays)
        return (*arrays, np.frombuffer(flags[:total_flags], dtype=np.uint8))
    finally:
        free(nodes)
        free(levels)
        free(rows)
        free(flags)
