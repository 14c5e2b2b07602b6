"""Oblique splits and criteria of one's own in the node-by-node builder."""

import numpy as np
import pytest
from general_trees import assert_same, datasets, grow, noisy, of_oracle, own_gini, problem, ways_of_missing
from hypothesis import given
from hypothesis import strategies as st

# ---- oblique splits -----------------------------------------------------------------------------------------------


def root_gain(tree):
    return tree["gain"][0]


@st.composite
def clouds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, p)) * 10.0 ** draw(st.sampled_from([-200, -3, 0, 3, 200]))
    if draw(st.booleans()):
        X = np.round(X * 2)
    if draw(st.booleans()):
        X[:, -1] = X[:, 0]  # singular, and constant below
    if draw(st.booleans()):
        X[rng.random((n, p)) < 0.1] = np.nan
    kind = draw(st.sampled_from(["two", "four", "number", "numbers"]))
    signal = np.nan_to_num(X).sum(axis=1) / max(1.0, np.abs(np.nan_to_num(X)).max()) + rng.normal(size=n)
    match kind:
        case "two":
            return X, (signal > 0).astype(int)
        case "four":
            return X, np.digitize(signal, [-1, 0, 1])
        case "number":
            return X, signal
    return X, np.column_stack([signal, rng.normal(size=n)])


def criteria_for(y):
    if y.dtype.kind != "f":
        return ["gini", "entropy", "misclassification", "gain_ratio"]
    return ["squared_error", "absolute_error"]


@given(clouds(), ways_of_missing)
def test_oblique_never_gains_less(cloud, missing):
    X, y = cloud
    for criterion in criteria_for(y):
        axis = grow(problem(X, y), criterion=criterion, missing=missing, max_depth=1)
        oblique = grow(problem(X, y), criterion=criterion, missing=missing, max_depth=1, splits="oblique")
        assert root_gain(oblique) >= root_gain(axis)
        if oblique["directions"] is None:
            assert_same(axis, oblique)
        else:
            assert root_gain(oblique) > root_gain(axis) or criterion == "misclassification"


@given(clouds())
def test_oblique_splits_divide_as_they_say(cloud):
    X, y = cloud
    tree = grow(problem(X, y), criterion=criteria_for(y)[0], splits="oblique")
    rows_of = {0: np.arange(len(X))}
    for node in np.flatnonzero(tree["left"] >= 0):
        rows, column = rows_of[node], tree["feature"][node]
        if column >= X.shape[1]:
            direction = tree["directions"][column - X.shape[1]]
            used = direction != 0
            key = np.array([sum(x[used][::-1] * direction[used][::-1]) for x in X[rows]])  # summed the other way
        else:
            key = X[rows, column]
        left = np.where(np.isnan(key), tree["missing_left"][node], key <= tree["threshold"][node])
        rows_of[tree["left"][node]], rows_of[tree["right"][node]] = rows[left], rows[~left]
    assert [len(rows_of[node]) for node in range(len(tree["left"]))] == tree["n_samples"].tolist()


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_slanted_border_takes_one_oblique_split(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X = X[np.abs(X[:, 0] - 2 * X[:, 1]) > 0.6]
    side = X[:, 0] > 2 * X[:, 1]
    y = side.astype(int) if kind == "classes" else side.astype(float)
    tree = grow(problem(X, y), criterion="gini" if kind == "classes" else "squared_error", splits="oblique")
    assert tree["feature"].tolist() == [3, -1, -1]
    assert tree["directions"].shape == (1, 3)


def test_oblique_leaves_out_categories_and_columns_with_missing_values():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + X[:, 1] + X[:, 2] > 0).astype(int)
    X[:, 3] = rng.integers(3, size=120)
    X[5, 2] = np.nan
    tree = grow(problem(X, y, [0, 0, 0, 3]), splits="oblique", max_depth=1)
    assert tree["feature"][0] == 4
    assert np.flatnonzero(tree["directions"][0]).tolist() == [0, 1]


# ---- a criterion of one's own -------------------------------------------------------------------------------------


@given(datasets(), ways_of_missing, st.sampled_from(["best", "one"]))
def test_own_gini_is_gini(data, missing, subsets):
    limits = {"missing": missing, "subsets": subsets}
    assert_same(grow(of_oracle(data), **limits), grow(of_oracle(data), criterion=own_gini, **limits))


def test_own_criterion_sees_shares():
    def checking(P):
        assert P.shape[1] == 3
        np.testing.assert_allclose(P.sum(axis=1), 1)
        assert (P >= 0).all()
        return np.sqrt(np.prod(P + 0.1, axis=1))

    rng = np.random.default_rng(2)
    weights = rng.random(60)
    tree = grow(problem(rng.normal(size=(60, 3)), rng.integers(3, size=60), weights=weights), criterion=checking)
    assert len(tree["left"]) > 10


@pytest.mark.parametrize(
    ("criterion", "message"),
    [
        (lambda P: P, r"must return shape \(1,\) for shares of 1 nodes, got shape \(1, 2\)"),
        (lambda P: 1.0, r"got shape \(\)"),
        (lambda P: np.full(len(P), np.nan), "returned nan"),
        (lambda P: np.where(P[:, 0] == 0.5, 0.0, np.inf), "returned inf"),
        (lambda P: ["a"] * len(P), "did not return numbers"),
    ],
)
def test_own_criterion_is_checked(criterion, message):
    with pytest.raises(ValueError, match=message):
        grow(problem([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]), criterion=criterion)


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"missing": "fractional"}, {"splits": "oblique"}, {"criterion": own_gini}])
def test_what_cannot_be_combined(settings):
    X, y = noisy()
    with pytest.raises(ValueError, match=r"monotone cannot be combined with (missing|splits|a callable)"):
        grow(problem(X, y), monotone=np.array([1, 0, 0, 0], dtype=np.int8), **settings)
    if "missing" not in settings:
        with pytest.raises(ValueError, match="missing='surrogate' cannot be combined with"):
            grow(problem(X, y), **settings, missing="surrogate")
    for wrong in ("squared_error", "nonsense"):
        with pytest.raises(ValueError, match="is not for classification"):
            grow(problem(X, y), **{**settings, "criterion": wrong})
    with pytest.raises(ValueError, match="regression"):
        grow(problem(X, y.astype(float)), **{"criterion": "gini", **settings})
