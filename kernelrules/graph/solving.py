"""The system A f = b of a graph fit, A = J + λnL, solved and certified.

Objective     P(f) = (1/n) Σ_labelled s_i (f_i - y_i)² + λ fᵀLf,   n = Σ s_i,  J = diag(s), b_i = s_i y_i
Residual      r = b - A f

Certificate. The dual variables are flows along the edges that neither begin nor end at unlabelled points; every such
flow bounds P from below. Take the flow 2λ w_ij (f_i - f_j) and carry what r leaves over at unlabelled points to a
labelled one, along a forest of shortest paths: with E_i the sum of r√d over the branch that hangs at i, and w_i the
weight of the edge on which it hangs,

    P(f) - D = (1/n) [ Σ_labelled E_i² / (s_i d_i) + Σ_others E_i² / (λ n w_i) ]  ≥  P(f) - min P  ≥  0

(d = 1 for the plain Laplacian). It costs one walk over the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules.core import multigrid as core
from kernelrules.graph.multigrid import Cycle, Matrix, column_sums, factorise
from kernelrules.results import Certificate

__all__ = ["Problem", "Solution", "solve"]

_DIRECT = 1500  # points up to which the factorisation is as fast, whatever the graph
_RESTARTS = 5  # times that the residual is made anew from the solution
_ROUNDING = 8 * np.finfo(np.float64).eps  # relative to |A||f|: a residual below it cannot be made smaller


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved: every point is connected to a labelled one.

    laplacian: L; degree: d, ones for the plain L; weight: s, 0 for unlabelled points; targets: (m, K), of labelled
    points only; forest: what core.spread gives from the labelled points.
    """

    laplacian: sparse.csr_array
    degree: np.ndarray
    weight: np.ndarray
    targets: np.ndarray
    lam: float
    forest: tuple[np.ndarray, np.ndarray, np.ndarray]

    @property
    def penalty(self) -> float:
        """λn."""
        return self.lam * float(self.weight.sum())

    def matrix(self) -> sparse.csr_array:
        """A."""
        scaled = self.laplacian * self.penalty
        return (scaled + sparse.diags_array(self.weight, format="csr")).tocsr()


@dataclass(frozen=True, eq=False)
class Solution:
    """Values (m, K), the size of each column's residual relative to b, and what they are worth."""

    values: np.ndarray
    residual: np.ndarray
    certificate: Certificate


def solve(problem: Problem, solver: str, tol: float, max_iter: int, n_threads: int, tick: Any) -> Solution:
    """Solve by factorisation ("direct"), conjugate gradients ("cg"), or whichever is faster ("auto")."""
    a = Matrix.of(problem.matrix(), n_threads)
    b = problem.weight[:, None] * problem.targets
    if solver == "direct" or (solver == "auto" and a.n <= _DIRECT):
        factors = factorise(a.scipy())
        f = np.ascontiguousarray(factors.solve(b))
        f += factors.solve(a.residual(f, b))  # one step of refinement
        iterations = 1
    else:
        f, iterations = _conjugate_gradients(a, b, tol, max_iter, n_threads, tick)
    r = a.residual(f, b)
    size = np.sqrt(column_sums(b, b))
    residual = np.sqrt(column_sums(r, r)) / np.where(size > 0, size, 1.0)
    primal, gap, scale = _worth(problem, f, r)
    small = _small_enough(a, f, r, size, tol)
    certificate = Certificate(
        primal, primal - gap, gap, float(residual.max()), iterations, bool(small.all() and gap <= tol * scale)
    )
    return Solution(f, residual, certificate)


def _worth(problem: Problem, f: np.ndarray, r: np.ndarray) -> tuple[float, float, float]:
    """P(f), the gap, and P(0)."""
    n = float(problem.weight.sum())
    s, y, root = problem.weight[:, None], problem.targets, np.sqrt(problem.degree)[:, None]
    at_zero = float((s * y * y).sum()) / n
    # From r = b - Af, λ fᵀLf is (1/n) Σ f (s(y - f) - r): no second product with L.
    primal = float((s * y * (y - f)).sum() - (f * r).sum()) / n
    order, before, edge = problem.forest
    excess = np.ascontiguousarray(r * root)
    core.drain(order, before, excess)
    at_source = before < 0
    arrived = (excess[at_source] / root[at_source]) ** 2 / s[at_source]
    carried = excess[~at_source] ** 2 / (problem.penalty * edge[~at_source])[:, None]
    gap = float(arrived.sum() + carried.sum()) / n
    return max(primal, 0.0), gap, at_zero


def _small_enough(a: Matrix, f: np.ndarray, r: np.ndarray, size: np.ndarray, tol: float) -> np.ndarray:
    """Whether a column's residual is within the tolerance, or within what rounding leaves."""
    largest = 2 * float(a.scipy().diagonal().max())
    reachable = _ROUNDING * largest * np.sqrt(column_sums(f, f))
    return np.sqrt(column_sums(r, r)) <= np.maximum(tol * size, reachable)


def _conjugate_gradients(
    a: Matrix, b: np.ndarray, tol: float, max_iter: int, n_threads: int, tick: Any
) -> tuple[np.ndarray, int]:
    """The solution and the number of steps; all columns at once, until the last one is done."""
    cycle = Cycle(a, n_threads)
    size = np.sqrt(column_sums(b, b))
    f, r = np.zeros_like(b), b.copy()
    done = 0
    for _ in range(_RESTARTS):
        before = column_sums(r, r)
        done = _descend(a, cycle, f, r, tol * size, done, max_iter, tick)
        r = a.residual(f, b)  # the steps have carried it along, and rounding with it
        after = column_sums(r, r)
        if done >= max_iter or _small_enough(a, f, r, size, tol).all() or (after > 0.25 * before).all():
            break
    return f, done


def _descend(
    a: Matrix, cycle: Cycle, f: np.ndarray, r: np.ndarray, target: np.ndarray, done: int, max_iter: int, tick: Any
) -> int:
    """Steps from f, whose residual is r, in place; the number of steps so far."""
    z = cycle(r)
    p, nothing = z.copy(), np.zeros_like(r)
    rz = column_sums(r, z)
    while done < max_iter:
        q = a.residual(p, nothing)  # -A·p
        curvature = -column_sums(p, q)
        step = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
        f += step * p
        r += step * q
        done += 1
        now = np.sqrt(column_sums(r, r))
        if tick is not None:
            tick(done, max_iter, float((now / np.where(target > 0, target, 1.0)).max()))
        if (now <= target).all():
            break
        if done % 16 == 0 and (now <= _ROUNDING * np.sqrt(column_sums(f, f)) * 2 * a.scipy().diagonal().max()).all():
            break
        z = cycle(r)
        new = column_sums(r, z)
        p *= np.divide(new, rz, out=np.zeros_like(rz), where=rz > 0)
        p += z
        rz = new
    return done
