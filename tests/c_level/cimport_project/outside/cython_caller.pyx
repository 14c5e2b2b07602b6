"""Gram matrices and a row source of our own, from Cython, without the GIL."""

from kernelrules.cython_api cimport (
    KR_API_VERSION, KR_BAD_ARGUMENT, KR_CALLBACK, KR_OK, KR_RBF, kr_api_version, kr_gram, kr_gram_f, kr_kernel,
    kr_row_source, kr_status_text,
)

import numpy as np


def versions():
    """The API version compiled against, and the one installed."""
    return KR_API_VERSION, kr_api_version()


def rbf(const double[:, ::1] x, double gamma, int n_threads):
    """The RBF Gram matrix of x with itself."""
    cdef Py_ssize_t n = x.shape[0], p = x.shape[1]
    cdef double[:, ::1] out = np.empty((n, n))
    cdef kr_kernel kernel
    cdef int status
    kernel.kind, kernel.gamma = KR_RBF, gamma
    with nogil:
        status = kr_gram(&x[0, 0], n, p, NULL, 0, 0, p, &kernel, &out[0, 0], n, n_threads)
    if status != KR_OK:
        raise RuntimeError(kr_status_text(status).decode())
    return np.asarray(out)


def cross(const float[:, ::1] x, const float[:, ::1] z, int kind, int degree, double gamma, double coef0):
    """Any kernel between float32 rows."""
    cdef Py_ssize_t n = x.shape[0], m = z.shape[0], p = x.shape[1]
    cdef float[:, ::1] out = np.empty((n, m), dtype=np.float32)
    cdef kr_kernel kernel
    cdef int status
    kernel.kind, kernel.degree, kernel.gamma, kernel.coef0 = kind, degree, gamma, coef0
    with nogil:
        status = kr_gram_f(&x[0, 0], n, p, &z[0, 0], m, p, p, &kernel, &out[0, 0], m, 2)
    if status != KR_OK:
        raise RuntimeError(kr_status_text(status).decode())
    return np.asarray(out)


cdef struct Chain:                  # min(i, j) + 1: the kernel of a random walk, never stored as a matrix
    Py_ssize_t n


cdef int chain_rows(void *state, const Py_ssize_t *rows, Py_ssize_t n_rows, double *out) noexcept nogil:
    cdef Py_ssize_t n = (<Chain *> state).n, r, j
    for r in range(n_rows):
        if rows[r] < 0 or rows[r] >= n:
            return KR_CALLBACK
        for j in range(n):
            out[r * n + j] = min(rows[r], j) + 1
    return KR_OK


def rows_of_own_kernel(Py_ssize_t n, Py_ssize_t[::1] rows):
    """Some rows through a kr_row_source, as a solver would ask for them; and the status."""
    cdef Chain chain
    cdef kr_row_source source
    cdef double[:, ::1] out = np.full((rows.shape[0], n), np.nan)
    cdef int status
    chain.n = n
    source.state, source.fill = &chain, chain_rows
    with nogil:
        status = source.fill(source.state, &rows[0], rows.shape[0], &out[0, 0])
    return np.asarray(out), status


def refused():
    """What the API answers to arguments that it refuses: a status, never a crash."""
    cdef double x[4]
    cdef double out[4]
    cdef kr_kernel good, bad_gamma, bad_kind
    good.kind, good.gamma = KR_RBF, 1.0
    bad_gamma.kind, bad_gamma.gamma = KR_RBF, -1.0
    bad_kind.kind, bad_kind.gamma = 99, 1.0
    return {
        "fine": kr_gram(x, 0, 2, NULL, 0, 0, 2, &good, out, 2, 1) == KR_OK,
        "null data": kr_gram(NULL, 2, 2, NULL, 0, 0, 2, &good, out, 2, 1) == KR_BAD_ARGUMENT,
        "null kernel": kr_gram(x, 2, 2, NULL, 0, 0, 2, NULL, out, 2, 1) == KR_BAD_ARGUMENT,
        "null result": kr_gram(x, 2, 2, NULL, 0, 0, 2, &good, NULL, 2, 1) == KR_BAD_ARGUMENT,
        "negative size": kr_gram(x, -1, 2, NULL, 0, 0, 2, &good, out, 2, 1) == KR_BAD_ARGUMENT,
        "no features": kr_gram(x, 2, 2, NULL, 0, 0, 0, &good, out, 2, 1) == KR_BAD_ARGUMENT,
        "short stride": kr_gram(x, 2, 1, NULL, 0, 0, 2, &good, out, 2, 1) == KR_BAD_ARGUMENT,
        "short result": kr_gram(x, 2, 2, NULL, 0, 0, 2, &good, out, 1, 1) == KR_BAD_ARGUMENT,
        "no threads": kr_gram(x, 2, 2, NULL, 0, 0, 2, &good, out, 2, 0) == KR_BAD_ARGUMENT,
        "gamma": kr_gram(x, 2, 2, NULL, 0, 0, 2, &bad_gamma, out, 2, 1) == KR_BAD_ARGUMENT,
        "kind": kr_gram(x, 2, 2, NULL, 0, 0, 2, &bad_kind, out, 2, 1) == KR_BAD_ARGUMENT,
    }
