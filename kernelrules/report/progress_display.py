"""Progress of the command line: a tqdm bar if tqdm is installed, else a line; one line per step if written to a file.

`begin(total)` is called first, `step(text)` before each of `total` steps, and `end()` last. `callback` is passed to
long computations and redraws the bar.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, TextIO

__all__ = ["Bar", "Line", "Silent", "shown_progress"]

_REDRAW_SECONDS = 0.5  # between two drawings of a bar within a step


class Silent:
    """Shows nothing."""

    callback: Any = None

    def begin(self, total: int) -> None:
        """Set the number of steps."""

    def step(self, text: str) -> None:
        """Show that the next step begins."""

    def end(self) -> None:
        """Show that all steps are done."""


class Line(Silent):
    """One line that is rewritten at each step; one line per step if written to a file."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.total, self.done, self.width = stream, 0, 0, 0
        self.again = "\r" if stream.isatty() else ""

    def begin(self, total: int) -> None:
        """Set the number of steps."""
        self.total = total

    def step(self, text: str) -> None:
        """Show that the next step begins."""
        self.done += 1
        self._write(f"[{self.done}/{self.total}] {text}")

    def end(self) -> None:
        """Show that all steps are done."""
        self._write("done")
        if self.again:
            self.stream.write("\n")

    def _write(self, text: str) -> None:
        padded = text.ljust(self.width) if self.again else text
        self.width = len(text)
        self.stream.write(f"{self.again}{padded}" if self.again else f"{padded}\n")
        self.stream.flush()


class Bar(Silent):
    """A tqdm bar."""

    def __init__(self, tqdm: Any, stream: TextIO) -> None:
        self.tqdm, self.stream, self.bar = tqdm, stream, None
        self.begun, self.drawn = 0, 0.0
        self.callback = self._keep_going

    def begin(self, total: int) -> None:
        """Set the number of steps."""
        form = "{percentage:3.0f}% |{bar:24}| {elapsed} {desc}"
        self.bar = self.tqdm(total=total, file=self.stream, bar_format=form, dynamic_ncols=True)

    def step(self, text: str) -> None:
        """Show that the next step begins."""
        self.bar.set_description_str(text, refresh=False)
        self._advance()
        self.begun += 1

    def end(self) -> None:
        """Show that all steps are done."""
        self.bar.set_description_str("done", refresh=False)
        self._advance()
        self.bar.close()

    def _advance(self) -> None:
        """To the end of the steps begun so far."""
        self.bar.n = self.begun
        self.bar.refresh()

    def _keep_going(self, _: Any) -> None:
        now = time.monotonic()
        if now - self.drawn > _REDRAW_SECONDS:
            self.drawn = now
            self.bar.refresh()


def shown_progress(*, quiet: bool = False, stream: TextIO | None = None) -> Silent:
    """Return the best display for the stream."""
    stream = sys.stderr if stream is None else stream
    if quiet:
        return Silent()
    if not stream.isatty():
        return Line(stream)
    try:
        return Bar(importlib.import_module("tqdm").tqdm, stream)
    except ImportError:
        return Line(stream)
