"""Kernel values by their definitions, one row after another, in extended precision."""

import numpy as np

from kernelrules import kernels

EXACT = np.longdouble


def gram(X, Z, kernel):
    """k(x_i, z_j) for dense arrays of any float type, as longdouble."""
    X, Z = np.asarray(X, dtype=EXACT), np.asarray(Z, dtype=EXACT)
    return np.array([value(x, Z, kernel) for x in X], dtype=EXACT).reshape(len(X), len(Z))


def value(x, z, kernel):
    """k(x, z) of a longdouble vector x and one z, or each of several."""
    match kernel:
        case kernels.Linear():
            return (x * z).sum(axis=-1)
        case kernels.Polynomial():
            return (EXACT(kernel.gamma) * (x * z).sum(axis=-1) + EXACT(kernel.coef0)) ** kernel.degree
        case kernels.Sigmoid():
            return np.tanh(EXACT(kernel.gamma) * (x * z).sum(axis=-1) + EXACT(kernel.coef0))
        case kernels.RBF() | kernels.Laplacian():
            return np.exp(-exponent(x, z, kernel))
    raise AssertionError(kernel)


def exponent(x, z, kernel):
    """gamma |x-z|² or gamma |x-z|_1."""
    gap = np.abs(x - z)
    return EXACT(kernel.gamma) * (gap**2 if isinstance(kernel, kernels.RBF) else gap).sum(axis=-1)


def tolerance(X, Z, kernel, dtype):
    """The largest error that the documentation allows for each entry.

    Of RBF and Laplacian: 450 ulp relative (1e-13 in float64), or 4 ulp of the exponent where that is more (above 112).
    Of the others: a few ulp of what the inner product adds up, grown by the kernel's derivative.
    """
    X, Z = np.asarray(X, dtype=EXACT), np.asarray(Z, dtype=EXACT)
    ulp, tiny = EXACT(np.finfo(dtype).eps), EXACT(np.finfo(dtype).tiny)
    if isinstance(kernel, (kernels.RBF, kernels.Laplacian)):
        powers = np.array([exponent(x, Z, kernel) for x in X], dtype=EXACT)
        return np.exp(-powers) * ulp * np.maximum(450, 4 * powers) + 8 * tiny
    added = np.abs(X) @ np.abs(Z).T
    slack = ulp * (4 + X.shape[1]) * added
    if isinstance(kernel, kernels.Linear):
        return slack + tiny
    inner = EXACT(kernel.gamma) * added + abs(EXACT(kernel.coef0))
    slack = EXACT(kernel.gamma) * slack + 4 * ulp * inner
    if isinstance(kernel, kernels.Sigmoid):
        return slack + 16 * ulp
    return (kernel.degree + 1) * (
        (inner + slack) ** max(kernel.degree - 1, 0) * slack + ulp * inner**kernel.degree
    ) + tiny


def assert_close(K, X, Z, kernel):
    """Every entry of K within the tolerance of the oracle."""
    assert K.shape == (len(X), len(Z))
    if K.size == 0:
        return
    exact = gram(X, Z, kernel)
    with np.errstate(over="ignore"):
        overflows = np.isinf(exact.astype(K.dtype))  # where infinity of the right sign is the right answer
    with np.errstate(invalid="ignore"):
        error = np.where(overflows & np.isinf(K) & (K * exact > 0), 0, np.abs(K.astype(EXACT) - exact))
    allowed = tolerance(X, Z, kernel, K.dtype)
    worst = np.unravel_index(np.argmax(error - allowed), error.shape)
    assert (error <= allowed).all(), f"{kernel}: entry {worst}: error {error[worst]:.3g} > {allowed[worst]:.3g}"
