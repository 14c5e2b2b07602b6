"""Passes over the nodes of a tree, for the methods of kernelrules.prune.

`left` and `right` are the children of nodes in depth-first order (-1 in leaves), so a subtree is a stretch of nodes,
children come after their parents, and one loop backwards is from the leaves up, without recursion.

    weakest_links   the alpha from which on each split is not worth its leaves, in O(n log n)
    cheapest        the pruned tree of least cost, where costs add up over nodes
    extra_errors    C4.5's pessimism about leaves
    subtree_ends    where each subtree's stretch ends
    node_losses     losses of new rows at every node on their way, as if it were their leaf
    held_out        losses of new rows under every tree of a nested sequence, in one walk up from their leaves; `spans`
                    says which of the trees each node is a leaf of

Weakest links. With R(t) the risk of node t as a leaf, the best pruned subtree of t costs

    f_t(alpha) = min(R(t) + alpha, f_left(alpha) + f_right(alpha)) .

The sum has a slope of 2 at least, so it crosses the first term once, at alpha_t, and stays above: t is a leaf for all
alpha >= alpha_t, whatever lies above t. Invariant: the bends of f_t are a max-heap of splits below and at t. To find
alpha_t, the bends of both children are merged, and taken off from the largest as long as they lie at or above the
crossing; what is taken off never comes back. The heap is leftist: merging costs O(log n), also in a chain.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, expm1, log, sqrt
from libc.stdint cimport int64_t

from kernelrules.core.tree.criteria cimport CriterionRow, criterion_row_of, row_loss

cdef enum:
    NODES_BETWEEN_SIGNAL_CHECKS = 65536
    ROWS_BETWEEN_SIGNAL_CHECKS = 256
    MAX_SPINE_NODES = 192       # of two heaps that are merged: the right spine of a leftist heap has at most 64

TABLE = -1              # in place of a criterion's number: losses are a table of node and class

cdef struct LinkHeap:       # of nodes; largest alpha on top
    const double *alpha
    int64_t *left
    int64_t *right
    int64_t *rank       # nodes on the right spine

cdef struct NestedTrees:     # trees cut from one another, and what is summed up of their losses
    const int64_t *first        # node i is a leaf of the trees first[i] to last[i] - 1
    const int64_t *last
    const int64_t *above        # the next such node on the way up, -1 at its end
    const double *values        # of nodes, d each
    Py_ssize_t d
    Py_ssize_t n_trees
    const CriterionRow *row     # NULL: values are losses of the classes
    double unit
    double *sums                # (3, n_trees)


cdef int64_t merged_heap(const LinkHeap *heap, int64_t a, int64_t b) noexcept nogil:
    """The root of the heap of two heaps; -1 is an empty one."""
    cdef int64_t spine[MAX_SPINE_NODES]
    cdef Py_ssize_t n = 0
    cdef int64_t node, below
    while a >= 0 and b >= 0:
        if heap.alpha[a] < heap.alpha[b]:
            a, b = b, a
        spine[n] = a
        n += 1
        a = heap.right[a]
    below = a if a >= 0 else b
    while n > 0:
        n -= 1
        node = spine[n]
        heap.right[node] = below
        if heap.left[node] < 0 or (below >= 0 and heap.rank[heap.left[node]] < heap.rank[below]):
            heap.left[node], heap.right[node] = below, heap.left[node]
        heap.rank[node] = 1 + (heap.rank[heap.right[node]] if heap.right[node] >= 0 else 0)
        below = node
    return below


def weakest_links(const int64_t[::1] left, const int64_t[::1] right, const double[::1] risk, double[::1] alpha,
                  double[::1] less_risk, int64_t[::1] more_leaves, int64_t[:, ::1] work):
    """Fill alpha (0 in leaves), and what the split of a node that is cut on the way of the whole tree to its root gives
    below its alpha: leaves more, and less risk. `more_leaves` is 0 for nodes that are never cut while they are there.

    `work` is (4, n_nodes).
    """
    cdef Py_ssize_t n = left.shape[0], i, batch
    cdef LinkHeap heap
    if not (right.shape[0] == risk.shape[0] == alpha.shape[0] == less_risk.shape[0] == more_leaves.shape[0] == n
            and work.shape[0] == 4 and work.shape[1] == n) or n == 0:
        raise ValueError("the arrays differ in length")
    heap.alpha, heap.left, heap.right, heap.rank = &alpha[0], &work[0, 0], &work[1, 0], &work[2, 0]
    i = n - 1
    while i >= 0:
        batch = max(i - NODES_BETWEEN_SIGNAL_CHECKS, -1)
        with nogil:
            link_nodes(&left[0], &right[0], &risk[0], &alpha[0], &less_risk[0], &more_leaves[0], &heap, &work[3, 0], i,
                       batch)
        PyErr_CheckSignals()
        i = batch


cdef void link_nodes(const int64_t *left, const int64_t *right, const double *risk, double *alpha, double *less_risk,
                     int64_t *more_leaves, const LinkHeap *heap, int64_t *top, Py_ssize_t first,
                     Py_ssize_t end) noexcept nogil:
    """The nodes first, first - 1, ... down to end + 1; top[i] is the root of the heap of node i."""
    cdef Py_ssize_t i
    cdef int64_t bends, leaves
    cdef double below, crossing
    for i in range(first, end, -1):
        alpha[i], less_risk[i], more_leaves[i], top[i] = 0, 0, 0, -1
        if left[i] < 0:
            continue
        bends = merged_heap(heap, top[left[i]], top[right[i]])
        below, leaves = risk[left[i]] + risk[right[i]], 2
        while True:
            crossing = max((risk[i] - below) / (leaves - 1), 0.0)
            if bends < 0 or alpha[bends] < crossing:
                break
            below -= less_risk[bends]
            leaves += more_leaves[bends]
            more_leaves[bends] = 0
            bends = merged_heap(heap, heap.left[bends], heap.right[bends])
        alpha[i], less_risk[i], more_leaves[i] = crossing, max(risk[i] - below, 0.0), leaves - 1
        heap.left[i], heap.right[i], heap.rank[i] = bends, -1, 1
        top[i] = i


def subtree_ends(const int64_t[::1] right, int64_t[::1] ends):
    """ends[i] = one past the last node below node i."""
    cdef Py_ssize_t i
    if ends.shape[0] != right.shape[0]:
        raise ValueError("the arrays differ in length")
    for i in range(right.shape[0] - 1, -1, -1):
        ends[i] = i + 1 if right[i] < 0 else ends[right[i]]


def cheapest(const int64_t[::1] left, const int64_t[::1] right, const double[::1] leaf_cost,
             const double[::1] split_cost, double slack, double[::1] cost, unsigned char[::1] cut):
    """Leaves up: cut[i] = 1 where node i as a leaf costs at most `slack` more than its split with what is left below.

    cost[i] is that of the pruned subtree. With slack 0 it is the least of all, and of all that cost so much the tree
    has the fewest leaves.
    """
    cdef Py_ssize_t n = left.shape[0], i
    cdef double whole
    if not right.shape[0] == leaf_cost.shape[0] == split_cost.shape[0] == cost.shape[0] == cut.shape[0] == n:
        raise ValueError("the arrays differ in length")
    for i in range(n - 1, -1, -1):
        cut[i], cost[i] = 0, leaf_cost[i]
        if left[i] < 0:
            continue
        whole = split_cost[i] + cost[left[i]] + cost[right[i]]
        if leaf_cost[i] <= whole + slack:
            cut[i] = 1
        else:
            cost[i] = whole


cdef double by_normal(double n, double errors, double z) noexcept nogil:
    """Of one error or more; a leaf that is wrong about (nearly) all its rows cannot be worse than that."""
    cdef double share = (errors + 0.5) / n
    if errors + 0.5 >= n:
        return max(n - errors, 0.0)
    return (share + z * z / (2 * n) + z * sqrt(max(share / n - share * share / n + z * z / (4 * n * n), 0.0))
            ) / (1 + z * z / n) * n - errors


def extra_errors(const double[::1] n, const double[::1] errors, double confidence, double z, double[::1] out):
    """What the upper limit of a binomial share adds to the errors of leaves; see kernelrules.prune.pessimistic. z is
    the normal deviate of the confidence, n above 0."""
    cdef Py_ssize_t i
    cdef double none
    if not n.shape[0] == errors.shape[0] == out.shape[0]:
        raise ValueError("the arrays differ in length")
    for i in range(n.shape[0]):
        if errors[i] < 1:
            none = n[i] * -expm1(log(confidence) / n[i])
            out[i] = none + errors[i] * (by_normal(n[i], 1, z) - none) if errors[i] > 0 else none
        else:
            out[i] = by_normal(n[i], errors[i], z)


# ---- rows that were held out ------------------------------------------------------------------------------------


def spans(const int64_t[::1] left, const int64_t[::1] right, const double[::1] cut, const double[::1] alphas,
          int64_t[::1] first, int64_t[::1] last, int64_t[::1] above):
    """Node i is a leaf of the trees first[i] to last[i] - 1, the trees being cut at the ascending `alphas`; above[i] is
    the nearest node above it that is a leaf of any, or -1. Leaves of the whole tree have cut 0."""
    cdef Py_ssize_t n = left.shape[0], i, k
    cdef int64_t child
    if not (right.shape[0] == cut.shape[0] == first.shape[0] == last.shape[0] == above.shape[0] == n) or n == 0:
        raise ValueError("the arrays differ in length")
    last[0], above[0] = alphas.shape[0], -1
    for i in range(n):
        first[i] = min(lower_bound(alphas, cut[i]), last[i])
        if left[i] < 0:
            continue
        for k in range(2):
            child = right[i] if k else left[i]
            last[child] = first[i]
            above[child] = i if first[i] < last[i] else above[i]


cdef Py_ssize_t lower_bound(const double[::1] alphas, double value) noexcept nogil:
    """Number of alphas below the value."""
    cdef Py_ssize_t low = 0, high = alphas.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if alphas[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline double loss_of(const CriterionRow *row, const double *at, const double *y, int64_t label,
                           Py_ssize_t d) noexcept nogil:
    """Loss of one row at the node whose values `at` points to; row NULL: at[k] is the loss of class k."""
    cdef double total = 0
    cdef Py_ssize_t j
    if row == NULL:
        return at[label]
    for j in range(d):
        total += row_loss(row, 1, y[j], at[j])
    return total


cdef const CriterionRow *row_with_losses(int number) except? NULL:
    """The criterion of this number, which must have losses of rows; NULL for TABLE."""
    cdef const CriterionRow *row = criterion_row_of(number)
    if number != TABLE and (row == NULL or row.row_loss == NULL):
        raise ValueError(f"no criterion for numbers has the number {number}")
    return row


def node_losses(int number, const int64_t[::1] leaves, const int64_t[::1] parent, const double[:, ::1] values,
                const double[:, ::1] y, const double[::1] weight, double[::1] losses):
    """Add to losses[i] the weighted losses of the rows that pass node i. Not for TABLE."""
    cdef Py_ssize_t n = leaves.shape[0], n_nodes = parent.shape[0], d = values.shape[1], i, start = 0, batch
    cdef const CriterionRow *row = row_with_losses(number)
    cdef int64_t node
    if not (values.shape[0] == losses.shape[0] == n_nodes and weight.shape[0] == y.shape[0] == n
            and y.shape[1] == d) or d == 0 or row == NULL:
        raise ValueError("the arrays differ in length")
    for i in range(n):
        if not 0 <= leaves[i] < n_nodes:
            raise ValueError(f"row {i} has no such leaf")
    for i in range(n_nodes):
        if not -1 <= parent[i] < i:
            raise ValueError(f"node {i} does not come after its parent")
    while start < n:
        batch = min(start + ROWS_BETWEEN_SIGNAL_CHECKS, n)
        with nogil:
            for i in range(start, batch):
                node = leaves[i]
                while node >= 0:
                    losses[node] += weight[i] * loss_of(row, &values[node, 0], &y[i, 0], 0, d)
                    node = parent[node]
        PyErr_CheckSignals()
        start = batch


def held_out(int number, const int64_t[::1] leaves, const int64_t[::1] first, const int64_t[::1] last,
             const int64_t[::1] above, const double[:, ::1] values, const int64_t[::1] labels, const double[:, ::1] y,
             const double[::1] weight, double unit, double[:, ::1] sums):
    """Add to sums[0, k] and sums[1, k] the rows' weighted losses and squared losses under tree k less those under tree
    k - 1, in units of losses: cumulative sums are those of the trees. Rows of infinite losses and a weight above 0 are
    counted in sums[2], where sums of weights would leave rounding. `first`, `last` and `above` come from `spans`."""
    cdef Py_ssize_t n = leaves.shape[0], n_nodes = first.shape[0], d = values.shape[1], i, batch, start = 0
    cdef const CriterionRow *row = row_with_losses(number)
    cdef bint by_class = row == NULL
    cdef const double *target = NULL
    cdef NestedTrees trees
    if not (last.shape[0] == above.shape[0] == values.shape[0] == n_nodes and weight.shape[0] == n
            and (labels.shape[0] if by_class else y.shape[0]) == n and (by_class or y.shape[1] == d)
            and sums.shape[0] == 3) or d == 0:
        raise ValueError("the arrays differ in length")
    for i in range(n):
        if not 0 <= leaves[i] < n_nodes or (by_class and not 0 <= labels[i] < d):
            raise ValueError(f"row {i} has no such leaf or class")
    for i in range(n_nodes):
        if not 0 <= first[i] <= last[i] < sums.shape[1] or not -1 <= above[i] < i:
            raise ValueError(f"node {i} is not a leaf of such trees")
    if n == 0:
        return
    trees.first, trees.last, trees.above, trees.values, trees.d = &first[0], &last[0], &above[0], &values[0, 0], d
    trees.row, trees.unit, trees.sums, trees.n_trees = row, unit, &sums[0, 0], sums.shape[1]
    while start < n:
        batch = min(start + ROWS_BETWEEN_SIGNAL_CHECKS, n)
        with nogil:
            for i in range(start, batch):
                if not by_class:
                    target = &y[i, 0]
                add_row(&trees, leaves[i], target, labels[i] if by_class else 0, weight[i])
        PyErr_CheckSignals()
        start = batch


cdef inline void add_row(const NestedTrees *trees, int64_t node, const double *y, int64_t label,
                         double weight) noexcept nogil:
    """Go up from a leaf, and add what each node says for the trees that it is a leaf of."""
    cdef int64_t first, last
    cdef double loss
    while node >= 0:
        first, last = trees.first[node], trees.last[node]
        if first < last:
            loss = loss_of(trees.row, trees.values + node * trees.d, y, label, trees.d) / trees.unit
            if loss < INFINITY:
                add_span(trees.sums, first, last, weight * loss)
                add_span(trees.sums + trees.n_trees, first, last, weight * loss * loss)
            elif weight > 0:
                add_span(trees.sums + 2 * trees.n_trees, first, last, 1.0)
        node = trees.above[node]


cdef inline void add_span(double *sums, int64_t first, int64_t last, double amount) noexcept nogil:
    sums[first] += amount
    sums[last] -= amount
