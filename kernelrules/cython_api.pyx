"""The public C-level surface: each function forwards to the core. The contract is in cython_api.pxd."""

from kernelrules.core.base cimport status as core_status
from kernelrules.core.svm cimport smo_source
from kernelrules.core.tree cimport source as tree_source
from kernelrules.core.gram.dense cimport DenseRows, dense_rows, fill_gram


cdef int kr_api_version() noexcept nogil:
    return KR_API_VERSION


cdef const char *kr_status_text(int status) noexcept nogil:
    return core_status.status_text(status)


cdef int kr_gram(const double *x, Py_ssize_t n_x, Py_ssize_t stride_x, const double *z, Py_ssize_t n_z,
                 Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, double *out,
                 Py_ssize_t stride_out, int n_threads) noexcept nogil:
    cdef DenseRows rows = dense_rows(x, n_x, stride_x), columns = dense_rows(z, n_z, stride_z)
    return fill_gram(&rows, NULL if z == NULL else &columns, n_features, <const core_status.kr_kernel *> kernel, False,
                     out, stride_out, n_threads)


cdef int kr_gram_f(const float *x, Py_ssize_t n_x, Py_ssize_t stride_x, const float *z, Py_ssize_t n_z,
                   Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, float *out,
                   Py_ssize_t stride_out, int n_threads) noexcept nogil:
    cdef DenseRows rows = dense_rows(x, n_x, stride_x), columns = dense_rows(z, n_z, stride_z)
    return fill_gram(&rows, NULL if z == NULL else &columns, n_features, <const core_status.kr_kernel *> kernel, True,
                     out, stride_out, n_threads)


cdef int kr_smo_solve(const kr_row_source *source, const kr_smo_problem *problem, const kr_smo_options *options,
                      kr_smo_state *state, kr_smo_report *report) noexcept nogil:
    return smo_source.solve_source(
        <const smo_source.kr_row_source *> source, <const smo_source.kr_smo_problem *> problem,
        <const smo_source.kr_smo_options *> options, <smo_source.kr_smo_state *> state,
        <smo_source.kr_smo_report *> report)


cdef int kr_presort(const double *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known) noexcept nogil:
    return tree_source.order_rows(x, n, order, n_known)


cdef int kr_presort_f(const float *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known) noexcept nogil:
    return tree_source.order_rows(x, n, order, n_known)


cdef int kr_scan_column(const kr_column *column, const kr_criterion *criterion, kr_split *split) noexcept nogil:
    return tree_source.scan_source(
        <const tree_source.kr_column *> column, <const tree_source.kr_criterion *> criterion,
        <tree_source.kr_split *> split)


cdef int kr_tree_apply(const kr_tree *tree, const double *x, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t *leaves,
                       int n_threads) noexcept nogil:
    return tree_source.apply_source(<const tree_source.kr_tree *> tree, x, n, stride, leaves, n_threads)
