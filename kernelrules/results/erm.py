"""Result of empirical risk minimisation: f(x) = Σᵢ αᵢ k(x, xᵢ) + b, one machine for two classes, else one per class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelrules.results.certificate import Certificate
from kernelrules.results.show import Result, certificate_text, counted, number, short

__all__ = ["ErmFit"]


@dataclass(frozen=True, eq=False, repr=False)
class ErmFit(Result):
    """A kernel machine for a convex loss, or one per class if there are more than two.

    The decision values are k(X, fit.X) · alphaᵀ + intercept.

    Attributes
    ----------
    loss : str
        Its name in `kernelrules.losses`.
    lam : float
        The factor λ of ‖f‖².
    kernel : Kernel or callable
        With gamma as a number.
    classes : ndarray
        In ascending order; machine 0 of two classes is positive for classes[1], machine k of more for classes[k].
    alpha : ndarray (n_machines, n)
        Coefficients of the training points; 0 for those of weight 0.
    weights : ndarray (n_machines, n_weights) or None
        If the fit used explicit features φ (Linear and Polynomial kernels with at least as many points as features),
        their weights: decision values are then φ(X) · weightsᵀ + intercept, and alpha is the dual solution.
    intercept : ndarray (n_machines,)
        Constant terms; 0 if they were not fitted.
    norms : ndarray (n_machines,)
        ‖f‖ of each machine in the space of the kernel, without its intercept.
    certificate : Certificate
        The worst certificate: of a machine that did not converge, else of the one with the largest gap relative to its
        objective.
    certificates : tuple of Certificate
        One per machine.
    X : ndarray, csr_array or None
        The training points; None for a precomputed kernel, and if there are weights.
    n_features : int
        Number of columns of the data; for a precomputed kernel the number of training points.
    """

    loss: str
    lam: float
    kernel: Any
    classes: np.ndarray
    alpha: np.ndarray
    weights: np.ndarray | None
    intercept: np.ndarray
    norms: np.ndarray
    certificate: Certificate
    certificates: tuple[Certificate, ...]
    X: Any = field(repr=False)
    n_features: int

    def _summary(self) -> list[str]:
        sizes = [f"{len(self.classes)} classes", counted(self.alpha.shape[1], "point")]
        return [
            self.loss,
            f"λ = {number(self.lam)}",
            short(repr(self.kernel)),
            *sizes,
            certificate_text(self.certificate),
        ]
