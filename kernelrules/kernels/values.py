"""Kernel values on checked data, for every method that works with a kernel.

A kernel is one of `specs`, or a user's callable k(X, Z) that returns a matrix; data are results of `check.matrix`
(ndarray or Csr). `product` multiplies a kernel matrix with coefficients without storing the matrix.

Linear kernels of data far from the origin lose their digits: `far_centre` finds such data, and `linear_weights` sums
them up from differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.gram import apply, symmetric
from kernelrules.kernels.matrix import require_kernel
from kernelrules.kernels.specs import Kernel, Linear, Precomputed

__all__ = [
    "ask",
    "callable_blocks",
    "callable_matrix",
    "far_centre",
    "is_callable",
    "is_semidefinite",
    "linear_values",
    "linear_weights",
    "plain",
    "product",
    "reorder",
    "require_finite_values",
    "require_symmetric",
    "resolve",
    "symmetric_product",
    "take",
]

_BLOCK_ROWS = 256  # rows of a kernel matrix computed at a time, at most
_CALL_BYTES = 2 << 20  # of values per call of a callable kernel, whose intermediate arrays are often larger
_FAR_RATIO = (
    1e4  # squared distance of the centre from the origin, over the mean squared distance of rows from the centre
)
_PRODUCT_NUMBERS = 1 << 20  # numbers of rows that are multiplied with weights at a time
_MAX_ASYMMETRY = 1e-6  # of a given matrix, relative to its largest entry, that counts as rounding


def resolve(kernel: Any, x: Any) -> Any:
    """Return the kernel with gamma as a number; a callable is returned unchanged."""
    if callable(kernel) and not isinstance(kernel, (Kernel, type)):
        return kernel
    require_kernel(kernel)
    return kernel.resolve_checked(x)


def is_callable(kernel: Any) -> bool:
    """Return whether the kernel is a user's function."""
    return not isinstance(kernel, Kernel)


def is_semidefinite(kernel: Any) -> bool:
    """Return whether every matrix of the kernel is known to be positive semi-definite, whatever the data."""
    return isinstance(kernel, Kernel) and kernel.is_semidefinite()


def plain(x: Any) -> Any:
    """Return the data as a user's function expects them: an ndarray or a SciPy matrix."""
    return x.toscipy() if isinstance(x, check.Csr) else x


def ask(kernel: Callable[[Any, Any], Any], x: Any, z: Any) -> np.ndarray:
    """Return the checked values of a callable kernel."""
    values = np.asarray(kernel(plain(x), plain(z)))
    shape = (x.shape[0], z.shape[0])
    if values.shape != shape:
        raise ValueError(f"kernel(X, Z) gave an array of shape {values.shape} for {shape[0]} and {shape[1]} rows")
    return check.matrix(values, "kernel(X, Z)", dtype=np.float64)


def callable_blocks(
    kernel: Callable[[Any, Any], Any], x: Any, z: Any, tick: Any = None, room: int = _CALL_BYTES
) -> Iterator[tuple[int, np.ndarray]]:
    """Values of a callable kernel by blocks of rows: (first row, values).

    A user's function cannot be interrupted while it is inside of a library, and often needs many times the memory of
    its result, so it is called for few rows at a time: at most 256, at most 2 MB, and at most `room` bytes. The blocks
    depend on the numbers of rows alone, since the rounding of values may depend on them.
    """
    n = x.shape[0]
    step = min(_BLOCK_ROWS, min(room, _CALL_BYTES) // (8 * max(z.shape[0], 1)))
    for start in range(0, n, max(step, 1)):
        end = min(start + max(step, 1), n)
        yield start, ask(kernel, take(x, np.arange(start, end)), z)
        if tick is not None:
            tick(end, n)


def callable_matrix(
    kernel: Callable[[Any, Any], Any], x: Any, z: Any, out: np.ndarray, tick: Any = None, room: int = _CALL_BYTES
) -> np.ndarray:
    """`out`, filled with the values of a callable kernel, for which it is asked by blocks of rows."""
    for start, values in callable_blocks(kernel, x, z, tick, room):
        out[start : start + len(values)] = values
    return out


def require_symmetric(matrix: np.ndarray, name: str) -> None:
    """Refuse a matrix that differs from its transpose by more than rounding."""
    size = float(np.abs(matrix).max(initial=0.0))
    for start in range(0, len(matrix), _BLOCK_ROWS):
        difference = np.abs(matrix[start : start + _BLOCK_ROWS] - matrix[:, start : start + _BLOCK_ROWS].T)
        if difference.size and difference.max() > _MAX_ASYMMETRY * size:
            i, j = np.unravel_index(difference.argmax(), difference.shape)
            raise ValueError(
                f"{name} is not symmetric, so no kernel matrix: at ({start + i}, {j}) by {difference.max()}"
            )


def take(x: Any, chosen: np.ndarray) -> Any:
    """Some rows of dense or sparse data."""
    return x.take(chosen) if isinstance(x, check.Csr) else x[chosen]


def reorder(x: Any, order: np.ndarray, kernel: Any) -> Any:
    """Points in another order, or some of them; of a kernel matrix rows and columns."""
    chosen = take(x, order)
    if not isinstance(kernel, Precomputed) or x.shape[0] != x.shape[1]:
        return chosen
    if isinstance(x, check.Csr):
        return check.matrix(chosen.toscipy()[:, order])
    return np.ascontiguousarray(chosen[:, order])


def require_finite_values(values: np.ndarray) -> np.ndarray:
    """Return the values of a model; refuse them if a power or a sum overflowed."""
    if not np.isfinite(values).all():
        raise ValueError("X is so large that values of the model overflow: use smaller units")
    return values


def linear_values(x: Any, weights: np.ndarray, n_threads: int, tick: Any = None) -> np.ndarray:
    """x · weights in float64, (n, n_columns), infinite or NaN where they overflow; the same bits for any number of
    threads."""
    a, n = plain(x), x.shape[0]
    step = max(_BLOCK_ROWS, _PRODUCT_NUMBERS // max(x.shape[1], 1)) if isinstance(a, np.ndarray) else max(n, 1)
    starts = range(0, n, step)
    out = np.empty((n, weights.shape[1]))

    def fill(start: int) -> int:
        end = min(start + step, n)
        with np.errstate(over="ignore", invalid="ignore"):
            out[start:end] = a[start:end] @ weights
        return end

    cost = float(n) * x.shape[1] * max(1.0, weights.shape[1] / 8)
    threads = parallel.enough_threads(min(n_threads, max(len(starts), 1)), cost, of_python=True)
    with parallel.blas_threads(1):
        for end in parallel.in_threads(fill, ((start,) for start in starts), threads):
            if tick is not None:
                tick(end, n)
    return out


def far_centre(x: Any) -> np.ndarray | None:
    """Return the mean of dense rows that lie much nearer to each other than to the origin; None for other rows."""
    if isinstance(x, check.Csr) or len(x) == 0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        centre = x.mean(axis=0, dtype=np.float64)
        square = float(np.square(centre).sum())
        mean_square = float(np.einsum("ij,ij->", x, x, dtype=np.float64)) / len(x)
        far = square > 0 and mean_square < (1 + 1 / _FAR_RATIO) * square < math.inf
    return centre if far else None


def linear_weights(z: Any, coefficients: np.ndarray) -> np.ndarray:
    """zᵀ · coefficientsᵀ, (n_features, n_columns): what the linear kernel of z multiplies rows with.

    For rows far from the origin it is the sum over their differences from a centre plus the centre times the correctly
    rounded sum of the coefficients: if that is zero but for rounding, as in an SVM, nothing large cancels.
    """
    centre = far_centre(z)
    if centre is None:
        return plain(z).T @ coefficients.T
    sums = np.array([math.fsum(row) for row in coefficients])
    return (z - centre).T @ coefficients.T + np.outer(centre, sums)


def product(
    x: Any,
    z: Any,
    kernel: Any,
    coefficients: np.ndarray,
    n_threads: int,
    tick: Any = None,
    wanted: Any = None,
    room: int = _CALL_BYTES,
) -> np.ndarray:
    """k(x, z) · coefficientsᵀ by blocks, in the type of x; (n, n_columns) in float64. A callable kernel is asked for at
    most `room` bytes at a time."""
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    out = np.zeros((x.shape[0], len(coefficients)))
    if not out.size or z.shape[0] == 0:
        return out
    if is_callable(kernel):
        for start, values in callable_blocks(kernel, x, z, tick, room):
            with parallel.blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
                out[start : start + len(values)] = values @ coefficients.T
        return out
    if isinstance(kernel, Linear):
        with parallel.blas_threads(1):
            with np.errstate(over="ignore", invalid="ignore"):
                weights = linear_weights(z, coefficients)
            return require_finite_values(linear_values(x, weights, n_threads, tick))
    if isinstance(x, check.Csr) or isinstance(z, check.Csr):
        a, b = (m if isinstance(m, check.Csr) else check.sparse_rows(m) for m in (x, z))
        a, b = check.fewer_columns(a, b)
        threads = parallel.enough_threads(n_threads, x.shape[0] * z.shape[0] * 4.0)
        single = x.dtype == np.float32
        apply.apply_csr(a, b, b.columns(), kernel.core(), coefficients, out, threads, tick, single)
    else:
        threads = parallel.enough_threads(n_threads, x.shape[0] * z.shape[0] * (2 + x.shape[1] / 16))
        apply.apply_dense(x, z, kernel.core(), coefficients, out, threads, tick, wanted)
    return out


def symmetric_product(
    x: Any,
    kernel: Any,
    coefficients: np.ndarray,
    n_threads: int,
    tick: Any = None,
    wanted: Any = None,
    room: int = _CALL_BYTES,
) -> np.ndarray:
    """Return coefficients · k(x, x), (n_rows, n) in float64; each kernel value of dense data is computed once for both
    places. `wanted` is as in the core: results of unwanted rows of coefficients are undefined."""
    if is_callable(kernel) or isinstance(kernel, Linear) or isinstance(x, check.Csr):
        return np.ascontiguousarray(product(x, x, kernel, coefficients, n_threads, tick, room=room).T)
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    out = np.zeros(coefficients.shape)
    threads = parallel.enough_threads(n_threads, x.shape[0] ** 2 * (1 + x.shape[1] / 32))
    symmetric.apply_symmetric(x, kernel.core(), coefficients, out, threads, tick, wanted)
    return out
