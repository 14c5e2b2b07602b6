"""The best split of one column of one node: a threshold, or a subset of categories, and the side of missing values.

    ordered column      a cut between two entries that differ: all scores in one pass over the entries
    coded column        sums of the rows by bin, then a pass over the bins
    categories          two classes, and targets: bins in the order of their mean, where the best subset is a cut;
                        more classes: every subset of at most 12 levels, beyond that a cut in the order of the levels'
                        projections on the first principal component of their class shares, which is a heuristic
    missing             each side is tried, and missing against known; or they do not count (surrogates)

Of equal scores the lowest threshold is taken, then missing to the right; of subsets the first that is tried.

Invariant: a column's sums are added in the order of its entries (or of the node's rows), so no thread changes a bit.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.absolute cimport scan_absolute
from kernelrules.core.criteria cimport (
    ABSOLUTE, ENTROPY, GAIN_RATIO, GINI, MISCLASSIFICATION, SQUARED, Criterion, base_of, score_of, spread_score,
)
from kernelrules.core.presort cimport DIFFERS, Table

ctypedef fused code_t:
    uint8_t
    uint16_t

cdef enum:
    SUBSETS = 12            # levels up to which every subset is tried
    ROOM = 8                # times n_sums that are used at once
    TURNS = 100             # of the power method: it converges linearly
    KEY_NUMBERS = 4         # of a bin in `keys`: enough for a Level, and for what surrogates count

cdef double STILL = 1e-10   # a direction that changes by less has come to rest
cdef double LOST = 1e-12    # share of the weight that rounded sums do not tell from 0


cdef enum Way:              # to divide levels
    CUT                     # the first of them left
    BITS                    # those whose bits are set
    ONE                     # a single one


cdef Py_ssize_t cell_size(const Criterion *criterion, bint weighted) noexcept nogil:
    """Numbers of a bin: its sums, and where rows have weights their number."""
    return criterion.n_sums + weighted


cdef bint is_packed(const Criterion *criterion, bint weighted) noexcept nogil:
    """Whether a bin is one number: rows in its lower half, those of class 1 in the upper."""
    return criterion.classes and criterion.n_sums == 3 and not weighted


cdef Scratch *new_scratch(const Table *table, const Criterion *criterion, bint weighted, Py_ssize_t n) noexcept nogil:
    """Room for one thread; NULL if there is none."""
    cdef Scratch *scratch = <Scratch *> calloc(1, sizeof(Scratch))
    cdef Py_ssize_t widest = 1, k, n_classes = criterion.n_sums - 1
    if scratch == NULL:
        return NULL
    for k in range(table.n_coded):
        widest = max(widest, table.n_bins[k])
    scratch.entries = <uint32_t *> malloc((n + 16) * sizeof(uint32_t))
    scratch.cells = <double *> calloc(widest * max(2, cell_size(criterion, weighted)), sizeof(double))
    scratch.touched = <uint64_t *> calloc(widest // 64 + 1, sizeof(uint64_t))
    scratch.bins = <Py_ssize_t *> malloc(2 * widest * sizeof(Py_ssize_t))
    scratch.keys = <double *> malloc(widest * KEY_NUMBERS * sizeof(double))
    scratch.sums = <double *> malloc(ROOM * criterion.n_sums * sizeof(double))
    scratch.left_of = <uint8_t *> malloc(widest)
    scratch.inverse = <double *> malloc((n + 1) * sizeof(double)) if criterion.kind == SQUARED else NULL
    if criterion.kind == ABSOLUTE:
        scratch.losses = <double *> malloc(4 * (n + 2) * sizeof(double))
        scratch.links = <uint32_t *> malloc(4 * (n + 2) * sizeof(uint32_t))
    if criterion.classes and n_classes > 2 and table.n_coded:
        scratch.classes = <double *> malloc(3 * n_classes * sizeof(double))
    if (scratch.entries == NULL or scratch.cells == NULL or scratch.touched == NULL or scratch.bins == NULL
            or scratch.keys == NULL or scratch.sums == NULL or scratch.left_of == NULL
            or (criterion.kind == SQUARED and scratch.inverse == NULL)
            or (criterion.kind == ABSOLUTE and (scratch.losses == NULL or scratch.links == NULL))
            or (criterion.classes and n_classes > 2 and table.n_coded and scratch.classes == NULL)):
        free_scratch(scratch)
        return NULL
    return scratch


cdef void free_scratch(Scratch *scratch) noexcept nogil:
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
    free(scratch)


# ---- sums ------------------------------------------------------------------------------------------------------

cdef inline void add_entry(const Criterion *criterion, const View *view, uint32_t entry, double *sums) noexcept nogil:
    """Add a row to sums."""
    cdef const Table *table = view.table
    cdef Py_ssize_t row = entry & table.id_mask, n_targets = criterion.n_sums - 1, k
    cdef double weight = view.arena.w[row] if view.arena.w != NULL else 1
    sums[0] += weight
    if criterion.classes:
        sums[1 + ((entry & ~DIFFERS) >> table.shift)] += weight
    else:
        for k in range(n_targets):
            sums[1 + k] += weight * (view.arena.y[row * n_targets + k] - view.shift[k])


cdef void add_entries(const Criterion *criterion, const View *view, const uint32_t *entries, Py_ssize_t n,
                      double *sums) noexcept nogil:
    """Add rows to sums."""
    cdef Py_ssize_t i
    for i in range(n):
        add_entry(criterion, view, entries[i], sums)


cdef void count_packed(const code_t *codes, const View *view, Py_ssize_t first, Py_ssize_t end,
                       uint64_t *histogram) noexcept nogil:
    """Rows of two classes by bin, of the coded columns from `first` to `end`, all columns of a row at a time."""
    cdef const Table *table = view.table
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


cdef void count_sums(const code_t *codes, const Criterion *criterion, const View *view, Py_ssize_t first,
                     Py_ssize_t end, double *histogram) noexcept nogil:
    """Sums by bin, of the coded columns from `first` to `end`."""
    cdef const Table *table = view.table
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


cdef void fill_histogram(const Criterion *criterion, const View *view, Py_ssize_t first, Py_ssize_t end,
                         void *histogram) noexcept nogil:
    """Sums of a node by bin, of the coded columns from `first` to `end`; the rest is left alone."""
    cdef const Table *table = view.table
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


# ---- judging one way to divide ---------------------------------------------------------------------------------

cdef inline double value_in(const Criterion *criterion, const View *view, const double *sums,
                            const double *less) noexcept nogil:
    """What a node of these sums, without those of `less`, predicts: the share of class 1, or the mean."""
    cdef double weight = sums[0] - (less[0] if less != NULL else 0)
    cdef Py_ssize_t k = 2 if criterion.classes else 1
    cdef double mean = (sums[k] - (less[k] if less != NULL else 0)) / weight
    return mean if criterion.classes else mean + view.shift[0]


cdef inline bint keeps_order(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                             const double *left, const double *all) noexcept nogil:
    """Whether the children's values keep the column's monotone constraint, and the bounds that splits above set."""
    cdef double below = value_in(criterion, view, left, NULL), above = value_in(criterion, view, all, left)
    if rules.monotone[column] * (above - below) < 0:
        return False
    return min(below, above) >= view.low and max(below, above) <= view.high


cdef inline void judge(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                       const double *left, Py_ssize_t n_left, const double *all, Py_ssize_t n_all, double base,
                       Py_ssize_t at, bint missing_left, double *room, Found *found) noexcept nogil:
    """Take this way to divide if it is allowed and better than what was found."""
    cdef double score, raw, second = 0
    if n_left < rules.min_leaf or n_all - n_left < rules.min_leaf:
        return
    if view.unit > 0 and min(left[0], all[0] - left[0]) <= LOST * all[0]:
        return
    if is_constrained(rules, column) and not keeps_order(criterion, rules, view, column, left, all):
        return
    raw = max(score_of(criterion, left, all, base, room), 0.0)        # below 0 by rounding only
    score = in_units(raw, view.unit)
    if score < found.score:
        return
    if criterion.kind == MISCLASSIFICATION:
        second = spread_score(criterion, left, all)
    if score > found.score or second > found.second or (second == found.second and at < found.at):
        found.score, found.second, found.at, found.missing_left = score, second, at, missing_left
        found.raw = raw
        found.left_weight, found.weight = left[0], all[0]


# ---- ordered columns -------------------------------------------------------------------------------------------

cdef inline bint is_simple(const Criterion *criterion, const Rules *rules, const View *view,
                           Py_ssize_t column) noexcept nogil:
    """Whether one of the vectorised loops serves."""
    if view.arena.w != NULL or is_constrained(rules, column):
        return False
    if criterion.classes:
        return criterion.n_sums == 3 and (criterion.kind == GINI or (criterion.logs != NULL and (
            criterion.kind == ENTROPY or criterion.kind == GAIN_RATIO)))
    return criterion.kind == SQUARED and criterion.n_sums == 2


cdef const double *inverse_of(const Criterion *criterion, const Rules *rules, const View *view,
                              Scratch *scratch) noexcept nogil:
    """What to multiply by instead of dividing, the same for all columns of a node, where sums are rounded anyway.

    NULL elsewhere. Whether it is used depends on the node alone, so all threads get the same bits.
    """
    cdef Py_ssize_t i
    if (criterion.kind != SQUARED or criterion.n_sums != 2 or view.unit == 0 or view.known != NULL
            or view.arena.w != NULL or rules.monotone != NULL):
        return NULL
    for i in range(1, view.m):
        scratch.inverse[i] = 1 / (<double> i * <double> (view.m - i))
    return scratch.inverse


cdef kr_cut simple_cut(const Criterion *criterion, const Rules *rules, const View *view, const uint32_t *entries,
                       double base, const kr_range *cuts) noexcept nogil:
    """The best cut by the loop of the criterion, in units of `score_of`."""
    cdef const Table *table = view.table
    cdef kr_cut cut
    if not criterion.classes:
        return kr_cut_mean(rules.level, entries, table.id_mask, view.arena.y, view.shift[0], cuts)
    if criterion.kind == GINI:
        cut = kr_cut_two(rules.level, entries, table.shift, cuts)
        cut.score *= 2                  # the two classes give the same
        return cut
    cut = kr_cut_entropy(entries, table.shift, criterion.logs, base, cuts)
    cut.score = max(cut.score, 0.0) if cut.at >= 0 else NO_CUT
    return cut


cdef void scan_ordered(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                       Scratch *scratch, Found *found) noexcept nogil:
    """The best cut of an ordered column, with missing rows on either side or apart."""
    cdef Py_ssize_t place = view.table.place[column], n_sums = criterion.n_sums
    cdef Py_ssize_t n_known = view.known[place] if view.known != NULL else view.m
    cdef Py_ssize_t n_missing = view.m - n_known, n_all = view.m, k, i, n_left
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
            cuts.sum0, cuts.sum = left[n_sums - 1], all[n_sums - 1]
            cut = simple_cut(criterion, rules, view, entries, base, &cuts)
            if cut.at > 0 and (cut.score > found.score or (cut.score == found.score and cut.at < found.at)):
                found.score, found.at, found.missing_left = cut.score, cut.at, missing_left
                found.raw = cut.score
                found.left_weight, found.weight = n_left + cut.at, n_all
            continue
        for i in range(cuts.last + 1):
            if i >= cuts.first and entries[i] & DIFFERS:
                judge(criterion, rules, view, column, left, n_left + i, all, n_all, base, i, missing_left, room, found)
            add_entry(criterion, view, entries[i], left)
    if n_missing:
        for k in range(n_sums):
            left[k] = all[k] - missing[k]
        judge(criterion, rules, view, column, left, n_known, all, n_all, base, n_known, False, room, found)


# ---- coded columns ---------------------------------------------------------------------------------------------

cdef struct Bins:                   # of one column in one node
    const double *cells
    Py_ssize_t size                 # of a cell; 0: packed
    bint weighted
    const Py_ssize_t *list          # those with rows, ascending; of known values
    Py_ssize_t n
    Py_ssize_t missing              # the bin of missing values, -1: no row is


cdef inline void add_cell(const Criterion *criterion, const Bins *bins, Py_ssize_t bin, double sign,
                          double *sums) noexcept nogil:
    cdef Py_ssize_t k
    cdef uint64_t packed
    cdef double rows, ones
    if bins.size == 0:
        packed = (<const uint64_t *> bins.cells)[bin]
        rows, ones = <double> <uint32_t> packed, <double> (packed >> 32)
        sums[0] += sign * rows
        sums[1] += sign * (rows - ones)
        sums[2] += sign * ones
        return
    for k in range(criterion.n_sums):
        sums[k] += sign * bins.cells[bin * bins.size + k]


cdef inline Py_ssize_t rows_in(const Bins *bins, Py_ssize_t bin) noexcept nogil:
    if bins.size == 0:
        return <uint32_t> (<const uint64_t *> bins.cells)[bin]
    return <Py_ssize_t> bins.cells[bin * bins.size + (bins.size - 1 if bins.weighted else 0)]


cdef void count_column(const code_t *codes, const Criterion *criterion, const View *view, Py_ssize_t place,
                       Bins *bins, uint64_t *touched) noexcept nogil:
    """Sums of one coded column by bin, for a node too small for histograms of all."""
    cdef const Table *table = view.table
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


cdef extern from *:
    """
    #define kr_lowest_bit(word) __builtin_ctzll(word)
    """
    int kr_lowest_bit(uint64_t word) noexcept nogil


cdef void list_bins(const Criterion *criterion, const View *view, Py_ssize_t place, Scratch *scratch,
                    Bins *bins) noexcept nogil:
    """Bins of a column that have rows, from the node's histogram or counted now."""
    cdef const Table *table = view.table
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
                scratch.bins[n] = word * 64 + kr_lowest_bit(left)
                n += 1
                left &= left - 1
            scratch.touched[word] = 0
    bins.list = scratch.bins
    bins.missing = -1
    if n and table.missing[table.coded[place]] and scratch.bins[n - 1] == width - 1:
        n -= 1
        bins.missing = width - 1
    bins.n = n


cdef void clear_bins(const View *view, const Bins *bins, Scratch *scratch) noexcept nogil:
    """Leave the cells as they were found: zero."""
    cdef Py_ssize_t k, n = bins.n + (bins.missing >= 0), size = max(bins.size, 1)
    if view.histogram == NULL:
        for k in range(n):
            memset(scratch.cells + bins.list[k] * size, 0, size * sizeof(double))


cdef void scan_packed(const View *view, const Bins *bins, Py_ssize_t min_leaf, Found *found) noexcept nogil:
    """The best threshold of a coded column by gini of two classes, nothing missing."""
    cdef const uint64_t *cells = <const uint64_t *> bins.cells
    cdef uint64_t so_far = 0
    cdef double weight = view.sums[0], ones = view.sums[2], left, cross, score
    cdef Py_ssize_t k, n_left
    for k in range(bins.n - 1):
        so_far += cells[bins.list[k]]
        n_left = <uint32_t> so_far
        left = n_left
        cross = <double> (so_far >> 32) * weight - left * ones
        score = 2 * (cross * cross / (left * (weight - left)))
        if score > found.score and n_left >= min_leaf and view.m - n_left >= min_leaf:
            found.score, found.raw, found.at = score, score, bins.list[k] + 1
            found.left_weight, found.weight = left, weight


cdef Py_ssize_t all_that_count(const Criterion *criterion, const Rules *rules, const View *view, const Bins *bins,
                               double *all) noexcept nogil:
    """Sums and number of the rows that count, with those that are missing or without."""
    memcpy(all, view.sums, criterion.n_sums * sizeof(double))
    if bins.missing < 0 or not rules.missing_apart:
        return view.m
    add_cell(criterion, bins, bins.missing, -1, all)
    return view.m - rows_in(bins, bins.missing)


cdef void scan_codes(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                     const Bins *bins, Scratch *scratch, Found *found) noexcept nogil:
    """The best threshold of a coded column."""
    cdef Py_ssize_t n_sums = criterion.n_sums, k, n_left, n_all
    cdef double *left = scratch.sums
    cdef double *all = left + n_sums
    cdef double *room = all + n_sums
    cdef bint choose = bins.missing >= 0 and not rules.missing_apart, missing_left
    cdef double base
    if criterion.kind == GINI and bins.size == 0 and bins.missing < 0 and not is_constrained(rules, column):
        scan_packed(view, bins, rules.min_leaf, found)
        return
    n_all = all_that_count(criterion, rules, view, bins, all)
    base = base_of(criterion, all)
    for missing_left in range(1 + choose):
        memset(left, 0, n_sums * sizeof(double))
        n_left = 0
        if missing_left:
            add_cell(criterion, bins, bins.missing, 1, left)
            n_left = rows_in(bins, bins.missing)
        for k in range(bins.n - 1):
            add_cell(criterion, bins, bins.list[k], 1, left)
            n_left += rows_in(bins, bins.list[k])
            judge(criterion, rules, view, column, left, n_left, all, n_all, base, bins.list[k] + 1, missing_left, room,
                  found)
    if choose and bins.n:
        memcpy(left, all, n_sums * sizeof(double))
        add_cell(criterion, bins, bins.missing, -1, left)
        judge(criterion, rules, view, column, left, n_all - rows_in(bins, bins.missing), all, n_all, base,
              view.table.n_bins[-1 - view.table.place[column]], False, room, found)


# ---- categories ------------------------------------------------------------------------------------------------

cdef int ascending(const void *a, const void *b) noexcept nogil:
    """By key, then by bin."""
    cdef const Level *x = <const Level *> a
    cdef const Level *y = <const Level *> b
    if x.key != y.key:
        return 1 if x.key > y.key else -1
    return (x.bin > y.bin) - (x.bin < y.bin)


cdef void principal_component(const Criterion *criterion, const Bins *bins, Py_ssize_t n_levels, const Level *levels,
                              double *room) noexcept nogil:
    """Leading direction of the levels' class shares about their mean, weighted, in the first n_classes of room.

    The power method: sum_l W_l (share_l - mean) ((share_l - mean)·direction), until it turns no more.
    """
    cdef Py_ssize_t n = criterion.n_sums - 1, size = bins.size, lev, j
    cdef double *direction = room
    cdef double *other = room + n
    cdef double *mean = other + n
    cdef const double *cell
    cdef double total = 0, length, along, change
    cdef int turn
    memset(room, 0, 3 * n * sizeof(double))
    for lev in range(n_levels):
        cell = bins.cells + levels[lev].bin * size
        total += cell[0]
        for j in range(n):
            mean[j] += cell[1 + j]
    for j in range(n):
        mean[j] /= total
    for lev in range(n_levels):         # start along the level that is farthest out, so never at a right angle to all
        cell = bins.cells + levels[lev].bin * size
        length = 0
        for j in range(n):
            along = cell[1 + j] / cell[0] - mean[j]
            length += cell[0] * along * along
        if length > other[0]:
            other[0] = length
            for j in range(n):
                direction[j] = cell[1 + j] / cell[0] - mean[j]
    for turn in range(TURNS):
        memset(other, 0, n * sizeof(double))
        for lev in range(n_levels):
            cell = bins.cells + levels[lev].bin * size
            along = 0
            for j in range(n):
                along += (cell[1 + j] / cell[0] - mean[j]) * direction[j]
            for j in range(n):
                other[j] += cell[0] * along * (cell[1 + j] / cell[0] - mean[j])
        length, change = 0, 0
        for j in range(n):
            length += other[j] * other[j]
        if length == 0:
            return
        length = sqrt(length)
        for j in range(n):
            change += fabs(other[j] / length - direction[j])
            direction[j] = other[j] / length
        if turn > 0 and change < STILL:
            return


cdef void order_levels(const Criterion *criterion, const Bins *bins, Scratch *scratch, Level *levels,
                       Py_ssize_t n) noexcept nogil:
    """Levels in ascending order of what they predict; of several classes, along the principal component."""
    cdef Py_ssize_t lev, k
    cdef const double *cell
    cdef double *sums = scratch.sums
    if criterion.classes and criterion.n_sums > 3:
        principal_component(criterion, bins, n, levels, scratch.classes)
        for lev in range(n):
            cell = bins.cells + levels[lev].bin * bins.size
            for k in range(criterion.n_sums - 1):
                levels[lev].key += scratch.classes[k] * cell[1 + k] / cell[0]
    else:
        for lev in range(n):
            memset(sums, 0, criterion.n_sums * sizeof(double))
            add_cell(criterion, bins, levels[lev].bin, 1, sums)
            for k in range(1 + criterion.classes, criterion.n_sums):
                levels[lev].key += sums[k] / sums[0]
    qsort(levels, n, sizeof(Level), ascending)


cdef void mark_left(const Level *levels, Py_ssize_t n, Py_ssize_t n_bins, Way way, Py_ssize_t at,
                    uint8_t *left_of) noexcept nogil:
    """For each bin 1 left, 0 right, 2 no rows."""
    cdef Py_ssize_t lev
    memset(left_of, 2, n_bins)
    for lev in range(n):
        left_of[levels[lev].bin] = lev < at if way == CUT else lev == at if way == ONE else (at >> lev) & 1


cdef void scan_subsets(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                       const Bins *bins, Scratch *scratch, Found *found, uint8_t *left_of) noexcept nogil:
    """The best subset of categories to go left; it is written where it is wanted."""
    cdef Level *levels = <Level *> scratch.keys
    cdef Py_ssize_t n_sums = criterion.n_sums, lev, n_left = 0, code, gray = 0, flipped
    cdef Py_ssize_t n = bins.n + (bins.missing >= 0 and not rules.missing_apart)
    cdef double *left = scratch.sums
    cdef double *all = left + n_sums
    cdef double *room = all + n_sums
    cdef Py_ssize_t n_all
    cdef double base, sign
    cdef Way way = CUT
    for lev in range(n):
        levels[lev].bin, levels[lev].key = bins.list[lev], 0
    if rules.one_level:
        way = ONE
    elif criterion.n_sums > (3 if criterion.classes else 2) and n <= SUBSETS:
        way = BITS
    else:
        order_levels(criterion, bins, scratch, levels, n)
    n_all = all_that_count(criterion, rules, view, bins, all)
    base = base_of(criterion, all)
    memset(left, 0, n_sums * sizeof(double))
    if way == ONE:
        for lev in range(n if n > 2 else n - 1):      # of two levels, one says it all
            memset(left, 0, n_sums * sizeof(double))
            add_cell(criterion, bins, levels[lev].bin, 1, left)
            n_left = rows_in(bins, levels[lev].bin)
            judge(criterion, rules, view, column, left, n_left, all, n_all, base, lev, False, room, found)
    elif way == BITS:
        for code in range(1, <Py_ssize_t> 1 << (n - 1) if n else 0):
            flipped = kr_lowest_bit(code)           # a Gray code changes one level at a time
            gray ^= <Py_ssize_t> 1 << flipped
            sign = 1 if (gray >> flipped) & 1 else -1
            add_cell(criterion, bins, levels[flipped].bin, sign, left)
            n_left += <Py_ssize_t> sign * rows_in(bins, levels[flipped].bin)
            judge(criterion, rules, view, column, left, n_left, all, n_all, base, gray, False, room, found)
    else:
        for lev in range(n - 1):
            add_cell(criterion, bins, levels[lev].bin, 1, left)
            n_left += rows_in(bins, levels[lev].bin)
            judge(criterion, rules, view, column, left, n_left, all, n_all, base, lev + 1, False, room, found)
    if found.score > NO_CUT and left_of != NULL:
        mark_left(levels, n, view.table.n_bins[-1 - view.table.place[column]], way, found.at, left_of)
        found.missing_left = bins.missing >= 0 and not rules.missing_apart and left_of[bins.missing] == 1


# ---- any column ------------------------------------------------------------------------------------------------

cdef inline void no_split(Found *found) noexcept nogil:
    """Before anything has been found."""
    found.score, found.second, found.at, found.missing_left = NO_CUT, 0, -1, False
    found.raw = found.left_weight = found.weight = 0


cdef void scan_column(const Criterion *criterion, const Rules *rules, const View *view, Py_ssize_t column,
                      Scratch *scratch, Found *found, uint8_t *left_of) noexcept nogil:
    """The best split of a column; of categories also which go left, where `left_of` is given."""
    cdef const Table *table = view.table
    cdef Py_ssize_t place = table.place[column]
    cdef Bins bins
    no_split(found)
    if criterion.kind == ABSOLUTE:
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
        found.score = in_units(found.score, view.unit)


cdef inline bint is_perfect(const Criterion *criterion, const View *view, const Found *found) noexcept nogil:
    """Whether no column can have a better split: both children are pure. Not every such split is noticed."""
    if found.score == NO_CUT:
        return False
    if view.m == 2:
        return True
    return criterion.kind == GINI and criterion.n_sums == 3 and found.score >= 2 * view.sums[1] * view.sums[2]


cdef Py_ssize_t scan_columns(const Criterion *criterion, const Rules *rules, const View *view,
                             const Py_ssize_t *columns, Py_ssize_t first, Py_ssize_t end, bint may_stop,
                             Scratch *scratch, Found *found) noexcept nogil:
    """Columns one after the other, up to a perfect split if that `may_stop` it; gives how far it came.

    Ordered columns of nodes without missing values and weights are most of the work of most trees, and most nodes are
    small: what all such columns share is made ready once.
    """
    cdef const Table *table = view.table
    cdef bint simple = is_simple(criterion, rules, view, 0) and rules.monotone == NULL and view.known == NULL
    cdef double base = base_of(criterion, view.sums)
    cdef Py_ssize_t j, column
    cdef kr_range cuts
    cdef kr_cut cut
    cuts.first, cuts.last = rules.min_leaf, view.m - rules.min_leaf
    cuts.weight0, cuts.sum0, cuts.weight, cuts.sum = 0, 0, view.sums[0], view.sums[criterion.n_sums - 1]
    cuts.inverse = inverse_of(criterion, rules, view, scratch) if simple else NULL
    for j in range(first, end):
        column = columns[j]
        if simple and table.place[column] >= 0:
            no_split(found + column)
            cut = simple_cut(criterion, rules, view, view.arena.order[table.place[column]] + view.start, base, &cuts)
            if cut.at > 0:
                found[column].score, found[column].raw = in_units(cut.score, view.unit), cut.score
                found[column].at = cut.at
                found[column].left_weight, found[column].weight = cut.at, view.m
        else:
            scan_column(criterion, rules, view, column, scratch, found + column, NULL)
        if may_stop and is_perfect(criterion, view, found + column):
            return j + 1
    return end
