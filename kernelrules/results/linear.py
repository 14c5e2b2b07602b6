"""The prediction of a linear leaf, as the prediction of a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.results.show import Result, counted, number

__all__ = ["LinearFunction", "fills_splits", "leaf_prediction"]


@dataclass(frozen=True, repr=False)
class LinearFunction(Result):
    """Σ coefficient · x_feature + constant, summed in the order of the columns, the constant last.

    Attributes
    ----------
    features : tuple of int
        The columns with a nonzero coefficient, ascending.
    coefficients : tuple of float
        The coefficients of these columns.
    constant : float
        The constant term.
    otherwise : float
        The prediction if one of these values is missing and not filled in.
    """

    features: tuple[int, ...]
    coefficients: tuple[float, ...]
    constant: float
    otherwise: float

    def _summary(self) -> list[str]:
        return [counted(len(self.features), "feature"), f"constant {number(self.constant)}"]

    def row(self, n_features: int) -> np.ndarray:
        """Return the coefficients of all columns, and the constant.

        Parameters
        ----------
        n_features : int
            Number of columns.

        Returns
        -------
        ndarray (n_features + 1,)
            As in `Tree.linear`.
        """
        found = np.zeros(n_features + 1)
        found[list(self.features)] = self.coefficients
        found[-1] = self.constant
        return found


def fills_splits(model: Any) -> bool:
    """Return whether missing values are filled in for splits; otherwise `fill` is for linear functions alone."""
    return model.fill is not None and model.missing in ("zero", "impute")


def leaf_prediction(tree: Any, leaf: int) -> float | LinearFunction:
    """Return the prediction of a linear leaf of a regression tree: a number if all coefficients are 0."""
    *coefficients, constant = tree.linear[leaf].tolist()
    features = tuple(column for column, factor in enumerate(coefficients) if factor != 0)
    if not features:
        return constant
    return LinearFunction(features, tuple(coefficients[j] for j in features), constant, float(tree.value[leaf]))
