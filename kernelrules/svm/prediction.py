"""Functions of a fitted model: `decision`, `predict`, `margin`, `slacks`."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import is_callable, linear_values, plain, product, require_finite_values
from kernelrules.results import Slacks, SVMModel
from kernelrules.svm import float32_labels

__all__ = ["decision", "margin", "predict", "slacks"]

_MAX_FLOAT32_ERROR = 1e-3  # of decision values, which are 1 at the margin: the default tol of a fit


def require_model(model: Any) -> SVMModel:
    """Return the model, or raise if it is none."""
    if not isinstance(model, SVMModel):
        raise TypeError(f"model must be a model that svm fitted, got {type(model).__name__}")
    return model


def all_decisions(
    model: SVMModel, X: Any, n_threads: int | None, callback: Any = None, for_labels: bool = False
) -> np.ndarray:
    """Return decision values, one column per machine; `for_labels`: only as exact as labels require."""
    x = check.matrix(X)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "decision")
    if x.shape[1] != model.n_features:
        raise ValueError(f"X has {x.shape[1]} columns but the model was fitted to {model.n_features}")
    if isinstance(model.kernel, kernels.Precomputed):
        chosen = plain(x)[:, model.support]
        return require_finite_values(linear_values(chosen, model.dual_coef.T, threads, tick) + model.intercept)
    if model.weights is not None:
        return require_finite_values(
            linear_values(x.astype(np.float64), model.weights.T, threads, tick) + model.intercept
        )
    z = check.matrix(model.support_vectors) if model.support_vectors.shape[0] else np.empty((0, x.shape[1]))
    if not is_callable(model.kernel) and (x.dtype != z.dtype or _float32_is_coarse(model, x, z)):
        x, z = x.astype(np.float64), z.astype(np.float64)
    if for_labels and float32_labels.pays(model, x, z):
        return float32_labels.decision_values(model, x, z, threads, tick)
    return require_finite_values(product(x, z, model.kernel, model.dual_coef, threads, tick) + model.intercept)


def _float32_is_coarse(model: SVMModel, x: Any, z: Any) -> bool:
    """Return whether rounding of float32 kernel values may change decision values or the certified primal by 1e-3.

    The certificate is that of float64 kernel values. For large C, sums of float32 values would be those of another
    machine: Σ|coefficients| is large, and C multiplies errors of the slacks.
    """
    if x.dtype != np.float32 or x.shape[0] == 0 or z.shape[0] == 0:
        return False
    largest = 1.0
    if not isinstance(model.kernel, (kernels.RBF, kernels.Laplacian)):
        diagonals = [np.abs(kernels.diagonal(plain(points), model.kernel, dtype=np.float64)).max() for points in (x, z)]
        largest = float(np.sqrt(diagonals[0] * diagonals[1]))
    error = np.abs(model.dual_coef).sum(axis=1) * largest * float(np.finfo(np.float32).eps)
    cost = np.abs(model.dual_coef).max(axis=1) if model.C is None else model.C
    primal = np.array([abs(certificate.primal) for certificate in model.certificates])
    return not (
        np.maximum(error, model.dual_coef.shape[1] * cost * error / np.maximum(primal, 1e-300)) <= _MAX_FLOAT32_ERROR
    ).all()


@parallel.reports("decision")
def decision(
    model: SVMModel, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Return decision values f(x) = Σ coefficient · k(x, support vector) + intercept.

    For a model with weights they are x · weights + intercept.

    Parameters
    ----------
    model : SVMModel
        Returned by `svc`, `svr` or `one_class`.
    X : array, sparse matrix or data frame, (n, p)
        Points; for `Precomputed` their kernel values against all training points.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray
        (n,) for one machine; for two classes, positive values mean classes[1]. One-vs-one: one column per pair (0, 1),
        (0, 2), ..., positive for the first of the pair. One-vs-rest: one column per class.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> model = svm.svc([[0.0], [2.0]], ["a", "b"], C=10.0, kernel=kernels.Linear())
    >>> svm.decision(model, [[0.0], [1.5]]).round(3)
    array([-1. ,  0.5])
    """
    values = all_decisions(require_model(model), X, n_threads, callback)
    return values[:, 0] if values.shape[1] == 1 else values


@parallel.reports("predict")
def predict(
    model: SVMModel, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Predict labels, values of a regression, or +1 and -1 for inside and outside of one class.

    With two classes f(x) ≤ 0 means classes[0]. One-vs-one machines vote; a tie goes to the class with the larger sum of
    confidences, which are decision values mapped to (-1, 1). One-vs-rest takes the largest decision value.

    Parameters
    ----------
    model : SVMModel
        Returned by `svc`, `svr` or `one_class`.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n,)
        One label or value per row.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> model = svm.svc([[0.0], [2.0]], ["a", "b"], kernel=kernels.Linear())
    >>> svm.predict(model, [[-1.0], [3.0]])
    array(['a', 'b'], dtype='<U1')
    """
    values = all_decisions(require_model(model), X, n_threads, callback, for_labels=True)
    return labels_of(model, values)


def labels_of(model: SVMModel, values: np.ndarray) -> np.ndarray:
    """Return the labels or values for decision values of all machines."""
    if model.classes is None:
        return values[:, 0] if model.kind != "one_class" else np.where(values[:, 0] > 0, 1, -1)
    return model.classes[class_codes(values, len(model.classes), model.multiclass)]


def class_codes(values: np.ndarray, n_classes: int, multiclass: str) -> np.ndarray:
    """Return the index of the predicted class for decision values of all machines."""
    if n_classes == 2:
        return (values[:, 0] > 0).astype(int)
    return (values if multiclass == "ovr" else vote(values, n_classes)).argmax(axis=1)


def vote(values: np.ndarray, n_classes: int) -> np.ndarray:
    """Return votes of one-vs-one machines, (n, n_classes), plus the summed confidence, less than half a vote."""
    votes = np.zeros((len(values), n_classes))
    confidence = np.zeros_like(votes)
    squeezed = values / (1.0 + np.abs(values))
    for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first = values[:, column] > 0
        votes[:, i] += first
        votes[:, j] += ~first
        confidence[:, i] += squeezed[:, column]
        confidence[:, j] -= squeezed[:, column]
    return votes + confidence / (2.0 * n_classes)


def margin(model: SVMModel) -> float | np.ndarray:
    """Return the width of the margin, 2 / ‖w‖, in the space of the kernel.

    Parameters
    ----------
    model : SVMModel
        A classifier.

    Returns
    -------
    float, or ndarray (n_machines,) for several machines
        Infinite if w is zero.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> svm.margin(svm.svc([[0.0], [2.0]], [0, 1], C=10.0, kernel=kernels.Linear())).__round__(6)
    2.0
    """
    if require_model(model).classes is None:
        raise ValueError(f"a margin is between classes, and the model is of kind {model.kind}")
    if isinstance(model.kernel, kernels.Precomputed):
        squares = _squares_from_certificates(model)
    elif model.weights is not None:
        squares = np.square(model.weights).sum(axis=1)
    else:
        z = check.matrix(model.support_vectors)
        values = product(z, z, model.kernel, model.dual_coef, parallel.n_threads_or_default())
        squares = np.einsum("ji,ij->j", model.dual_coef, values)
    with np.errstate(divide="ignore"):
        widths = 2.0 / np.sqrt(np.maximum(squares, 0.0))
    return float(widths[0]) if len(widths) == 1 else widths


def _squares_from_certificates(model: SVMModel) -> np.ndarray:
    """Return ‖w‖² of every machine: the dual objective is Σ|coefficients| - ½‖w‖², or -½‖w‖² with nu."""
    duals = np.array([certificate.dual for certificate in model.certificates])
    sums = np.abs(model.dual_coef).sum(axis=1) if model.kind == "svc" else np.zeros(len(duals))
    return 2.0 * (sums - duals)


@parallel.reports("slacks")
def slacks(
    model: SVMModel, X: Any, y: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> Slacks:
    """Return slacks ξ = max(0, 1 - y f(x)), by which points fall short of the margin, and which of three cases each is.

    With more than two classes every machine has slacks of its own, in the columns of `decision`. y is +1 for the points
    of the machine's first class, or of its one class against the rest. For rows of classes that a one-vs-one machine
    does not separate, the slack is NaN and the case -1.

    Parameters
    ----------
    model : SVMModel
        A classifier.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    y : array (n,)
        Their labels.
    {n_threads, callback, progress}

    Returns
    -------
    Slacks
        Values and cases, (n,), or (n, n_machines) for several machines: 0 outside the margin or, within the
        tolerance of the fit, on it; 1 inside but correct; 2 wrong or on the boundary.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> model = svm.svc([[0.0], [2.0]], [0, 1], C=10.0, kernel=kernels.Linear())
    >>> result = svm.slacks(model, [[3.0], [1.5], [0.5]], [1, 1, 1])
    >>> result.values.round(3), result.case
    (array([0. , 0.5, 1.5]), array([0, 1, 2]))

    The machines of three classes separate 0 from 1, 0 from 2, and 1 from 2:

    >>> three = svm.svc([[0.0], [2.0], [4.0]], [0, 1, 2], C=10.0, kernel=kernels.Linear())
    >>> svm.slacks(three, [[0.5], [0.5]], [0, 2]).values.round(3)
    array([[0.5 , 0.25,  nan],
           [ nan, 1.75, 3.5 ]])
    """
    if require_model(model).classes is None:
        raise ValueError(f"slacks require classes, and the model is of kind {model.kind}")
    values = all_decisions(model, X, n_threads, callback)
    codes = check.known_codes(y, len(values), model.classes)
    xi, case = np.full(values.shape, np.nan), np.full(values.shape, -1)
    for m, (positive, others) in enumerate(sides_of(model)):
        own = (codes == positive) | np.isin(codes, others)
        slack = np.maximum(0.0, 1.0 - np.where(codes[own] == positive, 1.0, -1.0) * values[own, m])
        on_margin = max(model.certificates[m].kkt, 1e-12)  # the exactness of the fit
        xi[own, m], case[own, m] = slack, np.where(slack <= on_margin, 0, np.where(slack < 1, 1, 2))
    return Slacks(xi[:, 0], case[:, 0]) if values.shape[1] == 1 else Slacks(xi, case)


def sides_of(model: SVMModel) -> list[tuple[int, list[int]]]:
    """Return for each machine of a classifier its positive class and the others, as indices of `classes`."""
    k = len(model.classes)
    if k == 2:
        return [(1, [0])]
    if model.multiclass == "ovo":
        return [(i, [j]) for i, j in combinations(range(k), 2)]
    return [(i, [j for j in range(k) if j != i]) for i in range(k)]
