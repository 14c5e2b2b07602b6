"""What pruning refuses, with which words; and awkward input that it must take."""

from dataclasses import replace

import numpy as np
import pytest

from kernelrules import prune, selection
from kernelrules import tree as trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = ((X[:, 0] > 0) ^ (RNG.random(60) < 0.2)).astype(int)
TREE = trees.grow(X, Y)
NUMBERS = trees.grow(X, X[:, 1] + Y, criterion="squared_error")
LINEAR = trees.grow(X, X[:, 1] + Y, criterion="squared_error", leaf="linear", max_leaves=4)

ALL = {
    "cost_complexity_path": lambda t: prune.cost_complexity_path(t),
    "cost_complexity": lambda t: prune.cost_complexity(t, 0.1),
    "to_size": lambda t: prune.to_size(t, 1),
    "snip": lambda t: prune.snip(t, 0),
    "reduced_error": lambda t: prune.reduced_error(t, X, Y),
    "pessimistic": lambda t: prune.pessimistic(t),
    "mdl": lambda t: prune.mdl(t),
    "chi2": lambda t: prune.chi2(t, 0.1),
}


@pytest.mark.parametrize("name", ALL)
def test_no_tree(name):
    for wrong in (None, "tree", TREE.value):
        with pytest.raises(TypeError, match="tree must be a tree"):
            ALL[name](wrong)


@pytest.mark.parametrize("name", ALL)
def test_linear_leaves_cannot_be_merged(name):
    with pytest.raises(ValueError, match=r'linear models in its leaves.*leaf="constant"'):
        ALL[name](LINEAR)


@pytest.mark.parametrize("name", ALL)
def test_arrays_that_are_no_tree(name):
    """Children that point anywhere must not be followed."""
    n = TREE.n_nodes
    far, back, both = TREE.right.copy(), TREE.right.copy(), TREE.left.copy()
    far[0], back[np.flatnonzero(TREE.left >= 0)[-1]], both[0] = n + 5, 0, 2
    for wrong in (
        replace(TREE, right=far),
        replace(TREE, right=back),
        replace(TREE, left=both),
        replace(TREE, right=TREE.right[:-1]),
        replace(TREE, weight=TREE.weight[:-1]),
        replace(TREE, right=np.full(n, -1)),
    ):
        with pytest.raises(ValueError, match="do not describe a tree"):
            ALL[name](wrong)


def test_methods_for_classes_say_so():
    with pytest.raises(ValueError, match="is for classes, and the tree was grown by squared_error"):
        prune.chi2(NUMBERS, 0.05)
    with pytest.raises(ValueError, match="raising is for classes, and the tree was grown by squared_error"):
        prune.pessimistic(NUMBERS, raising=True, X=X, y=Y)


def test_numbers_that_have_no_description_or_residuals():
    by_deviance = trees.grow(X, Y, criterion="poisson")
    by_median = trees.grow(X, Y, criterion="absolute_error")
    for tree in (by_deviance, by_median):
        with pytest.raises(ValueError, match=f"means and variances, and the tree was grown by {tree.criterion}"):
            prune.mdl(tree)
    with pytest.raises(ValueError, match="residuals are squared or absolute errors, and the tree was grown by poisson"):
        prune.pessimistic(by_deviance)
    with pytest.raises(ValueError, match="precision is for regression"):
        prune.mdl(TREE, 0.1)
    for bad in (0, -1.0, np.nan, np.inf, "a", True):
        with pytest.raises((TypeError, ValueError), match="precision"):
            prune.mdl(NUMBERS, bad)


@pytest.mark.parametrize("bad", [-1e-9, np.nan, np.inf, "a", None, True])
def test_alpha(bad):
    with pytest.raises((TypeError, ValueError), match="alpha"):
        prune.cost_complexity(TREE, bad)


@pytest.mark.parametrize("method", [prune.cost_complexity_path, lambda t, loss: prune.to_size(t, 2, loss)])
def test_loss(method):
    for bad in ("squared_error", "brier", 3, ["gini"]):
        with pytest.raises(ValueError, match="loss must be one of"):
            method(TREE, loss=bad)
    for bad in ("zero_one", "gini", "absolute_error"):
        with pytest.raises(ValueError, match='loss must be one of "squared_error"'):
            method(NUMBERS, loss=bad)


def test_losses_of_means():
    """Known of trees whose values are means, and of no others."""
    for bad in ("zero_one", "absolute_error"):
        with pytest.raises(ValueError, match='loss must be one of "squared_error", "poisson" for'):
            prune.to_size(NUMBERS, 2, bad)
    negative = trees.grow(X, Y - 0.5, criterion="squared_error")
    with pytest.raises(ValueError, match=r'loss="poisson" needs means of at least 0, and the tree has -0\.5'):
        prune.to_size(negative, 2, "poisson")
    medians = trees.grow(X, Y + RNG.exponential(size=60), criterion="squared_error", leaf="median", max_leaves=5)
    with pytest.raises(ValueError, match="the tree has other values"):
        prune.to_size(medians, 2, "poisson")
    by_median = trees.grow(X, Y, criterion="absolute_error")
    with pytest.raises(ValueError, match='loss must be one of "absolute_error" for'):
        prune.to_size(by_median, 2, "squared_error")


def test_losses_of_the_users():
    def wrong(y, told):
        return y != told

    for bad, match in (
        (lambda y, told: 1.0, "loss must give a number for each row"),
        (lambda y, told: -np.ones(len(y)), "loss must give numbers of at least 0, but gave -1"),
        (lambda y, told: np.full(len(y), np.inf), "loss must give finite numbers"),
        (lambda y, told: np.full(len(y), np.nan), "loss must give numbers of at least 0, but gave nan"),
        ([[0.0, 1.0]], "loss must be a . × . array of costs"),
        (-np.eye(len(TREE.classes)), "loss must hold costs of at least 0"),
    ):
        with pytest.raises(ValueError, match=match):
            prune.to_size(TREE, 2, bad)
    for given in ({}, {"X": X}, {"y": Y}):
        with pytest.raises(ValueError, match="give X and y"):
            prune.to_size(NUMBERS, 2, wrong, **given)
    with pytest.raises(ValueError, match="is for classes"):
        prune.to_size(NUMBERS, 2, np.eye(2), X=X, y=Y)
    for loss, tree in ((wrong, TREE), ("zero_one", TREE), (None, NUMBERS)):
        with pytest.raises(ValueError, match="X, y and sample_weight are for"):
            prune.to_size(tree, 2, loss, X=X, y=Y)
    for rows, match in (
        ({"X": X[:, :1], "y": Y}, "column"),
        ({"X": X, "y": Y[1:]}, "y"),
        ({"X": X[:0], "y": []}, "row"),
    ):
        with pytest.raises(ValueError, match=match):
            prune.to_size(NUMBERS, 2, wrong, **rows)


def test_sizes():
    with pytest.raises(ValueError, match=rf"n_leaves is {TREE.n_leaves + 1}, but the tree has only {TREE.n_leaves}"):
        prune.to_size(TREE, TREE.n_leaves + 1)
    for bad in (0, -3, 2.5, np.nan):
        with pytest.raises(ValueError, match="n_leaves must be"):
            prune.to_size(TREE, bad)
    for bad, shown in (("2", "'2'"), (None, "None"), (True, "True"), (np.True_, "True")):
        with pytest.raises(TypeError, match=f"n_leaves must be a number, got {shown}"):
            prune.to_size(TREE, bad)


def test_nodes_to_snip():
    for bad in (-1, TREE.n_nodes, [0, 10**6], [3, -2]):
        with pytest.raises(ValueError, match=rf"nodes has -?\d+, but the nodes .* are 0 to {TREE.n_nodes - 1}"):
            prune.snip(TREE, bad)
    for bad in (0.5, [1.0], "a", None, [[1, 2]], [True]):
        with pytest.raises(TypeError, match="nodes must be"):
            prune.snip(TREE, bad)


@pytest.mark.parametrize("bad", [0, -0.1, 0.51, 1, np.nan, np.inf, None, "x"])
def test_confidence(bad):
    with pytest.raises((TypeError, ValueError), match="confidence"):
        prune.pessimistic(TREE, bad)


@pytest.mark.parametrize("bad", [0, -0.1, 1.01, np.nan, None, "x"])
def test_level(bad):
    with pytest.raises((TypeError, ValueError), match="level"):
        prune.chi2(TREE, bad)


def test_raising_needs_the_training_rows():
    for given in ({}, {"X": X}, {"y": Y}):
        with pytest.raises(ValueError, match="needs X and y"):
            prune.pessimistic(TREE, raising=True, **given)
    with pytest.raises(ValueError, match="not the rows that the tree was grown on"):
        prune.pessimistic(TREE, raising=True, X=X[:50], y=Y[:50])
    with pytest.raises(ValueError, match="not the rows that the tree was grown on"):
        prune.pessimistic(TREE, raising=True, X=X, y=Y + 1)
    with pytest.raises(ValueError, match="not the rows that the tree was grown on: they come to node"):
        prune.pessimistic(TREE, raising=True, X=X[::-1], y=Y)  # as many of every class, but others
    with pytest.raises(ValueError, match="2 columns but the tree was grown on 3"):
        prune.pessimistic(TREE, raising=True, X=X[:, :2], y=Y)
    with pytest.raises(ValueError, match="sample_weight has 3 entries"):
        prune.pessimistic(TREE, raising=True, X=X, y=Y, sample_weight=[1, 2, 3])
    with pytest.raises(TypeError, match="raising must be True or False"):
        prune.pessimistic(TREE, raising="yes")
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    fractional = trees.grow(gaps, Y, missing="fractional")
    with pytest.raises(ValueError, match="not the rows that the tree was grown on: they come to node"):
        prune.pessimistic(fractional, raising=True, X=gaps[::-1], y=Y)
    own = trees.grow(X, Y, criterion=lambda p: 1 - (p**2).sum(axis=1))
    with pytest.raises(ValueError, match="is not known by name"):
        prune.pessimistic(own, raising=True, X=X, y=Y)


def test_validation_rows():
    with pytest.raises(ValueError, match=r"^X_val has 2 columns but the tree was grown on 3"):
        prune.reduced_error(TREE, X[:, :2], Y)
    with pytest.raises(ValueError, match=r"^X_val must be two-dimensional"):
        prune.reduced_error(TREE, X[0], Y)
    with pytest.raises(ValueError, match=r"^X_val is not a rectangular array"):
        prune.reduced_error(TREE, [[1.0], [2.0, 3.0]], Y[:2])
    with pytest.raises(TypeError, match=r"^column 1 of X_val does not hold numbers"):
        prune.reduced_error(TREE, [[1.0, "a", 2.0]], Y[:1])
    with pytest.raises(ValueError, match="y_val holds 7, which is none of the tree's classes"):
        prune.reduced_error(TREE, X[:2], [0, 7])
    with pytest.raises(ValueError, match="y_val holds 'a'"):
        prune.reduced_error(TREE, X[:2], ["a", "b"])
    with pytest.raises(ValueError, match="y_val has 3 entries but X_val has 2 rows"):
        prune.reduced_error(TREE, X[:2], [0, 1, 1])
    with pytest.raises(ValueError, match="X_val has no rows"):
        prune.reduced_error(TREE, X[:0], [])
    with pytest.raises(ValueError, match="sample_weight has 3 entries but X_val has 2 rows"):
        prune.reduced_error(TREE, X[:2], [0, 1], sample_weight=[1, 1, 1])
    with pytest.raises(ValueError, match=r"X_val holds inf at row [0-9]+, column [0-9]"):
        prune.reduced_error(TREE, np.where(X.max() == X, np.inf, X), Y)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        prune.reduced_error(TREE, X, Y, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        prune.reduced_error(TREE, X, Y, sample_weight=np.full(60, -1.0))
    with pytest.raises(ValueError, match="y_val holds nan"):
        prune.reduced_error(NUMBERS, X[:2], [np.nan, 1.0])
    with pytest.raises(TypeError, match="y_val must hold real numbers"):
        prune.reduced_error(NUMBERS, X[:2], ["a", "b"])
    with pytest.raises(ValueError, match="y_val is too far from what the tree predicts"):
        prune.reduced_error(NUMBERS, X, np.where(Y > 0, 1e200, 0.0))
    counts = trees.grow(X, Y, criterion="poisson")
    with pytest.raises(ValueError, match=r"y_val must not be negative for poisson, got -2\.0 at position 1"):
        prune.reduced_error(counts, X[:3], [0.0, -2.0, 1.0])
    two = trees.grow(X, np.column_stack([Y, Y]), criterion="squared_error")
    with pytest.raises(ValueError, match=r"y_val has shape \(60,\), but X_val has 60 rows and the tree 2 targets"):
        prune.reduced_error(two, X, Y)


def test_rows_without_weight_have_no_say():
    """Their loss may be infinite: a leaf that predicts 0 for a count of 9."""
    counts = trees.grow([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 2], criterion="poisson")
    kept = prune.reduced_error(counts, [[0.0], [1.0], [0.0]], [0, 2, 9], sample_weight=[1, 1, 0])
    assert kept.n_leaves == 2
    assert prune.reduced_error(counts, [[0.0], [1.0], [0.0]], [0, 2, 9]).n_leaves == 1


def test_cross_validation():
    for options, words in (
        ({"rule": "best"}, "rule must be"),
        ({"folds": 1}, "folds must be at least 2"),
        ({"folds": 61}, "folds = 61 but X has only 60 rows"),
        ({"folds": np.zeros(60)}, "two different folds"),
        ({"folds": [1, 2]}, "folds has 2 entries"),
        ({"groups": np.arange(60) // 30}, "folds = 10 but there are only 2 groups"),
        ({"groups": [1, 2]}, "groups has 2 entries"),
        ({"groups": Y, "folds": np.arange(60) % 3}, "both given"),
        ({"loss": "squared_error"}, "loss must be"),
        ({"measure": "squared_error"}, 'measure must be one of "zero_one", "gini", "entropy", a matrix of costs'),
        ({"measure": 3}, "measure must be one of"),
        ({"measure": np.zeros((3, 3))}, "measure must be a 2 × 2 array of costs, got shape"),
        ({"measure": [[0, 1], [-1, 0]]}, r"costs of at least 0, got -1\.0 at \(1, 0\)"),
        ({"measure": [[0, 1], [np.nan, 0]]}, "measure holds nan"),
        ({"measure": lambda y, told: 1.0}, "measure must give a number for each row"),
        ({"measure": lambda y, told: np.where(y == told, 0.0, -2.0)}, r"at least 0, but gave -2\.0"),
        ({"measure": lambda y, told: np.full(len(y), np.nan)}, "at least 0, but gave nan"),
        ({"measure": lambda y, told: y.astype(str)}, "measure must give a number for each row"),
        ({"criterion": "squared_error", "measure": "zero_one"}, "measure must be"),
        (
            {"criterion": "squared_error", "measure": "poisson"},
            'one of "squared_error", "absolute_error", or a function',
        ),
        ({"criterion": "squared_error", "measure": np.eye(2)}, "measure must be"),
        ({"max_depth": -1}, "max_depth"),
        ({"criterion": "squared_error", "leaf": "linear"}, "linear models in its leaves"),
        ({"sample_weight": np.zeros(60)}, "sample_weight is zero"),
        ({"class_weight": {5: 1.0}}, "class_weight names 5"),
        ({"folds": np.arange(60) % 2, "sample_weight": np.arange(60) % 2.0}, "sample_weight above 0 are in one fold"),
    ):
        with pytest.raises(ValueError, match=words):
            prune.cross_validate(X, Y, **options)
    for options, words in (
        ({"stratified": 1}, "stratified must be"),
        ({"executor": 3}, "executor must be"),
        ({"callback": 3}, "callback must be"),
        ({"depth": 3}, "depth"),
        ({"rng": "x"}, "rng must be"),
    ):
        with pytest.raises(TypeError, match=words):
            prune.cross_validate(X, Y, **options)
    with pytest.raises(ValueError, match="y has 10 entries but X has 60 rows"):
        prune.cross_validate(X, Y[:10])
    with pytest.raises(ValueError, match="X holds inf"):
        prune.cross_validate(np.full((60, 1), np.inf), Y)


def test_a_callback_that_raises_ends_it():
    def stop(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        prune.cross_validate(X, Y, callback=stop)


def test_awkward_but_right():
    """Constant columns, one class, duplicates, read-only and strided rows: an answer, and the right one."""
    one = prune.cross_validate(np.ones((20, 2)), np.arange(20) % 2, rng=0)
    assert one.tree.n_nodes == 1
    assert one.error.tolist() == [0.5]
    same = prune.cross_validate(X, np.zeros(60, dtype=int), rng=0)
    assert (same.tree.n_nodes, same.error.tolist(), same.se.tolist()) == (1, [0.0], [0.0])
    frozen = X.copy()
    frozen.flags.writeable = False
    told = prune.cross_validate(X, Y, rng=0)
    np.testing.assert_array_equal(prune.cross_validate(frozen, Y, rng=0).error, told.error)
    wide = np.full((60, 6), np.nan)
    wide[:, ::2] = X
    np.testing.assert_array_equal(prune.cross_validate(wide[:, ::2], Y, rng=0).error, told.error)
    np.testing.assert_array_equal(prune.cross_validate(X.astype(np.float32), Y, rng=0).n_leaves[-1:], [1])
    leave_one_out = prune.cross_validate(X[:12], Y[:12], folds=12)
    assert leave_one_out.fold_error.shape == (12, len(leave_one_out.alphas))
    huge = prune.cross_validate(X, Y * 1e150, criterion="squared_error", rng=0)
    assert np.isfinite(huge.error[huge.chosen])
    tiny = prune.cost_complexity_path(trees.grow(X, X[:, 1] * 1e-160, criterion="squared_error"))
    assert tiny.n_leaves[-1] == 1


def test_folds_of_groups_are_repeatable():
    groups = RNG.integers(0, 9, 60)
    a, b = (selection.fold_numbers(4, 60, rng=5, groups=groups) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert all(len(set(a[groups == g])) == 1 for g in set(groups))
