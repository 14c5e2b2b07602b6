"""The model that the command line's `fit` saves, with the encoding of the columns of its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.results.ridge import RidgeFit
from kernelrules.results.rules import RuleList
from kernelrules.results.show import Result, counted, short
from kernelrules.results.svm import SVMModel
from kernelrules.results.tree import Tree

__all__ = ["TableModel", "require_table_model"]

_COMMAS = ("", "decimal", "thousands")
_MODELS = {"tree": Tree, "rules": RuleList, "svm": SVMModel, "ridge": RidgeFit}


@dataclass(frozen=True, eq=False, repr=False)
class TableModel(Result):
    """A model of a table of numbers and categories.

    Trees and rules read numbers and codes of categories, NaN where missing. Kernel machines read standardised numbers
    (0 if missing) and, for categories, a 0/1 column for each of the most frequent levels; a column that had missing
    values has another one that is 1 if the value is missing.

    Attributes
    ----------
    learner : {"tree", "rules", "svm", "ridge"}
        The kind of model.
    target : str
        Name of the predicted column.
    classes : ndarray of str, or None
        In the order of the model; None for numbers.
    columns : tuple of str
        Columns of the table that the model reads, in order.
    kinds : tuple of str
        "number" or "category", for each.
    levels : tuple
        For each column of categories a tuple of str in the order of their codes; else None.
    centre, scale : ndarray (n_columns,)
        Mean and scale by which numbers are standardised; 0 and 1 for categories.
    dummies : tuple
        For each column of categories the codes that have a 0/1 column, an array; else None.
    missing_seen : ndarray (n_columns,) of bool
        Columns that had missing values in training.
    model : Tree, RuleList, SVMModel or RidgeFit
        The model itself.
    n_train : int
        Number of training rows.
    commas : tuple of str
        Meaning of commas in the numbers of each column: "thousands", "decimal", or "" if the table had none. Empty in
        files of older versions, for which each table decides.
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
    commas: tuple[str, ...] = ()

    def _summary(self) -> list[str]:
        what = "numbers" if self.classes is None else counted(len(self.classes), "class", "classes")
        return [self.learner, f"{short(self.target)} ({what}) from {counted(len(self.columns), 'column')}"]


def require_table_model(found: TableModel) -> None:
    """Raise ValueError if the parts of a model from a file are inconsistent."""
    p = len(found.columns)
    for name in ("kinds", "levels", "dummies", "centre", "scale", "missing_seen"):
        _require(len(getattr(found, name)) == p, f"{name} has not one entry for each of {p} columns")
    _require(len(found.commas) in (0, p), f"commas has not one entry for each of {p} columns")
    _require(all(commas in _COMMAS for commas in found.commas), "commas are neither of thousands nor decimal ones")
    for name, kind in (("centre", "f"), ("scale", "f"), ("missing_seen", "b")):
        array = getattr(found, name)
        _require(array.ndim == 1 and array.dtype.kind == kind, f"{name} has the wrong type")
    _require(bool(np.isfinite(found.centre).all() and (found.scale > 0).all()), "centre and scale cannot be divided by")
    _require(
        isinstance(found.model, _MODELS.get(found.learner, ())), f"the model is not that of a {found.learner!r:.40}"
    )
    for kind, levels, codes in zip(found.kinds, found.levels, found.dummies, strict=True):
        _require(kind in ("number", "category"), f"a column is a {kind!r:.40}")
        _require((kind == "number") == (levels is None) == (codes is None), "levels are those of categories")
        if levels is not None:
            _require(isinstance(levels, tuple) and all(isinstance(level, str) for level in levels), "levels are words")
            _require(_are_codes(codes, len(levels)), "dummies are codes of levels")
    if found.learner in ("tree", "rules"):
        _require_codes(found)
    else:
        width = sum(1 if codes is None else len(codes) for codes in found.dummies) + int(found.missing_seen.sum())
        _require(
            found.model.n_features == width, f"the model reads {found.model.n_features} numbers, and there are {width}"
        )
    if found.learner == "ridge" and found.classes is not None:
        n_models = 1 if found.model.alpha.ndim == 1 else found.model.alpha.shape[1]
        _require(len(found.classes) == (2 if n_models == 1 else n_models), "there are not so many classes as models")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _are_codes(codes: Any, n_levels: int) -> bool:
    if not isinstance(codes, np.ndarray) or codes.ndim != 1 or codes.dtype.kind not in "iuf":
        return False
    return bool(((codes >= 0) & (codes < n_levels) & (codes == np.floor(codes))).all())


def _require_codes(found: TableModel) -> None:
    """Raise ValueError unless the levels of a tree or of rules are codes of the table's levels."""
    model = found.model
    _require(model.n_features == len(found.columns), f"the model reads {model.n_features} columns")
    held = model.categories if isinstance(model, Tree) else model.levels
    for codes, levels in zip(held, found.levels, strict=True):
        _require((codes is None) == (levels is None), "the model has other categories than the table")
        if levels is not None:
            _require(_are_codes(codes, len(levels)), "the model's categories are no codes of the table's")
