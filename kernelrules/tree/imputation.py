"""Replacement of missing values before a tree grows: missing="zero" and missing="impute"."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.check.frames import Columns

__all__ = ["fill_values", "filled"]


def fill_values(columns: Columns, how: str, rng: Any = None) -> np.ndarray:
    """What missing values of each column are replaced by.

    Parameters
    ----------
    columns : Columns
        Training data.
    how : "zero" or "impute"
        Zero, for categories their first level; or the mean of the training values, for categories a level drawn at
        random with the frequencies of the training rows. Where all values are missing: zero.
    rng : Generator, seed or None
        For the drawing.

    Returns
    -------
    ndarray (p,) of float64
        Numbers of the type of the data.

    Examples
    --------
    >>> from kernelrules.check.frames import read
    >>> fill_values(read([[1.0, "a"], [2.0, None], [None, "a"]]), "impute")
    array([1.5, 0. ])
    """
    check.one_of(how, "how", "zero", "impute")
    values = columns.values
    fill = np.zeros(values.shape[1])
    if how == "zero":
        return fill
    draws = check.generator(rng)
    for position, n_levels in enumerate(columns.n_levels):
        column = values[:, position]
        known = column[~np.isnan(column)] if columns.missing[position] else column
        if len(known) == 0:
            continue
        fill[position] = known[draws.integers(len(known))] if n_levels else _mean(known)
    return fill.astype(values.dtype).astype(np.float64)


def _mean(known: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        mean = float(known.mean(dtype=np.float64))
        if not np.isfinite(mean):  # the sum was too large, and is not at a smaller scale
            mean = float((known * 2.0**-64).mean()) * 2.0**64
    return min(max(mean, float(known.min())), float(known.max()))


def filled(values: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """A copy with fill[j] for the missing values of column j; the array itself if there are none.

    Parameters
    ----------
    values : ndarray (n, p) of float32 or float64
        NaN is missing.
    fill : ndarray (p,)
        As `fill_values` returns it.

    Returns
    -------
    ndarray (n, p)
        Of the same type.

    Examples
    --------
    >>> filled(np.array([[1.0, np.nan]]), np.array([0.5, 7.0]))
    array([[1., 7.]])
    """
    absent = np.isnan(values)
    if not absent.any():
        return values
    return np.where(absent, fill.astype(values.dtype), values)
