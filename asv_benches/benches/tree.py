"""Trees: time, peak memory, numbers of nodes, bytes moved, and the remaining loss.

A tree takes some hundredths of a second; peers_tree.py has larger sizes. The data come from seeds and from the
package. The track_ benchmarks are deterministic: a change means another tree.
"""

from functools import partial

import numpy as np

from ._common import Repeats, normal, require, rounded
from ._tree_data import continuous, gaps, response, spam, tied

LARGE = partial(continuous, 50_000, 20)
WAVE = partial(response, 50_000, 20)
TIED = partial(tied, 20_000, 20)
# The data, and the arguments of kernelrules.tree.grow.
GROWTHS = {
    "spam": (spam, {}),
    "50000x20": (LARGE, {}),
    "50000x20 depth 8": (LARGE, {"max_depth": 8}),
    "50000x20 best first": (LARGE, {"growth": "best", "max_leaves": 31}),
    "entropy depth 8": (LARGE, {"criterion": "entropy", "max_depth": 8}),
    "ties": (TIED, {}),
    "wide 5000x500 depth 8": (partial(continuous, 5000, 500), {"max_depth": 8}),
    "squared error": (WAVE, {"criterion": "squared_error"}),
    "squared error depth 8": (WAVE, {"criterion": "squared_error", "max_depth": 8}),
    "absolute error depth 8": (partial(response, 5000, 20), {"criterion": "absolute_error", "max_depth": 8}),
    "categories": (TIED, {"categorical": list(range(20)), "max_depth": 8}),
    "missing extra": (partial(gaps, 20_000, 20), {"max_depth": 8}),
    "missing surrogate": (partial(gaps, 5000, 20), {"missing": "surrogate", "max_depth": 8}),
}
N_GROWN = 50_000


class Grow(Repeats):
    params = (list(GROWTHS),)
    param_names = ("tree",)

    def setup(self, tree):
        grow = require("tree", "grow").grow
        load, arguments = GROWTHS[tree]
        X, y = load()
        self.grow = partial(grow, X, y, **arguments)
        grow(normal((300, 3)), np.arange(300) % 2)  # starts the threads

    def time_grow(self, tree):
        self.grow()

    def peakmem_grow(self, tree):
        self.grow()

    def track_nodes(self, tree):
        return self.grow().n_nodes

    def track_bytes_moved(self, tree):
        """Four bytes for every row and column of a node that is split and has a child that may be: those are moved."""
        grown = self.grow()
        inner = np.flatnonzero(grown.left >= 0)
        going_on = (grown.left[grown.left[inner]] >= 0) | (grown.left[grown.right[inner]] >= 0)
        return int(4 * grown.n_features * grown.n_samples[inner[going_on]].sum())

    def track_loss(self, tree):
        """The mean impurity of the leaves, weighted: speed bought by worse splits shows here."""
        grown = self.grow()
        leaves = grown.left < 0
        return rounded(grown.weight[leaves] @ grown.impurity[leaves] / grown.weight[0])


class OfTree(Repeats):
    """Prediction with a tree of 50000 rows."""

    params = (["depth 8", "full"],)
    param_names = ("tree",)
    n_points = 500_000

    def setup(self, tree):
        self.tree = require("tree", "grow", "predict", "predict_proba", "apply")
        X, y = continuous(N_GROWN + self.n_points, 20)
        self.grown = self.tree.grow(X[:N_GROWN], y[:N_GROWN], max_depth=8 if tree == "depth 8" else None)
        self.X = X[N_GROWN:].copy()


class Predict(OfTree):
    def time_predict(self, tree):
        self.tree.predict(self.grown, self.X)

    def time_predict_proba(self, tree):
        self.tree.predict_proba(self.grown, self.X)

    def time_apply(self, tree):
        self.tree.apply(self.grown, self.X)

    def peakmem_predict(self, tree):
        self.tree.predict(self.grown, self.X)


class PredictOne(OfTree):
    """The overhead of a call."""

    n_points = 1
    number = 0  # short calls: asv chooses how many to time together

    def time_predict(self, tree):
        self.tree.predict(self.grown, self.X)
