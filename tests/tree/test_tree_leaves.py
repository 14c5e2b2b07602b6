"""Medians and linear models of leaves against one leaf at a time."""

from fractions import Fraction

import numpy as np
import pytest
import tree_general_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st

from kernelrules.tree.leaves import linear_models, median_values, weighted_median
from kernelrules.tree.medians import range_medians

CHAIN = np.array([2, -1, 4, -1, -1])  # leaves 1, 3 and 4
whole_pairs = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=12)


def naive_median(pairs):
    return float(oracle.median([(Fraction(y), Fraction(w)) for y, w in pairs]))


@given(whole_pairs.filter(lambda pairs: any(w for _, w in pairs)))
def test_weighted_median(pairs):
    y, w = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    assert weighted_median(y, w) == naive_median([(a, b) for a, b in pairs if b])
    assert weighted_median(np.repeat(y, w.astype(int)), np.ones(int(w.sum()))) == np.median(np.repeat(y, w.astype(int)))


@given(whole_pairs, st.data())
def test_medians_of_stretches(pairs, data):
    y, w = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    bounds = data.draw(st.lists(st.tuples(*[st.integers(0, len(y))] * 2), min_size=1, max_size=5))
    start, stop = np.sort(np.array(bounds), axis=1).T
    found = range_medians(y, w, start, stop)
    for k in range(len(start)):
        here = slice(start[k], stop[k])
        losses = [(w[here] * np.abs(y[here] - m)).sum() for m in y[here]]
        assert found.loss[k] == pytest.approx(min(losses, default=0.0), abs=1e-12)


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([1, 3, 4]), st.integers(1, 2)), min_size=1, max_size=20))
def test_medians_of_nodes(rows):
    y, leaf, w = (np.array(column) for column in zip(*rows, strict=True))
    medians = median_values(y.astype(float), w.astype(float), leaf, CHAIN)
    for node, below in enumerate([{1, 3, 4}, {1}, {3, 4}, {3}, {4}]):
        here = [(int(a), int(b)) for a, c, b in rows if c in below]
        if here:
            assert medians[node] == naive_median(here)
        else:
            assert np.isnan(medians[node])
    two = median_values(np.column_stack([y, -y]).astype(float), w.astype(float), leaf, CHAIN)
    np.testing.assert_array_equal(two, np.column_stack([medians, -medians]))


def test_half_of_rounded_weights_is_half():
    y, w = np.array([1.0, 1.0, 1.0, 2.0]), np.array([0.1, 0.1, 0.1, 0.3])
    assert weighted_median(y, w) == 1.5


# ---- linear models ------------------------------------------------------------------------------------------------


def naive_model(x, y, w, ridge):
    """By the normal equations of standardised columns, with a constant that is not shrunk."""
    mean, level = np.average(x, axis=0, weights=w), np.average(y, weights=w)
    spread = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w))
    z = (x - mean) / spread
    slopes = np.linalg.solve((z.T * w) @ z + ridge * np.eye(x.shape[1]), (z.T * w) @ (y - level)) / spread
    return np.append(slopes, level - mean @ slopes)


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_models_of_leaves(n, ridge):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * n, 5)) * [1, 10, 0.1, 1e6, 1] + [0, 5, 0, 1e7, 0]
    y, w = X[:, 0] - X[:, 2] + rng.normal(size=3 * n), rng.integers(1, 4, size=3 * n).astype(float)
    leaf = rng.permutation(np.repeat([1, 3, 4], n))
    models = linear_models(X, y, w, leaf, 5, ridge)
    for node in (1, 3, 4):
        here = leaf == node
        np.testing.assert_allclose(models[node], naive_model(X[here], y[here], w[here], ridge), rtol=1e-6, atol=1e-9)
        twice = np.repeat(np.flatnonzero(here), w[here].astype(int))
        again = linear_models(X[twice], y[twice], None, np.full(len(twice), node), 5, ridge)
        np.testing.assert_allclose(models[node], again[node], rtol=1e-6, atol=1e-9)
    assert (models[[0, 2]] == 0).all()


def test_models_leave_out_categories_and_constants():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=30), rng.integers(3, size=30), np.full(30, 7.0), rng.normal(size=30)])
    y = 3 * X[:, 0] + X[:, 1] + 2
    model = linear_models(X, y, None, np.zeros(30, dtype=int), 1, n_levels=np.array([0, 3, 0, 0]))[0]
    assert model[1] == model[2] == 0
    np.testing.assert_allclose(
        model[[0, 3, 4]], linear_models(X[:, [0, 3]], y, None, np.zeros(30, dtype=int), 1)[0], rtol=1e-12
    )


def test_missing_values_are_filled():
    X = np.array([[1.0], [np.nan], [3.0]])
    filled = np.array([[1.0], [5.0], [3.0]])
    y, leaf = np.array([1.0, 2.0, 3.0]), np.zeros(3, dtype=int)
    np.testing.assert_array_equal(
        linear_models(X, y, None, leaf, 1, fill=np.array([5.0])), linear_models(filled, y, None, leaf, 1)
    )


def test_a_leaf_of_one_row_or_one_target_is_constant():
    X = np.array([[1.0], [2.0], [3.0]])
    models = linear_models(X, np.array([[4.0], [6.0], [6.0]]), np.array([1.0, 1.0, 1.0]), np.array([1, 2, 2]), 3)
    np.testing.assert_array_equal(models, [[0, 0], [0, 4], [0, 6]])


def test_rows_without_weight_do_not_count():
    X = np.array([[0.0], [1.0], [2.0], [50.0]])
    y, w, leaf = np.array([0.0, 1.0, 2.0, -99.0]), np.array([1.0, 1.0, 1.0, 0.0]), np.zeros(4, dtype=int)
    np.testing.assert_array_equal(linear_models(X, y, w, leaf, 1), linear_models(X[:3], y[:3], None, leaf[:3], 1))
