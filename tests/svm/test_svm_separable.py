"""Claims about separability carry their proofs: against linear programming in whole numbers, at scales 1e-8 to 1e8."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from separable_oracle import hyperplane_or_weights, in_exact_numbers

from kernelrules import check, kernels, persist, svm
from kernelrules.svm.column_scaling import column_exponents, scaled
from kernelrules.svm.hard_margin.double_double import products

LINEAR = kernels.Linear()
HARD = {"C": math.inf, "kernel": LINEAR}
SHAPES = ["normal", "whole numbers", "corners", "gap", "slab", "touching", "equal rows", "halves"]


def rows_of(shape, seed, span=8.0):
    """Rows of two classes with columns of any unit."""
    rng = np.random.default_rng([SHAPES.index(shape), seed])
    n, p = int(rng.integers(2, 24)), int(rng.integers(1, 6))
    X, y = rng.normal(size=(n, p)), rng.random(n) < 0.5
    y[:2] = [False, True]
    signs = np.where(y, 1.0, -1.0)
    w = rng.normal(size=p)
    w /= np.linalg.norm(w)
    match shape:
        case "whole numbers":
            X = rng.integers(-3, 4, size=(n, p)).astype(float)
        case "corners":
            X = rng.integers(0, 2, size=(n, p)).astype(float)
        case "gap" | "slab":  # a margin of 1e-9 to 1, with some rows or all of them near it
            gap = 10.0 ** rng.uniform(-9, 0)
            near = rng.random(n) < 0.6 if shape == "gap" else np.ones(n, dtype=bool)
            X = X + np.outer(signs * gap * rng.uniform(1, 1.5, n) * np.where(near, 1, 1 / gap) - X @ w, w)
        case "touching":
            X[:, 0] = signs * rng.integers(0, 4, n)
        case "equal rows":
            X[1] = X[0]
        case "halves":
            y = X[:, 0] >= X[0, 0]
            y[X[:, 0].argmin()] = False
            y[X[:, 0].argmax()] = True
    return X * 10.0 ** rng.uniform(-span, span, p), y


def check_meeting(error, X, y):
    """The exception's weights prove it, in rational numbers: both means are equal but for rounding of those rows."""
    assert error.classes == (True, False)
    rows = [np.asarray(part) for part in error.rows]
    assert y[rows[0]].all()
    assert not y[rows[1]].any()
    means, sizes = [], []
    assert not any(array.flags.writeable for array in (*error.rows, *error.weights))
    for part, weights in zip(rows, error.weights, strict=True):
        exact = [Fraction(float(weight)) for weight in weights]
        assert min(exact) > 0
        assert abs(sum(exact) - 1) <= Fraction(len(exact), 2**52)
        columns = list(zip(*in_exact_numbers(X[part]), strict=True))
        means.append([sum(a * x for a, x in zip(exact, column, strict=True)) / sum(exact) for column in columns])
        sizes.append([sum(a * abs(x) for a, x in zip(exact, column, strict=True)) for column in columns])
    for first, second, *size in zip(*means, *sizes, strict=True):
        assert abs(first - second) <= sum(size) * Fraction(1 + 2**-20) / 2**52
    assert 0 <= error.distance <= error.rounding


def check_machine(model, X, y):
    """w separates the rows, in rational numbers, with the margin that its certificate has."""
    w = [Fraction(float(number)) for number in model.weights[0]]
    values = [sum(p * q for p, q in zip(w, row, strict=True)) for row in in_exact_numbers(X)]
    least = min(value for value, positive in zip(values, y, strict=True) if positive)
    most = max(value for value, positive in zip(values, y, strict=True) if not positive)
    assert least > most
    np.testing.assert_allclose(float(least - most), 2.0, rtol=1e-6)
    certificate = model.certificate
    np.testing.assert_allclose(certificate.primal, float(sum(number * number for number in w)) / 2, rtol=1e-9)
    assert certificate.dual <= certificate.primal
    assert certificate.converged == (certificate.kkt <= 1e-3)


@pytest.mark.filterwarnings("ignore::kernelrules.svm.ConvergenceWarning")
@pytest.mark.parametrize("shape", SHAPES)
def test_claims_are_those_of_exact_arithmetic(shape):
    undecided = unfinished = n_separable = 0
    n_sets = 40
    for seed in range(n_sets):
        X, y = rows_of(shape, seed)
        separable = hyperplane_or_weights(X, np.where(y, 1, -1))[0] is not None
        n_separable += separable
        given = (X, sparse.csr_array(X), np.asfortranarray(X))[seed % 3]
        try:
            model = svm.svc(given, y, **HARD)
        except svm.NotSeparable as error:
            assert not separable, seed
            check_meeting(error, X, y)
        except svm.Undecided:
            undecided += 1
        else:
            assert separable, seed
            check_machine(model, X, y)
            unfinished += not model.certificate.converged
    assert undecided <= 1
    assert unfinished <= 0.1 * n_sets
    assert (n_separable == 0) == (shape == "equal rows")


def low_rank_rows(shape, seed):
    """Separable rows whose centred matrix has fewer independent columns than it has columns."""
    rng = np.random.default_rng(seed)
    match shape:
        case "two points, twice each":
            return (rng.normal(size=(2, 2)) * 10.0 ** rng.integers(-4, 5, 2))[[0, 0, 1, 1]], np.array([0, 0, 1, 1]) > 0
        case "indicators":
            codes = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
            return np.concatenate([np.eye(4)[codes[0]], np.eye(3)[codes[1]]], axis=1), codes[0] >= 2
        case "few different rows":
            rows = rng.normal(size=(5, 6)) * 10.0 ** rng.integers(-4, 5, 6)
            chosen = np.append(np.arange(5), rng.integers(0, 5, 95))
            return rows[chosen], (np.array([0, 1, 0, 1, 1]) > 0)[chosen]
        case "sums of columns":
            X = rng.normal(size=(80, 4))
            return np.concatenate([X, X[:, :2], X @ rng.normal(size=(4, 3))], axis=1), X[:, 0] + X[:, 1] > 0


@pytest.mark.parametrize("shape", ["two points, twice each", "indicators", "few different rows", "sums of columns"])
def test_rows_of_low_rank(shape):
    """The widest margin is found: its certificate bounds it from both sides. A warning would be an error."""
    for seed in range(25):
        X, y = low_rank_rows(shape, seed)
        model = svm.svc(X, y, **HARD)
        assert model.certificate.converged
        assert model.certificate.gap <= 1e-6 * model.certificate.primal
        np.testing.assert_array_equal(svm.predict(model, X), y)
        if shape == "two points, twice each":
            np.testing.assert_allclose(svm.margin(model), np.linalg.norm(X[0] - X[-1]), rtol=1e-9)


@pytest.mark.parametrize("exponent", [20, 23, 25])
def test_exact_kernel_values_are_not_called_inseparable(exponent):
    """The hulls are 1 apart beside a column of 2²⁵, and all kernel values are exact in float64."""
    a = 2.0**exponent
    X, y = np.array([[-a, 0], [a, 0], [-a / 2, 1], [a / 2, 1]]), [0, 0, 1, 1]
    for given, kernel in ((X @ X.T, kernels.Precomputed()), (X, lambda u, v: u @ v.T)):
        if exponent == 20:
            np.testing.assert_allclose(svm.margin(svm.svc(given, y, C=math.inf, kernel=kernel)), 1.0, rtol=1e-6)
            continue
        with pytest.raises(svm.Undecided) as caught:
            svm.svc(given, y, C=math.inf, kernel=kernel)
        assert 0 <= caught.value.lower <= 1 <= caught.value.upper


def test_kernel_values_of_raw_breast_cancer_are_not_called_inseparable():
    X, y = pytest.importorskip("sklearn.datasets").load_breast_cancer(return_X_y=True)
    true = svm.margin(svm.svc(X, y, **HARD))
    for given, kernel in ((X @ X.T, kernels.Precomputed()), (X, lambda u, v: u @ v.T)):
        with pytest.raises(svm.Undecided) as caught:
            svm.svc(given, y, C=math.inf, kernel=kernel)
        assert caught.value.lower <= true <= caught.value.upper


def test_kernel_values_prove_what_rows_do():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 3)), rng.random(60) < 0.5
        for given, kernel in ((X @ X.T, kernels.Precomputed()), (X, lambda u, v: u @ v.T + 1.0)):
            with pytest.raises(svm.NotSeparable) as caught:
                svm.svc(given, y, C=math.inf, kernel=kernel)
            assert caught.value.distance <= caught.value.rounding
            c = np.zeros(60)
            for part, weights, sign in zip(caught.value.rows, caught.value.weights, (1, -1), strict=True):
                c[part] = sign * weights
                np.testing.assert_allclose(weights.sum(), 1.0)
            squared = sum(
                Fraction(float(v)) * Fraction(float(u)) * Fraction(float(k))
                for v, row in zip(c, X @ X.T, strict=True)
                for u, k in zip(c, row, strict=True)
            )
            if isinstance(kernel, kernels.Precomputed):
                assert abs(float(squared)) <= caught.value.rounding**2


def test_columns_of_unequal_units():
    """The set of issue 18: the margin is 1, beside a column of 1e7."""
    X, y = np.array([[0, 0], [1e7, 0], [0, 1], [1e7, 1]]), np.array([0, 0, 1, 1])
    model = svm.svc(X, y, **HARD)
    assert model.certificate.converged
    np.testing.assert_allclose(svm.margin(model), 1.0)
    np.testing.assert_array_equal(svm.predict(model, X), y)
    np.testing.assert_allclose(svm.decision(model, X), 2.0 * y - 1.0)
    np.testing.assert_allclose(svm.margin(svm.budget(X, y, 0.0, kernel=LINEAR)), 1.0)
    np.testing.assert_allclose(svm.margin(svm.path(X, y, [1.0, math.inf], kernel=LINEAR)[1]), 1.0)


def test_raw_columns_of_breast_cancer():
    X, y = pytest.importorskip("sklearn.datasets").load_breast_cancer(return_X_y=True)
    model = svm.svc(X, y, **HARD)
    assert model.certificate.converged
    np.testing.assert_array_equal(svm.predict(model, X), y)
    check_machine(model, X, y == 1)


def test_scaled_columns_of_separable_sets():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 5))
        score = X @ rng.normal(size=5)
        X, y = X[np.abs(score) > 0.1], score[np.abs(score) > 0.1] > 0
        X *= 10.0 ** rng.choice([-4, 4], 5)
        model = svm.svc(X, y, **HARD)
        assert model.certificate.converged
        np.testing.assert_array_equal(svm.predict(model, X), y)


def test_units_of_all_columns_together():
    """Rows times a power of two have the same machine, in other units."""
    X, y = rows_of("halves", 3, span=2.0)
    model, other = svm.svc(X, y, **HARD), svm.svc(2.0**20 * X, y, **HARD)
    np.testing.assert_allclose(2.0**20 * other.weights, model.weights, rtol=1e-9)


def test_margin_is_that_of_a_large_C():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3)) * [1.0, 30.0, 0.1]
    y = X[:, 0] + X[:, 1] / 30 > 0.3
    hard = svm.svc(X, y, **HARD)
    soft = svm.svc(X, y, C=1e7, kernel=LINEAR, tol=1e-6)
    np.testing.assert_allclose(svm.margin(hard), svm.margin(soft), rtol=1e-4)
    np.testing.assert_allclose(svm.decision(hard, X), svm.decision(soft, X), atol=1e-2)
    np.testing.assert_allclose(hard.dual_coef @ X[hard.support], hard.weights, rtol=1e-6)


def test_far_rows_are_judged_as_given():
    """A centre that is subtracted rounds: the proof is about the user's rows."""
    X = np.array([[1e8, 0.0], [1e8 + 1, 1e-3], [1e8, 2e-3], [1e8 + 1, 3e-3]])
    for fit in (lambda y: svm.svc(X, y, **HARD), lambda y: svm.path(X, y, [math.inf], kernel=LINEAR)[0]):
        model = fit([0, 0, 1, 1])
        check_machine(model, X, np.array([False, False, True, True]))
        with pytest.raises(svm.NotSeparable):
            fit([1, 0, 0, 1])


def test_more_columns_than_rows():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 1500)), np.arange(30) % 2
    assert svm.svc(X, y, **HARD).certificate.converged
    X[1] = X[0]
    with pytest.raises(svm.NotSeparable) as caught:
        svm.svc(X, y, **HARD)
    assert sorted(int(part[0]) for part in caught.value.rows) == [0, 1]


def test_one_row_in_each_class_and_float32():
    model = svm.svc(np.array([[1e-8, 3.0], [2e-8, 3.0]], dtype=np.float32), [0, 1], **HARD)
    np.testing.assert_allclose(svm.margin(model), 1e-8, rtol=1e-6)
    with pytest.raises(svm.NotSeparable):
        svm.svc([[1.0], [1.0]], [0, 1], **HARD)


# ---- what is raised -----------------------------------------------------------------------------------------------


def test_the_pair_of_classes_is_named():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [10.5], [30.0]])
    y = np.array(["low", "low", "mid", "mid", "odd", "odd"])
    for executor in (None, ThreadPoolExecutor(2)):
        with pytest.raises(svm.NotSeparable, match="class 'mid' against class 'odd'") as caught:
            svm.svc(X, y, **HARD, executor=executor)
        assert caught.value.classes == ("mid", "odd")
        first, second = (
            weights @ X[rows] for rows, weights in zip(caught.value.rows, caught.value.weights, strict=True)
        )
        np.testing.assert_allclose(first, second, rtol=1e-14)
        assert [set(y[part].tolist()) for part in caught.value.rows] == [{"mid"}, {"odd"}]
    with pytest.raises(svm.NotSeparable, match="class 'mid' against the rest") as caught:
        svm.svc(X, y, **HARD, multiclass="ovr")
    assert caught.value.classes == ("mid", None)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.distance == caught.value.distance


def test_rows_of_weight_zero_keep_their_numbers():
    with pytest.raises(svm.NotSeparable) as caught:
        svm.svc([[5.0], [0.0], [7.0], [2.0], [1.0]], [1, 0, 0, 0, 1], **HARD, sample_weight=[0, 1, 0, 1, 1])
    assert [part.tolist() for part in caught.value.rows] == [[4], [1, 3]]


def test_undecided_has_both_bounds():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 5))
    y = X[:, 0] > 0
    with pytest.raises(svm.Undecided, match="at least 0 and at most") as caught:
        svm.svc(X, y, **HARD, max_iter=1)
    true = svm.margin(svm.svc(X, y, **HARD))
    assert 0 == caught.value.lower <= true <= caught.value.upper
    assert not isinstance(caught.value, svm.NotSeparable)
    assert isinstance(caught.value, ValueError)


def test_radial_kernels_refuse_equal_rows_alone():
    """RBF kernels separate rows that differ, on paper: only equal ones are a proof."""
    line = [[0.0], [1.0], [2.0], [3.0]]
    with pytest.raises(svm.Undecided) as caught:
        svm.svc(line, [0, 1, 0, 1], C=math.inf, kernel=kernels.RBF(1e-9))
    assert caught.value.upper < 1e-6
    for form in (np.asarray, sparse.csr_array):
        with pytest.raises(svm.NotSeparable) as caught:
            svm.svc(form(np.array([[0.0], [1.0], [1.0]])), [0, 0, 1], C=math.inf, kernel=kernels.Laplacian(1.0))
        assert [part.tolist() for part in caught.value.rows] == [[2], [1]]


@pytest.mark.parametrize("form", ["polynomial", "precomputed", "callable"])
def test_other_kernels_prove_by_their_values(form):
    X = np.array([[-1.0], [1.0], [0.0], [0.5], [-0.5]])
    y = np.array([0, 1, 0, 0, 1])  # a parabola does not part them
    gram = kernels.gram(X, kernel=kernels.Polynomial(2, 1.0, 1.0))
    kernel = {
        "polynomial": kernels.Polynomial(2, 1.0, 1.0), "precomputed": kernels.Precomputed(),
        "callable": lambda a, b: (a @ b.T + 1.0) ** 2,
    }[form]  # fmt: skip
    with pytest.raises(svm.NotSeparable) as caught:
        svm.svc(gram if form == "precomputed" else X, y, C=math.inf, kernel=kernel)
    c = np.zeros(len(X))
    for part, weights, sign in zip(caught.value.rows, caught.value.weights, (1, -1), strict=True):
        c[part] = sign * weights
        np.testing.assert_allclose(weights.sum(), 1.0)
    if form == "polynomial":  # judged by monomials, to more digits than kernel values have
        features = kernels.feature_map(kernel, 1).transform(X)
        assert np.linalg.norm(features.T @ c) <= 4 * caught.value.rounding
    else:
        assert c @ gram @ c <= caught.value.rounding**2


def test_polynomials_of_unequal_columns_are_not_refused():
    """A plane separates these rows, so a parabola does; kernel values in float64 cannot tell."""
    X = np.random.default_rng(6).normal(size=(40, 3))
    X, y, kernel = X * [1e4, 1.0, 1e-4], X[:, 1] > 0, kernels.Polynomial(2, 1.0, 1.0)
    with pytest.raises(svm.Undecided) as caught:
        svm.svc(X, y, C=math.inf, kernel=kernel)
    # The plane x₁ = 0 is a hyperplane of the monomials, of which x₁ has the factor √2.
    least = math.sqrt(2) * (X[y, 1].min() - X[~y, 1].max())
    features = kernels.feature_map(kernel, 3).transform(X)
    nearest = min(np.linalg.norm(features[~y] - row, axis=1).min() for row in features[y])
    assert 0 < caught.value.lower <= caught.value.upper
    assert caught.value.lower <= nearest
    assert least <= nearest


@pytest.mark.parametrize("form", ["linear", "polynomial", "sigmoid", "precomputed", "callable", "sparse"])
def test_equal_rows_are_a_proof_for_every_kernel(form):
    """Whatever memory there is for kernel values."""
    X = np.random.default_rng(8).normal(size=(600, 8))
    X[451] = X[17]
    y = np.arange(600) >= 300
    kernel = {
        "linear": LINEAR, "sigmoid": kernels.Sigmoid(0.1), "precomputed": kernels.Precomputed(),
        "callable": lambda a, b: (a @ b.T + 1.0) ** 3,
    }.get(form, kernels.Polynomial(3, 1.0, 1.0))  # fmt: skip
    given = kernels.gram(X, kernel=LINEAR) if form == "precomputed" else sparse.csr_array(X) if form == "sparse" else X
    with pytest.raises(svm.NotSeparable) as caught:
        svm.svc(given, y, C=math.inf, kernel=kernel, cache_mb=0.01, max_iter=1)
    assert [part.tolist() for part in caught.value.rows] == [[451], [17]]
    assert caught.value.distance == caught.value.rounding == 0.0


@pytest.mark.parametrize(("n", "p", "separable"), [(1100, 1050, True), (2600, 1030, False)])
def test_many_rows_of_many_columns(monkeypatch, n, p, separable):
    """Of unequal units: too many for a first trial by interior points, and SMO does not end."""
    monkeypatch.setattr("kernelrules.svm.hard_margin.solve._STEPS_PER_OPERATION", 0.0)
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-4, 4, p), np.arange(n) % 2 == 0
    if separable:
        model = svm.svc(X, y, **HARD)
        assert model.certificate.converged
        np.testing.assert_array_equal(svm.predict(model, X), y)
    else:
        with pytest.raises(svm.NotSeparable) as caught:
            svm.svc(X, y, **HARD)
        assert caught.value.distance <= caught.value.rounding


def test_undecided_says_what_is_missing():
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(200, 5)), np.arange(200) % 2 == 0
    with pytest.raises(svm.Undecided, match="need max_iter of 400"):
        svm.svc(X, y, **HARD, max_iter=1)
    with pytest.raises(svm.Undecided, match="columns need cache_mb=1"):
        svm.svc(X * [1e5, 1.0, 1.0, 1.0, 1e-5], y, **HARD, cache_mb=0.01, max_iter=400)


def test_units_in_which_w_overflows_are_refused():
    X = np.random.default_rng(7).normal(size=(20, 2))
    with pytest.raises(ValueError, match="scale X"):
        svm.svc(1e-300 * X, X[:, 0] > 0, **HARD)


def test_saved_and_loaded(tmp_path):
    X, y = rows_of("halves", 1)
    model = svm.svc(X, y, **HARD)
    persist.save(model, tmp_path / "model")
    again = persist.load(tmp_path / "model")
    np.testing.assert_array_equal(again.weights, model.weights)
    np.testing.assert_array_equal(svm.decision(again, X), svm.decision(model, X))


# ---- what it is made of -------------------------------------------------------------------------------------------


def test_scaling_keeps_all_digits():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 6)) * 10.0 ** np.array([-200.0, -8, 0, 8, 200, 0]) * (rng.random((30, 6)) < 0.6)
    X[:, 5] = 3.3
    exponents = column_exponents(X)
    np.testing.assert_array_equal(exponents, column_exponents(check.matrix(sparse.csr_array(X))))
    part = scaled(X, -exponents)
    np.testing.assert_array_equal(scaled(part, exponents), X)
    deviation = part.std(axis=0)
    assert ((deviation[:5] >= 0.5) & (deviation[:5] < 1)).all()
    assert exponents[5] == 0


def test_sums_have_twice_the_digits():
    rng = np.random.default_rng(5)
    rows, v = rng.normal(size=(20, 12)) * 10.0 ** rng.uniform(-8, 8, (20, 12)), rng.normal(size=12)
    rows[:, -1] = -(rows[:, :-1] @ v[:-1]) / v[-1]  # what is left is rounding
    high, low = products(rows, v)
    exact_v = [Fraction(float(number)) for number in v]
    for row, a, b in zip(in_exact_numbers(rows), high, low, strict=True):
        exact = sum(p * q for p, q in zip(row, exact_v, strict=True))
        size = sum(abs(p * q) for p, q in zip(row, exact_v, strict=True))
        assert abs(Fraction(float(a)) + Fraction(float(b)) - exact) <= size * Fraction(12 * 12, 2**104)


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.RBF(1.0)], ids=repr)
@pytest.mark.parametrize("allowed", [1.0, 1e-4, 1e-9])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_budgets_of_separable_classes(kernel, allowed, unit, offset):
    """Whatever is small, the budget or the units, it is no reason to call them not separable."""
    rng = np.random.default_rng(0)
    X = unit * (rng.normal(size=(100, 2)) + offset)
    X[50:, 0] += 6 * unit
    y = np.repeat([0, 1], 50)
    if isinstance(kernel, kernels.RBF):
        kernel = kernels.RBF(kernel.gamma / unit**2)
    model = svm.budget(X, y, allowed, kernel=kernel)
    spent = svm.slacks(model, X, y).values.sum()
    assert model.certificate.converged
    assert spent <= allowed + 1e-15 * 100 * max(offset, 1.0)
    if allowed == 1.0:
        assert spent >= 0.998


def test_a_budget_out_of_reach_comes_with_a_proof():
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"]
    for offset in (0.0, 1e6):
        with pytest.raises(svm.NotSeparable, match=r"no C has slacks of sum 2\.0, the least found is 2\.66") as raised:
            svm.budget(np.array(X) + offset, y, 2.0, kernel=kernels.Linear())
        error = raised.value
        assert error.classes == ("b", "a")
        ends = [weights @ (np.array(X) + offset)[rows] for rows, weights in zip(error.rows, error.weights, strict=True)]
        assert abs(ends[0] - ends[1]) <= 1e-15 * max(offset, 1.0)


def test_hard_margins_of_kernels_leave_no_point_inside():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    model = svm.svc(X, y, C=math.inf, kernel=kernels.RBF(2.0))
    assert svm.slacks(model, X, y).values.max() <= 1e-9
    np.testing.assert_allclose(2 / svm.margin(model) ** 2, model.certificate.primal, rtol=1e-9)
