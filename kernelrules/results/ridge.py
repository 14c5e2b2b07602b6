"""Results of kernel ridge regression: a fit, the fits of a path over λ, a posterior, a fit of explicit features.

f(x) = Σᵢ αᵢ k(x, xᵢ) + b, or Φ(x)·w + b
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelrules.results.certificate import Certificate
from kernelrules.results.show import Result, certificate_text, counted, evenly_spaced, number, short, table

__all__ = ["FeatureRidge", "Posterior", "RidgeFit", "RidgePath"]


@dataclass(frozen=True, eq=False, repr=False)
class RidgeFit(Result):
    """A ridge regression, in any of its four forms.

    Predictions are k(x, X)·alpha + intercept; if there are `weights`, also Φ(x)·weights + intercept. With targets y of
    two dimensions (n, t), arrays of n entries have t columns.

    Attributes
    ----------
    form : str
        "features", "kernel", "dual" or "rkhs": the equations that were solved.
    solver : str
        "exact" or "cg".
    kernel : Kernel or callable
        With gamma as a number.
    lam : float
        λ of the objective (1/W) Σ w (f - y)² + λ‖f‖².
    fitted : ndarray (m,)
        f at every point, first the labelled ones, then the unlabelled.
    alpha : ndarray (n,)
        Coefficients of the labelled points; 0 for points of weight 0.
    weights : ndarray (q,) or None
        Weights of the features of `kernels.feature_map`, in form "features".
    intercept : float or ndarray (t,)
        The constant; 0 if none was fitted.
    certificate : Certificate
        Certificate of the sum over targets. kkt is the largest absolute residual of the equations solved: of
        y - f = λWα/w for the kernel's forms, of weights = Φᵀα for "features". converged: the gap of every target is at
        most tol times its primal objective, or its residual is rounding error.
    X : ndarray or csr_array
        The labelled points; for `Precomputed` the kernel matrix that was given.
    y : ndarray (n,)
        The targets; 0 for points of weight 0.
    sample_weight : ndarray (n,)
        The weights of the labelled points.
    n_features : int
        Number of columns of the data; for `Precomputed` those of the kernel matrix.
    has_intercept : bool
        Whether the constant was fitted.
    factor : ndarray or None
        With `keep_factor`: on and below the diagonal the Cholesky factor of K + λW diag(1/w), over the points of
        positive weight; for float32 data in float32, if that is accurate enough. Entries above the diagonal have no
        meaning.
    """

    form: str
    solver: str
    kernel: Any
    lam: float
    fitted: np.ndarray
    alpha: np.ndarray
    weights: np.ndarray | None
    intercept: Any
    certificate: Certificate
    X: Any = field(repr=False)
    y: np.ndarray = field(repr=False)
    sample_weight: np.ndarray = field(repr=False)
    n_features: int
    has_intercept: bool = False
    factor: np.ndarray | None = field(default=None, repr=False)

    def _summary(self) -> list[str]:
        kernel, points = short(repr(self.kernel)), counted(len(self.alpha), "point")
        return [f"form {self.form}", f"λ = {number(self.lam)}", kernel, points, certificate_text(self.certificate)]


@dataclass(frozen=True, eq=False, repr=False)
class FeatureRidge(Result):
    """A ridge regression on features of data that came in blocks: f(x) = Φ(x)·weights + intercept.

    Attributes
    ----------
    weights : ndarray (q,) or (q, t)
        Weights of the features.
    intercept : float or ndarray (t,)
        The constant; 0 if none was fitted.
    lam : float
        λ of the objective (1/W) Σ w (f - y)² + λ‖weights‖².
    feature_map : object or None
        Φ; None for the columns themselves.
    n_features : int
        Number of columns of the data.
    n_rows : int
        Number of rows of all blocks.
    total_weight : float
        W.
    has_intercept : bool
        Whether the constant was fitted.
    certificate : Certificate
        Certificate of the sum over targets, from the moments of the data in float64. kkt is the largest absolute
        residual of weights = Φᵀα.
    """

    weights: np.ndarray
    intercept: Any
    lam: float
    feature_map: Any
    n_features: int
    n_rows: int
    total_weight: float
    has_intercept: bool
    certificate: Certificate


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """The posterior of a Gaussian process at some points, given a fit.

    Attributes
    ----------
    mean : ndarray (k,) or (k, t)
        The predictions.
    variance : ndarray (k,)
        Variance of the function, without the noise of an observation. Never negative.
    noise : float
        λW, the variance of an observation of weight 1: `variance + noise` is that of a new observation.
    log_marginal_likelihood : float
        Log marginal likelihood, summed over targets; with an intercept the restricted one. For float32 data it is
        accurate to a few hundredths per target.
    """

    mean: np.ndarray
    variance: np.ndarray
    noise: float
    log_marginal_likelihood: float

    def _summary(self) -> list[str]:
        deviation = np.sqrt(self.variance)
        parts = [counted(len(self.mean), "point"), f"noise {number(self.noise)}"]
        if deviation.size:
            parts.append(f"deviation {number(deviation.min(), 3)} to {number(deviation.max(), 3)}")
        return [*parts, f"log marginal likelihood {number(self.log_marginal_likelihood)}"]


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath(Result):
    """Ridge regressions of one data set for many λ.

    Attributes
    ----------
    lams : ndarray (l,)
        In the order given.
    loo_errors : ndarray (l,)
        Weighted mean of the squared leave-one-out residuals (summed over targets).
    loo_residuals : ndarray (l, n) or (l, n, t)
        yᵢ - fᵢ, fᵢ being fitted without point i at the same λW, that is, with λW/(W - wᵢ) for λ. NaN for points
        of weight 0.
    dof : ndarray (l,)
        Effective degrees of freedom: the trace of the hat matrix, intercept included.
    best : int
        Index of the smallest of `loo_errors`.
    alphas : ndarray (l, n) or (l, n, t)
        Coefficients of the points.
    weights : ndarray (l, q) or (l, q, t), or None
        Weights of the features, if form is "features".
    intercepts : ndarray (l,) or (l, t)
        Constants; 0 if none was fitted.
    fitted : ndarray (l, n) or (l, n, t)
        f at the points.
    form : str
        "kernel" (eigenvectors of the kernel matrix) or "features" (of the features' second moments).
    kernel : Kernel or callable
        With gamma as a number.
    X, y, sample_weight : ndarray
        The training data.
    has_intercept : bool
        Whether the constant was fitted.
    """

    lams: np.ndarray
    loo_errors: np.ndarray
    loo_residuals: np.ndarray = field(repr=False)
    dof: np.ndarray
    best: int
    alphas: np.ndarray = field(repr=False)
    weights: np.ndarray | None = field(repr=False)
    intercepts: np.ndarray = field(repr=False)
    fitted: np.ndarray = field(repr=False)
    form: str
    kernel: Any
    X: Any = field(repr=False)
    y: np.ndarray = field(repr=False)
    sample_weight: np.ndarray = field(repr=False)
    has_intercept: bool

    def _summary(self) -> list[str]:
        n, best = self.alphas.shape[1], self.best
        chosen = f"best {number(self.lams[best], 3)}: leave-one-out error {number(self.loo_errors[best])}"
        span = f"λ {number(self.lams.min(), 3)} to {number(self.lams.max(), 3)}"
        return [counted(len(self.lams), "fit"), span, counted(n, "point"), short(repr(self.kernel), 50), chosen]

    def _html_body(self) -> str:
        places = evenly_spaced(len(self.lams), self.best)
        rows = [(self.lams[k], self.loo_errors[k], self.dof[k]) for k in places]
        return table(("λ", "leave-one-out error", "degrees of freedom"), rows, bold=places.index(self.best))
