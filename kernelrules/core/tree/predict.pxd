# The splits of a tree, and where one sends a row. See predict.pyx.

from libc.math cimport isnan
from libc.stdint cimport int64_t

from kernelrules.core.base.types cimport real_t

cdef enum Side:
    LEFT
    RIGHT
    MISSING
    UNSEEN              # a category that the node has not seen

cdef struct TreeSplits:     # borrowed from the arrays of a tree
    Py_ssize_t n_nodes, n_features
    const int64_t *feature
    const double *threshold
    const int64_t *left
    const int64_t *right
    const double *weight
    const unsigned char *missing_left
    const int64_t *subset_start
    const unsigned char *subset_left
    const int64_t *n_levels
    const double *directions
    const int64_t *surrogate_start       # NULL: no surrogates
    const int64_t *surrogate_feature
    const double *surrogate_threshold
    const unsigned char *surrogate_below_left
    const int64_t *surrogate_subset


cdef class Nodes:
    cdef TreeSplits splits
    cdef bint plain                         # every split compares a column with a threshold
    cdef object kept
    cdef readonly Py_ssize_t depth

    cdef int _borrow(self, tree) except -1
    cdef int _borrow_surrogates(self, surrogates, Py_ssize_t n_flags) except -1
    cdef bint _is_split(self, int64_t feature, int64_t subset, Py_ssize_t n_flags, Py_ssize_t n_oblique) noexcept nogil
    cdef Py_ssize_t _look_through(self, Py_ssize_t n_flags, Py_ssize_t n_oblique) except -2


cdef inline double entry(const real_t *row, Py_ssize_t column_step, Py_ssize_t column) noexcept nogil:
    return <double> (<const real_t *> (<const char *> row + column * column_step))[0]


cdef inline Side side_of(const TreeSplits *s, const real_t *row, Py_ssize_t column_step, int64_t feature,
                         double threshold, int64_t subset) noexcept nogil:
    """Where a split sends a row, as far as the row's values tell."""
    cdef double value = 0
    cdef const double *direction
    cdef unsigned char flag
    cdef Py_ssize_t j
    if feature < s.n_features:
        value = entry(row, column_step, feature)
    else:
        direction = s.directions + (feature - s.n_features) * s.n_features
        for j in range(s.n_features):
            if direction[j] != 0:       # a value that does not count may be missing
                value += direction[j] * entry(row, column_step, j)
    if isnan(value):
        return MISSING
    if subset < 0:
        return RIGHT if value > threshold else LEFT
    if not 0 <= value < s.n_levels[feature]:
        return UNSEEN
    flag = s.subset_left[subset + <Py_ssize_t> value]
    return LEFT if flag == 1 else (RIGHT if flag == 0 else UNSEEN)


cdef inline Side settled(const TreeSplits *s, Side side, Py_ssize_t node) noexcept nogil:
    """The side itself, or that of the larger child for UNSEEN; a tie goes left."""
    if side == UNSEEN:
        return LEFT if s.weight[s.left[node]] >= s.weight[s.right[node]] else RIGHT
    return side
