"""Checks that bounds share, and the price of a choice among classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelrules import check

__all__ = ["log_share_of_class", "not_negative", "probability", "require_known"]


def not_negative(value: Any, name: str) -> float:
    """A finite number, 0 or above."""
    number = check.real(value, name)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {check.shown(value)}")
    return number


def probability(eta: Any) -> float:
    """A number between 0 and 1, ends excluded."""
    number = check.positive(eta, "eta")
    if number >= 1:
        raise ValueError(f"eta must be below 1, got {check.shown(eta)}")
    return number


def log_share_of_class(eta: float, k: int) -> float:
    """ln of the probability with which class k = 1, 2, ... of a grid may fail: all together do with at most eta."""
    return math.log(6) + math.log(eta) - 2 * math.log(math.pi * k)


def require_known(classes: np.ndarray, known: np.ndarray, what: str) -> None:
    """Refuse labels that the model or tree was not fitted to."""
    unknown = [label for label in classes if label not in known]
    if unknown:
        raise ValueError(f"y holds {check.shown(unknown[0])}, which the {what} does not know")
