"""`save` and `load`: results to files and back, bit for bit.

    header.json   {"format": 1, "kernelrules": version, "members": {name: sha256, ...}, "content": tree, "sha256": ...}
    NAME.npy      the array of that name, as numpy.load reads it

The sha256 of the header covers the header without this entry. A file is written under a temporary name in the same
folder and then renamed, so that its name always refers to a complete file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.persist.container import (
    HEADER,
    PersistError,
    aligned,
    begins_as_ours,
    freeze,
    members_of,
    pieces,
    write_members,
)
from kernelrules.persist.reading import Reader
from kernelrules.persist.registry import is_saved
from kernelrules.persist.writing import Writer, json_text

__all__ = ["load", "save"]

_FORMAT = 1
_START = 64  # bytes from which `begins_as_ours` recognises a file
_PIECE_BYTES = 1 << 24
_SPOOL_BYTES = 1 << 26  # of an archive that is kept in memory before it goes to a stream; larger ones use the disk
# Upper bounds of the memory of Python objects: per byte of JSON, and in addition per list (with its tuple) and dict.
_OBJECT_BYTES, _LIST_BYTES, _DICT_BYTES = 12, 128, 256
_SIGNATURE = ',"sha256":"%s"}'
_Member = tuple[str, Sequence[bytes | np.ndarray]]
_KEYS = {"format", "kernelrules", "members", "content", "sha256"}


def save(result: Any, path: Any) -> None:
    """Write a result to a file that `load` reads: a ZIP archive of arrays and JSON, without pickle.

    The same result gives the same bytes. A loaded result is saved as the bytes that it was loaded from, by the same
    version of the package. An existing file is replaced in one step once the new one is complete.

    Parameters
    ----------
    result : result, kernel or feature map; or a tuple, list or dict of them
        Instances of the classes of `kernelrules.results`, which functions of this package return. Labels and levels
        may be strings, bytes, numbers, booleans, NumPy dates, and tuples of these.
    path : str, path or binary file
        Any file name. A file object need not be seekable.

    Raises
    ------
    PersistError
        If something in the result cannot be saved, such as a kernel that is a user's function. The message names the
        field.
    TypeError
        If `result` is not a result.

    Examples
    --------
    >>> import io
    >>> import kernelrules
    >>> from kernelrules import svm
    >>> model = svm.svc([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> file = io.BytesIO()
    >>> kernelrules.save(model, file)
    >>> again = kernelrules.load(io.BytesIO(file.getvalue()))
    >>> bool((svm.decision(again, [[1.7]]) == svm.decision(model, [[1.7]])).all())
    True
    """
    writer = Writer()
    try:
        _require_result(result)
        content = writer.tree(result)
    except RecursionError:
        raise PersistError("the result is nested too deeply to be saved") from None
    arrays = sorted(writer.members.items())
    header = {
        "format": _FORMAT,
        "kernelrules": _version(),
        "members": {name: _digest(*parts) for name, parts in arrays},
        "content": content,
    }
    try:
        text = _signed(json_text(header))
    except ValueError as error:  # a whole number of more digits than Python will write
        raise PersistError(f"the result cannot be saved: {error}") from None
    members = [(HEADER, (text,)), *arrays]
    if hasattr(path, "write"):
        _write_to_stream(members, path)
    else:
        _replace(os.fsdecode(path), members)


def load(path: Any) -> Any:
    """Load a result from a file that `save` wrote.

    Nothing in the file is executed. Memory use is bounded by the size of the file, not by sizes that the file states:
    the size of the arrays once, up to 80 times that of the header (JSON, usually a few kilobytes), and never more than
    is free. Checksums are compared, and everything that compiled code relies on is checked: a file that is cut short,
    changed or forged raises an error and never causes a crash.

    Parameters
    ----------
    path : str, path or binary file
        A file object is read from its position to its end.

    Returns
    -------
    result
        Equal in every bit to the saved result. Its arrays are read-only, as those of every result.

    Raises
    ------
    PersistError
        If `save` did not write the file, or a later version of the package wrote it.

    Examples
    --------
    >>> import os, tempfile
    >>> import kernelrules
    >>> from kernelrules import tree
    >>> grown = tree.grow([[0.0], [1.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernelrules.save(grown, os.path.join(folder, "tree.npz"))
    ...     again = kernelrules.load(os.path.join(folder, "tree.npz"))
    >>> tree.predict(again, [[0.2], [0.9]])
    array(['a', 'b'], dtype='<U1')
    """
    if hasattr(path, "read"):
        return _loaded(path, "the file")
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        return _loaded(file, name)


def _require_result(result: Any) -> None:
    """Refuse objects that are neither results nor collections of results."""
    if type(result) in (tuple, list, dict):
        for entry in result.values() if type(result) is dict else result:
            _require_result(entry)
    elif not is_saved(type(result)):
        raise TypeError(f"result must be a result of this package, or several in a tuple, got {type(result).__name__}")


@cache
def _version() -> str:
    return metadata.version("kernelrules")


def _digest(*parts: bytes | np.ndarray) -> str:
    digest = hashlib.sha256()
    for part in parts:
        for piece in pieces(part):
            digest.update(piece)
    return digest.hexdigest()


# ---- writing ----------------------------------------------------------------------------------------------------


def _write_to_stream(members: Sequence[_Member], stream: Any) -> None:
    """Write the archive to a file that may be unable to seek and may accept only a part of what it is given."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as spool:
        write_members(members, spool)
        spool.seek(0)
        while piece := memoryview(spool.read(_PIECE_BYTES)):
            while piece:
                n_written = stream.write(piece)
                piece = piece[len(piece) if n_written is None else n_written :]


def _replace(name: str, members: Sequence[_Member]) -> None:
    """Write the archive next to a file, and put it in the file's place once it is complete and on the disk."""
    target = os.path.realpath(name)
    try:
        before = os.stat(target)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):  # a device or pipe cannot be replaced
        with open(target, "wb") as file:
            _write_to_stream(members, file)
        return
    temporary = os.path.join(os.path.dirname(target), f".kernelrules-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            write_members(members, file)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            os.chmod(temporary, stat.S_IMODE(before.st_mode))
        os.replace(temporary, target)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:  # a name that the caller does not know
            raise OSError(error.errno, error.strerror, name) from None
        raise


# ---- reading ----------------------------------------------------------------------------------------------------


def _loaded(file: Any, name: str) -> Any:
    try:
        return _read(_whole(file))
    except PersistError as error:
        raise PersistError(f"{name} cannot be loaded: {error}") from None


def _whole(file: Any) -> np.ndarray:
    """Return all bytes of a file that begins like an archive of `save`, in one aligned buffer."""
    start = _exactly(file, _START)
    if not begins_as_ours(start):
        raise PersistError("it is not a file that kernelrules.save wrote")
    most = check.free_memory()
    rest = _rest(file)
    if rest is not None:
        if rest > most:
            raise PersistError(f"it has {rest / 1e9:.2f} GB, and {most / 1e9:.2f} GB of memory are free")
        archive = aligned(_START + rest)
        archive[:_START] = np.frombuffer(start, dtype=np.uint8)
        filled = _START
        while filled < len(archive) and (piece := file.read(min(_PIECE_BYTES, len(archive) - filled))):
            archive[filled : filled + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            filled += len(piece)
        if filled < len(archive) or file.read(1):
            raise PersistError("it changed while it was read")
        return archive
    parts, n = [start], _START
    while piece := file.read(_PIECE_BYTES):
        n += len(piece)
        if 2 * n > most:
            raise PersistError(f"it has more than {n / 1e9:.2f} GB, and {most / 1e9:.2f} GB of memory are free")
        parts.append(piece)
    archive = aligned(n)
    archive[:] = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return archive


def _exactly(file: Any, n: int) -> bytes:
    """Return the first n bytes, or all if there are fewer."""
    found = b""
    while len(found) < n and (piece := file.read(n - len(found))):
        if not isinstance(piece, bytes):
            raise TypeError(f"path must be a binary file, but its read() returned {type(piece).__name__}")
        found += piece
    return found


def _rest(file: Any) -> int | None:
    """Return the number of bytes up to the end, or None if the file cannot seek."""
    try:
        here = file.tell()
        end = file.seek(0, io.SEEK_END)
        file.seek(here)
    except (AttributeError, OSError, ValueError):
        return None
    return end - here if isinstance(end, int) and end >= here else None


def _read(archive: np.ndarray) -> Any:
    """Return the result in an archive after comparing all checksums."""
    members = members_of(freeze(archive))
    text = members.pop(HEADER, np.empty(0, dtype=np.uint8)).tobytes()
    header = _header(text)
    if sorted(header["members"]) != list(members):
        raise PersistError("it is damaged: its members are not those that its header names")
    for name, contents in members.items():
        if _digest(contents) != header["members"][name]:
            raise PersistError(f"it is damaged: the contents of {name} have changed")
    reader = Reader(members)
    try:
        result = reader.value(header["content"])
    except RecursionError:
        raise PersistError("its header is nested too deeply") from None
    if members:
        raise PersistError(f"its header does not say what {next(iter(members))} is")
    try:
        _require_result(result)
    except TypeError as error:
        raise PersistError(f"its content is no result: {error}") from None
    return result


def _header(text: bytes) -> dict[str, Any]:
    """Return the header, which must have a known format and the right checksum."""
    needed = _OBJECT_BYTES * len(text) + _LIST_BYTES * text.count(b"[") + _DICT_BYTES * text.count(b"{")
    most = check.free_memory()
    if needed > most:
        raise PersistError(f"its header takes {needed / 1e9:.2f} GB, and {most / 1e9:.2f} GB of memory are free")
    try:
        header = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise PersistError(f"its header is not JSON: {error}") from None
    number = header.get("format") if isinstance(header, dict) else None
    if type(number) is not int or number < 1:
        raise PersistError("its header does not name its format")
    if number > _FORMAT:
        version = f"{header.get('kernelrules')!r:.40}"
        raise PersistError(
            f"it is of format {number}, written by kernelrules {version}; this version, "
            f"{_version()}, reads format {_FORMAT}: update kernelrules"
        )
    if set(header) != _KEYS or not isinstance(header["members"], dict) or not isinstance(header["kernelrules"], str):
        raise PersistError("its header does not have the entries of its format")
    if _signed(text[: -len(_SIGNATURE % "") - 64] + b"}") != text:
        raise PersistError("it is damaged: its header has changed")
    return header


def _signed(text: bytes) -> bytes:
    """Return a header with its own sha256 as the last entry."""
    return text[:-1] + (_SIGNATURE % _digest(text)).encode("ascii")


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
