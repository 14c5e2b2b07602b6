"""The certificate is that of the model that predicts: its primal is made again from decision values alone."""

import numpy as np
import pytest

from kernelrules import estimators, kernels, persist, svm

KINDS = ("svc", "nu_svc", "svr", "nu_svr", "one_class")
KERNELS = (kernels.RBF(0.3), kernels.Linear(), kernels.Polynomial(2, 0.5, 1.0))
NU = 0.8
each_kind = pytest.mark.parametrize("kind", KINDS)
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def rows(n=120, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 - 0.5 + 0.7 * rng.normal(size=n)


def fit(kind, X, y, **options):
    if kind == "one_class":
        options.pop("C", None)
        return svm.one_class(X, nu=NU, **options)
    if "nu" in kind:
        options["nu"] = NU
    return svm.svr(X, y, **options) if "svr" in kind else svm.svc(X, y > 0, **options)


def primal(model, f, y, weight=None, machine=0):
    """½‖w‖² and the hinges of the decision values f: the objective as the documentation prints it."""
    weight = np.ones(len(f)) if weight is None else weight
    c, b, total = model.dual_coef[machine], model.intercept[machine], weight.sum()
    half = 0.5 * c @ (f[model.support] - b)
    match model.kind:
        case "svc":
            return half + model.C * weight @ np.maximum(0, 1 - y * f)
        case "nu_svc":  # in the units of its margin
            C = np.abs(c).sum() / (NU * total)
            return half + C * (weight @ np.maximum(0, 1 - y * f) - NU * total)
        case "svr":
            return half + model.C * weight @ np.maximum(0, np.abs(y - f) - model.epsilon)
        case "nu_svr":
            above, below = (np.maximum(0, side * (y - f) - model.epsilon) for side in (1, -1))
            return half + model.C * (NU * total * model.epsilon + weight @ (above + below))
        case "one_class":
            return half + NU * total * b + weight @ np.maximum(0, -f)


def check_primal(model, X, y, weight=None, rtol=1e-9):
    target = y if "svr" in model.kind else np.where(y > 0, 1.0, -1.0)
    again = primal(model, svm.decision(model, X), target, weight)
    certificate = model.certificate
    scale = max(abs(certificate.primal), abs(certificate.dual))
    np.testing.assert_allclose(certificate.primal, again, rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(certificate.gap, certificate.primal - certificate.dual, rtol=0, atol=1e-14 * scale)
    assert certificate.gap >= -1e-9 * scale


@each_kind
@each_kernel
@pytest.mark.parametrize("tol", [0.3, 1e-3])
def test_primal_is_that_of_the_decision_values(kind, kernel, tol):
    """A large tolerance leaves the model's constant apart from the one that is best for its w."""
    X, y = rows()
    check_primal(fit(kind, X, y, C=3.0, kernel=kernel, tol=tol), X, y)


@each_kind
def test_of_weighted_and_of_few_digits(kind):
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=len(X))
    check_primal(fit(kind, X, y, sample_weight=weight, kernel=KERNELS[0], tol=0.1), X, y, weight)
    narrow = X.astype(np.float32)
    check_primal(fit(kind, narrow, y, kernel=KERNELS[0], tol=0.1), narrow, y, rtol=1e-5)
    far = X + 1e5
    check_primal(fit(kind, far, y, kernel=kernels.Linear(), tol=0.1), far, y, rtol=1e-6)


@each_kind
def test_of_a_machine_that_stopped_early(kind):
    X, y = rows()
    with pytest.warns(svm.ConvergenceWarning):
        model = fit(kind, X, y, C=10.0, kernel=KERNELS[0], tol=1e-8, max_iter=30)
    check_primal(model, X, y)


@pytest.mark.parametrize(
    "kernel", [kernels.RBF(0.2), kernels.Polynomial(2, 1.0, 1.0), kernels.Laplacian(0.2)], ids=repr
)
def test_of_float32_data_and_large_costs(kernel):
    """Coefficients near C multiply the rounding of float32 kernel values: predictions have those of float64."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=60)
    check_primal(svm.svc(X, y > 0.3, C=1e5, kernel=kernel, tol=1e-3), X, y - 0.3, rtol=1e-6)
    check_primal(svm.svr(X, y, C=1e5, kernel=kernel, tol=1e-3), X, y, rtol=1e-6)


@each_kind
def test_of_rows_in_float32(kind):
    X, y = rows(1500)
    check_primal(fit(kind, X, y, C=2.0, kernel=KERNELS[0], tol=0.1), X, y, rtol=1e-6)


def test_of_many_classes():
    X, y = rows(150)
    y = np.digitize(y, [-0.6, 0.4])
    for multiclass in ("ovo", "ovr"):
        model = svm.svc(X, y, C=2.0, kernel=KERNELS[0], multiclass=multiclass, tol=0.1)
        f = svm.decision(model, X)
        for m, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)] if multiclass == "ovo" else [(k, None) for k in range(3)]):
            own = np.ones(len(y), dtype=bool) if j is None else (y == i) | (y == j)
            signs = np.where(y == i, 1.0, -1.0)
            again = primal(model, f[:, m], signs, weight=own.astype(float), machine=m)
            np.testing.assert_allclose(model.certificates[m].primal, again, rtol=1e-9)


def test_of_starts_paths_budgets_and_searches(tmp_path):
    X, y = rows()
    first = svm.svc(X, y > 0, C=0.5, kernel=KERNELS[0], tol=0.1)
    models = [svm.svc(X, y > 0, C=5.0, kernel=KERNELS[0], tol=0.1, warm_start=first)]
    models += svm.path(X, y > 0, Cs=[0.1, 1.0, 10.0], kernel=KERNELS[0], tol=0.1)
    models.append(svm.budget(X, y > 0, 60.0, kernel=KERNELS[0], tol=0.1))
    models.append(svm.tune(X, y > 0, Cs=[1.0, 5.0], kernel=KERNELS[0], folds=3, rng=0, tol=0.1).model)
    models.append(estimators.KernelSVC(C=5.0, kernel=KERNELS[0], tol=0.1).fit(X, y > 0).model_)
    persist.save(models[0], tmp_path / "model.krz")
    models.append(persist.load(tmp_path / "model.krz"))
    assert not any(model.certificate.gap < 1e-6 for model in models)
    for model in models:
        check_primal(model, X, y)
