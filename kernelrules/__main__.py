"""`python -m kernelrules`: a short self-check of the installation.

Prints the versions, the threads, the SIMD level and BLAS, then times the Gram matrix of the bundled Spambase against
the way it is usually written with numpy, and compares the two.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy
from threadpoolctl import threadpool_info

from kernelrules import __version__, datasets, kernels, parallel
from kernelrules.core import machine

__all__ = ["main"]


def _numpy_rbf(X: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |x-z|²) by whole-array operations."""
    squares = np.einsum("ij,ij->i", X, X)
    distances = squares[:, None] + squares[None, :] - 2 * (X @ X.T)
    np.maximum(distances, 0, out=distances)
    return np.exp(-gamma * distances)


def _seconds(*functions: Callable[[], object], repeats: int = 5) -> list[float]:
    """The best time of each, the functions taking turns."""
    best = [float("inf")] * len(functions)
    for _ in range(repeats):
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


def main(arguments: list[str] | None = None) -> int:
    """Run the self-check; the exit code is 0 if the two matrices agree.

    Parameters
    ----------
    arguments : list of str, optional
        The command line, by default the process's own.

    Returns
    -------
    int
        0, or 1 where the results disagree.

    Examples
    --------
    >>> main([])  # doctest: +ELLIPSIS
    kernelrules ...
    0
    """
    parser = argparse.ArgumentParser(prog="kernelrules", description="Self-check of the kernelrules installation.")
    parser.add_argument("--version", action="version", version=f"kernelrules {__version__}")
    parser.parse_args(arguments)
    threads = parallel.n_threads_or_default()
    print(
        f"kernelrules {__version__}  (Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__})"
    )
    print(f"threads     {threads}, OpenMP {'on' if machine.has_openmp() else 'off'}")
    print(f"SIMD        {machine.simd()}")
    print(f"BLAS        {_blas()}")

    X = datasets.spambase().X
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = kernels.RBF(gamma=1 / X.shape[1])
    ours, theirs = _seconds(lambda: kernels.gram(X, kernel=kernel), lambda: _numpy_rbf(X, kernel.gamma))
    error = float(np.abs(kernels.gram(X, kernel=kernel) - _numpy_rbf(X, kernel.gamma)).max())
    print(f"RBF Gram matrix of Spambase, {X.shape[0]} × {X.shape[1]}:")
    print(
        f"            {ours * 1e3:.1f} ms; with numpy {theirs * 1e3:.1f} ms, {theirs / ours:.1f} times as long; "
        f"largest difference {error:.1e}"
    )
    good = error < 1e-10
    print("self-check  passed" if good else "self-check  FAILED: the two matrices differ")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
