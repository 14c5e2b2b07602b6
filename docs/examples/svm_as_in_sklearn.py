"""scikit-learn's SVMs and their counterparts in kernelrules: the same numbers up to rounding.

The last section shows the intended differences.
"""

from itertools import combinations

import numpy as np
from sklearn import datasets
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from kernelrules import kernels, svm

X, y = datasets.load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = np.array(["setosa", "versicolor", "virginica"])[y]
two = y != "setosa"
target = X[:, 3] + 0.1 * X[:, 0] ** 2
weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
TIGHT = {"tol": 1e-8}  # both tolerances have the same meaning


def near(ours, theirs):
    """Assert that both are equal up to the tolerance and scikit-learn's float32 rows."""
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


# ---- two classes: same sign, same coefficients, same intercept ------------------------------------------------------
theirs = SVC(C=2.0, **TIGHT).fit(X[two], y[two])
ours = svm.svc(X[two], y[two], C=2.0, **TIGHT)
near(svm.decision(ours, X), theirs.decision_function(X))
near(ours.dual_coef, theirs.dual_coef_)
near(ours.intercept, theirs.intercept_)
assert np.array_equal(ours.support, theirs.support_)

# ---- three classes: pairs in the same order; one row of coefficients per machine, packed in scikit-learn --------
theirs = SVC(C=2.0, decision_function_shape="ovo", **TIGHT).fit(X, y)
ours = svm.svc(X, y, C=2.0, **TIGHT)
near(svm.decision(ours, X), theirs.decision_function(X))
near(ours.intercept, theirs.intercept_)
code = np.searchsorted(ours.classes, y[ours.support])  # the class of each support vector
assert np.array_equal(np.bincount(code), theirs.n_support_)
packed = np.empty_like(theirs.dual_coef_)
for row, (i, j) in enumerate(combinations(range(3), 2)):
    packed[j - 1, code == i] = ours.dual_coef[row, code == i]
    packed[i, code == j] = ours.dual_coef[row, code == j]
near(packed, theirs.dual_coef_)

# ---- coef_, weights, kernels and their defaults ----------------------------------------------------------------------
theirs = SVC(kernel="linear", **TIGHT).fit(X, y)
ours = svm.svc(X, y, kernel=kernels.Linear(), **TIGHT)
near(ours.dual_coef @ ours.support_vectors, theirs.coef_)
for name, kernel in (("poly", kernels.Polynomial(3, "scale", 0.0)), ("sigmoid", kernels.Sigmoid("scale", 0.0))):
    theirs = SVC(kernel=name, class_weight="balanced", **TIGHT).fit(X[two], y[two], sample_weight=weight[two])
    ours = svm.svc(X[two], y[two], kernel=kernel, class_weight="balanced", sample_weight=weight[two], **TIGHT)
    near(svm.decision(ours, X[two]), theirs.decision_function(X[two]))

# ---- the other four formulations -------------------------------------------------------------------------------------
theirs = NuSVC(nu=0.3, **TIGHT).fit(X[two], y[two], sample_weight=weight[two])
near(svm.decision(svm.svc(X[two], y[two], nu=0.3, sample_weight=weight[two], **TIGHT), X), theirs.decision_function(X))
theirs = SVR(C=3.0, epsilon=0.2, **TIGHT).fit(X, target, sample_weight=weight)
near(svm.predict(svm.svr(X, target, C=3.0, epsilon=0.2, sample_weight=weight, **TIGHT), X), theirs.predict(X))
theirs = NuSVR(C=3.0, nu=0.4, **TIGHT).fit(X, target, sample_weight=weight)
near(svm.predict(svm.svr(X, target, C=3.0, nu=0.4, sample_weight=weight, **TIGHT), X), theirs.predict(X))
theirs = OneClassSVM(nu=0.2, **TIGHT).fit(X, sample_weight=weight)
ours = svm.one_class(X, nu=0.2, sample_weight=weight, **TIGHT)
near(svm.decision(ours, X), theirs.decision_function(X))
near(-ours.intercept, theirs.offset_)

# ---- differences -----------------------------------------------------------------------------------------------------
# On the boundary: the first class in kernelrules, the second in scikit-learn.
line, sides = [[-1.0], [1.0]], ["a", "b"]
assert svm.predict(svm.svc(line, sides, kernel=kernels.Linear()), [[0.0]])[0] == "a"
assert SVC(kernel="linear").fit(line, sides).predict([[0.0]])[0] == "b"

# Ties of votes: summed confidence in kernelrules, the first class in scikit-learn unless break_ties is set.
points = np.random.default_rng(1).normal(size=(60, 2))
kind = np.arange(60) % 3
new = np.random.default_rng(2).uniform(-3.0, 3.0, size=(5000, 2))
theirs = SVC(C=10.0, gamma=1.0, **TIGHT).fit(points, kind)
ours = svm.svc(points, kind, C=10.0, kernel=kernels.RBF(1.0), **TIGHT)
first = svm.decision(ours, new) > 0
tied = (first[:, 0] == first[:, 2]) & (first[:, 0] != first[:, 1])
assert (svm.predict(ours, new) == theirs.predict(new))[~tied].mean() > 0.999
assert (theirs.predict(new[tied]) == 0).all()
assert len(np.unique(svm.predict(ours, new[tied]))) == 3

# class_weight with nu: used in kernelrules, ignored in scikit-learn.
plain, told = (NuSVC(nu=0.3, class_weight=w).fit(X[two], y[two]) for w in (None, {"versicolor": 3.0}))
assert np.array_equal(plain.decision_function(X), told.decision_function(X))
plain, told = (svm.svc(X[two], y[two], nu=0.3, class_weight=w) for w in (None, {"versicolor": 3.0}))
assert np.abs(svm.decision(plain, X) - svm.decision(told, X)).max() > 0.1

print("kernelrules and scikit-learn agree")
