"""Ridge regression over blocks of rows that are never in memory together: `fit_blocks`.

With features ψ (of a feature map, or the columns themselves), a fit needs only moments of the data,

    W = Σw    m = Σwψ/W    C = Σw(ψ-m)(ψ-m)ᵀ    D = Σw(ψ-m)(y-ȳ)    E = Σw(y-ȳ)²        (m = ȳ = 0 without a constant)

and those of two blocks combine to those of both: C = C₁ + C₂ + (W₁W₂/W)(m₁-m₂)(m₁-m₂)ᵀ, and D and E likewise. They are
added in float64, in the order of the blocks, so the result does not depend on the process that computed them. Then (C +
λW I) v = D, and with r the residual of that system P = (E - v·D - v·r)/W and P - D(α) = ‖r‖²/(λW²).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel, shared_data
from kernelrules.kernels.values import require_finite_values
from kernelrules.results import Certificate, FeatureRidge
from kernelrules.ridge.certify import ROUNDING, ROUNDS, warn_unless_converged
from kernelrules.ridge.definite import rounding
from kernelrules.ridge.factor import factor, mirror_upper, solve
from kernelrules.ridge.problem import require_strength, strength, targets

__all__ = ["fit_blocks", "mapped_values"]

_BLOCK_NUMBERS = 1 << 22  # mapped features made at a time


@parallel.reports("ridge")
def fit_blocks(
    blocks: Iterable[Any],
    lam: float,
    feature_map: Any = None,
    *,
    intercept: bool = False,
    tol: float = 1e-8,
    executor: Any = None,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> FeatureRidge:
    """Ridge regression on features of data that come in blocks: one pass, and memory for a few of them.

    Minimises (1/W) Σ wᵢ (f(xᵢ) - yᵢ)² + λ‖v‖² over f(x) = Φ(x)·v + b, as `ridge.fit` does. With the map of
    `kernels.nystroem` or `kernels.random_fourier` it is kernel ridge regression, nearly, for any number of rows.

    Parameters
    ----------
    blocks : iterable of (X, y) or (X, y, sample_weight)
        Rows, a block at a time; blocks may differ in size. A block, or a part of one, may also be a function without
        arguments that gives it, or a delayed object of dask's (`array.to_delayed()`): it is made where it is used.
    lam : float
        λ, greater than 0.
    feature_map : object with a method transform(X), optional
        Φ, one of `kernels`' or your own; None takes the columns as they are.
    intercept : bool
        Whether f may have a constant b that is not penalised.
    tol : float
        Largest duality gap, relative to the primal objective, of a fit that counts as converged.
    {executor}
        Each block is a task. A few blocks per worker are in progress at a time.
    {n_threads, callback}
        Progress is counted in blocks.
    {progress}

    Returns
    -------
    FeatureRidge
        For `ridge.predict`.

    Warns
    -----
    ConvergenceWarning
        Where the tolerance was not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import kernels, ridge
    >>> X = np.linspace(0, 6, 90)[:, None]
    >>> blocks = [(X[i::3], np.sin(X[i::3, 0])) for i in range(3)]
    >>> found = ridge.fit_blocks(blocks, 1e-6, kernels.nystroem(X, kernels.RBF(1.0), 20, rng=0))
    >>> bool(np.abs(ridge.predict(found, X) - np.sin(X[:, 0])).max() < 0.01)
    True
    """
    lam, tol, intercept = strength(lam, "lam"), check.positive(tol, "tol"), check.flag(intercept, "intercept")
    if feature_map is not None and not callable(getattr(feature_map, "transform", None)):
        raise TypeError(f"feature_map must have a method transform(X), got {feature_map!r}")
    parallel.require_executor(executor)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "ridge")
    of_task = threads if executor is None else (1 if n_threads is None else n_threads)
    total = len(blocks) if hasattr(blocks, "__len__") else None
    found, done = None, 0
    with shared_data.Scattered(executor) as scatter:
        shared = scatter(feature_map)
        tasks = ((shared, shared_data.carried_handle(block), intercept, of_task) for block in _each(blocks))
        for part in parallel.stream(_moments_of, tasks, executor, tick, "block"):
            done += 1
            found = part if found is None else found.joined(part, done)
            if tick is not None:
                tick(done, total or done + 1)
    if found is None or not found.n_rows:
        raise ValueError("blocks hold no rows")
    if not found.total > 0:
        raise ValueError("sample_weight is zero for every row")
    require_strength(lam, found.total)
    return _solved(found, lam, feature_map, intercept, tol, threads)


def _each(blocks: Any) -> Iterable[Any]:
    try:
        return iter(blocks)
    except TypeError:
        raise TypeError(f"blocks must be an iterable of (X, y), got {type(blocks).__name__}") from None


@dataclass(frozen=True, eq=False)
class _Moments:
    """W, m, C, ȳ, D and E of some rows, as above; targets are rows, as everywhere inside."""

    n_rows: int
    n_features: int
    flat: bool
    total: float
    mean: np.ndarray  # (q,)
    second: np.ndarray  # (q, q)
    targets: np.ndarray  # (t,)
    first: np.ndarray  # (t, q)
    squares: np.ndarray  # (t,)
    centred: bool

    def joined(self, other: _Moments, number: int) -> _Moments:
        """Of both; `number` is that of the other block."""
        for what, mine, its in (
            ("columns", self.n_features, other.n_features),
            ("features", len(self.mean), len(other.mean)),
            ("targets", len(self.targets), len(other.targets)),
        ):
            if mine != its:
                raise ValueError(f"block {number} has {its} {what}, but block 1 has {mine}")
        if not other.total > 0 or not self.total > 0:
            kept = self if self.total > 0 else other
            return _Moments(**{**kept.__dict__, "n_rows": self.n_rows + other.n_rows, "flat": self.flat})
        total = self.total + other.total
        second, first, squares = self.second, self.first, self.squares + other.squares
        second += other.second  # a block's arrays are its own
        first += other.first
        mean, average = self.mean, self.targets
        if self.centred:
            share = other.total / total
            step, rise = other.mean - mean, other.targets - average
            scale = self.total * share
            second += scale * np.multiply.outer(step, step)
            first += scale * np.multiply.outer(rise, step)
            squares = squares + scale * rise**2
            mean, average = mean + share * step, average + share * rise
        return _Moments(
            self.n_rows + other.n_rows, self.n_features, self.flat, total, mean, second, average, first, squares,
            self.centred,
        )  # fmt: skip


def _given(part: Any) -> Any:
    """A block or a part of one, where it is a promise of dask's or a function."""
    if hasattr(part, "compute") and hasattr(part, "__dask_graph__"):
        return part.compute(scheduler="synchronous")
    return part() if callable(part) else part


def _moments_of(feature_map: Any, block: Any, centred: bool, n_threads: int) -> _Moments:
    """Of one block; what an executor is given."""
    block = _given(block)
    if not isinstance(block, (tuple, list)) or len(block) not in (2, 3):
        raise TypeError(f"a block must be (X, y) or (X, y, sample_weight), got {type(block).__name__}")
    X, y, sample_weight = (_given(part) for part in (*block, None)[:3])
    x = check.matrix(X)
    n = x.shape[0]
    rows, flat = targets(y, n)
    weight = np.ones(n)
    if sample_weight is not None:
        weight = check.targets(sample_weight, n, "sample_weight")
        if (weight < 0).any():
            raise ValueError(f"sample_weight must not be negative, got {weight.min()}")
    total = float(weight.sum())
    threads = parallel.n_threads_or_default(n_threads)
    tick = parallel.ticker(None, "ridge")
    first, second, mean, average = None, None, None, np.zeros(len(rows))
    with parallel.blas_threads(1):
        if centred and total > 0:
            average = (rows * weight).sum(axis=1) / total
            mean = sum(weight[part] @ psi for part, psi in _mapped(feature_map, x, threads)) / total
        rows = rows - average[:, None]
        for part, psi in _mapped(feature_map, x, threads):
            if second is None:
                check.fits_memory((psi.shape[1], psi.shape[1]), np.float64, "the features' matrix")
                second, first = np.zeros((psi.shape[1], psi.shape[1])), np.zeros((len(rows), psi.shape[1]))
            if not len(psi):
                continue
            psi = psi if mean is None else psi - mean
            first += (rows[:, part] * weight[part]) @ psi
            scaled = np.ascontiguousarray((psi * np.sqrt(weight[part])[:, None]).T)
            second += kernels.gram(scaled, kernel=kernels.Linear(), n_threads=threads)
            if tick is not None:
                tick.check_interrupt()
    mean = np.zeros(len(second)) if mean is None else mean
    squares = (weight * rows**2).sum(axis=1)
    if not np.isfinite(second).all():
        raise ValueError("squares of the features overflow float64: use smaller units")
    return _Moments(n, x.shape[1], flat, total, mean, second, average, first, squares, centred)


def _mapped(feature_map: Any, x: Any, threads: int) -> Iterable[tuple[slice, np.ndarray]]:
    """Features of the rows in float64, some rows at a time; once at least, so that their number is known."""
    width = x.shape[1] if feature_map is None else getattr(feature_map, "n_components", x.shape[1])
    step = max(64, min(8192, _BLOCK_NUMBERS // max(width, 1)))
    for start in range(0, max(x.shape[0], 1), step):
        part = slice(start, min(start + step, x.shape[0]))
        rows = x.take(np.arange(x.shape[0])[part]) if is_sparse(x) else x[part]
        yield part, features_of(feature_map, rows, threads)


def is_sparse(x: Any) -> bool:
    """Whether checked data are sparse."""
    return isinstance(x, check.Csr)


def features_of(feature_map: Any, x: Any, threads: int) -> np.ndarray:
    """Of checked data, in float64."""
    rows = x.toscipy() if is_sparse(x) else x
    if feature_map is None:
        return np.asarray(rows.toarray() if is_sparse(x) else rows, dtype=np.float64)
    told = {"n_threads": threads} if isinstance(feature_map, kernels.FeatureMap) else {}
    mapped = np.asarray(feature_map.transform(rows, **told), dtype=np.float64)
    if mapped.ndim != 2 or len(mapped) != x.shape[0]:
        raise ValueError(f"feature_map.transform gave shape {mapped.shape} for {x.shape[0]} rows")
    return mapped


def _solved(found: _Moments, lam: float, feature_map: Any, intercept: bool, tol: float, threads: int) -> FeatureRidge:
    s = lam * found.total
    lower = found.second.copy()
    diagonal = np.einsum("ii->i", lower)
    diagonal += s
    jitter = rounding(len(lower)) * max(float(np.trace(found.second)), np.finfo(np.float64).tiny)
    while factor(lower, threads) >= 0:  # moments are semi-definite but for rounding
        mirror_upper(lower)
        diagonal[...] = np.diagonal(found.second) + s + jitter
        jitter *= 10
    v, best = solve(lower, found.first.copy(), threads), None
    for done in range(ROUNDS + 1):
        with parallel.blas_threads(1):
            left = found.first - v @ found.second - s * v
        gap = float((left**2).sum()) / (lam * found.total**2)
        if best is not None and not gap < best[0]:
            break
        best = gap, v, left, done
        v = v + solve(lower, left.copy(), threads)
    gap, v, left, done = best
    primals = np.maximum((found.squares - (v * (found.first + left)).sum(axis=1)) / found.total, 0.0)
    gaps = (left**2).sum(axis=1) / (lam * found.total**2)
    apart = np.abs(left).max(axis=1, initial=0.0) / s
    small = apart <= ROUNDING * np.abs(v).max(axis=1, initial=0.0)
    converged = bool(((gaps <= tol * primals) | small).all())
    primal = float(primals.sum())
    certificate = Certificate(primal, primal - gap, gap, float(apart.max(initial=0.0)), done, converged)
    warn_unless_converged(certificate)
    constant = found.targets - (v * found.mean).sum(axis=1)
    return FeatureRidge(
        weights=v[0] if found.flat else np.ascontiguousarray(v.T),
        intercept=float(constant[0]) if found.flat else constant,
        lam=lam,
        feature_map=feature_map,
        n_features=found.n_features,
        n_rows=found.n_rows,
        total_weight=found.total,
        has_intercept=intercept,
        certificate=certificate,
    )


def mapped_values(fit: FeatureRidge, x: Any, threads: int, tick: Any) -> np.ndarray:
    """f at checked points."""
    if x.shape[1] != fit.n_features:
        raise ValueError(f"X has {x.shape[1]} columns but the fit was made for {fit.n_features}")
    out = np.empty((x.shape[0], *fit.weights.shape[1:]))
    with parallel.blas_threads(1):
        for part, psi in _mapped(fit.feature_map, x, threads):
            with np.errstate(over="ignore", invalid="ignore"):
                out[part] = psi @ fit.weights + fit.intercept
            if tick is not None:
                tick(part.stop, x.shape[0])
    return require_finite_values(out)
