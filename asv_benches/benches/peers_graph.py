"""Graphs against scikit-learn: part of peers.py, which describes the method.

Neighbours: the symmetric graph of kernelrules against `kneighbors_graph`, which is not symmetric, with scikit-learn's
own choice of algorithm and by brute force. "equal" means that both have the same edges after symmetrisation.

Fits: kernelrules on 100 000 points, with and without the time of the graph, against LabelSpreading on 10 000 points
of the same kind: with its default RBF kernel, to which the goal refers, and with its neighbour graph. All get 50
labels, as many of each class. The accuracies are those of kernelrules on 100 000 points, of kernelrules and
LabelSpreading on the same 10 000, and of kernelrules on 100 000 with 50 labels drawn at random regardless of class,
with both values of `decide`.
"""

import warnings
from functools import partial

import numpy as np

from ._common import require
from ._peers import Table, announce, on_threads, remarks_cell, sorted_seconds, verdict
from .graph import moons, points

ROUNDS = 5
N_NEIGHBOURS, N_LABELS, LAM = 10, 50, 0.002
NEIGHBOUR_HEADER = ("points", "ours ms", "× auto", "× brute", "edges", "goal", "verdict", "remarks")
FIT_HEADER = (
    "points",
    "graph + fit s",
    "fit s",
    "RBF 10 000 s",
    "knn 10 000 s",
    "accuracy",
    "uneven labels",
    "goal",
    "verdict",
    "remarks",
)
NEIGHBOURS = [((5000, 50), "float64"), ((5000, 50), "float32"), ((20000, 10), "float64"), ((4000, 784), "float64"),
              ((4000, 784), "float32"), ((50000, 2), "float64")]  # fmt: skip


def neighbour_contenders(X):
    """Return the calls of kernelrules, and of scikit-learn with two algorithms."""
    from sklearn.neighbors import kneighbors_graph

    return {
        "ours": partial(require("graph", "knn_graph").knn_graph, X, N_NEIGHBOURS),
        "auto": partial(kneighbors_graph, X, N_NEIGHBOURS, n_jobs=-1),
        "brute": lambda: _brute(X),
    }


def _brute(X):
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=N_NEIGHBOURS, algorithm="brute").fit(X).kneighbors_graph()


def neighbour_rows(rounds, wanted):
    """Yield a line per size."""
    for (n, p), dtype in NEIGHBOURS:
        case = f"{n}×{p} {dtype}"
        if not wanted(case):
            continue
        announce(case)
        X = points(n, p).astype(dtype)
        calls = neighbour_contenders(X)
        graphs = {name: call() for name, call in calls.items()}
        theirs = graphs["auto"].maximum(graphs["auto"].T)
        equal = abs(graphs["ours"] - theirs).sum() == 0
        with on_threads(calls):
            seconds = sorted_seconds(calls, rounds)
        best = {name: times[0] for name, times in seconds.items()}
        ratios = [best[name] / best["ours"] for name in ("auto", "brute")]
        yield (
            case,
            f"{best['ours'] * 1e3:.0f}",
            *(f"{ratio:.1f}" for ratio in ratios),
            "equal" if equal else "differ",
            "> 1 ×",
            verdict([] if min(ratios) > 1 else ["scikit-learn"]),
            remarks_cell(seconds),
        )


def labels_of(y, even=True, seed=0):
    """Return the labelled points: as many of each class, or drawn from all."""
    rng = np.random.default_rng(seed)
    if not even:
        return rng.choice(len(y), N_LABELS, replace=False)
    members = [np.flatnonzero(y == c) for c in np.unique(y)]
    return np.concatenate([rng.choice(own, N_LABELS // len(members), replace=False) for own in members])


def spreading(kernel, X, y):
    """Fit LabelSpreading with its defaults; return the accuracy on all points."""
    from sklearn.semi_supervised import LabelSpreading

    labelled, known = labels_of(y), np.full(len(y), -1)
    known[labelled] = y[labelled]
    with warnings.catch_warnings(action="ignore"):
        fitted = LabelSpreading(kernel=kernel, n_neighbors=N_NEIGHBOURS).fit(X, known)
    return np.mean(fitted.transduction_ == y)


def ours(X, y, W=None, even=True, decide="largest"):
    """Compute the graph, unless it is given, and fit; return the accuracy on all points."""
    graph = require("graph", "fit", "knn_graph")
    labelled = labels_of(y, even)
    W = graph.knn_graph(X, N_NEIGHBOURS) if W is None else W
    fitted = graph.fit(W, y[labelled], LAM, labelled, normalised=True, unreached="nan", decide=decide)
    return np.mean(fitted.labels == y)


def clouds(n, p=20, n_classes=10, seed=0):
    """Return normal clouds around ten centres."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return 1.2 * rng.normal(size=(n_classes, p))[y] + rng.normal(size=(n, p)), y


def fit_rows(rounds, wanted):
    """Yield a line per kind of data."""
    for case, make in (("moons", moons), ("ten clouds in 20 dimensions", clouds)):
        if not wanted(case):
            continue
        announce(case)
        many, few = make(100_000), make(10_000)
        W = require("graph", "knn_graph").knn_graph(many[0], N_NEIGHBOURS)
        calls = {
            "both": partial(ours, *many),
            "fit": partial(ours, *many, W),
            "rbf": partial(spreading, "rbf", *few),
            "knn": partial(spreading, "knn", *few),
        }
        scores = {}
        with on_threads(calls):
            seconds = sorted_seconds(calls, rounds, look=scores.__setitem__)
        best = {name: times[0] for name, times in seconds.items()}
        scores["few"] = ours(*few)
        scores |= {how: ours(*many, W, False, how) for how in ("largest", "excess")}
        yield (
            case,
            *(f"{best[name]:.2f}" for name in ("both", "fit", "rbf", "knn")),
            "ours {both:.3f}; of 10 000 ours {few:.3f}, RBF {rbf:.3f}, knn {knn:.3f}".format(**scores),
            "largest {largest:.3f}, excess {excess:.3f}".format(**scores),
            "graph + fit < RBF",
            verdict(["RBF"] if best["both"] > best["rbf"] else []),
            remarks_cell(seconds),
        )


def tables(options, wanted):
    """Return the tables of neighbours and fits; none for --memory, which asv measures."""
    if options.memory:
        return []
    rounds = options.rounds or ROUNDS
    return [
        Table("Graphs of ten neighbours", NEIGHBOUR_HEADER, partial(neighbour_rows, rounds, wanted)),
        Table("Fits on graphs, 100 000 points", FIT_HEADER, partial(fit_rows, rounds, wanted)),
    ]
