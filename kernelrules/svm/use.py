"""What a fitted model answers: `decision`, `predict`, `margin`, `slacks`."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import finite_answers, is_callable, linear_values, plain, product
from kernelrules.results import Slacks, SVMModel
from kernelrules.svm import narrow

__all__ = ["decision", "margin", "predict", "slacks"]


def require_model(model: Any) -> SVMModel:
    """The model, if it is one."""
    if not isinstance(model, SVMModel):
        raise TypeError(f"model must be a model that svm fitted, got {type(model).__name__}")
    return model


def all_decisions(
    model: SVMModel, X: Any, n_threads: int | None, callback: Any = None, for_labels: bool = False
) -> np.ndarray:
    """Decision values, a column for each machine; `for_labels` as exact as labels need them."""
    x = check.matrix(X)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "decision")
    if x.shape[1] != model.n_features:
        raise ValueError(f"X has {x.shape[1]} columns but the model was fitted to {model.n_features}")
    if isinstance(model.kernel, kernels.Precomputed):
        chosen = plain(x)[:, model.support]
        return finite_answers(linear_values(chosen, model.dual_coef.T, threads, tick) + model.intercept)
    z = check.matrix(model.support_vectors) if model.support_vectors.shape[0] else np.empty((0, x.shape[1]))
    if not is_callable(model.kernel) and x.dtype != z.dtype:
        x, z = x.astype(np.float64), z.astype(np.float64)
    if for_labels and narrow.pays(model, x, z):
        return narrow.decisive(model, x, z, threads, tick)
    return finite_answers(product(x, z, model.kernel, model.dual_coef, threads, tick) + model.intercept)


@parallel.reports("decision")
def decision(
    model: SVMModel, X: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> np.ndarray:
    """Decision values f(x) = Σ coefficient · k(x, support vector) + intercept.

    Parameters
    ----------
    model : SVMModel
        What `svc`, `svr` or `one_class` returned.
    X : array, sparse matrix or data frame, (n, p)
        Points; for `Precomputed` their kernel values against all training points.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    ndarray
        (n,) for one machine, of two classes positive for classes[1]. One-vs-one: a column for each pair (0, 1),
        (0, 2), ..., positive for the first of the pair. One-vs-rest: a column for each class.

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
    """Labels, values of a regression, or +1 and -1 for inside and outside of one class.

    Of two classes f(x) ≤ 0 goes to classes[0]. One-vs-one machines vote; a tie goes to the class with the larger sum of
    confidences, decision values squeezed into (-1, 1). One-vs-rest takes the largest decision value.

    Parameters
    ----------
    model : SVMModel
        What `svc`, `svr` or `one_class` returned.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    ndarray (n,)
        One answer for each row.

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
    """What decision values of all machines mean."""
    if model.classes is None:
        return values[:, 0] if model.kind != "one_class" else np.where(values[:, 0] > 0, 1, -1)
    if len(model.classes) == 2:
        return model.classes[(values[:, 0] > 0).astype(int)]
    if model.multiclass == "ovr":
        return model.classes[values.argmax(axis=1)]
    return model.classes[vote(values, len(model.classes)).argmax(axis=1)]


def vote(values: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes of one-vs-one machines, (n, n_classes), plus less than half a vote of summed confidence."""
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
    """The width of the margin, 2 / ‖w‖, in the space of the kernel.

    Parameters
    ----------
    model : SVMModel
        A classifier.

    Returns
    -------
    float, or ndarray (n_machines,) for several machines
        Infinite where w is zero.

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
    else:
        z = check.matrix(model.support_vectors)
        values = product(z, z, model.kernel, model.dual_coef, parallel.n_threads_or_default())
        squares = np.einsum("ji,ij->j", model.dual_coef, values)
    with np.errstate(divide="ignore"):
        widths = 2.0 / np.sqrt(np.maximum(squares, 0.0))
    return float(widths[0]) if len(widths) == 1 else widths


def _squares_from_certificates(model: SVMModel) -> np.ndarray:
    """|w|² of every machine: the dual's value is Σ|coefficients| - ½‖w‖², or -½‖w‖² with nu."""
    duals = np.array([certificate.dual for certificate in model.certificates])
    sums = np.abs(model.dual_coef).sum(axis=1) if model.kind == "svc" else np.zeros(len(duals))
    return 2.0 * (sums - duals)


@parallel.reports("slacks")
def slacks(
    model: SVMModel, X: Any, y: Any, *, n_threads: int | None = None, callback: Any = None, progress: bool = False
) -> Slacks:
    """How far points fall short of the margin: ξ = max(0, 1 - y f(x)), and which of three cases each is.

    Parameters
    ----------
    model : SVMModel
        A classifier of two classes.
    X : array, sparse matrix or data frame, (n, p)
        Points, as in `decision`.
    y : array (n,)
        Their labels.
    n_threads : int, optional
        Default: the cores that the process may use.
    callback : callable, optional
        Told of progress; what it raises ends the computation.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    Slacks
        Values and cases: 0 outside the margin or, as far as the fit is exact, on it; 1 inside but right; 2 wrong or on
        the boundary.

    Examples
    --------
    >>> from kernelrules import kernels, svm
    >>> model = svm.svc([[0.0], [2.0]], [0, 1], C=10.0, kernel=kernels.Linear())
    >>> result = svm.slacks(model, [[3.0], [1.5], [0.5]], [1, 1, 1])
    >>> result.values.round(3), result.case
    (array([0. , 0.5, 1.5]), array([0, 1, 2]))
    """
    require_model(model)
    if model.classes is None or len(model.classes) != 2:
        raise ValueError("slacks are those of a model of two classes")
    values = all_decisions(model, X, n_threads, callback)[:, 0]
    xi = np.maximum(0.0, 1.0 - signs_of(model, y, len(values)) * values)
    on_margin = max(model.certificate.kkt, 1e-12)  # nearer than the fit is exact
    return Slacks(xi, np.where(xi <= on_margin, 0, np.where(xi < 1, 1, 2)))


def signs_of(model: SVMModel, y: Any, n: int) -> np.ndarray:
    """-1 for classes[0], +1 for classes[1]; other labels are refused."""
    return np.where(check.known_codes(y, n, model.classes) == 1, 1.0, -1.0)
