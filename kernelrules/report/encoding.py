"""Encoding of tables as numbers for models, learned from the training rows.

trees, rules   numbers and codes of categories, NaN if missing
svm, ridge     (x - mean) / standard deviation, 0 if missing; a 0/1 column for each frequent level; and a 0/1 indicator
               of missing values if the training rows have some. Two different levels have the distance √2, the root
               mean square distance of two standardised numbers
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.report.reading import Column, DataError, Sheet, as_categories, as_numbers, comma_note, meant_by_commas
from kernelrules.results.show import counted

__all__ = ["MAX_DUMMIES", "Encoding", "design", "design_names", "encode_sheet", "fit_encoding", "mean_and_deviation"]

MAX_DUMMIES = 30  # most frequent levels of a column that get a 0/1 column


@dataclass(frozen=True, eq=False)
class Encoding:
    """Parameters of an encoding; the fields are those of `TableModel`."""

    centre: np.ndarray
    scale: np.ndarray
    dummies: tuple[np.ndarray | None, ...]
    missing_seen: np.ndarray


def fit_encoding(X: np.ndarray, columns: tuple[Column, ...]) -> Encoding:
    """Return the encoding of some rows."""
    p = X.shape[1]
    centre, scale, missing = np.zeros(p), np.ones(p), np.isnan(X).any(axis=0)
    dummies: list[np.ndarray | None] = [None] * p
    for place, column in enumerate(columns):
        known = X[~np.isnan(X[:, place]), place]
        if column.levels is None:
            if len(known):
                centre[place], scale[place] = mean_and_deviation(known)
            continue
        counts = np.bincount(known.astype(np.intp), minlength=len(column.levels))
        common = np.argsort(-counts, kind="stable")[:MAX_DUMMIES]
        dummies[place] = np.sort(common[counts[common] > 0])
    return Encoding(centre, scale, tuple(dummies), missing)


def mean_and_deviation(known: np.ndarray) -> tuple[float, float]:
    """Return the mean and standard deviation (1 for equal numbers), without overflow."""
    unit = float(np.abs(known).max()) or 1.0
    scaled = known / unit
    mean, deviation = float(scaled.mean()), float(scaled.std())
    rounding = len(known) * np.finfo(np.float64).eps
    return mean * unit, deviation * unit if deviation > rounding * abs(mean) else 1.0


def design(X: np.ndarray, encoding: Any) -> np.ndarray:
    """Return the matrix that kernel machines read; `encoding` is an Encoding or a TableModel.

    Examples
    --------
    >>> columns = (Column("x", "number", np.zeros(0), None, True, ""), Column("c", "category", np.zeros(0), ("a", "b"),
    ...            True, ""))
    >>> X = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]])
    >>> design(X, fit_encoding(X, columns))
    array([[-1.,  0.,  1.,  0.],
           [ 1.,  0.,  0.,  1.],
           [ 0.,  1.,  0.,  1.]])
    """
    parts = []
    for place, codes in enumerate(encoding.dummies):
        x = X[:, [place]]
        if codes is None:
            parts.append(np.where(np.isnan(x), 0.0, (x - encoding.centre[place]) / encoding.scale[place]))
        else:
            parts.append((x == codes).astype(np.float64))
        if encoding.missing_seen[place]:
            parts.append(np.isnan(x).astype(np.float64))
    return np.hstack(parts)


def design_names(columns: tuple[Column, ...], encoding: Any) -> list[str]:
    """Return the names of the columns of `design`."""
    names = []
    for column, codes, missing in zip(columns, encoding.dummies, encoding.missing_seen, strict=True):
        names += [column.name] if codes is None else [f"{column.name} = {column.levels[code]}" for code in codes]
        names += [f"{column.name} is missing"] if missing else []
    return names


def encode_sheet(sheet: Sheet, model: Any) -> tuple[np.ndarray, list[str]]:
    """Return the rows of a sheet as a TableModel reads them, and remarks about unknown values."""
    place = {name: i for i, name in enumerate(sheet.names)}
    absent = [name for name in model.columns if name not in place]
    if absent:
        listed = ", ".join(f"“{name}”" for name in absent[:5]) + (", …" if len(absent) > 5 else "")
        raise DataError(
            f"{sheet.source} lacks {'the column' if len(absent) == 1 else 'the columns'} {listed} of the model"
        )
    X = np.empty((sheet.n_rows, len(model.columns)))
    remarks = []
    for i, (name, levels) in enumerate(zip(model.columns, model.levels, strict=True)):
        cells = sheet.cells[place[name]]
        if levels is None:
            known = model.commas[i] if model.commas else ""
            commas = known or sheet.commas(name)
            X[:, i], stray = as_numbers(cells, commas)
            if not known:
                remarks += comma_note(name, cells, meant_by_commas(cells, stray, commas))
            if stray:
                remarks.append(f"“{name}”: {_no_numbers(stray)}: missing")
        else:
            X[:, i], _ = as_categories(cells, tuple(str(level) for level in levels))
            unknown = int((X[:, i] == -1).sum())
            if unknown:
                what = counted(unknown, "cell holds a category", "cells hold categories")
                remarks.append(f"“{name}”: {what} that the model was not shown")
    return X, remarks


def _no_numbers(stray: Counter[str]) -> str:
    example = next(iter(stray))
    return counted(stray.total(), f"cell, “{example}”, is no number", f"cells such as “{example}” are no numbers")
