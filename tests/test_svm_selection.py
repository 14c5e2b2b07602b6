"""Choosing and using machines: paths over C, grids by cross-validation, probabilities."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy import optimize, sparse

from kernelrules import kernels, svm


def classes(n=120, k=2, seed=0, spread=1.2, p=3):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    centres = 1.5 * np.random.default_rng(99).normal(size=(k, p))
    return centres[y] + spread * rng.normal(size=(n, p)), y


# ---- paths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Cs", [[0.01, 0.1, 1.0, 10.0, 100.0], [10.0, 0.1, 1.0, 1.0]], ids=["ascending", "any order"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": kernels.Linear()},
        {"kernel": kernels.Polynomial(2, 0.3, 1.0)},
        {"class_weight": "balanced"},
        {"multiclass": "ovr"},
    ],
    ids=["rbf", "linear", "polynomial", "balanced", "ovr"],
)
@pytest.mark.parametrize("k", [2, 3])
def test_a_path_is_single_fits(Cs, options, k):
    X, y = classes(90, k)
    models = svm.path(X, y, Cs, tol=1e-7, **options)
    assert len(models) == len(Cs)
    for C, model in zip(Cs, models, strict=True):
        single = svm.svc(X, y, C=C, tol=1e-7, **options)
        assert model.kernel == single.kernel
        for a, b in zip(model.certificates, single.certificates, strict=True):
            assert a.converged
            np.testing.assert_allclose(a.dual, b.dual, rtol=1e-6)
        np.testing.assert_allclose(svm.decision(model, X), svm.decision(single, X), atol=2e-4)


def test_a_path_of_sparse_and_given_data():
    X, y = classes()
    kernel = kernels.RBF(0.3)
    expected = [svm.decision(m, X) for m in svm.path(X, y, [0.1, 10.0], kernel=kernel, tol=1e-7)]
    csr = svm.path(sparse.csr_array(X), y, [0.1, 10.0], kernel=kernel, tol=1e-7)
    K = kernels.gram(X, kernel=kernel)
    matrix = svm.path(K, y, [0.1, 10.0], kernel=kernels.Precomputed(), tol=1e-7)
    for f, a, b in zip(expected, csr, matrix, strict=True):
        np.testing.assert_allclose(svm.decision(a, X), f, atol=1e-4)
        np.testing.assert_allclose(svm.decision(b, K), f, atol=1e-4)


def test_a_path_reuses_the_last_solution():
    X, y = classes(400, spread=2.5)
    Cs = np.geomspace(1, 30, 9)  # up to where Newton steps begin to save as much as a start does
    together = sum(m.certificate.iterations for m in svm.path(X, y, Cs))
    alone = sum(svm.svc(X, y, C=C).certificate.iterations for C in Cs)
    assert together < 0.8 * alone


# ---- grids --------------------------------------------------------------------------------------------------------

GRID = {"Cs": [0.03, 1.0, 30.0], "gammas": [0.01, 0.3, 10.0]}


def test_the_grid_is_a_plain_loop():
    """Every cell, on folds that are given."""
    X, y = classes(150, 2, spread=2.0)
    fold = np.random.default_rng(3).permutation(np.arange(150) % 5)
    result = svm.tune(X, y, **GRID, folds=fold, tol=1e-6)
    expected = np.empty((3, 3, 5))
    for g, gamma in enumerate(GRID["gammas"]):
        for c, C in enumerate(GRID["Cs"]):
            for k in range(5):
                model = svm.svc(X[fold != k], y[fold != k], C=C, kernel=kernels.RBF(gamma), tol=1e-6)
                expected[g, c, k] = (svm.predict(model, X[fold == k]) != y[fold == k]).mean()
    np.testing.assert_allclose(result.fold_errors, expected, atol=1e-12)
    np.testing.assert_allclose(result.mean, expected.mean(axis=2), atol=1e-12)
    np.testing.assert_allclose(result.se, expected.std(axis=2, ddof=1) / np.sqrt(5), atol=1e-12)


def test_the_choice_by_minimum():
    X, y = classes(150, 3, spread=2.0)
    result = svm.tune(X, y, **GRID, rng=0)
    np.testing.assert_array_equal(result.Cs, GRID["Cs"])
    np.testing.assert_array_equal(result.gammas, GRID["gammas"])
    assert result.mean.shape == result.se.shape == (3, 3)
    g, c = GRID["gammas"].index(result.best["gamma"]), GRID["Cs"].index(result.best["C"])
    assert result.mean[g, c] == result.mean.min()
    assert result.mean.max() > result.mean.min() + 0.05, "a grid that cannot tell"
    expected = svm.svc(X, y, C=result.best["C"], kernel=kernels.RBF(result.best["gamma"]))
    assert result.model.kernel == expected.kernel
    np.testing.assert_allclose(svm.decision(result.model, X), svm.decision(expected, X), atol=1e-2)


def test_the_choice_by_one_standard_error():
    """Among the cells within one standard error of the best, the simplest: the smallest C, then the smallest gamma."""
    X, y = classes(220, 2, spread=1.6)
    kept = (y == 0) | (np.arange(220) % 3 > 0)  # fewer of one class: a small C names the other one always
    grid = {"Cs": [0.03, 0.3, 1.0, 30.0, 300.0], "gammas": [0.03, 0.1, 1.0]}
    least, simple = (svm.tune(X[kept], y[kept], **grid, rng=2, rule=rule) for rule in ("min", "1se"))
    np.testing.assert_array_equal(least.mean, simple.mean)
    best = np.unravel_index(least.mean.argmin(), least.mean.shape)
    limit = least.mean[best] + least.se[best]
    g, c = grid["gammas"].index(simple.best["gamma"]), grid["Cs"].index(simple.best["C"])
    assert least.mean[g, c] <= limit
    assert 0.03 < simple.best["C"] < least.best["C"], "data that cannot tell the rules apart"
    assert (least.mean[:, :c] > limit).all(), "a smaller C would have done"
    assert (least.mean[:g, c] > limit).all(), "a smaller gamma would have done"


def test_seeds_reproduce():
    X, y = classes(100, 2, spread=2.0)
    a, b, c = (svm.tune(X, y, **GRID, rng=rng) for rng in (7, np.random.default_rng(7), 8))
    np.testing.assert_array_equal(a.fold_errors, b.fold_errors)
    assert a.best == b.best
    assert (a.fold_errors != c.fold_errors).any()


def test_threads_and_executors_change_nothing():
    X, y = classes(100, 3, spread=2.0)
    expected = svm.tune(X, y, **GRID, rng=1, n_threads=1)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        two, *others = (
            svm.tune(X, y, **GRID, rng=1, **options)
            for options in ({"n_threads": 2}, {"executor": threads}, {"executor": processes})
        )
    np.testing.assert_array_equal(two.fold_errors, expected.fold_errors)
    np.testing.assert_array_equal(two.model.dual_coef, expected.model.dual_coef)
    for result in others:
        # Folds on their own have other rounding: a point at the boundary of some cell may change sides.
        assert np.abs(result.fold_errors - expected.fold_errors).max() <= 1.5 / 20
        assert (result.fold_errors != expected.fold_errors).mean() <= 0.1
        np.testing.assert_allclose(result.model.certificate.gap, 0.0, atol=1e-2 * result.model.certificate.dual)
    np.testing.assert_array_equal(others[0].fold_errors, others[1].fold_errors)
    assert others[0].best == others[1].best


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.RBF(0.2)], ids=repr)
def test_a_grid_over_C_alone(kernel):
    X, y = classes(100, 2, spread=2.0)
    result = svm.tune(X, y, Cs=[0.01, 1.0], kernel=kernel, rng=0)
    assert result.mean.shape == (1, 2)
    assert result.best["C"] in (0.01, 1.0)
    assert result.model.kernel == kernel


@pytest.mark.parametrize("kernel", [kernels.Laplacian(), kernels.Polynomial(2), kernels.Sigmoid()], ids=repr)
def test_other_kernels_with_a_gamma(kernel):
    X, y = classes(60, 2)
    fold = np.random.default_rng(3).permutation(np.arange(60) % 3)
    result = svm.tune(X, y, Cs=[0.1, 1.0], gammas=[0.05, 0.5], kernel=kernel, folds=fold)
    assert type(result.model.kernel) is type(kernel)
    assert result.model.kernel.gamma == result.best["gamma"]
    assert getattr(result.model.kernel, "degree", 0) == getattr(kernel, "degree", 0)
    for g, gamma in enumerate((0.05, 0.5)):
        by_hand = []
        for k in range(3):
            parts = {"gamma": gamma} if not hasattr(kernel, "degree") else {"gamma": gamma, "degree": 2}
            model = svm.svc(X[fold != k], y[fold != k], C=1.0, kernel=type(kernel)(**parts))
            by_hand.append((svm.predict(model, X[fold == k]) != y[fold == k]).mean())
        np.testing.assert_allclose(result.fold_errors[g, 1], by_hand, atol=2.5 / 20)  # two points at the boundary


def test_labels_weights_and_sparse_rows_in_a_grid():
    X, y = classes(90, 3, spread=2.0)
    plain = svm.tune(X, y, **GRID, rng=2)
    named = svm.tune(sparse.csr_array(X), np.array(["a", "b", "c"])[y], **GRID, rng=2)
    np.testing.assert_allclose(named.mean, plain.mean, atol=0.03)
    assert set(svm.predict(named.model, X)) <= {"a", "b", "c"}
    weighted = svm.tune(X, y, **GRID, rng=2, class_weight={0: 50.0, 1: 1.0, 2: 1.0})
    assert (weighted.mean != plain.mean).any()


def test_folds_keep_the_shares_of_the_classes():
    """Five rows of the rarer class and five folds: every fold can be fitted."""
    X, _ = classes(60)
    y = np.r_[np.zeros(55, int), np.ones(5, int)]
    result = svm.tune(X, y, Cs=[1.0], folds=5, rng=0)
    assert np.isfinite(result.mean).all()


# ---- probabilities ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_classes():
    X, y = classes(500, 2, spread=2.0)
    return svm.svc(X[:250], y[:250]), X[250:], y[250:]


each_method = pytest.mark.parametrize("method", ["platt", "isotonic"])


@each_method
def test_probabilities_of_two_classes(two_classes, method):
    model, X, y = two_classes
    calibrated = svm.calibrate(model, X, y, method=method)
    new = np.random.default_rng(1).normal(scale=3.0, size=(300, 3))
    P, f = svm.predict_proba(calibrated, new), svm.decision(model, new)
    assert P.shape == (300, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    assert ((P >= 0) & (P <= 1)).all()
    order = np.argsort(f)
    assert (np.diff(P[order, 1]) >= -1e-12).all(), "not monotone in the decision value"
    assert np.ptp(P[:, 1]) > 0.5
    held_out = svm.predict_proba(calibrated, X)[:, 1]
    np.testing.assert_allclose(held_out.mean(), y.mean(), atol=0.01)  # as many as there are
    for low, high in ((0.0, 0.4), (0.6, 1.0)):
        some = (held_out >= low) & (held_out <= high)
        assert abs(held_out[some].mean() - y[some].mean()) < 0.1


def test_platt_is_the_most_likely_sigmoid(two_classes):
    """Platt's regularised targets: (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2)."""
    model, X, y = two_classes
    f = svm.decision(model, X)
    target = np.where(y == 1, (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2))

    def loss(v):
        z = v[0] * f + v[1]
        return (target * z + np.logaddexp(0, -z)).sum()

    best = optimize.minimize(loss, [-1.0, 0.0], method="BFGS", options={"gtol": 1e-9}).x
    expected = 1 / (1 + np.exp(best[0] * f + best[1]))
    P = svm.predict_proba(svm.calibrate(model, X, y), X)
    np.testing.assert_allclose(P[:, 1], expected, atol=1e-5)


def test_isotonic_is_the_least_squares_staircase(two_classes):
    isotonic = pytest.importorskip("sklearn.isotonic")
    model, X, y = two_classes
    f = svm.decision(model, X)
    expected = isotonic.IsotonicRegression(out_of_bounds="clip").fit(f, y)
    calibrated = svm.calibrate(model, X, y, method="isotonic")
    np.testing.assert_allclose(svm.predict_proba(calibrated, X)[:, 1], expected.predict(f), atol=1e-9)
    new = np.random.default_rng(1).normal(scale=5.0, size=(300, 3))
    np.testing.assert_allclose(
        svm.predict_proba(calibrated, new)[:, 1], expected.predict(svm.decision(model, new)), atol=1e-9
    )


@each_method
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("k", [3, 5])
def test_probabilities_of_many_classes(method, multiclass, k):
    X, code = classes(600, k, spread=1.0)
    y = np.array(list("vwxyz"))[code]
    model = svm.svc(X[:300], y[:300], multiclass=multiclass)
    calibrated = svm.calibrate(model, X[300:], y[300:], method=method)
    P = svm.predict_proba(calibrated, X[300:])
    assert P.shape == (300, k)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)
    assert ((P >= 0) & (P <= 1)).all()
    predicted = svm.predict(model, X[300:])
    assert (model.classes[P.argmax(axis=1)] == predicted).mean() > 0.85
    right = P[np.arange(300), code[300:]]
    assert -np.log(np.maximum(right, 1e-3)).mean() < 0.8 * np.log(k), "no better than knowing nothing"


@each_method
def test_calibration_where_a_class_is_missing(method):
    """Nothing can be said of a class without held-out rows: refused, with its name."""
    X, y = classes(120, 3)
    model = svm.svc(X, np.array(["a", "b", "c"])[y])
    some = y != 2
    with pytest.raises(ValueError, match=r"y .*'c'"):
        svm.calibrate(model, X[some], np.array(["a", "b", "c"])[y[some]], method=method)


@each_method
def test_separated_decision_values(method):
    """Perfectly separated: the sigmoid stays finite."""
    X = np.r_[np.full((20, 1), -3.0), np.full((20, 1), 3.0)] + np.linspace(-0.5, 0.5, 40)[:, None]
    y = np.repeat([0, 1], 20)
    calibrated = svm.calibrate(svm.svc(X, y, kernel=kernels.Linear()), X, y, method=method)
    P = svm.predict_proba(calibrated, X)
    assert np.isfinite(P).all()
    np.testing.assert_array_equal(P.argmax(axis=1), y)
