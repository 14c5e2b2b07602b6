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
        ahead = later(expected) if guess else []
        if self._n_threads == 1:
            paths = self._gather(task(lambda: None) for task in tasks)
            return paths, self._gather(task(lambda: None) for task in later(length_of(paths)))
        stops = (threading.Event(), threading.Event(), threading.Event())
        with ThreadPoolExecutor(self._n_threads) as pool:
            futures: list[Future] = []

            def submit(some: list[Task], stop: threading.Event) -> list[Future]:
                new = [pool.submit(task, functools.partial(_raise_if, stop)) for task in some]
                futures.extend(new)
                return new

            try:
                first, second = submit(tasks, stops[0]), submit(ahead, stops[1])
                paths = self._gather(map(_result, first))
                if not guess or length_of(paths) < expected:
                    stops[1].set()
                    for future in second:
                        future.cancel()
                    second = submit(later(length_of(paths)), stops[2])
                return paths, self._gather(map(_result, second))
            except BaseException:
                for stop in stops:
                    stop.set()
                for future in futures:
                    future.cancel()
                raise

    def _gather(self, paths: Iterable[Path]) -> list[Path]:
        found = []
        for path in paths:
            found.append(path)
            self._done += 1
            if self._tick is not None:
                self._tick(self._done, self._total)
        return found


def _raise_if(stop: threading.Event) -> None:
    if stop.is_set():
        raise _Stopped


def _result(future: Future) -> Path:
    wait([future])  # a signal is answered meanwhile
    return future.result()
