"""Subtree raising: the larger branch of a node in place of the node.

The tree does not know its rows, so they are given, and every node keeps the numbers of those in it. From the leaves up,
a node becomes a leaf, or its larger branch, or stays, by the errors that each is expected to make with all rows of the
node. A raised branch has more rows in its nodes than before, and is looked through once more.

Invariant: the class weights of a node are those of its rows, `as_leaf` is the expected number of errors of the node as
a leaf, and `errors` that of its subtree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.check.frames import read_with_missing
from kernelrules.core.tree import predict
from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.prune._common import rebuilt
from kernelrules.results import Tree
from kernelrules.tree.imputation import filled

__all__ = ["raised"]

_Some = tuple[np.ndarray, np.ndarray | None]  # numbers of rows, and the part that is here of each; None: all of each


@dataclass(eq=False)
class _Node:
    """A node of the tree in the making; its split is that of the node `source` of the grown tree."""

    source: int
    rows: _Some
    counts: np.ndarray
    left: _Node | None = None
    right: _Node | None = None
    as_leaf: float = 0.0
    errors: float = 0.0

    def adopt(self, other: _Node) -> None:
        """Take over the split and the children of a node."""
        self.source, self.left, self.right = other.source, other.left, other.right


def raised(
    tree: Tree,
    expected: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    X: Any,
    y: Any,
    sample_weight: Any,
    tick: Any = None,
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
    tick : callable, optional
        Called with the number of nodes that are done.

    Returns
    -------
    Tree
        The pruned tree, with the numbers of rows, values and gains of its new nodes.
    """
    if tree.criterion not in CRITERIA:
        raise ValueError(f"raising needs the impurities of new nodes, and {tree.criterion} is not known by name")
    rows = _Rows(tree, expected, X, y, sample_weight)
    root = rows.grown()
    stack, done = [(root, False)], 0
    while stack:
        node, children_done = stack.pop()
        done += children_done or node.left is None
        if tick is not None and done % 64 == 0:
            tick(min(done, tree.n_nodes), tree.n_nodes)  # a raised branch is looked through once more
        if node.left is None:
            node.errors = node.as_leaf
        elif not children_done:
            stack += [(node, True), (node.right, False), (node.left, False)]
        else:
            as_tree = node.left.errors + node.right.errors
            larger = node.left if node.left.counts.sum() >= node.right.counts.sum() else node.right
            as_branch = rows.errors_of_branch(node, larger, node.right if larger is node.left else node.left)
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
        self.any_missing = bool(missing.any())
        if self.any_missing and tree.missing in ("zero", "impute"):
            self.x, self.any_missing = filled(self.x, tree.fill), False
        self.in_parts = self.any_missing and tree.missing == "fractional"
        n, self.k = len(self.x), len(tree.classes)
        classes, self.codes = check.labels(y, n)
        self.weight = check.weights(sample_weight, n)
        same = np.array_equal(classes, tree.classes)
        if not same or not self._agrees(np.bincount(self.codes, self.weight, self.k), 0).all():
            raise ValueError("X and y are not the rows that the tree was grown on: their classes differ in weight")
        kept = np.flatnonzero(self.weight > 0)
        self.kept: _Some = (kept, np.ones(len(kept)) if self.in_parts else None)
        # Splits by one column are made here; those of several columns by the walk that predicts, a stump each.
        self.plain = tree.surrogates is None and tree.directions is None
        self.columns = list(np.ascontiguousarray(self.x.T))
        self.feature, self.threshold = tree.feature.tolist(), tree.threshold.tolist()
        self.by_levels = (tree.subset_start >= 0).tolist()
        self.larger_left = tree.weight[tree.left] >= tree.weight[tree.right]  # of leaves it is never read
        self.stumps: dict[int, predict.Nodes] = {}

    def _agrees(self, counts: np.ndarray, source: Any) -> np.ndarray:
        """Whether these are the weights of the classes in nodes of the grown tree."""
        told = self.tree.value[source] * self.tree.weight[source, None]
        return (np.abs(counts - told) <= 1e-9 * (np.abs(told) + self.tree.weight[0])).all(axis=-1)

    def counts(self, some: _Some) -> np.ndarray:
        """Weights of the classes of some rows."""
        return np.bincount(self.codes[some[0]], self._weights(some), self.k)

    def _weights(self, some: _Some) -> np.ndarray:
        whole = self.weight[some[0]]
        return whole if some[1] is None else whole * some[1]

    def grown(self) -> _Node:
        """The nodes of the tree as it was grown."""
        nodes = [_Node(i, self.kept, np.zeros(self.k)) for i in range(self.tree.n_nodes)]
        for node, left, right in zip(nodes, self.tree.left.tolist(), self.tree.right.tolist(), strict=True):
            if left >= 0:
                node.left, node.right = nodes[left], nodes[right]
        nodes[0].counts = self.counts(self.kept)
        self.send_down(nodes[0])
        same = self._agrees(np.array([node.counts for node in nodes]), np.arange(len(nodes)))
        if not same.all():
            raise ValueError(
                f"X and y are not the rows that the tree was grown on: they come to node {same.argmin()} in other "
                "numbers than these did"
            )
        return nodes[0]

    def sides(self, source: int, some: _Some) -> tuple[_Some, _Some]:
        """The rows that a split sends left and right; parts of those without a value, where rows come apart."""
        rows, parts = some
        if not self.plain:
            left = self._by_stump(source, rows)
        else:
            values = self.columns[self.feature[source]][rows]
            left = self._by_levels(source, values) if self.by_levels[source] else values <= self.threshold[source]
        if parts is not None:
            return self._apart(source, some, left)
        if self.any_missing and self.plain and self.tree.missing_left[source]:
            left |= np.isnan(values)
        return (rows[left], None), (rows[~left], None)

    def _by_levels(self, source: int, values: np.ndarray) -> np.ndarray:
        known = ~np.isnan(values) if self.any_missing else np.ones(len(values), dtype=bool)
        codes = np.where(known, values, 0).astype(np.int64)
        flags = self.tree.subset_left[self.tree.subset_start[source] + codes]
        return known & ((flags == 1) | ((flags == 2) & self.larger_left[source]))

    def _by_stump(self, source: int, rows: np.ndarray) -> np.ndarray:
        if source not in self.stumps:
            nodes = np.array([source, self.tree.left[source], self.tree.right[source]])
            self.stumps[source] = predict.Nodes(rebuilt(self.tree, nodes, np.array([1, -1, -1]), np.array([2, -1, -1])))
        out = np.empty(len(rows), dtype=np.int64)
        predict.apply_tree(self.stumps[source], self.x[rows], np.arange(3), out, self.any_missing, 1, None)
        return out == 1

    def _apart(self, source: int, some: _Some, left: np.ndarray) -> tuple[_Some, _Some]:
        """As C4.5: rows without a value go to both sides, in the shares of the rows here that have one."""
        rows, parts = some
        missing, weight = self.without_value(source, rows), self._weights(some)
        known = float(weight[~missing].sum())
        if known > 0:
            share = float(weight[left & ~missing].sum()) / known
        else:
            both = self.tree.weight[[self.tree.left[source], self.tree.right[source]]]
            share = float(both[0] / both.sum())
        there = np.where(missing, parts * share, np.where(left, parts, 0.0))
        other = np.where(missing, parts * (1 - share), np.where(left, 0.0, parts))
        return (rows[there > 0], there[there > 0]), (rows[other > 0], other[other > 0])

    def without_value(self, source: int, rows: np.ndarray) -> np.ndarray:
        """Which rows lack a value that the split reads."""
        if self.feature[source] < self.tree.n_features:
            return np.isnan(self.columns[self.feature[source]][rows])
        used = self.tree.directions[self.feature[source] - self.tree.n_features] != 0
        return np.isnan(self.x[rows][:, used]).any(axis=1)

    def send_down(self, top: _Node) -> None:
        """Give the nodes below a node its rows."""
        nodes, stack = [], [top]
        while stack:
            node = stack.pop()
            nodes.append(node)
            if node.left is None:
                continue
            for child, some in zip((node.left, node.right), self.sides(node.source, node.rows), strict=True):
                child.rows, child.counts = some, self.counts(some)
                stack.append(child)
        for node, errors in zip(nodes, self.expected(np.array([node.counts for node in nodes])).tolist(), strict=True):
            node.as_leaf = errors

    def errors_of_branch(self, node: _Node, branch: _Node, sibling: _Node) -> float:
        """Errors to expect of a branch that gets all rows of its node.

        Whole rows of the branch keep their leaves, and those of the sibling descend to them. If rows are divided among
        branches, added rows change the shares, so that all rows descend again.
        """
        total, leaves = 0.0, []
        stack = [(branch, node.rows if self.in_parts else sibling.rows)]
        while stack:
            node, more = stack.pop()
            if len(more[0]) == 0:
                total += 0.0 if self.in_parts else node.errors
            elif node.left is None:
                leaves.append(self.counts(more) if self.in_parts else node.counts + self.counts(more))
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
    impurity = CRITERIA[tree.criterion].impurities(value)
    loss, inner = weight * impurity, left >= 0
    gain = np.where(inner, (loss - loss[left] - loss[right]) / weight[0], 0.0)
    if rows.in_parts:
        gain[inner] = _known_gains(tree, [node for node in order if node.left is not None], rows) / weight[0]
    n_samples = np.array([len(node.rows[0]) if node.rows[1] is None else node.rows[1].sum() for node in order]).astype(
        tree.n_samples.dtype
    )
    return replace(
        kept,
        value=value,
        weight=weight,
        impurity=impurity,
        gain=np.maximum(gain, 0.0),
        n_samples=n_samples,
        subset_left=_flags(kept, order, rows),
    )


def _known_gains(tree: Tree, nodes: list[_Node], rows: _Rows) -> np.ndarray:
    """What splits take off the loss of the rows that have a value, which is what a gain is where rows come apart."""
    parts = np.zeros((3, len(nodes), rows.k))
    for i, node in enumerate(nodes):
        known = ~rows.without_value(node.source, node.rows[0])
        both = rows.sides(node.source, (node.rows[0][known], node.rows[1][known]))
        parts[1:, i] = [rows.counts(some) for some in both]
    parts[0] = parts[1] + parts[2]
    weight = parts.sum(axis=2)
    shares = parts / np.where(weight > 0, weight, 1.0)[..., None]
    loss = weight * np.stack([CRITERIA[tree.criterion].impurities(some) for some in shares])
    return np.where((weight > 0).all(axis=0), loss[0] - loss[1] - loss[2], 0.0)


def _flags(kept: Tree, order: list[_Node], rows: _Rows) -> np.ndarray:
    """Of the categories: those that rows from beside a raised branch have brought into a node have a side there now.

    It is that of the larger child, as it was when they came; the other child may have become the larger one since.
    (Surrogates decide for each row, so that a category has no side.)
    """
    flags, grown = kept.subset_left.copy(), rows.tree
    if grown.surrogates is not None:
        return flags
    for i in np.flatnonzero(kept.subset_start >= 0):
        codes = rows.x[order[i].rows[0], kept.feature[i]]
        here = kept.subset_start[i] + np.unique(codes[~np.isnan(codes)]).astype(np.int64)
        source = order[i].source
        larger_left = grown.weight[grown.left[source]] >= grown.weight[grown.right[source]]
        flags[here[flags[here] == 2]] = 1 if larger_left else 0
    return flags
