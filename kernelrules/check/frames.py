"""Tables of numbers and categories as one matrix of floats: NaN for missing values, codes 0, 1, ... for categories.

Trees and rules read data frames, arrays, nested sequences and sparse matrices here. This module refuses what is wrong
about the form of the input: columns that are neither numbers nor categories, unknown names, infinite values.

Data frames are read by what they can do (`columns`, `dtypes`, `to_numpy`), not by what they are, so that neither pandas
nor polars is ever imported.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules.check.memory import fits_memory
from kernelrules.check.scalars import DtypeError, one_of
from kernelrules.core.simd.finite import survey

__all__ = ["Columns", "columns_of_counts", "lies_plainly", "read", "read_again", "read_with_missing", "require_unseen"]

_UNSEEN = ("allow", "larger", "error")  # "larger" is the older word of trees for "allow"

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_EXACT_IN_SINGLE = 1 << 24  # whole numbers up to here are float32 numbers


@dataclass(frozen=True, eq=False)
class Columns:
    """Training data as numbers.

    Attributes
    ----------
    values : ndarray (n, p) of float32 or float64
        The user's own array where it can serve. NaN where a value is missing.
    n_levels : ndarray (p,) of int64
        Levels of a categorical column; 0 for a numerical one.
    categories : tuple
        For each column None, or the values of its levels in the order of their codes.
    names : tuple of str, or None
        Of a data frame's columns, if all are strings.
    missing : ndarray (p,) of bool
        Whether a column has missing values.
    indicators : ndarray (p,) of bool
        Whether a column of numbers holds truth values, or counts of sparse data (`columns_of_counts`).
    """

    values: np.ndarray
    n_levels: np.ndarray
    categories: tuple[np.ndarray | None, ...]
    names: tuple[str, ...] | None
    missing: np.ndarray
    indicators: np.ndarray


@dataclass(frozen=True, eq=False)
class _Column:
    """One column as it was given: numbers, or codes (-1 missing) of levels."""

    label: str  # what to call it in an error
    numbers: np.ndarray | None = None
    codes: np.ndarray | None = None
    levels: np.ndarray | None = None

    @property
    def holds_truth_values(self) -> bool:
        """By its type."""
        return (self.levels if self.numbers is None else self.numbers).dtype.kind == "b"

    def as_numbers(self) -> np.ndarray:
        """Floats, NaN for missing; refused if the levels are not numbers."""
        if self.numbers is not None:
            return self.numbers
        if self.levels.dtype.kind not in "fiub":
            example = self.levels.tolist()[0]
            raise DtypeError(f"{self.label} does not hold numbers but, for example, {example!r}")
        return _decoded(self.levels.astype(np.float64), self.codes)

    def as_codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes, NaN for missing, and the levels: where they are numbers, the distinct ones."""
        if self.codes is not None:
            return _decoded(np.arange(len(self.levels), dtype=np.float64), self.codes), self.levels
        known = ~np.isnan(self.numbers) if self.numbers.dtype.kind == "f" else np.ones(len(self.numbers), dtype=bool)
        codes = np.full(len(self.numbers), np.nan)
        levels, codes[known] = np.unique(self.numbers[known], return_inverse=True)
        return codes, levels


def _decoded(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """values[codes], NaN for the code -1."""
    return np.append(values, np.nan)[codes]  # -1 is the last


# ---- training data ----------------------------------------------------------------------------------------------


def read(X: Any, categorical: Any = "from_dtype", missing: str = "extra") -> Columns:
    """Training data of any kind as numbers.

    Parameters
    ----------
    X : array, sparse matrix, data frame or nested sequence, (n, p)
        Numbers, strings, booleans; None, NaN and a data frame's NA are missing. Zeros of sparse data are zeros.
    categorical : "from_dtype", None, or sequence of column numbers or names
        Which columns are categories: those that are not numbers by their type (of a data frame also booleans), none,
        or these. Levels are in ascending order, or in that of a data frame's category type.
    missing : str
        "error" refuses missing values.

    Returns
    -------
    Columns
        The numbers, and what they mean.

    Examples
    --------
    >>> columns = read([["red", 0.5], ["blue", None], ["red", 0.1]])
    >>> columns.values
    array([[1. , 0.5],
           [0. , nan],
           [1. , 0.1]])
    >>> columns.categories
    (array(['blue', 'red'], dtype='<U4'), None)
    """
    source, names = _opened(X)
    n, p = source.shape
    if n == 0:
        raise ValueError(f"X has no rows: its shape is {source.shape}")
    chosen = _chosen(categorical, p, names)
    if isinstance(source, np.ndarray) and source.dtype.kind in "fiub" and not chosen:
        values, categories = _floats(source), (None,) * p
        indicators = np.full(p, source.dtype.kind == "b")
    else:
        columns = _split(source, names)
        values, categories = _encoded(columns, chosen)
        indicators = np.array([column.holds_truth_values for column in columns])
    if sparse.issparse(X):
        rows = X.tocsr()
        indicators = columns_of_counts(rows.data, rows.indices, p)
    has_missing = _checked(values, missing, names, categories)
    n_levels = np.array([0 if levels is None else len(levels) for levels in categories], dtype=np.int64)
    return Columns(values, n_levels, categories, names, has_missing, indicators)


def _chosen(categorical: Any, p: int, names: tuple[str, ...] | None) -> set[int] | None:
    """Numbers of the categorical columns; None where their types tell."""
    if categorical is None:
        return set()
    if isinstance(categorical, str):
        if categorical == "from_dtype":
            return None
        raise ValueError(
            f'categorical must be "from_dtype", None, or a sequence of column numbers or names, got {categorical!r}'
        )
    if not isinstance(categorical, Iterable):
        raise TypeError(f"categorical must be a sequence of column numbers or names, got {categorical!r}")
    return {_position(entry, p, names) for entry in categorical}


def _position(entry: Any, p: int, names: tuple[str, ...] | None) -> int:
    if isinstance(entry, str):
        if names is None or entry not in names:
            raise ValueError(f"categorical names the column {entry!r}, which X does not have")
        return names.index(entry)
    if isinstance(entry, (bool, np.bool_)) or not isinstance(entry, (numbers.Integral, np.integer)):
        raise TypeError(f"categorical must hold column numbers or names, got {entry!r}")
    if not -p <= entry < p:
        raise ValueError(f"categorical names column {entry}, but X has {p} columns")
    return int(entry) % p


def _encoded(columns: list[_Column], chosen: set[int] | None) -> tuple[np.ndarray, tuple[np.ndarray | None, ...]]:
    """The matrix, and the levels of its columns."""
    arrays: list[np.ndarray] = []
    categories: list[np.ndarray | None] = []
    for position, column in enumerate(columns):
        if column.codes is not None if chosen is None else position in chosen:
            array, levels = column.as_codes()
            categories.append(levels)
        else:
            array = column.as_numbers()
            categories.append(None)
        arrays.append(array)
    return _stacked(arrays, tuple(categories)), tuple(categories)


def _stacked(arrays: list[np.ndarray], categories: tuple[np.ndarray | None, ...]) -> np.ndarray:
    """One matrix: of float32 if all numbers and codes fit it, and some columns ask for it, else of float64."""
    numerical = [array.dtype for array, levels in zip(arrays, categories, strict=True) if levels is None]
    narrow = numerical and all(dtype.kind == "f" and dtype.itemsize <= 4 for dtype in numerical)
    few_levels = all(levels is None or len(levels) <= _EXACT_IN_SINGLE for levels in categories)
    dtype = _FLOATS[0] if narrow and few_levels else _FLOATS[1]
    shape = (len(arrays[0]), len(arrays))
    fits_memory(shape, dtype, "the data as numbers")
    values = np.empty(shape, dtype=dtype)
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused after
        for position, array in enumerate(arrays):
            values[:, position] = array
    return values


def _checked(
    values: np.ndarray, missing: str, names: tuple[str, ...] | None, categories: tuple[Any, ...], name: str = "X"
) -> np.ndarray:
    """Which columns have missing values; infinite ones are refused, and missing ones on request."""
    found = np.zeros(values.shape[1], dtype=np.uint8)
    infinite, absent = survey(values, found)
    if infinite is not None:
        row, column = infinite
        raise ValueError(f"{name} holds {values[infinite]} at row {row}, {_label(column, names)}")
    if missing == "error" and absent is not None:
        row, column = absent
        what = "nan" if categories[column] is None else "a missing value"
        raise ValueError(f'{name} holds {what} at row {row}, {_label(column, names)}, and missing is "error"')
    return found.view(bool)


def _label(position: int, names: tuple[str, ...] | None) -> str:
    return f"column {position}" if names is None else f"column {names[position]!r}"


# ---- data at prediction -----------------------------------------------------------------------------------------


def read_again(model: Any, X: Any, unseen: str = "larger") -> np.ndarray:
    """Read data for a model as numbers with the meaning of its training data.

    Parameters
    ----------
    model : Tree, or another object
        Its `categories`, `feature_names`, `n_features` and `missing` describe the columns. Error messages call it by
        its `noun`, "tree" if it has none.
    X : array, sparse matrix, data frame or nested sequence, (n, p)
        As in `read`. The columns of a data frame must be the tree's, in order.
    unseen : "allow", "larger" or "error"
        A category that was not in the training data gets the code -1, or is refused.

    Returns
    -------
    ndarray (n, p) of float32 or float64
        The user's own array where it can serve.
    """
    return read_with_missing(model, X, unseen)[0]


def read_with_missing(model: Any, X: Any, unseen: str = "larger", name: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """What `read_again` returns, and which columns have missing values; errors call the data by `name`."""
    require_unseen(unseen)
    source, names = _opened(X, name)
    _require_columns(model, names, source.shape[1], name)
    plain = isinstance(source, np.ndarray) and source.dtype.kind in "fiub"
    if plain and all(levels is None for levels in model.categories):
        values = _floats(source, name)
    else:
        values = _encoded_again(model, _split(source, names, name), unseen)
    return values, _checked(values, model.missing, names, model.categories, name)


def require_unseen(unseen: Any) -> None:
    """Refuse what is not a word for how unseen categories are treated."""
    one_of(unseen, "unseen", *_UNSEEN)


def lies_plainly(X: Any, n_features: int) -> bool:
    """Whether X is a plain array of so many columns that can be read as it lies, once its numbers are looked at."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == n_features > 0
        and X.dtype in (np.float32, np.float64)
        and X.dtype.isnative
        and X.flags.c_contiguous
        and X.flags.aligned
    )


def _require_columns(model: Any, names: tuple[str, ...] | None, p: int, name: str) -> None:
    if names is not None and model.feature_names is not None and names != model.feature_names:
        absent = [column for column in model.feature_names if column not in names]
        unknown = [column for column in names if column not in model.feature_names]
        if absent:
            raise ValueError(f"{name} lacks the column {absent[0]!r} that {_called(model)} grown on")
        if unknown:
            raise ValueError(f"{name} has a column {unknown[0]!r} that {_called(model)} not grown on")
        raise ValueError(
            f"the columns of {name} are not in the order that {_called(model)} grown on: {_first_few(names)}, not "
            f"{_first_few(model.feature_names)}"
        )
    if p != model.n_features:
        raise ValueError(f"{name} has {p} columns but {_called(model)} grown on {model.n_features}")


def _called(model: Any) -> str:
    return "the rules were" if getattr(model, "noun", "tree") == "rules" else "the tree was"


def _first_few(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def _encoded_again(model: Any, columns: list[_Column], unseen: str) -> np.ndarray:
    arrays = [
        column.as_numbers() if levels is None else _codes_of(column, levels, unseen, model)
        for column, levels in zip(columns, model.categories, strict=True)
    ]
    return _stacked(arrays, model.categories)


def _codes_of(column: _Column, levels: np.ndarray, unseen: str, model: Any) -> np.ndarray:
    """Codes of the tree's levels, -1 for values that are none of them."""
    if unseen != "error" and column.numbers is not None and len(levels) and _ascend(levels):
        return _places_of(column.numbers, levels)
    here, levels_here = column.as_codes()
    known = "the rules' categories" if getattr(model, "noun", "tree") == "rules" else "the tree's categories"
    if len(levels_here) and len(levels) and _numbers_and_strings(levels, levels_here):
        raise DtypeError(
            f"{column.label} holds {levels_here.tolist()[0]!r}, but {known} are such as {levels.tolist()[0]!r}"
        )
    code = {level: number for number, level in enumerate(levels.tolist())}
    again = np.array([code.get(level, -1) for level in levels_here.tolist()], dtype=np.float64)
    codes = _decoded(again, np.where(np.isnan(here), -1, here).astype(np.intp))
    if unseen == "error" and (codes == -1).any():
        row = int(np.argmax(codes == -1))
        value = levels_here.tolist()[int(here[row])]
        raise ValueError(f"{column.label} holds {value!r} at row {row}, which is none of {known}")
    return codes


def _ascend(levels: np.ndarray) -> bool:
    """Whether they are numbers in ascending order, as they are but for a data frame's own order."""
    return levels.dtype.kind in "fiu" and bool((levels[:-1] < levels[1:]).all())


def _places_of(numbers: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Codes of numbers among ascending ones, -1 for others; NaN stays. Sorting the numbers would take far longer."""
    places = np.minimum(np.searchsorted(levels, numbers), len(levels) - 1)
    codes = np.where(levels[places] == numbers, places, -1).astype(np.float64)
    if numbers.dtype.kind == "f":
        codes[np.isnan(numbers)] = np.nan
    return codes


def _numbers_and_strings(levels: np.ndarray, others: np.ndarray) -> bool:
    """Whether one is numbers and the other strings: a column of another meaning, not of unseen values."""
    kinds = {"number" if a.dtype.kind in "fiub" else "string" if a.dtype.kind in "US" else "" for a in (levels, others)}
    return kinds == {"number", "string"}


# ---- any input --------------------------------------------------------------------------------------------------


def _opened(X: Any, name: str = "X") -> tuple[Any, tuple[str, ...] | None]:
    """An ndarray of numbers or objects, or a data frame as it is; and the names of its columns."""
    names = None
    if sparse.issparse(X):
        source = _densified(X, name)
    elif hasattr(X, "to_numpy") and hasattr(X, "columns"):
        source = X
        listed = tuple(X.columns)
        if all(isinstance(column, str) for column in listed):
            names = listed
        if all(_is_number_type(dtype) for dtype in X.dtypes):
            plain = X.to_numpy()
            source = plain if plain.dtype.kind in "fiu" else X
    else:
        source = _array(X, name)
    _require_table(source.shape, name)
    return source, names


def _is_number_type(dtype: Any) -> bool:
    """Whether a data frame's column of this type is numbers as `to_numpy` gives it."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "fiu"
    is_numeric = getattr(dtype, "is_numeric", None)  # polars; its missing values become NaN
    return callable(is_numeric) and is_numeric()


def _require_table(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        hint = "; one feature is reshape(-1, 1), one row reshape(1, -1)" if len(shape) == 1 else ""
        raise ValueError(f"{name} must be two-dimensional, got shape {shape}{hint}")
    if shape[1] == 0:
        raise ValueError(f"{name} has no columns: its shape is {shape}")


def _array(X: Any, name: str) -> np.ndarray:
    """An ndarray of numbers, or of objects."""
    if isinstance(X, np.ma.MaskedArray):  # what is masked is missing
        array = np.array(X.data, dtype=np.float64 if X.dtype.kind in "fiub" else object)
        array[np.ma.getmaskarray(X)] = np.nan
    else:
        try:
            array = np.asarray(X)
            if array.dtype.kind in "UST" and not isinstance(X, np.ndarray):
                array = np.array(X, dtype=object)  # NumPy makes strings of numbers among strings
        except ValueError as error:
            raise ValueError(f"{name} is not a rectangular array: {error}") from None
    if array.dtype.kind in "UST":
        return array.astype(object)
    if array.dtype.kind not in "fiubO":
        raise DtypeError(f"{name} must hold real numbers or categories, got dtype {array.dtype}")
    return array


def _densified(X: Any, name: str) -> np.ndarray:
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        _require_table(X.shape, name)
        raise DtypeError(f"{name} must hold real numbers, got dtype {X.dtype}")
    rows = X.tocsr()
    try:
        rows = sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        rows.check_format(full_check=True)  # what points outside would be written outside
    except ValueError as error:
        raise ValueError(f"{name} is not a valid CSR matrix: {error}") from None
    fits_memory(rows.shape, rows.dtype, f"{name} as a dense matrix")
    return rows.toarray()


def _floats(source: np.ndarray, name: str = "X") -> np.ndarray:
    """The array itself if it holds float32 or float64 that can be read in place, else a copy."""
    narrow = source.dtype.kind == "f" and source.dtype.itemsize <= 4
    dtype = _FLOATS[0] if narrow else _FLOATS[1]
    if source.dtype == dtype and source.dtype.isnative and source.flags.aligned:
        return source
    fits_memory(source.shape, dtype, f"{name} as {dtype}")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused after
        return np.array(source, dtype=dtype, order="C", subok=False)


def _split(source: Any, names: tuple[str, ...] | None, name: str = "X") -> list[_Column]:
    """Column by column; numbers are seen to be finite or missing before they might become codes."""
    found = []
    for position in range(source.shape[1]):
        label = _label(position, names)
        column = _column(source, position, f"{label} of {name}")
        if column.numbers is not None and column.numbers.dtype.kind == "f" and np.isinf(column.numbers).any():
            row = int(np.argmax(np.isinf(column.numbers)))
            raise ValueError(f"{name} holds {column.numbers[row]} at row {row}, {label}")
        found.append(column)
    return found


def _column(source: Any, position: int, label: str) -> _Column:
    if not isinstance(source, np.ndarray):
        series = source.iloc[:, position] if hasattr(source, "iloc") else source[source.columns[position]]
        return _from_series(series, label)
    values = source[:, position]
    return _from_objects(values, label) if source.dtype.kind == "O" else _Column(label, numbers=values)


def _from_series(series: Any, label: str) -> _Column:
    """A column of a data frame."""
    dtype = series.dtype
    if str(dtype) == "category":  # pandas
        return _Column(label, codes=series.cat.codes.to_numpy(), levels=_levels_array(list(series.cat.categories)))
    if str(dtype).startswith("Enum"):  # polars, whose categories are in the order of their definition
        levels = list(dtype.categories)
        code = {level: number for number, level in enumerate(levels)} | {None: -1}
        codes = np.fromiter((code[value] for value in series.to_list()), dtype=np.intp, count=len(series))
        return _Column(label, codes=codes, levels=np.array(levels))
    if str(dtype).startswith(("Categorical", "String")):  # polars; its categories may be those of other frames too
        return _from_objects(series.to_list(), label)
    if getattr(dtype, "kind", "") in "iuf" and hasattr(dtype, "na_value"):  # pandas' nullable numbers
        return _Column(label, numbers=series.to_numpy(dtype=np.float64, na_value=np.nan))
    values = series.to_numpy()
    if values.dtype.kind in "fiu":
        return _Column(label, numbers=values)
    if values.dtype.kind in "bUSTO":
        return _from_objects(values, label)
    raise DtypeError(f"{label} must hold real numbers or categories, got dtype {dtype}")


def _from_objects(values: Any, label: str) -> _Column:
    """A column of Python objects: numbers if all are, else categories in ascending order."""
    values = values.tolist() if isinstance(values, np.ndarray) else values
    try:
        distinct = set(values)
    except TypeError as error:
        raise DtypeError(f"{label} holds what is neither number nor category: {error}") from None
    absent = {value for value in distinct if _is_missing(value)}
    present = distinct - absent
    if all(isinstance(value, (numbers.Real, np.bool_)) for value in present) and not _are_booleans(present):
        code = {value: _as_float(value, label) for value in present} | dict.fromkeys(absent, np.nan)
        found = np.fromiter((code[value] for value in values), dtype=np.float64, count=len(values))
        return _Column(label, numbers=found)
    try:
        levels = sorted(present)
    except TypeError as error:
        raise DtypeError(f"{label} holds categories that cannot be ordered: {error}") from None
    code = {level: number for number, level in enumerate(levels)} | dict.fromkeys(absent, -1)
    codes = np.fromiter((code[value] for value in values), dtype=np.intp, count=len(values))
    return _Column(label, codes=codes, levels=_levels_array(levels))


def _levels_array(levels: list[Any]) -> np.ndarray:
    """Strings, booleans or numbers as an array of theirs; other objects as they are."""
    array = np.array(levels)
    if array.ndim == 1 and array.dtype.kind in "fiubUS" and array.tolist() == levels:
        return array
    objects = np.empty(len(levels), dtype=object)
    objects[:] = levels
    return objects


def _are_booleans(values: set[Any]) -> bool:
    return bool(values) and all(isinstance(value, (bool, np.bool_)) for value in values)


def _is_missing(value: Any) -> bool:
    """None, NaN, or the NA and NaT of a data frame, which do not compare."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and value != value


def _as_float(value: Any, label: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{label} holds {value!r}, which does not fit float64") from None


# ---- indicators -----------------------------------------------------------------------------------------------------


def columns_of_counts(data: np.ndarray, indices: np.ndarray, n_features: int) -> np.ndarray:
    """Return which columns of sparse rows hold only whole numbers from 0 on, missing values aside.

    Text may present such a column as a truth value, `shr` instead of `shr > 0.5`: x > t means that x is not 0 for every
    t from 0 up to but not including 1. A weight of 0.3 is neither 0 nor above 0.5.

    Parameters
    ----------
    data, indices : ndarray (n_entries,)
        Of a CSR matrix.
    n_features : int
        Its columns.

    Returns
    -------
    ndarray (n_features,) of bool
        True for columns without entries too.

    Examples
    --------
    >>> import numpy as np
    >>> columns_of_counts(np.array([1.0, 0.5, 2.0]), np.array([0, 1, 2]), 4)
    array([ True, False,  True,  True])
    """
    found = np.ones(n_features, dtype=bool)
    if data.dtype.kind != "b":
        found[indices[(data < 0) | ((data != np.floor(data)) & (data == data))]] = False
    return found
