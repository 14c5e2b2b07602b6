"""Subtree raising where missing values send parts of rows down both sides, against the slow way."""

import importlib

import numpy as np
import prune_oracle as oracle

from kernelrules import prune
from kernelrules import tree as trees
from kernelrules.prune.raising import raised

reduced_error = importlib.import_module("kernelrules.prune.reduced_error")  # the name in prune is the function


def test_raising_where_rows_come_apart():
    """Against all rows sent down anew for every estimate; and the new tree's walk finds its own weights."""
    raised_somewhere = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.round(rng.normal(size=(70, 4)), 1)
        y = (X[:, 0] + rng.normal(size=70) > 0).astype(int)
        X[rng.random(X.shape) < 0.15] = np.nan
        weight = rng.integers(1, 3, 70).astype(float)
        grown = trees.grow(X, y, missing="fractional", sample_weight=weight, criterion="gain_ratio", min_leaf=2)
        tree = prune.snip(grown, np.flatnonzero(collapsed(grown)))

        def sides(node, some, tree=tree, X=X, weight=weight):
            values = {row: X[row, tree.feature[node]] for row in some}
            left = {row: part for row, part in some.items() if values[row] <= tree.threshold[node]}
            right = {row: part for row, part in some.items() if values[row] > tree.threshold[node]}
            on_left, on_right = (sum(weight[row] * part for row, part in side.items()) for side in (left, right))
            if on_left + on_right == 0:
                on_left, on_right = tree.weight[tree.left[node]], tree.weight[tree.right[node]]
            share = on_left / (on_left + on_right)
            apart = {row: part for row, part in some.items() if np.isnan(values[row])}
            left |= {row: part * share for row, part in apart.items() if share > 0}
            right |= {row: part * (1 - share) for row, part in apart.items() if share < 1}
            return left, right

        def counts(some, y=y, weight=weight):
            return [sum(weight[row] * part for row, part in some.items() if y[row] == k) for k in (0, 1)]

        told = oracle.raised_in_parts(tree, dict.fromkeys(range(70), 1.0), sides, counts, 0.25)
        pruned = prune.pessimistic(grown, raising=True, X=X, y=y, sample_weight=weight)
        leaf = pruned.left < 0
        found = pruned.value[leaf] * pruned.weight[leaf, None]
        np.testing.assert_allclose(found, [counts(some) for some in told], atol=1e-9)
        np.testing.assert_allclose(pruned.n_samples[leaf], [sum(some.values()) for some in told], atol=1e-9)
        by_leaf = reduced_error._weights_by_leaf(pruned, X, trees.apply(pruned, X), y, weight, 1)
        np.testing.assert_allclose(by_leaf[leaf], found, atol=1e-9)
        same = raised(grown, lambda counts: counts.sum(axis=1), -np.inf, X, y, weight)  # nothing is good enough
        for name in ("value", "weight", "n_samples", "impurity", "gain"):
            np.testing.assert_allclose(getattr(same, name), getattr(grown, name), atol=1e-9)
        raised_somewhere += not np.isclose(pruned.weight[:, None], grown.weight).any(axis=1).all()
    assert raised_somewhere >= 2


def collapsed(tree):
    """Nodes whose subtree saves no training error."""
    wrong = tree.weight * (1 - tree.value.max(axis=1))
    return np.array(
        [sum(wrong[leaf] for leaf in oracle.leaves_below(tree, t, ())) >= wrong[t] - 1e-3 for t in range(tree.n_nodes)]
    )
