"""Relations between trees grown on related data: none of them needs to know the answer.

Where all numbers that are summed are small integers, sums are exact in any order and trees are compared bit for bit.
"""

import numpy as np
import pytest
import tree_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies import csr_forms, layouts
from trees import arrays_of, assert_identical, partition, rows_of_nodes, tables

from kernelrules import tree as trees

# Of these the loss is a sum around a mean that no float may be: its last digits depend on the order of rows.
ROUNDED = {"squared_error": ["impurity"], "poisson": ["impurity"]}

each_criterion = pytest.mark.parametrize("criterion", oracle.CRITERIA)


def data(criterion, n=200, seed=0, *, missing=0.1):
    """Ties, a column of categories (the last), missing values; targets are small integers."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.integers(0, 9, size=n), rng.normal(size=n), rng.integers(-40, 40, size=n), rng.integers(0, 6, size=n)]
    ).astype(float)
    score = X[:, 0] / 4 + X[:, 1] + (X[:, 2] > 5) + (X[:, 3] % 2) + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    if criterion in oracle.CLASSIFICATION:
        return X, np.digitize(score, [1.0, 2.5])
    return X, np.maximum(np.round(2 * score), 0.0)


def grow(X, y, criterion, **options):
    options.setdefault("categorical", [3])
    return trees.grow(X, y, criterion=criterion, **options)


def assert_same_sums(a, b, criterion, but=()):
    """Identical, but for last digits of losses."""
    assert_identical(a, b, but=[*ROUNDED.get(criterion, []), *but])
    np.testing.assert_allclose(a.impurity, b.impurity, rtol=1e-12, atol=1e-300)


def continuous(n=500, p=4, seed=0):
    """No two splits into different parts gain the same squared error (of absolute errors some do)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)


# ---- rows ---------------------------------------------------------------------------------------------------------


@each_criterion
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_row_twice_is_a_row_of_weight_two(criterion, missing):
    X, y = data(criterion, missing=missing)
    twice = np.random.default_rng(1).random(len(y)) < 0.4
    rows = np.concatenate([np.arange(len(y)), np.flatnonzero(twice)])
    weighted = grow(X, y, criterion, sample_weight=1.0 + twice)
    repeated = grow(X[rows], y[rows], criterion)
    assert_same_sums(weighted, repeated, criterion, but=["n_samples"])
    assert repeated.n_samples[0] == len(rows)
    assert weighted.n_samples[0] == len(y)
    plain = grow(X, y, criterion)
    assert not np.array_equal(plain.impurity[:3], weighted.impurity[:3]), "the weights do nothing"


@each_criterion
@pytest.mark.parametrize("growth", ["depth", "best"])
def test_a_row_of_weight_zero_is_absent(criterion, growth):
    X, y = data(criterion, 300)
    kept = np.random.default_rng(2).random(300) < 0.6
    options = {"growth": growth, "max_leaves": 20, "min_leaf": 4, "min_split": 11}
    weighted = grow(X, y, criterion, sample_weight=kept.astype(float), **options)
    assert_identical(weighted, grow(X[kept], y[kept], criterion, **options))
    assert weighted.n_samples[0] == kept.sum()


@each_criterion
@settings(max_examples=15)
@given(st.data())
def test_the_order_of_rows_does_not_matter(criterion, drawn):
    table = drawn.draw(tables(criterion))
    order = np.random.default_rng(drawn.draw(st.integers(0, 99))).permutation(len(table.y))
    weight = None if table.weight is None else table.weight[order]
    permuted = type(table)(table.X[order], table.y[order], weight, table.categorical, criterion)
    assert_same_sums(table.grow(), permuted.grow(), criterion)


@each_criterion
def test_the_order_of_many_rows_does_not_matter(criterion):
    X, y = data(criterion, 400 if criterion == "absolute_error" else 3000)
    order = np.random.default_rng(3).permutation(len(y))
    assert_same_sums(grow(X, y, criterion), grow(X[order], y[order], criterion), criterion)


@each_criterion
@pytest.mark.parametrize("factor", [2.0**-40, 4.0])
def test_the_scale_of_weights_does_not_matter(criterion, factor):
    X, y = data(criterion)
    weight = np.random.default_rng(4).integers(1, 5, size=len(y)).astype(float)
    a, b = (grow(X, y, criterion, sample_weight=scale * weight) for scale in (1.0, factor))
    np.testing.assert_allclose(a.impurity[0], b.impurity[0], rtol=1e-13)
    np.testing.assert_allclose(a.gain[0], b.gain[0], rtol=1e-11)
    # Logarithms of other sums, and means of other sums that are not whole, are rounded otherwise: that may part ties.
    if criterion in ("gini", "misclassification", "absolute_error"):
        assert_identical(a, b, but=["weight"])
        np.testing.assert_array_equal(a.weight * factor, b.weight)


def same_or_refused(plain, again, X):
    """Sums of very large or small numbers must not overflow unseen."""
    try:
        tree = again()
    except ValueError:
        return
    assert partition(tree, X) == partition(plain, X)
    assert np.isfinite(tree.gain).all()


@pytest.mark.parametrize("criterion", oracle.CRITERIA)
@pytest.mark.parametrize("power", [-1000, -600, -300, 300, 600, 1000])
def test_extreme_scales_of_weights(criterion, power):
    X, y = continuous(300)
    y = np.digitize(y, [0.0]) if criterion in oracle.CLASSIFICATION else y - y.min()
    plain, weight = trees.grow(X, y, criterion=criterion, max_depth=3), np.full(300, 2.0**power)
    same_or_refused(plain, lambda: trees.grow(X, y, criterion=criterion, sample_weight=weight, max_depth=3), X)


@pytest.mark.parametrize("criterion", oracle.REGRESSION)
@pytest.mark.parametrize("power", [-1000, -520, -400, 400, 490, 500, 1000])
def test_extreme_scales_of_targets(criterion, power):
    X, y = continuous(3000)
    y = np.round(8 * (y - y.min()))
    plain = trees.grow(X, y, criterion=criterion, max_depth=3)
    same_or_refused(plain, lambda: trees.grow(X, y * 2.0**power, criterion=criterion, max_depth=3), X)


# ---- columns ------------------------------------------------------------------------------------------------------


def test_the_order_of_columns_does_not_matter():
    X, y = continuous()
    order = [2, 0, 3, 1]
    a = trees.grow(X, y, criterion="squared_error", min_leaf=4)
    b = trees.grow(X[:, order], y, criterion="squared_error", min_leaf=4)
    assert a.n_leaves > 50
    assert partition(a, X) == partition(b, X[:, order])


@settings(max_examples=30)
@given(tables("gini", categories=False))
def test_the_order_of_columns_does_not_change_the_gain(table):
    """With ties the parts may differ, the first gain may not."""
    turned = type(table)(table.X[:, ::-1], table.y, table.weight, [], "gini")
    a, b = table.grow(max_depth=1), turned.grow(max_depth=1)
    assert a.n_nodes == b.n_nodes
    np.testing.assert_allclose(a.gain[0], b.gain[0], rtol=1e-13, atol=1e-15)


@each_criterion
@pytest.mark.parametrize("n", [150, 1500])
@pytest.mark.parametrize("transform", [np.exp, lambda x: x**3, lambda x: 5 * x - 3], ids=["exp", "cube", "line"])
def test_a_monotone_transform_changes_only_thresholds(criterion, n, transform):
    if criterion == "absolute_error" and n > 1000:
        n = 400
    X, y = data(criterion, n)
    Z = X.copy()
    Z[:, 1] = transform(X[:, 1])
    Z[:, 2] = transform(X[:, 2] / 8)
    a, b = grow(X, y, criterion), grow(Z, y, criterion)
    assert_identical(a, b, but=["threshold"])
    for before, after in zip(rows_of_nodes(a, X), rows_of_nodes(b, Z), strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_falling_transform_mirrors():
    X, y = continuous(300)
    a = trees.grow(X, y, criterion="squared_error")
    b = trees.grow(-X, y, criterion="squared_error")
    assert partition(a, X) == partition(b, -X)


@each_criterion
def test_columns_that_say_nothing_new(criterion):
    """A constant, a column again, and a column of missing values, behind the others."""
    X, y = data(criterion, missing=0.0)
    n = len(y)
    more = np.column_stack([X, np.full(n, 3.0), X[:, 1], np.full(n, np.nan)])
    whole, with_more = grow(X, y, criterion), grow(more, y, criterion)
    assert_identical(whole, with_more, but=("missing_seen", "indicators"))  # which have an entry for each column
    assert with_more.missing_seen.tolist() == [*whole.missing_seen.tolist(), False, False, True]


@pytest.mark.parametrize("criterion", oracle.CLASSIFICATION)
def test_names_of_levels_do_not_matter(criterion):
    X, y = data(criterion)
    Z = X.copy()
    Z[:, 3] = np.array([-7.0, 0.5, 3.0, 8.0, 21.0, 22.0])[np.nan_to_num(X[:, 3]).astype(int)]
    Z[np.isnan(X[:, 3]), 3] = np.nan
    assert_identical(grow(X, y, criterion), grow(Z, y, criterion))


# ---- targets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", oracle.CLASSIFICATION)
def test_names_of_classes_do_not_matter(criterion):
    X, y = data(criterion)
    named = grow(X, np.array(["a", "b", "c"])[y], criterion)
    assert_identical(grow(X, y, criterion), named, but=["classes"])
    assert named.classes.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_shifting_and_scaling_the_target(criterion):
    X, y = data(criterion)
    a, b = grow(X, y, criterion), grow(X, 4 * y - 512.0, criterion)
    for name in ("feature", "left", "subset_left"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(a.threshold, b.threshold)
    np.testing.assert_allclose(4 * a.value - 512.0, b.value, rtol=1e-13)
    power = 16.0 if criterion == "squared_error" else 4.0
    np.testing.assert_allclose(power * a.impurity, b.impurity, rtol=1e-11, atol=1e-12)


def test_squared_error_and_gini_of_two_classes_are_one():
    """Of 0/1 targets: p(1-p) is half of the gini index."""
    X, y = data("gini")
    y = (y > 0).astype(float)
    a, b = grow(X, y, "gini"), grow(X, y, "squared_error")
    np.testing.assert_allclose(a.impurity[0], 2 * b.impurity[0], rtol=1e-14)
    np.testing.assert_allclose(a.gain[0], 2 * b.gain[0], rtol=1e-12)
    np.testing.assert_allclose(a.value[0, 1], b.value[0], rtol=1e-15)


# ---- threads ------------------------------------------------------------------------------------------------------


@each_criterion
@pytest.mark.parametrize("growth", ["depth", "best"])
@pytest.mark.parametrize("n", [60, 5000])
def test_any_number_of_threads_gives_the_same_bits(criterion, growth, n):
    X, y = data(criterion, 500 if criterion == "absolute_error" and n > 500 else n)
    y = y + np.random.default_rng(5).normal(size=len(y)) ** 2 if criterion in oracle.REGRESSION else y
    weight = np.random.default_rng(6).random(len(y))
    trees_of = [grow(X, y, criterion, growth=growth, sample_weight=weight, n_threads=t) for t in (1, 2, 4, 3, 1)]
    for other in trees_of[1:]:
        assert_identical(trees_of[0], other)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.parametrize(
    "options",
    [
        {"max_depth": 12},
        {"growth": "best", "max_leaves": 300},
        {"max_features": 2, "max_depth": 12},
        {"categorical": [4], "max_depth": 10, "weights": True, "missing": "extra"},
        {"categorical": [4], "max_depth": 7, "missing": "surrogate"},
    ],
    ids=lambda options: " ".join(options),
)
def test_threads_on_many_rows(criterion, options):
    """So many that threads share columns, sums by value, and subtrees."""
    rng = np.random.default_rng(7)
    n = 50_000
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 40, size=(n, 2))]).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 3] / 20 + (X[:, 4] % 3) / 4 + 0.5 * rng.normal(size=n)
    y = np.digitize(y, [-0.5, 0.5]) if criterion in oracle.CLASSIFICATION else np.exp(y)
    options = dict(options)
    weight = rng.random(n) if options.pop("weights", False) else None
    if "missing" in options:
        X[rng.random(X.shape) < 0.05] = np.nan
    trees_of = [
        trees.grow(X, y, criterion=criterion, sample_weight=weight, rng=3, n_threads=t, **options) for t in (1, 2, 4)
    ]
    assert trees_of[0].n_leaves > 40
    for other in trees_of[1:]:
        assert_identical(trees_of[0], other)


@pytest.mark.parametrize("missing", ["extra", "surrogate", "zero", "impute"])
def test_twice_the_same(missing):
    X, y = data("gini")
    assert_identical(*(grow(X, y, "gini", missing=missing, rng=0) for _ in range(2)))


# ---- random columns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_features", [1, 2, 0.5, "sqrt", "log2"])
@pytest.mark.parametrize("growth", ["depth", "best"])
def test_drawn_columns_depend_on_the_seed_alone(max_features, growth):
    X, y = data("gini", 1000)
    options = {"max_features": max_features, "growth": growth}
    first = grow(X, y, "gini", rng=11, n_threads=1, **options)
    for n_threads in (2, 4):
        assert_identical(first, grow(X, y, "gini", rng=11, n_threads=n_threads, **options))
    assert not np.array_equal(first.feature, grow(X, y, "gini", rng=12, **options).feature)
    assert set(first.feature[first.left >= 0]) == {0, 1, 2, 3}
    by_generator = [grow(X, y, "gini", rng=np.random.default_rng(11), **options) for _ in range(2)]
    assert_identical(*by_generator)


def test_drawing_all_columns_is_drawing_none():
    X, y = data("gini")
    for all_of_them in (4, 1.0):
        assert_identical(grow(X, y, "gini"), grow(X, y, "gini", max_features=all_of_them, rng=5))


def test_drawn_columns_differ_from_node_to_node():
    """With one of many equally good columns a node, columns come up about equally often."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=2000)
    tree = trees.grow(np.column_stack([x] * 8), rng.integers(0, 2, size=2000), max_features=1, rng=0)
    counts = np.bincount(tree.feature[tree.left >= 0], minlength=8)
    total = counts.sum()
    assert total > 300
    assert np.abs(counts - total / 8).max() < 5 * np.sqrt(total / 8)


# ---- growth -------------------------------------------------------------------------------------------------------


@each_criterion
@pytest.mark.parametrize("n", [100, 600])
def test_best_first_without_a_limit_is_depth_first(criterion, n):
    X, y = data(criterion, n)
    assert_identical(grow(X, y, criterion), grow(X, y, criterion, growth="best"))


# ---- forms of the same numbers ------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.data(), st.sampled_from(["gini", "squared_error"]), st.sampled_from([60, 700]))
def test_any_sparse_form_is_the_dense_one(drawn, criterion, n):
    X, y = data(criterion, n, missing=0.0)
    X = X * (np.random.default_rng(9).random(X.shape) < 0.5)
    csr = drawn.draw(csr_forms(X))
    assert_identical(grow(X, y, criterion), grow(csr, y, criterion), but=["indicators"])  # words of sparse data only


def test_missing_values_in_sparse_rows():
    X, y = data("gini")
    X = np.where(np.random.default_rng(10).random(X.shape) < 0.5, X, 0.0)
    assert_identical(grow(X, y, "gini"), grow(sparse.csr_array(X), y, "gini"), but=["indicators"])


@settings(max_examples=15)
@given(st.data(), st.sampled_from(["gini", "squared_error"]), st.sampled_from([60, 700]))
def test_any_layout_is_the_plain_one(drawn, criterion, n):
    X, y = data(criterion, n)
    assert_identical(grow(X, y, criterion), grow(drawn.draw(layouts(X)), y, criterion))
    small = X.astype(np.float32)
    assert_identical(grow(small.astype(np.float64), y, criterion), grow(drawn.draw(layouts(small)), y, criterion))


@each_criterion
def test_strided_and_read_only_targets_and_weights(criterion):
    X, y = data(criterion)
    weight = np.random.default_rng(11).integers(1, 4, size=len(y)).astype(float)
    plain = grow(X, y, criterion, sample_weight=weight)
    wide = np.column_stack([y, y])[:, 0]
    heavy = np.column_stack([weight, weight])[:, 1]
    for array in (wide, heavy, X):
        array.flags.writeable = False
    assert_identical(plain, grow(X, wide, criterion, sample_weight=heavy))
    narrow = grow(X, y.astype(np.int32), criterion, sample_weight=weight.astype(np.float32))
    assert_identical(plain, narrow, but=["classes"])  # whose type is that of y
    assert_identical(plain, grow(X.tolist(), y.tolist(), criterion, sample_weight=weight.tolist()))


@each_criterion
@pytest.mark.parametrize("missing", ["extra", "surrogate", "zero", "impute"])
def test_input_is_left_alone(criterion, missing):
    X, y = data(criterion)
    weight = np.linspace(0.5, 1.5, len(y))
    arrays = X, y, weight
    before = [a.copy() for a in arrays]
    tree = grow(X, y, criterion, sample_weight=weight, missing=missing)
    for array, was in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, was)
    for name, array in arrays_of(tree):
        assert not any(np.shares_memory(array, given_) for given_ in arrays), name


def test_surrogates_count_class_weights_as_sample_weights():
    """As docs/guide/coming_from_tree.rst says, and other than rpart, whose surrogates count case weights alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 1:] = X[:, :1] + 0.1 * X[:, 1:]
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    limits = {"missing": "surrogate", "max_depth": 2}
    by_class = trees.grow(X, y, class_weight={0: 1, 1: 7}, **limits).surrogates
    by_row = trees.grow(X, y, sample_weight=np.where(y == 1, 7.0, 1.0), **limits).surrogates
    np.testing.assert_array_equal(by_class.agreement, by_row.agreement)
    assert len(by_class.agreement) > 0
