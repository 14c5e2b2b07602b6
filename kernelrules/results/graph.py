"""What fits on graphs return."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelrules.results.certificate import Certificate

__all__ = ["GraphFit"]


@dataclass(frozen=True, eq=False)
class GraphFit:
    """Values of all m points of a graph.

    Attributes
    ----------
    values : ndarray (m,) or (m, K)
        Of one target; or a column for each target or class. NaN for points that no label reaches.
    classes : ndarray or None
        In ascending order; None for regression.
    labelled : ndarray (n,)
        The labelled points.
    unreached : ndarray
        Points in components without a label, ascending.
    residual : ndarray (K,)
        Of each column, |b - A f| / |b| for the system A f = b that was solved.
    certificate : Certificate
        Of all columns together: `primal` is the objective, `kkt` the largest residual.
    lam : float
        The λ of the fit.
    normalised : bool
        Whether the Laplacian was the normalised one.
    """

    values: np.ndarray
    classes: np.ndarray | None
    labelled: np.ndarray
    unreached: np.ndarray = field(repr=False)
    residual: np.ndarray
    certificate: Certificate
    lam: float
    normalised: bool

    @property
    def labels(self) -> np.ndarray:
        """The class of every point, that of its largest value: a masked array where points are unreached."""
        if self.classes is None:
            raise AttributeError("a fit to numbers has values, no labels")
        reached = np.ones(len(self.values), dtype=bool)
        reached[self.unreached] = False
        codes = np.zeros(len(self.values), dtype=np.intp)
        codes[reached] = self.values[reached].argmax(axis=1)
        found = self.classes[codes]
        return found if len(self.unreached) == 0 else np.ma.array(found, mask=~reached)
