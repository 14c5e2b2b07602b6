"""Growing a rule on ranked columns: condition after condition, each the one of highest gain.

With P, T the weights of the positive and of all rows that the rule covers, and p, t those that a condition keeps, the
gain (FOIL's, in bits, with Laplace's 1 as in Weka's JRip) is

    p · (log2 (p + 1) / (t + 1)  -  log2 (P + 1) / (T + 1)).

Growing ends where none gains, or the best keeps too few positive rows. Conditions are x <= c and x > c for numbers and
x = level for categories, which a missing value does not satisfy, and on request that it is missing. Of equal ones the
lowest column counts, then the lowest threshold or level, then <= before >, then missing. A threshold between rows of
positive class only, or of the others only, has a better one beside it, if there is one, and is then not looked at.

    entries    of every column, in ascending order, are filtered by the rows that are covered, as these become fewer
    groups     of equal values come from one run through them; that of the usual value is what is left of all rows

Invariant: weights are such that all sums are exact (see rules.induce), so neither the order of rows nor threads nor
what is usual in a column changes a bit of the result.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, log2
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from kernelrules.core.blocks cimport give_back, take
from kernelrules.core.ranked cimport Columns, Ranked
from kernelrules.core.scan cimport halfway
from kernelrules.core.status cimport NO_MEMORY

from kernelrules.core.status import raise_for_status


cdef enum:
    IN = 1                  # of a row's state: it is covered
    POSITIVE = 2
    LEAVES = 4
    MISSING = -1            # the rank of a condition that the value is missing
    SHARED = 1000000        # entries from which on threads share the columns


cdef struct Cut:                    # the best condition of a column: ranks first to last
    double gain                     # 0: there is none
    double positive                 # weight that it keeps
    double total
    Py_ssize_t first
    Py_ssize_t last
    double low                      # low < x <= high
    double high


cdef struct Group:                  # rows of one value
    double positive
    double total
    uint32_t rank


cdef struct Growth:                 # of one rule, and memory that rules share
    const Columns *columns
    const double *weights           # NULL: all 1
    const double *logs              # of 0, 1, ..., n + 1, if they are
    bint ask_missing                # whether there are conditions that a value is missing
    double min_weight
    double positive                 # weights that the rule covers
    double total
    uint8_t *state                  # of a row
    uint32_t *covered               # rows
    Py_ssize_t n_covered
    uint32_t *row                   # entries of covered rows: where the column's begin, there these do
    uint32_t *tag                   # twice the rank, 1 more for positive rows
    Py_ssize_t *size
    Py_ssize_t *known
    Py_ssize_t *active              # columns that still tell rows apart
    Py_ssize_t n_active
    Cut *cuts                       # of a column
    Group **groups                  # of a thread


# ---- one column ------------------------------------------------------------------------------------------------

cdef Py_ssize_t filter_entries(const uint32_t *row, const uint32_t *tag, Py_ssize_t n, const uint8_t *state,
                               uint32_t *row_out, uint32_t *tag_out) noexcept nogil:
    """Those of covered rows, with their class; how many they are."""
    cdef Py_ssize_t i, n_kept = 0
    cdef uint32_t here
    cdef uint8_t what
    for i in range(n):
        here = row[i]
        what = state[here]
        row_out[n_kept] = here
        tag_out[n_kept] = tag[i] | (what >> 1)
        n_kept += what & IN
    return n_kept


cdef Py_ssize_t count_groups(const uint32_t *tag, Py_ssize_t n, Group *groups) noexcept nogil:
    """Rows by rank, of entries in ascending order; how many groups there are."""
    cdef Py_ssize_t i, g = 0, start = 0, positive = 0
    cdef uint32_t here
    for i in range(n):
        here = tag[i]
        positive += here & 1
        if i + 1 == n or (here ^ tag[i + 1]) > 1:
            groups[g].rank, groups[g].positive, groups[g].total = here >> 1, positive, i + 1 - start
            start, positive = i + 1, 0
            g += 1
    return g


cdef Py_ssize_t weigh_groups(const uint32_t *row, const uint32_t *tag, Py_ssize_t n, const double *weights,
                             Group *groups) noexcept nogil:
    """The same of weights."""
    cdef Py_ssize_t i, g = 0
    cdef double positive = 0, total = 0
    cdef uint32_t here
    for i in range(n):
        here = tag[i]
        total += weights[row[i]]
        positive += weights[row[i]] * (here & 1)
        if i + 1 == n or (here ^ tag[i + 1]) > 1:
            groups[g].rank, groups[g].positive, groups[g].total = here >> 1, positive, total
            positive = total = 0
            g += 1
    return g


cdef inline Py_ssize_t add_groups(const uint32_t *row, const uint32_t *tag, Py_ssize_t n, const double *weights,
                                  Group *groups) noexcept nogil:
    if weights == NULL:
        return count_groups(tag, n, groups)
    return weigh_groups(row, tag, n, weights, groups)


cdef inline double log_of(const Growth *growth, double x) noexcept nogil:
    return log2(x) if growth.logs == NULL else growth.logs[<Py_ssize_t> x]


cdef inline double gain_of(const Growth *growth, double base, double positive, double total) noexcept nogil:
    return positive * ((log_of(growth, positive + 1) - log_of(growth, total + 1)) - base)


cdef Py_ssize_t group_column(const Growth *growth, Py_ssize_t j, Group *groups, Group *missing) noexcept nogil:
    """Groups of the covered rows by ascending rank, the usual one in its place; and that of the missing ones."""
    cdef Py_ssize_t start = growth.columns.start[j], known = growth.known[j], size = growth.size[j]
    cdef Py_ssize_t n_below, n_groups, g, low = 0, high = known, middle
    cdef const uint32_t *row = growth.row + start
    cdef const uint32_t *tag = growth.tag + start
    cdef uint32_t usual = growth.columns.usual[j]
    cdef double positive = growth.positive, total = growth.total, w
    while low < high:                               # entries below the usual value
        middle = (low + high) // 2
        if tag[middle] >> 1 < usual:
            low = middle + 1
        else:
            high = middle
    n_below = add_groups(row, tag, low, growth.weights, groups)
    n_groups = n_below + 1 + add_groups(row + low, tag + low, known - low, growth.weights, groups + n_below + 1)
    missing.positive = missing.total = 0
    for g in range(known, size):
        w = 1 if growth.weights == NULL else growth.weights[row[g]]
        missing.total += w
        missing.positive += w * (tag[g] & 1)
    total -= missing.total
    positive -= missing.positive
    for g in range(n_groups):
        if g != n_below:
            total -= groups[g].total
            positive -= groups[g].positive
    groups[n_below].rank, groups[n_below].positive, groups[n_below].total = usual, positive, total
    if total == 0:                                  # nobody has it
        for g in range(n_below, n_groups - 1):
            groups[g] = groups[g + 1]
        n_groups -= 1
    return n_groups


cdef void consider(const Growth *growth, double base, double positive, double total, Py_ssize_t g, bint below,
                   Cut *best, Py_ssize_t *at, bint *is_below) noexcept nogil:
    """Take a condition if it is better than all before it."""
    cdef double gain
    if -positive * base <= best.gain:               # even without other rows
        return
    gain = gain_of(growth, base, positive, total)
    if gain > best.gain:
        best.gain, best.positive, best.total = gain, positive, total
        at[0], is_below[0] = g, below


cdef void cut_numbers(const Growth *growth, Py_ssize_t j, const Group *groups, Py_ssize_t n_groups, double base,
                      Cut *best) noexcept nogil:
    """The best threshold."""
    cdef const double *value = growth.columns.value[j]
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
            consider(growth, base, positive, total, g, True, best, &at, &below)
        if groups[g + 1].positive > 0 and (groups[g].positive < groups[g].total or g == 0):
            consider(growth, base, all_positive - positive, all_total - total, g, False, best, &at, &below)
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


cdef void cut_levels(const Growth *growth, const Group *groups, Py_ssize_t n_groups, double base,
                     Cut *best) noexcept nogil:
    """The best level."""
    cdef Py_ssize_t g, at = -1
    cdef bint below = False
    for g in range(n_groups):
        if groups[g].total < growth.total:
            consider(growth, base, groups[g].positive, groups[g].total, g, True, best, &at, &below)
    if at >= 0:
        best.first = best.last = groups[at].rank
        best.low, best.high = -INFINITY, INFINITY


cdef bint look_at(Growth *growth, Py_ssize_t j, bint anew, double base, Group *groups) noexcept nogil:
    """Bring the entries of a column up to date and find its best condition; whether it tells rows apart."""
    cdef const Columns *columns = growth.columns
    cdef Py_ssize_t start = columns.start[j], known, n_groups
    cdef const uint32_t *row = (columns.row if anew else growth.row) + start
    cdef const uint32_t *tag = (columns.tag if anew else growth.tag) + start
    cdef Py_ssize_t was_known = columns.known[j] if anew else growth.known[j]
    cdef Py_ssize_t was_size = columns.size[j] if anew else growth.size[j]
    cdef uint32_t *row_out = growth.row + start
    cdef uint32_t *tag_out = growth.tag + start
    cdef Cut *cut = growth.cuts + j
    cdef Group missing
    cdef Py_ssize_t at = -1
    cdef bint below = False
    known = filter_entries(row, tag, was_known, growth.state, row_out, tag_out)
    growth.known[j] = known
    growth.size[j] = known + filter_entries(row + was_known, tag + was_known, was_size - was_known, growth.state,
                                            row_out + known, tag_out + known)
    cut.gain = 0
    if growth.size[j] == 0:
        return False
    n_groups = group_column(growth, j, groups, &missing)
    if n_groups <= 1 and (missing.total == 0 or (columns.value[j] != NULL and not growth.ask_missing)):
        return False
    if columns.value[j] != NULL:
        cut_numbers(growth, j, groups, n_groups, base, cut)
    else:
        cut_levels(growth, groups, n_groups, base, cut)
    if growth.ask_missing and 0 < missing.total < growth.total:
        consider(growth, base, missing.positive, missing.total, MISSING, True, cut, &at, &below)
        if below:
            cut.first = cut.last = MISSING
            cut.low, cut.high = INFINITY, -INFINITY
    return True


# ---- one condition ---------------------------------------------------------------------------------------------

cdef Py_ssize_t best_column(Growth *growth, bint anew, uint8_t *useful, int n_threads) noexcept nogil:
    """The column of the best condition, -1 if it does not gain or keeps too little; drops columns that are constant."""
    cdef Py_ssize_t k, j, n_entries = 0, n_kept = 0, best = -1
    cdef double base = log_of(growth, growth.positive + 1) - log_of(growth, growth.total + 1)
    for k in range(growth.n_active):
        j = growth.active[k]
        n_entries += growth.columns.size[j] if anew else growth.size[j]
    if n_entries < SHARED or n_threads == 1:
        for k in range(growth.n_active):
            useful[k] = look_at(growth, growth.active[k], anew, base, growth.groups[0])
    else:
        for k in prange(growth.n_active, num_threads=n_threads, schedule="dynamic",
                        chunksize=1 + growth.n_active // 256):
            useful[k] = look_at(growth, growth.active[k], anew, base, growth.groups[threadid()])
    for k in range(growth.n_active):
        j = growth.active[k]
        if growth.cuts[j].gain > 0 and (best < 0 or growth.cuts[j].gain > growth.cuts[best].gain):
            best = j
        growth.active[n_kept] = j
        n_kept += useful[k]
    growth.n_active = n_kept
    return best if best >= 0 and growth.cuts[best].positive >= growth.min_weight else -1


cdef void keep_covered(Growth *growth, Py_ssize_t j) noexcept nogil:
    """Only the rows that satisfy the column's condition stay covered."""
    cdef Cut *cut = growth.cuts + j
    cdef const uint32_t *row = growth.row + growth.columns.start[j]
    cdef const uint32_t *tag = growth.tag + growth.columns.start[j]
    cdef uint8_t *state = growth.state
    cdef Py_ssize_t rank, i, n_kept = 0
    cdef bint usual_stays = cut.first <= growth.columns.usual[j] <= cut.last, inside
    if not usual_stays:
        for i in range(growth.n_covered):
            state[growth.covered[i]] |= LEAVES
    for i in range(growth.size[j]):
        rank = tag[i] >> 1
        inside = cut.first <= rank <= cut.last if i < growth.known[j] else cut.first == MISSING
        if inside and not usual_stays:
            state[row[i]] &= ~LEAVES
        elif usual_stays and not inside:
            state[row[i]] |= LEAVES
    for i in range(growth.n_covered):
        if state[growth.covered[i]] & LEAVES:
            state[growth.covered[i]] = 0
        else:
            growth.covered[n_kept] = growth.covered[i]
            n_kept += 1
    growth.n_covered = n_kept
    growth.positive, growth.total = cut.positive, cut.total


cdef class Grower:
    """Grows rules on one set of data, and tells what they cover.

    Parameters
    ----------
    ranked : Ranked
        The columns.
    ask_missing : bool
        Whether there are conditions that a value is missing.
    weights : ndarray (n,) or None
        Greater than 0, with exact sums.
    logs : ndarray (n + 2,) or None
        Binary logarithms of 0, 1, ..., if all weights are 1.
    n_threads : int
        To use.
    """
    cdef Growth growth
    cdef Ranked ranked
    cdef object kept_alive
    cdef uint8_t *useful
    cdef int n_threads

    def __cinit__(self, Ranked ranked, bint ask_missing, const double[::1] weights, const double[::1] logs,
                  int n_threads):
        cdef Growth *growth = &self.growth
        cdef const Columns *columns = &ranked.columns
        cdef Py_ssize_t n = columns.n, p = columns.n_columns, k
        self.ranked, self.n_threads, self.kept_alive = ranked, n_threads, (weights, logs)
        growth.columns, growth.ask_missing = columns, ask_missing
        growth.weights = NULL if weights is None else &weights[0]
        growth.logs = NULL if logs is None else &logs[0]
        growth.state = <uint8_t *> malloc(n)
        growth.covered = <uint32_t *> malloc(n * sizeof(uint32_t))
        growth.row = <uint32_t *> take(max(columns.n_entries, 1) * sizeof(uint32_t) + 64)
        growth.tag = <uint32_t *> take(max(columns.n_entries, 1) * sizeof(uint32_t) + 64)
        growth.size = <Py_ssize_t *> malloc(p * sizeof(Py_ssize_t))
        growth.known = <Py_ssize_t *> malloc(p * sizeof(Py_ssize_t))
        growth.active = <Py_ssize_t *> malloc(p * sizeof(Py_ssize_t))
        growth.cuts = <Cut *> malloc(p * sizeof(Cut))
        growth.groups = <Group **> calloc(n_threads, sizeof(Group *))
        self.useful = <uint8_t *> malloc(p)
        if (growth.state == NULL or growth.covered == NULL or growth.row == NULL or growth.tag == NULL
                or growth.size == NULL or growth.known == NULL or growth.active == NULL or growth.cuts == NULL
                or growth.groups == NULL or self.useful == NULL):
            raise_for_status(NO_MEMORY)
        for k in range(n_threads):
            growth.groups[k] = <Group *> malloc((n + 2) * sizeof(Group))
            if growth.groups[k] == NULL:
                raise_for_status(NO_MEMORY)

    def __dealloc__(self):
        cdef Growth *growth = &self.growth
        cdef Py_ssize_t k
        if growth.groups != NULL:
            for k in range(self.n_threads):
                free(growth.groups[k])
        free(growth.groups)
        free(growth.state)
        free(growth.covered)
        give_back(growth.row)
        give_back(growth.tag)
        free(growth.size)
        free(growth.known)
        free(growth.active)
        free(growth.cuts)
        free(self.useful)

    def grow(self, const uint8_t[::1] chosen, const uint8_t[::1] positive, double min_weight, Py_ssize_t most):
        """Conditions, at most so many, until no other row is covered, none gains, or the best keeps too little.

        Parameters
        ----------
        chosen : ndarray (n,) of uint8
            1 for the rows to grow on.
        positive : ndarray (n,) of uint8
            1 for the rows of the class.
        min_weight : float
            Of positive rows: growing ends where the best condition would keep less.
        most : int
            Conditions.

        Returns
        -------
        list of (column, first, last, low, high)
            first <= rank <= last, which is low < x <= high for numbers; -1, -1, inf, -inf: the value is missing.
        """
        cdef Growth *growth = &self.growth
        cdef Py_ssize_t n = growth.columns.n, i, j
        cdef double w
        cdef bint anew = True
        cdef Cut *cut
        conditions = []
        growth.min_weight, growth.positive, growth.total, growth.n_covered = min_weight, 0, 0, 0
        for i in range(n):
            growth.state[i] = (IN + POSITIVE * positive[i]) * chosen[i]
            if chosen[i]:
                growth.covered[growth.n_covered] = <uint32_t> i
                growth.n_covered += 1
                w = 1 if growth.weights == NULL else growth.weights[i]
                growth.total += w
                growth.positive += w * positive[i]
        growth.n_active = growth.columns.n_columns
        for j in range(growth.n_active):
            growth.active[j] = j
        while len(conditions) < most and 0 < growth.positive < growth.total:
            with nogil:
                j = best_column(growth, anew, self.useful, self.n_threads)
                if j >= 0:
                    keep_covered(growth, j)
            PyErr_CheckSignals()
            if j < 0:
                break
            cut, anew = growth.cuts + j, False
            conditions.append((j, cut.first, cut.last, cut.low, cut.high))
        return conditions

    def depths(self, conditions, uint16_t[::1] out):
        """For every row, how many conditions it satisfies before the first that it does not."""
        cdef Py_ssize_t n = self.growth.columns.n, n_conditions = len(conditions), k, j, first, last
        cdef uint16_t *other = <uint16_t *> malloc(n * sizeof(uint16_t))
        if other == NULL:
            raise_for_status(NO_MEMORY)
        for k in range(n):
            out[k] = <uint16_t> n_conditions
        for k in range(n_conditions - 1, -1, -1):
            j, first, last = conditions[k][:3]
            fail(self.growth.columns, j, first, last, <uint16_t> k, &out[0], other)
        free(other)


cdef void fail(const Columns *columns, Py_ssize_t j, Py_ssize_t first, Py_ssize_t last, uint16_t place, uint16_t *depth,
               uint16_t *other) noexcept nogil:
    """depth = place for all rows that do not satisfy a condition."""
    cdef const uint32_t *row = columns.row + columns.start[j]
    cdef const uint32_t *tag = columns.tag + columns.start[j]
    cdef Py_ssize_t begin = rank_start(tag, columns.known[j], first), i
    cdef Py_ssize_t end = rank_start(tag, columns.known[j], last + 1)
    if first == MISSING:
        begin, end = columns.known[j], columns.size[j]
    if first <= columns.usual[j] <= last:
        for i in range(begin):
            depth[row[i]] = place
        for i in range(end, columns.size[j]):
            depth[row[i]] = place
        return
    for i in range(begin, end):
        other[i - begin] = depth[row[i]]
    for i in range(columns.n):
        depth[i] = place
    for i in range(begin, end):
        depth[row[i]] = other[i - begin]


cdef Py_ssize_t rank_start(const uint32_t *tag, Py_ssize_t n, Py_ssize_t rank) noexcept nogil:
    """The first entry of at least this rank."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if <Py_ssize_t> (tag[middle] >> 1) < rank:
            low = middle + 1
        else:
            high = middle
    return low
