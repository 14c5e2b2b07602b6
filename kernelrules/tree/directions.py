"""Directions for oblique splits: linear discriminants, and least squares for regression."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

__all__ = ["discriminant"]

_RIDGE = 1e-3  # in units of the variance of a column, so that no matrix is ever singular
_CONSTANT = 1e-12  # spread below this share of a column's largest value is rounding


def discriminant(
    values: np.ndarray, weights: np.ndarray, classes: np.ndarray | None, targets: np.ndarray | None
) -> np.ndarray | None:
    """The direction that tells classes apart, or along which the targets change.

    The columns are standardised and a ridge is added to their (within-class) covariance. Two classes: Fisher's
    discriminant; more: the leading one. One target: its least-squares coefficients; more: the leading left singular
    vector of these.

    Parameters
    ----------
    values : ndarray (m, k)
        Numbers, none missing.
    weights : ndarray (m,)
        All above 0.
    classes : ndarray (m,) of int, or None
        For classification.
    targets : ndarray (m, d), or None
        For regression.

    Returns
    -------
    ndarray (k,) or None
        In the columns' own units, the largest coefficient of a standardised column 1; 0 for constant columns. None
        if there is no such direction.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    >>> discriminant(X, np.ones(4), np.array([0, 0, 1, 1]), None).round(3)
    array([1.414, 1.414])
    """
    share = weights / weights.sum()
    size = np.abs(values).max(axis=0)
    size[size == 0] = 1.0
    scaled = values / size  # so that squares neither overflow nor vanish
    centre = share @ scaled
    spread = np.sqrt(share @ (scaled - centre) ** 2)
    usable = np.flatnonzero(spread > _CONSTANT)
    if len(usable) < 2:
        return None
    z = (scaled[:, usable] - centre[usable]) / spread[usable]
    found = _between_classes(z, share, classes) if classes is not None else _along_targets(z, share, targets)
    largest = found[np.abs(found).argmax()]
    if not np.isfinite(found).all() or largest == 0:
        return None
    direction = np.zeros(values.shape[1])
    with np.errstate(over="ignore"):
        direction[usable] = found / abs(largest) / spread[usable] / size[usable]
    return direction if np.isfinite(direction).all() else None


def _between_classes(z: np.ndarray, share: np.ndarray, classes: np.ndarray) -> np.ndarray:
    present, place = np.unique(classes, return_inverse=True)
    weight = np.bincount(place, share)
    means = np.zeros((len(present), z.shape[1]))
    np.add.at(means, place, share[:, None] * z)
    means /= weight[:, None]
    within = z - means[place]
    scatter = (within.T * share) @ within + _RIDGE * np.eye(z.shape[1])
    if len(present) == 2:
        return np.linalg.solve(scatter, means[1] - means[0])
    last = z.shape[1] - 1
    leading = eigh((means.T * weight) @ means, scatter, subset_by_index=(last, last))[1][:, 0]
    return _signed(leading)


def _along_targets(z: np.ndarray, share: np.ndarray, targets: np.ndarray) -> np.ndarray:
    covariance = (z.T * share) @ z + _RIDGE * np.eye(z.shape[1])
    slopes = np.linalg.solve(covariance, (z.T * share) @ (targets - share @ targets))
    return slopes[:, 0] if slopes.shape[1] == 1 else _signed(np.linalg.svd(slopes, full_matrices=False)[0][:, 0])


def _signed(axis: np.ndarray) -> np.ndarray:
    """An axis has no sign of its own: the largest coefficient is made positive."""
    return axis * np.sign(axis[np.abs(axis).argmax()])
