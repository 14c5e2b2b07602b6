"""The L1 path of one score: rules found as they are needed, the restricted problem solved, λ lowered.

    minimise over b, β    Σ_i w_i ℓ(y_i, b + Σ_j β_j h_j(x_i)) + λ Σ_j |β_j|      over all rules h

At a solution of the rules known so far, another one is worth a weight exactly if |Σ_i w_i r_i h(x_i)| > λ, r being the
residual. A weak learner looks for such rules. With one condition a rule it finds the best of all, so that the gap over
infinitely many rules is known, and falls below any tolerance. With more conditions, the nodes of small trees, grown on
the residuals of random shares of the rows, are proposed; the path is then solved once more over all that were found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelrules.core.coordinate import Solver
from kernelrules.core.draw import draw
from kernelrules.core.ranked import Ranked
from kernelrules.core.stumps import best_stumps, level_sums, stump_rows, threshold
from kernelrules.core.weak import Room, Weak
from kernelrules.results import Condition
from kernelrules.results.rules import UNSEEN

__all__ = ["Path", "Settings", "Table", "run", "top_lam"]

_MOST_ROUNDS = 200  # of looking for stumps, at one λ
_STUMPS_A_ROUND = 10
_MOST_STEPS = 100  # of Newton's, at one λ
_MOST_LEAVES = 64
_STRIDE = 1.3  # ratio of one λ to the next, on the way to the first that was asked for
_LOOSE = 10.0  # times the tolerance, while rules are still being found


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
class Table:
    """Columns as ranks, as codes (None where rules have one condition), and linear terms as rows of numbers."""

    ranked: Ranked
    weak: Weak | None
    linear: np.ndarray
    n_levels: np.ndarray
    missing: np.ndarray  # columns that have missing values
    keys: np.ndarray

    @property
    def n_rows(self) -> int:
        """Rows."""
        return self.ranked.n_rows


@dataclass(eq=False)
class Path:
    """Solutions for one λ after another; columns are the linear terms, then rules in the order they were found."""

    tolerance: float  # of the gap
    finder: Any
    coefficients: list[np.ndarray] = field(default_factory=list)
    intercepts: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    dual_all: list[float] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)  # of the rows asked for
    n_columns: int = 0

    def add(self, solver: Solver, primal: float, dual: float, dual_all: float, wanted: np.ndarray | None) -> None:
        """The solver's present solution."""
        coefficients, intercept = solver.coefficients()
        self.coefficients.append(coefficients)
        self.intercepts.append(intercept)
        self.primal.append(primal)
        self.dual.append(dual)
        self.dual_all.append(dual_all)
        if wanted is not None:
            self.scores.append(solver.scores()[wanted])


def run(
    table: Table,
    y: np.ndarray,
    weights: np.ndarray,
    lams: np.ndarray,
    settings: Settings,
    rng: np.random.Generator,
    air: Callable[[], None],
    wanted: np.ndarray | None = None,
) -> Path:
    """The path of one score.

    Parameters
    ----------
    table : Table
        Columns.
    y, weights : ndarray (n,)
        Targets, for the logistic loss 0 and 1; weights sum to 1, and rows of weight 0 are not learned from.
    lams : ndarray
        Descending.
    settings : Settings
        All else.
    rng : Generator
        Draws rows and sizes of trees.
    air : callable
        Called often; may raise.
    wanted : ndarray of int, optional
        Rows whose scores are kept.

    Returns
    -------
    Path
        It ends early where more than settings.max_rules rules would have a weight.
    """
    solver, finder = _start(table, y, weights, settings, rng)
    tolerance = settings.tol * solver.certificate(0.0, np.inf)[0]
    path = Path(tolerance, finder)
    top = max(finder.look(0.0, air), solver.largest_gradient())
    if settings.max_depth == 1:
        for lam in _on_the_way(top, lams[0]):
            solver.solve(lam, _LOOSE * tolerance, _MOST_STEPS, air)
            finder.look(lam, air)
        _solve_with_stumps(path, lams, solver, finder, settings, air, wanted)
    else:
        _find_rules(np.concatenate([_on_the_way(top, lams[0]), lams]), solver, finder, tolerance, settings, air)
        _solve_again(path, lams, solver, settings, air, wanted)
    path.n_columns = solver.n_columns
    if wanted is not None:
        path.finder = None  # it keeps all rows of all rules; of a fold only the scores are asked for
    return path


def _on_the_way(top: float, first: float) -> np.ndarray:
    """Larger λ than those asked for, where these begin far down: solutions and rules are found step by step."""
    n = int(np.ceil(np.log(top / first) / np.log(_STRIDE))) - 1 if 0 < first < top else 0
    return np.geomspace(top, first, n + 2)[1:-1] if n > 0 else np.zeros(0)


def top_lam(table: Table, y: np.ndarray, weights: np.ndarray, settings: Settings) -> float:
    """The largest λ at which something has a weight: any stump, or a node of the first tree, or a linear term."""
    solver, finder = _start(table, y, weights, settings, np.random.default_rng(0))
    return max(finder.look(0.0, lambda: None), solver.largest_gradient())


def _start(
    table: Table, y: np.ndarray, weights: np.ndarray, settings: Settings, rng: np.random.Generator
) -> tuple[Solver, Any]:
    solver = Solver(y, weights, settings.logistic, np.where(weights > 0, table.keys, np.uint64(0)))
    for column in table.linear:
        solver.add_values(column)
    return solver, _Stumps(table, solver) if settings.max_depth == 1 else _Trees(table, solver, weights, settings, rng)


def _solve_with_stumps(
    path: Path, lams: np.ndarray, solver: Solver, finder: _Stumps, settings: Settings, air: Any, wanted: Any
) -> None:
    for lam in lams:
        for _ in range(_MOST_ROUNDS):
            primal, dual = solver.solve(lam, path.tolerance / 2, _MOST_STEPS, air)
            largest = max(finder.look(lam, air), solver.largest)
            _, dual_all = solver.certificate(lam, largest)
            if primal - dual_all <= path.tolerance or not finder.found:
                break
        if solver.n_nonzero > settings.max_rules:
            return
        path.add(solver, primal, dual, min(dual, dual_all), wanted)


def _find_rules(
    lams: np.ndarray, solver: Solver, finder: _Trees, tolerance: float, settings: Settings, air: Any
) -> None:
    for lam in lams:
        for _ in range(settings.trees):
            solver.solve(lam, _LOOSE * tolerance, _MOST_STEPS, air)
            finder.look(lam, air)
            if not finder.found:
                break
        if solver.n_nonzero > settings.max_rules:
            return


def _solve_again(path: Path, lams: np.ndarray, solver: Solver, settings: Settings, air: Any, wanted: Any) -> None:
    solver.restart()
    for lam in lams:
        primal, dual = solver.solve(lam, path.tolerance, _MOST_STEPS, air)
        if solver.n_nonzero > settings.max_rules:
            return
        path.add(solver, primal, dual, np.nan, wanted)
        air()


# ---- rules with one condition ---------------------------------------------------------------------------------------


class _Stumps:
    """Finds the best stump of each column, exactly."""

    def __init__(self, table: Table, solver: Solver) -> None:
        p = table.ranked.n_columns
        self._table, self._solver = table, solver
        self._best, self._cut, self._missing = np.empty(p), np.empty(p, dtype=np.int64), np.empty(p, dtype=np.int64)
        self._rules: list[tuple[int, int, np.ndarray]] = []  # column, the highest rank or -1, flags of ranks
        self.found = 0

    def look(self, lam: float, air: Callable[[], None]) -> float:
        """Add the stumps that exceed λ most; gives the largest |Σ w r h| of all. Adds none where λ is 0."""
        residuals = self._solver.residuals()
        best_stumps(self._table.ranked, residuals, self._best, self._cut, self._missing, air)
        air()
        size, self.found = np.abs(self._best), 0
        if lam > 0:
            order = np.argsort(-size, kind="stable")[:_STUMPS_A_ROUND]
            for column in order[size[order] > lam].tolist():
                self._add(column, residuals, lam)
        return float(size.max())

    def _add(self, column: int, residuals: np.ndarray, lam: float) -> None:
        cut = int(self._cut[column])
        if self._table.n_levels[column]:
            passes = (level_sums(self._table.ranked, column, residuals) > 0).astype(np.uint8)
        else:
            passes = (np.arange(self._table.ranked.n_ranks(column) + 1) <= cut).astype(np.uint8)
            passes[-1] = self._missing[column]
        rows, negated = stump_rows(self._table.ranked, column, passes)
        start = np.array([0, len(rows)], dtype=np.int64)
        if len(self._solver.add_rules(rows, start, np.array([negated], dtype=np.uint8), lam)):
            self._rules.append((column, cut, passes))
            self.found += 1

    def conditions(self, number: int, weights: np.ndarray) -> tuple[tuple[Condition, ...], np.ndarray]:
        """Of the rule that was added as this, and its rows. Values that training lacks go where more weight is."""
        column, cut, passes = self._rules[number]
        rows, negated = stump_rows(self._table.ranked, column, passes)
        holds = np.full(self._table.n_rows, negated)
        holds[rows] = not negated
        heavy = bool(2 * weights[holds].sum() >= weights.sum())
        missing = bool(passes[-1]) if self._table.missing[column] else heavy
        if self._table.n_levels[column]:
            codes = np.flatnonzero(passes[:-1]).tolist()
            told = Condition(column, categories=((UNSEEN, *codes) if heavy else tuple(codes)), missing=missing)
        else:
            told = Condition(column, high=float(threshold(self._table.ranked, column, cut)), missing=missing)
        return (told,), holds


# ---- rules with several ---------------------------------------------------------------------------------------------


class _Trees:
    """Finds rules in the nodes of small trees."""

    def __init__(
        self, table: Table, solver: Solver, weights: np.ndarray, settings: Settings, rng: np.random.Generator
    ) -> None:
        self._table, self._solver, self._weights = table, solver, weights
        self._settings, self._rng = settings, rng
        self._learn = np.flatnonzero(weights > 0).astype(np.int32)
        self._zeros = np.zeros(len(self._learn))
        self._room = Room()
        self._trees: list[tuple[np.ndarray, ...]] = []
        self._rules: list[tuple[int, int]] = []  # tree, node
        self.found = 0

    def look(self, lam: float, air: Callable[[], None]) -> float:
        """Grow a tree on the residuals, on all rows where λ is 0, and add its nodes that exceed λ."""
        settings, learn, uniform = self._settings, self._learn, self._zeros
        size, n_leaves = len(learn), int(min(np.ceil(settings.mean_leaves), _MOST_LEAVES))
        if lam > 0:
            extra = self._rng.exponential(settings.mean_leaves - 2) if settings.mean_leaves > 2 else 0.0
            n_leaves = min(2 + int(extra), _MOST_LEAVES)
            if settings.subsample < 1:
                size = max(int(settings.subsample * size), 1)
                uniform = self._rng.random(len(learn))
        sample, others = draw(learn, size, uniform, len(self._weights))
        residuals = self._solver.residuals()
        rows, start, *tree = self._table.weak.grow(
            residuals, self._weights, sample, others, n_leaves, settings.max_depth, settings.min_leaf, self._room, air
        )
        air()
        added = self._solver.add_rules(rows, start, np.zeros(len(start) - 1, dtype=np.uint8), lam)
        self._rules += [(len(self._trees), int(node)) for node in added]
        self._trees.append(tuple(tree))
        self.found = len(added)
        return self._solver.largest_gradient() if lam == 0 else np.nan

    def conditions(self, number: int, weights: np.ndarray) -> tuple[tuple[Condition, ...], np.ndarray]:
        """Of the rule that was added as this, and its rows."""
        tree, node = self._rules[number]
        parent, is_left, column, flag_start, flags = self._trees[tree]
        merged: dict[int, Condition] = {}
        holds = np.ones(self._table.n_rows, dtype=bool)
        way = []
        while node >= 0:
            way.append(node)
            node = int(parent[node])
        for node in reversed(way):
            j, first = int(column[node]), int(flag_start[node])
            left = flags[first : first + self._table.weak.n_codes(j) + 1].astype(bool)
            passes = left if is_left[node] else ~left
            holds &= self._table.weak.rows_with(j, passes[:-1].astype(np.uint8))
            here = self._condition(j, left, bool(is_left[node]))
            merged[j] = _both(merged[j], here) if j in merged else here
        return tuple(merged.values()), holds

    def _condition(self, j: int, left: np.ndarray, is_left: bool) -> Condition:
        missing = bool(left[-2]) == is_left
        if self._table.n_levels[j]:
            codes = np.flatnonzero(left[:-2] == is_left).tolist()
            return Condition(
                j, categories=(UNSEEN, *codes) if bool(left[-1]) == is_left else tuple(codes), missing=missing
            )
        rank = self._table.weak.last_ranks(j)[int(np.flatnonzero(left[:-2])[-1])]
        limit = float(threshold(self._table.ranked, j, rank))
        return Condition(j, high=limit, missing=missing) if is_left else Condition(j, low=limit, missing=missing)


def _both(one: Condition, other: Condition) -> Condition:
    codes = None if one.categories is None else tuple(sorted(set(one.categories) & set(other.categories)))
    return Condition(
        one.feature, max(one.low, other.low), min(one.high, other.high), codes, one.missing and other.missing
    )
