"""The vectorised kernels at every instruction-set level that this processor has, through the one routine that calls
them all: each level must give the definition's values, and nearly the bits of the others."""

import gram_oracle as oracle
import numpy as np
import pytest
from forks import printed, results_of
from scipy import sparse

from kernelrules import check, kernels
from kernelrules.core.gram.csr import gram_csr
from kernelrules.core.gram.dense import gram_dense
from kernelrules.core.simd import cpu

LEVELS = [pytest.param(level, id=name) for level, name in enumerate(cpu.LEVELS) if level <= cpu.simd_best()]
KERNELS = [
    kernels.Linear(),
    kernels.Polynomial(0, 0.3, 0.5),
    kernels.Polynomial(2, 0.3, 0.5),
    kernels.Polynomial(3, 0.3, 0.5),
    kernels.Polynomial(7, 0.03, 0.5),
    kernels.RBF(0.1),
    kernels.RBF(40.0),
    kernels.Laplacian(0.2),
    kernels.Sigmoid(0.05, 0.1),
]


def at_level(level, X, Z, kernel):
    out = np.full((len(X), len(X if Z is None else Z)), np.nan, dtype=X.dtype)
    gram_dense(X, Z, kernel.core(), out, 1, level=level)
    return out


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("shape", [(30, 3), (251, 33)])
def test_levels_equal_the_definition(level, dtype, kernel, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape).astype(dtype)
    Z = rng.normal(size=(shape[0] + 5, shape[1])).astype(dtype)
    chosen = np.unique(np.linspace(0, shape[0] - 1, 9).astype(int))
    for other in (None, Z):
        K = at_level(level, X, other, kernel)
        assert not np.isnan(K).any()
        second = X if other is None else Z
        oracle.assert_close(K[np.ix_(chosen, chosen)], X[chosen], second[chosen], kernel)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_at_every_level(level, dtype):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(150, 20)) * (rng.random((150, 20)) < 0.3)).astype(dtype)
    x = check.matrix(sparse.csr_array(X))
    for kernel in KERNELS:
        K = np.full((150, 150), np.nan, dtype=dtype)
        gram_csr(x, None, x.columns(), 20, kernel.core(), K, 1, level=level)
        oracle.assert_close(K[:20, 130:], X[:20], X[130:], kernel)
        np.testing.assert_array_equal(K, K.T)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponential_to_the_last_digits(level, dtype):
    """exp over its whole range, through distances that are exact: |x - 0| for the Laplacian with gamma 1."""
    low = -80.0 if dtype == np.float32 else -700.0
    x = np.concatenate([-np.logspace(-20, 0, 500), np.linspace(low, -1, 3000), [0.0]]).astype(dtype)
    got = at_level(level, x[:, None], np.zeros((1, 1), dtype=dtype), kernels.Laplacian(1.0))[:, 0]
    exact = np.exp(x.astype(oracle.EXACT))
    assert (np.abs(got / exact - 1) <= 3 * np.finfo(dtype).eps).all()
    assert (got <= 1).all()
    assert got[-1] == 1
    order = np.argsort(x)
    assert (np.diff(got[order]) >= -np.finfo(dtype).eps * got[order][1:]).all()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponential_vanishes_without_subnormals(level, dtype):
    x = np.linspace(60, 1200, 5000).astype(dtype)[:, None]
    got = at_level(level, x, np.zeros((1, 1), dtype=dtype), kernels.Laplacian(1.0))
    assert (got[got > 0] >= np.finfo(dtype).tiny).all()
    assert (got[x > (89 if dtype == np.float32 else 710)] == 0).all()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tanh_keeps_small_arguments(level, dtype):
    x = np.concatenate([np.logspace(-30, 2, 2000), [0.0]])
    x = np.concatenate([x, -x]).astype(dtype)
    got = at_level(level, x[:, None], np.ones((1, 1), dtype=dtype), kernels.Sigmoid(1.0, 0.0))[:, 0]
    exact = np.tanh(x.astype(oracle.EXACT))
    assert (np.abs(got - exact) <= 30 * np.finfo(dtype).eps * np.abs(exact)).all()
    np.testing.assert_array_equal(got[:2001], -got[2001:])
    assert (np.abs(got) <= 1).all()


@pytest.fixture(scope="module")
def told():
    """What children say that are told of a level."""
    code = "from kernelrules.core.simd import cpu; print(cpu.simd())"
    return results_of({name: (code, {"KERNELRULES_SIMD": name}) for name in cpu.LEVELS})


@pytest.mark.parametrize("name", cpu.LEVELS)
def test_environment_lowers_the_level(told, name):
    expected = cpu.LEVELS[min(cpu.LEVELS.index(name), cpu.simd_best())]
    assert printed(told, name).strip() == expected
