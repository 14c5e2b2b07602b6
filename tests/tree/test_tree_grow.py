"""Trees against the naive oracle: at every node the split that gains most, and all that is said about the node."""

from fractions import Fraction

import numpy as np
import pytest
import tree_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import assert_identical, assert_well_formed, rows_of_nodes, tables

from kernelrules import tree as trees

# Floats of the compiled grower against 40 digits; two different gains of so few rows are never so near to each other.
NEAR = 1e-12


def differs(a, b, scale):
    """Whether exact numbers are different; those with logarithms in them are decimals, and may be off by rounding."""
    if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
        return a != b
    return abs(float(a) - float(b)) > NEAR * float(max(scale, 1))


def check_fields(tree, sample, inside):
    """What the tree says of its nodes, which hold the rows `inside`."""
    totals = [sample.total(rows) for rows in inside]
    assert tree.n_samples.tolist() == [len(rows) for rows in inside]
    assert tree.weight.tolist() == totals
    losses = [float(sample.loss(rows)) / float(total) for rows, total in zip(inside, totals, strict=True)]
    np.testing.assert_allclose(tree.impurity, losses, rtol=1e-12, atol=1e-13)
    assert not tree.impurity[[sample.is_pure(rows) for rows in inside]].any()
    match tree.criterion:
        case name if name in oracle.CLASSIFICATION:
            shares = [
                [float(Fraction(c) / total) for c in sample.shares(rows)]
                for rows, total in zip(inside, totals, strict=True)
            ]
            np.testing.assert_array_equal(tree.value, shares)
        case "absolute_error":
            for node, rows in enumerate(inside):
                assert sample.loss_at(rows, tree.value[node]) == sample.loss(rows)
        case _:
            means = [float(sample.mean(rows)) for rows in inside]
            np.testing.assert_allclose(np.ravel(tree.value), means, rtol=1e-15, atol=1e-300)


def check_split(tree, sample, node, rows, left, right, **options):
    """The chosen split gains as much as any; its fields say so."""
    gain, best = oracle.gain_of(sample, rows, left, right), oracle.best_gain(sample, rows, **options)
    scale = sample.loss(sample.rows)
    assert not differs(gain, best, scale), (node, gain, best)
    root = float(sample.total(sample.rows))
    allowed = 1e-11 * abs(float(gain)) + NEAR * max(float(scale), 1)
    assert abs(tree.gain[node] - float(gain) / root) <= allowed / root, (node, gain)
    assert min(len(left), len(right)) >= options.get("min_leaf", 1)


def check_tree(tree, table, **options):
    """Every node of it; returns how many nodes were split."""
    assert_well_formed(tree)
    sample = table.sample
    inside = [rows.tolist() for rows in rows_of_nodes(tree, table.X, sample.rows)]
    check_fields(tree, sample, inside)
    for node, rows in enumerate(inside):
        if tree.left[node] < 0:
            splits = oracle.candidates(sample, rows, **options)
            assert sample.is_pure(rows) or next(splits, None) is None, f"node {node} could be split"
        else:
            assert not sample.is_pure(rows)
            check_split(tree, sample, node, rows, inside[tree.left[node]], inside[tree.right[node]], **options)
    return int((tree.left >= 0).sum())


@pytest.mark.parametrize("criterion", [c for c in oracle.CRITERIA if c != "gain_ratio"])
def test_no_split_gains_more(criterion):
    split = []

    @settings(max_examples=150)
    @given(tables(criterion))
    def every_node(table):
        split.append(check_tree(table.grow(), table))

    every_node()
    assert sum(split) > 400, "too few splits to show anything"


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@settings(max_examples=25)
@given(st.data())
def test_no_split_of_large_enough_leaves_gains_more(criterion, drawn):
    table = drawn.draw(tables(criterion))
    min_leaf = drawn.draw(st.integers(2, 6))
    check_tree(table.grow(min_leaf=min_leaf), table, min_leaf=min_leaf, subsets=oracle.by_cuts(table.sample))


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error", "poisson"])
@settings(max_examples=25)
@given(st.data())
def test_no_split_of_heavy_enough_leaves_gains_more(criterion, drawn):
    table = drawn.draw(tables(criterion))
    share = Fraction(drawn.draw(st.integers(1, 7)), 16)
    options = {"min_share": share, "subsets": oracle.by_cuts(table.sample)}
    check_tree(table.grow(min_share=float(share)), table, **options)


@pytest.mark.parametrize("criterion", ["gini", "absolute_error"])
@settings(max_examples=25)
@given(st.data())
def test_one_category_against_the_rest(criterion, drawn):
    table = drawn.draw(tables(criterion))
    check_tree(table.grow(subsets="one"), table, subsets="one")


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@settings(max_examples=25)
@given(st.data())
def test_best_first_is_the_same_search(criterion, drawn):
    table = drawn.draw(tables(criterion))
    check_tree(table.grow(growth="best"), table)


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
@settings(max_examples=25)
@given(st.data(), st.integers(2, 3))
def test_several_targets(criterion, drawn, n_outputs):
    """The loss is the sum over the targets: each of them alone is a sample of the oracle."""
    table = drawn.draw(tables(criterion))
    rng = np.random.default_rng(n_outputs)
    Y = np.column_stack([table.y, *(rng.integers(0, 4, size=len(table.y)) for _ in range(n_outputs - 1))])
    tree = trees.grow(
        table.X, Y, criterion=criterion, sample_weight=table.weight, categorical=table.categorical or None
    )
    assert_well_formed(tree)
    assert tree.n_outputs == n_outputs
    assert tree.value.shape == (tree.n_nodes, n_outputs)
    samples = [oracle.Sample.of(table.X, y, criterion, weight=table.weight, categorical=table.categorical) for y in Y.T]
    inside = [rows.tolist() for rows in rows_of_nodes(tree, table.X, samples[0].rows)]
    means = [[float(s.mean(rows)) for s in samples] for rows in inside]
    np.testing.assert_allclose(tree.value, means, rtol=1e-15, atol=1e-300)
    for node, rows in enumerate(inside):
        if tree.left[node] >= 0:
            left, right = inside[tree.left[node]], inside[tree.right[node]]
            gain = sum(oracle.gain_of(s, rows, left, right) for s in samples)
            each = zip(*(oracle.candidates(s, rows) for s in samples), strict=True)
            best = max(sum(part for _, part in one) for one in each)
            assert not differs(gain, best, sum(s.loss(s.rows) for s in samples))


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@settings(max_examples=30)
@given(st.data())
def test_drawn_columns_are_searched_in_full(criterion, drawn):
    """Whichever column was drawn, its best split is made; and a node that can be split is split."""
    table = drawn.draw(tables(criterion))
    tree, sample = table.grow(max_features=1, rng=drawn.draw(st.integers(0, 99))), table.sample
    inside = [rows.tolist() for rows in rows_of_nodes(tree, table.X, sample.rows)]
    for node, rows in enumerate(inside):
        if tree.left[node] < 0:
            assert sample.is_pure(rows) or next(oracle.candidates(sample, rows), None) is None
        else:
            left, right = inside[tree.left[node]], inside[tree.right[node]]
            check_split(tree, sample, node, rows, left, right, columns=[int(tree.feature[node])])


# ---- other treatments of missing values ---------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
@settings(max_examples=40)
@given(st.data())
def test_surrogates_send_training_rows_as_new_ones(criterion, drawn):
    """Splits are judged by the rows that have a value; the others go where the tree itself sends them."""
    table = drawn.draw(tables(criterion))
    tree, sample = table.grow(missing="surrogate"), table.sample
    assert_well_formed(tree)
    inside = [rows.tolist() for rows in rows_of_nodes(tree, table.X, sample.rows)]
    check_fields(tree, sample, inside)
    for node, rows in enumerate(inside):
        best = oracle.best_gain(sample, rows, missing="surrogate")
        if tree.left[node] < 0:
            assert sample.is_pure(rows) or best is None
            continue
        known = [i for i in rows if not np.isnan(table.X[i, tree.feature[node]])]
        left, right = (sorted(set(inside[child]) & set(known)) for child in (tree.left[node], tree.right[node]))
        assert not differs(oracle.gain_of(sample, known, left, right), best, sample.loss(sample.rows))


@pytest.mark.parametrize("missing", ["extra", "surrogate"])
@settings(max_examples=40)
@given(st.data())
def test_new_rows_go_where_a_naive_walk_leads(missing, drawn):
    """Values between those of training, and missing ones where training had none."""
    table = drawn.draw(tables(drawn.draw(st.sampled_from(["gini", "squared_error"]))))
    tree = table.grow(missing=missing)
    rng = np.random.default_rng(drawn.draw(st.integers(0, 99)))
    new = table.X[rng.integers(len(table.X), size=(60, 1)), np.arange(table.X.shape[1])]
    for j in set(range(new.shape[1])) - set(table.categorical):
        new[:, j] = (new[:, j] + rng.permutation(new[:, j])) / 2
    new[rng.random(new.shape) < 0.2] = np.nan
    leaf = np.empty(60, dtype=np.int64)
    for node, rows in enumerate(rows_of_nodes(tree, new)):
        leaf[rows] = node  # children come after their parents
    np.testing.assert_array_equal(trees.apply(tree, new), leaf)
    np.testing.assert_array_equal(
        trees.predict_proba(tree, new) if tree.classes is not None else trees.predict(tree, new), tree.value[leaf]
    )


@pytest.mark.parametrize("missing", ["zero", "impute"])
@settings(max_examples=30)
@given(tables("gini"))
def test_filled_values_are_values(missing, table):
    """The tree is that of the data with `fill` in place of what is missing."""
    tree = table.grow(missing=missing, rng=0)
    X, fill = table.X.copy(), tree.fill.copy()
    for j in range(X.shape[1]):
        known = X[~np.isnan(X[:, j]), j]
        if j in table.categorical:
            fill[j] = tree.categories[j][int(fill[j])] if len(known) else np.nan
        elif len(known):
            expected = 0.0 if missing == "zero" else known.mean()
            np.testing.assert_allclose(fill[j], expected, rtol=1e-12, atol=1e-300)
        X[np.isnan(X[:, j]), j] = fill[j]
    filled = type(table)(X, table.y, table.weight, table.categorical, "gini")
    assert_identical(tree, filled.grow(missing="extra"), but=["fill", "missing_seen"])


# ---- thresholds ---------------------------------------------------------------------------------------------------


def stump(x, y, **options):
    return trees.grow(np.asarray(x).reshape(-1, 1), y, max_depth=1, **options)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_thresholds_are_halfway(a, b):
    if a == b:
        return
    low, high = sorted([a, b])
    tree = stump([low, high], [0, 1])
    assert tree.n_leaves == 2
    assert low <= tree.threshold[0] < high
    middle = oracle.halfway(low, high)
    if abs(middle) > 1e-307:  # among subnormal numbers half of a sum may be rounded twice
        assert tree.threshold[0] == middle
    np.testing.assert_array_equal(tree.value[1:], np.eye(2))


@pytest.mark.parametrize("value", [1.0, -1.0, 0.1, 1e300, -1e300, 5e-324, -1e-323, 2.0**52, 1.7976931348623155e308])
@pytest.mark.parametrize("n", [2, 400])
def test_neighbouring_floats_are_told_apart(value, n):
    """The halfway point of two neighbours is one of them: it must be the smaller. With other values around, too."""
    above = np.nextafter(value, np.inf)
    x = np.array([value, above] * (n // 2))
    y = x == above
    if n > 2:
        x, y = np.concatenate([x, np.linspace(value - 1 - abs(value) / 2, value, 300)]), np.append(y, np.zeros(300))
    tree = stump(x, y)
    assert tree.threshold[0] == value
    assert tree.impurity[1:].max() == 0


@pytest.mark.parametrize("n", [4, 600])
def test_minus_zero_is_zero(n):
    rng = np.random.default_rng(0)
    x = np.where(rng.random(n) < 0.5, 0.0, -0.0)
    assert stump(x, np.arange(n) % 2).n_leaves == 1
    x[: n // 4] = -1.0
    x[-(n // 4) :] = np.linspace(1, 2, n // 4)
    tree = stump(x, x > 0)
    assert tree.threshold[0] == 0.5
    tree = stump(x, x >= 0)
    assert tree.threshold[0] == -0.5


@pytest.mark.parametrize("n", [40, 3000])
def test_float32_values_are_compared_as_they_are(n):
    """Thresholds lie halfway in float64 between float32 values; float64 values are never rounded to float32."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=n).astype(np.float32)
    y = x > np.median(x)
    small, large = np.sort(x[~y])[-1], np.sort(x[y])[0]
    assert stump(x, y).threshold[0] == (float(small) + float(large)) / 2
    assert_identical(stump(x, y), stump(x.astype(np.float64), y))
    x = 1.0 + np.arange(n) * 2.0**-50  # all the same in float32
    y = np.arange(n) >= n // 3
    tree = stump(x, y)
    assert tree.threshold[0] == oracle.halfway(x[n // 3 - 1], x[n // 3])
    assert tree.impurity[1:].max() == 0


# ---- ties ---------------------------------------------------------------------------------------------------------


def summary(sample, rows):
    """What a loss is computed from: parts with equal summaries have equal losses also in floating point."""
    if sample.criterion in oracle.CLASSIFICATION:
        return tuple(sample.shares(rows))
    return sample.total(rows), sample.total_of_targets(rows)


def place(split):
    """Order of the tie rule."""
    return split.column, split.threshold, bool(split.missing_left)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification", "squared_error", "poisson"])
@given(st.data())
def test_ties_go_to_the_lower_column_and_threshold(criterion, drawn):
    """Of splits into parts with the same sums, on whichever side: their gains are the same floats."""
    table = drawn.draw(tables(criterion, categories=False))
    tree, sample = table.grow(max_depth=3), table.sample
    inside = [rows.tolist() for rows in rows_of_nodes(tree, table.X, sample.rows)]
    for node in np.flatnonzero(tree.left >= 0):
        left, right = inside[tree.left[node]], inside[tree.right[node]]
        chosen = {summary(sample, left), summary(sample, right)}
        ties = [
            split
            for split, _ in oracle.candidates(sample, inside[node])
            if {summary(sample, part) for part in split.parts(sample, inside[node])} == chosen
        ]
        first = min(ties, key=place)
        assert tree.feature[node] == first.column
        assert first.parts(sample, inside[node]) == (left, right)


def test_ties_in_so_many_words():
    """Powers of two: every gain is exact."""
    y = np.array([0, 0, 1, 1])
    x = np.array([1.0, 2.0, 3.0, 4.0])
    X = np.column_stack([np.ones(4), -x, x, x])
    tree = trees.grow(X, y)
    assert (tree.feature[0], tree.threshold[0]) == (1, -2.5)
    # Cutting off either end gains the same.
    tree = trees.grow(x[:, None], np.array([0, 1, 1, 0]), max_depth=1)
    assert tree.threshold[0] == 1.5
    # Missing values fit either side: right.
    tree = trees.grow(np.array([[1.0], [1.0], [2.0], [2.0], [np.nan], [np.nan]]), np.array([0, 0, 1, 1, 0, 1]))
    assert not tree.missing_left[0]


# ---- what must not be split, and what need not ----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", oracle.REGRESSION)
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e150, 1e-300, 0.0])
def test_equal_targets_are_one_leaf(criterion, value):
    """Sums of 0.1 are not exact, and must not look like spread."""
    X = np.random.default_rng(0).normal(size=(777, 3))
    tree = trees.grow(X, np.full(777, value), criterion=criterion)
    assert tree.n_nodes == 1
    assert tree.impurity[0] == 0
    np.testing.assert_allclose(tree.value[0], value, rtol=777 * np.finfo(float).eps)  # a sum of as many


def test_a_far_target_keeps_its_differences():
    """Sums of squares around 1e9 would lose them; around the mean they do not."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0) + 0.125 * (X[:, 1] > 0)
    near = trees.grow(X, y, criterion="squared_error", max_depth=3)
    far = trees.grow(X, y + 2.0**30, criterion="squared_error", max_depth=3)
    np.testing.assert_array_equal(near.feature, far.feature)
    np.testing.assert_array_equal(near.threshold, far.threshold)
    np.testing.assert_allclose(far.impurity, near.impurity, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(far.value - 2.0**30, near.value, atol=2.0**-22)  # the spacing of floats there


def test_splits_that_gain_nothing_are_made_on_the_way_to_purity():
    """Exclusive or: no first split gains anything."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    tree = trees.grow(X, np.array([0, 1, 1, 0]))
    assert tree.n_leaves == 4
    assert tree.gain[0] == 0
    np.testing.assert_array_equal(tree.gain[tree.left >= 0][1:], [0.25, 0.25])
    assert trees.grow(X, np.array([0, 1, 1, 0]), min_gain=1e-9).n_leaves == 1


def test_misclassification_sees_no_gain_where_the_majority_stays():
    """The lectures' 0.7 into 0.5 and 0.9."""
    x = np.repeat([0.0, 1.0], 10)
    y = np.array([0] * 5 + [1] * 5 + [0] * 9 + [1])
    tree = stump(x, y, criterion="misclassification")
    np.testing.assert_allclose(tree.impurity, [0.3, 0.5, 0.1], rtol=1e-15)
    np.testing.assert_allclose(tree.gain[0], 0.0, atol=1e-16)
