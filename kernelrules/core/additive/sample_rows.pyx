"""Sampling of rows without replacement in one pass, without shuffling or sorting a list of them.

A row is selected with probability (rows still to select) / (rows left): selection sampling, algorithm S of [1]_.

Invariant: every set of `size` rows is equally likely, and the sample depends on the random numbers alone.

References
----------
.. [1] D. E. Knuth, "The Art of Computer Programming, volume 2: Seminumerical Algorithms", third edition, section 3.4.2,
   Addison-Wesley, 1997.
"""

from libc.stdint cimport int32_t

import numpy as np


def sample_rows(const int32_t[::1] rows, Py_ssize_t size, const double[::1] uniform, Py_ssize_t n):
    """Return `size` of the rows, and all others of 0, 1, ..., n - 1; both ascending.

    Parameters
    ----------
    rows : ndarray (m,)
        Rows to choose from, ascending.
    size : int
        Number of rows to choose, at most m.
    uniform : ndarray (m,)
        Random numbers between 0 and 1.
    n : int
        Greater than any of the rows.
    """
    cdef Py_ssize_t m = rows.shape[0], i, k = 0, n_chosen = 0, n_others = 0
    if uniform.shape[0] != m or not 0 <= size <= m <= n:
        raise ValueError("the shapes of the rows and the random numbers do not agree")
    chosen_out, others_out = np.empty(size + 1, dtype=np.int32), np.empty(n - size + 1, dtype=np.int32)
    cdef int32_t[::1] chosen = chosen_out, others = others_out
    cdef bint is_chosen
    with nogil:
        for i in range(n):
            is_chosen = False
            if k < m and rows[k] == i:
                is_chosen = uniform[k] * (m - k) < size - n_chosen
                k += 1
            chosen[n_chosen] = others[n_others] = <int32_t> i
            n_chosen += is_chosen
            n_others += not is_chosen
    return chosen_out[:size], others_out[:n - size]
