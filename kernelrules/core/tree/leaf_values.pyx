"""The path of nodes to a row's leaf, and the prediction of the leaf's linear model.

    path     leaf, its parent, the parent's parent, ..., the root
    answer   model[leaf] · (row, 1), a missing value of the row replaced by its column's fill, if there is one

Invariant: a row's answer depends on nothing but the row and its leaf.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport isnan
from libc.stdint cimport int64_t

from kernelrules.core.base.types cimport real_t

cdef enum:
    ROWS_BETWEEN_SIGNAL_CHECKS = 2048


def fill_paths(const int64_t[::1] parent, const int64_t[::1] leaves, const int64_t[::1] indptr,
               int64_t[::1] indices):
    """indices[indptr[i]:indptr[i + 1]] = the nodes from the root to leaf i, found from below."""
    cdef Py_ssize_t i, k
    cdef int64_t node
    for i in range(leaves.shape[0]):
        node = leaves[i]
        for k in range(indptr[i + 1] - 1, indptr[i] - 1, -1):
            indices[k] = node
            node = parent[node]
        if i % ROWS_BETWEEN_SIGNAL_CHECKS == 0:
            PyErr_CheckSignals()


def linear_values(const real_t[:, :] x, const double[:, ::1] linear, const double[::1] fill, const int64_t[::1] leaves,
                  double[::1] out):
    """out[i] = the linear model of leaf i at row i, or NaN where a value that it needs is missing and `fill` is None.

    The last column of `linear` holds the constants.
    """
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1], i, j
    cdef const double *model
    cdef bint filled = fill is not None
    cdef double value, total
    if linear.shape[1] != p + 1 or leaves.shape[0] != n or out.shape[0] != n or (filled and fill.shape[0] != p):
        raise ValueError("the shapes of the rows and the models do not agree")
    for i in range(n):
        if not 0 <= leaves[i] < linear.shape[0]:
            raise ValueError("there are fewer linear models than nodes")
        model, total = &linear[leaves[i], 0], 0
        for j in range(p):
            if model[j] != 0:
                value = x[i, j]
                total += model[j] * (fill[j] if filled and isnan(value) else value)
        out[i] = total + model[p]
        if i % ROWS_BETWEEN_SIGNAL_CHECKS == 0:
            PyErr_CheckSignals()
