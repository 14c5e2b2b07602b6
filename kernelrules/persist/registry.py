"""The classes that can be saved, by name: results, kernels and feature maps.

A new class of results is included by being in `kernelrules.results.__all__`. Its fields are checked against their
annotations (hints.py). What the compiled core relies on beyond that is checked in verify.py.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from inspect import isabstract
from typing import Any

from kernelrules import kernels, results

__all__ = ["TYPES", "Path", "field_names", "is_saved", "place", "required_fields"]

Path = tuple[str | int, ...]  # names of fields and indices of entries that lead from a result to a value in it


def _concrete(module: Any) -> list[type]:
    """Return the public classes of a module, except abstract ones and warnings."""
    named = [getattr(module, name) for name in module.__all__]
    classes = [cls for cls in named if isinstance(cls, type) and not issubclass(cls, Warning)]
    return [cls for cls in classes if not isabstract(cls) and cls is not kernels.Kernel]


TYPES: dict[str, type] = {cls.__name__: cls for cls in (*_concrete(results), *_concrete(kernels))}


def place(path: Path) -> str:
    """Return a path as text, such as model.rules.3.shares."""
    return ".".join(map(str, path))


def is_saved(cls: type) -> bool:
    """Return whether instances of exactly this class, not of a subclass, can be saved."""
    return TYPES.get(cls.__name__) is cls


@cache
def field_names(cls: Any) -> tuple[str, ...]:
    """Return the field names of a dataclass or named tuple."""
    return tuple(field.name for field in fields(cls)) if is_dataclass(cls) else tuple(cls._fields)


@cache
def required_fields(cls: Any) -> frozenset[str]:
    """Return the names of the fields that have no default."""
    if not is_dataclass(cls):
        return frozenset(cls._fields) - frozenset(cls._field_defaults)
    return frozenset(f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING)
