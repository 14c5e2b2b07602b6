"""Several C on the same points: `path` over many of them, `budget` for a given sum of slacks.

Kernel values are made once, and each fit starts from the solution for the next smaller C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.results import SVMModel
from kernelrules.svm.classified import Classified
from kernelrules.svm.machines import Fitted, Split, Task, fit_machines, fit_on, shares_values
from kernelrules.svm.settings import NotSeparable, Settings, cost, warn_unless_converged
from kernelrules.svm.values import KernelValues
from kernelrules.svm.workers import lent

__all__ = ["budget", "path"]

_RBF = kernels.RBF()
_CLOSE = 1e-3  # of the budget, that the sum of slacks may stay below it
_HALVINGS = 60
_LEAST_C, _MOST_C = 1e-12, 1e12


def costs_of(Cs: Any) -> np.ndarray:
    """Cs as an array of numbers above 0."""
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
    """Classifiers for several C: kernel values are shared, and each fit starts from the one before.

    Parameters
    ----------
    X, y : arrays
        As in `svc`.
    Cs : sequence of float
        In any order.
    kernel, multiclass, class_weight, sample_weight, tol, max_iter, cache_mb : optional
        As in `svc`.
    executor : concurrent.futures.Executor, optional
        Fits the machines of more than two classes, as in `svc`. Costs go in turn, as each starts from the one before.
    n_threads, callback, progress : optional
        As in `svc`.

    Returns
    -------
    tuple of SVMModel
        In the order of Cs.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> models = svm.path([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], [0.1, 1.0], kernel=kernels.Linear())
    >>> [round(float(m.certificate.dual), 4) for m in models]
    [0.38, 2.8889]
    """
    tick = parallel.ticker(callback, "svm")
    told = None if tick is None else parallel.ticker(tick.breathe, "svm")  # counted in Cs
    settings = Settings(tol, max_iter, cache_mb, n_threads, told, executor)
    costs = costs_of(Cs)
    check.one_of(multiclass, "multiclass", "ovo", "ovr")
    data = Classified.read(X, y, kernel, class_weight, sample_weight)
    splits = data.splits(multiclass)
    models: list[SVMModel | None] = [None] * len(costs)
    for done, (place, machines, n_computed) in enumerate(_ascending(data, splits, costs, settings)):
        warn_unless_converged([m.certificate for m in machines], settings.tol)
        models[place] = replace(data.model("svc", multiclass, machines, n_computed), C=float(costs[place]))
        if tick is not None:
            tick(done + 1, len(costs))
    return tuple(models)


def _ascending(data: Classified, splits: list[Split], costs: np.ndarray, settings: Settings) -> Any:
    """(place, machines, rows computed) for every C, the smallest first, each started from the one before."""
    values = None
    if len(splits) == 1 or shares_values(data.x, data.kernel, settings):
        values = KernelValues(data.x, data.kernel, settings.threads, settings.cache_mb, settings.tick)
    with nullcontext() if values is None else lent(values, settings):
        yield from _from_small_to_large(data, splits, costs, settings, values)


def _from_small_to_large(
    data: Classified, splits: list[Split], costs: np.ndarray, settings: Settings, values: KernelValues | None
) -> Any:
    earlier, before, n_before = None, 1.0, 0
    for place in np.argsort(costs, kind="stable"):
        task = Task(data.weight, float(costs[place]), None)
        if earlier is not None and math.isfinite(task.C):
            earlier = earlier * (task.C / before)
        if values is None:
            machines, n_computed = fit_machines(data.x, data.kernel, splits, task, settings, earlier)
        else:
            starts = [None] * len(splits) if earlier is None else list(earlier)
            machines = fit_on(values, splits, task, settings, starts)
            n_computed = values.rows.n_computed - n_before if values.rows.n_computed else (0 if n_before else values.n)
            n_before = max(n_before + n_computed, 1)
        yield place, machines, n_computed
        earlier, before = np.array([m.beta for m in machines]), task.C


@parallel.reports("svm")
def budget(
    X: Any,
    y: Any,
    budget: float,
    *,
    kernel: Any = _RBF,
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    cache_mb: float | None = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> SVMModel:
    """The widest margin whose slacks add up to at most a budget: the form of the statistics books.

    Minimises ½‖w‖² under Σ ξᵢ ≤ budget. The sum of slacks at the optimum never grows with C, so C is searched for, each
    fit started from the last.

    Parameters
    ----------
    X, y : arrays
        As in `svc`, with two classes.
    budget : float
        At least 0; 0 is the hard margin.
    kernel, sample_weight, tol, max_iter, cache_mb, n_threads, callback, progress : optional
        As in `svc`. Slacks count by their weights.

    Returns
    -------
    SVMModel
        Whose sum of slacks is at most the budget and, up to a thousandth, equal to it. `C` is the cost that gives it.

    Raises
    ------
    NotSeparable
        If no hyperplane has slacks that small.
    ValueError
        If even w = 0 is within the budget: then no margin is the widest.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> model = svm.budget(X, y, 3.0, kernel=kernels.Linear())
    >>> bool(svm.slacks(model, X, y).values.sum() <= 3.0)
    True
    """
    settings = Settings(tol, max_iter, cache_mb, n_threads, parallel.ticker(callback, "svm"))
    allowed = check.not_negative(budget, "budget")
    data = Classified.read(X, y, kernel, None, sample_weight)
    if len(data.classes) != 2:
        raise ValueError(f"y holds {len(data.classes)} classes; the budget is that of two")
    split = data.splits("ovo")[0]
    values = KernelValues(data.x, data.kernel, settings.threads, settings.cache_mb, settings.tick)
    weight = data.weight[split.points()]
    machine = _within(values, split, data.weight, weight, allowed, settings)
    warn_unless_converged([machine.certificate], settings.tol)
    return replace(data.model("svc", "ovo", [machine], values.rows.n_computed or values.n), C=machine.C)


def _within(
    values: KernelValues, split: Split, weight: np.ndarray, own: np.ndarray, allowed: float, settings: Settings
) -> Fitted:
    """The machine whose slacks just keep the budget: bisection on log C."""
    signs = split.signs()
    most = 2 * min(own[signs > 0].sum(), own[signs < 0].sum())
    if allowed >= most:
        raise ValueError(f"budget = {allowed} allows w = 0, whose slacks add up to {most}: no margin is the widest")

    def fit(C: float, start: Fitted | None) -> tuple[Fitted, float]:
        earlier = None if start is None or not math.isfinite(C) else start.beta * (C / start.C)
        machine = fit_on(values, [split], Task(weight, C, None), settings, [earlier])[0]
        return machine, float(own @ np.maximum(0.0, 1.0 - signs * machine.decision))

    if allowed == 0:
        return fit(math.inf, None)[0]
    low = high = None
    C, machine = 1.0, None
    while low is None or high is None:
        machine, total = fit(C, machine)
        low, high = (low, machine) if total <= allowed else (machine, high)
        if total <= allowed and total >= (1 - _CLOSE) * allowed:
            return machine
        C = C / 10 if total <= allowed else C * 10
        if not _LEAST_C <= C <= _MOST_C:
            if high is None:
                raise NotSeparable(f"no hyperplane has slacks of sum {allowed}: the least found is {total:.6g}")
            return high
    for _ in range(_HALVINGS):
        C = math.sqrt(low.C * high.C)
        machine, total = fit(C, low)
        if total > allowed:
            low = machine
            continue
        high = machine
        if total >= (1 - _CLOSE) * allowed:
            break
    return high
