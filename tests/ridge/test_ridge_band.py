"""Paths from a band matrix: the reduction itself, and paths as eigenvectors give them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ridge_oracle import forward_lengths

from kernelrules import kernels, parallel, ridge
from kernelrules.core.linalg import banded
from kernelrules.ridge import paths
from kernelrules.ridge.band import WIDTH, Band

SIZES = [1, 2, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH, 2 * WIDTH + 1, 150, 5 * WIDTH + 3, 9 * WIDTH]


def dense(band):
    """B from its diagonals."""
    lower = sum(np.diag(values[: band.n - k], -k) for k, values in enumerate(band.band))
    return lower + np.tril(lower, -1).T


@given(st.sampled_from(SIZES), st.integers(0, 2**20), st.sampled_from(["any", "low rank", "diagonal", "zero"]))
@settings(max_examples=30)
def test_the_matrix_comes_back(n, seed, kind):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, 3 if kind == "low rank" else n))
    a = {"diagonal": np.diag(rng.normal(size=n)), "zero": np.zeros((n, n))}.get(kind, half @ half.T)
    band = Band(a.copy())
    q, b = band.vectors.T, dense(band)
    np.testing.assert_allclose(q.T @ q, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(q @ b @ q.T, a, atol=1e-12 * (1 + np.abs(a).max()) * n)
    assert (np.abs(np.subtract.outer(np.arange(n), np.arange(n)))[b != 0] <= WIDTH).all()


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("kernelrules.ridge.band._BLOCK_ROWS", 40)
    monkeypatch.setattr("kernelrules.ridge.band._TILE_COLUMNS", 70)
    rng = np.random.default_rng(0)
    half = rng.normal(size=(300, 300))
    a = half @ half.T
    with parallel.blas_threads(1):
        bands = [Band(a.copy(), n_threads) for n_threads in (1, 2, 5)]
        lengths = [band.squared_lengths(band.factor(np.array([0.1, 1.0]))) for band in bands]
    for band, length in zip(bands[1:], lengths[1:], strict=True):
        np.testing.assert_array_equal(band.vectors, bands[0].vectors)
        np.testing.assert_array_equal(dense(band), dense(bands[0]))
        np.testing.assert_array_equal(length, lengths[0])


def test_factors_are_held_once():
    """Packed, beside themselves."""
    half = np.random.default_rng(0).normal(size=(400, 400))
    band = Band(half @ half.T)
    factors = band.factor(np.linspace(1, 2, 40))
    size = 40 * banded.packed(factors[0].T).nbytes
    tracemalloc.start()
    band.squared_lengths(factors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size <= peak < 1.3 * size


@pytest.mark.parametrize("n", SIZES)
def test_inverses_for_several_shifts(n):
    rng = np.random.default_rng(n)
    half = rng.normal(size=(n, n))
    a = half @ half.T / n
    shifts = np.array([0.1, 3.0])
    band, right = Band(a.copy()), rng.normal(size=(n, 2))
    factors = band.factor(shifts)
    forward = band.forward(factors, band.vectors @ right)
    solved = band.vectors.T @ band.backward(factors, forward)
    inverses = np.linalg.inv(a + shifts[:, None, None] * np.eye(n))
    np.testing.assert_allclose(solved, inverses @ right, atol=1e-10)
    np.testing.assert_allclose(band.squared_lengths(factors), np.einsum("lii->li", inverses), atol=1e-10)
    assert band.is_definite(1e-6)
    assert not band.is_definite(-float(np.linalg.eigvalsh(a)[-1]))


@given(st.integers(1, 130), st.integers(0, 40), st.integers(0, 2**20), st.sampled_from([1, 2, 3]))
@settings(max_examples=60)
def test_sweeps_are_forward_substitutions(n, width, seed, n_threads):
    rng, width = np.random.default_rng(seed), min(width, n - 1)
    right, lowers = rng.normal(size=(n, n)), np.tril(np.triu(rng.normal(size=(2, n, n)), -width))
    diagonal = np.arange(n)
    lowers[:, diagonal, diagonal] = 2 * width + 1 + rng.random((2, n))
    columns = np.zeros((2, n, width + 1))
    for k in range(width + 1):
        columns[:, : n - k, k] = np.diagonal(lowers, -k, 1, 2)
    found = np.full((2, n), np.nan)
    banded.squared_lengths(np.stack([banded.packed(one) for one in columns]), right, found, n_threads)
    wanted = np.array([forward_lengths(lower, right) for lower in lowers], dtype=float)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def both_ways(monkeypatch, *args, **kwargs):
    """The path from a band, and from eigenvectors."""
    found = []
    monkeypatch.setattr(paths, "_SHARE", 0)
    for large in (0, 10**9):
        monkeypatch.setattr(paths, "_LARGE", large)
        found.append(ridge.path(*args, **kwargs))
    return found


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_targets", [None, 3])
def test_paths_are_those_of_eigenvectors(monkeypatch, intercept, n_targets):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(170, 3))
    y = np.sin(X[:, 0]) if n_targets is None else np.sin(X @ rng.normal(size=(3, n_targets)))
    weight = rng.random(170)
    weight[[3, 50]] = 0
    monkeypatch.setattr(paths, "eigh", lambda *args, used=paths.eigh: calls.append(1) or used(*args))
    calls = []
    band, eigen = both_ways(
        monkeypatch, X, y, np.logspace(-7, 1, 9), kernels.RBF(0.5), sample_weight=weight, intercept=intercept
    )
    assert len(calls) == 1
    for name, tolerance in {
        "alphas": 1e-6,
        "loo_residuals": 1e-7,
        "loo_errors": 1e-8,
        "dof": 1e-9,
        "fitted": 1e-9,
    }.items():
        one, other = getattr(band, name), getattr(eigen, name)
        for a, b in zip(one, other, strict=True):  # a λ each: α grows with 1/λ
            np.testing.assert_allclose(a, b, atol=tolerance * np.nanmax(np.abs(b)), err_msg=name)
    np.testing.assert_allclose(band.intercepts, eigen.intercepts, atol=1e-8)


def test_a_tiny_lambda_and_a_matrix_of_low_rank_are_left_to_eigenvalues(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    calls = []
    monkeypatch.setattr(paths, "eigh", lambda *args, used=paths.eigh: calls.append(1) or used(*args))
    for lams in ([1e-18, 1.0], [1e-30]):
        band, eigen = both_ways(monkeypatch, X, X[:, 0], lams, kernels.RBF(0.1), form="kernel")
        np.testing.assert_array_equal(band.alphas, eigen.alphas)
    assert len(calls) == 4
    band, eigen = both_ways(monkeypatch, X, X[:, 0], [1e-3, 1.0], kernels.Linear(), form="kernel")
    np.testing.assert_allclose(band.loo_residuals, eigen.loo_residuals, rtol=1e-9, atol=1e-12)


def test_indefinite_matrices_are_refused_as_before(monkeypatch):
    K = np.diag(np.concatenate([np.ones(50), [-0.01]]))
    messages = []
    monkeypatch.setattr(paths, "_SHARE", 0)
    for large in (0, 10**9):
        monkeypatch.setattr(paths, "_LARGE", large)
        with pytest.raises(ValueError, match="definite") as refused:
            ridge.path(K, np.ones(51), [0.1, 1.0], kernels.Precomputed())
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_progress_goes_forward(monkeypatch):
    seen = []
    monkeypatch.setattr(paths, "_LARGE", 0)
    X = np.random.default_rng(2).normal(size=(300, 2))
    ridge.path(X, X[:, 0], [0.1, 1.0], kernels.RBF(1.0), callback=lambda p: seen.append((p.done, p.total)))
    steps, total = [done for done, _ in seen], seen[-1][1]
    assert total >= 900  # three times the points, and what comes before
    assert sum(of == total for _, of in seen) > 5
    assert steps == sorted(steps)
    assert steps[-1] == total
