"""What the nodes of a tree lose under a loss of the user's: a function, or costs of the classes.

A function of labels and predicted labels is a table of costs, which is filled by one call with all pairs of classes;
the tree holds the weights of the classes in its nodes, so no rows are needed. A tree does not hold the numbers of a
regression: rows are given, and the function is called once per level, with all rows that pass a node there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.prune._common import class_counts
from kernelrules.prune.measures import asked, read_costs
from kernelrules.results import Tree
from kernelrules.tree.prediction import leaves_of

__all__ = ["is_own", "node_losses", "read_targets"]


def is_own(loss: Any) -> bool:
    """Whether a loss is a function or an array, and no name."""
    return callable(loss) or (not isinstance(loss, str) and np.ndim(loss) == 2)


def node_losses(tree: Tree, loss: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Mean loss of all rows that pass each node, as if it were their leaf, over the weight of all rows, (n_nodes,)."""
    if tree.classes is not None:
        if not (X is None and y is None and sample_weight is None):
            raise ValueError("X, y and sample_weight are for regression: the tree holds the weights of its classes")
        costs = _costs(loss, tree.classes) if callable(loss) else read_costs(loss, "loss", len(tree.classes))
        counts = class_counts(tree)
        return (counts * costs.T[tree.value.argmax(axis=1)]).sum(axis=1) / tree.weight[0]
    if not callable(loss):
        raise ValueError("loss as a matrix of costs is for classes")
    if X is None or y is None:
        raise ValueError("loss is a function, and the tree does not hold the numbers that it predicts: give X and y")
    return _of_rows(tree, loss, X, y, sample_weight)


def _costs(loss: Callable[[Any, Any], Any], classes: np.ndarray) -> np.ndarray:
    """Of answering with the class of the column where that of the row is right."""
    k = len(classes)
    return asked(loss, "loss", np.repeat(classes, k), np.tile(classes, k), finite=True).reshape(k, k)


def _of_rows(tree: Tree, loss: Callable[[Any, Any], Any], X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    leaves = leaves_of(tree, X, "X", None, None)
    n = len(leaves)
    if n == 0:
        raise ValueError("X has no rows")
    targets = read_targets(tree, y, n, "y", "X")
    weight = check.weights(sample_weight, n)
    parent = np.full(tree.n_nodes, -1, dtype=np.int64)
    inner = np.flatnonzero(tree.left >= 0)
    parent[tree.left[inner]] = parent[tree.right[inner]] = inner
    if tree.value.ndim == 1:
        targets = targets[:, 0]
    losses, node = np.zeros(tree.n_nodes), leaves
    kept = weight > 0
    while kept.any():
        node, targets, weight = node[kept], targets[kept], weight[kept]
        here = asked(loss, "loss", targets, tree.value[node], finite=True)
        losses += np.bincount(node, weight * here, tree.n_nodes)
        node = parent[node]
        kept = node >= 0
    return losses / float(check.weights(sample_weight, n).sum())


def read_targets(tree: Tree, y: Any, m: int, name: str, data: str) -> np.ndarray:
    """Numbers that a tree of a regression is compared with, (m, d)."""
    if tree.value.ndim == 1:
        return check.targets(y, m, name, data)[:, None]
    raw, d = np.asarray(y), tree.n_outputs
    if raw.shape != (m, d):
        raise ValueError(f"{name} has shape {raw.shape}, but {data} has {m} rows and the tree {d} targets")
    return np.column_stack([check.targets(raw[:, k], m, f"{name}[:, {k}]", data) for k in range(d)])
