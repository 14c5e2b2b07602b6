"""Probabilities from decision values: a sigmoid (Platt) or a rising step function (isotonic regression) of each
machine's values, and for more than two classes a way to make one distribution of them.

The maps are fitted to points that the model has not seen; on its own training points decision values are too good.
Nothing forces the most probable class to be the one that `predict` names: a sigmoid may pass ½ away from f = 0, and
pairwise probabilities need not agree with votes.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.results import CalibratedSVM, SVMModel
from kernelrules.svm.use import all_decisions, require_model

__all__ = ["calibrate", "predict_proba"]

_NEWTON_STEPS = 100


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
        A sigmoid, or a rising step function, which needs more points.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress; what it raises ends the computation.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    CalibratedSVM
        For `predict_proba`.

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
        raise ValueError(f"probabilities are of classes, and the model is of kind {model.kind}")
    check.one_of(method, "method", "platt", "isotonic")
    values = all_decisions(model, X, n_threads, callback)
    codes = check.known_codes(y, len(values), model.classes)
    counts = np.bincount(codes, minlength=len(model.classes))
    if (counts == 0).any():
        raise ValueError(
            f"y holds no row of class {check.shown(model.classes[np.argmin(counts)])}: each is needed to calibrate"
        )
    fit = _sigmoid if method == "platt" else _steps
    maps = []
    for column, (positive, others) in enumerate(_sides(model)):
        used = (codes == positive) | np.isin(codes, others)
        maps.append(fit(values[used, column], codes[used] == positive))
    return CalibratedSVM(model, method, tuple(maps))


@parallel.reports("predict_proba")
def predict_proba(
    calibrated: CalibratedSVM, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Probabilities of the classes.

    The most probable class need not be the one that `predict` names.

    Parameters
    ----------
    calibrated : CalibratedSVM
        From `calibrate`.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress; what it raises ends the computation.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    ndarray (n, n_classes)
        Rows add up to 1; columns are in the order of model.classes.

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


def _sides(model: SVMModel) -> list[tuple[int, list[int]]]:
    """For each machine its positive class and the others."""
    k = len(model.classes)
    if k == 2:
        return [(1, [0])]
    if model.multiclass == "ovo":
        return [(i, [j]) for i, j in combinations(range(k), 2)]
    return [(i, [j for j in range(k) if j != i]) for i in range(k)]


def _probability(method: str, mapping: tuple[Any, Any], values: np.ndarray) -> np.ndarray:
    if method == "isotonic":
        return np.interp(values, mapping[0], mapping[1])
    slope, offset = mapping
    z = slope * values + offset
    return np.where(z >= 0, np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))), 1 / (1 + np.exp(-np.abs(z))))


def _sigmoid(values: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Slope A and offset B of 1 / (1 + exp(A f + B)) of greatest likelihood, by Newton's method with halved steps.

    The targets are those of a uniform prior, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2), so the optimum is finite even where
    the values separate the classes.
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
    for _ in range(_NEWTON_STEPS):
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


def _steps(values: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Knots of the rising function nearest in squares to the labels; equal values share one knot."""
    from scipy.optimize import isotonic_regression  # here: it would make up half of the package's time to import

    knots, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    share = np.bincount(place, weights=positive) / counts
    return knots, np.clip(isotonic_regression(share, weights=counts).x, 0.0, 1.0)


def _couple(pairwise: np.ndarray, k: int) -> np.ndarray:
    """One distribution p from pairwise probabilities r: the p that minimises Σ_{i,j} (r_ji p_i - r_ij p_j)² with sum 1.

    A linear system for each point; rounding below zero is cut off.
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
