"""Eight Python threads compute on the same arrays and models at once: the bits are those of one thread after another.

The core only reads its input, and keeps nothing between calls but large blocks of memory, which one call has at a time:
"large gram" takes and gives back one, of more than 4 MB. Half of the calls use two threads of the team; several at a
time hold BLAS to one thread.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from result_bits import bits
from scipy import sparse

from kernelrules import bounds, erm, graph, kernels, prune, ridge, rules, svm
from kernelrules import tree as trees

N_THREADS = 8
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)).round(2)
TWO = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120) > 0).astype(int)
THREE = np.where(X[:, 2] > 0.8, 2, TWO)
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=120)
HOLES = np.where(rng.random(X.shape) < 0.2, np.nan, X)
THIN = sparse.csr_array(np.where(rng.random(X.shape) < 0.5, 0.0, X))
LARGE = rng.normal(size=(800, 2))
NEAR = graph.knn_graph(X, 5)
MACHINE, TREE, RIDGE = svm.svc(X, THREE), trees.grow(X, THREE), ridge.fit(X, Y, 0.1)
RULES = rules.extract(TREE)
for shared in (X, LARGE, TWO, THREE, Y, HOLES, THIN.data, THIN.indices, THIN.indptr):
    shared.flags.writeable = False  # whoever writes to it is told

CALLS = {
    "gram": lambda n: kernels.gram(X, n_threads=n),
    "large gram": lambda n: kernels.gram(LARGE, n_threads=n),
    "gram of sparse rows": lambda n: kernels.gram(THIN, n_threads=n),
    "svc": lambda n: svm.svc(X, THREE, n_threads=n),
    "svc with a small cache": lambda n: svm.svc(X, TWO, cache_mb=0.02, n_threads=n),
    "svr": lambda n: svm.svr(X, Y, n_threads=n),
    "decision": lambda n: svm.decision(MACHINE, X, n_threads=n),
    "ridge": lambda n: ridge.fit(X, Y, 0.1, n_threads=n),
    "ridge cg": lambda n: ridge.fit(X, Y, 0.1, solver="cg", n_threads=n),
    "ridge path": lambda n: ridge.path(X, Y, [0.1, 1.0], n_threads=n),
    "posterior": lambda n: ridge.posterior(RIDGE, X[:20], n_threads=n),
    "erm": lambda n: erm.fit(X[:50], TWO[:50], 0.1, n_threads=n),
    "knn graph": lambda n: graph.knn_graph(X, 5, n_threads=n),
    "graph fit": lambda n: graph.fit(NEAR, TWO[:30], 0.1, np.arange(30), solver="cg", unreached="nan", n_threads=n),
    "tree": lambda n: trees.grow(X, THREE, n_threads=n),
    "tree by surrogates": lambda n: trees.grow(HOLES, TWO, missing="surrogate", n_threads=n),
    "tree of targets": lambda n: trees.grow(X, Y, criterion="squared_error", n_threads=n),
    "tree predict": lambda n: trees.predict_proba(TREE, X, n_threads=n),
    "reduced error": lambda n: prune.reduced_error(TREE, X, THREE, n_threads=n),
    "induce": lambda n: rules.induce(X, TWO, rng=0, optimise=1, n_threads=n),
    "rules predict": lambda n: rules.predict(RULES, X, n_threads=n),
    "monte carlo": lambda n: bounds.rademacher_monte_carlo(
        NEAR.toarray() @ NEAR.toarray().T, 1.0, 20, rng=0, n_threads=n
    ),
}


def test_all_at_once():
    """Every thread makes every call, each beginning with another one, half of them with two threads of the team."""
    names = list(CALLS)
    expected = {name: bits(call(1)) for name, call in CALLS.items()}
    together = threading.Barrier(N_THREADS)

    def work(number):
        together.wait()
        start = number * len(names) // N_THREADS
        turn = names[start:] + names[:start]
        return {name: bits(CALLS[name](1 + number % 2)) for name in turn}

    with ThreadPoolExecutor(N_THREADS) as pool:
        answers = list(pool.map(work, range(N_THREADS)))
    for number, found in enumerate(answers):
        wrong = [name for name in names if found[name] != expected[name]]
        assert not wrong, f"thread {number} had other bits in {wrong}"


@pytest.mark.parametrize("name", ["large gram", "svc", "tree", "ridge", "induce", "rules predict"])
def test_the_same_at_once(name):
    """The same call by all threads at the very same time: what it keeps, if anything, would be shared."""
    expected, together = bits(CALLS[name](2)), threading.Barrier(N_THREADS)

    def work(_):
        together.wait()
        return bits(CALLS[name](2))

    with ThreadPoolExecutor(N_THREADS) as pool:
        assert all(found == expected for found in pool.map(work, range(N_THREADS)))
