"""rules.simplify: rule post-pruning. Each rule by itself loses the conditions that it does not need, and what is left
is ordered into a decision list.

A limit from below and one from above are two conditions. The accuracy of a rule is that among the rows it covers, by
themselves; its pessimistic estimate is one less C4.5's upper limit of the share of errors (core/simplify.pyx).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from kernelrules import check, parallel, ties
from kernelrules.core import simplify as core
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules.matching import compiled_tests, halves, masks_of, prediction_codes, read_rows, require_rules
from kernelrules.rules.sparse import narrowed, widened

__all__ = ["simplify"]

_METHODS = ("validation", "pessimistic")
_NOISE = core.NOISE  # losses and scores that differ by less, differ by rounding


@dataclass(frozen=True, eq=False)
class _Data:
    """Rows that rules are judged by."""

    x: np.ndarray
    any_missing: bool
    codes: np.ndarray | None  # of the rows' classes
    targets: np.ndarray | None  # (n, d)
    weights: np.ndarray  # of the rows

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
    """Drop conditions that rules can do without, and order the rules into a decision list with a default.

    From each rule, the condition goes whose removal leaves the most accurate rule, again and again, while the accuracy
    does not fall, but for rounding. The rules are then ordered by it (of equals, that with more rows covered first),
    and OTHERWISE is the commonest class, or the mean, of the rows that no rule holds for, of all rows where there are
    none. Last, rules without which the list answers no worse for the rows given are left out, from the end on.

    Parameters
    ----------
    rs : RuleList
        The rules of a tree, as a rule; of an ordered list each rule is taken by itself.
    X_val : array, sparse matrix or data frame, (n, p)
        Rows to judge rules by: a validation set, or with method="pessimistic" the training data.
    y_val : array (n,), or (n, n_outputs)
        Their classes or values.
    method : "validation" or "pessimistic"
        Judge by the accuracy (of a regression: the mean squared error), or by a pessimistic estimate of it, which rows
        that the rules were made on can serve for. A rule that covers no row loses any condition.
    confidence : float
        Of the pessimistic estimate, in (0, 0.5]: the chance that the true share of errors is above its limit. Smaller
        values drop more.
    sample_weight : array (n,), optional
        Weights of the rows; method="pessimistic" counts them as numbers of rows.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    RuleList
        Ordered. Support, confidence, n, weight and shares are those of the rows given, that come to each rule.

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
    require_rules(rs)
    check.one_of(method, "method", *_METHODS)
    level = _confidence(confidence)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "simplify")
    if method == "pessimistic" and rs.classes is None:
        raise ValueError('method="pessimistic" counts errors of classes: for a regression use method="validation"')
    short, X_val, used = narrowed(rs, X_val, "X_val")
    data = _read(short, X_val, y_val, sample_weight, method)
    if method == "pessimistic":
        check.counted_weights(float(data.weights.sum()), int((data.weights > 0).sum()))
    judged = _judged(short, data, level if method == "pessimistic" else 0.0, threads, tick)
    return widened(_as_list(short, judged, data), rs, used)


def _confidence(confidence: Any) -> float:
    level = check.positive(confidence, "confidence")
    if level > 0.5:
        raise ValueError(f"confidence must be in (0, 0.5], got {confidence!r}")
    return level


def _read(rs: RuleList, X: Any, y: Any, sample_weight: Any, method: str) -> _Data:
    if X is None or y is None:
        which = "a validation set" if method == "validation" else "the training data"
        raise ValueError(f'simplify needs X_val and y_val: with method="{method}", {which}')
    x, missing = read_rows(rs, X, name="X_val")
    n = len(x)
    if n == 0:
        raise ValueError("X_val has no rows")
    weights = ties.exact(check.weights(sample_weight, n, data="X_val"))
    if rs.classes is None:
        return _Data(x, bool(missing.any()), None, _targets(y, n, rs.n_outputs), weights)
    found, numbers = check.labels(y, n, "y_val", "X_val")
    known = {label: number for number, label in enumerate(rs.classes.tolist())}
    codes = [known.get(label, -1) for label in found.tolist()]
    if -1 in codes:
        raise ValueError(f"y_val holds {check.shown(found[codes.index(-1)])}, which is none of the rules' classes")
    return _Data(x, bool(missing.any()), np.array(codes, dtype=np.int64)[numbers], None, weights)


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
class _Judged:
    """A rule with what is left of its conditions."""

    conditions: tuple[Condition, ...]
    prediction: Any
    score: float
    covered: float
    holds: np.ndarray  # for which rows, as bits


def _together(parts: list[Condition]) -> tuple[Condition, ...]:
    """One condition a column again."""
    merged: dict[int, Condition] = {}
    for part in parts:
        other = merged.get(part.feature)
        if other is not None:
            part = replace(part, low=max(part.low, other.low), high=min(part.high, other.high))
        merged[part.feature] = part
    return tuple(merged.values())


def _judged(rs: RuleList, data: _Data, confidence: float, threads: int, tick: Any) -> list[_Judged]:
    """Every rule without the conditions that it does not need."""
    parts = tuple(tuple(part for c in rule.conditions for part in halves(c)) for rule in rs.rules)
    tests = compiled_tests(parts, rs.levels, merge=False)
    n, n_rules = len(data.x), len(rs.rules)
    masks = masks_of(tests, data.x, threads)
    classes = codes = predictions = None
    if rs.classes is not None:
        classes, codes = _rows_of_classes(data.codes, len(rs.classes)), prediction_codes(rs)
    else:
        predictions = np.array([rule.prediction for rule in rs.rules], dtype=np.float64).reshape(n_rules, -1)
    threads = parallel.enough_threads(threads, int((np.diff(tests.start) ** 2).sum()) * masks.shape[1])
    kept = np.empty(len(tests.ids), dtype=np.uint8)
    score, covered = np.empty(n_rules), np.empty(n_rules)
    core.simplify(
        masks, tests.start, tests.ids, n, None if data.equal_weights else data.weights, classes, codes, data.targets,
        predictions, confidence, float(ndtri(1 - confidence)) if confidence else 0.0, kept, score, covered, threads,
        tick,
    )  # fmt: skip
    found = []
    for place, rule in enumerate(rs.rules):
        here = slice(tests.start[place], tests.start[place + 1])
        left = _together([part for part, keep in zip(parts[place], kept[here], strict=True) if keep])
        holds = np.bitwise_and.reduce(masks[tests.ids[here][kept[here] == 1]], axis=0)
        found.append(_Judged(left, rule.prediction, float(score[place]), float(covered[place]), holds))
    return found


def _rows_of_classes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """For each class, which rows are of it, as bits."""
    n_words = -(-len(codes) // 64)
    bits = np.zeros((n_classes, 64 * n_words), dtype=np.uint8)
    bits[codes, np.arange(len(codes))] = 1
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64).reshape(n_classes, n_words)


# ---- the list ---------------------------------------------------------------------------------------------------


def _as_list(rs: RuleList, judged: list[_Judged], data: _Data) -> RuleList:
    """The rules in order of their worth, without those that the list does not need, and a default for the rest."""
    score, covered = np.array([rule.score for rule in judged]), np.array([rule.covered for rule in judged])
    of_score = ties.ranks(-score, _NOISE * (np.abs(score) if rs.classes is None else np.ones(len(judged))))
    of_covered = ties.ranks(-covered, _NOISE * covered)
    order = sorted(range(len(judged)), key=lambda i: (of_score[i], of_covered[i], i))
    chosen: dict[frozenset[Condition], _Judged] = {}
    for i in order:
        if not judged[i].conditions:
            break  # it always holds: no rule after it counts, and the default is chosen better
        chosen.setdefault(frozenset(judged[i].conditions), judged[i])
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
    """Bits of n rows as booleans."""
    return np.unpackbits(bits.astype("<u8", copy=False).view(np.uint8), count=n, bitorder="little").view(bool)


def _needed(listed: list[_Judged], default: Any, rs: RuleList, data: _Data) -> list[_Judged]:
    """Rules whose removal would raise the loss of the list, the others left out from the last on, again until all are
    needed."""
    n, kept = len(data.x), listed
    while True:
        reached, left = [], np.ones(n, dtype=bool)
        for rule in kept:
            here = left & _unpacked(rule.holds, n)
            reached.append(np.flatnonzero(here))
            left &= ~here
        loss = _losses(default, rs, data, slice(None))  # of every row, if only the rules kept so far were there
        still = []
        for rule, rows in zip(reversed(kept), reversed(reached), strict=True):
            if _losses(rule.prediction, rs, data, rows).sum() < (1 - _NOISE) * loss[rows].sum():
                still.append(rule)
                held = np.flatnonzero(_unpacked(rule.holds, n))
                loss[held] = _losses(rule.prediction, rs, data, held)
        if len(still) == len(kept):
            return kept
        kept = still[::-1]


def _losses(prediction: Any, rs: RuleList, data: _Data, rows: Any) -> np.ndarray:
    """Weighted loss of some rows if this is predicted: 0 or 1, or the squared error."""
    if rs.classes is not None:
        return data.weights[rows] * (data.codes[rows] != np.flatnonzero(rs.classes == prediction)[0])
    return data.weights[rows] * ((data.targets[rows] - prediction) ** 2).sum(axis=1)


def _default(rs: RuleList, data: _Data, rows: np.ndarray) -> Any:
    """The commonest class, or the mean, of the rows that no rule holds for; of all rows where there are none."""
    if not data.weights[rows].any():
        rows = np.ones_like(rows)
    if rs.classes is not None:
        return rs.classes[np.bincount(data.codes[rows], data.weights[rows], len(rs.classes)).argmax()]
    mean = np.average(data.targets[rows], axis=0, weights=data.weights[rows])
    return float(mean[0]) if rs.n_outputs == 1 else mean


def _shares(rs: RuleList, data: _Data, rows: np.ndarray) -> np.ndarray | None:
    """Of the classes among the rows; among all where they have no weight."""
    if rs.classes is None:
        return None
    if not data.weights[rows].any():
        rows = np.ones_like(rows)
    sums = np.bincount(data.codes[rows], data.weights[rows], len(rs.classes))
    return sums / sums.sum()


def _with_statistics(rule: _Judged, rs: RuleList, data: _Data, rows: np.ndarray) -> Rule:
    """With the figures of the rows that come to the rule."""
    weight, n = float(data.weights[rows].sum()), int((rows & (data.weights > 0)).sum())
    support = weight / float(data.weights.sum())
    shares = _shares(rs, data, rows)
    sure = np.nan if shares is None else float(shares[np.flatnonzero(rs.classes == rule.prediction)[0]])
    return Rule(rule.conditions, rule.prediction, support, sure, n, weight, shares)
