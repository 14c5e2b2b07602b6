"""Checks that bounds share, and the union bound over a grid of classes."""

from __future__ import annotations

import math
from typing import Any

from kernelrules import check

__all__ = ["log_share_of_class", "probability"]


def probability(eta: Any) -> float:
    """Return eta as a number between 0 and 1, ends excluded."""
    number = check.positive(eta, "eta")
    if number >= 1:
        raise ValueError(f"eta must be below 1, got {check.shown(eta)}")
    return number


def log_share_of_class(eta: float, k: int) -> float:
    """Return ln of the probability with which class k = 1, 2, ... of a grid may fail; these sum to eta."""
    return math.log(6) + math.log(eta) - 2 * math.log(math.pi * k)
