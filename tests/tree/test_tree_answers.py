"""What trees answer: classes, values, linear models of leaves, fractions, paths and importances of small trees made by
hand; and grown trees against a naive walk."""

import dataclasses
import importlib.util

import numpy as np
import pytest
import tree_walk_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from trees import NAN, stump

from kernelrules import tree as trees
from kernelrules.check.frames import read_again
from kernelrules.tree.imputation import filled

# ---- answers ------------------------------------------------------------------------------------------------------


def test_predicted_classes():
    tree = stump([None])
    X = [[0.0], [1.0], [NAN]]
    assert trees.predict(tree, X).tolist() == ["a", "b", "b"]
    np.testing.assert_array_equal(trees.predict_proba(tree, X), [[1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(trees.predict_proba(tree, X, laplace=1.0)[:2], [[0.8, 0.2], [1 / 3, 2 / 3]])
    tie = dataclasses.replace(tree, value=np.full((3, 2), 0.5))
    assert trees.predict(tie, X).tolist() == ["a", "a", "a"]
    for classes in (np.array([5, 9]), np.array([5, 9], dtype=np.int16), np.array([0.5, 1.5]), np.array([False, True])):
        found = trees.predict(dataclasses.replace(tree, classes=classes), X)
        assert found.dtype == classes.dtype
        np.testing.assert_array_equal(found, classes[[0, 1, 1]])
    with pytest.raises(ValueError, match="laplace must be at least 0"):
        trees.predict_proba(tree, X, laplace=-1)


def test_predicted_values():
    one = stump([None], value=np.array([2.0, 1.5, 3.5]), classes=None)
    X = [[0.0], [1.0]]
    np.testing.assert_array_equal(trees.predict(one, X), [1.5, 3.5])
    several = stump([None], value=np.array([[0, 0], [1, 2], [3, 4.0]]), classes=None)
    np.testing.assert_array_equal(trees.predict(several, X), [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="shares are those of classes"):
        trees.predict_proba(one, X)


def test_linear_models_of_leaves():
    linear = np.array([[0, 0, 0], [1.0, 2.0, 10.0], [0.0, -1.0, 5.0]])
    tree = stump([None, None], value=np.array([2.0, 1.5, 3.5]), classes=None, linear=linear)
    X = [[0.0, 3.0], [1.0, 3.0], [NAN, 3.0], [0.5, NAN]]
    np.testing.assert_array_equal(trees.predict(tree, X), [16, 2, 2, 1.5])  # the last lacks what its model needs
    filling = dataclasses.replace(tree, fill=np.array([0.0, 7.0]))
    np.testing.assert_array_equal(trees.predict(filling, X), [16, 2, 2, 24.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", [None, NAN, np.inf])
@pytest.mark.parametrize("missing", ["extra", "zero", "surrogate", "fractional", "error"])
def test_rows_looked_at_on_the_way_answer_as_those_read_before(monkeypatch, dtype, odd, missing):
    """Also where one of them, in a later block, has a missing value or is refused, which says its row's own number."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5000, 40)).astype(dtype)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    tree = trees.grow(X[:500], y[:500], missing=missing)
    if odd is not None:
        X[4321, 7] = odd

    def outcomes():
        seen = []
        for ask in (trees.predict, trees.predict_proba, trees.apply):
            try:
                seen.append(ask(tree, X, n_threads=2).tolist())
            except ValueError as error:
                seen.append(str(error))
        return seen

    on_the_way = outcomes()
    monkeypatch.setattr("kernelrules.tree.prediction.lies_plainly", lambda *_: False)
    assert on_the_way == outcomes()
    refused = odd == np.inf or (missing == "error" and odd is not None)
    assert all(isinstance(each, str) and "row 4321" in each for each in on_the_way) == refused


def test_fractions():
    tree = stump([None], missing="fractional")
    X = [[0.0], [NAN]]
    np.testing.assert_array_equal(trees.predict_proba(tree, X), [[1, 0], [0.75, 0.25]])
    assert trees.predict(tree, X).tolist() == ["a", "a"]
    values = stump([None], missing="fractional", value=np.array([2.0, 1.0, 5.0]), classes=None)
    np.testing.assert_array_equal(trees.predict(values, X), [1.0, 2.0])
    several = dataclasses.replace(values, value=np.array([[2.0, 0.0], [1.0, 4.0], [5.0, 0.0]]))
    np.testing.assert_array_equal(trees.predict(several, X), [[1, 4], [2, 3]])


def test_paths():
    tree = stump([None])
    X = np.array([[0.0], [1.0], [NAN]])
    paths = trees.decision_path(tree, X)
    assert paths.shape == (3, 3)
    for i, row in enumerate(X):
        assert paths.indices[paths.indptr[i] : paths.indptr[i + 1]].tolist() == oracle.path(tree, row)


def test_importance():
    np.testing.assert_array_equal(trees.importance(stump([None, None], column=1)), [0, 1])
    idle = dataclasses.replace(stump([None, None]), gain=np.zeros(3))
    np.testing.assert_array_equal(trees.importance(idle), [0, 0])
    oblique = dataclasses.replace(
        stump([None, None]), feature=np.array([2, -1, -1]), directions=np.array([[3.0, -1.0]])
    )
    np.testing.assert_array_equal(trees.importance(oblique), [0.75, 0.25])


@pytest.mark.parametrize("use", [trees.predict, trees.predict_proba, trees.apply, trees.decision_path])
def test_arguments_of_use_are_checked(use):
    with pytest.raises(TypeError, match="tree must be a tree that"):
        use("tree", [[0.0]])
    with pytest.raises(ValueError, match="n_threads"):
        use(stump([None]), [[0.0]], n_threads=0)
    with pytest.raises(TypeError, match="callback must be callable"):
        use(stump([None]), [[0.0]], callback=3)
    seen = []
    use(stump([None]), np.zeros((50_000, 1)), callback=seen.append)
    assert seen[-1].fraction == 1


# ---- grown trees --------------------------------------------------------------------------------------------------


def mixed_frame(rng, n):
    """A number, words, ordered categories and counts, with gaps in all of them."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, NAN, rng.normal(size=n).round(1)),
            "word": rng.choice(np.array(["x", "y", "z", None], dtype=object), size=n),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], size=n), categories=["low", "mid", "high"]),
            "count": pd.array(rng.integers(0, 5, size=n), dtype="Int64"),
        }
    )
    frame.loc[rng.random(n) < 0.2, ["grade", "count"]] = None
    return frame


@given(st.integers(0, 2**32 - 1), st.sampled_from(["extra", "zero", "impute", "surrogate", "fractional"]))
def test_grown_trees_answer_as_the_naive_walk(seed, missing):
    rng = np.random.default_rng(seed)
    X, y = mixed_frame(rng, 40), rng.integers(0, 3, size=40)
    tree = trees.grow(X, y, missing=missing, rng=seed)
    new = mixed_frame(rng, 30)
    new["word"] = new["word"].replace("x", "unheard of") if seed % 2 else new["word"]
    values = read_again(tree, new)
    if missing in ("zero", "impute"):
        values = filled(values, tree.fill)
    paths = [oracle.path(tree, row) for row in values]
    np.testing.assert_array_equal(trees.apply(tree, new), [path[-1] for path in paths])
    found = trees.decision_path(tree, new)
    assert [found.indices[a:b].tolist() for a, b in zip(found.indptr, found.indptr[1:], strict=False)] == paths
    if missing == "fractional":
        shares = [sum(float(s) * tree.value[k] for k, s in oracle.mixture(tree, row).items()) for row in values]
    else:
        shares = [tree.value[path[-1]] for path in paths]
    np.testing.assert_allclose(trees.predict_proba(tree, new), shares, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(trees.importance(tree).sum(), 1.0)
    if importlib.util.find_spec("polars") is None:
        return
    pl = importlib.import_module("polars")
    by_polars = pl.DataFrame({name: new[name].astype(object).where(new[name].notna(), None).tolist() for name in new})
    np.testing.assert_array_equal(trees.predict(tree, by_polars), trees.predict(tree, new))


def test_leaves_of_training_rows():
    """Rows come to the leaves that they made, and each leaf's count is theirs."""
    rng = np.random.default_rng(0)
    X, y = mixed_frame(rng, 300), rng.integers(0, 2, size=300)
    for missing in ("extra", "zero", "impute", "surrogate"):
        tree = trees.grow(X, y, missing=missing, max_depth=6, rng=0)
        counts = np.bincount(trees.apply(tree, X), minlength=tree.n_nodes)
        np.testing.assert_array_equal(counts[tree.left < 0], tree.n_samples[tree.left < 0])
