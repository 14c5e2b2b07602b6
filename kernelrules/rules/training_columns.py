"""The columns of training data, dense or sparse, and their ranks: how `rules.induce` and `rules.additive` read X."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check, parallel
from kernelrules.check.frames import columns_of_counts, read
from kernelrules.core.rules.ranks import RankedData, rank_dense, rank_sparse

__all__ = ["MAX_ROWS", "TrainingColumns"]

MAX_ROWS = (1 << 31) - 1  # row numbers have 32 bits in the core, one of them for flags
_NANOSECONDS_PER_ENTRY = 30.0  # to sort it


class TrainingColumns:
    """Columns of X with their names, levels and missing values. Sparse X stays sparse unless `dense`.

    Parameters
    ----------
    X, categorical, missing
        As given to `rules.induce` or `rules.additive`.
    dense : bool
        Whether the values themselves are needed.
    """

    def __init__(self, X: Any, categorical: Any, missing: str, *, dense: bool = False) -> None:
        self._values: np.ndarray | None = None
        if sparse.issparse(X) and not dense and (categorical is None or isinstance(categorical, str)):
            if categorical not in (None, "from_dtype"):
                read(np.zeros((1, 1)), categorical)  # raises
            self._sparse = rows = check.matrix(X)
            self.n_rows, self.n_features = rows.shape
            self.categories: tuple[Any, ...] = (None,) * self.n_features
            self.names = None
            self.missing = np.zeros(self.n_features, dtype=bool)
            self.indicators = columns_of_counts(rows.data, rows.indices, self.n_features)
            self.n_levels = np.zeros(self.n_features, dtype=np.intp)
        else:
            columns = read(X, categorical, missing)
            self._values = columns.values
            self.n_rows, self.n_features = columns.values.shape
            self.categories, self.names, self.missing = columns.categories, columns.names, columns.missing
            self.indicators, self.n_levels = columns.indicators, columns.n_levels.astype(np.intp)

    def require_rows(self, used: np.ndarray | None = None) -> None:
        """Raise ValueError if there are no rows, or more rows in use than the core can number."""
        if self.n_rows == 0:
            raise ValueError(f"X has no rows: its shape is {(self.n_rows, self.n_features)}")
        n = 0 if used is None else int(used.sum())
        if n > MAX_ROWS:
            raise ValueError(f"X has {n} rows; at most {MAX_ROWS} are allowed")

    def values(self, used: np.ndarray) -> np.ndarray:
        """Dense values of the rows in use."""
        return self._values if used.all() else self._values[used]

    def ranked(self, used: np.ndarray, n_threads: int, n_copies: int) -> RankedData:
        """Ranks of the rows in use; memory for `n_copies` of the entries must be available."""
        n_entries = int(used.sum()) * self.n_features if self._values is not None else len(self._sparse.data)
        n_threads = parallel.enough_threads(n_threads, _NANOSECONDS_PER_ENTRY * n_entries)
        check.fits_memory((2 * n_copies, n_entries), np.uint32, "the ranks of X")  # a row and a rank per entry
        if self._values is not None:
            return rank_dense(self.values(used), self.n_levels, n_threads)
        rows = self._sparse.toscipy()
        by_column = (rows if used.all() else rows[used]).tocsc()
        if not by_column.data.all():
            by_column = by_column.copy()
            by_column.eliminate_zeros()
        indices, start = by_column.indices.astype(np.intc, copy=False), by_column.indptr.astype(np.intp, copy=False)
        return rank_sparse(by_column.data, indices, start, by_column.shape[0], n_threads)
