"""The nearest training points of new ones.

scikit-learn finds candidates: by a KD-tree where there are few columns, otherwise by inner products, whose rounding
errors are those of squared lengths. So dense data are moved to their middle, and the distances that decide are made
from differences; rows for which inner products cannot tell the neighbours are compared with all points. Data are
divided by a power of two, the one by which `graph.knn_graph` has divided them: squares neither overflow nor vanish.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

__all__ = ["Nearest"]

_TREE_COLUMNS = 15  # up to which scikit-learn takes a tree
_SPARE = 2  # candidates beyond k
_NOTICED = 1e-9  # of a squared distance: a rounding error that is not
_NUMBERS = 1 << 21  # differences, or distances, made at a time


class Nearest:
    """To be asked for the k nearest of the rows of X.

    Parameters
    ----------
    X : ndarray or sparse matrix (n, p)
        The training points.
    k : int
        Neighbours; all points where these are fewer.
    exponent : int
        Of the power of two that distances are divided by.
    """

    def __init__(self, X: Any, k: int, exponent: int) -> None:
        self.exponent, self.sparse = exponent, sparse.issparse(X)
        self.middle = None
        self.points = self._in_units(X)
        if not self.sparse:
            self.middle = np.median(self.points, axis=0)
            self.points = self.points - self.middle
        n, p = X.shape
        self.k, n_asked = min(k, n), min(k + _SPARE, n)
        self.by_tree = not self.sparse and p <= _TREE_COLUMNS and n_asked < n // 2
        algorithm = "kd_tree" if self.by_tree else "brute"
        self.search = NearestNeighbors(n_neighbors=n_asked, algorithm=algorithm).fit(self.points)

    def _in_units(self, X: Any) -> Any:
        """X / 2**exponent in float64, sparse or dense as the training points are, from their middle."""
        if self.sparse:
            x = sparse.csr_array(X).astype(np.float64)
        else:
            x = (X.toarray() if sparse.issparse(X) else X).astype(np.float64)
        if self.exponent:
            data, half = x.data if self.sparse else x, self.exponent // 2  # 2**-exponent itself may not be a float64
            data[...] = np.ldexp(np.ldexp(data, -half), half - self.exponent)
            if not np.isfinite(data).all():
                raise ValueError("X is too far from the training points: the distance overflows float64")
        return x if self.middle is None else x - self.middle

    def of(self, X: Any, n_threads: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Distances, over the power of two, and indices (n, k) for every row of X, nearest first."""
        with threadpool_limits(n_threads), np.errstate(over="ignore", invalid="ignore"):
            x = self._in_units(X)
            last, found = self.search.kneighbors(x)
        far = np.flatnonzero(~np.isfinite(last).all(axis=1))
        if len(far):
            raise ValueError(f"X is too far from the training points in row {far[0]}: the distance overflows float64")
        squares = self._squares(x, found)
        order = np.lexsort((found, squares), axis=1)[:, : self.k]
        squares, nearest = np.take_along_axis(squares, order, 1), np.take_along_axis(found, order, 1)
        if not self.by_tree and not self.sparse:
            open_rows = self._open(x, squares[:, -1], last[:, -1])
            step = max(1, _NUMBERS // len(self.points))
            for start in range(0, len(open_rows), step):
                rows = open_rows[start : start + step]
                squares[rows], nearest[rows] = self._among_all(x[rows])
        return np.sqrt(squares), nearest

    def _squares(self, x: Any, found: np.ndarray) -> np.ndarray:
        """Squared distances of rows to points, from differences."""
        out = np.empty(found.shape)
        width = 1 + 2 * self.points.nnz // self.points.shape[0] if self.sparse else x.shape[1]
        step = max(1, _NUMBERS // (width * found.shape[1]))
        for start in range(0, len(out), step):
            rows, near = x[start : start + step], found[start : start + step]
            if self.sparse:
                apart = rows[np.repeat(np.arange(len(near)), near.shape[1])] - self.points[near.ravel()]
                out[start : start + step] = apart.multiply(apart).sum(axis=1).reshape(near.shape)
            else:
                apart = rows[:, None, :] - self.points[near]
                out[start : start + step] = np.einsum("ijk,ijk->ij", apart, apart)
        return out

    def _open(self, x: np.ndarray, squares: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Rows for which a point nearer than the k-th may have looked further off than the last candidate.

        Such a point is no longer than the row and the distance together, which bounds what rounding makes of it.
        """
        if self.search.n_neighbors == len(self.points):
            return np.empty(0, dtype=np.intp)
        lengths = np.einsum("ij,ij->i", x, x)
        longest = lengths + (np.sqrt(lengths) + np.sqrt(squares)) ** 2
        error = (x.shape[1] + 32) * np.finfo(np.float64).eps * longest
        return np.flatnonzero((error > _NOTICED * squares) & (squares > 0) & (squares + 2 * error >= last**2))

    def _among_all(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squares and indices of the nearest of all points."""
        everything = cdist(x, self.points, "sqeuclidean")
        some = np.argpartition(everything, self.k - 1, axis=1)[:, : self.k]
        squares = np.take_along_axis(everything, some, 1)
        order = np.lexsort((some, squares), axis=1)
        return np.take_along_axis(squares, order, 1), np.take_along_axis(some, order, 1)
