"""Losses W·Q for the node-by-node builder, of many sets of a node's rows at once.

A measure is made for one node. It answers for cuts of the rows in some order (`cut_losses`) and for sets of levels of
a categorical column (`subset_losses`); the criteria that are functions of sums over rows share one implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.tree.leaves import weighted_median
from kernelrules.tree.medians import range_medians
from kernelrules.tree.problem import Problem

__all__ = ["Measure", "measure_of"]

_ROUNDING = 8 * np.finfo(np.float64).eps


class Measure:
    """Losses of parts of one node's rows.

    Attributes
    ----------
    loss : float
        W·Q of all rows of the node.
    noise : float
        Differences of losses below this are rounding.
    value : ndarray
        Class shares, means or medians.
    pure : bool
        Whether nothing is left to be gained.
    concave : bool
        Whether no split can lose.
    tie_breaker : Measure or None
        Which of several splits with the same gain to take.
    enumerable : bool
        Whether `subset_losses` is cheap.
    """

    loss: float
    noise: float
    value: np.ndarray
    pure: bool
    concave: bool = True
    tie_breaker: Measure | None = None
    enumerable: bool = True

    def cut_losses(self, order: np.ndarray, keep: np.ndarray | None) -> np.ndarray:
        """For orders (m, c) of the rows: the loss of the first i + 1 plus that of the others, (m, c).

        Where `keep` (m, c) is False the row counts on neither side.
        """
        raise NotImplementedError

    def subset_losses(self, members: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, float]:
        """For sets (k, q) of groups: the loss of the members plus that of the others, (k,); and of all together.

        Rows whose `group` (m,) is -1 count on neither side.
        """
        raise NotImplementedError

    def profile(self, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Where the rows of each group lie, (q, r): subsets are best sought along an order of these."""
        raise NotImplementedError


class _OfSums(Measure):
    """Criteria that are functions of sums over rows; statistics (s, m), one column a row."""

    def __init__(self, statistics: np.ndarray, loss_of_sums: Callable[[np.ndarray], np.ndarray]):
        self._statistics, self._loss_of_sums = statistics, loss_of_sums
        self.loss = float(loss_of_sums(statistics.sum(axis=1)[:, None])[0])

    def cut_losses(self, order, keep):
        """Cumulative sums from the left; the right is what is missing to the total."""
        terms = self._statistics[:, order]
        if keep is not None:
            terms = np.where(keep, terms, 0.0)
        left = np.cumsum(terms, axis=1)
        return self._loss_of_sums(left) + self._loss_of_sums(left[:, -1:] - left)

    def subset_losses(self, members, group):
        """Sums of the groups' sums."""
        sums = self.group_sums(group, members.shape[1])
        inside, outside = sums @ members.T.astype(np.float64), sums @ (~members).T.astype(np.float64)
        total = float(self._loss_of_sums(sums.sum(axis=1)[:, None])[0])
        return self._loss_of_sums(inside) + self._loss_of_sums(outside), total

    def group_sums(self, group: np.ndarray, n_groups: int) -> np.ndarray:
        """The statistics summed over each group, (s, q)."""
        counted = group >= 0
        which = group[counted]
        return np.stack([np.bincount(which, s[counted], minlength=n_groups) for s in self._statistics])


class _OfClasses(_OfSums):
    """Criteria of class shares."""

    def __init__(self, counts: np.ndarray, loss_of_sums: Callable[[np.ndarray], np.ndarray], *, concave: bool = True):
        super().__init__(counts, loss_of_sums)
        sums = counts.sum(axis=1)
        self.concave = concave
        self.value = sums / sums.sum()
        self.pure = np.count_nonzero(sums) <= 1
        self.noise = _ROUNDING * max(float(sums.sum()), abs(self.loss))

    def profile(self, group, n_groups):
        """Shares of the classes that occur; of two, one says it all."""
        sums = self.group_sums(group, n_groups)
        shares = sums[sums.any(axis=1)] / sums.sum(axis=0)
        return shares[1:].T if len(shares) == 2 else shares.T


class _OfMeans(_OfSums):
    """Criteria of numbers with the mean in the leaf; the first statistic is the weight, then the weighted targets."""

    def __init__(
        self, statistics: np.ndarray, loss_of_sums: Callable[[np.ndarray], np.ndarray], y: np.ndarray, noise: float
    ):
        super().__init__(statistics, loss_of_sums)
        self._n_outputs = y.shape[1]
        self.value = statistics[0] @ y / statistics[0].sum()
        self.pure = bool((y == y[0]).all())
        self.noise = _ROUNDING * noise

    def profile(self, group, n_groups):
        """Means."""
        sums = self.group_sums(group, n_groups)
        return (sums[1 : 1 + self._n_outputs] / sums[0]).T


class _OfMedians(Measure):
    """Absolute error, with the median in the leaf; several outputs add up."""

    enumerable = False

    def __init__(self, y: np.ndarray, weights: np.ndarray):
        self.value = np.array([weighted_median(column, weights) for column in y.T])
        self._centred, self._weights = y - self.value, weights
        self.loss = float(weights @ np.abs(self._centred).sum(axis=1))
        self.pure = bool((y == y[0]).all())
        self.noise = _ROUNDING * self.loss

    def cut_losses(self, order, keep):
        """All orders one after the other as one sequence, whose stretches are asked for."""
        m, c = order.shape
        weights = self._weights[order] if keep is None else np.where(keep, self._weights[order], 0.0)
        first = np.repeat(np.arange(c) * m, m)
        cut, last = np.arange(1, m * c + 1), first + m
        start, stop = np.concatenate([first, cut]), np.concatenate([cut, last])
        losses = np.zeros(m * c)
        for column in self._centred.T:
            both = range_medians(column[order].T.ravel(), weights.T.ravel(), start, stop).loss
            losses += both[: m * c] + both[m * c :]
        return losses.reshape(c, m).T

    def subset_losses(self, members, group):
        """One set after the other."""
        counted = group >= 0
        y, w, group = self._centred[counted], self._weights[counted], group[counted]
        losses = [_median_loss(y, w, chosen[group]) + _median_loss(y, w, ~chosen[group]) for chosen in members]
        return np.array(losses), _median_loss(y, w, np.ones(len(y), dtype=bool))

    def profile(self, group, n_groups):
        """Medians."""
        rows = [group == g for g in range(n_groups)]
        return np.array([[weighted_median(y[r], self._weights[r]) for y in self._centred.T] for r in rows])


def _median_loss(y: np.ndarray, w: np.ndarray, rows: np.ndarray) -> float:
    if not rows.any():
        return 0.0
    return sum(float(w[rows] @ np.abs(c[rows] - weighted_median(c[rows], w[rows]))) for c in y.T)


# ---- a criterion that is a Python function --------------------------------------------------------------------------


def _own(impurity: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """W·Q of a user's function, whose answers are checked."""

    def loss(counts: np.ndarray) -> np.ndarray:
        counts = np.maximum(counts, 0.0)
        weight = counts.sum(axis=0)
        filled = weight > 0
        shares = np.ascontiguousarray((counts[:, filled] / weight[filled]).T)
        losses = np.zeros_like(weight)
        losses[filled] = weight[filled] * _checked(impurity(shares), len(shares))
        return losses

    return loss


def _checked(answer: object, n: int) -> np.ndarray:
    try:
        impurities = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"criterion did not return numbers: {error}") from None
    if impurities.shape != (n,):
        raise ValueError(f"criterion must return shape ({n},) for shares of {n} nodes, got shape {impurities.shape}")
    bad = np.flatnonzero(~np.isfinite(impurities))
    if len(bad):
        raise ValueError(f"criterion returned {impurities[bad[0]]}; impurities must be finite")
    return impurities


# ---- a node's measure ---------------------------------------------------------------------------------------------


def measure_of(
    problem: Problem, criterion: str | Callable[[np.ndarray], np.ndarray], rows: np.ndarray, weights: np.ndarray
) -> Measure:
    """The measure of a node.

    Parameters
    ----------
    problem : Problem
        The training data.
    criterion : str or callable
        As in `Settings`.
    rows, weights : ndarray (m,)
        The node's rows and their weights, all above 0.

    Returns
    -------
    Measure
        For these rows; "gain_ratio" is measured by entropy.
    """
    if problem.classes_of_rows is not None:
        return _class_measure(problem, criterion, rows, weights)
    row = CRITERIA.get(criterion)
    if row is None or row.of_classes:
        raise ValueError(f"criterion {criterion!r} is not for regression")
    y = problem.targets[rows]
    return _OfMedians(y, weights) if row.of_medians else _mean_measure(row, y, weights)


def _class_measure(problem: Problem, criterion: object, rows: np.ndarray, weights: np.ndarray) -> Measure:
    counts = np.zeros((problem.n_classes, len(rows)))
    counts[problem.classes_of_rows[rows], np.arange(len(rows))] = weights
    if callable(criterion):
        return _OfClasses(counts, _own(criterion), concave=False)
    row = CRITERIA.get(criterion)
    if row is None or not row.of_classes:
        raise ValueError(f"criterion {criterion!r} is not for classification")
    measure = _OfClasses(counts, row.class_losses)
    if row.ties_by_gini:
        measure.tie_breaker = _OfClasses(counts, CRITERIA["gini"].class_losses)
    return measure


def _mean_measure(row: Any, y: np.ndarray, weights: np.ndarray) -> Measure:
    """The measure of targets that are normalised, so that little is lost to rounding."""
    means = weights @ y / weights.sum()
    if row.subtracts_mean:
        z, units = y - means, np.ones_like(means)
        terms = row.row_terms(z)
        statistics = np.vstack([weights, weights * z.T, weights * terms.sum(axis=1)])
        noise = statistics[-1].sum()
    else:
        z, units = y / np.where(means > 0, means, 1.0), means
        terms = units * row.row_terms(z)
        statistics = np.vstack([weights, weights * z.T, weights * terms.sum(axis=1)])
        noise = float(weights @ (np.abs(terms) + units * z).sum(axis=1))

    def loss(sums: np.ndarray) -> np.ndarray:
        return np.maximum(sums[-1] - row.sum_terms(sums[:-1], units), 0.0)

    return _OfMeans(statistics, loss, y, noise)
