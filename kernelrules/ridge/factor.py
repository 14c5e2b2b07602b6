"""Factorisations of symmetric matrices, over C-ordered arrays whose rows are the right-hand sides.

    factor, solve, solve_lower    A = LLᵀ in place: L on and below the diagonal; what is above it is left as it was
    BlockLDL                      A = LDLᵀ, D of blocks with Bunch and Kaufman's pivots: A may be indefinite
    solve_general                 A z = b by LU with partial pivoting
    eigh                          A = UΛUᵀ

The first are the core's, whose bits do not depend on the threads; the others LAPACK's. BLAS runs under a limit of
threads that is taken back afterwards (`parallel.blas_threads`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from kernelrules import parallel
from kernelrules.core import cholesky

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

_BLOCK = 512  # rows and columns treated together


# ---- interrupts -------------------------------------------------------------------------------------


def interruptible(call: Callable[[], Any], n_threads: int) -> Any:
    """call() with BLAS on that many threads, for a long one that releases Python's lock: Ctrl-C is answered at once."""

    def limited() -> Any:
        with parallel.blas_threads(n_threads):
            return call()

    return parallel.aside(limited)


# ---- Cholesky ---------------------------------------------------------------------------------------------------


def factor(a: np.ndarray, n_threads: int) -> int:
    """Put L of a = LLᵀ on and below the diagonal of a; above it nothing changes.

    Returns -1, or the number of the pivot that is not positive: a is not positive definite, and is spoilt below the
    diagonal.
    """
    return cholesky.factor(a, parallel.enough_threads(n_threads, len(a) ** 3 / 100.0)) - 1


def solve_lower(lower: np.ndarray, b: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """L⁻¹ of every row of b, in place."""
    cholesky.solve_lower(lower, b, parallel.enough_threads(n_threads, b.size * len(lower) / 50.0))
    return b


def solve(lower: np.ndarray, b: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """(LLᵀ)⁻¹ of every row of b, in place."""
    cholesky.solve(lower, b, parallel.enough_threads(n_threads, b.size * len(lower) / 25.0))
    return b


def mirror_upper(a: np.ndarray) -> None:
    """Copy what is above the diagonal to below it."""
    for start in range(0, len(a), _BLOCK):
        end = min(start + _BLOCK, len(a))
        a[start:end, :start] = a[:start, start:end].T
        square = a[start:end, start:end]
        square[...] = np.triu(square) + np.triu(square, 1).T


# ---- others -----------------------------------------------------------------------------------------------------


class BlockLDL:
    """A symmetric matrix as LDLᵀ, D of square blocks, made in place of it. Signals are seen between the blocks.

    Attributes
    ----------
    n_negative : int
        Negative eigenvalues of the matrix: those of D.
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
        """A⁻¹ of every row of b, in place."""
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
    """Of D: one for each negative block of one row, one for each block of two, which is indefinite."""
    pairs = int((pivots < 0).sum()) // 2
    return int((np.diagonal(ldu)[pivots > 0] < 0).sum()) + pairs


def solve_general(a: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that gives a⁻¹ of every row of b, by LU in place of a. On one thread: the same bits always."""
    lu, pivots, failed = interruptible(lambda: lapack.dgetrf(a.T, overwrite_a=1), 1)
    if failed:
        raise np.linalg.LinAlgError("singular")

    def inverse(b: np.ndarray) -> np.ndarray:
        with parallel.blas_threads(1):
            return np.ascontiguousarray(lapack.dgetrs(lu, pivots, b.T, trans=1)[0].T)

    return inverse


def eigh(a: np.ndarray, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues in ascending order, and eigenvectors as columns."""
    return interruptible(lambda: np.linalg.eigh(a), parallel.enough_threads(n_threads, len(a) ** 3 / 10.0))


def smallest_eigenvalue(a: np.ndarray, n_threads: int) -> float:
    """Of a symmetric matrix."""
    values = interruptible(lambda: np.linalg.eigvalsh(a), parallel.enough_threads(n_threads, len(a) ** 3 / 20.0))
    return float(values[0])
