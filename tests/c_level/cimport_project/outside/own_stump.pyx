"""A decision stump by a criterion of our own, the square root of Gini's for two classes, 2 W sqrt(p (1 - p))."""

from libc.math cimport sqrt

from kernelrules.cython_api cimport (
    KR_OK, KR_OWN, kr_column, kr_criterion, kr_presort, kr_presort_f, kr_scan_column, kr_split, kr_status_text, kr_tree,
    kr_tree_apply,
)

import numpy as np


cdef struct Calls:
    Py_ssize_t n


cdef double loss(void *state, const double *class_weights, Py_ssize_t n_classes) noexcept nogil:
    """Of the weights of two classes."""
    (<Calls *> state).n += 1
    return 2 * sqrt(class_weights[0] * class_weights[1])


def order(x):
    """Rows of a column in ascending order, and how many are not missing."""
    cdef Py_ssize_t[::1] rows = np.empty(len(x), dtype=np.intp)
    cdef const double[::1] wide
    cdef const float[::1] narrow
    cdef Py_ssize_t n_known = 0
    cdef int status
    if x.dtype == np.float32:
        narrow = x
        status = kr_presort_f(&narrow[0], len(x), &rows[0], &n_known)
    else:
        wide = x
        status = kr_presort(&wide[0], len(x), &rows[0], &n_known)
    return np.asarray(rows).tolist(), n_known, status


def grow(const double[:, ::1] x, labels, int kind=KR_OWN, Py_ssize_t min_leaf=1, y=None, weights=None):
    """The best split of all columns, as a tree of three nodes, and the leaf of every row."""
    cdef Py_ssize_t n = x.shape[0], j
    cdef Py_ssize_t[::1] classes = np.ascontiguousarray(labels, dtype=np.intp), rows = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] leaves = np.empty(n, dtype=np.intp)
    cdef double[::1] column_values, targets = np.zeros(n) if y is None else np.ascontiguousarray(y, dtype=float)
    cdef double[::1] w = np.ones(n) if weights is None else np.ascontiguousarray(weights, dtype=float)
    cdef Py_ssize_t feature[3]
    cdef Py_ssize_t left[3]
    cdef Py_ssize_t right[3]
    cdef double threshold[3]
    cdef int missing_left[3]
    cdef Calls calls
    cdef kr_column column
    cdef kr_criterion criterion
    cdef kr_split split, best
    cdef kr_tree stump
    cdef int status
    calls.n = 0
    best.gain = -1
    feature[0] = feature[1] = feature[2] = -1
    criterion.kind, criterion.state, criterion.loss = kind, &calls, loss
    column.n, column.min_leaf, column.order = n, min_leaf, &rows[0]
    column.labels, column.n_classes, column.y = &classes[0], np.max(labels) + 1, &targets[0]
    column.weights = NULL if weights is None else &w[0]
    for j in range(x.shape[1]):
        column_values = np.array(x[:, j])
        column.x = &column_values[0]
        with nogil:
            status = kr_presort(column.x, n, &rows[0], &column.n_known)
            if status == KR_OK:
                status = kr_scan_column(&column, &criterion, &split)
        if status != KR_OK:
            raise RuntimeError(kr_status_text(status).decode())
        if split.gain > best.gain:
            best, feature[0] = split, j
    threshold[:] = [best.threshold, 0, 0]
    left[:], right[:] = [1, -1, -1], [2, -1, -1]
    missing_left[:] = [best.missing_left, 0, 0]
    stump.n_nodes, stump.n_features = 3, x.shape[1]
    stump.feature, stump.threshold, stump.left, stump.right = feature, threshold, left, right
    stump.missing_left = missing_left
    with nogil:
        status = kr_tree_apply(&stump, &x[0, 0], n, x.shape[1], &leaves[0], 2)
    if status != KR_OK:
        raise RuntimeError(kr_status_text(status).decode())
    return {
        "feature": feature[0], "threshold": best.threshold, "gain": best.gain, "n_left": best.n_left,
        "missing_left": bool(best.missing_left), "leaves": np.asarray(leaves).tolist(), "calls": calls.n,
    }


def refused():
    """Arguments that must be answered by a status: True for each that is."""
    cdef double x[3]
    cdef Py_ssize_t order[3]
    cdef Py_ssize_t labels[3]
    cdef Py_ssize_t children[3]
    cdef Py_ssize_t leaves[3]
    cdef Py_ssize_t n_known
    cdef kr_column column
    cdef kr_criterion criterion
    cdef kr_split split
    cdef kr_tree loop
    answers = {}
    x[:], order[:], labels[:] = [1, 2, 3], [0, 1, 2], [0, 1, 0]
    column.n, column.x, column.order, column.n_known, column.labels = 3, x, order, 3, labels
    column.n_classes, column.y, column.weights, column.min_leaf = 2, NULL, NULL, 1
    criterion.kind, criterion.state, criterion.loss = KR_OWN, NULL, NULL
    answers["no column to sort"] = kr_presort(NULL, 3, order, &n_known) < 0
    answers["a negative size"] = kr_presort(x, -1, order, &n_known) < 0
    answers["an own criterion without a function"] = kr_scan_column(&column, &criterion, &split) < 0
    criterion.kind = 77
    answers["an unknown criterion"] = kr_scan_column(&column, &criterion, &split) < 0
    criterion.kind = 3
    answers["targets that are not there"] = kr_scan_column(&column, &criterion, &split) < 0
    criterion.kind = 0
    labels[1] = 2
    answers["a label out of range"] = kr_scan_column(&column, &criterion, &split) < 0
    labels[1], order[2] = 1, 3
    answers["an order out of range"] = kr_scan_column(&column, &criterion, &split) < 0
    order[2], column.min_leaf = 2, 0
    answers["empty leaves"] = kr_scan_column(&column, &criterion, &split) < 0
    column.min_leaf = 1
    answers["nothing wrong"] = kr_scan_column(&column, &criterion, &split) == 0
    children[:] = [0, -1, -1]
    loop.n_nodes, loop.n_features, loop.feature, loop.threshold = 3, 1, labels, x
    loop.left, loop.right, loop.missing_left = children, children, NULL
    answers["a node that is its own child"] = kr_tree_apply(&loop, x, 3, 1, leaves, 1) < 0
    answers["no threads"] = kr_tree_apply(&loop, x, 3, 1, leaves, 0) < 0
    return answers
