"""What a review of the trees found, each as the smallest case that showed it."""

import numpy as np
import pytest

from kernelrules import tree as trees


def leaves_hold_their_rows(tree, X):
    counts = np.bincount(trees.apply(tree, X), minlength=tree.n_nodes)
    leaf = tree.left < 0
    return np.array_equal(counts[leaf], tree.n_samples[leaf])


def test_the_majority_of_one_column_with_surrogates():
    X = np.arange(1000.0)[:, None]
    for _ in range(5):
        tree = trees.grow(X, (X[:, 0] < 900).astype(int), missing="surrogate")
        assert tree.missing_left[0]
        assert trees.predict(tree, [[np.nan]]) == 1


@pytest.mark.parametrize("seed", range(12))
def test_surrogates_are_cuts_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] > 3).astype(int)
    y[X[:, 0].argmax()] = 1
    weight = rng.random(2000)
    weight[y == 1] = 1e-3
    X[(rng.random(2000) < 0.3) & (y == 0), 0] = np.nan
    tree = trees.grow(X, y, sample_weight=weight, missing="surrogate")
    assert not np.isnan(tree.surrogates.threshold).any()
    assert leaves_hold_their_rows(tree, X)


def test_medians_of_fractions_of_rows():
    nan = np.nan
    X = [[2, 2], [nan, 1], [nan, 0], [nan, 1], [0, 2], [1, nan]]
    y = [8, 3, 6, 2, 0, 8.0]
    tree = trees.grow(X, y, criterion="absolute_error", missing="fractional")
    assert np.isfinite(tree.value).all()
    assert np.isfinite(trees.predict(tree, X)).all()
    for leaf in ("median", "linear"):
        with pytest.raises(ValueError, match="fractional"):
            trees.grow(X, y, criterion="squared_error", missing="fractional", leaf=leaf)


def test_many_classes_and_categories_do_not_take_for_ever():
    """Power iterations in every tiny node took minutes; now the tree of 300 classes takes a fraction of a second."""
    rng = np.random.default_rng(0)
    y, X = rng.integers(300, size=2000), rng.integers(40, size=(2000, 1)).astype(float)
    tree = trees.grow(X, y, categorical=[0], max_depth=6)
    assert tree.depth == 6
    assert leaves_hold_their_rows(tree, X)


def test_weights_that_vanish_beside_the_others():
    weight = [0.1, 0.2, 0.3, 0.7, 0.11, 1e-17]
    X, y = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1.0]
    tree = trees.grow(X, y, criterion="squared_error", max_depth=1, sample_weight=weight)
    assert tree.threshold[0] == 2.5
    assert np.isfinite(tree.gain).all()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        w = rng.random(300) ** 20
        grown = trees.grow(rng.normal(size=(300, 2)), rng.integers(2, size=300), sample_weight=w)
        assert np.isfinite(grown.gain).all()
        assert (grown.gain >= 0).all()


def test_max_leaves_is_best_first_for_every_grower():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300) > 0).astype(int)
    expected = trees.grow(X, y, max_leaves=5).gain.sum()
    for growth in ("depth", "best"):
        own = trees.grow(X, y, max_leaves=5, growth=growth, criterion=lambda P: 1 - (P**2).sum(axis=1))
        np.testing.assert_allclose(own.gain.sum(), expected, rtol=1e-12)


def test_weights_whose_sum_overflows_are_refused():
    X, y = np.arange(8.0)[:, None], [0, 1] * 4
    with pytest.raises(ValueError, match="sample_weight"):
        trees.grow(X, y, sample_weight=[1e308] * 8)
    for weight in ([1e308] + [1e300] * 7, [1e-300] + [1e300] * 7):
        tree = trees.grow(X, y, sample_weight=weight)
        assert np.isfinite(tree.value).all()
    tree = trees.grow(X, [1e-300, 1e150] * 4, criterion="squared_error")
    assert np.isfinite(tree.value).all()


@pytest.mark.parametrize("criterion", ["entropy", "gain_ratio", "gini"])
def test_equal_splits_of_three_classes_go_to_the_lowest_column(criterion):
    """Left counts that are rotations of one another, whose sums of logarithms are rounded differently."""
    y = np.repeat([0, 1, 2], 8)
    counts = np.array([7, 5, 8])
    columns = []
    for turn in (2, 0, 1):
        left = np.roll(counts, turn)
        columns.append(np.concatenate([np.arange(8) >= k for k in left]).astype(float))
    assert trees.grow(np.column_stack(columns), y, criterion=criterion, max_depth=1).feature[0] == 0


def test_linear_models_are_looked_for_within_their_array():
    from dataclasses import replace

    X = np.random.default_rng(0).normal(size=(60, 2))
    tree = trees.grow(X, X[:, 0] ** 2, criterion="squared_error", max_depth=2, leaf="linear")
    with pytest.raises(ValueError, match="models"):
        trees.predict(replace(tree, linear=tree.linear[:1].copy()), X)


def test_progress_of_the_general_grower():
    X = np.random.default_rng(0).normal(size=(80, 2))
    seen = []
    trees.grow(X, X[:, 0] > 0.3 * X[:, 1], criterion=lambda P: 1 - (P**2).sum(axis=1), callback=seen.append)
    assert seen
    assert seen[-1].done == seen[-1].total


@pytest.mark.parametrize("name", ["max_leaves", "max_depth", "min_leaf", "min_split"])
def test_huge_limits(name):
    tree = trees.grow([[0.0], [1.0], [2.0]], [0, 1, 0], **{name: 2**70})
    assert tree.n_leaves == (1 if name.startswith("min") else 3)


def test_masked_labels_are_refused():
    y = np.ma.array([0, 1, 0, 1], mask=[False, False, True, False])
    with pytest.raises(ValueError, match="y has masked entries, first at position 2"):
        trees.grow(np.arange(4.0)[:, None], y)
