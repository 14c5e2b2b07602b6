"""Machines of the linear kernel on data far from the origin.

Coefficients of classes and of regressions sum to zero, so that their problem is the same for all data moved by the same
vector m, with the same objectives: f(x) = w·(x - m) + b. Far away, products of rows are large and nearly equal, and
their differences, which the solver needs, are lost; so it gets the data moved to their centre. One class is another
problem there: its coefficients have another sum, and the origin has a meaning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels
from kernelrules.kernels.values import far_centre, product
from kernelrules.results import SVMModel

__all__ = ["at_origin", "centred"]


def centred(x: Any, kernel: Any) -> tuple[Any, np.ndarray | None]:
    """The data to solve on, and how far they were moved: None where they were not."""
    centre = far_centre(x) if isinstance(kernel, kernels.Linear) else None
    return (x, None) if centre is None else (x - centre, centre)


def at_origin(model: SVMModel, centre: np.ndarray | None) -> SVMModel:
    """A model whose intercepts are those of moved data, with those of the data themselves."""
    if centre is None:
        return model
    vectors = check.matrix(model.support_vectors) if len(model.support) else np.empty((0, len(centre)))
    there = product(centre[None, :], vectors, model.kernel, model.dual_coef, 1)[0]
    return replace(model, intercept=model.intercept - there)
