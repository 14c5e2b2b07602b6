"""Probabilities from decision values.

Each machine's values are mapped by a sigmoid (Platt 1999, with the corrected Newton method of Lin, Lin and Weng 2007)
or a non-decreasing step function (isotonic regression). With more than two classes one-vs-rest probabilities are
normalised, and pairwise probabilities coupled (Wu, Lin and Weng 2004, second method).

The maps are fitted to points that the model has not seen: decision values of its own training points are too large.
The most probable class need not be that of `predict`: a sigmoid may pass ½ away from f = 0, and pairwise probabilities
need not agree with votes.

References
----------
- J. C. Platt (1999). Probabilistic outputs for support vector machines and comparisons to regularized likelihood
  methods. In Advances in Large Margin Classifiers, MIT Press, 61-74.
- H.-T. Lin, C.-J. Lin and R. C. Weng (2007). A note on Platt's probabilistic outputs for support vector machines.
  Machine Learning 68, 267-276.
- T.-F. Wu, C.-J. Lin and R. C. Weng (2004). Probability estimates for multi-class classification by pairwise coupling.
  Journal of Machine Learning Research 5, 975-1005.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.results import CalibratedSVM, SVMModel
from kernelrules.svm.prediction import all_decisions, require_model, sides_of

__all__ = ["calibrate", "predict_proba"]

_MAX_NEWTON_STEPS = 100


@parallel.reports("calibrate")
def calibrate(
    model: SVMModel,
    X: Any,
    y: Any,
    *,
    method: str = "platt",
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> CalibratedSVM:
    """Fit maps from decision values to probabilities, on held-out points.

    Parameters
    ----------
    model : SVMModel
        A classifier.
    X : array, sparse matrix or data frame, (n, p)
        Points that the model was not fitted to.
    y : array (n,)
        Their labels; every class must occur.
    method : {"platt", "isotonic"}
        A sigmoid [1]_ [2]_, or a non-decreasing step function, which requires more points.
    {n_threads, callback, progress}

    Returns
    -------
    CalibratedSVM
        For `predict_proba`.

    References
    ----------
    .. [1] J. C. Platt (1999). Probabilistic outputs for support vector machines and comparisons to regularized
       likelihood methods. In Advances in Large Margin Classifiers, MIT Press, 61-74.
    .. [2] H.-T. Lin, C.-J. Lin and R. C. Weng (2007). A note on Platt's probabilistic outputs for support vector
       machines. Machine Learning 68, 267-276.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, svm
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> y = X[:, 0] + np.random.default_rng(1).normal(size=200) > 0
    >>> model = svm.svc(X[:100], y[:100], kernel=kernels.Linear())
    >>> calibrated = svm.calibrate(model, X[100:], y[100:])
    >>> svm.predict_proba(calibrated, [[-3.0], [3.0]]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """
    if require_model(model).classes is None:
        raise ValueError(f"probabilities require classes, and the model is of kind {model.kind}")
    check.one_of(method, "method", "platt", "isotonic")
    values = all_decisions(model, X, n_threads, callback)
    codes = check.known_codes(y, len(values), model.classes)
    counts = np.bincount(codes, minlength=len(model.classes))
    if (counts == 0).any():
        raise ValueError(
            f"y holds no row of class {check.shown(model.classes[np.argmin(counts)])}: each is needed to calibrate"
        )
    fit = _fit_sigmoid if method == "platt" else _fit_isotonic
    maps = []
    with parallel.blas_threads(1):  # the same bits for any number of threads, and no idle threads that spin
        for column, (positive, others) in enumerate(sides_of(model)):
            used = (codes == positive) | np.isin(codes, others)
            maps.append(fit(values[used, column], codes[used] == positive))
    return CalibratedSVM(model, method, tuple(maps))


@parallel.reports("predict_proba")
def predict_proba(
    calibrated: CalibratedSVM, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Return probabilities of the classes.

    With more than two classes and one-vs-one machines, pairwise probabilities are coupled [1]_. The most probable class
    need not be the one that `predict` returns.

    Parameters
    ----------
    calibrated : CalibratedSVM
        From `calibrate`.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n, n_classes)
        Rows add up to 1; columns are in the order of model.classes.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin and R. C. Weng (2004). Probability estimates for multi-class classification by pairwise
       coupling. Journal of Machine Learning Research 5, 975-1005.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, svm
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = svm.svc(X, y, kernel=kernels.Linear())
    >>> svm.predict_proba(svm.calibrate(model, X, y), X).sum(axis=1)
    array([1., 1., 1., 1.])
    """
    if not isinstance(calibrated, CalibratedSVM):
        raise TypeError(f"calibrated must come from calibrate(), got {type(calibrated).__name__}")
    model = calibrated.model
    values = all_decisions(model, X, n_threads, callback)
    columns = [_probability(calibrated.method, m, values[:, i]) for i, m in enumerate(calibrated.maps)]
    probabilities = np.column_stack(columns)
    if len(model.classes) == 2:
        return np.column_stack([1.0 - probabilities[:, 0], probabilities[:, 0]])
    if model.multiclass == "ovr":
        total = probabilities.sum(axis=1, keepdims=True)
        even = np.full_like(probabilities, 1.0 / len(model.classes))
        return np.where(total > 0, probabilities / np.where(total > 0, total, 1.0), even)
    return _couple(probabilities, len(model.classes))


def _probability(method: str, mapping: tuple[Any, Any], values: np.ndarray) -> np.ndarray:
    if method == "isotonic":
        return np.interp(values, mapping[0], mapping[1])
    slope, offset = mapping
    z = slope * values + offset
    return np.where(z >= 0, np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))), 1 / (1 + np.exp(-np.abs(z))))


def _fit_sigmoid(values: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Return A and B of the most likely 1 / (1 + exp(A f + B)), by Newton's method with halved steps.

    The targets are those of a uniform prior, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), so the optimum is finite even if the
    values separate the classes.
    """
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    scale = float(np.abs(values).max()) or 1.0
    f = values / scale

    def loss(slope: float, offset: float) -> float:
        z = slope * f + offset
        return float((np.logaddexp(0.0, -z) + target * z).sum())

    slope, offset = 0.0, math.log((n_negative + 1.0) / (n_positive + 1.0))
    current = loss(slope, offset)
    for _ in range(_MAX_NEWTON_STEPS):
        p = _probability("platt", (slope, offset), f)
        residual, curve = target - p, np.maximum(p * (1.0 - p), 1e-12)
        gradient = np.array([residual @ f, residual.sum()])
        if np.abs(gradient).max() < 1e-10 * len(f):
            break
        off = curve @ f
        hessian = np.array([[curve @ (f * f) + 1e-12, off], [off, curve.sum() + 1e-12]])
        step = -np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-10 and loss(slope + size * step[0], offset + size * step[1]) > current:
            size /= 2
        if size <= 1e-10:
            break
        slope, offset = slope + size * step[0], offset + size * step[1]
        current = loss(slope, offset)
    return slope / scale, offset


def _fit_isotonic(values: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots of the non-decreasing least-squares fit to the labels; equal values share one knot."""
    from scipy.optimize import isotonic_regression  # imported here: half of the package's import time otherwise

    knots, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    share = np.bincount(place, weights=positive) / counts
    return knots, np.clip(isotonic_regression(share, weights=counts).x, 0.0, 1.0)


def _couple(pairwise: np.ndarray, k: int) -> np.ndarray:
    """Return the distribution p that minimises Σ_{i,j} (r_ji p_i - r_ij p_j)², for pairwise probabilities r.

    One linear system per point (Wu, Lin and Weng 2004); values below zero, by rounding, are set to zero.
    """
    n = len(pairwise)
    r = np.zeros((n, k, k))
    for column, (i, j) in enumerate(combinations(range(k), 2)):
        r[:, i, j] = np.clip(pairwise[:, column], 1e-7, 1 - 1e-7)
        r[:, j, i] = 1.0 - r[:, i, j]
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = -r.transpose(0, 2, 1) * r
    diagonal = np.arange(k)
    system[:, diagonal, diagonal] = (r**2).sum(axis=1)
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :k, 0], 0.0, None)
    return p / p.sum(axis=1, keepdims=True)
