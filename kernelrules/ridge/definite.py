"""Matrices that have to be positive (semi-)definite: factored, or refused with the eigenvalue that is not."""

from __future__ import annotations

import numpy as np

from kernelrules.ridge.factor import factor, mirror_upper, smallest_eigenvalue
from kernelrules.ridge.problem import Problem

__all__ = ["factor_definite", "indefinite", "require_semidefinite", "rounding"]


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


def require_semidefinite(k: np.ndarray, diagonal: np.ndarray, problem: Problem) -> None:
    """Refuse a given kernel matrix that has negative eigenvalues beyond the rounding of float32."""
    slack = max(float(np.abs(diagonal).sum()), np.finfo(np.float64).tiny) * np.finfo(np.float32).eps
    places = np.einsum("ii->i", k)
    places += slack
    if factor(k, problem.threads) >= 0:
        places[...] = diagonal
        mirror_upper(k)
        lowest = smallest_eigenvalue(k, problem.threads)
        if lowest < -slack:
            raise indefinite("the kernel matrix", lowest, problem)
    places[...] = diagonal
    mirror_upper(k)
