"""The table of split criteria, criteria.h, as Python sees it.

`CRITERIA` maps the name of each criterion to its row; `CLASS_CRITERIA` and `NUMBER_CRITERIA` are the names by kind. The
node-by-node builder and pruning evaluate losses by the methods of a row, which call the functions of the table.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

from kernelrules.core.base.status cimport NO_MEMORY

import numpy as np

from kernelrules.core.base.status import raise_for_status


cdef class Row:
    """One criterion of the table.

    Attributes
    ----------
    name : str
        As `tree.grow` accepts it.
    number : int
        Its number in `api.h`, or a larger one that only the package uses.
    of_classes : bool
        Whether it is a criterion for classes; otherwise for numbers.
    of_medians : bool
        Whether leaves predict medians; otherwise means.
    has_exact_scores, needs_logs, by_ratio, ties_by_gini, needs_nonnegative : bool
        As in criteria.h.
    subtracts_mean, divides_by_mean : bool
        How targets may be normalised.
    degree : int
        Loss of c·y: c ** degree times that of y.
    """

    cdef const CriterionRow *row
    cdef readonly str name
    cdef readonly int number, degree
    cdef readonly bint of_classes, of_medians, has_exact_scores, needs_logs, by_ratio, ties_by_gini
    cdef readonly bint needs_nonnegative, subtracts_mean, divides_by_mean

    cdef int _read(self, const CriterionRow *row) except -1:
        self.row, self.name, self.number, self.degree = row, row.name.decode(), row.number, row.degree
        self.of_classes, self.of_medians = row.sums == CLASS_WEIGHTS, row.sums == SORTED_TARGETS
        self.has_exact_scores, self.needs_logs = row.has_exact_scores, row.needs_logs
        self.by_ratio, self.ties_by_gini, self.needs_nonnegative = row.by_ratio, row.ties_by_gini, row.needs_nonnegative
        self.subtracts_mean = row.normalisation == SUBTRACT_MEAN
        self.divides_by_mean = row.normalisation == DIVIDE_BY_MEAN
        return 0

    def class_losses(self, sums):
        """W·Q of nodes, (...), from the weights of their classes, (n_classes, ...)."""
        cdef const double[:, ::1] weights = np.ascontiguousarray(sums.reshape(len(sums), -1), dtype=np.float64)
        out = np.empty(weights.shape[1])
        self._fill_losses(weights, out, False)
        return out.reshape(sums.shape[1:])

    def impurities(self, shares):
        """Q of nodes, (n_nodes,), from the shares of their classes, (n_nodes, n_classes)."""
        cdef const double[:, ::1] weights = np.ascontiguousarray(shares.T, dtype=np.float64)
        out = np.empty(weights.shape[1])
        self._fill_losses(weights, out, True)
        return np.maximum(out, 0.0)

    cdef int _fill_losses(self, const double[:, ::1] weights, double[::1] out, bint are_shares) except -1:
        cdef Py_ssize_t n_classes = weights.shape[0], i, k
        cdef double lowest = 0 if self.row.share_loss != NULL else -INFINITY    # differences may round below 0
        cdef double *sums = <double *> malloc((1 + n_classes) * sizeof(double))
        cdef Criterion criterion
        if self.row.loss == NULL:
            free(sums)
            raise ValueError(f"{self.name} is not a criterion for classes")
        if sums == NULL:
            raise_for_status(NO_MEMORY)
        criterion = make_criterion(self.row, n_classes, True)
        for i in range(weights.shape[1]):
            sums[0] = 0
            for k in range(n_classes):
                sums[1 + k] = max(weights[k, i], lowest)
                sums[0] += sums[1 + k]
            if are_shares:
                sums[0] = 1
            out[i] = (self.row.share_loss if self.row.share_loss != NULL else self.row.loss)(&criterion, sums)
        free(sums)
        return 0

    def row_losses(self, y, predicted):
        """Losses of targets (n, d) whose leaves predict `predicted` (n, d), one by one."""
        cdef const double[:, ::1] targets = np.ascontiguousarray(y, dtype=np.float64)
        cdef const double[:, ::1] values = np.ascontiguousarray(predicted, dtype=np.float64)
        out = np.empty((targets.shape[0], targets.shape[1]))
        cdef double[:, ::1] losses = out
        cdef Py_ssize_t i, j
        for i in range(targets.shape[0]):
            for j in range(targets.shape[1]):
                losses[i, j] = self.row.row_loss(1, targets[i, j], values[i, j])
        return out

    def row_terms(self, y):
        """row_term(y) of an array of targets."""
        cdef const double[::1] targets = np.ascontiguousarray(y, dtype=np.float64).reshape(-1)
        out = np.empty(targets.shape[0])
        cdef double[::1] terms = out
        cdef Py_ssize_t i
        for i in range(targets.shape[0]):
            terms[i] = self.row.row_term(targets[i])
        return out.reshape(y.shape)

    def sum_terms(self, sums, const double[::1] units):
        """sum_term of nodes, (...), from their weights and the sums of their targets, (1 + d, ...), in `units` (d,)."""
        cdef const double[:, ::1] given = np.ascontiguousarray(sums.reshape(len(sums), -1), dtype=np.float64)
        cdef Py_ssize_t n = given.shape[0] - 1, i, k
        out = np.empty(given.shape[1])
        cdef double[::1] terms = out
        cdef double *of_node = <double *> malloc(max(n, 1) * sizeof(double))
        if of_node == NULL:
            raise_for_status(NO_MEMORY)
        for i in range(given.shape[1]):
            for k in range(n):
                of_node[k] = given[1 + k, i]
            terms[i] = self.row.sum_term(given[0, i], of_node, &units[0], n)
        free(of_node)
        return out.reshape(sums.shape[1:])


def _read_table():
    cdef dict rows = {}
    cdef Row row
    cdef int i
    for i in range(N_CRITERIA):
        if KR_CRITERIA[i].name != NULL:
            row = Row.__new__(Row)
            row._read(KR_CRITERIA + i)
            rows[row.name] = row
    return rows


CRITERIA = _read_table()
CLASS_CRITERIA = tuple(name for name, row in CRITERIA.items() if row.of_classes)
NUMBER_CRITERIA = tuple(name for name, row in CRITERIA.items() if not row.of_classes)
