"""What growing a tree returns: its nodes, an array for each thing that is known of them, and surrogate splits.

Invariant: nodes are in depth-first order, so that children come after their parents and a subtree is a stretch.
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
    """Splits that stand in for those of a tree where their column is missing, the best of a node first.

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
        Share of the rows that it sends where the split does, of those that going with the majority gets wrong.
    """

    start: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    below_left: np.ndarray
    subset_start: np.ndarray
    agreement: np.ndarray

    def _says(self) -> list[str]:
        return [f"{len(self.feature)} splits for {counted(int((np.diff(self.start) > 0).sum()), 'node')}"]


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Result):
    """A decision tree. Nodes are in depth-first order: 0 is the root, and the left child of node i is i + 1.

    Attributes
    ----------
    feature : ndarray (n_nodes,)
        Column that a node splits on; -1 in leaves; from n_features on, row feature - n_features of `directions`.
    threshold : ndarray (n_nodes,)
        x <= threshold goes left; NaN in leaves and for subsets of categories.
    left, right : ndarray (n_nodes,)
        Children; -1 in leaves.
    value : ndarray (n_nodes, n_classes), (n_nodes,) or (n_nodes, n_outputs)
        Weighted shares of the classes; the mean or median of one target, or means of several.
    n_samples : ndarray (n_nodes,)
        Training rows in the node; fractions of rows count as such.
    weight : ndarray (n_nodes,)
        Their weight W.
    impurity : ndarray (n_nodes,)
        Q of the node, by the criterion; entropy in bits.
    gain : ndarray (n_nodes,)
        What the split takes off the loss W·Q, over the weight of all rows; 0 in leaves.
    missing_left : ndarray (n_nodes,) of bool
        Side of a missing value: learned where some were missing in training, else the larger child's. With surrogates,
        of rows that none of them helps: that of most rows whose value is known.
    subset_start : ndarray (n_nodes,)
        For a split on categories, where its flags begin in `subset_left`, one for each level; else -1.
    subset_left : ndarray of uint8
        1 the level goes left, 0 right, 2 it did not occur in the node: then to the larger child.
    criterion : str
        What the tree was grown by.
    missing : str
        How missing values are treated.
    classes : ndarray or None
        In ascending order; None for regression.
    categories : tuple
        For each column None if it is numerical, else its levels in the order of their codes.
    n_features, n_outputs, n_train : int
        Columns, targets and rows of the training data.
    feature_names : tuple or None
        Names of the columns, where the data had any.
    surrogates : Surrogates or None
        With missing="surrogate".
    fill : ndarray (n_features,) or None
        What missing values are replaced by, with missing="impute" or "zero".
    directions : ndarray (n_oblique, n_features) or None
        Of oblique splits: X·direction is compared with the threshold.
    linear : ndarray (n_nodes, n_features + 1) or None
        Coefficients and constant of the leaves' linear models.
    missing_seen : ndarray (n_features,) of bool, or None
        Columns that had missing values in training.
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

    @property
    def n_nodes(self) -> int:
        """Nodes, leaves included."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Leaves."""
        return int((self.left < 0).sum())

    @property
    def depth(self) -> int:
        """Splits on the longest way from the root to a leaf."""
        depth = np.zeros(self.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(self.left >= 0):  # parents come before their children
            depth[[self.left[node], self.right[node]]] = depth[node] + 1
        return int(depth.max(initial=0))

    def left_levels(self, node: int) -> np.ndarray:
        """Levels of a split on categories that go left.

        Parameters
        ----------
        node : int
            A node that splits on categories.

        Returns
        -------
        ndarray
            Of those that occurred in the node.
        """
        levels, start = self.categories[self.feature[node]], self.subset_start[node]
        return levels[self.subset_left[start : start + len(levels)] == 1]

    def _says(self) -> list[str]:
        return [self.criterion, counted(self.n_leaves, "leaf", "leaves"), f"depth {self.depth}",
                counted(self.n_features, "feature")]  # fmt: skip

    def _body(self) -> str:
        return tree_list(self)
