"""Nodes of a tree as text: `age ≤ 40`, `contact = yes`, `high (2, 1.00)`.

Numbers are written as in rule_text.py; `digits` gives fewer digits, as long as thresholds stay distinct.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kernelrules.results.linear import leaf_prediction
from kernelrules.results.rule_text import condition_text, digits_needed, number_text, prediction_text
from kernelrules.results.splits import side_condition

__all__ = ["NamedTree"]


class NamedTree:
    """A tree with names for its columns and classes: its nodes as text."""

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
            indicators=tree.indicators,
            directions=tree.directions,
            fill=tree.fill,
            missing=tree.missing,
            classes=tree.classes,
            class_names=class_names,
            digits=digits_needed(thresholds)
            if digits is None
            else dict.fromkeys(thresholds, digits) | digits_needed(thresholds, digits),
        )

    def split_text(self, node: int, *, left: bool = True) -> str:
        """Return the condition of the rows that a node sends left, or right."""
        return condition_text(side_condition(self.tree, node, left=left), self.names, exact=self.exact)

    def prediction_text(self, leaf: int) -> str:
        """Return the prediction of a leaf."""
        tree = self.tree
        if tree.classes is not None:
            return prediction_text(tree.classes[tree.value[leaf].argmax()], self.names, exact=self.exact)
        answer = tree.value[leaf] if tree.linear is None or tree.left[leaf] >= 0 else leaf_prediction(tree, leaf)
        return prediction_text(answer, self.names, exact=self.exact)

    def count_text(self, leaf: int) -> str:
        """Return the number of rows of a leaf, and for classes the share of the predicted one."""
        tree = self.tree
        rows = number_text(float(tree.n_samples[leaf]), digits=5)
        return rows if tree.classes is None else f"{rows}, {tree.value[leaf].max():.2f}"
