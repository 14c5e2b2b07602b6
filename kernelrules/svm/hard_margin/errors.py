"""Exceptions for an infinite C without a margin.

`NotSeparable` has a proof that the classes' convex hulls meet, `Undecided` has bounds of their distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelrules.results.frozen import read_only

__all__ = ["NotSeparable", "Undecided", "numbered"]


class _NoMargin(ValueError):
    """A message about a pair of classes, with a convex combination of each."""

    def __init__(
        self,
        message: str,
        classes: tuple[Any, Any] | None = None,
        rows: tuple[np.ndarray, np.ndarray] | None = None,
        weights: tuple[np.ndarray, np.ndarray] | None = None,
        **bounds: float,
    ) -> None:
        super().__init__(message)
        self.message, self.classes, self.bounds = message, classes, bounds
        self.rows, self.weights = read_only(rows), read_only(weights)
        for name, value in bounds.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple:
        # ValueError.__reduce__ would keep the message only, and executors send exceptions between processes.
        return _restored, (type(self), self.message, self.classes, self.rows, self.weights, self.bounds)

    def __str__(self) -> str:
        if self.classes is None:
            return self.message
        first, second = self.classes
        return f"{self.message} (class {first!r} against {'the rest' if second is None else f'class {second!r}'})"

    def after(self, message: str) -> _NoMargin:
        """Return the exception with another message before its own."""
        return self._with(f"{message}; {self.message}", self.classes, self.rows)

    def renumbered(self, points: np.ndarray) -> _NoMargin:
        """Return the exception with rows renumbered: row i becomes points[i]."""
        rows = None if self.rows is None else tuple(points[part] for part in self.rows)
        return self._with(self.message, self.classes, rows)

    def about(self, first: Any, second: Any) -> _NoMargin:
        """Return the exception with the classes named; `second` None: all others."""
        classes = tuple(label.item() if isinstance(label, np.generic) else label for label in (first, second))
        return self._with(self.message, classes, self.rows)

    def _with(self, message: str, classes: Any, rows: Any) -> _NoMargin:
        other = _restored(type(self), message, classes, rows, self.weights, self.bounds)
        for note in getattr(self, "__notes__", ()):
            other.add_note(note)
        return other


def _restored(kind: type, message: str, classes: Any, rows: Any, weights: Any, bounds: dict[str, float]) -> _NoMargin:
    return kind(message, classes, rows, weights, **bounds)


class NotSeparable(_NoMargin):
    """No hyperplane separates the classes, so there is no hard margin.

    The proof: Σ weights[0]·φ(X[rows[0]]) and Σ weights[1]·φ(X[rows[1]]) are points of
    the two classes' convex hulls that are nearer to each other than rounding of these rows and weights can resolve.

    Attributes
    ----------
    classes : tuple or None
        The two labels; None in the place of the second means all other classes.
    rows : tuple of two ndarrays of int, or None
        Rows of X, of either class.
    weights : tuple of two ndarrays, or None
        Above 0, with sum 1 for either class.
    distance : float
        Between the two points, from sums in twice the precision of float64.
    rounding : float
        How far apart rounding of those rows and of the weights may bring points that are equal; for a kernel that is
        known by its values alone (`Precomputed`, `Sigmoid`, a function), rounding of these values. The distance is at
        most this, for `Linear` in every column.

    Examples
    --------
    >>> import math
    >>> from kernelrules import kernels, svm
    >>> try:
    ...     svm.svc([[0.0], [2.0], [1.0]], ["a", "a", "b"], C=math.inf, kernel=kernels.Linear())
    ... except svm.NotSeparable as error:
    ...     print(error.classes, error.rows, error.weights, error.distance)
    ('b', 'a') (array([2]), array([0, 1])) (array([1.]), array([0.5, 0.5])) 0.0
    """

    distance = rounding = None


class Undecided(_NoMargin):
    """C is infinite, and neither a separating hyperplane was found nor a proof that there is none.

    Either the solver stopped early, or the classes are nearer to each other than float64 can resolve. A finite C always
    has a solution.

    Attributes
    ----------
    classes : tuple
        The two labels; None in the place of the second means all other classes.
    rows, weights : tuples of two ndarrays
        The nearest points of the two convex hulls that were found, as in `NotSeparable`.
    lower, upper : float
        Bounds of the distance between the hulls, in the space of the kernel. `lower` is above 0 only for a polynomial
        kernel whose monomials are proved separable although its kernel values have too few digits for a margin. For
        other kernels it is 0: a larger bound would prove a margin, and the machine would be returned.

    Examples
    --------
    >>> import math
    >>> from kernelrules import kernels, svm
    >>> try:
    ...     svm.svc([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], C=math.inf, kernel=kernels.RBF(1e-12))
    ... except svm.Undecided as error:
    ...     print(error.classes, error.lower, error.upper < 1e-6)
    (1, 0) 0.0 True
    """

    lower = upper = None


@contextmanager
def numbered(points: np.ndarray | None) -> Iterator[None]:
    """Renumber the rows of exceptions raised inside: row i becomes points[i]."""
    try:
        yield
    except _NoMargin as error:
        raise (error if points is None else error.renumbered(points)) from None
