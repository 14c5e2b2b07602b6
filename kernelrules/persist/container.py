"""The file format: a ZIP archive of uncompressed members, `header.json` first, then .npy files sorted by name.

`zipfile` writes and reads the archive. Member contents start at multiples of 64 bytes, so that arrays are views of the
file in memory. All dates and attributes are constants, so that the same members give the same bytes.

Invariant: a loaded archive is equal, byte for byte, to the archive that `write_members` makes of its members. This one
comparison checks what `zipfile` does not: dates, attributes, padding, local headers against the directory, overlapping
or repeated members, and bytes that belong to no member. No size in the file leads to an allocation, because members are
slices of the file and nothing is decompressed.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

__all__ = [
    "HEADER",
    "PersistError",
    "aligned",
    "begins_as_ours",
    "freeze",
    "members_of",
    "pieces",
    "write_members",
]

HEADER = "header.json"
_PIECE_BYTES = 1 << 24  # between two checks for Ctrl-C
_ALIGNMENT = 64
_PADDING_ID = 0xD935  # the extra field that Android's zipalign uses to align members
_LOCAL_HEADER_BYTES = 30  # without the name and the extra field, whose lengths are its last four bytes
_ZIP64_FIELD_BYTES = 20  # the extra field of a local header with sizes of 64 bits


class PersistError(ValueError):
    """A result cannot be saved, or `save` did not write the file: it is foreign, cut short, changed, or too new."""


def aligned(n: int) -> np.ndarray:
    """Return an uninitialised buffer of n bytes whose address is a multiple of the alignment of members."""
    buffer = np.empty(n + _ALIGNMENT, dtype=np.uint8)
    start = -buffer.ctypes.data % _ALIGNMENT
    return buffer[start : start + n]


def freeze(archive: np.ndarray) -> np.ndarray:
    """Make an array of `aligned`, and all later views of it, read-only."""
    for array in (archive.base, archive):
        array.flags.writeable = False
    return archive


def pieces(buffer: bytes | np.ndarray) -> Iterator[memoryview]:
    """Yield consecutive pieces of the bytes."""
    view = memoryview(buffer)
    for start in range(0, len(view), _PIECE_BYTES):
        yield view[start : start + _PIECE_BYTES]


def write_members(members: Sequence[tuple[str, Sequence[bytes | np.ndarray]]], file: Any) -> None:
    """Write the archive of members, given as names and the parts of their contents, to a seekable file."""
    import zipfile  # not on top: `import kernelrules` would take 5 ms longer

    with zipfile.ZipFile(file, "w") as archive:
        for name, parts in members:
            info = zipfile.ZipInfo(name)  # of 1 January 1980
            info.create_system, info.file_size = 0, sum(map(len, parts))
            wide = 2 * info.file_size > zipfile.ZIP64_LIMIT
            header_bytes = _LOCAL_HEADER_BYTES + len(name) + (_ZIP64_FIELD_BYTES if wide else 0)
            info.extra = _padding(file.tell() + header_bytes)
            with archive.open(info, "w", force_zip64=wide) as member:
                for piece in (piece for part in parts for piece in pieces(part)):
                    member.write(piece)
            info.extra, info.external_attr = b"", 0  # for the directory


def _padding(position: int) -> bytes:
    """Return an extra field that moves contents from a position to the next multiple of the alignment."""
    n = -position % _ALIGNMENT
    if n == 0:
        return b""
    n += _ALIGNMENT if n < 6 else 0  # the field's own header
    return struct.pack("<3H", _PADDING_ID, n - 4, _ALIGNMENT) + bytes(n - 6)


def begins_as_ours(start: bytes) -> bool:
    """Return whether the first 64 bytes of a file are those of an archive that begins with the header."""
    name = start[_LOCAL_HEADER_BYTES : _LOCAL_HEADER_BYTES + len(HEADER)]
    return len(start) == _ALIGNMENT and start[:4] == b"PK\3\4" and name == HEADER.encode()


def members_of(archive: np.ndarray) -> dict[str, np.ndarray]:
    """Return the contents of the members by name.

    Parameters
    ----------
    archive : ndarray of uint8
        The whole file.

    Returns
    -------
    dict of ndarray of uint8
        Views of the file, in its order.

    Raises
    ------
    PersistError
        If the archive is not one that `write_members` makes.
    """
    import zipfile

    if not begins_as_ours(archive[:_ALIGNMENT].tobytes()):
        raise PersistError("it is not a file that kernelrules.save wrote")
    file = _ArchiveFile(archive)
    try:
        with zipfile.ZipFile(file) as given:
            entries = given.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, OverflowError, ValueError, struct.error) as error:
        raise PersistError(f"it is cut short or damaged: {error}") from None
    if not entries or sum(entry.file_size for entry in entries) > len(archive):
        raise PersistError("it is damaged: its directory lists members that are larger than the file")
    contents = {entry.filename: _contents(archive, entry) for entry in entries}
    if len(contents) != len(entries):
        raise PersistError("it is damaged: its directory lists a member twice")
    # The first version of this package laid out the ZIP64 fields of archives beyond 2 GiB differently. In those, bytes
    # outside of members are not compared; the SHA-256 sums in the header cover all contents.
    if len(archive) <= zipfile.ZIP64_LIMIT:
        file.seek(0)
        write_members([(name, (content,)) for name, content in contents.items()], file)
        if file.unequal or file.tell() != len(archive):
            raise PersistError("it is damaged: its bytes are not those that save writes")
    return contents


def _contents(archive: np.ndarray, entry: Any) -> np.ndarray:
    """Return the bytes of a member; fewer than the directory lists if its place is not inside the file."""
    start = entry.header_offset + _LOCAL_HEADER_BYTES
    if not _LOCAL_HEADER_BYTES <= start <= len(archive):
        return archive[:0]
    start += sum(struct.unpack_from("<2H", archive, start - 4))
    return archive[start : start + entry.file_size]


class _ArchiveFile(io.RawIOBase):
    """An archive in memory as a file. Writing changes nothing: it compares the bytes with those of the archive."""

    def __init__(self, archive: np.ndarray) -> None:
        self._archive = archive
        self._position = 0
        self.unequal: set[int] = set()  # positions at which the last write differed

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position and return it."""
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._archive)}[whence]
        if position < 0:
            raise OSError(f"there is no position {position}")
        self._position = position
        return position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Copy the next bytes into a buffer, and return their number."""
        part = self._archive[self._position : self._position + len(buffer)]
        memoryview(buffer)[: len(part)] = part
        self._position += len(part)
        return len(part)

    def write(self, piece: Any) -> int:
        """Compare the next bytes with a piece, and return its length."""
        given = np.frombuffer(piece, dtype=np.uint8)
        equal = np.array_equal(self._archive[self._position : self._position + len(given)], given)
        (self.unequal.discard if equal else self.unequal.add)(self._position)
        self._position += len(given)
        return len(given)
