"""Results of support vector machines: models, tuned grids, probabilities, slacks.

f(x) = Σᵢ aᵢ k(x, xᵢ) + b over the support vectors xᵢ, a row of coefficients and a constant for each machine
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelrules.results.certificate import Certificate
from kernelrules.results.show import Result, card, certificate_text, counted, fields_table, number, short, table

__all__ = ["CalibratedSVM", "SVMModel", "Slacks", "TuneResult"]


@dataclass(frozen=True, eq=False, repr=False)
class SVMModel(Result):
    """A support vector machine, or several of them if there are more than two classes.

    The decision values are k(X, support_vectors) · dual_coefᵀ + intercept, or X · weightsᵀ + intercept if there are
    weights.

    Attributes
    ----------
    kind : str
        "svc", "nu_svc", "svr", "nu_svr" or "one_class".
    kernel : Kernel or callable
        With gamma as a number.
    classes : ndarray or None
        In ascending order; None for regression and one-class.
    multiclass : str
        "ovo" or "ovr": one machine per pair of classes, or one per class against the rest.
    support : ndarray (n_sv,)
        Training rows with a nonzero coefficient in some machine, grouped by class, ascending in each.
    support_vectors : ndarray or csr_array (n_sv, p), or None
        Those rows; None for a precomputed kernel.
    dual_coef : ndarray (n_machines, n_sv)
        Their coefficients.
    intercept : ndarray (n_machines,)
        The constant terms.
    certificate : Certificate
        The worst certificate: of a machine that did not converge, else of the one with the largest relative gap.
    certificates : tuple of Certificate
        One per machine.
    n_features : int
        Number of columns of the data; for a precomputed kernel the number of training points.
    n_train : int
        Number of training rows.
    C : float or None
        The cost of a slack; for nu_svc with two classes the one that gives the same machine. None if several machines
        have costs of their own.
    epsilon : float or None
        Half the width of the tube of a regression: as given, or as determined by nu.
    rows_computed : int
        Number of kernel rows computed by the fit; for the linear kernel, rows of small blocks.
    weights : ndarray (n_machines, p) or None
        Of linear machines with a hard margin, on unscaled data, on data far from the origin or with very large C, where
        the sum of coefficients times support vectors has fewer digits than it needs: the weights of the columns.
        Decision values are then X·weightsᵀ + intercept. None for all others.
    Cs : ndarray (n_machines,) or None
        The costs of several machines, if each has its own: from `budget`, or from nu.
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
    weights: np.ndarray | None = field(default=None, repr=False)
    Cs: np.ndarray | None = None

    def _summary(self) -> list[str]:
        what = [] if self.classes is None else [f"{len(self.classes)} classes"]
        support = f"{len(self.support)} of {counted(self.n_train, 'point')} support"
        return [self.kind, short(repr(self.kernel)), *what, support, certificate_text(self.certificate)]


@dataclass(frozen=True, eq=False, repr=False)
class Slacks(Result):
    """Slacks of points: how far they are inside the margin.

    Attributes
    ----------
    values : ndarray (n,), or (n, n_machines) for several machines
        max(0, 1 - y f(x)); NaN if a one-vs-one machine does not have the class of the row.
    case : ndarray of int, of the same shape
        0 outside the margin or, as far as the fit is exact, on it; 1 inside it but on the right side; 2 wrong (or on
        the boundary); -1 if the value is NaN.
    """

    values: np.ndarray
    case: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values as an array."""
        return np.array(self.values, dtype=dtype, copy=copy)

    def _summary(self) -> list[str]:
        cases = f"{(self.case == 1).sum()} inside the margin", f"{(self.case == 2).sum()} wrong"
        machines = [counted(self.values.shape[1], "machine")] if self.values.ndim > 1 else []
        return [counted(len(self.values), "point"), *machines, *cases, f"sum {number(np.nansum(self.values))}"]


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedSVM(Result):
    """A model with maps from decision values to probabilities.

    Attributes
    ----------
    model : SVMModel
        The model whose decision values are mapped.
    method : str
        "platt" or "isotonic".
    maps : tuple
        One per machine: (slope, offset) of 1 / (1 + exp(slope f + offset)), or (values, probabilities) to interpolate.
    """

    model: SVMModel
    method: str
    maps: tuple[tuple[Any, Any], ...]

    def _summary(self) -> list[str]:
        return [self.method, counted(len(self.maps), "map"), repr(self.model)]

    def _html_body(self) -> str:
        return fields_table(self.model)


@dataclass(frozen=True, eq=False, repr=False)
class TuneResult(Result):
    """A grid of parameters evaluated by cross-validation.

    Attributes
    ----------
    Cs, gammas : ndarray
        The grid; gammas has one entry, nan, for kernels without gamma.
    mean, se : ndarray (n_gammas, n_Cs)
        Mean over the folds of the error, and its standard error.
    fold_errors : ndarray (n_gammas, n_Cs, n_folds)
        The errors themselves.
    best : dict
        The chosen C and, if the kernel has one, gamma.
    model : SVMModel
        The model fitted to all data with these parameters.
    measure : str
        The error measure: "zero_one", the error rate, or "squared_error" or "absolute_error".

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import svm
    >>> X = np.arange(12.0)[:, None]
    >>> result = svm.tune(X, np.arange(12) > 5, Cs=[1, 10], gammas=[0.01, 0.1], folds=2, rng=0)
    >>> result.grid
    ({'C': 1.0, 'gamma': 0.01}, {'C': 10.0, 'gamma': 0.01}, {'C': 1.0, 'gamma': 0.1}, {'C': 10.0, 'gamma': 0.1})
    >>> result.grid[result.mean.argmin()] == result.best
    True
    """

    Cs: np.ndarray
    gammas: np.ndarray
    mean: np.ndarray
    se: np.ndarray
    fold_errors: np.ndarray
    best: dict[str, float]
    model: SVMModel
    measure: str = "zero_one"

    @property
    def grid(self) -> tuple[dict[str, float], ...]:
        """The points of the grid, each in the form of `best`, in the order of `mean.ravel()` and `se.ravel()`."""
        gammas = [{"gamma": float(gamma)} if "gamma" in self.best else {} for gamma in self.gammas]
        return tuple({"C": float(C)} | gamma for gamma in gammas for C in self.Cs)

    def _chosen(self) -> tuple[int, int]:
        """Row and column of the grid."""
        g = int(np.flatnonzero(self.gammas == self.best["gamma"])[0]) if "gamma" in self.best else 0
        return g, int(np.flatnonzero(self.Cs == self.best["C"])[0])

    def _summary(self) -> list[str]:
        best = [f"{name} = {number(value)}" for name, value in self.best.items()]
        at = self._chosen()
        name = "error" if self.measure == "zero_one" else self.measure.replace("_", " ")
        error = f"{name} {number(self.mean[at], 3)} ± {number(self.se[at], 2)}"
        return [f"{' × '.join(map(str, self.mean.shape))} grid", *best, error, f"{self.fold_errors.shape[-1]} folds"]

    def _html_body(self) -> str:
        def shown(mean: float, se: float) -> str:
            rate = self.measure == "zero_one"  # others may be of any size
            return f"{mean:.3f} ± {se:.3f}" if rate else f"{number(mean, 3)} ± {number(se, 2)}"

        rows = [
            (number(gamma), *map(shown, means, ses))
            for gamma, means, ses in zip(self.gammas, self.mean, self.se, strict=True)
        ]
        heads = ("gamma \\ C", *map(number, self.Cs))
        return table(heads, rows, bold=self._chosen()[0]) + card(self.model, "")
