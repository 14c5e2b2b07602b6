"""What graphs and fits on them refuse, and how clearly; how they behave while they run."""

import sys

import numpy as np
import pytest
from interrupting import seconds_of_all
from scipy import sparse

from kernelrules import graph

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
W = graph.knn_graph(X, 6)


def spoiled(place, value):
    bad = W.toarray()
    bad[place] = value
    return bad


def asymmetric(by):
    bad = W.toarray()
    i, j = np.argwhere(bad > 0)[0]
    bad[i, j] += by
    return bad


# ---- knn_graph --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((X, 0), ValueError, "k must be at least 1"),
        ((X, -3), ValueError, "k must be at least 1"),
        ((X, 20), ValueError, "less than the number of points, got 20 for 20"),
        ((X, 2.5), ValueError, "whole number"),
        ((X, "3"), TypeError, "k must be a number"),
        ((X[:1], 1), ValueError, "got 1 for 1"),
        ((X[:0], 1), ValueError, "got 1 for 0"),
        ((X[:, :0], 1), ValueError, "no columns"),
        ((X[0], 1), ValueError, "two-dimensional"),
        ((np.where(X > 1, np.nan, X), 2), ValueError, "nan"),
        ((np.where(X > 1, np.inf, X), 2), ValueError, "inf"),
        ((X.astype(object), 2), TypeError, "dtype object"),
        ((X.astype(str), 2), TypeError, "real numbers"),
        ((X + 1j, 2), TypeError, "complex"),
        ((X, 2, "gauss"), ValueError, "weight must be"),
        ((X, 2, None), ValueError, "weight must be"),
        ((X, 2, "rbf", "both"), ValueError, "symmetrise must be"),
        ((X, 2, lambda d: -d), ValueError, r"weight\(d\) must not be negative"),
        ((X, 2, lambda d: d * np.nan), ValueError, r"weight\(d\) holds nan"),
        ((X, 2, lambda d: 1.0), ValueError, r"shape \(\) for distances"),
        ((X, 2, lambda d: d[:-1]), ValueError, "for distances of shape"),
        ((X, 2, lambda d: ["a"] * len(d)), TypeError, "real numbers"),
    ],
)
def test_knn_graph_refuses(arguments, error, says):
    with pytest.raises(error, match=says):
        graph.knn_graph(*arguments)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf, "wide", None, np.ones(2)])
def test_gammas_that_are_none(gamma):
    with pytest.raises((ValueError, TypeError), match="gamma"):
        graph.knn_graph(X, 2, "rbf", gamma=gamma)


def test_other_options():
    with pytest.raises(ValueError, match="method"):
        graph.knn_graph(X, 2, method="ball")
    with pytest.raises(ValueError, match="dense"):
        graph.knn_graph(sparse.csr_array(X), 2, method="tree")
    with pytest.raises(ValueError, match="n_threads"):
        graph.knn_graph(X, 2, n_threads=0)
    with pytest.raises(TypeError, match="callback"):
        graph.knn_graph(X, 2, callback=3)


@pytest.mark.parametrize("method", ["tree", "tiles"])
def test_extreme_data(method):
    same = graph.knn_graph(np.ones((9, 2)), 3, "rbf", method=method)
    assert (same.data == 1).all()
    np.testing.assert_array_equal(same.toarray()[0, :4], [0, 1, 1, 1])
    two = graph.knn_graph([[0.0], [5.0]], 1, lambda d: d, method=method)
    np.testing.assert_array_equal(two.toarray(), [[0, 5], [5, 0]])
    full = graph.knn_graph(X, 19, method=method)
    np.testing.assert_array_equal(full.toarray(), 1 - np.eye(20))
    assert graph.knn_graph(np.zeros((4, 3), dtype=bool), 1, method=method).nnz == 6


def test_sparse_data_of_many_columns():
    values, rows = np.arange(1.0, 6), [0, 1, 2, 3, 4]
    wide = sparse.csr_array((values, (rows, [0, 7, 7, 10**9, 3])), shape=(5, 2**31 - 2))
    narrow = sparse.csr_array((values, (rows, [0, 2, 2, 3, 1])), shape=(5, 4)).toarray()
    np.testing.assert_array_equal(graph.knn_graph(wide, 2).toarray(), graph.knn_graph(narrow, 2).toarray())
    empty = sparse.csr_array((6, 4))
    np.testing.assert_array_equal(graph.knn_graph(empty, 1).toarray()[1:, 0], 1)


# ---- W ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [graph.laplacian, lambda w: graph.fit(w, [1.0], 0.1, [0])], ids=["laplacian", "fit"]
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (spoiled((3, 4), np.nan), "nan"),
        (spoiled((3, 4), np.inf), "inf"),
        (-W.toarray(), "W must not be negative"),
        (W.toarray()[:, :-1], r"W must be square, got shape \(20, 19\)"),
        (asymmetric(0.25), "W is not symmetric: .* differ by 0.25"),
        (np.triu(W.toarray()), "W is not symmetric"),
    ],
    ids=["NaN", "infinite", "negative", "not square", "asymmetric", "one half"],
)
def test_graphs_that_are_none(function, form, bad, says):
    with pytest.raises(ValueError, match=says):
        function(form(bad))


def test_graphs_of_other_types():
    for bad, error in ((W.toarray().astype(object), TypeError), ("W", ValueError), (np.ones(3), ValueError)):
        with pytest.raises(error, match="W"):
            graph.laplacian(bad)


def test_rounding_passes_for_symmetric():
    slightly = graph.fit(asymmetric(1e-9), [1.0, 2.0], 0.1, [0, 5]).values
    np.testing.assert_allclose(slightly, graph.fit(W, [1.0, 2.0], 0.1, [0, 5]).values, atol=1e-8)
    assert (graph.laplacian(asymmetric(1e-9)).toarray() == graph.laplacian(asymmetric(1e-9)).toarray().T).all()


def test_the_graph_is_not_written_to():
    mine = W.copy()
    before = (mine.data.copy(), mine.indices.copy(), mine.indptr.copy())
    for array in (mine.data, mine.indices, mine.indptr):
        array.flags.writeable = False
    for normalised in (False, True):
        graph.laplacian(mine, normalised).data[:] = 7
        graph.fit(mine, [1.0, 2.0], 0.1, [0, 5], normalised=normalised)
    for array, was in zip((mine.data, mine.indices, mine.indptr), before, strict=True):
        np.testing.assert_array_equal(array, was)


# ---- fit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "labelled", "error", "says"),
    [
        ([1.0], [], ValueError, "labelled is empty"),
        ([], np.zeros(20, dtype=bool), ValueError, "labelled is empty"),
        ([1.0, 2.0], [0, 20], ValueError, "labelled holds 20 at position 1, but W has 20 points"),
        ([1.0, 2.0], [-1, 3], ValueError, "labelled holds -1 at position 0"),
        ([1.0, 2.0, 3.0], [4, 3, 4], ValueError, "labelled holds 4 more than once, again at position 2"),
        ([1.0], [[0]], ValueError, "one-dimensional"),
        ([1.0], [0.0], TypeError, "indices or be a mask"),
        ([1.0], np.ma.array([0, 1], mask=[0, 1]), ValueError, "masked"),
        ([1.0], np.ones(19, dtype=bool), ValueError, "mask of 19 points but W has 20"),
        ([1.0, 2.0], [0, 1, 2], ValueError, "y has 2 entries but 3 points are labelled"),
        ([1.0, 2.0, 3.0], [0, 1], ValueError, "y has 3 entries but 2 points are labelled"),
        (np.ones(20), [0, 1], ValueError, r"y\[labelled\]"),
        (3.0, [0], ValueError, "y"),
        (np.ones((2, 2, 2)), [0, 1], ValueError, "y"),
        ([np.nan, 1.0], [0, 1], ValueError, "y holds nan at position 0"),
        ([[np.nan, 1.0]], [0], ValueError, "y"),
        ([None, "a"], [0, 1], ValueError, "y holds None"),
        ([["a", "b"]], [0], ValueError, "y"),
        (np.ones((1, 0)), [0], ValueError, "y"),
    ],
)
def test_fit_refuses_labels(y, labelled, error, says):
    with pytest.raises(error, match=says):
        graph.fit(W, y, 0.1, labelled)


@pytest.mark.parametrize("lam", [0, 0.0, -1.0, np.nan, np.inf, "small", None, True])
def test_lambdas_that_are_none(lam):
    with pytest.raises((ValueError, TypeError), match="lam"):
        graph.fit(W, [1.0], lam, [0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"solver": "lu"}, "solver"),
        ({"unreached": "zero"}, "unreached"),
        ({"classify": "yes"}, "classify"),
        ({"decide": "first"}, "decide"),
        ({"sample_weight": [-1.0, 1.0]}, "sample_weight"),
        ({"sample_weight": [0.0, 0.0]}, "sample_weight"),
        ({"sample_weight": [1.0]}, "sample_weight"),
        ({"n_threads": 0}, "n_threads"),
        ({"callback": 1}, "callback"),
    ],
)
def test_fit_refuses_options(options, says):
    with pytest.raises((ValueError, TypeError), match=says):
        graph.fit(W, [1.0, 2.0], 0.1, [0, 1], **options)


def test_what_overflows_is_refused():
    with pytest.raises(ValueError, match="squares overflow"):
        graph.fit(W, [1e200, 2.0], 0.1, [0, 1])
    with pytest.raises(ValueError, match="overflows"):
        graph.fit(W * 1e300, [1.0, 2.0], 1e10, [0, 1])


def test_kinds_of_y():
    labelled = [0, 7, 9]
    for y in ([1, 0, 1], [True, False, True], ["b", "a", "b"], np.array([3, 1, 3], dtype=np.uint8)):
        result = graph.fit(W, y, 0.1, labelled)
        assert result.values.shape == (20, 2)
        assert list(result.classes) == sorted(set(y))
        assert result.labels.shape == (20,)
    numbers = graph.fit(W, [1.0, 0.0, 1.0], 0.1, labelled)
    assert numbers.values.shape == (20,)
    assert numbers.labels is None
    np.testing.assert_array_equal(graph.fit(W, [1, 0, 1], 0.1, labelled, classify=False).values, numbers.values)
    assert list(graph.fit(W, [1.5, 0.0, 1.5], 0.1, labelled, classify=True).classes) == [0.0, 1.5]
    assert graph.fit(W, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], 0.1, labelled).values.shape == (20, 2)
    assert graph.fit(W, [[1.0], [2.0], [5.0]], 0.1, labelled).values.shape == (20, 1)
    single = graph.fit(W, ["only"] * 3, 0.1, labelled)
    assert (single.labels == "only").all()


def test_small_graphs():
    np.testing.assert_array_equal(graph.fit([[0.0]], [4.0], 0.1, [0]).values, [4.0])
    nothing = graph.fit(np.zeros((3, 3)), [1.0, 2.0, 3.0], 0.1, [2, 0, 1], solver="cg")
    np.testing.assert_allclose(nothing.values, [2.0, 3.0, 1.0])
    zero = graph.fit(W, np.zeros(2), 0.1, [0, 5], solver="cg")
    np.testing.assert_array_equal(zero.values, np.zeros(20))
    assert zero.certificate.converged
    with pytest.raises(ValueError, match="W"):
        graph.fit(np.zeros((0, 0)), [], 0.1, [])


def test_float32_and_whole_weights():
    wanted = graph.fit(W, [1.0, 2.0], 0.1, [0, 5]).values
    for form in (W.astype(np.float32), W.astype(np.int64), W.astype(bool), W.toarray().astype(np.float32)):
        np.testing.assert_allclose(graph.fit(form, np.float32([1, 2]), 0.1, [0, 5]).values, wanted, atol=1e-12)


# ---- while they run ---------------------------------------------------------------------------------------------


class Enough(Exception):
    pass


def stop(_):
    raise Enough


@pytest.mark.parametrize("method", ["tree", "tiles"])
def test_callbacks_of_knn_graph(method):
    seen = []
    graph.knn_graph(RNG.normal(size=(900, 3)), 4, method=method, callback=seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].fraction == 1
    assert {p.what for p in seen} == {"neighbours"}
    with pytest.raises(Enough):
        graph.knn_graph(X, 3, method=method, callback=stop)


def test_callbacks_of_fit():
    seen = []
    points = RNG.normal(size=(2500, 2))
    big = graph.knn_graph(points, 10)
    graph.fit(big, [1.0, 2.0], 0.1, [0, 9], solver="cg", unreached="nan", callback=seen.append)
    assert [p.done for p in seen[:-1]] == list(range(1, len(seen)))
    assert seen[-1].done == seen[-1].total == len(seen) - 1
    assert seen[-1].violation <= 1 < seen[0].violation
    with pytest.raises(Enough):
        graph.fit(big, [1.0, 2.0], 0.1, [0, 9], solver="cg", unreached="nan", callback=stop)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_ctrl_c_returns_within_a_second():
    prepare = """
import numpy as np
from scipy import sparse
from kernelrules import graph
rng = np.random.default_rng(0)
"""
    sparse_rows = "X = sparse.random_array((20000, 300), density=0.3, format='csr', rng=rng)"
    chain = "m = 400000; W = sparse.diags_array([np.ones(m - 1), np.ones(m - 1)], offsets=[-1, 1])"
    cases = {
        "tiles": ("X = rng.normal(size=(30000, 300))", "graph.knn_graph(X, 10, n_threads=1)"),
        "tree": ("X = rng.normal(size=(60000, 12))", "graph.knn_graph(X, 10, method='tree', n_threads=1)"),
        "csr": (sparse_rows, "graph.knn_graph(X, 10, n_threads=1)"),
        "fit": (chain, "graph.fit(W, [1.0], 1.0, [0], solver='cg', tol=1e-300, max_iter=10**6)"),
    }
    told = seconds_of_all(prepare, cases)
    assert all(seconds is not None and seconds < 1.0 for seconds in told.values()), told
