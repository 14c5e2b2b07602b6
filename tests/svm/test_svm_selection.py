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
    for result in (two, *others):
        np.testing.assert_array_equal(result.fold_errors, expected.fold_errors)
        np.testing.assert_array_equal(result.model.dual_coef, expected.model.dual_coef)
        assert result.best == expected.best


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


def test_the_grid_has_the_order_of_the_errors():
    X, y = classes(60, 2, spread=2.0)
    result = svm.tune(X, y, **GRID, rng=0, folds=3)
    assert len(result.grid) == result.mean.size == result.se.size
    for g, gamma in enumerate(GRID["gammas"]):
        for c, C in enumerate(GRID["Cs"]):
            assert result.grid[g * 3 + c] == {"C": C, "gamma": gamma}
    assert result.grid[result.mean.argmin()] == result.best
    plain = svm.tune(X, y, Cs=[1, 0.1], rng=0, folds=3, kernel=kernels.Linear())
    assert plain.grid == ({"C": 1.0}, {"C": 0.1})
    assert plain.best in plain.grid


# ---- grids of regressions -----------------------------------------------------------------------------------------


def numbers(n=120, seed=0, noise=0.3, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


@pytest.mark.parametrize("measure", ["squared_error", "absolute_error"])
@pytest.mark.parametrize(
    "options",
    [{"epsilon": 0.2}, {"nu": 0.4}, {"epsilon": 0.2, "kernel": kernels.Linear()}, {"epsilon": 0.2, "cache_mb": 0.05}],
    ids=["epsilon", "nu", "linear", "kernel values of their own"],
)
def test_the_grid_of_a_regression_is_a_plain_loop(options, measure):
    X, y = numbers(100)
    fold, weight = np.random.default_rng(3).permutation(np.arange(100) % 4), 1.0 + np.arange(100) % 3
    grid = {"Cs": [10.0, 0.1]} | ({} if "kernel" in options else {"gammas": [0.05, 0.5]})
    same = {"tol": 1e-6, **options}
    result = svm.tune(X, y, task="svr", **grid, folds=fold, measure=measure, sample_weight=weight, **same)
    same.pop("kernel", None)
    tried = [kernels.RBF(gamma) for gamma in grid["gammas"]] if "gammas" in grid else [kernels.Linear()]
    expected = np.empty((len(tried), 2, 4))
    for g, kernel in enumerate(tried):
        for c, C in enumerate(grid["Cs"]):
            for k in range(4):
                on, off = fold != k, fold == k
                model = svm.svr(X[on], y[on], C=C, kernel=kernel, sample_weight=weight[on], **same)
                error = np.abs(svm.predict(model, X[off]) - y[off])
                lost = error**2 if measure == "squared_error" else error
                expected[g, c, k] = np.average(lost, weights=weight[off])
    np.testing.assert_allclose(result.fold_errors, expected, rtol=1e-4)
    np.testing.assert_allclose(result.mean, expected.mean(axis=2), rtol=1e-4)
    np.testing.assert_allclose(result.se, expected.std(axis=2, ddof=1) / 2, rtol=1e-3)
    best = result.grid[result.mean.argmin()]
    assert result.best == best
    assert result.measure == measure
    kernel = kernels.RBF(best["gamma"]) if "gamma" in best else kernels.Linear()
    single = svm.svr(X, y, C=best["C"], kernel=kernel, sample_weight=weight, **same)
    assert result.model.kind == single.kind
    assert result.model.epsilon == pytest.approx(single.epsilon)
    np.testing.assert_allclose(svm.predict(result.model, X), svm.predict(single, X), atol=1e-9)


def test_float32_rows_judge_regressions_as_well():
    """Of more points than have float64 kernel values."""
    X, y = numbers(1200)
    fold = np.arange(1200) % 3
    result = svm.tune(X, y, task="svr", Cs=[1.0, 100.0], gammas=[0.1, 1.0], folds=fold)
    for g, gamma in enumerate((0.1, 1.0)):
        model = svm.svr(X[fold != 1], y[fold != 1], C=100.0, kernel=kernels.RBF(gamma))
        error = ((svm.predict(model, X[fold == 1]) - y[fold == 1]) ** 2).mean()
        np.testing.assert_allclose(result.fold_errors[g, 1, 1], error, rtol=1e-2)


def test_the_choice_of_a_regression_by_one_standard_error():
    X, y = numbers(150, noise=1.0)
    grid = {"Cs": [0.003, 0.03, 0.3, 3.0, 30.0], "gammas": [0.02, 0.1, 0.5]}
    least, simple = (svm.tune(X, y, task="svr", **grid, rng=2, rule=rule) for rule in ("min", "1se"))
    np.testing.assert_array_equal(least.mean, simple.mean)
    limit = least.mean.min() + least.se.ravel()[least.mean.argmin()]
    g, c = grid["gammas"].index(simple.best["gamma"]), grid["Cs"].index(simple.best["C"])
    assert least.mean[g, c] <= limit
    assert simple.best["C"] < least.best["C"], "data that cannot tell the rules apart"
    assert (least.mean[:, :c] > limit).all(), "a smaller C would have done"
    assert (least.mean[:g, c] > limit).all(), "a smaller gamma would have done"


@pytest.mark.parametrize("n", [150, 1100])
@pytest.mark.parametrize("options", [{"epsilon": 0.1}, {"nu": 0.3}], ids=["epsilon", "nu"])
def test_threads_and_executors_change_no_regression(n, options):
    X, y = numbers(n)
    options |= {"task": "svr", "Cs": [1.0, 20.0], "gammas": [0.1, 0.5], "folds": 3, "rng": 1}
    expected = svm.tune(X, y, **options, n_threads=1)
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        for running in ({"n_threads": 2}, {"executor": threads}, {"executor": processes}):
            result = svm.tune(X, y, **options, **running)
            np.testing.assert_array_equal(result.fold_errors, expected.fold_errors)
            np.testing.assert_array_equal(result.model.dual_coef, expected.model.dual_coef)
            assert result.best == expected.best


def test_folds_of_a_regression_use_interior_points():
    """A warning that some stopped early would be an error here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * 10.0 ** np.arange(-3, 3)
    y = X @ rng.normal(size=6) + 10 * rng.normal(size=2000)
    result = svm.tune(X, y, task="svr", Cs=[100.0], epsilon=0.5, kernel=kernels.Linear(), folds=3, rng=0)
    assert result.model.certificate.converged
    assert 95 < result.mean[0, 0] < 110


def test_units_of_a_regression():
    """Numbers a thousand times as large, with costs, tubes and tolerances to match: errors to match."""
    X, y = numbers(90)
    one = svm.tune(X, y, task="svr", Cs=[0.5, 5.0], epsilon=0.1, tol=1e-6, rng=0)
    big = svm.tune(X, 1000 * y, task="svr", Cs=[500.0, 5000.0], epsilon=100.0, tol=1e-3, rng=0)
    np.testing.assert_allclose(big.fold_errors, 1e6 * one.fold_errors, rtol=1e-3)


def test_rows_without_weight_are_not_in_a_regression():
    X, y = numbers(120)
    folds, weight = np.arange(120) % 4, np.ones(120)
    weight[folds == 1] = 0
    some = weight > 0
    result = svm.tune(X, y, task="svr", Cs=[1.0], gammas=[0.3], folds=folds, sample_weight=weight)
    alone = svm.tune(X[some], y[some], task="svr", Cs=[1.0], gammas=[0.3], folds=folds[some])
    assert result.fold_errors.shape == (1, 1, 3)
    np.testing.assert_array_equal(result.fold_errors, alone.fold_errors)


@pytest.mark.parametrize("form", ["csr", "precomputed", "callable", "far away"])
def test_regressions_of_other_data(form):
    X, y = numbers(90)
    kernel = kernels.Linear() if form == "far away" else kernels.RBF(0.3)
    options = {"task": "svr", "Cs": [0.5, 5.0], "folds": np.arange(90) % 3, "tol": 1e-6}
    expected = svm.tune(X, y, **options, kernel=kernel).fold_errors
    data, given = {
        "csr": (sparse.csr_array(X), kernel),
        "precomputed": (kernels.gram(X, kernel=kernel), kernels.Precomputed()),
        "callable": (X, lambda A, B: kernels.gram(A, B, kernel)),
        "far away": (X + 1e6, kernel),
    }[form]
    np.testing.assert_allclose(svm.tune(data, y, **options, kernel=given).fold_errors, expected, rtol=1e-4)


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
