"""Functions on the training points, by coefficients or by weights of explicit features, and their Newton steps.

`Dense` writes f = Σ αⱼ k(xⱼ, ·) and works with the Gram matrix. Where k(x, z) = φ(x)·φ(z) with no more features than
points, `Features` writes f = w·φ, works with p × p matrices and never makes the Gram matrix: the same functions, and a
small λ does not make the numbers large. In either, with θ for α or w:

    values(θ)    f at the points                of_dual(a)    θ of Σ aⱼ k(xⱼ, ·)
    inner        of the kernel's space          step          δ and β that minimise
                                                Σ dᵢ (δf(xᵢ) + β)² / 2 - Σ aᵢ (δf(xᵢ) + β) + ⟨θ, δ⟩ + ‖δ‖² / 2

The last is Newton's step for curvatures d ≥ 0 and gradient θ - of_dual(a). For Dense it is δ = a + S z - α with S² =
diag(d), (I + S K S) z = S (K (α - a) - β 1): points without curvature do no harm, and K may be singular.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from kernelrules import check, kernels, parallel
from kernelrules.core import blocks, cholesky
from kernelrules.kernels.matrix import require_square
from kernelrules.kernels.values import ask, is_callable, is_semidefinite, plain, require_symmetric

__all__ = ["Dense", "Features", "Gradient", "System", "system_from", "system_of"]

_BLOCK = 128  # rows of a matrix made at a time
_PRODUCTS = 100  # a factorisation of n × n costs as much as n over this many products and solutions
_UNLIKE = 30.0  # roots of curvatures whose ratios spread further are not worth trying with an old factor
_LOOSE = 1e-3  # relative residual of conjugate gradients
_HALFWAY = 0.7  # of the digits may be left to find when half of the products are done: they come faster in the end
_ROWS = 4096  # of features that are multiplied at a time
_EPSILON = float(np.finfo(np.float64).eps)


def _factored(matrix: np.ndarray, n_threads: int, air: Callable[[], None]) -> bool:
    """Put the Cholesky factor in the lower triangle; False: the matrix is not positive definite."""
    threads = parallel.enough_threads(n_threads, len(matrix) ** 3 / 100.0)
    return cholesky.factor(matrix, threads, lambda *_: air()) == 0


def _solved(lower: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A⁻¹ b for the factor of A."""
    x = np.array(b, dtype=np.float64)[None, :]
    cholesky.solve(lower, x, 1)
    return x[0]


@dataclass(frozen=True, eq=False)
class Gradient:
    """A function θ, the a of its slopes, e = θ - of_dual(a), and the values of θ and e."""

    theta: np.ndarray
    values: np.ndarray
    a: np.ndarray
    e: np.ndarray
    e_values: np.ndarray


class System:
    """Functions on n points.

    Parameters
    ----------
    n : int
        Points.
    n_threads : int
        To use.
    air : callable
        Called several times a second.
    """

    def __init__(self, n: int, n_threads: int, air: Callable[[], None]) -> None:
        self.n, self.n_threads, self.air = n, n_threads, air

    def shared(self) -> tuple:
        """What `system_from` makes the same system of, in another process."""
        raise NotImplementedError

    def settle(self) -> None:
        """Later machines all start from what is known now, in whatever order, here or elsewhere."""

    def begin(self) -> None:
        """A machine starts."""

    def zero(self) -> np.ndarray:
        """θ of f = 0."""
        raise NotImplementedError

    def values(self, theta: np.ndarray) -> np.ndarray:
        """f at the points."""
        raise NotImplementedError

    def of_dual(self, a: np.ndarray) -> np.ndarray:
        """θ of Σ aⱼ k(xⱼ, ·)."""
        raise NotImplementedError

    def dual_of(self, theta: np.ndarray) -> np.ndarray | None:
        """Coefficients a with of_dual(a) = θ, where they are at hand."""
        return None

    def inner(self, theta: np.ndarray, other: np.ndarray, other_values: np.ndarray) -> float:
        """The inner product of two functions; of the second, its values too."""
        raise NotImplementedError

    def rounding(self, theta: np.ndarray) -> tuple[np.ndarray | float, float]:
        """How far off values(θ) and inner(θ, θ) may be by rounding, where that can be more than a few digits."""
        return 0.0, 0.0

    def step(self, curvature: np.ndarray, at: Gradient, with_shift: bool) -> tuple[np.ndarray, float]:
        """δ and β as above. Without a shift β is 0."""
        raise NotImplementedError

    def _factored(self, fill: Callable[[], np.ndarray]) -> np.ndarray:
        """The factor of a positive definite matrix; where rounding has spoiled that, of one with a larger diagonal.

        The step is then not quite Newton's, which costs steps, not exactness: the gap is computed without it.
        """
        matrix, jitter = fill(), 0.0
        if not np.isfinite(matrix.diagonal()).all():
            raise ValueError("the Newton system overflows float64: scale the data, or take a larger lam")
        while not _factored(matrix, self.n_threads, self.air):
            jitter = max(10 * jitter, len(matrix) * _EPSILON)
            if jitter > 10 * len(matrix):  # the diagonal outweighs all else: only NaN is left as a reason
                raise ValueError("the Newton system overflows float64: scale the data, or take a larger lam")
            matrix = fill()
            matrix[np.diag_indices(len(matrix))] *= 1 + jitter  # relative: the units of points may be far apart
        return matrix


class Dense(System):
    """By the Gram matrix; θ is α."""

    def __init__(self, gram: np.ndarray, n_threads: int, air: Callable[[], None]) -> None:
        super().__init__(len(gram), n_threads, air)
        self.gram = gram
        self._lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))  # ‖k(x, ·)‖
        self._buffer: np.ndarray | None = None
        self._old: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # active points, roots, factor in the buffer
        self._common = self._old  # of the first of several machines

    def shared(self) -> tuple:
        """The matrix, and the factor to start from."""
        return "gram", self.gram, self._common

    def settle(self) -> None:
        """Keep the last factor."""
        self._common, self._buffer = self._old, None

    def begin(self) -> None:
        """Start from the factor that was kept."""
        self._old = self._common

    def room(self) -> np.ndarray:
        """n² numbers to work in."""
        if self._buffer is None:
            self._buffer = blocks.empty((self.n * self.n,), np.float64)
        return self._buffer

    def zero(self) -> np.ndarray:
        """No coefficients."""
        return np.zeros(self.n)

    def values(self, theta: np.ndarray) -> np.ndarray:
        """A product with the matrix."""
        return self.gram @ theta

    def of_dual(self, a: np.ndarray) -> np.ndarray:
        """The dual point in the same form."""
        return a

    def dual_of(self, theta: np.ndarray) -> np.ndarray:
        """The coefficients themselves."""
        return theta

    def inner(self, theta: np.ndarray, other: np.ndarray, other_values: np.ndarray) -> float:
        """Of the two functions."""
        return float(theta @ other_values)

    def rounding(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Where K is singular, large coefficients may add up to a small function.

        The terms of a sum are at most |θⱼ| √(Kᵢᵢ Kⱼⱼ), and errors of n of them that are not of one sign grow like √n.
        """
        sizes, unit = float(np.abs(theta) @ self._lengths), math.sqrt(self.n) * _EPSILON
        return unit * sizes * self._lengths, unit * sizes * sizes

    def step(self, curvature: np.ndarray, at: Gradient, with_shift: bool) -> tuple[np.ndarray, float]:
        """By α⁺ = a + S z near the optimum, where e is small; else by α⁺ = S y, whose parts do not cancel."""
        active = np.flatnonzero(curvature > 0)
        delta, beta = -at.e, 0.0
        if not len(active):
            return delta, beta
        root = np.sqrt(curvature[active])
        others = at.a.copy()
        others[active] = 0.0
        fixed = self.values(others)[active] if others.any() else 0.0
        right, known = root * at.e_values[active], float(at.a.sum())
        whole = at.a[active] / root + root * (at.values[active] - fixed)
        afresh = np.linalg.norm(whole) < np.linalg.norm(right)
        if afresh:
            right, known = whole, float(others.sum())
        sides = [right, root] if with_shift else [right]
        found = self._solved_by_old_factor(active, root, sides)
        if found is None:
            lower = self._factored(lambda: self._matrix(active, root))
            self._old = (active, root, lower)
            found = [_solved(lower, side) for side in sides]
        z = found[0]
        if with_shift:
            beta = float((known + root @ z) / (root @ found[1]))
            z = z - beta * found[1]
        delta[active] = root * z - at.theta[active] if afresh else delta[active] + root * z
        return delta, beta

    def _solved_by_old_factor(self, active: np.ndarray, root: np.ndarray, sides: list) -> list[np.ndarray] | None:
        """Conjugate gradients with the last factor, of other curvatures, as preconditioner; None if a new one is due.

        Every iterate of theirs is a step downhill. A new factor costs as much as about n/100 products.
        """
        limit = self.n // _PRODUCTS
        if self._old is None or not limit:
            return None
        old_active, old_root, lower = self._old
        if len(active) != len(old_active) or (active != old_active).any():
            return None
        ratio = root / old_root
        if ratio.max() > _UNLIKE * ratio.min():
            return None
        found = [self._conjugate_gradients(active, root, lower, side, limit) for side in sides]
        return None if any(each is None for each in found) else found

    def _conjugate_gradients(
        self, active: np.ndarray, root: np.ndarray, lower: np.ndarray, right: np.ndarray, limit: int
    ) -> np.ndarray | None:
        """z with (I + S K S) z = right to a thousandth; None where more than `limit` products seem to be needed."""
        z, residual, padded = np.zeros_like(right), right.copy(), np.zeros(self.n)
        size = _LOOSE * float(np.linalg.norm(right))
        if size == 0:
            return z
        conditioned = _solved(lower, residual)
        direction, energy = conditioned, float(residual @ conditioned)
        for done in range(limit):
            left = math.log(max(float(np.linalg.norm(residual)) / size, 1e-300), 1 / _LOOSE)  # from 1 down to 0
            if left <= 0:
                return z
            if done == limit // 2 and left > _HALFWAY:
                return None
            padded[active] = root * direction
            image = direction + root * self.values(padded)[active]
            self.air()
            length = energy / float(direction @ image)
            if not math.isfinite(length):
                return None
            z = z + length * direction
            residual = residual - length * image
            conditioned = _solved(lower, residual)
            energy, before = float(residual @ conditioned), energy
            direction = conditioned + (energy / before) * direction
        return None

    def _matrix(self, active: np.ndarray, root: np.ndarray) -> np.ndarray:
        """I + S K S of the active points, its lower triangle, by blocks of rows."""
        m = len(active)
        matrix = self.room()[: m * m].reshape(m, m)
        everyone = m == self.n
        for start in range(0, m, _BLOCK):
            stop = min(start + _BLOCK, m)
            rows, out = active[start:stop], matrix[start:stop, :stop]
            part = self.gram[start:stop, :stop] if everyone else self.gram[rows[:, None], active[:stop]]
            np.multiply(part, root[:stop], out=out)
            out *= root[start:stop, None]
        matrix[np.diag_indices(m)] += 1.0
        return matrix


class Features(System):
    """By features whose inner products are the kernel, dense or sparse; θ is w.

    β = Σa / Σd - μ·δ with μ the mean of the features weighted by d; around it, (I + Σ d (φ-μ)(φ-μ)ᵀ) δ = -e - μ Σa.
    """

    def __init__(self, phi: Any, n_threads: int, air: Callable[[], None]) -> None:
        super().__init__(phi.shape[0], n_threads, air)
        self.phi, self.phi_t = phi, phi.T
        self.sparse = not isinstance(phi, np.ndarray)

    def shared(self) -> tuple:
        """The features."""
        return "features", self.phi, None

    def zero(self) -> np.ndarray:
        """No coefficients."""
        return np.zeros(self.phi.shape[1])

    def values(self, theta: np.ndarray) -> np.ndarray:
        """A product with the matrix."""
        return self.phi @ theta

    def of_dual(self, a: np.ndarray) -> np.ndarray:
        """The dual point in the same form."""
        return self.phi_t @ a

    def inner(self, theta: np.ndarray, other: np.ndarray, other_values: np.ndarray) -> float:
        """Of the two functions."""
        return float(theta @ other)

    def step(self, curvature: np.ndarray, at: Gradient, with_shift: bool) -> tuple[np.ndarray, float]:
        """By the factor of the matrix above."""
        mass, total = float(curvature.sum()), float(at.a.sum())
        if mass == 0:
            return -at.e, 0.0
        centre = (self.phi_t @ curvature) / mass if with_shift else np.zeros(self.phi.shape[1])
        lower = self._factored(lambda: self._matrix(curvature, centre))
        delta = _solved(lower, -at.e - centre * total)
        return delta, total / mass - float(centre @ delta) if with_shift else 0.0

    def _matrix(self, curvature: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """I + Σ d (φ - centre)(φ - centre)ᵀ, by blocks of rows whose order is fixed."""
        if self.sparse:
            return self._matrix_of_sparse(curvature, centre)
        matrix = np.eye(self.phi.shape[1])
        blocks = ((start, curvature[start : start + _ROWS], centre) for start in range(0, self.n, _ROWS))
        for part in parallel.in_threads(self._outer, blocks, self.n_threads if self.n > _ROWS else 1, self.air):
            matrix += part
        return matrix

    def _outer(self, start: int, curvature: np.ndarray, centre: np.ndarray) -> np.ndarray:
        scaled = (self.phi[start : start + _ROWS] - centre) * np.sqrt(curvature)[:, None]
        return scaled.T @ scaled

    def _matrix_of_sparse(self, curvature: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """The same; the rows stay sparse, and the centre is taken off at the end."""
        columns = self.phi.multiply(np.sqrt(curvature)[:, None]).T.tocsr()
        matrix = kernels.gram(columns, kernel=kernels.Linear(), n_threads=self.n_threads, callback=lambda _: self.air())
        matrix -= np.outer(curvature.sum() * centre, centre)
        matrix[np.diag_indices(len(matrix))] += 1.0
        return matrix


def system_from(shared: tuple, n_threads: int, air: Callable[[], None]) -> System:
    """The system that `shared` is of."""
    kind, data, common = shared
    if kind == "features":
        return Features(data, n_threads, air)
    system = Dense(data, n_threads, air)
    system._common = common
    return system


def system_of(x: Any, kernel: Any, n_threads: int, air: Callable[[], None], callback: Any) -> System:
    """The system of checked points under a kernel whose gamma is a number.

    Parameters
    ----------
    x : ndarray or Csr
        The points; for `Precomputed` the square matrix.
    kernel : Kernel or callable
        As in `erm.fit`.
    n_threads : int
        To use.
    air : callable
        Called several times a second.
    callback : callable or None
        For the Gram matrix.

    Returns
    -------
    System
        By features where there are few of them.

    Raises
    ------
    ValueError
        For a kernel that is not symmetric or not positive semi-definite.
    """
    n = x.shape[0]
    if isinstance(kernel, (kernels.Linear, kernels.Polynomial)):
        phi = _features(x, kernel, n_threads)
        if phi is not None:
            check.fits_memory((2, phi.shape[1], phi.shape[1]), np.float64, "the matrix of the features and its factor")
            return Features(phi, n_threads, air)
    check.fits_memory((2, n, n), np.float64, "the Gram matrix and its factor")
    if isinstance(kernel, kernels.Precomputed):
        require_square(x)
        gram, name = np.array(check.dense(x), dtype=np.float64), "X"
        require_symmetric(gram, name)
    elif is_callable(kernel):
        gram, name = np.array(ask(kernel, x, x)), "kernel(X, X)"
        require_symmetric(gram, name)
    else:
        gram, name = kernels.gram(plain(x), None, kernel, dtype=np.float64, n_threads=n_threads, callback=callback), "K"
    if not np.isfinite(gram).all():
        raise ValueError("kernel values overflow float64: scale the data, or take a smaller gamma or degree")
    system = Dense(gram, n_threads, air)
    if not is_semidefinite(kernel):
        precision = np.finfo(np.float32 if x.dtype == np.float32 else np.float64).eps
        _require_positive(system, name, float(precision))
    return system


def _features(x: Any, kernel: Any, n_threads: int) -> Any:
    """Explicit features of the points, where they are few; else None."""
    n, p = x.shape
    n_features = p if isinstance(kernel, kernels.Linear) else math.comb(p + kernel.degree, p)
    if n_features > n or not is_semidefinite(kernel):
        return None
    x = _double(x)
    check.sums_fit(x, None, 2)
    return explicit_features(x, kernel, n_threads)


def _double(x: Any) -> Any:
    return x if x.dtype == np.float64 else x.astype(np.float64)


def explicit_features(x: Any, kernel: Any, n_threads: int) -> Any:
    """φ(x) in float64: the data themselves for Linear, sparse if they are; monomials, dense, for Polynomial."""
    x = plain(_double(x))
    if isinstance(kernel, kernels.Linear):
        return x
    return kernels.feature_map(kernel, x.shape[1]).transform(x, n_threads=n_threads)


def _require_positive(system: Dense, name: str, precision: float) -> None:
    """Refuse a matrix with an eigenvalue below 0 by more than rounding: ‖f‖² would not be a square."""
    gram, n = system.gram, system.n
    slack = 10 * n * precision * float(np.abs(gram).max(initial=0.0))
    matrix = system.room().reshape(n, n)
    matrix[...] = gram
    matrix[np.diag_indices(n)] += slack + np.finfo(np.float64).tiny
    if not _factored(matrix, system.n_threads, system.air):
        smallest = float(eigvalsh(gram, subset_by_index=[0, 0])[0])
        if smallest < -slack:
            raise ValueError(
                f"{name} is not positive semi-definite: its smallest eigenvalue is {smallest:.6g} (the largest entry "
                f"is {np.abs(gram).max():.6g}), so that ‖f‖² has no meaning"
            )
