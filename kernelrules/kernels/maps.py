"""Feature maps Φ with Φ(x)·Φ(z) equal to the kernel, or approximately so.

`feature_map`     exact: the identity for Linear; for (γ x·z + c)^d every monomial of degree k ≤ d, weighted by the
                  square root of its multinomial coefficient times binom(d, k) γ^k c^(d-k)
`nystroem`        Φ(x) = k(x, L) U Λ^(-1/2) from the eigenvectors of k(L, L), L some points of the data; exact on L
`random_fourier`  cos and sin of random projections: the mean of their products is the kernel (RBF, Laplacian)

Each returns a frozen object of arrays with a method transform(X).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.simd.finite import magnitude
from kernelrules.docstrings import shared_parameters
from kernelrules.kernels.matrix import gram, require_kernel, require_square
from kernelrules.kernels.specs import RBF, Kernel, Laplacian, Linear, Polynomial, Precomputed
from kernelrules.results.frozen import Frozen

__all__ = [
    "FeatureMap",
    "FourierMap",
    "IdentityMap",
    "MonomialMap",
    "NystroemMap",
    "feature_map",
    "nystroem",
    "random_fourier",
]


_BLOCK = 1 << 18  # monomials made at a time, which a cache holds
_NANOSECONDS = 5e7  # that a block of rows is to take, so that signals are answered
_FEWEST, _MOST = 16, 8192  # rows of a block: fewer would read the whole map for nearly nothing


@dataclass(frozen=True, eq=False)
class FeatureMap(Frozen, ABC):
    """A map from `n_features` columns to `n_components`.

    Attributes
    ----------
    kernel : Kernel
        The kernel that inner products of mapped rows equal or approximate.
    n_features : int
        Columns that `transform` expects.
    """

    kernel: Kernel
    n_features: int

    @property
    @abstractmethod
    def n_components(self) -> int:
        """Columns that `transform` gives."""

    @parallel.reports("transform")
    def transform(
        self,
        X: Any,
        *,
        n_threads: int | None = None,
        callback: Callable[[parallel.Progress], Any] | None = None,
        progress: bool = False,
    ) -> np.ndarray:
        """Φ(X), one row for each row of X, float32 for float32 data.

        Parameters
        ----------
        X : array, sparse matrix or data frame, (n, n_features)
            The data.
        {n_threads, callback}
            Progress is counted in rows.
        {progress}

        Returns
        -------
        ndarray (n, n_components)
            The mapped rows.

        Raises
        ------
        ValueError
            For data that do not fit the map, or are so large that mapped numbers overflow.

        Examples
        --------
        >>> from kernelrules import kernels
        >>> kernels.feature_map(kernels.Polynomial(degree=2, coef0=0.0), 2).transform([[3.0, 5.0]]).round(2)
        array([[ 9.  , 21.21, 25.  ]])
        """
        x = check.matrix(X)
        if x.shape[1] != self.n_features:
            raise ValueError(f"X has {x.shape[1]} columns but the map was made for {self.n_features}")
        threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "transform")
        check.fits_memory((x.shape[0], self.n_components), x.dtype, "the mapped data")
        n, cost = x.shape[0], self._nanoseconds()
        step = int(min(max(_NANOSECONDS / cost, _FEWEST), _MOST))
        starts = range(0, n, step)
        workers = parallel.enough_threads(min(threads, max(len(starts), 1)), n * cost, of_python=True)
        mapped = np.empty((n, self.n_components), dtype=x.dtype)

        def fill(start: int) -> int:
            end = min(start + step, n)
            rows = x.take(np.arange(start, end)) if isinstance(x, check.Csr) else x[start:end]
            with np.errstate(over="ignore", invalid="ignore"):
                self._map(rows, mapped[start:end], threads if workers == 1 else 1)
            if not math.isfinite(magnitude(mapped[start:end])[0]):
                raise ValueError(f"mapped features of X overflow {x.dtype}: gamma or the data are too large")
            return end

        with parallel.blas_threads(1):  # the same bits for any number of threads
            for end in parallel.in_threads(fill, ((start,) for start in starts), workers):
                if tick is not None:
                    tick(end, n)
        return mapped

    @abstractmethod
    def _map(self, x: Any, out: np.ndarray, n_threads: int) -> None:
        """`transform` for some rows that have been checked; what is too large need not be refused."""

    @abstractmethod
    def _nanoseconds(self) -> float:
        """That a row takes, roughly."""


@dataclass(frozen=True, eq=False)
class IdentityMap(FeatureMap):
    """Φ(x) = x, for the linear kernel."""

    @property
    def n_components(self) -> int:
        """As many as there are features."""
        return self.n_features

    def _map(self, x: Any, out: np.ndarray, n_threads: int) -> None:
        out[...] = check.dense(x)

    def _nanoseconds(self) -> float:
        return 1.0 + self.n_features / 8


@dataclass(frozen=True, eq=False)
class MonomialMap(FeatureMap):
    """All monomials up to the degree that have a weight, each made from one of a degree less.

    Attributes
    ----------
    parents, factors : ndarray of int
        Monomial t is monomial parents[t] times feature factors[t]; the first is the constant 1.
    weights : ndarray of float
        The factor of each monomial; those of weight 0 are left out of the result.
    """

    parents: np.ndarray
    factors: np.ndarray
    weights: np.ndarray

    @property
    def n_components(self) -> int:
        """Monomials of positive weight."""
        return int(np.count_nonzero(self.weights))

    def _map(self, x: Any, out: np.ndarray, n_threads: int) -> None:
        plain = x.toscipy() if isinstance(x, check.Csr) else x
        kept = np.flatnonzero(self.weights)
        weights = self.weights[kept, None].astype(x.dtype)
        step = max(1, _BLOCK // len(self.weights))
        for start in range(0, x.shape[0], step):
            rows = plain[start : start + step]
            by_feature = np.ascontiguousarray((rows.toarray() if isinstance(x, check.Csr) else rows).T)
            monomials = np.empty((len(self.weights), by_feature.shape[1]), dtype=x.dtype)
            monomials[0] = 1
            for t in range(1, len(self.weights)):
                np.multiply(monomials[self.parents[t]], by_feature[self.factors[t]], out=monomials[t])
            monomials = monomials if len(kept) == len(monomials) else monomials[kept]
            monomials *= weights
            out[start : start + step] = monomials.T

    def _nanoseconds(self) -> float:
        return 2.0 * len(self.weights)


@dataclass(frozen=True, eq=False)
class NystroemMap(FeatureMap):
    """Φ(x) = k(x, landmarks) · whitening.

    Attributes
    ----------
    landmarks : ndarray or csr_array (m, p)
        Points of the data; for `Precomputed` empty, since transform is given their kernel values.
    indices : ndarray (m,)
        Which rows of the data they are.
    whitening : ndarray (m, r)
        U Λ^(-1/2), for the r ≤ m eigenvalues of k(landmarks, landmarks) that are not rounding error.
    """

    landmarks: Any
    indices: np.ndarray
    whitening: np.ndarray

    @property
    def n_components(self) -> int:
        """The rank of the landmarks' kernel matrix."""
        return self.whitening.shape[1]

    def _map(self, x: Any, out: np.ndarray, n_threads: int) -> None:
        plain = x.toscipy() if isinstance(x, check.Csr) else x
        if isinstance(self.kernel, Precomputed):
            chosen = plain[:, self.indices]
            values = chosen.toarray() if isinstance(x, check.Csr) else chosen
        else:
            values = gram(plain, self.landmarks.astype(x.dtype, copy=False), self.kernel, n_threads=n_threads)
        np.matmul(values, self.whitening.astype(x.dtype, copy=False), out=out)

    def _nanoseconds(self) -> float:
        return len(self.whitening) * (2.0 + (self.landmarks.shape[1] + self.n_components) / 8)


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Φ(x) = (cos w·x, sin w·x) over the columns w of `frequencies`, scaled.

    Attributes
    ----------
    frequencies : ndarray (p, f)
        Random directions.
    phase : float or None
        With an odd number of components the last frequency gives one: sqrt(2) cos(w·x + phase).
    """

    frequencies: np.ndarray
    phase: float | None

    @property
    def n_components(self) -> int:
        """Two a frequency, or one less."""
        return 2 * self.frequencies.shape[1] - (self.phase is not None)

    def _map(self, x: Any, out: np.ndarray, n_threads: int) -> None:
        plain = x.toscipy() if isinstance(x, check.Csr) else x
        angles = np.ascontiguousarray(plain @ self.frequencies.astype(x.dtype, copy=False))
        if not math.isfinite(magnitude(angles)[0]):
            raise ValueError(f"projections of X overflow {x.dtype}: gamma or the data are too large")
        n_pairs = angles.shape[1] - (self.phase is not None)
        np.cos(angles[:, :n_pairs], out=out[:, : 2 * n_pairs : 2])
        np.sin(angles[:, :n_pairs], out=out[:, 1 : 2 * n_pairs : 2])
        if self.phase is not None:
            np.cos(angles[:, -1] + x.dtype.type(self.phase), out=out[:, -1])
            out[:, -1] *= x.dtype.type(math.sqrt(2.0))
        out *= x.dtype.type(1.0 / math.sqrt(angles.shape[1]))

    def _nanoseconds(self) -> float:
        return self.frequencies.shape[1] * (20.0 + self.n_features / 8)


def feature_map(kernel: Kernel, n_features: int) -> FeatureMap:
    """The exact feature map of a kernel that has a finite one: linear and polynomial.

    Parameters
    ----------
    kernel : Linear or Polynomial
        Of a polynomial kernel coef0 ≥ 0; gamma a number or "auto".
    n_features : int
        Columns of the data to map.

    Returns
    -------
    FeatureMap
        transform(X) @ transform(Z).T equals gram(X, Z, kernel).

    Examples
    --------
    >>> from kernelrules import kernels
    >>> phi = kernels.feature_map(kernels.Polynomial(degree=2), 2)
    >>> phi.transform([[3.0, 5.0]]).round(2)
    array([[ 1.  ,  4.24,  7.07,  9.  , 21.21, 25.  ]])
    """
    require_kernel(kernel)
    p = check.whole(n_features, "n_features", 1)
    if isinstance(kernel, Linear):
        return IdentityMap(kernel, p)
    if not isinstance(kernel, Polynomial):
        raise ValueError(
            f"{kernel!r} has no finite exact feature map; nystroem() or random_fourier() approximate what they can"
        )
    if kernel.coef0 < 0:
        raise ValueError(f"a polynomial kernel with coef0 < 0 has no feature map, got {kernel.coef0}")
    if kernel.gamma == "scale":
        raise ValueError('gamma must be a number or "auto" here: "scale" needs data; use kernel.resolve(X)')
    resolved = kernel.resolve_checked(np.empty((0, p))) if kernel.gamma == "auto" else kernel
    n_monomials = math.comb(p + resolved.degree, resolved.degree)
    check.fits_memory((n_monomials, 3), np.float64, "the list of monomials")
    return _monomials(resolved, p)


def _monomials(kernel: Polynomial, p: int) -> MonomialMap:
    parents, factors, weights = [0], [0], [_power(kernel.coef0, kernel.degree)]
    position = {(): 0}
    for k in range(1, kernel.degree + 1):
        scale = math.comb(kernel.degree, k) * _power(kernel.gamma, k) * _power(kernel.coef0, kernel.degree - k)
        for exponents in combinations_with_replacement(range(p), k):
            position[exponents] = len(weights)
            parents.append(position[exponents[:-1]])
            factors.append(exponents[-1])
            ways = math.factorial(k)
            for feature in set(exponents):
                ways //= math.factorial(exponents.count(feature))
            weights.append(scale * ways)
    if not np.isfinite(weights).all() or not any(weights):
        raise ValueError(f"the weights of the feature map of {kernel!r} do not fit float64")
    return MonomialMap(kernel, p, np.array(parents), np.array(factors), np.sqrt(weights))


def _power(base: float, exponent: int) -> float:
    try:
        return base**exponent
    except OverflowError:
        return math.inf


@parallel.reports("nystroem")
def nystroem(
    X: Any,
    kernel: Kernel = RBF(),  # noqa: B008
    n_components: int = 100,
    rng: Any = None,
    *,
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> NystroemMap:
    """A feature map from the kernel values against some of the data's own points.

    Parameters
    ----------
    X : array, sparse matrix or data frame, (n, p)
        The data; for `Precomputed` their square kernel matrix.
    kernel : Kernel
        A positive semi-definite one; gamma is taken from X. Directions of negative eigenvalue are dropped.
    n_components : int
        Points to draw, without replacement; at most n are taken.
    {rng}
        It chooses the landmarks.
    {n_threads}
        The eigenvectors, most of the work for many points, are computed by one thread.
    {callback, progress}

    Returns
    -------
    NystroemMap
        With at most `n_components` components. For `Precomputed`, transform takes kernel values of new points against
        all of the data, (m, n).

    References
    ----------
    Williams, C. K. I. and Seeger, M. (2001). "Using the Nyström method to speed up kernel machines". Advances in Neural
    Information Processing Systems 13.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> phi = kernels.nystroem(X, kernels.RBF(0.1), 50, rng=0)
    >>> mapped = phi.transform(X)
    >>> np.allclose(mapped @ mapped.T, kernels.gram(X, kernel=kernels.RBF(0.1)), atol=1e-6)
    True
    """
    require_kernel(kernel)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "nystroem")
    x = check.matrix(X)
    if x.shape[0] == 0:
        raise ValueError("X has no rows to choose from")
    m = min(check.whole(n_components, "n_components", 1), x.shape[0])
    indices = np.sort(check.generator(rng).choice(x.shape[0], size=m, replace=False))
    plain = x.toscipy() if isinstance(x, check.Csr) else x
    resolved = kernel.resolve_checked(x)
    chosen = plain[indices]
    if isinstance(kernel, Precomputed):
        require_square(x)
        between = chosen[:, indices]
        between = between.toarray() if isinstance(x, check.Csr) else between
        landmarks = np.empty((0, x.shape[1]), dtype=x.dtype)
    else:
        landmarks = chosen if isinstance(x, check.Csr) else np.array(chosen)
        heard = None if tick is None else tick.nested
        between = gram(landmarks, kernel=resolved, dtype=np.float64, n_threads=threads, callback=heard)
    values, vectors = parallel.interruptible_call(_eigh, (between + between.T) / 2, tick=tick)
    kept = values > values[-1] * m * np.finfo(x.dtype).eps
    if not kept.any():
        raise ValueError("the kernel matrix of the chosen points has no positive eigenvalue")
    whitening = (vectors[:, kept] / np.sqrt(values[kept]))[:, ::-1]
    return NystroemMap(resolved, x.shape[1], landmarks, indices, np.ascontiguousarray(whitening))


def _eigh(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with parallel.blas_threads(1):  # the same bits for any number of threads
        return np.linalg.eigh(a)  # without the GIL, which SciPy's holds: Ctrl-C is answered


@shared_parameters
def random_fourier(kernel: Kernel, n_features: int, n_components: int = 100, rng: Any = None) -> FourierMap:
    """A feature map of random waves, for kernels that depend on x - z.

    Parameters
    ----------
    kernel : RBF or Laplacian
        gamma a number or "auto".
    n_features : int
        Columns of the data to map.
    n_components : int
        Columns of the result. The error falls like 1 / sqrt(n_components).
    {rng}
        It draws the frequencies.

    Returns
    -------
    FourierMap
        The mean of transform(X) @ transform(Z).T over rng is gram(X, Z, kernel).

    References
    ----------
    Rahimi, A. and Recht, B. (2007). "Random features for large-scale kernel machines". Advances in Neural Information
    Processing Systems 20.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels
    >>> phi = kernels.random_fourier(kernels.RBF(0.5), 2, 2000, rng=0)
    >>> (phi.transform([[0.0, 0.0]]) @ phi.transform([[1.0, 0.0]]).T).round(1)
    array([[0.6]])
    """
    require_kernel(kernel)
    p = check.whole(n_features, "n_features", 1)
    d = check.whole(n_components, "n_components", 1)
    if not isinstance(kernel, (RBF, Laplacian)):
        raise ValueError(f"random Fourier features need RBF or Laplacian, got {kernel!r}")
    if kernel.gamma == "scale":
        raise ValueError('gamma must be a number or "auto" here: "scale" needs data; use kernel.resolve(X)')
    resolved = kernel.resolve_checked(np.empty((0, p)))
    generator = check.generator(rng)
    shape = (p, (d + 1) // 2)
    check.fits_memory(shape, np.float64, "the random frequencies")
    if isinstance(kernel, RBF):
        frequencies = generator.normal(scale=math.sqrt(2 * resolved.gamma), size=shape)
    else:
        frequencies = resolved.gamma * generator.standard_cauchy(size=shape)
    phase = generator.uniform(0, 2 * math.pi) if d % 2 else None
    return FourierMap(resolved, p, frequencies, phase)
