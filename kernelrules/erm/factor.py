"""Cholesky factors A = L·Lᵀ by tiles, and solutions with them.

Tiles go to threads of our own with BLAS held to one (`parallel.one_blas_thread` is the caller's to enter): the bits do
not depend on the number of threads, and signals are seen between tiles.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack
from scipy.linalg.blas import dtrsm, dtrsv

from kernelrules import parallel

__all__ = ["factor", "solve"]

_TILE = 256


def factor(a: np.ndarray, n_threads: int, air: Callable[[], None] | None = None) -> int:
    """Put the lower factor in the lower triangle of a; what is above it becomes meaningless.

    Parameters
    ----------
    a : ndarray (n, n), C-ordered
        Symmetric, positive definite; only its lower triangle is read.
    n_threads : int
        To use.
    air : callable, optional
        Called several times a second.

    Returns
    -------
    int
        The first pivot that was not positive: the matrix is not positive definite. -1: done.
    """
    n = len(a)
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        diagonal = a[start:stop, start:stop]
        if start:
            left = a[start:stop, :start]
            diagonal -= left @ left.T
        # The transpose is what LAPACK, which counts by columns, sees of rows: its upper factor is our lower one.
        tile, failed = lapack.dpotrf(np.ascontiguousarray(diagonal).T, lower=0, clean=1, overwrite_a=1)
        if failed:
            return start + failed - 1
        if np.isnan(tile.diagonal()).any():  # which LAPACK lets pass
            return start + int(np.isnan(tile.diagonal()).argmax())
        diagonal[...] = tile.T
        below = ((a, first, start, stop, tile) for first in range(stop, n, _TILE))
        threads = parallel.enough_threads(n_threads, (n - stop) * _TILE * max(start, _TILE) / 8.0)
        for _ in parallel.in_threads(_one_tile, below, threads, air):
            pass
        if air is not None:
            air()
    return -1


def _one_tile(a: np.ndarray, first: int, start: int, stop: int, upper: np.ndarray) -> None:
    """Rows first to first + _TILE of the columns start to stop of the factor."""
    rows = a[first : first + _TILE]
    tile = rows[:, start:stop]
    if start:
        tile -= rows[:, :start] @ a[start:stop, :start].T
    # X·Lᵀ = tile is L·Xᵀ = tileᵀ, and tileᵀ of rows is what BLAS reads as it stands
    tile[...] = dtrsm(1.0, upper, np.ascontiguousarray(tile).T, trans_a=1, overwrite_b=1).T


def solve(l: np.ndarray, b: np.ndarray) -> np.ndarray:  # noqa: E741
    """A⁻¹ b for a factor that `factor` made."""
    half = dtrsv(l.T, np.array(b), lower=0, trans=1, overwrite_x=1)
    return dtrsv(l.T, half, lower=0, overwrite_x=1)
