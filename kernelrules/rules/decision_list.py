"""rules.decision_list: the rules of a tree as an ordered list with a default, which answers the same with fewer
conditions.

Rules that exclude one another and leave nothing out may be put in any order. In an order, a rule may lose a condition
if what it then covers besides is covered by the rules before it, that is, meets none of the rules after it; and all
rules of one prediction, put last, are the default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules.matching import require_rules

__all__ = ["decision_list"]

_ORDERS = ("short", "support", "confidence", "given")


def decision_list(rs: RuleList, *, order: str = "short") -> RuleList:
    """Order the rules of a tree, so that conditions which earlier rules imply are left out, and end with OTHERWISE.

    Predictions stay the same for every row, and so do the rows that each rule answers for. The default stands for all
    rules of one prediction: of that whose rules have the most conditions.

    Parameters
    ----------
    rs : RuleList
        From `extract`. An ordered list is returned as it is. Of a part of a list, which leaves rows to the default,
        rules are only ordered, and the default's own left out.
    order : "short", "support", "confidence" or "given"
        What comes first: rules of few conditions, those that cover much, those that are sure, or the order they have.

    Returns
    -------
    RuleList
        Ordered.

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
        boxes = _Boxes([*others, *last], rs)
        others = [replace(rule, conditions=_needed(rule.conditions, place, boxes)) for place, rule in enumerate(others)]
    shares = _mixed(last, rs)
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
    """The prediction whose rules have the most conditions, the first of equals."""
    lengths: dict[Any, list[Any]] = {}
    for rule in rs.rules:
        key = tuple(rule.prediction) if np.ndim(rule.prediction) else rule.prediction
        entry = lengths.setdefault(key, [0, rule.prediction])
        entry[0] += len(rule.conditions)
    return max(lengths.values(), key=lambda entry: entry[0])[1]


def _mixed(last: list[Rule], rs: RuleList) -> np.ndarray | None:
    """Shares of the classes among the rows of the default."""
    weights = np.array([rule.weight for rule in last])
    if rs.classes is None or not rs.complete or not weights.any():
        return rs.default_shares
    return np.average([rule.shares for rule in last], axis=0, weights=weights)


class _Boxes:
    """What the rules of a list cover, as arrays: an interval of each column asked for, its levels, missing values."""

    def __init__(self, rules: list[Rule], rs: RuleList) -> None:
        asked = sorted({condition.feature for rule in rules for condition in rule.conditions})
        self.place = {column: place for place, column in enumerate(asked)}
        shape = (len(rules), len(asked))
        named = {column: rs.levels[column] for column in asked if rs.levels[column] is not None}
        n_levels = sum(len(levels) + 1 for levels in named.values())
        check.fits_memory((len(rules), 17 * len(asked) + n_levels), np.uint8, "what the rules cover")
        self.low, self.high = np.full(shape, -np.inf), np.full(shape, np.inf)
        self.missing = np.ones(shape, dtype=bool)
        self.levels = {column: np.ones((len(rules), len(levels) + 1), dtype=bool) for column, levels in named.items()}
        for i, rule in enumerate(rules):
            for condition in rule.conditions:
                column = self.place[condition.feature]
                self.low[i, column], self.high[i, column] = condition.low, condition.high
                self.missing[i, column] = condition.missing
                if condition.categories is not None:
                    levels = self.levels[condition.feature]
                    levels[i] = False
                    levels[i, np.array(condition.categories, dtype=np.int64) + 1] = True

    def meet(self, condition: Condition, place: int) -> np.ndarray:
        """Which of the rules after a place can hold together with a condition."""
        column, after = self.place[condition.feature], slice(place + 1, None)
        together = self.missing[after, column] & condition.missing
        if condition.categories is not None:
            codes = np.array(condition.categories, dtype=np.int64) + 1
            return together | self.levels[condition.feature][after][:, codes].any(axis=1)
        low = np.maximum(self.low[after, column], condition.low)
        return together | (low < np.minimum(self.high[after, column], condition.high))


def _needed(conditions: tuple[Condition, ...], place: int, boxes: _Boxes) -> tuple[Condition, ...]:
    """The conditions without those that the rules before imply, looked at from the first on."""
    meets = {condition: boxes.meet(condition, place) for condition in conditions}
    kept = list(conditions)
    for condition in conditions:
        others = [meets[other] for other in kept if other is not condition]
        apart = not np.logical_and.reduce(others).any() if others else boxes.low.shape[0] == place + 1
        if apart:
            kept.remove(condition)
    return tuple(kept)
