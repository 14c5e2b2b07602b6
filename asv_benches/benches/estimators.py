"""Overhead of estimators over their functions: scikit-learn's validation of data and parameters.

Everything is skipped if scikit-learn is not installed. `track_` benchmarks alternate between estimator and function
in one process, and compare the shortest times.
"""

from functools import partial
from time import perf_counter

from ._common import Repeats, normal, require
from ._svm_data import clusters

TURNS = 7


def cases():
    """Return for each name the estimator, the functions of the same fit and prediction, and the data."""
    try:
        import sklearn.base  # noqa: F401
    except ImportError as error:
        raise NotImplementedError("no scikit-learn here") from error
    estimators = require("estimators", "KernelSVC", "KernelRidge", "TreeClassifier", "RuleListClassifier")
    kernels, svm, ridge = require("kernels", "RBF"), require("svm", "svc"), require("ridge", "fit")
    tree, rules = require("tree", "grow"), require("rules", "induce")
    X, y = clusters(2000, 20)
    many, many_y = clusters(100_000, 10)
    rbf, n = kernels.RBF(0.05), len(X)
    return {
        "KernelSVC 2000x20": (
            estimators.KernelSVC(gamma=0.05), partial(svm.svc, kernel=rbf), svm.predict, "model_", X, y
        ),
        "KernelRidge 2000x20": (
            estimators.KernelRidge(1.0, kernel="rbf", gamma=0.05),
            lambda X, y: ridge.fit(X, y, 1.0 / n, rbf), ridge.predict, "model_", X, normal(n),
        ),
        "TreeClassifier 100000x10": (
            estimators.TreeClassifier(max_depth=6), partial(tree.grow, max_depth=6), tree.predict, "tree_", many, many_y
        ),
        "TreeClassifier 100x5": (
            estimators.TreeClassifier(), tree.grow, tree.predict, "tree_", many[:100, :5].copy(), many_y[:100]
        ),
        "RuleListClassifier 2000x20": (
            estimators.RuleListClassifier(random_state=0, tries=1),
            partial(rules.induce, rng=0, tries=1), rules.predict, "rules_", X, y,
        ),
    }  # fmt: skip


class Overhead(Repeats):
    params = (
        [
            "KernelSVC 2000x20",
            "KernelRidge 2000x20",
            "TreeClassifier 100000x10",
            "TreeClassifier 100x5",
            "RuleListClassifier 2000x20",
        ],
    )
    param_names = ("case",)

    def setup(self, case):
        self.estimator, self.function, answer, result, self.X, self.y = cases()[case]
        self.estimator.fit(self.X, self.y)
        self.answer = partial(answer, getattr(self.estimator, result))

    def time_fit(self, case):
        self.estimator.fit(self.X, self.y)

    def time_predict(self, case):
        self.estimator.predict(self.X)

    def track_fit(self, case):
        """Of the function's time."""
        return ratio(lambda: self.estimator.fit(self.X, self.y), lambda: self.function(self.X, self.y))

    def track_predict(self, case):
        return ratio(lambda: self.estimator.predict(self.X), lambda: self.answer(self.X))

    track_fit.unit = track_predict.unit = "times as long"


def ratio(whole, bare):
    """Return the ratio of the shortest times of two functions, measured alternately."""
    seconds = {whole: [], bare: []}
    for _ in range(TURNS):
        for call, times in seconds.items():
            start = perf_counter()
            call()
            times.append(perf_counter() - start)
    return round(min(seconds[whole]) / min(seconds[bare]), 3)
