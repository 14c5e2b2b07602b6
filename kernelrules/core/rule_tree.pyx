"""A rule list as a tree of splits, for `walk`: which rule is the first to hold is then a matter of a few comparisons.

A node has the rules that may still hold there, each with the tests that the way to the node has not decided. A node is
split where no rule is needed on both sides, most evenly by weight; where there is no such cut, as in ordered lists, by
a bound of its first rule that the fewest rules straddle. The rules of a tree so become a tree of their size again.

Invariant: the first rule that holds for a row is the first that holds among those of its leaf. A leaf is decided once
its first rule has no tests left, or no rule is left; when `ROOM` is used up the rest are left open, and their rules are
tried one by one, for 64 rows at a time (match.pyx).
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.lists cimport more_room
from kernelrules.core.match cimport Test, Tests
from kernelrules.core.status cimport NO_MEMORY

from kernelrules.core.status import raise_for_status

cdef enum:
    ROOM = 200_000          # numbers in the lists of all nodes, and
    ROOM_A_TEST = 64        # so many more for every test of the rules
    OPEN = -1               # answers of leaves: a rule, the number of rules (none holds), or this
    BETWEEN_SIGNALS = 1_000_000     # rules and tests looked at

cdef struct Values:         # of one column, that lead to a node
    double low, high
    bint missing
    const unsigned char *levels

cdef struct Cut:
    int64_t column
    double threshold
    bint missing_left
    const unsigned char *levels         # NULL: x <= threshold goes left; else the levels that do

cdef struct Node:
    int64_t parent, column              # the column that the split above it was on
    Values values
    Py_ssize_t first, n_rules           # in `lists`: a rule, how many tests, the tests; and again
    int64_t left, right, answer
    Cut cut

cdef struct Interval:
    double low, high, weight
    bint missing

cdef struct Block:          # of flags; blocks are chained so that they never move
    Block *before


cdef int by_low(const void *a, const void *b) noexcept nogil:
    cdef double left = (<const Interval *> a).low, right = (<const Interval *> b).low
    return (left > right) - (left < right)


cdef class RuleTree:
    """The tree of a rule list. Rule i has the tests ids[start[i]] to ids[start[i + 1] - 1], one a column at most."""

    cdef Test *tests                    # borrowed
    cdef Node *nodes
    cdef int64_t *lists
    cdef Block *blocks
    cdef Values *here                   # of the node at hand, by column
    cdef int64_t *seen                  # the node that an entry of `here` was written for
    cdef int64_t *count                 # tests of a column in the node at hand
    cdef Interval *intervals
    cdef int64_t *group                 # of levels
    cdef double *group_weight
    cdef unsigned char *scratch[2]      # flags of the two sides of a cut
    cdef const int64_t[::1] n_levels
    cdef const double[::1] weight
    cdef object kept
    cdef Py_ssize_t n_rules, size, spent, capacity, list_room, most
    cdef readonly Py_ssize_t n_nodes, n_open, n_flags

    def __cinit__(self):
        self.tests, self.nodes, self.lists, self.blocks, self.here = NULL, NULL, NULL, NULL, NULL
        self.seen, self.count, self.intervals, self.group, self.group_weight = NULL, NULL, NULL, NULL, NULL
        self.scratch[0], self.scratch[1] = NULL, NULL

    def __dealloc__(self):
        cdef Block *block = self.blocks
        cdef Block *before
        while block != NULL:
            before = block.before
            free(block)
            block = before
        free(self.nodes)
        free(self.lists)
        free(self.here)
        free(self.seen)
        free(self.count)
        free(self.intervals)
        free(self.group)
        free(self.group_weight)
        free(self.scratch[0])
        free(self.scratch[1])

    def __init__(self, Tests tests, const int64_t[::1] start, const int64_t[::1] ids, const int64_t[::1] n_levels,
                 const double[::1] weight):
        cdef Py_ssize_t i, n_columns = tests.n_columns, most_levels = 0, work = 0
        self.kept, self.tests, self.n_levels, self.weight = tests, tests.tests, n_levels, weight
        self.n_rules = start.shape[0] - 1
        if n_levels.shape[0] != n_columns or weight.shape[0] != self.n_rules or start[self.n_rules] != ids.shape[0]:
            raise ValueError("the arrays of the rules differ in length")
        self.most = ROOM + ROOM_A_TEST * ids.shape[0]
        for i in range(n_columns):
            most_levels = max(most_levels, n_levels[i])
        self.here = <Values *> malloc((n_columns + 1) * sizeof(Values))
        self.seen = <int64_t *> malloc((n_columns + 1) * sizeof(int64_t))
        self.count = <int64_t *> malloc((n_columns + 1) * sizeof(int64_t))
        self.intervals = <Interval *> malloc((self.n_rules + 1) * sizeof(Interval))
        self.group = <int64_t *> malloc((most_levels + 2) * sizeof(int64_t))
        self.group_weight = <double *> malloc((most_levels + 2) * sizeof(double))
        self.scratch[0], self.scratch[1] = <unsigned char *> malloc(most_levels + 2), <unsigned char *> malloc(
            most_levels + 2)
        if (self.here == NULL or self.seen == NULL or self.count == NULL or self.intervals == NULL
                or self.group == NULL or self.group_weight == NULL or self.scratch[0] == NULL
                or self.scratch[1] == NULL):
            raise_for_status(NO_MEMORY)
        for i in range(n_columns):
            self.seen[i] = -1
        self._root(start, ids)
        i = 0
        while i < self.n_nodes:                 # `_treat` appends
            work += self.nodes[i].n_rules * 16
            self._treat(i)
            i += 1
            if work > BETWEEN_SIGNALS:
                PyErr_CheckSignals()
                work = 0

    # ---- memory -----------------------------------------------------------------------------------------------------

    cdef unsigned char *_flags(self, Py_ssize_t n) except NULL:
        """Room for flags, kept until the end."""
        cdef Block *block = <Block *> malloc(sizeof(Block) + n)
        if block == NULL:
            raise_for_status(NO_MEMORY)
        block.before = self.blocks
        self.spent += n // <Py_ssize_t> sizeof(int64_t) + 1
        self.blocks = block
        return <unsigned char *> (block + 1)

    cdef int64_t _new_node(self, int64_t parent) except -1:
        cdef Node *grown
        if self.n_nodes == self.capacity:
            grown = <Node *> more_room(self.nodes, &self.capacity, self.n_nodes + 1, sizeof(Node))
            if grown == NULL:
                raise_for_status(NO_MEMORY)
            self.nodes = grown
        memset(&self.nodes[self.n_nodes], 0, sizeof(Node))
        self.nodes[self.n_nodes].parent, self.nodes[self.n_nodes].column = parent, -1
        self.nodes[self.n_nodes].left, self.nodes[self.n_nodes].right = -1, -1
        self.nodes[self.n_nodes].first = self.size
        self.n_nodes += 1
        return self.n_nodes - 1

    cdef int _reserve(self, Py_ssize_t more) except -1:
        cdef int64_t *grown
        if self.size + more > self.list_room:
            grown = <int64_t *> more_room(self.lists, &self.list_room, self.size + more, sizeof(int64_t))
            if grown == NULL:
                raise_for_status(NO_MEMORY)
            self.lists = grown
        return 0

    # ---- nodes ------------------------------------------------------------------------------------------------------

    cdef int _root(self, const int64_t[::1] start, const int64_t[::1] ids) except -1:
        cdef Py_ssize_t i, k
        cdef int64_t root = self._new_node(-1)
        self._reserve(2 * self.n_rules + ids.shape[0])
        for i in range(self.n_rules):
            self.lists[self.size], self.lists[self.size + 1] = i, start[i + 1] - start[i]
            self.size += 2
            for k in range(start[i], start[i + 1]):
                self.lists[self.size] = ids[k]
                self.size += 1
            self.nodes[root].n_rules += 1
            if start[i + 1] == start[i]:
                break
        return 0

    cdef int _treat(self, Py_ssize_t number) except -1:
        """Decide a node, split it, or leave it open."""
        cdef Node *node = &self.nodes[number]
        cdef Cut cut
        if node.n_rules == 0:
            node.answer = self.n_rules
        elif self.lists[node.first + 1] == 0:
            node.answer = self.lists[node.first]
        elif self.size + self.spent > self.most:
            node.answer = OPEN
            self.n_open += 1
        else:
            self._look_up(number)
            if not self._clean_cut(node, &cut):
                self._first_cut(node, &cut)
            node.cut = cut
            if cut.levels != NULL:
                self.n_flags += self.n_levels[cut.column]
            self._child(number, &cut, True)
            self._child(number, &cut, False)
        return 0

    cdef int _look_up(self, Py_ssize_t number) except -1:
        """The values that lead to a node, for the columns that its rules test; and how many do."""
        cdef const Node *node = &self.nodes[number]
        cdef Py_ssize_t at = node.first, _rule, k, above = number
        cdef int64_t j
        for _rule in range(node.n_rules):
            for k in range(self.lists[at + 1]):
                j = self.tests[self.lists[at + 2 + k]].column
                if self.seen[j] != number:
                    self.seen[j], self.count[j] = number, 0
                    self.here[j].low, self.here[j].high, self.here[j].missing = -INFINITY, INFINITY, True
                    self.here[j].levels = NULL
                self.count[j] += 1
            at += 2 + self.lists[at + 1]
        while above >= 0:
            j = self.nodes[above].column
            if j >= 0 and self.seen[j] == number and self.count[j] > 0:
                self.here[j] = self.nodes[above].values
                self.count[j] = -self.count[j]          # the nearest split above is the narrowest
            above = self.nodes[above].parent
        at = node.first
        for _rule in range(node.n_rules):
            for k in range(self.lists[at + 1]):
                j = self.tests[self.lists[at + 2 + k]].column
                self.count[j] = self.count[j] if self.count[j] > 0 else -self.count[j]
            at += 2 + self.lists[at + 1]
        return 0

    cdef bint _level_here(self, int64_t column, Py_ssize_t level) noexcept nogil:
        return self.here[column].levels == NULL or self.here[column].levels[level]

    # ---- cuts that no rule straddles --------------------------------------------------------------------------------

    cdef bint _clean_cut(self, const Node *node, Cut *cut) except -1:
        """The most even one of all columns that every rule of the node tests."""
        cdef Py_ssize_t k, first = node.first
        cdef double best = -1
        cdef const Test *test
        if node.n_rules < 2:
            return False
        for k in range(self.lists[first + 1]):
            test = &self.tests[self.lists[first + 2 + k]]
            if self.count[test.column] == node.n_rules:
                if test.levels == NULL:
                    self._clean_threshold(node, test.column, cut, &best)
                else:
                    self._clean_levels(node, test.column, cut, &best)
        return best >= 0

    cdef const Test *_test_of(self, Py_ssize_t at, int64_t column) noexcept nogil:
        """The test of a column in the list of a rule; NULL if there is none."""
        cdef Py_ssize_t k
        for k in range(self.lists[at + 1]):
            if self.tests[self.lists[at + 2 + k]].column == column:
                return &self.tests[self.lists[at + 2 + k]]
        return NULL

    cdef void _clean_threshold(self, const Node *node, int64_t column, Cut *cut, double *best) noexcept nogil:
        cdef Py_ssize_t at = node.first, i, _rule, n = 0, n_missing = 0, before = 0
        cdef double weight, known = 0, absent = 0, left = 0, highest = -INFINITY
        cdef const Values *here = &self.here[column]
        cdef const Test *test
        for _rule in range(node.n_rules):
            test = self._test_of(at, column)
            weight = self.weight[self.lists[at]]
            self.intervals[n].low, self.intervals[n].high = max(test.low, here.low), min(test.high, here.high)
            if self.intervals[n].low < self.intervals[n].high:
                self.intervals[n].weight, self.intervals[n].missing = weight, test.missing and here.missing
                n_missing += self.intervals[n].missing
                known += weight
                n += 1
            else:
                absent += weight                        # only a missing value passes
            at += 2 + self.lists[at + 1]
        if n < node.n_rules and n > 0 and n_missing == 0 and min(known, absent) > best[0]:
            best[0] = min(known, absent)
            cut.column, cut.threshold, cut.missing_left, cut.levels = column, INFINITY, False, NULL
        qsort(self.intervals, n, sizeof(Interval), by_low)
        for i in range(n - 1):
            highest = max(highest, self.intervals[i].high)
            left += self.intervals[i].weight
            before += self.intervals[i].missing
            if highest > self.intervals[i + 1].low or 0 < before < n_missing:
                continue
            weight = min(left, known - left)
            if weight > best[0]:
                best[0] = weight
                cut.column, cut.threshold, cut.levels = column, self.intervals[i + 1].low, NULL
                cut.missing_left = before > 0

    cdef int64_t _leader(self, int64_t level) noexcept nogil:
        while self.group[level] != level:
            self.group[level] = self.group[self.group[level]]
            level = self.group[level]
        return level

    cdef int _clean_levels(self, const Node *node, int64_t column, Cut *cut, double *best) except -1:
        """Levels that one rule has belong together; the heaviest group against the others."""
        cdef Py_ssize_t at = node.first, n = self.n_levels[column] + 1, _rule, level
        cdef const Values *here = &self.here[column]
        cdef const Test *test
        cdef int64_t first, leader, heaviest = -1
        cdef double total = 0
        cdef unsigned char *chosen
        for level in range(n + 1):                      # the last stands for missing
            self.group[level], self.group_weight[level] = level, 0
        for _rule in range(node.n_rules):
            test, first = self._test_of(at, column), -1
            for level in range(n + 1):
                if (test.levels[level] and self._level_here(column, level) if level < n
                        else test.missing and here.missing):
                    if first < 0:
                        first = self._leader(level)
                    else:
                        leader = self._leader(level)
                        if leader != first:
                            self.group[leader] = first
                            self.group_weight[first] += self.group_weight[leader]
            if first >= 0:
                self.group_weight[first] += self.weight[self.lists[at]]
                total += self.weight[self.lists[at]]
            at += 2 + self.lists[at + 1]
        for level in range(n + 1):
            if self.group[level] == level and (
                    heaviest < 0 or self.group_weight[level] > self.group_weight[heaviest]):
                heaviest = level
        if total - self.group_weight[heaviest] <= 0 or min(
                self.group_weight[heaviest], total - self.group_weight[heaviest]) <= best[0]:
            return 0
        best[0] = min(self.group_weight[heaviest], total - self.group_weight[heaviest])
        chosen = self._flags(n)
        for level in range(n):
            chosen[level] = self._leader(level) == heaviest
        cut.column, cut.threshold, cut.levels = column, 0, chosen
        cut.missing_left = self._leader(n) == heaviest
        return 0

    # ---- cuts by the first rule -------------------------------------------------------------------------------------

    cdef void _first_cut(self, const Node *node, Cut *cut) noexcept nogil:
        """The bound of the first rule that the fewest rules straddle."""
        cdef Py_ssize_t k, fewest = -1
        cdef const Test *test
        cdef const Values *here
        cdef double low, high
        for k in range(self.lists[node.first + 1]):
            test = &self.tests[self.lists[node.first + 2 + k]]
            here = &self.here[test.column]
            if test.levels != NULL:
                self._offer(node, test.column, 0, test.missing, test.levels, cut, &fewest)
                continue
            low, high = max(test.low, here.low), min(test.high, here.high)
            if low < high and low > here.low:
                self._offer(node, test.column, low, not test.missing, NULL, cut, &fewest)
            if low < high and high < here.high:
                self._offer(node, test.column, high, test.missing, NULL, cut, &fewest)
            if not low < high or (low == here.low and high == here.high):
                self._offer(node, test.column, INFINITY, False, NULL, cut, &fewest)

    cdef void _offer(self, const Node *node, int64_t column, double threshold, bint missing_left,
                     const unsigned char *levels, Cut *cut, Py_ssize_t *fewest) noexcept nogil:
        cdef Cut offered
        cdef Values left, right
        cdef Py_ssize_t at = node.first, _rule, straddling = node.n_rules - self.count[column]
        cdef const Test *test
        offered.column, offered.threshold = column, threshold
        offered.missing_left, offered.levels = missing_left, levels
        self._side(&offered, True, &left, self.scratch[0])
        self._side(&offered, False, &right, self.scratch[1])
        for _rule in range(node.n_rules):
            test = self._test_of(at, column)
            if test != NULL and self._can_pass(test, &left) and self._can_pass(test, &right):
                straddling += 1
            at += 2 + self.lists[at + 1]
        if fewest[0] < 0 or straddling < fewest[0]:
            fewest[0], cut[0] = straddling, offered

    # ---- children ---------------------------------------------------------------------------------------------------

    cdef void _side(self, const Cut *cut, bint on_left, Values *values, unsigned char *flags) noexcept nogil:
        """The values of the cut's column that lead to one of its sides; `flags` is room for levels."""
        cdef const Values *here = &self.here[cut.column]
        cdef Py_ssize_t level, n = self.n_levels[cut.column] + 1
        values[0] = here[0]
        values.missing = here.missing and (cut.missing_left == on_left)
        if cut.levels != NULL:
            for level in range(n):
                flags[level] = self._level_here(cut.column, level) and (cut.levels[level] != 0) == on_left
            values.levels = flags
        elif on_left:
            values.high = min(here.high, cut.threshold)
        else:
            values.low = max(here.low, cut.threshold)

    cdef bint _can_pass(self, const Test *test, const Values *values) noexcept nogil:
        """Whether some value passes."""
        cdef Py_ssize_t level
        if test.missing and values.missing:
            return True
        if test.levels == NULL:
            return max(test.low, values.low) < min(test.high, values.high)
        for level in range(self.n_levels[test.column] + 1):
            if test.levels[level] and (values.levels == NULL or values.levels[level]):
                return True
        return False

    cdef bint _must_pass(self, const Test *test, const Values *values) noexcept nogil:
        """Whether every value passes."""
        cdef Py_ssize_t level
        if values.missing and not test.missing:
            return False
        if test.levels == NULL:
            return not values.low < values.high or (test.low <= values.low and test.high >= values.high)
        for level in range(self.n_levels[test.column] + 1):
            if not test.levels[level] and (values.levels == NULL or values.levels[level]):
                return False
        return True

    cdef int _child(self, Py_ssize_t parent, const Cut *cut, bint on_left) except -1:
        """A node with the rules that may hold on a side, and their tests that are open there."""
        cdef int64_t child = self._new_node(parent)
        cdef Node *node = &self.nodes[child]
        cdef Py_ssize_t at = self.nodes[parent].first, _rule, k, start, n_tests
        cdef const Test *test
        cdef bint possible
        if on_left:
            self.nodes[parent].left = child
        else:
            self.nodes[parent].right = child
        node.column = cut.column
        self._side(cut, on_left, &node.values,
                   NULL if cut.levels == NULL else self._flags(self.n_levels[cut.column] + 1))
        for _rule in range(self.nodes[parent].n_rules):
            n_tests = self.lists[at + 1]
            self._reserve(2 + n_tests)
            start, possible = self.size, True
            self.lists[start] = self.lists[at]
            self.size += 2
            for k in range(n_tests):
                test = &self.tests[self.lists[at + 2 + k]]
                if test.column == cut.column:
                    if not self._can_pass(test, &node.values):
                        possible = False
                        break
                    if self._must_pass(test, &node.values):
                        continue
                self.lists[self.size] = self.lists[at + 2 + k]
                self.size += 1
            at += 2 + n_tests
            if not possible:
                self.size = start
                continue
            self.lists[start + 1] = self.size - start - 2
            node.n_rules += 1
            if self.lists[start + 1] == 0:
                break                                   # it holds: later rules do not matter
        return 0

    # ---- what was built ---------------------------------------------------------------------------------------------

    def fill(self, int64_t[::1] feature, double[::1] threshold, int64_t[::1] left, int64_t[::1] right,
             double[::1] weight, unsigned char[::1] missing_left, int64_t[::1] subset_start,
             unsigned char[::1] subset_left, int64_t[::1] answer):
        """The nodes as arrays of a `Tree`: of the children, the one of weight 1 has the unseen levels. `answer` is a
        rule, the number of rules where none holds, and -1 - number where the leaf is open."""
        cdef Py_ssize_t i, n, flag = 0, n_open = 0
        cdef const Node *node
        weight[0] = 1
        for i in range(self.n_nodes):
            node = &self.nodes[i]
            left[i], right[i], feature[i], subset_start[i] = node.left, node.right, -1, -1
            threshold[i], missing_left[i], answer[i] = 0, 0, node.answer
            if node.left < 0:
                if node.answer == OPEN:
                    answer[i] = -1 - n_open
                    n_open += 1
                continue
            feature[i], threshold[i], missing_left[i] = node.cut.column, node.cut.threshold, node.cut.missing_left
            weight[node.left], weight[node.right] = 1, 0
            if node.cut.levels != NULL:
                n = self.n_levels[node.cut.column]
                subset_start[i] = flag
                if n > 0:
                    memcpy(&subset_left[flag], node.cut.levels + 1, n)
                flag += n
                weight[node.left], weight[node.right] = node.cut.levels[0], 1 - node.cut.levels[0]

    def open_sizes(self):
        """How many rules the lists of the open leaves have, and how many tests these."""
        cdef Py_ssize_t i, _rule, at, n_rules = 0, n_tests = 0
        for i in range(self.n_nodes):
            if self.nodes[i].left < 0 and self.nodes[i].answer == OPEN:
                at, n_rules = self.nodes[i].first, n_rules + self.nodes[i].n_rules
                for _rule in range(self.nodes[i].n_rules):
                    n_tests += self.lists[at + 1]
                    at += 2 + self.lists[at + 1]
        return n_rules, n_tests

    def fill_open(self, int64_t[::1] group_start, int64_t[::1] rule, int64_t[::1] test_start, int64_t[::1] ids):
        """The lists of the open leaves, in their order, as `match.first_rules` takes them."""
        cdef Py_ssize_t i, _rule, k, at, group = 0, n_rules = 0, n_tests = 0
        group_start[0] = test_start[0] = 0
        for i in range(self.n_nodes):
            if self.nodes[i].left >= 0 or self.nodes[i].answer != OPEN:
                continue
            at = self.nodes[i].first
            for _rule in range(self.nodes[i].n_rules):
                rule[n_rules] = self.lists[at]
                for k in range(self.lists[at + 1]):
                    ids[n_tests] = self.lists[at + 2 + k]
                    n_tests += 1
                n_rules += 1
                test_start[n_rules] = n_tests
                at += 2 + self.lists[at + 1]
            group += 1
            group_start[group] = n_rules
