"""What a person who waits sees: a bar by tqdm where that is installed, else a line; in a file a line a step.

`begin(total)`, `step(text)` before each of so many steps, `end()`. `callback` is what long computations are given; it
keeps the bar's clock going.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, TextIO

__all__ = ["Bar", "Line", "Silent", "shown_progress"]

_SECONDS = 0.5  # between two drawings of a bar within a step


class Silent:
    """Shows nothing."""

    callback: Any = None

    def begin(self, total: int) -> None:
        """So many steps will come."""

    def step(self, text: str) -> None:
        """The next one begins."""

    def end(self) -> None:
        """All are done."""


class Line(Silent):
    """One line that is written anew at each step; where it goes to a file, a line a step."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.total, self.done, self.width = stream, 0, 0, 0
        self.again = "\r" if stream.isatty() else ""

    def begin(self, total: int) -> None:
        """So many steps will come."""
        self.total = total

    def step(self, text: str) -> None:
        """The next one begins."""
        self.done += 1
        self._write(f"[{self.done}/{self.total}] {text}")

    def end(self) -> None:
        """All are done."""
        self._write("done")
        if self.again:
            self.stream.write("\n")

    def _write(self, text: str) -> None:
        padded = text.ljust(self.width) if self.again else text
        self.width = len(text)
        self.stream.write(f"{self.again}{padded}" if self.again else f"{padded}\n")
        self.stream.flush()


class Bar(Silent):
    """A bar of tqdm's."""

    def __init__(self, tqdm: Any, stream: TextIO) -> None:
        self.tqdm, self.stream, self.bar = tqdm, stream, None
        self.begun, self.drawn = 0, 0.0
        self.callback = self._keep_going

    def begin(self, total: int) -> None:
        """So many steps will come."""
        form = "{percentage:3.0f}% |{bar:24}| {elapsed} {desc}"
        self.bar = self.tqdm(total=total, file=self.stream, bar_format=form, dynamic_ncols=True)

    def step(self, text: str) -> None:
        """The next one begins."""
        self.bar.set_description_str(text, refresh=False)
        self._advance()
        self.begun += 1

    def end(self) -> None:
        """All are done."""
        self.bar.set_description_str("done", refresh=False)
        self._advance()
        self.bar.close()

    def _advance(self) -> None:
        """To the end of the steps begun so far."""
        self.bar.n = self.begun
        self.bar.refresh()

    def _keep_going(self, _: Any) -> None:
        now = time.monotonic()
        if now - self.drawn > _SECONDS:
            self.drawn = now
            self.bar.refresh()


def shown_progress(*, quiet: bool = False, stream: TextIO | None = None) -> Silent:
    """The best that can be shown here."""
    stream = sys.stderr if stream is None else stream
    if quiet:
        return Silent()
    if not stream.isatty():
        return Line(stream)
    try:
        return Bar(importlib.import_module("tqdm").tqdm, stream)
    except ImportError:
        return Line(stream)
