"""Which rows satisfy the conditions of rules: one row at a time, or as bits, a word of 64 rows at a time.

    x satisfies a condition on column j  iff  low < x_j <= high, or the flag of its level is set, or x_j is missing
                                              and the condition's `missing` is set

Rows hold finite numbers, and NaN for missing ones.

Invariant: bits, counts and rule numbers depend on the row alone, so that any number of threads gives the same result.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport NAN, isnan
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.base.bits cimport WORD, kr_lowest, rows_of_word
from kernelrules.core.simd.finite cimport all_finite
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.simd.dispatch cimport simd_table, transpose
from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.base.team cimport gather_status, run_team, status_so_far
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef extern from "base/prefetch.h" nogil:
    enum:
        KR_LINE
    void kr_fetch_lines(const char *rows, Py_ssize_t n_bytes) noexcept
    void kr_fetch_rows(const char *rows, Py_ssize_t n_rows, Py_ssize_t row_step) noexcept

cdef extern from "rules/threshold_masks.h" nogil:
    uint64_t kr_threshold_mask_d(int level, const double *values, double low, double high, int missing) noexcept
    uint64_t kr_threshold_mask_f(int level, const float *values, float low, float high, int missing) noexcept
    float kr_float_below(double x) noexcept

cdef enum:
    COLUMN_STRIDE = 72          # distance of columns in a buffer: a power of two would map all to the same cache sets
    TRANSPOSE_MAX_RATIO = 6     # whole rows are transposed if at least one column in six is used
    WORDS_PER_CLAIM = 8         # words that a thread takes at a time
    PREFETCH_MAX_BYTES = 1024   # longer rows are not prefetched, because most of their bytes are not used
    WORD_MIN_ROWS = 6           # fewer rows of a group are matched one by one


cdef class ConditionTable:
    """The distinct conditions of rules.

    Parameters
    ----------
    column, low, high, missing : ndarray (n,)
        The column, the limits of low < x <= high, and whether a missing value satisfies the condition.
    level_start : ndarray (n,)
        First flag of a condition on levels: one for unseen levels, then one per level. -1 for numbers.
    flags : ndarray
        The flags.
    n_levels : ndarray (n_columns,)
        Number of levels of each column; 0 for numbers.
    """

    def __cinit__(self):
        self.conditions = NULL

    def __dealloc__(self):
        free(self.conditions)

    def __init__(self, const int64_t[::1] column, const double[::1] low, const double[::1] high,
                 const unsigned char[::1] missing, const int64_t[::1] level_start, const unsigned char[::1] flags,
                 const int64_t[::1] n_levels):
        cdef Py_ssize_t i
        cdef Condition *condition
        self.n, self.n_columns, self.flags = column.shape[0], n_levels.shape[0], flags
        if not low.shape[0] == high.shape[0] == missing.shape[0] == level_start.shape[0] == self.n:
            raise ValueError("the arrays of the conditions differ in length")
        self.conditions = <Condition *> malloc((self.n + 1) * sizeof(Condition))
        if self.conditions == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(self.n):
            condition = &self.conditions[i]
            if not 0 <= column[i] < self.n_columns:
                raise ValueError(f"a rule has a condition on column {column[i]}, but there are {self.n_columns}")
            condition.column, condition.missing = column[i], missing[i] != 0
            condition.low, condition.high = low[i], high[i]
            condition.low_single, condition.high_single = kr_float_below(low[i]), kr_float_below(high[i])
            condition.levels, condition.n_levels = NULL, n_levels[column[i]]
            if level_start[i] >= 0:
                if level_start[i] + condition.n_levels + 1 > flags.shape[0]:
                    raise ValueError("a rule's levels lie outside the flags")
                condition.levels = &flags[level_start[i]]


cdef bint satisfies(const Condition *condition, double value) noexcept nogil:
    if isnan(value):
        return condition.missing
    if condition.levels == NULL:
        return condition.low < value <= condition.high
    return condition.levels[<Py_ssize_t> value + 1 if 0 <= value < condition.n_levels else 0]


# ---- rows one by one --------------------------------------------------------------------------------------------


cdef struct WordCache:  # buffers of a thread; an entry is valid if its mark is the number of the current task
    double *values      # values by column, COLUMN_STRIDE apart, in the type of the rows
    uint64_t *words     # rows that satisfy each condition
    int64_t *column_mark
    int64_t *condition_mark


cdef struct GroupedRules:       # a list of rules per group of rows; pointers are borrowed
    const Condition *conditions
    const int64_t *group_start
    const int64_t *rule
    const int64_t *condition_start
    const int64_t *ids
    int64_t default_rule
    const int64_t *order        # rows by group, n_sorted of them
    const int64_t *group_end
    const int64_t *task_group
    const int64_t *task_first
    Py_ssize_t n_sorted
    const char *data
    Py_ssize_t row_step, column_step
    bint is_float32             # whether rows are float32
    Py_ssize_t prefetch_bytes   # bytes of a row to prefetch
    int simd
    WordCache *caches           # one per thread
    int64_t *out                # one per row


cdef int64_t first_rule(const GroupedRules *rules, Py_ssize_t group, const real_t *row) noexcept nogil:
    """Return the first rule of a group that holds for a row."""
    cdef Py_ssize_t e, k
    cdef double value
    cdef const Condition *condition
    for e in range(rules.group_start[group], rules.group_start[group + 1]):
        for k in range(rules.condition_start[e], rules.condition_start[e + 1]):
            condition = &rules.conditions[rules.ids[k]]
            value = (<const real_t *> (<const char *> row + condition.column * rules.column_step))[0]
            if not satisfies(condition, value):
                break
        else:
            return rules.rule[e]
    return rules.default_rule


# ---- rows as bits -----------------------------------------------------------------------------------------------


cdef struct GatherPlan:     # rows in memory, and which of their columns are gathered
    const char *data
    Py_ssize_t n, n_columns, row_step, column_step
    const int64_t *columns
    Py_ssize_t n_used
    bint transposes         # whether all columns are gathered, by a transposition of contiguous rows
    int *not_finite         # atomic: set if a value is not finite; NULL if that is not checked
    int simd


cdef void gather(const GatherPlan *rows, Py_ssize_t first, real_t *values) noexcept nogil:
    """Gather the used columns of WORD rows, one after the other; entries past the last row are NaN."""
    cdef Py_ssize_t i, j, n_rows = min(<Py_ssize_t> WORD, rows.n - first)
    if rows.not_finite != NULL and not all_finite(<const real_t *> (rows.data + first * rows.row_step),
                                                  n_rows * rows.n_columns):
        gather_status(rows.not_finite, 1)
    for i in range(n_rows):
        if not rows.transposes:
            for j in range(rows.n_used):
                values[j * COLUMN_STRIDE + i] = (<const real_t *> (rows.data + (first + i) * rows.row_step
                                                                   + rows.columns[j] * rows.column_step))[0]
    if rows.transposes:
        transpose(simd_table(rows.simd, real_t is float), <const real_t *> (rows.data + first * rows.row_step),
                  rows.row_step // <Py_ssize_t> sizeof(real_t), n_rows, rows.n_columns, values, COLUMN_STRIDE)
    for i in range(n_rows, WORD):
        for j in range(rows.n_used):
            values[j * COLUMN_STRIDE + i] = <real_t> NAN


cdef uint64_t satisfied_word(const Condition *condition, const real_t *values, int simd) noexcept nogil:
    """Return which of 64 values satisfy a condition."""
    cdef uint64_t word = 0
    cdef int i
    if condition.levels == NULL:
        if real_t is double:
            return kr_threshold_mask_d(simd, values, condition.low, condition.high, condition.missing)
        else:
            return kr_threshold_mask_f(simd, values, condition.low_single, condition.high_single, condition.missing)
    for i in range(WORD):
        word |= <uint64_t> satisfies(condition, values[i]) << i
    return word


# ---- a list of rules per group of rows --------------------------------------------------------------------------


cdef struct GroupTask:          # up to 64 rows of a group
    int64_t group, mark
    const int64_t *rows
    const int64_t *next_rows    # up to 64 rows of the next tasks that are still to be prefetched
    Py_ssize_t n_rows, n_next


cdef GroupTask task_of(const GroupedRules *rules, Py_ssize_t number) noexcept nogil:
    cdef GroupTask task
    cdef Py_ssize_t first = rules.task_first[number]
    task.group, task.mark, task.rows = rules.task_group[number], number + 1, rules.order + first
    task.n_rows = min(<Py_ssize_t> WORD, rules.group_end[task.group] - first)
    task.next_rows = task.rows + task.n_rows
    task.n_next = min(<Py_ssize_t> WORD, rules.n_sorted - first - task.n_rows)
    return task


cdef inline void prefetch_next(const GroupedRules *rules, GroupTask *task) noexcept nogil:
    """Prefetch one of the next rows, if there is one."""
    if task.n_next > 0:
        kr_fetch_lines(rules.data + task.next_rows[0] * rules.row_step, rules.prefetch_bytes)
        task.next_rows, task.n_next = task.next_rows + 1, task.n_next - 1


cdef uint64_t group_word(const GroupedRules *rules, const WordCache *cache, GroupTask *task, int64_t t,
                         real_t *all_values) noexcept nogil:
    """Return which rows satisfy condition t. It and the values of its column are computed when first needed."""
    cdef int64_t j = rules.conditions[t].column
    cdef real_t *values = all_values + j * COLUMN_STRIDE
    cdef Py_ssize_t i
    if cache.condition_mark[t] != task.mark:
        cache.condition_mark[t] = task.mark
        if cache.column_mark[j] != task.mark:
            cache.column_mark[j] = task.mark
            for i in range(task.n_rows):
                values[i] = (<const real_t *> (rules.data + task.rows[i] * rules.row_step
                                               + j * rules.column_step))[0]
        cache.words[t] = satisfied_word(&rules.conditions[t], <const real_t *> values, rules.simd)
        prefetch_next(rules, task)
    return cache.words[t]


cdef void first_of_group(const GroupedRules *rules, const WordCache *cache, Py_ssize_t number,
                         real_t *values) noexcept nogil:
    """Find the rules of a task's rows, together unless they are few; prefetch the next rows meanwhile.

    `values` are those of the thread's buffers.
    """
    cdef GroupTask task = task_of(rules, number)
    cdef int64_t *out = rules.out
    cdef uint64_t waiting = rows_of_word(0, task.n_rows), holding
    cdef Py_ssize_t e = rules.group_start[task.group], k, i
    if task.n_rows < WORD_MIN_ROWS:
        for i in range(task.n_rows):
            out[task.rows[i]] = first_rule(
                rules, task.group, <const real_t *> (rules.data + task.rows[i] * rules.row_step))
        waiting = 0
    while waiting and e < rules.group_start[task.group + 1]:
        holding = waiting
        for k in range(rules.condition_start[e], rules.condition_start[e + 1]):
            holding &= group_word(rules, cache, &task, rules.ids[k], values)
            if holding == 0:
                break
        waiting &= ~holding
        while holding:
            out[task.rows[kr_lowest(holding)]] = rules.rule[e]
            holding &= holding - 1
        e += 1
    while waiting:
        out[task.rows[kr_lowest(waiting)]] = rules.default_rule
        waiting &= waiting - 1
    while task.n_next > 0:
        prefetch_next(rules, &task)


cdef void first_of_groups(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const GroupedRules *rules = <const GroupedRules *> context
    cdef const WordCache *cache = rules.caches + worker
    cdef Py_ssize_t number
    for number in range(first, last):
        if rules.is_float32:
            first_of_group(rules, cache, number, <float *> cache.values)
        else:
            first_of_group(rules, cache, number, <double *> cache.values)


cdef int64_t[::1] zeros(Py_ssize_t n):
    """Return an array of n + 1 zeros."""
    return memoryview(bytearray((n + 1) * sizeof(int64_t))).cast("q")


def first_rules(ConditionTable conditions, const int64_t[::1] group_start, const int64_t[::1] rule,
                const int64_t[::1] condition_start, const int64_t[::1] ids, Py_ssize_t default_rule,
                const real_t[:, :] x, int64_t[::1] out, int n_threads, tick=None):
    """If out[i] is -1 - g, replace it by the first rule of group g that holds for row i, or by `default_rule`.

    Group g has the entries group_start[g] to group_start[g + 1] - 1; entry e is rule[e] with the conditions
    ids[condition_start[e]] to ids[condition_start[e + 1] - 1]. Rows are sorted by group and matched 64 at a time.
    """
    cdef Py_ssize_t n = x.shape[0], n_groups = group_start.shape[0] - 1, first = 0, last, step = 16 * n_threads, i, g
    cdef Py_ssize_t n_tasks = 0, size
    cdef int64_t[::1] group_place, order, task_group, task_first
    cdef GroupedRules rules
    cdef char *memory
    cdef WordCache *caches
    if out.shape[0] != n or x.shape[1] != conditions.n_columns:
        raise ValueError("the shapes of the rows, the conditions and the answers do not agree")
    if n == 0:
        return
    group_place, order = zeros(n_groups + 1), zeros(n)
    for i in range(n):
        if out[i] < 0:
            group_place[-out[i]] += 1                 # of group g, at g + 1
    for g in range(n_groups):
        n_tasks += (group_place[g + 1] + WORD - 1) // WORD
        group_place[g + 1] += group_place[g]
    task_group, task_first, rules.n_sorted = zeros(n_tasks), zeros(n_tasks), group_place[n_groups]
    n_tasks = 0
    for g in range(n_groups):
        for i in range(group_place[g], group_place[g + 1], WORD):
            task_group[n_tasks], task_first[n_tasks] = g, i
            n_tasks += 1
    for i in range(n):
        if out[i] < 0:
            order[group_place[-1 - out[i]]] = i
            group_place[-1 - out[i]] += 1             # now the end of group g
    rules.order, rules.group_end = &order[0], &group_place[0]
    rules.task_group, rules.task_first = &task_group[0], &task_first[0]
    rules.conditions, rules.group_start = conditions.conditions, &group_start[0]
    rules.rule, rules.ids = &rule[0], &ids[0]
    rules.condition_start, rules.default_rule, rules.data = &condition_start[0], default_rule, <const char *> &x[0, 0]
    rules.row_step, rules.column_step, rules.simd = x.strides[0], x.strides[1], simd_level()
    rules.prefetch_bytes = conditions.n_columns * sizeof(real_t) if x.strides[1] == sizeof(real_t) else 0
    rules.prefetch_bytes = rules.prefetch_bytes if rules.prefetch_bytes <= PREFETCH_MAX_BYTES else 0
    rules.is_float32, rules.out = real_t is float, &out[0]
    size = conditions.n_columns * (COLUMN_STRIDE + 1) + 2 * conditions.n
    caches = <WordCache *> malloc(n_threads * sizeof(WordCache))
    memory = <char *> calloc(n_threads * size + 1, sizeof(double))
    try:
        if caches == NULL or memory == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(n_threads):
            caches[i].values = <double *> memory + i * size
            caches[i].column_mark = <int64_t *> (caches[i].values + conditions.n_columns * COLUMN_STRIDE)
            caches[i].condition_mark = caches[i].column_mark + conditions.n_columns
            caches[i].words = <uint64_t *> (caches[i].condition_mark + conditions.n)
        rules.caches = caches
        while first < n_tasks:
            last = min(first + step, n_tasks)
            started = perf_counter()
            with nogil:
                run_team(first, last, 4, n_threads, first_of_groups, &rules)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(n if first == n_tasks else task_first[first], n)
    finally:
        free(caches)
        free(memory)


# ---- one list for all rows --------------------------------------------------------------------------------------


cdef class UsedColumns:
    """The columns of chosen conditions, and for each of these conditions the place of its column among them.

    All columns are used if that is little more work, because transposing rows is faster than picking columns.
    """

    cdef int64_t[::1] column_place, columns
    cdef GatherPlan rows


cdef int find_used_columns(UsedColumns used, ConditionTable conditions, const int64_t[::1] chosen,
                           const real_t[:, :] x) except -1:
    cdef GatherPlan *rows = &used.rows
    cdef Py_ssize_t e, n = chosen.shape[0], itemsize = sizeof(real_t)
    used.column_place, used.columns = zeros(n), zeros(n)
    rows.data, rows.n, rows.n_columns = <const char *> &x[0, 0], x.shape[0], x.shape[1]
    rows.row_step, rows.column_step, rows.simd, rows.not_finite = x.strides[0], x.strides[1], simd_level(), NULL
    places = {}
    for e in range(n):
        if not 0 <= chosen[e] < conditions.n:
            raise ValueError(f"there is no condition {chosen[e]}")
        used.column_place[e] = places.setdefault(conditions.conditions[chosen[e]].column, len(places))
        used.columns[used.column_place[e]] = conditions.conditions[chosen[e]].column
    rows.columns, rows.n_used = &used.columns[0], len(places)
    rows.transposes = (x.strides[1] == itemsize and x.strides[0] >= itemsize * x.shape[1]
                       and x.strides[0] % itemsize == 0 and TRANSPOSE_MAX_RATIO * rows.n_used >= x.shape[1])
    if rows.transposes:
        rows.n_used = x.shape[1]
        for e in range(n):
            used.column_place[e] = conditions.conditions[chosen[e]].column
    return 0


cdef struct MaskFill:
    const Condition *conditions
    const int64_t *chosen
    Py_ssize_t n_chosen
    const GatherPlan *rows
    const int64_t *column_place     # place of a condition's column among the used ones
    bint is_float32                 # whether rows are float32
    uint64_t *masks
    Py_ssize_t n_words
    void *values                    # WORD rows of the used columns, per thread


cdef void fill_word(const MaskFill *task, Py_ssize_t word, real_t *values) noexcept nogil:
    """Fill one word of the masks of the chosen conditions."""
    cdef const GatherPlan *rows = task.rows
    cdef const int64_t *chosen = task.chosen
    cdef uint64_t *masks = task.masks + word
    cdef uint64_t known = rows_of_word(word, rows.n)
    cdef Py_ssize_t e
    kr_fetch_rows(rows.data + (word * WORD + WORD) * rows.row_step, WORD, rows.row_step)
    gather(rows, word * WORD, values)
    for e in range(task.n_chosen):
        masks[chosen[e] * task.n_words] = known & satisfied_word(
            &task.conditions[chosen[e]], <const real_t *> values + task.column_place[e] * COLUMN_STRIDE, rows.simd)


cdef void fill_words(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const MaskFill *task = <const MaskFill *> context
    cdef Py_ssize_t skipped = worker * task.rows.n_used * COLUMN_STRIDE, word
    for word in range(first, last):
        if task.is_float32:
            fill_word(task, word, <float *> task.values + skipped)
        else:
            fill_word(task, word, <double *> task.values + skipped)


def fill_masks(ConditionTable conditions, const int64_t[::1] chosen, const real_t[:, :] x, uint64_t[:, ::1] masks,
               int n_threads, tick=None):
    """Set bit i % 64 of masks[t, i // 64] to whether row i satisfies condition t, for the chosen t.

    Bits past the last row are 0.
    """
    cdef Py_ssize_t n = x.shape[0], n_words = masks.shape[1], first = 0, last, step = 128 * n_threads
    cdef UsedColumns used = UsedColumns()
    cdef MaskFill task
    if masks.shape[0] != conditions.n or n_words != (n + WORD - 1) // WORD or x.shape[1] != conditions.n_columns:
        raise ValueError("the shapes of the rows, the conditions and the masks do not agree")
    if n == 0 or chosen.shape[0] == 0:
        return
    find_used_columns(used, conditions, chosen, x)
    task.conditions, task.chosen, task.n_chosen = conditions.conditions, &chosen[0], chosen.shape[0]
    task.rows, task.column_place, task.is_float32 = &used.rows, &used.column_place[0], real_t is float
    task.masks, task.n_words = &masks[0, 0], n_words
    task.values = malloc(n_threads * used.rows.n_used * COLUMN_STRIDE * sizeof(real_t))
    if task.values == NULL:
        raise_for_status(NO_MEMORY)
    try:
        while first < n_words:
            last = min(first + step, n_words)
            started = perf_counter()
            with nogil:
                run_team(first, last, WORDS_PER_CLAIM, n_threads, fill_words, &task)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(min(first * WORD, n), n)
    finally:
        free(task.values)


cdef struct ListMatch:  # rule r has the conditions ids[start[r]] to ids[start[r + 1] - 1]; pointers are borrowed
    const Condition *conditions
    const GatherPlan *rows
    const int64_t *column_place     # place of a condition's column among the used ones
    const int64_t *start
    const int64_t *ids
    const int64_t *answers          # one per rule, and one for rows for which none holds
    Py_ssize_t n_conditions, n_rules
    Py_ssize_t prefetch_bytes       # bytes of the next word's rows to prefetch with each condition
    bint is_float32                 # whether rows are float32
    char *caches                    # buffers of each thread, cache_bytes apart
    int64_t *out                    # one per row


cdef Py_ssize_t cache_bytes(const ListMatch *rules) noexcept nogil:
    """Return the bytes of a thread's buffers: values by column, a word per condition, and which words are computed."""
    return (rules.rows.n_used * COLUMN_STRIDE + rules.n_conditions) * 8 + (rules.n_conditions + 63) // 64 * 64


cdef void first_of_word(const ListMatch *rules, Py_ssize_t word, real_t *values) noexcept nogil:
    """Write the answer of the first rule that holds for each of a word's rows; `values` are a thread's buffers.

    A condition is evaluated when a rule first needs it for a row without an answer. The rows of the next word are
    prefetched meanwhile.
    """
    cdef uint64_t *words = <uint64_t *> (<double *> <void *> values + rules.rows.n_used * COLUMN_STRIDE)
    cdef unsigned char *computed = <unsigned char *> (words + rules.n_conditions)
    cdef uint64_t waiting = rows_of_word(word, rules.rows.n), holding
    cdef const char *next_rows = rules.rows.data + (word * WORD + WORD) * rules.rows.row_step
    cdef int64_t *out = rules.out + word * WORD
    cdef Py_ssize_t r, k, t
    gather(rules.rows, word * WORD, values)
    memset(computed, 0, rules.n_conditions)
    for r in range(rules.n_rules + 1):
        holding = waiting
        if r < rules.n_rules:
            for k in range(rules.start[r], rules.start[r + 1]):
                t = rules.ids[k]
                if not computed[t]:
                    computed[t] = 1
                    kr_fetch_lines(next_rows, rules.prefetch_bytes)
                    next_rows += rules.prefetch_bytes
                    words[t] = satisfied_word(
                        &rules.conditions[t], <const real_t *> values + rules.column_place[t] * COLUMN_STRIDE,
                        rules.rows.simd)
                holding &= words[t]
                if holding == 0:
                    break
        waiting &= ~holding
        while holding:
            out[kr_lowest(holding)] = rules.answers[r]
            holding &= holding - 1
        if waiting == 0:
            return


cdef void first_of_words(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const ListMatch *rules = <const ListMatch *> context
    cdef char *cache = rules.caches + worker * cache_bytes(rules)
    cdef Py_ssize_t word
    for word in range(first, last):
        if rules.rows.not_finite != NULL and status_so_far(rules.rows.not_finite):
            return                      # the result will be discarded
        if rules.is_float32:
            first_of_word(rules, word, <float *> cache)
        else:
            first_of_word(rules, word, <double *> cache)


def first_rules_by_words(ConditionTable conditions, const int64_t[::1] start, const int64_t[::1] ids,
                         const real_t[:, :] x, const int64_t[::1] answers, int64_t[::1] out, bint known_finite,
                         int n_threads, tick=None):
    """Set out[i] = answers[r], r being the first rule that holds for row i, or the number of rules if none does.

    Rule r has the conditions ids[start[r]] to ids[start[r + 1] - 1]. The list is followed for 64 rows at a time, until
    all of them have an answer. Values of contiguous rows need not be `known_finite`: they are then checked here, while
    they are in the cache. Return False if one is not finite; `out` is then meaningless.
    """
    cdef Py_ssize_t n = x.shape[0], first = 0, last, step = 128 * n_threads, i
    cdef Py_ssize_t n_words = (n + WORD - 1) // WORD
    cdef int64_t[::1] all_conditions = zeros(conditions.n)
    cdef ListMatch rules
    cdef UsedColumns used = UsedColumns()
    cdef int not_finite = 0
    if out.shape[0] != n or x.shape[1] != conditions.n_columns or start.shape[0] < 1 or start[0] != 0 or (
            answers.shape[0] != start.shape[0]):
        raise ValueError("the shapes of the rows, the conditions and the answers do not agree")
    for i in range(start.shape[0] - 1):
        if not start[i] <= start[i + 1] <= ids.shape[0]:
            raise ValueError(f"rule {i} has conditions outside the list")
    for i in range(ids.shape[0]):
        if not 0 <= ids[i] < conditions.n:
            raise ValueError(f"there is no condition {ids[i]}")
    if n == 0:
        return True
    if not known_finite and not (x.strides[1] == sizeof(real_t) and x.strides[0] == x.shape[1] * x.strides[1]):
        raise ValueError("rows that are not contiguous must be known to be finite")
    for i in range(conditions.n):
        all_conditions[i] = i
    find_used_columns(used, conditions, all_conditions[:conditions.n], x)
    rules.conditions, rules.n_conditions = conditions.conditions, conditions.n
    rules.n_rules, rules.rows = start.shape[0] - 1, &used.rows
    rules.column_place, rules.start, rules.ids = &used.column_place[0], &start[0], &ids[0] if ids.shape[0] > 0 else NULL
    rules.answers, used.rows.not_finite = &answers[0], NULL if known_finite else &not_finite
    if 2 * KR_LINE < used.rows.row_step <= PREFETCH_MAX_BYTES:    # the processor prefetches shorter rows by itself
        rules.prefetch_bytes = (used.rows.row_step * WORD // (rules.n_conditions + 1) // KR_LINE + 1) * KR_LINE
    else:
        rules.prefetch_bytes = 0
    rules.is_float32, rules.out = real_t is float, &out[0]
    rules.caches = <char *> malloc(n_threads * cache_bytes(&rules) + 1)
    if rules.caches == NULL:
        raise_for_status(NO_MEMORY)
    try:
        while first < n_words:
            last = min(first + step, n_words)
            started = perf_counter()
            with nogil:
                run_team(first, last, WORDS_PER_CLAIM, n_threads, first_of_words, &rules)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if not_finite:
                break                   # the caller reads the rows again
            if tick is not None:
                tick(min(first * WORD, n), n)
    finally:
        free(rules.caches)
    return not_finite == 0
