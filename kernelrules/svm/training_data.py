"""Training data, checked and without rows of weight 0: labelled rows ordered by class, and rows with targets.

Labelled rows are ordered by class so that the points of every class are one run (first, last): the machines of a
classification are splits of such runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.kernels.values import reorder, resolve, take
from kernelrules.results import SVMModel
from kernelrules.svm.centring import centred, undo_centring
from kernelrules.svm.hard_margin.errors import NotSeparable, Undecided
from kernelrules.svm.machines import Fitted, Split, build_model
from kernelrules.svm.settings import MAX_ABS_TARGET

__all__ = ["LabelledData", "WeightedRows", "read_targets", "read_weighted"]


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows of positive weight; row i is row kept[i] of the user's n_rows rows."""

    x: Any
    weight: np.ndarray
    kept: np.ndarray
    n_rows: int
    n_features: int


def read_weighted(X: Any, sample_weight: Any, kernel: Any) -> WeightedRows:
    """Check data and weights, and drop the rows of weight 0."""
    x = check.matrix(X)
    n, n_features = x.shape
    if n == 0:
        raise ValueError("X has no rows")
    weight = check.weights(sample_weight, n)
    kept = np.flatnonzero(weight > 0)
    return WeightedRows(x if len(kept) == n else reorder(x, kept, kernel), weight[kept], kept, n, n_features)


def read_targets(X: Any, y: Any, sample_weight: Any, kernel: Any) -> tuple[WeightedRows, np.ndarray]:
    """Check the data of a regression; returns its rows and their targets."""
    data = read_weighted(X, sample_weight, kernel)
    target = check.targets(y, data.n_rows)[data.kept]
    largest = np.abs(target).max(initial=0.0)
    if largest > MAX_ABS_TARGET:
        raise ValueError(f"y holds numbers as large as {largest:.3g}: use smaller units, up to {MAX_ABS_TARGET:g}")
    return data, target


@dataclass(frozen=True, eq=False)
class LabelledData:
    """Labelled rows ordered by class; row i is row order[i] of the user's.

    `weight` has the factors of C, `spans` the run of each class.
    """

    x: Any
    kernel: Any
    classes: np.ndarray
    weight: np.ndarray
    order: np.ndarray
    spans: list[tuple[int, int]]
    n_rows: int
    n_features: int
    uncentred: Any = None  # the rows before centring; None if x is not centred
    centre: np.ndarray | None = None  # what was subtracted from them

    @classmethod
    def read(cls, X: Any, y: Any, kernel: Any, class_weight: Any, sample_weight: Any) -> LabelledData:
        """Check and order the data, and drop the rows of weight 0."""
        x = check.matrix(X)
        n, n_features = x.shape
        if n == 0:
            raise ValueError("X has no rows")
        classes, codes = check.labels(y, n)
        weight = check.weights(sample_weight, n)
        kept = np.flatnonzero(weight > 0)
        order = kept[np.argsort(codes[kept], kind="stable")]
        counts = np.bincount(codes[kept], minlength=len(classes))
        check.require_classes(classes, counts)
        factors = check.class_factors(class_weight, classes, counts)
        resolved = resolve(kernel, x if len(kept) == n else take(x, kept))
        ends = np.cumsum(counts)
        spans = [(int(end - count), int(end)) for end, count in zip(ends, counts, strict=True)]
        ordered = x if np.array_equal(order, np.arange(n)) else reorder(x, order, kernel)
        moved, centre = centred(ordered, resolved)
        uncentred = None if centre is None else ordered
        factor = (weight * factors[codes])[order]
        return cls(moved, resolved, classes, factor, order, spans, n, n_features, uncentred, centre)

    def splits(self, multiclass: str) -> list[Split]:
        """Return one split per machine.

        The positive class is classes[1] of two classes, the first of a pair, or the one against the rest.
        """
        n_classes, spans = len(self.classes), self.spans
        sizes = [last - first for first, last in spans]
        if n_classes == 2:
            return [Split([spans[1], spans[0]], sizes[1])]
        if multiclass == "ovo":
            return [Split([spans[i], spans[j]], sizes[i]) for i, j in combinations(range(n_classes), 2)]
        n = spans[-1][1]
        others = [[(a, b) for a, b in ((0, first), (last, n)) if b > a] for first, last in spans]
        return [Split([spans[k], *others[k]], sizes[k]) for k in range(n_classes)]

    def without_centring(self) -> LabelledData:
        """Return the data as the user gave them, which proofs of separability are about."""
        return self if self.uncentred is None else replace(self, x=self.uncentred, uncentred=None, centre=None)

    @contextmanager
    def errors_in_user_rows(self, multiclass: str) -> Iterator[None]:
        """Translate points in NotSeparable and Undecided raised inside into the user's rows and classes."""
        try:
            yield
        except (NotSeparable, Undecided) as error:
            if error.rows is None:
                raise
            ends = [last for _, last in self.spans]
            first, second = (self.classes[np.searchsorted(ends, part[0], side="right")] for part in error.rows)
            rest = multiclass == "ovr" and len(self.classes) > 2
            raise error.renumbered(self.order).about(first, None if rest else second) from None

    def model(self, kind: str, multiclass: str, machines: list[Fitted], n_computed: int) -> SVMModel:
        """Return the model, with support vectors numbered as the user's rows."""
        x = self.x if self.uncentred is None else self.uncentred
        rows = WeightedRows(x, self.weight, self.order, self.n_rows, self.n_features)
        model = build_model(rows, self.kernel, kind, machines, n_computed)
        return undo_centring(replace(model, classes=self.classes, multiclass=multiclass), self.centre)
