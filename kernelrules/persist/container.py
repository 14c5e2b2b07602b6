"""The file: a zip archive whose members are stored as they are, `header.json` first, then .npy files by name.

    member, member, ..., directory       member = head, name, padding, contents

Everything but the contents follows from the names, sizes and CRC-32 sums of the members: there is one way to write
given members, with one date and contents at multiples of 64 bytes. So a reader takes these three from the directory at
the end, makes heads and directory anew, and compares. Invariant: what it accepts has no byte that it has not accounted
for, no member lies over another, and no size is believed that the file does not have.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

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
_PIECE = 1 << 24  # bytes treated at a time: Ctrl-C is answered in between
_ALIGNMENT = 64
_PADDING_ID = 0xD935  # the extra field that other tools use to align members
_LIMIT = 0xFFFF_FFFF  # bytes, up to which sizes and places fit the first edition of zip; else the second is written
_MOST_MEMBERS = 0xFFFF
_ELSEWHERE = 0xFFFF_FFFF  # what the first edition's fields say in the second
_DATE = 0x21  # 1 January 1980, the first that zip can say
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_WIDE_END = struct.Struct("<4sQ2H2I4Q")
_WIDE_LOCATOR = struct.Struct("<4sIQI")


class PersistError(ValueError):
    """What cannot be saved; or a file that `save` did not write: foreign, cut short, changed, or of a newer format."""


class Entry(NamedTuple):
    """What the directory says of a member."""

    name: str
    size: int
    crc: int


def aligned(n: int) -> np.ndarray:
    """Room for so many bytes that starts where a member may."""
    room = np.empty(n + _ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + n]


def freeze(archive: np.ndarray) -> np.ndarray:
    """Nothing can be written into what `aligned` made any more, nor into views of it."""
    for array in (archive.base, archive):
        array.flags.writeable = False
    return archive


def pieces(buffer: bytes | np.ndarray) -> Iterator[memoryview]:
    """The bytes, a piece at a time."""
    view = memoryview(buffer)
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]


# ---- layout -----------------------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    heads: list[bytes]  # of the members
    starts: list[int]  # of their contents
    directory: bytes


def _layout(entries: Sequence[Entry]) -> _Layout:
    """All bytes of the file but the contents."""
    estimate = sum(entry.size + 2 * len(entry.name) + 256 for entry in entries)
    wide = estimate > _LIMIT or len(entries) >= _MOST_MEMBERS
    heads, starts, directory, position = [], [], [], 0
    for name, size, crc in entries:
        named = name.encode("ascii")
        told = _ELSEWHERE if wide else size
        sizes = struct.pack("<2H2Q", 1, 16, size, size) if wide else b""
        extra = sizes + _padding(position + _LOCAL.size + len(named) + len(sizes))
        common = (45 if wide else 20, 0, 0, 0, _DATE, crc, told, told, len(named))
        heads.append(_LOCAL.pack(b"PK\3\4", *common, len(extra)) + named + extra)
        place = struct.pack("<2H3Q", 1, 24, size, size, position) if wide else b""
        at = _ELSEWHERE if wide else position
        directory.append(_CENTRAL.pack(b"PK\1\2", 20, *common, len(place), 0, 0, 0, 0, at) + named + place)
        starts.append(position + len(heads[-1]))
        position = starts[-1] + size
    listed = b"".join(directory)
    return _Layout(heads, starts, listed + _end(len(entries), len(listed), position, wide))


def _padding(position: int) -> bytes:
    """An extra field after which contents are aligned."""
    n = -position % _ALIGNMENT
    if n == 0:
        return b""
    n += _ALIGNMENT if n < 6 else 0  # its own head
    return struct.pack("<3H", _PADDING_ID, n - 4, _ALIGNMENT) + bytes(n - 6)


def _end(n: int, size: int, position: int, wide: bool) -> bytes:
    if not wide:
        return _END.pack(b"PK\5\6", 0, 0, n, n, size, position, 0)
    return (
        _WIDE_END.pack(b"PK\6\6", _WIDE_END.size - 12, 45, 45, 0, 0, n, n, size, position)
        + _WIDE_LOCATOR.pack(b"PK\6\7", 0, position + size, 1)
        + _END.pack(b"PK\5\6", 0, 0, _MOST_MEMBERS, _MOST_MEMBERS, _ELSEWHERE, _ELSEWHERE, 0)
    )


# ---- writing ----------------------------------------------------------------------------------------------------


def write_members(members: Sequence[tuple[str, Sequence[bytes | np.ndarray]]], write: Callable[[Any], Any]) -> None:
    """Write the archive of members, given as names and the parts of their contents, in this order."""
    entries = []
    for name, parts in members:
        crc = size = 0
        for piece in (piece for part in parts for piece in pieces(part)):
            crc, size = zlib.crc32(piece, crc), size + len(piece)
        entries.append(Entry(name, size, crc))
    layout = _layout(entries)
    for head, (_, parts) in zip(layout.heads, members, strict=True):
        write(memoryview(head))
        for piece in (piece for part in parts for piece in pieces(part)):
            write(piece)
    write(memoryview(layout.directory))


# ---- reading ----------------------------------------------------------------------------------------------------


def begins_as_ours(start: bytes) -> bool:
    """Whether a file may be one of ours, from its first 64 bytes."""
    named = start[_LOCAL.size : _LOCAL.size + len(HEADER)] == HEADER.encode()
    return len(start) == _ALIGNMENT and start[:4] == b"PK\3\4" and named


def members_of(archive: np.ndarray) -> dict[str, np.ndarray]:
    """The contents of the members by name, as views, their sums compared.

    Parameters
    ----------
    archive : ndarray of uint8
        The whole file.

    Returns
    -------
    dict of ndarray of uint8
        In the order of the file.
    """
    view = memoryview(archive)
    if not begins_as_ours(bytes(view[:_ALIGNMENT])):
        raise PersistError("it is not a file that kernelrules.save wrote")
    entries = _entries(view)
    if sum(entry.size for entry in entries) > len(view):
        raise PersistError("it is damaged: its directory lists members that are larger than the file")
    layout = _layout(entries)
    end = layout.starts[-1] + entries[-1].size
    if end + len(layout.directory) != len(view) or view[end:] != layout.directory:
        raise PersistError("it is damaged: its directory and its members do not fit together")
    contents = {}
    for entry, head, start in zip(entries, layout.heads, layout.starts, strict=True):
        if view[start - len(head) : start] != head:
            raise PersistError(f"it is damaged: the head of {entry.name} is not what the directory says")
        contents[entry.name] = archive[start : start + entry.size]
        crc = 0
        for piece in pieces(contents[entry.name]):
            crc = zlib.crc32(piece, crc)
        if crc != entry.crc:
            raise PersistError(f"it is damaged: the contents of {entry.name} have changed")
    return contents


def _entries(view: memoryview) -> list[Entry]:
    """What the directory lists. Only places inside the file are looked at; nothing else is believed yet."""
    signature, *_, n, size, position, comment = _END.unpack(view[-_END.size :])
    if signature != b"PK\5\6" or comment != 0:
        raise PersistError("it is cut short, or something follows it: the end of its directory is not where it must be")
    wide = n == _MOST_MEMBERS
    if wide:
        before = len(view) - _END.size - _WIDE_LOCATOR.size - _WIDE_END.size
        *_, n, size, position = _WIDE_END.unpack(view[before : before + _WIDE_END.size]) if before >= 0 else (0, 0, 0)
    if n == 0 or position + size > len(view):
        raise PersistError("it is damaged: its directory does not lie inside the file")
    listed, at, entries = view[position : position + size], 0, []
    while at < size and len(entries) <= n:
        if at + _CENTRAL.size > size:
            break
        *_, crc, _, told, name_size, extra_size, _, _, _, _, _ = _CENTRAL.unpack(listed[at : at + _CENTRAL.size])
        at += _CENTRAL.size
        name, extra = bytes(listed[at : at + name_size]), listed[at + name_size : at + name_size + extra_size]
        if not name.isascii() or (wide and len(extra) < 12):
            break
        entries.append(Entry(name.decode("ascii"), struct.unpack("<Q", extra[4:12])[0] if wide else told, crc))
        at += name_size + extra_size
    if len(entries) != n or len({entry.name for entry in entries}) != n:
        raise PersistError("it is damaged: its directory does not list its members, each once")
    return entries
