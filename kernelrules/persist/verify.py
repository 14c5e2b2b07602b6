"""Conditions between the fields of each class that compiled code relies on, checked before saving and after loading.

Compiled code trusts that shapes agree (one coefficient per support vector), that indices lie inside arrays (children of
nodes, columns of splits), and that sparse matrices are valid. Other numbers are not checked: a forged file can hold a
model that always predicts 7, but none that reads outside its arrays or loops forever.

`_CHECKS` has an entry for each class with such conditions; `_WITHOUT_CONDITIONS` names the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import kernels, results
from kernelrules.persist.container import PersistError
from kernelrules.persist.hints import require_fields
from kernelrules.persist.registry import Path, place
from kernelrules.results.verify import (
    require_array,
    require_condition,
    require_function,
    require_levels,
    require_names,
    verified_rules,
    verified_tree,
)

__all__ = ["covered_types", "require_sparse", "verify"]

_SMALL_MAP_MONOMIALS = 1 << 16  # a map of up to this many is accepted regardless of the number of weights


def verify(value: Any, path: Path) -> None:
    """Refuse a result, kernel or map whose fields are inconsistent; values in its fields are verified before."""
    require_fields(value, path)
    check = _CHECKS.get(type(value).__name__)
    if check is None:
        return
    try:
        check(value)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise PersistError(f"{place(path)} ({type(value).__name__}): {error}".lstrip()) from None


def covered_types() -> set[str]:
    """Return the names of the classes that have an entry here."""
    return {*_CHECKS, *_WITHOUT_CONDITIONS}


def require_sparse(data: Any, indices: Any, indptr: Any, n_major: int, n_minor: int, name: str) -> None:
    """Refuse arrays that are not a compressed sparse matrix with `n_major` rows (CSR) or columns (CSC)."""
    flat = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr))
    if not flat or indices.dtype not in (np.int32, np.int64) or indices.dtype != indptr.dtype:
        raise PersistError(f"{name} is not a sparse matrix: its arrays are not flat, or its indices not integers")
    if data.dtype.kind not in "fiub":
        raise PersistError(f"{name} is not a sparse matrix of numbers")
    if len(indptr) != n_major + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] != len(data):
        raise PersistError(f"{name} is not a sparse matrix: its indptr does not ascend from 0 to its entries")
    if len(indices) != len(data) or (len(indices) and not 0 <= indices.min() <= indices.max() < n_minor):
        raise PersistError(f"{name} is not a sparse matrix: an index is outside of it")


# ---- parts ------------------------------------------------------------------------------------------------------


def _require(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _points(given: Any, name: str, shape: tuple[int | None, int]) -> None:
    """Require dense or sparse data of this shape."""
    if sparse.issparse(given):
        _require(given.dtype.kind == "f", f"{name} has the dtype {given.dtype}")
        agrees = shape[0] in (None, given.shape[0]) and shape[1] == given.shape[1]
        _require(agrees, f"{name} has shape {given.shape}, not {shape}")
    else:
        require_array(given, name, "f", shape)


def _indices(array: Any, name: str, below: int, shape: tuple[int | None, ...] = (None,)) -> np.ndarray:
    """Require integers of at least 0 and less than a limit."""
    require_array(array, name, "iu", shape)
    _require(
        not array.size or 0 <= array.min() <= array.max() < below, f"{name} must be at least 0 and less than {below}"
    )
    return array


def _kernel(kernel: Any) -> None:
    _require(isinstance(kernel, kernels.Kernel), f"kernel must be a kernel, got {kernel!r:.60}")
    _require(not isinstance(getattr(kernel, "gamma", 1.0), str), "kernel must have a number for gamma")


def _weights_fit_map(kernel: Any, n_features: int, n_weights: int) -> None:
    """Refuse weights of features that the kernel's map cannot have, and a map far larger than they are."""
    if isinstance(kernel, kernels.Linear):
        _require(n_weights == n_features, f"there are {n_weights} weights of {n_features} features")
        return
    _require(isinstance(kernel, kernels.Polynomial), f"{kernel!r} has no map that the weights could be of")
    _require(n_features >= 0, f"n_features must be at least 0, got {n_features!r}")
    _require(n_weights > 0, "there are no weights")
    most = max((n_features + kernel.degree) * n_weights, _SMALL_MAP_MONOMIALS)
    n_monomials = _monomials_up_to(n_features, kernel.degree, most)
    _require(
        n_weights <= n_monomials <= most, f"the weights are {n_weights}, which the map of {kernel!r} does not have"
    )


def _monomials_up_to(n_features: int, degree: int, most: int) -> int:
    """Monomials of so many variables up to a degree, C(n_features + degree, degree); or some number above `most`.

    Each factor at least doubles the product, so that few are needed for any numbers in a file.
    """
    fewer, more = sorted((n_features, degree))
    found = 1
    for i in range(1, fewer + 1):
        found = found * (more + i) // i
        if found > most:
            break
    return found


def _intercept(fit: Any, targets: tuple[int, ...]) -> None:
    """Require one intercept per target, or a number if y is one-dimensional."""
    if targets:
        _lengths(fit, "intercept", targets, "f")
    else:
        _require(
            isinstance(fit.intercept, (float, np.floating)), f"intercept must be a number, got {fit.intercept!r:.60}"
        )


def _targets(owner: Any) -> tuple[int, tuple[int, ...]]:
    """Return the number of points of y, and the shape of one target: () or (n_targets,)."""
    targets = owner.y.shape[1:]
    _require(len(targets) <= 1 and owner.y.ndim, f"y has shape {owner.y.shape}")
    return len(require_array(owner.y, "y", "f", (None, *targets))), targets


def _two_or_more(classes: Any) -> int:
    """Return the number of classes, at least 2."""
    k = len(require_array(classes, "classes", ""))
    _require(k >= 2, f"there are {k} classes")
    return k


def _lengths(owner: Any, names: str, shape: tuple[int | None, ...], kinds: str = "fiu") -> None:
    for name in names.split():
        require_array(getattr(owner, name), name, kinds, shape)


def _weights(owner: Any, n: int) -> None:
    """Require sample weights that fits accept; some loops end only if one is positive."""
    weights = require_array(owner.sample_weight, "sample_weight", "f", (n,))
    allowed = np.isfinite(weights).all() and (weights >= 0).all() and weights.any()
    _require(allowed, "sample_weight must be finite, not negative, and not all 0")


def _positive(lam: float, name: str) -> None:
    _require(0 < lam < math.inf, f"{name} must be greater than 0 and finite, got {lam!r}")


def _index(number: int, n: int, name: str) -> None:
    _require(0 <= number < n, f"{name} must be at least 0 and less than {n}, got {number!r}")


def _one_of(value: str, name: str, *choices: str) -> None:
    _require(value in choices, f"{name} must be one of {', '.join(choices)}, got {value!r:.60}")


# ---- kernel machines --------------------------------------------------------------------------------------------


def _svm(model: results.SVMModel) -> None:
    _one_of(model.kind, "kind", "svc", "nu_svc", "svr", "nu_svr", "one_class")
    _one_of(model.multiclass, "multiclass", "ovo", "ovr")
    _kernel(model.kernel)
    given = isinstance(model.kernel, kernels.Precomputed)
    n_machines = 1
    if model.classes is not None:
        k = _two_or_more(model.classes)
        n_machines = 1 if k == 2 else k if model.multiclass == "ovr" else k * (k - 1) // 2
    n_support = require_array(model.dual_coef, "dual_coef", "f", (n_machines, None)).shape[1]
    _indices(model.support, "support", model.n_features if given else model.n_train, (n_support,))
    _require(given == (model.support_vectors is None), "support_vectors are those of all kernels but a precomputed one")
    if not given:
        _points(model.support_vectors, "support_vectors", (n_support, model.n_features))
    _lengths(model, "intercept", (n_machines,), "f")
    if model.weights is not None:
        _require(isinstance(model.kernel, kernels.Linear), "weights are those of a linear kernel")
        require_array(model.weights, "weights", "f", (n_machines, model.n_features))
    _require(len(model.certificates) == n_machines, f"there are {len(model.certificates)} certificates of {n_machines}")
    if model.Cs is not None:
        _lengths(model, "Cs", (n_machines,), "f")


def _calibrated(calibrated: results.CalibratedSVM) -> None:
    _one_of(calibrated.method, "method", "platt", "isotonic")
    _require(calibrated.model.classes is not None, "the model has no classes")
    n_machines = len(calibrated.model.dual_coef)
    _require(len(calibrated.maps) == n_machines, f"there are {len(calibrated.maps)} maps of {n_machines} machines")
    for first, second in calibrated.maps:
        if calibrated.method == "isotonic":
            n = len(require_array(first, "a map", "f"))
            _require(n > 0, "a map is empty")
            require_array(second, "a map", "f", (n,))
        else:
            _require(
                all(isinstance(number, (float, np.floating)) for number in (first, second)), "a map is not two numbers"
            )


def _tuned(tuned: results.TuneResult) -> None:
    shape = (len(require_array(tuned.gammas, "gammas", "fiu")), len(require_array(tuned.Cs, "Cs", "fiu")))
    _lengths(tuned, "mean se", shape)
    _lengths(tuned, "fold_errors", (*shape, None))
    _one_of(tuned.measure, "measure", "zero_one", "squared_error", "absolute_error")
    known = set(tuned.best) in ({"C"}, {"C", "gamma"})
    _require(known, f"best must hold C and, if there is one, gamma; it holds {sorted(tuned.best)!r:.60}")
    for name, grid in (("C", tuned.Cs), ("gamma", tuned.gammas)):
        if name in tuned.best:
            chosen = tuned.best[name]
            _require((grid == chosen).any(), f"best has a {name} that is not in the grid: {chosen!r:.60}")


def _erm(fit: results.ErmFit) -> None:
    _kernel(fit.kernel)
    k = _two_or_more(fit.classes)
    n_machines = 1 if k == 2 else k
    n = require_array(fit.alpha, "alpha", "f", (n_machines, None)).shape[1]
    _lengths(fit, "intercept norms", (n_machines,), "f")
    _require(len(fit.certificates) == n_machines, f"there are {len(fit.certificates)} certificates of {n_machines}")
    given = isinstance(fit.kernel, kernels.Precomputed)
    _require((fit.X is None) == (given or fit.weights is not None), "X are the points of fits that need them")
    if given:
        _require(n == fit.n_features, f"there are {n} coefficients of {fit.n_features} points")
    if fit.X is not None:
        _points(fit.X, "X", (n, fit.n_features))
    if fit.weights is not None:
        n_weights = require_array(fit.weights, "weights", "f", (n_machines, None)).shape[1]
        _weights_fit_map(fit.kernel, fit.n_features, n_weights)


def _ridge(fit: results.RidgeFit) -> None:
    _one_of(fit.form, "form", "features", "kernel", "dual", "rkhs")
    _one_of(fit.solver, "solver", "exact", "cg")
    _kernel(fit.kernel)
    n, targets = _targets(fit)
    _lengths(fit, "alpha", (n, *targets), "f")
    _lengths(fit, "fitted", (None, *targets), "f")
    _weights(fit, n)
    _positive(fit.lam, "lam")
    _intercept(fit, targets)
    given = isinstance(fit.kernel, kernels.Precomputed)
    _points(fit.X, "X", (None if given else n, fit.n_features))
    _require(not given or min(fit.X.shape) >= n, f"the kernel matrix has shape {fit.X.shape}, and there are {n} points")
    if fit.weights is not None:
        n_weights = len(require_array(fit.weights, "weights", "f", (None, *targets)))
        _weights_fit_map(fit.kernel, fit.n_features, n_weights)
    if fit.factor is not None:
        size = int(np.count_nonzero(fit.sample_weight))
        _lengths(fit, "factor", (size, size), "f")


def _ridge_path(path: results.RidgePath) -> None:
    _one_of(path.form, "form", "features", "kernel")
    _kernel(path.kernel)
    n_lams = len(require_array(path.lams, "lams", "f"))
    _index(path.best, n_lams, "best")
    n, targets = _targets(path)
    _lengths(path, "loo_errors dof", (n_lams,), "f")
    _lengths(path, "loo_residuals alphas fitted", (n_lams, n, *targets), "f")
    _lengths(path, "intercepts", (n_lams, *targets), "f")
    _weights(path, n)
    for lam in path.lams.tolist():
        _positive(lam, "lams")
    _require(hasattr(path.X, "shape") and len(path.X.shape) == 2, "X are points")
    _points(path.X, "X", (n, path.X.shape[1]))
    if path.weights is not None:
        n_weights = require_array(path.weights, "weights", "f", (n_lams, None, *targets)).shape[1]
        _weights_fit_map(path.kernel, path.X.shape[1], n_weights)


def _feature_ridge(fit: Any) -> None:
    targets = fit.weights.shape[1:]
    n_weights = len(require_array(fit.weights, "weights", "f", (None, *targets[:1])))
    _intercept(fit, targets)
    phi = fit.feature_map
    if phi is None:
        _require(n_weights == fit.n_features, f"there are {n_weights} weights of {fit.n_features} columns")
    else:
        _require(isinstance(phi, kernels.FeatureMap), f"feature_map is no map, but {phi!r:.60}")
        agrees = (phi.n_features, phi.n_components) == (fit.n_features, n_weights)
        _require(agrees, f"there are {n_weights} weights of a map to {phi.n_components} columns")


def _posterior(posterior: results.Posterior) -> None:
    n = len(require_array(posterior.variance, "variance", "f"))
    require_array(posterior.mean, "mean", "f", (n,) if posterior.mean.ndim == 1 else (n, None))


def _graph(fit: results.GraphFit) -> None:
    shape = (None,) if fit.values.ndim == 1 else (None, None)
    m = len(require_array(fit.values, "values", "f", shape))
    _indices(fit.labelled, "labelled", m)
    _indices(fit.unreached, "unreached", m)
    _lengths(fit, "residual", (1 if fit.values.ndim == 1 else fit.values.shape[1],), "f")
    _require((fit.classes is None) == (fit.labels is None), "classes and labels go together")
    if fit.classes is not None:
        k = len(require_array(fit.classes, "classes", ""))
        _lengths(fit, "values", (m, k), "f")
        _lengths(fit, "labels", (m,), "")


# ---- trees and rules --------------------------------------------------------------------------------------------


def _surrogates(surrogates: results.Surrogates) -> None:
    n = len(require_array(surrogates.feature, "feature", "i"))
    _lengths(surrogates, "threshold agreement", (n,), "f")
    _lengths(surrogates, "below_left", (n,), "b")
    _lengths(surrogates, "subset_start", (n,), "i")
    _lengths(surrogates, "start", (None,), "i")


def _prune_path(path: results.PrunePath) -> None:
    n = len(require_array(path.alphas, "alphas", "f"))
    _require(n > 0, "there is no tree")
    _lengths(path, "risk", (n,), "f")
    _lengths(path, "n_leaves", (n,), "i")
    _lengths(path, "cut", (None,), "f")


def _prune_cv(found: results.PruneCV) -> None:
    n = len(require_array(found.alphas, "alphas", "f"))
    _lengths(found, "risk error se", (n,), "f")
    _lengths(found, "n_leaves", (n,), "i")
    _lengths(found, "fold_error", (None, n), "f")
    _index(found.chosen, n, "chosen")


def _rule(rule: results.Rule) -> None:
    if rule.shares is not None:
        require_array(rule.shares, "shares", "f")


def _coverage(covered: results.Coverage) -> None:
    n_rules = len(require_array(covered.first, "first", "i"))
    _lengths(covered, "raw", (n_rules,), "i")
    rule = require_array(covered.rule, "rule", "i")
    _require(not rule.size or -1 <= rule.min() <= rule.max() < n_rules, f"rule must be from -1 to {n_rules - 1}")


def _additive(found: Any) -> None:
    n_lams, n_scores, n_terms = require_array(found.coefficients, "coefficients", "f", (None, None, None)).shape
    _require(n_terms == len(found.rules) + len(found.linear), f"there are {n_terms} coefficients of the terms")
    _lengths(found, "lams", (n_lams,), "f")
    _lengths(found, "intercepts primal dual gap gap_all", (n_lams, n_scores), "f")
    _lengths(found, "converged", (n_lams, n_scores), "b")
    for name, shape in (("error", (n_lams,)), ("se", (n_lams,)), ("fold_error", (None, n_lams))):
        if getattr(found, name) is not None:
            require_array(getattr(found, name), name, "f", shape)
    _index(found.chosen, n_lams, "chosen")
    if found.classes is not None:
        k = len(require_array(found.classes, "classes", ""))
        _require(k >= 2 and n_scores == (1 if k == 2 else k), f"there are {n_scores} scores of {k} classes")
        require_names(found.class_names, "class_names", k)
    _require((found.class_names is None) == (found.classes is None), "class_names are those of classes")
    require_levels(found.levels, "levels", found.n_features)
    require_names(found.feature_names, "feature_names", found.n_features)
    require_names(found.columns, "columns", found.n_features)
    for name in ("missing_seen", "indicators"):
        if getattr(found, name) is not None:
            require_array(getattr(found, name), name, "b", (found.n_features,))
    for i, rule in enumerate(found.rules):
        for condition in rule.conditions:
            require_condition(found, condition, f"rule {i}")
    for term in found.linear:
        _require(0 <= term.feature < found.n_features, f"a linear term is of column {term.feature}")


def _table_model(found: Any) -> None:
    from kernelrules.results.table_model import require_table_model  # here, because the class is imported on demand

    require_table_model(found)


def _slacks(slacks: results.Slacks) -> None:
    flat = np.ndim(slacks.values) != 2
    shape = require_array(slacks.values, "values", "f", (None,) if flat else (None, None)).shape
    _lengths(slacks, "case", shape, "i")


# ---- feature maps -----------------------------------------------------------------------------------------------


def _any_map(phi: kernels.FeatureMap) -> None:
    _kernel(phi.kernel)
    _require(phi.n_features >= 1, f"n_features must be at least 1, got {phi.n_features!r}")


def _monomials(phi: kernels.MonomialMap) -> None:
    _any_map(phi)
    n = len(require_array(phi.weights, "weights", "f"))
    _indices(phi.factors, "factors", phi.n_features, (n,))
    _indices(phi.parents, "parents", n, (n,))
    _require(n > 0 and (phi.parents[1:] < np.arange(1, n)).all(), "a monomial is not made from an earlier one")


def _nystroem(phi: kernels.NystroemMap) -> None:
    _any_map(phi)
    given = isinstance(phi.kernel, kernels.Precomputed)
    m = len(_indices(phi.indices, "indices", phi.n_features if given else 1 << 62))
    _points(phi.landmarks, "landmarks", (0 if given else m, phi.n_features))
    _lengths(phi, "whitening", (m, None), "f")
    _require(phi.whitening.size > 0, "there are no landmarks")


def _fourier(phi: kernels.FourierMap) -> None:
    _any_map(phi)
    n = require_array(phi.frequencies, "frequencies", "f", (phi.n_features, None)).shape[1]
    _require(n > 0, "there are no frequencies")


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "SVMModel": _svm,
    "CalibratedSVM": _calibrated,
    "TuneResult": _tuned,
    "Slacks": _slacks,
    "ErmFit": _erm,
    "RidgeFit": _ridge,
    "RidgePath": _ridge_path,
    "FeatureRidge": _feature_ridge,
    "Posterior": _posterior,
    "GraphFit": _graph,
    "Tree": verified_tree,
    "Surrogates": _surrogates,
    "PrunePath": _prune_path,
    "PruneCV": _prune_cv,
    "LinearFunction": require_function,
    "Rule": _rule,
    "RuleList": verified_rules,
    "Coverage": _coverage,
    "AdditiveRules": _additive,
    "TableModel": _table_model,
    "IdentityMap": _any_map,
    "MonomialMap": _monomials,
    "NystroemMap": _nystroem,
    "FourierMap": _fourier,
}
_WITHOUT_CONDITIONS = (
    "Certificate",
    "Condition",
    "LinearTerm",
    "Bound",
    "Estimate",
    *kernels.specs.__all__,
)
