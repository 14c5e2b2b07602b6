"""Bounds: formulas by hand, complexities and labelings counted one by one, and how often simulated risks break them."""

import math
import warnings

import bounds_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupting import seconds_to_stop
from refused import refused
from scipy import sparse

from kernelrules import bounds, erm, kernels, losses, svm, tree


@st.composite
def gram_matrices(draw, most=9):
    n = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    root = rng.normal(size=(n, draw(st.integers(1, 5)))) * 10.0 ** draw(st.integers(-2, 2))
    if draw(st.booleans()):
        root[: n // 2] = root[0]
    return root @ root.T


# ---- Rademacher complexity ----------------------------------------------------------------------------------------


@given(gram_matrices(), st.floats(0, 100, allow_subnormal=False))
def test_closed_form_is_above_the_exact_complexity(K, a):
    exact = oracle.kernel_complexity(K, a)
    assert exact <= bounds.rademacher(np.trace(K), len(K), a) * (1 + 1e-12)


@given(gram_matrices(), st.integers(0, 2**32 - 1))
def test_monte_carlo_is_near_the_exact_complexity_and_never_above_the_closed_form(K, seed):
    found = bounds.rademacher_monte_carlo(K, 2.0, 400, rng=seed)
    assert found.value <= bounds.rademacher(np.trace(K), len(K), 2.0)
    assert found.n_draws == 400
    exact = oracle.kernel_complexity(K, 2.0)
    assert abs(found.value - exact) <= 6 * found.standard_error + 1e-9 * exact
    few = bounds.rademacher_monte_carlo(K, 2.0, 2, rng=seed)
    assert few.value <= bounds.rademacher(np.trace(K), len(K), 2.0)


def test_standard_errors_are_those_of_repetitions():
    X = np.random.default_rng(0).normal(size=(60, 2))
    K = kernels.gram(X, kernel=kernels.RBF(0.2))
    runs = [bounds.rademacher_monte_carlo(K, 1.0, 200, rng=seed) for seed in range(60)]
    spread = np.std([run.value for run in runs], ddof=1)
    assert 0.7 < spread / np.mean([run.standard_error for run in runs]) < 1.4
    plain = np.sqrt(
        np.einsum("ij,jk,ik->i", *(lambda s: (s, K, s))(np.random.default_rng(1).choice([-1.0, 1.0], (200, 60))))
    )
    assert runs[0].standard_error < plain.std(ddof=1) / 60 / math.sqrt(200), "known means make it more exact"


def test_monte_carlo_is_a_function_of_its_seed():
    K = kernels.gram(np.random.default_rng(0).normal(size=(250, 2)), kernel=kernels.RBF(0.2))
    one, two = (bounds.rademacher_monte_carlo(K, 1.0, 300, rng=3, n_threads=t) for t in (1, 2))
    assert one == two
    assert one == bounds.rademacher_monte_carlo(sparse.csr_array(K), 1.0, 300, np.random.default_rng(3))
    assert one != bounds.rademacher_monte_carlo(K, 1.0, 300, rng=4)
    seen = []
    bounds.rademacher_monte_carlo(K, 1.0, 300, rng=3, callback=seen.append)
    assert [p.done for p in seen] == [64, 128, 192, 256, 300]


def test_monte_carlo_is_never_negative():
    """What is averaged may be, where σᵀKσ is many times the trace: σ all of one sign, and K of ones."""
    values = [bounds.rademacher_monte_carlo(np.ones((20, 20)), 1.0, 2, rng=seed).value for seed in range(300)]
    assert min(values) == 0


def test_monte_carlo_of_special_matrices():
    assert bounds.rademacher_monte_carlo(np.eye(5), 1.0, 10, rng=0).value == pytest.approx(1 / math.sqrt(5))
    assert bounds.rademacher_monte_carlo(np.eye(5), 1.0, 10, rng=0).standard_error == pytest.approx(0, abs=1e-12)
    assert bounds.rademacher_monte_carlo(np.zeros((3, 3)), 1.0, 10, rng=0) == (0.0, 0.0, 10)
    assert bounds.rademacher_monte_carlo(np.eye(2), 0.0, 10, rng=0).value == 0


def test_bad_matrices():
    for bad, words in (
        (np.ones((2, 3)), ("square",)),
        (np.zeros((0, 0)), ()),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), ("symmetric",)),
        (np.array([[1.0, 5.0], [5.0, 1.0]]), ("semi-definite",)),
        (np.array([[-1.0, 0.0], [0.0, 1.0]]), ("semi-definite",)),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), ("semi-definite",)),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), ("nan",)),
        (np.ones(3), ()),
    ):
        with refused("K", *words):
            bounds.rademacher_monte_carlo(bad, 1.0, 20, rng=0)
    for bad in (1, 0, 2.5, "many"):
        with refused("n_draws"):
            bounds.rademacher_monte_carlo(np.eye(2), 1.0, bad)
    with refused("rng"):
        bounds.rademacher_monte_carlo(np.eye(2), 1.0, 10, rng="seed")


def test_interrupts_are_answered():
    code = """
import time
import numpy as np
from kernelrules import bounds
K = np.ones((3000, 3000)) + np.eye(3000)
print("ready", flush=True)
try:
    bounds.rademacher_monte_carlo(K, 1.0, 10_000_000, rng=0, n_threads=1)
except KeyboardInterrupt:
    print("interrupted", time.time())
"""
    assert seconds_to_stop(code) < 1.0


# ---- formulas -----------------------------------------------------------------------------------------------------


def test_covering_by_hand():
    assert bounds.covering(2.0, 3.0, 0.5, 10) == pytest.approx(36 * 144 * math.log(2 * 50 * 10 + 1))
    assert bounds.covering(0.0, 3.0, 0.5, 10) == 0
    assert bounds.covering(1.0, 1.0, 0.1, 10) > bounds.covering(1.0, 1.0, 0.2, 10)


def test_margin_bound_by_hand():
    u = np.array([2.0, 0.5, 0.1, -3.0])
    found = bounds.margin_bound(u, 8.0, norm=3.0, gamma=0.5, eta=0.1, norm_fixed=True)
    assert found.empirical == pytest.approx((0 + 0 + 0.8 + 1) / 4)
    assert found.complexity == pytest.approx(2 * 3 / (0.5 * 4) * math.sqrt(8))
    assert found.deviation == pytest.approx(3 * math.sqrt(math.log(2 / 0.1) / 8))
    assert found.total == found.empirical + found.complexity + found.deviation
    assert found.vacuous
    assert (found.n, found.eta) == (4, 0.1)


@pytest.mark.parametrize(
    ("norm", "k", "a"), [(0.0, 1, 1.0), (1.0, 1, 1.0), (1.01, 2, 2.0), (2.0, 2, 2.0), (100.0, 8, 128.0)]
)
def test_the_grid_of_norms(norm, k, a):
    u = np.linspace(-1, 2, 50)
    found = bounds.margin_bound(u, 50.0, norm=norm, eta=0.05)
    fixed = bounds.margin_bound(u, 50.0, norm=a, eta=6 * 0.05 / (math.pi * k) ** 2, norm_fixed=True)
    assert found.total == pytest.approx(fixed.total)
    scaled = bounds.margin_bound(u, 50.0, norm=norm * 0.25, eta=0.05, unit=0.25)
    assert scaled.deviation == pytest.approx(found.deviation)
    assert scaled.complexity == pytest.approx(found.complexity / 4)
    assert f"norm <= {a:g}" in found.about


OWN = losses.Loss(
    "steep", lambda u: np.maximum(0.0, 3.0 - 3.0 * u), lambda u: np.where(u < 1, -3.0, 0.0), np.zeros_like,
    lambda s: s, (-3.0, 0.0), False, "3 max(0, 1 - u)",
)  # fmt: skip


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("loss", ["ramp", "hinge", "logistic", losses.logistic, OWN], ids=str)
def test_margin_bound_of_any_lipschitz_loss(loss, gamma):
    u = np.random.default_rng(0).normal(size=50) * 2
    chosen = getattr(losses, loss) if isinstance(loss, str) else loss
    found = bounds.margin_bound(u, 40.0, norm=3.0, gamma=gamma, norm_fixed=True, loss=loss)
    steep = 3.0 if loss is OWN else 1.0
    assert found.empirical == pytest.approx(np.mean([min(1.0, chosen(x / gamma)) for x in u]))
    assert found.complexity == pytest.approx(2 * 3.0 * steep / (gamma * 50) * math.sqrt(40.0))
    assert found.deviation == bounds.margin_bound(u, 40.0, norm=3.0, norm_fixed=True).deviation
    of_errors = chosen.name != "logistic"
    assert found.about.startswith("error rate" if of_errors else "logistic risk")
    if of_errors:
        assert found.empirical >= np.mean(u <= 0)
    if loss == "hinge":
        assert found == bounds.margin_bound(u, 40.0, norm=3.0, gamma=gamma, norm_fixed=True)


def test_losses_without_a_lipschitz_constant_are_refused():
    for bad in ("squared", "exponential", "squared_hinge", "zero_one", losses.squared):
        with refused("loss", "Lipschitz"):
            bounds.margin_bound(np.ones(5), 1.0, norm=1.0, loss=bad)
    for bad in ("huber", 3, None):
        with refused("loss"):
            bounds.margin_bound(np.ones(5), 1.0, norm=1.0, loss=bad)


def test_models_have_the_bound_of_any_lipschitz_loss():
    X, y = rings(80)
    fit = erm.fit(X, y, 0.01, kernels.RBF(1.0), "hinge")
    u = np.where(y == "out", 1, -1) * erm.decision(fit, X)
    wanted = bounds.margin_bound(u, 80.0, norm=fit.norms[0], loss="logistic")
    assert bounds.of_model(fit, X, y, loss="logistic").total == pytest.approx(wanted.total)


@given(st.integers(2, 7), st.integers(1, 2), st.integers(0, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_depth_bounds_the_complexity_of_all_conjunctions(n, p, depth, seed):
    """By all signs, of the hull of ± the indicators of every conjunction of at most `depth` thresholds."""
    X = np.random.default_rng(seed).integers(0, 5, size=(n, p))
    tests = {tuple(X[:, j] <= cut) for j in range(p) for cut in range(5)}
    outcomes = [np.array(one) for test in tests for one in (test, np.logical_not(test))]
    leaves = {tuple(np.ones(n, bool))}
    for _ in range(depth):
        leaves |= {tuple(np.array(leaf) & one) for leaf in leaves for one in outcomes}
    signed = {tuple(sign * x for x in leaf) for leaf in leaves for sign in (-1.0, 1.0)}
    exact = oracle.complexity_of(signed)
    assert 2 * exact <= bounds.tree_rademacher(depth, len(tests), n, weight=2.0)


def test_depth_over_root_n():
    one = bounds.tree_rademacher(2, 10, 100)
    assert one == pytest.approx(2 * math.sqrt(2 * math.log(42) / 100))
    assert bounds.tree_rademacher(6, 10, 100) == pytest.approx(3 * one)
    assert bounds.tree_rademacher(2, 10, 900) == pytest.approx(one / 3)
    assert bounds.tree_rademacher(0, 10, 100) == bounds.tree_rademacher(1, 10, 100)
    for name, bad in {"depth": -1, "n_tests": 0, "n": 0, "weight": -1.0}.items():
        with refused(name):
            bounds.tree_rademacher(**{"depth": 1, "n_tests": 1, "n": 1, name: bad})


def test_shares_of_the_grid_add_up_to_eta():
    from kernelrules.bounds.arguments import log_share_of_class

    total = sum(math.exp(log_share_of_class(0.05, k)) for k in range(1, 10_000))
    assert total == pytest.approx(0.05, rel=1e-4)
    assert total < 0.05


def test_a_tiny_eta_costs_little():
    """Its logarithm counts: 1e-320 is no division by 0 and no infinite bound."""
    for eta in (1e-300, 1e-320, 5e-324):
        wanted = 3 * math.sqrt((math.log(2 * math.pi**2 / 6) - math.log(eta)) / 200)
        assert bounds.margin_bound(np.ones(100), 1.0, norm=1.0, eta=eta).deviation == pytest.approx(wanted)
        wanted = math.sqrt((math.log(math.pi**2 * 16 / 6) - math.log(eta)) / 200)
        assert bounds.tree(4, 2, 100, eta=eta).deviation == pytest.approx(wanted)


def test_words():
    said = str(bounds.margin_bound(np.full(10_000, 2.0), 1e4, norm=1.0))
    assert "with probability 0.95" in said
    assert "10000 points" in said
    assert "vacuous: a risk is at most 1" in str(bounds.margin_bound(np.full(10, 2.0), 1e4, norm=1.0))


BAD_NUMBERS = [-1.0, math.nan, math.inf, "1", None, True]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_numbers_out_of_range(bad):
    u = np.ones(5)
    for name, call in {
        "trace": lambda: bounds.rademacher(bad, 5, 1.0),
        "a": lambda: bounds.rademacher(1.0, 5, bad),
        "n": lambda: bounds.rademacher(1.0, bad, 1.0),
        "norm": lambda: bounds.margin_bound(u, 1.0, norm=bad),
        "gamma": lambda: bounds.margin_bound(u, 1.0, norm=1.0, gamma=bad),
        "eta": lambda: bounds.margin_bound(u, 1.0, norm=1.0, eta=bad),
        "unit": lambda: bounds.margin_bound(u, 1.0, norm=1.0, unit=bad),
        "b": lambda: bounds.covering(1.0, bad, 1.0, 5),
        "epsilon": lambda: bounds.covering(1.0, 1.0, bad, 5),
        "n_leaves": lambda: bounds.tree(bad, 3, 10),
        "n_features": lambda: bounds.tree(3, bad, 10),
        "empirical": lambda: bounds.tree(3, 3, 10, empirical=bad),
        "n_classes": lambda: bounds.tree(3, 3, 10, n_classes=bad),
        "categories": lambda: bounds.tree(3, 3, 10, categories=[bad]),
    }.items():
        with refused(name):
            call()


@pytest.mark.parametrize("value", [lambda u: np.full_like(u, np.nan), lambda u: np.zeros(3), lambda u: 0.0 * u.sum()])
def test_losses_that_do_not_give_a_number_for_each_margin(value):
    own = losses.Loss("own", value, np.zeros_like, np.zeros_like, None, (-1.0, 0.0), True, "own")
    with pytest.raises(ValueError, match="loss must give a number for each margin, and own does not"):
        bounds.margin_bound(np.ones(5), 5.0, norm=1.0, loss=own)


def test_other_arguments_out_of_range():
    u = np.ones(5)
    for bad in (0.0, 1.0, 1.5):
        with refused("eta"):
            bounds.margin_bound(u, 1.0, norm=1.0, eta=bad)
        with refused("eta"):
            bounds.tree(3, 3, 10, eta=bad)
    for bad in ([], 3.0, [[1.0]], [np.nan], ["a"]):
        with refused("margins"):
            bounds.margin_bound(bad, 1.0, norm=1.0)
    for name in ("gamma", "unit"):
        with refused(name):
            bounds.margin_bound(u, 1.0, norm=1.0, **{name: 0.0})
    with refused("norm_fixed"):
        bounds.margin_bound(u, 1.0, norm=1.0, norm_fixed=1)
    with refused("leaves_fixed"):
        bounds.tree(3, 3, 10, leaves_fixed="yes")
    with refused("empirical", "1.5"):
        bounds.tree(3, 3, 10, empirical=1.5)
    with refused("n_leaves"):
        bounds.tree(0, 3, 10)
    with refused("n_features", "split"):
        bounds.tree(3, 0, 10)
    with refused("epsilon", "overflow"):
        bounds.covering(1e200, 1e100, 1e-300, 5)
    with refused("norm", "overflows"):
        bounds.margin_bound(u, 1.0, norm=1e308)
    with refused("categories", "list", "3"):
        bounds.tree_labelings(3, 0, 5, categories=3)
    with refused("K", "overflow"):
        bounds.rademacher_monte_carlo(np.full((5, 5), 1e308), 1.0, 10, 0)
    with refused("a", "overflow"):
        bounds.rademacher_monte_carlo(np.full((5, 5), 1e200), 1e300, 10, 0)
    with pytest.raises(ValueError, match=r"got -3$"):
        bounds.tree(np.int64(-3), 3, 10)
    with pytest.raises(ValueError, match=r"got -1\.5$"):
        bounds.rademacher(np.float64(-1.5), 3, 1.0)
    assert bounds.margin_bound(u * 1e308, 1.0, norm=1.0, gamma=1e-10).empirical == 0


# ---- models -------------------------------------------------------------------------------------------------------


def rings(n, seed=0):
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, 2 * np.pi, n), rng.integers(0, 2, n)
    radius = 1 + 1.5 * y + 0.2 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.where(y == 1, "out", "in")


@pytest.mark.parametrize(
    "kernel",
    [kernels.RBF(1.0), kernels.Polynomial(2), lambda a, b: (1 + a @ b.T) ** 2],
    ids=["rbf", "polynomial", "callable"],
)
def test_bounds_of_models(kernel):
    X, y = rings(80)
    sign = np.where(y == "out", 1, -1)
    K = kernel(X, X) if callable(kernel) and not isinstance(kernel, kernels.Kernel) else kernels.gram(X, kernel=kernel)
    machine = svm.svc(X, y, C=2.0, kernel=kernel, tol=1e-6)
    w2 = machine.dual_coef[0] @ K[np.ix_(machine.support, machine.support)] @ machine.dual_coef[0]
    norm = math.sqrt(w2 + machine.intercept[0] ** 2)
    wanted = bounds.margin_bound(sign * svm.decision(machine, X), np.trace(K) + 80, norm=norm, gamma=0.7, eta=0.1)
    found = bounds.of_model(machine, X, y, gamma=0.7, eta=0.1)
    assert found.total == pytest.approx(wanted.total)
    for intercept in (False, True):
        fit = erm.fit(X, y, 0.01, kernel, intercept=intercept)
        b = fit.intercept[0]
        norm = math.sqrt(fit.alpha[0] @ K @ fit.alpha[0] + b**2)
        wanted = bounds.margin_bound(sign * erm.decision(fit, X), np.trace(K) + (80 if intercept else 0), norm=norm)
        assert bounds.of_model(fit, X, y).total == pytest.approx(wanted.total)


def test_models_that_have_no_margin_bound():
    X, y = rings(60)
    machine = svm.svc(X, y)
    three = svm.svc(X, np.arange(60) % 3)
    with refused("model", "str"):
        bounds.of_model("machine", X, y)
    for other in (three, svm.svr(X, X[:, 0]), svm.one_class(X), erm.fit(X, np.arange(60) % 3, 0.1)):
        with pytest.raises(ValueError, match="two classes"):
            bounds.of_model(other, X, y)
    with refused("y", "unknown"):
        bounds.of_model(machine, X, np.where(y == "in", "in", "unknown"))
    with refused("X", "no rows"):
        bounds.of_model(machine, X[:0], y[:0])
    with refused("X", "columns"):
        bounds.of_model(machine, X[:, :1], y)
    K = kernels.gram(X, kernel=kernels.RBF(1.0))
    given_matrix = svm.svc(K, y, kernel=kernels.Precomputed())
    assert bounds.of_model(given_matrix, K, y).n == 60
    with refused("X", "square"):
        bounds.of_model(given_matrix, K[:10], y[:10])
    for matrix in (K[::-1], sparse.csr_array(K[::-1])):  # rows in another order than columns
        with refused("X", "symmetric"):
            bounds.of_model(given_matrix, matrix, y[::-1])
    other = np.random.default_rng(0).permutation(60)  # of both, which symmetry does not show
    for model in (given_matrix, erm.fit(K, y, 0.01, kernels.Precomputed(), intercept=True)):
        assert bounds.of_model(model, sparse.csr_array(K), y).n == 60
        with refused("X", "order"):
            bounds.of_model(model, K[np.ix_(other, other)], y[other])
    rounded = kernels.gram(100 * X, kernel=kernels.Polynomial(3)).astype(np.float32)  # with eigenvalues below 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", erm.ConvergenceWarning)
        assert bounds.of_model(erm.fit(rounded, y, 1e-4, kernels.Precomputed()), rounded, y).n == 60
    numbered = svm.svc(X, (y == "in").astype(int))
    with pytest.raises(ValueError, match="y holds 2, which"):
        bounds.of_model(numbered, X, 1 + (y == "in"))


def test_margin_bound_holds_as_often_as_it_says():
    """Samples of a known source, 100 times: the ramp risk on other points is above the bound in at most a share η of
    them, and the bound is one that says something."""
    eta, broken, tight, totals = 0.2, 0, 0, []

    def blobs(n, seed):
        rng = np.random.default_rng(seed)
        y = rng.choice([-1, 1], n)
        return y[:, None] * [1.0, 0.5] + 0.7 * rng.normal(size=(n, 2)), y

    X_test, y_test = blobs(20_000, 10_000)
    for seed in range(100):
        X, y = blobs(600, seed)
        fit = erm.fit(X, y, 1e-3, kernels.Linear(), "squared_hinge", tol=1e-6)
        found = bounds.of_model(fit, X, y, eta=eta)
        risk = losses.ramp(y_test * erm.decision(fit, X_test)).mean()
        broken += risk > found.total
        tight += risk > found.empirical
        totals.append(found.total)
    assert broken <= eta * 100
    assert tight > 30, "the training mean alone would be no bound"
    assert max(totals) < 0.7


# ---- trees --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n", "p"), [(1, 1), (2, 1), (4, 1), (6, 1), (4, 2), (5, 2), (4, 3)])
def test_labelings_are_no_more_than_the_bound(n, p, n_classes):
    X = np.random.default_rng(n + 10 * p).permuted(np.tile(np.arange(n)[:, None], (1, p)), axis=0)
    for n_leaves in range(1, n + 2):
        count = len(oracle.labelings(X, n_leaves, n_classes))
        bound = math.exp(bounds.tree_labelings(n_leaves, p, n, n_classes=n_classes))
        assert count <= bound * (1 + 1e-9)
        if n_leaves == 1:
            assert count == pytest.approx(bound)
        if n_leaves >= n:
            assert count == pytest.approx(bound) == n_classes**n


@settings(max_examples=20)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_labelings_with_ties_and_categories(n, seed, n_leaves):
    """A numerical attribute with ties, and a categorical one of three values that splits by subsets."""
    X = np.random.default_rng(seed).integers(0, 3, size=(n, 2))
    ties = len(oracle.labelings(X, n_leaves))
    assert math.log(ties) <= bounds.tree_labelings(n_leaves, 2, n) + 1e-9
    mixed = len(oracle.labelings(X, n_leaves, categorical=(1,)))
    assert math.log(mixed) <= bounds.tree_labelings(n_leaves, 1, n, categories=[3]) + 1e-9
    only = len(oracle.labelings(X, n_leaves, categorical=(0, 1)))
    assert math.log(only) <= bounds.tree_labelings(n_leaves, 0, n, categories=[3, 3]) + 1e-9


@pytest.mark.parametrize("n_leaves", [1, 2, 3])
def test_massart(n_leaves):
    """Half the complexity term is above the exact Rademacher complexity of the 0/1 losses."""
    X = np.random.default_rng(0).permuted(np.tile(np.arange(6)[:, None], (1, 2)), axis=0)
    labels = np.array([0, 1, 1, 0, 1, 0])
    wrong = {tuple(int(a != b) for a, b in zip(each, labels, strict=True)) for each in oracle.labelings(X, n_leaves)}
    exact = oracle.complexity_of(wrong)
    assert exact <= bounds.tree(n_leaves, 2, 6).complexity / 2 * (1 + 1e-12)


def test_tree_bound_by_hand():
    found = bounds.tree(3, 5, 100, empirical=0.25, eta=0.1, n_classes=4, leaves_fixed=True)
    logarithm = math.log(5 * 99 * 5 * 98 * 4**3)
    assert bounds.tree_labelings(3, 5, 100, n_classes=4) == pytest.approx(logarithm)
    assert found.complexity == pytest.approx(math.sqrt(2 * logarithm / 100))
    assert found.deviation == pytest.approx(math.sqrt(math.log(10) / 200))
    assert found.empirical == 0.25
    loose = bounds.tree(3, 5, 100, empirical=0.25, eta=0.1, n_classes=4)
    assert loose.deviation == pytest.approx(math.sqrt(math.log(math.pi**2 * 9 / 0.6) / 200))
    assert bounds.tree_labelings(10**9, 5, 100) == pytest.approx(100 * math.log(2))
    grows = [bounds.tree(leaves, 5, 10_000).total for leaves in (1, 2, 4, 8, 16)]
    assert grows == sorted(grows)


def test_bounds_of_grown_trees():
    X, y = rings(300)
    grown = tree.grow(X, y, growth="best", max_leaves=6)
    found = bounds.of_tree(grown, X, y)
    wanted = bounds.tree(6, 2, 300, empirical=float(np.mean(tree.predict(grown, X) != y)))
    assert found == wanted
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "kind": pandas.Categorical(np.where(X[:, 1] > 0, "up", "down"))})
    mixed = tree.grow(frame, y, max_depth=2)
    error = float(np.mean(tree.predict(mixed, frame) != y))
    assert bounds.of_tree(mixed, frame, y) == bounds.tree(mixed.n_leaves, 1, 300, empirical=error, categories=[2])
    frame.loc[3, "a"] = np.nan
    with refused("X", "missing"):
        bounds.of_tree(tree.grow(frame, y, max_depth=2), frame, y)


def test_trees_that_have_no_bound():
    X, y = rings(60)
    grown = tree.grow(X, y, max_depth=2)
    with refused("t", "str"):
        bounds.of_tree("tree", X, y)
    with pytest.raises(ValueError, match="regression"):
        bounds.of_tree(tree.grow(X, X[:, 0], criterion="squared_error", max_depth=2), X, y)
    with refused("X", "no rows"):
        bounds.of_tree(grown, X[:0], y[:0])
    with refused("y", "59"):
        bounds.of_tree(grown, X, y[:59])
    holed = X.copy()
    holed[0, 0] = np.nan
    for form in (holed, np.ma.masked_invalid(holed)):
        with refused("X", "missing"):
            bounds.of_tree(grown, form, y)
    with refused("y", "unknown", "tree"):
        bounds.of_tree(grown, X, np.where(y == "in", "in", "unknown"))


def test_tree_bound_holds_as_often_as_it_says():
    eta, broken, tight = 0.2, 0, 0
    X_test, y_test = rings(2000, seed=10_000)
    for seed in range(200):
        X, y = rings(150, seed)
        grown = tree.grow(X, y, growth="best", max_leaves=3)
        found = bounds.of_tree(grown, X, y, eta=eta)
        assert not found.vacuous
        risk = np.mean(tree.predict(grown, X_test) != y_test)
        broken += risk > found.total
        tight += risk > found.empirical
    assert broken <= eta * 200
    assert tight > 100, "the training error alone would be no bound"
