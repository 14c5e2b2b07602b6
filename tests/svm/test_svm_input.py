"""Bad input of the support vector machines: an error that names the argument, or the right answer; never a crash."""

import math
import re
import warnings

import numpy as np
import pytest
import svm_oracle as oracle
from refused import refused
from scipy import sparse

from kernelrules import kernels, parallel, svm

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3))
Y = np.array([0, 1] * 6)
Y3 = np.array([0, 1, 2] * 4)
TARGET = X[:, 0] + 0.1 * rng.normal(size=12)

FITS = {
    "svc": lambda X=X, y=Y, **options: svm.svc(X, y, **options),
    "nu_svc": lambda X=X, y=Y, **options: svm.svc(X, y, **{"nu": 0.4, **options}),
    "svr": lambda X=X, y=TARGET, **options: svm.svr(X, y, **options),
    "nu_svr": lambda X=X, y=TARGET, **options: svm.svr(X, y, **{"nu": 0.4, **options}),
    "one_class": lambda X=X, y=None, **options: svm.one_class(X, **options),
}
each_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
with_target = pytest.mark.parametrize("fit", [FITS[k] for k in FITS if k != "one_class"], ids=lambda f: "")


# ---- X ------------------------------------------------------------------------------------------------------------


@each_fit
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_nonfinite_data_are_named(fit, value, form):
    bad = X.copy()
    bad[2, 1] = value
    with pytest.raises(ValueError, match=re.escape(f"X holds {value} at row 2, column 1")):
        fit(form(bad))
    model = fit()
    for use in (svm.decision, svm.predict):
        with pytest.raises(ValueError, match=re.escape(f"X holds {value} at row 2, column 1")):
            use(model, form(bad))


@each_fit
@pytest.mark.parametrize(
    "bad",
    [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((12, 0)), X.astype(object), X.astype(str), X + 1j, None, "text"],
    ids=["flat", "cube", "no columns", "objects", "strings", "complex", "none", "text"],
)
def test_data_must_be_a_matrix_of_numbers(fit, bad):
    with refused("X"):
        fit(bad)
    with refused("X"):
        svm.decision(fit(), bad)


@each_fit
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_no_rows(fit, form):
    with pytest.raises(ValueError, match=r"X (has|holds) no rows|X .*rows|y holds 0 class"):
        fit(form(np.zeros((0, 3))), y=np.zeros(0))
    model = fit()
    assert svm.decision(model, form(np.zeros((0, 3)))).shape == (0,)
    assert svm.predict(model, form(np.zeros((0, 3)))).shape == (0,)


def test_no_rows_of_many_classes():
    for multiclass, columns in (("ovo", 3), ("ovr", 3)):
        model = svm.svc(X, Y3, multiclass=multiclass)
        assert svm.decision(model, np.zeros((0, 3))).shape == (0, columns)
        assert svm.predict(model, np.zeros((0, 3))).shape == (0,)


def test_one_row():
    """Classification needs two classes; the others have an answer."""
    one = X[:1]
    with refused("y", "class"):
        svm.svc(one, [1])
    for options in ({}, {"nu": 0.5}):
        model = svm.svr(one, [3.0], **options)
        np.testing.assert_allclose(svm.predict(model, X), 3.0, atol=0.11)  # anything in the tube
    model = svm.one_class(one, nu=0.5, kernel=kernels.RBF(1.0))
    np.testing.assert_allclose(model.dual_coef, [[0.5]])
    np.testing.assert_allclose(svm.decision(model, one), [0.0], atol=1e-9)
    np.testing.assert_array_equal(svm.predict(model, one + 1.0), [-1])


def test_two_rows():
    model = svm.svc([[0.0], [2.0]], [7, 3], C=100.0, kernel=kernels.Linear())
    np.testing.assert_allclose(svm.decision(model, [[0.0], [1.0], [2.0]]), [1.0, 0.0, -1.0], atol=1e-6)


@each_fit
def test_a_model_of_another_width(fit):
    model = fit()
    for other in (X[:, :2], np.c_[X, X], sparse.csr_array(X[:, :2])):
        for use in (svm.decision, svm.predict):
            with refused("X", "3"):
                use(model, other)


# ---- y ------------------------------------------------------------------------------------------------------------


@with_target
def test_lengths_must_match(fit):
    for bad in ([0, 1], np.arange(13) % 2):
        with refused("y", str(len(bad)), "12"):
            fit(y=bad)


@with_target
def test_y_must_be_flat(fit):
    for bad in (Y[:, None], np.c_[Y, Y], np.float64(1.0), None):
        with refused("y"):
            fit(y=bad)


@pytest.mark.parametrize("nu", [None, 0.5])
@pytest.mark.parametrize("y", [np.zeros(12), np.array(["a"] * 12), np.ones(12, dtype=bool)])
def test_one_class_is_not_two(y, nu):
    with refused("y", "class"):
        svm.svc(X, y, nu=nu)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nonfinite_targets_are_named(value):
    bad = TARGET.copy()
    bad[5] = value
    for nu in (None, 0.5):
        with refused("y", str(value), "5"):
            svm.svr(X, bad, nu=nu)


def test_labels_that_are_not_labels():
    missing = Y.astype(float)
    missing[4] = np.nan
    with refused("y", "nan"):
        svm.svc(X, missing)
    for bad in (np.array([1, "a"] * 6, dtype=object), np.array([None, "a"] * 6, dtype=object), Y + 1j):
        with refused("y"):
            svm.svc(X, bad)


def test_targets_that_are_not_numbers():
    for bad in (np.array(["a", "b"] * 6), TARGET + 1j, TARGET.astype(object)):
        with refused("y"):
            svm.svr(X, bad)


# ---- parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1.0, -math.inf, math.nan, "1", None, True, [1.0], 1j])
def test_C_is_refused(bad):
    for fit in (FITS["svc"], FITS["svr"], FITS["nu_svr"]):
        with refused("C"):
            fit(C=bad)
    with refused("Cs"):
        svm.path(X, Y, [1.0, bad])


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.0001, 2, math.nan, math.inf, "0.5", True, [0.5]])
def test_nu_is_refused(bad):
    for fit in FITS.values():
        with refused("nu"):
            fit(nu=bad)
    with refused("nu"):
        svm.one_class(X, nu=None)


def test_nu_that_the_classes_cannot_give():
    """ν is at most 2 min(n₊, n₋) / n."""
    y = np.array([0] * 10 + [1] * 2)
    with refused("nu", "0.33"):
        svm.svc(X, y, nu=0.4)
    assert svm.svc(X, y, nu=0.33).certificate.converged
    with refused("nu"):  # some pair cannot
        svm.svc(X, np.array([0] * 6 + [1] * 5 + [2]), nu=0.5)
    with refused("nu"):  # by weight
        svm.svc(X, Y, nu=0.5, sample_weight=np.where(Y == 0, 10.0, 1.0))
    with refused("nu"):  # one against the rest
        svm.svc(X, Y3, nu=0.8, multiclass="ovr")


@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), kernels.Linear()])
def test_nu_of_one(kernel):
    """Every point at its bound: there is one feasible point, and it is the answer."""
    model = svm.one_class(X, nu=1.0, kernel=kernel)
    np.testing.assert_allclose(oracle.all_coefficients(model), np.ones((1, 12)))
    assert model.certificate.converged
    model = svm.svc(X, Y, nu=1.0, kernel=kernel)
    (c,) = oracle.all_coefficients(model)
    np.testing.assert_allclose(c / c[1], np.where(Y == 1, 1.0, -1.0), rtol=1e-6)
    assert svm.svr(X, TARGET, nu=1.0, kernel=kernel).certificate.converged


def test_tiny_nu():
    model = svm.one_class(X, nu=1e-3, kernel=kernels.RBF(0.5))
    np.testing.assert_allclose(model.dual_coef.sum(), 12e-3)
    assert svm.svc(X, Y, nu=1e-3, kernel=kernels.RBF(0.5)).certificate.converged
    assert svm.svr(X, TARGET, nu=1e-3, kernel=kernels.RBF(0.5)).certificate.converged


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "0.1", None, True])
def test_epsilon_is_refused(bad):
    with refused("epsilon"):
        svm.svr(X, TARGET, epsilon=bad)


def test_a_tube_around_everything_has_no_support():
    model = svm.svr(X, TARGET, epsilon=100.0)
    assert len(model.support) == 0
    assert model.dual_coef.shape == (1, 0)
    f = svm.predict(model, X)
    assert (f == f[0]).all()
    assert np.abs(f - TARGET).max() <= 100.0
    assert model.certificate.primal == model.certificate.dual == 0.0


@each_fit
@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("tol", [0.0, -1e-3, math.nan, math.inf, "small", None, True]),
        ("cache_mb", [0.0, -5.0, math.nan, "big", True]),
        ("max_iter", [0, -1, 1.5, math.nan, "many", True]),
        ("n_threads", [0, -2, 1.5, "two"]),
        ("callback", [3, "print"]),
        ("kernel", ["rbf", kernels.RBF, kernels.Kernel(), None, 3]),
    ],
)
def test_options_are_refused(fit, option, values):
    for bad in values:
        with refused(option):
            fit(**{option: bad})


@each_fit
@pytest.mark.parametrize("cache_mb", [1e-9, 1e30, 1e308])
def test_any_cache_will_do(fit, cache_mb):
    assert fit(cache_mb=cache_mb).certificate.converged


def test_unknown_options_are_refused():
    for fit in FITS.values():
        with pytest.raises(TypeError, match="gamma"):
            fit(gamma=0.5)
    with pytest.raises(TypeError):
        svm.svc(X, Y, 1.0)
    with pytest.raises(TypeError):
        svm.one_class(X, 0.5)


@pytest.mark.parametrize("bad", ["ova", None, 3, "OVO", ["ovo"]])
def test_multiclass_is_refused(bad):
    for y in (Y, Y3):
        with refused("multiclass", "ovo", "ovr"):
            svm.svc(X, y, multiclass=bad)


def test_an_executor_must_be_one():
    for bad in (2, "threads"):
        with refused("executor"):
            svm.svc(X, Y3, executor=bad)


def test_a_client_of_dask_is_told_from_its_executor():
    """Both have submit(); nothing is given to the client's."""

    class Client:
        def get_executor(self):
            raise AssertionError

        submit = get_executor

    for call in (
        lambda: svm.svc(X, Y3, executor=Client()),
        lambda: parallel.run(pow, [(2, 3)], Client()),
        lambda: list(parallel.stream(pow, [(2, 3)], Client())),
    ):
        with pytest.raises(TypeError, match=r"pass client\.get_executor\(\)"):
            call()


# ---- weights ------------------------------------------------------------------------------------------------------


@each_fit
def test_sample_weights_are_refused(fit):
    for bad in (-1.0, np.nan, np.inf):
        weight = np.ones(12)
        weight[7] = bad
        with refused("sample_weight", "7"):
            fit(sample_weight=weight)
    for bad in (np.ones(11), np.ones((12, 1)), np.ones(12).astype(object), np.ones(12) + 1j, ["a"] * 12, 1.0):
        with refused("sample_weight"):
            fit(sample_weight=bad)
    with refused("sample_weight"):
        fit(sample_weight=np.zeros(12))


@pytest.mark.parametrize("nu", [None, 0.2])
def test_a_class_without_weight(nu):
    with refused("sample_weight"):
        svm.svc(X, Y, nu=nu, sample_weight=(Y == 0).astype(float))
    with refused("sample_weight", "class True have"):
        svm.svc(X, Y != 0, nu=nu, sample_weight=(Y == 0).astype(float))
    with refused("sample_weight"):
        svm.svc(X, Y3, nu=nu, sample_weight=(Y3 != 2).astype(float))


@pytest.mark.parametrize(
    "bad",
    [
        {7: 1.0},
        {0: 1.0, "b": 2.0},
        {0: -1.0},
        {0: 0.0},
        {0: math.nan},
        {0: "heavy"},
        "heavy",
        [1.0, 2.0],
        3.0,
    ],
    ids=str,
)
def test_class_weights_are_refused(bad):
    with refused("class_weight"):
        svm.svc(X, Y, class_weight=bad)


# ---- kernels ------------------------------------------------------------------------------------------------------


def test_precomputed_must_be_square():
    K = kernels.gram(X)
    for fit in FITS.values():
        with refused("X", "square"):
            fit(K[:, :8], kernel=kernels.Precomputed())
    for fit in FITS.values():
        model = fit(K, kernel=kernels.Precomputed())
        assert svm.decision(model, K[:3]).shape == (3,)
        with refused("X", "12"):
            svm.decision(model, K[:, :8])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda A, B: np.zeros((len(A), len(B) + 1)),
        lambda A, B: np.zeros(len(A)),
        lambda A, B: np.full((len(A), len(B)), np.nan),
        lambda A, B: [["a"] * len(B)] * len(A),
        lambda A, B: None,
        lambda A, B: np.zeros((len(A), len(B))) + 1j,
    ],
    ids=["shape", "flat", "nan", "text", "none", "complex"],
)
def test_callable_kernels_that_give_no_matrix(wrong):
    for fit in FITS.values():
        with refused("kernel"):
            fit(kernel=wrong)


def test_errors_of_a_callable_kernel_come_through():
    class Mine(Exception):
        pass

    def breaks(A, B):
        raise Mine("in my kernel")

    for fit in FITS.values():
        with pytest.raises(Mine, match="in my kernel"):
            fit(kernel=breaks)


def test_kernel_values_that_overflow():
    """1e200 squared is no number: refused, not computed with."""
    for fit in FITS.values():
        with pytest.raises(ValueError, match=r"overflow|finite|inf"):
            fit(1e200 * X, kernel=kernels.Linear())
        with pytest.raises(ValueError, match=r"overflow|finite|inf"):
            fit(1e40 * X, kernel=kernels.Polynomial(8, 1.0, 1.0))


@each_fit
def test_kernel_values_at_the_end_of_the_range(fit):
    """Finite, but with squares that are not: a result that is finite and a warning, or a refusal; no nan, no overflow
    on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", svm.ConvergenceWarning)
        try:
            model = fit(1e15 * X, kernel=kernels.Polynomial(8, 1.0, 1.0), max_iter=10_000)
        except ValueError as error:
            said = str(error)
        else:
            c, said = model.certificate, "scale"
            assert np.isfinite([c.primal, c.dual, c.gap, c.kkt]).all()
            assert np.isfinite(model.dual_coef).all()
    assert re.search(r"overflow|finite|scale|nu", said)


# ---- models -------------------------------------------------------------------------------------------------------


def test_what_is_not_a_model():
    for bad in (None, 3, X, {"support": []}):
        for use in (svm.decision, svm.predict):
            with refused("model"):
                use(bad, X)
        with refused("model"):
            svm.margin(bad)
        with refused("model"):
            svm.slacks(bad, X, Y)
        with refused("model"):
            svm.calibrate(bad, X, Y)


def test_slacks_are_of_classes():
    for model in (svm.svr(X, TARGET), svm.one_class(X)):
        with pytest.raises(ValueError, match=f"classes, and the model is of kind {model.kind}"):
            svm.slacks(model, X, Y)
    model = svm.svc(X, Y)
    with refused("y", "7"):
        svm.slacks(model, X, np.full(12, 7))
    with refused("y", "5", "12"):
        svm.slacks(model, X, Y[:5])
    with refused("X"):
        svm.slacks(model, X[:, :2], Y)


def test_warm_starts_are_refused():
    start = svm.svc(X, Y)
    with refused("warm_start"):
        svm.svc(X, Y, warm_start=3)
    with refused("warm_start"):  # another kind
        svm.svr(X, TARGET, warm_start=start)
    with refused("warm_start"):  # rows have vanished
        svm.svc(X[:6], Y[:6], warm_start=start)
    with refused("warm_start"):  # other classes
        svm.svc(X, Y3, warm_start=start)


# ---- path, budget, tune, calibrate --------------------------------------------------------------------------------


def test_path_is_refused():
    for bad in ([], [[1.0, 2.0]], "1", None, 3.0):
        with refused("Cs"):
            svm.path(X, Y, bad)
    with pytest.raises(TypeError, match="nu"):
        svm.path(X, Y, [1.0], nu=0.5)


def test_budget_is_refused():
    for bad in (-1.0, math.nan, "1", None, True):
        with refused("budget"):
            svm.budget(X, Y, bad)
    for bad in ([], [1.0], [1.0, 1.0], [1.0] * 4):
        with refused("budget", f"{len(bad)}", "3 machine"):
            svm.budget(X, Y3, bad)
    with refused("budget", "2", "1 machine"):
        svm.budget(X, Y, [1.0, 1.0])
    for bad in ([1.0, -1.0, 1.0], [1.0, "1", 1.0], [1.0, math.nan, 1.0], np.ones((3, 3)), [[1.0], [1.0, 2.0], 1.0]):
        with refused("budget["):
            svm.budget(X, Y3, bad)
    with refused("multiclass"):
        svm.budget(X, Y3, 1.0, multiclass="all")


def test_budgets_of_machines_that_cannot_be_kept_are_named():
    line, y = np.arange(6.0)[:, None], [0, 1, 0, 2, 1, 2]
    with pytest.raises(ValueError, match=r"budget = 99.0 allows w = 0") as raised:
        svm.budget(line, y, [3.0, 99.0, 3.5], kernel=kernels.Linear())
    assert "machine 1 of 3" in raised.value.__notes__[0]
    with pytest.raises(svm.NotSeparable) as raised:
        svm.budget(line, y, [3.0, 0.5, 0.5], kernel=kernels.Linear())
    assert "machine 2 of 3" in raised.value.__notes__[0]


def test_a_budget_of_nothing_is_the_hard_margin():
    line = np.array([[-3.0], [-1.0], [1.0], [4.0]])
    model = svm.budget(line, [0, 0, 1, 1], 0.0, kernel=kernels.Linear())
    np.testing.assert_allclose(svm.margin(model), 2.0, rtol=1e-3)
    with pytest.raises(svm.NotSeparable):
        svm.budget(line, [0, 1, 0, 1], 0.0, kernel=kernels.Linear())


def test_tune_is_refused():
    tune = {"Cs": [1.0], "gammas": [0.5], "folds": 3, "rng": 0}
    for option, values in {
        "Cs": ([], [0.0], [-1.0], [math.nan], 1.0, None),
        "gammas": ([], [0.0], [-1.0], [math.nan], ["wide"]),
        "folds": (1, 0, -3, 2.5, 13, "five", None),
        "rule": ("max", None, 1),
        "rng": ("seed", -1),
    }.items():
        for bad in values:
            with refused(option):
                svm.tune(X, Y, **{**tune, option: bad})
    for bad, says in (([0.1, "scale"], r"gammas\[1\] must be a number, got 'scale'"), ("auto", "got 'auto'")):
        with refused("gammas", says):
            svm.tune(X, Y, **(tune | {"gammas": bad}))
    with refused("gammas"):
        svm.tune(X, Y, **tune, kernel=kernels.Linear())


def test_tune_of_a_regression_is_refused():
    tune = {"Cs": [1.0], "gammas": [0.5], "folds": 3, "rng": 0, "task": "svr"}
    for option, values in {
        "Cs": ([], [0.0], [math.inf], None),
        "folds": (1, 13, "five", None),
        "rule": ("max", None),
        "task": ("svm", None, 3, "nu_svr"),
        "epsilon": (-0.1, math.nan, "wide", math.inf),
        "nu": (0.0, 1.5, -1.0, "half"),
        "measure": ("zero_one", "rmse", 3, ["squared_error"]),
        "class_weight": ("balanced", {0: 1.0}),
        "multiclass": ("ovr", "all", None),
        "sample_weight": (np.zeros(12), -np.ones(12), np.ones(3)),
    }.items():
        for bad in values:
            with refused(option):
                svm.tune(X, TARGET, **{**tune, option: bad})
    with refused("epsilon", "nu"):
        svm.tune(X, TARGET, **tune, epsilon=0.1, nu=0.5)
    for bad in (np.array(["a", "b"] * 6), np.full(12, np.nan), np.full(12, 1e200), TARGET[:5], None):
        with refused("y"):
            svm.tune(X, bad, **tune)
    classes = {"Cs": [1.0], "folds": 3, "rng": 0}
    for option, bad in (("epsilon", 0.1), ("nu", 0.5), ("measure", "squared_error"), ("measure", 7)):
        with refused(option):
            svm.tune(X, Y, **classes, **{option: bad})
    assert svm.tune(X, Y, **classes, measure="zero_one").measure == "zero_one"


def test_calibration_is_refused():
    model = svm.svc(X, Y)
    for bad in ("sigmoid", None, 3):
        with refused("method", "platt", "isotonic"):
            svm.calibrate(model, X, Y, method=bad)
    with refused("y", "12"):
        svm.calibrate(model, X, Y[:5])
    with refused("y"):
        svm.calibrate(model, X, Y + 7)
    for other in (svm.svr(X, TARGET), svm.one_class(X)):
        with refused("model"):
            svm.calibrate(other, X, Y)
    with pytest.raises((TypeError, ValueError), match="calibrate"):
        svm.predict_proba(model, X)
    with refused("X"):
        svm.predict_proba(svm.calibrate(model, X, Y), X[:, :2])
