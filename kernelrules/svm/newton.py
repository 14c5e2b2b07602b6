"""Newton steps between those of SMO, for problems that need very many of the latter.

Once it is settled which variables lie between their bounds, SMO descends a quadratic two coordinates at a time, which
takes long where the kernel matrix is ill-conditioned. With F the free variables and s their slopes, a Newton step is

    minimise  ½ dᵀK_FF d + sᵀd   over  d,  Σd = 0 in each group,  d_B given,

B being those that would leave their bounds: they go to the bound and the others are found again, until all stay within.
K_FF = LLᵀ is factored once. Constraints, and variables that have become free since, are columns U beside it: with
W = L⁻¹U what is left is a system of their number. The step ends where the objective is least on the way to a + d.

Invariant: bounds and sums are kept, and no step raises the objective. The gradient moves by K·d from the solver's own
rows, so its certificate means the same as without these steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelrules import parallel
from kernelrules.core import blocks, cholesky, rows, smo

if TYPE_CHECKING:
    from kernelrules.svm.dual import Problem
    from kernelrules.svm.values import KernelValues

__all__ = ["FreeStep", "solve"]

_RIDGE = {4: 1e-4, 8: 1e-6}  # by bytes of a kernel value: added to K_FF, relative to its diagonal, against rounding
_TRIES, _STIFFER = 3, 100.0  # factors, and how much larger the ridge becomes where a step would go too far
_ROUNDS = 12  # of sending variables to their bounds
_WIDE = 3  # more columns than a third of the factor's: a new factor costs less
_LATE = 0.6  # place among the members from which columns are solved apart: they do not need the earlier part of L
_REPEATS, _WORTH = 6, 0.03  # more steps at once, while each gains that share: they mend what the ridge spoils
# What a step costs, in steps of SMO on n variables: measured, so that waiting for it at most doubles the work.
_CUBIC = {4: 0.01, 8: 0.02}  # times m³ / n for a factor of m free variables
_AGAIN = 3.0  # times m² / n with a factor that is there
_LONGER = 1.1  # times, after every step: however long it takes, there are few
_PATIENCE = 4.0  # times, after a step that SMO was better than


class FreeStep:
    """Newton steps of one machine, whose factor is kept from one to the next.

    Parameters
    ----------
    values : KernelValues
        With the whole matrix.
    problem : Problem
        What the machine solves.
    machine : smo.Machine
        Its state, which `take` changes.
    """

    def __init__(self, values: KernelValues, problem: Problem, machine: smo.Machine) -> None:
        self.values, self.problem, self.machine = values, problem, machine
        self.dtype = np.dtype(np.float32 if values.rows.single else np.float64)
        self.points = problem.points().astype(np.intp)
        self.group = np.zeros(len(self.points), dtype=np.intp)
        for number, members in enumerate(problem.groups()):
            self.group[members] = number
        self.n_groups = int(self.group.max()) + 1
        self.members = np.zeros(0, dtype=np.intp)  # variables of the factor
        self.patience, self.caution, self.last = 1.0, 1.0, None

    # ---- which variables ----

    def free(self) -> np.ndarray:
        """Variables between their bounds, and off the kink."""
        a, problem = self.machine.a, self.problem
        return np.flatnonzero((problem.lower < a) & (a < problem.upper) & ((a != 0) | (problem.kink == 0)))

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """How low and how high each variable can go: to its bounds, or to the kink."""
        a, bottom, top = self.machine.a, self.problem.lower, self.problem.upper
        if self.problem.kink > 0:
            bottom, top = np.where(a > 0, np.maximum(bottom, 0.0), bottom), np.where(a < 0, np.minimum(top, 0.0), top)
        return bottom, top

    def fits(self, m: int) -> bool:
        """Whether there is memory for a factor of m variables and half as many columns, beside the matrix and what the
        solver gathers from it."""
        return (1.6 * self.values.n**2 + 1.5 * m**2) * self.dtype.itemsize <= self.values.budget

    # ---- the factor and the columns beside it ----

    def _start(self, free: np.ndarray) -> bool:
        """Factor K of the free variables; False where it is not positive definite."""
        a, (bottom, top) = self.machine.a, self.ends()
        nearest = np.minimum(a - bottom, top - a)[free]
        self.members = free[np.argsort(-nearest, kind="stable")]  # those near a bound, which may leave, come last
        self.place = np.full(len(self.points), -1, dtype=np.intp)
        self.place[self.members] = np.arange(len(free))
        self.lower = blocks.empty((len(free), len(free)), self.dtype)
        here = self.points[self.members]
        rows.part(self.values.rows, here, here, self.lower, True)
        diagonal = np.einsum("ii->i", self.lower)
        self.ridge = self.caution * _RIDGE[self.dtype.itemsize] * float(np.abs(diagonal).mean())
        diagonal += self.dtype.type(self.ridge)
        self.columns: dict[int, int] = {}  # of a variable its row of W
        self.w = np.zeros((0, len(free)), dtype=self.dtype)
        self.products = np.zeros((0, 0))  # W·Wᵀ
        if cholesky.factor(self.lower, self._threads(len(free) ** 3 / 200.0)) != 0:
            self.members = free[:0]
            return False
        ones = np.zeros((self.n_groups, len(free)), dtype=self.dtype)
        ones[self.group[self.members], np.arange(len(free))] = 1
        self._append(ones, 0)
        return True

    def _threads(self, nanoseconds: float) -> int:
        return parallel.enough_threads(self.values.n_threads, nanoseconds)

    def _append(self, right: np.ndarray, first: int) -> None:
        """Columns of U as rows, zero before `first`, become rows of W, with products with all."""
        work = len(right) * float(len(self.members) - first) ** 2
        cholesky.solve_lower(self.lower, right, self._threads(work / 60.0), None, first)
        both = np.concatenate([self.w, right])
        products = np.empty((len(both), len(both)))
        products[: len(self.w), : len(self.w)] = self.products
        products[:, len(self.w) :] = both @ right.T
        products[len(self.w) :] = products[:, len(self.w) :].T
        self.w, self.products = both, products

    def _need(self, variables: np.ndarray) -> None:
        """Columns for these variables: of members the unit vector, of the others their kernel values."""
        new = np.array([v for v in variables.tolist() if v not in self.columns], dtype=np.intp)
        late = self.place[new] >= _LATE * len(self.members)
        for some in (new[late], new[~late]):
            if not len(some):
                continue
            self.columns.update({int(v): len(self.w) + i for i, v in enumerate(some)})
            right = np.zeros((len(some), len(self.members)), dtype=self.dtype)
            inside = self.place[some] >= 0
            right[inside, self.place[some[inside]]] = 1
            if not inside.all():
                right[~inside] = self._kernel(some[~inside], self.members)
            self._append(right, int(self.place[some].min()) if inside.all() else 0)

    def _kernel(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Kernel values between variables."""
        out = np.empty((len(first), len(second)), dtype=self.dtype)
        rows.part(self.values.rows, self.points[first], self.points[second], out)
        return out

    # ---- a step ----

    def _direction(
        self, fixed: np.ndarray, to: np.ndarray, joined: np.ndarray, slope: np.ndarray, forward: np.ndarray
    ) -> np.ndarray:
        """d of the members, of which the `fixed` ones move by `to`, and then of those that have `joined`; `forward` is
        L⁻¹ of the members' slopes."""
        self._need(np.concatenate([fixed, joined]))
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
        found = np.linalg.solve(system, known)
        pull = slope[self.members] + found[: self.n_groups][self.group[self.members]]
        pull[self.place[fixed]] += found[self.n_groups : n_bound]
        right = pull.astype(self.dtype)[None, :]
        if len(joined):
            right += found[n_bound:].astype(self.dtype) @ self._kernel(joined, self.members)
        cholesky.solve(self.lower, right, 1)
        return np.concatenate([-right[0].astype(np.float64), found[n_bound:]])

    def _feasible(self, free: np.ndarray, slope: np.ndarray) -> np.ndarray | None:
        """A direction of the free variables, an entry for every variable, whose end keeps bounds and sums; None where
        the factor has too little to do with it."""
        joined = free[self.place[free] < 0]
        is_free = np.zeros(len(self.points), dtype=bool)
        is_free[free] = True
        fixed = self.members[~is_free[self.members]]
        to = np.zeros(len(fixed))
        bottom, top = self.ends()
        down, up = bottom - self.machine.a, top - self.machine.a
        forward = slope[self.members].astype(self.dtype)[None, :]
        cholesky.solve_lower(self.lower, forward, 1)
        for _ in range(_ROUNDS):
            if (len(fixed) + len(joined)) * _WIDE > len(self.members):
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
        """Bring the sums of d, which rounding has left, to 0; whether that can be done."""
        for number in range(self.n_groups):
            own = self.group == number
            excess = float(d[own].sum())
            able = own & (d != 0) & (d - abs(excess) > down) & (d + abs(excess) < up)
            if excess != 0 and not able.any():
                return False
            d[able] -= excess / max(int(able.sum()), 1)
        return True

    def _move(self, free: np.ndarray) -> float | None:
        """One step with the factor at hand; what it gains. None: the factor does not do any more."""
        machine, problem = self.machine, self.problem
        slope = machine.gradient + problem.kink * np.sign(machine.a)
        d = self._feasible(free, slope)
        if d is None:
            return None
        product = np.zeros(len(d))
        beta = np.bincount(self.points, weights=d, minlength=self.values.n)
        rows.multiply(self.values.rows, beta, product, [(point, n) for _, n, point, _ in problem.segments])
        fall, curve = -float((slope * d).sum()), float((d * product).sum())
        if not fall > 0:
            return 0.0
        t = min(1.0, fall / curve) if curve > 0 else 1.0
        bottom, top = self.ends()
        there = np.clip(machine.a + t * d, bottom, top)
        if t == 1.0:  # at the bounds themselves, whatever a + (bound - a) rounds to
            there = np.where(d == top - machine.a, top, np.where(d == bottom - machine.a, bottom, there))
        machine.a[d != 0] = there[d != 0]
        machine.gradient[...] += t * product
        machine.moved()
        return t * fall - t * t * curve / 2

    def take(self, aim: float) -> float:
        """Move the machine, towards a violation of at most `aim`; how much that lowers the objective, 0 where no step
        can be had."""
        free = self.free()
        if len(free) <= self.n_groups or not self.fits(len(free)):
            return 0.0
        total = self._move(free) if len(self.members) else None
        for _ in range(_TRIES):
            if total is not None:
                break
            total = self._move(free) if self._start(free) else None
            if total is None:
                self.caution *= _STIFFER
        for _ in range(_REPEATS):
            if not total or self.machine.look() <= aim:
                break
            gain = self._move(self.free()) or 0.0
            total += gain
            if gain < _WORTH * total:
                break
        return total or 0.0

    def improve(self, aim: float) -> None:
        """Take a step, and let SMO work until another pays."""
        before = self.problem.objective(self.machine.a, self.machine.gradient)
        gain = self.take(aim)
        m, n = len(self.members), len(self.points)
        if gain <= (0.0 if self.last is None else self.last - before):
            self.patience *= _PATIENCE
        self.patience *= _LONGER
        self.last = before - gain
        if m > 0:
            self.machine.pause_after(self.patience * (floor(n) + _AGAIN * m * m / n), 0.0)
        else:
            self.machine.pause_after(self.patience * floor(n), self.patience * _CUBIC[self.dtype.itemsize])


def floor(n: int) -> float:
    """What a step on n variables costs before it computes anything, in steps of SMO."""
    return 3000.0 * (1 + 200.0 / n)


def solve(
    values: KernelValues, problems: list[Problem], machines: list[smo.Machine], aim: float, limit: int, tick: Any
) -> None:
    """Solve the machines on a whole matrix to violations of at most `aim`, or until each took `limit` steps of SMO."""
    steps: dict[int, FreeStep] = {}

    def improve(m: int) -> None:
        if m not in steps:
            steps[m] = FreeStep(values, problems[m], machines[m])
        with parallel.blas_threads(1):  # its sums depend on its threads
            steps[m].improve(aim)

    for machine, problem in zip(machines, problems, strict=True):
        machine.pause_after(floor(len(problem.lower)), _CUBIC[4 if values.rows.single else 8])
    smo.solve(values.rows, machines, aim, limit, values.n_threads, tick, None, improve)
