"""Nearest neighbours and the graphs made of them: exact, with ties, duplicates, and in every form of the data."""

import tracemalloc

import graph_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import csr_forms, dtypes, layouts, matrices

from kernelrules import check, graph
from kernelrules.core.graph import neighbours as core
from kernelrules.graph import neighbours as made
from kernelrules.kernels import RBF

TILE = 240  # rows of a tile: sizes around it


def nearest(X, k, n_threads=1, tick=None):
    """The compiled lists, of dense or sparse rows."""
    x = check.matrix(X)
    indices, squares = np.empty((len(x), k), dtype=np.intc), np.empty((len(x), k))
    if isinstance(x, check.Csr):
        core.nearest_csr(x.astype(np.float64), x.astype(np.float64).columns(), indices, squares, n_threads, tick)
    else:
        core.nearest_dense(x, indices, squares, n_threads, tick)
    return indices, squares


def assert_nearest(indices, squares, X):
    """Distances right to rounding; nothing nearer left out; ascending by (distance, index); nobody twice, not oneself.

    Where two distances differ by less than rounding either order is right, so indices are compared by distances."""
    k, exact = indices.shape[1], oracle.squares(X)
    ulp = 4 * X.shape[1] * np.finfo(np.float64).eps
    assert (np.sort(indices, axis=1)[:, 1:] != np.sort(indices, axis=1)[:, :-1]).all()
    assert (indices != np.arange(len(X))[:, None]).all()
    np.testing.assert_allclose(squares, np.take_along_axis(exact, indices.astype(int), 1).astype(float), rtol=ulp)
    np.testing.assert_allclose(squares, np.sort(exact, axis=1)[:, :k].astype(float), rtol=ulp)
    later, tied = squares[:, 1:] > squares[:, :-1], squares[:, 1:] == squares[:, :-1]
    assert (later | (tied & (indices[:, 1:] > indices[:, :-1]))).all()


@given(st.data(), dtypes, st.booleans())
def test_lists_equal_the_definition(data, dtype, is_sparse):
    X = data.draw(matrices(most_rows=20)).astype(dtype)
    if len(X) < 2:
        X = np.vstack([X, X + 1]).astype(dtype)
    k = data.draw(st.integers(1, len(X) - 1))
    assert_nearest(*nearest(data.draw(csr_forms(X)) if is_sparse else X, k), X)


@given(st.data(), dtypes, st.integers(2, 24), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_ties_go_to_the_smaller_index(data, dtype, n, p, seed):
    """Whole numbers: distances are exact, and most of them tie."""
    X = np.random.default_rng(seed).integers(0, 3, size=(n, p)).astype(dtype)
    k = data.draw(st.integers(1, n - 1))
    wanted = oracle.nearest(X, k)
    for form in (X, sparse.csr_array(X)):
        np.testing.assert_array_equal(nearest(form, k)[0], wanted)


@pytest.mark.parametrize("kind", ["normal", "far", "duplicates", "clusters", "one far off", "small numbers"])
@pytest.mark.parametrize("n", [40, TILE + 1, 3 * TILE])
def test_float32_finds_all_candidates(monkeypatch, kind, n):
    """The same bits as from float64, however many it lets through."""
    rng = np.random.default_rng(n)
    X = {
        "normal": lambda: rng.normal(size=(n, 7)),
        "far": lambda: rng.normal(size=(n, 3)) + 1e9,
        "duplicates": lambda: np.repeat(rng.normal(size=(n // 4, 3)), 4, axis=0),
        "clusters": lambda: rng.normal(size=(4, 5))[np.arange(n) % 4] + 1e-9 * rng.normal(size=(n, 5)),
        "one far off": lambda: np.vstack([rng.normal(size=(n - 1, 2)), [[1e7, 0]]]),
        "small numbers": lambda: 1e-7 * rng.normal(size=(n, 2)) ** 3,
    }[kind]()
    wanted = nearest(X, 6)
    monkeypatch.setattr(made, "_MANY", 2)
    monkeypatch.setattr(made, "_MOST_SEEN", np.inf)
    seen, exact, blur = made._search_rows(check.matrix(X), 6)
    assert seen.dtype == np.float32
    assert exact is not None
    for n_threads in (1, 3):
        found = np.empty((len(X), 6), dtype=np.intc), np.empty((len(X), 6))
        core.nearest_dense(seen, *found, n_threads, None, exact, blur)
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])


def test_float32_is_left_where_it_sees_too_little():
    rng = np.random.default_rng(0)
    tight = rng.normal(size=(3, 4))[np.arange(1500) % 3] + 1e-6 * rng.normal(size=(1500, 4))
    assert made._search_rows(tight, 5)[1] is None
    assert made._search_rows(rng.normal(size=(1500, 4)), 5)[1] is not None
    assert made._search_rows(1e200 * rng.normal(size=(1500, 4)), 5)[1] is None


@pytest.mark.parametrize("n", [2, TILE - 1, TILE, TILE + 1, 2 * TILE + 7, 5 * TILE])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["normal", "integers", "far", "duplicates", "sorted"])
def test_sizes_around_the_tile(n, dtype, kind):
    rng = np.random.default_rng(n)
    X = {
        "normal": lambda: rng.normal(size=(n, 5)),
        "integers": lambda: rng.integers(0, 4, size=(n, 3)),
        "far": lambda: rng.normal(size=(n, 3)) + 1e5,
        "duplicates": lambda: np.repeat(rng.normal(size=(n // 2 + 1, 3)), 2, axis=0)[:n],
        "sorted": lambda: np.sort(rng.normal(size=(n, 1)), axis=0) * [1.0, 2.0],
    }[kind]().astype(dtype)
    k = min(7, n - 1)
    indices, squares = nearest(X, k)
    wide = X.astype(np.float64)
    full = ((wide[:, None] - wide[None]) ** 2).sum(axis=2)
    np.fill_diagonal(full, np.inf)
    np.testing.assert_allclose(squares, np.sort(full, axis=1)[:, :k], rtol=1e-12)
    np.testing.assert_allclose(squares, np.take_along_axis(full, indices.astype(int), 1), rtol=1e-12)
    if kind in ("integers", "duplicates"):
        order = np.argsort(full, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(
            indices if kind == "integers" else indices[:, 0], order if kind == "integers" else order[:, 0]
        )


def forms(X, k):
    """Everything that has to give the same bits."""
    yield nearest(X, k, 2)
    yield nearest(X, k, 5)
    yield nearest(sparse.csr_array(X), k, 1)
    yield nearest(sparse.csr_array(X), k, 3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_and_sparse_rows_give_the_same_bits(dtype):
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(3 * TILE + 5, 13)) * (rng.random((3 * TILE + 5, 13)) < 0.6)).astype(dtype)
    first = nearest(X, 9)
    for other in forms(X, 9):
        np.testing.assert_array_equal(first[0], other[0])
        np.testing.assert_array_equal(first[1], other[1])


@pytest.mark.parametrize("kind", ["normal", "integers", "grid", "duplicates", "one point"])
def test_tree_and_tiles_give_the_same_graph(kind):
    rng = np.random.default_rng(5)
    X = {
        "normal": rng.normal(size=(700, 3)),
        "integers": rng.integers(0, 6, size=(700, 2)).astype(float),
        "grid": np.indices((25, 25)).reshape(2, -1).T * 0.1,
        "duplicates": np.vstack([np.zeros((300, 2)), rng.normal(size=(300, 2))]),
        "one point": np.full((400, 2), 0.3),
    }[kind]
    for how in ("union", "mutual"):
        tree, tiles = (graph.knn_graph(X, 6, "rbf", how, gamma=0.5, method=m) for m in ("tree", "tiles"))
        np.testing.assert_array_equal(tree.indptr, tiles.indptr)
        np.testing.assert_array_equal(tree.indices, tiles.indices)
        np.testing.assert_array_equal(tree.data, tiles.data)


@given(
    st.integers(2, 14),
    st.integers(1, 3),
    st.sampled_from(["binary", "rbf", "own"]),
    st.sampled_from(["union", "mutual"]),
    st.booleans(),
    st.data(),
)
def test_graphs_equal_the_definition(n, p, weight, how, whole, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, 3, size=(n, p)).astype(float) if whole else rng.normal(size=(n, p))
    k = data.draw(st.integers(1, n - 1))
    by_distance = {"binary": lambda d: 1.0, "rbf": lambda d: np.exp(-0.7 * d**2), "own": lambda d: 1 / (1 + d)}[weight]
    W = graph.knn_graph(X, k, by_distance if weight == "own" else weight, how, gamma=0.7)
    np.testing.assert_allclose(W.toarray(), oracle.knn_graph(X, k, by_distance, how), rtol=1e-12)
    assert (W.toarray() == W.toarray().T).all()
    assert (W.diagonal() == 0).all()
    assert W.has_sorted_indices
    assert (np.diff(W.indices) > 0)[np.setdiff1d(np.arange(W.nnz - 1), W.indptr[1:-1] - 1)].all()
    assert (W.data > 0).all()


def test_mutual_is_part_of_union():
    X = np.random.default_rng(0).normal(size=(300, 4))
    union, mutual = (graph.knn_graph(X, 5, symmetrise=how) for how in ("union", "mutual"))
    assert mutual.nnz < union.nnz
    assert ((union - mutual).data >= 0).all()
    degree = np.diff(union.indptr)
    assert degree.min() >= 5
    assert np.diff(mutual.indptr).max() <= 5
    assert union.nnz + mutual.nnz == 2 * 5 * 300  # every choice is one-way or mutual


@pytest.mark.parametrize("p", [2, 30])
def test_permuted_points_give_the_permuted_graph(p):
    rng = np.random.default_rng(1)
    X, order = rng.normal(size=(500, p)), rng.permutation(500)
    W, permuted = graph.knn_graph(X, 7, "rbf"), graph.knn_graph(X[order], 7, "rbf")
    np.testing.assert_allclose(permuted.toarray(), W.toarray()[np.ix_(order, order)], rtol=1e-12)


@given(st.data())
def test_layouts(data):
    X = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(30, 4)).astype(data.draw(dtypes))
    wanted = graph.knn_graph(X, 3, "rbf").toarray()
    np.testing.assert_array_equal(graph.knn_graph(data.draw(layouts(X)), 3, "rbf").toarray(), wanted)
    np.testing.assert_array_equal(
        graph.knn_graph(sparse.csr_array(X), 3, "rbf", gamma=0.1).toarray(),
        graph.knn_graph(X, 3, "rbf", gamma=0.1).toarray(),
    )


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e200, 1e300])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_units_do_not_matter(scale, form):
    """Squares of such numbers overflow or vanish."""
    X = np.random.default_rng(2).normal(size=(60, 3))
    wanted = graph.knn_graph(X, 4).toarray()
    np.testing.assert_array_equal(graph.knn_graph(form(X * scale), 4).toarray(), wanted)


@pytest.mark.parametrize("scale", [1e-30, 1e25])
def test_units_of_float32_do_not_matter(scale):
    X = np.random.default_rng(2).normal(size=(60, 20)).astype(np.float32)
    wanted = graph.knn_graph(X, 4).toarray()
    np.testing.assert_array_equal(graph.knn_graph((X.astype(float) * scale).astype(np.float32), 4).toarray(), wanted)


def test_gammas():
    X = np.random.default_rng(4).normal(size=(80, 3)) * [1.0, 5.0, 0.2]
    edges = graph.knn_graph(X, 3, lambda d: d**2)
    choices = nearest(X, 3)[1]
    for gamma, number in (
        (0.3, 0.3),
        ("scale", RBF("scale").resolve(X).gamma),
        ("auto", 1 / 3),
        ("neighbours", 1 / choices.mean()),
    ):
        W = graph.knn_graph(X, 3, "rbf", gamma=gamma)
        np.testing.assert_allclose(W.data, np.exp(-number * edges.data), rtol=1e-12)


def test_weights_that_vanish_are_no_edges():
    X = np.array([[0.0], [1.0], [1e3], [1e3 + 1]])
    assert graph.knn_graph(X, 2, "rbf", gamma=1.0).nnz == 4
    assert graph.knn_graph(X, 2, lambda d: d < 2).nnz == 4


def test_a_callable_is_asked_once_an_edge():
    seen = []

    def weight(d):
        seen.append(d)
        return np.arange(1.0, len(d) + 1)

    W = graph.knn_graph(np.random.default_rng(0).normal(size=(20, 2)), 3, weight)
    assert len(seen) == 1
    assert 2 * len(seen[0]) == W.nnz
    assert (W.toarray() == W.toarray().T).all()


def test_scikit_learn_has_the_same_neighbours():
    neighbors = pytest.importorskip("sklearn.neighbors")
    X = np.random.default_rng(0).normal(size=(400, 20))
    theirs = neighbors.kneighbors_graph(X, 8).toarray()
    np.testing.assert_array_equal(graph.knn_graph(X, 8).toarray(), np.maximum(theirs, theirs.T))
    np.testing.assert_array_equal(graph.knn_graph(X, 8, symmetrise="mutual").toarray(), np.minimum(theirs, theirs.T))


def test_rows_are_looked_at_in_float32_without_a_second_copy_of_all():
    """Beside the float32 rows themselves, half of X, little is needed."""
    X = np.random.default_rng(0).normal(size=(40_000, 25))
    tracemalloc.start()
    seen, exact, blur = made._search_rows(X, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert exact is X
    assert blur > 0
    np.testing.assert_allclose(seen, X - X.mean(axis=0), rtol=1e-6, atol=1e-12)
    assert peak < 1.2 * X.nbytes


def test_rows_are_not_copied_where_memory_is_short(monkeypatch):
    X = np.random.default_rng(0).normal(size=(2000, 30))
    expected = graph.knn_graph(X, 5)
    monkeypatch.setattr(check, "free_memory", lambda: 400_000)
    monkeypatch.setattr(check, "fits_memory", lambda *arguments: None)
    assert made._search_rows(X, 5)[0] is X
    assert (graph.knn_graph(X, 5) != expected).nnz == 0
