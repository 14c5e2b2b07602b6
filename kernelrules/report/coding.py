"""How a table becomes what models read, learned from the training rows alone.

trees, rules   numbers and codes of categories as they are, NaN where missing
svm, ridge     (x - mean) / standard deviation, 0 where missing; a 0/1 column for each common level; and one for
               "missing" where training had such: two different levels are √2 apart, as far as two numbers on
               average
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.report.reading import Column, DataError, Sheet, as_categories, as_numbers, comma_note, meant_by_commas
from kernelrules.results.show import counted

__all__ = ["MOST_DUMMIES", "Coding", "coded_sheet", "design", "design_names", "learn_coding", "mean_and_deviation"]

MOST_DUMMIES = 30  # levels of a column that have a 0/1 column: the commonest


@dataclass(frozen=True, eq=False)
class Coding:
    """What the training rows say about the columns; the fields are those of `TableModel`."""

    centre: np.ndarray
    scale: np.ndarray
    dummies: tuple[np.ndarray | None, ...]
    missing_seen: np.ndarray


def learn_coding(X: np.ndarray, columns: tuple[Column, ...]) -> Coding:
    """The coding of some rows."""
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
        common = np.argsort(-counts, kind="stable")[:MOST_DUMMIES]
        dummies[place] = np.sort(common[counts[common] > 0])
    return Coding(centre, scale, tuple(dummies), missing)


def mean_and_deviation(known: np.ndarray) -> tuple[float, float]:
    """Of numbers up to the largest there are; 1 for the deviation of equal ones."""
    unit = float(np.abs(known).max()) or 1.0
    scaled = known / unit
    mean, deviation = float(scaled.mean()), float(scaled.std())
    rounding = len(known) * np.finfo(np.float64).eps
    return mean * unit, deviation * unit if deviation > rounding * abs(mean) else 1.0


def design(X: np.ndarray, coding: Any) -> np.ndarray:
    """The matrix that kernel machines read; `coding` is a Coding or a TableModel.

    Examples
    --------
    >>> columns = (Column("x", "number", np.zeros(0), None, True, ""), Column("c", "category", np.zeros(0), ("a", "b"),
    ...            True, ""))
    >>> X = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 1.0]])
    >>> design(X, learn_coding(X, columns))
    array([[-1.,  0.,  1.,  0.],
           [ 1.,  0.,  0.,  1.],
           [ 0.,  1.,  0.,  1.]])
    """
    parts = []
    for place, codes in enumerate(coding.dummies):
        x = X[:, [place]]
        if codes is None:
            parts.append(np.where(np.isnan(x), 0.0, (x - coding.centre[place]) / coding.scale[place]))
        else:
            parts.append((x == codes).astype(np.float64))
        if coding.missing_seen[place]:
            parts.append(np.isnan(x).astype(np.float64))
    return np.hstack(parts)


def design_names(columns: tuple[Column, ...], coding: Any) -> list[str]:
    """What the columns of `design` are called."""
    names = []
    for column, codes, missing in zip(columns, coding.dummies, coding.missing_seen, strict=True):
        names += [column.name] if codes is None else [f"{column.name} = {column.levels[code]}" for code in codes]
        names += [f"{column.name} is missing"] if missing else []
    return names


def coded_sheet(sheet: Sheet, model: Any) -> tuple[np.ndarray, list[str]]:
    """Rows of another sheet as the columns of a TableModel, and remarks about what it does not know."""
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
