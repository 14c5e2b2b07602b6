"""Passes over sparse symmetric matrices that a multigrid cycle consists of, and breadth-first search on graphs.

A matrix is CSR: indptr in Py_ssize_t, indices in int, data in double. Vectors are the columns of a C array (m, K), so
that one pass over the matrix serves K of them; SciPy has no residual, relaxation or restriction in one pass. `start`
and `members` list the rows of each aggregate, `parent` the aggregate of each row: the piecewise constant prolongation P
has P[i, parent[i]] = 1.

Invariant: each number of a result is one sum in a fixed order, so any number of threads gives the same bits.

References
----------
Briggs, W. L., Henson, V. E. and McCormick, S. F. (2000). "A Multigrid Tutorial", 2nd edition. SIAM.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy, memset

from kernelrules.core.simd.cpu cimport simd_level
from kernelrules.core.base.team cimport run_team

import numpy as np

cdef extern from "linalg/csr_multivector.h" nogil:
    void kr_subtract_product(int level, const int *indices, const double *data, Py_ssize_t n, const double *x,
                             Py_ssize_t width, double *out) noexcept

cdef enum:
    CHUNK_ROWS = 512            # rows of a matrix that a thread takes at a time
    SIGNAL_CHECK_ENTRIES = 1 << 20      # entries read between two checks for signals: milliseconds

cdef struct CsrMatrix:
    const Py_ssize_t *indptr
    const int *indices
    const double *data
    Py_ssize_t n
    int level                   # of SIMD instructions


cdef CsrMatrix matrix_of(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data) noexcept nogil:
    cdef CsrMatrix a
    a.indptr, a.n, a.level = &indptr[0], indptr.shape[0] - 1, simd_level()
    a.indices = &indices[0] if indices.shape[0] > 0 else NULL
    a.data = &data[0] if data.shape[0] > 0 else NULL
    return a


# ---- products --------------------------------------------------------------------------------------------------

cdef void subtract_row(const CsrMatrix *a, Py_ssize_t i, const double *x, Py_ssize_t width, double *out) noexcept nogil:
    """out -= row i of A·x."""
    cdef Py_ssize_t first = a.indptr[i]
    kr_subtract_product(a.level, a.indices + first, a.data + first, a.indptr[i + 1] - first, x, width, out)


cdef struct RowPass:            # over all rows of vectors x, b and out, each of `width` columns
    CsrMatrix a
    const double *x
    const double *b
    const double *steps         # one per row
    const Py_ssize_t *start     # of each aggregate in `members`
    const int *members
    const int *parent
    double factor
    double *out
    Py_ssize_t width


cdef void residual_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef RowPass *over = <RowPass *> context
    cdef Py_ssize_t i, width = over.width
    for i in range(first, last):
        memcpy(over.out + i * width, over.b + i * width, width * sizeof(double))
        subtract_row(&over.a, i, over.x, width, over.out + i * width)


def residual(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data, const double[:, ::1] x,
             const double[:, ::1] b, double[:, ::1] out, int n_threads):
    """out = b - A·x."""
    cdef RowPass over
    if x.shape[0] == 0 or x.shape[1] == 0:
        return
    over.a, over.x, over.b = matrix_of(indptr, indices, data), &x[0, 0], &b[0, 0]
    over.out, over.width = &out[0, 0], x.shape[1]
    with nogil:
        run_team(0, over.a.n, CHUNK_ROWS, n_threads, residual_rows, &over)


cdef void relax_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef RowPass *over = <RowPass *> context
    cdef Py_ssize_t i, c, width = over.width
    cdef double *out
    residual_rows(context, first, last, worker)
    for i in range(first, last):
        out = over.out + i * width
        for c in range(width):
            out[c] = over.x[i * width + c] + over.steps[i] * out[c]


def relax(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data, const double[::1] steps,
          const double[:, ::1] x, const double[:, ::1] b, double[:, ::1] out, int n_threads):
    """out = x + steps·(b - A·x), with a step for each row."""
    cdef RowPass over
    if x.shape[0] == 0 or x.shape[1] == 0:
        return
    over.a, over.x, over.b, over.steps = matrix_of(indptr, indices, data), &x[0, 0], &b[0, 0], &steps[0]
    over.out, over.width = &out[0, 0], x.shape[1]
    with nogil:
        run_team(0, over.a.n, CHUNK_ROWS, n_threads, relax_rows, &over)


cdef void gather_residual(const CsrMatrix *a, Py_ssize_t i, const double *x, const double *b, Py_ssize_t width,
                          double *out) noexcept nogil:
    cdef Py_ssize_t c
    for c in range(width):
        out[c] += b[i * width + c]
    subtract_row(a, i, x, width, out)


cdef void restrict_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef RowPass *over = <RowPass *> context
    cdef Py_ssize_t s, m, width = over.width
    for s in range(first, last):
        memset(over.out + s * width, 0, width * sizeof(double))
        for m in range(over.start[s], over.start[s + 1]):
            gather_residual(&over.a, over.members[m], over.x, over.b, width, over.out + s * width)


def restrict_residual(const Py_ssize_t[::1] indptr, const int[::1] indices, const double[::1] data,
                      const double[:, ::1] x, const double[:, ::1] b, const Py_ssize_t[::1] start,
                      const int[::1] members, double[:, ::1] out, int n_threads):
    """out = Pᵀ(b - A·x)."""
    cdef RowPass over
    if x.shape[0] == 0 or x.shape[1] == 0:
        return
    over.a, over.x, over.b = matrix_of(indptr, indices, data), &x[0, 0], &b[0, 0]
    over.start, over.members, over.out, over.width = &start[0], &members[0], &out[0, 0], x.shape[1]
    with nogil:
        run_team(0, start.shape[0] - 1, CHUNK_ROWS // 4, n_threads, restrict_rows, &over)


cdef void prolong_rows(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef RowPass *over = <RowPass *> context
    cdef Py_ssize_t i, c, width = over.width
    for i in range(first, last):
        for c in range(width):
            over.out[i * width + c] += over.factor * over.x[over.parent[i] * width + c]


def prolong(const int[::1] parent, const double[:, ::1] coarse, double factor, double[:, ::1] x, int n_threads):
    """x += factor·P·coarse."""
    cdef RowPass over
    if x.shape[0] == 0 or x.shape[1] == 0:
        return
    over.parent, over.x, over.factor, over.out, over.width = &parent[0], &coarse[0, 0], factor, &x[0, 0], x.shape[1]
    with nogil:
        run_team(0, x.shape[0], CHUNK_ROWS, n_threads, prolong_rows, &over)


# ---- aggregates ------------------------------------------------------------------------------------------------

cdef Py_ssize_t strongest(const CsrMatrix *a, Py_ssize_t i, const int *parent, bint free_only) noexcept nogil:
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
    cdef CsrMatrix a = matrix_of(indptr, indices, data)
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
    cdef CsrMatrix a = matrix_of(indptr, indices, data)
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
    cdef CsrMatrix a = matrix_of(indptr, indices, data)
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
            while at < n_seen and until < SIGNAL_CHECK_ENTRIES:
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
