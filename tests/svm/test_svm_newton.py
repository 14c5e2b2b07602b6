"""Newton steps between those of SMO: against a dense system, what they keep, and fits with and without them."""

import newton_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrules import kernels, svm
from kernelrules.core.linalg import cholesky
from kernelrules.core.svm import rows, smo
from kernelrules.svm import newton, problems, strategy
from kernelrules.svm.kernel_values import KernelValues

KINDS = ["c_svc", "nu_svc", "eps_svr", "nu_svr", "one_class"]


def problem_of(kind, n, seed):
    """A dual problem of that kind, with room for free variables."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    half, cost = n // 2, np.full(n, 20.0)
    spans = [(0, half), (half, n)]
    signs = np.where(np.arange(n) < half, 1.0, -1.0)
    X[:half] += 0.4
    return X, {
        "c_svc": lambda: problems.c_svc(spans, signs, cost),
        "nu_svc": lambda: problems.nu_svc(spans, half, np.ones(n), 0.5),
        "eps_svr": lambda: problems.eps_svr(y, cost, 0.05),
        "nu_svr": lambda: problems.nu_svr(y, cost, 0.4),
        "one_class": lambda: problems.one_class(np.ones(n), 0.3),
    }[kind]()


def machine_of(problem, values, n_steps):
    """A machine after so many steps of SMO."""
    gradient = problem.linear.copy()
    if problem.start.any():
        gradient += values.rough_product(problem.beta(problem.start, values.n))[problem.points()]
    machine = smo.Machine(
        problem.segments, problem.lower, problem.upper, problem.start.copy(), gradient, problem.kink
    )  # fmt: skip
    smo.solve(values.rows, [machine], 1e-9, n_steps, 1)
    return machine


def objective(problem, K, a):
    """From its definition."""
    beta = problem.beta(a, len(K))
    return 0.5 * beta @ K @ beta + problem.linear @ a + problem.kink * np.abs(a).sum()


def always(monkeypatch, wait=1.0):
    """Newton steps whenever the solver looks, and a list that counts them."""
    taken, take = [], newton.NewtonSteps.take
    monkeypatch.setattr(strategy, "newton_overhead", lambda n: wait)
    monkeypatch.setattr(strategy, "_FACTOR_STEPS", {4: 0.0, 8: 0.0})
    monkeypatch.setattr(strategy, "_SOLVE_STEPS", 0.0)
    monkeypatch.setattr(newton.NewtonSteps, "take", lambda self, aim: taken.append(take(self, aim)) or taken[-1])
    return taken


# ---- one step -----------------------------------------------------------------------------------------------------


@given(st.sampled_from(KINDS), st.integers(12, 60), st.integers(0, 2**20), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=40)
def test_directions_solve_the_dense_system(kind, n, seed, n_fixed, n_joined):
    X, problem = problem_of(kind, n, seed)
    values = KernelValues(X, kernels.RBF(2.0), 1)
    machine = machine_of(problem, values, 3 * n)
    step = newton.NewtonSteps(values, problem, machine)
    free, rng = step.free(), np.random.default_rng(seed)
    if kind == "nu_svr":  # of a point whose two variables are free the matrix has two equal rows
        free = free[np.unique(step.points[free], return_index=True)[1]]
    members, joined = free[n_joined:], free[:n_joined]
    if len(members) <= n_fixed + step.n_groups or len(np.unique(step.group[members[n_fixed:]])) < step.n_groups:
        return
    assert step._factor(members)
    fixed = rng.permutation(members)[:n_fixed]
    to = rng.normal(size=n_fixed)
    if len(np.unique(step.group[np.setdiff1d(free, fixed)])) < step.n_groups:
        return
    slope = machine.gradient + problem.kink * np.sign(machine.a)
    forward = slope[step.members][None, :].copy()
    cholesky.solve_lower(step.lower, forward, 1)
    moving = np.concatenate([step.members, joined])
    found = step._direction(fixed, to, joined, slope, forward[0])
    K = kernels.gram(X, kernel=kernels.RBF(2.0))[np.ix_(step.points, step.points)]
    expected = oracle.direction(K, slope, step.group, moving, fixed, to, step.ridge)[moving]
    scale = np.linalg.cond(K[np.ix_(moving, moving)] + step.ridge * np.eye(len(moving)))
    np.testing.assert_allclose(found, expected, atol=1e-12 * scale * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_steps", [60, 400])
def test_a_step_keeps_bounds_and_sums_and_lowers_the_objective(kind, n_steps):
    X, problem = problem_of(kind, 150, 3)
    values = KernelValues(X, kernels.RBF(0.5), 1)
    machine = machine_of(problem, values, n_steps)
    step, K = newton.NewtonSteps(values, problem, machine), kernels.gram(X, kernel=kernels.RBF(0.5))
    sums = [machine.a[members].sum() for members in problem.groups()]
    before = objective(problem, K, machine.a)
    gain = step.take(0.0)
    assert gain > 0
    after = objective(problem, K, machine.a)
    assert before - after == pytest.approx(gain, rel=1e-6, abs=1e-9 * abs(before))
    assert problem.objective(machine.a, machine.gradient) == pytest.approx(after, rel=1e-9)
    assert (problem.lower <= machine.a).all()
    assert (machine.a <= problem.upper).all()
    np.testing.assert_allclose([machine.a[members].sum() for members in problem.groups()], sums, atol=1e-10)
    exact = (K @ problem.beta(machine.a, len(K)))[problem.points()] + problem.linear
    np.testing.assert_allclose(machine.gradient, exact, atol=1e-8)


def test_a_second_step_uses_the_factor_of_the_first():
    X, problem = problem_of("eps_svr", 200, 5)
    values = KernelValues(X, kernels.RBF(1.0), 1)
    machine = machine_of(problem, values, 400)
    step = newton.NewtonSteps(values, problem, machine)
    assert step.take(0.0) > 0
    factor, n_columns = step.lower, len(step.w)
    smo.solve(values.rows, [machine], 1e-9, machine.n_steps + 40, 1)
    assert step.take(0.0) > 0
    assert step.lower is factor
    assert len(step.w) > n_columns


def test_no_step_where_the_matrix_is_indefinite_or_memory_short():
    X, problem = problem_of("c_svc", 60, 0)
    K = kernels.gram(X, kernel=kernels.Linear()) - 0.5 * np.eye(60)
    values = KernelValues(K, kernels.Precomputed(), 1)
    machine = machine_of(problem, values, 50)
    before = machine.a.copy()
    assert newton.NewtonSteps(values, problem, machine).take(0.0) == 0.0
    np.testing.assert_array_equal(machine.a, before)
    values = KernelValues(X, kernels.RBF(0.5), 1)
    values.budget = 60 * 60 * 8
    machine = machine_of(problem, values, 50)
    assert newton.NewtonSteps(values, problem, machine).take(0.0) == 0.0


# ---- fits ---------------------------------------------------------------------------------------------------------


def fitted(kind, n_threads=1, n=240, tol=1e-4):
    """A model that takes some thousand steps, and its decision values."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=n)
    how = {"kernel": kernels.RBF(0.3), "tol": tol, "n_threads": n_threads}
    model = {
        "c_svc": lambda: svm.svc(X, y > 0, C=1000.0, **how),
        "nu_svc": lambda: svm.svc(X, y > 0, nu=0.3, **how),
        "eps_svr": lambda: svm.svr(X, y, C=300.0, epsilon=0.1, **how),
        "nu_svr": lambda: svm.svr(X, y, C=300.0, nu=0.3, **how),
        "classes": lambda: svm.svc(X, np.digitize(y, [-1.0, 0.0, 1.0]), C=1000.0, **how),
    }[kind]()
    return model, svm.decision(model, X)


@pytest.mark.parametrize("kind", ["c_svc", "eps_svr", "nu_svr", "classes"])
def test_fits_agree_with_those_without_newton_steps(monkeypatch, kind):
    with monkeypatch.context() as patch:
        taken = always(patch)
        model, values = fitted(kind)
    assert taken
    assert max(taken) > 0
    with monkeypatch.context() as patch:
        patch.setattr(strategy, "newton_overhead", lambda n: -1.0)  # a negative wait is for ever
        patch.setattr(strategy, "_FACTOR_STEPS", {4: 0.0, 8: 0.0})
        patch.setattr(strategy, "steps_before_interior_points", lambda *_: None)
        plain, expected = fitted(kind)
    assert model.certificate.converged
    assert plain.certificate.converged
    iterations = [sum(c.iterations for c in m.certificates) for m in (model, plain)]
    assert iterations[0] < 0.8 * iterations[1]
    for ours, theirs in zip(model.certificates, plain.certificates, strict=True):
        assert ours.dual <= ours.primal + 1e-9 * abs(ours.primal)
        assert abs(ours.dual - theirs.dual) <= max(ours.gap, theirs.gap)
    np.testing.assert_allclose(values, expected, atol=0.02)


@pytest.mark.parametrize("kind", ["eps_svr", "classes"])
def test_threads_do_not_matter(monkeypatch, kind):
    taken = always(monkeypatch)
    one, two = fitted(kind, 1)[0], fitted(kind, 2)[0]
    assert taken
    np.testing.assert_array_equal(one.dual_coef, two.dual_coef)
    np.testing.assert_array_equal(one.intercept, two.intercept)


def test_float32_rows(monkeypatch):
    taken = always(monkeypatch, 500.0)
    model, _ = fitted("eps_svr", n=1100, tol=1e-3)
    assert taken
    assert max(taken) > 0
    assert model.certificate.converged
    assert model.certificate.kkt <= 1e-3
    assert 0 <= model.certificate.gap < 0.05 * abs(model.certificate.dual)


def test_an_exception_in_a_newton_step_ends_the_fit(monkeypatch):
    always(monkeypatch)

    def interrupted(self, aim):
        raise KeyboardInterrupt

    monkeypatch.setattr(newton.NewtonSteps, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted("eps_svr")


# ---- what they need of the core -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_a_matrix(dtype):
    K = np.random.default_rng(0).normal(size=(30, 30)).astype(dtype)
    K += K.T
    held = rows.whole_matrix(K, np.diagonal(K).copy(), 2)
    first, second = np.array([3, 3, 29, 0], dtype=np.intp), np.array([7, 0, 28], dtype=np.intp)
    out = np.full((4, 3), 9, dtype=dtype)
    rows.submatrix(held, first, second, out)
    np.testing.assert_array_equal(out, K[np.ix_(first, second)])
    out = np.full((4, 4), 9, dtype=dtype)
    rows.submatrix(held, first, first, out, True)
    np.testing.assert_array_equal(out, np.where(np.tri(4) > 0, K[np.ix_(first, first)], 9))
    rows.submatrix(held, first[:0], second, out[:0, :3].copy())
    with pytest.raises(ValueError, match="a row for each"):
        rows.submatrix(held, first, second, np.empty((3, 3), dtype=dtype))
    with pytest.raises(ValueError, match="of the same type"):
        rows.submatrix(held, first, second, np.empty((4, 3), dtype=np.float32 if dtype == np.float64 else np.float64))


@pytest.mark.parametrize("n_zero", [0, 100, 240, 300, 599])
def test_right_hand_sides_that_begin_with_zeros(n_zero):
    rng = np.random.default_rng(1)
    lower = np.tril(rng.normal(size=(600, 600))) / 30 + np.eye(600)
    b = rng.normal(size=(40, 600))
    b[:, :n_zero] = 0
    plain, short = b.copy(), b.copy()
    cholesky.solve_lower(lower, plain, 1)
    cholesky.solve_lower(lower, short, 1, None, n_zero)
    np.testing.assert_allclose(plain @ lower.T, b, atol=1e-9)
    np.testing.assert_array_equal(short, plain)


def test_a_number_of_zeros_that_cannot_be():
    with pytest.raises(ValueError, match="n_zero"):
        cholesky.solve_lower(np.eye(3), np.ones((1, 3)), 1, None, 4)
