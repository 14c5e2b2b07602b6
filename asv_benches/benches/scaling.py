"""How time and memory grow with the number of rows n: Gram matrices, an SVM, a tree, and scikit-learn's beside them.

    python -m asv_benches.benches.scaling [--rounds N] > docs/benchmarks_scaling.json

For every n each contender works in a process of its own, in turn, and the best of its rounds counts: its time, and how
far memory rose beyond the data. An exponent b is the slope of the least-squares line through (ln n, ln value), so that
the value grows like n^b over the range measured; memory below 1 MB does not count, being the allocator's. The JSON goes
into the documentation, where docs/figures/scaling.py draws it.
"""

import argparse
import json
import math
import sys
from functools import partial

import numpy as np

from . import _svm_data, _tree_data
from ._peers import OURS, SKLEARN, THREADS, announce, facts, measured_alone, with_peak

N_WARM_UP = 200
LEAST_MEGABYTES = 1.0
LIMIT_SECONDS = 600
# What grows, the rows it is tried on, and the threads that both may use.
SIZES = {
    "gram": (1000, 2000, 4000, 8000, 16000),
    "svm": (1000, 2000, 4000, 8000, 16000),
    "tree": (10_000, 40_000, 160_000, 640_000),
}
N_THREADS = {"gram": THREADS, "svm": THREADS, "tree": 1}


def gram(n, who):
    """The RBF matrix of n points with 20 coordinates."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    if who == OURS:
        from kernelrules import kernels

        return partial(kernels.gram, kernel=kernels.RBF(0.05)), (X,)
    from sklearn.metrics.pairwise import rbf_kernel

    return partial(rbf_kernel, gamma=0.05), (X,)


def svm(n, who):
    """Two classes of overlapping clusters, 20 coordinates, RBF, C = 1."""
    X, y = _svm_data.clusters(n, 20)
    if who == OURS:
        from kernelrules import kernels, svm

        return partial(svm.svc, C=1.0, kernel=kernels.RBF(0.05)), (X, y)
    from sklearn.svm import SVC

    return lambda X, y: SVC(C=1.0, gamma=0.05).fit(X, y), (X, y)


def tree(n, who):
    """A Gini tree of 10 continuous columns, to purity."""
    X, y = _tree_data.continuous(n, 10)
    if who == OURS:
        from kernelrules import tree

        return partial(tree.grow, n_threads=1), (X, y)
    from sklearn.tree import DecisionTreeClassifier

    return lambda X, y: DecisionTreeClassifier(random_state=0).fit(X, y), (X, y)


PROBLEMS = {"gram": gram, "svm": svm, "tree": tree}


def alone(what, who, n):
    """In a process of its own: seconds and megabytes of one call, after a small one that loads what is loaded late."""
    call, data = PROBLEMS[what](n, who)
    call(*(part[:N_WARM_UP] for part in data))
    _, seconds, megabytes = with_peak(partial(call, *data))
    return {"s": seconds, "MB": megabytes}


def exponent(ns, values):
    """The slope of ln value over ln n."""
    return float(np.polyfit(np.log(ns), np.log(values), 1)[0])


def measured(what, rounds):
    """{who: {"n", "s", "MB", "exponent of time", "exponent of memory"}}, in turn, the best of the rounds."""
    best = {who: [{"s": math.inf, "MB": math.inf} for _ in SIZES[what]] for who in (OURS, SKLEARN)}
    for place, n in enumerate(SIZES[what]):
        announce(f"{what}, n = {n}")
        for _ in range(rounds):
            for who, found in best.items():
                one = measured_alone("scaling", [what, who, str(n)], LIMIT_SECONDS, N_THREADS[what])
                found[place] = {key: min(found[place][key], one[key]) for key in ("s", "MB")}
    report = {}
    for who, found in best.items():
        seconds, megabytes = ([one[key] for one in found] for key in ("s", "MB"))
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
    """Everything, as JSON; or, with three arguments, one call for the parent process."""
    if len(sys.argv) == 4 and sys.argv[1] in PROBLEMS:
        print(json.dumps(alone(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    options = parser.parse_args()
    report = {what: measured(what, options.rounds) for what in PROBLEMS}
    print(json.dumps({"facts": facts(), **report}, indent=1))


if __name__ == "__main__":
    main()
