"""Convex quadratic programs whose matrix has low rank, in a box, by a primal-dual interior-point method.

    minimise  ½ yᵀQy + costᵀx   over  Qy = Vᵀx + pull,  0 ≤ x ≤ limit,  Eᵀx = sums,        Q diagonal,

whose optimality conditions, with xz = μ and (limit - x)u = μ in place of complementarity, are solved by Newton's method
while μ falls to 0 (predictor and corrector of Mehrotra 1992). A step requires one system with as many unknowns as V and
E have columns (Ferris and Munson 2002),

    (Q + Vᵀ D⁻¹ V) dy + … = …,        D = z/x + u/(limit - x),

so that conditioning, large limits and columns of any size cost no steps: 10 to 50 are enough. The system is scaled to a
unit diagonal before it is factored, and its residual is computed from V itself.

References
----------
- S. Mehrotra (1992). On the implementation of a primal-dual interior point method. SIAM Journal on Optimization 2,
  575-601.
- M. C. Ferris and T. S. Munson (2002). Interior-point methods for massive support vector machines. SIAM Journal on
  Optimization 13, 783-804.
- S. Fine and K. Scheinberg (2001). Efficient SVM training using low-rank kernel representations. Journal of Machine
  Learning Research 2, 243-264.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernelrules import parallel

__all__ = ["LowRankQP", "Optimum", "longest_step"]

_MAX_ITERATIONS = 80
_BOUNDARY_SHARE = 0.99995  # of the way to the nearest bound that a step may go
_SLOPE_TOL = 1e-12  # of slopes, in units where costs are at most 1
_MU_SHARE = 1e-4  # of the slope tolerance: μ at which iterations end
_SLOPE_RTOL = 8 * np.finfo(np.float64).eps  # rounding of a slope, relative to the terms it is the sum of
_RIDGES = (0.0, 1e-15, 1e-13, 1e-11)  # added to the unit diagonal in turn, until a Cholesky factor exists
_BLOCK_ROWS = 4096  # rows multiplied at a time
_WIDE_COLUMNS = 512  # from which on
_WIDE_BLOCK_ROWS = 1024  # rows are enough work for a thread
_ILL_PIVOT = 1e-3  # a smaller pivot of the scaled system: residuals are computed from V, not from the system
_SMALL_SHARE = 1e-4  # of its limit: if the largest x is below, the program is solved again in smaller units,
_LIMIT_PER_X = 100.0  # with limits of this multiple of the largest x
_MAX_RESCALINGS = 5


@dataclass(frozen=True, eq=False)
class Optimum:
    """A solution: x, y, one multiplier per sum, and which x are at 0 and at their limits."""

    x: np.ndarray
    y: np.ndarray
    multipliers: np.ndarray
    at_zero: np.ndarray
    at_limit: np.ndarray

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are finite."""
        return bool(np.isfinite(self.x).all() and np.isfinite(self.y).all() and np.isfinite(self.multipliers).all())


@dataclass(frozen=True, eq=False)
class LowRankQP:
    """The program above: arrays V (n, p), E (n, n_groups), sums (n_groups,), cost and limit (n,), Q and pull (p,)."""

    V: np.ndarray
    E: np.ndarray
    sums: np.ndarray
    cost: np.ndarray
    limit: np.ndarray
    Q: np.ndarray
    pull: np.ndarray

    def solve(
        self, precision: float = np.inf, n_threads: int = 1, check_interrupt: Callable[[], None] | None = None
    ) -> Optimum:
        """Return the solution, with slopes exact to 1e-12 of the largest cost and to `precision`.

        If every x is a small part of its limit, rounding in units of the limits hides it: the limits are then lowered,
        which is valid as long as no x reaches them.
        """
        unit = float(np.abs(self.cost * self.limit).max())
        if unit == 0:  # of a kernel value, at first; then of the decision values found, which may be far smaller
            unit = float((np.square(self.V * self.limit[:, None]) / self.Q).sum(axis=1).max()) or 1.0
        found = _solve(self, unit, precision, n_threads, check_interrupt)
        for _ in range(0 if self.cost.any() else _MAX_RESCALINGS):
            smaller = float(((np.abs(self.V) @ np.abs(found.y)) * self.limit).max())
            if not 0 < smaller < _SMALL_SHARE * unit:
                break
            again = _solve(self, smaller, precision, n_threads, check_interrupt)
            if not again.is_finite:
                break
            found, unit = again, smaller
        limit = self.limit
        for _ in range(0 if self.sums.any() else _MAX_RESCALINGS):
            largest = float((found.x / limit).max())
            if not 0 < largest < _SMALL_SHARE:
                break
            limit = np.minimum(self.limit, _LIMIT_PER_X * float(found.x.max()))
            scaled = replace(self, limit=limit)
            unit = float(np.abs(self.cost * limit).max()) or unit
            again = _solve(scaled, unit, precision, n_threads, check_interrupt)
            if not again.is_finite or (again.at_limit & (limit < self.limit)).any():
                break
            found = again
        return found


def _solve(
    program: LowRankQP,
    unit: float,
    precision: float,
    n_threads: int,
    check_interrupt: Callable[[], None] | None,
) -> Optimum:
    """Return the solution, computed in units where limits are 1 and slopes are multiples of `unit`."""
    limit, rank = program.limit, program.V.shape[1]
    A = np.concatenate([program.V, program.E], axis=1) * limit[:, None]
    cost = program.cost * limit
    size = np.abs(A).max(axis=0)
    size[size == 0] = 1.0
    A /= size
    Q = np.concatenate([program.Q / size[:rank] / size[:rank] * unit, np.zeros(len(program.sums))])
    right = np.concatenate([-program.pull, program.sums]) / size
    cost = cost / unit
    exact = min(_SLOPE_TOL, precision * float(limit.min()) / unit)

    n = len(cost)
    x, room = np.full(n, 0.5), np.full(n, 0.5)  # room is 1 - x, with the digits that 1 - x would lose
    # Multipliers start at the values that minimise the gradient.
    y = np.concatenate([(A[:, :rank].T @ x - right[:rank]) / Q[:rank], np.zeros(len(program.sums))])
    slope = cost + A @ y
    y[rank:] = -np.linalg.lstsq(A[:, rank:], slope, rcond=None)[0]
    slope = cost + A @ y
    least = 0.1 * max(1e-3, np.abs(slope).max())
    z, u = np.maximum(slope, 0.0) + least, np.maximum(-slope, 0.0) + least
    for _ in range(_MAX_ITERATIONS):
        if check_interrupt is not None:
            check_interrupt()
        mu = (x @ z + room @ u) / (2 * n)
        slope = cost + A @ y - z + u  # 0 at the solution
        residual = A.T @ x - right - Q * y  # likewise
        if mu < _MU_SHARE * exact and np.abs(slope).max() < exact + _SLOPE_RTOL * np.abs(y).sum():
            break
        step = _NewtonStep(A, Q, (x, room, z, u), slope, residual, n_threads)
        if step.factor is None:
            break
        dx, dy, dz, du = step.towards(-x * z, -room * u)  # to μ = 0: its length determines the next μ
        t = longest_step((x, dx), (room, -dx), (z, dz), (u, du))
        ahead = ((x + t * dx) @ (z + t * dz) + (room - t * dx) @ (u + t * du)) / (2 * n)
        aim = mu * (ahead / mu) ** 3
        dx, dy, dz, du = step.towards(aim - x * z - dx * dz, aim - room * u + dx * du)
        t = min(1.0, _BOUNDARY_SHARE * longest_step((x, dx), (room, -dx), (z, dz), (u, du)))
        if not t > 1e-10 or not np.isfinite(dy).all():
            break
        x, room, y, z, u = x + t * dx, room - t * dx, y + t * dy, z + t * dz, u + t * du
    y = y / size * unit
    return Optimum(x * limit, y[:rank], y[rank:], x < z, room < u)


class _NewtonStep:
    """The system of one iteration, factored once for its two right-hand sides."""

    def __init__(
        self,
        A: np.ndarray,
        Q: np.ndarray,
        point: tuple[np.ndarray, ...],
        slope: np.ndarray,
        residual: np.ndarray,
        n_threads: int,
    ) -> None:
        self.A, self.Q, self.slope, self.residual = A, Q, slope, residual
        self.x, self.room, self.z, self.u = point
        self.curve = self.z / self.x + self.u / self.room
        self.matrix = _weighted_products(A, 1.0 / np.sqrt(self.curve), n_threads)
        self.matrix[np.diag_indices_from(self.matrix)] += Q
        self.root = np.sqrt(np.diagonal(self.matrix))
        self.factor, self.ill_conditioned = None, False
        for ridge in _RIDGES:
            correlations = self.matrix / self.root / self.root[:, None]
            correlations[np.diag_indices_from(correlations)] += ridge
            try:
                self.factor = cho_factor(correlations, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                continue
            self.ill_conditioned = bool(np.diagonal(self.factor[0]).min() < _ILL_PIVOT)
            break

    def _solve_factored(self, right: np.ndarray) -> np.ndarray:
        return cho_solve(self.factor, right / self.root, check_finite=False) / self.root

    def _times(self, dy: np.ndarray) -> np.ndarray:
        """Return the system's matrix times dy."""
        if self.ill_conditioned:
            return self.A.T @ ((self.A @ dy) / self.curve) + self.Q * dy
        return self.matrix @ dy

    def towards(self, for_z: np.ndarray, for_u: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the steps of x, y, z and u that change x·z by `for_z` and room·u by `for_u`."""
        pull = -self.slope + for_z / self.x - for_u / self.room
        right = self.A.T @ (pull / self.curve) + self.residual
        dy = self._solve_factored(right)
        for _ in range(2 if self.ill_conditioned else 1):
            dy += self._solve_factored(right - self._times(dy))  # iterative refinement
        dx = (pull - self.A @ dy) / self.curve
        return dx, dy, (for_z - self.z * dx) / self.x, (for_u + self.u * dx) / self.room


def _weighted_products(A: np.ndarray, scale: np.ndarray, n_threads: int) -> np.ndarray:
    """Return (scale·A)ᵀ(scale·A), summed over blocks of rows in their order, whichever thread computes them."""

    def of_block(first: int) -> np.ndarray:
        with np.errstate(all="ignore"):  # the state of the caller's thread does not apply
            part = A[first : first + block] * scale[first : first + block, None]
            return part.T @ part

    n, width = A.shape
    block = _BLOCK_ROWS if width < _WIDE_COLUMNS else _WIDE_BLOCK_ROWS
    threads = parallel.enough_threads(n_threads, n * width * (1.0 + width / 50.0), of_python=True)
    return sum(parallel.in_threads(of_block, ((first,) for first in range(0, n, block)), threads))


def longest_step(*pairs: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the step length at which the first of the numbers becomes 0."""
    with np.errstate(divide="ignore"):
        return min(float((np.where(change < 0, -number / change, np.inf)).min()) for number, change in pairs)
