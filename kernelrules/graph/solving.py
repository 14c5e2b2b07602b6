"""The system A f = b of a graph fit, A = J + λnL, solved and certified.

Objective     P(f) = (1/n) Σ_labelled s_i (f_i - y_i)² + λ fᵀLf,   n = Σ s_i,  J = diag(s), b_i = s_i y_i
Residual      r = b - A f

Certificate. The dual variables are flows along the edges that neither begin nor end at unlabelled points; every such
flow bounds P from below. Take the flow 2λ w_ij (f_i - f_j) and carry the excess r at unlabelled points to a
labelled one, along a forest of shortest paths: with E_i the sum of r√d over the branch that hangs at i, and w_i the
weight of the edge on which it hangs,

    P(f) - D = (1/n) [ Σ_labelled E_i² / (s_i d_i) + Σ_others E_i² / (λ n w_i) ]  ≥  P(f) - min P  ≥  0

(d = 1 for the plain Laplacian). It costs one traversal of the graph. The certificate is our own.

References
----------
Hestenes, M. R. and Stiefel, E. (1952). "Methods of conjugate gradients for solving linear systems". Journal of Research
of the National Bureau of Standards 49(6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from kernelrules import check, parallel
from kernelrules.core.linalg import multigrid as core
from kernelrules.graph.laplacians import only
from kernelrules.graph.multigrid import Cycle, Matrix, column_sums, factorise
from kernelrules.results import Certificate

__all__ = ["Problem", "Solution", "solve"]

_DIRECT = 1500  # points up to which the factorisation is as fast, whatever the graph
_TOGETHER = 16  # columns
_RESTARTS = 5  # times that the residual is made anew from the solution
_ROUNDING = 16 * np.finfo(np.float64).eps  # of |f|: a residual over the diagonal that is smaller cannot be improved


@dataclass(frozen=True, eq=False)
class Problem:
    """The system to solve: every point is connected to a labelled one.

    laplacian: L; degree: d, ones for the plain L; weight: s, 0 for unlabelled points; targets: (m, K), of labelled
    points only; edges: the weights W; forest: what core.spread gives from the labelled points.
    """

    laplacian: sparse.csr_array
    degree: np.ndarray
    weight: np.ndarray
    targets: np.ndarray
    lam: float
    edges: check.Csr
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
    """Values (m, K), the size of each column's residual relative to that of b, and what they are worth."""

    values: np.ndarray
    residual: np.ndarray
    certificate: Certificate

    def scaled(self, unit: float) -> Solution:
        """For targets that are `unit` times as large."""
        c = self.certificate
        objectives = {name: getattr(c, name) * unit * unit for name in ("primal", "dual", "gap")}
        return replace(self, values=self.values * unit, certificate=replace(c, **objectives))


def solve(problem: Problem, solver: str, tol: float, max_iter: int, n_threads: int, tick: Any) -> Solution:
    """Solve by factorisation ("direct"), conjugate gradients ("cg"), or whichever is faster ("auto")."""
    system = _System(problem.matrix(), problem.weight[:, None] * problem.targets, tol, n_threads)
    if solver == "direct" or (solver == "auto" and system.a.n <= _DIRECT):
        factors = factorise(system.a.scipy(), tick)
        f = np.ascontiguousarray(factors.solve(system.b))
        f += factors.solve(system.a.residual(f, system.b))  # one step of refinement
        iterations = 1
    else:
        with parallel.blas_threads(1):  # of the bottom's few rows; its threads would spin on the cores of the products
            f, iterations = _by_groups(system, tol, max_iter, n_threads, tick)
    r = system.a.residual(f, system.b)
    primal, gap, at_zero = _worth(problem, problem.forest, f, r)
    if gap > tol * at_zero:
        f = _levelled(problem, f)
        r = system.a.residual(f, system.b)
        primal, gap, _ = _worth(problem, problem.forest, f, r)
    residual = system.size(r) / np.where(system.scale > 0, system.scale, 1.0)
    if gap > tol * at_zero:  # paths of few steps may lead over light edges
        gap = min(gap, _worth(problem, _heavy_forest(problem), f, r)[1])
    done = system.is_small(system.size(r), f) and gap <= tol * at_zero
    return Solution(f, residual, Certificate(primal, primal - gap, gap, float(residual.max()), iterations, done))


def _levelled(problem: Problem, f: np.ndarray) -> np.ndarray:
    """f moved along √d in every component to where Σ s√d(y - f) is 0, as it is at the optimum: L does not see it, and
    with a large λ rounding loses it."""
    n, part = csgraph.connected_components(problem.edges.toscipy(), directed=False)
    root, s = np.sqrt(problem.degree), problem.weight
    size = np.bincount(part, s * problem.degree, n)
    out = f.copy()
    for c in range(f.shape[1]):
        short = np.bincount(part, s * root * (problem.targets[:, c] - f[:, c]), n)
        out[:, c] += root * (short / size)[part]
    return out


class _System:
    """A f = b, and when a residual is small.

    Residuals are measured after division by the diagonal of A: the change of a row's own value that would satisfy its
    equation. So rows of unlabelled points, which are of the size of λ, count as much as those of labelled ones."""

    def __init__(self, a: sparse.csr_array | Matrix, b: np.ndarray, tol: float, n_threads: int):
        self.a = a if isinstance(a, Matrix) else Matrix.of(a, n_threads)
        self.b = np.ascontiguousarray(b)
        self.inverse = 1 / self.a.scipy().diagonal()[:, None]
        self.scale = self.size(self.b)
        self.target = tol * self.scale

    def size(self, r: np.ndarray) -> np.ndarray:
        """Of each column."""
        scaled = r * self.inverse
        return np.sqrt(column_sums(scaled, scaled))

    def is_small(self, size: np.ndarray, f: np.ndarray) -> bool:
        """Whether all columns' residuals are within the tolerance, or within what rounding leaves."""
        if (size <= self.target).all():
            return True
        return bool((size <= np.maximum(self.target, _ROUNDING * np.sqrt(column_sums(f, f)))).all())


def _heavy_forest(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A forest like the problem's, of paths with the least sum of 1 / w."""
    m, sources = len(problem.weight), np.flatnonzero(problem.weight > 0)
    lengths = problem.edges.toscipy()
    lengths = sparse.csr_array((1 / lengths.data, lengths.indices, lengths.indptr), shape=lengths.shape)
    _, before, _ = csgraph.dijkstra(lengths, indices=sources, min_only=True, return_predecessors=True)
    i = np.repeat(np.arange(m), np.diff(lengths.indptr))
    on_path = (before[i] == lengths.indices) | (before[lengths.indices] == i)
    paths = only(problem.edges, on_path)
    return core.spread(paths.indptr, paths.indices, paths.data, sources.astype(np.intp))


def _worth(problem: Problem, forest: Any, f: np.ndarray, r: np.ndarray) -> tuple[float, float, float]:
    """P(f), the gap, and P(0)."""
    n = float(problem.weight.sum())
    s, y, root = problem.weight[:, None], problem.targets, np.sqrt(problem.degree)[:, None]
    at_zero = float((s * y * y).sum()) / n
    # From r = b - Af, λ fᵀLf is (1/n) Σ f (s(y - f) - r): no second product with L.
    primal = float((s * y * (y - f)).sum() - (f * r).sum()) / n
    order, before, edge = forest
    excess = np.ascontiguousarray(r * root)
    core.drain(order, before, excess)
    at_source = before < 0
    arrived = (excess[at_source] / root[at_source]) ** 2 / s[at_source]
    carried = excess[~at_source] ** 2 / (problem.penalty * edge[~at_source])[:, None]
    gap = float(arrived.sum() + carried.sum()) / n
    return max(primal, 0.0), gap, at_zero


def _by_groups(system: _System, tol: float, max_iter: int, n_threads: int, tick: Any) -> tuple[np.ndarray, int]:
    """The solution and the most steps of a column; as many columns at a time as caches hold."""
    cycle = Cycle(system.a, n_threads)
    f, most, n_columns = np.empty_like(system.b), 0, system.b.shape[1]
    groups = range(0, n_columns, _TOGETHER)
    for number, start in enumerate(groups):
        part = slice(start, start + _TOGETHER)
        told = None if tick is None else _shifted(tick, number * max_iter, len(groups) * max_iter)
        own = _System(system.a, system.b[:, part], tol, n_threads)
        f[:, part], steps = _conjugate_gradients(own, cycle, max_iter, told)
        most = max(most, steps)
    return f, most


def _shifted(tick: Any, before: int, total: int) -> Any:
    """Progress of one group among several."""
    return lambda done, _, violation: tick(before + done, total, violation)


def _conjugate_gradients(system: _System, cycle: Cycle, max_iter: int, tick: Any) -> tuple[np.ndarray, int]:
    """The solution and the number of steps; all columns at once, until the last one is done."""
    f, r, done = np.zeros_like(system.b), system.b.copy(), 0
    before = system.scale
    for _ in range(_RESTARTS):
        done = _descend(system, cycle, f, r, done, max_iter, tick)
        r = system.a.residual(f, system.b)  # the steps have carried it along, and rounding with it
        after = system.size(r)
        if done >= max_iter or system.is_small(after, f) or (after > 0.5 * before).all():
            break
        before = after
    return f, done


def _descend(system: _System, cycle: Cycle, f: np.ndarray, r: np.ndarray, done: int, max_iter: int, tick: Any) -> int:
    """Steps from f, whose residual is r, in place; the number of steps so far."""
    z = cycle(r)
    p, nothing = z.copy(), np.zeros_like(r)
    rz = column_sums(r, z)
    while done < max_iter:
        q = system.a.residual(p, nothing)  # -A·p
        curvature = -column_sums(p, q)
        step = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
        f += step * p
        r += step * q
        done += 1
        now = system.size(r)
        if tick is not None:
            tick(done, max_iter, float((now / np.where(system.target > 0, system.target, 1.0)).max()))
        if system.is_small(now, f):
            break
        z = cycle(r)
        new = column_sums(r, z)
        p *= np.divide(new, rz, out=np.zeros_like(rz), where=rz > 0)
        p += z
        rz = new
    return done
