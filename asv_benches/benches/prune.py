"""Pruning: time of each method, of the path of a chain, and of cross-validation; the chosen sizes.

The trees come from seeds and from the package. The track_ benchmarks are deterministic: a change means another tree.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from ._common import Repeats, require
from ._tree_data import continuous, response, spam

N_GROWN = 20_000
METHODS = {
    "path": lambda prune, tree, X, y: prune.cost_complexity_path(tree),
    "path gini": lambda prune, tree, X, y: prune.cost_complexity_path(tree, loss="gini"),
    "cost_complexity": lambda prune, tree, X, y: prune.cost_complexity(tree, 1e-4),
    "to_size": lambda prune, tree, X, y: prune.to_size(tree, 20),
    "reduced_error": lambda prune, tree, X, y: prune.reduced_error(tree, X, y),
    "pessimistic": lambda prune, tree, X, y: prune.pessimistic(tree),
    "mdl": lambda prune, tree, X, y: prune.mdl(tree),
    "chi2": lambda prune, tree, X, y: prune.chi2(tree, 1e-3),
}
SELECTIONS = {
    "spam": (spam, {}),
    "spam by gini": (spam, {"loss": "gini"}),
    "spam min_leaf 7": (spam, {"min_split": 20, "min_leaf": 7}),
    "squared error 5000x20": (partial(response, 5000, 20), {"criterion": "squared_error", "min_leaf": 7}),
}


class Prune(Repeats):
    """Methods on a tree of 20 000 rows grown to purity."""

    params = (list(METHODS),)
    param_names = ("method",)

    def setup(self, method):
        self.prune = require("prune", "cost_complexity_path", "mdl", "chi2")
        X, y = continuous(N_GROWN + 5000, 20)
        self.tree = require("tree", "grow").grow(X[:N_GROWN], y[:N_GROWN])
        self.X, self.y = X[N_GROWN:].copy(), y[N_GROWN:]

    def time_prune(self, method):
        METHODS[method](self.prune, self.tree, self.X, self.y)

    def track_leaves(self, method):
        pruned = METHODS[method](self.prune, self.tree, self.X, self.y)
        return int(pruned.n_leaves[0]) if method.startswith("path") else pruned.n_leaves


class Chain(Repeats):
    """A tree of 100 000 levels, on which an algorithm that visits all ancestors for every cut would take minutes."""

    def setup(self):
        self.prune = require("prune", "cost_complexity_path")
        n = 100_000
        split = np.arange(0, 2 * n, 2)
        left, right = np.full((2, 2 * n + 1), -1)
        left[split], right[split] = split + 1, split + 2
        risk = np.zeros(2 * n + 1)
        risk[split] = np.arange(n, 0, -1.0) ** 1.5
        small = require("tree", "grow").grow([[0.0], [1.0]], [0.0, 1.0], criterion="squared_error")
        self.tree = replace(
            small, left=left, right=right, feature=np.where(left < 0, -1, 0), value=risk, weight=np.ones(2 * n + 1),
            impurity=risk,
        )  # fmt: skip

    def time_path(self):
        self.prune.cost_complexity_path(self.tree)


class CrossValidate(Repeats):
    """Cross-validation with ten folds on one thread."""

    params = (list(SELECTIONS),)
    param_names = ("data",)

    def setup(self, data):
        cross_validate = require("prune", "cross_validate").cross_validate
        load, options = SELECTIONS[data]
        self.run = partial(cross_validate, *load(), rng=0, n_threads=1, **options)

    def time_cross_validate(self, data):
        self.run()

    def peakmem_cross_validate(self, data):
        self.run()

    def track_leaves(self, data):
        return self.run().tree.n_leaves
