"""Checks of fields against their annotations: `np.ndarray | None`, `tuple[Certificate, ...]`, `float`."""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kernelrules.persist.container import PersistError
from kernelrules.persist.registry import Path, place

__all__ = ["require_fields"]

_Test = Callable[[Any], bool]
# Fields of these types may also hold NumPy numbers, and fields of type float integers.
_NUMBERS = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
}


def require_fields(value: Any, path: Path) -> None:
    """Refuse a value whose fields do not have the annotated types; `path` leads to it."""
    for field, text, plain, test in _tests(type(value)):
        held = getattr(value, field)
        if type(held) not in plain and not test(held):
            raise PersistError(f"{place((*path, field))} must be {text}, got {held!r:.60}")


@cache
def _tests(cls: type) -> list[tuple[str, str, frozenset[type], _Test]]:
    """Return for each field its name, the text of its type, types that need no further test, and the test."""
    hints = typing.get_type_hints(cls).items()
    held = {name: hint for name, hint in hints if typing.get_origin(hint) is not typing.ClassVar}
    return [(name, _type_text(hint), _plain(hint), _test(hint)) for name, hint in held.items()]


def _plain(hint: Any) -> frozenset[type]:
    """Return classes all of whose instances have the annotated type."""
    inner = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return frozenset(one for one in inner if isinstance(one, type) and not typing.get_args(one))


def _type_text(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")


def _test(hint: Any) -> _Test:
    """Return a function that tests whether a value has the annotated type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: True
    if origin in (typing.Union, types.UnionType):
        tests = [_test(one) for one in inner]
        return lambda value: any(test(value) for test in tests)
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        each = _test(inner[0])
        return lambda value: type(value) is tuple and all(map(each, value))
    if origin is tuple:
        tests = [_test(one) for one in inner]
        return lambda value: (
            type(value) is tuple and len(value) == len(tests) and all(t(v) for t, v in zip(tests, value, strict=True))
        )
    if origin is dict:
        keys, values = map(_test, inner)
        return lambda value: type(value) is dict and all(keys(k) and values(v) for k, v in value.items())
    if hint in _NUMBERS:
        allowed = _NUMBERS[hint]
        excludes_bool = hint is not bool
        return lambda value: isinstance(value, allowed) and not (excludes_bool and isinstance(value, bool))
    if origin is collections.abc.Callable:
        return callable
    return lambda value: isinstance(value, origin or hint)
