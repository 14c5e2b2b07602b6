"""Minimal cost-complexity pruning: `cost_complexity_path`, `cost_complexity`.

With a price alpha of every leaf, a pruned tree T costs C(T) = risk(T) + alpha · leaves(T). The best trees for all alpha
are nested, and there are at most as many as splits (Breiman, Friedman, Olshen, Stone 1984, chapter 3).
core/tree/prune.pyx finds the alpha at which each split stops being worth its leaves; the rest is sorting.
"""

from __future__ import annotations

import numpy as np

from kernelrules import check
from kernelrules.core.tree import prune as core
from kernelrules.prune._common import cut, node_risk, require_tree
from kernelrules.results import PrunePath, Tree

__all__ = ["cost_complexity", "cost_complexity_path"]

_EXACT = 2.0**53  # from here on all float64 numbers are whole
_NOISE = 2.0**-46  # of what the risk of a node is computed from: alphas that differ by less, differ by rounding


def cost_complexity_path(tree: Tree, *, loss: str | None = None) -> PrunePath:
    """Compute all trees that are best for some price of a leaf, weakest link first.

    Parameters
    ----------
    tree : Tree
        What `tree.grow` returned.
    loss : str, optional
        What the risk counts: "zero_one" (the default for classes, as in rpart), "gini" or "entropy"; for regression
        the criterion that the tree was grown by.

    Returns
    -------
    PrunePath
        From the largest tree to the root. Splits of the same alpha go together.

    References
    ----------
    Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). Classification and Regression Trees. Wadsworth.

    Examples
    --------
    >>> from kernelrules import prune, tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 1, 0, 1])
    >>> path = prune.cost_complexity_path(grown)
    >>> path.alphas.round(3), path.n_leaves, path.risk.round(3)
    (array([0.   , 0.083, 0.167]), array([4, 2, 1]), array([0.   , 0.167, 0.333]))
    """
    risk, loss = node_risk(require_tree(tree), loss)
    n = tree.n_nodes
    cuts, less_risk = np.empty(n), np.empty(n)
    more_leaves, work = np.empty(n, dtype=np.int64), np.empty((4, n), dtype=np.int64)
    core.weakest_links(tree.left, tree.right, risk, cuts, less_risk, more_leaves, work)
    splits = np.flatnonzero(more_leaves)
    splits = splits[np.argsort(cuts[splits], kind="stable")]
    alphas, step = _steps(cuts[splits], _noise(tree, risk, splits) / more_leaves[splits])
    cuts[splits] = alphas[step]
    leaves_gone = np.cumsum(np.bincount(step, more_leaves[splits], len(alphas)).astype(np.int64))
    risk_more = np.bincount(step, less_risk[splits], len(alphas)).astype(np.float64)  # whole numbers if all is empty
    risk_more[0] = risk[_is_leaf_at_zero(tree, cuts)].sum()
    risks = np.cumsum(risk_more)
    risks[-1] = risk[0]
    total = tree.weight[0]
    return PrunePath(alphas / total, 1 + int(more_leaves.sum()) - leaves_gone, risks / total, cuts / total, loss)


def _noise(tree: Tree, risk: np.ndarray, splits: np.ndarray) -> np.ndarray:
    """How far rounding may have moved risks: none where they are whole numbers; else in proportion to the weight.

    Shares of classes are rounded as numbers around 1 are, sums of squares as the variance of all rows.
    """
    if risk[0] < _EXACT and (risk == np.rint(risk)).all():
        return np.zeros(len(splits))
    scale = 1.0 if tree.classes is not None else risk[0] / tree.weight[0]
    return _NOISE * (risk[splits] + scale * tree.weight[splits])


def _steps(cuts: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of ascending cuts, 0 first, and for each cut its number: what differs by noise goes together.

    The largest stands for all, so that splits further down, whose own alphas are not on the path, stay above it.
    """
    apart = np.diff(cuts, prepend=0.0) > noise + np.append(0.0, noise[:-1])[: len(noise)]
    step = np.cumsum(apart)
    alphas = np.zeros(1 + int(apart.sum()))
    alphas[step] = cuts  # the last of equal steps counts
    alphas[0] = 0.0
    return alphas, step


def _is_leaf_at_zero(tree: Tree, cuts: np.ndarray) -> np.ndarray:
    """The leaves of the first tree of the path."""
    first, last, above = (np.empty(tree.n_nodes, dtype=np.int64) for _ in range(3))
    core.spans(tree.left, tree.right, cuts, np.zeros(1), first, last, above)
    return first < last


def cost_complexity(tree: Tree, alpha: float, *, loss: str | None = None) -> Tree:
    """The best tree for a price alpha of a leaf: least risk + alpha · leaves, and then fewest leaves.

    Parameters
    ----------
    tree : Tree
        What `tree.grow` returned.
    alpha : float
        At least 0, in units of the mean loss of a row.
    loss : str, optional
        As in `cost_complexity_path`.

    Returns
    -------
    Tree
        The pruned tree.

    References
    ----------
    Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). Classification and Regression Trees. Wadsworth.

    Examples
    --------
    >>> from kernelrules import prune, tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 1, 0, 1])
    >>> prune.cost_complexity(grown, 0.1)
    Tree(gini, 2 leaves, depth 1, 1 feature)
    """
    price = check.not_negative(alpha, "alpha")
    path = cost_complexity_path(tree, loss=loss)
    return cut(tree, path.cut <= price)
