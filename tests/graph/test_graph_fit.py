"""Fits on graphs: against dense algebra, by their certificate, and under changes that must not or must matter."""

import warnings

import graph_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, sparse

from kernelrules import graph, kernels, ridge
from kernelrules.graph import fitting, laplacians, multigrid, solving


@st.composite
def problems(draw, most=16, connected=True):
    """(W, labelled): a graph in which every component holds a labelled point, or not."""
    m = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    W = np.triu(rng.uniform(0.1, 2, size=(m, m)) * (rng.random((m, m)) < draw(st.sampled_from([0.1, 0.3, 0.9]))), 1)
    W = W + W.T
    labelled = rng.permutation(m)[: draw(st.integers(1, m))]
    if connected:
        component = oracle.components(W)
        first = [int(np.flatnonzero(component == c)[0]) for c in set(component) - set(component[labelled])]
        labelled = np.concatenate([labelled, np.array(first, dtype=int)])
    return W, labelled, rng


lams = st.sampled_from([1e-6, 1e-2, 0.3, 1.0, 50.0])


@given(problems(), lams, st.booleans(), st.sampled_from(["direct", "cg"]), st.booleans())
def test_regression_equals_dense_algebra(problem, lam, normalised, solver, weighted):
    W, labelled, rng = problem
    Y = rng.normal(size=(len(labelled), 2)) * 10
    weight = rng.uniform(0.1, 3, size=len(labelled)) if weighted else None
    options = {"normalised": normalised, "solver": solver, "sample_weight": weight, "tol": 1e-12}
    result = graph.fit(W, Y, lam, labelled, **options)
    wanted = oracle.fit(W, Y, lam, labelled, normalised, weight)
    np.testing.assert_allclose(result.values, wanted, rtol=1e-7, atol=1e-7 * np.abs(Y).max())
    one = graph.fit(sparse.csr_array(W), Y[:, 0], lam, labelled, **options)
    np.testing.assert_allclose(one.values, result.values[:, 0], rtol=1e-7, atol=1e-7 * np.abs(Y).max())
    assert result.certificate.converged
    assert result.classes is None
    assert (result.residual <= 1e-10).all()


@given(problems(), lams, st.booleans(), st.integers(1, 4))
def test_classes_are_one_column_each(problem, lam, normalised, n_classes):
    W, labelled, rng = problem
    names = np.array(["d", "a", "c", "b"])[:n_classes]
    y = names[rng.integers(n_classes, size=len(labelled))]
    result = graph.fit(W, y, lam, labelled, normalised=normalised)
    classes = sorted(set(y))
    assert list(result.classes) == classes
    targets = (y[:, None] == np.array(classes)).astype(float)
    wanted = oracle.fit(W, targets, lam, labelled, normalised)
    np.testing.assert_allclose(result.values, wanted, atol=1e-7)
    assert (result.labels == result.classes[result.values.argmax(axis=1)]).all()


@given(problems(), lams, st.booleans(), st.booleans())
def test_the_excess_is_a_fit_to_centred_targets(problem, lam, normalised, weighted):
    W, labelled, rng = problem
    y = rng.integers(3, size=len(labelled))
    weight = rng.uniform(0.1, 3, size=len(labelled)) if weighted else np.ones(len(labelled))
    result = graph.fit(W, y, lam, labelled, normalised=normalised, decide="excess", sample_weight=weight)
    targets = (y[:, None] == result.classes).astype(float)
    centred = oracle.fit(W, targets - np.average(targets, axis=0, weights=weight), lam, labelled, normalised, weight)
    top = np.take_along_axis(centred, np.searchsorted(result.classes, result.labels)[:, None], 1)[:, 0]
    np.testing.assert_allclose(top, centred.max(axis=1), atol=1e-7)


@given(problems(), lams, st.booleans())
def test_it_is_ridge_in_its_fourth_form(problem, lam, normalised):
    """f̂ = K(JK + λnI)⁻¹[y; 0] with K = (L + μI)⁻¹, as μ goes to 0."""
    W, labelled, rng = problem
    m, y = len(W), rng.normal(size=len(labelled))
    order = np.concatenate([labelled, np.setdiff1d(np.arange(m), labelled)])
    K = np.linalg.inv(graph.laplacian(W, normalised).toarray() + 1e-9 * np.eye(m))[np.ix_(order, order)]
    fourth = ridge.fit((K + K.T) / 2, y, lam, kernels.Precomputed(), form="rkhs")
    found = graph.fit(W, y, lam, labelled, normalised=normalised)
    np.testing.assert_allclose(found.values[order], fourth.fitted, atol=2e-5)


# ---- the certificate --------------------------------------------------------------------------------------------


@given(problems(), lams, st.booleans(), st.booleans(), st.integers(1, 4))
def test_the_gap_bounds_the_distance_to_the_best(problem, lam, normalised, weighted, steps):
    """Also of solutions that are far from it, and tight for exact ones."""
    W, labelled, rng = problem
    y = rng.normal(size=(len(labelled), 2))
    weight = rng.uniform(0.2, 2, size=len(labelled)) if weighted else None
    best = oracle.objective(
        W, oracle.fit(W, y, lam, labelled, normalised, weight), y, lam, labelled, normalised, weight
    )
    exact = graph.fit(W, y, lam, labelled, normalised=normalised, sample_weight=weight)
    w = laplacians.weights_of(W)
    s = np.ones(len(labelled)) if weight is None else weight
    forest = fitting.core.spread(w.indptr, w.indices, w.data, np.array(labelled, dtype=np.intp))
    setup = fitting._problem(w, np.array(labelled), y, s, lam, normalised, forest)
    f = exact.values + rng.normal(size=exact.values.shape) * 10.0**-steps
    A = setup.matrix()
    r = setup.weight[:, None] * setup.targets - A @ f
    primal, gap, at_zero = solving._worth(setup, setup.forest, f, r)
    heavy = solving._heavy_forest(setup)
    assert sorted(heavy[0]) == list(range(len(W)))
    assert all(heavy[2][i] == W[i, heavy[1][i]] > 0 for i in range(len(W)) if heavy[1][i] >= 0)
    truth = oracle.objective(W, f, y, lam, labelled, normalised, weight)
    np.testing.assert_allclose(primal, truth, rtol=1e-7, atol=1e-9 * (1 + lam) * (y**2).sum())
    for bound in (gap, solving._worth(setup, heavy, f, r)[1]):
        assert bound >= (truth - best) * (1 - 1e-6) - 1e-9 * (1 + lam) * (y**2).sum()
    np.testing.assert_allclose(at_zero, oracle.objective(W, 0 * f, y, lam, labelled, normalised, weight))
    np.testing.assert_allclose(exact.certificate.primal, best, rtol=1e-6, atol=1e-9 * (1 + lam) * (y**2).sum())
    assert 0 <= exact.certificate.gap <= 1e-8 * max(at_zero, 1e-300)


def test_light_edges_do_not_spoil_the_gap():
    """Paths of few steps lead over edges of nearly no weight; heavier detours make the bound tight."""
    rng = np.random.default_rng(0)
    W = graph.knn_graph(rng.normal(size=(6000, 2)), 10, "rbf", gamma=60.0)
    result = graph.fit(W, np.arange(30.0), 0.1, np.arange(30), unreached="nan", solver="cg")
    assert result.certificate.converged
    assert result.certificate.gap < 1e-8 * result.certificate.primal


@pytest.mark.parametrize("unit", [1e-250, 1e-30, 1e140])
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_units_of_the_targets(unit, solver):
    X, _ = rings(600)
    W, y = graph.knn_graph(X, 12), np.array([1.0, -2.0, 3.0, 5.0])
    base, scaled = (graph.fit(W, y * u, 0.1, [0, 1, 2, 3], solver=solver) for u in (1.0, unit))
    np.testing.assert_allclose(scaled.values / unit, base.values, rtol=1e-7)
    assert scaled.certificate.converged


def test_many_columns():
    X, _ = rings(2000)
    W, labelled = graph.knn_graph(X, 12), np.arange(40)
    seen = []
    many = graph.fit(W, np.arange(40), 0.1, labelled, solver="cg", callback=seen.append)
    wanted = graph.fit(W, np.arange(40), 0.1, labelled, solver="direct")
    np.testing.assert_allclose(many.values, wanted.values, atol=1e-8)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert max(p.fraction for p in seen) <= 1


def test_too_few_steps_are_told():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    W = graph.knn_graph(X, 8)
    labelled = np.arange(0, 3000, 100)
    y = X[labelled, 0]
    with pytest.warns(graph.ConvergenceWarning, match="not reached"):
        rough = graph.fit(W, y, 0.01, labelled, solver="cg", max_iter=2)
    fine = graph.fit(W, y, 0.01, labelled, solver="cg")
    assert not rough.certificate.converged
    assert rough.certificate.iterations == 2
    assert fine.certificate.converged
    assert fine.certificate.kkt <= 1e-10
    assert rough.certificate.gap >= rough.certificate.primal - fine.certificate.primal > 0


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_edges_that_float64_does_not_feel(normalised, solver):
    """Two cliques and a bridge: lost in the rounding of their degrees it connects nothing, else it does. A light edge
    that is all a point has is felt there."""
    W = linalg.block_diag(np.ones((6, 6)), np.ones((6, 6)), 0.0)
    W[0, 12] = W[12, 0] = 1e-30
    W[0, 6] = W[6, 0] = 1e-30
    with pytest.raises(graph.Unreached, match="6 point"):
        graph.fit(W, [1.0], 0.1, [3], normalised=normalised)
    W[0, 6] = W[6, 0] = 1e-6
    result = graph.fit(W, [1.0], 0.1, [3], normalised=normalised, solver=solver, tol=1e-13)
    if not normalised:
        np.testing.assert_allclose(result.values, 1.0, atol=1e-4)
    assert result.certificate.converged


# ---- large graphs -----------------------------------------------------------------------------------------------


def rings(n, seed=0):
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    return np.c_[np.cos(angle), np.sin(angle)] * (1 + y[:, None]) + 0.1 * rng.normal(size=(n, 2)), y


@pytest.mark.parametrize("lam", [1e-16, 1e-9, 1e-3, 1e4])
def test_unlabelled_points_count_however_small_lambda(lam):
    """Their equations are of the size of λ: a plain norm of the residual would not see them."""
    X, _ = rings(3000)
    W = graph.knn_graph(X, 10)
    labelled = np.arange(0, 3000, 97)
    y = X[labelled]
    cg, direct = (graph.fit(W, y, lam, labelled, solver=s) for s in ("cg", "direct"))
    assert cg.certificate.converged
    assert direct.certificate.converged
    np.testing.assert_allclose(cg.values, direct.values, atol=1e-6)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("kind", ["plane", "many dimensions", "chain", "star", "far weights"])
def test_conjugate_gradients_equal_the_factorisation(normalised, kind):
    rng = np.random.default_rng(1)
    m = 4000
    chain = sparse.diags_array([np.ones(m - 1), np.ones(m - 1)], offsets=[-1, 1])
    hub = sparse.coo_array((np.ones(m - 1), (np.zeros(m - 1, int), np.arange(1, m))), shape=(m, m))
    W = {
        "plane": lambda: graph.knn_graph(rng.normal(size=(m, 2)), 8),
        "many dimensions": lambda: graph.knn_graph(rng.normal(size=(1600, 12)), 6),
        "chain": lambda: chain,
        "star": lambda: hub + hub.T,
        "far weights": lambda: graph.knn_graph(rng.normal(size=(m, 2)), 8, lambda d: 10 ** rng.uniform(-6, 0, len(d))),
    }[kind]()
    labelled = rng.choice(W.shape[0], 40, replace=False)
    y = rng.normal(size=(40, 3))
    direct, cg = (graph.fit(W, y, 0.1, labelled, normalised=normalised, solver=s, tol=1e-11) for s in ("direct", "cg"))
    np.testing.assert_allclose(cg.values, direct.values, atol=1e-5 if kind == "far weights" else 1e-7)
    assert cg.certificate.converged
    assert cg.certificate.iterations < (200 if kind == "far weights" else 100)  # weights of six sizes at random
    np.testing.assert_allclose(cg.certificate.primal, direct.certificate.primal, rtol=1e-9)


def test_steps_hardly_grow_with_the_points():
    """What multigrid is for: Jacobi's steps would grow fourfold."""
    steps = []
    for m in (2000, 32000):
        X, y = rings(m)
        labelled = np.arange(0, m, m // 20 + 1)
        steps.append(graph.fit(graph.knn_graph(X, 8), y[labelled], 0.1, labelled, solver="cg").certificate.iterations)
    assert steps[1] < 3 * steps[0]
    assert steps[1] < 60


def test_the_cycle_is_symmetric_and_positive():
    X, _ = rings(700)
    A = graph.laplacian(graph.knn_graph(X, 6)) + 0.01 * sparse.eye_array(700)
    cycle = multigrid.Cycle(multigrid.Matrix.of(A.tocsr(), 1), 1)
    assert cycle.levels
    M = cycle(np.eye(700))
    np.testing.assert_allclose(M, M.T, atol=1e-12 * np.abs(M).max())
    assert np.linalg.eigvalsh((M + M.T) / 2).min() > 0


@pytest.mark.parametrize("solver", ["direct", "cg"])
@pytest.mark.parametrize("y", [[1, 2, 3], [0.5, 1.5, 4.0]], ids=["classes", "numbers"])
def test_threads_give_the_same_bits(solver, y):
    X, _ = rings(12000)
    W = graph.knn_graph(X, 12)
    fits = [graph.fit(W, y, 0.1, [0, 1, 2], solver=solver, n_threads=t) for t in (1, 2, 3)]
    for other in fits[1:]:
        np.testing.assert_array_equal(fits[0].values, other.values)
        assert fits[0].certificate == other.certificate


# ---- relations --------------------------------------------------------------------------------------------------


@given(problems(), st.booleans(), st.sampled_from([1e-3, 7.0, 1e4]))
def test_scaled_weights_scale_lambda(problem, normalised, factor):
    W, labelled, rng = problem
    y = rng.normal(size=len(labelled))
    base = graph.fit(W, y, 0.2, labelled, normalised=normalised).values
    # The normalised Laplacian does not see the scale, the plain one gives it to λ.
    scaled = graph.fit(W * factor, y, 0.2 if normalised else 0.2 / factor, labelled, normalised=normalised).values
    np.testing.assert_allclose(scaled, base, atol=1e-7)


@given(problems(), st.booleans(), st.data())
def test_the_order_of_points_does_not_matter(problem, normalised, data):
    W, labelled, rng = problem
    y, order = rng.normal(size=len(labelled)), rng.permutation(len(W))
    place = np.argsort(order)
    base = graph.fit(W, y, 0.2, labelled, normalised=normalised).values
    moved = graph.fit(W[np.ix_(order, order)], y, 0.2, place[labelled], normalised=normalised).values
    np.testing.assert_allclose(moved, base[order], atol=1e-8)


@given(problems())
def test_weights_of_labels(problem):
    W, labelled, rng = problem
    y, weight = rng.normal(size=len(labelled)), rng.uniform(0.5, 2, size=len(labelled))
    base = graph.fit(W, y, 0.2, labelled, sample_weight=weight).values
    np.testing.assert_allclose(graph.fit(W, y, 0.2, labelled, sample_weight=3 * weight).values, base, atol=1e-9)
    np.testing.assert_allclose(
        graph.fit(W, y, 0.2, labelled, sample_weight=np.ones(len(y))).values,
        graph.fit(W, y, 0.2, labelled).values,
        atol=1e-12,
    )


def test_a_label_of_weight_zero_counts_as_none():
    X, _ = rings(200)
    W = graph.knn_graph(X, 12)
    without = graph.fit(W, [1.0, 5.0], 0.2, [3, 80], unreached="nan")
    idle = graph.fit(W, [1.0, 9.0, 5.0], 0.2, [3, 40, 80], sample_weight=[1, 0, 1], unreached="nan")
    np.testing.assert_allclose(idle.values, without.values, atol=1e-12)


def test_masks_and_indices():
    X, y = rings(300)
    W, mask = graph.knn_graph(X, 20), np.zeros(300, dtype=bool)
    mask[[250, 3, 17, 100]] = True
    by_mask = graph.fit(W, y[mask], 0.1, mask, unreached="nan")
    order = np.array([250, 3, 17, 100])
    by_index = graph.fit(W, y[order], 0.1, order, unreached="nan")
    np.testing.assert_allclose(by_mask.values, by_index.values, atol=1e-12)
    np.testing.assert_array_equal(by_mask.labelled, np.flatnonzero(mask))
    np.testing.assert_array_equal(by_index.labelled, order)


def test_limits_of_lambda():
    """A small one keeps the labels; a large one gives each component the mean of its own."""
    X, _ = rings(150)
    W = graph.knn_graph(X, 10)
    component = oracle.components(W.toarray())
    labelled = np.arange(0, 150, 7)
    y = np.random.default_rng(0).normal(size=len(labelled))
    small, large = graph.fit(W, y, 1e-10, labelled), graph.fit(W, y, 1e8, labelled)
    np.testing.assert_allclose(small.values[labelled], y, atol=1e-6)
    for c in set(component):
        np.testing.assert_allclose(large.values[component == c], y[component[labelled] == c].mean(), atol=1e-5)
    assert large.certificate.converged


def test_values_stay_between_the_labels():
    """The maximum principle, for the plain Laplacian."""
    X, _ = rings(5000)
    result = graph.fit(graph.knn_graph(X, 10), [-1.0, 3.0], 0.01, [0, 1])
    assert result.values.min() >= -1 - 1e-6
    assert result.values.max() <= 3 + 1e-6


# ---- components without a label ---------------------------------------------------------------------------------


@given(problems(connected=False), st.booleans(), st.sampled_from(["direct", "cg"]))
def test_unreached_points_are_named_or_nan(problem, normalised, solver):
    W, labelled, rng = problem
    y = rng.normal(size=len(labelled))
    component = oracle.components(W)
    reached = np.isin(component, component[labelled])
    if not reached.all():
        with pytest.raises(graph.Unreached, match="connected to no labelled point") as caught:
            graph.fit(W, y, 0.1, labelled, normalised=normalised)
        np.testing.assert_array_equal(caught.value.points, np.flatnonzero(~reached))
        assert f"{(~reached).sum()} point(s) in {len(set(component[~reached]))} component(s)" in str(caught.value)
        assert str(np.flatnonzero(~reached)[0]) in str(caught.value)
    options = {"normalised": normalised, "solver": solver, "unreached": "nan"}
    result = graph.fit(W, y, 0.1, labelled, **options)
    assert (np.isnan(result.values) == ~reached).all()
    np.testing.assert_array_equal(result.unreached, np.flatnonzero(~reached))
    inside = np.flatnonzero(reached)
    wanted = oracle.fit(W[np.ix_(inside, inside)], y, 0.1, np.searchsorted(inside, labelled), normalised)
    np.testing.assert_allclose(result.values[inside], wanted, atol=1e-7)
    classes = graph.fit(W, y > 0, 0.1, labelled, **options)
    assert (np.ma.getmaskarray(classes.labels) == ~reached).all()


def test_scikit_learn_gives_class_0_to_what_it_does_not_know():
    """Two blobs far apart, a label in one: here an error, there a class that nobody asked for."""
    semi = pytest.importorskip("sklearn.semi_supervised")
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 100])
    y = np.full(100, -1)
    y[[0, 1]] = [1, 0]
    with warnings.catch_warnings(action="ignore"):  # it divides 0 by 0
        theirs = semi.LabelSpreading(kernel="knn", n_neighbors=5).fit(X, y)
        assert (theirs.predict(X[50:]) == 0).all()
    with pytest.raises(graph.Unreached, match="50 point"):
        graph.fit(graph.knn_graph(X, 5), [1, 0], 0.1, [0, 1])


# ---- Laplacians -------------------------------------------------------------------------------------------------


@given(problems(connected=False), st.booleans())
def test_laplacians_equal_the_definition(problem, normalised):
    W, _, rng = problem
    L = graph.laplacian(W, normalised)
    np.testing.assert_allclose(L.toarray(), oracle.laplacian(W, normalised), atol=1e-12)
    loops = W + np.diag(rng.uniform(0, 5, len(W)))  # edges from a point to itself change nothing
    np.testing.assert_allclose(graph.laplacian(sparse.csc_array(loops), normalised).toarray(), L.toarray(), atol=1e-12)
    alone = W.sum(axis=1) == 0
    assert (L.toarray()[alone] == 0).all()


def test_scipy_has_the_same_laplacian():
    from scipy.sparse import csgraph

    W = graph.knn_graph(np.random.default_rng(0).normal(size=(80, 3)), 4, "rbf", "mutual")
    for normalised in (False, True):
        theirs = csgraph.laplacian(W, normed=normalised)
        np.testing.assert_allclose(graph.laplacian(W, normalised).toarray(), theirs.toarray(), atol=1e-12)
