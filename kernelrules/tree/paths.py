"""The way to each leaf of a tree as conditions, one a column: A ≤ 2 and A ≤ 5 is A ≤ 2.

Invariant: a row comes to a leaf exactly if it satisfies the leaf's conditions, missing values and levels that training
did not have included. Trees whose ways are no conjunctions of tests of single columns are refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelrules.results import Condition, Tree
from kernelrules.results.rules import UNSEEN

__all__ = ["leaf_conditions", "require_axis_splits", "side_condition"]

_REASONS = {
    "surrogate": "splits of other columns stand in for missing values",
    "fractional": "rows with missing values come to several leaves at once",
}


@dataclass(frozen=True)
class _Allowed:
    """The values of a column that lead to a node: an interval, or codes of levels."""

    low: float = -np.inf
    high: float = np.inf
    codes: frozenset[int] | None = None
    missing: bool = True

    def within(self, other: _Allowed) -> _Allowed:
        """Those that the other allows as well."""
        codes = other.codes if self.codes is None else self.codes & other.codes
        return _Allowed(max(self.low, other.low), min(self.high, other.high), codes, self.missing and other.missing)


def require_axis_splits(tree: Tree, approximate: bool) -> None:
    """Refuse trees whose leaves are no boxes."""
    if tree.directions is not None and (tree.feature >= tree.n_features).any():
        raise ValueError("rules have conditions on single columns, but the tree has oblique splits")
    if tree.linear is not None:
        raise ValueError("rules predict constants, but the tree's leaves have linear models")
    has_surrogates = tree.surrogates is not None and len(tree.surrogates.feature) > 0
    if not approximate and (has_surrogates or tree.missing == "fractional"):
        raise ValueError(
            f'the tree was grown with missing="{tree.missing}": {_REASONS[tree.missing]}, which no rule can say; with '
            "approximate=True missing values go with the larger child, and rows without them are predicted as by the "
            "tree"
        )


def leaf_conditions(tree: Tree, *, approximate: bool = False) -> tuple[np.ndarray, list[tuple[Condition, ...]]]:
    """Conditions for each leaf.

    Parameters
    ----------
    tree : Tree
        What `grow` returned, with splits of single columns and constant leaves.
    approximate : bool
        Whether to take surrogates and fractions for the larger child.

    Returns
    -------
    leaves : ndarray
        Numbers of nodes, ascending.
    conditions : list of tuple of Condition
        For each leaf, in the order in which the columns come on the way.

    Examples
    --------
    >>> from kernelrules import tree
    >>> grown = tree.grow([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "a"], missing="error")
    >>> [(c.low, c.high) for way in leaf_conditions(grown)[1] for c in way]
    [(-inf, 0.5), (0.5, 2.5), (2.5, inf)]
    """
    require_axis_splits(tree, approximate)
    made: dict[tuple[int, _Allowed], Condition] = {}
    leaves, found = [], []
    waiting: list[tuple[int, dict[int, _Allowed]]] = [(0, {})]
    while waiting:
        node, way = waiting.pop()
        if tree.left[node] < 0:
            leaves.append(node)
            found.append(tuple(_condition(column, allowed, made) for column, allowed in way.items()))
            continue
        column = int(tree.feature[node])
        here = way.get(column, _Allowed())
        for child, allowed in zip((tree.right[node], tree.left[node]), _sides(tree, node), strict=True):
            waiting.append((int(child), way | {column: here.within(allowed)}))
    return np.array(leaves), found


def side_condition(tree: Tree, node: int, *, left: bool) -> Condition:
    """What is true of the rows that a split of a single column sends to one side, of those that come to it."""
    right_and_left = _sides(tree, node)
    return _condition(int(tree.feature[node]), right_and_left[left], {})


def _condition(column: int, allowed: _Allowed, made: dict[tuple[int, _Allowed], Condition]) -> Condition:
    """The condition, the same object for the same values: a large tree asks the same often."""
    condition = made.get((column, allowed))
    if condition is None:
        codes = None if allowed.codes is None else tuple(sorted(allowed.codes))
        condition = Condition(column, float(allowed.low), float(allowed.high), codes, allowed.missing)
        made[column, allowed] = condition
    return condition


def _sides(tree: Tree, node: int) -> tuple[_Allowed, _Allowed]:
    """What a split lets to the right and to the left."""
    column, threshold, start = int(tree.feature[node]), float(tree.threshold[node]), int(tree.subset_start[node])
    larger_left = bool(tree.weight[tree.left[node]] >= tree.weight[tree.right[node]])
    missing_left = bool(tree.missing_left[node])
    if start < 0:
        if tree.fill is not None:
            missing_left = bool(tree.fill[column] <= threshold)
        return _Allowed(low=threshold, missing=not missing_left), _Allowed(high=threshold, missing=missing_left)
    flags = tree.subset_left[start : start + len(tree.categories[column])]
    to_left = (flags == 1) | ((flags == 2) & larger_left)
    codes = (frozenset(np.flatnonzero(~to_left).tolist()), frozenset(np.flatnonzero(to_left).tolist()))
    if tree.fill is not None and len(flags):
        missing_left = bool(to_left[int(tree.fill[column])])
    right, left = (
        with_unseen | ({UNSEEN} if here else set())
        for with_unseen, here in zip(codes, (not larger_left, larger_left), strict=True)
    )
    return _Allowed(codes=right, missing=not missing_left), _Allowed(codes=left, missing=missing_left)
