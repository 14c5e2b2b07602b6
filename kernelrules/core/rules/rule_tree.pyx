"""A rule list as a decision tree, so that the first rule that holds is found by a few comparisons.

A node has the rules that may still hold there, each with the conditions that the path to the node has not decided. A
node is split so that no rule is needed on both sides, as evenly by weight as possible. If there is no such split, as in
ordered lists, it is split at a limit of its first rule that the fewest rules straddle. The rules of a tree thus become
a tree of about the same size. The construction is our own.

Invariant: the first rule that holds for a row is the first that holds among those of its leaf. A leaf is decided if
its first rule has no conditions left, or if no rule is left. Once the lists of all nodes have MAX_LIST_ENTRIES entries,
the remaining leaves stay undecided, and their rules are tested one by one, for 64 rows at a time (match.pyx).
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memset

from kernelrules.core.base.growable cimport more_room
from kernelrules.core.rules.match cimport Condition, ConditionTable
from kernelrules.core.base.status cimport NO_MEMORY

from kernelrules.core.base.status import raise_for_status

cdef enum:
    MAX_LIST_ENTRIES = 200_000              # entries in the lists of all nodes (1.6 MB), and
    LIST_ENTRIES_PER_CONDITION = 64         # so many more for every condition of the rules
    UNDECIDED = -1  # answer of a leaf, if it is neither a rule nor the number of rules (none holds)
    WORK_BETWEEN_SIGNAL_CHECKS = 1_000_000  # rules and conditions read, about a hundredth of a second


cdef struct AllowedValues:                     # the values of one column that lead to a node
    double low, high
    bint missing
    const unsigned char *levels


cdef struct RuleTreeSplit:
    int64_t column
    double threshold
    bint missing_left
    const unsigned char *levels         # NULL: x <= threshold goes left; else the levels that go left


cdef struct RuleTreeNode:
    int64_t parent, column      # the column of the parent's split
    AllowedValues values
    Py_ssize_t first, n_rules   # in `lists`, per rule: its number, its number of conditions, the conditions
    int64_t left, right, answer
    RuleTreeSplit split


cdef struct RuleInterval:                   # what a rule allows of a column, within the node
    double low, high, weight
    bint missing


cdef struct FlagBlock:                      # header of an array of flags; blocks are chained so that they never move
    FlagBlock *before


cdef int compare_lows(const void *a, const void *b) noexcept nogil:
    cdef double left = (<const RuleInterval *> a).low, right = (<const RuleInterval *> b).low
    return (left > right) - (left < right)


cdef class RuleTree:
    """The tree of a rule list.

    Parameters
    ----------
    conditions : ConditionTable
        The distinct conditions.
    start, ids : ndarray of int64
        Rule i has the conditions ids[start[i]] to ids[start[i + 1] - 1], at most one per column.
    n_levels : ndarray (n_columns,) of int64
        Number of levels of each column; 0 for numbers.
    weight : ndarray (n_rules,)
        Weight of the rows of each rule, by which splits are balanced.
    """

    cdef Condition *conditions      # borrowed
    cdef RuleTreeNode *nodes
    cdef int64_t *lists
    cdef FlagBlock *blocks
    cdef AllowedValues *here        # allowed values of the current node, by column
    cdef int64_t *here_node         # the node for which an entry of `here` was written
    cdef int64_t *count             # number of conditions on a column in the current node
    cdef RuleInterval *intervals
    cdef int64_t *group             # union-find forest over levels
    cdef double *group_weight
    cdef unsigned char *scratch[2]  # flags of the two sides of a split
    cdef const int64_t[::1] n_levels
    cdef const double[::1] weight
    cdef object kept
    cdef Py_ssize_t n_rules, size, flag_entries, capacity, list_capacity, max_entries
    cdef readonly Py_ssize_t n_nodes, n_undecided, n_flags

    def __cinit__(self):
        self.conditions, self.nodes, self.lists, self.blocks, self.here = NULL, NULL, NULL, NULL, NULL
        self.here_node, self.count, self.intervals, self.group, self.group_weight = NULL, NULL, NULL, NULL, NULL
        self.scratch[0], self.scratch[1] = NULL, NULL

    def __dealloc__(self):
        cdef FlagBlock *block = self.blocks
        cdef FlagBlock *before
        while block != NULL:
            before = block.before
            free(block)
            block = before
        free(self.nodes)
        free(self.lists)
        free(self.here)
        free(self.here_node)
        free(self.count)
        free(self.intervals)
        free(self.group)
        free(self.group_weight)
        free(self.scratch[0])
        free(self.scratch[1])

    def __init__(self, ConditionTable conditions, const int64_t[::1] start, const int64_t[::1] ids,
                 const int64_t[::1] n_levels, const double[::1] weight):
        cdef Py_ssize_t i, n_columns = conditions.n_columns, most_levels = 0, work = 0
        self.kept, self.conditions, self.n_levels, self.weight = conditions, conditions.conditions, n_levels, weight
        self.n_rules = start.shape[0] - 1
        if n_levels.shape[0] != n_columns or weight.shape[0] != self.n_rules or start[self.n_rules] != ids.shape[0]:
            raise ValueError("the arrays of the rules differ in length")
        self.max_entries = MAX_LIST_ENTRIES + LIST_ENTRIES_PER_CONDITION * ids.shape[0]
        for i in range(n_columns):
            most_levels = max(most_levels, n_levels[i])
        self.here = <AllowedValues *> malloc((n_columns + 1) * sizeof(AllowedValues))
        self.here_node = <int64_t *> malloc((n_columns + 1) * sizeof(int64_t))
        self.count = <int64_t *> malloc((n_columns + 1) * sizeof(int64_t))
        self.intervals = <RuleInterval *> malloc((self.n_rules + 1) * sizeof(RuleInterval))
        self.group = <int64_t *> malloc((most_levels + 2) * sizeof(int64_t))
        self.group_weight = <double *> malloc((most_levels + 2) * sizeof(double))
        self.scratch[0], self.scratch[1] = <unsigned char *> malloc(most_levels + 2), <unsigned char *> malloc(
            most_levels + 2)
        if (self.here == NULL or self.here_node == NULL or self.count == NULL or self.intervals == NULL
                or self.group == NULL or self.group_weight == NULL or self.scratch[0] == NULL
                or self.scratch[1] == NULL):
            raise_for_status(NO_MEMORY)
        for i in range(n_columns):
            self.here_node[i] = -1
        self.add_root(start, ids)
        i = 0
        while i < self.n_nodes:                 # `split_or_decide` appends nodes
            work += self.nodes[i].n_rules * 16
            self.split_or_decide(i)
            i += 1
            if work > WORK_BETWEEN_SIGNAL_CHECKS:
                PyErr_CheckSignals()
                work = 0

    # ---- memory -----------------------------------------------------------------------------------------------------

    cdef unsigned char *new_flags(self, Py_ssize_t n) except NULL:
        """Allocate n flags, kept as long as the tree."""
        cdef FlagBlock *block = <FlagBlock *> malloc(sizeof(FlagBlock) + n)
        if block == NULL:
            raise_for_status(NO_MEMORY)
        block.before = self.blocks
        self.flag_entries += n // <Py_ssize_t> sizeof(int64_t) + 1
        self.blocks = block
        return <unsigned char *> (block + 1)

    cdef int64_t new_node(self, int64_t parent) except -1:
        cdef RuleTreeNode *grown
        if self.n_nodes == self.capacity:
            grown = <RuleTreeNode *> more_room(self.nodes, &self.capacity, self.n_nodes + 1, sizeof(RuleTreeNode))
            if grown == NULL:
                raise_for_status(NO_MEMORY)
            self.nodes = grown
        memset(&self.nodes[self.n_nodes], 0, sizeof(RuleTreeNode))
        self.nodes[self.n_nodes].parent, self.nodes[self.n_nodes].column = parent, -1
        self.nodes[self.n_nodes].left, self.nodes[self.n_nodes].right = -1, -1
        self.nodes[self.n_nodes].first = self.size
        self.n_nodes += 1
        return self.n_nodes - 1

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef int64_t *grown
        if self.size + more > self.list_capacity:
            grown = <int64_t *> more_room(self.lists, &self.list_capacity, self.size + more, sizeof(int64_t))
            if grown == NULL:
                raise_for_status(NO_MEMORY)
            self.lists = grown
        return 0

    # ---- nodes ------------------------------------------------------------------------------------------------------

    cdef int add_root(self, const int64_t[::1] start, const int64_t[::1] ids) except -1:
        cdef Py_ssize_t i, k
        cdef int64_t root = self.new_node(-1)
        self.reserve(2 * self.n_rules + ids.shape[0])
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

    cdef int split_or_decide(self, Py_ssize_t number) except -1:
        """Decide a node, split it, or leave it undecided."""
        cdef RuleTreeNode *node = &self.nodes[number]
        cdef RuleTreeSplit split
        if node.n_rules == 0:
            node.answer = self.n_rules
        elif self.lists[node.first + 1] == 0:
            node.answer = self.lists[node.first]
        elif self.size + self.flag_entries > self.max_entries:
            node.answer = UNDECIDED
            self.n_undecided += 1
        else:
            self.find_allowed_values(number)
            if not self.find_clean_split(node, &split):
                self.split_by_first_rule(node, &split)
            node.split = split
            if split.levels != NULL:
                self.n_flags += self.n_levels[split.column]
            self.add_child(number, &split, True)
            self.add_child(number, &split, False)
        return 0

    cdef int find_allowed_values(self, Py_ssize_t number) except -1:
        """Set the allowed values of a node for the columns of its rules, and count the conditions on each column."""
        cdef const RuleTreeNode *node = &self.nodes[number]
        cdef Py_ssize_t at = node.first, _rule, k, above = number
        cdef int64_t j
        for _rule in range(node.n_rules):
            for k in range(self.lists[at + 1]):
                j = self.conditions[self.lists[at + 2 + k]].column
                if self.here_node[j] != number:
                    self.here_node[j], self.count[j] = number, 0
                    self.here[j].low, self.here[j].high, self.here[j].missing = -INFINITY, INFINITY, True
                    self.here[j].levels = NULL
                self.count[j] += 1
            at += 2 + self.lists[at + 1]
        while above >= 0:
            j = self.nodes[above].column
            if j >= 0 and self.here_node[j] == number and self.count[j] > 0:
                self.here[j] = self.nodes[above].values
                self.count[j] = -self.count[j]          # the nearest split above is the narrowest
            above = self.nodes[above].parent
        at = node.first
        for _rule in range(node.n_rules):
            for k in range(self.lists[at + 1]):
                j = self.conditions[self.lists[at + 2 + k]].column
                self.count[j] = self.count[j] if self.count[j] > 0 else -self.count[j]
            at += 2 + self.lists[at + 1]
        return 0

    cdef bint level_allowed(self, int64_t column, Py_ssize_t level) noexcept nogil:
        return self.here[column].levels == NULL or self.here[column].levels[level]

    # ---- clean splits: no rule straddles them -----------------------------------------------------------------------

    cdef bint find_clean_split(self, const RuleTreeNode *node, RuleTreeSplit *split) except -1:
        """Find the most even clean split, over the columns on which every rule of the node has a condition."""
        cdef Py_ssize_t k, first = node.first
        cdef double best = -1
        cdef const Condition *condition
        if node.n_rules < 2:
            return False
        for k in range(self.lists[first + 1]):
            condition = &self.conditions[self.lists[first + 2 + k]]
            if self.count[condition.column] == node.n_rules:
                if condition.levels == NULL:
                    self.find_clean_threshold(node, condition.column, split, &best)
                else:
                    self.find_clean_levels(node, condition.column, split, &best)
        return best >= 0

    cdef const Condition *condition_on(self, Py_ssize_t at, int64_t column) noexcept nogil:
        """Return the condition on a column in the list of a rule; NULL if there is none."""
        cdef Py_ssize_t k
        for k in range(self.lists[at + 1]):
            if self.conditions[self.lists[at + 2 + k]].column == column:
                return &self.conditions[self.lists[at + 2 + k]]
        return NULL

    cdef void find_clean_threshold(self, const RuleTreeNode *node, int64_t column, RuleTreeSplit *split,
                                   double *best) noexcept nogil:
        cdef Py_ssize_t at = node.first, i, _rule, n = 0, n_missing = 0, before = 0
        cdef double weight, known = 0, absent = 0, left = 0, highest = -INFINITY
        cdef const AllowedValues *here = &self.here[column]
        cdef const Condition *condition
        for _rule in range(node.n_rules):
            condition = self.condition_on(at, column)
            weight = self.weight[self.lists[at]]
            self.intervals[n].low, self.intervals[n].high = max(condition.low, here.low), min(condition.high, here.high)
            if self.intervals[n].low < self.intervals[n].high:
                self.intervals[n].weight, self.intervals[n].missing = weight, condition.missing and here.missing
                n_missing += self.intervals[n].missing
                known += weight
                n += 1
            else:
                absent += weight                        # only a missing value satisfies it
            at += 2 + self.lists[at + 1]
        if n < node.n_rules and n > 0 and n_missing == 0 and min(known, absent) > best[0]:
            best[0] = min(known, absent)
            split.column, split.threshold, split.missing_left, split.levels = column, INFINITY, False, NULL
        qsort(self.intervals, n, sizeof(RuleInterval), compare_lows)
        for i in range(n - 1):
            highest = max(highest, self.intervals[i].high)
            left += self.intervals[i].weight
            before += self.intervals[i].missing
            if highest > self.intervals[i + 1].low or 0 < before < n_missing:
                continue
            weight = min(left, known - left)
            if weight > best[0]:
                best[0] = weight
                split.column, split.threshold, split.levels = column, self.intervals[i + 1].low, NULL
                split.missing_left = before > 0

    cdef int64_t find_group(self, int64_t level) noexcept nogil:
        while self.group[level] != level:
            self.group[level] = self.group[self.group[level]]
            level = self.group[level]
        return level

    cdef int find_clean_levels(self, const RuleTreeNode *node, int64_t column, RuleTreeSplit *split,
                               double *best) except -1:
        """Group levels that occur in one rule; split off the heaviest group."""
        cdef Py_ssize_t at = node.first, n = self.n_levels[column] + 1, _rule, level
        cdef const AllowedValues *here = &self.here[column]
        cdef const Condition *condition
        cdef int64_t first, leader, heaviest = -1
        cdef double total = 0
        cdef unsigned char *chosen
        for level in range(n + 1):                      # the last one is of missing values
            self.group[level], self.group_weight[level] = level, 0
        for _rule in range(node.n_rules):
            condition, first = self.condition_on(at, column), -1
            for level in range(n + 1):
                if (condition.levels[level] and self.level_allowed(column, level) if level < n
                        else condition.missing and here.missing):
                    if first < 0:
                        first = self.find_group(level)
                    else:
                        leader = self.find_group(level)
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
        chosen = self.new_flags(n)
        for level in range(n):
            chosen[level] = self.find_group(level) == heaviest
        split.column, split.threshold, split.levels = column, 0, chosen
        split.missing_left = self.find_group(n) == heaviest
        return 0

    # ---- splits by the first rule -----------------------------------------------------------------------------------

    cdef void split_by_first_rule(self, const RuleTreeNode *node, RuleTreeSplit *split) noexcept nogil:
        """Split at the limit of the first rule that the fewest rules straddle."""
        cdef Py_ssize_t k, fewest = -1
        cdef const Condition *condition
        cdef const AllowedValues *here
        cdef double low, high
        for k in range(self.lists[node.first + 1]):
            condition = &self.conditions[self.lists[node.first + 2 + k]]
            here = &self.here[condition.column]
            if condition.levels != NULL:
                self.keep_fewer_straddling(node, condition.column, 0, condition.missing, condition.levels, split,
                                           &fewest)
                continue
            low, high = max(condition.low, here.low), min(condition.high, here.high)
            if low < high and low > here.low:
                self.keep_fewer_straddling(node, condition.column, low, not condition.missing, NULL, split, &fewest)
            if low < high and high < here.high:
                self.keep_fewer_straddling(node, condition.column, high, condition.missing, NULL, split, &fewest)
            if not low < high or (low == here.low and high == here.high):
                self.keep_fewer_straddling(node, condition.column, INFINITY, False, NULL, split, &fewest)

    cdef void keep_fewer_straddling(self, const RuleTreeNode *node, int64_t column, double threshold, bint missing_left,
                                    const unsigned char *levels, RuleTreeSplit *split,
                                    Py_ssize_t *fewest) noexcept nogil:
        cdef RuleTreeSplit candidate
        cdef AllowedValues left, right
        cdef Py_ssize_t at = node.first, _rule, straddling = node.n_rules - self.count[column]
        cdef const Condition *condition
        candidate.column, candidate.threshold = column, threshold
        candidate.missing_left, candidate.levels = missing_left, levels
        self.allow_side(&candidate, True, &left, self.scratch[0])
        self.allow_side(&candidate, False, &right, self.scratch[1])
        for _rule in range(node.n_rules):
            condition = self.condition_on(at, column)
            if condition != NULL and self.can_satisfy(condition, &left) and self.can_satisfy(condition, &right):
                straddling += 1
            at += 2 + self.lists[at + 1]
        if fewest[0] < 0 or straddling < fewest[0]:
            fewest[0], split[0] = straddling, candidate

    # ---- children ---------------------------------------------------------------------------------------------------

    cdef void allow_side(self, const RuleTreeSplit *split, bint on_left, AllowedValues *values,
                         unsigned char *flags) noexcept nogil:
        """Set the values of the split's column that lead to one of its sides; `flags` is a buffer for levels."""
        cdef const AllowedValues *here = &self.here[split.column]
        cdef Py_ssize_t level, n = self.n_levels[split.column] + 1
        values[0] = here[0]
        values.missing = here.missing and (split.missing_left == on_left)
        if split.levels != NULL:
            for level in range(n):
                flags[level] = self.level_allowed(split.column, level) and (split.levels[level] != 0) == on_left
            values.levels = flags
        elif on_left:
            values.high = min(here.high, split.threshold)
        else:
            values.low = max(here.low, split.threshold)

    cdef bint can_satisfy(self, const Condition *condition, const AllowedValues *values) noexcept nogil:
        """Return whether some value satisfies the condition."""
        cdef Py_ssize_t level
        if condition.missing and values.missing:
            return True
        if condition.levels == NULL:
            return max(condition.low, values.low) < min(condition.high, values.high)
        for level in range(self.n_levels[condition.column] + 1):
            if condition.levels[level] and (values.levels == NULL or values.levels[level]):
                return True
        return False

    cdef bint must_satisfy(self, const Condition *condition, const AllowedValues *values) noexcept nogil:
        """Return whether every value satisfies the condition."""
        cdef Py_ssize_t level
        if values.missing and not condition.missing:
            return False
        if condition.levels == NULL:
            return not values.low < values.high or (condition.low <= values.low and condition.high >= values.high)
        for level in range(self.n_levels[condition.column] + 1):
            if not condition.levels[level] and (values.levels == NULL or values.levels[level]):
                return False
        return True

    cdef int add_child(self, Py_ssize_t parent, const RuleTreeSplit *split, bint on_left) except -1:
        """Add a node with the rules that may hold on a side, and their conditions that are undecided there."""
        cdef int64_t child = self.new_node(parent)
        cdef RuleTreeNode *node = &self.nodes[child]
        cdef Py_ssize_t at = self.nodes[parent].first, _rule, k, start, n_conditions
        cdef const Condition *condition
        cdef bint possible
        if on_left:
            self.nodes[parent].left = child
        else:
            self.nodes[parent].right = child
        node.column = split.column
        self.allow_side(split, on_left, &node.values,
                        NULL if split.levels == NULL else self.new_flags(self.n_levels[split.column] + 1))
        for _rule in range(self.nodes[parent].n_rules):
            n_conditions = self.lists[at + 1]
            self.reserve(2 + n_conditions)
            start, possible = self.size, True
            self.lists[start] = self.lists[at]
            self.size += 2
            for k in range(n_conditions):
                condition = &self.conditions[self.lists[at + 2 + k]]
                if condition.column == split.column:
                    if not self.can_satisfy(condition, &node.values):
                        possible = False
                        break
                    if self.must_satisfy(condition, &node.values):
                        continue
                self.lists[self.size] = self.lists[at + 2 + k]
                self.size += 1
            at += 2 + n_conditions
            if not possible:
                self.size = start
                continue
            self.lists[start + 1] = self.size - start - 2
            node.n_rules += 1
            if self.lists[start + 1] == 0:
                break                                   # it holds, so that later rules do not matter
        return 0

    # ---- the tree as arrays -----------------------------------------------------------------------------------------

    def fill(self, int64_t[::1] feature, double[::1] threshold, int64_t[::1] left, int64_t[::1] right,
             double[::1] weight, unsigned char[::1] missing_left, int64_t[::1] subset_start,
             unsigned char[::1] subset_left, int64_t[::1] answer):
        """Write the nodes as the arrays of a `Tree`. Of two children, unseen levels go to the one of weight 1.

        `answer` is a rule, or the number of rules if none holds, or -1 - k in undecided leaf k.
        """
        cdef Py_ssize_t i, n, flag = 0, n_undecided = 0
        cdef const RuleTreeNode *node
        weight[0] = 1
        for i in range(self.n_nodes):
            node = &self.nodes[i]
            left[i], right[i], feature[i], subset_start[i] = node.left, node.right, -1, -1
            threshold[i], missing_left[i], answer[i] = 0, 0, node.answer
            if node.left < 0:
                if node.answer == UNDECIDED:
                    answer[i] = -1 - n_undecided
                    n_undecided += 1
                continue
            feature[i], threshold[i], missing_left[i] = node.split.column, node.split.threshold, node.split.missing_left
            weight[node.left], weight[node.right] = 1, 0
            if node.split.levels != NULL:
                n = self.n_levels[node.split.column]
                subset_start[i] = flag
                if n > 0:
                    memcpy(&subset_left[flag], node.split.levels + 1, n)
                flag += n
                weight[node.left], weight[node.right] = node.split.levels[0], 1 - node.split.levels[0]

    def undecided_sizes(self):
        """Return the numbers of rules and of their conditions in the lists of all undecided leaves."""
        cdef Py_ssize_t i, _rule, at, n_rules = 0, n_conditions = 0
        for i in range(self.n_nodes):
            if self.nodes[i].left < 0 and self.nodes[i].answer == UNDECIDED:
                at, n_rules = self.nodes[i].first, n_rules + self.nodes[i].n_rules
                for _rule in range(self.nodes[i].n_rules):
                    n_conditions += self.lists[at + 1]
                    at += 2 + self.lists[at + 1]
        return n_rules, n_conditions

    def fill_undecided(self, int64_t[::1] group_start, int64_t[::1] rule, int64_t[::1] test_start, int64_t[::1] ids):
        """Write the lists of the undecided leaves, in their order, in the form of `match.first_rules`."""
        cdef Py_ssize_t i, _rule, k, at, group = 0, n_rules = 0, n_conditions = 0
        group_start[0] = test_start[0] = 0
        for i in range(self.n_nodes):
            if self.nodes[i].left >= 0 or self.nodes[i].answer != UNDECIDED:
                continue
            at = self.nodes[i].first
            for _rule in range(self.nodes[i].n_rules):
                rule[n_rules] = self.lists[at]
                for k in range(self.lists[at + 1]):
                    ids[n_conditions] = self.lists[at + 2 + k]
                    n_conditions += 1
                n_rules += 1
                test_start[n_rules] = n_conditions
                at += 2 + self.lists[at + 1]
            group += 1
            group_start[group] = n_rules
