"""Sums of products in twice the precision of float64, for proofs about rows as they were given.

Each product is a pair of floats without loss (Dekker 1971), and sums keep the rounding error of every addition (Ogita,
Rump and Oishi 2005, algorithm Dot2). A result is a pair high + low.

References
----------
- T. J. Dekker (1971). A floating-point technique for extending the available precision. Numerische Mathematik 18,
  224-242.
- T. Ogita, S. M. Rump and S. Oishi (2005). Accurate sum and dot product. SIAM Journal on Scientific Computing 26,
  1955-1988.
"""

from __future__ import annotations

import numpy as np

__all__ = ["error_bound", "products", "two_sum"]

_SPLITTER = 134217729.0  # 2**27 + 1
_UNIT = 2.0**-53
_BLOCK_PRODUCTS = 1 << 18  # computed at a time
_UNDERFLOW_ERROR = 2.0**-1000  # an upper bound of the error of a subnormal product


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two numbers of 26 bits each whose sum is x."""
    c = _SPLITTER * x
    high = c - (c - x)
    return high, x - high


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded sum and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def products(rows: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows · v for every row, as high + low.

    Parameters
    ----------
    rows : ndarray (n, p)
        Numbers below 1e290.
    v : ndarray (p,)
        Likewise.

    Returns
    -------
    tuple of ndarray (n,)
        The rounded result, and its remainder.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules.svm.hard_margin.double_double import products
    >>> high, low = products(np.array([[1e17, 1.0, -1e17]]), np.array([1.0, 1.0, 1.0]))
    >>> (high + low).item()
    1.0
    """
    n, p = rows.shape
    high, low = np.zeros(n), np.zeros(n)
    step = max(1, _BLOCK_PRODUCTS // max(p, 1))
    v_high, v_low = _halves(v)
    for first in range(0, n if p else 0, step):
        part = rows[first : first + step]
        x_high, x_low = _halves(part)
        product = part * v
        rest = x_low * v_low - (((product - x_high * v_high) - x_low * v_high) - x_high * v_low)
        high[first : first + step], low[first : first + step] = _summed(product, rest)
    return high, low


def _summed(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of rows of pairs, by pairwise summation."""
    while high.shape[1] > 1:
        if high.shape[1] % 2:
            zeros = np.zeros((len(high), 1))
            high, low = np.concatenate([high, zeros], axis=1), np.concatenate([low, zeros], axis=1)
        high, lost = two_sum(high[:, ::2], high[:, 1::2])
        low = (low[:, ::2] + low[:, 1::2]) + lost
    return two_sum(high[:, 0], low[:, 0])


def error_bound(rows: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return a bound of the error of high + low in `products`: n² u² Σ|terms| of Dot2, plus that of underflow."""
    p = rows.shape[1]
    return 2.0 * ((p + 3) * _UNIT) ** 2 * (np.abs(rows) @ np.abs(v)) + p * _UNDERFLOW_ERROR
