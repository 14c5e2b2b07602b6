"""Regularised risk: against scipy on the primal, closed forms, scikit-learn; gaps at any point; relations of fits."""

import dataclasses
import warnings

import erm_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit

from kernelrules import erm, kernels, losses
from kernelrules.erm import systems
from kernelrules.erm.newton import Problem, certify
from kernelrules.erm.systems import FeatureSystem, Gradient, GramSystem

SMOOTH = ("squared", "logistic", "squared_hinge", "exponential")
each_loss = pytest.mark.parametrize("loss", SMOOTH)
each_intercept = pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])


def noisy(n, p, seed=0, flip=0.15):
    """Two overlapping classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where((X[:, 0] + 0.5 * X[:, -1] > 0.2) ^ (rng.random(n) < flip), 1, -1)
    y[:2] = (-1, 1)
    return X, y


def objective(found, X, y, lam, loss, weight=None):
    """P of a fit of two classes from its own decision values and coefficients."""
    weight = np.ones(len(y)) if weight is None else weight
    u = np.where(np.asarray(y) == found.classes[1], 1, -1) * erm.decision(found, X)
    square = found.alpha[0] @ kernels.gram(X, kernel=found.kernel) @ found.alpha[0]
    return weight @ getattr(losses, loss)(u) / weight.sum() + lam * square


# ---- optimality ---------------------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    n, p = draw(st.integers(2, 14)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, p)) * draw(st.sampled_from([0.1, 1.0, 3.0]))
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 2)] = X[0]  # equal points, perhaps of unlike labels
    y = rng.choice([-1, 1], size=n)
    y[:2] = (-1, 1)
    weight = draw(st.sampled_from([None, rng.integers(0, 4, n) + 0.0, rng.random(n) + 0.01]))
    if weight is not None:
        weight[:2] += 0.5
    return X, y, weight


@given(
    problems(), st.sampled_from(SMOOTH), st.sampled_from([1e-3, 0.1, 10.0]), st.booleans(), st.sampled_from([1, 2]),
)  # fmt: skip
def test_least_risk_of_scipy(problem, loss, lam, intercept, degree):
    """BFGS in the space of the explicit features finds nothing lower, and the same function."""
    X, y, weight = problem
    kernel = kernels.Linear() if degree == 1 else kernels.Polynomial(2, 0.5, 1.0)
    phi = kernels.feature_map(kernel, X.shape[1]).transform(X)
    kept = np.ones(len(y), bool) if weight is None else weight > 0
    w, b, least = oracle.minimum(phi[kept], y[kept], lam, loss, None if weight is None else weight[kept], intercept)
    found = erm.fit(X, y, lam, kernel, loss, sample_weight=weight, intercept=intercept, tol=1e-12)
    c = found.certificate
    assert c.converged
    assert c.dual <= least * (1 + 1e-10)
    assert c.primal <= least * (1 + 1e-10)
    np.testing.assert_allclose(c.primal, least, rtol=1e-7)
    # λ‖f - g‖² is at most the excess of P, as P is 2λ-strongly convex in f
    reach = np.sqrt((1e-7 * least + 1e-12) / lam) * np.linalg.norm(phi, axis=1).max()
    if not intercept:
        np.testing.assert_allclose(erm.decision(found, X), phi @ w + b, atol=reach)


@given(problems(), st.sampled_from(SMOOTH), st.sampled_from([1e-6, 1e-3, 1.0]), st.booleans())
def test_coefficients_are_slopes_of_the_loss(problem, loss, lam, intercept):
    """The optimality conditions 2λW yᵢαᵢ/wᵢ = -L'(uᵢ) and, with an intercept, Σα = 0."""
    X, y, weight = problem
    found = erm.fit(X, y, lam, kernels.RBF(0.5), loss, sample_weight=weight, intercept=intercept, tol=1e-12)
    w = np.ones(len(y)) if weight is None else weight
    u = y * erm.decision(found, X)
    slope = getattr(losses, loss).derivative(u)
    np.testing.assert_allclose(
        2 * lam * w.sum() * y * found.alpha[0], -w * slope, atol=2e-4 * max(1.0, np.abs(slope).max())
    )
    if intercept:
        assert abs(found.alpha.sum()) <= 1e-6 * max(1.0, np.abs(found.alpha).sum())
    else:
        assert found.intercept[0] == 0
    assert (found.alpha[0, w == 0] == 0).all()
    gram = kernels.gram(X, kernel=found.kernel)
    np.testing.assert_allclose(found.norms[0], np.sqrt(found.alpha[0] @ gram @ found.alpha[0]), rtol=1e-6, atol=1e-9)


@each_loss
@each_intercept
@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), kernels.Linear(), kernels.Polynomial(2), kernels.Laplacian(5.0)])
@pytest.mark.parametrize("lam", [1e-12, 1e-6, 1e-2, 1.0, 1e6])
@pytest.mark.parametrize("separable", [False, True])
def test_extremes_of_lam_converge(loss, intercept, kernel, lam, separable):
    """No overflow, no warning, a small gap, in a bounded number of steps."""
    X, y = noisy(40, 3, flip=0.0 if separable else 0.15)
    found = erm.fit(X, y, lam, kernel, loss, intercept=intercept)
    c = found.certificate
    assert c.converged
    assert 0 <= c.gap <= 1e-8 * c.primal
    assert c.iterations <= 60
    assert np.isfinite(found.alpha).all()
    assert c.primal <= getattr(losses, loss)(0.0) * (1 + 1e-12), "no worse than f = 0"
    np.testing.assert_allclose(c.primal - c.dual, c.gap, atol=1e-15 * c.primal)


# ---- gaps ---------------------------------------------------------------------------------------------------------


def dual_value(a, K, y, lam, loss, share):
    v = 2 * lam * y * a / share
    return -(share @ getattr(losses, loss).conjugate(-v)) - lam * a @ K @ a


@given(problems(), st.sampled_from(SMOOTH), st.sampled_from([1e-3, 0.3]), st.booleans(), st.integers(0, 2**32 - 1))
def test_gap_at_any_point(problem, loss, lam, intercept, seed):
    """P - D ≥ 0 for every α and every feasible a; certify's dual is such a D, below the optimum."""
    X, y, weight = problem
    kept = slice(None) if weight is None else weight > 0
    X, y = X[kept], y[kept]
    weight = np.ones(len(y)) if weight is None else weight[kept]
    share, K = weight / weight.sum(), kernels.gram(X, kernel=kernels.RBF(0.5))
    rng = np.random.default_rng(seed)
    system = GramSystem(K, 1, lambda: None)
    of_loss = getattr(losses, loss)
    problem = Problem(system, of_loss, lam, y.astype(float), share, intercept)
    optimum = erm.fit(X, y, lam, kernels.RBF(0.5), loss, sample_weight=weight, intercept=intercept, tol=1e-12)
    best = optimum.certificate
    for _ in range(3):
        alpha, b = rng.normal(size=len(y)), rng.normal() if intercept else 0.0
        primal = share @ of_loss(y * (K @ alpha + b)) + lam * alpha @ K @ alpha
        c = certify(problem, alpha, b)
        np.testing.assert_allclose(c.primal, primal, rtol=1e-12)
        assert c.gap >= 0
        assert c.dual <= best.primal * (1 + 1e-9)
        assert c.primal >= best.dual * (1 - 1e-9)
        # any feasible dual point: slopes in the domain, and balanced where there is an intercept
        v = rng.random(len(y)) * (1 - 1e-9)
        if intercept:
            sides = [share[y == side] @ v[y == side] for side in (-1, 1)]
            v = np.where(y == 1, v * min(sides) / sides[1], v * min(sides) / sides[0])
        assert dual_value(share * y * v / (2 * lam), K, y, lam, loss, share) <= best.primal * (1 + 1e-9)


@each_loss
def test_the_two_gap_formulas(loss):
    """P - D by its definition equals λ‖f - f_a‖² for a from the slopes, without an intercept."""
    X, y = noisy(30, 3)
    lam, share, K = 0.05, np.full(30, 1 / 30), kernels.gram(X, kernel=kernels.RBF(0.3))
    alpha = 0.3 * np.random.default_rng(1).normal(size=30)
    of_loss = getattr(losses, loss)
    u = y * (K @ alpha)
    a = share * y * -of_loss.derivative(u) / (2 * lam)
    primal = share @ of_loss(u) + lam * alpha @ K @ alpha
    defined = primal - dual_value(a, K, y, lam, loss, share)
    np.testing.assert_allclose(defined, lam * (alpha - a) @ K @ (alpha - a), rtol=1e-9)
    c = certify(Problem(GramSystem(K, 1, lambda: None), of_loss, lam, y.astype(float), share, False), alpha)
    assert c.gap <= defined * (1 + 1e-12)
    np.testing.assert_allclose(c.kkt, np.abs(2 * lam * (K @ (alpha - a))).max())


@each_loss
@each_intercept
def test_certificates_of_both_systems(loss, intercept):
    """The same function by coefficients and by weights: the same objective, and gaps that both hold."""
    X, y = noisy(50, 4)
    lam, share = 0.02, np.random.default_rng(0).dirichlet(np.ones(50))
    theta = np.random.default_rng(1).normal(size=50) * 0.02
    dense, features = GramSystem(X @ X.T, 1, lambda: None), FeatureSystem(X, 1, lambda: None)
    sparse_features = FeatureSystem(sparse.csr_array(X), 1, lambda: None)
    of_loss = getattr(losses, loss)
    first, *others = (
        certify(Problem(system, of_loss, lam, y.astype(float), share, intercept), w, 0.1 if intercept else 0.0)
        for system, w in ((dense, theta), (features, X.T @ theta), (sparse_features, X.T @ theta))
    )
    curvature, a = np.random.default_rng(2).random(50), np.random.default_rng(3).normal(size=50)
    steps = []
    for system, w in ((dense, theta), (features, X.T @ theta), (sparse_features, X.T @ theta)):
        e = w - system.of_dual(a)
        delta, beta = system.step(curvature, Gradient(w, system.values(w), a, e, system.values(e)), intercept)
        steps.append(system.values(delta) + beta)
    for other, step in zip(others, steps[1:], strict=True):
        np.testing.assert_allclose((other.primal, other.kkt), (first.primal, first.kkt), rtol=1e-10)
        assert first.gap <= other.gap * (1 + 1e-9), "coefficients have one more dual point to choose from"
        np.testing.assert_allclose(step, steps[0], rtol=1e-8, atol=1e-10)


def exact_risk(Z, y, w, lam, loss):
    """P of weights on explicit features, in extended precision."""
    Z, w = Z.astype(np.longdouble), w.astype(np.longdouble)
    u = y * (Z @ w)
    value = {
        "squared": lambda: (1 - u) ** 2,
        "logistic": lambda: np.logaddexp(np.longdouble(0), -u),
        "squared_hinge": lambda: np.maximum(0, 1 - u) ** 2,
        "exponential": lambda: np.exp(-u),
    }[loss]()
    return float(value.mean() + lam * (w @ w))


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double has no more digits than double here")
@each_loss
@pytest.mark.parametrize("mean", [0.0, 5.0])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_gap_is_not_better_than_rounding_allows(loss, mean, scale):
    """Singular Gram matrices with huge values: what is certified is right in extended precision."""
    rng = np.random.default_rng(0)
    Z = (rng.normal(size=(60, 40)) + mean) * scale
    y = np.where(Z[:, 0] + scale * rng.normal(size=60) > mean * scale, 1, -1)
    for lam in (1e-10, 1e-8, 1e-6, 1e-4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", erm.ConvergenceWarning)
            by_weights = erm.fit(Z, y, lam, kernels.Linear(), loss)
            by_matrix = erm.fit(Z @ Z.T, y, lam, kernels.Precomputed(), loss)
        reached = exact_risk(Z, y, by_weights.weights[0], lam, loss)
        np.testing.assert_allclose(by_weights.certificate.primal, reached, rtol=1e-8)
        # of a fit that converged, the dual has the rounding of the primal objective
        assert by_matrix.certificate.dual <= reached * (1 + (1e-6 if by_matrix.certificate.converged else 1e-9))
        if by_matrix.certificate.converged:
            weights = Z.T.astype(np.longdouble) @ by_matrix.alpha[0]
            assert exact_risk(Z, y, weights, lam, loss) <= reached * (1 + 2e-8)


@each_intercept
def test_the_dual_of_a_fit_that_rounding_ended_is_a_lower_bound(intercept):
    """Where ‖f‖² is off by rounding, so is the primal objective: the dual must not be above the least risk for that."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(10, 60))
        Z = rng.normal(size=(n, 7 * n // 10)) + 5
        y = np.where(Z[:, 0] + rng.normal(size=n) > 5, 1, -1)
        y[:2] = (-1, 1)
        for scale, lam in ((1.0, 1e-8), (100.0, 1e-6), (100.0, 1e-4), (1e4, 0.01)):
            by_weights = erm.fit(scale * Z, y, lam, kernels.Linear(), "squared", intercept=intercept)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", erm.ConvergenceWarning)
                c = erm.fit(
                    scale**2 * Z @ Z.T, y, lam, kernels.Precomputed(), "squared", intercept=intercept
                ).certificate
            assert c.converged or c.dual <= by_weights.certificate.primal * (1 + 1e-9)


def test_unscaled_data_by_weights_and_by_the_matrix():
    """The matrix of 120 features of 200 points is singular, and 1e13 times λn: only the weights can be right."""
    X = np.random.default_rng(0).normal(5000, 1000, (200, 120))
    y = np.random.default_rng(1).choice([-1, 1], 200)
    found = erm.fit(X, y, 1e-6, kernels.Linear(), "squared")
    closed = np.linalg.lstsq(np.r_[X, np.sqrt(1e-6 * 200) * np.eye(120)], np.r_[y, np.zeros(120)], rcond=None)[0]
    np.testing.assert_allclose(found.weights[0], closed, rtol=1e-6, atol=1e-9)
    assert found.certificate.converged
    with pytest.warns(erm.ConvergenceWarning):
        lost = erm.fit(X @ X.T, y, 1e-6, kernels.Precomputed(), "squared")
    assert lost.certificate.gap > 1e-8 * lost.certificate.primal


# ---- closed forms and peers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [kernels.RBF(0.7), kernels.Linear()])
def test_squared_is_ridge(kernel):
    """α = (K + λn I)⁻¹ y, and the gap formula of ridge: (1/n)‖(K + λn I)α - y‖²."""
    X, y = noisy(40, 3)
    K, lam = kernels.gram(X, kernel=kernel), 0.01
    found = erm.fit(X, y, lam, kernel, "squared", tol=1e-14)
    closed = np.linalg.solve(K + lam * 40 * np.eye(40), y.astype(float))
    np.testing.assert_allclose(found.alpha[0], closed, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(erm.decision(found, X), K @ closed, atol=1e-9)
    rough = np.random.default_rng(0).normal(size=40)
    c = certify(
        Problem(GramSystem(K, 1, lambda: None), losses.squared, lam, y.astype(float), np.full(40, 1 / 40), False), rough
    )
    assert c.gap <= ((K @ rough + lam * 40 * rough - y) ** 2).mean() * (1 + 1e-12)


def test_squared_with_intercept_is_the_bordered_system():
    X, y = noisy(30, 2, seed=3)
    K, lam, n = kernels.gram(X, kernel=kernels.RBF(0.7)), 0.02, 30
    bordered = np.block([[K + lam * n * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.append(y, 0.0))
    found = erm.fit(X, y, lam, kernels.RBF(0.7), "squared", intercept=True, tol=1e-14)
    np.testing.assert_allclose(found.alpha[0], solution[:-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.intercept, solution[-1:], rtol=1e-6)


@each_intercept
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("lam", [1e-4, 0.1])
@pytest.mark.parametrize("n", [7, 20, 120])
def test_logistic_agrees_with_scikit_learn(intercept, degree, lam, n):
    """Σ wᵢ log(1 + e⁻ᵘ) + ‖w‖²/(2C) is ours times W for C = 1/(2λW); by features and by the Gram matrix."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = noisy(n, 4)
    weight = np.random.default_rng(0).integers(1, 4, n).astype(float)
    kernel = kernels.Linear() if degree == 1 else kernels.Polynomial(2, 0.3, 1.0)
    phi = kernels.feature_map(kernel, 4).transform(X)
    peer = linear_model.LogisticRegression(
        C=1 / (2 * lam * weight.sum()), fit_intercept=intercept, tol=1e-12, max_iter=10_000, solver="newton-cholesky"
    ).fit(phi, y, sample_weight=weight)
    found = erm.fit(X, y, lam, kernel, sample_weight=weight, intercept=intercept, tol=1e-13)
    assert (found.weights is None) == (phi.shape[1] > n)
    np.testing.assert_allclose(erm.decision(found, X), peer.decision_function(phi), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(erm.predict_proba(found, X), peer.predict_proba(phi), atol=1e-6)
    np.testing.assert_array_equal(erm.predict(found, X), peer.predict(phi))


def test_squared_hinge_agrees_with_scikit_learn():
    """LinearSVC minimises ½‖w‖² + C Σ L: C = 1/(2λn)."""
    svms = pytest.importorskip("sklearn.svm")
    X, y = noisy(80, 4)
    lam = 0.01
    peer = svms.LinearSVC(C=1 / (2 * lam * 80), fit_intercept=False, dual=False, tol=1e-12, max_iter=100_000).fit(X, y)
    found = erm.fit(X, y, lam, kernels.Linear(), "squared_hinge", tol=1e-13)
    np.testing.assert_allclose(erm.decision(found, X), peer.decision_function(X), atol=1e-6)


# ---- relations ----------------------------------------------------------------------------------------------------


@each_loss
@each_intercept
@pytest.mark.parametrize("kernel", [kernels.RBF(0.4), kernels.Linear()])
def test_weight_two_is_a_row_twice(loss, intercept, kernel):
    X, y = noisy(30, 3)
    weight = np.random.default_rng(0).integers(0, 4, 30)
    weight[:2] = 1
    copies = np.repeat(np.arange(30), weight)
    options = {"loss": loss, "intercept": intercept, "tol": 1e-13}
    one = erm.fit(X, y, 0.03, kernel, sample_weight=weight, **options)
    two = erm.fit(X[copies], y[copies], 0.03, kernel, **options)
    three = erm.fit(X, y, 0.03, kernel, sample_weight=7.5 * weight, **options)
    np.testing.assert_allclose(one.certificate.primal, two.certificate.primal, rtol=1e-11)
    for other in (two, three):
        np.testing.assert_allclose(erm.decision(one, X), erm.decision(other, X), atol=1e-6)


@each_loss
def test_order_of_rows_and_signs_of_labels_do_not_matter(loss):
    X, y = noisy(40, 3)
    order = np.random.default_rng(0).permutation(40)
    options = {"loss": loss, "intercept": True, "tol": 1e-13}
    one = erm.fit(X, y, 0.01, kernels.RBF(0.4), **options)
    other = erm.fit(X[order], y[order], 0.01, kernels.RBF(0.4), **options)
    swapped = erm.fit(X, -y, 0.01, kernels.RBF(0.4), **options)
    np.testing.assert_allclose(one.alpha[0, order], other.alpha[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(erm.decision(one, X), -erm.decision(swapped, X), atol=1e-6)


@each_loss
def test_scaling_the_kernel_is_scaling_lam(loss):
    """k' = s k has ‖f‖'² = ‖f‖²/s."""
    X, y = noisy(40, 3)
    K = kernels.gram(X, kernel=kernels.RBF(0.4))
    one = erm.fit(K, y, 0.01, kernels.Precomputed(), loss, tol=1e-13)
    other = erm.fit(1e4 * K, y, 0.01 * 1e4, kernels.Precomputed(), loss, tol=1e-13)
    np.testing.assert_allclose(erm.decision(one, K), erm.decision(other, 1e4 * K), atol=1e-6)
    np.testing.assert_allclose(one.certificate.primal, other.certificate.primal, rtol=1e-10)


@pytest.mark.parametrize(
    "kernel", [kernels.RBF(0.4), kernels.Linear(), kernels.Polynomial(2, 0.5), kernels.Laplacian(0.4)]
)
@pytest.mark.parametrize("labels", [2, 3])
def test_forms_of_data_agree(kernel, labels):
    """Dense, CSR, float32, Fortran order, data given as a matrix or by a function: one model."""
    X, y = noisy(36, 3)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32).astype(np.float64)
    y = y if labels == 2 else np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])
    one = erm.fit(X, y, 0.01, kernel, tol=1e-12)
    K = kernels.gram(X, kernel=kernel)
    wanted = erm.decision(one, X)
    for form in (sparse.csr_array, sparse.csc_matrix, np.float32, np.asfortranarray, lambda a: a.tolist()):
        other = erm.fit(form(X), y, 0.01, kernel, tol=1e-12)
        np.testing.assert_allclose(erm.decision(other, X), wanted, atol=1e-5)
        np.testing.assert_allclose(erm.decision(other, form(X)), wanted, atol=1e-4)
    given = erm.fit(K, y, 0.01, kernels.Precomputed(), tol=1e-12)
    np.testing.assert_allclose(erm.decision(given, K), wanted, atol=1e-5)
    assert given.X is None
    asked = erm.fit(X, y, 0.01, lambda a, b: kernels.gram(a, b, kernel), tol=1e-12)
    np.testing.assert_allclose(erm.decision(asked, X), wanted, atol=1e-5)


def test_a_column_less_or_more_of_sparse_data():
    """Features that never occur change nothing, however many they are."""
    X, y = noisy(60, 3)
    wide = sparse.hstack([sparse.csr_array(X), sparse.csr_array((60, 100_000))], format="csr")
    for kernel in (kernels.Linear(), kernels.RBF(0.3)):
        one, other = erm.fit(X, y, 0.01, kernel, tol=1e-12), erm.fit(wide, y, 0.01, kernel, tol=1e-12)
        np.testing.assert_allclose(erm.decision(one, X), erm.decision(other, wide), atol=1e-5)


@each_loss
def test_gram_matrix_and_features_find_the_same(loss):
    X, y = noisy(60, 3)
    for intercept in (False, True):
        few = erm.fit(X, y, 1e-3, kernels.Linear(), loss, intercept=intercept, tol=1e-13)
        many = erm.fit(X @ X.T, y, 1e-3, kernels.Precomputed(), loss, intercept=intercept, tol=1e-13)
        assert few.weights.shape == (1, 3)
        assert many.weights is None
        np.testing.assert_allclose(few.weights @ few.weights.T, few.norms[:, None] ** 2)
        np.testing.assert_allclose(X.T @ few.alpha[0], few.weights[0], atol=1e-6)
        np.testing.assert_allclose(erm.decision(few, X), erm.decision(many, X @ X.T), atol=1e-6)
        np.testing.assert_allclose(few.norms, many.norms, rtol=1e-6)


@each_loss
@each_intercept
@pytest.mark.parametrize("lam", [1e5, 1e9, 1e12])
def test_a_large_lam_leaves_a_direction(loss, intercept, lam):
    """f = 0 is within tol of the best, but says nothing: f goes along the slopes at 0, -L'(0)/(2λn) Σ yᵢ k(xᵢ, ·)."""
    X, y = noisy(60, 3)
    few = erm.fit(X, y, lam, kernels.Linear(), loss, intercept=intercept)
    many = erm.fit(X @ X.T, y, lam, kernels.Precomputed(), loss, intercept=intercept)
    if not intercept:
        steepest = -getattr(losses, loss).derivative(0.0) / (2 * lam * 60) * (y @ X)
        np.testing.assert_allclose(few.weights[0], steepest, rtol=1e-3)
    np.testing.assert_allclose(few.alpha[0] @ X, few.weights[0], rtol=1e-3)
    scale = np.abs(erm.decision(many, X @ X.T) - many.intercept).max()
    np.testing.assert_allclose(
        erm.decision(few, X) - few.intercept, erm.decision(many, X @ X.T) - many.intercept, atol=1e-3 * scale
    )


@pytest.mark.parametrize("kernel", [kernels.RBF(0.3), kernels.Linear()], ids=repr)
def test_threads_give_the_same_bits(kernel):
    X, y = noisy(700 if kernel != kernels.Linear() else 9000, 5)
    one, two = (erm.fit(X, y, 1e-3, kernel, intercept=True, n_threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.alpha, two.alpha)
    np.testing.assert_array_equal(one.intercept, two.intercept)
    assert one.certificate == two.certificate


def test_more_classes_are_one_against_the_rest():
    X, _ = noisy(90, 3)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    found = erm.fit(X, y, 1e-3, kernels.RBF(0.4), intercept=True)
    assert erm.decision(found, X).shape == (90, 3)
    for k, label in enumerate("abc"):
        alone = erm.fit(X, y == label, 1e-3, kernels.RBF(0.4), intercept=True)
        np.testing.assert_array_equal(found.alpha[k], alone.alpha[0])
        assert found.certificates[k] == alone.certificate
    assert found.certificate in found.certificates
    assert (erm.predict(found, X) == y).mean() > 0.95
    p = erm.predict_proba(found, X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    shares = expit(erm.decision(found, X))
    np.testing.assert_allclose(p, shares / shares.sum(axis=1, keepdims=True))
    far = np.full((1, 3), 1e6)
    assert np.isfinite(erm.predict_proba(found, far)).all()


@each_loss
def test_duplicates_of_unlike_labels(loss):
    """K of rank 1, labels that contradict each other: f is the best constant on the one point there is."""
    X, y = np.ones((8, 2)), np.array([1, 1, 1, 1, 1, 1, -1, -1])
    found = erm.fit(X, y, 1e-9, kernels.RBF(1.0), loss, tol=1e-12)
    best = {"squared": 0.5, "squared_hinge": 0.5, "logistic": np.log(3), "exponential": np.log(3) / 2}[loss]
    np.testing.assert_allclose(erm.decision(found, X), best, rtol=1e-5)
    assert found.certificate.converged
    even = erm.fit(X, [0, 1] * 4, 0.1, kernels.RBF(1.0), loss)  # f = 0, and yet its dual solution is not
    slope = abs(getattr(losses, loss).derivative(0.0))
    np.testing.assert_allclose(even.alpha[0], np.tile([-1.0, 1.0], 4) * slope / (2 * 0.1 * 8))
    for lam in (1e-6, 1e-9):  # though λ‖f_a‖², which is 0, has large terms
        tiny = erm.fit(X, [0, 1] * 4, lam, kernels.RBF(1.0), loss, tol=1e-12 if lam == 1e-6 else 1e-8)
        assert tiny.certificate.converged
        np.testing.assert_allclose(erm.decision(tiny, X), 0.0, atol=1e-6)


def test_a_loss_of_ones_own():
    """A frozen Loss is the whole contract: here the logistic one with twice the slope."""
    steep = losses.Loss(
        "steep",
        lambda u: losses.logistic(2 * u) / 2,
        lambda u: losses.logistic.derivative(2 * u),
        lambda u: 2 * losses.logistic.second(2 * u),
        lambda s: losses.logistic.conjugate(s) / 2,
        (-1.0, 0.0),
        True,
        "log(1 + e⁻²ᵘ) / 2",
    )
    X, y = noisy(40, 3)
    found = erm.fit(X, y, 0.01, kernels.RBF(0.4), steep, tol=1e-12)
    scaled = erm.fit(X, y, 0.005, kernels.RBF(0.4), "logistic", tol=1e-12)  # in 2f: ½ (Σ L + (λ/2)‖2f‖²)
    np.testing.assert_allclose(2 * erm.decision(found, X), erm.decision(scaled, X), atol=1e-5)
    np.testing.assert_allclose(2 * found.certificate.primal, scaled.certificate.primal, rtol=1e-9)


def test_a_loss_of_ones_own_has_a_name_of_its_own():
    """Else it would get the probabilities of the logistic loss."""
    X, y = noisy(20, 2)
    posing = dataclasses.replace(losses.squared, name="logistic")
    with pytest.raises(ValueError, match="but has its name, 'logistic'"):
        erm.fit(X, y, 0.1, kernels.RBF(1.0), posing)


def test_spam():
    """Real data: as good as the support vector machine, and the certificate holds."""
    from kernelrules import datasets, svm

    X, y, _, _ = datasets.spambase()
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:600], order[600:2000]
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    kernel = kernels.RBF("auto")
    found = erm.fit(X[train], y[train], 1e-4, kernel, intercept=True)
    machine = svm.svc(X[train], y[train], C=10.0, kernel=kernel)
    ours, theirs = (erm.predict(found, X[test]) == y[test]).mean(), (svm.predict(machine, X[test]) == y[test]).mean()
    assert ours > theirs - 0.02
    assert ours > 0.88


@each_intercept
@pytest.mark.parametrize("loss", ["logistic", "exponential", "squared_hinge"])
def test_old_factors_serve_new_steps(loss, intercept, monkeypatch):
    """Conjugate gradients with the factor of an earlier step: fewer factors, the same optimum."""
    X, y = noisy(600, 3, flip=0.3)
    counts, fits, factored = [], [], systems._factored
    for products in (systems._ROWS_PER_PRODUCT, 10**9):
        made = []
        monkeypatch.setattr(systems, "_ROWS_PER_PRODUCT", products)
        monkeypatch.setattr(systems, "_factored", lambda *a, made=made: made.append(len(a[0])) or factored(*a))
        fits.append(erm.fit(X, y, 1e-3, kernels.RBF(0.4), loss, intercept=intercept, tol=1e-11))
        counts.append(len(made))
    assert fits[0].certificate.converged
    assert counts[1] == fits[1].certificate.iterations
    assert counts[0] < counts[1] or loss == "squared_hinge", "whose active points change"
    np.testing.assert_allclose(fits[0].certificate.primal, fits[1].certificate.primal, rtol=1e-10)
    np.testing.assert_allclose(erm.decision(fits[0], X), erm.decision(fits[1], X), atol=1e-3)
