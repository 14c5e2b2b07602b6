"""Margins, slacks, budgets and warm starts of support vector machines, and what the lectures say of them."""

import numpy as np
import pytest
from machines import blobs, each_kind, fit
from scipy import optimize

from kernelrules import kernels, svm

# ---- margins and slacks -------------------------------------------------------------------------------------------


def test_margin_of_two_points():
    model = svm.svc([[0.0, 0.0], [3.0, 4.0]], [0, 1], C=100.0, kernel=kernels.Linear())
    assert isinstance(svm.margin(model), float)
    np.testing.assert_allclose(svm.margin(model), 5.0, rtol=1e-6)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_margins_of_many_machines(multiclass):
    X, y = blobs(60, 3)
    model = svm.svc(X, y, kernel=kernels.Linear(), multiclass=multiclass)
    w = model.dual_coef @ model.support_vectors
    np.testing.assert_allclose(svm.margin(model), 2 / np.linalg.norm(w, axis=1), rtol=1e-9)


def test_the_three_cases_of_a_slack():
    """f(x) = x exactly, from two points; the boundary has slack 1 exactly, and counts as wrong for both classes."""
    model = svm.svc([[-1.0], [1.0]], ["no", "yes"], C=10.0, kernel=kernels.Linear())
    x = np.array([[3.0], [1.0], [0.25], [0.0], [-0.5]])
    positive = svm.slacks(model, x, ["yes"] * 5)
    np.testing.assert_allclose(positive.values, [0, 0, 0.75, 1, 1.5], atol=1e-12)
    assert positive.values[3] == 1.0
    np.testing.assert_array_equal(positive.case, [0, 0, 1, 2, 2])
    negative = svm.slacks(model, -x, ["no"] * 5)
    np.testing.assert_allclose(negative.values, [0, 0, 0.75, 1, 1.5], atol=1e-12)
    assert negative.values[3] == 1.0
    np.testing.assert_array_equal(negative.case, [0, 0, 1, 2, 2])


def test_slacks_add_up_to_the_primal():
    X, y = blobs(k=2, spread=2.0)
    model = svm.svc(X, y, C=0.7, tol=1e-8)
    found = svm.slacks(model, X, y)
    w_squared = (2 / svm.margin(model)) ** 2
    np.testing.assert_allclose(0.5 * w_squared + 0.7 * found.values.sum(), model.certificate.primal, rtol=1e-6)
    wrong = svm.predict(model, X) != y
    assert {0, 1, 2} == set(found.case)
    np.testing.assert_array_equal(found.case == 2, wrong)
    np.testing.assert_array_equal(found.case == 0, found.values <= max(model.certificate.kkt, 1e-12))
    assert ((found.case == 0) & (found.values > 0)).any(), "no support vector on the margin but for rounding"
    np.testing.assert_array_equal(np.asarray(found), found.values)


@pytest.mark.parametrize("budget", [10.5, 14.0, 20.0])
def test_budget_is_the_widest_margin_that_it_pays_for(budget):
    """Against the problem as the statistics books write it, by a general optimiser."""
    X, y = blobs(24, 2, seed=4, spread=2.0)
    sign = np.where(y == 1, 1.0, -1.0)
    model = svm.budget(X, y, budget, kernel=kernels.Linear(), tol=1e-6)
    spent = svm.slacks(model, X, y).values.sum()
    assert spent <= budget * (1 + 1e-6)
    n, p = X.shape
    best = optimize.minimize(
        lambda v: 0.5 * v[:p] @ v[:p],
        np.r_[np.zeros(p + 1), np.ones(n)],
        jac=lambda v: np.r_[v[:p], np.zeros(n + 1)],
        method="SLSQP",
        bounds=[(None, None)] * (p + 1) + [(0, None)] * n,
        constraints=[
            {"type": "ineq", "fun": lambda v: sign * (X @ v[:p] + v[p]) - 1 + v[p + 1 :]},
            {"type": "ineq", "fun": lambda v: budget - v[p + 1 :].sum()},
        ],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert best.success
    np.testing.assert_allclose(svm.margin(model), 2 / np.linalg.norm(best.x[:p]), rtol=3e-3)


def test_a_larger_budget_is_a_wider_margin():
    X, y = blobs(40, 2, seed=4, spread=2.0)
    margins = [svm.margin(svm.budget(X, y, b, kernel=kernels.RBF(0.5))) for b in (1.0, 5.0, 10.0, 20.0)]
    assert (np.diff(margins) > 0).all()


def pairs(k):
    return [(i, j) for i in range(k) for j in range(i + 1, k)]


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_slacks_of_many_classes_are_those_of_the_machines(multiclass):
    """Each column by its definition; a machine of two classes has nothing to say of a third."""
    X, y = blobs(90, 3, spread=2.0)
    names = np.array(["a", "b", "c"])
    model = svm.svc(X, names[y], C=0.7, tol=1e-8, multiclass=multiclass)
    found, f = svm.slacks(model, X, names[y]), svm.decision(model, X)
    sides = pairs(3) if multiclass == "ovo" else [(i, None) for i in range(3)]
    assert found.values.shape == found.case.shape == (90, 3)
    assert found.case.dtype.kind == "i"
    for m, (first, second) in enumerate(sides):
        known = np.ones(90, bool) if second is None else (y == first) | (y == second)
        sign = np.where(y == first, 1.0, -1.0)
        xi = np.maximum(0, 1 - sign * f[:, m])
        np.testing.assert_array_equal(np.isnan(found.values[:, m]), ~known)
        np.testing.assert_array_equal(found.case[:, m] == -1, ~known)
        np.testing.assert_allclose(found.values[known, m], xi[known], atol=1e-12)
        np.testing.assert_array_equal(found.case[known, m] == 2, xi[known] >= 1)
        w_squared = (2 / svm.margin(model)[m]) ** 2
        spent = np.nansum(found.values[:, m])
        np.testing.assert_allclose(0.5 * w_squared + 0.7 * spent, model.certificates[m].primal, rtol=1e-6)
    assert "3 machines" in repr(found)
    assert "nan" not in repr(found)


@pytest.mark.parametrize("options", [{}, {"cache_mb": 0.02}], ids=["shared kernel values", "their own"])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_budgets_of_many_classes_are_those_of_the_machines(multiclass, options):
    X, y = blobs(90, 3, spread=2.0)
    budgets = [8.0, 14.0, 20.0]
    model = svm.budget(X, y, budgets, kernel=kernels.RBF(0.3), multiclass=multiclass, tol=1e-6, **options)
    spent = np.nansum(svm.slacks(model, X, y).values, axis=0)
    assert (spent <= np.array(budgets) * (1 + 1e-6)).all()
    assert (spent >= np.array(budgets) * 0.998).all()
    assert model.C is None
    sides = pairs(3) if multiclass == "ovo" else [(i, None) for i in range(3)]
    for m, (first, second) in enumerate(sides):
        known = np.ones(90, bool) if second is None else (y == first) | (y == second)
        two = svm.budget(X[known], y[known] == first, budgets[m], kernel=kernels.RBF(0.3), tol=1e-6)
        np.testing.assert_allclose(model.Cs[m], two.C, rtol=1e-3)
        np.testing.assert_allclose(svm.decision(model, X)[:, m], svm.decision(two, X), atol=1e-3)
    same = svm.budget(X, y, 14.0, kernel=kernels.RBF(0.3), multiclass=multiclass, tol=1e-6, **options)
    np.testing.assert_allclose(same.Cs[1], model.Cs[1], rtol=1e-12)


def test_costs_of_nu_machines_of_many_classes():
    """Each machine is the one of its own C."""
    X, y = blobs(90, 3, spread=2.0)
    model = svm.svc(X, y, nu=0.3, kernel=kernels.RBF(0.3), tol=1e-6)
    assert model.C is None
    for m, (i, j) in enumerate(pairs(3)):
        known = (y == i) | (y == j)
        one = svm.svc(X[known], y[known] == i, C=model.Cs[m], kernel=kernels.RBF(0.3), tol=1e-6)
        np.testing.assert_allclose(svm.decision(one, X), svm.decision(model, X)[:, m], atol=1e-3)


# ---- warm starts --------------------------------------------------------------------------------------------------


def test_warm_start_from_the_answer_has_nothing_to_do():
    X, y = blobs(120, 2, spread=1.5)
    cold = svm.svc(X, y, C=5.0)
    again = svm.svc(X, y, C=5.0, warm_start=cold)
    assert again.certificate.iterations <= 2 < cold.certificate.iterations
    np.testing.assert_allclose(svm.decision(again, X), svm.decision(cold, X), atol=1e-2)


@pytest.mark.parametrize("change", ["C up", "C down", "gamma", "rows", "weights"])
@pytest.mark.parametrize("k", [2, 3])
def test_warm_start_finds_the_same_optimum(change, k):
    X, y = blobs(90, k, spread=1.5)
    kernel, C, rows, weight = kernels.RBF(0.5), 2.0, slice(None), None
    match change:
        case "C up":
            C = 50.0
        case "C down":
            C = 0.1
        case "gamma":
            kernel = kernels.RBF(2.0)
        case "weights":
            weight = np.linspace(0.1, 3, 90)
        case "rows":
            rows = slice(60)
    start = svm.svc(X[rows], y[rows], C=2.0, kernel=kernels.RBF(0.5), tol=1e-7)
    options = {"C": C, "kernel": kernel, "sample_weight": weight, "tol": 1e-7}
    warm = svm.svc(X, y, warm_start=start, **options)
    cold = svm.svc(X, y, **options)
    for a, b in zip(warm.certificates, cold.certificates, strict=True):
        assert a.converged
        np.testing.assert_allclose(a.dual, b.dual, rtol=1e-6)
    np.testing.assert_allclose(svm.decision(warm, X), svm.decision(cold, X), atol=1e-4)


def test_warm_start_of_regression():
    X, _ = blobs(80, 2)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    start = svm.svr(X[:60], y[:60], C=1.0, tol=1e-7)
    for X_, y_ in ((X[:60], y[:60]), (X, y)):
        warm = svm.svr(X_, y_, C=4.0, kernel=start.kernel, warm_start=start, tol=1e-7)
        cold = svm.svr(X_, y_, C=4.0, kernel=start.kernel, tol=1e-7)
        np.testing.assert_allclose(warm.certificate.dual, cold.certificate.dual, rtol=1e-6)
        np.testing.assert_allclose(svm.decision(warm, X), svm.decision(cold, X), atol=1e-4)


# ---- what the lectures say ----------------------------------------------------------------------------------------


def test_xor_needs_the_quadratic_kernel():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    y = np.array([0, 0, 1, 1])
    quadratic = svm.svc(X, y, C=1e3, kernel=kernels.Polynomial(2, 1.0, 1.0))
    np.testing.assert_array_equal(svm.predict(quadratic, X), y)
    linear = svm.svc(X, y, C=1e3, kernel=kernels.Linear())
    assert (svm.predict(linear, X) != y).any()


@pytest.mark.parametrize("kernel", [kernels.Polynomial(2, 1.0, 1.0), kernels.Polynomial(3, 0.5, 2.0)])
@each_kind()
def test_explicit_features_are_the_polynomial_kernel(kind, kernel):
    X, y = blobs(40, 2, spread=1.0)
    X = X / 3
    phi = kernels.feature_map(kernel, 2)
    implicit = fit(kind, X, y, nu=0.4, kernel=kernel, tol=1e-7)
    explicit = fit(kind, phi.transform(X), y, nu=0.4, kernel=kernels.Linear(), tol=1e-7)
    np.testing.assert_allclose(implicit.certificate.dual, explicit.certificate.dual, rtol=1e-6)
    new = X[:9] + 0.05
    np.testing.assert_allclose(svm.decision(implicit, new), svm.decision(explicit, phi.transform(new)), atol=1e-4)


@pytest.mark.parametrize("lam", [0.2, 1.0, 5.0])
def test_hinge_and_ridge_is_the_same_problem(lam):
    """min Σ(1 - y f)+ + λ/2 |w|² over w and b, with a slack a point for a smooth optimiser; λ = 1/C."""
    X, y = blobs(24, 2, seed=7, spread=2.0)
    sign = np.where(y == 1, 1.0, -1.0)
    n, p = X.shape
    best = optimize.minimize(
        lambda v: v[p + 1 :].sum() + lam / 2 * v[:p] @ v[:p],
        np.r_[np.zeros(p + 1), np.ones(n)],
        jac=lambda v: np.r_[lam * v[:p], 0.0, np.ones(n)],
        method="SLSQP",
        bounds=[(None, None)] * (p + 1) + [(0, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda v: sign * (X @ v[:p] + v[p]) - 1 + v[p + 1 :],
            "jac": lambda v: np.c_[sign[:, None] * X, sign, np.eye(n)],
        },
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert best.success
    model = svm.svc(X, y, C=1 / lam, kernel=kernels.Linear(), tol=1e-8)
    np.testing.assert_allclose(lam * model.certificate.primal, best.fun, rtol=1e-7)
    np.testing.assert_allclose(model.dual_coef @ model.support_vectors, [best.x[:p]], atol=1e-4)


def test_nu_bounds_the_shares():
    """ν is at most the share of support vectors and at least the share of margin errors."""
    X, y = blobs(200, 2, spread=1.5)
    for nu in (0.1, 0.3, 0.6):
        model = svm.svc(X, y, nu=nu, tol=1e-6)
        assert len(model.support) / 200 >= nu - 1e-9
        margins = np.where(y == 1, 1, -1) * svm.decision(model, X)
        assert (margins < 1 - 1e-5 * np.abs(model.dual_coef).max()).mean() <= nu  # tol, divided by ρ
        outliers = svm.one_class(X, nu=nu, tol=1e-6)
        assert len(outliers.support) / 200 >= nu - 1e-9
        assert (svm.decision(outliers, X) < -1e-4).mean() <= nu
        tube = svm.svr(X, X[:, 0] * X[:, 1], nu=nu, tol=1e-6)
        assert len(tube.support) / 200 >= nu - 1e-9
