"""Pruning to a number of leaves, `to_size`, and by hand, `snip`.

`to_size` goes greedily: of all pairs of leaves with a common parent, the one goes whose removal raises the loss least.
The loss may be another than the tree was grown by. Its trees of different sizes are nested.

A tree does not hold the targets, but where it holds means it says what a split takes off the squared error and the
deviance: the parts of these that it does not know, sums of y² and of y log y, are the same for a node and its children.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from scipy.special import rel_entr

from kernelrules import check
from kernelrules.exact_weights import tied_ranks
from kernelrules.prune._common import checked_loss, cut, node_risk, require_tree
from kernelrules.prune.own_loss import is_own, node_losses
from kernelrules.results import Tree

__all__ = ["snip", "to_size"]

_OF_MEANS = ("squared_error", "poisson")
_NEARLY = 1e-9  # of the largest value: means of children make up their parent's but for rounding
_NOISE = 2.0**-40  # of what the loss of a node is computed from: losses that differ by less, differ by rounding


def to_size(
    tree: Tree, n_leaves: int, loss: Any = None, *, X: Any = None, y: Any = None, sample_weight: Any = None
) -> Tree:
    """Remove pairs of leaves, always the one that raises the loss least, until there are so many leaves.

    Of pairs that raise it by the same, the one whose split gained least goes first, and then the last one in the order
    of nodes. What differs by rounding only is the same, so that neither the order of the rows nor the unit of the
    weights decides.

    Parameters
    ----------
    tree : Tree
        What `tree.grow` returned.
    n_leaves : int
        Leaves to keep: at least 1, at most those of the tree.
    loss : str, callable or array (n_classes, n_classes), optional
        "zero_one" (the default for classes), "gini" or "entropy"; for regression the criterion of the tree, and of a
        tree whose values are means "squared_error" or "poisson", whichever it was grown by. "absolute_error" is
        available only for trees grown by it. Or, as `measure` of
        `cross_validate`: a function loss(y, predicted), which gives finite losses of at least 0, one for each row, of
        labels or numbers; or an array of costs, with loss[i, j] that of predicting class j where i is right. Under
        these a split may raise the loss, and then goes before all that lower it.
    X, y, sample_weight : arrays, optional
        Rows whose loss counts, for a function of numbers: those that the tree was grown on, or others. A tree of
        classes holds their weights and needs no rows.

    Returns
    -------
    Tree
        With n_leaves leaves.

    Examples
    --------
    >>> from kernelrules import prune, tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 1, 0, 1])
    >>> prune.to_size(grown, 3)
    Tree(gini, 3 leaves, depth 2, 1 feature)

    Absolute errors, of a tree that was grown by squared ones, are those of a function and of rows:

    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 1, 2, 0, 0, 1]
    >>> grown = tree.grow(X, y, criterion="squared_error")
    >>> small = prune.to_size(grown, 3, lambda y, predicted: abs(y - predicted), X=X, y=y)
    >>> tree.predict(small, X)
    array([1., 1., 1., 0., 0., 1.])
    """
    if is_own(loss):
        rise, noise = _rises_of_own(require_tree(tree), node_losses(tree, loss, X, y, sample_weight))
    else:
        if not (X is None and y is None and sample_weight is None):
            raise ValueError("X, y and sample_weight are for a loss that is a function")
        rise, noise = _rises(require_tree(tree), loss)
    wanted, there = check.whole(n_leaves, "n_leaves", 1), tree.n_leaves
    if wanted > there:
        raise ValueError(f"n_leaves is {wanted}, but the tree has only {there} leaves")
    left, right = tree.left, tree.right
    inner = np.flatnonzero(left >= 0)
    own_noise = _noise(tree, float(tree.impurity[0]))
    rises, gains = tied_ranks(rise, noise), tied_ranks(tree.gain, own_noise)
    parent = np.full(tree.n_nodes, -1)
    parent[left[inner]] = parent[right[inner]] = inner
    split = (left >= 0).astype(int)
    open_children = split[left[inner]] + split[right[inner]]  # those that are no leaves yet
    waits_for = dict(zip(inner.tolist(), open_children.tolist(), strict=True))
    pairs = [(rises[node], gains[node], -node) for node, waits in waits_for.items() if waits == 0]
    heapq.heapify(pairs)
    gone = np.zeros(tree.n_nodes, dtype=bool)
    for _ in range(there - wanted):
        node = -heapq.heappop(pairs)[2]
        gone[node] = True
        above = int(parent[node])
        if above >= 0:
            waits_for[above] -= 1
            if waits_for[above] == 0:
                heapq.heappush(pairs, (rises[above], gains[above], -above))
    return cut(tree, gone)


def _rises(tree: Tree, loss: Any) -> tuple[np.ndarray, np.ndarray]:
    """By how much the loss rises where the split of a node goes, over the weight of all rows; and how exact that is."""
    name = checked_loss(tree, loss, _OF_MEANS if tree.criterion in _OF_MEANS else ())
    inner = np.flatnonzero(tree.left >= 0)
    left, right = tree.left[inner], tree.right[inner]
    rise = np.zeros(tree.n_nodes)
    if tree.classes is not None or name == tree.criterion:
        risk, _ = node_risk(tree, name)
        rise[inner] = np.maximum(risk[inner] - risk[left] - risk[right], 0.0) / tree.weight[0]
        return rise, _noise(tree, risk[0] / tree.weight[0])
    weight, means = tree.weight, tree.value.reshape(tree.n_nodes, -1)
    _require_means(weight, means, inner, left, right, name)
    if name == "squared_error":
        gap = np.square(means[left] - means[right]).sum(axis=1)
        rise[inner] = weight[left] * weight[right] / (weight[left] + weight[right]) * gap
    else:
        for child in (left, right):
            rise[inner] += weight[child] * rel_entr(means[child], means[inner]).sum(axis=1)
    rise = np.maximum(rise, 0.0) / weight[0]
    return rise, _noise(tree, float(rise.sum()))


def _rises_of_own(tree: Tree, risk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same from losses of nodes; predictions need not minimise these, so a rise may be negative."""
    rise = np.zeros(tree.n_nodes)
    inner = np.flatnonzero(tree.left >= 0)
    rise[inner] = risk[inner] - risk[tree.left[inner]] - risk[tree.right[inner]]
    return rise, _NOISE * float(risk.max()) * (tree.weight / tree.weight[0])


def _require_means(weight: Any, means: np.ndarray, inner: Any, left: Any, right: Any, loss: str) -> None:
    """Refuse values that are no means: those of children make up their parent's."""
    parts = weight[left, None] * means[left] + weight[right, None] * means[right]
    if (np.abs(weight[inner, None] * means[inner] - parts) > _NEARLY * weight[inner, None] * np.abs(means).max()).any():
        raise ValueError(
            f'loss="{loss}" needs the means of the targets, and the tree has other values (medians, or means that '
            "monotone= moved): only the loss that it was grown by is known"
        )
    if loss == "poisson" and (means < 0).any():
        raise ValueError(f'loss="poisson" needs means of at least 0, and the tree has {means.min()}')


def _noise(tree: Tree, scale: float) -> np.ndarray:
    """How far rounding may have moved what a split saves, per unit of weight: in proportion to the node's weight.

    Shares of classes are rounded as numbers around 1 are, sums of squares as the variance of all rows, the scale.
    """
    return _NOISE * (1.0 if tree.classes is not None else scale) * (tree.weight / tree.weight[0])


def snip(tree: Tree, nodes: Any) -> Tree:
    """Make leaves of nodes, by hand.

    Parameters
    ----------
    tree : Tree
        What `tree.grow` returned.
    nodes : int or sequence of int
        Numbers of nodes. Leaves stay what they are, and what lies below another node of the list is gone with it.

    Returns
    -------
    Tree
        Without what was below these nodes; the others are numbered anew.

    Examples
    --------
    >>> from kernelrules import prune, tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 0, 1, 0, 1])
    >>> prune.snip(grown, grown.right[0])
    Tree(gini, 2 leaves, depth 1, 1 feature)
    """
    require_tree(tree)
    given = np.asarray(nodes)
    if given.size == 0:
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu" or given.ndim > 1:
        raise TypeError(f"nodes must be a number or a sequence of numbers of nodes, got {nodes!r}")
    outside = (given < 0) | (given >= tree.n_nodes)
    if outside.any():
        first = np.atleast_1d(given)[np.atleast_1d(outside)][0]
        raise ValueError(f"nodes has {first}, but the nodes of the tree are 0 to {tree.n_nodes - 1}")
    chosen = np.zeros(tree.n_nodes, dtype=bool)
    chosen[given] = True
    return cut(tree, chosen)
