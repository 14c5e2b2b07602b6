"""A symmetric matrix as QBQᵀ with a banded B, and the diagonal of (QBQᵀ + s)⁻¹ for many s.

An eigendecomposition reduces the matrix to tridiagonal form, and half of that work are products of the whole matrix
with one vector after another, bounded by memory. Reduction to a band uses products with WIDTH vectors at a time:

    panel = VR by Householder,  H = I - VTVᵀ,  A := HᵀAH = A - VYᵀ - YVᵀ,  Y = X - ½V(TᵀVᵀX),  X = AVT

and for each s, B + s = LLᵀ (LAPACK's dpbtrf) costs little, L⁻¹Qᵀ n² operations per diagonal (core/linalg/banded.pyx):

    (A + s)⁻¹ = Q L⁻ᵀ L⁻¹ Qᵀ,  its diagonal the squared lengths of the columns of L⁻¹Qᵀ.

Only entries on and below the diagonal of A are updated. Threads take blocks of rows, whose products BLAS computes on
one thread each: the bits are the same for any number of threads.

References
----------
Golub, G. H. and Van Loan, C. F. (2013). "Matrix Computations", 4th edition, sections 5.1 and 8.3. Johns Hopkins
University Press.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from kernelrules import parallel
from kernelrules.core.linalg import banded

__all__ = ["Band"]

WIDTH = 32  # diagonals of the band below the main one: wider bands cost more per s than they save in the reduction
_BLOCK_ROWS = 192  # rows of the matrix that a thread updates together
_TILE_COLUMNS = 1024  # columns of these rows at a time, which stay in cache for two products
_PANELS_AT_ONCE = 4  # panels whose reflections are applied as one


def _reflectors(panel: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V, T and R of a panel = (I - VTVᵀ)R; V has unit diagonal and as many columns as the panel has rows at most."""
    qr, tau, _, _ = lapack.dgeqrf(np.asfortranarray(panel))
    n_vectors = len(tau)
    v = np.tril(qr[:, :n_vectors], -1)
    v[np.arange(n_vectors), np.arange(n_vectors)] = 1.0
    products = v.T @ v
    t = np.zeros((n_vectors, n_vectors))
    for j in range(n_vectors):
        t[:j, j] = -tau[j] * (t[:j, :j] @ products[:j, j])
        t[j, j] = tau[j]
    return np.ascontiguousarray(v), t, np.triu(qr[: min(qr.shape)])


class Band:
    """QBQᵀ of a symmetric matrix, made in place of it.

    Parameters
    ----------
    a : ndarray (n, n)
        The matrix; overwritten.
    n_threads : int
        Of the products; BLAS should be held to one.
    tick : callable, optional
        Told of progress.

    Attributes
    ----------
    band : ndarray (WIDTH + 1, n)
        B on and below its diagonal: band[k, j] = B[j + k, j], in LAPACK's layout.
    vectors : ndarray (n, n)
        Qᵀ.
    """

    def __init__(self, a: np.ndarray, n_threads: int = 1, tick: Callable[[int, int], Any] | None = None) -> None:
        n = len(a)
        self.n_threads, self.n = n_threads, n
        self.band = np.zeros((min(WIDTH, n - 1) + 1, n), order="F")
        panels = []
        for k in range(0, n, WIDTH):
            s = min(k + WIDTH, n)
            self._keep(a[k:s, k:s], k, k)
            if s == n:
                break
            v, t, r = _reflectors(a[s:, k:s])
            self._keep(r, s, k)
            panels.append((s, v, t))
            _both_sides(a[s:, s:], v, t, n_threads)
            if tick is not None:
                tick(k, 3 * n)
        self.vectors = _product(a, panels, n_threads, tick)

    def _keep(self, block: np.ndarray, row: int, column: int) -> None:
        """Put what a block of B, whose corner is there, has on and below B's diagonal into the band."""
        for c in range(block.shape[1]):
            first = max(column + c, row)
            part = block[first - row :, c]
            part = part[: len(self.band) - (first - column - c)]  # below it R has zeros
            self.band[first - column - c :, column + c][: len(part)] = part

    def is_definite(self, shift: float) -> bool:
        """Whether B + shift is positive definite."""
        return self._cholesky(shift) is not None

    def _cholesky(self, shift: float) -> np.ndarray | None:
        """L like the band."""
        moved = self.band.copy(order="F")
        moved[0] += shift
        lower, info = lapack.dpbtrf(moved, lower=1, overwrite_ab=1)
        return lower if info == 0 else None

    def factor(self, shifts: np.ndarray) -> list[np.ndarray] | None:
        """L of LLᵀ = B + shift for every shift, like the band. None where one is not positive definite."""
        found = []
        for shift in shifts:
            lower = self._cholesky(shift)
            if lower is None:
                return None
            found.append(lower)
        return found

    def forward(self, factors: list[np.ndarray], right: np.ndarray) -> np.ndarray:
        """L⁻¹ of the columns of `right`, (n_shifts, n, n_columns)."""
        return np.stack([lapack.dtbtrs(lower, right, uplo="L")[0] for lower in factors])

    def backward(self, factors: list[np.ndarray], z: np.ndarray) -> np.ndarray:
        """L⁻ᵀ of what `forward` gave."""
        return np.stack(
            [lapack.dtbtrs(lower, one, uplo="L", trans="T")[0] for lower, one in zip(factors, z, strict=True)]
        )

    def squared_lengths(self, factors: list[np.ndarray], tick: Callable[[int, int], Any] | None = None) -> np.ndarray:
        """Of the columns of L⁻¹Qᵀ, (n_shifts, n): the diagonals of the inverses."""
        out = np.empty((len(factors), self.n))
        told = None if tick is None else lambda done, total: tick(2 * total + done, 3 * total)
        first = banded.packed(factors[0].T)
        packed = np.empty((len(factors), *first.shape))  # filled one by one: no two copies of all of them
        packed[0] = first
        for i, lower in enumerate(factors[1:], 1):
            packed[i] = banded.packed(lower.T)
        banded.squared_lengths(packed, self.vectors, out, self.n_threads, told)
        return out


def _blocks(n: int) -> list[tuple[slice]]:
    """Rows that are treated together, the last first: those of a triangle are the longest."""
    return [(slice(i, min(i + _BLOCK_ROWS, n)),) for i in range(0, n, _BLOCK_ROWS)][::-1]


def _tiles(n: int) -> list[slice]:
    """Columns beside so many rows that both stay in a core's cache."""
    return [slice(j, min(j + _TILE_COLUMNS, n)) for j in range(0, n, _TILE_COLUMNS)]


def _both_sides(a: np.ndarray, v: np.ndarray, t: np.ndarray, n_threads: int) -> None:
    """a := HᵀaH on and below the diagonal."""
    n = len(a)
    vt = v @ t
    x = np.zeros_like(vt)

    def products(rows: slice) -> tuple[int, np.ndarray]:
        corner = np.tril(a[rows, rows])
        x[rows] = (corner + np.tril(corner, -1).T) @ vt[rows]
        above = np.empty((rows.start, vt.shape[1]))
        for columns in _tiles(rows.start):
            tile = a[rows, columns]
            x[rows] += tile @ vt[columns]
            above[columns] = tile.T @ vt[rows]
        return rows.start, above

    for start, above in list(parallel.in_threads(products, _blocks(n), n_threads)):
        x[:start] += above
    y = x - 0.5 * v @ (t.T @ (v.T @ x))
    left, right = np.hstack([v, y]), np.hstack([y, v])

    def update(rows: slice) -> None:
        for columns in _tiles(rows.stop):
            a[rows, columns] -= left[rows] @ right[columns].T

    for _ in parallel.in_threads(update, _blocks(n), n_threads):
        pass


def _joined(panels: list[Any]) -> tuple[int, np.ndarray, np.ndarray]:
    """Reflections one after the other as one: I - VTVᵀ with the vectors of all."""
    start, length = panels[0][0], len(panels[0][1])
    v = np.zeros((length, sum(len(t) for _, _, t in panels)))
    t = np.zeros((v.shape[1], v.shape[1]))
    done = 0
    for s, own, own_t in panels:
        here = slice(done, done + len(own_t))
        v[s - start :, here] = own
        t[here, here] = own_t
        t[:done, here] = -t[:done, :done] @ (v[s - start :, :done].T @ own) @ own_t
        done = here.stop
    return start, v, t


def _product(out: np.ndarray, panels: list[Any], n_threads: int, tick: Callable[[int, int], Any] | None) -> np.ndarray:
    """Qᵀ, the product of all reflections, in the memory of `out`."""
    n = len(out)
    out[...] = 0.0
    out[np.arange(n), np.arange(n)] = 1.0
    for first in reversed(range(0, len(panels), _PANELS_AT_ONCE)):
        s, v, t = _joined(panels[first : first + _PANELS_AT_ONCE])
        part = out[s:, s:]

        def reflect(rows: slice, part: np.ndarray = part, v: np.ndarray = v, t: np.ndarray = t) -> None:
            part[rows] -= ((part[rows] @ v) @ t.T) @ v.T

        for _ in parallel.in_threads(reflect, _blocks(len(part)), n_threads):
            pass
        if tick is not None:
            tick(2 * n - s, 3 * n)
    return out
