"""Weights of graphs, checked, and their Laplacians.

    L = D - W,  D = diag(W 1)          fᵀLf = Σ over edges w_ij (f_i - f_j)², each edge once
    normalised: D^(-1/2) L D^(-1/2)    the same of f_i / √d_i

Both are symmetric and positive semi-definite. An edge from a point to itself is ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from kernelrules import check

__all__ = ["degrees", "laplacian", "laplacian_of", "only", "weights_of"]

_ASYMMETRY = 1e-6  # relative to the largest weight: what passes for rounding, as in kernels/values.py


def weights_of(W: Any) -> check.Csr:
    """W as sparse rows in float64: square, symmetric, not negative, without diagonal and without stored zeros."""
    given = check.matrix(W, "W", dtype=np.float64)
    if given.shape[0] != given.shape[1]:
        raise ValueError(f"W must be square, got shape {given.shape}")
    w = given if isinstance(given, check.Csr) else check.sparse_rows(given)
    rows = np.repeat(np.arange(len(w)), np.diff(w.indptr))
    bad = np.flatnonzero(w.data < 0)
    if len(bad):
        raise ValueError(f"W must not be negative, got {w.data[bad[0]]} at ({rows[bad[0]]}, {w.indices[bad[0]]})")
    idle = (w.data == 0) | (rows == w.indices)
    return _symmetric(only(w, ~idle) if idle.any() else w)


def only(w: check.Csr, wanted: np.ndarray) -> check.Csr:
    """Some of the entries."""
    kept = np.concatenate([[0], np.cumsum(wanted)])
    return check.Csr(w.data[wanted], w.indices[wanted], kept[w.indptr].astype(np.intp), w.n_features)


def _symmetric(w: check.Csr) -> check.Csr:
    """W itself where it is exactly symmetric, the mean of both halves where they differ by rounding."""
    turned = w.columns()
    if np.array_equal(w.indices, turned.indices) and np.array_equal(w.data, turned.data):
        return w
    here, there = w.toscipy(), turned.toscipy()
    difference = abs(here - there).tocoo()
    worst = int(difference.data.argmax())
    if difference.data[worst] > _ASYMMETRY * w.data.max():
        i, j = (int(c[worst]) for c in difference.coords)
        raise ValueError(
            f"W is not symmetric: W[{i}, {j}] and W[{j}, {i}] differ by {difference.data[worst]:.6g}; "
            "the larger of both is W.maximum(W.T)"
        )
    mean = ((here + there) / 2).tocsr()
    mean.sort_indices()
    return check.Csr(mean.data, mean.indices.astype(np.intc), mean.indptr.astype(np.intp), w.n_features)


def degrees(w: check.Csr) -> np.ndarray:
    """Sums of the rows."""
    with np.errstate(over="ignore"):
        sums = w.toscipy().sum(axis=1)
    if not np.isfinite(sums).all():
        raise ValueError(f"the weights of W in row {int(np.argmax(~np.isfinite(sums)))} sum to more than float64 holds")
    return sums


def laplacian(W: Any, normalised: bool = False) -> sparse.csr_array:
    """The Laplacian of a graph.

    Parameters
    ----------
    W : sparse matrix or array (m, m)
        Weights of the edges: symmetric, not negative. Its diagonal is ignored.
    normalised : bool
        Whether rows and columns are divided by the square roots of the degrees. Points without edges then have a row
        of zeros, like in the plain one.

    Returns
    -------
    csr_array (m, m)
        D - W, or I - D^(-1/2) W D^(-1/2).

    Examples
    --------
    >>> from kernelrules import graph
    >>> graph.laplacian([[0.0, 2.0], [2.0, 0.0]]).toarray()
    array([[ 2., -2.],
           [-2.,  2.]])
    >>> graph.laplacian([[0.0, 2.0], [2.0, 0.0]], normalised=True).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return laplacian_of(weights_of(W), check.flag(normalised, "normalised"))


def laplacian_of(w: check.Csr, normalised: bool) -> sparse.csr_array:
    """`laplacian` for checked weights."""
    degree, edges = degrees(w), w.toscipy()
    diagonal = degree
    if normalised:
        shrink = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
        edges = sparse.csr_array((edges.data * np.repeat(shrink, np.diff(w.indptr)), w.indices, w.indptr), edges.shape)
        edges.data *= shrink[w.indices]
        diagonal = (degree > 0).astype(np.float64)
    full = (sparse.diags_array(diagonal, format="csr") - edges).tocsr()
    full.sort_indices()
    return full
