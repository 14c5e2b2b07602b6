"""scikit-learn's trees and their counterparts in kernelrules: the same trees if no gains tie.

The last section shows the intended differences.
"""

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from kernelrules import tree

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 6)).astype(np.float32) * 1000  # spread out: scikit-learn treats values within 1e-7 as equal
kind = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1] + 500 * rng.normal(size=2000), [-600, 600])]
target = X[:, 0] + X[:, 2] ** 2 / 1000 + 300 * rng.normal(size=2000)
weight = rng.integers(1, 4, size=2000).astype(float)


def same(ours, theirs):
    """Assert equal splits, impurities, values and leaves, node by node; both number nodes depth-first."""
    nodes = theirs.tree_
    inner = ours.left >= 0
    assert np.array_equal(ours.left, nodes.children_left)
    assert np.array_equal(ours.right, nodes.children_right)
    assert np.array_equal(ours.feature[inner], nodes.feature[inner])
    np.testing.assert_allclose(ours.threshold[inner], nodes.threshold[inner], rtol=1e-12)
    np.testing.assert_allclose(ours.impurity, nodes.impurity, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.value.reshape(nodes.value.shape), nodes.value, rtol=1e-8, atol=1e-10)
    assert np.array_equal(ours.n_samples, nodes.n_node_samples)
    np.testing.assert_allclose(ours.weight, nodes.weighted_n_node_samples)
    assert np.array_equal(tree.apply(ours, X), theirs.apply(X))
    np.testing.assert_allclose(tree.importance(ours), theirs.feature_importances_, atol=1e-10)


# ---- classification -------------------------------------------------------------------------------------------------
for criterion in ("gini", "entropy"):
    theirs = DecisionTreeClassifier(criterion=criterion, max_depth=4, min_samples_leaf=20, random_state=0).fit(X, kind)
    ours = tree.grow(X, kind, criterion=criterion, max_depth=4, min_leaf=20)
    same(ours, theirs)
    assert np.array_equal(tree.predict(ours, X), theirs.predict(X))
    np.testing.assert_allclose(tree.predict_proba(ours, X), theirs.predict_proba(X), atol=1e-12)

# ---- limits and weights ---------------------------------------------------------------------------------------------
theirs = DecisionTreeClassifier(
    min_samples_split=50, min_samples_leaf=10, min_impurity_decrease=1e-3, class_weight="balanced", random_state=0
)
same(tree.grow(X, kind, min_split=50, min_leaf=10, min_gain=1e-3, class_weight="balanced"), theirs.fit(X, kind))
theirs = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, kind, sample_weight=weight)
same(tree.grow(X, kind, max_depth=4, sample_weight=weight), theirs)

# ---- regression -----------------------------------------------------------------------------------------------------
for criterion, y in (("squared_error", target), ("absolute_error", target), ("poisson", target - target.min() + 1)):
    theirs = DecisionTreeRegressor(criterion=criterion, max_depth=3, min_samples_leaf=10, random_state=0).fit(X, y)
    same(tree.grow(X, y, criterion=criterion, max_depth=3, min_leaf=10), theirs)

# ---- best-first growth: the same leaves; scikit-learn numbers nodes in the order of growth ---------------------------
theirs = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, kind)
ours = tree.grow(X, kind, max_leaves=12)
pairs = set(zip(tree.apply(ours, X).tolist(), theirs.apply(X).tolist(), strict=True))
assert len(pairs) == ours.n_leaves == theirs.get_n_leaves() == 12
np.testing.assert_allclose(tree.predict_proba(ours, X), theirs.predict_proba(X), atol=1e-12)

# ---- decision paths and missing values ------------------------------------------------------------------------------
ours, theirs = tree.grow(X, kind, max_depth=3), DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, kind)
assert (tree.decision_path(ours, X) != theirs.decision_path(X)).nnz == 0
gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
theirs = DecisionTreeClassifier(max_depth=3, min_samples_leaf=20, random_state=0).fit(gaps, kind)
ours = tree.grow(gaps, kind, max_depth=3, min_leaf=20)  # missing="extra": both learn the side
assert np.array_equal(tree.predict(ours, gaps), theirs.predict(gaps))

# ---- differences ----------------------------------------------------------------------------------------------------
# Values: compared exactly in kernelrules; scikit-learn rounds to float32 and treats values within 1e-7 as equal.
for close in ([[1.0], [1.0 + 1e-9]], [[0.0], [5e-8]]):
    assert tree.grow(close, [0, 1]).n_leaves == 2
    assert DecisionTreeClassifier().fit(close, [0, 1]).get_n_leaves() == 1

# Equal gains: the lowest column in kernelrules, any of them in scikit-learn.
thrice = np.repeat(np.arange(8.0)[:, None], 3, axis=1)
first = {int(DecisionTreeClassifier(random_state=s).fit(thrice, [0, 1] * 4).tree_.feature[0]) for s in range(30)}
assert tree.grow(thrice, [0, 1] * 4).feature[0] == 0
assert len(first) > 1

# Several targets: the sum of their losses in kernelrules, the mean in scikit-learn; the splits are the same.
both = np.column_stack([target, -2 * target])
ours = tree.grow(X, both, criterion="squared_error", max_depth=3)
theirs = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, both)
np.testing.assert_allclose(ours.impurity, 2 * theirs.tree_.impurity)

# Poisson: in scikit-learn no child may have the mean 0.
counts = [0.0, 0.0, 1.0, 1.0]
assert tree.grow([[0.0], [1.0], [2.0], [3.0]], counts, criterion="poisson").threshold[0] == 1.5
assert DecisionTreeRegressor(criterion="poisson").fit([[0.0], [1.0], [2.0], [3.0]], counts).tree_.threshold[0] == 2.5

# Monotone constraints are the same.
up = target.clip(-3000, 3000)
ours = tree.grow(X, up, criterion="squared_error", max_depth=4, monotone=[1, 0, 0, 0, 0, 0])
theirs = DecisionTreeRegressor(max_depth=4, monotonic_cst=[1, 0, 0, 0, 0, 0], random_state=0).fit(X, up)
line = np.repeat(X[:1], 200, axis=0)
line[:, 0] = np.linspace(X[:, 0].min(), X[:, 0].max(), 200)
assert (np.diff(tree.predict(ours, line)) >= 0).all()
np.testing.assert_allclose(tree.predict(ours, X), theirs.predict(X), rtol=1e-9)

print("kernelrules and scikit-learn agree")
