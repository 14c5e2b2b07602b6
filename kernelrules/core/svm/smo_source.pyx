"""The dual solver for C callers: structs in, a status out, without Python. The contract is in api.h.

The row source has a cache of its own. The solver runs in slices, after each of which `proceed` decides whether to
continue. At the end K·beta is computed again from rows, so that report and gradient carry no rounding error of many
small steps.

Invariant: of the caller's memory only state and report are written.
"""

from libc.math cimport fabs, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from kernelrules.core.simd.cpu cimport MAX_THREADS, simd_level
from kernelrules.core.svm.gradient cimport add_change
from kernelrules.core.svm.rows cimport CACHED_ROWS, RowStore, Segment, free_slots, make_slots
from kernelrules.core.simd.dispatch cimport simd_table
from kernelrules.core.base.status cimport BAD_ARGUMENT, MAX_ITER, NO_MEMORY, OK, STALLED, STOPPED
from kernelrules.core.svm.steps cimport (
    FAILED, MAX_GROUPS, SOLVED, UNFINISHED, Dual, MaxViolation, find_violation, is_free, set_masks,
)
from kernelrules.core.svm.working_set cimport WorkingSet, advance, free_work, start_work

cdef enum:
    SLICE_STEPS = 2000              # between two calls of `proceed`
    DEFAULT_CACHE_BYTES = 100 << 20  # for kernel rows, if options.cache_bytes is 0

cdef double TOL_FACTOR = 0.99       # of tol, while solving: rounding then rarely costs another round


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
    """Cut the variables at the split, and at the second copy of the points. Returns the number of segments."""
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


cdef int renew_gradient(Dual *dual, RowStore *store, const kr_smo_problem *problem, double *beta, Py_ssize_t *points,
                        const void **rows) noexcept nogil:
    """gradient = K·beta + linear, from kernel rows."""
    cdef Py_ssize_t v, i, n = problem.n_points, n_used = 0
    for v in range(dual.n):
        dual.gradient[v] = problem.linear[v % n]
    for i in range(n):
        beta[n_used] = dual.a[i] + (dual.a[n + i] if dual.n > n else 0.0)
        points[n_used] = i
        n_used += beta[n_used] != 0
    return add_change(store, points, beta, n_used, rows, dual.segments, dual.n_segments, dual.gradient)


cdef double offset_of(const Dual *dual, int group) noexcept nogil:
    """Return the mean over free variables of -(gradient + slope); without any, the middle of the allowed interval."""
    cdef double total = 0, most = -1e300, least = 1e300, a
    cdef Py_ssize_t v, n_free = 0
    cdef int s
    for s in range(dual.n_segments):
        if dual.segments[s].group != group:
            continue
        for v in range(dual.segments[s].start, dual.segments[s].start + dual.segments[s].n):
            a = dual.a[v]
            if is_free(dual, v):
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


cdef void write_report(Dual *dual, const RowStore *store, const kr_smo_problem *problem,
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


cdef int run(Dual *dual, RowStore *store, WorkingSet *work, const kr_smo_problem *problem,
             const kr_smo_options *options, kr_smo_report *report, double *beta, Py_ssize_t *points,
             const void **rows) noexcept nogil:
    """Solve in slices and compute the gradient again; repeated at most twice, if rounding had hidden a violation."""
    cdef MaxViolation best[MAX_GROUPS]
    cdef Py_ssize_t limit = dual.max_steps
    cdef int status = OK
    for _ in range(3):
        status = renew_gradient(dual, store, problem, beta, points, rows)
        dual.outcome = UNFINISHED
        while status == OK and dual.outcome == UNFINISHED and dual.n_steps < limit:
            advance(dual, store, work, TOL_FACTOR * options.tol, min(<Py_ssize_t> SLICE_STEPS, limit - dual.n_steps))
            if dual.outcome == FAILED:
                status = dual.status
            elif options.proceed != NULL:
                write_report(dual, store, problem, report)
                if options.proceed(options.context, report) == 0 and dual.outcome == UNFINISHED:
                    status = STOPPED
        if status < 0:
            return status
        if status == OK:
            status = renew_gradient(dual, store, problem, beta, points, rows)
            if status != OK:
                return status
        find_violation(dual, store, best)
        write_report(dual, store, problem, report)
        if status != OK or dual.violation <= options.tol or dual.outcome != SOLVED:
            break
    if status == STOPPED:
        return STOPPED
    if dual.violation <= options.tol and isfinite(report.objective):
        return OK
    return STALLED if dual.outcome != UNFINISHED else MAX_ITER


cdef int solve_source(const kr_row_source *source, const kr_smo_problem *problem, const kr_smo_options *options,
                      kr_smo_state *state, kr_smo_report *report) noexcept nogil:
    cdef Segment segments[4]
    cdef Dual dual
    cdef RowStore store
    cdef WorkingSet work
    cdef double *numbers = NULL
    cdef Py_ssize_t *points = NULL
    cdef const void **rows = NULL
    cdef Py_ssize_t n, i, cache
    cdef int status
    if report == NULL or not is_valid(source, problem, options, state):
        return BAD_ARGUMENT
    memset(&dual, 0, sizeof(Dual))
    dual.pause_steps = -1              # no pauses: C callers take no Newton steps
    memset(&store, 0, sizeof(RowStore))
    memset(&work, 0, sizeof(WorkingSet))
    memset(report, 0, sizeof(kr_smo_report))
    n, cache = problem.n_points, DEFAULT_CACHE_BYTES
    if options.cache_bytes > 0:
        cache = <Py_ssize_t> min(options.cache_bytes, (<size_t> -1) >> 1)
    store.kind, store.n, store.n_threads = CACHED_ROWS, n, min(options.n_threads, <int> MAX_THREADS)
    store.simd, store.diagonal, store.source = simd_table(simd_level(), False), problem.diagonal, source
    dual.n, dual.segments, dual.kink = problem.n_variables, segments, problem.kink
    dual.max_steps = options.max_steps if options.max_steps > 0 else max(<Py_ssize_t> 10000000, 100 * n)
    dual.n_segments = make_segments(problem, segments)
    dual.lower, dual.upper, dual.a = problem.lower, problem.upper, state.a
    numbers = <double *> malloc((3 * dual.n + n) * sizeof(double))
    points = <Py_ssize_t *> malloc(n * sizeof(Py_ssize_t))
    rows = <const void **> malloc(n * sizeof(void *))
    status = make_slots(&store, max(<Py_ssize_t> 2, cache // (n * <Py_ssize_t> sizeof(double))))
    if numbers == NULL or points == NULL or rows == NULL:
        status = NO_MEMORY
    if status == OK:
        status = start_work(&work, &dual, &store)
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
