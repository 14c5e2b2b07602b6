"""Functions that use several threads, on an idle machine and while another process occupies one of two cores.

Part of peers.py. A spinning process runs during the calls of the columns "busy" and is stopped during the others.
Rounds alternate, and the median of a column counts, not the best, because a busy machine can look idle for a few
milliseconds. Three runnable threads share two cores, so a fair scheduler leaves 4/3 of a core to two threads: a fully
parallel call is expected to take 1.5 times its idle time.

The goals: busy at most 1.6 times idle, and no slower than with n_threads=1 on the same busy machine; for small fits,
idle no slower than with n_threads=1. Every case is measured in the same number of rounds. A ratio is the median of the
ratios of the single rounds, and a goal counts as missed only if the 95 % interval of that median (by order statistics,
which assumes nothing about the distribution) lies above it: "met" if the median reaches the goal, "undecided" if only
the interval does.
"""

import math
import os
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from ._common import require
from ._peers import PAUSE_SECONDS, THREADS, Table, announce, verdict
from ._svm_data import clusters, spam, text
from ._tree_data import continuous

ROUNDS = 15
MOST_BUSY = 1.6
HEADER = ("case", "1 thread, ms", "2 threads, ms", "2 threads busy, ms", "1 thread busy, ms", "busy/idle",
          "busy: 2 threads/1", "verdict")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A name, and a function of the number of threads that returns the call."""

    case: str
    make: object
    small: bool = False


def gram(n, p, dtype):
    kernels = require("kernels", "gram", "RBF")
    X = np.random.default_rng(0).normal(size=(n, p)).astype(dtype)
    return partial(kernels.gram, X, kernel=kernels.RBF(1 / p))


def gram_csr(n):
    kernels = require("kernels", "gram", "RBF")
    return partial(kernels.gram, text(n)[0], kernel=kernels.RBF(1.0))


def svc(n, C, linear=False):
    svm, kernels = require("svm", "svc"), require("kernels", "RBF", "Linear")
    X, y = spam(n)
    return partial(svm.svc, X, y, C=C, kernel=kernels.Linear() if linear else kernels.RBF(1 / 57))


def svc_clusters(n, p):
    svm, kernels = require("svm", "svc"), require("kernels", "RBF")
    X, y = clusters(n, p)
    return partial(svm.svc, X, y, C=1.0, kernel=kernels.RBF(1 / p))


def iris():
    svm = require("svm", "svc")
    from sklearn.datasets import load_iris

    return partial(svm.svc, *load_iris(return_X_y=True))


def many_classes():
    svm, kernels = require("svm", "svc"), require("kernels", "RBF")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 20)), rng.integers(0, 6, 4000)
    return partial(svm.svc, X + 0.8 * rng.normal(size=(6, 20))[y], y, C=1.0, kernel=kernels.RBF(0.05))


def numbers(n, p):
    X, y = clusters(n, p)
    return X, y + 0.3 * np.random.default_rng(1).normal(size=n)


def svr():
    svm, kernels = require("svm", "svr"), require("kernels", "RBF")
    return partial(svm.svr, *numbers(3000, 20), C=1.0, kernel=kernels.RBF(0.05))


def one_class():
    svm, kernels = require("svm", "one_class"), require("kernels", "RBF")
    return partial(svm.one_class, spam(4000)[0], nu=0.2, kernel=kernels.RBF(1 / 57))


def svm_use(name):
    svm = require("svm", "svc", name)
    X, y = spam(4000)
    return partial(getattr(svm, name), svm.svc(X[:3000], y[:3000]), np.tile(X, (4, 1)))


def svm_path():
    svm = require("svm", "path")
    return partial(svm.path, *spam(1500), [0.1, 1.0, 10.0])


def svm_budget():
    svm = require("svm", "budget")
    return partial(svm.budget, *spam(1000), 100.0)


def svm_judged(name):
    """Return the prediction call of a model on labelled points."""
    svm = require("svm", "svc", name)
    X, y = spam(4000)
    return partial(getattr(svm, name), svm.svc(X[:3000], y[:3000]), np.tile(X, (4, 1)), np.tile(y, 4))


def calibrated():
    svm = require("svm", "svc", "calibrate", "predict_proba")
    X, y = spam(4000)
    model = svm.calibrate(svm.svc(X[:2000], y[:2000]), X[2000:3000], y[2000:3000])
    return partial(svm.predict_proba, model, np.tile(X, (4, 1)))


def tune():
    svm = require("svm", "tune")
    return partial(svm.tune, *spam(1000), Cs=[0.1, 1.0, 10.0], gammas=[0.005, 0.02], folds=3, rng=0)


def ridge_fit(n):
    ridge, kernels = require("ridge", "fit"), require("kernels", "RBF")
    return partial(ridge.fit, *numbers(n, 20), 1e-2, kernels.RBF(0.05))


def ridge_cg():
    ridge, kernels = require("ridge", "fit"), require("kernels", "RBF")
    return partial(ridge.fit, *numbers(5000, 20), 1e-1, kernels.RBF(0.05), solver="cg")


def posterior():
    ridge, kernels = require("ridge", "fit", "posterior"), require("kernels", "RBF")
    X, y = numbers(2500, 20)
    return partial(ridge.posterior, ridge.fit(X, y, 1e-2, kernels.RBF(0.05)), numbers(4000, 20)[0])


def ridge_predict():
    ridge, kernels = require("ridge", "fit", "predict"), require("kernels", "RBF")
    fit = ridge.fit(*numbers(3000, 20), 1e-2, kernels.RBF(0.05))
    return partial(ridge.predict, fit, numbers(20000, 20)[0])


def ridge_path():
    ridge, kernels = require("ridge", "path"), require("kernels", "RBF")
    return partial(ridge.path, *numbers(1500, 20), np.logspace(-4, 1, 20), kernels.RBF(0.05))


def ridge_of_fit(name):
    ridge, kernels = require("ridge", "fit", name), require("kernels", "RBF")
    X, y = numbers(3000, 20)
    if name == "certificate":
        alpha = ridge.fit(X, y, 1e-2, kernels.RBF(0.05), form="kernel").alpha
        return partial(ridge.certificate, X, y, 1e-2, kernels.RBF(0.05), alpha=alpha)
    return partial(getattr(ridge, name), ridge.fit(X, y, 1e-2, kernels.RBF(0.05), form="kernel"))


def ridge_at():
    ridge, kernels = require("ridge", "path", "at"), require("kernels", "RBF")
    return partial(ridge.at, ridge.path(*numbers(1500, 20), np.logspace(-4, 1, 20), kernels.RBF(0.05)), 3)


def ridge_blocks():
    ridge = require("ridge", "fit_blocks")
    X, y = numbers(40000, 60)
    return partial(ridge.fit_blocks, [(X[:20000], y[:20000]), (X[20000:], y[20000:])], 1e-2)


def erm_use(name):
    erm, kernels = require("erm", "fit", name), require("kernels", "RBF")
    X, y = spam(4000)
    return partial(getattr(erm, name), erm.fit(X[:2000], y[:2000], 1e-3, kernels.RBF(1 / 57)), np.tile(X, (4, 1)))


def of_model():
    bounds, svm = require("bounds", "of_model"), require("svm", "svc")
    X, y = spam(4000)
    return partial(bounds.of_model, svm.svc(X, y), X, y)


def erm():
    fit, kernels = require("erm", "fit"), require("kernels", "RBF")
    X, y = spam(2000)
    return partial(fit.fit, X, y, 1e-3, kernels.RBF(1 / 57))


def rademacher():
    bounds, kernels = require("bounds", "rademacher_monte_carlo"), require("kernels", "gram")
    K = kernels.gram(np.random.default_rng(0).normal(size=(2000, 10)))
    return partial(bounds.rademacher_monte_carlo, K, 1.0, rng=0)


def knn():
    graph = require("graph", "knn_graph")
    return partial(graph.knn_graph, np.random.default_rng(0).normal(size=(8000, 20)), 10)


def spread():
    graph = require("graph", "knn_graph", "fit")
    X, y = clusters(30000, 20)
    W, labelled = graph.knn_graph(X, 10), np.arange(0, 30000, 100)
    return partial(graph.fit, W, y[labelled], 0.1, labelled)


def nystroem():
    kernels = require("kernels", "nystroem", "RBF")
    X = np.random.default_rng(0).normal(size=(30000, 20))
    return partial(kernels.nystroem(X, kernels.RBF(0.05), 400, rng=0).transform, X)


def landmarks():
    kernels = require("kernels", "nystroem", "RBF")
    X = np.random.default_rng(0).normal(size=(30000, 20))
    return partial(kernels.nystroem, X, kernels.RBF(0.05), 600, rng=0)


def grow(n, **options):
    tree = require("tree", "grow")
    return partial(tree.grow, *continuous(n, 20), **options)


def tree_use(name):
    tree = require("tree", "grow", name)
    X, y = continuous(400_000, 20)
    return partial(getattr(tree, name), tree.grow(X[:20000], y[:20000]), X)


def cross_validate():
    prune = require("prune", "cross_validate")
    return partial(prune.cross_validate, *spam(4000), rng=0)


def reduced_error():
    prune, tree = require("prune", "reduced_error"), require("tree", "grow")
    X, y = continuous(400_000, 20)
    return partial(prune.reduced_error, tree.grow(X[:20000], y[:20000]), X, y)


def induce():
    rules = require("rules", "induce")
    return partial(rules.induce, *spam(4000), rng=0)


def rules_use(name):
    rules, tree = require("rules", "extract", name), require("tree", "grow")
    X, y = spam(4000)
    return partial(getattr(rules, name), rules.extract(tree.grow(X, y, max_leaves=60)), np.tile(X, (40, 1)))


def simplify():
    rules, tree = require("rules", "extract", "simplify"), require("tree", "grow")
    X, y = continuous(20000, 20)
    return partial(rules.simplify, rules.extract(tree.grow(X[:10000], y[:10000])), X[10000:], y[10000:])


def additive():
    rules = require("rules", "additive")
    return partial(rules.additive, *spam(2000), rng=0)


def additive_decision():
    rules = require("rules", "additive", "decision")
    X, y = spam(2000)
    return partial(rules.decision, rules.additive(X, y, rng=0), np.tile(X, (40, 1)))


def coverage():
    rules, tree = require("rules", "extract", "coverage"), require("tree", "grow")
    X, y = spam(4000)
    return partial(rules.coverage, rules.extract(tree.grow(X, y, max_leaves=60)), np.tile(X, (10, 1)))


CASES = [
    Case("gram 9000×24", partial(gram, 9000, 24, np.float64)),
    Case("gram 9000×24 float32", partial(gram, 9000, 24, np.float32)),
    Case("gram 3000×784", partial(gram, 3000, 784, np.float64)),
    Case("gram 150×4", partial(gram, 150, 4, np.float64), small=True),
    Case("gram CSR 2000×20000", partial(gram_csr, 2000)),
    Case("nystroem 30000×20", landmarks),
    Case("nystroem.transform 30000×20", nystroem),
    Case("svc spam C=1", partial(svc, 3601, 1.0)),
    Case("svc spam C=100", partial(svc, 3601, 100.0)),
    Case("svc linear spam C=1", partial(svc, 3601, 1.0, True)),
    Case("svc 20000×50", partial(svc_clusters, 20000, 50)),
    Case("svc six classes 4000×20", many_classes),
    Case("svc iris", iris, small=True),
    Case("svr 3000×20", svr),
    Case("one_class spam", one_class),
    Case("svm.decision 16000×57", partial(svm_use, "decision")),
    Case("svm.predict 16000×57", partial(svm_use, "predict")),
    Case("svm.predict_proba 16000×57", calibrated),
    Case("svm.calibrate 16000×57", partial(svm_judged, "calibrate")),
    Case("svm.slacks 16000×57", partial(svm_judged, "slacks")),
    Case("svm.tune spam 1000", tune),
    Case("svm.path spam 1500", svm_path),
    Case("svm.budget spam 1000", svm_budget),
    Case("ridge.fit 4000×20", partial(ridge_fit, 4000)),
    Case("ridge.fit 200×20", partial(ridge_fit, 200), small=True),
    Case("ridge.fit 5000×20 by conjugate gradients", ridge_cg),
    Case("ridge.posterior 2500, 4000 points", posterior),
    Case("ridge.predict 3000, 20000 points", ridge_predict),
    Case("ridge.path 1500×20", ridge_path),
    Case("ridge.at 1500×20", ridge_at),
    Case("ridge.certificate 3000×20", partial(ridge_of_fit, "certificate")),
    Case("ridge.log_marginal_likelihood 3000×20", partial(ridge_of_fit, "log_marginal_likelihood")),
    Case("ridge.fit_blocks 40000×60", ridge_blocks),
    Case("erm.fit logistic spam 2000", erm),
    Case("erm.decision 16000×57", partial(erm_use, "decision")),
    Case("erm.predict 16000×57", partial(erm_use, "predict")),
    Case("erm.predict_proba 16000×57", partial(erm_use, "predict_proba")),
    Case("bounds.of_model spam 4000", of_model),
    Case("bounds.rademacher_monte_carlo 2000", rademacher),
    Case("graph.knn_graph 8000×20", knn),
    Case("graph.fit 30000", spread),
    Case("tree.grow 200000×20 to depth 8", partial(grow, 200_000, max_depth=8)),
    Case("tree.grow 50000×20 to purity", partial(grow, 50_000)),
    Case("tree.grow 150×20", partial(grow, 150), small=True),
    Case("tree.predict 400000×20", partial(tree_use, "predict")),
    Case("tree.predict_proba 400000×20", partial(tree_use, "predict_proba")),
    Case("tree.apply 400000×20", partial(tree_use, "apply")),
    Case("tree.decision_path 400000×20", partial(tree_use, "decision_path")),
    Case("prune.cross_validate spam", cross_validate),
    Case("prune.reduced_error 400000×20", reduced_error),
    Case("rules.induce spam", induce),
    Case("rules.predict 160000×57", partial(rules_use, "predict")),
    Case("rules.predict_proba 160000×57", partial(rules_use, "predict_proba")),
    Case("rules.simplify 10000×20", simplify),
    Case("rules.coverage 40000×57", coverage),
    Case("rules.additive spam 2000", additive),
    Case("rules.decision 80000×57", additive_decision),
]


@contextmanager
def spinning():
    """Run a process that occupies a core unless it is stopped; yield (resume, stop)."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        os.kill(process.pid, signal.SIGSTOP)
        yield partial(os.kill, process.pid, signal.SIGCONT), partial(os.kill, process.pid, signal.SIGSTOP)
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.wait()


def seconds_of(call, n_threads):
    """Return the time of one call; its result is freed afterwards."""
    time.sleep(PAUSE_SECONDS)
    start = time.perf_counter()
    result = call(n_threads=n_threads)
    took = time.perf_counter() - start
    del result
    return took


def measure(columns, call, rounds, go_on, stop):
    """Append the seconds of each round to the columns idle 1, idle 2, busy 2, busy 1; return their medians."""
    call(n_threads=THREADS)
    for _ in range(rounds):
        columns[0].append(seconds_of(call, 1))
        columns[1].append(seconds_of(call, THREADS))
        go_on()
        columns[2].append(seconds_of(call, THREADS))
        columns[3].append(seconds_of(call, 1))
        stop()
    return [statistics.median(column) for column in columns]


def ratio(over, under):
    """Return the median of the rounds' ratios and the lower limit of its 95 % interval."""
    ratios = sorted(a / b for a, b in zip(over, under, strict=True))
    n, rank, tail = len(ratios), 0, 0.0
    while (tail := tail + math.comb(n, rank) / 2**n) <= 0.025:  # P(at most `rank` ratios lie below the median)
        rank += 1
    return statistics.median(ratios), ratios[max(rank - 1, 0)]


def judge(case, idle_1, idle_2, busy_2, busy_1):
    """Return the verdict on the rounds of a case."""
    goals = [
        (f"busy {MOST_BUSY} of idle", ratio(busy_2, idle_2), MOST_BUSY),
        ("slower than one thread", ratio(busy_2, busy_1), 1.0),
    ]
    if case.small:
        goals.append(("small: slower than one thread", ratio(idle_2, idle_1), 1.0))
    missed = [name for name, (_, lower), goal in goals if lower > goal]
    undecided = [name for name, (middle, lower), goal in goals if lower <= goal < middle]
    return f"undecided: {', '.join(undecided)}" if undecided and not missed else verdict(missed)


def tables(options, wanted):
    """Return the table of all cases."""

    def rows():
        with spinning() as (go_on, stop):
            for case in (case for case in CASES if wanted(case.case)):
                announce(case.case)
                columns = [[], [], [], []]
                found = measure(columns, case.make(), options.rounds or ROUNDS, go_on, stop)
                _, idle_2, busy_2, busy_1 = columns
                yield (case.case, *(f"{1e3 * one:.3g}" for one in found), f"{ratio(busy_2, idle_2)[0]:.2f}",
                       f"{ratio(busy_2, busy_1)[0]:.2f}", judge(case, *columns))  # fmt: skip

    if not options.memory:
        yield Table("Idle, and with one core taken", HEADER, rows)
