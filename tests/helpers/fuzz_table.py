"""For every public function how the fuzz tests draw its arguments: name, then a kind for each parameter.

test_fuzz.py fails where a public function, or a parameter of one, is not here.
"""

import fuzzing as f
import gram_oracle
import numpy as np
from fuzz_models import WIDTH, calibrated, erms, grown, lists, machines, maps, ridge_paths, ridges, trees_and_lists
from fuzzing import Kind, hostile_array, hostile_scalar, laid_out, numbers, pick, scalar_kind

from kernelrules import export


def _of_another_kind(draw, case):
    everything = [machines, calibrated, ridges, erms, maps, grown, lists]
    return pick(draw, hostile_scalar, lambda draw, case: next(iter(pick(draw, *everything)().values())))(draw, case)


def model(make):
    return Kind(f.model_kind(make).good, _of_another_kind)


# ---- kinds that only some functions have --------------------------------------------------------------------------


def _square(draw, case, values):
    form = pick(draw, "dense", "dense", "sparse")
    return f.sparse_form(draw, values) if form == "sparse" else laid_out(draw, values)


def _edges(draw, case):
    """Weights of the edges between case.n + 2 points."""
    n = case.n + 2
    values = np.abs(numbers(draw, case, (n, n))) * (case.rng.random((n, n)) < pick(draw, 0.2, 0.6, 1.0))
    values = np.minimum(values, 1e100)
    np.fill_diagonal(values, 0.0)
    return _square(draw, case, np.maximum(values, values.T))


def _bad_edges(draw, case):
    n = case.n + 2
    match pick(draw, "array", "array", "one-sided", "negative", "sparse", "loops"):
        case "one-sided":
            return np.triu(np.ones((n, n)))
        case "negative":
            return -np.ones((n, n))
        case "sparse":
            case.has_nan = True
            return f.broken_sparse(draw, case)
        case "loops":
            return np.eye(n)
    return hostile_array(draw, case, (n, n))


def _labelled(draw, case):
    match pick(draw, "mask", "indices", "list"):
        case "mask":
            return np.arange(case.n + 2) < case.n
        case "list":
            return list(range(case.n))
    return case.rng.permutation(case.n + 2)[: case.n]


def _bad_labelled(draw, case):
    n = case.n
    return pick(
        draw, [n + 2] * n, [-1] * n, [0] * (n + 1), np.zeros(n + 2, dtype=bool), np.arange(n) + 0.5, "abc", None, [],
        np.arange(n).astype(np.uint64) + np.uint64(2**63), [[0, 1]], np.array(3), np.full(n, np.nan), [True], 2.0,
    )  # fmt: skip


def _semidefinite(draw, case):
    return laid_out(draw, f.gram_of(case, case.n))


def _other_rows(draw, case):
    return None if pick(draw, True, False) else f.X_ANY.good(draw, case)


def _out(draw, case):
    return pick(draw, None, np.empty((case.n, case.n)), np.empty((case.n, case.n), dtype="f4"))


def _bad_out(draw, case):
    made = np.empty((case.n, case.n))
    made.flags.writeable = False
    return pick(draw, made, np.empty((1, 1)), np.empty(case.n), [[0.0]], np.empty((case.n, case.n), dtype=">f8"), 3)


def _categorical(draw, case):
    return pick(draw, "from_dtype", "from_dtype", None, [], [0], np.array([0]))


def _bad_categorical(draw, case):
    return pick(draw, [99], [-1], ["nope"], [0.5], [True], "c0", [[0]], [0, 0], *f.HOSTILE_SCALARS)


def _monotone(draw, case):
    return pick(draw, None, [0] * case.p, [1] * case.p, np.full(case.p, -1))


def _bad_monotone(draw, case):
    return pick(draw, [2] * case.p, [1] * 9, [0.5] * case.p, "up", [np.nan] * case.p, [None] * case.p, 1, [[1]], {})


def _alpha(draw, case):
    return laid_out(draw, numbers(draw, case, (case.n,)))


def _numbers_list(*extra):
    good = scalar_kind([1.0], [0.1, 10.0], (1, 2.5, 1e6), np.array([0.5, 0.25]), np.geomspace(1e-8, 1e8, 5))
    bad = scalar_kind(*good_free_lists, *extra).good
    return Kind(good.good, lambda draw, case: pick(draw, bad, hostile_scalar)(draw, case))


good_free_lists = ([], [0.0], [-1.0], [np.nan], [np.inf], ["a"], [None], [[1.0, 2.0]], "12", [1e300], [5e-324], [1j])


def _blocks(draw, case):
    return [(f.X_ANY.good(draw, case), _alpha(draw, case)) for _ in range(pick(draw, 1, 2))]


def _bad_blocks(draw, case):
    one = (f.X_ANY.bad(draw, case), f.TARGETS.bad(draw, case))
    return pick(
        draw, [one], [(one[0], _alpha(draw, case))], [one[0]], one, [()], [], [None], hostile_scalar(draw, case)
    )


def _folds(draw, case):
    return pick(draw, 2, 3, np.arange(case.n) % 2, [(np.arange(1, case.n), np.arange(1))])


def _bad_folds(draw, case):
    n = case.n
    return pick(
        draw, np.zeros(n), [([0], [99])], [([], [])], [(0, 1)], "ab", np.full(n, np.nan), [1], [None], 10**6, [[0]],
        *f.HOSTILE_SCALARS,
    )  # fmt: skip


def _groups(draw, case):
    return pick(draw, None, np.arange(case.n) % 3, np.array(["a", "b"])[np.arange(case.n) % 2])


def _nodes(draw, case):
    return pick(draw, [], [0], [1], np.array([0, 1]), np.zeros(1, dtype=np.uint8))


def _bad_nodes(draw, case):
    return pick(draw, [-1], [999], [0.5], ["a"], [[0]], [2**70], [None], [True], [np.nan], *f.HOSTILE_SCALARS)


def _texts(draw, case):
    made = trees_and_lists()
    return export.to_json(made[pick(draw, *sorted(made))])


def _bad_texts(draw, case):
    """JSON with a part cut out, or a number, word or bracket exchanged."""
    text = _texts(draw, case)
    place = int(case.rng.integers(len(text)))
    match pick(draw, "cut", "end", "digit", "word", "other", "scalar", "number"):
        case "cut":
            return text[:place] + text[place + int(case.rng.integers(1, 30)) :]
        case "end":
            return text[:place]
        case "digit":
            digits = [i for i, letter in enumerate(text) if letter.isdigit()]
            at = digits[int(case.rng.integers(len(digits)))]
            return text[:at] + str(case.rng.integers(10)) + text[at + 1 :]
        case "word":
            return (
                text[:place]
                + pick(draw, "null", "{}", "[]", '"', "NaN", "1e999", "-1", "\\ud800", "\x00")
                + text[place:]
            )
        case "other":
            return pick(draw, "", "null", "[]", "{}", "3", '"a"', "[" * 500, '{"a": ' * 300, "\ufeff{}", "1e400")
        case "number":
            numbers = [i for i, letter in enumerate(text) if letter.isdigit() and not text[i - 1].isdigit()]
            at = numbers[int(case.rng.integers(len(numbers)))]
            return (
                text[:at] + pick(draw, "-1", "99999999999999999999999", "1e308", "0.5", "true", "null") + text[at + 1 :]
            )
    return hostile_scalar(draw, case)


NEW = f.rows_kind(p=WIDTH)
NEW_TABLE = f.rows_kind(missing=True, categories=True, p=WIDTH)
KERNEL = f.KERNEL
POSITIVE = scalar_kind(1.0, 0.1, 1000, 1e-8, np.float32(2.0))
SHARE = scalar_kind(0.5, 0.05, 0.9)
TOL = scalar_kind(1e-3, 1e-6, 0.5, 1e-12)
STEPS = scalar_kind(None, 1, 3, 200)
FEW_STEPS = scalar_kind(1, 3, 200, without=(None, 2**70, 1e300))  # ten million take seconds, where nothing converges
CACHE = scalar_kind(None, 1, 0.01, 100)
FORM = scalar_kind("auto", "auto", "dual", "rkhs", "kernel", "features")
UNSEEN, ALLOWED = scalar_kind("larger", "error"), scalar_kind("allow", "error")
EXECUTOR = Kind(lambda draw, case: None, hostile_scalar)
COUNT = scalar_kind(1, 2, 3, without=(2**70, 1e300))  # so many are made, if asked for
WARM = model(machines)
RUN = {"n_threads": f.THREADS, "callback": f.CALLBACK}
EVERYWHERE = {
    **RUN,
    "executor": EXECUTOR,
    "progress": scalar_kind(False, without=(True,)),
}  # parameters that mean the same wherever they are
ELSEWHERE = {"persist", "plot"}  # modules that write files and draw: tests of their own give them hostile input
SOLVER = {"kernel": KERNEL, "sample_weight": f.WEIGHTS, "tol": TOL, "max_iter": FEW_STEPS, "cache_mb": CACHE, **RUN}
LOSS = scalar_kind(None, None, "zero_one", "gini", "entropy", "squared_error", "absolute_error", "poisson")
OWN_LOSS = scalar_kind("zero_one", lambda y, told: np.abs(y - told), lambda y, told: (y != told) * 2, f.raising)
LAYERS = {
    "criterion": scalar_kind(
        "gini", "gini", "entropy", "misclassification", "gain_ratio", "squared_error", "absolute_error", "poisson",
        lambda P: 1 - (P**2).sum(axis=1),
    ),
    "growth": scalar_kind("depth", "best"),
    "max_depth": scalar_kind(None, 0, 1, 3),
    "max_leaves": scalar_kind(None, 1, 2, 5),
    "min_split": scalar_kind(2, 3, 5),
    "min_leaf": scalar_kind(1, 2, 5),
    "min_share": scalar_kind(0.0, 0.1, 0.5),
    "min_gain": scalar_kind(0.0, 0.01, 1),
    "chi2": scalar_kind(None, 0.05, 1.0),
    "class_weight": f.CLASS_WEIGHT,
    "categorical": Kind(_categorical, _bad_categorical),
    "subsets": scalar_kind("best", "one"),
    "missing": scalar_kind("extra", "zero", "impute", "surrogate", "fractional", "error"),
    "leaf": scalar_kind("constant", "median", "linear"),
    "splits": scalar_kind("axis", "oblique"),
    "monotone": Kind(_monotone, _bad_monotone),
    "max_features": scalar_kind(None, 1, 0.5, "sqrt", "log2"),
}  # fmt: skip
NAMES, CLASS_NAMES = f.names_kind(WIDTH), f.names_kind(2)
COUNTED = {
    "n_leaves": COUNT, "n_features": COUNT, "n": COUNT, "n_classes": scalar_kind(2, 3),
    "categories": scalar_kind((), [2], (3, 4)),
}  # fmt: skip
DRAWN = {"feature_names": NAMES, "class_names": CLASS_NAMES, "exact": f.FLAG}
ANY_NUMBERS = Kind(lambda draw, case: pick(draw, 1.5, numbers(draw, case, (case.n,)), [[1, -2]], -0.0), f.TARGETS.bad)
PATH = {"X": f.X_ANY, "y": f.TARGETS_OR_SEVERAL, "kernel": KERNEL, "form": FORM, "sample_weight": f.WEIGHTS}
PARAMETERS = {
    "gamma": scalar_kind(0.5, "scale", "auto"), "coef0": scalar_kind(0.0, -1, 2), "degree": scalar_kind(0, 3, 4.0),
}  # fmt: skip
KERNEL_CLASSES = {
    f"kernels.{cls.__name__}": {name: PARAMETERS[name] for name in cls.row.parameters} for cls in gram_oracle.KERNELS
}

TABLE = {
    "get_include": {},
    **KERNEL_CLASSES,
    "kernels.Precomputed": {},
    "kernels.Kernel": {},
    "kernels.diagonal": {"X": f.X_ANY, "kernel": KERNEL, "dtype": f.DTYPE},
    "kernels.feature_map": {"kernel": KERNEL, "n_features": scalar_kind(1, 3, without=(2**70, 1e300))},
    "kernels.gram": {
        "X": f.X_ANY, "Z": Kind(_other_rows, f.X_ANY.bad), "kernel": KERNEL,
        "out": Kind(_out, _bad_out), "dtype": f.DTYPE, **RUN,
    },
    "kernels.nystroem": {"X": f.X_ANY, "kernel": KERNEL, "n_components": scalar_kind(1, 2, 100), "rng": f.RNG, **RUN},
    "kernels.FeatureMap.transform": {"self": Kind(f.model_kind(maps).good, f.model_kind(maps).good), "X": NEW, **RUN},
    "kernels.random_fourier": {"kernel": KERNEL, "n_features": COUNT, "n_components": COUNT, "rng": f.RNG},
    "bounds.covering": dict.fromkeys(("a", "b", "epsilon", "n"), POSITIVE),
    "bounds.margin_bound": {
        "margins": f.TARGETS, "trace": POSITIVE, "norm": POSITIVE, "gamma": POSITIVE, "eta": SHARE,
        "norm_fixed": f.FLAG, "unit": POSITIVE, "loss": scalar_kind("ramp", "hinge", "logistic"),
    },
    "bounds.of_model": {
        "model": model(machines), "X": NEW, "y": f.LABELS, "gamma": POSITIVE, "eta": SHARE, "unit": POSITIVE,
        "loss": scalar_kind("ramp", "hinge", "logistic"), "n_threads": f.THREADS,
    },
    "bounds.of_tree": {"t": model(grown), "X": NEW_TABLE, "y": f.LABELS, "eta": SHARE},
    "bounds.rademacher": {"trace": POSITIVE, "n": COUNT, "a": POSITIVE},
    "bounds.rademacher_monte_carlo": {
        "K": Kind(_semidefinite, f.X_ANY.bad), "a": POSITIVE, "n_draws": scalar_kind(2, 10, without=(2**70, 1e300)),
        "rng": f.RNG, **RUN,
    },
    "bounds.tree": {**COUNTED, "empirical": SHARE, "eta": SHARE, "leaves_fixed": f.FLAG},
    "bounds.tree_labelings": COUNTED,
    "bounds.tree_rademacher": {"depth": COUNT, "n_tests": COUNT, "n": COUNT, "weight": POSITIVE},
    "datasets.lecture_table": {},
    "datasets.spambase": {},
    **{f"losses.{name}": {"u": ANY_NUMBERS} for name in
       ("exponential", "hinge", "logistic", "ramp", "squared", "squared_hinge", "zero_one")},
    "erm.fit": {
        "X": f.X_ANY, "y": f.LABELS_OR_TARGETS, "lam": POSITIVE, "kernel": KERNEL,
        "loss": scalar_kind("logistic", "squared", "squared_hinge", "exponential", "hinge", "ramp", "zero_one"),
        "sample_weight": f.WEIGHTS, "intercept": f.FLAG, "tol": TOL, "max_iter": STEPS, **RUN,
    },
    **{f"erm.{name}": {"fit": model(erms), "X": NEW, **RUN} for name in ("decision", "predict", "predict_proba")},
    "export.from_json": {"text": Kind(_texts, _bad_texts)},
    "export.to_json": {"t": model(trees_and_lists), "indent": scalar_kind(None, 0, 2, without=(2**70, 1e300))},
    "export.to_dot": {"t": model(trees_and_lists), **DRAWN},
    "export.to_mermaid": {"t": model(trees_and_lists), **DRAWN},
    "export.to_text": {"t": model(trees_and_lists), **DRAWN, "figures": f.FLAG},
    "export.to_python": {
        "t": model(trees_and_lists), "feature_names": NAMES, "name": scalar_kind("predict", "f", "class", "a b"),
    },
    "export.to_sql": {
        "t": model(trees_and_lists), "feature_names": NAMES, "table": scalar_kind(None, "rows", 'a"b'),
        "output": scalar_kind(None, 0, 1),
    },
    "graph.fit": {
        "W": Kind(_edges, _bad_edges), "y": f.LABELS_OR_TARGETS, "lam": POSITIVE,
        "labelled": Kind(_labelled, _bad_labelled), "normalised": f.FLAG, "sample_weight": f.WEIGHTS,
        "classify": scalar_kind(None, True, False), "decide": scalar_kind("largest", "excess"), "tol": TOL,
        "unreached": scalar_kind("error", "nan"), "solver": scalar_kind("auto", "direct", "cg"), "max_iter": STEPS,
        **RUN,
    },
    "graph.knn_graph": {
        "X": f.X_ANY, "k": scalar_kind(1, 2, 3),
        "weight": scalar_kind("binary", "rbf", lambda d: d + 1, lambda d: None, f.raising),
        "symmetrise": scalar_kind("union", "mutual"), "gamma": scalar_kind("neighbours", 0.5, "scale"),
        "method": scalar_kind("auto", "tree", "tiles"), **RUN,
    },
    "graph.laplacian": {"W": Kind(_edges, _bad_edges), "normalised": f.FLAG},
    "prune.chi2": {"tree": model(grown), "level": SHARE},
    "prune.cost_complexity": {"tree": model(grown), "alpha": scalar_kind(0.0, 0.01, 1), "loss": LOSS},
    "prune.cost_complexity_path": {"tree": model(grown), "loss": LOSS},
    "prune.cross_validate": {
        "X": f.X_TABLE, "y": f.LABELS_OR_TARGETS, "folds": Kind(_folds, _bad_folds), "rule": scalar_kind("1se", "min"),
        "rng": f.RNG, "executor": EXECUTOR, "loss": LOSS, "measure": LOSS, "stratified": f.FLAG,
        "groups": Kind(_groups, f.LABELS.bad), **RUN, **LAYERS, "sample_weight": f.WEIGHTS,
    },
    "prune.mdl": {"tree": model(grown), "precision": scalar_kind(None, 0.01, 3)},
    "prune.pessimistic": {
        "tree": model(grown), "confidence": SHARE, "raising": f.FLAG, "X": NEW_TABLE, "y": f.LABELS_OR_TARGETS,
        "sample_weight": f.WEIGHTS, "callback": f.CALLBACK,
    },
    "prune.reduced_error": {
        "tree": model(grown), "X_val": NEW_TABLE, "y_val": f.LABELS_OR_TARGETS, "sample_weight": f.WEIGHTS, **RUN,
    },
    "prune.snip": {"tree": model(grown), "nodes": Kind(_nodes, _bad_nodes)},
    "prune.to_size": {
        "tree": model(grown), "n_leaves": scalar_kind(1, 2, 100), "loss": OWN_LOSS, "X": NEW_TABLE,
        "y": f.LABELS_OR_TARGETS, "sample_weight": f.WEIGHTS,
    },
    "ridge.fit": {
        **PATH, "lam": POSITIVE, "unlabelled": Kind(lambda draw, case: None, f.X_ANY.bad),
        "solver": scalar_kind("auto", "exact", "cg"), "intercept": f.FLAG, "tol": TOL,
        "max_iter": STEPS, "n_components": scalar_kind(None, 1, 5), "rng": f.RNG, "keep_factor": f.FLAG, **RUN,
    },
    "ridge.fit_blocks": {
        "blocks": Kind(_blocks, _bad_blocks), "lam": POSITIVE, "intercept": f.FLAG, "tol": TOL,
        "feature_map": Kind(lambda draw, case: None, hostile_scalar),
    },
    "ridge.path": {**PATH, "lams": _numbers_list(), "intercept": f.FLAG, **RUN},
    "ridge.at": {"path": model(ridge_paths), "i": scalar_kind(None, 0, 1), "tol": TOL, "n_threads": f.THREADS},
    "ridge.certificate": {
        "X": f.X_ANY, "y": f.TARGETS, "lam": POSITIVE, "kernel": KERNEL, "alpha": Kind(_alpha, f.TARGETS.bad),
        "sample_weight": f.WEIGHTS, "intercept": f.FLAG, "tol": TOL, "n_threads": f.THREADS,
    },
    "ridge.log_marginal_likelihood": {"fit": model(ridges), "n_threads": f.THREADS},
    "ridge.posterior": {
        "fit": model(ridges), "X": NEW, "diagonal": Kind(lambda draw, case: None, f.TARGETS.bad), **RUN,
    },
    "ridge.predict": {"fit": model(ridges), "X": NEW, **RUN},
    "rules.additive": {
        "X": f.X_TABLE, "y": f.LABELS_OR_TARGETS, "loss": scalar_kind("logistic", "squared"),
        "max_depth": scalar_kind(1, 2), "mean_leaves": scalar_kind(3.0, 6), "trees": COUNT, "subsample": SHARE,
        "min_leaf": scalar_kind(1, 5), "linear": f.FLAG, "max_rules": scalar_kind(None, 1, 5), "lams": _numbers_list(),
        "n_lams": COUNT, "ratio": SHARE, "folds": Kind(_folds, _bad_folds), "rule": scalar_kind("1se", "min"),
        "measure": scalar_kind("loss", "error"), "tol": TOL, "sample_weight": f.WEIGHTS,
        "categorical": Kind(_categorical, _bad_categorical), "missing": scalar_kind("extra", "error"),
        "feature_names": f.names_kind(), "class_names": CLASS_NAMES, "rng": f.RNG,
    },
    "rules.decision": {"model": model(lists), "X": NEW_TABLE, "unseen": ALLOWED},
    "rules.coverage": {"rs": model(lists), "X": NEW_TABLE, "unseen": ALLOWED, **RUN},
    "rules.decision_list": {
        "rs": model(lists), "order": scalar_kind("short", "support", "confidence", "given"),
        **{name: RUN[name] for name in RUN if name != "n_threads"},
    },
    "rules.extract": {
        "t": model(grown), "feature_names": NAMES, "class_names": CLASS_NAMES, "approximate": f.FLAG,
    },
    "rules.induce": {
        "X": f.X_TABLE, "y": f.LABELS, "prune": f.FLAG, "grow_share": SHARE, "optimise": COUNT, "variants": COUNT,
        "tries": scalar_kind(None, 1, 3, without=(2**70, 1e300)),
        "min_margin": scalar_kind(0.0, 1.0), "min_weight": scalar_kind(1.0, 2),
        "max_rules": scalar_kind(None, 0, 1, 5), "max_conditions": scalar_kind(None, 0, 1, 5),
        "class_order": f.CLASS_ORDER, "sample_weight": f.WEIGHTS, "categorical": Kind(_categorical, _bad_categorical),
        "missing": scalar_kind("fail", "error", "extra"), "feature_names": f.names_kind(),
        "class_names": CLASS_NAMES, "rng": f.RNG, **RUN,
    },
    "rules.predict": {"rs": model(lists), "X": NEW_TABLE, "unseen": ALLOWED, **RUN},
    "rules.predict_proba": {
        "rs": model(lists), "X": NEW_TABLE, "laplace": scalar_kind(0.0, 1.0), "unseen": ALLOWED, **RUN,
    },
    "rules.simplify": {
        "rs": model(lists), "X_val": NEW_TABLE, "y_val": f.LABELS_OR_TARGETS,
        "method": scalar_kind("validation", "pessimistic"), "confidence": SHARE, "sample_weight": f.WEIGHTS,
        **RUN,
    },
    "svm.budget": {
        "X": f.X_ANY, "y": f.LABELS, "budget": POSITIVE, "multiclass": scalar_kind("ovo", "ovr"), **SOLVER,
    },
    "svm.calibrate": {
        "model": model(machines), "X": NEW, "y": f.LABELS, "method": scalar_kind("platt", "isotonic"),
        "n_threads": f.THREADS,
    },
    "svm.decision": {"model": model(machines), "X": NEW, **RUN},
    "svm.margin": {"model": model(machines)},
    "svm.one_class": {"X": f.X_ANY, "nu": SHARE, **SOLVER},
    "svm.path": {
        "X": f.X_ANY, "y": f.LABELS, "Cs": _numbers_list(), "multiclass": scalar_kind("ovo", "ovr"),
        "class_weight": f.CLASS_WEIGHT, **SOLVER,
    },
    "svm.predict": {"model": model(machines), "X": NEW, **RUN},
    "svm.predict_proba": {"calibrated": model(calibrated), "X": NEW, "n_threads": f.THREADS},
    "svm.slacks": {"model": model(machines), "X": NEW, "y": f.LABELS_OR_TARGETS, "n_threads": f.THREADS},
    "svm.svc": {
        "X": f.X_ANY, "y": f.LABELS, "C": scalar_kind(1.0, 0.1, 1e6, np.inf), "nu": scalar_kind(None, 0.3),
        "multiclass": scalar_kind("ovo", "ovr"), "class_weight": f.CLASS_WEIGHT, "warm_start": WARM,
        "executor": EXECUTOR, **SOLVER,
    },
    "svm.svr": {
        "X": f.X_ANY, "y": f.TARGETS, "C": scalar_kind(1.0, 0.1, 1e6), "epsilon": scalar_kind(0.1, 0.0, 5),
        "nu": scalar_kind(None, 0.3), "warm_start": WARM, **SOLVER,
    },
    "svm.tune": {
        "X": f.X_ANY, "y": f.LABELS, "Cs": _numbers_list(), "gammas": scalar_kind(None, [0.5, 2.0]),
        "folds": Kind(_folds, _bad_folds), "rule": scalar_kind("min", "1se"), "rng": f.RNG, "executor": EXECUTOR,
        "multiclass": scalar_kind("ovo", "ovr"), "class_weight": f.CLASS_WEIGHT, "task": scalar_kind("svc", "svr"),
        "nu": scalar_kind(None, 0.5), "epsilon": POSITIVE, "measure": scalar_kind("squared_error", "absolute_error"),
        **SOLVER,
    },
    "tree.grow": {
        "X": f.X_TABLE, "y": f.LABELS_OR_TARGETS, "sample_weight": f.WEIGHTS, "rng": f.RNG, **LAYERS, **RUN,
    },
    "tree.apply": {"tree": model(grown), "X": NEW_TABLE, "unseen": UNSEEN, **RUN},
    "tree.decision_path": {"tree": model(grown), "X": NEW_TABLE, "unseen": UNSEEN, **RUN},
    "tree.importance": {"tree": model(grown)},
    "tree.predict": {"tree": model(grown), "X": NEW_TABLE, "unseen": UNSEEN, **RUN},
    "tree.predict_proba": {
        "tree": model(grown), "X": NEW_TABLE, "laplace": scalar_kind(0.0, 1.0), "unseen": UNSEEN, **RUN,
    },
}  # fmt: skip

MODELS = {"model", "calibrated", "fit", "t", "tree", "rs", "path"}  # parameters that take what was fitted
# Functions that take the one are given the other: the solver of machines.
ALWAYS = {"cache_mb": "max_iter", "cache_size": "max_iter"}
