"""Relations that hold between Gram matrices of related data, whatever the values are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import dtypes, kernel_specs, matrices

from kernelrules import kernels


def assert_close(a, b, dtype):
    """Equal but for rounding, which is in proportion to the largest entry; infinities in the same places."""
    np.testing.assert_array_equal(np.isinf(a), np.isinf(b))
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    scale = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0), 1e-300)
    ulps = 1e5 if dtype == np.float64 else 1e3
    assert np.abs(a - b).max(initial=0) <= ulps * np.finfo(dtype).eps * scale


@given(st.data(), kernel_specs(), dtypes)
def test_permuting_rows_permutes_the_matrix(data, kernel, dtype):
    X = data.draw(matrices()).astype(dtype)
    order = np.random.default_rng(0).permutation(len(X))
    assert_close(kernels.gram(X[order], kernel=kernel), kernels.gram(X, kernel=kernel)[np.ix_(order, order)], dtype)


@given(st.data(), kernel_specs(), dtypes)
def test_permuting_features_changes_nothing(data, kernel, dtype):
    X = data.draw(matrices()).astype(dtype)
    order = np.random.default_rng(1).permutation(X.shape[1])
    assert_close(kernels.gram(X[:, order], kernel=kernel), kernels.gram(X, kernel=kernel), dtype)


@given(st.data(), kernel_specs(), dtypes)
def test_swapping_the_sides_transposes(data, kernel, dtype):
    X = data.draw(matrices()).astype(dtype)
    Z = data.draw(matrices(n_columns=X.shape[1])).astype(dtype)
    assert_close(kernels.gram(X, Z, kernel), kernels.gram(Z, X, kernel).T, dtype)


@given(st.data(), kernel_specs(), dtypes)
def test_zero_features_add_nothing(data, kernel, dtype):
    X = data.draw(matrices()).astype(dtype)
    wider = np.hstack([X, np.zeros((len(X), 300), dtype=dtype)])
    assert_close(kernels.gram(wider, kernel=kernel), kernels.gram(X, kernel=kernel), dtype)
    assert_close(kernels.gram(sparse.csr_array(wider), kernel=kernel), kernels.gram(X, kernel=kernel), dtype)


@given(st.data(), st.floats(1e-3, 10), dtypes, st.integers(-8, 8))
def test_scaling_data_is_scaling_gamma(data, gamma, dtype, power):
    X = data.draw(matrices()).astype(dtype)
    scale = dtype(2.0**power)
    assert_close(
        kernels.gram(X * scale, kernel=kernels.RBF(gamma)),
        kernels.gram(X, kernel=kernels.RBF(gamma * 4.0**power)),
        dtype,
    )
    assert_close(
        kernels.gram(X * scale, kernel=kernels.Laplacian(gamma)),
        kernels.gram(X, kernel=kernels.Laplacian(gamma * 2.0**power)),
        dtype,
    )


@given(st.data(), st.floats(1e-3, 10), st.integers(-2048, 2048))
def test_shifting_data_changes_no_distance(data, gamma, shift):
    """Whole numbers: the shift itself is exact, so nothing but the kernel can be at fault."""
    X = np.round(data.draw(matrices()) % 1000)
    for kernel in (kernels.RBF(gamma), kernels.Laplacian(gamma)):
        assert_close(kernels.gram(X + shift, kernel=kernel), kernels.gram(X, kernel=kernel), np.float64)


@given(st.data(), st.floats(1e-3, 10))
def test_powers_of_a_gaussian(data, gamma):
    """exp(-2γd) = exp(-γd)²."""
    X = data.draw(matrices())
    assert_close(
        kernels.gram(X, kernel=kernels.RBF(2 * gamma)), kernels.gram(X, kernel=kernels.RBF(gamma)) ** 2, np.float64
    )


@given(st.data())
def test_polynomial_of_degree_one_and_two(data):
    X = data.draw(matrices())
    linear = kernels.gram(X, kernel=kernels.Linear())
    assert_close(kernels.gram(X, kernel=kernels.Polynomial(1, 1.0, 0.0)), linear, np.float64)
    assert_close(kernels.gram(X, kernel=kernels.Polynomial(2, 1.0, 1.0)), (linear + 1) ** 2, np.float64)
    assert (kernels.gram(X, kernel=kernels.Polynomial(0, 1.0, 0.0)) == 1).all()


@given(st.data(), st.floats(1e-3, 10))
def test_positive_semidefinite(data, gamma):
    X = data.draw(matrices())
    for kernel in (kernels.RBF(gamma), kernels.Laplacian(gamma), kernels.Linear()):
        K = kernels.gram(X, kernel=kernel)
        values = np.linalg.eigvalsh(K)
        assert values[0] >= -1e-10 * max(values[-1], 1)
