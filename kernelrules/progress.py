"""What a long computation tells about itself: to a callback, and to a bar.

The core calls tick(done, total[, violation]); a `Ticker` is such a tick. A computation has parts (a kernel matrix, then
a solver), each of which counts from 0; the ticker puts them one behind the other.

Invariant: of what a callback hears, `done` never falls, and equals `total` in the last call of a computation that ends.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Progress", "ProgressWarning", "Stopped", "Ticker", "finish", "stoppable", "stopper", "ticker"]


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
    """tick(done, total[, violation]) of one computation, for a user's callback, a bar, or both."""

    def __init__(self, callback: Callable[[Progress], Any] | None, what: str, progress: bool = False) -> None:
        self.callback, self.what = callback, what
        self.before = 0  # pieces of the parts that are over
        self.part = (0, 0)  # done and total of the part under way
        self.violation: float | None = None
        self.told: Progress | None = None
        self.bar = _bar(what) if progress else None

    def __call__(self, done: int, total: int, violation: float | None = None) -> None:
        """Tell of a part: `done` of its `total` pieces. Fewer than before, or another total, is another part."""
        if done < self.part[0] or total != self.part[1]:
            self.before += self.part[0]
        self.part, self.violation = (done, total), violation
        self.air()

    def air(self) -> None:
        """Tell the same again: a place where a callback can end the computation."""
        self._tell(Progress(self.what, self.before + self.part[0], self.before + self.part[1], self.violation))

    def inner(self, progress: Progress) -> None:
        """The callback of a part that is itself a computation."""
        self(progress.done, progress.total, progress.violation)

    def breathe(self, progress: Progress) -> None:
        """The callback of a part whose pieces are not counted."""
        self.air()

    def finish(self) -> None:
        """The computation is over: all that was to be done is done."""
        done = self.before + self.part[0] if self.told is None or self.told.violation is not None else self.told.total
        last = Progress(self.what, max(done, 1), max(done, 1), self.violation)
        if self.told is None or self.told.done < self.told.total:
            self._tell(last)
        self.close()

    def close(self) -> None:
        """The bar stays as it is."""
        if self.bar is not None:
            self.bar.close()

    def _tell(self, progress: Progress) -> None:
        self.told = progress
        if self.bar is not None:
            self.bar.total = progress.total if progress.violation is None else None
            self.bar.n = progress.done
            if progress.violation is not None:
                self.bar.set_postfix_str(f"violation {progress.violation:.2g}", refresh=False)
            self.bar.update(0)
        if self.callback is not None:
            try:
                self.callback(progress)
            except BaseException:
                self.close()
                raise


def _bar(what: str) -> Any:
    """A bar of tqdm's, or None and a warning where tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        warnings.warn(
            "progress=True draws its bar with tqdm, which is not installed: pip install kernelrules[progress]",
            ProgressWarning,
            stacklevel=5,
        )
        return None
    return tqdm(desc=what, total=None, leave=True)


def ticker(callback: Callable[[Progress], Any] | None, what: str, progress: bool = False) -> Any:
    """What the core calls as tick(done, total[, violation]): None, where nobody listens.

    Parameters
    ----------
    callback : callable or None
        The user's, of a `Progress`.
    what : str
        The name of the computation.
    progress : bool
        Whether to show a bar. `finish` closes it.

    Returns
    -------
    Ticker or None
        A function that ends a task, in a thread whose tasks can be stopped.

    Examples
    --------
    >>> tick = ticker(print, "demo")
    >>> tick(1, 2)
    Progress(what='demo', done=1, total=2, violation=None)
    >>> finish(tick)
    Progress(what='demo', done=2, total=2, violation=None)
    """
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    if progress is not True and progress is not False:
        raise TypeError(f"progress must be True or False, got {progress!r}")
    if callback is None and not progress:
        return stopper()
    return Ticker(callback, what, progress)


def finish(tick: Any) -> None:
    """The end of a computation that had this tick, or None."""
    if isinstance(tick, Ticker):
        tick.finish()


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
