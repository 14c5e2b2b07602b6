"""tree.grow: check arguments, read data, call one of two builders, and make a `Tree` of its arrays.

core/tree/tree_arrays.pyx   compiled, on presorted columns: all settings but those below
numpy_builder.py            node by node: missing="fractional", splits="oblique", a criterion that is a Python function
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from kernelrules import check, parallel
from kernelrules.check.frames import Columns, read
from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.core.tree.presort import Presorted
from kernelrules.core.tree.tree_arrays import build_tree
from kernelrules.results import Surrogates, Tree
from kernelrules.tree.imputation import fill_values, filled
from kernelrules.tree.leaves import linear_models, median_values
from kernelrules.tree.numpy_builder import build_node_by_node
from kernelrules.tree.prediction import apply
from kernelrules.tree.problem import ENOUGH, Problem, Settings

__all__ = ["grow"]

_CHOICES = {
    "growth": ("depth", "best"),
    "missing": ("extra", "zero", "impute", "surrogate", "fractional", "error"),
    "leaf": ("constant", "median", "linear"),
    "splits": ("axis", "oblique"),
    "subsets": ("best", "one"),
}
_NO_LIMIT = 1 << 62
_EXACT = 2.0**53  # whole numbers up to here are float64 numbers
_MOST_LEVELS = 65535  # codes of two bytes
_PROBE = 1000  # numbers that are looked at first
_SMALL = 20000  # entries of a matrix that are not worth a second thread


@parallel.reports("tree")
def grow(
    X: Any,
    y: Any,
    *,
    criterion: str | Callable[[np.ndarray], np.ndarray] = "gini",
    growth: str = "depth",
    max_depth: int | None = None,
    max_leaves: int | None = None,
    min_split: int = 2,
    min_leaf: int = 1,
    min_share: float = 0.0,
    min_gain: float = 0.0,
    chi2: float | None = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    categorical: Any = "from_dtype",
    subsets: str = "best",
    missing: str = "extra",
    leaf: str = "constant",
    splits: str = "axis",
    monotone: Sequence[int] | None = None,
    max_features: int | float | str | None = None,
    rng: Any = None,
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> Tree:
    """Grow a decision tree: every node gets the split that lowers the loss W·Q most, found by exact search.

    Ties are decided in this order: the lowest column, the lowest threshold (for categories, the first in their order),
    missing values to the right. The tree does not depend on the number of threads. It does not depend on the order of
    rows if sums are exact, as they are for classes with whole weights and for whole targets.

    Parameters
    ----------
    X : array, CSR matrix or data frame (n, p)
        Numbers, compared as they are, in float64; categories; missing values as NaN, None or NA.
    y : array (n,), or (n, d) for squared_error and poisson
        Labels or numbers, as the criterion requires.
    criterion : str or callable
        For classes one of
        {class_criteria}
        or a concave function from class shares (m, K) to impurities (m,); for numbers one of
        {number_criteria}
        "misclassification" decides between equal splits by gini. "gain_ratio" is that of C4.5: it compares the splits
        of a column by gain, and the columns of at least average gain by gain over split information.
    growth : "depth" or "best"
        Without `max_leaves` both give the same tree.
    max_depth : int, optional
        Largest number of splits on the path to a leaf.
    max_leaves : int, optional
        Largest number of leaves. The leaf whose split gains most is split first.
    min_split : int
        Smallest number of rows of a node that may be split.
    min_leaf : int
        Smallest number of rows of a leaf.
    min_share : float
        Smallest weight of a leaf, as a share of the weight of all rows: 0 to 0.5.
    min_gain : float
        Smallest gain of a split, in the units of `Tree.gain`. At 0 an impure node is split even if that gains nothing.
    chi2 : float, optional
        Significance level: a split is made only if chance gives as large a chi-squared statistic of its sides and the
        classes with at most this probability. For classes only.
    sample_weight : array (n,), optional
        Weights of the rows. Weight 0 leaves a row out.
    class_weight : dict, "balanced", optional
        Factors of the weights by class; "balanced" is n / (n_classes · count).
    categorical : "from_dtype", None, or sequence of column numbers or names
        Columns of categories: those that do not hold numbers by their type, none, or these.
    subsets : "best" or "one"
        Splits on categories: any subset, or one level against the rest. The best subset is exact for two classes and
        one target (by the order of the levels' means; with absolute_error up to 12 levels) where `min_leaf` and
        `min_share` do not rule it out, and for more classes up to 12 levels in the node; beyond, levels are ordered
        along the first principal component of their class shares, a heuristic.
    missing : str
        "extra": every split learns the side of missing values; "zero" and "impute" (mean, or a level drawn at random)
        replace them; "surrogate": splits on other columns replace the split, as in CART and rpart, but agreement is
        counted in `sample_weight` times `class_weight` (in rpart, without class weights); "fractional": rows go down
        both sides in shares, as in C4.5; "error" refuses them. A missing value where training had none goes to the
        larger child.
    leaf : "constant", "median" or "linear"
        What leaves of a regression predict: the mean (the median for absolute_error), the median, or a ridge model of
        their rows.
    splits : "axis" or "oblique"
        Oblique splits are linear discriminants of the node, made where they gain more than the best column.
    monotone : sequence of -1, 0, 1, optional
        For each column whether predictions (of two classes: the share of the second) must fall or rise with it.
    max_features : int, float, "sqrt", "log2", optional
        Number or share of the columns that are considered in a node, drawn at random for each node.
    {rng}
        Used by `max_features` and "impute".
    {n_threads, callback, progress}

    Returns
    -------
    Tree
        Arrays with one entry per node.

    References
    ----------
    Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). Classification and Regression Trees. Wadsworth.

    Quinlan, J. R. (1993). C4.5: Programs for Machine Learning. Morgan Kaufmann. (Gain ratio, fractional rows.)

    Fisher, W. D. (1958). On grouping for maximum homogeneity. Journal of the American Statistical Association 53,
    789-798. (Categories in the order of their means.)

    Therneau, T. M. and Atkinson, E. J. An introduction to recursive partitioning using the rpart routines. Mayo
    Foundation. (Surrogates.)

    Examples
    --------
    >>> from kernelrules import tree
    >>> X = [["red", 0.5], ["red", 0.2], ["green", 0.5], ["blue", 0.1],
    ...      ["red", -0.5], ["green", 0.1], ["green", 0.4], ["blue", 0.0]]
    >>> t = tree.grow(X, [1, 2, 2, 1, 2, 1, 2, 2], criterion="entropy")
    >>> t
    Tree(entropy, 5 leaves, depth 4, 2 features)
    >>> print(t.feature[0], t.threshold[0], round(t.impurity[0] - t.gain[0], 4))
    1 0.05 0.75
    """
    for name, given in (
        ("growth", growth), ("missing", missing), ("leaf", leaf), ("splits", splits), ("subsets", subsets)
    ):  # fmt: skip
        check.one_of(given, name, *_CHOICES[name])
    if not callable(criterion):
        check.one_of(criterion, "criterion", *CRITERIA)
    missing = str(missing)
    draws = check.generator(rng)
    columns = read(X, categorical, missing)
    fill = fill_values(columns, missing, draws) if missing in ("zero", "impute") else None
    values = columns.values if fill is None else filled(columns.values, fill)
    problem, classes = _problem(values, columns, y, criterion, sample_weight, class_weight)
    _require_levels(columns)
    settings = Settings(
        criterion=criterion,
        growth=growth if max_leaves is None else "best",
        max_depth=None if max_depth is None else _limit(max_depth, "max_depth", 0),
        max_leaves=None if max_leaves is None else _limit(max_leaves, "max_leaves", 1),
        min_split=_limit(min_split, "min_split", 2),
        min_leaf=_limit(min_leaf, "min_leaf", 1),
        min_share=_min_share(min_share),
        min_gain=check.not_negative(min_gain, "min_gain"),
        chi2=_level(chi2, problem),
        subsets=subsets,
        missing="error" if fill is not None else missing,
        splits=splits,
        monotone=_monotone(monotone, problem),
        max_features=_n_features(max_features, problem.n_features),
        seed=int(draws.integers(1 << 63)),
        n_threads=parallel.n_threads_or_default(n_threads),
    )
    _require_leaf(leaf, problem, settings, bool(columns.missing.any()))
    tick = parallel.ticker(callback, "tree")
    by_rows = callable(criterion) or splits == "oblique" or (missing == "fractional" and columns.missing.any())
    arrays = build_node_by_node(problem, settings, tick) if by_rows else _build_compiled(problem, settings, tick)
    if missing == "fractional":
        arrays["n_samples"] = arrays["n_samples"].astype(np.float64)
    tree = Tree(
        **arrays,
        criterion=str(criterion) if isinstance(criterion, str) else getattr(criterion, "__name__", "callable"),
        missing=missing,
        classes=classes,
        categories=columns.categories,
        n_features=problem.n_features,
        n_outputs=problem.n_outputs,
        n_train=len(values),
        feature_names=columns.names,
        fill=fill,
        missing_seen=columns.missing,
        indicators=columns.indicators,
    )
    return _with_leaves(tree, leaf, X, columns, values, y, sample_weight, settings)


# ---- arguments --------------------------------------------------------------------------------------------------


def _limit(given: Any, name: str, least: int) -> int:
    """A whole number; beyond what rows can be numbered by, all are the same."""
    return min(check.whole(given, name, least), _NO_LIMIT // 4)


def _min_share(given: Any) -> float:
    share = check.real(given, "min_share")
    if not 0 <= share <= 0.5:
        raise ValueError(f"min_share must be from 0 to 0.5, got {given!r}")
    return share


def _level(chi2: Any, problem: Problem) -> float | None:
    if chi2 is None:
        return None
    level = check.positive(chi2, "chi2")
    if level > 1:
        raise ValueError(f"chi2 is a significance level, at most 1, got {chi2!r}")
    if problem.classes_of_rows is None:
        raise ValueError("chi2 tests a table of classes: it cannot be used for regression")
    return level


def _monotone(given: Any, problem: Problem) -> np.ndarray | None:
    if given is None:
        return None
    try:
        signs = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"monotone must be a sequence of numbers: {error}") from None
    if signs.shape != (problem.n_features,):
        raise ValueError(f"monotone must have an entry for each of {problem.n_features} columns, got {signs.shape}")
    if signs.dtype.kind not in "iuf" or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError("monotone must hold -1, 0 or 1 for each column")
    if not signs.any():
        return None
    if problem.n_classes > 2 or problem.n_outputs > 1:
        raise ValueError("monotone needs two classes or one target")
    if (signs[problem.n_levels > 0] != 0).any():
        raise ValueError("monotone must be 0 for columns of categories: they have no order")
    return np.ascontiguousarray(signs, dtype=np.int8)


def _n_features(given: Any, p: int) -> int | None:
    if given is None:
        return None
    if isinstance(given, str):
        check.one_of(given, "max_features", "sqrt", "log2")
        return max(1, int(np.sqrt(p) if given == "sqrt" else np.log2(p)))
    if isinstance(given, (float, np.floating)):
        share = check.positive(given, "max_features")
        if share > 1:
            raise ValueError(f"max_features as a share is at most 1, got {given!r}")
        return max(1, int(share * p))
    number = check.whole(given, "max_features", 1)
    if number > p:
        raise ValueError(f"max_features is {number}, but X has {p} columns")
    return number


def _require_levels(columns: Columns) -> None:
    if columns.n_levels.max(initial=0) > _MOST_LEVELS:
        column = int(columns.n_levels.argmax())
        raise ValueError(f"column {column} has {columns.n_levels[column]} categories; at most {_MOST_LEVELS} can be")


def _require_leaf(leaf: str, problem: Problem, settings: Settings, some_missing: bool) -> None:
    if leaf != "constant" and settings.missing == "fractional" and some_missing:
        raise ValueError(f'leaf="{leaf}" is a model of whole rows: not with missing="fractional" and missing values')
    if leaf != "constant" and settings.monotone is not None:
        raise ValueError(f'monotone holds for constant leaves only, got leaf="{leaf}"')
    if leaf != "constant" and problem.targets is None:
        raise ValueError(f'leaf="{leaf}" is for regression')
    if leaf == "linear" and problem.n_outputs > 1:
        raise ValueError('leaf="linear" is for one target')


# ---- data -------------------------------------------------------------------------------------------------------


def _problem(
    values: np.ndarray, columns: Columns, y: Any, criterion: Any, sample_weight: Any, class_weight: Any
) -> tuple[Problem, np.ndarray | None]:
    """What the growers read, rows of weight 0 left out, and the classes."""
    n = len(values)
    row = None if callable(criterion) else CRITERIA[criterion]
    if row is not None and not row.of_classes:
        if class_weight is not None:
            raise ValueError("class_weight is for classification")
        classes, codes, n_classes = None, None, 0
        targets = _targets(y, n, row)
        weights = None if sample_weight is None else check.weights(sample_weight, n)
    else:
        classes, codes = check.labels(y, n)
        codes, targets, n_classes = codes.astype(np.int32), None, len(classes)
        plain = class_weight is None and sample_weight is None
        weights = None if plain else check.class_weights(class_weight, sample_weight, classes, codes)
    if weights is not None:
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not np.isfinite(total):
            raise ValueError("sample_weight is too large: its sum overflows float64")
    if weights is not None and not weights.all():
        kept = weights > 0
        values, weights = values[kept], weights[kept]
        codes = None if codes is None else codes[kept]
        targets = None if targets is None else targets[kept]
    if weights is not None and (weights == 1).all():
        weights = None
    return Problem(values, columns.n_levels, codes, n_classes, targets, weights), classes


def _targets(y: Any, n: int, criterion: Any) -> np.ndarray:
    """Numbers to predict, (n, d)."""
    shape = np.shape(y)
    if len(shape) == 2 and not criterion.of_medians:
        if shape[0] != n or shape[1] == 0:
            raise ValueError(f"y has shape {shape}, but X has {n} rows")
        raw = np.asarray(y)
        targets = np.column_stack([check.targets(raw[:, k], n, f"y[:, {k}]") for k in range(shape[1])])
    else:
        targets = check.targets(y, n)[:, None]
    if criterion.needs_nonnegative and (targets < 0).any():
        row = int(np.argwhere(targets < 0)[0][0])
        raise ValueError(f"y must not be negative for {criterion.name}, got {targets[row].min()} at position {row}")
    with np.errstate(over="ignore"):
        squares = np.square(targets).sum()
    if not np.isfinite(squares):
        raise ValueError("y is too large: the sum of its squares overflows float64")
    return np.ascontiguousarray(targets)


# ---- the compiled grower ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scaled:
    """Numbers in another unit, a power of two, so that nothing is lost on the way there and back."""

    numbers: np.ndarray | None
    unit: float
    exact: bool  # whether they are whole, and their sums too


def _scaled(numbers: np.ndarray | None, weights: np.ndarray | None = None) -> _Scaled:
    """In the largest unit that all are multiples of, if sums are then exact; else with 1 as the order of the largest.

    Whole weights and targets have exact sums, so that equal splits are equal. Halves and thousands must not be worse.
    Scores are products of several sums: numbers around 1 neither overflow nor vanish.
    """
    if numbers is None:
        return _Scaled(None, 1.0, True)
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest == 0.0:
        return _Scaled(numbers, 1.0, True)
    heaviest = 1.0 if weights is None else float(weights.sum()) / len(weights)
    order = int(np.frexp(largest)[1]) - 1
    with np.errstate(under="ignore", over="ignore"):
        for some in (numbers[:_PROBE], numbers):  # most numbers that are not whole show it early
            lowest = _lowest_bit(some)
            if order - lowest > 53 or len(numbers) * heaviest * np.ldexp(largest, -lowest) >= _EXACT:
                return _Scaled(np.ldexp(numbers, -order), float(np.ldexp(1.0, order)), False)
        return _Scaled(np.ldexp(numbers, -lowest), float(np.ldexp(1.0, lowest)), True)


def _lowest_bit(numbers: np.ndarray) -> int:
    """Exponent of the largest power of two that divides all numbers."""
    mantissa, exponent = np.frexp(numbers[numbers != 0])
    if mantissa.size == 0:
        return 0
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponent - 53 + zeros).min())


def _build_compiled(problem: Problem, settings: Settings, tick: Any) -> dict[str, Any]:
    """Arrays of a tree from the presorted grower."""
    n, p, n_classes = problem.n_rows, problem.n_features, problem.n_classes
    criterion = CRITERIA[settings.criterion]
    class_bits = max(n_classes - 1, 0).bit_length()
    if n >= 1 << (31 - class_bits):
        raise ValueError(f"X has {n} rows: with {n_classes} classes at most {(1 << (31 - class_bits)) - 1} can be")
    weights = _scaled(problem.weights)
    targets = _scaled(problem.targets, weights.numbers)
    w = None if weights.numbers is None or (weights.numbers == 1).all() else weights.numbers
    exact = weights.exact and targets.exact
    y, centre = targets.numbers, np.zeros(problem.n_outputs)
    if y is not None and criterion.subtracts_mean and not exact:
        centre = np.average(y, axis=0, weights=w)
        y = y - centre
    n_threads = settings.n_threads if n * p > _SMALL else 1
    presorted = Presorted(
        problem.values,
        np.ascontiguousarray(problem.n_levels, dtype=np.intp),
        None if n_classes == 0 else problem.classes_of_rows.astype(np.uint32),
        class_bits,
        None if y is None else np.ascontiguousarray(y),
        w,
        criterion.of_medians,
        n_threads,
    )
    total = float(n if w is None else w.sum())
    # Where all weights are 1 the share is a number of rows.
    least = max(settings.min_leaf, math.ceil(settings.min_share * ENOUGH * total))
    unit, once_more = targets.unit, targets.unit if criterion.degree == 2 else 1.0  # their product may be 0
    grown = build_tree(
        presorted,
        criterion.number,
        n_classes,
        0 if y is None else problem.n_outputs,
        max_depth=_NO_LIMIT if settings.max_depth is None else settings.max_depth,
        max_leaves=settings.max_leaves or (_NO_LIMIT if settings.growth == "best" else 0),
        min_split=settings.min_split,
        min_leaf=least if w is None else settings.min_leaf,
        min_weight=0.0 if w is None else settings.min_share * ENOUGH * total,
        min_gain=settings.min_gain / unit / once_more,
        weight=total,
        critical=_critical_values(n_classes, settings.chi2, weights.unit),
        missing_apart=settings.missing == "surrogate",
        one_category=settings.subsets == "one",
        monotone=settings.monotone,
        max_features=p if settings.max_features is None else settings.max_features,
        seed=settings.seed,
        exact=exact,
        logs=_logs(n) if criterion.needs_logs and w is None else None,
        n_threads=n_threads,
        tick=tick,
    )
    weight, value = grown.sums[:, 0].copy(), grown.sums[:, 1:] / grown.sums[:, :1]
    if n_classes:
        if settings.monotone is not None and n_classes == 2:  # cut off at the bounds of the constraints
            value[1:, 1] = grown.value[1:]
            value[1:, 0] = 1 - grown.value[1:]
    elif settings.monotone is not None:
        value = (grown.value + centre[0]) * unit
    elif criterion.of_medians:
        value = grown.sums[:, 1] * unit
    else:
        value = (value + centre) * unit
        value = value[:, 0] if value.shape[1] == 1 else value
    return {
        "feature": grown.feature,
        "threshold": grown.threshold,
        "left": grown.left,
        "right": grown.right,
        "value": value,
        "n_samples": grown.n_samples,
        "weight": weight * weights.unit,
        "impurity": grown.loss / weight * unit * once_more,
        "gain": grown.gain / total * unit * once_more,
        "missing_left": grown.missing_left,
        "subset_start": grown.subset_start,
        "subset_left": grown.subset_left,
        "surrogates": _surrogates(grown) if settings.missing == "surrogate" else None,
    }


def _critical_values(n_classes: int, level: float | None, unit: float) -> np.ndarray | None:
    """Of chi-squared by degrees of freedom, in units of the weights."""
    with np.errstate(over="ignore"):  # infinite: weights that small are significant of nothing
        return None if level is None else chdtri(np.arange(n_classes), level) / unit


def _logs(n: int) -> np.ndarray:
    """c·log2 c for c from 0 to n."""
    counts = np.arange(n + 1, dtype=np.float64)
    counts[0] = 1
    return counts * np.log2(counts)


def _surrogates(grown: Any) -> Surrogates:
    fields = zip(*grown.surrogates, strict=True) if grown.surrogates else [()] * 5
    feature, threshold, below_left, subset, agreement = fields
    return Surrogates(
        start=grown.surrogate_start,
        feature=np.array(feature, dtype=np.int64),
        threshold=np.array(threshold, dtype=np.float64),
        below_left=np.array(below_left, dtype=bool),
        subset_start=np.array(subset, dtype=np.int64),
        agreement=np.array(agreement, dtype=np.float64),
    )


# ---- leaves -----------------------------------------------------------------------------------------------------


def _with_leaves(
    tree: Tree, leaf: str, X: Any, columns: Columns, values: np.ndarray, y: Any, sample_weight: Any, settings: Settings
) -> Tree:
    """The tree with medians or linear models in its leaves, where they are wanted."""
    if leaf == "constant":
        return tree
    targets = np.asarray(y, dtype=np.float64)
    weights = None if sample_weight is None else check.weights(sample_weight, len(targets))
    leaves = apply(tree, X, n_threads=settings.n_threads)
    if leaf == "median":
        return replace(tree, value=median_values(targets, weights, leaves, tree.right))
    fill = fill_values(columns, "impute", 0) if tree.fill is None else tree.fill
    models = linear_models(values, targets, weights, leaves, tree.n_nodes, n_levels=columns.n_levels, fill=fill)
    return replace(tree, linear=models, fill=fill)
