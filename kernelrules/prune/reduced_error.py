"""Reduced-error pruning on rows that were held back: `reduced_error`.

Every validation row adds its loss to each node on its path, as if that node were its leaf. From the leaves up, a node
becomes a leaf if this does not raise the error of its subtree. Errors add up over leaves, so no pruned tree has a
smaller error on these rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.check.frames import read_with_missing
from kernelrules.core.tree import fractional, predict
from kernelrules.core.tree import prune as core
from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.prune._common import cut, require_tree
from kernelrules.prune.own_loss import read_targets
from kernelrules.results import Tree
from kernelrules.tree.prediction import leaves_of

__all__ = ["reduced_error"]

_ROWS_AT_A_TIME, _LEAVES_AT_A_TIME = 4096, 256  # whose shares are in memory


@parallel.reports("prune")
def reduced_error(
    tree: Tree,
    X_val: Any,
    y_val: Any,
    *,
    sample_weight: Any = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> Tree:
    """Return the pruned tree with the least error on rows that it was not grown on, the smallest of those that tie.

    The error is the number of wrong classes, and for regression the loss that the tree was grown by.

    Parameters
    ----------
    tree : Tree
        What `tree.grow` returned.
    X_val : array, sparse matrix or data frame (m, p)
        Rows that were held back. A missing value in a tree of classes with missing="fractional" sends fractions of its
        row down both sides, and these are counted; in a regression the row goes to the larger child.
    y_val : array (m,) or (m, d)
        Their labels, all known to the tree, or targets.
    sample_weight : array (m,), optional
        Weights of the rows.
    {n_threads, callback, progress}

    Returns
    -------
    Tree
        The pruned tree. Where no validation row comes, nothing speaks for a split, and it goes.

    References
    ----------
    Quinlan, J. R. (1987). Simplifying decision trees. International Journal of Man-Machine Studies 27, 221-234.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import prune, tree
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = (X[:, 0] > 0.3) ^ (np.random.default_rng(1).random(300) < 0.1)
    >>> grown = tree.grow(X[:200], y[:200])
    >>> small = prune.reduced_error(grown, X[200:], y[200:])
    >>> wrong = [int((tree.predict(t, X[200:]) != y[200:]).sum()) for t in (grown, small)]
    >>> small.n_leaves < grown.n_leaves, wrong[1] < wrong[0]
    (True, True)
    """
    leaves = leaves_of(require_tree(tree), X_val, "X_val", n_threads, callback)
    m = len(leaves)
    if m == 0:
        raise ValueError("X_val has no rows")
    weight = check.weights(sample_weight, m, data="X_val")
    if tree.classes is not None:
        codes = _codes(tree, y_val, m)
        errors = _class_errors(tree, _weights_by_leaf(tree, X_val, leaves, codes, weight, n_threads))
    else:
        errors = _number_errors(tree, _targets(tree, y_val, m), leaves, weight)
    cost, gone = np.empty(tree.n_nodes), np.empty(tree.n_nodes, dtype=np.uint8)
    slack = 0.0 if (errors == np.rint(errors)).all() else 1e-12 * float(errors[0])
    core.cheapest(tree.left, tree.right, errors, np.zeros(tree.n_nodes), slack, cost, gone)
    return cut(tree, gone.view(bool))


def _codes(tree: Tree, y: Any, m: int) -> np.ndarray:
    """Numbers of the rows' classes in the tree's order."""
    given, codes = check.labels(y, m, "y_val", "X_val")
    known = {label: number for number, label in enumerate(tree.classes.tolist())}
    for label in given.tolist():
        if label not in known:
            raise ValueError(f"y_val holds {label!r}, which is none of the tree's classes")
    return np.array([known[label] for label in given.tolist()], dtype=np.int64)[codes]


def _targets(tree: Tree, y: Any, m: int) -> np.ndarray:
    """Numbers, (m, d)."""
    targets = read_targets(tree, y, m, "y_val", "X_val")
    negative = (targets < 0).any(axis=1)
    if CRITERIA[tree.criterion].needs_nonnegative and negative.any():
        row = int(negative.argmax())
        raise ValueError(f"y_val must not be negative for {tree.criterion}, got {targets[row].min()} at position {row}")
    return targets


def _weights_by_leaf(tree: Tree, X: Any, leaves: Any, codes: Any, weight: np.ndarray, n_threads: Any) -> np.ndarray:
    """Weight of each class that comes to each leaf, (n_nodes, n_classes); 0 in other nodes."""
    k, n = len(tree.classes), tree.n_nodes
    if tree.missing != "fractional":
        return np.bincount(leaves * k + codes, weight, n * k).reshape(n, k)
    x, _ = read_with_missing(tree, X)
    comes_apart = np.isnan(x).any(axis=1)
    whole = ~comes_apart
    by_leaf = np.bincount(leaves[whole] * k + codes[whole], weight[whole], n * k).reshape(n, k)
    by_leaf = by_leaf.astype(np.float64)  # of no rows bincount makes whole numbers
    _add_fractions(by_leaf, tree, x[comes_apart], codes[comes_apart], weight[comes_apart], n_threads)
    return by_leaf


def _add_fractions(
    by_leaf: np.ndarray, tree: Tree, x: np.ndarray, codes: np.ndarray, weight: np.ndarray, n_threads: Any
) -> None:
    """The same of rows that go to several leaves: their shares are what they get where every leaf says its number."""
    nodes, threads = predict.Nodes(tree), parallel.n_threads_or_default(n_threads)
    ends = np.flatnonzero(tree.left < 0)
    for some in (ends[first : first + _LEAVES_AT_A_TIME] for first in range(0, len(ends), _LEAVES_AT_A_TIME)):
        says = np.zeros((tree.n_nodes, len(some)))
        says[some, np.arange(len(some))] = 1.0
        for first in range(0, len(x), _ROWS_AT_A_TIME):
            here = slice(first, first + _ROWS_AT_A_TIME)
            rows = x[here]
            shares, of_class = np.empty((len(rows), len(some))), np.zeros((len(rows), by_leaf.shape[1]))
            fractional.fractional_values(nodes, rows, says, shares, threads, None)
            of_class[np.arange(len(rows)), codes[here]] = weight[here]
            by_leaf[some] += shares.T @ of_class


def _class_errors(tree: Tree, by_leaf: np.ndarray) -> np.ndarray:
    """Weight that each node would get wrong, (n_nodes,)."""
    ends = np.empty(tree.n_nodes, dtype=np.int64)
    core.subtree_ends(tree.right, ends)
    running = np.vstack([np.zeros(by_leaf.shape[1]), np.cumsum(by_leaf, axis=0)])
    there = running[ends] - running[:-1]  # a subtree is a stretch of nodes
    right = np.take_along_axis(there, tree.value.argmax(axis=1)[:, None], axis=1)[:, 0]
    return there.sum(axis=1) - right


def _number_errors(tree: Tree, targets: np.ndarray, leaves: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Loss of the rows that pass each node, as if it were their leaf, (n_nodes,)."""
    parent = np.full(tree.n_nodes, -1, dtype=np.int64)
    inner = np.flatnonzero(tree.left >= 0)
    parent[tree.left[inner]] = parent[tree.right[inner]] = inner
    values = np.ascontiguousarray(tree.value.reshape(tree.n_nodes, -1))
    losses, counts = np.zeros(tree.n_nodes), weight > 0
    number = CRITERIA[tree.criterion].number
    core.node_losses(number, leaves[counts], parent, values, targets[counts], weight[counts], losses)
    if tree.criterion != "poisson" and not np.isfinite(losses).all():  # poisson's is infinite where 0 is predicted
        raise ValueError("y_val is too far from what the tree predicts: the sum of the losses overflows float64")
    return losses
