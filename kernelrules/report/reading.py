"""Reading of CSV files into columns of text, and inference of numeric or categorical columns.

    bytes -> text (gzip, byte-order marks, encodings) -> rows (delimiter by trial) -> `Sheet` -> `guess` -> `Column`

A column is numeric if its cells are numbers, except missing ones and at most one in twenty others. Otherwise it is
categorical. Columns without information are not used: constants, missing values only, text that hardly repeats, row
numbers. Cells keep the text of the file. The meaning of commas in numbers, thousands or decimals, is stored separately,
so that another file can be read in the same way.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kernelrules.results.show import counted, short

__all__ = [
    "Column",
    "DataError",
    "Sheet",
    "as_categories",
    "as_numbers",
    "comma_note",
    "guess",
    "meant_by_commas",
    "read_sheet",
]

_MISSING = frozenset(["", "na", "n/a", "nan", "?", "null", "#n/a", "nat"])  # in lower case
_NO_NUMBER = _MISSING | {"none", "-", "--", "."}  # missing among numbers; among text they may be a category
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LETTERS_OF_NUMBERS = frozenset("0123456789+-.eE")
_COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?", re.ASCII)
_INFINITE = frozenset(["inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"])
_ROW_NUMBER = re.compile(r"(column 1|row names?|.*\bid|index|idx|row|nr|no|number|#|unnamed.*)", re.IGNORECASE)
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_OTHER_FILES = {
    b"PK\x03\x04": "a ZIP or Excel file: save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel file: save the sheet as CSV",
    b"PAR1": "a Parquet file",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"BZh": "packed with bzip2: unpack it, or use gzip",
    b"\xfd7zXZ": "packed with xz: unpack it, or use gzip",
}
_MARKUP = {"<!doctype html": "HTML", "<html": "HTML", "<?xml": "XML"}  # in lower case
# Byte-order marks; that of UTF-32 begins as one of UTF-16 does, so it comes first.
_WIDE = {32: (b"\xff\xfe\0\0", b"\0\0\xfe\xff"), 16: (b"\xff\xfe", b"\xfe\xff")}
_PROBED = 1 << 16  # characters from which the delimiter is inferred
_MAX_STRAY_SHARE = 0.05  # of the cells of a numeric column that are not numbers
_FEW_VALUES = 20  # least different values of a numeric column with strays; text with fewer is always categorical


class DataError(ValueError):
    """Data that cannot be used; the message is written for the user of the command line."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """The cells of a file.

    Attributes
    ----------
    source : str
        Name for messages.
    names : tuple of str
        Names of the columns, all different.
    cells : tuple of list of str
        One list per column, stripped of spaces.
    notes : tuple of str
        Remarks on reading the file.
    grouped : frozenset of str
        Numeric columns whose commas separate thousands.
    """

    source: str
    names: tuple[str, ...]
    cells: tuple[list[str], ...]
    notes: tuple[str, ...]
    grouped: frozenset[str] = frozenset()

    def commas(self, name: str) -> str:
        """Return the meaning of commas in a column, as an argument of `as_numbers`."""
        return "thousands" if name in self.grouped else ""

    @property
    def n_rows(self) -> int:
        """Number of rows without the header."""
        return len(self.cells[0])


@dataclass(frozen=True, eq=False)
class Column:
    """A column as the learners use it.

    Attributes
    ----------
    name : str
        As in the sheet.
    kind : {"number", "category"}
        What it holds.
    values : ndarray (n,) of float64
        The numbers, or the codes of categories: places in `levels`. NaN is missing.
    levels : tuple of str, or None
        Of categories, in ascending order (as numbers where all are).
    used : bool
        Whether learners see it.
    note : str
        What was found, and why it is left out.
    commas : {"", "decimal", "thousands"}
        What commas in its numbers are; "" where there are none.
    """

    name: str
    kind: str
    values: np.ndarray
    levels: tuple[str, ...] | None
    used: bool
    note: str
    commas: str = ""

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        return int(np.isnan(self.values).sum())

    @property
    def n_different(self) -> int:
        """Number of different values."""
        return len(self.levels) if self.levels is not None else len(np.unique(self.values[~np.isnan(self.values)]))


# ---- the file -----------------------------------------------------------------------------------------------------


def read_sheet(path: str | Path, *, header: bool = True) -> Sheet:
    """Read the cells of a CSV file.

    Parameters
    ----------
    path : path, or "-"
        The file, optionally compressed by gzip; "-" is standard input. Cells are separated by comma, semicolon, tab
        or bar, whichever gives the first lines equally many cells.
    header : bool
        Whether the first line holds the names of the columns.

    Returns
    -------
    Sheet
        Columns of text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kernelrules.report.reading import read_sheet
    >>> path = pathlib.Path(tempfile.mkdtemp(), "small.csv")
    >>> _ = path.write_text("age;height\\n3;0,95\\n5;1,12\\n")
    >>> sheet = read_sheet(path)
    >>> sheet.names, sheet.cells[1]
    (('age', 'height'), ['0,95', '1,12'])
    """
    source = "what was piped in" if str(path) == "-" else Path(path).name
    text, notes = _decoded(_bytes_of(path), source)
    _require_no_markup(text, source)
    delimiter = _delimiter(text)
    rows = _rows(text, delimiter, source)
    if not rows:
        raise DataError(f"{source} is empty: there is not even a line of column names")
    first, rows = (rows[0], rows[1:]) if header else (None, rows)
    if header and not rows:
        raise DataError(f"{source} has a line of column names but no rows of data")
    if header and all(_NUMBER.fullmatch(cell) for cell in first[1]):
        raise DataError(
            f"the first line of {source} holds numbers, not column names: add a line of names, or use --no-header"
        )
    given = first[1] if header else [f"column {place + 1}" for place in range(len(rows[0][1]))]
    names = _names(_square(given, rows, source, header=header), notes)
    columns = tuple(list(column) for column in zip(*(cells for _, cells in rows), strict=True))
    grouped = frozenset(name for name, cells in zip(names, columns, strict=True) if _is_grouped(cells, delimiter))
    if delimiter != ",":
        notes.insert(0, f"cells separated by {_DELIMITERS[delimiter]}")
    return Sheet(source, names, columns, tuple(notes), grouped)


def _bytes_of(path: str | Path) -> bytes:
    if str(path) == "-":
        raw = sys.stdin.buffer.read()
    else:
        path = Path(path)
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a CSV file")
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            raise DataError(f"there is no file {path}") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} starts as a gzip file but cannot be unpacked: {error}") from None


def _decoded(raw: bytes, source: str) -> tuple[str, list[str]]:
    for start, what in _OTHER_FILES.items():
        if raw.startswith(start):
            raise DataError(f"{source} is not CSV but {what}")
    for bits, marks in _WIDE.items():
        if raw.startswith(marks):
            try:
                return raw.decode(f"utf-{bits}"), [f"UTF-{bits} text"]
            except UnicodeDecodeError:
                raise DataError(f"{source} is not a text file: it is no valid UTF-{bits}") from None
    strange = sum(raw[:_PROBED].count(byte) for byte in (*range(9), *range(14, 32), 127))
    if b"\0" in raw or strange > 0.01 * len(raw[:_PROBED]):
        raise DataError(f"{source} is not a text file: it holds bytes that no CSV file has")
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), ["not UTF-8: read as Windows-1252 text"]


def _require_no_markup(text: str, source: str) -> None:
    """Refuse texts that begin as web pages and XML do, and JSON: one value, or one a line."""
    start = text.lstrip()
    markup = next((what for beginning, what in _MARKUP.items() if start[:40].lower().startswith(beginning)), None)
    if markup:
        raise DataError(f"{source} is {markup}, not CSV")
    if not start.startswith(("[", "{")):
        return
    try:
        _, end = json.JSONDecoder().raw_decode(start)
    except (ValueError, RecursionError):
        return
    if re.match(r"[ \t]*([\r\n]|$)", start[end:]):
        raise DataError(f"{source} is JSON, not CSV")


def _delimiter(text: str) -> str:
    """The separator with which most of the first lines are equally wide.

    Of equals the one whose first line, the names, is as wide as the others (decimal commas are not in names), or one
    narrower, as R writes it; then the one that makes them widest.
    """
    probe = text[:_PROBED]
    if len(probe) < len(text):
        probe = probe[: probe.rfind("\n") + 1] or probe
    best, found = (0.0, 0, 0), ","
    for delimiter in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(probe, newline=""), delimiter=delimiter) if row]
        except csv.Error:
            continue
        if not widths:
            continue
        width, times = Counter(widths).most_common(1)[0]
        if width == 1:
            continue
        fit = {width: 2, width - 1: 1}.get(widths[0], 0)
        score = (round(times / len(widths), 1), fit, width)
        if score > best:
            best, found = score, delimiter
    return found


def _rows(text: str, delimiter: str, source: str) -> list[tuple[int, list[str]]]:
    """Lines that are not blank: their numbers and cells. A row without a value is one, but at the end of the file.

    In a file of one column a blank line after the first is such a row. Strict reading is what finds a quotation that
    never ends.
    """
    for strict in (True, False):
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=strict
        )  # fmt: skip
        try:
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
            break
        except csv.Error as error:
            if "end of data" in str(error):
                raise DataError(f"{source} opens a quotation mark that is never closed") from None
            if not strict:
                raise DataError(f"{source} cannot be read at line {reader.line_num}: {error}") from None
    while rows and not any(rows[-1][1]):  # spreadsheets leave lines of commas at the end
        rows.pop()
    filled = [(line, cells) for line, cells in rows if any(cells)]
    if not filled or max(len(cells) for _, cells in filled) > 1:
        return [(line, cells) for line, cells in rows if len(cells) > 1 or any(cells)]
    return [(line, cells or [""]) for line, cells in rows if line >= filled[0][0]]


def _square(names: list[str], rows: list[tuple[int, list[str]]], source: str, *, header: bool) -> list[str]:
    """Names for as many columns as all rows have: cells at the end that are empty everywhere go."""
    width = len(names)
    widths = {len(cells) for _, cells in rows}
    if widths == {width + 1} and all(not cells[-1] for _, cells in rows):
        for _, cells in rows:
            cells.pop()
        return names
    if widths == {width + 1} and width > 1:
        return ["row name", *names]  # as R writes them
    if header and width == 1 and max(widths) > 1:
        raise DataError(
            f"the first line of {source} is “{short(names[0])}” and others have {counted(max(widths), 'cell')}: is "
            "it a title or a comment? Column names must come first, one for each column"
        )
    for line, cells in rows:
        if len(cells) != width:
            raise DataError(
                f"line {line} of {source} has {counted(len(cells), 'cell')} but there are "
                f"{counted(width, 'column name')}; is a quotation mark missing there or before?"
            )
    return names


def _names(given: list[str], notes: list[str]) -> tuple[str, ...]:
    """Return unique names of all columns."""
    names: list[str] = []
    taken = set(given)
    for place, name in enumerate(given):
        unique = name or f"column {place + 1}"
        number = 2
        while unique in names or (unique != name and unique in taken):
            unique = f"{name or f'column {place + 1}'} ({number})"
            number += 1
        if not name:
            notes.append(f"column {place + 1} has no name: called “{unique}”")
        elif unique != name:
            notes.append(f"there are several columns “{name}”: one is called “{unique}”")
        names.append(unique)
    return tuple(names)


def _is_grouped(cells: list[str], delimiter: str) -> bool:
    """Numbers such as 12,500: where all commas stand before three digits, and could not be decimal ones.

    One comma could be, but hardly where commas separate the cells.
    """
    different = set(cells)
    grouped = {cell for cell in different if "," in cell}
    if not grouped or not all(_GROUPED.fullmatch(cell) for cell in grouped):
        return False
    if not all(cell.lower() in _NO_NUMBER or _NUMBER.fullmatch(cell) for cell in different - grouped):
        return False
    return delimiter == "," or any("." in cell or cell.count(",") > 1 for cell in different)


# ---- a column -----------------------------------------------------------------------------------------------------


def as_numbers(cells: list[str], commas: str = "") -> tuple[np.ndarray, Counter[str]]:
    """Numbers, NaN for cells that are none; and those of them that do not mean missing, with how often they occur.

    Commas are marks of thousands or decimal commas, as is said; where nothing is, decimal ones if no cell has a point.
    """
    plain = _plain_numbers(cells)
    if plain is not None:
        return plain, Counter()
    counts = Counter(cells)
    known = [cell for cell in counts if cell.lower() not in _NO_NUMBER]
    there = any("," in cell for cell in known)
    decimal = there and (commas == "decimal" or (not commas and not any("." in cell for cell in known)))
    shape, mark = (_COMMA_NUMBER, ".") if decimal else (_NUMBER, "")
    value = dict.fromkeys(counts, np.nan)
    stray: Counter[str] = Counter()
    for cell in known:
        is_number = shape.fullmatch(cell) or (commas == "thousands" and _GROUPED.fullmatch(cell))
        number = float(cell.replace(",", mark)) if is_number else np.nan
        if np.isfinite(number):
            value[cell] = number
        else:
            stray[cell] = counts[cell]
    return np.array([value[cell] for cell in cells], dtype=np.float64), stray


def meant_by_commas(cells: list[str], stray: Iterable[str], commas: str) -> str:
    """What `as_numbers`, told so, took commas for: "thousands", "decimal", or "" where there are none."""
    return commas or ("decimal" if any("," in cell for cell in set(cells).difference(stray)) else "")


def comma_note(name: str, cells: list[str], commas: str) -> list[str]:
    """What the commas of a column were taken for, where they could be something else: a sentence, or none."""
    there = {cell for cell in set(cells) if "," in cell}
    grouped = {cell for cell in there if _GROUPED.fullmatch(cell)}
    if not commas or not grouped or (commas == "decimal" and any(map(_COMMA_NUMBER.fullmatch, there - grouped))):
        return []
    what = "marks of thousands" if commas == "thousands" else "decimal commas"
    return [f"commas of “{name}” taken as {what}: “{min(grouped)}”, for example"]


def _plain_numbers(cells: list[str]) -> np.ndarray | None:
    """Return the numbers if every cell is one, in a tenth of the time; else None."""
    if not set("".join(cells)) <= _LETTERS_OF_NUMBERS:
        return None
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def as_categories(
    cells: list[str], levels: tuple[str, ...] | None = None, commas: str = ""
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return codes of levels and the levels; NaN for missing cells, -1 for cells that are not among given levels."""
    different = {cell for cell in set(cells) if cell.lower() not in _MISSING}
    if levels is None:
        levels = tuple(sorted(different))
        numbers, _ = as_numbers(list(levels), commas)
        if not np.isnan(numbers).any():
            levels = tuple(levels[place] for place in np.argsort(numbers, kind="stable").tolist())
    code = {level: float(place) for place, level in enumerate(levels)}
    codes = {cell: code.get(cell, -1.0) if cell in different or cell in code else np.nan for cell in set(cells)}
    return np.array([codes[cell] for cell in cells], dtype=np.float64), levels


def guess(name: str, cells: list[str], *, categorical: bool = False, commas: str = "") -> Column:
    """Return a column with the type inferred from its cells, and whether it is used.

    Parameters
    ----------
    name : str
        Of the column.
    cells : list of str
        Its cells.
    categorical : bool
        Whether it holds categories whatever it looks like; then it is never taken for text or row numbers.
    commas : str
        What commas in numbers mean, as for `as_numbers`.

    Returns
    -------
    Column
        Numbers or codes of categories, and a note.

    Examples
    --------
    >>> column = guess("size", ["1.5", "NA", "2", "2"])
    >>> column.kind, column.values, column.n_missing
    ('number', array([1.5, nan, 2. , 2. ]), 1)
    >>> guess("colour", ["red", "blue", "", "red"]).levels
    ('blue', 'red')
    >>> guess("unit", ["cm", "cm", "cm", "cm"]).note
    'constant: always “cm”'
    """
    values, stray = as_numbers(cells, commas)
    known = ~np.isnan(values)
    n_different = len(np.unique(values[known]))
    n_known = int(known.sum())
    finite_only = all(cell.lower() in _INFINITE for cell in stray)
    few_strays = stray.total() <= _MAX_STRAY_SHARE * (n_known + stray.total()) and n_different >= _FEW_VALUES
    if not categorical and n_known and (finite_only or few_strays):
        column = _number_column(name, values, n_different, stray)
        return replace(column, commas=meant_by_commas(cells, stray, commas))
    codes, levels = as_categories(cells, commas=commas)
    n_known = int((~np.isnan(codes)).sum())
    note, used = _missing_note(cells, len(cells) - n_known), True
    if not levels:
        note, used = "every value is missing", False
    elif len(levels) == 1:
        note, used = _constant(levels[0], len(cells) - n_known)
    elif not categorical and len(levels) > max(_FEW_VALUES, n_known / 2):
        note, used = f"text or names: {len(levels)} different values in {n_known} rows", False
    return Column(name, "category", codes, levels, used, note)


def _number_column(name: str, values: np.ndarray, n_different: int, stray: Counter[str]) -> Column:
    n_missing = int(np.isnan(values).sum())
    note, used = "", True
    if stray:
        shown = ", ".join(f"“{cell}”" for cell in list(stray)[:3]) + (", …" if len(stray) > 3 else "")
        note = f"{counted(stray.total(), 'cell')} not a number, taken as missing: {shown}"
    if n_different == 1:
        note, used = _constant(f"{values[~np.isnan(values)][0]:g}", n_missing)
    elif n_missing == 0 and len(values) > _FEW_VALUES and _ROW_NUMBER.fullmatch(name) and (np.diff(values) == 1).all():
        note, used = "row numbers", False
    return Column(name, "number", values, None, used, note)


def _constant(value: str, n_missing: int) -> tuple[str, bool]:
    """Return note and use of a column with one value; with missing values it still separates rows."""
    if n_missing:
        return f"always “{value}” where it is known", True
    return f"constant: always “{value}”", False


def _missing_note(cells: list[str], n_missing: int) -> str:
    if not n_missing:
        return ""
    words = sorted({cell for cell in set(cells) if cell and cell.lower() in _MISSING})
    return f"missing written as {', '.join(f'“{word}”' for word in words)}" if words else ""
