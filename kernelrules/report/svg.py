"""Just enough SVG: elements with attributes, all text escaped, one drawing with a title and a description for readers
that cannot see it; and axes with round numbers.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

__all__ = ["PALETTE", "Axis", "Drawing", "text_width"]

# Okabe and Ito's colours, which most colour-blind people tell apart, the darkest first
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f")
_CHARACTER = 0.56  # width of an average letter, in units of the font's size


def text_width(text: str, size: float = 13) -> float:
    """Return the approximate width of a text."""
    return len(text) * size * _CHARACTER


class Drawing:
    """A list of elements in drawing order."""

    def __init__(
        self, width: float, height: float, title: str, description: str, *, least: float = 0, class_: str = "chart"
    ) -> None:
        self.width, self.height, self.least, self.class_ = width, height, least, class_
        self.title, self.description = title, description
        self.parts: list[str] = []

    def add(self, tag: str, content: str | None = None, /, tip: str | None = None, **attributes: Any) -> None:
        """Add an element; `class_` and `stroke_width` become class and stroke-width, numbers are rounded."""
        inside = "" if tip is None else f"<title>{escape(tip)}</title>"
        inside += "" if content is None else escape(content)
        self.parts.append(f"<{tag}{_attributes(attributes)}>{inside}</{tag}>")

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> None:
        """Add a straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)

    def text(self, x: float, y: float, content: str, *, anchor: str = "start", **attributes: Any) -> None:
        """Add a line of text, vertically centred at y."""
        self.add("text", content, x=x, y=y, dy="0.35em", text_anchor=anchor, **attributes)

    def path(self, xs: Any, ys: Any, **attributes: Any) -> None:
        """Add a polyline."""
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in zip(xs, ys, strict=True))
        self.add("polyline", points=points, fill="none", **attributes)

    def area(self, xs: Any, lows: Any, highs: Any, **attributes: Any) -> None:
        """Add the area between two polylines."""
        there = [f"{_number(x)},{_number(y)}" for x, y in zip(xs, lows, strict=True)]
        back = [f"{_number(x)},{_number(y)}" for x, y in zip(xs, highs, strict=True)]
        self.add("polygon", points=" ".join(there + back[::-1]), **attributes)

    def __str__(self) -> str:
        """Return the SVG element, which shrinks with its container down to a minimum width."""
        style = f"max-width:{_number(self.width)}px;min-width:{_number(min(self.least, self.width))}px"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(self.width)} {_number(self.height)}" '
            f'class="{self.class_}" role="img" aria-label="{escape(self.title)}. {escape(self.description)}" '
            f'style="{style}">{"".join(self.parts)}</svg>'
        )


def _attributes(attributes: dict[str, Any]) -> str:
    parts = []
    for name, value in attributes.items():
        if value is not None:
            shown = _number(value) if isinstance(value, (int, float, np.number)) else escape(str(value))
            parts.append(f' {name.rstrip("_").replace("_", "-")}="{shown}"')
    return "".join(parts)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Axis:
    """A linear or logarithmic map from numbers to coordinates, with ticks."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False) -> None:
        if not low < high:
            low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log

    def __call__(self, value: Any) -> Any:
        """Return the coordinates of numbers."""
        change = np.log if self.log else np.asarray
        low, high = float(change(self.low)), float(change(self.high))
        return self.start + (change(np.asarray(value, dtype=np.float64)) - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round numbers within the range."""
        if self.log:
            return self._powers(most)
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        step *= next(factor for factor in (1, 2, 5, 10, 20) if (self.high - self.low) / (step * factor) <= most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _powers(self, most: int) -> list[float]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = [factor * 10.0**decade for decade in decades for factor in factors]
            inside = [number for number in found if self.low * 0.999 <= number <= self.high * 1.001]
            if len(inside) <= most:
                return inside
        return inside[:: math.ceil(len(inside) / most)]
