"""Subtree raising: the larger branch of a node in place of the node.

The tree does not know its rows, so they are given, and every node keeps the numbers of those in it. From the leaves up,
a node becomes a leaf, or its larger branch, or stays, by the errors that each is expected to make with all rows of the
node. A raised branch has more rows in its nodes than before, and is looked through once more.

Invariant: the class weights of a node are those of its rows, `as_leaf` is what it is expected to make of errors as a
leaf, and `errors` what its subtree is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.core import walk
from kernelrules.prune._common import IMPURITIES, rebuilt
from kernelrules.results import Tree
from kernelrules.tree.columns import filled, read_with_missing

__all__ = ["raised"]


@dataclass(eq=False)
class _Node:
    """A node of the tree in the making; its split is that of the node `source` of the grown tree."""

    source: int
    rows: np.ndarray
    counts: np.ndarray
    left: _Node | None = None
    right: _Node | None = None
    as_leaf: float = 0.0
    errors: float = 0.0

    def adopt(self, other: _Node) -> None:
        """Take over the split and the children of a node."""
        self.source, self.left, self.right = other.source, other.left, other.right


def raised(
    tree: Tree, expected: Callable[[np.ndarray], np.ndarray], tolerance: float, X: Any, y: Any, sample_weight: Any
) -> Tree:
    """The tree pruned with raising.

    Parameters
    ----------
    tree : Tree
        A classification tree.
    expected : callable
        Errors to expect of a leaf, from the weights of its classes.
    tolerance : float
        Expected errors that the smaller tree may make more.
    X, y, sample_weight : arrays
        The rows that it was grown on.

    Returns
    -------
    Tree
        The pruned tree, with the numbers of rows, values and gains of its new nodes.
    """
    if tree.criterion not in IMPURITIES:
        raise ValueError(f"raising needs the impurities of new nodes, and {tree.criterion} is not known by name")
    rows = _Rows(tree, expected, X, y, sample_weight)
    root = rows.grown()
    stack = [(root, False)]
    while stack:
        node, children_done = stack.pop()
        if node.left is None:
            node.errors = node.as_leaf
        elif not children_done:
            stack += [(node, True), (node.right, False), (node.left, False)]
        else:
            as_tree = node.left.errors + node.right.errors
            larger = node.left if node.left.counts.sum() >= node.right.counts.sum() else node.right
            as_branch = rows.errors_of_branch(larger, node.right if larger is node.left else node.left)
            if node.as_leaf <= min(as_tree, as_branch) + tolerance:
                node.left = node.right = None
                node.errors = node.as_leaf
            elif as_branch <= as_tree + tolerance:
                node.adopt(larger)
                rows.send_down(node)
                stack.append((node, False))
            else:
                node.errors = as_tree
    return _finished(tree, root, rows)


class _Rows:
    """The training rows, and where splits send them."""

    def __init__(self, tree: Tree, expected: Callable[..., np.ndarray], X: Any, y: Any, sample_weight: Any) -> None:
        if X is None or y is None:
            raise ValueError("raising sends the training rows down again: it needs X and y")
        self.tree, self.expected = tree, expected
        self.x, missing = read_with_missing(tree, X)
        if missing.any() and tree.missing == "fractional":
            raise ValueError('raising moves whole rows: not with missing="fractional" and missing values')
        self.any_missing = bool(missing.any())
        if self.any_missing and tree.missing in ("zero", "impute"):
            self.x, self.any_missing = filled(self.x, tree.fill), False
        n, k = len(self.x), len(tree.classes)
        classes, codes = check.labels(y, n)
        weight = check.weights(sample_weight, n)
        same = np.array_equal(classes, tree.classes)
        counts = np.bincount(codes, weight, k) if same else None
        if not same or not self._agrees(counts, 0):
            raise ValueError("X and y are not the rows that the tree was grown on: their classes differ in weight")
        self.classes = np.zeros((n, k))
        self.classes[np.arange(n), codes] = weight
        self.kept = np.flatnonzero(weight > 0)
        self.stumps: dict[int, walk.Nodes] = {}

    def _agrees(self, counts: np.ndarray, source: int) -> bool:
        """Whether these are the weights of the classes in a node of the grown tree."""
        told = self.tree.value[source] * self.tree.weight[source]
        return bool((np.abs(counts - told) <= 1e-9 * (np.abs(told) + self.tree.weight[0])).all())

    def grown(self) -> _Node:
        """The nodes of the tree as it was grown."""
        nodes = [_Node(i, self.kept, self.classes[0]) for i in range(self.tree.n_nodes)]
        for node, left, right in zip(nodes, self.tree.left, self.tree.right, strict=True):
            if left >= 0:
                node.left, node.right = nodes[left], nodes[right]
        nodes[0].counts = self.classes.sum(axis=0)
        self.send_down(nodes[0])
        for node in nodes:
            if not self._agrees(node.counts, node.source):
                raise ValueError(
                    f"X and y are not the rows that the tree was grown on: they come to node {node.source} in other "
                    "numbers than these did"
                )
        return nodes[0]

    def sides(self, source: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows that a split sends left and right."""
        if source not in self.stumps:
            nodes = np.array([source, self.tree.left[source], self.tree.right[source]])
            self.stumps[source] = walk.Nodes(rebuilt(self.tree, nodes, np.array([1, -1, -1]), np.array([2, -1, -1])))
        out = np.empty(len(rows), dtype=np.int64)
        walk.apply_tree(self.stumps[source], self.x[rows], np.arange(3), out, self.any_missing, 1, None)
        return rows[out == 1], rows[out == 2]

    def send_down(self, top: _Node) -> None:
        """Give the nodes below a node its rows."""
        nodes, stack = [], [top]
        while stack:
            node = stack.pop()
            nodes.append(node)
            if node.left is None:
                continue
            for child, rows in zip((node.left, node.right), self.sides(node.source, node.rows), strict=True):
                child.rows, child.counts = rows, self.classes[rows].sum(axis=0)
                stack.append(child)
        for node, errors in zip(nodes, self.expected(np.array([node.counts for node in nodes])).tolist(), strict=True):
            node.as_leaf = errors

    def errors_of_branch(self, branch: _Node, sibling: _Node) -> float:
        """Errors to expect of a branch that gets the rows of its sibling, too."""
        total, leaves, stack = 0.0, [], [(branch, sibling.rows)]
        while stack:
            node, more = stack.pop()
            if len(more) == 0:
                total += node.errors
            elif node.left is None:
                leaves.append(node.counts + self.classes[more].sum(axis=0))
            else:
                stack += zip((node.left, node.right), self.sides(node.source, more), strict=True)
        return total + float(self.expected(np.array(leaves)).sum()) if leaves else total


def _finished(tree: Tree, root: _Node, rows: _Rows) -> Tree:
    """The arrays of the tree in the making."""
    order: list[_Node] = []
    stack = [root]
    while stack:
        node = stack.pop()
        order.append(node)
        if node.left is not None:
            stack += [node.right, node.left]
    number = {id(node): i for i, node in enumerate(order)}
    left, right = (
        np.array([-1 if node.left is None else number[id(getattr(node, side))] for node in order])
        for side in ("left", "right")
    )
    kept = rebuilt(tree, np.array([node.source for node in order]), left, right)
    counts = np.array([node.counts for node in order])
    weight = counts.sum(axis=1)
    value = counts / weight[:, None]
    impurity = IMPURITIES[tree.criterion](value)
    loss, inner = weight * impurity, left >= 0
    gain = np.where(inner, (loss - loss[left] - loss[right]) / weight[0], 0.0)
    n_samples = np.array([len(node.rows) for node in order]).astype(tree.n_samples.dtype)
    return replace(
        kept,
        value=value,
        weight=weight,
        impurity=impurity,
        gain=np.maximum(gain, 0.0),
        n_samples=n_samples,
        subset_left=_flags(kept, order, rows),
    )


def _flags(kept: Tree, order: list[_Node], rows: _Rows) -> np.ndarray:
    """Of the categories: those that rows from beside a raised branch have brought into a node have a side there now.

    It is that of the larger child, as it was when they came; the other child may have become the larger one since.
    (Surrogates decide for each row, so that a category has no side.)
    """
    flags, grown = kept.subset_left.copy(), rows.tree
    if grown.surrogates is not None:
        return flags
    for i in np.flatnonzero(kept.subset_start >= 0):
        codes = rows.x[order[i].rows, kept.feature[i]]
        here = kept.subset_start[i] + np.unique(codes[~np.isnan(codes)]).astype(np.int64)
        source = order[i].source
        larger_left = grown.weight[grown.left[source]] >= grown.weight[grown.right[source]]
        flags[here[flags[here] == 2]] = 1 if larger_left else 0
    return flags
