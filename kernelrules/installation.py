"""What is installed, and whether it computes: versions, threads, SIMD, BLAS, and a Gram matrix against NumPy's.

The matrix is that of the bundled Spambase, timed against the way it is usually written with whole arrays.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import numpy as np
import scipy
from threadpoolctl import threadpool_info

from kernelrules import __version__, datasets, kernels, parallel
from kernelrules.core import machine

__all__ = ["self_check", "summary"]

_TOLERANCE = 1e-10
_TURNS = 5


def summary() -> list[str]:
    """Versions, threads, SIMD level and BLAS, a line each."""
    threads = parallel.n_threads_or_default()
    return [
        f"kernelrules {__version__}  (Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__})",
        f"threads     {threads}, OpenMP {'on' if machine.has_openmp() else 'off'}",
        f"SIMD        {machine.simd()}",
        f"BLAS        {_blas()}",
    ]


def self_check() -> tuple[list[str], bool]:
    """What to say about a computation done twice, and whether both came to the same."""
    X = datasets.spambase().X
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = kernels.RBF(gamma=1 / X.shape[1])
    ours, theirs = _seconds(lambda: kernels.gram(X, kernel=kernel), lambda: _numpy_rbf(X, kernel.gamma))
    error = float(np.abs(kernels.gram(X, kernel=kernel) - _numpy_rbf(X, kernel.gamma)).max())
    good = error < _TOLERANCE
    return [
        f"RBF Gram matrix of Spambase, {X.shape[0]} × {X.shape[1]}:",
        f"            {ours * 1e3:.1f} ms; with numpy {theirs * 1e3:.1f} ms, {theirs / ours:.1f} times as long; "
        f"largest difference {error:.1e}",
        "self-check  passed" if good else "self-check  FAILED: the two matrices differ",
    ], good


def _numpy_rbf(X: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |x-z|²) by whole-array operations."""
    squares = np.einsum("ij,ij->i", X, X)
    distances = squares[:, None] + squares[None, :] - 2 * (X @ X.T)
    np.maximum(distances, 0, out=distances)
    return np.exp(-gamma * distances)


def _seconds(*functions: Callable[[], object]) -> list[float]:
    """The best time of each, the functions taking turns."""
    best = [float("inf")] * len(functions)
    for _ in range(_TURNS):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def _blas() -> str:
    found = sorted(
        {
            f"{pool['internal_api']} {pool['version'] or ''}".strip()
            for pool in threadpool_info()
            if pool["user_api"] == "blas"
        }
    )
    return ", ".join(found) or "not found"
