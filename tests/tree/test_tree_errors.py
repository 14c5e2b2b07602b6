"""What growing a tree refuses, and how clearly it says why."""

import numpy as np
import pytest
import tree_oracle as oracle

from kernelrules import tree as trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
LABELS = np.array(["a", "b"] * 10)
NUMBERS = np.arange(20.0)


@pytest.mark.parametrize("criterion", oracle.REGRESSION)
def test_labels_for_a_regression(criterion):
    with pytest.raises((ValueError, TypeError), match="y"):
        trees.grow(X, LABELS, criterion=criterion)


def test_negative_targets_for_poisson():
    with pytest.raises(ValueError, match="poisson"):
        trees.grow(X, NUMBERS - 1, criterion="poisson")
    trees.grow(X, NUMBERS, criterion="poisson")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("criterion", oracle.REGRESSION)
def test_targets_that_are_no_numbers(bad, criterion):
    y = NUMBERS.copy()
    y[3] = bad
    with pytest.raises(ValueError, match="y"):
        trees.grow(X, y, criterion=criterion)


def test_targets_whose_squares_overflow():
    with pytest.raises(ValueError, match="large"):
        trees.grow(X, NUMBERS * 1e300, criterion="squared_error")


@pytest.mark.parametrize(
    "weight",
    [
        np.zeros(20),
        np.append(np.ones(19), -1.0),
        np.append(np.ones(19), np.nan),
        np.append(np.ones(19), np.inf),
        np.ones(19),
        np.ones((20, 2)),
        np.array(["heavy"] * 20),
    ],
    ids=["all zero", "negative", "NaN", "infinite", "too few", "two columns", "strings"],
)
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_weights(weight, criterion):
    with pytest.raises((ValueError, TypeError), match="weight"):
        trees.grow(X, NUMBERS, criterion=criterion, sample_weight=weight)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"criterion": "ginni"}, "criterion"),
        ({"criterion": 3}, "criterion"),
        ({"growth": "wide"}, "growth"),
        ({"missing": "ignore"}, "missing"),
        ({"subsets": "some"}, "subsets"),
        ({"leaf": "mode"}, "leaf"),
        ({"splits": "curved"}, "splits"),
        ({"max_depth": -1}, "max_depth"),
        ({"max_depth": 1.5}, "max_depth"),
        ({"max_leaves": 0}, "max_leaves"),
        ({"max_leaves": -3}, "max_leaves"),
        ({"max_leaves": 2.5}, "max_leaves"),
        ({"min_leaf": 0}, "min_leaf"),
        ({"min_leaf": -1}, "min_leaf"),
        ({"min_leaf": 0.5}, "min_leaf"),
        ({"min_share": -0.1}, "min_share"),
        ({"min_share": 0.6}, "min_share"),
        ({"min_share": np.nan}, "min_share"),
        ({"min_split": 0}, "min_split"),
        ({"min_split": "two"}, "min_split"),
        ({"min_gain": -0.1}, "min_gain"),
        ({"min_gain": np.nan}, "min_gain"),
        ({"chi2": -0.1}, "chi2"),
        ({"chi2": 1.5}, "chi2"),
        ({"chi2": np.nan}, "chi2"),
        ({"max_features": 0}, "max_features"),
        ({"max_features": 4}, "max_features"),
        ({"max_features": 1.5}, "max_features"),
        ({"max_features": -0.5}, "max_features"),
        ({"max_features": "all"}, "max_features"),
        ({"rng": "seed"}, "rng"),
        ({"n_threads": 0}, "n_threads"),
        ({"monotone": [1, 0]}, "monotone"),
        ({"monotone": [2, 0, 0]}, "monotone"),
        ({"monotone": ["up", 0, 0]}, "monotone"),
        ({"class_weight": "equal"}, "class_weight"),
        ({"class_weight": {"a": 1.0, "c": 2.0}}, "class_weight"),
        ({"class_weight": {"a": 1.0, "b": -1.0}}, "class_weight"),
        ({"class_weight": {"a": 1.0, "b": np.nan}}, "class_weight"),
        ({"class_weight": [1.0, 2.0]}, "class_weight"),
        ({"categorical": [3]}, "categorical"),
        ({"categorical": ["colour"]}, "categorical"),
        ({"categorical": "all"}, "categorical"),
        ({"callback": "print"}, "callback"),
    ],
    ids=str,
)
def test_options(options, names):
    """The message says which option it is about."""
    with pytest.raises((ValueError, TypeError), match=names):
        trees.grow(X, LABELS, **options)


def test_names_as_numpy_strings():
    """As they come out of an array of names."""
    tree = trees.grow(X, LABELS, criterion=np.str_("gini"), growth=np.str_("best"), missing=np.str_("extra"))
    assert (tree.criterion, tree.missing) == ("gini", "extra")


def test_an_option_that_does_not_exist():
    with pytest.raises(TypeError):
        trees.grow(X, LABELS, min_samples_leaf=3)


@pytest.mark.parametrize("criterion", oracle.REGRESSION)
@pytest.mark.parametrize("options", [{"class_weight": "balanced"}, {"chi2": 0.05}], ids=str)
def test_options_for_classes_alone(criterion, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        trees.grow(X, NUMBERS, criterion=criterion, **options)


def test_monotone_needs_one_number_to_be_monotone():
    three = np.arange(20) % 3
    with pytest.raises(ValueError, match="monotone"):
        trees.grow(X, three, monotone=[1, 0, 0])
    with pytest.raises(ValueError, match="monotone"):
        trees.grow(X, np.column_stack([NUMBERS, NUMBERS]), criterion="squared_error", monotone=[1, 0, 0])
    with pytest.raises(ValueError, match="monotone"):
        trees.grow(np.round(X), LABELS, monotone=[1, 0, 0], categorical=[0])


@pytest.mark.parametrize(
    "y",
    [LABELS[:19], np.column_stack([LABELS, LABELS]), np.array("a"), np.array([]), np.zeros((20, 2, 2))],
    ids=["too few", "two columns", "a scalar", "none", "three axes"],
)
def test_labels_of_the_wrong_shape(y):
    with pytest.raises(ValueError, match=r"y|row|shape"):
        trees.grow(X, y)


def test_targets_of_the_wrong_shape():
    for y in (NUMBERS[:19], np.zeros((20, 2, 2)), np.zeros((19, 2)), np.zeros((20, 0))):
        with pytest.raises(ValueError, match=r"y|row|shape"):
            trees.grow(X, y, criterion="squared_error")


@pytest.mark.parametrize(
    "bad",
    [np.zeros((0, 3)), np.zeros((20, 0)), np.zeros(20), np.zeros((20, 2, 2)), np.zeros((20, 2), dtype=complex)],
    ids=["no rows", "no columns", "one axis", "three axes", "complex"],
)
def test_data_of_the_wrong_shape(bad):
    with pytest.raises((ValueError, TypeError), match=r"X|row|column|complex"):
        trees.grow(bad, LABELS[: len(bad)] if bad.ndim == 2 else LABELS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_values(dtype):
    bad = X.astype(dtype)
    bad[7, 1] = np.inf
    with pytest.raises(ValueError, match=r"finite|inf"):
        trees.grow(bad, LABELS)


def test_missing_values_that_are_not_allowed():
    bad = X.copy()
    bad[4, 2] = np.nan
    with pytest.raises(ValueError, match=r"missing|NaN"):
        trees.grow(bad, LABELS, missing="error")
    assert trees.grow(X, LABELS, missing="error").missing == "error"
    for missing in ("extra", "zero", "impute", "surrogate"):
        assert trees.grow(bad, LABELS, missing=missing).missing == missing


def test_a_label_that_is_missing():
    y = LABELS.astype(object)
    y[2] = None
    with pytest.raises((ValueError, TypeError), match="y"):
        trees.grow(X, y)
    with pytest.raises(ValueError, match="y"):
        trees.grow(X, np.where(NUMBERS == 2, np.nan, NUMBERS))
