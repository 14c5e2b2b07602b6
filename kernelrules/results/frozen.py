"""Read-only arrays: those of a frozen class cannot be written to, whether it was fitted, loaded, unpickled or copied.

Compiled code relies on what was checked when a result was made or loaded, such as the children of a tree's nodes. A
result holds read-only views. The array that was passed stays writeable, so that code that makes a result must not pass
memory of the caller.
"""

from __future__ import annotations

import copy
import typing
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["Frozen", "read_only"]

_PLAIN = (int, float, bool, str, type(None), type(Ellipsis))
_MAX_NESTING = 10  # of collections; labels may be nested more deeply, but hold no arrays


class Frozen:
    """Base of frozen dataclasses whose arrays are read-only.

    Copies and unpickled objects, whose arrays NumPy makes writeable, do not call the constructor but `__setstate__`.
    """

    def __post_init__(self) -> None:
        for name in _fields_with_arrays(type(self)):
            given = self.__dict__[name]
            held = read_only(given)
            if held is not given:
                object.__setattr__(self, name, held)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        Frozen.__post_init__(self)


def read_only(value: Any, depth: int = _MAX_NESTING) -> Any:
    """Return the value with read-only views in place of its arrays, also in collections, sparse and masked arrays.

    The same object is returned if nothing in it is writeable.
    """
    if type(value) is np.ndarray:  # the most frequent case first, because every result of every call comes here
        return _view(value)
    if isinstance(value, np.ma.MaskedArray):
        return _masked(value)
    if isinstance(value, np.ndarray):
        return _view(value)
    if depth == 0:
        return value
    if type(value) in (tuple, list):
        entries = [read_only(entry, depth - 1) for entry in value]
        same = all(new is old for new, old in zip(entries, value, strict=True))
        return value if same else type(value)(entries)
    if type(value) is dict:
        pairs = {key: read_only(entry, depth - 1) for key, entry in value.items()}
        return value if all(pairs[key] is value[key] for key in pairs) else pairs
    return _sparse(value) if sparse.issparse(value) else value


def _view(array: np.ndarray) -> np.ndarray:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def _masked(array: np.ma.MaskedArray) -> np.ma.MaskedArray:
    """Return the array with an explicit mask, because NumPy would create a writeable one."""
    mask = np.ma.getmaskarray(array)
    if not array.flags.writeable and not mask.flags.writeable:
        return array
    made = np.ma.MaskedArray(_view(np.asarray(array.data)), mask=_view(mask), fill_value=array.fill_value)
    made._sharedmask = True
    return made


def _sparse(matrix: Any) -> Any:
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr") if hasattr(matrix, name)}
    if not any(part.flags.writeable for part in parts.values()):
        return matrix
    made = copy.copy(matrix)
    for name, part in parts.items():
        setattr(made, name, _view(part))
    return made


@cache
def _fields_with_arrays(cls: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass whose annotations allow an array."""
    hints = typing.get_type_hints(cls)
    return tuple(field.name for field in fields(cls) if _may_hold_arrays(hints[field.name]))


def _may_hold_arrays(hint: Any) -> bool:
    inner = typing.get_args(hint)
    if inner:
        return any(map(_may_hold_arrays, inner))
    return not isinstance(hint, type) or not issubclass(hint, (*_PLAIN, Frozen))
