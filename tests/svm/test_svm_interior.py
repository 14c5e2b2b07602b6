"""InteriorPoints points: certified by the gap's definition, against the oracle's programme, and what fits gain."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import svm_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from test_svm_newton import KINDS, machine_of, objective, problem_of

from kernelrules import check, kernels, svm
from kernelrules.svm import interior_points, problems, strategy
from kernelrules.svm.certificate import duality_gap, primal_and_dual
from kernelrules.svm.interior_points import InteriorPoints
from kernelrules.svm.kernel_values import KernelValues
from kernelrules.svm.low_rank_qp import LowRankQP, _weighted_products

ORACLE_KINDS = dict(zip(KINDS, ["svc", "nu_svc", "svr", "nu_svr", "one_class"], strict=True))
each_kind = pytest.mark.parametrize("kind", KINDS)


def check_solved(problem, K, machine, sums):
    """Bounds and sums are kept, and no solution is better than by 1e-8 of what all variables at their bounds cost."""
    assert (problem.lower <= machine.a).all()
    assert (machine.a <= problem.upper).all()
    for members, total in zip(problem.groups(), sums, strict=True):
        np.testing.assert_allclose(machine.a[members].sum(), total, atol=1e-10 * np.abs(machine.a[members]).sum())
    gradient = (K @ problem.beta(machine.a, len(K)))[problem.points()] + problem.linear
    np.testing.assert_allclose(machine.gradient, gradient, atol=1e-12 * np.abs(K).max() * np.abs(machine.a).sum())
    primal, dual_value = primal_and_dual(problem, machine.a, gradient)
    scale = max(abs(primal), abs(dual_value), 1e-3 * np.abs(problem.upper).sum())
    rounding = 1e-14 * np.abs(K).max() * np.abs(machine.a).sum() ** 2  # of aᵀKa
    assert -1e-9 * scale - rounding <= primal - dual_value <= 1e-8 * scale + rounding


@given(
    st.sampled_from(KINDS),
    st.integers(6, 50),
    st.integers(0, 2**20),
    st.sampled_from([kernels.Linear(), kernels.RBF(0.5), kernels.Polynomial(2, 1.0, 1.0)]),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
@settings(max_examples=100)
def test_solutions_are_certified(kind, n, seed, kernel, scale):
    X, problem = problem_of(kind, n, seed)
    X = X * scale ** (0.5 if kernel == kernels.Linear() else 0.0)
    values = KernelValues(X, kernel, 1)
    machine = machine_of(problem, values, 0)
    sums = [machine.a[members].sum() for members in problem.groups()]
    InteriorPoints(values, problem).improve(machine, None)
    check_solved(problem, kernels.gram(X, kernel=kernel), machine, sums)


@each_kind
@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_finds_the_same(kind, seed):
    X, problem = problem_of(kind, 30, seed)
    y = -problem.linear[:30]
    values = KernelValues(X, kernels.RBF(0.5), 1)
    machine = machine_of(problem, values, 0)
    assert InteriorPoints(values, problem).improve(machine, None)
    K = kernels.gram(X, kernel=kernels.RBF(0.5))
    sides = np.where(np.arange(30) < 15, 1.0, -1.0) if kind.endswith("svc") else y
    parameters = {"c_svc": {"C": 20.0}, "nu_svc": {"nu": 0.5}, "eps_svr": {"C": 20.0, "epsilon": 0.05},
                  "nu_svr": {"C": 20.0, "nu": 0.4}, "one_class": {"nu": 0.3}}[kind]  # fmt: skip
    written_out = oracle.problem(ORACLE_KINDS[kind], K, sides, **parameters)
    best = written_out.objective(oracle.solve(written_out))
    assert objective(problem, K, machine.a) == pytest.approx(best, rel=1e-7, abs=1e-9)


@each_kind
def test_a_solution_is_left_alone(kind):
    X, problem = problem_of(kind, 40, 1)
    values = KernelValues(X, kernels.RBF(0.5), 1)
    machine = machine_of(problem, values, 0)
    solver = InteriorPoints(values, problem)
    assert solver.improve(machine, None)
    found, again = machine.a.copy(), machine.gradient.copy()
    assert not solver.improve(machine, None)
    np.testing.assert_array_equal(machine.a, found)
    np.testing.assert_array_equal(machine.gradient, again)


def test_indefinite_matrices_are_left_to_smo():
    X, problem = problem_of("c_svc", 40, 1)
    K = kernels.gram(X, kernel=kernels.RBF(0.5)) - 0.5 * np.eye(40)
    values = KernelValues(K, kernels.Precomputed(), 1)
    machine = machine_of(problem, values, 10)
    before = machine.a.copy()
    assert not InteriorPoints(values, problem).improve(machine, None)
    np.testing.assert_array_equal(machine.a, before)


def test_rows_that_are_not_at_hand_in_float64_are_left_to_smo():
    X, problem = problem_of("c_svc", 1100, 1)
    assert strategy.steps_before_interior_points(KernelValues(X, kernels.RBF(0.5), 1), problem) is None  # float32
    assert (
        strategy.steps_before_interior_points(KernelValues(X, kernels.Polynomial(), 1, cache_mb=1.0), problem) is None
    )  # by rows
    assert strategy.steps_before_interior_points(KernelValues(X, kernels.Linear(), 1), problem) > 0
    wide = X[:, :1] * np.ones(1200)
    assert strategy.steps_before_interior_points(KernelValues(wide, kernels.Linear(), 1), problem) > 0
    assert strategy.steps_before_interior_points(KernelValues(wide, kernels.Linear(), 1, cache_mb=1.0), problem) is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_more_columns_than_points(form):
    X, problem = problem_of("eps_svr", 60, 2)
    X = np.random.default_rng(0).normal(size=(60, 80)) * (np.random.default_rng(1).random((60, 80)) < 0.3)
    values = KernelValues(check.matrix(form(X)), kernels.Linear(), 1)
    machine = machine_of(problem, values, 0)
    solver = InteriorPoints(values, problem)
    assert strategy.steps_before_interior_points(values, problem) > 0
    assert solver.improve(machine, None)
    check_solved(problem, X @ X.T, machine, [0.0])


def test_a_plane_of_which_the_answer_is_known():
    """½(x₀ - x₁)² - x₀ - x₁ over [0, 3] × [0, 5], x₀ = x₁ + 1: both as large as they may be."""
    V = np.array([[1.0], [-1.0]])
    cost, limit = np.array([-1.0, -1.0]), np.array([3.0, 5.0])
    found = LowRankQP(V, V, np.array([1.0]), cost, limit, np.ones(1), np.zeros(1)).solve()
    np.testing.assert_allclose(found.x, [3.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(found.y, [1.0], atol=1e-9)
    assert (found.at_zero.tolist(), found.at_limit.tolist()) == ([False, False], [True, False])


def hard_rows(n=6000, p=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + 3 * rng.normal(size=n) > 0


def test_linear_machines_of_large_C_converge(monkeypatch):
    X, y = hard_rows()
    found = svm.svc(X, y, C=1e3, kernel=kernels.Linear()).certificate
    assert found.converged
    assert found.gap <= 1e-8 * found.primal
    assert found.iterations < 200_000
    monkeypatch.setattr(strategy, "steps_before_interior_points", lambda *_: None)
    with pytest.warns(svm.ConvergenceWarning):
        without = svm.svc(X, y, C=1e3, kernel=kernels.Linear(), max_iter=300_000).certificate
    assert without.dual < found.dual - 0.01 * found.primal


def test_small_caches_and_folds_of_tune_go_that_way(monkeypatch):
    """No fold stops early, which each would do without interior points: a warning would be an error here."""
    X, y = hard_rows(3000)
    used, improve = [], InteriorPoints.improve

    def counted(self, *arguments):
        used.append(improve(self, *arguments))
        return used[-1]

    monkeypatch.setattr(InteriorPoints, "improve", counted)
    small = svm.svc(X, y, C=1e3, kernel=kernels.Linear(), cache_mb=1, max_iter=300_000)
    assert any(used)
    assert small.certificate.gap <= 1e-8 * small.certificate.primal
    used.clear()
    tuned = svm.tune(X, y, Cs=[1e3], kernel=kernels.Linear(), folds=3, rng=0, max_iter=30_000)
    assert used == [True] * 4  # three folds, and the model
    assert tuned.model.certificate.gap <= 1e-8 * tuned.model.certificate.primal


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.RBF(0.3), kernels.RBF()], ids=["linear", "rbf", "gammas"])
def test_folds_depend_on_neither_threads_nor_executors(monkeypatch, kernel):
    """What interior points give is the same to the last bit, however many machines share kernel values."""
    X, y = hard_rows(400, 3)
    y = np.where(y, 1, 0) + np.where(X[:, 0] > 1, 1, 0)
    monkeypatch.setattr(strategy, "_MIN_STEPS", 500)
    monkeypatch.setattr(strategy, "_WAIT_SHARE", 0.0)
    found, fold_errors = [], []
    for where in ("here", "two threads", "executor"):
        machines, improve = set(), InteriorPoints.improve

        def noted(self, machine, tick, machines=machines, improve=improve):
            done, problem = improve(self, machine, tick), self.problem
            machines.add((problem.segments, float(problem.upper.max()), done, machine.a.tobytes(), machine.n_steps))
            return done

        monkeypatch.setattr(InteriorPoints, "improve", noted)
        options = {"gammas": [0.03, 0.3]} if kernel == kernels.RBF() else {}
        with ThreadPoolExecutor(2) as executor:
            result = svm.tune(
                X, y, Cs=[100.0, 3000.0], folds=3, rng=0, kernel=kernel, tol=1e-5, **options,
                n_threads=2 if where == "two threads" else 1, executor=executor if where == "executor" else None,
            )  # fmt: skip
        monkeypatch.setattr(InteriorPoints, "improve", improve)
        found.append(machines)
        fold_errors.append(result.fold_errors)
    assert any(done for _, _, done, *_ in found[0])
    assert found[0] == found[1] == found[2]
    np.testing.assert_array_equal(fold_errors[0], fold_errors[1])
    np.testing.assert_array_equal(fold_errors[0], fold_errors[2])


def test_machines_together_are_machines_alone():
    """Also where one is large, and is waited for longer than another."""
    X, y = hard_rows(3000)
    sign = np.where(y, 1.0, -1.0)
    spans = [[(0, 3000)], [(0, 300)], [(1000, 3000)]]
    duals = [
        problems.c_svc(s, sign[s[0][0] : s[0][1]], np.full(s[0][1] - s[0][0], C))
        for s, C in zip(spans, (9.0, 300.0, 1e3), strict=True)
    ]
    for exact in (True, False):
        together = strategy.solve(KernelValues(X, kernels.Linear(), 2), duals, 1e-5, None, exact=exact)
        for problem, one in zip(duals, together, strict=True):
            alone = strategy.solve(KernelValues(X, kernels.Linear(), 1), [problem], 1e-5, None, exact=exact)[0]
            np.testing.assert_array_equal(alone.a, one.a)
            assert alone.certificate == one.certificate
    values = KernelValues(X, kernels.Linear(), 1)
    assert len({strategy.rows_before_interior_points(values, problem) for problem in duals}) == 3


@pytest.mark.parametrize("ask", [
    lambda X, y: svm.path(X, y, [30.0, 300.0, 3000.0], kernel=kernels.RBF(0.3), tol=1e-5),
    lambda X, y: svm.budget(X, y, 100.0, kernel=kernels.RBF(0.3), tol=1e-5),
], ids=["path", "budget"])  # fmt: skip
def test_costs_share_eigenvectors(monkeypatch, ask):
    X, y = hard_rows(300, 3)
    monkeypatch.setattr(strategy, "_MIN_STEPS", 100)
    monkeypatch.setattr(strategy, "_WAIT_SHARE", 0.0)
    used, improve, found, eigh = [], InteriorPoints.improve, [], np.linalg.eigh
    monkeypatch.setattr(InteriorPoints, "improve", lambda *a: used.append(improve(*a)) or used[-1])
    monkeypatch.setattr(np.linalg, "eigh", lambda K: found.append(len(K)) or eigh(K))
    ask(X, y)
    assert sum(used) > 1
    assert found == [300]


def test_threads_change_no_bit():
    X, y = hard_rows(9000)
    one, two = (svm.svc(X, y, C=100.0, kernel=kernels.Linear(), n_threads=n) for n in (1, 2))
    assert one.certificate.gap <= 1e-8 * one.certificate.primal
    np.testing.assert_array_equal(one.dual_coef, two.dual_coef)
    np.testing.assert_array_equal(one.intercept, two.intercept)


def test_sparse_rows_are_dense_ones():
    X, y = hard_rows(3000)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = 0
    dense, thin = (svm.svc(form(X), y, C=1e3, kernel=kernels.Linear()) for form in (np.asarray, sparse.csr_array))
    assert thin.certificate.converged
    np.testing.assert_allclose(svm.decision(thin, X), svm.decision(dense, X), atol=1e-6)


def test_callbacks_are_heard_inside():
    X, problem = problem_of("c_svc", 40, 1)
    values, heard = KernelValues(X, kernels.RBF(0.5), 1), []

    class Tick:
        def check_interrupt(self):
            heard.append(1)

    InteriorPoints(values, problem).improve(machine_of(problem, values, 0), Tick())
    assert len(heard) > 5


def test_max_iter_counts_before_and_after():
    X, y = hard_rows(2000)
    with pytest.warns(svm.ConvergenceWarning):
        model = svm.svc(X, y, C=1e4, kernel=kernels.Linear(), max_iter=1000)
    assert model.certificate.iterations <= 1000


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_values_beyond_what_can_be_squared(scale):
    X, problem = problem_of("c_svc", 40, 1)
    K = scale * kernels.gram(X, kernel=kernels.RBF(0.5))
    values = KernelValues(K, kernels.Precomputed(), 1)
    machine = machine_of(problem, values, 0)
    InteriorPoints(values, problem).improve(machine, None)
    assert np.isfinite(machine.a).all()
    assert (problem.lower <= machine.a).all()
    assert (machine.a <= problem.upper).all()


def test_an_objective_that_is_noise_does_not_count():
    """Where K times the variables has more digits than float64, a lower objective may be worse by all else."""
    n = 30
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 3))
    K = 1e30 * (X @ X.T)
    K = (K + K.T) / 2
    problem = problems.eps_svr(1e-3 * rng.normal(size=n), np.full(n, 1e-5), 1e-3)
    values = KernelValues(K, kernels.Precomputed(), 1)
    machine = machine_of(problem, values, 30)
    before = duality_gap(problem, machine.a, machine.gradient)
    InteriorPoints(values, problem).improve(machine, None)
    assert duality_gap(problem, machine.a, machine.gradient) <= before


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_gap_or_an_objective_that_rises_leaves_a_machine_alone(monkeypatch, sign):
    X, problem = problem_of("c_svc", 40, 1)
    values = KernelValues(X, kernels.RBF(0.5), 1)
    machine = machine_of(problem, values, 10)
    before, found = machine.a.copy(), []
    monkeypatch.setattr(interior_points, "duality_gap", lambda *_: found.append(sign * len(found)) or found[-1])
    assert InteriorPoints(values, problem).improve(machine, None) == (sign == 1)
    assert len(found) == 2
    assert np.array_equal(machine.a, before) == (sign == -1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_numbers_beyond_float64_warn_of_nothing(monkeypatch, n_threads):
    monkeypatch.setattr("kernelrules.parallel.enough_threads", lambda n_threads, *_, **__: n_threads)
    X, problem = problem_of("c_svc", 40, 1)
    for values in (
        KernelValues(1e305 * kernels.gram(X, kernel=kernels.RBF(0.5)), kernels.Precomputed(), n_threads),
        KernelValues(1e152 * X, kernels.Linear(), n_threads),
    ):
        InteriorPoints(values, problem).improve(machine_of(problem, values, 0), None)
    _weighted_products(np.full((5000, 2), 1e200), np.full(5000, 1e200), n_threads)


def test_one_machine_does_not_end_another(monkeypatch):
    """The few steps that are left to a solution of interior points are not those of a machine that has none."""
    X, y = hard_rows(3000)
    y = np.where(y, 1, 0) + np.where(X[:, 0] > 1, 1, 0)
    improve, asked = InteriorPoints.improve, []
    monkeypatch.setattr(strategy, "_MIN_STEPS", 1000)
    monkeypatch.setattr(strategy, "_WAIT_SHARE", 0.0)
    monkeypatch.setattr(strategy, "_MAX_STEPS_AFTER_INTERIOR", 10)
    monkeypatch.setattr(InteriorPoints, "improve", lambda *a: bool(asked.append(1) or len(asked) != 2) and improve(*a))
    model = svm.svc(X, y, C=1.0, kernel=kernels.Linear())
    assert len(asked) == 3
    assert model.certificate.converged


def costly_rounds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    return X, (X @ rng.normal(size=(5, 3)) + 3 * rng.normal(size=(20_000, 3))).argmax(axis=1)


def test_rounds_of_few_steps_are_not_waited_for():
    X, y = costly_rounds()
    X, y = X[y < 2], y[y < 2]
    model = svm.svc(X, y, C=0.1, kernel=kernels.Linear())
    problem = problems.c_svc([(0, len(y))], np.where(y > 0, 1.0, -1.0), np.full(len(y), 0.1))
    values = KernelValues(X, kernels.Linear(), 1)
    assert strategy.steps_before_interior_points(values, problem) > model.certificate.iterations
    assert model.certificate.gap <= 1e-8 * model.certificate.primal
    assert model.rows_computed <= strategy.rows_before_interior_points(values, problem) + 20 * 512


def test_what_is_waited_for_depends_on_neither_threads_nor_executors():
    X, y = costly_rounds()
    one, two = (svm.svc(X, y, C=0.1, kernel=kernels.Linear(), n_threads=n) for n in (1, 2))
    with ThreadPoolExecutor(2) as executor:
        three = svm.svc(X, y, C=0.1, kernel=kernels.Linear(), executor=executor)
    assert one.certificate.gap <= 1e-8 * one.certificate.primal
    for other in (two, three):
        np.testing.assert_array_equal(other.dual_coef, one.dual_coef)
        assert [c.iterations for c in other.certificates] == [c.iterations for c in one.certificates]


@pytest.mark.parametrize(("n", "p"), [(1050, 1060), (1060, 1050)])
def test_many_columns_of_unequal_units_converge(monkeypatch, n, p):
    monkeypatch.setattr(strategy, "_WAIT_SHARE", 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X @ rng.normal(size=p) + 30 * rng.normal(size=n) > 0
    model = svm.svc(X * 10.0 ** rng.uniform(-4, 4, p), y, C=1.0, kernel=kernels.Linear())
    assert model.certificate.converged
    assert model.certificate.gap <= 1e-3 * model.certificate.primal


@pytest.mark.parametrize("seed", range(60))
def test_polynomials_with_equal_rows_are_certified(seed):
    """Nearly dependent columns of F: which variables are at their bounds is found by an active-set method."""
    rng = np.random.default_rng(seed)
    n, C = int(rng.integers(4, 31)), float(10 ** rng.uniform(-2, 6))
    kernel = kernels.Polynomial(int(rng.integers(2, 6)), float(10 ** rng.uniform(-1, 0.5)), float(seed % 2))
    X = rng.normal(size=(n, int(rng.integers(1, 5))))[rng.integers(0, n, n)]
    y = np.where(np.arange(n) < int(rng.integers(1, n)), 1.0, -1.0)
    problem = problems.c_svc([(0, n)], y, np.full(n, C)) if seed % 3 else problems.eps_svr(X[:, 0], np.full(n, C), 0.05)
    values, K = KernelValues(X, kernel, 1), kernels.gram(X, kernel=kernel)
    machine = machine_of(problem, values, 0)
    InteriorPoints(values, problem).improve(machine, None)
    gradient = (K @ problem.beta(machine.a, n))[problem.points()] + problem.linear
    primal, dual_value = primal_and_dual(problem, machine.a, gradient)
    total = np.abs(problem.upper).sum() + np.abs(problem.lower).sum()
    rounding = 1e-15 * np.abs(K).max() * np.abs(machine.a).sum() * (10 * np.abs(machine.a).sum() + total)
    assert primal - dual_value <= 1e-8 * max(abs(primal), abs(dual_value), 1e-3 * total) + rounding
