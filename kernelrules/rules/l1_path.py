"""The L1 path of one score: rules are found as they are needed, the problem over them is solved, λ is lowered.

    minimise over b, β    Σ_i w_i ℓ(y_i, b + Σ_j β_j h_j(x_i)) + λ Σ_j |β_j|      over all rules h

For rules of one condition, the search (rule_search.py) finds the best rule of all: the duality gap over all such rules
is therefore known, and falls below any tolerance. For rules of several conditions, the nodes of small trees are
proposed along the path; the path is then solved a second time over all rules found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernelrules.core.additive.l1_solver import L1Solver
from kernelrules.rules.rule_search import Settings, StumpSearch, TrainingTable, TreeSearch

__all__ = ["PathProblem", "ScorePath", "largest_lam", "solve_path"]

_MAX_ROUNDS = 200  # searches for stumps at one λ
_MAX_NEWTON_STEPS = 100  # at one λ
_APPROACH_RATIO = 1.3  # of one λ to the next, above the first λ of the path
_SEARCH_TOL_FACTOR = 10.0  # while rules are still being found, the tolerance of the gap is this much looser


@dataclass(frozen=True, eq=False)
class PathProblem:
    """The L1 problem of one score.

    Attributes
    ----------
    table : TrainingTable
        The columns.
    y, weights : ndarray (n,)
        Targets, for the logistic loss 0 and 1; weights sum to 1, and rows of weight 0 are not learned from.
    lams : ndarray
        λ, descending.
    settings : Settings
        All else.
    held_out : ndarray of int, or None
        Rows whose scores are kept.
    """

    table: TrainingTable
    y: np.ndarray
    weights: np.ndarray
    lams: np.ndarray
    settings: Settings
    held_out: np.ndarray | None = None


@dataclass(eq=False)
class ScorePath:
    """Solutions for one λ after another. Columns are the linear terms, then the rules in the order they were found."""

    tolerance: float  # of the duality gap
    rules: StumpSearch | TreeSearch | None
    held_out: np.ndarray | None
    coefficients: list[np.ndarray] = field(default_factory=list)
    intercepts: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    dual_all: list[float] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)  # of the held-out rows
    n_columns: int = 0

    def append(self, solver: L1Solver, primal: float, dual: float, dual_all: float) -> None:
        """Append the present solution of the solver."""
        coefficients, intercept = solver.coefficients()
        self.coefficients.append(coefficients)
        self.intercepts.append(intercept)
        self.primal.append(primal)
        self.dual.append(dual)
        self.dual_all.append(dual_all)
        if self.held_out is not None:
            self.scores.append(solver.scores()[self.held_out])


def solve_path(problem: PathProblem, rng: np.random.Generator, check_interrupt: Callable[[], None]) -> ScorePath:
    """Solve the problem for all its λ, or until more than settings.max_rules terms have a nonzero weight.

    `rng` draws the rows and sizes of trees. `check_interrupt` is called often, and may raise.
    """
    lams, settings = problem.lams, problem.settings
    solver, search = _start(problem, rng)
    tolerance = settings.tol * solver.certificate(0.0, np.inf)[0]
    path = ScorePath(tolerance, search, problem.held_out)
    top = max(search.search(0.0, check_interrupt), solver.largest_gradient())
    approach = _approach(top, lams[0])
    if settings.max_depth == 1:
        for lam in approach:
            solver.solve(lam, _SEARCH_TOL_FACTOR * tolerance, _MAX_NEWTON_STEPS, check_interrupt)
            search.search(lam, check_interrupt)
        _solve_with_stumps(problem, path, solver, search, check_interrupt)
    else:
        _find_rules(np.concatenate([approach, lams]), solver, search, tolerance, settings, check_interrupt)
        _solve_again(problem, path, solver, check_interrupt)
    path.n_columns = solver.n_columns
    if problem.held_out is not None:
        path.rules = None  # it keeps all rows of all rules; of a fold, only the scores are used
    return path


def largest_lam(problem: PathProblem) -> float:
    """Return the largest λ with a nonzero weight: of any stump, or of a node of the first tree, or a linear term."""
    solver, search = _start(problem, np.random.default_rng(0))
    return max(search.search(0.0, lambda: None), solver.largest_gradient())


def _approach(top: float, first: float) -> np.ndarray:
    """λ between the largest one and the first of the path, so that solutions and rules are found step by step."""
    n = int(np.ceil(np.log(top / first) / np.log(_APPROACH_RATIO))) - 1 if 0 < first < top else 0
    return np.geomspace(top, first, n + 2)[1:-1] if n > 0 else np.zeros(0)


def _start(problem: PathProblem, rng: np.random.Generator) -> tuple[L1Solver, StumpSearch | TreeSearch]:
    table, weights, settings = problem.table, problem.weights, problem.settings
    solver = L1Solver(problem.y, weights, settings.logistic, np.where(weights > 0, table.keys, np.uint64(0)))
    for column in table.linear:
        solver.add_values(column)
    if settings.max_depth == 1:
        return solver, StumpSearch(table, solver)
    return solver, TreeSearch(table, solver, weights, settings, rng)


def _solve_with_stumps(
    problem: PathProblem,
    path: ScorePath,
    solver: L1Solver,
    search: StumpSearch,
    check_interrupt: Callable[[], None],
) -> None:
    for lam in problem.lams:
        for _ in range(_MAX_ROUNDS):
            primal, dual = solver.solve(lam, path.tolerance / 2, _MAX_NEWTON_STEPS, check_interrupt)
            largest = max(search.search(lam, check_interrupt), solver.max_gradient)
            _, dual_all = solver.certificate(lam, largest)
            if primal - dual_all <= path.tolerance or not search.n_found:
                break
        if solver.n_nonzero > problem.settings.max_rules:
            return
        path.append(solver, primal, dual, min(dual, dual_all))


def _find_rules(
    lams: np.ndarray,
    solver: L1Solver,
    search: TreeSearch,
    tolerance: float,
    settings: Settings,
    check_interrupt: Callable[[], None],
) -> None:
    for lam in lams:
        for _ in range(settings.trees):
            solver.solve(lam, _SEARCH_TOL_FACTOR * tolerance, _MAX_NEWTON_STEPS, check_interrupt)
            search.search(lam, check_interrupt)
            if not search.n_found:
                break
        if solver.n_nonzero > settings.max_rules:
            return


def _solve_again(problem: PathProblem, path: ScorePath, solver: L1Solver, check_interrupt: Callable[[], None]) -> None:
    solver.restart()
    for lam in problem.lams:
        primal, dual = solver.solve(lam, path.tolerance, _MAX_NEWTON_STEPS, check_interrupt)
        if solver.n_nonzero > problem.settings.max_rules:
            return
        path.append(solver, primal, dual, np.nan)
        check_interrupt()
