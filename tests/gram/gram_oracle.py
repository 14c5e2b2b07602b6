"""Kernel values by their definitions, one row after another, in extended precision.

`KERNELS` has one entry per kernel; tests that run over all kernels, and the strategies, read it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from kernelrules import kernels

EXACT = np.longdouble


def inner_product(x, z):
    return (x * z).sum(axis=-1)


def squared_distance(x, z):
    return ((x - z) ** 2).sum(axis=-1)


def absolute_distance(x, z):
    return np.abs(x - z).sum(axis=-1)


@dataclass
class Definition:
    """k(x, z) = value(sum(x, z), kernel), with kernels to test: one for all tests, and those that hypothesis draws."""

    sum: Callable
    value: Callable
    example: kernels.Kernel
    drawn: st.SearchStrategy


GAMMAS = st.floats(1e-4, 1e3)
CONSTANTS = st.floats(-3, 3)
KERNELS = {
    kernels.Linear: Definition(
        inner_product,
        lambda s, kernel: s,
        kernels.Linear(),
        st.just(kernels.Linear()),
    ),
    kernels.Polynomial: Definition(
        inner_product,
        lambda s, kernel: (EXACT(kernel.gamma) * s + EXACT(kernel.coef0)) ** kernel.degree,
        kernels.Polynomial(degree=3, gamma=0.1, coef0=1.0),
        st.builds(kernels.Polynomial, st.integers(0, 6), st.floats(1e-3, 2.0), CONSTANTS),
    ),
    kernels.RBF: Definition(
        squared_distance,
        lambda s, kernel: np.exp(-EXACT(kernel.gamma) * s),
        kernels.RBF(gamma=0.05),
        st.builds(kernels.RBF, GAMMAS),
    ),
    kernels.Laplacian: Definition(
        absolute_distance,
        lambda s, kernel: np.exp(-EXACT(kernel.gamma) * s),
        kernels.Laplacian(gamma=0.05),
        st.builds(kernels.Laplacian, GAMMAS),
    ),
    kernels.Sigmoid: Definition(
        inner_product,
        lambda s, kernel: np.tanh(EXACT(kernel.gamma) * s + EXACT(kernel.coef0)),
        kernels.Sigmoid(gamma=0.02, coef0=0.1),
        st.builds(kernels.Sigmoid, st.floats(1e-3, 1.0), CONSTANTS),
    ),
}


def gram(X, Z, kernel):
    """k(x_i, z_j) for dense arrays of any float type, as longdouble."""
    X, Z = np.asarray(X, dtype=EXACT), np.asarray(Z, dtype=EXACT)
    return np.array([value(x, Z, kernel) for x in X], dtype=EXACT).reshape(len(X), len(Z))


def value(x, z, kernel):
    """k(x, z) of a longdouble vector x and one z, or each of several."""
    definition = KERNELS[type(kernel)]
    return definition.value(definition.sum(x, z), kernel)


def tolerance(X, Z, kernel, dtype):
    """The largest error that the documentation allows for each entry.

    Of kernels of differences, such as RBF: 450 ulp relative (1e-13 in float64), or 4 ulp of gamma times the distance if
    that is more (above 112). Of the others: a few ulp of what the inner product adds up, grown by the kernel's
    derivative.
    """
    X, Z = np.asarray(X, dtype=EXACT), np.asarray(Z, dtype=EXACT)
    ulp, tiny = EXACT(np.finfo(dtype).eps), EXACT(np.finfo(dtype).tiny)
    definition = KERNELS[type(kernel)]
    if definition.sum is not inner_product:
        sums = np.array([definition.sum(x, Z) for x in X], dtype=EXACT)
        values = definition.value(sums, kernel)
        return values * ulp * np.maximum(450, 4 * EXACT(kernel.gamma) * sums) + 8 * tiny
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
