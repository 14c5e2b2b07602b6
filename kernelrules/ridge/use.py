"""Predictions of a fit: `predict`, and as a Gaussian process `posterior` and `log_marginal_likelihood`.

The minimiser is the mean of a Gaussian process with covariance k whose observations have noise sᵢ = λW/wᵢ. With
A = K + diag s = LLᵀ the variance at x is

    k(x, x) - |L⁻¹k_x|²        and with a constant of unknown size   + (1 - 1ᵀA⁻¹k_x)² / 1ᵀA⁻¹1 ;

in the features' form  λW ψᵀ(ΨᵀWΨ + λW I)⁻¹ψ  with centred ψ, and + λ for the constant.

References
----------
Rasmussen, C. E. and Williams, C. K. I. (2006). "Gaussian Processes for Machine Learning", chapter 2. MIT Press.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import ask, callable_matrix, is_callable, plain, product, require_finite_values, take
from kernelrules.results import FeatureRidge, Posterior, RidgeFit
from kernelrules.ridge.blocks import mapped_values
from kernelrules.ridge.definite import factor_definite
from kernelrules.ridge.factor import factor, solve, solve_lower
from kernelrules.ridge.features import Features
from kernelrules.ridge.problem import Problem

__all__ = ["log_marginal_likelihood", "posterior", "predict", "problem_of"]

_BLOCK_NUMBERS = 1 << 23  # kernel values made at a time
_CALLABLE_ROWS = 256
_TRUSTED = 1e-3  # relative residual up to which a float32 factor is used: variances are then off by 2e-5 at most
_TRIED = 64  # rows of the residual that are computed


def _require_fit(fit: Any) -> RidgeFit:
    if not isinstance(fit, RidgeFit):
        raise TypeError(f"fit must be what ridge.fit returned, got {type(fit).__name__}")
    return fit


def _points(fit: RidgeFit, X: Any) -> Any:
    x = check.matrix(X)
    if x.shape[1] != fit.n_features:
        raise ValueError(f"X has {x.shape[1]} columns but the fit has {fit.n_features}")
    return x


def problem_of(fit: RidgeFit, n_threads: int | None, callback: Any = None, what: str = "ridge") -> Problem:
    """The problem that a fit solved, without its unlabelled points."""
    data = check.matrix(fit.X)
    kept = np.flatnonzero(fit.sample_weight)
    flat = fit.y.ndim == 1
    y = np.atleast_2d(fit.y.T)[:, kept]
    return Problem(
        data, data.astype(np.float64), fit.kernel, fit.lam, np.ascontiguousarray(y), fit.sample_weight[kept], kept,
        len(fit.y), data.shape[0], flat, fit.has_intercept, parallel.n_threads_or_default(n_threads),
        parallel.ticker(callback, what),
    )  # fmt: skip


@parallel.reports("predict")
def predict(
    fit: RidgeFit | FeatureRidge,
    X: Any,
    *,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> np.ndarray:
    """Values f(x) = Σ αᵢ k(xᵢ, x) + intercept, in float64.

    Parameters
    ----------
    fit : RidgeFit or FeatureRidge
        What `ridge.fit` or `ridge.fit_blocks` returned.
    X : array, sparse matrix or data frame, (k, p)
        Points; for `Precomputed` their kernel values against all points of the matrix that was given.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (k,), or (k, t) for several targets
        One value for each row, and target.

    Examples
    --------
    >>> from kernelrules import kernels, ridge
    >>> found = ridge.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0], 1e-9, kernels.Linear(), intercept=True)
    >>> ridge.predict(found, [[10.0]]).round(4)
    array([21.])
    """
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "predict")
    if isinstance(fit, FeatureRidge):
        return mapped_values(fit, check.matrix(X), threads, tick)
    x = _points(_require_fit(fit), X)
    return _values(fit, x.astype(np.float64), threads, tick)


def _values(fit: RidgeFit, x: Any, threads: int, tick: Any = None) -> np.ndarray:
    alpha = np.atleast_2d(fit.alpha.T)
    with parallel.blas_threads(1):
        if fit.weights is not None:
            phi = kernels.feature_map(fit.kernel, fit.n_features)
            weights = fit.weights if fit.weights.ndim == 2 else fit.weights[:, None]
            values = np.empty((x.shape[0], weights.shape[1]))
            step = max(64, _BLOCK_NUMBERS // phi.n_components)
            for start in range(0, x.shape[0], step):
                rows = np.arange(start, min(start + step, x.shape[0]))
                psi = phi.transform(plain(take(x, rows)), n_threads=threads)
                with np.errstate(over="ignore", invalid="ignore"):
                    values[rows] = psi @ weights
                if tick is not None:
                    tick(int(rows[-1]) + 1, x.shape[0])
        elif isinstance(fit.kernel, kernels.Precomputed):
            with np.errstate(over="ignore", invalid="ignore"):
                values = np.asarray(plain(x)[:, : alpha.shape[1]] @ alpha.T)
            if not np.isfinite(values).all():
                raise ValueError("X holds kernel values so large that predictions do not fit float64")
        else:
            kept = np.flatnonzero(fit.sample_weight)
            z = take(check.matrix(fit.X, dtype=np.float64), kept)
            values = product(x, z, fit.kernel, np.ascontiguousarray(alpha[:, kept]), threads, tick)
    values = require_finite_values(values + np.atleast_1d(fit.intercept))
    return values[:, 0] if fit.alpha.ndim == 1 else values


# ---- Gaussian process -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Process:
    """The factor of A over `z`, or for `features` of the second moments; ones = L⁻¹1 and its square."""

    fit: RidgeFit
    problem: Problem
    lower: np.ndarray
    log_determinant: float
    z: Any = None
    features: Features | None = None
    ones: np.ndarray | None = None
    ones_square: float = 0.0

    def likelihood(self) -> float:
        """log p(y), summed over targets."""
        problem, fit = self.problem, self.fit
        alpha = np.atleast_2d(fit.alpha.T)[:, problem.kept]
        n, t = len(problem.kept), len(problem.y)
        free = n - problem.intercept
        constant = self.log_determinant + (math.log(self.ones_square) if problem.intercept else 0.0)
        return -0.5 * (float((alpha * problem.y).sum()) + t * (constant + free * math.log(2 * math.pi)))


def _process(fit: RidgeFit, problem: Problem, single: bool = False) -> _Process:
    if fit.weights is not None:
        return _feature_process(fit, problem)
    z = None if problem.given else problem.labelled()
    lower = fit.factor
    if single and (lower is None or lower.dtype == np.float32):
        lower = _single_factor(fit, problem)
    if lower is None or (lower.dtype == np.float32 and not single):
        lower = problem.gram()
        factor_definite(lower, problem.noise, problem, "the kernel matrix")
    ones = solve_lower(lower, np.ones((1, len(lower)), dtype=lower.dtype), problem.threads)[0].astype(np.float64)
    logs = 2 * float(np.log(np.diagonal(lower).astype(np.float64)).sum())
    return _Process(fit, problem, lower, logs, z, None, ones, float((ones**2).sum()))


def _feature_process(fit: RidgeFit, problem: Problem) -> _Process:
    strength = problem.lam * problem.total
    with parallel.blas_threads(1):
        psi = Features(problem)
        a, _ = psi.moments(problem.y)
    factor_definite(a, np.full(psi.q, strength), problem, "the features' matrix")
    logs = 2 * float(np.log(np.diagonal(a)).sum()) - psi.q * math.log(strength) + float(np.log(problem.noise).sum())
    return _Process(fit, problem, a, logs, None, psi, None, 1.0 / problem.lam)


def _single_factor(fit: RidgeFit, problem: Problem) -> np.ndarray | None:
    """Return the factor in float32 if it solves A v = random signs: the residual in float64 measures its rounding
    errors times A⁻¹, whatever the targets are, and some of its rows are enough."""
    lower = fit.factor
    if lower is None:
        lower = kernels.gram(take(problem.data, problem.kept), kernel=fit.kernel, n_threads=problem.threads)
        diagonal = np.einsum("ii->i", lower)
        with np.errstate(over="ignore"):
            diagonal += problem.noise.astype(np.float32)
        if not np.isfinite(diagonal).all() or factor(lower, problem.threads) >= 0:
            return None
    n, z = len(lower), problem.labelled()
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=n)
    found = solve(lower, signs[None, :].astype(np.float32), problem.threads).astype(np.float64)
    some = np.arange(min(n, _TRIED)) * n // min(n, _TRIED)
    with parallel.blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
        values = product(take(z, some), z, fit.kernel, found, problem.threads)[:, 0]
        left = signs[some] - values - problem.noise[some] * found[0, some]
    return lower if np.linalg.norm(left) <= _TRUSTED * math.sqrt(len(some)) else None


@parallel.reports("posterior")
def posterior(
    fit: RidgeFit,
    X: Any,
    *,
    diagonal: Any = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> Posterior:
    """Mean and variance of the Gaussian process that the fit is the mean of.

    The prior covariance is the kernel, the noise of an observation of weight w is λW/w (λn where there are no weights),
    and an intercept has a flat prior. It takes the factor of an (n, n) matrix, which the fit has if it was asked to
    keep it, and n² operations a point. Where X, the fit's own data and the kernel (RBF or Laplacian) allow it, data in
    float32 are computed with in float32, with variances good to about 1e-4 of k(x, x) and the log marginal likelihood
    to some hundredths a target; `log_marginal_likelihood` is always computed in float64.

    Parameters
    ----------
    fit : RidgeFit
        What `ridge.fit` returned.
    X : array, sparse matrix or data frame, (k, p)
        Points, as in `predict`.
    diagonal : array (k,), optional
        k(x, x) of the points: needed for `Precomputed`, which cannot know it.
    {n_threads, callback, progress}

    Returns
    -------
    Posterior
        Mean, variance, noise and log marginal likelihood.

    References
    ----------
    Rasmussen, C. E. and Williams, C. K. I. (2006). "Gaussian Processes for Machine Learning". MIT Press.

    Examples
    --------
    >>> from kernelrules import kernels, ridge
    >>> found = ridge.fit([[0.0], [1.0]], [0.0, 1.0], 0.05, kernels.RBF(1.0))
    >>> result = ridge.posterior(found, [[0.0], [9.0]])
    >>> result.variance.round(3)
    array([0.09, 1.  ])
    """
    x = _points(_require_fit(fit), X)
    own = _own_variances(fit, x, diagonal)
    problem = problem_of(fit, n_threads, callback, "posterior")
    bounded = isinstance(fit.kernel, (kernels.RBF, kernels.Laplacian))
    single = bounded and isinstance(x, np.ndarray) and x.dtype == problem.data.dtype == np.float32
    process = _process(fit, problem, single and isinstance(problem.data, np.ndarray))
    x = x.astype(np.float64)
    mean = np.empty((x.shape[0], len(problem.y)))
    variance = np.empty(x.shape[0])
    width = process.lower.shape[0]
    step = max(1, min(x.shape[0], _BLOCK_NUMBERS // max(width, 1)))
    for start in range(0, x.shape[0], step):
        rows = np.arange(start, min(start + step, x.shape[0]))
        values = _block(process, take(x, rows), own[rows])
        mean[rows], variance[rows] = values
        if problem.tick is not None:
            problem.tick(int(rows[-1]) + 1, x.shape[0])
    return Posterior(
        require_finite_values(mean[:, 0] if problem.flat else mean),
        np.maximum(require_finite_values(variance), 0.0, out=variance),
        problem.lam * problem.total,
        process.likelihood(),
    )


def _block(process: _Process, x: Any, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (b, t) and variances (b,) of some points."""
    fit, problem = process.fit, process.problem
    if process.features is not None:
        psi = np.subtract(process.features.map.transform(plain(x), n_threads=problem.threads), process.features.mean)
        mean = np.atleast_2d(_values(fit, x, problem.threads).T).T
        solved = solve_lower(process.lower, psi, problem.threads)
        squares = np.einsum("ij,ij->i", solved, solved) * problem.lam * problem.total
        return mean, squares + (problem.lam if problem.intercept else 0.0)
    k = _cross_values(process, x)
    alpha = np.atleast_2d(fit.alpha.T)[:, problem.kept]
    with parallel.blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
        mean = k @ alpha.T + np.atleast_1d(fit.intercept)
    solved = solve_lower(process.lower, k.astype(process.lower.dtype, copy=False), problem.threads)
    variance = own - np.einsum("ij,ij->i", solved, solved, dtype=np.float64)
    if problem.intercept:
        variance += (1.0 - np.einsum("ij,j->i", solved, process.ones)) ** 2 / process.ones_square
    return mean, variance


def _cross_values(process: _Process, x: Any) -> np.ndarray:
    """k(x, z), C-ordered, to be overwritten."""
    fit, problem = process.fit, process.problem
    if problem.given:
        chosen = plain(x)[:, problem.kept]
        return np.array(chosen if isinstance(chosen, np.ndarray) else chosen.toarray(), dtype=np.float64, order="C")
    if is_callable(fit.kernel):
        return callable_matrix(fit.kernel, x, process.z, np.empty((x.shape[0], process.z.shape[0])))
    return kernels.gram(plain(x), plain(process.z), fit.kernel, n_threads=problem.threads)


def _own_variances(fit: RidgeFit, x: Any, diagonal: Any) -> np.ndarray:
    """k(x, x) of every point, in float64."""
    if isinstance(fit.kernel, kernels.Precomputed):
        if diagonal is None:
            raise ValueError("diagonal, k(x, x) of every point, is needed for a precomputed kernel")
        return check.targets(diagonal, x.shape[0], "diagonal")
    if diagonal is not None:
        raise ValueError("diagonal is for Precomputed() only: this kernel is known")
    if is_callable(fit.kernel):
        parts = [np.empty(0)]
        for start in range(0, x.shape[0], _CALLABLE_ROWS):
            block = take(x, np.arange(start, min(start + _CALLABLE_ROWS, x.shape[0])))
            parts.append(np.diagonal(ask(fit.kernel, block, block)))
        return np.concatenate(parts)
    return kernels.diagonal(plain(x.astype(np.float64)), fit.kernel)


@parallel.reports("likelihood")
def log_marginal_likelihood(
    fit: RidgeFit, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> float:
    """The log probability of the targets under the Gaussian process, to choose λ and kernels by.

    -½ (yᵀα + log det A + n log 2π) with A = K + diag(λW/w), summed over targets. With an intercept it is the restricted
    likelihood, -½ (yᵀα + log det A + log 1ᵀA⁻¹1 + (n - 1) log 2π).

    Parameters
    ----------
    fit : RidgeFit
        What `ridge.fit` returned.
    {n_threads, callback, progress}

    Returns
    -------
    float
        Larger is better.

    References
    ----------
    Rasmussen, C. E. and Williams, C. K. I. (2006). "Gaussian Processes for Machine Learning". MIT Press.

    Examples
    --------
    >>> from kernelrules import kernels, ridge
    >>> found = ridge.fit([[0.0], [1.0]], [0.0, 1.0], 0.5, kernels.RBF(1.0))
    >>> round(ridge.log_marginal_likelihood(found), 4)
    -2.7726
    """
    problem = problem_of(_require_fit(fit), n_threads, callback, "likelihood")
    return _process(fit, problem).likelihood()
