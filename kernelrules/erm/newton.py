"""Newton's method for  P(f, b) = Σ cᵢ L(yᵢ (f(xᵢ) + b)) + λ‖f‖²,  c = w / Σw,  and its certificate.

The Fenchel dual, over functions f_a = Σ aⱼ k(xⱼ, ·):

    D(a) = -Σ cᵢ L*(-vᵢ) - λ‖f_a‖²,    vᵢ = 2λ yᵢ aᵢ / cᵢ,    Σ a = 0 if there is an intercept.

With u the margins of f, and any such v and a,

    P(f, b) - D(a) = Σ cᵢ (L(uᵢ) + L*(-vᵢ) + vᵢ uᵢ) + λ‖f - f_a‖²,

a sum of non-negative terms. The slopes v = -L'(u) make the first sum 0, and the v of f's own coefficients, if it has
any, the second term. Either v is made feasible, a bound of the rounding is added, and the smaller gap is reported. At
the optimum both are 0, because 2λ (f - f_a) for v = -L'(u) is the gradient of P. Along a Newton step P is minimised
over the step length, at O(n) per trial, so P never rises.

References
----------
- O. Chapelle (2007). Training a support vector machine in the primal. Neural Computation 19, 1155-1178. Newton's
  method on the coefficients.
- R. T. Rockafellar (1970). Convex Analysis. Princeton University Press. The Fenchel dual.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.erm.systems import Gradient, System
from kernelrules.losses import Loss
from kernelrules.results import Certificate

__all__ = ["Problem", "Solution", "balanced", "certify", "hidden_gap", "minimise", "relative_gap"]

_SLOPE_RTOL = 0.05  # of the slope at the start of a step: a smaller slope ends the line search
_MAX_TRIALS = 60  # of the line search
_MAX_STALLED_STEPS = 4  # steps without progress after which rounding ends the fit
_PROGRESS_RTOL = 1e-10  # of P: a smaller decrease is no progress
_NEGLIGIBLE_GAP = 1e-12  # of P: a gap that needs no comparison


@dataclass(frozen=True, eq=False)
class Problem:
    """One machine on the points of a system."""

    system: System
    loss: Loss
    lam: float
    y: np.ndarray  # ±1
    share: np.ndarray  # c: weights that add up to 1, none of them 0
    intercept: bool


@dataclass(frozen=True, eq=False)
class Solution:
    """A function, its dual point, and its certificate."""

    theta: np.ndarray
    b: float
    a: np.ndarray
    norm: float
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class _Point:
    """A function, the gradient of P there, and the gap to a dual point."""

    gradient: Gradient  # with the a of v = -L'(u), whose sum need not be 0
    b: float
    square: float  # ‖f‖²
    primal: float
    a: np.ndarray  # the dual point
    kkt: float
    gap: float  # with a bound of its rounding
    primal_rounding: float  # a bound of the rounding error of the primal objective


def _evaluate(problem: Problem, theta: np.ndarray, b: float) -> _Point:
    """Return the objective, gradient and gap of a function."""
    system, loss, lam, share, y = problem.system, problem.loss, problem.lam, problem.share, problem.y
    values = system.values(theta)
    u = y * (values + b)
    v = -loss.first(u)
    inner = system.inner(theta, theta, values)
    square, below = max(inner, 0.0), max(-inner, 0.0)  # the second is positive if K is not quite positive semi-definite
    primal = float(share @ loss.value(u)) + lam * square
    value_rounding, square_rounding = system.rounding(theta)
    slopes_a = share * y * v / (2 * lam)
    e = theta - system.of_dual(slopes_a)
    e_values = system.values(e)
    kkt = 2 * lam * float(np.abs(e_values).max())
    if not problem.intercept:
        a, gap = slopes_a, hidden_gap(problem, u, v, value_rounding) + lam * _square(system, e, e_values)
    else:
        a, gap = _dual_point(problem, theta, u, value_rounding, balanced(v, y, share, loss))
        kkt = max(kkt, abs(float((share * y) @ v)))
    coefficients = system.dual_of(theta)
    if coefficients is not None:
        clipped = np.clip(2 * lam * y * coefficients / share, -loss.slopes[1], -loss.slopes[0])
        clipped = balanced(clipped, y, share, loss) if problem.intercept else clipped
        other, its_gap = _dual_point(problem, theta, u, value_rounding, clipped)
        if its_gap < gap or math.isnan(gap):
            a, gap = other, its_gap
    primal_rounding = float((share * np.abs(v)) @ np.broadcast_to(value_rounding, v.shape)) + lam * (
        square_rounding + below
    )
    gradient = Gradient(theta, values, slopes_a, e, e_values)
    return _Point(gradient, b, square, primal, a, kkt, gap + lam * below, primal_rounding)


def _square(system: System, theta: np.ndarray, values: np.ndarray) -> float:
    """Return ‖f‖² plus a bound of its rounding."""
    return abs(system.inner(theta, theta, values)) + system.rounding(theta)[1]


def hidden_gap(problem: Problem, u: np.ndarray, v: np.ndarray, value_rounding: np.ndarray | float) -> float:
    """Return how much larger Σ c (L(u) + L*(-v) + v u), convex in u, is at the worse end of u ± value_rounding."""
    if not np.any(value_rounding):
        return 0.0
    here, value = problem.loss.value(u), problem.loss.value
    worse = np.maximum(
        value(u + value_rounding) - here + v * value_rounding, value(u - value_rounding) - here - v * value_rounding
    )
    return float(problem.share @ np.maximum(worse, 0.0))


def _dual_point(
    problem: Problem, theta: np.ndarray, u: np.ndarray, value_rounding: np.ndarray | float, v: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return a and the gap for slopes v of the loss, with Σ c y v = 0 if there is an intercept."""
    system, loss, share = problem.system, problem.loss, problem.share
    a = share * problem.y * v / (2 * problem.lam)
    if np.isnan(v).any():
        return a, math.nan
    apart = theta - system.of_dual(a)
    square = _square(system, apart, system.values(apart)) if apart.any() else 0.0
    pairs = np.maximum(loss.value(u) + loss.conjugate(-v) + v * u, 0.0)  # below 0 by rounding only
    return a, float(share @ pairs) + hidden_gap(problem, u, v, value_rounding) + problem.lam * square


def balanced(v: np.ndarray, y: np.ndarray, share: np.ndarray, loss: Loss) -> np.ndarray:
    """Return slopes near v with Σ c y v = 0, and -v still a slope of the loss: the heavier side is scaled down."""
    surplus = float((share * y) @ v)
    if surplus == 0:
        return v
    if loss.slopes[1] > 0:  # every slope is allowed
        return v - surplus * y
    heavy = y == math.copysign(1.0, surplus)
    weight = float(share[heavy] @ v[heavy])
    return np.where(heavy, v * max(0.0, 1.0 - abs(surplus) / weight), v)


def certify(problem: Problem, theta: np.ndarray, b: float = 0.0, tol: float = 1e-8) -> Certificate:
    """Return the certificate of any function.

    Parameters
    ----------
    problem : Problem
        The objective.
    theta : ndarray
        Coefficients or weights, by the problem's system.
    b : float
        The intercept.
    tol : float
        The gap relative to the primal objective that counts as converged.

    Returns
    -------
    Certificate
        After no iterations.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        point = _evaluate(problem, theta, b)
    return _certificate(problem, point, _least(problem), 0, tol)


def relative_gap(gap: float, primal: float) -> float:
    """Return the gap relative to the objective; infinite if the objective rounds to 0.

    Parameters
    ----------
    gap, primal : float
        Of a certificate.

    Returns
    -------
    float
        gap / primal.
    """
    if primal > 0:
        return gap / primal
    return 0.0 if gap == 0 else math.inf


def _least(problem: Problem) -> float:
    """Return D(0), the minimum of the loss: 0 for all losses of `kernelrules.losses`."""
    return 0.0 - problem.loss.conjugate(0.0)


def _certificate(problem: Problem, point: _Point, bound: float, iterations: int, tol: float) -> Certificate:
    """Return the certificate of a point, with the best known lower bound; a gap of NaN (overflow) is ignored."""
    gap = max(point.primal + point.primal_rounding - bound, 0.0)
    if point.gap <= tol * point.primal:
        gap = min(gap, point.gap)
    elif point.gap + point.primal_rounding < gap:  # rounding dominates: the dual remains a lower bound
        gap = point.gap + point.primal_rounding
    dual = max(point.primal - gap, _least(problem))  # a lower bound for any rounding
    return Certificate(point.primal, dual, gap, point.kkt, iterations, bool(gap <= tol * point.primal))


def minimise(problem: Problem, tol: float, max_iter: int, report: Callable[[int, float], Any]) -> Solution:
    """Take Newton steps from f = 0 until the gap is at most tol · P, or max_iter or rounding ends the fit.

    Parameters
    ----------
    problem : Problem
        The machine.
    tol : float
        Relative gap.
    max_iter : int
        Most steps.
    report : callable
        Called as report(iterations, relative gap) before each step.

    Returns
    -------
    Solution
        The last point, which has the smallest primal objective; coefficients in the form of the dual solution.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        point = _evaluate(problem, problem.system.zero(), 0.0)
        bound, smallest, stalls, iterations = _least(problem), math.inf, 0, 0
        while True:
            bound = max(bound, point.primal - point.primal_rounding - point.gap)  # max ignores a second argument of NaN
            certificate = _certificate(problem, point, bound, iterations, tol)
            report(iterations, relative_gap(certificate.gap, point.primal))
            if certificate.converged or iterations == max_iter or stalls == _MAX_STALLED_STEPS:
                break
            following = _step(problem, point)
            if following is None:
                break
            iterations += 1
            progress = following.primal < (1 - _PROGRESS_RTOL) * point.primal or following.gap < 0.9 * smallest
            stalls = 0 if progress else stalls + 1
            smallest = min(smallest, following.gap)
            point = following
        polished = _in_dual_form(problem, point)
        level = certificate.converged or polished.primal <= (1 + _PROGRESS_RTOL) * point.primal
        if level and polished.gap <= max(point.gap, min(_NEGLIGIBLE_GAP, tol) * point.primal):
            point, certificate = polished, _certificate(problem, polished, bound, iterations, tol)
    return Solution(point.gradient.theta, point.b, point.a, math.sqrt(point.square), certificate)


def _in_dual_form(problem: Problem, point: _Point) -> _Point:
    """Return nearly the same function, by its dual point: unique coefficients if K is singular, not 0 if λ is large."""
    v = 2 * problem.lam * problem.y * point.gradient.a / problem.share
    if problem.intercept:
        v = balanced(v, problem.y, problem.share, problem.loss)
    return _evaluate(problem, problem.system.of_dual(problem.share * problem.y * v / (2 * problem.lam)), point.b)


def _step(problem: Problem, point: _Point) -> _Point | None:
    """Return the next point, or None if no step lowers the objective."""
    u = problem.y * (point.gradient.values + point.b)
    curvature = problem.share * problem.loss.second_order(u) / (2 * problem.lam)
    newton = problem.system.step(curvature, point.gradient, problem.intercept)
    for direction, shift in (newton, (-point.gradient.e, 0.0)):
        length = _step_length(problem, point, direction, shift)
        if length > 0:
            following = _evaluate(problem, point.gradient.theta + length * direction, point.b + length * shift)
            level = following.primal <= (1 + _PROGRESS_RTOL) * point.primal
            if following.primal < point.primal or (level and following.gap < point.gap):
                return following
    return None


def _step_length(problem: Problem, point: _Point, direction: np.ndarray, shift: float) -> float:
    """Return t where the slope of the convex φ(t) = P(point + t·direction) is near 0; 0 if it is not downhill."""
    system, loss, lam, share = problem.system, problem.loss, problem.lam, problem.share
    change = system.values(direction)
    u, du = problem.y * (point.gradient.values + point.b), problem.y * (change + shift)
    cross, square = (
        system.inner(point.gradient.theta, direction, change),
        max(system.inner(direction, direction, change), 0.0),
    )

    def slope(t: float) -> float:
        """Return φ'(t); infinity for overflow, which only decreasing margins cause."""
        total = float(share @ (loss.first(u + t * du) * du)) + 2 * lam * (cross + t * square)
        return math.inf if math.isnan(total) else total

    start = slope(0.0)
    if not start < 0:
        return 0.0
    low, high, t = 0.0, math.inf, 1.0
    at_low, at_high = start, math.inf
    for _ in range(_MAX_TRIALS):
        here = slope(t)
        if abs(here) <= _SLOPE_RTOL * abs(start):
            return t
        if here < 0:
            low, at_low = t, here
        else:
            high, at_high = t, here
        if math.isinf(high):
            t *= 2.0
        elif math.isinf(at_high):
            t = (low + high) / 2
        else:  # the zero of the chord of the slope, kept away from the ends
            t = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
    return low
