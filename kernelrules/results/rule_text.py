"""Rules as a person writes them: `contact = yes → high-risk`, `2 < B ≤ 4 & A ≤ 2 → Y`, `OTHERWISE → N`.

Text is for reading. By default it says nothing of values that training never showed (missing ones in a column that had
none, levels that did not occur), and thresholds lose the digits that rounding made; `exact` leaves nothing out. Where
ten digits say too little, there are more: of a decimal that has a few more, and of thresholds that lie close together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

__all__ = [
    "UNSEEN",
    "condition_text",
    "condition_texts",
    "digits_needed",
    "list_text",
    "number_text",
    "prediction_text",
    "rule_text",
]

_DIGITS = 10  # halfway points of numbers with up to eight digits have no more; the rest is rounding
_MOST_DIGITS, _A_FEW_ULP = 13, 4  # so many if the number is then told but for rounding
_OF_GAP = 3  # digits of the distance to the next threshold of the column that are told at least
_FEWER_DIGITS = 6  # of predictions, which nothing is compared with
UNSEEN = -1  # the code, in `Condition.categories`, of any level that the training data did not have


_digits: WeakKeyDictionary[Any, dict[tuple[int, float], int]] = WeakKeyDictionary()  # of thresholds of lists


def number_text(number: float, *, exact: bool = False, digits: int = _DIGITS) -> str:
    """The number to so many digits, and at least to one after the point; with `exact` the number itself."""
    number = float(number)
    before_point = len(str(int(abs(number)))) if abs(number) < 1e15 else 17
    rounded = number if exact else _rounded(number, max(digits, before_point + 1), digits >= _DIGITS)
    if math.isfinite(rounded):
        number = rounded
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)


def _rounded(number: float, digits: int, decimals: bool) -> float:
    """To so many digits; if asked, to a few more where nothing but rounding then is left out."""
    near = _A_FEW_ULP * math.ulp(number) if math.isfinite(number) else 0.0
    for more in range(digits, _MOST_DIGITS + 1) if decimals else ():
        rounded = float(f"{number:.{more}g}")
        if abs(rounded - number) <= near:
            return rounded
    return float(f"{number:.{digits}g}")


def digits_needed(thresholds: Iterable[tuple[int, float]], digits: int = _DIGITS) -> dict[tuple[int, float], int]:
    """For (column, threshold) with another one so close to it that it takes more digits to tell how far: how many."""
    by_column: dict[int, set[float]] = {}
    for column, threshold in thresholds:
        if math.isfinite(threshold):
            by_column.setdefault(column, set()).add(threshold)
    found = {}
    for column, different in by_column.items():
        ascending = np.array(sorted(different))
        size = np.maximum(np.abs(ascending[1:]), np.abs(ascending[:-1]))
        gaps = np.concatenate([[1.0], ascending[1:] / size - ascending[:-1] / size, [1.0]])
        nearest = np.maximum(np.minimum(gaps[1:], gaps[:-1]), np.finfo(float).eps / 2)
        needed = np.minimum(np.ceil(-np.log10(nearest)).astype(int) + _OF_GAP, 17)
        close = needed > digits
        found.update(((column, at), n) for at, n in zip(ascending[close].tolist(), needed[close].tolist(), strict=True))
    return found


def _digits_of(rules: Any) -> dict[tuple[int, float], int]:
    """What the thresholds of a list need (or of whatever else has names, and knows it)."""
    if not hasattr(rules, "rules"):
        return rules.digits
    if rules not in _digits:
        conditions = (condition for rule in rules.rules for condition in rule.conditions)
        _digits[rules] = digits_needed((c.feature, limit) for c in conditions for limit in (c.low, c.high))
    return _digits[rules]


def condition_text(condition: Any, rules: Any, *, exact: bool = False) -> str:
    """A condition in words, with the names of a rule list."""
    name, levels = rules.feature_names[condition.feature], rules.levels[condition.feature]
    if condition.only_missing:
        return f"{name} is missing"
    if condition.only_known:
        return f"{name} is known"
    says_missing = exact or rules.missing_seen is None or bool(rules.missing_seen[condition.feature])
    if condition.categories is not None:
        text = _levels_text(name, levels, condition.categories, exact=exact)
    else:
        digits = _digits_of(rules)
        low, high = (
            number_text(limit, exact=exact, digits=digits.get((condition.feature, limit), _DIGITS))
            for limit in (condition.low, condition.high)
        )
        text = _interval_text(name, condition, low, high)
    return f"{text} or missing" if condition.missing and says_missing else text


def _interval_text(name: str, condition: Any, low: str, high: str) -> str:
    if condition.low == -math.inf:
        return f"{name} ≤ {high}"
    if condition.high == math.inf:
        return f"{name} > {low}"
    return f"{low} < {name} ≤ {high}"


def _levels_text(name: str, levels: Any, codes: tuple[int, ...], *, exact: bool) -> str:
    """The levels that satisfy it, or those that do not, whichever are fewer."""
    inside = [code for code in codes if code != UNSEEN]
    outside = sorted(set(range(len(levels))) - set(inside))
    unseen = UNSEEN in codes
    negative = unseen if exact else (unseen and len(outside) < len(inside)) or not inside
    named = [str(levels[code]) for code in (outside if negative else inside)]
    if not named:
        return f"{name} is known" if negative else f"{name} is one of no levels"
    if len(named) == 1:
        return f"{name} {'≠' if negative else '='} {named[0]}"
    return f"{name} {'not in' if negative else 'in'} {{{', '.join(named)}}}"


def condition_texts(rule: Any, rules: Any, *, exact: bool = False) -> list[str]:
    """The conditions of a rule in words; one with an `or` stands in brackets where there are others."""
    texts = [condition_text(condition, rules, exact=exact) for condition in rule.conditions]
    return texts if len(texts) < 2 else [f"({text})" if text.endswith(" or missing") else text for text in texts]


def prediction_text(prediction: Any, rules: Any, *, exact: bool = False) -> str:
    """What is predicted: the name of a class, a number, or several."""
    if rules.classes is not None:
        place = np.flatnonzero(rules.classes == prediction)
        names = rules.class_names
        return str(prediction) if names is None or len(place) == 0 else names[place[0]]
    if np.ndim(prediction):
        return f"({', '.join(number_text(number, exact=exact, digits=_FEWER_DIGITS) for number in prediction)})"
    return number_text(prediction, exact=exact, digits=_FEWER_DIGITS)


def rule_text(rule: Any, rules: Any, *, exact: bool = False) -> str:
    """A rule in a line."""
    when = " & ".join(condition_texts(rule, rules, exact=exact)) or "ALWAYS"
    return f"{when} → {prediction_text(rule.prediction, rules, exact=exact)}"


def list_text(rules: Any, *, exact: bool = False) -> str:
    """One rule a line; OTHERWISE stands last where it can be needed."""
    lines = [rule_text(rule, rules, exact=exact) for rule in rules.rules]
    if not rules.complete:
        lines.append(f"OTHERWISE → {prediction_text(rules.default, rules, exact=exact)}")
    return "\n".join(lines)
