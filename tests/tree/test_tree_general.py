"""The node-by-node builder against trees by their definition, and what it alone can do."""

import csv
import gzip
import math
from fractions import Fraction

import numpy as np
import pytest
import tree_general_oracle as oracle
from general_trees import assert_same, datasets, grow, noisy, of_oracle, own_gini, problem, ways_of_missing
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

CLASS_CRITERIA = ["gini", "entropy", "misclassification"]
NUMBER_CRITERIA = ["squared_error", "absolute_error", "poisson"]


def chosen_split(tree, node, data, members, missing):
    """The split of a node of a grown tree, as the oracle writes it."""
    column = int(tree["feature"][node])
    if data.n_levels[column]:
        start = tree["subset_start"][node]
        sides = tree["subset_left"][start : start + data.n_levels[column]]
        goes_left = {level for level in range(data.n_levels[column]) if sides[level] == 1}
        present = {data.X[row][column] for row, *_ in members} - {None}
        assert {level for level in range(data.n_levels[column]) if sides[level] < 2} == present
    else:
        cells = {data.X[row][column] for row, *_ in members} - {None}
        goes_left = {cell for cell in cells if cell <= tree["threshold"][node]}
    way = oracle.NEITHER
    if missing == "extra" and any(data.X[row][column] is None for row, *_ in members):
        way = oracle.LEFT if tree["missing_left"][node] else oracle.RIGHT
    return oracle.make_split(data, members, column, goes_left, way, math.nan, frozenset())


def follow(tree, data, criterion, missing, min_leaf=1, subsets="best", min_weight=0):
    """Check every node of a grown tree against the oracle, going where the tree goes."""
    if subsets == "best" and (missing == "fractional" or min_leaf > 1 or min_weight > 0):
        subsets = "ordered"  # where a side may have too few rows, the best subset need not be a cut of this order
    total = sum(data.weights)
    waiting = [(0, data.root())]
    while waiting:
        node, members = waiting.pop()
        weight = sum(w for _, w, _ in members)
        assert tree["n_samples"][node] == pytest.approx(float(sum(share for *_, share in members)))
        assert tree["weight"][node] == pytest.approx(float(weight))
        expected = [float(v) for v in oracle.value(criterion, data, members)]
        assert np.ravel(tree["value"][node]) == pytest.approx(expected, abs=1e-12)
        node_loss = float(oracle.loss(criterion, data, members))
        assert tree["impurity"][node] == pytest.approx(node_loss / float(weight), abs=1e-12)
        best = None
        if not oracle.is_pure(data, members) and sum(share for *_, share in members) >= 2:
            best = oracle.best_gain(criterion, data, members, missing, min_leaf, subsets, min_weight)
        if tree["left"][node] < 0:
            assert best is None
            assert tree["gain"][node] == 0
            continue
        split = chosen_split(tree, node, data, members, missing)
        assert float(oracle.gain_of(criterion, data, members, split)) == pytest.approx(float(best), abs=1e-11)
        assert tree["gain"][node] == pytest.approx(float(best) / total, abs=1e-12)
        parts = oracle.children(members, split)
        assert tree["left"][node] == node + 1
        waiting += [(int(tree["left"][node]), parts[0]), (int(tree["right"][node]), parts[1])]
        if split.missing_left is None:
            heavier = [sum(w for _, w, _ in members_of) for members_of in parts]
            assert tree["missing_left"][node] == (heavier[0] >= heavier[1])


# ---- against the definition ---------------------------------------------------------------------------------------


@given(datasets(), st.sampled_from(CLASS_CRITERIA), ways_of_missing, st.sampled_from(["best", "one"]))
def test_every_split_of_classes_is_the_best(data, criterion, missing, subsets):
    tree = grow(of_oracle(data), criterion=criterion, missing=missing, subsets=subsets)
    follow(tree, data, criterion, missing, subsets=subsets)


@given(datasets(regression=True), st.sampled_from(["squared_error", "poisson"]), ways_of_missing)
def test_every_split_of_numbers_is_the_best(data, criterion, missing):
    follow(grow(of_oracle(data), criterion=criterion, missing=missing), data, criterion, missing)


@given(datasets(regression=True, categories=False), ways_of_missing)
def test_every_split_by_absolute_error_is_the_best(data, missing):
    follow(grow(of_oracle(data), criterion="absolute_error", missing=missing), data, "absolute_error", missing)


@given(datasets(regression=True), ways_of_missing)
def test_absolute_error_with_one_level_against_the_rest(data, missing):
    tree = grow(of_oracle(data), criterion="absolute_error", missing=missing, subsets="one")
    follow(tree, data, "absolute_error", missing, subsets="one")


@given(datasets(regression=True, n_outputs=2), ways_of_missing)
def test_several_outputs_add_up(data, missing):
    follow(grow(of_oracle(data), criterion="squared_error", missing=missing), data, "squared_error", missing)


@given(datasets(), ways_of_missing, st.integers(2, 3))
def test_min_leaf_counts_rows(data, missing, min_leaf):
    tree = grow(of_oracle(data), missing=missing, min_leaf=min_leaf)
    follow(tree, data, "gini", missing, min_leaf=min_leaf)


@given(datasets(), ways_of_missing, st.integers(1, 5))
def test_min_share_weighs_rows(data, missing, sixteenths):
    tree = grow(of_oracle(data), missing=missing, min_share=sixteenths / 16)
    least = Fraction(sixteenths, 16) * sum(data.weights)
    follow(tree, data, "gini", missing, min_weight=least)


def same_as_recursion(tree, root):
    nodes = list(oracle.depth_first(root))
    assert tree["feature"].tolist() == [node.column for node in nodes]
    assert tree["threshold"] == pytest.approx([node.threshold for node in nodes], nan_ok=True)
    assert tree["missing_left"].tolist() == [node.missing_left for node in nodes]
    assert tree["n_samples"] == pytest.approx([float(node.n_samples) for node in nodes])
    total = float(root.weight)
    assert tree["gain"] == pytest.approx([float(node.gain) / total for node in nodes], abs=1e-12)


@given(
    datasets(categories=False),
    st.sampled_from(["gini", "misclassification", "gain_ratio"]),
    ways_of_missing,
    st.integers(1, 4),
)
def test_whole_tree_of_classes_with_its_ties(data, criterion, missing, max_depth):
    expected = oracle.grow(criterion, data, data.root(), missing, max_depth=max_depth)
    same_as_recursion(grow(of_oracle(data), criterion=criterion, missing=missing, max_depth=max_depth), expected)


@given(
    datasets(regression=True, categories=False), st.sampled_from(["squared_error", "absolute_error"]), ways_of_missing
)
def test_whole_tree_of_numbers_with_its_ties(data, criterion, missing):
    expected = oracle.grow(criterion, data, data.root(), missing, min_split=3)
    same_as_recursion(grow(of_oracle(data), criterion=criterion, missing=missing, min_split=3), expected)


# ---- C4.5's worked example ----------------------------------------------------------------------------------------


def weather(shared):
    path = shared / "data" / "weka_weather_numeric.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    with gzip.open(path, "rt") as lines:
        rows = list(csv.DictReader(lines))
    outlooks = ["sunny", "overcast", "rainy"]
    X = [
        [outlooks.index(r["outlook"]), float(r["temperature"]), float(r["humidity"]), r["windy"] == "TRUE"]
        for r in rows
    ]
    return np.array(X, dtype=float), np.array([r["play"] == "yes" for r in rows]).astype(int)


def test_weather_with_a_missing_outlook(shared):
    """Quinlan 1993, section 3.2: the overcast case of temperature 72 loses its outlook, and goes on as 5/13, 3/13 and
    5/13; divided by his columns, one level at a time, his leaves of 2, 3.4, 3.2, 2.4 and 3 cases come out."""
    X, y = weather(shared)
    case = np.flatnonzero((X[:, 0] == 1) & (X[:, 1] == 72))
    X[case, 0] = np.nan
    by_outlook = grow(
        problem(X[:, :1], y, [3]), criterion="gain_ratio", missing="fractional", subsets="one", max_leaves=3
    )
    known = entropy(8, 5)
    assert known == pytest.approx(0.961, abs=5e-4)  # as printed
    without_overcast = 13 / 14 * (known - 10 / 13 * 1.0)
    assert by_outlook["gain"][0] == pytest.approx(without_overcast)
    leaves = by_outlook["left"] < 0
    assert sorted(by_outlook["n_samples"][leaves]) == pytest.approx([3 + 3 / 13, 5 + 5 / 13, 5 + 5 / 13])
    for outlook, (column, expected) in {0: (2, [2, 3 + 5 / 13]), 2: (3, [2 + 5 / 13, 3])}.items():
        here = (X[:, 0] == outlook) | np.isnan(X[:, 0])
        weights = np.where(np.isnan(X[here, 0]), 5 / 13, 1.0)
        below = grow(problem(X[here][:, [column]], y[here], weights=weights), criterion="entropy", max_depth=1)
        assert sorted(below["weight"][1:]) == pytest.approx(sorted(expected))


def test_weather_as_a_whole(shared):
    X, y = weather(shared)
    X[np.flatnonzero((X[:, 0] == 1) & (X[:, 1] == 72)), 0] = np.nan
    cells = [[None if math.isnan(c) else int(c) for c in row] for row in X]
    data = oracle.Data(cells, [3, 0, 0, 2], y.tolist(), 2, [1] * len(y))
    follow(grow(of_oracle(data), criterion="entropy", missing="fractional"), data, "entropy", "fractional")


def entropy(*counts):
    return -sum(c / sum(counts) * math.log2(c / sum(counts)) for c in counts)


# ---- limits and order of growth -----------------------------------------------------------------------------------


def test_growth_without_a_limit_gives_the_same_tree():
    X, y = noisy()
    for settings in ({}, {"max_features": 2, "seed": 5}, {"splits": "oblique"}, {"max_depth": 3}):
        assert_same(grow(problem(X, y), **settings), grow(problem(X, y), growth="best", **settings))


def greedy_gains(tree, n_leaves):
    """Sum of the gains when a full tree is opened at its best node again and again."""
    open_nodes, total = [0], 0.0
    for _ in range(n_leaves - 1):
        best = max(open_nodes, key=lambda node: tree["gain"][node])
        total += tree["gain"][best]
        open_nodes.remove(best)
        open_nodes += [tree["left"][best], tree["right"][best]]
    return total


@pytest.mark.parametrize("n_leaves", [1, 2, 7, 12])
def test_best_first_takes_the_largest_gain(n_leaves):
    X, y = noisy()
    tree = grow(problem(X, y), growth="best", max_leaves=n_leaves)
    assert (tree["left"] < 0).sum() == n_leaves
    assert tree["gain"].sum() == pytest.approx(greedy_gains(grow(problem(X, y)), n_leaves))


def test_depth_first_stops_at_max_leaves():
    X, y = noisy()
    full, tree = grow(problem(X, y)), grow(problem(X, y), max_leaves=5)
    assert (tree["left"] < 0).sum() == 5
    splits = tree["left"] >= 0
    first_splits = np.flatnonzero(full["left"] >= 0)[:4]
    np.testing.assert_array_equal(tree["gain"][splits], full["gain"][first_splits])


def test_min_split_and_min_gain():
    X, y = noisy()
    full = grow(problem(X, y))
    tree = grow(problem(X, y), min_split=20)
    assert (tree["n_samples"][tree["left"] >= 0] >= 20).all()
    limit = float(np.sort(full["gain"])[-3])
    tree = grow(problem(X, y), min_gain=limit)
    assert (tree["gain"][tree["left"] >= 0] >= limit).all()
    assert (tree["left"] >= 0).any()


def test_splits_without_gain_are_made():
    """Exclusive or: the first split gains nothing, the next ones all."""
    X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])
    for criterion in ("gini", "entropy", own_gini):
        tree = grow(problem(X, y), criterion=criterion)
        assert tree["feature"].tolist() == [0, 1, -1, -1, 1, -1, -1]
        assert tree["gain"][0] == 0
    assert len(grow(problem(X, y), min_gain=1e-9)["left"]) == 1


def test_chi2_keeps_significant_splits():
    X, y = noisy()
    tree, full = grow(problem(X, y), chi2=0.01), grow(problem(X, y))
    assert 1 < len(tree["left"]) < len(full["left"])
    for node in np.flatnonzero(tree["left"] >= 0):
        table = [tree["value"][child] * tree["weight"][child] for child in (tree["left"][node], tree["right"][node])]
        table = np.array(table)[:, np.sum(table, axis=0) > 0]
        assert chi2_contingency(table, correction=False).pvalue <= 0.01
    assert len(grow(problem(X, y), chi2=0.0)["left"]) == 1


def test_max_features_draws_and_finds_what_varies():
    X, y = noisy(p=6)
    trees = [grow(problem(X, y), max_features=1, seed=seed) for seed in range(3)]
    assert len({tuple(tree["feature"]) for tree in trees}) == 3
    assert_same(trees[0], grow(problem(X, y), max_features=1, seed=0))
    constant = np.zeros_like(X)
    constant[:, 3] = X[:, 3]
    tree = grow(problem(constant, y), max_features=1)
    assert tree["feature"][0] == 3


def test_chain_deeper_than_the_stack():
    """A criterion without preferences cuts off one row at a time."""
    n = 1500
    tree = grow(problem(np.arange(n)[:, None], np.arange(n) % 2), criterion=lambda P: np.zeros(len(P)))
    assert len(tree["left"]) == 2 * n - 1
    assert tree["threshold"][0] == 0.5


# ---- rules --------------------------------------------------------------------------------------------------------


@given(datasets())
def test_weight_two_is_a_row_twice(data):
    rows = [i for i, w in enumerate(data.weights) for _ in range(w)]
    X, y = [data.X[i] for i in rows], [data.y[i] for i in rows]
    twice = oracle.Data(X, data.n_levels, y, data.n_classes, [1] * len(rows))
    one, other = (grow(of_oracle(d)) for d in (data, twice))
    for name in ("feature", "threshold", "weight", "value", "gain"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-12, atol=1e-14, err_msg=name)


@given(datasets(), ways_of_missing, st.randoms(use_true_random=False))
def test_row_order_does_not_matter(data, missing, random):
    order = list(range(len(data.y)))
    random.shuffle(order)
    X, y, weights = ([column[i] for i in order] for column in (data.X, data.y, data.weights))
    shuffled = oracle.Data(X, data.n_levels, y, data.n_classes, weights)
    assert_same(*(grow(of_oracle(d), missing=missing) for d in (data, shuffled)))


def test_thresholds_stay_below_the_larger_value():
    for low, high in [
        (1.0, np.nextafter(1.0, 2)),
        (0.0, 5e-324),
        (-5e-324, -0.0),
        (-1.7e308, 1.7e308),
        (7e-324, 1e-323),
    ]:
        threshold = grow(problem([[low], [high]], [0, 1]))["threshold"][0]
        assert low <= threshold < high
    single = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]], dtype=np.float32)
    assert 1 < grow(problem(single, [0, 1]))["threshold"][0] < single[1, 0]
    assert len(grow(problem([[-0.0], [0.0]], [0, 1]))["left"]) == 1


def test_known_against_missing():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    tree = grow(problem(X, [0, 0, 1, 1]))
    assert tree["threshold"][0] == np.inf
    assert not tree["missing_left"][0]
    levels = grow(problem(X, [0, 0, 1, 1], [4]))
    assert levels["subset_left"].tolist() == [2, 1, 1, 2]
    assert not levels["missing_left"][0]
    fractional = grow(problem(X, [0, 0, 1, 1]), missing="fractional")
    assert fractional["gain"][0] == 0
    assert fractional["n_samples"].tolist() == [4, 2, 2]


def test_many_levels_of_many_classes_follow_the_principal_component():
    rng = np.random.default_rng(4)
    codes = rng.integers(20, size=400)
    y = np.where(codes < 7, 0, np.where(codes < 14, 1, 2))
    tree = grow(problem(codes[:, None].astype(float), y, [20]))
    assert (tree["left"] < 0).sum() == 3
    assert tree["impurity"][tree["left"] < 0] == pytest.approx([0, 0, 0])


def test_two_classes_in_a_node_of_many_levels_are_split_exactly():
    codes = np.repeat(np.arange(16.0), 3)
    y = np.isin(np.arange(48), np.arange(48) // 3 * 3 + 0) * (np.arange(48) // 3 % 4)
    y = np.minimum(y, 1)
    best_by_mean = grow(problem(codes[:, None], y, [16], n_classes=4), max_depth=1)
    means = y.reshape(16, 3).mean(axis=1)
    ordered = problem(np.repeat(means, 3)[:, None], y, n_classes=4)
    assert best_by_mean["gain"][0] == pytest.approx(grow(ordered, max_depth=1)["gain"][0])


def test_nothing_to_split_is_one_leaf():
    for X, y in (([[1.0], [1.0]], [0, 1]), ([[1.0], [2.0]], [1, 1]), ([[np.nan], [np.nan]], [0, 1]), ([[3.0]], [0])):
        for missing in ("extra", "fractional"):
            tree = grow(problem(X, y, n_classes=2), missing=missing, splits="oblique")
            assert tree["feature"].tolist() == [-1]
            assert tree["value"].sum() == pytest.approx(1)


def test_fractions_are_exact_for_halves():
    """Two of four known rows go each way, so the missing one is halved, and halved again."""
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1], [np.nan, np.nan]])
    tree = grow(problem(X, [0, 1, 2, 3, 0]), missing="fractional")
    leaves = tree["left"] < 0
    assert tree["n_samples"].dtype == np.float64
    assert tree["n_samples"][leaves].tolist() == [1.25] * 4
    assert tree["gain"][0] == (3 - 2) / 5
