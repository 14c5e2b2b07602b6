"""Scores of an additive model: the weights of the rules that hold for a row, added up, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import expit

from kernelrules import parallel
from kernelrules.core.additive.score import add_scores
from kernelrules.results import AdditiveRules, Condition, LinearTerm, Rule, RuleList
from kernelrules.rules.conditions import CompiledConditions, compile_conditions, row_masks
from kernelrules.rules.matcher import read_rows
from kernelrules.rules.used_columns import narrowed

__all__ = ["decision"]

_ROWS_PER_BLOCK = 1 << 16  # so that the masks of their conditions take little memory
_NANOSECONDS_PER_RULE = 1.0  # for one row


def linear_values(term: LinearTerm, numbers: np.ndarray) -> np.ndarray:
    """Return the values of a linear term, given the numbers of its column."""
    values = term.scale * (np.clip(numbers.astype(np.float64), term.low, term.high) - term.mean)
    return np.where(np.isnan(values), 0.0, values)


_lists: WeakKeyDictionary[AdditiveRules, RuleList] = WeakKeyDictionary()
_conditions: WeakKeyDictionary[RuleList, CompiledConditions] = WeakKeyDictionary()


def _list_of(model: AdditiveRules) -> RuleList:
    """Return the rules with a nonzero weight, then a rule on the column of each linear term with one."""
    found = _lists.get(model)
    if found is None:
        used = model.weights.any(axis=0)
        rules = [rule for rule, here in zip(model.rules, used, strict=False) if here]
        for term in _linear_in_use(model):
            rules.append(Rule((Condition(term.feature),), 0.0, 1.0, np.nan, 0, 0.0))
        found = _lists[model] = RuleList(
            rules=tuple(rules),
            default=0.0,
            default_shares=None,
            classes=None,
            feature_names=model.feature_names,
            class_names=None,
            levels=model.levels,
            n_features=model.n_features,
            ordered=False,
            missing=model.missing,
            missing_seen=model.missing_seen,
            columns=model.columns,
        )
    return found


def _linear_in_use(model: AdditiveRules) -> list[LinearTerm]:
    used = model.weights.any(axis=0)[len(model.rules) :]
    return [term for term, here in zip(model.linear, used, strict=True) if here]


def _conditions_of(rs: RuleList, n_rules: int) -> CompiledConditions:
    found = _conditions.get(rs)
    if found is None:
        conditions = tuple(rule.conditions for rule in rs.rules[:n_rules])
        found = _conditions[rs] = compile_conditions(conditions, rs.levels, merge=False)
    return found


def _scores(model: Any, X: Any, unseen: str, n_threads: Any, callback: Any, what: str) -> np.ndarray:
    """Return the scores of all rows, (n, n_scores)."""
    if not isinstance(model, AdditiveRules):
        raise TypeError(f"model must be what rules.additive returned, got {type(model).__name__}")
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, what)
    used = model.weights.any(axis=0)
    linear = _linear_in_use(model)
    weights = np.ascontiguousarray(model.weights[:, used].T)
    n_rules = len(weights) - len(linear)
    rs, X, columns = narrowed(_list_of(model), X)
    conditions = _conditions_of(rs, n_rules)
    x, _ = read_rows(rs, X, unseen)
    place = {j: j for j in range(model.n_features)} if columns is None else {int(j): k for k, j in enumerate(columns)}
    scores = np.tile(model.intercept, (len(x), 1))
    for first in range(0, len(x), _ROWS_PER_BLOCK):
        rows, out = x[first : first + _ROWS_PER_BLOCK], scores[first : first + _ROWS_PER_BLOCK]
        n_workers = parallel.enough_threads(threads, _NANOSECONDS_PER_RULE * len(rows) * n_rules)
        masks = row_masks(conditions, rows, threads)
        add_scores(masks, conditions.start, conditions.ids, weights[:n_rules], out, n_workers)
        for term, weight in zip(linear, weights[n_rules:], strict=True):
            out += linear_values(term, rows[:, place[term.feature]])[:, None] * weight
        if tick is not None:
            tick(min(first + _ROWS_PER_BLOCK, len(x)), len(x))
    return scores


@parallel.reports("decision")
def decision(
    model: AdditiveRules,
    X: Any,
    *,
    unseen: str = "allow",
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Compute the scores of an additive model: the intercept plus the weights of the rules that hold.

    Parameters
    ----------
    model : AdditiveRules
        From `additive`; `model.at(k)` is the model of another λ.
    X : array, sparse matrix or data frame, (n, p)
        Points, with the columns of the training data.
    {unseen}
        An unseen category goes with the larger weight of the training data.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n,), or (n, n_classes)
        With two classes the log-odds of the second; with more, those of each against the others; for regression the
        predictions.

    Examples
    --------
    >>> from kernelrules import rules
    >>> model = rules.additive([[0.0], [1.0], [2.0], [3.0]], [0, 0, 4, 4], loss="squared", max_depth=1, lams=[0.5],
    ...                        folds=None)
    >>> rules.decision(model, [[0.5], [2.5]]).round(3)
    array([1., 3.])
    """
    scores = _scores(model, X, unseen, n_threads, callback, "decision")
    return scores[:, 0] if model.n_scores == 1 else scores


def predicted(model: AdditiveRules, X: Any, unseen: str, n_threads: Any, callback: Any) -> np.ndarray:
    """Return the result of `rules.predict`."""
    scores = _scores(model, X, unseen, n_threads, callback, "predict")
    if model.classes is None:
        return scores[:, 0]
    return model.classes[(scores[:, 0] > 0).astype(np.intp) if model.n_scores == 1 else scores.argmax(axis=1)]


def probabilities(
    model: AdditiveRules, X: Any, laplace: float, unseen: str, n_threads: Any, callback: Any
) -> np.ndarray:
    """Return the result of `rules.predict_proba`."""
    if model.classes is None:
        raise ValueError('predict_proba requires classes, and this is a model with loss="squared"')
    if laplace != 0:
        raise ValueError(f"laplace is for rule lists, not for additive models; got {laplace!r}")
    scores = _scores(model, X, unseen, n_threads, callback, "predict_proba")
    if model.n_scores == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    shares = expit(scores)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1])
