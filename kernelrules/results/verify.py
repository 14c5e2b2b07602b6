"""What must hold of a tree or a rule list that comes from outside, from a document or a file: types, lengths and ranges
of every field.

Numbers are not judged: a document may say that a leaf predicts 7. But nothing in it points outside of its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules.core import walk
from kernelrules.results import Condition, Rule, RuleList, Tree

__all__ = [
    "require_array",
    "require_condition",
    "require_levels",
    "require_names",
    "verified_rules",
    "verified_tree",
]


def verified_tree(tree: Tree) -> Tree:
    """The tree, if its fields belong together; ValueError says what does not."""
    _counts(tree, ("n_features", "n_outputs"), 1)
    _counts(tree, ("n_train",), 0)
    _texts(tree, ("criterion", "missing"))
    n, p = len(require_array(tree.feature, "feature", "i")), tree.n_features
    for name, kinds in (("gain", "f"), ("impurity", "f"), ("weight", "f"), ("n_samples", "iuf"), ("missing_left", "b")):
        require_array(getattr(tree, name), name, kinds, (n,))
    require_array(tree.subset_left, "subset_left", "u", (None,))
    require_levels(tree.categories, "categories", p)
    require_names(tree.feature_names, "feature_names", p)
    if tree.classes is not None:
        k = len(require_array(tree.classes, "classes", "", (None,)))
        shape: tuple[int | None, ...] = (n, k)
    else:
        shape = (n,) if np.ndim(tree.value) == 1 and tree.n_outputs == 1 else (n, tree.n_outputs)
    require_array(tree.value, "value", "f", shape)
    for name, kinds, wanted in (
        ("fill", "f", (p,)),
        ("directions", "f", (None, p)),
        ("linear", "f", (n, p + 1)),
        ("missing_seen", "b", (p,)),
    ):
        if getattr(tree, name) is not None:
            require_array(getattr(tree, name), name, kinds, wanted)
    if tree.surrogates is not None:
        stand_ins = len(require_array(tree.surrogates.feature, "feature of the surrogates", "i"))
        require_array(tree.surrogates.below_left, "below_left of the surrogates", "b", (stand_ins,))
        require_array(tree.surrogates.agreement, "agreement of the surrogates", "f", (stand_ins,))
    walk.Nodes(tree)  # looks through what nodes point to
    _require_order(tree)
    return tree


def _require_order(tree: Tree) -> None:
    """Refuse nodes that are not in depth-first order, and leaves with half a split."""
    inner = np.flatnonzero(tree.left >= 0)
    leaves = np.flatnonzero(tree.left < 0)
    beside = np.array_equal(tree.left[inner], inner + 1)
    if not beside or any((column[leaves] != -1).any() for column in (tree.feature, tree.left, tree.right)):
        raise ValueError("the tree's arrays do not describe a tree whose nodes are in depth-first order")


def verified_rules(rs: RuleList) -> RuleList:
    """The list, if its fields belong together; ValueError says what does not."""
    _counts(rs, ("n_features", "n_outputs"), 1)
    _counts(rs, ("n_train",), 0)
    _texts(rs, ("missing",))
    for name in ("ordered", "complete"):
        if not isinstance(getattr(rs, name), bool):
            raise ValueError(f"{name} must be true or false, got {getattr(rs, name)!r}")
    p = rs.n_features
    require_levels(rs.levels, "levels", p)
    require_names(rs.columns, "columns", p)
    if rs.feature_names is None:
        raise ValueError(f"feature_names must be {p} strings, got None")
    require_names(rs.feature_names, "feature_names", p)
    if rs.missing_seen is not None:
        require_array(rs.missing_seen, "missing_seen", "b", (p,))
    if rs.classes is not None:
        require_names(rs.class_names, "class_names", len(require_array(rs.classes, "classes", "", (None,))))
    elif rs.class_names is not None:
        raise ValueError("class_names are for classes, and it has none")
    _answer(rs, rs.default, rs.default_shares, "the default")
    for place, rule in enumerate(rs.rules):
        _rule(rs, rule, f"rule {place}")
    return rs


def _rule(rs: RuleList, rule: Rule, which: str) -> None:
    _answer(rs, rule.prediction, rule.shares, which)
    for condition in rule.conditions:
        require_condition(rs, condition, which)


def require_condition(rs: Any, condition: Condition, which: str) -> None:
    """Refuse a condition on a column or a level that there is not, by the list's n_features and levels."""
    column, codes = condition.feature, condition.categories
    if not 0 <= column < rs.n_features:
        raise ValueError(f"{which} asks for column {column}, and there are {rs.n_features}")
    if codes is None:
        if condition.low != condition.low or condition.high != condition.high:
            raise ValueError(f"{which} has a limit of column {column} that is no number")
        return
    if rs.levels[column] is None:
        raise ValueError(f"{which} takes column {column} for categories, and it has no levels")
    outside = [code for code in codes if not -1 <= code < len(rs.levels[column])]
    if outside:
        raise ValueError(
            f"{which} has the code {outside[0]} of column {column}, which has {len(rs.levels[column])} levels"
        )


def _answer(rs: RuleList, prediction: Any, shares: Any, which: str) -> None:
    """A class of the list, with shares or without; or numbers."""
    if rs.classes is not None:
        if np.ndim(prediction) or not np.any(rs.classes == prediction):
            raise ValueError(f"{which} predicts {prediction!r}, which is none of the classes")
        if shares is not None:
            require_array(shares, f"shares of {which}", "f", (len(rs.classes),))
    elif rs.n_outputs > 1:
        require_array(prediction, f"prediction of {which}", "f", (rs.n_outputs,))
    elif isinstance(prediction, (bool, np.bool_)) or not isinstance(prediction, (int, float, np.integer, np.floating)):
        raise ValueError(f"{which} predicts {prediction!r}, which is not a number")


# ---- fields -----------------------------------------------------------------------------------------------------


def require_array(given: Any, name: str, kinds: str, shape: tuple[int | None, ...] = (None,)) -> np.ndarray:
    """The field, if it is an array of these kinds of numbers (any: "") and of this shape (any length: None)."""
    if not isinstance(given, np.ndarray):
        raise ValueError(f"{name} must be an array, got {given!r}")
    same = given.ndim == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, given.shape, strict=True)
    )
    if not same:
        told = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"its arrays differ in length: {name} has shape {given.shape}, not ({told})")
    if kinds and given.dtype.kind not in kinds:
        raise ValueError(f"{name} has the dtype {given.dtype}")
    return given


def _counts(owner: Any, names: tuple[str, ...], least: int) -> None:
    for name in names:
        number = getattr(owner, name)
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ValueError(f"{name} must be a whole number, at least {least}, got {number!r}")


def _texts(owner: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if not isinstance(getattr(owner, name), str):
            raise ValueError(f"{name} must be a string, got {getattr(owner, name)!r}")


def require_names(given: Any, name: str, n: int) -> None:
    """None, or n strings."""
    if given is None:
        return
    if not isinstance(given, tuple) or len(given) != n or not all(isinstance(entry, str) for entry in given):
        raise ValueError(f"{name} must be {n} strings")


def require_levels(given: Any, name: str, p: int) -> None:
    """For each of p columns None or an array of levels."""
    if not isinstance(given, tuple) or len(given) != p:
        raise ValueError(f"{name} must have an entry for each of {p} columns")
    for column, levels in enumerate(given):
        if levels is not None:
            require_array(levels, f"{name} of column {column}", "", (None,))
