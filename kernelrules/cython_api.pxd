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
