"""Data that many tasks of an executor need, transferred once instead of with every task.

    threads            the object itself
    local processes    a file in memory, mapped by every worker: arrays are not copied, and nothing is left behind
    dask               scattered to all workers
    other executors    pickled with each task: workers may be on machines without access to local files

`Scattered` makes handles of objects; `open_handle` returns the object of a handle, in any process. Arrays are
read-only there.
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

from kernelrules import cluster

__all__ = ["Scattered", "carried_handle", "in_this_process", "mapped_view", "n_workers", "open_handle"]

_MAPPED_MIN_BYTES = 1 << 16  # smaller objects are cheaper to pickle with each task
_ALIGNMENT = 64


@dataclass(frozen=True, eq=False)
class _Carried:
    """A handle that contains the object."""

    value: Any


@dataclass(frozen=True)
class _Mapped:
    """A handle of an object in a file, which holds a token and then, at `places`, the pickle and its buffers."""

    path: str
    token: bytes
    places: tuple[tuple[int, int], ...]

    def open(self) -> Any:
        """Return the object; its arrays are views of the mapped file."""
        descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            content = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
        if content[: len(self.token)] != self.token:
            raise FileNotFoundError("the data of this task no longer exist: its computation has ended")
        parts = [content[start:end] for start, end in self.places]
        return pickle.loads(parts[0], buffers=parts[1:])


def open_handle(handle: Any) -> Any:
    """Return the object of a handle; any other object is returned as it is (dask passes the objects themselves)."""
    if isinstance(handle, _Carried):
        return handle.value
    return handle.open() if isinstance(handle, _Mapped) else handle


def carried_handle(value: Any) -> Any:
    """Return a handle that contains the object, which dask does not traverse."""
    return _Carried(value)


def mapped_view(handle: Any, value: Any) -> Any:
    """Return the object that workers have mapped, if there is one, which saves a copy in memory; else `value`."""
    return handle.open() if isinstance(handle, _Mapped) else value


def in_this_process(executor: Any) -> bool:
    """Return whether tasks run in this process."""
    return executor is None or isinstance(executor, ThreadPoolExecutor)


def _in_local_processes(executor: Any) -> bool:
    return isinstance(executor, ProcessPoolExecutor) or any("loky" in cls.__module__ for cls in type(executor).__mro__)


def n_workers(executor: Any) -> int:
    """Return the number of tasks that run at a time, or an estimate."""
    client = cluster.client_of(executor)
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    return getattr(executor, "_max_workers", None) or os.cpu_count() or 1


class Scattered:
    """Makes handles of objects for the workers of an executor, valid until the end of the `with` block.

    Parameters
    ----------
    executor : concurrent.futures.Executor or None
        The executor whose tasks open the handles.

    Examples
    --------
    >>> with Scattered(None) as scatter:
    ...     open_handle(scatter([1, 2]))
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
        """Return a handle of the object."""
        if cluster.client_of(self.executor) is not None:
            future = cluster.scattered(self.executor, value)
            self.futures.append(future)
            return future
        if not _in_local_processes(self.executor):
            return _Carried(value)
        buffers: list[pickle.PickleBuffer] = []
        plain = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        parts = [memoryview(plain), *(buffer.raw() for buffer in buffers)]
        if sum(len(part) for part in parts) <= _MAPPED_MIN_BYTES:
            return _Carried(value)
        file = _File()
        self.files.append(file)
        return file.fill(parts)


class _File:
    """A file that ends with this process: in memory on Linux, a temporary file elsewhere."""

    def __init__(self) -> None:
        self.named = not hasattr(os, "memfd_create")
        if self.named:
            self.descriptor, self.path = tempfile.mkstemp(prefix="kernelrules-")
        else:
            self.descriptor = os.memfd_create("kernelrules")
            self.path = f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def fill(self, parts: list[memoryview]) -> _Mapped:
        """Write the parts, each at a multiple of the alignment."""
        token = secrets.token_bytes(16)  # a file descriptor may be reused
        places, end = [], len(token)
        for part in parts:
            start = -(-end // _ALIGNMENT) * _ALIGNMENT
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
        """Delete the file; workers keep what they have mapped."""
        os.close(self.descriptor)
        if self.named:
            with suppress(OSError):  # Windows refuses while a worker has it mapped
                os.unlink(self.path)
