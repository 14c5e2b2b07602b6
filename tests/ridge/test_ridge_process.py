"""Ridge as a Gaussian process, and its path over λ: against oracles, n refits, and scikit-learn."""

import numpy as np
import pytest
import ridge_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kernelrules import kernels, ridge

KERNELS = [kernels.RBF(0.4), kernels.Laplacian(0.3), kernels.Polynomial(2, 0.5), kernels.Linear()]


def draw_problem(seed, n=12, p=3):
    rng = np.random.default_rng(seed)
    X, y, weight = rng.normal(size=(n, p)), rng.normal(size=n), rng.integers(0, 4, n) + 0.0
    weight[:2] = 1.5
    return X, y, weight, rng.normal(size=(7, p))


# ---- posterior ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(seed=st.integers(0, 10**6), lam=st.sampled_from([1e-4, 0.1, 30.0]), weighted=st.booleans(), flat=st.booleans())
def test_variance_is_the_oracle(kernel, seed, lam, weighted, flat):
    X, y, weight, new = draw_problem(seed)
    weight = weight if weighted else None
    K, cross = kernels.gram(X, kernel=kernel), kernels.gram(new, X, kernel)
    own = kernels.diagonal(new, kernel)
    expected = oracle.posterior_variance(K, cross, own, lam, weight, flat).astype(float)
    forms = ["kernel", "dual", "rkhs"] + (["features"] if oracle.exact_map(kernel) else [])
    likelihoods = []
    for form in forms:
        fit = ridge.fit(X, y, lam, kernel, form=form, sample_weight=weight, intercept=flat)
        found = ridge.posterior(fit, new)
        scale = own.max() * oracle.condition(K, lam, weight)
        np.testing.assert_allclose(found.variance, expected, rtol=1e-9, atol=1e-12 * scale, err_msg=form)
        assert (found.variance >= 0).all()
        np.testing.assert_allclose(found.mean, ridge.predict(fit, new), atol=1e-9)
        likelihoods.append(found.log_marginal_likelihood)
    np.testing.assert_allclose(likelihoods, likelihoods[0], rtol=1e-7, atol=1e-7)


def test_likelihood_is_the_oracle_and_ignores_what_is_constant():
    X, y, _, _ = draw_problem(1, n=30)
    for kernel in KERNELS:
        fit = ridge.fit(X, y, 0.05, kernel)
        expected = oracle.log_likelihood(kernels.gram(X, kernel=kernel), y, 0.05)
        np.testing.assert_allclose(ridge.log_marginal_likelihood(fit), expected, rtol=1e-10)
    one, other = (ridge.fit(X, y + c, 0.05, KERNELS[0], intercept=True) for c in (0.0, 100.0))
    np.testing.assert_allclose(*(ridge.log_marginal_likelihood(fit) for fit in (one, other)), rtol=1e-8)
    both = ridge.fit(X, np.column_stack([y, 2 * y]), 0.05)
    single = [ridge.log_marginal_likelihood(ridge.fit(X, t, 0.05)) for t in (y, 2 * y)]
    np.testing.assert_allclose(ridge.log_marginal_likelihood(both), sum(single), rtol=1e-10)


def test_gaussian_process_regressor_agrees():
    gp = pytest.importorskip("sklearn.gaussian_process")
    X, y, _, new = draw_problem(2, n=40)
    lam, gamma = 0.002, 0.3
    theirs = gp.GaussianProcessRegressor(
        gp.kernels.RBF(1 / np.sqrt(2 * gamma), "fixed"), alpha=lam * 40, optimizer=None
    ).fit(X, y)
    mean, deviation = theirs.predict(new, return_std=True)
    for options in ({}, {"keep_factor": True}):
        fit = ridge.fit(X, y, lam, kernels.RBF(gamma), **options)
        found = ridge.posterior(fit, new)
        np.testing.assert_allclose(found.mean, mean, atol=1e-10)
        np.testing.assert_allclose(found.variance, deviation**2, atol=1e-10)
        np.testing.assert_allclose(found.log_marginal_likelihood, theirs.log_marginal_likelihood_value_, rtol=1e-10)
        assert found.noise == pytest.approx(lam * 40)


def test_float32_variances_are_good_or_made_in_float64():
    """Where λ is large enough float32 is used, and says so by its digits; where it is not, float64 takes over."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 4)).astype(np.float32), rng.normal(size=(50, 4)).astype(np.float32)
    y = np.sin(X[:, 0])
    for lam, digits in ((1e-3, 1e-4), (1e-9, 1e-4), (1e-13, 1e-4)):
        fit = ridge.fit(X, y, lam, kernels.RBF(0.2))
        wide = ridge.posterior(fit, new.astype(np.float64))
        narrow = ridge.posterior(fit, new)
        np.testing.assert_allclose(narrow.variance, wide.variance, atol=digits)
        np.testing.assert_allclose(narrow.mean, wide.mean, atol=1e-8)
    assert narrow.variance.dtype == np.float64


@pytest.mark.parametrize("keep_factor", [False, True])
@pytest.mark.parametrize("target", ["zero", "noise", "smooth"])
def test_float32_variances_do_not_depend_on_the_targets(target, keep_factor):
    """α = 0 says nothing of a factor: it is judged by a system of its own."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(1000, 2)).astype(np.float32), rng.normal(size=(100, 2)).astype(np.float32)
    y = {"zero": np.zeros(1000), "noise": rng.normal(size=1000), "smooth": np.sin(X[:, 0])}[target]
    for lam in (1e-3, 1e-5, 1e-6, 1e-7, 1e-8):
        fit = ridge.fit(X, y, lam, kernels.RBF(0.3), keep_factor=keep_factor)
        narrow, wide = ridge.posterior(fit, new), ridge.posterior(fit, new.astype(np.float64))
        np.testing.assert_allclose(narrow.variance, wide.variance, atol=1e-4)
        assert abs(narrow.log_marginal_likelihood - ridge.log_marginal_likelihood(fit)) < 0.02


def test_kept_factors_are_used_where_they_are_good_enough():
    """float32 data keep a float32 factor; points in float64 still get float64 variances."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(1600, 3)).astype(np.float32), rng.normal(size=(20, 3)).astype(np.float32)
    y = np.sin(X[:, 0])
    wide = ridge.fit(X.astype(np.float64), y, 1e-3, kernels.RBF(0.2), keep_factor=True)
    narrow = ridge.fit(X, y, 1e-3, kernels.RBF(0.2), keep_factor=True)
    assert (wide.factor.dtype, narrow.factor.dtype) == (np.float64, np.float32)
    exact = ridge.posterior(wide, new).variance
    np.testing.assert_allclose(ridge.posterior(narrow, new).variance, exact, atol=1e-5)
    assert np.abs(ridge.posterior(narrow, new).variance - exact).max() > 0
    np.testing.assert_allclose(ridge.posterior(narrow, new.astype(np.float64)).variance, exact, atol=1e-12)


def test_variance_far_away_and_at_the_data():
    X = np.linspace(0, 1, 20)[:, None]
    fit = ridge.fit(X, X[:, 0], 1e-8, kernels.RBF(5.0))
    found = ridge.posterior(fit, np.vstack([X, [[1e3]]]))
    np.testing.assert_allclose(found.variance[-1], 1.0)
    assert (found.variance[:-1] <= 20 * 1e-8 + 1e-12).all()


def test_posterior_of_other_inputs():
    X, y, weight, new = draw_problem(4)
    kernel = kernels.RBF(0.3)
    fit = ridge.fit(X, y, 0.1, kernel, sample_weight=weight)
    expected = ridge.posterior(fit, new)
    cross, own = kernels.gram(new, X, kernel), np.ones(len(new))
    given_ = ridge.fit(kernels.gram(X, kernel=kernel), y, 0.1, kernels.Precomputed(), sample_weight=weight)
    called = ridge.fit(X, y, 0.1, lambda a, b: kernels.gram(a, b, kernel), sample_weight=weight)
    rows = ridge.fit(sparse.csr_array(X), y, 0.1, kernel, sample_weight=weight)
    for found in (
        ridge.posterior(given_, cross, diagonal=own),
        ridge.posterior(called, new),
        ridge.posterior(rows, sparse.csr_array(new)),
        ridge.posterior(fit, new, n_threads=1),
    ):
        np.testing.assert_allclose(found.variance, expected.variance, atol=1e-10)
        np.testing.assert_allclose(found.mean, expected.mean, atol=1e-10)
    assert ridge.posterior(fit, np.empty((0, 3))).variance.shape == (0,)
    with pytest.raises(ValueError, match="diagonal, k"):
        ridge.posterior(given_, cross)
    with pytest.raises(ValueError, match="Precomputed"):
        ridge.posterior(fit, new, diagonal=own)
    with pytest.raises(ValueError, match="diagonal has 2 entries"):
        ridge.posterior(given_, cross, diagonal=[1.0, 1.0])
    with pytest.raises(ValueError, match="2 columns but the fit has 3"):
        ridge.posterior(fit, new[:, :2])
    with pytest.raises(TypeError, match=r"what ridge\.fit returned"):
        ridge.posterior(expected, new)


# ---- path -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(seed=st.integers(0, 10**6), weighted=st.booleans(), flat=st.booleans(), several=st.booleans())
def test_path_is_single_fits_and_refits(kernel, seed, weighted, flat, several):
    X, y, weight, _ = draw_problem(seed, n=11, p=2)
    y = np.column_stack([y, y**2]) if several else y
    weight = weight if weighted else None
    K, lams = kernels.gram(X, kernel=kernel), np.array([1.0, 1e-3])
    forms = ["kernel", "features"] if oracle.exact_map(kernel) else ["kernel"]
    paths = [ridge.path(X, y, lams, kernel, form=form, sample_weight=weight, intercept=flat) for form in forms]
    for i, lam in enumerate(lams):
        tolerance = 1e-11 * oracle.condition(K, lam, weight) * max(1.0, np.abs(y).max())
        fit = ridge.fit(X, y, lam, kernel, sample_weight=weight, intercept=flat)
        left = oracle.leave_one_out(K, y, lam, weight, flat).reshape(y.shape)
        w = np.ones(len(X)) if weight is None else weight
        error = np.nansum(w * (left**2).reshape(len(X), -1).sum(axis=1)) / w.sum()
        hat = _hat_trace(K, lam, weight, flat)
        for found in paths:
            np.testing.assert_allclose(found.fitted[i], fit.fitted, atol=tolerance)
            np.testing.assert_allclose(found.alphas[i] * lam, fit.alpha * lam, atol=tolerance)
            np.testing.assert_allclose(found.intercepts[i], fit.intercept, atol=tolerance)
            np.testing.assert_allclose(found.loo_residuals[i], left, rtol=1e-6, atol=1e3 * tolerance)
            np.testing.assert_allclose(found.loo_errors[i], error, rtol=1e-5)
            np.testing.assert_allclose(found.dof[i], hat, atol=1e3 * tolerance)
            at = ridge.at(found, i)
            assert at.certificate.converged
            np.testing.assert_allclose(at.fitted, fit.fitted, atol=tolerance)
            np.testing.assert_allclose(at.certificate.primal, fit.certificate.primal, rtol=1e-8)
    for found in paths:
        assert found.best == int(np.argmin(found.loo_errors))


def _hat_trace(K, lam, weight, intercept):
    """Σ ∂fᵢ/∂yᵢ, by fits to unit targets."""
    n = len(K)
    alpha, b = oracle.coefficients(K, np.eye(n), lam, weight, intercept)
    values = K @ alpha + b
    kept = np.arange(n) if weight is None else np.flatnonzero(weight)
    return float(np.diagonal(values)[kept].sum())


def test_path_agrees_with_ridge_cv():
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
    alphas = np.logspace(-2, 3, 12)
    theirs = linear_model.RidgeCV(alphas, store_cv_results=True, fit_intercept=False).fit(X, y)
    for form in ("kernel", "features"):
        ours = ridge.path(X, y, alphas / 40, kernels.Linear(), form=form)
        np.testing.assert_allclose(ours.loo_residuals.T**2, theirs.cv_results_, rtol=1e-7)
        assert alphas[ours.best] == theirs.alpha_


def test_path_in_any_order_and_of_one():
    X, y, _, _ = draw_problem(5)
    lams = np.array([0.1, 1e-5, 10.0])
    found, turned = ridge.path(X, y, lams), ridge.path(X, y, lams[::-1])
    np.testing.assert_allclose(found.loo_errors, turned.loo_errors[::-1], rtol=1e-12)
    assert ridge.path(X, y, 0.1).lams.shape == (1,)
    assert ridge.at(found, -1).lam == 10.0
    assert ridge.at(found).lam == lams[found.best]


def test_path_with_leverage_of_one():
    """A point alone in its direction: leaving it out leaves f = 0 there, and nothing divides by zero."""
    X = np.zeros((6, 2))
    X[:5, 0], X[5, 1] = 1.0, 1.0
    y = np.arange(6.0)
    for form in ("kernel", "features"):
        found = ridge.path(X, y, [1e-14], kernels.Linear(), form=form)
        np.testing.assert_allclose(found.loo_residuals[0, 5], 5.0, rtol=0.2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lams": []}, "lams is empty"),
        ({"lams": [0.1, 0.0]}, r"lams\[1\] must be greater than 0"),
        ({"lams": [0.1, 1e-101]}, r"lams\[1\] must be between"),
        ({"lams": [np.nan]}, r"lams\[0\] must be finite"),
        ({"lams": [[0.1]]}, "lams must be a one-dimensional"),
        ({"lams": "many"}, "lams must be a one-dimensional"),
        ({"form": "dual"}, 'form must be "auto", "kernel" or "features"'),
        ({"form": "features"}, "no finite exact feature map"),
        ({"sample_weight": [0, 0, 0, 1, 0], "intercept": True}, "two points of positive weight"),
    ],
)
def test_path_refuses(change, message):
    X, y = np.arange(5.0)[:, None], np.arange(5.0)
    with pytest.raises(ValueError, match=message):
        ridge.path(X, y, **({"lams": [0.1], "kernel": kernels.RBF(1.0)} | change))


def test_at_refuses():
    found = ridge.path([[0.0], [1.0]], [0.0, 1.0], [0.1])
    for wrong, error in ((1, ValueError), (-2, ValueError), ("a", TypeError), (0.5, ValueError)):
        with pytest.raises(error, match="i must be"):
            ridge.at(found, wrong)
    with pytest.raises(TypeError, match=r"what ridge\.path returned"):
        ridge.at("path")
    with pytest.raises(ValueError, match="not positive semi-definite"):
        ridge.path([[0.0, 1.0], [1.0, 0.0]], [0.0, 1.0], [0.1], kernels.Precomputed())
