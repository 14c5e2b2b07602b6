"""Cross-validated pruning against rpart and scikit-learn: part of peers.py, which describes the method.

All contenders grow a tree, compute its complexity path, and cross-validate its sizes with ten folds, on one thread.

- rpart is one call, rpart(y ~ ., xval = 10), which does all of this in C. It runs in R; the time is R's elapsed time
  of this call alone (system.time), with the data in memory. "as it comes" is the call with its defaults: cp = 0.01,
  so that most of the tree is never grown, and surrogates.
- scikit-learn computes the path, by impurity, and trees pruned with one alpha, but has no cross-validation of a path.
  "grid" follows its manual: cost_complexity_pruning_path on all rows; then, for the geometric mean of two neighbours,
  the score of DecisionTreeClassifier(ccp_alpha=mean) in every fold: one growth per fold and alpha. It is timed on
  every STEP-th alpha, and the time multiplied, because growing does not depend on alpha. "growths" is a lower bound
  for any method with its trees: one growth per fold and one for all rows, without a path or a prediction.

"alphas" is the length of the path of kernelrules, by errors. Leaves are those that the one-standard-error rule
chooses; each contender draws its own folds.

The second table is that of the book (Hastie, Tibshirani, Friedman: The Elements of Statistical Learning, section
9.2.5): its 3065 training and 1536 test e-mails, from the shared folder. Both use the same ten folds. "17 leaves" is
the largest tree of the path with at most 17 leaves, and for kernelrules also `to_size`, with exactly 17.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from . import _tree_data as data
from ._common import require
from ._peers import OURS, PAUSE_SECONDS, Table, announce, remarks_cell, rows_of_data, skipped, verdict

ROUNDS = 5
FOLDS = 10
STEP = 8
TEN = 10.0  # least speedup over scikit-learn's grid
RPART, GRID, GROWTHS = "rpart", "scikit-learn grid", "scikit-learn growths"
PEERS = (RPART, GRID, GROWTHS)
HEADER = (
    "case", "ours, s", *(f"{name}, s" for name in PEERS), *(f"× faster than {name}" for name in PEERS), "alphas",
    "leaves, ours", "leaves, rpart", "verdict", "remarks",
)  # fmt: skip
R_CALL = """
library(rpart)
given <- commandArgs(TRUE)
d <- read.csv(given[1])
if (given[2] == "class") d$y <- factor(d$y)
best <- Inf
for (i in 1:as.integer(given[4])) {
  set.seed(i)
  took <- system.time(m <- rpart(y ~ ., d, method = given[2], control = eval(parse(text = given[3]))))[["elapsed"]]
  best <- min(best, took)
}
t <- m$cptable
k <- which.min(t[, 4])
chosen <- min(which(t[, 4] <= t[k, 4] + t[k, 5]))
cat(sprintf('{"seconds": %.6f, "leaves": %d}', best, as.integer(t[chosen, 2] + 1)))
"""
BOOK_HEADER = (
    "spam, the book's split", "leaves, ours", "leaves, rpart", "1-SE, ours", "1-SE, rpart", "at most 17, ours",
    "at most 17, rpart", "to_size(17), ours",
)  # fmt: skip
R_BOOK = """
library(rpart)
given <- commandArgs(TRUE)
d <- read.csv(given[1])
d$y <- factor(d$y)
train <- d[d$fold >= 0, ]
m <- rpart(y ~ . - fold, train, parms = list(split = given[2]), cp = 0, minsplit = 2, minbucket = 1, maxsurrogate = 0,
           xval = train$fold + 1)
t <- m$cptable
k <- which.min(t[, 4])
told <- function(i) {
  small <- prune(m, cp = t[i, 1] * (1 + 1e-9))
  test <- d[d$fold < 0, ]
  sprintf('[%d, %.6f]', as.integer(t[i, 2] + 1), mean(predict(small, test, type = "class") != test$y))
}
one_se <- min(which(t[, 4] <= t[k, 4] + t[k, 5]))
cat(sprintf('{"leaves": %d, "1-SE": %s, "17": %s}', as.integer(max(t[, 2]) + 1), told(one_se),
            told(max(which(t[, 2] + 1 <= 17)))))
"""


@dataclass(frozen=True)
class Case:
    """The data, and the arguments of kernelrules.tree.grow, of rpart.control and of scikit-learn's class."""

    case: str
    load: Callable
    grow: dict = field(default_factory=dict)
    control: str = "rpart.control()"
    sklearn: dict | None = None
    grid: bool = True

    @property
    def of_classes(self):
        """Return whether it is a classification."""
        return self.grow.get("criterion") != "squared_error"


CASES = [
    Case(
        "spam 4601×57 to purity",
        data.spam,
        control="rpart.control(cp = 0, minsplit = 2, minbucket = 1, maxsurrogate = 0, maxcompete = 0)",
        sklearn={},
    ),
    Case(
        "spam, leaves of 7",
        data.spam,
        {"min_split": 20, "min_leaf": 7},
        "rpart.control(cp = 0, maxsurrogate = 0, maxcompete = 0)",
        {"min_samples_split": 20, "min_samples_leaf": 7},
    ),
    Case("spam, rpart as it comes", data.spam, {"min_split": 20, "min_leaf": 7}),
    Case(
        "California squared error 20433×8, leaves of 7",
        data.california,
        {"criterion": "squared_error", "min_split": 20, "min_leaf": 7},
        "rpart.control(cp = 0, maxsurrogate = 0, maxcompete = 0)",
        {"min_samples_split": 20, "min_samples_leaf": 7},
        grid=False,
    ),
]


def tables(options, wanted):
    """Return the table of times; memory is not measured."""
    if options.memory:
        return []
    rounds = options.rounds or ROUNDS
    return [
        Table(
            "Pruning by ten-fold cross-validation on one thread",
            HEADER,
            partial(rows_of_data, CASES, HEADER, wanted, partial(cells, rounds)),
        ),
        Table("The book's split of spam: leaves and test errors", BOOK_HEADER, partial(book_rows, wanted)),
    ]


def cells(rounds, case, X, y):
    """Return the line of a case, with the contenders measured alternately."""
    X, y = X.astype(np.float64), np.unique(y, return_inverse=True)[1] if case.of_classes else y
    result = ours(case, X, y)()
    with tempfile.TemporaryDirectory() as folder:
        contenders = {OURS: timed(ours(case, X, y))}
        if shutil.which("Rscript"):
            contenders[RPART] = rpart(case, X, y, Path(folder))
        if case.sklearn is not None:
            contenders |= sklearn_contenders(case, X, y)
        seconds, leaves = {name: [] for name in contenders}, "–"
        for turn in range(rounds):
            for name, call in contenders.items():
                if name == GRID and turn > 0:
                    continue  # it takes minutes
                time.sleep(PAUSE_SECONDS)
                took = call()
                if name == RPART:
                    took, leaves = took
                seconds[name].append(took)
    seconds = {name: sorted(times) for name, times in seconds.items()}
    faster = {name: times[0] / seconds[OURS][0] for name, times in seconds.items()}
    missed = [name for name, least in ((RPART, 1.0), (GRID, TEN)) if faster.get(name, np.inf) < least]
    return (
        case.case,
        *(f"{seconds[name][0]:.3g}" if name in seconds else "–" for name in (OURS, *PEERS)),
        *(f"{faster[name]:.1f}" if name in faster else "–" for name in PEERS),
        str(len(result.alphas)),
        str(result.tree.n_leaves),
        str(leaves),
        verdict(missed),
        remarks_cell({name: seconds[name] for name in seconds if name != GRID}),
    )


def timed(call):
    """Return a function that returns the seconds of a call."""

    def seconds():
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return seconds


def ours(case, X, y):
    """Return a function without arguments that grows, validates and prunes."""
    return partial(require("prune", "cross_validate").cross_validate, X, y, rng=0, n_threads=1, **case.grow)


def rpart(case, X, y, folder):
    """Return a function that runs R and returns the seconds of its call, by R's clock, and the chosen leaves."""
    (folder / "call.R").write_text(R_CALL)
    method = "class" if case.of_classes else "anova"
    command = ["Rscript", folder / "call.R", write_table(folder, X, y), method, case.control, "2"]

    def call():
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return told["seconds"], told["leaves"]

    return call


def sklearn_contenders(case, X, y):
    """Return the seconds of a grid over the path, if selected, and of growing alone."""
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    make = partial(DecisionTreeClassifier if case.of_classes else DecisionTreeRegressor, random_state=0, **case.sklearn)
    folds = (StratifiedKFold if case.of_classes else KFold)(FOLDS, shuffle=True, random_state=0)
    parts = list(folds.split(X, y))

    def growths():
        make().fit(X, y)
        for train, _ in parts:
            make().fit(X[train], y[train])

    def grid():
        start = time.perf_counter()
        alphas = np.unique(make().cost_complexity_pruning_path(X, y).ccp_alphas)
        path = time.perf_counter() - start
        prices = np.sqrt(alphas[:-1] * alphas[1:])
        start = time.perf_counter()
        for price in prices[::STEP]:
            for train, test in parts:
                make(ccp_alpha=price).fit(X[train], y[train]).score(X[test], y[test])
        return path + (time.perf_counter() - start) * len(prices) / len(prices[::STEP])

    return {GRID: grid, GROWTHS: timed(growths)} if case.grid else {GROWTHS: timed(growths)}


# ---- the book's split -----------------------------------------------------------------------------------------------


def book_rows(wanted):
    """Yield a line per criterion."""
    for criterion, split in (("gini", "gini"), ("entropy", "information")):
        if not wanted(f"spam book {criterion}"):
            continue
        announce(f"the book's split, {criterion}")
        try:
            X, y, test = data.book_spam()
        except FileNotFoundError as error:
            yield skipped(BOOK_HEADER, criterion, error)
        else:
            yield book_cells(criterion, split, X, y, test)


def book_cells(criterion, split, X, y, test):
    """Return the leaves and test errors of both."""
    prune, tree = require("prune", "cross_validate"), require("tree", "predict")
    folds = np.full(len(y), -1)
    folds[~test] = np.random.default_rng(0).permutation((~test).sum()) % FOLDS
    result = prune.cross_validate(X[~test], y[~test], folds=folds[~test], criterion=criterion)

    def said(pruned):
        return f"{pruned.n_leaves}: {np.mean(tree.predict(pruned, X[test]) != y[test]):.2%}"

    at_most = result.alphas[np.flatnonzero(result.n_leaves <= 17)[0]]
    theirs = rpart_on_book(split, X, y, folds) if shutil.which("Rscript") else None
    cell = {key: f"{theirs[key][0]}: {theirs[key][1]:.2%}" if theirs else "–" for key in ("1-SE", "17")}
    return (
        criterion,
        str(result.grown.n_leaves),
        str(theirs["leaves"]) if theirs else "–",
        said(result.tree),
        cell["1-SE"],
        said(prune.cost_complexity(result.grown, at_most)),
        cell["17"],
        said(prune.to_size(result.grown, 17)),
    )


def rpart_on_book(split, X, y, folds):
    """Return the output of R."""
    with tempfile.TemporaryDirectory() as folder:
        file = write_table(Path(folder), X, y, fold=folds)
        (Path(folder) / "book.R").write_text(R_BOOK)
        done = subprocess.run(
            ["Rscript", Path(folder) / "book.R", file, split], capture_output=True, text=True, check=True
        )
    return json.loads(done.stdout)


def write_table(folder, X, y, **more):
    """Write a file for R."""
    names = [*(f"x{j}" for j in range(X.shape[1])), "y", *more]
    table = np.column_stack([X, y, *more.values()])
    np.savetxt(folder / "data.csv", table, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    return folder / "data.csv"
