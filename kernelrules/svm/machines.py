"""Machines: problems are set up for splits of the points, solved together or one by one, and put into a model.

Splits are runs of ordered points, so machines that share points work on one kernel matrix without copying from it.
Where that matrix does not fit, each machine has the kernel values of its own points. What is computed together depends
on the data alone, so that an executor, which gets machines or the runs of their solver as tasks, changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel, sharing
from kernelrules.core import blocks
from kernelrules.kernels.values import reorder, take
from kernelrules.results import Certificate, SVMModel
from kernelrules.svm import dual
from kernelrules.svm.hard import hard_margin
from kernelrules.svm.settings import Settings, costs, fit_sum, worst
from kernelrules.svm.values import KernelValues, matrix_fits, memory_for
from kernelrules.svm.workers import lent

__all__ = [
    "Fitted",
    "Split",
    "Task",
    "build_model",
    "feasible",
    "fit_machines",
    "fit_on",
    "needs_few_rows",
    "shares_values",
]

_TOGETHER = 5000  # points whose kernel values pairs of classes share: 100 MB of float32
_MANY = 8000  # points from which a trial pays
_TRIAL, _ROUGH, _TRIAL_STEPS = 1000, 0.1, 20_000  # points, tolerance and steps of it
_FEW = 0.4  # of the trial's points; among more points the share of support vectors is smaller
_TIGHTER = 7  # times that a tolerance is divided by ten to find a margin


@dataclass(frozen=True, eq=False)
class Fitted:
    """One machine: coefficients of all points, intercept, certificate, and decision values of its own points."""

    beta: np.ndarray
    intercept: float
    certificate: Certificate
    C: float | None = None
    decision: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """What a machine tells apart: runs of points, positive ones first, and how many those are."""

    spans: list[tuple[int, int]]
    n_positive: int

    def points(self) -> np.ndarray:
        """All points, in the order of the runs."""
        return np.concatenate([np.arange(first, last) for first, last in self.spans])

    def signs(self) -> np.ndarray:
        """+1 for the positive points, -1 for the others."""
        return np.where(np.arange(len(self.points())) < self.n_positive, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Task:
    """What a classification is to minimise: costs of the points, or nu. Weights come with the data in tasks."""

    weight: np.ndarray | None
    C: float
    nu: float | None


def fit_machines(
    x: Any,
    kernel: Any,
    splits: list[Split],
    task: Task,
    settings: Settings,
    earlier: np.ndarray | None = None,
    alone: bool = False,
) -> tuple[list[Fitted], int]:
    """All machines, and the number of kernel rows that were computed: together on one set of kernel values where that
    fits, else (or `alone`) each on its own points."""
    starts = [None] * len(splits) if earlier is None else list(earlier)
    n = x.shape[0]
    if not alone and are_many_pairs(splits, x, kernel):
        return _fit_by_groups(x, kernel, splits, task, settings, starts)
    one = len(splits) == 1 and len(splits[0].points()) == n
    if (one and settings.executor is None) or (len(splits) > 1 and not alone and shares_values(x, kernel, settings)):
        few = needs_few_rows(x, kernel, splits, task, settings)
        values = KernelValues(x, kernel, settings.threads, settings.cache_mb, settings.tick, few=few)
        with lent(values, settings):
            fitted = fit_on(values, splits, task, settings, starts)
        return fitted, values.rows.n_computed if values.rows.n_computed else n
    plain = settings.of_task(memory_for(settings.cache_mb))
    machines, n_computed = [], 0
    with sharing.Scattered(settings.executor) as scatter:
        tasks, data, bare = [], scatter((x, task.weight)), replace(task, weight=None)
        for split, start in zip(splits, starts, strict=True):
            points = np.sort(split.points())
            alone = Split(_renumber(split.spans, points), split.n_positive)
            own = None if len(points) == n else points
            tasks.append((data, own, kernel, alone, bare, plain, None if start is None else start[points]))
        tick = None if settings.executor is None else settings.tick  # without one, each machine tells by itself
        found = parallel.run(_fit_alone, tasks, settings.executor, tick, "machine")
    for split, (machine, computed) in zip(splits, found, strict=True):
        beta = np.zeros(n)
        beta[np.sort(split.points())] = machine.beta
        machines.append(replace(machine, beta=beta))
        n_computed += computed
    return machines, n_computed


def are_many_pairs(splits: list[Split], x: Any, kernel: Any) -> bool:
    """Whether the machines are pairs of many classes on a matrix that is large as a whole."""
    if isinstance(kernel, (kernels.Linear, kernels.Precomputed)) or x.shape[0] <= _TOGETHER:
        return False
    return len(splits) > 3 and all(len(split.points()) <= _TOGETHER // 2 for split in splits)


def _fit_by_groups(
    x: Any, kernel: Any, splits: list[Split], task: Task, settings: Settings, starts: list[np.ndarray | None]
) -> tuple[list[Fitted], int]:
    """One-vs-one machines of many classes: classes are put into groups, and the machines between two groups share the
    kernel values of those points, in memory that is used again and again."""
    classes = sorted({span for split in splits for span in split.spans})
    groups, filled = {}, 0
    for first, last in classes:
        filled += last - first
        groups[first, last] = 2 * (filled - 1) // _TOGETHER
    batches: dict[tuple[int, int], list[int]] = {}
    for m, split in enumerate(splits):
        batches.setdefault(tuple(sorted(groups[span] for span in split.spans)), []).append(m)
    plain = settings.of_task(memory_for(settings.cache_mb))
    buffer = blocks.empty((_TOGETHER * _TOGETHER * 9,), np.uint8) if settings.executor is None else None
    machines: list[Fitted | None] = [None] * len(splits)
    n_computed = 0
    with sharing.Scattered(settings.executor) as scatter:
        tasks, data, bare = [], scatter((x, task.weight)), replace(task, weight=None)
        for members in batches.values():
            points = np.unique(np.concatenate([splits[m].points() for m in members]))
            own = [Split(_renumber(splits[m].spans, points), splits[m].n_positive) for m in members]
            begin = [None if starts[m] is None else starts[m][points] for m in members]
            tasks.append((data, points, kernel, own, bare, plain, begin, buffer))
        tick = None if settings.executor is None else settings.tick
        found = parallel.run(_fit_batch, tasks, settings.executor, tick, "group of machines")
    for members, task_points, (fitted, computed) in zip(batches.values(), (t[1] for t in tasks), found, strict=True):
        for m, machine in zip(members, fitted, strict=True):
            beta = np.zeros(x.shape[0])
            beta[task_points] = machine.beta
            machines[m] = replace(machine, beta=beta)
        n_computed += computed
    return machines, n_computed


def _fit_batch(
    data: tuple,
    points: np.ndarray,
    kernel: Any,
    splits: list[Split],
    task: Task,
    settings: Settings,
    starts: list[np.ndarray | None],
    buffer: np.ndarray | None,
) -> tuple[list[Fitted], int]:
    """Machines that share the kernel values of some points; what an executor is given."""
    x, weight = data
    values = KernelValues(take(x, points), kernel, settings.threads, settings.cache_mb, settings.tick, buffer=buffer)
    fitted = fit_on(values, splits, Task(weight[points], task.C, task.nu), settings, starts)
    return fitted, values.rows.n_computed or values.n


def needs_few_rows(x: Any, kernel: Any, splits: list[Split], task: Task, settings: Settings) -> bool:
    """Whether a C-machine on many points will have few support vectors: what a trial on every so many of them says."""
    n = x.shape[0]
    trial = isinstance(kernel, (kernels.RBF, kernels.Laplacian, kernels.Sigmoid, kernels.Polynomial))
    if n < _MANY or len(splits) > 1 or task.nu is not None or math.isinf(task.C) or not trial:
        return False
    chosen = np.arange(0, n, n // _TRIAL)
    spans = _renumber(splits[0].spans, chosen)
    split = Split(spans, spans[0][1] - spans[0][0])  # two classes: one run each
    if not 0 < split.n_positive < len(chosen):
        return False
    values = KernelValues(take(x, chosen), kernel, settings.threads)
    weight = task.weight[chosen][split.points()]
    problem = dual.c_svc(split.spans, split.signs(), costs(task.C, weight))
    rough = dual.solve(values, [problem], _ROUGH, _TRIAL_STEPS, exact=False)[0]
    return bool((rough.beta != 0).mean() < _FEW)


def shares_values(x: Any, kernel: Any, settings: Settings) -> bool:
    """Whether the kernel values of all points can be had at once: then machines share them."""
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
    task: Task,
    settings: Settings,
    start: np.ndarray | None,
) -> tuple[Fitted, int]:
    """One machine on its own points; what an executor is given."""
    x, weight = data
    if points is not None:
        x, weight = reorder(x, points, kernel), weight[points]
    part = Task(weight, task.C, task.nu)
    few = needs_few_rows(x, kernel, [split], part, settings)
    values = KernelValues(x, kernel, settings.threads, settings.cache_mb, settings.tick, few=few)
    fitted = fit_on(values, [split], part, settings, [start])[0]
    return fitted, values.rows.n_computed if values.rows.n_computed else values.n


def fit_on(
    values: KernelValues,
    splits: list[Split],
    task: Task,
    settings: Settings,
    starts: list[np.ndarray | None],
    exact: bool = True,
) -> list[Fitted]:
    """Machines that share kernel values; not `exact`: without a last look at float64 values."""
    if task.nu is None and math.isinf(task.C):  # in turn: each is a search, for the length of its own margin
        return [Fitted(**hard_margin(values, s.spans, s.n_positive, settings), C=math.inf) for s in splits]
    problems = []
    for split, start in zip(splits, starts, strict=True):
        points = split.points()
        weight = task.weight[points]
        if task.nu is None:
            problem = dual.c_svc(split.spans, split.signs(), costs(task.C, weight))
        else:
            problem = dual.nu_svc(split.spans, split.n_positive, costs(1.0, weight), task.nu)
        problems.append(problem if start is None else replace(problem, start=feasible(problem, start[points])))
    solutions = dual.solve(values, problems, settings.tol, settings.max_iter, settings.tick, exact)
    if task.nu is None:
        return [Fitted(s.beta, s.intercept, s.certificate, task.C, s.decision()) for s in solutions]
    return [_rescaled(_with_margin(values, s, task.nu, settings), settings.tol) for s in solutions]


def feasible(problem: dual.Problem, start: np.ndarray) -> np.ndarray:
    """A start near the given coefficients that keeps the bounds and sums of the problem."""
    a = start.copy()
    up, down = np.maximum(a, 0), np.maximum(-a, 0)
    if len(problem.groups()) == 1:
        up, down = np.minimum(up, problem.upper), np.minimum(down, -problem.lower)
        least = min(up.sum(), down.sum())
        return fit_sum(up, problem.upper, least) - fit_sum(down, -problem.lower, least)
    for members in problem.groups():
        total = problem.start[members].sum()
        side, limit = (up, problem.upper) if total > 0 else (down, -problem.lower)
        scale = abs(total) / side[members].sum() if side[members].any() else 1.0
        fitted = fit_sum(side[members] * scale, limit[members], abs(total))
        a[members] = fitted if total > 0 else -fitted
    return a


def _with_margin(values: KernelValues, solution: dual.Solution, nu: float, settings: Settings) -> dual.Solution:
    """The solution, made more exact where it leaves open whether there is a margin at all (the problem's least value is
    -½‖w‖² of the reduced hulls' distance, and is between the dual's and the primal's), and where division by a small
    margin takes the violation beyond the tolerance."""
    certificate, tol = solution.certificate, settings.tol
    for _ in range(_TIGHTER):
        rho = float(solution.offsets[1] - solution.offsets[0]) / 2
        proved = certificate.primal < 0 and rho > 0
        if (proved and certificate.kkt <= settings.tol * rho) or not certificate.converged:
            break
        tol = min(tol / 10, 0.9 * settings.tol * rho) if proved else tol / 10
        again = dual.solve(values, [replace(solution.problem, start=solution.a)], tol, settings.max_iter, settings.tick)
        steps = certificate.iterations + again[0].certificate.iterations
        solution = again[0]
        certificate = replace(
            solution.certificate, iterations=steps, converged=solution.certificate.kkt <= settings.tol
        )
    below, above = solution.offsets
    if certificate.primal >= 0 or not above > below:
        how = "" if certificate.converged else f" that {certificate.iterations} iterations could show"
        raise ValueError(
            f"nu = {nu} leaves no margin between the classes{how} (their reduced convex hulls meet): take a larger nu"
        )
    return replace(solution, certificate=certificate)


def _rescaled(solution: dual.Solution, tol: float) -> Fitted:
    """A ν-machine in the units of the C-machine that it equals, C = 1 / ρ: its margin is at ±1."""
    below, above = solution.offsets
    rho = (above - below) / 2
    certificate = solution.certificate
    scaled = replace(
        certificate,
        kkt=float(certificate.kkt / rho),
        converged=bool(certificate.kkt / rho <= tol),
        primal=float(certificate.primal / rho / rho),
        dual=float(certificate.dual / rho / rho),
        gap=float(certificate.gap / rho / rho),
    )
    return Fitted(solution.beta / rho, solution.intercept / rho, scaled, 1.0 / rho)


def build_model(
    x: Any,
    kernel: Any,
    kind: str,
    machines: list[Fitted],
    order: np.ndarray,
    n_rows: int,
    n_features: int,
    n_computed: int,
    classes: np.ndarray | None = None,
    multiclass: str = "ovo",
) -> SVMModel:
    """Machines on ordered points become a model on the user's rows."""
    betas = np.array([machine.beta for machine in machines])
    used = np.flatnonzero(betas.any(axis=0))
    certificates = tuple(machine.certificate for machine in machines)
    vectors = None
    if not isinstance(kernel, kernels.Precomputed):
        vectors = take(x, used)
        vectors = vectors.toscipy() if isinstance(vectors, check.Csr) else np.ascontiguousarray(vectors)
    return SVMModel(
        kind=kind,
        kernel=kernel,
        classes=classes,
        multiclass=multiclass,
        support=order[used],
        support_vectors=vectors,
        dual_coef=np.ascontiguousarray(betas[:, used]),
        intercept=np.array([machine.intercept for machine in machines]),
        certificate=worst(certificates),
        certificates=certificates,
        n_features=n_features,
        n_train=n_rows,
        rows_computed=n_computed,
    )
