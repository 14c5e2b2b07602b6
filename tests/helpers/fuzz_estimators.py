"""The estimators for the fuzz tests: each as one function, which fits and then asks all that there is to ask.

Its parameters are X, y, weights, new points, and those of the estimator; `TABLE` says how they are drawn.
"""

import inspect

import fuzzing as f
from fuzz_table import (
    CACHE,
    COUNT,
    FEW_STEPS,
    LAYERS,
    POSITIVE,
    SHARE,
    TOL,
)
from fuzzing import Kind, scalar_kind

from kernelrules import estimators

_QUESTIONS = ("predict", "predict_proba", "decision_function", "score_samples")


def _asked(cls):
    """A function of the estimator's parameters and the data: the answers about old and new points."""

    def call(X, y, new, sample_weight=None, **parameters):
        fitted = cls(**parameters).fit(X, y, sample_weight=sample_weight)
        answers = {name: getattr(fitted, name) for name in _QUESTIONS if hasattr(fitted, name)}
        return {name: (answer(X), answer(new)) for name, answer in answers.items()}

    data = [p for p in inspect.signature(call).parameters.values() if p.kind is not p.VAR_KEYWORD]
    every = (*data, *inspect.signature(cls).parameters.values())
    call.__signature__ = inspect.Signature([p.replace(kind=p.KEYWORD_ONLY) for p in every])
    return call


FUNCTIONS = {f"estimators.{name}": _asked(getattr(estimators, name)) for name in estimators.__all__}

_POINTS = {"X": f.X_ANY, "new": f.X_ANY, "sample_weight": f.WEIGHTS, "n_threads": f.THREADS}
_ROWS = {"X": f.X_TABLE, "new": f.X_TABLE, "sample_weight": f.WEIGHTS, "n_threads": f.THREADS, "random_state": f.RNG}
_KERNEL = {
    "kernel": scalar_kind("rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed", f.inner),
    "gamma": scalar_kind("scale", "auto", 0.5, 1e-8, 1e8),
    "degree": scalar_kind(2, 3, without=(2**70, 1e300)),
    "coef0": scalar_kind(0.0, 1.0),
}
_MACHINE = {
    **_POINTS, **_KERNEL, "nu": scalar_kind(None, 0.3), "tol": TOL, "max_iter": FEW_STEPS, "cache_size": CACHE,
    "C": scalar_kind(1.0, 0.1, 1e6),
}  # fmt: skip
_TREE = {
    **_ROWS, "y": f.LABELS, "criterion": scalar_kind("gini", "entropy", "squared_error"),
    "max_depth": LAYERS["max_depth"],
    "min_samples_split": scalar_kind(2, 3, 0.5), "min_samples_leaf": scalar_kind(1, 2),
    "min_weight_fraction_leaf": scalar_kind(0.0, 0.1), "max_features": scalar_kind(None, "sqrt", 1, 0.5),
    "max_leaf_nodes": LAYERS["max_leaves"], "min_impurity_decrease": LAYERS["min_gain"],
    "class_weight": f.CLASS_WEIGHT, "ccp_alpha": scalar_kind(0.0, 0.01), "monotonic_cst": scalar_kind(None),
    "categorical_features": LAYERS["categorical"], "missing": LAYERS["missing"],
}  # fmt: skip

TABLE = {
    "estimators.GraphClassifier": {
        **_POINTS, "y": f.LABELS, "n_neighbors": scalar_kind(1, 2, 7), "alpha": POSITIVE,
        "kernel": scalar_kind("rbf", "rbf", "knn", lambda d: 1 / (1 + d), lambda d: None, f.raising),
        "gamma": scalar_kind("neighbours", "neighbours", "scale", "auto", 0.5), "normalised": f.FLAG,
        "decide": scalar_kind("largest", "excess"),
        "unlabelled": scalar_kind(-1, None, "no"), "unreached": scalar_kind("prior", "error"),
    },
    "estimators.KernelRidge": {
        **_POINTS, **_KERNEL, "y": f.TARGETS, "alpha": POSITIVE, "fit_intercept": f.FLAG,
        "solver": scalar_kind("auto", "exact", "cg"),
    },
    "estimators.KernelSVC": {
        **_MACHINE, "y": f.LABELS, "multiclass": scalar_kind("ovo", "ovr"), "class_weight": f.CLASS_WEIGHT,
        "decision_function_shape": scalar_kind("ovr", "ovo"),
    },
    "estimators.KernelSVR": {**_MACHINE, "y": f.TARGETS, "epsilon": scalar_kind(0.1, 0.0, 5)},
    "estimators.OneClassKernel": {**_MACHINE, "y": Kind(lambda draw, case: None, f.LABELS.bad), "nu": SHARE},
    "estimators.PrunedTreeClassifier": {
        **_TREE, "cv": scalar_kind(2, 3), "rule": scalar_kind("1se", "min"),
    },
    "estimators.RuleListClassifier": {
        **_ROWS, "y": f.LABELS, "prune": f.FLAG, "grow_share": SHARE, "optimise": COUNT,
        "tries": scalar_kind(None, 1, 3, without=(2**70, 1e300)), "min_margin": scalar_kind(0.0, 1.0),
        "min_weight": scalar_kind(1.0, 2), "max_rules": scalar_kind(None, 0, 1, 5),
        "max_conditions": scalar_kind(None, 0, 1, 5), "class_order": f.CLASS_ORDER, "class_weight": f.CLASS_WEIGHT,
        "categorical_features": LAYERS["categorical"], "missing": scalar_kind("fail", "error", "extra"),
    },
    "estimators.TreeClassifier": _TREE,
    "estimators.TreeRegressor": {
        **_TREE, "y": f.TARGETS, "criterion": scalar_kind("squared_error", "absolute_error", "poisson"),
        "leaf": LAYERS["leaf"],
    },
}  # fmt: skip
