"""Data that many tasks of an executor need, handed over once instead of with every task.

    threads            the object itself
    local processes    a file in memory, mapped by every worker: arrays are not copied, and nothing is left behind
    dask               scattered to all workers
    any other          pickled with each task: its workers may be on machines that see no file of ours

`Scattered` hands out handles for objects; `opened` turns a handle into the object, in whichever process. Arrays come
out read-only.
"""

from __future__ import annotations

import mmap
import os
import pickle
import secrets
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

__all__ = ["Scattered", "carried", "in_this_process", "n_workers", "opened", "seen_here"]

_SMALL = 1 << 16  # bytes that a task carries more cheaply than a mapping
_ALIGNED = 64


@dataclass(frozen=True, eq=False)
class _Carried:
    """A handle that is the object."""

    value: Any


@dataclass(frozen=True)
class _Mapped:
    """A handle of an object in a file: a token that begins it, then the pickle and its buffers at these places."""

    path: str
    token: bytes
    places: tuple[tuple[int, int], ...]

    def open(self) -> Any:
        """The object; its arrays lie in the file."""
        descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            content = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
        if content[: len(self.token)] != self.token:
            raise FileNotFoundError("the data of this task are gone: the computation that it was part of has ended")
        parts = [content[start:end] for start, end in self.places]
        return pickle.loads(parts[0], buffers=parts[1:])


def opened(handle: Any) -> Any:
    """What a handle stands for; anything else is itself (dask gives its workers the objects)."""
    if isinstance(handle, _Carried):
        return handle.value
    return handle.open() if isinstance(handle, _Mapped) else handle


def carried(value: Any) -> Any:
    """A handle that takes the object along, unseen: dask would look into it."""
    return _Carried(value)


def seen_here(handle: Any, value: Any) -> Any:
    """The object of a handle as the workers see it, where that saves a copy of it in memory; else itself."""
    return handle.open() if isinstance(handle, _Mapped) else value


def in_this_process(executor: Any) -> bool:
    """Whether the tasks run in threads of this process, or right here."""
    return executor is None or isinstance(executor, ThreadPoolExecutor)


def _in_local_processes(executor: Any) -> bool:
    return isinstance(executor, ProcessPoolExecutor) or any("loky" in cls.__module__ for cls in type(executor).__mro__)


def _dask_client(executor: Any) -> Any:
    client = getattr(executor, "_client", None)
    return client if callable(getattr(client, "scatter", None)) else None


def n_workers(executor: Any) -> int:
    """Tasks that run at a time, as far as that can be known."""
    client = _dask_client(executor)
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    return getattr(executor, "_max_workers", None) or os.cpu_count() or 1


class Scattered:
    """Handles of objects for the workers of an executor, good until the end of the `with` block.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        Whose tasks will open them.

    Examples
    --------
    >>> with Scattered(None) as scatter:
    ...     opened(scatter([1, 2]))
    [1, 2]
    """

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self.files: list[_File] = []
        self.futures: list[Any] = []

    def __enter__(self) -> Scattered:
        return self

    def __exit__(self, *_: Any) -> None:
        for future in self.futures:
            future.release()
        for file in self.files:
            file.close()
        self.futures, self.files = [], []

    def __call__(self, value: Any) -> Any:
        """A handle of the object."""
        client = _dask_client(self.executor)
        if client is not None:
            future = client.scatter([value], broadcast=True, hash=False)[0]
            self.futures.append(future)
            return future
        if not _in_local_processes(self.executor):
            return _Carried(value)
        buffers: list[pickle.PickleBuffer] = []
        plain = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        parts = [memoryview(plain), *(buffer.raw() for buffer in buffers)]
        if sum(len(part) for part in parts) <= _SMALL:
            return _Carried(value)
        file = _File()
        self.files.append(file)
        return file.fill(parts)


class _File:
    """A file that vanishes with this process: in memory on Linux, elsewhere a temporary one."""

    def __init__(self) -> None:
        self.named = not hasattr(os, "memfd_create")
        if self.named:
            self.descriptor, self.path = tempfile.mkstemp(prefix="kernelrules-")
        else:
            self.descriptor = os.memfd_create("kernelrules")
            self.path = f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def fill(self, parts: list[memoryview]) -> _Mapped:
        """Write the parts, each at an even address."""
        token = secrets.token_bytes(16)  # a number of a file may be used again
        places, end = [], len(token)
        for part in parts:
            start = -(-end // _ALIGNED) * _ALIGNED
            end = start + part.nbytes
            places.append((start, end))
        with os.fdopen(os.dup(self.descriptor), "wb") as file:
            file.write(token)
            for (start, _), part in zip(places, parts, strict=True):
                file.seek(start)
                file.write(part)
            file.truncate(max(end, 1))
        return _Mapped(self.path, token, tuple(places))

    def close(self) -> None:
        """Workers that have the file mapped keep what they see."""
        os.close(self.descriptor)
        if self.named:
            with suppress(OSError):  # mapped by a worker still, where that forbids it
                os.unlink(self.path)
