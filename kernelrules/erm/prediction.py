"""Functions of a fit: `decision`, `predict`, `predict_proba`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax

from kernelrules import check, kernels, parallel
from kernelrules.erm.systems import explicit_features
from kernelrules.kernels.values import is_callable, linear_values, product, require_finite_values, take
from kernelrules.results import ErmFit

__all__ = ["decision", "predict", "predict_proba"]

_BLOCK_ENTRIES = 1 << 22  # mapped features computed at a time


def _decisions(fit: Any, X: Any, n_threads: int | None, callback: Any) -> np.ndarray:
    """Return decision values, one column per machine."""
    if not isinstance(fit, ErmFit):
        raise TypeError(f"fit must be what erm.fit returned, got {type(fit).__name__}")
    x = check.matrix(X)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "decision")
    if x.shape[1] != fit.n_features:
        raise ValueError(f"X has {x.shape[1]} columns but the model was fitted to {fit.n_features}")
    if isinstance(fit.kernel, kernels.Precomputed):
        return require_finite_values(linear_values(x, fit.alpha.T, threads, tick) + fit.intercept)
    if fit.weights is not None:
        return require_finite_values(_from_features(fit, x, threads, tick) + fit.intercept)
    z = check.matrix(fit.X)
    if not is_callable(fit.kernel) and x.dtype != z.dtype:
        x, z = x.astype(np.float64), z.astype(np.float64)
    return require_finite_values(product(x, z, fit.kernel, fit.alpha, threads, tick) + fit.intercept)


def _from_features(fit: ErmFit, x: Any, threads: int, tick: Any) -> np.ndarray:
    """Return φ(x) · weights, computed by blocks of rows."""
    if isinstance(fit.kernel, kernels.Linear):
        return linear_values(x.astype(np.float64), fit.weights.T, threads, tick)
    out = np.empty((x.shape[0], len(fit.weights)))
    step = max(64, _BLOCK_ENTRIES // fit.weights.shape[1])
    for start in range(0, x.shape[0], step):
        rows = np.arange(start, min(start + step, x.shape[0]))
        out[rows] = linear_values(explicit_features(take(x, rows), fit.kernel, threads), fit.weights.T, threads)
        if tick is not None:
            tick(int(rows[-1]) + 1, x.shape[0])
    return out


@parallel.reports("decision")
def decision(
    fit: ErmFit, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Return decision values f(x) = Σ αⱼ k(x, xⱼ) + intercept.

    Parameters
    ----------
    fit : ErmFit
        Returned by `fit`.
    X : array, sparse matrix or data frame, (n, p)
        Points; for `Precomputed` their kernel values against all training points.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray
        (n,) for two classes, positive for classes[1]; otherwise one column per class.

    Examples
    --------
    >>> from kernelrules import erm, kernels
    >>> found = erm.fit([[-1.0], [1.0]], [0, 1], 0.5, kernels.Linear(), "squared")
    >>> erm.decision(found, [[1.0], [-2.0]]).round(6)
    array([ 0.666667, -1.333333])
    """
    values = _decisions(fit, X, n_threads, callback)
    return values[:, 0] if len(fit.alpha) == 1 else values


@parallel.reports("predict")
def predict(
    fit: ErmFit, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Predict labels: with two classes f(x) ≤ 0 means classes[0]; with more, the largest decision value decides.

    Parameters
    ----------
    fit : ErmFit
        Returned by `fit`.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n,)
        One label per row.

    Examples
    --------
    >>> from kernelrules import erm, kernels
    >>> found = erm.fit([[-1.0], [1.0]], ["no", "yes"], 0.5, kernels.Linear())
    >>> erm.predict(found, [[3.0], [-2.0]])
    array(['yes', 'no'], dtype='<U3')
    """
    values = _decisions(fit, X, n_threads, callback)
    if len(fit.alpha) == 1:
        return fit.classes[(values[:, 0] > 0).astype(int)]
    return fit.classes[values.argmax(axis=1)]


@parallel.reports("predict_proba")
def predict_proba(
    fit: ErmFit, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Return probabilities of the classes under the logistic loss: 1 / (1 + exp(-f(x))).

    With more than two classes the probabilities of the one-vs-rest machines are divided by their sum.

    Parameters
    ----------
    fit : ErmFit
        Returned by `fit`, with loss="logistic".
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n, n_classes)
        In the order of fit.classes; rows add up to 1.

    Examples
    --------
    >>> from kernelrules import erm, kernels
    >>> found = erm.fit([[-1.0], [1.0]], [0, 1], 0.01, kernels.Linear())
    >>> erm.predict_proba(found, [[0.0], [1.0]]).round(3)
    array([[0.5  , 0.5  ],
           [0.056, 0.944]])
    """
    values = _decisions(fit, X, n_threads, callback)
    if fit.loss != "logistic":
        raise ValueError(f"probabilities require the logistic loss, and the loss of the fit is {fit.loss}")
    if len(fit.alpha) == 1:
        return np.column_stack([expit(-values[:, 0]), expit(values[:, 0])])
    return softmax(log_expit(values), axis=1)
