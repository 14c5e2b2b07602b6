"""Saving and loading: time relative to `pickle`, and file size, for a model of arrays and for a long rule list.

Files are in memory, so disks are not measured. `track_over_pickle` is a ratio of interleaved measurements.
"""

import io
import pickle
from time import perf_counter

import numpy as np

from ._common import Repeats, normal, require

POINTS = (20_000, 50)  # 9 MB with the coefficients


def ridge_fit():
    """Return a fit that holds its training points."""
    X = normal(POINTS)
    kernels = require("kernels", "Linear")
    return require("ridge", "fit").fit(X, X[:, 0], 1e-3, kernels.Linear())


def rule_list():
    """Return the rules of a tree with some thousand leaves."""
    X = normal((20_000, 10))
    y = (np.sin(3 * X[:, 0]) + X[:, 1] + normal(20_000, seed=1) > 0).astype(int)
    return require("rules", "extract").extract(require("tree", "grow").grow(X, y, min_leaf=2))


def grown_tree():
    X = normal((50_000, 10))
    return require("tree", "grow").grow(X, X[:, 0] + normal(50_000, seed=1), criterion="squared_error")


RESULTS = {"ridge 20000x50": ridge_fit, "tree": grown_tree, "rules": rule_list}


class Persist(Repeats):
    params = (list(RESULTS),)
    param_names = ("result",)

    def setup(self, result):
        self.persist = require("persist", "save", "load")
        self.result = RESULTS[result]()
        self.file = self._saved()

    def _saved(self):
        file = io.BytesIO()
        self.persist.save(self.result, file)
        return file.getvalue()

    def time_save(self, result):
        self._saved()

    def time_load(self, result):
        self.persist.load(io.BytesIO(self.file))

    def peakmem_load(self, result):
        self.persist.load(io.BytesIO(self.file))

    def track_bytes(self, result):
        return len(self.file)

    def track_over_pickle(self, result):
        """Time of saving and loading over that of pickle there and back."""
        ours, theirs = [], []
        for _ in range(5):
            start = perf_counter()
            self.persist.load(io.BytesIO(self._saved()))
            middle = perf_counter()
            pickle.loads(pickle.dumps(self.result))
            ours.append(middle - start)
            theirs.append(perf_counter() - middle)
        return min(ours) / min(theirs)

    track_bytes.unit = "bytes"
