"""The fit: checks, one machine of two classes or one a class, and a model of them.

P(f) = (1 / W) Σ wᵢ L(yᵢ f(xᵢ)) + λ‖f‖²,   W = Σ w
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, losses, parallel, sharing
from kernelrules.erm.newton import Problem, Solution, minimise, relative
from kernelrules.erm.systems import Features, system_from, system_of
from kernelrules.kernels.values import plain, reorder, resolve
from kernelrules.results import Certificate, ErmFit

__all__ = ["ConvergenceWarning", "fit"]

_RBF = kernels.RBF()
_MAX_ITER = 200
_SECONDS = 0.2  # between two calls of a callback


class ConvergenceWarning(UserWarning):
    """The fit stopped before its gap was small enough; the certificate says how good the answer is."""


@parallel.reports("erm")
def fit(
    X: Any,
    y: Any,
    lam: float,
    kernel: Any = _RBF,
    loss: Any = "logistic",
    *,
    sample_weight: Any = None,
    intercept: bool = False,
    tol: float = 1e-8,
    max_iter: int | None = None,
    executor: Any = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> ErmFit:
    """Minimise (1/W) Σ wᵢ L(yᵢ f(xᵢ)) + λ‖f‖² by Newton's method, to a duality gap.

    f is in the space of the kernel, with yᵢ = ±1, W the sum of the weights; a row of weight 2 is one that is there
    twice. More than two classes are fitted one against the rest. Memory: two n × n matrices in float64, or three
    for more than two classes; where the kernel has at most n explicit features (Linear, Polynomial), those and two
    p × p matrices.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    y : array (n,)
        Labels of any kind: strings, whole numbers, booleans.
    lam : float
        λ, above 0.
    kernel : Kernel or callable
        One of `kernelrules.kernels`, or a function of two data sets that gives their kernel matrix. It has to be
        positive semi-definite: Sigmoid, callables and matrices are checked.
    loss : {"logistic", "squared", "squared_hinge", "exponential"} or Loss
        One of the smooth ones of `kernelrules.losses`, or a `Loss` of your own that is convex and smooth.
    sample_weight : array (n,), optional
        Weights w; a row of weight 0 is as if it were absent.
    intercept : bool
        Whether f has a constant term that is not penalised.
    tol : float
        The gap relative to the objective at which the fit ends.
    max_iter : int, optional
        Most Newton steps of a machine; default 200. They are seldom more than 20.
    executor : concurrent.futures.Executor, optional
        Fits the machines of more than two classes but the first, each a task: the same fit, bit for bit. Tasks use one
        thread unless `n_threads` says otherwise.
    n_threads : int, optional
        Default: the cores that the process may use. The result does not depend on it.
    callback : callable, optional
        Called with a `Progress` several times a second; what it raises ends the fit.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    ErmFit
        With a certificate a machine. Its gap is what `tol` limits; kkt is the largest value that the gradient of P,
        2λ f + (1/W) Σ wᵢ yᵢ L'(yᵢ f(xᵢ)) k(xᵢ, ·), has at a training point, or its derivative in the intercept.

    Raises
    ------
    ValueError, TypeError
        For bad data, fewer than two classes, or a kernel that is not positive semi-definite.
    MemoryError
        If the matrices would be larger than the memory that is free.

    Warns
    -----
    ConvergenceWarning
        Where max_iter or rounding ended a fit.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import erm, kernels
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> found = erm.fit(X, ["a", "a", "b", "b"], 0.01, kernels.RBF(0.5))
    >>> erm.predict(found, [[0.4], [2.8]])
    array(['a', 'b'], dtype='<U1')
    >>> found.certificate.gap <= 1e-8 * found.certificate.primal
    True
    """
    lam, tol = check.positive(lam, "lam"), check.positive(tol, "tol")
    steps = _MAX_ITER if max_iter is None else check.whole(max_iter, "max_iter", 1)
    chosen = _smooth(loss)
    intercept = check.flag(intercept, "intercept")
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "erm")
    parallel.require_executor(executor)
    x = check.matrix(X)
    n = x.shape[0]
    if n == 0:
        raise ValueError("X has no rows")
    classes, codes = check.labels(y, n)
    weight = check.weights(sample_weight, n)
    kept = np.flatnonzero(weight > 0)
    check.require_classes(classes, np.bincount(codes[kept], minlength=len(classes)))
    data = x if len(kept) == n else reorder(x, kept, kernel)
    resolved = resolve(kernel, data)
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not np.isfinite(total):
        raise ValueError("the sum of sample_weight overflows float64")
    share, codes = weight[kept] / total, codes[kept]
    if not (share > 0).all():
        raise ValueError("sample_weight spans too many orders of magnitude: a share of the sum underflows")
    clock = _Clock(tick, steps * (1 if len(classes) == 2 else len(classes)))
    with parallel.blas_threads(1):
        system = system_of(data, resolved, threads, clock.air, callback)
        first = 1 if len(classes) == 2 else 0
        problem = Problem(system, chosen, lam, np.where(codes == first, 1.0, -1.0), share, intercept)
        solutions = [minimise(problem, tol, steps, clock.report)]
        system.settle()
        if len(classes) > 2 and executor is not None:
            others = [np.where(codes == positive, 1.0, -1.0) for positive in range(1, len(classes))]
            solutions += _by_executor(problem, others, tol, steps, executor, n_threads, tick)
        elif len(classes) > 2:
            for positive in range(1, len(classes)):
                clock.begin(positive * steps)
                system.begin()
                signs = np.where(codes == positive, 1.0, -1.0)
                solutions.append(minimise(replace(problem, y=signs), tol, steps, clock.report))
    _warn_unless_converged([s.certificate for s in solutions], tol)
    alpha = np.zeros((len(solutions), n))
    by_weights = isinstance(system, Features)
    alpha[:, kept] = [s.a if by_weights else s.theta for s in solutions]
    weights = np.array([s.theta for s in solutions]) if by_weights else None
    return _model(x, resolved, chosen, lam, classes, alpha, weights, solutions)


def _by_executor(
    problem: Problem, others: list[np.ndarray], tol: float, steps: int, executor: Any, n_threads: int | None, tick: Any
) -> list[Solution]:
    """The problem with other signs."""
    threads = 1 if n_threads is None else n_threads
    with sharing.Scattered(executor) as scatter:
        shared, bare = scatter((problem.system.shared(), problem.share)), replace(problem, system=None, share=None)
        tasks = [(shared, replace(bare, y=signs), tol, steps, threads) for signs in others]
        return parallel.run(_solved, tasks, executor, tick, "machine")


def _solved(shared: tuple, bare: Problem, tol: float, steps: int, n_threads: int) -> Solution:
    """One machine; what an executor is given."""
    parts, share = shared
    clock = _Clock(parallel.ticker(None, "erm"), steps)
    with parallel.blas_threads(1):
        system = system_from(parts, parallel.n_threads_or_default(n_threads), clock.air)
        system.begin()
        return minimise(replace(bare, system=system, share=share), tol, steps, clock.report)


def _model(
    x: Any,
    kernel: Any,
    loss: losses.Loss,
    lam: float,
    classes: np.ndarray,
    alpha: np.ndarray,
    weights: np.ndarray | None,
    solutions: list[Solution],
) -> ErmFit:
    certificates = tuple(s.certificate for s in solutions)
    points = None
    if weights is None and not isinstance(kernel, kernels.Precomputed):
        points = plain(x).copy()  # what the caller does to X later must not change the model
    return ErmFit(
        loss=loss.name,
        lam=lam,
        kernel=kernel,
        classes=classes,
        alpha=alpha,
        weights=weights,
        intercept=np.array([s.b for s in solutions]),
        norms=np.array([s.norm for s in solutions]),
        certificate=max(certificates, key=lambda c: (not c.converged, relative(c.gap, c.primal))),
        certificates=certificates,
        X=points,
        n_features=x.shape[1],
    )


class _Clock:
    """Progress for a callback, several times a second; without one, only a place for signals to be seen."""

    def __init__(self, tick: Any, total: int) -> None:
        self.tick, self.total = tick, total
        self.before, self.done, self.violation = 0, 0, None
        self.last = time.monotonic()

    def begin(self, before: int) -> None:
        """A machine starts, after so many steps of others."""
        self.before = before

    def report(self, iterations: int, violation: float) -> None:
        """Before a Newton step."""
        self.done, self.violation = self.before + iterations, violation
        if self.tick is not None:
            self.last = time.monotonic()
            self.tick(self.done, self.total, violation)

    def air(self) -> None:
        """In the midst of one. Python itself looks for signals on the way here."""
        if self.tick is not None and time.monotonic() - self.last > _SECONDS:
            self.last = time.monotonic()
            self.tick(self.done, self.total, self.violation)


def _smooth(loss: Any) -> losses.Loss:
    """The loss, if Newton's method can minimise it."""
    able = [name for name, each in losses.BY_NAME.items() if each.smooth and each.convex]
    if isinstance(loss, str):
        if loss == "hinge":
            raise ValueError('loss "hinge" is not smooth: that machine is svm.svc, with C = 1 / (2 λ n)')
        if loss not in able:
            raise ValueError(f"loss must be one of {', '.join(map(repr, able))} or a Loss, got {loss!r}")
        return losses.BY_NAME[loss]
    if not isinstance(loss, losses.Loss):
        raise TypeError(f"loss must be a name or one of kernelrules.losses, got {loss!r}")
    if loss is losses.hinge:
        return _smooth("hinge")
    if loss.name in losses.BY_NAME and loss is not losses.BY_NAME[loss.name]:
        raise ValueError(
            f"loss is one of your own but has the name of another, {loss.name!r}: the model goes by the name"
        )
    if not (loss.smooth and loss.convex):
        raise ValueError(f"loss must be convex and smooth, and {loss.name} is not")
    return loss


def _warn_unless_converged(certificates: Iterable[Certificate], tol: float) -> None:
    """One warning for all machines."""
    late = [c for c in certificates if not c.converged]
    if late:
        worst = max(late, key=lambda c: relative(c.gap, c.primal))
        warnings.warn(
            f"{len(late)} machine(s) stopped before the relative gap {tol:g} was reached: it is up to "
            f"{relative(worst.gap, worst.primal):.3g} after {worst.iterations} steps. Scale the features, take a "
            "larger lam, or allow more with max_iter",
            ConvergenceWarning,
            stacklevel=check.level_of_caller(),
        )
