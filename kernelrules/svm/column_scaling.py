"""Columns scaled to sizes near 1 by powers of two.

Such a factor changes exponents and no digits: a column multiplied and divided by it is the same column, unless a number
overflows or becomes subnormal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelrules import check

__all__ = ["column_exponents", "scaled"]

_MAX_EXPONENT = 1000  # 2**-e is then a normal number


def column_exponents(x: Any) -> np.ndarray:
    """Return e with the root mean square about the mean in [2ᵉ⁻¹, 2ᵉ), for every column; 0 for constant columns.

    Parameters
    ----------
    x : ndarray or Csr
        Finite numbers.

    Returns
    -------
    ndarray of int
        One per column.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules.svm.column_scaling import column_exponents, scaled
    >>> x = np.array([[0.0, 1e7], [0.001, 1e7], [0.0, -1e7]])
    >>> column_exponents(x).tolist()
    [-11, 24]
    >>> scaled(x, -column_exponents(x)).round(2).tolist()
    [[0.0, 0.6], [2.05, 0.6], [0.0, -0.6]]
    """
    n, n_features = x.shape
    if n == 0:
        return np.zeros(n_features, dtype=int)
    if isinstance(x, check.Csr):
        counts = np.bincount(x.indices, minlength=n_features)
        largest = np.zeros(n_features)
        np.maximum.at(largest, x.indices, np.abs(x.data).astype(np.float64))
        unit = np.frexp(largest)[1]
        entries = np.ldexp(x.data.astype(np.float64), -unit[x.indices])
        mean = np.bincount(x.indices, weights=entries, minlength=n_features) / n
        of_entries = np.bincount(x.indices, weights=np.square(entries - mean[x.indices]), minlength=n_features)
        square = (of_entries + (n - counts) * np.square(mean)) / n
        constant = ((counts == n) | (largest == 0)) & (square <= np.square(n * np.finfo(float).eps))
    else:
        unit = np.frexp(np.maximum(np.abs(x).max(axis=0), 0.0).astype(np.float64))[1]
        part = np.ldexp(x.astype(np.float64), -unit)
        constant = (part == part[0]).all(axis=0)
        square = np.square(part - part.mean(axis=0)).mean(axis=0)
    root = np.sqrt(np.where(constant, 0.0, square))
    exponents = np.where(root > 0, np.frexp(root)[1] + unit, 0)
    return np.clip(exponents, -_MAX_EXPONENT, _MAX_EXPONENT)


def scaled(x: Any, exponents: np.ndarray) -> Any:
    """Return the columns of x times 2 to these exponents, in float64."""
    if isinstance(x, check.Csr):
        data = np.ldexp(x.data.astype(np.float64), exponents[x.indices])
        return check.Csr(data, x.indices, x.indptr, x.n_features)
    return np.ldexp(x.astype(np.float64), exponents)
