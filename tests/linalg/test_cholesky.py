"""Factors and solutions of the blocked Cholesky code against the definition."""

import cholesky_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupting import seconds_of_all
from strategies import dtypes

from kernelrules.core.linalg import cholesky

# Around a strip of 48 columns and a tile of 240, where the cases change, and one of several tiles.
sizes = st.sampled_from([1, 2, 3, 4, 47, 48, 49, 95, 97, 239, 240, 241, 289, 500])
seeds = st.integers(0, 2**32 - 1)
threads = st.integers(1, 3)


def spd_matrix(n, seed, dtype, extra=0.5):
    """A positive definite matrix with eigenvalues from `extra` to a few times one."""
    x = np.random.default_rng(seed).normal(size=(n, max(n // 2, 1)))
    return (x @ x.T / x.shape[1] + extra * np.eye(n)).astype(dtype)


@given(sizes, seeds, dtypes, threads)
def test_the_factor_is_the_definitions(n, seed, dtype, n_threads):
    a = spd_matrix(n, seed, dtype)
    mine = a.copy()
    assert cholesky.factor(mine, n_threads) == 0
    expected = oracle.factor(a)
    eps = np.finfo(dtype).eps
    assert np.abs(np.tril(mine) - expected).max() <= 40 * eps * np.abs(expected).max() * np.sqrt(n)
    assert np.array_equal(np.triu(mine, 1), np.triu(a, 1)), "the upper triangle is not to be touched"


@given(sizes, seeds, dtypes, threads, st.sampled_from([1, 3, 12, 13, 50, 300]))
def test_solutions_are_the_definitions(n, seed, dtype, n_threads, n_rows):
    a = spd_matrix(n, seed, dtype)
    cholesky.factor(a, 1)
    lower = np.tril(a).astype(np.float64)
    b = np.random.default_rng(seed + 1).normal(size=(n_rows, n)).astype(dtype)
    half, whole = b.copy(), b.copy()
    cholesky.solve_lower(a, half, n_threads)
    cholesky.solve(a, whole, n_threads)
    bound = 40 * np.finfo(dtype).eps * np.sqrt(n) * np.abs(b).max() * 10  # eigenvalues of A span less than ten
    for r in {0, n_rows // 2, n_rows - 1}:
        assert np.abs(half[r] - oracle.forward(lower, b[r].astype(np.float64))).max() <= bound
        assert np.abs(whole[r] - oracle.solve(lower, b[r].astype(np.float64))).max() <= bound


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [100, 700])
def test_any_number_of_threads_gives_the_same_bits(n, dtype):
    a = spd_matrix(n, 0, dtype)
    b = np.random.default_rng(1).normal(size=(777, n)).astype(dtype)
    answers = []
    for n_threads in (1, 2, 3):
        mine, whole, few = a.copy(), b.copy(), b[:5].copy()
        cholesky.factor(mine, n_threads)
        cholesky.solve(mine, whole, n_threads)
        cholesky.solve(mine, few, n_threads)
        answers.append((mine, whole, few))
    for other in answers[1:]:
        assert all(np.array_equal(x, y) for x, y in zip(answers[0], other, strict=True))


@pytest.mark.parametrize("place", [0, 47, 48, 239, 240, 400])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_the_first_pivot_that_is_not_positive_is_named(place, value):
    a = spd_matrix(401, 3, np.float64)
    a[place, place] = value
    assert cholesky.factor(a, 2) == place + 1


def test_nothing_to_do():
    assert cholesky.factor(np.empty((0, 0)), 1) == 0
    b = np.empty((0, 3))
    cholesky.solve(np.eye(3), b, 1)
    assert b.shape == (0, 3)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="square"):
        cholesky.factor(np.ones((2, 3)), 1)
    with pytest.raises(ValueError, match="as long"):
        cholesky.solve(np.eye(3), np.ones((1, 4)), 1)


def test_control_c_stops_it():
    prepare = """
import numpy as np
from kernelrules.core.linalg import cholesky
a, b = np.eye(6000), np.ones((6000, 6000))
"""
    calls = ["cholesky.factor(a, 1)", "cholesky.solve_lower(a, b, 1)"]
    told = seconds_of_all(prepare, {call: ("", f"[{call} for _ in range(100)]") for call in calls})
    assert all(seconds is not None and seconds < 1.0 for seconds in told.values()), told
