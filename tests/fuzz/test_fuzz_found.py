"""What fuzzing found, each as the smallest case that showed it."""

import numpy as np
import pytest
from scipy import sparse

from kernelrules import bounds, check, erm, export, graph, kernels, prune, ridge, svm
from kernelrules import tree as trees

X = np.random.default_rng(0).normal(size=(12, 3)).round(2)
TWO = (X[:, 0] > 0).astype(int)
HUGE = np.full(12, 1e300)
CHAIN = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)


@pytest.mark.parametrize("form", ["coo", "lil", "dia", "dok", "bsr", "csc"])
def test_gram_into_an_array_from_any_sparse_format(form):
    out = np.empty((12, 12))
    kernels.gram(sparse.csr_array(X).asformat(form), out=out)
    np.testing.assert_array_equal(out, kernels.gram(sparse.csr_array(X)))


def test_risk_of_a_path_of_one_tree():
    """bincount of nothing gives whole numbers, to which the risk was cut."""
    stump = trees.grow(X, [0] * 8 + [1] * 4, max_depth=0)
    for loss, risk in (("gini", 4 / 9), ("entropy", 0.9182958340544896)):
        np.testing.assert_allclose(prune.cost_complexity_path(stump, loss=loss).risk, [risk], rtol=1e-12)


def test_reduced_error_where_every_row_comes_apart():
    holes = np.where(np.eye(12, 3) + np.eye(12, 3, -4) + np.eye(12, 3, -8) > 0, np.nan, X)
    tree = trees.grow(holes, TWO, missing="fractional")
    assert prune.reduced_error(tree, np.full((4, 3), np.nan), TWO[:4]).n_leaves <= tree.n_leaves


def test_weights_that_overflow_are_refused():
    for call in (
        lambda w: ridge.fit(X, X[:, 0], 0.1, sample_weight=w),
        lambda w: svm.svr(X, X[:, 0], sample_weight=w, C=1e10),
        lambda w: svm.svc(X, TWO, sample_weight=w, C=1e10),
        lambda w: svm.one_class(X, sample_weight=w),
        lambda w: trees.grow(X, TWO, sample_weight=w),
    ):
        with pytest.raises(ValueError, match="sample_weight"):
            call(np.full(12, 1e308))
    with pytest.raises(ValueError, match="sample_weight"):
        ridge.fit(X, 1e8 * X[:, 0], 0.1, sample_weight=HUGE)
    with pytest.raises(ValueError, match="smaller units"):
        svm.svr(X, np.full(12, 1e308))


def test_a_tolerance_of_float32_narrows_nothing():
    model = svm.svr(X, X[:, 0], epsilon=1e300, tol=np.float32(0.25))
    assert model.certificate.converged
    assert not model.dual_coef.any()


def test_more_steps_than_a_machine_word_counts():
    np.testing.assert_array_equal(svm.svc(X, TWO, max_iter=2**70).dual_coef, svm.svc(X, TWO).dual_coef)


@pytest.mark.parametrize("unit", [1e-300, 1e-320, 1e250])
def test_graphs_in_any_unit(unit):
    """Weights of 1e-320 gave overflow, and NaN certificates; now W and lam only count by their product."""
    expected = graph.fit(CHAIN, [0.0, 1.0], 0.5, [0, 5])
    with np.errstate(under="ignore"):
        found = graph.fit(CHAIN * unit, [0.0, 1.0], min(0.5 / unit, 1e300), [0, 5])
    if unit > 1e-310:
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    assert found.certificate.converged
    assert found.lam == min(0.5 / unit, 1e300)


def test_weights_of_labels_count_by_their_ratios():
    expected = graph.fit(CHAIN, [0.0, 1.0], 0.5, [0, 5], sample_weight=[1.0, 3.0])
    given = np.array([1e300, 3e300])
    found = graph.fit(CHAIN, [0.0, 1.0], 0.5, [0, 5], sample_weight=given)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    np.testing.assert_array_equal(given, [1e300, 3e300])


def test_graphs_that_cannot_be_computed_with_are_refused():
    with pytest.raises(ValueError, match="row 0"):
        graph.laplacian(np.full((4, 4), 1e308))
    with pytest.raises(ValueError, match="lam"):
        graph.fit(CHAIN * 1e300, [0.0, 1.0], 1e300, [0, 5])
    light = CHAIN.copy()
    light[3:, 3:] *= 1e-200
    with pytest.raises(ValueError, match="further apart"):
        graph.fit(light, [0.0, 1.0], 1.0, [0, 5])


def test_coefficients_too_large_to_judge():
    with pytest.raises(ValueError, match="alpha"):
        ridge.certificate(X, X[:, 0], 1.0, kernels.Polynomial(9, 1e10), alpha=np.full(12, 1e140))
    assert ridge.certificate(X, X[:, 0], 1.0, alpha=np.ones(12), tol=1e300).converged


def test_products_that_overflow_are_refused():
    far = np.full((1, 3), 1e308)
    with pytest.raises(ValueError, match="overflow"):
        svm.decision(svm.svc([[0.0, 0, 0], [1.0, 1, 1]], [0, 1], C=np.inf, kernel=kernels.Linear()), far)
    given = ridge.fit(np.eye(3), [1e3, 1e3, 1e3], 0.1, kernels.Precomputed())
    with pytest.raises(ValueError, match="kernel values"):
        ridge.predict(given, far)


P2, P3 = kernels.Polynomial(2), kernels.Polynomial(3)
SINGLE = X.astype(np.float32)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (svm.predict, svm.svr(X, X[:, 0], kernel=P2)),
        lambda: (svm.predict, svm.svr(SINGLE, X[:, 0], kernel=P3)),
        lambda: (svm.predict, svm.svc(X, TWO, kernel=P2)),
        lambda: (svm.decision, svm.one_class(X, kernel=P2)),
        lambda: (svm.predict_proba, svm.calibrate(svm.svc(X, TWO, kernel=P2), X, TWO)),
        lambda: (ridge.predict, ridge.fit(X, X[:, 0], 0.1, P2, form="kernel")),
        lambda: (ridge.predict, ridge.fit(X, X[:, 0], 0.1, P2, form="features")),
        lambda: (ridge.posterior, ridge.fit(X, X[:, 0], 0.1, P2, form="kernel")),
        lambda: (ridge.posterior, ridge.fit(X, X[:, 0], 0.1, P2, form="features")),
        lambda: (ridge.predict, ridge.fit_blocks([(X, X[:, 0])], 0.1, kernels.feature_map(P2, 3))),
        lambda: (ridge.predict, ridge.fit_blocks([(X, X[:, 0])], 0.1, kernels.nystroem(X, P2, 5, rng=0))),
        lambda: (erm.decision, erm.fit(X, TWO, 0.1, P2)),
        lambda: (erm.predict, erm.fit(X, TWO, 0.1, P2)),
        lambda: (erm.predict_proba, erm.fit(np.tile(X, (2, 1)), np.tile(TWO, 2), 0.1, P2)),
        lambda: (kernels.FeatureMap.transform, kernels.feature_map(P2, 3)),
        lambda: (kernels.FeatureMap.transform, kernels.feature_map(kernels.Polynomial(2, 1.0, 0.0), 3)),
        lambda: (kernels.FeatureMap.transform, kernels.nystroem(X, P3, 5, rng=0)),
    ],
)
def test_powers_that_overflow_are_refused(make):
    """They were infinite, and differences of them NaN."""
    call, model = make()
    far = np.array([[0.5, 0.0, 1.0], [1e160, 0.0, 1.0]])
    with np.errstate(all="raise"), pytest.raises(ValueError, match="overflow"):
        call(model, far)
    found = call(model, np.array([[1e30, 0.0, 1.0]]))
    assert np.isfinite(found.mean if call is ridge.posterior else found).all()


def test_powers_that_overflow_float32_are_refused():
    far = np.array([[1e20, 0.0, 1.0]], dtype=np.float32)
    for call in (
        lambda: erm.decision(erm.fit(SINGLE[:4], TWO[:4], 0.1, P3), far),
        lambda: kernels.feature_map(P3, 3).transform(far),
        lambda: kernels.nystroem(SINGLE, P3, 5, rng=0).transform(far),
    ):
        with pytest.raises(ValueError, match="overflow"):
            call()
    # Kernel values beyond float32 are computed in float64, which has room for the cube of any float32.
    found = svm.predict(svm.svr(SINGLE, X[:, 0], kernel=P3), far)
    np.testing.assert_array_equal(found, svm.predict(svm.svr(SINGLE, X[:, 0], kernel=P3), far.astype(np.float64)))
    assert np.isfinite(found).all()


@pytest.mark.parametrize("indent", [-1, 2**70, 0.5, np.array([1.0, 2.0]), "  "])
def test_indents_that_are_none(indent):
    with pytest.raises((ValueError, TypeError), match="indent"):
        export.to_json(trees.grow(X, TWO), indent=indent)


def test_arrays_off_their_alignment_are_copied():
    """The core reads numbers where they are: np.ascontiguousarray leaves an array that starts at an odd address."""
    for dtype in (np.float64, np.float32):
        odd = np.frombuffer(bytearray(X.nbytes + 1), dtype=dtype, count=X.size, offset=1).reshape(X.shape)
        odd[...] = X
        assert not odd.flags.aligned
        assert check.matrix(odd).flags.aligned
        assert check.targets(odd[:, 0], 12).flags.aligned
        assert check.targets(odd.reshape(-1), 36).flags.aligned
        rows = sparse.csr_array(X)
        rows.data = odd.reshape(-1)[: rows.nnz]
        assert check.matrix(rows).data.flags.aligned
        assert check.frames.read(odd).values.flags.aligned


def test_a_wide_sparse_matrix_is_refused_by_its_shape():
    wide = sparse.csr_array(([1.0], ([0], [2**40])), shape=(3, 2**41))
    with pytest.raises(ValueError, match="square"):
        bounds.rademacher_monte_carlo(wide, 1.0)
    with pytest.raises(ValueError, match="columns"):
        bounds.of_model(svm.svc(X, TWO, kernel=lambda a, b: np.asarray(a @ b.T)), wide, [0, 1, 1])
