"""`ridge.fit_blocks`: blocks of rows give the fit of all rows at once, whoever computes them."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kernelrules import kernels, ridge


def data(n=200, p=4, t=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 3
    return X, rng.normal(size=n) if t is None else rng.normal(size=(n, t)), rng.random(n)


def cut(*arrays, at):
    edges = [0, *at, len(arrays[0])]
    return [tuple(a[i:j] for a in arrays) for i, j in pairwise(edges)]


def blocks_for_tests(number):
    """At the top level: other processes import it."""
    X, y, _ = data()
    return cut(X, y, at=[50, 51, 120])[number]


def slow_fit(X, y, weight, lam, intercept):
    """The same by the normal equations, as they stand in a book."""
    psi = np.column_stack([X, np.ones(len(X))]) if intercept else X
    penalty = np.eye(psi.shape[1])
    if intercept:
        penalty[-1, -1] = 0
    both = (psi * weight[:, None]).T
    return np.linalg.solve(both @ psi + lam * weight.sum() * penalty, both @ y)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([1e-6, 0.1, 10.0]),
)
def test_blocks_are_the_normal_equations(sizes, intercept, t, lam):
    X, y, weight = data(sum(sizes) + 8, 3, t)
    weight = np.maximum(weight, 0.01)
    found = ridge.fit_blocks(cut(X, y, weight, at=np.cumsum(sizes)), lam, intercept=intercept)
    expected = slow_fit(X, y, weight, lam, intercept)
    np.testing.assert_allclose(found.weights, expected[:3], rtol=1e-8, atol=1e-10)
    if intercept:
        np.testing.assert_allclose(found.intercept, expected[3], rtol=1e-8, atol=1e-9)
    assert found.n_rows == len(X)
    assert found.certificate.converged
    np.testing.assert_allclose(found.total_weight, weight.sum())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("t", [None, 2])
def test_blocks_are_the_fit_of_the_whole(intercept, t):
    """Also its certificate."""
    X, y, weight = data(t=t)
    kernel = kernels.Polynomial(degree=2, gamma=0.3)
    whole = ridge.fit(X, y, 0.01, kernel, form="features", sample_weight=weight, intercept=intercept)
    phi = kernels.feature_map(kernel, 4)
    found = ridge.fit_blocks(cut(X, y, weight, at=[30, 90]), 0.01, phi, intercept=intercept)
    np.testing.assert_allclose(found.weights, whole.weights, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.certificate.primal, whole.certificate.primal, rtol=1e-9)
    np.testing.assert_allclose(found.certificate.dual, whole.certificate.dual, rtol=1e-9)
    assert 0 <= found.certificate.gap <= 1e-8 * found.certificate.primal
    np.testing.assert_allclose(ridge.predict(found, X), ridge.predict(whole, X), rtol=1e-7, atol=1e-9)


def test_a_certificate_is_that_of_the_weights():
    """The objective at the weights, from the data themselves."""
    X, y, _ = data(300, 5)
    phi = kernels.random_fourier(kernels.RBF(0.1), 5, 40, rng=0)
    found = ridge.fit_blocks(cut(X, y, at=[100, 200]), 1e-3, phi, intercept=True)
    errors = ridge.predict(found, X) - y
    primal = (errors**2).mean() + 1e-3 * found.weights @ found.weights
    np.testing.assert_allclose(found.certificate.primal, primal, rtol=1e-9)


def test_kinds_of_blocks():
    X, y, _ = data()
    plain = ridge.fit_blocks(cut(X, y, at=[50, 51, 120]), 0.1)
    same = [
        iter(cut(X, y, at=[50, 51, 120])),
        [partial(blocks_for_tests, i) for i in range(4)],
        [(lambda b=b: b[0], b[1]) for b in cut(X, y, at=[50, 51, 120])],
        cut(X, y, at=[50, 50, 51, 120]),  # one of them empty
    ]
    for blocks in same:
        np.testing.assert_array_equal(ridge.fit_blocks(blocks, 0.1).weights, plain.weights)
    for form in (sparse.csr_array, np.asfortranarray):
        found = ridge.fit_blocks([(form(a), b) for a, b in cut(X, y, at=[60])], 0.1)
        np.testing.assert_allclose(found.weights, plain.weights, rtol=1e-9)
    single = ridge.fit_blocks([(X.astype(np.float32), y)], 0.1)
    np.testing.assert_allclose(single.weights, plain.weights, rtol=1e-4)
    assert single.weights.dtype == np.float64


def test_executors_and_threads_change_nothing():
    X, y, _ = data(3000, 6)
    phi = kernels.nystroem(X, kernels.RBF(0.2), 60, rng=0)
    blocks = cut(X, y, at=range(250, 3000, 250))
    one = ridge.fit_blocks(blocks, 1e-3, phi, intercept=True, n_threads=1)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1) as processes:
        for options in ({"n_threads": 2}, {"executor": threads}, {"executor": processes}):
            other = ridge.fit_blocks(blocks, 1e-3, phi, intercept=True, **options)
            np.testing.assert_array_equal(one.weights, other.weights)
            assert one.intercept == other.intercept
            assert one.certificate == other.certificate


def test_dask_arrays():
    array = pytest.importorskip("dask.array")
    X, y, _ = data(300, 4)
    lazy_x, lazy_y = array.from_array(X, chunks=(70, 4)), array.from_array(y, chunks=70)
    blocks = zip(lazy_x.to_delayed().ravel(), lazy_y.to_delayed().ravel(), strict=True)
    found = ridge.fit_blocks(blocks, 0.1, intercept=True)
    np.testing.assert_array_equal(
        found.weights, ridge.fit_blocks(cut(X, y, at=range(70, 300, 70)), 0.1, intercept=True).weights
    )


def test_far_from_the_origin_the_constant_keeps_its_digits():
    X, y, _ = data(400, 3)
    near = ridge.fit_blocks(cut(X, y, at=[100, 300]), 1e-3, intercept=True)
    far = ridge.fit_blocks(cut(X + 1e6, y, at=[100, 300]), 1e-3, intercept=True)
    np.testing.assert_allclose(far.weights, near.weights, rtol=1e-6)


X0, Y0, _ = data(20, 3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ridge.fit_blocks([], 0.1), "blocks hold no rows"),
        (lambda: ridge.fit_blocks([(X0[:0], Y0[:0])], 0.1), "blocks hold no rows"),
        (lambda: ridge.fit_blocks(3, 0.1), "blocks must be an iterable"),
        (lambda: ridge.fit_blocks([X0], 0.1), "a block must be"),
        (lambda: ridge.fit_blocks([(X0, Y0[:5])], 0.1), "y has 5"),
        (lambda: ridge.fit_blocks([(X0, Y0), (X0[:, :2], Y0)], 0.1), "block 2 has 2 columns"),
        (lambda: ridge.fit_blocks([(X0, Y0), (X0, X0)], 0.1), "block 2 has 3 targets"),
        (lambda: ridge.fit_blocks([(X0, Y0)], 0.0), "lam must be"),
        (lambda: ridge.fit_blocks([(X0, Y0)], 0.1, 5), "feature_map must have"),
        (lambda: ridge.fit_blocks([(X0, Y0, -(Y0**2))], 0.1), "sample_weight must not be negative"),
        (lambda: ridge.fit_blocks([(X0, Y0, 0 * Y0)], 0.1), "zero for every row"),
        (lambda: ridge.fit_blocks([(X0 * np.nan, Y0)], 0.1), "X holds nan"),
        (lambda: ridge.fit_blocks([(X0, Y0)], 0.1, executor=3), "executor must be"),
        (lambda: ridge.fit_blocks([(X0 * 1e200, Y0)], 0.1), "overflow"),
        (lambda: ridge.predict(ridge.fit_blocks([(X0, Y0)], 0.1), X0[:, :2]), "X has 2 columns"),
    ],
)
def test_bad_input(call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()


def test_errors_name_the_block():
    with pytest.raises(ValueError, match="X holds nan") as caught:
        ridge.fit_blocks([(X0, Y0), (X0, Y0), (X0 * np.nan, Y0)], 0.1)
    assert "block 3" in caught.value.__notes__[0]
