"""The nearest training points of new ones.

scikit-learn finds candidates: by a KD-tree where there are few columns, otherwise by inner products, whose rounding
errors are those of squared lengths. So dense data are moved to their middle, and the distances that decide are made
from differences. Of points at one distance, those with the smaller indices are nearer, as in `graph.knn_graph`, but a
search gives any of them. So rows for which it cannot tell the neighbours, by rounding or ties, ask a tree for more
candidates, and in the end are compared with all points. Data are divided by a power of two, the one by which
`graph.knn_graph` has divided them: squares neither overflow nor vanish.
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

_TREE_COLUMNS = 15  # up to which scikit-learn takes a tree
_SPARE = 2  # candidates beyond k
_MORE = 8  # times the candidates, for ties
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
            n, n_asked = self.points.shape[0], self.search.n_neighbors
            squares, nearest, limit = self._of_candidates(x, n_asked)
            in_doubt = np.flatnonzero(limit >= 0)
            while self.by_tree and len(in_doubt) and n_asked * _MORE < n // 2:
                n_asked *= _MORE
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
        """Squared distances of rows to points, from differences."""
        if self.sparse:
            rows = np.repeat(np.arange(len(found)), found.shape[1])
            return self._squares_of_pairs(x, rows, found.ravel()).reshape(found.shape)
        out = np.empty(found.shape)
        for rows in _batches(np.arange(len(found)), x.shape[1] * found.shape[1]):
            apart = x[rows][:, None, :] - self.points[found[rows]]
            out[rows] = np.einsum("ijk,ijk->ij", apart, apart)
        return out

    def _squares_of_pairs(self, x: Any, rows: np.ndarray, near: np.ndarray) -> np.ndarray:
        """The same of sparse rows x[rows[i]] and points near[i]."""
        out = np.empty(len(rows))
        for pairs in _batches(np.arange(len(rows)), 1 + 2 * self.points.nnz // self.points.shape[0]):
            apart = x[rows[pairs]] - self.points[near[pairs]]
            out[pairs] = apart.multiply(apart).sum(axis=1)
        return out

    def _among_all(self, x: Any, limit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squares and indices of the nearest of all points; a search sees none of them beyond the limit."""
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
    """Parts of rows that need so many numbers each."""
    step = max(1, _NUMBERS // numbers)
    return (rows[start : start + step] for start in range(0, len(rows), step))
