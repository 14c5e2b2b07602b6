"""Nodes of a tree as a person writes them: `age ≤ 40`, `contact = yes`, `high (2, 1.00)`.

Numbers are written as in rule_text.py; with `digits` fewer, for pictures, as long as thresholds can be told apart.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelrules.results.rule_text import condition_text, digits_needed, number_text, prediction_text
from kernelrules.results.splits import side_condition

__all__ = ["NamedTree"]


class NamedTree:
    """A tree with names for its columns and classes: its nodes in words."""

    def __init__(
        self,
        tree: Any,
        feature_names: tuple[str, ...] | None,
        class_names: tuple[str, ...] | None = None,
        *,
        exact: bool = False,
        digits: int | None = None,
    ) -> None:
        self.tree, self.exact = tree, exact
        thresholds = list(zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True))
        self.names = SimpleNamespace(
            feature_names=feature_names or tree.feature_names or tuple(f"x{j}" for j in range(tree.n_features)),
            levels=tree.categories,
            missing_seen=tree.missing_seen,
            classes=tree.classes,
            class_names=class_names,
            digits=digits_needed(thresholds)
            if digits is None
            else dict.fromkeys(thresholds, digits) | digits_needed(thresholds, digits),
        )

    def asks(self, node: int, *, left: bool = True) -> str:
        """What is true of rows that a node sends left, or right."""
        tree, column = self.tree, int(self.tree.feature[node])
        if column >= tree.n_features:
            return self._oblique(node, left=left)
        return condition_text(side_condition(tree, node, left=left), self.names, exact=self.exact)

    def _oblique(self, node: int, *, left: bool) -> str:
        tree = self.tree
        terms = self._terms(tree.directions[tree.feature[node] - tree.n_features])
        side = "≤" if left else ">"
        text = f"{terms} {side} {number_text(tree.threshold[node], exact=self.exact)}"
        return f"{text} or missing" if self.exact and bool(tree.missing_left[node]) == left else text

    def _terms(self, coefficients: np.ndarray) -> str:
        """A sum of columns."""
        text = ""
        for column in np.flatnonzero(coefficients):
            factor = float(coefficients[column])
            sign = " + " if factor > 0 else " - "
            text += f"{sign if text else sign.strip(' +')}{number_text(abs(factor), exact=self.exact)}"
            text += f"·{self.names.feature_names[column]}"
        return text

    def says(self, leaf: int) -> str:
        """What a leaf predicts."""
        tree = self.tree
        if tree.classes is not None:
            return prediction_text(tree.classes[tree.value[leaf].argmax()], self.names, exact=self.exact)
        if tree.linear is not None and tree.linear[leaf, :-1].any():
            constant = number_text(tree.linear[leaf, -1], exact=self.exact)
            return f"{self._terms(tree.linear[leaf, :-1])} + {constant}"
        return prediction_text(tree.value[leaf], self.names, exact=self.exact)

    def figures(self, leaf: int) -> str:
        """How many rows came to a leaf, and for classes the share that has the one predicted."""
        tree = self.tree
        rows = number_text(float(tree.n_samples[leaf]), digits=5)
        return rows if tree.classes is None else f"{rows}, {tree.value[leaf].max():.2f}"
