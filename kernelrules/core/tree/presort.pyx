"""Columns sorted once, and kept sorted while a tree splits its rows.

    many distinct values   an array of entries in ascending order: id | class << shift | differs << 31. `differs` says
                           that the value is larger than the one before, so growing never reads values again.
    at most 256 of them    rank codes of one byte (two for categories with many levels), row after row, for histograms
    categories             codes as well

Values are compared as they are given, in their own type: float32 is widened exactly, -0 equals 0, missing ones (NaN)
come after all others. A split moves the entries of its left rows to the front of their segment in every column, stably:
order survives, and an entry differs from its new predecessor if any of those dropped between them did.

Invariant: an entry's order in its column depends on values and row numbers only, never on threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.base.memory cimport give_back, take
from kernelrules.core.base.status cimport NO_MEMORY, OK
from kernelrules.core.base.team cimport gather_status, run_team
from kernelrules.core.base.types cimport real_t

from kernelrules.core.base.status import raise_for_status


ctypedef fused code_t:
    uint8_t
    uint16_t

cdef enum:
    RADIX_BITS = 11                 # of one pass: its counters fit the first-level cache
    RADIX_BUCKETS = 1 << 11
    MAX_CODED_VALUES = 256          # a column with at most so many distinct values is coded, in one byte
    HASH_SLOTS = 1024               # of the table that finds these values
    COLUMNS_PER_BATCH = 16          # transposed together: a cache line of float32
    ROWS_PER_BLOCK = 64             # transposed together
    MAX_TRANSPOSED_ENTRIES = 20000000
    MIN_SHARED_ENTRIES = 100000     # of a transposition that threads share
    ENTRIES_BETWEEN_SIGNAL_CHECKS = 4000000     # while columns are sorted; at least one column for each thread
    MAX_ENTRIES_COPIED_SINGLY = 16  # a call of memcpy costs more


# ---- one column ------------------------------------------------------------------------------------------------

cdef inline double value_of_key(key_t key) noexcept nogil:
    """The value whose bits a key was made from."""
    cdef uint32_t narrow
    cdef uint64_t wide
    cdef float single
    cdef double value
    if key_t is uint32_t:
        narrow = key ^ <uint32_t> 0x80000000 if key >> 31 else ~key
        memcpy(&single, &narrow, 4)
        return single
    else:
        wide = key ^ <uint64_t> 1 << 63 if key >> 63 else ~key
        memcpy(&value, &wide, 8)
        return value


cdef inline uint32_t hash_of(key_t key) noexcept nogil:
    cdef uint64_t mixed_key = <uint64_t> key * <uint64_t> 0x9e3779b97f4a7c15
    return <uint32_t> (mixed_key >> 54)


cdef Py_ssize_t code_column(const key_t *keys, Py_ssize_t n, Py_ssize_t limit, key_t *distinct,
                            uint16_t *codes) noexcept nogil:
    """Ranks of the keys among the distinct ones, which come out ascending; -1: there are more than the limit."""
    cdef key_t where[HASH_SLOTS]
    cdef short number[HASH_SLOTS]
    cdef uint16_t rank[MAX_CODED_VALUES]
    cdef Py_ssize_t n_distinct = 0, i, j
    cdef uint32_t at
    cdef key_t key
    memset(number, -1, sizeof(number))
    for i in range(n):
        key = keys[i]
        at = hash_of(key)
        while number[at] >= 0 and where[at] != key:
            at = (at + 1) & (HASH_SLOTS - 1)
        if number[at] < 0:
            if n_distinct == limit:
                return -1
            where[at] = key
            number[at] = <short> n_distinct
            distinct[n_distinct] = key
            n_distinct += 1
        codes[i] = <uint16_t> number[at]
    for i in range(n_distinct):         # ranks by counting smaller ones: there are few
        rank[i] = 0
        for j in range(n_distinct):
            rank[i] += distinct[j] < distinct[i]
    for i in range(n):
        codes[i] = rank[codes[i]]
    for i in range(1, n_distinct):
        key = distinct[i]
        j = i
        while j > 0 and distinct[j - 1] > key:
            distinct[j] = distinct[j - 1]
            j -= 1
        distinct[j] = key
    return n_distinct


cdef int sort_entries(key_t *keys, key_t *other_keys, uint32_t *entries, uint32_t *other_entries, Py_ssize_t n,
                      Py_ssize_t n_known) noexcept nogil:
    """Sort entries by key, stably, a digit at a time from the lowest; 1 if keys repeat. Marks entries that differ."""
    cdef uint32_t counts[6][RADIX_BUCKETS]
    cdef int n_digits = (8 * <int> sizeof(key_t) + RADIX_BITS - 1) // RADIX_BITS, digit, move
    cdef uint32_t place, start, count
    cdef Py_ssize_t i
    cdef key_t key
    cdef key_t *keys_here = keys
    cdef key_t *keys_there = other_keys
    cdef uint32_t *here = entries
    cdef uint32_t *there = other_entries
    cdef bint tied = False, differs
    memset(counts, 0, sizeof(counts))
    for i in range(n):
        key = keys[i]
        for digit in range(n_digits):
            counts[digit][<uint32_t> (key >> (digit * RADIX_BITS)) & (RADIX_BUCKETS - 1)] += 1
    for digit in range(n_digits):
        move = digit * RADIX_BITS
        if n and counts[digit][<uint32_t> (keys_here[0] >> move) & (RADIX_BUCKETS - 1)] == n:
            continue                    # all have the same
        start = 0
        for i in range(RADIX_BUCKETS):
            count = counts[digit][i]
            counts[digit][i] = start
            start += count
        for i in range(n):
            key = keys_here[i]
            place = counts[digit][<uint32_t> (key >> move) & (RADIX_BUCKETS - 1)]
            counts[digit][<uint32_t> (key >> move) & (RADIX_BUCKETS - 1)] = place + 1
            keys_there[place] = key
            there[place] = here[i]
        keys_here, keys_there = keys_there, keys_here
        here, there = there, here
    for i in range(n - 1, -1, -1):
        differs = i == 0 or (i < n_known and keys_here[i] != keys_here[i - 1])
        tied = tied or (not differs and i < n_known)
        entries[i] = here[i] | (DIFFERS if differs else 0)
    return tied


cdef Py_ssize_t partition(uint32_t *entries, Py_ssize_t n, Py_ssize_t n_known, const uint8_t *side, uint32_t id_mask,
                          bint tied, uint32_t *scratch) noexcept nogil:
    """Entries of side 0 to the front, of side 1 behind, both in their order; known ones stay before missing ones.

    Gives how many of the left ones are known. Where values repeat, what was dropped between two neighbours decides
    whether the second differs.
    """
    cdef uint32_t *left = entries
    cdef uint32_t *right = scratch
    cdef uint32_t entry, goes, differs, plain, left_differs = DIFFERS, right_differs = DIFFERS
    cdef Py_ssize_t i, n_known_left
    if tied:
        for i in range(n_known):
            entry = entries[i]
            goes = side[entry & id_mask]
            plain = entry & ~DIFFERS
            differs = entry & DIFFERS
            left_differs |= differs
            right_differs |= differs
            left[0] = plain | left_differs
            right[0] = plain | right_differs
            left_differs &= 0 - goes
            right_differs &= goes - 1
            left += 1 - goes
            right += goes
    else:
        for i in range(n_known):
            entry = entries[i]
            goes = side[entry & id_mask]
            left[0] = entry
            right[0] = entry
            left += 1 - goes
            right += goes
    n_known_left = left - entries
    for i in range(n_known, n):
        entry = entries[i]
        goes = side[entry & id_mask]
        left[0] = entry
        right[0] = entry
        left += 1 - goes
        right += goes
    if right - scratch < MAX_ENTRIES_COPIED_SINGLY:             # a call costs more than the copy
        for i in range(right - scratch):
            left[i] = scratch[i]
    else:
        memcpy(left, scratch, (right - scratch) * sizeof(uint32_t))
    return n_known_left


cdef Py_ssize_t keep_side(uint32_t *entries, Py_ssize_t n, Py_ssize_t n_known, const uint8_t *side, uint32_t id_mask,
                          int kept) noexcept nogil:
    """Entries of one side to the front; the others are lost: they are in a leaf. Gives how many are known."""
    cdef uint32_t *end = entries
    cdef uint32_t entry, stays, differs = DIFFERS
    cdef Py_ssize_t i, n_known_kept
    for i in range(n_known):
        entry = entries[i]
        stays = side[entry & id_mask] == kept
        differs |= entry & DIFFERS
        end[0] = (entry & ~DIFFERS) | differs
        differs &= stays - 1
        end += stays
    n_known_kept = end - entries
    for i in range(n_known, n):
        entry = entries[i]
        end[0] = entry
        end += side[entry & id_mask] == kept
    return n_known_kept


# ---- arenas ----------------------------------------------------------------------------------------------------

cdef SampleArena *new_arena(Py_ssize_t n, Py_ssize_t n_orders, bint with_orders, bint own_rows, Py_ssize_t code_bytes,
                            Py_ssize_t n_outputs, bint weighted) noexcept nogil:
    """Memory for rows and what belongs to them, the order of columns too if wanted; NULL if there is none."""
    cdef SampleArena *arena = <SampleArena *> calloc(1, sizeof(SampleArena))
    cdef Py_ssize_t k
    cdef bint complete
    if arena == NULL:
        return NULL
    arena.n, arena.n_orders, arena.own_rows = n, n_orders, own_rows
    arena.order = <uint32_t **> calloc(max(n_orders, 1), sizeof(uint32_t *))
    arena.origin = <uint32_t *> malloc(n * sizeof(uint32_t))
    arena.number = <uint32_t *> malloc(n * sizeof(uint32_t))
    arena.side = <uint8_t *> malloc(n)
    arena.codes = malloc(max(n * code_bytes, 1))
    complete = not (arena.order == NULL or arena.origin == NULL or arena.number == NULL or arena.side == NULL
                    or arena.codes == NULL)
    if n_outputs:
        arena.y = <double *> malloc(n * n_outputs * sizeof(double))
        complete = complete and arena.y != NULL
    if weighted:
        arena.w = <double *> malloc(n * sizeof(double))
        complete = complete and arena.w != NULL
    if complete and with_orders:
        arena.block = <uint32_t *> take(n_orders * n * sizeof(uint32_t))
        complete = arena.block != NULL
        for k in range(n_orders):
            arena.order[k] = arena.block + k * n
    if complete and own_rows:
        arena.rows = <uint32_t *> malloc(n * sizeof(uint32_t))
        complete = arena.rows != NULL
    elif complete and with_orders:
        arena.rows = arena.order[0]
    if not complete:
        free_arena(arena)
        return NULL
    return arena


cdef void free_arena(SampleArena *arena) noexcept nogil:
    if arena == NULL:
        return
    if arena.own_rows:
        free(arena.rows)
    give_back(arena.block)
    free(arena.order)
    free(arena.origin)
    free(arena.number)
    free(arena.side)
    free(arena.codes)
    free(arena.y)
    free(arena.w)
    free(arena)


cdef SampleArena *part_of_arena(const PresortedTable *table, const SampleArena *whole, Py_ssize_t start, Py_ssize_t m,
                                Py_ssize_t n_outputs, uint32_t *number) noexcept nogil:
    """A segment of an arena on its own, with its rows numbered anew: then what belongs to them fits a cache."""
    cdef Py_ssize_t code_bytes = table.n_coded * (2 if table.wide else 1), i, k
    cdef uint32_t id_mask = table.id_mask, entry, old
    cdef SampleArena *part = new_arena(m, whole.n_orders, True, whole.own_rows, code_bytes, n_outputs, whole.w != NULL)
    cdef const uint32_t *source
    cdef uint32_t *out
    if part == NULL:
        return NULL
    for i in range(m):
        old = whole.rows[start + i] & id_mask
        number[old] = <uint32_t> i
        part.origin[i] = whole.origin[old]
        if code_bytes:
            memcpy(<char *> part.codes + i * code_bytes, <const char *> whole.codes + old * code_bytes, code_bytes)
        if n_outputs == 1:
            part.y[i] = whole.y[old]
        elif n_outputs:
            memcpy(part.y + i * n_outputs, whole.y + old * n_outputs, n_outputs * sizeof(double))
        if whole.w != NULL:
            part.w[i] = whole.w[old]
    for k in range(whole.n_orders + whole.own_rows):
        source = (whole.order[k] if k < whole.n_orders else whole.rows) + start
        out = part.order[k] if k < whole.n_orders else part.rows
        for i in range(m):
            entry = source[i]
            out[i] = (entry & ~id_mask) | number[entry & id_mask]
    return part


# ---- all columns -----------------------------------------------------------------------------------------------

cdef struct ColumnBuffers:                 # of one column that is being looked at
    void *keys
    void *other_keys
    uint32_t *other_entries
    uint16_t *codes                     # result, if it is coded
    double distinct[MAX_CODED_VALUES]
    Py_ssize_t n_distinct               # -1: it is sorted
    Py_ssize_t n_missing
    bint tied


cdef struct ColumnBatch:                      # columns that are read side by side
    PresortedTable *table
    const uint32_t *labels
    Py_ssize_t max_coded_values
    Py_ssize_t first
    Py_ssize_t width
    void *transposed                        # their values, one column after the other; NULL: they are so in the data
    ColumnBuffers *work                    # of a thread
    uint32_t *block                     # of all orders
    uint16_t **codes
    double **distinct
    int status


cdef void transpose_block(const ColumnBatch *batch, Py_ssize_t number, real_t *out) noexcept nogil:
    """Values of some rows to their columns."""
    cdef const PresortedTable *table = batch.table
    cdef Py_ssize_t start = number * ROWS_PER_BLOCK, end = min((number + 1) * ROWS_PER_BLOCK, table.n), i, k
    cdef const char *at
    for k in range(batch.width):
        at = table.values + (batch.first + k) * table.column_stride
        for i in range(start, end):
            out[k * table.n + i] = (<const real_t *> (at + i * table.row_stride))[0]


cdef void transpose_block_range(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const ColumnBatch *batch = <const ColumnBatch *> context
    cdef Py_ssize_t number
    for number in range(first, last):
        if batch.table.single:
            transpose_block(batch, number, <float *> batch.transposed)
        else:
            transpose_block(batch, number, <double *> batch.transposed)


cdef int read_column(const real_t *values, key_t *keys, Py_ssize_t n, Py_ssize_t n_levels,
                     Py_ssize_t max_coded_values, const uint32_t *labels, int shift, ColumnBuffers *work,
                     uint32_t *entries) noexcept nogil:
    """Code the column, or sort it into `entries`, which may be where the values are: they are read before."""
    cdef key_t distinct[MAX_CODED_VALUES]
    cdef Py_ssize_t i, n_missing = 0
    cdef bint is_missing
    if n_levels:
        for i in range(n):
            is_missing = values[i] != values[i]
            n_missing += is_missing
            work.codes[i] = <uint16_t> (n_levels if is_missing else values[i])
        work.n_distinct, work.n_missing = n_levels, n_missing
        return OK
    for i in range(n):
        set_key(values[i], keys + i)
        n_missing += values[i] != values[i]
    work.n_missing = n_missing
    work.n_distinct = code_column(keys, n, max_coded_values, distinct, work.codes) if max_coded_values else -1
    if work.n_distinct >= 0:
        work.n_distinct -= n_missing > 0
        for i in range(work.n_distinct):
            work.distinct[i] = value_of_key(distinct[i])
        return OK
    for i in range(n):
        entries[i] = <uint32_t> i | (labels[i] << shift if labels != NULL else 0)
    work.tied = sort_entries(keys, <key_t *> work.other_keys, entries, work.other_entries, n, n - n_missing)
    return OK


cdef void spread_codes(const PresortedTable *table, uint16_t **codes, code_t *out) noexcept nogil:
    """Codes row by row, from codes column by column; some rows at a time, so that they stay in cache."""
    cdef Py_ssize_t block, end, k, i, n_coded = table.n_coded
    cdef const uint16_t *column
    for block in range((table.n + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK):
        end = min((block + 1) * ROWS_PER_BLOCK, table.n)
        for k in range(n_coded):
            column = codes[table.coded[k]]
            for i in range(block * ROWS_PER_BLOCK, end):
                out[i * n_coded + k] = <code_t> column[i]


cdef int read_into(ColumnBatch *batch, Py_ssize_t column, ColumnBuffers *work, const real_t *values) noexcept nogil:
    """One column, and what the table has to know about it."""
    cdef PresortedTable *table = batch.table
    cdef Py_ssize_t n = table.n, n_levels = table.n_levels[column]
    cdef uint32_t *entries = batch.block + column * n
    cdef int status
    work.codes = <uint16_t *> malloc(n * sizeof(uint16_t))
    if work.codes == NULL:
        return NO_MEMORY
    if real_t is float:
        status = read_column(values, <uint32_t *> work.keys, n, n_levels, batch.max_coded_values, batch.labels,
                             table.shift, work, entries)
    else:
        status = read_column(values, <uint64_t *> work.keys, n, n_levels, batch.max_coded_values, batch.labels,
                             table.shift, work, entries)
    table.missing[column] = work.n_missing > 0
    if status != OK or work.n_distinct < 0:
        free(work.codes)
        table.tied[column] = work.tied
        return status
    batch.codes[column] = work.codes
    table.n_bins[column] = work.n_distinct + (work.n_missing > 0)
    if not n_levels:
        batch.distinct[column] = <double *> malloc(MAX_CODED_VALUES * sizeof(double))
        if batch.distinct[column] == NULL:
            return NO_MEMORY
        memcpy(batch.distinct[column], work.distinct, work.n_distinct * sizeof(double))
    return OK


cdef void read_columns(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef ColumnBatch *batch = <ColumnBatch *> context
    cdef const PresortedTable *table = batch.table
    cdef Py_ssize_t k, column
    cdef const void *values
    for k in range(first, last):
        column = batch.first + k
        if batch.transposed == NULL:
            values = table.values + column * table.column_stride
        else:
            values = <const char *> batch.transposed + k * table.n * (4 if table.single else 8)
        if table.single:
            gather_status(&batch.status, read_into(batch, column, batch.work + worker, <const float *> values))
        else:
            gather_status(&batch.status, read_into(batch, column, batch.work + worker, <const double *> values))


cdef int read_all(PresortedTable *table, const uint32_t *labels, Py_ssize_t max_coded_values, int n_threads,
                  uint32_t *block, uint16_t **codes, double **distinct) except -1:
    """Every column coded or sorted, by batches: what was found is left in the table and the arrays.

    The order of a column comes to its own part of the block. Columns of float32 are turned into there, and sorted where
    they are; those of float64 need room of their own.
    """
    cdef Py_ssize_t n = table.n, p = table.n_columns, first, k, step, begin, some
    cdef Py_ssize_t n_bytes = n * (4 if table.single else 8)
    cdef bint by_columns = table.row_stride == (4 if table.single else 8), in_place = table.single
    cdef void *room = NULL
    cdef ColumnBuffers *work = <ColumnBuffers *> calloc(n_threads, sizeof(ColumnBuffers))
    cdef ColumnBatch batch
    try:
        if not by_columns and not in_place:
            room = take(min(COLUMNS_PER_BATCH, p) * n_bytes)
        if work == NULL or (room == NULL and not by_columns and not in_place):
            raise_for_status(NO_MEMORY)
        for k in range(n_threads):
            work[k].keys = take(n_bytes)
            work[k].other_keys = take(n_bytes)
            work[k].other_entries = <uint32_t *> take(n * sizeof(uint32_t))
            if work[k].keys == NULL or work[k].other_keys == NULL or work[k].other_entries == NULL:
                raise_for_status(NO_MEMORY)
        step = max(1, min(COLUMNS_PER_BATCH, MAX_TRANSPOSED_ENTRIES // max(n, 1)))
        some = max(n_threads, ENTRIES_BETWEEN_SIGNAL_CHECKS // max(n, 1))
        batch.table, batch.labels, batch.work, batch.block = table, labels, work, block
        batch.max_coded_values = max_coded_values
        batch.codes, batch.distinct, batch.status, batch.transposed = codes, distinct, OK, NULL
        for first in range(0, p, step):
            batch.first, batch.width = first, min(step, p - first)
            if not by_columns:
                batch.transposed = <void *> (block + first * n) if in_place else room
                with nogil:
                    run_team(0, (n + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK, 0,
                             n_threads if n * batch.width >= MIN_SHARED_ENTRIES else 1, transpose_block_range, &batch)
            for begin in range(0, batch.width, some):
                with nogil:
                    run_team(begin, min(begin + some, batch.width), 1, n_threads, read_columns, &batch)
                raise_for_status(batch.status)
                PyErr_CheckSignals()
    finally:
        if work != NULL:
            for k in range(n_threads):
                give_back(work[k].keys)
                give_back(work[k].other_keys)
                give_back(work[k].other_entries)
        free(work)
        give_back(room)
    return 0


cdef int gather_bins(PresortedTable *table, uint16_t **codes, double **distinct) except -1:
    """Number the ordered and the coded columns, and lay out the bins of the latter."""
    cdef Py_ssize_t p = table.n_columns, column, k, total = 0
    for column in range(p):
        if codes[column] == NULL:
            table.place[column] = table.n_ordered
            table.ordered[table.n_ordered] = column
            table.tied[table.n_ordered] = table.tied[column]
            table.some_missing = table.some_missing or table.missing[column]
            table.n_ordered += 1
        else:
            k = table.n_coded
            table.place[column] = -1 - k
            table.coded[k] = column
            table.n_bins[k] = table.n_bins[column]
            table.bin_start[k] = total
            total += table.n_bins[k]
            table.n_coded += 1
    table.bin_start[table.n_coded] = total
    table.n_bins_all = total
    table.bin_value = <double *> calloc(max(total, 1), sizeof(double))
    if table.bin_value == NULL:
        raise_for_status(NO_MEMORY)
    for k in range(table.n_coded):
        if distinct[table.coded[k]] != NULL:
            memcpy(table.bin_value + table.bin_start[k], distinct[table.coded[k]], table.n_bins[k] * sizeof(double))
    return 0


cdef class Presorted:
    """Columns of a matrix, sorted or coded, with the targets of its rows.

    Parameters
    ----------
    values : ndarray (n, p), float32 or float64
        Codes of categories in some columns; NaN where missing.
    n_levels : ndarray (p,) of intp
        Categories of a column, 0 for a numerical one.
    labels : ndarray (n,) of uint32, or None
        Classes.
    class_bits : int
        Bits of an entry that the class takes.
    y : ndarray (n, d) or None
        Targets of a regression.
    w : ndarray (n,) or None
        Weights.
    sort_targets : bool
        Whether to carry the order of the targets as well; then no numerical column is coded.
    n_threads : int
        To use.
    """

    def __cinit__(self, values, const Py_ssize_t[::1] n_levels, const uint32_t[::1] labels, int class_bits,
                  const double[:, ::1] y, const double[::1] w, bint sort_targets, int n_threads):
        cdef PresortedTable *table = &self.table
        cdef Py_ssize_t n = values.shape[0], p = values.shape[1], i
        self.values = values
        table.n, table.n_columns = n, p
        table.shift = 31 - class_bits
        table.id_mask = (<uint32_t> 1 << table.shift) - 1
        table.row_stride, table.column_stride = values.strides
        table.single = values.itemsize == 4
        table.values = <const char *> <size_t> values.ctypes.data
        table.place = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        table.ordered = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        table.coded = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        table.n_levels = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        table.n_bins = <Py_ssize_t *> calloc(p, sizeof(Py_ssize_t))
        table.bin_start = <Py_ssize_t *> calloc(p + 1, sizeof(Py_ssize_t))
        table.missing = <uint8_t *> calloc(p, 1)
        table.tied = <uint8_t *> calloc(p, 1)
        if (table.place == NULL or table.ordered == NULL or table.coded == NULL or table.n_levels == NULL
                or table.n_bins == NULL or table.bin_start == NULL or table.missing == NULL or table.tied == NULL):
            raise_for_status(NO_MEMORY)
        for i in range(p):
            table.n_levels[i] = n_levels[i]
            table.wide = table.wide or n_levels[i] >= MAX_CODED_VALUES
        self._read(labels, y, w, sort_targets, n_threads)

    def _read(self, const uint32_t[::1] labels, const double[:, ::1] y, const double[::1] w, bint sort_targets,
              int n_threads):
        cdef PresortedTable *table = &self.table
        cdef Py_ssize_t p = table.n_columns, k
        cdef const uint32_t *labels_at = NULL
        cdef uint32_t *block = <uint32_t *> take((p + sort_targets) * table.n * sizeof(uint32_t))
        cdef uint16_t **codes = <uint16_t **> calloc(p, sizeof(uint16_t *))
        cdef double **distinct = <double **> calloc(p, sizeof(double *))
        cdef Py_ssize_t max_coded_values = 0 if sort_targets else MAX_CODED_VALUES
        if labels is not None:
            labels_at = &labels[0]
        try:
            if block == NULL or codes == NULL or distinct == NULL:
                raise_for_status(NO_MEMORY)
            read_all(table, labels_at, max_coded_values, n_threads, block, codes, distinct)
            gather_bins(table, codes, distinct)
            if sort_targets:
                order_targets(y, block + p * table.n)
            self._make_root(labels, y, w, sort_targets, block, codes)
            block = NULL                    # the root has it now
        finally:
            for k in range(p):
                if codes != NULL:
                    free(codes[k])
                if distinct != NULL:
                    free(distinct[k])
            give_back(block)
            free(codes)
            free(distinct)

    cdef int _make_root(self, const uint32_t[::1] labels, const double[:, ::1] y, const double[::1] w,
                        bint sort_targets, uint32_t *block, uint16_t **codes) except -1:
        """The arena of all rows, which takes the block of orders over."""
        cdef PresortedTable *table = &self.table
        cdef Py_ssize_t n = table.n, n_orders = table.n_ordered + sort_targets, i, k
        cdef bint own_rows = table.n_coded > 0 or table.some_missing or n_orders == 0
        cdef Py_ssize_t n_outputs = 0 if y is None else y.shape[1]
        cdef SampleArena *root = new_arena(n, n_orders, False, own_rows, table.n_coded * (2 if table.wide else 1),
                                           n_outputs, w is not None)
        if root == NULL:
            raise_for_status(NO_MEMORY)
        self.root = root
        for k in range(table.n_ordered):
            root.order[k] = block + table.ordered[k] * n
        if sort_targets:
            root.order[table.n_ordered] = block + table.n_columns * n
        if not own_rows:
            root.rows = root.order[0]
        for i in range(n):
            root.origin[i] = <uint32_t> i
            if own_rows:
                root.rows[i] = <uint32_t> i | (labels[i] << table.shift if labels is not None else 0)
        if table.wide:
            spread_codes(table, codes, <uint16_t *> root.codes)
        else:
            spread_codes(table, codes, <uint8_t *> root.codes)
        if y is not None:
            memcpy(root.y, &y[0, 0], n * n_outputs * sizeof(double))
        if w is not None:
            memcpy(root.w, &w[0], n * sizeof(double))
        root.block = block
        return 0

    def __dealloc__(self):
        cdef PresortedTable *table = &self.table
        free_arena(self.root)
        free(table.place)
        free(table.ordered)
        free(table.coded)
        free(table.n_levels)
        free(table.n_bins)
        free(table.bin_start)
        free(table.bin_value)
        free(table.missing)
        free(table.tied)


cdef int order_targets(const double[:, ::1] y, uint32_t *entries) except -1:
    """Rows in ascending order of the one target."""
    cdef Py_ssize_t n = y.shape[0], i
    cdef uint64_t *keys = <uint64_t *> malloc(n * sizeof(uint64_t))
    cdef uint64_t *other_keys = <uint64_t *> malloc(n * sizeof(uint64_t))
    cdef uint32_t *other_entries = <uint32_t *> malloc(n * sizeof(uint32_t))
    try:
        if keys == NULL or other_keys == NULL or other_entries == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(n):
            set_key(y[i, 0], keys + i)
            entries[i] = <uint32_t> i
        sort_entries(keys, other_keys, entries, other_entries, n, n)
    finally:
        free(keys)
        free(other_keys)
        free(other_entries)
    return 0
