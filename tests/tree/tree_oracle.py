"""Every split of one node, one after another: the slow, obvious twin of the compiled split scanner.

Losses are exact: fractions for gini, misclassification, squared and absolute error; decimals of 40 digits where there
are logarithms (entropy, gain ratio, poisson). A node is a list of row numbers of a `Sample`. What a split saves is
`gain`, in units of the loss W·Q; a tree's own `gain` is that over the weight of all rows.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, pairwise

import numpy as np

CLASSIFICATION = ("gini", "entropy", "misclassification", "gain_ratio")
REGRESSION = ("squared_error", "absolute_error", "poisson")
CRITERIA = CLASSIFICATION + REGRESSION
DIGITS = 40
MISSING = "missing"


def exact(number):
    """The number itself, not a rounded one: an int where it is one, which is faster."""
    fraction = Fraction(number)
    return int(fraction) if fraction.denominator == 1 else fraction


@dataclass(frozen=True)
class Sample:
    """Rows of numbers (NaN: missing), `levels[j]` the values of a categorical column or None; targets; weights."""

    X: np.ndarray
    levels: tuple
    y: list
    weight: list
    criterion: str

    @classmethod
    def of(cls, X, y, criterion, *, weight=None, categorical=()):
        X = np.asarray(X, dtype=np.float64)
        levels = tuple(
            sorted(set(X[~np.isnan(X[:, j]), j].tolist())) if j in categorical else None for j in range(X.shape[1])
        )
        if criterion in CLASSIFICATION:
            y = np.unique(y, return_inverse=True)[1].tolist()
        else:
            y = [exact(t) for t in np.asarray(y).tolist()]
        weight = [1] * len(y) if weight is None else [exact(w) for w in np.asarray(weight).tolist()]
        return cls(X, levels, y, weight, criterion)

    @cached_property
    def rows(self):
        """A row of weight zero is no row."""
        return [i for i, w in enumerate(self.weight) if w > 0]

    @cached_property
    def columns(self):
        """X as lists of Python's floats, which are told apart faster."""
        return self.X.T.tolist()

    @cached_property
    def weighted(self):
        """Weight times target of each row."""
        return [w * y for w, y in zip(self.weight, self.y, strict=True)]

    @cached_property
    def each(self):
        """What a row itself adds to the loss: w y², and for poisson w y log y."""
        if self.criterion == "squared_error":
            return [w * y * y for w, y in zip(self.weight, self.y, strict=True)]
        with localcontext(prec=DIGITS):
            return [as_decimal(w) * x_log_x(y) for w, y in zip(self.weight, self.y, strict=True)]

    @cached_property
    def known_losses(self):
        """Of rows that were asked for before: parents' are, column by column."""
        return {}

    def total(self, rows):
        return sum([self.weight[i] for i in rows])

    def total_of_targets(self, rows):
        return sum([self.weighted[i] for i in rows])

    def shares(self, rows):
        """Weight of each class."""
        counts = [0] * (max(self.y) + 1)
        for i in rows:
            counts[self.y[i]] += self.weight[i]
        return counts

    def mean(self, rows):
        """Of targets; of two classes the share of the second."""
        return Fraction(self.total_of_targets(rows)) / self.total(rows)

    def loss(self, rows):
        """W·Q: what is lost by giving all these rows the best one prediction."""
        key = tuple(rows)
        if key not in self.known_losses:
            self.known_losses[key] = self._loss(rows) if rows else 0
        return self.known_losses[key]

    def _loss(self, rows):
        W = self.total(rows)
        match self.criterion:
            case "gini":
                return W - Fraction(sum([c * c for c in self.shares(rows)])) / W
            case "misclassification":
                return W - max(self.shares(rows))
            case "entropy" | "gain_ratio":
                return entropy(self.shares(rows))
            case "squared_error":  # Σ w (y - S/W)², multiplied out: nothing is rounded here
                return sum([self.each[i] for i in rows]) - Fraction(self.total_of_targets(rows) ** 2) / W
            case "absolute_error":
                return self.loss_at(rows, self.a_median(rows))
        S = self.total_of_targets(rows)
        with localcontext(prec=DIGITS):  # Σ w y log y - S log(S/W)
            return sum([self.each[i] for i in rows], Decimal(0)) - x_log_x(S) + as_decimal(S) * ln(W)

    def a_median(self, rows):
        """The least value with half of the weight at or below it."""
        below, half = 0, Fraction(self.total(rows)) / 2
        for i in sorted(rows, key=lambda i: self.y[i]):
            below += self.weight[i]
            if below >= half:
                return self.y[i]
        raise AssertionError("no weight")

    def loss_at(self, rows, value):
        """Sum of absolute errors of one prediction."""
        value = exact(value)
        return sum([self.weight[i] * abs(self.y[i] - value) for i in rows])

    def is_pure(self, rows):
        return len({self.y[i] for i in rows}) <= 1


def as_decimal(number):
    fraction = Fraction(number)
    with localcontext(prec=DIGITS):
        return Decimal(fraction.numerator) / Decimal(fraction.denominator)


@cache
def ln(number):
    with localcontext(prec=DIGITS):
        return as_decimal(number).ln()


@cache
def x_log_x(number):
    """In nats; 0 log 0 is 0."""
    with localcontext(prec=DIGITS):
        x = as_decimal(number)
        return x * ln(number) if x else Decimal(0)


def entropy(weights):
    """W times the entropy of the shares, in bits."""
    with localcontext(prec=DIGITS):
        return (x_log_x(sum(weights)) - sum(map(x_log_x, weights))) / ln(2)


@dataclass(frozen=True)
class Split:
    """x <= threshold to the left, or the categories `left`; `missing_left` is None if no row of the node misses x."""

    column: int
    threshold: float | None
    left: frozenset | None
    missing_left: bool | None

    def parts(self, sample, rows):
        sides = [], []
        column = sample.columns[self.column]
        for i in rows:
            x = column[i]
            if x != x:
                goes_left = self.missing_left
            elif self.left is None:
                goes_left = x <= self.threshold
            else:
                goes_left = x in self.left
            sides[not goes_left].append(i)
        return sides


@cache
def halfway(a, b):
    """The float nearest to the middle of a < b, and never b."""
    middle = float((Fraction(a) + Fraction(b)) / 2)
    return middle if middle < b else a


def splits_of_column(sample, rows, j, *, subsets="best"):
    """All of them; of numbers by the tie rule's order: missing to the right first, known against missing last."""
    values = [sample.columns[j][i] for i in rows]
    known = sorted({x for x in values if x == x})
    some_missing = any(x != x for x in values)
    if sample.levels[j] is None:
        for a, b in pairwise(known):
            for side in (False, True) if some_missing else (None,):
                yield Split(j, halfway(a, b), None, side)
        if some_missing and known:
            yield Split(j, np.inf, None, False)
        return
    items = known + [MISSING] * some_missing  # missing is one more category
    match subsets:
        case "best":  # the last stays right: the other half of the subsets are the same partitions
            chosen = (left for size in range(1, len(items)) for left in combinations(items[:-1], size))
        case "one":
            chosen = ([item] for item in items)
        case "cuts":
            chosen = cuts_by_mean(sample, rows, j, items)
    for left in chosen if len(items) > 1 else ():
        yield Split(j, None, frozenset(left) - {MISSING}, (MISSING in left) if some_missing else None)


def cuts_by_mean(sample, rows, j, items):
    """Categories in the order of their mean targets, of two classes the share of the second: those up to each one."""

    def mean(item):
        inside = [i for i in rows if sample.X[i, j] == item or (item == MISSING and np.isnan(sample.X[i, j]))]
        return sample.mean(inside)

    ordered = sorted(items, key=mean)
    return (ordered[:end] for end in range(1, len(ordered)))


def candidates(sample, rows, *, min_leaf=1, min_share=0, subsets="best", missing="extra", columns=None):
    """Pairs of a split and what it gains, over all columns, with at least `min_leaf` rows and `min_share` of all the
    weight on either side.

    With missing="surrogate" a column is judged by the rows where it is known.
    """
    least = min_share * sample.total(sample.rows)
    for j in range(sample.X.shape[1]) if columns is None else columns:
        judged = rows if missing == "extra" else [i for i in rows if not np.isnan(sample.X[i, j])]
        before = sample.loss(judged)
        for split in splits_of_column(sample, judged, j, subsets=subsets):
            left, right = split.parts(sample, judged)
            if min(len(left), len(right)) >= min_leaf and min(map(sample.total, (left, right))) >= least:
                yield split, before - sample.loss(left) - sample.loss(right)


def by_cuts(sample):
    """What is searched where leaves have a least size: cuts of the categories in the order of their means, where the
    best subset of all is one of these (two classes, one target), though not the best of those with large leaves."""
    if sample.criterion in CLASSIFICATION:
        return "cuts" if max(sample.y) == 1 else "best"
    return "cuts" if sample.criterion != "absolute_error" else "best"


def best_gain(sample, rows, **options):
    """The most that any split gains; None if there is none."""
    return max((gain for _, gain in candidates(sample, rows, **options)), default=None)


def gain_of(sample, rows, left, right):
    """Of a split that is given by its parts."""
    return sample.loss(rows) - sample.loss(left) - sample.loss(right)


def split_information(sample, left, right):
    """In bits."""
    with localcontext(prec=DIGITS):
        return entropy([sample.total(left), sample.total(right)]) / as_decimal(sample.total(left + right))
