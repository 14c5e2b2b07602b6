"""The widest margin between separable rows of the linear kernel, in the user's units.

On scaled columns, w·x = v·x̃ and ‖w‖² = vᵀQv with a diagonal Q, the problem is

    minimise  ½ vᵀQv   over  s(v·x̃ + b) ≥ 1,

solved by interior points from a hyperplane that separates the rows. Newton's method then removes the residual of the
equations of the rows with coefficients, computed in twice the precision. Coefficients are pairs of floats: for a margin
δ between rows of size L, their combination w loses the digits of (L/δ)², which may be all digits of float64.

The certificate bounds the margin from both sides: by the distance of the classes along w, and by the distance between
the points of the hulls that the coefficients define.

References
----------
- D. Ruiz (2001). A scaling algorithm to equilibrate both rows and columns norms in matrices. Technical report
  RAL-TR-2001-034, Rutherford Appleton Laboratory. The scaling in `_equilibrated_solution`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelrules.svm.hard_margin.double_double import products, two_sum
from kernelrules.svm.hard_margin.inequality_qp import InequalityQP
from kernelrules.svm.hard_margin.separability import ROUNDING, ScaledRows

__all__ = ["HardMarginMachine", "widest_margin"]

_MAX_NEWTON_EQUATIONS = 600  # up to which a solution is refined
_MAX_NEWTON_STEPS = 12
_GAP_RTOL = 1e-9  # of the objective: a smaller gap needs no further step


@dataclass(frozen=True, eq=False)
class HardMarginMachine:
    """A hyperplane with all rows at 1 or beyond, coefficients above 0 of its rows, and its certificate."""

    alpha: np.ndarray
    w: np.ndarray
    intercept: float
    primal: float
    dual: float
    kkt: float
    steps: int
    decision: np.ndarray


def widest_margin(rows: ScaledRows, v: np.ndarray) -> HardMarginMachine:
    """Return the machine of the hard margin, from weights v of the scaled columns that separate the rows."""
    half = rows.sides(v)[1]
    best, alpha, steps = v / half, np.zeros(len(rows.signs)), 0
    metric, exponents = _metric(rows.exponents)
    x, basis = rows.in_span(exponents)
    start = 2 * best
    if basis is not None:
        metric = np.ones(x.shape[1])
        start = basis.T @ np.ldexp(start, -2 * exponents)  # basis has orthonormal columns times 2 to the exponents
    moved = x @ start
    middle = (moved[rows.positive].min() + moved[~rows.positive].max()) / 2
    z = np.concatenate([start, [-middle]])
    signs, n = rows.signs[:, None], len(moved)
    B = np.concatenate([signs * x, signs], axis=1)
    program = InequalityQP(B, np.ones(n), np.concatenate([metric, [0.0]]), np.zeros(len(z)))
    beyond = np.maximum(B @ z - 1.0, 1.0)
    for near, multipliers in program.path(z, (0.5 * (metric * start**2).sum() / n) / beyond, rows.check_interrupt):
        found = near[:-1] if basis is None else basis @ near[:-1]
        half = rows.sides(found)[1]
        if half > 0 and np.isfinite(multipliers).all():
            best, alpha = found / half, multipliers
        steps += 1
    return _refined(rows, best, alpha, steps)


def _metric(exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q with ‖w‖² = Σ Q·v², and the exponents of the inverse roots of Q, up to a common factor."""
    shifted = np.clip(exponents - int(np.median(exponents)), -450, 450)
    return np.ldexp(1.0, -2 * shifted), shifted


def _refined(rows: ScaledRows, v: np.ndarray, alpha: np.ndarray, steps: int) -> HardMarginMachine:
    """Return the machine of v, or a better one that Newton's method finds from it."""
    values, half, _ = rows.sides(v)
    beyond = np.maximum(rows.signs * values / half - 1.0, 0.0)
    used = alpha > beyond * alpha.max()
    for side in (rows.positive, ~rows.positive):
        used |= side & (beyond <= 4 * beyond[side].min() + ROUNDING) & ~(used & side).any()
    high = rows.signs * np.where(used, np.maximum(alpha, np.finfo(float).tiny), 0.0)
    best = last = _Candidate(rows, v, high, np.zeros(len(high)))
    if len(v) + np.count_nonzero(high) <= _MAX_NEWTON_EQUATIONS:
        for _ in range(_MAX_NEWTON_STEPS):
            if best.gap <= _GAP_RTOL * best.primal:
                break
            last = last.newton_step()
            if last is None:
                break
            best = min(best, last, key=lambda candidate: candidate.gap)
    return best.machine(steps)


class _Candidate:
    """A hyperplane, and coefficients of rows as pairs high + low: bounds of the objective from both sides."""

    def __init__(self, rows: ScaledRows, v: np.ndarray, high: np.ndarray, low: np.ndarray) -> None:
        values, half, middle = rows.sides(v)
        self.rows, self.v, self.high, self.low = rows, v / half, high, low
        self.values, self.middle = values / half, middle / half
        self.size = rows.length(np.ldexp(self.v, -2 * rows.exponents))  # ‖w‖, with w = v·2^-e
        self.upper = rows.length(rows.between(high, low)[0])
        self.primal, self.dual = 0.5 * self.size**2, 2.0 / max(self.upper**2, np.finfo(float).tiny)
        self.gap = self.primal - self.dual

    def newton_step(self) -> _Candidate | None:
        """Return the candidate after a Newton step for the rows with coefficients; None if it fails."""
        rows, v = self.rows, self.v
        used = np.flatnonzero(self.high)
        p, signs = len(v), rows.signs[used]
        metric, _ = _metric(rows.exponents)
        G = signs[:, None] * rows.exact[used]
        moved = signs[:, None] * rows.centred[used]
        # Optimal coefficients add up to ‖w‖²: a power of two brings them near to that, and keeps their digits.
        cost = (metric * v * v).sum()
        near = int(np.round(np.log2(cost) - np.log2(np.abs(self.high[used]).sum())))
        high, low = np.ldexp(signs * self.high[used], near), np.ldexp(signs * self.low[used], near)
        across, rest = products(np.ascontiguousarray(G.T), high)
        more, _ = products(np.ascontiguousarray(G.T), low)
        slope = metric * v - (across + (rest + more))
        total = math.fsum(np.concatenate([signs * high, signs * low]))
        fine, lost = products(rows.exact[used], v)
        short = 1.0 - signs * ((fine - self.middle) + lost)
        system = np.zeros((p + 1 + len(used),) * 2)
        unit = np.sqrt((v * v).sum()) / cost  # of coefficients, so that all unknowns are of one size
        system[np.arange(p), np.arange(p)] = metric * unit
        system[:p, p + 1 :], system[p + 1 :, :p] = -moved.T, moved
        system[p, p + 1 :], system[p + 1 :, p] = -signs, signs
        right = np.concatenate([-slope * unit, [total * unit], short])
        found = _equilibrated_solution(system, right)
        if found is None:
            return None
        change = found[p + 1 :] / unit
        new, lost = two_sum(high, change)
        lost = lost + low
        kept = new > 0  # rows whose coefficients would change sign are dropped
        if not ((signs > 0) & kept).any() or not ((signs < 0) & kept).any():
            return None
        new, lost = np.where(kept, new, 0.0), np.where(kept, lost, 0.0)
        upper, lower = np.zeros(len(self.high)), np.zeros(len(self.high))
        upper[used], lower[used] = signs * new, signs * lost
        better = v + found[:p]
        return _Candidate(rows, better, upper, lower) if rows.sides(better)[1] > 0 else None

    def machine(self, steps: int) -> HardMarginMachine:
        """Return the machine.

        Its violation is the larger of the distance of rows with coefficients from the margin, and of the share by which
        the margin could be wider.
        """
        rows, used = self.rows, self.high != 0
        beyond = float((rows.signs * self.values - 1.0)[used].max())
        narrower = 1.0 - math.sqrt(min(self.dual / self.primal, 1.0))
        dual = min(self.dual, self.primal)
        alpha = np.abs(self.high) / np.abs(self.high[rows.positive]).sum() * dual
        w = np.ldexp(self.v, -rows.exponents)
        return HardMarginMachine(alpha, w, -self.middle, self.primal, dual, max(beyond, narrower), steps, self.values)


def _equilibrated_solution(system: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Return the solution of a square system whose entries are first scaled to sizes near 1 (Ruiz 2001)."""
    left_scale, right_scale = np.ones(len(system)), np.ones(len(system))
    part = system.copy()
    for _ in range(20):
        by_row, by_column = np.sqrt(np.abs(part).max(axis=1)), np.sqrt(np.abs(part).max(axis=0))
        by_row[by_row == 0], by_column[by_column == 0] = 1.0, 1.0
        part /= by_row[:, None] * by_column
        left_scale, right_scale = left_scale * by_row, right_scale * by_column
    try:
        found = np.linalg.lstsq(part, right / left_scale, rcond=1e-15)[0] / right_scale
    except np.linalg.LinAlgError:
        return None
    return found if np.isfinite(found).all() else None
