"""Newton steps of the dual on its free variables, between steps of SMO.

Once it is settled which variables lie between their bounds, SMO descends a quadratic two coordinates at a time, which
takes many steps if the kernel matrix is ill-conditioned. With F the free variables and s their slopes, a Newton step is

    minimise  ½ dᵀK_FF d + sᵀd   over  d,  Σd = 0 in each group,  d_B given,

where B are the variables that would leave their bounds: they go to the bound, and the others are solved for again until
all stay within. K_FF = LLᵀ is factored once. Constraints, and variables that have become free since, are columns U
beside it: with W = L⁻¹U a system of their number is left (Schur complement). The step ends at the minimum of the
objective on the segment from a to a + d.

strategy.py decides when a step is due. The scheme is that of an active-set method (Scheinberg 2006); the reuse of one
factor by bordering, and the alternation with SMO, are our own.

Invariant: bounds and sums are kept, and no step raises the objective. The gradient changes by K·d from the solver's own
rows, so the certificate means the same as without these steps.

References
----------
- K. Scheinberg (2006). An efficient implementation of an active set method for SVMs. Journal of Machine Learning
  Research 7, 2237-2257.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernelrules import parallel
from kernelrules.core.base import memory
from kernelrules.core.linalg import cholesky
from kernelrules.core.svm import gradient, rows, smo

if TYPE_CHECKING:
    from kernelrules.svm.kernel_values import KernelValues
    from kernelrules.svm.problems import Problem

__all__ = ["NewtonSteps"]

_RIDGE = {4: 1e-4, 8: 1e-6}  # by bytes of a kernel value: added to K_FF, relative to its diagonal, against rounding
_MAX_FACTORS = 3  # per step: each after the first with a larger ridge, because the step went too far
_RIDGE_GROWTH = 100.0
_MAX_BOUND_ROUNDS = 12  # of moving variables to their bounds
_MEMBERS_PER_COLUMN = 3  # with fewer members of the factor per column beside it, a new factor is cheaper
_LATE_SHARE = 0.6  # of the members: columns of later members are solved apart, without the earlier part of L
_MAX_REPEATS = 6  # further steps at once, which remove what the ridge leaves,
_MIN_REPEAT_GAIN = 0.03  # while each gains this share of the total


class NewtonSteps:
    """Newton steps of one machine, whose factor is kept from one step to the next.

    Parameters
    ----------
    values : KernelValues
        With the whole matrix.
    problem : Problem
        What the machine solves.
    machine : smo.Machine
        Its state, which `take` changes.

    Attributes
    ----------
    members : ndarray of int
        The variables of the factor; empty if there is none.
    points : ndarray of int
        The point of every variable.
    dtype : dtype
        The type of kernel values.
    """

    def __init__(self, values: KernelValues, problem: Problem, machine: smo.Machine) -> None:
        self.values, self.problem, self.machine = values, problem, machine
        self.dtype = np.dtype(np.float32 if values.rows.single else np.float64)
        self.points = problem.points().astype(np.intp)
        self.group = np.zeros(len(self.points), dtype=np.intp)
        for number, members in enumerate(problem.groups()):
            self.group[members] = number
        self.n_groups = int(self.group.max()) + 1
        self.members = np.zeros(0, dtype=np.intp)
        self.ridge_factor = 1.0

    def take(self, aim: float) -> float:
        """Move the machine towards a violation of at most `aim`.

        Returns by how much that lowers the objective; 0 if no step was possible.
        """
        free = self.free()
        if len(free) <= self.n_groups or not self._fits_memory(len(free)):
            return 0.0
        total = self._step(free) if len(self.members) else None
        for _ in range(_MAX_FACTORS):
            if total is not None:
                break
            total = self._step(free) if self._factor(free) else None
            if total is None:
                self.ridge_factor *= _RIDGE_GROWTH
        for _ in range(_MAX_REPEATS):
            if not total or self.machine.current_violation() <= aim:
                break
            gain = self._step(self.free()) or 0.0
            total += gain
            if gain < _MIN_REPEAT_GAIN * total:
                break
        return total or 0.0

    # ---- variables ----

    def free(self) -> np.ndarray:
        """Return the variables between their bounds, and off the kink."""
        a, problem = self.machine.a, self.problem
        return np.flatnonzero((problem.lower < a) & (a < problem.upper) & ((a != 0) | (problem.kink == 0)))

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how low and how high each variable can go: to its bounds, or to the kink."""
        a, bottom, top = self.machine.a, self.problem.lower, self.problem.upper
        if self.problem.kink > 0:
            bottom, top = np.where(a > 0, np.maximum(bottom, 0.0), bottom), np.where(a < 0, np.minimum(top, 0.0), top)
        return bottom, top

    def _fits_memory(self, m: int) -> bool:
        """Return whether the budget allows a factor of m variables and half as many columns, besides the matrix and
        what the solver gathers from it."""
        return (1.6 * self.values.n**2 + 1.5 * m**2) * self.dtype.itemsize <= self.values.budget

    # ---- the factor and the columns beside it ----

    def _factor(self, free: np.ndarray) -> bool:
        """Factor K of the free variables; returns False if it is not positive definite."""
        a, (bottom, top) = self.machine.a, self.limits()
        nearest = np.minimum(a - bottom, top - a)[free]
        self.members = free[np.argsort(-nearest, kind="stable")]  # those near a bound, which may leave, come last
        self.place = np.full(len(self.points), -1, dtype=np.intp)
        self.place[self.members] = np.arange(len(free))
        self.lower = memory.empty((len(free), len(free)), self.dtype)
        here = self.points[self.members]
        rows.submatrix(self.values.rows, here, here, self.lower, True)
        diagonal = np.einsum("ii->i", self.lower)
        self.ridge = self.ridge_factor * _RIDGE[self.dtype.itemsize] * float(np.abs(diagonal).mean())
        diagonal += self.dtype.type(self.ridge)
        self.columns: dict[int, int] = {}  # by variable: its row of W
        self.w = np.zeros((0, len(free)), dtype=self.dtype)
        self.products = np.zeros((0, 0))  # W·Wᵀ
        if cholesky.factor(self.lower, self._threads(len(free) ** 3 / 200.0)) != 0:
            self.members = free[:0]
            return False
        ones = np.zeros((self.n_groups, len(free)), dtype=self.dtype)
        ones[self.group[self.members], np.arange(len(free))] = 1
        self._append_columns(ones, 0)
        return True

    def _threads(self, nanoseconds: float) -> int:
        return parallel.enough_threads(self.values.n_threads, nanoseconds)

    def _append_columns(self, right: np.ndarray, first: int) -> None:
        """Append columns of U, given as rows that are zero before `first`, to W, and their products with all of W."""
        work = len(right) * float(len(self.members) - first) ** 2
        cholesky.solve_lower(self.lower, right, self._threads(work / 60.0), None, first)
        both = np.concatenate([self.w, right])
        products = np.empty((len(both), len(both)))
        products[: len(self.w), : len(self.w)] = self.products
        products[:, len(self.w) :] = both @ right.T
        products[len(self.w) :] = products[:, len(self.w) :].T
        self.w, self.products = both, products

    def _require_columns(self, variables: np.ndarray) -> None:
        """Make columns for these variables: the unit vector of a member, the kernel values of any other."""
        new = np.array([v for v in variables.tolist() if v not in self.columns], dtype=np.intp)
        late = self.place[new] >= _LATE_SHARE * len(self.members)
        for some in (new[late], new[~late]):
            if not len(some):
                continue
            self.columns.update({int(v): len(self.w) + i for i, v in enumerate(some)})
            right = np.zeros((len(some), len(self.members)), dtype=self.dtype)
            inside = self.place[some] >= 0
            right[inside, self.place[some[inside]]] = 1
            if not inside.all():
                right[~inside] = self._kernel(some[~inside], self.members)
            self._append_columns(right, int(self.place[some].min()) if inside.all() else 0)

    def _kernel(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the kernel values between variables."""
        out = np.empty((len(first), len(second)), dtype=self.dtype)
        rows.submatrix(self.values.rows, self.points[first], self.points[second], out)
        return out

    # ---- a step ----

    def _direction(
        self, fixed: np.ndarray, to: np.ndarray, joined: np.ndarray, slope: np.ndarray, forward: np.ndarray
    ) -> np.ndarray:
        """Return d of the members, of which the `fixed` ones move by `to`, followed by d of the `joined` variables.

        `forward` is L⁻¹ times the members' slopes.
        """
        self._require_columns(np.concatenate([fixed, joined]))
        n_bound = self.n_groups + len(fixed)
        used = [*range(self.n_groups), *(self.columns[int(v)] for v in (*fixed, *joined))]
        system = -self.products[np.ix_(used, used)]
        known = (self.w @ forward)[used].astype(np.float64)
        known[self.n_groups : n_bound] += to
        known[n_bound:] -= slope[joined]
        if len(joined):
            ones = (self.group[joined] == np.arange(self.n_groups)[:, None]).astype(np.float64)
            system[n_bound:, n_bound:] += self._kernel(joined, joined) + self.ridge * np.eye(len(joined))
            system[: self.n_groups, n_bound:] += ones
            system[n_bound:, : self.n_groups] += ones.T
        multipliers = np.linalg.solve(system, known)
        pull = slope[self.members] + multipliers[: self.n_groups][self.group[self.members]]
        pull[self.place[fixed]] += multipliers[self.n_groups : n_bound]
        right = pull.astype(self.dtype)[None, :]
        if len(joined):
            right += multipliers[n_bound:].astype(self.dtype) @ self._kernel(joined, self.members)
        cholesky.solve(self.lower, right, 1)
        return np.concatenate([-right[0].astype(np.float64), multipliers[n_bound:]])

    def _feasible_direction(self, free: np.ndarray, slope: np.ndarray) -> np.ndarray | None:
        """Return a direction of the free variables, with one entry per variable, whose end keeps bounds and sums.

        Returns None if the factor has too few of the free variables, or rounding leaves no direction.
        """
        joined = free[self.place[free] < 0]
        is_free = np.zeros(len(self.points), dtype=bool)
        is_free[free] = True
        fixed = self.members[~is_free[self.members]]
        to = np.zeros(len(fixed))
        bottom, top = self.limits()
        down, up = bottom - self.machine.a, top - self.machine.a
        forward = slope[self.members].astype(self.dtype)[None, :]
        cholesky.solve_lower(self.lower, forward, 1)
        for _ in range(_MAX_BOUND_ROUNDS):
            if (len(fixed) + len(joined)) * _MEMBERS_PER_COLUMN > len(self.members):
                return None
            d = np.zeros(len(self.points))
            try:
                d[np.concatenate([self.members, joined])] = self._direction(fixed, to, joined, slope, forward[0])
            except np.linalg.LinAlgError:
                return None
            if not np.isfinite(d).all():
                return None
            d[fixed] = to
            leaving = (d < down) | (d > up)
            if not leaving.any():
                return d if self._balance(d, down, up) else None
            gone = np.flatnonzero(leaving & (self.place >= 0))
            fixed, to = np.concatenate([fixed, gone]), np.concatenate([to, np.clip(d, down, up)[gone]])
            joined = joined[~leaving[joined]]
        return None

    def _balance(self, d: np.ndarray, down: np.ndarray, up: np.ndarray) -> bool:
        """Bring the sums of d, which rounding has left, to 0; returns whether that is possible."""
        for number in range(self.n_groups):
            own = self.group == number
            excess = float(d[own].sum())
            able = own & (d != 0) & (d - abs(excess) > down) & (d + abs(excess) < up)
            if excess != 0 and not able.any():
                return False
            d[able] -= excess / max(int(able.sum()), 1)
        return True

    def _step(self, free: np.ndarray) -> float | None:
        """Take one step with the existing factor; returns its gain, or None if a new factor is required."""
        machine, problem = self.machine, self.problem
        slope = machine.gradient + problem.kink * np.sign(machine.a)
        d = self._feasible_direction(free, slope)
        if d is None:
            return None
        product = np.zeros(len(d))
        beta = np.bincount(self.points, weights=d, minlength=self.values.n)
        gradient.multiply(self.values.rows, beta, product, [(point, n) for _, n, point, _ in problem.segments])
        fall, curve = -float((slope * d).sum()), float((d * product).sum())
        if not fall > 0:
            return 0.0
        t = min(1.0, fall / curve) if curve > 0 else 1.0
        bottom, top = self.limits()
        there = np.clip(machine.a + t * d, bottom, top)
        if t == 1.0:  # at the bounds themselves, whatever a + (bound - a) rounds to
            there = np.where(d == top - machine.a, top, np.where(d == bottom - machine.a, bottom, there))
        machine.a[d != 0] = there[d != 0]
        machine.gradient[...] += t * product
        machine.reset_masks()
        return t * fall - t * t * curve / 2
