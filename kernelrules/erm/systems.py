"""Functions on the training points, by coefficients or by weights of explicit features, and their Newton steps.

`GramSystem` represents f = Σ αⱼ k(xⱼ, ·) and uses the Gram matrix. If k(x, z) = φ(x)·φ(z) with no more features than
points, `FeatureSystem` represents the same functions as f = w·φ with p × p matrices and no Gram matrix, and a small λ
does not make the numbers large. In both, with θ for α or w:

    values(θ)    f at the points                of_dual(a)    θ of Σ aⱼ k(xⱼ, ·)
    inner        of the kernel's space          step          δ and β that minimise
                                                Σ dᵢ (δf(xᵢ) + β)² / 2 - Σ aᵢ (δf(xᵢ) + β) + ⟨θ, δ⟩ + ‖δ‖² / 2

The last is the Newton step for curvatures d ≥ 0 and gradient θ - of_dual(a). In `GramSystem` it is δ = a + S z - α with
S² = diag(d), (I + S K S) z = S (K (α - a) - β 1): points without curvature cost nothing, and K may be singular.

References
----------
- O. Chapelle (2007). Training a support vector machine in the primal. Neural Computation 19, 1155-1178.
- C. E. Rasmussen and C. K. I. Williams (2006). Gaussian Processes for Machine Learning. MIT Press. The system I + S K S
  of algorithm 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh

from kernelrules import check, kernels, parallel
from kernelrules.core.base import memory
from kernelrules.core.linalg import cholesky
from kernelrules.core.svm import rows
from kernelrules.kernels.matrix import require_square
from kernelrules.kernels.values import callable_matrix, is_callable, is_semidefinite, plain, require_symmetric

__all__ = ["FeatureSystem", "Gradient", "GramSystem", "System", "system_from", "system_of"]

_BLOCK_ROWS = 128  # rows of I + S K S computed at a time
_ROWS_PER_PRODUCT = 100  # a factorisation of n × n costs as much as n over this many products and solutions
_MAX_ROOT_SPREAD = 30.0  # of ratios of roots of curvatures, up to which an old factor is tried as preconditioner
_CG_RTOL = 1e-3  # relative residual of conjugate gradients
_MAX_LEFT_HALFWAY = 0.7  # share of the digits that may be missing after half of the products: convergence accelerates
_FEATURE_BLOCK_ROWS = 4096  # rows of features multiplied at a time
_EPSILON = float(np.finfo(np.float64).eps)


def _factored(matrix: np.ndarray, n_threads: int, check_interrupt: Callable[[], None]) -> bool:
    """Put the Cholesky factor into the lower triangle; returns False if the matrix is not positive definite."""
    threads = parallel.enough_threads(n_threads, len(matrix) ** 3 / 100.0)
    return cholesky.factor(matrix, threads, lambda *_: check_interrupt()) == 0


def _solved(lower: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A⁻¹ b for the factor of A."""
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
        Number of points.
    n_threads : int
        Threads to use.
    check_interrupt : callable
        Called several times a second.
    """

    def __init__(self, n: int, n_threads: int, check_interrupt: Callable[[], None]) -> None:
        self.n, self.n_threads, self.check_interrupt = n, n_threads, check_interrupt
        self._rows: rows.KernelRows | None = None

    def shared(self) -> tuple:
        """Return what `system_from` makes the same system of, in another process."""
        raise NotImplementedError

    def settle(self) -> None:
        """Keep the current state as the start of all later machines, in any order and process."""

    def begin(self) -> None:
        """Prepare for the next machine."""

    def zero(self) -> np.ndarray:
        """Return θ of f = 0."""
        raise NotImplementedError

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Return f at the points."""
        raise NotImplementedError

    def of_dual(self, a: np.ndarray) -> np.ndarray:
        """Return θ of Σ aⱼ k(xⱼ, ·)."""
        raise NotImplementedError

    def dual_of(self, theta: np.ndarray) -> np.ndarray | None:
        """Return coefficients a with of_dual(a) = θ; None if they are not available."""
        return None

    def inner(self, theta: np.ndarray, other: np.ndarray, other_values: np.ndarray) -> float:
        """Return the inner product of two functions; `other_values` are the values of the second."""
        raise NotImplementedError

    def rounding(self, theta: np.ndarray) -> tuple[np.ndarray | float, float]:
        """Return bounds of the rounding errors of values(θ) and inner(θ, θ), if those can exceed a few digits."""
        return 0.0, 0.0

    def step(self, curvature: np.ndarray, at: Gradient, with_shift: bool) -> tuple[np.ndarray, float]:
        """Return δ and β as above. Without a shift β is 0."""
        raise NotImplementedError

    def rows(self, spare: int) -> rows.KernelRows:
        """Return kernel values for the dual solver, computed once; `spare` 1: with a last point of values 0."""
        if self._rows is None or self._rows.n != self.n + spare:
            self._rows = self._make_rows(spare)
        return self._rows

    def _make_rows(self, spare: int) -> rows.KernelRows:
        raise NotImplementedError

    def _between(self, points: np.ndarray) -> np.ndarray:
        """Return a copy of the kernel values between some points."""
        raise NotImplementedError

    def free_solver(self, points: np.ndarray, ridge: float) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return v ↦ (K + ridge · mean diagonal)⁻¹ v for the points; None if that is not positive definite."""
        matrix = self._between(points)
        diagonal = np.einsum("ii->i", matrix)
        diagonal += ridge * float(diagonal.mean())
        return (lambda v: _solved(matrix, v)) if _factored(matrix, self.n_threads, self.check_interrupt) else None

    def _factored(self, fill: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the factor of a positive definite matrix; if rounding makes it indefinite, with a larger diagonal.

        The step is then not exactly a Newton step, which costs steps but no exactness: the gap does not depend on it.
        """
        matrix, jitter = fill(), 0.0
        if not np.isfinite(matrix.diagonal()).all():
            raise ValueError("the Newton system overflows float64: scale the data, or take a larger lam")
        while not _factored(matrix, self.n_threads, self.check_interrupt):
            jitter = max(10 * jitter, len(matrix) * _EPSILON)
            if jitter > 10 * len(matrix):  # the diagonal dominates: NaN is the only remaining reason
                raise ValueError("the Newton system overflows float64: scale the data, or take a larger lam")
            matrix = fill()
            matrix[np.diag_indices(len(matrix))] *= 1 + jitter  # relative: the units of points may be far apart
        return matrix


class GramSystem(System):
    """Functions by the Gram matrix; θ is α."""

    def __init__(self, gram: np.ndarray, n_threads: int, check_interrupt: Callable[[], None]) -> None:
        super().__init__(len(gram), n_threads, check_interrupt)
        self.gram = gram
        self._lengths = np.sqrt(np.maximum(gram.diagonal(), 0.0))  # ‖k(x, ·)‖
        self._buffer: np.ndarray | None = None
        self._old: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # active points, roots, factor in the buffer
        self._common = self._old  # of the first of several machines

    def shared(self) -> tuple:
        """Return the matrix, and the factor to start from."""
        return "gram", self.gram, self._common

    def settle(self) -> None:
        """Keep the last factor."""
        self._common, self._buffer = self._old, None

    def begin(self) -> None:
        """Start from the factor that was kept."""
        self._old = self._common

    def work_buffer(self) -> np.ndarray:
        """Return a buffer of n² numbers."""
        if self._buffer is None:
            self._buffer = memory.empty((self.n * self.n,), np.float64)
        return self._buffer

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.n)

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Return the product with the matrix."""
        return self.gram @ theta

    def of_dual(self, a: np.ndarray) -> np.ndarray:
        """Return the dual point as θ."""
        return a

    def dual_of(self, theta: np.ndarray) -> np.ndarray:
        """Return the coefficients themselves."""
        return theta

    def inner(self, theta: np.ndarray, other: np.ndarray, other_values: np.ndarray) -> float:
        """Return the inner product."""
        return float(theta @ other_values)

    def rounding(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Return bounds of rounding: if K is singular, large coefficients may add up to a small function.

        The terms of a sum are at most |θⱼ| √(Kᵢᵢ Kⱼⱼ), and errors of n terms with random signs grow like √n.
        """
        sizes, unit = float(np.abs(theta) @ self._lengths), math.sqrt(self.n) * _EPSILON
        return unit * sizes * self._lengths, unit * sizes * sizes

    def _make_rows(self, spare: int) -> rows.KernelRows:
        matrix = self.gram
        if spare:
            matrix = memory.empty((self.n + 1, self.n + 1), np.float64)
            matrix[: self.n, : self.n] = self.gram
            matrix[self.n] = matrix[:, self.n] = 0.0
        return rows.whole_matrix(matrix, np.diagonal(matrix).copy(), self.n_threads)

    def _between(self, points: np.ndarray) -> np.ndarray:
        return self.gram[np.ix_(points, points)]

    def step(self, curvature: np.ndarray, at: Gradient, with_shift: bool) -> tuple[np.ndarray, float]:
        """Return the step by α⁺ = a + S z near the optimum (e is small), else by α⁺ = S y, without cancellation."""
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
        """Return solutions by conjugate gradients, preconditioned by the last factor; None if a new factor is required.

        Every iterate is a descent direction. A new factor costs as much as about n/100 products.
        """
        limit = self.n // _ROWS_PER_PRODUCT
        if self._old is None or not limit:
            return None
        old_active, old_root, lower = self._old
        if len(active) != len(old_active) or (active != old_active).any():
            return None
        ratio = root / old_root
        if ratio.max() > _MAX_ROOT_SPREAD * ratio.min():
            return None
        found = [self._conjugate_gradients(active, root, lower, side, limit) for side in sides]
        return None if any(each is None for each in found) else found

    def _conjugate_gradients(
        self, active: np.ndarray, root: np.ndarray, lower: np.ndarray, right: np.ndarray, limit: int
    ) -> np.ndarray | None:
        """Return z with (I + S K S) z = right to a thousandth; None if more than `limit` products seem necessary."""
        z, residual, padded = np.zeros_like(right), right.copy(), np.zeros(self.n)
        size = _CG_RTOL * float(np.linalg.norm(right))
        if size == 0:
            return z
        conditioned = _solved(lower, residual)
        direction, energy = conditioned, float(residual @ conditioned)
        for done in range(limit):
            left = math.log(max(float(np.linalg.norm(residual)) / size, 1e-300), 1 / _CG_RTOL)  # from 1 down to 0
            if left <= 0:
                return z
            if done == limit // 2 and left > _MAX_LEFT_HALFWAY:
                return None
            padded[active] = root * direction
            image = direction + root * self.values(padded)[active]
            self.check_interrupt()
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
        """Return the lower triangle of I + S K S of the active points, computed by blocks of rows."""
        m = len(active)
        matrix = self.work_buffer()[: m * m].reshape(m, m)
        everyone = m == self.n
        for start in range(0, m, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, m)
            rows, out = active[start:stop], matrix[start:stop, :stop]
            part = self.gram[start:stop, :stop] if everyone else self.gram[rows[:, None], active[:stop]]
            np.multiply(part, root[:stop], out=out)
            out *= root[start:stop, None]
        matrix[np.diag_indices(m)] += 1.0
        return matrix


class FeatureSystem(System):
    """Functions by features whose inner products are the kernel, dense or sparse; θ is w.

    β = Σa / Σd - μ·δ with μ the mean of the features weighted by d; around it, (I + Σ d (φ-μ)(φ-μ)ᵀ) δ = -e - μ Σa.
    """

    def __init__(self, phi: Any, n_threads: int, check_interrupt: Callable[[], None]) -> None:
        super().__init__(phi.shape[0], n_threads, check_interrupt)
        self.phi, self.phi_t = phi, phi.T
        self.sparse = not isinstance(phi, np.ndarray)

    def shared(self) -> tuple:
        """Return the features."""
        return "features", self.phi, None

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.phi.shape[1])

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Return the product with the matrix."""
        return self.phi @ theta

    def of_dual(self, a: np.ndarray) -> np.ndarray:
        """Return the dual point as θ."""
        return self.phi_t @ a

    def inner(self, theta: np.ndarray, other: np.ndarray, other_values: np.ndarray) -> float:
        """Return the inner product."""
        return float(theta @ other)

    def _make_rows(self, spare: int) -> rows.KernelRows:
        phi = self.phi
        if spare:
            zero = np.zeros((1, phi.shape[1]))
            phi = sparse.vstack([phi, sparse.csr_array(zero)], format="csr") if self.sparse else np.vstack([phi, zero])
        squares = phi.multiply(phi).sum(axis=1) if self.sparse else np.einsum("ij,ij->i", phi, phi)
        data = check.matrix(phi, dtype=np.float64)
        return rows.linear_products(data, np.ascontiguousarray(squares, dtype=np.float64).ravel(), self.n_threads)

    def _between(self, points: np.ndarray) -> np.ndarray:
        part = self.phi[points]
        product = part @ part.T
        return product.toarray() if self.sparse else product

    def step(self, curvature: np.ndarray, at: Gradient, with_shift: bool) -> tuple[np.ndarray, float]:
        """Return the step by the factor of the matrix above."""
        mass, total = float(curvature.sum()), float(at.a.sum())
        if mass == 0:
            return -at.e, 0.0
        centre = (self.phi_t @ curvature) / mass if with_shift else np.zeros(self.phi.shape[1])
        lower = self._factored(lambda: self._matrix(curvature, centre))
        delta = _solved(lower, -at.e - centre * total)
        return delta, total / mass - float(centre @ delta) if with_shift else 0.0

    def _matrix(self, curvature: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Return I + Σ d (φ - centre)(φ - centre)ᵀ, summed over blocks of rows in a fixed order."""
        if self.sparse:
            return self._matrix_of_sparse(curvature, centre)
        matrix = np.eye(self.phi.shape[1])
        block = _FEATURE_BLOCK_ROWS
        blocks = ((start, curvature[start : start + block], centre) for start in range(0, self.n, block))
        threads = self.n_threads if self.n > block else 1
        for part in parallel.in_threads(self._outer, blocks, threads, self.check_interrupt):
            matrix += part
        return matrix

    def _outer(self, start: int, curvature: np.ndarray, centre: np.ndarray) -> np.ndarray:
        scaled = (self.phi[start : start + _FEATURE_BLOCK_ROWS] - centre) * np.sqrt(curvature)[:, None]
        return scaled.T @ scaled

    def _matrix_of_sparse(self, curvature: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Return the same matrix; the rows stay sparse, and the centre is subtracted at the end."""
        columns = self.phi.multiply(np.sqrt(curvature)[:, None]).T.tocsr()
        matrix = kernels.gram(
            columns, kernel=kernels.Linear(), n_threads=self.n_threads, callback=lambda _: self.check_interrupt()
        )
        matrix -= np.outer(curvature.sum() * centre, centre)
        matrix[np.diag_indices(len(matrix))] += 1.0
        return matrix


def system_from(shared: tuple, n_threads: int, check_interrupt: Callable[[], None]) -> System:
    """Return the system from the result of its `shared`."""
    kind, data, common = shared
    if kind == "features":
        return FeatureSystem(data, n_threads, check_interrupt)
    system = GramSystem(data, n_threads, check_interrupt)
    system._common = common
    return system


def system_of(x: Any, kernel: Any, n_threads: int, check_interrupt: Callable[[], None], callback: Any) -> System:
    """Return the system of checked points for a kernel whose gamma is a number.

    Parameters
    ----------
    x : ndarray or Csr
        The points; for `Precomputed` the square matrix.
    kernel : Kernel or callable
        As in `erm.fit`.
    n_threads : int
        Threads to use.
    check_interrupt : callable
        Called several times a second.
    callback : callable or None
        Receives progress of the Gram matrix.

    Returns
    -------
    System
        By features if there are few of them.

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
            return FeatureSystem(phi, n_threads, check_interrupt)
    check.fits_memory((2, n, n), np.float64, "the Gram matrix and its factor")
    if isinstance(kernel, kernels.Precomputed):
        require_square(x)
        gram, name = np.array(check.dense(x), dtype=np.float64), "X"
        require_symmetric(gram, name)
    elif is_callable(kernel):
        gram, name = callable_matrix(kernel, x, x, np.empty((n, n)), lambda *_: check_interrupt()), "kernel(X, X)"
        require_symmetric(gram, name)
    else:
        gram, name = kernels.gram(plain(x), None, kernel, dtype=np.float64, n_threads=n_threads, callback=callback), "K"
    if not np.isfinite(gram).all():
        raise ValueError("kernel values overflow float64: scale the data, or take a smaller gamma or degree")
    system = GramSystem(gram, n_threads, check_interrupt)
    if not is_semidefinite(kernel):
        precision = np.finfo(np.float32 if x.dtype == np.float32 else np.float64).eps
        _require_positive(system, name, float(precision))
    return system


def _features(x: Any, kernel: Any, n_threads: int) -> Any:
    """Return explicit features of the points, or None if there are more features than points."""
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
    """Return φ(x) in float64: the data (dense or sparse) for Linear, dense monomials for Polynomial."""
    x = plain(_double(x))
    if isinstance(kernel, kernels.Linear):
        return x
    return kernels.feature_map(kernel, x.shape[1]).transform(x, n_threads=n_threads)


def _require_positive(system: GramSystem, name: str, precision: float) -> None:
    """Raise for a matrix with an eigenvalue below 0 by more than rounding: ‖f‖² would not be a square."""
    gram, n = system.gram, system.n
    slack = 10 * n * precision * float(np.abs(gram).max(initial=0.0))
    matrix = system.work_buffer().reshape(n, n)
    matrix[...] = gram
    matrix[np.diag_indices(n)] += slack + np.finfo(np.float64).tiny
    if not _factored(matrix, system.n_threads, system.check_interrupt):
        smallest = float(eigvalsh(gram, subset_by_index=[0, 0])[0])
        if smallest < -slack:
            raise ValueError(
                f"{name} is not positive semi-definite: its smallest eigenvalue is {smallest:.6g} (the largest entry "
                f"is {np.abs(gram).max():.6g}), so that ‖f‖² has no meaning"
            )
