"""Mixtures of leaves, for rows that go down a tree in fractions where a value is missing.

Invariant: a row's mixture depends on nothing but the row.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free, malloc

from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t
from kernelrules.core.tree.predict cimport LEFT, MISSING, Nodes, Side, TreeSplits, settled, side_of

from time import perf_counter

from kernelrules.core.base.status import raise_for_status


cdef struct RowFraction:
    Py_ssize_t node
    double share


cdef struct LeafMixture:
    const TreeSplits *splits
    const char *data
    Py_ssize_t row_step, column_step        # in bytes
    bint single                             # rows of float32
    const double *values                    # n_values of each node
    Py_ssize_t n_values
    double *out                             # n_values of each row
    RowFraction *waiting                       # `room` for each thread
    Py_ssize_t room


cdef void mix_leaves(const TreeSplits *s, const real_t *row, Py_ssize_t column_step, const double *values,
                     Py_ssize_t n_values, double *out, RowFraction *waiting) noexcept nogil:
    """out = the mean of the values of all leaves that fractions of a row come to, weighted by their shares.

    At a split that the row's values cannot decide it goes both ways; the right part waits, one at most on a level.
    """
    cdef Py_ssize_t n_waiting = 1, node, k
    cdef double share, on_left
    cdef Side side
    for k in range(n_values):
        out[k] = 0
    waiting[0].node, waiting[0].share = 0, 1
    while n_waiting > 0:
        n_waiting -= 1
        node, share = waiting[n_waiting].node, waiting[n_waiting].share
        while s.left[node] >= 0:
            side = side_of(s, row, column_step, s.feature[node], s.threshold[node], s.subset_start[node])
            if side == MISSING:
                on_left = s.weight[s.left[node]] / (s.weight[s.left[node]] + s.weight[s.right[node]])
                waiting[n_waiting].node, waiting[n_waiting].share = s.right[node], share * (1 - on_left)
                n_waiting += 1
                node, share = s.left[node], share * on_left
            else:
                node = s.left[node] if settled(s, side, node) == LEFT else s.right[node]
        for k in range(n_values):
            out[k] += share * values[node * n_values + k]


cdef void mix_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef const LeafMixture *m = <const LeafMixture *> context
    cdef RowFraction *waiting = m.waiting + worker * m.room
    cdef const char *row
    cdef double *out
    cdef Py_ssize_t i
    for i in range(first, last):
        row, out = m.data + i * m.row_step, m.out + i * m.n_values
        if m.single:
            mix_leaves(m.splits, <const float *> row, m.column_step, m.values, m.n_values, out, waiting)
        else:
            mix_leaves(m.splits, <const double *> row, m.column_step, m.values, m.n_values, out, waiting)


def fractional_values(Nodes nodes, const real_t[:, :] x, const double[:, ::1] values, double[:, ::1] out,
                      int n_threads, tick=None):
    """out[i] = the mixture of the leaves' rows of `values` that row i comes to, parts of it where values are missing:
    a part's share on either side is the child's share of the training weight."""
    cdef const TreeSplits *s = &nodes.splits
    cdef Py_ssize_t n = x.shape[0], n_values = values.shape[1], first = 0, last, step = 64 * n_threads
    cdef LeafMixture mixing
    if x.shape[1] != s.n_features or values.shape[0] != s.n_nodes or out.shape[0] != n or out.shape[1] != n_values:
        raise ValueError("the shapes of the rows, the tree and the values do not agree")
    if n == 0 or n_values == 0:
        return
    mixing.splits, mixing.data, mixing.single = s, <const char *> &x[0, 0], real_t is float
    mixing.row_step, mixing.column_step = x.strides[0], x.strides[1]
    mixing.values, mixing.n_values, mixing.out, mixing.room = &values[0, 0], n_values, &out[0, 0], nodes.depth + 1
    mixing.waiting = <RowFraction *> malloc(n_threads * mixing.room * sizeof(RowFraction))
    if mixing.waiting == NULL:
        raise_for_status(NO_MEMORY)
    try:
        while first < n:
            last = min(first + step, n)
            started = perf_counter()
            with nogil:
                run_team(first, last, 64, n_threads, mix_rows, &mixing)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(first, n)
    finally:
        free(mixing.waiting)
