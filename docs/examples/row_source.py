"""A user-defined kr_row_source: a kernel between words, the number of letter pairs that two words share.

numba compiles fill(); a C function, or a Cython function marked `noexcept nogil`, would do as well.
"""

import ctypes
from itertools import pairwise

import numba
import numpy as np
from numba import types

KR_OK, KR_BAD_ARGUMENT = 0, -2  # kr_status in api.h
N_PAIRS = 26 * 26

words = ["banana", "bandana", "ananas", "cabbage", "sausage"]
n_words = len(words)
pairs = np.zeros((n_words, N_PAIRS))  # count of each letter pair in each word
for i, word in enumerate(words):
    for first, second in pairwise(word):
        pairs[i, 26 * (ord(first) - ord("a")) + ord(second) - ord("a")] += 1

doubles, indices = types.CPointer(types.float64), types.CPointer(types.intp)


@numba.cfunc(types.intc(doubles, indices, types.intp, doubles))
def fill(state, rows, n_rows, out):
    """Write row rows[r] of the kernel matrix to out[r * n .. r * n + n), for every r."""
    pairs = numba.carray(state, (n_words, N_PAIRS))
    for r in range(n_rows):
        if rows[r] < 0 or rows[r] >= n_words:
            return KR_BAD_ARGUMENT
        for j in range(n_words):
            out[r * n_words + j] = np.minimum(pairs[rows[r]], pairs[j]).sum()
    return KR_OK


class RowSource(ctypes.Structure):
    """The struct kr_row_source of api.h."""

    _fields_ = (("state", ctypes.c_void_p), ("fill", ctypes.c_void_p))


source = RowSource(pairs.ctypes.data, fill.address)  # `pairs` must outlive the source

# A solver requests some rows at a time.
ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)(source.fill)
wanted = np.array([0, 3], dtype=np.intp)
block = np.empty((2, n_words))
status = ask(source.state, wanted.ctypes.data, 2, block.ctypes.data)
print(block)

assert status == KR_OK
assert np.array_equal(block, [np.minimum(pairs[i], pairs).sum(axis=1) for i in (0, 3)])
assert ask(source.state, np.array([n_words]).ctypes.data, 1, block.ctypes.data) == KR_BAD_ARGUMENT
