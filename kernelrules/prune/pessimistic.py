"""Error-based pruning of C4.5: `pessimistic`.

A leaf with E errors among N rows is expected to make not E but N·U(E, N) of them on new rows, U being the upper limit
of a binomial share at the given confidence. Small leaves have wide limits, so a split must save errors to be kept. The
limit is the one that Quinlan's C4.5 and Weka's J48 compute (`extra_errors`), and so are the steps:

    1. from the root down, a subtree that makes no fewer errors on the training rows than a leaf becomes one
    2. from the leaves up, a subtree becomes a leaf if that is expected to make at most 0.1 errors more; or (raising),
       its larger branch takes the place of the subtree if that is

For numbers the estimate is that of M5: the mean residual of a leaf of n rows is multiplied by (n + v) / (n - v), with v
the number of its parameters, here the one constant. A tree by absolute errors has Quinlan's mean absolute residual, one
by squared errors the root of the mean square, as Wang and Witten's M5' has. A leaf of no more than one row has no
estimate, and is kept nowhere.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from kernelrules import check, parallel
from kernelrules.core.tree import prune as core
from kernelrules.prune._common import class_counts, cut, require_tree
from kernelrules.prune.raising import raised
from kernelrules.results import Tree

__all__ = ["expected_errors", "extra_errors", "pessimistic"]

TOLERANCE = 0.1  # errors that a smaller tree may be expected to make more
_NOISE = 2.0**-40  # of the root's residuals: what differs by less, differs by rounding
_COLLAPSE = 1e-3  # training errors that a subtree must save


@parallel.reports("prune")
def pessimistic(
    tree: Tree,
    confidence: float = 0.25,
    raising: bool = False,
    *,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    callback: Any = None,
    progress: bool = False,
) -> Tree:
    """Prune as C4.5 does: by an upper limit of the errors that leaves make on new rows.

    Parameters
    ----------
    tree : Tree
        What `tree.grow` returned, by classes, squared or absolute errors. Weights count as numbers of rows.
    confidence : float
        For classes. Above 0, at most 0.5: the probability that the true error rate of a leaf is above the limit.
        Smaller prunes more.
    raising : bool
        For classes: whether a subtree may be replaced by its larger branch, whose nodes then get all rows of the
        subtree. This needs the training rows.
    X, y, sample_weight : arrays, optional
        The training rows, where raising is wanted. (For class weights, the products of both.)
        With missing="fractional" parts of rows are sent down anew, in the shares of the rows of each new node.
    {callback}
        Progress counts the nodes of raising.
    {progress}

    Returns
    -------
    Tree
        The pruned tree.

    References
    ----------
    J. R. Quinlan: C4.5: Programs for Machine Learning, 1993. For numbers: J. R. Quinlan: Learning with continuous
    classes, 1992; Y. Wang, I. H. Witten: Inducing model trees for continuous classes, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import prune, tree
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = (X[:, 0] > 0.3) ^ (np.random.default_rng(1).random(200) < 0.1)
    >>> grown = tree.grow(X, y, criterion="gain_ratio")
    >>> prune.pessimistic(grown).n_leaves < grown.n_leaves
    True
    """
    limit = check.positive(confidence, "confidence")
    if limit > 0.5:
        raise ValueError(f"confidence must be at most 0.5, got {confidence!r}")
    check.flag(raising, "raising")
    if require_tree(tree).classes is None:
        return _by_residuals(tree, raising)
    check.counted_weights(float(tree.weight[0]), float(tree.n_samples[0]))
    tree = _collapsed(tree)
    tick = parallel.ticker(callback, "prune")
    if raising:
        return raised(tree, partial(expected_errors, confidence=limit), TOLERANCE, X, y, sample_weight, tick)
    cost, gone = np.empty(tree.n_nodes), np.empty(tree.n_nodes, dtype=np.uint8)
    expected = expected_errors(class_counts(tree), limit)
    core.cheapest(tree.left, tree.right, expected, np.zeros(tree.n_nodes), TOLERANCE, cost, gone)
    return cut(tree, gone.view(bool))


def _by_residuals(tree: Tree, raising: bool) -> Tree:
    """M5's way, for numbers."""
    if tree.criterion not in ("squared_error", "absolute_error"):
        raise ValueError(f"residuals are squared or absolute errors, and the tree was grown by {tree.criterion}")
    if raising:
        raise ValueError(f"raising is for classes, and the tree was grown by {tree.criterion}")
    check.counted_weights(float(tree.weight[0]), float(tree.n_samples[0]))
    cost, gone = np.empty(tree.n_nodes), np.empty(tree.n_nodes, dtype=np.uint8)
    expected = expected_residuals(tree)
    core.cheapest(tree.left, tree.right, expected, np.zeros(tree.n_nodes), _NOISE * float(expected[0]), cost, gone)
    return cut(tree, gone.view(bool))


def expected_residuals(tree: Tree) -> np.ndarray:
    """Residuals to expect of every node as a leaf, summed over its rows, (n_nodes,); infinite of one row or less."""
    n = tree.weight
    mean = np.sqrt(tree.impurity) if tree.criterion == "squared_error" else tree.impurity
    several = n > 1
    factor = np.divide(n + 1, n - 1, out=np.full(len(n), np.inf), where=several)
    return np.where(several, n * mean, 1.0) * factor


def _collapsed(tree: Tree) -> Tree:
    """Without subtrees that save no training errors. The whole subtree counts, not what is left of it."""
    counts = class_counts(tree)
    errors = counts.sum(axis=1) - counts.max(axis=1)
    ends = np.empty(tree.n_nodes, dtype=np.int64)
    core.subtree_ends(tree.right, ends)
    of_leaves = np.append(0.0, np.cumsum(np.where(tree.left < 0, errors, 0.0)))
    return cut(tree, of_leaves[ends] - of_leaves[:-1] >= errors - _COLLAPSE)


def expected_errors(counts: np.ndarray, confidence: float) -> np.ndarray:
    """Errors to expect of leaves with these weights of the classes, (m, K) to (m,)."""
    n = counts.sum(axis=-1)
    errors = np.maximum(n - counts.max(axis=-1), 0.0)
    return errors + extra_errors(n, errors, confidence)


def extra_errors(n: np.ndarray, errors: np.ndarray, confidence: float) -> np.ndarray:
    """What the upper limit adds to the errors of leaves.

    Without errors the limit is exact, 1 - confidence^(1/n); from one error on it is the normal approximation with a
    correction for continuity; between, a straight line joins them.

    Parameters
    ----------
    n, errors : ndarray
        Weight of the leaves, and of what they get wrong.
    confidence : float
        Above 0, at most 0.5.

    Returns
    -------
    ndarray
        At least 0.

    Examples
    --------
    >>> extra_errors(np.array([6.0, 9.0, 16.0]), np.array([0.0, 0.0, 1.0]), 0.25).round(3)
    array([1.238, 1.285, 1.476])
    """
    n, errors = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.asarray(errors, dtype=np.float64))
    size = np.maximum(n, np.finfo(np.float64).tiny).ravel()
    out = np.empty(len(size))
    core.extra_errors(size, np.ascontiguousarray(errors).ravel(), confidence, float(-ndtri(confidence)), out)
    return out.reshape(n.shape)
