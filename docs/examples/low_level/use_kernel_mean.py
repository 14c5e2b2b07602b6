"""Call kernel_mean, built by CMake or meson: `python use_kernel_mean.py FOLDER`, where FOLDER holds the extension."""

import ctypes
import sys

import numpy as np
from scipy import LowLevelCallable, integrate

from kernelrules import kernels

sys.path.insert(0, sys.argv[1])
import kernel_mean

# Row sums of a kernel matrix that is never stored as a whole.
X = np.random.default_rng(0).normal(size=(500, 3))
sums = np.frombuffer(kernel_mean.row_sums(X, 500, 3, 0.5))
assert np.allclose(sums, kernels.gram(X, kernel=kernels.RBF(0.5)).sum(axis=1), rtol=1e-12, atol=0)


class MeanData(ctypes.Structure):
    """The struct mean_data of kernel_mean.c."""

    _fields_ = (("x", ctypes.c_double), ("gamma", ctypes.c_double))


# The mean of k(x, t) over t from N(0, 1): SciPy calls the C function for every point, without going through Python.
data = MeanData(x=0.7, gamma=0.5)
at = LowLevelCallable(kernel_mean.integrand(), ctypes.cast(ctypes.pointer(data), ctypes.c_void_p))
mean, error = integrate.quad(at, -np.inf, np.inf)
print(f"mean of k(0.7, t) over N(0, 1): {mean:.12f}")

spread = 1 + 2 * data.gamma
assert abs(mean - np.exp(-data.gamma * data.x**2 / spread) / np.sqrt(spread)) < 1e-8
