"""Progress reports of long computations, to a callback and to a progress bar.

The core calls tick(done, total[, violation]); a `Ticker` is such a tick. A computation has parts (a kernel matrix, then
a solver), each of which counts from 0; the ticker adds them up.

Invariant: the `done` that a callback receives never falls, and equals `total` in the last call of a completed
computation.
"""

from __future__ import annotations

import functools
import importlib
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from kernelrules import check
from kernelrules.docstrings import shared_parameters

__all__ = [
    "Progress",
    "ProgressWarning",
    "Stopped",
    "Ticker",
    "reports",
    "stop_tick",
    "stoppable",
    "ticker",
    "uncounted_tick",
]


_HEARTBEAT = 0.2  # seconds after which `check_interrupt` reports again


class ProgressWarning(UserWarning):
    """A progress bar was requested, but tqdm is not installed."""


class Stopped(Exception):
    """Raised inside a task whose result is no longer needed."""


@dataclass(frozen=True)
class Progress:
    """The state of a computation that callbacks receive.

    `done` of `total` units of work, which depend on the computation. `total` is an estimate so far: for an iterative
    solver it includes the iteration limit, which is rarely reached.
    """

    what: str
    done: int
    total: int
    violation: float | None = None  # of the optimality conditions, for iterative solvers: falls to the tolerance

    @property
    def fraction(self) -> float:
        """`done` / `total`, between 0 and 1."""
        return self.done / self.total if self.total else 1.0


class Ticker:
    """The tick(done, total[, violation]) of one computation, for a callback, a bar, or both."""

    def __init__(self, callback: Callable[[Progress], Any] | None, what: str, bar: Any = None) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}")
        self.callback, self.what, self.bar = callback, what, bar
        self.before = 0  # units of the completed parts
        self.part = (0, 1)  # done and total of the current part
        self.violation: float | None = None
        self.last = time.monotonic()
        self.last_report: Progress | None = None

    def __call__(self, done: int, total: int, violation: float | None = None) -> None:
        """Report `done` of `total` units of a part. If `done` is smaller than before, another part has begun."""
        if done < self.part[0]:
            self.before += self.part[0]
        self.part, self.violation = (done, total), violation
        self._report(Progress(self.what, self.before + done, self.before + total, violation))

    def check_interrupt(self) -> None:
        """Report the last state again if 0.2 s have passed, so that a callback can end the computation."""
        if time.monotonic() - self.last > _HEARTBEAT:
            done, total = self.part
            self._report(Progress(self.what, self.before + done, self.before + total, self.violation))

    def nested(self, progress: Progress) -> None:
        """Callback for a part that is itself a computation with progress reports."""
        self(progress.done, progress.total, progress.violation)

    def uncounted(self, progress: Progress) -> None:
        """Callback for a part whose units are not counted."""
        self.check_interrupt()

    def finish(self) -> None:
        """Report completion. A solver that converged before its iteration limit has done all of its work."""
        last = self.last_report or Progress(self.what, 0, 1)
        if last.done < last.total:
            end = max(last.done, 1) if last.violation is not None else last.total
            self._report(Progress(self.what, end, end, last.violation))

    def _report(self, progress: Progress) -> None:
        self.last_report, self.last = progress, time.monotonic()
        if self.bar is not None:
            self.bar.total = progress.total if progress.violation is None or progress.fraction == 1 else None
            self.bar.n = progress.done
            if progress.violation is not None:
                self.bar.set_postfix_str(f"violation {progress.violation:.2g}", refresh=False)
            self.bar.update(0)
        if self.callback is not None:
            self.callback(progress)


def _bar(what: str) -> Any:
    """Return a tqdm bar; without tqdm, warn and return None."""
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        warnings.warn(
            "progress=True requires tqdm, which is not installed: pip install kernelrules[progress]",
            ProgressWarning,
            stacklevel=check.level_of_caller(),
        )
        return None
    return tqdm(desc=what)


def ticker(callback: Callable[[Progress], Any] | None, what: str) -> Any:
    """Return the function that the core calls as tick(done, total[, violation]) for a user's callback(progress).

    Without a callback it is None; in a task that can be stopped it is a function that raises once the task is stopped.
    """
    return stop_tick() if callback is None else Ticker(callback, what)


def uncounted_tick(tick: Any) -> Any:
    """Return a tick for a part whose units are not counted, or None."""
    return None if tick is None else lambda *_: tick.check_interrupt()


_Function = TypeVar("_Function", bound=Callable[..., Any])


def reports(what: str) -> Callable[[_Function], _Function]:
    """Make a function report its completion to its callback, and show a bar if `progress` is true.

    The shared parameters (`kernelrules.docstrings`) are inserted into its docstring.

    Parameters
    ----------
    what : str
        Name of the computation, the `what` of its `Progress`.

    Returns
    -------
    decorator
        For functions with the arguments `callback` and `progress`. They may ignore `progress`.

    Examples
    --------
    >>> @reports("demo")
    ... def double(x, *, callback=None, progress=False):
    ...     ticker(callback, "inside")(1, 3)
    ...     return 2 * x
    >>> double(4, callback=print)
    Progress(what='demo', done=1, total=3, violation=None)
    Progress(what='demo', done=3, total=3, violation=None)
    8
    """

    def decorate(function: _Function) -> _Function:
        def reporting(*arguments: Any, callback: Any = None, progress: Any = False, **options: Any) -> Any:
            if callback is None and progress is False:
                return function(*arguments, **options)
            return run(function, what, arguments, options, callback, progress)

        # With the function's own globals, by which doctest decides which module a function belongs to.
        same = types.FunctionType(
            reporting.__code__, function.__globals__, function.__name__, reporting.__defaults__, reporting.__closure__
        )
        same.__kwdefaults__ = reporting.__kwdefaults__
        return functools.update_wrapper(same, shared_parameters(function))

    run = _run_with_progress
    return decorate


def _run_with_progress(
    function: Callable[..., Any], what: str, arguments: tuple, options: dict, callback: Any, progress: Any
) -> Any:
    """Return the function's result; report its progress and completion to the callback and the bar."""
    if progress is not True and progress is not False:
        raise TypeError(f"progress must be True or False, got {progress!r}")
    tick = Ticker(callback, what)
    tick.bar = _bar(what) if progress else None
    try:
        result = function(*arguments, callback=tick.nested, **options)
        tick.finish()
        return result
    finally:
        if tick.bar is not None:
            tick.bar.close()


# ---- tasks in threads, which no signal reaches --------------------------------------------------------------------

_here = threading.local()


class _Stopper:
    """A tick that raises once the task of this thread is stopped."""

    def __init__(self, stopped: threading.Event) -> None:
        self.stopped = stopped

    def __call__(self, *_: Any) -> None:
        if self.stopped.is_set():
            raise Stopped("the result of this task is no longer needed")

    check_interrupt = nested = uncounted = __call__


def stop_tick() -> _Stopper | None:
    """Return the tick of the task that this thread runs, or None if it runs none that can be stopped."""
    stopped = getattr(_here, "stopped", None)
    return None if stopped is None else _Stopper(stopped)


@contextmanager
def stoppable(stopped: threading.Event) -> Iterator[None]:
    """Within this context, ticks of this thread raise `Stopped` once the event is set."""
    before = getattr(_here, "stopped", None)
    _here.stopped = stopped
    try:
        yield
    finally:
        _here.stopped = before
