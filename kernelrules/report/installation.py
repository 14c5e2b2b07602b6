"""Versions, threads, SIMD level and BLAS of the installation, and a self-check.

The self-check compares the RBF Gram matrix of the bundled Spambase, and its time, with a NumPy implementation.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import numpy as np
import scipy
from threadpoolctl import threadpool_info

from kernelrules import __version__, datasets, kernels, parallel
from kernelrules.core.base import team
from kernelrules.core.simd import cpu

__all__ = ["self_check", "summary"]

_TOLERANCE = 1e-10
_REPEATS = 5


def summary() -> list[str]:
    """Return one line each on versions, threads, SIMD level and BLAS."""
    threads = parallel.n_threads_or_default()
    return [
        f"kernelrules {__version__}  (Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__})",
        f"threads     {threads}{'' if team.has_threads() else ' (built without threads)'}",
        f"SIMD        {cpu.simd()}",
        f"BLAS        {_blas()}",
    ]


def self_check() -> tuple[list[str], bool]:
    """Return the lines of the self-check, and whether it passed."""
    X = datasets.spambase().X
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = kernels.RBF(gamma=1 / X.shape[1])
    ours, theirs = _seconds(lambda: kernels.gram(X, kernel=kernel), lambda: _numpy_rbf(X, kernel.gamma))
    error = float(np.abs(kernels.gram(X, kernel=kernel) - _numpy_rbf(X, kernel.gamma)).max())
    good = error < _TOLERANCE
    return [
        f"RBF Gram matrix of Spambase, {X.shape[0]} × {X.shape[1]}:",
        f"            {ours * 1e3:.1f} ms; NumPy {theirs * 1e3:.1f} ms, {theirs / ours:.1f} times as long; "
        f"largest difference {error:.1e}",
        "self-check  passed" if good else "self-check  FAILED: the two matrices differ",
    ], good


def _numpy_rbf(X: np.ndarray, gamma: float) -> np.ndarray:
    """Return exp(-gamma |x-z|²) by NumPy operations."""
    squares = np.einsum("ij,ij->i", X, X)
    distances = squares[:, None] + squares[None, :] - 2 * (X @ X.T)
    np.maximum(distances, 0, out=distances)
    return np.exp(-gamma * distances)


def _seconds(*functions: Callable[[], object]) -> list[float]:
    """Return the best time of each function, over interleaved repetitions."""
    best = [float("inf")] * len(functions)
    for _ in range(_REPEATS):
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
