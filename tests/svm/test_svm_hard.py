"""Fits that make other solvers run for ever: each has to end in a given time, with a result that says how good it is.

The fits run in a child process that is killed where it exceeds its time, so that a hang is a failure and not a hang.
"""

import math
import multiprocessing
import os
import sys
import time
import warnings
from unittest import mock

import numpy as np
import pytest
from interrupting import seconds_of_all
from scipy import sparse

from kernelrules import kernels, svm

KINDS = ("svc", "nu_svc", "svr", "nu_svr", "one_class")
SECONDS = 15  # most take milliseconds


def serve(connection):
    """The child: runs what it is sent, and answers with the result or the error, the warnings and the time."""
    while True:
        function, arguments = connection.recv()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            start = time.perf_counter()
            try:
                result = function(*arguments)
            except Exception as error:
                result = error
        connection.send((result, [(w.category.__name__, str(w.message)) for w in seen], time.perf_counter() - start))


class Child:
    def __init__(self):
        self.process = None

    def run(self, function, *arguments, seconds=SECONDS):
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, theirs = context.Pipe()
            self.process = context.Process(target=serve, args=(theirs,), daemon=True)
            # One thread: the times are then those of the work, on however busy a machine.
            with mock.patch.dict(os.environ, OMP_NUM_THREADS="1"):
                self.process.start()
            self.run(time.sleep, 0.0, seconds=120)  # imports are not part of the time
        self.connection.send((function, arguments))
        if not self.connection.poll(seconds):
            self.stop()
            pytest.fail(f"{function.__name__}{arguments} was still running after {seconds} s")
        try:
            return self.connection.recv()
        except EOFError:
            code = self.process.exitcode
            self.stop()
            pytest.fail(f"{function.__name__}{arguments} took the process down with it (exit code {code})")

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


@pytest.fixture(scope="module")
def child():
    one = Child()
    yield one
    one.stop()


def fit(kind, X, y, **options):
    if kind == "one_class":
        return svm.one_class(X, **{k: v for k, v in options.items() if k != "C"})
    if kind.startswith("nu_"):
        options = {"nu": 0.75 if kind == "nu_svc" else 0.4, **options}  # for classes that overlap, but leave a margin
    if "svr" in kind:
        return svm.svr(X, y, **options)
    options.pop("C", None) if kind == "nu_svc" else None
    return svm.svc(X, y > 0, **options)


def check_ended(answer, convex=True):
    """A model whose numbers are finite, that converged, or warns and says which numbers are beyond float64."""
    model, seen, _ = answer
    if isinstance(model, Exception):
        raise model
    assert model.kind in KINDS
    unconverged = not all(c.converged for c in model.certificates)
    assert [name for name, _ in seen if name != "ConvergenceWarning"] == []
    assert ("ConvergenceWarning" in [name for name, _ in seen]) == unconverged
    assert np.isfinite(model.dual_coef).all()
    assert np.isfinite(model.intercept).all()
    for c in model.certificates:
        assert all(map(math.isfinite, (c.primal, c.dual, c.gap, c.kkt)))
        assert c.kkt >= 0
        assert c.iterations < 2_000_000
        assert c.converged == (c.beyond is None)
        if not c.converged:
            assert "have more digits than float64" in c.beyond
            assert any(c.beyond in message for _, message in seen) or len(model.certificates) > 1
        if convex:
            assert c.gap >= -1e-6 * max(1.0, abs(c.primal), abs(c.dual))
    return model


def check_ended_or_no_margin(answer, kind, convex=True):
    """As `check_ended`; but ν-SVC, which is divided by ρ, may find none to divide by, and has to say so."""
    if kind == "nu_svc" and isinstance(answer[0], ValueError):
        assert "nu" in str(answer[0])
    else:
        check_ended(answer, convex)


def points(n=80, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)


each_kind = pytest.mark.parametrize("kind", KINDS)
# Where there is no margin to divide by: test_nu_without_a_margin.
each_but_nu_svc = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nu_svc"])


# ---- kernels that are no kernels ----------------------------------------------------------------------------------


def indefinite(kind, gamma, coef0, C):
    X, y = points(150)
    return fit(kind, X, y, C=C, kernel=kernels.Sigmoid(gamma, coef0))


@each_kind
@pytest.mark.parametrize(("gamma", "coef0"), [(0.5, 0.0), (2.0, -1.0), (10.0, 1.0)])
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_indefinite_sigmoid(child, kind, gamma, coef0, C):
    check_ended(child.run(indefinite, kind, gamma, coef0, C), convex=False)


def negative_matrix(kind, which):
    _, y = points(60)
    rng = np.random.default_rng(1)
    R = rng.normal(size=(60, 60))
    K = {"minus": -np.eye(60), "zero": np.zeros((60, 60)), "any": R + R.T, "large": 1e6 * (R + R.T)}[which]
    return fit(kind, K, y, C=10.0, kernel=kernels.Precomputed())


@each_kind
@pytest.mark.parametrize("which", ["minus", "any", "large"])
def test_matrices_that_are_not_positive(child, kind, which):
    check_ended_or_no_margin(child.run(negative_matrix, kind, which), kind, convex=False)


# ---- data without information -------------------------------------------------------------------------------------


def contradictions(kind, kernel, C):
    X, y = points(30)
    return fit(kind, np.r_[X, X], np.r_[y, -y], C=C, kernel=kernel)


@each_but_nu_svc
@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Linear(), kernels.Polynomial(3, 1.0, 1.0)], ids=repr)
@pytest.mark.parametrize("C", [1.0, 1e6])
def test_duplicates_with_opposite_labels(child, kind, kernel, C):
    model = check_ended(child.run(contradictions, kind, kernel, C))
    if kind == "svc":  # by symmetry f = 0 is optimal: every slack is 1
        np.testing.assert_allclose(model.certificate.primal, 60 * C, rtol=1e-3)


def without_spread(kind, constant, kernel):
    X, y = points(50)
    X = np.full_like(X, constant)
    return fit(kind, X, y, kernel=kernel)


@each_but_nu_svc
@pytest.mark.parametrize("constant", [0.0, 1.0, 1e8])
@pytest.mark.parametrize("kernel", [kernels.RBF(), kernels.Linear()], ids=["rbf", "linear"])
def test_all_points_equal(child, kind, constant, kernel):
    model = check_ended(child.run(without_spread, kind, constant, kernel))
    f = svm.decision(model, np.full((2, 3), constant))
    _, y = points(50)
    scale = max(1.0, abs(constant) ** 2) if kernel == kernels.Linear() else 1.0
    if kind == "svc":
        assert f[0] * (np.mean(y > 0) - 0.5) >= 0  # the majority
    elif kind == "svr":
        assert np.quantile(y, 0.3) <= f[0] <= np.quantile(y, 0.7)
    elif kind == "one_class":
        assert abs(f[0]) <= 1e-6 * 25 * scale


def overlapping(kernel):
    X, y = points(50)
    return svm.svc(X, y > 0, nu=0.4, kernel=kernel)


@pytest.mark.parametrize(
    ("kernel", "data"),
    [
        (kernels.RBF(1.0), "equal"),
        (kernels.Linear(), "equal"),
        (kernels.RBF(1.0), "contradictions"),
        (kernels.Linear(), "contradictions"),
        (kernels.Linear(), "overlapping"),
    ],
)
def test_nu_without_a_margin(child, kernel, data):
    """w = 0 and ρ = 0: LIBSVM divides by it. Here an error that names ν, or a model that does not claim to be good."""
    match data:
        case "equal":
            answer = child.run(without_spread, "nu_svc", 1.0, kernel)
        case "contradictions":
            answer = child.run(contradictions, "nu_svc", kernel, 1.0)
        case "overlapping":  # the optimum of the dual is 3e-15, by the oracle
            answer = child.run(overlapping, kernel)
    if isinstance(answer[0], ValueError):
        assert "nu" in str(answer[0])
    else:
        c = check_ended(answer).certificate
        assert not c.converged or c.gap <= 0.1 * abs(c.dual)


def constant_columns(kind, kernel):
    X, y = points(80)
    return fit(kind, np.c_[X, np.full((80, 2), 1e6), np.zeros(80)], y, kernel=kernel)


@each_kind
@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), kernels.Linear()], ids=repr)
def test_constant_features(child, kind, kernel):
    """Constant columns change no distance, and the line's intercept only."""
    model = check_ended(child.run(constant_columns, kind, kernel))
    X, y = points(80)
    if kernel == kernels.RBF(0.5):
        plain = fit(kind, X, y, kernel=kernel)
        wide = np.c_[X, np.full((80, 2), 1e6), np.zeros(80)]
        np.testing.assert_allclose(svm.decision(model, wide), svm.decision(plain, X), atol=5e-3)


# ---- scales -------------------------------------------------------------------------------------------------------


def scaled(kind, scale, kernel, C):
    X, y = points(50)
    return fit(kind, scale * X, y, C=C, kernel=kernel)


@pytest.mark.parametrize("scale", [1e-160, 1e-8, 1e8])
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        *((kind, kernels.RBF(1.0)) for kind in KINDS),
        *((kind, kernels.Linear()) for kind in KINDS),
        *((kind, kernels.Polynomial(2, 1.0, 1.0)) for kind in ("svc", "one_class")),
    ],
    ids=str,
)
def test_features_of_any_scale(child, kind, scale, kernel):
    # A kernel that is constant to the last digit has no margin.
    answer = child.run(scaled, kind, scale, kernel, 1.0)
    check_ended_or_no_margin(answer, kind)
    if not isinstance(answer[0], Exception) and not isinstance(kernel, kernels.Polynomial):
        assert answer[0].certificate.converged


@pytest.mark.parametrize("C", [1e-6, 1e3, 1e6])
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        *((kind, kernels.RBF(0.5)) for kind in ("svc", "svr", "nu_svr")),
        *((kind, kernels.Linear()) for kind in ("svc", "svr")),
        ("svc", kernels.Polynomial(3, 1.0, 1.0)),
    ],
    ids=str,
)
def test_any_C(child, kind, C, kernel):
    model = check_ended(child.run(scaled, kind, 1.0, kernel, C))
    assert np.abs(model.dual_coef).max() <= C * (1 + 1e-12)
    assert model.certificate.converged


def with_one_huge_column(kind, C):
    """One coordinate in the tens of millions beside others of one digit."""
    X, y = points(60, 5)
    X[:, 0] = np.random.default_rng(2).uniform(-2e7, 2e7, size=60)
    return fit(kind, X, y, C=C, kernel=kernels.Linear())


@pytest.mark.parametrize(("kind", "C"), [*((kind, 1.0) for kind in KINDS), ("svc", 1e4)])
def test_one_huge_column(child, kind, C):
    """In place of scikit-learn's issue 11020 (not to be found any more): unscaled data and the linear kernel."""
    assert check_ended(child.run(with_one_huge_column, kind, C)).certificate.converged


def histograms(kind):
    """Counts in the thousands, never standardised."""
    rng = np.random.default_rng(3)
    X = rng.poisson(1500 * np.exp(-0.3 * np.arange(21)), size=(60, 21)).astype(float)
    return fit(kind, X, X[:, 0] - np.median(X[:, 0]) + rng.normal(size=60), C=1e3, kernel=kernels.Linear())


@each_kind
def test_unscaled_counts(child, kind):
    assert check_ended(child.run(histograms, kind)).certificate.converged


def far_from_the_origin():
    """Gradients of 1e14, whose last digit is a hundredth: no step can bring the violation below tol."""
    X, _ = points(80)
    return svm.one_class(np.c_[X, np.full((80, 2), 1e6)], kernel=kernels.Linear())


def test_stalls_from_rounding_are_found(child):
    """The bound on the number of steps is not what ends them."""
    model = check_ended(child.run(far_from_the_origin))
    assert model.certificate.iterations < 1_000_000
    assert model.certificate.gap <= 1e-9 * abs(model.certificate.primal)


# ---- what has hung LIBSVM -----------------------------------------------------------------------------------------


def nearly_equal_rows():
    """After scikit-learn's issue 13075: ν-SVC, a cubic kernel with a large constant, two of six rows nearly equal."""
    rng = np.random.default_rng(13075)
    X = rng.random((6, 13)) * (rng.random((6, 13)) < 0.4)
    X[5] = X[0]
    X[5, 9] += 2e-4
    y = np.array([False, True, True, False, True, False])
    for _ in range(100):
        model = svm.svc(X, y, nu=2 / 7, kernel=kernels.Polynomial(3, 1 / 13, 10.0))
    return model


def test_nu_svc_of_nearly_equal_rows(child):
    check_ended(child.run(nearly_equal_rows))


def iris_like(degree, gamma, C, multiclass):
    """After scikit-learn's issue 13557: degree 7 or 8 and γ in the thousands, so that K ranges over fifty decades."""
    rng = np.random.default_rng(13557)
    centres = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.5, 2.0]])
    y = np.repeat([0, 1, 2], 28)
    X = np.round(centres[y] + 0.35 * rng.normal(size=(84, 4)), 1)
    return svm.svc(X, y, C=C, kernel=kernels.Polynomial(degree, gamma, 0.0), multiclass=multiclass)


@pytest.mark.parametrize(
    ("degree", "gamma", "C"), [(7, 4178.386, 0.6653), (7, 4317.581, 1.2347), (8, 864.158, 0.8157), (8, 1e5, 1e3)]
)
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_polynomials_of_high_degree_and_gamma(child, degree, gamma, C, multiclass):
    check_ended(child.run(iris_like, degree, gamma, C, multiclass))


def one_feature(spread):
    """After scikit-learn's issue 30353: one feature, degree 4, C = 100, two weighted classes that overlap."""
    rng = np.random.default_rng(30353)
    x = np.sort(rng.gamma(1.5, spread, size=200))
    y = (rng.random(200) < 1 / (1 + np.exp(-(x - spread) / spread))).astype(int)
    return svm.svc(
        x[:, None],
        y,
        C=100.0,
        kernel=kernels.Polynomial(4, 0.95974, 0.0),
        tol=0.01,
        class_weight={0: 1.0488, 1: 0.9555},
        cache_mb=1000.0,
    )


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_one_feature_of_degree_four(child, spread):
    assert check_ended(child.run(one_feature, spread)).certificate.converged


def two_points():
    """After scikit-learn's issue 4648."""
    return svm.svc([[1.0, 99999.0], [2.0, 99999.0]], [0, 1], kernel=kernels.Polynomial(2, 0.5, 0.0))


def test_two_points_far_from_the_origin(child):
    model = check_ended(child.run(two_points))
    np.testing.assert_array_equal(svm.predict(model, [[1.0, 99999.0], [2.0, 99999.0]]), [0, 1])


def high_degree_regression(degree, coef0, C):
    """After scikit-learn's issue 20547."""
    X, y = points(80, 4)
    return svm.svr(3 * X, y, C=C, kernel=kernels.Polynomial(degree, 0.25, coef0))


@pytest.mark.parametrize(("degree", "coef0", "C"), [(3, 0.5, 1000.0), (6, 0.9, 10.0), (9, 0.9, 1000.0)])
def test_regression_of_high_degree(child, degree, coef0, C):
    check_ended(child.run(high_degree_regression, degree, coef0, C))


def exactly_linear(C):
    """A target that the line fits exactly, in as many dimensions as half the rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(160, 80))
    return svm.svr(X, X @ (100 * rng.random(80)), C=C, kernel=kernels.Linear())


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_target_that_is_linear(child, C):
    assert check_ended(child.run(exactly_linear, C), convex=True).certificate.converged


def noise(C):
    rng = np.random.default_rng(5)
    return svm.svc(rng.normal(size=(250, 5)), rng.random(250) < 0.5, C=C, kernel=kernels.Linear())


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_labels_of_pure_noise(child, C):
    assert check_ended(child.run(noise, C)).certificate.converged


# ---- the hard margin ----------------------------------------------------------------------------------------------


def hard_margin(X, y, kernel):
    return svm.svc(X, y, C=math.inf, kernel=kernel)


def test_hard_margin_of_separable_points(child):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 2))
    X = X[np.abs(X[:, 0]) > 0.2]
    X = np.r_[X, [[-0.2, 0.0], [0.2, 5.0], [0.2, -5.0]]]  # the margin is 0.4, exactly
    y = X[:, 0] > 0
    for form in (np.asarray, sparse.csr_array):
        model = check_ended(child.run(hard_margin, form(X), y, kernels.Linear()))
        assert model.certificate.converged
        np.testing.assert_allclose(svm.margin(model), 0.4, rtol=2e-3)
        assert svm.slacks(model, X, y).values.max() <= 2e-3
        np.testing.assert_array_equal(svm.predict(model, X), y)


def test_hard_margin_with_one_support_vector_in_a_class():
    """The nearest points are -1 and 1, whatever lies behind them."""
    model = svm.svc([[-3.0], [-1.0], [1.0]], [0, 0, 1], C=math.inf, kernel=kernels.Linear())
    np.testing.assert_allclose(svm.decision(model, [[-3.0], [-1.0], [1.0]]), [-3.0, -1.0, 1.0], atol=1e-9)
    assert model.certificate.gap <= 1e-9


def test_hard_margin_is_the_limit_of_large_C(child):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    for kernel in (kernels.RBF(1.0), kernels.Polynomial(4, 1.0, 1.0)):
        model = check_ended(child.run(hard_margin, X, y, kernel))
        np.testing.assert_array_equal(svm.predict(model, X), y)
        soft = svm.svc(X, y, C=10 * np.abs(model.dual_coef).max(), kernel=kernel)
        np.testing.assert_allclose(svm.margin(model), svm.margin(soft), rtol=1e-2)


def not_separable(which):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(300, 2)), rng.random(300) < 0.5
    kernel = kernels.Linear()
    match which:
        case "xor":
            X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
        case "two labels for one point":
            X, y, kernel = np.r_[X, X[:1]], np.r_[y, ~y[:1]], kernels.RBF(5.0)
        case "all equal":
            X = np.ones_like(X)
        case "by a hair":
            X = np.c_[np.r_[np.linspace(-2, 1e-3, 100), np.linspace(-1e-3, 2, 100)]]
            y = np.arange(200) >= 100
        case "three classes":
            y = np.arange(300) % 3
        case "large":
            X, y = rng.normal(size=(3000, 10)), rng.random(3000) < 0.5
        case "csr":
            X = sparse.csr_array(X)
    return svm.svc(X, y, C=math.inf, kernel=kernel)


@pytest.mark.parametrize(
    "which", ["noise", "xor", "two labels for one point", "all equal", "by a hair", "three classes", "large", "csr"]
)
def test_hard_margin_of_points_that_are_not_separable(child, which):
    error, _, _ = child.run(not_separable, which, seconds=30)
    assert isinstance(error, svm.NotSeparable), error
    assert isinstance(error, ValueError)
    assert "C" in str(error)


# ---- stopping early -----------------------------------------------------------------------------------------------


@each_kind
def test_max_iter_is_a_result_and_a_warning(kind):
    X, y = points(200)
    with pytest.warns(svm.ConvergenceWarning, match="max_iter"):
        model = fit(kind, X, y, max_iter=3, tol=1e-6)
    c = model.certificate
    assert not c.converged
    assert 0 < c.iterations <= 3
    assert c.kkt > 1e-6
    exact = fit(kind, X, y, tol=1e-6)
    assert c.gap > exact.certificate.gap
    if kind != "nu_svc":  # which is rescaled
        assert c.dual <= exact.certificate.dual + 1e-9 <= c.primal + 1e-6
    assert np.isfinite(svm.decision(model, X)).all()


def test_more_iterations_are_better():
    X, y = points(200)
    duals = []
    for most in (1, 10, 50, 200):
        with pytest.warns(svm.ConvergenceWarning):
            duals.append(svm.svc(X, y > 0, C=100.0, tol=1e-9, max_iter=most).certificate.dual)
    assert (np.diff(duals) > 0).all()


def test_enough_iterations_are_no_warning():
    X, y = points(100)
    needed = svm.svc(X, y > 0).certificate.iterations
    assert svm.svc(X, y > 0, max_iter=10 * needed).certificate.converged  # a warning would be an error here


@each_kind
def test_callback_sees_progress(kind):
    X, y = points(1200, 5)
    seen = []
    model = fit(kind, X, y, C=10.0, tol=1e-4, callback=seen.append)
    assert seen
    assert all(0 <= p.fraction <= 1 for p in seen)
    assert all(isinstance(p.what, str) and p.what for p in seen)
    np.testing.assert_array_equal(fit(kind, X, y, C=10.0, tol=1e-4).dual_coef, model.dual_coef)


@each_kind
def test_callback_can_stop(kind):
    class Enough(Exception):
        pass

    def stop(progress):
        raise Enough

    X, y = points(1200, 5)
    with pytest.raises(Enough):
        fit(kind, X, y, C=10.0, callback=stop)
    assert fit(kind, X, y, C=10.0).certificate.converged  # and nothing is left behind


LONG = {
    "rbf": ("rng.normal(size=(9000, 30))", "kernels.RBF(0.05)", "{}"),
    "linear": ("rng.normal(size=(3000, 1100))", "kernels.Linear()", "{}"),  # too wide for interior points
    "csr": ("sparse.random(9000, 300, 0.1, format='csr', rng=rng)", "kernels.RBF(0.1)", "{}"),
    "no cache": ("rng.normal(size=(9000, 300))", "kernels.Laplacian(0.01)", "{'cache_mb': 1.0}"),
    "tune": ("rng.normal(size=(4000, 30))", "kernels.RBF()", "'tune'"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_ctrl_c_returns_within_a_second():
    """A child process fits for many seconds on one thread; SIGINT must end it at once."""
    prepare = """
import warnings
import numpy as np
from scipy import sparse
from kernelrules import kernels, svm
warnings.simplefilter("ignore")
"""
    cases = {}
    for name, (data, kernel, options) in LONG.items():
        call = f"svm.svc(X, y, C=1e5, kernel={kernel}, tol=1e-10, n_threads=1, **{options})"
        if name == "tune":
            call = "svm.tune(X, y, Cs=[1e3, 1e4, 1e5], gammas=[0.01, 0.1], folds=5, rng=0, tol=1e-8, n_threads=1)"
        cases[name] = (f"rng = np.random.default_rng(0); X = {data}; y = rng.random(X.shape[0]) < 0.5", call)
    told = seconds_of_all(prepare, cases)
    assert all(seconds is not None and seconds < 1.0 for seconds in told.values()), told
