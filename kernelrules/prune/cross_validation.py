"""The size of a tree by cross-validation: `cross_validate`.

A tree is grown on all rows, and its path of nested trees computed. Tree k of the path is best for all alpha from
alphas[k] to alphas[k + 1]; their geometric mean represents them. Each fold is held out once: a tree is grown on the
other rows, and one walk of a held-out row up from its leaf gives its loss under this tree pruned with each of the means
(core.tree.prune.held_out). One tree is grown per fold, however many sizes are tried.

Errors and standard errors are those of rpart's table: over rows, not over folds. With e the loss of a held-out row,
error = sum w·e / W and se = sqrt(sum w·e² - W·error²) / W. Weights count as numbers of rows there: errors do not depend
on their unit, standard errors do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check, parallel, selection, shared_data
from kernelrules import tree as trees
from kernelrules.check.frames import read_with_missing
from kernelrules.core.tree import prune as core
from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.prune._common import cut
from kernelrules.prune.cost_complexity import cost_complexity_path
from kernelrules.prune.measures import Measure, read_measure
from kernelrules.results import PruneCV, Tree

__all__ = ["cross_validate"]

_A_HAIR_MORE = 1 + 2.0**-36


@parallel.reports("prune")
def cross_validate(
    X: Any,
    y: Any,
    *,
    folds: Any = 10,
    rule: str = "1se",
    rng: Any = None,
    executor: Any = None,
    loss: str | None = None,
    measure: Any = None,
    stratified: bool = True,
    groups: Any = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
    **grow: Any,
) -> PruneCV:
    """Grow a tree and prune it to the size that cross-validation chooses.

    Parameters
    ----------
    X, y : arrays
        As in `tree.grow`.
    folds : int or array (n,)
        How many, or the fold of every row.
    rule : {"min", "1se"}
        The smallest error; or the smallest tree whose error is within one standard error of that. Of equal errors, the
        smaller tree.
    {rng}
        It chooses the folds, and is used by `tree.grow`.
    {executor}
        Each fold is a task.
    loss : str, optional
        What the risk of the path counts, as in `cost_complexity_path`.
    measure : str, array (n_classes, n_classes) or callable, optional
        What the error of held-out rows is. For classes: "zero_one", wrong or not (the default); "gini", the squared
        distance of the class shares from the truth, sum over k of (p_k - [y = k])²; "entropy", -log₂ p_y, infinite
        where a leaf has no row of the class (their means over the rows of a leaf are its impurities); or an array of
        costs, with measure[i, j] that of predicting class j where i is right, classes in ascending order. For
        regression: "squared_error", "absolute_error" or the criterion (the default). A function measure(y, predicted)
        gives losses of at least 0, one for each row, of labels or numbers; it asks every pruned tree, which takes
        longer, and an executor of processes has to be able to pickle it.
    stratified : bool
        Whether each fold gets its share of every class.
    groups : array (n,), optional
        Rows of one group are held out together. Folds are then not stratified.
    {n_threads, callback}
        Progress is counted in folds.
    {progress}
    **grow : optional
        What `tree.grow` takes. Rows count in risk and error by `sample_weight`, times `class_weight`. In standard
        errors a weight is a number of rows: weights that sum to 1 give those of a single row, and rule="1se" then takes
        far too small a tree. Let weights sum to the number of rows.

    Returns
    -------
    PruneCV
        The trees of the path, their errors, the choice, and the pruned tree.

    References
    ----------
    Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). Classification and Regression Trees. Wadsworth.

    Therneau, T. M. and Atkinson, E. J. An introduction to recursive partitioning using the rpart routines. Mayo
    Foundation. (Errors and standard errors are those of its table.)

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import prune
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y = (X[:, 0] > 0.3) ^ (np.random.default_rng(1).random(400) < 0.1)
    >>> result = prune.cross_validate(X, y, rng=0)
    >>> result.grown.n_leaves > 40, result.tree
    (True, Tree(gini, 2 leaves, depth 1, 3 features))
    """
    selection.require_rule(rule)
    tick = parallel.ticker(callback, "prune")
    parallel.require_executor(executor)
    draws = check.generator(rng)
    seed = int(draws.integers(1 << 62))
    grown = trees.grow(X, y, rng=seed, n_threads=n_threads, callback=None if tick is None else tick.uncounted, **grow)
    path = cost_complexity_path(grown, loss=loss)
    data = _Data(X, y, grown, grow)
    measured = read_measure(measure, grown, data.classes)
    options = {name: value for name, value in grow.items() if name not in ("sample_weight", "class_weight")}
    numbers = _folds_of(folds, data, draws, stratified, groups)
    weights = np.bincount(numbers, data.weight)
    if (weights > 0).sum() < 2:
        raise ValueError("all rows with sample_weight above 0 are in one fold: there is nothing to grow a tree on")
    trial = _Trial(
        prices=_prices(path.alphas),
        loss=path.loss,
        measure=measured,
        unit=_unit(path.risk[-1] if measure is None else _loss_of_root(measured, grown, data)),
        options=options | {"n_threads": 1 if executor is not None and n_threads is None else n_threads, "rng": seed},
    )
    told = None if tick is None or executor is not None else tick.uncounted  # folds are counted; a callback may end one
    with shared_data.Scattered(executor) as scatter:
        shared = scatter((data, numbers))
        tasks = [(shared, trial, fold, told) for fold in range(int(numbers.max()) + 1)]
        sums = np.array(parallel.run(_held_out_sums, tasks, executor, tick, "fold"))
    error, se = (trial.unit * mean for mean in _summary(sums.sum(axis=0), weights.sum()))
    with np.errstate(divide="ignore", invalid="ignore"):  # a fold of rows of weight 0 has no error
        fold_error = np.where(sums[:, 2] > 0, np.inf, trial.unit * sums[:, 0] / weights[:, None])
    chosen = len(error) - 1 - selection.pick(error[::-1], se[::-1], rule)  # which wants the simplest first
    return PruneCV(
        alphas=path.alphas,
        n_leaves=path.n_leaves,
        risk=path.risk,
        error=error,
        se=se,
        fold_error=fold_error,
        chosen=chosen,
        tree=cut(grown, path.cut <= path.alphas[chosen]),
        grown=grown,
        loss=path.loss,
        measure=measured.name,
    )


def _folds_of(folds: Any, data: _Data, draws: np.random.Generator, stratified: Any, groups: Any) -> np.ndarray:
    check.flag(stratified, "stratified")
    if groups is not None and np.ndim(folds) == 1:
        raise ValueError("groups and the folds of all rows were both given")
    strata = data.y if stratified and len(data.classes) else None
    return selection.fold_numbers(folds, len(data.weight), strata, draws, groups)


def _prices(alphas: np.ndarray) -> np.ndarray:
    """Geometric means of neighbours, and infinity for the root.

    They are a hair too large: where a fold has the same alpha up to rounding, its split goes, whatever the rounding.
    """
    unit = _unit(alphas[-1])
    means = unit * np.sqrt((alphas[:-1] / unit) * (alphas[1:] / unit))
    return np.append(means * _A_HAIR_MORE, np.inf)


def _unit(risk: float) -> float:
    """A power of two near the risk of the root, or another number: squares then neither overflow nor vanish."""
    return float(np.ldexp(1.0, np.frexp(risk)[1])) if risk > 0 else 1.0


def _loss_of_root(measure: Measure, grown: Tree, data: _Data) -> float:
    """The mean of the finite losses of all rows, as the root alone predicts them."""
    root = cut(grown, np.arange(grown.n_nodes) == 0)
    if grown.classes is not None:
        root = replace(root, classes=np.searchsorted(data.classes, grown.classes))
    losses = measure.of_rows(root, data.rows, data.y)
    finite = np.isfinite(losses) & (data.weight > 0)
    return float((losses * data.weight)[finite].sum() / data.weight.sum())


def _summary(sums: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean losses and their standard errors over all rows; rows of an infinite loss make both infinite."""
    error = sums[0] / weight
    se = np.sqrt(np.maximum(sums[1] - weight * error**2, 0.0)) / weight
    endless = sums[2] > 0
    return np.where(endless, np.inf, error), np.where(endless, np.inf, se)


class _Data:
    """Rows, numbers of their classes or their targets, and their weights; a fold takes some of them."""

    def __init__(self, X: Any, y: Any, grown: Tree, grow: dict[str, Any]) -> None:
        n = grown.n_train
        self.rows = X.tocsr() if sparse.issparse(X) else X
        given = grow.get("sample_weight")
        if grown.classes is None:
            self.classes = np.zeros(0)
            self.y = np.asarray(y, dtype=np.float64)
            self.weight = check.weights(given, n)
        else:
            self.classes, self.y = check.labels(y, n)
            self.weight = check.class_weights(grow.get("class_weight"), given, self.classes, self.y)

    def take(self, chosen: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """Some of the rows, with y and weight."""
        where = np.flatnonzero(chosen)
        if hasattr(self.rows, "iloc"):
            some = self.rows.iloc[where]
        elif hasattr(self.rows, "shape"):
            some = self.rows[where]
        else:
            some = [self.rows[i] for i in where.tolist()]
        return some, self.y[where], self.weight[where]


@dataclass(frozen=True, eq=False)
class _Trial:
    """What all folds have in common."""

    prices: np.ndarray  # alphas to prune with
    loss: str
    measure: Measure
    unit: float  # of losses
    options: dict[str, Any]  # of growing


def _held_out_sums(shared: tuple[_Data, np.ndarray], trial: _Trial, fold: int, callback: Any) -> np.ndarray:
    """Sums over the held-out rows of loss and squared loss in units, and the number of infinite ones, (3, n_trees)."""
    data, numbers = shared
    X, y, weight = data.take(numbers != fold)
    grown = trees.grow(X, y, sample_weight=None if (weight == 1).all() else weight, callback=callback, **trial.options)
    cuts = cost_complexity_path(grown, loss=trial.loss).cut
    held = data.take(numbers == fold)
    X, y, weight = held
    in_fractions = grown.missing == "fractional" and read_with_missing(grown, X)[1].any()
    if in_fractions or trial.measure.function is not None:
        return _sums_of_trees(trial, grown, cuts, held)
    leaves = trees.apply(grown, X, n_threads=trial.options["n_threads"])
    if grown.classes is not None:
        number, values = core.TABLE, trial.measure.by_class(grown)
        labels, targets = y.astype(np.int64), np.zeros((0, 1))
    else:
        number = CRITERIA[trial.measure.name].number
        values = np.ascontiguousarray(grown.value.reshape(grown.n_nodes, -1))
        labels, targets = np.zeros(0, dtype=np.int64), np.ascontiguousarray(y.reshape(len(y), -1))
    first, last, above = (np.empty(grown.n_nodes, dtype=np.int64) for _ in range(3))
    core.spans(grown.left, grown.right, cuts, trial.prices, first, last, above)
    sums = np.zeros((3, len(trial.prices) + 1))
    core.held_out(number, leaves, first, last, above, values, labels, targets, weight, trial.unit, sums)
    return np.maximum(np.cumsum(sums[:, :-1], axis=1), 0.0)  # what is added and taken away again leaves rounding


def _sums_of_trees(trial: _Trial, grown: Tree, cuts: np.ndarray, held: tuple) -> np.ndarray:
    """The same where fractions of rows come to several leaves, or a function is asked: every pruned tree predicts."""
    X, y, weight = held
    sums = np.zeros((3, len(trial.prices)))
    before, losses = None, np.zeros(len(y))
    for k, price in enumerate(trial.prices):
        gone = cuts <= price
        if before is None or (gone != before).any():
            before, losses = gone, trial.measure.of_rows(cut(grown, gone), X, y) / trial.unit
        endless = np.isinf(losses)
        finite = np.where(endless, 0.0, losses)
        # Not by BLAS, whose sums depend on its threads.
        sums[:, k] = (weight * finite).sum(), (weight * finite**2).sum(), (endless & (weight > 0)).sum()
    return sums
