"""Trees for compiled callers: sort one column, find its best split by any criterion, walk a tree of thresholds.

A caller's column becomes a table of one ordered column and its rows an arena, so the split is found by the very scan
that grows trees (scan.scan_column); a criterion of the caller's own is one more branch of criteria.score_of.

Invariant: nothing of the caller's is written but the results, and everything it says about sizes is checked first.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.criteria cimport (
    ENTROPY, GINI, MISCLASSIFICATION, OWN, POISSON, SQUARED, Criterion, gain_of,
)
from kernelrules.core.machine cimport MOST_THREADS, simd_level
from kernelrules.core.presort cimport DIFFERS, Arena, Table, key_of, key_t, sort_entries
from kernelrules.core.scan cimport (
    NO_CUT, Found, Rules, Scratch, View, add_entries, free_scratch, halfway, new_scratch, scan_column,
)
from kernelrules.core.status cimport BAD_ARGUMENT, NO_MEMORY, OK
from kernelrules.core.types cimport real_t


cdef int order_rows(const real_t *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known) noexcept nogil:
    """Rows by ascending value, missing ones last."""
    if (n and (x == NULL or order == NULL)) or n < 0 or n >= <Py_ssize_t> 1 << 31 or n_known == NULL:
        return BAD_ARGUMENT
    if real_t is float:
        return order_by_keys(x, <uint32_t> 0, n, order, n_known)
    else:
        return order_by_keys(x, <uint64_t> 0, n, order, n_known)


cdef int order_by_keys(const real_t *x, key_t example, Py_ssize_t n, Py_ssize_t *order,
                       Py_ssize_t *n_known) noexcept nogil:
    """The same, with keys of the value's width."""
    cdef key_t *keys = <key_t *> malloc(2 * (n + 1) * sizeof(key_t))
    cdef uint32_t *entries = <uint32_t *> malloc(2 * (n + 1) * sizeof(uint32_t))
    cdef Py_ssize_t i, known = 0
    if keys == NULL or entries == NULL:
        free(keys)
        free(entries)
        return NO_MEMORY
    for i in range(n):
        keys[i] = key_of(x[i], example)
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
    """The criterion as the scan knows it, if it suits the column."""
    memset(criterion, 0, sizeof(Criterion))
    criterion.classes = given.kind != KR_SQUARED_ERROR and given.kind != KR_POISSON
    criterion.n_sums = 1 + (column.n_classes if criterion.classes else 1)
    criterion.counts = criterion.classes and column.weights == NULL
    criterion.own, criterion.state = given.loss, given.state
    if given.kind == KR_GINI:
        criterion.kind = GINI
    elif given.kind == KR_ENTROPY:
        criterion.kind = ENTROPY
    elif given.kind == KR_MISCLASSIFICATION:
        criterion.kind = MISCLASSIFICATION
    elif given.kind == KR_SQUARED_ERROR:
        criterion.kind = SQUARED
    elif given.kind == KR_POISSON:
        criterion.kind = POISSON
    elif given.kind == KR_OWN and given.loss != NULL:
        criterion.kind = OWN
    else:
        return BAD_ARGUMENT
    return OK


cdef bint is_sound(const kr_column *column, bint classes) noexcept nogil:
    """Whether sizes and pointers go together."""
    if column.n < 1 or column.n >= <Py_ssize_t> 1 << 31 or not 0 <= column.n_known <= column.n or column.min_leaf < 1:
        return False
    if column.x == NULL or column.order == NULL:
        return False
    if not classes:
        return column.y != NULL
    return column.labels != NULL and 1 <= column.n_classes < (<Py_ssize_t> 1 << 31) // column.n


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


cdef void report(const kr_column *column, const Criterion *criterion, const Found *found,
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
    cdef Rules rules
    cdef Table table
    cdef Arena arena
    cdef View view
    cdef Found found
    cdef Scratch *scratch = NULL
    cdef uint32_t *entries = NULL
    cdef double *sums = NULL
    cdef Py_ssize_t place = 0, levels = 0
    cdef uint32_t known
    cdef int bits = 0, status
    if column == NULL or given == NULL or split == NULL or criterion_of(given, column, &criterion) != OK:
        return BAD_ARGUMENT
    if not is_sound(column, criterion.classes):
        return BAD_ARGUMENT
    while criterion.classes and <Py_ssize_t> 1 << bits < column.n_classes:
        bits += 1
    memset(&table, 0, sizeof(Table))
    memset(&arena, 0, sizeof(Arena))
    memset(&view, 0, sizeof(View))
    memset(&rules, 0, sizeof(Rules))
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
        status = mark_entries(column, criterion.classes, table.shift, entries)
    if status == OK:
        arena.n, arena.order, arena.rows, arena.n_orders = column.n, &entries, entries, 1
        arena.y, arena.w = <double *> column.y, <double *> column.weights
        view.table, view.arena, view.m, view.known = &table, &arena, column.n, &known
        view.shift, view.sums = sums + criterion.n_sums, sums
        add_entries(&criterion, &view, entries, column.n, sums)
        if criterion.kind == SQUARED:                   # about the mean, so that large ones cost no digits
            sums[criterion.n_sums] = sums[1] / sums[0]
            memset(sums, 0, criterion.n_sums * sizeof(double))
            add_entries(&criterion, &view, entries, column.n, sums)
        scan_column(&criterion, &rules, &view, 0, scratch, &found, NULL)
        report(column, &criterion, &found, split)
    free(entries)
    free(sums)
    free_scratch(scratch)
    return status


cdef int apply_source(const kr_tree *tree, const double *x, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t *leaves,
                      int n_threads) noexcept nogil:
    """Leaves of rows."""
    cdef Py_ssize_t i, node
    cdef int team = <int> min(<Py_ssize_t> min(n_threads, <int> MOST_THREADS), n)
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
    for i in prange(n, num_threads=team, schedule="static"):
        node = 0
        while tree.left[node] >= 0:
            node = child_of(tree, node, x[i * stride + tree.feature[node]])
        leaves[i] = node
    return OK


cdef inline Py_ssize_t child_of(const kr_tree *tree, Py_ssize_t node, double value) noexcept nogil:
    if value <= tree.threshold[node]:
        return tree.left[node]
    if value != value and tree.missing_left != NULL and tree.missing_left[node]:
        return tree.left[node]
    return tree.right[node]
