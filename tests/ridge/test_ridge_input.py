"""What users pass to ridge: a clear error or a right answer."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import csr_forms, layouts

from kernelrules import check, erm, graph, kernels, results, ridge, svm
from kernelrules.ridge import definite

X = np.random.default_rng(0).normal(size=(8, 3))
Y = np.arange(8.0)


def fit(**change):
    return ridge.fit(**({"X": X, "y": Y, "lam": 0.1, "kernel": kernels.RBF(0.5)} | change))


def with_entry(array, place, value):
    changed = np.array(array, dtype=float)
    changed[place] = value
    return changed


SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])

REFUSED = [
    ({"lam": 0.0}, ValueError, "lam must be greater than 0"),
    ({"lam": -1.0}, ValueError, "lam must be greater than 0"),
    ({"lam": np.nan}, ValueError, "lam must be finite"),
    ({"lam": np.inf}, ValueError, "lam must be finite"),
    ({"lam": "0.1"}, TypeError, "lam must be a number"),
    ({"lam": 1e101}, ValueError, "lam must be between 1e-100 and 1e.100, got 1e.101"),
    ({"lam": 1e-101}, ValueError, "lam must be between 1e-100 and 1e.100, got 1e-101"),
    ({"lam": 1e99, "sample_weight": np.full(8, 1e250)}, ValueError, "does not fit float64"),
    ({"lam": 1e-99, "sample_weight": np.full(8, 1e-250)}, ValueError, "does not fit float64"),
    ({"X": 1e160 * X, "kernel": kernels.RBF()}, ValueError, "variance of X"),
    ({"y": Y[:5]}, ValueError, "y has 5 entries but X has 8 rows"),
    ({"y": np.ones((5, 2))}, ValueError, "y has 5 rows but X has 8"),
    ({"y": with_entry(Y, 3, np.nan)}, ValueError, "y holds nan at position 3"),
    ({"y": with_entry(np.ones((8, 2)), (3, 1), np.inf)}, ValueError, "y holds inf at row 3, column 1"),
    ({"y": ["a"] * 8}, TypeError, "y must hold real numbers"),
    ({"y": np.full(8, 1e200)}, ValueError, "square does not fit"),
    ({"y": np.empty((8, 0))}, ValueError, "y has no columns"),
    ({"y": np.ones((8, 1, 1))}, ValueError, "y must be one-dimensional"),
    ({"y": np.ma.masked_array(Y, Y == 2)}, ValueError, "masked"),
    ({"X": X[:0], "y": Y[:0]}, ValueError, "X has no rows"),
    ({"X": with_entry(X, (2, 1), np.nan)}, ValueError, "X holds nan at row 2, column 1"),
    ({"X": X.astype(object)}, TypeError, "X must hold real numbers"),
    ({"X": X[0]}, ValueError, "two-dimensional"),
    ({"unlabelled": X[:, :2]}, ValueError, "unlabelled has 2 columns but X has 3"),
    ({"unlabelled": with_entry(X, (1, 0), np.inf)}, ValueError, "unlabelled holds inf at row 1, column 0"),
    ({"sample_weight": -Y}, ValueError, "sample_weight must not be negative, got -1.0 at position 1"),
    ({"sample_weight": 0 * Y}, ValueError, "sample_weight is zero for every row"),
    ({"sample_weight": Y[:3]}, ValueError, "sample_weight has 3 entries"),
    ({"intercept": "yes"}, TypeError, "intercept must be True or False"),
    ({"form": "primal"}, ValueError, 'form must be "auto", "features", "kernel", "dual" or "rkhs"'),
    ({"form": ["kernel"]}, ValueError, 'form must be "auto"'),
    ({"solver": "lu"}, ValueError, 'solver must be "auto", "exact" or "cg"'),
    ({"form": "features"}, ValueError, "no finite exact feature map"),
    ({"form": "features", "kernel": lambda a, b: a @ b.T}, ValueError, "got a callable"),
    ({"form": "rkhs", "solver": "cg"}, ValueError, "cannot solve form 'rkhs'"),
    ({"solver": "cg", "n_components": 0}, ValueError, "n_components must be at least 1"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
    ({"tol": 0.0}, ValueError, "tol must be greater than 0"),
    ({"solver": "cg", "keep_factor": True}, ValueError, "keep_factor needs"),
    ({"n_threads": 0}, ValueError, "n_threads must be at least 1"),
    ({"callback": 3}, TypeError, "callback must be callable"),
    ({"kernel": "rbf"}, TypeError, "kernel must be one of"),
    ({"solver": "cg", "rng": "seed"}, TypeError, "rng must be"),
    ({"kernel": lambda a, b: np.ones((1, 1))}, ValueError, r"gave an array of shape \(1, 1\)"),
    ({"kernel": lambda a, b: a @ np.triu(np.ones((3, 3))) @ b.T}, ValueError, "not symmetric"),
    ({"kernel": lambda a, b: np.full((len(a), len(b)), np.nan)}, ValueError, "holds nan"),
    ({"kernel": kernels.Polynomial(300), "X": 100 * X}, ValueError, "overflow float64"),
]
GIVEN = [
    ({"X": X}, "X must be square"),
    ({"X": np.triu(np.ones((8, 8)))}, "not symmetric"),
    ({"X": SWAP, "y": [1.0, 2.0]}, "smallest eigenvalue is -1"),
    ({"X": SWAP, "y": [1.0, 2.0], "form": "dual"}, "smallest eigenvalue is -1"),
    ({"X": SWAP, "y": [1.0, 2.0], "form": "rkhs"}, "smallest eigenvalue is -1"),
    ({"X": SWAP, "y": [1.0, 2.0], "lam": 100.0}, "smallest eigenvalue is -1"),
    ({"X": np.diag([1.0, -1e-3]), "y": [1.0, 2.0]}, "smallest eigenvalue is -0.001"),
    ({"X": SWAP, "y": [1.0, 2.0, 3.0]}, "y has 3 entries but X has 2 rows"),
    ({"X": np.eye(3), "y": []}, "no labelled point"),
    ({"X": np.eye(3), "y": [1.0], "unlabelled": np.eye(2)}, "unlabelled has 2 columns but X is the kernel matrix of 3"),
    ({"X": np.eye(3), "y": [1.0], "unlabelled": [[0.0, np.nan, 0.0]]}, "unlabelled holds nan at row 0, column 1"),
    ({"X": np.eye(3), "y": [1.0], "unlabelled": [0.0, 0.0, 0.0]}, "unlabelled"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_refused(change, error, message):
    with pytest.raises(error, match=message):
        fit(**change)


@pytest.mark.parametrize(("change", "message"), GIVEN)
def test_matrices_that_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fit(kernel=kernels.Precomputed(), **change)


INDEFINITE = [
    kernels.Sigmoid(1.0, -2.0),
    kernels.Polynomial(3, 1.0, -2.0),
    lambda a, b: kernels.gram(a, b, kernels.Sigmoid(1.0, -2.0)),
]


@pytest.mark.parametrize("kernel", INDEFINITE, ids=["sigmoid", "polynomial", "callable"])
@pytest.mark.parametrize("lam", [1e-3, 0.1, 100.0])
def test_kernels_with_negative_eigenvalues_are_refused(kernel, lam):
    """Also where K + λn I is positive definite: then the objective falls without end along an eigenvector."""
    data = np.random.default_rng(0).normal(size=(30, 3))
    y = data[:, 0]
    K = kernel(data, data) if callable(kernel) else kernels.gram(data, kernel=kernel)
    values, vectors = np.linalg.eigh(K)
    if -values[0] < 30 * lam:
        far = 1e6 * vectors[:, 0]
        assert np.mean((K @ far - y) ** 2) + lam * far @ K @ far < -1e3, "no minimum"
    message = f"the kernel matrix is not positive semi-definite: its smallest eigenvalue is {values[0]:.5g}"[:-1]
    calls = [
        lambda form=form: ridge.fit(data, y, lam, kernel, form=form) for form in ("auto", "kernel", "dual", "rkhs")
    ]
    calls += [
        lambda: ridge.fit(data, y, lam, kernel, solver="cg"),
        lambda: ridge.fit(K, y, lam, kernels.Precomputed()),
        lambda: ridge.path(data, y, [lam], kernel),
        lambda: ridge.path(data, y, [lam], kernel, intercept=True, sample_weight=np.arange(30.0)),
        lambda: ridge.certificate(data, y, lam, kernel, alpha=np.zeros(30)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("form", ["kernel", "dual", "rkhs"])
def test_every_form_looks_at_all_points(form):
    """A fault at an unlabelled point, or at one of weight 0, is one."""
    K = kernels.gram(X, kernel=kernels.RBF(0.5))
    K[6, 6] = -1.0
    lowest = f"smallest eigenvalue is {np.linalg.eigvalsh(K)[0]:.5g}"[:-1]
    weight = np.where(np.arange(8) == 6, 0.0, 1.0)
    with pytest.raises(ValueError, match=lowest):
        fit(X=K, y=Y[:4], kernel=kernels.Precomputed(), form=form)
    with pytest.raises(ValueError, match=lowest):
        fit(X=sparse.csr_array(K), y=Y[:4], kernel=kernels.Precomputed(), form=form)
    with pytest.raises(ValueError, match=lowest):
        fit(X=K, kernel=kernels.Precomputed(), sample_weight=weight, form=form)
    with pytest.raises(ValueError, match=lowest):
        ridge.certificate(K, Y[:4], 0.1, kernels.Precomputed(), alpha=np.zeros(4))

    def kernel(a, b):
        return kernels.gram(a, b, kernels.RBF(0.5)) - 2.0 * (a[:, :1] == X[6, 0]) * (b[:, 0] == X[6, 0])

    with pytest.raises(ValueError, match=lowest):
        fit(X=X[:4], y=Y[:4], kernel=kernel, unlabelled=X[4:], form=form)


@pytest.mark.parametrize("form", ["kernel", "dual", "rkhs"])
def test_a_callable_is_asked_for_all_points_once(form):
    """Its matrix is made to be looked at, and then used."""
    asked = []

    def kernel(a, b):
        asked.append((len(a), len(b)))
        return kernels.gram(a, b, kernels.RBF(0.5))

    found = fit(X=X[:5], y=Y[:5], kernel=kernel, unlabelled=X[5:], form=form, intercept=True)
    assert asked == [(8, 8)]
    expected = fit(X=X[:5], y=Y[:5], unlabelled=X[5:], form=form, intercept=True)
    np.testing.assert_allclose(found.fitted, expected.fitted, atol=1e-12)


def test_of_very_many_points_some_are_looked_at(monkeypatch):
    """A matrix of some points has no smaller eigenvalue than that of all: what it refuses is indefinite."""
    monkeypatch.setattr(definite, "_MIN_CHECKED_POINTS", 20)
    data = np.random.default_rng(0).normal(size=(200, 3))
    seen = []

    def kernel(a, b):
        seen.append(len(a))
        return kernels.gram(a, b, kernels.Sigmoid(1.0, -2.0))

    with pytest.raises(ValueError, match="not positive semi-definite"):
        ridge.fit(data[:15], data[:15, 0], 100.0, kernel, unlabelled=data[15:])
    monkeypatch.setattr(check, "free_memory", lambda: 1000)
    for call in (
        lambda: ridge.fit(data, data[:, 0], 100.0, kernel, solver="cg"),
        lambda: ridge.certificate(data, data[:, 0], 100.0, kernel, alpha=np.zeros(200)),
    ):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            call()
    assert seen == [30, 20, 20]


@given(st.data())
def test_layouts_and_forms_of_the_same_numbers(data):
    expected = fit(kernel=kernels.RBF(0.5), intercept=True)
    for other in (data.draw(layouts(X)), data.draw(csr_forms(X)), X.tolist()):
        found = fit(X=other, intercept=True)
        np.testing.assert_allclose(found.fitted, expected.fitted, atol=1e-12)


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    frame, target = pandas.DataFrame(X), pandas.Series(Y, index=np.arange(8)[::-1])
    np.testing.assert_array_equal(fit(X=frame, y=target).fitted, fit().fitted)
    several = pandas.DataFrame({"a": Y, "b": Y**2})
    np.testing.assert_array_equal(fit(y=several).fitted, fit(y=several.to_numpy()).fitted)


def test_inputs_are_not_changed_and_results_are_their_own():
    points, y, weight = X.copy(), Y.copy(), np.ones(8)
    K = kernels.gram(X, kernel=kernels.RBF(0.5))
    kept = K.copy()
    for form in ("kernel", "dual", "rkhs"):
        fit(X=points, y=y, sample_weight=weight, form=form)
        fit(X=K, kernel=kernels.Precomputed(), y=y, form=form)
    fit(X=points, y=y, kernel=kernels.Linear(), form="features")
    ridge.path(points, y, [0.1], kernels.RBF(0.5), sample_weight=weight)
    np.testing.assert_array_equal(points, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(K, kept)


@pytest.mark.parametrize("form", ["features", "kernel", "dual", "rkhs"])
def test_small_and_flat_problems(form):
    one = ridge.fit([[2.0]], [3.0], 1.0, kernels.Linear(), form=form)
    np.testing.assert_allclose(one.fitted, [2.4])  # 4·3 / (4 + 1)
    shifted = ridge.fit([[2.0]], [3.0], 1.0, kernels.Linear(), form=form, intercept=True)
    np.testing.assert_allclose(shifted.fitted, [3.0])
    constant = ridge.fit(np.ones((5, 2)), np.full(5, 7.0), 0.5, kernels.Linear(), form=form, intercept=True)
    np.testing.assert_allclose(constant.fitted, 7.0)
    zero = ridge.fit(np.zeros((4, 2)), np.arange(4.0), 0.5, kernels.Linear(), form=form)
    np.testing.assert_allclose(zero.fitted, 0.0)
    nothing = ridge.fit(X, 0 * Y, 0.5, kernels.Linear(), form=form)
    np.testing.assert_array_equal(nothing.fitted, 0.0)
    assert nothing.certificate.converged
    assert nothing.certificate.gap == 0


def test_weights_of_all_sizes():
    weight = 10.0 ** np.array([-300, -200, -100, -8, 0, 0, 1, 2])
    heavy = fit(sample_weight=weight)
    light = fit(X=X[3:], y=Y[3:], sample_weight=weight[3:])
    np.testing.assert_allclose(heavy.fitted[3:], light.fitted, rtol=1e-9)
    assert np.isfinite(heavy.alpha).all()
    assert heavy.certificate.converged


@pytest.mark.parametrize("form", ["features", "kernel", "dual", "rkhs"])
def test_lams_of_all_sizes(form):
    """Far beyond the kernel's size f is K y / (λn) and the certificate is exact; P = D = mean of y²."""
    K = kernels.gram(X, kernel=kernels.Linear())
    for lam in (1e20, 1e100):
        found = fit(lam=lam, kernel=kernels.Linear(), form=form)
        np.testing.assert_allclose(found.fitted * lam, K @ Y / 8, rtol=1e-10)
        c = found.certificate
        np.testing.assert_allclose([c.primal, c.dual], np.square(Y).mean(), rtol=1e-12)


def test_targets_of_all_sizes():
    small, large = fit(y=1e-140 * Y), fit(y=1e140 * Y)
    np.testing.assert_allclose(small.fitted * 1e140, fit().fitted, rtol=1e-10)
    np.testing.assert_allclose(large.fitted / 1e140, fit().fitted, rtol=1e-10)


def test_predict_refuses_and_answers():
    found = fit(y=np.column_stack([Y, -Y]), intercept=True)
    assert ridge.predict(found, X[:0]).shape == (0, 2)
    np.testing.assert_allclose(ridge.predict(found, X[::-1]), found.fitted[::-1], atol=1e-12)
    with pytest.raises(ValueError, match="X has 2 columns but the fit has 3"):
        ridge.predict(found, X[:, :2])
    with pytest.raises(TypeError, match=r"what ridge\.fit returned"):
        ridge.predict(X, X)
    with pytest.raises(check.DtypeError):
        ridge.predict(found, X.astype(object))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": np.ones(3)}, "alpha has 3 entries"),
        ({"alpha": np.ones((8, 1))}, "alpha must have the shape of y"),
        ({"alpha": with_entry(np.zeros(8), 1, np.nan)}, "alpha holds nan at position 1"),
        ({"alpha": np.ones(8), "sample_weight": Y}, "alpha must be 0 where sample_weight is, but is not at position 0"),
        ({"alpha": np.ones(8), "intercept": True}, "must sum to 0, but its sum is 8"),
        ({"alpha": np.ones((8, 3)), "y": np.ones((8, 2))}, "alpha has 3 columns but y has 2"),
    ],
)
def test_certificate_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        ridge.certificate(**({"X": X, "y": Y, "lam": 0.1, "kernel": kernels.RBF(0.5)} | change))


def test_results_are_frozen_and_short():
    found = fit()
    with pytest.raises(AttributeError):
        found.lam = 2.0
    assert len(repr(found)) < 1000
    assert found.kernel == kernels.RBF(0.5)
    assert fit(kernel=kernels.RBF("scale")).kernel == kernels.RBF("scale").resolve(X)


def test_one_convergence_warning_for_all_solvers():
    for module in (svm, erm, graph, results):
        assert module.ConvergenceWarning is ridge.ConvergenceWarning
    assert pickle.loads(pickle.dumps(ridge.ConvergenceWarning("late"))).args == ("late",)
