"""`tune`: C and gamma chosen by cross-validation.

Points are ordered by fold (classes: by class and fold), so the training points of every machine of every fold are a few
runs of one kernel matrix. Matrices of different gamma come from one matrix of squared distances, and each fit starts
from the solution for the next smaller C. Only the last fit, on all points, is confirmed by float64 kernel values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel, selection, shared_data
from kernelrules.kernels.values import is_callable, linear_values, reorder, resolve, take
from kernelrules.results import Certificate, SVMModel, TuneResult
from kernelrules.svm.centring import centred
from kernelrules.svm.fit import svc, svr
from kernelrules.svm.kernel_values import MAX_FLOAT64_POINTS, KernelValues, memory_for
from kernelrules.svm.machines import Fitted, Objective, Split, are_many_pairs, fit_machines, fit_on, shares_values
from kernelrules.svm.paths import costs_of
from kernelrules.svm.prediction import class_codes
from kernelrules.svm.settings import Settings, fraction, warn_unless_converged
from kernelrules.svm.training_data import LabelledData, read_targets

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
    task: str = "svc",
    epsilon: float | None = None,
    nu: float | None = None,
    measure: str | None = None,
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
    """Choose C, and gamma if the kernel has one, by cross-validated error.

    Kernel values are shared by all folds and all C of a gamma, squared distances by all gammas of an RBF kernel, and
    every fit starts from the one with the next smaller C. If the matrix of all points does not fit `cache_mb`, each
    fold has its own.

    Parameters
    ----------
    X, y : arrays
        As in `svc`, or as in `svr`.
    Cs : sequence of float
        Finite costs to try.
    gammas : sequence of float, optional
        To try; None keeps the kernel's own.
    folds : int or array (n,)
        How many, drawn so that each has its share of every class; or the fold of every row.
    rule : {"min", "1se"}
        The smallest mean error; or the simplest within one standard error of it, with the smallest C and then the
        smallest gamma.
    {rng}
        It chooses the folds.
    {executor}
        Each pair of a gamma and a fold is a task.
    task : {"svc", "svr"}
        What is fitted: classes, or numbers.
    epsilon, nu : float, optional
        For task="svr", as in `svr`; epsilon is 0.1 if neither is given. To choose epsilon or nu, compare results of the
        same `rng`.
    measure : str, optional
        Loss of held-out rows: "zero_one", the error rate, for classes; "squared_error" (the default) or
        "absolute_error" for numbers, in the square of y's units or in its units. Each is a mean over a fold's rows.
    kernel : optional
        As in `svc`.
    multiclass, class_weight : optional
        As in `svc`, for classes.
    sample_weight, tol, max_iter, cache_mb : optional
        As in `svc`. Errors are counted by `sample_weight`.
    {n_threads, callback, progress}

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

    Numbers, judged by the mean of the absolute errors:

    >>> line = svm.tune(X, X[:, 0], Cs=[0.01, 1], task="svr", epsilon=0.05, measure="absolute_error",
    ...                 kernel=kernels.Linear(), rng=0)
    >>> line.best, bool(line.mean.min() < 0.05), line.model.kind
    ({'C': 1.0}, True, 'svr')
    """
    tick = parallel.ticker(callback, "svm")
    silent = None if tick is None else parallel.ticker(tick.uncounted, "svm")  # progress counts fits of all folds
    settings = Settings(tol, max_iter, cache_mb, n_threads, silent, executor)
    costs = costs_of(Cs)
    if not np.isfinite(costs).all():
        raise ValueError("Cs must be finite here")
    selection.require_rule(rule)
    tried = _kernels(kernel, gammas)
    check.one_of(task, "task", "svc", "svr")
    check.one_of(multiclass, "multiclass", "ovo", "ovr")
    fit_options: dict[str, Any] = {
        "sample_weight": sample_weight,
        "tol": tol,
        "max_iter": max_iter,
        "cache_mb": cache_mb,
        "n_threads": n_threads,
        "callback": None if tick is None else tick.uncounted,
    }
    if task == "svc":
        _refuse("classes", epsilon=epsilon, nu=nu)
        measure = _measure(measure, task, "zero_one")
        data = LabelledData.read(X, y, tried[0], class_weight, sample_weight)
        data_folds = Folds.of_classes(data, y, folds, rng, multiclass, sample_weight)
        fit_options |= {"multiclass": multiclass, "class_weight": class_weight, "executor": executor}
    else:
        _refuse("numbers", class_weight=class_weight, multiclass=None if multiclass == "ovo" else multiclass)
        measure = _measure(measure, task, "squared_error", "absolute_error")
        if nu is not None:
            _refuse("a tube whose width nu determines", epsilon=epsilon)
            nu = fraction(nu)
        width = 0.1 if epsilon is None else check.not_negative(epsilon, "epsilon")
        objective = Objective(None, 1.0, nu, epsilon=width)
        data_folds = Folds.of_targets(X, y, tried[0], sample_weight, folds, rng, objective, measure)
        fit_options |= {"epsilon": width, "nu": nu}
    if len(tried) == 1:
        tried = [data_folds.kernel]
    errors, late = _all_errors(data_folds, costs, tried, settings, tick)
    warn_unless_converged(late, tol)
    grid = costs, tried, gammas is not None
    return _chosen(X, y, svc if task == "svc" else svr, fit_options, grid, errors, rule, measure)


def _refuse(of: str, **options: Any) -> None:
    """Refuse options that have no meaning for this task."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} means nothing for {of}, got {value!r}")


def _measure(measure: Any, task: str, *known: str) -> str:
    """Return the measure, by default the first known one."""
    if measure is None:
        return known[0]
    if not isinstance(measure, str) or measure not in known:
        raise ValueError(f'measure must be one of {", ".join(known)} with task="{task}", got {measure!r}')
    return measure


def _chosen(
    X: Any, y: Any, fit: Any, options: dict[str, Any], grid: tuple, errors: np.ndarray, rule: str, measure: str
) -> TuneResult:
    """Return the choice of the rule from the grid, and the model of all data."""
    costs, kernels_tried, has_gamma = grid
    mean, se = selection.summarise(errors)
    values = np.array([one.gamma for one in kernels_tried]) if has_gamma else np.array([np.nan])
    simplest = np.lexsort((np.tile(values, len(costs)), np.repeat(costs, len(kernels_tried))))
    chosen = simplest[selection.pick(mean.T.ravel()[simplest], se.T.ravel()[simplest], rule)]
    c, g = divmod(int(chosen), len(kernels_tried))
    best = {"C": float(costs[c])} | ({"gamma": float(values[g])} if has_gamma else {})
    model: SVMModel = fit(X, y, C=best["C"], kernel=kernels_tried[g], **options)
    return TuneResult(costs, values, mean, se, errors, best, model, measure)


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


def _distances(folds: Folds, tried: list[Any], settings: Settings) -> KernelValues | None:
    """Return squared distances of all points, for matrices of several gammas; None if these are not made so.

    Distances are float32. Few points have float64 kernel values, as in `svc`, because interior points require these.
    """
    n = folds.x.shape[0]
    # Two matrices at a time: the distances, and one kernel's.
    fits = n > MAX_FLOAT64_POINTS and 8 * n * n <= memory_for(settings.cache_mb)
    if fits and len(tried) > 1 and isinstance(tried[0], kernels.RBF):
        return KernelValues.from_distances(folds.x, tried[0], settings.threads, settings.tick)
    return None


def _all_errors(
    folds: Folds, costs: np.ndarray, tried: list[Any], settings: Settings, tick: Any
) -> tuple[np.ndarray, list[Certificate]]:
    """Return errors (n_kernels, n_Cs, n_folds), and the certificates of machines that stopped early."""
    distances = _distances(folds, tried, settings)
    shared = [(distances is not None and distances.squares is not None) or shares_values(folds.x, one, settings)
              for one in tried]  # fmt: skip
    # Machines of many pairs of classes share kernel values by groups, over all folds: then the groups are the tasks.
    by_fold = all(shared) or not are_many_pairs(folds.machines(), folds.x, tried[0])
    if settings.executor is None or not by_fold:
        n_fits = len(tried) * len(costs)
        found = []
        for g, one in enumerate(tried):
            report = None if tick is None else _counting_from(tick, g * len(costs), n_fits)
            found.append(_fold_errors(folds, costs, one, settings, distances, by_fold, report))
        return np.array([errors for errors, _ in found]), [c for _, late in found for c in late]
    task_settings = settings.for_task(memory_for(settings.cache_mb))
    with shared_data.Scattered(settings.executor) as scatter:
        arrays = scatter(folds.arrays())
        squares = None if distances is None else scatter(distances.squares)
        del distances
        bare = [folds.bare(part) for part in folds.parts]
        tasks = [(arrays, squares, part, costs, one, task_settings) for one in tried for part in bare]
        found = parallel.run(_one_fold, tasks, settings.executor, tick, "fold and gamma")
    shape = (len(tried), len(folds.parts), len(costs))
    errors = np.array([errors[:, 0] for errors, _ in found]).reshape(shape).transpose(0, 2, 1)
    return np.ascontiguousarray(errors), [c for _, late in found for c in late]


def _counting_from(tick: Any, before: int, total: int) -> Any:
    return lambda done: tick(before + done, total)


def _one_fold(
    arrays: tuple, squares: np.ndarray | None, bare: Folds, costs: np.ndarray, kernel: Any, settings: Settings
) -> tuple[np.ndarray, list[Certificate]]:
    """Return errors (n_Cs, 1) of one kernel and fold, and certificates as `_fold_errors`; a task of an executor."""
    folds = bare.filled(arrays)
    distances = None if squares is None else KernelValues.with_distances(folds.x, kernel, settings.threads, squares)
    return _fold_errors(folds, costs, kernel, settings, distances, True)


def _fold_errors(
    folds: Folds,
    costs: np.ndarray,
    kernel: Any,
    settings: Settings,
    distances: KernelValues | None,
    alone: bool,
    report: Any = None,
) -> tuple[np.ndarray, list[Certificate]]:
    """Return errors (n_Cs, n_folds) of one kernel, and the certificates of machines that stopped early.

    `report` receives the number of Cs that are done. `alone`: machines that do not share kernel values with all others
    share them with none.
    """
    machines = folds.machines()
    values = None if distances is None else distances.with_gamma(kernel)
    if values is None and shares_values(folds.x, kernel, settings):
        values = KernelValues(folds.x, kernel, settings.threads, settings.cache_mb, settings.tick)
    errors, late = np.empty((len(costs), len(folds.parts))), []
    earlier, before = None, 1.0
    for done, place in enumerate(np.argsort(costs, kind="stable")):
        objective = folds.objective_of(float(costs[place]))
        starts = [None] * len(machines) if earlier is None else [b * (objective.C / before) for b in earlier]
        if values is None:
            start = None if earlier is None else np.array(starts)
            fitted, _ = fit_machines(folds.x, kernel, machines, objective, settings, start, alone)
        else:
            fitted = fit_on(values, machines, objective, settings, starts, exact=False)
        late += [m.certificate for m in fitted if not m.certificate.converged]
        earlier, before = [m.beta for m in fitted], objective.C
        n_splits = len(folds.splits)
        for f, part in enumerate(folds.parts):
            held, own = np.flatnonzero(part), fitted[f * n_splits : (f + 1) * n_splits]
            errors[place, f] = folds.loss(held, _held_out(folds.x, kernel, values, own, held, settings))
        if report is not None:
            report(done + 1)
    return errors, late


def _held_out(
    x: Any, kernel: Any, values: KernelValues | None, machines: list[Fitted], held: np.ndarray, settings: Settings
) -> np.ndarray:
    """Return decision values of the held-out points, by weights of columns if a machine has them, as in `decision`."""
    intercepts = np.array([m.intercept for m in machines])
    if values is None:
        values = KernelValues.only_products(x, kernel, settings.threads)
        return values.exact_product(np.array([m.beta for m in machines])).T[held] + intercepts
    columns = [
        values.rough_product(m.beta, held)
        if m.weights is None
        else linear_values(take(x, held).astype(np.float64), m.weights[:, None], settings.threads)[:, 0]
        for m in machines
    ]
    return np.array(columns).T + intercepts


# ---- folds --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Folds:
    """Points ordered by fold, and what is fitted to them.

    Attributes
    ----------
    x : ndarray or Csr
        The points.
    kernel : Kernel or callable
        With gamma as a number.
    weight, loss_weight : ndarray (n,)
        Factors of C, and weights of losses.
    truth : ndarray (n,)
        Codes of the classes, or targets.
    parts : list of ndarray (n,) of bool
        The held-out points of each fold.
    splits : list of Split
        The machines on all points.
    objective : Objective
        What they minimise, without its arrays and C.
    n_classes : int
        0 for a regression.
    mode : str
        "ovo" or "ovr"; for a regression the measure of errors.
    """

    x: Any
    kernel: Any
    weight: np.ndarray
    loss_weight: np.ndarray
    truth: np.ndarray
    parts: list[np.ndarray]
    splits: list[Split]
    objective: Objective
    n_classes: int
    mode: str

    @classmethod
    def of_classes(cls, data: LabelledData, y: Any, folds: Any, rng: Any, multiclass: str, sample_weight: Any) -> Folds:
        """Return the folds of a classification; each has its share of every class, unless the folds are given."""
        numbers = _numbers(folds, data.order, data.n_rows, check.labels(y, data.n_rows)[1], rng)
        codes = np.repeat(np.arange(len(data.classes)), [last - first for first, last in data.spans])
        for fold in range(numbers.max() + 1):
            _require_all_classes(data, numbers == fold)
        order = np.lexsort((numbers, codes))
        own = check.weights(sample_weight, data.n_rows)[data.order]
        return cls(
            reorder(data.x, order, data.kernel), data.kernel, data.weight[order], own[order], codes,
            _parts(numbers[order]), data.splits(multiclass), Objective(None, 1.0, None), len(data.classes), multiclass,
        )  # fmt: skip

    @classmethod
    def of_targets(
        cls, X: Any, y: Any, kernel: Any, sample_weight: Any, folds: Any, rng: Any, objective: Objective, measure: str
    ) -> Folds:
        """Return the folds of a regression."""
        data, target = read_targets(X, y, sample_weight, kernel)
        numbers = _numbers(folds, data.kept, data.n_rows, None, rng)
        resolved = resolve(kernel, data.x)
        order = np.argsort(numbers, kind="stable")
        x, _ = centred(reorder(data.x, order, kernel), resolved)
        weight, split = data.weight[order], Split([(0, len(order))], 0)
        parts = _parts(numbers[order])
        return cls(x, resolved, weight, weight, target[order], parts, [split], objective, 0, measure)

    def arrays(self) -> tuple:
        """Return what is sent to workers once."""
        return self.x, self.weight, self.loss_weight, self.truth

    def bare(self, part: np.ndarray) -> Folds:
        """Return one fold without the arrays."""
        return replace(self, x=None, weight=None, loss_weight=None, truth=None, parts=[part])

    def filled(self, arrays: tuple) -> Folds:
        """Return the folds with the arrays."""
        x, weight, loss_weight, truth = arrays
        return replace(self, x=x, weight=weight, loss_weight=loss_weight, truth=truth)

    def machines(self) -> list[Split]:
        """Return the machines of all folds, those of the first fold first."""
        return [_training(split, held) for held in self.parts for split in self.splits]

    def objective_of(self, C: float) -> Objective:
        """Return what machines with this cost minimise."""
        return replace(self.objective, weight=self.weight, C=C, target=None if self.n_classes else self.truth)

    def loss(self, held: np.ndarray, decisions: np.ndarray) -> float:
        """Return the mean loss of held-out points, from decision values of a fold's machines.

        It is the error rate of classes, and the mean squared or absolute error of a regression.
        """
        weight, truth = self.loss_weight[held], self.truth[held]
        if self.n_classes:
            lost = class_codes(decisions, self.n_classes, self.mode) != truth
        else:
            lost = np.abs(decisions[:, 0] - truth) ** (2 if self.mode == "squared_error" else 1)
        return float((weight * lost).sum() / weight.sum())


def _numbers(folds: Any, order: np.ndarray, n: int, codes: np.ndarray | None, rng: Any) -> np.ndarray:
    """Return the fold numbers of rows `order` of n."""
    if np.ndim(folds) == 1:  # numbered again: all rows of a fold may have weight 0
        return selection.fold_numbers(selection.fold_numbers(folds, n)[order], len(order))
    return selection.fold_numbers(folds, len(order), None if codes is None else codes[order], rng)


def _parts(numbers: np.ndarray) -> list[np.ndarray]:
    return [numbers == fold for fold in range(numbers.max() + 1)]


def _require_all_classes(data: LabelledData, held: np.ndarray) -> None:
    for label, (first, last) in zip(data.classes, data.spans, strict=True):
        if held[first:last].all():
            raise ValueError(f"class {check.shown(label)} has all its rows in one fold: take fewer folds")


def _training(split: Split, held: np.ndarray) -> Split:
    """Return the split without the held-out points."""
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
