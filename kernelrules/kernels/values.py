"""Kernel values on checked data, for every method that works with a kernel: what `gram` is to a user's arrays.

A kernel is one of `specs`, or a callable k(X, Z) of the user's that gives a matrix; data are what `check.matrix` gives
(ndarray or Csr). `product` multiplies a kernel matrix with coefficients without ever holding the matrix.

Linear kernels of data far from the origin lose their digits: `far_centre` finds such data, and `linear_weights` sums
them up from differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core import apply, symmetric
from kernelrules.kernels.matrix import require_kernel
from kernelrules.kernels.specs import RBF, Kernel, Laplacian, Linear, Polynomial, Precomputed

__all__ = [
    "ask",
    "far_centre",
    "finite_answers",
    "is_callable",
    "is_semidefinite",
    "linear_values",
    "linear_weights",
    "plain",
    "product",
    "reorder",
    "require_symmetric",
    "resolve",
    "symmetric_product",
    "take",
]

_BLOCK = 256  # rows of a callable kernel made at a time
_FAR = 1e4  # mean square of the distances from the centre, in which the square of its own from the origin is far
_NUMBERS = 1 << 20  # of rows that are multiplied with weights at a time
_ASYMMETRY = 1e-6  # of a given matrix, relative to its largest entry, that passes for rounding


def resolve(kernel: Any, x: Any) -> Any:
    """The kernel with gamma as a number; a callable stays what it is."""
    if callable(kernel) and not isinstance(kernel, (Kernel, type)):
        return kernel
    require_kernel(kernel)
    return kernel.resolve_checked(x)


def is_callable(kernel: Any) -> bool:
    """Whether the kernel is a function of the user's."""
    return not isinstance(kernel, Kernel)


def is_semidefinite(kernel: Any) -> bool:
    """Whether every matrix of the kernel is positive semi-definite by its formula, whatever the data."""
    if isinstance(kernel, Polynomial):
        return kernel.coef0 >= 0
    return isinstance(kernel, (Linear, RBF, Laplacian))


def plain(x: Any) -> Any:
    """The data as a user's function expects them: an ndarray or a scipy matrix."""
    return x.toscipy() if isinstance(x, check.Csr) else x


def ask(kernel: Callable[[Any, Any], Any], x: Any, z: Any) -> np.ndarray:
    """Values of a callable kernel, checked."""
    values = np.asarray(kernel(plain(x), plain(z)))
    shape = (x.shape[0], z.shape[0])
    if values.shape != shape:
        raise ValueError(f"kernel(X, Z) gave an array of shape {values.shape} for {shape[0]} and {shape[1]} rows")
    return check.matrix(values, "kernel(X, Z)", dtype=np.float64)


def require_symmetric(matrix: np.ndarray, name: str) -> None:
    """Refuse a matrix that differs from its transpose by more than rounding."""
    size = float(np.abs(matrix).max(initial=0.0))
    for start in range(0, len(matrix), _BLOCK):
        difference = np.abs(matrix[start : start + _BLOCK] - matrix[:, start : start + _BLOCK].T)
        if difference.size and difference.max() > _ASYMMETRY * size:
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


def finite_answers(values: np.ndarray) -> np.ndarray:
    """What a model answers, refused where a power or a sum did not fit: of inf - inf would come NaN."""
    if not np.isfinite(values).all():
        raise ValueError("X is so large that values of the model overflow: use smaller units")
    return values


def linear_values(x: Any, weights: np.ndarray, n_threads: int, tick: Any = None) -> np.ndarray:
    """x · weights in float64, (n, n_columns), infinite or NaN where they overflow; the same bits for any number of
    threads."""
    a, n = plain(x), x.shape[0]
    step = max(_BLOCK, _NUMBERS // max(x.shape[1], 1)) if isinstance(a, np.ndarray) else max(n, 1)
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
    """The mean of dense rows that lie much nearer to each other than to the origin; None of others."""
    if isinstance(x, check.Csr) or len(x) == 0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        centre = x.mean(axis=0, dtype=np.float64)
        square = float(np.square(centre).sum())
        mean_square = float(np.einsum("ij,ij->", x, x, dtype=np.float64)) / len(x)
        far = square > 0 and mean_square < (1 + 1 / _FAR) * square < math.inf
    return centre if far else None


def linear_weights(z: Any, coefficients: np.ndarray) -> np.ndarray:
    """zᵀ · coefficientsᵀ, (n_features, n_columns): what the linear kernel of z multiplies rows with.

    Of rows far from the origin it is the sum over their differences from a centre, and the centre times the sum of the
    coefficients, correctly rounded: where that is zero but for rounding, as in machines, nothing large cancels.
    """
    centre = far_centre(z)
    if centre is None:
        return plain(z).T @ coefficients.T
    sums = np.array([math.fsum(row) for row in coefficients])
    return (z - centre).T @ coefficients.T + np.outer(centre, sums)


def product(
    x: Any, z: Any, kernel: Any, coefficients: np.ndarray, n_threads: int, tick: Any = None, wanted: Any = None
) -> np.ndarray:
    """k(x, z) · coefficientsᵀ by blocks, in the type of x; (n, n_columns) in float64."""
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    out = np.zeros((x.shape[0], len(coefficients)))
    if not out.size or z.shape[0] == 0:
        return out
    if is_callable(kernel):
        for start in range(0, x.shape[0], _BLOCK):
            block = take(x, np.arange(start, min(start + _BLOCK, x.shape[0])))
            values = ask(kernel, block, z)
            with parallel.blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
                out[start : start + _BLOCK] = values @ coefficients.T
        return out
    if isinstance(kernel, Linear):
        with parallel.blas_threads(1):
            with np.errstate(over="ignore", invalid="ignore"):
                weights = linear_weights(z, coefficients)
            return finite_answers(linear_values(x, weights, n_threads, tick))
    if isinstance(x, check.Csr) or isinstance(z, check.Csr):
        a, b = (m if isinstance(m, check.Csr) else check.sparse_rows(m) for m in (x, z))
        a, b = check.fewer_columns(a, b)
        threads = parallel.enough_threads(n_threads, x.shape[0] * z.shape[0] * 4.0)
        apply.apply_csr(a, b, b.columns(), kernel.core(), np.empty(1, x.dtype), coefficients, out, threads, tick)
    else:
        threads = parallel.enough_threads(n_threads, x.shape[0] * z.shape[0] * (2 + x.shape[1] / 16))
        apply.apply_dense(x, z, kernel.core(), coefficients, out, threads, tick, wanted)
    return out


def symmetric_product(
    x: Any, kernel: Any, coefficients: np.ndarray, n_threads: int, tick: Any = None, wanted: Any = None
) -> np.ndarray:
    """Coefficients · k(x, x), (n_rows, n) in float64; of dense data each kernel value is made once for both places.
    `wanted` as in the core: where a row of coefficients is not, the result means nothing."""
    if is_callable(kernel) or isinstance(kernel, Linear) or isinstance(x, check.Csr):
        return np.ascontiguousarray(product(x, x, kernel, coefficients, n_threads, tick).T)
    coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
    out = np.zeros(coefficients.shape)
    threads = parallel.enough_threads(n_threads, x.shape[0] ** 2 * (1 + x.shape[1] / 32))
    symmetric.apply_symmetric(x, kernel.core(), coefficients, out, threads, tick, wanted)
    return out
