"""Interior points: a dual problem solved as a whole, where two variables at a time would take millions of steps.

With K = FFᵀ, |a| = x cut off at U, signs s, and V = s·F the problem of `dual.py` is

    minimise  ½‖w‖² + cᵀx   over  w = Vᵀx,  0 ≤ x ≤ U,  Eᵀx = the sums,        c = s·p + kink,

whose optimality conditions, with xz = μ and (U - x)u = μ in place of complementarity, are solved by Newton's method
while μ falls to 0 (Mehrotra's predictor and corrector). A step is one system of as many unknowns as F has columns,

    (I + Vᵀ D⁻¹ V) dw + … = …,        D = z/x + u/(U - x),

so that conditioning, large C and unscaled features cost no steps: 10 to 50 are enough. F is X itself for the linear
kernel of few columns, and else K's eigenvectors times the roots of its eigenvalues, where K is small. Which variables
lie at their bounds is read from x and z; those go there, and the others are found again from the equations that are
left.

Invariant: a machine is changed only where that lowers its objective and its gap, and its bounds and sums are kept.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernelrules import check, parallel, progress
from kernelrules.core import rows, smo
from kernelrules.core.working_set import LINEAR_SET

if TYPE_CHECKING:
    from kernelrules.svm.dual import Problem
    from kernelrules.svm.values import KernelValues

__all__ = ["Interior"]

_WIDEST = 1024  # columns of F, and so points of a matrix whose eigenvectors are found
_ITERATIONS = 80
_BOUNDARY = 0.99995  # how far towards the nearest bound a step may go
_DONE = 1e-16  # of μ, where costs are at most 1
_INDEFINITE = 1e-9  # of the largest eigenvalue: what a negative one is not by rounding
_POLISHED = 400  # free variables up to which they are found again
_OVERHEAD = 8e4  # nanoseconds of numpy's calls in an iteration
_WAIT = 0.3  # of the time that it takes: more often than not it is needed, once so many steps were not enough
_BLOCK = 4096  # rows multiplied at a time
_LEAST = 20_000  # steps of SMO that are always waited for
_LEAST_TIME = 2e7  # nanoseconds of its rounds that are
_SET = 600  # variables among which the solver of linear machines looks for a step, where there are many more


class Interior:
    """Solutions by interior points of problems on the same kernel values.

    Parameters
    ----------
    values : KernelValues
        With rows in float64.
    """

    def __init__(self, values: KernelValues) -> None:
        self.values = values

    def steps_worth(self, problem: Problem) -> int | None:
        """Steps of SMO to wait for, by what each of the two costs; None: it cannot be done."""
        values, source = self.values, self.values.source
        if source is None or values.rows.single or values.rows.kind == rows.CACHED_KIND:
            return None
        width = self._width()
        if width > _WIDEST or 40.0 * _count(problem) * width > values.budget:
            return None
        among = min(values.n, _SET) if source[0] == "linear" else len(problem.upper)
        return max(_LEAST, int(_WAIT * self._nanoseconds(problem) / (100.0 + 1.5 * among)))

    def rows_worth(self, problem: Problem) -> int | None:
        """Rows of working sets to wait for at most, where a round of few steps costs more than they do; None: of a
        matrix there are none."""
        kind, data, _ = self.values.source
        if kind != "linear":
            return None
        entries = len(data.data) / self.values.n if isinstance(data, check.Csr) else data.shape[1]
        of_row = len(problem.upper) * (20.0 + 0.5 * entries) / LINEAR_SET + LINEAR_SET * (0.5 + 0.035 * entries)
        return int(max(_LEAST_TIME, _WAIT * self._nanoseconds(problem)) / of_row)

    def _width(self) -> int:
        return min(self.values.source[1].shape[1], self.values.n)

    def _nanoseconds(self, problem: Problem) -> float:
        """What a solution takes, about."""
        width = self._width()
        before = float(width) ** 3 if width == self.values.n else 0.0  # for eigenvectors
        of_system = width * width * (5.0 + width / 60.0)
        return before + 40 * (_OVERHEAD + of_system + _count(problem) * (60.0 + 6.5 * width + width * width / 45.0))

    def improve(self, problem: Problem, machine: smo.Machine, tick: Any) -> bool:
        """Bring the machine to the solution; False, and nothing is changed, where there is nothing to be gained."""
        # What overflows is found not to be finite, or no better. BLAS's sums depend on its threads.
        with np.errstate(all="ignore"), parallel.blas_threads(1):
            if self.factor is None:
                return False
            a = _solve(self.factor, problem, self.values.n_threads, progress.air_of(tick))
            if a is None:
                return False
            gradient = self.values.exact_product(problem.beta(a, self.values.n)[None, :])[0][problem.points()]
            gradient += problem.linear
            # Where kernel values times C have more digits than float64, the objective is noise, but the gap is not.
            before = machine.a, machine.gradient
            better = problem.objective(a, gradient) < problem.objective(*before)
            if not (better and problem.gap(a, gradient) < problem.gap(*before)):
                return False
        machine.a[...] = a
        machine.gradient[...] = gradient
        machine.moved()
        return True

    @cached_property
    def factor(self) -> np.ndarray | None:
        """F with K = FFᵀ; None where K is indefinite."""
        kind, data, _ = self.values.source
        if kind == "linear":
            data = data.toscipy() if isinstance(data, check.Csr) else data
            if data.shape[1] < data.shape[0]:
                return data.toarray() if sparse.issparse(data) else data
            with parallel.blas_threads(1):
                data = data @ data.T
            data = data.toarray() if sparse.issparse(data) else data
        try:
            with parallel.blas_threads(1):
                eigenvalues, vectors = np.linalg.eigh(data)
        except np.linalg.LinAlgError:
            return None
        largest = eigenvalues[-1]
        if not largest > 0 or eigenvalues[0] < -_INDEFINITE * largest:
            return None
        used = eigenvalues > largest * (len(data) * 1e-16)
        return vectors[:, used] * np.sqrt(eigenvalues[used])


def _count(problem: Problem) -> int:
    """Variables x of a problem."""
    return np.count_nonzero(problem.upper > 0) + np.count_nonzero(problem.lower < 0)


def _solve(factor: np.ndarray, problem: Problem, n_threads: int, air: Any) -> np.ndarray | None:
    """The variables a of a solution, with bounds and sums kept; None where rounding leaves none."""
    points, groups = problem.points(), problem.groups()
    up, down = np.flatnonzero(problem.upper > 0), np.flatnonzero(problem.lower < 0)
    variable = np.concatenate([up, down])
    sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
    limit = np.concatenate([problem.upper[up], -problem.lower[down]])
    sums = np.array([problem.start[members].sum() for members in groups])
    equal = np.zeros((len(points), len(groups)))
    for number, members in enumerate(groups):
        equal[members, number] = 1.0
    x, at_zero, at_limit = interior_point(
        sign[:, None] * factor[points[variable]],
        sign[:, None] * equal[variable],
        sums,
        sign * problem.linear[variable] + problem.kink,
        limit,
        n_threads,
        air,
    )
    if not np.isfinite(x).all():
        return None
    x = np.where(at_zero, 0.0, np.where(at_limit, limit, x))
    a = np.bincount(variable, weights=sign * x, minlength=len(points))
    free = np.unique(variable[~at_zero & ~at_limit])
    if 0 < len(free) <= _POLISHED:
        _polish(factor[points], problem, a, free, equal, sums)
    return a if _balance(problem, a, sums) else None


def interior_point(
    V: np.ndarray,
    E: np.ndarray,
    sums: np.ndarray,
    cost: np.ndarray,
    limit: np.ndarray,
    n_threads: int = 1,
    air: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The x that minimises ½‖Vᵀx‖² + costᵀx over 0 ≤ x ≤ limit, Eᵀx = sums; and which x are at 0, and at their limit.

    In units where limits are 1 and costs at most 1.
    """
    A = np.concatenate([V, E], axis=1) * limit[:, None]
    rank, cost = V.shape[1], cost * limit
    unit = np.abs(cost).max() or np.square(A[:, :rank]).sum(axis=1).max() or 1.0
    size = np.abs(A[:, rank:]).max(axis=0)
    A[:, :rank] /= np.sqrt(unit)
    A[:, rank:] /= size
    cost, sums = cost / unit, sums / size

    n = len(cost)
    x, room = np.full(n, 0.5), np.full(n, 0.5)  # room is 1 - x, with the digits that 1 - x would lose
    # y: w, and a multiplier of each sum, at first those that make the gradient least.
    y = np.concatenate([A[:, :rank].T @ x, np.zeros(len(sums))])
    slope = cost + A @ y
    y[rank:] = -np.linalg.lstsq(A[:, rank:], slope, rcond=None)[0]
    slope = cost + A @ y
    least = 0.1 * max(1e-3, np.abs(slope).max())
    z, u = np.maximum(slope, 0.0) + least, np.maximum(-slope, 0.0) + least
    for _ in range(_ITERATIONS):
        if air is not None:
            air()
        mu = (x @ z + room @ u) / (2 * n)
        slope = cost + A @ y - z + u  # to be 0, as is
        off = A.T @ x - np.concatenate([y[:rank], sums])
        if mu < _DONE and np.abs(slope).max() < 1e-12:
            break
        step = _NewtonStep(A, rank, (x, room, z, u), slope, off, n_threads)
        if step.factor is None:
            break
        dx, dy, dz, du = step.towards(-x * z, -room * u)  # to μ = 0: how far that goes tells how much to aim for
        t = _longest((x, dx), (room, -dx), (z, dz), (u, du))
        ahead = ((x + t * dx) @ (z + t * dz) + (room - t * dx) @ (u + t * du)) / (2 * n)
        aim = mu * (ahead / mu) ** 3
        dx, dy, dz, du = step.towards(aim - x * z - dx * dz, aim - room * u + dx * du)
        t = min(1.0, _BOUNDARY * _longest((x, dx), (room, -dx), (z, dz), (u, du)))
        if not t > 1e-10 or not np.isfinite(dy).all():
            break
        x, room, y, z, u = x + t * dx, room - t * dx, y + t * dy, z + t * dz, u + t * du
    return x * limit, x < z, room < u


class _NewtonStep:
    """The system of one iteration, factored once for its two right-hand sides."""

    def __init__(
        self,
        A: np.ndarray,
        rank: int,
        at: tuple[np.ndarray, ...],
        slope: np.ndarray,
        off: np.ndarray,
        n_threads: int,
    ) -> None:
        self.A, self.slope, self.off = A, slope, off
        self.x, self.room, self.z, self.u = at
        self.curve = self.z / self.x + self.u / self.room
        self.matrix = _products(A, 1.0 / np.sqrt(self.curve), n_threads)
        self.matrix[np.arange(rank), np.arange(rank)] += 1.0
        self.root = np.sqrt(np.diagonal(self.matrix))
        self.factor = None
        for ridge in (0.0, 1e-15, 1e-13, 1e-11):  # of numbers between -1 and 1
            correlations = self.matrix / self.root / self.root[:, None]
            correlations[np.diag_indices_from(correlations)] += ridge
            try:
                self.factor = cho_factor(correlations, lower=True, overwrite_a=True, check_finite=False)
                break
            except LinAlgError:
                continue

    def _system(self, right: np.ndarray) -> np.ndarray:
        return cho_solve(self.factor, right / self.root, check_finite=False) / self.root

    def towards(self, for_z: np.ndarray, for_u: np.ndarray) -> tuple[np.ndarray, ...]:
        """Steps of x, y, z and u to x·z and room·u that are larger by these."""
        pull = -self.slope + for_z / self.x - for_u / self.room
        right = self.A.T @ (pull / self.curve) + self.off
        dy = self._system(right)
        dy += self._system(right - self.matrix @ dy)  # what rounding has left of it
        dx = (pull - self.A @ dy) / self.curve
        return dx, dy, (for_z - self.z * dx) / self.x, (for_u + self.u * dx) / self.room


def _products(A: np.ndarray, scale: np.ndarray, n_threads: int) -> np.ndarray:
    """(scale·A)ᵀ(scale·A), added up over blocks of rows in their order, whichever thread makes them."""

    def of_block(first: int) -> np.ndarray:
        with np.errstate(all="ignore"):  # the caller's is not that of another thread
            part = A[first : first + _BLOCK] * scale[first : first + _BLOCK, None]
            return part.T @ part

    n, width = A.shape
    threads = parallel.enough_threads(n_threads, n * width * (1.0 + width / 50.0), of_python=True)
    return sum(parallel.in_threads(of_block, ((first,) for first in range(0, n, _BLOCK)), threads))


def _longest(*pairs: tuple[np.ndarray, np.ndarray]) -> float:
    """The step at which the first of the numbers becomes 0."""
    with np.errstate(divide="ignore"):
        return min(float((np.where(change < 0, -number / change, np.inf)).min()) for number, change in pairs)


def _polish(
    factor: np.ndarray, problem: Problem, a: np.ndarray, free: np.ndarray, equal: np.ndarray, sums: np.ndarray
) -> None:
    """Move the free variables to where their slopes are equal in each group, and their sums right, if bounds allow."""
    gradient = factor @ (factor.T @ a) + problem.linear + problem.kink * np.sign(a)
    here, ones = factor[free], equal[free]
    groups = ones.shape[1]
    system = np.block([[here @ here.T, ones], [ones.T, np.zeros((groups, groups))]])
    root = np.sqrt(np.maximum(np.diagonal(system), np.finfo(float).tiny))
    root[-groups:] = 1.0 / np.median(root[: len(free)])
    right = np.concatenate([-gradient[free], sums - equal.T @ a])
    try:
        found = np.linalg.lstsq(system / root / root[:, None], right / root, rcond=1e-15)[0] / root
    except np.linalg.LinAlgError:
        return
    moved = a[free] + found[: len(free)]
    same_side = (np.sign(moved) == np.sign(a[free])) | (problem.kink == 0)
    if np.all(same_side & (moved >= problem.lower[free]) & (moved <= problem.upper[free])):
        a[free] = moved


def _balance(problem: Problem, a: np.ndarray, sums: np.ndarray) -> bool:
    """Bring the sums to what they are to be, by variables that have room; whether that can be done."""
    for members, total in zip(problem.groups(), sums, strict=True):
        low, high = problem.lower[members], problem.upper[members]
        for _ in range(20):
            missing = total - a[members].sum()
            room = (high - a[members] if missing > 0 else a[members] - low) * ((a[members] > low) & (a[members] < high))
            if missing == 0 or not room.sum() > 0:
                break
            a[members] = np.clip(
                a[members] + missing * min(1.0, room.sum() / abs(missing)) * room / room.sum(), low, high
            )
        scale = max(np.abs(a[members]).sum(), np.finfo(float).tiny)
        if abs(total - a[members].sum()) > 1e-12 * scale:
            return False
    return True
