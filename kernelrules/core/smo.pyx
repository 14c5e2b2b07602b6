"""The dual solver as the package calls it: machines, one dual problem each, solved side by side or in turn.

steps.pyx says what is minimised, working_set.pyx on which variables. Here the work is cut into slices, between which
signals are looked at and progress is told, and spread over threads where machines are independent.

Invariant: a machine's solution depends neither on the others nor on the number of threads.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.pace cimport better_step
from kernelrules.core.rows cimport CACHED, PRODUCTS, KernelRows, Segment, Store
from kernelrules.core.simd cimport pick
from kernelrules.core.status cimport NO_MEMORY, OK
from kernelrules.core.steps cimport (
    FAILED, GROUPS, MORE, PAUSED, STALLED, Best, Dual, Outcome, scan_all, set_masks,
)
from kernelrules.core.types cimport PY_SSIZE_T_MAX
from kernelrules.core.working_set cimport SMALL, Work, advance, free_work, start_work, unshrink

from time import perf_counter

from kernelrules.core.status import raise_for_status


cdef class Machine:
    """One dual problem and its state: a start that satisfies the constraints, later the solution.

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
        self.dual.wait = -1
        self.a, self.gradient = a.base, gradient.base
        self.kept = (lower, upper, a, gradient, masks, storage)
        set_masks(&self.dual)

    def __reduce__(self):
        """For a solver in another process: the problem and how far it is."""
        cdef const Segment *at
        segments = []
        for s in range(self.dual.n_segments):
            at = &self.dual.segments[s]
            segments.append((at.start, at.n, at.point, at.group))
        state = self.dual.n_steps, self.dual.violation, <int> self.dual.outcome
        lower, upper = self.kept[0].base, self.kept[1].base
        return resumed, (segments, lower, upper, self.a, self.gradient, self.dual.kink, state)

    @property
    def n_steps(self):
        """Steps taken so far."""
        return self.dual.n_steps

    @property
    def violation(self):
        """Of the optimality conditions, when last looked at."""
        return self.dual.violation

    @property
    def stalled(self):
        """Whether rounding kept the last steps from changing anything."""
        return self.dual.outcome == STALLED

    @property
    def unfinished(self):
        """Whether the limit on steps ended the work."""
        return self.dual.outcome == MORE

    def pause_after(self, double steps, double cubic):
        """Pause after `steps` more steps and `cubic`·m³ / n, m of n variables being free; negative: never.
        `solve` then needs its argument `improve`."""
        self.dual.resumed, self.dual.wait, self.dual.cubic = self.dual.n_steps, steps, cubic

    def moved(self):
        """The caller has changed `a` within its bounds and sums, and the gradient with it."""
        set_masks(&self.dual)

    def look(self):
        """The violation for the gradient as it is now (the caller may have changed it)."""
        cdef Best best[GROUPS]
        cdef double example = 0
        scan_all(&self.dual, pick(0, &example), <const double *> NULL, <const double *> NULL, 0.0, best)
        return self.dual.violation


def resumed(segments, lower, upper, a, gradient, kink, state):
    """A machine as another process left it. What comes over a network may be read-only."""
    cdef Machine machine = Machine(segments, lower, upper, a.copy(), gradient.copy(), kink)
    machine.dual.n_steps, machine.dual.violation = state[0], state[1]
    machine.dual.outcome = <Outcome> <int> state[2]
    return machine


cdef struct Job:
    Dual *dual
    Store *store
    Store lent                  # a copy of its own, where machines run side by side
    Work work
    bint started


cdef void run_job(Job *job, double tol, Py_ssize_t n_steps, Py_ssize_t max_steps, bint single) noexcept nogil:
    cdef float single_example = 0
    cdef double double_example = 0
    if not job.started:
        job.dual.status = start_work(&job.work, job.dual, job.store, sizeof(float) if single else sizeof(double))
        job.started = True
        if job.dual.status != OK:
            job.dual.outcome = FAILED
            return
    n_steps = max(<Py_ssize_t> 1, min(n_steps, max_steps - job.dual.n_steps))
    if single:
        advance(job.dual, job.store, &job.work, tol, n_steps, &single_example)
    else:
        advance(job.dual, job.store, &job.work, tol, n_steps, &double_example)


cdef void settle_job(Job *job, bint single) noexcept nogil:
    """Leave the solution with all its gradients up to date."""
    cdef float single_example = 0
    cdef double double_example = 0
    if not job.work.shrunk:
        return
    if single:
        job.dual.status = unshrink(job.dual, job.store, &job.work, &single_example)
    else:
        job.dual.status = unshrink(job.dual, job.store, &job.work, &double_example)
    if job.dual.status != OK:
        job.dual.outcome = FAILED


cdef bint is_open(const Job *job, Py_ssize_t max_steps) noexcept nogil:
    """Whether there are steps to be taken, or gradients that have not seen all of them."""
    return job.dual.outcome == MORE and (job.dual.n_steps < max_steps or job.work.n_changed > 0)


cdef int lend(Store *store, const Store *whole) noexcept nogil:
    """A copy of the store that works with one thread and scratch memory of its own."""
    store[0] = whole[0]
    store.n_threads = 1
    store.n_computed = 0
    store.order, store.starts, store.change, store.n_entries = NULL, NULL, NULL, 0
    if whole.kind != PRODUCTS:
        return OK
    store.change = <double *> calloc(whole.data.n_features, sizeof(double))
    if whole.starts != NULL:
        store.starts = <Py_ssize_t *> calloc(whole.data.n_features + 2, sizeof(Py_ssize_t))
    return NO_MEMORY if store.change == NULL or (whole.starts != NULL and store.starts == NULL) else OK


def solve(KernelRows rows, machines, double tol, Py_ssize_t max_steps, int n_threads, tick=None, max_rows=None,
          improve=None):
    """Solve the machines, all on the same rows, until each one's violation is at most tol or it took max_steps steps;
    or until max_rows kernel rows were computed in all, or by each one from now on where each has a store of its own;
    that is looked at after each round.

    `tick(done, total, violation)` is called, and signals are looked at, several times a second. Machines are spread
    over the threads where their rows allow it; one alone uses the threads inside. `improve(m)` is called when machine m
    has paused, and may change its variables.
    """
    cdef Py_ssize_t n = len(machines), m, n_open = n, n_behind, done, slice_steps = 500
    cdef bint apart = n > 1 and rows.store.kind != CACHED, single = rows.single, endless = max_rows is None
    cdef Job *jobs = <Job *> calloc(n, sizeof(Job))
    cdef Job **open_jobs = <Job **> malloc(n * sizeof(Job *))
    cdef Machine machine
    cdef Py_ssize_t largest = 0
    cdef Py_ssize_t most_rows = PY_SSIZE_T_MAX if endless else max_rows
    cdef double worst
    cdef int status = OK
    rows.give_failure()             # of an earlier call that something else ended
    if jobs == NULL or open_jobs == NULL:
        free(jobs)
        free(open_jobs)
        raise_for_status(NO_MEMORY)
    try:
        for m in range(n):
            machine = machines[m]
            jobs[m].dual = &machine.dual
            machine.dual.outcome = MORE
            machine.dual.max_steps = max_steps
            largest = max(largest, machine.dual.n)
            jobs[m].store = &rows.store
            if apart:
                jobs[m].store = &jobs[m].lent
                raise_for_status(lend(&jobs[m].lent, &rows.store))
        while n_open > 0:
            n_open, n_behind, done, worst = 0, 0, 0, 0.0
            for m in range(n):
                done += jobs[m].dual.n_steps
                n_behind += jobs[m].work.n_changed
                worst = max(worst, jobs[m].dual.violation)
                if jobs[m].dual.outcome == PAUSED:
                    settle_job(&jobs[m], single)
                    jobs[m].dual.outcome = MORE if jobs[m].dual.status == OK else FAILED
                    if jobs[m].dual.outcome == MORE:
                        improve(m)
                        jobs[m].work.until_check = 1        # most points matter no more than they did: shrink at once
                if is_open(&jobs[m], max_steps) and (jobs[m].lent.n_computed < most_rows or jobs[m].work.n_changed > 0):
                    open_jobs[n_open] = &jobs[m]
                    n_open += 1
                elif jobs[m].started:
                    settle_job(&jobs[m], single)
                    free_work(&jobs[m].work)
                    jobs[m].started = False
            if not apart and rows.store.n_computed >= most_rows and n_behind == 0:
                break
            started = perf_counter()
            if largest > 2 * SMALL:             # a few at a time: each has memory of its own for the shrunk problem
                n_open = min(n_open, <Py_ssize_t> n_threads)
            with nogil:
                if apart:
                    for m in prange(n_open, num_threads=n_threads, schedule="dynamic", chunksize=1):
                        run_job(open_jobs[m], tol, slice_steps if endless else 1, max_steps, single)
                else:
                    rows.store.n_threads = n_threads
                    if n_open > 0:
                        run_job(open_jobs[0], tol, slice_steps if endless else 1, max_steps, single)
            slice_steps = better_step(slice_steps, perf_counter() - started)
            PyErr_CheckSignals()
            if tick is not None:
                tick(done, max_steps * n, worst)
            for m in range(n):
                if jobs[m].dual.outcome == FAILED:
                    status = jobs[m].dual.status
            failure = rows.give_failure()
            if failure is not None:
                raise failure
            raise_for_status(status)
    finally:
        for m in range(n):
            free_work(&jobs[m].work)
            if apart:
                rows.store.n_computed += jobs[m].lent.n_computed
                free(jobs[m].lent.change)
                free(jobs[m].lent.order)
                free(jobs[m].lent.starts)
        free(jobs)
        free(open_jobs)
