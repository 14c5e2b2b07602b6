"""Choosing C and gamma by cross-validation: `tune`.

The points are ordered by class and fold, so that the training points of every fold are a few runs on the one kernel
matrix; matrices of different gamma come from one matrix of squared distances, and each fit starts from the solution for
the next smaller C. Only the last fit, on all points, is checked with float64 kernel values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel, selection, sharing
from kernelrules.kernels.values import is_callable, reorder
from kernelrules.results import Certificate, TuneResult
from kernelrules.svm.classified import Classified
from kernelrules.svm.fit import svc
from kernelrules.svm.machines import Fitted, Split, Task, are_many_pairs, fit_machines, fit_on, shares_values
from kernelrules.svm.paths import costs_of
from kernelrules.svm.settings import Settings, warn_unless_converged
from kernelrules.svm.use import labels_of
from kernelrules.svm.values import KernelValues, memory_for

__all__ = ["tune"]

_RBF = kernels.RBF()


@parallel.reports("svm")
def tune(
    X: Any,
    y: Any,
    *,
    Cs: Sequence[float],
    gammas: Sequence[float] | None = None,
    folds: Any = 5,
    rule: str = "min",
    rng: Any = None,
    executor: Any = None,
    kernel: Any = _RBF,
    multiclass: str = "ovo",
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    cache_mb: float | None = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> TuneResult:
    """Choose C, and gamma where the kernel has one, by cross-validated error rate.

    Kernel values are shared by all folds and all C of a gamma, squared distances by all gammas of an RBF kernel, and
    every fit starts from the one with the next smaller C. Where the matrix of all points does not fit `cache_mb`, each
    fold has its own.

    Parameters
    ----------
    X, y : arrays
        As in `svc`.
    Cs : sequence of float
        Finite costs to try.
    gammas : sequence of float, optional
        To try; None keeps the kernel's own.
    folds : int or array (n,)
        How many, drawn so that each has its share of every class; or the fold of every row.
    rule : {"min", "1se"}
        The smallest mean error; or the simplest within one standard error of it, with the smallest C and then the
        smallest gamma.
    rng : Generator, seed or None
        Decides the folds.
    executor : concurrent.futures.Executor, optional
        Gets a task for each gamma and fold: the same result, bit for bit.
    kernel, multiclass, class_weight, sample_weight, tol, max_iter, cache_mb, n_threads, callback, progress : optional
        As in `svc`. Errors are counted by `sample_weight`.

    Returns
    -------
    TuneResult
        The grid, its errors, the choice, and the model fitted to all data with it.

    Warns
    -----
    ConvergenceWarning
        If a machine stopped before the tolerance was reached: one warning for all folds, and one for the model.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, svm
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> y = np.hypot(X[:, 0], X[:, 1]) > 1.2
    >>> result = svm.tune(X, y, Cs=[0.1, 1, 10], gammas=[0.1, 1.0], rng=0)
    >>> result.mean.shape, sorted(result.best)
    ((2, 3), ['C', 'gamma'])
    """
    tick = parallel.ticker(callback, "svm")
    told = None if tick is None else parallel.ticker(tick.breathe, "svm")  # counted in fits, of all folds at a time
    settings = Settings(tol, max_iter, cache_mb, n_threads, told, executor)
    costs = costs_of(Cs)
    if not np.isfinite(costs).all():
        raise ValueError("Cs must be finite here")
    selection.require_rule(rule)
    check.one_of(multiclass, "multiclass", "ovo", "ovr")
    tried = _kernels(kernel, gammas)
    data = Classified.read(X, y, tried[0], class_weight, sample_weight)
    numbers = _folds_of(data, y, folds, rng)
    parts = [numbers == fold for fold in range(numbers.max() + 1)]
    for part in parts:
        _require_all_classes(data, part)
    data, parts = _order_by_fold(data, numbers)
    if len(tried) == 1:
        tried = [data.kernel]
    own = check.weights(sample_weight, data.n_rows)[data.order]
    job = _Job(data, parts, own, multiclass, costs)
    errors, late = _all_errors(job, tried, settings, tick)
    warn_unless_converged(late, tol)
    mean, se = selection.summarise(errors)
    has_gamma = gammas is not None
    values = np.array([one.gamma for one in tried]) if has_gamma else np.array([np.nan])
    simplest = np.lexsort((np.tile(values, len(costs)), np.repeat(costs, len(tried))))
    chosen = simplest[selection.pick(mean.T.ravel()[simplest], se.T.ravel()[simplest], rule)]
    c, g = divmod(int(chosen), len(tried))
    best = {"C": float(costs[c])} | ({"gamma": float(values[g])} if has_gamma else {})
    model = svc(
        X, y, C=best["C"], kernel=tried[g], multiclass=multiclass, class_weight=class_weight,
        sample_weight=sample_weight, tol=tol, max_iter=max_iter, cache_mb=cache_mb, executor=executor,
        n_threads=n_threads, callback=None if tick is None else tick.breathe,
    )  # fmt: skip
    return TuneResult(costs, values, mean, se, errors, best, model)


def _kernels(kernel: Any, gammas: Any) -> list[Any]:
    if gammas is None:
        return [kernel]
    if is_callable(kernel) or not hasattr(kernel, "gamma"):
        raise ValueError(f"gammas were given, but {kernel!r} has no gamma")
    given = [gammas] if isinstance(gammas, str) or np.ndim(gammas) == 0 else list(gammas)
    tried = [replace(kernel, gamma=check.positive(g, f"gammas[{i}]")) for i, g in enumerate(given)]
    if not tried:
        raise ValueError("gammas is empty")
    return tried


def _folds_of(data: Classified, y: Any, folds: Any, rng: Any) -> np.ndarray:
    """Fold numbers of the ordered points."""
    _, codes = check.labels(y, data.n_rows)
    if np.ndim(folds) == 1:  # numbered anew: a fold may have lost all its rows to weights of 0
        return selection.fold_numbers(selection.fold_numbers(folds, data.n_rows)[data.order], len(data.order))
    return selection.fold_numbers(folds, len(data.order), codes[data.order], rng)


def _require_all_classes(data: Classified, held: np.ndarray) -> None:
    for label, (first, last) in zip(data.classes, data.spans, strict=True):
        if held[first:last].all():
            raise ValueError(f"class {check.shown(label)} has all its rows in one fold: take fewer folds")


def _order_by_fold(data: Classified, numbers: np.ndarray) -> tuple[Classified, list[np.ndarray]]:
    """The same data with the points of a class and fold together, and the held-out points of each fold."""
    by_class = np.empty(len(numbers), dtype=np.intp)
    for code, (first, last) in enumerate(data.spans):
        by_class[first:last] = code
    order = np.lexsort((numbers, by_class))
    x = reorder(data.x, order, data.kernel)
    moved = replace(data, x=x, weight=data.weight[order], order=data.order[order], given=None, centre=None)
    return moved, [numbers[order] == fold for fold in range(numbers.max() + 1)]


@dataclass(frozen=True, eq=False)
class _Job:
    """What is tried with every kernel: ordered data, held-out points of each fold, weights of errors, costs."""

    data: Classified
    parts: list[np.ndarray]
    own: np.ndarray
    multiclass: str
    costs: np.ndarray
    alone: bool = False  # whether machines that do not share kernel values with all share them with none

    def machines(self) -> list[Split]:
        """Of all folds."""
        return [_training(split, held) for held in self.parts for split in self.data.splits(self.multiclass)]


def _distances(job: _Job, tried: list[Any], settings: Settings) -> KernelValues | None:
    """Squared distances of all points, from which matrices of several gammas are made; or None where that is no use."""
    n = job.data.x.shape[0]
    # two matrices at a time, the distances and one kernel's
    if len(tried) > 1 and isinstance(tried[0], kernels.RBF) and 8 * n * n <= memory_for(settings.cache_mb):
        return KernelValues.from_distances(job.data.x, tried[0], settings.threads, settings.tick)
    return None


def _all_errors(job: _Job, tried: list[Any], settings: Settings, tick: Any) -> tuple[np.ndarray, list[Certificate]]:
    """Error rates (n_kernels, n_Cs, n_folds), and the certificates of machines that stopped early."""
    distances = _distances(job, tried, settings)
    shared = [(distances is not None and distances.squares is not None) or shares_values(job.data.x, one, settings)
              for one in tried]  # fmt: skip
    # Machines of many pairs of classes and of all folds share kernel values by groups: those groups are the tasks then.
    apart = all(shared) or not are_many_pairs(job.machines(), job.data.x, tried[0])
    job = replace(job, alone=apart)
    if settings.executor is None or not apart:
        n_fits = len(tried) * len(job.costs)
        found = []
        for g, one in enumerate(tried):
            counted = None if tick is None else _from(tick, g * len(job.costs), n_fits)
            found.append(_fold_errors(job, one, settings, distances, counted))
        return np.array([errors for errors, _ in found]), [c for _, late in found for c in late]
    plain = settings.of_task(memory_for(settings.cache_mb))
    with sharing.Scattered(settings.executor) as scatter:
        data = job.data
        arrays = scatter((data.x, data.weight, data.order, job.own))
        squares = None if distances is None else scatter(distances.squares)
        del distances
        bare = replace(data, x=None, weight=None, order=None)
        tasks = [
            (arrays, squares, replace(job, data=bare, parts=[part], own=None), one, plain)
            for one in tried
            for part in job.parts
        ]
        found = parallel.run(_one_fold, tasks, settings.executor, tick, "fold and gamma")
    shape = (len(tried), len(job.parts), len(job.costs))
    errors = np.array([errors[:, 0] for errors, _ in found]).reshape(shape).transpose(0, 2, 1)
    return np.ascontiguousarray(errors), [c for _, late in found for c in late]


def _from(tick: Any, before: int, total: int) -> Any:
    return lambda done: tick(before + done, total)


def _one_fold(
    arrays: tuple, squares: np.ndarray | None, job: _Job, kernel: Any, settings: Settings
) -> tuple[np.ndarray, list[Certificate]]:
    """Error rates (n_Cs, 1) of one kernel and fold, and what stopped early; what an executor is given."""
    x, weight, order, own = arrays
    whole = replace(job, data=replace(job.data, x=x, weight=weight, order=order), own=own)
    distances = None if squares is None else KernelValues.with_distances(x, kernel, settings.threads, squares)
    return _fold_errors(whole, kernel, settings, distances)


def _training(split: Split, held: np.ndarray) -> Split:
    """The split without the points that are held out."""
    spans, n_positive, seen = [], 0, 0
    for first, last in split.spans:
        kept = np.flatnonzero(~held[first:last])
        breaks = np.flatnonzero(np.diff(kept) > 1) + 1
        for run in np.split(kept, breaks):
            if len(run):
                spans.append((first + int(run[0]), first + int(run[-1]) + 1))
        if seen < split.n_positive:
            n_positive += len(kept)
        seen += last - first
    return Split(spans, n_positive)


def _fold_errors(
    job: _Job, kernel: Any, settings: Settings, distances: KernelValues | None, counted: Any = None
) -> tuple[np.ndarray, list[Certificate]]:
    """Error rates (n_Cs, n_folds) of one kernel, and the certificates of machines that stopped early; `counted` is told
    how many of the Cs are done."""
    data, parts, own, costs = job.data, job.parts, job.own, job.costs
    splits, jobs = data.splits(job.multiclass), job.machines()
    values = None if distances is None else distances.with_gamma(kernel)
    if values is None and shares_values(data.x, kernel, settings):
        values = KernelValues(data.x, kernel, settings.threads, settings.cache_mb, settings.tick)
    codes = np.repeat(np.arange(len(data.classes)), [last - first for first, last in data.spans])
    errors, late = np.empty((len(costs), len(parts))), []
    earlier, before = None, 1.0
    for done, place in enumerate(np.argsort(costs, kind="stable")):
        task = Task(data.weight, float(costs[place]), None)
        starts = [None] * len(jobs) if earlier is None else [b * (task.C / before) for b in earlier]
        if values is None:
            start = None if earlier is None else np.array(starts)
            machines, _ = fit_machines(data.x, kernel, jobs, task, settings, start, job.alone)
        else:
            machines = fit_on(values, jobs, task, settings, starts, exact=False)
        late += [m.certificate for m in machines if not m.certificate.converged]
        earlier, before = [m.beta for m in machines], task.C
        for f, held in enumerate(parts):
            mine = machines[f * len(splits) : (f + 1) * len(splits)]
            decisions = _held_out(data, kernel, values, mine, np.flatnonzero(held), settings)
            model = data.model("svc", job.multiclass, mine, 0)
            wrong = labels_of(model, decisions) != data.classes[codes[held]]
            errors[place, f] = own[held][wrong].sum() / own[held].sum()
        if counted is not None:
            counted(done + 1)
    return errors, late


def _held_out(
    data: Classified,
    kernel: Any,
    values: KernelValues | None,
    machines: list[Fitted],
    held: np.ndarray,
    settings: Settings,
) -> np.ndarray:
    """Decision values of the held-out points."""
    betas = np.array([m.beta for m in machines])
    intercepts = np.array([m.intercept for m in machines])
    if values is None:
        values = KernelValues.only_products(data.x, kernel, settings.threads)
        return values.exact_product(betas).T[held] + intercepts
    return np.array([values.rough_product(beta, held) for beta in betas]).T + intercepts
