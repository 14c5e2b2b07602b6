"""The best split of one column of one node: a threshold, or a subset of categories, and the side of missing values.

    ordered column      a cut between two entries that differ: all scores in one pass over the entries
    coded column        sums of the rows by bin, then a pass over the bins
    categories          category_subsets.pyx
    missing             each side is tried, and missing against known; or they do not count (surrogates)

Of equal scores the lowest threshold is taken, then missing to the right; of subsets see category_subsets.pyx.

Invariant: a column's sums are added in the order of its entries (or of the node's rows), so no thread changes a bit.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.tree.absolute cimport scan_absolute
from kernelrules.core.base.bits cimport kr_lowest
from kernelrules.core.tree.criteria cimport (
    GINI, KR_MAX_SQUARED_ROWS, SQUARED_ERROR, Criterion, base_of, kr_gini_score_of_two,
)
from kernelrules.core.tree.candidate cimport ColumnBins, add_cell, sums_of_counted_rows, try_candidate, rows_in
from kernelrules.core.tree.category_subsets cimport scan_subsets
from kernelrules.core.tree.presort cimport DIFFERS, PresortedTable

ctypedef fused code_t:
    uint8_t
    uint16_t

cdef enum:
    SUM_BUFFERS = 8                # times n_sums that are used at once
    DOUBLES_PER_KEY = 4         # of a bin in `keys`: enough for a Level, and for what surrogates count


cdef Py_ssize_t cell_size(const Criterion *criterion, bint weighted) noexcept nogil:
    """Numbers of a bin: its sums, and where rows have weights their number."""
    return criterion.n_sums + weighted


cdef bint is_packed(const Criterion *criterion, bint weighted) noexcept nogil:
    """Whether a bin is one number: rows in its lower half, those of class 1 in the upper."""
    return criterion.of_classes and criterion.n_sums == 3 and not weighted


cdef ScanBuffers *new_scratch(const PresortedTable *table, const Criterion *criterion, bint weighted,
                              Py_ssize_t n) noexcept nogil:
    """Allocate the buffers of one thread; NULL if there is no memory."""
    cdef ScanBuffers *scratch = <ScanBuffers *> calloc(1, sizeof(ScanBuffers))
    cdef Py_ssize_t widest = 1, k, n_classes = criterion.n_sums - 1
    if scratch == NULL:
        return NULL
    for k in range(table.n_coded):
        widest = max(widest, table.n_bins[k])
    scratch.entries = <uint32_t *> malloc((n + 16) * sizeof(uint32_t))
    scratch.cells = <double *> calloc(widest * max(2, cell_size(criterion, weighted)), sizeof(double))
    scratch.touched = <uint64_t *> calloc(widest // 64 + 1, sizeof(uint64_t))
    scratch.bins = <Py_ssize_t *> malloc(2 * widest * sizeof(Py_ssize_t))
    scratch.keys = <double *> malloc(widest * DOUBLES_PER_KEY * sizeof(double))
    scratch.sums = <double *> malloc(SUM_BUFFERS * criterion.n_sums * sizeof(double))
    scratch.left_of = <uint8_t *> malloc(widest)
    scratch.counts = <double *> calloc(criterion.n_sums, sizeof(double))
    scratch.inverse = <double *> malloc((n + 1) * sizeof(double)) if criterion.number == SQUARED_ERROR else NULL
    if criterion.sorts_targets:
        scratch.losses = <double *> malloc(4 * (n + 2) * sizeof(double))
        scratch.links = <uint32_t *> malloc(4 * (n + 2) * sizeof(uint32_t))
    if criterion.of_classes and n_classes > 2 and table.n_coded:
        scratch.classes = <double *> malloc(3 * n_classes * sizeof(double))
    if (scratch.entries == NULL or scratch.cells == NULL or scratch.touched == NULL or scratch.bins == NULL
            or scratch.keys == NULL or scratch.sums == NULL or scratch.left_of == NULL or scratch.counts == NULL
            or (criterion.number == SQUARED_ERROR and scratch.inverse == NULL)
            or (criterion.sorts_targets and (scratch.losses == NULL or scratch.links == NULL))
            or (criterion.of_classes and n_classes > 2 and table.n_coded and scratch.classes == NULL)):
        free_scratch(scratch)
        return NULL
    return scratch


cdef void free_scratch(ScanBuffers *scratch) noexcept nogil:
    if scratch == NULL:
        return
    free(scratch.entries)
    free(scratch.cells)
    free(scratch.touched)
    free(scratch.bins)
    free(scratch.keys)
    free(scratch.sums)
    free(scratch.left_of)
    free(scratch.inverse)
    free(scratch.losses)
    free(scratch.links)
    free(scratch.classes)
    free(scratch.counts)
    free(scratch)


# ---- sums ------------------------------------------------------------------------------------------------------

cdef inline void add_entry(const Criterion *criterion, const NodeView *view, uint32_t entry,
                           double *sums) noexcept nogil:
    """Add a row to sums."""
    cdef const PresortedTable *table = view.table
    cdef Py_ssize_t row = entry & table.id_mask, n_targets = criterion.n_sums - 1, k
    cdef double weight = view.arena.w[row] if view.arena.w != NULL else 1
    sums[0] += weight
    if criterion.of_classes:
        sums[1 + ((entry & ~DIFFERS) >> table.shift)] += weight
    else:
        for k in range(n_targets):
            sums[1 + k] += weight * (view.arena.y[row * n_targets + k] - view.shift[k])


cdef void add_entries(const Criterion *criterion, const NodeView *view, const uint32_t *entries, Py_ssize_t n,
                      double *sums) noexcept nogil:
    """Add rows to sums."""
    cdef Py_ssize_t i
    for i in range(n):
        add_entry(criterion, view, entries[i], sums)


cdef void count_packed(const code_t *codes, const NodeView *view, Py_ssize_t first, Py_ssize_t end,
                       uint64_t *histogram) noexcept nogil:
    """Rows of two classes by bin, of the coded columns from `first` to `end`, all columns of a row at a time."""
    cdef const PresortedTable *table = view.table
    cdef const uint32_t *rows = view.arena.rows + view.start
    cdef const code_t *of_row
    cdef Py_ssize_t i, k, n_coded = table.n_coded
    cdef uint64_t row
    cdef uint32_t entry
    for i in range(view.m):
        entry = rows[i]
        row = 1 | <uint64_t> ((entry & ~DIFFERS) >> table.shift) << 32
        of_row = codes + (entry & table.id_mask) * n_coded
        for k in range(first, end):
            histogram[table.bin_start[k] + of_row[k]] += row


cdef void count_sums(const code_t *codes, const Criterion *criterion, const NodeView *view, Py_ssize_t first,
                     Py_ssize_t end, double *histogram) noexcept nogil:
    """Sums by bin, of the coded columns from `first` to `end`."""
    cdef const PresortedTable *table = view.table
    cdef const uint32_t *rows = view.arena.rows + view.start
    cdef const code_t *of_row
    cdef bint weighted = view.arena.w != NULL
    cdef Py_ssize_t i, k, size = cell_size(criterion, weighted), bin
    for i in range(view.m):
        of_row = codes + (rows[i] & table.id_mask) * table.n_coded
        for k in range(first, end):
            bin = table.bin_start[k] + of_row[k]
            add_entry(criterion, view, rows[i], histogram + bin * size)
            if weighted:
                histogram[bin * size + size - 1] += 1


cdef void fill_histogram(const Criterion *criterion, const NodeView *view, Py_ssize_t first, Py_ssize_t end,
                         void *histogram) noexcept nogil:
    """Sums of a node by bin, of the coded columns from `first` to `end`; the rest is left alone."""
    cdef const PresortedTable *table = view.table
    cdef bint weighted = view.arena.w != NULL, packed = is_packed(criterion, weighted)
    cdef Py_ssize_t bytes_of_bin = 8 * (1 if packed else cell_size(criterion, weighted))
    memset(<char *> histogram + table.bin_start[first] * bytes_of_bin, 0,
           (table.bin_start[end] - table.bin_start[first]) * bytes_of_bin)
    if packed:
        if table.wide:
            count_packed(<const uint16_t *> view.arena.codes, view, first, end, <uint64_t *> histogram)
        else:
            count_packed(<const uint8_t *> view.arena.codes, view, first, end, <uint64_t *> histogram)
    elif table.wide:
        count_sums(<const uint16_t *> view.arena.codes, criterion, view, first, end, <double *> histogram)
    else:
        count_sums(<const uint8_t *> view.arena.codes, criterion, view, first, end, <double *> histogram)


# ---- ordered columns -------------------------------------------------------------------------------------------

cdef inline bint is_simple(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                           Py_ssize_t column) noexcept nogil:
    """Whether one of the loops of scan_loops.h serves."""
    if view.arena.w != NULL or is_constrained(rules, column):
        return False
    if criterion.counts and criterion.number == GINI and criterion.n_sums > 3:
        return view.m < KR_MAX_SQUARED_ROWS
    if criterion.of_classes:
        return criterion.n_sums == 3 and (criterion.number == GINI or criterion.logs != NULL)
    return criterion.number == SQUARED_ERROR and criterion.n_sums == 2


cdef const double *inverse_of(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                              ScanBuffers *scratch) noexcept nogil:
    """What to multiply by instead of dividing, the same for all columns of a node, where sums are rounded anyway.

    NULL elsewhere. Whether it is used depends on the node alone, so all threads get the same bits.
    """
    cdef Py_ssize_t i
    if (criterion.number != SQUARED_ERROR or criterion.n_sums != 2 or view.unit == 0 or view.known != NULL
            or view.arena.w != NULL or rules.monotone != NULL):
        return NULL
    for i in range(1, view.m):
        scratch.inverse[i] = 1 / (<double> i * <double> (view.m - i))
    return scratch.inverse


cdef inline double squares_of(const Criterion *criterion, const double *sums) noexcept nogil:
    """Return the sum of squared class counts of a node, for gini of more than two classes; otherwise 0."""
    cdef double total = 0
    cdef Py_ssize_t k
    if criterion.counts and criterion.n_sums > 3:
        for k in range(1, criterion.n_sums):
            total += sums[k] * sums[k]
    return total


cdef kr_cut simple_cut(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                       const uint32_t *entries, const double *all, double *left, double base,
                       const kr_range *cuts) noexcept nogil:
    """The best cut by the loop of the criterion, in units of `score_of`."""
    cdef const PresortedTable *table = view.table
    cdef kr_cut cut
    if not criterion.of_classes:
        return kr_cut_mean(rules.level, entries, table.id_mask, view.arena.y, view.shift[0], cuts)
    if criterion.n_sums > 3:
        return kr_cut_classes(entries, table.shift, all, left, criterion.n_sums, cuts)
    if criterion.number == GINI:
        cut = kr_cut_two(rules.level, entries, table.shift, cuts)
        if cut.at >= 0:
            cut.score = kr_gini_score_of_two(cut.sum, cuts.sum, cuts.weight0 + cut.at, cuts.weight)
        return cut
    cut = kr_cut_entropy(entries, table.shift, criterion.logs, base, cuts)
    cut.score = max(cut.score, 0.0) if cut.at >= 0 else NO_CUT
    return cut


cdef void scan_ordered(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                       ScanBuffers *scratch, BestSplit *found) noexcept nogil:
    """The best cut of an ordered column, with missing rows on either side or apart."""
    cdef Py_ssize_t place = view.table.place[column], n_sums = criterion.n_sums
    cdef Py_ssize_t n_known = view.known[place] if view.known != NULL else view.m
    cdef Py_ssize_t n_missing = view.m - n_known, n_all = view.m, k, i, n_left, worked = 0
    cdef const uint32_t *entries = view.arena.order[place] + view.start
    cdef double *left = scratch.sums
    cdef double *all = left + n_sums
    cdef double *missing = all + n_sums
    cdef double *room = missing + n_sums
    cdef double base
    cdef kr_range cuts
    cdef kr_cut cut
    cdef bint missing_left
    memcpy(all, view.sums, n_sums * sizeof(double))
    if n_missing:
        memset(missing, 0, n_sums * sizeof(double))
        add_entries(criterion, view, entries + n_known, n_missing, missing)
        if rules.missing_apart:
            n_all, n_missing = n_known, 0
            for k in range(n_sums):
                all[k] -= missing[k]
    if n_known == 0:
        return
    base = base_of(criterion, all)
    for missing_left in range(1 + (n_missing > 0)):
        memset(left, 0, n_sums * sizeof(double))
        n_left = 0
        if missing_left:
            memcpy(left, missing, n_sums * sizeof(double))
            n_left = n_missing
        cuts.inverse = NULL if n_missing else inverse_of(criterion, rules, view, scratch)
        cuts.first = max(1, rules.min_leaf - n_left)
        cuts.last = min(n_known - 1, n_all - n_left - rules.min_leaf)
        if cuts.first > cuts.last:
            continue
        if is_simple(criterion, rules, view, column):
            cuts.weight0, cuts.weight = left[0], all[0]
            cuts.sum0, cuts.sum, cuts.squares = left[n_sums - 1], all[n_sums - 1], squares_of(criterion, all)
            cut = simple_cut(criterion, rules, view, entries, all, left, base, &cuts)
            if cut.at > 0 and (cut.score > found.score or (cut.score == found.score and cut.at < found.at)):
                found.score, found.at, found.missing_left = cut.score, cut.at, missing_left
                found.raw = cut.score
                found.left_weight, found.weight = n_left + cut.at, n_all
            continue
        for i in range(cuts.last + 1):
            if i >= cuts.first and entries[i] & DIFFERS:
                try_candidate(criterion, rules, view, column, left, n_left + i, all, n_all, base, i, missing_left, room,
                              found)
                worked += n_sums
                if is_stopped(rules, &worked):
                    return
            add_entry(criterion, view, entries[i], left)
    if n_missing:
        for k in range(n_sums):
            left[k] = all[k] - missing[k]
        try_candidate(criterion, rules, view, column, left, n_known, all, n_all, base, n_known, False, room, found)


# ---- coded columns ---------------------------------------------------------------------------------------------

cdef void count_column(const code_t *codes, const Criterion *criterion, const NodeView *view, Py_ssize_t place,
                       ColumnBins *bins, uint64_t *touched) noexcept nogil:
    """Sums of one coded column by bin, for a node too small for histograms of all."""
    cdef const PresortedTable *table = view.table
    cdef const uint32_t *rows = view.arena.rows + view.start
    cdef Py_ssize_t i, bin
    cdef uint32_t entry
    cdef uint64_t *packed = <uint64_t *> bins.cells
    cdef double *cells = <double *> bins.cells
    for i in range(view.m):
        entry = rows[i]
        bin = codes[(entry & table.id_mask) * table.n_coded + place]
        touched[bin >> 6] |= <uint64_t> 1 << (bin & 63)
        if bins.size == 0:
            packed[bin] += 1 | <uint64_t> ((entry & ~DIFFERS) >> table.shift) << 32
        else:
            add_entry(criterion, view, entry, cells + bin * bins.size)
            if bins.weighted:
                cells[bin * bins.size + bins.size - 1] += 1


cdef void list_bins(const Criterion *criterion, const NodeView *view, Py_ssize_t place, ScanBuffers *scratch,
                    ColumnBins *bins) noexcept nogil:
    """Bins of a column that have rows, from the node's histogram or counted now."""
    cdef const PresortedTable *table = view.table
    cdef Py_ssize_t bin, n = 0, width = table.n_bins[place], word
    cdef uint64_t left
    bins.weighted = view.arena.w != NULL
    bins.size = 0 if is_packed(criterion, bins.weighted) else cell_size(criterion, bins.weighted)
    if view.histogram != NULL:
        bins.cells = <const double *> view.histogram + table.bin_start[place] * max(bins.size, 1)
        for bin in range(width):
            scratch.bins[n] = bin
            n += rows_in(bins, bin) > 0
    else:
        bins.cells = scratch.cells
        if table.wide:
            count_column(<const uint16_t *> view.arena.codes, criterion, view, place, bins, scratch.touched)
        else:
            count_column(<const uint8_t *> view.arena.codes, criterion, view, place, bins, scratch.touched)
        for word in range((width + 63) // 64):
            left = scratch.touched[word]
            while left:
                scratch.bins[n] = word * 64 + kr_lowest(left)
                n += 1
                left &= left - 1
            scratch.touched[word] = 0
    bins.list = scratch.bins
    bins.missing = -1
    if n and table.missing[table.coded[place]] and scratch.bins[n - 1] == width - 1:
        n -= 1
        bins.missing = width - 1
    bins.n = n


cdef void clear_bins(const NodeView *view, const ColumnBins *bins, ScanBuffers *scratch) noexcept nogil:
    """Set the cells that were used back to zero."""
    cdef Py_ssize_t k, n = bins.n + (bins.missing >= 0), size = max(bins.size, 1)
    if view.histogram == NULL:
        for k in range(n):
            memset(scratch.cells + bins.list[k] * size, 0, size * sizeof(double))


cdef void scan_packed(const NodeView *view, const ColumnBins *bins, Py_ssize_t min_leaf,
                      BestSplit *found) noexcept nogil:
    """The best threshold of a coded column by gini of two classes, nothing missing."""
    cdef const uint64_t *cells = <const uint64_t *> bins.cells
    cdef uint64_t so_far = 0
    cdef double weight = view.sums[0], ones = view.sums[2], left, score
    cdef Py_ssize_t k, n_left
    for k in range(bins.n - 1):
        so_far += cells[bins.list[k]]
        n_left = <uint32_t> so_far
        left = n_left
        score = kr_gini_score_of_two(<double> (so_far >> 32), ones, left, weight)
        if score > found.score and n_left >= min_leaf and view.m - n_left >= min_leaf:
            found.score, found.raw, found.at = score, score, bins.list[k] + 1
            found.left_weight, found.weight = left, weight


cdef void scan_codes(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                     const ColumnBins *bins, ScanBuffers *scratch, BestSplit *found) noexcept nogil:
    """The best threshold of a coded column."""
    cdef Py_ssize_t n_sums = criterion.n_sums, k, n_left, n_all
    cdef double *left = scratch.sums
    cdef double *all = left + n_sums
    cdef double *room = all + n_sums
    cdef bint tries_both_sides = bins.missing >= 0 and not rules.missing_apart, missing_left
    cdef double base
    if criterion.number == GINI and bins.size == 0 and bins.missing < 0 and not is_constrained(rules, column):
        scan_packed(view, bins, rules.min_leaf, found)
        return
    n_all = sums_of_counted_rows(criterion, rules, view, bins, all)
    base = base_of(criterion, all)
    for missing_left in range(1 + tries_both_sides):
        memset(left, 0, n_sums * sizeof(double))
        n_left = 0
        if missing_left:
            add_cell(criterion, bins, bins.missing, 1, left)
            n_left = rows_in(bins, bins.missing)
        for k in range(bins.n - 1):
            add_cell(criterion, bins, bins.list[k], 1, left)
            n_left += rows_in(bins, bins.list[k])
            try_candidate(criterion, rules, view, column, left, n_left, all, n_all, base, bins.list[k] + 1,
                          missing_left, room, found)
    if tries_both_sides and bins.n:
        memcpy(left, all, n_sums * sizeof(double))
        add_cell(criterion, bins, bins.missing, -1, left)
        try_candidate(criterion, rules, view, column, left, n_all - rows_in(bins, bins.missing), all, n_all, base,
                      view.table.n_bins[-1 - view.table.place[column]], False, room, found)


# ---- any column ------------------------------------------------------------------------------------------------

cdef inline void no_split(BestSplit *found) noexcept nogil:
    """Before anything has been found."""
    found.score, found.second, found.at, found.missing_left = NO_CUT, 0, -1, False
    found.raw = found.left_weight = found.weight = 0


cdef void scan_column(const Criterion *criterion, const SplitRules *rules, const NodeView *view, Py_ssize_t column,
                      ScanBuffers *scratch, BestSplit *found, uint8_t *left_of) noexcept nogil:
    """The best split of a column; of categories also which go left, where `left_of` is given."""
    cdef const PresortedTable *table = view.table
    cdef Py_ssize_t place = table.place[column]
    cdef ColumnBins bins
    no_split(found)
    if criterion.sorts_targets:
        scan_absolute(criterion, rules, view, column, scratch, found, left_of)
    elif place >= 0:
        scan_ordered(criterion, rules, view, column, scratch, found)
    else:
        list_bins(criterion, view, -1 - place, scratch, &bins)
        if table.n_levels[column]:
            scan_subsets(criterion, rules, view, column, &bins, scratch, found, left_of)
        else:
            scan_codes(criterion, rules, view, column, &bins, scratch, found)
        clear_bins(view, &bins, scratch)
    if found.score > 0:
        found.score = rounded_score(found.score, view.unit)


cdef inline bint is_perfect(const Criterion *criterion, const NodeView *view, const BestSplit *found) noexcept nogil:
    """Whether no column can have a better split: both children are pure. Not every such split is noticed."""
    if found.score == NO_CUT:
        return False
    if view.m == 2:
        return True
    return criterion.number == GINI and criterion.n_sums == 3 and found.score >= 2 * view.sums[1] * view.sums[2]


cdef Py_ssize_t scan_columns(const Criterion *criterion, const SplitRules *rules, const NodeView *view,
                             const Py_ssize_t *columns, Py_ssize_t first, Py_ssize_t end, bint may_stop,
                             ScanBuffers *scratch, BestSplit *found) noexcept nogil:
    """Scan columns one after another, up to a perfect split if `may_stop`; return the end of what was scanned.

    Ordered columns of nodes without missing values and weights are most of the work of most trees, and most nodes are
    small: what all such columns share is made ready once.
    """
    cdef const PresortedTable *table = view.table
    cdef bint simple = is_simple(criterion, rules, view, 0) and rules.monotone == NULL and view.known == NULL
    cdef double base = base_of(criterion, view.sums)
    cdef Py_ssize_t j, column, worked = 0
    cdef kr_range cuts
    cdef kr_cut cut
    cuts.first, cuts.last = rules.min_leaf, view.m - rules.min_leaf
    cuts.weight0, cuts.sum0, cuts.weight, cuts.sum = 0, 0, view.sums[0], view.sums[criterion.n_sums - 1]
    cuts.inverse = inverse_of(criterion, rules, view, scratch) if simple else NULL
    cuts.squares = squares_of(criterion, view.sums) if simple else 0
    for j in range(first, end):
        column = columns[j]
        worked += view.m // 8 if simple else view.m * criterion.n_sums    # simple scans are vectorised
        if is_stopped(rules, &worked):
            while j < end:                  # the tree is given up: no column has a split
                no_split(found + columns[j])
                j += 1
            return end
        if simple and table.place[column] >= 0:
            no_split(found + column)
            cut = simple_cut(criterion, rules, view, view.arena.order[table.place[column]] + view.start, view.sums,
                             scratch.counts, base, &cuts)
            if cut.at > 0:
                found[column].score, found[column].raw = rounded_score(cut.score, view.unit), cut.score
                found[column].at = cut.at
                found[column].left_weight, found[column].weight = cut.at, view.m
        else:
            scan_column(criterion, rules, view, column, scratch, found + column, NULL)
        if may_stop and is_perfect(criterion, view, found + column):
            return j + 1
    return end
