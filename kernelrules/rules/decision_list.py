"""rules.decision_list: the rules of a tree as an ordered list with a default: the same predictions, fewer conditions.

Rules that are disjoint and cover everything may be put in any order. In an ordered list, a rule may lose a condition if
the rows that it then covers in addition are covered by the rules before it, that is, if it meets no rule after it. All
rules of one prediction, put last, become the default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.rules.box_overlap import BoxHierarchy, ConditionKind
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules.linear_sums import all_levels
from kernelrules.rules.matcher import require_rules

__all__ = ["decision_list"]

_ORDERS = ("short", "support", "confidence", "given")


@parallel.reports("rules")
def decision_list(rs: RuleList, *, order: str = "short", callback: Any = None, progress: bool = False) -> RuleList:
    """Order the rules of a tree into a decision list [1]_, without the conditions that earlier rules imply.

    Predictions stay the same for every row, and so do the rows for which each rule holds first. The default, OTHERWISE,
    replaces all rules of one prediction: of the one whose rules have the most conditions.

    Parameters
    ----------
    rs : RuleList
        From `extract`. An ordered list is returned unchanged. If the list is a part of one, which leaves rows to the
        default, its rules are only ordered, and those of the default dropped.
    order : "short", "support", "confidence" or "given"
        What comes first: rules with few conditions, with large support, with high confidence, or the given order.
    {callback}
        Progress is counted in rules.
    {progress}

    Returns
    -------
    RuleList
        An ordered list.

    References
    ----------
    .. [1] R. L. Rivest, "Learning decision lists", Machine Learning 2(3), 1987.

    Examples
    --------
    >>> from kernelrules import rules, tree
    >>> X = [["yes", 20], ["no", 30], ["no", 50], ["yes", 60]]
    >>> t = tree.grow(X, ["high", "low", "medium", "high"])
    >>> print(rules.decision_list(rules.extract(t, ["contact", "age"])))
    contact = yes → high
    age > 40 → medium
    OTHERWISE → low
    """
    require_rules(rs)
    check.one_of(order, "order", *_ORDERS)
    if rs.ordered or not rs.rules:
        return rs
    default = _longest_prediction(rs) if rs.complete else rs.default
    last = [rule for rule in rs.rules if np.array_equal(rule.prediction, default)]
    others = _sorted([rule for rule in rs.rules if not np.array_equal(rule.prediction, default)], order)
    if rs.complete:
        others = _without_implied(others, last, rs, parallel.ticker(callback, "rules"))
    shares = _default_shares(last, rs)
    return replace(rs, rules=tuple(others), default=default, default_shares=shares, ordered=True, complete=False)


def _sorted(rules: list[Rule], order: str) -> list[Rule]:
    keys = {
        "short": lambda rule: (len(rule.conditions), -rule.support),
        "support": lambda rule: -rule.support,
        "confidence": lambda rule: (-rule.confidence if rule.confidence == rule.confidence else 0.0, -rule.support),
        "given": lambda rule: 0,
    }
    return sorted(rules, key=keys[order])


def _longest_prediction(rs: RuleList) -> Any:
    """Return the prediction whose rules have the most conditions; of ties the first."""
    lengths: dict[Any, list[Any]] = {}
    for rule in rs.rules:
        key = tuple(rule.prediction) if np.ndim(rule.prediction) else rule.prediction
        entry = lengths.setdefault(key, [0, rule.prediction])
        entry[0] += len(rule.conditions)
    return max(lengths.values(), key=lambda entry: entry[0])[1]


def _default_shares(last: list[Rule], rs: RuleList) -> np.ndarray | None:
    """Return the shares of the classes among the rows of the default."""
    weights = np.array([rule.weight for rule in last])
    if rs.classes is None or not rs.complete or not weights.any():
        return rs.default_shares
    return np.average([rule.shares for rule in last], axis=0, weights=weights)


def _without_implied(others: list[Rule], last: list[Rule], rs: RuleList, tick: Any) -> list[Rule]:
    """Drop the conditions of each rule that the rules before it imply, from the first rule on."""
    place = {id(rule): number for number, rule in enumerate([*others, *last])}
    layout = _BoxLayout(rs)
    # Boxes are in the order of the given list: neighbours in the tree are neighbours there, and hulls are small.
    boxes = layout.boxes(rs.rules, np.array([place[id(rule)] for rule in rs.rules], dtype=np.int64))
    listed = [condition for rule in others for condition in rule.conditions]
    start = np.append(0, np.cumsum([len(rule.conditions) for rule in others], dtype=np.int64))
    kept = np.ones(len(listed), dtype=np.uint8)
    boxes.drop_unneeded(start, *layout.read(listed), kept, tick)
    stays = iter(kept.tolist())
    return [replace(rule, conditions=tuple(c for c in rule.conditions if next(stays))) for rule in others]


class _BoxLayout:
    """The columns that rules use, and the places of the flags of their levels."""

    def __init__(self, rs: RuleList) -> None:
        used = sorted({condition.feature for rule in rs.rules for condition in rule.conditions})
        self.place = {column: place for place, column in enumerate(used)}
        of_columns = all_levels(rs)  # sums count as independent columns, which may keep more conditions than necessary
        self.flags: dict[int, slice] = {}
        self.n_levels = 0
        for column in used:
            levels = of_columns[column]
            if levels is not None:
                self.flags[column] = slice(self.n_levels, self.n_levels + len(levels) + 1)
                self.n_levels += len(levels) + 1  # one flag for unseen levels
        n_bytes = 17 * len(used) + self.n_levels  # two limits and a flag per column
        check.fits_memory((2 * len(rs.rules), n_bytes), np.uint8, "the boxes of the rules")

    def read(self, conditions: list[Condition]) -> tuple[np.ndarray, ...]:
        """Return the columns, bounds and kinds of the conditions, the first code of each, and the codes."""
        column = np.array([self.place[c.feature] for c in conditions], dtype=np.int64)
        bounds = np.array([[c.low for c in conditions], [c.high for c in conditions]], dtype=np.float64).T.copy()
        missing = np.array([c.missing for c in conditions], dtype=bool)
        named = np.array([c.categories is not None for c in conditions], dtype=bool)
        kind = (ConditionKind.MISSING * missing + ConditionKind.LEVELS * named).astype(np.uint8)
        code_start = np.zeros(len(conditions) + 1, dtype=np.int64)
        codes: list[int] = []
        for k in np.flatnonzero(kind & ConditionKind.LEVELS).tolist():
            first = self.flags[conditions[k].feature].start + 1  # the code of unseen levels is -1
            codes += [first + code for code in conditions[k].categories or ()]
            code_start[k + 1] = len(conditions[k].categories or ())
        return column, bounds, kind, np.cumsum(code_start), np.array(codes, dtype=np.int64)

    def boxes(self, rules: tuple[Rule, ...], place: np.ndarray) -> BoxHierarchy:
        """Return the boxes of the rules, and their hulls."""
        m, listed = len(rules), [condition for rule in rules for condition in rule.conditions]
        shape = (2 * m, max(len(self.place), 1))
        intervals = np.empty((*shape, 2))
        low, high = intervals[..., 0], intervals[..., 1]
        low[:], high[:] = -np.inf, np.inf
        missing = np.ones(shape, dtype=np.uint8)
        levels = np.ones((2 * m, self.n_levels), dtype=np.uint8)
        latest = np.empty(2 * m, dtype=np.int64)
        box = m + np.repeat(np.arange(m), [len(rule.conditions) for rule in rules])
        column, bounds, kind, code_start, codes = self.read(listed)
        np.maximum.at(low, (box, column), bounds[:, 0])
        np.minimum.at(high, (box, column), bounds[:, 1])
        np.minimum.at(missing, (box, column), kind & ConditionKind.MISSING)
        for k in np.flatnonzero(kind & ConditionKind.LEVELS).tolist():
            named = np.zeros(self.n_levels, dtype=np.uint8)
            named[codes[code_start[k] : code_start[k + 1]]] = 1
            here = self.flags[listed[k].feature]
            levels[box[k], here] &= named[here]
        latest[m:] = place
        end = m
        while end > 1:  # one level of the hierarchy at a time, from the boxes up
            nodes = np.arange((end + 1) // 2, end)
            one, two = 2 * nodes, 2 * nodes + 1
            low[nodes], high[nodes] = np.minimum(low[one], low[two]), np.maximum(high[one], high[two])
            missing[nodes], levels[nodes] = missing[one] | missing[two], levels[one] | levels[two]
            latest[nodes] = np.maximum(latest[one], latest[two])
            end = (end + 1) // 2
        return BoxHierarchy(intervals, missing, levels, latest)
