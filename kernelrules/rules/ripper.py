"""Rules of one class against the others: RIPPER [1]_, which refines IREP [2]_, with the estimates of Weka's JRip.

    build       grow a rule on a random share of the uncovered rows, prune it on the others, and add it, until the list
                takes 64 bits more than the shortest so far, a rule has an error rate of one half, or no row of the
                class is uncovered
    optimise    compare each rule with replacements (grown anew) and revisions (grown further), which are pruned for
                the accuracy of the whole list, or are any prefix of one grown on all rows; the variant that makes the
                list shortest stays. Then build on the uncovered rows
    delete      delete rules, from the last, without which the list is not longer; then those with
                right - wrong <= margin · √(right + wrong), that is, `margin` standard deviations of a fair coin

All this is repeated `tries` times with new random splits, and the shortest list is taken. The length of a list is that
of its rules and of its exceptions (core/rules/description_length.pyx). Variants are compared by the length of the list
after later rules that make it longer are deleted.

The tries, the margin and the prefixes are our own. Unlike in Weka, rows of a deleted rule are counted for the rules
that then cover them, all rules that stay count towards the length, and conditions that are merged in the end count
once.

References
----------
.. [1] W. W. Cohen, "Fast effective rule induction", ICML 1995.
.. [2] J. Fürnkranz and G. Widmer, "Incremental reduced error pruning", ICML 1994.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelrules.core.rules.cover import first_rule_weights, pack_at_least, split_rows, unpack, weights_by_depth
from kernelrules.core.rules.description_length import drop_costly_rules, theory_bits
from kernelrules.core.rules.grow_rule import RuleGrower

__all__ = ["Candidate", "ClassLearner", "GrownCondition", "Options", "RipperData", "row_splitter"]

MAX_SURPLUS_BITS = 64.0  # above the shortest list so far, at which building stops (Cohen 1995)
MAX_ERROR_RATE = 0.5

# column, first and last rank, low < x <= high; ranks -1, -1 and limits inf, -inf mean "is missing"
GrownCondition = tuple[int, int, int, float, float]


@dataclass(frozen=True, eq=False)
class RipperData:
    """The training rows of all classes.

    Attributes
    ----------
    grower : RuleGrower
        Grows rules on the columns.
    n_possible : int
        Number of possible conditions.
    codes : ndarray (n,) of int32
        Class of each row.
    n_classes : int
        Number of classes.
    weights : ndarray (n,) or None
        Sample weights; None for 1.
    """

    grower: RuleGrower
    n_possible: int
    codes: np.ndarray
    n_classes: int
    weights: np.ndarray | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def n_words(self) -> int:
        """Number of words of a set of rows."""
        return (len(self.codes) + 63) // 64

    @cached_property
    def padded(self) -> np.ndarray | None:
        """The weights, padded with 0 to whole words."""
        if self.weights is None:
            return None
        return np.concatenate([self.weights, np.zeros(64 * self.n_words - self.n_rows)])

    def packed(self, flags: np.ndarray) -> np.ndarray:
        """Return a set of rows, given by flags, as bits."""
        words = np.empty(self.n_words, dtype=np.uint64)
        pack_at_least(flags.astype(np.uint16), 1, words)
        return words

    def unpacked(self, words: np.ndarray) -> np.ndarray:
        """Return a set of rows as flags."""
        flags = np.empty(self.n_rows, dtype=np.uint8)
        unpack(words, flags)
        return flags


@dataclass(frozen=True)
class Options:
    """How to learn; `kernelrules.rules.induce` describes each of these."""

    prune: bool
    grow_share: float
    optimise: int
    variants: int
    tries: int
    min_margin: float
    min_weight: float
    max_rules: int
    max_conditions: int


@dataclass(frozen=True, eq=False)
class Candidate:
    """A rule of the list that is being learned.

    Attributes
    ----------
    conditions : list
        Its conditions, in the order in which they were grown.
    cover : ndarray of uint64
        The rows that it covers.
    bits : float
        Its description length.
    """

    conditions: list[GrownCondition]
    cover: np.ndarray
    bits: float


@dataclass(frozen=True, eq=False)
class ListCount:
    """Weights of all and of positive rows that belong to each rule of a list, and last to none; and the latter rows."""

    weights: np.ndarray
    rest: np.ndarray


class ClassLearner:
    """Learns the rules of one class, on the rows that no rule of an earlier class covers.

    Parameters
    ----------
    data : RipperData
        All rows.
    rows : ndarray of uint64
        The rows to learn from.
    positive : ndarray (n,) of uint8
        1 for rows of the class.
    share : float
        Share of the class, among it and the classes that are learned after it.
    options : Options
        How to learn.
    max_rules : int
        Largest number of rules of this class.
    split : callable
        split(rows) returns the growing set and the pruning set, as flags.
    check_interrupt : callable
        Called before each rule is grown; may raise.
    """

    def __init__(
        self,
        data: RipperData,
        rows: np.ndarray,
        positive: np.ndarray,
        share: float,
        options: Options,
        max_rules: int,
        split: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        check_interrupt: Callable[[], None],
    ) -> None:
        self.data, self.rows, self.positive, self.share = data, rows, positive, share
        self.options, self.max_rules, self.split, self.check_interrupt = options, max_rules, split, check_interrupt
        self.positive_words = data.packed(positive)
        self._depth = np.empty(data.n_rows, dtype=np.uint16)

    # ---- rules ---------------------------------------------------------------------------------------------------

    def candidate(self, conditions: list[GrownCondition]) -> Candidate:
        """Return the rule with these conditions."""
        self.data.grower.depths(conditions, self._depth)
        return self._prefix(conditions, len(conditions))

    def prefixes(self, conditions: list[GrownCondition]) -> list[Candidate]:
        """Return the rules with the first, the first two, ... of the conditions."""
        self.data.grower.depths(conditions, self._depth)
        return [self._prefix(conditions, size) for size in range(1, len(conditions) + 1)]

    def _prefix(self, conditions: list[GrownCondition], size: int) -> Candidate:
        """The rule with the first conditions, whose depths are in `_depth`."""
        cover = np.empty(self.data.n_words, dtype=np.uint64)
        pack_at_least(self._depth, size, cover)
        return Candidate(conditions[:size], cover, theory_bits(n_merged(conditions[:size]), self.data.n_possible))

    def grow(self, rows: np.ndarray, start: list[GrownCondition] | None = None) -> list[GrownCondition]:
        """Return conditions grown on the rows, after those at the start."""
        self.check_interrupt()
        start = start or []
        max_conditions = self.options.max_conditions - len(start)
        return start + self.data.grower.grow(rows, self.positive, self.options.min_weight, max_conditions)

    def prune(self, conditions: list[GrownCondition], rows: np.ndarray, whole: bool) -> list[GrownCondition]:
        """Return the prefix of the conditions with the highest value on the rows; of ties the shortest.

        The value is the share of the class among the covered rows or, if `whole`, the accuracy on all rows.
        """
        table = np.empty((len(conditions) + 1, 2))
        self.data.grower.depths(conditions, self._depth)
        weights_by_depth(self._depth, rows, self.positive, self.data.weights, table)
        total, positive = table[::-1].cumsum(axis=0)[::-1].T  # of rows that satisfy the first 0, 1, ... conditions
        if total[0] == 0:
            return conditions
        if whole:
            value = positive + (total[0] - positive[0]) - (total - positive)
        else:
            value = (positive + 1) / (total + 2)
        return conditions[: int(value.argmax())]

    def learn_rule(self, rest: np.ndarray) -> Candidate:
        """Return a new rule for the uncovered rows."""
        if not self.options.prune:
            return self.candidate(self.grow(self.data.unpacked(rest)))
        growing, pruning = self.split(self.data.unpacked(rest))
        return self.candidate(self.prune(self.grow(growing), pruning, whole=False))

    # ---- lists ---------------------------------------------------------------------------------------------------

    def count(self, rules: list[Candidate]) -> ListCount:
        """Count the rows that belong to each rule."""
        rest = self.rows.copy()
        weights = np.empty((len(rules) + 1, 2))
        first_rule_weights(
            self._covers(rules), np.arange(len(rules)), rest, self.positive_words, self.data.padded, weights
        )
        return ListCount(weights, rest)

    def _covers(self, rules: list[Candidate]) -> np.ndarray:
        return np.array([rule.cover for rule in rules], dtype=np.uint64).reshape(len(rules), self.data.n_words)

    def bits(self, rules: list[Candidate]) -> float:
        """Return the length of a list: that of its rules and of its exceptions."""
        return self._delete_costly(rules, len(rules))[1]

    def delete_rules(self, rules: list[Candidate]) -> list[Candidate]:
        """Return the list without rules that make it longer, or are not right often enough."""
        active, _ = self._delete_costly(rules, 0)
        rules = [rule for rule, stays in zip(rules, active, strict=True) if stays]
        while True:
            total, right = self.count(rules).weights[:-1].T
            weak = np.flatnonzero(right - (total - right) <= self.options.min_margin * np.sqrt(total))
            if len(weak) == 0:
                return rules
            del rules[weak[-1]]

    def _delete_costly(self, rules: list[Candidate], kept: int) -> tuple[np.ndarray, float]:
        """Return which rules stay if those after the first `kept` may be deleted, and the length of the list then."""
        active = np.empty(len(rules), dtype=np.uint8)
        bits = np.array([rule.bits for rule in rules], dtype=np.float64)
        length = drop_costly_rules(
            self._covers(rules), bits, kept, self.rows, self.positive_words, self.data.padded, self.share, active
        )
        return active, length

    def build(self, rules: list[Candidate]) -> list[Candidate]:
        """Return the list with new rules for the uncovered rows."""
        count = self.count(rules)
        shortest = self.bits(rules)
        while count.weights[-1, 1] > 0 and len(rules) < self.max_rules:
            rule = self.learn_rule(count.rest)
            longer = [*rules, rule]
            count = self.count(longer)
            total, positive = count.weights[-2]
            bits = self.bits(longer)
            shortest = min(shortest, bits)
            if bits > shortest + MAX_SURPLUS_BITS or positive == 0 or total - positive >= MAX_ERROR_RATE * total:
                break
            rules = longer
        return rules

    def variants(self, rules: list[Candidate], place: int) -> list[Candidate]:
        """Return a rule of a list, then its revisions and replacements: pruned ones, and prefixes grown on all rows."""
        old, rest = rules[place], self.count(rules[:place]).rest
        if not (old.cover & rest).any():
            return [old]
        found, seen = [old], {tuple(old.conditions)}
        later = np.bitwise_or.reduce([rule.cover for rule in rules[place + 1 :]] or [rest & ~rest])
        rows, alone, inside = (self.data.unpacked(words) for words in (rest, rest & ~later, old.cover))
        for _ in range(self.options.variants):
            growing, pruning = self.split(rows)
            pruning &= alone
            for conditions in (self.grow(growing & inside, old.conditions), self.grow(growing)):
                kept = self.prune(conditions, pruning, whole=True)
                if tuple(kept) not in seen:
                    seen.add(tuple(kept))
                    found.append(self.candidate(kept))
        for conditions in (self.grow(rows & inside, old.conditions), self.grow(rows)):
            found += [rule for rule in self.prefixes(conditions) if tuple(rule.conditions) not in seen]
        return found

    def optimise(self, rules: list[Candidate]) -> list[Candidate]:
        """Return the list with the best variant of each rule."""
        rules = list(rules)
        for place in range(len(rules)):
            lengths = []
            variants = self.variants(rules, place)
            for variant in variants:
                rules[place] = variant
                lengths.append(self._delete_costly(rules, place + 1)[1])
            rules[place] = variants[int(np.argmin(lengths))]
        return rules

    def learn(self) -> list[Candidate]:
        """Return the rules of the class: the shortest of several lists, of ties the first."""
        if not self.options.prune:
            return self.build([])
        return min((self.learn_once() for _ in range(self.options.tries)), key=self.bits)

    def learn_once(self) -> list[Candidate]:
        """Build and optimise a list."""
        rules = self.build([])
        for _ in range(self.options.optimise):
            rules = self.delete_rules(self.build(self.optimise(rules)))
        return rules


def n_merged(conditions: list[GrownCondition]) -> int:
    """Return the number of conditions after those on one column are merged."""
    below, above, levels = set(), set(), set()
    for column, _, _, low, high in conditions:
        if low > -np.inf:
            above.add(column)
        elif high < np.inf:
            below.add(column)
        else:
            levels.add(column)
    return len(below) + len(above) + len(levels)


def row_splitter(
    data: RipperData, share: float, rng: np.random.Generator
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function that splits rows into a growing and a pruning set, at random and stratified by class."""

    def split(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grow, prune = np.empty(data.n_rows, dtype=np.uint8), np.empty(data.n_rows, dtype=np.uint8)
        left = np.bincount(data.codes, rows, minlength=data.n_classes)
        n_grow = np.floor(share * left + rng.random(data.n_classes))
        split_rows(rows, data.codes, left, n_grow, rng.random(data.n_rows), grow, prune)
        return grow, prune

    return split
