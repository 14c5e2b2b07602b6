"""Growing of one rule on ranked columns: the condition of highest gain is added, again and again.

With P, T the weights of the positive and of all rows that the rule covers, and p, t those that a condition keeps, the
gain is FOIL's [1]_ in bits, with the 1 of Laplace's estimate as in Weka's JRip:

    p · (log2 (p + 1) / (t + 1)  -  log2 (P + 1) / (T + 1)).

Growing stops when no condition gains, or when the best one keeps too few positive rows. Conditions are x <= c and x > c
for numbers and x = level for categories, which a missing value does not satisfy, and on request "x is missing". Of
ties, the lowest column wins, then the lowest threshold or level, then <= before >, then missing. Thresholds between two
groups of positive rows only, or of other rows only, are skipped, because a neighbouring threshold is better.

    entries    of every column, in ascending order, are filtered as the rule covers fewer rows
    groups     of equal values are counted in one pass; the rows without an entry are the rest of the covered rows

Invariant: weights are such that all sums are exact (exact_weights.py), so that neither the order of rows nor the number
of threads nor the implicit ranks change a bit of the result.

References
----------
.. [1] J. R. Quinlan, "Learning logical definitions from relations", Machine Learning 5, 1990.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, log2
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from kernelrules.core.base.memory cimport give_back, take
from kernelrules.core.rules.ranks cimport RankedColumns, RankedData
from kernelrules.core.tree.scan cimport halfway
from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.base.team cimport run_team

from kernelrules.core.base.status import raise_for_status


cdef enum:                              # the first three are bits of a row's state
    COVERED = 1
    POSITIVE = 2
    LEAVING = 4                         # covered, but not by the condition that is being added
    MISSING_RANK = -1                   # the rank of the condition "x is missing"
    PARALLEL_MIN_ENTRIES = 1_000_000    # with fewer entries, one thread scans all columns


cdef struct BestCondition:  # the best condition of a column: first <= rank <= last
    double gain             # 0: there is none
    double positive         # weights of the rows that it keeps
    double total
    Py_ssize_t first
    Py_ssize_t last
    double low              # low < x <= high
    double high


cdef struct ValueGroup:                  # covered rows with the same value
    double positive
    double total
    uint32_t rank


cdef struct RuleGrowth:     # state of the rule that is being grown, and buffers that rules share
    const RankedColumns *columns
    const double *weights   # NULL: all 1
    const double *logs      # log2 of 0, 1, ..., n + 1 if all weights are 1
    bint ask_missing        # whether "x is missing" is a condition
    double min_weight
    double positive         # weights of the rows that the rule covers
    double total
    uint8_t *state          # one per row
    uint32_t *covered       # rows that the rule covers
    Py_ssize_t n_covered
    uint32_t *row           # entries of covered rows, at the same offsets as those of `columns`
    uint32_t *rank_code     # 2 · rank, plus 1 for positive rows
    Py_ssize_t *n_entries   # entries of each column
    Py_ssize_t *n_known     # those whose value is not missing
    Py_ssize_t *active      # columns that are not constant on the covered rows
    Py_ssize_t n_active
    uint8_t *varies         # whether an active column still varied at its last scan
    bint is_first           # whether the rule has no condition yet: entries then come from `columns`
    double log_precision    # log2 (positive + 1) / (total + 1)
    BestCondition *best     # one per column
    ValueGroup **groups     # a buffer per thread


# ---- one column ------------------------------------------------------------------------------------------------

cdef Py_ssize_t filter_entries(const uint32_t *row, const uint32_t *rank_code, Py_ssize_t n, const uint8_t *state,
                               uint32_t *row_out, uint32_t *code_out) noexcept nogil:
    """Copy the entries of covered rows, with their class; return their number."""
    cdef Py_ssize_t i, n_kept = 0
    cdef uint32_t here
    cdef uint8_t row_state
    for i in range(n):
        here = row[i]
        row_state = state[here]
        row_out[n_kept] = here
        code_out[n_kept] = rank_code[i] | (row_state >> 1)
        n_kept += row_state & COVERED
    return n_kept


cdef Py_ssize_t group_counts(const uint32_t *rank_code, Py_ssize_t n, ValueGroup *groups) noexcept nogil:
    """Count rows by rank, from entries in ascending order; return the number of groups."""
    cdef Py_ssize_t i, g = 0, start = 0, positive = 0
    cdef uint32_t here
    for i in range(n):
        here = rank_code[i]
        positive += here & 1
        if i + 1 == n or (here ^ rank_code[i + 1]) > 1:
            groups[g].rank, groups[g].positive, groups[g].total = here >> 1, positive, i + 1 - start
            start, positive = i + 1, 0
            g += 1
    return g


cdef Py_ssize_t group_weights(const uint32_t *row, const uint32_t *rank_code, Py_ssize_t n, const double *weights,
                              ValueGroup *groups) noexcept nogil:
    """Sum weights by rank, from entries in ascending order; return the number of groups."""
    cdef Py_ssize_t i, g = 0
    cdef double positive = 0, total = 0
    cdef uint32_t here
    for i in range(n):
        here = rank_code[i]
        total += weights[row[i]]
        positive += weights[row[i]] * (here & 1)
        if i + 1 == n or (here ^ rank_code[i + 1]) > 1:
            groups[g].rank, groups[g].positive, groups[g].total = here >> 1, positive, total
            positive = total = 0
            g += 1
    return g


cdef inline Py_ssize_t group_entries(const uint32_t *row, const uint32_t *rank_code, Py_ssize_t n,
                                     const double *weights, ValueGroup *groups) noexcept nogil:
    if weights == NULL:
        return group_counts(rank_code, n, groups)
    return group_weights(row, rank_code, n, weights, groups)


cdef inline double log_of(const RuleGrowth *growth, double x) noexcept nogil:
    return log2(x) if growth.logs == NULL else growth.logs[<Py_ssize_t> x]


cdef inline double foil_gain(const RuleGrowth *growth, double log_precision, double positive,
                             double total) noexcept nogil:
    return positive * ((log_of(growth, positive + 1) - log_of(growth, total + 1)) - log_precision)


cdef Py_ssize_t group_column(const RuleGrowth *growth, Py_ssize_t j, ValueGroup *groups,
                             ValueGroup *missing) noexcept nogil:
    """ValueGroup the covered rows by ascending rank, rows without an entry included, and those with a missing value."""
    cdef Py_ssize_t start = growth.columns.start[j], n_known = growth.n_known[j], n_entries = growth.n_entries[j]
    cdef Py_ssize_t n_below, n_groups, g, low = 0, high = n_known, middle
    cdef const uint32_t *row = growth.row + start
    cdef const uint32_t *rank_code = growth.rank_code + start
    cdef uint32_t implicit = growth.columns.implicit_rank[j]
    cdef double positive = growth.positive, total = growth.total, w
    while low < high:                               # entries below the implicit rank
        middle = (low + high) // 2
        if rank_code[middle] >> 1 < implicit:
            low = middle + 1
        else:
            high = middle
    n_below = group_entries(row, rank_code, low, growth.weights, groups)
    n_groups = n_below + 1 + group_entries(row + low, rank_code + low, n_known - low, growth.weights,
                                           groups + n_below + 1)
    missing.positive = missing.total = 0
    for g in range(n_known, n_entries):
        w = 1 if growth.weights == NULL else growth.weights[row[g]]
        missing.total += w
        missing.positive += w * (rank_code[g] & 1)
    total -= missing.total
    positive -= missing.positive
    for g in range(n_groups):
        if g != n_below:
            total -= groups[g].total
            positive -= groups[g].positive
    groups[n_below].rank, groups[n_below].positive, groups[n_below].total = implicit, positive, total
    if total == 0:                                  # every covered row has an entry
        for g in range(n_below, n_groups - 1):
            groups[g] = groups[g + 1]
        n_groups -= 1
    return n_groups


cdef void keep_better(const RuleGrowth *growth, double log_precision, double positive, double total, Py_ssize_t g,
                      bint below, BestCondition *best, Py_ssize_t *at, bint *is_below) noexcept nogil:
    """Keep a condition if it gains more than the best before it."""
    cdef double gain
    if -positive * log_precision <= best.gain:               # the gain if it kept no other rows: an upper bound
        return
    gain = foil_gain(growth, log_precision, positive, total)
    if gain > best.gain:
        best.gain, best.positive, best.total = gain, positive, total
        at[0], is_below[0] = g, below


cdef void find_threshold(const RuleGrowth *growth, Py_ssize_t j, const ValueGroup *groups, Py_ssize_t n_groups,
                         double log_precision, BestCondition *best) noexcept nogil:
    """Find the best threshold."""
    cdef const double *value = growth.columns.values[j]
    cdef double positive = 0, total = 0, all_positive = 0, all_total = 0
    cdef Py_ssize_t g, at = -1, low, high, middle
    cdef bint below = False
    for g in range(n_groups):
        all_positive += groups[g].positive
        all_total += groups[g].total
    for g in range(n_groups - 1):
        positive += groups[g].positive
        total += groups[g].total
        if groups[g].positive > 0 and (groups[g + 1].positive < groups[g + 1].total or g == n_groups - 2):
            keep_better(growth, log_precision, positive, total, g, True, best, &at, &below)
        if groups[g + 1].positive > 0 and (groups[g].positive < groups[g].total or g == 0):
            keep_better(growth, log_precision, all_positive - positive, all_total - total, g, False, best, &at, &below)
    if at < 0:
        return
    low, high = groups[at].rank, groups[at + 1].rank
    best.low, best.high = -INFINITY, halfway(value[low], value[high])
    high -= 1
    while low < high:                               # the last rank below the threshold
        middle = (low + high + 1) // 2
        if value[middle] <= best.high:
            low = middle
        else:
            high = middle - 1
    best.first, best.last = 0, low
    if not below:
        best.low, best.high = best.high, INFINITY
        best.first, best.last = low + 1, growth.columns.n_ranks[j] - 1


cdef void find_level(const RuleGrowth *growth, const ValueGroup *groups, Py_ssize_t n_groups, double log_precision,
                     BestCondition *best) noexcept nogil:
    """Find the best level."""
    cdef Py_ssize_t g, at = -1
    cdef bint below = False
    for g in range(n_groups):
        if groups[g].total < growth.total:
            keep_better(growth, log_precision, groups[g].positive, groups[g].total, g, True, best, &at, &below)
    if at >= 0:
        best.first = best.last = groups[at].rank
        best.low, best.high = -INFINITY, INFINITY


cdef bint scan_column(RuleGrowth *growth, Py_ssize_t j, ValueGroup *groups) noexcept nogil:
    """Filter the entries of a column and find its best condition; return whether the column varies."""
    cdef const RankedColumns *columns = growth.columns
    cdef bint is_first = growth.is_first
    cdef double log_precision = growth.log_precision
    cdef Py_ssize_t start = columns.start[j], n_known, n_groups
    cdef const uint32_t *row = (columns.row if is_first else growth.row) + start
    cdef const uint32_t *rank_code = (columns.rank_code if is_first else growth.rank_code) + start
    cdef Py_ssize_t n_known_before = columns.n_known[j] if is_first else growth.n_known[j]
    cdef Py_ssize_t n_entries_before = columns.n_entries[j] if is_first else growth.n_entries[j]
    cdef uint32_t *row_out = growth.row + start
    cdef uint32_t *code_out = growth.rank_code + start
    cdef BestCondition *best = growth.best + j
    cdef ValueGroup missing
    cdef Py_ssize_t at = -1
    cdef bint below = False
    n_known = filter_entries(row, rank_code, n_known_before, growth.state, row_out, code_out)
    growth.n_known[j] = n_known
    growth.n_entries[j] = n_known + filter_entries(
        row + n_known_before, rank_code + n_known_before, n_entries_before - n_known_before, growth.state,
        row_out + n_known, code_out + n_known)
    best.gain = 0
    if growth.n_entries[j] == 0:
        return False
    n_groups = group_column(growth, j, groups, &missing)
    if n_groups <= 1 and (missing.total == 0 or (columns.values[j] != NULL and not growth.ask_missing)):
        return False
    if columns.values[j] != NULL:
        find_threshold(growth, j, groups, n_groups, log_precision, best)
    else:
        find_level(growth, groups, n_groups, log_precision, best)
    if growth.ask_missing and 0 < missing.total < growth.total:
        keep_better(growth, log_precision, missing.positive, missing.total, MISSING_RANK, True, best, &at, &below)
        if below:
            best.first = best.last = MISSING_RANK
            best.low, best.high = INFINITY, -INFINITY
    return True


# ---- one condition ---------------------------------------------------------------------------------------------

cdef void scan_columns(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef RuleGrowth *growth = <RuleGrowth *> context
    cdef Py_ssize_t k
    for k in range(first, last):
        growth.varies[k] = scan_column(growth, growth.active[k], growth.groups[worker])


cdef Py_ssize_t best_column(RuleGrowth *growth, int n_threads) noexcept nogil:
    """Return the column of the best condition, -1 if it does not gain or keeps too little; drop constant columns."""
    cdef Py_ssize_t k, j, n_entries = 0, n_kept = 0, chosen = -1
    growth.log_precision = log_of(growth, growth.positive + 1) - log_of(growth, growth.total + 1)
    for k in range(growth.n_active):
        j = growth.active[k]
        n_entries += growth.columns.n_entries[j] if growth.is_first else growth.n_entries[j]
    run_team(0, growth.n_active, 1 + growth.n_active // 256, n_threads if n_entries >= PARALLEL_MIN_ENTRIES else 1,
             scan_columns, growth)
    for k in range(growth.n_active):
        j = growth.active[k]
        if growth.best[j].gain > 0 and (chosen < 0 or growth.best[j].gain > growth.best[chosen].gain):
            chosen = j
        growth.active[n_kept] = j
        n_kept += growth.varies[k]
    growth.n_active = n_kept
    return chosen if chosen >= 0 and growth.best[chosen].positive >= growth.min_weight else -1


cdef void keep_covered(RuleGrowth *growth, Py_ssize_t j) noexcept nogil:
    """Keep only the rows that satisfy the best condition of a column."""
    cdef BestCondition *best = growth.best + j
    cdef const uint32_t *row = growth.row + growth.columns.start[j]
    cdef const uint32_t *rank_code = growth.rank_code + growth.columns.start[j]
    cdef uint8_t *state = growth.state
    cdef Py_ssize_t rank, i, n_kept = 0
    cdef bint implicit_stays = best.first <= growth.columns.implicit_rank[j] <= best.last, inside
    if not implicit_stays:
        for i in range(growth.n_covered):
            state[growth.covered[i]] |= LEAVING
    for i in range(growth.n_entries[j]):
        rank = rank_code[i] >> 1
        inside = best.first <= rank <= best.last if i < growth.n_known[j] else best.first == MISSING_RANK
        if inside and not implicit_stays:
            state[row[i]] &= ~LEAVING
        elif implicit_stays and not inside:
            state[row[i]] |= LEAVING
    for i in range(growth.n_covered):
        if state[growth.covered[i]] & LEAVING:
            state[growth.covered[i]] = 0
        else:
            growth.covered[n_kept] = growth.covered[i]
            n_kept += 1
    growth.n_covered = n_kept
    growth.positive, growth.total = best.positive, best.total


cdef class RuleGrower:
    """Grows rules on one data set, and computes which rows satisfy them.

    Parameters
    ----------
    ranked : RankedData
        The columns.
    ask_missing : bool
        Whether "x is missing" is a condition.
    weights : ndarray (n,) or None
        Sample weights greater than 0, with exact sums; None for 1.
    logs : ndarray (n + 2,) or None
        Binary logarithms of 0, 1, ..., if all weights are 1.
    n_threads : int
        Number of threads.
    """
    cdef RuleGrowth growth
    cdef RankedData ranked
    cdef object kept_alive
    cdef int n_threads

    def __cinit__(self, RankedData ranked, bint ask_missing, const double[::1] weights, const double[::1] logs,
                  int n_threads):
        cdef RuleGrowth *growth = &self.growth
        cdef const RankedColumns *columns = &ranked.columns
        cdef Py_ssize_t n = columns.n, p = columns.n_columns, k
        self.ranked, self.n_threads, self.kept_alive = ranked, n_threads, (weights, logs)
        growth.columns, growth.ask_missing = columns, ask_missing
        growth.weights = NULL if weights is None else &weights[0]
        growth.logs = NULL if logs is None else &logs[0]
        growth.state = <uint8_t *> malloc(n)
        growth.covered = <uint32_t *> malloc(n * sizeof(uint32_t))
        growth.row = <uint32_t *> take(max(columns.capacity, 1) * sizeof(uint32_t) + 64)
        growth.rank_code = <uint32_t *> take(max(columns.capacity, 1) * sizeof(uint32_t) + 64)
        growth.n_entries = <Py_ssize_t *> malloc(p * sizeof(Py_ssize_t))
        growth.n_known = <Py_ssize_t *> malloc(p * sizeof(Py_ssize_t))
        growth.active = <Py_ssize_t *> malloc(p * sizeof(Py_ssize_t))
        growth.best = <BestCondition *> malloc(p * sizeof(BestCondition))
        growth.groups = <ValueGroup **> calloc(n_threads, sizeof(ValueGroup *))
        growth.varies = <uint8_t *> malloc(p)
        if (growth.state == NULL or growth.covered == NULL or growth.row == NULL or growth.rank_code == NULL
                or growth.n_entries == NULL or growth.n_known == NULL or growth.active == NULL or growth.best == NULL
                or growth.groups == NULL or growth.varies == NULL):
            raise_for_status(NO_MEMORY)
        for k in range(n_threads):
            growth.groups[k] = <ValueGroup *> malloc((n + 2) * sizeof(ValueGroup))
            if growth.groups[k] == NULL:
                raise_for_status(NO_MEMORY)

    def __dealloc__(self):
        cdef RuleGrowth *growth = &self.growth
        cdef Py_ssize_t k
        if growth.groups != NULL:
            for k in range(self.n_threads):
                free(growth.groups[k])
        free(growth.groups)
        free(growth.state)
        free(growth.covered)
        give_back(growth.row)
        give_back(growth.rank_code)
        free(growth.n_entries)
        free(growth.n_known)
        free(growth.active)
        free(growth.best)
        free(growth.varies)

    def grow(self, const uint8_t[::1] chosen, const uint8_t[::1] positive, double min_weight,
             Py_ssize_t max_conditions):
        """Add conditions until no other row is covered, none gains, or the best keeps too few positive rows.

        Parameters
        ----------
        chosen : ndarray (n,) of uint8
            1 for the rows to grow on.
        positive : ndarray (n,) of uint8
            1 for the rows of the class.
        min_weight : float
            Smallest weight of positive rows that a condition may keep.
        max_conditions : int
            Largest number of conditions.

        Returns
        -------
        list of (column, first, last, low, high)
            first <= rank <= last, which is low < x <= high for numbers; -1, -1, inf, -inf: the value is missing.
        """
        cdef RuleGrowth *growth = &self.growth
        cdef Py_ssize_t n = growth.columns.n, i, j
        cdef double w
        cdef BestCondition *best
        conditions = []
        growth.min_weight, growth.positive, growth.total, growth.n_covered = min_weight, 0, 0, 0
        for i in range(n):
            growth.state[i] = (COVERED + POSITIVE * positive[i]) * chosen[i]
            if chosen[i]:
                growth.covered[growth.n_covered] = <uint32_t> i
                growth.n_covered += 1
                w = 1 if growth.weights == NULL else growth.weights[i]
                growth.total += w
                growth.positive += w * positive[i]
        growth.n_active, growth.is_first = growth.columns.n_columns, True
        for j in range(growth.n_active):
            growth.active[j] = j
        while len(conditions) < max_conditions and 0 < growth.positive < growth.total:
            with nogil:
                j = best_column(growth, self.n_threads)
                if j >= 0:
                    keep_covered(growth, j)
            PyErr_CheckSignals()
            if j < 0:
                break
            best, growth.is_first = growth.best + j, False
            conditions.append((j, best.first, best.last, best.low, best.high))
        return conditions

    def depths(self, conditions, uint16_t[::1] out):
        """Compute for every row how many conditions it satisfies before the first that it does not."""
        cdef Py_ssize_t n = self.growth.columns.n, n_conditions = len(conditions), k, j, first, last
        cdef uint16_t *saved = <uint16_t *> malloc(n * sizeof(uint16_t))
        if saved == NULL:
            raise_for_status(NO_MEMORY)
        for k in range(n):
            out[k] = <uint16_t> n_conditions
        for k in range(n_conditions - 1, -1, -1):
            j, first, last = conditions[k][:3]
            set_depth(self.growth.columns, j, first, last, <uint16_t> k, &out[0], saved)
        free(saved)


cdef void set_depth(const RankedColumns *columns, Py_ssize_t j, Py_ssize_t first, Py_ssize_t last, uint16_t place,
                    uint16_t *depth, uint16_t *saved) noexcept nogil:
    """Set depth = place for all rows that do not satisfy the condition first <= rank <= last on column j."""
    cdef const uint32_t *row = columns.row + columns.start[j]
    cdef const uint32_t *rank_code = columns.rank_code + columns.start[j]
    cdef Py_ssize_t begin = rank_start(rank_code, columns.n_known[j], first), i
    cdef Py_ssize_t end = rank_start(rank_code, columns.n_known[j], last + 1)
    if first == MISSING_RANK:
        begin, end = columns.n_known[j], columns.n_entries[j]
    if first <= columns.implicit_rank[j] <= last:
        for i in range(begin):
            depth[row[i]] = place
        for i in range(end, columns.n_entries[j]):
            depth[row[i]] = place
        return
    for i in range(begin, end):
        saved[i - begin] = depth[row[i]]
    for i in range(columns.n):
        depth[i] = place
    for i in range(begin, end):
        depth[row[i]] = saved[i - begin]


cdef Py_ssize_t rank_start(const uint32_t *rank_code, Py_ssize_t n, Py_ssize_t rank) noexcept nogil:
    """Return the first entry of at least this rank."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if <Py_ssize_t> (rank_code[middle] >> 1) < rank:
            low = middle + 1
        else:
            high = middle
    return low
