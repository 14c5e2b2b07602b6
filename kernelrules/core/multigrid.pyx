"""Passes over sparse symmetric matrices that multigrid is made of, and walks over graphs.

A matrix is CSR: indptr in Py_ssize_t, indices in int, data in double; vectors stand side by side in rows of a C array
(m, K), so that one pass over the matrix serves K of them. `start` and `members` list the rows of each aggregate,
`parent` the aggregate of each row: the piecewise constant prolongation P has P[i, parent[i]] = 1.

Invariant: each number of a result is one sum in a fixed order, so any number of threads gives the same bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange

from kernelrules.core.machine cimport simd_level

import numpy as np

cdef extern from "beside.h" nogil:
    void kr_beside(int level, const int *indices, const double *data, Py_ssize_t n, const double *x, Py_ssize_t width,
                   double *out) noexcept

cdef enum:
    CHUNK = 512                 # rows of a matrix that a thread takes at a time
    LOOK = 1 << 20              # entries between two looks at signals

cdef struct Matrix:
    const Py_ssize_t *indptr
    const int *indices
    const double *data
    Py_ssize_t n
    int level                   # of instructions


cdef Matrix matrix_of(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data) noexcept nogil:
    cdef Matrix a
    a.indptr, a.n, a.level = &indptr[0], indptr.shape[0] - 1, simd_level()
    a.indices = &indices[0] if indices.shape[0] > 0 else NULL
    a.data = &data[0] if data.shape[0] > 0 else NULL
    return a


# ---- products --------------------------------------------------------------------------------------------------

cdef void subtract_row(const Matrix *a, Py_ssize_t i, const double *x, Py_ssize_t width, double *out) noexcept nogil:
    """out -= row i of A·x."""
    cdef Py_ssize_t first = a.indptr[i]
    kr_beside(a.level, a.indices + first, a.data + first, a.indptr[i + 1] - first, x, width, out)


def residual(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data, const double[:, ::1] x,
             const double[:, ::1] b, double[:, ::1] out, int n_threads):
    """out = b - A·x."""
    cdef Matrix a = matrix_of(indptr, indices, data)
    cdef Py_ssize_t i, c, width = x.shape[1]
    for i in prange(a.n, num_threads=n_threads, schedule="static", chunksize=CHUNK, nogil=True):
        for c in range(width):
            out[i, c] = b[i, c]
        subtract_row(&a, i, &x[0, 0], width, &out[i, 0])


def relax(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data, const double[::1] steps,
          const double[:, ::1] x, const double[:, ::1] b, double[:, ::1] out, int n_threads):
    """out = x + steps·(b - A·x), with a step for each row."""
    cdef Matrix a = matrix_of(indptr, indices, data)
    cdef Py_ssize_t i, c, width = x.shape[1]
    for i in prange(a.n, num_threads=n_threads, schedule="static", chunksize=CHUNK, nogil=True):
        for c in range(width):
            out[i, c] = b[i, c]
        subtract_row(&a, i, &x[0, 0], width, &out[i, 0])
        for c in range(width):
            out[i, c] = x[i, c] + steps[i] * out[i, c]


cdef void gather_residual(const Matrix *a, Py_ssize_t i, const double *x, const double *b, Py_ssize_t width,
                          double *out) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(width):
        out[c] += b[i * width + c]
    subtract_row(a, i, x, width, out)


def restrict_residual(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data,
                      const double[:, ::1] x, const double[:, ::1] b, const Py_ssize_t[::1] start,
                      const int[::1] members, double[:, ::1] out, int n_threads):
    """out = Pᵀ(b - A·x)."""
    cdef Matrix a = matrix_of(indptr, indices, data)
    cdef Py_ssize_t s, m, c, width = x.shape[1]
    for s in prange(start.shape[0] - 1, num_threads=n_threads, schedule="static", chunksize=CHUNK // 4, nogil=True):
        for c in range(width):
            out[s, c] = 0
        for m in range(start[s], start[s + 1]):
            gather_residual(&a, members[m], &x[0, 0], &b[0, 0], width, &out[s, 0])


def prolong(const int[::1] parent, const double[:, ::1] coarse, double factor, double[:, ::1] x, int n_threads):
    """x += factor·P·coarse."""
    cdef Py_ssize_t i, c, width = x.shape[1]
    for i in prange(x.shape[0], num_threads=n_threads, schedule="static", chunksize=CHUNK, nogil=True):
        for c in range(width):
            x[i, c] += factor * coarse[parent[i], c]


# ---- aggregates ------------------------------------------------------------------------------------------------

cdef Py_ssize_t strongest(const Matrix *a, Py_ssize_t i, const int *parent, bint free_only) noexcept nogil:
    """The neighbour of row i with the most negative entry, of those without a parent or of all; -1 for none."""
    cdef Py_ssize_t e, found = -1
    cdef double lowest = 0
    for e in range(a.indptr[i], a.indptr[i + 1]):
        if a.data[e] < lowest and a.indices[e] != i and (parent[a.indices[e]] < 0 or not free_only):
            lowest, found = a.data[e], a.indices[e]
    return found


def pairs(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data):
    """Match rows two by two: each in turn, if it is free, with its strongest free neighbour.

    Rows that are left over join the pair of their strongest neighbour, so that hubs with many leaves shrink too; rows
    without neighbours stay alone. Returns (parent, number of aggregates)."""
    cdef Matrix a = matrix_of(indptr, indices, data)
    cdef int[::1] parent = np.full(a.n, -1, dtype=np.intc)
    cdef Py_ssize_t i, partner
    cdef int n_pairs = 0
    with nogil:
        for i in range(a.n):
            if parent[i] >= 0:
                continue
            partner = strongest(&a, i, &parent[0], True)
            if partner >= 0:
                parent[i] = parent[partner] = n_pairs
                n_pairs += 1
        for i in range(a.n):
            if parent[i] >= 0:
                continue
            partner = strongest(&a, i, &parent[0], False)
            if partner >= 0:
                parent[i] = parent[partner]     # which has one: two free neighbours would have been matched
            else:
                parent[i] = n_pairs
                n_pairs += 1
    return np.asarray(parent), n_pairs


def lists_of(const int[::1] parent, int n_aggregates):
    """(start, members) for `parent`: the rows of each aggregate in ascending order."""
    cdef Py_ssize_t n = parent.shape[0], i
    cdef Py_ssize_t[::1] start = np.zeros(n_aggregates + 1, dtype=np.intp)
    cdef Py_ssize_t[::1] place
    cdef int[::1] members = np.empty(n, dtype=np.intc)
    with nogil:
        for i in range(n):
            start[parent[i] + 1] += 1
        for i in range(n_aggregates):
            start[i + 1] += start[i]
    place = np.array(start)
    with nogil:
        for i in range(n):
            members[place[parent[i]]] = <int> i
            place[parent[i]] += 1
    return np.asarray(start), np.asarray(members)


def coarsen(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data, const int[::1] parent,
            const Py_ssize_t[::1] start, const int[::1] members):
    """PᵀAP, as (indptr, indices, data); a row's entries in the order in which they were met."""
    cdef Matrix a = matrix_of(indptr, indices, data)
    cdef Py_ssize_t n = start.shape[0] - 1, s, m, e, n_entries = 0, row_start
    cdef Py_ssize_t[::1] place = np.full(n, -1, dtype=np.intp)
    cdef Py_ssize_t[::1] coarse_indptr = np.zeros(n + 1, dtype=np.intp)
    cdef int[::1] coarse_indices = np.empty(indices.shape[0], dtype=np.intc)
    cdef double[::1] coarse_data = np.empty(indices.shape[0])
    cdef int column
    with nogil:
        for s in range(n):
            row_start = n_entries
            for m in range(start[s], start[s + 1]):
                for e in range(a.indptr[members[m]], a.indptr[members[m] + 1]):
                    column = parent[a.indices[e]]
                    if place[column] >= row_start:
                        coarse_data[place[column]] += a.data[e]
                    else:
                        place[column] = n_entries
                        coarse_indices[n_entries], coarse_data[n_entries] = column, a.data[e]
                        n_entries += 1
            coarse_indptr[s + 1] = n_entries
    return np.asarray(coarse_indptr), np.asarray(coarse_indices)[:n_entries], np.asarray(coarse_data)[:n_entries]


# ---- walks -----------------------------------------------------------------------------------------------------

def spread(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data, const Py_ssize_t[::1] sources):
    """A forest of shortest paths, in steps, from the sources to all that they reach.

    Returns (order, before, weight): the points reached, nearest first; of each point the one before it, -1 for sources,
    -2 for what is not reached; and the weight of the edge between the two."""
    cdef Matrix a = matrix_of(indptr, indices, data)
    cdef Py_ssize_t[::1] order = np.empty(a.n, dtype=np.intp)
    cdef Py_ssize_t[::1] before = np.full(a.n, -2, dtype=np.intp)
    cdef double[::1] weight = np.zeros(a.n)
    cdef Py_ssize_t n_seen = 0, at = 0, e, i, j, until
    for i in range(sources.shape[0]):
        before[sources[i]] = -1
        order[n_seen] = sources[i]
        n_seen += 1
    while at < n_seen:
        with nogil:
            until = 0
            while at < n_seen and until < LOOK:
                i = order[at]
                until += a.indptr[i + 1] - a.indptr[i] + 1
                for e in range(a.indptr[i], a.indptr[i + 1]):
                    j = a.indices[e]
                    if before[j] == -2:
                        before[j], weight[j] = i, a.data[e]
                        order[n_seen] = j
                        n_seen += 1
                at += 1
        PyErr_CheckSignals()
    return np.asarray(order)[:n_seen], np.asarray(before), np.asarray(weight)


def drain(const Py_ssize_t[::1] order, const Py_ssize_t[::1] before, double[:, ::1] excess):
    """Carry what is at each point towards its source: afterwards excess[i] is what flows from i to before[i], and at
    the sources what arrives, their own included."""
    cdef Py_ssize_t t, c, i, width = excess.shape[1]
    with nogil:
        for t in range(order.shape[0] - 1, -1, -1):
            i = order[t]
            if before[i] >= 0:
                for c in range(width):
                    excess[before[i], c] += excess[i, c]
