"""What exporters are made from: a tree or a rule list with its names, and its leaves as conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelrules import check
from kernelrules.results import Condition, RuleList, Tree
from kernelrules.results.tree_text import NamedTree
from kernelrules.tree.paths import leaf_conditions

__all__ = ["branches_of", "named_list", "named_tree", "one_of_both"]


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
        rs = replace(rs, class_names=check.class_names(class_names, rs.classes, "these are rules of a regression"))
    return rs


def branches_of(t: Tree | RuleList) -> tuple[list[tuple[Condition, ...]], list[Any], Any]:
    """Conditions and predictions of the leaves or rules, and the default: None where no row is left to it."""
    if isinstance(t, RuleList):
        predictions = [rule.prediction for rule in t.rules]
        return [rule.conditions for rule in t.rules], predictions, t.default
    leaves, conditions = leaf_conditions(t)
    if t.classes is not None:
        return conditions, list(t.classes[t.value[leaves].argmax(axis=1)]), None
    return conditions, list(t.value[leaves]), None


def named_tree(
    tree: Tree, feature_names: Any, class_names: Any, *, exact: bool = False, digits: int | None = None
) -> NamedTree:
    """The tree with names, the given ones checked."""
    if class_names is not None:
        class_names = check.class_names(class_names, tree.classes, f"the tree was grown by {tree.criterion}")
    names = check.column_names(feature_names, tree.feature_names, tree.n_features)
    return NamedTree(tree, names, class_names, exact=exact, digits=digits)
