"""rules.induce: read the data, learn the classes one after the other (ripper.py), make one list of their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, exact_weights, parallel
from kernelrules.core.rules.cover import first_rule_weights
from kernelrules.core.rules.grow_rule import RuleGrower
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules.ripper import Candidate, ClassLearner, GrownCondition, Options, RipperData, row_splitter
from kernelrules.rules.training_columns import TrainingColumns

__all__ = ["induce"]

_MISSING = ("fail", "extra", "error")
_MAX_COUNT = 1 << 15  # of conditions and of rules: conditions are counted in 16 bits
_DEFAULT_TRIES, _ONE_TRY_MIN_ROWS = 3, 10_000  # with more rows, less depends on how they are split


@parallel.reports("rules")
def induce(
    X: Any,
    y: Any,
    *,
    prune: bool = True,
    grow_share: float = 2 / 3,
    optimise: int = 2,
    variants: int = 1,
    tries: int | None = None,
    min_margin: float = 1.0,
    min_weight: float = 2.0,
    max_rules: int | None = None,
    max_conditions: int | None = None,
    class_order: Any = None,
    sample_weight: Any = None,
    categorical: Any = "from_dtype",
    missing: str = "fail",
    feature_names: Any = None,
    class_names: Any = None,
    rng: Any = None,
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> RuleList:
    """Learn an ordered rule list, or decision list [3]_, directly from data, by RIPPER [1]_.

    Classes are learned one after the other, each against those after it: from the rarest to the most frequent, ties in
    ascending order of their labels, or in `class_order`. The last class gets no rules; the default is the most frequent
    class of the rows that no rule covers, usually the last one. A rule is grown on a random share of the uncovered
    rows, condition after condition by information gain, and pruned on the others. Rules are added while the description
    length of rules and errors is not much larger than the smallest. Then each rule is compared with a replacement and a
    revision. Growing and pruning on disjoint sets is incremental reduced error pruning [2]_.

    Parameters
    ----------
    X : array, CSR matrix or data frame (n, p)
        Numbers and categories; missing values are NaN, None or NA. Sparse data stay sparse: the cost is that of their
        nonzero values.
    y : array (n,)
        Labels.
    prune : bool
        False grows rules on all rows, without pruning, optimisation or randomness.
    grow_share : float
        Share of the rows to grow on; the others are to prune on.
    optimise : int
        Rounds of optimisation.
    variants : int
        Pruned replacements and revisions of a rule that are tried in a round, each with a new random split.
    tries : int, optional
        Number of lists that are learned for a class, each with new random splits; the one with the smallest description
        length is taken. RIPPER has one. Default 3; 1 for more than 10 000 rows.
    min_margin : float
        A rule stays after a round only if its correct predictions outnumber the wrong ones by more than this many
        standard deviations of a fair coin, √(correct + wrong). RIPPER has 0. Lower values find more of a rare class, at
        the cost of accuracy.
    min_weight : float
        Smallest weight of rows of the class, among those to grow on, that a condition may keep.
    max_rules, max_conditions : int, optional
        Largest number of rules in total, and of conditions of a rule while it grows.
    class_order : sequence of labels, optional
        Every class of y once, in the order in which their rules are learned. Default: by ascending weight, ties by
        label.
    sample_weight : array (n,), optional
        Sample weights: weight 2 is the same as the row twice, except for the random splits. Weight 0 leaves a row out.
        Weights count rows: a `WeightWarning` is issued if their sum is far below the number of rows. They are rounded
        to 52 bits of their sum, so that all sums are exact.
    categorical : "from_dtype", None, or sequence of column numbers or names
        Columns of categories: those that do not hold numbers by their type, none, or these.
    missing : "fail", "extra" or "error"
        A missing value fails every condition; or satisfies only an extra one, "x is missing"; or is refused.
    feature_names, class_names : sequence of str, optional
        Names of columns and classes in text. Default: a data frame's names, or x0, x1, ...; the labels.
    {rng}
        It splits the rows into those to grow and those to prune on.
    {n_threads, callback, progress}

    Returns
    -------
    RuleList
        An ordered list: the first rule that holds decides. Support, confidence, n, weight and shares of a rule are
        those of the training rows that no earlier rule covers.

    References
    ----------
    .. [1] W. W. Cohen, "Fast effective rule induction", ICML 1995.
    .. [2] J. Fürnkranz and G. Widmer, "Incremental reduced error pruning", ICML 1994.
    .. [3] R. L. Rivest, "Learning decision lists", Machine Learning 2(3), 1987.

    Examples
    --------
    >>> from kernelrules import rules
    >>> X = [["sunny", 85], ["sunny", 80], ["overcast", 83], ["rainy", 70], ["rainy", 68], ["rainy", 65],
    ...      ["overcast", 64], ["sunny", 72], ["sunny", 69], ["rainy", 75], ["sunny", 75], ["overcast", 72]]
    >>> y = ["no", "no", "yes", "yes", "yes", "no", "yes", "no", "yes", "yes", "yes", "yes"]
    >>> print(rules.induce(X, y, prune=False, feature_names=["outlook", "temperature"]))
    outlook = sunny & temperature > 77.5 → no
    OTHERWISE → yes
    >>> equal = rules.induce([[0.0], [0.0], [1.0], [1.0]], ["a", "a", "b", "b"], prune=False, class_order=["b", "a"])
    >>> print(equal)
    x0 > 0.5 → b
    OTHERWISE → a
    """
    options = Options(
        prune=check.flag(prune, "prune"),
        grow_share=_share(grow_share),
        optimise=check.whole(optimise, "optimise", 0),
        variants=check.whole(variants, "variants", 1),
        tries=_DEFAULT_TRIES if tries is None else check.whole(tries, "tries", 1),
        min_margin=check.not_negative(min_margin, "min_margin"),
        min_weight=check.not_negative(min_weight, "min_weight"),
        max_rules=_limit(max_rules, "max_rules", 0),
        max_conditions=_limit(max_conditions, "max_conditions", 1),
    )
    check.one_of(missing, "missing", *_MISSING)
    rng = check.generator(rng)
    threads = parallel.n_threads_or_default(n_threads)
    tick = parallel.ticker(callback, "rules")
    columns = TrainingColumns(X, categorical, missing)
    columns.require_rows()
    classes, codes = check.labels(y, columns.n_rows)
    weights = check.weights(sample_weight, columns.n_rows)
    with np.errstate(over="ignore"):  # refused below
        total = float(weights.sum())
    check.counted_weights(total, int((weights > 0).sum()))
    names = check.column_names(feature_names, columns.names, columns.n_features)
    called = check.class_names(class_names, classes)
    order = _class_order(class_order, classes)
    if tries is None and columns.n_rows > _ONE_TRY_MIN_ROWS:
        options = replace(options, tries=1)
    data = _ripper_data(columns, codes, len(classes), weights, missing == "extra", threads)
    found = _learn_classes(data, order, options, rng, tick)
    rules, default, default_shares = _as_rules(data, classes, found, columns.n_levels)
    return RuleList(
        rules=rules,
        default=default,
        default_shares=default_shares,
        classes=classes,
        feature_names=names,
        class_names=called,
        levels=columns.categories,
        n_features=columns.n_features,
        ordered=True,
        missing=missing,
        missing_seen=columns.missing,
        columns=columns.names,
        n_train=columns.n_rows,
        indicators=columns.indicators,
    )


# ---- arguments --------------------------------------------------------------------------------------------------


def _limit(given: Any, name: str, least: int) -> int:
    return _MAX_COUNT if given is None else min(check.whole(given, name, least), _MAX_COUNT)


def _share(given: Any) -> float:
    share = check.positive(given, "grow_share")
    if share >= 1:
        raise ValueError(f"grow_share must be less than 1, got {given!r}; prune=False grows on all rows")
    return share


def _class_order(given: Any, classes: np.ndarray) -> list[int] | None:
    """Return the codes of the classes in the order given, or None."""
    if given is None:
        return None
    scalar = isinstance(given, (str, bytes)) or (isinstance(given, np.ndarray) and given.ndim == 0)
    if scalar or not isinstance(given, Iterable):
        raise TypeError(f"class_order must be a sequence of the classes, got {given!r}")
    number = {label: k for k, label in enumerate(classes.tolist())}
    order = []
    for label in given.tolist() if isinstance(given, np.ndarray) else given:
        try:
            k = number.get(label.item() if isinstance(label, np.generic) else label)
        except TypeError:  # not hashable, as labels are
            k = None
        if k is None:
            raise ValueError(f"class_order has {check.shown(label)}, which is not one of the classes of y")
        if k in order:
            raise ValueError(f"class_order has {check.shown(label)} twice")
        order.append(k)
    absent = [label for label, k in number.items() if k not in order]
    if absent:
        raise ValueError(f"class_order lacks {check.shown(absent[0])}: it must have every class of y")
    return order


# ---- data -------------------------------------------------------------------------------------------------------


def _ripper_data(
    columns: TrainingColumns, codes: np.ndarray, n_classes: int, weights: np.ndarray, ask_missing: bool, n_threads: int
) -> RipperData:
    """Leave out rows of weight 0; weights are None if all are 1."""
    used = weights > 0
    n = int(used.sum())
    columns.require_rows(used)
    ranked = columns.ranked(used, n_threads, n_copies=2)  # one of them is filtered while rules grow
    exact = None if (weights[used] == 1).all() else exact_weights.exact(weights[used])
    logs = None
    if exact is None:
        logs = np.zeros(n + 2)
        logs[1:] = np.log2(np.arange(1, n + 2))
    grower = RuleGrower(ranked, ask_missing, exact, logs, n_threads)
    return RipperData(grower, ranked.n_conditions(ask_missing), codes[used].astype(np.int32), n_classes, exact)


# ---- classes ----------------------------------------------------------------------------------------------------


def _learn_classes(
    data: RipperData, class_order: list[int] | None, options: Options, rng: np.random.Generator, tick: Any
) -> list[tuple[int, Candidate]]:
    """Learn the rules of each class, in the order given or from the rarest class on."""
    weight = np.bincount(data.codes, data.weights, minlength=data.n_classes)
    by_weight = np.argsort(weight, kind="stable").tolist()  # ties stay in the order of their labels
    order = [k for k in (by_weight if class_order is None else class_order) if weight[k] > 0]
    rest = data.packed(np.ones(data.n_rows, dtype=np.uint8))
    split = row_splitter(data, options.grow_share, rng)
    found: list[tuple[int, Candidate]] = []
    for place, k in enumerate(order[:-1]):
        positive = (data.codes == k).astype(np.uint8)
        share = float(weight[k] / weight[order[place:]].sum())
        limit = max(options.max_rules - len(found), 0)
        stage = ClassLearner(
            data, rest, positive, share, options, limit, split, _progress_reporter(tick, place, len(order) - 1)
        )
        rules = stage.learn()
        found += [(k, rule) for rule in rules]
        rest = stage.count(rules).rest
    if tick is not None:
        tick(len(order) - 1, len(order) - 1)
    return found


def _progress_reporter(tick: Any, done: int, total: int) -> Callable[[], None]:
    """Return a function that reports the number of classes done."""
    return (lambda: None) if tick is None else (lambda: tick(done, total))


# ---- the list ---------------------------------------------------------------------------------------------------


def _as_rules(
    data: RipperData, classes: np.ndarray, found: list[tuple[int, Candidate]], n_levels: np.ndarray
) -> tuple[tuple[Rule, ...], Any, np.ndarray]:
    """Return the rules with the statistics of the training rows that they cover, and the default with its shares."""
    always = [place for place, (_, rule) in enumerate(found) if not rule.conditions]
    otherwise = None
    if always:  # no later rule can hold first
        otherwise = found[always[0]][0]
        found = found[: always[0]]
    counts, rows = _class_weights(data, [rule for _, rule in found])
    total = float(counts.sum())
    rules = []
    for (k, rule), weights, n in zip(found, counts, rows, strict=False):
        weight = float(weights.sum())
        shares = weights / weight
        conditions = _merged_conditions(rule.conditions, n_levels)
        rules.append(Rule(conditions, classes[k], weight / total, float(shares[k]), int(n), weight, shares))
    left = counts[-1]
    if left.sum() == 0:
        left = counts.sum(axis=0)
    if otherwise is None:
        otherwise = int(left.argmax())
    return tuple(rules), classes[otherwise], left / left.sum()


def _class_weights(data: RipperData, rules: list[Candidate]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the classes, and the numbers of rows, that belong to each rule and last to none."""
    covers = np.array([rule.cover for rule in rules], dtype=np.uint64).reshape(len(rules), data.n_words)
    everything = data.packed(np.ones(data.n_rows, dtype=np.uint8))
    order, sums = np.arange(len(rules)), np.empty((len(rules) + 1, 2))
    counts = np.empty((len(rules) + 1, data.n_classes))
    for k in range(data.n_classes):
        first_rule_weights(covers, order, everything.copy(), data.packed(data.codes == k), data.padded, sums)
        counts[:, k] = sums[:, 1]
    first_rule_weights(covers, order, everything.copy(), everything, None, sums)
    return counts, sums[:, 0]


def _merged_conditions(conditions: list[GrownCondition], n_levels: np.ndarray) -> tuple[Condition, ...]:
    """Return one condition per column, in the order in which columns first occur."""
    limits: dict[int, tuple[int, float, float]] = {}
    for column, first, _, low, high in conditions:
        _, lowest, highest = limits.get(column, (0, -np.inf, np.inf))
        limits[column] = (first, max(low, lowest), min(high, highest))
    return tuple(_condition(column, *limit, bool(n_levels[column])) for column, limit in limits.items())


def _condition(column: int, first: int, low: float, high: float, is_category: bool) -> Condition:
    missing = low > high
    if is_category:
        return Condition(column, categories=() if missing else (first,), missing=missing)
    return Condition(column, low, high, missing=missing)
