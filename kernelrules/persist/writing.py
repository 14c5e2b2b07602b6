"""Results as a JSON tree, and the arrays that are too large for it.

    null, true, 3, 0.5, "text"      themselves              [...]           a tuple
    {"float": "nan"}                nan, inf, -inf          {"list": [...]}, {"dict": [[key, value], ...]}
    {"bytes": ...}                  in base64               {"type": name, "fields": {name: value, ...}}
    {"array": type, "shape": [...], "order": "C"}           and "base64"; without it, a member named by its path
    {"scalar": type, "base64": ...}                         a NumPy number; {"scalar": "str", "text": ...} a string
    {"objects": [...], "shape": [...]}                      an array of Python objects
    {"masked": array, "mask": array}, {"sparse": "csr_array", "shape": [...], "data", "indices", "indptr": arrays}
    {"table": type, "fields": {name: column, ...}}          a tuple of many objects of one type, field by field

A column is {"floats", "integers", "booleans", "scalars" (of NumPy) or "rows": array}; or {"lengths": array, "entries":
column} for tuples; or a table; or a list of values. So a thousand rules take a few arrays.

Arrays are members named by the fields that lead to them (`model.dual_coef.npy`), except small ones inside tuples.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules.persist.arrays import Described, bytes_of, described
from kernelrules.persist.container import PersistError
from kernelrules.persist.registry import Path, field_names, is_saved, place
from kernelrules.persist.verify import verify

__all__ = ["EACH", "SPARSE", "Writer", "is_inline", "json_text"]

SPARSE = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix, "csc_array": sparse.csc_array}
_INLINE_MAX_BYTES = 4096
_TABLE_MIN_ROWS = 16  # objects of one class: shorter tuples are written entry by entry
EACH = "each"  # the path of a column's array has it in place of the index of an entry
_COLUMNS = {float: ("floats", np.float64), int: ("integers", np.int64), bool: ("booleans", np.bool_)}


def json_text(tree: Any) -> bytes:
    """Return the JSON text of a tree, which is unique."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def is_inline(path: Path, n_bytes: int) -> bool:
    """Return whether an array is written into the tree."""
    return n_bytes <= _INLINE_MAX_BYTES and any(isinstance(step, int) or step == EACH for step in path)


def _is_table(objects: Sequence[Any]) -> bool:
    """Return whether all objects are of one class that can be saved and has fields."""
    cls = type(objects[0])
    return is_saved(cls) and all(type(entry) is cls for entry in objects) and len(field_names(cls)) > 0


def _are_rows(arrays: Sequence[np.ndarray]) -> bool:
    """Return whether the arrays can be the rows of one matrix."""
    first = arrays[0]
    flat = first.ndim == 1 and len(first) > 0 and first.dtype.kind in "fiub" and first.dtype.isnative
    return flat and all(array.shape == first.shape and array.dtype == first.dtype for array in arrays)


class Writer:
    """Makes trees; collects in `members`, by name, the arrays that are not inline."""

    def __init__(self) -> None:
        self.members: dict[str, tuple[bytes, np.ndarray]] = {}

    def tree(self, value: Any, path: Path = ()) -> Any:
        """Return the tree of a value; `path` leads to it."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if is_saved(type(value)):
            named = {name: self.tree(getattr(value, name), (*path, name)) for name in field_names(type(value))}
            verify(value, path)
            return {"type": type(value).__name__, "fields": named}
        if isinstance(value, (np.ndarray, np.generic)) or sparse.issparse(value):
            return self._arrays(value, path)
        return self._plain(value, path)

    def _plain(self, value: Any, path: Path) -> Any:
        if type(value) is tuple and len(value) >= _TABLE_MIN_ROWS and _is_table(value):
            return self._table(value, path)
        if type(value) is tuple or type(value) is list:
            entries = [self.tree(entry, (*path, i)) for i, entry in enumerate(value)]
            return entries if type(value) is tuple else {"list": entries}
        if type(value) is dict:
            pairs = enumerate(value.items())
            return {"dict": [[self.tree(k, (*path, i)), self.tree(v, (*path, i, "value"))] for i, (k, v) in pairs]}
        if type(value) is bytes:
            return {"bytes": base64.b64encode(value).decode("ascii")}
        name = place(path) or "the result"
        if callable(value):
            called = getattr(value, "__qualname__", type(value).__qualname__)
            raise PersistError(f"{name} is a function of your own, {called}, which cannot be saved: no file holds code")
        raise PersistError(f"{name} is of type {type(value).__qualname__}, which cannot be saved")

    def _table(self, objects: Sequence[Any], path: Path) -> Any:
        cls = type(objects[0])
        for i, entry in enumerate(objects):
            verify(entry, (*path, i))
        columns = {
            name: self._column([getattr(entry, name) for entry in objects], (*path, EACH, name))
            for name in field_names(cls)
        }
        return {"table": cls.__name__, "fields": columns}

    def _column(self, values: list[Any], path: Path) -> Any:
        """Return the column of the values of one field of many objects."""
        kinds = set(map(type, values))
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind in _COLUMNS and (kind is not int or -(1 << 63) <= min(values) <= max(values) < 1 << 63):
            name, dtype = _COLUMNS[kind]
            return {name: self.tree(np.array(values, dtype=dtype), path)}
        if kind is tuple:
            lengths = np.array([len(value) for value in values], dtype=np.int64)
            entries = self._column([entry for value in values for entry in value], (*path, "entries"))
            return {"lengths": self.tree(lengths, (*path, "lengths")), "entries": entries}
        if kind is not None and issubclass(kind, (np.floating, np.integer, np.bool_, np.str_)):
            return {"scalars": self.tree(np.array(values), path)}
        if kind is not None and _is_table(values):
            return self._table(values, path)
        if kind is np.ndarray and _are_rows(values):
            return {"rows": self.tree(np.array(values), path)}
        return [self.tree(value, (*path, i)) for i, value in enumerate(values)]

    def _arrays(self, value: Any, path: Path) -> Any:
        if sparse.issparse(value):
            return self._sparse(value, path)
        if isinstance(value, np.ma.MaskedArray):
            mask = np.ma.getmaskarray(value)
            return {"masked": self.tree(value.data, (*path, "data")), "mask": self.tree(mask, (*path, "mask"))}
        if isinstance(value, np.str_):
            return {"scalar": "str", "text": str(value)}
        if isinstance(value, np.bytes_):
            return {"scalar": "bytes", "base64": base64.b64encode(value).decode("ascii")}
        array = np.asarray(value)
        if array.dtype.kind == "O":
            entries = [self.tree(entry, (*path, i)) for i, entry in enumerate(array.ravel().tolist())]
            return {"objects": entries, "shape": list(array.shape)}
        how, plain = described(array, place(path))
        flat = bytes_of(plain)
        if isinstance(value, np.generic):
            return {"scalar": how.dtype.str, "base64": base64.b64encode(flat).decode("ascii")}
        node: dict[str, Any] = {"array": how.dtype.str, "shape": list(how.shape), "order": how.order}
        if is_inline(path, how.n_bytes):
            return node | {"base64": base64.b64encode(flat).decode("ascii")}
        self._keep(path, how, flat)
        return node

    def _sparse(self, value: Any, path: Path) -> Any:
        kind = type(value).__name__
        if SPARSE.get(kind) is not type(value) or value.ndim != 2:
            raise PersistError(f"{place(path)} is a {kind}, which cannot be saved: make it a csr_array")
        parts = {name: self.tree(getattr(value, name), (*path, name)) for name in ("data", "indices", "indptr")}
        return {"sparse": kind, "shape": [int(n) for n in value.shape], **parts}

    def _keep(self, path: Path, how: Described, flat: np.ndarray) -> None:
        self.members[f"{place(path)}.npy"] = (how.npy_header(), flat)
