"""Options of all fits, checked; their warnings; and coefficients of an earlier model to start from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.results import Certificate, ConvergenceWarning, SVMModel

__all__ = ["Settings"]

MAX_ABS_TARGET = MAX_TOTAL_COST = 1e100  # larger costs and targets times kernel values would overflow float64


@dataclass(frozen=True)
class Settings:
    """Options of the solver."""

    tol: float = 1e-3
    max_iter: int | None = None
    cache_mb: float | None = None
    n_threads: int | None = None
    ticker: Any = None  # a Ticker, or None
    executor: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", check.positive(self.tol, "tol"))  # a Python float: float32 would narrow results
        if self.max_iter is not None:
            check.whole(self.max_iter, "max_iter", 1)
        if self.cache_mb is not None:
            check.positive(self.cache_mb, "cache_mb")
        parallel.n_threads_or_default(self.n_threads)
        parallel.require_executor(self.executor)

    @property
    def threads(self) -> int:
        """Threads for this process, determined at each use: a forked child of an executor must not use more."""
        return parallel.n_threads_or_default(self.n_threads)

    @property
    def tick(self) -> Any:
        """What the core calls with its progress, or None."""
        return parallel.ticker(None, "svm") if self.ticker is None else self.ticker

    @property
    def task_threads(self) -> int:
        """Threads per task of the executor: `n_threads`, or one, because there are many workers."""
        return 1 if self.n_threads is None else self.n_threads

    def for_task(self, memory: int) -> Settings:
        """Return the settings of a task: without progress, and with `memory` bytes for kernel values on any host."""
        if self.executor is None:
            return self
        return replace(self, ticker=None, executor=None, n_threads=self.task_threads, cache_mb=memory / 2**20)


def cost(C: Any, name: str = "C") -> float:
    """Return C as a float above 0, or infinity (the hard margin)."""
    if isinstance(C, (float, np.floating)) and math.isinf(C) and C > 0:
        return math.inf
    return check.positive(C, name)


def costs(C: float, weight: np.ndarray) -> np.ndarray:
    """Return C times the weights; raises if products with them would overflow float64."""
    with np.errstate(over="ignore"):
        each = C * weight
        if each.sum() > MAX_TOTAL_COST:
            raise ValueError(
                f"C times sample_weight sums to {each.sum():.3g} over the rows: use smaller ones, up to "
                f"{MAX_TOTAL_COST:g}"
            )
    return each


def fraction(nu: Any) -> float:
    """Return nu as a float in (0, 1]."""
    number = check.positive(nu, "nu")
    if number > 1:
        raise ValueError(f"nu must be at most 1, got {nu!r}")
    return number


def worst(certificates: Iterable[Certificate]) -> Certificate:
    """Return the weakest certificate: not converged before converged, then by the gap relative to the objective."""
    return max(certificates, key=lambda c: (not c.converged, c.gap / max(abs(c.dual), 1e-300)))


def warn_unless_converged(certificates: Iterable[Certificate], tol: float) -> None:
    """Warn once for all machines that stopped early."""
    late = [c for c in certificates if not c.converged]
    if late:
        largest = max(late, key=lambda c: c.kkt)
        warnings.warn(
            f"{len(late)} machine(s) stopped before the tolerance {tol:g} was reached: the optimality conditions are "
            f"violated by up to {largest.kkt:.3g} after {largest.iterations} iterations (gap {largest.gap:.3g}). "
            + (f"Reason: {largest.beyond}" if largest.beyond else "Scale the features, or allow more with max_iter"),
            ConvergenceWarning,
            stacklevel=check.level_of_caller(),
        )


def earlier_coefficients(model: Any, n: int, kinds: tuple[str, ...], n_machines: int) -> np.ndarray | None:
    """Return coefficients of an earlier model, (n_machines, n); rows beyond its own are new and have 0."""
    if model is None:
        return None
    if not isinstance(model, SVMModel):
        raise TypeError(f"warm_start must be a model that svm fitted, got {type(model).__name__}")
    if model.kind not in kinds or len(model.dual_coef) != n_machines:
        raise ValueError(
            f"warm_start is a {model.kind} model of {len(model.dual_coef)} machine(s), but {' or '.join(kinds)} of "
            f"{n_machines} is required"
        )
    if model.n_train > n:
        raise ValueError(f"warm_start was fitted to {model.n_train} rows but X has {n}: rows can only be appended")
    earlier = np.zeros((n_machines, n))
    earlier[:, model.support] = model.dual_coef
    return earlier
