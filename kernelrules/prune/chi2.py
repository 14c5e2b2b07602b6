"""Pruning by the chi-squared test, after growing: `chi2`.

The test is that of `tree.grow(chi2=)`, applied when the subtree is known: a split that is not significant stays if a
split below it is. Growth with the test would have stopped there.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from kernelrules import check
from kernelrules.core.tree import prune as core
from kernelrules.prune._common import class_counts, cut, require_classes
from kernelrules.results import Tree

__all__ = ["chi2", "p_values"]


def chi2(tree: Tree, level: float) -> Tree:
    """Remove splits that chance might have made, from the leaves up.

    Parameters
    ----------
    tree : Tree
        A classification tree that `tree.grow` returned. Weights count as numbers of rows.
    level : float
        Above 0, at most 1. A split stays if chance gives as large a statistic with at most this probability, or if a
        split below it stays.

    Returns
    -------
    Tree
        The pruned tree; every split with two leaves is significant.

    References
    ----------
    Quinlan, J. R. (1986). Induction of decision trees. Machine Learning 1, 81-106. (The test; it stops growth there.)

    Mingers, J. (1989). An empirical comparison of pruning methods for decision tree induction. Machine Learning 4,
    227-243. (Critical-value pruning: a split stays if a split below it does.)

    Examples
    --------
    >>> from kernelrules import prune, tree
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]] * 10
    >>> xor = tree.grow(corners, [0, 1, 1, 0] * 10)
    >>> prune.chi2(xor, 0.01).n_leaves, tree.grow(corners, [0, 1, 1, 0] * 10, chi2=0.01).n_leaves
    (4, 1)
    """
    require_classes(tree, "the chi-squared test")
    most = check.positive(level, "level")
    if most > 1:
        raise ValueError(f"level is a significance level, at most 1, got {level!r}")
    check.counted_weights(float(tree.weight[0]), float(tree.n_samples[0]))
    # A tree costs -1 for every significant split, so it pays to keep a node if and only if there is one at or below it.
    significant = np.where(p_values(tree) <= most, -1.0, 0.0)
    cost, gone = np.empty(tree.n_nodes), np.empty(tree.n_nodes, dtype=np.uint8)
    core.cheapest(tree.left, tree.right, np.zeros(tree.n_nodes), significant, 0.0, cost, gone)
    return cut(tree, gone.view(bool))


def p_values(tree: Tree) -> np.ndarray:
    """Of Pearson's test of each split's sides against the classes, without a correction; 1 in leaves, (n_nodes,)."""
    p = np.ones(tree.n_nodes)
    inner = np.flatnonzero(tree.left >= 0)
    if len(inner) == 0:
        return p
    counts = class_counts(tree)
    sides = np.stack([counts[tree.left[inner]], counts[tree.right[inner]]], axis=1)  # (n_inner, 2, n_classes)
    of_class, of_side = sides.sum(axis=1, keepdims=True), sides.sum(axis=2, keepdims=True)
    expected = of_side * of_class / of_side.sum(axis=1, keepdims=True)
    statistic = np.divide((sides - expected) ** 2, expected, out=np.zeros_like(sides), where=expected > 0)
    degrees = (of_class[:, 0] > 0).sum(axis=1) - 1
    several = degrees > 0
    p[inner[several]] = chdtrc(degrees[several], statistic[several].sum(axis=(1, 2)))
    return p
