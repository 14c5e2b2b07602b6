"""Grows a tree node by node in NumPy, for options that the compiled builder does not support.

That is missing="fractional", where rows come apart; splits="oblique", where every node has columns of its own; and a
criterion that is a Python function. All other settings work here as well, but for surrogates and monotone constraints.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, entr

from kernelrules.core.tree.criteria import CRITERIA
from kernelrules.tree.column_scan import NodeRows, Split, best_splits, first_best, projection_split
from kernelrules.tree.directions import discriminant
from kernelrules.tree.impurities import Measure, measure_of
from kernelrules.tree.problem import ENOUGH, Problem, Settings

__all__ = ["build_node_by_node"]

_EPS = float(np.finfo(np.float64).eps)
_RATIO_NOISE = 1e-13  # of a gain ratio, which lies between 0 and 1
_64_BITS = (1 << 64) - 1


def build_node_by_node(problem: Problem, settings: Settings, tick: Any = None) -> dict[str, Any]:
    """Grow a tree node by node.

    missing="fractional" is C4.5's: a split is judged by the rows whose value is known; the others go to both children,
    in shares of the known rows' weight. `min_leaf` then counts known rows. missing="extra" learns the side of missing
    values for every split, and may split known from missing: threshold +inf, known to the left.

    splits="oblique" also cuts the discriminant of the numerical columns without missing values in the node, where
    there are at least two of these and more rows than these; it is taken if it gains more than the best column.

    Rows of weight 0 are left out. With `max_features` the draw of a node depends on the seed and on its place in the
    tree, so growth in another order gives the same tree; if no drawn column varies in the node, more are drawn.

    Parameters
    ----------
    problem : Problem
        The training data.
    settings : Settings
        With a criterion for this kind of data.
    tick : callable, optional
        Told of the nodes that are done and known of.

    Returns
    -------
    dict
        Arrays named as those of `kernelrules.results.Tree`.
    """
    _refuse_unsupported(problem, settings)
    builder = _Builder(problem, settings)
    builder.build(tick)
    return _arrays(builder.nodes, problem, fractional=settings.missing == "fractional")


def _refuse_unsupported(problem: Problem, settings: Settings) -> None:
    what = _why_general(settings)
    if settings.missing == "surrogate":
        raise ValueError(f"missing='surrogate' cannot be combined with {what}; use missing='extra'")
    if settings.monotone is not None and np.any(settings.monotone):
        raise ValueError(f"monotone cannot be combined with {what}")
    if callable(settings.criterion) and problem.classes_of_rows is None:
        raise ValueError("a callable criterion is a function of class shares: it cannot be used for regression")


def _why_general(settings: Settings) -> str:
    """The setting that needs this grower, for messages."""
    if settings.missing == "fractional":
        return "missing='fractional'"
    return "splits='oblique'" if settings.splits == "oblique" else "a callable criterion"


@dataclass(eq=False)
class _Node:
    """A node while the tree grows; `rows`, `weights` and `shares` are let go once it has been split."""

    rows: np.ndarray
    weights: np.ndarray
    shares: np.ndarray
    depth: int
    key: int
    measure: Measure | None
    split: Split | None = None
    left: int = -1
    right: int = -1
    missing_left: bool = False
    gain: float = 0.0

    def __post_init__(self):
        self.n_samples, self.weight = float(self.shares.sum()), float(self.weights.sum())
        self.value, self.impurity = self.measure.value, self.measure.loss / self.weight


class _Builder:
    """The nodes so far, and those that can still be split."""

    def __init__(self, problem: Problem, settings: Settings):
        self._problem, self._settings = problem, settings
        self._values = problem.values.astype(np.float64, copy=False)
        self._fractional = settings.missing == "fractional"
        row = None if callable(settings.criterion) else CRITERIA.get(settings.criterion)
        self._by_ratio = row is not None and row.by_ratio
        self.nodes: list[_Node] = []
        self._frontier: list[Any] = []

    def build(self, tick: Any = None) -> None:
        """Split nodes until none is left to split or there are enough leaves."""
        self._make_root()
        most = np.inf if self._settings.max_leaves is None else self._settings.max_leaves
        n_leaves = 1
        while self._frontier and n_leaves < most:
            self._divide(self._next())
            n_leaves += 1
            if tick is not None:
                tick(len(self.nodes) - len(self._frontier), len(self.nodes))

    def _make_root(self) -> None:
        given = self._problem.weights
        weights = np.ones(self._problem.n_rows) if given is None else given
        rows = np.flatnonzero(weights > 0)
        root = self._make_node(rows, weights[rows], np.ones(len(rows)), 0, _mixed(self._settings.seed))
        self._enter(self._append(root))

    def _make_node(self, rows, weights, shares, depth: int, key: int) -> _Node:
        return _Node(
            rows, weights, shares, depth, key, measure_of(self._problem, self._settings.criterion, rows, weights)
        )

    def _append(self, node: _Node) -> int:
        """Number a node and look for its split."""
        number = len(self.nodes)
        self.nodes.append(node)
        node.split = self._find_split(node)
        node.measure = None
        if node.split is not None:
            node.gain = node.split.gain / self.nodes[0].weight
        return number

    # ---- the order of growth --------------------------------------------------------------------------------------

    def _enter(self, number: int) -> None:
        node = self.nodes[number]
        if node.split is None:
            node.rows = node.weights = node.shares = None
        elif self._settings.growth == "best":
            heapq.heappush(self._frontier, (-node.gain, number))
        else:
            self._frontier.append((0.0, number))

    def _next(self) -> _Node:
        """The leaf that gains most, or the last one entered."""
        best_first = self._settings.growth == "best"
        return self.nodes[(heapq.heappop(self._frontier) if best_first else self._frontier.pop())[1]]

    def _divide(self, node: _Node) -> None:
        left, missing = node.split.sides(self._values[node.rows])
        right = ~left & ~missing
        parts = (left, right)
        if missing.any() and self._fractional:
            share_left = node.weights[left].sum() / node.weights[~missing].sum()
            parts = (np.where(missing, share_left, left), np.where(missing, 1 - share_left, right))
        elif missing.any():
            parts = (left | missing, right) if node.split.missing_left else (left, right | missing)
        children = [self._child(node, part, side) for side, part in enumerate(parts)]
        unseen = node.split.missing_left is None
        larger_left = children[0].weight >= children[1].weight * ENOUGH
        node.missing_left = larger_left if unseen else node.split.missing_left
        node.rows = node.weights = node.shares = None
        node.left, node.right = self._append(children[0]), self._append(children[1])
        self._enter(node.right)
        self._enter(node.left)

    def _child(self, node: _Node, part: np.ndarray, side: int) -> _Node:
        """The child with the given part, 0 to 1, of every row."""
        here = np.flatnonzero(part)
        weights, shares = (whole[here] * part[here] for whole in (node.weights, node.shares))
        return self._make_node(node.rows[here], weights, shares, node.depth + 1, _mixed(2 * node.key + side))

    # ---- the split of a node --------------------------------------------------------------------------------------

    def _find_split(self, node: _Node) -> Split | None:
        limits = self._settings
        too_deep = limits.max_depth is not None and node.depth >= limits.max_depth
        too_small = node.n_samples < max(limits.min_split, 2 * limits.min_leaf) * ENOUGH
        least = limits.min_share * ENOUGH * self._total_weight(node)
        if too_deep or too_small or node.weight < 2 * least or node.measure.pure:
            return None
        rows = NodeRows(
            values=self._values[node.rows],
            n_levels=self._problem.n_levels,
            weights=node.weights,
            shares=node.shares,
            measure=node.measure,
            fractional=self._fractional,
            one_category=limits.subsets == "one",
            min_leaf=limits.min_leaf,
            min_weight=least,
        )
        columns = self._columns(rows.values, node.key)
        split = self._best_of(rows, best_splits(rows, columns))
        if limits.splits == "oblique":
            split = self._oblique_or(split, rows, node, columns)
        if split is None or split.gain / self._total_weight(node) < limits.min_gain:
            return None
        return split if limits.chi2 is None or self._is_significant(split, rows, node) else None

    def _total_weight(self, node: _Node) -> float:
        return self.nodes[0].weight if self.nodes else node.weight

    def _columns(self, values: np.ndarray, key: int) -> np.ndarray:
        """The columns to look at, ascending."""
        p, wanted = values.shape[1], self._settings.max_features
        if wanted is None or wanted >= p:
            return np.arange(p)
        varying = np.fmin.reduce(values, axis=0) < np.fmax.reduce(values, axis=0)
        if not self._fractional:
            missing = np.isnan(values)
            varying |= missing.any(axis=0) & ~missing.all(axis=0)
        drawn = np.random.default_rng(key).permutation(p)
        first_varying = int(varying[drawn].argmax())
        return np.sort(drawn[: max(wanted, first_varying + 1)])

    def _best_of(self, rows: NodeRows, splits: list[Split]) -> Split | None:
        """The best split of the columns' best; of equal ones the first."""
        if not splits:
            return None
        gains = np.array([split.gain for split in splits])
        if self._by_ratio:
            ratios = np.array([self._gain_ratio(split, rows) for split in splits])
            ratios[gains < gains.mean() - rows.measure.noise] = -np.inf  # C4.5's guard against lopsided splits
            return splits[int(first_best(ratios, None, _RATIO_NOISE, 0.0))]
        breaker = rows.measure.tie_breaker
        ties = None if breaker is None else np.array([split.tie_gain for split in splits])
        return splits[int(first_best(gains, ties, rows.measure.noise, 0.0 if breaker is None else breaker.noise))]

    def _gain_ratio(self, split: Split, rows: NodeRows) -> float:
        """Gain over the entropy of left, right and, when fractional, missing: C4.5 takes these for a part more."""
        left, missing = split.sides(rows.values)
        if not self._fractional:
            left, missing = left | (missing & bool(split.missing_left)), np.zeros_like(missing)
        parts = np.array([rows.weights[part].sum() for part in (left, ~left & ~missing, missing)])
        total = rows.weights.sum()
        information = entr(parts / total).sum() / np.log(2.0)
        return split.gain / total / information

    def _oblique_or(self, split: Split | None, rows: NodeRows, node: _Node, columns: np.ndarray) -> Split | None:
        """The cut of the node's discriminant if it gains more than the given split, else that."""
        usable = columns[(rows.n_levels[columns] == 0) & np.isfinite(rows.values[:, columns]).all(axis=0)]
        if len(usable) < 2 or len(node.rows) <= len(usable):
            return split
        classes, targets = self._problem.classes_of_rows, self._problem.targets
        values = rows.values[:, usable]
        found = discriminant(
            values,
            node.weights,
            None if classes is None else classes[node.rows],
            None if targets is None else targets[node.rows],
        )
        if found is None:
            return split
        direction = np.zeros(rows.values.shape[1])
        direction[usable] = found
        used = np.flatnonzero(direction)
        with np.errstate(over="ignore", invalid="ignore"):
            gap = (len(used) + 8) * 4 * _EPS * float((np.abs(values) @ np.abs(found)).max())
            projected = rows.values[:, used] @ direction[used]
        if not (np.isfinite(gap) and np.isfinite(projected).all()):
            return split
        oblique = projection_split(rows, projected, direction, gap)
        return oblique if oblique is not None and self._is_better(oblique, split, rows) else split

    def _is_better(self, oblique: Split, split: Split | None, rows: NodeRows) -> bool:
        """Whether it gains more, by more than rounding."""
        if split is None:
            return oblique.gain > rows.measure.noise
        more = oblique.gain > split.gain + rows.measure.noise
        if self._by_ratio:
            return more and self._gain_ratio(oblique, rows) > self._gain_ratio(split, rows) + _RATIO_NOISE
        breaker = rows.measure.tie_breaker
        if breaker is None or more:
            return more
        return oblique.gain >= split.gain and oblique.tie_gain > split.tie_gain + breaker.noise

    def _is_significant(self, split: Split, rows: NodeRows, node: _Node) -> bool:
        """Pearson's χ² test of left and right against the classes, without correction; missing shares do not count."""
        left, missing = split.sides(rows.values)
        if self._fractional:
            counted = ~missing
        else:
            left, counted = left | (missing & bool(split.missing_left)), np.ones_like(missing)
        classes = self._problem.classes_of_rows[node.rows]
        cell = np.where(left, 0, self._problem.n_classes) + classes
        table = np.bincount(cell[counted], rows.weights[counted], minlength=2 * self._problem.n_classes)
        return _p_value(table.reshape(2, -1)) <= self._settings.chi2


def _p_value(table: np.ndarray) -> float:
    """That two rows of counts are draws from the same classes."""
    table = table[:, table.any(axis=0)]
    if table.shape[1] < 2:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(chdtrc(table.shape[1] - 1, ((table - expected) ** 2 / expected).sum()))


def _mixed(number: int) -> int:
    """A number of 64 bits that has nothing to do with its neighbours' (the finaliser of splitmix64)."""
    z = (number + 0x9E3779B97F4A7C15) & _64_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64_BITS
    return z ^ (z >> 31)


# ---- the finished tree --------------------------------------------------------------------------------------------


def _arrays(nodes: list[_Node], problem: Problem, *, fractional: bool) -> dict[str, Any]:
    """The nodes as arrays, in depth-first order."""
    order = _depth_first(nodes)
    place = np.empty(len(nodes), dtype=np.int64)
    place[order] = np.arange(len(nodes))
    ordered = [nodes[number] for number in order]
    left, right = (np.array([getattr(node, side) for node in ordered]) for side in ("left", "right"))
    inner = left >= 0
    values = np.array([node.value for node in ordered])
    feature, threshold, subset_start, subset_left, directions = _tests(ordered, problem.n_features)
    n_samples = np.array([node.n_samples for node in ordered])
    return {
        "feature": feature,
        "threshold": threshold,
        "left": np.where(inner, place[left], -1),
        "right": np.where(inner, place[right], -1),
        "value": values[:, 0] if problem.targets is not None and problem.n_outputs == 1 else values,
        "n_samples": n_samples if fractional else n_samples.astype(np.int64),
        "weight": np.array([node.weight for node in ordered]),
        "impurity": np.array([node.impurity for node in ordered]),
        "gain": np.where(inner, [node.gain for node in ordered], 0.0),
        "missing_left": np.array([node.missing_left for node in ordered], dtype=bool),
        "subset_start": subset_start,
        "subset_left": subset_left,
        "directions": directions,
    }


def _depth_first(nodes: list[_Node]) -> list[int]:
    order, waiting = [], [0]
    while waiting:
        number = waiting.pop()
        order.append(number)
        if nodes[number].left >= 0:
            waiting += [nodes[number].right, nodes[number].left]
    return order


def _tests(nodes: list[_Node], n_features: int) -> tuple[np.ndarray, ...]:
    """What the nodes ask: columns, thresholds, starts and flags of subsets, and directions or None."""
    feature, threshold = np.full(len(nodes), -1, dtype=np.int64), np.full(len(nodes), np.nan)
    subset_start = np.full(len(nodes), -1, dtype=np.int64)
    flags, directions, n_flags = [], [], 0
    for i, node in enumerate(nodes):
        if node.left < 0:
            continue
        split = node.split
        feature[i], threshold[i] = split.feature, split.threshold
        if split.direction is not None:
            feature[i] = n_features + len(directions)
            directions.append(split.direction)
        if split.level_sides is not None:
            subset_start[i] = n_flags
            flags.append(split.level_sides)
            n_flags += len(split.level_sides)
    subset_left = np.concatenate(flags) if flags else np.zeros(0, dtype=np.uint8)
    return feature, threshold, subset_start, subset_left, np.array(directions) if directions else None
