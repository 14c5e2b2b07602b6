"""Preconditioned conjugate gradients for (K + diag s) α = y - b: they maximise the dual, and give the gap at no cost.

With the residual ρ = y - b - (K + diag s) α the certificate of every iterate is

    gap = (1/W) Σ wᵢ ρᵢ²,    D = λ αᵀ(y + ρ),    P = D + gap,

so the iteration stops by the relative gap. With a constant b, Σα = 0: preconditioned residuals are projected, and the
mean of ρ is absorbed by b.

`nystroem_inverse` preconditions by K ≈ BBᵀ, B = K_nq L⁻ᵀ from q of the points with LLᵀ = K_qq, through Woodbury's
formula, (BBᵀ + S)⁻¹ = S⁻¹ - S⁻¹B (I + BᵀS⁻¹B)⁻¹ BᵀS⁻¹, in float64. Kernel matrices of all points are never stored.

References
----------
Hestenes, M. R. and Stiefel, E. (1952). "Methods of conjugate gradients for solving linear systems". Journal of Research
of the National Bureau of Standards 49(6).

Rudi, A., Carratino, L. and Rosasco, L. (2017). "FALKON: An optimal large scale kernel method". Advances in Neural
Information Processing Systems 30. Preconditioning by some of the points; the coefficients here are those of all points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import callable_matrix, is_callable, plain, take
from kernelrules.ridge.certify import Worth, better_of, worth
from kernelrules.ridge.factor import factor, solve, solve_lower
from kernelrules.ridge.problem import Problem

__all__ = ["Product", "descend", "iterate", "nystroem_inverse"]

Product = Callable[[np.ndarray], np.ndarray]

_SINGLE_FROM = 1024  # points from which kernel values of the iterations are float32
_SINGLE_NOISE = 1e-8  # of n, which bounds the norm of K: less noise drowns in the rounding of float32 values
_AIM = 0.5  # of the tolerance: the exact gap is a little larger than the recurrence believes
_PROGRESS = 0.25  # another round follows if the gap shrank at least to this share
_MEMORY_SHARE = 4  # a fourth of the free memory may go to the preconditioner
_ROWS = 4096  # rows of B whose products are summed together


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ti,ti->t", a, b)  # not by BLAS, whose sums depend on its threads


def descend(
    problem: Problem,
    multiply: Product,
    inverse: Product,
    alpha: np.ndarray,
    residual: np.ndarray,
    tol: float,
    max_iter: int,
    done: int = 0,
) -> int:
    """Conjugate gradients from alpha with this residual, both changed in place, until the gap that the recurrence
    gives is at most tol times the primal objective of every target. The number of iterations."""
    noise, lam, total = problem.noise, problem.lam, problem.total
    ones = inverse(np.ones((1, len(noise)))) if problem.intercept else None
    direction, last = None, None
    for iteration in range(max_iter):
        residual -= problem.means(residual)[:, None]
        gap = (problem.weight * residual**2).sum(axis=1) / total
        primal = lam * _dots(alpha, problem.y + residual) + gap
        if problem.tick is not None:
            whole = float(primal.sum())
            problem.tick(done + iteration, done + max_iter, float(gap.sum()) / whole if whole > 0 else math.inf)
        if (gap <= tol * primal).all():
            return iteration
        z = inverse(residual.copy())
        if ones is not None:
            z -= ones * (z.sum(axis=1) / ones.sum())[:, None]
        size = _dots(z, residual)
        if not (size > 0).any():
            return iteration
        if direction is None:
            direction = z
        else:
            direction *= np.divide(size, last, out=np.zeros_like(size), where=last > 0)[:, None]
            direction += z
        last = size
        image = multiply(direction) + noise * direction
        curvature = _dots(direction, image)
        if (curvature < 0).any() and not problem.semidefinite:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                lowest = float(np.nanmin(curvature / _dots(direction, direction)))
            raise ValueError(
                f"the kernel matrix is not positive semi-definite: with lam times the sum of weights on its diagonal, "
                f"{lam * total:.3g}, it still has an eigenvalue of {lowest:.6g} or less"
            )
        step = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0)[:, None]
        alpha += step * direction
        residual -= step * image
    return max_iter


def iterate(problem: Problem, inverse: Product, tol: float, max_iter: int) -> tuple[np.ndarray, np.ndarray, Worth, int]:
    """α, its product with K, what they are worth in float64, and the iterations.

    Rounds of conjugate gradients, on float32 kernel values where these are bounded; after each the residual is made
    anew from float64 ones, which alone decide.
    """
    bounded = isinstance(problem.kernel, (kernels.RBF, kernels.Laplacian)) and not isinstance(problem.points, check.Csr)
    n = len(problem.kept)
    single = bounded and n > _SINGLE_FROM and float(problem.noise.min()) >= _SINGLE_NOISE * n
    alpha = np.zeros_like(problem.y)
    exact, values = worth(problem, alpha, np.zeros_like(alpha)), np.zeros_like(alpha)
    best, done = (alpha.copy(), values, exact), 0
    while done < max_iter and not exact.settled(tol, problem.y):
        before = exact.gap
        residual = exact.residual.copy()
        multiply = _multiplier(problem, single)
        done += descend(problem, multiply, inverse, alpha, residual, _AIM * tol, max_iter - done, done)
        if problem.intercept:
            alpha -= alpha.mean(axis=1, keepdims=True)
        values = problem.product(alpha)
        exact = worth(problem, alpha, values)
        best = better_of(best, (alpha.copy(), values, exact))
        if exact.gap > _PROGRESS * before:
            if not single:
                break
            single = False
    return *best, done


def _multiplier(problem: Problem, single: bool) -> Product:
    return lambda v: problem.product(v, single)


def n_landmarks(n: int, wanted: int | None) -> int:
    """Three times the root of n, as memory allows, unless told."""
    if wanted is not None:
        return min(check.whole(wanted, "n_components", 1), n)
    fit = check.free_memory() // (_MEMORY_SHARE * 8 * n)
    return max(1, min(n, int(3 * math.sqrt(n)) + 1, fit))


def nystroem_inverse(problem: Problem, n_components: int | None, rng: Any) -> Product:
    """v ↦ (BBᵀ + S)⁻¹v on rows of v."""
    n, noise = len(problem.kept), problem.noise
    q = n_landmarks(n, n_components)
    chosen = np.sort(check.generator(rng).choice(n, size=q, replace=False))
    check.fits_memory((n, q), np.float64, "the preconditioner")
    b, between = _landmark_values(problem, chosen)
    diagonal = np.einsum("ii->i", between)
    jitter = q * np.finfo(np.float64).eps * float(diagonal.sum())
    kept = between.copy()
    while True:  # more only for a kernel that is not positive semi-definite
        diagonal += jitter
        if factor(between, problem.threads) < 0:
            break
        jitter = max(10 * jitter, 1e-300)
        between[...] = kept
    for start in range(0, n, _ROWS):
        solve_lower(between, b[start : start + _ROWS], problem.threads)
    small = np.eye(q)
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)
        scaled = np.ascontiguousarray((b[rows] / np.sqrt(noise[rows])[:, None]).T)
        small += kernels.gram(scaled, kernel=kernels.Linear(), n_threads=problem.threads)
    factor(small, problem.threads)

    def inverse(v: np.ndarray) -> np.ndarray:
        with parallel.blas_threads(1):
            v = v / noise
            inner = solve(small, v @ b)
            return v - (inner @ b.T) / noise

    return inverse


def _landmark_values(problem: Problem, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel values of the labelled points against some of them, and of these among themselves."""
    if problem.given:
        rows = plain(take(problem.points, problem.kept[chosen]))
        rows = rows[:, problem.kept] if isinstance(rows, np.ndarray) else rows.toarray()[:, problem.kept]
        b = np.ascontiguousarray(rows.T)
    else:
        x = problem.labelled()
        landmarks = take(x, chosen)
        if is_callable(problem.kernel):
            b = callable_matrix(
                problem.kernel, x, landmarks, np.empty((x.shape[0], len(chosen))), parallel.uncounted_tick(problem.tick)
            )
        else:
            b = kernels.gram(plain(x), plain(landmarks), problem.kernel, n_threads=problem.threads)
    between = b[chosen]
    return b, (between + between.T) / 2
