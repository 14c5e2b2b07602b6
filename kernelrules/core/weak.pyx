"""A weak learner of rules with several conditions: a small tree, every node of which but the root is a rule.

Trees are grown by squared error, best split first. They read codes of at most MOST_BINS stretches of ranks (ranked.pyx)
with equal shares of the rows, sum residuals by code, and get the larger child's sums as a difference. Columns that have
the same code in most rows are read by rows, as the list of the other codes, and that code's sum is what these leave of
the node's. Rows that are not in the sample follow the splits, and decide nothing; nodes that will not be split are not
summed up.

Invariant: one thread, sums in the order of rows: the bits depend on the data alone.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.ranked cimport Columns, Ranked
from kernelrules.core.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.status import raise_for_status

cdef extern from "Python.h":
    ctypedef struct PyObject

cdef enum:
    MOST_BINS = 256
    TOGETHER = 4            # columns that are summed up side by side
    BUDGET = 50000000       # entries between two breaths

cdef double EQUAL = 1e-12       # relative difference of gains that is rounding


cdef struct Bin:
    double s, w             # sums of w·residual and w
    int64_t n               # rows


cdef struct Split:
    double gain
    Py_ssize_t column       # -1: none
    Py_ssize_t cut          # the last bin that goes left; of levels, so many in their order
    bint missing_left


cdef struct Node:
    Py_ssize_t first, last              # its rows in the sample
    Py_ssize_t other_first, other_last  # and the others
    Py_ssize_t parent, depth
    bint is_left
    Bin whole
    Bin *bins
    Split split
    Py_ssize_t flags                    # where those of its split begin; -1 in leaves


cdef struct Level:
    double mean
    Py_ssize_t bin


cdef struct Task:                       # what one tree is grown on, and the memory that it is given
    const double *s
    const double *w
    int32_t *rows
    int32_t *scratch
    Level *levels
    char *flags
    Bin *bins
    Py_ssize_t max_leaves, max_depth, min_rows
    PyObject *air                       # called now and then, may raise; or NULL


cdef inline bint may_split(const Node *node, const Task *task) noexcept nogil:
    return node.depth < task.max_depth and node.last - node.first >= max(2 * task.min_rows, <Py_ssize_t> 2)


cdef inline int breathe(const Task *task, bint going_on) except -1 nogil:
    if going_on and task.air != NULL:
        with gil:
            (<object> task.air)()
    return 0


cdef int by_mean(const void *a, const void *b) noexcept nogil:
    cdef const Level *x = <const Level *> a
    cdef const Level *y = <const Level *> b
    if x.mean != y.mean:
        return 1 if x.mean > y.mean else -1
    return (x.bin > y.bin) - (x.bin < y.bin)


cdef inline Bin plus(Bin a, Bin b) noexcept nogil:
    return Bin(a.s + b.s, a.w + b.w, a.n + b.n)


cdef inline Bin minus(Bin a, Bin b) noexcept nogil:
    return Bin(a.s - b.s, a.w - b.w, a.n - b.n)


cdef inline void put(Bin *bin, double s, double w) noexcept nogil:
    bin.s += s
    bin.w += w
    bin.n += 1


cdef inline double gain_of(Bin left, Bin right) noexcept nogil:
    return left.s * left.s / left.w + right.s * right.s / right.w


cdef inline bint gains_more(Bin left, Bin right, double than) noexcept nogil:
    """Whether `gain_of` exceeds this by more than rounding, so that of equals the first counts; without a division."""
    return left.s * left.s * right.w + right.s * right.s * left.w > than * left.w * right.w * (1 + EQUAL)


cdef class Room:
    """Memory for the sums of trees, kept from one to the next: of one thread at a time."""

    cdef Bin *bins
    cdef size_t n

    def __dealloc__(self):
        free(self.bins)

    cdef int make(self, size_t n) except -1:
        """For so many."""
        if n > self.n:
            free(self.bins)
            self.bins = <Bin *> malloc(n * sizeof(Bin))
            self.n = n if self.bins != NULL else 0
            if self.bins == NULL:
                raise_for_status(NO_MEMORY)
        return 0


cdef class Weak:
    """Columns as codes, for trees.

    Parameters
    ----------
    ranked : Ranked
        The columns.
    """

    cdef Py_ssize_t n, p, n_bins_all, n_wide
    cdef uint16_t *codes                # (p, n)
    cdef Py_ssize_t *wide               # columns that are read by their codes; the others are
    cdef Py_ssize_t *usual              # listed: but for the bin that is here, -1 for wide columns,
    cdef uint32_t *listed               # those of all of them
    cdef Py_ssize_t *row_start          # stand here, row by row
    cdef Py_ssize_t *bin_start          # of a column; its last bin is of missing values
    cdef char *category
    cdef int32_t *last_rank             # of a bin of numbers
    cdef readonly Ranked ranked

    def __cinit__(self, Ranked ranked):
        cdef const Columns *columns = &ranked.columns
        cdef Py_ssize_t n = columns.n, p = columns.n_columns, j, k, room = 0
        cdef int32_t *count = NULL
        self.ranked, self.n, self.p = ranked, n, p
        self.codes = <uint16_t *> malloc(max(n * p, 1) * sizeof(uint16_t))
        self.bin_start = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t))
        self.wide, self.usual = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t)), <Py_ssize_t *> calloc(
            p + 1, sizeof(Py_ssize_t))
        self.row_start = <Py_ssize_t *> calloc(n + 2, sizeof(Py_ssize_t))
        self.category = <char *> calloc(p + 1, 1)
        if (self.codes == NULL or self.bin_start == NULL or self.wide == NULL or self.usual == NULL
                or self.row_start == NULL or self.category == NULL):
            raise_for_status(NO_MEMORY)
        for j in range(p):
            self.category[j] = columns.value[j] == NULL
            if self.category[j] and columns.n_ranks[j] > 65534:
                raise ValueError(f"column {j} has {columns.n_ranks[j]} categories; at most 65534 can be")
            self.bin_start[j] = room
            room += columns.n_ranks[j] + 1 if self.category[j] else min(columns.n_ranks[j], <Py_ssize_t> MOST_BINS) + 1
        self.bin_start[p] = self.n_bins_all = room
        self.last_rank = <int32_t *> calloc(room + 1, sizeof(int32_t))
        k = 0
        for j in range(p):
            k = max(k, columns.n_ranks[j])
        count = <int32_t *> malloc((2 * k + 2) * sizeof(int32_t))
        try:
            if self.last_rank == NULL or count == NULL:
                raise_for_status(NO_MEMORY)
            for j in range(p):
                with nogil:
                    self.code_column(columns, j, count, count + k + 1)
            self.list_rows(columns)
        finally:
            free(count)

    def __dealloc__(self):
        free(self.codes)
        free(self.bin_start)
        free(self.wide)
        free(self.usual)
        free(self.listed)
        free(self.row_start)
        free(self.category)
        free(self.last_rank)

    cdef void code_column(self, const Columns *columns, Py_ssize_t j, int32_t *count, int32_t *bins) noexcept nogil:
        """Bins of ranks: one each, or so that all hold about as many rows."""
        cdef Py_ssize_t start = columns.start[j], n_ranks = columns.n_ranks[j], k, b = 0, left, here = 0, target
        cdef Py_ssize_t n_bins = self.bin_start[j + 1] - self.bin_start[j] - 1
        cdef uint16_t *codes = self.codes + j * self.n
        cdef int32_t *last = self.last_rank + self.bin_start[j]
        if n_ranks <= n_bins:
            for k in range(n_ranks):
                bins[k] = <int32_t> k
        else:
            memset(count, 0, n_ranks * sizeof(int32_t))
            for k in range(columns.known[j]):
                count[columns.tag[start + k] // 2] += 1
            count[columns.usual[j]] += <int32_t> (columns.n - columns.size[j])
            left = columns.n - (columns.size[j] - columns.known[j])
            target = left / n_bins
            for k in range(n_ranks):
                if here > 0 and (here + count[k] / 2 > target or n_ranks - k <= n_bins - 1 - b) and b < n_bins - 1:
                    b += 1
                    left -= here
                    here = 0
                    target = left / (n_bins - b)
                bins[k] = <int32_t> b
                here += count[k]
        for k in range(n_ranks):
            last[bins[k]] = <int32_t> k
        b = bins[columns.usual[j]] if n_ranks else n_bins
        for k in range(self.n):
            codes[k] = <uint16_t> b
        for k in range(columns.size[j]):
            codes[columns.row[start + k]] = <uint16_t> (
                bins[columns.tag[start + k] // 2] if k < columns.known[j] else n_bins)

    cdef int list_rows(self, const Columns *columns) except -1:
        """The columns that have one code in most rows, by rows."""
        cdef Py_ssize_t n = self.n, j, i, k, total = 0, at
        cdef const uint16_t *codes
        for j in range(self.p):
            if columns.n_ranks[j] == 0 or 2 * columns.size[j] > n or self.n_bins_all >> 32:
                self.usual[j] = -1
                self.wide[self.n_wide] = j
                self.n_wide += 1
        with nogil:
            for j in range(self.p):
                if self.usual[j] < 0:
                    continue
                codes = self.codes + j * n
                self.usual[j] = self.bin_of_usual(columns, j)
                for k in range(columns.size[j]):
                    i = columns.row[columns.start[j] + k]
                    if codes[i] != self.usual[j]:
                        self.row_start[i + 2] += 1
                        total += 1
            for i in range(n):
                self.row_start[i + 2] += self.row_start[i + 1]
        self.listed = <uint32_t *> malloc(max(total, 1) * sizeof(uint32_t))
        if self.listed == NULL:
            raise_for_status(NO_MEMORY)
        with nogil:                             # row_start[i + 1] is where the next of row i goes, and last its end
            for j in range(self.p):
                if self.usual[j] < 0:
                    continue
                codes = self.codes + j * n
                for k in range(columns.size[j]):
                    i = columns.row[columns.start[j] + k]
                    if codes[i] != self.usual[j]:
                        at = self.row_start[i + 1]
                        self.listed[at] = <uint32_t> (self.bin_start[j] + codes[i])
                        self.row_start[i + 1] = at + 1
        return 0

    cdef Py_ssize_t bin_of_usual(self, const Columns *columns, Py_ssize_t j) noexcept nogil:
        """The code of the usual rank: that of a row which has no entry."""
        cdef const int32_t *last = self.last_rank + self.bin_start[j]
        cdef Py_ssize_t b = 0
        while last[b] < <int32_t> columns.usual[j]:
            b += 1
        return b

    cdef void fill_listed(self, const int32_t *rows, Py_ssize_t m, const double *s, const double *w,
                          Bin *bins) noexcept nogil:
        """Sums by code for the columns that are listed by rows, but for their usual codes."""
        cdef Py_ssize_t k, e
        cdef double s_here, w_here
        for k in range(m):
            s_here, w_here = s[rows[k]], w[rows[k]]
            for e in range(self.row_start[rows[k]], self.row_start[rows[k] + 1]):
                put(bins + self.listed[e], s_here, w_here)

    cdef void fill_usual(self, Node *node) noexcept nogil:
        """What the listed codes leave of the node."""
        cdef Py_ssize_t j, b
        cdef Bin *bins
        cdef Bin rest
        for j in range(self.p):
            if self.usual[j] < 0:
                continue
            bins, rest = node.bins + self.bin_start[j], node.whole
            for b in range(self.bin_start[j + 1] - self.bin_start[j]):
                rest = minus(rest, bins[b])
            bins[self.usual[j]] = rest if rest.n else Bin(0, 0, 0)

    cdef void fill(self, const int32_t *rows, Py_ssize_t m, const double *s, const double *w, Py_ssize_t first,
                   Py_ssize_t last, Bin *bins) noexcept nogil:
        """Sums by code, for some of the wide columns: several at a time, since in one many rows may have the same
        code, whose sums would wait for one another."""
        cdef Py_ssize_t i = first, j, k, c, width
        cdef const uint16_t *codes[TOGETHER]
        cdef Bin *here[TOGETHER]
        while i < last:
            width = min(<Py_ssize_t> TOGETHER, last - i)
            for c in range(width):
                j = self.wide[i + c]
                codes[c], here[c] = self.codes + j * self.n, bins + self.bin_start[j]
            if width == TOGETHER:
                for k in range(m):
                    for c in range(TOGETHER):
                        put(here[c] + codes[c][rows[k]], s[rows[k]], w[rows[k]])
            else:
                for c in range(width):
                    for k in range(m):
                        put(here[c] + codes[c][rows[k]], s[rows[k]], w[rows[k]])
            i += width

    cdef void best_of_numbers(self, Py_ssize_t j, const Node *node, Py_ssize_t min_rows, Split *best) noexcept nogil:
        cdef const Bin *bins = node.bins + self.bin_start[j]
        cdef Py_ssize_t n_bins = self.bin_start[j + 1] - self.bin_start[j] - 1, b, side
        cdef Bin left, right
        for side in range(2 if bins[n_bins].n else 1):
            left = bins[n_bins] if side else Bin(0, 0, 0)
            for b in range(n_bins if bins[n_bins].n else n_bins - 1):
                if not bins[b].n:
                    continue
                left = plus(left, bins[b])
                right = minus(node.whole, left)
                if left.n < min_rows:
                    continue
                if right.n < min_rows or right.n == 0:
                    break
                if gains_more(left, right, best.gain):
                    best[0] = Split(gain_of(left, right), j, b, side)

    cdef Py_ssize_t order_levels(self, Py_ssize_t j, const Node *node, Level *levels) noexcept nogil:
        cdef const Bin *bins = node.bins + self.bin_start[j]
        cdef Py_ssize_t b, m = 0
        for b in range(self.bin_start[j + 1] - self.bin_start[j]):
            if bins[b].n:
                levels[m].mean, levels[m].bin = bins[b].s / bins[b].w, b
                m += 1
        qsort(levels, m, sizeof(Level), by_mean)
        return m

    cdef void best_of_levels(self, Py_ssize_t j, const Node *node, Py_ssize_t min_rows, Level *levels,
                             Split *best) noexcept nogil:
        """Some of the levels in the order of their means: the best set is one of these."""
        cdef const Bin *bins = node.bins + self.bin_start[j]
        cdef Py_ssize_t m = self.order_levels(j, node, levels), k
        cdef Bin left = Bin(0, 0, 0), right
        for k in range(m - 1):
            left = plus(left, bins[levels[k].bin])
            right = minus(node.whole, left)
            if left.n < min_rows:
                continue
            if right.n < min_rows:
                break
            if gains_more(left, right, best.gain):
                best[0] = Split(gain_of(left, right), j, k + 1, False)

    cdef void find_split(self, Node *node, Py_ssize_t min_rows, Level *levels) noexcept nogil:
        cdef Py_ssize_t j
        cdef double least = node.whole.s * node.whole.s / node.whole.w
        node.split = Split(least * (1 + EQUAL) + 1e-300, -1, 0, False)
        for j in range(self.p):
            if self.category[j]:
                self.best_of_levels(j, node, min_rows, levels, &node.split)
            else:
                self.best_of_numbers(j, node, min_rows, &node.split)
        node.split.gain -= least

    cdef void flag(self, const Node *node, Level *levels, char *left) noexcept nogil:
        """Which codes go left, and last, where more weight goes: there go codes that the node does not have."""
        cdef Py_ssize_t j = node.split.column, n_bins = self.bin_start[j + 1] - self.bin_start[j] - 1, b, m, k
        cdef const Bin *bins = node.bins + self.bin_start[j]
        cdef double heavy = 0
        if not self.category[j]:
            for b in range(n_bins):
                left[b] = b <= node.split.cut
                heavy += bins[b].w if left[b] else 0
            heavy += bins[n_bins].w if node.split.missing_left else 0
            left[n_bins + 1] = 2 * heavy >= node.whole.w
            left[n_bins] = node.split.missing_left if bins[n_bins].n else left[n_bins + 1]
            return
        m = self.order_levels(j, node, levels)
        for k in range(node.split.cut):
            heavy += bins[levels[k].bin].w
        memset(left, 2 * heavy >= node.whole.w, n_bins + 2)
        for k in range(m):
            left[levels[k].bin] = k < node.split.cut

    def grow(self, const double[::1] s, const double[::1] w, const int32_t[::1] sample, const int32_t[::1] others,
             Py_ssize_t max_leaves, Py_ssize_t max_depth, Py_ssize_t min_rows, Room room, air=None):
        """A tree on the residuals s / w of the sample.

        Returns
        -------
        tuple
            rows, start : lists of rows of the nodes 1, 2, ..., the sample's first, then the others';
            parent, is_left, column : of these nodes; the column is that of the parent's split;
            flag_start, flags : which codes go left in the split of each node's parent, and where new levels go.
        """
        cdef Py_ssize_t most = 2 * max_leaves - 1, n_nodes, n_flags = 0
        cdef Py_ssize_t n_some = sample.shape[0], n_others = others.shape[0]
        cdef Node *nodes = <Node *> calloc(most, sizeof(Node))
        cdef Level *levels = <Level *> malloc((self.n_bins_all + 1) * sizeof(Level))
        cdef int32_t *rows = <int32_t *> malloc((2 * self.n + 2) * sizeof(int32_t))
        cdef list told = []
        cdef char *flags = <char *> malloc(max_leaves * <size_t> (self.n_bins_all + 2))
        cdef Task task
        try:
            if nodes == NULL or levels == NULL or rows == NULL or flags == NULL:
                raise_for_status(NO_MEMORY)
            if s.shape[0] != self.n or w.shape[0] != self.n or n_some + n_others != self.n or n_some == 0:
                raise ValueError("the shapes of the columns, the residuals and the sample do not agree")
            room.make(max_leaves * <size_t> self.n_bins_all)
            task.s, task.w, task.rows, task.scratch = &s[0], &w[0], rows, rows + self.n + 1
            task.levels, task.flags, task.bins = levels, flags, room.bins
            task.max_leaves, task.max_depth, task.min_rows = max_leaves, max_depth, min_rows
            task.air = NULL if air is None else <PyObject *> air
            memcpy(rows, &sample[0], n_some * sizeof(int32_t))
            if n_others:
                memcpy(rows + n_some, &others[0], n_others * sizeof(int32_t))
            nodes[0].last, nodes[0].other_first, nodes[0].other_last = n_some, n_some, self.n
            nodes[0].parent, nodes[0].flags, nodes[0].bins, nodes[0].split.column = -1, -1, room.bins, -1
            with nogil:
                n_nodes = self.split_nodes(nodes, &task, &n_flags)
            self.tell(nodes, n_nodes, rows, flags, n_flags, told)
            return tuple(told)
        finally:
            free(nodes)
            free(levels)
            free(rows)
            free(flags)

    cdef Py_ssize_t split_nodes(self, Node *nodes, const Task *task, Py_ssize_t *n_flags) except -1 nogil:
        """The best split of all, again and again; gives the number of nodes."""
        cdef Py_ssize_t n_nodes = 1, n_leaves = 1, k, best
        if may_split(&nodes[0], task):
            self.open_node(&nodes[0], task)
            self.find_split(&nodes[0], task.min_rows, task.levels)
        while n_leaves < task.max_leaves:
            best = -1
            for k in range(n_nodes):
                if (nodes[k].flags < 0 and nodes[k].split.column >= 0
                        and (best < 0 or nodes[k].split.gain > nodes[best].split.gain)):
                    best = k
            if best < 0:
                break
            self.make_children(nodes, best, n_nodes, task, task.flags + n_flags[0])
            nodes[best].flags = n_flags[0]
            n_flags[0] += self.n_flags(nodes[best].split.column)
            n_leaves += 1
            if n_leaves < task.max_leaves and (
                    may_split(&nodes[n_nodes], task) or may_split(&nodes[n_nodes + 1], task)):
                self.open_children(nodes, best, n_nodes, task.bins + (n_leaves - 1) * self.n_bins_all, task)
            n_nodes += 2
        return n_nodes

    cdef int open_node(self, Node *node, const Task *task) except -1 nogil:
        """Sums of a node, and by code."""
        cdef Py_ssize_t m = node.last - node.first, done = 0, next, i
        cdef const int32_t *rows = task.rows + node.first
        node.whole = Bin(0, 0, 0)
        for i in range(m):
            put(&node.whole, task.s[rows[i]], task.w[rows[i]])
        memset(node.bins, 0, self.n_bins_all * sizeof(Bin))
        while done < m and self.n_wide < self.p:
            next = min(m, done + max(1, BUDGET // self.p))
            self.fill_listed(rows + done, next - done, task.s, task.w, node.bins)
            done = next
            breathe(task, done < m)
        self.fill_usual(node)
        done = 0
        while done < self.n_wide:
            next = min(self.n_wide, done + max(1, BUDGET // (m + 1)))
            self.fill(rows, m, task.s, task.w, done, next, node.bins)
            done = next
            breathe(task, done < self.n_wide)
        return 0

    cdef int open_children(self, Node *nodes, Py_ssize_t k, Py_ssize_t first, Bin *bins,
                           const Task *task) except -1 nogil:
        """Splits of both: the smaller one's sums from its rows, the other's as a difference."""
        cdef Py_ssize_t i, small = first, large = first + 1
        if nodes[first].last - nodes[first].first > nodes[first + 1].last - nodes[first + 1].first:
            small, large = large, small
        nodes[small].bins, nodes[large].bins = bins, nodes[k].bins
        self.open_node(&nodes[small], task)
        for i in range(self.n_bins_all):
            nodes[large].bins[i] = minus(nodes[large].bins[i], nodes[small].bins[i])
        nodes[large].whole = minus(nodes[k].whole, nodes[small].whole)
        for i in range(first, first + 2):
            if may_split(&nodes[i], task):
                self.find_split(&nodes[i], task.min_rows, task.levels)
        return 0

    cdef void make_children(self, Node *nodes, Py_ssize_t k, Py_ssize_t first, const Task *task,
                            char *left) noexcept nogil:
        cdef Node *node = &nodes[k]
        cdef const uint16_t *codes = self.codes + node.split.column * self.n
        cdef Py_ssize_t middle, other_middle
        self.flag(node, task.levels, left)
        middle = divide(task.rows, node.first, node.last, codes, left, task.scratch)
        other_middle = divide(task.rows, node.other_first, node.other_last, codes, left, task.scratch)
        nodes[first].first, nodes[first].last = node.first, middle
        nodes[first].other_first, nodes[first].other_last = node.other_first, other_middle
        nodes[first + 1].first, nodes[first + 1].last = middle, node.last
        nodes[first + 1].other_first, nodes[first + 1].other_last = other_middle, node.other_last
        nodes[first].is_left, nodes[first + 1].is_left = True, False
        nodes[first].parent = nodes[first + 1].parent = k
        nodes[first].depth = nodes[first + 1].depth = node.depth + 1
        nodes[first].flags = nodes[first + 1].flags = -1
        nodes[first].split.column = nodes[first + 1].split.column = -1

    cdef int tell(self, const Node *nodes, Py_ssize_t n_nodes, const int32_t *rows, const char *flags,
                  Py_ssize_t n_flags, list told) except -1:
        """The result of `grow`."""
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
        told += [lists, start, parent, is_left, column, flag_start, np.frombuffer(flags[:n_flags], dtype=np.uint8)]
        return 0

    def last_ranks(self, Py_ssize_t column):
        """Of the bins of a column of numbers, the highest rank in each."""
        cdef Py_ssize_t first = self.bin_start[column], k, m = self.bin_start[column + 1] - first - 1
        return [self.last_rank[first + k] for k in range(m)]

    def rows_with(self, Py_ssize_t column, const unsigned char[::1] passes):
        """Which rows have a code that passes, as an array of bool."""
        cdef const uint16_t *codes = self.codes + column * self.n
        cdef Py_ssize_t i
        if passes.shape[0] != self.n_codes(column):
            raise ValueError("there must be a flag for every code")
        out = np.empty(self.n, dtype=np.bool_)
        cdef unsigned char[::1] holds = out.view(np.uint8)
        for i in range(self.n):
            holds[i] = passes[codes[i]] != 0
        return out

    cdef Py_ssize_t n_flags(self, Py_ssize_t column) noexcept nogil:
        """Of a split: one a code, that of missing values is the last, and one for what no code is of."""
        return self.bin_start[column + 1] - self.bin_start[column] + 1

    def n_codes(self, Py_ssize_t column):
        """Codes of a column, that of missing values included."""
        return self.bin_start[column + 1] - self.bin_start[column]


cdef Py_ssize_t divide(int32_t *rows, Py_ssize_t first, Py_ssize_t last, const uint16_t *codes, const char *left,
                       int32_t *scratch) noexcept nogil:
    """Rows that go left first, each side in the order that it had; where the right ones begin."""
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
