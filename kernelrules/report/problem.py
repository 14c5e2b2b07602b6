"""The learning problem of a sheet: the target, as classes or numbers, the features and the rows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property

import numpy as np

from kernelrules import datasets
from kernelrules.report.reading import (
    Column,
    DataError,
    Sheet,
    as_categories,
    as_numbers,
    comma_note,
    guess,
    meant_by_commas,
)
from kernelrules.results.rule_text import number_text
from kernelrules.results.show import counted

__all__ = ["Problem", "pose", "spambase"]

_MAX_INTEGER_CLASSES = 10  # integers with at most this many different values are classes
_MIN_ROWS = 10
_EXACT_INTEGERS = 2.0**53  # up to here every integer is a float64
_MIN_TARGET, _MAX_TARGET = 1e-60, 1e60  # so that fourth powers neither underflow nor overflow


@dataclass(frozen=True, eq=False)
class Problem:
    """A learning problem.

    Attributes
    ----------
    source, target : str
        Names of the data and of the target column.
    X : ndarray (n, p) of float64
        Features; categories as codes, missing values as NaN.
    y : ndarray (n,) of str or float64
        Classes or numbers.
    classes : ndarray of str, or None
        In ascending order; None for numbers.
    columns : tuple of Column
        All columns except the target, also unused ones.
    notes : tuple of str
        Remarks on the rows and the target.
    reading : tuple of str
        Remarks on reading the sheet.
    """

    source: str
    target: str
    X: np.ndarray
    y: np.ndarray
    classes: np.ndarray | None
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    reading: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns of X."""
        return tuple(column for column in self.columns if column.used)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return tuple(column.name for column in self.used)

    @property
    def categorical(self) -> list[int]:
        """Indices of the categorical columns of X."""
        return [place for place, column in enumerate(self.used) if column.levels is not None]


def pose(
    sheet: Sheet,
    target: str,
    *,
    task: str = "auto",
    folds: int = 3,
    drop: Iterable[str] = (),
    categorical: Iterable[str] = (),
) -> Problem:
    """Return the problem of predicting one column of a sheet from the others.

    Parameters
    ----------
    sheet : Sheet
        The data.
    target : str
        The column to predict. Rows without it are left out.
    task : {"auto", "classification", "regression"}
        "auto": text is classes, and so are two different numbers, or up to ten that are whole and come back often.
    folds : int
        Number of folds, for which there must be enough rows.
    drop, categorical : iterable of str
        Columns to ignore, and numeric columns to treat as categories.

    Returns
    -------
    Problem
        Features, target and remarks.

    Examples
    --------
    >>> from kernelrules.report.reading import Sheet
    >>> from kernelrules.report.problem import pose
    >>> cells = (["1", "2", "3", "4"] * 4, ["low", "low", "high", "high"] * 4)
    >>> problem = pose(Sheet("small", ("x", "size"), cells, ()), "size")
    >>> problem.X.shape, problem.classes
    ((16, 1), array(['high', 'low'], dtype='<U4'))
    """
    drop, categorical = set(drop), set(categorical)
    for name in (target, *drop, *categorical):
        _require_column(name, sheet)
    if target in drop:
        raise DataError(f"the target “{target}” cannot be dropped")
    place = sheet.names.index(target)
    fewest = 3 if folds > 2 else 4  # rows of a class: two that are left by a fold can be divided once more
    read = _Target(target, sheet.cells[place], sheet.commas(target))
    y, classes, known, notes = _targets_of(read, task, target in categorical, fewest)
    reading = list(sheet.notes)
    if classes is None:
        reading += comma_note(target, read.cells, meant_by_commas(read.cells, read.stray, read.commas))
    columns = []
    for name, cells in zip(sheet.names, sheet.cells, strict=True):
        if name == target:
            continue
        column = guess(name, _some(cells, known), categorical=name in categorical, commas=sheet.commas(name))
        columns.append(replace(column, used=False, note="dropped on request") if name in drop else column)
        if columns[-1].used and column.kind == "number":
            reading += comma_note(name, cells, column.commas)
    if not any(column.used for column in columns):
        raise DataError(f"{sheet.source} has no column to predict “{target}” from{_why_not(columns)}")
    n_least = max(_MIN_ROWS, 2 * folds)
    if len(y) < n_least:
        raise DataError(f"{sheet.source} has {len(y)} rows with “{target}”: at least {n_least} are needed")
    X = np.column_stack([column.values for column in columns if column.used])
    return Problem(sheet.source, target, X, y, classes, tuple(columns), tuple(notes), tuple(reading))


def spambase() -> Problem:
    """Return the bundled Spambase data as a problem."""
    X, y, names, _ = datasets.spambase()
    columns = tuple(Column(name, "number", X[:, place], None, True, "") for place, name in enumerate(names))
    notes = (
        "Spambase comes with kernelrules: Hopkins, Reeber, Forman, Suermondt, UCI Machine Learning Repository, "
        "CC BY 4.0",
    )
    return Problem("Spambase", "type", X, y, np.unique(y), columns, notes)


def _require_column(name: str, sheet: Sheet) -> None:
    if name in sheet.names:
        return
    lower = {each.lower(): each for each in sheet.names}
    near = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
    if near:
        hint = f"did you mean {' or '.join(f'“{each}”' for each in near)}?"
    else:
        hint = f"it has {', '.join(f'“{each}”' for each in sheet.names[:8])}{', …' if len(sheet.names) > 8 else ''}"
    raise DataError(f"{sheet.source} has no column “{name}”; {hint}")


def _some(cells: list[str], chosen: np.ndarray) -> list[str]:
    if chosen.all():
        return cells
    return [cell for cell, take in zip(cells, chosen.tolist(), strict=True) if take]


def _why_not(columns: list[Column]) -> str:
    reasons = "; ".join(f"“{column.name}”: {column.note}" for column in columns[:3])
    return f" ({reasons})" if reasons else ": it is the only one"


class _Target:
    """The target column as text and as numbers.

    Two texts can be one number (1 and 1.0), and two numbers of 17 digits one double; `exact` distinguishes the latter.
    """

    def __init__(self, name: str, cells: list[str], commas: str) -> None:
        self.name, self.cells, self.commas = name, cells, commas
        self.numbers, self.stray = as_numbers(cells, commas)
        pairs = zip(cells, self.numbers.tolist(), strict=True)
        self.doubles = {cell: number for cell, number in pairs if number == number}

    @cached_property
    def exact(self) -> dict[str, Decimal]:
        """Exact values of the numeric cells."""
        mark = "" if self.commas == "thousands" else "."
        return {cell: _exactly(cell.replace(",", mark), number) for cell, number in self.doubles.items()}

    @property
    def n_different(self) -> int:
        """Number of different numbers."""
        n_doubles = len(set(self.doubles.values()))
        return n_doubles if n_doubles == len(self.doubles) else len(set(self.exact.values()))

    def labels(self) -> list[str]:
        """Return the cells with equal numbers written alike: 1 and 1.0 are one class."""
        if self.stray or self.n_different == len(self.doubles):
            return self.cells
        same: dict[Decimal, str] = {}
        for cell in sorted(self.doubles, key=lambda cell: (len(cell), cell)):
            number = self.exact[cell]
            plain = number_text(self.doubles[cell], exact=True)
            same.setdefault(number, plain if abs(number) < _EXACT_INTEGERS and Decimal(plain) == number else cell)
        return [same[self.exact[cell]] if cell in self.exact else "" for cell in self.cells]


def _exactly(text: str, double: float) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return Decimal(double)


def _targets_of(
    read: _Target, task: str, categorical: bool, fewest: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, list[str]]:
    """Return the target, its classes or None, a mask of the rows that have a target, and remarks."""
    notes = []
    # a few text cells among numbers do not make it text
    is_text = bool(read.stray) and guess(read.name, read.cells, commas=read.commas).kind == "category"
    if task == "auto":
        task, why = _task_of(read, is_text or categorical)
        notes.append(f"taken as {task}: {why}")
    if task == "regression":
        y, classes, known = _numbers(read, next(iter(read.stray), "") if is_text else None, notes)
    else:
        y, classes, known = _labels(read.labels(), read.name, fewest, notes)
    if not known.any():
        raise DataError(f"the target “{read.name}” is missing in every row")
    return y, classes, known, notes


def _numbers(read: _Target, text: str | None, notes: list[str]) -> tuple[np.ndarray, None, np.ndarray]:
    """Return numeric targets and a mask of their rows; `text` is an example cell if many are not numbers."""
    name = read.name
    if text is not None:
        raise DataError(
            f"the target “{name}” is not numbers: it holds “{text}”, for example; "
            "use --task classification, or another target"
        )
    known = ~np.isnan(read.numbers)
    y = read.numbers[known]
    if len(y) and (y == y[0]).all():
        if read.n_different > 1:
            raise DataError(f"the numbers of the target “{name}” differ in digits after the 16th: subtract {y[0]:.0f}")
        raise DataError(f"the target “{name}” has the same value {y[0]:g} in every row: there is nothing to learn")
    if len(y) and not _MIN_TARGET < np.abs(y).max() < _MAX_TARGET:
        raise DataError(f"the target “{name}” goes up to {np.abs(y).max():g}: take other units")
    if not known.all():
        notes.append(f"{counted(int((~known).sum()), 'row')} without a number for a target left out")
    return y, None, known


def _task_of(read: _Target, text: bool) -> tuple[str, str]:
    if text:
        return "classification", "the target is text"
    known = read.numbers[~np.isnan(read.numbers)]
    n_different = read.n_different
    if n_different == 2:
        return "classification", "the target has two different values"
    whole = bool((known == np.round(known)).all())
    if whole and n_different <= _MAX_INTEGER_CLASSES and 5 * n_different <= len(known):
        return "classification", f"the target has {n_different} different whole numbers (else --task regression)"
    return "regression", f"the target is numbers, {n_different} different ones"


def _labels(cells: list[str], name: str, fewest: int, notes: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes, levels = as_categories(cells)
    known = ~np.isnan(codes)
    if not known.all():
        notes.append(f"{counted(int((~known).sum()), 'row')} without a target left out")
    counts = np.bincount(codes[known].astype(np.intp), minlength=len(levels))
    if len(levels) > max(2, known.sum() / 2):
        raise DataError(
            f"the target “{name}” has {len(levels)} different values in {int(known.sum())} rows: these are no classes"
        )
    for code in np.flatnonzero(counts < fewest):
        if len(levels) > 1:
            notes.append(
                f"class “{levels[code]}” has only {counted(counts[code], 'row, which is', 'rows, which are')} left out"
            )
            known &= codes != code
    kept = np.flatnonzero(counts >= fewest)
    if known.any() and len(kept) == 1:
        others = " that has rows enough" if len(levels) > 1 else ""
        raise DataError(
            f"the target “{name}” has one class only{others}, “{levels[kept[0]]}”: there is nothing to learn"
        )
    y = np.array(levels)[codes[known].astype(np.intp)] if known.any() else np.empty(0, dtype="U1")
    return y, np.unique(y), known
