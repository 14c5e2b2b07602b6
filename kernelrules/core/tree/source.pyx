"""Trees for compiled callers: sort one column, find its best split by any criterion, walk a tree of thresholds.

A caller's column becomes a table of one ordered column and its rows an arena, so the split is found by the very scan
that grows trees (scan.scan_column); a criterion of the caller's own is the row KR_OWN of criteria.h.

Invariant: nothing of the caller's is written but the results, and everything it says about sizes is checked first.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.tree.criteria cimport (
    CLASS_WEIGHTS, PACKAGE_ONLY, SQUARED_ERROR, Criterion, CriterionRow, criterion_row_of, gain_of, make_criterion,
)
from kernelrules.core.simd.cpu cimport MAX_THREADS, simd_level
from kernelrules.core.tree.presort cimport DIFFERS, SampleArena, PresortedTable, key_t, set_key, sort_entries
from kernelrules.core.tree.scan cimport (
    NO_CUT, BestSplit, SplitRules, ScanBuffers, NodeView, add_entries, free_scratch, halfway, new_scratch, scan_column,
)
from kernelrules.core.base.status cimport BAD_ARGUMENT, NO_MEMORY, OK
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

cdef enum:
    MIN_SHARED_ROWS = 2000           # rows that are worth waking threads for


cdef int order_rows(const real_t *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known) noexcept nogil:
    """Rows by ascending value, missing ones last."""
    if (n and (x == NULL or order == NULL)) or n < 0 or n >= <Py_ssize_t> 1 << 31 or n_known == NULL:
        return BAD_ARGUMENT
    if real_t is float:
        return order_by_keys(x, <uint32_t *> malloc(2 * (n + 1) * sizeof(uint32_t)), n, order, n_known)
    else:
        return order_by_keys(x, <uint64_t *> malloc(2 * (n + 1) * sizeof(uint64_t)), n, order, n_known)


cdef int order_by_keys(const real_t *x, key_t *keys, Py_ssize_t n, Py_ssize_t *order,
                       Py_ssize_t *n_known) noexcept nogil:
    """Order rows by keys of the value's width, in a buffer of 2 (n + 1) keys that is freed."""
    cdef uint32_t *entries = <uint32_t *> malloc(2 * (n + 1) * sizeof(uint32_t))
    cdef Py_ssize_t i, known = 0
    if keys == NULL or entries == NULL:
        free(keys)
        free(entries)
        return NO_MEMORY
    for i in range(n):
        set_key(x[i], keys + i)
        entries[i] = <uint32_t> i
        known += x[i] == x[i]
    sort_entries(keys, keys + n, entries, entries + n, n, known)
    for i in range(n):
        order[i] = entries[i] & ~DIFFERS
    n_known[0] = known
    free(keys)
    free(entries)
    return OK


cdef int criterion_of(const kr_criterion *given, const kr_column *column, Criterion *criterion) noexcept nogil:
    """The criterion of this number, if C callers may use it."""
    cdef const CriterionRow *row = criterion_row_of(given.kind)
    if row == NULL or row.number >= PACKAGE_ONLY or (row.number == KR_OWN and given.loss == NULL):
        return BAD_ARGUMENT
    criterion[0] = make_criterion(row, column.n_classes if row.sums == CLASS_WEIGHTS else 1, column.weights != NULL)
    criterion.own_loss, criterion.state = given.loss, given.state
    return OK


cdef bint is_sound(const kr_column *column, bint classes) noexcept nogil:
    """Whether sizes and pointers go together."""
    if column.n < 1 or column.n >= <Py_ssize_t> 1 << 31 or not 0 <= column.n_known <= column.n or column.min_leaf < 1:
        return False
    if column.x == NULL or column.order == NULL:
        return False
    if not classes:
        return column.y != NULL
    return column.labels != NULL and 1 <= column.n_classes <= ((<Py_ssize_t> 1 << 31) - 1) // column.n


cdef int mark_entries(const kr_column *column, bint classes, int shift, uint32_t *entries) noexcept nogil:
    """The column's rows in order, with their classes, marked where values change."""
    cdef Py_ssize_t i, row, label
    for i in range(column.n):
        row = column.order[i]
        if not 0 <= row < column.n:
            return BAD_ARGUMENT
        entries[i] = <uint32_t> row
        if i == 0 or (i < column.n_known and column.x[row] > column.x[column.order[i - 1]]):
            entries[i] |= DIFFERS
        if classes:
            label = column.labels[row]
            if not 0 <= label < column.n_classes:
                return BAD_ARGUMENT
            entries[i] |= <uint32_t> label << shift
    return OK


cdef void report(const kr_column *column, const Criterion *criterion, const BestSplit *found,
                 kr_split *split) noexcept nogil:
    """What was found, in the caller's terms."""
    cdef const Py_ssize_t *order = column.order
    split.gain, split.threshold, split.n_left, split.missing_left = -1, INFINITY, 0, False
    if found.score == NO_CUT:
        return
    split.gain = gain_of(criterion, found.raw, found.weight)
    split.missing_left = found.missing_left
    split.n_left = found.at + (column.n - column.n_known if found.missing_left else 0)
    if found.at < column.n_known:
        split.threshold = halfway(column.x[order[found.at - 1]], column.x[order[found.at]])


cdef int scan_source(const kr_column *column, const kr_criterion *given, kr_split *split) noexcept nogil:
    """The best split of a caller's column."""
    cdef Criterion criterion
    cdef SplitRules rules
    cdef PresortedTable table
    cdef SampleArena arena
    cdef NodeView view
    cdef BestSplit found
    cdef ScanBuffers *scratch = NULL
    cdef uint32_t *entries = NULL
    cdef double *sums = NULL
    cdef Py_ssize_t place = 0, levels = 0
    cdef uint32_t known
    cdef int bits = 0, status
    if column == NULL or given == NULL or split == NULL or criterion_of(given, column, &criterion) != OK:
        return BAD_ARGUMENT
    if not is_sound(column, criterion.of_classes):
        return BAD_ARGUMENT
    while criterion.of_classes and <Py_ssize_t> 1 << bits < column.n_classes:
        bits += 1
    memset(&table, 0, sizeof(PresortedTable))
    memset(&arena, 0, sizeof(SampleArena))
    memset(&view, 0, sizeof(NodeView))
    memset(&rules, 0, sizeof(SplitRules))
    table.n, table.n_columns, table.n_ordered = column.n, 1, 1
    table.shift, table.place, table.n_levels = 31 - bits, &place, &levels
    table.id_mask = (<uint32_t> 1 << table.shift) - 1
    rules.min_leaf, rules.min_weight, rules.level = column.min_leaf, 0, simd_level()
    known = <uint32_t> column.n_known
    entries = <uint32_t *> malloc(column.n * sizeof(uint32_t))
    sums = <double *> calloc(2 * criterion.n_sums, sizeof(double))
    scratch = new_scratch(&table, &criterion, column.weights != NULL, 1)
    status = NO_MEMORY if column.n <= table.id_mask else BAD_ARGUMENT
    if entries != NULL and sums != NULL and scratch != NULL and column.n <= table.id_mask:
        status = mark_entries(column, criterion.of_classes, table.shift, entries)
    if status == OK:
        arena.n, arena.order, arena.rows, arena.n_orders = column.n, &entries, entries, 1
        arena.y, arena.w = <double *> column.y, <double *> column.weights
        view.table, view.arena, view.m, view.known = &table, &arena, column.n, &known
        view.shift, view.sums = sums + criterion.n_sums, sums
        add_entries(&criterion, &view, entries, column.n, sums)
        if criterion.number == SQUARED_ERROR:                   # about the mean, so that large ones cost no digits
            sums[criterion.n_sums] = sums[1] / sums[0]
            memset(sums, 0, criterion.n_sums * sizeof(double))
            add_entries(&criterion, &view, entries, column.n, sums)
        scan_column(&criterion, &rules, &view, 0, scratch, &found, NULL)
        report(column, &criterion, &found, split)
    free(entries)
    free(sums)
    free_scratch(scratch)
    return status


cdef struct RowWalk:
    const kr_tree *tree
    const double *x
    Py_ssize_t stride
    Py_ssize_t *leaves


cdef void walk_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const RowWalk *walk = <const RowWalk *> context
    cdef const kr_tree *tree = walk.tree
    cdef const double *row
    cdef Py_ssize_t i, node
    for i in range(first, last):
        row, node = walk.x + i * walk.stride, 0
        while tree.left[node] >= 0:
            node = child_of(tree, node, row[tree.feature[node]])
        walk.leaves[i] = node


cdef int apply_source(const kr_tree *tree, const double *x, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t *leaves,
                      int n_threads) noexcept nogil:
    """Leaves of rows."""
    cdef Py_ssize_t i
    cdef RowWalk walk
    if tree == NULL or tree.n_nodes < 1 or tree.n_features < 1 or n < 0 or stride < tree.n_features or n_threads < 1:
        return BAD_ARGUMENT
    if (tree.feature == NULL or tree.threshold == NULL or tree.left == NULL or tree.right == NULL
            or (n and (x == NULL or leaves == NULL))):
        return BAD_ARGUMENT
    for i in range(tree.n_nodes):
        if tree.left[i] < 0 and tree.right[i] < 0:
            continue
        if not (i < tree.left[i] < tree.n_nodes and i < tree.right[i] < tree.n_nodes
                and 0 <= tree.feature[i] < tree.n_features):
            return BAD_ARGUMENT
    walk.tree, walk.x, walk.stride, walk.leaves = tree, x, stride, leaves
    run_team(0, n, 0, min(n_threads, <int> MAX_THREADS) if n >= MIN_SHARED_ROWS else 1, walk_rows, &walk)
    return OK


cdef inline Py_ssize_t child_of(const kr_tree *tree, Py_ssize_t node, double value) noexcept nogil:
    if value <= tree.threshold[node]:
        return tree.left[node]
    if value != value and tree.missing_left != NULL and tree.missing_left[node]:
        return tree.left[node]
    return tree.right[node]
