"""What can be saved: every result, every kernel and every feature map, by the name of its class.

A new type of result is found here by being in `kernelrules.results.__all__`; what its fields may hold is read off
their annotations (hints.py). What the compiled core, or anything else, relies on beyond that goes into verify.py.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from inspect import isabstract
from typing import Any

from kernelrules import kernels, results

__all__ = ["TYPES", "Path", "field_names", "is_saved", "place", "required_fields"]

Path = tuple[str | int, ...]  # fields, and numbers of entries, that lead from a result to a value in it


def _concrete(module: Any) -> list[type]:
    """The classes of values among the public names of a module."""
    named = [getattr(module, name) for name in module.__all__]
    return [cls for cls in named if isinstance(cls, type) and not isabstract(cls) and cls is not kernels.Kernel]


TYPES: dict[str, type] = {cls.__name__: cls for cls in (*_concrete(results), *_concrete(kernels))}


def place(path: Path) -> str:
    """What a place is called: model.rules.3.shares."""
    return ".".join(map(str, path))


def is_saved(cls: type) -> bool:
    """Whether values of a class can be saved: of the very class, not of one derived from it."""
    return TYPES.get(cls.__name__) is cls


@cache
def field_names(cls: Any) -> tuple[str, ...]:
    """Of a dataclass, or a named tuple."""
    return tuple(field.name for field in fields(cls)) if is_dataclass(cls) else tuple(cls._fields)


@cache
def required_fields(cls: Any) -> frozenset[str]:
    """Those that have no default."""
    if not is_dataclass(cls):
        return frozenset(cls._fields) - frozenset(cls._field_defaults)
    return frozenset(f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING)
