"""What support vector machines return: models, grids that were searched, probabilities, slacks.

f(x) = Σᵢ aᵢ k(x, xᵢ) + b over the support vectors xᵢ, a row of coefficients and a constant for each machine
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelrules.results.certificate import Certificate
from kernelrules.results.show import Result, card, counted, fields_table, number, of_certificate, short, table

__all__ = ["CalibratedSVM", "SVMModel", "Slacks", "TuneResult"]


@dataclass(frozen=True, eq=False, repr=False)
class SVMModel(Result):
    """A support vector machine, or several of them where there are more than two classes.

    The decision values are k(X, support_vectors) · dual_coefᵀ + intercept.

    Attributes
    ----------
    kind : str
        "svc", "nu_svc", "svr", "nu_svr" or "one_class".
    kernel : Kernel or callable
        With gamma as a number.
    classes : ndarray or None
        In ascending order; None for regression and one-class.
    multiclass : str
        "ovo" or "ovr": what the machines of more than two classes tell apart.
    support : ndarray (n_sv,)
        Rows of the training data that have a coefficient in some machine, grouped by class, ascending in each.
    support_vectors : ndarray or csr_array (n_sv, p), or None
        Those rows; None for a precomputed kernel.
    dual_coef : ndarray (n_machines, n_sv)
        Their coefficients.
    intercept : ndarray (n_machines,)
        The constant terms.
    certificate : Certificate
        The worst: of the machine with the largest gap relative to its objective, of one that did not converge first.
    certificates : tuple of Certificate
        One a machine.
    n_features : int
        Columns that data must have; for a precomputed kernel the number of training points.
    n_train : int
        Rows of the training data.
    C : float or None
        The cost of a slack; for nu_svc of two classes the one that gives the same machine.
    epsilon : float or None
        Of a regression, half the width of the tube: the one that was given, or that nu led to.
    rows_computed : int
        Kernel rows that the fit computed; for the linear kernel, rows of small blocks.
    """

    kind: str
    kernel: Any
    classes: np.ndarray | None
    multiclass: str
    support: np.ndarray
    support_vectors: Any
    dual_coef: np.ndarray
    intercept: np.ndarray
    certificate: Certificate
    certificates: tuple[Certificate, ...]
    n_features: int
    n_train: int
    C: float | None = None
    epsilon: float | None = None
    rows_computed: int = field(default=0, repr=False)

    def _says(self) -> list[str]:
        what = [] if self.classes is None else [f"{len(self.classes)} classes"]
        support = f"{len(self.support)} of {counted(self.n_train, 'point')} support"
        return [self.kind, short(repr(self.kernel)), *what, support, of_certificate(self.certificate)]


@dataclass(frozen=True, eq=False, repr=False)
class Slacks(Result):
    """How far points fall short of the margin.

    Attributes
    ----------
    values : ndarray (n,)
        max(0, 1 - y f(x)).
    case : ndarray (n,) of int
        0 outside the margin or, as far as the fit is exact, on it; 1 inside it but on the right side; 2 wrong (or on
        the boundary).
    """

    values: np.ndarray
    case: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values, where an array is wanted."""
        return np.array(self.values, dtype=dtype, copy=copy)

    def _says(self) -> list[str]:
        cases = f"{(self.case == 1).sum()} inside the margin", f"{(self.case == 2).sum()} wrong"
        return [counted(len(self.values), "point"), *cases, f"sum {number(self.values.sum())}"]


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedSVM(Result):
    """A model with maps from decision values to probabilities.

    Attributes
    ----------
    model : SVMModel
        Whose decision values are mapped.
    method : str
        "platt" or "isotonic".
    maps : tuple
        One a machine: (slope, offset) of 1 / (1 + exp(slope f + offset)), or (values, probabilities) to interpolate.
    """

    model: SVMModel
    method: str
    maps: tuple[tuple[Any, Any], ...]

    def _says(self) -> list[str]:
        return [self.method, counted(len(self.maps), "map"), repr(self.model)]

    def _body(self) -> str:
        return fields_table(self.model)


@dataclass(frozen=True, eq=False, repr=False)
class TuneResult(Result):
    """A grid of parameters judged by cross-validation.

    Attributes
    ----------
    Cs, gammas : ndarray
        The grid; gammas has one entry, nan, for kernels without gamma.
    mean, se : ndarray (n_gammas, n_Cs)
        Mean over the folds of the error rate, and its standard error.
    fold_errors : ndarray (n_gammas, n_Cs, n_folds)
        The error rates themselves.
    best : dict
        The chosen C and, where there is one, gamma.
    model : SVMModel
        Fitted to all data with these.
    """

    Cs: np.ndarray
    gammas: np.ndarray
    mean: np.ndarray
    se: np.ndarray
    fold_errors: np.ndarray
    best: dict[str, float]
    model: SVMModel

    def _chosen(self) -> tuple[int, int]:
        """Row and column of the grid."""
        g = int(np.flatnonzero(self.gammas == self.best["gamma"])[0]) if "gamma" in self.best else 0
        return g, int(np.flatnonzero(self.Cs == self.best["C"])[0])

    def _says(self) -> list[str]:
        best = [f"{name} = {number(value)}" for name, value in self.best.items()]
        at = self._chosen()
        error = f"error {number(self.mean[at], 3)} ± {number(self.se[at], 2)}"
        return [f"{' × '.join(map(str, self.mean.shape))} grid", *best, error, f"{self.fold_errors.shape[-1]} folds"]

    def _body(self) -> str:
        rows = [
            (number(gamma), *(f"{mean:.3f} ± {se:.3f}" for mean, se in zip(means, ses, strict=True)))
            for gamma, means, ses in zip(self.gammas, self.mean, self.se, strict=True)
        ]
        heads = ("gamma \\ C", *map(number, self.Cs))
        return table(heads, rows, bold=self._chosen()[0]) + card(self.model, "")
