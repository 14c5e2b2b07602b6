"""The path of minimal cost-complexity pruning: against all pruned trees, one by one; and cutting itself."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import prune_oracle as oracle
import pytest
import tree_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import assert_identical, assert_well_formed, rows_of_nodes, tables

from kernelrules import prune
from kernelrules import tree as trees
from kernelrules.results import Tree

CRITERIA = ["gini", "entropy", "misclassification", "gain_ratio", "squared_error", "absolute_error", "poisson"]


def leaves_of(path, tree, alpha):
    """Of the pruned tree, as numbers of nodes of the whole one."""
    cut = set(np.flatnonzero(path.cut <= alpha).tolist())
    return frozenset(oracle.leaves_below(tree, 0, cut))


def chain(n, risk=None, seed=0):
    """A tree of n splits that is one chain: the left child of every split is a leaf."""
    split = np.arange(0, 2 * n, 2)
    left, right = np.full((2, 2 * n + 1), -1)
    left[split], right[split] = split + 1, split + 2
    weight = np.ones(2 * n + 1)
    weight[split] = np.arange(n + 1, 1, -1)
    inner = left >= 0
    if risk is None:  # of two classes: leaves pure, labels at random
        labels = np.random.default_rng(seed).integers(0, 2, n + 1)
        ones = np.zeros(2 * n + 1)
        ones[split + 1], ones[2 * n] = labels[:n], labels[n]
        ones[split] = np.cumsum(labels[::-1])[::-1][:n]
        value, criterion, impurity = (
            np.column_stack([weight - ones, ones]) / weight[:, None],
            "gini",
            np.zeros(len(left)),
        )
    else:
        value, criterion, impurity = np.zeros(2 * n + 1), "squared_error", risk / weight
    return Tree(
        feature=np.where(inner, 0, -1), threshold=np.where(inner, 0.5, np.nan), left=left, right=right, value=value,
        n_samples=weight.astype(np.int64), weight=weight, impurity=impurity, gain=np.zeros(len(left)),
        missing_left=np.zeros(len(left), dtype=bool), subset_start=np.full(len(left), -1),
        subset_left=np.zeros(0, dtype=np.uint8), criterion=criterion, missing="extra",
        classes=None if criterion == "squared_error" else np.array([0, 1]), categories=(None,), n_features=1,
        n_outputs=1, n_train=n + 1,
    )  # fmt: skip


@st.composite
def shapes(draw, most_splits=7):
    """Trees of any shape, their risks small whole numbers (so that alphas tie), never rising by a split."""
    n = draw(st.integers(0, most_splits))
    left, right = [-1], [-1]
    for _ in range(n):
        leaf = draw(st.sampled_from([i for i, child in enumerate(left) if child < 0]))
        left[leaf], right[leaf] = len(left), len(left) + 1
        left += [-1, -1]
        right += [-1, -1]
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if left[node] >= 0:
            stack += [right[node], left[node]]
    place = {node: i for i, node in enumerate(order)}
    a = np.array([place.get(left[node], -1) for node in order])
    b = np.array([place.get(right[node], -1) for node in order])
    risk = np.array([draw(st.integers(0, 3)) for _ in order], dtype=float)
    for node in np.flatnonzero(a >= 0)[::-1]:
        risk[node] += risk[a[node]] + risk[b[node]]
    base = chain(len(order) // 2, risk=risk)
    inner = a >= 0
    return replace(
        base, left=a, right=b, feature=np.where(inner, 0, -1), threshold=np.where(inner, 0.5, np.nan),
        weight=np.ones(len(a)), impurity=risk,
    )  # fmt: skip


def check_against_all(tree, path, risk, total):
    """Sequence and optimality, exactly: risk in fractions, undivided."""
    everything = oracle.pruned_trees(tree)
    told = oracle.weakest_links(tree, risk)
    assert [len(leaves) for _, leaves in told] == path.n_leaves.tolist()
    np.testing.assert_allclose(path.alphas, [float(alpha / total) for alpha, _ in told], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        path.risk, [float(sum(risk[i] for i in leaves) / total) for _, leaves in told], rtol=1e-12, atol=1e-15
    )
    for k, (alpha, leaves) in enumerate(told):
        assert leaves_of(path, tree, path.alphas[k]) == leaves == oracle.best(everything, risk, alpha)
        after = told[k + 1][0] if k + 1 < len(told) else alpha + 1
        between = (alpha + after) / 2
        if alpha < after:
            assert leaves_of(path, tree, float(between / total)) == oracle.best(everything, risk, between)


@settings(max_examples=150)
@given(shapes())
def test_the_path_is_that_of_all_pruned_trees(tree):
    risk = [Fraction(float(r)) for r in tree.impurity]
    check_against_all(tree, prune.cost_complexity_path(tree), risk, 1)


@pytest.mark.parametrize("criterion", ["gini", "gain_ratio"])
@given(data=st.data())
def test_zero_one_paths_of_grown_trees(criterion, data):
    """Weights, categories and missing values; counts are whole, so everything is exact."""
    table = data.draw(tables(criterion))
    tree = table.grow(max_leaves=7)
    sample = table.sample
    inside = rows_of_nodes(tree, table.X, sample.rows)
    risk = []
    for rows in inside:
        of_class = np.bincount(table.y[rows], None if table.weight is None else table.weight[rows])
        risk.append(Fraction(int(of_class.sum() - of_class.max())))
    check_against_all(tree, prune.cost_complexity_path(tree), risk, Fraction(int(tree.weight[0])))


@pytest.mark.parametrize("criterion", CRITERIA)
@settings(max_examples=25)
@given(data=st.data())
def test_every_criterion_has_a_path(criterion, data):
    """Nested, convex in the number of leaves, from no fewer leaves than are worth anything to the root."""
    table = data.draw(tables(criterion))
    tree = table.grow()
    before = {name: array.copy() for name, array in vars(tree).items() if isinstance(array, np.ndarray)}
    for loss in [None, criterion] + (
        ["zero_one", "gini", "entropy"] if criterion in tree_oracle.CLASSIFICATION else []
    ):
        path = prune.cost_complexity_path(tree, loss=loss)
        assert path.alphas[0] == 0
        assert (np.diff(path.alphas) > 0).all()
        assert (np.diff(path.n_leaves) < 0).all()
        assert (np.diff(path.risk) > 0).all()
        assert path.n_leaves[-1] == 1
        assert path.n_leaves[0] <= tree.n_leaves
        np.testing.assert_allclose(
            path.alphas[1:], np.diff(path.risk) / -np.diff(path.n_leaves), rtol=1e-6, atol=1e-12 * path.risk[-1]
        )
        smaller = tree
        for k in range(len(path.alphas)):
            pruned = prune.cost_complexity(tree, path.alphas[k], loss=loss)
            assert_well_formed(pruned)
            assert pruned.n_leaves == path.n_leaves[k]
            again = prune.cost_complexity(smaller, path.alphas[k], loss=loss)  # nested: the way there does not matter
            assert again.n_leaves == path.n_leaves[k]
            smaller = again
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(tree, name), array, err_msg=name)


def test_ties_collapse_together():
    """Two splits below a third, all with g = 1: the path has two trees only."""
    tree = chain(3, risk=np.array([3.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0]))
    path = prune.cost_complexity_path(tree)
    assert path.n_leaves.tolist() == [4, 1]
    np.testing.assert_allclose(path.alphas * tree.weight[0], [0, 1])


def test_alphas_that_differ_by_rounding_are_one():
    """Tenths are not binary: sums of them differ in the last bits, alphas must not."""
    risk = np.array([0.1 + 0.2 + 0.3, 0.0, 0.1 + 0.3, 0.0, 0.2, 0.0, 0.0])
    for unit in (1.0, 1e-200, 1e30):  # numbers as large as the last are all whole, but sums of them are not exact
        assert len(prune.cost_complexity_path(chain(3, risk=risk * unit)).alphas) == 2


def test_splits_that_save_nothing_are_not_worth_nothing():
    """Of a share of 0.7, divided into 0.5 and 0.9: gini sees a gain, the number of errors none."""
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    y = np.repeat([0, 1, 0, 1], [5, 5, 1, 9])
    tree = trees.grow(X, y)
    assert tree.n_leaves == 2
    assert prune.cost_complexity_path(tree).n_leaves.tolist() == [1]
    assert prune.cost_complexity(tree, 0.0).n_leaves == 1
    assert prune.cost_complexity_path(tree, loss="gini").n_leaves.tolist() == [2, 1]


def test_a_single_leaf():
    tree = trees.grow([[1.0], [1.0]], [0, 1])
    path = prune.cost_complexity_path(tree)
    assert (path.alphas.tolist(), path.n_leaves.tolist(), path.risk.tolist()) == ([0.0], [1], [0.5])
    assert_identical(prune.cost_complexity(tree, 0.3), tree)


def test_alphas_are_those_of_scikit_learn():
    """Its path by gini of its own tree; it cuts one link at a time, so ties are listed several times there."""
    sklearn_tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (rng.random(300) < 0.2)
    theirs = sklearn_tree.DecisionTreeClassifier(random_state=0)
    told, grown = theirs.cost_complexity_pruning_path(X, y), theirs.fit(X, y).tree_
    inner = grown.children_left >= 0
    tree = replace(
        chain(grown.node_count // 2), left=grown.children_left.copy(), right=grown.children_right.copy(),
        weight=grown.weighted_n_node_samples.copy(),
        value=grown.value[:, 0] / grown.value[:, 0].sum(axis=1, keepdims=True),
        classes=np.arange(3), feature=np.where(inner, 0, -1),
    )  # fmt: skip
    path = prune.cost_complexity_path(tree, loss="gini")
    assert len(path.alphas) > 20
    for alpha in ((path.alphas[:-1] + path.alphas[1:]) / 2)[::4]:
        theirs = sklearn_tree.DecisionTreeClassifier(random_state=0, ccp_alpha=alpha).fit(X, y)
        assert prune.cost_complexity(tree, alpha, loss="gini").n_leaves == theirs.get_n_leaves()
    for alpha, risk in zip(path.alphas, path.risk, strict=True):
        j = np.searchsorted(told.ccp_alphas, alpha * (1 + 1e-9) + 1e-12, side="right") - 1
        np.testing.assert_allclose((told.ccp_alphas[j], told.impurities[j]), (alpha, risk), rtol=1e-9, atol=1e-12)


# ---- size -----------------------------------------------------------------------------------------------------------


def test_a_chain_of_100000_levels():
    """Nothing may overflow, and what takes time with the square of the levels would not end."""
    tree = chain(100_000)
    path = prune.cost_complexity_path(tree)
    assert path.n_leaves[-1] == 1
    assert (np.diff(path.alphas) > 0).all()
    pruned = prune.cost_complexity(tree, path.alphas[len(path.alphas) // 2])
    assert pruned.n_leaves == path.n_leaves[len(path.alphas) // 2]
    for smaller in (prune.to_size(tree, 50_000), prune.mdl(tree), prune.chi2(tree, 0.01), prune.pessimistic(tree)):
        assert smaller.n_leaves < tree.n_leaves


def test_a_chain_whose_links_go_from_the_bottom_or_all_at_once():
    """Convex risks: every link on the path; concave ones: a single step. Both are the worst case of something."""
    n = 50_000
    split = np.arange(0, 2 * n, 2)
    for power, steps in ((2.0, n), (0.5, 1)):
        risk = np.zeros(2 * n + 1)
        risk[split] = np.arange(n, 0, -1) ** power
        path = prune.cost_complexity_path(chain(n, risk=risk))
        assert len(path.alphas) == steps + 1
        assert path.n_leaves[0] == n + 1


# ---- cutting --------------------------------------------------------------------------------------------------------

OPTIONS = [
    {"missing": "extra"},
    {"missing": "surrogate"},
    {"missing": "impute", "rng": 0},
    {"missing": "fractional"},
    {"splits": "oblique"},
]


def mixed(missing=True, n=120, seed=0):
    """Numbers and categories, some missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 3] = rng.integers(0, 5, n)
    X[:, 4] = rng.integers(0, 3, n)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + (X[:, 3] == 2) + rng.normal(size=n) > 0.3).astype(int) + (X[:, 4] == 1)
    if missing:
        X[rng.random((n, 5)) < 0.1] = np.nan
    return X, y


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_a_cut_tree_is_as_if_it_had_been_grown_so_small(options):
    """All nodes of depth d made leaves: the bits of grow(max_depth=d), flags, surrogates and directions included."""
    X, y = mixed()
    whole = trees.grow(X, y, categorical=[3, 4], **options)
    depth = np.zeros(whole.n_nodes, dtype=int)
    for node in np.flatnonzero(whole.left >= 0):
        depth[[whole.left[node], whole.right[node]]] = depth[node] + 1
    for d in (0, 1, 2, 4, 6):
        grown = trees.grow(X, y, categorical=[3, 4], max_depth=d, **options)
        cut = prune.snip(whole, np.flatnonzero(depth == d))
        assert_identical(cut, grown)
        assert (cut.directions is None) == (grown.directions is None)
        np.testing.assert_array_equal(trees.predict(cut, X), trees.predict(grown, X))


@pytest.mark.parametrize("options", [o for o in OPTIONS if o != {"missing": "fractional"}], ids=str)
def test_a_pruned_tree_predicts_what_the_surviving_ancestor_says(options):
    X, y = mixed()
    tree = trees.grow(X, y, categorical=[3, 4], **options)
    fresh, _ = mixed(seed=1)
    steps = trees.decision_path(tree, fresh)
    rng = np.random.default_rng(2)
    for size in (1, 2, 5, 20):
        nodes = rng.choice(tree.n_nodes, size=size, replace=False)
        pruned = prune.snip(tree, nodes)
        where = [
            next(node for node in steps.indices[a:b] if node in nodes or tree.left[node] < 0)
            for a, b in zip(steps.indptr[:-1], steps.indptr[1:], strict=True)
        ]
        np.testing.assert_array_equal(trees.predict_proba(pruned, fresh), tree.value[where])


def test_snip_of_everything_of_nothing_and_of_one():
    X, y = mixed()
    tree = trees.grow(X, y)
    assert_identical(prune.snip(tree, []), tree)
    assert_identical(prune.snip(tree, np.flatnonzero(tree.left < 0)), tree)
    assert prune.snip(tree, 0).n_nodes == 1
    assert prune.snip(tree, range(tree.n_nodes)).n_nodes == 1
    assert prune.snip(tree, np.int32(tree.right[0])).n_nodes == tree.right[0] + 1
    assert prune.snip(tree, [int(tree.left[0]), int(tree.right[0])]).n_leaves == 2
