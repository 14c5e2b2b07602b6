"""Labels from float32 kernel values, at half the cost; rows that these do not decide are computed in float64.

The error of a float32 kernel value is at most `entry_error`, that of a decision value at most Σ|coefficients| times it.
A label is certain if no decision value that it depends on is nearer to its threshold. For one-vs-one machines these are
the machines of a class that wins all of its own.

Invariant: labels are those of float64 decision values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelrules import check, kernels
from kernelrules.kernels.values import product
from kernelrules.results import SVMModel

__all__ = ["decision_values", "entry_error", "pays"]

_MIN_PRODUCTS = 2e8  # of features, from which the saving is noticeable
_TRIAL_ROWS = 1024
_MAX_UNCERTAIN_SHARE = 0.4  # of the trial's rows; beyond it all other rows are computed in float64


def entry_error(kernel: Any, size: float, n_features: int) -> float:
    """Return a bound of the error of a float32 kernel value, for points at most `size` from their centre.

    It includes the rounding of the data.
    """
    if isinstance(kernel, kernels.Sigmoid):
        spread = 1e-6 * kernel.gamma * size**2
    elif isinstance(kernel, kernels.Laplacian):
        spread = 2e-7 * kernel.gamma * size * math.sqrt(n_features)
    else:
        spread = 2e-7 * math.sqrt(kernel.gamma) * size
    return 2e-5 + spread


def pays(model: SVMModel, x: Any, z: Any) -> bool:
    """Return whether float32 values are available and save much work."""
    dense = not isinstance(x, check.Csr) and not isinstance(z, check.Csr)
    labels = model.classes is not None or model.kind == "one_class"
    if not (dense and labels and isinstance(model.kernel, kernels.RBF)):
        return False
    return x.dtype == z.dtype == np.float64 and float(x.shape[0]) * z.size >= _MIN_PRODUCTS


def decision_values(model: SVMModel, x: np.ndarray, z: np.ndarray, n_threads: int, tick: Any = None) -> np.ndarray:
    """Return decision values with the same labels as float64 ones, one column per machine."""
    centre = z.mean(axis=0)
    vectors, vector_size = _centred(z, centre)
    total = np.abs(model.dual_coef).sum(axis=1)
    values = np.empty((len(x), len(model.intercept)))

    def fill(rows: Any, points: np.ndarray, others: np.ndarray) -> None:
        values[rows] = product(points, others, model.kernel, model.dual_coef, n_threads, tick) + model.intercept

    def fill_float32(rows: slice) -> np.ndarray:
        """Fill these rows from float32 values; returns the rows whose labels these do not decide."""
        points, size = _centred(x[rows], centre)
        error = entry_error(model.kernel, max(size, vector_size), z.shape[1]) * total
        if not np.isfinite(error).all():
            return np.arange(rows.start, rows.stop)
        fill(rows, points, vectors)
        return rows.start + np.flatnonzero(~certain(model, values[rows], error))

    trial = min(_TRIAL_ROWS, len(x))
    open_rows = fill_float32(slice(0, trial))
    if len(open_rows) <= _MAX_UNCERTAIN_SHARE * trial and trial < len(x):
        rest = fill_float32(slice(trial, len(x)))
    else:
        rest = np.arange(trial, len(x))
    open_rows = np.concatenate([open_rows, rest])
    if len(open_rows):
        fill(open_rows, x[open_rows], z)
    return values


def _centred(x: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, float]:
    """Return rows minus the centre, in float32, and a bound of their lengths, infinite if they overflow."""
    moved = np.empty(x.shape, dtype=np.float32)
    with np.errstate(over="ignore"):
        np.subtract(x, centre, out=moved, casting="same_kind")
        largest = float(np.einsum("ij,ij->i", moved, moved).max())
    return moved, 1.001 * math.sqrt(largest) if math.isfinite(largest) else math.inf


def certain(model: SVMModel, values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return which rows keep their labels if decision values change by at most `error`, one number per machine."""
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
