"""What a grower of trees is given: data that has been checked, and settings that have been checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["ENOUGH", "Problem", "Settings"]

ENOUGH = 1 - 1e-9  # of a least number or weight: sums of shares of rows are rounded, 1/3 three times is one row


@dataclass(frozen=True, eq=False)
class Problem:
    """The training data of one tree, as the growers read it.

    Attributes
    ----------
    values : ndarray (n, p), float32 or float64
        Numbers, and for categorical columns the codes 0, 1, ... of their levels; NaN where a value is missing.
    n_levels : ndarray (p,) of int64
        Levels of each categorical column; 0 for a numerical one.
    classes_of_rows : ndarray (n,) of int32, or None
        Number of each row's class; None for regression.
    n_classes : int
        How many classes there are; 0 for regression.
    targets : ndarray (n, d) of float64, or None
        Numbers to predict; None for classification.
    weights : ndarray (n,) of float64, or None
        At least 0, not all 0; None is 1 for every row.
    """

    values: np.ndarray
    n_levels: np.ndarray
    classes_of_rows: np.ndarray | None
    n_classes: int
    targets: np.ndarray | None
    weights: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return self.values.shape[0]

    @property
    def n_features(self) -> int:
        """Columns."""
        return self.values.shape[1]

    @property
    def n_outputs(self) -> int:
        """Targets; 1 for classification."""
        return 1 if self.targets is None else self.targets.shape[1]


@dataclass(frozen=True, eq=False)
class Settings:
    """How to grow one tree; `kernelrules.tree.grow` describes each of these.

    Attributes
    ----------
    criterion : str or callable
        Name of a criterion, or Q(P): shares of the classes (m, K) to impurities (m,).
    growth : str
        "depth" or "best".
    max_depth, max_leaves : int or None
        None is no limit.
    min_split, min_leaf : int
        Rows that a node must have to be split, and that each child must have.
    min_share : float
        Share of the weight of all rows that each child must have.
    min_gain : float
        Least gain of a split, as a share of the weight of all rows.
    chi2 : float or None
        Significance level of the test of every split; None tests none.
    subsets : str
        "best" or "one".
    missing : str
        "extra", "surrogate", "fractional" or "error"; values that were imputed before growing come as "error".
    splits : str
        "axis" or "oblique".
    monotone : ndarray (p,) of int8, or None
        -1, 0 or 1 for each column.
    max_features : int or None
        Columns drawn for each node; None takes all.
    seed : int
        Of these draws.
    n_threads : int
        Threads of the compiled grower.
    """

    criterion: str | Callable[[np.ndarray], np.ndarray] = "gini"
    growth: str = "depth"
    max_depth: int | None = None
    max_leaves: int | None = None
    min_split: int = 2
    min_leaf: int = 1
    min_share: float = 0.0
    min_gain: float = 0.0
    chi2: float | None = None
    subsets: str = "best"
    missing: str = "extra"
    splits: str = "axis"
    monotone: np.ndarray | None = None
    max_features: int | None = None
    seed: int = 0
    n_threads: int = 1
