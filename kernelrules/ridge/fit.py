"""`fit` reads the problem (problem.py), chooses a form and a solver, solves and certifies; `certificate` certifies
coefficients of any origin."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import is_callable, plain
from kernelrules.results import Certificate, RidgeFit
from kernelrules.ridge import features, forms
from kernelrules.ridge.certify import Solved, from_worth, warn_unless_converged, worth
from kernelrules.ridge.conjugate import iterate, nystroem_inverse
from kernelrules.ridge.definite import require_semidefinite
from kernelrules.ridge.problem import Problem, read, targets

__all__ = ["build", "certificate", "fit"]

_RBF = kernels.RBF()
_FORMS = ("auto", "features", "kernel", "dual", "rkhs")
_SOLVERS = ("auto", "exact", "cg")
_MAX_ITER = 1000
_ALWAYS_EXACT = 2000  # points whose kernel matrix fits into any memory: 32 MB
_MATRIX_SHARE = 2  # the kernel matrix may take half of the free memory; a larger one is not computed


@parallel.reports("ridge")
def fit(
    X: Any,
    y: Any,
    lam: float,
    kernel: Any = _RBF,
    *,
    unlabelled: Any = None,
    form: str = "auto",
    solver: str = "auto",
    sample_weight: Any = None,
    intercept: bool = False,
    tol: float = 1e-8,
    max_iter: int | None = None,
    n_components: int | None = None,
    rng: Any = 0,
    keep_factor: bool = False,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> RidgeFit:
    """Kernel ridge regression: minimise (1/W) Σ wᵢ (f(xᵢ) - yᵢ)² + λ‖f‖², with W = Σ wᵢ.

    The factor 1/W makes λ independent of the number of points. A package that minimises Σ (f - y)² + a‖f‖² has a = λn.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The labelled points. For `Precomputed` the square kernel matrix of all points, the labelled first: y may then
        be shorter.
    y : array (n,) or (n, t)
        Targets, of one or several regressions.
    lam : float
        λ, greater than 0 (and within 1e-100 and 1e100).
    kernel : Kernel or callable
        One of `kernelrules.kernels`, or a function k(X, Z) that returns a matrix. gamma is taken from X. If it is not
        known to be positive semi-definite (`Precomputed`, `Sigmoid`, `Polynomial` with coef0 < 0, functions), the
        matrix of all points is factored as a check, and refused with its smallest eigenvalue if it is not.
    unlabelled : array, sparse matrix or data frame, (u, p), optional
        Points whose values are wanted along with those of X. For `Precomputed` their kernel values against all points
        of X, as `predict` takes them: (u, m) for a matrix X of m points.
    form : "auto", "features", "kernel", "dual" or "rkhs"
        Which equations to solve: all give the same f. "features" needs a kernel with an exact feature map; "auto" takes
        it where it is cheaper than "kernel".
    solver : "auto", "exact" or "cg"
        A factorisation, or conjugate gradients on the dual, which never hold the kernel matrix. "auto" takes "cg" where
        that matrix would need more than half of the free memory.
    sample_weight : array (n,), optional
        wᵢ, at least 0. A weight of 2 is the same as the row twice.
    intercept : bool
        Whether f may have a constant that is not penalised.
    tol : float
        Largest duality gap, relative to the primal objective, of a fit that counts as converged.
    max_iter : int, optional
        Iterations of "cg", 1000 by default.
    n_components : int, optional
        Points that the Nyström preconditioner of "cg" uses, 3√n by default.
    {rng}
        It chooses the landmarks.
    keep_factor : bool
        Keep the Cholesky factor, n² numbers, so that `posterior` need not make it. For form "kernel".
    {n_threads, callback, progress}

    Returns
    -------
    RidgeFit
        Values at all points, coefficients and the certificate, all in float64.

    Warns
    -----
    ConvergenceWarning
        Where the tolerance was not reached.

    References
    ----------
    Saunders, C., Gammerman, A. and Vovk, V. (1998). "Ridge regression learning algorithm in dual variables".
    Proceedings of the 15th International Conference on Machine Learning.

    The duality gap as a certificate of all four forms is our own.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, ridge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> found = ridge.fit(X, np.sin(X[:, 0]), 1e-6, kernels.RBF(1.0), unlabelled=[[2.5]])
    >>> bool(abs(found.fitted[-1] - np.sin(2.5)) < 1e-3)
    True
    >>> found.form, bool(found.certificate.gap < 1e-12)
    ('kernel', True)
    """
    check.one_of(form, "form", *_FORMS)
    check.one_of(solver, "solver", *_SOLVERS)
    tol = check.positive(tol, "tol")
    limit = _MAX_ITER if max_iter is None else check.whole(max_iter, "max_iter", 1)
    if n_components is not None:
        check.whole(n_components, "n_components", 1)
    given = isinstance(kernel, kernels.Precomputed)
    problem = read(
        X, y, lam, kernel, unlabelled=None if given else unlabelled, sample_weight=sample_weight, intercept=intercept,
        n_threads=n_threads, callback=callback,
    )  # fmt: skip
    beside = _values_beside(problem, unlabelled) if given and unlabelled is not None else None
    form, solver = _choose(problem, form, solver)
    problem = require_semidefinite(problem)
    if check.flag(keep_factor, "keep_factor") and (form != "kernel" or solver != "exact"):
        raise ValueError(f'keep_factor needs form="kernel" and solver="exact", but this fit is {form!r}, {solver!r}')
    if solver == "cg":
        inverse = nystroem_inverse(problem, n_components, rng)
        alpha, values, found, done = iterate(problem, inverse, tol, limit)
        solved = from_worth(problem, alpha, values, found, done, tol)
    elif form == "features":
        solved = features.features(problem, tol)
    elif form == "kernel":
        solved = forms.kernel(problem, tol, keep_factor)
    else:
        solved = (forms.dual if form == "dual" else forms.rkhs)(problem, tol)
    if beside is not None:
        solved = replace(solved, fitted=np.hstack([solved.fitted, _at_others(problem, solved, beside)]))
    return build(problem, solved, form, solver)


def _values_beside(problem: Problem, unlabelled: Any) -> Any:
    """Kernel values of points that are not in the matrix, against those that are."""
    values = check.matrix(unlabelled, "unlabelled", dtype=np.float64)
    if values.shape[1] != problem.m:
        raise ValueError(
            f"unlabelled has {values.shape[1]} columns but X is the kernel matrix of {problem.m} points: for "
            "Precomputed() it holds the kernel values of each point against these"
        )
    return values


def _at_others(problem: Problem, solved: Solved, values: Any) -> np.ndarray:
    """f, (t, u), from kernel values: no form gives f another value than Σ αⱼ k(x, xⱼ) + b at any point."""
    alpha = np.zeros((len(solved.alpha), problem.m))
    alpha[:, problem.kept] = solved.alpha
    with parallel.blas_threads(1):  # the same bits for any number of threads
        return np.asarray(plain(values) @ alpha.T).T + solved.constant[:, None]


def _choose(problem: Problem, form: str, solver: str) -> tuple[str, str]:
    """Form and solver, where one of them was left open."""
    if form == "features":
        if is_callable(problem.kernel):
            raise ValueError('form "features" needs a kernel with an exact feature map, got a callable')
        kernels.feature_map(problem.kernel, problem.points.shape[1])  # raises with the reason
    if solver == "cg":
        if form not in ("auto", "kernel", "dual"):
            raise ValueError(f'solver "cg" maximises the dual; it cannot solve form {form!r}')
        return ("dual" if form == "auto" else form), "cg"
    if form == "auto":
        form = features.cheapest(problem)
    if solver == "auto" and form in ("kernel", "dual"):
        n = len(problem.kept)
        held = problem.given or is_callable(problem.kernel)
        if not held and n > _ALWAYS_EXACT and n * n * 8 > check.free_memory() // _MATRIX_SHARE:
            return form, "cg"
    return form, "exact"


def build(problem: Problem, solved: Solved, form: str, solver: str) -> RidgeFit:
    """The result of a solution, in the user's shapes; with a warning where it did not converge."""
    warn_unless_converged(solved.certificate)
    weight = np.zeros(problem.n)
    weight[problem.kept] = problem.weight
    y = np.zeros((len(problem.y), problem.n))
    y[:, problem.kept] = problem.y
    constant = solved.constant
    return RidgeFit(
        form=form,
        solver=solver,
        kernel=problem.kernel,
        lam=problem.lam,
        fitted=problem.shaped(solved.fitted),
        alpha=problem.shaped(problem.all_alpha(solved.alpha)),
        weights=None if solved.weights is None else problem.shaped(solved.weights),
        intercept=float(constant[0]) if problem.flat else constant,
        certificate=solved.certificate,
        X=plain(problem.data).copy(),  # the user may overwrite what was given
        y=problem.shaped(y),
        sample_weight=weight,
        n_features=problem.points.shape[1],
        has_intercept=problem.intercept,
        factor=solved.factor,
    )


@parallel.reports("ridge")
def certificate(
    X: Any,
    y: Any,
    lam: float,
    kernel: Any = _RBF,
    *,
    alpha: Any,
    sample_weight: Any = None,
    intercept: bool = False,
    tol: float = 1e-8,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> Certificate:
    """The certificate of any coefficients: primal and dual objective, and the gap between them.

    No f whatever has a smaller objective than `dual`, so f = k(·, X)·alpha is at most `gap` above the best.

    Parameters
    ----------
    X, y, lam, kernel : as in `fit`
        The problem. gamma "scale" and "auto" are taken from X.
    alpha : array (n,) or (n, t)
        Coefficients, of the shape of y; 0 where the sample weight is, and with an intercept of sum 0, since the dual
        has no other.
    sample_weight, intercept : as in `fit`
        The rest of the problem.
    tol : float
        The relative gap up to which `converged` is True.
    {n_threads, callback, progress}

    Returns
    -------
    Certificate
        With the intercept that is best for alpha.

    Examples
    --------
    >>> from kernelrules import kernels, ridge
    >>> X, y = [[1.0], [2.0]], [1.0, 3.0]
    >>> zero = ridge.certificate(X, y, 0.5, kernels.Linear(), alpha=[0.0, 0.0])
    >>> zero.primal, zero.dual, zero.gap
    (5.0, 0.0, 5.0)
    """
    problem = read(
        X, y, lam, kernel, sample_weight=sample_weight, intercept=intercept, n_threads=n_threads, callback=callback
    )  # fmt: skip
    tol = check.positive(tol, "tol")
    if np.ndim(alpha) != (1 if problem.flat else 2):
        raise ValueError(f"alpha must have the shape of y, got shape {np.shape(alpha)}")
    rows, _ = targets(alpha, problem.n, "alpha")
    if len(rows) != len(problem.y):
        raise ValueError(f"alpha has {len(rows)} columns but y has {len(problem.y)}")
    left_out = np.setdiff1d(np.arange(problem.n), problem.kept)
    if np.any(rows[:, left_out]):
        place = int(left_out[np.any(rows[:, left_out] != 0, axis=0)][0])
        raise ValueError(f"alpha must be 0 where sample_weight is, but is not at position {place}")
    problem = require_semidefinite(problem)
    rows = np.ascontiguousarray(rows[:, problem.kept])
    sums = np.abs(rows.sum(axis=1))
    if problem.intercept and (sums > 1e-8 * np.abs(rows).sum(axis=1) + np.finfo(np.float64).tiny).any():
        raise ValueError(f"with an intercept alpha must sum to 0, but its sum is {sums.max():.6g}")
    with np.errstate(over="ignore", invalid="ignore"):
        found = worth(problem, rows, problem.product(rows))
    if not math.isfinite(found.primal + found.dual + found.gap):
        raise ValueError(f"the objective at alpha, of up to {np.abs(rows).max():.3g}, does not fit float64")
    return found.certificate(0, tol, problem.y)
