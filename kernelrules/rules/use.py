"""What a rule list answers: `predict`, `predict_proba`, `coverage`. The first rule that holds counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core import match
from kernelrules.results import AdditiveRules, Coverage, RuleList
from kernelrules.rules import additive_use
from kernelrules.rules.matching import (
    compiled_tests,
    halves,
    is_plain,
    masks_of,
    matcher_of,
    read_rows,
    require_rules,
)
from kernelrules.rules.sparse import narrowed

__all__ = ["coverage", "predict", "predict_proba"]

_ROWS_AT_A_TIME = 1 << 16  # whose bits are kept


def _answers(
    rs: RuleList, X: Any, table: np.ndarray, unseen: str, n_threads: Any, callback: Any, what: str
) -> np.ndarray:
    """table[rule] for each row; its last entry is for rows that no rule holds for."""
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
    """Classes, or values of a regression: what the first rule that holds predicts, and the default where none does.

    Of an additive model: the class of the larger or largest score, or the score itself.

    Parameters
    ----------
    rs : RuleList or AdditiveRules
        From `extract`, `simplify`, `decision_list`, `induce` or `additive`.
    X : array, sparse matrix or data frame, (n, p)
        Points, with the columns that the rules were made on.
    unseen : "allow" or "error"
        Categories that were not in the training data satisfy the conditions that say so, or are refused.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    ndarray (n,), or (n, n_outputs)
        One answer for each row.

    Examples
    --------
    >>> from kernelrules import rules, tree
    >>> rs = rules.extract(tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]))
    >>> rules.predict(rs, [[0.7], [2.2]])
    array(['a', 'b'], dtype='<U1')
    """
    if isinstance(rs, AdditiveRules):
        return additive_use.predicted(rs, X, unseen, n_threads, callback)
    require_rules(rs)
    return _answers(rs, X, matcher_of(rs).predictions, unseen, n_threads, callback, "predict")


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
    """Shares of the classes among the training rows of the rule that answers.

    Of an additive model: 1 / (1 + exp(-score)), and of more than two classes that, divided by its sum over the classes.

    Parameters
    ----------
    rs : RuleList or AdditiveRules
        Of classification.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `predict`.
    laplace : float
        Added to the weight of every class of a rule before shares are taken, as in `tree.predict_proba`; the shares of
        the default stay. Not for additive models.
    unseen : "allow" or "error"
        As in `predict`.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

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
        return additive_use.probabilities(rs, X, laplace, unseen, n_threads, callback)
    if require_rules(rs).classes is None:
        raise ValueError("shares are those of classes, and these are rules of a regression")
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
    """Which rows the rules hold for: the first that does, and each by itself.

    Parameters
    ----------
    rs : RuleList
        Any.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `predict`.
    unseen : "allow" or "error"
        As in `predict`.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    Coverage
        The rule of each row, and numbers of rows for each rule.

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
    """How many rows each rule holds for; thresholds, of which rules share many, are tested one by one."""
    tests = compiled_tests(
        tuple(tuple(part for c in rule.conditions for part in halves(c)) for rule in rs), rs.levels, merge=False
    )
    counts = np.zeros(len(rs), dtype=np.int64)
    for first in range(0, len(x), _ROWS_AT_A_TIME):
        some = x[first : first + _ROWS_AT_A_TIME]
        match.count_rows(masks_of(tests, some, threads), tests.start, tests.ids, len(some), counts)
    return counts
