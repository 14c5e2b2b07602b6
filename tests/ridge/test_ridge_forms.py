"""The four representations give the same f: on problems that hypothesis makes, against one another and an oracle.

How far they may differ. A backward-stable solution of A α = y has a relative error of about eps·cond(A), and
cond(K + λn I) ≤ 1 + ‖K‖/(λn). Values f lose no more than α does: |f - f̂| ≤ c·eps·(1 + ‖K‖/(λn))·max|y| is asked for,
with c = 200·(n + q), for q features, since the normal equations see the features' own rounding as well.
"""

import warnings

import numpy as np
import pytest
import ridge_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kernelrules import kernels, load, ridge, save

EPS = np.finfo(np.float64).eps
FORMS = ("features", "kernel", "dual", "rkhs")
KERNELS = [
    kernels.Linear(),
    kernels.Polynomial(2, 0.5, 1.0),
    kernels.Polynomial(3, 0.3, 0.5),
    kernels.RBF(0.5),
    kernels.Laplacian(0.3),
]


@st.composite
def problems(draw):
    """n < p and n > p, duplicates, unlabelled points, weights with zeros, several targets, tiny and huge λ."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p, u = draw(st.integers(1, 14)), draw(st.integers(1, 6)), draw(st.integers(0, 5))
    points = rng.normal(size=(n + u, p))
    if draw(st.booleans()):
        points = np.round(points)
    if draw(st.booleans()):
        points[rng.integers(n + u, size=(n + u) // 2)] = points[0]
    y = rng.normal(size=(n, draw(st.integers(1, 3))))
    weight = None
    if draw(st.booleans()):
        weight = rng.integers(0, 4, n).astype(float)
        weight[rng.integers(n)] = 1.5
    return {
        "X": points[:n],
        "unlabelled": points[n:] if u else None,
        "y": y[:, 0] if draw(st.booleans()) else y,
        "lam": 10.0 ** draw(st.integers(-7, 6)),
        "sample_weight": weight,
        "intercept": draw(st.booleans()),
    }


def allowed(problem, kernel, K):
    q = 0 if not oracle.exact_map(kernel) else kernels.feature_map(kernel, problem["X"].shape[1]).n_components
    growth = oracle.condition(K, problem["lam"], problem["sample_weight"])
    return 200 * (len(K) + q) * EPS * growth * max(1e-300, np.abs(problem["y"]).max())


def forms_of(kernel):
    return FORMS if oracle.exact_map(kernel) else FORMS[1:]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(problem=problems())
def test_all_forms_are_the_oracle(kernel, problem):
    X, y = problem["X"], problem["y"]
    everything = X if problem["unlabelled"] is None else np.vstack([X, problem["unlabelled"]])
    K = kernels.gram(everything, kernel=kernel)
    n = len(X)
    options = {k: problem[k] for k in ("sample_weight", "intercept")}
    alpha, b = oracle.coefficients(K[:n, :n], y, problem["lam"], options["sample_weight"], options["intercept"])
    expected = (K[:, :n] @ alpha + b).astype(float).reshape(len(K), *y.shape[1:])
    tolerance = allowed(problem, kernel, K[:n, :n])
    for form in forms_of(kernel):
        found = ridge.fit(X, y, problem["lam"], kernel, unlabelled=problem["unlabelled"], form=form, **options)
        assert found.form == form
        np.testing.assert_allclose(found.fitted, expected, rtol=0, atol=tolerance, err_msg=form)
        assert found.certificate.converged
        assert found.alpha.shape == y.shape
        if options["sample_weight"] is not None:
            assert not found.alpha[options["sample_weight"] == 0].any()
        primal, dual = oracle.objectives(K[:n, :n], y, problem["lam"], alpha, **_renamed(options))
        size = float(np.square(y).sum())
        np.testing.assert_allclose(found.certificate.primal, float(primal), rtol=1e-6, atol=1e-9 * size)
        np.testing.assert_allclose(found.certificate.dual, float(dual), rtol=1e-6, atol=1e-9 * size)
        np.testing.assert_allclose(ridge.predict(found, everything), found.fitted, rtol=0, atol=tolerance)


def _renamed(options):
    return {"weight": options["sample_weight"], "intercept": options["intercept"]}


@given(problem=problems(), kernel=st.sampled_from(KERNELS), scale=st.floats(0.0, 10.0), seed=st.integers(0, 1000))
def test_gap_formula_holds_at_every_alpha(problem, kernel, scale, seed):
    """certificate() computes the gap by its own formula; P - D of the oracle is the same, at α that are not optimal."""
    X, y = problem["X"], problem["y"]
    alpha = scale * np.random.default_rng(seed).normal(size=y.shape)
    weight = np.ones(len(X)) if problem["sample_weight"] is None else problem["sample_weight"]
    alpha[weight == 0] = 0
    if problem["intercept"]:
        alpha[weight > 0] -= alpha[weight > 0].mean(axis=0)
    options = {k: problem[k] for k in ("sample_weight", "intercept")}
    found = ridge.certificate(X, y, problem["lam"], kernel, alpha=alpha, **options)
    K = kernels.gram(X, kernel=kernel)
    primal, dual = oracle.objectives(K, y, problem["lam"], alpha, **_renamed(options))
    size = float(abs(primal) + abs(dual)) + 1e-12 * float(np.square(y).sum())
    np.testing.assert_allclose([found.primal, found.dual], [float(primal), float(dual)], rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(found.gap, float(primal - dual), rtol=1e-9, atol=1e-10 * size)
    assert found.gap >= 0
    best = ridge.fit(X, y, problem["lam"], kernel, form="kernel", **options).certificate
    assert found.primal >= best.dual - 1e-9 * size
    assert found.dual <= best.primal + 1e-9 * size


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gap_is_small_and_proves_the_optimum(kernel, intercept):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    for form in forms_of(kernel):
        found = ridge.fit(X, y, 0.01, kernel, form=form, intercept=intercept)
        c = found.certificate
        assert 0 <= c.gap <= 1e-20 * c.primal, form
        assert abs(c.primal - c.dual) <= 1e-12 * c.primal
        assert c.kkt <= 1e-10
        moved = found.alpha + 1e-3 * (np.arange(60) - 29.5) * found.alpha.std()
        worse = ridge.certificate(X, y, 0.01, kernel, alpha=moved - moved.mean(), intercept=intercept)
        assert worse.primal > c.primal
        assert worse.dual < c.dual


def test_no_form_calls_another(monkeypatch):
    """Each form's answer survives that the other forms' functions are taken away."""
    from kernelrules.ridge import features, forms

    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0)
    places = {"features": features, "kernel": forms, "dual": forms, "rkhs": forms}

    def refuse(*_, **__):
        raise AssertionError("a form called another")

    for own in FORMS:
        with monkeypatch.context() as patch:
            for other, module in places.items():
                if other != own:
                    patch.setattr(module, other, refuse)
            assert ridge.fit(X, y, 0.1, kernels.Linear(), form=own).form == own


@pytest.mark.parametrize("form", FORMS)
def test_float32_data_are_taken_for_what_they_are(form):
    """float32 points are exact float64 points: the same answer to the last digits that float64 gives."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 5)).astype(np.float32), rng.normal(size=40).astype(np.float32)
    kernel = kernels.Polynomial(2)
    single, double = (ridge.fit(A, b, 1e-3, kernel, form=form) for A, b in ((X, y), (X.astype(float), y.astype(float))))
    assert single.fitted.dtype == single.alpha.dtype == np.float64
    np.testing.assert_array_equal(single.fitted, double.fitted)
    assert single.X.dtype == np.float32


@given(seed=st.integers(0, 10**6), form=st.sampled_from(FORMS), intercept=st.booleans())
def test_weight_two_is_the_row_twice(seed, form, intercept):
    rng = np.random.default_rng(seed)
    X, y, twice = rng.normal(size=(9, 3)), rng.normal(size=9), rng.integers(0, 3, 9)
    twice[0] = 2
    kernel = kernels.Polynomial(2)
    weighted = ridge.fit(X, y, 0.05, kernel, form=form, sample_weight=twice, intercept=intercept)
    repeated = ridge.fit(
        np.repeat(X, twice, axis=0), np.repeat(y, twice), 0.05, kernel, form=form, intercept=intercept, unlabelled=X
    )
    np.testing.assert_allclose(weighted.fitted, repeated.fitted[-9:], rtol=0, atol=1e-9)
    np.testing.assert_allclose(weighted.certificate.primal, repeated.certificate.primal, rtol=1e-9)


@given(seed=st.integers(0, 10**6), form=st.sampled_from(FORMS[1:]))
def test_scaled_weights_and_permuted_rows_change_nothing(seed, form):
    rng = np.random.default_rng(seed)
    X, y, weight = rng.normal(size=(11, 3)), rng.normal(size=(11, 2)), rng.random(11)
    order = rng.permutation(11)
    kernel = kernels.RBF(0.4)
    one = ridge.fit(X, y, 0.02, kernel, form=form, sample_weight=weight, intercept=True)
    other = ridge.fit(X[order], y[order], 0.02, kernel, form=form, sample_weight=7 * weight[order], intercept=True)
    np.testing.assert_allclose(one.fitted[order], other.fitted, atol=1e-10)
    np.testing.assert_allclose(one.intercept, other.intercept, atol=1e-10)


@pytest.mark.parametrize("form", FORMS[1:])
def test_singular_kernel_matrices(form):
    """Every point four times, and fewer features than points: K has rank 2 of 40."""
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(10, 2)), 4, axis=0)
    y = rng.normal(size=40)
    expected = ridge.fit(X, y, 1e-4, kernels.Linear(), form="features")
    found = ridge.fit(X, y, 1e-4, kernels.Linear(), form=form)
    np.testing.assert_allclose(found.fitted, expected.fitted, atol=1e-9)
    assert found.certificate.converged


def test_lam_too_small_for_float64():
    """λn below the rounding of K: the answer is as good as its certificate, or comes with a warning."""
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 2, axis=0)
    y = np.repeat(np.arange(10.0), 2)
    for lam in (1e-17, 1e-30, 1e-100):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = ridge.fit(X, y, lam, kernels.RBF(0.5))
        assert found.certificate.converged or caught
        np.testing.assert_allclose(found.fitted, y, atol=1e-4)


def test_huge_lam_gives_the_mean_or_zero():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    for form in FORMS:
        flat = ridge.fit(X, y, 1e12, kernels.Polynomial(2), form=form, intercept=True)
        np.testing.assert_allclose(flat.fitted, y.mean(), rtol=1e-9)
        none = ridge.fit(X, y, 1e12, kernels.Polynomial(2), form=form)
        np.testing.assert_allclose(none.fitted, 0, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_scikit_learn_agrees(form, intercept):
    linear_model = pytest.importorskip("sklearn.linear_model")
    kernel_ridge = pytest.importorskip("sklearn.kernel_ridge")
    rng = np.random.default_rng(7)
    X, y, weight = rng.normal(size=(50, 4)), rng.normal(size=(50, 2)), rng.random(50)
    lam = 0.03
    found = ridge.fit(X, y, lam, kernels.Linear(), form=form, sample_weight=weight, intercept=intercept)
    a = lam * weight.sum()
    theirs = linear_model.Ridge(alpha=a, fit_intercept=intercept).fit(X, y, weight)
    np.testing.assert_allclose(found.fitted, theirs.predict(X), atol=1e-9)
    np.testing.assert_allclose(found.intercept, theirs.intercept_, atol=1e-9)
    if not intercept:
        theirs = kernel_ridge.KernelRidge(alpha=a, kernel="poly", degree=2, gamma=0.5, coef0=1).fit(X, y, weight)
        found = ridge.fit(X, y, lam, kernels.Polynomial(2, 0.5), form=form, sample_weight=weight)
        np.testing.assert_allclose(found.fitted, theirs.predict(X), atol=1e-9)


def test_auto_takes_the_cheaper_form():
    rng = np.random.default_rng(0)
    tall, wide = rng.normal(size=(200, 5)), rng.normal(size=(20, 500))
    assert ridge.fit(tall, tall[:, 0], 0.1, kernels.Linear()).form == "features"
    assert ridge.fit(wide, wide[:, 0], 0.1, kernels.Linear()).form == "kernel"
    assert ridge.fit(tall, tall[:, 0], 0.1, kernels.Polynomial(2)).form == "features"
    with_ones = np.c_[tall, np.ones(200)]  # x·z + 1 - 0.1: semi-definite, but that is the data's merit
    assert ridge.fit(with_ones, tall[:, 0], 10.0, kernels.Polynomial(2, 1.0, -0.1)).form == "kernel"
    assert ridge.fit(tall, tall[:, 0], 0.1).form == "kernel"


@pytest.mark.parametrize("form", FORMS)
def test_sparse_data_give_the_dense_answer(form):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 8)) * (rng.random((30, 8)) < 0.3)
    y = rng.normal(size=30)
    for kernel in (kernels.Linear(), kernels.Polynomial(2)):
        dense = ridge.fit(X[:20], y[:20], 0.1, kernel, form=form, unlabelled=X[20:], intercept=True)
        for A, B in ((X, sparse.csr_array(X)), (sparse.csr_array(X), X), (sparse.csr_array(X), sparse.csr_array(X))):
            found = ridge.fit(A[:20], y[:20], 0.1, kernel, form=form, unlabelled=B[20:], intercept=True)
            np.testing.assert_allclose(found.fitted, dense.fitted, atol=1e-11)
            np.testing.assert_allclose(ridge.predict(found, B), ridge.predict(dense, X), atol=1e-11)


@pytest.mark.parametrize("options", [{"form": form} for form in FORMS[1:]] + [{"solver": "cg"}, {}], ids=str)
@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_unlabelled_points_of_a_precomputed_kernel(options, n_targets, as_sparse, tmp_path):
    """Their kernel values against the points of X: as if the points themselves had been given."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(25, 3)), rng.normal(size=18 if n_targets is None else (18, n_targets))
    weight, kernel = rng.integers(0, 3, size=18), kernels.RBF(0.3)
    K = kernels.gram(X, kernel=kernel)
    form = sparse.csr_array if as_sparse else np.asarray
    options = {**options, "intercept": True, "sample_weight": weight, "tol": 1e-13}
    expected = ridge.fit(X[:18], y, 0.02, kernel, unlabelled=X[18:], **options)
    found = ridge.fit(form(K[:18, :18]), y, 0.02, kernels.Precomputed(), unlabelled=form(K[18:, :18]), **options)
    np.testing.assert_allclose(found.fitted, expected.fitted, atol=1e-8)
    np.testing.assert_allclose(found.alpha, expected.alpha, atol=1e-6)
    assert found.fitted.shape == (25, *y.shape[1:])
    np.testing.assert_allclose(ridge.predict(found, form(K[18:, :18])), found.fitted[18:], atol=1e-12)
    # Some unlabelled points in the matrix, the others beside it.
    both = ridge.fit(form(K[:20, :20]), y, 0.02, kernels.Precomputed(), unlabelled=form(K[20:, :20]), **options)
    np.testing.assert_allclose(both.fitted, expected.fitted, atol=1e-8)
    save(found, tmp_path / "fit.npz")
    np.testing.assert_array_equal(load(tmp_path / "fit.npz").fitted, found.fitted)


@pytest.mark.parametrize("form", FORMS[1:])
def test_precomputed_and_callable_kernels(form):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(25, 3)), rng.normal(size=(18, 2))
    kernel = kernels.RBF(0.3)
    K = kernels.gram(X, kernel=kernel)
    expected = ridge.fit(X[:18], y, 0.02, kernel, form=form, unlabelled=X[18:], intercept=True)
    given_ = ridge.fit(K, y, 0.02, kernels.Precomputed(), form=form, intercept=True)
    np.testing.assert_allclose(given_.fitted, expected.fitted, atol=1e-10)
    np.testing.assert_allclose(ridge.predict(given_, K), expected.fitted, atol=1e-10)
    called = ridge.fit(
        X[:18], y, 0.02, lambda a, b: kernels.gram(a, b, kernel), form=form, unlabelled=X[18:], intercept=True
    )
    np.testing.assert_allclose(called.fitted, expected.fitted, atol=1e-10)
    np.testing.assert_allclose(ridge.predict(called, X), expected.fitted, atol=1e-10)
