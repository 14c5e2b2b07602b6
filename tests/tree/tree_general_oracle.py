"""A tree by its definition: every split of a node tried, in rational numbers where the criterion allows it.

A node is a list of members (row, weight, share): the weight of the row in this node, and how much of the row is here.
X is a list of rows with None for missing; y a list of class numbers or of tuples of targets.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise

LEFT, RIGHT, NEITHER = "L", "R", "-"


@dataclass(frozen=True)
class Data:
    X: list
    n_levels: list
    y: list
    n_classes: int  # 0 for regression
    weights: list

    def root(self):
        return [(i, Fraction(w), Fraction(1)) for i, w in enumerate(self.weights) if w > 0]


@dataclass
class Node:
    members: list
    column: int = -1
    threshold: float = math.nan
    left_levels: frozenset = frozenset()
    missing_left: bool = False
    gain: Fraction = Fraction(0)
    children: list = field(default_factory=list)

    @property
    def n_samples(self):
        return sum(share for _, _, share in self.members)

    @property
    def weight(self):
        return sum(weight for _, weight, _ in self.members)


# ---- losses -------------------------------------------------------------------------------------------------------


def class_weights(data, members):
    counts = [Fraction(0)] * data.n_classes
    for row, weight, _ in members:
        counts[data.y[row]] += weight
    return counts


def loss(criterion, data, members):
    """W·Q of some members."""
    if not members:
        return Fraction(0)
    if data.n_classes:
        return class_loss(criterion, class_weights(data, members))
    return sum(number_loss(criterion, data, members, d) for d in range(len(data.y[0])))


def class_loss(criterion, counts):
    total = sum(counts)
    if criterion == "gini":
        return total - sum(c * c for c in counts) / total
    if criterion == "misclassification":
        return total - max(counts)
    return -sum(float(c) * math.log2(c / total) for c in counts if c)


def number_loss(criterion, data, members, output):
    pairs = [(Fraction(data.y[row][output]), weight) for row, weight, _ in members]
    total = sum(w for _, w in pairs)
    mean = sum(w * y for y, w in pairs) / total
    if criterion == "squared_error":
        return sum(w * (y - mean) ** 2 for y, w in pairs)
    if criterion == "absolute_error":
        return min(sum(w * abs(y - m) for y, w in pairs) for m, _ in pairs)
    return sum(float(w) * (float(y) * math.log(y / mean) if y else 0.0) - float(w * (y - mean)) for y, w in pairs)


def value(criterion, data, members):
    total = sum(w for _, w, _ in members)
    if data.n_classes:
        return [c / total for c in class_weights(data, members)]
    columns = [[(Fraction(data.y[row][d]), w) for row, w, _ in members] for d in range(len(data.y[0]))]
    if criterion == "absolute_error":
        return [median(pairs) for pairs in columns]
    return [sum(w * y for y, w in pairs) / total for pairs in columns]


def median(pairs):
    """The middle of all m with half of the weight at or below and half at or above."""
    half = sum(w for _, w in pairs) / 2
    values = sorted({y for y, _ in pairs})
    below = [sum(w for y, w in pairs if y <= m) for m in values]
    lower = next(m for m, b in zip(values, below, strict=True) if b >= half)
    upper = next(m for m, b in zip(values, below, strict=True) if b > half)
    return (lower + upper) / 2


def is_pure(data, members):
    return len({data.y[row] for row, _, _ in members}) == 1


# ---- splits -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    column: int
    sides: tuple  # of each member
    threshold: float = math.nan
    left_levels: frozenset = frozenset()
    missing_left: bool | None = None


def splits_of_column(data, members, column, missing, subsets="best"):
    """Every split of one column: by threshold ascending, then missing to the right first."""
    known = sorted({data.X[row][column] for row, _, _ in members} - {None})
    some_missing = any(data.X[row][column] is None for row, _, _ in members)
    learn_side = missing == "extra" and some_missing
    ways = [RIGHT, LEFT] if learn_side else [NEITHER]
    if learn_side and subsets == "one" and data.n_levels[column]:
        ways = [RIGHT]  # missing is a level like the others: one of these is split off, or missing is
    if subsets == "ordered" and data.n_levels[column]:
        known, subsets = in_order_of_means(data, members, column, known, missing)
    for goes_left, threshold, levels in divisions(known, data.n_levels[column] > 0, subsets):
        for way in ways:
            yield make_split(data, members, column, goes_left, way, threshold, levels)
    if learn_side and known:
        levels = frozenset(known) if data.n_levels[column] else frozenset()
        threshold = math.nan if data.n_levels[column] else math.inf
        yield make_split(data, members, column, set(known), RIGHT, threshold, levels)


def divisions(known, categorical, subsets):
    if not categorical:
        for low, high in pairwise(known):
            yield {v for v in known if v <= low}, float((Fraction(low) + Fraction(high)) / 2), frozenset()
        return
    if subsets == "first":
        for size in range(1, len(known)):
            yield set(known[:size]), math.nan, frozenset(known[:size])
        return
    sizes = [1] if subsets == "one" else range(1, len(known))
    for size in sizes:
        for chosen in combinations(known, size):
            if len(chosen) < len(known):
                yield set(chosen), math.nan, frozenset(chosen)


def in_order_of_means(data, members, column, known, missing):
    """The levels by what they predict, if that is one number; then only first parts of them are divided off."""
    here = [member for member in members if data.X[member[0]][column] is not None]
    present = sorted({data.y[row] for row, _, _ in (members if missing == "extra" else here)})
    if (data.n_classes and len(present) != 2) or (not data.n_classes and len(data.y[0]) > 1):
        return known, "best"

    def mean(level):
        cells = [(data.y[row], w) for row, w, _ in here if data.X[row][column] == level]
        numbers = [(y == present[1] if data.n_classes else y[0], w) for y, w in cells]
        return sum(w * y for y, w in numbers) / sum(w for _, w in numbers)

    return sorted(known, key=mean), "first"


def make_split(data, members, column, goes_left, way, threshold, levels):
    cells = [data.X[row][column] for row, _, _ in members]
    sides = tuple(way if cell is None else LEFT if cell in goes_left else RIGHT for cell in cells)
    return Split(column, sides, threshold, levels, None if way == NEITHER else way == LEFT)


def part(members, split, side):
    return [member for member, s in zip(members, split.sides, strict=True) if s == side]


def gain_of(criterion, data, members, split):
    """What a split takes off the loss of the members that it sends somewhere."""
    left, right = part(members, split, LEFT), part(members, split, RIGHT)
    return loss(criterion, data, left + right) - loss(criterion, data, left) - loss(criterion, data, right)


def allowed_splits(data, members, column, missing, min_leaf=1, subsets="best", min_weight=0):
    for split in splits_of_column(data, members, column, missing, subsets):
        sides = [part(members, split, side) for side in (LEFT, RIGHT)]
        if all(sum(share for *_, share in side) >= min_leaf for side in sides) and all(
            sum(weight for _, weight, _ in side) >= min_weight for side in sides
        ):
            yield split


def best_gain(criterion, data, members, missing, min_leaf=1, subsets="best", min_weight=0):
    """The most that any split gains; None if there is no split."""
    gains = [
        gain_of(criterion, data, members, split)
        for column in range(len(data.n_levels))
        for split in allowed_splits(data, members, column, missing, min_leaf, subsets, min_weight)
    ]
    return max(gains, default=None)


def gain_ratio(data, members, split):
    """C4.5's: missing members of a fractional split are a part of their own."""
    total = float(sum(w for _, w, _ in members))
    parts = [float(sum(w for _, w, _ in part(members, split, side))) / total for side in (LEFT, RIGHT, NEITHER)]
    information = -sum(p * math.log2(p) for p in parts if p)
    return gain_of("entropy", data, members, split) / total / information


def children(members, split):
    """The members of both sides; those of neither side go to both in shares of the others' weight."""
    left, right = part(members, split, LEFT), part(members, split, RIGHT)
    weights = [sum(w for _, w, _ in side) for side in (left, right)]
    result = []
    for side, weight in zip((LEFT, RIGHT), weights, strict=True):
        share_here = weight / sum(weights)
        result.append(
            [
                (row, w, share) if s == side else (row, w * share_here, share * share_here)
                for (row, w, share), s in zip(members, split.sides, strict=True)
                if s in (side, NEITHER)
            ]
        )
    return result


# ---- the whole tree -----------------------------------------------------------------------------------------------


def first_best(criterion, data, members, splits):
    """The first of the splits with the largest gain (misclassification: of these with the largest gini gain)."""
    ranked = []
    for split in splits:
        second = gain_of("gini", data, members, split) if criterion == "misclassification" else 0
        ranked.append(((gain_of(criterion, data, members, split), second), split))
    best = max(key for key, _ in ranked)
    return next((key[0], split) for key, split in ranked if key == best)


def first_best_by_ratio(data, members, splits):
    """C4.5's choice, in floats: the column's best by gain, then by ratio among those of at least average gain."""
    by_column = {}
    for split in splits:
        by_column.setdefault(split.column, []).append((gain_of("entropy", data, members, split), split))
    best = []
    for pairs in by_column.values():
        most = max(gain for gain, _ in pairs)
        best.append(next(pair for pair in pairs if pair[0] >= most - 1e-11))
    average = sum(gain for gain, _ in best) / len(best)
    good = [(gain_ratio(data, members, split), gain, split) for gain, split in best if gain >= average - 1e-11]
    most = max(ratio for ratio, *_ in good)
    return next((gain, split) for ratio, gain, split in good if ratio >= most - 1e-11)


def grow(criterion, data, members, missing, *, max_depth=99, min_split=2, min_leaf=1, subsets="best"):
    """The tree by recursion, with the documented rule for ties between numerical columns."""
    node = Node(members)
    if max_depth == 0 or node.n_samples < min_split or is_pure(data, members):
        return node
    splits = [
        split
        for column in range(len(data.n_levels))
        for split in allowed_splits(data, members, column, missing, min_leaf, subsets)
    ]
    if not splits:
        return node
    if criterion == "gain_ratio":
        node.gain, split = first_best_by_ratio(data, members, splits)
    else:
        node.gain, split = first_best(criterion, data, members, splits)
    node.column, node.threshold, node.left_levels = split.column, split.threshold, split.left_levels
    limits = {"max_depth": max_depth - 1, "min_split": min_split, "min_leaf": min_leaf, "subsets": subsets}
    node.children = [grow(criterion, data, side, missing, **limits) for side in children(members, split)]
    left, right = node.children
    node.missing_left = left.weight >= right.weight if split.missing_left is None else split.missing_left
    return node


def depth_first(node):
    yield node
    for child in node.children:
        yield from depth_first(child)
