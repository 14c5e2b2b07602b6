"""Ctrl-C ends every long function: one child process begins them one after the other, and is sent SIGINT in each.

What is asserted is that KeyboardInterrupt comes out before the child has computed for one second more in the best of a
few tries: seconds of its cores and not of a clock, as a busy machine may let a process wait. Run this file as a script
for the latencies.
"""

import os
import re
import signal
import sys

import pytest
from interrupting import LONGEST, seconds_of_all, seconds_to_stop
from places import TESTS
from test_progress import LONG

BEGUN = 0.15  # seconds after which the signal is sent
PATIENCE = 1.0  # seconds

# In the child; `big` has rows enough for seconds of anything that is asked of a model of 500 points.
PREPARE = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
import numpy as np
from kernelrules import bounds, erm, graph, kernels, prune, ridge, rules, svm, tree
rng = np.random.default_rng(0)
RBF = kernels.RBF(0.3)
big = rng.normal(size=(3_000_000, 4))
some, y, targets = big[:500], np.arange(500) % 2, big[:500, 0]
many, y_many = rng.normal(size=(9000, 30)), np.arange(9000) % 3
wide = rng.normal(size=(7000, 900)).astype(np.float32)
rows, y_rows = rng.normal(size=(150_000, 20)), np.arange(150_000) % 2
svc, machine, line = svm.svc(some, y, kernel=RBF), erm.fit(some, y, 1e-3, RBF), ridge.fit(some, targets, 1e-3, RBF)
calibrated = svm.calibrate(svc, some, y)
path = ridge.path(some[:20], targets[:20], [1.0], RBF)
n = 40_000
long_path = replace(path, X=big[:n], y=big[:n, 0], alphas=np.zeros((1, n)), sample_weight=np.ones(n))
m = 4000
large = replace(line, X=rng.normal(size=(m, 4)), y=np.zeros(m), alpha=np.zeros(m), sample_weight=np.ones(m))
neighbours = graph.knn_graph(rng.normal(size=(3000, 8)), 10)
K = np.ones((2000, 2000))
landmarks = kernels.nystroem(rng.normal(size=(600, 4)), RBF, 600, rng=0)
threads = ThreadPoolExecutor(2)
noise = np.random.default_rng(1).integers(0, 2, len(rows))
large_tree = tree.grow(rows[:, :5], noise)

def overlap(A, B):
    return np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2)

def slow(A, B):  # seconds in one call of numpy's, if it were asked for all rows
    return np.logaddexp(A[:, None, :], B[None, :, :]).sum(axis=2)

by_function = svm.svc(some, y, kernel=overlap)
"""

CASES = {
    "kernels.gram": "kernels.gram(wide, kernel=kernels.Laplacian(0.01), **one)",
    "kernels.FeatureMap.transform": "landmarks.transform(big[:100_000], **one)",
    "kernels.FeatureMap.transform by threads": "landmarks.transform(big[:100_000], n_threads=2)",
    "ridge.fit": "ridge.fit(many, y_many * 1.0, 1e-3, RBF, **one)",
    "ridge.at": "ridge.at(long_path, **one)",
    "ridge.certificate": "ridge.certificate(big[:n], big[:n, 0], 1.0, RBF, alpha=np.zeros(n), **one)",
    "ridge.predict": "ridge.predict(line, big, **one)",
    "ridge.posterior": "ridge.posterior(line, big, **one)",
    "ridge.log_marginal_likelihood": "ridge.log_marginal_likelihood(large, **one)",
    "ridge.fit_blocks": "ridge.fit_blocks([(big, big[:, 0])] * 9, 1.0, kernels.random_fourier(RBF, 4, 300), **one)",
    "svm.svc": "svm.svc(many, y_many > 0, C=100.0, kernel=RBF, **one)",
    "svm.svc by a function": "svm.svc(big[:8000], y_many[:8000] > 0, kernel=slow, **one)",
    "svm.svr": "svm.svr(many, many[:, 0], C=100.0, epsilon=0.01, kernel=RBF, **one)",
    "svm.one_class": "svm.one_class(many, kernel=RBF, **one)",
    "svm.path": "svm.path(many, y_many, [1.0, 100.0], kernel=RBF, **one)",
    "svm.budget": "svm.budget(many, y_many > 0, 900.0, kernel=RBF, **one)",
    "svm.tune": "svm.tune(many, y_many, Cs=[1.0, 100.0], gammas=[0.1, 1.0], rng=0, **one)",
    "svm.calibrate": "svm.calibrate(svc, big, big[:, 0] > 0, **one)",
    "svm.decision": "svm.decision(svc, big, **one)",
    "svm.predict": "svm.predict(svc, big, **one)",
    "svm.predict_proba": "svm.predict_proba(calibrated, big, **one)",
    "svm.slacks": "svm.slacks(svc, big, big[:, 0] > 0, **one)",
    "erm.fit": "erm.fit(many, y_many, 1e-4, RBF, **one)",
    "erm.decision": "erm.decision(machine, big, **one)",
    "erm.predict": "erm.predict(machine, big, **one)",
    "erm.predict_proba": "erm.predict_proba(machine, big, **one)",
    "graph.knn_graph": "graph.knn_graph(rng.normal(size=(50_000, 30)), 10, **one)",
    "tree.grow": "tree.grow(rows, y_rows, **one)",
    "prune.cross_validate": "prune.cross_validate(rows, y_rows, rng=0, **one)",
    "prune.pessimistic": "prune.pessimistic(large_tree, raising=True, X=rows[:, :5], y=noise)",
    "rules.induce": "rules.induce(rows, y_rows, rng=0, **one)",
    "bounds.of_model": "bounds.of_model(svc, big, big[:, 0] > 0, **one)",
    "bounds.rademacher_monte_carlo": "bounds.rademacher_monte_carlo(K, 1.0, n_draws=10**7, rng=0, **one)",
    "svm.decision by a function": "svm.decision(by_function, big, **one)",
    "ridge.fit by a function": "ridge.fit(big[:8000], big[:8000, 0], 1.0, slow, **one)",
    "erm.fit by a function": "erm.fit(big[:8000], y_many[:8000] > 0, 1.0, slow, **one)",
    "svm.svc by threads": "svm.svc(many, y_many, C=100.0, kernel=RBF, executor=threads)",
    "prune.cross_validate by threads": "prune.cross_validate(rows, y_rows, rng=0, executor=threads)",
    # What other libraries compute goes on unheard: these come last.
    "kernels.nystroem": "kernels.nystroem(rng.normal(size=(3000, 9)), RBF, 3000, rng=0, **one)",
    "ridge.path": "ridge.path(rng.normal(size=(2500, 9)), np.zeros(2500), [1.0], RBF, **one)",
    "graph.fit": "graph.fit(neighbours, y[:100], 0.1, np.arange(100), solver='direct', **one)",
}

# Too fast for a signal on data of a test's size; interrupted in these files, on other sizes or by themselves.
ELSEWHERE = {
    "tree.apply": "tree/test_tree_predict.py",
    "tree.decision_path": "tree/test_tree_predict.py",
    "tree.predict": "tree/test_tree_predict.py",
    "tree.predict_proba": "tree/test_tree_predict.py",
    "prune.reduced_error": "tree/test_tree_predict.py",
    "rules.additive": "additive/test_rules_additive.py",
    "rules.decision": "rules/test_rules_large.py",
    "rules.decision_list": "rules/test_rules_large.py",
    "rules.coverage": "rules/test_rules_large.py",
    "rules.predict": "rules/test_rules_large.py",
    "rules.predict_proba": "rules/test_rules_large.py",
    "rules.simplify": "rules/test_rules_large.py",
}


def latencies():
    """Seconds of cores from the signal to the end, by case; None where the function had ended before."""
    cases = {name: ("", call) for name, call in CASES.items()}
    return seconds_of_all(PREPARE + 'one = {"n_threads": 1}\n', cases, BEGUN)


def test_every_long_function_has_a_case():
    covered = {name.split(" by ")[0] for name in CASES}
    assert covered | set(ELSEWHERE) == set(LONG)
    for file in set(ELSEWHERE.values()):
        assert re.search("SIGINT|seconds_to_stop|seconds_of_all", (TESTS / file).read_text(encoding="utf-8"))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_what_hears_no_signal_is_measured():
    """A function of C's that computes on: its seconds count, on whichever clock."""
    deaf = "pbkdf2_hmac('sha256', b'a', b'b', n)"
    half_a_second = (
        "clock = time.process_time(); pbkdf2_hmac('sha256', b'a', b'b', 10**5); "
        "n = int(6e4 / (time.process_time() - clock))"
    )
    prepare = "import time\nfrom hashlib import pbkdf2_hmac\n"
    told = seconds_of_all(prepare, {"deaf": (half_a_second, deaf)}, 0.1)
    assert 0.2 < told["deaf"] < 3


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_children_hear_what_their_parents_ignore():
    """As a shell lets its jobs in the background do."""
    code = """
import time
print("ready", flush=True)
try:
    time.sleep(3)
except KeyboardInterrupt:
    print("interrupted", time.time())
"""
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert seconds_to_stop(code) < LONGEST
        assert seconds_of_all("", {"sleep": ("", "time.sleep(3)")})["sleep"] < LONGEST
    finally:
        signal.signal(signal.SIGINT, heard)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_ctrl_c_ends_every_long_function():
    told = latencies()
    assert [name for name, seconds in told.items() if seconds is None] == [], "too fast to be interrupted"
    assert max(told.values()) < PATIENCE, told


if __name__ == "__main__":
    for _name, _seconds in latencies().items():
        print(f"{_name:34s}", "ended before" if _seconds is None else f"{_seconds:.3f} s")
    print("load", os.getloadavg())
