"""Rules of one class against the others: RIPPER (Cohen 1995), with the estimates of Weka's JRip.

    build       grow a rule on some of the rows that are left, prune it on the others, add it; until the list takes
                64 bits more than the shortest so far, a rule is wrong half of the time, or no row of the class is left
    optimise    each rule in turn against replacements (grown anew) and revisions (grown on), pruned for the accuracy
                of the whole list, or grown on all rows and cut short anywhere; the variant that makes the list
                shortest stays. Then build on the rest
    reduce      drop rules, from the last, without which the list is not longer; then those that are not right often
                enough: right - wrong > margin · √(right + wrong), in standard deviations of a fair coin

All this is done several times, with rows dealt anew, and the shortest list is taken. The length of a list is that of
its rules and of its errors (core/length.pyx). Variants are compared by the length of the list after later rules that do
not pay were dropped. Unlike in Weka, rows of a dropped rule are counted where they fall then, the rules that stay are
paid for, and tests of one column that are merged in the end count once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelrules.core.cover import deal, first_matches, pack, unpack, weights_by_depth
from kernelrules.core.induce import Grower
from kernelrules.core.length import shorten, theory_bits

__all__ = ["Candidate", "Data", "Options", "Stage", "Test", "dealer"]

SURPLUS = 64.0  # bits above the shortest list at which building stops
MOST_WRONG = 0.5

Test = tuple[int, int, int, float, float]  # column, first and last rank, low < x <= high; -1, -1, inf, -inf: missing


@dataclass(frozen=True, eq=False)
class Data:
    """What all classes are learned from.

    Attributes
    ----------
    grower : Grower
        The columns.
    n_tests : int
        Conditions that there are.
    codes : ndarray (n,) of int32
        Classes.
    n_classes : int
        How many.
    weights : ndarray (n,) or None
        None is 1 for every row.
    """

    grower: Grower
    n_tests: int
    codes: np.ndarray
    n_classes: int
    weights: np.ndarray | None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return len(self.codes)

    @cached_property
    def n_words(self) -> int:
        """Of 64 rows."""
        return (len(self.codes) + 63) // 64

    @cached_property
    def padded(self) -> np.ndarray | None:
        """The weights, with 0 for what is left of the last word."""
        if self.weights is None:
            return None
        return np.concatenate([self.weights, np.zeros(64 * self.n_words - self.n_rows)])

    def packed(self, flags: np.ndarray) -> np.ndarray:
        """A set of rows as bits."""
        words = np.empty(self.n_words, dtype=np.uint64)
        pack(flags.astype(np.uint16), 1, words)
        return words

    def unpacked(self, words: np.ndarray) -> np.ndarray:
        """A set of rows as 1 for each."""
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
    """A rule, and which rows it covers.

    Attributes
    ----------
    tests : list
        In the order in which they were found.
    cover : ndarray of uint64
        Rows that satisfy all.
    bits : float
        Length of its description.
    """

    tests: list[Test]
    cover: np.ndarray
    bits: float


@dataclass(frozen=True, eq=False)
class Count:
    """What belongs to each rule of a list: weights of all rows and of those of the class; the last line is the rest."""

    weights: np.ndarray
    rest: np.ndarray


class Stage:
    """One class against the others, on the rows that no rule of an earlier class covers.

    Parameters
    ----------
    data : Data
        All rows.
    rows : ndarray of uint64
        Those to learn from.
    positive : ndarray (n,) of uint8
        1 for rows of the class.
    share : float
        Of the class, among it and those that are learned after it.
    options : Options
        How.
    max_rules : int
        Most rules of this class.
    split : callable
        split(rows) gives rows to grow on and rows to prune on, both as 1 for each.
    air : callable
        Called now and then.
    """

    def __init__(
        self,
        data: Data,
        rows: np.ndarray,
        positive: np.ndarray,
        share: float,
        options: Options,
        max_rules: int,
        split: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        air: Callable[[], None],
    ) -> None:
        self.data, self.rows, self.positive, self.share = data, rows, positive, share
        self.options, self.max_rules, self.split, self.air = options, max_rules, split, air
        self.positive_words = data.packed(positive)
        self._depth = np.empty(data.n_rows, dtype=np.uint16)

    # ---- rules ---------------------------------------------------------------------------------------------------

    def candidate(self, tests: list[Test]) -> Candidate:
        """The rule with these tests."""
        self.data.grower.depths(tests, self._depth)
        cover = np.empty(self.data.n_words, dtype=np.uint64)
        pack(self._depth, len(tests), cover)
        return Candidate(tests, cover, theory_bits(n_distinct(tests), self.data.n_tests))

    def beginnings(self, tests: list[Test]) -> list[Candidate]:
        """Rules with the first, the first two, ... of the tests."""
        self.data.grower.depths(tests, self._depth)
        found = []
        for size in range(1, len(tests) + 1):
            cover = np.empty(self.data.n_words, dtype=np.uint64)
            pack(self._depth, size, cover)
            found.append(Candidate(tests[:size], cover, theory_bits(n_distinct(tests[:size]), self.data.n_tests)))
        return found

    def grown(self, rows: np.ndarray, start: list[Test] | None = None) -> list[Test]:
        """Tests after those at the start, grown on the rows."""
        self.air()
        start = start or []
        most = self.options.max_conditions - len(start)
        return start + self.data.grower.grow(rows, self.positive, self.options.min_weight, most)

    def pruned(self, tests: list[Test], rows: np.ndarray, whole: bool) -> list[Test]:
        """The first of the tests, as many as are worth most on the rows; of equals the fewest.

        Worth is the share of covered rows that are of the class, or (whole) the share of rows that are right.
        """
        table = np.empty((len(tests) + 1, 2))
        self.data.grower.depths(tests, self._depth)
        weights_by_depth(self._depth, rows, self.positive, self.data.weights, table)
        total, positive = table[::-1].cumsum(axis=0)[::-1].T  # of rows that satisfy the first 0, 1, ... tests
        if total[0] == 0:
            return tests
        if whole:
            worth = positive + (total[0] - positive[0]) - (total - positive)
        else:
            worth = (positive + 1) / (total + 2)
        return tests[: int(worth.argmax())]

    def learned(self, rest: np.ndarray) -> Candidate:
        """A new rule for rows that are left."""
        if not self.options.prune:
            return self.candidate(self.grown(self.data.unpacked(rest)))
        grow, prune = self.split(self.data.unpacked(rest))
        return self.candidate(self.pruned(self.grown(grow), prune, whole=False))

    # ---- lists ---------------------------------------------------------------------------------------------------

    def count(self, rules: list[Candidate]) -> Count:
        """What belongs to each rule."""
        rest = self.rows.copy()
        weights = np.empty((len(rules) + 1, 2))
        first_matches(self._covers(rules), np.arange(len(rules)), rest, self.positive_words, self.data.padded, weights)
        return Count(weights, rest)

    def _covers(self, rules: list[Candidate]) -> np.ndarray:
        return np.array([rule.cover for rule in rules], dtype=np.uint64).reshape(len(rules), self.data.n_words)

    def bits(self, rules: list[Candidate]) -> float:
        """Length of a list: its rules and its errors."""
        return self._shortened(rules, len(rules))[1]

    def reduced(self, rules: list[Candidate]) -> list[Candidate]:
        """The list without rules that do not pay, or are not right often enough."""
        active, _ = self._shortened(rules, 0)
        rules = [rule for rule, stays in zip(rules, active, strict=True) if stays]
        while True:
            total, right = self.count(rules).weights[:-1].T
            weak = np.flatnonzero(right - (total - right) <= self.options.min_margin * np.sqrt(total))
            if len(weak) == 0:
                return rules
            del rules[weak[-1]]

    def _shortened(self, rules: list[Candidate], kept: int) -> tuple[np.ndarray, float]:
        """Which rules stay, and the length of the list then, if those after the first `kept` may be dropped."""
        active = np.empty(len(rules), dtype=np.uint8)
        bits = np.array([rule.bits for rule in rules], dtype=np.float64)
        length = shorten(
            self._covers(rules), bits, kept, self.rows, self.positive_words, self.data.padded, self.share, active
        )
        return active, length

    def build(self, rules: list[Candidate]) -> list[Candidate]:
        """The list with new rules for the rows that are left, while they pay."""
        count = self.count(rules)
        shortest = self.bits(rules)
        while count.weights[-1, 1] > 0 and len(rules) < self.max_rules:
            rule = self.learned(count.rest)
            longer = [*rules, rule]
            count = self.count(longer)
            total, positive = count.weights[-2]
            bits = self.bits(longer)
            shortest = min(shortest, bits)
            if bits > shortest + SURPLUS or positive == 0 or total - positive >= MOST_WRONG * total:
                break
            rules = longer
        return rules

    def variants(self, rules: list[Candidate], place: int) -> list[Candidate]:
        """A rule of a list, then revisions and replacements: pruned ones, and beginnings of those grown on all rows."""
        old, rest = rules[place], self.count(rules[:place]).rest
        if not (old.cover & rest).any():
            return [old]
        found, seen = [old], {tuple(old.tests)}
        later = np.bitwise_or.reduce([rule.cover for rule in rules[place + 1 :]] or [rest & ~rest])
        rows, alone, inside = (self.data.unpacked(words) for words in (rest, rest & ~later, old.cover))
        for _ in range(self.options.variants):
            grow, prune = self.split(rows)
            prune &= alone
            for tests in (self.grown(grow & inside, old.tests), self.grown(grow)):
                kept = self.pruned(tests, prune, whole=True)
                if tuple(kept) not in seen:
                    seen.add(tuple(kept))
                    found.append(self.candidate(kept))
        for tests in (self.grown(rows & inside, old.tests), self.grown(rows)):
            found += [rule for rule in self.beginnings(tests) if tuple(rule.tests) not in seen]
        return found

    def optimised(self, rules: list[Candidate]) -> list[Candidate]:
        """The list with the best variant of each rule."""
        rules = list(rules)
        for place in range(len(rules)):
            lengths = []
            variants = self.variants(rules, place)
            for variant in variants:
                rules[place] = variant
                lengths.append(self._shortened(rules, place + 1)[1])
            rules[place] = variants[int(np.argmin(lengths))]
        return rules

    def learn(self) -> list[Candidate]:
        """Rules of the class: the shortest of several lists, the first of equals."""
        if not self.options.prune:
            return self.build([])
        return min((self.learn_once() for _ in range(self.options.tries)), key=self.bits)

    def learn_once(self) -> list[Candidate]:
        """Built, and optimised."""
        rules = self.build([])
        for _ in range(self.options.optimise):
            rules = self.reduced(self.build(self.optimised(rules)))
        return rules


def n_distinct(tests: list[Test]) -> int:
    """Tests that are left when those of one column are merged."""
    below, above, levels = set(), set(), set()
    for column, _, _, low, high in tests:
        if low > -np.inf:
            above.add(column)
        elif high < np.inf:
            below.add(column)
        else:
            levels.add(column)
    return len(below) + len(above) + len(levels)


def dealer(data: Data, share: float, rng: np.random.Generator) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """What deals rows to grow and to prune on: at random, the same share of every class."""

    def split(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grow, prune = np.empty(data.n_rows, dtype=np.uint8), np.empty(data.n_rows, dtype=np.uint8)
        left = np.bincount(data.codes, rows, minlength=data.n_classes)
        wanted = np.floor(share * left + rng.random(data.n_classes))
        deal(rows, data.codes, left, wanted, rng.random(data.n_rows), grow, prune)
        return grow, prune

    return split
