"""How good a solution is, whatever was solved."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Certificate"]


@dataclass(frozen=True)
class Certificate:
    """How good a solution is, from the solution alone.

    Attributes
    ----------
    primal : float
        The objective that was to be minimised, at the solution's w and the constant that is best for it.
    dual : float
        A lower bound of it: where the kernel is positive semi-definite, no solution whatever is better than this.
    gap : float
        primal - dual, at least 0 but for rounding. The solution is at most this far from the best, under the same
        condition.
    kkt : float
        The largest violation of the optimality conditions, what `tol` limits.
    iterations : int
        Steps of the solver.
    converged : bool
        Whether kkt is at most the tolerance that was asked for.
    """

    primal: float
    dual: float
    gap: float
    kkt: float
    iterations: int
    converged: bool
