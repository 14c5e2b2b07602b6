"""Factorisations of symmetric matrices, as C-ordered arrays; right-hand sides are rows.

    factor, solve, solve_lower    A = LLᵀ in place (core/linalg/cholesky.pyx): 1.5 times as fast as dpotrf at 2000 rows
    BlockLDL                      A = LDLᵀ with Bunch and Kaufman's pivots in blocks: A may be indefinite. 1.1 s at 4000
                                  rows, between checks for signals; dsytrf takes 3.6 s with SciPy's default workspace
    solve_general                 A z = b by LU with partial pivoting: LAPACK's dgetrf
    eigh                          A = UΛUᵀ: LAPACK's dsyevd, through NumPy

The bits do not depend on the number of threads: LAPACK runs on one thread (`parallel.blas_threads`).

References
----------
Bunch, J. R. and Kaufman, L. (1977). "Some stable methods for calculating inertia and solving symmetric linear systems".
Mathematics of Computation 31(137).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from kernelrules import parallel
from kernelrules.core.linalg import cholesky

__all__ = [
    "BlockLDL",
    "eigh",
    "factor",
    "interruptible",
    "mirror_upper",
    "smallest_eigenvalue",
    "solve",
    "solve_general",
    "solve_lower",
]

_BLOCK = 512  # rows and columns eliminated together: products of that size run at the speed of dgemm


# ---- interrupts -------------------------------------------------------------------------------------


def interruptible(call: Callable[[], Any], n_threads: int) -> Any:
    """Run call() with BLAS on n_threads threads, beside the main thread, which answers Ctrl-C at once."""

    def limited() -> Any:
        with parallel.blas_threads(n_threads):
            return call()

    return parallel.interruptible_call(limited)


# ---- Cholesky ---------------------------------------------------------------------------------------------------


def factor(a: np.ndarray, n_threads: int) -> int:
    """Write L of a = LLᵀ on and below the diagonal of a; above it nothing changes.

    Returns -1, or the number of the first pivot that is not positive: then a is not positive definite, and undefined on
    and below the diagonal.
    """
    return cholesky.factor(a, parallel.enough_threads(n_threads, len(a) ** 3 / 100.0)) - 1


def solve_lower(lower: np.ndarray, b: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Replace every row b by L⁻¹b."""
    cholesky.solve_lower(lower, b, parallel.enough_threads(n_threads, b.size * len(lower) / 50.0))
    return b


def solve(lower: np.ndarray, b: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Replace every row b by (LLᵀ)⁻¹b."""
    cholesky.solve(lower, b, parallel.enough_threads(n_threads, b.size * len(lower) / 25.0))
    return b


def mirror_upper(a: np.ndarray) -> None:
    """Copy the entries above the diagonal to below it."""
    for start in range(0, len(a), _BLOCK):
        end = min(start + _BLOCK, len(a))
        a[start:end, :start] = a[:start, start:end].T
        square = a[start:end, start:end]
        square[...] = np.triu(square) + np.triu(square, 1).T


# ---- others -----------------------------------------------------------------------------------------------------


class BlockLDL:
    """A symmetric matrix as LDLᵀ with a block-diagonal D, factored in place. Signals are checked between the blocks.

    Attributes
    ----------
    n_negative : int
        The number of negative eigenvalues of the matrix, which is that of D.
    """

    def __init__(self, a: np.ndarray) -> None:
        self.a, self.blocks, self.n_negative = a, [], 0
        self.starts = list(range(0, len(a), _BLOCK))
        with parallel.blas_threads(1):
            for start in self.starts:
                self._eliminate(start, min(start + _BLOCK, len(a)))

    def _eliminate(self, start: int, end: int) -> None:
        a = self.a
        ldu, pivots, failed = lapack.dsytrf(np.array(a[start:end, start:end].T, order="F"), lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("singular")
        self.blocks.append((ldu, pivots))
        self.n_negative += _negative_pivots(ldu, pivots)
        below = a[end:, start:end].copy()
        if not below.size:
            return
        a[end:, start:end] = lapack.dsytrs(ldu, pivots, np.asfortranarray(below.T), lower=1)[0].T
        for first in range(end, len(a), _BLOCK):
            last = first + _BLOCK
            a[first:last, end:last] -= a[first:last, start:end] @ below[: last - end].T

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Replace every row b by A⁻¹b."""
        with parallel.blas_threads(1):
            for start in self.starts:
                end = min(start + _BLOCK, len(self.a))
                b[:, end:] -= b[:, start:end] @ self.a[end:, start:end].T
            for start, (ldu, pivots) in zip(self.starts, self.blocks, strict=True):
                columns = slice(start, start + len(ldu))
                b[:, columns] = lapack.dsytrs(ldu, pivots, np.asfortranarray(b[:, columns].T), lower=1)[0].T
            for start in reversed(self.starts):
                end = min(start + _BLOCK, len(self.a))
                b[:, start:end] -= b[:, end:] @ self.a[end:, start:end]
        return b


def _negative_pivots(ldu: np.ndarray, pivots: np.ndarray) -> int:
    """The number of negative eigenvalues of D: one per negative block of one row, one per block of two rows."""
    pairs = int((pivots < 0).sum()) // 2
    return int((np.diagonal(ldu)[pivots > 0] < 0).sum()) + pairs


def solve_general(a: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Factor a in place by LU and return a function that maps every row b to a⁻¹b."""
    lu, pivots, failed = interruptible(lambda: lapack.dgetrf(a.T, overwrite_a=1), 1)
    if failed:
        raise np.linalg.LinAlgError("singular")

    def inverse(b: np.ndarray) -> np.ndarray:
        with parallel.blas_threads(1):
            return np.ascontiguousarray(lapack.dgetrs(lu, pivots, b.T, trans=1)[0].T)

    return inverse


def eigh(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues in ascending order and the eigenvectors as columns, computed on one thread."""
    return interruptible(lambda: np.linalg.eigh(a), 1)


def smallest_eigenvalue(a: np.ndarray, n_threads: int) -> float:
    """Return the smallest eigenvalue of a symmetric matrix."""
    values = interruptible(lambda: np.linalg.eigvalsh(a), parallel.enough_threads(n_threads, len(a) ** 3 / 20.0))
    return float(values[0])
