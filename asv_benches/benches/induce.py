"""Rule induction: time, peak memory, and the learned list: conditions and training errors.

The data come from seeds and from the package; peers_rules.py uses the real data of the shared folder. The track_
benchmarks are deterministic: a change means another list.
"""

from functools import partial

import numpy as np
from scipy import sparse

from ._common import Repeats, normal, require
from ._tree_data import continuous, spam, tied


def words(n=3000, p=5000, seed=0):
    """Return bags of words of two classes that three words and their absence determine."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, p), density=0.01, format="csr", rng=rng)
    X.data[:] = 1 + rng.poisson(0.5, size=X.nnz)
    some = X[:, [0, 1, 2]].toarray()
    y = (some[:, 0] > 0) | (rng.random(n) < 0.2)
    marks = sparse.csr_array((y[:, None] * (rng.random((n, 40)) < 0.3)).astype(float))
    return sparse.csr_array(sparse.hstack([X, marks])), y.astype(np.int64)


# The data, and the arguments of kernelrules.rules.induce.
CASES = {
    "spam": (spam, {}),
    "20000x20": (partial(continuous, 20_000, 20), {"max_rules": 10}),
    "categories": (partial(tied, 10_000, 20), {"categorical": list(range(20)), "max_rules": 10}),
    "unpruned": (partial(continuous, 5000, 20), {"prune": False, "max_rules": 20}),
    "words": (words, {}),
    "weights": (spam, {"sample_weight": np.tile([0.3, 0.7, 1.0], 1534)[:4601]}),
}


class Induce(Repeats):
    params = (list(CASES),)
    param_names = ("case",)

    def setup(self, case):
        self.module = require("rules", "induce", "predict")
        load, arguments = CASES[case]
        self.X, self.y = load()
        self.induce = partial(self.module.induce, self.X, self.y, rng=0, **arguments)
        self.module.induce(normal((300, 3)), np.arange(300) % 2, rng=0)

    def time_induce(self, case):
        self.induce()

    def peakmem_induce(self, case):
        self.induce()

    def track_conditions(self, case):
        return self.induce().n_conditions

    def track_errors(self, case):
        return int((self.module.predict(self.induce(), self.X) != self.y).sum())
