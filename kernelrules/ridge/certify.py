"""Certificates of ridge regression: primal objective, dual objective and gap at any α, optimal or not.

With r = y - Kα - b, and b the weighted mean that minimises the primal (0 without a constant),

    P(α) = (1/W) Σ wᵢ rᵢ² + λ αᵀKα
    D(α) = 2λ αᵀy - λ αᵀKα - λ² W Σ αᵢ²/wᵢ                     (Σα = 0, if there is a constant)
    P - D = (1/W) Σ wᵢ (rᵢ - λWαᵢ/wᵢ)² ≥ 0                     zero at the optimum only

The gap is computed by its own formula: the difference of two nearly equal objectives would be rounding error.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.results import Certificate, ConvergenceWarning
from kernelrules.ridge.problem import Problem

__all__ = [
    "Objectives",
    "Solved",
    "Worth",
    "better_of",
    "from_worth",
    "warn_unless_converged",
    "worth",
]

ROUNDS = 4  # improvements of a factorisation's solution, after which what is left is rounding error
EXACT = 1e-24  # relative gap that is not worth improving: twelve digits of the residual
ROUNDING = 64 * np.finfo(np.float64).eps  # of targets or weights: what violates by less cannot be improved


@dataclass(frozen=True, eq=False)
class Objectives:
    """Primal and dual objectives and gaps, (t,), one a target; and of all of them together."""

    primals: np.ndarray
    duals: np.ndarray
    gaps: np.ndarray

    @property
    def primal(self) -> float:
        """Of all targets together."""
        return float(self.primals.sum())

    @property
    def dual(self) -> float:
        """Of all targets together."""
        return float(self.duals.sum())

    @property
    def gap(self) -> float:
        """Of all targets together."""
        return float(self.gaps.sum())


@dataclass(frozen=True, eq=False)
class Worth(Objectives):
    """Objectives and residuals of coefficients.

    Attributes
    ----------
    constant : ndarray (t,)
        The b that is best for them.
    residual : ndarray (t, n)
        r - λWα/w: what the optimality conditions are violated by.
    """

    constant: np.ndarray
    residual: np.ndarray

    @property
    def kkt(self) -> float:
        """The largest violation."""
        return float(np.abs(self.residual).max(initial=0.0))

    def settled(self, tol: float, y: np.ndarray) -> bool:
        """Whether the gap of every target is at most tol of its primal objective, or nothing but rounding error."""
        rounding = np.abs(self.residual).max(axis=1) <= ROUNDING * np.abs(y).max(axis=1)
        with np.errstate(over="ignore"):  # a tolerance that large is kept
            return bool(((self.gaps <= tol * self.primals) | rounding).all())

    def certificate(self, iterations: int, tol: float, y: np.ndarray) -> Certificate:
        """Return the certificate of a solution after so many iterations; `settled` is whether it converged."""
        return Certificate(self.primal, self.dual, self.gap, self.kkt, iterations, self.settled(tol, y))


def worth(problem: Problem, alpha: np.ndarray, at_points: np.ndarray) -> Worth:
    """Evaluate objectives, gap and residual at coefficients (t, n); `at_points` is their product with K."""
    noise, lam = problem.noise, problem.lam
    errors = problem.y - at_points
    constant = problem.means(errors)
    errors -= constant[:, None]
    residual = errors - noise * alpha
    norms = (alpha * at_points).sum(axis=1)
    primals = (problem.weight * errors**2).sum(axis=1) / problem.total + lam * norms
    centred = problem.y - problem.means(problem.y)[:, None]  # the same where Σα = 0, but for rounding
    duals = lam * (2 * (alpha * centred).sum(axis=1) - norms - (noise * alpha * alpha).sum(axis=1))
    gaps = (problem.weight * residual**2).sum(axis=1) / problem.total
    return Worth(primals, duals, gaps, constant, residual)


def better_of(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, Worth]:
    """Of two solutions (α, α · K, worth) the better one for every target."""
    pick = second[2].gaps < first[2].gaps
    rows = [np.where(pick[:, None], b, a) for a, b in zip(first[:2], second[:2], strict=True)]
    one, two = first[2], second[2]
    numbers = [np.where(pick, getattr(two, f), getattr(one, f)) for f in ("primals", "duals", "gaps", "constant")]
    return rows[0], rows[1], Worth(*numbers, np.where(pick[:, None], two.residual, one.residual))


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution: coefficients (t, n), f at all m points (t, m), constants (t,), and how good it is."""

    alpha: np.ndarray
    fitted: np.ndarray
    constant: np.ndarray
    certificate: Certificate
    weights: np.ndarray | None = None
    factor: np.ndarray | None = None


def from_worth(
    problem: Problem,
    alpha: np.ndarray,
    values: np.ndarray,
    found: Worth,
    done: int,
    tol: float,
    lower: Any = None,
) -> Solved:
    """A solution of one of the kernel's forms; `values` is alpha · K."""
    fitted = problem.all_values(alpha, found.constant, values)
    return Solved(alpha, fitted, found.constant, found.certificate(done, tol, problem.y), factor=lower)


def warn_unless_converged(found: Certificate) -> None:
    """Warn with a bound of the distance from the optimum."""
    if not found.converged:
        warnings.warn(
            f"the tolerance was not reached: the duality gap is {found.gap:.3g} at an objective of {found.primal:.3g} "
            f"after {found.iterations} iterations. A larger lam, another kernel width or (for cg) max_iter and "
            "n_components help",
            ConvergenceWarning,
            stacklevel=check.level_of_caller(),
        )
