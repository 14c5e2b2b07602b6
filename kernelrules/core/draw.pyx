"""Rows drawn at random, without a list of them being shuffled or sorted: in one pass a row is taken with probability
(rows that are still wanted) / (rows that are left).

Invariant: all sets of so many rows are as likely, and what is drawn depends on the random numbers alone.
"""

from libc.stdint cimport int32_t

import numpy as np


def draw(const int32_t[::1] rows, Py_ssize_t size, const double[::1] uniform, Py_ssize_t n):
    """`size` of the rows, any so many as likely as any others, and all else of 0, 1, ..., n - 1; both ascending.

    Parameters
    ----------
    rows : ndarray (m,)
        To choose from, ascending.
    size : int
        At most m.
    uniform : ndarray (m,)
        Random numbers between 0 and 1.
    n : int
        More than any of the rows.
    """
    cdef Py_ssize_t m = rows.shape[0], i, k = 0, n_some = 0, n_others = 0
    if uniform.shape[0] != m or not 0 <= size <= m <= n:
        raise ValueError("the shapes of the rows and the random numbers do not agree")
    some, rest = np.empty(size + 1, dtype=np.int32), np.empty(n - size + 1, dtype=np.int32)
    cdef int32_t[::1] chosen = some, others = rest
    cdef bint here
    with nogil:
        for i in range(n):
            here = False
            if k < m and rows[k] == i:          # so many of those that are left are still wanted
                here = uniform[k] * (m - k) < size - n_some
                k += 1
            chosen[n_some] = others[n_others] = <int32_t> i
            n_some += here
            n_others += not here
    return some[:size], rest[:n - size]
