"""Matrices that have to be positive (semi-)definite: factored, or refused with the eigenvalue that is not.

With a negative eigenvalue, Kv = μv, the primal objective at α + tv has the term t²μ(μ/n + λ): for λ > -μ/n it falls
without end, and a solution of the equations without a gap is the optimum of nothing. So kernels that are semi-definite
by no theorem have their matrix looked at, that of all points, labelled or not. A matrix of some of the points has no
smaller eigenvalue than that of all: where all are too many, some can still refuse it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelrules import check
from kernelrules.ridge.factor import factor, mirror_upper, smallest_eigenvalue
from kernelrules.ridge.problem import Problem

__all__ = ["factor_definite", "indefinite", "require_semidefinite", "rounding"]

_LOOKED_AT = 4096  # points whose matrix is looked at even where that takes longer than the fit


def factor_definite(a: np.ndarray, noise: np.ndarray, problem: Problem, what: str) -> bool:
    """The Cholesky factor of a + diag(noise), below a's diagonal; False where it took a larger diagonal to have one."""
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
    """Of the trace: how far below 0 eigenvalues of a semi-definite matrix come out by rounding."""
    return 8 * np.sqrt(n) * np.finfo(np.float64).eps


def indefinite(what: str, lowest: float, problem: Problem) -> ValueError:
    """What to raise."""
    return ValueError(
        f"{what} is not positive semi-definite: its smallest eigenvalue is {lowest:.6g} (lam times the sum of weights "
        f"is {problem.lam * problem.total:.3g})"
    )


def require_semidefinite(problem: Problem) -> Problem:
    """Refuse a kernel matrix that has negative eigenvalues beyond the rounding of float32; the problem, with the matrix
    where it has been made."""
    if problem.semidefinite:
        return problem
    looked_at = _looked_at(problem)
    k = problem.gram(of=looked_at)
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


def _looked_at(problem: Problem) -> np.ndarray:
    """The points whose kernel matrix is: all, unless they are very many more than the labelled ones, or their matrix
    does not fit."""
    n = len(problem.kept)
    size = problem.m if problem.given else min(problem.m, max(2 * n, _LOOKED_AT))
    if size > _LOOKED_AT and 8 * size * size > check.free_memory() // 2:
        size = _LOOKED_AT
    if size == problem.m:
        return np.arange(size)
    if size <= n:
        return problem.kept[_spread(n, size)]
    return np.sort(np.concatenate([problem.kept, problem.others[_spread(len(problem.others), size - n)]]))


def _spread(n: int, size: int) -> np.ndarray:
    """So many of n places, at even distances."""
    return np.arange(size) * n // size
