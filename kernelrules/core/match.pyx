"""Which rows pass the tests of rules: one row at a time, or as bits, a word of 64 rows at a time.

    a test of column j passes  iff  low < x_j <= high, or its level has its flag set; for a missing x_j iff `missing`

Rows hold finite numbers, and NaN for missing ones. Invariant: a bit, a count and a rule's number depend on the row
alone, so any number of threads gives the same.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, isnan
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.bits cimport WORD, kr_lowest, n_bits, rows_of_word
from kernelrules.core.finite cimport all_finite
from kernelrules.core.machine cimport simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.simd cimport pick, transpose
from kernelrules.core.status cimport NO_MEMORY
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef extern from "fetch.h" nogil:
    enum:
        KR_LINE
    void kr_fetch_lines(const char *rows, Py_ssize_t n_bytes) noexcept
    void kr_fetch_rows(const char *rows, Py_ssize_t n_rows, Py_ssize_t row_step) noexcept

cdef extern from "words.h" nogil:
    uint64_t kr_word_d(int level, const double *values, double low, double high, int missing) noexcept
    uint64_t kr_word_f(int level, const float *values, float low, float high, int missing) noexcept
    float kr_float_below(double x) noexcept

cdef enum:
    STRIDE = 72         # from one column of a task to the next: powers of two lead all to the same places in caches
    FEW_USED = 6        # of so many columns one that is tested: rows are turned as they are
    TASKS = 8           # that a thread takes at a time
    CHUNK = 256         # words that are combined at a time
    MOST_FETCHED = 1024     # bytes of a row, of longer ones most would come for nothing
    FEW_ROWS = 6        # of a group, that are taken one by one
    RULES = 256         # that are counted between two looks at signals


cdef class Tests:
    """Distinct tests of rules: a column, an interval or flags of levels from level_start on (-1 for numbers), and
    whether a missing value passes. `flags` has, for each test of levels, one of unseen levels and one of each level."""

    def __cinit__(self):
        self.tests = NULL

    def __dealloc__(self):
        free(self.tests)

    def __init__(self, const int64_t[::1] column, const double[::1] low, const double[::1] high,
                 const unsigned char[::1] missing, const int64_t[::1] level_start, const unsigned char[::1] flags,
                 const int64_t[::1] n_levels):
        cdef Py_ssize_t i
        cdef Test *test
        self.n, self.n_columns, self.kept = column.shape[0], n_levels.shape[0], flags
        if not low.shape[0] == high.shape[0] == missing.shape[0] == level_start.shape[0] == self.n:
            raise ValueError("the tests' arrays differ in length")
        self.tests = <Test *> malloc((self.n + 1) * sizeof(Test))
        if self.tests == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(self.n):
            test = &self.tests[i]
            if not 0 <= column[i] < self.n_columns:
                raise ValueError(f"a rule tests column {column[i]}, but there are {self.n_columns}")
            test.column, test.missing, test.low, test.high = column[i], missing[i] != 0, low[i], high[i]
            test.low_single, test.high_single = kr_float_below(low[i]), kr_float_below(high[i])
            test.levels, test.n_levels = NULL, n_levels[column[i]]
            if level_start[i] >= 0:
                if level_start[i] + test.n_levels + 1 > flags.shape[0]:
                    raise ValueError("a rule's levels lie outside the flags")
                test.levels = &flags[level_start[i]]


cdef bint passes(const Test *test, double value) noexcept nogil:
    if isnan(value):
        return test.missing
    if test.levels == NULL:
        return test.low < value <= test.high
    return test.levels[<Py_ssize_t> value + 1 if 0 <= value < test.n_levels else 0]


cdef inline double entry(const char *data, Py_ssize_t i, Py_ssize_t row_step, Py_ssize_t column_step,
                         int64_t column, const real_t *example) noexcept nogil:
    """A number of the rows; `example` only names their type."""
    return <double> (<const real_t *> (data + i * row_step + column * column_step))[0]


# ---- rows one by one --------------------------------------------------------------------------------------------


cdef struct Groups:         # borrowed: lists of rules, one for each group of rows
    const Test *tests
    const int64_t *group_start
    const int64_t *rule
    const int64_t *test_start
    const int64_t *ids
    int64_t otherwise
    const int64_t *order                # rows by group, n_sorted of them
    const int64_t *group_end
    const int64_t *task_group
    const int64_t *task_first
    Py_ssize_t n_sorted
    const char *data
    Py_ssize_t row_step, column_step
    Py_ssize_t fetched                  # bytes of a row, fetched before its turn
    int level


cdef int64_t first_rule(const Groups *lists, Py_ssize_t group, Py_ssize_t i, const real_t *example) noexcept nogil:
    cdef Py_ssize_t e, k
    cdef const Test *test
    for e in range(lists.group_start[group], lists.group_start[group + 1]):
        for k in range(lists.test_start[e], lists.test_start[e + 1]):
            test = &lists.tests[lists.ids[k]]
            if not passes(test, entry(lists.data, i, lists.row_step, lists.column_step, test.column, example)):
                break
        else:
            return lists.rule[e]
    return lists.otherwise


# ---- rows as bits -----------------------------------------------------------------------------------------------


cdef struct Source:         # rows as they lie, and the columns of them that are laid side by side
    const char *data
    Py_ssize_t n, n_columns, row_step, column_step
    const int64_t *columns
    Py_ssize_t n_used
    bint whole              # all columns, which are those of rows without gaps
    int *odd                # set where rows hold a number that is not finite; NULL: nobody asks
    int level


cdef void gather(const Source *rows, Py_ssize_t first, real_t *values) noexcept nogil:
    """The columns that are tested, one after the other, of WORD rows; past the last one NaN."""
    cdef Py_ssize_t i, j, n_rows = min(<Py_ssize_t> WORD, rows.n - first)
    if rows.odd != NULL and not all_finite(<const real_t *> (rows.data + first * rows.row_step),
                                           n_rows * rows.n_columns):
        rows.odd[0] = 1
    for i in range(n_rows):
        if not rows.whole:
            for j in range(rows.n_used):
                values[j * STRIDE + i] = (<const real_t *> (rows.data + (first + i) * rows.row_step
                                                            + rows.columns[j] * rows.column_step))[0]
    if rows.whole:
        transpose(pick(rows.level, values), <const real_t *> (rows.data + first * rows.row_step),
                  rows.row_step // <Py_ssize_t> sizeof(real_t), n_rows, rows.n_columns, values, STRIDE)
    for i in range(n_rows, WORD):
        for j in range(rows.n_used):
            values[j * STRIDE + i] = <real_t> NAN


cdef uint64_t word_of(const Test *test, const real_t *values, int level) noexcept nogil:
    """Which of 64 values pass."""
    cdef uint64_t word = 0
    cdef int i
    if test.levels == NULL:
        if real_t is double:
            return kr_word_d(level, values, test.low, test.high, test.missing)
        else:
            return kr_word_f(level, values, test.low_single, test.high_single, test.missing)
    for i in range(WORD):
        word |= <uint64_t> passes(test, values[i]) << i
    return word


# ---- groups of rows, a list each ----------------------------------------------------------------------------------


cdef struct Desk:           # of a thread: what is marked with the number of the task at hand has been made for it
    double *values          # by column, STRIDE apart, of either type
    uint64_t *words         # by test
    int64_t *column_mark
    int64_t *test_mark


cdef struct Task:           # up to 64 rows of a group
    int64_t group, mark
    const int64_t *rows
    const int64_t *coming   # up to 64 rows of the tasks to come, fetched one after another: these are left
    Py_ssize_t n_rows, n_coming


cdef Task task_of(const Groups *lists, Py_ssize_t number) noexcept nogil:
    cdef Task task
    cdef Py_ssize_t first = lists.task_first[number]
    task.group, task.mark, task.rows = lists.task_group[number], number + 1, lists.order + first
    task.n_rows = min(<Py_ssize_t> WORD, lists.group_end[task.group] - first)
    task.coming = task.rows + task.n_rows
    task.n_coming = min(<Py_ssize_t> WORD, lists.n_sorted - first - task.n_rows)
    return task


cdef inline void fetch_one(const Groups *lists, Task *task) noexcept nogil:
    """The next of the coming rows, if there is one."""
    if task.n_coming > 0:
        kr_fetch_lines(lists.data + task.coming[0] * lists.row_step, lists.fetched)
        task.coming, task.n_coming = task.coming + 1, task.n_coming - 1


cdef uint64_t group_word(const Groups *lists, const Desk *desk, Task *task, int64_t t,
                         const real_t *example) noexcept nogil:
    """Which rows pass test t: found when it is first asked for, as are the values of its column."""
    cdef int64_t j = lists.tests[t].column
    cdef real_t *values = <real_t *> desk.values + j * STRIDE
    cdef Py_ssize_t i
    if desk.test_mark[t] != task.mark:
        desk.test_mark[t] = task.mark
        if desk.column_mark[j] != task.mark:
            desk.column_mark[j] = task.mark
            for i in range(task.n_rows):
                values[i] = (<const real_t *> (lists.data + task.rows[i] * lists.row_step
                                               + j * lists.column_step))[0]
        desk.words[t] = word_of(&lists.tests[t], <const real_t *> values, lists.level)
        fetch_one(lists, task)
    return desk.words[t]


cdef void first_of_group(const Groups *lists, const Desk *desk, Py_ssize_t number, int64_t *out,
                         const real_t *example) noexcept nogil:
    """The answers of the rows of a task: together, unless they are few. Those that come next are fetched on the way."""
    cdef Task task = task_of(lists, number)
    cdef uint64_t waiting = rows_of_word(0, task.n_rows), held
    cdef Py_ssize_t e = lists.group_start[task.group], k, i
    if task.n_rows < FEW_ROWS:
        for i in range(task.n_rows):
            out[task.rows[i]] = first_rule(lists, task.group, task.rows[i], example)
        waiting = 0
    while waiting and e < lists.group_start[task.group + 1]:
        held = waiting
        for k in range(lists.test_start[e], lists.test_start[e + 1]):
            held &= group_word(lists, desk, &task, lists.ids[k], example)
            if held == 0:
                break
        waiting &= ~held
        while held:
            out[task.rows[kr_lowest(held)]] = lists.rule[e]
            held &= held - 1
        e += 1
    while waiting:
        out[task.rows[kr_lowest(waiting)]] = lists.otherwise
        waiting &= waiting - 1
    while task.n_coming > 0:
        fetch_one(lists, &task)


cdef int64_t[::1] numbers(Py_ssize_t n):
    return memoryview(bytearray((n + 1) * sizeof(int64_t))).cast("q")


def first_rules(Tests tests, const int64_t[::1] group_start, const int64_t[::1] rule, const int64_t[::1] test_start,
                const int64_t[::1] ids, Py_ssize_t otherwise, const real_t[:, :] x, int64_t[::1] out, int n_threads,
                tick=None):
    """Where out[i] is -1 - g, make it the first rule of group g that holds for row i, or `otherwise`.

    Group g has the entries group_start[g] to group_start[g + 1] - 1; entry e is rule[e] with the tests
    ids[test_start[e]] to ids[test_start[e + 1] - 1]. Rows are sorted by group, and those of a group taken 64 at a time.
    """
    cdef Py_ssize_t n = x.shape[0], n_groups = group_start.shape[0] - 1, first = 0, last, step = 16 * n_threads, i, g
    cdef Py_ssize_t n_tasks = 0, size
    cdef int64_t[::1] place, order, task_group, task_first
    cdef Groups lists
    cdef char *memory
    cdef Desk *desks
    if out.shape[0] != n or x.shape[1] != tests.n_columns:
        raise ValueError("the shapes of the rows, the tests and the answers do not agree")
    if n == 0:
        return
    place, order = numbers(n_groups + 1), numbers(n)
    for i in range(n):
        if out[i] < 0:
            place[-out[i]] += 1                 # of group g, at g + 1
    for g in range(n_groups):
        n_tasks += (place[g + 1] + WORD - 1) // WORD
        place[g + 1] += place[g]
    task_group, task_first, lists.n_sorted = numbers(n_tasks), numbers(n_tasks), place[n_groups]
    n_tasks = 0
    for g in range(n_groups):
        for i in range(place[g], place[g + 1], WORD):
            task_group[n_tasks], task_first[n_tasks] = g, i
            n_tasks += 1
    for i in range(n):
        if out[i] < 0:
            order[place[-1 - out[i]]] = i
            place[-1 - out[i]] += 1             # now the end of group g
    lists.order, lists.group_end = &order[0], &place[0]
    lists.task_group, lists.task_first = &task_group[0], &task_first[0]
    lists.tests, lists.group_start, lists.rule, lists.ids = tests.tests, &group_start[0], &rule[0], &ids[0]
    lists.test_start, lists.otherwise, lists.data = &test_start[0], otherwise, <const char *> &x[0, 0]
    lists.row_step, lists.column_step, lists.level = x.strides[0], x.strides[1], simd_level()
    lists.fetched = tests.n_columns * sizeof(real_t) if x.strides[1] == sizeof(real_t) else 0
    lists.fetched = lists.fetched if lists.fetched <= MOST_FETCHED else 0
    size = tests.n_columns * (STRIDE + 1) + 2 * tests.n
    desks, memory = <Desk *> malloc(n_threads * sizeof(Desk)), <char *> calloc(n_threads * size + 1, sizeof(double))
    try:
        if desks == NULL or memory == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(n_threads):
            desks[i].values = <double *> memory + i * size
            desks[i].column_mark = <int64_t *> (desks[i].values + tests.n_columns * STRIDE)
            desks[i].test_mark = desks[i].column_mark + tests.n_columns
            desks[i].words = <uint64_t *> (desks[i].test_mark + tests.n)
        while first < n_tasks:
            last = min(first + step, n_tasks)
            started = perf_counter()
            for i in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=4, nogil=True):
                first_of_group(&lists, desks + threadid(), i, &out[0], &x[0, 0])
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(n if first == n_tasks else task_first[first], n)
    finally:
        free(desks)
        free(memory)


# ---- one list for all rows ----------------------------------------------------------------------------------------


cdef class Used:
    """The columns that chosen tests are about, and for each of these tests the place of its column among them; all
    columns in their order where that is little more work, as rows are turned into columns faster than picked from."""

    cdef int64_t[::1] place, columns
    cdef Source rows


cdef int find_used(Used used, Tests tests, const int64_t[::1] chosen, const real_t[:, :] x) except -1:
    cdef Source *rows = &used.rows
    cdef Py_ssize_t e, n = chosen.shape[0], itemsize = sizeof(real_t)
    used.place = memoryview(bytearray((n + 1) * sizeof(int64_t))).cast("q")
    used.columns = memoryview(bytearray((n + 1) * sizeof(int64_t))).cast("q")
    rows.data, rows.n, rows.n_columns = <const char *> &x[0, 0], x.shape[0], x.shape[1]
    rows.row_step, rows.column_step, rows.level, rows.odd = x.strides[0], x.strides[1], simd_level(), NULL
    places = {}
    for e in range(n):
        if not 0 <= chosen[e] < tests.n:
            raise ValueError(f"there is no test {chosen[e]}")
        used.place[e] = places.setdefault(tests.tests[chosen[e]].column, len(places))
        used.columns[used.place[e]] = tests.tests[chosen[e]].column
    rows.columns, rows.n_used = &used.columns[0], len(places)
    rows.whole = (x.strides[1] == itemsize and x.strides[0] >= itemsize * x.shape[1]
                  and x.strides[0] % itemsize == 0 and FEW_USED * rows.n_used >= x.shape[1])
    if rows.whole:
        rows.n_used = x.shape[1]
        for e in range(n):
            used.place[e] = tests.tests[chosen[e]].column
    return 0


cdef void fill_word(const Test *tests, const int64_t *chosen, Py_ssize_t n_chosen, const int64_t *place,
                    const real_t *values, uint64_t known, uint64_t *masks, Py_ssize_t n_words,
                    int level) noexcept nogil:
    """One word of the chosen tests; place[e] is the place of a test's column among the values, `known` has the rows."""
    cdef Py_ssize_t e
    for e in range(n_chosen):
        masks[chosen[e] * n_words] = word_of(&tests[chosen[e]], values + place[e] * STRIDE, level) & known


def fill_masks(Tests tests, const int64_t[::1] chosen, const real_t[:, :] x, uint64_t[:, ::1] masks, int n_threads,
               tick=None):
    """masks[t, i // 64], bit i % 64 = whether row i passes test t, for the chosen t; bits past the last row are 0."""
    cdef Py_ssize_t n = x.shape[0], n_words = masks.shape[1], word, first = 0, last, step = 128 * n_threads
    cdef Py_ssize_t n_chosen = chosen.shape[0], share
    cdef Used used = Used()
    cdef real_t *values
    if masks.shape[0] != tests.n or n_words != (n + WORD - 1) // WORD or x.shape[1] != tests.n_columns:
        raise ValueError("the shapes of the rows, the tests and the masks do not agree")
    if n == 0 or n_chosen == 0:
        return
    find_used(used, tests, chosen, x)
    share = used.rows.n_used * STRIDE
    values = <real_t *> malloc(n_threads * share * sizeof(real_t))
    if values == NULL:
        raise_for_status(NO_MEMORY)
    try:
        while first < n_words:
            last = min(first + step, n_words)
            started = perf_counter()
            for word in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=TASKS, nogil=True):
                kr_fetch_rows(used.rows.data + (word * WORD + WORD) * used.rows.row_step, WORD, used.rows.row_step)
                gather(&used.rows, word * WORD, values + threadid() * share)
                fill_word(tests.tests, &chosen[0], n_chosen, &used.place[0], values + threadid() * share,
                          rows_of_word(word, n), &masks[0, word], n_words, used.rows.level)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(min(first * WORD, n), n)
    finally:
        free(values)


cdef struct RuleTests:      # borrowed: rule r has the tests ids[start[r]] to ids[start[r + 1] - 1]
    const Test *tests
    const Source *rows
    const int64_t *place                # of a test's column among those that are used
    const int64_t *start
    const int64_t *ids
    const int64_t *answers              # of each rule, and of rows for which none holds
    Py_ssize_t n_tests, n_rules
    Py_ssize_t fetched                  # bytes of the next word's rows, with each test that is made


cdef Py_ssize_t desk_size(const RuleTests *rules) noexcept nogil:
    """Bytes that a thread writes on: values by column, a word a test, and which tests have theirs."""
    return (rules.rows.n_used * STRIDE + rules.n_tests) * 8 + (rules.n_tests + 63) // 64 * 64


cdef void first_of_word(const RuleTests *rules, char *desk, uint64_t waiting, const char *coming, int64_t *out,
                        const real_t *example) noexcept nogil:
    """The answer of the first rule that holds for each of the waiting rows, whose values are on the desk. A test is
    made when the first rule asks for it that some row still needs; the `coming` rows are fetched meanwhile."""
    cdef const real_t *values = <const real_t *> desk
    cdef uint64_t *words = <uint64_t *> (<double *> desk + rules.rows.n_used * STRIDE)
    cdef unsigned char *made = <unsigned char *> (words + rules.n_tests)
    cdef uint64_t held
    cdef Py_ssize_t r, k, t
    memset(made, 0, rules.n_tests)
    for r in range(rules.n_rules + 1):
        held = waiting
        if r < rules.n_rules:
            for k in range(rules.start[r], rules.start[r + 1]):
                t = rules.ids[k]
                if not made[t]:
                    made[t] = 1
                    kr_fetch_lines(coming, rules.fetched)
                    coming += rules.fetched
                    words[t] = word_of(&rules.tests[t], values + rules.place[t] * STRIDE, rules.rows.level)
                held &= words[t]
                if held == 0:
                    break
        waiting &= ~held
        while held:
            out[kr_lowest(held)] = rules.answers[r]
            held &= held - 1
        if waiting == 0:
            return


def first_rules_by_words(Tests tests, const int64_t[::1] start, const int64_t[::1] ids, const real_t[:, :] x,
                         const int64_t[::1] answers, int64_t[::1] out, bint looked_at, int n_threads, tick=None):
    """out[i] = answers[the first rule that holds for row i, or the number of rules]: eight bytes each. Rule r has the
    tests ids[start[r]] to ids[start[r + 1] - 1]. Takes 64 rows at a time through the list, as far as one needs it.

    Rows without gaps need not be `looked_at`: that is done here, while they are in a cache. False where not all numbers
    are finite; `out` is then worth nothing.
    """
    cdef Py_ssize_t n = x.shape[0], word, first = 0, last, step = 128 * n_threads, i, size
    cdef Py_ssize_t n_words = (n + WORD - 1) // WORD
    cdef int64_t[::1] all_tests = memoryview(bytearray((tests.n + 1) * sizeof(int64_t))).cast("q")
    cdef RuleTests rules
    cdef Used used = Used()
    cdef char *desks
    cdef char *desk
    cdef int odd = 0
    if out.shape[0] != n or x.shape[1] != tests.n_columns or start.shape[0] < 1 or start[0] != 0 or (
            answers.shape[0] != start.shape[0]):
        raise ValueError("the shapes of the rows, the tests and the answers do not agree")
    for i in range(start.shape[0] - 1):
        if not start[i] <= start[i + 1] <= ids.shape[0]:
            raise ValueError(f"rule {i} has tests outside the list")
    for i in range(ids.shape[0]):
        if not 0 <= ids[i] < tests.n:
            raise ValueError(f"there is no test {ids[i]}")
    if n == 0:
        return True
    if not looked_at and not (x.strides[1] == sizeof(real_t) and x.strides[0] == x.shape[1] * x.strides[1]):
        raise ValueError("rows with gaps must have been looked at")
    for i in range(tests.n):
        all_tests[i] = i
    find_used(used, tests, all_tests[:tests.n], x)
    rules.tests, rules.n_tests, rules.n_rules, rules.rows = tests.tests, tests.n, start.shape[0] - 1, &used.rows
    rules.place, rules.start, rules.ids = &used.place[0], &start[0], &ids[0] if ids.shape[0] > 0 else NULL
    rules.answers, used.rows.odd = &answers[0], NULL if looked_at else &odd
    if 2 * KR_LINE < used.rows.row_step <= MOST_FETCHED:    # the processor finds shorter rows by itself
        rules.fetched = (used.rows.row_step * WORD // (rules.n_tests + 1) // KR_LINE + 1) * KR_LINE
    else:
        rules.fetched = 0
    size = desk_size(&rules)
    desks = <char *> malloc(n_threads * size + 1)
    if desks == NULL:
        raise_for_status(NO_MEMORY)
    try:
        while first < n_words:
            last = min(first + step, n_words)
            started = perf_counter()
            for word in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=TASKS, nogil=True):
                desk = desks + threadid() * size
                if odd:                 # what is found from here on is worth nothing
                    continue
                gather(&used.rows, word * WORD, <real_t *> desk)
                first_of_word(&rules, desk, rows_of_word(word, n),
                              used.rows.data + (word * WORD + WORD) * used.rows.row_step, &out[word * WORD],
                              <const real_t *> desk)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if odd:
                break                   # not done: they will be read, and all begins anew
            if tick is not None:
                tick(min(first * WORD, n), n)
    finally:
        free(desks)
    return odd == 0


def fill_thresholds(Tests tests, const int64_t[::1] chosen, const int64_t[::1] below, const int64_t[::1] order,
                    Py_ssize_t n_known, uint64_t[:, ::1] masks):
    """The same for tests of one column with one limit each, in ascending order of the limits.

    `order` has the rows by their values in this column, the n_known that have one first; below[e] is how many of them
    are at most the limit of test chosen[e]. From one limit to the next only the rows between them change.
    """
    cdef Py_ssize_t n = order.shape[0], n_words = masks.shape[1], e, w, at = 0
    cdef uint64_t *lower
    cdef uint64_t *known
    cdef uint64_t *mask
    cdef const Test *test
    if n_words != (n + WORD - 1) // WORD or below.shape[0] != chosen.shape[0] or masks.shape[0] != tests.n:
        raise ValueError("the shapes of the rows, the tests and the masks do not agree")
    if n == 0:
        return
    lower = <uint64_t *> calloc(2 * n_words, sizeof(uint64_t))
    if lower == NULL:
        raise_for_status(NO_MEMORY)
    known = lower + n_words
    with nogil:
        for e in range(n_known):
            known[order[e] // WORD] |= <uint64_t> 1 << (order[e] % WORD)
        for e in range(chosen.shape[0]):
            while at < below[e]:
                lower[order[at] // WORD] |= <uint64_t> 1 << (order[at] % WORD)
                at += 1
            test, mask = &tests.tests[chosen[e]], &masks[chosen[e], 0]
            for w in range(n_words):
                mask[w] = lower[w] if test.high < INFINITY else known[w] & ~lower[w]
            if test.missing:
                for w in range(n_words):
                    mask[w] |= ~known[w]
                mask[n_words - 1] &= rows_of_word(n_words - 1, n)
    free(lower)


cdef int64_t rows_of_rule(const uint64_t *masks, Py_ssize_t n_words, const int64_t *ids, Py_ssize_t n_ids,
                          Py_ssize_t n) noexcept nogil:
    """Rows that pass all of the tests, CHUNK words at a time."""
    cdef uint64_t held[CHUNK]
    cdef Py_ssize_t first = 0, here, w, k
    cdef const uint64_t *mask
    cdef int64_t found = 0
    if n_ids == 0:
        return n
    while first < n_words:
        here = min(<Py_ssize_t> CHUNK, n_words - first)
        memcpy(held, masks + ids[0] * n_words + first, here * sizeof(uint64_t))
        for k in range(1, n_ids):
            mask = masks + ids[k] * n_words + first
            for w in range(here):
                held[w] &= mask[w]
        for w in range(here):
            found += n_bits(held[w])
        first += here
    return found


def count_rows(const uint64_t[:, ::1] masks, const int64_t[::1] start, const int64_t[::1] ids, Py_ssize_t n,
               int64_t[::1] counts):
    """counts[r] += rows, of n, that pass all tests ids[start[r]] to ids[start[r + 1] - 1]."""
    cdef Py_ssize_t n_words = masks.shape[1], r, first = 0, n_rules = counts.shape[0]
    cdef const uint64_t *words = NULL
    cdef const int64_t *listed = NULL
    if masks.shape[0] > 0 and n_words > 0 and ids.shape[0] > 0:
        words, listed = &masks[0, 0], &ids[0]
    if start.shape[0] != n_rules + 1 or n_words != (n + WORD - 1) // WORD:
        raise ValueError("the shapes of the rules, the masks and the counts do not agree")
    while first < n_rules:
        with nogil:
            for r in range(first, min(first + RULES, n_rules)):
                counts[r] += rows_of_rule(words, n_words, listed + start[r], start[r + 1] - start[r], n)
        first += RULES
        PyErr_CheckSignals()
