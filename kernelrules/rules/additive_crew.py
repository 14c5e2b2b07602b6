"""Paths of sums of rules in threads: those of all rows, and those of the folds of cross-validation beside them.

A path may end before the last λ, where it has too many rules; the folds are then to end there too. That is known only
when it has ended, and seldom so: of data that take a while folds begin at once, and begin again where it was.

Invariant: paths are the same for any number of threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

import numpy as np

from kernelrules.rules.additive_path import Path

__all__ = ["Crew", "Task", "length_of"]


class Task(Protocol):
    """What gives a path for its λ, and calls `air` often, which may raise."""

    lams: np.ndarray

    def __call__(self, air: Callable[[], None]) -> Path:
        """The path."""


class _Stopped(Exception):
    """Another path, or the user, asked to stop."""


def length_of(paths: list[Path]) -> int:
    """The λ that all of them have reached."""
    return min(len(path.intercepts) for path in paths)


class Crew:
    """Runs tasks in threads, and lets signals and callbacks through."""

    def __init__(self, n_threads: int, tick: Any, total: int) -> None:
        self._n_threads, self._tick, self._total, self._done = n_threads, tick, total, 0

    def run(self, tasks: list[Task], later: Callable[[int], list[Task]], guess: bool) -> tuple[list[Path], list[Path]]:
        """Paths of the tasks, in order, and then those of later(n), n being the λ that all of the former reach.

        With `guess`, that this is all of them: threads that have nothing else to do begin with these, and begin again
        where it is not.
        """
        expected = len(tasks[0].lams)
        ahead = later(expected) if guess and self._n_threads > 1 else []
        if not ahead:
            paths = self._together(tasks)
            return paths, self._together(later(length_of(paths)))
        with _Team(self._n_threads) as team:
            first, second = team.submit(tasks), team.submit(ahead)
            paths = self._gather(map(_result, first))
            if length_of(paths) < expected:
                team.drop(second)
                second = team.submit(later(length_of(paths)))
            return paths, self._gather(map(_result, second))

    def _together(self, tasks: list[Task]) -> list[Path]:
        if self._n_threads == 1 or len(tasks) < 2:
            return self._gather(task(lambda: None) for task in tasks)
        with _Team(self._n_threads) as team:
            return self._gather(map(_result, team.submit(tasks)))

    def _gather(self, paths: Iterable[Path]) -> list[Path]:
        found = []
        for path in paths:
            found.append(path)
            self._done += 1
            if self._tick is not None:
                self._tick(self._done, self._total)
        return found


class _Team:
    """Threads, which are stopped where the body of `with` is left by an exception."""

    def __init__(self, n_threads: int) -> None:
        self._pool = ThreadPoolExecutor(n_threads)
        self._stops: list[tuple[threading.Event, list[Future]]] = []

    def __enter__(self) -> _Team:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        for _, futures in self._stops if kind is not None else []:
            self.drop(futures)
        self._pool.shutdown()
        for _, futures in self._stops:
            futures.clear()  # an exception knows this frame, and a future the exception: memory would wait for both

    def submit(self, tasks: list[Task]) -> list[Future]:
        """Begin with the tasks."""
        stop = threading.Event()
        futures = [self._pool.submit(task, functools.partial(_raise_if, stop)) for task in tasks]
        self._stops.append((stop, futures))
        return futures

    def drop(self, some: list[Future]) -> None:
        """End those that were submitted together."""
        for stop, futures in self._stops:
            if futures is some:
                stop.set()
                for future in futures:
                    future.cancel()


def _raise_if(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped


def _result(future: Future) -> Path:
    try:
        wait([future])  # a signal is answered meanwhile
        return future.result()
    finally:
        del future  # which the exception would hold, and it the exception
