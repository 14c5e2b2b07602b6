"""Centring of data far from the origin, for machines of the linear kernel.

Coefficients of classifiers and regressions sum to zero, so subtracting a vector m from all rows changes neither the
problem nor its objectives: f(x) = w·(x - m) + b. Far from the origin, products of rows are large and nearly equal, and
float64 loses their differences, which the solver needs. It therefore receives centred rows. One-class problems are
excluded: their coefficients have another sum, so the origin has a meaning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel
from kernelrules.kernels.values import far_centre
from kernelrules.results import SVMModel

__all__ = ["centred", "undo_centring"]


def centred(x: Any, kernel: Any) -> tuple[Any, np.ndarray | None]:
    """Return the data to solve on, and the centre subtracted from them; None if they are not centred."""
    centre = far_centre(x) if isinstance(kernel, kernels.Linear) else None
    return (x, None) if centre is None else (x - centre, centre)


def undo_centring(model: SVMModel, centre: np.ndarray | None) -> SVMModel:
    """Return a model of centred data as one of the uncentred data, with weights of columns summed from centred rows.

    Coefficients sum to zero up to rounding. Products of uncentred rows would multiply the rest of that sum by the
    square of their distance from the origin, so a sum over support vectors would not be the certified machine.
    """
    if centre is None:
        return model
    weights = model.weights
    if weights is None:
        vectors = check.matrix(model.support_vectors) if len(model.support) else np.empty((0, len(centre)))
        with parallel.blas_threads(1):
            weights = np.ascontiguousarray(((vectors - centre).T @ model.dual_coef.T).T)
    return replace(model, weights=weights, intercept=model.intercept - (weights * centre).sum(axis=1))
