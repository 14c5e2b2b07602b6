"""Models that the fuzz tests give to public functions, made when they are first used."""

import functools
import warnings

import fuzzing as f
import numpy as np
from scipy import sparse

from kernelrules import erm, kernels, ridge, rules, svm
from kernelrules import tree as trees

WIDTH = 3  # columns of what models were fitted to; of a kernel matrix its training rows


def _data(n=9):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, WIDTH)).round(2)
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return X, y, np.where(np.arange(n) % 4 == 3, 2, y), X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n)


def _quiet(function):
    @functools.cache
    def made():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()

    return made


@_quiet
def machines():
    X, two, three, y = _data()
    K = X[:3] @ X[:3].T
    return {
        "svc": svm.svc(X, two),
        "linear": svm.svc(X, two, kernel=kernels.Linear()),
        "three": svm.svc(X, three),
        "ovr": svm.svc(X, three, multiclass="ovr"),
        "nu": svm.svc(X, two, nu=0.3),
        "words": svm.svc(X, np.array(["a", "b"])[two]),
        "svr": svm.svr(X, y),
        "one class": svm.one_class(X),
        "own": svm.svc(X, two, kernel=f.inner),
        "matrix": svm.svc(K, [0, 1, 1], kernel=kernels.Precomputed()),
        "sparse": svm.svc(sparse.csr_array(X), two),
        "float32": svm.svc(X.astype(np.float32), two),
        "hard": svm.svc([[0.0, 0, 0], [1.0, 1, 1]], [0, 1], C=np.inf, kernel=kernels.Linear()),
        "powers": svm.svr(X, y, kernel=kernels.Polynomial(2)),
        "powers of three": svm.svc(X, three, kernel=kernels.Polynomial(3)),
        "powers in float32": svm.svc(X.astype(np.float32), two, kernel=kernels.Polynomial(3)),
        "powers, one class": svm.one_class(X, kernel=kernels.Polynomial(2)),
    }


@_quiet
def calibrated():
    X, two, three, _ = _data()
    return {
        "platt": svm.calibrate(svm.svc(X, two), X, two),
        "isotonic": svm.calibrate(svm.svc(X, three), X, three, method="isotonic"),
        "powers": svm.calibrate(svm.svc(X, two, kernel=kernels.Polynomial(2)), X, two),
    }


@_quiet
def ridges():
    X, _, _, y = _data()
    return {
        "dual": ridge.fit(X, y, 0.1, form="dual"),
        "intercept": ridge.fit(X, y, 0.1, intercept=True, keep_factor=True),
        "several": ridge.fit(X, np.column_stack([y, -y]), 0.1),
        "linear": ridge.fit(X, y, 0.1, kernel=kernels.Linear()),
        "sparse": ridge.fit(sparse.csr_array(X), y, 0.1),
        "matrix": ridge.fit(X[:3] @ X[:3].T, y[:3], 0.1, kernel=kernels.Precomputed()),
        "float32": ridge.fit(X.astype(np.float32), y, 0.1),
        "path": ridge.at(ridge.path(X, y, [0.1, 1.0])),
        "powers": ridge.fit(X, y, 0.1, kernel=kernels.Polynomial(2), form="kernel"),
        "monomials": ridge.fit(X, y, 0.1, kernel=kernels.Polynomial(3), form="features", intercept=True),
        "powers in float32": ridge.fit(X.astype(np.float32), y, 0.1, kernel=kernels.Polynomial(3), form="dual"),
    }


@_quiet
def ridge_paths():
    X, _, _, y = _data()
    return {
        "one": ridge.path(X, y, [0.1, 1.0]),
        "several": ridge.path(X, np.column_stack([y, -y]), [0.1, 1.0], intercept=True),
    }


@_quiet
def erms():
    X, two, three, _ = _data()
    return {
        "two": erm.fit(X, two, 0.1),
        "three": erm.fit(X, three, 0.1, loss="squared_hinge", intercept=True),
        "linear": erm.fit(X, two, 0.1, kernel=kernels.Linear()),
        "sparse": erm.fit(sparse.csr_array(X), two, 0.1),
        "powers": erm.fit(X, two, 0.1, kernel=kernels.Polynomial(3)),
        "monomials": erm.fit(np.tile(X, (3, 1)), np.tile(three, 3), 0.1, kernel=kernels.Polynomial(2)),
        "powers in float32": erm.fit(X.astype(np.float32), two, 0.1, kernel=kernels.Polynomial(3)),
    }


@_quiet
def maps():
    X, *_ = _data()
    return {
        "identity": kernels.feature_map(kernels.Linear(), WIDTH),
        "monomials": kernels.feature_map(kernels.Polynomial(3), WIDTH),
        "without constant": kernels.feature_map(kernels.Polynomial(2, 1.0, 0.0), WIDTH),
        "landmarks": kernels.nystroem(X, kernels.RBF(0.5), 5, rng=0),
        "landmarks of powers": kernels.nystroem(X, kernels.Polynomial(3), 5, rng=0),
        "landmarks of a matrix": kernels.nystroem(X[:3] @ X[:3].T, kernels.Precomputed(), 3, rng=0),
        "sparse landmarks": kernels.nystroem(sparse.csr_array(X), kernels.Laplacian(0.5), 5, rng=0),
        "waves": kernels.random_fourier(kernels.RBF(0.5), WIDTH, 7, rng=0),
    }


@_quiet
def grown():
    X, two, three, y = _data(12)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    words = np.column_stack([np.array(["a", "b", "c"], dtype=object)[three], X[:, :2]])
    made = {
        "two": trees.grow(X, two),
        "three": trees.grow(X, three, criterion="entropy"),
        "words": trees.grow(words, three, categorical=[0]),
        "stump": trees.grow(X, two, max_depth=0),
        "one class": trees.grow(X, np.zeros(12)),
        "names": trees.grow(f.frame(X), np.array(["no", "yes", "perhaps"])[three]),
        "squares": trees.grow(X, y, criterion="squared_error"),
        "several": trees.grow(X, np.column_stack([y, -y]), criterion="squared_error"),
        "absolute": trees.grow(X, y, criterion="absolute_error", max_depth=2),
        "linear leaves": trees.grow(X, y, criterion="squared_error", leaf="linear", max_depth=1),
        "oblique": trees.grow(X, two, splits="oblique", max_depth=2),
        "sparse": trees.grow(sparse.csr_array(X), two),
    }
    for missing in ("extra", "zero", "impute", "surrogate", "fractional"):
        made[missing] = trees.grow(holes, two, missing=missing, rng=0)
    return made


@_quiet
def lists():
    X, two, three, _ = _data(12)
    words = np.column_stack([np.array(["a", "b", "c"], dtype=object)[three], X[:, :2]])
    made = {
        "induced": rules.induce(X, two, rng=0, min_weight=1.0),
        "three": rules.induce(X, three, rng=0, min_weight=1.0, prune=False),
        "words": rules.induce(words, three, rng=0, min_weight=1.0, categorical=[0]),
    }
    for name in ("two", "three", "words", "squares", "extra", "stump"):
        made[f"of {name}"] = rules.extract(grown()[name])
    made["ordered"] = rules.decision_list(made["of two"])
    return made


@_quiet
def trees_and_lists():
    return {**{f"tree {k}": v for k, v in grown().items()}, **{f"rules {k}": v for k, v in lists().items()}}
