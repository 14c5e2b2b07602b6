"""Ways of rows down a grown tree: leaves and answers.

Two walks lead to the same leaves. The plain one, for trees that only compare columns with thresholds, has its nodes
packed: siblings side by side, a step is an addition and not a branch, leaves lead to themselves, and LANES rows go
down together, so that one waits for memory while the others move. The general one knows subsets of categories,
stand-ins for missing values and oblique splits, and takes one row at a time.

Invariant: every comparison comes out as it would in float64 with the threshold as it is, and a row's answer depends on
nothing but the row.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.limits cimport INT_MAX
from libc.math cimport INFINITY, isnan, nextafterf
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.simd.finite cimport all_finite
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.base.team cimport gather_status, run_team, status_so_far
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef extern from "base/prefetch.h" nogil:
    void kr_fetch_rows(const char *rows, Py_ssize_t n_rows, Py_ssize_t row_step) noexcept

cdef enum:
    LANES = 8                           # rows that descend together
    STEPS_BETWEEN_ARRIVAL_CHECKS = 4
    ROWS_PER_TASK = 2048
    PREFETCH_DISTANCE = 32              # rows
    BYTES_CHECKED_AT_ONCE = 16384       # rows are checked, then descend: half of the first-level cache
    STAGED_BYTES = 32768                # of the buffer for long rows
    LONG_ROW_BYTES = 256                # longer rows are copied to the buffer
    STEPS_BEFORE_FIRST_SIGNAL_CHECK = 10_000_000    # about 10 ms

# A node of the plain walk, of 16 bytes. `next` is the byte offset of the left child; the right child follows it. In
# leaves `next` is 0 and the threshold infinite, so that a step stays at the leaf. `column` is an even byte offset, too,
# from the start of a row; its lowest bit is set if missing values go right.
ctypedef struct SingleNode:
    float threshold
    int column
    Py_ssize_t next

ctypedef struct DoubleNode:
    double threshold
    int column
    int next

ctypedef fused node_t:
    SingleNode
    DoubleNode

cdef struct Rows:
    const char *data
    Py_ssize_t n, row_step, column_step     # steps in bytes
    bint gapless                            # one number right behind the other
    const char *coming                      # fetched while row 0 walks, and so on; NULL: all are in a cache
    int *odd                                # atomic: set where a number is not finite; NULL: they are not looked at

cdef struct PredictionPlan:
    Rows rows
    bint single, any_missing                # single: rows of float32
    const TreeSplits *splits
    const int64_t *answers                  # of each node
    void *packed                            # NULL: the general walk
    int64_t *packed_answers
    int64_t *out                            # of each row


cdef class Nodes:
    """The splits of a tree (of anything with its attributes), looked through so that walks stay inside them."""

    def __cinit__(self):
        memset(&self.splits, 0, sizeof(TreeSplits))

    def __init__(self, tree):
        self._borrow(tree)
        if tree.surrogates is not None:
            self._borrow_surrogates(tree.surrogates, tree.subset_left.shape[0])
        n_oblique = 0 if tree.directions is None else len(tree.directions)
        self.depth = self._look_through(tree.subset_left.shape[0], n_oblique)
        if self.depth < 0:
            raise ValueError("the tree's arrays do not describe a tree")

    cdef int _borrow(self, tree) except -1:
        cdef TreeSplits *s = &self.splits
        cdef const int64_t[::1] feature = tree.feature, left = tree.left, right = tree.right
        cdef const int64_t[::1] subset_start = tree.subset_start
        cdef const double[::1] threshold = tree.threshold, weight = tree.weight
        cdef const unsigned char[::1] missing_left = tree.missing_left.view("u1"), subset_left = tree.subset_left
        cdef const double[:, ::1] directions
        cdef int64_t[::1] n_levels
        cdef Py_ssize_t j
        s.n_nodes, s.n_features = feature.shape[0], tree.n_features
        by_node = [tree.feature, tree.left, tree.right, tree.subset_start, tree.threshold, tree.weight,
                   tree.missing_left]
        if any(len(array) != s.n_nodes for array in by_node) or s.n_nodes == 0 or len(tree.categories) != s.n_features:
            raise ValueError("the tree's arrays differ in length")
        n_levels = memoryview(bytearray((s.n_features + 1) * sizeof(int64_t))).cast("q")
        for j in range(s.n_features):
            n_levels[j] = 0 if tree.categories[j] is None else len(tree.categories[j])
        s.feature, s.left, s.right, s.subset_start = &feature[0], &left[0], &right[0], &subset_start[0]
        s.threshold, s.weight, s.missing_left, s.n_levels = &threshold[0], &weight[0], &missing_left[0], &n_levels[0]
        if subset_left.shape[0] > 0:
            s.subset_left = &subset_left[0]
        self.kept = [feature, left, right, subset_start, threshold, weight, missing_left, subset_left, n_levels]
        if tree.directions is not None and len(tree.directions) > 0:
            directions = tree.directions
            if directions.shape[1] != s.n_features:
                raise ValueError("the tree's directions have another number of columns")
            s.directions = &directions[0, 0]
            self.kept.append(directions)
        return 0

    cdef int _borrow_surrogates(self, surrogates, Py_ssize_t n_flags) except -1:
        cdef TreeSplits *s = &self.splits
        cdef const int64_t[::1] start = surrogates.start, feature = surrogates.feature
        cdef const int64_t[::1] subset = surrogates.subset_start
        cdef const double[::1] threshold = surrogates.threshold
        cdef const unsigned char[::1] below_left = surrogates.below_left.view("u1")
        cdef Py_ssize_t n = feature.shape[0], i
        if start.shape[0] != s.n_nodes + 1 or not (
                subset.shape[0] == threshold.shape[0] == below_left.shape[0] == n):
            raise ValueError("the surrogates' arrays differ in length")
        for i in range(s.n_nodes):
            if not 0 <= start[i] <= start[i + 1] <= n:
                raise ValueError("the surrogates of the nodes do not follow each other")
        for i in range(n):
            if not self._is_split(feature[i], subset[i], n_flags, 0):
                raise ValueError(f"surrogate {i} is not a split of the tree's columns")
        s.surrogate_start = &start[0]
        if n > 0:
            s.surrogate_feature, s.surrogate_threshold = &feature[0], &threshold[0]
            s.surrogate_below_left, s.surrogate_subset = &below_left[0], &subset[0]
        self.kept += [start, feature, subset, threshold, below_left]
        return 0

    cdef bint _is_split(self, int64_t feature, int64_t subset, Py_ssize_t n_flags, Py_ssize_t n_oblique) noexcept nogil:
        """Whether the numbers of a split lie within the arrays that they point into."""
        if not 0 <= feature < self.splits.n_features + n_oblique:
            return False
        return subset < 0 or (feature < self.splits.n_features
                              and subset <= n_flags - self.splits.n_levels[feature])

    cdef Py_ssize_t _look_through(self, Py_ssize_t n_flags, Py_ssize_t n_oblique) except -2:
        """The depth; -1 where walks could leave the arrays or not end: every node but the root has one parent, which
        comes before it. Finds out whether the splits are plain."""
        cdef const TreeSplits *s = &self.splits
        cdef Py_ssize_t n = s.n_nodes, i, k, deepest = 0
        cdef int64_t child
        cdef int64_t[::1] depth = memoryview(bytearray(n * sizeof(int64_t))).cast("q")
        self.plain = s.surrogate_start == NULL
        for i in range(n):
            if i > 0 and depth[i] == 0:
                return -1
            deepest = max(deepest, depth[i])
            if s.left[i] < 0:
                continue
            for k in range(2):
                child = s.right[i] if k else s.left[i]
                if not i < child < n or depth[child] != 0:
                    return -1
                depth[child] = depth[i] + 1
            if not self._is_split(s.feature[i], s.subset_start[i], n_flags, n_oblique):
                return -1
            if s.feature[i] >= s.n_features or s.subset_start[i] >= 0 or isnan(s.threshold[i]):
                self.plain = False
        return deepest


# ---- one row at a time ------------------------------------------------------------------------------------------


cdef inline Side by_stand_in(const TreeSplits *s, const real_t *row, Py_ssize_t column_step,
                             Py_ssize_t node) noexcept nogil:
    """The side that the first surrogate gives which can tell; UNSEEN if none can."""
    cdef Py_ssize_t k
    cdef Side side
    for k in range(s.surrogate_start[node], s.surrogate_start[node + 1]):
        side = side_of(s, row, column_step, s.surrogate_feature[k], s.surrogate_threshold[k], s.surrogate_subset[k])
        if side == LEFT or side == RIGHT:
            if s.surrogate_subset[k] < 0 and not s.surrogate_below_left[k]:
                return LEFT if side == RIGHT else RIGHT
            return side
    return UNSEEN


cdef inline Side decided_side(const TreeSplits *s, const real_t *row, Py_ssize_t column_step,
                              Py_ssize_t node) noexcept nogil:
    """LEFT or RIGHT. Surrogates are asked about categories that the node has not seen too, as rpart does."""
    cdef Side side = side_of(s, row, column_step, s.feature[node], s.threshold[node], s.subset_start[node])
    if side == LEFT or side == RIGHT:
        return side
    if s.surrogate_start != NULL:
        side = by_stand_in(s, row, column_step, node)
        side = MISSING if side == UNSEEN else side
    if side == MISSING:
        return LEFT if s.missing_left[node] else RIGHT
    return settled(s, side, node)


cdef void walk_rows(const TreeSplits *s, const Rows *rows, Py_ssize_t first, Py_ssize_t last, const int64_t *answers,
                    int64_t *out, const real_t *data) noexcept nogil:
    """Send the rows first to last - 1 down, one after another; `data` is rows.data as values of its type."""
    cdef const real_t *row
    cdef Py_ssize_t i, node
    for i in range(first, last):
        row = <const real_t *> (<const char *> data + i * rows.row_step)
        node = 0
        while s.left[node] >= 0:
            node = s.left[node] if decided_side(s, row, rows.column_step, node) == LEFT else s.right[node]
        out[i] = answers[node]


# ---- several rows together --------------------------------------------------------------------------------------


cdef inline void set_threshold(node_t *node, double threshold) noexcept nogil:
    """For float32 the largest one that is not above: x <= threshold is true of the same float32 values x."""
    if node_t is SingleNode:
        node.threshold = <float> threshold
        if <double> node.threshold > threshold:
            node.threshold = nextafterf(node.threshold, -INFINITY)
    else:
        node.threshold = threshold


cdef void pack(const TreeSplits *s, Py_ssize_t column_step, bint any_missing, const int64_t *answers, node_t *packed,
               int64_t *packed_answers, int *position) noexcept nogil:
    """Nodes in the order of the tree, but children in pairs, and the answers in the same order."""
    cdef Py_ssize_t i, end = 1
    cdef node_t *node
    position[0] = 0
    for i in range(s.n_nodes):
        node = packed + position[i]
        packed_answers[position[i]] = answers[i]
        if s.left[i] < 0:
            node.threshold, node.column, node.next = INFINITY, 0, 0
            continue
        set_threshold(node, s.threshold[i])
        node.column = <int> (s.feature[i] * column_step) | (any_missing and not s.missing_left[i])
        node.next = (end - position[i]) * <int> sizeof(node_t)
        position[s.left[i]], position[s.right[i]] = <int> end, <int> end + 1
        end += 2


cdef inline const node_t *step_down(const node_t *node, const char *row, bint any_missing) noexcept nogil:
    cdef const node_t *left = <const node_t *> (<const char *> node + node.next)
    if node_t is SingleNode:
        if any_missing:
            return left + is_right((<const float *> (row + (node.column & ~1)))[0], node.threshold, node.column)
        return left + ((<const float *> (row + node.column))[0] > node.threshold)
    else:
        if any_missing:
            return left + is_right((<const double *> (row + (node.column & ~1)))[0], node.threshold, node.column)
        return left + ((<const double *> (row + node.column))[0] > node.threshold)


cdef inline int is_right(real_t value, real_t threshold, int missing_right) noexcept nogil:
    """1 or 0; of `missing_right` the lowest bit counts."""
    return (value > threshold) | ((value != value) & missing_right)


cdef inline void walk_lanes(const node_t *root, const Rows *rows, Py_ssize_t first, bint any_missing,
                            const int64_t *answers, int64_t *out) noexcept nogil:
    """LANES rows from the root to their leaves."""
    cdef const node_t *at[LANES]
    cdef const char *row = rows.data + first * rows.row_step
    cdef Py_ssize_t row_step = rows.row_step
    cdef int _level, lane
    cdef bint moving = True
    for lane in range(LANES):
        at[lane] = root
    while moving:
        for _level in range(STEPS_BETWEEN_ARRIVAL_CHECKS):
            for lane in range(LANES):
                at[lane] = step_down(at[lane], row + lane * row_step, any_missing)
        moving = False
        for lane in range(LANES):
            moving |= at[lane].next != 0
    for lane in range(LANES):
        out[first + lane] = answers[at[lane] - root]


cdef inline bint are_finite(const Rows *rows, Py_ssize_t first, Py_ssize_t n, const node_t *root) noexcept nogil:
    """Return whether all values of n contiguous rows are finite; `root` has the type of these values."""
    if node_t is SingleNode:
        return all_finite(<const float *> (rows.data + first * rows.row_step), n * (rows.row_step // 4))
    else:
        return all_finite(<const double *> (rows.data + first * rows.row_step), n * (rows.row_step // 8))


cdef void walk_some(const node_t *root, const Rows *rows, Py_ssize_t first, Py_ssize_t last, bint any_missing,
                    const int64_t *answers, int64_t *out) noexcept nogil:
    """The plain walk of the rows first to last - 1, at least LANES: the last lanes may go over some of them twice."""
    cdef Py_ssize_t i = first
    while i < last:
        i = min(i, last - LANES)
        if rows.coming != NULL:
            kr_fetch_rows(rows.coming + i * rows.row_step, LANES, rows.row_step)
        if any_missing:     # constants, so that there are two loops and neither asks
            walk_lanes(root, rows, i, True, answers, out)
        else:
            walk_lanes(root, rows, i, False, answers, out)
        i += LANES


cdef void walk_looking(const node_t *root, const Rows *rows, Py_ssize_t first, Py_ssize_t last,
                       const int64_t *answers, int64_t *out) noexcept nogil:
    """walk_some of rows whose values have not been checked: a few are checked, which brings them into the first-level
    cache, and then walk while the next ones are prefetched. Stops at the first value that is not finite."""
    cdef Py_ssize_t i = first, n = max(BYTES_CHECKED_AT_ONCE // rows.row_step // LANES, <Py_ssize_t> 1) * LANES
    cdef Rows some = rows[0]
    some.coming = rows.data + n * rows.row_step
    while i < last and not status_so_far(rows.odd):
        i = min(i, last - LANES)
        if not are_finite(rows, i, min(n, last - i), root):
            gather_status(rows.odd, 1)
        walk_some(root, &some, i, min(i + n, last), False, answers, out)
        i += n


cdef void walk_staged(const node_t *root, const Rows *rows, Py_ssize_t first, Py_ssize_t last, bint any_missing,
                      const int64_t *answers, int64_t *out) noexcept nogil:
    """walk_some of long rows in a buffer: copied one after another they come from memory sooner than the walk would
    ask for them, here and there."""
    cdef char buffer[STAGED_BYTES]
    cdef Py_ssize_t i = first, step = rows.row_step, n
    cdef Rows staged = rows[0]
    staged.data, staged.coming = buffer, NULL
    while i < last:
        i = min(i, last - LANES)
        n = min(last - i, STAGED_BYTES // step // LANES * LANES)
        memcpy(buffer, rows.data + i * step, n * step)
        walk_some(root, &staged, 0, n, any_missing, answers, out + i)
        i += n


cdef void walk_block(const node_t *root, const PredictionPlan *plan, Py_ssize_t first, Py_ssize_t last,
                     int64_t *out) noexcept nogil:
    if plan.rows.odd != NULL:
        walk_looking(root, &plan.rows, first, last, plan.packed_answers, out)
    elif plan.rows.gapless and LONG_ROW_BYTES < plan.rows.row_step <= STAGED_BYTES // (4 * LANES):
        walk_staged(root, &plan.rows, first, last, plan.any_missing, plan.packed_answers, out)
    else:
        walk_some(root, &plan.rows, first, last, plan.any_missing, plan.packed_answers, out)


# ---- from Python ------------------------------------------------------------------------------------------------


cdef int make_plan(PredictionPlan *plan, Nodes nodes, const real_t[:, :] x, const int64_t[::1] answers, int64_t *out,
                   bint any_missing) except -1:
    cdef const TreeSplits *s = &nodes.splits
    cdef Py_ssize_t n = s.n_nodes, step = x.strides[1]
    cdef int *position
    plan.rows.data, plan.rows.n = <const char *> &x[0, 0], x.shape[0]
    plan.rows.row_step, plan.rows.column_step = x.strides[0], step
    plan.rows.gapless = step == sizeof(real_t) and x.strides[0] == x.shape[1] * step
    plan.rows.coming, plan.rows.odd = plan.rows.data + PREFETCH_DISTANCE * plan.rows.row_step, NULL
    plan.single, plan.any_missing, plan.packed, plan.packed_answers = real_t is float, any_missing, NULL, NULL
    plan.splits, plan.answers, plan.out = s, &answers[0], out
    if not nodes.plain or plan.rows.n < LANES or step % 2 != 0 or (
            max(n * <Py_ssize_t> sizeof(DoubleNode), s.n_features * abs(step)) >= INT_MAX):
        return 0
    position = <int *> malloc(n * sizeof(int))
    plan.packed = malloc(n * sizeof(DoubleNode))
    plan.packed_answers = <int64_t *> malloc(n * sizeof(int64_t))
    if position == NULL or plan.packed == NULL or plan.packed_answers == NULL:
        free(position)
        free_plan(plan)
        raise_for_status(NO_MEMORY)
    if real_t is float:
        pack(s, step, any_missing, &answers[0], <SingleNode *> plan.packed, plan.packed_answers, position)
    else:
        pack(s, step, any_missing, &answers[0], <DoubleNode *> plan.packed, plan.packed_answers, position)
    free(position)
    return 0


cdef void free_plan(PredictionPlan *plan) noexcept nogil:
    free(plan.packed)
    free(plan.packed_answers)
    plan.packed, plan.packed_answers = NULL, NULL


cdef inline Py_ssize_t n_blocks_of(Py_ssize_t n) noexcept nogil:
    """Tasks of ROWS_PER_TASK rows; the last one takes the rest too, so that it is never short of LANES."""
    return max(n // ROWS_PER_TASK, <Py_ssize_t> 1)


cdef inline Py_ssize_t end_of(Py_ssize_t block, Py_ssize_t n) noexcept nogil:
    return n if block >= n_blocks_of(n) - 1 else (block + 1) * ROWS_PER_TASK


cdef void apply_block(const PredictionPlan *plan, Py_ssize_t block) noexcept nogil:
    cdef Py_ssize_t first = block * ROWS_PER_TASK, last = end_of(block, plan.rows.n)
    if plan.packed == NULL:
        if plan.single:
            walk_rows(plan.splits, &plan.rows, first, last, plan.answers, plan.out,
                      <const float *> plan.rows.data)
        else:
            walk_rows(plan.splits, &plan.rows, first, last, plan.answers, plan.out,
                      <const double *> plan.rows.data)
    elif plan.single:
        walk_block(<const SingleNode *> plan.packed, plan, first, last, plan.out)
    else:
        walk_block(<const DoubleNode *> plan.packed, plan, first, last, plan.out)


cdef void apply_blocks(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef Py_ssize_t block
    for block in range(first, last):
        apply_block(<const PredictionPlan *> context, block)


cdef int go_down(PredictionPlan *plan, Nodes nodes, int n_threads, tick) except -1:
    """Run all blocks, with checks for signals in between."""
    cdef Py_ssize_t n = plan.rows.n, first = 0, last, n_blocks = n_blocks_of(n)
    cdef Py_ssize_t step = max(<Py_ssize_t> n_threads,
                               STEPS_BEFORE_FIRST_SIGNAL_CHECK // (ROWS_PER_TASK * (nodes.depth + 1)))
    while first < n_blocks:
        last = min(first + step, n_blocks)
        started = perf_counter()
        with nogil:
            run_team(first, last, 1, n_threads, apply_blocks, plan)
        first, step = last, better_step(step, perf_counter() - started)
        PyErr_CheckSignals()
        if plan.rows.odd != NULL and status_so_far(plan.rows.odd):
            return 0        # not done: they will be read, and all begins anew
        if tick is not None:
            tick(end_of(first - 1, n), n)
    return 0


def _require_shapes(Nodes nodes, n_rows, n_columns, n_answers, n_out):
    if n_columns != nodes.splits.n_features or n_out != n_rows or n_answers != nodes.splits.n_nodes:
        raise ValueError("the shapes of the rows, the tree and the answers do not agree")


def apply_tree(Nodes nodes, const real_t[:, :] x, const int64_t[::1] answers, int64_t[::1] out, bint any_missing,
               int n_threads, tick=None):
    """out[i] = answers[leaf of row i], any eight bytes per node. `any_missing` may be false only if x has no NaN."""
    cdef PredictionPlan plan
    _require_shapes(nodes, x.shape[0], x.shape[1], answers.shape[0], out.shape[0])
    if x.shape[0] == 0:
        return
    make_plan(&plan, nodes, x, answers, &out[0], any_missing)
    try:
        go_down(&plan, nodes, n_threads, tick)
    finally:
        free_plan(&plan)


def apply_if_finite(Nodes nodes, const real_t[:, :] x, const int64_t[::1] answers, int64_t[::1] out, int n_threads,
                    tick=None):
    """`apply_tree` of rows whose values have not been checked: each block is checked when it is in a cache.

    Returns False if a value is not finite, the rows have gaps or the tree is not plain: `out` is then not valid.
    """
    cdef PredictionPlan plan
    cdef int odd = 0
    if not nodes.plain or x.shape[0] < LANES:
        return False
    _require_shapes(nodes, x.shape[0], x.shape[1], answers.shape[0], out.shape[0])
    make_plan(&plan, nodes, x, answers, &out[0], False)
    try:
        plan.rows.odd = &odd
        if plan.packed == NULL or not plan.rows.gapless:
            return False
        go_down(&plan, nodes, n_threads, tick)
    finally:
        free_plan(&plan)
    return odd == 0
