"""Linear machines in any units and with any C: they converge in few steps, to the machine that scaled data have."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from kernelrules import estimators, kernels, persist, svm
from kernelrules.svm.certificate import decision_rounding
from kernelrules.svm.low_rank_qp import LowRankQP

LINEAR = kernels.Linear()
KINDS = ("svc", "weighted svc", "three", "three ovr", "nu_svc", "svr", "nu_svr", "one_class")
MOST = 1_200_000  # steps: those that are waited for, and what is left to SMO afterwards


def rows(seed=0, n=40, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.8 * rng.normal(size=n)


def fit(kind, X, y, C, **options):
    options = {"kernel": LINEAR, **options}
    match kind:
        case "svc":
            return svm.svc(X, y > 0, C=C, **options)
        case "weighted svc":
            weight = np.random.default_rng(5).uniform(0.1, 5.0, len(y))
            return svm.svc(X, y > 0, C=C, sample_weight=weight, **options)
        case "three" | "three ovr":
            multiclass = "ovo" if kind == "three" else "ovr"
            return svm.svc(X, np.digitize(y, [-0.5, 0.5]), C=C, multiclass=multiclass, **options)
        case "nu_svc":
            return svm.svc(X, y > 0, nu=0.75, **options)
        case "svr":
            return svm.svr(X, y, C=C, **options)
        case "nu_svr":
            return svm.svr(X, y, C=C, nu=0.4, **options)
        case "one_class":
            return svm.one_class(X, nu=0.3, **options)


def check_converged(model):
    """Converged, with a gap that its definition makes no larger than rounding does."""
    for c in model.certificates:
        assert c.converged, (c, c.beyond)
        assert c.iterations <= MOST
        assert c.gap >= -1e-9 * max(abs(c.primal), abs(c.dual))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e4, 1e8])
def test_units_of_all_columns(kind, scale):
    """w of X·s is w of X by s: the machine of C on s·X is that of s²·C on X."""
    X, y = rows()
    for C in (1e-6, 1.0, 1e8):
        model = fit(kind, scale * X, y, C)
        check_converged(model)
        if kind in ("svc", "three", "three ovr", "svr") and 1e-9 <= C * scale**2 <= 1e9:
            same = fit(kind, X, y, C * scale**2)
            np.testing.assert_allclose(svm.decision(model, scale * X), svm.decision(same, X), atol=2e-2)


@given(
    st.sampled_from([kind for kind in KINDS if kind != "nu_svc"]),
    st.lists(st.floats(-8, 8), min_size=3, max_size=3),
    st.sampled_from([1e-6, 1e-2, 1.0, 1e3, 1e8]),
    st.sampled_from([np.float64, np.float32]),
    st.integers(0, 1000),
)
@settings(max_examples=60)
def test_units_of_each_column(kind, powers, C, dtype, seed):
    X, y = rows(seed, 30)
    X = (X * 10.0 ** np.array(powers)).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", svm.ConvergenceWarning)
        model = fit(kind, X, y, C)
    for c in model.certificates:
        assert c.iterations <= MOST
        assert c.converged or f"in column {np.abs(X).max(axis=0).argmax()} of X" in c.beyond


def test_unscaled_measurements():
    """Thirty columns of which the largest is a million times the smallest, times a million, and C of a million."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = 1e6 * X
    model = svm.svc(X, y, C=1e6, kernel=LINEAR)
    check_converged(model)
    c = model.certificate
    assert c.gap <= 0.05 * c.primal  # C times what rounding leaves of decision values, 1e-13
    assert c.iterations < 100_000
    np.testing.assert_array_equal(svm.predict(model, X), y)  # they are separable, and C is as good as infinite
    assert (svm.decision(model, X) * np.where(y, 1, -1)).min() >= 1 - 1e-9
    np.testing.assert_allclose(0.5 * np.square(model.weights).sum(), c.dual, rtol=1e-6)


def test_models_with_weights_predict_by_them(tmp_path):
    X, y = rows()
    X = 1e8 * X
    model = fit("svc", X, y, 10.0)
    assert model.weights.shape == (1, 3)
    f = svm.decision(model, X)
    np.testing.assert_allclose(f, X @ model.weights[0] + model.intercept[0], rtol=1e-12)
    signs = np.where(y > 0, 1.0, -1.0)
    again = 0.5 * np.square(model.weights).sum() + 10.0 * np.maximum(0, 1 - signs * f).sum()
    np.testing.assert_allclose(model.certificate.primal, again, rtol=1e-12)
    np.testing.assert_allclose(svm.margin(model), 2 / np.linalg.norm(model.weights))
    np.testing.assert_allclose(svm.decision(model, sparse.csr_array(X)), f, rtol=1e-9)
    persist.save(model, tmp_path / "model")
    np.testing.assert_array_equal(svm.decision(persist.load(tmp_path / "model"), X), f)
    found = estimators.KernelSVC(C=10.0, kernel=LINEAR).fit(X, y > 0)
    np.testing.assert_array_equal(found.coef_, model.weights)
    check_converged(svm.svc(X, y > 0, C=20.0, kernel=LINEAR, warm_start=model))
    check_converged(svm.svc(sparse.csr_array(X), y > 0, C=10.0, kernel=LINEAR))
    for one in svm.path(X, y > 0, Cs=[1e-3, 10.0], kernel=LINEAR):
        check_converged(one)
    far = X + 1e11
    moved = fit("svc", far, y, 10.0)
    check_converged(moved)
    np.testing.assert_allclose(svm.decision(moved, far), f, atol=0.1)  # 1e11 has four digits left for the columns


def test_machines_without_weights_get_those_of_their_coefficients():
    """Of three machines one needs them: classes 0 and 1 overlap, 2 lies apart."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = 1e8 * (rng.normal(size=(90, 2)) + 20.0 * (y == 2)[:, None])
    model = svm.svc(X, y, C=1.0, kernel=LINEAR)
    check_converged(model)
    assert model.weights.shape == (3, 2)
    assert (svm.predict(model, X)[y == 2] == 2).all()


def test_the_warning_names_the_number():
    X, y = rows()
    X[:, 1] *= 1e9
    with pytest.warns(svm.ConvergenceWarning, match=r"up to 2e\+09 in column 1 of X.* more digits than float64"):
        model = svm.svc(X, y > 0, C=1.0, kernel=kernels.Polynomial(2, 1.0, 1.0))
    assert model.certificate.iterations <= MOST
    with pytest.raises(ValueError, match=r"overflow float64 \(numbers up to .*e\+120 in column 1 of X\)"):
        svm.svc(X * [1.0, 1e111, 1.0], y > 0, kernel=kernels.Polynomial(3))


def test_decision_rounding_bounds_what_rounding_does():
    rng = np.random.default_rng(0)
    X = 1e6 * rng.normal(size=(50, 4))
    beta = rng.normal(size=50)
    wide = X.astype(np.longdouble)
    off = np.abs((X @ X.T) @ beta - (wide @ wide.T) @ beta.astype(np.longdouble)).max()
    assert off <= 50 * decision_rounding(np.square(X).sum(axis=1), beta)


def test_limits_that_are_never_reached_hide_nothing():
    """½y² - x₀ - x₁ over x ≤ 1e30, x₀ = x₁, y = (x₀ + x₁) / 2: both are 2."""
    V = np.array([[0.5], [0.5]])
    E = np.array([[1.0], [-1.0]])
    for limit in (5.0, 1e10, 1e30):
        many = LowRankQP(V, E, np.zeros(1), -np.ones(2), np.full(2, limit), np.ones(1), np.zeros(1)).solve()
        np.testing.assert_allclose(many.x, 2.0, rtol=1e-9)
        assert not (many.at_zero | many.at_limit).any()


@pytest.mark.parametrize("task", ["svc", "svr"])
@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
def test_held_out_points_are_judged_by_weights(task, as_given):
    """Columns in units of 1 to 1e8: coefficients times support vectors have no digits of the small ones left."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(150, 6))
    X, y = as_given(Z * 10.0 ** np.linspace(0, 8, 6)), Z.sum(axis=1) + 0.3 * rng.normal(size=150)
    y = y if task == "svr" else (y > 0).astype(int)
    folds = np.arange(150) % 3
    tuned = svm.tune(X, y, Cs=[1.0, 1e4], kernel=LINEAR, folds=folds, task=task)
    for place, C in enumerate(tuned.Cs):
        for fold in range(3):
            held = folds == fold
            machine = (svm.svr if task == "svr" else svm.svc)(X[~held], y[~held], C=C, kernel=LINEAR)
            assert machine.weights is not None
            lost = np.square(svm.predict(machine, X[held]) - y[held]).mean()
            np.testing.assert_allclose(tuned.fold_errors[0, place, fold], lost, rtol=0.02)
