"""Estimators say what the functions say, and what scikit-learn's own estimators say where these can answer."""

import inspect
import re

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from sklearn import svm as peers
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.semi_supervised import LabelSpreading
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from kernelrules import estimators, graph, kernels, prune, ridge, rules, svm, tree
from kernelrules.estimators import (
    GraphClassifier,
    KernelRidge,
    KernelSVC,
    KernelSVR,
    OneClassKernel,
    PrunedTreeClassifier,
    RuleListClassifier,
    TreeClassifier,
    TreeRegressor,
)
from kernelrules.estimators._nearest import Nearest

X, codes = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = np.array(["setosa", "versicolor", "virginica"])[codes]
target = X[:, 3] + 0.1 * X[:, 0] ** 2
weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
new = np.random.default_rng(1).normal(size=(40, 4))
TIGHT = {"tol": 1e-8}


def near(ours, theirs):
    """Equal but for what the tolerance, and scikit-learn's float32 rows, leave open."""
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


# ---- the functions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "model"),
    [
        (KernelSVC(C=3.0), lambda: svm.svc(X, y, C=3.0, sample_weight=weight)),
        (KernelSVC(nu=0.2, multiclass="ovr"), lambda: svm.svc(X, y, nu=0.2, multiclass="ovr", sample_weight=weight)),
        (
            KernelSVC(kernel="poly", degree=2, gamma="auto", coef0=2.0, class_weight="balanced"),
            lambda: svm.svc(
                X, y, kernel=kernels.Polynomial(2, "auto", 2.0), class_weight="balanced", sample_weight=weight
            ),
        ),
        (KernelSVR(epsilon=0.2), lambda: svm.svr(X, target, epsilon=0.2, sample_weight=weight)),
        (KernelSVR(kernel=kernels.Laplacian(0.3), nu=0.4),
         lambda: svm.svr(X, target, kernel=kernels.Laplacian(0.3), nu=0.4, sample_weight=weight)),
        (OneClassKernel(kernel="sigmoid", gamma=0.01, coef0=1.0),
         lambda: svm.one_class(X, kernel=kernels.Sigmoid(0.01, 1.0), sample_weight=weight)),
    ],
    ids=["svc", "nu_svc", "poly", "svr", "nu_svr", "one_class"],
)  # fmt: skip
def test_machines_are_those_of_the_functions(estimator, model):
    expected = model()
    labels = target if isinstance(estimator, KernelSVR) else y
    fitted = estimator.fit(X, labels, sample_weight=weight)
    for name in ("support", "support_vectors", "dual_coef", "intercept"):
        np.testing.assert_array_equal(getattr(fitted, name + "_"), getattr(expected, name))
    assert fitted.certificate_ == expected.certificate
    np.testing.assert_array_equal(fitted.predict(new), svm.predict(expected, new))
    if not isinstance(estimator, KernelSVR):
        shaped = fitted.set_params(decision_function_shape="ovo") if isinstance(estimator, KernelSVC) else fitted
        np.testing.assert_array_equal(shaped.decision_function(new), svm.decision(expected, new))


def test_ridge_is_that_of_the_function():
    both = np.column_stack([target, X[:, 0]])
    fitted = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.2, fit_intercept=True).fit(X, both, sample_weight=weight)
    expected = ridge.fit(X, both, 0.5 / weight.sum(), kernels.RBF(0.2), intercept=True, sample_weight=weight)
    near(fitted.predict(new), ridge.predict(expected, new))
    near(fitted.intercept_, expected.intercept)
    assert fitted.model_.lam == pytest.approx(0.5 / weight.sum(), rel=1e-14)
    assert ridge.posterior(fitted.model_, new).variance.shape == (40,)


@pytest.mark.parametrize("kernel", ["knn", "rbf"])
def test_graph_is_that_of_the_functions(kernel):
    some = np.where(np.arange(len(y)) % 10 == 0, codes, -1)
    fitted = GraphClassifier(kernel=kernel, n_neighbors=5, alpha=0.2, normalised=False).fit(X, some)
    edges = graph.knn_graph(X, 5, {"knn": "binary", "rbf": "rbf"}[kernel])
    expected = graph.fit(edges, codes[::10], 0.2 / 15, np.arange(0, 150, 10), unreached="nan")
    assert (fitted.graph_ != edges).nnz == 0
    np.testing.assert_array_equal(fitted.transduction_, np.ma.filled(expected.labels, 0))
    reached = np.setdiff1d(np.arange(len(y)), fitted.unreached_)
    near(fitted.label_distributions_[reached], expected.values[reached])


def test_trees_and_rules_are_those_of_the_functions():
    limits = {"max_depth": 4, "min_samples_leaf": 3, "max_leaf_nodes": 6}
    grown = tree.grow(X, y, max_depth=4, min_leaf=3, max_leaves=6, sample_weight=weight)
    fitted = TreeClassifier(**limits).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(fitted.tree_.threshold, grown.threshold)
    np.testing.assert_array_equal(fitted.apply(new), tree.apply(grown, new))
    np.testing.assert_array_equal(fitted.predict_proba(new), tree.predict_proba(grown, new))
    assert (fitted.decision_path(new) != tree.decision_path(grown, new)).nnz == 0
    assert (fitted.get_depth(), fitted.get_n_leaves()) == (grown.depth, grown.n_leaves)

    linear = TreeRegressor(leaf="linear", max_depth=2).fit(X, target)
    expected = tree.grow(X, target, criterion="squared_error", leaf="linear", max_depth=2)
    np.testing.assert_array_equal(linear.predict(new), tree.predict(expected, new))

    pruned = PrunedTreeClassifier(cv=5, random_state=3).fit(X, y, sample_weight=weight)
    chosen = prune.cross_validate(X, y, folds=5, rng=3, sample_weight=weight)
    np.testing.assert_array_equal(pruned.model_.error, chosen.error)
    assert pruned.tree_.n_leaves == chosen.tree.n_leaves
    assert pruned.ccp_alpha_ == chosen.alphas[chosen.chosen]

    listed = RuleListClassifier(random_state=3).fit(X, y, sample_weight=weight)
    assert str(listed.rules_) == str(rules.induce(X, y, rng=3, sample_weight=weight))


# ---- scikit-learn's -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (KernelSVC(C=2.0, **TIGHT), peers.SVC(C=2.0, decision_function_shape="ovo", **TIGHT)),
        (KernelSVC(kernel="poly", **TIGHT), peers.SVC(kernel="poly", decision_function_shape="ovo", **TIGHT)),
        (KernelSVC(nu=0.3, **TIGHT), peers.NuSVC(nu=0.3, decision_function_shape="ovo", **TIGHT)),
        (OneClassKernel(nu=0.2, **TIGHT), peers.OneClassSVM(nu=0.2, **TIGHT)),
    ],
    ids=["svc", "poly", "nu_svc", "one_class"],
)
def test_decisions_are_those_of_scikit_learn(ours, theirs):
    if isinstance(ours, KernelSVC):
        ours.set_params(decision_function_shape="ovo")
    ours.fit(X, y, sample_weight=weight)
    theirs.fit(X, y, sample_weight=weight)
    near(ours.decision_function(new), theirs.decision_function(new))
    near(ours.intercept_, theirs.intercept_)
    if isinstance(ours, KernelSVC):
        np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    else:
        near(ours.offset_, theirs.offset_)
        near(ours.score_samples(new), theirs.score_samples(new))


def test_regressions_are_those_of_scikit_learn():
    for ours, theirs in (
        (KernelSVR(C=3.0, **TIGHT), peers.SVR(C=3.0, **TIGHT)),
        (KernelSVR(nu=0.4, C=3.0, **TIGHT), peers.NuSVR(nu=0.4, C=3.0, **TIGHT)),
        (KernelRidge(0.7), PeerRidge(0.7)),
        (KernelRidge(0.7, kernel="rbf"), PeerRidge(0.7, kernel="rbf")),
        (KernelRidge(0.7, kernel="polynomial"), PeerRidge(0.7, kernel="polynomial")),
        (KernelRidge(0.7, kernel="laplacian", gamma=0.1), PeerRidge(0.7, kernel="laplacian", gamma=0.1)),
    ):
        ours.fit(X, target, sample_weight=weight)
        near(ours.predict(new), theirs.fit(X, target, sample_weight=weight).predict(new))
    near(KernelRidge().fit(X, target).dual_coef_, PeerRidge().fit(X, target).dual_coef_)


def test_weights_of_columns_for_the_linear_kernel():
    for data in (X, sparse.csr_array(X)):
        fitted = KernelSVC(kernel="linear", **TIGHT).fit(data, y)
        near(fitted.coef_, peers.SVC(kernel="linear", **TIGHT).fit(X, y).coef_)
    with pytest.raises(AttributeError, match="linear kernel only"):
        _ = KernelSVC().fit(X, y).coef_


@pytest.mark.parametrize("criterion", ["gini", "log_loss"])
def test_pruning_is_that_of_scikit_learn(criterion):
    """Data spread out and without ties: there the trees are the same (see docs/examples/tree_as_in_sklearn.py)."""
    rng = np.random.default_rng(4)
    data = rng.normal(size=(300, 3)) * 1000
    kinds = np.digitize(data[:, 0] + 500 * rng.normal(size=300), [-300, 300])
    theirs = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=0.05, random_state=0)
    ours = TreeClassifier(criterion=criterion, min_samples_leaf=0.05)
    path, peer = (e.cost_complexity_pruning_path(data, kinds) for e in (ours, theirs))
    np.testing.assert_allclose(path.ccp_alphas, peer.ccp_alphas, atol=1e-12)
    np.testing.assert_allclose(path.impurities, peer.impurities, atol=1e-12)
    assert not hasattr(ours, "n_features_in_")
    for alpha in (path.ccp_alphas[1:-1] + path.ccp_alphas[2:]) / 2:
        small, same = (e.set_params(ccp_alpha=alpha).fit(data, kinds) for e in (ours, theirs))
        assert small.get_n_leaves() == same.get_n_leaves()
        np.testing.assert_allclose(small.predict_proba(data), same.predict_proba(data), atol=1e-12)
    np.testing.assert_allclose(small.feature_importances_, same.feature_importances_, atol=1e-10)


def test_regression_trees_are_those_of_scikit_learn():
    rng = np.random.default_rng(5)
    data, values = rng.normal(size=(200, 3)) * 1000, rng.normal(size=(200, 2))
    both = TreeRegressor(max_depth=3, min_samples_split=0.1).fit(data, values)
    peer = DecisionTreeRegressor(max_depth=3, min_samples_split=0.1, random_state=0).fit(data, values)
    np.testing.assert_allclose(both.predict(data), peer.predict(data), atol=1e-12)
    assert both.n_outputs_ == 2


def test_graph_does_as_well_as_label_spreading():
    from sklearn.datasets import load_digits

    images, digits = (part[:700] for part in load_digits(return_X_y=True))
    known = np.random.default_rng(0).random(700) < 0.1
    some = np.where(known, digits, -1)
    ours, theirs = GraphClassifier().fit(images, some), LabelSpreading(kernel="knn").fit(images, some)
    right, peer = ((e.transduction_ == digits)[~known].mean() for e in (ours, theirs))
    assert right > max(0.9, peer - 0.01)
    held_out = load_digits(return_X_y=True)
    assert np.mean(ours.predict(held_out[0][700:]) == held_out[1][700:]) > 0.85


# ---- answers that agree with one another ----------------------------------------------------------------------------


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_largest_decision_is_the_prediction(multiclass):
    points = np.random.default_rng(1).normal(size=(90, 2))
    kinds = np.arange(90) % 4
    fitted = KernelSVC(C=10.0, gamma=1.0, multiclass=multiclass).fit(points, kinds)
    anywhere = np.random.default_rng(2).uniform(-3, 3, size=(3000, 2))
    values = fitted.decision_function(anywhere)
    assert values.shape == (3000, 4)
    np.testing.assert_array_equal(values.argmax(axis=1), fitted.predict(anywhere))


@pytest.mark.parametrize(
    "estimator",
    [
        TreeClassifier(max_depth=3),
        TreeClassifier(missing="fractional", max_depth=3),
        PrunedTreeClassifier(random_state=0, cv=3),
        RuleListClassifier(random_state=0),
        RuleListClassifier(prune=False),
        GraphClassifier(),
    ],
    ids=str,
)
def test_probabilities_never_contradict_predictions(estimator):
    rng = np.random.default_rng(3)
    for n_classes in (2, 4):
        data = rng.integers(0, 6, size=(120, 3)).astype(float)
        kinds = rng.integers(0, n_classes, size=120)
        kinds[data[:, 0] > 3] = 1
        fitted = estimator.fit(data, kinds)
        points = rng.uniform(-1, 7, size=(500, 3))
        if not isinstance(estimator, GraphClassifier):
            points[rng.random(points.shape) < 0.1] = np.nan
        shares = fitted.predict_proba(points)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        assert (shares >= 0).all()
        np.testing.assert_array_equal(fitted.classes_[shares.argmax(axis=1)], fitted.predict(points))


# ---- graphs ---------------------------------------------------------------------------------------------------------


def test_new_points_get_the_mean_of_their_neighbours():
    data = np.array([[0.0], [1.0], [10.0], [11.0]])
    fitted = GraphClassifier(n_neighbors=2, kernel="rbf", gamma=0.5).fit(data, [0, -1, -1, 1])
    at = 0.25
    edge = np.exp(-0.5 * np.array([at**2, (1 - at) ** 2]))
    expected = edge @ fitted.label_distributions_[:2] / edge.sum()
    np.testing.assert_allclose(fitted.predict_proba([[at]])[0], expected)
    assert fitted._gamma == pytest.approx(0.5)
    flat = fitted.set_params(kernel="knn").fit(data, [0, -1, -1, 1])
    np.testing.assert_allclose(flat.predict_proba([[at]])[0], flat.label_distributions_[:2].mean(axis=0))
    step = fitted.set_params(kernel=lambda d: (d < 5.0).astype(float)).fit(data, [0, -1, -1, 1])
    np.testing.assert_allclose(step.predict_proba([[-3.0]])[0], step.label_distributions_[:2].mean(axis=0))
    assert step.predict([[1e6]]) == [1]  # no edge: all of the nearest count the same


@pytest.mark.parametrize(
    ("unit", "gamma"),
    [(1.0, 1e-20), (1.0, 1e-12), (1.0, 0.5), (1.0, 30.0), (1.0, "scale"), (1.0, "neighbours"), (1e-9, 1.0)],
)
def test_new_points_are_weighted_with_the_gamma_of_the_graph(unit, gamma):
    """However little the weights of its edges tell of it."""
    data = unit * (X[::3, :2] + 0.01 * np.arange(50)[:, None])
    new = unit * (X[:20, :2] + 0.3)
    fitted = GraphClassifier(gamma=gamma, n_neighbors=4).fit(data, np.arange(50) % 3)
    squares = ((new[:, None, :] - data) ** 2).sum(axis=2)
    among = np.sort(((data[:, None, :] - data) ** 2).sum(axis=2), axis=1)[:, 1:5]
    number = {"scale": 0.5 / data.var(), "neighbours": 1 / among.mean()}.get(gamma, gamma)
    near = np.argsort(squares, axis=1)[:, :4]
    nearest = np.take_along_axis(squares, near, 1)
    edge = np.exp(-number * (nearest - nearest[:, :1]))
    expected = np.einsum("ij,ijk->ik", edge, fitted.label_distributions_[near]) / edge.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(new), expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["cloud", "two clouds", "outlier"])
@pytest.mark.parametrize("p", [2, 30])
def test_new_points_find_their_neighbours_far_from_the_origin(p, kind):
    """By distances made from differences, as the graph does, whatever the size of the numbers."""
    rng = np.random.default_rng(0)
    near, offset = rng.normal(size=(400, p)), np.full((400, 1), 1e8)
    if kind == "two clouds":
        offset[::2] *= -1
    elif kind == "outlier":
        offset[1:] = 0
    data = near + offset
    new = data[:200] + 0.5 * (data[200:] - offset[200:])
    labels = np.where(np.arange(400) < 100, near[:, 0] > 0, -1)
    fitted = GraphClassifier(n_neighbors=5, kernel="knn").fit(data, labels)
    squares = ((new[:, None, :] - data) ** 2).sum(axis=2)
    nearest = np.argsort(squares, axis=1, kind="stable")[:, :5]
    np.testing.assert_allclose(fitted.predict_proba(new), fitted.label_distributions_[nearest].mean(axis=1), atol=1e-12)
    distances, found = fitted._nearest.of(new, None)
    np.testing.assert_array_equal(found, nearest)
    np.testing.assert_allclose(distances**2, np.take_along_axis(squares, nearest, 1), rtol=1e-6)
    np.testing.assert_array_equal(fitted._nearest.of(data, None)[1][:, 0], np.arange(400))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("p", "n_values", "k"), [(2, 3, 10), (2, 40, 6), (3, 5, 1), (20, 2, 7), (20, 1, 3)])
def test_of_neighbours_at_one_distance_the_first_are_taken(form, p, n_values, k):
    """Also where more tie than any search was asked for."""
    rng = np.random.default_rng(0)
    data, new = (rng.integers(0, n_values, size=(n, p)).astype(float) for n in (400, 80))
    squares = ((new[:, None, :] - data) ** 2).sum(axis=2)
    nearest = np.argsort(squares, axis=1, kind="stable")[:, :k]
    distances, found = Nearest(form(data), k, 0).of(form(new), 1)
    np.testing.assert_array_equal(found, nearest)
    np.testing.assert_array_equal(distances, np.sqrt(np.take_along_axis(squares, nearest, 1)))


def test_sparse_points_find_their_neighbours_far_from_the_origin():
    """Where inner products cannot tell them apart, all points that may be near are compared."""
    rng = np.random.default_rng(0)
    data, new = (rng.normal(size=(n, 20)) + 1e8 * (np.arange(n) % 2)[:, None] for n in (400, 80))
    squares = ((new[:, None, :] - data) ** 2).sum(axis=2)
    nearest = np.argsort(squares, axis=1, kind="stable")[:, :5]
    distances, found = Nearest(sparse.csr_array(data), 5, 0).of(sparse.csr_array(new), 1)
    np.testing.assert_array_equal(found, nearest)
    np.testing.assert_allclose(distances**2, np.take_along_axis(squares, nearest, 1), rtol=1e-12)


def test_dense_and_sparse_points_may_be_mixed():
    some, new = np.where(np.arange(len(codes)) % 4 == 0, codes, -1), X + 0.03
    expected = GraphClassifier().fit(X, some).predict_proba(new)
    for fitted in (GraphClassifier().fit(X, some), GraphClassifier().fit(sparse.csr_matrix(X), some)):
        for form in (np.asarray, sparse.csr_array, sparse.csr_matrix):
            np.testing.assert_allclose(fitted.predict_proba(form(new)), expected, atol=1e-9)


def test_uneven_labels():
    """Nine labels of one class and one of the other: the shares of the labels hide the rarer class."""
    rng = np.random.default_rng(0)
    kinds = np.arange(400) % 2
    data = rng.normal(size=(400, 2)) + 8.0 * kinds[:, None]
    some = np.full(400, -1)
    some[[0, 2, 4, 6, 8, 10, 12, 14, 16, 1]] = [0] * 9 + [1]
    chosen = {"alpha": 100.0, "n_neighbors": 100, "kernel": "knn", "normalised": True}
    data[0], data[1] = [3.0, 3.0], [5.0, 5.0]  # a bridge
    found = {d: GraphClassifier(decide=d, **chosen).fit(data, some) for d in ("largest", "excess")}
    accuracy = {d: np.mean(fitted.transduction_ == kinds) for d, fitted in found.items()}
    assert accuracy["excess"] > 0.95 > 0.6 > accuracy["largest"]
    excess = found["excess"]
    np.testing.assert_array_equal(excess.transduction_, excess.model_.labels)
    shares = excess.predict_proba(data)
    np.testing.assert_array_equal(excess.predict(data), (shares - [0.9, 0.1]).argmax(axis=1))


def test_the_excess_of_points_that_no_label_reaches():
    """There is none: they get the class of most labels."""
    data = np.array([[0.0], [1.0], [2.0], [100.0], [101.0]])
    fitted = GraphClassifier(n_neighbors=1, decide="excess").fit(data, [0, 1, 1, -1, -1])
    assert fitted.transduction_[3:].tolist() == [1, 1]


def test_weights_that_are_too_far_apart_are_the_kernel_s():
    for chosen, name in (({"gamma": 300.0}, "gamma"), ({"kernel": lambda d: 1e-150**d}, "kernel")):
        with pytest.raises(ValueError, match=f"^{name} makes a graph that holds weights of .* further apart"):
            GraphClassifier(**chosen).fit(X, codes)


def test_far_points_are_not_lost_to_underflow():
    fitted = GraphClassifier(n_neighbors=3).fit(X, codes)
    assert np.isfinite(fitted.predict_proba(X + 1e6)).all()


@pytest.mark.parametrize("exponent", [515, 1010, -480, -565, -1000])
@pytest.mark.parametrize("kernel", ["rbf", "knn", lambda d: 1.0 / (1.0 + (d > 0))], ids=["rbf", "knn", "own"])
def test_a_graph_does_not_depend_on_the_unit(exponent, kernel):
    """Not even where squares of distances overflow, or vanish."""
    some = np.where(np.arange(len(codes)) % 4 == 0, codes, -1)
    new, unit = X + 0.03, 2.0**exponent
    expected = GraphClassifier(kernel=kernel).fit(X, some)
    for form in (np.asarray, sparse.csr_array):
        fitted = GraphClassifier(kernel=kernel).fit(form(X * unit), some)
        found = fitted.predict_proba(form(new * unit))
        np.testing.assert_allclose(found, expected.predict_proba(new), rtol=1e-6, atol=1e-9)


def test_points_that_are_too_far_away_are_refused():
    fitted = GraphClassifier().fit(X, codes)
    tiny = GraphClassifier().fit(X * 1e-300, codes)
    for estimator, points in ((fitted, X + 1e200), (tiny, X), (tiny, X * 1e150)):
        with pytest.raises(ValueError, match="X is too far from the training points"):
            estimator.predict_proba(points)


def test_a_sparse_matrix_that_leads_out_of_itself_is_refused():
    fitted = GraphClassifier().fit(sparse.csr_array(X), codes)
    broken = sparse.csr_array(X)
    broken.indices[3] = 10**6
    with pytest.raises(ValueError, match="X "):
        fitted.predict(broken)


def test_weights_of_labels():
    """Twice the weight is twice the label; of weight 0 a point is there without one."""
    labels, weight = np.where(np.arange(len(codes)) % 3 == 0, codes, -1), 1.0 + np.arange(len(codes)) % 2
    fitted = GraphClassifier(alpha=0.3).fit(X, labels, weight)
    known = np.flatnonzero(labels >= 0)
    direct = graph.fit(
        fitted.graph_, labels[known], 0.3 / weight[known].sum(), known, normalised=True, classify=True,
        sample_weight=weight[known],
    )  # fmt: skip
    np.testing.assert_array_equal(fitted.model_.values, direct.values)
    without = np.where(np.arange(len(codes)) % 6 == 0, -1, labels)
    unheard = GraphClassifier().fit(X, labels, np.where(np.arange(len(codes)) % 6 == 0, 0.0, 1.0))
    np.testing.assert_allclose(
        unheard.label_distributions_, GraphClassifier().fit(X, without).label_distributions_, atol=1e-9
    )
    with pytest.raises(ValueError, match="zero for every point that has a label"):
        GraphClassifier().fit(X, labels, labels < 0)


def test_labels_of_strings_may_be_mixed_with_the_mark():
    some = np.where(np.arange(len(y)) % 5 == 0, y.astype(object), -1)
    for labels in (some, some.astype(str), np.where(some == -1, "none", some)):
        mark = "none" if "none" in labels else -1
        fitted = GraphClassifier(unlabelled=mark).fit(X, labels)
        assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        assert np.mean(fitted.transduction_ == y) > 0.85


def test_points_that_no_label_reaches():
    data = np.array([[0.0], [1.0], [2.0], [100.0], [101.0]])
    fitted = GraphClassifier(n_neighbors=1).fit(data, [0, 1, 1, -1, -1])
    assert fitted.unreached_.tolist() == [3, 4]
    np.testing.assert_allclose(fitted.label_distributions_[3:], [[1 / 3, 2 / 3]] * 2)
    with pytest.raises(graph.Unreached, match="2 point"):
        GraphClassifier(n_neighbors=1, unreached="error").fit(data, [0, 1, 1, -1, -1])


def test_one_class_and_the_mark_is_refused():
    with pytest.raises(ValueError, match=r"one class, 1, and -1, .* unlabelled=None"):
        GraphClassifier().fit(X, np.where(codes == 0, -1, 1))
    with pytest.raises(ValueError, match="no label"):
        GraphClassifier().fit(X, np.full(len(X), -1))
    assert GraphClassifier(unlabelled=None).fit(X, np.where(codes == 0, -1, 1)).classes_.tolist() == [-1, 1]


# ---- folds ----------------------------------------------------------------------------------------------------------


def test_folds_may_be_those_of_scikit_learn():
    numbers = np.arange(len(y)) % 4
    expected = prune.cross_validate(X, y, folds=numbers, rng=0).error
    for cv in (GroupKFold(4).split(X, y, groups=numbers), [(numbers != k, numbers == k) for k in range(4)]):
        fitted = PrunedTreeClassifier(cv=list(cv), random_state=0).fit(X, y)
        np.testing.assert_array_equal(fitted.model_.error, expected)
    fitted = PrunedTreeClassifier(cv=KFold(3, shuffle=True, random_state=0), random_state=0).fit(X, y)
    assert len(fitted.model_.fold_error) == 3


@pytest.mark.parametrize(
    "cv",
    [
        ShuffleSplit(3, random_state=0),
        [(np.arange(75), np.arange(75, 150))],
        [(np.arange(50), np.arange(100, 150)), (np.arange(100, 150), np.arange(100))],
    ],
    ids=["overlap", "never", "gap"],
)
def test_folds_that_are_no_partition_are_refused(cv):
    with pytest.raises(ValueError, match=r"^cv must hold every row out once"):
        PrunedTreeClassifier(cv=cv).fit(X, y)


@pytest.mark.parametrize("wrong", [range(50, 200), range(-5, 50), [0.5, 1.5], np.ones(400, dtype=bool)])
def test_folds_of_rows_that_are_not_there_are_refused(wrong):
    for cv in ([(range(50), wrong)], [(wrong, range(50))]):
        with pytest.raises(ValueError, match=r"^cv must give rows 0 to 149 of X"):
            PrunedTreeClassifier(cv=cv).fit(X, y)


@pytest.mark.parametrize(
    "estimator", [getattr(estimators, name)() for name in estimators.__all__], ids=lambda e: type(e).__name__
)
def test_attributes_are_those_that_are_documented(estimator):
    """All of them, and no others that end with an underscore."""
    told = inspect.cleandoc(type(estimator).__doc__)  # Python 3.13 has taken the margin away already
    said = told.partition("Attributes\n----------\n")[2].partition("\n\n")[0]
    names = {name for line in re.findall(r"^(\w.*?) : ", said, flags=re.M) for name in line.split(", ")}
    assert names
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    fitted = estimator.fit(X, np.arange(40) % 2)
    there = {name for name in dir(fitted) if re.fullmatch(r"[a-zA-Z]\w*[a-z]_", name) and hasattr(fitted, name)}
    assert {name for name in names if not hasattr(fitted, name)} <= {"coef_"}  # of the linear kernel
    assert there <= names
