"""Fits: `svc`, `svr` and `one_class` set up dual problems, have them solved, and put a model together.

Points are ordered by class first, so that the points of any pair of classes are two runs: all one-vs-one machines then
work on one kernel matrix, without copying from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.results import Certificate, SVMModel
from kernelrules.svm import dual
from kernelrules.svm.hard import hard_margin
from kernelrules.svm.settings import (
    Settings,
    cost,
    earlier_coefficients,
    fit_sum,
    fraction,
    warn_unless_converged,
    worst,
)
from kernelrules.svm.values import KernelValues, resolve, take

__all__ = ["one_class", "svc", "svr"]

_RBF = kernels.RBF()


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
    """What a classification is to minimise: costs of the points, or nu."""

    weight: np.ndarray
    C: float
    nu: float | None


def svc(
    X: Any,
    y: Any,
    *,
    C: float = 1.0,
    nu: float | None = None,
    kernel: Any = _RBF,
    multiclass: str = "ovo",
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    cache_mb: float | None = None,
    warm_start: SVMModel | None = None,
    executor: Any = None,
    n_threads: int | None = None,
    callback: Any = None,
) -> SVMModel:
    """A support vector classifier: soft margin with cost C, hard margin (C infinite), or nu.

    Minimises ½|w|² + Σ Cᵢ ξᵢ under yᵢ (w·φ(xᵢ) + b) ≥ 1 - ξᵢ, ξ ≥ 0, where Cᵢ is C times the weights of the row and of
    its class. Memory: the kernel values that `cache_mb` allows, and a few copies of X.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    y : array (n,)
        Labels of any kind: strings, whole numbers, booleans.
    C : float
        The cost of a slack. Infinity asks for the hard margin.
    nu : float in (0, 1], optional
        Instead of C: a lower bound of the share of support vectors and an upper bound of that of margin errors.
    kernel : Kernel or callable
        One of `kernelrules.kernels`, or a function of two data sets that gives their kernel matrix.
    multiclass : {"ovo", "ovr"}
        With more than two classes: a machine for each pair, or for each class against the rest.
    class_weight : dict, "balanced" or None
        Factors of C by class; "balanced" is n / (n_classes · count).
    sample_weight : array (n,), optional
        Factors of C by row; a row of weight 0 is as if it were absent.
    tol : float
        The largest violation of the optimality conditions that passes.
    max_iter : int, optional
        Most steps a machine may take; default ten million, or a hundred a point if that is more.
    cache_mb : float, optional
        Memory for kernel values; default a quarter of what is free.
    warm_start : SVMModel, optional
        A model of the same kind on the same data, or on its first rows: where to start.
    executor : concurrent.futures.Executor, optional
        Fits the machines of more than two classes, each a task.
    n_threads : int, optional
        Default: the cores that the process may use. The result does not depend on it.
    callback : callable, optional
        Called with a `Progress` several times a second; what it raises ends the fit.

    Returns
    -------
    SVMModel
        With a certificate for each machine.

    Raises
    ------
    NotSeparable
        If C is infinite and no hyperplane separates the classes.

    Warns
    -----
    ConvergenceWarning
        If a machine stopped before the tolerance was reached.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> X = [[0, 0], [1, 1], [0, 1], [1, 0]]
    >>> y = ["same", "same", "differ", "differ"]
    >>> model = svm.svc(X, y, C=100.0, kernel=kernels.Polynomial(degree=2))
    >>> svm.predict(model, X)
    array(['same', 'same', 'differ', 'differ'], dtype='<U6')
    >>> model.certificate.converged
    True
    """
    settings = Settings(tol, max_iter, cache_mb, n_threads, callback, executor)
    C = cost(C)
    nu = None if nu is None else fraction(nu)
    if multiclass not in ("ovo", "ovr"):
        raise ValueError(f'multiclass must be "ovo" or "ovr", got {multiclass!r}')
    data = Classified.read(X, y, kernel, class_weight, sample_weight)
    splits = data.splits(multiclass)
    kind = "svc" if nu is None else "nu_svc"
    earlier = earlier_coefficients(warm_start, data.n_rows, (kind,), len(splits))
    if earlier is not None:
        if warm_start.classes is None or not np.array_equal(warm_start.classes, data.classes):
            raise ValueError("warm_start tells other classes apart than y holds")
        if warm_start.C and math.isfinite(C) and math.isfinite(warm_start.C) and nu is None:
            earlier *= C / warm_start.C
        earlier = earlier[:, data.order]
    task = Task(data.weight, C, nu)
    machines, n_computed = fit_machines(data.x, data.kernel, splits, task, settings, earlier)
    warn_unless_converged([m.certificate for m in machines], settings.tol)
    model = data.model(kind, multiclass, machines, n_computed)
    return replace(model, C=machines[0].C if nu is not None and len(machines) == 1 else (None if nu else C))


@dataclass(frozen=True, eq=False)
class Classified:
    """Data ordered by class; row i of it is row order[i] of the user's."""

    x: Any
    kernel: Any
    classes: np.ndarray
    weight: np.ndarray
    order: np.ndarray
    spans: list[tuple[int, int]]
    n_rows: int
    n_features: int

    @classmethod
    def read(cls, X: Any, y: Any, kernel: Any, class_weight: Any, sample_weight: Any) -> Classified:
        """Check and order the data; rows of weight 0 are left out."""
        x = check.matrix(X)
        n, n_features = x.shape
        if n == 0:
            raise ValueError("X has no rows")
        classes, codes = check.labels(y, n)
        weight = check.weights(sample_weight, n)
        kept = np.flatnonzero(weight > 0)
        order = kept[np.argsort(codes[kept], kind="stable")]
        counts = np.bincount(codes[kept], minlength=len(classes))
        if (counts == 0).any() and len(classes) > 1:
            raise ValueError(f"all rows of class {classes[np.argmin(counts)]!r} have sample_weight 0")
        if len(classes) < 2:
            raise ValueError(f"y holds {len(classes)} class(es); at least two are needed")
        factors = _class_factors(class_weight, classes, codes, counts)
        resolved = resolve(kernel, x if len(kept) == n else take(x, kept))
        ends = np.cumsum(counts)
        spans = [(int(end - count), int(end)) for end, count in zip(ends, counts, strict=True)]
        ordered = x if np.array_equal(order, np.arange(n)) else _reorder(x, order, kernel)
        return cls(ordered, resolved, classes, (weight * factors[codes])[order], order, spans, n, n_features)

    def splits(self, multiclass: str) -> list[Split]:
        """The machines: positive is classes[1] of two, the first of a pair, the one of one against the rest."""
        n_classes, spans = len(self.classes), self.spans
        sizes = [last - first for first, last in spans]
        if n_classes == 2:
            return [Split([spans[1], spans[0]], sizes[1])]
        if multiclass == "ovo":
            return [Split([spans[i], spans[j]], sizes[i]) for i, j in combinations(range(n_classes), 2)]
        n = spans[-1][1]
        others = [[(a, b) for a, b in ((0, first), (last, n)) if b > a] for first, last in spans]
        return [Split([spans[k], *others[k]], sizes[k]) for k in range(n_classes)]

    def model(self, kind: str, multiclass: str, machines: list[Fitted], n_computed: int) -> SVMModel:
        """The model, with support vectors numbered as the user's rows."""
        return build_model(
            self.x, self.kernel, kind, machines, self.order, self.n_rows, self.n_features, n_computed,
            classes=self.classes, multiclass=multiclass,
        )  # fmt: skip


def _reorder(x: Any, order: np.ndarray, kernel: Any) -> Any:
    chosen = take(x, order)
    if not isinstance(kernel, kernels.Precomputed) or x.shape[0] != x.shape[1]:
        return chosen
    if isinstance(x, check.Csr):
        return check.matrix(chosen.toscipy()[:, order])
    return np.ascontiguousarray(chosen[:, order])


def _class_factors(class_weight: Any, classes: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f'class_weight must be "balanced", a dict or None, got {class_weight!r}')
        return counts.sum() / (len(classes) * counts)
    try:
        items = dict(class_weight).items()
    except (TypeError, ValueError):
        raise TypeError(f'class_weight must be "balanced", a dict or None, got {class_weight!r}') from None
    factors = np.ones(len(classes))
    for label, factor in items:
        place = np.flatnonzero(classes == label)
        if len(place) != 1:
            raise ValueError(f"class_weight names {label!r}, which y does not hold")
        factors[place[0]] = check.positive(factor, f"class_weight[{label!r}]")
    return factors


# ---- machines ---------------------------------------------------------------------------------------------------


def fit_machines(
    x: Any, kernel: Any, splits: list[Split], task: Task, settings: Settings, earlier: np.ndarray | None = None
) -> tuple[list[Fitted], int]:
    """All machines, and the number of kernel rows that were computed: together on one set of kernel values where that
    fits, else each on its own points."""
    starts = [None] * len(splits) if earlier is None else list(earlier)
    n = x.shape[0]
    if settings.executor is None and (len(splits) == 1 or shares_values(x, kernel, settings)):
        values = KernelValues(x, kernel, settings.threads, settings.cache_mb, settings.tick)
        fitted = fit_on(values, splits, task, settings, starts)
        return fitted, values.rows.n_computed if values.rows.n_computed else n
    plain = replace(settings, executor=None, callback=None if settings.executor else settings.callback)
    tasks = []
    for split, start in zip(splits, starts, strict=True):
        points = np.sort(split.points())
        alone = Split(_renumber(split.spans, points), split.n_positive)
        part = Task(task.weight[points], task.C, task.nu)
        own = _reorder(x, points, kernel)
        tasks.append((own, kernel, alone, part, plain, None if start is None else start[points]))
    machines, n_computed = [], 0
    for split, (machine, computed) in zip(splits, parallel.run(_fit_alone, tasks, settings.executor), strict=True):
        beta = np.zeros(n)
        beta[np.sort(split.points())] = machine.beta
        machines.append(replace(machine, beta=beta))
        n_computed += computed
    return machines, n_computed


def shares_values(x: Any, kernel: Any, settings: Settings) -> bool:
    """Whether the kernel values of all points can be had at once: then machines share them."""
    if isinstance(kernel, (kernels.Linear, kernels.Precomputed)):
        return True
    budget = check.free_memory() // 4 if settings.cache_mb is None else settings.cache_mb * 2**20
    bounded = isinstance(kernel, (kernels.RBF, kernels.Laplacian, kernels.Sigmoid))
    return x.shape[0] ** 2 * (4 if bounded else 8) <= budget


def _renumber(spans: list[tuple[int, int]], points: np.ndarray) -> list[tuple[int, int]]:
    return [(int(np.searchsorted(points, first)), int(np.searchsorted(points, last))) for first, last in spans]


def _fit_alone(x: Any, kernel: Any, split: Split, task: Task, settings: Settings, start: Any) -> tuple[Fitted, int]:
    """One machine on its own points; what an executor is given."""
    values = KernelValues(x, kernel, settings.threads, settings.cache_mb, settings.tick)
    fitted = fit_on(values, [split], task, settings, [start])[0]
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
    if task.nu is None and math.isinf(task.C):
        return [Fitted(**hard_margin(values, s.spans, s.n_positive, settings), C=math.inf) for s in splits]
    problems = []
    for split, start in zip(splits, starts, strict=True):
        points = split.points()
        weight = task.weight[points]
        if task.nu is None:
            problem = dual.c_svc(split.spans, split.signs(), task.C * weight)
        else:
            problem = dual.nu_svc(split.spans, split.n_positive, weight, task.nu)
        problems.append(problem if start is None else replace(problem, start=_feasible(problem, start[points])))
    solutions = dual.solve(values, problems, settings.tol, settings.max_iter, settings.tick, exact)
    if task.nu is None:
        return [Fitted(s.beta, s.intercept, s.certificate, task.C, s.decision()) for s in solutions]
    return [_rescaled(s, task.nu) for s in solutions]


def _feasible(problem: dual.Problem, start: np.ndarray) -> np.ndarray:
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


def _rescaled(solution: dual.Solution, nu: float) -> Fitted:
    """A ν-machine in the units of the C-machine that it equals, C = 1 / ρ: its margin is at ±1."""
    below, above = solution.offsets
    rho = (above - below) / 2
    certificate = solution.certificate
    if not rho > 0:
        raise ValueError(
            f"nu = {nu} leaves no margin between the classes (their reduced convex hulls meet): take a larger nu"
        )
    scaled = replace(
        certificate,
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


# ---- regression and one class -----------------------------------------------------------------------------------


def _weighted_rows(X: Any, sample_weight: Any, kernel: Any) -> tuple[Any, np.ndarray, np.ndarray, int, int]:
    """Data without the rows of weight 0, their weights and numbers, and the shape there was."""
    x = check.matrix(X)
    n, n_features = x.shape
    if n == 0:
        raise ValueError("X has no rows")
    weight = check.weights(sample_weight, n)
    kept = np.flatnonzero(weight > 0)
    return x if len(kept) == n else _reorder(x, kept, kernel), weight[kept], kept, n, n_features


def svr(
    X: Any,
    y: Any,
    *,
    C: float = 1.0,
    epsilon: float = 0.1,
    nu: float | None = None,
    kernel: Any = _RBF,
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    cache_mb: float | None = None,
    warm_start: SVMModel | None = None,
    n_threads: int | None = None,
    callback: Any = None,
) -> SVMModel:
    """Support vector regression: a tube of half-width epsilon, or one as wide as nu asks for.

    Minimises ½|w|² + Σ Cᵢ max(0, |yᵢ - f(xᵢ)| - ε); with nu also over ε, at the price C·nu·n for it.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    y : array (n,)
        Numbers.
    C : float
        The cost of a unit outside the tube; finite.
    epsilon : float
        Half the width of the tube, at least 0. Not used with nu.
    nu : float in (0, 1], optional
        An upper bound of the share of points outside the tube.
    kernel, sample_weight, tol, max_iter, cache_mb, warm_start, n_threads, callback
        As in `svc`.

    Returns
    -------
    SVMModel
        With one machine.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, svm
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> model = svm.svr(X, 3 * X[:, 0] - 1, C=100.0, epsilon=0.01, kernel=kernels.Linear())
    >>> svm.predict(model, [[0.5]]).round(1)
    array([0.5])
    """
    settings = Settings(tol, max_iter, cache_mb, n_threads, callback)
    C = check.positive(C, "C")
    epsilon = check.real(epsilon, "epsilon")
    if epsilon < 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon}")
    nu = None if nu is None else fraction(nu)
    x, weight, kept, n, n_features = _weighted_rows(X, sample_weight, kernel)
    target = check.targets(y, n)[kept]
    kind = "svr" if nu is None else "nu_svr"
    earlier = earlier_coefficients(warm_start, n, (kind,), 1)
    if nu is None:
        problem = dual.eps_svr(target, C * weight, epsilon)
    else:
        problem = dual.nu_svr(target, C * weight, nu)
    if earlier is not None:
        beta = earlier[0, kept] * (C / warm_start.C)
        start = beta if nu is None else np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)])
        problem = replace(problem, start=_feasible(problem, start))
    return _single(x, kernel, kind, problem, settings, kept, n, n_features, C)


def one_class(
    X: Any,
    *,
    nu: float = 0.5,
    kernel: Any = _RBF,
    sample_weight: Any = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    cache_mb: float | None = None,
    n_threads: int | None = None,
    callback: Any = None,
) -> SVMModel:
    """The region where most of the data lie: decision values are negative outside.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    nu : float in (0, 1]
        An upper bound of the share of points outside, and a lower bound of that of support vectors.
    kernel, sample_weight, tol, max_iter, cache_mb, n_threads, callback
        As in `svc`.

    Returns
    -------
    SVMModel
        With one machine; coefficients between 0 and 1 whose sum is nu·n.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, svm
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = svm.one_class(X, nu=0.1, kernel=kernels.RBF(0.1))
    >>> svm.predict(model, [[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """
    settings = Settings(tol, max_iter, cache_mb, n_threads, callback)
    nu = fraction(nu)
    x, weight, kept, n, n_features = _weighted_rows(X, sample_weight, kernel)
    return _single(x, kernel, "one_class", dual.one_class(weight, nu), settings, kept, n, n_features, None)


def _single(
    x: Any,
    kernel: Any,
    kind: str,
    problem: dual.Problem,
    settings: Settings,
    kept: np.ndarray,
    n: int,
    n_features: int,
    C: float | None,
) -> SVMModel:
    """A model of one machine."""
    resolved = resolve(kernel, x)
    values = KernelValues(x, resolved, settings.threads, settings.cache_mb, settings.tick)
    solution = dual.solve(values, [problem], settings.tol, settings.max_iter, settings.tick)[0]
    warn_unless_converged([solution.certificate], settings.tol)
    machine = Fitted(solution.beta, solution.intercept, solution.certificate)
    computed = values.rows.n_computed if values.rows.n_computed else values.n
    return replace(build_model(x, resolved, kind, [machine], kept, n, n_features, computed), C=C)
