"""Rule learners: part of peers.py, which describes the method.

Learning from all rows: rules.induce against Weka's JRip (by its own report of the time, the best of its runs) and
wittgenstein's RIPPER, on spam (4601 rows) and adult (32 561 rows; wittgenstein gets 3000 of them, and so does
kernelrules in the comparison with it). Data are frames with categories. The conversion of the data is timed, except
for Weka.

Ten folds: accuracy / rules / conditions / median seconds of a fit, with the same folds for all, on six tables; "mean"
is over the six. A condition 2 < x <= 4 counts as two. In a tree every leaf is a rule, with the splits on the path to
it.

Prediction: the rules of a tree, and the lists of `simplify` and `induce` from the same rows, against scikit-learn's
tree with the same limits, which takes float32 unchanged and copies float64; one thread each. Every list predicts new
rows, for spam twenty times the number of training rows.
"""

import functools

import numpy as np

from . import _rules_data as data
from ._common import require
from ._peers import OURS, Table, announce, on_threads, remarks_cell, skipped, sorted_seconds, verdict
from ._rules_peers import JRIP, LEARNERS, WITTGENSTEIN, has_weka, jrip, ours, wittgenstein
from .rules import TREES, grown_on

ROUNDS = 3
FASTER = {JRIP: 5.0, WITTGENSTEIN: 20.0}
TIMES_HEADER = ("case", "peer", "peer, s", "ours, s", "× faster", "goal", "verdict")
FOLDS_HEADER = ("data", *LEARNERS)
PREDICT_ROUNDS = 9
PREDICTED = ("spam", "17 leaves", "depth 8", "full")
PREDICT_HEADER = (
    "tree", "rows", "leaves", "scikit-learn, ms", "× rules", "× simplified", "× induced", "goal", "verdict", "remarks"
)  # fmt: skip


def tables(options, wanted):
    """Return the tables of times, then of accuracies."""
    rounds = options.rounds or ROUNDS
    if options.memory:
        return []
    return [
        Table("Learning rules", TIMES_HEADER, lambda: times(rounds, wanted)),
        Table("Accuracy / rules / conditions / seconds, ten folds", FOLDS_HEADER, lambda: folds(wanted)),
        Table("Predicting, one thread", PREDICT_HEADER, lambda: predictions(options.rounds or PREDICT_ROUNDS, wanted)),
    ]


def times(rounds, wanted):
    """Yield a line per case and contender."""
    cases = [
        ("spam", None, JRIP, jrip),
        ("spam", None, WITTGENSTEIN, wittgenstein),
        ("adult", None, JRIP, jrip),
        ("adult", data.N_ADULT, WITTGENSTEIN, wittgenstein),
    ]
    for name, n, peer, learn in cases:
        case = name if n is None else f"{name}, {n} rows"
        if not wanted(case):
            continue
        announce(f"{case}: {peer}")
        try:
            table = data.load(name, n)
        except FileNotFoundError as error:
            yield skipped(TIMES_HEADER, case, error)
            continue
        few = table.rows(np.arange(200))
        if peer == JRIP and not has_weka():
            yield skipped(TIMES_HEADER, case, "no Weka")
            continue
        theirs, mine = [], []
        for turn in range(rounds):
            mine.append(ours(table, few).seconds)
            if turn == 0 or sum(theirs) < 20:
                theirs.append(learn(table, few).seconds)
        ratio = min(theirs) / min(mine)
        missed = [] if ratio >= FASTER[peer] else ["speed"]
        cells = (f"{min(theirs):.3g}", f"{min(mine):.3g}", f"{ratio:.1f}", f"{FASTER[peer]:g}")
        yield case, peer, *cells, verdict(missed)


def folds(wanted):
    """Yield a line per table, and their mean."""
    means = {name: [] for name in LEARNERS}
    for case in data.FILES:
        if not wanted(case):
            continue
        announce(f"{case}: ten folds")
        try:
            table = data.load(case, data.N_ADULT if case == "adult" else None)
        except FileNotFoundError as error:
            yield case, *[f"skipped: {error}"] * len(LEARNERS)
            continue
        parts = [(table.rows(train), table.rows(test)) for train, test in data.folds(table.y)]
        cells = []
        for name, learn in LEARNERS.items():
            outcomes = [learn(train, test) for train, test in parts]
            if None in outcomes:
                cells.append("not there")
                continue
            row = np.array([[o.accuracy, o.n_rules, o.n_conditions, o.seconds] for o in outcomes])
            means[name].append(row[:, :3].mean(axis=0))
            cells.append(cell(*row[:, :3].mean(axis=0)) + f" / {np.median(row[:, 3]):.3g}")
        yield case, *cells
    if len(means[OURS]) == len(data.FILES):
        yield "mean", *(cell(*np.mean(rows, axis=0)) if rows else "–" for rows in means.values())


def cell(accuracy, n_rules, n_conditions):
    """Return a cell of the table."""
    return f"{accuracy:.3f} / {n_rules:.1f} / {n_conditions:.1f}"


def lists_of(case):
    """Return {name: rule list}, scikit-learn's tree, and the rows to predict."""
    from sklearn.tree import DecisionTreeClassifier

    _, rules, X, y, grown, rows = grown_on(case)
    limits = TREES[case][1]
    peer = DecisionTreeClassifier(
        max_depth=limits.get("max_depth"), max_leaf_nodes=limits.get("max_leaves"), random_state=0
    ).fit(X, y)
    listed = rules.extract(grown)
    lists = {
        "rules": listed,
        "simplified": rules.simplify(listed, X, y, method="pessimistic"),
        "induced": rules.induce(X, y, rng=0),
    }
    return lists, peer, np.tile(rows, (20, 1)) if case == "spam" else rows


def predictions(rounds, wanted):
    """Yield a line per tree and data type."""
    predict = require("rules", "predict").predict
    for case in PREDICTED:
        if not wanted(f"predict {case}"):
            continue
        announce(f"predict {case}")
        lists, peer, found = lists_of(case)
        for dtype in ("float32", "float64"):
            X = found.astype(dtype)
            calls = {name: functools.partial(predict, one, X, n_threads=1) for name, one in lists.items()}
            calls["scikit-learn"] = functools.partial(peer.predict, X)
            with on_threads(calls, 1):
                seconds = sorted_seconds(calls, rounds)
            theirs = seconds["scikit-learn"][0]
            ratios = {name: theirs / seconds[name][0] for name in lists}
            yield (
                case,
                f"{len(X)} {dtype}",
                str(peer.get_n_leaves()),
                f"{theirs * 1e3:.1f}",
                *(f"{ratio:.2f}" for ratio in ratios.values()),
                "≥ 1",
                verdict([name for name, ratio in ratios.items() if ratio < 1]),
                remarks_cell(seconds),
            )
