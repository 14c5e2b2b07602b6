"""Arrays as bytes: which types there are, the head of an .npy file, and bytes that are none of a type's values.

An array is described by its type, shape and order; its .npy head follows from these and is compared, never parsed.
Types are those whose bytes mean the same everywhere: numbers (little-endian), booleans, strings, dates and durations.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from kernelrules.persist.container import PersistError

__all__ = ["Described", "bytes_of", "described", "from_bytes", "read_description", "read_only"]

_UNIT = r"\[([1-9]\d{0,8})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]"
_TYPES = re.compile(rf"<f[248]|[|]b1|[|][iu]1|<[iu][248]|<U[1-9]\d{{0,8}}|[|]S[1-9]\d{{0,8}}|<[mM]8{_UNIT}")
_HEAD = 10  # bytes before the text of a head: its mark, version and length
_LAST_CHARACTER = 0x10FFFF
_MOST_DIMENSIONS = 32
_MOST_BYTES = (1 << 63) - 1


class Described(NamedTuple):
    """An array but for its bytes."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: str  # "C", or "F" where the bytes are those of the transpose

    @property
    def n_bytes(self) -> int:
        """Of its numbers."""
        return math.prod(self.shape) * self.dtype.itemsize

    def npy_head(self) -> bytes:
        """What an .npy file begins with: 64 bytes or a multiple."""
        said = f"{{'descr': {self.dtype.str!r}, 'fortran_order': {self.order == 'F'}, 'shape': {self.shape}, }}"
        text = said + " " * (-(_HEAD + len(said) + 1) % 64) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("ascii")


def described(array: np.ndarray, name: str) -> tuple[Described, np.ndarray]:
    """The description of an array, and the array in that type and order."""
    dtype = array.dtype.newbyteorder("<")
    if dtype.itemsize == 0 and dtype.kind in "US":
        dtype = np.dtype(f"<{dtype.kind}1").newbyteorder("<")
    if not _TYPES.fullmatch(dtype.str):
        raise PersistError(f"{name} is an array of dtype {array.dtype}, which cannot be saved")
    if array.ndim > _MOST_DIMENSIONS:
        raise PersistError(f"{name} has {array.ndim} dimensions; arrays of up to {_MOST_DIMENSIONS} can be saved")
    transposed = array.flags.f_contiguous and not array.flags.c_contiguous
    plain = np.asarray(array, dtype=dtype, order="F" if transposed else "C")
    return Described(dtype, plain.shape, "F" if transposed else "C"), plain


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The bytes of an array as `described` returns it, flat."""
    flat = (array if array.flags.c_contiguous else array.T).reshape(-1)
    return flat.view(np.uint8) if flat.size else np.empty(0, dtype=np.uint8)


def read_description(dtype: Any, shape: Any, order: Any, name: str) -> Described:
    """The description that a header gives, if `described` could have given it."""
    known = isinstance(dtype, str) and _TYPES.fullmatch(dtype) is not None
    lengths = isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in shape)
    if not known or not lengths or len(shape) > _MOST_DIMENSIONS or order not in ("C", "F"):
        raise PersistError(f"{name} is not described as arrays are: {dtype!r:.60}, {shape!r:.60}, {order!r:.60}")
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise PersistError(f"{name} has a type that numpy does not know: {error}") from None
    if math.prod(max(n, 1) for n in shape) * found.itemsize > _MOST_BYTES:  # numpy refuses it where a side is 0, too
        raise PersistError(f"{name} has a shape that no array has: {tuple(shape)!r:.80}")
    longer = sum(n > 1 for n in shape)
    if found.newbyteorder("<").str != dtype or (order == "F" and (longer < 2 or 0 in shape)):
        raise PersistError(f"{name} is not described as save describes arrays")
    return Described(found, tuple(shape), order)


def from_bytes(how: Described, flat: np.ndarray, name: str) -> np.ndarray:
    """The array of flat bytes: a view, read-only, in the machine's own byte order."""
    if how.n_bytes != len(flat):
        raise PersistError(f"{name} has {len(flat)} bytes, and {how.shape} of {how.dtype} would have {how.n_bytes}")
    _refuse_no_values(how.dtype, flat, name)
    array = flat.view(how.dtype) if len(flat) else read_only(np.empty(0, dtype=how.dtype))
    array = array.reshape(how.shape) if how.order == "C" else array.reshape(how.shape[::-1]).T
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return read_only(array)


def read_only(array: np.ndarray) -> np.ndarray:
    """A view of an array into which nothing can be written any more: nor can the view be told otherwise."""
    array.flags.writeable = False
    return array.view()


def _refuse_no_values(dtype: np.dtype, flat: np.ndarray, name: str) -> None:
    """Refuse bytes that no boolean and no character has: code that is given them may do anything."""
    if dtype.kind == "b" and flat.max(initial=0) > 1:
        raise PersistError(f"{name} holds bytes that are neither true nor false")
    if dtype.kind == "U" and flat.view("<u4").max(initial=0) > _LAST_CHARACTER:
        raise PersistError(f"{name} holds numbers that are no characters")
