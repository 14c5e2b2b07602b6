"""Ties that rounding must not decide: `exact` weights, and `ranks` of numbers that are the same but for noise.

Sums of weights such as 0.1 depend on the order of the rows, and so does which of two equals looks larger. Weights that
are multiples of one power of two have sums without rounding; where that is not enough, what differs by noise is equal.
"""

from __future__ import annotations

import numpy as np

__all__ = ["exact", "ranks"]

_PRECISION = 52  # bits of a sum of weights


def exact(weights: np.ndarray) -> np.ndarray:
    """Weights as multiples of a power of two such that sums of any of them are exact; 0 stays 0, and nothing else is.

    Whole weights whose sum is below 2^52 stay what they are.
    """
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not np.isfinite(total):
        raise ValueError("sample_weight is too large: its sum overflows float64")
    unit = np.ldexp(1.0, max(int(np.frexp(total)[1]) - _PRECISION, -1074))
    return np.where(weights > 0, np.maximum(np.rint(weights / unit), 1) * unit, 0.0)


def ranks(numbers: np.ndarray, noise: np.ndarray) -> list[int]:
    """Places of the numbers in ascending order, one for those that differ by noise: an array of how much each has."""
    order = np.argsort(numbers, kind="stable")
    ascending, moved = numbers[order], noise[order]
    with np.errstate(invalid="ignore"):  # equal infinities
        apart = np.diff(ascending) > moved[1:] + moved[:-1]
    places = np.zeros(len(numbers), dtype=np.int64)
    places[order[1:]] = np.cumsum(apart)
    return places.tolist()
