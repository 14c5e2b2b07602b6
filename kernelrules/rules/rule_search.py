"""Rules that lower the L1 objective at its present solution: stumps, found exactly, or nodes of small trees.

At a solution over the rules known so far, a rule h gets a nonzero weight exactly if |Σ_i w_i r_i h(x_i)| > λ, r being
the residual.

    StumpSearch    rules of one condition: finds the best of all, for each column
    TreeSearch     rules of several conditions: proposes the nodes of a small tree grown on the residuals

Proposing the nodes of trees on random shares of the rows, with random numbers of leaves, follows [1]_; there the trees
are grown before the weights are fitted.

References
----------
.. [1] J. H. Friedman and B. E. Popescu, "Predictive learning via rule ensembles", Annals of Applied Statistics 2(3),
   2008.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelrules.core.additive.binned_columns import BinnedColumns
from kernelrules.core.additive.l1_solver import L1Solver
from kernelrules.core.additive.residual_tree import Histograms, grow_tree
from kernelrules.core.additive.sample_rows import sample_rows
from kernelrules.core.additive.stumps import best_stumps, level_sums, stump_rows, threshold
from kernelrules.core.rules.ranks import RankedData
from kernelrules.results import Condition
from kernelrules.results.rules import UNSEEN
from kernelrules.rules.conditions import intersection

__all__ = ["Settings", "StumpSearch", "TrainingTable", "TreeSearch"]

_STUMPS_PER_ROUND = 10
_MAX_LEAVES = 64


@dataclass(frozen=True)
class Settings:
    """How to learn; `rules.additive` describes each of these."""

    logistic: bool
    max_depth: int
    mean_leaves: float
    trees: int
    subsample: float
    min_leaf: int
    max_rules: int
    tol: float


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """The columns of the training rows.

    Attributes
    ----------
    ranked : RankedData
        Columns as ranks.
    binned : BinnedColumns or None
        Columns as codes of bins; None for rules of one condition.
    linear : ndarray (n_linear, n_rows)
        Values of the linear terms.
    n_levels : ndarray (n_features,)
        Number of levels of each column; 0 for numbers.
    missing : ndarray (n_features,) of bool
        Columns with missing values.
    keys : ndarray (n_rows,) of uint64
        Random keys by which sets of rows are compared.
    """

    ranked: RankedData
    binned: BinnedColumns | None
    linear: np.ndarray
    n_levels: np.ndarray
    missing: np.ndarray
    keys: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.ranked.n_rows


class StumpSearch:
    """Finds the best stump of each column, exactly."""

    def __init__(self, table: TrainingTable, solver: L1Solver) -> None:
        p = table.ranked.n_columns
        self._table, self._solver = table, solver
        self._sums, self._ranks, self._missing = np.empty(p), np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
        self._rules: list[tuple[int, int, np.ndarray]] = []  # column, the highest rank or -1, flags of ranks
        self.n_found = 0

    def search(self, lam: float, check_interrupt: Callable[[], None]) -> float:
        """Add the stumps that exceed λ most; return the largest |Σ w r h| of all stumps. Adds none if λ is 0."""
        residuals = self._solver.residuals()
        best_stumps(self._table.ranked, residuals, self._sums, self._ranks, self._missing, check_interrupt)
        check_interrupt()
        size, self.n_found = np.abs(self._sums), 0
        if lam > 0:
            order = np.argsort(-size, kind="stable")[:_STUMPS_PER_ROUND]
            for column in order[size[order] > lam].tolist():
                self._add(column, residuals, lam)
        return float(size.max())

    def _add(self, column: int, residuals: np.ndarray, lam: float) -> None:
        rank = int(self._ranks[column])
        if self._table.n_levels[column]:
            passes = (level_sums(self._table.ranked, column, residuals) > 0).astype(np.uint8)
        else:
            passes = (np.arange(self._table.ranked.n_ranks(column) + 1) <= rank).astype(np.uint8)
            passes[-1] = self._missing[column]
        rows, negated = stump_rows(self._table.ranked, column, passes)
        start = np.array([0, len(rows)], dtype=np.int64)
        if len(self._solver.add_rules(rows, start, np.array([negated], dtype=np.uint8), lam)):
            self._rules.append((column, rank, passes))
            self.n_found += 1

    def conditions(self, number: int, weights: np.ndarray) -> tuple[tuple[Condition, ...], np.ndarray]:
        """Conditions of a rule by its number, and its rows. Values absent from training go with the larger weight."""
        column, rank, passes = self._rules[number]
        rows, negated = stump_rows(self._table.ranked, column, passes)
        holds = np.full(self._table.n_rows, negated)
        holds[rows] = not negated
        heavy = bool(2 * weights[holds].sum() >= weights.sum())
        missing = bool(passes[-1]) if self._table.missing[column] else heavy
        if self._table.n_levels[column]:
            codes = np.flatnonzero(passes[:-1]).tolist()
            condition = Condition(column, categories=((UNSEEN, *codes) if heavy else tuple(codes)), missing=missing)
        else:
            condition = Condition(column, high=float(threshold(self._table.ranked, column, rank)), missing=missing)
        return (condition,), holds


class TreeSearch:
    """Proposes the nodes of small trees grown on the residuals."""

    def __init__(
        self,
        table: TrainingTable,
        solver: L1Solver,
        weights: np.ndarray,
        settings: Settings,
        rng: np.random.Generator,
    ) -> None:
        self._table, self._solver, self._weights = table, solver, weights
        self._settings, self._rng = settings, rng
        self._learn = np.flatnonzero(weights > 0).astype(np.int32)
        self._zeros = np.zeros(len(self._learn))
        self._histograms = Histograms()
        self._trees: list[tuple[np.ndarray, ...]] = []
        self._rules: list[tuple[int, int]] = []  # tree, node
        self.n_found = 0

    def search(self, lam: float, check_interrupt: Callable[[], None]) -> float:
        """Grow a tree and add its nodes that exceed λ. If λ is 0, grow on all rows and return the largest |Σ w r h|."""
        settings, learn, uniform = self._settings, self._learn, self._zeros
        size, n_leaves = len(learn), int(min(np.ceil(settings.mean_leaves), _MAX_LEAVES))
        if lam > 0:
            extra = self._rng.exponential(settings.mean_leaves - 2) if settings.mean_leaves > 2 else 0.0
            n_leaves = min(2 + int(extra), _MAX_LEAVES)
            if settings.subsample < 1:
                size = max(int(settings.subsample * size), 1)
                uniform = self._rng.random(len(learn))
        sample, others = sample_rows(learn, size, uniform, len(self._weights))
        residuals = self._solver.residuals()
        rows, start, *tree = grow_tree(
            self._table.binned, residuals, self._weights, sample, others, n_leaves, settings.max_depth,
            settings.min_leaf, self._histograms, check_interrupt,
        )  # fmt: skip
        check_interrupt()
        added = self._solver.add_rules(rows, start, np.zeros(len(start) - 1, dtype=np.uint8), lam)
        self._rules += [(len(self._trees), int(node)) for node in added]
        self._trees.append(tuple(tree))
        self.n_found = len(added)
        return self._solver.largest_gradient() if lam == 0 else np.nan

    def conditions(self, number: int, weights: np.ndarray) -> tuple[tuple[Condition, ...], np.ndarray]:
        """Conditions of a rule by its number, and its rows."""
        tree, node = self._rules[number]
        parent, is_left, column, flag_start, flags = self._trees[tree]
        merged: dict[int, Condition] = {}
        holds = np.ones(self._table.n_rows, dtype=bool)
        path = []
        while node >= 0:
            path.append(node)
            node = int(parent[node])
        for node in reversed(path):
            j, first = int(column[node]), int(flag_start[node])
            left = flags[first : first + self._table.binned.n_codes(j) + 1].astype(bool)
            passes = left if is_left[node] else ~left
            holds &= self._table.binned.rows_passing(j, passes[:-1].astype(np.uint8))
            condition = self._condition(j, left, bool(is_left[node]))
            merged[j] = intersection(merged[j], condition) if j in merged else condition
        return tuple(merged.values()), holds

    def _condition(self, j: int, left: np.ndarray, is_left: bool) -> Condition:
        missing = bool(left[-2]) == is_left
        if self._table.n_levels[j]:
            codes = np.flatnonzero(left[:-2] == is_left).tolist()
            return Condition(
                j, categories=(UNSEEN, *codes) if bool(left[-1]) == is_left else tuple(codes), missing=missing
            )
        rank = self._table.binned.last_ranks(j)[int(np.flatnonzero(left[:-2])[-1])]
        limit = float(threshold(self._table.ranked, j, rank))
        return Condition(j, high=limit, missing=missing) if is_left else Condition(j, low=limit, missing=missing)
