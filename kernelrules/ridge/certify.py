"""What coefficients are worth: primal, dual and gap at any α, optimal or not.

With r = y - Kα - b, and b the weighted mean that makes the primal smallest (or 0 where there is no constant),

    P(α) = (1/W) Σ wᵢ rᵢ² + λ αᵀKα
    D(α) = 2λ αᵀy - λ αᵀKα - λ² W Σ αᵢ²/wᵢ                     (where Σα = 0, if there is a constant)
    P - D = (1/W) Σ wᵢ (rᵢ - λWαᵢ/wᵢ)² ≥ 0                     zero at the optimum only

The gap is computed by its own formula: the difference of two nearly equal objectives would be rounding error.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.results import Certificate
from kernelrules.ridge.problem import Problem

__all__ = ["ConvergenceWarning", "Solved", "Worth", "certified", "from_worth", "worth"]

ROUNDS = 4  # improvements of a factorisation's solution, after which what is left is rounding error
EXACT = 1e-24  # relative gap that is not worth improving: twelve digits of the residual
_ROUNDING = 64 * np.finfo(np.float64).eps  # of the targets: residuals below it cannot be improved


class ConvergenceWarning(UserWarning):
    """The solver stopped before the tolerance was reached; the certificate says how good the answer is."""


@dataclass(frozen=True, eq=False)
class Worth:
    """Objectives and residuals of coefficients.

    Attributes
    ----------
    primal, dual, gap : float
        Of the sum over targets.
    constant : ndarray (t,)
        The b that is best for them.
    residual : ndarray (t, n)
        r - λWα/w: what the optimality conditions are violated by.
    """

    primal: float
    dual: float
    gap: float
    constant: np.ndarray
    residual: np.ndarray

    @property
    def kkt(self) -> float:
        """The largest violation."""
        return float(np.abs(self.residual).max(initial=0.0))

    def settled(self, tol: float, y: np.ndarray) -> bool:
        """Whether the gap is at most tol of the primal objective, or nothing but rounding error."""
        return self.gap <= tol * self.primal or self.kkt <= _ROUNDING * float(np.abs(y).max(initial=0.0))


def worth(problem: Problem, alpha: np.ndarray, at_points: np.ndarray) -> Worth:
    """Of coefficients (t, n) whose product with the kernel matrix is `at_points`."""
    noise, lam = problem.noise, problem.lam
    errors = problem.y - at_points
    constant = problem.means(errors)
    errors -= constant[:, None]
    residual = errors - noise * alpha
    norm = float((alpha * at_points).sum())
    primal = float((problem.weight * errors**2).sum()) / problem.total + lam * norm
    centred = problem.y - problem.means(problem.y)[:, None]  # the same where Σα = 0, but for rounding
    dual = lam * (2 * float((alpha * centred).sum()) - norm - float((noise * alpha**2).sum()))
    gap = float((problem.weight * residual**2).sum()) / problem.total
    return Worth(primal, dual, gap, constant, residual)


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution: coefficients (t, n), f at all m points (t, m), constants (t,), and how good it is."""

    alpha: np.ndarray
    fitted: np.ndarray
    constant: np.ndarray
    primal: float
    dual: float
    gap: float
    kkt: float
    iterations: int
    converged: bool
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
    return Solved(
        alpha, fitted, found.constant, found.primal, found.dual, found.gap, found.kkt, done,
        found.settled(tol, problem.y), None, lower,
    )  # fmt: skip


def certified(primal: float, dual: float, gap: float, kkt: float, iterations: int, converged: bool) -> Certificate:
    """The certificate; with a warning where the solution did not converge."""
    if not converged:
        warnings.warn(
            f"the tolerance was not reached: the duality gap is {gap:.3g} at an objective of {primal:.3g} after "
            f"{iterations} iterations. A larger lam, another kernel width or (for cg) max_iter and n_components help",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Certificate(primal, dual, gap, kkt, iterations, converged)
