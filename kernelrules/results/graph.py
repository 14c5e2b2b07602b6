"""Result of fits on graphs: a value or a class for every point of the graph."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelrules.results.certificate import Certificate
from kernelrules.results.show import Result, counted, number

__all__ = ["GraphFit"]


@dataclass(frozen=True, eq=False, repr=False)
class GraphFit(Result):
    """Values of all m points of a graph.

    Attributes
    ----------
    values : ndarray (m,) or (m, K)
        Values of one target, or a column per target or class. NaN for points that no label reaches.
    classes : ndarray or None
        In ascending order; None for regression.
    labels : ndarray (m,) or None
        The class of every point; a masked array if some points are unreached; None for regression.
    labelled : ndarray (n,)
        The labelled points.
    unreached : ndarray
        Points in components without a label, ascending.
    residual : ndarray (K,)
        `|D⁻¹(b - A f)| / |D⁻¹b|` of each column, for the system A f = b that was solved, D being the diagonal of A.
    certificate : Certificate
        Certificate of all columns together: `primal` is the objective, `kkt` the largest residual.
    lam : float
        The λ of the fit.
    normalised : bool
        Whether the Laplacian was normalised.
    """

    values: np.ndarray
    classes: np.ndarray | None
    labels: np.ndarray | None
    labelled: np.ndarray
    unreached: np.ndarray = field(repr=False)
    residual: np.ndarray
    certificate: Certificate
    lam: float
    normalised: bool

    def _summary(self) -> list[str]:
        what = "regression" if self.classes is None else f"{len(self.classes)} classes"
        parts = [what, counted(len(self.values), "point"), f"{len(self.labelled)} labelled", f"λ = {number(self.lam)}"]
        lost = [f"{len(self.unreached)} unreached"] if len(self.unreached) else []
        end = [] if self.certificate.converged else ["not converged"]
        return [*parts, *lost, f"residual {number(np.max(self.residual, initial=0.0), 2)}", *end]
