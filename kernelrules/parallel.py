"""Numbers of threads, tasks for executors, and limits of BLAS threads.

`n_threads` = None means the cores that this process may use, by its affinity and its container's quota, but no more
than OMP_NUM_THREADS and threadpoolctl allow. Results do not depend on it. The loops of the core run on a team of
threads that all callers share (core/base/team.h).

Independent fits run as tasks: `run` and `stream` pass them to any concurrent.futures.Executor. Tasks, and so results,
are the same with and without an executor.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any

from threadpoolctl import LibController, ThreadpoolController
from threadpoolctl import register as register_controller

from kernelrules import check, progress, shared_data
from kernelrules.cluster import WorkerDied, Workers
from kernelrules.core.base import team
from kernelrules.core.simd import cpu
from kernelrules.progress import Progress, ProgressWarning, reports, ticker, uncounted_tick

__all__ = [
    "Progress",
    "ProgressWarning",
    "WorkerDied",
    "blas_threads",
    "enough_threads",
    "in_threads",
    "interruptible_call",
    "n_threads_or_default",
    "reports",
    "require_executor",
    "run",
    "stream",
    "ticker",
    "uncounted_tick",
]

_DASK_WORKER_ERRORS = ("KilledWorker", "NoWorkerError", "NoValidWorkerError")  # class names
_HEARTBEAT = 0.2  # seconds between two checks for signals and for errors of a callback

_in_forked_child = False
_blas_lock = threading.Lock()


def _after_fork() -> None:
    global _in_forked_child, _blas_lock
    _in_forked_child = True
    _blas_lock = threading.Lock()  # a thread of the parent may have held it
    _process_limits.held.clear()
    _thread_state.limits = _Limits()
    _helpers.cache_clear()  # their threads do not exist in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _omp_num_threads() -> int:
    """Return the first number of OMP_NUM_THREADS, or the largest possible number if it has none."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(first)) if first.isdecimal() else cpu.MAX_THREADS


def _cgroup_cores(folder: str = "/sys/fs/cgroup") -> float:
    """Return the CPU quota of this process's container in cores, infinity without one."""
    for name in ("cpu.max", "cpu/cpu.cfs_quota_us"):
        try:
            with open(os.path.join(folder, name)) as file:
                quota, *period = file.read().split()
            if not period:
                with open(os.path.join(folder, "cpu/cpu.cfs_period_us")) as file:
                    period = file.read().split()
            cores = float(quota) / float(period[0])
        except (OSError, ValueError, IndexError, ZeroDivisionError):  # "max" is not a number
            continue
        if cores > 0:
            return cores
    return math.inf


@functools.cache
def _quota() -> float:
    return _cgroup_cores()


class TeamController(LibController):
    """Makes threadpoolctl control the core's team: `threadpool_limits(1)` limits the default to 1."""

    user_api = "kernelrules"
    internal_api = "kernelrules"
    filename_prefixes = ("team.",)
    check_symbols = ("PyInit_team",)
    limit = _omp_num_threads()

    def get_num_threads(self) -> int:
        """Return the largest default number of threads of a call."""
        return min(TeamController.limit, _usable_cores())

    def set_num_threads(self, num_threads: int) -> None:
        """Set the largest default for the whole process."""
        TeamController.limit = max(1, num_threads)

    def get_version(self) -> None:
        """Return None: the version is that of the package."""
        return None


register_controller(TeamController)


def _usable_cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, math.ceil(min(_quota(), cores))))


def n_threads_or_default(n_threads: Any = None) -> int:
    """Return the number of threads to use.

    Parameters
    ----------
    n_threads : int or None
        None: the default described above, or 1 in a forked child process, which usually pending the cores with the
        other workers of a pool.

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
        alone = _in_forked_child or not team.has_threads()
        wanted = 1 if alone else min(_usable_cores(), TeamController.limit)
    return min(wanted, cpu.MAX_THREADS)


def enough_threads(n_threads: int, nanoseconds: float, *, of_python: bool = False) -> int:
    """Limit the number of threads to those that are worth starting for this amount of work.

    A thread of the core pays off from 50 µs of work on, a Python thread (`of_python`) from 2 ms on.
    """
    return max(1, min(n_threads, int(nanoseconds / (2_000_000 if of_python else 50_000))))


def require_executor(executor: Any) -> None:
    """Refuse objects that cannot run tasks."""
    if callable(getattr(executor, "get_executor", None)):  # its submit() does not return a concurrent.futures.Future
        raise TypeError(f"executor is a dask client: pass client.get_executor(), got {executor!r}")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor, got {executor!r}")


def run(
    function: Callable[..., Any],
    tasks: Sequence[tuple],
    executor: Any = None,
    tick: Any = None,
    name: str = "task",
) -> list[Any]:
    """Return [function(*task) for task in tasks], computed by an executor if one is given.

    After the first error, or Ctrl-C, tasks that have not started are cancelled, and tasks in threads of this process
    stop at their next tick. Tasks in other processes run to completion; their results are discarded.

    Parameters
    ----------
    function : callable
        At the top level of a module, so that other processes can import it.
    tasks : list of tuple
        Its arguments. Handles that `shared_data.Scattered` gave are opened where the task runs.
    executor : concurrent.futures.Executor, optional
        A thread or process pool, loky, dask's `client.get_executor()`, mpi4py, ... It is not shut down.
    tick : callable or None
        Called with the number of completed tasks.
    name : str
        Name of a task in error messages.

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
            results.append(function(*map(shared_data.open_handle, task)))
            if tick is not None:
                tick(i + 1, len(tasks))
        return results
    stopped = threading.Event()
    first = (_stoppable, stopped) if shared_data.in_this_process(executor) else (_call_opened,)
    futures: list[Future] = []
    try:
        for task in tasks:
            futures.append(_submitted(executor, *first, function, *task))
        _wait_for(futures, tick, name, Workers(executor))
        return [future.result() for future in futures]
    except BaseException:
        stopped.set()
        for future in futures:
            future.cancel()
        raise


def _submitted(executor: Any, *call: Any) -> Future:
    try:
        return executor.submit(*call)
    except BrokenExecutor as error:
        raise WorkerDied(f"the executor takes no more tasks, because one of its workers has died: {error}") from error


def _call_opened(function: Callable[..., Any], *task: Any) -> Any:
    return function(*map(shared_data.open_handle, task))


def _stoppable(stopped: threading.Event, function: Callable[..., Any], *task: Any) -> Any:
    with progress.stoppable(stopped):
        return _call_opened(function, *task)


def _result(future: Future, which: str, n_more: int) -> Any:
    """Return the result of a completed task, or raise its error with a note that names the task."""
    if future.cancelled():
        raise WorkerDied(f"{which} was cancelled by the executor, as dask does if a worker died that held data")
    error = future.exception()
    if isinstance(error, BrokenExecutor) or type(error).__name__ in _DASK_WORKER_ERRORS:
        left = f" and {n_more} more" if n_more else ""
        raise WorkerDied(
            f"a worker of the executor died: {which}{left} got no answer. The usual cause is lack of memory; fewer "
            f"workers, or a smaller cache_mb, may help ({error})"
        ) from error
    if error is not None:
        error.add_note(f"(in {which}, run by an executor)")
        raise error
    return future.result()


def _wait_for(futures: list[Future], tick: Any, name: str, workers: Workers) -> None:
    """Wait until all are done, or raise the error of the first that failed."""
    number = {future: i + 1 for i, future in enumerate(futures)}
    waiting, total, n_done = set(futures), len(futures), 0
    while waiting:
        done, waiting = wait(waiting, timeout=_HEARTBEAT, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=number.__getitem__):
            _result(future, f"{name} {number[future]} of {total}", len(waiting))
            n_done += 1
            if tick is not None:
                tick(n_done, total)
        if not done:
            first = min(map(number.__getitem__, waiting))
            more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
            workers.require(f"{name} {first} of {total}{more} got no answer")
            if tick is not None:
                tick.check_interrupt()


def stream(
    function: Callable[..., Any], tasks: Iterable[tuple], executor: Any = None, tick: Any = None, name: str = "task"
) -> Iterator[Any]:
    """Yield function(*task) in the order of the tasks, as `run` computes them, submitting only a few tasks ahead.

    Parameters
    ----------
    function, tasks, executor, name
        As in `run`; `tasks` may be a generator.
    tick : Ticker, optional
        Its `check_interrupt` is called while waiting.

    Yields
    ------
    object
        One result per task.

    Examples
    --------
    >>> list(stream(pow, ((2, k) for k in range(3))))
    [1, 2, 4]
    """
    if executor is None:
        for i, task in enumerate(tasks):
            try:
                result = function(*map(shared_data.open_handle, task))
            except Exception as error:
                error.add_note(f"(in {name} {i + 1})")
                raise
            yield result
        return
    require_executor(executor)
    stopped, tasks, ahead = threading.Event(), iter(tasks), 2 * shared_data.n_workers(executor)
    first = (_stoppable, stopped) if shared_data.in_this_process(executor) else (_call_opened,)
    waiting: deque[Future] = deque()
    workers = Workers(executor)
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
                while not wait([waiting[0]], timeout=_HEARTBEAT).done:
                    workers.require(f"{name} {number} got no answer")
                    if tick is not None:
                        tick.check_interrupt()
                yield _result(waiting.popleft(), f"{name} {number}", len(waiting))
    finally:
        stopped.set()
        for future in waiting:
            future.cancel()


def interruptible_call(function: Callable[..., Any], *arguments: Any, tick: Any = None) -> Any:
    """Return function(*arguments) of another library that does not check for signals.

    The function runs in a thread, so that Ctrl-C and errors of a callback end the call at once. The thread then runs
    to completion and its result is discarded. It is not a daemon thread, because BLAS may hang if a process ends in
    the middle of a computation.

    Parameters
    ----------
    function : callable
        Releases the GIL. It is called directly in threads other than the main one, which receive no signals.
    *arguments
        Arguments of the function.
    tick : Ticker, optional
        Its `check_interrupt` is called several times per second.

    Returns
    -------
    object
        The result of the function; its exceptions are raised.

    Examples
    --------
    >>> interruptible_call(pow, 2, 3)
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

    try:
        threading.Thread(target=work, name="kernelrules-interruptible").start()
    except RuntimeError:  # the thread limit is reached, or the interpreter is shutting down
        return function(*arguments)
    while not wait([answer], timeout=_HEARTBEAT).done:  # not join(): once interrupted, it takes the thread for ended
        if tick is not None:
            tick.check_interrupt()
    return answer.result()


# ---- limits of BLAS threads, and Python threads that call BLAS ----------------------------------------------------


class _Limits:
    """Nested limits of the threads of some libraries. The smallest holds; the last one restores the former numbers."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.before: list[int] = []

    def acquire(self, libraries: Sequence[Any], n_threads: int) -> None:
        """Add a limit."""
        if not self.held:
            self.before = [library.num_threads for library in libraries]
        if not self.held or n_threads < min(self.held):
            _set_threads(libraries, [n_threads] * len(libraries))
        self.held.append(n_threads)

    def release(self, libraries: Sequence[Any], n_threads: int) -> None:
        """Remove a limit, if it is held: a forked child holds none."""
        if n_threads not in self.held:
            return
        self.held.remove(n_threads)
        if not self.held:
            _set_threads(libraries, self.before)
        elif n_threads < min(self.held):
            _set_threads(libraries, [min(self.held)] * len(libraries))


_process_limits = _Limits()
_thread_state = threading.local()  # .limits: those of libraries that keep a number per thread


def _set_threads(libraries: Sequence[Any], numbers: Sequence[int]) -> None:
    """Set the number of threads of each library; the caller holds `_blas_lock`.

    Since threadpoolctl 3.8, OpenBLAS accepts numbers only from its controlling thread, the first that set one. So the
    controlling thread is cleared before and after.
    """
    for library, number in zip(libraries, numbers, strict=True):
        if library.num_threads == number:
            continue
        clear_controlling_thread = getattr(library, "clear_controlling_thread", None)
        if clear_controlling_thread is not None:
            clear_controlling_thread(force=True)
        library.set_num_threads(number)
        if clear_controlling_thread is not None:
            clear_controlling_thread(force=True)


@functools.cache
def _blas_libraries() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return two groups of BLAS libraries: with one number of threads per process, and with one per thread (MKL, and
    libraries built on OpenMP). The search takes milliseconds."""
    common, own = [], []
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        local = "MKL_Set_Num_Threads_Local" in getattr(
            library, "check_symbols", ()
        )  # threadpoolctl before 3.8 sets both
        (own if local or getattr(library, "threading_layer", None) == "openmp" else common).append(library)
    return tuple(common), tuple(own)


@contextmanager
def blas_threads(n_threads: int) -> Iterator[None]:
    """Limit BLAS to this many threads; with one, its sums do not depend on the number of cores.

    For most libraries the limit holds for the whole process: of several contexts, here or in other threads, the
    smallest limit holds until its context ends.
    """
    common, own = _blas_libraries()
    if not hasattr(_thread_state, "limits"):
        _thread_state.limits = _Limits()
    with _blas_lock:
        _process_limits.acquire(common, n_threads)
        _thread_state.limits.acquire(own, n_threads)
    try:
        yield
    finally:
        with _blas_lock:
            _thread_state.limits.release(own, n_threads)
            _process_limits.release(common, n_threads)


def _one_blas_thread_here() -> None:
    """Limit BLAS to one thread in a thread of `in_threads`."""
    _set_threads(_blas_libraries()[1], [1] * len(_blas_libraries()[1]))


def in_threads(
    function: Callable[..., Any],
    tasks: Iterable[tuple],
    n_threads: int,
    check_interrupt: Callable[[], None] | None = None,
) -> Iterator[Any]:
    """Yield function(*task) in the order of the tasks, computed by threads of this process.

    Parameters
    ----------
    function : callable
        Releases the GIL for most of its time, as NumPy's products do.
    tasks : iterable of tuple
        Its arguments. At most two tasks per thread are pending.
    n_threads : int
        1: the calling thread computes.
    check_interrupt : callable, optional
        Called in the calling thread before each result is yielded.

    Yields
    ------
    object
        One result per task.

    Examples
    --------
    >>> list(in_threads(pow, [(2, 3), (3, 2)], 2))
    [8, 9]
    """
    tasks = iter(tasks)
    if n_threads == 1:
        for task in tasks:
            result = function(*task)
            if check_interrupt is not None:
                check_interrupt()
            yield result
        return
    pool, pending = _helpers(n_threads - 1), deque()
    try:
        more = True
        while more or pending:
            while more and len(pending) < 2 * n_threads:
                task = next(tasks, None)
                more = task is not None
                if more:
                    pending.append(_PendingTask(pool, function, task))
            if pending:
                while not pending[0].done:  # the caller works too, so that a helper without a core delays nothing
                    if not any(task.run_by_caller() for task in pending):
                        pending[0].wait_for_helper()
                if check_interrupt is not None:
                    check_interrupt()
                yield pending.popleft().result()
    finally:
        for unfinished in pending:
            unfinished.abandon()


@functools.cache
def _helpers(n_threads: int) -> ThreadPoolExecutor:
    """Return the threads that help callers of `in_threads`; they are kept, because starting them waits for a core."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="kernelrules", initializer=_one_blas_thread_here)


class _PendingTask:
    """A task that a helper thread or the caller runs, whichever is free first."""

    def __init__(self, pool: ThreadPoolExecutor, function: Callable[..., Any], task: tuple) -> None:
        self._function, self._task, self._process = function, task, os.getpid()
        self._future: Future = Future()
        # If no thread can be started, or the interpreter is shutting down, the caller runs the task. The pool may have
        # queued it nevertheless: the side that cannot cancel the future, or finds it cancelled, leaves the task alone.
        with suppress(RuntimeError):
            pool.submit(_help, self._future, function, task)

    @property
    def done(self) -> bool:
        return self._future.done() and not self._future.cancelled()

    def run_by_caller(self) -> bool:
        """Run the task here if no helper has started it, and return whether it ran."""
        if self._future.cancelled() or not self._future.cancel():
            return False
        self._future = Future()
        _settle(self._future, self._function, self._task)
        return True

    def wait_for_helper(self) -> None:
        """Wait until a helper has completed the task."""
        if self._orphaned():
            raise RuntimeError("a process that was forked during a computation cannot continue it")
        wait([self._future])

    def abandon(self) -> None:
        """Cancel the task, or wait until its helper is done."""
        if not self._future.cancel() and not self._orphaned():
            wait([self._future])

    def result(self) -> Any:
        """Return the result of the task, or raise its error."""
        return self._future.result()

    def _orphaned(self) -> bool:
        """Return whether this is a forked child, in which the helpers of its parent do not exist."""
        return os.getpid() != self._process


def _help(future: Future, function: Callable[..., Any], task: tuple) -> None:
    if future.set_running_or_notify_cancel():
        _settle(future, function, task)


def _settle(future: Future, function: Callable[..., Any], task: tuple) -> None:
    """Run a task and set its result or error; KeyboardInterrupt is also raised here."""
    try:
        result = function(*task)
    except BaseException as error:
        future.set_exception(error)
        if not isinstance(error, Exception):
            raise
    else:
        future.set_result(result)
