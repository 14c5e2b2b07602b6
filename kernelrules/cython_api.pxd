# The public C-level surface of kernelrules. Final once released: later versions add, and nothing here changes.
#
#     from kernelrules.cython_api cimport kr_gram, kr_kernel, KR_RBF, KR_OK
#
# Every function is noexcept nogil, keeps no state, may be called from several threads at once, and returns a status:
# KR_OK, or a negative code (kr_status_text says what it means). Nothing that the caller passes is kept or freed.

cdef extern from "kernelrules/api.h" nogil:
    int KR_API_VERSION

    ctypedef enum kr_status:
        KR_OK
        KR_MAX_ITER
        KR_STALLED
        KR_STOPPED
        KR_NO_MEMORY
        KR_BAD_ARGUMENT
        KR_CALLBACK

    ctypedef enum kr_kernel_kind:
        KR_LINEAR
        KR_POLYNOMIAL
        KR_RBF
        KR_LAPLACIAN
        KR_SIGMOID

    ctypedef struct kr_kernel:
        int kind
        int degree
        double gamma
        double coef0

    ctypedef struct kr_row_source:
        void *state
        int (*fill)(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept nogil

    ctypedef struct kr_smo_problem:
        Py_ssize_t n_points
        Py_ssize_t n_variables
        Py_ssize_t split
        const double *diagonal
        const double *linear
        const double *lower
        const double *upper
        double kink

    ctypedef struct kr_smo_state:
        double *a
        double *gradient

    ctypedef struct kr_smo_report:
        double objective
        double violation
        double offset[2]
        Py_ssize_t n_steps
        Py_ssize_t n_rows

    ctypedef struct kr_smo_options:
        double tol
        Py_ssize_t max_steps
        size_t cache_bytes
        int n_threads
        int (*proceed)(void *context, const kr_smo_report *report) noexcept nogil
        void *context

    ctypedef enum kr_criterion_kind:
        KR_GINI
        KR_ENTROPY
        KR_MISCLASSIFICATION
        KR_SQUARED_ERROR
        KR_POISSON
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

# The API version of the installed package; KR_API_VERSION is the one a caller was compiled with.
cdef int kr_api_version() noexcept nogil

# A sentence for a status, in static memory.
cdef const char *kr_status_text(int status) noexcept nogil

# out[i * stride_out + j] = k(x_i, z_j), with x_i the n_features numbers at x + i * stride_x; z NULL means that z is x
# (n_z and stride_z are then ignored, and half of the work is saved). Strides count numbers and are at least a row long.
# The data are finite numbers (kernels of others are unspecified, but nothing worse). out does not overlap x or z.
# n_threads >= 1; the result does not depend on it. kr_gram_f is the same in float.
cdef int kr_gram(const double *x, Py_ssize_t n_x, Py_ssize_t stride_x, const double *z, Py_ssize_t n_z,
                 Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, double *out,
                 Py_ssize_t stride_out, int n_threads) noexcept nogil
cdef int kr_gram_f(const float *x, Py_ssize_t n_x, Py_ssize_t stride_x, const float *z, Py_ssize_t n_z,
                   Py_ssize_t stride_z, Py_ssize_t n_features, const kr_kernel *kernel, float *out,
                   Py_ssize_t stride_out, int n_threads) noexcept nogil

# Solves a dual problem (described in api.h) whose kernel is seen through rows only. state.a holds a start that keeps
# the bounds, and all zeros will often do; the sums of its groups are the constraint. Returns KR_OK where the violation
# came to tol, KR_MAX_ITER, KR_STALLED or KR_STOPPED where it did not, and then state and report stand as for KR_OK; or
# an error, a negative status of the source's own included, and then they hold nothing. The gradient is made anew from
# kernel rows at the end, unless it was stopped.
cdef int kr_smo_solve(const kr_row_source *source, const kr_smo_problem *problem, const kr_smo_options *options,
                      kr_smo_state *state, kr_smo_report *report) noexcept nogil

# order[:n]: the rows of x in ascending order, equal ones by number, those that are NaN last; n_known: those that are
# not. n is below 2^31. kr_presort_f is the same in float.
cdef int kr_presort(const double *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known) noexcept nogil
cdef int kr_presort_f(const float *x, Py_ssize_t n, Py_ssize_t *order, Py_ssize_t *n_known) noexcept nogil

# The best split of one presorted column (described in api.h) by a criterion: of equal ones the one with the lowest
# threshold, of these the one that sends missing rows right. The order is believed: a wrong one gives a wrong split, and
# numbers outside 0 to n - 1 are refused.
cdef int kr_scan_column(const kr_column *column, const kr_criterion *criterion, kr_split *split) noexcept nogil

# leaves[i]: the node that row i, the n_features numbers at x + i * stride, comes to. n_threads >= 1. A tree in which a
# child does not come after its parent is refused.
cdef int kr_tree_apply(const kr_tree *tree, const double *x, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t *leaves,
                       int n_threads) noexcept nogil
