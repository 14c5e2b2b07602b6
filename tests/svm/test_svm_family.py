"""The five machines against quadratic programmes written out, against scikit-learn, and against what they promise."""

import dataclasses
import functools
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import combinations
from multiprocessing import get_context

import numpy as np
import pytest
import svm_oracle as oracle
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from machines import blobs, each_kind, fit
from scipy import sparse

from kernelrules import kernels, svm

KERNELS = [kernels.Linear(), kernels.Polynomial(2, 0.5, 1.0), kernels.RBF(0.7), kernels.Laplacian(0.3)]


@dataclasses.dataclass(frozen=True)
class Case:
    X: np.ndarray
    y: np.ndarray
    kernel: kernels.Kernel
    parameters: dict

    @property
    def K(self):
        return kernels.gram(self.X, kernel=self.kernel)


@st.composite
def cases(draw, kind):
    """Small data with ties, repeats and constant columns; targets of both signs; weights of which some are zero."""
    n, p = draw(st.integers(5, 18)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, p))
    if draw(st.booleans()):
        X = np.round(X)
    if draw(st.booleans()):
        X[rng.integers(n, size=n // 3)] = X[0]
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=n) if draw(st.booleans()) else None
    if weight is not None:
        weight[:4] = 1.0
    if kind in ("svr", "nu_svr"):
        y = X[:, 0] ** 2 + rng.normal(size=n)
    else:
        y = np.where(rng.random(n) < draw(st.floats(0.2, 0.8)), 1.0, -1.0)
        y[:4] = 1, -1, 1, -1
    parameters = {"weight": weight}
    if kind in ("svc", "svr", "nu_svr"):
        parameters["C"] = draw(st.sampled_from([0.01, 0.3, 1.0, 10.0, 100.0]))
    if kind == "svr":
        parameters["epsilon"] = draw(st.sampled_from([0.0, 0.1, 1.0]))
    if kind in ("nu_svc", "nu_svr", "one_class"):
        given_weight = np.ones(n) if weight is None else weight
        most = 2 * min(given_weight[y > 0].sum(), given_weight[y < 0].sum()) / given_weight.sum()
        parameters["nu"] = draw(st.floats(0.05, 0.95)) * (most if kind == "nu_svc" else 1.0)
    return Case(X, y, draw(st.sampled_from(KERNELS)), parameters)


@each_kind()
@settings(max_examples=40)
@given(data=st.data())
def test_every_kind_finds_the_optimum(kind, data):
    """Objective, the direction w, the intercept and the certificate, each within the bound that tol gives it."""
    case, tol = data.draw(cases(kind)), 1e-7
    K, parameters = case.K, case.parameters
    q = oracle.problem(kind, K, case.y, **parameters)
    best = oracle.solve(q)
    assume(kind != "nu_svc" or q.objective(best) > 1e-3)  # no margin at all: nothing to divide by

    model = fit(kind, case.X, case.y, kernel=case.kernel, tol=tol, **parameters)
    assert model.kind == kind
    assert model.certificate.converged
    (c,) = oracle.all_coefficients(model)
    c, rho = oracle.assert_certified(
        model.certificate, kind, K, c, model.intercept[0], case.y, width=model.epsilon, **parameters
    )

    # A violation below tol leaves at most tol · Σ upper in the objective, and w within √(2 gap) of the best w.
    digits = 1e-9 * max(1.0, abs(q.objective(best)))
    allowed = tol * q.upper.sum() * max(rho, 1.0) + digits
    reached = q.objective(oracle.variables(q, c))
    assert q.objective(best) - 2 * digits <= reached <= q.objective(best) + allowed
    assert model.certificate.gap * rho**2 <= allowed
    apart = c - q.coefficients(best)
    assert apart @ K @ apart <= 2 * (allowed + digits)
    assert oracle.primal(kind, K, c, case.y, b=model.intercept[0] * rho, **parameters) + reached <= 2 * allowed, (
        "the intercept is not optimal"
    )


def reference(kind, C, nu, tol, gamma):
    sklearn_svm = pytest.importorskip("sklearn.svm")
    options = {"kernel": "rbf", "gamma": gamma, "tol": tol}
    return {
        "svc": lambda: sklearn_svm.SVC(C=C, **options),
        "nu_svc": lambda: sklearn_svm.NuSVC(nu=nu, **options),
        "svr": lambda: sklearn_svm.SVR(C=C, epsilon=0.1, **options),
        "nu_svr": lambda: sklearn_svm.NuSVR(C=C, nu=nu, **options),
        "one_class": lambda: sklearn_svm.OneClassSVM(nu=nu, **options),
    }[kind]()


@each_kind()
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_as_good_as_scikit_learn(kind, C, tol):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(220, 4))
    target = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.4 * rng.normal(size=220)
    y = target if kind in ("svr", "nu_svr") else np.where(target > 0, 1.0, -1.0)
    parameters = {"C": C, "nu": 0.3}
    theirs = reference(kind, C, 0.3, tol, 0.25).fit(X, y)
    model = fit(kind, X, y, epsilon=0.1, kernel=kernels.RBF(0.25), tol=tol, **parameters)
    K = kernels.gram(X, kernel=kernels.RBF(0.25))
    q = oracle.problem(kind, K, y, **parameters)

    def objective(c):
        return q.objective(oracle.variables(q, c * (oracle.nu_scale(c, 0.3, 220) if kind == "nu_svc" else 1)))

    other = np.zeros(220)
    other[theirs.support_] = theirs.dual_coef_[0]
    (mine,) = oracle.all_coefficients(model)
    assert objective(mine) <= objective(other) + 0.01 * tol * abs(objective(other))
    new = rng.normal(size=(50, 4))
    theirs_f = theirs.predict(new) if kind in ("svr", "nu_svr") else theirs.decision_function(new)
    np.testing.assert_allclose(svm.decision(model, new), theirs_f, atol=30 * tol * max(1, C))


def mixture(A, B):
    """A kernel of the user's; in plain NumPy, as it is asked for thousands of single values."""
    products = A @ B.T
    squares = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * products
    return np.exp(-0.2 * np.maximum(squares, 0)) + 0.1 * products


def test_a_callable_may_use_the_package_itself():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] * X[:, 1] > 0
    for n_threads in (1, 2):
        asked = svm.svc(X, y, kernel=lambda A, B: kernels.gram(A, B, kernels.RBF(0.5)), n_threads=n_threads, tol=1e-8)
        np.testing.assert_allclose(
            svm.decision(asked, X), svm.decision(svm.svc(X, y, kernel=kernels.RBF(0.5), tol=1e-8), X), atol=1e-6
        )


@functools.lru_cache(1)
def larger_problem(how):
    """Data, targets as numbers, kernel, options and the Gram matrix, which all machines share."""
    rng = np.random.default_rng(8)
    n, p = 1200, 5
    X = rng.normal(size=(n, p)) + 0.5
    target = np.sin(2 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=n)
    kernel, options = kernels.RBF(0.2), {}
    if "few rows" in how:
        options["cache_mb"] = 2.0
    if how == "linear":
        kernel = kernels.Linear()
    if how == "polynomial":
        kernel = kernels.Polynomial(2, 0.1, 1.0)
    if "callable" in how:
        kernel = mixture
    data = X
    if "csr" in how:
        wide = np.zeros((n, 400))
        wide[np.arange(n)[:, None], rng.integers(0, 6 if how == "csr" else 400, size=(n, p))] = X
        data = sparse.csr_array(wide)
    K = mixture(X, X) if kernel is mixture else kernels.gram(data, kernel=kernel)
    return data, target, kernel, options, K


@each_kind()
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize(
    "how",
    ["float32 rows", "few rows kept", "linear", "polynomial", "csr", "thin csr", "callable", "callable, few rows kept"],
)
def test_certificates_of_larger_problems(kind, how, tol):
    """Where rows are float32, or not all kept, or not computed at all: the certificate is that of float64."""
    data, target, kernel, options, K = larger_problem(how)
    y = target if kind in ("svr", "nu_svr") else np.where(target > 0.5, 1.0, -1.0)
    model = fit(kind, data, y, kernel=kernel, tol=tol, nu=0.6, **options)
    assert model.certificate.converged
    assert model.certificate.kkt <= tol
    (c,) = oracle.all_coefficients(model)
    parameters = {"nu": 0.6} if kind in ("nu_svc", "nu_svr", "one_class") else {}
    b = model.intercept[0]
    _, rho = oracle.assert_certified(model.certificate, kind, K, c, b, y, width=model.epsilon, **parameters)
    upper = oracle.problem(kind, K, y, **parameters).upper
    assert model.certificate.gap * rho**2 <= tol * upper.sum() + 1e-9 * abs(model.certificate.dual) * rho**2
    np.testing.assert_allclose(svm.decision(model, data), K @ c + model.intercept[0], atol=1e-6 * max(1, 1 / rho))


# ---- what a model holds -------------------------------------------------------------------------------------------


@each_kind()
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_decision_is_the_sum_over_support_vectors(kind, kernel, form):
    X, y = blobs(k=2)
    model = fit(kind, form(X), y, kernel=kernel, nu=0.4)
    assert model.kernel == kernel
    assert (model.n_train, model.n_features) == X.shape
    in_order = [model.support] if model.classes is None else [model.support[y[model.support] == c] for c in (0, 1)]
    np.testing.assert_array_equal(model.support, np.concatenate(in_order))
    assert all((np.diff(rows) > 0).all() for rows in in_order)
    assert sparse.issparse(model.support_vectors) == (form is sparse.csr_array)
    vectors = model.support_vectors.toarray() if form is sparse.csr_array else model.support_vectors
    np.testing.assert_array_equal(vectors, X[model.support])
    assert model.dual_coef.shape == (1, len(model.support))
    assert (model.dual_coef != 0).any(axis=0).all(), "a support vector that supports nothing"
    new = X[::3] + 0.1
    expected = kernels.gram(new, vectors, kernel) @ model.dual_coef[0] + model.intercept[0]
    for data in (new, sparse.csr_array(new)):
        f = svm.decision(model, data)
        assert f.shape == (len(new),)
        np.testing.assert_allclose(f, expected, rtol=1e-9, atol=1e-9)
    match kind:
        case "svc" | "nu_svc":
            np.testing.assert_array_equal(svm.predict(model, new), (expected > 0).astype(int))
        case "one_class":
            np.testing.assert_array_equal(svm.predict(model, new), np.where(expected > 0, 1, -1))
        case _:
            np.testing.assert_array_equal(svm.predict(model, new), svm.decision(model, new))


def test_models_are_frozen():
    model = svm.svc(*blobs(k=2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.intercept = np.zeros(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.certificate.gap = 0.0


def test_gamma_is_resolved_on_the_training_data():
    X, y = blobs(k=2)
    model = svm.svc(X, y)
    assert model.kernel == kernels.RBF("scale").resolve(X)
    np.testing.assert_array_equal(
        svm.decision(model, X), svm.decision(svm.svc(X, y, kernel=kernels.RBF("scale").resolve(X)), X)
    )


def test_the_negative_class_has_the_boundary():
    """f(x) = x by symmetry; 0 goes to classes[0]."""
    model = svm.svc([[-1.0], [1.0]], ["no", "yes"], C=10.0, kernel=kernels.Linear())
    np.testing.assert_allclose(svm.decision(model, [[0.5], [-2.0], [0.0]]), [0.5, -2.0, 0.0], atol=1e-12)
    assert svm.decision(model, [[0.0]])[0] == 0
    np.testing.assert_array_equal(svm.predict(model, [[0.5], [-2.0], [0.0]]), ["yes", "no", "no"])


@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], np.array([3, 10, -2]), np.array([1.5, 0.5, 2.5]), ["long name", "x", "é"]],
    ids=["letters", "ints", "floats", "words"],
)
@pytest.mark.parametrize("k", [2, 3])
def test_labels_of_any_kind(names, k):
    X, code = blobs(k=k)
    y = np.asarray(names)[code]
    model = svm.svc(X, y)
    np.testing.assert_array_equal(model.classes, np.unique(y))
    assert model.classes.dtype == y.dtype
    predicted = svm.predict(model, X)
    assert predicted.dtype == y.dtype
    assert (predicted == y).mean() > 0.8
    plain = svm.svc(X, np.searchsorted(np.unique(y), y))
    np.testing.assert_array_equal(svm.decision(model, X), svm.decision(plain, X))
    listed = svm.predict(svm.svc(X, list(y)), X)
    np.testing.assert_array_equal(listed, predicted)


def test_labels_that_are_booleans_and_objects():
    X, code = blobs(k=2)
    model = svm.svc(X, code == 1)
    assert model.classes.dtype == bool
    np.testing.assert_array_equal(model.classes, [False, True])
    assert svm.predict(model, X).dtype == bool
    assert (svm.predict(model, X) == (code == 1)).mean() > 0.8
    objects = np.array(["no", "yes"], dtype=object)[code]
    np.testing.assert_array_equal(svm.predict(svm.svc(X, objects), X), objects[svm.predict(model, X).astype(int)])


def test_data_frames():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, code = blobs(k=3)
    y = np.array(["u", "v", "w"])[code]
    expected = svm.decision(svm.svc(X, y), X)
    for frame, series in (
        (pandas.DataFrame(X, columns=["a", "b"]), pandas.Series(y)),
        (polars.DataFrame(X, schema=["a", "b"]), polars.Series(y)),
    ):
        model = svm.svc(frame, series)
        np.testing.assert_array_equal(svm.decision(model, frame), expected)
        np.testing.assert_array_equal(model.classes, ["u", "v", "w"])


# ---- more than two classes ----------------------------------------------------------------------------------------


def by_votes(f, k):
    """One-vs-one by the rule as it is written: most votes, then the largest sum of confidences f / (1 + |f|)."""
    winners = []
    for row in f:
        votes, confidence = np.zeros(k), np.zeros(k)
        for value, (i, j) in zip(row, combinations(range(k), 2), strict=True):
            votes[i if value > 0 else j] += 1
            confidence[i] += value / (1 + abs(value))
            confidence[j] -= value / (1 + abs(value))
        winners.append(max(range(k), key=lambda c: (votes[c], confidence[c])))
    return np.array(winners)


def relative_gap(certificate):
    return certificate.gap / max(abs(certificate.primal), abs(certificate.dual))


@pytest.mark.parametrize("nu", [None, 0.2])
@pytest.mark.parametrize("k", [3, 5])
def test_one_vs_one(k, nu):
    X, y = blobs(90, k, seed=3)
    kernel = kernels.RBF(0.5)
    model = svm.svc(X, y, nu=nu, kernel=kernel, tol=1e-7)
    pairs = list(combinations(range(k), 2))
    assert model.multiclass == "ovo"
    assert len(model.certificates) == len(model.intercept) == len(pairs)
    assert model.certificate in model.certificates
    assert relative_gap(model.certificate) == max(map(relative_gap, model.certificates))
    new = np.random.default_rng(0).uniform(-4, 4, size=(400, 2))
    f = svm.decision(model, new)
    assert f.shape == (400, len(pairs))
    everything = oracle.all_coefficients(model)
    for column, (i, j) in enumerate(pairs):
        rows = np.flatnonzero((y == i) | (y == j))
        # Alone, the pair's machine is positive for its second class.
        alone = svm.svc(X[rows], y[rows], nu=nu, kernel=kernel, tol=1e-7)
        np.testing.assert_allclose(f[:, column], -svm.decision(alone, new), atol=1e-4)
        assert not everything[column, (y != i) & (y != j)].any()
        oracle.assert_certified(
            model.certificates[column],
            "svc" if nu is None else "nu_svc",
            kernels.gram(X[rows], kernel=kernel),
            everything[column, rows],
            model.intercept[column],
            np.where(y[rows] == i, 1.0, -1.0),
            **({} if nu is None else {"nu": nu}),
        )
    np.testing.assert_array_equal(svm.predict(model, new), by_votes(f, k))


def test_ties_of_votes_go_to_the_summed_confidence():
    """Three classes around a circle: where each pair's winner loses to the third, every class has one vote."""
    angle = 2 * np.pi * np.arange(3) / 3
    centres = np.c_[np.cos(angle), np.sin(angle)]
    rng = np.random.default_rng(2)
    y = np.repeat(np.arange(3), 15)
    X = centres[y] + 0.8 * rng.normal(size=(45, 2))
    model = svm.svc(X, y, C=100.0, kernel=kernels.RBF(2.0))
    new = rng.uniform(-2, 2, size=(4000, 2))
    f = svm.decision(model, new)
    cycle = (f[:, 0] > 0) == (f[:, 2] > 0)
    cycle &= (f[:, 0] > 0) != (f[:, 1] > 0)
    assert cycle.sum() >= 5, "no ties to test"
    expected = by_votes(f[cycle], 3)
    assert len(np.unique(expected)) > 1, "the first class would do"
    np.testing.assert_array_equal(svm.predict(model, new[cycle]), expected)


def test_one_vs_rest():
    X, code = blobs(90, 4, seed=1)
    y = np.array(["p", "q", "r", "s"])[code]
    model = svm.svc(X, y, multiclass="ovr", kernel=kernels.RBF(0.5), tol=1e-6)
    assert len(model.certificates) == 4
    new = np.random.default_rng(0).uniform(-4, 4, size=(200, 2))
    f = svm.decision(model, new)
    assert f.shape == (200, 4)
    K = kernels.gram(X, kernel=kernels.RBF(0.5))
    for c, coefficients in enumerate(oracle.all_coefficients(model)):
        alone = svm.svc(X, code == c, kernel=kernels.RBF(0.5), tol=1e-6)
        np.testing.assert_allclose(f[:, c], svm.decision(alone, new), atol=1e-4)
        signs = np.where(code == c, 1.0, -1.0)
        oracle.assert_certified(model.certificates[c], "svc", K, coefficients, model.intercept[c], signs)
    np.testing.assert_array_equal(svm.predict(model, new), model.classes[f.argmax(axis=1)])


def test_one_vs_rest_of_two_classes_is_one_machine():
    X, y = blobs(k=2)
    model = svm.svc(X, y, multiclass="ovr")
    np.testing.assert_array_equal(svm.decision(model, X), svm.decision(svm.svc(X, y), X))


@pytest.fixture(scope="module")
def executors():
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        yield threads, processes


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_an_executor_changes_nothing(executors, multiclass):
    X, y = blobs(80, 4)
    alone = svm.svc(X, y, multiclass=multiclass, tol=1e-7)
    models = [svm.svc(X, y, multiclass=multiclass, tol=1e-7, executor=e) for e in executors]
    for model in models:
        for a, b in zip(model.certificates, alone.certificates, strict=True):
            np.testing.assert_allclose(a.dual, b.dual, rtol=1e-7)
        np.testing.assert_allclose(svm.decision(model, X), svm.decision(alone, X), atol=1e-4)
    np.testing.assert_array_equal(models[0].dual_coef, models[1].dual_coef)


# ---- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_class_weights_are_sample_weights(k):
    X, code = blobs(61, k, spread=1.5)
    y = np.array(["a", "b", "c"])[code]
    weights = {"a": 0.5, "b": 3.0, "c": 1.25}
    by_row = np.array([weights[label] for label in y])
    expected = svm.svc(X, y, sample_weight=by_row, tol=1e-6)
    model = svm.svc(X, y, class_weight={c: weights[c] for c in np.unique(y)}, tol=1e-6)
    np.testing.assert_array_equal(svm.decision(model, X), svm.decision(expected, X))
    plain = svm.svc(X, y, tol=1e-6)
    assert np.abs(svm.decision(model, X) - svm.decision(plain, X)).max() > 0.05
    only_b = svm.svc(X, y, class_weight={"b": 3.0}, tol=1e-6)  # the others weigh 1
    np.testing.assert_array_equal(
        svm.decision(only_b, X), svm.decision(svm.svc(X, y, sample_weight=np.where(y == "b", 3.0, 1.0), tol=1e-6), X)
    )
    both = svm.svc(X, y, class_weight=weights if k == 3 else {"a": 0.5, "b": 3.0}, sample_weight=by_row, tol=1e-6)
    np.testing.assert_array_equal(
        svm.decision(both, X), svm.decision(svm.svc(X, y, sample_weight=by_row**2, tol=1e-6), X)
    )


def test_balanced_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.array([0] * 40 + [1] * 15 + [2] * 5)
    balanced = svm.svc(X, y, class_weight="balanced", tol=1e-6)
    expected = svm.svc(X, y, class_weight={c: 60 / (3 * n) for c, n in enumerate((40, 15, 5))}, tol=1e-6)
    np.testing.assert_allclose(svm.decision(balanced, X), svm.decision(expected, X), atol=1e-5)


def test_weights_multiply_C():
    X, y = blobs(k=2, spread=1.5)
    doubled = svm.svc(X, y, C=1.0, sample_weight=np.full(60, 2.0), tol=1e-8)
    np.testing.assert_allclose(svm.decision(doubled, X), svm.decision(svm.svc(X, y, C=2.0, tol=1e-8), X), atol=1e-6)


# ---- kernels of the user ------------------------------------------------------------------------------------------


@each_kind()
def test_precomputed_and_callable_kernels(kind):
    X, y = blobs(k=2, spread=1.5)
    kernel = kernels.RBF(0.4)
    new = X[:7] + 0.3
    expected = fit(kind, X, y, nu=0.4, kernel=kernel, tol=1e-8)
    f = svm.decision(expected, new)
    given_matrix = fit(kind, kernels.gram(X, kernel=kernel), y, nu=0.4, kernel=kernels.Precomputed(), tol=1e-8)
    assert given_matrix.support_vectors is None
    np.testing.assert_allclose(svm.decision(given_matrix, kernels.gram(new, X, kernel)), f, atol=1e-6)

    def mine(A, B):
        return np.exp(-0.4 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))

    called = fit(kind, X, y, nu=0.4, kernel=mine, tol=1e-8)
    np.testing.assert_allclose(svm.decision(called, new), f, atol=1e-6)
    np.testing.assert_array_equal(called.support_vectors, X[called.support])


def test_precomputed_with_many_classes():
    X, y = blobs(90, 4)
    kernel = kernels.RBF(0.4)
    expected = svm.decision(svm.svc(X, y, kernel=kernel, tol=1e-8), X)
    K = kernels.gram(X, kernel=kernel)
    model = svm.svc(K, y, kernel=kernels.Precomputed(), tol=1e-8)
    np.testing.assert_allclose(svm.decision(model, K), expected, atol=1e-6)


@each_kind()
def test_float32(kind):
    X, y = blobs(k=2, spread=1.5)
    narrow = X.astype(np.float32)
    wide = fit(kind, narrow.astype(np.float64), y, nu=0.4, kernel=kernels.RBF(0.4), tol=1e-5)
    model = fit(kind, narrow, y, nu=0.4, kernel=kernels.RBF(0.4), tol=1e-5)
    assert model.support_vectors.dtype == np.float32
    assert model.dual_coef.dtype == np.float64
    K = kernels.gram(narrow.astype(np.float64), kernel=kernels.RBF(0.4))
    target = y if kind in ("svr", "nu_svr") else np.where(y > 0, 1.0, -1.0)
    (c,) = oracle.all_coefficients(model)
    a, b = model.certificate, wide.certificate
    assert abs(a.dual - b.dual) <= 1e-4 * abs(b.dual)
    np.testing.assert_allclose(K @ c + model.intercept[0], svm.decision(wide, X.astype(np.float32)), atol=1e-3)
    parameters = {"nu": 0.4} if "nu" in kind or kind == "one_class" else {}
    oracle.assert_certified(a, kind, K, c, model.intercept[0], target, width=model.epsilon, **parameters)
