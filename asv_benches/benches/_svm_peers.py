"""SVM problems, their contenders, and the objective that each reaches, for peers_svm.py."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy import sparse

from ._common import rbf_or_linear, require
from ._peers import INTELEX, OURS, SKLEARN, THREADS, fell_back, intelex

TOLERANCE = 1e-3
INTELEX_SINGLE = f"{INTELEX} float32"
ESTIMATORS = {"svc": "SVC", "nu_svc": "NuSVC", "svr": "SVR"}
BLOCK = 1000


@dataclass(frozen=True)
class Problem:
    """A training problem: its data, the goal as a share of scikit-learn's time, the machine and its kernel."""

    case: str
    load: Callable
    goal: float | None = None
    kind: str = "svc"
    gamma: float | None = None  # of the RBF kernel; None is the linear kernel
    parameters: dict = field(default_factory=dict)


def our_fit(problem, X, y, cache_mb=None):
    """Return a function without arguments that trains the machine of kernelrules."""
    svm = require("svm", "svc", "svr")
    return partial(
        svm.svr if problem.kind == "svr" else svm.svc,
        X,
        y,
        kernel=rbf_or_linear(problem.gamma),
        tol=TOLERANCE,
        cache_mb=cache_mb,
        n_threads=THREADS,
        **problem.parameters,
    )


def their_fit(module, problem, X, y, cache_mb=None):
    """Return a function without arguments that trains a new scikit-learn estimator."""
    make = partial(
        getattr(module, ESTIMATORS[problem.kind]),
        kernel="linear" if problem.gamma is None else "rbf",
        gamma=problem.gamma or "scale",
        tol=TOLERANCE,
        **({} if cache_mb is None else {"cache_size": cache_mb}),
        **problem.parameters,
    )
    return lambda: make().fit(X, y)


def contenders(problem, X, y, cache_mb=None):
    """Return the training functions of all contenders, by name."""
    calls = {
        OURS: our_fit(problem, X, y, cache_mb),
        SKLEARN: their_fit(importlib.import_module("sklearn.svm"), problem, X, y, cache_mb),
    }
    if intelex("svm"):
        calls[INTELEX] = their_fit(intelex("svm"), problem, X, y, cache_mb)
        calls[INTELEX_SINGLE] = their_fit(intelex("svm"), problem, X.astype(np.float32), y, cache_mb)
    return calls


def machines(fitted):
    """Return the support rows and their coefficients, one row per machine, with pairs (0,1), (0,2)..."""
    if hasattr(fitted, "support"):
        return fitted.support, fitted.dual_coef
    packed = fitted.dual_coef_
    packed = (packed.toarray() if sparse.issparse(packed) else packed).astype(np.float64)
    if len(packed) == 1:
        return fitted.support_, packed
    # One-vs-one. The support vectors are ordered by class; those of class i have their coefficients against class j in
    # row j - 1 if i < j, and in row j if i > j.
    ends = np.cumsum(fitted.n_support_)
    of_class = [slice(end - n, end) for end, n in zip(ends, fitted.n_support_, strict=True)]
    pairs = [(i, j) for i in range(len(ends)) for j in range(i + 1, len(ends))]
    coefficients = np.zeros((len(pairs), packed.shape[1]))
    for row, (i, j) in zip(coefficients, pairs, strict=True):
        row[of_class[i]] = packed[j - 1, of_class[i]]
        row[of_class[j]] = packed[i, of_class[j]]
    return fitted.support_, coefficients


def kernel_values(X, Z, gamma):
    """Compute kernel values by numpy and scipy alone, in float64, independently of the contenders."""
    products = X @ Z.T
    products = products.toarray() if sparse.issparse(products) else products
    if gamma is None:
        return products
    squares = [np.asarray((part * part).sum(axis=1)).ravel() for part in (X, Z)]
    products *= 2
    products -= squares[0][:, None]
    products -= squares[1]
    return np.exp(gamma * np.minimum(products, 0))


def objectives(problem, X, y, fitted):
    """Return the dual objective of each machine, to be minimised, in float64."""
    support, coefficients = machines(fitted)
    vectors = X[support]
    squares = np.zeros(len(coefficients))
    for start in range(0, len(support), BLOCK):
        part = slice(start, start + BLOCK)
        values = kernel_values(vectors[part], vectors, problem.gamma) @ coefficients.T
        squares += (values * coefficients[:, part].T).sum(axis=0)
    sizes = np.abs(coefficients).sum(axis=1)
    if problem.kind == "nu_svc":
        return squares / 2 * (problem.parameters["nu"] * len(y) / sizes) ** 2
    if problem.kind == "svr":
        return squares / 2 - coefficients @ y[support] + problem.parameters["epsilon"] * sizes
    return squares / 2 - sizes


def complaints(problem, n, name, fitted):
    """Return remarks on results that make a contender's figures invalid or misleading."""
    found = fell_back(name, fitted)
    _, coefficients = machines(fitted)
    sizes = np.abs(coefficients).sum(axis=1)
    most = sizes[:, None] / (problem.parameters["nu"] * n) if problem.kind == "nu_svc" else problem.parameters["C"]
    digits = 1e-4 if name == INTELEX_SINGLE else 1e-8
    if (np.abs(coefficients.sum(axis=1)) > digits * sizes).any() or (np.abs(coefficients) > most * (1 + digits)).any():
        found.append(f"{name} is not feasible")
    if name == OURS and not fitted.certificate.converged:
        found.append(f"{name} did not converge")
    return found
