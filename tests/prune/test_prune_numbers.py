"""Description length and M5's estimate for regression trees, against all pruned trees and one leaf at a time."""

import numpy as np
import prune_oracle as oracle
import pytest
from test_prune_methods import leaves_in, noisy

from kernelrules import prune
from kernelrules import tree as trees


@pytest.mark.parametrize(("several", "precision"), [(False, None), (True, None), (False, 0.5), (True, 0.001)])
def test_no_pruned_tree_describes_numbers_in_fewer_bits(several, precision):
    pruned_sizes = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, weight = rng.normal(size=(24, 3)), rng.integers(1, 4, 24).astype(float)
        y = np.where(X[:, :1] > 0, 3.0, 0.0) + rng.normal(size=(24, 2)) * 10.0 ** (seed % 3 - 2)
        y = y if several else y[:, :1]
        tree = trees.grow(X, y if several else y[:, 0], criterion="squared_error", sample_weight=weight, max_leaves=7)
        centred = y - np.average(y, axis=0, weights=weight)
        whole = np.sqrt(np.average((centred**2).mean(axis=1), weights=weight))
        unit = whole / 100 if precision is None else precision
        whole = max(whole, unit / np.sqrt(12))
        inside = trees.decision_path(tree, X).toarray().astype(bool).T
        leaf = [1 + oracle.number_bits(y[rows].tolist(), weight[rows].tolist(), whole, unit) for rows in inside]
        split = [1 + np.log2(3) + np.log2(max(tree.weight[node] - 1, 1)) for node in range(tree.n_nodes)]

        def bits(leaves, tree=tree, leaf=leaf, split=split):
            total, stack = 0.0, [0]
            while stack:
                node = stack.pop()
                total += leaf[node] if node in leaves else split[node]
                stack += [] if node in leaves else oracle.children(tree, node)
            return total

        pruned = prune.mdl(tree, precision)
        least = min(map(bits, oracle.pruned_trees(tree)))
        assert bits(leaves_in(tree, pruned)) == pytest.approx(least, rel=1e-9)
        pruned_sizes.add(pruned.n_leaves)
    assert len(pruned_sizes) > 1


@pytest.mark.parametrize("scale", [2.0**-530, 2.0**-500, 2.0**400])
def test_description_length_of_extreme_numbers(scale):
    """The square of the default precision underflows for targets of about 1e-160."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0) + 0.1 * rng.normal(size=300)
    sizes = [prune.mdl(trees.grow(X, y * by, criterion="squared_error", min_leaf=3)).n_leaves for by in (1.0, scale)]
    assert sizes[0] == sizes[1] < 10


def test_description_length_of_numbers_does_not_depend_on_their_unit():
    X, _ = noisy(200)
    y = 3.0 * (X[:, 0] > 0) + 0.3 * X[:, 3]
    grown = [
        trees.grow(X, y * scale + shift, criterion="squared_error") for scale, shift in ((1, 0), (1024, 0), (1, 64))
    ]
    kept = [leaves_in(tree, prune.mdl(tree)) for tree in grown]
    assert len(kept[0]) > 1
    assert kept[0] == kept[1] == kept[2]
    flat = trees.grow(X, np.full(200, 7.0), criterion="squared_error")
    assert prune.mdl(flat).n_leaves == prune.pessimistic(flat).n_leaves == 1


def test_description_length_finds_the_steps_and_no_more():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    steps = 2.0 * (X[:, 0] > 0.3) + (X[:, 1] > 0) + 0.3 * rng.normal(size=600)
    assert prune.mdl(trees.grow(X, steps, criterion="squared_error")).n_leaves == 4
    assert prune.mdl(trees.grow(X, rng.normal(size=600), criterion="squared_error")).n_leaves == 1


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_pessimistic_is_m5s_for_numbers(criterion):
    pruned_somewhere = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, weight = rng.normal(size=(30, 3)), rng.integers(1, 3, 30).astype(float)
        y = np.where(X[:, 0] > 0, 3.0, 0.0) + rng.normal(size=30)
        tree = trees.grow(X, y, criterion=criterion, sample_weight=weight, max_leaves=8)
        inside = trees.decision_path(tree, X).toarray().astype(bool).T
        expected = [
            oracle.expected_residuals(y[rows], weight[rows], value, criterion == "squared_error")
            for rows, value in zip(inside, tree.value, strict=True)
        ]
        cost = {leaves: sum(expected[leaf] for leaf in leaves) for leaves in oracle.pruned_trees(tree)}
        pruned = leaves_in(tree, prune.pessimistic(tree))
        assert cost[pruned] == pytest.approx(min(cost.values()), rel=1e-9)
        pruned_somewhere += 1 < len(pruned) < tree.n_leaves
    assert pruned_somewhere >= 2
