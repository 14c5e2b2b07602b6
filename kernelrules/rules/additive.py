"""rules.additive: read the data, compute the path of every score, choose λ by cross-validation, describe the rules.

    score(x) = b + Σ_j β_j h_j(x),    h_j(x) = 1 if rule j holds, else 0,    most β_j = 0

Two classes and regression have one score; more classes have one score each. additive_data.py reads the data,
additive_parallel.py runs the paths (l1_path.py) in threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check, parallel, selection
from kernelrules.results import AdditiveRules, LinearTerm, Rule
from kernelrules.rules.additive_data import AdditiveData
from kernelrules.rules.additive_parallel import common_length, solve_paths
from kernelrules.rules.l1_path import PathProblem, ScorePath, largest_lam, solve_path
from kernelrules.rules.rule_search import Settings

__all__ = ["additive"]

_CHOICES = {
    "loss": ("logistic", "squared"),
    "rule": ("1se", "min"),
    "missing": ("extra", "error"),
    "measure": ("loss", "zero_one"),
}
_DEFAULT_MAX_RULES = 50
_NO_LIMIT = 1 << 62
_START_FOLDS_MIN_VALUES = 100_000  # of X; with fewer, the folds wait until the length of the path is known


@parallel.reports("additive")
def additive(
    X: Any,
    y: Any,
    *,
    loss: str = "logistic",
    max_depth: int = 3,
    mean_leaves: float = 6.0,
    trees: int = 2,
    subsample: float = 0.5,
    min_leaf: int = 5,
    linear: bool = False,
    max_rules: int | None = None,
    lams: Any = None,
    n_lams: int = 30,
    ratio: float = 0.01,
    folds: Any = 5,
    rule: str = "1se",
    measure: str = "loss",
    tol: float = 1e-4,
    sample_weight: Any = None,
    categorical: Any = "from_dtype",
    missing: str = "extra",
    feature_names: Any = None,
    class_names: Any = None,
    rng: Any = None,
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> AdditiveRules:
    """Learn a sparse sum of rules: the L1 problem over all rules, for a path of λ, with λ chosen by cross-validation.

    For every λ, (1/W) Σ w_i loss(y_i, b + Σ_j β_j h_j(x_i)) + λ ‖β‖₁ is minimised, where h_j(x) is 1 if rule j holds
    and 0 otherwise. Rules that lower the objective are searched for and added: with max_depth=1 among all rules of one
    condition, until there are none, so that the duality gap over all of these is known; otherwise among the nodes of
    small trees grown on the residuals, `trees` of them at every λ. With more than two classes, each class has a score
    of its own, against the rest, with the same λ.

    Parameters
    ----------
    X : array, CSR matrix or data frame (n, p)
        Numbers and categories; missing values are NaN, None or NA.
    y : array (n,)
        Labels, or numbers for loss="squared".
    loss : "logistic" or "squared"
        log(1 + exp(-y f)) with y = ±1, or (y - f)² / 2.
    max_depth : int
        Largest number of conditions of a rule. With 1 the search is exact, and `mean_leaves`, `trees`, `subsample` and
        `min_leaf` have no effect.
    mean_leaves : float
        Mean number of leaves per tree; the number less 2 is drawn from an exponential distribution.
    trees : int
        Trees grown at every λ; fewer if one has no rule to add.
    subsample : float
        Share of the rows on which a tree is grown, drawn anew for each tree.
    min_leaf : int
        Smallest number of rows of a rule, among those on which its tree is grown.
    linear : bool
        Whether numerical columns are terms as well, clipped at their 2.5 % and 97.5 % quantiles and scaled to the
        standard deviation of a typical rule.
    max_rules : int, optional
        The path ends before a score has more terms than this. Default 50; no limit if `lams` is given.
    lams : array, optional
        The λ to solve for. Default: `n_lams` values from the largest λ with a nonzero weight (that of the nodes of a
        first tree, if max_depth exceeds 1) down to `ratio` times it.
    n_lams : int
        Number of λ, unless max_rules ends the path.
    ratio : float
        The smallest λ divided by the largest.
    folds : int, array (n,) or None
        Number of folds of the cross-validation that chooses λ, in each of which rules are found anew; or the fold of
        every row. None: the last λ is chosen.
    rule : "1se" or "min"
        Choose the largest λ whose error is within one standard error of the smallest, or the λ of the smallest error.
    measure : "loss" or "zero_one"
        The cross-validated error; "zero_one" is for classes only.
    tol : float
        Largest duality gap, as a share of the loss without any rule.
    sample_weight : array (n,), optional
        Sample weights. Weight 0 leaves a row out.
    categorical : "from_dtype", None, or sequence of column numbers or names
        Columns of categories: those that do not hold numbers by their type, none, or these.
    missing : "extra" or "error"
        Each rule learns whether a missing value satisfies it, or missing values are refused. Values that were never
        missing in training, and unseen levels, go with the larger weight.
    feature_names, class_names : sequence of str, optional
        Names of columns and classes in text. Default: a data frame's names, or x0, x1, ...; the labels.
    {rng}
        It chooses the folds, and the rows and sizes of trees.
    {n_threads}
        Folds and scores are learned in parallel.
    {callback}
        Progress is counted in paths.
    {progress}

    Returns
    -------
    AdditiveRules
        The rules, the path, the certificates, the errors, the choice. `str` lists rules and weights.

    Notes
    -----
    Rules from small trees and the L1 penalty follow [1]_; the path is computed as in [2]_. Searching for rules on the
    residuals of the L1 solution, and the gap over all rules of one condition, are our own.

    References
    ----------
    .. [1] J. H. Friedman and B. E. Popescu, "Predictive learning via rule ensembles", Annals of Applied Statistics
       2(3), 2008.
    .. [2] J. Friedman, T. Hastie and R. Tibshirani, "Regularization paths for generalized linear models via coordinate
       descent", Journal of Statistical Software 33(1), 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import rules
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = 2.0 * (X[:, 0] > 0.5) - 1.0 * (X[:, 1] <= 0) + 0.1 * X[:, 2]
    >>> model = rules.additive(X.round(1), y, loss="squared", max_depth=1, lams=[0.05], folds=None)
    >>> print(model)
    -0.8869  x0 ≤ 0.45
    -0.8294  x0 ≤ 0.55
    -0.6229  x1 ≤ 0.05
    -0.2004  x1 ≤ -0.05
     +1.703  ALWAYS
    >>> bool(model.gap_all[0, 0] <= 1e-4 * y.var() / 2)
    True
    """
    for name, given in (("loss", loss), ("rule", rule), ("missing", missing), ("measure", measure)):
        check.one_of(given, name, *_CHOICES[name])
    if measure == "zero_one" and loss == "squared":
        raise ValueError('measure="zero_one" counts wrong classes: it cannot be used with loss="squared"')
    linear = check.flag(linear, "linear")
    lams = _given_lams(lams)
    n_lams, ratio = check.whole(n_lams, "n_lams", 1), _share(ratio, "ratio")
    settings = Settings(
        logistic=loss == "logistic",
        max_depth=check.whole(max_depth, "max_depth", 1),
        mean_leaves=_at_least_two(mean_leaves),
        trees=check.whole(trees, "trees", 1),
        subsample=_share(subsample, "subsample"),
        min_leaf=check.whole(min_leaf, "min_leaf", 1),
        max_rules=_limit(max_rules, lams),
        tol=check.positive(tol, "tol"),
    )
    rng = check.generator(rng)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "additive")
    data = AdditiveData(X, y, sample_weight, categorical, missing, settings, linear, threads)
    names = check.column_names(feature_names, data.columns.names, data.columns.n_features)
    called = check.class_names(class_names, data.classes, 'loss="squared" is a regression')
    fold_of_row = None if folds is None else data.folds(folds, rng)
    seed = int(rng.integers(1 << 62))
    n_scores = len(data.targets)
    if lams is None:
        problems = (PathProblem(data.table, target, data.weights, np.zeros(0), settings) for target in data.targets)
        top = max(map(largest_lam, problems))
        lams = top * np.geomspace(1.0, ratio, n_lams) if top > 0 else np.zeros(1)
    else:
        lams = lams / data.unit
    n_folds = 0 if fold_of_row is None else int(fold_of_row.max()) + 1
    paths, fold_paths = solve_paths(
        [_PathTask(data, m, lams, settings, (seed, m)) for m in range(n_scores)],
        functools.partial(_fold_tasks, data, fold_of_row, lams, settings, seed),
        threads,
        start_folds=data.columns.n_rows * data.columns.n_features >= _START_FOLDS_MIN_VALUES,
        report=_counter(tick, n_scores * (1 + n_folds)),
    )
    length = common_length(paths)
    if length == 0:
        raise ValueError(
            f"at the largest of lams, {lams[0] * data.unit:.6g}, more than max_rules = {max_rules} terms have a weight"
        )
    errors, fold_errors = None, None
    if fold_of_row is not None:
        fold_errors = _fold_errors(data, fold_of_row, fold_paths, settings, measure)
        errors = tuple(data.unit**2 * part for part in selection.summarise(fold_errors.T))
        fold_errors = data.unit**2 * fold_errors
    chosen = length - 1 if errors is None else selection.pick(*errors, rule)
    terms = _weighted_terms(data, paths, length)

    def stacked(name: str) -> np.ndarray:
        return data.unit**2 * np.array([getattr(path, name)[:length] for path in paths]).T

    primal, dual, dual_all = stacked("primal"), stacked("dual"), stacked("dual_all")
    tolerances = data.unit**2 * np.array([path.tolerance for path in paths])
    gap = primal - (dual_all if settings.max_depth == 1 else dual)
    model = AdditiveRules(
        rules=terms.rules,
        linear=terms.linear,
        loss=loss,
        lams=lams[:length] * data.unit,
        coefficients=terms.coefficients * data.unit,
        intercepts=np.array([path.intercepts[:length] for path in paths]).T * data.unit + data.centre,
        primal=primal,
        dual=dual,
        gap=np.maximum(primal - dual, 0.0),
        gap_all=np.maximum(primal - dual_all, 0.0),
        converged=gap <= tolerances,
        error=None if errors is None else errors[0],
        se=None if errors is None else errors[1],
        fold_error=fold_errors,
        chosen=chosen,
        measure=measure,
        n_tried=sum(path.n_columns - len(data.table.linear) for path in paths),
        classes=data.classes,
        feature_names=names,
        class_names=called,
        levels=data.columns.categories,
        n_features=data.columns.n_features,
        missing=missing,
        missing_seen=data.columns.missing,
        columns=data.columns.names,
        n_train=data.columns.n_rows,
        indicators=data.columns.indicators,
    )
    return model.at(chosen)


# ---- arguments ------------------------------------------------------------------------------------------------------


def _share(given: Any, name: str) -> float:
    share = check.positive(given, name)
    if share > 1:
        raise ValueError(f"{name} must be at most 1, got {given!r}")
    return share


def _at_least_two(given: Any) -> float:
    leaves = check.real(given, "mean_leaves")
    if leaves < 2:
        raise ValueError(f"mean_leaves must be at least 2, got {given!r}")
    return leaves


def _limit(max_rules: Any, lams: np.ndarray | None) -> int:
    if max_rules is None:
        return _DEFAULT_MAX_RULES if lams is None else _NO_LIMIT
    return min(check.whole(max_rules, "max_rules", 1), _NO_LIMIT)


def _given_lams(lams: Any) -> np.ndarray | None:
    """Check the λ of the user; return them in descending order."""
    if lams is None:
        return None
    given = np.atleast_1d(np.asarray(lams))
    if given.ndim != 1 or len(given) == 0:
        raise ValueError(f"lams must be a sequence of numbers, got shape {given.shape}")
    numbers = check.targets(given, len(given), "lams")
    if (numbers <= 0).any():
        place = int(np.argmax(numbers <= 0))
        raise ValueError(f"lams must be greater than 0, got {numbers[place]} at position {place}")
    return np.unique(numbers)[::-1].copy()


# ---- paths ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _PathTask:
    """The path of one score, of all rows or of those outside a fold."""

    data: AdditiveData
    score: int
    lams: np.ndarray
    settings: Settings
    seed: tuple[int, ...]
    held_out: np.ndarray | None = None  # rows of the fold

    def __call__(self, check_interrupt: Callable[[], None]) -> ScorePath:
        weights = self.data.weights
        if self.held_out is not None:
            weights = weights.copy()
            weights[self.held_out] = 0.0
            weights /= weights.sum()
        target = self.data.targets[self.score]
        problem = PathProblem(self.data.table, target, weights, self.lams, self.settings, self.held_out)
        return solve_path(problem, np.random.default_rng(self.seed), check_interrupt)


def _fold_tasks(
    data: AdditiveData, fold_of_row: np.ndarray | None, lams: np.ndarray, settings: Settings, seed: int, n_lams: int
) -> list[_PathTask]:
    """Return the paths of every fold for the first n_lams of the λ, without a limit on the number of rules."""
    if fold_of_row is None or n_lams == 0:
        return []
    unlimited = replace(settings, max_rules=_NO_LIMIT)
    held_out = [np.flatnonzero(fold_of_row == fold) for fold in range(int(fold_of_row.max()) + 1)]
    return [
        _PathTask(data, m, lams[:n_lams], unlimited, (seed, m, fold), rows)
        for fold, rows in enumerate(held_out)
        for m in range(len(data.targets))
    ]


def _counter(tick: Any, total: int) -> Callable[[], None]:
    """Return a function that reports the number of its calls as progress."""
    done = 0

    def report() -> None:
        nonlocal done
        done += 1
        if tick is not None:
            tick(done, total)

    return report


def _fold_errors(
    data: AdditiveData, fold_of_row: np.ndarray, paths: list[ScorePath], settings: Settings, measure: str
) -> np.ndarray:
    """Error of every fold at every λ, in units of the targets, (n_folds, n_lams)."""
    n_scores, errors = len(data.targets), []
    for fold in range(int(fold_of_row.max()) + 1):
        rows = np.flatnonzero(fold_of_row == fold)
        scores = np.array([path.scores for path in paths[fold * n_scores : (fold + 1) * n_scores]])
        weights = data.weights[rows] / data.weights[rows].sum()
        errors.append(_row_errors(data, scores, rows, settings, measure) @ weights)
    return np.array(errors)


def _row_errors(
    data: AdditiveData, scores: np.ndarray, rows: np.ndarray, settings: Settings, measure: str
) -> np.ndarray:
    """Error of each row, (n_lams, n_rows), from scores (n_scores, n_lams, n_rows)."""
    targets = np.array([target[rows] for target in data.targets])[:, None, :]
    if not settings.logistic:
        return ((scores - targets) ** 2)[0] / 2
    if measure == "loss":
        return (np.logaddexp(0.0, scores) - targets * scores).sum(axis=0)
    predicted = (scores[0] > 0) if len(scores) == 1 else scores.argmax(axis=0)
    return (predicted != data.codes[rows]).astype(np.float64)


# ---- the result -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _WeightedTerms:
    """Terms with a nonzero weight somewhere on the path, and their weights (n_lams, n_scores, n_terms)."""

    rules: tuple[Rule, ...]
    linear: tuple[LinearTerm, ...]
    coefficients: np.ndarray


def _weighted_terms(data: AdditiveData, paths: list[ScorePath], length: int) -> _WeightedTerms:
    n_linear, n_scores = len(data.terms), len(paths)
    dense = []
    for path in paths:
        table = np.zeros((length, path.n_columns))
        for k, row in enumerate(path.coefficients[:length]):
            table[k, : len(row)] = row
        dense.append(table)
    linear = [j for j in range(n_linear) if any(table[:, j].any() for table in dense)]
    places: dict[Any, int] = {}  # scores share rules with the same conditions
    rules, weights = [], []
    for score, (path, table) in enumerate(zip(paths, dense, strict=True)):
        for j in (np.flatnonzero(table[:, n_linear:].any(axis=0)) + n_linear).tolist():
            conditions, holds = path.rules.conditions(j - n_linear, data.weights)
            place = places.setdefault(conditions, len(places))
            if place == len(rules):
                rules.append(_rule(data, conditions, holds))
                weights.append(np.zeros((length, n_scores)))
            weights[place][:, score] += table[:, j]
    columns = weights + [np.stack([table[:, j] for table in dense], axis=1) for j in linear]
    coefficients = np.stack(columns, axis=2) if columns else np.zeros((length, n_scores, 0))
    return _WeightedTerms(tuple(rules), tuple(data.terms[j] for j in linear), coefficients)


def _rule(data: AdditiveData, conditions: Any, holds: np.ndarray) -> Rule:
    weight, n = float(data.given_weights[holds].sum()), int(holds.sum())
    shares = None
    if data.classes is not None:
        shares = np.bincount(data.codes[holds], data.given_weights[holds], minlength=len(data.classes)) / weight
    confidence = float(shares.max()) if shares is not None else float("nan")
    return Rule(conditions, 0.0, weight / float(data.given_weights.sum()), confidence, n, weight, shares)
