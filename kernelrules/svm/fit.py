"""`svc`, `svr` and `one_class`: from arguments to a model.

training_data.py  data are checked and, for classes, ordered
machines.py       one binary machine per split of the classes
problems.py       each is a dual problem
strategy.py       which the solver solves
certificate.py    and certifies
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import resolve
from kernelrules.results import SVMModel
from kernelrules.svm import problems, strategy
from kernelrules.svm.centring import centred, undo_centring
from kernelrules.svm.certificate import Solution
from kernelrules.svm.kernel_values import KernelValues
from kernelrules.svm.machines import Fitted, Objective, build_model, fit_machines, with_costs
from kernelrules.svm.settings import Settings, cost, costs, earlier_coefficients, fraction, warn_unless_converged
from kernelrules.svm.training_data import LabelledData, WeightedRows, read_targets, read_weighted

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
    """Fit a support vector classifier: soft margin with cost C, hard margin (C infinite), or nu.

    Minimises ½‖w‖² + Σ Cᵢ ξᵢ under yᵢ (w·φ(xᵢ) + b) ≥ 1 - ξᵢ, ξ ≥ 0, where Cᵢ is C times the weights of the row and of
    its class. The dual is solved by sequential minimal optimisation [1]_ with second-order working-set selection [2]_.
    Memory: the kernel values that `cache_mb` allows, and a few copies of X.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    y : array (n,)
        Labels of any kind: strings, whole numbers, booleans.
    C : float
        Cost of a slack. Infinity is the hard margin.
    nu : float in (0, 1], optional
        Instead of C: a lower bound of the share of support vectors and an upper bound of that of margin errors [3]_.
    kernel : Kernel or callable
        One of `kernelrules.kernels`, or a function of two data sets that returns their kernel matrix.
    multiclass : {"ovo", "ovr"}
        With more than two classes: a machine for each pair, or for each class against the rest.
    class_weight : dict, "balanced" or None
        Factors of C by class; "balanced" is n / (n_classes · count).
    sample_weight : array (n,), optional
        Factors of C by row; a row of weight 0 is as if it were absent.
    tol : float
        Largest violation of the optimality conditions of a converged machine.
    max_iter : int, optional
        Most steps per machine; default ten million, or a hundred per point if that is more.
    cache_mb : float, optional
        Memory for kernel values; default a quarter of the free memory.
    warm_start : SVMModel, optional
        A model of the same kind on the same data, or on its first rows, to start from.
    {executor}
        With more than two classes, each binary machine is a task, with `cache_mb` of its own.
    {n_threads, callback, progress}

    Returns
    -------
    SVMModel
        With a certificate for each machine.

    Raises
    ------
    NotSeparable
        If C is infinite and no hyperplane separates the classes: with the proof, and the pair of classes.
    Undecided
        If C is infinite, and neither a separating hyperplane nor a proof that there is none was found: with bounds of
        the distance between the classes' convex hulls.

    Warns
    -----
    ConvergenceWarning
        If a machine stopped before the tolerance was reached.

    References
    ----------
    .. [1] J. C. Platt (1998). Sequential minimal optimization: a fast algorithm for training support vector machines.
       Microsoft Research technical report MSR-TR-98-14.
    .. [2] R.-E. Fan, P.-H. Chen and C.-J. Lin (2005). Working set selection using second order information for
       training support vector machines. Journal of Machine Learning Research 6, 1889-1918.
    .. [3] B. Schölkopf, A. J. Smola, R. C. Williamson and P. L. Bartlett (2000). New support vector algorithms.
       Neural Computation 12, 1207-1245.

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
    data = LabelledData.read(X, y, kernel, class_weight, sample_weight)
    splits = data.splits(multiclass)
    kind = "svc" if nu is None else "nu_svc"
    earlier = earlier_coefficients(warm_start, data.n_rows, (kind,), len(splits))
    if earlier is not None:
        if len(splits) > 1 and warm_start.multiclass != multiclass:
            raise ValueError(f"warm_start is a model of {warm_start.multiclass} machines, but {multiclass} is required")
        if warm_start.classes is None or not np.array_equal(warm_start.classes, data.classes):
            raise ValueError("warm_start has other classes than y")
        if warm_start.C and math.isfinite(C) and math.isfinite(warm_start.C) and nu is None:
            earlier *= C / warm_start.C
        earlier = earlier[:, data.order]
    if nu is None and math.isinf(C):
        data = data.without_centring()
    objective = Objective(data.weight, C, nu)
    with data.errors_in_user_rows(multiclass):
        machines, n_computed = fit_machines(data.x, data.kernel, splits, objective, settings, earlier)
    warn_unless_converged([m.certificate for m in machines], settings.tol)
    model = data.model(kind, multiclass, machines, n_computed)
    return replace(model, C=C) if nu is None else with_costs(model, machines)


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
    """Fit a support vector regression with a tube of half-width epsilon, or one whose width nu determines.

    Minimises ½‖w‖² + Σ Cᵢ max(0, abs(yᵢ - f(xᵢ)) - ε) [1]_; with nu also over ε, which then costs C·nu·n [2]_.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    y : array (n,)
        Numbers.
    C : float
        Cost of a unit outside the tube; finite.
    epsilon : float
        Half the width of the tube, at least 0. Not used with nu.
    nu : float in (0, 1], optional
        An upper bound of the share of points outside the tube.
    kernel, sample_weight, tol, max_iter, cache_mb, warm_start : optional
        As in `svc`.
    {n_threads, callback, progress}

    Returns
    -------
    SVMModel
        With one machine.

    References
    ----------
    .. [1] V. N. Vapnik (1998). Statistical Learning Theory. Wiley.
    .. [2] B. Schölkopf, A. J. Smola, R. C. Williamson and P. L. Bartlett (2000). New support vector algorithms.
       Neural Computation 12, 1207-1245.

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
    data, target = read_targets(X, y, sample_weight, kernel)
    kind = "svr" if nu is None else "nu_svr"
    earlier = earlier_coefficients(warm_start, data.n_rows, (kind,), 1)
    if nu is None:
        problem = problems.eps_svr(target, costs(C, data.weight), epsilon)
    else:
        problem = problems.nu_svr(target, costs(C, data.weight), nu)
    if earlier is not None:
        beta = earlier[0, data.kept] * (C / warm_start.C)
        problem = problems.feasible_start(problem, beta if nu is None else problems.both_sides(beta))
    model, solution = _fit_one(data, kernel, kind, problem, settings)
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
    """Fit a one-class machine: the region where most of the data lie, outside of which decision values are negative.

    It is the support of the distribution as Schölkopf et al. [1]_ estimate it.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    nu : float in (0, 1]
        An upper bound of the share of points outside, and a lower bound of that of support vectors.
    kernel, sample_weight, tol, max_iter, cache_mb : optional
        As in `svc`.
    {n_threads, callback, progress}

    Returns
    -------
    SVMModel
        With one machine; coefficients between 0 and 1 whose sum is nu·n.

    References
    ----------
    .. [1] B. Schölkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola and R. C. Williamson (2001). Estimating the support
       of a high-dimensional distribution. Neural Computation 13, 1443-1471.

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
    data = read_weighted(X, sample_weight, kernel)
    return _fit_one(data, kernel, "one_class", problems.one_class(costs(1.0, data.weight), nu), settings)[0]


def _fit_one(
    data: WeightedRows, kernel: Any, kind: str, problem: problems.Problem, settings: Settings
) -> tuple[SVMModel, Solution]:
    """Return the model of one machine, and its solution."""
    resolved = resolve(kernel, data.x)
    x, centre = (data.x, None) if kind == "one_class" else centred(data.x, resolved)
    values = KernelValues(x, resolved, settings.threads, settings.cache_mb, settings.tick)
    solution = strategy.solve(values, [problem], settings.tol, settings.max_iter, settings.tick)[0]
    warn_unless_converged([solution.certificate], settings.tol)
    machine = Fitted(solution.beta, solution.intercept, solution.certificate, weights=solution.weights)
    model = build_model(data, resolved, kind, [machine], values.rows.n_computed or values.n)
    return undo_centring(model, centre), solution
