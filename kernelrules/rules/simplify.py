"""rules.simplify: post-pruning of rules. Each rule loses the conditions that it does not need; the rest is ordered.

The limits of an interval are two conditions. The accuracy of a rule is that among the rows it covers, whatever the
other rules; its pessimistic estimate is one minus C4.5's upper limit of the error rate (core/rules/simplify.pyx).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from kernelrules import check, exact_weights, parallel
from kernelrules.core.rules.simplify import ROUNDING_RTOL as _ROUNDING_RTOL
from kernelrules.core.rules.simplify import RuleScorer
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules.conditions import compile_conditions, halves, merged, row_masks
from kernelrules.rules.linear_sums import all_levels, functions_of
from kernelrules.rules.matcher import prediction_codes, read_rows, require_rules
from kernelrules.rules.used_columns import narrowed, widened

__all__ = ["simplify"]

_METHODS = ("validation", "pessimistic")


@dataclass(frozen=True, eq=False)
class _ValidationRows:
    """Rows by which rules are scored."""

    x: np.ndarray
    codes: np.ndarray | None  # classes of the rows
    targets: np.ndarray | None  # (n, d)
    weights: np.ndarray

    @property
    def equal_weights(self) -> bool:
        return bool((self.weights == 1).all())


@parallel.reports("simplify")
def simplify(
    rs: RuleList,
    X_val: Any = None,
    y_val: Any = None,
    *,
    method: str = "validation",
    confidence: float = 0.25,
    sample_weight: Any = None,
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> RuleList:
    """Drop conditions that rules do not need, and order the rules into a decision list with a default.

    The condition whose removal leaves the most accurate rule is dropped, again and again, while the accuracy does not
    fall by more than rounding. This is the post-pruning of rules in C4.5 [1]_. The rules are then ordered by accuracy
    (ties by the number of rows covered), and OTHERWISE predicts the most frequent class, or the mean, of the rows for
    which no rule holds, or of all rows if there are none. Last, rules without which the list is no worse on the given
    rows are dropped, from the end on.

    Parameters
    ----------
    rs : RuleList
        Usually the rules of a tree; the rules of an ordered list are simplified independently. Conditions may be on
        sums, but rules that predict linear functions are refused.
    X_val : array, sparse matrix or data frame, (n, p)
        Rows by which rules are scored: a validation set, or with method="pessimistic" the training data.
    y_val : array (n,), or (n, n_outputs)
        Their classes or values.
    method : "validation" or "pessimistic"
        Score rules by accuracy (for regression by mean squared error), or by a pessimistic estimate of the accuracy,
        which is meaningful on training data. A rule that covers no row may lose any condition.
    confidence : float
        Confidence of the pessimistic estimate, in (0, 0.5]: the probability that the true error rate is above its upper
        limit. Smaller values drop more conditions.
    sample_weight : array (n,), optional
        Sample weights; method="pessimistic" counts them as numbers of rows.
    {n_threads, callback, progress}

    Returns
    -------
    RuleList
        An ordered list. Support, confidence, n, weight and shares are those of the given rows for which no earlier rule
        holds.

    References
    ----------
    .. [1] J. R. Quinlan, "C4.5: Programs for Machine Learning", chapter 5, Morgan Kaufmann, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import rules, tree
    >>> X = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 5)
    >>> y = np.where(X[:, 0] & X[:, 1], "yes", "no")
    >>> rs = rules.extract(tree.grow(X, y), ["A", "B"])
    >>> print(rs)
    A ≤ 0.5 → no
    A > 0.5 & B ≤ 0.5 → no
    A > 0.5 & B > 0.5 → yes
    >>> print(rules.simplify(rs, X, y))
    A > 0.5 & B > 0.5 → yes
    OTHERWISE → no
    """
    if functions_of(require_rules(rs)) is not None:
        raise ValueError("simplify requires rules that predict constants, but these predict linear functions")
    check.one_of(method, "method", *_METHODS)
    level = _confidence(confidence)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "simplify")
    if method == "pessimistic" and rs.classes is None:
        raise ValueError('method="pessimistic" requires classes: for a regression use method="validation"')
    short, X_val, used = narrowed(rs, X_val, "X_val")
    data = _read(short, X_val, y_val, sample_weight, method)
    if method == "pessimistic":
        check.counted_weights(float(data.weights.sum()), int((data.weights > 0).sum()))
    simplified = _simplified(short, data, level if method == "pessimistic" else 0.0, threads, tick)
    return widened(_as_list(short, simplified, data), rs, used)


def _confidence(confidence: Any) -> float:
    level = check.positive(confidence, "confidence")
    if level > 0.5:
        raise ValueError(f"confidence must be in (0, 0.5], got {confidence!r}")
    return level


def _read(rs: RuleList, X: Any, y: Any, sample_weight: Any, method: str) -> _ValidationRows:
    if X is None or y is None:
        which = "a validation set" if method == "validation" else "the training data"
        raise ValueError(f'simplify needs X_val and y_val: with method="{method}", {which}')
    x, _ = read_rows(rs, X, name="X_val")
    n = len(x)
    if n == 0:
        raise ValueError("X_val has no rows")
    weights = exact_weights.exact(check.weights(sample_weight, n, data="X_val"))
    if rs.classes is None:
        return _ValidationRows(x, None, _targets(y, n, rs.n_outputs), weights)
    found, numbers = check.labels(y, n, "y_val", "X_val")
    known = {label: number for number, label in enumerate(rs.classes.tolist())}
    codes = [known.get(label, -1) for label in found.tolist()]
    if -1 in codes:
        raise ValueError(f"y_val holds {check.shown(found[codes.index(-1)])}, which is not one of the rules' classes")
    return _ValidationRows(x, np.array(codes, dtype=np.int64)[numbers], None, weights)


def _targets(y: Any, n: int, n_outputs: int) -> np.ndarray:
    shape = np.shape(y)
    if n_outputs == 1 and len(shape) != 2:
        return check.targets(y, n, "y_val", "X_val")[:, None]
    if shape != (n, n_outputs):
        raise ValueError(f"y_val has shape {shape}, but X_val has {n} rows and the rules predict {n_outputs} numbers")
    raw = np.asarray(y)
    return np.column_stack([check.targets(raw[:, k], n, f"y_val[:, {k}]", "X_val") for k in range(n_outputs)])


# ---- conditions dropped -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _SimplifiedRule:
    """A rule with the conditions that it has kept."""

    conditions: tuple[Condition, ...]
    prediction: Any
    score: float
    covered: float
    holds: np.ndarray  # the rows that it covers, as bits


def _simplified(
    rs: RuleList, data: _ValidationRows, confidence: float, threads: int, tick: Any
) -> list[_SimplifiedRule]:
    """Return every rule without the conditions that it does not need."""
    compiled = compile_conditions(tuple(rule.conditions for rule in rs.rules), all_levels(rs), merge=False)
    n_rules = len(rs.rules)
    masks = row_masks(compiled, data.x, threads)
    if rs.classes is not None:
        classes, predictions = _class_masks(data.codes, len(rs.classes)), prediction_codes(rs)
    else:
        classes = None
        predictions = np.array([rule.prediction for rule in rs.rules], dtype=np.float64).reshape(n_rules, -1)
    threads = parallel.enough_threads(threads, int((np.diff(compiled.start) ** 2).sum()) * masks.shape[1])
    kept = np.empty(len(compiled.ids), dtype=np.uint8)
    score, covered = np.empty(n_rules), np.empty(n_rules)
    weights = None if data.equal_weights else data.weights
    deviate = float(ndtri(1 - confidence)) if confidence else 0.0
    scorer = RuleScorer(len(data.x), weights, classes, data.targets, confidence, deviate)
    scorer.simplify(masks, compiled.start, compiled.ids, predictions, kept, score, covered, threads, tick)
    found = []
    for place, rule in enumerate(rs.rules):
        here = slice(compiled.start[place], compiled.start[place + 1])
        parts = [part for part, keep in zip(halves(rule.conditions), kept[here], strict=True) if keep]
        holds = np.bitwise_and.reduce(masks[compiled.ids[here][kept[here] == 1]], axis=0)
        left = merged(parts, place)
        found.append(_SimplifiedRule(left, rule.prediction, float(score[place]), float(covered[place]), holds))
    return found


def _class_masks(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the rows of each class, as bits."""
    n_words = -(-len(codes) // 64)
    bits = np.zeros((n_classes, 64 * n_words), dtype=np.uint8)
    bits[codes, np.arange(len(codes))] = 1
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64).reshape(n_classes, n_words)


# ---- the list ---------------------------------------------------------------------------------------------------


def _as_list(rs: RuleList, simplified: list[_SimplifiedRule], data: _ValidationRows) -> RuleList:
    """Order the rules by their scores, drop those that the list does not need, and add a default."""
    score, covered = np.array([rule.score for rule in simplified]), np.array([rule.covered for rule in simplified])
    of_score = exact_weights.tied_ranks(
        -score, _ROUNDING_RTOL * (np.abs(score) if rs.classes is None else np.ones(len(simplified)))
    )
    of_covered = exact_weights.tied_ranks(-covered, _ROUNDING_RTOL * covered)
    order = sorted(range(len(simplified)), key=lambda i: (of_score[i], of_covered[i], i))
    chosen: dict[frozenset[Condition], _SimplifiedRule] = {}
    for i in order:
        if not simplified[i].conditions:
            break  # it always holds, so that no later rule matters, and the default is a better choice
        chosen.setdefault(frozenset(simplified[i].conditions), simplified[i])
    listed = list(chosen.values())
    left, found = np.ones(len(data.x), dtype=bool), []
    for rule in listed:
        left &= ~_unpacked(rule.holds, len(left))
    default = _default(rs, data, left)
    left[:] = True
    for rule in _needed(listed, default, rs, data):
        here = left & _unpacked(rule.holds, len(left))
        found.append(_with_statistics(rule, rs, data, here))
        left &= ~here
    return replace(
        rs, rules=tuple(found), default=default, default_shares=_shares(rs, data, left), ordered=True, complete=False,
        n_train=len(data.x),
    )  # fmt: skip


def _unpacked(bits: np.ndarray, n: int) -> np.ndarray:
    """Return a set of n rows as booleans."""
    return np.unpackbits(bits.astype("<u8", copy=False).view(np.uint8), count=n, bitorder="little").view(bool)


def _needed(listed: list[_SimplifiedRule], default: Any, rs: RuleList, data: _ValidationRows) -> list[_SimplifiedRule]:
    """Drop rules whose removal does not raise the loss of the list, from the last on, until all are needed."""
    n, kept = len(data.x), listed
    while True:
        reached, left = [], np.ones(n, dtype=bool)
        for rule in kept:
            here = left & _unpacked(rule.holds, n)
            reached.append(np.flatnonzero(here))
            left &= ~here
        loss = _losses(default, rs, data, slice(None))  # of every row, under the later rules that are kept
        still = []
        for rule, rows in zip(reversed(kept), reversed(reached), strict=True):
            if _losses(rule.prediction, rs, data, rows).sum() < (1 - _ROUNDING_RTOL) * loss[rows].sum():
                still.append(rule)
                held = np.flatnonzero(_unpacked(rule.holds, n))
                loss[held] = _losses(rule.prediction, rs, data, held)
        if len(still) == len(kept):
            return kept
        kept = still[::-1]


def _losses(prediction: Any, rs: RuleList, data: _ValidationRows, rows: Any) -> np.ndarray:
    """Return the weighted loss of some rows under this prediction: zero-one loss or squared error."""
    if rs.classes is not None:
        return data.weights[rows] * (data.codes[rows] != np.flatnonzero(rs.classes == prediction)[0])
    return data.weights[rows] * ((data.targets[rows] - prediction) ** 2).sum(axis=1)


def _default(rs: RuleList, data: _ValidationRows, rows: np.ndarray) -> Any:
    """Return the most frequent class, or the mean, of the rows; of all rows if they have no weight."""
    if not data.weights[rows].any():
        rows = np.ones_like(rows)
    if rs.classes is not None:
        return rs.classes[np.bincount(data.codes[rows], data.weights[rows], len(rs.classes)).argmax()]
    mean = np.average(data.targets[rows], axis=0, weights=data.weights[rows])
    return float(mean[0]) if rs.n_outputs == 1 else mean


def _shares(rs: RuleList, data: _ValidationRows, rows: np.ndarray) -> np.ndarray | None:
    """Return the shares of the classes among the rows, or among all rows if they have no weight."""
    if rs.classes is None:
        return None
    if not data.weights[rows].any():
        rows = np.ones_like(rows)
    sums = np.bincount(data.codes[rows], data.weights[rows], len(rs.classes))
    return sums / sums.sum()


def _with_statistics(rule: _SimplifiedRule, rs: RuleList, data: _ValidationRows, rows: np.ndarray) -> Rule:
    """Return the rule with the statistics of its rows."""
    weight, n = float(data.weights[rows].sum()), int((rows & (data.weights > 0)).sum())
    support = weight / float(data.weights.sum())
    shares = _shares(rs, data, rows)
    confidence = np.nan if shares is None else float(shares[np.flatnonzero(rs.classes == rule.prediction)[0]])
    return Rule(rule.conditions, rule.prediction, support, confidence, n, weight, shares)
