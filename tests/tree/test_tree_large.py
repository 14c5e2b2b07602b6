"""Trees on more rows than the naive oracle can judge: against cumulative sums at every node, and scikit-learn's trees.

Columns of more than 256 values are scanned in another way than those of few, and rows are renumbered on the way down:
sizes here are on both sides of such limits.
"""

from fractions import Fraction

import numpy as np
import pytest
import tree_large_oracle as oracle
import tree_oracle as exact
from real_data import spambase
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from trees import assert_well_formed, loss_of_leaves, rows_of_nodes

from kernelrules import tree as trees

NUMERICAL = [c for c in exact.CRITERIA if c != "gain_ratio"]


def data(criterion, n, seed=0, *, n_classes=2, weighted=False, noise=0.3):
    """Columns of float32 numbers: of all values, of few, of many ties, rounded, one sorted, one of a single value."""
    rng = np.random.default_rng(seed)
    X = 100 * rng.normal(size=(n, 6))
    X[:, 1] = rng.integers(0, 5, size=n)
    X[:, 2] = rng.integers(0, 2000, size=n)
    X[:, 3] = np.round(X[:, 3])
    X[:, 4] = np.sort(X[:, 4])
    X[:, 5] = 7.0
    X = X.astype(np.float32)
    score = np.sin(X[:, 0] / 60) + 0.4 * X[:, 1] + X[:, 2] / 1000 + X[:, 3] / 200 + noise * rng.normal(size=n)
    weight = rng.integers(1, 5, size=n).astype(float) if weighted else None
    if criterion in exact.CLASSIFICATION:
        return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])), weight
    y = np.round(16 * score) / 16  # sums are exact
    return X, (np.maximum(np.round(4 * y), 1.0) if criterion == "poisson" else y), weight


def fit(X, y, weight, criterion, **options):
    return trees.grow(X, y, criterion=criterion, sample_weight=weight, **options)


# ---- cumulative sums ----------------------------------------------------------------------------------------------


def check_every_node(tree, X, y, weight, criterion, min_leaf=1):
    """The chosen gain is the largest of all columns' and all cuts'."""
    assert_well_formed(tree)
    X, y = X.astype(np.float64), y.astype(np.float64)
    w = np.ones(len(y)) if weight is None else weight
    n_classes = None if tree.classes is None else len(tree.classes)
    inside = rows_of_nodes(tree, X)
    scale = oracle.loss(y, w, criterion, n_classes)
    losses = [oracle.loss(y[rows], w[rows], criterion, n_classes) for rows in inside]
    weights = np.array([w[rows].sum() for rows in inside])
    np.testing.assert_allclose(tree.impurity * weights, losses, rtol=1e-11, atol=1e-11 * scale)
    np.testing.assert_array_equal(tree.n_samples, [len(rows) for rows in inside])
    np.testing.assert_array_equal(tree.weight, weights)
    categorical = [j for j, levels in enumerate(tree.categories) if levels is not None]
    for node, rows in enumerate(inside):
        if np.ptp(y[rows]) == 0:
            assert tree.left[node] < 0
            continue
        best = oracle.best_gain(
            X[rows], y[rows], w[rows], criterion, n_classes, categorical=categorical, min_leaf=min_leaf
        )
        if tree.left[node] < 0:
            assert best == -np.inf
            continue
        # Both sides sum in floats: 1e-11 of the root's loss is some hundred roundings of the largest term.
        assert abs(tree.gain[node] * w.sum() - best) <= 1e-11 * scale
        if np.isfinite(tree.threshold[node]):
            low, high = (X[inside[child], tree.feature[node]] for child in (tree.left[node], tree.right[node]))
            assert tree.threshold[node] == exact.halfway(np.nanmax(low), np.nanmin(high))


@pytest.mark.parametrize("criterion", NUMERICAL)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_node_of_a_large_tree(criterion, weighted):
    n = 500 if criterion == "absolute_error" else 1500
    X, y, weight = data(criterion, n, weighted=weighted)
    check_every_node(fit(X, y, weight, criterion), X, y, weight, criterion)


@pytest.mark.parametrize("n_classes", [3, 10])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
def test_every_node_of_many_classes(criterion, n_classes):
    X, y, weight = data(criterion, 1000, 1, n_classes=n_classes)
    check_every_node(fit(X, y, weight, criterion, min_leaf=3), X, y, weight, criterion, min_leaf=3)


def test_more_classes_than_a_byte_has():
    X, y, weight = data("gini", 700, 1, n_classes=300)
    assert len(set(y)) == 300
    check_every_node(fit(X, y, weight, "gini", min_leaf=2), X, y, weight, "gini", min_leaf=2)


def test_many_levels_of_many_classes():
    """Beyond 12 levels the search is along one direction: exact where the class shares lie on a line."""
    rng = np.random.default_rng(4)
    level = rng.integers(0, 40, size=4000)
    place = rng.permutation(40)[level] / 39
    y = np.where(rng.random(4000) < place, 0, np.where(rng.random(4000) < 0.5, 1, 2))
    tree = fit(level[:, None].astype(float), y, None, "gini", categorical=[0], max_depth=1)
    means = np.bincount(level, y == 0) / np.bincount(level)
    ranks = np.argsort(np.argsort(means))[level].astype(float)
    cuts = fit(ranks[:, None], y, None, "gini", max_depth=1)
    left = np.isin(level, tree.left_levels(0))
    counts = np.array([np.bincount(y[part], minlength=3) for part in (left, ~left)], dtype=float)
    gain = oracle.loss(y, np.ones(4000), "gini", 3) - oracle.class_losses(counts, "gini").sum()
    np.testing.assert_allclose(tree.gain[0] * 4000, gain, rtol=1e-12)
    assert tree.gain[0] >= 0.98 * cuts.gain[0]  # shares of so few rows lie only near a line


@pytest.mark.parametrize(
    ("criterion", "n_classes", "n", "n_levels"),
    [
        ("gini", 2, 1500, 400),  # beyond 256, codes take two bytes
        ("entropy", 2, 1500, 30),
        ("misclassification", 2, 1500, 30),
        ("gini", 3, 1500, 5),
        ("entropy", 3, 1500, 5),
        ("squared_error", None, 1500, 400),
        ("poisson", None, 1500, 30),
        ("absolute_error", None, 400, 4),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_node_with_categories_and_missing_values(criterion, n_classes, n, n_levels, weighted):
    """Columns of many and of few values and of categories, each with missing ones."""
    X, y, weight = data(criterion, n, 2, n_classes=n_classes, weighted=weighted)
    rng = np.random.default_rng(3)
    X[:, 5] = rng.integers(0, n_levels, size=n)
    X[rng.random(X.shape) < 0.15] = np.nan
    tree = fit(X, y, weight, criterion, categorical=[1, 5], min_leaf=2)
    assert set(tree.feature[tree.left >= 0]) == set(range(6))
    check_every_node(tree, X, y, weight, criterion, min_leaf=2)


@pytest.mark.parametrize("n", [255, 256, 257, 258, 599, 600, 601, 2048, 2049, 4097])
def test_sizes_around_limits(n):
    """As many values as rows, on both sides of what fits a code of eight bits, and of powers of two."""
    X, y, weight = data("gini", n, 2, weighted=True)
    X[:, 0] = np.random.default_rng(n).permutation(n)
    check_every_node(fit(X, y, weight, "gini", min_leaf=2), X, y, weight, "gini", min_leaf=2)


# ---- scikit-learn -------------------------------------------------------------------------------------------------


def peer(X, y, weight, criterion, **options):
    name = {"misclassification": "gini"}.get(criterion, criterion)
    kind = DecisionTreeClassifier if criterion in exact.CLASSIFICATION else DecisionTreeRegressor
    return kind(criterion=name, random_state=0, **options).fit(X, y, sample_weight=weight).tree_


def rows_of_peer(peer, X):
    inside = [None] * peer.node_count
    inside[0] = np.arange(len(X))
    for node in np.flatnonzero(peer.children_left >= 0):
        left = X[inside[node], peer.feature[node]] <= peer.threshold[node]
        inside[peer.children_left[node]] = inside[node][left]
        inside[peer.children_right[node]] = inside[node][~left]
    return inside


def compare(tree, other, X, *, values=True, best_first=False):
    """Walk both as long as they hold the same rows: equal impurities, values and gains. Where two splits gain the same
    the trees may part, and below nothing can be said. Returns how many splits were the same."""
    mine, theirs = rows_of_nodes(tree, X), rows_of_peer(other, X)
    share = other.weighted_n_node_samples / other.weighted_n_node_samples[0]
    stack, same, scale = [(0, 0)], 0, other.impurity[0]
    seen, split = [], []  # pairs of nodes with the same rows, and of those that both trees split
    while stack:
        a, b = stack.pop()
        seen.append((a, b))
        left, right = other.children_left[b], other.children_right[b]
        if left < 0 or tree.left[a] < 0:  # best-first, trees that have parted elsewhere spend their leaves otherwise
            assert best_first or (left < 0 and tree.left[a] < 0)
            continue
        split.append((a, b))
        if np.array_equal(mine[tree.left[a]], theirs[left]):
            same += 1
            stack += [(tree.left[a], left), (tree.right[a], right)]
    a, b = np.transpose(seen)
    np.testing.assert_allclose(tree.impurity[a], other.impurity[b], rtol=1e-9, atol=1e-11 * scale)
    np.testing.assert_array_equal(tree.n_samples[a], other.n_node_samples[b])
    if values:
        said = tree.value[a].reshape(len(a), -1)
        np.testing.assert_allclose(said, other.value[b].reshape(len(a), -1), rtol=1e-9, atol=1e-9)
    a, b = np.transpose(split)
    left, right = other.children_left[b], other.children_right[b]
    after = share[left] * other.impurity[left] + share[right] * other.impurity[right]
    np.testing.assert_allclose(tree.gain[a], share[b] * other.impurity[b] - after, rtol=1e-8, atol=1e-11 * scale)
    return same


def check_against_peer(X, y, weight, criterion, limit, *, least, near):
    """At least so many splits are the same; and the loss, up to what parting at ties makes of it."""
    ours, others = LIMITS[limit]
    tree, other = fit(X, y, weight, criterion, **ours), peer(X, y, weight, criterion, **others)
    values, best_first = criterion != "absolute_error", limit == "31 leaves"  # a median is not unique
    same = compare(tree, other, X, values=values, best_first=best_first)
    assert same >= least
    loss = (other.impurity * other.weighted_n_node_samples)[other.children_left < 0].sum()
    loss /= other.weighted_n_node_samples[0]
    parted = same < other.node_count // 2
    np.testing.assert_allclose(loss_of_leaves(tree), loss, rtol=near if parted else 1e-9, atol=1e-12)


LIMITS = {
    "purity": ({}, {}),
    "depth 8": ({"max_depth": 8}, {"max_depth": 8}),
    "31 leaves": ({"growth": "best", "max_leaves": 31}, {"max_leaf_nodes": 31}),
    "leaves of 20": ({"min_leaf": 20}, {"min_samples_leaf": 20}),
    "leaves of 2 %": ({"min_share": 0.02}, {"min_weight_fraction_leaf": 0.02}),
    "splits of 50": ({"min_split": 50}, {"min_samples_split": 50}),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_scikit_learn(limit, criterion, weighted):
    X, y, weight = data(criterion, 3000, 3, weighted=weighted)
    check_against_peer(X, y, weight, criterion, limit, least=15, near=0.03)


@pytest.mark.parametrize(
    ("criterion", "options"),
    [
        ("gini", {"n_classes": 2}),
        ("gini", {"n_classes": 7, "weighted": True}),
        ("entropy", {"n_classes": 3}),
        ("squared_error", {}),
    ],
)
@pytest.mark.parametrize("limit", ["depth 8", "31 leaves"])
def test_as_scikit_learn_on_many_rows(criterion, options, limit):
    X, y, weight = data(criterion, 40_000, 4, **options)
    check_against_peer(X, y, weight, criterion, limit, least=30, near=0.01)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("limit", ["depth 8", "leaves of 20"])
def test_absolute_error_as_scikit_learn(weighted, limit):
    X, y, weight = data("absolute_error", 700, 5, weighted=weighted)
    y = y + 0.001 * np.random.default_rng(5).normal(size=len(y))
    check_against_peer(X, y, weight, "absolute_error", limit, least=10, near=0.03)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_spam_as_scikit_learn(criterion):
    """57 real columns, nine tenths of their values zero."""
    spam = spambase()
    X, y = spam.X.astype(np.float32), (spam.y == "spam").astype(float if criterion == "squared_error" else int)
    for limit in ("depth 8", "31 leaves", "purity"):
        check_against_peer(X, y, None, criterion, limit, least=15, near=0.03)


@pytest.mark.parametrize("columns", [[0, 1], [1, 0]])
@pytest.mark.parametrize(
    ("sizes", "lefts"),
    [
        ([9009, 12012, 15015], [[0, 9009, 9009], [3003, 6006, 0]]),
        ([45063, 80112], [[10014, 40056], [5007, 0]]),
    ],
)
def test_equal_gains_of_many_rows_tie(sizes, lefts, columns):
    """Two splits with the same gain as fractions: the lower column is taken, whichever it is. Rows left by class."""

    def gain(left):
        right = [n - k for n, k in zip(sizes, left, strict=True)]
        return sum(Fraction(sum(k * k for k in side), sum(side)) for side in (left, right))

    assert gain(lefts[0]) == gain(lefts[1])
    X = np.column_stack(
        [np.concatenate([np.arange(n) >= k for n, k in zip(sizes, left, strict=True)]) for left in lefts]
    ).astype(float)
    grown = trees.grow(X[:, columns], np.repeat(np.arange(len(sizes)), sizes), max_depth=1)
    assert grown.feature[0] == 0
