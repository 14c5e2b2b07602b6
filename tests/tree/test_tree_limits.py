"""Where growing stops, what is refused, and how long computations behave."""

import math
import sys

import numpy as np
import pytest
import tree_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import seconds_of_all
from scipy.stats import chi2 as chi_squared
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from trees import assert_identical, assert_well_formed, tables

from kernelrules import tree as trees


def data(n=400, p=4, seed=0, *, n_classes=2, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 1] = np.round(2 * X[:, 1])
    score = X[:, 0] + np.sin(3 * X[:, 1]) + X[:, 2] ** 2 + 0.7 * rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])), score


def target(criterion, y, score):
    if criterion in oracle.CLASSIFICATION:
        return y
    return np.round(4 * (score - score.min()))


def depths(tree):
    depth = np.zeros(tree.n_nodes, dtype=int)
    for node in np.flatnonzero(tree.left >= 0):
        depth[[tree.left[node], tree.right[node]]] = depth[node] + 1
    return depth


each_criterion = pytest.mark.parametrize("criterion", oracle.CRITERIA)
each_growth = pytest.mark.parametrize("growth", ["depth", "best"])


def cut(tree, keep):
    """Splits of the nodes that `keep` is true of, top down: the feature, threshold and gain of each."""
    found, stack = [], [0]
    while stack:
        node = stack.pop()
        if tree.left[node] >= 0 and keep(node):
            found.append((int(tree.feature[node]), float(tree.threshold[node]), float(tree.gain[node])))
            stack += [tree.right[node], tree.left[node]]
    return found


# ---- limits -------------------------------------------------------------------------------------------------------


@each_criterion
@each_growth
@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, 7])
def test_max_depth_cuts_the_whole_tree(criterion, growth, max_depth):
    X, y, score = data()
    y = target(criterion, y, score)
    whole, tree = (trees.grow(X, y, criterion=criterion, growth=growth, max_depth=d) for d in (None, max_depth))
    assert_well_formed(tree)
    assert tree.depth == max_depth
    depth = depths(whole)
    assert cut(tree, lambda _: True) == cut(whole, lambda node: depth[node] < max_depth)


@each_criterion
@pytest.mark.parametrize("max_leaves", [1, 2, 3, 10, 31])
def test_best_first_takes_the_largest_gains(criterion, max_leaves):
    """Whatever was left unsplit gains no more than what was split last; and each tree is a part of the next."""
    X, y, score = data()
    y = target(criterion, y, score)
    tree = trees.grow(X, y, criterion=criterion, growth="best", max_leaves=max_leaves)
    whole = trees.grow(X, y, criterion=criterion, growth="best")
    assert_well_formed(tree)
    assert tree.n_leaves == max_leaves
    # Replay: of the whole tree always the open node with the largest gain, the oldest of equal ones.
    made, split = [0], set()
    while len(split) < max_leaves - 1:
        node = max((n for n in made if whole.left[n] >= 0 and n not in split), key=lambda n: whole.gain[n])
        made += [whole.left[node], whole.right[node]]
        split.add(node)
    assert cut(tree, lambda _: True) == cut(whole, split.__contains__)


@each_growth
def test_max_leaves_of_depth_first_growth(growth):
    """Whatever the order, there are never more; and one leaf is the root."""
    X, y, _ = data()
    for max_leaves in (1, 2, 5, 17):
        tree = trees.grow(X, y, growth=growth, max_leaves=max_leaves)
        assert_well_formed(tree)
        assert tree.n_leaves == max_leaves
    assert trees.grow(X, y, growth=growth, max_leaves=10**9).n_leaves == trees.grow(X, y).n_leaves


@each_criterion
@pytest.mark.parametrize("min_split", [2, 3, 30, 400, 401])
def test_min_split(criterion, min_split):
    X, y, score = data()
    y = target(criterion, y, score)
    whole, tree = (trees.grow(X, y, criterion=criterion, min_split=m) for m in (2, min_split))
    assert cut(tree, lambda _: True) == cut(whole, lambda node: whole.n_samples[node] >= min_split)
    assert (tree.n_nodes > 1) == (min_split <= 400)


@each_criterion
@pytest.mark.parametrize("min_leaf", [1, 2, 10, 150, 200, 201])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_min_leaf(criterion, min_leaf, missing):
    X, y, score = data(missing=missing)
    y = target(criterion, y, score)
    tree = trees.grow(X, y, criterion=criterion, min_leaf=min_leaf)
    assert_well_formed(tree)
    assert tree.n_samples.min() >= min(min_leaf, 400)
    assert (tree.n_nodes > 1) == (min_leaf <= 200)
    if min_leaf <= 10:
        assert tree.n_samples[tree.left < 0].min() == min_leaf


@each_criterion
@pytest.mark.parametrize("min_share", [0.0025, 0.01, 0.2, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_min_share(criterion, min_share, weighted):
    X, y, score = data(missing=0.1)
    y = target(criterion, y, score)
    weight = np.random.default_rng(5).uniform(0.1, 3, len(y)) if weighted else None
    tree = trees.grow(X, y, criterion=criterion, min_share=min_share, sample_weight=weight)
    assert_well_formed(tree)
    assert tree.weight.min() >= min_share * tree.weight[0] * (1 - 1e-9)
    if not weighted:
        assert_identical(tree, trees.grow(X, y, criterion=criterion, min_leaf=math.ceil(400 * min_share)))


def test_a_share_is_that_of_all_weight():
    X, y, _ = data()
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    a = trees.grow(X, y, min_share=0.03, sample_weight=weight)
    assert_identical(a, trees.grow(X[twice], y[twice], min_share=0.03), but=["n_samples"])
    assert_identical(a, trees.grow(X, y, min_share=0.03, sample_weight=weight * 0.25), but=["weight"])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_tree_of_so_many_nodes_that_sorted_columns_make_room(n_threads):
    y = np.random.default_rng(0).normal(size=101_000)
    X = np.arange(len(y), dtype=np.float32)[:, None]
    tree = trees.grow(X, y, criterion="squared_error", n_threads=n_threads)
    assert tree.n_nodes == 2 * len(y) - 1
    np.testing.assert_allclose(trees.predict(tree, X), y, atol=1e-12)


def test_limits_count_rows_not_weight():
    X, y, _ = data()
    for weight in (2.0**-10, 1024.0):
        tree = trees.grow(X, y, min_leaf=10, min_split=40, sample_weight=np.full(400, weight))
        assert_identical(tree, trees.grow(X, y, min_leaf=10, min_split=40), but=["weight"])


@each_criterion
@each_growth
def test_min_gain_is_the_least_gain(criterion, growth):
    X, y, score = data()
    y = target(criterion, y, score)
    whole = trees.grow(X, y, criterion=criterion)
    gains = np.sort(whole.gain[whole.left >= 0])
    for min_gain in (float(gains[len(gains) // 2]), float(gains[-1]) * 0.9, 0.0):
        tree = trees.grow(X, y, criterion=criterion, growth=growth, min_gain=min_gain)
        assert cut(tree, lambda _: True) == cut(whole, lambda node, least=min_gain: whole.gain[node] >= least)
    at_root = float(whole.gain[0])
    assert trees.grow(X, y, criterion=criterion, min_gain=at_root).n_nodes > 1, "a gain that is just enough"
    assert trees.grow(X, y, criterion=criterion, min_gain=np.nextafter(at_root, 9e9)).n_nodes == 1


def p_value(tree, node):
    """Of the table of sides and classes, by Pearson's test without a correction."""
    children = [tree.left[node], tree.right[node]]
    counts = tree.value[children] * tree.weight[children][:, None]
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return chi_squared.sf(((counts - expected) ** 2 / expected).sum(), counts.shape[1] - 1)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("level", [0.05, 1e-6, 0.5])
def test_chi2_stops_what_may_be_chance(criterion, n_classes, level):
    X, y, _ = data(n_classes=n_classes)
    whole = trees.grow(X, y, criterion=criterion)
    tree = trees.grow(X, y, criterion=criterion, chi2=level)
    values = {node: p_value(whole, node) for node in np.flatnonzero(whole.left >= 0)}
    assert all(abs(np.log(p / level)) > 1e-9 for p in values.values())
    assert cut(tree, lambda _: True) == cut(whole, lambda node: values[node] <= level)
    assert tree.n_leaves > 1
    assert level == 0.5 or tree.n_leaves < whole.n_leaves


def test_chi2_finds_nothing_in_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.integers(0, 2, size=300)
    assert trees.grow(X, y, chi2=1e-4).n_leaves == 1
    assert trees.grow(X, y).n_leaves > 20


# ---- monotone constraints -----------------------------------------------------------------------------------------


def as_numbers(tree, X):
    return trees.predict_proba(tree, X)[:, 1] if tree.classes is not None else trees.predict(tree, X)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error", "poisson"])
@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["depth", "best"]), st.booleans(), st.sampled_from([0.0, 0.2]))
def test_monotone_predictions(criterion, seed, growth, weighted, missing):
    """Moving one value up never moves the prediction down (or up), wherever the others are."""
    rng = np.random.default_rng(seed)
    X, y, score = data(150, 3, seed, missing=missing)
    y = target(criterion, y, score)
    weight = rng.integers(1, 4, size=150).astype(float) if weighted else None
    signs = rng.permutation([1, -1, 0])
    tree = trees.grow(X, y, criterion=criterion, growth=growth, monotone=signs, sample_weight=weight, max_leaves=40)
    assert_well_formed(tree)
    base = rng.normal(size=(60, 3))
    base[:, 1] = np.round(2 * base[:, 1])
    base[rng.random(base.shape) < missing] = np.nan
    for j, sign in enumerate(signs):
        if sign:
            lines = np.repeat(base[:, None, :], 25, axis=1)
            lines[:, :, j] = np.linspace(-4, 4, 25)
            f = as_numbers(tree, lines.reshape(-1, 3)).reshape(60, 25)
            assert (sign * np.diff(f, axis=1) >= 0).all()


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
@settings(max_examples=25)
@given(st.data())
def test_the_best_split_that_keeps_the_order(criterion, drawn):
    """At the root, where nothing else binds: no split whose sides are in order gains more."""
    table = drawn.draw(tables(criterion, categories=False))
    sample, signs = table.sample, drawn.draw(st.permutations([1, -1, 1, -1]))[: table.X.shape[1]]
    if criterion in oracle.CLASSIFICATION and max(sample.y) > 1:
        return
    tree = table.grow(monotone=signs, max_depth=1)
    rows, best = sample.rows, None
    for split, gain in oracle.candidates(sample, rows):
        left, right = split.parts(sample, rows)
        if signs[split.column] * (sample.mean(right) - sample.mean(left)) >= 0:
            best = gain if best is None else max(gain, best)
    if best is None or sample.is_pure(rows):
        assert tree.n_nodes == 1
    else:
        np.testing.assert_allclose(tree.gain[0] * float(sample.total(rows)), float(best), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("signs", [[1, 0, 0], [1, -1, 0], [0, 0, 1]], ids=str)
def test_monotone_trees_are_those_of_scikit_learn(signs):
    """Also where splits on free columns lead beyond the bounds: values are cut off there."""
    rng = np.random.default_rng(5)
    X = np.float32(rng.normal(size=(800, 3)))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=800)
    ours = trees.grow(X, y, criterion="squared_error", max_depth=6, min_leaf=5, monotone=signs)
    theirs = DecisionTreeRegressor(max_depth=6, min_samples_leaf=5, monotonic_cst=signs, random_state=0).fit(X, y)
    np.testing.assert_allclose(trees.predict(ours, X), theirs.predict(X), rtol=1e-9)
    labels = (y > 0).astype(int)
    ours = trees.grow(X, labels, max_depth=4, min_leaf=5, monotone=signs)
    theirs = DecisionTreeClassifier(max_depth=4, min_samples_leaf=5, monotonic_cst=signs, random_state=0)
    shares = theirs.fit(X, labels).predict_proba(X)
    np.testing.assert_allclose(trees.predict_proba(ours, X), shares, rtol=1e-9)


def test_monotone_with_the_data_costs_nothing():
    rng = np.random.default_rng(1)
    x = np.sort(rng.random(200))
    y = x > 0.4
    assert_identical(trees.grow(x[:, None], y), trees.grow(x[:, None], y, monotone=[1]))
    assert trees.grow(x[:, None], y, monotone=[-1]).n_leaves == 1
    free = trees.grow(x[:, None], np.floor(5 * x), criterion="squared_error")
    assert_identical(free, trees.grow(x[:, None], np.floor(5 * x), criterion="squared_error", monotone=(1,)))


def test_no_constraint_is_none():
    X, y, _ = data()
    assert_identical(trees.grow(X, y), trees.grow(X, y, monotone=[0, 0, 0, 0]))


# ---- class weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", oracle.CLASSIFICATION)
def test_class_weights_are_weights(criterion):
    X, y, _ = data(n_classes=3)
    y = np.array(["low", "middle", "high"])[y]
    told = {"low": 1.0, "middle": 4.0, "high": 0.5}
    by_row = np.array([told[label] for label in y])
    tree = trees.grow(X, y, criterion=criterion, class_weight=told)
    assert_identical(tree, trees.grow(X, y, criterion=criterion, sample_weight=by_row))
    assert tree.n_leaves != trees.grow(X, y, criterion=criterion).n_leaves
    assert_identical(tree, trees.grow(X, y, criterion=criterion, class_weight={"middle": 4.0, "high": 0.5}))  # else 1
    rows = np.random.default_rng(2).integers(1, 4, size=len(y)).astype(float)
    both = trees.grow(X, y, criterion=criterion, class_weight=told, sample_weight=rows)
    assert_identical(both, trees.grow(X, y, criterion=criterion, sample_weight=rows * by_row))


def test_balanced_classes_have_equal_weight():
    X, y, score = data()
    y = (score > np.quantile(score, 0.9)).astype(int)
    tree = trees.grow(X, y, class_weight="balanced", max_depth=4)
    np.testing.assert_allclose(tree.value[0], [0.5, 0.5], rtol=1e-12)
    by_row = len(y) / (2 * np.bincount(y)[y])
    same = trees.grow(X, y, sample_weight=by_row, max_depth=4)
    np.testing.assert_array_equal(tree.feature, same.feature)
    np.testing.assert_allclose(tree.weight, same.weight, rtol=1e-12)


# ---- nothing to split ---------------------------------------------------------------------------------------------


@each_criterion
@each_growth
@pytest.mark.parametrize("missing", ["extra", "zero", "impute", "surrogate", "error"])
def test_constant_columns_give_a_single_leaf(criterion, growth, missing):
    _, y, score = data(n_classes=3)
    y = target(criterion, y, score)
    X = np.tile([1.0, -0.0, 1e300], (len(y), 1))
    tree = trees.grow(X, y, criterion=criterion, growth=growth, missing=missing)
    assert_well_formed(tree)
    assert tree.n_nodes == 1
    assert tree.n_samples[0] == len(y)
    assert tree.gain[0] == 0
    assert len(set(trees.apply(tree, X))) == 1


@each_criterion
def test_one_row(criterion):
    tree = trees.grow(np.array([[1.0, 2.0]]), np.array([3]), criterion=criterion)
    assert_well_formed(tree)
    assert tree.n_nodes == 1
    assert tree.impurity[0] == 0
    assert trees.predict(tree, np.array([[5.0, -7.0]])).tolist() == [3]


def test_only_missing_values_give_a_single_leaf():
    for criterion in ("gini", "squared_error"):
        for missing in ("extra", "surrogate"):
            tree = trees.grow(np.full((6, 2), np.nan), [0, 1, 0, 1, 0, 1], criterion=criterion, missing=missing)
            assert tree.n_nodes == 1


def test_known_against_missing():
    """Where being missing is all that tells."""
    x = np.array([3.0, np.nan, 3.0, np.nan, 3.0])[:, None]
    tree = trees.grow(x, [0, 1, 0, 1, 0])
    assert tree.n_leaves == 2
    assert tree.impurity[1:].tolist() == [0, 0]
    assert trees.predict(tree, np.array([[np.nan], [-1e9], [1e9]])).tolist() == [1, 0, 0]
    tree = trees.grow(x, [0, 1, 0, 1, 0], categorical=[0])
    assert tree.n_leaves == 2
    assert trees.predict(tree, np.array([[np.nan], [3.0]])).tolist() == [1, 0]


@each_criterion
@pytest.mark.parametrize("subsets", ["best", "one"])
def test_a_category_of_one_level_is_never_split(criterion, subsets):
    X, y, score = data()
    y = target(criterion, y, score)
    X = np.column_stack([np.full(len(y), 5.0), X[:, 0]])
    tree = trees.grow(X, y, criterion=criterion, categorical=[0], subsets=subsets)
    assert (tree.feature[tree.left >= 0] == 1).all()
    assert trees.grow(X[:, :1], y, criterion=criterion, categorical=[0], subsets=subsets).n_nodes == 1


def test_levels_that_a_node_has_not_seen():
    """They are marked 2, and go to the larger child."""
    x = np.repeat([0.0, 1.0], [7, 5])
    codes = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 3, 3, 3.0])
    y = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2])
    tree = trees.grow(np.column_stack([x, codes]), y, categorical=[1])
    assert tree.feature[:2].tolist() == [0, 1]  # x ties with the fourth level, and comes first
    assert tree.subset_left[tree.subset_start[1] :].tolist() in ([1, 0, 0, 2], [0, 1, 1, 2])
    assert trees.predict(tree, np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 2.0], [1.0, 0.0]])).tolist() == [1, 0, 1, 2]


# ---- long computations --------------------------------------------------------------------------------------------


def test_a_chain_of_33_thousand_levels():
    """Classes in turn: cutting off one end gains most, again and again. Nothing may overflow, nor take for ever."""
    n = 33_001  # more than 2**15
    x = np.arange(n, dtype=np.float32)[:, None]
    y = (np.arange(n) % 2).astype(np.int64)
    tree = trees.grow(x, y)
    assert tree.n_leaves == n
    assert tree.depth == n - 1
    some = np.array([0, 1, 2, n // 2, n - 2, n - 1])
    assert trees.predict(tree, x[some]).tolist() == y[some].tolist()
    assert trees.apply(tree, x[-1:]).shape == (1,)


def test_callback_sees_progress():
    X, y, _ = data(20_000, 8)
    seen = []
    tree = trees.grow(X, y, callback=seen.append)
    assert seen
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total
    assert {p.what for p in seen} == {"tree"}
    assert_identical(tree, trees.grow(X, y))


@pytest.mark.parametrize(
    "options", [{"splits": "oblique"}, {"criterion": lambda p: 1 - (p**2).sum(axis=1)}, {"missing": "fractional"}]
)
def test_trees_grown_in_python_tell_of_themselves_too(options):
    X, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100) % 2
    X[::7, 0] = np.nan if "missing" in options else 0.0
    seen = []
    tree = trees.grow(X, y, callback=seen.append, **options)
    assert len(seen) >= tree.n_leaves - 1
    assert [told.done for told in seen] == sorted(told.done for told in seen)
    assert seen[-1].fraction == 1


@each_growth
@pytest.mark.parametrize("n_threads", [1, 2])
def test_callback_can_stop(growth, n_threads):
    class Enough(Exception):
        pass

    def stop(progress):
        raise Enough

    X, y, _ = data(20_000, 8)
    with pytest.raises(Enough):
        trees.grow(X, y, growth=growth, callback=stop, n_threads=n_threads)
    assert trees.grow(X, y, growth=growth, n_threads=n_threads, max_leaves=9).n_leaves == 9  # nothing is left behind


IN_TURN = "np.arange(len(X)) % 2"
LONG = {
    "purity": ("many", IN_TURN, "{}"),
    "best first": ("many", IN_TURN, "{'growth': 'best'}"),
    "one column": ("np.arange(400_000.0)[:, None]", IN_TURN, "{}"),  # a chain of 400 000 nodes
    "many classes": (
        "rng.normal(size=(100_000, 2)).astype(np.float32)",  # seconds for a single column of a single node
        "np.arange(len(X)) % 5000",
        "{'criterion': 'entropy'}",
    ),
    "many levels": (
        "rng.integers(0, 15_000, size=(60_000, 1))",  # seconds for a single principal component
        "np.arange(len(X)) % 1000",
        "{'categorical': [0]}",
    ),
    "many targets": (
        "many[:40_000, :10].copy()",
        "rng.random((len(X), 500))",
        "{'criterion': 'squared_error'}",
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_ctrl_c_returns_within_a_second():
    """A child process grows for many seconds on one thread; SIGINT must end it at once."""
    prepare = """
import numpy as np
from kernelrules import tree
many = np.random.default_rng(0).random((500_000, 40), dtype=np.float32)
"""
    cases = {
        name: (f"rng = np.random.default_rng(0); X = {X}; y = {y}", f"tree.grow(X, y, n_threads=1, **{options})")
        for name, (X, y, options) in LONG.items()
    }
    told = seconds_of_all(prepare, cases)
    assert all(seconds is not None and seconds < 1.0 for seconds in told.values()), told


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_ctrl_c_within_a_large_root():
    """After the columns are sorted: seconds for the 40 columns of the root, or for its surrogates."""
    prepare = """
import numpy as np
from kernelrules import tree
rng = np.random.default_rng(0)
many = rng.random((500_000, 40), dtype=np.float32)
y = many[:, 0] * many[:, 1]
holes = np.where(rng.random(many.shape, dtype=np.float32) < 0.1, np.nan, many)
"""
    cases = {
        "absolute errors": "tree.grow(many, y, criterion='absolute_error', n_threads=1)",
        "surrogates": "tree.grow(holes, y > 0.2, missing='surrogate', n_threads=1)",
        "several targets": "tree.grow(many, many[:, :8], criterion='squared_error', n_threads=1)",
    }
    told = seconds_of_all(prepare, {name: ("", call) for name, call in cases.items()}, head_start=1.8)
    assert all(seconds is not None and seconds < 1.0 for seconds in told.values()), told
