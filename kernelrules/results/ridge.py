"""What kernel ridge regression returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelrules.results.certificate import Certificate

__all__ = ["Posterior", "RidgeFit", "RidgePath"]


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A ridge regression, in whichever representation it was solved.

    Predictions are k(x, X)·alpha + intercept; where there are `weights`, also Φ(x)·weights + intercept. With targets
    y of two dimensions (n, t), everything that is said to have n entries here has t columns.

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
        f at every point: the labelled ones first, then the unlabelled.
    alpha : ndarray (n,)
        Coefficients of the labelled points; 0 where the sample weight is.
    weights : ndarray (q,) or None
        Of the features of `kernels.feature_map`, in form "features".
    intercept : float or ndarray (t,)
        The constant; 0 where none was asked for.
    certificate : Certificate
        Of the sum over targets. kkt is the largest absolute residual of the equations that were solved: of
        y - f = λWα/w for the kernel's forms, of weights = Φᵀα for "features". converged: the gap of every target is at
        most tol times its primal objective, or its residual is rounding error.
    X : ndarray or csr_array
        The labelled points; for `Precomputed` the kernel matrix that was given.
    y : ndarray (n,)
        The targets; 0 where the sample weight is.
    sample_weight : ndarray (n,)
        The weights of the labelled points.
    n_features : int
        Columns that data must have; for `Precomputed` those of the kernel matrix.
    has_intercept : bool
        Whether the constant was fitted.
    factor : ndarray or None
        With `keep_factor`: on and below the diagonal the Cholesky factor of K + λW diag(1/w), over the points of
        positive weight; of float32 data in float32, where that is near enough. What is above the diagonal is
        something else.
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


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian process at some points, given what was fitted.

    Attributes
    ----------
    mean : ndarray (k,) or (k, t)
        The predictions.
    variance : ndarray (k,)
        Of the function's value, without the noise of an observation. Never negative.
    noise : float
        λW, the variance of an observation of weight 1: `variance + noise` is that of a new observation.
    log_marginal_likelihood : float
        Of the targets, summed over them; with an intercept the restricted one.
    """

    mean: np.ndarray
    variance: np.ndarray
    noise: float
    log_marginal_likelihood: float


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Ridge regressions of one data set for many λ.

    Attributes
    ----------
    lams : ndarray (l,)
        In the order given.
    loo_errors : ndarray (l,)
        Weighted mean of the squared leave-one-out residuals (summed over targets).
    loo_residuals : ndarray (l, n) or (l, n, t)
        yᵢ - fᵢ where fᵢ was fitted without point i, at the same λW: that is, with λW/(W - wᵢ) for λ. NaN for points
        of weight 0.
    dof : ndarray (l,)
        Effective degrees of freedom, the trace of the hat matrix; with an intercept it counts.
    best : int
        Where `loo_errors` is smallest.
    alphas : ndarray (l, n) or (l, n, t)
        Coefficients of the points.
    weights : ndarray (l, q) or (l, q, t), or None
        Of the features, where form is "features".
    intercepts : ndarray (l,) or (l, t)
        Constants; 0 where none was asked for.
    fitted : ndarray (l, n) or (l, n, t)
        f at the points.
    form : str
        "kernel" (eigenvectors of the kernel matrix) or "features" (of the features' second moments).
    kernel : Kernel or callable
        With gamma as a number.
    X, y, sample_weight : ndarray
        What was fitted.
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
