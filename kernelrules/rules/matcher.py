"""A rule list compiled for prediction: its distinct conditions, and a decision tree made of its rules.

The first rule that holds is found by a few comparisons in that tree (core/rules/rule_tree.pyx). Overlapping rules make
a tree that is much larger than the list; short lists of such rules are evaluated as they are, for 64 rows at a time
(core/rules/match.pyx). A compiled list is cached as long as the list exists.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kernelrules import check, parallel
from kernelrules.check.frames import lies_plainly, read_with_missing, require_unseen
from kernelrules.core.rules import match
from kernelrules.core.rules.rule_tree import RuleTree
from kernelrules.core.tree import predict
from kernelrules.results import LinearFunction, Rule, RuleList
from kernelrules.rules.conditions import compile_conditions
from kernelrules.rules.linear_sums import all_levels, append_sums, functions_of, require_directions

__all__ = ["Matcher", "is_plain", "matcher_of", "prediction_codes", "read_columns", "read_rows", "require_rules"]

# Measured cost of one row, in nanoseconds
_NANOSECONDS_PER_LEVEL = 1.0  # of the tree
_NANOSECONDS_PER_CONDITION = 2.0  # in the list of an undecided leaf
_NANOSECONDS_PER_COLUMN, _NANOSECONDS_PER_SHARED_CONDITION = 0.8, 0.2  # evaluated for 64 rows at a time
_MAX_NANOSECONDS_BY_WORDS = 75.0  # lists that cost more are matched by their tree
_SMALL_TREE_NODES_PER_RULE = 8  # a tree with fewer nodes is always used


def require_rules(rs: Any) -> RuleList:
    """Return the rule list; raise TypeError if it is not one."""
    if not isinstance(rs, RuleList):
        raise TypeError(f"rs must be a RuleList, as rules.extract returns it, got {type(rs).__name__}")
    return rs


def _predictions(rs: RuleList) -> np.ndarray:
    """Predictions of the rules and last of the default; of linear functions, those for rows with a missing value."""
    if rs.classes is not None:
        return rs.classes[prediction_codes(rs)]
    answers = [*(rule.prediction for rule in rs.rules), rs.default]
    return np.array([a.otherwise if isinstance(a, LinearFunction) else a for a in answers], dtype=np.float64)


def prediction_codes(rs: RuleList) -> np.ndarray:
    """Codes of the classes that the rules and last the default predict."""
    code = {label: number for number, label in enumerate(rs.classes.tolist())}
    found = []
    for place, prediction in enumerate([*(rule.prediction for rule in rs.rules), rs.default]):
        plain = prediction.item() if isinstance(prediction, np.generic) else prediction
        if plain not in code:
            which = f"rule {place}" if place < len(rs.rules) else "the default"
            raise ValueError(f"{which} predicts {prediction!r}, which is not one of the classes")
        found.append(code[plain])
    return np.array(found, dtype=np.int64)


class Matcher:
    """A compiled rule list: a tree of its rules and the rule lists of its undecided leaves, or the conditions alone.

    `nodes` is None if evaluating the conditions of all rules is faster than the tree.
    """

    def __init__(self, rs: RuleList) -> None:
        levels = all_levels(rs)
        self.conditions = compile_conditions(tuple(rule.conditions for rule in rs.rules), levels, merge=True)
        weights = np.array([_weight(rule) for rule in rs.rules], dtype=np.float64)
        compiled = self.conditions
        built = RuleTree(compiled.table, compiled.start, compiled.ids, compiled.n_levels, weights)
        self.n_rules = len(rs.rules)
        self.predictions, self.functions = _predictions(rs), functions_of(rs)
        n_columns = len({condition.feature for condition in self.conditions.distinct})
        self.nanoseconds_by_words = (
            len(self.conditions.distinct) * _NANOSECONDS_PER_SHARED_CONDITION + _NANOSECONDS_PER_COLUMN * n_columns
        )
        is_small = built.n_undecided == 0 and built.n_nodes <= _SMALL_TREE_NODES_PER_RULE * self.n_rules
        if not is_small and self.nanoseconds_by_words < _MAX_NANOSECONDS_BY_WORDS:
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
            n_features=len(levels),
            categories=levels,
            surrogates=None,
            directions=None,
        )
        built.fill(
            tree.feature, tree.threshold, tree.left, tree.right, tree.weight, tree.missing_left.view(np.uint8),
            tree.subset_start, tree.subset_left, tree.answer,
        )  # fmt: skip
        self.answer = tree.answer
        self.nodes = predict.Nodes(tree)
        self.undecided = _undecided_lists(built) if built.n_undecided else None

    def answers(
        self, x: np.ndarray, any_missing: bool | None, table: np.ndarray, threads: int, tick: Any
    ) -> np.ndarray | None:
        """Return table[r] for each row, r being the first rule that holds, or the last entry if none does.

        If `any_missing` is None, the values of x, whose rows must be contiguous, are checked on the way, while they are
        in the cache; the result is None if one is not finite.
        """
        by_number = table.ndim == 1 and table.dtype.itemsize == 8 and table.dtype.kind in "fiumM"
        if self.nodes is None:
            given = np.ascontiguousarray(table) if by_number else np.arange(self.n_rules + 1)
            out = self._by_words(x, any_missing is not None, given, threads, tick)
            return out if by_number or out is None else table.take(out, axis=0)
        direct = self.undecided is None and by_number
        by_node = table[np.maximum(self.answer, 0)] if direct else self.answer
        by_node = np.ascontiguousarray(by_node)
        out = np.empty(len(x), dtype=by_node.dtype)
        n_threads = parallel.enough_threads(threads, len(x) * (self.nodes.depth + 1) * _NANOSECONDS_PER_LEVEL)
        leaves = by_node.view(np.int64), out.view(np.int64)
        if any_missing is not None:
            predict.apply_tree(self.nodes, x, *leaves, any_missing, n_threads, tick)
        elif not predict.apply_if_finite(self.nodes, x, *leaves, n_threads, tick):
            return None
        if direct:
            return out
        if self.undecided is not None:
            n_threads = parallel.enough_threads(threads, len(x) * self.n_rules * _NANOSECONDS_PER_CONDITION)
            match.first_rules(self.conditions.table, *self.undecided, self.n_rules, x, out, n_threads, tick)
        return table.take(out, axis=0)

    def _by_words(
        self, x: np.ndarray, known_finite: bool, table: np.ndarray, threads: int, tick: Any
    ) -> np.ndarray | None:
        """Evaluate the list for 64 rows at a time."""
        out = np.empty(len(x), dtype=table.dtype)
        n_threads = parallel.enough_threads(threads, len(x) * self.nanoseconds_by_words)
        listed = self.conditions.table, self.conditions.start, self.conditions.ids
        answers = table.view(np.int64), out.view(np.int64)
        finite = match.first_rules_by_words(*listed, x, *answers, known_finite, n_threads, tick)
        return out if finite else None


def _weight(rule: Rule) -> float:
    """Weight by which splits are balanced: any positive number gives a correct tree."""
    weight = float(rule.weight)
    return weight if 0 < weight < np.inf else 1e-9


def _undecided_lists(built: RuleTree) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The rules of the undecided leaves and their conditions, in the form of `match.first_rules`."""
    n_rules, n_conditions = built.undecided_sizes()
    lists = tuple(np.empty(n, dtype=np.int64) for n in (built.n_undecided + 1, n_rules, n_rules + 1, n_conditions))
    built.fill_undecided(*lists)
    return lists


def read_rows(rs: RuleList, X: Any, unseen: str = "allow", name: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """Read X as numbers, with the sums of columns in conditions; return also which columns have missing values."""
    return append_sums(rs, *read_columns(rs, X, unseen, name))


def read_columns(rs: RuleList, X: Any, unseen: str = "allow", name: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """Read X as numbers; return also which columns have missing values."""
    columns = SimpleNamespace(
        categories=rs.levels, feature_names=rs.columns, n_features=rs.n_features, missing=rs.missing, noun="rules"
    )
    return read_with_missing(columns, X, unseen, name)


def is_plain(rs: RuleList, X: Any, unseen: str) -> bool:
    """Return whether X is an array of numbers that can be used in place, once its values are known to be finite."""
    require_unseen(unseen)
    return rs.directions is None and lies_plainly(X, rs.n_features) and all(levels is None for levels in rs.levels)


_matchers: WeakKeyDictionary[RuleList, Matcher] = WeakKeyDictionary()


def matcher_of(rs: RuleList) -> Matcher:
    """Return the matcher of a rule list, compiled at its first use."""
    found = _matchers.get(rs)
    if found is None:
        _check_list(rs)
        found = _matchers[rs] = Matcher(rs)
    return found


def _check_list(rs: RuleList) -> None:
    if len(rs.levels) != rs.n_features:
        raise ValueError(f"levels has {len(rs.levels)} entries but there are {rs.n_features} columns")
    check.names(rs.feature_names, rs.n_features, "feature_names", "columns")
    require_directions(rs)
