"""Single values: numbers, flags, seeds, names; what errors show of a value, and the two types that users may catch."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = [
    "DtypeError",
    "WeightWarning",
    "class_names",
    "column_names",
    "flag",
    "generator",
    "level_of_caller",
    "names",
    "not_negative",
    "one_of",
    "positive",
    "real",
    "shown",
    "whole",
]


class DtypeError(TypeError, ValueError):
    """Data of a type that cannot be computed with: objects, strings, complex numbers.

    A TypeError by nature; also a ValueError, which is what NumPy and scikit-learn raise for the same data.
    """

    __module__ = "kernelrules.check"  # the name that users see


class WeightWarning(UserWarning):
    """Weights count as numbers of rows here, and their sum says that there is next to nothing to learn from."""

    __module__ = "kernelrules.check"


def level_of_caller() -> int:
    """The `stacklevel` by which a warning names the line outside of this package that led to it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "kernelrules":
        frame, level = frame.f_back, level + 1
    return level


def shown(value: Any) -> str:
    """How an error shows a value: 3 where NumPy would say np.int64(3)."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def real(value: Any, name: str) -> float:
    """A finite real number as a float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.floating, np.integer)):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite and fit float64, got {shown(value)}")
    return number


def flag(value: Any, name: str) -> bool:
    """True or False; nothing else that counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def positive(value: Any, name: str) -> float:
    """A finite number above zero as a float."""
    number = real(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be greater than 0, got {shown(value)}")
    return number


def not_negative(value: Any, name: str) -> float:
    """A finite number, 0 or above, as a float."""
    number = real(value, name)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, got {shown(value)}")
    return number


def whole(value: Any, name: str, least: int) -> int:
    """A whole number, at least `least`, as an int; 3.0 passes for 3."""
    number = real(value, name)
    if number != int(number):
        raise ValueError(f"{name} must be a whole number, got {shown(value)}")
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(value)}")
    return int(number)


def one_of(value: Any, name: str, *allowed: str) -> str:
    """One of several words.

    Examples
    --------
    >>> one_of("depth", "growth", "best", "width")
    Traceback (most recent call last):
        ...
    ValueError: growth must be "best" or "width", got 'depth'
    """
    if not isinstance(value, str) or value not in allowed:
        *others, last = (f'"{word}"' for word in allowed)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")
    return value


def generator(rng: Any) -> np.random.Generator:
    """A Generator from a Generator, a seed or None (fresh entropy)."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"rng must be a numpy.random.Generator, a seed or None: {error}") from None


def names(given: Any, n: int, name: str, of_what: str) -> tuple[str, ...]:
    """So many names, of columns or classes, as a tuple of strings."""
    if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a sequence of strings, got {given!r}")
    listed = tuple(str(entry) for entry in given)
    wrong = [entry for entry in given if not isinstance(entry, str)]
    if wrong:
        raise TypeError(f"{name} must hold strings, got {wrong[0]!r}")
    if len(listed) != n:
        raise ValueError(f"{name} has {len(listed)} entries but there are {n} {of_what}")
    return listed


def column_names(given: Any, own: tuple[str, ...] | None, n: int) -> tuple[str, ...]:
    """Of n columns: the names given, else those that the data had, else x0, x1, ..."""
    if given is not None:
        return names(given, n, "feature_names", "columns")
    return own or tuple(f"x{column}" for column in range(n))


def class_names(
    given: Any, classes: np.ndarray | None, otherwise: str = "this is a regression"
) -> tuple[str, ...] | None:
    """Of the classes: the names given, else the labels as text. Without classes None, and `otherwise` says why none can
    be given."""
    if classes is None:
        if given is not None:
            raise ValueError(f"class_names are for classification, and {otherwise}")
        return None
    if given is not None:
        return names(given, len(classes), "class_names", "classes")
    return tuple(str(label) for label in classes)
