"""The four learners of the report. Each fits a `TableModel` to rows of a problem and chooses its parameters on them.

tree    cost-complexity pruning; size by ten-fold cross-validation and the one-standard-error rule
rules   classification: RIPPER; regression: rules of such a tree, simplified on a third of the rows
svm     RBF kernel; C and gamma by cross-validation, with five folds for classification and three for regression, where
        C and epsilon are in units of the standard deviation of the target
ridge   linear; λ by the leave-one-out error; classification: one-vs-rest on ±1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import kernels, prune, ridge, rules, selection, svm
from kernelrules import tree as trees
from kernelrules.report.encoding import Encoding, design, fit_encoding
from kernelrules.report.problem import Problem
from kernelrules.results import RuleList, TableModel, Tree

__all__ = ["LEARNERS", "SVM_ROWS", "TUNING_ROWS", "Fitted", "Learner", "Settings", "named", "predict"]

SVM_ROWS, TUNING_ROWS = 10_000, 5_000  # largest numbers of rows for the fit and for the tuning of an SVM
_COSTS = (1.0, 10.0, 100.0)
_WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0)  # gammas, in units of 1 / (columns · variance)
_REGRESSION_WIDTHS = (1 / 4, 1.0, 4.0)
_TUBE = 0.1  # epsilon of a regression, in standard deviations of the target
_LAMS = np.logspace(-6, 2, 17)
_OVR_MIN_CLASSES = 10  # one-vs-rest SVMs from this number of classes on, one-vs-one below


@dataclass(frozen=True)
class Settings:
    """Settings of all fits."""

    seed: int
    n_threads: int | None = None
    callback: Callable[[Any], Any] | None = None

    @property
    def running(self) -> dict[str, Any]:
        """Keyword arguments of long computations."""
        return {"n_threads": self.n_threads, "callback": self.callback}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, the selection of its parameters (PruneCV, TuneResult, RidgePath or None), and its training rows."""

    model: TableModel
    choice: Any
    rows: np.ndarray


@dataclass(frozen=True)
class Learner:
    """A learner with its title for tables and headings."""

    title: str
    fit: Callable[[Problem, np.ndarray, Settings], Fitted]


def fit_tree(problem: Problem, rows: np.ndarray, settings: Settings) -> Fitted:
    """Fit a pruned tree."""
    found = _pruned(problem, rows, settings)
    return Fitted(_table_model("tree", problem, rows, found.tree), found, rows)


def _pruned(problem: Problem, rows: np.ndarray, settings: Settings) -> Any:
    return prune.cross_validate(
        problem.X[rows],
        problem.y[rows],
        folds=min(10, len(rows)),
        rng=settings.seed,
        criterion="squared_error" if problem.classes is None else "gini",
        categorical=problem.categorical,
        **settings.running,
    )


def fit_rules(problem: Problem, rows: np.ndarray, settings: Settings) -> Fitted:
    """Fit a rule list."""
    if problem.classes is not None:
        found = rules.induce(
            problem.X[rows],
            problem.y[rows],
            categorical=problem.categorical,
            missing="extra",
            feature_names=problem.names,
            rng=settings.seed,
            **settings.running,
        )
        return Fitted(_table_model("rules", problem, rows, found), None, rows)
    judges = selection.fold_numbers(3, len(rows), rng=settings.seed) == 0
    grown = _pruned(problem, rows[~judges], settings)
    every = rules.extract(grown.tree, problem.names)
    judged = rows[judges]
    found = rules.simplify(every, problem.X[judged], problem.y[judged], **settings.running)
    return Fitted(_table_model("rules", problem, rows, found), grown, rows)


def fit_svm(problem: Problem, rows: np.ndarray, settings: Settings) -> Fitted:
    """Fit a support vector machine."""
    rng = np.random.default_rng(settings.seed)
    chosen = _thinned(problem, rows, SVM_ROWS, rng)
    encoding = fit_encoding(problem.X[chosen], problem.used)
    Z, y = design(problem.X[chosen], encoding), problem.y[chosen]
    few = np.searchsorted(chosen, _thinned(problem, chosen, TUNING_ROWS, rng))
    unit = 1.0 / (Z.shape[1] * (float(Z.var()) or 1.0))
    if problem.classes is None:
        found, choice = _tuned_regression(Z, y, few, unit, settings)
    else:
        multiclass = "ovo" if len(problem.classes) < _OVR_MIN_CLASSES else "ovr"
        choice = svm.tune(
            Z[few], y[few], Cs=_COSTS, gammas=[unit * width for width in _WIDTHS], folds=5, rng=settings.seed,
            multiclass=multiclass, **settings.running,
        )  # fmt: skip
        found = choice.model
        if len(few) < len(chosen):
            found = svm.svc(
                Z, y, C=choice.best["C"], kernel=choice.model.kernel, multiclass=multiclass, **settings.running
            )
    return Fitted(_table_model("svm", problem, chosen, found, encoding), choice, chosen)


def _thinned(problem: Problem, rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most `most` random rows in ascending order, stratified by class with at least three per class."""
    if len(rows) <= most:
        return rows
    if problem.classes is None:
        return np.sort(rng.choice(rows, most, replace=False))
    parts = []
    for label in problem.classes:
        mine = rows[problem.y[rows] == label]
        share = max(min(3, len(mine)), len(mine) * most // len(rows))
        parts.append(rng.choice(mine, share, replace=False))
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True, eq=False)
class RegressionGrid:
    """Root mean squared errors of an SVM for regression over a grid of C and gamma."""

    Cs: np.ndarray
    gammas: np.ndarray
    mean: np.ndarray  # (n_gammas, n_Cs)
    best: dict[str, float]


def _tuned_regression(
    Z: np.ndarray, y: np.ndarray, few: np.ndarray, unit: float, settings: Settings
) -> tuple[Any, RegressionGrid]:
    """Tune an SVM for regression; C, epsilon and the tolerance are in units of the target's standard deviation."""
    size = float(y.std()) if np.ptp(y) > 0 else 1.0  # equal targets have no deviation
    folds = selection.fold_numbers(3, len(few), rng=settings.seed)
    gammas, costs = np.array(_REGRESSION_WIDTHS) * unit, np.array(_COSTS) * size
    squares = np.zeros((len(gammas), len(costs)))

    def fit(rows: np.ndarray, gamma: float, cost: float) -> Any:
        return svm.svr(
            Z[rows], y[rows], C=cost, epsilon=_TUBE * size, tol=1e-3 * size, kernel=kernels.RBF(gamma),
            **settings.running,
        )  # fmt: skip

    for fold in range(3):
        train, held = few[folds != fold], few[folds == fold]
        for g, gamma in enumerate(gammas.tolist()):
            for c, cost in enumerate(costs.tolist()):
                predicted = svm.predict(fit(train, gamma, cost), Z[held], n_threads=settings.n_threads)
                squares[g, c] += float(((predicted - y[held]) ** 2).sum())
    mean = np.sqrt(squares / len(few))
    g, c = np.unravel_index(mean.argmin(), mean.shape)
    best = {"C": float(costs[c]), "gamma": float(gammas[g])}
    model = fit(np.arange(len(y)), best["gamma"], best["C"])
    return model, RegressionGrid(costs, gammas, mean, best)


def fit_ridge(problem: Problem, rows: np.ndarray, settings: Settings) -> Fitted:
    """Fit a linear ridge model."""
    encoding = fit_encoding(problem.X[rows], problem.used)
    Z, y = design(problem.X[rows], encoding), problem.y[rows]
    present = np.unique(y)
    if problem.classes is None:
        targets = y
    elif len(present) == 2:
        targets = np.where(y == present[1], 1.0, -1.0)
    else:
        targets = np.where(y[:, None] == present, 1.0, -1.0)
    path = ridge.path(Z, targets, _LAMS, kernels.Linear(), intercept=True, **settings.running)
    found = _without_rows(ridge.at(path, n_threads=settings.n_threads))
    return Fitted(_table_model("ridge", problem, rows, found, encoding, present), path, rows)


def _without_rows(found: Any) -> Any:
    """Replace the training rows by one row of zeros if there are weights, with which predictions do not need them."""
    if found.weights is None:
        return found
    empty = {name: np.zeros_like(getattr(found, name)[:1]) for name in ("X", "y", "alpha", "fitted")}
    return replace(found, **empty, sample_weight=np.ones(1))


def _table_model(
    learner: str, problem: Problem, rows: np.ndarray, model: Any, encoding: Encoding | None = None, present: Any = None
) -> TableModel:
    if encoding is None:
        encoding = fit_encoding(problem.X[rows], problem.used)
    classes = None if problem.classes is None else np.unique(problem.y[rows]) if present is None else present
    return TableModel(
        learner=learner,
        target=problem.target,
        classes=classes,
        columns=problem.names,
        kinds=tuple(column.kind for column in problem.used),
        levels=tuple(column.levels for column in problem.used),
        centre=encoding.centre,
        scale=encoding.scale,
        dummies=encoding.dummies,
        missing_seen=encoding.missing_seen,
        model=model,
        n_train=len(rows),
        commas=tuple(column.commas for column in problem.used),
    )


def predict(model: TableModel, X: np.ndarray, n_threads: int | None = None) -> np.ndarray:
    """Return predicted classes or numbers of encoded rows: numbers, codes of levels, NaN."""
    if model.learner == "tree":
        return trees.predict(model.model, X, n_threads=n_threads)
    if model.learner == "rules":
        return rules.predict(model.model, X, n_threads=n_threads)
    Z = design(X, model)
    if model.learner == "svm":
        return svm.predict(model.model, Z, n_threads=n_threads)
    values = ridge.predict(model.model, Z, n_threads=n_threads)
    if model.classes is None:
        return values
    return model.classes[(values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)]


def named(model: TableModel) -> Tree | RuleList:
    """Return the tree or rules with the names of categories in place of codes, for display only."""
    found = model.model
    codes = found.categories if isinstance(found, Tree) else found.levels
    words = tuple(
        None if here is None else np.array(levels)[here.astype(np.intp)]
        for here, levels in zip(codes, model.levels, strict=True)
    )
    if isinstance(found, Tree):
        return replace(found, categories=words, feature_names=model.columns)
    return replace(found, levels=words)


LEARNERS = {
    "tree": Learner("pruned tree", fit_tree),
    "rules": Learner("rule list", fit_rules),
    "svm": Learner("RBF SVM", fit_svm),
    "ridge": Learner("linear ridge", fit_ridge),
}
