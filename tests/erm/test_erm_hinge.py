"""The hinge loss in erm: certificates recomputed from the definitions, the support vector machine it is, its uses."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from result_bits import bits
from scipy import sparse

from kernelrules import erm, kernels, load, losses, save, svm

each_intercept = pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
KERNELS = [kernels.RBF(0.5), kernels.Linear(), kernels.Polynomial(2), kernels.Laplacian(5.0)]


def noisy(n, p, seed=0, flip=0.15):
    """Two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where((X[:, 0] + 0.5 * X[:, -1] > 0.2) ^ (rng.random(n) < flip), 1, -1)
    y[:2] = (-1, 1)
    return X, y


def require_optimal(found, K, y, lam, weight=None, tol=1e-8):
    """Primal and dual objective by their definitions, from the coefficients alone: no f has a smaller objective than
    the dual of feasible coefficients, so a small difference is a proof."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    share, alpha, b = weight / weight.sum(), found.alpha[0], found.intercept[0]
    used = share > 0
    assert (alpha[~used] == 0).all()
    v = np.zeros(len(y))
    v[used] = 2 * lam * (y * alpha)[used] / share[used]
    assert v.min() >= -1e-9
    assert v.max() <= 1 + 1e-9
    if b != 0:
        assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
    square = alpha @ K @ alpha
    f = K @ alpha + b
    primal = share @ np.maximum(0, 1 - y * f) + lam * square
    dual = share @ v - lam * square
    c = found.certificate
    assert c.converged
    assert c.dual <= c.primal
    assert c.gap <= tol * c.primal
    lengths = np.sqrt(np.diagonal(K))
    size = np.abs(alpha) @ lengths
    rounding = 1e-15 * len(y) * (lam * size**2 + size * lengths.max())  # of K @ alpha, whose terms may cancel
    np.testing.assert_allclose([c.primal, c.dual], [primal, dual], rtol=2 * tol, atol=1e-13 + rounding)
    assert primal - dual <= 2 * tol * primal + rounding
    np.testing.assert_allclose(found.norms[0], np.sqrt(max(square, 0)), rtol=1e-6, atol=1e-7 * size)


@st.composite
def problems(draw):
    n, p = draw(st.integers(2, 30)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, p)) * draw(st.sampled_from([0.1, 1.0, 3.0]))
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 2)] = X[0]  # equal points, perhaps of unlike labels
    if draw(st.booleans()):
        X[-1] = 0.0
    y = rng.choice([-1, 1], size=n)
    y[:2] = (-1, 1)
    weight = draw(st.sampled_from([None, rng.integers(0, 4, n) + 0.0, rng.random(n) + 0.01]))
    if weight is not None:
        weight[:2] += 0.5
    return X, y, weight


@given(problems(), st.sampled_from(KERNELS), st.sampled_from([1e-4, 1e-3, 0.1, 10.0]), st.booleans())
@settings(max_examples=80)
def test_fits_are_optimal_by_the_definitions(problem, kernel, lam, intercept):
    X, y, weight = problem
    found = erm.fit(X, y, lam, kernel, "hinge", sample_weight=weight, intercept=intercept)
    assert intercept or found.intercept[0] == 0
    require_optimal(found, kernels.gram(X, kernel=kernel), y, lam, weight)


@each_intercept
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lam", [1e-7, 1e-2, 1.0, 1e6, 1e60])
@pytest.mark.parametrize("flip", [0.0, 0.15], ids=["nearly separable", "overlapping"])
def test_extremes_of_lam_converge(intercept, kernel, lam, flip):
    X, y = noisy(40, 3, flip=flip)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = erm.fit(X, y, lam, kernel, "hinge", intercept=intercept)
    c = found.certificate
    assert c.converged
    assert 0 <= c.gap <= 1e-8 * c.primal
    assert c.primal <= 1 + 1e-12, "no worse than f = 0"
    np.testing.assert_allclose(c.primal - c.dual, c.gap, atol=1e-15 * c.primal)


@pytest.mark.parametrize("kernel", KERNELS)
def test_it_is_the_support_vector_machine_of_the_lectures(kernel):
    """Times n, (1/n) Σ hinge + λ‖f‖² is Σ hinge + (λ'/2)‖f‖² with λ' = 2λn: the machine with C = 1/λ'."""
    X, y = noisy(60, 3)
    lam = 0.003
    found = erm.fit(X, y, lam, kernel, "hinge", intercept=True, tol=1e-10)
    of_lectures = 2 * lam * len(y)
    machine = svm.svc(X, y, C=1 / of_lectures, kernel=kernel, tol=1e-9)
    np.testing.assert_allclose(found.certificate.primal * len(y), machine.certificate.primal * of_lectures, rtol=1e-8)
    np.testing.assert_allclose(erm.decision(found, X), svm.decision(machine, X), atol=1e-4)
    np.testing.assert_array_equal(erm.predict(found, X), svm.predict(machine, X))
    np.testing.assert_allclose(2 / found.norms[0], svm.margin(machine), rtol=1e-5)


@each_intercept
def test_smooth_losses_have_no_smaller_hinge_risk(intercept):
    X, y = noisy(40, 3)
    found = erm.fit(X, y, 0.02, kernels.RBF(0.5), "hinge", intercept=intercept)
    for loss in ("squared_hinge", "logistic"):
        other = erm.fit(X, y, 0.02, kernels.RBF(0.5), loss, intercept=intercept)
        risk = losses.hinge(y * erm.decision(other, X)).mean() + 0.02 * other.norms[0] ** 2
        assert found.certificate.dual <= risk


def test_without_an_intercept_two_points_by_hand():
    """f(x) = w x, points ±1: mean hinge + λw² has its least value at w = min(1, 1/2λ)."""
    for lam, w in ((0.1, 1.0), (0.5, 1.0), (2.0, 0.25)):
        found = erm.fit([[-1.0], [1.0]], [0, 1], lam, kernels.Linear(), "hinge")
        np.testing.assert_allclose(found.weights, [[w]], rtol=1e-8)
        np.testing.assert_allclose(found.certificate.primal, max(0, 1 - w) + lam * w * w, rtol=1e-8)


@each_intercept
@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), kernels.Linear()])
def test_weight_two_is_a_row_twice_and_weight_zero_none(kernel, intercept):
    X, y = noisy(30, 3)
    weight = np.arange(30) % 3
    weight[:2] = 1
    one = erm.fit(X, y, 0.01, kernel, "hinge", sample_weight=weight, intercept=intercept, tol=1e-12)
    rows = np.repeat(np.arange(30), weight)
    two = erm.fit(X[rows], y[rows], 0.01, kernel, "hinge", intercept=intercept, tol=1e-12)
    np.testing.assert_allclose(one.certificate.primal, two.certificate.primal, rtol=1e-10)
    np.testing.assert_allclose(one.norms, two.norms, rtol=1e-5)


@each_intercept
def test_forms_of_data_agree(intercept):
    X, y = noisy(40, 4)
    X[np.random.default_rng(0).random(X.shape) < 0.4] = 0.0
    options = {"loss": "hinge", "intercept": intercept, "tol": 1e-11}
    for kernel in (kernels.RBF(0.5), kernels.Linear()):
        K = kernels.gram(X, kernel=kernel)
        wanted = erm.fit(X, y, 0.01, kernel, **options)
        require_optimal(wanted, K, y, 0.01)
        values = erm.decision(wanted, X)
        given_matrix = erm.fit(K, y, 0.01, kernels.Precomputed(), **options)
        np.testing.assert_allclose(erm.decision(given_matrix, K), values, atol=1e-5)
        asked = erm.fit(X, y, 0.01, lambda a, b, kernel=kernel: kernels.gram(a, b, kernel), **options)
        np.testing.assert_allclose(erm.decision(asked, X), values, atol=1e-5)
        thin = sparse.csr_array(X)
        np.testing.assert_allclose(erm.decision(erm.fit(thin, y, 0.01, kernel, **options), thin), values, atol=1e-5)
        single = erm.fit(X.astype(np.float32), y, 0.01, kernel, loss="hinge", intercept=intercept)
        np.testing.assert_allclose(erm.decision(single, X.astype(np.float32)), values, atol=1e-3)


@each_intercept
@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), kernels.Linear()])
def test_more_classes_are_one_against_the_rest_on_any_threads_and_executor(kernel, intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 4)), rng.choice(["a", "b", "c"], size=120)
    options = {"loss": "hinge", "intercept": intercept}
    found = erm.fit(X, y, 0.01, kernel, n_threads=1, **options)
    assert len(found.certificates) == 3
    for k, label in enumerate(found.classes):
        alone = erm.fit(X, y == label, 0.01, kernel, **options)
        np.testing.assert_allclose(found.certificates[k].primal, alone.certificate.primal, rtol=2e-8)
    wanted = bits(found)
    for n_threads in (2, 3):
        assert bits(erm.fit(X, y, 0.01, kernel, n_threads=n_threads, **options)) == wanted
    with ThreadPoolExecutor(2) as pool:
        assert bits(erm.fit(X, y, 0.01, kernel, executor=pool, **options)) == wanted


def test_losses_by_object_are_those_by_name():
    X, y = noisy(30, 2)
    one, other = (erm.fit(X, y, 0.1, loss=loss) for loss in ("hinge", losses.hinge))
    assert bits(one) == bits(other)
    assert one.loss == "hinge"
    with pytest.raises(ValueError, match=r"probabilities require the logistic loss.*hinge"):
        erm.predict_proba(one, X)


@each_intercept
def test_saved_fits_answer_alike(tmp_path, intercept):
    X, y = noisy(30, 2)
    for kernel in (kernels.RBF(0.5), kernels.Linear()):
        found = erm.fit(X, y, 0.1, kernel, "hinge", intercept=intercept)
        save(found, tmp_path / "fit.npz")
        assert bits(erm.decision(load(tmp_path / "fit.npz"), X)) == bits(erm.decision(found, X))


@each_intercept
def test_stopping_early_is_a_warning_and_a_valid_bound(intercept):
    X, y = noisy(200, 3)
    with pytest.warns(erm.ConvergenceWarning, match="relative gap"):
        rough = erm.fit(X, y, 1e-4, kernels.RBF(0.5), "hinge", intercept=intercept, max_iter=3, tol=1e-12)
    fine = erm.fit(X, y, 1e-4, kernels.RBF(0.5), "hinge", intercept=intercept, tol=1e-10).certificate
    c = rough.certificate
    assert not c.converged
    assert c.iterations == 3
    assert c.dual <= fine.primal
    assert c.primal >= fine.dual
    assert c.gap > 1e-6 * c.primal


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fit_that_rounding_ends_does_not_take_all_its_steps(seed):
    """The gap asked for is below what float64 leaves: the solver's steps change nothing any more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 8))
    y = X[:, 0] + 0.5 * rng.normal(size=100) > 0
    with pytest.warns(erm.ConvergenceWarning, match="relative gap"):
        found = erm.fit(X, y, 1e-12, kernels.Polynomial(2), "hinge", max_iter=30_000)
    assert found.certificate.iterations < 15_000
    assert found.certificate.gap < 1e-3 * found.certificate.primal


def test_tolerances_hold_and_callbacks_see_the_gap():
    X, y = noisy(150, 3)
    seen = []
    for tol in (1e-2, 1e-5, 1e-10):
        c = erm.fit(X, y, 1e-4, kernels.RBF(0.5), "hinge", tol=tol, callback=seen.append).certificate
        assert c.gap <= tol * c.primal
    assert min(p.violation for p in seen if p.what == "erm" and p.violation is not None) <= 1e-10

    class Stop(Exception):
        pass

    def stop(progress):
        raise Stop

    for kernel in (kernels.RBF(0.5), kernels.Linear()):
        with pytest.raises(Stop):
            erm.fit(X, y, 1e-4, kernel, "hinge", callback=stop)


def test_what_cannot_be_fitted_is_refused():
    X, y = noisy(30, 2)
    with pytest.raises(ValueError, match="lam is too small for the hinge loss"):
        erm.fit(X, y, 1e-200, kernels.RBF(0.5), "hinge")
    with pytest.raises(ValueError, match="not positive semi-definite"):
        erm.fit(-np.eye(30), y, 0.1, kernels.Precomputed(), "hinge")
    with pytest.raises(ValueError, match="one class only"):
        erm.fit(X, np.zeros(30), 0.1, loss="hinge")
