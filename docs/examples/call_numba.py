"""Call kr_gram from numba-compiled code: row sums of a kernel matrix that is never stored as a whole."""

import ctypes

import numba
import numpy as np
from numba.extending import get_cython_function_address

from kernelrules import kernels

KR_RBF = 2  # kr_kernel_kind in api.h
kernel_type = np.dtype(
    [("kind", np.intc), ("degree", np.intc), ("gamma", np.float64), ("coef0", np.float64)], align=True
)

address, size = ctypes.c_void_p, ctypes.c_ssize_t
kr_gram = ctypes.CFUNCTYPE(
    ctypes.c_int, address, size, size, address, size, size, size, address, address, size, ctypes.c_int
)(get_cython_function_address("kernelrules.cython_api", "kr_gram"))


@numba.njit
def row_sums(X, kernel, block):
    """Return the row sums of the kernel matrix of X, computed `block` rows at a time; NaN if a call fails."""
    n, p = X.shape
    totals = np.empty(n)
    rows = np.empty((block, n))
    for start in range(0, n, block):
        n_rows = min(block, n - start)
        status = kr_gram(
            X[start:].ctypes.data, n_rows, p, X.ctypes.data, n, p, p, kernel.ctypes.data, rows.ctypes.data, n, 1
        )
        for i in range(n_rows):
            totals[start + i] = rows[i].sum() if status == 0 else np.nan
    return totals


X = np.random.default_rng(0).normal(size=(1000, 5))
rbf = np.array([(KR_RBF, 0, 0.5, 0.0)], dtype=kernel_type)
totals = row_sums(X, rbf, 100)
print("largest sum of a row", totals.max().round(3))

assert np.allclose(totals, kernels.gram(X, kernel=kernels.RBF(0.5)).sum(axis=1), rtol=1e-12, atol=0)
