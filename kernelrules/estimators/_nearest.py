"""The nearest training points of new points.

scikit-learn finds candidates: by a KD-tree for few columns, otherwise by inner products, whose rounding errors are
relative to squared norms. So dense data are centred, and the final distances are computed from differences. Points at
equal distance are ordered by index, as in `graph.knn_graph`, but a search returns any of them. Rows whose neighbours
remain ambiguous, because of rounding or ties, get more candidates from the KD-tree, and finally are compared with all
points. Data are scaled by the power of two of `graph.knn_graph`, so that squares neither overflow nor underflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

__all__ = ["Nearest"]

_KD_TREE_MAX_COLUMNS = 15  # scikit-learn's own limit
_EXTRA_CANDIDATES = 2  # beyond k
_TIE_CANDIDATES_FACTOR = 8  # candidates of rows with ties, relative to the first search
_BLOCK_NUMBERS = 1 << 21  # differences or distances computed at a time


class Nearest:
    """A search for the k nearest rows of X.

    Parameters
    ----------
    X : ndarray or sparse matrix (n, p)
        The training points.
    k : int
        Number of neighbours, at most the number of points.
    exponent : int
        Exponent of the power of two by which distances are divided.
    """

    def __init__(self, X: Any, k: int, exponent: int) -> None:
        self.exponent, self.sparse = exponent, sparse.issparse(X)
        self.middle = None
        self.points = self._in_units(X)
        if not self.sparse:
            self.middle = np.median(self.points, axis=0)
            self.points = self.points - self.middle
        n, p = X.shape
        self.k, n_asked = min(k, n), min(k + _EXTRA_CANDIDATES, n)
        self.by_tree = not self.sparse and p <= _KD_TREE_MAX_COLUMNS and n_asked < n // 2
        algorithm = "kd_tree" if self.by_tree else "brute"
        self.search = NearestNeighbors(n_neighbors=n_asked, algorithm=algorithm).fit(self.points)

    def _in_units(self, X: Any) -> Any:
        """Return X / 2**exponent in float64, sparse or dense like the training points, and centred if dense."""
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
        """Return the scaled distances and indices (n, k) of the neighbours of each row of X, nearest first."""
        with threadpool_limits(n_threads), np.errstate(over="ignore", invalid="ignore"):
            x = self._in_units(X)
            n, n_asked = self.points.shape[0], self.search.n_neighbors
            squares, nearest, limit = self._of_candidates(x, n_asked)
            in_doubt = np.flatnonzero(limit >= 0)
            while self.by_tree and len(in_doubt) and n_asked * _TIE_CANDIDATES_FACTOR < n // 2:
                n_asked *= _TIE_CANDIDATES_FACTOR
                for rows in _batches(in_doubt, n_asked):
                    squares[rows], nearest[rows], limit[rows] = self._of_candidates(x[rows], n_asked)
                in_doubt = in_doubt[limit[in_doubt] >= 0]
            for rows in _batches(in_doubt, n):
                squares[rows], nearest[rows] = self._among_all(x[rows], limit[rows])
        return np.sqrt(squares), nearest

    def _of_candidates(self, x: Any, n_asked: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Squares and indices of the nearest of some candidates, and how far the search may see nearer or tied ones.

        That is a square, or -1 where all of these are among the candidates.
        """
        last, found = self.search.kneighbors(x, n_asked)
        far = np.flatnonzero(~np.isfinite(last).all(axis=1))
        if len(far):
            raise ValueError(f"X is too far from the training points in row {far[0]}: the distance overflows float64")
        squares = self._squares(x, found)
        order = np.lexsort((found, squares), axis=1)[:, : self.k]
        squares, nearest = np.take_along_axis(squares, order, 1), np.take_along_axis(found, order, 1)
        limit = squares[:, -1] + self._rounding(x, squares[:, -1])
        return squares, nearest, np.where((n_asked < self.points.shape[0]) & (limit >= last[:, -1] ** 2), limit, -1.0)

    def _rounding(self, x: Any, squares: np.ndarray) -> np.ndarray:
        """By how much the search may be wrong about points that are no further off than these squares.

        Such a point is no longer than the row and the distance together, which bounds what rounding makes of it.
        """
        n_terms, longest = x.shape[1], squares
        if not self.by_tree:
            lengths = x.multiply(x).sum(axis=1) if self.sparse else np.einsum("ij,ij->i", x, x)
            longest = lengths + (np.sqrt(lengths) + np.sqrt(squares)) ** 2
        if self.sparse:
            n_terms = min(n_terms, int(np.diff(x.indptr).max()) + int(np.diff(self.points.indptr).max()))
        return 2 * (n_terms + 32) * np.finfo(np.float64).eps * longest

    def _squares(self, x: Any, found: np.ndarray) -> np.ndarray:
        """Return squared distances of rows to points, computed from differences."""
        if self.sparse:
            rows = np.repeat(np.arange(len(found)), found.shape[1])
            return self._squares_of_pairs(x, rows, found.ravel()).reshape(found.shape)
        out = np.empty(found.shape)
        for rows in _batches(np.arange(len(found)), x.shape[1] * found.shape[1]):
            apart = x[rows][:, None, :] - self.points[found[rows]]
            out[rows] = np.einsum("ijk,ijk->ij", apart, apart)
        return out

    def _squares_of_pairs(self, x: Any, rows: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return squared distances of sparse rows x[rows[i]] to points near[i]."""
        out = np.empty(len(rows))
        for pairs in _batches(np.arange(len(rows)), 1 + 2 * self.points.nnz // self.points.shape[0]):
            apart = x[rows[pairs]] - self.points[near[pairs]]
            out[pairs] = apart.multiply(apart).sum(axis=1)
        return out

    def _among_all(self, x: Any, limit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances and indices of the nearest of all points; none is beyond the limit."""
        if self.sparse:
            rows, near = np.nonzero(euclidean_distances(x, self.points, squared=True) <= limit[:, None])
            squares = np.full((len(limit), self.points.shape[0]), np.inf)
            squares[rows, near] = self._squares_of_pairs(x, rows, near)
        else:
            squares = cdist(x, self.points, "sqeuclidean")
        rows, near = np.nonzero(squares <= np.partition(squares, self.k - 1, axis=1)[:, self.k - 1 : self.k])
        squares = squares[rows, near]
        order = np.lexsort((near, squares, rows))
        chosen = order[np.searchsorted(rows, np.arange(len(limit)))[:, None] + np.arange(self.k)]
        return squares[chosen], near[chosen]


def _batches(rows: np.ndarray, numbers: int) -> Iterator[np.ndarray]:
    """Yield slices of rows, each row of which needs this many numbers."""
    step = max(1, _BLOCK_NUMBERS // numbers)
    return (rows[start : start + step] for start in range(0, len(rows), step))
