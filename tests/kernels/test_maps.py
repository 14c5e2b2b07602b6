"""Feature maps: exact where they say so, unbiased or best where they approximate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import dtypes, matrices

from kernelrules import kernels


@given(st.data(), st.integers(0, 4), st.floats(1e-3, 3.0), st.one_of(st.just(0.0), st.floats(0, 5)), st.booleans())
def test_polynomial_map_is_exact(data, degree, gamma, coef0, as_csr):
    X = data.draw(matrices()) % 50.0
    Z = data.draw(matrices(n_columns=X.shape[1])) % 50.0
    kernel = kernels.Polynomial(degree, gamma, coef0)
    phi = kernels.feature_map(kernel, X.shape[1])
    mapped = phi.transform(sparse.csr_array(X) if as_csr else X)
    assert mapped.shape == (len(X), phi.n_components)
    K = kernels.gram(X, Z, kernel)
    # Entries near zero come from cancelling monomials: relative to what is added up.
    size = np.abs(mapped) @ np.abs(phi.transform(Z)).T
    assert (np.abs(mapped @ phi.transform(Z).T - K) <= 1e-12 * np.maximum(size, np.abs(K))).all()


@pytest.mark.parametrize("degree", range(5))
@pytest.mark.parametrize("coef0", [0.0, 0.3, 1.0, 7.5])
@pytest.mark.parametrize("p", [1, 2, 5, 11])
def test_polynomial_map_to_1e_12_relative(degree, coef0, p):
    """Positive data: nothing cancels, so every entry is right to 1e-12."""
    rng = np.random.default_rng([degree, p])
    X, Z = rng.random((20, p)), rng.random((15, p))
    kernel = kernels.Polynomial(degree, 0.7, coef0)
    phi = kernels.feature_map(kernel, p)
    np.testing.assert_allclose(phi.transform(X) @ phi.transform(Z).T, kernels.gram(X, Z, kernel), rtol=1e-12)


def test_the_lectures_map():
    """(1 + x·z)² in two dimensions, and XOR, which it separates."""
    phi = kernels.feature_map(kernels.Polynomial(2, 1.0, 1.0), 2)
    x1, x2, r = 3.0, 5.0, np.sqrt(2)
    np.testing.assert_allclose(phi.transform([[x1, x2]])[0], [1, r * x1, r * x2, x1**2, r * x1 * x2, x2**2])
    corners = np.array([[-1.0, -1], [1, 1], [-1, 1], [1, -1]])
    side = phi.transform(corners)[:, 4]
    assert (side[:2] > 1).all()
    assert (side[2:] < -1).all()


def test_no_component_without_weight():
    assert kernels.feature_map(kernels.Polynomial(3, 1.0, 0.0), 4).n_components == 20
    assert kernels.feature_map(kernels.Polynomial(3, 1.0, 1.0), 4).n_components == 35
    assert kernels.feature_map(kernels.Polynomial(0, 1.0, 0.0), 4).n_components == 1
    assert kernels.feature_map(kernels.Polynomial(2, "auto"), 4).kernel.gamma == 0.25


@given(st.data(), dtypes)
def test_identity_map(data, dtype):
    X = data.draw(matrices()).astype(dtype)
    mapped = kernels.feature_map(kernels.Linear(), X.shape[1]).transform(X)
    np.testing.assert_array_equal(mapped, X)
    assert mapped.dtype == dtype
    assert not np.shares_memory(mapped, X)


KERNELS = [kernels.RBF(0.2), kernels.Laplacian(0.1), kernels.Polynomial(2, 0.5, 1.0), kernels.Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("as_csr", [False, True])
def test_nystroem_is_exact_on_its_landmarks(kernel, as_csr):
    X = np.random.default_rng(0).normal(size=(80, 4))
    data = sparse.csr_array(X) if as_csr else X
    phi = kernels.nystroem(data, kernel, 30, rng=1)
    landmarks = X[phi.indices]
    mapped = phi.transform(landmarks)
    K = kernels.gram(landmarks, kernel=kernel)
    np.testing.assert_allclose(mapped @ mapped.T, K, rtol=1e-8, atol=1e-8)
    # The residual of a projection is positive semi-definite.
    everything = phi.transform(data)
    residual = kernels.gram(X, kernel=kernel) - everything @ everything.T
    assert np.linalg.eigvalsh(residual)[0] > -1e-7
    assert phi.n_components <= 30


def test_nystroem_drops_what_is_rounding():
    X = np.random.default_rng(2).normal(size=(60, 3))
    phi = kernels.nystroem(X, kernels.Linear(), 40, rng=0)
    assert phi.n_components == 3
    np.testing.assert_allclose(phi.transform(X) @ phi.transform(X).T, X @ X.T, atol=1e-10)
    same = kernels.nystroem(np.vstack([X, X]), kernels.RBF(0.5), 120, rng=0)
    mapped = same.transform(X)
    np.testing.assert_allclose(mapped @ mapped.T, kernels.gram(X, kernel=kernels.RBF(0.5)), atol=1e-6)


def test_nystroem_of_a_given_matrix():
    X = np.random.default_rng(3).normal(size=(50, 3))
    kernel = kernels.RBF(0.3)
    K = kernels.gram(X, kernel=kernel)
    direct, given_matrix = kernels.nystroem(X, kernel, 20, rng=5), kernels.nystroem(K, kernels.Precomputed(), 20, rng=5)
    new = np.random.default_rng(4).normal(size=(7, 3))
    np.testing.assert_allclose(
        np.abs(given_matrix.transform(kernels.gram(new, X, kernel))), np.abs(direct.transform(new)), atol=1e-6
    )
    from_csr = kernels.nystroem(sparse.csr_array(K), kernels.Precomputed(), 20, rng=5)
    np.testing.assert_allclose(
        np.abs(from_csr.transform(sparse.csr_array(K))), np.abs(given_matrix.transform(K)), atol=1e-6
    )


def test_nystroem_keeps_sparse_landmarks_sparse():
    """A million columns: landmarks made dense would take gigabytes."""
    rng = np.random.default_rng(0)
    columns = rng.choice(1_000_000, size=(300, 10))  # scipy's own generator would shuffle all 300 million places
    wide = sparse.csr_array((rng.random(3000), columns.ravel(), np.arange(0, 3001, 10)), shape=(300, 1_000_000))
    wide.sum_duplicates()
    phi = kernels.nystroem(wide, kernels.RBF(0.5), 200, rng=0)
    assert sparse.issparse(phi.landmarks)
    mapped = phi.transform(wide[phi.indices])
    np.testing.assert_allclose(mapped @ mapped.T, kernels.gram(wide[phi.indices], kernel=kernels.RBF(0.5)), atol=1e-8)


def test_nystroem_repeats_by_seed():
    X = np.random.default_rng(5).normal(size=(50, 3))
    first, again = (kernels.nystroem(X, kernels.RBF(0.3), 10, rng=7) for _ in range(2))
    other = kernels.nystroem(X, kernels.RBF(0.3), 10, rng=8)
    np.testing.assert_array_equal(first.indices, again.indices)
    assert (first.indices != other.indices).any()
    assert kernels.nystroem(X, kernels.RBF(), 10, rng=0).kernel == kernels.RBF().resolve(X)


@pytest.mark.parametrize("kernel", [kernels.RBF(0.4), kernels.Laplacian(0.3)], ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("n_components", [1, 2, 5, 6])
def test_random_fourier_is_unbiased(kernel, n_components):
    """The mean over many draws comes near the kernel, as its standard error says."""
    rng = np.random.default_rng(6)
    X, Z = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    both = np.concatenate([X, Z])
    draws = []
    for seed in range(3000):
        phi = kernels.random_fourier(kernel, 2, n_components, rng=seed)
        assert phi.n_components == n_components
        mapped = phi.transform(both)
        draws.append(mapped[:4] @ mapped[4:].T)
    error = np.mean(draws, axis=0) - kernels.gram(X, Z, kernel)
    standard_error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(error) <= 5 * standard_error).all()


def test_random_fourier_error_falls_with_components():
    X = np.random.default_rng(7).normal(size=(60, 5))
    kernel = kernels.RBF(0.1)
    K = kernels.gram(X, kernel=kernel)
    errors = []
    for n_components in (100, 1600, 25600):
        phi = kernels.random_fourier(kernel, 5, n_components, rng=0).transform(X)
        errors.append(np.sqrt(np.mean((phi @ phi.T - K) ** 2)))
        np.testing.assert_allclose((phi**2).sum(axis=1), 1, rtol=1e-12)
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.5 * errors[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_csr", [False, True])
def test_maps_keep_the_float_type(dtype, as_csr):
    X = np.random.default_rng(8).normal(size=(30, 4)).astype(dtype)
    data = sparse.csr_array(X) if as_csr else X
    for phi in (
        kernels.feature_map(kernels.Polynomial(2), 4),
        kernels.nystroem(data, kernels.RBF(0.1), 10, rng=0),
        kernels.random_fourier(kernels.RBF(0.1), 4, 11, rng=0),
    ):
        mapped = phi.transform(data)
        assert mapped.dtype == dtype
        assert mapped.flags.c_contiguous
        np.testing.assert_allclose(mapped, phi.transform(X.astype(np.float64)), rtol=2e-3, atol=2e-3)
        assert phi.transform(data[:0]).shape == (0, phi.n_components)
