"""Passes over sparse matrices and walks over graphs, against dense matrices and loops."""

from itertools import pairwise

import graph_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kernelrules.core.linalg import multigrid as core


def arrays(A):
    a = sparse.csr_array(A)
    return a.indptr.astype(np.intp), a.indices.astype(np.intc), a.data.astype(float)


@st.composite
def weights(draw, most=14):
    """A symmetric matrix of weights; many are equal, and there can be points without edges."""
    m = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    W = np.triu(rng.integers(1, 4, size=(m, m)) * (rng.random((m, m)) < draw(st.sampled_from([0.1, 0.3, 0.8]))), 1)
    return (W + W.T).astype(float)


def system(W):
    return np.diag(W.sum(axis=1) + 0.5) - W


@given(weights(), st.integers(1, 4), st.integers(1, 3))
def test_products(W, width, n_threads):
    rng = np.random.default_rng(0)
    A, m = system(W), len(W)
    x, b, out = rng.normal(size=(m, width)), rng.normal(size=(m, width)), np.empty((m, width))
    core.residual(*arrays(A), x, b, out, n_threads)
    np.testing.assert_allclose(out, b - A @ x, atol=1e-12)
    steps = rng.random(m)
    core.relax(*arrays(A), steps, x, b, out, n_threads)
    np.testing.assert_allclose(out, x + steps[:, None] * (b - A @ x), atol=1e-12)


@given(weights(), st.integers(1, 3))
def test_aggregates(W, width):
    rng = np.random.default_rng(1)
    A, m = system(W), len(W)
    parent, n = core.pairs(*arrays(A))
    assert sorted(set(parent)) == list(range(n))
    for i in range(m):
        others = np.flatnonzero((parent == parent[i]) & (np.arange(m) != i))
        assert len(others) > 0 or W[i].sum() == 0, "a point with a neighbour does not stay alone"
        assert len(others) == 0 or W[i, others].any(), "an aggregate is connected"
    start, members = core.lists_of(parent, n)
    assert [sorted(members[a:b]) for a, b in pairwise(start)] == [list(np.flatnonzero(parent == s)) for s in range(n)]
    P = (parent[:, None] == np.arange(n)).astype(float)
    indptr, indices, data = core.coarsen(*arrays(A), parent, start, members)
    np.testing.assert_allclose(sparse.csr_array((data, indices, indptr), shape=(n, n)).toarray(), P.T @ A @ P)
    x, b, out = rng.normal(size=(m, width)), rng.normal(size=(m, width)), np.empty((n, width))
    core.restrict_residual(*arrays(A), x, b, start, members, out, 2)
    np.testing.assert_allclose(out, P.T @ (b - A @ x), atol=1e-12)
    fresh = np.zeros((m, width))
    core.prolong(parent, out, 1.5, fresh, 2)
    np.testing.assert_allclose(fresh, 1.5 * P @ out)


@given(weights(), st.data())
def test_walks(W, data):
    m = len(W)
    sources = data.draw(st.lists(st.integers(0, m - 1), min_size=1, max_size=m, unique=True))
    order, before, weight = core.spread(*arrays(W), np.array(sources, dtype=np.intp))
    steps = oracle.steps_from(W, sources)
    assert sorted(order) == list(np.flatnonzero(np.isfinite(steps)))
    assert (np.diff(steps[order]) >= 0).all()
    for i in range(m):
        if i in sources:
            assert before[i] == -1
        elif np.isinf(steps[i]):
            assert before[i] == -2
        else:
            assert steps[before[i]] == steps[i] - 1
            assert weight[i] == W[i, before[i]] > 0
    excess = np.random.default_rng(2).normal(size=(m, 2))
    branch = excess.copy()
    core.drain(order, before, branch)
    for i in range(m):
        below = [j for j in order if i in way_back(j, before)]
        np.testing.assert_allclose(branch[i], excess[below].sum(axis=0) if below else excess[i], atol=1e-12)


def way_back(j, before):
    way = [j]
    while before[way[-1]] >= 0:
        way.append(before[way[-1]])
    return way


@pytest.mark.parametrize("width", [1, 2, 5])
def test_threads_give_the_same_bits(width):
    rng = np.random.default_rng(0)
    A = sparse.random_array((3000, 3000), density=0.004, rng=rng)
    A = (A + A.T + sparse.eye_array(3000)).tocsr()
    x, b = rng.normal(size=(3000, width)), rng.normal(size=(3000, width))
    results = []
    for n_threads in (1, 2, 7):
        out = np.empty_like(b)
        core.residual(*arrays(A), x, b, out, n_threads)
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
