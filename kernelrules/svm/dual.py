"""The five kinds of machines as one dual problem, and what a solution of it is worth.

    minimise  ½ βᵀKβ + pᵀβ + kink·Σ|a|   over  lower ≤ a ≤ upper,  the sum of a fixed in each group

              p     bounds of a           kink   sums                       groups
    C-SVC    -y     [0, C] or [-C, 0]      0     0                          1
    ν-SVC     0     [0, 1] or [-1, 0]      0     νn/2 and -νn/2             2, a class each
    ε-SVR    -y     [-C, C]                ε     0                          1
    ν-SVR    -y     [0, C], then [-C, 0]   0     Cνn/2 and -Cνn/2           2, each has all points
    one-class 0     [0, 1]                 0     νn                         1

With the gradient g = Kβ + p the Lagrangian's other side is, for any offset b of each group,

    P = ½ βᵀKβ + Σ_groups [ b·sum + Σ upper·(-g - kink - b)₊ + Σ |lower|·(g - kink + b)₊ ],

a sum of hinges: the primal of each of the five. It is at least -(the dual's value) for every a and b, so the smallest P
over b, found exactly by sorting the hinges, certifies a solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.core import apply, rows, smo
from kernelrules.results import Certificate
from kernelrules.svm import newton
from kernelrules.svm.interior import Interior
from kernelrules.svm.settings import NEAR
from kernelrules.svm.values import KernelValues

__all__ = ["Problem", "Solution", "c_svc", "eps_svr", "nu_svc", "nu_svr", "one_class", "run_alone", "solve"]

_REFINEMENTS = 12  # times that a gradient is made again from float64 values before the solver gives up
_WIDEN_AFTER = 3  # refinements after which float32 rows are suspected
_AFTERWARDS = 1_000_000  # most steps of SMO from an interior point's solution: what it then lacks is rounding
_AIM = 0.99  # of the tolerance: what the gradient gained or lost by rounding then rarely costs another round


@dataclass(frozen=True, eq=False)
class Problem:
    """A dual problem: a run (start, n, point, group) for each segment of variables, and arrays over the variables."""

    segments: tuple[tuple[int, int, int, int], ...]
    lower: np.ndarray
    upper: np.ndarray
    linear: np.ndarray
    start: np.ndarray
    kink: float = 0.0

    def points(self) -> np.ndarray:
        """The point of every variable."""
        return np.concatenate([np.arange(point, point + n) for _, n, point, _ in self.segments])

    def groups(self) -> list[np.ndarray]:
        """The variables of each group."""
        n_groups = 1 + max(group for *_, group in self.segments)
        runs = [[np.arange(s, s + n) for s, n, _, group in self.segments if group == g] for g in range(n_groups)]
        return [np.concatenate(run) for run in runs]

    def objective(self, a: np.ndarray, gradient: np.ndarray) -> float:
        """What is minimised, at variables with that gradient."""
        return float((a * (gradient + self.linear)).sum() / 2 + self.kink * np.abs(a).sum())

    def gap(self, a: np.ndarray, gradient: np.ndarray) -> float:
        """By how much the objective may at most be larger than the least there is."""
        primal, dual = primal_and_dual(self, a, gradient)
        return primal - dual

    def beta(self, a: np.ndarray, n_points: int) -> np.ndarray:
        """The coefficient of every point."""
        return np.bincount(self.points(), weights=a, minlength=n_points)


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved problem: its variables, the coefficients and gradient, and an offset for each group."""

    problem: Problem
    a: np.ndarray
    beta: np.ndarray
    gradient: np.ndarray
    offsets: np.ndarray
    certificate: Certificate

    @property
    def intercept(self) -> float:
        """The constant of the decision function."""
        return float(self.offsets.mean())

    def decision(self) -> np.ndarray:
        """Decision values of the variables' points."""
        return self.gradient - self.problem.linear + self.intercept


# ---- the five kinds ---------------------------------------------------------------------------------------------


def _runs(spans: list[tuple[int, int]], groups: list[int]) -> tuple[tuple[int, int, int, int], ...]:
    """Segments for runs of points (first, last): variables follow one another."""
    starts = np.concatenate([[0], np.cumsum([last - first for first, last in spans])]).astype(int)
    return tuple(
        (int(s), int(last - first), int(first), group)
        for s, (first, last), group in zip(starts, spans, groups, strict=False)
    )


def c_svc(spans: list[tuple[int, int]], signs: np.ndarray, cost: np.ndarray) -> Problem:
    """Soft margin: `signs` ±1 and `cost` for every variable, in the order of the spans of points."""
    zero = np.zeros(len(signs))
    lower, upper = np.where(signs > 0, 0.0, -cost), np.where(signs > 0, cost, 0.0)
    return Problem(_runs(spans, [0] * len(spans)), lower, upper, -signs.astype(np.float64), zero)


def _filled(limit: np.ndarray, total: float) -> np.ndarray:
    """Variables at their limits one after the other until their sum is `total`, which is then exact."""
    filled = np.clip(total - (np.cumsum(limit) - limit), 0.0, limit)
    return filled


def nu_svc(spans: list[tuple[int, int]], n_positive: int, weight: np.ndarray, nu: float) -> Problem:
    """The positive class's variables come first; `weight` is each one's upper limit."""
    half = nu * weight.sum() / 2
    positive = np.arange(len(weight)) < n_positive
    most = 2 * min(weight[positive].sum(), weight[~positive].sum()) / weight.sum()
    if nu > most:
        raise ValueError(f"nu must be at most {most:.6g} for classes of these sizes, got {nu}")
    start = np.concatenate([_filled(weight[positive], half), -_filled(weight[~positive], half)])
    zero = np.zeros(len(weight))
    groups = [0 if last <= spans[0][1] and first >= spans[0][0] else 1 for first, last in spans]
    return Problem(_runs(spans, groups), np.where(positive, 0.0, -weight), np.where(positive, weight, 0.0), zero, start)


def eps_svr(y: np.ndarray, cost: np.ndarray, epsilon: float) -> Problem:
    """Regression with a tube of half-width epsilon."""
    return Problem(_runs([(0, len(y))], [0]), -cost, cost, -y, np.zeros(len(y)), epsilon)


def nu_svr(y: np.ndarray, cost: np.ndarray, nu: float) -> Problem:
    """Regression with a tube as wide as nu asks for: the two sides of the tube are two groups over the same points."""
    n = len(y)
    start = _filled(cost, nu * cost.sum() / 2)
    zero = np.zeros(n)
    segments = ((0, n, 0, 0), (n, n, 0, 1))
    lower, upper = np.concatenate([zero, -cost]), np.concatenate([cost, zero])
    return Problem(segments, lower, upper, np.concatenate([-y, -y]), np.concatenate([start, -start]))


def one_class(weight: np.ndarray, nu: float) -> Problem:
    """The support of a distribution."""
    zero = np.zeros(len(weight))
    return Problem(_runs([(0, len(weight))], [0]), zero, weight, zero, _filled(weight, nu * weight.sum()))


# ---- what a solution is worth -----------------------------------------------------------------------------------


def _lowest(slope: float, right: np.ndarray, right_weight: np.ndarray, left: np.ndarray, left_weight: np.ndarray):
    """The least value of slope·b + Σ right_weight·(right - b)₊ + Σ left_weight·(b - left)₊ over b."""
    places = np.concatenate([right, left])
    weights = np.concatenate([right_weight, left_weight])
    used = weights > 0
    if not used.any():
        return 0.0
    order = np.argsort(places[used], kind="stable")
    places_used = places[used][order]
    slopes = slope - right_weight.sum() + np.cumsum(weights[used][order])
    at = min(int(np.searchsorted(slopes, 0.0)), len(places_used) - 1)
    b = places_used[at]
    hinges = (right_weight * np.maximum(right - b, 0.0)).sum() + (left_weight * np.maximum(b - left, 0.0)).sum()
    return slope * b + hinges


def primal_and_dual(problem: Problem, a: np.ndarray, gradient: np.ndarray) -> tuple[float, float]:
    """Both objectives, in the signs of a minimisation over w: the dual is at most the primal."""
    smooth = gradient - problem.linear
    quadratic = 0.5 * float((a * smooth).sum())  # not by BLAS, whose sums depend on its threads
    dual = -(quadratic + float((problem.linear * a).sum()) + problem.kink * float(np.abs(a).sum()))
    primal = quadratic
    for members in problem.groups():
        g, kink = gradient[members], problem.kink
        primal += _lowest(
            float(a[members].sum()), -g - kink, problem.upper[members], -g + kink, np.abs(problem.lower[members])
        )
    return primal, dual


def _offsets(problem: Problem, a: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Of each group the b at which its free variables' conditions hold: their mean, or the middle of what it may be."""
    slope_up = np.where(a >= 0, problem.kink, -problem.kink)
    slope_down = np.where(a > 0, problem.kink, -problem.kink)
    offsets = []
    for members in problem.groups():
        x, g = a[members], gradient[members]
        near = NEAR * (problem.upper[members] - problem.lower[members])
        can_grow, can_shrink = x < problem.upper[members] - near, x > problem.lower[members] + near
        free = can_grow & can_shrink & ((x != 0) | (problem.kink == 0))
        if free.any():
            offsets.append(-(g + slope_up[members])[free].mean())
            continue
        most = (-(g + slope_up[members]))[can_grow].max(initial=-np.inf)
        least = (-(g + slope_down[members]))[can_shrink].min(initial=np.inf)
        sides = [side for side in (most, least) if np.isfinite(side)]
        offsets.append(float(np.mean(sides)) if sides else 0.0)
    return np.array(offsets)


# ---- solving ----------------------------------------------------------------------------------------------------


def _wanted(problems: list[Problem], points: np.ndarray, height: int) -> np.ndarray | None:
    """Which machines have one of the points in which block of `height` of them."""
    wanted = np.zeros((-(-len(points) // height), len(problems)), dtype=np.uint8)
    for m, problem in enumerate(problems):
        for _, n, point, _ in problem.segments:
            first, last = np.searchsorted(points, [point, point + n])
            if last > first:
                wanted[first // height : (last - 1) // height + 1, m] = 1
    return None if wanted.all() else wanted


def solve(
    values: KernelValues,
    problems: list[Problem],
    tol: float,
    max_iter: int | None,
    tick: Any = None,
    exact: bool = True,
) -> list[Solution]:
    """Solve the problems, all on the same points, each to a violation of at most tol in float64.

    The solver works with the rows that `values` has; its gradients are made again from float64 kernel values until
    those agree that it is done (not `exact`: the rows at hand are believed). max_iter None: ten million steps or a
    hundred a point, whichever is more.
    """
    limit = max(10_000_000, 100 * values.n) if max_iter is None else int(min(max_iter, 1 << 62))
    machines = []
    for problem in problems:
        a = problem.start.copy()
        gradient = problem.linear.copy()
        if a.any():
            gradient += values.rough_product(problem.beta(a, values.n))[problem.points()]
        machines.append(smo.Machine(problem.segments, problem.lower, problem.upper, a, gradient, problem.kink))
    violations = [np.inf] * len(machines)
    open_ones = list(range(len(machines)))
    aim = tol * _AIM
    interior = Interior(values)
    worth = [interior.steps_worth(problem) for problem in problems] if exact else [None]
    if None not in worth and max(worth) < limit:
        most = [interior.rows_worth(problem) for problem in problems]
        machines = _run(values, problems, machines, aim, max(worth), tick, None if None in most else max(most))
        late = [(p, m) for p, m in zip(problems, machines, strict=True) if m.unfinished or m.stalled]
        improved = [interior.improve(problem, machine, tick) for problem, machine in late]
        if all(done or machine.stalled for done, (_, machine) in zip(improved, late, strict=True)):
            limit = min(limit, max(machine.n_steps for machine in machines) + _AFTERWARDS)
    for attempt in range(_REFINEMENTS):
        ran = _run(values, [problems[m] for m in open_ones], [machines[m] for m in open_ones], aim, limit, tick)
        for m, machine in zip(open_ones, ran, strict=True):
            machines[m] = machine
        before = [violations[m] for m in open_ones]
        if not exact:
            violations = [machine.violation for machine in machines]
            break
        _refresh(values, [problems[m] for m in open_ones], [machines[m] for m in open_ones])
        for m in open_ones:
            violations[m] = machines[m].look()
        still = [m for m in open_ones if violations[m] > tol and machines[m].n_steps < limit]
        stuck = all(violations[m] > 0.5 * was for m, was in zip(open_ones, before, strict=True) if m in still)
        open_ones = still
        if not open_ones:
            break
        if values.rows.single and (attempt >= _WIDEN_AFTER or (stuck and attempt > 0)):
            values.use_float64()
        elif stuck and attempt > 0:
            break
    return [
        _solution(problem, machine, violation, tol, values.n)
        for problem, machine, violation in zip(problems, machines, violations, strict=True)
    ]


def _run(
    values: KernelValues,
    problems: list[Problem],
    machines: list[smo.Machine],
    aim: float,
    limit: int,
    tick: Any,
    max_rows: int | None = None,
) -> list[smo.Machine]:
    """The solver, on rows first and then on the whole matrix where many rows turn out to be needed; several machines by
    workers, where there are any. max_rows: of a linear machine, whose rounds may cost more than their steps."""
    if values.workers is not None and len(machines) > 1:
        return values.workers.solve(problems, machines, aim, limit, max_rows)
    most = values.rows_before_matrix()
    if most is not None:
        smo.solve(values.rows, machines, aim, limit, values.n_threads, tick, most)
        if values.rows.n_computed < most or not any(machine.unfinished for machine in machines):
            return machines
        values.use_matrix()
    if values.rows.kind == rows.WHOLE_KIND:
        newton.solve(values, problems, machines, aim, limit, tick)
    else:
        if max_rows is not None and len(machines) == 1:
            max_rows += values.rows.n_computed
        smo.solve(values.rows, machines, aim, limit, values.n_threads, tick, max_rows)
    return machines


def run_alone(
    values: KernelValues,
    problem: Problem,
    machine: smo.Machine,
    aim: float,
    limit: int,
    tick: Any,
    max_rows: int | None = None,
) -> Any:
    """A machine after its run: what a worker does with one."""
    return _run(values, [problem], [machine], aim, limit, tick, max_rows)[0]


def _refresh(values: KernelValues, problems: list[Problem], machines: list[smo.Machine]) -> None:
    """Gradients from float64 kernel values, for all variables that count."""
    betas = np.array([p.beta(m.a, values.n) for p, m in zip(problems, machines, strict=True)])
    error = values.row_error()
    counts = [_counting(p, m, error * float(np.abs(m.a).sum())) for p, m in zip(problems, machines, strict=True)]
    needed = np.zeros(values.n, dtype=bool)
    for problem, counting in zip(problems, counts, strict=True):
        needed[problem.points()[counting]] = True
    points = np.flatnonzero(needed)
    if len(points) == 0:
        return
    exact = values.exact_product(betas, points, _wanted(problems, points, apply.HEIGHT))
    for problem, machine, row in zip(problems, machines, exact, strict=True):
        own = problem.points()
        known = needed[own]
        machine.gradient[known] = row[np.searchsorted(points, own[known])] + problem.linear[known]


def _counting(problem: Problem, machine: smo.Machine, doubt: float) -> np.ndarray:
    """Which variables count in the objectives or in the violation, if gradients may be wrong by `doubt`: those that are
    not zero, and those whose hinges could be open. Where all can be had for little, all."""
    a, gradient = machine.a, machine.gradient
    if doubt == 0.0:
        return np.ones(len(a), dtype=bool)
    counting = a != 0
    offsets = _offsets(problem, a, gradient)
    margin = 2 * doubt + max(machine.violation, 0.0)
    for members, b in zip(problem.groups(), offsets, strict=True):
        g = gradient[members] + b
        open_above = (problem.upper[members] > 0) & (g + problem.kink <= margin)
        open_below = (problem.lower[members] < 0) & (g - problem.kink >= -margin)
        counting[members] |= open_above | open_below
    return counting


def _solution(problem: Problem, machine: smo.Machine, violation: float, tol: float, n_points: int) -> Solution:
    primal, dual = primal_and_dual(problem, machine.a, machine.gradient)
    kkt = max(0.0, violation)
    certificate = Certificate(float(primal), dual, float(primal - dual), kkt, machine.n_steps, kkt <= tol)
    beta = problem.beta(machine.a, n_points)
    offsets = _offsets(problem, machine.a, machine.gradient)
    return Solution(problem, machine.a, beta, machine.gradient, offsets, certificate)
