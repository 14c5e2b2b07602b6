"""Which of SMO, Newton steps and interior points works when: the one place that decides, read from top to bottom.

    1. SMO         steps on two variables at a time (core/svm/smo.pyx). Where a whole matrix would fit but few rows are
                   expected to be needed, it works on computed rows first, and on the matrix once half of them exist.
    2. Newton      between SMO steps on a whole matrix (newton.py): a step is due when SMO has taken as many steps as
                   the Newton step costs.
    3. interior    where the kernel matrix has few columns or rows in float64 (interior_points.py): if SMO has not
       points      converged in 0.3 of the time that interior points take, they replace its solution. SMO finishes.
    4. refinement  gradients are computed again from float64 kernel values, and SMO continues from them, until float64
                   values confirm that the violation is at most tol.

`solve` runs these four and returns certified solutions (certificate.py). The solver returns to this module when a
machine pauses; the core never calls up into it.

Invariant: everything is decided for each machine by itself, so its solution depends neither on the machines solved with
it nor on the number of threads or workers.

Steps 1 and 2 follow the references of core/svm/ and newton.py, step 3 those of low_rank_qp.py. The order of the four
methods and their cost models are our own; docs/developers/solver.rst has the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import check, parallel
from kernelrules.core.gram import apply
from kernelrules.core.svm import rows, smo
from kernelrules.core.svm.working_set import LINEAR_SET
from kernelrules.svm.certificate import Solution, beyond_float64, certify, certify_pair, offsets_of
from kernelrules.svm.interior_points import InteriorPoints, factor_width, n_unknowns
from kernelrules.svm.kernel_values import KernelValues
from kernelrules.svm.newton import NewtonSteps
from kernelrules.svm.problems import Problem

__all__ = ["solve"]

_DEFAULT_MAX_STEPS = 10_000_000  # of SMO per machine, or _DEFAULT_STEPS_PER_POINT if that is more
_DEFAULT_STEPS_PER_POINT = 100
_SMO_TOL_SHARE = 0.99  # of tol, to which SMO works: rounding of the gradient then rarely costs another refinement
_MAX_REFINEMENTS = 12  # gradients computed again from float64 values before the solver gives up
_FLOAT32_REFINEMENTS = 3  # refinements after which float32 rows are replaced by float64 rows
_MAX_STEPS_AFTER_INTERIOR = 1_000_000  # of SMO from an interior point's solution: the rest is rounding

# What a Newton step costs, in SMO steps on n variables: measured, so that waiting for it at most doubles the work.
_FACTOR_STEPS = {4: 0.01, 8: 0.02}  # by bytes of a kernel value: times m³ / n for a factor of m free variables
_SOLVE_STEPS = 3.0  # times m² / n with a factor that exists
_WAIT_GROWTH = 1.1  # per Newton step: there are few of them, however long a fit takes
_WAIT_GROWTH_AFTER_LOSS = 4.0  # after a Newton step that gained less than SMO in the same time

# When interior points are tried.
_WAIT_SHARE = 0.3  # of their time, given to SMO first: machines that are not solved by then usually need them
_MIN_STEPS = 20_000  # of SMO, always taken first
_MIN_NANOSECONDS = 2e7  # of the rounds of a linear machine, always spent first
_MAX_NANOSECONDS = 1.5e11  # of interior points, by the estimate
_MAX_EIGEN_POINTS = 1024  # points of a kernel matrix whose eigenvectors are computed
_ITERATION_OVERHEAD_NS = 8e4  # of NumPy's calls per iteration of interior points
_LINEAR_SCAN_POINTS = 600  # variables that an SMO step of a large linear machine scans, on average


@dataclass(eq=False)
class _Job:
    """One problem on its way through the four methods."""

    problem: Problem
    machine: smo.Machine
    max_steps: int  # of SMO in total
    interior: InteriorPoints
    violation: float = np.inf  # by float64 kernel values
    previous_violation: float = np.inf  # of the refinement before
    pair_solution: Solution | None = None  # made of weights and variables of interior points


def solve(
    values: KernelValues,
    problems: list[Problem],
    tol: float,
    max_iter: int | None,
    tick: Any = None,
    exact: bool = True,
) -> list[Solution]:
    """Solve problems on the same points, each to a violation of at most tol in float64.

    Parameters
    ----------
    values : KernelValues
        Kernel values of the points.
    problems : list of Problem
        What to solve.
    tol : float
        Largest violation of the optimality conditions.
    max_iter : int or None
        Most SMO steps per machine; None: ten million or a hundred per point, whichever is more.
    tick : callable or None
        Receives progress.
    exact : bool
        Whether to confirm solutions by float64 kernel values. If not, the rows of `values` are trusted.

    Returns
    -------
    list of Solution
        In the order of the problems.
    """
    most = max(_DEFAULT_MAX_STEPS, _DEFAULT_STEPS_PER_POINT * values.n)
    max_steps = most if max_iter is None else int(min(max_iter, 1 << 62))
    aim = tol * _SMO_TOL_SHARE
    jobs = [_Job(p, _start(values, p), max_steps, InteriorPoints(values, p, tol)) for p in problems]
    _smo_then_interior_points(values, jobs, tol, aim, tick)
    unsolved = []
    for job in jobs:
        if job.interior.pair is not None and job.machine.current_violation() > tol:
            job.pair_solution = certify_pair(values, job.problem, job.interior.pair, job.machine, tol)
        if job.pair_solution is None or not job.pair_solution.certificate.converged:
            unsolved.append(job)
    for attempt in range(_MAX_REFINEMENTS if unsolved else 0):
        _run(values, unsolved, aim, tick, [job.max_steps for job in unsolved])
        if not exact:
            for job in jobs:
                job.violation = job.machine.violation
            break
        _refresh_gradients(values, unsolved)
        for job in unsolved:
            job.previous_violation, job.violation = job.violation, job.machine.current_violation()
        unsolved = [job for job in unsolved if job.violation > tol and job.machine.n_steps < job.max_steps]
        if not unsolved:
            break
        stuck = attempt > 0 and all(job.violation > 0.5 * job.previous_violation for job in unsolved)
        if values.rows.single and (attempt >= _FLOAT32_REFINEMENTS or stuck):
            values.use_float64()
        elif stuck:
            break
    return [_certified(values, job, tol) for job in jobs]


def _start(values: KernelValues, problem: Problem) -> smo.Machine:
    """Return the machine of a problem, at its start."""
    a, gradient = problem.start.copy(), problem.linear.copy()
    if a.any():
        gradient += values.rough_product(problem.beta(a, values.n))[problem.points()]
    return smo.Machine(problem.segments, problem.lower, problem.upper, a, gradient, problem.kink)


def _certified(values: KernelValues, job: _Job, tol: float) -> Solution:
    """Return the better of the two solutions of a job: that of its machine, or of its pair."""
    if job.pair_solution is not None and job.pair_solution.certificate.kkt < job.violation:
        return job.pair_solution
    return certify(values, job.problem, job.machine, job.violation, tol, job.interior.a)


# ---- SMO and Newton steps ---------------------------------------------------------------------------------------


def _run(
    values: KernelValues,
    jobs: list[_Job],
    aim: float,
    tick: Any,
    step_limits: list[int],
    row_limits: list[int] | None = None,
) -> None:
    """Run SMO with Newton steps on the jobs' machines, each within its own limits; by an executor if there is one.

    `row_limits` are for linear machines, whose rounds may cost more than their steps.
    """
    if not jobs:
        return
    problems, machines = [job.problem for job in jobs], [job.machine for job in jobs]
    if values.executor_runs is None or len(jobs) == 1:
        _run_here(values, problems, machines, aim, tick, step_limits, row_limits)
        return
    each = zip(problems, machines, step_limits, row_limits or [None] * len(jobs), strict=True)
    found = values.executor_runs.map(_run_in_worker, [(p, m, aim, steps, rows) for p, m, steps, rows in each])
    for job, machine in zip(jobs, found, strict=True):
        job.machine = machine


def _run_here(
    values: KernelValues,
    problems: list[Problem],
    machines: list[smo.Machine],
    aim: float,
    tick: Any,
    step_limits: list[int],
    row_limits: list[int] | None,
) -> None:
    """Run SMO in this process: on rows first, then on the whole matrix if many rows turn out to be needed."""
    few_rows = values.rows_before_matrix()
    if few_rows is not None:
        smo.solve(values.rows, machines, aim, step_limits, values.n_threads, tick, few_rows)
        if values.rows.n_computed < few_rows or not any(machine.unfinished for machine in machines):
            return
        values.use_matrix()
    if values.rows.kind == rows.WHOLE_KIND:
        _run_with_newton(values, problems, machines, aim, tick, step_limits)
        return
    if row_limits is not None and len(machines) == 1:
        row_limits = [row_limits[0] + values.rows.n_computed]
    smo.solve(values.rows, machines, aim, step_limits, values.n_threads, tick, row_limits)


def _run_in_worker(
    values: KernelValues, problem: Problem, machine: smo.Machine, aim: float, max_steps: int, max_rows: int | None
) -> smo.Machine:
    """Run one machine in a task of an executor."""
    row_limits = None if max_rows is None else [max_rows]
    _run_here(values, [problem], [machine], aim, parallel.ticker(None, "svm"), [max_steps], row_limits)
    return machine


def _run_with_newton(
    values: KernelValues,
    problems: list[Problem],
    machines: list[smo.Machine],
    aim: float,
    tick: Any,
    step_limits: list[int],
) -> None:
    """Run SMO on a whole matrix, with a Newton step whenever a machine pauses for one."""
    schedules: dict[int, _NewtonSchedule] = {}
    for machine, problem in zip(machines, problems, strict=True):
        machine.pause_after(newton_overhead(len(problem.lower)), _FACTOR_STEPS[4 if values.rows.single else 8])
    solver = smo.Solver(values.rows, machines, aim, step_limits, values.n_threads)
    while paused := solver.run(tick):
        for m in paused:
            if m not in schedules:
                schedules[m] = _NewtonSchedule(values, problems[m], machines[m])
            with parallel.blas_threads(1):  # its sums depend on its threads
                schedules[m].step(aim)


def newton_overhead(n: int) -> float:
    """Return the fixed cost of a Newton step on n variables, in SMO steps."""
    return 3000.0 * (1 + 200.0 / n)


class _NewtonSchedule:
    """Takes Newton steps of one machine, and sets when the next one is due."""

    def __init__(self, values: KernelValues, problem: Problem, machine: smo.Machine) -> None:
        self.newton = NewtonSteps(values, problem, machine)
        self.problem, self.machine = problem, machine
        self.wait_factor, self.last_objective = 1.0, None

    def step(self, aim: float) -> None:
        """Take a Newton step; SMO then works until another one pays."""
        before = self.problem.objective(self.machine.a, self.machine.gradient)
        gain = self.newton.take(aim)
        if gain <= (0.0 if self.last_objective is None else self.last_objective - before):
            self.wait_factor *= _WAIT_GROWTH_AFTER_LOSS
        self.wait_factor *= _WAIT_GROWTH
        self.last_objective = before - gain
        m, n = len(self.newton.members), len(self.newton.points)
        if m > 0:
            self.machine.pause_after(self.wait_factor * (newton_overhead(n) + _SOLVE_STEPS * m * m / n), 0.0)
        else:
            cubic = self.wait_factor * _FACTOR_STEPS[self.newton.dtype.itemsize]
            self.machine.pause_after(self.wait_factor * newton_overhead(n), cubic)


# ---- interior points --------------------------------------------------------------------------------------------


def _smo_then_interior_points(values: KernelValues, jobs: list[_Job], tol: float, aim: float, tick: Any) -> None:
    """Run each machine for a share of the time of interior points, and solve those that are not done by these.

    Sets the SMO steps that each machine may take in total.
    """
    waits = [steps_before_interior_points(values, job.problem) for job in jobs]
    chosen = [(job, wait) for job, wait in zip(jobs, waits, strict=True) if wait is not None and wait < job.max_steps]
    row_limits = [rows_before_interior_points(values, job.problem) for job, _ in chosen]
    step_limits = [wait for _, wait in chosen]
    _run(values, [job for job, _ in chosen], aim, tick, step_limits, None if None in row_limits else row_limits)
    for job, _ in chosen:
        machine = job.machine
        late = machine.unfinished or machine.stalled
        if late and not job.interior.improve(machine, tick) and machine.unfinished:
            reached = machine.a if job.interior.a is None else job.interior.a
            if beyond_float64(values, job.problem, reached, tol) is None:
                continue  # more SMO steps may help
        job.max_steps = min(job.max_steps, machine.n_steps + _MAX_STEPS_AFTER_INTERIOR)


def steps_before_interior_points(values: KernelValues, problem: Problem) -> int | None:
    """Return the SMO steps to take before interior points are tried, by the cost of each; None: never try them."""
    if values.source is None or values.rows.single or values.rows.kind == rows.CACHED_KIND:
        return None
    is_linear, width = values.source[0] == "linear", factor_width(values)
    if not is_linear and width > _MAX_EIGEN_POINTS:
        return None
    nanoseconds = _interior_points_nanoseconds(values, problem)
    if 40.0 * n_unknowns(problem) * width > values.budget or nanoseconds > _MAX_NANOSECONDS:
        return None
    scanned = min(values.n, _LINEAR_SCAN_POINTS) if is_linear else len(problem.upper)
    return max(_MIN_STEPS, int(_WAIT_SHARE * nanoseconds / (100.0 + 1.5 * scanned)))


def rows_before_interior_points(values: KernelValues, problem: Problem) -> int | None:
    """Return the rows of working sets to compute before interior points are tried; None for a whole matrix.

    A round of a linear machine that takes few steps costs more than the steps.
    """
    kind, data, _ = values.source
    if kind != "linear":
        return None
    entries = len(data.data) / values.n if isinstance(data, check.Csr) else data.shape[1]
    row_nanoseconds = len(problem.upper) * (20.0 + 0.5 * entries) / LINEAR_SET + LINEAR_SET * (0.5 + 0.035 * entries)
    return int(max(_MIN_NANOSECONDS, _WAIT_SHARE * _interior_points_nanoseconds(values, problem)) / row_nanoseconds)


def _interior_points_nanoseconds(values: KernelValues, problem: Problem) -> float:
    """Estimate the time of interior points: 40 iterations, after eigenvectors or coordinates if those are needed."""
    width = factor_width(values)
    factorisation = float(width) ** 3 if width == values.n else 0.0
    system = width * width * (5.0 + width / 60.0)
    unknowns = n_unknowns(problem) * (60.0 + 6.5 * width + width * width / 45.0)
    return factorisation + 40 * (_ITERATION_OVERHEAD_NS + system + unknowns)


# ---- refinement -------------------------------------------------------------------------------------------------


def _refresh_gradients(values: KernelValues, jobs: list[_Job]) -> None:
    """Compute gradients from float64 kernel values, for all variables that can influence the result."""
    betas = np.array([job.problem.beta(job.machine.a, values.n) for job in jobs])
    error = values.row_error()
    needed = np.zeros(values.n, dtype=bool)
    for job in jobs:
        influential = _influential(job.problem, job.machine, error * float(np.abs(job.machine.a).sum()))
        needed[job.problem.points()[influential]] = True
    points = np.flatnonzero(needed)
    if len(points) == 0:
        return
    exact = values.exact_product(betas, points, _blocks_needed(jobs, points, apply.HEIGHT))
    for job, row in zip(jobs, exact, strict=True):
        own = job.problem.points()
        known = needed[own]
        job.machine.gradient[known] = row[np.searchsorted(points, own[known])] + job.problem.linear[known]


def _influential(problem: Problem, machine: smo.Machine, gradient_error: float) -> np.ndarray:
    """Mark the variables that influence objectives or violation if gradients may be wrong by `gradient_error`.

    These are the variables that are not zero, and those whose hinges could be open; all of them if gradients are exact.
    """
    a, gradient = machine.a, machine.gradient
    if gradient_error == 0.0:
        return np.ones(len(a), dtype=bool)
    influential = a != 0
    margin = 2 * gradient_error + max(machine.violation, 0.0)
    for members, b in zip(problem.groups(), offsets_of(problem, a, gradient), strict=True):
        g = gradient[members] + b
        open_above = (problem.upper[members] > 0) & (g + problem.kink <= margin)
        open_below = (problem.lower[members] < 0) & (g - problem.kink >= -margin)
        influential[members] |= open_above | open_below
    return influential


def _blocks_needed(jobs: list[_Job], points: np.ndarray, height: int) -> np.ndarray | None:
    """Mark, for each block of `height` points, the machines that have a point in it; None if all have one in all."""
    needed = np.zeros((-(-len(points) // height), len(jobs)), dtype=np.uint8)
    for m, job in enumerate(jobs):
        for _, n, point, _ in job.problem.segments:
            first, last = np.searchsorted(points, [point, point + n])
            if last > first:
                needed[first // height : (last - 1) // height + 1, m] = 1
    return None if needed.all() else needed
