"""Input of the exporters: a tree or rule list with its names, and the conditions of its leaves or rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelrules import check
from kernelrules.results import Condition, RuleList, Tree
from kernelrules.results.linear import leaf_prediction
from kernelrules.results.tree_text import NamedTree
from kernelrules.tree.paths import leaf_conditions

__all__ = ["branches_of", "named_list", "named_tree", "require_tree_or_rules"]


def require_tree_or_rules(t: Any) -> Any:
    """Return the tree or rule list; raise TypeError if it is neither."""
    if not isinstance(t, (Tree, RuleList)):
        raise TypeError(f"t must be a Tree or a RuleList, got {type(t).__name__}")
    return t


def named_list(rs: RuleList, feature_names: Any, class_names: Any) -> RuleList:
    """Return the list with the given names."""
    if feature_names is not None:
        rs = replace(rs, feature_names=check.names(feature_names, rs.n_features, "feature_names", "columns"))
    if class_names is not None:
        rs = replace(rs, class_names=check.class_names(class_names, rs.classes, "these are rules of a regression"))
    return rs


def branches_of(t: Tree | RuleList) -> tuple[list[tuple[Condition, ...]], list[Any], Any]:
    """Return the conditions and predictions of the leaves or rules, and the default, None for a tree."""
    if isinstance(t, RuleList):
        predictions = [rule.prediction for rule in t.rules]
        return [rule.conditions for rule in t.rules], predictions, t.default
    leaves, conditions = leaf_conditions(t)
    if t.classes is not None:
        return conditions, list(t.classes[t.value[leaves].argmax(axis=1)]), None
    if t.linear is not None:
        return conditions, [leaf_prediction(t, leaf) for leaf in leaves.tolist()], None
    return conditions, list(t.value[leaves]), None


def named_tree(
    tree: Tree, feature_names: Any, class_names: Any, *, exact: bool = False, digits: int | None = None
) -> NamedTree:
    """Return the tree with names, after checking those given."""
    if class_names is not None:
        class_names = check.class_names(class_names, tree.classes, f"the tree was grown by {tree.criterion}")
    names = check.column_names(feature_names, tree.feature_names, tree.n_features)
    return NamedTree(tree, names, class_names, exact=exact, digits=digits)
