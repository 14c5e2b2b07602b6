"""Quadratic programs with few unknowns and many inequalities, by a primal-dual interior-point method.

    minimise  ½ zᵀQz + cᵀz   over  Bz - least = r ≥ 0  and, if given, equal·z = 1,        Q a diagonal

The optimality conditions, with a·r = μ in place of complementarity and a the multipliers of B, are solved by Newton's
method while μ falls to 0 (predictor and corrector of Mehrotra 1992). A step requires one system in the unknowns z,

    (Q + Bᵀ D B) dz + … = …,        D = a / r,

whose matrix is scaled to a unit diagonal, so that units of the columns cost no digits.

References
----------
- S. Mehrotra (1992). On the implementation of a primal-dual interior point method. SIAM Journal on Optimization 2,
  575-601.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernelrules.svm.low_rank_qp import longest_step

__all__ = ["MAX_ITERATIONS", "InequalityQP"]

MAX_ITERATIONS = 200
_BOUNDARY_SHARE = 0.9995  # of the way to the nearest bound that a step may go
_GAP_RTOL = 1e-13  # of the objective, at which iterations end
_MIN_LINEAR_OBJECTIVE = 1e-5  # in units of numbers near 1: a linear objective may have the minimum 0
_RIDGES = (
    0.0,
    1e-13,
    1e-11,
    1e-9,
)  # added to the unit diagonal in turn until a factor exists; they only shorten steps
_PIVOT_RTOL = 4 * 2.0**-52  # of a squared pivot, per unknown: a smaller one is 0 up to rounding


class InequalityQP:
    """Minimise  ½ zᵀQz + cᵀz  over  Bz - least = r ≥ 0  and, if given, equal·z = 1; Q is a diagonal."""

    def __init__(
        self, B: np.ndarray, least: np.ndarray, Q: np.ndarray, c: np.ndarray, equal: np.ndarray | None = None
    ) -> None:
        self.B, self.least, self.Q, self.c, self.equal = B, least, Q, c, equal

    def path(
        self, z: np.ndarray, a: np.ndarray, check_interrupt: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield iterates z and a, from the given ones, until the gap is closed or rounding leaves no step."""
        n, multiplier = len(a), 0.0
        r = np.maximum(self.B @ z - self.least, 1.0)
        for _ in range(MAX_ITERATIONS):
            if check_interrupt is not None:
                check_interrupt()
            step = _Step(self, z, r, a, multiplier)
            size = (self.Q * z * z).sum() + max(abs(self.c @ z), _MIN_LINEAR_OBJECTIVE * self.c.any())
            if step.factor is None or step.mu * n < _GAP_RTOL * size:
                return
            dz, dr, da, _ = step.towards(-a * r)
            t = min(1.0, longest_step((r, dr), (a, da)))
            ahead = ((r + t * dr) @ (a + t * da)) / n
            dz, dr, da, dm = step.towards(step.mu * (ahead / step.mu) ** 3 - a * r - dr * da)
            t = min(1.0, _BOUNDARY_SHARE * longest_step((r, dr), (a, da)))
            if not t > 1e-10 or not np.isfinite(dz).all():
                return
            z, r, a, multiplier = z + t * dz, r + t * dr, a + t * da, multiplier + t * dm
            yield z, a


class _Step:
    """The system of an iteration, factored once for its two right-hand sides."""

    def __init__(self, program: InequalityQP, z: np.ndarray, r: np.ndarray, a: np.ndarray, multiplier: float) -> None:
        B, Q, equal = program.B, program.Q, program.equal
        self.B, self.r, self.a, self.equal = B, r, a, equal
        self.mu = float(a @ r) / len(r)
        self.short = B @ z - program.least - r
        self.slope = Q * z + program.c - B.T @ a
        self.curve = a / r
        weighted = B * np.sqrt(self.curve)[:, None]
        self.matrix = weighted.T @ weighted  # one operand: BLAS computes half of it
        self.matrix[np.diag_indices_from(self.matrix)] += Q
        self.root = np.sqrt(np.diagonal(self.matrix))
        self.root[self.root == 0] = 1.0
        self.factor = None
        if not np.isfinite(self.matrix).all():
            return
        for ridge in _RIDGES:
            correlations = self.matrix / self.root / self.root[:, None]
            correlations[np.diag_indices_from(correlations)] += ridge
            try:
                factor = cho_factor(correlations, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                continue
            # If the rank of the rows is below the number of unknowns (repeated rows, indicators of categories), some
            # pivots are rounding only. Without Q, a step by such a factor has an arbitrary part in the null space.
            if Q.any() or np.square(np.diagonal(factor[0])).min() > _PIVOT_RTOL * len(correlations):
                self.factor = factor
                break
        if self.factor is not None and equal is not None:
            self.slope += equal * multiplier
            self.lacks = 1.0 - equal @ z
            self.along = self._solve_refined(equal)

    def towards(self, change: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return the steps of z, r, a and the multiplier of the equation that change a·r by `change`."""
        dz = self._solve_refined(self.B.T @ (change / self.r - self.curve * self.short) - self.slope)
        dm = 0.0
        if self.equal is not None:
            dm = float((self.equal @ dz - self.lacks) / (self.equal @ self.along))
            dz = dz - dm * self.along
        dr = self.short + self.B @ dz
        return dz, dr, (change - self.a * dr) / self.r, dm

    def _solve_refined(self, right: np.ndarray) -> np.ndarray:
        found = self._solve_factored(right)
        return found + self._solve_factored(right - self.matrix @ found)

    def _solve_factored(self, right: np.ndarray) -> np.ndarray:
        return cho_solve(self.factor, right / self.root, check_finite=False) / self.root
