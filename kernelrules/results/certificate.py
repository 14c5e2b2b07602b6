"""The certificate of a solution, for every solver of the package, and the warning if the tolerance was not reached."""

from __future__ import annotations

from dataclasses import dataclass

from kernelrules.results.show import Result, certificate_text, number

__all__ = ["Certificate", "ConvergenceWarning"]


class ConvergenceWarning(UserWarning):
    """The solver stopped before the tolerance was reached; the certificate of the result has the gap."""


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """Objective, lower bound and optimality of a solution, computed from the solution alone.

    Attributes
    ----------
    primal : float
        The objective at the solution.
    dual : float
        A lower bound of the objective of every solution, if the kernel is positive semi-definite.
    gap : float
        primal - dual, at least 0 up to rounding; in `erm` larger if rounding may hide a part of it. The
        objective is at most this far from the minimum, under the same condition.
    kkt : float
        The largest violation of the optimality conditions, which `tol` limits in `svm` and `graph`; in `ridge`
        and `erm`, `tol` limits the gap relative to the primal objective. With weights w of an `svm` it is at least
        ½‖w - Σ coefficient · support vector‖² / Σ abs(coefficient).
    iterations : int
        Steps of the solver.
    converged : bool
        Whether the quantity that `tol` limits is within it.
    beyond : str or None
        For an `svm` that did not converge because numbers need more digits than float64 has: which numbers.
    """

    primal: float
    dual: float
    gap: float
    kkt: float
    iterations: int
    converged: bool
    beyond: str | None = None

    def _summary(self) -> list[str]:
        steps = f"{self.iterations} iterations"
        return [certificate_text(self), f"kkt {number(self.kkt, 2)}", steps, *(["converged"] if self.converged else [])]
