"""Estimators among scikit-learn's tools: pipelines, searches, calibration, data frames, pickles, other processes; and
what they say to wrong parameters."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

import sklearn
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from kernelrules import estimators, kernels, rules
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

X, y = load_iris(return_X_y=True)
ALL = [getattr(estimators, name) for name in estimators.__all__]
TABLES = [TreeClassifier, TreeRegressor, PrunedTreeClassifier, RuleListClassifier]
by_name = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)


def made(cls, **parameters):
    """With a fixed seed, where there is one."""
    return cls(**({"random_state": 0} if "random_state" in cls().get_params() else {}), **parameters)


# ---- scikit-learn's tools -------------------------------------------------------------------------------------------


@by_name
def test_clones_pickles_and_pages(cls):
    fitted = made(cls).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)
    assert cls.__name__ in fitted._repr_html_()
    assert repr(cls()) == f"{cls.__name__}()"


@by_name
def test_data_are_not_held_on_to(cls):
    data = X.copy()
    fitted = made(cls).fit(data, y)
    expected = fitted.predict(X)
    data[:] = 0.0
    np.testing.assert_array_equal(fitted.predict(X), expected)


def test_kinds():
    for cls in ALL:
        kind = is_classifier if cls.__name__.endswith(("Classifier", "SVC")) else is_regressor
        assert (is_outlier_detector if cls is OneClassKernel else kind)(cls())
    assert all(get_tags(cls()).input_tags.sparse for cls in ALL)
    assert [cls for cls in ALL if get_tags(cls()).input_tags.allow_nan] == [cls for cls in ALL if cls in TABLES]
    assert not get_tags(TreeClassifier(missing="error")).input_tags.allow_nan
    assert {cls for cls in ALL if get_tags(cls()).target_tags.multi_output} == {KernelRidge, TreeRegressor}
    for kernel in ("precomputed", kernels.Precomputed()):
        assert get_tags(KernelRidge(kernel=kernel)).input_tags.pairwise
    assert not any(get_tags(cls()).input_tags.pairwise for cls in ALL)


def test_search_through_a_pipeline():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelSVC()), {"kernelsvc__C": [0.01, 1.0], "kernelsvc__gamma": [0.1, "scale"]}
    ).fit(X, y)
    assert search.best_params_["kernelsvc__C"] == 1.0
    assert search.best_score_ > 0.94
    grids = [
        (made(TreeClassifier), {"ccp_alpha": [0.0, 0.02], "max_depth": [None, 2]}),
        (made(RuleListClassifier, tries=1), {"prune": [True, False]}),
        (KernelRidge(), {"kernel": ["linear", kernels.RBF(0.1)], "alpha": [0.1]}),
        (GraphClassifier(), {"n_neighbors": [3, 7]}),
    ]
    for estimator, grid in grids:
        folds = KFold(3, shuffle=True, random_state=0)
        assert GridSearchCV(estimator, grid, cv=folds).fit(X, y).best_score_ > 0.85


def test_search_over_a_precomputed_kernel():
    """Folds take rows and columns of the matrix, because the tag says so."""
    K = rbf_kernel(X, gamma=0.2)
    given = GridSearchCV(KernelSVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3).fit(K, y)
    made_here = GridSearchCV(KernelSVC(gamma=0.2), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(given.cv_results_["mean_test_score"], made_here.cv_results_["mean_test_score"])


def test_calibration():
    hard = np.where(np.arange(len(y)) % 7 == 0, (y + 1) % 3, y)
    for estimator in (KernelSVC(), made(TreeClassifier, max_depth=3), made(PrunedTreeClassifier, cv=3)):
        calibrated = CalibratedClassifierCV(estimator, cv=3).fit(X, hard)
        shares = calibrated.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        np.testing.assert_array_equal(shares.argmax(axis=1), calibrated.predict(X))
        assert calibrated.score(X, hard) > 0.75


MANY = [
    BaggingClassifier(TreeClassifier(), 3, random_state=0),
    AdaBoostClassifier(TreeClassifier(max_depth=1), n_estimators=5, random_state=0),
    StackingClassifier([("machine", KernelSVC()), ("graph", GraphClassifier())], made(PrunedTreeClassifier), cv=3),
    VotingClassifier([("tree", TreeClassifier()), ("rules", made(RuleListClassifier))], voting="soft"),
    OneVsRestClassifier(KernelSVC()),
    make_pipeline(SelectFromModel(made(PrunedTreeClassifier)), KernelSVC()),
    make_pipeline(RFE(KernelSVC(kernel="linear"), n_features_to_select=2), KernelSVC()),
]


@pytest.mark.parametrize("estimator", MANY, ids=lambda e: type(e[0] if hasattr(e, "steps") else e).__name__)
def test_estimators_made_of_estimators(estimator):
    assert estimator.fit(X, y).score(X, y) > 0.9


def test_boosted_rules_warn_of_weights_that_are_shares():
    """Boosting gives weights of sum 1, which rules would take for a single row."""
    with pytest.warns(rules.WeightWarning, match="sum to 1 only"):
        AdaBoostClassifier(made(RuleListClassifier), n_estimators=1, random_state=0).fit(X, y)


@by_name
def test_weights_are_routed(cls):
    weight = np.where(y == 2, 0.0, 1.0) if cls in TABLES else np.where(y == 2, 1e-9, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = made(cls).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, asks).fit(X, y, sample_weight=weight)
    direct = made(cls).fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_array_equal(piped.predict(X), direct.predict(StandardScaler().fit_transform(X)))
    assert (piped.predict(X) != made(cls).fit(X, y).predict(X)).any()


def test_forked_workers_fit_with_one_thread_each():
    """joblib's processes, forked from one that has used its threads, and such that are not."""
    code = """
import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from kernelrules import kernels, parallel
from kernelrules.estimators import KernelSVC, TreeClassifier
X, y = load_iris(return_X_y=True)
kernels.gram(np.ones((600, 3)), n_threads=4)
for estimator, grid in ((KernelSVC(), {"C": [0.1, 1.0]}), (TreeClassifier(), {"max_depth": [1, 2]})):
    alone = GridSearchCV(estimator, grid, cv=3).fit(X, y)
    with parallel_config(backend="multiprocessing", n_jobs=2):
        forked = GridSearchCV(estimator, grid, cv=3).fit(X, y)
    with parallel_config(backend="threading", n_jobs=2):
        threaded = GridSearchCV(estimator, grid, cv=3).fit(X, y)
    for other in (forked, threaded):
        assert other.best_params_ == alone.best_params_
        assert (other.cv_results_["mean_test_score"] == alone.cv_results_["mean_test_score"]).all()
with parallel_config(backend="multiprocessing", n_jobs=2):
    print(*Parallel()(delayed(parallel.n_threads_or_default)() for _ in range(2)))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["1", "1"]


def test_imports():
    """scikit-learn is loaded for estimators only; without it, or with an old one, the error says what to install."""
    code = """
import sys, types
import kernelrules
print("sklearn" in sys.modules, hasattr(kernelrules, "estimators"))
for absent in (None, types.ModuleType("sklearn")):
    sys.modules["sklearn"] = absent
    try:
        import kernelrules.estimators
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[0] == "False False"
    assert len(said) == 3
    assert said[1] == said[2]
    assert "pip install 'kernelrules[sklearn]'" in said[1]


# ---- data frames ----------------------------------------------------------------------------------------------------


def table(n=120):
    """Columns of numbers, missing ones among them, and categories that decide; their classes."""
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=n), rng.choice(["blue", "green", "red"], size=n)
    kinds = np.where((colour == "red") | (size > 1.0), "yes", "no")
    size[rng.random(n) < 0.1] = np.nan
    return {"size": size, "colour": colour, "noise": rng.integers(0, 9, size=n)}, kinds


def pandas_frame():
    pandas = pytest.importorskip("pandas")
    columns, kinds = table()
    frame = pandas.DataFrame(columns).astype({"colour": "category", "noise": "Int64"})
    frame.loc[3, "noise"] = pandas.NA
    return frame, kinds


def polars_frame():
    polars = pytest.importorskip("polars")
    if not hasattr(StandardScaler().fit(polars.DataFrame({"a": [1.0, 2.0]})), "feature_names_in_"):
        pytest.skip("this scikit-learn does not see the names of this polars")
    columns, kinds = table()
    return polars.DataFrame(columns).with_columns(polars.col("colour").cast(polars.Categorical)), kinds


@pytest.mark.parametrize("frame_of", [pandas_frame, polars_frame])
@pytest.mark.parametrize("cls", TABLES, ids=lambda cls: cls.__name__)
def test_frames_with_categories_and_missing_values(cls, frame_of):
    frame, kinds = frame_of()
    answers = (kinds == "yes").astype(float) if cls is TreeRegressor else kinds
    fitted = made(cls).fit(frame, answers)
    assert fitted.feature_names_in_.tolist() == ["size", "colour", "noise"]
    assert fitted.n_features_in_ == 3
    result = fitted.rules_ if cls is RuleListClassifier else fitted.tree_
    assert result.feature_names == ("size", "colour", "noise")
    assert fitted.score(frame, answers) > 0.8
    assert cross_val_score(made(cls), frame, answers, cv=3).mean() > 0.5
    other = frame[["noise", "colour", "size"]]
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(other)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        objects = fitted.predict(frame.to_numpy())
    np.testing.assert_array_equal(objects, fitted.predict(frame))


@pytest.mark.parametrize("cls", TABLES, ids=lambda cls: cls.__name__)
def test_objects_and_lists_with_categories(cls):
    columns, kinds = table()
    answers = (kinds == "yes").astype(float) if cls is TreeRegressor else kinds
    objects = np.array([columns["size"], columns["colour"]], dtype=object).T
    expected = made(cls).fit(objects, answers).predict(objects)
    np.testing.assert_array_equal(made(cls).fit(objects.tolist(), answers).predict(objects.tolist()), expected)
    coded = np.column_stack([columns["size"], np.unique(columns["colour"], return_inverse=True)[1]])
    named = made(cls, categorical_features=[1]).fit(coded, answers)
    np.testing.assert_array_equal(named.predict(coded), expected)
    with pytest.raises(TypeError, match="does not hold numbers"):
        made(cls, categorical_features=None).fit(objects, answers)
    with pytest.raises(ValueError, match="contains NaN"):
        made(cls, missing="error").fit(objects, answers)


def test_frames_from_transformers():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    for estimator in (made(TreeClassifier, max_depth=2), KernelSVC(), made(RuleListClassifier)):
        piped = make_pipeline(StandardScaler(), estimator).set_output(transform="pandas").fit(frame, y)
        assert piped[-1].feature_names_in_.tolist() == list("abcd")
        assert piped.score(frame, y) > 0.9
    assert "petal" not in str(piped[-1].rules_)
    assert "d ≤" in str(piped[-1].rules_)


def test_constraints_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:, :2], columns=["long", "wide"])
    named = TreeRegressor(monotonic_cst={"wide": -1}, max_depth=3).fit(frame, X[:, 2])
    listed = TreeRegressor(monotonic_cst=[0, -1], max_depth=3).fit(frame, X[:, 2])
    np.testing.assert_array_equal(named.predict(frame), listed.predict(frame))
    with pytest.raises(ValueError, match="monotonic_cst names the column 'deep'"):
        TreeRegressor(monotonic_cst={"deep": 1}).fit(frame, X[:, 2])


@by_name
def test_sparse_data_give_the_answers_of_dense_ones(cls):
    data = np.where(X > 1.5, X, 0.0)
    dense = made(cls).fit(data, y)
    for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        fitted = made(cls).fit(form(data), y)
        if dense.predict(data).dtype.kind == "f":
            np.testing.assert_allclose(fitted.predict(form(data)), dense.predict(data), atol=1e-8)
        else:
            np.testing.assert_array_equal(fitted.predict(form(data)), dense.predict(data))


# ---- wrong parameters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "error", "says"),
    [
        (KernelSVC(C=-1.0), ValueError, "^C must"),
        (KernelSVC(kernel="gauss"), ValueError, "^kernel must be one of"),
        (KernelSVC(kernel=kernels.RBF), TypeError, "kernel"),
        (KernelSVC(gamma="wide"), ValueError, "^gamma must"),
        (KernelSVC(cache_size=-1), ValueError, "^cache_size must"),
        (KernelSVC(max_iter=0), ValueError, "^max_iter must"),
        (KernelSVC(decision_function_shape="both"), ValueError, "^decision_function_shape must"),
        (KernelSVC(class_weight={"nobody": 2.0}), ValueError, "class_weight names 'nobody'"),
        (KernelSVR(epsilon=-0.1), ValueError, "^epsilon must"),
        (OneClassKernel(nu=2.0), ValueError, "^nu must"),
        (KernelRidge(alpha=0.0), ValueError, "^alpha must be greater than 0"),
        (KernelRidge(alpha=1e300), ValueError, "^alpha over the sum of weights must"),
        (KernelRidge(alpha=[1.0, 2.0]), TypeError, "^alpha must be a number"),
        (KernelRidge(fit_intercept=1), TypeError, "^fit_intercept must be True or False"),
        (GraphClassifier(n_neighbors=0), ValueError, "^n_neighbors must"),
        (GraphClassifier(alpha=-1.0), ValueError, "^alpha must"),
        (GraphClassifier(kernel="binary"), ValueError, "^kernel must"),
        (GraphClassifier(unreached="nan"), ValueError, "^unreached must"),
        (GraphClassifier(decide="smallest"), ValueError, "^decide must"),
        (GraphClassifier(gamma=1000.0), ValueError, "^gamma makes a graph that holds weights of"),
        (TreeClassifier(criterion="squared_error"), ValueError, "use TreeRegressor"),
        (PrunedTreeClassifier(criterion="poisson"), ValueError, "use TreeRegressor"),
        (TreeRegressor(criterion="gini"), ValueError, "^criterion must"),
        (TreeClassifier(min_samples_leaf=0), ValueError, "^min_samples_leaf must"),
        (TreeClassifier(min_samples_leaf=1.5), ValueError, "^min_samples_leaf must"),
        (TreeClassifier(min_samples_split=1), ValueError, "^min_samples_split must"),
        (TreeClassifier(max_leaf_nodes=0), ValueError, "^max_leaf_nodes must"),
        (TreeClassifier(min_impurity_decrease=-1.0), ValueError, "^min_impurity_decrease must"),
        (TreeClassifier(ccp_alpha=-1.0), ValueError, "^ccp_alpha must"),
        (TreeClassifier(monotonic_cst=[2, 0, 0, 0]), ValueError, "^monotonic_cst must"),
        (TreeClassifier(categorical_features=[9]), ValueError, "^categorical_features names column 9"),
        (TreeClassifier(random_state="now"), ValueError, "now"),
        (TreeRegressor(leaf="linear", ccp_alpha=0.1), ValueError, "linear models"),
        (PrunedTreeClassifier(cv=1), ValueError, "^cv must"),
        (PrunedTreeClassifier(cv=1000), ValueError, "^cv = 1000 but X has only 150 rows"),
        (PrunedTreeClassifier(rule="best"), ValueError, "^rule must"),
        (RuleListClassifier(min_margin=-1.0), ValueError, "^min_margin must"),
        (RuleListClassifier(missing="zero"), ValueError, "^missing must"),
        (RuleListClassifier(class_weight="even"), ValueError, "^class_weight must"),
    ],
    ids=lambda value: repr(value).replace("\n", " ")[:60] if hasattr(value, "fit") else "",
)
def test_errors_name_the_parameter(estimator, error, says):
    with pytest.raises(error, match=says):
        estimator.fit(X, y)


@by_name
def test_bad_data(cls):
    estimator = made(cls)
    for wrong, error in (
        (X[:, 0], "2D array"),
        (X[:0], "0 sample"),
        (X[:, :0], "0 feature"),
        (np.where(X > 6, np.inf, X), r"infinity|X holds inf at row \d+, column 0"),
        (X[:-1], "inconsistent|entries"),
    ):
        if cls is OneClassKernel and len(wrong) == len(X) - 1:
            continue
        with pytest.raises(ValueError, match=error):
            estimator.fit(wrong, y[: len(wrong)] if len(wrong) == 0 else y)
    fitted = estimator.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        fitted.predict(X[:, :3])
    for weight, error in (
        (np.ones(3), "sample_weight"),
        (-np.ones(len(X)), "negative"),
        (np.zeros(len(X)), "zero"),
    ):
        with pytest.raises(ValueError, match=error):
            estimator.fit(X, y, sample_weight=weight)


def test_parameters_count_from_the_next_fit_on():
    """But for those of the answers alone."""
    kinds = KernelSVC(multiclass="ovr").fit(X, y)
    expected = kinds.decision_function(X)
    np.testing.assert_array_equal(kinds.set_params(multiclass="ovo", C=7.0).decision_function(X), expected)
    spread = GraphClassifier(kernel="knn").fit(X, y)
    expected = spread.predict_proba(X)
    np.testing.assert_array_equal(spread.set_params(kernel="rbf", n_neighbors=1).predict_proba(X), expected)


def test_scores_use_weights():
    weight = (y == 0).astype(float)
    fitted = TreeClassifier(max_depth=1).fit(X, y)
    assert fitted.score(X, y, sample_weight=weight) == 1.0
    assert fitted.score(X, y) < 0.7
    results = cross_validate(KernelSVC(), X, y, cv=3, return_estimator=True)
    assert all(fold.certificate_.converged for fold in results["estimator"])


def test_random_states():
    draws = {"max_features": 1, "max_depth": 2}
    for state in (7, np.random.RandomState(7), np.random.default_rng(7), None):
        one, other = (TreeClassifier(random_state=state, **draws) for _ in range(2))
        assert one.fit(X, y).tree_.n_leaves >= 2
        if state == 7:
            np.testing.assert_array_equal(one.tree_.threshold, other.fit(X, y).tree_.threshold)
    first = TreeClassifier(random_state=np.random.RandomState(7), **draws).fit(X, y).tree_
    again = TreeClassifier(random_state=np.random.RandomState(7), **draws).fit(X, y).tree_
    np.testing.assert_array_equal(first.threshold, again.threshold)
