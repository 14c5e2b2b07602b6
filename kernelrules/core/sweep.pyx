"""Squared lengths of the columns of L⁻¹R for many lower triangular L of few diagonals: of LLᵀ = B + s and R = Qᵀ they
are the diagonal of (QBQᵀ + s)⁻¹ for each s.

A thread takes some columns of R, copies them to where they lie together, and goes through them from top to bottom once
for every L (sweep.h): columns stay in the second- and third-level cache, the rows of L⁻¹R that are still needed in the
first, and nothing of L⁻¹R is kept.

Invariant: every number is one sum in a fixed order, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.gram cimport ALIGNMENT
from kernelrules.core.machine cimport simd_level
from kernelrules.core.pace cimport better_step
from kernelrules.core.status cimport NO_MEMORY

import numpy as np

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef extern from "sweep.h" nogil:
    enum:
        KR_SWEEP_ROWS
        KR_SWEEP_COLUMNS
        KR_SWEEP_SPAN
    void kr_sweep(int level, const double *packed, Py_ssize_t width, const double *right, Py_ssize_t n_blocks,
                  double *window, double *total) noexcept


cdef struct Sweep:
    const double *packed        # (n_factors, n_blocks, width + KR_SWEEP_ROWS, KR_SWEEP_ROWS)
    Py_ssize_t n_factors, n_blocks, width
    Py_ssize_t n                # rows and columns of R
    const double *right
    double *out                 # (n_factors, n)
    int level


def packed(const double[:, ::1] columns):
    """L as sweep.h wants it, from columns[j, k] = L[j + k, j]."""
    cdef Py_ssize_t n = columns.shape[0], width = columns.shape[1] - 1, i, j, start
    cdef Py_ssize_t n_blocks = (n + KR_SWEEP_ROWS - 1) // KR_SWEEP_ROWS
    cdef double[:, :, ::1] blocks = np.zeros((n_blocks, width + KR_SWEEP_ROWS, KR_SWEEP_ROWS))
    with nogil:
        for i in range(n_blocks * KR_SWEEP_ROWS):
            start = i - i % KR_SWEEP_ROWS
            if i >= n:
                blocks[i // KR_SWEEP_ROWS, width + i % KR_SWEEP_ROWS, i % KR_SWEEP_ROWS] = 1.0
                continue
            for j in range(max(<Py_ssize_t> 0, i - width), i + 1):
                if j < start:
                    blocks[i // KR_SWEEP_ROWS, j - start + width, i - start] = columns[j, i - j]
                else:
                    blocks[i // KR_SWEEP_ROWS, width + i - start, j - start] = columns[j, i - j]
            blocks[i // KR_SWEEP_ROWS, width + i - start, i - start] = 1.0 / columns[i, 0]
    return np.asarray(blocks)


cdef void sweep_columns(const Sweep *plan, Py_ssize_t tile, double *work) noexcept nogil:
    """All factors on the columns of one tile."""
    cdef Py_ssize_t first = tile * KR_SWEEP_COLUMNS, width = min(<Py_ssize_t> KR_SWEEP_COLUMNS, plan.n - first), i, c, f
    cdef Py_ssize_t n_rows = plan.n_blocks * KR_SWEEP_ROWS
    cdef double *window = work + n_rows * KR_SWEEP_COLUMNS
    cdef double total[KR_SWEEP_COLUMNS]
    memset(work, 0, n_rows * KR_SWEEP_COLUMNS * sizeof(double))
    for i in range(plan.n):
        for c in range(width):
            work[i * KR_SWEEP_COLUMNS + c] = plan.right[i * plan.n + first + c]
    for f in range(plan.n_factors):
        kr_sweep(plan.level, plan.packed + f * (plan.width + KR_SWEEP_ROWS) * n_rows, plan.width, work, plan.n_blocks,
                 window, total)
        for c in range(width):
            plan.out[f * plan.n + first + c] = total[c]


def squared_lengths(const double[:, :, :, ::1] factors, const double[:, ::1] right, double[:, ::1] out, int n_threads,
                    tick=None):
    """out[f, j] = |L_f⁻¹ r_j|² for the packed factors and the columns of `right`."""
    cdef Sweep plan
    cdef Py_ssize_t n_tiles = (right.shape[1] + KR_SWEEP_COLUMNS - 1) // KR_SWEEP_COLUMNS, share, tile
    cdef Py_ssize_t first = 0, last, step = n_threads
    cdef double *work
    cdef double *aligned
    plan.packed, plan.right, plan.out, plan.n = &factors[0, 0, 0, 0], &right[0, 0], &out[0, 0], right.shape[0]
    plan.n_factors, plan.n_blocks, plan.width = factors.shape[0], factors.shape[1], factors.shape[2] - KR_SWEEP_ROWS
    plan.level = simd_level()
    share = (plan.n_blocks * KR_SWEEP_ROWS + plan.width + KR_SWEEP_SPAN) * KR_SWEEP_COLUMNS
    work = <double *> malloc(n_threads * share * sizeof(double) + ALIGNMENT)
    if work == NULL:
        raise_for_status(NO_MEMORY)
    aligned = <double *> (<char *> work + (ALIGNMENT - <uintptr_t> work % ALIGNMENT))
    try:
        while first < n_tiles:
            last = min(first + step, n_tiles)
            started = perf_counter()
            for tile in prange(first, last, num_threads=n_threads, schedule="dynamic", chunksize=1, nogil=True):
                sweep_columns(&plan, tile, aligned + threadid() * share)
            first, step = last, better_step(step, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(min(first * KR_SWEEP_COLUMNS, plan.n), plan.n)
    finally:
        free(work)
