"""Fits: `svc`, `svr` and `one_class` check what they are given, set up dual problems, and have them solved.

The five problems, and what a solution is worth, are in dual.py; the machines of several classes in machines.py. Rows of
weight 0 leave before anything is computed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import resolve
from kernelrules.results import SVMModel
from kernelrules.svm import dual
from kernelrules.svm.centre import at_origin, centred
from kernelrules.svm.classified import Classified
from kernelrules.svm.machines import Fitted, Task, build_model, feasible, fit_machines, reorder
from kernelrules.svm.settings import MOST, Settings, cost, costs, earlier_coefficients, fraction, warn_unless_converged
from kernelrules.svm.values import KernelValues

__all__ = ["one_class", "svc", "svr"]

_RBF = kernels.RBF()


@parallel.reports("svm")
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
    progress: bool = False,
) -> SVMModel:
    """A support vector classifier: soft margin with cost C, hard margin (C infinite), or nu.

    Minimises ½‖w‖² + Σ Cᵢ ξᵢ under yᵢ (w·φ(xᵢ) + b) ≥ 1 - ξᵢ, ξ ≥ 0, where Cᵢ is C times the weights of the row and of
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
        Fits the machines of more than two classes, each a task: the same model, bit for bit. Tasks use one thread
        unless `n_threads` says otherwise, and `cache_mb` is the memory of each.
    n_threads : int, optional
        Default: the cores that the process may use. The result does not depend on it.
    callback : callable, optional
        Called with a `Progress` several times a second; what it raises ends the fit.
    progress : bool
        Whether to show a bar, by tqdm.

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
    settings = Settings(tol, max_iter, cache_mb, n_threads, parallel.ticker(callback, "svm"), executor)
    C = cost(C)
    nu = None if nu is None else fraction(nu)
    check.one_of(multiclass, "multiclass", "ovo", "ovr")
    data = Classified.read(X, y, kernel, class_weight, sample_weight)
    splits = data.splits(multiclass)
    kind = "svc" if nu is None else "nu_svc"
    earlier = earlier_coefficients(warm_start, data.n_rows, (kind,), len(splits))
    if earlier is not None:
        if len(splits) > 1 and warm_start.multiclass != multiclass:
            raise ValueError(f"warm_start is a model of {warm_start.multiclass} machines, but {multiclass} is wanted")
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


def _weighted_rows(X: Any, sample_weight: Any, kernel: Any) -> tuple[Any, np.ndarray, np.ndarray, int, int]:
    """Data without the rows of weight 0, their weights and numbers, and the shape there was."""
    x = check.matrix(X)
    n, n_features = x.shape
    if n == 0:
        raise ValueError("X has no rows")
    weight = check.weights(sample_weight, n)
    kept = np.flatnonzero(weight > 0)
    return x if len(kept) == n else reorder(x, kept, kernel), weight[kept], kept, n, n_features


@parallel.reports("svm")
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
    progress: bool = False,
) -> SVMModel:
    """Support vector regression: a tube of half-width epsilon, or one as wide as nu asks for.

    Minimises ½‖w‖² + Σ Cᵢ max(0, abs(yᵢ - f(xᵢ)) - ε); with nu also over ε, at the price C·nu·n for it.

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
    kernel, sample_weight, tol, max_iter, cache_mb, warm_start, n_threads, callback, progress : optional
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
    settings = Settings(tol, max_iter, cache_mb, n_threads, parallel.ticker(callback, "svm"))
    C = check.positive(C, "C")
    epsilon = check.not_negative(epsilon, "epsilon")
    nu = None if nu is None else fraction(nu)
    x, weight, kept, n, n_features = _weighted_rows(X, sample_weight, kernel)
    target = check.targets(y, n)[kept]
    if np.abs(target).max(initial=0.0) > MOST:
        raise ValueError(f"y holds numbers as large as {np.abs(target).max():.3g}: use smaller units, up to {MOST:g}")
    kind = "svr" if nu is None else "nu_svr"
    earlier = earlier_coefficients(warm_start, n, (kind,), 1)
    if nu is None:
        problem = dual.eps_svr(target, costs(C, weight), epsilon)
    else:
        problem = dual.nu_svr(target, costs(C, weight), nu)
    if earlier is not None:
        beta = earlier[0, kept] * (C / warm_start.C)
        start = beta if nu is None else np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)])
        problem = replace(problem, start=feasible(problem, start))
    model, solution = _single(x, kernel, kind, problem, settings, kept, n, n_features)
    width = epsilon if nu is None else float(solution.offsets[0] - solution.offsets[1]) / 2
    return replace(model, C=C, epsilon=width)


@parallel.reports("svm")
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
    progress: bool = False,
) -> SVMModel:
    """The region where most of the data lie: decision values are negative outside.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    nu : float in (0, 1]
        An upper bound of the share of points outside, and a lower bound of that of support vectors.
    kernel, sample_weight, tol, max_iter, cache_mb, n_threads, callback, progress : optional
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
    settings = Settings(tol, max_iter, cache_mb, n_threads, parallel.ticker(callback, "svm"))
    nu = fraction(nu)
    x, weight, kept, n, n_features = _weighted_rows(X, sample_weight, kernel)
    return _single(x, kernel, "one_class", dual.one_class(costs(1.0, weight), nu), settings, kept, n, n_features)[0]


def _single(
    x: Any,
    kernel: Any,
    kind: str,
    problem: dual.Problem,
    settings: Settings,
    kept: np.ndarray,
    n: int,
    n_features: int,
) -> tuple[SVMModel, dual.Solution]:
    """A model of one machine, and what it was made of."""
    resolved = resolve(kernel, x)
    moved, centre = (x, None) if kind == "one_class" else centred(x, resolved)
    values = KernelValues(moved, resolved, settings.threads, settings.cache_mb, settings.tick)
    solution = dual.solve(values, [problem], settings.tol, settings.max_iter, settings.tick)[0]
    warn_unless_converged([solution.certificate], settings.tol)
    machine = Fitted(solution.beta, solution.intercept, solution.certificate)
    computed = values.rows.n_computed if values.rows.n_computed else values.n
    model = build_model(x, resolved, kind, [machine], kept, n, n_features, computed)
    return at_origin(model, centre), solution
