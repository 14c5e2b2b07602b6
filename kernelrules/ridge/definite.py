"""Matrices that must be positive (semi-)definite: factored, or refused with their smallest eigenvalue.

With a negative eigenvalue, Kv = μv, the primal objective at α + tv has the term t²μ(μ/n + λ): for λ > -μ/n it is
unbounded below, and a solution of the equations is no minimiser. So the matrix of all points, labelled or not, is
checked for kernels that are not known to be positive semi-definite. A matrix of some of the points has no smaller
eigenvalue than that of all, so if all are too many, some can still refute it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelrules import check
from kernelrules.ridge.factor import factor, mirror_upper, smallest_eigenvalue
from kernelrules.ridge.problem import Problem

__all__ = ["factor_definite", "indefinite", "require_semidefinite", "rounding"]

_MIN_CHECKED_POINTS = 4096  # points whose matrix is checked even if that takes longer than the fit


def factor_definite(a: np.ndarray, noise: np.ndarray, problem: Problem, what: str) -> bool:
    """Factor a + diag(noise) by Cholesky, below a's diagonal; False if that required a larger diagonal."""
    diagonal = np.einsum("ii->i", a)
    original = diagonal.copy()
    diagonal += noise
    if factor(a, problem.threads) < 0:
        return True
    jitter = rounding(len(a)) * max(float(np.abs(original).sum()), np.finfo(np.float64).tiny)
    known = False
    while np.isfinite(jitter):
        diagonal[...] = original
        mirror_upper(a)
        diagonal += noise + jitter
        if factor(a, problem.threads) < 0:
            return False
        if not known:
            diagonal[...] = original
            mirror_upper(a)
            lowest = smallest_eigenvalue(a, problem.threads)
            if lowest < -jitter:
                raise indefinite(what, lowest, problem)
            known = True
        jitter *= 10
    raise ValueError(f"{what} holds numbers that are not finite, or its noise does")


def rounding(n: int) -> float:
    """The share of the trace by which rounding may lower eigenvalues of a semi-definite matrix of n rows."""
    return 8 * np.sqrt(n) * np.finfo(np.float64).eps


def indefinite(what: str, lowest: float, problem: Problem) -> ValueError:
    """Return the error for a matrix with a negative eigenvalue."""
    return ValueError(
        f"{what} is not positive semi-definite: its smallest eigenvalue is {lowest:.6g} (lam times the sum of weights "
        f"is {problem.lam * problem.total:.3g})"
    )


def require_semidefinite(problem: Problem) -> Problem:
    """Refuse a kernel matrix that has negative eigenvalues beyond the rounding of float32.

    Returns the problem, with the matrix if it has been computed.
    """
    if problem.semidefinite:
        return problem
    checked = _checked_points(problem)
    k = problem.gram(of=checked)
    diagonal = np.diagonal(k).copy()
    slack = max(float(np.abs(diagonal).sum()), np.finfo(np.float64).tiny) * np.finfo(np.float32).eps
    places = np.einsum("ii->i", k)
    places += slack
    failed = factor(k, problem.threads) >= 0
    places[...] = diagonal
    mirror_upper(k)
    if failed:
        lowest = smallest_eigenvalue(k, problem.threads)
        if lowest < -slack:
            raise indefinite("the kernel matrix", lowest, problem)
    return problem if problem.given or len(k) < problem.m else replace(problem, held=k)


def _checked_points(problem: Problem) -> np.ndarray:
    """Return the points whose kernel matrix is checked: all, unless they are many more than the labelled ones or their
    matrix does not fit."""
    n = len(problem.kept)
    size = problem.m if problem.given else min(problem.m, max(2 * n, _MIN_CHECKED_POINTS))
    if size > _MIN_CHECKED_POINTS and 8 * size * size > check.free_memory() // 2:
        size = _MIN_CHECKED_POINTS
    if size == problem.m:
        return np.arange(size)
    if size <= n:
        return problem.kept[_spread(n, size)]
    return np.sort(np.concatenate([problem.kept, problem.others[_spread(len(problem.others), size - n)]]))


def _spread(n: int, size: int) -> np.ndarray:
    """Return `size` of n places, evenly spaced."""
    return np.arange(size) * n // size
