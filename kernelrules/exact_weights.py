"""Weights whose sums are exact, and ranks in which numbers that differ by rounding are tied.

Sums of weights such as 0.1 depend on the order of the rows, and so does the larger of two equal candidates. Weights
that are multiples of one power of two have sums without rounding. `tied_ranks` treats numbers as equal that differ by
no more than a given error.
"""

from __future__ import annotations

import numpy as np

__all__ = ["exact", "tied_ranks"]

_SUM_BITS = 52  # of the significand of a float64, less one


def exact(weights: np.ndarray) -> np.ndarray:
    """Round weights to multiples of a power of two such that all sums of them are exact.

    A weight becomes 0 only if it is 0. Integer weights whose sum is below 2^52 do not change.
    """
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not np.isfinite(total):
        raise ValueError("sample_weight is too large: its sum overflows float64")
    unit = np.ldexp(1.0, max(int(np.frexp(total)[1]) - _SUM_BITS, -1074))
    return np.where(weights > 0, np.maximum(np.rint(weights / unit), 1) * unit, 0.0)


def tied_ranks(numbers: np.ndarray, noise: np.ndarray) -> list[int]:
    """Return the ranks of numbers in ascending order, where neighbours that differ by no more than their noise tie."""
    order = np.argsort(numbers, kind="stable")
    ascending, error = numbers[order], noise[order]
    with np.errstate(invalid="ignore"):  # equal infinities
        apart = np.diff(ascending) > error[1:] + error[:-1]
    places = np.zeros(len(numbers), dtype=np.int64)
    places[order[1:]] = np.cumsum(apart)
    return places.tolist()
