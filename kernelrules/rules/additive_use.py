"""Scores of an additive model: which rows pass which tests as bits, the rules' weights added where all of theirs do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import expit

from kernelrules import parallel
from kernelrules.core.score import add_scores
from kernelrules.results import AdditiveRules, Condition, LinearTerm, Rule, RuleList
from kernelrules.rules.matching import Tests, compiled_tests, halves, masks_of, read_rows
from kernelrules.rules.sparse import narrowed

__all__ = ["decision"]

_ROWS_AT_A_TIME = 1 << 16
_NANOSECONDS = 1.0  # of one row and rule


def linear_values(term: LinearTerm, numbers: np.ndarray) -> np.ndarray:
    """Of a term, for the values of its column."""
    found = term.scale * (np.clip(numbers.astype(np.float64), term.low, term.high) - term.mean)
    return np.where(np.isnan(found), 0.0, found)


_lists: WeakKeyDictionary[AdditiveRules, RuleList] = WeakKeyDictionary()
_tests: WeakKeyDictionary[RuleList, Tests] = WeakKeyDictionary()


def _list_of(model: AdditiveRules) -> RuleList:
    """Rules that have a weight, then one for each linear term in use, which asks for its column."""
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


def _tests_of(rs: RuleList, n_rules: int) -> Tests:
    found = _tests.get(rs)
    if found is None:
        split = tuple(tuple(part for c in rule.conditions for part in halves(c)) for rule in rs.rules[:n_rules])
        found = _tests[rs] = compiled_tests(split, rs.levels, merge=False)
    return found


def _scores(model: Any, X: Any, unseen: str, n_threads: Any, callback: Any, what: str) -> np.ndarray:
    """Of all rows, (n, n_scores)."""
    if not isinstance(model, AdditiveRules):
        raise TypeError(f"model must be what rules.additive returned, got {type(model).__name__}")
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, what)
    used = model.weights.any(axis=0)
    lines = _linear_in_use(model)
    weights = np.ascontiguousarray(model.weights[:, used].T)
    n_rules = len(weights) - len(lines)
    whole = _list_of(model)
    rs, X, columns = narrowed(whole, X)
    tests = _tests_of(rs, n_rules)
    x, _ = read_rows(rs, X, unseen)
    place = {j: j for j in range(model.n_features)} if columns is None else {int(j): k for k, j in enumerate(columns)}
    scores = np.tile(model.intercept, (len(x), 1))
    for first in range(0, len(x), _ROWS_AT_A_TIME):
        some, out = x[first : first + _ROWS_AT_A_TIME], scores[first : first + _ROWS_AT_A_TIME]
        work = parallel.enough_threads(threads, _NANOSECONDS * len(some) * n_rules)
        add_scores(masks_of(tests, some, threads), tests.start, tests.ids, weights[:n_rules], out, work)
        for term, weight in zip(lines, weights[n_rules:], strict=True):
            out += linear_values(term, some[:, place[term.feature]])[:, None] * weight
        if tick is not None:
            tick(min(first + _ROWS_AT_A_TIME, len(x)), len(x))
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
    """Scores of an additive model: the weights of the rules that hold, added up, and the constant.

    Parameters
    ----------
    model : AdditiveRules
        From `additive`; `model.at(k)` has those of another λ.
    X : array, sparse matrix or data frame, (n, p)
        Points, with the columns that the rules were made on.
    unseen : "allow" or "error"
        Categories that were not in the training data satisfy what most of its weight does, or are refused.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    ndarray (n,), or (n, n_classes)
        Of two classes the log-odds of the second; of more, those of each against the others; of a regression what it
        predicts.

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
    """What `rules.predict` gives."""
    scores = _scores(model, X, unseen, n_threads, callback, "predict")
    if model.classes is None:
        return scores[:, 0]
    return model.classes[(scores[:, 0] > 0).astype(np.intp) if model.n_scores == 1 else scores.argmax(axis=1)]


def probabilities(
    model: AdditiveRules, X: Any, laplace: float, unseen: str, n_threads: Any, callback: Any
) -> np.ndarray:
    """What `rules.predict_proba` gives."""
    if model.classes is None:
        raise ValueError('probabilities are those of classes, and this is a model with loss="squared"')
    if laplace != 0:
        raise ValueError(f"laplace is for rules that answer by themselves, not for their sum; got {laplace!r}")
    scores = _scores(model, X, unseen, n_threads, callback, "predict_proba")
    if model.n_scores == 1:
        return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
    shares = expit(scores)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / scores.shape[1])
