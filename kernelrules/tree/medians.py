"""Weighted medians of many stretches of one sequence at once.

The values are replaced by their ranks, and the ranks are looked at bit by bit from the highest: in every round the
sequence is divided, stably, into those with bit 0 and those with bit 1 (a wavelet matrix), and every query follows the
half that its median lies in. That takes O((n + queries) log n) in a few dozen calls of NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Medians", "range_medians"]


_ROUNDING = 64 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Medians:
    """Medians of stretches.

    Attributes
    ----------
    lower : ndarray
        The smallest value up to which lies at least half of the weight.
    loss : ndarray
        Sum of w·|y - median|.
    """

    lower: np.ndarray
    loss: np.ndarray


def range_medians(
    values: np.ndarray, weights: np.ndarray, start: np.ndarray, stop: np.ndarray, *, more_than_half: bool = False
) -> Medians:
    """Weighted medians of the stretches start[k] to stop[k] - 1.

    Parameters
    ----------
    values, weights : ndarray (n,)
        The sequence.
    start, stop : ndarray of int
        The stretches. An empty one has some value as its median, and no loss.
    more_than_half : bool
        Ask for the smallest value up to which lies more than half of the weight: the upper median.

    Returns
    -------
    Medians
        One entry a stretch.

    Examples
    --------
    >>> import numpy as np
    >>> y, w = np.array([3.0, 1.0, 2.0, 9.0]), np.ones(4)
    >>> range_medians(y, w, np.array([0, 0]), np.array([3, 4])).lower
    array([2., 2.])
    """
    levels, code = np.unique(values, return_inverse=True)
    w, wy = weights, weights * values
    weight, total = _stretch_sums(w, start, stop), _stretch_sums(wy, start, stop)
    slack = _ROUNDING * float(w.sum())
    half = weight / 2 + (slack if more_than_half else -slack)  # half but for rounding is half
    low, high = start.copy(), stop.copy()
    rank = np.zeros(len(start), dtype=np.int64)
    weight_below, sum_below = np.zeros(len(start)), np.zeros(len(start))
    for bit in reversed(range(max(len(levels) - 1, 0).bit_length())):
        zero = (code >> bit) & 1 == 0
        zeros_before = _prefix(zero, np.int64)
        low_zeros, high_zeros = zeros_before[low], zeros_before[high]
        in_zeros = _stretch_sums(w * zero, low, high)
        reached = weight_below + in_zeros
        to_zeros = reached >= half
        # Sums are rounded: a half without any value of the stretch is never entered.
        n_zeros = high_zeros - low_zeros
        to_zeros = (to_zeros & (n_zeros > 0)) | (n_zeros == high - low)
        weight_below += np.where(to_zeros, 0.0, in_zeros)
        sum_below += np.where(to_zeros, 0.0, _stretch_sums(wy * zero, low, high))
        rank |= np.where(to_zeros, 0, 1 << bit)
        n_all_zeros = zeros_before[-1]
        low = np.where(to_zeros, low_zeros, n_all_zeros + low - low_zeros)
        high = np.where(to_zeros, high_zeros, n_all_zeros + high - high_zeros)
        divided = np.concatenate([np.flatnonzero(zero), np.flatnonzero(~zero)])
        code, w, wy = code[divided], w[divided], wy[divided]
    median = levels[np.minimum(rank, len(levels) - 1)]
    loss = (total - 2 * sum_below) - median * (weight - 2 * weight_below)
    return Medians(median, np.maximum(loss, 0.0))


def _prefix(values: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """Sums of the first 0, 1, ..., n values."""
    sums = np.zeros(len(values) + 1, dtype=dtype)
    np.cumsum(values, out=sums[1:])
    return sums


def _stretch_sums(values: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    sums = _prefix(values)
    return sums[stop] - sums[start]
