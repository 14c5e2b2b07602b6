"""What reviews of ridge regression and graphs found, once mended."""

import numpy as np
import pytest

from kernelrules import graph, kernels, ridge

INDEFINITE = np.array([[0.0, 1.0], [1.0, 0.0]])


def noise(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.normal(size=n)


def test_conjugate_gradients_at_a_noise_below_float32():
    """Kernel values in float32 would drown λn: the iterations work in float64 then."""
    X, y = noise(2000, 5)
    kernel = kernels.RBF(0.01)
    best = ridge.fit(X, y, 1e-9, kernel, solver="exact").certificate
    found = ridge.fit(X, y, 1e-9, kernel, solver="cg", max_iter=300).certificate
    assert found.converged
    assert found.primal <= best.primal * (1 + 1e-6)


@pytest.mark.filterwarnings("ignore::kernelrules.ridge.ConvergenceWarning")
@pytest.mark.parametrize("lam", [1e-16, 1e-20])
def test_conjugate_gradients_never_end_worse_than_they_began(lam):
    X, y = noise(300, 4)
    found = ridge.fit(X, y, lam, kernels.Linear(), solver="cg", max_iter=50).certificate
    assert found.primal <= np.mean(y**2) * (1 + 1e-12)


def test_rounding_of_eigenvalues_is_no_degree_of_freedom():
    X, y = noise(30, 3)
    lams = [1e-2, 1e-10, 1e-16, 1e-20]
    by_kernel, by_features = (
        ridge.path(X, y, lams, kernels.Linear(), form=form, intercept=True) for form in ("kernel", "features")
    )
    np.testing.assert_allclose(by_kernel.dof, by_features.dof, rtol=1e-6)
    np.testing.assert_allclose(by_kernel.loo_errors, by_features.loo_errors, rtol=1e-5)
    assert by_kernel.best == by_features.best


@pytest.mark.filterwarnings("ignore::kernelrules.ridge.ConvergenceWarning")
def test_a_large_target_does_not_hide_that_a_small_one_has_not_converged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 1e5, 1e-5]
    small, large = X @ [1, 1e-5, 1e5], 1e3 * rng.normal(size=40)
    alone = ridge.fit(X, small, 1e-16, kernels.Linear(), form="features").certificate
    both = ridge.fit(X, np.c_[large, small], 1e-16, kernels.Linear(), form="features").certificate
    assert not alone.converged
    assert not both.converged


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_an_indefinite_matrix_is_refused_by_every_solver(solver):
    with pytest.raises(ValueError, match="not positive semi-definite: its smallest eigenvalue is -1 "):
        ridge.fit(INDEFINITE, [1.0, 2.0], 100.0, kernels.Precomputed(), solver=solver)


def test_an_indefinite_matrix_certifies_nothing():
    with pytest.raises(ValueError, match="its smallest eigenvalue is -1 "):
        ridge.certificate(INDEFINITE, [1.0, 2.0], 0.1, kernels.Precomputed(), alpha=[1.0, -1.0])


def test_a_path_names_the_eigenvalue_of_the_matrix_without_weights():
    with pytest.raises(ValueError, match="its smallest eigenvalue is -1 "):
        ridge.path(INDEFINITE, [1.0, 2.0], [0.1], kernels.Precomputed(), sample_weight=[1.0, 100.0])


def test_a_fit_keeps_points_of_its_own():
    X, y = noise(40, 3)
    for form in ("kernel", "features"):
        given = X.copy()
        found = ridge.fit(given, y, 1e-3, kernels.Polynomial(2), form=form)
        path = ridge.path(given, y, [1e-3], kernels.Polynomial(2), form=form)
        before = ridge.predict(found, X[:5])
        given[:] = 0
        np.testing.assert_array_equal(ridge.predict(found, X[:5]), before)
        np.testing.assert_array_equal(path.X, X)
        np.testing.assert_allclose(ridge.predict(ridge.at(path), X[:5]), before, atol=1e-9)


@pytest.mark.filterwarnings("ignore::kernelrules.ridge.ConvergenceWarning")
@pytest.mark.parametrize("form", ["features", "kernel", "dual", "rkhs"])
@pytest.mark.parametrize("lam", [1e-8, 1e-12, 1e-16])
def test_no_form_is_worse_than_a_constant(form, lam):
    rng = np.random.default_rng(0)
    rng.normal(size=(40, 3))
    X, y = rng.normal(size=(30, 4)) * [1, 1e3, 1e-3, 1], rng.normal(size=30)
    found = ridge.fit(X, np.c_[y, X[:, 0]], lam, kernels.Linear(), form=form, intercept=True)
    assert found.certificate.primal <= (y.var() + X[:, 0].var()) * (1 + 1e-12)
    assert found.certificate.gap <= (y.var() + X[:, 0].var()) * (1 + 1e-12)


def test_every_lam_of_a_path_must_fit_float64():
    X, y = noise(10, 2)
    with pytest.raises(ValueError, match="does not fit float64"):
        ridge.path(X, y, [1.0, 1e-100], kernels.Linear(), sample_weight=np.full(10, 1e-250))


@pytest.mark.parametrize(
    "call",
    [
        lambda: ridge.fit([[1.0], [2.0]], [1.0, 2.0], 1.0, kernels.Linear(), keep_factor="no"),
        lambda: graph.laplacian(INDEFINITE, normalised="no"),
        lambda: graph.fit(INDEFINITE, [1.0], 1.0, [0], normalised="no"),
    ],
    ids=["keep_factor", "laplacian", "fit"],
)
def test_words_are_not_flags(call):
    with pytest.raises(TypeError, match="must be True or False, got 'no'"):
        call()


@pytest.mark.filterwarnings("ignore::kernelrules.graph.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_a_huge_lam_gives_the_mean_of_the_labels(solver):
    """L leaves constants alone, so rounding loses them where λ is large; they are found from the labels."""
    X = np.random.default_rng(0).normal(size=(2000, 2))
    W = graph.knn_graph(X, 8)
    found = graph.fit(W, np.arange(20.0), 1e13, np.arange(20), solver=solver, unreached="nan")
    reached = np.isfinite(found.values)
    assert reached.mean() > 0.99
    np.testing.assert_allclose(found.values[reached], 9.5, atol=1e-6)


def test_a_lam_that_float64_cannot_hold_is_named():
    chain = np.diag(np.ones(5), 1)
    with pytest.raises(ValueError, match="lam"):
        graph.fit(chain + chain.T, [0.0, 3.0], 1e18, [0, 5], solver="direct")
