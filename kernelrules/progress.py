"""What a long computation tells about itself: to a callback, and to a bar.

The core calls tick(done, total[, violation]); a `Ticker` is such a tick. A computation has parts (a kernel matrix, then
a solver), each of which counts from 0; the ticker puts them one behind the other.

Invariant: of what a callback hears, `done` never falls, and equals `total` in the last call of a computation that ends.
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

__all__ = ["Progress", "ProgressWarning", "Stopped", "Ticker", "air_of", "reports", "stoppable", "stopper", "ticker"]


_BEAT = 0.2  # seconds after which the same is told again


class ProgressWarning(UserWarning):
    """A bar was asked for, and there is nothing to draw it with."""


class Stopped(Exception):
    """Raised inside a task that was given up."""


@dataclass(frozen=True)
class Progress:
    """How far a computation is: what callbacks are given.

    `done` of `total` pieces of work, whose size is the computation's own affair. `total` is what is known of it so far:
    an iterative solver has a limit in it that it rarely needs.
    """

    what: str
    done: int
    total: int
    violation: float | None = None  # of the optimality conditions, where there are any: falls to the tolerance

    @property
    def fraction(self) -> float:
        """Between 0 and 1."""
        return self.done / self.total if self.total else 1.0


class Ticker:
    """tick(done, total[, violation]) of one computation, for a callback, a bar, or both."""

    def __init__(self, callback: Callable[[Progress], Any] | None, what: str, bar: Any = None) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}")
        self.callback, self.what, self.bar = callback, what, bar
        self.before = 0  # pieces of the parts that are over
        self.part = (0, 1)  # done and total of the part under way
        self.violation: float | None = None
        self.last = time.monotonic()
        self.told: Progress | None = None

    def __call__(self, done: int, total: int, violation: float | None = None) -> None:
        """Tell of a part: `done` of its `total` pieces. Fewer than before: another part has begun."""
        if done < self.part[0]:
            self.before += self.part[0]
        self.part, self.violation = (done, total), violation
        self._tell(Progress(self.what, self.before + done, self.before + total, violation))

    def air(self) -> None:
        """Tell the same again, now and then: a place where a callback can end the computation."""
        if time.monotonic() - self.last > _BEAT:
            done, total = self.part
            self._tell(Progress(self.what, self.before + done, self.before + total, self.violation))

    def inner(self, progress: Progress) -> None:
        """The callback of a part that is itself a computation."""
        self(progress.done, progress.total, progress.violation)

    def breathe(self, progress: Progress) -> None:
        """The callback of a part whose pieces are not counted."""
        self.air()

    def finish(self) -> None:
        """The computation is over. A solver had a limit to go to; it is done with less."""
        told = self.told or Progress(self.what, 0, 1)
        if told.done < told.total:
            end = max(told.done, 1) if told.violation is not None else told.total
            self._tell(Progress(self.what, end, end, told.violation))

    def _tell(self, progress: Progress) -> None:
        self.told, self.last = progress, time.monotonic()
        if self.bar is not None:
            self.bar.total = progress.total if progress.violation is None or progress.fraction == 1 else None
            self.bar.n = progress.done
            if progress.violation is not None:
                self.bar.set_postfix_str(f"violation {progress.violation:.2g}", refresh=False)
            self.bar.update(0)
        if self.callback is not None:
            self.callback(progress)


def _bar(what: str) -> Any:
    """A bar of tqdm's, or None and a warning where tqdm is not installed."""
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        warnings.warn(
            "progress=True draws its bar with tqdm, which is not installed: pip install kernelrules[progress]",
            ProgressWarning,
            stacklevel=check.level_of_caller(),
        )
        return None
    return tqdm(desc=what)


def ticker(callback: Callable[[Progress], Any] | None, what: str) -> Any:
    """What the core calls as tick(done, total[, violation]), made of a user's callback(progress).

    None where nobody listens; in a task of a thread, a function that ends it when it is given up.
    """
    return stopper() if callback is None else Ticker(callback, what)


def air_of(tick: Any) -> Any:
    """A tick for a part whose pieces are not counted, or None."""
    return None if tick is None else lambda *_: tick.air()


_Function = TypeVar("_Function", bound=Callable[..., Any])


def reports(what: str) -> Callable[[_Function], _Function]:
    """Make a function that takes a callback tell its end, too, and show a bar where `progress` is true.

    Parameters
    ----------
    what : str
        The name of the computation, in what a callback is told.

    Returns
    -------
    decorator
        For functions with the arguments `callback` and `progress`. They need not look at the latter.

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
        def told(*arguments: Any, callback: Any = None, progress: Any = False, **options: Any) -> Any:
            if callback is None and progress is False:
                return function(*arguments, **options)
            return tell(function, what, arguments, options, callback, progress)

        # With the function's own globals: doctest takes a function for one of the module that it sees.
        same = types.FunctionType(
            told.__code__, function.__globals__, function.__name__, told.__defaults__, told.__closure__
        )
        same.__kwdefaults__ = told.__kwdefaults__
        return functools.update_wrapper(same, function)

    tell = _tell
    return decorate


def _tell(
    function: Callable[..., Any], what: str, arguments: tuple, options: dict, callback: Any, progress: Any
) -> Any:
    """The function's result; its callback is heard through a ticker that sees to the end."""
    if progress is not True and progress is not False:
        raise TypeError(f"progress must be True or False, got {progress!r}")
    tick = Ticker(callback, what)
    tick.bar = _bar(what) if progress else None
    try:
        result = function(*arguments, callback=tick.inner, **options)
        tick.finish()
        return result
    finally:
        if tick.bar is not None:
            tick.bar.close()


# ---- tasks in threads, which no signal reaches --------------------------------------------------------------------

_here = threading.local()


class _Stopper:
    """A tick that ends a task of this thread once it is given up."""

    def __init__(self, given_up: threading.Event) -> None:
        self.given_up = given_up

    def __call__(self, *_: Any) -> None:
        if self.given_up.is_set():
            raise Stopped("the result of this task is no longer wanted")

    air = inner = breathe = __call__


def stopper() -> _Stopper | None:
    """The tick of a task that can be stopped; None where this thread runs none."""
    given_up = getattr(_here, "given_up", None)
    return None if given_up is None else _Stopper(given_up)


@contextmanager
def stoppable(given_up: threading.Event) -> Iterator[None]:
    """Inside, ticks of this thread end what they are ticks of when the event is set."""
    before = getattr(_here, "given_up", None)
    _here.given_up = given_up
    try:
        yield
    finally:
        _here.given_up = before
