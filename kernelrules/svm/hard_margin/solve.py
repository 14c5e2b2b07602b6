"""The hard margin: the nearest points of the two classes' convex hulls.

    minimise  ½ |Σ₊ a φ(x) - Σ₋ a φ(x)|²   over  a ≥ 0,  sum 1 in each class

is a dual problem of two groups on a bounded set (ν-SVC), so it has a solution for any data, separable or not. With δ
the distance found, w = (2/δ²)·(difference of the two points) is that of the hard margin. The dual of the hard margin
itself has no maximum if δ = 0.

Machines of the linear kernel are solved from the rows (separability.py, widest_margin.py), because products of rows
lose small columns next to large ones. Other kernels, and linear machines with both many rows and many columns, are
solved from kernel values. Without a margin, `NotSeparable` is raised, with weights for which the hulls meet within
rounding, or `Undecided`. Strictly positive definite kernels separate all distinct points, so for them only equal rows
are a proof. Polynomial kernels are decided by their monomials, which are rows like those of the linear kernel.

References
----------
- K. P. Bennett and E. J. Bredensteiner (2000). Duality and geometry in SVM classifiers. Proceedings of the 17th
  International Conference on Machine Learning, 57-64. The margin as the distance between convex hulls.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules import check, kernels, parallel, progress
from kernelrules.kernels.values import take
from kernelrules.results import Certificate
from kernelrules.svm import problems, strategy
from kernelrules.svm.certificate import Solution
from kernelrules.svm.hard_margin.double_double import error_bound, products
from kernelrules.svm.hard_margin.errors import NotSeparable, Undecided
from kernelrules.svm.hard_margin.inequality_qp import MAX_ITERATIONS
from kernelrules.svm.hard_margin.separability import ROUNDING, HullMeeting, ScaledRows
from kernelrules.svm.hard_margin.widest_margin import widest_margin
from kernelrules.svm.kernel_values import KernelValues
from kernelrules.svm.settings import Settings

__all__ = ["hard_margin"]

_KERNEL_RTOL = 2.0**-47  # rounding of a computed kernel value: 64 units in the last place
_MAX_ROUNDS = 40  # each with a tolerance ten times smaller, or with the last one
_MAX_WIDTH = 1024  # columns, or rows if there are more columns, up to which interior points are tried first
_ROW_COPIES = 10  # of the rows in float64 that interior points hold
_MAX_OPERATIONS = 5e10  # per iteration of interior points, of which there are 20 to 60: one to two seconds each
_STEPS_PER_OPERATION = 5e-6  # steps of SMO that are tried first: a fraction of the time of interior points
_MIN_STEPS = 20_000
_KERNEL_PROOF_REFINEMENTS = 3  # of the weights of a proof by kernel values
_MIN_KERNEL_PROOF_BYTES = 64 << 20  # allowed for the proof by kernel values, however small the cache is


def hard_margin(
    values: KernelValues, spans: list[tuple[int, int]], n_positive: int, settings: Settings
) -> dict[str, Any]:
    """Return coefficients, intercept, certificate and decision values, as the fields of `machines.Fitted`.

    `spans` are runs of points, positive ones first. Raises NotSeparable or Undecided.
    """
    points = np.concatenate([np.arange(first, last) for first, last in spans])
    signs = np.where(np.arange(len(points)) < n_positive, 1.0, -1.0)
    _refuse_equal_rows(values.x, points, n_positive)
    if not isinstance(values.kernel, kernels.Linear):
        return _from_kernel_values(values, spans, points, signs, settings)
    n_columns = len(np.unique(values.x.indices)) if isinstance(values.x, check.Csr) else values.x.shape[1]
    too_large = _too_large_for_rows(values, len(points), n_columns, settings)
    if too_large:
        return _from_kernel_values(values, spans, points, signs, settings, too_large)
    if min(n_columns, len(points)) > _MAX_WIDTH:  # SMO, if it succeeds, is faster
        steps = max(_MIN_STEPS, int(_STEPS_PER_OPERATION * _n_operations(len(points), n_columns)))
        steps = steps if settings.max_iter is None else min(steps, settings.max_iter)
        try:
            found = _from_kernel_values(values, spans, points, signs, replace(settings, max_iter=steps))
            if found["certificate"].converged:
                return found
        except Undecided:
            pass
    # Numbers that overflow are detected as not finite, and prove nothing. BLAS's sums depend on its threads.
    with np.errstate(all="ignore"), parallel.blas_threads(1):
        return _from_rows(values, points, signs, settings)


def _n_operations(n: int, n_columns: int) -> float:
    """Return the operations of one iteration of interior points."""
    return float(n) * n_columns * min(n, n_columns)


def _too_large_for_rows(values: KernelValues, n: int, n_columns: int, settings: Settings) -> str:
    """Return why a linear machine is not solved from its rows; an empty string if it is."""
    if settings.max_iter is not None and settings.max_iter < 2 * MAX_ITERATIONS:
        return f"; interior points need max_iter of {2 * MAX_ITERATIONS} or more"
    n_bytes = 8.0 * _ROW_COPIES * n * n_columns
    if n_bytes > values.budget:
        return f"; interior points on {n} rows of {n_columns} columns need cache_mb={math.ceil(n_bytes / 2**20)}"
    if _n_operations(n, n_columns) > _MAX_OPERATIONS:
        return f"; {n} rows of {n_columns} columns are too many for interior points"
    return ""


def _from_rows(values: KernelValues, points: np.ndarray, signs: np.ndarray, settings: Settings) -> dict[str, Any]:
    """Return the machine of the linear kernel, from the rows."""
    x, columns = take(values.x, points), None
    if isinstance(x, check.Csr):
        columns = np.unique(x.indices)
        x = check.Csr(x.data, np.searchsorted(columns, x.indices).astype(np.intc), x.indptr, len(columns))
    rows = ScaledRows(check.dense(x).astype(np.float64), signs, progress.uncounted_tick(settings.tick))
    found = rows.decide()
    if isinstance(found, HullMeeting):
        raise _no_margin(points, found, 0.0, "")
    machine = widest_margin(rows, found)
    if not (np.isfinite(machine.w).all() and 0 < machine.primal < 1e300):
        raise ValueError(
            "X has units in which the squared length of w overflows float64: scale X to numbers nearer to 1"
        )
    beta, weights = np.zeros(values.n), machine.w
    beta[points] = signs * machine.alpha
    if columns is not None:
        weights = np.zeros(values.x.shape[1])
        weights[columns] = machine.w
    gap, converged = machine.primal - machine.dual, machine.kkt <= settings.tol
    certificate = Certificate(machine.primal, machine.dual, gap, machine.kkt, machine.steps, converged)
    return {
        "beta": beta, "intercept": machine.intercept, "certificate": certificate, "decision": machine.decision,
        "weights": weights,
    }  # fmt: skip


def _no_margin(points: np.ndarray, meeting: HullMeeting, lower: float, how: str) -> NotSeparable | Undecided:
    """Return the exception for a machine without a margin."""
    sides = [np.flatnonzero(meeting.weights > 0), np.flatnonzero(meeting.weights < 0)]
    rows = tuple(points[side] for side in sides)
    weights = tuple(np.abs(meeting.weights[side]) for side in sides)
    if meeting.proved:
        message = (
            "no hyperplane separates the classes beyond rounding: points of their convex hulls, combined from "
            f"{len(rows[0])} and {len(rows[1])} rows, are {meeting.distance:.3g} apart, where rounding explains "
            f"{meeting.rounding:.3g}; use a finite C"
        )
        return NotSeparable(message, None, rows, weights, distance=meeting.distance, rounding=meeting.rounding)
    bounds = (
        f"the distance between the classes' convex hulls is at least {lower:.3g} and at most {meeting.distance:.3g}"
    )
    if lower > 0:
        reason = "so a margin exists, but kernel values in float64 have too few digits for it"
    else:
        reason = "and neither a margin nor a proof that there is none was found"
    message = f"undecided{how}: {bounds}, {reason}; use a finite C"
    return Undecided(message, None, rows, weights, lower=lower, upper=meeting.distance)


def _refuse_equal_rows(x: Any, points: np.ndarray, n_positive: int) -> None:
    """Raise NotSeparable if a row is in both classes: no kernel distinguishes it from itself."""
    rows = check.dense(take(x, points)) + 0.0 if not isinstance(x, check.Csr) else None
    if rows is None:
        keys = [_row_key(x, point) for point in points]
    else:
        keys = [row.tobytes() for row in np.ascontiguousarray(rows)]
    first = {key: place for place, key in enumerate(keys[:n_positive])}
    for place in range(n_positive, len(points)):
        if keys[place] in first:
            weights = np.zeros(len(points))
            weights[first[keys[place]]], weights[place] = 1.0, -1.0
            raise _no_margin(points, HullMeeting(weights, 0.0, 0.0, True), 0.0, "")


def _row_key(x: check.Csr, row: int) -> bytes:
    """Return the nonzero entries of a sparse row as bytes."""
    part = slice(x.indptr[row], x.indptr[row + 1])
    kept = x.data[part] != 0
    return x.indices[part][kept].tobytes() + b"|" + x.data[part][kept].tobytes()


def _from_kernel_values(
    values: KernelValues,
    spans: list[tuple[int, int]],
    points: np.ndarray,
    signs: np.ndarray,
    settings: Settings,
    why: str = "",
) -> dict[str, Any]:
    """Return the machine from kernel values: for any kernel, and for large linear machines.

    `why` is the reason that a linear machine is not solved from its rows.
    """
    n, n_positive = len(points), int((signs > 0).sum())
    problem = problems.nu_svc(spans, n_positive, np.full(n, 2.0), 1.0 / n)  # a sum of 1 leaves every a below its limit
    sizes = values.diagonal(np.float64)[points] if not values.given else np.diagonal(values.x)[points]
    sizes = np.sqrt(np.abs(sizes.astype(np.float64)))
    tol, steps = 1e-2 * float(np.square(sizes).max()), 0
    for _ in range(_MAX_ROUNDS):
        left = None if settings.max_iter is None else max(settings.max_iter - steps, 1)
        solution = strategy.solve(values, [problem], max(tol, 1e-300), left, settings.tick)[0]
        steps += solution.certificate.iterations
        squared = float((solution.a * solution.gradient).sum())  # not by BLAS, whose sums depend on its threads
        rounding = _KERNEL_RTOL * float((np.abs(solution.a) * sizes).sum()) ** 2  # |k(x, z)| ≤ √k(x, x) √k(z, z)
        if squared <= rounding:
            raise _hulls_meet(values, points, solution, squared, rounding, f" after {steps} iterations{why}")
        scale = 2.0 / squared
        if solution.certificate.kkt * scale <= settings.tol:
            break
        if not solution.certificate.converged and (settings.max_iter is None or steps >= settings.max_iter):
            break
        tol = min(tol / 10, 0.9 * settings.tol / scale)
        problem = replace(problem, start=solution.a)
    intercept = solution.intercept * scale
    decision = scale * solution.gradient + intercept
    nearest = float((signs * decision).min())
    if not nearest > 0:
        raise _hulls_meet(values, points, solution, squared, rounding, f" after {steps} iterations{why}")
    dual_value = scale  # Σα - ½‖w‖² = 2·scale - scale
    primal = dual_value / nearest**2
    kkt = solution.certificate.kkt * scale
    certificate = Certificate(primal, dual_value, primal - dual_value, kkt, steps, kkt <= settings.tol)
    scaled = scale / nearest  # scaled so that no point is inside the margin: the machine whose primal objective this is
    weights = None if solution.weights is None else solution.weights * scaled
    return {
        "beta": solution.beta * scaled, "intercept": intercept / nearest, "certificate": certificate,
        "decision": decision / nearest, "weights": weights,
    }  # fmt: skip


def _hulls_meet(
    values: KernelValues, points: np.ndarray, solution: Solution, squared: float, rounding: float, how: str
) -> NotSeparable | Undecided:
    """Return the exception for hulls that meet within the rounding of kernel values.

    That is a proof for kernels of which nothing but their values is known.
    """
    weights = solution.a
    if isinstance(values.kernel, kernels.Linear):  # the rows have more digits than their products
        used = np.flatnonzero(weights)
        part = check.dense(take(values.x, points[used])).astype(np.float64)
        with np.errstate(all="ignore"), parallel.blas_threads(1):
            rows = ScaledRows(part, np.sign(weights[used]))
            meeting = rows.evaluate(weights[used])
        return _no_margin(points, replace(meeting, weights=weights), 0.0, how)
    lower = 0.0
    if isinstance(values.kernel, kernels.Polynomial):  # as have its monomials
        positive = np.arange(len(points)) < np.count_nonzero(solution.problem.upper > 0)
        meeting, lower = _decide_by_monomials(values, points, positive)
        if meeting is not None and meeting.proved:
            return _no_margin(points, meeting, 0.0, how)
    if not isinstance(values.kernel, (kernels.RBF, kernels.Laplacian, kernels.Polynomial)):
        meeting = _meeting_by_values(values, points, weights)
        if meeting is not None and meeting.proved:
            return _no_margin(points, meeting, 0.0, how)
    upper = math.sqrt(max(squared, 0.0) + rounding)
    return _no_margin(points, HullMeeting(weights, upper, math.sqrt(rounding), False), min(lower, upper), how)


def _meeting_by_values(values: KernelValues, points: np.ndarray, weights: np.ndarray) -> HullMeeting | None:
    """Return how near the hulls come with weights near these, by kernel values alone; None if there are too many.

    The squared distance aᵀKa is summed in twice the precision of float64, so it is that of the given numbers. It is a
    proof if it is at most what rounding of each kernel value to the nearest float64 explains, ½ulp · |a|ᵀ|K||a|.
    """
    used = np.flatnonzero(weights)
    if 8.0 * _ROW_COPIES * len(used) ** 2 > max(values.budget, _MIN_KERNEL_PROOF_BYTES):
        return None
    matrix, a = values.matrix_between(points[used]), weights[used]
    with np.errstate(all="ignore"), parallel.blas_threads(1):
        best = _evaluate_by_values(matrix, a)
        for _ in range(_KERNEL_PROOF_REFINEMENTS):
            if best.proved:
                break
            a = _refined_by_values(matrix, a)
            if a is None:
                break
            found = _evaluate_by_values(matrix, a)
            best = found if found.proved or found.distance < best.distance else best
    all_weights = np.zeros(len(weights))
    all_weights[used] = best.weights
    return replace(best, weights=all_weights)


def _evaluate_by_values(matrix: np.ndarray, a: np.ndarray) -> HullMeeting:
    """Return the distance between the hulls' points that weights of all rows of a kernel matrix define."""
    high, low = products(matrix, a)
    sums = [part[0] for pair in (high, low) for part in products(pair[None, :], a)]
    squared = max(math.fsum(sums) + 2.0 * float(np.abs(a) @ error_bound(matrix, a)), 0.0)
    rounding = float(np.abs(a) @ np.abs(matrix) @ np.abs(a)) * ROUNDING / 2
    return HullMeeting(a, math.sqrt(squared), math.sqrt(rounding), squared <= rounding)


def _refined_by_values(matrix: np.ndarray, a: np.ndarray) -> np.ndarray | None:
    """Return weights after a step to the minimum of aᵀKa with sums 1 and -1, by residuals in twice the precision.

    Returns None if a weight would change its sign.
    """
    positive = a > 0
    groups = np.array([positive, ~positive], dtype=np.float64)
    size = np.sqrt(np.maximum(np.abs(np.diagonal(matrix)), np.finfo(float).tiny))
    system = np.zeros((len(a) + 2,) * 2)
    system[:-2, :-2] = matrix / size / size[:, None]
    system[-2:, :-2], system[:-2, -2:] = groups / size, (groups / size).T
    high, low = products(matrix, a)
    missing = np.array([1.0 - math.fsum(a[positive]), -1.0 - math.fsum(a[~positive])])
    try:
        step = np.linalg.lstsq(system, np.concatenate([-(high + low) / size, missing]), rcond=1e-14)[0]
    except np.linalg.LinAlgError:
        return None
    better = a + step[:-2] / size
    return better if np.isfinite(better).all() and ((better > 0) == positive).all() else None


def _decide_by_monomials(
    values: KernelValues, points: np.ndarray, positive: np.ndarray
) -> tuple[HullMeeting | None, float]:
    """Return where the hulls of a polynomial kernel's exact features meet, or a lower bound of their distance.

    Returns None and 0 if there are too many features.
    """
    kernel, x = values.kernel, values.x
    n_monomials = math.comb(x.shape[1] + kernel.degree, kernel.degree)
    if kernel.coef0 < 0 or n_monomials > _MAX_WIDTH or 8.0 * _ROW_COPIES * len(points) * n_monomials > values.budget:
        return None, 0.0
    rows = check.dense(take(x, points)).astype(np.float64)
    features = kernels.feature_map(kernel, x.shape[1]).transform(rows)
    with np.errstate(all="ignore"), parallel.blas_threads(1):
        rows = ScaledRows(features, np.where(positive, 1.0, -1.0))
        found = rows.decide()
        if isinstance(found, HullMeeting):
            return found, 0.0
        return None, rows.distance_along(found, (4 * kernel.degree + 8) * ROUNDING)
