"""How results look: `repr` in one short line, and in a notebook a small table.

Both are made here for every result, from what the class says of itself:

    _says()   a few short texts: kind, sizes, certificate     ->  Name(text, text, ...)
    _body()   HTML that is more than the table of the fields   ->  below that line

Invariant: the line has no line break and less than 200 characters; HTML is self-contained, closes what it opens, and
whatever came from data (names, labels, levels) is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["Result", "card", "counted", "fields_table", "number", "of_certificate", "short", "some_of", "table"]

_MOST_LETTERS = 190
_MOST_ROWS = 30
_FEW = 6  # entries of an array that are written out
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = "text-align:left;padding:2px 12px 2px 0"  # notebooks have cells to the right
_FRAME = "font-family:sans-serif;font-size:13px;line-height:1.4;overflow-x:auto;max-width:70em"


class Result:
    """What a result shows of itself. Fields declared with `field(repr=False)` are not in its table."""

    def _says(self) -> Iterable[str]:
        return (f"{name} {value_text(value)}" for name, value in _shown_fields(self))

    def _body(self) -> str:
        return fields_table(self)

    def __repr__(self) -> str:
        """One line."""
        return f"{type(self).__name__}({short(', '.join(self._says()), _MOST_LETTERS - len(type(self).__name__))})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return card(self, self._body())


# ---- texts ------------------------------------------------------------------------------------------------------


def short(text: Any, most: int = 60) -> str:
    """The text in one line of at most so many letters, the last an ellipsis where some are lost."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def number(value: Any, digits: int = 4) -> str:
    """A number to a few digits; whole ones with all of them."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return f"{float(value):.{digits}g}"


def counted(n: int, what: str, several: str | None = None) -> str:
    """So many of something."""
    return f"{n} {what if n == 1 else several or what + 's'}"


def of_certificate(certificate: Any) -> str:
    """How good a solution is, in a few words."""
    end = "" if certificate.converged else ", not converged"
    return f"gap {number(certificate.gap, 2)} of {number(certificate.primal)}{end}"


def value_text(value: Any) -> str:
    """What stands in a table for a value of whatever type."""
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return number(value)
    if isinstance(value, dict):
        return short(", ".join(f"{key} = {value_text(entry)}" for key, entry in value.items()))
    if isinstance(value, (tuple, list)):
        return short(", ".join(map(value_text, value))) if len(value) <= _FEW else f"{len(value)} entries"
    if hasattr(value, "nnz") and hasattr(value, "shape"):
        return f"{type(value).__name__} {_shape_text(value.shape)}, {counted(value.nnz, 'entry', 'entries')}"
    return short(value if isinstance(value, str) else repr(value), 120)


def _array_text(array: np.ndarray) -> str:
    if array.size <= _FEW and array.ndim == 1:
        return short("[" + ", ".join(value_text(entry) for entry in array.tolist()) + "]")
    text = f"{array.dtype} {_shape_text(array.shape)}"
    if array.dtype.kind not in "iuf" or array.size == 0:
        return text
    known = np.asarray(array)[~np.isnan(array)] if array.dtype.kind == "f" else np.asarray(array)
    return f"{text}, {number(known.min())} to {number(known.max())}" if known.size else f"{text}, all nan"


def _shape_text(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def _shown_fields(result: Any) -> list[tuple[str, Any]]:
    if is_dataclass(result):
        pairs = [(each.name, getattr(result, each.name)) for each in fields(result) if each.repr]
    else:
        pairs = list(result._asdict().items())
    return [(name, value) for name, value in pairs if value is not None]


# ---- html -------------------------------------------------------------------------------------------------------


def card(result: Any, body: str) -> str:
    """The line in bold, and what comes below it."""
    line = html.escape(repr(result))
    name = html.escape(type(result).__name__)
    return f'<div style="{_FRAME}"><div><b>{name}</b>{line[len(name) :]}</div>{body}</div>'


def fields_table(result: Any) -> str:
    """Names and values of the fields."""
    return table((), [(name, value_text(value)) for name, value in _shown_fields(result)])


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, bold: int | None = None, more: int = 0) -> str:
    """An HTML table of texts and numbers, escaped; one row in bold, and a last one that counts those left out."""
    lines = []
    if heads:
        lines.append(f'<tr style="{_LINE}">' + "".join(f'<th style="{_CELL}">{_cell(h)}</th>' for h in heads) + "</tr>")
    for k, row in enumerate(rows):
        cells = (f"<b>{_cell(entry)}</b>" if k == bold else _cell(entry) for entry in row)
        lines.append(f'<tr style="{_LINE}">' + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>")
    if more > 0:
        lines.append(f'<tr><td colspan="{max(len(heads), 1)}">… {more} more</td></tr>')
    return (
        f'<table style="border-collapse:collapse;margin:.4em 0;font-size:inherit">{"".join(lines)}</table>'
        if lines
        else ""
    )


def _cell(entry: Any) -> str:
    return html.escape(entry if isinstance(entry, str) else number(entry))


def some_of(n: int, *always: int) -> list[int]:
    """Up to thirty places of n, evenly, the first, the last and those asked for among them."""
    places = np.arange(n) if n <= _MOST_ROWS else np.linspace(0, n - 1, _MOST_ROWS).round().astype(int)
    return sorted({*places.tolist(), *always})
