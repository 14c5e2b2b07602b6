"""Kernel ridge by its definition: dense matrices, extended precision where it helps, a loop for everything.

minimise  (1/W) Σ w (f - y)² + λ‖f‖²      over f = Kα + b, or Ψv + b
"""

import numpy as np

from kernelrules import kernels

EXACT = np.longdouble


def solve(A, b):
    """A⁻¹b by Gaussian elimination with partial pivoting, in extended precision."""
    A, b = np.array(A, dtype=EXACT), np.array(b, dtype=EXACT)
    n = len(A)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, pivot]], b[[k, pivot]] = A[[pivot, k]], b[[pivot, k]]
        below = A[k + 1 :, k] / A[k, k]
        A[k + 1 :] -= below[:, None] * A[k]
        b[k + 1 :] -= below[:, None] * b[k]
    x = np.zeros_like(b)
    for k in range(n - 1, -1, -1):
        x[k] = (b[k] - A[k, k + 1 :] @ x[k + 1 :]) / A[k, k]
    return x


def coefficients(K, y, lam, weight=None, intercept=False):
    """α (n, t) and b (t,) from the bordered equations over the rows of positive weight."""
    n = len(y)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    y = np.asarray(y, dtype=EXACT).reshape(n, -1)
    kept = np.flatnonzero(weight)
    noise = EXACT(lam) * weight.astype(EXACT).sum() / weight[kept]
    A = np.asarray(K, dtype=EXACT)[np.ix_(kept, kept)] + np.diag(noise)
    right = y[kept]
    if intercept:
        ones = np.ones((len(kept), 1), dtype=EXACT)
        A = np.block([[A, ones], [ones.T, np.zeros((1, 1), dtype=EXACT)]])
        right = np.vstack([right, np.zeros((1, y.shape[1]), dtype=EXACT)])
    found = solve(A, right)
    alpha = np.zeros(y.shape, dtype=EXACT)
    alpha[kept] = found[: len(kept)]
    return alpha, found[len(kept)] if intercept else np.zeros(y.shape[1], dtype=EXACT)


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
    for i in np.flatnonzero(weight):
        others = weight.copy()
        others[i] = 0
        alpha, b = coefficients(K, y, lam * weight.sum() / others.sum(), others, intercept)
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
