"""Ridge for many λ from one eigendecomposition, with leave-one-out errors and effective degrees of freedom.

With W^½KW^½ = UΛUᵀ and g = 1/(Λ + λW), A⁻¹ = (K + S)⁻¹ = W^½ U diag(g) Uᵀ W^½ for every λ. Let M = A⁻¹, or with a
constant M = A⁻¹ - A⁻¹11ᵀA⁻¹/1ᵀA⁻¹1. Then α = My, the residuals are Sα, the hat matrix is I - SM, and

    yᵢ - f₋ᵢ(xᵢ) = αᵢ / Mᵢᵢ        f₋ᵢ fitted without point i at the same λW.

If there are fewer features than points, the same follows from the eigenvectors of ΨᵀWΨ; for many points, from a band
matrix instead of Λ (band.py).

Invariant: LAPACK and BLAS run on one thread, and threads take blocks of rows that depend on the shapes alone, so any
number of threads gives the same bits.

References
----------
Golub, G. H., Heath, M. and Wahba, G. (1979). "Generalized cross-validation as a method for choosing a good ridge
parameter". Technometrics 21(2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import is_callable, plain
from kernelrules.results import RidgeFit, RidgePath
from kernelrules.ridge.band import Band
from kernelrules.ridge.certify import from_worth, worth
from kernelrules.ridge.definite import require_semidefinite
from kernelrules.ridge.factor import eigh
from kernelrules.ridge.features import Features, cheapest, feature_solution
from kernelrules.ridge.fit import build
from kernelrules.ridge.problem import Problem, read, require_strength, strength

__all__ = ["at", "path"]

_RBF = kernels.RBF()
_ROWS = 512
_LARGE, _SHARE = 1000, 40  # points from which a band takes less time than eigenvectors, and points per λ at least
_CLEAR = 100.0  # times the rounding errors, from which on λ needs no eigenvalues


@parallel.reports("ridge")
def path(
    X: Any,
    y: Any,
    lams: Any,
    kernel: Any = _RBF,
    *,
    form: str = "auto",
    sample_weight: Any = None,
    intercept: bool = False,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> RidgePath:
    """Ridge regression for many λ at the price of a few: one eigendecomposition, then n² operations for each λ.

    Parameters
    ----------
    X, y : as in `fit`
        The data; y has an entry for every row, also for `Precomputed`.
    lams : array (l,)
        Values of λ, all greater than 0, in any order.
    kernel : as in `fit`
        The kernel.
    form : "auto", "kernel" or "features"
        Eigenvectors of the kernel matrix, or of the second moments of the features of a kernel that has an exact
        feature map; "auto" takes what is cheaper.
    sample_weight, intercept : as in `fit`
        The rest of the problem.
    {n_threads, callback, progress}

    Returns
    -------
    RidgePath
        Coefficients, leave-one-out errors, degrees of freedom. `ridge.at` makes a fit of one of them.

    References
    ----------
    Golub, G. H., Heath, M. and Wahba, G. (1979). "Generalized cross-validation as a method for choosing a good ridge
    parameter". Technometrics 21(2). Leave-one-out errors from one decomposition.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, ridge
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> found = ridge.path(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=60), np.logspace(-8, 1, 10), kernels.RBF(1.0))
    >>> round(float(found.lams[found.best]), 6)
    0.001
    >>> bool((np.diff(found.dof) < 0).all())
    True
    """
    check.one_of(form, "form", "auto", "kernel", "features")
    grid = _lams(lams)
    problem = read(
        X, y, float(grid.max()), kernel, sample_weight=sample_weight, intercept=intercept, n_threads=n_threads,
        callback=callback,
    )  # fmt: skip
    require_strength(float(grid.min()), problem.total)
    n = len(problem.kept)
    if n < 1 + problem.intercept or (problem.given and problem.n < problem.m):
        if n >= 1 + problem.intercept:
            raise ValueError(f"y has {problem.n} entries but X has {problem.m} rows")
        raise ValueError("with an intercept, leaving one out takes two points of positive weight")
    if form == "features" and is_callable(problem.kernel):
        raise ValueError('form "features" needs a kernel with an exact feature map, got a callable')
    chosen = cheapest(problem) if form == "auto" else form
    check.fits_memory((len(grid), 3 * len(problem.y), problem.n), np.float64, "the coefficients of the path")
    problem = require_semidefinite(problem)
    with np.errstate(over="ignore"):
        solved = (_from_features if chosen == "features" else _from_kernel)(problem, grid)
    return _result(problem, grid, chosen, *solved)


def _lams(lams: Any) -> np.ndarray:
    grid = np.atleast_1d(np.asarray(lams))
    if grid.ndim != 1 or grid.dtype.kind not in "fiu":
        raise ValueError(f"lams must be a one-dimensional array of numbers, got shape {grid.shape}, dtype {grid.dtype}")
    if not len(grid):
        raise ValueError("lams is empty")
    return np.array([strength(float(lam), f"lams[{i}]") for i, lam in enumerate(grid)])


Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


def _by_rows(work: Callable[[slice], None], problem: Problem, rows: slice, n_columns: int, n_lams: int) -> None:
    """work(some rows) for all of them, in threads where that many products per row and λ pay for it."""

    def quiet(some: slice) -> None:
        with np.errstate(over="ignore"):  # which other threads do not inherit
            work(some)

    nanoseconds = (rows.stop - rows.start) * n_columns * n_lams / 20.0
    threads = parallel.enough_threads(problem.threads, nanoseconds, of_python=True)
    tasks = ((slice(start, min(start + _ROWS, rows.stop)),) for start in range(rows.start, rows.stop, _ROWS))
    done = rows.start
    for _ in parallel.in_threads(quiet, tasks, threads):
        done = min(done + _ROWS, rows.stop)
        if problem.tick is not None:
            problem.tick(done, len(problem.kept))


def _from_kernel(problem: Problem, lams: np.ndarray) -> Parts:
    """α (l, t, n), leave-one-out residuals, residuals, degrees of freedom, constants, and no weights."""
    root = np.sqrt(problem.weight)
    k = problem.gram()
    k *= root
    k *= root[:, None]
    if len(k) >= max(_LARGE, _SHARE * len(lams)):
        solved = _from_band(problem, lams, k)
        if solved is not None:
            return solved
        k = problem.gram() * root * root[:, None]  # the band has overwritten it
    values, vectors = eigh(k)
    del k
    values = np.where(values > len(values) * np.finfo(np.float64).eps * values[-1], values, 0.0)  # rounding has no λ
    strengths = lams * problem.total
    g = 1.0 / (values + strengths[:, None])
    with parallel.blas_threads(1):
        y = (problem.y * root) @ vectors  # (t, n)
        e = root @ vectors
        rotated = (g[:, None, :] * y).reshape(-1, len(root))  # all λ and targets in one product
        alphas = np.empty((len(lams), *y.shape))
        inverse, ones = np.empty((len(lams), len(root))), np.zeros((len(lams), len(root)))  # Mᵢᵢ, A⁻¹1

        def fill(rows: slice) -> None:
            alphas[:, :, rows] = ((rotated @ vectors[rows].T) * root[rows]).reshape(len(lams), len(y), -1)
            inverse[:, rows] = (g @ np.square(vectors[rows]).T) * problem.weight[rows]
            if problem.intercept:
                ones[:, rows] = ((g * e) @ vectors[rows].T) * root[rows]

        _by_rows(fill, problem, slice(0, len(root)), len(root), len(lams))
    constants = np.zeros((len(lams), len(y)))
    if problem.intercept:
        sums = (g * e * e).sum(axis=1)
        constants = np.einsum("lk,tk->lt", g * e, y) / sums[:, None]
        alphas -= constants[:, :, None] * ones[:, None, :]
        inverse -= ones**2 / sums[:, None]
    noise = strengths[:, None] / problem.weight
    dof = len(root) - (noise * inverse).sum(axis=1)
    return alphas, alphas / inverse[:, None, :], noise[:, None, :] * alphas, dof, constants, None


def _from_band(problem: Problem, lams: np.ndarray, k: np.ndarray) -> Parts | None:
    """Return the same from K = QBQᵀ with a banded B, which overwrites K; None if λ is so small, or K so far from
    positive semi-definite, that eigenvalues are required."""
    root, strengths, n = np.sqrt(problem.weight), lams * problem.total, len(k)
    rounding = n * np.finfo(np.float64).eps * float(np.trace(k))  # at least what the largest eigenvalue leaves
    if strengths.min() < _CLEAR * rounding:
        return None
    with parallel.blas_threads(1):
        band = Band(k, problem.threads, problem.tick)
        factors = band.factor(strengths) if band.is_definite(rounding) else None
        if factors is None:
            return None
        targets = problem.y * root
        right = band.vectors @ np.vstack([targets, root]).T  # (n, t + 1)
        forward = band.forward(factors, right)
        solved = band.backward(factors, forward)
        columns = np.ascontiguousarray(solved.transpose(0, 2, 1)).reshape(-1, n) @ band.vectors * root
        columns = columns.reshape(len(lams), len(targets) + 1, n)
        inverse = band.squared_lengths(factors, problem.tick) * problem.weight
    alphas, ones = columns[:, :-1].copy(), columns[:, -1]
    constants = np.zeros((len(lams), len(targets)))
    if problem.intercept:
        sums = np.square(forward[:, :, -1]).sum(axis=1)
        constants = np.einsum("ln,lnt->lt", forward[:, :, -1], forward[:, :, :-1]) / sums[:, None]
        alphas -= constants[:, :, None] * ones[:, None, :]
        inverse -= ones**2 / sums[:, None]
    noise = strengths[:, None] / problem.weight
    dof = n - (noise * inverse).sum(axis=1)
    return alphas, alphas / inverse[:, None, :], noise[:, None, :] * alphas, dof, constants, None


def _from_features(problem: Problem, lams: np.ndarray) -> Parts:
    """The same from the eigenvectors of ΨᵀWΨ, and weights (l, t, q)."""
    with parallel.blas_threads(1):
        psi = Features(problem)
        means = problem.means(problem.y)
        y = problem.y - means[:, None]
        second, first = psi.moments(y)
    values, vectors = eigh(second)
    values = np.maximum(values, 0.0)
    strengths = lams * problem.total
    g = 1.0 / (values + strengths[:, None])
    with parallel.blas_threads(1):
        weights = np.einsum("lk,tk->ltk", g, first @ vectors) @ vectors.T
        errors = np.empty((len(lams), *y.shape))
        left = np.empty((len(lams), y.shape[1]))  # 1 - Hᵢᵢ
        share = problem.weight / problem.total if problem.intercept else np.zeros(y.shape[1])
        for all_rows, block in psi.blocks():

            def fill(rows: slice, first: int = all_rows.start, block: np.ndarray = block) -> None:
                part, weight = block[rows.start - first : rows.stop - first], problem.weight[rows]
                errors[:, :, rows] = y[:, rows] - weights @ part.T
                squares = np.square(part @ vectors)
                # The least that it can be, by the length of ψ: a difference of two numbers near 1 may lose it.
                least = strengths[:, None] / (strengths[:, None] + weight * squares.sum(axis=1)) * (1 - share[rows])
                left[:, rows] = np.maximum(1.0 - (g @ squares.T) * weight - share[rows], least * 0.5)

            _by_rows(fill, problem, all_rows, psi.q, psi.q + len(lams))
    dof = (values * g).sum(axis=1) + problem.intercept
    alphas = errors * problem.weight / strengths[:, None, None]
    constants = means - weights @ psi.mean
    return alphas, errors / left[:, None, :], errors, dof, constants, weights


def _result(
    problem: Problem, lams: np.ndarray, form: str, alphas: np.ndarray, left_out: np.ndarray, errors: np.ndarray,
    dof: np.ndarray, constants: np.ndarray, weights: np.ndarray | None,
) -> RidgePath:  # fmt: skip
    """In the user's shapes; points of weight 0 have no coefficient and no residual of their own."""

    def shaped(rows: np.ndarray) -> np.ndarray:
        return rows[:, 0] if problem.flat else np.ascontiguousarray(np.swapaxes(rows, 1, 2))

    def everywhere(rows: np.ndarray, fill: float) -> np.ndarray:
        full = np.full((*rows.shape[:2], problem.n), fill)
        full[:, :, problem.kept] = rows
        return shaped(full)

    y = np.zeros((len(problem.y), problem.n))
    y[:, problem.kept] = problem.y
    fitted = np.zeros((len(lams), *y.shape))
    fitted[:, :, problem.kept] = problem.y - errors
    others = problem.others
    if len(others):
        for i in range(len(lams)):
            fitted[i][:, others] = problem.cross(others, alphas[i]).T + constants[i][:, None]
    loo = (problem.weight * left_out**2).sum(axis=(1, 2)) / problem.total
    weight = np.zeros(problem.n)
    weight[problem.kept] = problem.weight
    return RidgePath(
        lams=lams,
        loo_errors=loo,
        loo_residuals=everywhere(left_out, np.nan),
        dof=dof,
        best=int(loo.argmin()),
        alphas=everywhere(alphas, 0.0),
        weights=None if weights is None else shaped(weights),
        intercepts=constants[:, 0] if problem.flat else constants,
        fitted=shaped(fitted),
        form=form,
        kernel=problem.kernel,
        X=plain(problem.data).copy(),  # the user may overwrite what was given
        y=problem.shaped(y),
        sample_weight=weight,
        has_intercept=problem.intercept,
    )


@parallel.reports("ridge")
def at(
    path: RidgePath,
    i: int | None = None,
    *,
    tol: float = 1e-8,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> RidgeFit:
    """The fit of one λ of a path, with its certificate.

    Parameters
    ----------
    path : RidgePath
        What `ridge.path` returned.
    i : int, optional
        Which of `path.lams`; by default the best, `path.best`.
    tol : float
        The relative gap up to which it counts as converged.
    {n_threads, callback, progress}

    Returns
    -------
    RidgeFit
        As `ridge.fit` would give it for this λ.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, ridge
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> found = ridge.path(X, np.sin(X[:, 0]), [0.1, 0.01], kernels.RBF(1.0))
    >>> ridge.at(found).lam, ridge.at(found, 0).certificate.converged
    (0.01, True)
    """
    if not isinstance(path, RidgePath):
        raise TypeError(f"path must be what ridge.path returned, got {type(path).__name__}")
    n_lams = len(path.lams)
    place = path.best if i is None else check.whole(i, "i", -n_lams)
    if place >= n_lams:
        raise ValueError(f"i must be less than {n_lams}, the number of lams, got {i}")
    problem = read(
        path.X, path.y, path.lams[place], path.kernel, sample_weight=path.sample_weight,
        intercept=path.has_intercept, n_threads=n_threads, callback=callback,
    )  # fmt: skip
    tol = check.positive(tol, "tol")
    if path.weights is not None:
        weights = np.atleast_2d(path.weights[place].T)
        solved = feature_solution(problem, weights, tol)
    else:
        alpha = np.ascontiguousarray(np.atleast_2d(path.alphas[place].T)[:, problem.kept])
        values = problem.product(alpha)
        solved = from_worth(problem, alpha, values, worth(problem, alpha, values), 0, tol)
    return build(problem, solved, path.form, "exact")
