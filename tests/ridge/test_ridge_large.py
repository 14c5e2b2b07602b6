"""Products and factors below ridge, conjugate gradients, threads, interrupts, memory."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupting import seconds_of_all
from result_bits import bits
from strategies import dtypes, matrices

from kernelrules import kernels, parallel, ridge
from kernelrules.core.gram import symmetric
from kernelrules.ridge import factor as factors
from kernelrules.ridge import forms

KERNELS = [kernels.RBF(0.1), kernels.Laplacian(0.1), kernels.Linear(), kernels.Polynomial(3, 0.1), kernels.Sigmoid(0.1)]


# ---- symmetric products ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 239, 240, 241, 481, 730])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_symmetric_products_are_products(n, dtype):
    """Gram tiles and stored matrices, whole and partial tiles; what lies below the diagonal is never read."""
    rng = np.random.default_rng(n)
    X, C = rng.normal(size=(n, 5)).astype(dtype), rng.normal(size=(3, n))
    for kernel in KERNELS:
        K = kernels.gram(X, kernel=kernel)
        expected = C @ K.astype(np.float64)
        bound = 1e-13 * n * (np.abs(C) @ np.abs(K.astype(np.float64))).max()
        slack = 64 * np.finfo(dtype).eps * np.abs(K).max() * np.abs(C).sum(axis=1).max()  # K's tiles, another centre
        made = np.zeros((3, n))
        symmetric.apply_symmetric(X, kernel.core(), C, made, 2)
        assert np.abs(made - expected).max() <= bound + slack
        diagonal, upper = np.diagonal(K).astype(np.float64), K.copy()
        upper[np.tril_indices(n)] = np.nan
        stored = np.ones((3, n))
        symmetric.multiply_stored(upper, diagonal, C, stored, 2)
        assert np.abs(stored - 1 - expected).max() <= bound


@given(matrices(), dtypes, st.sampled_from(KERNELS))
def test_symmetric_products_of_awkward_data(X, dtype, kernel):
    X = X.astype(dtype)
    C = np.ones((1, len(X)))
    K = kernels.gram(X, kernel=kernel).astype(np.float64)
    if not np.isfinite(K).all():
        return
    out = np.zeros((1, len(X)))
    symmetric.apply_symmetric(X, kernel.core(), C, out, 1)
    np.testing.assert_allclose(out[0], K.sum(axis=0), rtol=1e-12, atol=1e3 * np.finfo(dtype).eps * np.abs(K).max())


def test_symmetric_products_have_the_same_bits_on_any_threads():
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(2500, 7)), rng.normal(size=(2, 2500))
    K = kernels.gram(X, kernel=KERNELS[0])
    found = []
    for threads in (1, 2, 3, 5):
        made, stored = np.zeros((2, 2500)), np.zeros((2, 2500))
        symmetric.apply_symmetric(X, KERNELS[0].core(), C, made, threads)
        symmetric.multiply_stored(K, np.ones(2500), C, stored, threads)
        found.append((made, stored))
    for made, stored in found[1:]:
        np.testing.assert_array_equal(made, found[0][0])
        np.testing.assert_array_equal(stored, found[0][1])


# ---- factors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 7, 300, 530])
def test_cholesky_in_place(n, dtype):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n + 5))
    A = (root @ root.T / n + np.eye(n)).astype(dtype)
    b = rng.normal(size=(3, n)).astype(dtype)
    L, x, y = A.copy(), b.copy(), b.copy()
    assert factors.factor(L, 2) == -1
    tolerance = 200 * n * np.finfo(dtype).eps
    np.testing.assert_array_equal(np.triu(L, 1), np.triu(A, 1))  # ridge keeps its kernel matrix there
    lower = np.tril(L).astype(float)
    np.testing.assert_allclose(lower @ lower.T, A, atol=tolerance)
    assert factors.solve(L, x, 2) is x
    np.testing.assert_allclose(x.astype(float) @ A, b, atol=tolerance * np.linalg.cond(A))
    assert factors.solve_lower(L, y, 2) is y
    np.testing.assert_allclose(y @ lower.T, b, atol=tolerance * np.linalg.cond(A))
    A[n // 2, n // 2] = -1.0
    assert factors.factor(A, 1) == n // 2


@pytest.mark.parametrize("n", [1, 5, 512, 513, 1100])
def test_block_ldl_of_indefinite_matrices(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A = A + A.T + np.diag(np.where(np.arange(n) % 3, 3.0, -3.0)) * np.sqrt(n)
    b = rng.normal(size=(2, n))
    ldl = factors.BlockLDL(A.copy())
    np.testing.assert_allclose(ldl.solve(b.copy()) @ A, b, atol=1e-8)
    assert ldl.n_negative == (np.linalg.eigvalsh(A) < 0).sum()
    inverse = factors.solve_general(np.ascontiguousarray(A.T + 1))
    np.testing.assert_allclose((A.T + 1) @ inverse(b.copy()).T, b.T, atol=1e-8)


def test_mirror_upper():
    A = np.random.default_rng(0).normal(size=(1100, 1100))
    expected = np.triu(A) + np.triu(A, 1).T
    factors.mirror_upper(A)
    np.testing.assert_array_equal(A, expected)


def test_blas_limits_are_taken_back():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        with parallel.blas_threads(1), parallel.blas_threads(1):
            assert threads() == {1}
        assert threads() == {2}
        with pytest.raises(RuntimeError), parallel.blas_threads(1):
            raise RuntimeError
        assert threads() == {2}


# ---- conjugate gradients --------------------------------------------------------------------------------------------


def wave(n, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", [kernels.RBF(0.2), kernels.Laplacian(0.2), kernels.Polynomial(2, 0.3)], ids=repr)
def test_conjugate_gradients_reach_the_exact_answer(kernel, intercept):
    X, y = wave(700)
    y = np.column_stack([y, X[:, 2]])
    weight = np.random.default_rng(1).integers(0, 3, 700)
    options = {"sample_weight": weight, "intercept": intercept}
    exact = ridge.fit(X, y, 1e-3, kernel, form="kernel", **options)
    found = ridge.fit(X, y, 1e-3, kernel, solver="cg", tol=1e-14, unlabelled=X[:5], **options)
    assert found.solver == "cg"
    assert found.certificate.converged
    assert found.certificate.gap <= 1e-14 * found.certificate.primal
    np.testing.assert_allclose(found.fitted[:700], exact.fitted, atol=1e-6)
    np.testing.assert_allclose(found.fitted[700:], exact.fitted[:5], atol=1e-6)
    np.testing.assert_allclose(found.certificate.dual, exact.certificate.dual, rtol=1e-12)


def test_float32_iterations_are_certified_in_float64():
    """More than 1024 points of a bounded kernel iterate on float32 values; the gap is that of float64."""
    X, y = wave(1500)
    for lam in (1e-2, 1e-6):
        found = ridge.fit(X, y, lam, kernels.RBF(0.2), solver="cg", tol=1e-12)
        again = ridge.certificate(X, y, lam, kernels.RBF(0.2), alpha=found.alpha)
        assert found.certificate.converged
        np.testing.assert_allclose(found.certificate.gap, again.gap, rtol=1e-6)
        assert again.gap <= 1e-12 * again.primal


def test_nystroem_preconditioner_saves_iterations():
    X, y = wave(400, p=2)
    few, many = (
        ridge.fit(X, y, 1e-6, kernels.RBF(0.3), solver="cg", n_components=q, n_threads=1).certificate.iterations
        for q in (1, 100)
    )
    assert many < few / 3


def test_stopping_early_is_a_result_with_a_warning():
    X, y = wave(300)
    with pytest.warns(ridge.ConvergenceWarning, match="tolerance was not reached"):
        found = ridge.fit(X, y, 1e-8, kernels.RBF(2.0), solver="cg", max_iter=2, n_components=1, tol=1e-12)
    c = found.certificate
    assert not c.converged
    assert c.iterations == 2
    best = ridge.fit(X, y, 1e-8, kernels.RBF(2.0)).certificate
    assert c.dual <= best.primal * (1 + 1e-12)
    assert c.primal >= best.dual * (1 - 1e-12)


def test_conjugate_gradients_of_other_inputs():
    from scipy import sparse

    X, y = wave(60)
    kernel = kernels.RBF(0.3)
    K = kernels.gram(X, kernel=kernel)
    expected = ridge.fit(X, y, 0.01, kernel, form="kernel").fitted
    for given_, k in (
        (sparse.csr_array(X), kernel),
        (K, kernels.Precomputed()),
        (sparse.csr_array(K), kernels.Precomputed()),
        (X, lambda a, b: kernels.gram(a, b, kernel)),
        (np.vstack([X[:1], X[1:]]).astype(np.float32), kernel),
    ):
        found = ridge.fit(given_, y, 0.01, k, solver="cg", tol=1e-16)
        np.testing.assert_allclose(found.fitted, expected, atol=1e-6)
    one = ridge.fit([[1.0]], [2.0], 0.5, kernel, solver="cg")
    np.testing.assert_allclose(one.fitted, 2 / 1.5)
    assert ridge.fit(X, 0 * y, 0.5, kernel, solver="cg").certificate.iterations == 0


@pytest.mark.parametrize("intercept", [False, True])
def test_a_float32_factor_loses_no_digits(intercept, monkeypatch):
    """Above 1500 points the factor is float32 where that is near enough; its answer is the float64 factor's."""
    X, y = wave(1600)
    y = np.column_stack([y, 1e-8 * X[:, 0], 1e8 * X[:, 1]])
    made = []
    original = forms._single_factor
    monkeypatch.setattr(forms, "_single_factor", lambda *args: made.append(True) or original(*args))
    for lam, tried in ((1e-3, True), (1e-8, False)):
        made.clear()
        found = ridge.fit(X, y, lam, kernels.RBF(0.2), intercept=intercept)
        assert bool(made) == tried
        wide = ridge.fit(X, y, lam, kernels.RBF(0.2), intercept=intercept, keep_factor=True)
        assert found.certificate.gap <= (1e-20 if tried else 1e-18) * found.certificate.primal
        condition = 1600 / (lam * 1600)
        for i in range(3):
            size = np.abs(y[:, i]).max()
            np.testing.assert_allclose(found.fitted[:, i], wide.fitted[:, i], atol=1e-14 * condition * size)


# ---- running --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"form": "dual"}, {"form": "rkhs"}, {"solver": "cg"}], ids=str)
def test_same_bits_on_any_threads(options):
    X, y = wave(1100)
    one, two = (ridge.fit(X, y, 1e-3, kernels.RBF(0.2), n_threads=t, **options) for t in (1, 2))
    np.testing.assert_array_equal(one.alpha, two.alpha)
    np.testing.assert_array_equal(one.fitted, two.fitted)
    assert one.certificate == two.certificate


@pytest.mark.parametrize("form", ["features", "kernel"])
@pytest.mark.parametrize("n", [1100, 1600])  # the larger one is factored in float32 and refined
def test_any_number_of_threads_gives_the_same_bits(form, n):
    X, y = wave(n)
    one, two = (ridge.fit(X, y, 1e-3, kernels.Polynomial(2), form=form, n_threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.fitted, two.fitted)
    np.testing.assert_array_equal(one.alpha, two.alpha)
    assert one.certificate == two.certificate
    first, second = (ridge.posterior(one, X[:300], n_threads=t) for t in (1, 2))
    np.testing.assert_array_equal(first.variance, second.variance)


PATHS = {
    "eigenvectors": (900, np.logspace(-5, 1, 60), kernels.RBF(0.2), {"intercept": True}),
    "a band": (1100, np.logspace(-5, 1, 5), kernels.RBF(0.2), {"intercept": True}),
    "eigenvectors, as λ is too small for a band": (1100, [1e-16, 0.1], kernels.RBF(0.2), {}),
    "features": (3000, np.logspace(-5, 1, 40), kernels.Polynomial(2), {"intercept": True}),
}


@pytest.mark.parametrize("case", PATHS)
def test_paths_have_the_same_bits_on_any_threads(case):
    n, lams, kernel, options = PATHS[case]
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 15)), rng.normal(size=(n, 2))
    weight = rng.integers(0, 4, size=n)
    first, *others = (
        bits(ridge.path(X, y, lams, kernel, sample_weight=weight, n_threads=threads, **options))
        for threads in (1, 2, 3)
    )
    assert others == [first, first]


def test_callbacks_hear_and_stop():
    X, y = wave(250)
    heard = []
    ridge.fit(X, y, 1e-6, kernels.RBF(2.0), solver="cg", n_components=5, callback=heard.append)
    assert len(heard) > 3
    assert heard[-1].what == "ridge"
    assert heard[-1].violation < heard[0].violation

    def stop(progress):
        raise InterruptedError

    for options in ({}, {"solver": "cg"}):
        with pytest.raises(InterruptedError):
            ridge.fit(X, y, 1e-3, callback=stop, **options)
    fit = ridge.fit(X, y, 1e-3)
    for call in (lambda: ridge.posterior(fit, X, callback=stop), lambda: ridge.path(X, y, [1.0], callback=stop)):
        with pytest.raises(InterruptedError):
            call()


INTERRUPTED = """
import numpy as np
from kernelrules import kernels, ridge
X = np.random.default_rng(0).normal(size=(60000, 5))
few = X[:1500]
ridge.fit(X[:50], X[:50, 0], 0.1)
"""


def test_interrupts_are_answered():
    calls = {
        "cg": 'ridge.fit(X, X[:, 0], 1e-9, kernels.RBF(3.0), solver="cg", n_components=50)',
        "path": "ridge.path(few, few[:, 0], [0.1])",
        "rkhs": 'ridge.fit(few, few[:, 0], 0.1, form="rkhs")',
    }
    told = seconds_of_all(INTERRUPTED, {name: ("", f"[{call} for _ in range(10**6)]") for name, call in calls.items()})
    assert all(seconds is not None and seconds < 3 for seconds in told.values()), told  # a second on a quiet machine


def test_memory_of_conjugate_gradients():
    """12 000 points: their matrix would take 1.1 GB; the preconditioner, n × 329, takes 32 MB."""
    code = """
import resource, warnings
import numpy as np
from kernelrules import kernels, ridge
rng = np.random.default_rng(0)
X = rng.normal(size=(12000, 3))
ridge.fit(X[:1500], X[:1500, 0], 0.1, kernels.RBF(0.1), solver="cg")
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
warnings.simplefilter("ignore")
ridge.fit(X, X[:, 0], 1e-3, kernels.RBF(0.1), solver="cg", max_iter=1)
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert int(done.stdout) < 250
