"""Fits on graphs: values of all points from the labels of some.

    min over f  (1/n) Σ_labelled (f_i - y_i)² + λ fᵀLf,     (J + λnL) f̂ = [y; 0]

This is ridge regression in its fourth form, with the Laplacian in place of the inverse kernel matrix. For
classification every class has a column of targets, 1 for its own points and 0 for others; all are solved together.

The system has one solution exactly if every connected component holds a labelled point. Points of other
components get no value. Edges whose weights vanish in float64 beside the degrees of both ends do not connect.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csgraph

from kernelrules import check, parallel
from kernelrules.core.linalg import multigrid as core
from kernelrules.graph.laplacians import degrees, laplacian_of, only, weights_of
from kernelrules.graph.solving import Problem, solve
from kernelrules.results import ConvergenceWarning, GraphFit

__all__ = ["Unreached", "fit"]

NOT_REACHED = -2  # in the forest of core.linalg.multigrid.spread
_NAMED = 5  # points that an error names
_MAX_ITER = 1000
_LEAST = 1e-100  # of λ and of weights beside the largest: products of three still are numbers
_LOST = 1e-14  # of a degree: an edge that weighs less does not change it


class Unreached(ValueError):
    """Points are in components of the graph that hold no label, so nothing is known of them.

    Attributes
    ----------
    points : ndarray
        All of them, ascending.
    """

    def __init__(self, points: np.ndarray, n_components: int):
        self.points = points
        named = ", ".join(str(i) for i in points[:_NAMED]) + (", …" if len(points) > _NAMED else "")
        super().__init__(
            f"{len(points)} point(s) in {n_components} component(s) of the graph are connected to no labelled point: "
            f'{named}. Label one of each component, add neighbours, or request NaN with unreached="nan"'
        )


@parallel.reports("graph")
def fit(
    W: Any,
    y: Any,
    lam: float,
    labelled: Any,
    *,
    normalised: bool = False,
    classify: bool | None = None,
    decide: str = "largest",
    sample_weight: Any = None,
    unreached: str = "error",
    solver: str = "auto",
    tol: float = 1e-10,
    max_iter: int | None = None,
    n_threads: int | None = None,
    callback: Callable[[parallel.Progress], Any] | None = None,
    progress: bool = False,
) -> GraphFit:
    """Values of all points of a graph from labels of some of them.

    Minimises (1/n) Σ (f_i - y_i)² + lam fᵀLf, the sum over the n labelled points, L the graph's Laplacian.

    Parameters
    ----------
    W : sparse matrix or array (m, m)
        Weights of the edges: symmetric, not negative. `knn_graph` makes one from points.
    y : array (n,), or (n, K) for several targets
        Of the labelled points only, in the order of `labelled`: classes or numbers.
    lam : float
        λ, greater than 0: how much a difference between neighbours costs.
    labelled : array of int (n,) or of bool (m,)
        Which points are labelled: their indices, each once, or a mask.
    normalised : bool
        Whether L is the normalised Laplacian. It lets points of high degree differ more from their neighbours.
    classify : bool or None
        Whether y holds classes. None: floats are numbers to regress on, anything else is classes.
    decide : "largest" or "excess"
        Which class a point gets: that of its largest value, or of the largest value above what the class's share of
        the labels alone would give. The values are drawn towards those shares, the more the larger `lam`: "excess" is
        for classes that are well apart and labels whose numbers are an accident.
    sample_weight : array (n,), optional
        Weights of the labelled points; n is then their sum. A point of weight 0 counts as unlabelled.
    unreached : "error" or "nan"
        Points in components without a label: an error that names them, or NaN.
    solver : "auto", "direct" or "cg"
        A sparse factorisation, whose time and memory explode on large graphs of points in more than two dimensions; or
        conjugate gradients, preconditioned by multigrid. "auto" factorises up to 1500 points.
    tol : float
        Limit for `|D⁻¹(b - A f)| / |D⁻¹b|` of the system A f = b that is solved, D the diagonal of A, for every column;
        and for the gap relative to the objective at f = 0.
    max_iter : int or None
        Most steps of conjugate gradients; None: 1000.
    {n_threads, callback}
        Progress is counted in steps of conjugate gradients.
    {progress}

    Returns
    -------
    GraphFit
        Values of all points, their classes, and a certificate.

    Raises
    ------
    Unreached
        Where points are connected to no labelled one.

    Warns
    -----
    ConvergenceWarning
        Where the tolerance is not reached.

    References
    ----------
    Zhu, X., Ghahramani, Z. and Lafferty, J. (2003). "Semi-supervised learning using Gaussian fields and harmonic
    functions". Proceedings of the 20th International Conference on Machine Learning.

    Zhou, D., Bousquet, O., Lal, T. N., Weston, J. and Schölkopf, B. (2004). "Learning with local and global
    consistency". Advances in Neural Information Processing Systems 16. The normalised Laplacian.

    Examples
    --------
    A chain of four points with a class at each end:

    >>> import numpy as np
    >>> from kernelrules import graph
    >>> chain = np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1)
    >>> result = graph.fit(chain, ["left", "right"], 0.1, [0, 3])
    >>> result.labels
    array(['left', 'left', 'right', 'right'], dtype='<U5')
    >>> graph.fit(chain, [0.0, 3.0], 1e-9, [0, 3]).values.round(6)
    array([0., 1., 2., 3.])
    """
    w = weights_of(W)
    m = len(w)
    strength, normalised = check.positive(lam, "lam"), check.flag(normalised, "normalised")
    check.one_of(unreached, "unreached", "error", "nan")
    check.one_of(decide, "decide", "largest", "excess")
    check.one_of(solver, "solver", "auto", "direct", "cg")
    limit = check.positive(tol, "tol")
    most = _MAX_ITER if max_iter is None else check.whole(max_iter, "max_iter", 1)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "graph")
    points = _points(labelled, m)
    classes, targets = _targets(y, len(points), m, classify)
    weight = check.weights(sample_weight, len(points))
    weight = weight / _power_of_two(weight.max())  # only their ratios matter
    w, strength = _in_units(_without_negligible_edges(w), strength, normalised)
    order, before, edge = core.spread(w.indptr, w.indices, w.data, points[weight > 0])
    lost = np.flatnonzero(before == NOT_REACHED)
    if len(lost) and unreached == "error":
        raise Unreached(lost, _n_components(w, lost))
    # Solved in the order of the walk: neighbours are then near each other in memory, and what is lost is left out.
    rank = np.full(m, -1)
    rank[order] = np.arange(len(order))
    forest = (np.arange(len(order)), np.where(before[order] < 0, -1, rank[before[order]]), edge[order])
    kept = rank[points] >= 0
    unit = _unit(targets)
    problem = _problem(
        _part(w, order), rank[points[kept]], targets[kept] / unit, weight[kept], strength, normalised, forest
    )
    solution = solve(problem, solver, limit, most, threads, tick).scaled(unit)
    if not solution.certificate.converged:
        _warn(solution.certificate, limit)
    values = np.full((m, targets.shape[1]), np.nan)
    values[order] = solution.values
    return GraphFit(
        values=values[:, 0] if classes is None and np.ndim(y) == 1 else values,
        classes=classes,
        labels=None if classes is None else _labels(classes, values, targets, weight, decide),
        labelled=points,
        unreached=lost,
        residual=solution.residual,
        certificate=solution.certificate,
        lam=check.positive(lam, "lam"),
        normalised=normalised,
    )


# ---- arguments --------------------------------------------------------------------------------------------------


def _points(labelled: Any, m: int) -> np.ndarray:
    """The labelled points' indices."""
    if isinstance(labelled, np.ma.MaskedArray) and np.ma.is_masked(labelled):
        raise ValueError("labelled has masked entries")
    array = np.asarray(labelled)
    if array.ndim != 1:
        raise ValueError(f"labelled must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind == "b":
        if len(array) != m:
            raise ValueError(f"labelled is a mask of {len(array)} points but W has {m}")
        array = np.flatnonzero(array)
    elif len(array) and array.dtype.kind not in "iu":
        raise check.DtypeError(f"labelled must hold indices or be a mask, got dtype {array.dtype}")
    if len(array) == 0:
        raise ValueError("labelled is empty: at least one point must have a label")
    outside = np.flatnonzero((array < 0) | (array >= m))
    if len(outside):
        raise ValueError(f"labelled holds {array[outside[0]]} at position {outside[0]}, but W has {m} points")
    points = array.astype(np.intp)
    values, first = np.unique(points, return_index=True)
    if len(values) < len(points):
        again = int(np.setdiff1d(np.arange(len(points)), first)[0])
        raise ValueError(f"labelled holds {points[again]} more than once, again at position {again}")
    return points


def _targets(y: Any, n: int, m: int, classify: bool | None) -> tuple[np.ndarray | None, np.ndarray]:
    """Classes, None for regression, and the targets (n, K)."""
    if classify is not None and not isinstance(classify, (bool, np.bool_)):
        raise TypeError(f"classify must be True, False or None, got {classify!r}")
    array = y if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    if array.ndim >= 1 and len(array) != n:
        hint = "; y holds labelled points only: y[labelled]" if len(array) == m else ""
        raise ValueError(f"y has {len(array)} entries but {n} points are labelled{hint}")
    if array.dtype.kind != "f" if classify is None else classify:
        classes, codes = check.labels(y, n)
        return classes, (codes[:, None] == np.arange(len(classes))).astype(np.float64)
    if array.ndim == 2:
        return None, np.asarray(check.matrix(y, "y", dtype=np.float64))
    return None, check.targets(y, n)[:, None]


def _unit(targets: np.ndarray) -> float:
    """A power of two of the size of the targets: in its units sums of squares neither overflow nor vanish."""
    largest = float(np.abs(targets).max(initial=0.0))
    if largest > 1e150:
        raise ValueError(f"y holds numbers as large as {largest:.3g}, whose squares overflow: use smaller units")
    return _power_of_two(largest)


def _labels(
    classes: np.ndarray, values: np.ndarray, targets: np.ndarray, weight: np.ndarray, decide: str
) -> np.ndarray:
    """The class of every point.

    A fit to the shares of the classes at every label would be Σ_k f_k times the shares, by linearity."""
    lost = np.isnan(values[:, 0])
    score = np.where(lost[:, None], 0.0, values)
    if decide == "excess":
        score = score - score.sum(axis=1, keepdims=True) * ((weight @ targets) / weight.sum())
    labels = classes[score.argmax(axis=1)]
    return np.ma.array(labels, mask=lost) if lost.any() else labels


# ---- components -------------------------------------------------------------------------------------------------


def _without_negligible_edges(w: check.Csr) -> check.Csr:
    """Return W without edges below the rounding error of the degrees of both their ends, which carry no information."""
    degree = degrees(w)
    kept = w.data > _LOST * np.minimum(np.repeat(degree, np.diff(w.indptr)), degree[w.indices])
    return w if kept.all() else only(w, kept)


def _power_of_two(number: float) -> float:
    """The one just above, or 1 for 0; dividing by it is exact."""
    return math.ldexp(1.0, max(math.frexp(number)[1], -1000)) if number > 0 else 1.0


def _in_units(w: check.Csr, lam: float, normalised: bool) -> tuple[check.Csr, float]:
    """The same problem with weights of edges up to 1: λ is what they are multiplied by."""
    largest = float(w.data.max(initial=0.0))
    unit = _power_of_two(largest)
    strength = lam if normalised or largest == 0 else lam * unit
    if not _LEAST <= strength <= 1 / _LEAST:
        raise ValueError(
            f"lam ({lam:g}) times the largest weight of W ({largest:.3g}) overflows or vanishes: use other units"
        )
    lightest = float(w.data.min(initial=largest))
    if lightest < _LEAST * largest:
        raise ValueError(f"W holds weights of {lightest:.3g} and {largest:.3g}, further apart than {1 / _LEAST:g}")
    return check.Csr(w.data / unit, w.indices, w.indptr, w.n_features), strength


def _part(w: check.Csr, rows: np.ndarray) -> check.Csr:
    """The graph of some points, in this order; no edges lead to others."""
    part = w.toscipy()[rows][:, rows].tocsr()
    part.sort_indices()
    return check.Csr(part.data, part.indices.astype(np.intc), part.indptr.astype(np.intp), len(rows))


def _n_components(w: check.Csr, points: np.ndarray) -> int:
    return int(csgraph.connected_components(_part(w, points).toscipy(), directed=False)[0])


def _problem(
    w: check.Csr, points: np.ndarray, targets: np.ndarray, weight: np.ndarray, lam: float, normalised: bool, forest: Any
) -> Problem:
    m, degree = len(w), degrees(w)
    full_weight, full_targets = np.zeros(m), np.zeros((m, targets.shape[1]))
    full_weight[points], full_targets[points] = weight, targets
    most = lam * float(weight.sum()) * float(degree.max(initial=0.0))
    if not math.isfinite(most) or not np.isfinite(full_targets * full_weight[:, None]).all():
        raise ValueError(f"lam ({lam:g}) times the weights overflows float64: use smaller units")
    own = np.where(degree > 0, degree, 1.0) if normalised else np.ones(m)
    return Problem(laplacian_of(w, normalised), own, full_weight, full_targets, lam, w, forest)


def _warn(certificate: Any, tol: float) -> None:
    warnings.warn(
        f"the tolerance {tol:g} was not reached: the residual is {certificate.kkt:.3g} of the right-hand side after "
        f"{certificate.iterations} steps, the gap {certificate.gap:.3g}. Allow more with max_iter; weights of very "
        "different sizes are another cause",
        ConvergenceWarning,
        stacklevel=check.level_of_caller(),
    )
