"""Labels from float32 kernel values, at half the cost, where these decide; the other rows in float64.

A float32 kernel value is off by at most `entry_error`, so a decision value by at most that times Σ|coefficients|. A
label is certain if no decision value that it hangs on is nearer to its threshold; of one-vs-one machines these are the
machines of the class that wins all of its own.

Invariant: labels are those of float64 decision values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelrules import check, kernels
from kernelrules.kernels.values import product
from kernelrules.results import SVMModel

__all__ = ["decisive", "entry_error", "pays"]

_MUCH = 2e8  # products of features from which half of them is worth saving
_TRIAL, _MOST = 1024, 0.4  # rows, and the share of them in doubt beyond which float64 is used for all others


def entry_error(kernel: Any, size: float, n_features: int) -> float:
    """A bound of the error of a float32 kernel value of points at most `size` from their centre: of its evaluation,
    and of rounding the data."""
    if isinstance(kernel, kernels.Sigmoid):
        spread = 1e-6 * kernel.gamma * size**2
    elif isinstance(kernel, kernels.Laplacian):
        spread = 2e-7 * kernel.gamma * size * math.sqrt(n_features)
    else:
        spread = 2e-7 * math.sqrt(kernel.gamma) * size
    return 2e-5 + spread


def pays(model: SVMModel, x: Any, z: Any) -> bool:
    """Whether float32 values may be had and much work be saved by them."""
    dense = not isinstance(x, check.Csr) and not isinstance(z, check.Csr)
    labels = model.classes is not None or model.kind == "one_class"
    if not (dense and labels and isinstance(model.kernel, kernels.RBF)):
        return False
    return x.dtype == z.dtype == np.float64 and float(x.shape[0]) * z.size >= _MUCH


def decisive(model: SVMModel, x: np.ndarray, z: np.ndarray, n_threads: int, tick: Any = None) -> np.ndarray:
    """Decision values that give the labels of float64 ones, a column for each machine."""
    centre = z.mean(axis=0)
    vectors, most = _moved(z, centre)
    total = np.abs(model.dual_coef).sum(axis=1)
    values = np.empty((len(x), len(model.intercept)))

    def fill(rows: Any, points: np.ndarray, others: np.ndarray) -> None:
        values[rows] = product(points, others, model.kernel, model.dual_coef, n_threads, tick) + model.intercept

    def doubtful(rows: slice) -> np.ndarray:
        """Fill in these rows from float32 values, and tell those that these do not decide."""
        points, size = _moved(x[rows], centre)
        error = entry_error(model.kernel, max(size, most), z.shape[1]) * total
        if not np.isfinite(error).all():
            return np.arange(rows.start, rows.stop)
        fill(rows, points, vectors)
        return rows.start + np.flatnonzero(~certain(model, values[rows], error))

    trial = min(_TRIAL, len(x))
    open_rows = doubtful(slice(0, trial))
    if len(open_rows) <= _MOST * trial and trial < len(x):
        rest = doubtful(slice(trial, len(x)))
    else:
        rest = np.arange(trial, len(x))
    open_rows = np.concatenate([open_rows, rest])
    if len(open_rows):
        fill(open_rows, x[open_rows], z)
    return values


def _moved(x: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows from their centre, in float32, and a bound of their lengths; infinite where they do not fit."""
    moved = np.empty(x.shape, dtype=np.float32)
    with np.errstate(over="ignore"):
        np.subtract(x, centre, out=moved, casting="same_kind")
        largest = float(np.einsum("ij,ij->i", moved, moved).max())
    return moved, 1.001 * math.sqrt(largest) if math.isfinite(largest) else math.inf


def certain(model: SVMModel, values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Rows whose labels do not change if decision values do by at most `error`, one for each machine."""
    if values.shape[1] == 1:
        return np.abs(values[:, 0]) > error[0]
    n_classes = len(model.classes)
    if model.multiclass == "ovr":
        best = values.argmax(axis=1)
        least = np.take_along_axis(values, best[:, None], axis=1) - error[best][:, None]
        others = values + error
        np.put_along_axis(others, best[:, None], -np.inf, axis=1)
        return (others < least).all(axis=1)
    wins = np.zeros((len(values), n_classes), dtype=np.intp)
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    for column, (i, j) in enumerate(pairs):
        wins[:, i] += values[:, column] > error[column]
        wins[:, j] += values[:, column] < -error[column]
    return (wins == n_classes - 1).any(axis=1)
