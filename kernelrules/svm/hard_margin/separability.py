"""Whether a hyperplane separates two classes of rows, with a proof of either answer.

The answer does not depend on the units of the columns, so it is computed on columns of about equal size, scaled by
powers of two. The linear program

    maximise t   over  s(v·x + b) ≥ t,  the classes' means 2 apart along v

has t > 0 for separable classes only. If t ≤ 0, its multipliers, plus -t times the weights of the two means, are weights
of rows for which the convex hulls meet. If rounding ends it early, because a narrow gap makes v long, a second program
bounds v by a box instead of the means. Weights of few rows are computed from the multipliers by non-negative least
squares (Lawson and Hanson 1974) and refined.

Invariant: a hyperplane is reported only if sums in twice the precision over the rows as given confirm it. Hulls are
reported to meet only if the two combinations of rows differ, in those sums and in every column, by no more than the
rounding of these rows and weights. Otherwise nothing is claimed.

References
----------
- C. L. Lawson and R. J. Hanson (1974). Solving Least Squares Problems. Prentice-Hall.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernelrules.svm.column_scaling import column_exponents
from kernelrules.svm.hard_margin.double_double import error_bound, products
from kernelrules.svm.hard_margin.inequality_qp import InequalityQP

__all__ = ["ROUNDING", "HullMeeting", "ScaledRows"]

ROUNDING = 2.0**-52  # relative: one half of it is for an entry of a row, the other for its weight
_MAX_COLUMNS = 1024  # of the systems that are solved; wider rows are replaced by coordinates in their span
_MAX_CANDIDATES = 2000  # rows among which weights of a meeting are searched
_MAX_NNLS_ENTRIES = 1_000_000  # of the matrix of non-negative least squares
_ALL_ROW_CORRECTIONS = 6  # of the weights of all rows by the residual of their combination
_RIDGE = 1e-13  # added to a unit diagonal, for dependent columns
_REFINEMENTS = 3  # of the weights of few rows


@dataclass(frozen=True, eq=False)
class HullMeeting:
    """Nearly equal points of the two hulls: weights of rows (negative for the second class) and the points' distance.

    `rounding` is the distance that rounding of those rows explains; `proved`: whether it explains all of it.
    """

    weights: np.ndarray
    distance: float
    rounding: float
    proved: bool


class ScaledRows:
    """Rows of two classes with scaled columns, and the search for a separating hyperplane.

    Parameters
    ----------
    x : ndarray (n, p) of float64
        As the user gave them.
    signs : ndarray (n,)
        1 and -1, both present.
    check_interrupt : callable, optional
        Called between iterations; an exception that it raises ends the search.

    Attributes
    ----------
    exponents : ndarray (p,) of int
        Columns are divided by 2 to these.
    exact : ndarray (n, p)
        The scaled rows, with the digits of x.
    centred : ndarray (n, p)
        The scaled rows minus their mean.
    """

    def __init__(self, x: np.ndarray, signs: np.ndarray, check_interrupt: Any = None) -> None:
        self.signs, self.positive, self.check_interrupt = signs, signs > 0, check_interrupt
        self.exponents = column_exponents(x)
        self.exact = np.ldexp(x, -self.exponents)
        self.centred = self.exact - self.exact.mean(axis=0)

    def in_span(self, exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return centred rows in few coordinates, and the basis that maps their weights to weights of scaled columns.

        The basis is None if the coordinates are the columns. Otherwise columns are first multiplied by
        2 to `exponents`.
        """
        if self.centred.shape[1] <= max(_MAX_COLUMNS, len(self.centred)):
            return self.centred, None
        basis, coordinates = np.linalg.qr(np.ldexp(self.centred, exponents).T)
        return np.ascontiguousarray(coordinates.T), np.ldexp(basis, exponents[:, None])

    def sides(self, v: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return v·x - middle of all rows, a lower bound of half the distance of the classes along v, and the middle.

        Rows that may be the nearest of their class are summed in doubled precision. The distance is theirs minus the
        error bound of that precision, so a positive distance is a proof.
        """
        rough = self.exact @ v
        error = 2.0 * (self.exact.shape[1] + 2) * ROUNDING * (np.abs(self.exact) @ np.abs(v))
        if not np.isfinite(error).all():
            return rough, -np.inf, 0.0
        positive = self.positive
        nearest = (rough + error)[positive].min(), (rough - error)[~positive].max()
        rows = np.flatnonzero(np.where(positive, rough - error <= nearest[0], rough + error >= nearest[1]))
        fine, rest = products(self.exact[rows], v)
        doubt = error_bound(self.exact[rows], v)
        first = positive[rows]
        anchor = float(fine[first].min())
        fine = (fine - anchor) + rest
        least, most = (fine - doubt)[first].min(), (fine + doubt)[~first].max()
        values = rough - anchor
        values[rows] = fine
        middle = (least + most) / 2
        return values - middle, float(least - most) / 2, float(anchor + middle)

    def distance_along(self, v: np.ndarray, error: float) -> float:
        """Return a lower bound of the distance between the hulls in the user's units, by v; 0 if v proves none.

        `error` is the relative error of the entries of the rows.
        """
        half = self.sides(v)[1] - error * float((np.abs(self.exact) @ np.abs(v)).max())
        size = self.length(np.ldexp(v, -2 * self.exponents))  # ‖w‖, with w = v·2^-e
        return max(0.0, 2.0 * half / size * (1.0 - error)) if 0 < size < math.inf else 0.0

    def between(self, weights: np.ndarray, low: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the difference of the two classes' means with these weights, and the mean sizes of its terms.

        Weights are negative for the second class; `low` has further digits of them.
        """
        used = np.flatnonzero(weights)
        part, given = np.ascontiguousarray(self.exact[used].T), [weights[used]]
        high, rest = products(part, weights[used])
        if low is not None:
            more, less = products(part, low[used])
            high, rest = high + more, rest + less  # exact if digits cancel
            given.append(low[used])
        above = weights[used] > 0
        total = math.fsum(np.concatenate([numbers[above] for numbers in given]))
        unequal = math.fsum(np.concatenate(given))
        second = part[:, ~above] @ weights[used][~above] / weights[used][~above].sum()
        sizes = np.abs(part) @ np.abs(weights[used])
        return ((high - unequal * second) + rest) / total, sizes / total

    def length(self, v: np.ndarray) -> float:
        """Return the length, in the user's units, of a difference of scaled rows."""
        if not v.any() or not np.isfinite(v).all():
            return 0.0 if not v.any() else math.inf
        digits, exponents = np.frexp(v)
        exponents = exponents + self.exponents
        unit = int(exponents[digits != 0].max())
        return float(np.ldexp(np.sqrt(np.square(np.ldexp(digits, np.maximum(exponents - unit, -1000))).sum()), unit))

    def decide(self) -> np.ndarray | HullMeeting:
        """Return weights v of the scaled columns that separate the rows, or the best meeting of the hulls found."""
        if len(self.centred) <= self.centred.shape[1] + 1:  # in general position all points can be at ±1
            v = self._interpolating_weights()
            if v is not None and self.separates(v):
                return v
        x, basis = self.in_span(np.zeros_like(self.exponents))
        best = None
        for program, start in (self._means_apart(x), self._in_box(x)):
            guess, t = self._mean_weights(), 0.0
            for z, a in program.path(start, np.full(len(program.B), 1.0 / len(x)), self.check_interrupt):
                v = z[: x.shape[1]] if basis is None else basis @ z[: x.shape[1]]
                if self.separates(v):
                    return v
                if np.isfinite(a).all():
                    guess, t = a[: len(x)], float(z[-1])
            meeting = self._find_meeting(self._convex(2 * guess - min(t, 0.0) * self._mean_weights()))
            if meeting.proved:
                return meeting
            best = meeting if best is None or meeting.distance < best.distance else best
        return best

    def _interpolating_weights(self) -> np.ndarray | None:
        """Return v of the shortest (v, b) with v·x + b = ±1 for all rows; None if their Gram matrix is singular."""
        x, gram = self.centred, self.centred @ self.centred.T
        gram += np.trace(gram) / max(len(gram), 1)  # b is the weight of one more column, of the mean size of the rows
        try:
            return x.T @ cho_solve(cho_factor(gram, overwrite_a=True, check_finite=False), self.signs)
        except LinAlgError:
            return None

    def _mean_weights(self) -> np.ndarray:
        """Return the weights of both classes' means."""
        return np.where(self.positive, 1.0 / self.positive.sum(), 1.0 / (~self.positive).sum())

    def _convex(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of at least 0 with sum 1 in each class, from any weights."""
        weights, means = np.maximum(weights, 0.0), self._mean_weights()
        for side in (self.positive, ~self.positive):
            total = weights[side].sum()
            weights[side] = weights[side] / total if total > 0 else means[side]
        return weights

    def _means_apart(self, x: np.ndarray) -> tuple[InequalityQP, np.ndarray]:
        """Return the program with the classes' means 2 apart, and its start."""
        n, p = x.shape
        apart = (self.signs * self._mean_weights() / 2) @ x
        square = np.square(apart).sum()
        signs, zeros = self.signs[:, None], np.zeros(2)
        B = np.concatenate([signs * x, signs, np.full((n, 1), -1.0)], axis=1)
        z = np.concatenate([apart / square if square > 0 else apart, zeros])
        values = B @ z
        z[-1] = values.min() - np.ptp(values) - 1.0
        c = np.concatenate([np.zeros(p + 1), [-1.0]])
        return InequalityQP(B, np.zeros(n), np.zeros(p + 2), c, np.concatenate([apart, zeros])), z

    def _in_box(self, x: np.ndarray) -> tuple[InequalityQP, np.ndarray]:
        """Return the program with all of v between -1 and 1, and its start."""
        n, p = x.shape
        signs, box = self.signs[:, None], np.concatenate([np.eye(p), np.zeros((p, 2))], axis=1)
        B = np.concatenate([np.concatenate([signs * x, signs, np.full((n, 1), -1.0)], axis=1), box, -box])
        least = np.concatenate([np.zeros(n), np.full(2 * p, -1.0)])
        c = np.concatenate([np.zeros(p + 1), [-1.0]])
        return InequalityQP(B, least, np.zeros(p + 2), c), -1.0 * (np.arange(p + 2) == p + 1)

    def _find_meeting(self, guess: np.ndarray) -> HullMeeting:
        """Return the nearest points of the hulls found from these weights."""
        few = self._convex(np.where(guess > ROUNDING, guess, 0.0))
        best = self.evaluate(self.signs * few)
        best = best if best.proved else self.evaluate(self.signs * guess)
        if self.centred.size > _MAX_NNLS_ENTRIES:  # weights of all rows: few rows would take too long to find
            found = self.evaluate(self.signs * self._corrected(guess))
            best = found if found.proved or found.distance < best.distance else best
        for rows in self._candidates(guess):
            for a in (self._few_weights(rows), guess[rows]):
                if best.proved:
                    return best
                if a is None or not self._in_both_classes(rows[a > ROUNDING]):
                    continue
                found = self.evaluate(self._refined(rows[a > ROUNDING], a[a > ROUNDING]))
                best = found if found.proved or found.distance < best.distance else best
        return best

    def separates(self, v: np.ndarray) -> bool:
        """Return whether v is proved to separate the rows."""
        return bool(np.isfinite(v).all() and v.any() and self.sides(v)[1] > 0)

    def _in_both_classes(self, rows: np.ndarray) -> bool:
        return bool(self.positive[rows].any() and not self.positive[rows].all())

    def _candidates(self, guess: np.ndarray) -> Any:
        """Yield sets of rows among which to search for a meeting: the heaviest, then more and more of the others."""
        order = np.argsort(-guess, kind="stable")
        heaviest = guess[order[0]]
        for share in (1e-3, 1e-7, 0.0):
            rows = order[guess[order] >= share * heaviest]
            if len(rows) > _MAX_CANDIDATES:
                spread = np.linspace(_MAX_CANDIDATES // 2, len(rows) - 1, _MAX_CANDIDATES // 2).astype(int)
                rows = np.concatenate([rows[: _MAX_CANDIDATES // 2], rows[spread]])
            if self._in_both_classes(rows):
                yield np.unique(rows)

    def _few_weights(self, rows: np.ndarray) -> np.ndarray | None:
        """Return weights of few of the rows for which their hulls meet or are near; None if that takes too long."""
        from scipy.optimize import nnls  # imported here: half of the package's import time otherwise

        if (self.centred.shape[1] + 2) * len(rows) > _MAX_NNLS_ENTRIES:
            return None
        system = self._meeting_equations(rows)
        right = np.zeros(len(system))
        right[-2:] = 1.0
        size = np.abs(system).max(axis=1)
        kept = size > 0
        try:
            return nnls(system[kept] / size[kept, None], right[kept] / size[kept])[0]
        except RuntimeError:  # too many iterations
            return None

    def _meeting_equations(self, rows: np.ndarray) -> np.ndarray:
        """Return the matrix whose product with weights of the rows has the differences of columns, and the two sums."""
        first = self.positive[rows]
        return np.concatenate([(self.signs[rows, None] * self.centred[rows]).T, first[None, :], ~first[None, :]])

    def _corrected(self, a: np.ndarray) -> np.ndarray:
        """Return weights of all rows, changed in proportion to them so that combinations and sums fit better."""
        system = self._meeting_equations(np.arange(len(a)))
        size = np.abs(system).max(axis=1)
        system /= np.where(size > 0, size, 1.0)[:, None]
        weighted = system * np.sqrt(a)
        matrix = weighted @ weighted.T
        root = np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(float).tiny))
        matrix /= root * root[:, None]
        matrix[np.diag_indices_from(matrix)] += _RIDGE
        try:
            factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return a
        right = np.zeros(len(system))
        for _ in range(_ALL_ROW_CORRECTIONS):
            sums = np.array([a[self.positive].sum(), a[~self.positive].sum()])
            right[:-2] = self.between(self.signs * a)[0] / np.where(size > 0, size, 1.0)[:-2]
            right[-2:] = sums - 1.0
            better = a - a * (system.T @ (cho_solve(factor, right / root) / root))
            if not (np.isfinite(better).all() and (better >= 0).all()):
                break
            a = better
        return a

    def _refined(self, rows: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return weights of all rows, with the residual of the combination distributed over `rows`."""
        first, signs = self.positive[rows], self.signs[rows]
        a = a.copy()
        for side in (first, ~first):
            a[side] /= a[side].sum()
        system = self._meeting_equations(rows)
        size = np.abs(system).max(axis=1)
        size[size == 0] = 1.0
        weights = np.zeros(len(self.signs))
        weights[rows] = signs * a
        try:
            inverse = np.linalg.pinv(system / size[:, None], rcond=1e-14)
        except np.linalg.LinAlgError:
            return weights
        for _ in range(_REFINEMENTS):
            sums = np.array([a[first].sum(), a[~first].sum()])
            better = a - inverse @ (np.concatenate([self.between(weights)[0], sums - 1.0]) / size)
            if not (np.isfinite(better).all() and (better > 0).all()):
                break
            a = better
            weights[rows] = signs * a
        return weights

    def evaluate(self, weights: np.ndarray) -> HullMeeting:
        """Return how near the hulls come with these weights."""
        left, size = self.between(weights)
        sums = np.array([weights[self.positive].sum(), -weights[~self.positive].sum()])
        convex = (np.abs(sums - 1.0) <= np.count_nonzero(weights) * ROUNDING).all()
        proved = bool(convex and (np.abs(left) <= ROUNDING * size).all())
        return HullMeeting(weights, self.length(left), self.length(ROUNDING * size), proved)
