"""What the command line's `fit` saves: a model, and how the columns of a table become what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["TableModel"]


@dataclass(frozen=True, eq=False)
class TableModel:
    """A model of a table of numbers and categories.

    Trees and rules read numbers and codes of categories, NaN where missing. Kernel machines read standardised numbers
    (0 where missing) and, for categories, a 0/1 column for each of the commonest levels; a column that had missing
    values has another one that is 1 where the value is missing.

    Attributes
    ----------
    learner : {"tree", "rules", "svm", "ridge"}
        What was learned.
    target : str
        The column that is predicted.
    classes : ndarray of str, or None
        In the order that the model has them; None for numbers.
    columns : tuple of str
        Columns of the table that the model reads, in order.
    kinds : tuple of str
        "number" or "category", for each.
    levels : tuple
        For each column of categories a tuple of str in the order of their codes; else None.
    centre, scale : ndarray (n_columns,)
        What is subtracted from numbers, and what they are then divided by; 0 and 1 for categories.
    dummies : tuple
        For each column of categories the codes that have a 0/1 column, an array; else None.
    missing_seen : ndarray (n_columns,) of bool
        Columns that had missing values in training.
    model : Tree, RuleList, SVMModel or RidgeFit
        The model itself.
    n_train : int
        Rows it was fitted to.
    """

    learner: str
    target: str
    classes: np.ndarray | None
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    levels: tuple[Any, ...]
    centre: np.ndarray
    scale: np.ndarray
    dummies: tuple[np.ndarray | None, ...]
    missing_seen: np.ndarray
    model: Any
    n_train: int

    def __repr__(self) -> str:
        """One line."""
        what = "numbers" if self.classes is None else f"{len(self.classes)} classes"
        return f"TableModel({self.learner}, {self.target!r} ({what}) from {len(self.columns)} columns)"
