"""Several C on the same points: `path` over many of them, `budget` for a given sum of slacks.

Kernel values are computed once, and each fit starts from the solution for the next smaller C (a grid of C with warm
starts, not the piecewise linear path of Hastie et al. 2004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import linear_weights, reorder
from kernelrules.results import SVMModel
from kernelrules.svm.executor_runs import runs_by_executor
from kernelrules.svm.hard_margin import NotSeparable, Undecided, numbered
from kernelrules.svm.kernel_values import KernelValues
from kernelrules.svm.machines import (
    Fitted,
    Objective,
    Split,
    fit_machines,
    fit_on,
    largest_value,
    shares_values,
    with_costs,
)
from kernelrules.svm.settings import Settings, cost, warn_unless_converged
from kernelrules.svm.training_data import LabelledData

__all__ = ["budget", "path"]

_RBF = kernels.RBF()
_BUDGET_RTOL = 1e-3  # by which the sum of slacks may stay below the budget
_MAX_BISECTIONS = 60
_MIN_C, _MAX_C = 1e-12, 1e12  # if the largest kernel value is 1; otherwise divided by it
_MIN_FIRST_C = 1e-6  # and its inverse, in the same units: the range in which the first C tried is 1
_MIN_TOL_SHARE = 1e-3  # of the tolerance: for slacks that are small compared with it


def costs_of(Cs: Any) -> np.ndarray:
    """Return Cs as an array of numbers above 0."""
    try:
        given = list(Cs)
    except TypeError:
        raise TypeError(f"Cs must be a sequence of numbers, got {Cs!r}") from None
    values = [cost(C, "Cs") for C in given]
    if not values:
        raise ValueError("Cs is empty")
    return np.array(values)


@parallel.reports("svm")
def path(
    X: Any,
    y: Any,
    Cs: Sequence[float],
    *,
    kernel: Any = _RBF,
    multiclass: str = "ovo",
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    cache_mb: float | None = None,
    executor: Any = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> tuple[SVMModel, ...]:
    """Fit classifiers for several C, which share kernel values; each fit starts from the one before.

    Parameters
    ----------
    X, y : arrays
        As in `svc`.
    Cs : sequence of float
        In any order.
    kernel, multiclass, class_weight, sample_weight, tol, max_iter, cache_mb : optional
        As in `svc`.
    {executor}
        With more than two classes, each binary machine is a task. Costs are fitted in order: each starts from the one
        before.
    {n_threads, callback, progress}

    Returns
    -------
    tuple of SVMModel
        In the order of Cs.

    Raises
    ------
    NotSeparable, Undecided
        If one of Cs is infinite, as in `svc`.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> models = svm.path([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], [0.1, 1.0], kernel=kernels.Linear())
    >>> [round(float(m.certificate.dual), 4) for m in models]
    [0.38, 2.8889]
    """
    tick = parallel.ticker(callback, "svm")
    silent = None if tick is None else parallel.ticker(tick.uncounted, "svm")  # progress is counted in Cs
    settings = Settings(tol, max_iter, cache_mb, n_threads, silent, executor)
    costs = costs_of(Cs)
    check.one_of(multiclass, "multiclass", "ovo", "ovr")
    data = LabelledData.read(X, y, kernel, class_weight, sample_weight)
    splits = data.splits(multiclass)
    models: list[SVMModel | None] = [None] * len(costs)
    with data.errors_in_user_rows(multiclass):
        for done, (place, used, machines, n_computed) in enumerate(_ascending(data, splits, costs, settings)):
            warn_unless_converged([m.certificate for m in machines], settings.tol)
            models[place] = replace(used.model("svc", multiclass, machines, n_computed), C=float(costs[place]))
            if tick is not None:
                tick(done + 1, len(costs))
    return tuple(models)


def _ascending(data: LabelledData, splits: list[Split], costs: np.ndarray, settings: Settings) -> Any:
    """Yield (place, data, machines, rows computed) for every C, ascending, each started from the one before."""
    values = None
    if len(splits) == 1 or shares_values(data.x, data.kernel, settings):
        values = KernelValues(data.x, data.kernel, settings.threads, settings.cache_mb, settings.tick)
    with nullcontext() if values is None else runs_by_executor(values, settings):
        yield from _from_small_to_large(data, splits, costs, settings, values)


def _from_small_to_large(
    data: LabelledData, splits: list[Split], costs: np.ndarray, settings: Settings, values: KernelValues | None
) -> Any:
    earlier, before, n_before = None, 1.0, 0
    for place in np.argsort(costs, kind="stable"):
        C = float(costs[place])
        objective = Objective(data.weight, C, None)
        if math.isinf(C) and data.uncentred is not None:  # centred rows of the linear kernel, without shared values
            rows = data.without_centring()
            yield place, rows, *fit_machines(rows.x, data.kernel, splits, objective, settings)
            continue
        if earlier is not None and math.isfinite(C):
            earlier = earlier * (C / before)
        if values is None:
            machines, n_computed = fit_machines(data.x, data.kernel, splits, objective, settings, earlier)
        else:
            starts = [None] * len(splits) if earlier is None else list(earlier)
            machines = fit_on(values, splits, objective, settings, starts)
            n_computed = values.rows.n_computed - n_before if values.rows.n_computed else (0 if n_before else values.n)
            n_before = max(n_before + n_computed, 1)
        yield place, data, machines, n_computed
        earlier, before = np.array([m.beta for m in machines]), C


@parallel.reports("svm")
def budget(
    X: Any,
    y: Any,
    budget: float | Sequence[float],
    *,
    kernel: Any = _RBF,
    multiclass: str = "ovo",
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    cache_mb: float | None = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> SVMModel:
    """Fit the widest margin whose slacks add up to at most a budget, the form in statistics books.

    Minimises ½‖w‖² under Σ ξᵢ ≤ budget. The sum of slacks at the optimum never grows with C, so C is searched for, each
    fit started from the last. With more than two classes each machine keeps a budget, by a C of its own.

    Parameters
    ----------
    X, y : arrays
        As in `svc`.
    budget : float, or sequence of float
        At least 0; 0 is the hard margin. With more than two classes one number that holds for every machine, or one
        per machine, in the order of the columns of `decision`.
    kernel, multiclass, sample_weight, tol, max_iter, cache_mb : optional
        As in `svc`. Slacks count by their weights.
    {n_threads, callback, progress}

    Returns
    -------
    SVMModel
        Whose sum of slacks is, in each machine, at most the budget and, up to a thousandth, equal to it. `C` is the
        cost that gives it; with more than two classes `C` is None, and `Cs` has the cost of each machine.

    Raises
    ------
    NotSeparable
        If no C leads to slacks that small, and no hyperplane separates the classes; with the proof of that.
    Undecided
        If no C does, and neither a separating hyperplane nor a proof that there is none was found.
    ValueError
        If even w = 0 is within the budget: then no margin is the widest.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, svm
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> model = svm.budget(X, y, 3.0, kernel=kernels.Linear())
    >>> bool(svm.slacks(model, X, y).values.sum() <= 3.0)
    True

    Three classes have three machines, here with a budget each:

    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 1, 0, 2, 1, 2]
    >>> three = svm.budget(X, y, [3.0, 0.5, 3.5], kernel=kernels.Linear())
    >>> np.nansum(svm.slacks(three, X, y).values, axis=0).round(1)
    array([3. , 0.5, 3.5])
    >>> three.C, three.Cs.shape
    (None, (3,))
    """
    settings = Settings(tol, max_iter, cache_mb, n_threads, parallel.ticker(callback, "svm"))
    check.one_of(multiclass, "multiclass", "ovo", "ovr")
    allowed = _budgets_of(budget)
    data = LabelledData.read(X, y, kernel, None, sample_weight)
    splits = data.splits(multiclass)
    if np.ndim(allowed) == 1 and len(allowed) != len(splits):
        raise ValueError(
            f"budget has {len(allowed)} numbers, but {len(data.classes)} classes have {len(splits)} machine(s)"
        )
    each = np.broadcast_to(allowed, len(splits)).tolist()
    if 0.0 in each:
        data = data.without_centring()
        splits = data.splits(multiclass)
    machines, n_computed = [], 0
    with data.errors_in_user_rows(multiclass):
        for machine, computed in _each_within(data, splits, each, settings):
            machines.append(machine)
            n_computed += computed
    warn_unless_converged([machine.certificate for machine in machines], settings.tol)
    return with_costs(data.model("svc", multiclass, machines, n_computed), machines)


def _budgets_of(budget: Any) -> Any:
    """Return a number, or an array with one number per machine."""
    try:
        each = None if isinstance(budget, str) else list(budget)
    except TypeError:
        each = None
    if each is None:
        return check.not_negative(budget, "budget")
    return np.array([check.not_negative(one, f"budget[{m}]") for m, one in enumerate(each)])


def _each_within(data: LabelledData, splits: list[Split], allowed: list[float], settings: Settings) -> Any:
    """Yield (machine, rows computed) for every split, on kernel values of all points if these fit, else of its own."""
    n, whole, counted = data.x.shape[0], None, 0
    for m, (split, most) in enumerate(zip(splits, allowed, strict=True)):
        points = np.sort(split.points())
        try:
            if len(points) == n or shares_values(data.x, data.kernel, settings):
                if whole is None:
                    whole = KernelValues(data.x, data.kernel, settings.threads, settings.cache_mb, settings.tick)
                machine = _fit_budget(data, whole, split, data.weight, most, settings)
                computed = (whole.rows.n_computed or n) - counted
                counted += computed
            else:
                x = reorder(data.x, points, data.kernel)
                values = KernelValues(x, data.kernel, settings.threads, settings.cache_mb, settings.tick)
                with numbered(points):
                    machine = _fit_budget(data, values, split.among(points), data.weight[points], most, settings)
                machine = machine.among(points, n)
                computed = values.rows.n_computed or len(points)
        except ValueError as error:
            if len(splits) > 1:
                error.add_note(f"(in machine {m} of {len(splits)}, numbered from 0 as the columns of decision())")
            raise
        yield machine, computed


class _OutOfReach(Exception):
    """No C that was tried has slacks so small; `args` has the smallest sum found."""


def _fit_budget(
    data: LabelledData, values: KernelValues, split: Split, weight: np.ndarray, allowed: float, settings: Settings
) -> Fitted:
    """Return the machine within the budget; if no C leads to it the hard margin, or raise what proves there is none."""
    finer = max(min(settings.tol, allowed / weight[split.points()].sum()), _MIN_TOL_SHARE * settings.tol)
    exact = settings if allowed == 0 else replace(settings, tol=finer)
    try:
        machine = _search_C(values, split, weight, allowed, exact)
    except _OutOfReach as out:
        message = f"no C has slacks of sum {allowed}, the least found is {out.args[0]:.6g}"
        machine = _fit_hard_margin(data, values, split, weight, exact, message)
    certificate = machine.certificate
    return replace(machine, certificate=replace(certificate, converged=certificate.kkt <= settings.tol))


def _fit_hard_margin(
    data: LabelledData, values: KernelValues, split: Split, weight: np.ndarray, settings: Settings, message: str
) -> Fitted:
    """Return the hard-margin machine of the uncentred data, with the intercept for centred data."""
    if data.uncentred is not None:  # linear kernel: machines share all points
        values = KernelValues(data.uncentred, data.kernel, settings.threads, settings.cache_mb, settings.tick)
    try:
        machine = fit_on(values, [split], Objective(weight, math.inf, None), settings, [None])[0]
    except (NotSeparable, Undecided) as error:
        raise error.after(message) from None
    if data.centre is None:
        return machine
    w = linear_weights(data.uncentred, machine.beta[None, :])[:, 0] if machine.weights is None else machine.weights
    return replace(machine, intercept=machine.intercept + float((w * data.centre).sum()))


def _search_C(values: KernelValues, split: Split, weight: np.ndarray, allowed: float, settings: Settings) -> Fitted:
    """Return the machine whose slacks just keep the budget, by bisection on log C in units of kernel values."""
    signs, own = split.signs(), weight[split.points()]
    most = 2 * min(own[signs > 0].sum(), own[signs < 0].sum())
    if allowed >= most:
        raise ValueError(f"budget = {allowed} allows w = 0, whose slacks add up to {most}: no margin is the widest")

    def fit(C: float, start: Fitted | None) -> tuple[Fitted, float]:
        earlier = None if start is None or not math.isfinite(C) else start.beta * (C / start.C)
        machine = fit_on(values, [split], Objective(weight, C, None), settings, [earlier])[0]
        return machine, float(own @ np.maximum(0.0, 1.0 - signs * machine.decision))

    if allowed == 0:
        return fit(math.inf, None)[0]
    low = high = None
    size = largest_value(values) or 1.0
    min_C, max_C = _MIN_C / max(size, 1.0), _MAX_C / min(size, 1.0)
    C, machine = min(max(1.0, _MIN_FIRST_C / size), 1.0 / _MIN_FIRST_C / size), None
    while low is None or high is None:
        machine, total = fit(C, machine)
        low, high = (low, machine) if total <= allowed else (machine, high)
        if total <= allowed and total >= (1 - _BUDGET_RTOL) * allowed:
            return machine
        C = C / 10 if total <= allowed else C * 10
        if not min_C <= C <= max_C:
            if high is None:
                raise _OutOfReach(total)
            return high
    for _ in range(_MAX_BISECTIONS):
        C = math.sqrt(low.C * high.C)
        machine, total = fit(C, low)
        if total > allowed:
            low = machine
            continue
        high = machine
        if total >= (1 - _BUDGET_RTOL) * allowed:
            break
    return high
