"""How good a solution is, whatever was solved."""

from __future__ import annotations

from dataclasses import dataclass

from kernelrules.results.show import Result, number, of_certificate

__all__ = ["Certificate"]


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """How good a solution is, from the solution alone.

    Attributes
    ----------
    primal : float
        The objective that was to be minimised, at the solution's w and the constant that is best for it.
    dual : float
        A lower bound of it: where the kernel is positive semi-definite, no solution whatever is better than this.
    gap : float
        primal - dual, at least 0 but for rounding; in `erm` more than that where rounding may hide a part of it. The
        solution is at most this far from the best, under the same condition.
    kkt : float
        The largest violation of the optimality conditions. It is what `tol` limits in `svm` and `graph`; in `ridge`
        and `erm` that is the gap relative to the primal objective.
    iterations : int
        Steps of the solver.
    converged : bool
        Whether what `tol` limits is as small as was asked for.
    """

    primal: float
    dual: float
    gap: float
    kkt: float
    iterations: int
    converged: bool

    def _says(self) -> list[str]:
        steps = f"{self.iterations} iterations"
        return [of_certificate(self), f"kkt {number(self.kkt, 2)}", steps, *(["converged"] if self.converged else [])]
