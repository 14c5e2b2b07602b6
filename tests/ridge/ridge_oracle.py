"""Kernel ridge by its definition: dense matrices, extended precision where it helps, a loop for everything.

minimise  (1/W) Σ w (f - y)² + λ‖f‖²      over f = Kα + b, or Ψv + b
"""

import numpy as np

from kernelrules import kernels

EXACT = np.longdouble


def solve(A, b):
    """A⁻¹b by Gaussian elimination with partial pivoting, in extended precision; of one system or of many at once."""
    A, b = np.asarray(A, dtype=EXACT), np.asarray(b, dtype=EXACT)
    n = A.shape[-1]
    left = np.concatenate([A, b], axis=-1).reshape(-1, n, n + b.shape[-1])  # a copy
    each = np.arange(len(left))
    for k in range(n):
        pivot = k + np.abs(left[:, k:, k]).argmax(axis=1)
        left[each, k], left[each, pivot] = left[each, pivot], left[each, k]
        below = left[:, k + 1 :, k] / left[:, k, None, k]
        left[:, k + 1 :, k:] -= below[:, :, None] * left[:, k, None, k:]
    x = left[:, :, n:]
    for k in range(n - 1, -1, -1):
        x[:, k] -= (left[:, k, k + 1 : n, None] * x[:, k + 1 :]).sum(axis=1)
        x[:, k] /= left[:, k, None, k]
    return x.reshape(b.shape)


def equations(K, y, lam, weight, intercept):
    """The bordered equations over the rows of positive weight, which come third."""
    n = len(y)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    kept = np.flatnonzero(weight)
    noise = EXACT(lam) * weight.astype(EXACT).sum() / weight[kept]
    A = np.asarray(K, dtype=EXACT)[np.ix_(kept, kept)] + np.diag(noise)
    right = np.asarray(y, dtype=EXACT).reshape(n, -1)[kept]
    if intercept:
        ones = np.ones((len(kept), 1), dtype=EXACT)
        A = np.block([[A, ones], [ones.T, np.zeros((1, 1), dtype=EXACT)]])
        right = np.vstack([right, np.zeros((1, right.shape[1]), dtype=EXACT)])
    return A, right, kept


def coefficients(K, y, lam, weight=None, intercept=False):
    """α (n, t) and b (t,)."""
    A, right, kept = equations(K, y, lam, weight, intercept)
    return _spread(solve(A, right), kept, len(y))


def _spread(found, kept, n):
    """α and b from a solution; no b was asked for where there is a row of it for each that was kept."""
    alpha = np.zeros((n, found.shape[1]), dtype=EXACT)
    alpha[kept] = found[: len(kept)]
    return alpha, found[len(kept)] if len(found) > len(kept) else np.zeros(found.shape[1], dtype=EXACT)


def objectives(K, y, lam, alpha, weight=None, intercept=False):
    """P at the best b, and D, of α (n, t), in extended precision."""
    n = len(y)
    w = (np.ones(n) if weight is None else np.asarray(weight)).astype(EXACT)
    y, alpha, K = np.asarray(y, dtype=EXACT).reshape(n, -1), np.asarray(alpha, dtype=EXACT).reshape(n, -1), EXACT(K)
    W = w.sum()
    f = K @ alpha
    b = (w[:, None] * (y - f)).sum(axis=0) / W if intercept else 0
    primal = (w[:, None] * (y - f - b) ** 2).sum() / W + EXACT(lam) * (alpha * f).sum()
    kept = w > 0
    penalty = (alpha[kept] ** 2 / w[kept][:, None]).sum()
    dual = EXACT(lam) * (2 * (alpha * y).sum() - (alpha * f).sum()) - EXACT(lam) ** 2 * W * penalty
    return primal, dual


def leave_one_out(K, y, lam, weight=None, intercept=False):
    """yᵢ - f₋ᵢ(xᵢ) by n refits, each at the λW of all points."""
    n = len(y)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    left = np.full(np.reshape(y, (n, -1)).shape, np.nan)
    systems = []
    for i in np.flatnonzero(weight):
        others = weight.copy()
        others[i] = 0
        systems.append(equations(K, y, lam * weight.sum() / others.sum(), others, intercept))
    all_found = solve(*(np.stack([system[part] for system in systems]) for part in (0, 1)))
    for i, (_, _, others), found in zip(np.flatnonzero(weight), systems, all_found, strict=True):
        alpha, b = _spread(found, others, n)
        left[i] = np.reshape(y, (n, -1))[i] - (K[i] @ alpha + b)
    return left


def posterior_variance(K, cross, own, lam, weight=None, intercept=False):
    """k(x,x) - k_xᵀA⁻¹k_x, and what an unknown constant adds; `cross` is k(x, X)."""
    n = len(K)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    kept = np.flatnonzero(weight)
    A = EXACT(K)[np.ix_(kept, kept)] + np.diag(EXACT(lam) * weight.sum() / weight[kept])
    k = EXACT(cross)[:, kept]
    ones = np.ones((len(kept), 1), dtype=EXACT)
    both = solve(A, np.hstack([k.T, ones]))
    variance = own - np.einsum("ij,ji->i", k, both[:, :-1])
    if intercept:
        variance += (1 - k @ both[:, -1]) ** 2 / both[:, -1].sum()
    return variance


def log_likelihood(K, y, lam):
    """log p(y) of a Gaussian process with noise λn, by eigenvalues."""
    n = len(y)
    values, vectors = np.linalg.eigh(K + lam * n * np.eye(n))
    rotated = vectors.T @ y
    return -0.5 * ((rotated**2 / values).sum() + np.log(values).sum() + n * np.log(2 * np.pi))


def condition(K, lam, weight=None):
    """‖K‖/min(s): by what rounding errors grow in a solution."""
    weight = np.ones(len(K)) if weight is None else np.asarray(weight, dtype=float)
    noise = lam * weight.sum() / weight.max()
    return 1 + np.linalg.norm(K, 2) / noise


def exact_map(kernel):
    return isinstance(kernel, (kernels.Linear, kernels.Polynomial))


def forward_lengths(lower, right):
    """Squared lengths of the columns of L⁻¹R, row after row."""
    lower, z = np.asarray(lower, dtype=EXACT), np.array(right, dtype=EXACT)
    for i in range(len(z)):
        z[i] = (z[i] - lower[i, :i] @ z[:i]) / lower[i, i]
    return (z * z).sum(axis=0)
