"""Threads, and tasks for executors.

One knob, `n_threads`: None means the cores that this process may use, but no more than OpenMP is set to (so that
OMP_NUM_THREADS and threadpoolctl are obeyed). Results never depend on it.

Whatever is many independent fits goes through `run`, to any concurrent.futures.Executor. Tasks are the same with and
without one, so results are too.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

from kernelrules import check, progress, sharing
from kernelrules.core import machine
from kernelrules.progress import Progress, ProgressWarning, air_of, reports, ticker

__all__ = [
    "Progress",
    "ProgressWarning",
    "WorkerDied",
    "air_of",
    "aside",
    "blas_threads",
    "enough_threads",
    "in_threads",
    "n_threads_or_default",
    "reports",
    "require_executor",
    "run",
    "stream",
    "ticker",
]

_BEAT = 0.2  # seconds between two looks at whether a callback wants an end, or a signal has come

# GNU's OpenMP cannot start threads in a process forked from one that has used them: it would wait for ever.
_in_forked_child = False

_blas_lock = threading.Lock()


def _after_fork() -> None:
    global _in_forked_child, _blas_lock
    _in_forked_child = True
    _blas_lock = threading.Lock()  # a thread that is not here any more may have had it
    _of_process.held.clear()
    _here.limits = _Limits()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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
    return 1 if _in_forked_child else min(wanted, machine.MOST_THREADS)


def enough_threads(n_threads: int, nanoseconds: float, *, of_python: bool = False) -> int:
    """At most the threads that pay for about so much work: OpenMP's, or Python's, which take longer to start.

    Starting a team costs microseconds on an idle machine, and milliseconds where its threads wait for a busy core.
    """
    return max(1, min(n_threads, int(nanoseconds / (2_000_000 if of_python else 50_000))))


class WorkerDied(RuntimeError):
    """A worker of an executor ended without an answer: killed, out of memory, or crashed."""


def require_executor(executor: Any) -> None:
    """Refuse what cannot be given tasks."""
    if callable(getattr(executor, "get_executor", None)):  # its submit() gives no concurrent.futures.Future
        raise TypeError(f"executor is a client of dask's: pass client.get_executor(), got {executor!r}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, got {executor!r}")


def run(
    function: Callable[..., Any],
    tasks: Sequence[tuple],
    executor: Any = None,
    tick: Any = None,
    name: str = "task",
) -> list[Any]:
    """[function(*task) for task in tasks], by an executor where one is given.

    The first error ends it: tasks that have not begun are cancelled, those in threads of this process stop at their
    next tick, and others run to their end unheard. Ctrl-C does the same.

    Parameters
    ----------
    function : callable
        At the top level of a module, so that other processes can import it.
    tasks : list of tuple
        Its arguments. Handles that `sharing.Scattered` gave are opened where the task runs.
    executor : concurrent.futures.Executor, optional
        Any: a thread or process pool, loky's, dask's `client.get_executor()`, mpi4py's. It is not shut down.
    tick : callable or None
        Told of the number of tasks that are done.
    name : str
        Of a task, for errors.

    Returns
    -------
    list
        In the order of the tasks.

    Raises
    ------
    WorkerDied
        If a worker ended before its task.

    Examples
    --------
    >>> run(pow, [(2, 3), (3, 2)])
    [8, 9]
    """
    require_executor(executor)
    if executor is None:
        results = []
        for i, task in enumerate(tasks):
            results.append(function(*map(sharing.opened, task)))
            if tick is not None:
                tick(i + 1, len(tasks))
        return results
    given_up = threading.Event()
    first = (_stoppable, given_up) if sharing.in_this_process(executor) else (_opened,)
    futures: list[Future] = []
    try:
        for task in tasks:
            futures.append(_submitted(executor, *first, function, *task))
        _await(futures, tick, name)
        return [future.result() for future in futures]
    except BaseException:
        given_up.set()
        for future in futures:
            future.cancel()
        raise


def _submitted(executor: Any, *call: Any) -> Future:
    try:
        return executor.submit(*call)
    except BrokenExecutor as error:
        raise WorkerDied(f"the executor takes no more tasks, as a worker of it has ended before: {error}") from error


def _opened(function: Callable[..., Any], *task: Any) -> Any:
    return function(*map(sharing.opened, task))


def _stoppable(given_up: threading.Event, function: Callable[..., Any], *task: Any) -> Any:
    with progress.stoppable(given_up):
        return _opened(function, *task)


def _result(future: Future, which: str, n_more: int) -> Any:
    """Of a task that is done; or its error, which says where it happened."""
    if future.cancelled():
        raise WorkerDied(f"{which} was cancelled by the executor, as dask does where a worker died with data")
    error = future.exception()
    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":  # the latter is dask's
        left = f" and {n_more} more" if n_more else ""
        raise WorkerDied(
            f"a worker of the executor ended before it had answered: {which}{left} got no answer. Workers that run out "
            f"of memory are killed like that; fewer of them, or a smaller cache_mb, may help ({error})"
        ) from error
    if error is not None:
        error.add_note(f"(in {which}, run by an executor)")
        raise error
    return future.result()


def _await(futures: list[Future], tick: Any, name: str) -> None:
    """Return when all are done, or raise the error of the first that failed."""
    number = {future: i + 1 for i, future in enumerate(futures)}
    waiting, total, n_done = set(futures), len(futures), 0
    while waiting:
        done, waiting = wait(waiting, timeout=_BEAT, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=number.__getitem__):
            _result(future, f"{name} {number[future]} of {total}", len(waiting))
            n_done += 1
            if tick is not None:
                tick(n_done, total)
        if tick is not None and not done:
            tick.air()


def stream(
    function: Callable[..., Any], tasks: Iterable[tuple], executor: Any = None, tick: Any = None, name: str = "task"
) -> Iterator[Any]:
    """Yield function(*task) in the order of the tasks, as `run` computes them, but only a few ahead of the reader.

    Parameters
    ----------
    function, tasks, executor, name
        As in `run`; tasks may be made while others run.
    tick : Ticker, optional
        Told to breathe while there is nothing to read.

    Yields
    ------
    object
        One result a task.

    Examples
    --------
    >>> list(stream(pow, ((2, k) for k in range(3))))
    [1, 2, 4]
    """
    if executor is None:
        for i, task in enumerate(tasks):
            try:
                result = function(*map(sharing.opened, task))
            except Exception as error:
                error.add_note(f"(in {name} {i + 1})")
                raise
            yield result
        return
    require_executor(executor)
    given_up, tasks, ahead = threading.Event(), iter(tasks), 2 * sharing.n_workers(executor)
    first = (_stoppable, given_up) if sharing.in_this_process(executor) else (_opened,)
    waiting: deque[Future] = deque()
    number, more = 0, True
    try:
        while more or waiting:
            while more and len(waiting) < ahead:
                task = next(tasks, None)
                more = task is not None
                if more:
                    waiting.append(_submitted(executor, *first, function, *task))
            if waiting:
                number += 1
                while not wait([waiting[0]], timeout=_BEAT).done:
                    if tick is not None:
                        tick.air()
                yield _result(waiting.popleft(), f"{name} {number}", len(waiting))
    finally:
        given_up.set()
        for future in waiting:
            future.cancel()


def aside(function: Callable[..., Any], *arguments: Any, tick: Any = None) -> Any:
    """function(*arguments) of another library's, which looks at no signals: Ctrl-C, and what a callback raises, is
    answered meanwhile.

    What the call still computes is thrown away when it is done. Its thread is no daemon, so a program ends after it:
    BLAS may hang where a process ends in the middle of a computation.

    Parameters
    ----------
    function : callable
        Releases the GIL. In a thread that no signal reaches it is simply called.
    *arguments
        Its own.
    tick : Ticker, optional
        Told to breathe several times a second.

    Returns
    -------
    object
        What the function gives; what it raises is raised.

    Examples
    --------
    >>> aside(pow, 2, 3)
    8
    """
    if tick is None and threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    answer: Future = Future()

    def work() -> None:
        try:
            answer.set_result(function(*arguments))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name="kernelrules-aside").start()
    while not wait([answer], timeout=_BEAT).done:  # not by join: interrupted, it believes that the thread has ended
        if tick is not None:
            tick.air()
    return answer.result()


# ---- BLAS held to one thread, and threads of our own around it ----------------------------------------------------


class _Limits:
    """Numbers of threads that are wanted of some libraries at once: the smallest counts, and the last one out gives
    them back what they had."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.before: list[int] = []

    def take(self, libraries: Sequence[Any], n_threads: int) -> None:
        """One more."""
        if not self.held:
            self.before = [library.num_threads for library in libraries]
        if not self.held or n_threads < min(self.held):
            _set_threads(libraries, [n_threads] * len(libraries))
        self.held.append(n_threads)

    def give_back(self, libraries: Sequence[Any], n_threads: int) -> None:
        """One less; a process that was forked inside holds none."""
        if n_threads not in self.held:
            return
        self.held.remove(n_threads)
        if not self.held:
            _set_threads(libraries, self.before)
        elif n_threads < min(self.held):
            _set_threads(libraries, [min(self.held)] * len(libraries))


_of_process = _Limits()
_here = threading.local()  # .limits: of libraries that keep a number for each thread


def _set_threads(libraries: Sequence[Any], numbers: Sequence[int]) -> None:
    """Of each library. Since threadpoolctl 3.8 OpenBLAS hears one thread of a process only, the first that ever set a
    number and did not hand it on: whoever has our lock is heard, and hands it on."""
    for library, number in zip(libraries, numbers, strict=True):
        if library.num_threads == number:
            continue
        hand_on = getattr(library, "clear_controlling_thread", None)
        if hand_on is not None:
            hand_on(force=True)
        library.set_num_threads(number)
        if hand_on is not None:
            hand_on(force=True)


@functools.cache
def _blas_libraries() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """NumPy's and SciPy's, which are loaded by now (looking for them takes milliseconds): those with one number of
    threads for the process, and those with one for each thread, as MKL and what is built upon OpenMP."""
    common, own = [], []
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        local = "MKL_Set_Num_Threads_Local" in getattr(library, "check_symbols", ())  # before 3.8 threadpoolctl set all
        (own if local or getattr(library, "threading_layer", None) == "openmp" else common).append(library)
    return tuple(common), tuple(own)


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """BLAS on at most that many threads inside; on one, its sums do not depend on how many cores there are.

    Of most libraries the limit is the process's: where several are inside, here or in other threads, the smallest one
    counts until it is left.
    """
    common, own = _blas_libraries()
    if not hasattr(_here, "limits"):
        _here.limits = _Limits()
    with _blas_lock:
        _of_process.take(common, n_threads)
        _here.limits.take(own, n_threads)
    try:
        yield
    finally:
        with _blas_lock:
            _here.limits.give_back(own, n_threads)
            _of_process.give_back(common, n_threads)


def _one_blas_thread_here() -> None:
    """In a thread of `in_threads`, which ends with its limit."""
    _set_threads(_blas_libraries()[1], [1] * len(_blas_libraries()[1]))


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
    with ThreadPoolExecutor(n_threads, initializer=_one_blas_thread_here) as pool:
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
