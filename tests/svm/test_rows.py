"""Where the solver gets kernel values from: products with what is stored, the ring of computed rows, rows from Python
functions, and the distances that matrices of several gammas are made of."""

import gc
import time

import gram_oracle
import numpy as np
import pytest
import solver_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from machines import make_machine
from scipy import sparse
from strategies import csr_forms, dtypes, kernel_specs, matrices

from kernelrules import check, kernels
from kernelrules.core.gram.distances import distances_dense, exp_of_distances
from kernelrules.core.svm import gradient, rows, smo

seeds = st.integers(0, 2**32 - 1)


@st.composite
def run_lists(draw, n):
    """Runs (first point, length), which may overlap, repeat and be empty."""
    starts = draw(st.lists(st.integers(0, n - 1), max_size=4))
    return [(start, draw(st.integers(0, n - start))) for start in starts]


def at_runs(values, runs):
    return np.concatenate([values[start : start + length] for start, length in runs] or [values[:0]])


def coefficients(rng, n):
    return rng.normal(size=n) * rng.choice([0.0, 1.0, 1e6], size=n)


def symmetric(rng, n, dtype=np.float64):
    """Random numbers; rows serve as columns, so that products need them to be symmetric."""
    half = rng.normal(size=(n, n))
    return (half + half.T).astype(dtype)


def make_kernel_matrix(n, seed=0, gamma=0.5):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def supplier_of(K, asked=None):
    """A Python function that gives rows of K and writes down which were asked for."""

    def supply(wanted, out):
        if asked is not None:
            asked.append(list(wanted))
        np.asarray(out)[...] = K[np.asarray(wanted)]

    return supply


def assert_product(store, K, beta, runs, slack=0.0):
    """multiply adds K @ beta at the runs to what is there; `slack` is the error of K's entries."""
    exact, rounding = oracle.product(K, beta)
    there = np.linspace(-1, 1, sum(length for _, length in runs))
    out = there.copy()
    gradient.multiply(store, beta, out, runs)
    allowed = rounding + np.asarray(slack) @ np.abs(beta) if np.ndim(slack) else rounding
    allowed = at_runs(allowed, runs) + 1e-15 * (1 + len(beta))
    assert (np.abs(out - there - at_runs(exact, runs)) <= allowed).all()
    return out


# ---- products ---------------------------------------------------------------------------------------------------


@given(st.data(), st.integers(1, 30), dtypes, seeds)
def test_products_with_a_whole_matrix(data, n, dtype, seed):
    rng = np.random.default_rng(seed)
    K = np.empty((n, n + data.draw(st.integers(0, 3))), dtype=dtype)[:, :n]  # rows may lie apart
    K[...] = symmetric(rng, n)
    store = rows.whole_matrix(K, np.diagonal(K).copy(), 1)
    assert store.n == n
    assert store.single == (dtype == np.float32)
    assert_product(store, K, coefficients(rng, n), data.draw(run_lists(n)))


@given(st.data(), matrices(), st.booleans(), seeds)
def test_linear_products(data, X, is_sparse, seed):
    rng, n = np.random.default_rng(seed), len(X)
    if is_sparse:
        x = check.matrix(data.draw(csr_forms(X)))
    else:
        x = np.full((n, X.shape[1] + 2), np.nan)[:, : X.shape[1]]
        x[...] = X
    store = rows.linear_products(x, (X**2).sum(axis=1), 1)
    # w is summed over points and then used in sums over features, so errors are relative to |X| |Xᵀ| |beta|
    beta = coefficients(rng, n)
    error = 4 * np.finfo(float).eps * (n + X.shape[1]) * np.abs(X) @ np.abs(X).T
    assert_product(store, X.astype(oracle.EXACT) @ X.T.astype(oracle.EXACT), beta, data.draw(run_lists(n)), error)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_around_the_parts(dtype):
    """More than 1024 points that count, at runs that end on either side of it: the parts that threads work on."""
    rng = np.random.default_rng(0)
    K = symmetric(rng, 1100, dtype)
    beta = rng.normal(size=1100)
    runs = [(0, 1100), (0, 1023), (0, 1024), (0, 1025), (76, 1024), (1099, 1), (500, 0)]
    one, two = (assert_product(rows.whole_matrix(K, K[0], threads), K, beta, runs) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_linear_products_around_the_parts(form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 7)) * (rng.random((1100, 7)) < 0.6)
    beta = rng.normal(size=1100)
    runs = [(0, 1100), (0, 1023), (0, 1024), (0, 1025), (76, 1024), (1099, 1), (500, 0)]
    K = X.astype(oracle.EXACT) @ X.T.astype(oracle.EXACT)
    error = 2200 * np.finfo(float).eps * np.abs(X) @ np.abs(X).T
    stores = (rows.linear_products(check.matrix(form(X)), (X**2).sum(axis=1), threads) for threads in (1, 2))
    one, two = (assert_product(store, K, beta, runs, error) for store in stores)
    np.testing.assert_array_equal(one, two)


def test_stores_keep_what_they_point_into():
    K = symmetric(np.random.default_rng(0), 200)
    x = check.matrix(sparse.csr_array(K))
    stores = [
        rows.whole_matrix(K.copy(), K[0].copy(), 1),
        rows.linear_products(check.Csr(x.data.copy(), x.indices.copy(), x.indptr.copy(), 200), K[0].copy(), 1),
        rows.linear_products(K.copy(), K[0].copy(), 1),
        rows.cached_rows(K.copy(), None, kernels.Linear().core(), K[0].copy(), 200, 1),
    ]
    gc.collect()
    rubbish = [np.full((200, 200), np.nan) for _ in range(20)]
    for store, matrix in zip(stores, [K, K @ K.T, K @ K.T, K @ K.T], strict=True):
        out = np.zeros(200)
        gradient.multiply(store, np.ones(200), out, [(0, 200)])
        np.testing.assert_allclose(out, matrix.sum(axis=1), atol=1e-9)
    del rubbish


# ---- computed rows ----------------------------------------------------------------------------------------------


def each_row(store):
    """All rows that the store makes, one after the other."""
    K = np.zeros((store.n, store.n))
    for i in range(store.n):
        gradient.multiply(store, np.eye(store.n)[i], K[i], [(0, store.n)])
    return K


@given(st.data(), kernel_specs(), dtypes, st.booleans(), st.integers(2, 14))
def test_computed_rows_equal_the_definition(data, kernel, dtype, is_sparse, n_slots):
    X = data.draw(matrices()).astype(dtype)
    x = check.matrix(data.draw(csr_forms(X))) if is_sparse else X
    diagonal = np.ones(len(X), dtype=dtype)  # used by the solver, not for rows
    store = rows.cached_rows(x, x.columns() if is_sparse else None, kernel.core(), diagonal, n_slots, 1)
    K = each_row(store)
    assert store.n_computed == len(X)
    if np.isfinite(K).all():  # where it overflows, infinity · 0 has no value
        gram_oracle.assert_close(K.astype(dtype), X, X, kernel)
    if isinstance(kernel, (kernels.RBF, kernels.Laplacian)):
        assert (np.diagonal(K) == 1).all()


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "csr"])
def test_computed_rows_do_not_depend_on_their_batch(is_sparse):
    """Bit for bit: a row alone, among others, and with other threads."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 6)) * (rng.random((500, 6)) < 0.7)
    x = check.matrix(sparse.csr_array(X)) if is_sparse else X
    columns = x.columns() if is_sparse else None
    beta, alone, together = rng.normal(size=500), np.zeros(500), []
    for threads in (1, 2):
        out = np.zeros(500)
        store = rows.cached_rows(x, columns, kernels.RBF(0.3).core(), np.ones(500), 500, threads)
        gradient.multiply(store, beta, out, [(0, 500)])
        together.append(out)
    np.testing.assert_array_equal(*together)
    K = each_row(rows.cached_rows(x, columns, kernels.RBF(0.3).core(), np.ones(500), 2, 1))
    gradient.multiply(rows.whole_matrix(K, np.ones(500), 1), beta, alone, [(0, 500)])
    np.testing.assert_array_equal(alone, together[0])


@given(st.data(), st.integers(1, 9), st.integers(1, 9), seeds)
def test_the_ring_of_slots(data, n, n_slots, seed):
    """Rows are right whatever was asked before, and computed when the twin says so."""
    rng = np.random.default_rng(seed)
    K, n_slots = symmetric(rng, n), min(n, max(n_slots, 2))  # a step of the solver needs two
    asked, expected = [], []
    store, ring = rows.supplied_rows(supplier_of(K, asked), np.ones(n), n_slots), oracle.Ring(n_slots, n)
    for _ in range(data.draw(st.integers(1, 12))):
        points = np.sort(rng.choice(n, size=rng.integers(1, n + 1), replace=False))
        beta = np.zeros(n)
        beta[points] = rng.normal(size=len(points))
        expected += ring.ask(points.tolist())
        assert_product(store, K, beta, [(0, n)])
        assert asked == expected
        assert store.n_computed == sum(len(batch) for batch in asked)


# ---- the solver on computed rows --------------------------------------------------------------------------------


def solve_on(store, dual, tol=1e-6, n_threads=1):
    machine = make_machine(dual)
    smo.solve(store, [machine], tol, 10**6, n_threads)
    return machine


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("n_slots", [2, 3, 4, 30, 1000])
@pytest.mark.parametrize("layout", ["one group", "twice"])
def test_few_slots_reach_the_same_solution(n_slots, layout, is_sparse):
    """A pair is enough, though two groups have four violators to offer."""
    X, K = make_kernel_matrix(60)
    dual = oracle.make_dual(np.random.default_rng(1), K, layout, kink=0.1)
    whole = solve_on(rows.whole_matrix(K, np.ones(60), 1), dual)
    x = check.matrix(sparse.csr_array(X)) if is_sparse else X
    columns = x.columns() if is_sparse else None
    store = rows.cached_rows(x, columns, kernels.RBF(0.5).core(), np.ones(60), n_slots, 1)
    machine = solve_on(store, dual)
    assert not machine.unfinished
    assert dual.violation(machine.a) <= 1.001e-6
    assert dual.objective(machine.a) <= dual.objective(whole.a) + dual.excess(machine.a, whole.a) + 1e-12
    assert dual.objective(whole.a) <= dual.objective(machine.a) + dual.excess(whole.a, machine.a) + 1e-12
    if n_slots >= 60:
        assert store.n_computed <= 60


def overlapping(n, p, shift):
    """Float32 points of two classes, and the linear term of their dual."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], size=n)
    X = rng.normal(size=(n, p))
    X[:, 0] += shift * y
    return X.astype(np.float32), -y


def solve_classes(X, linear, n_slots, n_threads=1, gamma=0.2, max_steps=10**6, max_rows=None, tick=None):
    """A machine with C = 1 on rows that are computed when asked for, and its store."""
    n = len(X)
    store = rows.cached_rows(X, None, kernels.RBF(gamma).core(), np.ones(n, np.float32), n_slots, n_threads)
    a, gradient = np.zeros(n), linear.copy()
    machine = smo.Machine([(0, n, 0, 0)], np.minimum(-linear, 0), np.maximum(-linear, 0), a, gradient)
    smo.solve(store, [machine], 1e-3, max_steps, n_threads, tick, max_rows)
    return machine, store


def test_few_slots_and_threads_on_more_points_than_a_working_set():
    """In float32: threads change no bit, whatever is kept; and what is kept changes nothing but the last bits."""
    X, linear = overlapping(2150, 4, 1.0)
    solutions = []
    for n_slots in (2150, 900, 100):
        one, two = (solve_classes(X, linear, n_slots, n_threads)[0] for n_threads in (1, 2))
        assert not one.unfinished
        assert not one.stalled
        np.testing.assert_array_equal(one.a, two.a)
        np.testing.assert_array_equal(one.gradient, two.gradient)
        assert (one.n_steps, one.violation) == (two.n_steps, two.violation)
        solutions.append(float((one.a * (one.gradient + linear)).sum() / 2))
    np.testing.assert_allclose(solutions, solutions[0], rtol=1e-6)


def test_rows_are_computed_once_and_only_of_points_that_move():
    X, linear = overlapping(2150, 4, 4.0)
    machine, store = solve_classes(X, linear, 2150)
    assert np.count_nonzero(machine.a) <= store.n_computed < 2150 / 4


def test_the_clock_does_not_decide_when_rows_are_enough(monkeypatch):
    """How long a slice takes decides how many rounds come before the next look at signals, but not this."""
    X, linear = overlapping(3000, 4, 0.5)
    found = []
    for scale in (1e-6, 1e6):
        monkeypatch.setattr(smo, "perf_counter", lambda scale=scale: scale * time.perf_counter())
        machine, store = solve_classes(X, linear, 3000, max_rows=1200)
        found.append((machine.n_steps, store.n_computed, machine.a.tobytes()))
    assert 1200 <= found[0][1] < 3000
    assert found[0] == found[1]


@pytest.fixture(scope="module")
def long_rows():
    """Points, linear term, and the matrix in float64. 0.24 ms a row: more of them change than one slice takes."""
    X, linear = overlapping(2600, 3000, 0.3)
    return X, linear, kernels.gram(X.astype(np.float64), kernel=kernels.RBF(2e-4))


@pytest.mark.parametrize(("max_steps", "max_rows"), [(1500, None), (10**6, 1)])
def test_gradients_are_up_to_date_where_the_work_ends(long_rows, max_steps, max_rows):
    """Long rows are added in slices between which signals are seen; a limit may end the work after any of them."""
    X, linear, K = long_rows
    heard = []
    machine, _ = solve_classes(X, linear, 2600, 2, 2e-4, max_steps, max_rows, lambda *told: heard.append(told))
    assert machine.unfinished
    assert len(heard) > 1
    assert machine.violation == machine.current_violation()
    assert np.count_nonzero(machine.a) > 1300
    np.testing.assert_allclose(machine.gradient, K @ machine.a + linear, atol=1e-4)


# ---- rows from Python -------------------------------------------------------------------------------------------


@given(st.sampled_from(oracle.LAYOUTS), st.integers(2, 25), st.integers(2, 30), seeds)
def test_supplied_rows(layout, n, n_slots, seed):
    """Every batch is of different points and fits the slots; what is computed is counted; few slots solve it too."""
    K, asked = make_kernel_matrix(n, seed)[1], []
    dual = oracle.make_dual(np.random.default_rng(seed), K, layout, kink=0.1)
    store = rows.supplied_rows(supplier_of(K, asked), np.ones(n), n_slots)
    machine = solve_on(store, dual, 1e-4)
    assert not machine.unfinished
    assert dual.violation(machine.a) <= 1.001e-4
    assert store.n_computed == sum(len(batch) for batch in asked)
    for batch in asked:
        assert len(set(batch)) == len(batch) <= n_slots
        assert set(batch) <= set(dual.points.tolist())
    if n_slots >= n:
        assert store.n_computed <= n


def test_several_machines_count_their_rows():
    K, asked = make_kernel_matrix(40)[1], []
    store = rows.supplied_rows(supplier_of(K, asked), np.ones(40), 8)
    duals = [oracle.make_dual(np.random.default_rng(seed), K, "one group") for seed in range(3)]
    smo.solve(store, [make_machine(dual) for dual in duals], 1e-4, 10**6, 1)
    assert store.n_computed == sum(len(batch) for batch in asked)


class Interruption(BaseException):
    """Not an Exception, as KeyboardInterrupt."""


@pytest.mark.parametrize("error", [LookupError("no such row"), Interruption("enough")])
@pytest.mark.parametrize("call", [1, 3])
def test_what_a_supplier_raises_comes_out(error, call):
    """Unchanged; and the machine can go on from where it stands."""
    K = make_kernel_matrix(30)[1]
    dual = oracle.make_dual(np.random.default_rng(0), K, "one group")
    calls = 0

    def supply(wanted, out):
        nonlocal calls
        calls += 1
        np.asarray(out)[...] = np.nan
        if calls == call:
            raise error
        np.asarray(out)[...] = K[np.asarray(wanted)]

    store, machine = rows.supplied_rows(supply, np.ones(30), 4), make_machine(dual)
    with pytest.raises(type(error)) as raised:
        smo.solve(store, [machine], 1e-6, 10**6, 1)
    assert raised.value is error
    np.testing.assert_allclose(dual.sums(machine.a), dual.sums(dual.start), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(machine.gradient, dual.gradient(machine.a), rtol=1e-12, atol=1e-12)
    smo.solve(store, [machine], 1e-6, 10**6, 1)
    assert dual.violation(machine.a) <= 1.001e-6


def test_a_supplier_may_not_be_callable():
    store = rows.supplied_rows(None, np.ones(30), 4)
    machine = make_machine(oracle.make_dual(np.random.default_rng(0), np.eye(30), "one group"))
    with pytest.raises(TypeError, match="not callable"):
        smo.solve(store, [machine], 1e-6, 10**6, 1)


# ---- distances --------------------------------------------------------------------------------------------------


@given(matrices(most_rows=30), dtypes)
def test_distances_equal_the_definition(X, dtype):
    """To a few ulp of the squared lengths about the centre, as the expansion of the square has it."""
    X = X.astype(dtype)
    out = np.full((len(X), len(X)), np.nan, dtype=dtype)
    distances_dense(X, out, 1)
    exact = X.astype(oracle.EXACT)
    squares = ((exact[:, None] - exact) ** 2).sum(axis=2)
    sizes = ((exact - exact.mean(axis=0)) ** 2).sum(axis=1)
    shift = (np.finfo(dtype).eps * np.abs(exact).max()) ** 2 * X.shape[1]  # the centre is rounded to the type
    allowed = (8 + X.shape[1]) * np.finfo(dtype).eps * (sizes[:, None] + sizes + shift) + np.finfo(dtype).tiny
    assert (np.abs(out - squares) <= allowed).all()
    assert (out >= 0).all()
    np.testing.assert_array_equal(out, out.T)


@given(st.integers(1, 40), dtypes, st.floats(1e-4, 1e3), seeds)
def test_exponentials_of_distances(n, dtype, gamma, seed):
    """exp in the type of the distances: the product's rounding counts as often as the exponent is large."""
    squares = np.random.default_rng(seed).exponential(size=(n, n)).astype(dtype)
    out = np.full((n, n), np.nan, dtype=dtype)
    exp_of_distances(squares, gamma, out, 1)
    exponents = gamma * squares.astype(oracle.EXACT)
    exact = np.exp(-exponents)
    np.fill_diagonal(exact, 1)
    ulp = np.finfo(dtype).eps
    assert (np.abs(out - exact) <= (4 + 2 * exponents) * ulp * exact + 8 * np.finfo(dtype).tiny).all()
    assert (np.diagonal(out) == 1).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrices_of_several_gammas(dtype):
    """Both together are the RBF kernel, at sizes around the tile, with any number of threads."""
    X = np.random.default_rng(0).normal(size=(481, 5)).astype(dtype)
    squares = [np.empty((481, 481), dtype=dtype) for _ in range(2)]
    ticks = []
    for threads in (1, 2):
        distances_dense(X, squares[threads - 1], threads, lambda done, total: ticks.append((done, total)))
    np.testing.assert_array_equal(*squares)
    assert ticks[-1][0] == ticks[-1][1]
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares[0], distances, rtol=1e-4, atol=100 * np.finfo(dtype).eps)
    for gamma in (0.01, 1.0):
        one, two, gram = (np.empty((481, 481), dtype=dtype) for _ in range(3))
        exp_of_distances(squares[0], gamma, one, 1)
        exp_of_distances(squares[0], gamma, two, 2)
        np.testing.assert_array_equal(one, two)
        kernels.gram(X, kernel=kernels.RBF(gamma), out=gram, n_threads=1)
        np.testing.assert_allclose(one, gram, rtol=200 * np.finfo(dtype).eps, atol=1e-30)


def test_no_points_no_distances():
    """Nothing is read or written: the guards around an empty corner stay as they are."""
    guarded = np.full((2, 2), 7.0)
    empty = np.ascontiguousarray(guarded[:0, :0])
    exp_of_distances(empty, 1.0, empty, 1)
    distances_dense(np.empty((0, 3)), empty, 1)
    assert empty.shape == (0, 0)
    np.testing.assert_array_equal(guarded, 7.0)
