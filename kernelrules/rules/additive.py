"""rules.additive: data read, the path of every score (additive_path.py), λ chosen by cross-validation, rules told.

score(x) = b + Σ_j β_j h_j(x), h_j(x) = 1 where rule j holds, most β_j being 0; of more than two classes one for each
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check, parallel, selection
from kernelrules.core.ranked import ranked_dense, ranked_sparse
from kernelrules.core.weak import Weak
from kernelrules.results import AdditiveRules, LinearTerm, Rule
from kernelrules.rules.additive_crew import Crew, length_of
from kernelrules.rules.additive_path import Path, Settings, Table, run, top_lam
from kernelrules.rules.additive_use import linear_values
from kernelrules.tree.columns import Columns, read

__all__ = ["additive"]

_CHOICES = {
    "loss": ("logistic", "squared"),
    "rule": ("1se", "min"),
    "missing": ("extra", "error"),
    "measure": ("loss", "zero_one"),
}
_MAX_RULES = 50
_NO_LIMIT = 1 << 62
_MOST_ROWS = (1 << 31) - 1
_LARGE = 100_000  # numbers from which it pays to begin with the folds before it is known how far they go
_SHARE_CUT_OFF = 0.025  # of the rows, at each end, of a linear term
_LIKE_A_RULE = 0.4  # standard deviation of a rule whose share of rows is drawn evenly between 0 and 1
_SMALLEST, _LARGEST = 1e-290, 1e300  # of numbers that can be linear terms
_NANOSECONDS = 30.0  # to sort an entry
_KEYS = 20230617  # seed of the numbers that tell lists of rows apart


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
    """A sparse sum of rules: the L1 problem over infinitely many rules, solved for a path of λ by greedy search.

    For every λ, (1/W) Σ w_i loss(y_i, b + Σ_j β_j h_j(x_i)) + λ ‖β‖₁ is minimised, h_j(x) being 1 where rule j
    holds and 0 elsewhere. Rules that would lower it are looked for, and added: with max_depth=1 among all rules of one
    condition, until there are none, and the duality gap over all of these is reported; otherwise in small trees grown
    on the residuals, `trees` of them at every λ. More than two classes get a score each, of the class against the rest,
    with the same λ.

    Parameters
    ----------
    X : array, CSR matrix or data frame (n, p)
        Numbers, categories; missing values as NaN, None or NA.
    y : array (n,)
        Labels, or numbers for loss="squared".
    loss : "logistic" or "squared"
        log(1 + exp(-y f)) with y = ±1, or (y - f)² / 2.
    max_depth : int
        Most conditions of a rule. With 1 the weak learner is exact, and `mean_leaves`, `trees`, `subsample`, `min_leaf`
        do not count.
    mean_leaves : float
        Leaves of the trees in the mean; their number less 2 is drawn from an exponential distribution.
    trees : int
        Trees grown at every λ; fewer where one has no rule to offer.
    subsample : float
        Share of the rows that a tree is grown on, drawn anew for each.
    min_leaf : int
        Fewest rows, of those that a tree is grown on, of a rule.
    linear : bool
        Whether numerical columns are terms themselves: cut off at their 2.5 % and 97.5 % quantiles, and scaled to vary
        as much as a rule does.
    max_rules : int, optional
        The path ends before a score needs more terms than this. Default 50; no limit where `lams` is given.
    lams : array, optional
        The λ to solve for. Default: `n_lams` from the largest at which anything has a weight (of the nodes of a first
        tree, where max_depth exceeds 1) down to `ratio` times it.
    n_lams : int
        How many, as long as max_rules does not end the path.
    ratio : float
        The smallest λ over the largest.
    folds : int, array (n,) or None
        Folds of the cross-validation that chooses λ, in each of which rules are found anew; or the fold of every row.
        None: the last λ is chosen.
    rule : "1se" or "min"
        The largest λ whose error is within one standard error of the smallest; or the λ of the smallest.
    measure : "loss" or "zero_one"
        What the error is; the second is for classes only.
    tol : float
        Largest gap, as a share of the loss without any rule.
    sample_weight : array (n,), optional
        Weights of the rows. Weight 0 leaves a row out.
    categorical : "from_dtype", None, or sequence of column numbers or names
        Columns of categories: those that do not hold numbers by their type, none, or these.
    missing : "extra" or "error"
        Every rule learns whether a missing value satisfies it; or they are refused. A value that was never missing in
        training, and a level that it did not have, satisfies what most of the weight does.
    feature_names, class_names : sequence of str, optional
        What text calls columns and classes. Default: a data frame's names, or x0, x1, ...; the labels.
    rng : Generator or seed, optional
        For folds, rows and sizes of trees.
    n_threads : int, optional
        Default all cores that this process may use: folds and scores are learned side by side. The result does not
        depend on it.
    callback : callable, optional
        Told of progress, in paths.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    AdditiveRules
        The rules, the path, the certificates, the errors, the choice. `str` lists rules and weights.

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
        raise ValueError('measure="zero_one" counts wrong classes: not with loss="squared"')
    linear = check.flag(linear, "linear")
    grid = _grid(lams)
    n_points, least = check.whole(n_lams, "n_lams", 1), _share(ratio, "ratio")
    settings = Settings(
        logistic=loss == "logistic",
        max_depth=check.whole(max_depth, "max_depth", 1),
        mean_leaves=_at_least_two(mean_leaves),
        trees=check.whole(trees, "trees", 1),
        subsample=_share(subsample, "subsample"),
        min_leaf=check.whole(min_leaf, "min_leaf", 1),
        max_rules=_limit(max_rules, grid),
        tol=check.positive(tol, "tol"),
    )
    draws = check.generator(rng)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "additive")
    data = _Data(X, y, sample_weight, categorical, missing, settings, linear, threads)
    names = check.column_names(feature_names, data.names, data.n_features)
    called = check.class_names(class_names, data.classes, 'loss="squared" is a regression')
    numbers = None if folds is None else data.folds(folds, draws)
    seed = int(draws.integers(1 << 62))
    if grid is None:
        top = max(top_lam(data.table, target, data.weights, settings) for target in data.targets)
        grid = top * np.geomspace(1.0, least, n_points) if top > 0 else np.zeros(1)
    else:
        grid = grid / data.unit
    n_folds = 0 if numbers is None else int(numbers.max()) + 1
    n_scores = len(data.targets)
    crew = Crew(threads, tick, n_scores * (1 + n_folds))
    folded = functools.partial(_fold_tasks, data, numbers, grid, settings, seed)
    own = [_Task(data, m, grid, settings, (seed, m)) for m in range(n_scores)]
    paths, fold_paths = crew.run(own, folded, data.n_given * data.n_features >= _LARGE)
    length = length_of(paths)
    if length == 0:
        first = grid[0] * data.unit
        raise ValueError(f"at the largest of lams, {first:.6g}, more than max_rules = {max_rules} terms have a weight")
    grid = grid[:length]
    errors, fold_errors = None, None
    if numbers is not None:
        fold_errors = _fold_errors(data, numbers, fold_paths, settings, measure)
        errors = tuple(data.unit**2 * part for part in selection.summarise(fold_errors.T))
        fold_errors = data.unit**2 * fold_errors
    chosen = length - 1 if errors is None else selection.pick(*errors, rule)
    found = _Told(data, paths, length)
    scale = data.unit**2

    def table_of(field: str) -> np.ndarray:
        return scale * np.array([getattr(path, field)[:length] for path in paths]).T

    primal, dual, dual_all = table_of("primal"), table_of("dual"), table_of("dual_all")
    limit = scale * np.array([path.tolerance for path in paths])
    reached = primal - (dual_all if settings.max_depth == 1 else dual)
    model = AdditiveRules(
        rules=found.rules,
        linear=found.linear,
        loss=loss,
        lams=grid * data.unit,
        coefficients=found.coefficients * data.unit,
        intercepts=found.intercepts * data.unit + data.centre,
        primal=primal,
        dual=dual,
        gap=np.maximum(primal - dual, 0.0),
        gap_all=np.maximum(primal - dual_all, 0.0),
        converged=reached <= limit,
        error=None if errors is None else errors[0],
        se=None if errors is None else errors[1],
        fold_error=fold_errors,
        chosen=chosen,
        measure=measure,
        n_tried=sum(path.n_columns - len(data.table.linear) for path in paths),
        classes=data.classes,
        feature_names=names,
        class_names=called,
        levels=data.categories,
        n_features=data.n_features,
        missing=missing,
        missing_seen=data.missing,
        columns=data.names,
        n_train=data.n_given,
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


def _limit(max_rules: Any, grid: np.ndarray | None) -> int:
    if max_rules is None:
        return _MAX_RULES if grid is None else _NO_LIMIT
    return min(check.whole(max_rules, "max_rules", 1), _NO_LIMIT)


def _grid(lams: Any) -> np.ndarray | None:
    """The λ that were asked for, descending."""
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


# ---- data -----------------------------------------------------------------------------------------------------------


class _Data:
    """What is learned from: rows of weight 0 left out, targets of each score, weights that sum to 1."""

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        categorical: Any,
        missing: str,
        settings: Settings,
        linear: bool,
        threads: int,
    ) -> None:
        as_sparse = sparse.issparse(X) and not linear and (categorical is None or isinstance(categorical, str))
        if as_sparse:
            read(np.zeros((1, 1)), categorical)  # refuses what it may not be
            rows = check.matrix(X)
            self.n_given, self.n_features = rows.shape
            self.names, self.categories = None, (None,) * self.n_features
            self.missing, n_levels = np.zeros(self.n_features, dtype=bool), np.zeros(self.n_features, dtype=np.intp)
        else:
            columns: Columns = read(X, categorical, missing)
            self.n_given, self.n_features = columns.values.shape
            self.names, self.categories, self.missing = columns.names, columns.categories, columns.missing
            n_levels = columns.n_levels.astype(np.intp)
        if self.n_given == 0:
            raise ValueError(f"X has no rows: its shape is {X.shape}")
        weights = check.weights(sample_weight, self.n_given)
        self.used = weights > 0
        n = int(self.used.sum())
        if n > _MOST_ROWS:
            raise ValueError(f"X has {n} rows: at most {_MOST_ROWS} can be")
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not np.isfinite(total):
            raise ValueError("sample_weight is too large: its sum overflows float64")
        self.given = weights[self.used]
        self.weights = self.given / total
        self._read_targets(y, settings)
        work = parallel.enough_threads(threads, _NANOSECONDS * n * self.n_features)
        if as_sparse:
            ranked = _ranked_sparse(rows, self.used, work)
            terms, values = (), np.zeros((0, n))
        else:
            x = columns.values if self.used.all() else columns.values[self.used]
            check.fits_memory((2 * n, self.n_features), np.uint32, "the ranks of X")
            ranked = ranked_dense(x, n_levels, work)
            terms, values = _linear_terms(x, n_levels, self.weights) if linear else ((), np.zeros((0, n)))
        if settings.max_depth > 1:
            check.fits_memory((n, self.n_features), np.uint16, "the codes of X")
        keys = np.random.default_rng(_KEYS).integers(1, 1 << 63, size=n, dtype=np.uint64)
        weak = Weak(ranked) if settings.max_depth > 1 else None
        self.terms = terms
        self.table = Table(ranked, weak, values, n_levels, self.missing, keys)

    def _read_targets(self, y: Any, settings: Settings) -> None:
        self.unit, self.centre, self.classes, self.codes = 1.0, 0.0, None, None
        if not settings.logistic:
            numbers = check.targets(y, self.n_given)[self.used]
            largest = float(np.abs(numbers).max())
            if largest > 1e150:
                raise ValueError("y is too large: the sum of its squares overflows float64")
            self.centre = float(self.weights @ numbers)
            numbers = numbers - self.centre
            size = float(np.abs(numbers).max()) or 1.0  # squares of tiny numbers vanish
            spread = size * float(np.sqrt(self.weights @ (numbers / size) ** 2))
            flat = spread <= 1e-13 * largest  # constant, but for rounding
            self.unit = 1.0 if flat else spread
            self.targets = [np.zeros_like(numbers) if flat else numbers / spread]
            return
        self.classes, codes = check.labels(y, self.n_given)
        self.codes = codes[self.used]
        seen = np.bincount(self.codes, minlength=len(self.classes))
        if len(self.classes) < 2 or (seen > 0).sum() < len(self.classes):
            absent = "" if len(self.classes) < 2 else ", and some classes have weight 0"
            raise ValueError(f"y must hold rows of at least two classes, got {len(self.classes)}{absent}")
        chosen = [1] if len(self.classes) == 2 else range(len(self.classes))
        self.targets = [(self.codes == k).astype(np.float64) for k in chosen]

    def folds(self, folds: Any, draws: np.random.Generator) -> np.ndarray:
        """The fold of every row in use; each has its share of the classes."""
        if np.ndim(folds) == 1:
            numbers = selection.fold_numbers(folds, self.n_given)[self.used]
            numbers = np.unique(numbers, return_inverse=True)[1]
            if numbers.max() == 0:
                raise ValueError("folds must hold at least two different folds")
        else:
            numbers = selection.fold_numbers(folds, len(self.weights), self.codes, draws)
        if self.codes is not None:
            counts = np.zeros((int(numbers.max()) + 1, len(self.classes)))
            np.add.at(counts, (numbers, self.codes), 1)
            lacking = np.argwhere(counts.sum(axis=0) - counts == 0)
            if len(lacking):
                label = check.shown(self.classes[lacking[0][1]])
                raise ValueError(
                    f"all rows of class {label} are in one fold: the others cannot learn it; use folds=None"
                )
        return numbers


def _ranked_sparse(rows: check.Csr, used: np.ndarray, n_threads: int) -> Any:
    matrix = rows.toscipy()
    by_column = (matrix if used.all() else matrix[used]).tocsc()
    if not by_column.data.all():
        by_column = by_column.copy()
        by_column.eliminate_zeros()
    indices, start = by_column.indices.astype(np.intc, copy=False), by_column.indptr.astype(np.intp, copy=False)
    return ranked_sparse(by_column.data, indices, start, by_column.shape[0], n_threads)


def _linear_terms(
    x: np.ndarray, n_levels: np.ndarray, weights: np.ndarray
) -> tuple[tuple[LinearTerm, ...], np.ndarray]:
    """Terms of the numerical columns that vary, and their values."""
    terms, values = [], []
    for column in np.flatnonzero(n_levels == 0).tolist():
        numbers = x[:, column].astype(np.float64)
        known = ~np.isnan(numbers)
        if not known.any():
            continue
        w = weights[known] / weights[known].sum()
        low, high = _quantiles(numbers[known], w, (_SHARE_CUT_OFF, 1 - _SHARE_CUT_OFF))
        cut = np.clip(numbers[known], low, high)
        size = max(abs(low), abs(high))
        if not _SMALLEST < size < _LARGEST:
            continue
        mean = float(w @ cut)
        deviation = size * float(np.sqrt(w @ ((cut - mean) / size) ** 2))
        if not deviation > 1e-13 * size:
            continue
        term = LinearTerm(column, low, high, mean, _LIKE_A_RULE / deviation)
        terms.append(term)
        values.append(linear_values(term, numbers))
    return tuple(terms), np.array(values).reshape(len(terms), len(x))


def _quantiles(numbers: np.ndarray, weights: np.ndarray, shares: tuple[float, float]) -> tuple[float, float]:
    """The lowest numbers with at least these shares of the weight at or below them."""
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(weights[order])
    places = np.minimum(np.searchsorted(below, np.array(shares) * below[-1] * (1 - 1e-12)), len(order) - 1)
    return float(numbers[order[places[0]]]), float(numbers[order[places[1]]])


# ---- paths, side by side --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Task:
    """The path of one score, of all rows or of those outside a fold."""

    data: _Data
    score: int
    lams: np.ndarray
    settings: Settings
    seed: tuple[int, ...]
    held: np.ndarray | None = None  # rows of the fold

    def __call__(self, air: Callable[[], None]) -> Path:
        weights, settings = self.data.weights, self.settings
        if self.held is not None:
            weights = weights.copy()
            weights[self.held] = 0.0
            weights /= weights.sum()
        rng = np.random.default_rng(self.seed)
        target = self.data.targets[self.score]
        return run(self.data.table, target, weights, self.lams, settings, rng, air, self.held)


def _fold_tasks(
    data: _Data, numbers: np.ndarray | None, grid: np.ndarray, settings: Settings, seed: int, n_lams: int
) -> list[_Task]:
    """The paths of every fold for the first of the λ. No number of rules ends one."""
    if numbers is None or n_lams == 0:
        return []
    endless = Settings(**{**vars(settings), "max_rules": _NO_LIMIT})
    held = [np.flatnonzero(numbers == fold) for fold in range(int(numbers.max()) + 1)]
    return [
        _Task(data, m, grid[:n_lams], endless, (seed, m, fold), rows)
        for fold, rows in enumerate(held)
        for m in range(len(data.targets))
    ]


def _fold_errors(data: _Data, numbers: np.ndarray, paths: list[Path], settings: Settings, measure: str) -> np.ndarray:
    """Error of every fold at every λ, in units of the targets, (n_folds, n_lams)."""
    n_scores, errors = len(data.targets), []
    for fold in range(int(numbers.max()) + 1):
        rows = np.flatnonzero(numbers == fold)
        scores = np.array([path.scores for path in paths[fold * n_scores : (fold + 1) * n_scores]])
        weights = data.weights[rows] / data.weights[rows].sum()
        errors.append(_row_errors(data, scores, rows, settings, measure) @ weights)
    return np.array(errors)


def _row_errors(data: _Data, scores: np.ndarray, rows: np.ndarray, settings: Settings, measure: str) -> np.ndarray:
    """Of scores (n_scores, n_lams, n_rows) the error of each row, (n_lams, n_rows)."""
    targets = np.array([target[rows] for target in data.targets])[:, None, :]
    if not settings.logistic:
        return ((scores - targets) ** 2)[0] / 2
    if measure == "loss":
        return (np.logaddexp(0.0, scores) - targets * scores).sum(axis=0)
    said = (scores[0] > 0) if len(scores) == 1 else scores.argmax(axis=0)
    return (said != data.codes[rows]).astype(np.float64)


# ---- the result -----------------------------------------------------------------------------------------------------


class _Told:
    """Terms that have a weight somewhere, and their weights."""

    def __init__(self, data: _Data, paths: list[Path], length: int) -> None:
        n_linear, n_scores = len(data.terms), len(paths)
        dense = []
        for path in paths:
            table = np.zeros((length, path.n_columns))
            for k, row in enumerate(path.coefficients[:length]):
                table[k, : len(row)] = row
            dense.append(table)
        lines = [j for j in range(n_linear) if any(table[:, j].any() for table in dense)]
        rules: dict[Any, int] = {}
        told, weights = [], []
        for score, (path, table) in enumerate(zip(paths, dense, strict=True)):
            for j in (np.flatnonzero(table[:, n_linear:].any(axis=0)) + n_linear).tolist():
                conditions, holds = path.finder.conditions(j - n_linear, data.weights)
                place = rules.setdefault(conditions, len(rules))
                if place == len(told):
                    told.append(_rule(data, conditions, holds))
                    weights.append(np.zeros((length, n_scores)))
                weights[place][:, score] += table[:, j]
        columns = weights + [np.stack([table[:, j] for table in dense], axis=1) for j in lines]
        self.rules = tuple(told)
        self.linear = tuple(data.terms[j] for j in lines)
        self.coefficients = np.stack(columns, axis=2) if columns else np.zeros((length, n_scores, 0))
        self.intercepts = np.array([path.intercepts[:length] for path in paths]).T


def _rule(data: _Data, conditions: Any, holds: np.ndarray) -> Rule:
    weight, n = float(data.given[holds].sum()), int(holds.sum())
    shares = None
    if data.classes is not None:
        shares = np.bincount(data.codes[holds], data.given[holds], minlength=len(data.classes)) / weight
    confidence = float(shares.max()) if shares is not None else float("nan")
    return Rule(conditions, 0.0, weight / float(data.given.sum()), confidence, n, weight, shares)
