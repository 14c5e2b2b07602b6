"""Three of the four representations, over the kernel matrix; features.py has the first. Each is solved by its own
equations, with S = λW diag(1/w) and J_w = diag(w, 0): the weights, and 0 for unlabelled points.

    kernel     α̂ = (K + S)⁻¹ (y - b)                n × n, Cholesky; a constant by elimination
    dual       [K + S, 1; 1ᵀ, 0] [α; b] = [y; 0]     n + 1, LDLᵀ: the stationary point of D, b the multiplier of Σα = 0
    rkhs       f̂ = K_m z + b, (J_w K_m + λW I) z + J_w 1 b = J_w y       m + 1, LU; K_m may be singular

Residuals in float64 then refine the solution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.base import memory
from kernelrules.core.gram import symmetric
from kernelrules.ridge.certify import EXACT, ROUNDS, Solved, Worth, better_of, from_worth, worth
from kernelrules.ridge.conjugate import Product, descend
from kernelrules.ridge.definite import factor_definite, indefinite, rounding
from kernelrules.ridge.factor import BlockLDL, factor, smallest_eigenvalue, solve, solve_general
from kernelrules.ridge.problem import Problem

__all__ = ["dual", "kernel", "rkhs"]

_ROUNDS_OF_SINGULAR = 60  # improvements where the matrix had to be made definite first
_ROUNDS_OF_SINGLE = 15  # and where the factor is one of float32
_SINGLE_FROM = 1500  # points from which that is tried
_SINGLE_CONDITION = 1e6  # of the matrix, up to which: beyond it iterations take longer than they save
_GOOD = 1e-20  # relative gap of a solution that is as good as a float64 factor's


def kernel(problem: Problem, tol: float, keep_factor: bool) -> Solved:
    """Form 2, in one buffer: the factor below the diagonal, the kernel matrix above it."""
    k = problem.gram()
    diagonal = np.diagonal(k).copy()

    def multiply(v: np.ndarray) -> np.ndarray:
        out = np.zeros_like(v)
        threads = parallel.enough_threads(problem.threads, len(k) ** 2 * 0.5)
        symmetric.multiply_stored(k, diagonal, v, out, threads)
        return out

    may_be_single = not keep_factor or problem.data.dtype == np.float32
    if may_be_single and _single_pays(problem, multiply):
        lower = _single_factor(problem, k)
        if lower is not None:
            *solution, done = _improved(problem, multiply, _single_inverse(problem, lower), _ROUNDS_OF_SINGLE)
            if solution[2].settled(_GOOD, problem.y):
                return from_worth(problem, *solution, done, tol, lower if keep_factor else None)
            del lower
    definite = factor_definite(k, problem.noise, problem, "the kernel matrix")
    rounds = ROUNDS if definite else _ROUNDS_OF_SINGULAR
    solution = _improved(problem, multiply, lambda v: solve(k, v, problem.threads), rounds)
    return from_worth(problem, *solution, tol, k if keep_factor else None)


def _improved(
    problem: Problem, multiply: Product, inverse: Product, rounds: int
) -> tuple[np.ndarray, np.ndarray, Worth, int]:
    """α from (an approximate) inverse, improved by conjugate gradients with it; α · K, its worth, and iterations."""
    alpha = inverse(problem.y.copy())
    if problem.intercept:
        ones = inverse(np.ones((1, alpha.shape[1])))
        alpha -= ones * (alpha.sum(axis=1) / ones.sum())[:, None]
        alpha -= alpha.mean(axis=1, keepdims=True)
    values = multiply(alpha)
    start = alpha, values, worth(problem, alpha, values)
    better, residual = alpha.copy(), start[2].residual.copy()
    done = descend(problem, multiply, inverse, better, residual, EXACT, rounds)
    if done == 0:
        return *start, 0
    if problem.intercept:
        better -= better.mean(axis=1, keepdims=True)
    at_better = multiply(better)
    return *better_of(start, (better, at_better, worth(problem, better, at_better))), done


def _single_pays(problem: Problem, multiply: Product) -> bool:
    """Whether a float32 factor, half the work, is near enough to the matrix for a few iterations in float64."""
    n = len(problem.kept)
    if n < _SINGLE_FROM or 4 * n * n > check.free_memory() // 2:
        return False
    largest = float(np.abs(multiply(np.ones((1, n)))).max())  # the norm of K, for kernels without negative values
    return problem.semidefinite and largest <= _SINGLE_CONDITION * float(problem.noise.min())


def _single_factor(problem: Problem, k: np.ndarray) -> np.ndarray | None:
    """The Cholesky factor of K + S in float32; None where it has none."""
    lower = k.astype(np.float32)
    diagonal = np.einsum("ii->i", lower)
    with np.errstate(over="ignore"):
        diagonal += problem.noise.astype(np.float32)
    return lower if np.isfinite(diagonal).all() and factor(lower, problem.threads) < 0 else None


def _single_inverse(problem: Problem, lower: np.ndarray) -> Product:
    """v ↦ (K + S)⁻¹v by a float32 factor."""

    def inverse(v: np.ndarray) -> np.ndarray:
        size = np.maximum(np.abs(v).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return solve(lower, (v / size).astype(np.float32), problem.threads) * size

    return inverse


def dual(problem: Problem, tol: float) -> Solved:
    """Form 3: the saddle point of the Lagrangian of D."""
    n = len(problem.kept)
    size = n + problem.intercept
    check.fits_memory((size, size), np.float64, "the kernel matrix")
    a = memory.empty((size, size), np.float64)
    problem.gram(a[:n, :n])
    np.einsum("ii->i", a)[:n] += problem.noise
    if problem.intercept:
        a[n, :n] = a[:n, n] = 1.0
        a[n, n] = 0.0
    try:
        ldl = BlockLDL(a)
    except np.linalg.LinAlgError:
        raise _singular(problem) from None
    if ldl.n_negative > problem.intercept:
        again = problem.gram()
        lowest = smallest_eigenvalue(again, problem.threads)
        if lowest < -rounding(n) * float(np.abs(np.diagonal(again)).sum()):
            raise indefinite("the kernel matrix", lowest, problem)
    return _refined(problem, ldl.solve, lambda rows: rows, n, size, tol)


def rkhs(problem: Problem, tol: float) -> Solved:
    """Form 4, over all m points: z is K_m⁻¹(f - b), which is α at labelled points and 0 at the others."""
    m, kept = problem.m, problem.kept
    size = m + problem.intercept
    check.fits_memory((size, size), np.float64, "the kernel matrix")
    a = np.zeros((size, size))
    k = problem.gram(a[:m, :m], np.arange(m))
    if not problem.semidefinite:
        factor_definite(problem.gram(), problem.noise, problem, "the kernel matrix")
    weight = np.zeros(m)
    weight[kept] = problem.weight
    k *= weight[:, None]
    np.einsum("ii->i", k)[...] += problem.lam * problem.total
    if problem.intercept:
        a[:m, m] = weight
        a[m, :m] = 1.0
    try:
        inverse = solve_general(a)
    except np.linalg.LinAlgError:
        raise _singular(problem) from None

    def right_side(rows: np.ndarray) -> np.ndarray:
        full = np.zeros((len(rows), size))
        full[:, kept] = rows[:, : len(kept)] * problem.weight
        return full

    return _refined(problem, inverse, right_side, m, size, tol)


def _singular(problem: Problem) -> ValueError:
    return ValueError(
        f"the equations are singular in float64: lam times the sum of weights, {problem.lam * problem.total:.3g}, is "
        "too small for this kernel matrix"
    )


def _refined(
    problem: Problem,
    inverse: Callable[[np.ndarray], np.ndarray],
    right_side: Callable[[np.ndarray], np.ndarray],
    n_unknown: int,
    size: int,
    tol: float,
) -> Solved:
    """Solve by iterative refinement from α = 0, as long as the gap decreases."""
    everything = n_unknown == problem.m and n_unknown != len(problem.kept)
    zero = np.zeros_like(problem.y)
    best, done = (zero, zero, worth(problem, zero, zero)), -1
    while done < ROUNDS:
        done += 1
        rows = np.zeros((len(zero), size))
        rows[:, : zero.shape[1]] = best[2].residual
        step = inverse(right_side(rows))[:, :n_unknown]
        alpha = best[0] + (step[:, problem.kept] if everything else step)
        if problem.intercept:
            alpha -= alpha.mean(axis=1, keepdims=True)
        values = problem.product(alpha)
        better = better_of(best, (alpha, values, worth(problem, alpha, values)))
        if not better[2].gap < best[2].gap:
            break
        best = better
        if best[2].gap <= EXACT * best[2].primal:
            break
    return from_worth(problem, *best, done, tol)
