"""The compiled parts of additive rules against slow twins: solver, stumps, trees."""

import additive_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrules.core.additive.binned_columns import BinnedColumns
from kernelrules.core.additive.l1_solver import L1Solver
from kernelrules.core.additive.residual_tree import Histograms, grow_tree
from kernelrules.core.additive.sample_rows import sample_rows
from kernelrules.core.additive.stumps import best_stumps, level_sums, stump_rows, threshold
from kernelrules.core.rules.ranks import rank_dense, rank_sparse
from kernelrules.core.simd import cpu


def lists_of(H):
    rows = [np.flatnonzero(column) for column in H.T]
    start = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    return np.concatenate([[], *rows]).astype(np.int32), start


def solver_of(C, y, w, logistic, negated=None, above=-1.0):
    """A solver with the 0/1 columns of C, all of them; those that are negated are given as their complements."""
    keys = np.random.default_rng(1).integers(1, 1 << 63, size=len(y), dtype=np.uint64)
    solver = L1Solver(y, w, logistic, np.where(w > 0, keys, np.uint64(0)))
    negated = np.zeros(C.shape[1], dtype=np.uint8) if negated is None else negated
    added = solver.add_rules(*lists_of(np.where(negated, 1 - C, C)), negated, above)
    return solver, added


@st.composite
def problems(draw, most=60):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = draw(st.integers(8, most)), draw(st.integers(1, 12))
    C = (rng.random((n, m)) < rng.random(m)).astype(float)
    C = C[:, (C.sum(axis=0) > 0) & (C.sum(axis=0) < n)]
    logistic = draw(st.booleans())
    y = (rng.random(n) < 0.5).astype(float) if logistic else rng.normal(size=n)
    y[:2] = 0.0, 1.0
    w = rng.integers(0, 4, size=n).astype(float) if draw(st.booleans()) else np.ones(n)
    w[:2] = 1.0
    negated = (rng.random(C.shape[1]) < 0.5).astype(np.uint8)
    return C, y, w / w.sum(), logistic, negated, draw(st.sampled_from([0.3, 0.05, 0.01, 0.002]))


@given(problems(most=200))
@settings(max_examples=40)
def test_solutions_are_as_good_as_the_oracle_s(problem):
    C, y, w, logistic, negated, lam = problem
    solver, added = solver_of(C, y, w, logistic, negated)
    primal, dual = solver.solve(lam, 1e-9, 200)
    beta, intercept = solver.coefficients()
    reported = oracle.objective(C[:, added], y, w, beta, intercept, lam, logistic)
    best = oracle.objective(C, y, w, *oracle.solve(C, y, w, lam, logistic), lam, logistic)
    assert reported == pytest.approx(primal, rel=1e-12)
    assert primal - dual <= 1e-8
    assert dual <= best + 1e-12  # a lower bound of any solution
    assert primal <= best + 1e-8
    np.testing.assert_allclose(solver.scores(), C[:, added] @ beta + intercept, atol=1e-10)


@given(problems(), st.integers(0, 3))
@settings(max_examples=40)
def test_gap_bounds_the_distance_of_any_stop(problem, n_steps):
    """Stopped early, the gap is at least what is missing."""
    C, y, w, logistic, negated, lam = problem
    solver, _ = solver_of(C, y, w, logistic, negated)
    primal, dual = solver.solve(lam, 0.0, n_steps)
    best = oracle.objective(C, y, w, *oracle.solve(C, y, w, lam, logistic), lam, logistic)
    assert primal - dual >= primal - best - 1e-12


@given(problems(most=300), st.booleans())
@settings(max_examples=40)
def test_the_same_bits_at_every_level_of_instructions(problem, by_matrix):
    C, y, w, logistic, negated, lam = problem
    found = []
    for level in range(cpu.simd_best() + 1):
        solver, _ = solver_of(C, y, w, logistic, negated)
        solver.columns.simd_level = level
        solver.model.matrix_max_columns = 1024 if by_matrix else 0
        found.append((*solver.solve(lam, 1e-9, 200), *solver.coefficients(), solver.scores(), solver.residuals()))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_many_columns_take_the_way_without_a_matrix():
    rng = np.random.default_rng(0)
    C = (rng.random((600, 400)) < 0.3).astype(float)
    y = rng.normal(size=600)
    w = np.full(600, 1 / 600)
    solver, added = solver_of(C, y, w, False)
    solver.model.matrix_max_columns = 100
    primal, dual = solver.solve(1e-3, 1e-6, 500)
    assert solver.n_nonzero > 256
    beta, intercept = solver.coefficients()
    assert primal == pytest.approx(oracle.objective(C[:, added], y, w, beta, intercept, 1e-3, False), rel=1e-12)
    assert primal - dual <= 1e-6
    y = (C[:, 0] + rng.normal(size=600) > 0.3).astype(float)
    solver, added = solver_of(C, y, w, True)
    solver.model.matrix_max_columns = 100
    primal, dual = solver.solve(1e-3, 1e-6, 500)
    assert solver.n_nonzero > 100
    assert primal - dual <= 1e-6


def test_columns_with_values():
    rng = np.random.default_rng(3)
    C = (rng.random((80, 6)) < 0.4).astype(float)
    z = rng.normal(size=80)
    for logistic in (False, True):
        y = (z + C[:, 0] + rng.normal(size=80) > 0.5).astype(float)
        w = np.full(80, 1 / 80)
        solver, added = solver_of(C, y, w, logistic)
        solver.add_values(z)
        primal, dual = solver.solve(0.01, 1e-10, 200)
        full = np.column_stack([C[:, added], z])
        best = oracle.objective(full, y, w, *oracle.solve(full, y, w, 0.01, logistic), 0.01, logistic)
        assert primal == pytest.approx(best, abs=1e-9)
        assert primal - dual <= 1e-9


def test_a_rule_comes_in_once():
    y = np.array([0.0, 1.0, 1.0, 0.0])
    w = np.full(4, 0.25)
    H = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 1]], dtype=float)  # the second is the first's complement
    solver, added = solver_of(H, y, w, False)
    assert added.tolist() == [0, 2]
    again = solver.add_rules(*lists_of(H), np.zeros(3, dtype=np.uint8), -1.0)
    assert len(again) == 0
    assert solver.n_columns == 2


def test_only_rules_above_the_limit_come_in():
    y = np.array([1.0, 1.0, 0.0, 0.0])
    H = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=float)
    _, added = solver_of(H, y, np.full(4, 0.25), False, above=0.2)
    assert added.tolist() == [0]  # Σ w r h is 0.25, and 0


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(4, 25)), draw(st.integers(1, 3))
    X = rng.normal(size=(n, p)).round(draw(st.integers(0, 2)))
    n_levels = np.where(rng.random(p) < 0.4, 4, 0).astype(np.intp)
    X[:, n_levels > 0] = rng.integers(0, 4, size=(n, int((n_levels > 0).sum())))
    X[rng.random((n, p)) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    return X, n_levels, rng.normal(size=n)


@given(tables())
def test_stumps_are_the_best_of_all(table):
    X, n_levels, s = table
    s = s - s.mean()
    p = X.shape[1]
    ranked = rank_dense(X, n_levels, 1)
    best, cut, with_missing = np.empty(p), np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
    best_stumps(ranked, s, best, cut, with_missing)
    for j in range(p):
        x = X[:, j]
        assert abs(best[j]) == pytest.approx(oracle.best_stump(x, n_levels[j], s), abs=1e-12)
        if n_levels[j]:
            passes = (level_sums(ranked, j, s) > 0).astype(np.uint8)
            reported = np.where(np.isnan(x), passes[-1], passes[np.where(np.isnan(x), 0, x).astype(int)]).astype(bool)
        else:
            passes = (np.arange(ranked.n_ranks(j) + 1) <= cut[j]).astype(np.uint8)
            passes[-1] = with_missing[j]
            reported = (x <= threshold(ranked, j, cut[j])) | (np.isnan(x) & bool(with_missing[j]))
        assert s[reported].sum() == pytest.approx(best[j], abs=1e-12)
        rows, negated = stump_rows(ranked, j, passes)
        listed = np.zeros(len(x), dtype=bool)
        listed[rows] = True
        assert (listed == (reported != negated)).all()


def test_stumps_of_sparse_columns_are_those_of_dense_ones():
    from scipy import sparse

    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(50, 6)) * (rng.random((50, 6)) < 0.3).astype(float)
    s = rng.normal(size=50)
    s -= s.mean()
    columns = sparse.csc_array(X)
    both = []
    for ranked in (
        rank_dense(X, np.zeros(6, dtype=np.intp), 1),
        rank_sparse(columns.data, columns.indices.astype(np.intc), columns.indptr.astype(np.intp), 50, 1),
    ):
        found = np.empty(6), np.empty(6, dtype=np.int64), np.empty(6, dtype=np.int64)
        best_stumps(ranked, s, *found)
        both.append([threshold(ranked, j, found[1][j]) for j in range(6)])
        np.testing.assert_allclose(np.abs(found[0]), [oracle.best_stump(X[:, j], 0, s) for j in range(6)], atol=1e-12)
    assert both[0] == both[1]


@given(tables(), st.integers(2, 5), st.integers(1, 3), st.integers(1, 4))
@settings(max_examples=30)
def test_trees_split_best_first(table, max_leaves, max_depth, min_rows):
    """Each split is the best of its node by the oracle, and was the best of all open nodes when it was made."""
    X, n_levels, s = table
    n = len(s)
    min_rows = 1 if n_levels.any() else min_rows  # of levels the best set is exact where the limit rules none out
    rng = np.random.default_rng(n)
    w = rng.integers(1, 4, size=n) / 10.0
    sample = np.sort(rng.choice(n, max(1, 2 * n // 3), replace=False)).astype(np.int32)
    others = np.setdiff1d(np.arange(n), sample).astype(np.int32)
    binned = BinnedColumns(rank_dense(X, n_levels, 1))
    rows, start, parent, is_left, *_ = grow_tree(
        binned, s, w, sample, others, max_leaves, max_depth, min_rows, Histograms()
    )
    nodes = {-1: np.arange(n)}
    depth, open_gain = {-1: 0}, {-1: oracle.best_gain(X, n_levels, sample, s, w, min_rows)}
    if max_depth < 1 or len(sample) < 2:
        open_gain[-1] = 0.0
    for k in range(0, len(parent), 2):
        assert is_left[k]
        assert not is_left[k + 1]
        mother = int(parent[k])
        a, b = (rows[start[i] : start[i + 1]] for i in (k, k + 1))
        assert sorted(np.concatenate([a, b])) == sorted(nodes[mother])
        inside = [np.intersect1d(r, sample) for r in (a, b)]
        assert min(len(r) for r in inside) >= min_rows
        made = oracle.gain(*inside, s, w)
        assert made == pytest.approx(open_gain[mother], abs=1e-9)
        assert made >= max(open_gain.values()) - 1e-9
        del open_gain[mother]
        for i, r in ((k, a), (k + 1, b)):
            nodes[i], depth[i] = r, depth[mother] + 1
            some = np.intersect1d(r, sample)
            open_gain[i] = oracle.best_gain(X, n_levels, some, s, w, min_rows) if depth[i] < max_depth else 0.0
    if len(parent) // 2 + 1 < max_leaves:
        assert max(open_gain.values()) <= 1e-9


@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.data())
def test_rows_are_drawn_one_after_the_other(n, seed, data):
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(n) < 0.7).astype(np.int32)
    size = data.draw(st.integers(0, len(rows)))
    uniform = rng.random(len(rows))
    sample, others = sample_rows(rows, size, uniform, n)
    wanted, left = [], size
    for k, row in enumerate(rows.tolist()):
        if uniform[k] < left / (len(rows) - k):
            wanted.append(row)
            left -= 1
    assert sample.tolist() == wanted
    assert len(sample) == size
    assert others.tolist() == sorted(set(range(n)) - set(wanted))


def test_any_rows_are_as_likely_to_be_drawn():
    rng, rows = np.random.default_rng(0), np.arange(1, 6, dtype=np.int32)
    counts = {}
    for _ in range(5000):
        some = tuple(sample_rows(rows, 2, rng.random(5), 7)[0].tolist())
        counts[some] = counts.get(some, 0) + 1
    assert len(counts) == 10
    assert max(abs(count - 500) for count in counts.values()) < 100  # 4.7 standard deviations


def test_columns_of_many_values_have_at_most_256_codes():
    x = np.concatenate([np.zeros(500), np.random.default_rng(0).normal(size=1500)])[:, None]
    binned = BinnedColumns(rank_dense(x, np.zeros(1, dtype=np.intp), 1))
    assert binned.n_codes(0) == 257
    last = binned.last_ranks(0)
    assert last == sorted(set(last))
    counts = [binned.rows_passing(0, (np.arange(257) == k).astype(np.uint8)).sum() for k in range(257)]
    assert sum(counts) == 2000
    assert counts[-1] == 0
    assert 500 <= max(counts) <= 520
    assert np.median(counts[:-1]) <= 10


@pytest.mark.parametrize("logistic", [False, True])
def test_bad_shapes_are_refused(logistic):
    keys = np.ones(3, dtype=np.uint64)
    with pytest.raises(ValueError, match="differ in length"):
        L1Solver(np.zeros(3), np.ones(2), logistic, keys)
    with pytest.raises(ValueError, match="both classes"):
        L1Solver(np.ones(3), np.full(3, 1 / 3), True, keys)
    ranked = rank_dense(np.zeros((3, 1)), np.zeros(1, dtype=np.intp), 1)
    with pytest.raises(ValueError, match="shapes"):
        best_stumps(ranked, np.zeros(2), np.empty(1), np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64))
    with pytest.raises(ValueError, match="flag"):
        stump_rows(ranked, 0, np.zeros(5, dtype=np.uint8))
    none = np.empty(0, dtype=np.int32)
    with pytest.raises(ValueError, match="shapes"):
        grow_tree(
            BinnedColumns(ranked), np.zeros(3), np.ones(3), none, np.arange(3, dtype=np.int32), 2, 1, 1, Histograms()
        )
