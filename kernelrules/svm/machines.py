"""Binary machines: problems for splits of the points, solved together or one by one, and assembled into a model.

A split consists of runs of ordered points, so machines that share points use one kernel matrix without copying from it.
If that matrix does not fit, each machine has the kernel values of its own points. Which machines are solved together
depends on the data alone, so an executor, whose tasks are machines or runs of their solver, changes no result.

    fit_machines     all machines: together, by groups of classes, or each on its own points
    fit_on           machines that share kernel values; calls strategy.solve, or hard_margin if C is infinite
    build_model      machines become a model
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelrules import check, kernels, parallel, shared_data
from kernelrules.core.base import memory
from kernelrules.kernels.values import linear_weights, reorder, take
from kernelrules.results import Certificate, SVMModel
from kernelrules.svm import problems, strategy
from kernelrules.svm.certificate import Solution
from kernelrules.svm.executor_runs import runs_by_executor
from kernelrules.svm.hard_margin import hard_margin, numbered
from kernelrules.svm.kernel_values import KernelValues, matrix_fits, memory_for
from kernelrules.svm.settings import Settings, costs, worst

if TYPE_CHECKING:
    from kernelrules.svm.training_data import WeightedRows

__all__ = [
    "Fitted",
    "Objective",
    "Split",
    "build_model",
    "fit_machines",
    "fit_on",
    "largest_value",
    "needs_few_rows",
    "shares_values",
    "with_costs",
]

_GROUP_POINTS = 5000  # points whose kernel values pairs of classes share: 100 MB of float32
_MIN_TRIAL_POINTS = 8000  # points of a machine from which a trial pays
_TRIAL_POINTS, _TRIAL_TOL, _TRIAL_STEPS = 1000, 0.1, 20_000
_MAX_TRIAL_SHARE = 0.4  # of support vectors in the trial; among more points the share is smaller
_MIN_KERNEL_VALUE = 1e-280  # products of smaller kernel values underflow float64
_MAX_TIGHTENINGS = 7  # times that the tolerance is divided by ten to find a margin


@dataclass(frozen=True, eq=False)
class Fitted:
    """One machine: coefficients of all points, intercept, certificate, and decision values of its own points.

    `weights` are those of columns, if they have digits that coefficients cannot represent.
    """

    beta: np.ndarray
    intercept: float
    certificate: Certificate
    C: float | None = None
    decision: np.ndarray | None = None
    weights: np.ndarray | None = None

    def among(self, points: np.ndarray, n: int) -> Fitted:
        """Return the machine with coefficients of all n points; it was fitted to `points`."""
        beta = np.zeros(n)
        beta[points] = self.beta
        return replace(self, beta=beta)


@dataclass(frozen=True, eq=False)
class Split:
    """The points of a machine: runs (first, last), positive points first, and the number of these."""

    spans: list[tuple[int, int]]
    n_positive: int

    def points(self) -> np.ndarray:
        """Return all points, in the order of the runs."""
        return np.concatenate([np.arange(first, last) for first, last in self.spans])

    def signs(self) -> np.ndarray:
        """Return +1 for the positive points, -1 for the others."""
        return np.where(np.arange(len(self.points())) < self.n_positive, 1.0, -1.0)

    def among(self, points: np.ndarray) -> Split:
        """Return the same split when only these points, in ascending order, are left and numbered from 0."""
        return Split(_renumber(self.spans, points), self.n_positive)


@dataclass(frozen=True, eq=False)
class Objective:
    """What machines minimise: C with weights of the points, or nu; for a regression also targets, and epsilon or nu.

    Tasks of an executor receive the arrays with the data.
    """

    weight: np.ndarray | None
    C: float
    nu: float | None
    target: np.ndarray | None = None
    epsilon: float = 0.0

    def arrays(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return what is sent with the data."""
        return self.weight, self.target

    def without_arrays(self) -> Objective:
        """Return the objective without them."""
        return replace(self, weight=None, target=None)

    def at(self, points: np.ndarray | slice, weight: np.ndarray, target: np.ndarray | None) -> Objective:
        """Return the objective on some points, given the arrays of all."""
        return replace(self, weight=weight[points], target=None if target is None else target[points])


def fit_machines(
    x: Any,
    kernel: Any,
    splits: list[Split],
    objective: Objective,
    settings: Settings,
    earlier: np.ndarray | None = None,
    alone: bool = False,
) -> tuple[list[Fitted], int]:
    """Fit all machines: on one set of kernel values if it fits, otherwise (or `alone`) each on its own points.

    `earlier` are coefficients to start from, (n_machines, n). Returns the machines and the number of kernel rows
    computed.
    """
    starts = [None] * len(splits) if earlier is None else list(earlier)
    n = x.shape[0]
    if not alone and are_many_pairs(splits, x, kernel):
        return _fit_by_groups(x, kernel, splits, objective, settings, starts)
    one = len(splits) == 1 and len(splits[0].points()) == n
    if (one and settings.executor is None) or (len(splits) > 1 and not alone and shares_values(x, kernel, settings)):
        few = needs_few_rows(x, kernel, splits, objective, settings)
        values = KernelValues(x, kernel, settings.threads, settings.cache_mb, settings.tick, few=few)
        with runs_by_executor(values, settings):
            fitted = fit_on(values, splits, objective, settings, starts)
        return fitted, values.rows.n_computed if values.rows.n_computed else n
    task_settings = settings.for_task(memory_for(settings.cache_mb))
    machines, n_computed = [], 0
    with shared_data.Scattered(settings.executor) as scatter:
        tasks, data, bare = [], scatter((x, *objective.arrays())), objective.without_arrays()
        for split, start in zip(splits, starts, strict=True):
            points = np.sort(split.points())
            own = None if len(points) == n else points
            tasks.append(
                (data, own, kernel, split.among(points), bare, task_settings, None if start is None else start[points])
            )
        tick = None if settings.executor is None else settings.tick  # without one each machine reports by itself
        found = parallel.run(_fit_alone, tasks, settings.executor, tick, "machine")
    for split, (machine, computed) in zip(splits, found, strict=True):
        machines.append(machine.among(np.sort(split.points()), n))
        n_computed += computed
    return machines, n_computed


def are_many_pairs(splits: list[Split], x: Any, kernel: Any) -> bool:
    """Return whether the machines are pairs of many classes whose common kernel matrix is large."""
    if isinstance(kernel, (kernels.Linear, kernels.Precomputed)) or x.shape[0] <= _GROUP_POINTS:
        return False
    return len(splits) > 3 and all(len(split.points()) <= _GROUP_POINTS // 2 for split in splits)


def _fit_by_groups(
    x: Any, kernel: Any, splits: list[Split], objective: Objective, settings: Settings, starts: list[np.ndarray | None]
) -> tuple[list[Fitted], int]:
    """Fit one-vs-one machines of many classes by groups of classes.

    The machines between two groups share the kernel values of their points, in memory that all pairs of groups reuse.
    """
    classes = sorted({span for split in splits for span in split.spans})
    groups, filled = {}, 0
    for first, last in classes:
        filled += last - first
        groups[first, last] = 2 * (filled - 1) // _GROUP_POINTS
    batches: dict[tuple[int, int], list[int]] = {}
    for m, split in enumerate(splits):
        batches.setdefault(tuple(sorted(groups[span] for span in split.spans)), []).append(m)
    task_settings = settings.for_task(memory_for(settings.cache_mb))
    buffer = memory.empty((_GROUP_POINTS * _GROUP_POINTS * 9,), np.uint8) if settings.executor is None else None
    machines: list[Fitted | None] = [None] * len(splits)
    n_computed = 0
    with shared_data.Scattered(settings.executor) as scatter:
        tasks, data, bare = [], scatter((x, *objective.arrays())), objective.without_arrays()
        for members in batches.values():
            points = np.unique(np.concatenate([splits[m].points() for m in members]))
            own = [splits[m].among(points) for m in members]
            begin = [None if starts[m] is None else starts[m][points] for m in members]
            tasks.append((data, points, kernel, own, bare, task_settings, begin, buffer))
        tick = None if settings.executor is None else settings.tick
        found = parallel.run(_fit_batch, tasks, settings.executor, tick, "group of machines")
    for members, task_points, (fitted, computed) in zip(batches.values(), (t[1] for t in tasks), found, strict=True):
        for m, machine in zip(members, fitted, strict=True):
            machines[m] = machine.among(task_points, x.shape[0])
        n_computed += computed
    return machines, n_computed


def _fit_batch(
    data: tuple,
    points: np.ndarray,
    kernel: Any,
    splits: list[Split],
    objective: Objective,
    settings: Settings,
    starts: list[np.ndarray | None],
    buffer: np.ndarray | None,
) -> tuple[list[Fitted], int]:
    """Fit machines that share the kernel values of some points; a task of an executor."""
    x, *arrays = data
    values = KernelValues(take(x, points), kernel, settings.threads, settings.cache_mb, settings.tick, buffer=buffer)
    with numbered(points):
        fitted = fit_on(values, splits, objective.at(points, *arrays), settings, starts)
    return fitted, values.rows.n_computed or values.n


def needs_few_rows(x: Any, kernel: Any, splits: list[Split], objective: Objective, settings: Settings) -> bool:
    """Return whether a C-machine on many points will have few support vectors, by a trial on a sample of them."""
    n = x.shape[0]
    trial = isinstance(kernel, (kernels.RBF, kernels.Laplacian, kernels.Sigmoid, kernels.Polynomial))
    is_c_svc = objective.target is None and objective.nu is None
    if n < _MIN_TRIAL_POINTS or len(splits) > 1 or not is_c_svc or math.isinf(objective.C) or not trial:
        return False
    chosen = np.arange(0, n, n // _TRIAL_POINTS)
    spans = _renumber(splits[0].spans, chosen)
    split = Split(spans, spans[0][1] - spans[0][0])  # two classes: one run each
    if not 0 < split.n_positive < len(chosen):
        return False
    values = KernelValues(take(x, chosen), kernel, settings.threads)
    weight = objective.weight[chosen][split.points()]
    problem = problems.c_svc(split.spans, split.signs(), costs(objective.C, weight))
    rough = strategy.solve(values, [problem], _TRIAL_TOL, _TRIAL_STEPS, exact=False)[0]
    return bool((rough.beta != 0).mean() < _MAX_TRIAL_SHARE)


def shares_values(x: Any, kernel: Any, settings: Settings) -> bool:
    """Return whether machines share the kernel values of all points, because these fit."""
    if isinstance(kernel, (kernels.Linear, kernels.Precomputed)):
        return True
    return matrix_fits(x.shape[0], kernel, settings.cache_mb)


def _renumber(spans: list[tuple[int, int]], points: np.ndarray) -> list[tuple[int, int]]:
    return [(int(np.searchsorted(points, first)), int(np.searchsorted(points, last))) for first, last in spans]


def _fit_alone(
    data: tuple,
    points: np.ndarray | None,
    kernel: Any,
    split: Split,
    objective: Objective,
    settings: Settings,
    start: np.ndarray | None,
) -> tuple[Fitted, int]:
    """Fit one machine on its own points; a task of an executor."""
    x, *arrays = data
    if points is not None:
        x = reorder(x, points, kernel)
    part = objective.at(slice(None) if points is None else points, *arrays)
    few = needs_few_rows(x, kernel, [split], part, settings)
    values = KernelValues(x, kernel, settings.threads, settings.cache_mb, settings.tick, few=few)
    with numbered(points):
        fitted = fit_on(values, [split], part, settings, [start])[0]
    return fitted, values.rows.n_computed if values.rows.n_computed else values.n


def fit_on(
    values: KernelValues,
    splits: list[Split],
    objective: Objective,
    settings: Settings,
    starts: list[np.ndarray | None],
    exact: bool = True,
) -> list[Fitted]:
    """Fit machines that share kernel values; not `exact`: without confirmation by float64 values."""
    C, nu, is_svr = objective.C, objective.nu, objective.target is not None
    if nu is None and math.isinf(C):  # in turn: each is a search for the width of its own margin
        return [Fitted(**hard_margin(values, s.spans, s.n_positive, settings), C=math.inf) for s in splits]
    duals = [_problem(split, objective, start) for split, start in zip(splits, starts, strict=True)]
    tol = settings.tol if nu is None or is_svr else _margin_tol(values, settings)
    solutions = strategy.solve(values, duals, tol, settings.max_iter, settings.tick, exact)
    if is_svr:
        return [Fitted(s.beta, s.intercept, s.certificate, C, weights=s.weights) for s in solutions]
    if nu is None:
        return [Fitted(s.beta, s.intercept, s.certificate, C, s.decision(), s.weights) for s in solutions]
    return [_rescaled(_with_margin(values, s, nu, settings), settings.tol) for s in solutions]


def _problem(split: Split, objective: Objective, start: np.ndarray | None) -> problems.Problem:
    """Return the dual problem of a machine; `start` has coefficients of all points to start near, or is None."""
    points = split.points()
    weight, target, nu = objective.weight[points], objective.target, objective.nu
    begin = None if start is None else start[points]
    if target is not None and nu is None:
        problem = problems.eps_svr(target[points], costs(objective.C, weight), objective.epsilon, split.spans)
    elif target is not None:
        problem = problems.nu_svr(target[points], costs(objective.C, weight), nu, split.spans)
        begin = None if begin is None else problems.both_sides(begin)
    elif nu is None:
        problem = problems.c_svc(split.spans, split.signs(), costs(objective.C, weight))
    else:
        problem = problems.nu_svc(split.spans, split.n_positive, costs(1.0, weight), nu)
    return problem if begin is None else problems.feasible_start(problem, begin)


def largest_value(values: KernelValues) -> float:
    """Return the largest kernel value; 1 if that requires calls of the user's function."""
    diagonal = values.known_diagonal()
    return 1.0 if diagonal is None else float(np.abs(diagonal).max(initial=0.0))


def _margin_tol(values: KernelValues, settings: Settings) -> float:
    """Return the tolerance of a ν-SVC in units of small kernel values: its margin, still to be divided by, has them."""
    size = largest_value(values)
    return settings.tol * (size if _MIN_KERNEL_VALUE < size < 1.0 else 1.0)


def _with_margin(values: KernelValues, solution: Solution, nu: float, settings: Settings) -> Solution:
    """Return the solution, solved more exactly until it proves a margin and keeps the tolerance after scaling.

    The minimum of the problem, -½‖w‖² of the reduced hulls' distance, lies between dual and primal objective. Division
    by a small margin enlarges the violation.
    """
    certificate, tol = solution.certificate, _margin_tol(values, settings)
    for _ in range(_MAX_TIGHTENINGS):
        rho = float(solution.offsets[1] - solution.offsets[0]) / 2
        proved = solution.least_primal < 0 and rho > 0
        if (proved and certificate.kkt <= settings.tol * rho) or not certificate.converged:
            break
        tol = min(tol / 10, 0.9 * settings.tol * rho) if proved else tol / 10
        problem = replace(solution.problem, start=solution.a)
        solution = strategy.solve(values, [problem], tol, settings.max_iter, settings.tick)[0]
        steps = certificate.iterations + solution.certificate.iterations
        certificate = replace(
            solution.certificate, iterations=steps, converged=solution.certificate.kkt <= settings.tol
        )
    below, above = solution.offsets
    if solution.least_primal >= 0 or not above > below:
        how = "" if certificate.converged else f" that {certificate.iterations} iterations could show"
        size = largest_value(values)
        digits = certificate.beyond or f"rounding of kernel values up to {size:.3g} is {size * np.finfo(float).eps:.2g}"
        raise ValueError(
            f"nu = {nu} leaves no margin between the classes{how} (their reduced convex hulls meet; {digits}): take a "
            "larger nu"
        )
    return replace(solution, certificate=certificate)


def _rescaled(solution: Solution, tol: float) -> Fitted:
    """Return a ν-machine in the units of the C-machine that it equals, C = 1 / ρ, whose margin is at ±1."""
    below, above = solution.offsets
    rho = (above - below) / 2
    certificate = solution.certificate
    converged = bool(certificate.kkt / rho <= tol)
    scaled = replace(
        certificate,
        kkt=float(certificate.kkt / rho),
        converged=converged,
        beyond=None if converged else certificate.beyond,
        primal=float(certificate.primal / rho / rho),
        dual=float(certificate.dual / rho / rho),
        gap=float(certificate.gap / rho / rho),
    )
    weights = None if solution.weights is None else solution.weights / rho
    return Fitted(solution.beta / rho, solution.intercept / rho, scaled, 1.0 / rho, weights=weights)


def build_model(rows: WeightedRows, kernel: Any, kind: str, machines: list[Fitted], n_computed: int) -> SVMModel:
    """Return the model of machines on `rows`, with support vectors numbered as the user's rows."""
    betas = np.array([machine.beta for machine in machines])
    used = np.flatnonzero(betas.any(axis=0))
    certificates = tuple(machine.certificate for machine in machines)
    vectors = None
    if not isinstance(kernel, kernels.Precomputed):
        vectors = take(rows.x, used)
        vectors = vectors.toscipy() if isinstance(vectors, check.Csr) else np.ascontiguousarray(vectors)
    return SVMModel(
        kind=kind,
        kernel=kernel,
        classes=None,
        multiclass="ovo",
        support=rows.kept[used],
        support_vectors=vectors,
        dual_coef=np.ascontiguousarray(betas[:, used]),
        intercept=np.array([machine.intercept for machine in machines]),
        certificate=worst(certificates),
        certificates=certificates,
        n_features=rows.n_features,
        n_train=rows.n_rows,
        rows_computed=n_computed,
        weights=_all_weights(rows.x, machines),
    )


def _all_weights(x: Any, machines: list[Fitted]) -> np.ndarray | None:
    """Return weights of linear machines, one row each, if one has weights more exact than its coefficients."""
    if all(machine.weights is None for machine in machines):
        return None
    return np.array([linear_weights(x, m.beta[None, :])[:, 0] if m.weights is None else m.weights for m in machines])


def with_costs(model: SVMModel, machines: list[Fitted]) -> SVMModel:
    """Return the model with the costs of machines that each have their own."""
    costs = [machine.C for machine in machines]
    return replace(model, C=costs[0]) if len(costs) == 1 else replace(model, Cs=np.array(costs))
