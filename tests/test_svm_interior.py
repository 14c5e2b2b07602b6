"""Interior points: certified by the gap's definition, against the oracle's programme, and what fits gain."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import svm as oracle
from scipy import sparse
from test_svm_newton import KINDS, machine_of, objective, problem_of

from kernelrules import check, kernels, svm
from kernelrules.svm import dual, interior
from kernelrules.svm.interior import Interior, _products, interior_point
from kernelrules.svm.values import KernelValues

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
    primal, dual_value = dual.primal_and_dual(problem, machine.a, gradient)
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
    Interior(values).improve(problem, machine, None)
    check_solved(problem, kernels.gram(X, kernel=kernel), machine, sums)


@each_kind
@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_finds_the_same(kind, seed):
    X, problem = problem_of(kind, 30, seed)
    y = -problem.linear[:30]
    values = KernelValues(X, kernels.RBF(0.5), 1)
    machine = machine_of(problem, values, 0)
    assert Interior(values).improve(problem, machine, None)
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
    solver = Interior(values)
    assert solver.improve(problem, machine, None)
    found, again = machine.a.copy(), machine.gradient.copy()
    assert not solver.improve(problem, machine, None)
    np.testing.assert_array_equal(machine.a, found)
    np.testing.assert_array_equal(machine.gradient, again)


def test_indefinite_matrices_are_left_to_smo():
    X, problem = problem_of("c_svc", 40, 1)
    K = kernels.gram(X, kernel=kernels.RBF(0.5)) - 0.5 * np.eye(40)
    values = KernelValues(K, kernels.Precomputed(), 1)
    machine = machine_of(problem, values, 10)
    before = machine.a.copy()
    assert not Interior(values).improve(problem, machine, None)
    np.testing.assert_array_equal(machine.a, before)


def test_rows_that_are_not_at_hand_in_float64_are_left_to_smo():
    X, problem = problem_of("c_svc", 1100, 1)
    assert Interior(KernelValues(X, kernels.RBF(0.5), 1)).steps_worth(problem) is None  # float32
    assert Interior(KernelValues(X, kernels.Polynomial(), 1, cache_mb=1.0)).steps_worth(problem) is None  # by rows
    assert Interior(KernelValues(X, kernels.Linear(), 1)).steps_worth(problem) > 0
    assert Interior(KernelValues(X[:, :1] * np.ones(1200), kernels.Linear(), 1)).steps_worth(problem) is None  # wide


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_more_columns_than_points(form):
    X, problem = problem_of("eps_svr", 60, 2)
    X = np.random.default_rng(0).normal(size=(60, 80)) * (np.random.default_rng(1).random((60, 80)) < 0.3)
    values = KernelValues(check.matrix(form(X)), kernels.Linear(), 1)
    machine = machine_of(problem, values, 0)
    solver = Interior(values)
    assert solver.steps_worth(problem) > 0
    assert solver.improve(problem, machine, None)
    check_solved(problem, X @ X.T, machine, [0.0])


def test_a_plane_of_which_the_answer_is_known():
    """½(x₀ - x₁)² - x₀ - x₁ over [0, 3] × [0, 5], x₀ = x₁ + 1: both as large as they may be."""
    V = np.array([[1.0], [-1.0]])
    x, at_zero, at_limit = interior_point(V, V, np.array([1.0]), np.array([-1.0, -1.0]), np.array([3.0, 5.0]))
    np.testing.assert_allclose(x, [3.0, 2.0], atol=1e-9)
    assert (at_zero.tolist(), at_limit.tolist()) == ([False, False], [True, False])


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
    monkeypatch.setattr(Interior, "steps_worth", lambda *_: None)
    with pytest.warns(svm.ConvergenceWarning):
        without = svm.svc(X, y, C=1e3, kernel=kernels.Linear(), max_iter=300_000).certificate
    assert without.dual < found.dual - 0.01 * found.primal


def test_tune_and_small_caches_go_that_way(monkeypatch):
    """Of tune the model that it ends with: its folds are left to SMO, as answers must not depend on who shares them."""
    X, y = hard_rows(3000)
    used, improve = [], Interior.improve

    def counted(self, *arguments):
        used.append(improve(self, *arguments))
        return used[-1]

    monkeypatch.setattr(Interior, "improve", counted)
    small = svm.svc(X, y, C=1e3, kernel=kernels.Linear(), cache_mb=1, max_iter=300_000)
    assert any(used)
    assert small.certificate.gap <= 1e-8 * small.certificate.primal
    used.clear()
    with pytest.warns(svm.ConvergenceWarning, match=r"3 machine\(s\) stopped"):
        tuned = svm.tune(X, y, Cs=[1e3], kernel=kernels.Linear(), folds=3, max_iter=30_000).model.certificate
    assert any(used)
    assert tuned.gap <= 1e-8 * tuned.primal


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
        def air(self):
            heard.append(1)

    Interior(values).improve(problem, machine_of(problem, values, 0), Tick())
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
    Interior(values).improve(problem, machine, None)
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
    problem = dual.eps_svr(1e-3 * rng.normal(size=n), np.full(n, 1e-5), 1e-3)
    values = KernelValues(K, kernels.Precomputed(), 1)
    machine = machine_of(problem, values, 30)
    before = problem.gap(machine.a, machine.gradient)
    Interior(values).improve(problem, machine, None)
    assert problem.gap(machine.a, machine.gradient) <= before


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_gap_or_an_objective_that_rises_leaves_a_machine_alone(monkeypatch, sign):
    X, problem = problem_of("c_svc", 40, 1)
    values = KernelValues(X, kernels.RBF(0.5), 1)
    machine = machine_of(problem, values, 10)
    before, found = machine.a.copy(), []
    monkeypatch.setattr(dual.Problem, "gap", lambda self, a, gradient: found.append(sign * len(found)) or found[-1])
    assert Interior(values).improve(problem, machine, None) == (sign == 1)
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
        Interior(values).improve(problem, machine_of(problem, values, 0), None)
    _products(np.full((5000, 2), 1e200), np.full(5000, 1e200), n_threads)


def test_one_machine_does_not_end_another(monkeypatch):
    """The few steps that are left to a solution of interior points are not those of a machine that has none."""
    X, y = hard_rows(3000)
    y = np.where(y, 1, 0) + np.where(X[:, 0] > 1, 1, 0)
    improve, asked = Interior.improve, []
    monkeypatch.setattr(interior, "_LEAST", 1000)
    monkeypatch.setattr(interior, "_WAIT", 0.0)
    monkeypatch.setattr(dual, "_AFTERWARDS", 10)
    monkeypatch.setattr(Interior, "improve", lambda *a: bool(asked.append(1) or len(asked) != 2) and improve(*a))
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
    problem = dual.c_svc([(0, len(y))], np.where(y > 0, 1.0, -1.0), np.full(len(y), 0.1))
    found = Interior(KernelValues(X, kernels.Linear(), 1))
    assert found.steps_worth(problem) > model.certificate.iterations
    assert model.certificate.gap <= 1e-8 * model.certificate.primal
    assert model.rows_computed <= found.rows_worth(problem) + 20 * 512


def test_what_is_waited_for_depends_on_neither_threads_nor_executors():
    X, y = costly_rounds()
    one, two = (svm.svc(X, y, C=0.1, kernel=kernels.Linear(), n_threads=n) for n in (1, 2))
    with ThreadPoolExecutor(2) as executor:
        three = svm.svc(X, y, C=0.1, kernel=kernels.Linear(), executor=executor)
    assert one.certificate.gap <= 1e-8 * one.certificate.primal
    for other in (two, three):
        np.testing.assert_array_equal(other.dual_coef, one.dual_coef)
        assert [c.iterations for c in other.certificates] == [c.iterations for c in one.certificates]
