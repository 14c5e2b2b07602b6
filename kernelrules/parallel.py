"""Threads, and what a long computation tells about itself.

One knob, `n_threads`: None means the cores that this process may use, but no more than OpenMP is set to (so that
OMP_NUM_THREADS and threadpoolctl are obeyed). Results never depend on it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from threadpoolctl import ThreadpoolController

from kernelrules import check
from kernelrules.core import machine

__all__ = [
    "Progress",
    "blas_threads",
    "enough_threads",
    "in_threads",
    "n_threads_or_default",
    "run",
    "ticker",
]

# GNU's OpenMP cannot start threads in a process forked from one that has used them: it would wait for ever.
_in_forked_child = False


def _after_fork() -> None:
    global _in_forked_child
    _in_forked_child = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True)
class Progress:
    """How far a computation is: what callbacks are given."""

    what: str
    done: int
    total: int
    violation: float | None = None  # of the optimality conditions, where there are any: falls to the tolerance

    @property
    def fraction(self) -> float:
        """Between 0 and 1."""
        return self.done / self.total if self.total else 1.0


def n_threads_or_default(n_threads: Any = None) -> int:
    """The number of threads to use.

    Parameters
    ----------
    n_threads : int or None
        None takes the default described above. In a forked child process it is always 1.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> n_threads_or_default(3)
    3
    """
    if n_threads is not None:
        wanted = check.whole(n_threads, "n_threads", 1)
    else:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        wanted = min(cores, machine.openmp_threads())
    return 1 if _in_forked_child else min(wanted, 1024)


def enough_threads(n_threads: int, nanoseconds: float) -> int:
    """At most the threads that pay for about so much work.

    Starting a team costs microseconds on an idle machine, and milliseconds where its threads wait for a busy core.
    """
    return max(1, min(n_threads, int(nanoseconds / 50_000)))


def ticker(callback: Callable[[Progress], Any] | None, what: str) -> Callable[..., None] | None:
    """What the core calls as tick(done, total[, violation]), made of a user's callback(progress)."""
    if callback is None:
        return None
    if not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")

    def tick(done: int, total: int, violation: float | None = None) -> None:
        callback(Progress(what, done, total, violation))

    return tick


def run(function: Callable[..., Any], tasks: list[tuple], executor: Any = None) -> list[Any]:
    """[function(*task) for task in tasks], by an executor where one is given.

    Parameters
    ----------
    function : callable
        At the top level of a module, so that other processes can import it.
    tasks : list of tuple
        Its arguments.
    executor : concurrent.futures.Executor, optional
        Any: a thread or process pool, dask's `client.get_executor()`, mpi4py's. It is not shut down.

    Returns
    -------
    list
        In the order of the tasks.

    Examples
    --------
    >>> run(pow, [(2, 3), (3, 2)])
    [8, 9]
    """
    if executor is None:
        return [function(*task) for task in tasks]
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, got {executor!r}")
    futures = [executor.submit(function, *task) for task in tasks]
    try:
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


# ---- BLAS held to one thread, and threads of our own around it ----------------------------------------------------

_blas_lock = threading.Lock()
_blas_held: list[Any] = []  # by those inside of blas_threads; the last one out gives BLAS its threads back


@functools.cache
def _blas_libraries() -> ThreadpoolController:
    """NumPy's and SciPy's, which are loaded by now: looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """BLAS on that many threads inside; on one, its sums do not depend on how many cores there are.

    The limit is the process's. Where several threads are inside, that of the first one counts, until the last has left.
    """
    with _blas_lock:
        _blas_held.append(None if _blas_held else _blas_libraries().limit(limits=n_threads))
    try:
        yield
    finally:
        with _blas_lock:
            if len(_blas_held) > 1:
                _blas_held.pop()
            else:
                _blas_held.pop().restore_original_limits()


def in_threads(
    function: Callable[..., Any], tasks: Iterable[tuple], n_threads: int, air: Callable[[], None] | None = None
) -> Iterator[Any]:
    """Yield function(*task) in the order of the tasks, computed by threads of this process.

    Parameters
    ----------
    function : callable
        Releases the GIL where it matters, as NumPy's products do.
    tasks : iterable of tuple
        Its arguments; small ones, as at most two a thread are under way.
    n_threads : int
        1 computes here.
    air : callable, optional
        Called in this thread before each result is handed over.

    Yields
    ------
    object
        One result a task.

    Examples
    --------
    >>> list(in_threads(pow, [(2, 3), (3, 2)], 2))
    [8, 9]
    """
    tasks = iter(tasks)
    if n_threads == 1:
        for task in tasks:
            result = function(*task)
            if air is not None:
                air()
            yield result
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: list[Any] = []
        try:
            for task in tasks:
                waiting.append(pool.submit(function, *task))
                if len(waiting) >= 2 * n_threads:
                    result = waiting.pop(0).result()
                    if air is not None:
                        air()
                    yield result
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()
