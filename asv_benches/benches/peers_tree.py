"""Trees against scikit-learn, LightGBM, XGBoost and scikit-learn-intelex: part of peers.py.

All contenders grow one tree from the same float32 data on one thread: to purity (without limits), to depth 8, or
best-first to 31 leaves. The time is that of the whole call, including the preparation of the data. scikit-learn,
XGBoost exact and kernelrules try every threshold; LightGBM, XGBoost hist and scikit-learn-intelex ("intelex") those
between 255 or 256 bins. LightGBM and XGBoost do one round of boosting for the squared error with step 1 and without
regularisation, which for two classes is a Gini tree. They are left out ("–") for several classes, entropy and
absolute error. XGBoost exact cannot grow best-first. intelex has only forests: one tree, all rows, all columns, Gini
and squared error. LightGBM and XGBoost hist are left out for regression to purity, where their histograms would take
gigabytes. rpart has a separate table: it runs in R, and the time is R's time of the call alone, without
cross-validation, surrogates and competing splits.

"loss" is the mean impurity of the leaves over the training rows, computed here from the leaf of each row; the table
shows the difference of kernelrules from scikit-learn, relative to the loss of the root. If gains tie, trees may
differ, and scikit-learn's own differ by its random_state: "gains tie" means that both are equal except below splits
of equal gain.

A contender that has used 20 seconds skips the remaining rounds. Prediction: 1 000 000 rows, with each contender's own
tree grown from 100 000 others.

--memory grows each tree in a separate process; the peak is relative to the memory before: interpreter, libraries and
data. Data that are not part of the package are in the shared folder; without it their rows are marked as skipped.
"""

import json
import sys
from functools import partial

import numpy as np

from . import _rpart
from . import _tree_data as data
from ._peers import (
    ENOUGH_SECONDS,
    OURS,
    SKLEARN,
    THREADS,
    Table,
    announce,
    fell_back,
    measured_alone,
    on_threads,
    remarks_cell,
    rows_of_data,
    sorted_seconds,
    verdict,
    with_peak,
)
from ._tree_peers import (
    EQUAL,
    LIGHTGBM,
    REGRESSION,
    RIVALS,
    TREE_THREADS,
    XGBOOST,
    XGBOOST_HIST,
    Case,
    contenders,
    growths,
    installed,
    loss,
    loss_of,
    our_growth,
    part_at_ties,
    prediction,
)

ROUNDS = 5
RPART_ROUNDS = 2
N_WARM_UP = 300
N_GROWN, N_PREDICTED = 100_000, 1_000_000
LEAST_BY_THREADS = 1.5
MOST_MEMORY = 3.0  # in sizes of X
TIMES = (
    "case", "scikit-learn, s", "ours, s", "× faster", "goal", *(f"× faster than {name}" for name in RIVALS),
)  # fmt: skip
GROW_HEADER = (*TIMES, "leaves", "loss", "verdict", "remarks")
PREDICT_HEADER = (*TIMES, "leaves", "labels unlike scikit-learn's", "verdict", "remarks")
RPART_HEADER = ("case", "rpart, s", "ours, s", "× faster", "leaves, rpart", "leaves, ours", "verdict", "remarks")
THREADS_HEADER = ("case", "one thread, s", "two threads, s", "× faster", "goal", "verdict", "remarks")
MEMORY_HEADER = ("case", "who", "s", "beyond the data, MB", "× size of X", "goal", "verdict")

BOOSTERS = (LIGHTGBM, XGBOOST, XGBOOST_HIST)
LARGE = partial(data.continuous, 100_000, 20)
LARGER = partial(data.continuous, 1_000_000, 10)
TIED = partial(data.tied, 100_000, 50)
WIDE = partial(data.continuous, 20_000, 500)
WAVE = partial(data.response, 100_000, 20)
SQUARED = {"criterion": "squared_error"}
ENTROPY = {"criterion": "entropy", "without": tuple(RIVALS)}
CASES = [
    Case("spam 4601×57 purity", data.spam, 4),
    Case("spam 4601×57 depth 8", data.spam, 4, max_depth=8),
    Case("100k×20 purity", LARGE, 20),
    Case("100k×20 depth 8", LARGE, 20, max_depth=8),
    Case("100k×20 best first, 31 leaves", LARGE, 20, max_leaves=31, without=(XGBOOST,)),
    Case("1M×10 purity", LARGER, 20),
    Case("1M×10 depth 8", LARGER, 20, max_depth=8),
    Case("1M×10 best first, 31 leaves", LARGER, 20, max_leaves=31, without=(XGBOOST,)),
    Case("ties 100k×50 purity", TIED, 18),
    Case("ties 100k×50 depth 8", TIED, 18, max_depth=8),
    Case("squared error 100k×20 purity", WAVE, 16, **SQUARED, without=(LIGHTGBM, XGBOOST_HIST)),
    Case("squared error 100k×20 depth 8", WAVE, 16, **SQUARED, max_depth=8),
    Case("wide 20000×500 purity", WIDE, 12),
    Case("wide 20000×500 depth 8", WIDE, 12, max_depth=8),
    Case("entropy 100k×20 purity", LARGE, 15, **ENTROPY),
    Case("entropy 100k×20 depth 8", LARGE, 15, **ENTROPY, max_depth=8),
    Case(
        "absolute error 10000×20 depth 8", partial(data.response, 10_000, 20), 10, "absolute_error", 8,
        without=tuple(RIVALS),
    ),
    Case("letter 26 classes 20000×16 purity", data.letter, without=BOOSTERS),
    Case("covtype 7 classes 10000×54 purity", data.covtype, without=BOOSTERS),
    Case("California squared error 20433×8 depth 8", data.california, **SQUARED, max_depth=8),
]  # fmt: skip
BY_NAME = {case.case: case for case in CASES}
BY_THREADS = [
    BY_NAME[name]
    for name in (
        "100k×20 depth 8", "1M×10 depth 8", "ties 100k×50 depth 8", "squared error 100k×20 depth 8",
        "wide 20000×500 depth 8",
    )
]  # fmt: skip
AGAINST_RPART = [BY_NAME["spam 4601×57 depth 8"], *BY_THREADS, BY_NAME["California squared error 20433×8 depth 8"]]
PREDICTED = partial(data.continuous, N_GROWN + N_PREDICTED, 20)
PREDICTIONS = [
    Case("prediction, depth 8", PREDICTED, 5, max_depth=8),
    Case("prediction, full tree", PREDICTED, 3.5),
]
MEMORY = [
    BY_NAME[name]
    for name in (
        "100k×20 purity", "1M×10 purity", "1M×10 depth 8", "ties 100k×50 purity", "squared error 100k×20 purity",
        "wide 20000×500 depth 8", "entropy 100k×20 purity", "absolute error 10000×20 depth 8",
    )
]  # fmt: skip


def tables(options, wanted):
    """Return the tables of growing, growing on two threads and prediction; with --memory, of peaks."""
    if options.memory:
        return [Table("Trees: peak memory", MEMORY_HEADER, partial(memory_rows, options.limit, wanted))]
    rounds = options.rounds or ROUNDS

    def table(title, header, cases, cells):
        return Table(title, header, partial(rows_of_data, cases, header, wanted, partial(cells, rounds)))

    return [
        table("Growing a tree on one thread", GROW_HEADER, CASES, grow_cells),
        table("Growing a tree on one thread, against rpart", RPART_HEADER, AGAINST_RPART, rpart_cells),
        table("Growing a tree on two threads", THREADS_HEADER, BY_THREADS, threads_cells),
        table("Prediction of 1 000 000 rows on one thread", PREDICT_HEADER, PREDICTIONS, predict_cells),
    ]


def few(X, y):
    """Return a sample of the rows, for the warm-up."""
    return (array[:: len(y) // N_WARM_UP] for array in (X, y))


def cells_of_times(case, seconds, missed):
    """Return the columns shared by the tables of growing and prediction; append missed goals to `missed`."""
    faster = {name: times[0] / seconds[OURS][0] for name, times in seconds.items()}
    if case.goal and faster[SKLEARN] < case.goal:
        missed.append("goal")
    missed += [name for name in faster if faster[name] < 1]

    def cell(name):
        if name in faster:
            return f"{faster[name]:.1f}"
        return "–" if installed(name) else "not installed"

    return (
        case.case,
        *(f"{seconds[name][0]:.3g}" for name in (SKLEARN, OURS)),
        cell(SKLEARN),
        f"≥ {case.goal:g}" if case.goal else "faster than all",
        *map(cell, RIVALS),
    )


def grow_cells(rounds, case, X, y):
    """Return the line of a tree."""
    fitted, remarks, missed = {}, [], []

    def look(name, tree):
        remarks.extend(fell_back(name, tree))
        if name in (OURS, SKLEARN):
            fitted[name] = tree

    with on_threads(contenders(case, *few(X, y)), TREE_THREADS):
        seconds = sorted_seconds(contenders(case, X, y), rounds, ENOUGH_SECONDS, look)
        losses = {name: loss_of(case.criterion, X, y, tree) for name, tree in fitted.items()}
    times = cells_of_times(case, seconds, missed)
    above = (losses[OURS] - losses[SKLEARN]) / loss(case.criterion, y, np.zeros(len(y)))
    if abs(above) <= EQUAL:
        beside = "equal"
    elif part_at_ties(fitted[OURS], fitted[SKLEARN]):
        beside = f"{above:+.1e}, gains tie"
    else:
        beside = f"{above:+.1e}"
        missed.append("loss")
    return (
        *times,
        str(fitted[OURS].n_leaves),
        beside,
        verdict(missed),
        remarks_cell(seconds, remarks),
    )


def rpart_cells(rounds, case, X, y):
    """Return the line of a tree for rpart, without figures if R is not installed."""
    ours = []
    seconds = sorted_seconds({OURS: our_growth(case, X, y)}, rounds, ENOUGH_SECONDS, lambda _, tree: ours.append(tree))
    if not _rpart.is_there():
        return (case.case, "not there", f"{seconds[OURS][0]:.3g}", "–", "–", str(ours[0].n_leaves), "–", "–")
    theirs = _rpart.grown(X, y, case.max_depth, case.criterion not in REGRESSION, RPART_ROUNDS)
    faster = theirs["seconds"] / seconds[OURS][0]
    return (
        case.case,
        f"{theirs['seconds']:.3g}",
        f"{seconds[OURS][0]:.3g}",
        f"{faster:.1f}",
        str(theirs["leaves"]),
        str(ours[0].n_leaves),
        verdict([] if faster > 1 else ["rpart"]),
        remarks_cell(seconds),
    )


def threads_cells(rounds, case, X, y):
    """Return the line of a tree on two threads."""
    trees = {}
    calls = {"one thread": our_growth(case, X, y, 1), "two threads": our_growth(case, X, y, THREADS)}
    seconds = sorted_seconds(calls, rounds, ENOUGH_SECONDS, trees.__setitem__)
    one, two = (times[0] for times in seconds.values())
    missed = ["goal"] if one / two < LEAST_BY_THREADS else []
    if not same(*trees.values()):
        missed.append("same tree")
    return (
        case.case,
        f"{one:.3g}",
        f"{two:.3g}",
        f"{one / two:.2f}",
        f"≥ {LEAST_BY_THREADS:g}",
        verdict(missed),
        remarks_cell(seconds),
    )


def same(tree, other):
    """Return whether two trees of kernelrules have the same splits and values, bit for bit."""
    return all(
        np.array_equal(getattr(tree, name), getattr(other, name), equal_nan=name == "threshold")
        for name in ("feature", "threshold", "value")
    )


def predict_cells(rounds, case, X, y):
    """Return the line of prediction with a tree."""
    labels, missed = {}, []
    points = X[N_GROWN:]
    fitted = {name: call() for name, call in contenders(case, X[:N_GROWN], y[:N_GROWN]).items()}

    remarks = [remark for name, tree in fitted.items() for remark in fell_back(name, tree)]

    def calls(some):
        return {name: prediction(name, tree, some) for name, tree in fitted.items()}

    with on_threads(calls(points[:N_WARM_UP]), TREE_THREADS):
        seconds = sorted_seconds(calls(points), rounds, ENOUGH_SECONDS, labels.__setitem__)
    return (
        *cells_of_times(case, seconds, missed),
        str(fitted[OURS].n_leaves),
        f"{np.mean(labels[OURS] != labels[SKLEARN]):.2%}",
        verdict(missed),
        remarks_cell(seconds, remarks),
    )


def memory_rows(limit, wanted):
    """Yield the lines of the memory table, one per contender."""
    for case in (case for case in MEMORY if wanted(case.case)):
        for who in growths(case):
            announce(f"{case.case}, {who}")
            yield memory_cells(case.case, who, measured_alone("peers_tree", (case.case, who), limit, TREE_THREADS))


def memory_cells(case, who, report):
    """Return the line of one contender."""
    if "remark" in report:
        return case, who, *["–"] * (len(MEMORY_HEADER) - 3), report["remark"]
    sizes = report["peak"] / report["data"]
    ours = who == OURS
    return (
        case,
        who,
        f"{report['seconds']:.3g}",
        f"{report['peak']:.0f}",
        f"{sizes:.2f}",
        f"≤ {MOST_MEMORY:g}" if ours else "–",
        verdict(["memory"] if sizes > MOST_MEMORY else []) if ours else "–",
    )


def measure(case, who):
    """Grow once in this process, after a small warm-up tree."""
    X, y = case.load()
    growth = growths(case)[who]
    growth(case, *few(X, y))()
    _, seconds, peak = with_peak(growth(case, X, y))
    return {"seconds": seconds, "peak": peak, "data": X.nbytes / 1e6}


if __name__ == "__main__":
    print(json.dumps(measure(BY_NAME[sys.argv[1]], sys.argv[2])))
