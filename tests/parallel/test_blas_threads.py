"""BLAS is held to its threads whoever asks, and results have the same bits whatever BLAS would use by itself.

In processes of their own, where BLAS has two threads: those of the other tests have one.
"""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from places import HELPERS

from kernelrules import parallel

COMMON = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_info
from kernelrules import erm, kernels, parallel, ridge, svm
sys.path.insert(0, {tests!r})
from result_bits import mark

def blas():
    return {{pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}}

def elsewhere(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()
"""


def said_by(code, blas_threads=2):
    """What a child process prints, as lines."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(blas_threads), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", COMMON.format(tests=str(HELPERS)) + code],
        env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


LIMITS = """
if blas() != {2}:
    print("no BLAS of two threads here")
    sys.exit()

def inside(n):
    with parallel.blas_threads(n):
        return blas()

assert inside(1) == {1} and blas() == {2}
assert elsewhere(lambda: inside(1)) == {1} and blas() == {2}  # in a second thread, after the first
with parallel.blas_threads(2):
    assert blas() == {2} and elsewhere(lambda: inside(1)) == {1} and inside(1) == {1}  # the smallest counts
    assert blas() == {2}
    with parallel.blas_threads(1):
        assert elsewhere(lambda: inside(2)) == {1}

# A enters, B enters, A leaves and lives on, B leaves.
a_in, b_in, a_out, end = (threading.Event() for _ in range(4))

def a():
    with parallel.blas_threads(1):
        a_in.set()
        b_in.wait()
    a_out.set()
    end.wait()

def b():
    a_in.wait()
    with parallel.blas_threads(1):
        b_in.set()
        a_out.wait()
        between.append(blas())

between = []
first, second = threading.Thread(target=a), threading.Thread(target=b)
first.start()
second.start()
second.join()
assert between == [{1}] and blas() == {2}
assert inside(1) == {1} and blas() == {2}
end.set()
first.join()

# Nor does it matter who else has used threadpoolctl and did not hand on the control.
from threadpoolctl import ThreadpoolController
libraries = ThreadpoolController().select(user_api="blas")
end.clear()
begun = threading.Event()

def owner():
    libraries.limit(limits=2)
    begun.set()
    end.wait()

thread = threading.Thread(target=owner)
thread.start()
begun.wait()
assert inside(1) == {1} and blas() == {2}
end.set()
thread.join()
print("held")
"""


def test_limits_hold_in_every_thread():
    (said,) = said_by(LIMITS)
    if said != "held":
        pytest.skip(said)


FITS = """
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20))
y, two, RBF = X[:, 0] * X[:, 1], X[:, 0] > 0, kernels.RBF(0.05)
phi = kernels.nystroem(X, RBF, 400, rng=0)
blocks = [(X[:1000], y[:1000]), (X[1000:], y[1000:])]
ridge.fit(X[:300], y[:300], 0.1, RBF, form="rkhs")  # this thread is the first that sets the threads of BLAS
with ThreadPoolExecutor(2) as pool:
    for _ in range(2):
        by_threads = ridge.fit_blocks(blocks, 1e-3, phi, executor=pool, n_threads=1)
        assert mark(by_threads) == mark(ridge.fit_blocks(blocks, 1e-3, phi, n_threads=1)), "fit_blocks"

some = X[:500], y[:500]
powers = kernels.Polynomial(2)
fit, mapped = ridge.fit(*some, 0.1, RBF), ridge.fit_blocks(blocks, 1e-3, phi)
linear = svm.svc(X, two, kernel=kernels.Linear(), tol=0.1)
own = svm.svc(X[:400] @ X[:400].T, two[:400], kernel=kernels.Precomputed())
machine = erm.fit(X[:500], two[:500], 1e-3, powers)
calls = {
    "erm": lambda n: erm.fit(X[:500], two[:500], 1e-3, RBF, n_threads=n),
    "erm decision": lambda n: erm.decision(machine, X, n_threads=n),
    "rkhs": lambda n: ridge.fit(*some, 0.1, RBF, form="rkhs", n_threads=n),
    "predict": lambda n: ridge.predict(mapped, X, n_threads=n),
    "linear": lambda n: svm.decision(linear, X, n_threads=n),
    "matrix": lambda n: svm.decision(own, X @ X[:400].T, n_threads=n),
    "nystroem": lambda n: kernels.nystroem(X, RBF, 300, rng=0, n_threads=n),
    "landmarks": lambda n: phi.transform(X[:800], n_threads=n),
    "landmarks of sparse rows": lambda n: phi.transform(sparse.csr_array(X[:800]), n_threads=n),
    "monomials": lambda n: kernels.feature_map(kernels.Polynomial(3), 20).transform(X[:200], n_threads=n),
    "waves": lambda n: kernels.random_fourier(RBF, 20, 300, rng=0).transform(X, n_threads=n),
}
for name, call in calls.items():
    wanted = mark(call(1))
    for found in (call(1), call(2), elsewhere(lambda: call(1)), elsewhere(lambda: call(2))):
        assert mark(found) == wanted, name
    print(name, wanted)
path = {mark(ridge.path(*some, [0.1, 1.0], RBF, n_threads=1)) for _ in range(4)}
path.add(mark(elsewhere(lambda: ridge.path(*some, [0.1, 1.0], RBF, n_threads=1))))
assert len(path) == 1
print("path", path.pop())
"""


def test_results_do_not_depend_on_the_threads_of_blas():
    """Nor on the thread that asks, or an executor's; and twice the same is the same."""
    assert said_by(FITS, 2) == said_by(FITS, 1)


class Library:
    """BLAS that keeps a number of threads for each thread, as MKL does."""

    def __init__(self):
        self.own = threading.local()

    @property
    def num_threads(self):
        return getattr(self.own, "number", 4)

    def set_num_threads(self, number):
        self.own.number = number


def test_libraries_that_keep_a_number_for_each_thread(monkeypatch):
    library = Library()
    monkeypatch.setattr(parallel, "_blas_libraries", lambda: ((), (library,)))

    def inside():
        with parallel.blas_threads(2), parallel.blas_threads(1):
            return library.num_threads, list(parallel.in_threads(lambda _: library.num_threads, [(0,), (1,)], 2))

    with ThreadPoolExecutor(1) as pool:
        with parallel.blas_threads(3):
            assert pool.submit(inside).result() == (1, [1, 1])
            assert (library.num_threads, pool.submit(lambda: library.num_threads).result()) == (3, 4)
        assert library.num_threads == 4
