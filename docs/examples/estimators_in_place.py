"""Replace scikit-learn's estimators by those of kernelrules: only the import changes."""

import numpy as np
from sklearn import datasets, kernel_ridge, semi_supervised, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelrules import estimators, rules

X, y = datasets.load_iris(return_X_y=True)
width = X[:, 3]


def same(ours, theirs):
    """Assert that both are equal up to the tolerance and scikit-learn's float32 rows."""
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


# ---- replacing one estimator -----------------------------------------------------------------------------------------
tight = {"C": 2.0, "tol": 1e-8}
ours, theirs = (e.fit(X, y) for e in (estimators.KernelSVC(**tight), svm.SVC(**tight)))
assert np.array_equal(ours.predict(X), theirs.predict(X))
same(ours.intercept_, theirs.intercept_)
ours, theirs = (e.fit(X[:, :3], width) for e in (estimators.KernelSVR(**tight), svm.SVR(**tight)))
same(ours.predict(X[:, :3]), theirs.predict(X[:, :3]))
ours, theirs = (e.fit(X) for e in (estimators.OneClassKernel(nu=0.1, tol=1e-8), svm.OneClassSVM(nu=0.1, tol=1e-8)))
same(ours.score_samples(X), theirs.score_samples(X))
ridge = {"alpha": 0.5, "kernel": "rbf"}
ours, theirs = (e(**ridge).fit(X[:, :3], width) for e in (estimators.KernelRidge, kernel_ridge.KernelRidge))
same(ours.predict(X[:, :3]), theirs.predict(X[:, :3]))
limits = {"max_depth": 2, "min_samples_leaf": 0.1, "random_state": 0}
ours, theirs = (e(**limits).fit(X, y) for e in (estimators.TreeClassifier, tree.DecisionTreeClassifier))
same(ours.predict_proba(X), theirs.predict_proba(X))

# ---- semi-supervised ------------------------------------------------------------------------------------------------
some = np.where(np.arange(150) % 5 == 0, y, -1)
ours, theirs = (e.fit(X, some) for e in (estimators.GraphClassifier(), semi_supervised.LabelSpreading(kernel="knn")))
for fitted in (ours, theirs):
    assert np.mean(fitted.transduction_ == y) >= 0.9

# ---- pipeline, search and calibration -------------------------------------------------------------------------------
for machine in (estimators.KernelSVC(), svm.SVC()):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), machine), {f"{type(machine).__name__.lower()}__C": [0.1, 1.0]}
    )
    assert search.fit(X, y).best_score_ > 0.95
    shares = CalibratedClassifierCV(machine, cv=3).fit(X, y).predict_proba(X)
    assert (shares.argmax(axis=1) == y).mean() > 0.95

# ---- without counterpart in scikit-learn -----------------------------------------------------------------------------
pruned = estimators.PrunedTreeClassifier(random_state=0).fit(X, y)
print(rules.extract(pruned.tree_, feature_names=["sl", "sw", "pl", "pw"]))
print(estimators.RuleListClassifier(random_state=0).fit(X, y).rules_)
assert cross_val_score(pruned, X, y).mean() > 0.9
print("estimators agree")
