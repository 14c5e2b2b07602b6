"""Reduced-error pruning on rows that were held back: `reduced_error`.

Every validation row adds its loss to each node on its way, as if that node were its leaf. Going up from the leaves, a
node becomes a leaf where this does not raise the error below it. As errors add up over leaves, no pruned tree has a
smaller error on these rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules import tree as trees
from kernelrules.core import prune as core
from kernelrules.prune._common import LOSSES, cut, require_tree
from kernelrules.results import Tree

__all__ = ["reduced_error"]


def reduced_error(
    tree: Tree, X_val: Any, y_val: Any, *, sample_weight: Any = None, n_threads: int | None = None, callback: Any = None
) -> Tree:
    """The pruned tree with the least error on rows that it was not grown on, and of those the smallest.

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
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.

    Returns
    -------
    Tree
        The pruned tree. Where no validation row comes, nothing speaks for a split, and it goes.

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
    leaves = trees.apply(require_tree(tree), X_val, n_threads=n_threads, callback=callback)
    m = len(leaves)
    if m == 0:
        raise ValueError("X_val has no rows")
    weight = check.weights(sample_weight, m)
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
    given, codes = check.labels(y, m, "y_val")
    known = {label: number for number, label in enumerate(tree.classes.tolist())}
    for label in given.tolist():
        if label not in known:
            raise ValueError(f"y_val holds {label!r}, which is none of the tree's classes")
    return np.array([known[label] for label in given.tolist()], dtype=np.int64)[codes]


def _targets(tree: Tree, y: Any, m: int) -> np.ndarray:
    """Numbers, (m, d)."""
    if tree.value.ndim == 1:
        return check.targets(y, m, "y_val")[:, None]
    raw = np.asarray(y)
    if raw.shape != (m, tree.n_outputs):
        raise ValueError(f"y_val has shape {raw.shape}, but X_val has {m} rows and the tree {tree.n_outputs} targets")
    return np.column_stack([check.targets(raw[:, k], m, f"y_val[:, {k}]") for k in range(tree.n_outputs)])


def _weights_by_leaf(tree: Tree, X: Any, leaves: Any, codes: Any, weight: np.ndarray, n_threads: Any) -> np.ndarray:
    """Weight of each class that comes to each leaf, (n_nodes, n_classes); 0 in other nodes."""
    k, n = len(tree.classes), tree.n_nodes
    if tree.missing != "fractional":
        return np.bincount(leaves * k + codes, weight, n * k).reshape(n, k)
    # The shares of each row in the leaves are the class shares of a tree that has a class for every leaf.
    ends = np.flatnonzero(tree.left < 0)
    check.fits_memory((len(codes), len(ends)), np.float64, "shares of the rows in the leaves")
    table = np.zeros((n, len(ends)))
    table[ends, np.arange(len(ends))] = 1.0
    shares = trees.predict_proba(replace(tree, value=table, classes=np.arange(len(ends))), X, n_threads=n_threads)
    by_leaf = np.zeros((n, k))
    for code in range(k):
        by_leaf[ends, code] = (weight * (codes == code)) @ shares
    return by_leaf


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
    losses = np.zeros(tree.n_nodes)
    core.node_losses(LOSSES[tree.criterion], leaves, parent, values, targets, weight, losses)
    return losses
