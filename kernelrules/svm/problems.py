"""The five kinds of support vector machines as one dual problem.

    minimise  ½ βᵀKβ + pᵀβ + kink·Σ|a|   over  lower ≤ a ≤ upper,  Σ a fixed in each group,

where β of a point is the sum of its variables a.

              p     bounds of a           kink   sums                       groups
    C-SVC    -y     [0, C] or [-C, 0]      0     0                          1
    ν-SVC     0     [0, 1] or [-1, 0]      0     νn/2 and -νn/2             2, one per class
    ε-SVR    -y     [-C, C]                ε     0                          1
    ν-SVR    -y     [0, C], then [-C, 0]   0     Cνn/2 and -Cνn/2           2, each with all points
    one-class 0     [0, 1]                 0     νn                         1

Each function builds a `Problem` (as LIBSVM's `solve_c_svc`, `solve_nu_svc`, ... do). `strategy.solve` solves it, and
certificate.py evaluates the solution.

References
----------
- C.-C. Chang and C.-J. Lin (2011). LIBSVM: a library for support vector machines. ACM Transactions on Intelligent
  Systems and Technology 2, 27:1-27:27. The reduction of the five kinds to one solver.
- B. Schölkopf, A. J. Smola, R. C. Williamson and P. L. Bartlett (2000). New support vector algorithms. Neural
  Computation 12, 1207-1245. ν-SVC and ν-SVR.
- B. Schölkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola and R. C. Williamson (2001). Estimating the support of a
  high-dimensional distribution. Neural Computation 13, 1443-1471. One-class machines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

__all__ = [
    "BOUND_RTOL",
    "Problem",
    "both_sides",
    "c_svc",
    "eps_svr",
    "feasible_start",
    "nu_svc",
    "nu_svr",
    "one_class",
]

BOUND_RTOL = 1e-12  # of the distance between its bounds: a variable this near to a bound is at it, up to rounding


@dataclass(frozen=True, eq=False)
class Problem:
    """A dual problem.

    Attributes
    ----------
    segments : tuple of (start, n, point, group)
        Runs of n variables from `start` on, which belong to consecutive points from `point` on and to one group.
    lower, upper, linear, start : ndarray (n_variables,)
        Bounds of a, p, and the feasible a from which the solver starts.
    kink : float
        Factor of Σ|a|.
    """

    segments: tuple[tuple[int, int, int, int], ...]
    lower: np.ndarray
    upper: np.ndarray
    linear: np.ndarray
    start: np.ndarray
    kink: float = 0.0

    def points(self) -> np.ndarray:
        """Return the point of every variable."""
        return np.concatenate([np.arange(point, point + n) for _, n, point, _ in self.segments])

    def groups(self) -> list[np.ndarray]:
        """Return the variables of each group."""
        n_groups = 1 + max(group for *_, group in self.segments)
        runs = [[np.arange(s, s + n) for s, n, _, group in self.segments if group == g] for g in range(n_groups)]
        return [np.concatenate(run) for run in runs]

    def objective(self, a: np.ndarray, gradient: np.ndarray) -> float:
        """Return the value that is minimised, at variables a with this gradient Kβ + p."""
        return float((a * (gradient + self.linear)).sum() / 2 + self.kink * np.abs(a).sum())

    def beta(self, a: np.ndarray, n_points: int) -> np.ndarray:
        """Return the coefficient of every point."""
        return np.bincount(self.points(), weights=a, minlength=n_points)


# ---- the five reductions ----------------------------------------------------------------------------------------


def c_svc(spans: list[tuple[int, int]], signs: np.ndarray, cost: np.ndarray) -> Problem:
    """Return the soft-margin problem; `signs` (±1) and `cost` have one entry per variable, in the order of `spans`."""
    zero = np.zeros(len(signs))
    lower, upper = np.where(signs > 0, 0.0, -cost), np.where(signs > 0, cost, 0.0)
    return Problem(_segments(spans, [0] * len(spans)), lower, upper, -signs.astype(np.float64), zero)


def nu_svc(spans: list[tuple[int, int]], n_positive: int, weight: np.ndarray, nu: float) -> Problem:
    """Return the ν-SVC problem; variables of the positive class come first, `weight` is the upper limit of each |a|."""
    half = nu * weight.sum() / 2
    positive = np.arange(len(weight)) < n_positive
    largest_nu = 2 * min(weight[positive].sum(), weight[~positive].sum()) / weight.sum()
    if nu > largest_nu:
        raise ValueError(f"nu must be at most {largest_nu:.6g} for classes of these sizes, got {nu}")
    start = np.concatenate([_filled(weight[positive], half), -_filled(weight[~positive], half)])
    zero = np.zeros(len(weight))
    groups = [0 if last <= spans[0][1] and first >= spans[0][0] else 1 for first, last in spans]
    lower, upper = np.where(positive, 0.0, -weight), np.where(positive, weight, 0.0)
    return Problem(_segments(spans, groups), lower, upper, zero, start)


def eps_svr(y: np.ndarray, cost: np.ndarray, epsilon: float, spans: list[tuple[int, int]] | None = None) -> Problem:
    """Return the regression problem with a tube of half-width epsilon, on all points or on runs of them."""
    spans = [(0, len(y))] if spans is None else spans
    return Problem(_segments(spans, [0] * len(spans)), -cost, cost, -y, np.zeros(len(y)), epsilon)


def nu_svr(y: np.ndarray, cost: np.ndarray, nu: float, spans: list[tuple[int, int]] | None = None) -> Problem:
    """Return the regression problem whose tube nu determines: its two sides are two groups over the same points."""
    spans = [(0, len(y))] if spans is None else spans
    start = _filled(cost, nu * cost.sum() / 2)
    zero = np.zeros(len(y))
    segments = _segments(spans + spans, [0] * len(spans) + [1] * len(spans))
    lower, upper = np.concatenate([zero, -cost]), np.concatenate([cost, zero])
    return Problem(segments, lower, upper, np.concatenate([-y, -y]), np.concatenate([start, -start]))


def one_class(weight: np.ndarray, nu: float) -> Problem:
    """Return the one-class problem; `weight` is the upper limit of each variable."""
    zero = np.zeros(len(weight))
    return Problem(_segments([(0, len(weight))], [0]), zero, weight, zero, _filled(weight, nu * weight.sum()))


def _segments(spans: list[tuple[int, int]], groups: list[int]) -> tuple[tuple[int, int, int, int], ...]:
    """Return segments of consecutive variables for runs of points (first, last)."""
    starts = np.concatenate([[0], np.cumsum([last - first for first, last in spans])]).astype(int)
    return tuple(
        (int(s), int(last - first), int(first), group)
        for s, (first, last), group in zip(starts, spans, groups, strict=False)
    )


# ---- feasible starts --------------------------------------------------------------------------------------------


def _filled(limit: np.ndarray, total: float) -> np.ndarray:
    """Return variables set to their limits one after the other until their sum is `total`, exactly."""
    return np.clip(total - (np.cumsum(limit) - limit), 0.0, limit)


def both_sides(beta: np.ndarray) -> np.ndarray:
    """Return coefficients of a regression as variables of the two sides of its tube."""
    return np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)])


def feasible_start(problem: Problem, near: np.ndarray) -> Problem:
    """Return the problem with a start near the given variables that keeps its bounds and sums."""
    a = near.copy()
    up, down = np.maximum(a, 0), np.maximum(-a, 0)
    if len(problem.groups()) == 1:
        up, down = np.minimum(up, problem.upper), np.minimum(down, -problem.lower)
        total = min(up.sum(), down.sum())
        a = _with_sum(up, problem.upper, total) - _with_sum(down, -problem.lower, total)
        return replace(problem, start=a)
    for members in problem.groups():
        total = problem.start[members].sum()
        side, limit = (up, problem.upper) if total > 0 else (down, -problem.lower)
        scale = abs(total) / side[members].sum() if side[members].any() else 1.0
        fitted = _with_sum(side[members] * scale, limit[members], abs(total))
        a[members] = fitted if total > 0 else -fitted
    return replace(problem, start=a)


def _with_sum(a: np.ndarray, limit: np.ndarray, total: float) -> np.ndarray:
    """Return values near a within [0, limit] whose sum is `total`: scaled down, or moved towards the limits."""
    a = np.clip(a, 0.0, limit)
    now = a.sum()
    if now > total:
        a *= total / now
    elif now < total:
        room = limit - a
        a = np.minimum(a + room * ((total - now) / room.sum()), limit)
    return np.where(a > (1 - BOUND_RTOL) * limit, limit, a)
