"""Growth of time and memory with the number of rows n: Gram matrices, an SVM, a tree, with scikit-learn's beside them.

    python -m asv_benches.benches.scaling [--rounds N] > docs/benchmarks_scaling.json

For every n each contender runs in a separate process. Its first call measures the memory in addition to the data. The
best time of N later calls counts, or of as many as fit in 20 s. An exponent b is the slope of the least-squares line
through (ln n, ln value), so the value grows like n^b over the measured range; memory below 1 MB is ignored, because
it is the allocator's. docs/figures/scaling.py draws the JSON in the documentation.
"""

import argparse
import json
import sys
from functools import partial

import numpy as np

from . import _svm_data, _tree_data
from ._peers import ENOUGH_SECONDS, OURS, SKLEARN, THREADS, announce, facts, measured_alone, sorted_seconds, with_peak

N_WARM_UP = 200
LEAST_MEGABYTES = 1.0
LIMIT_SECONDS = 600
# The problem, its numbers of rows, and the threads of both libraries.
SIZES = {
    "gram": (1000, 2000, 4000, 8000, 16000),
    "svm": (1000, 2000, 4000, 8000, 16000),
    "tree": (10_000, 40_000, 160_000, 640_000),
}
N_THREADS = {"gram": THREADS, "svm": THREADS, "tree": 1}


def gram(n, who):
    """Return a call that computes the RBF matrix of n points with 20 coordinates."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    if who == OURS:
        from kernelrules import kernels

        return partial(kernels.gram, kernel=kernels.RBF(0.05)), (X,)
    from sklearn.metrics.pairwise import rbf_kernel

    return partial(rbf_kernel, gamma=0.05), (X,)


def svm(n, who):
    """Return a call that fits an SVM to overlapping clusters of two classes: 20 coordinates, RBF, C = 1."""
    X, y = _svm_data.clusters(n, 20)
    if who == OURS:
        from kernelrules import kernels, svm

        return partial(svm.svc, C=1.0, kernel=kernels.RBF(0.05)), (X, y)
    from sklearn.svm import SVC

    return lambda X, y: SVC(C=1.0, gamma=0.05).fit(X, y), (X, y)


def tree(n, who):
    """Return a call that grows a Gini tree of 10 continuous columns to purity."""
    X, y = _tree_data.continuous(n, 10)
    if who == OURS:
        from kernelrules import tree

        return partial(tree.grow, n_threads=1), (X, y)
    from sklearn.tree import DecisionTreeClassifier

    return lambda X, y: DecisionTreeClassifier(random_state=0).fit(X, y), (X, y)


PROBLEMS = {"gram": gram, "svm": svm, "tree": tree}


def alone(what, who, n, rounds):
    """Measure the megabytes of the first call, after a small warm-up call, and the best seconds of later calls.

    It runs in a separate process. The first call maps its pages, which takes longer than filling them.
    """
    call, data = PROBLEMS[what](n, who)
    call(*(part[:N_WARM_UP] for part in data))
    once = partial(call, *data)
    megabytes = with_peak(once)[2]
    return {"s": sorted_seconds({who: once}, rounds, ENOUGH_SECONDS)[who][0], "MB": megabytes}


def exponent(ns, values):
    """Return the slope of ln value over ln n."""
    return float(np.polyfit(np.log(ns), np.log(values), 1)[0])


def measured(what, rounds):
    """Return {who: {"n", "s", "MB", "exponent of time", "exponent of memory"}}."""
    found = {who: [] for who in (OURS, SKLEARN)}
    for n in SIZES[what]:
        announce(f"{what}, n = {n}")
        for who, ones in found.items():
            ones.append(measured_alone("scaling", [what, who, str(n), str(rounds)], LIMIT_SECONDS, N_THREADS[what]))
    report = {}
    for who, ones in found.items():
        seconds, megabytes = ([one[key] for one in ones] for key in ("s", "MB"))
        counts = [(n, mb) for n, mb in zip(SIZES[what], megabytes, strict=True) if mb >= LEAST_MEGABYTES]
        report[who] = {
            "n": SIZES[what],
            "s": [round(value, 5) for value in seconds],
            "MB": [round(value, 1) for value in megabytes],
            "exponent of time": round(exponent(SIZES[what], seconds), 2),
            "exponent of memory": round(exponent(*zip(*counts, strict=True)), 2) if len(counts) > 1 else None,
        }
    return report


def main():
    """Print all measurements as JSON; or, with four arguments, one contender for the parent process."""
    if len(sys.argv) == 5 and sys.argv[1] in PROBLEMS:
        what, who, n, rounds = sys.argv[1:]
        print(json.dumps(alone(what, who, int(n), int(rounds))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    options = parser.parse_args()
    about = facts("scaling")  # before the measurements, so that the load is that of other processes
    print(json.dumps({"facts": about, **{what: measured(what, options.rounds) for what in PROBLEMS}}, indent=1))


if __name__ == "__main__":
    main()
