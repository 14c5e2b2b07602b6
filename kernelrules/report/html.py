"""Helpers for HTML: text is escaped unless it is `Markup`, and wide tables scroll."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["Markup", "details", "figure", "paragraph", "section", "table"]

_UNBROKEN_CHARACTERS = 18  # of a name that is kept on one line


class Markup(str):
    """A string that is HTML."""

    __slots__ = ()


def text(content: Any) -> str:
    """Return text escaped, and markup as it is."""
    return content if isinstance(content, Markup) else escape(str(content))


def paragraph(*contents: Any, class_: str = "") -> Markup:
    """Return a paragraph of text and markup."""
    name = f' class="{class_}"' if class_ else ""
    return Markup(f"<p{name}>{''.join(text(each) for each in contents)}</p>")


def section(name: str, heading: str, *contents: Any) -> Markup:
    """Return a section of the page with an anchor."""
    inside = "".join(text(each) for each in contents)
    title = f'<h2 id="{name}-h">{escape(heading)}</h2>'
    return Markup(f'<section id="{name}" aria-labelledby="{name}-h">{title}{inside}</section>')


def figure(drawing: str, caption: Any) -> Markup:
    """Return a drawing with a caption."""
    return Markup(f'<figure><div class="scroll">{drawing}</div><figcaption>{text(caption)}</figcaption></figure>')


def details(summary: str, *contents: Any) -> Markup:
    """Return a collapsed part of the page."""
    return Markup(f"<details><summary>{escape(summary)}</summary>{''.join(text(each) for each in contents)}</details>")


def table(
    caption: str, head: Sequence[Any], rows: Iterable[Sequence[Any]], *, marked: int | None = None, left: int = 1
) -> Markup:
    """Return a table whose first columns are text and the others numbers.

    Parameters
    ----------
    caption : str
        What it shows.
    head : sequence
        Names of the columns.
    rows : iterable of sequence
        Cells; the first is the row's name.
    marked : int, optional
        The row to mark.
    left : int
        How many columns are text.

    Returns
    -------
    Markup
        In a box that scrolls.
    """
    names = "".join(f'<th scope="col"{_side(i, left)}>{text(cell)}</th>' for i, cell in enumerate(head))
    lines = []
    for place, row in enumerate(rows):
        first, *others = row
        short = ' class="k"' if len(str(first)) <= _UNBROKEN_CHARACTERS else ""
        cells = f'<th scope="row"{short}>{text(first)}</th>'
        cells += "".join(f"<td{_side(i + 1, left)}>{text(cell)}</td>" for i, cell in enumerate(others))
        mark = ' class="best"' if place == marked else ""
        lines.append(f"<tr{mark}>{cells}</tr>")
    label = escape(caption)
    return Markup(
        f'<p class="cap" aria-hidden="true">{label}</p><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{label}"><table aria-label="{label}"><thead><tr>{names}</tr></thead><tbody>{"".join(lines)}'
        "</tbody></table></div>"
    )


def _side(place: int, left: int) -> str:
    return "" if place < left else ' class="n"'
