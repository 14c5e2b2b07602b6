"""How results are displayed: `repr` is one short line, and a notebook shows a small table below it.

Both are made here for every result, from two methods of its class:

    _summary()     a few short texts, such as kind, sizes, certificate   ->  Name(text, text, ...)
    _html_body()   HTML below that line; by default the table of the fields

Invariant: the line has no line break and less than 200 characters. HTML is self-contained, all its elements are closed,
and everything that comes from data (names, labels, levels) is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from kernelrules.results.frozen import Frozen

__all__ = ["Result", "card", "certificate_text", "counted", "evenly_spaced", "fields_table", "number", "short", "table"]

_MAX_REPR_LENGTH = 190
_MAX_TABLE_ROWS = 30
_MAX_ENTRIES_WRITTEN = 6  # entries of an array that are written out
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"
_CELL = "text-align:left;padding:2px 12px 2px 0"  # notebooks have cells to the right
_FRAME = "font-family:sans-serif;font-size:13px;line-height:1.4;overflow-x:auto;max-width:70em"


class Result(Frozen):
    """Base of results: `repr` and HTML. Fields declared with `field(repr=False)` are not in the table."""

    def _summary(self) -> Iterable[str]:
        return (f"{name} {value_text(value)}" for name, value in _shown_fields(self))

    def _html_body(self) -> str:
        return fields_table(self)

    def __repr__(self) -> str:
        """One line."""
        return (
            f"{type(self).__name__}({short(', '.join(self._summary()), _MAX_REPR_LENGTH - len(type(self).__name__))})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        return card(self, self._html_body())


# ---- texts ------------------------------------------------------------------------------------------------------


def short(text: Any, most: int = 60) -> str:
    """Return the text as one line of at most `most` characters; a longer one ends with an ellipsis."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def number(value: Any, digits: int = 4) -> str:
    """Return a number with a few digits; integers have all of them."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return f"{float(value):.{digits}g}"


def counted(n: int, what: str, several: str | None = None) -> str:
    """Return a number with its noun in the singular or plural."""
    return f"{n} {what if n == 1 else several or what + 's'}"


def certificate_text(certificate: Any) -> str:
    """Return the duality gap and the objective of a solution."""
    end = "" if certificate.converged else ", not converged"
    return f"gap {number(certificate.gap, 2)} of {number(certificate.primal)}{end}"


def value_text(value: Any) -> str:
    """Return the text of a value of any type in a table."""
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return number(value)
    if isinstance(value, dict):
        return short(", ".join(f"{key} = {value_text(entry)}" for key, entry in value.items()))
    if isinstance(value, (tuple, list)):
        return (
            short(", ".join(map(value_text, value))) if len(value) <= _MAX_ENTRIES_WRITTEN else f"{len(value)} entries"
        )
    if hasattr(value, "nnz") and hasattr(value, "shape"):
        return f"{type(value).__name__} {_shape_text(value.shape)}, {counted(value.nnz, 'entry', 'entries')}"
    return short(value if isinstance(value, str) else repr(value), 120)


def _array_text(array: np.ndarray) -> str:
    if array.size <= _MAX_ENTRIES_WRITTEN and array.ndim == 1:
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
    """Return the summary line, with the class in bold, and the HTML below it."""
    line = html.escape(repr(result))
    name = html.escape(type(result).__name__)
    return f'<div style="{_FRAME}"><div><b>{name}</b>{line[len(name) :]}</div>{body}</div>'


def fields_table(result: Any) -> str:
    """Return a table of the names and values of the fields."""
    return table((), [(name, value_text(value)) for name, value in _shown_fields(result)])


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, bold: int | None = None, more: int = 0) -> str:
    """Return an HTML table of escaped texts and numbers; row `bold` is in bold, and `more` rows are not shown."""
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


def evenly_spaced(n: int, *always: int) -> list[int]:
    """Return up to thirty evenly spaced places of n, with the first, the last and those of `always`."""
    places = np.arange(n) if n <= _MAX_TABLE_ROWS else np.linspace(0, n - 1, _MAX_TABLE_ROWS).round().astype(int)
    return sorted({*places.tolist(), *always})
