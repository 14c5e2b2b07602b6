"""`save` and `load`: a result in a file, and back, bit for bit.

    header.json   {"format": 1, "kernelrules": version, "members": {name: sha256, ...}, "content": tree, "sha256": ...}
    NAME.npy      the array of that name, as numpy.load reads it

The sha256 of the header is that of itself without it. A file is written beside its place and then put there, so that
under its name there is the old one or the new one, whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import stat
from collections.abc import Callable
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
_START = 64  # bytes that tell whether a file may be one of ours
_PIECE = 1 << 24
_IN_MEMORY = 12  # bytes of Python's objects for one of JSON, at most, but for
_OF_LIST, _OF_DICT = 128, 256  # those of a list, with the tuple made of it, and of a dict
_SIGNATURE = ',"sha256":"%s"}'
_KEYS = {"format", "kernelrules", "members", "content", "sha256"}


def save(result: Any, path: Any) -> None:
    """Write a result into a file that `load` reads: arrays and JSON in a zip archive, no pickle.

    The same result gives the same bytes, and what was loaded is saved as the bytes it was loaded from (by the same
    version of the package). Where a file of that name exists it is replaced in one step, when all is written.

    Parameters
    ----------
    result : result, kernel or feature map; or a tuple, list or dict of them
        Whatever functions of this package return that is a class of `kernelrules.results`. Labels and levels may be
        strings, bytes, numbers, truth values, dates of numpy's, and tuples of these.
    path : str, path or binary file
        Where to; any name will do. A file object need not be seekable.

    Raises
    ------
    PersistError
        If something in the result cannot be saved, such as a kernel that is a function of your own. It names the field.
    TypeError
        If it is no result.

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
        write_members(members, _writer_to(path))
    else:
        _replace(os.fsdecode(path), lambda file: write_members(members, _writer_to(file)))


def load(path: Any) -> Any:
    """The result that `save` wrote into a file.

    Nothing in the file is executed, and memory is asked for by the file's size, never by what it claims: for arrays
    once, for the header, which is JSON of a few kilobytes, up to 80 times, and not more than is free. Checksums are
    compared, and that what the compiled code relies on holds: a file that was cut short, changed or made by someone
    else gives an error, never a crash.

    Parameters
    ----------
    path : str, path or binary file
        Where from; of a file object, all that follows.

    Returns
    -------
    result
        Equal in every bit to the one that was saved. Its arrays are read-only; a copy is not.

    Raises
    ------
    PersistError
        If it is not a file that `save` wrote, or one of a later version of the package.

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
    """Refuse what is no result, and no collection of results."""
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


def _writer_to(file: Any) -> Callable[[memoryview], None]:
    """A function that writes all it is given, also to a file that may take a part only."""

    def write(piece: memoryview) -> None:
        while len(piece):
            taken = file.write(piece)
            piece = piece[len(piece) if taken is None else taken :]

    return write


def _replace(name: str, fill: Callable[[Any], None]) -> None:
    """Put a file under a name once it is written and on the disk; the old one stays until then."""
    target = os.path.realpath(name)
    try:
        before = os.stat(target)
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):  # a device, a pipe: nothing to replace
        with open(target, "wb") as file:
            fill(file)
        return
    beside = os.path.join(os.path.dirname(target), f".kernelrules-{secrets.token_hex(8)}")
    try:
        with open(beside, "xb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            os.chmod(beside, stat.S_IMODE(before.st_mode))
        os.replace(beside, target)
    except BaseException as error:
        if os.path.exists(beside):
            os.unlink(beside)
        if isinstance(error, OSError) and error.filename == beside:  # a name that nobody has asked for
            raise OSError(error.errno, error.strerror, name) from None
        raise


# ---- reading ----------------------------------------------------------------------------------------------------


def _loaded(file: Any, name: str) -> Any:
    try:
        return _read(_whole(file))
    except PersistError as error:
        raise PersistError(f"{name} cannot be loaded: {error}") from None


def _whole(file: Any) -> np.ndarray:
    """All bytes of a file, if it begins as ours do; of one whose size can be known into memory made once."""
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
        while filled < len(archive) and (piece := file.read(min(_PIECE, len(archive) - filled))):
            archive[filled : filled + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            filled += len(piece)
        if filled < len(archive) or file.read(1):
            raise PersistError("it changes while it is read")
        return archive
    parts, n = [start], _START
    while piece := file.read(_PIECE):
        n += len(piece)
        if 2 * n > most:
            raise PersistError(f"it has more than {n / 1e9:.2f} GB, and {most / 1e9:.2f} GB of memory are free")
        parts.append(piece)
    archive = aligned(n)
    archive[:] = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return archive


def _exactly(file: Any, n: int) -> bytes:
    """The first n bytes, or all if there are fewer."""
    found = b""
    while len(found) < n and (piece := file.read(n - len(found))):
        if not isinstance(piece, bytes):
            raise TypeError(f"path must be a binary file, and read() of this one gives {type(piece).__name__}")
        found += piece
    return found


def _rest(file: Any) -> int | None:
    """Bytes that follow, where the file can tell."""
    try:
        here = file.tell()
        end = file.seek(0, io.SEEK_END)
        file.seek(here)
    except (AttributeError, OSError, ValueError):
        return None
    return end - here if isinstance(end, int) and end >= here else None


def _read(archive: np.ndarray) -> Any:
    """The result in an archive, after everything that can be compared has been."""
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
        raise PersistError(f"what it holds is no result: {error}") from None
    return result


def _header(text: bytes) -> dict[str, Any]:
    """The header, of a format that this version knows, and unchanged."""
    needed = _IN_MEMORY * len(text) + _OF_LIST * text.count(b"[") + _OF_DICT * text.count(b"{")
    most = check.free_memory()
    if needed > most:
        raise PersistError(f"its header takes {needed / 1e9:.2f} GB, and {most / 1e9:.2f} GB of memory are free")
    try:
        header = json.loads(text, parse_constant=_no_number)
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
    """A header with its own sha256 as the last entry."""
    return text[:-1] + (_SIGNATURE % _digest(text)).encode("ascii")


def _no_number(said: str) -> None:
    raise ValueError(f"{said} is no number of JSON")
