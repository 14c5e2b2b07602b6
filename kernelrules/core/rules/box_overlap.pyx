"""Which conditions the rules of an ordered list need: whether a box meets any of the boxes of later rules.

A rule covers a box: an interval of each column, flags of its levels, and whether a missing value is inside. Boxes are
the leaves of a bounding volume hierarchy, a binary tree whose inner nodes have the hull of all boxes below them and the
latest place of their rules. Node i has the children 2i and 2i + 1, and the m boxes are the nodes m to 2m - 1. A search
descends if the hull meets the conditions and a later rule is below, and stops at the first box. The rules of a decision
tree in depth-first order are neighbours in space, so that hulls are small and few nodes are visited.

Invariant: a hull meets everything that a box below it meets, so that the result does not depend on the order of the
boxes.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t

from kernelrules.core.base.interrupts cimport better_step

from time import perf_counter

cdef enum:
    MAX_STACK = 128          # two entries per level, and a tree has at most 64 levels

cpdef enum ConditionKind:   # bits of a condition
    MISSING = 1             # a missing value satisfies it
    LEVELS = 2              # it is a set of levels


cdef struct BoxTree:        # pointers are borrowed
    Py_ssize_t n_boxes, n_columns, n_levels
    const double *bounds    # (2 n_boxes, n_columns, 2)
    const uint8_t *missing  # (2 n_boxes, n_columns)
    const uint8_t *levels   # (2 n_boxes, n_levels), the levels of all columns
    const int64_t *latest   # (2 n_boxes,) the latest place of a rule

cdef struct BoxConditions:
    const int64_t *column
    const double *bounds        # (n, 2)
    const uint8_t *kind
    const int64_t *code_start   # condition k has the codes code_start[k] to code_start[k + 1] - 1
    const int64_t *codes        # columns of `levels`


cdef bint meets(const BoxTree *tree, Py_ssize_t node, const BoxConditions *conditions, Py_ssize_t k) noexcept nogil:
    """Return whether a value of the box satisfies condition k."""
    cdef Py_ssize_t at = node * tree.n_columns + conditions.column[k], i
    if conditions.kind[k] & MISSING and tree.missing[at]:
        return True
    if conditions.kind[k] & LEVELS:
        for i in range(conditions.code_start[k], conditions.code_start[k + 1]):
            if tree.levels[node * tree.n_levels + conditions.codes[i]]:
                return True
        return False
    return (max(tree.bounds[2 * at], conditions.bounds[2 * k])
            < min(tree.bounds[2 * at + 1], conditions.bounds[2 * k + 1]))


cdef bint meets_later_box(const BoxTree *tree, Py_ssize_t place, const BoxConditions *conditions, const uint8_t *kept,
                          Py_ssize_t first, Py_ssize_t end, Py_ssize_t without) noexcept nogil:
    """Return whether a box of a later rule meets all kept conditions from first to end - 1 except `without`."""
    cdef int64_t stack[MAX_STACK]
    cdef Py_ssize_t n = 1, k
    cdef int64_t node
    cdef bint inside
    stack[0] = 1
    while n:
        n -= 1
        node = stack[n]
        if tree.latest[node] <= place:
            continue
        inside = True
        for k in range(first, end):
            if kept[k] and k != without and not meets(tree, node, conditions, k):
                inside = False
                break
        if not inside:
            continue
        if node >= tree.n_boxes:
            return True
        stack[n] = 2 * node
        stack[n + 1] = 2 * node + 1
        n += 2
    return False


cdef class BoxHierarchy:
    """Boxes and their hulls, in the order of the module's docstring; row 0 is not used.

    Parameters
    ----------
    bounds : ndarray (2m, c, 2)
        Limits of the interval low < x <= high of every column.
    missing : ndarray (2m, c) of uint8
        Whether missing values are inside.
    levels : ndarray (2m, l) of uint8
        Which levels are inside, for all columns one after the other.
    latest : ndarray (2m,) of int64
        The latest place of a rule in the list.
    """

    cdef const double[:, :, ::1] bounds
    cdef const uint8_t[:, ::1] missing
    cdef const uint8_t[:, ::1] levels
    cdef const int64_t[::1] latest

    def __cinit__(self, const double[:, :, ::1] bounds, const uint8_t[:, ::1] missing, const uint8_t[:, ::1] levels,
                  const int64_t[::1] latest):
        if not (bounds.shape[0] == missing.shape[0] == levels.shape[0] == latest.shape[0] and bounds.shape[2] == 2
                and bounds.shape[1] == missing.shape[1]) or latest.shape[0] < 2 or latest.shape[0] % 2:
            raise ValueError("the arrays of the boxes differ in shape")
        self.bounds, self.missing, self.levels, self.latest = bounds, missing, levels, latest

    def drop_unneeded(self, const int64_t[::1] start, const int64_t[::1] column, const double[:, ::1] bounds,
                      const uint8_t[::1] kind, const int64_t[::1] code_start, const int64_t[::1] codes,
                      uint8_t[::1] kept, tick=None):
        """Set kept[k] to 0 for the conditions that rules do not need, one after the other.

        Rule r has place r and the conditions start[r] to start[r + 1] - 1. It loses a condition if no later box meets
        all others that it has kept. All entries of `kept` must be 1.
        """
        cdef Py_ssize_t n_rules = start.shape[0] - 1, n = column.shape[0], first = 0, end, step = 1, r, k
        cdef BoxTree tree
        cdef BoxConditions conditions
        if n == 0:
            return
        if not (bounds.shape[0] == kind.shape[0] == kept.shape[0] == code_start.shape[0] - 1 == n
                and bounds.shape[1] == 2 and n_rules >= 0 and start[0] == 0 and start[n_rules] == n
                and code_start[0] == 0 and code_start[n] == codes.shape[0]):
            raise ValueError("the arrays of the conditions differ in length")
        for r in range(n_rules):
            if start[r] > start[r + 1]:
                raise ValueError(f"rule {r} has a negative number of conditions")
        for k in range(n):
            if not 0 <= column[k] < self.bounds.shape[1] or code_start[k] > code_start[k + 1]:
                raise ValueError(f"condition {k} has a column or codes out of range")
        for k in range(codes.shape[0]):
            if not 0 <= codes[k] < self.levels.shape[1]:
                raise ValueError(f"code {k} is not that of a level")
        tree.n_boxes, tree.n_columns = self.latest.shape[0] // 2, self.bounds.shape[1]
        tree.n_levels = self.levels.shape[1]
        tree.bounds, tree.missing, tree.latest = &self.bounds[0, 0, 0], &self.missing[0, 0], &self.latest[0]
        tree.levels = &self.levels[0, 0] if tree.n_levels else NULL
        conditions.column, conditions.bounds, conditions.kind = &column[0], &bounds[0, 0], &kind[0]
        conditions.code_start, conditions.codes = &code_start[0], &codes[0] if codes.shape[0] else NULL
        while first < n_rules:
            end = min(first + step, n_rules)
            started = perf_counter()
            with nogil:
                for r in range(first, end):
                    for k in range(start[r], start[r + 1]):
                        if not meets_later_box(&tree, r, &conditions, &kept[0], start[r], start[r + 1], k):
                            kept[k] = 0
            first, step = end, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, n_rules)
