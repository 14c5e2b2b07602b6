"""Squared lengths of the columns of L⁻¹R for many banded lower triangular L: with LLᵀ = B + s and R = Qᵀ they are the
diagonal of (QBQᵀ + s)⁻¹ for each s.

With 5000 points and 50 λ, leave-one-out errors by a band of 32 diagonals take 9.3 s on two threads; LAPACK's
eigenvectors take 21 s on one thread, and 50 Cholesky factors 17 s on two (docs/developers/solver.rst).

A thread takes some columns of R, copies them next to each other, and goes through them from top to bottom once for
every L (banded_solve.h). The columns stay in second- and third-level cache, the rows of L⁻¹R that are still needed in
the first, and L⁻¹R is not stored.

Invariant: every number is one sum in a fixed order, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.gram.dense cimport ALIGNMENT, aligned
from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.base.status cimport NO_MEMORY
from kernelrules.core.base.team cimport run_team

import numpy as np

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef extern from "linalg/banded_solve.h" nogil:
    enum:
        KR_BAND_ROWS
        KR_BAND_COLUMNS
        KR_BAND_WINDOW
    void kr_banded_squares(int level, const double *packed, Py_ssize_t width, const double *right,
                           Py_ssize_t n_blocks, double *window, double *total) noexcept


cdef struct BandedSolves:
    const double *packed        # (n_factors, n_blocks, width + KR_BAND_ROWS, KR_BAND_ROWS)
    Py_ssize_t n_factors, n_blocks, width
    Py_ssize_t n                # rows and columns of R
    const double *right
    double *out                 # (n_factors, n)
    int level
    double *work
    Py_ssize_t share            # numbers in `work` per thread


def packed(const double[:, ::1] columns):
    """L in the layout of banded_solve.h, from columns[j, k] = L[j + k, j]."""
    cdef Py_ssize_t n = columns.shape[0], width = columns.shape[1] - 1, i, j, start
    cdef Py_ssize_t n_blocks = (n + KR_BAND_ROWS - 1) // KR_BAND_ROWS
    cdef double[:, :, ::1] blocks = np.zeros((n_blocks, width + KR_BAND_ROWS, KR_BAND_ROWS))
    with nogil:
        for i in range(n_blocks * KR_BAND_ROWS):
            start = i - i % KR_BAND_ROWS
            if i >= n:
                blocks[i // KR_BAND_ROWS, width + i % KR_BAND_ROWS, i % KR_BAND_ROWS] = 1.0
                continue
            for j in range(max(<Py_ssize_t> 0, i - width), i + 1):
                if j < start:
                    blocks[i // KR_BAND_ROWS, j - start + width, i - start] = columns[j, i - j]
                else:
                    blocks[i // KR_BAND_ROWS, width + i - start, j - start] = columns[j, i - j]
            blocks[i // KR_BAND_ROWS, width + i - start, i - start] = 1.0 / columns[i, 0]
    return np.asarray(blocks)


cdef void solve_tile(const BandedSolves *plan, Py_ssize_t tile, double *work) noexcept nogil:
    """All factors on the columns of one tile."""
    cdef Py_ssize_t first = tile * KR_BAND_COLUMNS, width = min(<Py_ssize_t> KR_BAND_COLUMNS, plan.n - first), i, c, f
    cdef Py_ssize_t n_rows = plan.n_blocks * KR_BAND_ROWS
    cdef double *window = work + n_rows * KR_BAND_COLUMNS
    cdef double total[KR_BAND_COLUMNS]
    memset(work, 0, n_rows * KR_BAND_COLUMNS * sizeof(double))
    for i in range(plan.n):
        for c in range(width):
            work[i * KR_BAND_COLUMNS + c] = plan.right[i * plan.n + first + c]
    for f in range(plan.n_factors):
        kr_banded_squares(plan.level, plan.packed + f * (plan.width + KR_BAND_ROWS) * n_rows, plan.width, work,
                          plan.n_blocks, window, total)
        for c in range(width):
            plan.out[f * plan.n + first + c] = total[c]


cdef void solve_tiles(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef BandedSolves *plan = <BandedSolves *> context
    cdef Py_ssize_t tile
    for tile in range(first, last):
        solve_tile(plan, tile, plan.work + worker * plan.share)


def squared_lengths(const double[:, :, :, ::1] factors, const double[:, ::1] right, double[:, ::1] out, int n_threads,
                    tick=None):
    """out[f, j] = |L_f⁻¹ r_j|² for the packed factors and the columns of `right`."""
    cdef BandedSolves plan
    cdef Py_ssize_t n_tiles = (right.shape[1] + KR_BAND_COLUMNS - 1) // KR_BAND_COLUMNS
    cdef Py_ssize_t first = 0, last, step = n_threads
    cdef double *work
    plan.packed, plan.right, plan.out, plan.n = &factors[0, 0, 0, 0], &right[0, 0], &out[0, 0], right.shape[0]
    plan.n_factors, plan.n_blocks, plan.width = factors.shape[0], factors.shape[1], factors.shape[2] - KR_BAND_ROWS
    plan.level = simd_level()
    plan.share = (plan.n_blocks * KR_BAND_ROWS + plan.width + KR_BAND_WINDOW) * KR_BAND_COLUMNS
    work = <double *> malloc(n_threads * plan.share * sizeof(double) + ALIGNMENT)
    if work == NULL:
        raise_for_status(NO_MEMORY)
    plan.work = <double *> aligned(work)
    try:
        while first < n_tiles:
            last = min(first + step, n_tiles)
            started = perf_counter()
            with nogil:
                run_team(first, last, 1, n_threads, solve_tiles, &plan)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(min(first * KR_BAND_COLUMNS, plan.n), plan.n)
    finally:
        free(work)
