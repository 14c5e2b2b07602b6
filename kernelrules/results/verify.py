"""Checks of a tree or rule list that comes from a document or a file: types, lengths and ranges of every field.

Values are not checked for plausibility: a leaf may predict any number. But no index points outside of its array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules.core.tree import predict
from kernelrules.core.tree.criteria import NUMBER_CRITERIA
from kernelrules.results import Condition, LinearFunction, Rule, RuleList, Tree

__all__ = [
    "require_array",
    "require_condition",
    "require_function",
    "require_levels",
    "require_names",
    "verified_rules",
    "verified_tree",
]


_TREE_MISSING = ("extra", "zero", "impute", "surrogate", "fractional", "error")  # treatments of missing values


def verified_tree(tree: Tree) -> Tree:
    """Return the tree; raise ValueError if its fields are inconsistent."""
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
        _require(k > 0, "there are no classes")
        shape: tuple[int | None, ...] = (n, k)
    else:
        shape = (n,) if np.ndim(tree.value) == 1 and tree.n_outputs == 1 else (n, tree.n_outputs)
    require_array(tree.value, "value", "f", shape)
    known = tree.classes is not None or tree.criterion in NUMBER_CRITERIA
    _require(known, f"a tree of numbers has no criterion {tree.criterion!r:.60}")
    for name, kinds, wanted in (
        ("fill", "f", (p,)),
        ("directions", "f", (None, p)),
        ("linear", "f", (n, p + 1)),
        ("missing_seen", "b", (p,)),
        ("indicators", "b", (p,)),
    ):
        if getattr(tree, name) is not None:
            require_array(getattr(tree, name), name, kinds, wanted)
    if tree.surrogates is not None:
        stand_ins = len(require_array(tree.surrogates.feature, "feature of the surrogates", "i"))
        require_array(tree.surrogates.below_left, "below_left of the surrogates", "b", (stand_ins,))
        require_array(tree.surrogates.agreement, "agreement of the surrogates", "f", (stand_ins,))
    predict.Nodes(tree)  # checks children and columns
    _require_order(tree)
    _require_splits(tree, tree.feature, tree.subset_start, tree.threshold, "node")
    _require_missing(tree)
    return tree


def _require_order(tree: Tree) -> None:
    """Raise ValueError if nodes are not in depth-first order, or leaves have a part of a split."""
    inner = np.flatnonzero(tree.left >= 0)
    leaves = np.flatnonzero(tree.left < 0)
    beside = np.array_equal(tree.left[inner], inner + 1)
    if not beside or any((column[leaves] != -1).any() for column in (tree.feature, tree.left, tree.right)):
        raise ValueError("the tree's arrays do not describe a tree whose nodes are in depth-first order")


def _require_splits(tree: Any, feature: np.ndarray, subset_start: np.ndarray, threshold: np.ndarray, what: str) -> None:
    """Raise ValueError for flags of levels on a column of numbers, or thresholds that are NaN."""
    # columns of categories, but neither leaves (-1) nor directions (n_features on)
    by_level = np.array([levels is not None for levels in tree.categories] + [False])[
        np.where((feature < 0) | (feature > tree.n_features), tree.n_features, feature)
    ]
    wrong = np.flatnonzero((subset_start >= 0) != by_level)
    _require(not len(wrong), f"{what} {wrong[:1]} must have flags of levels if it splits on categories, and only then")
    wrong = np.flatnonzero((feature >= 0) & ~by_level & np.isnan(threshold))
    _require(not len(wrong), f"{what} {wrong[:1]} has a threshold that is no number")


def _require_missing(tree: Tree) -> None:
    """Raise ValueError if a treatment of missing values lacks its data."""
    _require(
        tree.missing in _TREE_MISSING, f"missing must be one of {', '.join(_TREE_MISSING)}, got {tree.missing!r:.60}"
    )
    _require(
        tree.fill is not None or tree.missing not in ("zero", "impute"), "there is nothing to replace missing values"
    )
    if tree.fill is not None:
        n_levels = [np.inf if levels is None else max(len(levels), 1) for levels in tree.categories]
        within = np.isfinite(tree.fill) & (tree.fill < n_levels) & ((tree.fill >= 0) | np.isinf(n_levels))
        _require(within.all(), "fill must be finite, and codes of levels for categories")
    if tree.surrogates is not None:
        _require(tree.missing == "surrogate", f'surrogates are for missing="surrogate", not for {tree.missing!r}')
        s = tree.surrogates
        _require_splits(tree, s.feature, s.subset_start, s.threshold, "surrogate")


def verified_rules(rs: RuleList) -> RuleList:
    """Return the list; raise ValueError if its fields are inconsistent."""
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
    for name in ("missing_seen", "indicators"):
        if getattr(rs, name) is not None:
            require_array(getattr(rs, name), name, "b", (p,))
    if rs.classes is not None:
        require_names(rs.class_names, "class_names", len(require_array(rs.classes, "classes", "", (None,))))
    elif rs.class_names is not None:
        raise ValueError("class_names are for classes, and it has none")
    for name, shape in (("directions", (None, p)), ("fill", (p,))):
        if getattr(rs, name) is not None:
            require_array(getattr(rs, name), name, "f", shape)
    _answer(rs, rs.default, rs.default_shares, "the default")
    for place, rule in enumerate(rs.rules):
        _rule(rs, rule, f"rule {place}")
    return rs


def _rule(rs: RuleList, rule: Rule, which: str) -> None:
    _answer(rs, rule.prediction, rule.shares, which)
    for condition in rule.conditions:
        require_condition(rs, condition, which)


def require_condition(rs: Any, condition: Condition, which: str) -> None:
    """Raise ValueError for a condition on a column or level out of range."""
    column, codes = condition.feature, condition.categories
    directions = getattr(rs, "directions", None)
    n_columns = rs.n_features + (0 if directions is None else len(directions))
    if not 0 <= column < n_columns:
        raise ValueError(f"{which} has a condition on column {column}, but there are {n_columns}")
    if codes is None:
        if condition.low != condition.low or condition.high != condition.high:
            raise ValueError(f"{which} has a limit of column {column} that is no number")
        return
    if column >= rs.n_features or rs.levels[column] is None:
        raise ValueError(f"{which} has a condition on categories of column {column}, which has no levels")
    outside = [code for code in codes if not -1 <= code < len(rs.levels[column])]
    if outside:
        raise ValueError(
            f"{which} has the code {outside[0]} of column {column}, which has {len(rs.levels[column])} levels"
        )


def _answer(rs: RuleList, prediction: Any, shares: Any, which: str) -> None:
    """Raise ValueError unless the prediction is a class of the list, or numbers."""
    if rs.classes is not None:
        if np.ndim(prediction) or not np.any(rs.classes == prediction):
            raise ValueError(f"{which} predicts {prediction!r}, which is none of the classes")
        if shares is not None:
            require_array(shares, f"shares of {which}", "f", (len(rs.classes),))
    elif isinstance(prediction, LinearFunction) and rs.n_outputs == 1:
        _function(rs, prediction, which)
    elif rs.n_outputs > 1:
        require_array(prediction, f"prediction of {which}", "f", (rs.n_outputs,))
    elif isinstance(prediction, (bool, np.bool_)) or not isinstance(prediction, (int, float, np.integer, np.floating)):
        raise ValueError(f"{which} predicts {prediction!r}, which is not a number")


def _function(rs: RuleList, function: LinearFunction, which: str) -> None:
    """Raise ValueError for a linear function of columns out of range, or of categories."""
    require_function(function)
    for column in function.features:
        if not 0 <= column < rs.n_features or rs.levels[column] is not None:
            raise ValueError(f"{which} predicts a function of column {column}, which is no column of numbers")


def require_function(function: LinearFunction) -> None:
    """Raise ValueError if the columns of a linear function are not ascending, or lack coefficients."""
    features = function.features
    if list(features) != sorted(set(features)) or len(features) != len(function.coefficients):
        raise ValueError("a linear function must have ascending features and a coefficient for each of them")


# ---- fields -----------------------------------------------------------------------------------------------------


def _require(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(what)


def require_array(given: Any, name: str, kinds: str, shape: tuple[int | None, ...] = (None,)) -> np.ndarray:
    """Return the field if it is an array of these dtype kinds (any: "") and of this shape (any length: None)."""
    if not isinstance(given, np.ndarray):
        raise ValueError(f"{name} must be an array, got {given!r}")
    same = given.ndim == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, given.shape, strict=True)
    )
    if not same:
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"its arrays differ in length: {name} has shape {given.shape}, not ({expected})")
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
    """Raise ValueError unless given None or n strings."""
    if given is None:
        return
    if not isinstance(given, tuple) or len(given) != n or not all(isinstance(entry, str) for entry in given):
        raise ValueError(f"{name} must be {n} strings")


def require_levels(given: Any, name: str, p: int) -> None:
    """Raise ValueError unless there is None or an array of levels for each of p columns."""
    if not isinstance(given, tuple) or len(given) != p:
        raise ValueError(f"{name} must have an entry for each of {p} columns")
    for column, levels in enumerate(given):
        if levels is not None:
            require_array(levels, f"{name} of column {column}", "", (None,))
