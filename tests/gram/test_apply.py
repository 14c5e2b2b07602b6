"""Products of a kernel matrix with coefficients, made by tiles, against the matrix by its definition."""

import gram_oracle
import numpy as np
import pytest
import solver_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import csr_forms, dtypes, kernel_specs, matrices

from kernelrules import check, kernels
from kernelrules.core.gram.apply import HEIGHT, apply_csr, apply_dense

KERNELS = [
    kernels.Linear(),
    kernels.Polynomial(3, 0.3, 0.5),
    kernels.RBF(0.1),
    kernels.RBF(40.0),
    kernels.Laplacian(0.2),
    kernels.Sigmoid(0.05, 0.1),
]
SIZES = [HEIGHT - 1, HEIGHT, HEIGHT + 1, 2 * HEIGHT + 1]


def make_data(n_x, n_z, dtype, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n_x, p)).astype(dtype), rng.normal(size=(n_z, p)).astype(dtype)


def apply(X, Z, kernel, coefficients, out, n_threads=1, **options):
    """apply_dense, or apply_csr where X is sparse."""
    if isinstance(X, check.Csr):
        single = X.dtype == np.float32
        apply_csr(X, Z, Z.columns(), kernel.core(), coefficients, out, n_threads, single=single, **options)
    else:
        apply_dense(X, Z, kernel.core(), coefficients, out, n_threads, **options)
    return out


def csr(X):
    return check.matrix(sparse.csr_array(X))


def assert_product(got, X, Z, kernel, coefficients):
    """got is k(X, Z) @ coefficientsᵀ but for the rounding of the kernel's values, in their type, and of the sum."""
    K = gram_oracle.gram(X, Z, kernel)
    exact, rounding = oracle.product(K, coefficients.T)
    allowed = rounding + gram_oracle.tolerance(X, Z, kernel, X.dtype) @ np.abs(coefficients.T)
    assert got.shape == exact.shape
    assert (np.abs(got - exact) <= allowed).all()


@given(st.data(), kernel_specs(), dtypes, st.booleans(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_products_equal_the_definition(data, kernel, dtype, is_sparse, n_columns, seed):
    X = data.draw(matrices()).astype(dtype)
    Z = data.draw(matrices(n_columns=X.shape[1])).astype(dtype)
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(size=(n_columns, len(Z))) * rng.choice([0.0, 1.0, 1e3], size=(n_columns, len(Z)))
    x, z = (check.matrix(data.draw(csr_forms(operand))) for operand in (X, Z)) if is_sparse else (X, Z)
    got = apply(x, z, kernel, coefficients, np.zeros((len(X), n_columns)))
    limit = np.finfo(dtype).max  # infinity times zero has no value: nobody asks for a kernel that overflows
    if (np.abs(gram_oracle.gram(X, Z, kernel)) < limit).all():
        assert_product(got, X, Z, kernel, coefficients)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, csr], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_sizes_around_the_tile(n, dtype, form, kernel):
    """All rows against the matrix that the package makes, the last one against the definition."""
    rng, X, Z = make_data(n, n + 3, dtype)
    coefficients = rng.normal(size=(2, n + 3))
    got = apply(form(X), form(Z), kernel, coefficients, np.zeros((n, 2)))
    K = kernels.gram(X, Z, kernel, n_threads=1).astype(np.float64)
    slack = 1000 * np.finfo(dtype).eps * (np.abs(K) @ np.abs(coefficients.T) + 1)
    assert (np.abs(got - K @ coefficients.T) <= slack).all()
    assert_product(got[-1:], X[-1:], Z, kernel, coefficients)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, csr], ids=["dense", "csr"])
def test_many_columns_with_zero_blocks(dtype, form):
    """One-vs-one: each column has coefficients in few tiles of points; zeros elsewhere change no bit."""
    n = 3 * HEIGHT + 17
    rng, X, Z = make_data(50, n, dtype)
    coefficients = np.zeros((23, n))  # the first column has none at all
    for column, point in enumerate([0, HEIGHT - 1, HEIGHT, 2 * HEIGHT - 1, 2 * HEIGHT, n - 1], start=1):
        coefficients[column, point] = 1.0
    for column in range(7, 23):
        some = slice(rng.integers(0, n - 100), None)
        coefficients[column, some][:100] = rng.normal(size=100)
    kernel = kernels.RBF(0.3)
    together = apply(form(X), form(Z), kernel, coefficients, np.zeros((50, 23)))
    assert_product(together[:3], X[:3], Z, kernel, coefficients)
    assert (together[:, 0] == 0).all()
    for column in (1, 3, 6, 22):
        alone = apply(form(X), form(Z), kernel, coefficients[column : column + 1], np.zeros((50, 1)))
        np.testing.assert_array_equal(alone[:, 0], together[:, column])


@pytest.mark.parametrize("n", SIZES)
def test_only_what_is_wanted(n):
    """Wanted parts are the same bits as without a mask; the others hold what was there, or that and the product."""
    rng, X, Z = make_data(n, n, np.float32)
    coefficients = rng.normal(size=(5, n))
    n_blocks = -(-n // HEIGHT)
    wanted = (rng.random((n_blocks, 5)) < 0.5).astype(np.uint8)
    wanted[0] = [1, 0, 0, 1, 0]
    everything = apply(X, Z, kernels.RBF(0.3), coefficients, np.ones((n, 5)))
    for n_threads in (1, 2):
        some = apply(X, Z, kernels.RBF(0.3), coefficients, np.ones((n, 5)), n_threads, wanted=wanted)
        mask = np.repeat(wanted, HEIGHT, axis=0)[:n].astype(bool)
        np.testing.assert_array_equal(some[mask], everything[mask])
        assert ((some == everything) | (some == 1))[~mask].all()


@pytest.mark.parametrize("form", [np.asarray, csr], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_any_number_of_threads_gives_the_same_bits(form, kernel):
    rng, X, Z = make_data(2 * HEIGHT + 1, HEIGHT + 1, np.float64)
    coefficients = rng.normal(size=(3, len(Z)))
    one, two, three = (
        apply(form(X), form(Z), kernel, coefficients, np.zeros((len(X), 3)), n_threads) for n_threads in (1, 2, 3)
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("form", [np.asarray, csr], ids=["dense", "csr"])
def test_rows_do_not_depend_on_the_rows_before(form):
    """For kernels that do not move the data to a centre: the same row in another place has the same bits."""
    rng, X, Z = make_data(2 * HEIGHT, 70, np.float64)
    coefficients = rng.normal(size=(2, 70))
    for kernel in (kernels.Linear(), kernels.Polynomial(2, 0.3, 0.5), kernels.Laplacian(0.3)):
        whole = apply(form(X), form(Z), kernel, coefficients, np.zeros((len(X), 2)))
        part = apply(form(X[-31:]), form(Z), kernel, coefficients, np.zeros((31, 2)))
        np.testing.assert_array_equal(whole[-31:], part)


@pytest.mark.parametrize("form", [np.asarray, csr], ids=["dense", "csr"])
def test_products_are_added_and_progress_told(form):
    rng, X, Z = make_data(2 * HEIGHT + 1, 30, np.float64)
    coefficients, there, ticks = rng.normal(size=(2, 30)), rng.normal(size=(2 * HEIGHT + 1, 2)), []
    got = apply(form(X), form(Z), kernels.RBF(0.1), coefficients, there.copy(), tick=lambda *args: ticks.append(args))
    fresh = apply(form(X), form(Z), kernels.RBF(0.1), coefficients, np.zeros_like(there))
    np.testing.assert_allclose(got, there + fresh, rtol=0, atol=1e-13)
    assert [done for done, _ in ticks] == sorted({done for done, _ in ticks})
    assert ticks[-1] == (len(X), len(X))

    def stop(*_):
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        apply(form(X), form(Z), kernels.RBF(0.1), coefficients, there, tick=stop)


def test_rows_may_lie_apart():
    rng, X, Z = make_data(20, 30, np.float64)
    wide_x, wide_z = np.full((40, 7), np.nan), np.full((60, 9), np.nan)
    wide_x[::2, :4], wide_z[::2, :4] = X, Z
    coefficients = rng.normal(size=(2, 30))
    for kernel in KERNELS:
        plain = apply(X, Z, kernel, coefficients, np.zeros((20, 2)))
        spread = apply(wide_x[::2, :4], wide_z[::2, :4], kernel, coefficients, np.zeros((20, 2)))
        np.testing.assert_array_equal(plain, spread)


@pytest.mark.parametrize(("n_x", "n_z", "n_columns"), [(0, 3, 2), (3, 0, 2), (3, 3, 0)])
@pytest.mark.parametrize("form", [np.asarray, csr], ids=["dense", "csr"])
def test_nothing_to_add(form, n_x, n_z, n_columns):
    out = np.ones((n_x, n_columns))
    X, Z = (form(np.ones((n, 4))) for n in (n_x, n_z))
    apply(X, Z, kernels.RBF(1.0), np.ones((n_columns, n_z)), out)
    assert (out == 1).all()


def test_a_kernel_that_is_none_is_refused():
    with pytest.raises(ValueError, match="out of range"):
        apply_dense(np.ones((2, 2)), np.ones((2, 2)), (99, 0, 1.0, 0.0), np.ones((1, 2)), np.zeros((2, 1)), 1)
    x = csr(np.ones((2, 2)))
    with pytest.raises(ValueError, match="out of range"):
        apply_csr(x, x, x.columns(), (99, 0, 1.0, 0.0), np.ones((1, 2)), np.zeros((2, 1)), 1)
