"""Linear machines on data far from the origin: the same problem as on the data moved back, and the same answers."""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from kernelrules import check, kernels, svm
from kernelrules.kernels.values import far_centre, linear_weights, product

LINEAR = kernels.Linear()
OFFSETS = [1e6, -1e8, 1e10]


def data(offset, n=300, p=5, seed=0):
    """Points around an offset, the same points moved back (the very numbers), a target, and new points of both."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    new = rng.normal(size=(60, p)) + offset
    y = (X - offset) @ [1.0, -2.0, 0.5, 0.0, 1.0] + rng.normal(size=n)
    return X, X - offset, y, new, new - offset


def near(offset):
    """How well a line that far away can be written down: a few units in the last place of its intercept."""
    return 1e-5 + 64 * np.finfo(float).eps * abs(offset)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("kind", ["svc", "nu_svc", "svr", "nu_svr"])
def test_moved_data_have_the_same_machine(kind, offset):
    X, back, y, new, new_back = data(offset)
    fit = {
        "svc": lambda X: svm.svc(X, y > 0, kernel=LINEAR, tol=1e-6),
        "nu_svc": lambda X: svm.svc(X, y > 0, nu=0.5, kernel=LINEAR, tol=1e-6),
        "svr": lambda X: svm.svr(X, y, kernel=LINEAR, tol=1e-6),
        "nu_svr": lambda X: svm.svr(X, y, nu=0.5, kernel=LINEAR, tol=1e-6),
    }[kind]
    far, here = fit(X), fit(back)
    assert far.certificate.converged
    assert far.certificate.iterations < 3 * here.certificate.iterations
    np.testing.assert_allclose(far.certificate.dual, here.certificate.dual, rtol=1e-5)
    np.testing.assert_allclose(far.certificate.primal, here.certificate.primal, rtol=1e-5)
    np.testing.assert_array_equal(far.support_vectors, X[far.support])
    np.testing.assert_allclose(svm.decision(far, new), svm.decision(here, new_back), atol=near(offset))


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("threads", [0, 2])
def test_several_classes(multiclass, threads):
    X, back, y, new, new_back = data(1e8)
    labels = np.digitize(y, [-1.0, 1.0])
    here = svm.svc(back, labels, kernel=LINEAR, multiclass=multiclass, tol=1e-6)
    if threads:
        with ThreadPoolExecutor(threads) as executor:
            far = svm.svc(X, labels, kernel=LINEAR, multiclass=multiclass, tol=1e-6, executor=executor)
    else:
        far = svm.svc(X, labels, kernel=LINEAR, multiclass=multiclass, tol=1e-6)
    np.testing.assert_allclose(svm.decision(far, new), svm.decision(here, new_back), atol=near(1e8))
    np.testing.assert_array_equal(svm.predict(far, new), svm.predict(here, new_back))
    np.testing.assert_allclose(2 / svm.margin(far), 2 / svm.margin(here), atol=1e-5)


def test_rows_of_weight_zero_and_warm_starts():
    X, back, y, new, new_back = data(1e8)
    weight = np.where(np.arange(300) % 7 == 0, 0.0, 1.0)
    far, here = (svm.svc(x, y > 0, kernel=LINEAR, tol=1e-6, sample_weight=weight) for x in (X, back))
    np.testing.assert_allclose(svm.decision(far, new), svm.decision(here, new_back), atol=near(1e8))
    again = svm.svc(X, y > 0, kernel=LINEAR, tol=1e-6, sample_weight=weight, warm_start=far)
    assert again.certificate.iterations < far.certificate.iterations / 10
    np.testing.assert_allclose(svm.decision(again, new), svm.decision(far, new), atol=near(1e8))


def test_float32_rows():
    X, _, y, new, _ = data(1e4)
    X, new = X.astype(np.float32), new.astype(np.float32)
    far = svm.svc(X, y > 0, kernel=LINEAR, tol=1e-6)
    here = svm.svc(X.astype(float) - 1e4, y > 0, kernel=LINEAR, tol=1e-6)
    assert far.support_vectors.dtype == np.float32
    np.testing.assert_allclose(svm.decision(far, new), svm.decision(here, new.astype(float) - 1e4), atol=1e-5)


def test_hard_margin_path_budget_and_tuning():
    X, back, y, new, new_back = data(1e8)
    apart = np.abs(y) > 2.5
    sure = y > 0
    hard = [svm.svc(x[apart], sure[apart], C=math.inf, kernel=LINEAR) for x in (X, back)]
    np.testing.assert_allclose(*[svm.margin(model) for model in hard], rtol=2e-3)
    np.testing.assert_array_equal(svm.predict(hard[0], X[apart]), sure[apart])
    for far, here in zip(*(svm.path(x, sure, [0.1, 10.0], kernel=LINEAR, tol=1e-6) for x in (X, back)), strict=True):
        np.testing.assert_allclose(svm.decision(far, new), svm.decision(here, new_back), atol=10 * near(1e8))
    spent = [svm.slacks(svm.budget(x, sure, 120.0, kernel=LINEAR), x, sure).values.sum() for x in (X, back)]
    np.testing.assert_allclose(spent, 120.0, rtol=2e-3)
    tuned = [svm.tune(x, sure, Cs=[0.01, 1.0], kernel=LINEAR, folds=np.arange(300) % 4) for x in (X, back)]
    np.testing.assert_allclose(tuned[0].mean, tuned[1].mean, atol=0.01)  # of rows nearly on the line
    np.testing.assert_array_equal(svm.predict(tuned[0].model, new), svm.predict(tuned[1].model, new_back))


def test_weights_of_the_columns():
    estimators = pytest.importorskip("kernelrules.estimators")
    X, back, y, new, _ = data(1e8)
    machine = estimators.KernelSVC(kernel="linear", tol=1e-6).fit(X, y > 0)
    here = estimators.KernelSVC(kernel="linear", tol=1e-6).fit(back, y > 0)
    np.testing.assert_allclose(machine.coef_, here.coef_, atol=1e-5)
    by_hand = new @ machine.coef_[0] + machine.intercept_[0]
    np.testing.assert_allclose(by_hand, machine.decision_function(new), atol=near(1e8))


@pytest.mark.parametrize("kind", ["svc", "svr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_certificate_is_of_the_model_that_predicts(kind, dtype):
    """Far from the origin in units of 1e-3 to 1e4, what coefficients lack of a sum of zero is multiplied by much."""
    rng = np.random.default_rng(1)
    units = np.array([1e2, 1e-3, 1e4, 1e3])
    X = (units * (rng.normal(size=(60, 4)) + (1e6 if dtype == np.float64 else 1e3))).astype(dtype)
    y = rng.normal(size=60)
    if kind == "svc":
        model = svm.svc(X, y > 0, C=10.0, kernel=LINEAR)
        lost = np.maximum(0, 1 - np.where(y > 0, 1, -1) * svm.decision(model, X))
    else:
        model = svm.svr(X, y, C=10.0, epsilon=0.1, kernel=LINEAR)
        lost = np.maximum(0, np.abs(svm.decision(model, X) - y) - 0.1)
    assert model.certificate.converged
    primal = 0.5 * np.square(model.weights).sum() + 10.0 * lost.sum()
    np.testing.assert_allclose(primal, model.certificate.primal, rtol=1e-5)


def test_one_class_stays_where_it_is():
    """Its answer depends on the origin: far away, on the direction to it."""
    X, back, *_ = data(1e3)
    far, here = (svm.one_class(x, nu=0.2, kernel=LINEAR) for x in (X, back + 3.0))
    assert far.certificate.dual < -1e5
    assert here.certificate.dual > -1e5


def test_what_is_far():
    X, back, *_ = data(1e8)
    np.testing.assert_allclose(far_centre(X), X.mean(axis=0), rtol=1e-15)
    assert far_centre(back) is None
    assert far_centre(back + 10.0) is None
    assert far_centre(np.zeros((3, 2))) is None
    assert far_centre(np.empty((0, 2))) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert far_centre(np.full((3, 2), 1e200)) is None
        with pytest.raises(ValueError, match="overflow"):
            svm.svc(np.full((3, 2), 1e200), [0, 1, 1], kernel=LINEAR)


def test_weights_are_sums_over_all_rows():
    """Also where the coefficients have another sum than zero."""
    X, *_ = data(1e6)
    rng = np.random.default_rng(1)
    coefficients = rng.normal(size=(2, 300))
    exact = np.array([[math.fsum(c * x for c, x in zip(row, column, strict=True)) for row in coefficients]
                      for column in X.T])  # fmt: skip
    np.testing.assert_allclose(linear_weights(X, coefficients), exact, rtol=1e-12)
    np.testing.assert_allclose(product(X[:5], X, LINEAR, coefficients, 1), X[:5] @ exact, rtol=1e-12)
    from_sparse = product(X[:5], check.matrix(sparse.csr_array(X)), LINEAR, coefficients, 1)
    np.testing.assert_allclose(from_sparse, X[:5] @ exact, rtol=1e-9)
