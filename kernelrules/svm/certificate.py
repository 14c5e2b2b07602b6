"""Certificates of solutions of dual problems: offsets, duality gap, and limits of float64.

With the gradient g = Kβ + p of `problems.Problem`, the primal objective for any offset b of each group is

    P = ½ βᵀKβ + Σ_groups [ b·Σa + Σ upper·(-g - kink - b)₊ + Σ |lower|·(g - kink + b)₊ ],

a sum of hinges: the primal of each of the five kinds. P is at least the dual objective D for every a and b, so P - D at
the offsets of a model certifies that model (Vapnik 1998, weak duality). The smallest P over b is found exactly by
sorting the hinges; it decides which of two solutions the solver continues from.

For a linear machine whose weights w are given besides a, because rounding leaves them apart, P is that of w, and P - D
contains ½‖w - Σ βx‖² besides what complementarity leaves.

A decision value is a sum of kernel values times coefficients. float64 keeps 16 digits of each term, so the sum can be
wrong by the size of the terms times 2⁻⁵². If that exceeds the tolerance, no solver in float64 reaches the tolerance,
and the certificate names the numbers (`Certificate.beyond`).

References
----------
- V. N. Vapnik (1998). Statistical Learning Theory. Wiley.
- C.-C. Chang and C.-J. Lin (2011). LIBSVM: a library for support vector machines. ACM TIST 2. The offset b as the mean
  over free variables, or the middle of the interval that the bounds allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kernelrules.core.svm import smo
from kernelrules.kernels.values import linear_values
from kernelrules.results import Certificate
from kernelrules.svm.problems import BOUND_RTOL, Problem

if TYPE_CHECKING:
    from kernelrules.svm.interior_points import PrimalDualPair
    from kernelrules.svm.kernel_values import KernelValues

__all__ = [
    "Solution",
    "beyond_float64",
    "certify",
    "certify_pair",
    "decision_rounding",
    "duality_gap",
    "offsets_of",
    "primal_and_dual",
]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved problem: variables, coefficients of points, gradient, one offset per group, and the certificate.

    `weights` are those of the columns, for a linear machine whose coefficients do not determine them.
    """

    problem: Problem
    a: np.ndarray
    beta: np.ndarray
    gradient: np.ndarray
    offsets: np.ndarray
    certificate: Certificate
    weights: np.ndarray | None = None

    @property
    def least_primal(self) -> float:
        """The primal objective at the best offsets; if the solver stopped early, below that of the certificate."""
        if self.weights is not None:
            return self.certificate.primal
        return primal_and_dual(self.problem, self.a, self.gradient)[0]

    @property
    def intercept(self) -> float:
        """The constant term of the decision function."""
        return float(self.offsets.mean())

    def decision(self) -> np.ndarray:
        """Return the decision values of the variables' points."""
        return self.gradient - self.problem.linear + self.intercept


def certify(
    values: KernelValues,
    problem: Problem,
    machine: smo.Machine,
    violation: float,
    tol: float,
    other_a: np.ndarray | None,
) -> Solution:
    """Return the solution that a machine holds, with its certificate.

    `other_a` are variables of a solution that the machine may not have reached; they too can prove that float64 has too
    few digits.
    """
    offsets = offsets_of(problem, machine.a, machine.gradient)
    primal, dual = primal_and_dual(problem, machine.a, machine.gradient, offsets)
    kkt = max(0.0, violation)
    beyond = None
    if kkt > tol:
        reason = beyond_float64(values, problem, machine.a, tol)
        beyond = reason if reason or other_a is None else beyond_float64(values, problem, other_a, tol)
    certificate = Certificate(float(primal), dual, float(primal - dual), kkt, machine.n_steps, kkt <= tol, beyond)
    beta = problem.beta(machine.a, values.n)
    return Solution(problem, machine.a, beta, machine.gradient, offsets, certificate)


def certify_pair(
    values: KernelValues, problem: Problem, pair: PrimalDualPair, machine: smo.Machine, tol: float
) -> Solution | None:
    """Return the solution made of weights and variables from interior points; None if decision values overflow."""
    decision = linear_values(values.x, pair.weights[:, None], values.n_threads)[:, 0]
    gradient = decision[problem.points()] + problem.linear
    if not np.isfinite(gradient).all():
        return None
    alone = smo.Machine(problem.segments, problem.lower, problem.upper, pair.a, gradient, problem.kink)
    distance = pair.half_square_distance / max(float(np.abs(pair.a).sum()), np.finfo(float).tiny)
    kkt = max(0.0, alone.current_violation(), distance)
    offsets = offsets_of(problem, pair.a, gradient)
    primal = 0.5 * float(np.square(pair.weights).sum()) + _hinges(problem, pair.a, gradient, offsets)
    dual = -(0.5 * pair.quadratic + _linear_part(problem, pair.a))
    beyond = None if kkt <= tol else beyond_float64(values, problem, pair.a, tol)
    certificate = Certificate(primal, dual, primal - dual, kkt, machine.n_steps, kkt <= tol, beyond)
    beta = problem.beta(pair.a, values.n)
    return Solution(problem, pair.a, beta, gradient, offsets, certificate, pair.weights)


# ---- objectives -------------------------------------------------------------------------------------------------


def primal_and_dual(
    problem: Problem, a: np.ndarray, gradient: np.ndarray, offsets: np.ndarray | None = None
) -> tuple[float, float]:
    """Return both objectives, with the signs of a minimisation over w: the dual is at most the primal.

    The primal is that of the given offsets, or of the best ones.
    """
    smooth = gradient - problem.linear
    quadratic = 0.5 * float((a * smooth).sum())  # not by BLAS, whose sums depend on its threads
    dual = -(quadratic + _linear_part(problem, a))
    return quadratic + _hinges(problem, a, gradient, offsets), dual


def duality_gap(problem: Problem, a: np.ndarray, gradient: np.ndarray) -> float:
    """Return the duality gap at the best offsets: an upper bound of the objective minus its minimum."""
    primal, dual = primal_and_dual(problem, a, gradient)
    return primal - dual


def _linear_part(problem: Problem, a: np.ndarray) -> float:
    """Return the dual objective without its quadratic term."""
    return float((problem.linear * a).sum()) + problem.kink * float(np.abs(a).sum())


def _hinges(problem: Problem, a: np.ndarray, gradient: np.ndarray, offsets: np.ndarray | None) -> float:
    """Return the primal objective without its quadratic term."""
    value = 0.0
    for number, members in enumerate(problem.groups()):
        g, kink = gradient[members], problem.kink
        total, upper, lower = float(a[members].sum()), problem.upper[members], np.abs(problem.lower[members])
        b = _best_offset(total, -g - kink, upper, -g + kink, lower) if offsets is None else float(offsets[number])
        hinges = (upper * np.maximum(-g - kink - b, 0.0)).sum() + (lower * np.maximum(b + g - kink, 0.0)).sum()
        value += total * b + float(hinges)
    return value


def _best_offset(
    slope: float, right: np.ndarray, right_weight: np.ndarray, left: np.ndarray, left_weight: np.ndarray
) -> float:
    """Return the b that minimises slope·b + Σ right_weight·(right - b)₊ + Σ left_weight·(b - left)₊."""
    places = np.concatenate([right, left])
    weights = np.concatenate([right_weight, left_weight])
    used = weights > 0
    if not used.any():
        return 0.0
    order = np.argsort(places[used], kind="stable")
    places_used = places[used][order]
    slopes = slope - right_weight.sum() + np.cumsum(weights[used][order])
    at = min(int(np.searchsorted(slopes, 0.0)), len(places_used) - 1)
    return float(places_used[at])


def offsets_of(problem: Problem, a: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the b of each group: the mean over its free variables, or the middle of the interval that bounds allow."""
    slope_up = np.where(a >= 0, problem.kink, -problem.kink)
    slope_down = np.where(a > 0, problem.kink, -problem.kink)
    offsets = []
    for members in problem.groups():
        x, g = a[members], gradient[members]
        margin = BOUND_RTOL * (problem.upper[members] - problem.lower[members])
        can_grow, can_shrink = x < problem.upper[members] - margin, x > problem.lower[members] + margin
        free = can_grow & can_shrink & ((x != 0) | (problem.kink == 0))
        if free.any():
            offsets.append(-(g + slope_up[members])[free].mean())
            continue
        most = (-(g + slope_up[members]))[can_grow].max(initial=-np.inf)
        least = (-(g + slope_down[members]))[can_shrink].min(initial=np.inf)
        sides = [side for side in (most, least) if np.isfinite(side)]
        offsets.append(float(np.mean(sides)) if sides else 0.0)
    return np.array(offsets)


# ---- digits -----------------------------------------------------------------------------------------------------


def decision_rounding(diagonal: np.ndarray, beta: np.ndarray) -> float:
    """Return a bound of the rounding error of a decision value, by k(x, z)² ≤ k(x, x)·k(z, z)."""
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.sqrt(np.abs(diagonal.astype(np.float64)))
        return float(_EPS * sizes.max(initial=0.0) * (sizes * np.abs(beta)).sum())


def beyond_float64(values: KernelValues, problem: Problem, a: np.ndarray, tol: float) -> str | None:
    """Return a sentence that names the numbers with too many digits; None if rounding stays below tol."""
    diagonal = values.known_diagonal()
    if diagonal is None:
        return None
    rounding = decision_rounding(diagonal, problem.beta(np.abs(a), values.n))
    if not rounding > tol:
        return None
    return (
        f"kernel values up to {np.abs(diagonal).max():.3g} ({values.largest_entry()}) times coefficients up to "
        f"{np.abs(a).max():.3g} have more digits than float64: decision values are uncertain by up to {rounding:.2g}, "
        f"where {tol:.3g} is allowed"
    )
