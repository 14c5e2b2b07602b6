"""The dual solver as C callers see it: structs in, a status out, without Python. The contract is in api.h.

The row source gets a cache of its own and the solver is run in slices, between which the caller is asked whether to go
on. At the end K·beta is made anew from rows, so that report and gradient carry no rounding from many small steps.

Invariant: of the caller's memory only state and report are written.
"""

from libc.math cimport fabs, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.machine cimport MOST_THREADS, simd_level
from kernelrules.core.rows cimport CACHED, Segment, Store, add_change, free_slots, make_slots
from kernelrules.core.simd cimport pick
from kernelrules.core.status cimport BAD_ARGUMENT, MAX_ITER, NO_MEMORY, OK, STALLED, STOPPED
from kernelrules.core.steps cimport FAILED, GROUPS, MORE, SOLVED, Best, Dual, scan_all, set_masks
from kernelrules.core.working_set cimport Work, advance, free_work, start_work

cdef enum:
    SLICE = 2000                    # steps between two questions whether to go on
    CACHE = 100 << 20               # bytes of kernel rows, where the caller does not say

cdef double AIM = 0.99              # of tol, while solving: what rounding adds then rarely costs another round


cdef bint is_valid(const kr_row_source *source, const kr_smo_problem *problem, const kr_smo_options *options,
                   const kr_smo_state *state) noexcept nogil:
    cdef Py_ssize_t v, n
    if source == NULL or source.fill == NULL or problem == NULL or options == NULL or state == NULL:
        return False
    n = problem.n_variables
    if problem.n_points < 1 or (n != problem.n_points and n != 2 * problem.n_points):
        return False
    if problem.split < 1 or problem.split > n or not problem.kink >= 0 or not options.tol > 0:
        return False
    if options.n_threads < 1 or options.max_steps < 0 or state.a == NULL or state.gradient == NULL:
        return False
    if problem.diagonal == NULL or problem.linear == NULL or problem.lower == NULL or problem.upper == NULL:
        return False
    for v in range(n):
        if not (problem.lower[v] <= state.a[v] <= problem.upper[v] and problem.lower[v] <= 0 <= problem.upper[v]):
            return False
    return True


cdef int make_segments(const kr_smo_problem *problem, Segment *segments) noexcept nogil:
    """Runs of variables, cut at the split and where the points begin again. How many."""
    cdef Py_ssize_t cuts[4]
    cdef Py_ssize_t start = 0, n = problem.n_points, last
    cdef int count = 0, k
    cuts[0], cuts[1], cuts[2] = min(problem.split, n), n, problem.split
    cuts[3] = problem.n_variables
    for k in range(4):
        last = cuts[k]
        if last <= start:
            continue
        segments[count].start, segments[count].n, segments[count].point = start, last - start, start % n
        segments[count].group = 0 if start < problem.split else 1
        count += 1
        start = last
    return count


cdef int renew_gradient(Dual *dual, Store *store, const kr_smo_problem *problem, double *beta, Py_ssize_t *points,
                        const double **rows) noexcept nogil:
    """gradient = K·beta + linear from kernel rows."""
    cdef Py_ssize_t v, i, n = problem.n_points, n_used = 0
    for v in range(dual.n):
        dual.gradient[v] = problem.linear[v % n]
    for i in range(n):
        beta[n_used] = dual.a[i] + (dual.a[n + i] if dual.n > n else 0.0)
        points[n_used] = i
        n_used += beta[n_used] != 0
    return add_change(store, points, beta, n_used, rows, dual.segments, dual.n_segments, dual.gradient)


cdef double offset_of(const Dual *dual, int group) noexcept nogil:
    """The mean over free variables of -(gradient + slope); else the middle of what the bounds allow."""
    cdef double total = 0, most = -1e300, least = 1e300, a
    cdef Py_ssize_t v, n_free = 0
    cdef int s
    for s in range(dual.n_segments):
        if dual.segments[s].group != group:
            continue
        for v in range(dual.segments[s].start, dual.segments[s].start + dual.segments[s].n):
            a = dual.a[v]
            if dual.lower[v] < a < dual.upper[v] and (a != 0 or dual.kink == 0):
                total += dual.up[v] - dual.gradient[v]
                n_free += 1
            if a < dual.upper[v]:
                most = max(most, dual.up[v] - dual.gradient[v])
            if a > dual.lower[v]:
                least = min(least, -dual.low[v] - dual.gradient[v])
    if n_free > 0:
        return total / n_free
    if most <= -1e299:
        most = least
    if least >= 1e299:
        least = most
    return (most + least) / 2 if fabs(most) < 1e299 else 0.0


cdef void write_report(Dual *dual, const Store *store, const kr_smo_problem *problem,
                       kr_smo_report *report) noexcept nogil:
    cdef double value = 0, linear
    cdef Py_ssize_t v
    for v in range(dual.n):
        linear = problem.linear[v % problem.n_points]
        value += dual.a[v] * (0.5 * (dual.gradient[v] + linear)) + dual.kink * fabs(dual.a[v])
    report.objective, report.violation = value, max(dual.violation, 0.0)
    report.offset[0] = offset_of(dual, 0)
    report.offset[1] = offset_of(dual, 1) if problem.split < dual.n else 0.0
    report.n_steps, report.n_rows = dual.n_steps, store.n_computed


cdef int run(Dual *dual, Store *store, Work *work, const kr_smo_problem *problem, const kr_smo_options *options,
             kr_smo_report *report, double *beta, Py_ssize_t *points, const double **rows) noexcept nogil:
    """Solve in slices, make the gradient anew, and once more where rounding had hidden a violation."""
    cdef Best best[GROUPS]
    cdef Py_ssize_t limit = dual.max_steps
    cdef double example = 0
    cdef int status = OK
    for _ in range(3):
        status = renew_gradient(dual, store, problem, beta, points, rows)
        dual.outcome = MORE
        while status == OK and dual.outcome == MORE and dual.n_steps < limit:
            advance(dual, store, work, AIM * options.tol, min(<Py_ssize_t> SLICE, limit - dual.n_steps), &example)
            if dual.outcome == FAILED:
                status = dual.status
            elif options.proceed != NULL:
                write_report(dual, store, problem, report)
                if options.proceed(options.context, report) == 0 and dual.outcome == MORE:
                    status = STOPPED
        if status < 0:
            return status
        if status == OK:
            status = renew_gradient(dual, store, problem, beta, points, rows)
            if status != OK:
                return status
        scan_all(dual, store.simd, <const double *> NULL, <const double *> NULL, 0.0, best)
        write_report(dual, store, problem, report)
        if status != OK or dual.violation <= options.tol or dual.outcome != SOLVED:
            break
    if status == STOPPED:
        return STOPPED
    if dual.violation <= options.tol and isfinite(report.objective):
        return OK
    return STALLED if dual.outcome != MORE else MAX_ITER


cdef int solve_source(const kr_row_source *source, const kr_smo_problem *problem, const kr_smo_options *options,
                      kr_smo_state *state, kr_smo_report *report) noexcept nogil:
    cdef Segment segments[4]
    cdef Dual dual
    cdef Store store
    cdef Work work
    cdef double example = 0
    cdef double *numbers = NULL
    cdef Py_ssize_t *points = NULL
    cdef const double **rows = NULL
    cdef Py_ssize_t n, i, cache
    cdef int status
    if report == NULL or not is_valid(source, problem, options, state):
        return BAD_ARGUMENT
    memset(&dual, 0, sizeof(Dual))
    dual.wait = -1              # no pauses: Newton steps are the package's
    memset(&store, 0, sizeof(Store))
    memset(&work, 0, sizeof(Work))
    memset(report, 0, sizeof(kr_smo_report))
    n, cache = problem.n_points, CACHE
    if options.cache_bytes > 0:
        cache = <Py_ssize_t> min(options.cache_bytes, (<size_t> -1) >> 1)
    store.kind, store.n, store.n_threads = CACHED, n, min(options.n_threads, <int> MOST_THREADS)
    store.simd, store.diagonal, store.source = pick(simd_level(), &example), problem.diagonal, source
    dual.n, dual.segments, dual.kink = problem.n_variables, segments, problem.kink
    dual.max_steps = options.max_steps if options.max_steps > 0 else max(<Py_ssize_t> 10000000, 100 * n)
    dual.n_segments = make_segments(problem, segments)
    dual.lower, dual.upper, dual.a = problem.lower, problem.upper, state.a
    numbers = <double *> malloc((3 * dual.n + n) * sizeof(double))
    points = <Py_ssize_t *> malloc(n * sizeof(Py_ssize_t))
    rows = <const double **> malloc(n * sizeof(void *))
    status = make_slots(&store, max(<Py_ssize_t> 2, cache // (n * <Py_ssize_t> sizeof(double))), sizeof(double))
    if numbers == NULL or points == NULL or rows == NULL:
        status = NO_MEMORY
    if status == OK:
        status = start_work(&work, &dual, &store, sizeof(double))
    if status == OK:
        dual.gradient, dual.up, dual.low = numbers, numbers + dual.n, numbers + 2 * dual.n
        set_masks(&dual)
        status = run(&dual, &store, &work, problem, options, report, numbers + 3 * dual.n, points, rows)
    if status >= 0:
        for i in range(n):
            state.gradient[i] = dual.gradient[i]
    free_work(&work)
    free_slots(&store)
    free(numbers)
    free(points)
    free(rows)
    return status
