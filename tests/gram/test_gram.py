"""Gram matrices against their definition, and what the documentation promises of every one."""

import gram_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import csr_forms, dtypes, kernel_specs, layouts, matrices

from kernelrules import kernels

ALL = [definition.example for definition in oracle.KERNELS.values()]


def each_kernel(argument="kernel"):
    return pytest.mark.parametrize(argument, ALL, ids=lambda k: type(k).__name__)


@given(st.data(), kernel_specs(), dtypes)
def test_dense_equals_definition(data, kernel, dtype):
    X = data.draw(matrices()).astype(dtype)
    Z = data.draw(matrices(n_columns=X.shape[1])).astype(dtype)
    K = kernels.gram(data.draw(layouts(X)), data.draw(layouts(Z)), kernel)
    assert K.dtype == dtype
    oracle.assert_close(K, X, Z, kernel)


@given(st.data(), kernel_specs(), dtypes)
def test_symmetric_equals_definition(data, kernel, dtype):
    X = data.draw(matrices()).astype(dtype)
    K = kernels.gram(data.draw(layouts(X)), kernel=kernel)
    oracle.assert_close(K, X, X, kernel)
    np.testing.assert_array_equal(K, K.T)


@given(st.data(), kernel_specs(), dtypes, st.sampled_from(["both", "x", "z", "self"]))
def test_sparse_equals_definition(data, kernel, dtype, sides):
    X = data.draw(matrices()).astype(dtype)
    Z = X if sides == "self" else data.draw(matrices(n_columns=X.shape[1])).astype(dtype)
    x = data.draw(csr_forms(X)) if sides != "z" else X
    z = None if sides == "self" else data.draw(csr_forms(Z)) if sides != "x" else Z
    K = kernels.gram(x, z, kernel)
    assert K.dtype == dtype
    oracle.assert_close(K, X, Z, kernel)
    if sides == "self":
        np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (239, 5), (240, 24), (241, 25), (500, 257), (64, 513)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@each_kernel()
def test_shapes_around_the_tiles(shape, dtype, kernel):
    """Sizes on both sides of the tile (240), the slivers (up to 48) and the depth (256), checked on chosen entries."""
    rng = np.random.default_rng(shape)
    X, Z = (rng.normal(size=(n, shape[1])).astype(dtype) for n in (shape[0], shape[0] + 3))
    for data, other in ((X, None), (X, Z)):
        K = kernels.gram(data, other, kernel)
        second = data if other is None else other
        i = np.unique([0, len(data) // 2, len(data) - 1])
        j = np.unique([0, 1 % len(second), len(second) // 3, len(second) - 1])
        oracle.assert_close(K[np.ix_(i, j)], data[i], second[j], kernel)
        oracle.assert_close(K.T[np.ix_(j, i)], second[j], data[i], kernel)


@pytest.mark.parametrize("offset", [0.0, 1e6, -3e7, 1e8, 1e9, -1e10, 1e11, 1e12])
@pytest.mark.parametrize("gamma", ["scale", 1.0])
@pytest.mark.parametrize("form", ["symmetric", "cross", "csr", "mixed", "mixed swapped"])
def test_rbf_keeps_its_digits_far_from_the_origin(offset, gamma, form):
    X = np.random.default_rng(0).normal(size=(60, 7)) + offset
    kernel = kernels.RBF(gamma).resolve(X)
    x, z = {
        "symmetric": (X, None),
        "cross": (X, X.copy()),
        "csr": (sparse.csr_array(X), sparse.csr_array(X)),
        "mixed": (X, sparse.csr_array(X)),
        "mixed swapped": (sparse.csr_array(X), X),
    }[form]
    K = kernels.gram(x, z, kernel)
    exact = oracle.gram(X, X, kernel)
    assert (np.abs(K / exact - 1) < 1e-13).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rbf_of_clusters_far_apart(form):
    """No one centre helps here: within each cluster the expansion would lose every digit."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4)) + 1e8 * rng.integers(0, 3, size=300)[:, None]
    kernel = kernels.RBF(0.1)
    K = kernels.gram(form(X), kernel=kernel)
    assert (K == K.T).all()
    i = rng.integers(0, 300, size=40)
    oracle.assert_close(K[np.ix_(i, i)], X[i], X[i], kernel)


@pytest.mark.parametrize("kind", [kernels.RBF, kernels.Laplacian])
@pytest.mark.parametrize("offset", [1e9, 1e14])
def test_sparse_rows_that_are_far_away_in_some_columns(kind, offset):
    """Pairs near each other are found among pairs whose values vanish; rows have columns that the others lack."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 30)).round(1) * (rng.random((40, 30)) < 0.3)
    X[:, 3] += offset * rng.integers(0, 3, size=40)
    X[5] = X[6]
    kernel = kind(0.05)
    for x, z in ((sparse.csr_array(X), None), (sparse.csr_array(X), X), (X, sparse.csr_array(X))):
        K = kernels.gram(x, z, kernel)
        exact = oracle.gram(X, X, kernel)
        assert (np.abs(K - exact) <= 1e-13 * exact).all()
        assert K[5, 6] == 1
        assert (K == 0).any()


@pytest.mark.parametrize("form", ["dense", "cross", "csr", "mixed"])
@pytest.mark.parametrize(
    ("seed", "shape", "gamma"),
    [(2, (120, 57), 35 / 57), (0, (120, 100), 0.3), (1, (40, 784), 0.02), (3, (9, 14000), 1e-3)],
)
def test_rbf_to_1e_13_on_gaussian_data(seed, shape, gamma, form):
    """Exponents up to about 120: the direct formula itself keeps 5e-14 there."""
    X = np.random.default_rng(seed).normal(size=shape)
    sides = {
        "dense": (X, None),
        "cross": (X, X.copy()),
        "csr": (sparse.csr_array(X), None),
        "mixed": (X, sparse.csr_array(X)),
    }
    K = kernels.gram(*sides[form], kernels.RBF(gamma))
    assert (np.abs(K / oracle.gram(X, X, kernels.RBF(gamma)) - 1) < 1e-13).all()


@pytest.mark.parametrize("p", [200, 1000, 20000])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rbf_of_opposite_and_nearly_equal_rows(p, form):
    """Every term has the same sign: rounding errors of a long sum would add up instead of averaging out."""
    v = np.full(p, 0.37)
    X = np.vstack([v, -v, 1.001 * v])
    for weight in (1.0, 7.0, 19.0):
        kernel = kernels.RBF(weight / (p * 0.37**2))
        K = kernels.gram(form(X), kernel=kernel)
        assert (np.abs(K / oracle.gram(X, X, kernel) - 1) < 1e-13).all()


def test_rbf_with_outliers_and_large_gamma():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 30))
    X[::97] *= 1e5
    for gamma in (1e-3, 1.0, 30.0, 1e4):
        kernel = kernels.RBF(gamma)
        K = kernels.gram(X, kernel=kernel)
        i = np.append(rng.integers(0, 500, size=20), [0, 97, 194])
        oracle.assert_close(K[np.ix_(i, i)], X[i], X[i], kernel)


@given(st.data(), st.sampled_from([kernels.RBF, kernels.Laplacian]), dtypes, st.booleans())
def test_distance_kernels_stay_in_their_range(data, kind, dtype, as_csr):
    X = data.draw(matrices()).astype(dtype)
    kernel = kind(data.draw(st.floats(1e-6, 1e6)))
    K = kernels.gram(data.draw(csr_forms(X)) if as_csr else X, kernel=kernel)
    assert (np.diagonal(K) == 1).all()
    assert (K <= 1).all()
    assert (K >= 0).all()
    assert (K[K > 0] >= np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("kind", [kernels.RBF, kernels.Laplacian])
@pytest.mark.parametrize("gamma", [1e-300, 1e-60, 1e-30, 1.0, 1e30, 1e300])
@pytest.mark.parametrize("size", [1e-38, 1e-20, 1.0, 1e19, 1e30, 3e38])
def test_float32_is_never_nan(kind, gamma, size):
    X = (np.array([[1.0, -0.5], [0.25, 1.0], [-1.0, -1.0], [1.0, -0.5]]) * size).astype(np.float32)
    for data, other in ((X, None), (X, X.copy())):
        K = kernels.gram(data, other, kind(gamma))
        assert not np.isnan(K).any()
        np.testing.assert_allclose(K, oracle.gram(X, X, kind(gamma)).astype(float), rtol=3e-5, atol=1e-37)


@each_kernel()
@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_same_bits_for_any_number_of_threads(kernel, as_csr, dtype):
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(700, 40)) * (rng.random((700, 40)) < 0.4)).astype(dtype)
    Z = X[:350] + dtype(1)
    form = sparse.csr_array if as_csr else np.asarray
    for other in (None, form(Z), Z):
        results = [kernels.gram(form(X), other, kernel, n_threads=t) for t in (1, 2, 3, 7)]
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("shape", [(1500, 300), (500, 7000)], ids=["streamed", "packed by tiles"])
@pytest.mark.parametrize("kernel", [kernels.RBF(0.01), kernels.RBF(3.0), kernels.Laplacian(0.01)], ids=repr)
def test_same_bits_for_large_data(shape, kernel):
    """Results written past the caches, data too large to be kept in slivers, and tiles made from differences."""
    X = np.random.default_rng(10).normal(size=shape)
    results = [kernels.gram(X, kernel=kernel, n_threads=t) for t in (1, 2, 5)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    i = [0, 239, 240, shape[0] - 1]
    oracle.assert_close(results[0][np.ix_(i, i)], X[i], X[i], kernel)


@each_kernel()
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("as_csr", [False, True])
def test_out_is_filled_and_returned(kernel, order, as_csr):
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(300, 6)), rng.normal(size=(260, 6))
    form = sparse.csr_array if as_csr else np.asarray
    for other in (None, form(Z)):
        expected = kernels.gram(form(X), other, kernel)
        out = np.full(expected.shape, np.nan, order=order)
        assert kernels.gram(form(X), other, kernel, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-14)


def test_out_may_be_part_of_a_larger_array():
    X = np.random.default_rng(5).normal(size=(250, 3))
    whole = np.full((260, 300), 7.0)
    kernels.gram(X, kernel=kernels.RBF(1.0), out=whole[5:255, 20:270])
    np.testing.assert_array_equal(whole[5:255, 20:270], kernels.gram(X, kernel=kernels.RBF(1.0)))
    whole[5:255, 20:270] = 7
    assert (whole == 7).all()


def test_float_type_follows_the_data():
    X64, X32 = np.ones((3, 2)), np.ones((3, 2), dtype=np.float32)
    assert kernels.gram(X32).dtype == np.float32
    assert kernels.gram(X32, X32.copy()).dtype == np.float32
    assert kernels.gram(X32, X64).dtype == np.float64
    assert kernels.gram(X64).dtype == np.float64
    assert kernels.gram(X64, dtype=np.float32).dtype == np.float32
    assert kernels.gram(X32, dtype="float64").dtype == np.float64
    assert kernels.gram(X32.astype(np.float16)).dtype == np.float32
    assert kernels.gram(X32.astype(">f4")).dtype == np.float32
    assert kernels.gram(X64.astype(int)).dtype == np.float64
    assert kernels.gram(sparse.csr_array(X32)).dtype == np.float32


def test_same_array_counts_as_symmetric():
    """Z that is X, or a view of the same numbers, gives the exact diagonal of the symmetric matrix."""
    X = np.random.default_rng(6).normal(size=(50, 3)) * 100
    for Z in (X, X[:], X[:, :]):
        K = kernels.gram(X, Z, kernels.RBF(3.0))
        assert (np.diagonal(K) == 1).all()
        np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("as_csr", [False, True])
def test_gamma_scale_and_auto(as_csr):
    X = np.random.default_rng(7).normal(size=(40, 5)) * 3 + 1e5
    form = sparse.csr_array if as_csr else np.asarray
    by_hand = kernels.RBF(1 / (5 * X.var()))
    np.testing.assert_allclose(kernels.RBF("scale").resolve(form(X)).gamma, by_hand.gamma, rtol=1e-12)
    np.testing.assert_allclose(
        kernels.gram(form(X), X[:3], kernels.RBF("scale")), kernels.gram(X, X[:3], by_hand), rtol=1e-11
    )
    assert kernels.Laplacian("auto").resolve(form(X)).gamma == 0.2
    assert kernels.RBF("scale").resolve(np.full((3, 2), 5.0)).gamma == 1.0


@each_kernel()
def test_empty_gives_empty(kernel):
    none, some = np.empty((0, 4)), np.ones((3, 4))
    assert kernels.gram(none, kernel=kernel).shape == (0, 0)
    assert kernels.gram(none, some, kernel).shape == (0, 3)
    assert kernels.gram(some, none, kernel).shape == (3, 0)
    assert kernels.gram(sparse.csr_array(none), some, kernel).shape == (0, 3)
    assert kernels.gram(some, sparse.csr_array(none), kernel).shape == (3, 0)
    assert kernels.gram(sparse.csr_array(none), kernel=kernel).shape == (0, 0)
    assert kernels.diagonal(none, kernel).shape == (0,)
    all_zero = sparse.csr_array((3, 4))
    np.testing.assert_array_equal(kernels.gram(all_zero, kernel=kernel), kernels.gram(np.zeros((3, 4)), kernel=kernel))


@each_kernel()
def test_sparse_data_with_more_columns_than_fit(kernel):
    """2**40 columns: no array of one position a column may be made."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(6, 4))
    columns = np.array([0, 2**20, 2**33, 2**40 - 1])
    wide = sparse.csr_array((X.ravel(), np.tile(columns, 6), np.arange(0, 25, 4)), shape=(6, 2**40))
    np.testing.assert_allclose(kernels.gram(wide, kernel=kernel), kernels.gram(X, kernel=kernel), rtol=1e-12)
    np.testing.assert_allclose(kernels.gram(wide[:2], wide[2:], kernel), kernels.gram(X[:2], X[2:], kernel), rtol=1e-12)


@given(st.data(), kernel_specs(), dtypes, st.booleans())
def test_diagonal_is_that_of_the_matrix(data, kernel, dtype, as_csr):
    X = data.draw(matrices()).astype(dtype)
    d = kernels.diagonal(data.draw(csr_forms(X)) if as_csr else X, kernel)
    assert d.dtype == dtype
    exact = np.array([oracle.value(x, x, kernel) for x in X.astype(oracle.EXACT)])
    allowed = np.diagonal(oracle.tolerance(X, X, kernel, dtype))
    assert (np.abs(d - exact) <= allowed + np.abs(exact) * np.finfo(dtype).eps).all()


def test_precomputed_is_handed_through():
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    got = kernels.gram(K, kernel=kernels.Precomputed())
    np.testing.assert_array_equal(got, K)
    assert not np.shares_memory(got, K)
    np.testing.assert_array_equal(kernels.gram(sparse.csr_array(K), kernel=kernels.Precomputed()), K)
    np.testing.assert_array_equal(kernels.diagonal(K, kernels.Precomputed()), [2.0, 1.0])
    out = np.empty((2, 2))
    assert kernels.gram(K, kernel=kernels.Precomputed(), out=out) is out
    with pytest.raises(ValueError, match="Z must be None"):
        kernels.gram(K, K, kernels.Precomputed())
    with pytest.raises(ValueError, match="square"):
        kernels.diagonal(K[:1], kernels.Precomputed())


@each_kernel()
def test_agrees_with_scikit_learn(kernel):
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    rng = np.random.default_rng(9)
    X, Z = rng.normal(size=(120, 8)), rng.normal(size=(90, 8))
    theirs = {
        "Linear": lambda: pairwise.linear_kernel(X, Z),
        "Polynomial": lambda: pairwise.polynomial_kernel(X, Z, degree=3, gamma=0.1, coef0=1.0),
        "RBF": lambda: pairwise.rbf_kernel(X, Z, gamma=0.05),
        "Laplacian": lambda: pairwise.laplacian_kernel(X, Z, gamma=0.05),
        "Sigmoid": lambda: pairwise.sigmoid_kernel(X, Z, gamma=0.02, coef0=0.1),
    }
    if type(kernel).__name__ not in theirs:
        pytest.skip("scikit-learn has no such kernel")
    expected = theirs[type(kernel).__name__]()
    np.testing.assert_allclose(kernels.gram(X, Z, kernel), expected, rtol=1e-11, atol=1e-13)
