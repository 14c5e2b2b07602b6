"""One value a row: labels as classes and their numbers, targets, weights; and factors of the classes' weights."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from kernelrules.check.matrices import in_order
from kernelrules.check.scalars import DtypeError, WeightWarning, level_of_caller, positive, shown

__all__ = [
    "class_factors",
    "class_weights",
    "counted_weights",
    "known_codes",
    "labels",
    "require_classes",
    "targets",
    "weights",
]

_CLOSE_LABELS = 1 << 12  # numbers between the lowest and the highest that are counted one by one
_SHARE_OF_ROWS = 0.1  # of the number of rows: weights that sum to less hardly count rows


def _column(values: Any, name: str, n: int, data: str) -> np.ndarray:
    """One-dimensional, with n entries, one for each row of what is called `data`."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has masked entries, first at position {int(np.flatnonzero(np.ma.getmaskarray(values))[0])}"
        )
    array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if len(array) != n:
        raise ValueError(f"{name} has {len(array)} entries but {data} has {n} rows")
    return array


def labels(y: Any, n: int, name: str = "y", data: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """The classes in ascending order, and for each row the number of its class.

    Parameters
    ----------
    y : array (n,)
        Labels of any kind that can be ordered: strings, whole numbers, booleans.
    n : int
        How many there have to be.
    name, data : str
        What to call them, and the data that they belong to, in an error.

    Returns
    -------
    classes, codes : ndarray
        classes[codes] is y.

    Examples
    --------
    >>> labels(["no", "yes", "no"], 3)
    (array(['no', 'yes'], dtype='<U3'), array([0, 1, 0]))
    """
    array = _column(y, name, n, data)
    if array.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise ValueError(f"{name} holds {array[bad[0]]} at position {bad[0]}")
    elif array.dtype.kind == "O":
        missing = [i for i, label in enumerate(array) if label is None or label != label]
        if missing:
            raise ValueError(f"{name} holds {array[missing[0]]} at position {missing[0]}")
    elif array.dtype.kind not in "iubUSmM":
        raise DtypeError(f"{name} must hold labels, got dtype {array.dtype}")
    if array.dtype.kind in "iub" and len(array):
        lowest, highest = int(array.min()), int(array.max())
        if highest - lowest < _CLOSE_LABELS and highest < 1 << 62:
            return _close_labels(array, lowest, highest)
    try:
        return np.unique(array, return_inverse=True)
    except TypeError as error:
        raise DtypeError(f"{name} holds labels that cannot be ordered: {error}") from None


def _close_labels(array: np.ndarray, lowest: int, highest: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels that are close whole numbers, by counting: sorting a million of them takes longer than a tree."""
    offsets = np.subtract(array, lowest, dtype=np.int64, casting="unsafe")
    present = np.bincount(offsets, minlength=highest - lowest + 1) > 0
    number = np.cumsum(present) - 1
    classes = (np.flatnonzero(present) + lowest).astype(array.dtype)
    return classes, number[offsets]


def known_codes(y: Any, n: int, classes: np.ndarray, what: str = "model") -> np.ndarray:
    """For each row the place of its label among the classes of a model; other labels are refused.

    Examples
    --------
    >>> known_codes(["b", "a", "b"], 3, np.array(["a", "b", "c"]))
    array([1, 0, 1])
    """
    found, codes = labels(y, n)
    unknown = [label for label in found if label not in classes]
    if unknown:
        raise ValueError(f"y holds {shown(unknown[0])}, which the {what} does not know")
    return np.searchsorted(classes, found)[codes]


def require_classes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Refuse fewer than two classes, and one without a row of positive weight; `counts` are those of such rows."""
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {shown(classes[0])}; at least two are needed")
    if (counts == 0).any():
        raise ValueError(f"all rows of class {shown(classes[np.argmin(counts)])} have sample_weight 0")


def targets(y: Any, n: int, name: str = "y", data: str = "X") -> np.ndarray:
    """Finite numbers, one a row, in float64."""
    array = _column(y, name, n, data)
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    numbers = in_order(array, np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise ValueError(f"{name} holds {numbers[bad[0]]} at position {bad[0]}")
    return numbers


def weights(sample_weight: Any, n: int, data: str = "X") -> np.ndarray:
    """Weights at least 0 and not all 0; None means 1 for every row."""
    if sample_weight is None:
        return np.ones(n)
    array = targets(sample_weight, n, "sample_weight", data)
    bad = np.flatnonzero(array < 0)
    if len(bad):
        raise ValueError(f"sample_weight must not be negative, got {array[bad[0]]} at position {bad[0]}")
    if n and not array.any():
        raise ValueError("sample_weight is zero for every row")
    with np.errstate(over="ignore"):
        if not math.isfinite(array.sum()):
            raise ValueError("sample_weight is too large: its sum overflows float64")
    return array


def counted_weights(total: float, n_rows: float) -> None:
    """Warn where weights that count as numbers of rows sum to far less than the rows are: shares, most likely."""
    if total < _SHARE_OF_ROWS * n_rows:
        warnings.warn(
            f"weights count as numbers of rows here, and those of {n_rows:.10g} rows sum to {total:.3g} only: multiply "
            "them, so that they sum to the number of rows",
            WeightWarning,
            stacklevel=level_of_caller(),
        )


def class_factors(class_weight: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Factors of the classes' weights.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Factors by class, 1 for those that are not named; "balanced" is n / (n_classes · count).
    classes : ndarray (n_classes,)
        In ascending order.
    counts : ndarray (n_classes,)
        Their rows.

    Returns
    -------
    ndarray (n_classes,)
        All greater than 0.

    Examples
    --------
    >>> class_factors({"b": 3.0}, np.array(["a", "b"]), np.array([5, 5]))
    array([1., 3.])
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f'class_weight must be "balanced", a dict or None, got {class_weight!r}')
        return counts.sum() / (len(classes) * counts)
    try:
        items = dict(class_weight).items()
    except (TypeError, ValueError):
        raise TypeError(f'class_weight must be "balanced", a dict or None, got {class_weight!r}') from None
    factors = np.ones(len(classes))
    for label, factor in items:
        place = np.flatnonzero(classes == label)
        if len(place) != 1:
            raise ValueError(f"class_weight names {label!r}, which y does not hold")
        factors[place[0]] = positive(factor, f"class_weight[{label!r}]")
    return factors


def class_weights(class_weight: Any, sample_weight: Any, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Weights of the rows times the factors of their classes; "balanced" counts rows of positive weight."""
    own = weights(sample_weight, len(codes))
    counts = np.bincount(codes, own > 0, minlength=len(classes))
    return own * class_factors(class_weight, classes, np.maximum(counts, 1))[codes]
