"""Interior points: a dual problem solved as a whole, for problems on which SMO would take millions of steps.

With K = F Q⁻¹ Fᵀ, |a| = x limited by U, signs s, and V = s·F, the problem of problems.py is the quadratic program

    minimise  ½ yᵀQy + cᵀx   over  Qy = Vᵀx,  0 ≤ x ≤ U,  Eᵀx = the sums,        c = s·p + kink,

which low_rank_qp.py solves. F is X itself for the linear kernel with few columns, otherwise the eigenvectors of a small
K times the roots of its eigenvalues. Columns of X are centred and scaled to sizes near 1, so that their units cost no
digits. Which variables lie at their bounds is read from x and its multipliers; those are set to the bounds, and the
others are solved for again from Qy = Vᵀx.

The weights w of a linear machine are y in the units of X. If kernel values times coefficients have more digits than
float64, the sum over rows cannot give w, but y itself is still exact: certificate.py then certifies the pair (w, a).

Invariant: a machine is changed only if that lowers both its objective and its gap, and its bounds and sums are kept.

References
----------
- S. Fine and K. Scheinberg (2001). Efficient SVM training using low-rank kernel representations. Journal of Machine
  Learning Research 2, 243-264.
- A. J. Cox and N. J. Higham (1998). Stability of Householder QR factorization for weighted least squares problems.
  In Numerical Analysis 1997, Addison Wesley Longman. The order of rows and columns in `_span_factor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr

from kernelrules import check, parallel, progress
from kernelrules.core.svm import smo
from kernelrules.svm.certificate import duality_gap
from kernelrules.svm.column_scaling import column_exponents, scaled
from kernelrules.svm.low_rank_qp import LowRankQP, Optimum
from kernelrules.svm.problems import Problem

if TYPE_CHECKING:
    from kernelrules.svm.kernel_values import KernelValues

__all__ = ["InteriorPoints", "PrimalDualPair", "factor_width", "n_unknowns"]

_INDEFINITE_RTOL = 1e-9  # of the largest eigenvalue: a more negative one is not explained by rounding
_MAX_COLUMNS_PER_ROW = 2.0  # of X up to which F is X: its columns have more digits than coordinates in their span
_SPAN_COPIES = 4  # of X in float64 that coordinates in its span require
# How near to a bound, as a share of its limit, an x must be for its multiplier to move it there. If multipliers are
# nearly 0, as with repeated rows, moving all of them would be wrong: fewer are moved until Qy = Vᵀx holds.
_BOUND_SHARES = (1.0, 1e-3, 1e-6, 1e-9)
_PRECISION_SHARE = 1e-3  # of tol: the precision required of slopes
_MAX_POLISH_OPERATIONS = 1e9  # up to which free variables are solved for again
_FREE_POLISH_OPERATIONS = 1e6  # up to which they always are; beyond it
_POLISH_PRECISION_SHARE = 3e-3  # of the required precision is left as it is
_MAX_LEVELLED = 200  # free variables up to which their slopes are made equal
_SMALL_LEVELLED = 60  # free variables up to which the active-set method takes
_SMALL_LEVEL_STEPS = 60  # steps
_LEVEL_STEPS = 4  # steps with more free variables
_SLOPE_RTOL = 1e-15  # rounding of a slope, relative to the terms it is the sum of


@dataclass(frozen=True, eq=False)
class Factor:
    """F and Q with K = F Q⁻¹ Fᵀ, apart from `centre`, which was subtracted from the rows of F.

    `centre` is 0 if F has eigenvectors. `exponents` are those of the units of X's columns; None if F is not X.
    """

    F: np.ndarray
    Q: np.ndarray
    centre: np.ndarray
    exponents: np.ndarray | None = None

    def Qy(self, beta: np.ndarray) -> np.ndarray:
        """Return Qy = Fᵀβ for coefficients β of the points."""
        return (self.F * beta[:, None]).sum(axis=0) + self.centre * beta.sum()


@dataclass(frozen=True, eq=False)
class PrimalDualPair:
    """Variables a of a linear machine, and weights w that are more exact than the sum over rows, Σ βx.

    `quadratic` is βᵀKβ, `half_square_distance` is ½‖w - Σ βx‖².
    """

    a: np.ndarray
    weights: np.ndarray
    quadratic: float
    half_square_distance: float


class InteriorPoints:
    """The solution of one problem by interior points.

    Parameters
    ----------
    values : KernelValues
        With rows in float64.
    problem : Problem
        What to solve.
    tol : float
        Largest violation that the solution may have.

    Attributes
    ----------
    a : ndarray or None
        Variables of the solution, whether or not a machine received them; None before `improve`.
    pair : PrimalDualPair or None
        The same with weights, for linear machines whose F is X.
    """

    def __init__(self, values: KernelValues, problem: Problem, tol: float = 1e-3) -> None:
        self.values, self.problem, self.tol = values, problem, tol
        self.a: np.ndarray | None = None
        self.pair: PrimalDualPair | None = None

    def improve(self, machine: smo.Machine, tick: Any) -> bool:
        """Bring the machine to the solution; returns False, and changes nothing, if that is no improvement."""
        problem = self.problem
        # What overflows is found not to be finite, or no better. BLAS's sums depend on its threads.
        with np.errstate(all="ignore"), parallel.blas_threads(1):
            factor = factor_of(self.values)
            if factor is None:
                return False
            precision = _PRECISION_SHARE * self.tol
            a, y = _solve(factor, problem, precision, self.values.n_threads, progress.uncounted_tick(tick))
            if a is None:
                return False
            self.a = a
            beta = problem.beta(a, self.values.n)
            self._keep_pair(factor, beta, y)
            gradient = self.values.exact_product(beta[None, :])[0][problem.points()] + problem.linear
            # If kernel values times C have more digits than float64, the objective is noise, but the gap is not.
            before = machine.a, machine.gradient
            better = problem.objective(a, gradient) < problem.objective(*before)
            if not (better and duality_gap(problem, a, gradient) < duality_gap(problem, *before)):
                return False
        machine.a[...] = a
        machine.gradient[...] = gradient
        machine.reset_masks()
        return True

    def _keep_pair(self, factor: Factor, beta: np.ndarray, y: np.ndarray) -> None:
        """Keep the weights of the machine, if F has the columns of X."""
        if factor.exponents is None or self.values.x.shape[1] != len(y):
            return
        weights, Qy = np.ldexp(y, -factor.exponents), factor.Qy(beta)
        quadratic = float((np.square(Qy) / factor.Q).sum())
        half_square_distance = 0.5 * float((np.square(Qy - factor.Q * y) / factor.Q).sum())
        if np.isfinite(weights).all() and np.isfinite([quadratic, half_square_distance]).all():
            self.pair = PrimalDualPair(self.a, weights, quadratic, half_square_distance)


# ---- the factor of the kernel matrix ----------------------------------------------------------------------------


def factor_width(values: KernelValues) -> int:
    """Return the number of columns of F."""
    kind, data, _ = values.source
    n, p = data.shape
    return p if kind == "linear" and p <= _MAX_COLUMNS_PER_ROW * n else n


def factor_of(values: KernelValues) -> Factor | None:
    """Return F and Q; None if K is indefinite.

    They are kept with the kernel values, for other problems on them, such as those of another C.
    """
    if values.factor is None or values.factor[0] is not values.source:
        values.factor = values.source, _make_factor(values)
    return values.factor[1]


def _make_factor(values: KernelValues) -> Factor | None:
    kind, data, _ = values.source
    if kind == "linear":
        if factor_width(values) == data.shape[1]:
            return _column_factor(data)
        if 8.0 * _SPAN_COPIES * data.shape[0] * data.shape[1] <= values.budget:
            return _span_factor(data)
        data = data.toscipy() if isinstance(data, check.Csr) else data
        with parallel.blas_threads(1):
            data = data @ data.T
        data = data.toarray() if sparse.issparse(data) else data
    try:
        with parallel.blas_threads(1):
            eigenvalues, vectors = np.linalg.eigh(data)
    except np.linalg.LinAlgError:
        return None
    largest = eigenvalues[-1]
    if not largest > 0 or eigenvalues[0] < -_INDEFINITE_RTOL * largest:
        return None
    used = eigenvalues > largest * (len(data) * 1e-16)
    F = vectors[:, used] * np.sqrt(eigenvalues[used])
    return Factor(F, np.ones(F.shape[1]), np.zeros(F.shape[1]))


def _column_factor(x: Any) -> Factor:
    """Return the factor made of the columns of X, centred and scaled to sizes near 1."""
    exponents = column_exponents(x)
    F = scaled(x, -exponents)
    F = F.toscipy().toarray() if isinstance(F, check.Csr) else F
    centre = F.mean(axis=0)
    return Factor(F - centre, np.ldexp(np.ones(len(centre)), -2 * exponents), centre, exponents)


def _span_factor(x: Any) -> Factor:
    """Return the coordinates of the rows of X, which has more columns, in an orthonormal basis of their span.

    Products of rows would lose what is below the root of the rounding. Large columns come first, and large rows by
    pivoting, so that small columns keep their digits (Cox and Higham 1998).
    """
    x = x.toscipy().toarray() if isinstance(x, check.Csr) else x
    order = np.argsort(-np.abs(x).max(axis=0), kind="stable")
    with parallel.blas_threads(1):
        triangle, pivots = qr(x[:, order].T, mode="r", pivoting=True, check_finite=False)
    F = np.empty((len(x), len(x)))
    F[pivots] = triangle[: len(x)].T
    return Factor(F, np.ones(len(x)), np.zeros(len(x)))


# ---- the quadratic program and its solution ---------------------------------------------------------------------


def n_unknowns(problem: Problem) -> int:
    """Return the number of x of a problem."""
    return np.count_nonzero(problem.upper > 0) + np.count_nonzero(problem.lower < 0)


def _solve(
    factor: Factor, problem: Problem, precision: float, n_threads: int, check_interrupt: Callable[[], None] | None
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """Return variables a of a solution, which keep bounds and sums, and y; None if rounding leaves none."""
    points, groups = problem.points(), problem.groups()
    up, down = np.flatnonzero(problem.upper > 0), np.flatnonzero(problem.lower < 0)
    variable = np.concatenate([up, down])
    sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
    limit = np.concatenate([problem.upper[up], -problem.lower[down]])
    sums = np.array([problem.start[members].sum() for members in groups])
    in_group = np.zeros((len(points), len(groups)))
    for number, members in enumerate(groups):
        in_group[members, number] = 1.0
    program = LowRankQP(
        sign[:, None] * factor.F[points[variable]],
        sign[:, None] * in_group[variable],
        sums,
        sign * problem.linear[variable] + problem.kink,
        limit,
        factor.Q,
        factor.centre * sums.sum(),
    )
    optimum = program.solve(precision, n_threads, check_interrupt)
    if not optimum.is_finite:
        return None, None
    best, least = None, np.inf
    for share in _BOUND_SHARES if factor.exponents is not None else (1.0,):
        near = replace(
            optimum,
            at_zero=optimum.at_zero & (optimum.x <= share * limit),
            at_limit=optimum.at_limit & (limit - optimum.x <= share * limit),
        )
        x = np.where(near.at_zero, 0.0, np.where(near.at_limit, limit, optimum.x))
        _polish(program, near, x, precision)
        distance = 0.5 * float((np.square(program.V.T @ x + program.pull - program.Q * optimum.y) / program.Q).sum())
        if distance < least:
            best, least = (near, x), distance
        if distance <= precision / _PRECISION_SHARE * x.sum():  # a violation of at most tol
            break
    if best is None:
        return None, None
    near, x = best
    levelled = _level(program, np.flatnonzero(~near.at_zero & ~near.at_limit), x, factor.exponents is None)
    for each in (levelled, x):
        a = np.bincount(variable, weights=sign * each, minlength=len(points))
        if _balance(problem, a, sums):
            return a, optimum.y
    return None, None


def _polish(program: LowRankQP, optimum: Optimum, x: np.ndarray, precision: float) -> None:
    """Move the free x to where Qy = Vᵀx + pull and the sums hold, if bounds allow it.

    Nothing changes if the computation is expensive and slopes are already exact enough.
    """
    free = np.flatnonzero(~optimum.at_zero & ~optimum.at_limit)
    width = program.V.shape[1] + len(program.sums)
    n_operations = len(free) * float(width) * min(width, len(free))
    if not 0 < n_operations <= _MAX_POLISH_OPERATIONS:
        return
    columns = np.concatenate([program.V[free], program.E[free]], axis=1).T
    # With equal weights of all conditions first, which finds x; then with their weights in the objective, which
    # determines the last digits of x.
    root = 1.0 / np.sqrt(program.Q)
    square = float(np.square(program.V * root).sum(axis=1).max())
    for weight in (np.ones(width), np.concatenate([root, np.full(len(program.sums), root.max())])):
        missing = np.concatenate(
            [program.Q * optimum.y - program.pull - program.V.T @ x, program.sums - program.E.T @ x]
        )
        slopes = program.V @ (missing[: -len(program.sums)] / program.Q)
        sum_slopes = np.abs(missing[-len(program.sums) :]).max() * square  # at most, if any x corrects the sums
        exact = np.abs(slopes).max() + sum_slopes <= _POLISH_PRECISION_SHARE * precision
        if n_operations > _FREE_POLISH_OPERATIONS and exact:
            return
        try:
            step = np.linalg.lstsq(weight[:, None] * columns, weight * missing, rcond=1e-15)[0]
        except np.linalg.LinAlgError:
            return
        moved = x[free] + step
        if not np.all((moved >= 0) & (moved <= program.limit[free])):
            return
        x[free] = moved


def _level(program: LowRankQP, free: np.ndarray, x: np.ndarray, is_exact: bool) -> np.ndarray:
    """Return the x nearest to the optimality conditions among those that an active-set method visits from x.

    If F has nearly dependent columns, y does not determine x, and which x are at their bounds is uncertain. Each step
    makes the slopes of the free x equal in each group, as far as the bounds allow. An x that meets a bound stays there;
    after a full step the x at a bound with the most wrong slope is freed. Not `is_exact`: y has more digits than x
    gives it, so one full step is taken, and slopes at bounds are not used.
    """
    if not 0 < len(free) <= _MAX_LEVELLED or not program.E[free].any(axis=0).all():
        return x
    V, E, Q, limit = program.V, program.E, program.Q, program.limit
    is_free = np.zeros(len(x), dtype=bool)
    is_free[free] = True
    best, least = x, np.inf
    curvature = float((np.square(V[free]) / Q).sum(axis=1).max())
    for _ in range(2 if not is_exact else _SMALL_LEVEL_STEPS if len(free) <= _SMALL_LEVELLED else _LEVEL_STEPS):
        gradient = (V.T @ x + program.pull) / Q
        slopes = program.cost + V @ gradient
        here = np.flatnonzero(is_free)
        slopes -= E @ np.linalg.lstsq(E[here], slopes[here], rcond=None)[0]
        # An x at a bound whose slope points outwards is optimal.
        wrong = np.where(is_free, np.abs(slopes), np.where(x > 0, slopes, -slopes) if is_exact else 0.0)
        sum_error = curvature * float(np.abs(program.sums - E.T @ x).max()) if is_exact else 0.0
        if wrong.max() + sum_error < least:
            best, least = x, float(wrong.max()) + sum_error
        rounding = _SLOPE_RTOL * float(np.abs(program.cost).max() + (np.abs(V) @ np.abs(gradient)).max())
        if least <= rounding:
            break
        step = _equal_slopes(program, here, slopes[here], x)
        if step is None:
            break
        room = np.where(step > 0, limit[here] - x[here], x[here])
        lengths = np.divide(room, np.abs(step), out=np.full(len(here), np.inf), where=step != 0)
        t = min(1.0, float(lengths.min()))
        if t < 1 and not is_exact:
            break
        x = x.copy()
        x[here] = np.clip(x[here] + t * step, 0.0, limit[here])
        if t < 1:
            met = lengths <= t
            x[here[met]] = np.where(step[met] > 0, limit[here[met]], 0.0)
            is_free[here[met]] = False
            wrong[here[met]] = 0.0
        if t == 1 or not E[is_free].any(axis=0).all():
            outside = np.where(is_free, 0.0, wrong)
            if outside.max() > rounding:
                is_free[int(outside.argmax())] = True
        if not E[is_free].any(axis=0).all():  # a group without free x: its slopes and sum cannot be corrected
            break
    return best


def _equal_slopes(program: LowRankQP, here: np.ndarray, slopes: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    """Return the step of the free x to equal slopes and correct sums."""
    V, E = program.V[here], program.E[here]
    n_groups = E.shape[1]
    system = np.block([[(V / program.Q) @ V.T, E], [E.T, np.zeros((n_groups, n_groups))]])
    root = np.sqrt(np.maximum(np.diagonal(system), np.finfo(float).tiny))
    root[-n_groups:] = 1.0 / np.median(root[: len(here)])
    right = np.concatenate([-slopes, program.sums - program.E.T @ x])
    try:
        step = np.linalg.lstsq(system / root / root[:, None], right / root, rcond=1e-15)[0] / root
    except np.linalg.LinAlgError:
        return None
    return step[: len(here)] if np.isfinite(step).all() else None


def _balance(problem: Problem, a: np.ndarray, sums: np.ndarray) -> bool:
    """Correct the sums of a by variables between their bounds; returns whether that succeeds."""
    for members, total in zip(problem.groups(), sums, strict=True):
        low, high = problem.lower[members], problem.upper[members]
        if problem.kink > 0:  # a variable at the kink stays there
            low, high = np.where(a[members] >= 0, 0.0, low), np.where(a[members] <= 0, 0.0, high)
        for _ in range(20):
            missing = total - a[members].sum()
            room = (high - a[members] if missing > 0 else a[members] - low) * ((a[members] > low) & (a[members] < high))
            if missing == 0 or not room.sum() > 0:
                break
            a[members] = np.clip(
                a[members] + missing * min(1.0, room.sum() / abs(missing)) * room / room.sum(), low, high
            )
        scale = max(np.abs(a[members]).sum(), np.finfo(float).tiny)
        if abs(total - a[members].sum()) > 1e-12 * scale:
            return False
    return True
