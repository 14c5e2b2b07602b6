"""What all fits share: checked options, warnings, and the start from an earlier model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.results import Certificate, SVMModel

__all__ = ["ConvergenceWarning", "NotSeparable", "Settings"]


NEAR = 1e-12  # of the distance between its bounds: a variable that near to one is at it, but for rounding
MOST = 1e100  # of costs and targets: their products with kernel values still are numbers


class ConvergenceWarning(UserWarning):
    """The solver stopped before the tolerance was reached; the certificate says how good the answer is."""


class NotSeparable(ValueError):
    """No hyperplane separates the classes, so there is no hard margin."""


@dataclass(frozen=True)
class Settings:
    """Options of the solver."""

    tol: float = 1e-3
    max_iter: int | None = None
    cache_mb: float | None = None
    n_threads: int | None = None
    told: Any = None  # a Ticker, or None
    executor: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", check.positive(self.tol, "tol"))  # a float32 would narrow what it meets
        if self.max_iter is not None:
            check.whole(self.max_iter, "max_iter", 1)
        if self.cache_mb is not None:
            check.positive(self.cache_mb, "cache_mb")
        parallel.n_threads_or_default(self.n_threads)
        parallel.require_executor(self.executor)

    @property
    def threads(self) -> int:
        """To use in this process: asked for anew, since a forked child that an executor started must not use more."""
        return parallel.n_threads_or_default(self.n_threads)

    @property
    def tick(self) -> Any:
        """What the core calls with its progress, or None."""
        return parallel.ticker(None, "svm") if self.told is None else self.told

    @property
    def task_threads(self) -> int:
        """Of a task of the executor: one, unless more were asked for, since there are many workers."""
        return 1 if self.n_threads is None else self.n_threads

    def of_task(self, memory: int) -> Settings:
        """Of a task: silent, and with the bytes for kernel values that were found here, whatever its machine has."""
        if self.executor is None:
            return self
        return replace(self, told=None, executor=None, n_threads=self.task_threads, cache_mb=memory / 2**20)


def cost(C: Any, name: str = "C") -> float:
    """C as a float above 0; infinity, the hard margin, included."""
    if isinstance(C, (float, np.floating)) and math.isinf(C) and C > 0:
        return math.inf
    return check.positive(C, name)


def costs(C: float, weight: np.ndarray) -> np.ndarray:
    """C times the weights; refused where products with them would leave float64."""
    with np.errstate(over="ignore"):
        each = C * weight
        if each.sum() > MOST:
            raise ValueError(
                f"C times sample_weight sums to {each.sum():.3g} over the rows: use smaller ones, up to {MOST:g}"
            )
    return each


def fraction(nu: Any) -> float:
    """Nu as a float in (0, 1]."""
    number = check.positive(nu, "nu")
    if number > 1:
        raise ValueError(f"nu must be at most 1, got {nu!r}")
    return number


def worst(certificates: Iterable[Certificate]) -> Certificate:
    """The one that says least: not converged before converged, then the largest gap relative to the objective."""
    return max(certificates, key=lambda c: (not c.converged, c.gap / max(abs(c.dual), 1e-300)))


def warn_unless_converged(certificates: Iterable[Certificate], tol: float) -> None:
    """One warning for all machines."""
    late = [c for c in certificates if not c.converged]
    if late:
        largest = max(late, key=lambda c: c.kkt)
        warnings.warn(
            f"{len(late)} machine(s) stopped before the tolerance {tol:g} was reached: the optimality conditions are "
            f"violated by up to {largest.kkt:.3g} after {largest.iterations} iterations (gap {largest.gap:.3g}). "
            "Scale the features, or allow more with max_iter",
            ConvergenceWarning,
            stacklevel=check.level_of_caller(),
        )


def earlier_coefficients(model: Any, n: int, kinds: tuple[str, ...], n_machines: int) -> np.ndarray | None:
    """Coefficients of an earlier model, a column for each row of the data; rows past its own count as new."""
    if model is None:
        return None
    if not isinstance(model, SVMModel):
        raise TypeError(f"warm_start must be a model that svm fitted, got {type(model).__name__}")
    if model.kind not in kinds or len(model.dual_coef) != n_machines:
        raise ValueError(
            f"warm_start is a {model.kind} model of {len(model.dual_coef)} machine(s), but {' or '.join(kinds)} of "
            f"{n_machines} is wanted"
        )
    if model.n_train > n:
        raise ValueError(f"warm_start was fitted to {model.n_train} rows but X has {n}: rows can only be appended")
    earlier = np.zeros((n_machines, n))
    earlier[:, model.support] = model.dual_coef
    return earlier


def fit_sum(a: np.ndarray, limit: np.ndarray, total: float) -> np.ndarray:
    """Values near a within [0, limit] whose sum is `total`: scaled down, or moved towards the limits."""
    a = np.clip(a, 0.0, limit)
    now = a.sum()
    if now > total:
        a *= total / now
    elif now < total:
        room = limit - a
        a = np.minimum(a + room * ((total - now) / room.sum()), limit)
    return np.where(a > (1 - NEAR) * limit, limit, a)
