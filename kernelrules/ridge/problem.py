"""A checked ridge problem: the points, targets and weights that all forms work on, and products with its kernel.

    minimise  (1/W) Σ wᵢ (fᵢ - yᵢ)² + λ‖f‖²,   W = Σ wᵢ

Rows of weight 0 count as unlabelled. Inside, targets and coefficients have one row for each target, (t, n), and the
noise of a point is sᵢ = λW/wᵢ: the optimum solves (K + diag s) α = y - b, where Σα = 0 if the constant b is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.core.base import memory
from kernelrules.kernels.matrix import refuse_overflow, require_square
from kernelrules.kernels.values import (
    callable_matrix,
    is_callable,
    is_semidefinite,
    plain,
    product,
    require_symmetric,
    resolve,
    symmetric_product,
    take,
)

__all__ = ["Problem", "read", "strength", "targets"]

_LARGEST_TARGET = 1e150  # its square still is a number
_LEAST_LAM, _MOST_LAM = 1e-100, 1e100  # beyond them coefficients or their squares leave float64
_LEAST, _MOST = 1e-305, 1e300


@dataclass(frozen=True, eq=False)
class Problem:
    """A checked problem.

    Attributes
    ----------
    data : ndarray or Csr
        The labelled points as they were given, float32 or float64.
    points : ndarray or Csr (m, p)
        All of them in float64, the labelled first; for `Precomputed` the matrix of all, (m, m).
    kernel : Kernel or callable
        With gamma as a number.
    lam : float
        λ.
    y : ndarray (t, n_kept)
        Targets of the labelled points of positive weight.
    weight : ndarray (n_kept,)
        Their weights.
    kept : ndarray (n_kept,)
        Which points they are.
    n, m : int
        Labelled points, and all points.
    flat : bool
        Whether the targets were one-dimensional.
    intercept : bool
        Whether there is a constant.
    threads, tick : int, callable or None
        To use; told of progress.
    held : ndarray (m, m) or None
        The kernel matrix of all points, if it was computed for a check (definite.py).
    """

    data: Any
    points: Any
    kernel: Any
    lam: float
    y: np.ndarray
    weight: np.ndarray
    kept: np.ndarray
    n: int
    m: int
    flat: bool
    intercept: bool
    threads: int
    tick: Any
    held: np.ndarray | None = None

    @cached_property
    def total(self) -> float:
        """W."""
        return math.fsum(self.weight)

    @cached_property
    def noise(self) -> np.ndarray:
        """λW/w of each labelled point of positive weight."""
        with np.errstate(over="ignore"):
            return np.minimum(self.lam * (self.total / self.weight), _MOST)

    @property
    def given(self) -> bool:
        """Whether the kernel matrix was given."""
        return isinstance(self.kernel, kernels.Precomputed)

    @property
    def semidefinite(self) -> bool:
        """Whether the kernel matrix has no negative eigenvalues by a theorem, whatever the data."""
        return is_semidefinite(self.kernel)

    @cached_property
    def others(self) -> np.ndarray:
        """Points without a label or without weight."""
        return np.setdiff1d(np.arange(self.m), self.kept, assume_unique=True)

    def labelled(self) -> Any:
        """The labelled points of positive weight."""
        return self._rows_of(self.points, self.kept)

    @property
    def _matrix(self) -> Any:
        """The kernel matrix of all points, where it is at hand."""
        return self.points if self.given else self.held

    def _rows_of(self, x: Any, rows: np.ndarray) -> Any:
        """Some rows, ascending, of what has a row for each point; x itself if these are all."""
        return x if len(rows) == self.m else take(x, rows)

    def means(self, values: np.ndarray) -> np.ndarray:
        """Weighted means of rows of values; 0 where there is no constant to be fitted."""
        if not self.intercept:
            return np.zeros(len(values))
        return (values * self.weight).sum(axis=1) / self.total

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def gram(self, out: np.ndarray | None = None, of: np.ndarray | None = None) -> np.ndarray:
        """The kernel matrix of some points, ascending, by default the labelled of positive weight; float64, a copy."""
        of = self.kept if of is None else of
        if out is None:
            check.fits_memory((len(of), len(of)), np.float64, "the kernel matrix")
            out = memory.empty((len(of), len(of)), np.float64)
        if self._matrix is not None:
            rows = plain(self._rows_of(self._matrix, of))
            rows = rows if len(of) == self.m else rows[:, of]
            out[...] = rows if isinstance(rows, np.ndarray) else rows.toarray()
            return out
        x = self._rows_of(self.points, of)
        if is_callable(self.kernel):
            callable_matrix(self.kernel, x, x, out, self.tick)
            require_symmetric(out, "kernel(X, X)")
            return out
        return kernels.gram(
            plain(x),
            None,
            self.kernel,
            out=out,
            n_threads=self.threads,
            callback=None if self.tick is None else self.tick.nested,
        )

    def product(self, alpha: np.ndarray, single: bool = False) -> np.ndarray:
        """alpha · K, (t, n_kept), without the matrix; `single`: from float32 kernel values."""
        with parallel.blas_threads(1):  # the same bits for any number of threads
            if self._matrix is not None:
                return self._held_rows(self.kept, alpha).T.copy()
            x = self.labelled()
            x = x.astype(np.float32) if single else x
            return symmetric_product(x, self.kernel, alpha, self.threads, parallel.uncounted_tick(self.tick))

    def cross(self, rows: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """k(points[rows], labelled) · alphaᵀ, (n_rows, t)."""
        with parallel.blas_threads(1):
            if self._matrix is not None:
                return self._held_rows(rows, alpha)
            rows_of, air = take(self.points, rows), parallel.uncounted_tick(self.tick)
            return product(rows_of, self.labelled(), self.kernel, alpha, self.threads, air)

    def _held_rows(self, rows: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        full = np.zeros((self.m, len(alpha)))
        full[self.kept] = alpha.T
        return np.asarray(plain(self._rows_of(self._matrix, rows)) @ full)

    # ---- results ----------------------------------------------------------------------------------------------------

    def shaped(self, rows: np.ndarray) -> np.ndarray:
        """(t, k) inside becomes (k,) or (k, t) for the user."""
        return rows[0].copy() if self.flat else np.ascontiguousarray(rows.T)

    def all_values(self, alpha: np.ndarray, constant: np.ndarray, at_kept: np.ndarray) -> np.ndarray:
        """f at all m points, (t, m), from alpha · K at the labelled ones."""
        values = np.empty((len(alpha), self.m))
        values[:, self.kept] = at_kept
        if len(self.kept) < self.m:
            values[:, self.others] = self.cross(self.others, alpha).T
        return values + constant[:, None]

    def all_alpha(self, alpha: np.ndarray) -> np.ndarray:
        """With a zero for every labelled point of weight 0."""
        full = np.zeros((len(alpha), self.n))
        full[:, self.kept] = alpha
        return full


def strength(lam: Any, name: str) -> float:
    """λ, greater than 0 and of a size to compute with."""
    number = check.positive(lam, name)
    if not _LEAST_LAM <= number <= _MOST_LAM:
        raise ValueError(f"{name} must be between {_LEAST_LAM:g} and {_MOST_LAM:g}, got {number:g}")
    return number


def _n_dimensions(y: Any, name: str) -> int:
    try:
        return len(np.shape(y))
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array: {error}") from None


def targets(y: Any, n: int, name: str = "y") -> tuple[np.ndarray, bool]:
    """Targets as rows, (t, n), and whether they were one-dimensional."""
    if _n_dimensions(y, name) == 2:
        table = check.matrix(y, name, dtype=np.float64)
        if isinstance(table, check.Csr):
            raise TypeError(f"{name} must not be sparse")
        if len(table) != n:
            raise ValueError(f"{name} has {len(table)} rows but X has {n}")
        rows, flat = np.ascontiguousarray(table.T), False
    else:
        rows, flat = check.targets(y, n, name)[None, :], True
    if np.abs(rows).max(initial=0.0) > _LARGEST_TARGET:
        largest = rows.flat[np.abs(rows).argmax()]
        raise ValueError(f"{name} holds {largest:.3g}, whose square does not fit float64: rescale it")
    return rows, flat


def _require_squares(rows: np.ndarray, weight: np.ndarray) -> None:
    """Refuse targets and weights for which the sum of weighted squares is not a float64."""
    largest, total = float(np.abs(rows).max(initial=0.0)), math.fsum(weight)
    if largest > 1 and total > _MOST / largest / largest:
        raise ValueError(
            f"sample_weight, whose sum is {total:.3g}, times the square of y, up to {largest:.3g}, does not fit float64"
        )


def require_strength(lam: float, total: float) -> None:
    """Refuse a product of lam and the sum of weights that is not a float64."""
    if not _LEAST < lam * total < _MOST:
        raise ValueError(f"lam times the sum of weights does not fit float64: {lam} · {total}")


def read(
    X: Any,
    y: Any,
    lam: Any,
    kernel: Any,
    *,
    unlabelled: Any = None,
    sample_weight: Any = None,
    intercept: Any = False,
    n_threads: int | None = None,
    callback: Any = None,
) -> Problem:
    """The problem of a user's arrays, or an error that names what is wrong with them."""
    lam = strength(lam, "lam")
    intercept = check.flag(intercept, "intercept")
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "ridge")
    data = check.matrix(X)
    x = data.astype(np.float64, copy=False) if isinstance(data, np.ndarray) else data.astype(np.float64)
    given = isinstance(kernel, kernels.Precomputed)
    n = x.shape[0]
    if given:
        n = _labelled_of_given(x, y)
        x = _symmetric(x)
    if n == 0:
        raise ValueError("no labelled point: y is empty" if x.shape[0] else "X has no rows")
    rows, flat = targets(y, n)
    weight = check.weights(sample_weight, n)
    _require_squares(rows, weight)
    kept = np.flatnonzero(weight)
    resolved = resolve(kernel, x)
    points = x
    if unlabelled is not None:
        points = _stacked(x, check.matrix(unlabelled, "unlabelled", dtype=np.float64))
    if not given and not is_callable(resolved):
        refuse_overflow(points, None, resolved)
        if not np.isfinite(kernels.diagonal(plain(points), resolved)).all():
            raise ValueError(f"values of {resolved!r} overflow float64 on these data: use smaller units or gamma")
    require_strength(lam, math.fsum(weight))
    return Problem(
        data, points, resolved, lam, np.ascontiguousarray(rows[:, kept]), weight[kept], kept, n, points.shape[0], flat,
        intercept, threads, tick,
    )  # fmt: skip


def _labelled_of_given(x: Any, y: Any) -> int:
    """How many of the points of a kernel matrix have labels."""
    require_square(x)
    if _n_dimensions(y, "y") == 0:
        raise ValueError(f"y must be an array, got {y!r}")
    n = np.shape(y)[0]
    if n > x.shape[0]:
        raise ValueError(f"y has {n} entries but X has {x.shape[0]} rows")
    if isinstance(x, check.Csr):
        both = abs(x.toscipy() - x.toscipy().T)
        if both.nnz and both.max() > 1e-6 * abs(x.data).max():
            raise ValueError(f"X is not symmetric, so no kernel matrix: by {both.max()}")
    else:
        require_symmetric(x, "X")
    return n


def _symmetric(x: Any) -> Any:
    """A kernel matrix without the rounding errors in which it differs from its transpose."""
    if isinstance(x, check.Csr):
        whole = x.toscipy()
        return check.matrix((whole + whole.T) / 2)
    return x if np.array_equal(x, x.T) else (x + x.T) / 2


def _stacked(x: Any, z: Any) -> Any:
    """The rows of both, sparse if either is."""
    if x.shape[1] != z.shape[1]:
        raise ValueError(f"unlabelled has {z.shape[1]} columns but X has {x.shape[1]}")
    if not isinstance(x, check.Csr) and not isinstance(z, check.Csr):
        return np.concatenate([x, z])
    a, b = (rows if isinstance(rows, check.Csr) else check.sparse_rows(rows) for rows in (x, z))
    return check.Csr(
        np.concatenate([a.data, b.data]),
        np.concatenate([a.indices, b.indices]),
        np.concatenate([a.indptr, b.indptr[1:] + a.indptr[-1]]),
        a.n_features,
    )
