"""What held-out rows lose: the measures of `cross_validate`.

Losses of classes are a table of node and class, those of numbers one of the losses that the core knows, so that one
walk up from a row's leaf has them all. A function of the user's sees what whole trees predict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules import tree as trees
from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.prune._common import CLASS_LOSSES
from kernelrules.results import Tree

__all__ = ["Measure", "asked", "read_costs", "read_measure"]

_OF_NUMBERS = ("squared_error", "absolute_error")


@dataclass(frozen=True, eq=False)
class Measure:
    """A measure, and the classes of all rows, of which a fold may lack some; none for regression."""

    name: str
    classes: np.ndarray
    costs: np.ndarray | None = None  # of answering with the class of the column where that of the row is right
    function: Callable[[Any, Any], Any] | None = None

    def by_class(self, grown: Tree) -> np.ndarray:
        """Loss of every node about every class, (n_nodes, n_classes). The tree's classes are numbers of classes."""
        return self._of_shares(grown, grown.value)

    def of_rows(self, pruned: Tree, X: Any, y: np.ndarray) -> np.ndarray:
        """Losses (n,) of rows that the tree predicts; y are numbers of classes, or targets."""
        if len(self.classes) == 0:
            told = trees.predict(pruned, X)
            if self.function is not None:
                return asked(self.function, "measure", y, told)
            return CRITERIA[self.name].row_losses(y.reshape(len(y), -1), told.reshape(len(y), -1)).sum(axis=1)
        shares = trees.predict_proba(pruned, X)
        if self.function is not None:
            answers = self.classes[pruned.classes[shares.argmax(axis=1)]]
            return asked(self.function, "measure", self.classes[y], answers)
        return self._of_shares(pruned, shares)[np.arange(len(y)), y]

    def _of_shares(self, grown: Tree, some: np.ndarray) -> np.ndarray:
        """Return the losses of predicting these class shares, for every true class."""
        shares = np.zeros((len(some), len(self.classes)))
        shares[:, grown.classes] = some
        if self.name == "gini":
            return np.square(shares).sum(axis=1, keepdims=True) - 2 * shares + 1
        if self.name == "entropy":
            with np.errstate(divide="ignore"):
                return -np.log2(shares)
        answers = grown.classes[some.argmax(axis=1)]
        if self.costs is not None:
            return np.ascontiguousarray(self.costs.T[answers])
        return (np.arange(len(self.classes)) != answers[:, None]).astype(np.float64)


def asked(function: Callable[[Any, Any], Any], name: str, y: Any, told: Any, finite: bool = False) -> np.ndarray:
    """Losses (n,) that the user's function gives, checked; `name` is that of the argument that it was given as."""
    losses = np.asarray(function(y, told))
    if losses.shape != (len(y),) or losses.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must give a number for each row, but for {len(y)} rows it gave an array of shape "
            f"{losses.shape} and dtype {losses.dtype}"
        )
    bad = np.flatnonzero(~(losses >= 0))
    if len(bad):
        raise ValueError(f"{name} must give numbers of at least 0, but gave {check.shown(losses[bad[0]])}")
    losses = losses.astype(np.float64)
    if finite and not np.isfinite(losses).all():
        raise ValueError(f"{name} must give finite numbers, but gave inf")
    return losses


def read_costs(costs: Any, name: str, k: int) -> np.ndarray:
    """A matrix of costs of k classes, checked."""
    table = check.matrix(costs, name, dtype=np.float64)
    if isinstance(table, check.Csr) or table.shape != (k, k):
        raise ValueError(f"{name} must be a {k} × {k} array of costs, got shape {table.shape}")
    if (table < 0).any():
        row, column = np.argwhere(table < 0)[0]
        raise ValueError(f"{name} must hold costs of at least 0, got {table[row, column]} at ({row}, {column})")
    return table


def read_measure(measure: Any, grown: Tree, classes: np.ndarray) -> Measure:
    """What a user's `measure` means for a tree grown on all rows, and their classes; None is the default."""
    of_classes = grown.classes is not None
    allowed = CLASS_LOSSES if of_classes else tuple(dict.fromkeys((grown.criterion, *_OF_NUMBERS)))
    if measure is None:
        return Measure(allowed[0], classes)
    if isinstance(measure, str) and measure in allowed:
        return Measure(measure, classes)
    if callable(measure):
        return Measure(getattr(measure, "__name__", type(measure).__name__), classes, function=measure)
    if not of_classes or isinstance(measure, str) or np.ndim(measure) != 2:
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        more = "a matrix of costs, " if of_classes else ""
        raise ValueError(
            f"measure must be one of {choices}, {more}or a function, for a tree grown by {grown.criterion}, got "
            f"{measure!r}"
        )
    return Measure("costs", classes, costs=read_costs(measure, "measure", len(classes)))
