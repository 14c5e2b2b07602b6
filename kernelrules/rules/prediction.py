"""rules.predict, rules.predict_proba, rules.coverage: predictions of the first rule of a list that holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.rules import condition_masks
from kernelrules.results import AdditiveRules, Coverage, RuleList
from kernelrules.rules import additive_scores
from kernelrules.rules.conditions import compile_conditions, row_masks
from kernelrules.rules.linear_sums import all_levels, append_sums, linear_answers
from kernelrules.rules.matcher import is_plain, matcher_of, read_columns, read_rows, require_rules
from kernelrules.rules.used_columns import narrowed

__all__ = ["coverage", "predict", "predict_proba"]

_ROWS_PER_BLOCK = 1 << 16  # so that the masks of their conditions take little memory


def _answers(
    rs: RuleList, X: Any, table: np.ndarray, unseen: str, n_threads: Any, callback: Any, what: str
) -> np.ndarray:
    """Return table[rule] for each row; the last entry is for rows for which no rule holds."""
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, what)
    rs, X, _ = narrowed(rs, X)
    matcher = matcher_of(rs)
    if is_plain(rs, X, unseen):
        found = matcher.answers(X, None, table, threads, tick)
        if found is not None:
            return found
    x, missing = read_rows(rs, X, unseen)
    return matcher.answers(x, bool(missing.any()), table, threads, tick)


@parallel.reports("predict")
def predict(
    rs: RuleList | AdditiveRules,
    X: Any,
    *,
    unseen: str = "allow",
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Predict classes or values: by the first rule that holds, or by the default if none does.

    An additive model predicts the class with the largest score, or for regression the score itself.

    Parameters
    ----------
    rs : RuleList or AdditiveRules
        From `extract`, `simplify`, `decision_list`, `induce` or `additive`.
    X : array, sparse matrix or data frame, (n, p)
        Points, with the columns of the training data.
    {unseen}
        In rules an unseen category satisfies the conditions that allow it.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n,), or (n, n_outputs)
        One prediction per row.

    Examples
    --------
    >>> from kernelrules import rules, tree
    >>> rs = rules.extract(tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]))
    >>> rules.predict(rs, [[0.7], [2.2]])
    array(['a', 'b'], dtype='<U1')
    """
    if isinstance(rs, AdditiveRules):
        return additive_scores.predicted(rs, X, unseen, n_threads, callback)
    matcher = matcher_of(require_rules(rs))
    if matcher.functions is not None:
        return _linear_predictions(rs, X, unseen, n_threads, callback)
    return _answers(rs, X, matcher.predictions, unseen, n_threads, callback, "predict")


def _linear_predictions(rs: RuleList, X: Any, unseen: str, n_threads: Any, callback: Any) -> np.ndarray:
    """Predictions of a list in which rules predict linear functions."""
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "predict")
    matcher = matcher_of(rs)
    columns, missing = read_columns(rs, X, unseen)
    x, missing = append_sums(rs, columns, missing)
    which = matcher.answers(x, bool(missing.any()), np.arange(matcher.n_rules + 1), threads, tick)
    return linear_answers(rs, matcher.functions, columns, which, matcher.predictions)


@parallel.reports("predict_proba")
def predict_proba(
    rs: RuleList | AdditiveRules,
    X: Any,
    *,
    laplace: float = 0.0,
    unseen: str = "allow",
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Predict the shares of the classes among the training rows of the first rule that holds.

    For an additive model, they are 1 / (1 + exp(-score)); with more than two classes, divided by their sum.

    Parameters
    ----------
    rs : RuleList or AdditiveRules
        A model of classes.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `predict`.
    laplace : float
        Added to the weight of every class of a rule before shares are computed, as in `tree.predict_proba`. The shares
        of the default do not change. Not for additive models.
    {unseen}
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n, n_classes)
        Rows that sum to 1, in the order of rs.classes.

    Examples
    --------
    >>> from kernelrules import rules, tree
    >>> rs = rules.extract(tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]))
    >>> rules.predict_proba(rs, [[0.7]], laplace=1.0)
    array([[0.75, 0.25]])
    """
    if isinstance(rs, AdditiveRules):
        return additive_scores.probabilities(rs, X, laplace, unseen, n_threads, callback)
    if require_rules(rs).classes is None:
        raise ValueError("predict_proba requires classes, and these are rules of a regression")
    extra = check.not_negative(laplace, "laplace")
    table = np.array(
        [
            *(_shares(rule.shares, f"rule {i}") for i, rule in enumerate(rs.rules)),
            _shares(rs.default_shares, "the default"),
        ]
    )
    if extra > 0:
        weight = np.array([rule.weight for rule in rs.rules])[:, None]
        table[:-1] = (weight * table[:-1] + extra) / (weight + extra * table.shape[1])
    return _answers(rs, X, table, unseen, n_threads, callback, "predict_proba")


def _shares(shares: Any, which: str) -> np.ndarray:
    if shares is None:
        raise ValueError(f"{which} has no shares of classes")
    return shares


@parallel.reports("coverage")
def coverage(
    rs: RuleList,
    X: Any,
    *,
    unseen: str = "allow",
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> Coverage:
    """Find which rule holds first for each row, and for how many rows each rule holds.

    Parameters
    ----------
    rs : RuleList
        The rules.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `predict`.
    {unseen}
    {n_threads, callback, progress}

    Returns
    -------
    Coverage
        The rule of each row, and the numbers of rows of each rule.

    Examples
    --------
    >>> from kernelrules import rules, tree
    >>> rs = rules.extract(tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]))
    >>> covered = rules.coverage(rs, [[0.7], [2.2], [9.0]])
    >>> covered.rule, covered.first
    (array([0, 1, 1]), array([1, 2]))
    """
    n_rules = len(require_rules(rs))
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "coverage")
    rs, X, _ = narrowed(rs, X)
    matcher = matcher_of(rs)
    x, missing = read_rows(rs, X, unseen)
    rule = matcher.answers(x, bool(missing.any()), np.append(np.arange(n_rules), -1), threads, tick)
    return Coverage(
        rule=rule,
        first=np.bincount(rule[rule >= 0], minlength=n_rules),
        raw=_rows_held(rs, x, threads),
        otherwise=int((rule < 0).sum()),
    )


def _rows_held(rs: RuleList, x: np.ndarray, threads: int) -> np.ndarray:
    """Count the rows of each rule. Limits of intervals are separate conditions, because rules share many of them."""
    conditions = compile_conditions(tuple(rule.conditions for rule in rs), all_levels(rs), merge=False)
    counts = np.zeros(len(rs), dtype=np.int64)
    for first in range(0, len(x), _ROWS_PER_BLOCK):
        rows = x[first : first + _ROWS_PER_BLOCK]
        masks = row_masks(conditions, rows, threads)
        condition_masks.count_rows(masks, conditions.start, conditions.ids, len(rows), counts)
    return counts
