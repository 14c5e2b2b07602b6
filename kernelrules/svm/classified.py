"""Labelled data ordered by class, so that the points of any class are one run: what the machines of a classification
are cut from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.kernels.values import reorder, resolve, take
from kernelrules.results import SVMModel
from kernelrules.svm.centre import at_origin, centred
from kernelrules.svm.machines import Fitted, Split, build_model

__all__ = ["Classified"]


@dataclass(frozen=True, eq=False)
class Classified:
    """Data ordered by class; row i of it is row order[i] of the user's."""

    x: Any
    kernel: Any
    classes: np.ndarray
    weight: np.ndarray
    order: np.ndarray
    spans: list[tuple[int, int]]
    n_rows: int
    n_features: int
    given: Any = None  # the data as they were, where x has been moved
    centre: np.ndarray | None = None  # how far

    @classmethod
    def read(cls, X: Any, y: Any, kernel: Any, class_weight: Any, sample_weight: Any) -> Classified:
        """Check and order the data; rows of weight 0 are left out."""
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
        given = None if centre is None else ordered
        factor = (weight * factors[codes])[order]
        return cls(moved, resolved, classes, factor, order, spans, n, n_features, given, centre)

    def splits(self, multiclass: str) -> list[Split]:
        """The machines: positive is classes[1] of two, the first of a pair, the one of one against the rest."""
        n_classes, spans = len(self.classes), self.spans
        sizes = [last - first for first, last in spans]
        if n_classes == 2:
            return [Split([spans[1], spans[0]], sizes[1])]
        if multiclass == "ovo":
            return [Split([spans[i], spans[j]], sizes[i]) for i, j in combinations(range(n_classes), 2)]
        n = spans[-1][1]
        others = [[(a, b) for a, b in ((0, first), (last, n)) if b > a] for first, last in spans]
        return [Split([spans[k], *others[k]], sizes[k]) for k in range(n_classes)]

    def model(self, kind: str, multiclass: str, machines: list[Fitted], n_computed: int) -> SVMModel:
        """The model, with support vectors numbered as the user's rows."""
        model = build_model(
            self.x if self.given is None else self.given, self.kernel, kind, machines, self.order, self.n_rows,
            self.n_features, n_computed, classes=self.classes, multiclass=multiclass,
        )  # fmt: skip
        return at_origin(model, self.centre)
