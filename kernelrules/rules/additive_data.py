"""The training data of `rules.additive`: columns, targets of each score, weights, folds, linear terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check, selection
from kernelrules.core.additive.binned_columns import BinnedColumns
from kernelrules.results import LinearTerm
from kernelrules.rules.additive_scores import linear_values
from kernelrules.rules.rule_search import Settings, TrainingTable
from kernelrules.rules.training_columns import TrainingColumns

__all__ = ["AdditiveData"]

_CLIPPED_SHARE = 0.025  # of the rows, at each end of a linear term
_RULE_DEVIATION = 0.4  # of a rule whose share of rows is uniform on [0, 1]; linear terms are scaled to it
_MIN_ABS_LINEAR, _MAX_ABS_LINEAR = 1e-290, 1e300  # squares of values outside under- or overflow
_MAX_ABS_TARGET = 1e150  # squares of larger targets overflow
_CONSTANT_RTOL = 1e-13  # a smaller relative deviation is rounding
_QUANTILE_RTOL = 1e-12  # cumulative weights within this of a quantile reach it
_KEY_SEED = 20230617  # of the random keys of rows


class AdditiveData:
    """Rows of positive weight, the targets of each score, and weights that sum to 1.

    For the squared loss, targets are centred by `centre` and divided by `unit`.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        categorical: Any,
        missing: str,
        settings: Settings,
        linear: bool,
        threads: int,
    ) -> None:
        self.columns = columns = TrainingColumns(X, categorical, missing, dense=linear)
        columns.require_rows()
        weights = check.weights(sample_weight, columns.n_rows)
        self.used = weights > 0
        columns.require_rows(self.used)
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not np.isfinite(total):
            raise ValueError("sample_weight is too large: its sum overflows float64")
        self.given_weights = weights[self.used]
        self.weights = self.given_weights / total
        self._read_targets(y, settings)
        n = len(self.weights)
        ranked = columns.ranked(self.used, threads, n_copies=1)
        self.terms, values = (), np.zeros((0, n))
        if linear:
            self.terms, values = _linear_terms(columns.values(self.used), columns.n_levels, self.weights)
        binned = None
        if settings.max_depth > 1:
            check.fits_memory((n, columns.n_features), np.uint16, "the codes of X")
            binned = BinnedColumns(ranked)
        keys = np.random.default_rng(_KEY_SEED).integers(1, 1 << 63, size=n, dtype=np.uint64)
        self.table = TrainingTable(ranked, binned, values, columns.n_levels, columns.missing, keys)

    def _read_targets(self, y: Any, settings: Settings) -> None:
        n_given = self.columns.n_rows
        self.unit, self.centre, self.classes, self.codes = 1.0, 0.0, None, None
        if not settings.logistic:
            numbers = check.targets(y, n_given)[self.used]
            largest = float(np.abs(numbers).max())
            if largest > _MAX_ABS_TARGET:
                raise ValueError("y is too large: the sum of its squares overflows float64")
            self.centre = float(self.weights @ numbers)
            numbers = numbers - self.centre
            size = float(np.abs(numbers).max()) or 1.0  # squares of tiny numbers underflow
            spread = size * float(np.sqrt(self.weights @ (numbers / size) ** 2))
            constant = spread <= _CONSTANT_RTOL * largest
            self.unit = 1.0 if constant else spread
            self.targets = [np.zeros_like(numbers) if constant else numbers / spread]
            return
        self.classes, codes = check.labels(y, n_given)
        self.codes = codes[self.used]
        seen = np.bincount(self.codes, minlength=len(self.classes))
        if len(self.classes) < 2 or (seen > 0).sum() < len(self.classes):
            absent = "" if len(self.classes) < 2 else ", and some classes have weight 0"
            raise ValueError(f"y must hold rows of at least two classes, got {len(self.classes)}{absent}")
        chosen = [1] if len(self.classes) == 2 else range(len(self.classes))
        self.targets = [(self.codes == k).astype(np.float64) for k in chosen]

    def folds(self, folds: Any, rng: np.random.Generator) -> np.ndarray:
        """Return the fold of every row in use, stratified by class."""
        if np.ndim(folds) == 1:
            fold_of_row = selection.fold_numbers(folds, self.columns.n_rows)[self.used]
            fold_of_row = np.unique(fold_of_row, return_inverse=True)[1]
            if fold_of_row.max() == 0:
                raise ValueError("folds must hold at least two different folds")
        else:
            fold_of_row = selection.fold_numbers(folds, len(self.weights), self.codes, rng)
        if self.codes is not None:
            counts = np.zeros((int(fold_of_row.max()) + 1, len(self.classes)))
            np.add.at(counts, (fold_of_row, self.codes), 1)
            lacking = np.argwhere(counts.sum(axis=0) - counts == 0)
            if len(lacking):
                label = check.shown(self.classes[lacking[0][1]])
                raise ValueError(
                    f"all rows of class {label} are in one fold: the others cannot learn it; use folds=None"
                )
        return fold_of_row


def _linear_terms(
    x: np.ndarray, n_levels: np.ndarray, weights: np.ndarray
) -> tuple[tuple[LinearTerm, ...], np.ndarray]:
    """Return the linear terms of the numerical columns that vary, and their values."""
    terms, values = [], []
    for column in np.flatnonzero(n_levels == 0).tolist():
        numbers = x[:, column].astype(np.float64)
        known = ~np.isnan(numbers)
        if not known.any():
            continue
        w = weights[known] / weights[known].sum()
        low, high = _quantiles(numbers[known], w, (_CLIPPED_SHARE, 1 - _CLIPPED_SHARE))
        clipped = np.clip(numbers[known], low, high)
        size = max(abs(low), abs(high))
        if not _MIN_ABS_LINEAR < size < _MAX_ABS_LINEAR:
            continue
        mean = float(w @ clipped)
        deviation = size * float(np.sqrt(w @ ((clipped - mean) / size) ** 2))
        if not deviation > _CONSTANT_RTOL * size:
            continue
        term = LinearTerm(column, low, high, mean, _RULE_DEVIATION / deviation)
        terms.append(term)
        values.append(linear_values(term, numbers))
    return tuple(terms), np.array(values).reshape(len(terms), len(x))


def _quantiles(numbers: np.ndarray, weights: np.ndarray, shares: tuple[float, float]) -> tuple[float, float]:
    """Return the lowest numbers with at least these shares of the weight at or below them."""
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(weights[order])
    targets = np.array(shares) * below[-1] * (1 - _QUANTILE_RTOL)
    places = np.minimum(np.searchsorted(below, targets), len(order) - 1)
    return float(numbers[order[places[0]]]), float(numbers[order[places[1]]])
