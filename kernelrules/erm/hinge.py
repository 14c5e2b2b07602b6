"""The hinge loss by reduction to the dual solver of support vector machines (core/svm/smo.pyx).

P(f, b) = Σ cᵢ max(0, 1 - yᵢ (f(xᵢ) + b)) + λ‖f‖² divided by 2λ is the soft-margin machine with costs Cᵢ = cᵢ/2λ:

    minimise  ½ aᵀKa - yᵀa   over  0 ≤ yᵢ aᵢ ≤ Cᵢ,  Σ a = 0,        f = Σ aⱼ k(xⱼ, ·)

The solver keeps the sum of its variables, which is the condition of an intercept. Without an intercept the sum is free:
one spare variable, whose kernel values are all 0 and whose bounds are never reached, takes the negative sum of the
others. Its gradient is 0, so the solver's offset is 0 as well.

The solver's violation of the optimality conditions bounds the gap, and is lowered until the gap of the λ form, computed
from float64 values of the function itself, is small enough. If SMO takes many steps, the variables between their bounds
are solved for from their own equations, K_FF d = -g_F, as far as the bounds allow. No such step raises the dual
objective.

References
----------
- J. C. Platt (1998). Sequential minimal optimization: a fast algorithm for training support vector machines. Microsoft
  Research technical report MSR-TR-98-14.
- K. Scheinberg (2006). An efficient implementation of an active set method for SVMs. Journal of Machine Learning
  Research 7, 2237-2257. The Newton step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.core.svm import smo
from kernelrules.erm.newton import Problem, Solution, balanced, hidden_gap, relative_gap
from kernelrules.results import Certificate

__all__ = ["DEFAULT_MAX_STEPS", "minimise"]

DEFAULT_MAX_STEPS = 10_000_000  # of the solver per machine, or _DEFAULT_STEPS_PER_POINT if that is more
_DEFAULT_STEPS_PER_POINT = 100
_MAX_TOTAL_COST = 1e100  # larger costs times kernel values would overflow float64
_FIRST_VIOLATION, _VIOLATION_FACTOR, _LAST_VIOLATION = 1e-3, 0.1, 1e-15  # aims of successive rounds
_ROUND_STEPS = 20_000  # and 20 per point, before free variables are solved for; doubled after each unfinished round
_MAX_NEWTON_ROUNDS = 30  # of equations for free variables, each with one variable less
_MAX_FREE = 3000  # free variables up to which their equations are solved
_RIDGE = 1e-12  # added to K_FF, relative to its mean diagonal, against rounding
_MAX_ENLARGEMENT = 1e-6  # relative, of a function against rounding
_STALLED_ROUND_STEPS = 200  # of a round that follows one without progress
_MAX_STALLED_ROUNDS = 6  # rounds without a smaller gap after which rounding ends the fit


@dataclass(frozen=True, eq=False)
class _Point:
    """A dual point, its function, the best intercept, and their gap."""

    a: np.ndarray
    theta: np.ndarray
    b: float
    square: float
    primal: float
    gap: float


def default_steps(n: int) -> int:
    """Return the default limit of solver steps on n points."""
    return max(DEFAULT_MAX_STEPS, _DEFAULT_STEPS_PER_POINT * n)


def minimise(problem: Problem, tol: float, max_iter: int, report: Callable[[int, float], Any]) -> Solution:
    """Run the dual solver until the gap is at most tol · P, max_iter steps are done, or rounding prevents progress.

    Parameters
    ----------
    problem : Problem
        The machine; its loss is the hinge.
    tol : float
        Relative gap.
    max_iter : int
        Most steps of the solver.
    report : callable
        Called as report(steps, relative gap) between rounds.

    Returns
    -------
    Solution
        The point with the smallest gap, as a function of its dual coefficients.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        dual = _Dual(problem)
        best = _evaluate(problem, dual.coefficients())
        violation, least, stalls, aim = math.inf, math.inf, 0, _FIRST_VIOLATION
        while True:
            report(dual.n_steps, relative_gap(best.gap, best.primal))
            if best.gap <= tol * best.primal or dual.n_steps >= max_iter or stalls >= _MAX_STALLED_ROUNDS:
                break
            dual.solve(aim, max_iter)
            point = _evaluate(problem, dual.coefficients())
            if point.gap > tol * point.primal and dual.solve_free():
                point = _evaluate(problem, dual.coefficients())
            lower = dual.violation()
            better = point.gap < 0.9 * best.gap or lower < 0.9 * least
            stalls = 0 if better or dual.unfinished() else stalls + 1
            dual.set_round_steps(better)
            least = min(least, lower)
            if lower <= aim or stalls > 1:
                aim = max(min(aim, lower) * _VIOLATION_FACTOR, _LAST_VIOLATION)
            if point.gap < best.gap or math.isnan(best.gap):
                best, violation = point, lower
        kkt = violation if math.isfinite(violation) else dual.violation()
    converged = bool(best.gap <= tol * best.primal)
    certificate = Certificate(best.primal, max(best.primal - best.gap, 0.0), best.gap, kkt, dual.n_steps, converged)
    return Solution(best.theta, best.b, best.a, math.sqrt(best.square), certificate)


def _evaluate(problem: Problem, a: np.ndarray) -> _Point:
    """Return the function of dual coefficients with the best intercept for it, and its gap.

    With v = 2λ y a / c, between 0 and 1, P - D = Σ c (L(u) - v + v u) + λ‖f - f_a‖², a sum of non-negative terms. The
    gap includes a bound of its rounding. Margins of 1 may round to slightly less than 1, which can make that bound too
    large; a function enlarged by more than the rounding avoids this.
    """
    system, lam, share, y = problem.system, problem.lam, problem.share, problem.y
    v = np.clip(2 * lam * y * a / share, 0.0, 1.0)
    if problem.intercept:
        v = balanced(v, y, share, problem.loss)
    a = share * y * v / (2 * lam)
    theta = system.of_dual(a)
    values = system.values(theta)
    b = _best_intercept(values, y, share) if problem.intercept else 0.0
    value_rounding = system.rounding(theta)[0]
    u = y * (values + b)
    inner = system.inner(theta, theta, values)
    square, below = max(inner, 0.0), max(-inner, 0.0)

    def point(larger: float) -> _Point:
        at = (1 + larger) * u
        primal = float((share * problem.loss.value(at)).sum()) + lam * (1 + larger) ** 2 * square
        pairs = np.maximum(problem.loss.value(at) - v + v * at, 0.0)
        gap = (
            float((share * pairs).sum())
            + hidden_gap(problem, at, v, value_rounding)
            + lam * (below + larger * larger * square)
        )
        return _Point(a, (1 + larger) * theta, (1 + larger) * b, (1 + larger) ** 2 * square, primal, gap)

    plain, larger = point(0.0), 2 * float(np.max(value_rounding))
    return min(plain, point(larger), key=lambda each: each.gap) if 0 < larger < _MAX_ENLARGEMENT else plain


def _best_intercept(values: np.ndarray, y: np.ndarray, share: np.ndarray) -> float:
    """Return the b that minimises Σ c max(0, 1 - y (f + b)): where the slope of this sum of hinges changes its sign,
    or the middle of the interval where it is 0."""
    places = y - values
    order = np.argsort(places, kind="stable")
    slopes = np.cumsum(share[order]) - float(share[y > 0].sum())
    flat = len(y) * np.finfo(np.float64).eps
    first = min(int(np.searchsorted(slopes, -flat)), len(y) - 1)
    last = min(int(np.searchsorted(slopes, flat)), len(y) - 1)
    return float(places[order[first]] / 2 + places[order[last]] / 2)


class _Dual:
    """The dual problem in the solver's form, and its state."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.n = problem, len(problem.y)
        cost = problem.share / (2 * problem.lam)
        total = float(cost.sum())
        if not total <= _MAX_TOTAL_COST:
            raise ValueError(f"lam is too small for the hinge loss: 1 / (2 lam) must be at most {_MAX_TOTAL_COST:g}")
        self.spare = int(not problem.intercept)  # variables that take the negative sum of the others
        ends = [2 * total] * self.spare
        self.upper = np.concatenate([np.where(problem.y > 0, cost, 0.0), ends])
        self.lower = np.concatenate([np.where(problem.y > 0, 0.0, -cost), np.negative(ends)])
        self.linear = np.concatenate([-problem.y, np.zeros(self.spare)])
        self.rows = problem.system.rows(self.spare)
        self.round_steps, self.stalled = _ROUND_STEPS + 20 * self.n, False
        self.machine = smo.Machine(
            ((0, len(self.upper), 0, 0),), self.lower, self.upper, np.zeros(len(self.upper)), self.linear.copy()
        )

    @property
    def n_steps(self) -> int:
        return self.machine.n_steps

    def coefficients(self) -> np.ndarray:
        """Return the dual coefficients of the points."""
        return self.machine.a[: self.n]

    def violation(self) -> float:
        """Return the violation of the optimality conditions, with a newly computed gradient."""
        system = self.problem.system
        self.machine.gradient[: self.n] = system.values(system.of_dual(self.coefficients())) - self.problem.y
        return max(float(self.machine.current_violation()), 0.0)

    def solve(self, aim: float, max_iter: int) -> None:
        """Take SMO steps, to a violation of at most `aim` or for as many steps as a round may take."""
        system = self.problem.system
        limit = min(max_iter, self.n_steps + self.round_steps)
        smo.solve(self.rows, [self.machine], aim, limit, system.n_threads, lambda *_: system.check_interrupt())

    def unfinished(self) -> bool:
        """Return whether the last round ended only by its limit of steps; False once a round has stalled."""
        return self.machine.unfinished and not self.stalled

    def set_round_steps(self, better: bool) -> None:
        """Set how many steps the next round may take.

        From the first round on that ends without progress, `aim` may be below the rounding of the gradient. The solver
        then recomputes the gradient at every step and does not end, so rounds are short until one makes progress.
        """
        if self.machine.unfinished:
            self.round_steps *= 2
        elif not better:
            self.stalled = True
        if self.stalled and not better:
            self.round_steps = _STALLED_ROUND_STEPS

    def solve_free(self) -> bool:
        """Solve for the variables between their bounds; returns False, and changes nothing, if that does not lower the
        violation."""
        before, earlier = self.violation(), self.machine.a.copy()
        for _ in range(_MAX_NEWTON_ROUNDS):
            a, gradient = self.coefficients(), self.machine.gradient[: self.n]
            free = np.flatnonzero((a > self.lower[: self.n]) & (a < self.upper[: self.n]))
            if not 0 < len(free) <= _MAX_FREE:
                break
            self.violation()
            d = self._direction(free, gradient[free])
            if d is None:
                break
            room = np.where(d > 0, self.upper[free] - a[free], a[free] - self.lower[free])
            lengths = np.divide(room, np.abs(d), out=np.full(len(d), np.inf), where=d != 0)
            t = min(1.0, float(lengths.min()))
            there = np.clip(a[free] + t * d, self.lower[free], self.upper[free])
            ends = np.where(d > 0, self.upper[free], self.lower[free])
            a[free] = np.where(lengths <= t, ends, there) if t < 1 else there
            if self.spare:
                self.machine.a[self.n] = -a.sum()
            if t == 1:
                break
        self.machine.reset_masks()
        better = self.violation() < before
        if not better:  # K_FF is singular up to rounding
            self.machine.a[...] = earlier
            self.machine.reset_masks()
            self.violation()
        return better

    def _direction(self, free: np.ndarray, slope: np.ndarray) -> np.ndarray | None:
        """Return d with K_FF d = -slope, up to a constant if Σd must be 0; None if K_FF is singular."""
        solve = self.problem.system.free_solver(free, _RIDGE)
        if solve is None:
            return None
        d = -solve(slope)
        if self.problem.intercept:
            if len(free) == 1:
                return None
            ones = solve(np.ones(len(free)))
            d -= ones * (d.sum() / ones.sum())
            d -= d.mean()
        return d if np.isfinite(d).all() and d.any() else None
