"""The best split of every column in one node, over all thresholds or subsets of levels at once.

Numerical columns, and categorical ones whose levels are put in order, are sorted and cut; the columns of a node are
scanned together, as many as fit a block of memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelrules.tree.impurities import Measure
from kernelrules.tree.problem import ENOUGH

__all__ = ["NodeRows", "Split", "best_splits", "first_best", "projection_split"]

_BLOCK = 1 << 21  # cells of an array of all cuts of a block of columns
_MOST_ENUMERATED = 12  # levels; 2047 subsets


@dataclass(frozen=True, eq=False)
class NodeRows:
    """The rows of one node.

    Attributes
    ----------
    values : ndarray (m, p) of float64
        As in `Problem`.
    n_levels : ndarray (p,)
        As in `Problem`.
    weights, shares : ndarray (m,)
        Weight of each row in this node, and how much of the row is here: 1 unless fractional.
    measure : Measure
        The criterion for these rows.
    fractional : bool
        Rows with a missing value are left out of a column's splits; otherwise they take the better side.
    one_category : bool
        Split one level off, instead of any subset.
    min_leaf : int
        Rows that each side must have; fractional: known ones.
    min_weight : float
        Weight that each side must have, likewise.
    """

    values: np.ndarray
    n_levels: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    measure: Measure
    fractional: bool
    one_category: bool
    min_leaf: int
    min_weight: float


@dataclass(frozen=True, eq=False)
class Split:
    """One way to divide a node.

    Attributes
    ----------
    feature : int
        The column; -1 with a direction.
    gain : float
        What it takes off W·Q (fractional: of the rows where the column is known).
    tie_gain : float
        The same by the measure that breaks ties.
    threshold : float
        Up to here goes left; +inf divides known from missing; NaN for levels.
    level_sides : ndarray of uint8 or None
        1 left, 0 right, 2 not in the node.
    missing_left : bool or None
        Side of missing values; None where none was missing, and for fractional.
    direction : ndarray (p,) or None
        Of an oblique split.
    """

    feature: int
    gain: float
    tie_gain: float = 0.0
    threshold: float = np.nan
    level_sides: np.ndarray | None = None
    missing_left: bool | None = None
    direction: np.ndarray | None = None

    def sides(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which rows go left for their value, and in which it is missing."""
        if self.direction is not None:
            used = np.flatnonzero(self.direction)
            return values[:, used] @ self.direction[used] <= self.threshold, np.zeros(len(values), dtype=bool)
        column = values[:, self.feature]
        missing = np.isnan(column)
        if self.level_sides is None:
            return column <= self.threshold, missing
        left = np.zeros(len(values), dtype=bool)
        left[~missing] = self.level_sides[column[~missing].astype(np.intp)] == 1
        return left, missing


def best_splits(node: NodeRows, columns: np.ndarray) -> list[Split]:
    """The best split of each column that has one.

    Parameters
    ----------
    node : NodeRows
        The node's rows.
    columns : ndarray of int
        The columns to look at, ascending.

    Returns
    -------
    list of Split
        In the order of the columns.
    """
    found: dict[int, Split] = {}
    keys, ordered, ranks = [], [], {}
    for column in columns.tolist():
        if node.n_levels[column] == 0:
            keys.append(node.values[:, column])
        else:
            levels = _Levels(node, column)
            if levels.by_subsets:
                split = levels.best_subset()
                if split is not None:
                    found[column] = split
                continue
            ranks[column] = levels
            keys.append(levels.ranks_of_rows())
        ordered.append(column)
    for column, cut in zip(ordered, _cuts(node, keys), strict=True):
        if cut is not None:
            found[column] = ranks[column].split_at(cut) if column in ranks else _at_threshold(column, cut)
    return [found[column] for column in sorted(found)]


def projection_split(node: NodeRows, projected: np.ndarray, direction: np.ndarray, gap: float) -> Split | None:
    """The best threshold of a projection of the rows.

    Parameters
    ----------
    node : NodeRows
        The node's rows.
    projected : ndarray (m,)
        Their projections.
    direction : ndarray (p,)
        On what.
    gap : float
        Projections that differ by no more are not divided: another order of summation could swap them.

    Returns
    -------
    Split or None
        None if no threshold leaves enough rows on both sides.
    """
    cut = next(iter(_cuts(node, [projected], gap)))
    if cut is None:
        return None
    return Split(-1, cut.gain, cut.tie_gain, threshold=_halfway(cut.low, cut.high), direction=direction)


def first_best(gains: np.ndarray, tie_gains: np.ndarray | None, noise: float, tie_noise: float) -> np.ndarray:
    """Along the first axis: the first of those whose gain is the largest but for rounding.

    Parameters
    ----------
    gains : ndarray (m, ...)
        -inf where there is no split.
    tie_gains : ndarray (m, ...) or None
        What decides between equal gains, before the order does.
    noise, tie_noise : float
        Size of the rounding.

    Returns
    -------
    ndarray of int
        Where it stands.
    """
    near = gains >= gains.max(axis=0) - noise
    if tie_gains is not None:
        among = np.where(near, tie_gains, -np.inf)
        near = among >= among.max(axis=0) - tie_noise
    return near.argmax(axis=0)


# ---- cuts of sorted rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cut:
    """The best place to cut one column between its keys `low` and `high`; high is None for known against missing."""

    gain: float
    tie_gain: float
    low: float
    high: float | None
    missing_left: bool | None


def _cuts(node: NodeRows, keys: list[np.ndarray], gap: float = 0.0):
    """Yield the best cut of each column of keys, or None."""
    width = max(1, _BLOCK // max(1, len(node.values) * max(1, node.measure.value.size)))
    for start in range(0, len(keys), width):
        yield from _block_of_cuts(node, np.column_stack(keys[start : start + width]), gap)


def _block_of_cuts(node: NodeRows, keys: np.ndarray, gap: float):
    m, c = keys.shape
    order = np.argsort(keys, axis=0, kind="stable")  # missing last
    in_order = np.take_along_axis(keys, order, axis=0)
    known = ~np.isnan(in_order)
    n_known = known.sum(axis=0)
    lacking = np.flatnonzero(n_known < m)
    between = np.zeros((m, c), dtype=bool)
    between[:-1] = in_order[1:] > in_order[:-1] + gap
    keep, cut_here = None, between
    if len(lacking) and node.fractional:
        keep = known
    elif len(lacking):
        cut_here = between.copy()
        mixed = lacking[n_known[lacking] > 0]
        cut_here[n_known[mixed] - 1, mixed] = True  # known left, missing right
    gains = np.full((m, 2, c), -np.inf)
    ties = None if node.measure.tie_breaker is None else np.zeros((m, 2, c))
    _fill_gains(node, order, keep, cut_here, gains[:, 0], None if ties is None else ties[:, 0])
    if len(lacking) and not node.fractional:
        _fill_missing_left(node, order[:, lacking], n_known[lacking], between[:, lacking], gains, ties, lacking)
    flat = gains.reshape(2 * m, c)  # by threshold, then missing right before missing left
    flat_ties = None if ties is None else ties.reshape(2 * m, c)
    tie_noise = 0.0 if ties is None else node.measure.tie_breaker.noise
    best = first_best(flat, flat_ties, node.measure.noise, tie_noise)
    for j in range(c):
        at = best[j]
        if flat[at, j] == -np.inf:
            yield None
            continue
        i, side = divmod(int(at), 2)
        yield _Cut(
            gain=float(flat[at, j]),
            tie_gain=0.0 if flat_ties is None else float(flat_ties[at, j]),
            low=float(in_order[i, j]),
            high=float(in_order[i + 1, j]) if i + 1 < n_known[j] else None,
            missing_left=bool(side) if n_known[j] < m and not node.fractional else None,
        )


def _fill_gains(node, order, keep, cut_here, gains, tie_gains) -> None:
    """Write the gain of every cut (m, c) that is one and leaves enough rows on both sides."""
    shares = node.shares[order]
    left = np.cumsum(shares if keep is None else np.where(keep, shares, 0.0), axis=0)
    least = node.min_leaf * ENOUGH
    allowed = cut_here & (left >= least) & (left[-1] - left >= least)
    if node.min_weight > 0:
        weights = node.weights[order]
        weight = np.cumsum(weights if keep is None else np.where(keep, weights, 0.0), axis=0)
        allowed &= (weight >= node.min_weight) & (weight[-1] - weight >= node.min_weight)
    if not allowed.any():
        return
    np.copyto(gains, _gains_of_cuts(node.measure, order, keep), where=allowed)
    if tie_gains is not None:
        np.copyto(tie_gains, _gains_of_cuts(node.measure.tie_breaker, order, keep), where=allowed)


def _gains_of_cuts(measure: Measure, order: np.ndarray, keep: np.ndarray | None) -> np.ndarray:
    losses = measure.cut_losses(order, keep)
    return _without_noise(measure, losses[-1] - losses)


def _without_noise(measure: Measure, gains: np.ndarray) -> np.ndarray:
    """Gains of exactly 0 where they are 0 but for rounding, so that ties between these are ties."""
    gains[np.abs(gains) <= measure.noise] = 0.0
    return np.maximum(gains, 0.0) if measure.concave else gains


def _fill_missing_left(node, order, n_known, between, gains, ties, columns) -> None:
    """Write the gains with missing values on the left: the same cuts of an order that begins with them."""
    m, n_missing = len(order), len(order) - n_known
    place = np.arange(m)[:, None]
    rolled = np.take_along_axis(order, (place - n_missing) % m, axis=0)
    rolled_cuts = np.take_along_axis(between, (place - n_missing) % m, axis=0)
    rolled_gains = np.full(order.shape, -np.inf)
    rolled_ties = None if ties is None else np.zeros(order.shape)
    _fill_gains(node, rolled, None, rolled_cuts, rolled_gains, rolled_ties)
    back = (place + n_missing) % m
    gains[:, 1, columns] = np.take_along_axis(rolled_gains, back, axis=0)
    if ties is not None:
        ties[:, 1, columns] = np.take_along_axis(rolled_ties, back, axis=0)


def _halfway(low: float, high: float) -> float:
    """The middle of two numbers, or the lower where rounding would reach the larger."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


def _at_threshold(column: int, cut: _Cut) -> Split:
    threshold = np.inf if cut.high is None else _halfway(cut.low, cut.high)
    return Split(column, cut.gain, cut.tie_gain, threshold=threshold, missing_left=cut.missing_left)


# ---- categorical columns ------------------------------------------------------------------------------------------


class _Levels:
    """The levels of one categorical column that occur in a node.

    Two classes, or one number to predict: the best subset is a first part of the levels in the order of their means
    (for absolute error this order, then of medians, is a heuristic; so is it where `min_leaf` forbids the best cut,
    though other subsets might have enough rows). More classes or numbers: all subsets are tried
    up to 12 levels; beyond, the levels are put in order along the first principal component of their class shares.
    """

    def __init__(self, node: NodeRows, column: int):
        self._node, self._column = node, column
        codes = node.values[:, column]
        self._missing = np.isnan(codes)
        present, place = np.unique(codes[~self._missing].astype(np.intp), return_inverse=True)
        self._present = present
        self._group = np.full(len(codes), -1)
        self._group[~self._missing] = place
        several = len(present) > 1
        self._profile = self._profile_of_levels() if several else np.zeros((len(present), 1))
        few = node.measure.enumerable and len(present) <= _MOST_ENUMERATED
        self.by_subsets = several and (node.one_category or (self._profile.shape[1] > 1 and few))

    def _profile_of_levels(self) -> np.ndarray:
        """Where the levels lie among the classes of all rows that a split sends somewhere."""
        q = len(self._present)
        if self._node.fractional or not self._missing.any():
            return self._node.measure.profile(self._group, q)
        return self._node.measure.profile(np.where(self._missing, q, self._group), q + 1)[:q]

    def ranks_of_rows(self) -> np.ndarray:
        """Keys to cut: the place of each row's level in their order; NaN where missing."""
        self._ranks = np.empty(len(self._present))
        self._ranks[np.argsort(self._scores(), kind="stable")] = np.arange(len(self._present))
        keys = np.full(len(self._group), np.nan)
        keys[~self._missing] = self._ranks[self._group[~self._missing]]
        return keys

    def _scores(self) -> np.ndarray:
        if self._profile.shape[1] == 1:
            return self._profile[:, 0]
        known = ~self._missing
        weights = np.bincount(self._group[known], self._node.weights[known])
        centred = self._profile - weights @ self._profile / weights.sum()
        axis = np.linalg.eigh((centred.T * weights) @ centred)[1][:, -1]
        return centred @ (axis * np.sign(axis[np.abs(axis).argmax()]))

    def split_at(self, cut: _Cut) -> Split:
        """The split of a cut of the ranks."""
        left = self._ranks <= cut.low
        return Split(self._column, cut.gain, cut.tie_gain, level_sides=self._sides(left), missing_left=cut.missing_left)

    def _sides(self, left: np.ndarray) -> np.ndarray:
        sides = np.full(self._node.n_levels[self._column], 2, dtype=np.uint8)
        sides[self._present] = left
        return sides

    def best_subset(self) -> Split | None:
        """The best of the subsets, or None if none leaves enough rows on both sides."""
        node, q = self._node, len(self._present)
        members = np.eye(q, dtype=bool) if node.one_category else _all_subsets(q)
        group, n_groups = self._group, q
        learn_side = bool(self._missing.any()) and not node.fractional
        if learn_side:
            group, n_groups = np.where(self._missing, q, group), q + 1
            members = _with_missing(members, both_sides=not node.one_category)
        gains = self._gains(members, group, n_groups, node.measure)
        breaker = node.measure.tie_breaker
        ties = None if breaker is None else self._gains(members, group, n_groups, breaker)
        best = int(first_best(gains, ties, node.measure.noise, 0.0 if breaker is None else breaker.noise))
        if gains[best] == -np.inf:
            return None
        return Split(
            self._column,
            float(gains[best]),
            0.0 if ties is None else float(ties[best]),
            level_sides=self._sides(members[best, :q]),
            missing_left=bool(members[best, q]) if learn_side else None,
        )

    def _gains(self, members: np.ndarray, group: np.ndarray, n_groups: int, measure: Measure) -> np.ndarray:
        counted = group >= 0
        rows = np.bincount(group[counted], self._node.shares[counted], minlength=n_groups)
        least = self._node.min_leaf * ENOUGH
        allowed = (members @ rows >= least) & (~members @ rows >= least)
        weight = np.bincount(group[counted], self._node.weights[counted], minlength=n_groups)
        allowed &= (members @ weight >= self._node.min_weight) & (~members @ weight >= self._node.min_weight)
        losses, total = measure.subset_losses(members, group)
        return np.where(allowed, _without_noise(measure, total - losses), -np.inf)


def _with_missing(members: np.ndarray, *, both_sides: bool) -> np.ndarray:
    """Sets of levels with missing as one level more: to the right, then if wanted to the left; last, alone."""
    repeated = np.repeat(members, 2, axis=0) if both_sides else members
    missing_left = np.arange(len(repeated) + 1) % 2 == 1 if both_sides else np.zeros(len(repeated) + 1, dtype=bool)
    return np.column_stack([np.vstack([repeated, np.ones(members.shape[1], dtype=bool)]), missing_left])


def _all_subsets(q: int) -> np.ndarray:
    """Every way to divide q levels in two, (2^(q-1) - 1, q): the last level is always on the right."""
    numbers = np.arange(1, 1 << (q - 1))
    return (numbers[:, None] >> np.arange(q)) & 1 == 1
