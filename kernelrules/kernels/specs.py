"""Kernels as values: frozen, checked when made, without data.

    Linear       x·z                       Laplacian    exp(-γ |x-z|_1)
    Polynomial   (γ x·z + c)^d             Sigmoid      tanh(γ x·z + c)
    RBF          exp(-γ |x-z|²)            Precomputed  the user's own matrix

gamma is a number, "scale" for 1 / (p · var X) or "auto" for 1 / p; `resolve(X)` returns the kernel with its number.

A class has its name and its parameters here; what it computes is the row of that name in the table of kernels
(core/gram/kernels.h). A new kernel is a row there and a class here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kernelrules import check
from kernelrules.core.gram.kernels import table

_VARIANCE_CHUNK = 1 << 17  # numbers that are summed together: 1 MB, which stays in second-level cache
_MAX_DEGREE = 1 << 20  # far beyond any use; a larger one is a mistake, and its powers overflow

__all__ = ["RBF", "Kernel", "Laplacian", "Linear", "Polynomial", "Precomputed", "Sigmoid"]


class KernelRow(NamedTuple):
    """A row of the table of kernels; core/gram/kernels.h describes the columns."""

    name: str
    number: int
    sum: str
    parameters: tuple[str, ...]
    unit_diagonal: bool
    semidefinite: str
    value: str


TABLE = {row[0]: KernelRow(*row) for row in table()}

# The functions of the table's expressions on NumPy arrays.
_FUNCTIONS = {"EXP": np.exp, "TANH": np.tanh, "POWER": lambda base, degree: base**degree, "__builtins__": {}}


@dataclass(frozen=True)
class Kernel:
    """The base class of all kernels."""

    row: ClassVar[KernelRow | None] = None  # of the table; None for Precomputed
    kind: ClassVar[int | None] = None  # its number

    def __init_subclass__(cls) -> None:
        cls.row = TABLE.get(cls.__name__.upper())
        cls.kind = None if cls.row is None else cls.row.number

    def __post_init__(self) -> None:
        gamma = getattr(self, "gamma", 1.0)
        if isinstance(gamma, str):
            if gamma not in ("scale", "auto"):
                raise ValueError(f'gamma must be a number, "scale" or "auto", got {gamma!r}')
        else:
            self._set("gamma", check.positive(gamma, "gamma"))
        self._set("coef0", check.real(getattr(self, "coef0", 0.0), "coef0"))
        degree = check.whole(getattr(self, "degree", 0), "degree", 0)
        if degree > _MAX_DEGREE:
            raise ValueError(f"degree must be at most {_MAX_DEGREE}, got {degree}")
        self._set("degree", degree)

    def _set(self, name: str, value: Any) -> None:
        if hasattr(self, name):  # kernels without the parameter stay without it
            object.__setattr__(self, name, value)

    def resolve(self, X: Any) -> Kernel:
        """The kernel with gamma as a number, taken from X where it is "scale" or "auto".

        Parameters
        ----------
        X : array, sparse matrix or data frame
            The data that decide; of a model, those it was fitted to.

        Returns
        -------
        Kernel
            With a number for gamma.

        Examples
        --------
        >>> from kernelrules import kernels
        >>> kernels.RBF("auto").resolve([[0.0, 1.0], [2.0, 3.0]])
        RBF(gamma=0.5)
        """
        return self.resolve_checked(check.matrix(X)) if isinstance(getattr(self, "gamma", None), str) else self

    def resolve_checked(self, data: np.ndarray | check.Csr) -> Kernel:
        """`resolve` for data that have been through `check.matrix`."""
        gamma = getattr(self, "gamma", None)
        if not isinstance(gamma, str):
            return self
        n, p = data.shape
        if gamma == "auto":
            return replace(self, gamma=1.0 / p)
        variance = _variance(data) if n else 0.0
        scale = 1.0 / (p * variance) if variance > 0 else 1.0  # data without spread: any scale will do
        if not 0 < scale < math.inf:
            raise ValueError(f'gamma "scale" is 1 / ({p} · var X), but the variance of X is {variance}')
        return replace(self, gamma=scale)

    def _parameters(self) -> dict[str, Any]:
        """Return degree, gamma and coef0, with neutral values for those that the kernel does not have."""
        neutral = {"degree": 0, "gamma": 1.0, "coef0": 0.0}
        return {name: getattr(self, name, value) for name, value in neutral.items()}

    def core(self) -> tuple[int, int, float, float]:
        """Return (kind, degree, gamma, coef0), as the core takes it."""
        return self.kind, *self._parameters().values()

    def value_of_sum(self, s: np.ndarray) -> np.ndarray:
        """Return the kernel's value for the sums s over the features, in float64; gamma is a number."""
        return eval(self.row.value, _FUNCTIONS, {"s": s, **self._parameters()})

    def is_semidefinite(self) -> bool:
        """Return whether every matrix of the kernel is known to be positive semi-definite, whatever the data."""
        return self.row is not None and bool(eval(self.row.semidefinite, _FUNCTIONS, self._parameters()))


def _variance(data: Any) -> float:
    """Of all entries together, in float64, by two passes, so that an offset costs no digits, and by parts, so that
    float32 data are not copied whole."""
    n_all = data.shape[0] * data.shape[1]
    stored = data.data[:, None] if isinstance(data, check.Csr) else data
    step = max(1, _VARIANCE_CHUNK // stored.shape[1])
    parts = [slice(start, start + step) for start in range(0, len(stored), step)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = math.fsum(float(stored[part].sum(dtype=np.float64)) / n_all for part in parts)
        squares = math.fsum(float(np.square(stored[part] - mean, dtype=np.float64).sum()) for part in parts)
        return (squares + (n_all - stored.size) * mean * mean) / n_all


@dataclass(frozen=True)
class Linear(Kernel):
    """The inner product x·z.

    Examples
    --------
    >>> from kernelrules import kernels
    >>> kernels.gram([[1.0, 2.0]], [[3.0, 4.0]], kernels.Linear())
    array([[11.]])
    """


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x·z + coef0)^degree.

    Positive semi-definite for coef0 ≥ 0; others are allowed and left to the solver.

    Parameters
    ----------
    degree : int
        At least 0.
    gamma : float, "scale" or "auto"
        Greater than 0.
    coef0 : float
        The constant.

    Examples
    --------
    >>> from kernelrules import kernels
    >>> kernels.gram([[1.0, 2.0]], [[3.0, 4.0]], kernels.Polynomial(degree=2))
    array([[144.]])
    """

    degree: int = 3
    gamma: float | str = 1.0
    coef0: float = 1.0


@dataclass(frozen=True)
class RBF(Kernel):
    """`exp(-gamma |x-z|²)`, also called Gaussian.

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        Greater than 0.

    Examples
    --------
    >>> from kernelrules import kernels
    >>> kernels.gram([[0.0], [1.0]], kernel=kernels.RBF(gamma=2.0)).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """

    gamma: float | str = "scale"


@dataclass(frozen=True)
class Laplacian(Kernel):
    """`exp(-gamma |x-z|_1)`, with the sum of absolute differences.

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        Greater than 0.

    Examples
    --------
    >>> from kernelrules import kernels
    >>> kernels.gram([[0.0, 0.0]], [[1.0, -1.0]], kernels.Laplacian(gamma=0.5)).round(3)
    array([[0.368]])
    """

    gamma: float | str = "scale"


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """tanh(gamma x·z + coef0). Not positive semi-definite in general.

    Parameters
    ----------
    gamma : float, "scale" or "auto"
        Greater than 0.
    coef0 : float
        The constant.

    Examples
    --------
    >>> from kernelrules import kernels
    >>> kernels.gram([[1.0]], [[0.5]], kernels.Sigmoid(gamma=1.0)).round(3)
    array([[0.462]])
    """

    gamma: float | str = "scale"
    coef0: float = 0.0


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The data are the kernel matrix itself: X[i, j] = k(x_i, z_j).

    Examples
    --------
    >>> from kernelrules import kernels
    >>> kernels.gram([[2.0, 1.0], [1.0, 2.0]], kernel=kernels.Precomputed())
    array([[2., 1.],
           [1., 2.]])
    """
