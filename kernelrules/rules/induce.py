"""rules.induce: data read, classes learned one after the other (ripper.py), their rules made one list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check, parallel, ties
from kernelrules.core.cover import first_matches
from kernelrules.core.induce import Grower
from kernelrules.core.ranked import Ranked, ranked_dense, ranked_sparse
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.rules.ripper import Candidate, Data, Options, Stage, Test, dealer
from kernelrules.tree.columns import Columns, read

__all__ = ["induce"]

_MISSING = ("fail", "extra", "error")
_NO_LIMIT = 1 << 15  # of conditions and rules; conditions are counted in two bytes
_MOST_ROWS = (1 << 31) - 1
_NANOSECONDS = 30.0  # to sort an entry
_N_TRIES, _MANY_ROWS = 3, 10_000  # where this is not given: so many tries, but one for more rows


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
    """Learn an ordered list of rules directly from data, by RIPPER.

    Classes are learned from the rarest to the most frequent, which becomes the default. A rule of a class is grown on
    a random share of the rows that are left, condition after condition by information gain, and pruned on the others;
    rules are added while the description of rules and errors is not much longer than the shortest; then each is tried
    against a replacement and a revision.

    Parameters
    ----------
    X : array, CSR matrix or data frame (n, p)
        Numbers, categories; missing values as NaN, None or NA. Sparse data are never made dense: the cost is that of
        their nonzeros.
    y : array (n,)
        Labels.
    prune : bool
        False grows rules on all rows, without pruning, and neither optimises nor draws anything at random.
    grow_share : float
        Share of the rows to grow on; the others are to prune on.
    optimise : int
        Rounds of optimisation.
    variants : int
        Pruned replacements and revisions of a rule that are tried in a round, each with rows dealt anew.
    tries : int, optional
        Lists of rules of a class that are learned, each with rows dealt anew; that of the shortest description is
        taken. RIPPER has one. Default 3; 1 for more than 10 000 rows, where less depends on how they are dealt.
    min_margin : float
        A rule stays after a round only if its right answers outnumber the wrong ones by more than so many standard
        deviations of a fair coin, √(right + wrong). 0 is RIPPER: more right than wrong. Lower it to find more of a rare
        class, at the cost of accuracy.
    min_weight : float
        Weight of rows of the class, among those to grow on: a rule is complete where its best condition keeps less.
    max_rules, max_conditions : int, optional
        Most rules in all, and most conditions of a rule while it grows.
    sample_weight : array (n,), optional
        Weights of the rows: 2 is the same as the row twice, but for how rows are dealt to grow and prune on. Weight 0
        leaves a row out. As they count rows, there is a `WeightWarning` where their sum is far below the number of
        rows. Rounded to 52 bits of their sum, so that all sums are exact.
    categorical : "from_dtype", None, or sequence of column numbers or names
        Columns of categories: those that do not hold numbers by their type, none, or these.
    missing : "fail", "extra" or "error"
        A missing value fails every condition; satisfies an extra one, "x is missing", and fails the others; or is
        refused.
    feature_names, class_names : sequence of str, optional
        What text calls columns and classes. Default: a data frame's names, or x0, x1, ...; the labels.
    rng : Generator or seed, optional
        For dealing rows to grow and to prune on.
    n_threads : int, optional
        Default all cores that this process may use. The rules do not depend on it.
    callback : callable, optional
        Told of progress.
    progress : bool
        Whether to show a bar, by tqdm.

    Returns
    -------
    RuleList
        Ordered: the first rule that holds counts. Support, confidence, rows, weight and shares of a rule are of the
        training rows that no earlier rule covers.

    Examples
    --------
    >>> from kernelrules import rules
    >>> X = [["sunny", 85], ["sunny", 80], ["overcast", 83], ["rainy", 70], ["rainy", 68], ["rainy", 65],
    ...      ["overcast", 64], ["sunny", 72], ["sunny", 69], ["rainy", 75], ["sunny", 75], ["overcast", 72]]
    >>> y = ["no", "no", "yes", "yes", "yes", "no", "yes", "no", "yes", "yes", "yes", "yes"]
    >>> print(rules.induce(X, y, prune=False, feature_names=["outlook", "temperature"]))
    outlook = sunny & temperature > 77.5 → no
    OTHERWISE → yes
    """
    options = Options(
        prune=check.flag(prune, "prune"),
        grow_share=_share(grow_share),
        optimise=check.whole(optimise, "optimise", 0),
        variants=check.whole(variants, "variants", 1),
        tries=_N_TRIES if tries is None else check.whole(tries, "tries", 1),
        min_margin=check.not_negative(min_margin, "min_margin"),
        min_weight=check.not_negative(min_weight, "min_weight"),
        max_rules=_limit(max_rules, "max_rules", 0),
        max_conditions=_limit(max_conditions, "max_conditions", 1),
    )
    check.one_of(missing, "missing", *_MISSING)
    draws = check.generator(rng)
    threads = parallel.n_threads_or_default(n_threads)
    tick = parallel.ticker(callback, "rules")
    table = _Table(X, categorical, missing)
    classes, codes = check.labels(y, table.n_rows)
    weights = check.weights(sample_weight, table.n_rows)
    with np.errstate(over="ignore"):  # refused below
        total = float(weights.sum())
    check.counted_weights(total, int((weights > 0).sum()))
    names = check.column_names(feature_names, table.names, table.n_features)
    called = check.class_names(class_names, classes)
    if tries is None and table.n_rows > _MANY_ROWS:
        options = replace(options, tries=1)
    data = _data(table, codes, len(classes), weights, missing == "extra", threads)
    found = _learned(data, options, draws, tick)
    rules, default, default_shares = _as_rules(data, classes, found, table.n_levels)
    return RuleList(
        rules=rules,
        default=default,
        default_shares=default_shares,
        classes=classes,
        feature_names=names,
        class_names=called,
        levels=table.categories,
        n_features=table.n_features,
        ordered=True,
        missing=missing,
        missing_seen=table.missing,
        columns=table.names,
        n_train=table.n_rows,
    )


# ---- arguments --------------------------------------------------------------------------------------------------


def _limit(given: Any, name: str, least: int) -> int:
    return _NO_LIMIT if given is None else min(check.whole(given, name, least), _NO_LIMIT)


def _share(given: Any) -> float:
    share = check.positive(given, "grow_share")
    if share >= 1:
        raise ValueError(f"grow_share must be less than 1, got {given!r}; prune=False grows on all rows")
    return share


# ---- data -------------------------------------------------------------------------------------------------------


class _Table:
    """What the user passed as X: dense columns, or sparse ones by column."""

    def __init__(self, X: Any, categorical: Any, missing: str) -> None:
        self._columns: Columns | None = None
        self._sparse: check.Csr | None = None
        if sparse.issparse(X) and (categorical is None or isinstance(categorical, str)):
            if categorical not in (None, "from_dtype"):
                read(np.zeros((1, 1)), categorical)  # refuses it
            rows = check.matrix(X)
            if rows.shape[0] == 0:
                raise ValueError(f"X has no rows: its shape is {rows.shape}")
            self._sparse = rows
            self.n_rows, self.n_features = rows.shape
            self.categories: tuple[Any, ...] = (None,) * self.n_features
            self.names = None
            self.missing = np.zeros(self.n_features, dtype=bool)
            self.n_levels = np.zeros(self.n_features, dtype=np.intp)
        else:
            columns = read(X, categorical, missing)
            self._columns = columns
            self.n_rows, self.n_features = columns.values.shape
            self.categories, self.names, self.missing = columns.categories, columns.names, columns.missing
            self.n_levels = columns.n_levels.astype(np.intp)

    def ranked(self, used: np.ndarray, n_threads: int) -> Ranked:
        """The columns of the rows in use, as ranks."""
        n_entries = self.n_rows * self.n_features if self._sparse is None else len(self._sparse.data)
        n_threads = parallel.enough_threads(n_threads, _NANOSECONDS * n_entries)
        check.fits_memory((4, n_entries), np.uint32, "the ranks of X")  # listed once, and once more for growing
        if self._sparse is None:
            values = self._columns.values
            return ranked_dense(values if used.all() else values[used], self.n_levels, n_threads)
        rows = self._sparse.toscipy()
        by_column = (rows if used.all() else rows[used]).tocsc()
        if not by_column.data.all():
            by_column = by_column.copy()
            by_column.eliminate_zeros()
        return ranked_sparse(
            by_column.data,
            by_column.indices.astype(np.intc, copy=False),
            by_column.indptr.astype(np.intp, copy=False),
            by_column.shape[0],
            n_threads,
        )


def _data(
    table: _Table, codes: np.ndarray, n_classes: int, weights: np.ndarray, ask_missing: bool, n_threads: int
) -> Data:
    """Rows of weight 0 left out; weights None where all are 1."""
    used = weights > 0
    n = int(used.sum())
    if n > _MOST_ROWS:
        raise ValueError(f"X has {n} rows: at most {_MOST_ROWS} can be")
    ranked = table.ranked(used, n_threads)
    exact = None if (weights[used] == 1).all() else ties.exact(weights[used])
    logs = None
    if exact is None:
        logs = np.zeros(n + 2)
        logs[1:] = np.log2(np.arange(1, n + 2))
    grower = Grower(ranked, ask_missing, exact, logs, n_threads)
    return Data(grower, ranked.n_tests(ask_missing), codes[used].astype(np.int32), n_classes, exact)


# ---- classes ----------------------------------------------------------------------------------------------------


def _learned(data: Data, options: Options, rng: np.random.Generator, tick: Any) -> list[tuple[int, Candidate]]:
    """Rules with their class, from the rarest class on."""
    weight = np.bincount(data.codes, data.weights, minlength=data.n_classes)
    order = [int(k) for k in np.argsort(weight, kind="stable") if weight[k] > 0]
    rest = data.packed(np.ones(data.n_rows, dtype=np.uint8))
    split = dealer(data, options.grow_share, rng)
    found: list[tuple[int, Candidate]] = []
    for place, k in enumerate(order[:-1]):
        positive = (data.codes == k).astype(np.uint8)
        share = float(weight[k] / weight[order[place:]].sum())
        limit = max(options.max_rules - len(found), 0)
        stage = Stage(data, rest, positive, share, options, limit, split, _air(tick, place, len(order) - 1))
        rules = stage.learn()
        found += [(k, rule) for rule in rules]
        rest = stage.count(rules).rest
    if tick is not None:
        tick(len(order) - 1, len(order) - 1)
    return found


def _air(tick: Any, done: int, total: int) -> Callable[[], None]:
    """Tells of progress."""
    return (lambda: None) if tick is None else (lambda: tick(done, total))


# ---- the list ---------------------------------------------------------------------------------------------------


def _as_rules(
    data: Data, classes: np.ndarray, found: list[tuple[int, Candidate]], n_levels: np.ndarray
) -> tuple[tuple[Rule, ...], Any, np.ndarray]:
    """Rules with what they cover of the training rows, and the default with its shares."""
    always = [place for place, (_, rule) in enumerate(found) if not rule.tests]
    otherwise = None
    if always:  # nothing comes after it
        otherwise = found[always[0]][0]
        found = found[: always[0]]
    counts, rows = _class_weights(data, [rule for _, rule in found])
    total = float(counts.sum())
    rules = []
    for (k, rule), weights, n in zip(found, counts, rows, strict=False):
        weight = float(weights.sum())
        shares = weights / weight
        conditions = _merged(rule.tests, n_levels)
        rules.append(Rule(conditions, classes[k], weight / total, float(shares[k]), int(n), weight, shares))
    left = counts[-1]
    if left.sum() == 0:
        left = counts.sum(axis=0)
    if otherwise is None:
        otherwise = int(left.argmax())
    return tuple(rules), classes[otherwise], left / left.sum()


def _class_weights(data: Data, rules: list[Candidate]) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the classes that belong to each rule, and to none; and the rows."""
    covers = np.array([rule.cover for rule in rules], dtype=np.uint64).reshape(len(rules), data.n_words)
    everything = data.packed(np.ones(data.n_rows, dtype=np.uint8))
    order, table = np.arange(len(rules)), np.empty((len(rules) + 1, 2))
    counts = np.empty((len(rules) + 1, data.n_classes))
    for k in range(data.n_classes):
        first_matches(covers, order, everything.copy(), data.packed(data.codes == k), data.padded, table)
        counts[:, k] = table[:, 1]
    first_matches(covers, order, everything.copy(), everything, None, table)
    return counts, table[:, 0]


def _merged(tests: list[Test], n_levels: np.ndarray) -> tuple[Condition, ...]:
    """One condition a column, in the order of the first test of each."""
    limits: dict[int, tuple[int, float, float]] = {}
    for column, first, _, low, high in tests:
        _, lowest, highest = limits.get(column, (0, -np.inf, np.inf))
        limits[column] = (first, max(low, lowest), min(high, highest))
    return tuple(_condition(column, *limit, bool(n_levels[column])) for column, limit in limits.items())


def _condition(column: int, first: int, low: float, high: float, is_category: bool) -> Condition:
    missing = low > high
    if is_category:
        return Condition(column, categories=() if missing else (first,), missing=missing)
    return Condition(column, low, high, missing=missing)
