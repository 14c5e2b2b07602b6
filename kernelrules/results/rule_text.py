"""Rules as a person writes them: `contact = yes → high-risk`, `2 < B ≤ 4 & A ≤ 2 → Y`, `OTHERWISE → N`.

Text is for reading. By default it says nothing of values that training never showed (missing ones in a column that had
none, levels that did not occur), and thresholds lose the digits that rounding made; `exact` leaves nothing out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["condition_text", "condition_texts", "list_text", "number_text", "prediction_text", "rule_text"]

_DIGITS = 10  # halfway points of numbers with up to eight digits have no more; the rest is rounding
_FEWER_DIGITS = 6  # of predictions, which nothing is compared with
_UNSEEN = -1


def number_text(number: float, *, exact: bool = False, digits: int = _DIGITS) -> str:
    """The number to so many digits, and at least to one after the point; with `exact` the number itself."""
    number = float(number)
    before_point = len(str(int(abs(number)))) if abs(number) < 1e15 else 17
    rounded = number if exact else float(f"{number:.{max(digits, before_point + 1)}g}")
    if math.isfinite(rounded):
        number = rounded
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)


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
        text = _interval_text(name, condition.low, condition.high, exact=exact)
    return f"{text} or missing" if condition.missing and says_missing else text


def _interval_text(name: str, low: float, high: float, *, exact: bool) -> str:
    below, above = number_text(low, exact=exact), number_text(high, exact=exact)
    if below == above and low < high:
        below, above = number_text(low, exact=True), number_text(high, exact=True)
    if low == -math.inf:
        return f"{name} ≤ {above}"
    if high == math.inf:
        return f"{name} > {below}"
    return f"{below} < {name} ≤ {above}"


def _levels_text(name: str, levels: Any, codes: tuple[int, ...], *, exact: bool) -> str:
    """The levels that satisfy it, or those that do not, whichever are fewer."""
    inside = [code for code in codes if code != _UNSEEN]
    outside = sorted(set(range(len(levels))) - set(inside))
    unseen = _UNSEEN in codes
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
