"""Graphs of nearest neighbours.

Each point chooses its k nearest by Euclidean distance; of two at one distance, the one with the smaller index. "union"
joins i and j if either has chosen the other, "mutual" if both have.

Candidates come from a KD-tree if there are few columns, else from compiled tiles of inner products. In either case the
distances that decide are computed from the differences x - z in float64, so both give the same graph.

Invariant: the lists hold the k smallest pairs (distance, index). So i is in j's list exactly if (d, i) is not above the
last pair there, which needs no search.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kernelrules import check, parallel
from kernelrules.core.graph import neighbours as core
from kernelrules.core.simd.finite import magnitude
from kernelrules.kernels import RBF

__all__ = ["Joined", "join", "knn_graph"]

_MOST_COLUMNS = 20  # beyond which the tree hardly ever pays
_PROBED = 100  # rows on which the time of the tree is measured
_MOST_QUERIES = 1 << 15  # rows that the tree is asked for at a time: as many as it answers in a twentieth of a second
_SPARE = 2  # neighbours asked for beyond k: shows whether the last one has ties
_TREE_ROUNDING = 1e-12  # relative: what the tree's distances may differ by from ours
_MANY, _SEEN = 1000, 32  # points from which float32 pays, and those that it is tried on
_MOST_SEEN = 4  # times the neighbours, that float32 may let through
_BLOCK_NUMBERS = 1 << 16  # of rows that are moved or compared at a time
_TIES_COST = 2500  # a neighbour from the tree takes as long as so many pairs of tiles


@parallel.reports("neighbours")
def knn_graph(
    X: Any,
    k: int,
    weight: str | Callable[[np.ndarray], Any] = "binary",
    symmetrise: str = "union",
    *,
    gamma: float | str = "neighbours",
    method: str = "auto",
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> sparse.csr_array:
    """The graph that joins each point with its k nearest neighbours.

    Neighbours are exact: distances are made from differences in float64, and of two neighbours at one distance the
    one with the smaller index is nearer. A point is never its own neighbour, but a duplicate of it is one.

    Parameters
    ----------
    X : array, sparse matrix or data frame (m, p)
        The points.
    k : int
        Neighbours that each point chooses, from 1 to m - 1.
    weight : "binary", "rbf" or callable
        Of an edge between points at distance d: 1, `exp(-gamma d²)`, or what weight(d) gives for the array of the
        distances of all edges, each once. Edges of weight 0 are left out.
    symmetrise : "union" or "mutual"
        Whether one of the two points has to choose the other, or both.
    gamma : float, "neighbours", "scale" or "auto"
        For "rbf". "neighbours" is 1 / mean of d² over the points' choices; "scale" and "auto" are as in
        `kernels.RBF`.
    method : "auto", "tree" or "tiles"
        How candidates are found: by a KD-tree, which pays in few dimensions, or by inner products of all pairs. The
        result is the same. Sparse data know tiles only.
    {n_threads, callback, progress}

    Returns
    -------
    csr_array (m, m)
        The weights: symmetric, with nothing on the diagonal, columns ascending in each row.

    Examples
    --------
    >>> from kernelrules import graph
    >>> graph.knn_graph([[0.0], [1.0], [3.0]], 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    >>> graph.knn_graph([[0.0], [1.0], [3.0]], 1, symmetrise="mutual").toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    return join(X, k, weight, symmetrise, gamma=gamma, method=method, n_threads=n_threads, callback=callback).graph


class Joined(NamedTuple):
    """A graph of neighbours; the exponent of the power of two that distances were divided by, 0 nearly always; and for
    "rbf" gamma as a number, of distances so divided."""

    graph: sparse.csr_array
    exponent: int
    gamma: float | None


def join(
    X: Any,
    k: int,
    weight: str | Callable[[np.ndarray], Any],
    symmetrise: str = "union",
    *,
    gamma: float | str,
    method: str = "auto",
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
) -> Joined:
    """`knn_graph`, and in which units it was made."""
    x = check.matrix(X)
    n_neighbours = _number(k, len(x))
    if not callable(weight) and weight not in ("binary", "rbf"):
        raise ValueError(f'weight must be "binary", "rbf" or callable, got {weight!r}')
    check.one_of(symmetrise, "symmetrise", "union", "mutual")
    check.one_of(method, "method", "auto", "tree", "tiles")
    by_neighbours = isinstance(gamma, str) and gamma == "neighbours"
    if not by_neighbours:
        RBF(gamma)  # refuses what is no gamma
    threads = parallel.n_threads_or_default(n_threads)
    tick = parallel.ticker(callback, "neighbours")
    indices, squares, exponent = _nearest(x, n_neighbours, method, threads, tick)
    pairs = _symmetric(indices, squares, symmetrise)
    if weight == "binary":
        pairs.data = np.ones(pairs.nnz)
        return Joined(pairs, exponent, None)
    if weight == "rbf":
        if by_neighbours:
            scaled = 1 / float(squares.mean() or 1.0)  # all duplicates: any scale will do
            pairs.data = _rbf(pairs.data, 0, scaled)
        else:
            number = RBF(gamma).resolve_checked(x).gamma
            pairs.data = _rbf(pairs.data, exponent, number)
            with np.errstate(over="ignore", under="ignore"):
                scaled = min(float(np.ldexp(number, 2 * exponent)), float(np.finfo(np.float64).max))
        pairs.eliminate_zeros()
        return Joined(pairs, exponent, scaled)
    return Joined(_weighted(pairs, exponent, weight), exponent, None)


def _number(k: Any, n: int) -> int:
    number = check.whole(k, "k", 1)
    if number >= n:
        raise ValueError(f"k must be less than the number of points, got {number} for {n}")
    if n >= np.iinfo(np.intc).max:
        raise ValueError(f"X has {n} points, more than {np.iinfo(np.intc).max - 1}")
    return number


# ---- the k nearest ----------------------------------------------------------------------------------------------


def _nearest(x: Any, k: int, method: str, threads: int, tick: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Indices and squared distances (n, k) of each row's nearest others, nearest first; and the exponent of a power of
    two that the distances were divided by."""
    n, p = x.shape
    check.fits_memory((n, k, 3), np.float64, "the lists of neighbours")
    x, exponent = _in_range(x)
    indices, squares = np.empty((n, k), dtype=np.intc), np.empty((n, k))
    if isinstance(x, check.Csr):
        if method == "tree":
            raise ValueError('method "tree" needs dense data')
        wide, _ = check.fewer_columns(x.astype(np.float64), None)
        core.nearest_csr(wide, wide.columns(), indices, squares, parallel.enough_threads(threads, 4.0 * n * n), tick)
    elif method == "tiles" or not _by_tree(x, k, method == "tree", indices, squares, threads, tick):
        with parallel.blas_threads(1):  # threads of BLAS would go on spinning beside ours
            seen, exact, blur = _search_rows(x, k)
        enough = parallel.enough_threads(threads, n * n * (1 + p / 16))
        core.nearest_dense(seen, indices, squares, enough, tick, exact, blur)
    return indices, squares, exponent


def _in_range(x: Any) -> tuple[Any, int]:
    """The data over a power of two, and its exponent: 0, unless numbers are so large or so small that their squares
    would overflow or vanish."""
    data = x.data if isinstance(x, check.Csr) else x
    largest = float(magnitude(data[None, :] if isinstance(x, check.Csr) else data)[0]) if data.size else 0.0
    limits = np.finfo(x.dtype)
    most = math.sqrt(float(limits.max) / 16 / x.shape[1])
    if largest == 0 or math.sqrt(float(limits.tiny)) * 1e9 < largest < most:
        return x, 0
    exponent = math.frexp(largest)[1]
    wide = x.astype(np.float64)
    half = exponent // 2  # in two steps: 2**-exponent itself may not be a float64
    if isinstance(wide, check.Csr):
        scaled = check.Csr(np.ldexp(np.ldexp(wide.data, -half), half - exponent), x.indices, x.indptr, x.n_features)
    else:
        scaled = np.ldexp(np.ldexp(wide, -half), half - exponent)
    return scaled, exponent


def _search_rows(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray | None, float]:
    """Return rows for the search, the exact rows if these differ, and a bound on how much the search overestimates
    distances.

    Rows in float64 are compared in float32, relative to their centre: twice as many at a time. That pays unless
    neighbours are so near, compared with the size of the rows, that rounding lets many others through: found out on a
    few rows.
    """
    n, p = x.shape
    if x.dtype != np.float64 or n < _MANY or 4 * n * p > check.free_memory() // 2:
        return x, None, 0.0
    middle, seen, lengths = x.mean(axis=0), np.empty((n, p), dtype=np.float32), np.empty(n)
    step = max(1, _BLOCK_NUMBERS // max(p, _SEEN))
    parts = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    largest = off = 0.0
    for part in parts:
        moved = x[part] - middle
        largest = max(largest, float(np.abs(moved).max()))
        if largest >= 1e12:
            break
        seen[part] = moved
        lengths[part] = np.einsum("ij,ij->i", moved, moved)
        moved -= seen[part]
        off = max(off, float(np.einsum("ij,ij->i", moved, moved).max()))
    if not 1e-12 < largest < 1e12:  # squares of float32 are to stay in its range
        return x, None, 0.0
    blur = 2 * math.sqrt(off) + 4e-16 * math.sqrt(float(lengths.max()))
    some = slice(0, None, -(-n // _SEEN))
    rows, own = x[some] - middle, lengths[some, None]

    def squares(part: slice) -> np.ndarray:
        return own + lengths[part] - 2 * rows @ (x[part] - middle).T

    nearest = np.empty((len(rows), 0))
    for part in parts:
        nearest = np.concatenate([nearest, squares(part)], axis=1)
        if nearest.shape[1] > k + 1:
            nearest = np.partition(nearest, k, axis=1)[:, : k + 1]
    last = np.sqrt(np.maximum(nearest.max(axis=1, keepdims=True), 0.0))
    slack = core.rounding_of_float32(p)
    seen_near = sum(int((squares(part) <= (last + blur) ** 2 + slack * (own + lengths[part])).sum()) for part in parts)
    if seen_near > _MOST_SEEN * len(last) * (k + 1):
        return x, None, 0.0
    return seen, x, blur


def _seconds_a_query(tree: Any, n_asked: int) -> float:
    """Of the tree, found out on a few rows.

    It depends on the dimension of the data, not of the space that they lie in, and on duplicates. Trees and pairs find
    the same neighbours, so it does not matter for the result that a clock decides.
    """
    rows = tree.data[:: max(1, tree.n // _PROBED)]
    started = thread_time()
    tree.query(rows, n_asked)
    return max((thread_time() - started) / len(rows), 1e-9)


def _by_tree(
    x: np.ndarray, k: int, at_any_cost: bool, indices: np.ndarray, squares: np.ndarray, threads: int, tick: Any
) -> bool:
    """Fill the lists by a KD-tree; False where tiles are faster, because of dimensions or ties.

    The tree gives some of those that tie at its last place. Rows whose k-th distance is not below all that the tree
    left out are asked for again with twice the neighbours.
    """
    from scipy.spatial import cKDTree  # here: a quarter of the package's time to import

    n, p = x.shape
    if p > _MOST_COLUMNS and not at_any_cost:
        return False
    data = np.ascontiguousarray(x, dtype=np.float64)
    tree = cKDTree(data, balanced_tree=False, compact_nodes=True)
    n_asked = min(k + 1 + _SPARE, n)
    seconds = _seconds_a_query(tree, n_asked)
    if not at_any_cost and seconds >= n * (0.6 + 0.015 * p) * 1e-9:  # what all pairs take
        return False
    rows = tree.indices  # in the order of its leaves: a row finds in the cache what the last one has read
    step = min(max(int(0.03 / seconds), _PROBED), _MOST_QUERIES)
    while len(rows):
        open_rows, start = [], 0
        while start < len(rows):
            began, some = perf_counter(), rows[start : start + step]
            distances, candidates = tree.query(data[some], n_asked, workers=threads)
            near, near_squares = np.empty((len(some), k), dtype=np.intc), np.empty((len(some), k))
            core.rank_dense(data, some, np.ascontiguousarray(candidates), near, near_squares, threads)
            indices[some], squares[some] = near, near_squares
            if n_asked < n:
                open_rows.append(some[near_squares[:, -1] >= distances[:, -1] ** 2 * (1 - _TREE_ROUNDING)])
            start += len(some)
            if tick is not None:
                tick(n - len(rows) + start, n)
            took = perf_counter() - began
            step = min(2 * step, _MOST_QUERIES) if took < 0.05 else max(step // 2, 1) if took > 0.1 else step
        rows = np.concatenate(open_rows) if open_rows else rows[:0]
        n_asked = min(2 * n_asked, n)
        if len(rows) * n_asked * _TIES_COST > n * n and len(rows) * n_asked > 1 << 20:
            return False
    return True


# ---- from lists to a graph --------------------------------------------------------------------------------------


def _symmetric(indices: np.ndarray, squares: np.ndarray, how: str) -> sparse.csr_array:
    """The edges, with squared distances as data; zeros among them are stored."""
    n, k = indices.shape
    i, j, square = np.repeat(np.arange(n, dtype=np.intc), k), indices.ravel(), squares.ravel()
    last_square, last_index = squares[:, -1].copy()[j], indices[:, -1].copy()[j]  # copies: rows fit the cache then
    chosen_back = (square < last_square) | ((square == last_square) & (i <= last_index))
    if how == "mutual":
        i, j, square = i[chosen_back], j[chosen_back], square[chosen_back]
    else:
        one_way = ~chosen_back
        i, j = np.concatenate([i, j[one_way]]), np.concatenate([j, i[one_way]])
        square = np.concatenate([square, square[one_way]])
    edges = sparse.coo_array((square, (i, j)), shape=(n, n)).tocsr()
    edges.sort_indices()
    return edges


def _rbf(squares: np.ndarray, exponent: int, gamma: float) -> np.ndarray:
    """exp(-gamma d²)."""
    if exponent == 0:
        return np.exp(-gamma * squares)
    with np.errstate(over="ignore"):
        return np.exp(-(np.ldexp(math.sqrt(gamma) * np.sqrt(squares), exponent) ** 2))


def _weighted(pairs: sparse.csr_array, exponent: int, weight: Callable[[np.ndarray], Any]) -> sparse.csr_array:
    """The user's weights: asked for once an edge, so that they are symmetric."""
    upper = sparse.triu(pairs, format="coo")
    distances = np.ldexp(np.sqrt(upper.data), exponent)
    given = np.asarray(weight(distances))
    if given.shape != distances.shape:
        raise ValueError(f"weight(d) gave an array of shape {given.shape} for distances of shape {distances.shape}")
    values = check.targets(given, len(given), "weight(d)")
    bad = np.flatnonzero(values < 0)
    if len(bad):
        raise ValueError(f"weight(d) must not be negative, got {values[bad[0]]} for the distance {distances[bad[0]]}")
    half = sparse.coo_array((values, upper.coords), shape=pairs.shape).tocsr()
    both = (half + half.T).tocsr()
    both.eliminate_zeros()
    both.sort_indices()
    return both
