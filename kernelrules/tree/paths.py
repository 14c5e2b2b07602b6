"""The way to each leaf of a tree as conditions, one a column or sum of columns: A ≤ 2 and A ≤ 5 is A ≤ 2.

Invariant: a row comes to a leaf exactly if it satisfies the leaf's conditions, missing values and levels that training
did not have included. Trees whose ways are no conjunctions of tests are refused.
"""

from __future__ import annotations

import numpy as np

from kernelrules.results import Condition, Tree
from kernelrules.results.splits import Allowed, condition_of, sides

__all__ = ["leaf_conditions", "require_conjunctions"]

_REASONS = {
    "surrogate": "splits of other columns stand in for missing values",
    "fractional": "rows with missing values come to several leaves at once",
}


def require_conjunctions(tree: Tree, approximate: bool) -> None:
    """Refuse trees whose leaves are no conjunctions of tests."""
    has_surrogates = tree.surrogates is not None and len(tree.surrogates.feature) > 0
    if not approximate and (has_surrogates or tree.missing == "fractional"):
        raise ValueError(
            f'the tree was grown with missing="{tree.missing}": {_REASONS[tree.missing]}, which no rule can say. '
            "In rules.extract(t, approximate=True) missing values go with the larger child, and rows without them are "
            "predicted as by the tree"
        )


def leaf_conditions(tree: Tree, *, approximate: bool = False) -> tuple[np.ndarray, list[tuple[Condition, ...]]]:
    """Conditions for each leaf.

    Parameters
    ----------
    tree : Tree
        What `grow` returned. An oblique split is a condition on column n_features + k, row k of its `directions`.
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
    require_conjunctions(tree, approximate)
    made: dict[tuple[int, Allowed], Condition] = {}
    leaves, found = [], []
    waiting: list[tuple[int, dict[int, Allowed]]] = [(0, {})]
    while waiting:
        node, way = waiting.pop()
        if tree.left[node] < 0:
            leaves.append(node)
            found.append(tuple(condition_of(column, allowed, made) for column, allowed in way.items()))
            continue
        column = int(tree.feature[node])
        here = way.get(column, Allowed())
        for child, allowed in zip((tree.right[node], tree.left[node]), sides(tree, node), strict=True):
            waiting.append((int(child), way | {column: here.within(allowed)}))
    return np.array(leaves), found
