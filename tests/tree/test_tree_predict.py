"""Walks down trees against the naive walker: plain and general ones, any layout of the data, any number of threads."""

import dataclasses
import pickle
import sys

import numpy as np
import pytest
import tree_walk_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from interrupting import seconds_to_stop
from strategies import dtypes, layouts

from kernelrules.core.tree import fractional, predict
from kernelrules.core.tree.leaf_values import linear_values
from kernelrules.results import Surrogates, Tree

seeds = st.integers(0, 2**32 - 1)


def make_tree(rng, *, n_splits, n_levels, n_oblique=0, surrogates=False, values=(-2.0, -0.5, 0.0, 0.1, 1.0)):
    """A random tree in depth-first order: a leaf chosen at random is split, again and again."""
    p = len(n_levels)
    children = {0: None}
    for _ in range(n_splits):
        leaf = rng.choice([node for node, pair in children.items() if pair is None])
        new = len(children)
        children |= {leaf: (new, new + 1), new: None, new + 1: None}
    order, waiting = [], [0]
    while waiting:
        order.append(waiting.pop())
        if children[order[-1]] is not None:
            waiting += children[order[-1]][::-1]
    number = {node: position for position, node in enumerate(order)}
    n = len(order)
    left, right = np.full((2, n), -1)
    for node, pair in children.items():
        if pair is not None:
            left[number[node]], right[number[node]] = number[pair[0]], number[pair[1]]
    inner = left >= 0
    flags = []

    def draw_split(n_columns):
        column = rng.integers(n_columns)
        if column < p and n_levels[column]:
            flags.append(rng.integers(0, 3, n_levels[column]).astype(np.uint8))
            return column, np.nan, sum(map(len, flags[:-1]))
        return column, rng.choice(values), -1

    feature, threshold, subset_start = np.full(n, -1), np.full(n, np.nan), np.full(n, -1)
    stand_ins, start = [], np.zeros(n + 1, dtype=np.int64)
    for node in range(n):
        if inner[node]:
            feature[node], threshold[node], subset_start[node] = draw_split(p + n_oblique)
            stand_ins += [draw_split(p) for _ in range(rng.integers(3))] if surrogates else []
        start[node + 1] = len(stand_ins)
    held = None
    if surrogates:
        columns = list(zip(*stand_ins, strict=True)) or [[], [], []]
        held = Surrogates(
            start=start,
            feature=np.array(columns[0], dtype=np.int64),
            threshold=np.array(columns[1], dtype=np.float64),
            below_left=rng.random(len(stand_ins)) < 0.5,
            subset_start=np.array(columns[2], dtype=np.int64),
            agreement=np.ones(len(stand_ins)),
        )
    return Tree(
        feature=feature,
        threshold=threshold,
        left=left,
        right=right,
        value=rng.normal(size=(n, 2)),
        n_samples=np.ones(n, dtype=np.int64),
        weight=rng.integers(1, 4, n).astype(float),
        impurity=np.ones(n),
        gain=np.zeros(n),
        missing_left=rng.random(n) < 0.5,
        subset_start=subset_start,
        subset_left=np.concatenate([np.zeros(0, dtype=np.uint8), *flags]),
        criterion="gini",
        missing="extra",
        classes=None,
        categories=tuple(np.arange(q) if q else None for q in n_levels),
        n_features=p,
        n_outputs=1,
        n_train=1,
        surrogates=held,
        directions=rng.integers(-2, 3, size=(n_oblique, p)).astype(float) if n_oblique else None,
    )


def make_rows(rng, n, n_levels, missing, values=(-2.0, -0.5, 0.0, 0.1, 1.0)):
    """Numbers that are often those of the thresholds, and codes, some of them of no level."""
    X = rng.choice([*values, -3.0, 2.0], size=(n, len(n_levels)))
    for column, q in enumerate(n_levels):
        if q:
            X[:, column] = rng.integers(-1, q + 1, n)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def leaves(tree, X, n_threads=1, any_missing=True, tick=None):
    out = np.full(len(X), -7, dtype=np.int64)
    predict.apply_tree(predict.Nodes(tree), X, np.arange(tree.n_nodes), out, any_missing, n_threads, tick)
    return out


@st.composite
def problems(draw, kinds):
    """A tree and rows for it."""
    kind, rng = draw(st.sampled_from(kinds)), np.random.default_rng(draw(seeds))
    p = draw(st.integers(1, 4))
    n_levels = rng.integers(1, 5, p) * (rng.random(p) < 0.6) if kind in ("subsets", "surrogates") else [0] * p
    tree = make_tree(
        rng,
        n_splits=draw(st.integers(0, 20)),
        n_levels=n_levels,
        n_oblique=draw(st.integers(1, 3)) if kind == "oblique" else 0,
        surrogates=kind == "surrogates",
    )
    X = make_rows(rng, draw(st.integers(1, 30)), n_levels, draw(st.sampled_from([0.0, 0.3, 1.0])))
    return tree, draw(layouts(X.astype(draw(dtypes))))


@given(problems(["plain", "subsets", "oblique", "surrogates"]), st.integers(1, 3))
def test_leaves_are_those_of_the_naive_walk(problem, n_threads):
    tree, X = problem
    if not X.flags.aligned:
        X = X.copy()
    expected = [oracle.leaf(tree, row) for row in X]
    np.testing.assert_array_equal(leaves(tree, X, n_threads), expected)
    if not np.isnan(X).any():
        np.testing.assert_array_equal(leaves(tree, X, n_threads, any_missing=False), expected)


@given(problems(["plain", "subsets", "oblique"]))
def test_fractions_are_those_of_the_naive_walk(problem):
    tree, X = problem
    if not X.flags.aligned:
        X = X.copy()
    out = np.empty((len(X), 2))
    fractional.fractional_values(predict.Nodes(tree), X, tree.value, out, 1)
    for row, found in zip(X, out, strict=True):
        shares = oracle.mixture(tree, row)
        assert sum(shares.values()) == 1
        expected = sum(float(share) * tree.value[leaf] for leaf, share in shares.items())
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    again = np.empty_like(out)
    fractional.fractional_values(predict.Nodes(tree), X, tree.value, again, 3)
    np.testing.assert_array_equal(out, again)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [5, 65, 128, 129])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 33, 2047, 2048, 2055, 2056, 10_001])
def test_any_number_of_rows(dtype, n_columns, n):
    """Lanes, buffers of long rows and tasks of many sizes: every row is written once, by whichever thread, and rows
    that lie apart, which are walked where they are, come to the same leaves."""
    rng = np.random.default_rng(n)
    tree = make_tree(rng, n_splits=200, n_levels=[0] * n_columns, values=rng.normal(size=50))
    X = rng.normal(size=(n, n_columns)).astype(dtype)
    X[rng.random(X.shape) < 0.05] = np.nan
    found = leaves(tree, X)
    np.testing.assert_array_equal(leaves(tree, np.hstack([X, X[:, :1]])[:, :n_columns]), found)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(leaves(tree, X, n_threads), found)
    some = rng.integers(n, size=min(n, 300)) if n else []
    np.testing.assert_array_equal(found[some], [oracle.leaf(tree, X[i]) for i in some])
    if n:
        assert (tree.left[found] < 0).all()


@given(seeds)
def test_float32_rows_meet_thresholds_as_they_are(seed):
    """A threshold between two neighbouring float32 numbers, or on one, however near."""
    rng = np.random.default_rng(seed)
    scale = np.float32(10.0) ** rng.integers(-40, 38)
    near = (rng.normal(size=16).astype(np.float32) * scale).astype(np.float32)
    above = np.nextafter(near, np.float32(np.inf))
    between = (near.astype(float) + above.astype(float)) / 2
    steps = [near.astype(float), between, np.nextafter(near.astype(float), np.inf), np.nextafter(between, -np.inf)]
    for threshold in np.concatenate([*steps, [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308]]):
        tree = make_tree(rng, n_splits=1, n_levels=[0], values=[threshold])
        X = np.concatenate([near, above, [np.float32(0.0), np.float32(-0.0)]])[:, None]
        np.testing.assert_array_equal(leaves(tree, X), np.where(X[:, 0].astype(float) <= threshold, 1, 2))


def chain(n_splits):
    """Every right child is split again: as deep as it has leaves."""
    n = 2 * n_splits + 1
    node = np.arange(n)
    inner = (node % 2 == 0) & (node < n - 1)
    base = make_tree(np.random.default_rng(0), n_splits=0, n_levels=[0])
    return dataclasses.replace(
        base,
        feature=np.where(inner, 0, -1),
        threshold=np.where(inner, node / 2 + 0.5, np.nan),
        left=np.where(inner, node + 1, -1),
        right=np.where(inner, node + 2, -1),
        weight=np.ones(n),
        missing_left=np.zeros(n, dtype=bool),
        subset_start=np.full(n, -1),
        value=np.ones((n, 1)),
    )


def test_deep_chains():
    tree = chain(100_000)
    X = np.arange(0.0, 100_001.0, 1000.0)[:, None]
    X[3] = np.nan
    nodes = predict.Nodes(tree)
    assert nodes.depth == 100_000
    expected = np.minimum(2 * X[:, 0] + 1, tree.n_nodes - 1)
    expected[3] = tree.n_nodes - 1
    np.testing.assert_array_equal(leaves(tree, X), expected)
    np.testing.assert_array_equal(leaves(tree, X[:5]), expected[:5])
    out = np.empty((5, 1))
    fractional.fractional_values(nodes, X[:5], tree.value, out, 2)
    np.testing.assert_allclose(out, 1.0)


def test_answers_are_any_eight_bytes():
    rng = np.random.default_rng(1)
    tree = make_tree(rng, n_splits=30, n_levels=[0, 0])
    X, table = make_rows(rng, 50, [0, 0], 0.1), rng.normal(size=61)
    out = np.empty(50)
    predict.apply_tree(predict.Nodes(tree), X, table.view(np.int64), out.view(np.int64), True, 1)
    np.testing.assert_array_equal(out, table[leaves(tree, X)])


def test_linear_values():
    X = np.array([[1.0, 2.0], [np.nan, 2.0], [3.0, np.nan]], dtype=np.float32)
    linear = np.array([[2.0, 0.0, 1.0], [0.5, -1.0, 0.25]])
    out = np.empty(3)
    linear_values(X, linear, None, np.array([1, 0, 0]), out)
    np.testing.assert_array_equal(out, [0.5 - 2.0 + 0.25, np.nan, 7.0])
    linear_values(X, linear, np.array([10.0, 20.0]), np.array([1, 0, 1]), out)
    np.testing.assert_array_equal(out, [-1.25, 21.0, 1.5 - 20.0 + 0.25])


def test_progress():
    rng = np.random.default_rng(0)
    tree = make_tree(rng, n_splits=9, n_levels=[0])
    X, seen = rng.normal(size=(100_000, 1)), []
    leaves(tree, X, tick=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (100_000, 100_000)
    assert seen == sorted(seen)
    out = np.empty((100_000, 2))
    fractional.fractional_values(
        predict.Nodes(tree), X, tree.value, out, 1, lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (100_000, 100_000)
    with pytest.raises(ZeroDivisionError):
        leaves(tree, X, tick=lambda done, total: 1 / 0)


def damaged(tree, name, position, value):
    array = getattr(tree, name).copy()
    array[position] = value
    return dataclasses.replace(tree, **{name: array})


@pytest.mark.parametrize(
    ("name", "position", "value"),
    [
        ("left", 0, 0),
        ("left", 0, 10**6),
        ("right", 0, 1),
        ("right", 0, -5),
        ("feature", 0, 2),
        ("feature", 0, -1),
        ("subset_start", 0, 10**12),
    ],
)
def test_arrays_that_are_no_tree_are_refused(name, position, value):
    tree = make_tree(np.random.default_rng(0), n_splits=5, n_levels=[3, 0])
    with pytest.raises(ValueError, match="tree"):
        predict.Nodes(damaged(tree, name, position, value))


def test_lengths_that_differ_are_refused():
    tree = make_tree(np.random.default_rng(0), n_splits=5, n_levels=[0, 0], surrogates=True)
    with pytest.raises(ValueError, match="length"):
        predict.Nodes(dataclasses.replace(tree, weight=np.ones(3)))
    with pytest.raises(ValueError, match="length"):
        predict.Nodes(dataclasses.replace(tree, categories=(None,)))
    with pytest.raises(ValueError, match="surrogates"):
        predict.Nodes(dataclasses.replace(tree, surrogates=damaged(tree.surrogates, "start", 3, 10**6)))
    nodes, X = predict.Nodes(tree), np.zeros((3, 2))
    for x, answers, out in ((X[:, :1], 11, 3), (X, 10, 3), (X, 11, 2)):
        with pytest.raises(ValueError, match="shapes"):
            predict.apply_tree(nodes, x, np.arange(answers), np.empty(out, dtype=np.int64), True, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_interrupts_are_answered(tmp_path):
    """A child process walks for many seconds on one thread; SIGINT must end it at once."""
    file = tmp_path / "tree.pickle"
    file.write_bytes(pickle.dumps(chain(20_000)))  # so that the child imports no tests
    code = f"""
import pickle, time
import numpy as np
from kernelrules.core.tree import predict
with open({str(file)!r}, "rb") as file:
    tree = pickle.load(file)
X = np.full((200_000, 1), 1e9)
nodes, answers, out = predict.Nodes(tree), np.arange(tree.n_nodes), np.empty(len(X), dtype=np.int64)
print("ready", flush=True)
try:
    predict.apply_tree(nodes, X, answers, out, True, 1, None)
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
"""
    assert seconds_to_stop(code) < 2


# ---- rows that nobody has looked at -------------------------------------------------------------------------------


@given(
    seeds,
    dtypes,
    st.integers(8, 300),
    st.sampled_from([1, 3, 40, 90]),
    st.sampled_from([None, np.nan, np.inf, -np.inf]),
)
def test_rows_are_looked_at_on_the_way(seed, dtype, n, p, odd):
    """Short rows and long ones, which go through a buffer: what is not a finite number is met wherever it stands."""
    rng = np.random.default_rng(seed)
    tree = make_tree(rng, n_splits=6, n_levels=[0] * p)
    X = rng.normal(size=(n, p)).astype(dtype)
    if odd is not None:
        X[rng.integers(n), rng.integers(p)] = odd
    nodes, out, wanted = predict.Nodes(tree), np.full(n, -1), np.full(n, -1)
    for n_threads in (1, 2):
        assert predict.apply_if_finite(nodes, X, np.arange(tree.n_nodes), out, n_threads) == (odd is None)
    if odd is None:
        predict.apply_tree(nodes, X, np.arange(tree.n_nodes), wanted, False, 1)
        np.testing.assert_array_equal(out, wanted)


def test_what_cannot_be_looked_at_on_the_way():
    rng = np.random.default_rng(0)
    plain, general = make_tree(rng, n_splits=4, n_levels=[0, 0]), make_tree(rng, n_splits=9, n_levels=[3, 3])
    X = rng.integers(0, 3, size=(40, 2)).astype(np.float64)
    for tree, x in ((plain, X[:7]), (plain, X[::2]), (plain, np.asfortranarray(X)), (general, X)):
        assert not predict.apply_if_finite(
            predict.Nodes(tree), x, np.arange(tree.n_nodes), np.empty(len(x), dtype=int), 1
        )
    with pytest.raises(ValueError, match="shapes"):
        predict.apply_if_finite(predict.Nodes(plain), X, np.arange(plain.n_nodes), np.empty(3, dtype=int), 1)
