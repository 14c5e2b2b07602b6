"""Results of growing a tree: its nodes as arrays, and surrogate splits.

Invariant: nodes are in depth-first order, so that children come after their parents and a subtree is a range of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.results.show import Result, counted
from kernelrules.results.tree_html import tree_list

__all__ = ["Surrogates", "Tree"]


@dataclass(frozen=True, eq=False, repr=False)
class Surrogates(Result):
    """Surrogate splits, used if the column of a node's split is missing; the best of a node first.

    Attributes
    ----------
    start : ndarray (n_nodes + 1,)
        Node i has the surrogates start[i] to start[i + 1] - 1.
    feature, threshold : ndarray (n_surrogates,)
        As in `Tree`.
    below_left : ndarray (n_surrogates,) of bool
        Whether x <= threshold goes left; otherwise x > threshold does.
    subset_start : ndarray (n_surrogates,)
        As in `Tree`, into the same flags.
    agreement : ndarray (n_surrogates,)
        Share of the rows that it sends to the same side as the split, among those that the majority side misses.
    """

    start: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    below_left: np.ndarray
    subset_start: np.ndarray
    agreement: np.ndarray

    def _summary(self) -> list[str]:
        return [f"{len(self.feature)} splits for {counted(int((np.diff(self.start) > 0).sum()), 'node')}"]


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Result):
    """A decision tree. Nodes are in depth-first order: 0 is the root, and the left child of node i is i + 1.

    Attributes
    ----------
    feature : ndarray (n_nodes,)
        Column of a node's split; -1 in leaves; from n_features on, row feature - n_features of `directions`.
    threshold : ndarray (n_nodes,)
        x <= threshold goes left; NaN in leaves and for subsets of categories.
    left, right : ndarray (n_nodes,)
        Children; -1 in leaves.
    value : ndarray (n_nodes, n_classes), (n_nodes,) or (n_nodes, n_outputs)
        Weighted shares of the classes; the mean or median of one target, or means of several.
    n_samples : ndarray (n_nodes,)
        Number of training rows in the node; fractional rows count as fractions.
    weight : ndarray (n_nodes,)
        Weight W of these rows.
    impurity : ndarray (n_nodes,)
        Impurity Q of the node, by the criterion; entropy in bits.
    gain : ndarray (n_nodes,)
        Decrease of the loss W·Q by the split, divided by the weight of all rows; 0 in leaves.
    missing_left : ndarray (n_nodes,) of bool
        Whether a missing value goes left: learned if some were missing in training, else the side of the larger child.
        With surrogates, for rows that none of them decides: the side of most rows with a known value.
    subset_start : ndarray (n_nodes,)
        For a split on categories, its first flag in `subset_left`, which has one per level; else -1.
    subset_left : ndarray of uint8
        1: the level goes left; 0: right; 2: it did not occur in the node, and goes to the larger child.
    criterion : str
        The criterion by which the tree was grown.
    missing : str
        How missing values are treated.
    classes : ndarray or None
        In ascending order; None for regression.
    categories : tuple
        For each column None if it is numerical, else its levels in the order of their codes.
    n_features, n_outputs, n_train : int
        Columns, targets and rows of the training data.
    feature_names : tuple or None
        Names of the columns, if the data had any.
    surrogates : Surrogates or None
        Surrogate splits, with missing="surrogate".
    fill : ndarray (n_features,) or None
        Replacements of missing values, with missing="impute" or "zero".
    directions : ndarray (n_oblique, n_features) or None
        Directions of oblique splits: X·direction is compared with the threshold.
    linear : ndarray (n_nodes, n_features + 1) or None
        Coefficients and constant of the leaves' linear models.
    missing_seen : ndarray (n_features,) of bool, or None
        Columns that had missing values in training.
    indicators : ndarray (n_features,) of bool, or None
        Columns of truth values, or of counts in sparse data: for 0 <= t < 1, text is `x` for x > t and `not x` for
        x <= t. None: no column.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    n_samples: np.ndarray
    weight: np.ndarray
    impurity: np.ndarray
    gain: np.ndarray
    missing_left: np.ndarray
    subset_start: np.ndarray
    subset_left: np.ndarray
    criterion: str
    missing: str
    classes: np.ndarray | None
    categories: tuple[Any, ...]
    n_features: int
    n_outputs: int
    n_train: int
    feature_names: tuple[str, ...] | None = None
    surrogates: Surrogates | None = None
    fill: np.ndarray | None = None
    directions: np.ndarray | None = None
    linear: np.ndarray | None = None
    missing_seen: np.ndarray | None = None
    indicators: np.ndarray | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.left < 0).sum())

    @property
    def depth(self) -> int:
        """Number of splits on the longest path from the root to a leaf."""
        depth = np.zeros(self.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(self.left >= 0):  # parents come before their children
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return int(depth.max(initial=0))

    def left_levels(self, node: int) -> np.ndarray:
        """Return the levels that a split on categories sends left.

        Parameters
        ----------
        node : int
            A node that splits on categories.

        Returns
        -------
        ndarray
            Those of the levels that occurred in the node.
        """
        levels, start = self.categories[self.feature[node]], self.subset_start[node]
        return levels[self.subset_left[start : start + len(levels)] == 1]

    def _summary(self) -> list[str]:
        return [self.criterion, counted(self.n_leaves, "leaf", "leaves"), f"depth {self.depth}",
                counted(self.n_features, "feature")]  # fmt: skip

    def _html_body(self) -> str:
        return tree_list(self)
