"""What leaves predict besides class shares and means: medians, and linear models of the leaf's rows."""

from __future__ import annotations

import numpy as np

from kernelrules.tree.medians import range_medians

__all__ = ["linear_models", "median_values", "weighted_median"]


def median_values(
    targets: np.ndarray, weights: np.ndarray | None, leaf_of_row: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Weighted median of the targets in every node.

    The smallest value up to which lies at least half of the weight; where that is exactly half, the middle between it
    and the next value, so that with equal weights it is the usual median.

    Parameters
    ----------
    targets : ndarray (n,) or (n, d)
        Numbers.
    weights : ndarray (n,) or None
        None is 1 for every row.
    leaf_of_row : ndarray (n,) of int
        The leaf that each row lies in.
    right : ndarray (n_nodes,) of int
        The right children of a tree in depth-first order, -1 in leaves.

    Returns
    -------
    ndarray (n_nodes,) or (n_nodes, d)
        NaN in a node without rows.

    Examples
    --------
    >>> import numpy as np
    >>> median_values(np.array([1.0, 5.0, 2.0, 8.0]), None, np.array([1, 1, 1, 2]), np.array([2, -1, -1]))
    array([3.5, 2. , 8. ])
    """
    columns = targets.reshape(len(targets), -1)
    weight = np.ones(len(targets)) if weights is None else weights
    by_leaf = np.argsort(leaf_of_row, kind="stable")
    bounds = np.searchsorted(leaf_of_row[by_leaf], np.arange(len(right) + 1))
    start, stop = bounds[:-1], bounds[_subtree_ends(right)]
    medians = np.full((len(right), columns.shape[1]), np.nan)
    filled = stop > start
    for output in range(columns.shape[1]):
        medians[filled, output] = _middle(columns[by_leaf, output], weight[by_leaf], start[filled], stop[filled])
    return medians if targets.ndim == 2 else medians[:, 0]


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The median of one set of numbers, as `median_values` defines it.

    Parameters
    ----------
    values, weights : ndarray (n,)
        At least one.

    Returns
    -------
    float
        The median.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median(np.array([4.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    2.0
    """
    return float(_middle(values, weights, np.array([0]), np.array([len(values)]))[0])


def _middle(values: np.ndarray, weights: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    lower = range_medians(values, weights, start, stop).lower
    upper = range_medians(values, weights, start, stop, more_than_half=True).lower
    return lower / 2 + upper / 2


def _subtree_ends(right: np.ndarray) -> np.ndarray:
    """One past the last node below each node: in depth-first order a subtree is a stretch of nodes."""
    ends = np.arange(1, len(right) + 1)
    for node in np.flatnonzero(right >= 0)[::-1]:  # children come after their parents
        ends[node] = ends[right[node]]
    return ends


def linear_models(
    values: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None,
    leaf_of_row: np.ndarray,
    n_nodes: int,
    ridge: float = 1.0,
    *,
    n_levels: np.ndarray | None = None,
    fill: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Ridge models of the rows of every leaf.

    The columns are standardised within the leaf; then the sum of w·(y - model)² + ridge · (sum of squared
    coefficients) is minimised, the constant going free. So a leaf of few rows stays near its mean.

    Parameters
    ----------
    values : ndarray (n, p)
        The columns; NaN where a value is missing.
    targets : ndarray (n,) or (n, 1)
        Numbers.
    weights : ndarray (n,) or None
        None is 1 for every row.
    leaf_of_row : ndarray (n,) of int
        The leaf that each row lies in.
    n_nodes : int
        Nodes of the tree.
    ridge : float
        At least 0.
    n_levels : ndarray (p,) of int, or None
        Above 0 for categorical columns, which are left out.
    fill : float or ndarray (p,)
        What stands for missing values.

    Returns
    -------
    ndarray (n_nodes, p + 1)
        Coefficients in the columns' own units, and the constant; 0 for categorical columns and for those that are
        constant in the leaf, and in nodes without rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [7.0]])
    >>> linear_models(X, np.array([1.0, 3.0, 5.0, 9.0]), None, np.array([1, 1, 1, 2]), 3, ridge=0.0)
    array([[0., 0.],
           [2., 1.],
           [0., 9.]])
    """
    numerical = np.arange(values.shape[1]) if n_levels is None else np.flatnonzero(n_levels == 0)
    filled = np.where(np.isnan(values), fill, values)[:, numerical].astype(np.float64, copy=False)
    y = targets.reshape(-1)
    weight = np.ones(len(y)) if weights is None else weights
    models = np.zeros((n_nodes, values.shape[1] + 1))
    by_leaf = np.argsort(leaf_of_row, kind="stable")
    bounds = np.searchsorted(leaf_of_row[by_leaf], np.arange(n_nodes + 1))
    for leaf in np.flatnonzero(np.diff(bounds)):
        rows = by_leaf[bounds[leaf] : bounds[leaf + 1]]
        rows = rows[weight[rows] > 0]
        if len(rows):
            slopes, constant = _ridge_model(filled[rows], y[rows], weight[rows], ridge)
            models[leaf, numerical], models[leaf, -1] = slopes, constant
    return models


def _ridge_model(x: np.ndarray, y: np.ndarray, w: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    """Slopes and constant of one leaf."""
    slopes = np.zeros(x.shape[1])
    level = float(w @ y / w.sum())
    varying = np.flatnonzero(x.min(axis=0) < x.max(axis=0))
    if len(varying) == 0 or (y == y[0]).all():
        return slopes, level
    x = x[:, varying]
    centre = w @ x / w.sum()
    spread = np.sqrt(w @ (x - centre) ** 2 / w.sum())
    spread[spread == 0] = np.inf  # differences too small to square: as good as constant
    root = np.sqrt(w)
    z, r = root[:, None] * ((x - centre) / spread), root * (y - level)
    slopes[varying] = _ridge_coefficients(z, r, ridge) / spread
    return slopes, level - float(centre @ slopes[varying])


def _ridge_coefficients(z: np.ndarray, r: np.ndarray, ridge: float) -> np.ndarray:
    """Least |r - zb|² + ridge·|b|², and of these the shortest b: by the smaller of the two Gram matrices."""
    if ridge == 0:
        return np.linalg.lstsq(z, r, rcond=None)[0]
    n, p = z.shape
    if n < p:
        return z.T @ np.linalg.solve(z @ z.T + ridge * np.eye(n), r)
    return np.linalg.solve(z.T @ z + ridge * np.eye(p), z.T @ r)
