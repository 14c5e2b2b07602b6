"""The first form: ŵ = (ΨᵀWΨ + λW I)⁻¹ ΨᵀWy, over the features of a kernel that has an exact feature map.

Rows are mapped by blocks, twice or more, and never stored. A constant is eliminated by centring. For any w, with
α = w(y - f)/(λW), the gap P(w) - D(α) is λ‖w - Ψᵀα‖²: zero where the normal equations hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import is_callable, plain, take
from kernelrules.results import Certificate
from kernelrules.ridge.certify import EXACT, ROUNDING, ROUNDS, Objectives, Solved
from kernelrules.ridge.definite import factor_definite
from kernelrules.ridge.factor import solve
from kernelrules.ridge.problem import Problem

__all__ = ["Features", "cheapest", "feature_solution", "features"]

_BLOCK_NUMBERS = 1 << 22  # mapped features made at a time


class Features:
    """Mapped points in blocks of rows, centred by their weighted mean where there is a constant."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.map = kernels.feature_map(problem.kernel, problem.points.shape[1])
        self.q = self.map.n_components
        self.step = max(64, min(8192, _BLOCK_NUMBERS // self.q))
        self.mean = np.zeros(self.q)
        if problem.intercept:
            for rows, psi in self.blocks():
                self.mean += problem.weight[rows] @ psi / problem.total

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows of the labelled points, and their features."""
        for start in range(0, len(self.problem.kept), self.step):
            rows = slice(start, min(start + self.step, len(self.problem.kept)))
            yield rows, self.of(self.problem.kept[rows])

    def of(self, points: np.ndarray) -> np.ndarray:
        """Features of some points."""
        mapped = self.map.transform(plain(take(self.problem.points, points)), n_threads=self.problem.threads)
        return np.subtract(mapped, self.mean, out=mapped)

    def moments(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ΨᵀWΨ, and yWΨ for rows of targets."""
        problem = self.problem
        check.fits_memory((self.q, self.q), np.float64, "the features' matrix")
        second, first = np.zeros((self.q, self.q)), np.zeros((len(y), self.q))
        for rows, psi in self.blocks():
            weight = problem.weight[rows]
            first += (y[:, rows] * weight) @ psi
            scaled = np.ascontiguousarray((psi * np.sqrt(weight)[:, None]).T)
            second += kernels.gram(scaled, kernel=kernels.Linear(), n_threads=problem.threads)
            if problem.tick is not None:
                problem.tick(rows.stop, len(problem.kept))
        return second, first


def features(problem: Problem, tol: float) -> Solved:
    """Form 1. Its gap is λ‖w - Ψᵀα‖² with α = w(y - f)/(λW), zero at the optimum."""
    with parallel.blas_threads(1):
        psi = Features(problem)
        strength = problem.lam * problem.total
        y = problem.y - problem.means(problem.y)[:, None]
        a, b = psi.moments(y)
        factor_definite(a, np.full(psi.q, strength), problem, "the features' matrix")
        w, best, done = solve(a, b), None, -1
        while done < ROUNDS:
            done += 1
            found = _feature_worth(problem, psi, y, w)
            if best is not None and not found.gap < best.gap:
                break
            best = found
            if best.gap <= EXACT * best.primal:
                break
            w = w + solve(a, strength * (best.back - w))
        return _feature_solved(problem, psi, best, done, tol)


def feature_solution(problem: Problem, weights: np.ndarray, tol: float) -> Solved:
    """Return the certificate of weights (t, q) of any origin."""
    with parallel.blas_threads(1):
        psi = Features(problem)
        y = problem.y - problem.means(problem.y)[:, None]
        return _feature_solved(problem, psi, _feature_worth(problem, psi, y, weights), 0, tol)


def _feature_solved(problem: Problem, psi: Features, best: _FeatureWorth, done: int, tol: float) -> Solved:
    w, means = best.weights, problem.means(problem.y)
    fitted = np.empty((len(w), problem.m))
    for start in range(0, problem.m, psi.step):
        rows = np.arange(start, min(start + psi.step, problem.m))
        fitted[:, rows] = w @ psi.of(rows).T + means[:, None]
    violation = np.abs(best.back - w).max(axis=1)
    kkt = float(violation.max())
    rounding = violation <= ROUNDING * np.abs(w).max(axis=1)
    converged = bool(((best.gaps <= tol * best.primals) | rounding).all())
    constant = means - w @ psi.mean
    found = Certificate(best.primal, best.dual, best.gap, kkt, done, converged)
    return Solved(best.alpha, fitted, constant, found, weights=w)


@dataclass(frozen=True, eq=False)
class _FeatureWorth(Objectives):
    """Of weights (t, q): objectives, α = w(y - f)/(λW), and Ψᵀα, which equals them at the optimum."""

    weights: np.ndarray
    alpha: np.ndarray
    back: np.ndarray


def _feature_worth(problem: Problem, psi: Features, y: np.ndarray, w: np.ndarray) -> _FeatureWorth:
    strength = problem.lam * problem.total
    errors, back = np.empty_like(y), np.zeros_like(w)
    for rows, block in psi.blocks():
        errors[:, rows] = y[:, rows] - w @ block.T
        back += (errors[:, rows] * problem.weight[rows]) @ block
    back /= strength
    alpha = problem.weight * errors / strength
    primals = (problem.weight * errors**2).sum(axis=1) / problem.total + problem.lam * (w**2).sum(axis=1)
    duals = problem.lam * (2 * (alpha * y).sum(axis=1) - (back**2).sum(axis=1) - (alpha * errors).sum(axis=1))
    return _FeatureWorth(primals, duals, problem.lam * ((back - w) ** 2).sum(axis=1), w, alpha, back)


def cheapest(problem: Problem) -> str:
    """The form with the fewest operations: n q² + q³/3 for q features, n³/3 + n² p for the kernel's forms."""
    if not isinstance(problem.kernel, (kernels.Linear, kernels.Polynomial)) or is_callable(problem.kernel):
        return "kernel"
    if getattr(problem.kernel, "coef0", 0.0) < 0:
        return "kernel"
    n, p = len(problem.kept), problem.points.shape[1]
    q = p
    if isinstance(problem.kernel, kernels.Polynomial):
        if problem.kernel.degree > 8:
            return "kernel"
        q = math.comb(p + problem.kernel.degree, p)
    if n * q**2 + q**3 / 3 >= n**3 / 3 + n**2 * p:
        return "kernel"
    try:
        kernels.feature_map(problem.kernel, p)
    except ValueError:  # weights of monomials that do not fit float64
        return "kernel"
    return "features"
