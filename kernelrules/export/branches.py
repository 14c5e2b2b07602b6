"""What exporters are made from: a tree or a rule list with its names, what its nodes ask in words, and its leaves as
conditions."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.results import Condition, RuleList, Tree
from kernelrules.results.rule_text import condition_text, digits_needed, number_text, prediction_text
from kernelrules.tree.paths import leaf_conditions, side_condition

__all__ = ["NamedTree", "branches_of", "named_list", "one_of_both"]


def one_of_both(t: Any) -> Any:
    """The tree or the rule list, if it is one."""
    if not isinstance(t, (Tree, RuleList)):
        raise TypeError(f"t must be a Tree or a RuleList, got {type(t).__name__}")
    return t


def named_list(rs: RuleList, feature_names: Any, class_names: Any) -> RuleList:
    """The list with other names, where some are given."""
    if feature_names is not None:
        rs = replace(rs, feature_names=check.names(feature_names, rs.n_features, "feature_names", "columns"))
    if class_names is not None:
        if rs.classes is None:
            raise ValueError("class_names are for classification, and these are rules of a regression")
        rs = replace(rs, class_names=check.names(class_names, len(rs.classes), "class_names", "classes"))
    return rs


def column_names(t: Tree | RuleList, feature_names: Any) -> tuple[str, ...]:
    """Those given, those of the data, or x0, x1, ..."""
    if feature_names is not None:
        return check.names(feature_names, t.n_features, "feature_names", "columns")
    return t.feature_names or tuple(f"x{column}" for column in range(t.n_features))


def branches_of(t: Tree | RuleList) -> tuple[list[tuple[Condition, ...]], list[Any], Any]:
    """Conditions and predictions of the leaves or rules, and the default: None where no row is left to it."""
    if isinstance(t, RuleList):
        predictions = [rule.prediction for rule in t.rules]
        return [rule.conditions for rule in t.rules], predictions, t.default
    leaves, conditions = leaf_conditions(t)
    if t.classes is not None:
        return conditions, list(t.classes[t.value[leaves].argmax(axis=1)]), None
    return conditions, list(t.value[leaves]), None


class NamedTree:
    """A tree with names for its columns and classes: its nodes in words."""

    def __init__(self, tree: Tree, feature_names: Any, class_names: Any, *, exact: bool) -> None:
        self.tree, self.exact = tree, exact
        if class_names is not None:
            if tree.classes is None:
                raise ValueError(f"class_names are for classification, and the tree was grown by {tree.criterion}")
            class_names = check.names(class_names, len(tree.classes), "class_names", "classes")
        self.names = SimpleNamespace(
            feature_names=column_names(tree, feature_names),
            levels=tree.categories,
            missing_seen=tree.missing_seen,
            classes=tree.classes,
            class_names=class_names,
            digits=digits_needed(zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True)),
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
