"""Results from a JSON tree and the array members of an archive: the inverse of writing.py.

Only classes of the registry are looked up by name and called. Each node must be one that `Writer` makes, so that a
result that was read is written as the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from kernelrules.persist.arrays import from_bytes, from_npy, read_description, read_only
from kernelrules.persist.container import PersistError
from kernelrules.persist.registry import TYPES, Path, field_names, place, required_fields
from kernelrules.persist.verify import require_sparse, verify
from kernelrules.persist.writing import EACH, SPARSE, is_inline

__all__ = ["Reader"]

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_COLUMNS = {"floats": np.float64, "integers": np.int64, "booleans": np.bool_}


class Reader:
    """Makes values from nodes; takes each array out of `members` once."""

    def __init__(self, members: dict[str, np.ndarray]) -> None:
        self.members = members
        self._makers = {
            frozenset(keys): maker
            for keys, maker in (
                (("type", "fields"), self._object),
                (("table", "fields"), self._table),
                (("array", "shape", "order"), self._member),
                (("array", "shape", "order", "base64"), self._inline),
                (("scalar", "base64"), self._scalar),
                (("scalar", "text"), self._string),
                (("objects", "shape"), self._objects),
                (("masked", "mask"), self._masked),
                (("sparse", "shape", "data", "indices", "indptr"), self._sparse),
                (("float",), self._float),
                (("bytes",), self._bytes),
                (("list",), self._list),
                (("dict",), self._dict),
            )
        }

    def value(self, node: Any, path: Path = ()) -> Any:
        """Return the value of a node; `path` leads to it."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if isinstance(node, list):
            return tuple(self.value(entry, (*path, i)) for i, entry in enumerate(node))
        maker = self._makers.get(frozenset(node))
        if maker is None:
            raise PersistError(f"{place(path)} has the entries {sorted(node)!r:.80}, and nothing is written so")
        return maker(node, path)

    # ---- plain values -----------------------------------------------------------------------------------------------

    def _float(self, node: dict[str, Any], path: Path) -> float:
        if not isinstance(node["float"], str) or node["float"] not in _FLOATS:
            raise PersistError(f"{place(path)} is {node['float']!r:.60}, which is no number")
        return _FLOATS[node["float"]]

    def _bytes(self, node: dict[str, Any], path: Path) -> bytes:
        return _decoded(node["bytes"], path)

    def _list(self, node: dict[str, Any], path: Path) -> list[Any]:
        return list(self.value(_a_list(node["list"], path), path))

    def _dict(self, node: dict[str, Any], path: Path) -> dict[Any, Any]:
        found = {}
        for i, pair in enumerate(_a_list(node["dict"], path)):
            if not isinstance(pair, list) or len(pair) != 2:
                raise PersistError(f"{place(path)} has an entry that is no pair")
            key = self.value(pair[0], (*path, i))
            try:
                new = key not in found
            except TypeError:
                raise PersistError(f"{place(path)} has a key that cannot be one") from None
            if not new:
                raise PersistError(f"{place(path)} has a key twice")
            found[key] = self.value(pair[1], (*path, i, "value"))
        return found

    # ---- objects ----------------------------------------------------------------------------------------------------

    def _object(self, node: dict[str, Any], path: Path) -> Any:
        cls, given = _class(node["type"], node["fields"], path)
        return _made(cls, {field: self.value(entry, (*path, field)) for field, entry in given.items()}, path)

    def _table(self, node: dict[str, Any], path: Path) -> tuple[Any, ...]:
        cls, given = _class(node["table"], node["fields"], path)
        columns = [self._column(entry, (*path, EACH, field)) for field, entry in given.items()]
        if not columns or len(set(map(len, columns))) != 1:
            raise PersistError(f"{place(path)} has columns of different lengths")
        rows = enumerate(zip(*columns, strict=True))
        return tuple(_made(cls, dict(zip(given, row, strict=True)), (*path, i)) for i, row in rows)

    def _column(self, node: Any, path: Path) -> Any:
        """Return the values of one field of many objects; each takes bytes of the file, which bounds memory."""
        if isinstance(node, list):
            return self.value(node, path)
        keys = set(node) if isinstance(node, dict) else set()
        if keys == {"table", "fields"}:
            return self._table(node, path)
        if keys == {"lengths", "entries"}:
            return self._tuples(node, path)
        key = next(iter(keys), None)
        if len(keys) != 1 or key not in (*_COLUMNS, "scalars", "rows"):
            raise PersistError(f"{place(path)} is no column of a table")
        array = self.value(node[key], path)
        if not isinstance(array, np.ndarray) or not _is_column(array, key):
            raise PersistError(f"{place(path)} is no column of {key}")
        return array.tolist() if key in _COLUMNS else list(array)

    def _tuples(self, node: dict[str, Any], path: Path) -> list[tuple[Any, ...]]:
        lengths = self.value(node["lengths"], (*path, "lengths"))
        entries = self._column(node["entries"], (*path, "entries"))
        flat = isinstance(lengths, np.ndarray) and lengths.ndim == 1 and lengths.dtype == np.int64
        within = flat and (not lengths.size or 0 <= lengths.min() <= lengths.max() <= len(entries))
        if not within or sum(lengths.tolist()) != len(entries):
            raise PersistError(f"{place(path)} has {len(entries)} entries, and lengths that do not add up to this")
        ends = np.cumsum(lengths).tolist()
        return [tuple(entries[start:end]) for start, end in zip([0, *ends], ends, strict=False)]

    # ---- arrays -----------------------------------------------------------------------------------------------------

    def _member(self, node: dict[str, Any], path: Path) -> np.ndarray:
        name = place(path)
        how = read_description(node["array"], node["shape"], node["order"], name)
        if is_inline(path, how.n_bytes):
            raise PersistError(f"{name} is not where arrays of its size are")
        flat = self.members.pop(f"{name}.npy", None)
        if flat is None:
            raise PersistError(f"{name} is missing: there is no {name}.npy")
        return from_npy(how, flat, name)

    def _inline(self, node: dict[str, Any], path: Path) -> np.ndarray:
        how = read_description(node["array"], node["shape"], node["order"], place(path))
        if not is_inline(path, how.n_bytes):
            raise PersistError(f"{place(path)} is not where arrays of its size are")
        return from_bytes(how, np.frombuffer(_decoded(node["base64"], path), dtype=np.uint8), place(path))

    def _string(self, node: dict[str, Any], path: Path) -> np.str_:
        if node["scalar"] != "str" or not isinstance(node["text"], str):
            raise PersistError(f"{place(path)} is no string of numpy's")
        return np.str_(node["text"])

    def _scalar(self, node: dict[str, Any], path: Path) -> Any:
        if node["scalar"] == "bytes":
            return np.bytes_(_decoded(node["base64"], path))
        how = read_description(node["scalar"], [], "C", place(path))
        if how.dtype.kind in "US":
            raise PersistError(f"{place(path)} is not written as strings are")
        return from_bytes(how, np.frombuffer(_decoded(node["base64"], path), dtype=np.uint8), place(path))[()]

    def _objects(self, node: dict[str, Any], path: Path) -> np.ndarray:
        entries, shape = self.value(_a_list(node["objects"], path), path), _shape(node["shape"], path, "<i8")
        if math.prod(shape) != len(entries):
            raise PersistError(f"{place(path)} has {len(entries)} entries and the shape {shape}")
        array = np.empty(len(entries), dtype=object)
        for i, entry in enumerate(entries):
            array[i] = entry
        return read_only(array).reshape(shape)

    def _masked(self, node: dict[str, Any], path: Path) -> np.ma.MaskedArray:
        data, mask = self.value(node["masked"], (*path, "data")), self.value(node["mask"], (*path, "mask"))
        if (
            type(data) is not np.ndarray
            or type(mask) is not np.ndarray
            or mask.dtype != bool
            or mask.shape != data.shape
        ):
            raise PersistError(f"{place(path)} is not an array with a mask of its shape")
        return np.ma.MaskedArray(data, mask=mask)

    def _sparse(self, node: dict[str, Any], path: Path) -> Any:
        shape = tuple(length for side in _a_list(node["shape"], path) for length in _shape([side], path))
        if not isinstance(node["sparse"], str) or node["sparse"] not in SPARSE or len(shape) != 2:
            raise PersistError(f"{place(path)} is not a sparse matrix of a known kind")
        parts = {name: self.value(node[name], (*path, name)) for name in ("data", "indices", "indptr")}
        by_row = node["sparse"].startswith("csr")
        require_sparse(**parts, n_major=shape[0 if by_row else 1], n_minor=shape[1 if by_row else 0], name=place(path))
        matrix = SPARSE[node["sparse"]](shape, dtype=parts["data"].dtype)
        # Assigned, because the constructor may convert the dtype of indices.
        matrix.data, matrix.indices, matrix.indptr = parts["data"], parts["indices"], parts["indptr"]
        return matrix


def _is_column(array: np.ndarray, key: str) -> bool:
    """Return whether the writer makes such an array for this kind of column."""
    if key == "rows":
        return array.ndim == 2 and array.shape[1] > 0 and array.dtype.kind in "fiub"
    return array.ndim == 1 and (array.dtype.kind in "fiubU" if key == "scalars" else array.dtype == _COLUMNS[key])


def _class(name: Any, given: Any, path: Path) -> tuple[Any, dict[str, Any]]:
    """Return the class of this name in the registry, and its fields."""
    where = place(path) or "the result"
    if not isinstance(name, str) or name not in TYPES:
        raise PersistError(f"{where} is of a type that this version does not know: {name!r:.60}")
    cls = TYPES[name]
    if not isinstance(given, dict) or not required_fields(cls) <= set(given) <= set(field_names(cls)):
        raise PersistError(f"{where} does not have the fields of {name}")
    return cls, given


def _made(cls: Any, fields: dict[str, Any], path: Path) -> Any:
    """Return an object of the class, after verifying its fields."""
    try:
        made = cls(**fields)
    except (TypeError, ValueError) as error:
        raise PersistError(f"{place(path) or 'the result'} is no {cls.__name__}: {error}") from None
    for field, given in fields.items():
        if type(getattr(made, field)) is not type(given):  # the class has converted it
            raise PersistError(f"{place((*path, field))} is not written as {cls.__name__} has it: {given!r:.60}")
    verify(made, path)
    return made


def _a_list(node: Any, path: Path) -> list[Any]:
    if not isinstance(node, list):
        raise PersistError(f"{place(path)} is no list of entries")
    return node


def _shape(node: Any, path: Path, dtype: str = "|u1") -> tuple[int, ...]:
    return read_description(dtype, node, "C", place(path)).shape


def _decoded(text: Any, path: Path) -> bytes:
    try:
        found = base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        found = None
    if found is None or base64.b64encode(found).decode("ascii") != text:
        raise PersistError(f"{place(path)} is not written in base64")
    return found
