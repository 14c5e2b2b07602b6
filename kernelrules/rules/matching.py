"""A rule list as the core reads it: distinct tests, the rules as lists of their numbers, and a tree of splits made of
these, so that the first rule that holds is found by a few comparisons (core/rule_tree.pyx).

Short lists whose tree would be much larger than they are, which is what overlapping rules make of it, are taken as they
stand, 64 rows at a time (core/match.pyx).

What was made of a list is kept as long as the list lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kernelrules import check, parallel
from kernelrules.core import match, walk
from kernelrules.core.rule_tree import RuleTree
from kernelrules.results import Condition, Rule, RuleList
from kernelrules.results.rules import UNSEEN
from kernelrules.tree.columns import lies_plainly, read_with_missing

__all__ = [
    "Matcher",
    "Tests",
    "compiled_tests",
    "halves",
    "is_plain",
    "masks_of",
    "matcher_of",
    "prediction_codes",
    "read_rows",
    "require_rules",
]

_NANOSECONDS_A_STEP = 1.0  # of one row, down one level
_NANOSECONDS_A_TEST = 2.0  # of one row
_LIMITS_WORTH_SORTING = 32  # of one column
# Of one row that goes through the list together with 63 others: gathering a column, passing a test; and when to do so.
_NANOSECONDS_A_COLUMN, _NANOSECONDS_A_SHARED_TEST = 0.8, 0.2
_MOST_NANOSECONDS_BY_WORDS = 75.0
_NODES_A_RULE = 8  # of a tree that is small


def require_rules(rs: Any) -> RuleList:
    """The rule list, if it is one."""
    if not isinstance(rs, RuleList):
        raise TypeError(f"rs must be a RuleList, as rules.extract returns it, got {type(rs).__name__}")
    return rs


@dataclass(frozen=True, eq=False)
class Tests:
    """The conditions of rules as arrays: rule i has the distinct tests ids[start[i] : start[i + 1]]."""

    start: np.ndarray
    ids: np.ndarray
    distinct: list[Condition]
    n_levels: np.ndarray
    compiled: match.Tests


def compiled_tests(rules: tuple[tuple[Condition, ...], ...], levels: tuple[Any, ...], *, merge: bool = True) -> Tests:
    """Conditions of several rules, in the columns whose levels are given; `merge` makes those of one column one."""
    numbers: dict[Condition, int] = {}
    start, ids = [0], []
    for place, conditions in enumerate(rules):
        for condition in _one_a_column(conditions, place) if merge else conditions:
            ids.append(numbers.setdefault(condition, len(numbers)))
        start.append(len(ids))
    distinct = list(numbers)
    n_levels = np.array([0 if named is None else len(named) for named in levels], dtype=np.int64)
    level_start, flags = _flags(distinct, levels)
    compiled = match.Tests(
        np.array([condition.feature for condition in distinct], dtype=np.int64),
        np.array([condition.low for condition in distinct], dtype=np.float64),
        np.array([condition.high for condition in distinct], dtype=np.float64),
        np.array([condition.missing for condition in distinct], dtype=np.uint8),
        level_start,
        flags,
        n_levels,
    )
    return Tests(np.array(start, dtype=np.int64), np.array(ids, dtype=np.int64), distinct, n_levels, compiled)


def halves(condition: Condition) -> tuple[Condition, ...]:
    """The two limits of an interval, each by itself."""
    if condition.categories is None and -np.inf < condition.low < condition.high < np.inf:
        column, missing = condition.feature, condition.missing
        above = Condition(column, low=condition.low, missing=missing)
        return above, Condition(column, high=condition.high, missing=missing)
    return (condition,)


def _one_a_column(conditions: tuple[Condition, ...], place: int) -> tuple[Condition, ...]:
    """Conditions of the same column as one."""
    if len({condition.feature for condition in conditions}) == len(conditions):
        return conditions
    merged: dict[int, Condition] = {}
    for condition in conditions:
        other = merged.get(condition.feature, condition)
        if (other.categories is None) != (condition.categories is None):
            raise ValueError(f"rule {place} takes column {condition.feature} for numbers and for categories")
        codes = condition.categories
        merged[condition.feature] = Condition(
            condition.feature,
            max(condition.low, other.low),
            min(condition.high, other.high),
            None if codes is None else tuple(sorted(set(codes) & set(other.categories))),
            condition.missing and other.missing,
        )
    return tuple(merged.values())


def _flags(distinct: list[Condition], levels: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Where the flags of each test begin (-1 for numbers), and the flags: of unseen levels, then of each level."""
    level_start, parts, n = np.full(len(distinct), -1, dtype=np.int64), [], 0
    for place, condition in enumerate(distinct):
        column = condition.feature
        if not 0 <= column < len(levels):
            raise ValueError(f"a rule has a condition on column {column}, but there are {len(levels)} columns")
        if np.isnan(condition.low) or np.isnan(condition.high):
            raise ValueError(f"a rule has NaN as a limit of column {column}")
        if levels[column] is None and condition.categories is None:
            continue
        n_levels = -1 if levels[column] is None else len(levels[column])
        codes = _codes(condition, n_levels)
        flags = np.zeros(n_levels + 1, dtype=np.uint8)
        flags[codes + 1] = 1
        level_start[place] = n
        parts.append(flags)
        n += len(flags)
    return level_start, np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint8)


def _codes(condition: Condition, n_levels: int) -> np.ndarray:
    """Of the levels that satisfy it."""
    column = condition.feature
    if condition.categories is None:
        if not (condition.only_known or condition.only_missing):
            raise ValueError(f"a rule compares column {column} with numbers, but it holds categories")
        return np.arange(UNSEEN, n_levels if condition.only_known else UNSEEN)
    codes = np.array(condition.categories, dtype=np.int64)
    if ((codes < UNSEEN) | (codes >= n_levels)).any():
        raise ValueError(f"a rule names the categories {condition.categories}, which column {column} does not have")
    return codes


def _predictions(rs: RuleList) -> np.ndarray:
    """What the rules, and last the default, predict."""
    if rs.classes is not None:
        return rs.classes[prediction_codes(rs)]
    return np.array([*(rule.prediction for rule in rs.rules), rs.default], dtype=np.float64)


def prediction_codes(rs: RuleList) -> np.ndarray:
    """Numbers of the classes that the rules, and last the default, predict."""
    code = {label: number for number, label in enumerate(rs.classes.tolist())}
    found = []
    for place, prediction in enumerate([*(rule.prediction for rule in rs.rules), rs.default]):
        plain = prediction.item() if isinstance(prediction, np.generic) else prediction
        if plain not in code:
            which = f"rule {place}" if place < len(rs.rules) else "the default"
            raise ValueError(f"{which} predicts {prediction!r}, which is none of the classes")
        found.append(code[plain])
    return np.array(found, dtype=np.int64)


def masks_of(tests: Tests, x: np.ndarray, threads: int) -> np.ndarray:
    """For each distinct test the rows that pass it, 64 in a word.

    Of columns that many limits are asked of the rows are sorted: then each limit costs a few words.
    """
    shape = (len(tests.distinct), -(-len(x) // 64))
    check.fits_memory(shape, np.uint64, "which rows pass which conditions")
    masks = np.empty(shape, dtype=np.uint64)
    by_column: dict[int, list[tuple[float, int]]] = {}
    others = []
    for number, condition in enumerate(tests.distinct):
        one_limit = (condition.low > -np.inf) != (condition.high < np.inf)
        if one_limit and condition.categories is None and np.isfinite(max(condition.low, -condition.high)):
            limit = condition.low if condition.low > -np.inf else condition.high
            by_column.setdefault(condition.feature, []).append((limit, number))
        else:
            others.append(number)
    for column, limits in by_column.items():
        if len(limits) < _LIMITS_WORTH_SORTING:
            others += [number for _, number in limits]
            continue
        limits.sort()
        values = x[:, column].astype(np.float64)
        order = np.argsort(values, kind="stable")  # NaN last
        n_known = len(x) - int(np.isnan(values).sum())
        below = np.searchsorted(values[order[:n_known]], [limit for limit, _ in limits], side="right")
        numbers = np.array([number for _, number in limits], dtype=np.int64)
        match.fill_thresholds(tests.compiled, numbers, below, order, n_known, masks)
    chosen = np.array(sorted(others), dtype=np.int64)
    match.fill_masks(tests.compiled, chosen, x, masks, parallel.enough_threads(threads, 64 * len(chosen) * shape[1]))
    return masks


class Matcher:
    """What a rule list becomes: the tree of its rules, and the lists of those leaves that the tree leaves open; or the
    tests of its rules alone, where a row is through these sooner (`nodes` is None then)."""

    def __init__(self, rs: RuleList) -> None:
        self.tests = compiled_tests(tuple(rule.conditions for rule in rs.rules), rs.levels)
        weights = np.array([_weight(rule) for rule in rs.rules], dtype=np.float64)
        built = RuleTree(self.tests.compiled, self.tests.start, self.tests.ids, self.tests.n_levels, weights)
        self.n_rules = len(rs.rules)
        self.predictions = _predictions(rs)
        self.by_words = len(self.tests.distinct) * _NANOSECONDS_A_SHARED_TEST + _NANOSECONDS_A_COLUMN * len(
            {condition.feature for condition in self.tests.distinct}
        )
        is_small = built.n_open == 0 and built.n_nodes <= _NODES_A_RULE * self.n_rules
        if not is_small and self.by_words < _MOST_NANOSECONDS_BY_WORDS:
            self.nodes = None
            return
        n = built.n_nodes
        whole = {name: np.empty(n, dtype=np.int64) for name in ("feature", "left", "right", "subset_start", "answer")}
        tree = SimpleNamespace(
            **whole,
            threshold=np.empty(n),
            weight=np.empty(n),
            missing_left=np.empty(n, dtype=bool),
            subset_left=np.empty(built.n_flags, dtype=np.uint8),
            n_features=rs.n_features,
            categories=rs.levels,
            surrogates=None,
            directions=None,
        )
        built.fill(
            tree.feature, tree.threshold, tree.left, tree.right, tree.weight, tree.missing_left.view(np.uint8),
            tree.subset_start, tree.subset_left, tree.answer,
        )  # fmt: skip
        self.answer = tree.answer
        self.nodes = walk.Nodes(tree)
        self.open = _open_lists(built) if built.n_open else None

    def answers(
        self, x: np.ndarray, any_missing: bool | None, table: np.ndarray, threads: int, tick: Any
    ) -> np.ndarray | None:
        """table[number of the first rule that holds], the last entry where none does.

        Whether there are missing values may be None, nobody having looked at x, whose rows have no gaps: that is done
        on the way, while they are in a cache, and the answer is None where not all numbers are finite.
        """
        by_number = table.ndim == 1 and table.dtype.itemsize == 8 and table.dtype.kind in "fiumM"
        if self.nodes is None:
            given = np.ascontiguousarray(table) if by_number else np.arange(self.n_rules + 1)
            out = self._by_words(x, any_missing is not None, given, threads, tick)
            return out if by_number or out is None else table.take(out, axis=0)
        direct = self.open is None and by_number
        by_node = table[np.maximum(self.answer, 0)] if direct else self.answer
        by_node = np.ascontiguousarray(by_node)
        out = np.empty(len(x), dtype=by_node.dtype)
        n_threads = parallel.enough_threads(threads, len(x) * (self.nodes.depth + 1) * _NANOSECONDS_A_STEP)
        leaves = by_node.view(np.int64), out.view(np.int64)
        if any_missing is not None:
            walk.apply_tree(self.nodes, x, *leaves, any_missing, n_threads, tick)
        elif not walk.apply_if_finite(self.nodes, x, *leaves, n_threads, tick):
            return None
        if direct:
            return out
        if self.open is not None:
            n_threads = parallel.enough_threads(threads, len(x) * self.n_rules * _NANOSECONDS_A_TEST)
            match.first_rules(self.tests.compiled, *self.open, self.n_rules, x, out, n_threads, tick)
        return table.take(out, axis=0)

    def _by_words(
        self, x: np.ndarray, looked_at: bool, table: np.ndarray, threads: int, tick: Any
    ) -> np.ndarray | None:
        """64 rows at a time through the tests of all rules."""
        out = np.empty(len(x), dtype=table.dtype)
        n_threads = parallel.enough_threads(threads, len(x) * self.by_words)
        listed = self.tests.compiled, self.tests.start, self.tests.ids
        answers = table.view(np.int64), out.view(np.int64)
        finite = match.first_rules_by_words(*listed, x, *answers, looked_at, n_threads, tick)
        return out if finite else None


def _weight(rule: Rule) -> float:
    """For an even tree only: any positive number is right."""
    weight = float(rule.weight)
    return weight if 0 < weight < np.inf else 1e-9


def _open_lists(built: RuleTree) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Groups of rules, and their tests, as `match.first_rules` takes them."""
    n_rules, n_tests = built.open_sizes()
    lists = tuple(np.empty(n, dtype=np.int64) for n in (built.n_open + 1, n_rules, n_rules + 1, n_tests))
    built.fill_open(*lists)
    return lists


def read_rows(rs: RuleList, X: Any, unseen: str = "allow", name: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """The data as numbers, and which columns have missing values."""
    check.one_of(unseen, "unseen", "allow", "error")
    columns = SimpleNamespace(
        categories=rs.levels, feature_names=rs.columns, n_features=rs.n_features, missing=rs.missing
    )
    return read_with_missing(columns, X, "larger" if unseen == "allow" else "error", name)


def is_plain(rs: RuleList, X: Any, unseen: str) -> bool:
    """Whether X can be read as it lies, and nothing but its numbers need be looked at."""
    return (
        lies_plainly(X, rs.n_features) and unseen in ("allow", "error") and all(levels is None for levels in rs.levels)
    )


_matchers: WeakKeyDictionary[RuleList, Matcher] = WeakKeyDictionary()


def matcher_of(rs: RuleList) -> Matcher:
    """The matcher of a rule list, made at its first use."""
    found = _matchers.get(rs)
    if found is None:
        _check_list(rs)
        found = _matchers[rs] = Matcher(rs)
    return found


def _check_list(rs: RuleList) -> None:
    if len(rs.levels) != rs.n_features:
        raise ValueError(f"levels has {len(rs.levels)} entries but there are {rs.n_features} columns")
    check.names(rs.feature_names, rs.n_features, "feature_names", "columns")
