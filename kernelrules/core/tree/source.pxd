# Trees for compiled callers: the parts behind cython_api. See source.pyx.

from kernelrules.core.base.types cimport real_t


cdef extern from "kernelrules/api.h" nogil:
    ctypedef enum kr_criterion_kind:
        KR_OWN

    ctypedef struct kr_criterion:
        int kind
        void *state
        double (*loss)(void *state, const double *class_weights, Py_ssize_t n_classes) noexcept nogil

    ctypedef struct kr_column:
        Py_ssize_t n
        const double *x
        const Py_ssize_t *order
        Py_ssize_t n_known
        const Py_ssize_t *labels
        Py_ssize_t n_classes
        const double *y
        const double *weights
        Py_ssize_t min_leaf

    ctypedef struct kr_split:
        double gain
        double threshold
        Py_ssize_t n_left
        int missing_left

    ctypedef struct kr_tree:
        Py_ssize_t n_nodes
        Py_ssize_t n_features
        const Py_ssize_t *feature
        const double *threshold
        const Py_ssize_t *left
        const Py_ssize_t *right
        const int *missing_left


cdef int order_rows(const real_t *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known) noexcept nogil
cdef int scan_source(const kr_column *column, const kr_criterion *criterion, kr_split *split) noexcept nogil
cdef int apply_source(const kr_tree *tree, const double *x, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t *leaves,
                      int n_threads) noexcept nogil
