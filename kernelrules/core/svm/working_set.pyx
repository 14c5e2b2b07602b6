"""Working sets and shrinking: which variables SMO works on, and how the gradients of the others are updated.

The pair of variables of a step (LIBSVM's working set) is selected in steps.pyx; sets here are blocks of many points.

steps.pyx defines the problem and a step. If the kernel matrix is in memory, steps are taken on all variables, later
on the active ones, which are free or violate: the problem is shrunk, its rows of the matrix are gathered when first
used, and the gradients of the others are updated when the small problem is solved. Without the matrix, each round
takes the points that violate most, solves their small problem, and updates the gradient of all others once (Joachims
1998, "Making large-scale SVM learning practical", for both).

Invariant: the sequence of iterates depends neither on the number of threads nor on how the work is cut into slices.
"""

from libc.math cimport sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kernelrules.core.base.memory cimport give_back, take
from kernelrules.core.svm.gradient cimport add_change
from kernelrules.core.svm.rows cimport LINEAR_PRODUCTS, WHOLE_MATRIX, find_block, item_size, row_cost
from kernelrules.core.base.status cimport NO_MEMORY, OK
from kernelrules.core.svm.steps cimport (
    FAILED, MAX_GROUPS, NAN_VIOLATION, NO_PROGRESS, PAUSED, SOLVED, UNFINISHED, MaxViolation, RowView, SolverOutcome,
    find_violation, is_free, set_mask, take_steps,
)


cdef enum:
    SET_SIZE = 2048                 # points of a working set whose rows are computed
    LARGE_SET_SIZE = 4096           # if few rows can be cached: fewer rounds compute fewer rows
    MIN_SET_SIZE = 64               # in very little memory
    LINEAR_SET_SIZE = 512           # for the linear kernel: its products are expensive, and the block stays in cache
    N_ARRAYS = 6                    # of the local problem
    SHRINK_CHECK_INTERVAL = 500     # least steps between two determinations of the active points
    SMALL_MATRIX_POINTS = 8192      # up to here a shrunk problem has at most three quarters of the points, else half

MAX_SET, LINEAR_SET = LARGE_SET_SIZE, LINEAR_SET_SIZE   # for svm: points of the largest set, and of a linear machine's

cdef double MAX_UNINTERRUPTED_NS = 3e8      # for a block, its solution, or rows: no signal is handled meanwhile
cdef double SHRINK_AGAIN_SHARE = 0.7        # a shrunk problem is shrunk again when at most this share is active
cdef double SHRUNK_TOL_FACTOR = 10.0        # times tol: a shrunk problem is solved to it before all points are scanned
cdef double SET_TOL_FACTOR = 0.1            # times the violation of the whole problem: to which a set is solved
cdef double LARGE_SET_TOL_FACTOR = 0.3      # looser, because rows are expensive and the next round refines


# ---- working sets ----------------------------------------------------------------------------------------------

cdef Py_ssize_t count_points(const Dual *dual) noexcept nogil:
    """Return the number of points; two groups over the same points count once."""
    cdef Py_ssize_t first = dual.segments[0].n, n = dual.n
    return first if dual.n_segments == 2 and dual.segments[0].point == dual.segments[1].point else n


cdef Py_ssize_t count_computed(const Dual *dual, const RowStore *store) noexcept nogil:
    """Return the size of a working set whose kernel values are computed.

    Its block takes at most half of the memory of the rows, and computing the block, or the rows required at the same
    time, stays within the time between two checks for signals."""
    cdef double n_values = store.n_slots * <double> store.n
    cdef Py_ssize_t block_points = max(<Py_ssize_t> MIN_SET_SIZE, <Py_ssize_t> sqrt(n_values / 2))
    cdef Py_ssize_t q = SET_SIZE
    cdef double cost = row_cost(store)
    if store.dense == NULL:                     # blocks are gathered from whole rows
        q = min(q, store.n_slots)
        q = min(q, <Py_ssize_t> (3 * MAX_UNINTERRUPTED_NS / cost)) if cost > 0 else q
    else:
        q = LARGE_SET_SIZE if store.n_slots < store.n // 2 and block_points >= LARGE_SET_SIZE else q
        q = min(q, block_points) if store.n_slots < store.n else q
        q = min(q, <Py_ssize_t> sqrt(2 * MAX_UNINTERRUPTED_NS * store.n / cost))
    return max(<Py_ssize_t> 2, min(q, count_points(dual)))


cdef int start_work(WorkingSet *work, const Dual *dual, const RowStore *store) noexcept nogil:
    """Allocate memory for a problem of this size. free_work() must follow."""
    cdef Py_ssize_t q = SET_SIZE, n = dual.n, itemsize = item_size(store)
    cdef bint keeps_old = store.kind == LINEAR_PRODUCTS, whole = store.kind == WHOLE_MATRIX
    memset(work, 0, sizeof(WorkingSet))
    if store.kind == LINEAR_PRODUCTS:
        q = 2 * LINEAR_SET_SIZE if n <= 2 * LINEAR_SET_SIZE else LINEAR_SET_SIZE
    elif whole:
        q = count_points(dual)
        q = q * 3 // 4 if q <= SMALL_MATRIX_POINTS else q // 2
    else:
        q = count_computed(dual, store)
    work.size = q
    work.until_check = max(<Py_ssize_t> SHRINK_CHECK_INTERVAL, min(q, <Py_ssize_t> 4 * SHRINK_CHECK_INTERVAL))
    if whole and q < MIN_SHRINK_POINTS:
        return OK
    if whole:
        work.active = <char *> malloc(store.n)
        work.present = <char *> malloc(q)
        work.pending = <double *> calloc(store.n, sizeof(double))
        if work.active == NULL or work.present == NULL or work.pending == NULL:
            return NO_MEMORY
    work.members = <Py_ssize_t *> malloc(q * sizeof(Py_ssize_t))
    work.old_members = <Py_ssize_t *> malloc(q * sizeof(Py_ssize_t))
    work.old_place = <Py_ssize_t *> malloc(q * sizeof(Py_ssize_t))
    work.place = <Py_ssize_t *> malloc((1 if whole else store.n) * sizeof(Py_ssize_t))
    work.candidates = <Py_ssize_t *> malloc((1 if whole else n) * sizeof(Py_ssize_t))
    work.keys = <double *> malloc((1 if whole else n) * sizeof(double))
    work.rows = <const void **> malloc(q * sizeof(void *))
    work.block = take(q * q * itemsize)
    work.old_block = take((q * q if keeps_old else 1) * itemsize)
    work.diagonal = malloc(q * itemsize)
    work.segments = <Segment *> malloc(dual.n_segments * sizeof(Segment))
    work.origins = <int *> malloc(dual.n_segments * sizeof(int))
    work.arrays = <double *> malloc(N_ARRAYS * 2 * q * sizeof(double))
    work.changed = <Py_ssize_t *> malloc(q * sizeof(Py_ssize_t))
    work.changes = <double *> malloc(q * sizeof(double))
    if work.members == NULL or work.old_members == NULL or work.old_place == NULL or work.place == NULL \
            or work.candidates == NULL or work.keys == NULL or work.rows == NULL or work.block == NULL \
            or work.old_block == NULL or work.diagonal == NULL or work.segments == NULL or work.origins == NULL \
            or work.arrays == NULL or work.changed == NULL or work.changes == NULL:
        return NO_MEMORY
    for n in range(1 if whole else store.n):
        work.place[n] = -1
    return OK


cdef void free_work(WorkingSet *work) noexcept nogil:
    free(work.members)
    free(work.old_members)
    free(work.old_place)
    free(work.place)
    free(work.candidates)
    free(work.keys)
    free(work.rows)
    give_back(work.block)
    give_back(work.old_block)
    free(work.diagonal)
    free(work.segments)
    free(work.origins)
    free(work.arrays)
    free(work.changed)
    free(work.changes)
    free(work.active)
    free(work.present)
    free(work.pending)
    memset(work, 0, sizeof(WorkingSet))


cdef void select_highest(double *keys, Py_ssize_t *items, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Bring the k items with the highest keys to the front, in any order (quickselect)."""
    cdef Py_ssize_t low = 0, high = n - 1, i, j
    cdef double pivot
    while low < high:
        pivot = keys[low + (high - low) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] > pivot:
                i += 1
            while keys[j] < pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                items[i], items[j] = items[j], items[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k > i:
            low = i
        else:
            return


cdef Py_ssize_t take_violators(const Dual *dual, WorkingSet *work, int group, bint upward, double other, double tol,
                               Py_ssize_t most) noexcept nogil:
    """Put the points of at most `most` variables that violate most in one direction into the set (work.place >= 0);
    `other` is the best of the opposite direction. Returns the number of points added."""
    cdef const Segment *segment
    cdef Py_ssize_t n_found = 0, n_in = 0, k, v
    cdef double key
    cdef int s
    for s in range(dual.n_segments):
        segment = &dual.segments[s]
        if segment.group != group:
            continue
        for k in range(segment.n):
            v = segment.start + k
            key = dual.up[v] - dual.gradient[v] if upward else dual.low[v] + dual.gradient[v]
            if key + other > tol and work.place[segment.point + k] < 0:
                work.keys[n_found] = key
                work.candidates[n_found] = segment.point + k
                n_found += 1
    if n_found > most:
        select_highest(work.keys, work.candidates, n_found, most)
    for k in range(min(n_found, min(most, work.size - work.n_members))):
        if work.place[work.candidates[k]] < 0:
            work.place[work.candidates[k]] = 0
            work.members[work.n_members] = work.candidates[k]
            work.n_members += 1
            n_in += 1
    return n_in


cdef bint has_free_variable(const Dual *dual, Py_ssize_t point) noexcept nogil:
    """Return whether a variable of the point lies between its bounds."""
    cdef const Segment *segment
    cdef Py_ssize_t v
    cdef int s
    for s in range(dual.n_segments):
        segment = &dual.segments[s]
        if segment.point <= point < segment.point + segment.n:
            v = segment.start + point - segment.point
            if dual.lower[v] < dual.a[v] < dual.upper[v]:
                return True
    return False


cdef void sort_ascending(Py_ssize_t *items, Py_ssize_t n) noexcept nogil:
    """Sort in place (Shell sort: a working set is short)."""
    cdef Py_ssize_t gap = 1, i, j, item
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            item = items[i]
            j = i
            while j >= gap and items[j - gap] > item:
                items[j] = items[j - gap]
                j -= gap
            items[j] = item
        gap //= 3


cdef void choose_members(const Dual *dual, WorkingSet *work, const MaxViolation *best, double tol) noexcept nogil:
    """Choose the next working set: the worst violators of both directions, then members of the last one, free ones
    first."""
    cdef Py_ssize_t i, share, fresh, point
    cdef int g, n_violating = 0, turn, worst = 0
    work.old_members, work.members = work.members, work.old_members
    work.n_old, work.n_members = work.n_members, 0
    for i in range(work.n_old):
        work.place[work.old_members[i]] = -1
    for g in range(MAX_GROUPS):
        n_violating += best[g].up + best[g].low > tol
        if best[g].up + best[g].low > best[worst].up + best[worst].low:
            worst = g
    fresh = work.size // 2 if work.n_old > 0 else work.size
    share = max(<Py_ssize_t> 1, fresh // (2 * max(n_violating, 1)))
    for g in range(MAX_GROUPS):
        if best[g].up + best[g].low > tol and (g == worst or work.size >= 4):     # a pair has to be of one group
            take_violators(dual, work, g, True, best[g].low, tol, share)
            take_violators(dual, work, g, False, best[g].up, tol, share)
    for turn in range(2):
        for i in range(work.n_old):
            point = work.old_members[i]
            if work.n_members < work.size and work.place[point] < 0 and has_free_variable(dual, point) == (turn == 0):
                work.place[point] = 0
                work.members[work.n_members] = point
                work.n_members += 1
    sort_ascending(work.members, work.n_members)
    for i in range(work.n_members):
        work.place[work.members[i]] = i


cdef void match_old_members(WorkingSet *work) noexcept nogil:
    """Set work.old_place: the places of the members in the last set. Both lists ascend."""
    cdef Py_ssize_t i, j = 0
    for i in range(work.n_members):
        while j < work.n_old and work.old_members[j] < work.members[i]:
            j += 1
        work.old_place[i] = j if j < work.n_old and work.old_members[j] == work.members[i] else -1


cdef Py_ssize_t first_at_least(const Py_ssize_t *items, Py_ssize_t n, Py_ssize_t value) noexcept nogil:
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = low + (high - low) // 2
        if items[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef void make_local(const Dual *dual, WorkingSet *work) noexcept nogil:
    """work.local = the problem of the members' variables alone; the others stay as they are."""
    cdef Dual *local = &work.local
    cdef const Segment *whole
    cdef Segment *part
    cdef Py_ssize_t n = 0, first, last, k, v, stride = 2 * work.size
    cdef double *arrays = work.arrays
    cdef int s
    memset(local, 0, sizeof(Dual))
    local.a, local.gradient, local.up, local.low = arrays, arrays + stride, arrays + 2 * stride, arrays + 3 * stride
    local.lower, local.upper = arrays + 4 * stride, arrays + 5 * stride
    local.segments, local.kink = work.segments, dual.kink
    for s in range(dual.n_segments):
        whole, part = &dual.segments[s], &work.segments[local.n_segments]
        first = first_at_least(work.members, work.n_members, whole.point)
        last = first_at_least(work.members, work.n_members, whole.point + whole.n)
        if last == first:
            continue
        part.start, part.n, part.point, part.group = n, last - first, first, whole.group
        work.origins[local.n_segments] = s
        local.n_segments += 1
        for k in range(first, last):
            v = whole.start + work.members[k] - whole.point
            local.a[n], local.gradient[n] = dual.a[v], dual.gradient[v]
            local.up[n], local.low[n] = dual.up[v], dual.low[v]
            arrays[4 * stride + n], arrays[5 * stride + n] = dual.lower[v], dual.upper[v]
            n += 1
    local.n = n


cdef bint copy_solution(Dual *dual, WorkingSet *work, double *change, bint by_point) noexcept nogil:
    """Copy the local solution into the whole one, and add the changes of beta to `change`, which has one entry per
    member, or one per point (by_point). Returns whether there was any change."""
    cdef const Dual *local = &work.local
    cdef const Segment *part
    cdef const Segment *whole
    cdef Py_ssize_t k, v, u
    cdef int s
    cdef bint any_change = False
    for s in range(local.n_segments):
        part, whole = &local.segments[s], &dual.segments[work.origins[s]]
        for k in range(part.point, part.point + part.n):
            v = whole.start + work.members[k] - whole.point
            u = part.start + k - part.point
            if local.a[u] != dual.a[v]:
                change[work.members[k] if by_point else k] += local.a[u] - dual.a[v]
                dual.a[v] = local.a[u]
                set_mask(dual, v)
                any_change = True
    return any_change


cdef int update_gradient(Dual *dual, RowStore *store, WorkingSet *work) noexcept nogil:
    """Update the gradient of the whole problem by some of the last round's changes, from the end of the list."""
    cdef Py_ssize_t n = work.n_changed
    if row_cost(store) > 0:
        n = min(n, max(<Py_ssize_t> 1, <Py_ssize_t> (MAX_UNINTERRUPTED_NS / row_cost(store))))
    work.n_changed -= n
    return add_change(store, work.changed + work.n_changed, work.changes + work.n_changed, n, work.rows, dual.segments,
                      dual.n_segments, dual.gradient)


cdef void gather_diagonal(const RowStore *store, WorkingSet *work) noexcept nogil:
    """work.diagonal = k(x, x) of the members."""
    cdef Py_ssize_t i, size = item_size(store)
    for i in range(work.n_members):
        memcpy(<char *> work.diagonal + i * size, <const char *> store.diagonal + work.members[i] * size, size)


cdef int run_round(Dual *dual, RowStore *store, WorkingSet *work, const MaxViolation *best, double tol) noexcept nogil:
    """Choose a working set, solve it, and begin to update the gradient of the whole problem. Without any change the
    outcome is NO_PROGRESS."""
    cdef Dual *local = &work.local
    cdef double aim = tol
    cdef RowView view
    cdef Py_ssize_t i, n_all = 0, limit
    cdef int status, s
    choose_members(dual, work, best, tol)
    match_old_members(work)
    if store.kind == LINEAR_PRODUCTS:
        work.block, work.old_block = work.old_block, work.block
    status = find_block(store, work.members, work.n_members, work.rows, work.old_place, work.old_block, work.n_old,
                        work.block)
    if status != OK:
        return status
    gather_diagonal(store, work)
    make_local(dual, work)
    for s in range(dual.n_segments):
        n_all += dual.segments[s].n
    if local.n < n_all:
        aim = max(tol, (LARGE_SET_TOL_FACTOR if work.size == LARGE_SET_SIZE else SET_TOL_FACTOR) * dual.violation)
    memset(&view, 0, sizeof(RowView))
    view.matrix, view.stride = work.block, work.n_members
    limit = min(100 * work.size + 10000, <Py_ssize_t> (MAX_UNINTERRUPTED_NS / local.n))
    take_steps(local, store, &view, work.diagonal, aim, min(limit, dual.max_steps - dual.n_steps))
    dual.n_steps += local.n_steps
    memset(work.changes, 0, work.n_members * sizeof(double))
    if not copy_solution(dual, work, work.changes, False):
        dual.outcome = NO_PROGRESS
        return OK
    for i in range(work.n_members):
        if work.changes[i] != 0:
            work.changed[work.n_changed], work.changes[work.n_changed] = work.members[i], work.changes[i]
            work.n_changed += 1
    return update_gradient(dual, store, work)


# ---- shrinking -------------------------------------------------------------------------------------------------

cdef Py_ssize_t mark_active(const Dual *dual, const MaxViolation *best, char *active,
                            Py_ssize_t n_points) noexcept nogil:
    """Set active[point] to whether a variable of it is free or part of a violating pair. Returns their number."""
    cdef const Segment *segment
    cdef Py_ssize_t k, v, n_kept = 0
    cdef double up, low
    cdef int s
    memset(active, 0, n_points)
    for s in range(dual.n_segments):
        segment = &dual.segments[s]
        for k in range(segment.n):
            v = segment.start + k
            up, low = best[segment.group].up, best[segment.group].low
            if is_free(dual, v) or dual.up[v] - dual.gradient[v] + low > 0 or dual.low[v] + dual.gradient[v] + up > 0:
                active[segment.point + k] = 1
    for k in range(n_points):
        n_kept += active[k]
    return n_kept


cdef void shrink(Dual *dual, const RowStore *store, WorkingSet *work) noexcept nogil:
    """Begin the local problem of the points in work.active."""
    cdef Py_ssize_t i
    work.n_members = 0
    for i in range(store.n):
        if work.active[i]:
            work.members[work.n_members] = i
            work.n_members += 1
    gather_diagonal(store, work)
    make_local(dual, work)
    work.local.n_steps = dual.n_steps           # so that step lengths are those among all variables
    memset(work.present, 0, work.n_members)
    work.shrunk = True


cdef void shrink_further(Dual *dual, const RowStore *store, WorkingSet *work) noexcept nogil:
    """Remove the members that are not in work.active; their changes are added to work.pending."""
    cdef Dual *local = &work.local
    cdef Segment *part
    cdef double *arrays = work.arrays
    cdef Py_ssize_t stride = 2 * work.size, n = 0, k, first, start, kept, point = 0, which
    cdef int s
    copy_solution(dual, work, work.pending, True)
    for s in range(local.n_segments):
        part = &work.segments[s]
        first, start, kept = 0, n, 0
        for k in range(part.point):
            first += work.active[k]
        for k in range(part.n):
            if work.active[part.point + k]:
                for which in range(N_ARRAYS):
                    arrays[which * stride + n] = arrays[which * stride + part.start + k]
                n += 1
                kept += 1
        part.start, part.n, part.point = start, kept, first
    local.n = n
    for k in range(work.n_members):
        if work.active[k]:
            work.members[point] = work.members[k]
            point += 1
    work.n_members = point
    gather_diagonal(store, work)
    memset(work.present, 0, point)


cdef int unshrink(Dual *dual, RowStore *store, WorkingSet *work) noexcept nogil:
    """Copy the local solution into the whole one and update all gradients."""
    cdef Py_ssize_t i, batch = 0
    cdef int status = OK
    copy_solution(dual, work, work.pending, True)
    work.shrunk = False
    for i in range(store.n):
        if work.pending[i] != 0:
            work.changed[batch], work.changes[batch] = i, work.pending[i]
            work.pending[i] = 0
            batch += 1
        if batch == work.size or (i == store.n - 1 and batch > 0):
            status = add_change(store, work.changed, work.changes, batch, work.rows, dual.segments, dual.n_segments,
                                dual.gradient)
            batch = 0
    return status


cdef double count_free(const Dual *dual) noexcept nogil:
    cdef Py_ssize_t v, n = 0
    for v in range(dual.n):
        n += is_free(dual, v)
    return n


cdef void update_active(Dual *dual, const RowStore *store, WorkingSet *work, double tol) noexcept nogil:
    """Pause if a Newton step costs no more; otherwise shrink the problem, or shrink it further, if few points are
    active."""
    cdef MaxViolation best[MAX_GROUPS]
    cdef Dual *now = &work.local if work.shrunk else dual
    cdef Py_ssize_t n_points = work.n_members if work.shrunk else store.n, n_kept
    work.until_check = max(<Py_ssize_t> SHRINK_CHECK_INTERVAL, min(n_points, <Py_ssize_t> 4 * SHRINK_CHECK_INTERVAL))
    if dual.pause_steps >= 0 and \
            dual.n_steps - dual.steps_at_resume >= dual.pause_steps + dual.pause_cubic * count_free(now) ** 3 / now.n:
        dual.outcome = PAUSED
        return
    if work.active == NULL or (work.shrunk and n_points < MIN_SHRINK_POINTS):
        return
    find_violation(now, store, best)
    if now.violation <= tol:
        return
    n_kept = mark_active(now, best, work.active, n_points)
    if work.shrunk and n_kept <= SHRINK_AGAIN_SHARE * n_points:
        shrink_further(dual, store, work)
    elif not work.shrunk and n_kept <= work.size:
        shrink(dual, store, work)


cdef void advance_in_matrix(Dual *dual, RowStore *store, WorkingSet *work, double tol,
                            Py_ssize_t n_steps) noexcept nogil:
    """`advance` with the matrix in memory."""
    cdef Py_ssize_t left = n_steps, before, batch
    cdef RowView view
    cdef Dual *now
    cdef double aim
    cdef SolverOutcome outcome
    memset(&view, 0, sizeof(RowView))
    dual.outcome = UNFINISHED
    while dual.outcome == UNFINISHED and left > 0:
        now = &work.local if work.shrunk else dual
        batch, before = min(left, work.until_check), now.n_steps
        if work.shrunk:
            view.matrix, view.stride = work.block, work.n_members
            view.source, view.source_stride, view.present = store.matrix, store.stride, work.present
            view.members, view.n_members = work.members, work.n_members
            aim = SHRUNK_TOL_FACTOR * tol if dual.violation > SHRUNK_TOL_FACTOR * tol else tol
            outcome = take_steps(now, store, &view, work.diagonal, aim, batch)
            dual.n_steps += now.n_steps - before
        else:
            view.matrix, view.stride, view.source = store.matrix, store.stride, NULL
            outcome = take_steps(now, store, &view, store.diagonal, tol, batch)
        batch = now.n_steps - before
        left -= batch
        work.until_check -= batch
        if outcome != UNFINISHED and work.shrunk:
            dual.status = unshrink(dual, store, work)
            if dual.status != OK:
                dual.outcome = FAILED
                return
            if outcome == SOLVED:               # of the local problem only: scan all points
                update_active(dual, store, work, tol)
                dual.outcome = SOLVED if NAN_VIOLATION < dual.violation <= tol else UNFINISHED
            else:
                work.until_check = SHRINK_CHECK_INTERVAL
        elif outcome != UNFINISHED:
            dual.outcome = outcome
        elif work.until_check <= 0:
            update_active(dual, store, work, tol)


cdef void advance(Dual *dual, RowStore *store, WorkingSet *work, double tol, Py_ssize_t n_steps) noexcept nogil:
    """Take at least n_steps steps, or until the problem is solved or stalled; sets dual.outcome."""
    cdef MaxViolation best[MAX_GROUPS]
    cdef Py_ssize_t last = dual.n_steps + n_steps
    if store.kind == WHOLE_MATRIX:
        advance_in_matrix(dual, store, work, tol, n_steps)
        return
    dual.outcome = UNFINISHED
    if work.n_changed > 0:
        last = 0
        dual.status = update_gradient(dual, store, work)
        if dual.status != OK:
            dual.outcome = FAILED
    while dual.outcome == UNFINISHED and work.n_changed == 0:
        find_violation(dual, store, best)
        if dual.violation <= tol:
            dual.outcome = SOLVED if dual.violation > NAN_VIOLATION else NO_PROGRESS
        elif dual.n_steps >= last:
            return
        else:
            dual.status = run_round(dual, store, work, best, tol)
            if dual.status != OK:
                dual.outcome = FAILED
