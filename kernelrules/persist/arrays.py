"""Arrays as bytes: the dtypes that can be saved, .npy files, and refusal of bytes that are not values of a dtype.

An array is described by its dtype, shape and order. The dtypes are those whose bytes have the same meaning on every
machine: little-endian numbers, booleans, strings, dates and durations. .npy headers come from `numpy.lib.format`.
"""

from __future__ import annotations

import io
import math
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from kernelrules.persist.container import PersistError

__all__ = ["Described", "bytes_of", "described", "from_bytes", "from_npy", "read_description", "read_only"]

_UNIT = r"\[([1-9]\d{0,8})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]"
_TYPES = re.compile(rf"<f[248]|[|]b1|[|][iu]1|<[iu][248]|<U[1-9]\d{{0,8}}|[|]S[1-9]\d{{0,8}}|<[mM]8{_UNIT}")
_NPY_PREFIX = 10  # bytes before the text of an .npy header: magic string, version, length of the text
_LAST_CHARACTER = 0x10FFFF
_MAX_DIMENSIONS = 32
_MAX_BYTES = (1 << 63) - 1


class Described(NamedTuple):
    """The dtype, shape and order of an array."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: str  # "C", or "F" if the bytes are those of the transpose

    @property
    def n_bytes(self) -> int:
        """Number of bytes of the data."""
        return math.prod(self.shape) * self.dtype.itemsize

    def npy_header(self) -> bytes:
        """Return the header of an .npy file of version 1.0."""
        file = io.BytesIO()
        header = {"descr": self.dtype.str, "fortran_order": self.order == "F", "shape": self.shape}
        npy_format.write_array_header_1_0(file, header)
        return file.getvalue()


def described(array: np.ndarray, name: str) -> tuple[Described, np.ndarray]:
    """Return the description of an array, and the array in that dtype and order."""
    dtype = array.dtype.newbyteorder("<")
    if dtype.itemsize == 0 and dtype.kind in "US":
        dtype = np.dtype(f"<{dtype.kind}1").newbyteorder("<")
    if not _TYPES.fullmatch(dtype.str):
        raise PersistError(f"{name} is an array of dtype {array.dtype}, which cannot be saved")
    if array.ndim > _MAX_DIMENSIONS:
        raise PersistError(f"{name} has {array.ndim} dimensions; arrays of up to {_MAX_DIMENSIONS} can be saved")
    transposed = array.flags.f_contiguous and not array.flags.c_contiguous
    plain = np.asarray(array, dtype=dtype, order="F" if transposed else "C")
    return Described(dtype, plain.shape, "F" if transposed else "C"), plain


def bytes_of(array: np.ndarray) -> np.ndarray:
    """Return the bytes of an array from `described` as a flat view."""
    flat = (array if array.flags.c_contiguous else array.T).reshape(-1)
    return flat.view(np.uint8) if flat.size else np.empty(0, dtype=np.uint8)


def read_description(dtype: Any, shape: Any, order: Any, name: str) -> Described:
    """Return the description in a header, which must be one that `described` can return."""
    known = isinstance(dtype, str) and _TYPES.fullmatch(dtype) is not None
    lengths = isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in shape)
    if not known or not lengths or len(shape) > _MAX_DIMENSIONS or order not in ("C", "F"):
        raise PersistError(f"{name} is not described as arrays are: {dtype!r:.60}, {shape!r:.60}, {order!r:.60}")
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise PersistError(f"{name} has a type that numpy does not know: {error}") from None
    if math.prod(max(n, 1) for n in shape) * found.itemsize > _MAX_BYTES:  # numpy refuses it even if another side is 0
        raise PersistError(f"{name} has a shape that no array has: {tuple(shape)!r:.80}")
    longer = sum(n > 1 for n in shape)
    if found.newbyteorder("<").str != dtype or (order == "F" and (longer < 2 or 0 in shape)):
        raise PersistError(f"{name} is not described as save describes arrays")
    return Described(found, tuple(shape), order)


def from_npy(how: Described, file: np.ndarray, name: str) -> np.ndarray:
    """Return the array in the bytes of an .npy file, whose header must describe the array like `how`.

    The header is compared and not parsed: `numpy.lib.format` parses it by `ast.literal_eval`, which hostile text can
    crash. Spaces at its end may be any number, as it depends on the version of numpy.
    """
    end = _NPY_PREFIX + int.from_bytes(file[8:_NPY_PREFIX].tobytes(), "little")
    expected, given = how.npy_header(), file[:end].tobytes()
    if given[:8] != expected[:8] or given[_NPY_PREFIX:].rstrip() != expected[_NPY_PREFIX:].rstrip():
        raise PersistError(f"{name}.npy is not the array that the header describes")
    return from_bytes(how, file[end:], name)


def from_bytes(how: Described, flat: np.ndarray, name: str) -> np.ndarray:
    """Return the array in flat bytes, read-only and in native byte order; a view if possible."""
    if how.n_bytes != len(flat):
        raise PersistError(f"{name} has {len(flat)} bytes, and {how.shape} of {how.dtype} would have {how.n_bytes}")
    _refuse_invalid_values(how.dtype, flat, name)
    array = flat.view(how.dtype) if len(flat) else read_only(np.empty(0, dtype=how.dtype))
    array = array.reshape(how.shape) if how.order == "C" else array.reshape(how.shape[::-1]).T
    if not (array.dtype.isnative and array.flags.aligned):
        array = array.astype(array.dtype.newbyteorder("="))
    return read_only(array)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of an array that cannot be made writeable again."""
    array.flags.writeable = False
    return array.view()


def _refuse_invalid_values(dtype: np.dtype, flat: np.ndarray, name: str) -> None:
    """Refuse bytes that are no boolean or no character, whose use is undefined behaviour."""
    if dtype.kind == "b" and flat.max(initial=0) > 1:
        raise PersistError(f"{name} holds bytes that are neither true nor false")
    if dtype.kind == "U" and flat.view("<u4").max(initial=0) > _LAST_CHARACTER:
        raise PersistError(f"{name} holds numbers that are no characters")
