"""Kernel values of the training data: rows for the solver, and exact products that confirm its solutions.

Kernels bounded by 1 (RBF, Laplacian, Sigmoid) have float32 rows, half the memory and twice the speed; the gradient
K·beta + p is then computed again from float64 values before a solution is returned. Other kernels, whose values may
span many orders of magnitude, and all small problems use float64 rows.

    linear              no matrix: X·(Xᵀ·beta)
    n² values fit       the whole matrix, computed once (`cache_mb` is the limit); if few rows are expected to be
                        needed, rows by blocks first, and the matrix once half of the rows were needed
    they do not         rows by blocks, as many kept as fit
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check, kernels, parallel, progress
from kernelrules.core.base import memory
from kernelrules.core.gram.csr import gram_csr
from kernelrules.core.gram.dense import gram_dense
from kernelrules.core.gram.distances import distances_dense, exp_of_distances
from kernelrules.core.svm import gradient, rows
from kernelrules.core.svm.working_set import MAX_SET
from kernelrules.kernels.matrix import refuse_overflow, require_square
from kernelrules.kernels.values import (
    ask,
    callable_matrix,
    is_callable,
    plain,
    product,
    require_symmetric,
    symmetric_product,
    take,
)
from kernelrules.svm.float32_labels import entry_error

__all__ = ["MAX_FLOAT64_POINTS", "KernelValues"]

MAX_FLOAT64_POINTS = 1024  # up to which float32 rows would save nothing
_MAX_MATRIX_BYTES = 1 << 29  # of a matrix computed as a whole: larger fresh memory costs more time than its contents
_MATRIX_SHARE = 0.6  # of the memory for kernel values; the rest is for the parts that the solver gathers from a matrix
_MATRIX_PER_ROWS = 2  # the whole matrix is computed after 1/2 of its rows: it costs about as much
_MIN_DENSE_SHARE = 0.05  # share of entries from which sparse rows are computed faster as dense ones
_BLOCK_ROWS = 256  # rows computed at a time
_CALLABLE_MEMORY_PARTS = 8  # a callable kernel is called for at most 1/8 of the memory at a time
_MAX_POINTS_PER_USED = 1.7  # up to which the triangle between all points is cheaper than a rectangle


def memory_for(cache_mb: float | None) -> int:
    """Return the bytes for kernel values: `cache_mb`, or a quarter of the free memory."""
    return check.free_memory() // 4 if cache_mb is None else int(min(cache_mb * 2**20, 1 << 50))


def is_bounded(kernel: Any) -> bool:
    """Return whether kernel values lie between -1 and 1: then rows may be float32."""
    return isinstance(kernel, (kernels.RBF, kernels.Laplacian, kernels.Sigmoid))


def matrix_fits(n: int, kernel: Any, cache_mb: float | None) -> bool:
    """Return whether the whole matrix of n points fits."""
    n_bytes = n * n * (4 if is_bounded(kernel) and n > MAX_FLOAT64_POINTS else 8)
    return n <= 2 or n_bytes <= min(_MATRIX_SHARE * memory_for(cache_mb), _MAX_MATRIX_BYTES)


def _rows_of(source: tuple[str, Any, np.ndarray], n_threads: int) -> rows.KernelRows:
    """Return rows of a matrix, or of data of the linear kernel; `source` is the kind, these data and the diagonal."""
    kind, data, diagonal = source
    return (rows.whole_matrix if kind == "matrix" else rows.linear_products)(data, diagonal, n_threads)


def _squares(x: Any) -> np.ndarray:
    """Return squared lengths of rows."""
    return np.asarray(x.power(2).sum(axis=1)).ravel() if sparse.issparse(x) else np.einsum("ij,ij->i", x, x)


class KernelValues:
    """Rows for the solver, and exact products, of one kernel on one set of points.

    Parameters
    ----------
    x : ndarray or Csr
        The points, checked; for `Precomputed` the square matrix.
    kernel : Kernel or callable
        With gamma as a number.
    n_threads : int
        Threads to use.
    cache_mb : float or None
        Memory for kernel values; None: a quarter of the free memory.
    tick : callable or None
        Receives progress of a large matrix.
    ready : bool
        Whether to prepare rows at once.
    few : bool
        Whether few rows are expected to be needed.
    buffer : ndarray, optional
        Memory, in bytes, that a whole matrix may use.

    Attributes
    ----------
    rows : rows.KernelRows
        What the solver reads.
    source : tuple or None
        (kind, data, diagonal) of rows in memory, from which another process can make the same rows.
    factor : tuple or None
        (source, Factor): the factor of `source` that interior_points.py computed.
    executor_runs : ExecutorRuns or None
        Solves machines on these values by an executor.
    """

    def __init__(
        self,
        x: Any,
        kernel: Any,
        n_threads: int,
        cache_mb: float | None = None,
        tick: Any = None,
        ready: bool = True,
        few: bool = False,
        buffer: np.ndarray | None = None,
    ) -> None:
        self.x, self.kernel, self.n_threads, self.tick = x, kernel, n_threads, tick
        self.given = isinstance(kernel, kernels.Precomputed)
        self.budget = memory_for(cache_mb)
        self.n = x.shape[0]
        self.buffer = buffer
        self.rows_first = False  # whether a whole matrix would fit, but has not been computed
        if self.given:
            self._require_kernel_matrix()
        elif not is_callable(kernel):
            refuse_overflow(x if x.dtype == np.float64 else x.astype(np.float64), None, kernel)
            self.diagonal(np.float64)
        self.squares = self._largest_norm = self.source = self.factor = self.executor_runs = None
        self.rows = self._make_rows(is_bounded(kernel) and self.n > MAX_FLOAT64_POINTS, few) if ready else None

    @classmethod
    def from_source(cls, source: tuple[str, Any, np.ndarray], budget: int, n_threads: int) -> KernelValues:
        """Return values from the `source` of another process, for the solver alone."""
        self = cls.__new__(cls)
        self.x = self.kernel = self.tick = self.buffer = self.squares = self._largest_norm = self.executor_runs = None
        self.n, self.n_threads, self.budget = len(source[2]), n_threads, budget
        self.given = self.rows_first = False
        self.use_source(source)
        return self

    def use_source(self, source: tuple[str, Any, np.ndarray]) -> None:
        """Use the same rows, from other memory."""
        self.source, self.rows, self.factor = source, _rows_of(source, self.n_threads), None

    @classmethod
    def only_products(cls, x: Any, kernel: Any, n_threads: int) -> KernelValues:
        """Return values for exact products, without rows."""
        return cls(x, kernel, n_threads, ready=False)

    @classmethod
    def from_distances(cls, x: Any, kernel: kernels.RBF, n_threads: int, tick: Any = None) -> KernelValues:
        """Return values with all squared distances (float32): `with_gamma` makes matrices of several gammas of them."""
        self = cls(x, kernel, n_threads, tick=tick, ready=False)
        data, columns = self._working_data(np.dtype(np.float32))
        if columns is None:
            self.squares = memory.empty((self.n, self.n), np.float32)
            distances_dense(data, self.squares, n_threads, tick)
        return self

    @classmethod
    def with_distances(cls, x: Any, kernel: kernels.RBF, n_threads: int, squares: np.ndarray) -> KernelValues:
        """Return values with distances that `from_distances` computed in another process."""
        self = cls(x, kernel, n_threads, ready=False)
        self.squares = squares
        return self

    def with_gamma(self, kernel: kernels.RBF) -> KernelValues | None:
        """Return values of the kernel with another gamma, from the distances; None if there are none (sparse data)."""
        if self.squares is None:
            return None
        other = KernelValues(self.x, kernel, self.n_threads, tick=self.tick, ready=False)
        matrix = memory.empty(self.squares.shape, np.float32)
        exp_of_distances(self.squares, kernel.gamma, matrix, self.n_threads)
        other.rows = other._rows_in_memory("matrix", matrix, np.ones(self.n, dtype=np.float32))
        return other

    def _require_kernel_matrix(self) -> None:
        x = self.x
        require_square(x)
        self.x = x = check.dense(x)
        require_symmetric(x, "X")

    def _make_rows(self, float32: bool, few: bool = False) -> rows.KernelRows:
        """Return the rows for the solver, by the table above."""
        if isinstance(self.kernel, kernels.Linear):
            x = self.x.astype(np.float64)
            if isinstance(x, check.Csr):
                x, _ = check.fewer_columns(x, None)
            return self._rows_in_memory("linear", x, self.diagonal(np.float64))
        self.source = None
        dtype = np.dtype(np.float32 if float32 else np.float64)
        if self.given:
            matrix = self.x if self.x.dtype == np.float64 else self.x.astype(np.float64)
            return self._rows_in_memory("matrix", matrix, np.diagonal(matrix).copy())
        fits = self.n * self.n * dtype.itemsize <= min(_MATRIX_SHARE * self.budget, _MAX_MATRIX_BYTES) or self.n <= 2
        row_bytes = self.budget - min(self.budget // 3, MAX_SET**2 * dtype.itemsize)  # the rest is for a working set
        n_slots = max(2, row_bytes // (self.n * dtype.itemsize))
        if is_callable(self.kernel):
            return self._callable_rows(fits, n_slots)
        x, columns = self._working_data(dtype)
        self.rows_first = fits and few
        if not fits or self.rows_first:
            diagonal = self.diagonal(dtype)
            n_slots = 1 + self.n // _MATRIX_PER_ROWS + _BLOCK_ROWS if self.rows_first else n_slots
            return rows.cached_rows(x, columns, self.kernel.core(), diagonal, n_slots, self.n_threads)
        matrix = self._empty_matrix(dtype)
        if columns is None:
            threads = parallel.enough_threads(self.n_threads, self.n * self.n * (2 + x.shape[1] / 16))
            gram_dense(x, None, self.kernel.core(), matrix, threads, self.tick, True)
        else:
            threads = parallel.enough_threads(self.n_threads, self.n * self.n * 4.0)
            gram_csr(x, None, columns, x.shape[1], self.kernel.core(), matrix, threads, self.tick, True)
        return self._rows_in_memory("matrix", matrix, np.diagonal(matrix).copy())

    def _rows_in_memory(self, kind: str, data: Any, diagonal: np.ndarray) -> rows.KernelRows:
        """Return rows of data in memory, and keep their source."""
        self.source = (kind, data, diagonal)
        return _rows_of(self.source, self.n_threads)

    def _empty_matrix(self, dtype: np.dtype) -> np.ndarray:
        n_bytes = self.n * self.n * dtype.itemsize
        if self.buffer is None or len(self.buffer) < n_bytes:
            return memory.empty((self.n, self.n), dtype)
        return self.buffer[:n_bytes].view(dtype).reshape(self.n, self.n)

    def _callable_rows(self, fits: bool, n_slots: int) -> rows.KernelRows:
        kernel, x, call_bytes = self.kernel, self.x, self.budget // _CALLABLE_MEMORY_PARTS
        if fits:
            matrix = callable_matrix(kernel, x, x, self._empty_matrix(np.dtype(np.float64)), self.tick, call_bytes)
            require_symmetric(matrix, "kernel(X, X)")
            return self._rows_in_memory("matrix", matrix, np.diagonal(matrix).copy())
        check_interrupt = progress.uncounted_tick(self.tick)

        def supply(points: Any, out: Any) -> None:
            callable_matrix(kernel, take(x, np.asarray(points)), x, np.asarray(out), check_interrupt, call_bytes)

        return rows.supplied_rows(supply, self.diagonal(np.float64), n_slots)

    def _working_data(self, dtype: np.dtype) -> tuple[Any, Any]:
        """Return the data in the rows' type, centred if the kernel is invariant to that, and columns of CSR data."""
        x = self.x
        if isinstance(x, check.Csr):
            if len(x.data) < _MIN_DENSE_SHARE * self.n * x.shape[1]:
                x, _ = check.fewer_columns(x, None)
                x = x.astype(dtype)
                return x, x.columns()
            x = check.dense(x)
        if dtype == x.dtype:
            return x, None
        if isinstance(self.kernel, (kernels.RBF, kernels.Laplacian)):
            return (x - x.mean(axis=0, dtype=np.float64)).astype(dtype), None
        return x.astype(dtype), None

    def diagonal(self, dtype: Any) -> np.ndarray:
        """Return k(x, x) of every point."""
        if is_callable(self.kernel):
            values = np.empty(self.n, dtype=dtype)
            for i in range(self.n):
                one = take(self.x, np.array([i]))
                values[i] = ask(self.kernel, one, one)[0, 0]
        else:
            values = kernels.diagonal(plain(self.x), self.kernel).astype(dtype)
        if not np.isfinite(values).all():
            raise ValueError(
                f"kernel values overflow float64 ({self.largest_entry()}): scale the data, or take a smaller gamma or "
                "degree"
            )
        return np.ascontiguousarray(values)

    def largest_entry(self) -> str:
        """Return words that name the largest number of the data: where kernel values get their size from."""
        if self.given:
            return "in X, the kernel matrix"
        x = self.x
        if x.shape[1] == 0:
            return "of no columns"
        if isinstance(x, check.Csr):
            largest = np.zeros(x.shape[1])
            np.maximum.at(largest, x.indices, np.abs(x.data).astype(np.float64))
        else:
            largest = np.abs(x).max(axis=0)
        column = int(np.argmax(largest))
        return f"numbers up to {largest[column]:.3g} in column {column} of X"

    def known_diagonal(self) -> np.ndarray | None:
        """Return k(x, x) of every point; None if that requires calls of the user's function."""
        if self.source is not None:
            return self.source[2]
        return None if is_callable(self.kernel) else self.diagonal(np.float64)

    def rows_before_matrix(self) -> int | None:
        """Return after how many rows the whole matrix is worth its cost; None if it exists or does not fit."""
        return self.n // _MATRIX_PER_ROWS if self.rows_first else None

    def use_matrix(self) -> None:
        """Compute the whole matrix, because many rows are needed."""
        float32, self.rows, self.rows_first = self.rows.single, None, False
        self.rows = self._make_rows(float32)

    def use_float64(self) -> None:
        """Replace float32 rows by float64 rows, for problems that need more digits."""
        self.rows = None  # frees the float32 matrix first
        self.rows = self._make_rows(float32=False)

    def rough_product(self, beta: np.ndarray, points: np.ndarray | None = None) -> np.ndarray:
        """Return K·beta from the rows in memory, at all points or at some, in ascending order."""
        if not self._has_whole():
            everywhere = self.exact_product(beta[None, :])[0]
            return everywhere if points is None else everywhere[points]
        return self._from_rows(beta, points)

    def exact_product(self, betas: np.ndarray, points: np.ndarray | None = None, blocks: Any = None) -> np.ndarray:
        """Return K·betaᵀ in float64 at some points or at all, (n_machines, n_points).

        `blocks` marks which machines require which blocks of points; None: all.
        """
        if self._has_whole() and not self.rows.single:
            return np.array([self._from_rows(beta, points) for beta in betas])
        used = np.flatnonzero(betas.any(axis=0))
        x = self.x.astype(np.float64, copy=False) if not isinstance(self.x, check.Csr) else self.x.astype(np.float64)
        here = x if points is None or len(points) == self.n else take(x, points)
        call_bytes = self.budget // _CALLABLE_MEMORY_PARTS
        with parallel.blas_threads(1):  # so that every process computes the same bits
            if self.given:
                return np.ascontiguousarray((here[:, used] @ betas[:, used].T).T)
            if self._mostly_used(points, used):
                part = betas if points is None else betas[:, points]
                return symmetric_product(here, self.kernel, part, self.n_threads, self.tick, blocks, call_bytes)
            others = take(x, used)
            values = product(here, others, self.kernel, betas[:, used], self.n_threads, self.tick, blocks, call_bytes)
            return np.ascontiguousarray(values.T)

    def matrix_between(self, points: np.ndarray) -> np.ndarray:
        """Return the kernel values between some points in float64."""
        if self.given:
            return np.asarray(self.x[points][:, points], dtype=np.float64)
        x = take(self.x, points).astype(np.float64)
        if is_callable(self.kernel):
            out, call_bytes = np.empty((len(points),) * 2), self.budget // _CALLABLE_MEMORY_PARTS
            return callable_matrix(self.kernel, x, x, out, progress.uncounted_tick(self.tick), call_bytes)
        return kernels.gram(plain(x), kernel=self.kernel, n_threads=self.n_threads)

    def _mostly_used(self, points: np.ndarray | None, used: np.ndarray) -> bool:
        """Return whether the points contain all used ones and few others: one triangle of their matrix is cheaper."""
        n_points = self.n if points is None else len(points)
        holds = points is None or bool(np.isin(used, points, assume_unique=True).all())
        return holds and n_points < _MAX_POINTS_PER_USED * len(used) and not isinstance(self.x, check.Csr)

    def row_error(self) -> float:
        """Return a bound of the error of an entry of the solver's rows."""
        if not self.rows.single:
            return 0.0
        if self._largest_norm is None:
            x = self.x.toscipy() if isinstance(self.x, check.Csr) else self.x
            if not isinstance(self.kernel, kernels.Sigmoid) and not sparse.issparse(x):
                x = x - x.mean(axis=0)
            self._largest_norm = float(np.sqrt(_squares(x).max()))
        return entry_error(self.kernel, self._largest_norm, self.x.shape[1])

    def _has_whole(self) -> bool:
        return self.rows is not None and self.rows.kind != rows.CACHED_KIND

    def _from_rows(self, beta: np.ndarray, points: np.ndarray | None) -> np.ndarray:
        runs = [(0, self.n)]
        if points is not None:
            ends = np.flatnonzero(np.diff(points) != 1) + 1
            runs = [(int(run[0]), len(run)) for run in np.split(points, ends) if len(run)]
        out = np.zeros(sum(length for _, length in runs))
        gradient.multiply(self.rows, np.ascontiguousarray(beta, dtype=np.float64), out, runs)
        return out
