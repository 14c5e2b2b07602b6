"""What pruning methods share: checks of a tree, the risk of its nodes, and cutting.

A method decides which splits go, as a mask of nodes; `cut` makes the tree without them. Arrays of nodes stay in
depth-first order, and everything that nodes point into (flags of categories, directions, surrogates) is packed anew, so
that a pruned tree looks as if it had been grown that small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules.core.tree import prune as core
from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.results import Surrogates, Tree

__all__ = [
    "CLASS_LOSSES",
    "checked_loss",
    "class_counts",
    "cut",
    "node_risk",
    "part",
    "rebuilt",
    "require_classes",
    "require_tree",
]

CLASS_LOSSES = ("zero_one", "gini", "entropy")
_NEARLY = 1e-9  # shares times weights are whole numbers up to rounding


def require_tree(tree: Any) -> Tree:
    """The tree, if it is one whose inner nodes can become leaves."""
    if not isinstance(tree, Tree):
        raise TypeError(f"tree must be a tree that tree.grow returned, got {type(tree).__name__}")
    if tree.linear is not None:
        raise ValueError(
            'the tree has linear models in its leaves, and its other nodes have none: grow it with leaf="constant"'
        )
    if not _is_ordered(tree):
        raise ValueError("the tree's arrays do not describe a tree whose nodes are in depth-first order")
    return tree


def _is_ordered(tree: Tree) -> bool:
    """Whether the arrays are of one length and children come after their parents: nothing leads out of them."""
    n, inner = len(tree.left), np.flatnonzero(tree.left >= 0)
    if n == 0 or any(len(array) != n for array in (tree.right, tree.value, tree.weight, tree.impurity)):
        return False
    left, right = tree.left[inner], tree.right[inner]
    beside = (left == inner + 1).all() and (right > left).all() and (right < n).all()
    return bool(beside and np.array_equal(np.flatnonzero(tree.right >= 0), inner))


def require_classes(tree: Any, what: str) -> Tree:
    """The tree, if it has classes."""
    if require_tree(tree).classes is None:
        raise ValueError(f"{what} is for classes, and the tree was grown by {tree.criterion}")
    return tree


def class_counts(tree: Tree) -> np.ndarray:
    """Weight of every class in every node, (n_nodes, n_classes): whole where all weights are."""
    counts = tree.value * tree.weight[:, None]
    near = np.rint(counts)
    whole = (tree.weight == np.rint(tree.weight)).all() and (np.abs(counts - near) <= _NEARLY * tree.weight[0]).all()
    return near if whole else counts


def checked_loss(tree: Tree, loss: Any, more: tuple[str, ...] = ()) -> str:
    """The name of a loss, the default for None: of those that a tree of its kind has, or of some more."""
    of_classes = tree.classes is not None
    if loss is None:
        return "zero_one" if of_classes else tree.criterion
    allowed = dict.fromkeys((*CLASS_LOSSES, tree.criterion) if of_classes else (tree.criterion, *more))
    if not isinstance(loss, str) or loss not in allowed:
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        raise ValueError(f"loss must be one of {choices} for a tree grown by {tree.criterion}, got {loss!r}")
    return loss


def node_risk(tree: Tree, loss: str | None) -> tuple[np.ndarray, str]:
    """Loss of the rows of every node as a leaf, summed by weight; and the name of the loss.

    Parameters
    ----------
    tree : Tree
        One that has been checked.
    loss : str or None
        "zero_one", "gini" or "entropy" for classes; for regression, and for a criterion of the user's own, the name of
        the criterion. None is zero_one for classes, and the criterion for regression.

    Returns
    -------
    risk, name
        Not divided by anything; zero_one in whole numbers where weights are whole.
    """
    of_classes = tree.classes is not None
    loss = checked_loss(tree, loss)
    if loss == "zero_one" or (of_classes and loss == "misclassification"):
        counts = class_counts(tree)
        return np.maximum(counts.sum(axis=1) - counts.max(axis=1), 0.0), loss
    if loss in ("gini", "entropy"):
        return tree.weight * CRITERIA[loss].impurities(tree.value), loss
    return tree.weight * tree.impurity, loss


def cut(tree: Tree, leaves: np.ndarray) -> Tree:
    """The tree whose nodes in the mask `leaves` have become leaves; what was below them is gone."""
    return part(tree, 0, leaves)


def part(tree: Tree, root: int, leaves: np.ndarray | None = None) -> Tree:
    """The subtree of a node as a tree, cut at the nodes of the mask `leaves`."""
    ends = np.empty(tree.n_nodes, dtype=np.int64)
    core.subtree_ends(tree.right, ends)
    inner = tree.left >= 0
    kept = np.zeros(tree.n_nodes, dtype=bool)
    kept[root : ends[root]] = True
    if leaves is not None:
        tops = np.flatnonzero(leaves & inner)
        inner = inner & ~leaves
        edges = np.bincount(tops + 1, minlength=tree.n_nodes + 1) - np.bincount(ends[tops], minlength=tree.n_nodes + 1)
        kept &= np.cumsum(edges[:-1]) == 0  # not inside a subtree that goes
    nodes, number = np.flatnonzero(kept), np.cumsum(kept) - 1
    inner = inner[nodes]
    left, right = (np.where(inner, number[side[nodes]], -1) for side in (tree.left, tree.right))
    return rebuilt(tree, nodes, left, right)


def rebuilt(tree: Tree, nodes: np.ndarray, left: np.ndarray, right: np.ndarray) -> Tree:
    """A tree of some nodes of another, with new children; where these are -1, the node is a leaf."""
    inner = left >= 0
    feature, directions = _packed_directions(tree, np.where(inner, tree.feature[nodes], -1))
    starts, surrogates = np.where(inner, tree.subset_start[nodes], -1), None
    if tree.surrogates is not None:
        surrogates = _packed_surrogates(tree.surrogates, nodes, inner)
    starts, surrogates, flags = _packed_flags(tree, feature, starts, surrogates)
    return replace(
        tree,
        feature=feature,
        threshold=np.where(inner, tree.threshold[nodes], np.nan),
        left=left,
        right=right,
        value=tree.value[nodes],
        n_samples=tree.n_samples[nodes],
        weight=tree.weight[nodes],
        impurity=tree.impurity[nodes],
        gain=np.where(inner, tree.gain[nodes], 0.0),
        missing_left=inner & tree.missing_left[nodes],
        subset_start=starts,
        subset_left=flags,
        surrogates=surrogates,
        directions=directions,
    )


def _packed_directions(tree: Tree, feature: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    oblique = feature >= tree.n_features
    if not oblique.any():
        return feature, None
    used, number = np.unique(feature[oblique], return_inverse=True)
    feature[oblique] = tree.n_features + number
    return feature, tree.directions[used - tree.n_features]


def _packed_surrogates(surrogates: Surrogates, nodes: np.ndarray, inner: np.ndarray) -> Surrogates:
    first = surrogates.start[nodes]
    length = np.where(inner, surrogates.start[nodes + 1] - first, 0)
    start = np.append(0, np.cumsum(length))
    kept = np.arange(start[-1]) + np.repeat(first - start[:-1], length)
    return Surrogates(
        start=start,
        feature=surrogates.feature[kept],
        threshold=surrogates.threshold[kept],
        below_left=surrogates.below_left[kept],
        subset_start=surrogates.subset_start[kept],
        agreement=surrogates.agreement[kept],
    )


def _packed_flags(
    tree: Tree, feature: np.ndarray, starts: np.ndarray, surrogates: Surrogates | None
) -> tuple[np.ndarray, Surrogates | None, np.ndarray]:
    """Flags of categories that are still pointed to, in the order they were in, and where they begin now."""
    columns, begin = feature, starts
    if surrogates is not None:
        columns, begin = np.append(feature, surrogates.feature), np.append(starts, surrogates.subset_start)
    has = begin >= 0
    n_levels = np.array([0 if levels is None else len(levels) for levels in tree.categories], dtype=np.int64)
    old, first = np.unique(begin[has], return_index=True)
    length = n_levels[columns[has][first]]
    new = np.append(0, np.cumsum(length))
    flags = tree.subset_left[np.arange(new[-1]) + np.repeat(old - new[:-1], length)]
    moved = begin.copy()
    moved[has] = new[np.searchsorted(old, begin[has])]
    if surrogates is not None:
        surrogates = replace(surrogates, subset_start=moved[len(starts) :])
    return moved[: len(starts)], surrogates, flags
