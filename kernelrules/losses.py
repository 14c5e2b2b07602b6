"""Losses of the margin u = y f(x), y = ±1.

    squared        (1 - u)²             logistic       log(1 + e⁻ᵘ)          zero_one   1 if u ≤ 0, else 0
    hinge          max(0, 1 - u)        exponential    e⁻ᵘ                   ramp       min(1, max(0, 1 - u))
    squared_hinge  max(0, 1 - u)²

Each is a `Loss`: a callable with its derivatives and its conjugate, so a new loss is one entry here. All but zero_one
and ramp are convex; each is at least zero_one, logistic after division by log 2. Values are correct for every float:
a value beyond the largest float is infinite, without a warning.

References
----------
- P. L. Bartlett, M. I. Jordan and J. D. McAuliffe (2006). Convexity, classification, and risk bounds. Journal of the
  American Statistical Association 101, 138-156. Convex losses as surrogates of the 0/1 loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from kernelrules.check import DtypeError

__all__ = [
    "Loss",
    "exponential",
    "hinge",
    "logistic",
    "ramp",
    "squared",
    "squared_hinge",
    "zero_one",
]

_Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss L of the margin u: call it for its values.

    At a kink, derivatives are those from the right: the hinge has derivative 0 at u = 1, the ramp -1 at u = 0.

    Parameters
    ----------
    name : str
        Name by which `erm.fit` selects it.
    value, first, second_order : callable
        L, L' and L'' of an array without NaN. L'' is 0 wherever L is linear.
    conjugate_at : callable or None
        L*(s), the largest s·u - L(u) over all u; infinite outside of `slopes`. None if L is not convex.
    slopes : tuple of float
        Infimum and supremum of the slopes (L(u) - L(t)) / (u - t): for a convex L, the range of its derivative.
    smooth : bool
        Whether L' is continuous, which Newton's method requires.
    in_words : str
        The formula.

    Examples
    --------
    >>> from kernelrules import losses
    >>> losses.logistic([0.0, 1e308, -1e308])
    array([6.93147181e-001, 0.00000000e+000, 1.00000000e+308])
    >>> losses.hinge.derivative([0.0, 1.0])
    array([-1.,  0.])
    >>> losses.squared.conjugate(2.0), losses.logistic.lipschitz
    (3.0, 1.0)
    """

    name: str
    value: _Function
    first: _Function
    second_order: _Function
    conjugate_at: _Function | None
    slopes: tuple[float, float]
    smooth: bool
    in_words: str

    def __call__(self, u: Any) -> Any:
        """Return L(u).

        Parameters
        ----------
        u : float or array
            Margins; of any shape.

        Returns
        -------
        float or ndarray
            Of the same shape; float32 for float32, else float64.
        """
        return self._at(self.value, u, "u")

    def derivative(self, u: Any) -> Any:
        """Return L'(u), from the right if L has a kink at u.

        Parameters
        ----------
        u : float or array
            Margins.

        Returns
        -------
        float or ndarray
            Of the same shape.
        """
        return self._at(self.first, u, "u")

    def second(self, u: Any) -> Any:
        """Return L''(u), from the right if L' has a kink or a jump at u.

        Parameters
        ----------
        u : float or array
            Margins.

        Returns
        -------
        float or ndarray
            Of the same shape.
        """
        return self._at(self.second_order, u, "u")

    def conjugate(self, s: Any) -> Any:
        """Return L*(s), the largest s·u - L(u) over all u.

        Parameters
        ----------
        s : float or array
            Slopes.

        Returns
        -------
        float or ndarray
            Of the same shape; infinite outside of `slopes`.

        Raises
        ------
        ValueError
            For zero_one and ramp, which are not convex.
        """
        if self.conjugate_at is None:
            raise ValueError(f"the {self.name} loss is not convex: its conjugate does not describe it")
        low, high = self.slopes

        def extended(slope: np.ndarray) -> np.ndarray:
            inside = (slope >= low) & (slope <= high) & np.isfinite(slope)
            return np.where(inside, self.conjugate_at(np.where(inside, slope, max(low, -1.0))), np.inf)

        return self._at(extended, s, "s")

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant of L; infinite if it has none."""
        return max(abs(slope) for slope in self.slopes)

    @property
    def convex(self) -> bool:
        """Whether L is convex."""
        return self.conjugate_at is not None

    def __repr__(self) -> str:
        return f"losses.{self.name}"

    def __reduce__(self) -> Any:
        """Pickle a loss of this module by its name, any other by its functions."""
        if BY_NAME.get(self.name) is self:
            return self.name
        return Loss, tuple(getattr(self, each.name) for each in fields(self))

    @staticmethod
    def _at(function: _Function, values: Any, name: str) -> Any:
        """Return the function of a checked array; a float for a number."""
        if np.ma.is_masked(values):
            raise ValueError(f"{name} has masked entries")
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise DtypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
        array = array.astype(np.float32 if array.dtype.kind == "f" and array.dtype.itemsize <= 4 else np.float64)
        bad = np.isnan(array)
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(f"{name} holds nan" + (f" at {place}" if place else ""))
        with np.errstate(over="ignore", under="ignore"):
            result = np.asarray(function(array), dtype=array.dtype)
        return result if result.ndim else result.item()


def _below(u: np.ndarray) -> np.ndarray:
    """Return max(0, 1 - u)."""
    return np.maximum(0.0, 1.0 - u)


squared = Loss(
    "squared",
    lambda u: (1.0 - u) ** 2,
    lambda u: -2.0 * (1.0 - u),
    lambda u: np.full_like(u, 2.0),
    lambda s: s + s * s / 4.0,
    (-math.inf, math.inf),
    True,
    "(1 - u)²",
)
"""(1 - u)², which is (y - f)² for y = ±1: least squares on the labels. It also grows for u > 1."""

logistic = Loss(
    "logistic",
    lambda u: np.logaddexp(0.0, -u),
    lambda u: -expit(-u),
    lambda u: expit(u) * expit(-u),
    lambda s: xlogy(-s, -s) + xlog1py(1.0 + s, s),
    (-1.0, 0.0),
    True,
    "log(1 + e⁻ᵘ)",
)
"""log(1 + e⁻ᵘ), the natural logarithm: minus the log-likelihood of P(y | x) = 1 / (1 + e⁻ᵘ).

It is log 2 at 0, so that the loss divided by log 2 dominates the 0/1 loss.
"""

hinge = Loss(
    "hinge",
    _below,
    lambda u: np.where(u < 1.0, -1.0, 0.0),
    np.zeros_like,
    lambda s: s,
    (-1.0, 0.0),
    False,
    "max(0, 1 - u)",
)
"""max(0, 1 - u): the loss of support vector machines, `kernelrules.svm`."""

squared_hinge = Loss(
    "squared_hinge",
    lambda u: _below(u) ** 2,
    lambda u: -2.0 * _below(u),
    lambda u: np.where(u < 1.0, 2.0, 0.0),
    lambda s: s + s * s / 4.0,
    (-math.inf, 0.0),
    True,
    "max(0, 1 - u)²",
)
"""max(0, 1 - u)²: the squared loss, but 0 for u > 1. L'' jumps at 1."""

exponential = Loss(
    "exponential",
    lambda u: np.exp(-u),
    lambda u: -np.exp(-u),
    lambda u: np.exp(-u),
    lambda s: xlogy(-s, -s) + s,
    (-math.inf, 0.0),
    True,
    "e⁻ᵘ",
)
"""e⁻ᵘ: the loss of AdaBoost. One point far on the wrong side outweighs all others."""

zero_one = Loss(
    "zero_one",
    lambda u: np.where(u <= 0.0, 1.0, 0.0),
    np.zeros_like,
    np.zeros_like,
    None,
    (-math.inf, 0.0),
    False,
    "1 where u ≤ 0",
)
"""1 if u ≤ 0, else 0: the mean is the error rate. A decision value of 0 counts as wrong."""

ramp = Loss(
    "ramp",
    lambda u: np.clip(1.0 - u, 0.0, 1.0),
    lambda u: np.where((u >= 0.0) & (u < 1.0), -1.0, 0.0),
    np.zeros_like,
    None,
    (-1.0, 0.0),
    False,
    "min(1, max(0, 1 - u))",
)
"""min(1, max(0, 1 - u)): between the 0/1 loss and the hinge, at most 1: the loss of margin bounds.

With a margin γ instead of 1 it is ``ramp(u / γ)``, of Lipschitz constant 1/γ.
"""

BY_NAME = {
    loss.name: loss for loss in (squared, logistic, hinge, squared_hinge, exponential, zero_one, ramp)
}  # in the order of plots
