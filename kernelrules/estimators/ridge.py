"""Kernel ridge regression: `KernelRidge` over ridge.fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from kernelrules import check, ridge
from kernelrules.docstrings import shared_parameters
from kernelrules.estimators._common import KernelEstimator, called, kernel_of
from kernelrules.results import Certificate

__all__ = ["KernelRidge"]

_NAMES = {"lam": "alpha over the sum of weights", "intercept": "fit_intercept"}


@shared_parameters
class KernelRidge(RegressorMixin, KernelEstimator):
    """Kernel ridge regression: `ridge.fit` as an estimator, scikit-learn's `KernelRidge`.

    Minimises Σ wᵢ (f(xᵢ) - yᵢ)² + alpha ‖f‖². `ridge.fit` divides the sum by the weights' sum W, so its `lam` is
    alpha / W: alpha over the number of rows, where there are no weights.

    Parameters
    ----------
    alpha : float
        The price of ‖f‖², greater than 0.
    kernel : str, Kernel or callable
        As in `KernelSVC`. One that is not positive semi-definite on the data is refused, see `ridge.fit`.
    gamma : float, "scale", "auto" or None
        Of "rbf", "poly", "sigmoid" and "laplacian"; None is "auto", 1 / p, as in scikit-learn.
    degree : int
        Of "poly".
    coef0 : float
        Of "poly" and "sigmoid".
    fit_intercept : bool
        Whether f has a constant that costs nothing. scikit-learn's has none.
    solver : {"auto", "exact", "cg"}
        As in `ridge.fit`: a factorisation, or conjugate gradients where the kernel matrix would not fit into memory.
    {n_threads}

    Attributes
    ----------
    model_ : RidgeFit
        What `ridge.fit` returned; the functions of `kernelrules.ridge` take it, `posterior` for example.
    dual_coef_ : ndarray (n,) or (n, t)
        Coefficients of the training rows.
    X_fit_ : ndarray or csr_array
        The training rows; the kernel matrix for a precomputed kernel.
    intercept_ : float or ndarray (t,)
        The constant; 0 without one.
    certificate_ : Certificate
        How near to the best the fit is.
    n_features_in_, feature_names_in_ : int, ndarray
        What was fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules.estimators import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> fitted = KernelRidge(alpha=1e-4, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(fitted.predict([[2.5]])[0] - np.sin(2.5)) < 1e-3)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        fit_intercept: bool = False,
        solver: str = "auto",
        n_threads: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.n_threads = n_threads

    def _kernel(self) -> Any:
        return kernel_of(self.kernel, "auto" if self.gamma is None else self.gamma, self.degree, self.coef0)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit the coefficients.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            The data; the square kernel matrix for a precomputed kernel.
        y : array (n,) or (n, t)
            Targets.
        sample_weight : array (n,), optional
            At least 0. A weight of 2 is the same as the row twice.

        Returns
        -------
        KernelRidge
            The estimator itself.
        """
        alpha = check.positive(self.alpha, "alpha")
        X, y = self._read(X, y, multi_output=True, y_numeric=True)
        total = math.fsum(check.weights(sample_weight, X.shape[0]))
        with called(_NAMES):
            self.model_ = ridge.fit(
                X, y, alpha / total, self._kernel(), solver=self.solver, sample_weight=sample_weight,
                intercept=self.fit_intercept, n_threads=self.n_threads,
            )  # fmt: skip
        return self

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the training rows."""
        return self.model_.alpha

    @property
    def X_fit_(self) -> Any:
        """The training rows."""
        return self.model_.X

    @property
    def intercept_(self) -> Any:
        """Intercept."""
        return self.model_.intercept

    @property
    def certificate_(self) -> Certificate:
        """Certificate of the fit."""
        return self.model_.certificate

    def predict(self, X: Any) -> np.ndarray:
        """Return predicted values.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, p)
            Points; for a precomputed kernel their kernel values against all training points.

        Returns
        -------
        ndarray (n,) or (n, t)
            A value for each row and target.
        """
        X = self._read_again(X)
        return ridge.predict(self.model_, X, n_threads=self.n_threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
