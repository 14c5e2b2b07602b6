"""The paths of an additive model in threads: those of all rows, and those of the folds of cross-validation.

A path may end before the last λ, because it has too many rules; the paths of the folds then end there as well. That is
known only at the end of the path, and is rare: on large data, the folds start at once, and start again if it happened.

Invariant: paths are the same for any number of threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

import numpy as np

from kernelrules.rules.l1_path import ScorePath

__all__ = ["PathTask", "common_length", "solve_paths"]


class PathTask(Protocol):
    """Computes the path of its λ; calls `check_interrupt` often, which may raise."""

    lams: np.ndarray

    def __call__(self, check_interrupt: Callable[[], None]) -> ScorePath:
        """Return the path."""


class _Stopped(Exception):
    """The path is no longer needed."""


def common_length(paths: list[ScorePath]) -> int:
    """Return the number of λ that all paths have reached."""
    return min(len(path.intercepts) for path in paths)


def solve_paths(
    tasks: list[PathTask],
    fold_tasks: Callable[[int], list[PathTask]],
    n_threads: int,
    *,
    start_folds: bool,
    report: Callable[[], None],
) -> tuple[list[ScorePath], list[ScorePath]]:
    """Return the paths of the tasks, and those of fold_tasks(n), n being the number of λ that the former reach.

    With `start_folds`, idle threads start the folds for all λ at once, and start again if the paths end earlier.
    `report` is called after each path.
    """
    expected = len(tasks[0].lams)
    early = fold_tasks(expected) if start_folds and n_threads > 1 else []
    if not early:
        paths = _solve(tasks, n_threads, report)
        return paths, _solve(fold_tasks(common_length(paths)), n_threads, report)
    with _ThreadPool(n_threads) as pool:
        first, second = pool.submit(tasks), pool.submit(early)
        paths = _collect(map(_result, first), report)
        if common_length(paths) < expected:
            pool.cancel(second)
            second = pool.submit(fold_tasks(common_length(paths)))
        return paths, _collect(map(_result, second), report)


def _solve(tasks: list[PathTask], n_threads: int, report: Callable[[], None]) -> list[ScorePath]:
    if n_threads == 1 or len(tasks) < 2:
        return _collect((task(lambda: None) for task in tasks), report)
    with _ThreadPool(n_threads) as pool:
        return _collect(map(_result, pool.submit(tasks)), report)


def _collect(paths: Iterable[ScorePath], report: Callable[[], None]) -> list[ScorePath]:
    found = []
    for path in paths:
        found.append(path)
        report()
    return found


class _ThreadPool:
    """Threads whose tasks are stopped if the body of `with` raises."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads)
        self._batches: list[tuple[threading.Event, list[Future]]] = []

    def __enter__(self) -> _ThreadPool:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        for _, futures in self._batches if kind is not None else []:
            self.cancel(futures)
        self._pool.shutdown()
        for _, futures in self._batches:
            futures.clear()  # breaks the cycle of an exception, its frame and the future, which would keep memory

    def submit(self, tasks: list[PathTask]) -> list[Future]:
        """Start a batch of tasks."""
        stop = threading.Event()
        futures = [self._pool.submit(task, functools.partial(_raise_if_set, stop)) for task in tasks]
        self._batches.append((stop, futures))
        return futures

    def cancel(self, batch: list[Future]) -> None:
        """Stop the tasks of a batch."""
        for stop, futures in self._batches:
            if futures is batch:
                stop.set()
                for future in futures:
                    future.cancel()


def _raise_if_set(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped


def _result(future: Future) -> ScorePath:
    try:
        wait([future])  # signals are handled meanwhile
        return future.result()
    finally:
        del future  # an exception would keep it, and it the exception
