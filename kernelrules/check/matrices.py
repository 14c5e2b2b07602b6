"""Two-dimensional data: arrays, data frames and sparse matrices as one of the two forms that the compiled core reads.

An ndarray of float32 or float64 whose rows have no gaps, or a `Csr`; finite, or refused with the place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from kernelrules.check.scalars import DtypeError
from kernelrules.core.simd.finite import magnitude

__all__ = [
    "Csr",
    "dense",
    "fewer_columns",
    "float_type",
    "in_order",
    "matrix",
    "output",
    "pair",
    "sparse_rows",
    "sums_fit",
]

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Csr:
    """Sparse rows as the core reads them: columns ascending and unique in a row, int32; positions in Py_ssize_t."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.indptr) - 1, self.n_features

    @property
    def dtype(self) -> np.dtype:
        """Of the entries."""
        return self.data.dtype

    def toscipy(self) -> sparse.csr_array:
        """The same as scipy's type, sharing the arrays."""
        return sparse.csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    def columns(self) -> Csr:
        """The transpose: rows become columns."""
        by_column = self.toscipy().tocsc()
        return Csr(
            by_column.data, by_column.indices.astype(np.intc, copy=False), by_column.indptr.astype(np.intp), len(self)
        )

    def take(self, rows: np.ndarray) -> Csr:
        """Some of the rows, in the order given."""
        chosen = self.toscipy()[rows]
        return Csr(
            chosen.data, chosen.indices.astype(np.intc, copy=False), chosen.indptr.astype(np.intp), self.n_features
        )

    def astype(self, dtype: Any) -> Csr:
        """With entries of another type."""
        return Csr(self.data.astype(dtype, copy=False), self.indices, self.indptr, self.n_features)

    def __len__(self) -> int:
        return self.shape[0]


def float_type(dtype: Any, *inputs: Any) -> np.dtype:
    """The float type to compute in: the one asked for, or float32 if every input is, or else float64."""
    if dtype is not None:
        try:
            chosen = np.dtype(dtype)
        except TypeError:
            raise TypeError(f"dtype must be float32 or float64, got {dtype!r}") from None
        if chosen not in _FLOATS:
            raise TypeError(f"dtype must be float32 or float64, got {chosen}")
        return chosen
    narrow = all(a.dtype.kind == "f" and a.dtype.itemsize <= 4 for a in inputs)
    return _FLOATS[0] if narrow else _FLOATS[1]


def matrix(X: Any, name: str = "X", *, dtype: Any = None) -> np.ndarray | Csr:
    """Two-dimensional, finite data, ready for the core.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        Numbers; anything that NumPy reads as two-dimensional.
    name : str
        What to call it in an error.
    dtype : float32, float64 or None
        None keeps float32 and makes float64 of the rest.

    Returns
    -------
    ndarray or Csr
        A view of X where its layout allows it, else a copy.

    Examples
    --------
    >>> matrix([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    raw = _as_array(X, name)
    _require_two_dimensions(raw.shape, name)
    if raw.dtype.kind not in "fiub":
        raise DtypeError(f"{name} must hold real numbers, got dtype {raw.dtype}")
    chosen = float_type(dtype, raw)
    return _csr(raw, name, chosen) if sparse.issparse(raw) else _rows(raw, name, chosen)


def _require_two_dimensions(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        hint = "; one feature is reshape(-1, 1), one row reshape(1, -1)" if len(shape) == 1 else ""
        raise ValueError(f"{name} must be two-dimensional, got shape {shape}{hint}")
    if shape[1] == 0:
        raise ValueError(f"{name} has no columns: its shape is {shape}")


def pair(X: Any, Z: Any, dtype: Any = None) -> tuple[Any, Any]:
    """X and Z of one float type and one width; Z is None where it is None or X itself."""
    same = Z is None or Z is X or _is_same_array(X, Z)
    if same:
        return matrix(X, "X", dtype=dtype), None
    chosen = float_type(dtype, _as_array(X, "X"), _as_array(Z, "Z"))
    x, z = matrix(X, "X", dtype=chosen), matrix(Z, "Z", dtype=chosen)
    if x.shape[1] != z.shape[1]:
        raise ValueError(f"Z has {z.shape[1]} columns but X has {x.shape[1]}")
    return x, z


def sums_fit(x: Any, z: Any, power: int) -> None:
    """Refuse data whose inner products (power 2) or sums of magnitudes (power 1) could overflow: infinities would
    cancel to NaN."""
    any_sparse = isinstance(x, Csr) or isinstance(z, Csr)
    summed_in = _FLOATS[1] if any_sparse else x.dtype
    here, there = (_largest(a) for a in (x, x if z is None else z))
    if (here * there if power == 2 else here + there) * x.shape[1] > float(np.finfo(summed_in).max) / 4:
        advice = "dtype=float64 or smaller units" if summed_in == _FLOATS[0] else "smaller units"
        raise ValueError(
            f"sums over the features of X and Z could overflow {summed_in}: their largest entries are {here:.3g} and "
            f"{there:.3g}; use {advice}"
        )


def _largest(a: Any) -> float:
    return magnitude(a.data[None, :] if isinstance(a, Csr) else a)[0]


def output(out: Any, shape: tuple[int, ...], dtype: np.dtype, *inputs: Any) -> np.ndarray:
    """An array to write into: of the right shape and type, writeable, and apart from the inputs."""
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a numpy array, got {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape} but the result has shape {shape}")
    if out.dtype != dtype or not out.dtype.isnative:
        raise DtypeError(f"out has dtype {out.dtype} but the result has dtype {dtype}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    if not out.flags.aligned:
        raise ValueError("out is not aligned in memory")
    for other in inputs:
        arrays = [getattr(other, part, None) for part in ("data", "indices", "indptr", "row", "col")]
        arrays = arrays if sparse.issparse(other) else [other]
        if any(isinstance(a, np.ndarray) and _overlap(out, a) for a in arrays):
            raise ValueError("out overlaps the input in memory")
    return out


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.shares_memory(a, b, max_work=10_000)
    except np.exceptions.TooHardError:
        return True


def _is_same_array(X: Any, Z: Any) -> bool:
    """Whether two arrays are views of the very same numbers."""
    if not (isinstance(X, np.ndarray) and isinstance(Z, np.ndarray)):
        return False
    return (X.ctypes.data, X.shape, X.strides, X.dtype) == (Z.ctypes.data, Z.shape, Z.strides, Z.dtype)


def _as_array(X: Any, name: str) -> Any:
    """X as an ndarray or a sparse matrix, without a look at its numbers."""
    if isinstance(X, np.ma.MaskedArray):
        if np.ma.is_masked(X):
            raise ValueError(f"{name} has masked entries, first at {tuple(int(i) for i in np.argwhere(X.mask)[0])}")
        return X.data
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return X
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        return _frame(X, name)
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array: {error}") from None


def _frame(X: Any, name: str) -> np.ndarray:
    """A data frame's numbers; nullable columns give NaN for missing."""
    plain = X.to_numpy()
    if plain.dtype.kind in "fiub":
        return plain
    columns = []
    for position, column in enumerate(X.columns):
        values = X.iloc[:, position] if hasattr(X, "iloc") else X[column]  # names may repeat
        if getattr(values.dtype, "kind", "") in "iufb" and hasattr(values.dtype, "na_value"):
            values = values.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' nullable numbers
        else:
            values = values.to_numpy()
        if values.dtype.kind not in "fiub":
            raise DtypeError(f"column {column!r} of {name} does not hold numbers")
        columns.append(values)
    return np.column_stack(columns)


def _rows(raw: np.ndarray, name: str, dtype: np.dtype) -> np.ndarray:
    array = _cast(raw, dtype)
    itemsize = array.itemsize
    no_gaps = array.strides[1] == itemsize or array.shape[1] == 1
    apart = array.strides[0] >= array.shape[1] * itemsize or array.shape[0] <= 1
    if not (no_gaps and apart and array.strides[0] % itemsize == 0 and array.flags.aligned):
        array = in_order(array)
    _, place = magnitude(array)
    if place is not None:
        _refuse(raw[place], name, dtype, *place)
    return array


def in_order(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Without gaps, in C's order, and aligned: ascontiguousarray does not see to the last."""
    return np.require(array, dtype, ("C", "A", "E"))


def _cast(raw: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused after
        return np.asarray(raw, dtype=dtype)


def _refuse(value: Any, name: str, dtype: np.dtype, row: int, column: int) -> None:
    place = f"at row {row}, column {column}"
    if np.isfinite(value):
        raise ValueError(f"{name} does not fit {dtype} {place}: {value!r}")
    raise ValueError(f"{name} holds {value} {place}")


# ---- sparse data ------------------------------------------------------------------------------------------------


def _csr(raw: Any, name: str, dtype: np.dtype) -> Csr:
    source = raw.tocsr()
    n_rows, n_columns = source.shape
    data, indices, indptr = source.data, source.indices, source.indptr
    if data.ndim != 1 or any(a.ndim != 1 or a.dtype.kind not in "iu" for a in (indices, indptr)):
        raise ValueError(f"{name} is not a valid CSR matrix: its arrays must be flat, and its indices whole numbers")
    indptr = indptr.astype(np.intp, copy=False)
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise ValueError(f"{name} is not a valid CSR matrix: its indptr does not ascend from 0")
    n_entries = int(indptr[-1])
    if n_entries > min(len(indices), len(data)):
        raise ValueError(f"{name} is not a valid CSR matrix: its indptr points past the entries")
    data, indices = data[:n_entries], indices[:n_entries]
    outside = np.flatnonzero((indices < 0) | (indices >= n_columns))
    if len(outside):
        row = int(np.searchsorted(indptr, outside[0], side="right")) - 1
        raise ValueError(f"{name} is not a valid CSR matrix: column {indices[outside[0]]} in row {row}")
    starts = np.zeros(n_entries + 1, dtype=bool)
    starts[indptr] = True
    if (np.diff(indices) <= 0)[~starts[1:n_entries]].any():  # unsorted, or a column twice in a row
        canonical = sparse.csr_array((data, indices, indptr), shape=source.shape, copy=True)
        canonical.sum_duplicates()
        data, indices, indptr = canonical.data, canonical.indices, canonical.indptr
    cast = in_order(_cast(data, dtype))
    _, place = magnitude(cast[None, :])
    if place is not None:
        row = int(np.searchsorted(indptr, place[1], side="right")) - 1
        _refuse(data[place[1]], name, dtype, row, int(indices[place[1]]))
    if n_columns <= np.iinfo(np.intc).max:
        indices = indices.astype(np.intc, copy=False)
    return Csr(cast, in_order(indices), in_order(indptr, np.intp), n_columns)


def dense(x: np.ndarray | Csr) -> np.ndarray:
    """Data that have been checked, as an array."""
    return x.toscipy().toarray() if isinstance(x, Csr) else x


def sparse_rows(array: np.ndarray) -> Csr:
    """Dense rows that have been checked, as sparse ones."""
    by_row = sparse.csr_array(array)
    return Csr(by_row.data, by_row.indices.astype(np.intc), by_row.indptr.astype(np.intp), array.shape[1])


def fewer_columns(x: Any, z: Any) -> tuple[Any, Any]:
    """Renumber the columns of sparse data that has far more of them than entries: no kernel sees the empty ones.

    The core keeps an array of one position a column, and its column numbers are int32.
    """
    operands = [a for a in (x, z) if a is not None]
    if not all(isinstance(a, Csr) for a in operands):
        return x, z
    n_entries = sum(len(a.data) for a in operands)
    if x.n_features <= 4 * n_entries + 1024:
        return x, z
    used = np.unique(np.concatenate([a.indices for a in operands]))
    renumbered = [
        Csr(a.data, np.searchsorted(used, a.indices).astype(np.intc), a.indptr, max(len(used), 1)) for a in operands
    ]
    return renumbered[0], renumbered[1] if z is not None else None
