"""Sums of rules: time, peak memory, and the learned model: terms, objective, gap, training errors.

The data come from seeds and from the package; peers_additive.py uses the real data of the shared folder. The track_
benchmarks are deterministic: a change means another model.
"""

from functools import partial

import numpy as np

from ._common import Repeats, normal, require
from ._tree_data import continuous, spam, tied
from .induce import words

# The data, and the arguments of kernelrules.rules.additive.
CASES = {
    "spam": (spam, {}),
    "spam stumps": (spam, {"max_depth": 1, "folds": None, "max_rules": 30}),
    "20000x20": (partial(continuous, 20_000, 20), {"n_lams": 20, "folds": 3}),
    "categories": (partial(tied, 10_000, 20), {"categorical": list(range(20)), "n_lams": 20, "folds": 3}),
    "words stumps": (words, {"max_depth": 1, "folds": 3}),
    "linear": (spam, {"linear": True, "folds": None}),
}


class Additive(Repeats):
    params = (list(CASES),)
    param_names = ("case",)

    def setup(self, case):
        self.module = require("rules", "additive", "decision")
        load, arguments = CASES[case]
        self.X, self.y = load()
        self.learn = partial(self.module.additive, self.X, self.y, rng=0, **arguments)
        self.module.additive(normal((300, 3)), np.arange(300) % 2, rng=0, n_lams=5)

    def time_additive(self, case):
        self.learn()

    def peakmem_additive(self, case):
        self.learn()

    def track_terms(self, case):
        return len(self.learn())

    def track_largest_relative_gap(self, case):
        model = self.learn()
        return float((model.gap / model.primal[0]).max())

    def track_errors(self, case):
        return int((self.module.predict(self.learn(), self.X) != self.y).sum())


class Decision(Repeats):
    def setup(self):
        self.module = require("rules", "additive", "decision")
        self.X, y = spam()
        self.model = self.module.additive(self.X, y, rng=0, folds=None)
        self.X = np.tile(self.X, (20, 1))

    def time_decision(self):
        self.module.decision(self.model, self.X)
