"""Bad input of regularised risk minimisation, and fits that are interrupted, watched or stopped early."""

import re
import warnings

import numpy as np
import pytest
from interrupting import seconds_of_all
from refused import refused
from scipy import sparse

from kernelrules import erm, kernels, losses, parallel
from kernelrules.erm.newton import relative_gap
from kernelrules.erm.systems import Gradient, GramSystem

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3))
Y = np.array([0, 1] * 6)
SMOOTH = ("squared", "logistic", "squared_hinge", "exponential")
uses = pytest.mark.parametrize("use", [erm.decision, erm.predict, erm.predict_proba])


# ---- data ---------------------------------------------------------------------------------------------------------


@uses
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Linear()])
def test_nonfinite_data_are_named(use, value, form, kernel):
    bad = X.copy()
    bad[2, 1] = value
    with pytest.raises(ValueError, match=re.escape(f"X holds {value} at row 2, column 1")):
        erm.fit(form(bad), Y, 0.1, kernel)
    with pytest.raises(ValueError, match=re.escape(f"X holds {value} at row 2, column 1")):
        use(erm.fit(X, Y, 0.1, kernel), form(bad))


@uses
@pytest.mark.parametrize(
    "bad",
    [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((12, 0)), X.astype(object), X.astype(str), X + 1j, None],
    ids=["flat", "cube", "no columns", "objects", "strings", "complex", "none"],
)
def test_data_must_be_a_matrix_of_numbers(use, bad):
    with refused("X"):
        erm.fit(bad, Y, 0.1)
    with refused("X"):
        use(erm.fit(X, Y, 0.1), bad)


@uses
def test_widths_and_emptiness(use):
    found, linear = erm.fit(X, Y, 0.1), erm.fit(X, Y, 0.1, kernels.Linear())
    for each in (found, linear):
        with refused("X", "3"):
            use(each, X[:, :2])
        assert len(use(each, np.zeros((0, 3)))) == 0
    with pytest.raises(ValueError, match="X has no rows"):
        erm.fit(np.zeros((0, 3)), [], 0.1)
    with refused("fit"):
        use("model", X)


def test_layouts_make_no_difference():
    wide = np.full((24, 6), np.nan)
    wide[::2, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    wanted = erm.fit(X, Y, 0.01, kernels.RBF(0.5))
    for form in (wide[::2, ::2], frozen, X[::-1][::-1], np.asfortranarray(X)):
        np.testing.assert_array_equal(erm.fit(form, Y, 0.01, kernels.RBF(0.5)).alpha, wanted.alpha)


@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Linear(), kernels.Precomputed()])
def test_the_model_keeps_no_hold_of_its_data(kernel):
    data = X @ X.T if kernel == kernels.Precomputed() else X.copy()
    points = data.copy()
    found = erm.fit(data, Y, 0.01, kernel)
    before = erm.decision(found, points)
    data[...] = 7.0
    np.testing.assert_array_equal(erm.decision(found, points), before)


# ---- labels and weights -------------------------------------------------------------------------------------------


def test_labels():
    for bad in ([0, 1], np.arange(13) % 2):
        with refused("y", str(len(bad)), "12"):
            erm.fit(X, bad, 0.1)
    for one, told in ((np.zeros(12), "0.0"), (["a"] * 12, "'a'"), ([True] * 12, "True")):
        with refused("y", f"one class only, {told};"):
            erm.fit(X, one, 0.1)
    with refused("y", "nan", "3"):
        erm.fit(X, [0, 1, 0, np.nan] * 3, 0.1)
    with refused("y"):
        erm.fit(X, np.zeros((12, 2)), 0.1)
    found = erm.fit(X, np.where(Y == 1, "yes", "no"), 1e-3, kernels.RBF(3.0))
    assert found.classes.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(erm.predict(found, X) == "yes", Y == 1)


def test_weights():
    for bad, words in ((-np.ones(12), ("negative",)), (np.zeros(12), ("zero",)), (np.ones(3), ("3", "12"))):
        with refused("sample_weight", *words):
            erm.fit(X, Y, 0.1, sample_weight=bad)
    with refused("sample_weight", "class"):
        erm.fit(X, Y, 0.1, sample_weight=Y)
    with refused("sample_weight", "overflow"):
        erm.fit(X, Y, 0.1, sample_weight=np.full(12, 1e308))
    with refused("sample_weight", "underflow"):
        erm.fit(X, Y, 0.1, sample_weight=[5e-324] + [1e300] * 11)
    tiny = erm.fit(X, Y, 0.1, sample_weight=np.full(12, 1e-300))
    np.testing.assert_allclose(tiny.alpha, erm.fit(X, Y, 0.1).alpha)


# ---- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True, [1.0]])
def test_lam_and_tol(bad):
    with refused("lam"):
        erm.fit(X, Y, bad)
    with refused("tol"):
        erm.fit(X, Y, 0.1, tol=bad)


def test_other_options():
    for bad in ("huber", "zero_one", "ramp", ""):
        with refused("loss", "logistic"):
            erm.fit(X, Y, 0.1, loss=bad)
    for bad in (losses.ramp, losses.zero_one):
        with refused("loss", "convex"):
            erm.fit(X, Y, 0.1, loss=bad)
    with refused("loss"):
        erm.fit(X, Y, 0.1, loss=3)
    with refused("intercept"):
        erm.fit(X, Y, 0.1, intercept=1)
    for bad in (0, 1.5, "many"):
        with refused("max_iter"):
            erm.fit(X, Y, 0.1, max_iter=bad)
    with refused("n_threads"):
        erm.fit(X, Y, 0.1, n_threads=0)
    with refused("callback"):
        erm.fit(X, Y, 0.1, callback=3)
    with refused("kernel"):
        erm.fit(X, Y, 0.1, "rbf")
    for loss in set(SMOOTH) - {"logistic"}:
        with pytest.raises(ValueError, match=f"probabilities require the logistic loss.*{loss}"):
            erm.predict_proba(erm.fit(X, Y, 0.1, loss=loss), X)


def test_losses_by_object_are_those_by_name():
    for name in SMOOTH:
        one, other = (erm.fit(X, Y, 0.1, loss=loss) for loss in (name, getattr(losses, name)))
        np.testing.assert_array_equal(one.alpha, other.alpha)


# ---- kernels ------------------------------------------------------------------------------------------------------


def test_matrices_that_are_no_kernel():
    with refused("X", "square"):
        erm.fit(X, Y, 0.1, kernels.Precomputed())
    K = kernels.gram(X, kernel=kernels.RBF(1.0))
    lopsided = K.copy()
    lopsided[3, 4] += 0.5
    with refused("X", "not symmetric"):
        erm.fit(lopsided, Y, 0.1, kernels.Precomputed())
    indefinite = K - 0.9 * np.eye(12)
    smallest = np.linalg.eigvalsh(indefinite)[0]
    assert smallest < 0
    with refused("X", "positive semi-definite", re.escape(f"{smallest:.4f}"[:6])):
        erm.fit(indefinite, Y, 0.1, kernels.Precomputed())
    with refused("kernel", "positive semi-definite"):
        erm.fit(X, Y, 0.1, lambda a, b: -(a @ b.T))
    with pytest.raises(ValueError, match="positive semi-definite"):
        erm.fit(3 * X, Y, 0.1, kernels.Sigmoid(1.0, -1.0))
    with pytest.raises(ValueError, match=r"kernel\(X, Z\) gave"):
        erm.fit(X, Y, 0.1, lambda a, b: np.ones(3))
    for form in (np.asarray, sparse.csr_array, np.float32):
        assert erm.fit(form(K), Y, 0.1, kernels.Precomputed()).certificate.converged


def test_precomputed_with_rows_of_weight_zero():
    K, weight = kernels.gram(X, kernel=kernels.RBF(1.0)), np.array([1.0, 1.0, 0.0] * 4)
    found = erm.fit(K, Y, 0.1, kernels.Precomputed(), sample_weight=weight)
    kept = weight > 0
    alone = erm.fit(K[np.ix_(kept, kept)], Y[kept], 0.1, kernels.Precomputed())
    np.testing.assert_array_equal(found.alpha[0, kept], alone.alpha[0])
    np.testing.assert_allclose(erm.decision(found, K)[kept], erm.decision(alone, K[np.ix_(kept, kept)]))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e100])
def test_units_of_the_data(loss, scale):
    """λ in the units of the kernel, ‖f‖² in the inverse ones: the answer does not depend on them."""
    for n in (6, 12):  # by the Gram matrix, and by features
        for intercept in (False, True):
            one = erm.fit(X[:n, :2], Y[:n], 0.1, kernels.Linear(), loss, intercept=intercept, tol=1e-12)
            other = erm.fit(
                scale * X[:n, :2], Y[:n], 0.1 * scale**2, kernels.Linear(), loss, intercept=intercept, tol=1e-12
            )
            assert other.certificate.converged
            np.testing.assert_allclose(
                erm.decision(one, X[:, :2]), erm.decision(other, scale * X[:, :2]), rtol=1e-4, atol=1e-5
            )


def test_a_system_that_is_not_a_number_is_refused_and_not_tried_for_ever():
    system = GramSystem(np.array([[1.0, np.nan], [np.nan, 1.0]]), 1, lambda: None)
    with pytest.raises(ValueError, match="overflows"):
        system.step(np.ones(2), Gradient(*np.zeros((5, 2))), False)


def test_overflow_is_refused():
    for kernel in (kernels.Linear(), kernels.Polynomial(3)):
        with pytest.raises(ValueError, match="overflow"):
            erm.fit(1e200 * X, Y, 0.1, kernel)
    with pytest.raises(ValueError, match="overflow"):
        erm.fit(1e60 * X, Y, 0.1, kernels.Polynomial(6, 1.0, 0.0))


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.RBF(1e-9), kernels.RBF(1e9), kernels.Polynomial(5, 10.0)])
def test_bad_conditioning_ends_with_a_valid_bound(loss, kernel):
    """Nearly singular or huge Gram matrices, contradictions and a tiny λ: an answer or a warning, and D ≤ P."""
    data = np.r_[X, X[:6], 1e3 * X[:2]]
    y = np.r_[Y, 1 - Y[:6], Y[:2]]
    for lam in (1e-300, 1e-100, 1e-12, 1e-7):
        for intercept in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", erm.ConvergenceWarning)
                try:
                    found, refusal = erm.fit(data, y, lam, kernel, loss, intercept=intercept), ""
                except ValueError as error:
                    refusal = str(error)
            if refusal:
                assert lam < 1e-12
                assert "the Newton system overflows" in refusal
                continue
            c = found.certificate
            assert np.isfinite(found.alpha).all()
            assert 0 <= c.dual <= c.primal <= getattr(losses, loss)(0.0) * (1 + 1e-15)
            assert c.iterations <= 200


def test_an_objective_that_rounds_to_zero():
    """Three features of five points, K 1e22 times λ: margins of 1, ‖f‖² below 0 by rounding: that proves nothing."""
    for seed in range(12):
        Z = 1e6 * np.random.default_rng(seed).normal(size=(5, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", erm.ConvergenceWarning)
            c = erm.fit(Z @ Z.T, [0, 1, 0, 1, 1], 1e-10, kernels.Precomputed(), "squared_hinge").certificate
        assert c.dual >= 0
        assert not (c.converged and c.primal == 0)
    assert relative_gap(1.0, 0.0) == np.inf
    assert relative_gap(0.0, 0.0) == 0
    assert relative_gap(1.0, 4.0) == 0.25


def test_a_matrix_that_was_rounded_to_float32():
    """Its eigenvalues below 0 make ‖f‖² negative: as much of the objective is not certified."""
    lost = 0
    for seed in range(6):
        Z = 100 * np.random.default_rng(seed).normal(size=(50, 3))
        K = (Z @ Z.T).astype(np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", erm.ConvergenceWarning)
            found = erm.fit(K, Z[:, 0] + 100 * np.sin(Z[:, 1]) > 0, 1e-4, kernels.Precomputed(), "squared")
        square = found.alpha[0] @ K.astype(np.float64) @ found.alpha[0]
        lost += square < 0
        assert found.certificate.gap >= -0.99e-4 * square
    assert lost


def test_points_that_are_all_equal():
    """The best function is 0 or a constant; coefficients that are not unique are no violation."""
    for kernel in (kernels.RBF(1.0), kernels.Linear()):
        for n in (2, 10):
            found = erm.fit(np.ones((n, 1)), np.arange(n) % 2, 0.1, kernel)
            assert found.certificate.kkt == 0
            np.testing.assert_array_equal(erm.decision(found, np.ones((1, 1))), [0.0])
    shifted = erm.fit(np.zeros((4, 2)), [0, 1, 1, 1], 0.1, kernels.Linear(), intercept=True, tol=1e-12)
    np.testing.assert_allclose(shifted.intercept, np.log(3), rtol=1e-5)


# ---- running ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential"])  # the squared loss takes one step
def test_stopping_early_is_a_warning_and_a_result(loss):
    data = rng.normal(size=(60, 3))
    y = (data[:, 0] > 0) ^ (rng.random(60) < 0.1)
    with pytest.warns(erm.ConvergenceWarning, match="relative gap") as caught:
        rough = erm.fit(data, y, 1e-6, kernels.RBF(0.5), loss, max_iter=1, tol=1e-14)
    assert caught[0].filename == __file__
    fine = erm.fit(data, y, 1e-6, kernels.RBF(0.5), loss, tol=1e-11).certificate
    assert not rough.certificate.converged
    assert rough.certificate.iterations == 1
    assert rough.certificate.dual <= fine.primal * (1 + 1e-9)
    assert rough.certificate.primal >= fine.dual * (1 - 1e-9)


def test_the_objective_falls_and_callbacks_see_the_gap():
    seen = []
    data = rng.normal(size=(80, 3))
    y = np.arange(80) % 3
    erm.fit(data, y, 1e-4, kernels.RBF(0.5), callback=seen.append)
    steps = [p for p in seen if p.what == "erm"]
    assert all(isinstance(p, parallel.Progress) for p in seen)
    assert [p.done for p in steps] == sorted(p.done for p in steps)
    assert all(0 <= p.fraction <= 1 for p in steps)
    assert min(p.violation for p in steps if p.violation is not None) <= 1e-8

    class Stop(Exception):
        pass

    def stop(progress):
        raise Stop

    for kernel in (kernels.RBF(0.5), kernels.Linear()):
        with pytest.raises(Stop):
            erm.fit(data, y, 1e-4, kernel, callback=stop)


def test_blas_gets_its_threads_back():
    """Also after an error inside, and with fits in several threads."""
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def blas():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = blas()
    wanted = erm.fit(X, Y, 0.1).alpha
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: erm.fit(X, Y, 0.1), range(20)):
            np.testing.assert_array_equal(found.alpha, wanted)
    with pytest.raises(ValueError, match="semi-definite"):
        erm.fit(-np.eye(12), Y, 0.1, kernels.Precomputed())
    assert blas() == before


def test_interrupts_are_answered():
    prepare = """
import numpy as np
from kernelrules import erm, kernels
rng = np.random.default_rng(0)
"""
    data = "X = rng.normal(size={}); y = rng.integers(0, 30, len(X)); erm.fit(X[:50], y[:50], 0.1)"
    cases = {
        "matrix": (data.format((5000, 10)), "erm.fit(X, y, 1e-6, kernels.RBF(0.1), n_threads=1)"),
        "features": (data.format((40000, 400)), "erm.fit(X, y, 1e-6, kernels.Linear(), n_threads=1)"),
    }
    told = seconds_of_all(prepare, cases)
    assert all(seconds is not None and seconds < 1.0 for seconds in told.values()), told


def test_a_matrix_beyond_memory_is_refused_at_once():
    wide = sparse.csr_array((4_000_000, 5))
    with pytest.raises(MemoryError, match="Gram matrix"):
        erm.fit(wide, np.arange(4_000_000) % 2, 0.1, kernels.RBF(1.0))
