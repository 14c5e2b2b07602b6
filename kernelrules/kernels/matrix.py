"""Gram matrices, K[i, j] = k(x_i, z_j), and their diagonals.

Arguments are checked here; the core computes. It receives a kernel as four numbers (`Kernel.core`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.base import memory
from kernelrules.core.gram.csr import gram_csr
from kernelrules.core.gram.dense import gram_dense
from kernelrules.kernels.specs import RBF, Kernel, Precomputed

__all__ = ["diagonal", "gram"]

_DEFAULT = RBF()


@parallel.reports("gram")
def gram(
    X: Any,
    Z: Any = None,
    kernel: Kernel = _DEFAULT,
    *,
    out: np.ndarray | None = None,
    dtype: Any = None,
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> np.ndarray:
    """The kernel matrix of the rows of X and of Z.

    If Z is X (or None), half of it is computed and the matrix is exactly symmetric. RBF and Laplacian are exactly 1
    on that diagonal and never above 1; values below the smallest normal float are 0. RBF keeps its digits far from the
    origin too. Working memory beyond the result stays below 64 MB with two threads.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data.
    Z : the same, (m, p), or None
        None means X.
    kernel : Kernel
        One of this module's kernels. gamma "scale" and "auto" are taken from X.
    out : ndarray (n, m), optional
        The array to fill, with contiguous rows or columns; saves allocating it.
    dtype : float32 or float64, optional
        Computation and result; by default float32 if all data are, else float64.
    {n_threads, callback, progress}

    Returns
    -------
    ndarray (n, m)
        `out`, if given.

    Raises
    ------
    ValueError, TypeError
        For data that are not finite numbers in two dimensions of matching widths, or an `out` that does not fit.
    MemoryError
        If the matrix would be larger than the memory that is free.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> kernels.gram(X, kernel=kernels.RBF(gamma=1.0)).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    >>> kernels.gram(X, [[2.0, 1.0]], kernels.Linear())
    array([[0.],
           [2.]])
    """
    require_kernel(kernel)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "gram")
    if isinstance(kernel, Precomputed):
        return _given(X, Z, out, dtype)
    x, z = check.pair(X, Z, dtype)
    resolved = kernel.resolve_checked(x)
    any_sparse = isinstance(x, check.Csr) or isinstance(z, check.Csr)
    refuse_overflow(x, z, resolved)
    shape = (x.shape[0], x.shape[0] if z is None else z.shape[0])
    fresh = out is None
    if fresh:
        check.fits_memory(shape, x.dtype, "the Gram matrix")
        out = memory.empty(shape, x.dtype)
    else:
        check.output(out, shape, x.dtype, X, Z, x, z)
    x, z = check.fewer_columns(x, z)
    target = out
    if not _has_contiguous_rows(out):
        if not _has_contiguous_rows(out.T):
            raise ValueError("out must have contiguous rows or contiguous columns")
        target = out.T
        if z is not None:  # k(x, z) = k(z, x): the transpose is the Gram matrix the other way round
            x, z = z, x
    if any_sparse:
        both = isinstance(x, check.Csr) and (z is None or isinstance(z, check.Csr))
        columns = (x if z is None else z).columns() if both else None
        threads = parallel.enough_threads(threads, shape[0] * shape[1] * 4.0)
        gram_csr(x, z, columns, x.shape[1], resolved.core(), target, threads, tick, fresh)
    else:
        threads = parallel.enough_threads(threads, shape[0] * shape[1] * (2 + x.shape[1] / 16))
        gram_dense(x, z, resolved.core(), target, threads, tick, fresh)
    return out


def diagonal(X: Any, kernel: Kernel = _DEFAULT, *, dtype: Any = None) -> np.ndarray:
    """k(x_i, x_i) for every row of X, without the rest of the matrix.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; for `Precomputed` the square kernel matrix.
    kernel : Kernel
        One of this module's kernels.
    dtype : float32 or float64, optional
        The type of the result, as in `gram`.

    Returns
    -------
    ndarray (n,)
        The diagonal.

    Examples
    --------
    >>> from kernelrules import kernels
    >>> kernels.diagonal([[3.0, 4.0], [0.0, 1.0]], kernels.Linear())
    array([25.,  1.])
    """
    require_kernel(kernel)
    x = check.matrix(X, dtype=dtype)
    if isinstance(kernel, Precomputed):
        require_square(x)
        return x.toscipy().diagonal() if isinstance(x, check.Csr) else np.diagonal(x).copy()
    if kernel.row.unit_diagonal:
        return np.ones(x.shape[0], dtype=x.dtype)
    resolved = kernel.resolve_checked(x)
    refuse_overflow(x, None, resolved)
    sums = _squared_lengths(x) if kernel.row.sum == "products" else np.zeros(x.shape[0])
    with np.errstate(over="ignore"):  # an entry beyond the float type is infinite, as in the matrix
        return resolved.value_of_sum(sums).astype(x.dtype, copy=False)


def refuse_overflow(x: Any, z: Any, kernel: Kernel) -> None:
    """Refuse data whose sums would overflow to NaN. Dense distances are sums of differences, which cannot."""
    any_sparse = isinstance(x, check.Csr) or isinstance(z, check.Csr)
    if kernel.row.sum != "products":
        if any_sparse:
            check.sums_fit(x, z, 1 if kernel.row.sum == "magnitudes" else 2)
        return
    check.sums_fit(x, z, 2)
    for name in ("gamma", "coef0"):
        if abs(getattr(kernel, name, 0.0)) > float(np.finfo(x.dtype).max):
            raise ValueError(f"{name} = {getattr(kernel, name)} does not fit {x.dtype}; use dtype=float64")


def _squared_lengths(x: Any) -> np.ndarray:
    """Return the squared length of every row, in float64."""
    if isinstance(x, check.Csr):
        squares = x.toscipy().astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", x, x, dtype=np.float64)


def _has_contiguous_rows(array: np.ndarray) -> bool:
    step = array.itemsize
    apart = array.strides[0] >= array.shape[1] * step and array.strides[0] % step == 0
    return (array.strides[1] == step or array.shape[1] <= 1) and (apart or array.shape[0] <= 1)


def require_kernel(kernel: Any) -> None:
    if not isinstance(kernel, Kernel) or type(kernel) is Kernel:
        raise TypeError(f"kernel must be one of kernelrules.kernels' kernels, such as RBF(), got {kernel!r}")


def require_square(x: Any) -> None:
    """Refuse checked data that are not square, for use as a kernel matrix."""
    if x.shape[0] != x.shape[1]:
        raise ValueError(f"X must be square to be a kernel matrix of its points, got shape {x.shape}")


def _given(X: Any, Z: Any, out: np.ndarray | None, dtype: Any) -> np.ndarray:
    """Return a copy of the user's matrix, so that changing the result does not change the input."""
    if Z is not None:
        raise ValueError("Z must be None for Precomputed(): X holds the kernel values already")
    x = check.matrix(X, dtype=dtype)
    check.fits_memory(x.shape, x.dtype, "the Gram matrix")
    dense = check.dense(x)
    if out is None:
        return np.array(dense)
    check.output(out, dense.shape, dense.dtype, X, x)[...] = dense
    return out
