"""Kernel values of the training data, as the solver wants them: rows to work with, and exact products to check with.

Kernels that are bounded by 1 (RBF, Laplacian, Sigmoid) give rows in float32, half the memory and twice the speed; the
solver's gradient is then made again from float64 values, K·beta, before an answer is believed. The others, whose
values may span many orders, and all small problems work in float64.

    linear              no matrix: X·(Xᵀ·beta)
    n² values fit       the whole matrix, made once (`cache_mb` is the limit); where few rows are expected to be needed,
                        rows by blocks first, and the matrix when it turns out that half of them are
    they do not         rows by blocks, as many kept as fit
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check, kernels, parallel
from kernelrules.core import blocks, rows
from kernelrules.core.gram import distances_dense, exp_of_distances, gram_dense
from kernelrules.core.gram_csr import gram_csr
from kernelrules.core.working_set import WIDEST
from kernelrules.kernels.matrix import refuse_overflow, require_square
from kernelrules.kernels.values import ask, is_callable, plain, product, require_symmetric, symmetric_product, take
from kernelrules.svm.narrow import entry_error

__all__ = ["KernelValues", "rows_of"]

_SMALL = 1024  # points up to which float64 costs nothing worth saving
_WHOLE = 1 << 29  # bytes of the largest matrix that is made as a whole: fresh memory costs more time than its contents
_MATRIX_SHARE = 0.6  # of the memory for kernel values; the rest is for the parts that the solver gathers from a matrix
_SHARE = 2  # a whole matrix is made when half of its rows were: it costs about as much
_DENSE_FROM = 0.05  # share of entries from which sparse rows are computed faster as dense ones
_BLOCK = 256  # rows made at a time
_MOSTLY = 1.7  # points for each one that is used, up to which a triangle between all costs less


def memory_for(cache_mb: float | None) -> int:
    """Bytes for kernel values: what was asked for, or a quarter of what is free."""
    return check.free_memory() // 4 if cache_mb is None else int(min(cache_mb * 2**20, 1 << 50))


def is_bounded(kernel: Any) -> bool:
    """Whether kernel values lie between -1 and 1: then rows are float32."""
    return isinstance(kernel, (kernels.RBF, kernels.Laplacian, kernels.Sigmoid))


def matrix_fits(n: int, kernel: Any, cache_mb: float | None) -> bool:
    """Whether the whole matrix of n points is made, where nothing speaks against it."""
    n_bytes = n * n * (4 if is_bounded(kernel) and n > _SMALL else 8)
    return n <= 2 or n_bytes <= min(_MATRIX_SHARE * memory_for(cache_mb), _WHOLE)


def rows_of(source: tuple[str, Any, np.ndarray], n_threads: int) -> rows.KernelRows:
    """Rows from a matrix, or from data of the linear kernel; and the diagonal."""
    kind, data, diagonal = source
    return (rows.whole_matrix if kind == "matrix" else rows.linear_products)(data, diagonal, n_threads)


def _squares(x: Any) -> np.ndarray:
    """Squared lengths of rows."""
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
        To use.
    cache_mb : float or None
        Memory for kernel values; None: a quarter of what is free.
    tick : callable or None
        Told of progress in a large matrix.
    ready : bool
        Whether to prepare rows at once.
    few : bool
        Whether few of them are expected to be needed.
    buffer : ndarray, optional
        Bytes that a whole matrix may be put into.
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
        self.patient = False  # whether a whole matrix would fit, but has not been made
        if self.given:
            self._require_kernel_matrix()
        elif not is_callable(kernel):
            refuse_overflow(x if x.dtype == np.float64 else x.astype(np.float64), None, kernel)
            self.diagonal(np.float64)
        self.squares = self._largest = self.source = None
        self.workers = None  # of an executor, which solves machines on these values
        self.rows = self._find_rows(is_bounded(kernel) and self.n > _SMALL, few) if ready else None

    @classmethod
    def from_source(cls, source: tuple[str, Any, np.ndarray], budget: int, n_threads: int) -> KernelValues:
        """Rows that another process described, for the solver alone."""
        self = cls.__new__(cls)
        self.x = self.kernel = self.tick = self.buffer = self.squares = self._largest = self.workers = None
        self.n, self.n_threads, self.budget = len(source[2]), n_threads, budget
        self.given = self.patient = False
        self.use_source(source)
        return self

    def use_source(self, source: tuple[str, Any, np.ndarray]) -> None:
        """The same rows, from memory elsewhere."""
        self.source, self.rows = source, rows_of(source, self.n_threads)

    @classmethod
    def only_products(cls, x: Any, kernel: Any, n_threads: int) -> KernelValues:
        """For exact products, without rows."""
        return cls(x, kernel, n_threads, ready=False)

    @classmethod
    def from_distances(cls, x: Any, kernel: kernels.RBF, n_threads: int, tick: Any = None) -> KernelValues:
        """With all squared distances, float32, so that `with_gamma` can make matrices of several gammas from them."""
        self = cls(x, kernel, n_threads, tick=tick, ready=False)
        data, columns = self._working_data(np.dtype(np.float32))
        if columns is None:
            self.squares = blocks.empty((self.n, self.n), np.float32)
            distances_dense(data, self.squares, n_threads, tick)
        return self

    @classmethod
    def with_distances(cls, x: Any, kernel: kernels.RBF, n_threads: int, squares: np.ndarray) -> KernelValues:
        """With distances that `from_distances` found in another process."""
        self = cls(x, kernel, n_threads, ready=False)
        self.squares = squares
        return self

    def with_gamma(self, kernel: kernels.RBF) -> KernelValues | None:
        """Values of the kernel with another gamma, from the distances; None where there are none (sparse data)."""
        if self.squares is None:
            return None
        other = KernelValues(self.x, kernel, self.n_threads, tick=self.tick, ready=False)
        matrix = blocks.empty(self.squares.shape, np.float32)
        exp_of_distances(self.squares, kernel.gamma, matrix, self.n_threads)
        other.rows = other._described("matrix", matrix, np.ones(self.n, dtype=np.float32))
        return other

    def _require_kernel_matrix(self) -> None:
        x = self.x
        require_square(x)
        self.x = x = check.dense(x)
        require_symmetric(x, "X")

    def _find_rows(self, narrow: bool, few: bool = False) -> rows.KernelRows:
        """What the solver reads, as described above."""
        if isinstance(self.kernel, kernels.Linear):
            x = self.x.astype(np.float64)
            if isinstance(x, check.Csr):
                x, _ = check.fewer_columns(x, None)
            return self._described("linear", x, self.diagonal(np.float64))
        self.source = None
        dtype = np.dtype(np.float32 if narrow else np.float64)
        if self.given:
            matrix = self.x if self.x.dtype == np.float64 else self.x.astype(np.float64)
            return self._described("matrix", matrix, np.diagonal(matrix).copy())
        fits = self.n * self.n * dtype.itemsize <= min(_MATRIX_SHARE * self.budget, _WHOLE) or self.n <= 2
        room = self.budget - min(self.budget // 3, WIDEST**2 * dtype.itemsize)  # the rest is for a working set
        n_slots = max(2, room // (self.n * dtype.itemsize))
        if is_callable(self.kernel):
            return self._callable_rows(fits, n_slots)
        x, columns = self._working_data(dtype)
        self.patient = fits and few
        if not fits or self.patient:
            diagonal = self.diagonal(dtype)
            n_slots = 1 + self.n // _SHARE + _BLOCK if self.patient else n_slots
            return rows.cached_rows(x, columns, self.kernel.core(), diagonal, n_slots, self.n_threads)
        matrix = self._empty_matrix(dtype)
        if columns is None:
            threads = parallel.enough_threads(self.n_threads, self.n * self.n * (2 + x.shape[1] / 16))
            gram_dense(x, None, self.kernel.core(), matrix, threads, self.tick, True)
        else:
            threads = parallel.enough_threads(self.n_threads, self.n * self.n * 4.0)
            gram_csr(x, None, columns, x.shape[1], self.kernel.core(), matrix, threads, self.tick, True)
        return self._described("matrix", matrix, np.diagonal(matrix).copy())

    def _described(self, kind: str, data: Any, diagonal: np.ndarray) -> rows.KernelRows:
        """Rows that lie in memory, and what another process can make them of."""
        self.source = (kind, data, diagonal)
        return rows_of(self.source, self.n_threads)

    def _empty_matrix(self, dtype: np.dtype) -> np.ndarray:
        n_bytes = self.n * self.n * dtype.itemsize
        if self.buffer is None or len(self.buffer) < n_bytes:
            return blocks.empty((self.n, self.n), dtype)
        return self.buffer[:n_bytes].view(dtype).reshape(self.n, self.n)

    def _callable_rows(self, fits: bool, n_slots: int) -> rows.KernelRows:
        kernel, x = self.kernel, self.x
        if fits:
            matrix = np.ascontiguousarray(ask(kernel, x, x))
            require_symmetric(matrix, "kernel(X, X)")
            return self._described("matrix", matrix, np.diagonal(matrix).copy())

        def supply(wanted: Any, out: Any) -> None:
            np.asarray(out)[...] = ask(kernel, take(x, np.asarray(wanted)), x)

        return rows.supplied_rows(supply, self.diagonal(np.float64), n_slots)

    def _working_data(self, dtype: np.dtype) -> tuple[Any, Any]:
        """The data in the rows' type, moved to their centre where the kernel does not see that, and their columns."""
        x = self.x
        if isinstance(x, check.Csr):
            if len(x.data) < _DENSE_FROM * self.n * x.shape[1]:
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
        """k(x, x) of every point."""
        if is_callable(self.kernel):
            values = np.empty(self.n, dtype=dtype)
            for i in range(self.n):
                one = take(self.x, np.array([i]))
                values[i] = ask(self.kernel, one, one)[0, 0]
        else:
            values = kernels.diagonal(plain(self.x), self.kernel).astype(dtype)
        if not np.isfinite(values).all():
            raise ValueError("kernel values overflow float64: scale the data, or take a smaller gamma or degree")
        return np.ascontiguousarray(values)

    def rows_before_matrix(self) -> int | None:
        """Rows after which it pays to make the whole matrix; None: it is there, or will never be."""
        return self.n // _SHARE if self.patient else None

    def use_matrix(self) -> None:
        """Make the whole matrix: many rows are needed."""
        narrow, self.rows, self.patient = self.rows.single, None, False
        self.rows = self._find_rows(narrow)

    def use_float64(self) -> None:
        """Give up narrow rows, for problems that turn out to need more digits."""
        self.rows = None  # the narrow matrix goes before the wide one comes
        self.rows = self._find_rows(narrow=False)

    def rough_product(self, beta: np.ndarray, points: np.ndarray | None = None) -> np.ndarray:
        """K·beta from what is at hand, at all points or at some, which ascend."""
        if not self._has_whole():
            everywhere = self.exact_product(beta[None, :])[0]
            return everywhere if points is None else everywhere[points]
        return self._from_rows(beta, points)

    def exact_product(self, betas: np.ndarray, points: np.ndarray | None = None, wanted: Any = None) -> np.ndarray:
        """K·betaᵀ in float64 at some points or at all, (n_machines, n_points); of each machine what is wanted."""
        if self._has_whole() and not self.rows.single:
            return np.array([self._from_rows(beta, points) for beta in betas])
        used = np.flatnonzero(betas.any(axis=0))
        x = self.x.astype(np.float64, copy=False) if not isinstance(self.x, check.Csr) else self.x.astype(np.float64)
        here = x if points is None or len(points) == self.n else take(x, points)
        with parallel.blas_threads(1):  # the same bits in every process
            if self.given:
                return np.ascontiguousarray((here[:, used] @ betas[:, used].T).T)
            if self._is_mostly(points, used):
                part = betas if points is None else betas[:, points]
                return symmetric_product(here, self.kernel, part, self.n_threads, self.tick, wanted)
            values = product(here, take(x, used), self.kernel, betas[:, used], self.n_threads, self.tick, wanted)
            return np.ascontiguousarray(values.T)

    def _is_mostly(self, points: np.ndarray | None, used: np.ndarray) -> bool:
        """Whether the points hold all that are used and few others: half of the values between them is then enough."""
        n_points = self.n if points is None else len(points)
        holds = points is None or bool(np.isin(used, points, assume_unique=True).all())
        return holds and n_points < _MOSTLY * len(used) and not isinstance(self.x, check.Csr)

    def row_error(self) -> float:
        """A bound of the error of an entry of the rows that the solver reads."""
        if not self.rows.single:
            return 0.0
        if self._largest is None:
            x = self.x.toscipy() if isinstance(self.x, check.Csr) else self.x
            if not isinstance(self.kernel, kernels.Sigmoid) and not sparse.issparse(x):
                x = x - x.mean(axis=0)
            self._largest = float(np.sqrt(_squares(x).max()))
        return entry_error(self.kernel, self._largest, self.x.shape[1])

    def _has_whole(self) -> bool:
        return self.rows is not None and self.rows.kind != rows.CACHED_KIND

    def _from_rows(self, beta: np.ndarray, points: np.ndarray | None) -> np.ndarray:
        runs = [(0, self.n)]
        if points is not None:
            ends = np.flatnonzero(np.diff(points) != 1) + 1
            runs = [(int(run[0]), len(run)) for run in np.split(points, ends) if len(run)]
        out = np.zeros(sum(length for _, length in runs))
        rows.multiply(self.rows, np.ascontiguousarray(beta, dtype=np.float64), out, runs)
        return out
