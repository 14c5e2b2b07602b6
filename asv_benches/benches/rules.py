"""Rules: time of extraction, matching and simplification, and the reduction of list lengths.

peers_rules.py compares matching with scikit-learn. The rules of a tree are matched by a tree of splits that the first
call builds: `time_first_prediction` includes this, the others do not. The track_ benchmarks are deterministic.
"""

from ._common import Repeats, require
from ._tree_data import continuous, gaps, spam, tied

N_GROWN, N_POINTS = 50_000, 200_000
# The data, and the arguments of tree.grow.
TREES = {
    "spam": (spam, {}),
    "17 leaves": (lambda: continuous(N_GROWN + N_POINTS, 20), {"max_leaves": 17}),
    "depth 8": (lambda: continuous(N_GROWN + N_POINTS, 20), {"max_depth": 8}),
    "full": (lambda: continuous(N_GROWN + N_POINTS, 20), {}),
    "categories": (lambda: tied(N_GROWN + N_POINTS, 20), {"categorical": list(range(20)), "max_depth": 8}),
    "missing": (lambda: gaps(N_GROWN + N_POINTS, 20), {"max_depth": 8}),
}


def grown_on(name):
    """Return the modules tree and rules, the training rows, the tree, and the rows to predict."""
    tree, rules = require("tree", "grow"), require("rules", "extract", "predict")
    load, options = TREES[name]
    X, y = load()
    n = N_GROWN if len(X) > N_GROWN else len(X)
    return tree, rules, X[:n], y[:n], tree.grow(X[:n], y[:n], **options), X[n:].copy() if len(X) > n else X


class Rules(Repeats):
    params = (list(TREES),)
    param_names = ("tree",)

    def setup(self, tree):
        _, self.rules, _, _, self.grown, self.X = grown_on(tree)
        self.listed = self.rules.extract(self.grown)
        self.rules.predict(self.listed, self.X[:300])

    def time_extract(self, tree):
        self.rules.extract(self.grown)

    def peakmem_extract(self, tree):
        self.rules.extract(self.grown)

    def time_predict(self, tree):
        self.rules.predict(self.listed, self.X)

    def time_first_prediction(self, tree):
        self.rules.predict(self.listed[:], self.X[:300])  # a new list has nothing kept for it

    def time_coverage(self, tree):
        self.rules.coverage(self.listed, self.X[:20_000])

    def track_conditions(self, tree):
        return self.listed.n_conditions


class Simplified(Repeats):
    """Shortening of lists: by exact reasoning, and by the training rows."""

    params = (["spam", "depth 8", "missing"],)
    param_names = ("tree",)

    def setup(self, tree):
        _, self.rules, self.X, self.y, self.grown, _ = grown_on(tree)
        self.listed = self.rules.extract(self.grown)

    def simplified(self):
        return self.rules.simplify(self.listed, self.X, self.y, method="pessimistic")

    def time_simplify(self, tree):
        self.simplified()

    def time_decision_list(self, tree):
        self.rules.decision_list(self.listed)

    def time_predict_simplified(self, tree):
        if not hasattr(self, "short"):
            self.short = self.simplified()
        self.rules.predict(self.short, self.X)

    def track_conditions_of_simplified(self, tree):
        return self.simplified().n_conditions

    def track_conditions_of_decision_list(self, tree):
        return self.rules.decision_list(self.listed).n_conditions
