"""Relations between machines fitted to related data: none of them needs to know the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies import csr_forms, layouts
from svm_oracle import KINDS

from kernelrules import kernels, svm

TOL = 1e-8
RBF = kernels.RBF(0.6)
NAMED = [kernels.Linear(), kernels.Polynomial(2, 0.5, 1.0), RBF, kernels.Laplacian(0.4)]


def each_kind():
    return pytest.mark.parametrize("kind", KINDS)


def each_kernel():
    return pytest.mark.parametrize("kernel", NAMED, ids=lambda k: type(k).__name__)


def fit(kind, X, y, *, C=2.0, nu=0.5, epsilon=0.05, kernel=RBF, tol=TOL, **options):
    match kind:
        case "svc":
            return svm.svc(X, y > 0, C=C, kernel=kernel, tol=tol, **options)
        case "nu_svc":
            return svm.svc(X, y > 0, nu=nu, kernel=kernel, tol=tol, **options)
        case "svr":
            return svm.svr(X, y, C=C, epsilon=epsilon, kernel=kernel, tol=tol, **options)
        case "nu_svr":
            return svm.svr(X, y, C=C, nu=nu, kernel=kernel, tol=tol, **options)
    return svm.one_class(X, nu=nu, kernel=kernel, tol=tol, **options)


def data(n=60, p=3, seed=0):
    """Points away from the origin (or a line through it would be the answer of one class), and a noisy target around
    zero; its sign makes two classes that overlap, yet leave a margin at nu = 0.5."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 1.5
    y = np.sin(2 * X[:, 0]) / 2 + X[:, 1] + X[:, 2] - 3.0 + 0.5 * rng.normal(size=n)
    return X, y, rng.normal(size=(25, p)) + 1.5


def assert_same(a, b, new, new_b=None, atol=1e-5):
    """Two fits of one optimum: objective, and decision values at new points."""
    near = 1e-5 if a.kind == "nu_svc" else 1e-7  # after the division by ρ the objective is not stationary
    np.testing.assert_allclose(a.certificate.dual, b.certificate.dual, rtol=near)
    np.testing.assert_allclose(svm.decision(a, new), svm.decision(b, new if new_b is None else new_b), atol=atol)


def assert_identical(a, b):
    """Bit for bit."""
    for name in ("support", "dual_coef", "intercept"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.certificates == b.certificates


# ---- rows ---------------------------------------------------------------------------------------------------------


@each_kind()
@each_kernel()
def test_the_order_of_rows_does_not_matter(kind, kernel):
    X, y, new = data()
    order = np.random.default_rng(1).permutation(len(X))
    assert_same(fit(kind, X, y, kernel=kernel), fit(kind, X[order], y[order], kernel=kernel), new, atol=1e-4)


@each_kind()
def test_the_order_of_features_does_not_matter(kind):
    X, y, new = data()
    assert_same(fit(kind, X, y), fit(kind, X[:, ::-1], y), new, new[:, ::-1])


@each_kind()
@each_kernel()
def test_a_row_twice_is_a_row_of_weight_two(kind, kernel):
    X, y, new = data(50)
    twice = np.random.default_rng(2).random(50) < 0.4
    rows = np.concatenate([np.arange(50), np.flatnonzero(twice)])
    repeated = fit(kind, X[rows], y[rows], kernel=kernel)
    weighted = fit(kind, X, y, kernel=kernel, sample_weight=1.0 + twice)
    assert_same(repeated, weighted, new, atol=1e-4)
    plain = fit(kind, X, y, kernel=kernel)
    assert np.abs(svm.decision(plain, new) - svm.decision(weighted, new)).max() > 1e-3, "the weights do nothing"


@each_kind()
def test_a_row_of_weight_zero_is_absent(kind):
    X, y, new = data(60)
    kept = np.random.default_rng(3).random(60) < 0.7
    absent = fit(kind, X[kept], y[kept])
    weighted = fit(kind, X, y, sample_weight=kept.astype(float))
    assert_same(absent, weighted, new)
    assert kept[weighted.support].all()


def test_rows_beyond_the_margin_do_not_matter():
    X, y, new = data(80)
    model = fit("svc", X, y)
    needed = np.zeros(80, dtype=bool)
    needed[model.support] = True
    assert 0 < needed.sum() < 70
    assert_same(model, fit("svc", X[needed], y[needed]), new)


@each_kind()
def test_twice_the_same(kind):
    X, y, _ = data()
    assert_identical(fit(kind, X, y), fit(kind, X, y))


@each_kind()
def test_input_is_left_alone(kind):
    X, y, new = data()
    weight = np.linspace(0.5, 1.5, len(X))
    arrays = X, y, weight, new
    before = [a.copy() for a in arrays]
    svm.predict(fit(kind, X, y, sample_weight=weight), new)
    for array, was in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, was)


# ---- labels and targets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["svc", "nu_svc"])
@each_kernel()
def test_flipping_the_labels_flips_the_decision(kind, kernel):
    X, y, new = data()
    a, b = fit(kind, X, y, kernel=kernel), fit(kind, X, -y, kernel=kernel)
    np.testing.assert_allclose(a.certificate.dual, b.certificate.dual, rtol=1e-5)
    np.testing.assert_allclose(svm.decision(a, new), -svm.decision(b, new), atol=1e-4)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_renaming_classes_renames_predictions(multiclass):
    X, y, new = data(90)
    code = np.digitize(y, [-0.7, 0.7])
    names = np.array(["z", "m", "a"])  # sorts the other way round
    plain = svm.svc(X, code, multiclass=multiclass, kernel=RBF, tol=TOL)
    renamed = svm.svc(X, names[code], multiclass=multiclass, kernel=RBF, tol=TOL)
    f, g = svm.decision(plain, new), svm.decision(renamed, new)
    # Classes 0, 1, 2 have become 2, 1, 0: pairs (0,1), (0,2), (1,2) are (1,2), (0,2), (0,1), the other way round.
    np.testing.assert_allclose(g[:, ::-1], -f if multiclass == "ovo" else f, atol=1e-4)
    np.testing.assert_array_equal(names[svm.predict(plain, new)], svm.predict(renamed, new))


@pytest.mark.parametrize("kind", ["svr", "nu_svr"])
def test_shifting_and_scaling_the_target(kind):
    X, y, new = data()
    f = svm.decision(fit(kind, X, y), new)
    np.testing.assert_allclose(svm.decision(fit(kind, X, y + 7.0), new), f + 7.0, atol=1e-5)
    np.testing.assert_allclose(svm.decision(fit(kind, X, -y), new), -f, atol=1e-5)
    scaled = fit(kind, X, 4 * y, C=8.0, epsilon=0.2, tol=4 * TOL)
    np.testing.assert_allclose(svm.decision(scaled, new), 4 * f, atol=1e-4)


def test_nu_svc_is_svc_at_its_own_C():
    """The rescaled ν-machine is the C-machine with C = 1/ρ, which its largest coefficients show."""
    X, y, new = data()
    by_nu = fit("nu_svc", X, y, nu=0.5)
    C = np.abs(by_nu.dual_coef).max()
    np.testing.assert_allclose(svm.decision(fit("svc", X, y, C=C), new), svm.decision(by_nu, new), atol=1e-5)


def test_nu_svr_is_svr_at_its_own_epsilon():
    X, y, new = data()
    by_nu = fit("nu_svr", X, y, nu=0.4)
    c = np.zeros(len(X))
    c[by_nu.support] = by_nu.dual_coef[0]
    free = (np.abs(c) > 1e-6) & (np.abs(c) < 2.0 - 1e-6)
    misses = np.abs(y - svm.decision(by_nu, X))[free]  # on the tube: the width that ν has chosen
    assert np.ptp(misses) < 1e-5
    by_width = fit("svr", X, y, epsilon=misses.mean())
    np.testing.assert_allclose(svm.decision(by_width, new), svm.decision(by_nu, new), atol=1e-4)


# ---- scales -------------------------------------------------------------------------------------------------------


@each_kind()
@pytest.mark.parametrize("power", [-10, 3, 20])
def test_scaling_data_is_scaling_gamma(kind, power):
    X, y, new = data()
    scale = 2.0**power
    for a, b in (
        (kernels.RBF(0.6), kernels.RBF(0.6 / scale**2)),
        (kernels.Laplacian(0.4), kernels.Laplacian(0.4 / scale)),
        (kernels.Polynomial(2, 0.5, 1.0), kernels.Polynomial(2, 0.5 / scale**2, 1.0)),
    ):
        assert_same(fit(kind, X, y, kernel=a), fit(kind, scale * X, y, kernel=b), new, scale * new, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scaling_data_is_scaling_C_for_the_linear_kernel(scale):
    X, y, new = data()
    a = fit("svc", X, y, kernel=kernels.Linear())
    b = fit("svc", scale * X, y, C=2.0 / scale**2, kernel=kernels.Linear())
    np.testing.assert_allclose(svm.decision(a, new), svm.decision(b, scale * new), atol=1e-4)
    np.testing.assert_allclose(scale * svm.margin(a), svm.margin(b), rtol=1e-5)


@each_kind()
@pytest.mark.parametrize("shift", [-3.0, 1000.0])
def test_shifting_data_changes_no_distance(kind, shift):
    X, y, new = data()
    X, new = np.round(64 * X) / 64, np.round(64 * new) / 64  # the shift itself is exact
    for kernel in (RBF, kernels.Laplacian(0.4)):
        assert_same(fit(kind, X, y, kernel=kernel), fit(kind, X + shift, y, kernel=kernel), new, new + shift)


def test_shifting_data_moves_only_the_intercept_of_a_line():
    X, y, new = data()
    for kind in ("svc", "svr"):
        a = fit(kind, X, y, kernel=kernels.Linear())
        b = fit(kind, X + 10.0, y, kernel=kernels.Linear(), tol=1e-7)
        np.testing.assert_allclose(svm.decision(a, new), svm.decision(b, new + 10.0), atol=1e-4)


@pytest.mark.parametrize("kind", ["svc", "svr"])
def test_the_objective_grows_with_C(kind):
    """The dual optimum is non-decreasing and concave in C; Σξ never grows."""
    X, y, _ = data()
    Cs = np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    duals = np.array([fit(kind, X, y, C=C).certificate.dual for C in Cs])
    assert (np.diff(duals) >= -1e-7).all()
    assert (np.diff(duals, 2) <= 1e-6).all()
    if kind == "svc":
        spent = [svm.slacks(fit(kind, X, y, C=C), X, y > 0).values.sum() for C in Cs]
        assert (np.diff(spent) <= 1e-5).all()


# ---- forms of the same numbers ------------------------------------------------------------------------------------


@each_kind()
@settings(max_examples=12)
@given(st.data(), st.sampled_from(NAMED))
def test_any_sparse_form_is_the_dense_one(kind, drawn, kernel):
    X, y, new = data()
    rng = np.random.default_rng(4)
    X, new = X * (rng.random(X.shape) < 0.6), new * (rng.random(new.shape) < 0.6)
    nu = 0.8  # with entries missing the classes overlap more, and a smaller one leaves no margin
    dense = fit(kind, X, y, kernel=kernel, nu=nu)
    csr = fit(kind, drawn.draw(csr_forms(X)), y, kernel=kernel, nu=nu)
    assert sparse.issparse(csr.support_vectors)
    assert_same(dense, csr, new, drawn.draw(csr_forms(new)), atol=1e-4)
    for model in (dense, csr):
        rounding = 1e-9 * max(1.0, np.abs(model.dual_coef).sum())
        np.testing.assert_allclose(svm.decision(model, new), svm.decision(model, sparse.csr_array(new)), atol=rounding)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_sparse_rows_of_many_classes(multiclass):
    X, y, new = data(90)
    X = X * (np.random.default_rng(5).random(X.shape) < 0.6)
    code = np.digitize(y, [-0.7, 0.7])
    dense = svm.svc(X, code, multiclass=multiclass, kernel=RBF, tol=TOL)
    csr = svm.svc(sparse.csr_array(X), code, multiclass=multiclass, kernel=RBF, tol=TOL)
    np.testing.assert_allclose(svm.decision(dense, new), svm.decision(csr, new), atol=1e-4)


@each_kind()
@settings(max_examples=10)
@given(st.data(), st.sampled_from([np.float64, np.float32]))
def test_memory_layout_does_not_matter(kind, drawn, dtype):
    X, y, new = data(40)
    X, new = X.astype(dtype), new.astype(dtype)
    plain = fit(kind, X, y, tol=1e-4)
    weight = np.ones(80)[::2]
    other = fit(kind, drawn.draw(layouts(X)), np.repeat(y, 2)[::2], tol=1e-4)
    assert_identical(plain, other)
    assert_same(plain, fit(kind, X, y, tol=1e-4, sample_weight=weight), new)
    np.testing.assert_array_equal(svm.decision(plain, new), svm.decision(plain, drawn.draw(layouts(new))))


@each_kind()
def test_whole_numbers_and_other_widths(kind):
    """Integers, booleans and lists mean the same numbers in float64."""
    X, y, _ = data()
    whole = np.round(3 * X).astype(np.int16)
    assert_identical(fit(kind, whole, y), fit(kind, whole.astype(float), y))
    if kind != "nu_svc":  # eight different points, with labels of both kinds: there is no margin
        flags = X > 1.5
        assert_identical(fit(kind, flags, y), fit(kind, flags.astype(float), y))
    assert_identical(fit(kind, X.tolist(), y), fit(kind, X, y))


@each_kind()
@each_kernel()
def test_float32_is_nearly_float64(kind, kernel):
    X, y, new = data()
    X, new = X.astype(np.float32), new.astype(np.float32)
    narrow = fit(kind, X, y, kernel=kernel, tol=1e-5)
    wide = fit(kind, X.astype(np.float64), y, kernel=kernel, tol=1e-5)
    np.testing.assert_allclose(narrow.certificate.dual, wide.certificate.dual, rtol=1e-4)
    np.testing.assert_allclose(svm.decision(narrow, new), svm.decision(wide, new), atol=2e-3)


# ---- threads ------------------------------------------------------------------------------------------------------


@each_kind()
@pytest.mark.parametrize("form", ["dense", "csr", "linear", "csr linear", "float32", "precomputed"])
def test_threads_change_no_bit(kind, form):
    X, y, _ = data(700, 6)
    kernel = kernels.Linear() if "linear" in form else RBF
    if "csr" in form:
        X = sparse.csr_array(X * (np.random.default_rng(6).random(X.shape) < 0.5))
    if form == "float32":
        X = X.astype(np.float32)
    if form == "precomputed":
        X, kernel = kernels.gram(X, kernel=RBF), kernels.Precomputed()
    one, two, five = (fit(kind, X, y, kernel=kernel, nu=0.8, tol=1e-3, n_threads=n) for n in (1, 2, 5))
    assert_identical(one, two)
    assert_identical(one, five)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("cache_mb", [None, 1.0])
def test_threads_change_no_bit_of_many_machines(multiclass, cache_mb):
    """Also where the rows do not fit the cache."""
    X, y, _ = data(500, 6)
    code = np.digitize(y, [-1.0, 0.0, 1.0])
    one, two = (svm.svc(X, code, multiclass=multiclass, cache_mb=cache_mb, n_threads=n) for n in (1, 2))
    assert_identical(one, two)


@each_kind()
def test_a_small_cache_finds_the_same_optimum(kind):
    X, y, new = data(600, 4)
    small = fit(kind, X, y, tol=1e-6, cache_mb=0.1)
    assert small.certificate.converged
    large = fit(kind, X, y, tol=1e-6, cache_mb=500.0)
    np.testing.assert_allclose(small.certificate.dual, large.certificate.dual, rtol=1e-6)
    np.testing.assert_allclose(svm.decision(small, new), svm.decision(large, new), atol=1e-3)
