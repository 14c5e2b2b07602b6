"""The dual solver on random problems: what it promises of every solution, against a plain solver's; and that threads,
company and interruptions do not change it."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import solver_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from machines import make_machine
from scipy import sparse

from kernelrules import check, kernels
from kernelrules.core.svm import rows, smo

WHOLE = ("whole float64", "whole float32")
SOURCES = (*WHOLE, "supplied", "products", "sparse products")
STATM = Path("/proc/self/statm")
seeds = st.integers(0, 2**32 - 1)


def make_data(rng, n, p=3):
    """Points some of which are repeated, or zero."""
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.8)
    X[rng.integers(n, size=n // 3)] = X[0]
    return X


def make_store(source, X, n_slots=8, n_threads=1):
    """Kernel rows of the points, RBF or linear, and the matrix that they are of."""
    linear = "products" in source
    K = X @ X.T if linear else np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    match source:
        case "whole float64":
            return rows.whole_matrix(K, np.diagonal(K).copy(), n_threads), K
        case "whole float32":
            K = K.astype(np.float32)
            return rows.whole_matrix(K, np.diagonal(K).copy(), n_threads), K
        case "supplied":

            def supply(wanted, out):
                np.asarray(out)[...] = K[np.asarray(wanted)]

            return rows.supplied_rows(supply, np.ones(len(X)), n_slots), K
    x = check.matrix(sparse.csr_array(X)) if source == "sparse products" else X
    return rows.linear_products(x, np.diagonal(K).copy(), n_threads), K


def state(machine):
    return machine.a.copy(), machine.gradient.copy(), machine.n_steps, machine.violation


def assert_same(one, two):
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)


def assert_kept(dual, machine):
    """What holds at every moment: bounds, sums, and a gradient that belongs to the variables."""
    a = machine.a
    assert (a >= dual.lower).all()
    assert (a <= dual.upper).all()
    size = np.maximum(np.abs(dual.lower), np.abs(dual.upper)).sum()
    assert (np.abs(dual.sums(a) - dual.sums(dual.start)) <= 1e-12 * size).all()
    np.testing.assert_allclose(machine.gradient, dual.gradient(a), rtol=0, atol=1e-11 * (1 + size))


@st.composite
def problems(draw, sources=SOURCES, most=40):
    """A store of kernel rows and a problem on them."""
    rng = np.random.default_rng(draw(seeds))
    X = make_data(rng, draw(st.integers(2, most)))
    store, K = make_store(draw(st.sampled_from(sources)), X, draw(st.integers(2, 2 * most)))
    dual = oracle.make_dual(
        rng,
        K,
        draw(st.sampled_from(oracle.LAYOUTS)),
        kink=draw(st.sampled_from([0.0, 0.0, 0.1, 1.0])),
        start=draw(st.sampled_from(["inside", "corner", "zero"])),
        shifted=draw(st.booleans()),
    )
    return store, dual


# ---- solutions --------------------------------------------------------------------------------------------------


@given(problems(), st.sampled_from([1e-1, 1e-3, 1e-6]))
def test_solutions_keep_what_is_promised(case, tol):
    store, dual = case
    machine = make_machine(dual)
    smo.solve(store, [machine], tol, 10**6, 1)
    assert not machine.unfinished
    assert not machine.stalled
    assert machine.violation <= tol
    assert_kept(dual, machine)
    assert dual.violation(machine.a) <= tol + 1e-9
    fixed = dual.lower == dual.upper
    np.testing.assert_array_equal(machine.a[fixed], dual.start[fixed])


@given(problems(most=12))
def test_no_plain_solver_does_better(case):
    """Each objective exceeds the other by no more than its violation allows."""
    store, dual = case
    machine = make_machine(dual)
    smo.solve(store, [machine], 1e-4, 10**6, 1)
    plain = oracle.solve_pairwise(dual, 1e-4, 500)
    ours, theirs = dual.objective(machine.a), dual.objective(plain)
    rounding = 1e-11 * (1 + abs(ours) + np.abs(dual.linear * plain).sum())
    assert ours <= theirs + dual.excess(machine.a, plain) + rounding
    assert theirs <= ours + dual.excess(plain, machine.a) + rounding
    assert ours <= dual.objective(dual.start) + rounding


@given(seeds, st.sampled_from(oracle.LAYOUTS), st.sampled_from([0.0, 0.1]), st.sampled_from(["float64", "float32"]))
def test_matrices_that_are_no_kernels(seed, layout, kink, dtype):
    """An indefinite matrix has no one solution, but still every step goes down and keeps the constraints."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(25, 25))
    K = (half + half.T).astype(dtype)
    dual = oracle.make_dual(rng, K, layout, kink)
    machine, before = make_machine(dual), np.inf
    for n_steps in (1, 2, 10, 1000):
        smo.solve(rows.whole_matrix(K, np.diagonal(K).copy(), 1), [machine], 1e-3, n_steps, 1)
        assert machine.n_steps <= n_steps
        assert_kept(dual, machine)
        assert dual.objective(machine.a) <= before + 1e-10
        before = dual.objective(machine.a)


@given(problems())
def test_a_solution_is_left_alone(case):
    """Solving what is solved takes no step; with a smaller tolerance it goes on from there."""
    store, dual = case
    machine = make_machine(dual)
    smo.solve(store, [machine], 1e-2, 10**6, 1)
    before = state(machine)
    smo.solve(store, [machine], 1e-2, 10**6, 1)
    assert_same(before, state(machine))
    smo.solve(store, [machine], 1e-5, 10**6, 1)
    assert machine.violation <= 1e-5
    assert_kept(dual, machine)


@given(problems())
def test_no_room_no_steps(case):
    """lower == upper everywhere: nothing can violate."""
    store, dual = case
    a = dual.start.copy()
    machine = smo.Machine(dual.segments, a.copy(), a.copy(), a, dual.gradient(a), dual.kink)
    smo.solve(store, [machine], 1e-9, 10**6, 1)
    assert not machine.unfinished
    assert machine.n_steps == 0
    assert machine.violation < -1e299
    np.testing.assert_array_equal(a, dual.start)


@pytest.mark.parametrize(("kink", "expected"), [(0.0, [1.0, -1.0]), (0.5, [1.0, -1.0]), (2.0, [0.0, 0.0])])
def test_two_variables_of_one_point(kink, expected):
    """Between them there is no curvature: one takes from the other until a bound or a kink."""
    segments, linear, start = ((0, 1, 0, 0), (1, 1, 0, 0)), np.array([-1.0, 1.0]), np.array([0.5, -0.5])
    dual = oracle.Dual(np.ones((1, 1)), segments, -np.ones(2), np.ones(2), linear, start, kink)
    machine = make_machine(dual)
    smo.solve(rows.whole_matrix(dual.K, np.ones(1), 1), [machine], 1e-9, 100, 1)
    np.testing.assert_array_equal(machine.a, expected)


def test_no_upper_bound():
    """Infinite bounds, as those of a hard margin: the closest points of two intervals."""
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    lower, upper = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    for store in (rows.linear_products(x, x[:, 0] ** 2, 1), rows.whole_matrix(x @ x.T, x[:, 0] ** 2, 1)):
        machine = smo.Machine([(0, 4, 0, 0)], lower, upper, np.zeros(4), -y)
        smo.solve(store, [machine], 1e-9, 1000, 1)
        np.testing.assert_allclose(machine.a, [0.0, -0.5, 0.5, 0.0], atol=1e-9)


@pytest.mark.parametrize("source", WHOLE)
def test_kernel_values_that_are_no_numbers(source):
    """Are no solution, and no endless loop."""
    dtype = source.split()[1]
    K = np.full((40, 40), np.nan, dtype=dtype)
    dual = oracle.make_dual(np.random.default_rng(0), np.eye(40), "one group")
    machine = make_machine(dual)
    smo.solve(rows.whole_matrix(K, np.ones(40, dtype=dtype), 1), [machine], 1e-3, 10**6, 1)
    assert machine.stalled


# ---- threads, company, interruptions ----------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("layout", oracle.LAYOUTS)
def test_any_number_of_threads_gives_the_same_bits(source, layout):
    rng = np.random.default_rng(5)
    X = make_data(rng, 300)
    dual = oracle.make_dual(rng, make_store(source, X)[1], layout, 0.1)
    states = []
    for n_threads in (1, 2):
        machine = make_machine(dual)
        smo.solve(make_store(source, X, 20, n_threads)[0], [machine], 1e-2, 10**6, n_threads)
        states.append(state(machine))
    assert_same(*states)


@pytest.mark.parametrize("source", [source for source in SOURCES if source != "supplied"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_machines_do_not_see_each_other(source, n_threads):
    """Problems of different sizes and difficulties on the same points, together and each alone: the same bits."""
    rng = np.random.default_rng(6)
    X = make_data(rng, 150)
    store, K = make_store(source, X, 30)
    duals = [oracle.make_dual(rng, K, layout, kink) for layout in oracle.LAYOUTS for kink in (0.0, 0.2)]
    together, alone = ([make_machine(dual) for dual in duals] for _ in range(2))
    smo.solve(store, together, 1e-4, 10**6, n_threads)
    for one, other in zip(alone, together, strict=True):
        smo.solve(store, [one], 1e-4, 10**6, 1)
        assert one.violation <= 1e-4
        assert_same(state(one), state(other))


def test_machines_share_supplied_rows():
    """They are solved one after the other, and each finds what was kept: the same solutions, within the tolerance."""
    rng = np.random.default_rng(6)
    store, K = make_store("supplied", make_data(rng, 60), 10)
    duals = [oracle.make_dual(rng, K, layout, 0.1) for layout in oracle.LAYOUTS]
    machines = [make_machine(dual) for dual in duals]
    smo.solve(store, machines, 1e-4, 10**6, 2)
    for dual, machine in zip(duals, machines, strict=True):
        assert not machine.unfinished
        assert_kept(dual, machine)
        assert dual.violation(machine.a) <= 1e-4 + 1e-9


@pytest.mark.parametrize("n", [200, 1500])
def test_sparse_points_are_as_good_as_dense_ones(n):
    """Working sets of sparse points keep inner products from one set to the next: with wrong ones it takes longer."""
    rng = np.random.default_rng(11)
    X = make_data(rng, n, 8)
    K = X @ X.T
    dual = oracle.make_dual(rng, K, "one group", 0.1, start="zero")
    machines, computed = [], []
    for source in ("products", "sparse products"):
        store, machine = make_store(source, X)[0], make_machine(dual)
        smo.solve(store, [machine], 1e-4, 10**6, 1)
        machines.append(machine)
        computed.append(store.n_computed)
    np.testing.assert_allclose(*computed, rtol=0.25)
    for machine, other in (machines, machines[::-1]):
        allowed = dual.excess(machine.a, other.a) + 1e-9
        assert dual.objective(machine.a) <= dual.objective(other.a) + allowed


def test_no_machines():
    store, ticks = make_store("whole float64", np.eye(3))[0], []
    smo.solve(store, [], 1e-3, 10, 1, lambda *progress: ticks.append(progress))
    assert store.n_computed == 0
    assert ticks == []


@given(problems(), st.integers(1, 40))
def test_limits_on_steps_are_kept(case, n_steps):
    store, dual = case
    machine = make_machine(dual)
    smo.solve(store, [machine], 1e-9, n_steps, 1)
    assert machine.n_steps <= n_steps
    assert machine.unfinished == (machine.n_steps == n_steps and machine.violation > 1e-9)
    assert_kept(dual, machine)
    assert machine.violation == dual.violation(machine.a, machine.gradient)


def test_no_steps_at_all():
    store, K = make_store("whole float64", np.eye(4))
    dual = oracle.make_dual(np.random.default_rng(0), K, "one group")
    machine = make_machine(dual)
    smo.solve(store, [machine], 1e-9, 0, 1)
    assert machine.unfinished
    assert machine.n_steps == 0
    np.testing.assert_array_equal(machine.a, dual.start)


@pytest.mark.parametrize("source", ["supplied", "products", "sparse products"])
def test_limits_on_steps_cut_a_round_short(source):
    """Problems of several working sets: wherever the limit falls, everything is in order, and it can go on."""
    rng = np.random.default_rng(7)
    store, K = make_store(source, make_data(rng, 1100, 6), 50)
    dual = oracle.make_dual(rng, K, "one group", 0.1)
    machine, before = make_machine(dual), np.inf
    for limit in (1, 2, 20, 300):
        smo.solve(store, [machine], 1e-4, limit, 1)
        assert machine.unfinished
        assert machine.n_steps == limit
        assert_kept(dual, machine)
        assert dual.objective(machine.a) < before
        before = dual.objective(machine.a)
    smo.solve(store, [machine], 1e-4, 10**6, 1)
    assert machine.violation <= 1e-4


def test_limits_on_rows():
    """Work ends at the first chance after so many rows in all; what is done is in order."""
    rng = np.random.default_rng(7)
    store, K = make_store("supplied", make_data(rng, 500, 6), 50)
    dual = oracle.make_dual(rng, K, "one group", 0.1)
    machine = make_machine(dual)
    smo.solve(store, [machine], 1e-8, 10**6, 1, max_rows=60)
    assert machine.unfinished
    assert store.n_computed >= 60
    assert_kept(dual, machine)
    before = state(machine)
    smo.solve(store, [machine], 1e-8, 10**6, 1, max_rows=60)
    assert_same(before, state(machine))
    smo.solve(store, [machine], 1e-8, 10**6, 1, max_rows=10**9)
    assert machine.violation <= 1e-8


@given(problems(sources=WHOLE), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_going_on_is_as_good_as_one_go(case, pauses):
    """Bit for bit: stopping after any number of steps leaves no trace."""
    store, dual = case
    one, other = make_machine(dual), make_machine(dual)
    total = int(np.sum(pauses))
    smo.solve(store, [one], 1e-8, total, 1)
    for limit in np.cumsum(pauses):
        smo.solve(store, [other], 1e-8, int(limit), 1)
    assert_same(state(one), state(other))
    assert one.unfinished == other.unfinished


@pytest.mark.parametrize("source", SOURCES)
def test_ticks(source):
    """How far it is, out of what, and the worst violation; at least once."""
    rng = np.random.default_rng(8)
    store, K = make_store(source, make_data(rng, 80), 10)
    machines = [make_machine(oracle.make_dual(rng, K, "one group")) for _ in range(2)]
    ticks = []
    smo.solve(store, machines, 1e-3, 12345, 1, lambda *args: ticks.append(args))
    assert ticks
    done, totals, violations = zip(*ticks, strict=True)
    assert set(totals) == {2 * 12345}
    assert list(done) == sorted(done)
    assert 0 <= done[0] <= done[-1] <= sum(machine.n_steps for machine in machines)
    assert min(violations) >= 0


@pytest.mark.parametrize("source", SOURCES)
def test_a_tick_that_raises_ends_it(source):
    rng = np.random.default_rng(9)
    store, K = make_store(source, make_data(rng, 200), 4)
    dual = oracle.make_dual(rng, K, "one group")
    machine = make_machine(dual)

    def tick(*_):
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        smo.solve(store, [machine], 1e-6, 10**6, 1, tick)
    assert_kept(dual, machine)
    smo.solve(store, [machine], 1e-6, 10**6, 1)
    assert machine.violation <= 1e-6
    assert_kept(dual, machine)


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
def test_memory_is_given_back():
    """A working set of sparse points sorts their entries: 20 MB of places a time."""
    x = check.matrix(sparse.csr_array(np.random.default_rng(0).normal(size=(16, 80_000))))
    diagonal = np.bincount(np.repeat(np.arange(16), 80_000), x.data**2)
    store = rows.linear_products(x, diagonal, 1)
    used = []
    for _ in range(4):
        machine = smo.Machine([(0, 16, 0, 0)], -np.ones(16), np.ones(16), np.zeros(16), np.linspace(-1, 1, 16))
        smo.solve(store, [machine], 1e-3, 1000, 1)
        used.append(int(STATM.read_text().split()[1]) * 4096)
    assert used[-1] - used[0] < 30e6


# ---- large problems ---------------------------------------------------------------------------------------------


@lru_cache
def large_data():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(3000, 4)).astype(np.float32)
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=3000))
    return X, y, kernels.gram(X, kernel=kernels.RBF(1.0), n_threads=1)


@lru_cache
def large(layout="one group"):
    """Points enough for a whole matrix to be shrunk: two times over, then again from the start."""
    X, y, K = large_data()
    if layout == "any":
        return oracle.make_dual(np.random.default_rng(0), K, "mixed runs", 0.1)
    if layout == "twice":
        ones = np.ones(6000)
        return oracle.Dual(K, ((0, 3000, 0, 0), (3000, 3000, 0, 1)), 0 * ones, ones, np.tile(X[:, 0], 2), 0.1 * ones)
    runs = ((0, 1300, 0, 0), (1300, 1700, 1300, 0))
    return oracle.Dual(K, runs, 100 * np.minimum(y, 0), 100 * np.maximum(y, 0), -y, np.zeros(3000))


@lru_cache
def large_store():
    return rows.whole_matrix(large().K, np.ones(3000, dtype=np.float32), 1)


@pytest.mark.parametrize("layout", ["one group", "twice"])
def test_large_problems(layout):
    """Solved, and the same bits with more threads and with another problem beside it."""
    dual, other = large(layout), large("any")
    states = []
    for n_threads, duals in ((1, [dual]), (2, [dual]), (2, [dual, other])):
        machines = [make_machine(each) for each in duals]
        smo.solve(large_store(), machines, 1e-3, 10**6, n_threads)
        for each, machine in zip(duals, machines, strict=True):
            assert not machine.unfinished
            assert not machine.stalled
            assert machine.violation <= 1e-3
            assert_kept(each, machine)
            assert each.violation(machine.a) <= 1e-3 + 1e-8
        states.append(state(machines[0]))
    assert_same(states[0], states[1])
    assert_same(states[0], states[2])


def test_large_problems_go_down_step_by_step():
    """Limits before, in and between times when the problem is small: what was done up to there is kept, all of it goes
    down, and going on from there leads to the same solution."""
    dual, objectives = large(), []
    for limit in (5_000, 13_000, 16_000, 18_000, 20_000, 30_000):
        machine = make_machine(dual)
        smo.solve(large_store(), [machine], 1e-3, limit, 1)
        assert machine.unfinished
        assert machine.n_steps == limit
        assert_kept(dual, machine)
        objectives.append(dual.objective(machine.a))
    assert (np.diff(objectives) < 0).all()
    straight = make_machine(dual)
    for one in (machine, straight):
        smo.solve(large_store(), [one], 1e-3, 10**6, 1)
        assert dual.violation(one.a) <= 1e-3 + 1e-8
    ours, theirs = dual.objective(machine.a), dual.objective(straight.a)
    assert ours <= theirs + dual.excess(machine.a, straight.a) + 1e-9
    assert theirs <= ours + dual.excess(straight.a, machine.a) + 1e-9
