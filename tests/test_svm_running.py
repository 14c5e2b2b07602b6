"""Fits in forked children, with limited memory, and too large to be solved on all points at once."""

import subprocess
import sys

import numpy as np
import pytest

from kernelrules import kernels, svm


def run(code, timeout=60):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork here")
def test_a_forked_pool_does_not_hang():
    """GNU's OpenMP cannot start threads in a forked child: whatever n_threads says, it uses one."""
    code = """
import numpy as np
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from kernelrules import kernels, svm
rng = np.random.default_rng(0)
X, y = rng.normal(size=(900, 20)), rng.integers(0, 3, 900)
kernels.gram(np.tile(X, (3, 1)), kernel=kernels.RBF(0.1), n_threads=2)
with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
    print(len(svm.svc(X, y, executor=pool, n_threads=2).certificates))
    print(svm.tune(X, y, Cs=[1.0], executor=pool, n_threads=2, rng=0).mean.shape)
"""
    assert run(code).split("\n")[:2] == ["3", "(1, 1)"]


def rings(n, seed=0):
    """Two noisy rings: many free and many bounded support vectors."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, 2 * np.pi, n), rng.integers(0, 2, n)
    radius = 1 + 0.6 * y + 0.35 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), rng.standard_normal(n)]), y


@pytest.mark.parametrize("kind", ["svc", "nu_svc", "svr", "nu_svr", "one_class"])
def test_shrinking_and_working_sets_agree(kind):
    """2600 points: the whole matrix with shrinking, and rows by blocks in little memory, find the same optimum; both
    certificates are made from float64 kernel values."""
    X, y = rings(2600)
    kernel = kernels.RBF(1.0)
    fits = {
        "svc": lambda **o: svm.svc(X, y, C=10.0, kernel=kernel, **o),
        "nu_svc": lambda **o: svm.svc(X, y, nu=0.4, kernel=kernel, **o),
        "svr": lambda **o: svm.svr(X, y + X[:, 0], C=5.0, epsilon=0.2, kernel=kernel, **o),
        "nu_svr": lambda **o: svm.svr(X, y + X[:, 0], C=5.0, nu=0.4, kernel=kernel, **o),
        "one_class": lambda **o: svm.one_class(X, nu=0.3, kernel=kernel, **o),
    }
    tol = 1e-6 if kind == "nu_svc" else 1e-4  # coefficients of nu-SVC are divided by its small margin
    whole, small = fits[kind](tol=tol), fits[kind](tol=tol, cache_mb=4.0)
    assert small.rows_computed != whole.rows_computed
    for model in (whole, small):
        assert model.certificate.converged
        K = kernels.gram(X, model.support_vectors, kernel)
        f = K @ model.dual_coef[0]
        quadratic = 0.5 * model.dual_coef[0] @ f[model.support]
        sums = np.abs(model.dual_coef).sum() if kind == "svc" else 0.0
        if kind in ("svc", "nu_svc", "one_class"):
            np.testing.assert_allclose(model.certificate.dual, sums - quadratic, rtol=1e-9)
        assert 0 <= model.certificate.gap <= 1e-2 * abs(model.certificate.dual)
    np.testing.assert_allclose(whole.certificate.dual, small.certificate.dual, rtol=1e-4 if kind == "nu_svc" else 1e-5)
    np.testing.assert_allclose(svm.decision(whole, X), svm.decision(small, X), atol=5e-3)


@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Linear(), kernels.Polynomial(2)], ids=repr)
def test_threads_give_the_same_bits_where_problems_are_large(kernel):
    X, y = rings(2600, seed=1)
    for options in ({}, {"cache_mb": 6.0}):
        one, two = (svm.svc(X, y, C=3.0, kernel=kernel, n_threads=t, **options) for t in (1, 2))
        np.testing.assert_array_equal(one.dual_coef, two.dual_coef)
        np.testing.assert_array_equal(one.intercept, two.intercept)
        assert one.certificate == two.certificate


def test_memory_stays_within_the_cache():
    """Peak memory beyond the data: cache_mb, a few copies of the data, and the code's own working memory."""
    code = """
import resource
import numpy as np
from kernelrules import kernels, svm
rng = np.random.default_rng(0)
X = rng.standard_normal((12000, 10))
y = (X[:, 0] + 0.3 * rng.standard_normal(12000) > 0).astype(int)
svm.svc(X[:500], y[:500])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
model = svm.svc(X, y, kernel=kernels.RBF(0.1), cache_mb=50.0)
print(peak() - before, model.certificate.converged)
"""
    used, converged = run(code, timeout=120).split()
    assert converged == "True"
    assert int(used) < 50 + 3 * 12000 * 10 * 8 / 2**20 + 64, "the whole matrix would take 550 MB"
