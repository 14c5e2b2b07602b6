"""What users pass to ridge: a clear error or a right answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import csr_forms, layouts

from kernelrules import check, kernels, ridge

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
    ({"form": "primal"}, ValueError, "form must be one of auto, features"),
    ({"form": ["kernel"]}, ValueError, "form must be one of"),
    ({"solver": "lu"}, ValueError, "solver must be one of auto, exact, cg"),
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
    ({"X": np.eye(3), "y": [1.0], "unlabelled": np.eye(3)}, "unlabelled must be None"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_refused(change, error, message):
    with pytest.raises(error, match=message):
        fit(**change)


@pytest.mark.parametrize(("change", "message"), GIVEN)
def test_matrices_that_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fit(kernel=kernels.Precomputed(), **change)


def test_indefinite_kernels_are_refused_where_they_matter():
    """The sigmoid may be indefinite: K + λn I decides."""
    data = np.random.default_rng(0).normal(size=(30, 3))
    kernel = kernels.Sigmoid(1.0, -2.0)
    lowest = np.linalg.eigvalsh(kernels.gram(data, kernel=kernel))[0]
    assert lowest < -0.1
    for form in ("kernel", "dual", "rkhs"):
        with pytest.raises(ValueError, match=f"smallest eigenvalue is {lowest:.6g}"):
            ridge.fit(data, data[:, 0], 0.5 * -lowest / 30, kernel, form=form)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        ridge.fit(data, data[:, 0], 1e-3, kernel, solver="cg")
    found = ridge.fit(data, data[:, 0], 2 * -lowest / 30, kernel)
    K = kernels.gram(data, kernel=kernel)
    np.testing.assert_allclose(K @ found.alpha + 2 * -lowest * found.alpha, data[:, 0], atol=1e-10)


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
