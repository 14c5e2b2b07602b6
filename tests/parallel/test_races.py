"""Threads of the core on data that they share: walks, Gram matrices, solvers, growing, rules.

The answers are those of one thread. In a build with ThreadSanitizer (`.ci/run tsan`) this also ends at the first race;
so every call here uses its threads however small the data are.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from result_bits import bits
from scipy import sparse

from kernelrules import graph, kernels, parallel, ridge, rules, svm, tree

rng = np.random.default_rng(0)
FEW = rng.normal(size=(400, 4))
MANY = rng.normal(size=(9000, 4))
HOLES = np.where(rng.random(MANY.shape) < 0.1, np.nan, MANY)
ODD = rng.normal(size=(200_000, 4))
ODD[100_000, 2] = np.nan  # one thread comes across it while the others are at work
TWO = (FEW[:, 0] * FEW[:, 1] > 0).astype(int)
MANY_TWO = (MANY[:, 0] * MANY[:, 1] > 0).astype(int)
TREE = tree.grow(MANY, MANY_TWO, max_depth=8)
SURROGATES = tree.grow(HOLES[:2000], MANY_TWO[:2000], missing="surrogate", max_depth=5)
FRACTIONS = tree.grow(HOLES[:300], MANY_TWO[:300], missing="fractional", max_depth=3)
RULES = rules.extract(tree.grow(MANY, MANY_TWO, max_depth=5))
RBF = kernels.RBF(0.3)
MACHINE = svm.svc(FEW, TWO, kernel=RBF)

CALLS = {
    "plain walk": lambda n: tree.predict(TREE, MANY, n_threads=n),
    "walk that meets missing values": lambda n: tree.predict(TREE, ODD, n_threads=n),
    "walk by surrogates": lambda n: tree.predict(SURROGATES, HOLES, n_threads=n),
    "walk in fractions": lambda n: tree.predict_proba(FRACTIONS, HOLES[:2000], n_threads=n),
    "rules": lambda n: rules.predict(RULES, MANY, n_threads=n),
    "rules that meet missing values": lambda n: rules.predict(RULES, ODD, n_threads=n),
    "gram": lambda n: kernels.gram(FEW, kernel=RBF, n_threads=n),
    "gram of sparse rows": lambda n: kernels.gram(sparse.csr_array(FEW), kernel=RBF, n_threads=n),
    "svc": lambda n: svm.svc(FEW, TWO, kernel=RBF, n_threads=n),
    "svc with a small cache": lambda n: svm.svc(FEW, TWO, kernel=RBF, cache_mb=0.05, n_threads=n),
    "svr": lambda n: svm.svr(FEW, FEW[:, 0], kernel=RBF, n_threads=n),
    "decision": lambda n: svm.decision(MACHINE, MANY, n_threads=n),
    "grow": lambda n: tree.grow(MANY, MANY_TWO, max_depth=6, n_threads=n),
    "grow of numbers": lambda n: tree.grow(MANY, MANY[:, 0], criterion="squared_error", max_depth=5, n_threads=n),
    "grow by surrogates": lambda n: tree.grow(HOLES[:1500], MANY_TWO[:1500], missing="surrogate", n_threads=n),
    "induce": lambda n: rules.induce(FEW, TWO, rng=0, n_threads=n),
    "ridge": lambda n: ridge.fit(FEW, FEW[:, 0], 0.1, RBF, n_threads=n),
    "nearest neighbours": lambda n: graph.knn_graph(FEW, 5, n_threads=n),
}


@pytest.fixture(autouse=True)
def all_threads(monkeypatch):
    """As many threads as are asked for, however little there is to do."""
    monkeypatch.setattr(parallel, "enough_threads", lambda n_threads, *_, **__: n_threads)


@pytest.mark.parametrize("name", CALLS)
def test_threads_of_one_call(name):
    expected = bits(CALLS[name](1))
    for n_threads in (2, 4, 2, 3):
        assert bits(CALLS[name](n_threads)) == expected


def test_calls_of_several_threads():
    """Each with two threads of its own, all at the same time."""
    expected, together = {name: bits(call(1)) for name, call in CALLS.items()}, threading.Barrier(4)
    names = list(CALLS)

    def work(number):
        together.wait()
        turn = names[5 * number :] + names[: 5 * number]
        return [name for name in turn if bits(CALLS[name](2)) != expected[name]]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[]] * 4
