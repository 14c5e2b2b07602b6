"""The dual solver as the package calls it: machines, one dual problem each, solved concurrently or in turn.

steps.pyx defines the problem and a step, working_set.pyx the variables worked on. Here the work is cut into slices,
between which signals are handled and progress is reported, and divided among threads if machines are independent. A
machine that has taken as many steps as a Newton step costs pauses: `Solver.run` then returns to the caller, which may
change the machine and resume.

Invariant: the solution of a machine depends neither on the other machines nor on the number of threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from kernelrules.core.base.interrupts cimport better_step
from kernelrules.core.svm.rows cimport CACHED_ROWS, LINEAR_PRODUCTS, KernelRows, RowStore, Segment
from kernelrules.core.simd.dispatch cimport simd_table
from kernelrules.core.base.status cimport NO_MEMORY, OK
from kernelrules.core.svm.steps cimport (
    FAILED, MAX_GROUPS, NO_PROGRESS, PAUSED, UNFINISHED, Dual, MaxViolation, SolverOutcome, scan_all, set_masks,
)
from kernelrules.core.base.team cimport run_team
from kernelrules.core.base.types cimport PY_SSIZE_T_MAX
from kernelrules.core.svm.working_set cimport (
    MIN_SHRINK_POINTS, WorkingSet, advance, free_work, start_work, unshrink,
)

from time import perf_counter

from kernelrules.core.base.status import raise_for_status

cdef enum:
    MIN_SHARED_WORK = 200000    # points times steps of a slice, some tenths of a millisecond: worth waking threads for
    FIRST_SLICE = 500           # steps


cdef class Machine:
    """One dual problem and its state: a feasible start, later the solution.

    `segments` has a row (start, n, point, group) for each run of variables; `gradient` is K·beta + p at the start.
    """

    cdef Dual dual
    cdef readonly object a, gradient
    cdef object kept

    def __init__(self, segments, const double[::1] lower, const double[::1] upper, double[::1] a,
                 double[::1] gradient, double kink=0.0):
        cdef Segment *table
        cdef Py_ssize_t s
        cdef double[::1] masks
        n_segments = len(segments)
        storage = bytearray(n_segments * sizeof(Segment))
        masks = memoryview(bytearray(2 * lower.shape[0] * sizeof(double))).cast("d")
        table = <Segment *> <char *> storage
        for s in range(n_segments):
            table[s].start, table[s].n, table[s].point, table[s].group = segments[s]
        memset(&self.dual, 0, sizeof(Dual))
        self.dual.n, self.dual.n_segments, self.dual.segments, self.dual.kink = lower.shape[0], n_segments, table, kink
        self.dual.lower, self.dual.upper = &lower[0], &upper[0]
        self.dual.a, self.dual.gradient = &a[0], &gradient[0]
        self.dual.up, self.dual.low = &masks[0], &masks[lower.shape[0]]
        self.dual.pause_steps = -1
        self.a, self.gradient = a.base, gradient.base
        self.kept = (lower, upper, a, gradient, masks, storage)
        set_masks(&self.dual)

    def __reduce__(self):
        """Return the problem and its state, for a solver in another process."""
        cdef const Segment *at
        segments = []
        for s in range(self.dual.n_segments):
            at = &self.dual.segments[s]
            segments.append((at.start, at.n, at.point, at.group))
        state = self.dual.n_steps, self.dual.violation, <int> self.dual.outcome
        lower, upper = self.kept[0].base, self.kept[1].base
        return restored, (segments, lower, upper, self.a, self.gradient, self.dual.kink, state)

    @property
    def n_steps(self):
        """Steps taken so far."""
        return self.dual.n_steps

    @property
    def violation(self):
        """Violation of the optimality conditions, when last computed."""
        return self.dual.violation

    @property
    def stalled(self):
        """Whether rounding prevents further steps."""
        return self.dual.outcome == NO_PROGRESS

    @property
    def unfinished(self):
        """Whether a limit ended the work."""
        return self.dual.outcome == UNFINISHED

    def pause_after(self, double steps, double cubic):
        """Pause after `steps` more steps and `cubic`·m³ / n, where m of n variables are free; negative: never."""
        self.dual.steps_at_resume, self.dual.pause_steps, self.dual.pause_cubic = self.dual.n_steps, steps, cubic

    def reset_masks(self):
        """Update the masks after the caller has changed `a`, within its bounds and sums, and the gradient with it."""
        set_masks(&self.dual)

    def current_violation(self):
        """The violation, computed from the current gradient, which the caller may have changed."""
        cdef MaxViolation best[MAX_GROUPS]
        scan_all(&self.dual, simd_table(0, False), <const double *> NULL, <const double *> NULL, 0.0, best)
        return self.dual.violation


def restored(segments, lower, upper, a, gradient, kink, state):
    """Return a machine in the state that another process left. Its arrays are copied: they may be read-only."""
    cdef Machine machine = Machine(segments, lower, upper, a.copy(), gradient.copy(), kink)
    machine.dual.n_steps, machine.dual.violation = state[0], state[1]
    machine.dual.outcome = <SolverOutcome> <int> state[2]
    return machine


cdef struct MachineRun:
    Dual *dual
    RowStore *store
    RowStore own_store          # with scratch memory of its own, if machines run concurrently
    WorkingSet work
    Py_ssize_t max_rows
    bint started


cdef struct Slice:              # the machines that have steps to take
    MachineRun **runs
    double tol
    Py_ssize_t n_steps          # of each


cdef void run_machine(MachineRun *run, double tol, Py_ssize_t n_steps) noexcept nogil:
    if not run.started:
        run.dual.status = start_work(&run.work, run.dual, run.store)
        run.started = True
        if run.dual.status != OK:
            run.dual.outcome = FAILED
            return
    n_steps = max(<Py_ssize_t> 1, min(n_steps, run.dual.max_steps - run.dual.n_steps))
    advance(run.dual, run.store, &run.work, tol, n_steps)


cdef void run_slice(void *context, Py_ssize_t first, Py_ssize_t last, int worker) noexcept nogil:
    cdef Slice *slice = <Slice *> context
    cdef Py_ssize_t m
    for m in range(first, last):
        run_machine(slice.runs[m], slice.tol, slice.n_steps)


cdef void update_all_gradients(MachineRun *run) noexcept nogil:
    """End the shrunk problem, if there is one."""
    if run.work.shrunk:
        run.dual.status = unshrink(run.dual, run.store, &run.work)
        if run.dual.status != OK:
            run.dual.outcome = FAILED


cdef bint is_open(const MachineRun *run) noexcept nogil:
    """Whether there are steps to take, or changes that the gradient has not received."""
    if run.dual.outcome != UNFINISHED:
        return False
    return run.work.n_changed > 0 or (
        run.dual.n_steps < run.dual.max_steps and run.own_store.n_computed < run.max_rows)


cdef int private_store(RowStore *store, const RowStore *shared) noexcept nogil:
    """Make a copy of the store that uses one thread and has scratch memory of its own."""
    store[0] = shared[0]
    store.n_threads = 1
    store.n_computed = 0
    store.entries, store.entry_starts, store.w_change, store.entries_capacity = NULL, NULL, NULL, 0
    if shared.kind != LINEAR_PRODUCTS:
        return OK
    store.w_change = <double *> calloc(shared.features.n_features, sizeof(double))
    if shared.entry_starts != NULL:
        store.entry_starts = <Py_ssize_t *> calloc(shared.features.n_features + 2, sizeof(Py_ssize_t))
    return NO_MEMORY if store.w_change == NULL or (shared.entry_starts != NULL and store.entry_starts == NULL) else OK


cdef class Solver:
    """Machines that are solved on the same rows.

    A machine is done when its violation is at most tol, or when it has taken max_steps steps. All are done when
    max_rows kernel rows have been computed, which is tested after each round; if machines have stores of their own,
    each is done when it has computed max_rows rows from now on. Both limits are numbers, or lists with one number per
    machine.
    """

    cdef KernelRows rows
    cdef list machines
    cdef Py_ssize_t n, slice_steps, largest, n_computed_before
    cdef MachineRun *runs
    cdef MachineRun **open_runs
    cdef bint separate          # each machine has a store of its own: machines run concurrently
    cdef bint by_rounds         # there is a limit of rows
    cdef double tol
    cdef int n_threads
    cdef object total_steps

    def __init__(self, KernelRows rows, machines, double tol, max_steps, int n_threads, max_rows=None):
        cdef Machine machine
        cdef Py_ssize_t m, n = len(machines)
        self.rows, self.machines, self.n, self.tol, self.n_threads = rows, list(machines), n, tol, n_threads
        self.by_rounds = max_rows is not None
        self.separate = n > 1 and rows.store.kind != CACHED_ROWS
        self.slice_steps, self.n_computed_before = FIRST_SLICE, rows.store.n_computed
        step_limits = max_steps if isinstance(max_steps, list) else [max_steps] * n
        row_limits = max_rows if isinstance(max_rows, list) else [max_rows if self.by_rounds else PY_SSIZE_T_MAX] * n
        self.total_steps = sum(step_limits)
        rows.pop_error()        # left over from an earlier call that something else ended
        self.runs = <MachineRun *> calloc(n, sizeof(MachineRun))
        self.open_runs = <MachineRun **> calloc(n, sizeof(MachineRun *))
        if self.runs == NULL or self.open_runs == NULL:
            raise_for_status(NO_MEMORY)
        for m in range(n):
            machine = machines[m]
            self.runs[m].dual = &machine.dual
            machine.dual.outcome = UNFINISHED
            machine.dual.max_steps, self.runs[m].max_rows = step_limits[m], row_limits[m]
            self.largest = max(self.largest, machine.dual.n)
            self.runs[m].store = &rows.store
            if self.separate:
                self.runs[m].store = &self.runs[m].own_store
                raise_for_status(private_store(&self.runs[m].own_store, &rows.store))

    def __dealloc__(self):
        self.free_runs()

    cdef void free_runs(self) noexcept:
        cdef Py_ssize_t m
        for m in range(self.n if self.runs != NULL else 0):
            free_work(&self.runs[m].work)
            if self.separate:
                free(self.runs[m].own_store.w_change)
                free(self.runs[m].own_store.entries)
                free(self.runs[m].own_store.entry_starts)
        free(self.runs)
        free(self.open_runs)
        self.runs, self.open_runs, self.n = NULL, NULL, 0

    cdef int pop_paused(self, list paused) except -1:
        """Append the numbers of the paused machines: their gradients are then up to date, and they are open again."""
        cdef MachineRun *run
        cdef Py_ssize_t m
        for m in range(self.n):
            run = &self.runs[m]
            if run.dual.outcome != PAUSED:
                continue
            update_all_gradients(run)
            run.dual.outcome = UNFINISHED if run.dual.status == OK else FAILED
            if run.dual.outcome == UNFINISHED:
                run.work.until_check = 1        # after a Newton step the same points are active: shrink at once
                paused.append(m)
        return 0

    cdef Py_ssize_t find_open(self) noexcept:
        """List the machines that have steps to take. The others release their memory. Returns their number."""
        cdef MachineRun *run
        cdef Py_ssize_t m, n_open = 0, n_behind = 0
        for m in range(self.n):
            run = &self.runs[m]
            n_behind += run.work.n_changed
            if is_open(run):
                self.open_runs[n_open] = run
                n_open += 1
            elif run.started:
                update_all_gradients(run)
                free_work(&run.work)
                run.started = False
        if not self.separate and n_behind == 0 and self.rows.store.n_computed >= self.runs[0].max_rows:
            return 0
        if self.largest > 2 * MIN_SHRINK_POINTS:    # a few at a time: each has memory for its shrunk problem
            n_open = min(n_open, <Py_ssize_t> self.n_threads)
        return n_open

    cdef int check_failures(self) except -1:
        cdef Py_ssize_t m
        cdef int status = OK
        for m in range(self.n):
            if self.runs[m].dual.outcome == FAILED:
                status = self.runs[m].dual.status
        error = self.rows.pop_error()
        if error is not None:
            raise error
        raise_for_status(status)
        return 0

    def run(self, tick=None):
        """Solve, until a machine pauses or all are done. Returns the numbers of the machines that have paused: their
        variables may be changed before the next call. An empty list: all are done.

        Several times a second `tick(done, total, violation)` is called and signals are handled. Machines are divided
        among the threads if their rows allow it; a single one uses the threads for its passes.
        """
        cdef list paused = []
        cdef Slice slice
        cdef Py_ssize_t m, n_open = 1, done, n_computed
        cdef double worst
        try:
            while self.n > 0 and n_open > 0:
                self.pop_paused(paused)
                if paused:
                    break
                n_open = self.find_open()
                done, worst = 0, 0.0
                for m in range(self.n):
                    done += self.runs[m].dual.n_steps
                    worst = max(worst, self.runs[m].dual.violation)
                slice.runs, slice.tol = self.open_runs, self.tol
                slice.n_steps = 1 if self.by_rounds else self.slice_steps
                started = perf_counter()
                with nogil:
                    if self.separate:
                        run_team(0, n_open, 1,
                                 self.n_threads if n_open * slice.n_steps * self.largest >= MIN_SHARED_WORK else 1,
                                 run_slice, &slice)
                    elif n_open > 0:
                        self.rows.store.n_threads = self.n_threads
                        run_slice(&slice, 0, 1, 0)
                self.slice_steps = better_step(self.slice_steps, perf_counter() - started)
                if self.separate:
                    n_computed = self.n_computed_before
                    for m in range(self.n):
                        n_computed += self.runs[m].own_store.n_computed
                    self.rows.store.n_computed = n_computed
                PyErr_CheckSignals()
                if tick is not None:
                    tick(done, self.total_steps, worst)
                self.check_failures()
        finally:
            if not paused:
                self.free_runs()
        return paused


def solve(KernelRows rows, machines, double tol, max_steps, int n_threads, tick=None, max_rows=None):
    """Solve the machines without interruption by pauses; the arguments are those of `Solver` and `Solver.run`."""
    solver = Solver(rows, machines, tol, max_steps, n_threads, max_rows)
    while solver.run(tick):
        pass
