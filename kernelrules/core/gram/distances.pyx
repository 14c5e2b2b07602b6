"""Squared distances between rows, and RBF Gram matrices of many gammas from them: K = exp(-gamma·squares).

Invariant: every entry is computed by itself, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy

from kernelrules.core.gram.kernels cimport RBF, SQUARED_DISTANCE, KernelFunction, evaluate_row, function_of_kernel
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.base.status cimport kr_kernel
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport real_t

from time import perf_counter

from kernelrules.core.gram.dense import gram_dense


def distances_dense(const real_t[:, ::1] x, real_t[:, ::1] out, int n_threads, tick=None):
    """Fill `out` with the squared distances between the rows of x."""
    gram_dense(x, None, (SQUARED_DISTANCE, 0, 1.0, 0.0), out, n_threads, tick, True)


cdef struct ExpLoop:
    const void *squares
    void *out
    Py_ssize_t n
    KernelFunction function
    bint single


cdef void exp_of_row(const ExpLoop *loop, Py_ssize_t i, const real_t *squares, real_t *out) noexcept nogil:
    memcpy(out, squares, loop.n * sizeof(real_t))
    evaluate_row(&loop.function, <real_t> 0, NULL, out, loop.n)
    out[i] = 1


cdef void exp_of_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef ExpLoop *loop = <ExpLoop *> context
    cdef Py_ssize_t i, n = loop.n
    for i in range(first, last):
        if loop.single:
            exp_of_row(loop, i, <const float *> loop.squares + i * n, <float *> loop.out + i * n)
        else:
            exp_of_row(loop, i, <const double *> loop.squares + i * n, <double *> loop.out + i * n)


def exp_of_distances(const real_t[:, ::1] squares, double gamma, real_t[:, ::1] out, int n_threads):
    """out = exp(-gamma·squares), exactly 1 on the diagonal. Signals are checked several times a second."""
    cdef Py_ssize_t n = squares.shape[0], first = 0, last, step = 64
    cdef ExpLoop rows
    cdef kr_kernel kernel
    if n == 0:
        return
    rows.squares, rows.out, rows.n, rows.single = &squares[0, 0], &out[0, 0], n, real_t is float
    kernel.kind, kernel.degree, kernel.gamma, kernel.coef0 = RBF, 0, gamma, 0.0
    rows.function = function_of_kernel(&kernel, simd_level())
    while first < n:
        started = perf_counter()
        last = min(first + step, n)
        with nogil:
            run_team(first, last, 0, n_threads, exp_of_rows, &rows)
        first, step = last, better_step(step, perf_counter() - started)
        PyErr_CheckSignals()
