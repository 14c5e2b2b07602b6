"""Support vector machines against scikit-learn and scikit-learn-intelex: part of peers.py.

All contenders train to tolerance 1e-3 on the same float64 data, each with its default cache unless --cache-mb is
given. scikit-learn-intelex ("intelex") is left out if it is not installed; its time for the same data in float32 has
a separate column. A contender that has used 20 seconds skips the remaining rounds, which is a remark: scikit-learn's
long fits run once.

Objectives are those of the dual problem, to be minimised, computed here from every solver's coefficients, in float64
and with kernel values from numpy. The table shows their difference from scikit-learn's, relative to it, for the worst
machine if there are several; a minus sign is better. Coefficients outside their bounds, or with a nonzero sum, give a
remark. For ν-SVC they are first scaled back to the sum ν·n, so that different estimates of ρ do not matter.

Prediction uses the machine that each contender has trained. If the data have fewer remaining rows than are predicted,
they are repeated. One-vs-one labels may differ for tied votes: scikit-learn takes the first class, kernelrules the
summed confidence. Tuning: GridSearchCV on two processes, with its own folds; both train once more on all data at the
end.

A problem that exceeds the cache, and with --memory some more, are trained in separate processes, and the peak of
memory is relative to the memory before: interpreter, libraries and data.

Data that are not part of the package are in the shared folder; without it their rows are marked as skipped.
"""

import json
import sys
from functools import partial

import numpy as np

from . import _svm_data as data
from ._common import require
from ._peers import (
    ENOUGH_SECONDS,
    INTELEX,
    OURS,
    SKLEARN,
    THREADS,
    Table,
    announce,
    intelex,
    measured_alone,
    on_threads,
    remarks_cell,
    rows_of_data,
    sorted_seconds,
    verdict,
    with_peak,
)
from ._svm_peers import INTELEX_SINGLE, TOLERANCE, Problem, complaints, contenders, objectives

ROUNDS = 5
MOST_WORSE = 1e-5  # relative difference of objectives; solvers of this tolerance differ by about a tenth of it
N_WARM_UP = 300
N_PREDICTED = 10000
TIMES = (
    "case",
    "scikit-learn, s",
    "ours, s",
    "ours / scikit-learn",
    "goal",
    "ours / intelex",
    "ours / intelex float32",
)
FIT_HEADER = (*TIMES, "objective, ours", "objective, intelex", "verdict", "remarks")
PREDICT_HEADER = (*TIMES, "labels unlike scikit-learn's, ours", "intelex", "verdict", "remarks")
TUNE_HEADER = ("case", "GridSearchCV, s", "ours, s", "× faster", "goal", "its best", "our best", "verdict", "remarks")
MEMORY_HEADER = (
    "case", "who", "cache, MB", "s", "beyond the data, MB", "goal", "objective above the lowest", "verdict",
)  # fmt: skip
TUNE_CASE = "tune spam 5×5 grid, five folds"
TUNE_CS = (0.1, 1.0, 10.0, 100.0, 1000.0)
TUNE_GAMMAS = (0.001, 0.004, 0.016, 0.064, 0.256)
LEAST_TUNE = 6.0
# In addition to the cache: the data twice, because a solver may need another layout, and a Gram matrix.
MOST_COPIES, MOST_EXTRA_MB = 2, 64


def even_odd(X, y):
    """Return digits as two classes."""
    return X, y % 2


def first(n, X, y):
    """Return the first n rows."""
    return X[:n], y[:n]


SPAM = {"load": data.spam, "gamma": 1 / 57}
DIGITS = {"gamma": 0.02, "parameters": {"C": 10.0}}
CLOUDS = {"load": partial(data.clusters, 20000, 50), "parameters": {"C": 1.0}}
WAVE = {"load": partial(data.response, 5000), "kind": "svr", "gamma": 0.1}
PROBLEMS = [
    Problem("spam C=1 3601×57", goal=0.30, parameters={"C": 1.0}, **SPAM),
    Problem("spam C=100 3601×57", goal=0.40, parameters={"C": 100.0}, **SPAM),
    Problem("MNIST even/odd 4000×784", lambda: first(4000, *even_odd(*data.mnist())), 0.12, **DIGITS),
    Problem("MNIST ten classes, one-vs-one 4000×784", lambda: first(4000, *data.mnist()), 0.20, **DIGITS),
    Problem("synthetic RBF 20000×50", goal=0.12, gamma=1 / 50, **CLOUDS),
    Problem("sparse text, linear 10000×20000", partial(data.text, 10000), 0.035, parameters={"C": 1.0}),
    Problem("Reuters earn, sparse, linear 9603×7945", data.reuters, parameters={"C": 1.0}),
    Problem("synthetic linear 20000×50", goal=0.06, **CLOUDS),
    Problem("ε-SVR C=1 5000×10", goal=0.25, parameters={"C": 1.0, "epsilon": 0.1}, **WAVE),
    Problem("ε-SVR C=10 5000×10", goal=0.10, parameters={"C": 10.0, "epsilon": 0.1}, **WAVE),
    Problem("ν-SVC 10000×50", partial(data.clusters, 10000, 50), 0.12, "nu_svc", 1 / 50, {"nu": 0.3}),
    Problem("a9a sparse RBF 32561×123", data.a9a, gamma=1 / 123, parameters={"C": 1.0}),
    Problem("ijcnn1 20000×22", data.ijcnn1, gamma=2.0, parameters={"C": 32.0}),
    Problem("letter 26 classes, one-vs-one 20000×16", data.letter, gamma=1 / 16, parameters={"C": 10.0}),
]
# The number of training rows; the others are predicted.
PREDICTIONS = [
    (Problem("prediction, binary 5000×50", partial(data.clusters, 15000, 50), 0.06, "svc", 1 / 50, {"C": 1.0}), 5000),
    (Problem("prediction, binary, MNIST even/odd", lambda: even_odd(*data.mnist()), 0.06, **DIGITS), 4000),
    (Problem("prediction, one-vs-one, MNIST", data.mnist, 0.05, **DIGITS), 4000),
]
# The cache in MB: less than a float32 Gram matrix.
BEYOND_CACHE = [
    (Problem("RBF 60000×50 beyond the cache", partial(data.clusters, 60000, 50), None, "svc", 1 / 50, {"C": 1.0}), 200)
]
MEMORY = [(PROBLEMS[0], 20), (PROBLEMS[3], 20), (PROBLEMS[4], 200), *BEYOND_CACHE]


def tables(options, wanted):
    """Return the tables of training, prediction, tuning and problems beyond the cache; with --memory, of peaks."""
    if options.memory:
        return [Table("SVM training: peak memory", MEMORY_HEADER, partial(memory_rows, MEMORY, options.limit, wanted))]
    rounds = options.rounds or ROUNDS
    fit = partial(fit_cells, rounds, options.cache_mb)
    return [
        Table("SVM training", FIT_HEADER, partial(rows_of_data, PROBLEMS, FIT_HEADER, wanted, fit)),
        Table(f"SVM prediction of {N_PREDICTED} points", PREDICT_HEADER, partial(predict_rows, rounds, wanted)),
        Table("Choosing C and γ", TUNE_HEADER, partial(tune_rows, rounds, wanted)),
        Table("SVM beyond the cache", MEMORY_HEADER, partial(memory_rows, BEYOND_CACHE, options.limit, wanted)),
    ]


def cells_of_times(problem, seconds, missed):
    """Return the columns shared by the tables of training and prediction; append missed goals to `missed`."""
    best = {name: times[0] for name, times in seconds.items()}
    share = best[OURS] / best[SKLEARN]
    if problem.goal and share > problem.goal:
        missed.append("goal")
    if share > 1:
        missed.append("scikit-learn")
    if best[OURS] > best.get(INTELEX, np.inf):
        missed.append("intelex")
    return (
        problem.case,
        f"{best[SKLEARN]:.3g}",
        f"{best[OURS]:.3g}",
        f"{share:.3f}",
        f"≤ {problem.goal:g}" if problem.goal else "faster than both",
        *(f"{best[OURS] / best[name]:.2f}" if name in best else "not installed" for name in (INTELEX, INTELEX_SINGLE)),
    )


def fit_cells(rounds, cache_mb, problem, X, y):
    """Return the line of a problem."""
    values, remarks, missed = {}, [], []

    def look(name, fitted):
        remarks.extend(complaints(problem, len(y), name, fitted))
        if name != INTELEX_SINGLE:
            values[name] = objectives(problem, X, y, fitted)

    with on_threads(contenders(problem, X[:N_WARM_UP], y[:N_WARM_UP], cache_mb)):
        seconds = sorted_seconds(contenders(problem, X, y, cache_mb), rounds, ENOUGH_SECONDS, look)
    above = {name: relative(values[name], values[SKLEARN]) for name in values}
    times = cells_of_times(problem, seconds, missed)
    if above[OURS] > MOST_WORSE:
        missed.append("objective")
    return (
        *times,
        *(f"{above[name]:+.1e}" if name in above else "not installed" for name in (OURS, INTELEX)),
        verdict(missed),
        remarks_cell(seconds, remarks),
    )


def relative(values, references):
    """Return the largest difference from the references, relative to their magnitude."""
    return float(np.max((values - references) / np.abs(references)))


def predict_rows(rounds, wanted):
    """Yield the lines of the table of prediction."""
    for problem, n_train in PREDICTIONS:
        yield from rows_of_data([problem], PREDICT_HEADER, wanted, partial(predict_cells, rounds, n_train))


def predict_cells(rounds, n_train, problem, X, y):
    """Return the line of a machine."""
    points = X[n_train:][np.arange(N_PREDICTED) % (len(X) - n_train)]
    X, y = X[:n_train], y[:n_train]
    predict = require("svm", "predict").predict
    fitted = {name: call() for name, call in contenders(problem, X, y).items()}

    def calls(some):
        return {
            name: partial(predict, model, some)
            if name == OURS
            else partial(model.predict, some.astype(np.float32) if name == INTELEX_SINGLE else some)
            for name, model in fitted.items()
        }

    labels, missed = {}, []
    remarks = [remark for name, model in fitted.items() for remark in complaints(problem, len(y), name, model)]
    with on_threads(calls(points[:N_WARM_UP])):
        seconds = sorted_seconds(calls(points), rounds, ENOUGH_SECONDS, labels.__setitem__)
    unlike = {name: int(np.count_nonzero(found != labels[SKLEARN])) for name, found in labels.items()}
    times = cells_of_times(problem, seconds, missed)
    return (
        *times,
        *(str(unlike[name]) if name in unlike else "not installed" for name in (OURS, INTELEX)),
        verdict(missed),
        remarks_cell(seconds, remarks),
    )


def tune_rows(rounds, wanted):
    """Yield the line of tuning C and γ."""
    if wanted(TUNE_CASE):
        announce(TUNE_CASE)
        yield tune_cells(*data.spam(), rounds)


def tune_cells(X, y, rounds):
    """Return the line of tuning for these data."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    tune = require("svm", "tune").tune
    grid = {"C": TUNE_CS, "gamma": TUNE_GAMMAS}
    best, errors = {}, {}

    def calls(X, y):
        return {
            OURS: partial(tune, X, y, Cs=TUNE_CS, gammas=TUNE_GAMMAS, folds=5, rng=0, n_threads=THREADS),
            # its processes stay alive: the warm-up call starts them
            SKLEARN: lambda: GridSearchCV(SVC(tol=TOLERANCE), grid, cv=5, n_jobs=THREADS).fit(X, y),
        }

    def look(name, found):
        if name == OURS:
            best[name], errors[name] = found.best, (found.mean.min(), found.se.flat[found.mean.argmin()])
        else:
            best[name], errors[name] = found.best_params_, (1 - found.best_score_, 0.0)

    with on_threads(calls(X[:N_WARM_UP], y[:N_WARM_UP])):
        seconds = sorted_seconds(calls(X, y), rounds, ENOUGH_SECONDS, look)
    faster = seconds[SKLEARN][0] / seconds[OURS][0]
    missed = ["speed"] if faster < LEAST_TUNE else []
    # the folds differ, and so do the errors; more than two standard errors are not explained by that
    missed += ["error"] if errors[OURS][0] > errors[SKLEARN][0] + 2 * errors[OURS][1] else []
    return (
        TUNE_CASE,
        f"{seconds[SKLEARN][0]:.3g}",
        f"{seconds[OURS][0]:.3g}",
        f"{faster:.1f}",
        f"≥ {LEAST_TUNE:g}",
        *(f"C={best[who]['C']:g}, γ={best[who]['gamma']:g}: {errors[who][0]:.2%}" for who in (SKLEARN, OURS)),
        verdict(missed),
        remarks_cell(seconds),
    )


def memory_rows(cases, limit, wanted):
    """Yield the lines of these problems with their caches, one per contender."""
    for problem, cache_mb in (pair for pair in cases if wanted(pair[0].case)):
        found = {}
        for who in (OURS, SKLEARN, INTELEX) if intelex("svm") else (OURS, SKLEARN):
            announce(f"{problem.case}, {who}")
            found[who] = measured_alone("peers_svm", (problem.case, who, str(cache_mb)), limit)
        reached = [report["objectives"] for report in found.values() if "objectives" in report]
        for who, report in found.items():
            yield memory_cells(problem.case, who, cache_mb, report, reached)


def memory_cells(case, who, cache_mb, report, reached):
    """Return the line of one contender; `reached` holds the objectives of all."""
    if "remark" in report:
        return case, who, f"{cache_mb}", *["–"] * (len(MEMORY_HEADER) - 4), report["remark"]
    most = cache_mb + MOST_COPIES * report["data"] + MOST_EXTRA_MB
    above = relative(np.array(report["objectives"]), np.min(reached, axis=0))
    missed = (["memory"] if report["peak"] > most else []) + (["objective"] if above > MOST_WORSE else [])
    return (
        case,
        who,
        f"{cache_mb}",
        f"{report['seconds']:.3g}",
        f"{report['peak']:.0f}",
        f"≤ {most:.0f}" if who == OURS else "–",
        f"{above:+.1e}",
        verdict(missed) if who == OURS else "–",
    )


def measure(case, who, cache_mb):
    """Train once in this process, after a small warm-up problem."""
    problem = next(problem for problem, _ in MEMORY if problem.case == case)
    try:
        X, y = problem.load()
    except FileNotFoundError as error:
        return {"remark": f"skipped: {error}"}
    contenders(problem, X[:N_WARM_UP], y[:N_WARM_UP], cache_mb)[who]()
    fitted, seconds, peak = with_peak(contenders(problem, X, y, cache_mb)[who])
    return {
        "seconds": seconds,
        "peak": peak,
        "data": X.nbytes / 1e6,
        "objectives": objectives(problem, X, y, fitted).tolist(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:3], int(sys.argv[3]))))
