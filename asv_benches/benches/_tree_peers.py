"""Trees to grow, their contenders, and whether two trees are equally good, for peers_tree.py."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import xlogy

from ._common import require
from ._peers import INTELEX, OURS, SKLEARN, intelex

LIGHTGBM, XGBOOST, XGBOOST_HIST = "LightGBM", "XGBoost exact", "XGBoost hist"
REGRESSION = ("squared_error", "absolute_error")
TREE_THREADS = 1
EQUAL = 1e-9  # tolerance of losses, relative to that of the root
MOST_LEAVES = 131072  # LightGBM's limit
POOL_MB = 500  # for LightGBM's histograms: unlimited, 100k×20 to purity takes 8 GB and four times as long
DEEP = 1000  # XGBoost exact requires a limit


@dataclass(frozen=True)
class Case:
    """A tree to grow: its data, the goal as a speedup over scikit-learn, the limits, and excluded contenders."""

    case: str
    load: Callable
    goal: float | None = None
    criterion: str = "gini"
    max_depth: int | None = None
    max_leaves: int | None = None
    without: tuple[str, ...] = ()


def our_growth(case, X, y, n_threads=TREE_THREADS):
    """Return a function without arguments that grows the tree of kernelrules."""
    return partial(
        require("tree", "grow").grow,
        X,
        y,
        criterion=case.criterion,
        growth="best" if case.max_leaves else "depth",
        max_depth=case.max_depth,
        max_leaves=case.max_leaves,
        n_threads=n_threads,
    )


def sklearn_growth(case, X, y):
    """Return a function without arguments that grows the tree of scikit-learn."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    return estimator_growth(DecisionTreeClassifier, DecisionTreeRegressor, case, X, y)


def intelex_growth(case, X, y):
    """Return a function that fits a forest of one tree on all rows and columns, with 256 bins; intelex has no trees."""
    forests = intelex("ensemble", TREE_THREADS)
    one = {"n_estimators": 1, "bootstrap": False, "max_features": None, "n_jobs": TREE_THREADS}
    return estimator_growth(forests.RandomForestClassifier, forests.RandomForestRegressor, case, X, y, **one)


def estimator_growth(classifier, regressor, case, X, y, **more):
    """Return a function without arguments that fits a new estimator of one of the two classes."""
    make = partial(
        regressor if case.criterion in REGRESSION else classifier,
        criterion=case.criterion,
        max_depth=case.max_depth,
        max_leaf_nodes=case.max_leaves,
        random_state=0,
        **more,
    )
    return lambda: make().fit(X, y)


def lightgbm_growth(case, X, y):
    """Return a function that builds the data and grows one LightGBM tree; for labels 0 and 1 it is a Gini tree."""
    import lightgbm

    target = numbers(case, y)
    parameters = {
        "objective": "regression",
        "boost_from_average": False,
        "learning_rate": 1.0,
        "max_depth": case.max_depth or -1,
        "num_leaves": case.max_leaves or (2**case.max_depth if case.max_depth else min(len(y), MOST_LEAVES)),
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "histogram_pool_size": POOL_MB,
        "num_threads": TREE_THREADS,
        "verbose": -1,
    }
    return lambda: lightgbm.train(parameters, lightgbm.Dataset(X, target), 1)


def xgboost_growth(method, case, X, y):
    """Return the same function for XGBoost, by its method "exact" or "hist"."""
    import xgboost

    target = numbers(case, y)
    matrix = xgboost.QuantileDMatrix if method == "hist" else xgboost.DMatrix
    parameters = {
        "objective": "reg:squarederror",
        "base_score": 0.0,
        "tree_method": method,
        "grow_policy": "lossguide" if case.max_leaves else "depthwise",
        "max_depth": case.max_depth or (0 if method == "hist" else DEEP),
        "max_leaves": case.max_leaves or 0,
        "eta": 1.0,
        "lambda": 0.0,
        "min_child_weight": 0.0,
        "nthread": TREE_THREADS,
    }
    return lambda: xgboost.train(parameters, matrix(X, target, nthread=TREE_THREADS), 1)


def numbers(case, y):
    """Return targets unchanged, and two classes as 0 and 1."""
    return y if case.criterion in REGRESSION else np.unique(y, return_inverse=True)[1]


# The contenders with the modules that they need.
RIVALS = {
    LIGHTGBM: ("lightgbm", lightgbm_growth),
    XGBOOST: ("xgboost", partial(xgboost_growth, "exact")),
    XGBOOST_HIST: ("xgboost", partial(xgboost_growth, "hist")),
    INTELEX: ("sklearnex", intelex_growth),
}


def installed(name):
    """Return whether a contender is installed."""
    return importlib.util.find_spec(RIVALS[name][0]) is not None


def growths(case):
    """Return the contenders of a tree by name: functions of the case, X and y that return one without arguments."""
    rivals = {name: grow for name, (_, grow) in RIVALS.items() if name not in case.without and installed(name)}
    return {OURS: our_growth, SKLEARN: sklearn_growth, **rivals}


def contenders(case, X, y):
    """Return the growing functions of all contenders, by name."""
    return {name: growth(case, X, y) for name, growth in growths(case).items()}


def prediction(name, fitted, X):
    """Return a function without arguments that predicts; boosting libraries return scores."""
    if name == OURS:
        return partial(require("tree", "predict").predict, fitted, X)
    if name in (XGBOOST, XGBOOST_HIST):
        return partial(fitted.inplace_predict, X)
    return partial(fitted.predict, X)


def loss(criterion, y, leaves):
    """Return the mean impurity of the leaves, weighted by rows, from the leaf of every row."""
    _, leaf, sizes = np.unique(leaves, return_inverse=True, return_counts=True)
    if criterion == "absolute_error":
        middle = np.cumsum(sizes) - sizes + (sizes - 1) // 2
        return np.abs(y - y[np.lexsort((y, leaf))][middle][leaf]).mean()
    if criterion == "squared_error":
        return np.square(y - (np.bincount(leaf, y) / sizes)[leaf]).mean()
    classes, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(leaf * len(classes) + codes, minlength=len(sizes) * len(classes))
    shares = counts.reshape(len(sizes), -1) / sizes[:, None]
    terms = shares * (1 - shares) if criterion == "gini" else -xlogy(shares, shares) / np.log(2)
    return terms.sum(axis=1) @ sizes / len(y)


def loss_of(criterion, X, y, fitted):
    """Return the loss of a tree of kernelrules or scikit-learn."""
    leaves = fitted.apply(X) if hasattr(fitted, "apply") else require("tree", "apply").apply(fitted, X)
    return loss(criterion, y, leaves)


def part_at_ties(ours, theirs):
    """Return whether a tree of kernelrules equals one of scikit-learn except below splits of equal gain.

    Two nodes of the same rows must both be leaves, or have splits with the same loss. If these are on the same column
    and have as many rows to the left, the children have the same rows again.
    """
    column, left, right, size, losses = nodes(ours)
    column_, left_, right_, size_, losses_ = nodes(theirs)
    pairs = [(0, 0)]
    while pairs:
        i, j = pairs.pop()
        if left[i] < 0 and left_[j] < 0:
            continue
        if left[i] < 0 or left_[j] < 0:
            return False
        if abs(losses[left[i]] + losses[right[i]] - losses_[left_[j]] - losses_[right_[j]]) > EQUAL * losses_[0]:
            return False
        if column[i] == column_[j] and size[left[i]] == size_[left_[j]]:
            pairs += [(left[i], left_[j]), (right[i], right_[j])]
    return True


def nodes(fitted):
    """Return the column, children, rows and loss of every node, as lists."""
    if hasattr(fitted, "tree_"):
        tree = fitted.tree_
        arrays = tree.feature, tree.children_left, tree.children_right, tree.n_node_samples, tree.impurity
    else:
        arrays = fitted.feature, fitted.left, fitted.right, fitted.n_samples, fitted.impurity
    return [array.tolist() for array in (*arrays[:4], arrays[3] * arrays[4])]
