"""Rules as text: `contact = yes → high-risk`, `2 < B ≤ 4 & A ≤ 2 → Y`, `OTHERWISE → N`.

Text is for reading. For truth values and counts in sparse data, it is `shr` and `not shr` instead of `shr > 0.5` and
`shr ≤ 0.5`. By default it omits values absent from training (missing values in a column that had none, unseen levels)
and the digits of thresholds that are rounding; with `exact` it is complete. Numbers have ten digits; decimals with a
few more digits, and thresholds that are close together, have more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kernelrules.results.linear import LinearFunction, fills_splits

__all__ = [
    "UNSEEN",
    "condition_text",
    "condition_texts",
    "digits_needed",
    "list_text",
    "number_text",
    "prediction_text",
    "rule_text",
    "sum_text",
]

_SIGNS = (" & ", "→", "≤", "<", ">", "=", "≠", " in {", " or missing", " is ", "\n")  # of conditions
_DIGITS = 10  # midpoints of numbers with up to eight digits have no more; the rest is rounding
_MAX_DIGITS, _ROUNDING_ULP = 13, 4  # more digits if only rounding is then omitted
_MIN_GAP_DIGITS = 3  # digits of the distance to the next threshold of the column
_PREDICTION_DIGITS = 6  # predictions are not compared with data
UNSEEN = -1  # code of unseen levels in `Condition.categories`


_digits: WeakKeyDictionary[Any, dict[tuple[int, float], int]] = WeakKeyDictionary()  # by list: column, threshold


def number_text(number: float, *, exact: bool = False, digits: int = _DIGITS) -> str:
    """Return a number with `digits` digits and at least one after the point; with `exact` all digits."""
    number = float(number)
    before_point = len(str(int(abs(number)))) if abs(number) < 1e15 else 17
    rounded = number if exact else _rounded(number, max(digits, before_point + 1), digits >= _DIGITS)
    if math.isfinite(rounded):
        number = rounded
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)


def _rounded(number: float, digits: int, decimals: bool) -> float:
    """Round to `digits` digits; with `decimals` to a few more if only rounding is then omitted."""
    near = _ROUNDING_ULP * math.ulp(number) if math.isfinite(number) else 0.0
    for more in range(digits, _MAX_DIGITS + 1) if decimals else ():
        rounded = float(f"{number:.{more}g}")
        if abs(rounded - number) <= near:
            return rounded
    return float(f"{number:.{digits}g}")


def digits_needed(thresholds: Iterable[tuple[int, float]], digits: int = _DIGITS) -> dict[tuple[int, float], int]:
    """Return the number of digits of each (column, threshold) that needs more to be distinct from its neighbours."""
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
        needed = np.minimum(np.ceil(-np.log10(nearest)).astype(int) + _MIN_GAP_DIGITS, 17)
        close = needed > digits
        found.update(((column, at), n) for at, n in zip(ascending[close].tolist(), needed[close].tolist(), strict=True))
    return found


def _digits_of(rules: Any) -> dict[tuple[int, float], int]:
    """Return the digits of the thresholds of a list, or of a named tree, which has them."""
    if not hasattr(rules, "rules"):
        return rules.digits
    if rules not in _digits:
        conditions = (condition for rule in rules.rules for condition in rule.conditions)
        _digits[rules] = digits_needed((c.feature, limit) for c in conditions for limit in (c.low, c.high))
    return _digits[rules]


def condition_text(condition: Any, rules: Any, *, exact: bool = False) -> str:
    """Return a condition as text, with the names of a rule list."""
    name, levels, says_missing = _column_text(condition.feature, rules, exact=exact)
    if condition.only_missing:
        return f"{name} is missing"
    if condition.only_known:
        return f"{name} is known"
    truth = None if exact or not _is_unambiguous(name) else _truth_value(condition, rules)
    if truth is not None:
        text = name if truth else f"not {name}"
    elif condition.categories is not None:
        text = _levels_text(name, levels, condition.categories, exact=exact)
    else:
        digits = _digits_of(rules)
        low, high = (
            number_text(limit, exact=exact, digits=digits.get((condition.feature, limit), _DIGITS))
            for limit in (condition.low, condition.high)
        )
        text = _interval_text(name, condition, low, high)
    return f"{text} or missing" if condition.missing and says_missing else text


def _column_text(column: int, rules: Any, *, exact: bool) -> tuple[str, Any, bool]:
    """Return the name of a column or sum of columns, its levels, and whether text mentions missing values."""
    seen, p = rules.missing_seen, len(rules.feature_names)
    if column < p:
        return rules.feature_names[column], rules.levels[column], exact or seen is None or bool(seen[column])
    direction = rules.directions[column - p]
    used = np.flatnonzero(direction)
    may_miss = not fills_splits(rules) and (exact or seen is None or bool(seen[used].any()))
    return sum_text(used, direction[used], rules.feature_names, exact=exact), None, may_miss


def sum_text(columns: Any, factors: Any, names: Any, *, exact: bool, digits: int = _DIGITS) -> str:
    """Return a sum of columns as text: 0.3·x - 1.2·y."""
    text = ""
    for column, factor in zip(columns, factors, strict=True):
        sign = " + " if factor > 0 else " - "
        text += f"{sign if text else sign.strip(' +')}{number_text(abs(factor), exact=exact, digits=digits)}"
        text += f"·{names[column]}"
    return text


def _is_unambiguous(name: str) -> bool:
    """Return whether a name by itself is an unambiguous condition.

    A column named `not shr` could be the negation of `shr`, and one named `a & b` could be two conditions.
    """
    return bool(name.strip()) and not name.startswith("not ") and not any(sign in name for sign in _SIGNS)


def _truth_value(condition: Any, rules: Any) -> bool | None:
    """Return the only truth value that satisfies a condition; for a count, whether it must be above 0.

    None if the condition is not equivalent to that, or if the column has neither truth values nor counts.
    """
    if condition.feature >= len(rules.feature_names):
        return None
    levels = rules.levels[condition.feature]
    if levels is None:
        if rules.indicators is None or not rules.indicators[condition.feature] or condition.categories is not None:
            return None
        if 0 <= condition.low < 1 and condition.high == math.inf:
            return True
        return False if condition.low == -math.inf and 0 <= condition.high < 1 else None
    if levels.dtype.kind != "b" or condition.categories is None:
        return None
    code = {bool(level): number for number, level in enumerate(levels)}
    holds = [code.get(truth, UNSEEN) in condition.categories for truth in (False, True)]
    return holds[True] if holds[True] != holds[False] else None


def _interval_text(name: str, condition: Any, low: str, high: str) -> str:
    if condition.low == -math.inf:
        return f"{name} ≤ {high}"
    if condition.high == math.inf:
        return f"{name} > {low}"
    return f"{low} < {name} ≤ {high}"


def _levels_text(name: str, levels: Any, codes: tuple[int, ...], *, exact: bool) -> str:
    """Return the levels that satisfy a condition, or those that do not, whichever are fewer."""
    inside = [code for code in codes if code != UNSEEN]
    outside = sorted(set(range(len(levels))) - set(inside))
    unseen = UNSEEN in codes
    negative = unseen if exact else (unseen and len(outside) < len(inside)) or not inside
    named = [str(levels[code]) for code in (outside if negative else inside)]
    if not named:
        return f"{name} is known" if negative else f"{name} in {{}}"
    if len(named) == 1:
        return f"{name} {'≠' if negative else '='} {named[0]}"
    return f"{name} {'not in' if negative else 'in'} {{{', '.join(named)}}}"


def condition_texts(rule: Any, rules: Any, *, exact: bool = False) -> list[str]:
    """Return the conditions of a rule as text; one with an `or` is in brackets if there are others."""
    texts = [condition_text(condition, rules, exact=exact) for condition in rule.conditions]
    return texts if len(texts) < 2 else [f"({text})" if text.endswith(" or missing") else text for text in texts]


def prediction_text(prediction: Any, rules: Any, *, exact: bool = False) -> str:
    """Return a prediction as text: the name of a class, a number, several numbers, or a linear function."""
    if isinstance(prediction, LinearFunction):
        return _function_text(prediction, rules.feature_names, exact=exact)
    if rules.classes is not None:
        place = np.flatnonzero(rules.classes == prediction)
        names = rules.class_names
        return str(prediction) if names is None or len(place) == 0 else names[place[0]]
    if np.ndim(prediction):
        return f"({', '.join(number_text(number, exact=exact, digits=_PREDICTION_DIGITS) for number in prediction)})"
    return number_text(prediction, exact=exact, digits=_PREDICTION_DIGITS)


def _function_text(function: LinearFunction, names: Any, *, exact: bool) -> str:
    text = sum_text(function.features, function.coefficients, names, exact=exact, digits=_PREDICTION_DIGITS)
    constant = number_text(abs(function.constant), exact=exact, digits=_PREDICTION_DIGITS)
    return f"{text} {'-' if function.constant < 0 else '+'} {constant}"


def rule_text(rule: Any, rules: Any, *, exact: bool = False) -> str:
    """Return a rule as a line of text."""
    when = " & ".join(condition_texts(rule, rules, exact=exact)) or "ALWAYS"
    return f"{when} → {prediction_text(rule.prediction, rules, exact=exact)}"


def list_text(rules: Any, *, exact: bool = False) -> str:
    """Return one rule per line, and OTHERWISE last unless some rule always holds."""
    lines = [rule_text(rule, rules, exact=exact) for rule in rules.rules]
    if not rules.complete:
        lines.append(f"OTHERWISE → {prediction_text(rules.default, rules, exact=exact)}")
    return "\n".join(lines)
