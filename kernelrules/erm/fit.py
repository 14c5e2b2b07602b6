"""`fit`: checks, one machine for two classes or one per class, and the model.

P(f) = (1 / W) Σ wᵢ L(yᵢ f(xᵢ)) + λ‖f‖²,   W = Σ w
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, losses, parallel, shared_data
from kernelrules.erm import hinge, newton
from kernelrules.erm.newton import Problem, Solution, relative_gap
from kernelrules.erm.systems import FeatureSystem, system_from, system_of
from kernelrules.kernels.values import plain, reorder, resolve
from kernelrules.results import Certificate, ConvergenceWarning, ErmFit

__all__ = ["fit"]

_RBF = kernels.RBF()
_MAX_ITER = 200
_CALLBACK_SECONDS = 0.2  # between two calls of a callback


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
    """Minimise (1/W) Σ wᵢ L(yᵢ f(xᵢ)) + λ‖f‖² to a given duality gap.

    f is in the space of the kernel, yᵢ = ±1, and W is the sum of the weights; a row of weight 2 counts as two rows.
    Smooth losses are minimised by Newton's method in the primal [1]_, the hinge by the dual solver of support vector
    machines. More than two classes are fitted one against the rest. Memory: two n × n matrices in float64, or three for
    more than two classes; if the kernel has at most n explicit features (Linear, Polynomial), those and two p × p
    matrices.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; the square kernel matrix for `Precomputed`.
    y : array (n,)
        Labels of any kind: strings, whole numbers, booleans.
    lam : float
        λ, above 0.
    kernel : Kernel or callable
        One of `kernelrules.kernels`, or a function of two data sets that returns their kernel matrix. It must be
        positive semi-definite: Sigmoid, callables and matrices are checked.
    loss : {"logistic", "squared", "hinge", "squared_hinge", "exponential"} or Loss
        One of the convex ones of `kernelrules.losses`, or a `Loss` of your own that is convex and smooth. With "hinge"
        and an intercept it is the machine that `svm.svc` fits with C = 1 / (2 λ W).
    sample_weight : array (n,), optional
        Weights w; a row of weight 0 is as if it were absent.
    intercept : bool
        Whether f has a constant term that is not penalised.
    tol : float
        Gap relative to the objective at which the fit ends.
    max_iter : int, optional
        Most Newton steps per machine; default 200, rarely more than 20 are taken. With "hinge", steps of the dual
        solver; default ten million, or a hundred per point if that is more.
    {executor}
        With more than two classes, each binary machine but the first is a task.
    {n_threads, callback, progress}

    Returns
    -------
    ErmFit
        With one certificate per machine. `tol` limits its gap; kkt is the largest value that the gradient of P,
        2λ f + (1/W) Σ wᵢ yᵢ L'(yᵢ f(xᵢ)) k(xᵢ, ·), has at a training point, or its derivative in the intercept. With
        "hinge" it is the largest violation of the dual's optimality conditions, in units of the margin.

    Raises
    ------
    ValueError, TypeError
        For bad data, fewer than two classes, or a kernel that is not positive semi-definite.
    MemoryError
        If the matrices would not fit the free memory.

    Warns
    -----
    ConvergenceWarning
        If max_iter or rounding ended a fit.

    References
    ----------
    .. [1] O. Chapelle (2007). Training a support vector machine in the primal. Neural Computation 19, 1155-1178.

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
    steps = None if max_iter is None else check.whole(max_iter, "max_iter", 1)
    chosen = _minimisable(loss)
    intercept = check.flag(intercept, "intercept")
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "erm")
    parallel.require_executor(executor)
    x = check.matrix(X)
    n = x.shape[0]
    if n == 0:
        raise ValueError("X has no rows")
    steps = steps or (hinge.default_steps(n) if chosen is losses.hinge else _MAX_ITER)
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
    clock = _ProgressClock(tick, steps * (1 if len(classes) == 2 else len(classes)))
    with parallel.blas_threads(1):
        system = system_of(data, resolved, threads, clock.check_interrupt, callback)
        first = 1 if len(classes) == 2 else 0
        problem = Problem(system, chosen, lam, np.where(codes == first, 1.0, -1.0), share, intercept)
        solutions = [_minimise(problem, tol, steps, clock.report)]
        system.settle()
        if len(classes) > 2 and executor is not None:
            others = [np.where(codes == positive, 1.0, -1.0) for positive in range(1, len(classes))]
            solutions += _by_executor(problem, others, tol, steps, executor, n_threads, tick)
        elif len(classes) > 2:
            for positive in range(1, len(classes)):
                clock.begin(positive * steps)
                system.begin()
                signs = np.where(codes == positive, 1.0, -1.0)
                solutions.append(_minimise(replace(problem, y=signs), tol, steps, clock.report))
    _warn_unless_converged([s.certificate for s in solutions], tol)
    alpha = np.zeros((len(solutions), n))
    by_weights = isinstance(system, FeatureSystem)
    alpha[:, kept] = [s.a if by_weights else s.theta for s in solutions]
    weights = np.array([s.theta for s in solutions]) if by_weights else None
    return _model(x, resolved, chosen, lam, classes, alpha, weights, solutions)


def _minimise(problem: Problem, tol: float, steps: int, report: Any) -> Solution:
    """Return the solution, by the method for the loss."""
    return (hinge if problem.loss is losses.hinge else newton).minimise(problem, tol, steps, report)


def _by_executor(
    problem: Problem, others: list[np.ndarray], tol: float, steps: int, executor: Any, n_threads: int | None, tick: Any
) -> list[Solution]:
    """Return the solutions of the problem with other signs, as tasks of an executor."""
    threads = 1 if n_threads is None else n_threads
    with shared_data.Scattered(executor) as scatter:
        shared, bare = scatter((problem.system.shared(), problem.share)), replace(problem, system=None, share=None)
        tasks = [(shared, replace(bare, y=signs), tol, steps, threads) for signs in others]
        return parallel.run(_solve_task, tasks, executor, tick, "machine")


def _solve_task(shared: tuple, bare: Problem, tol: float, steps: int, n_threads: int) -> Solution:
    """Return the solution of one machine; a task of an executor."""
    parts, share = shared
    clock = _ProgressClock(parallel.ticker(None, "erm"), steps)
    with parallel.blas_threads(1):
        system = system_from(parts, parallel.n_threads_or_default(n_threads), clock.check_interrupt)
        system.begin()
        return _minimise(replace(bare, system=system, share=share), tol, steps, clock.report)


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
        points = plain(x).copy()  # later changes of X by the caller must not change the model
    return ErmFit(
        loss=loss.name,
        lam=lam,
        kernel=kernel,
        classes=classes,
        alpha=alpha,
        weights=weights,
        intercept=np.array([s.b for s in solutions]),
        norms=np.array([s.norm for s in solutions]),
        certificate=max(certificates, key=lambda c: (not c.converged, relative_gap(c.gap, c.primal))),
        certificates=certificates,
        X=points,
        n_features=x.shape[1],
    )


class _ProgressClock:
    """Reports progress to a callback several times a second; without one, Python still handles signals."""

    def __init__(self, tick: Any, total: int) -> None:
        self.tick, self.total = tick, total
        self.before, self.done, self.violation = 0, 0, None
        self.last = time.monotonic()

    def begin(self, before: int) -> None:
        """Start the next machine, after `before` steps of others."""
        self.before = before

    def report(self, iterations: int, violation: float) -> None:
        """Report before a Newton step."""
        self.done, self.violation = self.before + iterations, violation
        if self.tick is not None:
            self.last = time.monotonic()
            self.tick(self.done, self.total, violation)

    def check_interrupt(self) -> None:
        """Report during a step. Python checks for signals before it calls this."""
        if self.tick is not None and time.monotonic() - self.last > _CALLBACK_SECONDS:
            self.last = time.monotonic()
            self.tick(self.done, self.total, self.violation)


def _minimisable(loss: Any) -> losses.Loss:
    """Return the loss, if it is the hinge or Newton's method can minimise it."""
    able = [name for name, each in losses.BY_NAME.items() if each.convex]
    if isinstance(loss, str):
        if loss not in able:
            raise ValueError(f"loss must be one of {', '.join(map(repr, able))} or a Loss, got {loss!r}")
        return losses.BY_NAME[loss]
    if not isinstance(loss, losses.Loss):
        raise TypeError(f"loss must be a name or one of kernelrules.losses, got {loss!r}")
    if loss.name in losses.BY_NAME and loss is not losses.BY_NAME[loss.name]:
        raise ValueError(
            f"loss is not the one of kernelrules.losses but has its name, {loss.name!r}: the model stores the name"
        )
    if not (loss.convex and (loss.smooth or loss is losses.hinge)):
        raise ValueError(f"loss must be the hinge, or convex and smooth, and {loss.name} is not")
    return loss


def _warn_unless_converged(certificates: Iterable[Certificate], tol: float) -> None:
    """Warn once for all machines that stopped early."""
    late = [c for c in certificates if not c.converged]
    if late:
        worst = max(late, key=lambda c: relative_gap(c.gap, c.primal))
        warnings.warn(
            f"{len(late)} machine(s) stopped before the relative gap {tol:g} was reached: it is up to "
            f"{relative_gap(worst.gap, worst.primal):.3g} after {worst.iterations} steps. Scale the features, take a "
            "larger lam, or allow more with max_iter",
            ConvergenceWarning,
            stacklevel=check.level_of_caller(),
        )
