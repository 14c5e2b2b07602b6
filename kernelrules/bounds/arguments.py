"""Checks that bounds share, and the price of a choice among classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelrules import check

__all__ = ["flag", "not_negative", "probability", "share_of_class"]


def not_negative(value: Any, name: str) -> float:
    """A finite number, 0 or above."""
    number = check.real(value, name)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {value!r}")
    return number


def probability(eta: Any) -> float:
    """A number between 0 and 1, ends excluded."""
    number = check.positive(eta, "eta")
    if number >= 1:
        raise ValueError(f"eta must be below 1, got {eta!r}")
    return number


def flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def share_of_class(eta: float, k: int) -> float:
    """With what probability class k = 1, 2, ... of a grid may fail, so that all together do with at most eta."""
    return 6 * eta / (math.pi * k) ** 2
