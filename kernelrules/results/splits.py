"""The values that a split of a tree sends to either side, as conditions.

Left: x ≤ threshold, or the levels whose flag is 1. Right: the others. Missing and unseen values go to the side to which
prediction sends them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules.results.linear import fills_splits
from kernelrules.results.rules import UNSEEN, Condition

__all__ = ["Allowed", "condition_of", "side_condition", "sides"]


@dataclass(frozen=True)
class Allowed:
    """The values of a column that lead to a node: an interval, or codes of levels."""

    low: float = -np.inf
    high: float = np.inf
    codes: frozenset[int] | None = None
    missing: bool = True

    def within(self, other: Allowed) -> Allowed:
        """Return the values that both allow."""
        codes = other.codes if self.codes is None else self.codes & other.codes
        return Allowed(max(self.low, other.low), min(self.high, other.high), codes, self.missing and other.missing)


def side_condition(tree: Any, node: int, *, left: bool) -> Condition:
    """Return the condition of the rows that a split sends to one side."""
    right_and_left = sides(tree, node)
    return condition_of(int(tree.feature[node]), right_and_left[left], {})


def condition_of(column: int, allowed: Allowed, made: dict[tuple[int, Allowed], Condition]) -> Condition:
    """Return the condition, the same object for the same values, because large trees repeat them."""
    condition = made.get((column, allowed))
    if condition is None:
        codes = None if allowed.codes is None else tuple(sorted(allowed.codes))
        condition = Condition(column, float(allowed.low), float(allowed.high), codes, allowed.missing)
        made[column, allowed] = condition
    return condition


def sides(tree: Any, node: int) -> tuple[Allowed, Allowed]:
    """Return the values that a split sends right, and left."""
    column, threshold, start = int(tree.feature[node]), float(tree.threshold[node]), int(tree.subset_start[node])
    larger_left = bool(tree.weight[tree.left[node]] >= tree.weight[tree.right[node]])
    missing_left = bool(tree.missing_left[node])
    if start < 0:
        if fills_splits(tree) and column < tree.n_features:  # sums are computed from filled values
            missing_left = bool(tree.fill[column] <= threshold)
        return Allowed(low=threshold, missing=not missing_left), Allowed(high=threshold, missing=missing_left)
    flags = tree.subset_left[start : start + len(tree.categories[column])]
    to_left = (flags == 1) | ((flags == 2) & larger_left)
    codes = (frozenset(np.flatnonzero(~to_left).tolist()), frozenset(np.flatnonzero(to_left).tolist()))
    if fills_splits(tree) and len(flags):
        missing_left = bool(to_left[int(tree.fill[column])])
    right, left = (
        with_unseen | ({UNSEEN} if here else set())
        for with_unseen, here in zip(codes, (not larger_left, larger_left), strict=True)
    )
    return Allowed(codes=right, missing=not missing_left), Allowed(codes=left, missing=missing_left)
