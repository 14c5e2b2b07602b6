"""The solver's vectorised passes, descend, partner, add_rows and dot, through the routines that show their results: one
step of the solver, and products. They run at the level of this process; test_levels.py runs this file at the others."""

import numpy as np
import solver_oracle as oracle
from hypothesis import given
from hypothesis import strategies as st
from strategies import dtypes

from kernelrules import kernels
from kernelrules.core.gram.apply import apply_dense
from kernelrules.core.svm import gradient, rows, smo

ULP = np.finfo(np.float64).eps
SIZES = st.one_of(st.integers(2, 40), st.sampled_from([255, 256, 257, 300, 511, 520]))  # around the blocks of 256


@st.composite
def steppers(draw):
    """A dual on any matrix at all, with ties where points are of few kinds; and a diagonal, which need not be K's."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_kinds = draw(SIZES), draw(st.sampled_from([None, None, 3, 9]))
    K = rng.normal(size=(n, n)).astype(draw(dtypes))
    dual = oracle.make_dual(
        rng,
        K,
        draw(st.sampled_from(oracle.LAYOUTS)),
        kink=draw(st.sampled_from([0.0, 0.0, 0.5])),
        start=draw(st.sampled_from(["inside", "corner", "zero"])),
        shifted=draw(st.booleans()),
    )
    kinds = np.arange(n) if n_kinds is None else rng.integers(n_kinds, size=n)
    diagonal = rng.normal(size=n + 9)[kinds] * draw(st.sampled_from([0, 1, 10]))
    return oracle.with_ties(dual, kinds), diagonal.astype(K.dtype)


@given(steppers(), st.sampled_from([0, oracle.EARLY - 2, 10**6]))
def test_steps_equal_the_twins(case, n_taken):
    """Which pair is taken, how far it goes and the violation to the bit; the gradient but for fused multiply-adds.
    After many steps they are longer."""
    dual, diagonal = case
    n_taken += len(dual.start) if n_taken else 0
    store = rows.whole_matrix(dual.K, diagonal, 1)
    state = n_taken, np.inf, 0
    solver = smo.restored(dual.segments, dual.lower, dual.upper, dual.start, dual.linear, dual.kink, state)
    a, gradient = solver.a, solver.gradient
    for n_steps in range(n_taken + 1, n_taken + 5):
        expected = oracle.take_step(dual, diagonal, a.copy(), gradient.copy(), n_steps - 1)
        before = a.copy(), gradient.copy()
        smo.solve(store, [solver], 0.0, n_steps, 1)
        if expected is None:
            assert not solver.unfinished
            np.testing.assert_array_equal(a, before[0])
            return
        i, j, step, moved, after = expected
        np.testing.assert_array_equal(a, moved)
        if (moved == before[0]).all():  # too small a step for anything to change
            assert solver.stalled
            return
        assert solver.n_steps == n_steps
        pair = np.abs(dual.K[dual.points[[i, j]]][:, dual.points].astype(np.float64)).sum(axis=0)
        assert (np.abs(gradient - after) <= 2 * ULP * (np.abs(before[1]) + abs(step) * pair)).all()
        assert solver.violation == dual.violation(a, gradient)


@given(steppers())
def test_look_is_the_violation(case):
    dual, _ = case
    solver = smo.Machine(dual.segments, dual.lower, dual.upper, dual.start.copy(), dual.linear.copy(), dual.kink)
    assert solver.current_violation() == solver.violation == dual.violation(dual.start, dual.linear)


@given(st.data(), dtypes, SIZES, st.integers(0, 2**32 - 1))
def test_added_rows_equal_the_sum(data, dtype, n, seed):
    """add_rows: any number of rows, at any run of points, on top of what is there."""
    rng = np.random.default_rng(seed)
    K = (rng.normal(size=(n, n)) * 10.0 ** rng.integers(-6, 6, size=n)).astype(dtype)
    beta = np.zeros(n)
    used = rng.choice(n, size=data.draw(st.integers(0, min(n, 20))), replace=False)
    beta[used] = rng.normal(size=len(used))
    first = data.draw(st.integers(0, n - 1))
    length = data.draw(st.integers(1, n - first))
    out = rng.normal(size=length)
    exact, slack = oracle.product(K[used, first : first + length].T, beta[used])
    exact, slack = exact + out, slack + 2 * (len(used) + 1) * ULP * np.abs(out)
    gradient.multiply(rows.whole_matrix(K, np.diagonal(K).copy(), 1), beta, out, [(first, length)])
    assert (np.abs(out - exact) <= slack).all()


@given(dtypes, st.one_of(st.integers(1, 70), st.integers(71, 240)), st.integers(0, 2**32 - 1))
def test_dot_equals_the_sum(dtype, n, seed):
    """dot: with the linear kernel of one feature and x = 1 a row of the tile is z itself."""
    rng = np.random.default_rng(seed)
    z = (rng.normal(size=n) * 10.0 ** rng.integers(-6, 6, size=n)).astype(dtype)
    coefficients = rng.normal(size=(3, n))
    out = np.zeros((1, 3))
    apply_dense(np.ones((1, 1), dtype=dtype), z[:, None], kernels.Linear().core(), coefficients, out, 1)
    for column in range(3):
        exact, slack = oracle.product(z[None, :], coefficients[column])
        assert (np.abs(out[:, column] - exact) <= slack).all()


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_dot_of_features_equals_the_sum(p, seed):
    """dot in the products of a linear kernel, where one point alone has a coefficient: its features are exact."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(5, p)) * 10.0 ** rng.integers(-6, 6, size=p)
    out = np.zeros(5)
    gradient.multiply(
        rows.linear_products(x, (x**2).sum(axis=1), 1), np.array([0.0, 0.0, 1.0, 0.0, 0.0]), out, [(0, 5)]
    )
    exact, slack = oracle.product(x, x[2])
    assert (np.abs(out - exact) <= slack).all()
