"""What the tests of trees share: a naive walk, what must hold in any tree, comparisons, data made by hypothesis,
and a tree of one split."""

from dataclasses import dataclass, fields

import numpy as np
import tree_oracle as oracle
from hypothesis import strategies as st

from kernelrules import tree as trees
from kernelrules.results import Surrogates, Tree

NAN = float("nan")


def sent_left(tree, node, X):
    """Which rows of X the node's own split sends left; X holds numbers, also for the levels of categorical columns."""
    x = X[:, tree.feature[node]]
    gone, known = decided(tree, x, tree.feature[node], tree.threshold[node], True, tree.subset_start[node])
    larger_left = tree.weight[tree.left[node]] >= tree.weight[tree.right[node]]
    left = np.where(known, gone, tree.missing_left[node])
    if tree.surrogates is not None:
        s = tree.surrogates
        for i in range(s.start[node], s.start[node + 1]):
            here = X[:, s.feature[i]]
            goes, can = decided(tree, here, s.feature[i], s.threshold[i], s.below_left[i], s.subset_start[i])
            left = np.where(~known & can, goes, left)
            known |= can
    if tree.subset_start[node] >= 0:  # a level that the node has not seen
        flags = tree.subset_left[tree.subset_start[node] :][: len(tree.categories[tree.feature[node]])]
        unseen = ~np.isnan(x) & ~known
        assert (flags == 2).any() or not unseen.any()
        left = np.where(unseen, larger_left, left)
    return left


def decided(tree, x, column, threshold, below_left, subset_start):
    """What one split says of the values of its column, and where it says anything."""
    levels = tree.categories[column]
    if levels is None:
        known = ~np.isnan(x)
        return (x <= threshold) == below_left, known
    known = np.isin(x, levels)
    flags = tree.subset_left[subset_start : subset_start + len(levels)]
    flag = flags[np.where(known, np.searchsorted(levels, x), 0)]
    return flag == 1, known & (flag != 2)


def rows_of_nodes(tree, X, rows=None):
    """The rows of X that pass through each node."""
    inside = [None] * tree.n_nodes
    inside[0] = np.arange(len(X)) if rows is None else np.asarray(rows)
    for node in np.flatnonzero(tree.left >= 0):
        left = sent_left(tree, node, X[inside[node]])
        inside[tree.left[node]], inside[tree.right[node]] = inside[node][left], inside[node][~left]
    return inside


def partition(tree, X, rows=None):
    """The rows in each leaf, whatever the leaves are called and which side they are on."""
    inside = rows_of_nodes(tree, X, rows)
    return {frozenset(inside[leaf].tolist()) for leaf in np.flatnonzero(tree.left < 0)}


def arrays_of(result):
    """Name and array of each field, the surrogates' too."""
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, Surrogates):
            yield from ((f"surrogates.{name}", array) for name, array in arrays_of(value))
        elif isinstance(value, np.ndarray):
            yield field.name, value


def assert_identical(a, b, *, but=()):
    """Bit for bit, names and types of the fields included."""
    first, second = ({name: array for name, array in arrays_of(tree) if name not in but} for tree in (a, b))
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype, name
        if first[name].shape == second[name].shape and first[name].tobytes() == second[name].tobytes():
            continue
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        if first[name].dtype == np.float64:
            assert (np.signbit(first[name]) == np.signbit(second[name])).all(), name


def assert_well_formed(tree):
    """What holds in every tree whatever the data."""
    assert isinstance(tree, Tree)
    n = tree.n_nodes
    inner, leaf = np.flatnonzero(tree.left >= 0), np.flatnonzero(tree.left < 0)
    assert n == 2 * len(leaf) - 1
    assert tree.n_leaves == len(leaf)
    for name in ("feature", "threshold", "left", "right", "n_samples", "weight", "impurity", "gain", "missing_left"):
        assert getattr(tree, name).shape == (n,), name
    for name in ("feature", "left", "right", "subset_start", "n_samples"):
        assert getattr(tree, name).dtype == np.int64, name
    assert (tree.feature[leaf] == -1).all()
    assert (tree.right[leaf] == -1).all()
    assert np.isnan(tree.threshold[leaf]).all()
    assert (tree.gain[leaf] == 0).all()
    assert (tree.subset_start[leaf] == -1).all()
    assert (tree.left[inner] == inner + 1).all()
    assert (tree.n_samples[inner] == tree.n_samples[tree.left[inner]] + tree.n_samples[tree.right[inner]]).all()
    # Depth-first: what lies between a node and its right child is the left child's subtree.
    size = np.ones(n, dtype=np.int64)
    for node in inner[::-1]:
        size[node] += size[tree.left[node]] + size[tree.right[node]]
        assert tree.right[node] == tree.left[node] + size[tree.left[node]]
    assert size[0] == n
    categorical = np.array([levels is not None for levels in tree.categories], dtype=bool)
    by_levels = categorical[tree.feature[inner]]
    assert (tree.subset_start[inner] >= 0).tolist() == by_levels.tolist()
    assert np.isnan(tree.threshold[inner]).tolist() == by_levels.tolist()
    assert tree.subset_left.dtype == np.uint8
    assert (tree.subset_left <= 2).all()


def loss_of_leaves(tree):
    """Training loss, over the weight of all rows."""
    leaf = tree.left < 0
    return float((tree.weight * tree.impurity)[leaf].sum() / tree.weight[0])


@dataclass(frozen=True)
class Table:
    """Drawn data, with what `grow` is to be told about them."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    categorical: list
    criterion: str

    @property
    def sample(self):
        return oracle.Sample.of(self.X, self.y, self.criterion, weight=self.weight, categorical=self.categorical)

    def grow(self, **options):
        return trees.grow(
            self.X,
            self.y,
            criterion=self.criterion,
            sample_weight=self.weight,
            categorical=self.categorical or None,
            **options,
        )


@st.composite
def tables(draw, criterion, *, missing=True, categories=True):
    """Few rows of few values: ties abound, between thresholds, columns and sides."""
    n, p = draw(st.sampled_from([30, 24, 20, 16, 12, 9, 6, 4, 3, 2, 1])), draw(st.sampled_from([3, 4, 2, 1]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X, categorical = np.empty((n, p)), []
    kinds = ["few", "few", "many", "tenths", "float"] + ["levels"] * 2 * categories
    for j in range(p):
        match draw(st.sampled_from(kinds)):
            case "few":
                X[:, j] = rng.integers(0, draw(st.sampled_from([4, 3, 2, 1])), size=n)
            case "many":
                X[:, j] = rng.integers(-9, 10, size=n)
            case "tenths":
                X[:, j] = rng.integers(-5, 6, size=n) / 10
            case "float":
                X[:, j] = rng.normal(size=n) * 10.0 ** draw(st.integers(-300, 300))
            case "levels":
                X[:, j] = rng.integers(1, draw(st.sampled_from([6, 5, 4, 3, 2])), size=n)
                categorical.append(j)
    if missing and draw(st.booleans()):
        X[rng.random((n, p)) < draw(st.sampled_from([0.1, 0.4]))] = np.nan
    if criterion in oracle.CLASSIFICATION:
        y = rng.integers(0, draw(st.sampled_from([2, 3, 4, 1])), size=n)
    elif criterion == "poisson":
        y = rng.integers(0, 6, size=n).astype(float)
    else:
        y = rng.integers(-6, 7, size=n) * draw(st.sampled_from([1.0, 0.25, 1024.0]))
    weight = None
    if draw(st.booleans()):
        weight = rng.integers(0, 4, size=n).astype(float)
        weight[rng.integers(n)] = 2.0
    return Table(X, y, weight, categorical, criterion)


def stump(categories, *, column=0, threshold=0.5, flags=(), missing="extra", names=None, **fields):
    """A tree of one split, with the weights 3 on the left and 1 on the right."""
    by_levels = categories[column] is not None
    return Tree(
        feature=np.array([column, -1, -1]),
        threshold=np.array([NAN if by_levels else threshold, NAN, NAN]),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        value=fields.pop("value", np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])),
        n_samples=np.array([4, 3, 1]),
        weight=np.array([4.0, 3.0, 1.0]),
        impurity=np.array([0.5, 0.0, 0.0]),
        gain=np.array([0.5, 0.0, 0.0]),
        missing_left=np.array([False, False, False]),
        subset_start=np.array([0 if by_levels else -1, -1, -1]),
        subset_left=np.array(flags, dtype=np.uint8),
        criterion="gini",
        missing=missing,
        classes=fields.pop("classes", np.array(["a", "b"])),
        categories=tuple(categories),
        n_features=len(categories),
        n_outputs=1,
        n_train=4,
        feature_names=names,
        **fields,
    )
