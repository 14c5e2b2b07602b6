"""CSV files of all kinds as columns: what is read, what is guessed, what is refused and in which words."""

import gzip
import math
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from csv_table import HOSTILE, table
from hypothesis import given
from hypothesis import strategies as st

from kernelrules.report.encoding import design, design_names, encode_sheet, fit_encoding
from kernelrules.report.problem import pose
from kernelrules.report.reading import DataError, Sheet, as_categories, as_numbers, guess, read_sheet


@pytest.fixture
def read(tmp_path):
    def reading(content, **options):
        path = tmp_path / "data.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_sheet(path, **options)

    return reading


PLAIN = "a,b\n1,x\n2,y\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        PLAIN.encode("utf-8-sig"),
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-32"),
        b"\0\0\xfe\xff" + PLAIN.encode("utf-32-be"),
        gzip.compress(PLAIN.encode(), mtime=0),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),
        PLAIN.replace(",", ";").encode(),
        PLAIN.replace(",", "\t").encode(),
        PLAIN.replace(",", "|").encode(),
        b'"a","b"\n"1","x"\n"2","y"\n',
        b"a, b\n1, x\n\n2 , y\n,\n",
        b"a,b\n1,x,\n2,y,\n",
    ],
    ids=[
        "plain",
        "bom",
        "utf16",
        "utf32",
        "utf32be",
        "gzip",
        "crlf",
        "cr",
        "semicolon",
        "tab",
        "bar",
        "quoted",
        "spaces",
        "trailing",
    ],
)
def test_forms_of_one_table(read, content):
    sheet = read(content)
    assert sheet.names == ("a", "b")
    assert sheet.cells == (["1", "2"], ["x", "y"])


def test_quoted_delimiters_and_line_ends(read):
    sheet = read('a,b\n"1,5","two\nlines"\n"say ""hi""",x\n')
    assert sheet.cells == (["1,5", 'say "hi"'], ["two\nlines", "x"])


def test_windows_text_is_said(read):
    sheet = read("größe,b\n1,ä\n".encode("cp1252"))
    assert sheet.names == ("größe", "b")
    assert any("Windows-1252" in note for note in sheet.notes)


def test_names_are_made_unique(read):
    sheet = read("a,,a,a,a (2)\n1,2,3,4,5\n")
    assert sheet.names == ("a", "column 2", "a (3)", "a (4)", "a (2)")
    assert len(set(sheet.names)) == 5
    assert len(sheet.notes) == 3


def test_row_names_as_r_writes_them(read):
    assert read("a,b\nfirst,1,2\nsecond,3,4\n").names == ("row name", "a", "b")


def test_no_header(read):
    sheet = read("1,2\n3,4\n", header=False)
    assert sheet.names == ("column 1", "column 2")
    assert sheet.n_rows == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n\n,,\n", "is empty"),
        ("a,b\n", "no rows of data"),
        ("1,2\n3,4\n", "--no-header"),
        ("a,b\n1,2\n3\n", "line 3 of data.csv has 1 cell but there are 2 column names"),
        ('a,b\n1,"2\n3,4\n', "quotation mark"),
        ('a,b\n"x"y,2\n3\n', "line 3"),
        (b"a,b\n\x00\x01\x02", "not a text file"),
        (b"PK\x03\x04 whatever", "Excel"),
        (b"PAR1abc", "Parquet"),
        (bytes(range(256)) * 8, "not a text file"),
        (b"\xff\xfea", "UTF-16"),
        (b"\xff\xfe\0\0a,b", "UTF-32"),
        ("My table\na,b\n1,2\n", "“My table” and others have 2 cells: is it a title or a comment?"),
        ("# made today\na,b,c\n1,2,3\n", "is it a title or a comment?"),
        ("My table\n1,2\n3,4\n", "is it a title or a comment?"),
        (gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:30], "cannot be unpacked"),
        ("\n<!DOCTYPE html>\n<html><body>a,b</body></html>\n", "data.csv is HTML, not CSV"),
        ("<HTML><table><tr><td>a,b</td></tr></table></HTML>", "data.csv is HTML, not CSV"),
        ('<?xml version="1.0"?>\n<a>1</a>\n', "data.csv is XML, not CSV"),
        ('[{"a": 1, "b": 2},\n {"a": 3, "b": 4}]\n', "data.csv is JSON, not CSV"),
        ('{"a": [1, 2]}', "data.csv is JSON, not CSV"),
        ('{"a": 1, "b": 2}\n{"a": 3, "b": 4}\n', "data.csv is JSON, not CSV"),
        ("a,b\n1," + "x" * 200_000 + "\n", "cannot be read at line 2"),
    ],
    ids=lambda value: None if isinstance(value, (bytes, str)) and len(value) > 60 else repr(value)[:40],
)
def test_what_is_no_table_is_refused_in_words(read, content, words):
    with pytest.raises(DataError, match=re.escape(words)):
        read(content)


@pytest.mark.parametrize("content", ["[a],{b}\n1,2\n", "[1],[2]\n1,2\n", "<h,b\n1,2\n"])
def test_names_with_brackets_are_names(read, content):
    assert read(content).n_rows == 1
    assert read("[" * 9000 + ",b\n1,2\n").names[1] == "b"


CELLS = st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=4), max_size=6)
TEXTS = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='a1,;\t\n\r" |.-?é\x00', max_size=60).map(str.encode),
    CELLS.map(lambda rows: "\n".join(",".join(row) for row in rows).encode("utf-8", "replace")),
)


@given(TEXTS, st.booleans())
def test_whatever_the_bytes(content, header):
    """A sheet whose columns are all of one length and can be guessed, or a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "any.csv")
        path.write_bytes(content)
        try:
            sheet = read_sheet(path, header=header)
        except DataError:
            return
    assert len(set(sheet.names)) == len(sheet.names) == len(sheet.cells)
    assert {len(cells) for cells in sheet.cells} == {sheet.n_rows}
    for name, cells in zip(sheet.names, sheet.cells, strict=True):
        column = guess(name, cells)
        assert len(column.values) == sheet.n_rows
        assert not np.isinf(column.values).any()
        assert column.used <= (column.n_different > 0)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read_sheet(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_sheet(tmp_path)


# ---- columns ------------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.none()), min_size=1, max_size=30))
def test_numbers_come_back(numbers):
    values, stray = as_numbers(["NA" if number is None else repr(number) for number in numbers])
    expected = [math.nan if number is None else number for number in numbers]
    np.testing.assert_array_equal(values, expected)
    assert not stray


@given(st.lists(st.sampled_from(["a", "b", "c", "", "?", "NaN", "null"]), min_size=1, max_size=30))
def test_categories_come_back(cells):
    codes, levels = as_categories(cells)
    again = ["" if math.isnan(code) else levels[int(code)] for code in codes]
    assert again == [cell if cell in "abc" else "" for cell in cells]
    assert list(levels) == sorted(set(again) - {""})


@pytest.mark.parametrize(
    ("cells", "kind", "used", "words"),
    [
        (["1", "2", "", "4"], "number", True, ""),
        (["1e3", "-.5", "+2.", "NA"], "number", True, ""),
        (["1,5", "2,25", "3"], "number", True, ""),
        (["1_000", "2", "3"], "category", True, ""),
        (["0x10", "1", "2"], "category", True, ""),
        (["1", "2", "inf"], "number", True, "not a number"),
        (["1", "none", "-", "2"], "number", True, ""),
        (["+", "-", "+", "-"], "category", True, ""),
        (["none", "hard", "soft", "none"], "category", True, ""),
        (["a", "?", "b", "NA"], "category", True, "missing written as “?”, “NA”"),
        (["TRUE", "FALSE", "TRUE", ""], "category", True, ""),
        (["7", "7", "7"], "number", False, "constant: always “7”"),
        (["7", "7", ""], "number", True, "always “7” where it is known"),
        (["", "NA", "?"], "category", False, "every value is missing"),
        ([f"name {i}" for i in range(30)], "category", False, "30 different values in 30 rows"),
        ([str(i % 25) for i in range(99)] + ["unknown"], "number", True, "1 cell not a number"),
        ([str(i % 5) for i in range(99)] + ["unknown"], "category", True, ""),
        ([str(i) for i in range(30)], "number", True, ""),
        (["1e999", "1", "2"], "category", True, ""),
    ],
    ids=range(19),
)
def test_types_are_guessed(cells, kind, used, words):
    column = guess("c", cells)
    assert (column.kind, column.used) == (kind, used)
    assert words in column.note
    assert (column.note == "") == (words == "")


def test_row_numbers_are_left_out_by_name():
    numbers = [str(i) for i in range(1, 40)]
    assert not guess("id", numbers).used
    assert guess("day", numbers).used
    assert guess("id", numbers[::-1]).used


def test_asked_for_categories():
    column = guess("zip", ["10", "9", "10", "9"], categorical=True)
    assert column.levels == ("9", "10")
    assert guess("name", [f"name {i}" for i in range(30)], categorical=True).used


# ---- problems -----------------------------------------------------------------------------------------------------


def sheet_of(**columns):
    return Sheet("data.csv", tuple(columns), tuple(list(map(str, cells)) for cells in columns.values()), ())


def test_everything_in_one_table(read):
    problem = pose(read(table()), "target")
    assert problem.names == (HOSTILE, "colour", "noise")
    assert problem.categorical == [1]
    assert problem.classes.tolist() == ["no", "yes"]
    assert {column.name for column in problem.columns if not column.used} == {"name", "unit", "empty"}
    assert np.isnan(problem.X[:, 0]).sum() == 0
    assert np.isnan(problem.X[:, 2]).sum() > 5


@pytest.mark.parametrize(
    ("target", "task"),
    [
        (["a", "b"] * 10, "classification"),
        ([0, 1] * 10, "classification"),
        ([1.5, 2.5] * 10, "classification"),
        ([1, 2, 3, 4] * 5, "classification"),
        (list(range(20)), "regression"),
        ([1.5, 2.5, 3.5] * 7, "regression"),
        ([1, 2, 3, 4, 5] * 4, "regression"),
    ],
    ids=range(7),
)
def test_task_is_guessed_and_said(target, task):
    problem = pose(sheet_of(x=range(len(target)), y=target), "y")
    assert (problem.classes is not None) == (task == "classification")
    assert any(f"taken as {task}" in note for note in problem.notes)


def test_numbers_that_are_the_same_are_one_class():
    problem = pose(sheet_of(x=range(20), y=["1", "1.0", "0", "2e0"] * 5), "y")
    assert problem.classes.tolist() == ["0", "1", "2"]
    assert (problem.y == "1").sum() == 10
    text = pose(sheet_of(x=range(20), y=["1", "1.0", "x", "x"] * 5), "y")
    assert text.classes.tolist() == ["1", "1.0", "x"]


LONG = [str(10**18 + i) for i in range(5)]


def test_whole_numbers_that_no_double_tells_apart_are_classes():
    y = ["9007199254740992", "9007199254740993", "9007199254740993.0", "5"] * 5
    problem = pose(sheet_of(x=range(20), y=y), "y", task="classification")
    assert problem.classes.tolist() == ["5", "9007199254740992", "9007199254740993"]
    assert (problem.y == "9007199254740993").sum() == 10
    problem = pose(sheet_of(x=range(30), y=LONG * 6), "y")
    assert problem.classes.tolist() == LONG
    assert "taken as classification: the target has 5 different whole numbers (else --task regression)" in problem.notes


def test_numbers_that_no_double_tells_apart_are_no_targets():
    with pytest.raises(DataError, match=f"differ in digits after the 16th: subtract {10**18}"):
        pose(sheet_of(x=range(30), y=LONG * 6), "y", task="regression")


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["1e3", "1000", "2"], ["1000", "2"]),
        (["0.1", ".10", "2"], ["0.1", "2"]),
        (["1e300", "1.0e300", "2"], ["1e300", "2"]),
        (["10000000000000000.0", "10000000000000000", "2"], ["10000000000000000", "2"]),
        (["1,5", "1,50", "2"], ["1.5", "2"]),
        (["0", "0e99999999999999999999", "2"], ["0", "2"]),
        (["-0", "0", "1e-400"], ["0", "1e-400"]),
    ],
)
def test_numbers_are_written_in_one_way(cells, classes):
    assert pose(sheet_of(x=range(30), y=cells * 10), "y", task="classification").classes.tolist() == classes


def test_rows_without_a_target_and_tiny_classes_go():
    y = ["a"] * 10 + ["b"] * 10 + ["c"] * 2 + ["", "NA"]
    problem = pose(sheet_of(x=range(24), y=y), "y")
    assert len(problem.y) == len(problem.X) == 20
    assert problem.classes.tolist() == ["a", "b"]
    assert sum("left out" in note for note in problem.notes) == 2
    numbers = pose(sheet_of(x=range(24), y=[*range(20), "", "", "NA", "?"]), "y")
    assert len(numbers.y) == 20
    assert "4 rows without a number for a target left out" in numbers.notes


def test_a_few_words_among_numbers_are_no_classes():
    y = [f"{i}.5" for i in range(59)] + ["unknown"]
    problem = pose(sheet_of(x=range(60), y=y), "y")
    assert problem.classes is None
    assert len(problem.y) == 59
    with pytest.raises(DataError, match="is not numbers: it holds “unknown”"):
        pose(sheet_of(x=range(60), y=y[:40] + ["unknown"] * 20), "y", task="regression")


NUMBERS = list(range(20))


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"Income": NUMBERS, "x": NUMBERS}, {"target": "incom"}, "did you mean “Income”"),
        ({"Income": NUMBERS, "x": NUMBERS}, {"target": "qqq"}, "it has “Income”, “x”"),
        ({"y": NUMBERS, "x": NUMBERS}, {"drop": ["z"]}, "no column “z”"),
        ({"y": NUMBERS, "x": NUMBERS}, {"drop": ["y"]}, "cannot be dropped"),
        ({"y": NUMBERS, "x": NUMBERS}, {"drop": ["x"]}, "no column to predict “y” from"),
        ({"y": NUMBERS}, {}, "it is the only one"),
        ({"y": NUMBERS, "x": ["a"] * 20}, {}, "constant"),
        ({"y": ["a", "b"] * 10, "x": NUMBERS}, {"task": "regression"}, "not numbers: it holds “a”"),
        ({"y": ["a"] * 20, "x": NUMBERS}, {}, "one class only, “a”"),
        ({"y": ["a"] * 17 + ["b"] * 3, "x": NUMBERS}, {"folds": 2}, "one class only that has rows enough"),
        ({"y": [3] * 20, "x": NUMBERS}, {"task": "regression"}, "same value 3 in every row"),
        ({"y": [f"{i}e300" for i in range(20)], "x": NUMBERS}, {}, "take other units"),
        ({"y": [f"{i}e-300" for i in range(20)], "x": NUMBERS}, {}, "take other units"),
        ({"y": [""] * 20, "x": NUMBERS}, {}, "missing in every row"),
        ({"y": [f"id {i}" for i in range(20)], "x": NUMBERS}, {}, "these are no classes"),
        ({"y": NUMBERS, "x": NUMBERS}, {"folds": 11}, "at least 22 are needed"),
        ({"y": NUMBERS[:9], "x": NUMBERS[:9]}, {}, "at least 10 are needed"),
    ],
    ids=range(17),
)
def test_problems_that_cannot_be_posed(columns, options, words):
    with pytest.raises(DataError) as refused:
        pose(sheet_of(**columns), options.pop("target", "y"), **options)
    assert words in str(refused.value)


# ---- coding -------------------------------------------------------------------------------------------------------


def test_design_is_standardised_and_marks_what_is_missing(read):
    problem = pose(read(table()), "target")
    encoding = fit_encoding(problem.X, problem.used)
    Z = design(problem.X, encoding)
    names = design_names(problem.used, encoding)
    assert Z.shape[1] == len(names)
    assert names == [
        HOSTILE, "colour = <b>blue</b>", "colour = green", "colour = red", "colour is missing", "noise",
        "noise is missing",
    ]  # fmt: skip
    np.testing.assert_allclose(Z[:, 0].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(Z[:, 0].std(), 1)
    np.testing.assert_array_equal(Z[:, 1:5].sum(axis=1), 1)
    missing = np.isnan(problem.X[:, 2])
    np.testing.assert_array_equal(Z[missing, 5], 0)
    np.testing.assert_array_equal(Z[:, 6], missing)


@pytest.mark.parametrize("numbers", [[1e308, -1e308], [1e-308, 2e-308], [0.1] * 7, [5.0, np.nan], [1e15, 1e15 + 1]])
def test_design_of_extreme_numbers_is_finite(numbers):
    column = guess("x", [repr(number) for number in numbers])
    X = np.array(numbers)[:, None]
    with np.errstate(over="raise", invalid="raise"):
        Z = design(X, fit_encoding(X, (column,)))
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() < 2


def test_a_category_that_training_did_not_have_is_no_number():
    X = np.full((4, 1), np.nan)
    column = guess("c", ["a", "b", "a", "b"])
    encoding = fit_encoding(X, (column,))
    assert design(np.array([[0.0], [1.0]]), encoding).tolist() == [[0.0], [0.0]]


class _Model:
    columns, levels, commas = ("x", "c"), (None, ("a", "b")), ("", "")


def test_another_sheet_is_coded_the_same_way():
    sheet = sheet_of(extra=[9] * 4, c=["b", "a", "new", ""], x=[1, "?", "oops", 4])
    X, remarks = encode_sheet(sheet, _Model)
    np.testing.assert_array_equal(X, [[1, 1], [np.nan, 0], [np.nan, -1], [4, np.nan]])
    assert remarks == [
        "“x”: 1 cell, “oops”, is no number: missing", "“c”: 1 cell holds a category that the model was not shown",
    ]  # fmt: skip
    _, remarks = encode_sheet(sheet_of(c=["new", "other"], x=["oops", "no"]), _Model)
    assert remarks == [
        "“x”: 2 cells such as “oops” are no numbers: missing",
        "“c”: 2 cells hold categories that the model was not shown",
    ]
    with pytest.raises(DataError, match="lacks the column “c”"):
        encode_sheet(sheet_of(x=[1, 2]), _Model)


@pytest.mark.parametrize("n", [2, 12, 40, 3000])
def test_decimal_commas_are_no_separators(read, n):
    """As many commas as semicolons, or more, in every line but the first."""
    sheet = read("a;b;y\n" + "".join(f"{i},5;0,{i % 9};1,25\n" for i in range(n)))
    assert sheet.names == ("a", "b", "y")
    assert sheet.cells[2] == ["1,25"] * n
    assert read("a;y\n" + "1,5;x\n" * n).names == ("a", "y")


def test_thousands(read):
    sheet = read('a,b\n"1,234",x\n999,y\n"12,345,678",z\n')
    column = guess("a", sheet.cells[0], commas=sheet.commas("a"))
    np.testing.assert_array_equal(column.values, [1234, 999, 12345678])
    assert column.commas == "thousands"
    assert sheet.commas("b") == ""
    sheet = read("a;b\n1,234;x\n2,345;y\n")
    column = guess("a", sheet.cells[0], commas=sheet.commas("a"))
    np.testing.assert_array_equal(column.values, [1.234, 2.345])
    assert column.commas == "decimal"


@pytest.mark.parametrize(
    ("start", "delimiter", "commas", "note"),
    [
        ("1,234.50", ";", "thousands", "commas of “a” taken as marks of thousands: “1,000”, for example"),
        ("1,234", ",", "thousands", "commas of “a” taken as marks of thousands: “1,000”, for example"),
        ("1,234", ";", "decimal", "commas of “a” taken as decimal commas: “1,000”, for example"),
        ("1,25", ";", "decimal", None),
        ("1", ";", "decimal", "commas of “a” taken as decimal commas: “1,000”, for example"),
    ],
)
def test_what_commas_mean_is_kept_and_said_where_it_is_open(read, start, delimiter, commas, note):
    """Of columns and of targets."""
    rows = [start, *(f"{i},000" for i in range(1, 20))]
    sheet = read(f"a{delimiter}y\n" + "".join(f'"{cell}"{delimiter}{i}.5\n' for i, cell in enumerate(rows)))
    problem = pose(sheet, "y")
    assert problem.used[0].commas == commas
    notes = [] if delimiter == "," else ["cells separated by semicolon"]
    assert list(problem.reading) == notes + ([note] if note else [])
    assert list(pose(sheet, "a").reading) == notes + ([note] if note else [])
    assert pose(sheet, "a").y[1] == (1000 if commas == "thousands" else 1)


def test_another_sheet_is_read_by_the_commas_of_the_first():
    class Reads(_Model):
        columns, levels, commas = ("x",), (None,), ("thousands",)

    cells = ["9,000", "12", "1,234.5"]
    X, remarks = encode_sheet(sheet_of(x=cells), Reads)
    np.testing.assert_array_equal(X[:, 0], [9000, 12, 1234.5])
    assert remarks == []
    X, remarks = encode_sheet(sheet_of(x=["9,000", "9,5"]), Reads)
    np.testing.assert_array_equal(X[:, 0], [9000, np.nan])
    assert remarks == ["“x”: 1 cell, “9,5”, is no number: missing"]
    Reads.commas = ("decimal",)
    grouped = Sheet("data.csv", ("x",), (["9,000", "12"],), (), frozenset(["x"]))
    X, remarks = encode_sheet(grouped, Reads)
    np.testing.assert_array_equal(X[:, 0], [9, 12])
    assert remarks == []
    np.testing.assert_array_equal(encode_sheet(sheet_of(x=["1.5", "2"]), Reads)[0][:, 0], [1.5, 2])
    Reads.commas = ("",)
    X, remarks = encode_sheet(grouped, Reads)
    np.testing.assert_array_equal(X[:, 0], [9000, 12])
    assert remarks == ["commas of “x” taken as marks of thousands: “9,000”, for example"]
    _, remarks = encode_sheet(sheet_of(x=["9,000", "1.5", "oops"]), Reads)
    assert remarks == ["“x”: 2 cells such as “9,000” are no numbers: missing"]


def test_categories_are_as_they_are_written():
    column = guess("c", ["10,000", "9,000", "9,000", "500"], categorical=True, commas="thousands")
    assert column.levels == ("500", "9,000", "10,000")
    assert column.commas == ""


def test_rows_without_a_value_are_rows(read):
    """But at the end: answers must lie beside their rows."""
    assert read("a,b\n1,x\n,\n2,y\n,\n").cells[0] == ["1", "", "2"]


def test_blank_lines_of_one_column_are_rows(read):
    """Blank or quoted and empty; but those before the names and at the end are none."""
    assert read('\na\n1\n\n""\n2\n \n3\n\n\n').cells == (["1", "", "", "2", "", "3"],)
    assert read("1\n\n2\n", header=False).cells == (["1", "", "2"],)


def test_one_name_and_empty_cells_at_the_end(read):
    sheet = read("a\n1,\n2,\n")
    assert sheet.names == ("a",)
    assert sheet.cells == (["1", "2"],)
