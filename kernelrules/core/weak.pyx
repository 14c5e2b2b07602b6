"""Weak learners: rules whose rows have the residuals' largest sums.

    best_stumps    for every column the test x ≤ t, or x in a set of levels, with the largest |Σ s| of its rows
    Weak.grow      a small tree by squared error, best split first; every node but the root is a rule

Both read columns as ranks (ranked.pyx). A stump costs the entries of its column once. Trees read codes of at most
MOST_BINS stretches of ranks with equal shares of the rows, sum residuals by code, and get the larger child's sums as a
difference. Rows that are not in the sample follow the splits, and decide nothing.

Invariant: one thread, sums in the order of rows: the bits depend on the data alone.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.ranked cimport Columns, Ranked
from kernelrules.core.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.status import raise_for_status

cdef enum:
    MOST_BINS = 256
    TOGETHER = 4            # columns that are summed up side by side
    BUDGET = 50000000       # entries between two breaths


def threshold(Ranked ranked, Py_ssize_t column, Py_ssize_t rank):
    """Halfway between the numbers of this rank and the next; infinite above the highest."""
    cdef const Columns *columns = &ranked.columns
    cdef double low, high, half
    if rank + 1 >= columns.n_ranks[column]:
        return INFINITY
    low, high = columns.value[column][rank], columns.value[column][rank + 1]
    half = low / 2 + high / 2
    return half if low <= half < high else low


# ---- stumps --------------------------------------------------------------------------------------------------------


cdef void scan_numbers(const Columns *columns, Py_ssize_t j, const double *s, double total, double *best, int64_t *cut,
                       int64_t *with_missing) noexcept nogil:
    """The rank that x may have at most, and whether a missing value counts as well."""
    cdef Py_ssize_t start = columns.start[j], known = columns.known[j], usual = columns.usual[j], k, rank, before = -1
    cdef double listed = 0, absent = 0, below = 0
    cdef bint passed = False, some_missing = columns.size[j] > known
    for k in range(known, columns.size[j]):
        absent += s[columns.row[start + k]]
    for k in range(known):
        listed += s[columns.row[start + k]]
    best[0], cut[0], with_missing[0] = 0, -1, 0
    for k in range(known + 1):
        rank = columns.tag[start + k] // 2 if k < known else columns.n_ranks[j]
        if not passed and rank > usual:         # the rows without an entry come between
            if before >= 0:
                keep_better(below, absent, some_missing, before, best, cut, with_missing)
            below += total - listed - absent
            passed, before = True, usual
        if before >= 0 and rank != before:
            keep_better(below, absent, some_missing, before, best, cut, with_missing)
        if k < known:
            below += s[columns.row[start + k]]
            before = rank


cdef inline void keep_better(double below, double absent, bint some_missing, int64_t rank, double *best, int64_t *cut,
                             int64_t *with_missing) noexcept nogil:
    if fabs(below) > fabs(best[0]):
        best[0], cut[0], with_missing[0] = below, rank, 0
    if some_missing and fabs(below + absent) > fabs(best[0]):
        best[0], cut[0], with_missing[0] = below + absent, rank, 1


cdef void sums_of_levels(const Columns *columns, Py_ssize_t j, const double *s, double total,
                         double *sums) noexcept nogil:
    """Of each level, and last of missing values."""
    cdef Py_ssize_t start = columns.start[j], n_levels = columns.n_ranks[j], k, level
    cdef double rest = total
    memset(sums, 0, (n_levels + 1) * sizeof(double))
    for k in range(columns.size[j]):
        level = columns.tag[start + k] // 2 if k < columns.known[j] else n_levels
        sums[level] += s[columns.row[start + k]]
    for level in range(n_levels + 1):
        rest -= sums[level]
    if n_levels:
        sums[columns.usual[j]] += rest


def best_stumps(Ranked ranked, const double[::1] s, double[::1] best, int64_t[::1] cut, int64_t[::1] with_missing,
                air=None):
    """For each column the largest |Σ s| of a stump, with its sign, and the stump: a rank, or -1 for sets of levels.

    The best set has the levels with positive sums, missing values being one: `level_sums` has them.
    """
    cdef const Columns *columns = &ranked.columns
    cdef Py_ssize_t p = columns.n_columns, j, i, most = 0, since = 0, level
    cdef double total = 0
    cdef double *sums
    if s.shape[0] != columns.n or not best.shape[0] == cut.shape[0] == with_missing.shape[0] == p:
        raise ValueError("the shapes of the columns, the residuals and the results do not agree")
    for i in range(columns.n):
        total += s[i]
    for j in range(p):
        if columns.value[j] == NULL:
            most = max(most, columns.n_ranks[j])
    sums = <double *> malloc((most + 1) * sizeof(double))
    if sums == NULL:
        raise_for_status(NO_MEMORY)
    try:
        for j in range(p):
            with nogil:
                if columns.value[j] != NULL:
                    scan_numbers(columns, j, &s[0], total, &best[j], &cut[j], &with_missing[j])
                else:
                    sums_of_levels(columns, j, &s[0], total, sums)
                    best[j], cut[j], with_missing[j] = 0, -1, 0
                    for level in range(columns.n_ranks[j] + 1):
                        best[j] += max(sums[level], 0.0)
            since += columns.size[j]
            if air is not None and since > BUDGET:
                since = 0
                air()
    finally:
        free(sums)


def level_sums(Ranked ranked, Py_ssize_t column, const double[::1] s):
    """Σ s of each level of a column of categories, and of missing values."""
    cdef const Columns *columns = &ranked.columns
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(columns.n):
        total += s[i]
    out = np.empty(columns.n_ranks[column] + 1)
    cdef double[::1] sums = out
    sums_of_levels(columns, column, &s[0], total, &sums[0])
    return out


def stump_rows(Ranked ranked, Py_ssize_t column, const unsigned char[::1] passes):
    """Rows of a stump as a list, and whether it holds for the others instead.

    `passes` has a flag for every rank, and one for missing values.
    """
    cdef const Columns *columns = &ranked.columns
    cdef Py_ssize_t start = columns.start[column], n_ranks = columns.n_ranks[column], k, n = 0, rank
    cdef bint usual
    if passes.shape[0] != n_ranks + 1:
        raise ValueError("there must be a flag for every rank, and one for missing values")
    usual = n_ranks > 0 and columns.size[column] < columns.n and passes[columns.usual[column]]
    out = np.empty(columns.size[column], dtype=np.int32)
    cdef int32_t[::1] rows = out
    for k in range(columns.size[column]):
        rank = columns.tag[start + k] // 2 if k < columns.known[column] else n_ranks
        if passes[rank] != usual:
            rows[n] = <int32_t> columns.row[start + k]
            n += 1
    return out[:n], bool(usual)


# ---- trees ---------------------------------------------------------------------------------------------------------


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

    cdef Py_ssize_t n, p, n_bins_all
    cdef uint16_t *codes                # (p, n)
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
        self.category = <char *> calloc(p + 1, 1)
        if self.codes == NULL or self.bin_start == NULL or self.category == NULL:
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
        finally:
            free(count)

    def __dealloc__(self):
        free(self.codes)
        free(self.bin_start)
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

    cdef void fill(self, const int32_t *rows, Py_ssize_t m, const double *s, const double *w, Py_ssize_t first,
                   Py_ssize_t last, Bin *bins) noexcept nogil:
        """Sums by code, for some of the columns: several at a time, since in one most rows may have the same code,
        whose sums would wait for one another."""
        cdef Py_ssize_t j = first, k, c, width
        cdef const uint16_t *codes[TOGETHER]
        cdef Bin *here[TOGETHER]
        while j < last:
            width = min(<Py_ssize_t> TOGETHER, last - j)
            for c in range(width):
                codes[c], here[c] = self.codes + (j + c) * self.n, bins + self.bin_start[j + c]
                memset(here[c], 0, (self.bin_start[j + c + 1] - self.bin_start[j + c]) * sizeof(Bin))
            if width == TOGETHER:
                for k in range(m):
                    for c in range(TOGETHER):
                        put(here[c] + codes[c][rows[k]], s[rows[k]], w[rows[k]])
            else:
                for c in range(width):
                    for k in range(m):
                        put(here[c] + codes[c][rows[k]], s[rows[k]], w[rows[k]])
            j += width

    cdef void best_of_numbers(self, Py_ssize_t j, const Node *node, Py_ssize_t min_rows, Split *best) noexcept nogil:
        cdef const Bin *bins = node.bins + self.bin_start[j]
        cdef Py_ssize_t n_bins = self.bin_start[j + 1] - self.bin_start[j] - 1, b, side
        cdef Bin left, right
        cdef double gain
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
                gain = left.s * left.s / left.w + right.s * right.s / right.w
                if gain > best.gain:
                    best[0] = Split(gain, j, b, side)

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
        cdef double gain
        for k in range(m - 1):
            left = plus(left, bins[levels[k].bin])
            right = minus(node.whole, left)
            if left.n < min_rows:
                continue
            if right.n < min_rows:
                break
            gain = left.s * left.s / left.w + right.s * right.s / right.w
            if gain > best.gain:
                best[0] = Split(gain, j, k + 1, False)

    cdef void find_split(self, Node *node, Py_ssize_t min_rows, Level *levels) noexcept nogil:
        cdef Py_ssize_t j
        cdef double least = node.whole.s * node.whole.s / node.whole.w
        node.split = Split(least * (1 + 1e-12) + 1e-300, -1, 0, False)
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
        cdef Py_ssize_t most = 2 * max_leaves - 1, n_nodes = 1, n_leaves = 1, k, best, n_flags = 0
        cdef Py_ssize_t n_some = sample.shape[0], n_others = others.shape[0]
        cdef Node *nodes = <Node *> calloc(most, sizeof(Node))
        cdef Level *levels = <Level *> malloc((self.n_bins_all + 1) * sizeof(Level))
        cdef int32_t *rows = <int32_t *> malloc((2 * self.n + 2) * sizeof(int32_t))
        cdef int32_t *scratch = rows + self.n + 1 if rows != NULL else NULL
        cdef list told = []
        cdef char *flags = <char *> malloc(max_leaves * <size_t> (self.n_bins_all + 2))
        try:
            if nodes == NULL or levels == NULL or rows == NULL or flags == NULL:
                raise_for_status(NO_MEMORY)
            if s.shape[0] != self.n or w.shape[0] != self.n or n_some + n_others != self.n or n_some == 0:
                raise ValueError("the shapes of the columns, the residuals and the sample do not agree")
            room.make(max_leaves * <size_t> self.n_bins_all)
            memcpy(rows, &sample[0], n_some * sizeof(int32_t))
            if n_others:
                memcpy(rows + n_some, &others[0], n_others * sizeof(int32_t))
            nodes[0].last, nodes[0].other_first, nodes[0].other_last = n_some, n_some, self.n
            nodes[0].parent, nodes[0].flags, nodes[0].bins = -1, -1, room.bins
            self.open_node(nodes, 0, rows, s, w, air)
            self.find_split(&nodes[0], min_rows, levels)
            while n_leaves < max_leaves:
                best = -1
                for k in range(n_nodes):
                    if (nodes[k].flags < 0 and nodes[k].split.column >= 0 and nodes[k].depth < max_depth
                            and (best < 0 or nodes[k].split.gain > nodes[best].split.gain)):
                        best = k
                if best < 0:
                    break
                self.make_children(nodes, best, n_nodes, rows, scratch, levels, flags + n_flags)
                nodes[best].flags = n_flags
                n_flags += self.n_flags(nodes[best].split.column)
                self.open_children(nodes, best, n_nodes, rows, room.bins + n_leaves * self.n_bins_all, s, w, air)
                for k in range(n_nodes, n_nodes + 2):
                    with nogil:
                        self.find_split(&nodes[k], min_rows, levels)
                n_nodes += 2
                n_leaves += 1
            self.tell(nodes, n_nodes, rows, flags, n_flags, told)
            return tuple(told)
        finally:
            free(nodes)
            free(levels)
            free(rows)
            free(flags)

    cdef int open_node(self, Node *nodes, Py_ssize_t k, const int32_t *rows, const double[::1] s, const double[::1] w,
                       air) except -1:
        """Sums of a node by code."""
        cdef Node *node = &nodes[k]
        cdef Py_ssize_t m = node.last - node.first, first = 0, last, i
        while first < self.p:
            last = min(self.p, first + max(1, BUDGET // (m + 1)))
            with nogil:
                self.fill(rows + node.first, m, &s[0], &w[0], first, last, node.bins)
            first = last
            if air is not None and first < self.p:
                air()
        node.whole = Bin(0, 0, 0)
        for i in range(self.bin_start[0], self.bin_start[1]):
            node.whole = plus(node.whole, node.bins[i])
        return 0

    cdef int open_children(self, Node *nodes, Py_ssize_t k, Py_ssize_t first, const int32_t *rows, Bin *bins,
                           const double[::1] s, const double[::1] w, air) except -1:
        """The smaller one's sums from its rows, the other's as a difference."""
        cdef Py_ssize_t i, small = first, large = first + 1
        if nodes[first].last - nodes[first].first > nodes[first + 1].last - nodes[first + 1].first:
            small, large = large, small
        nodes[small].bins, nodes[large].bins = bins, nodes[k].bins
        self.open_node(nodes, small, rows, s, w, air)
        with nogil:
            for i in range(self.n_bins_all):
                nodes[large].bins[i] = minus(nodes[large].bins[i], nodes[small].bins[i])
            nodes[large].whole = minus(nodes[k].whole, nodes[small].whole)
        return 0

    cdef void make_children(self, Node *nodes, Py_ssize_t k, Py_ssize_t first, int32_t *rows, int32_t *scratch,
                            Level *levels, char *left) noexcept nogil:
        cdef Node *node = &nodes[k]
        cdef const uint16_t *codes = self.codes + node.split.column * self.n
        cdef Py_ssize_t middle, other_middle
        self.flag(node, levels, left)
        middle = divide(rows, node.first, node.last, codes, left, scratch)
        other_middle = divide(rows, node.other_first, node.other_last, codes, left, scratch)
        nodes[first].first, nodes[first].last = node.first, middle
        nodes[first].other_first, nodes[first].other_last = node.other_first, other_middle
        nodes[first + 1].first, nodes[first + 1].last = middle, node.last
        nodes[first + 1].other_first, nodes[first + 1].other_last = other_middle, node.other_last
        nodes[first].is_left, nodes[first + 1].is_left = True, False
        nodes[first].parent = nodes[first + 1].parent = k
        nodes[first].depth = nodes[first + 1].depth = node.depth + 1
        nodes[first].flags = nodes[first + 1].flags = -1

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
