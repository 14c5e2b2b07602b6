"""Sums of columns in rules: those that oblique splits compare with a threshold, and those that linear leaves predict.

Sums in conditions become further columns of the data, so that conditions on sums are like any others. They are computed
as in a tree, product after product in the order of the columns, so that rows on a boundary go to the same side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.core.tree.leaf_values import linear_values
from kernelrules.results import LinearFunction, RuleList
from kernelrules.results.linear import fills_splits
from kernelrules.tree.imputation import filled

__all__ = ["all_levels", "append_sums", "functions_of", "has_sums", "linear_answers", "require_directions"]

_MAX_FLOAT = float(np.finfo(np.float64).max)


def has_sums(rs: RuleList) -> bool:
    """Return whether conditions or predictions are sums of columns."""
    return rs.directions is not None or functions_of(rs) is not None


def require_directions(rs: RuleList) -> None:
    """Raise ValueError if sums do not have as many columns as the data."""
    for name, ndim in (("directions", 2), ("fill", 1)):
        given = getattr(rs, name)
        if given is not None and (given.ndim != ndim or given.shape[-1] != rs.n_features):
            raise ValueError(f"{name} has shape {given.shape} but there are {rs.n_features} columns")


def all_levels(rs: RuleList) -> tuple[Any, ...]:
    """Return the levels of the columns, and None for each sum."""
    return rs.levels if rs.directions is None else (*rs.levels, *(None,) * len(rs.directions))


def append_sums(rs: RuleList, x: np.ndarray, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with their sums as further columns, and which of all these columns have missing values."""
    if rs.directions is None:
        return x, missing
    n, n_sums = len(x), len(rs.directions)
    check.fits_memory((n, rs.n_features + n_sums), np.float64, "the rows with their sums")
    wide = np.empty((n, rs.n_features + n_sums))
    wide[:, : rs.n_features] = x
    known = filled(x, rs.fill) if fills_splits(rs) else x
    models = np.column_stack([rs.directions, np.zeros(n_sums)])
    total = np.empty(n)
    for place in range(n_sums):
        linear_values(known, models, None, np.full(n, place), total)
        np.clip(total, -_MAX_FLOAT, _MAX_FLOAT, out=wide[:, rs.n_features + place])  # the core reads finite numbers
    return wide, np.append(missing, np.isnan(wide[:, rs.n_features :]).any(axis=0))


def functions_of(rs: RuleList) -> np.ndarray | None:
    """Return the linear functions of the rules and last of the default, (n_rules + 1, n_features + 1).

    None if all predict constants.
    """
    answers = [*(rule.prediction for rule in rs.rules), rs.default]
    if not any(isinstance(answer, LinearFunction) for answer in answers):
        return None
    check.fits_memory((len(answers), rs.n_features + 1), np.float64, "the linear functions of the rules")
    models = np.zeros((len(answers), rs.n_features + 1))
    for place, answer in enumerate(answers):
        if isinstance(answer, LinearFunction):
            models[place] = answer.row(rs.n_features)
        else:
            models[place, -1] = answer
    return models


def linear_answers(
    rs: RuleList, models: np.ndarray, x: np.ndarray, which: np.ndarray, constants: np.ndarray
) -> np.ndarray:
    """Return the value of each row's linear function, or its constant if a value that it uses is missing."""
    out = np.empty(len(x))
    known = filled(x, rs.fill) if fills_splits(rs) else x
    linear_values(known, models, rs.fill, which, out)
    return np.where(np.isnan(out), constants[which], out)
