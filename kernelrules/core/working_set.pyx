"""The two levels of the dual solver: which variables it works on, and how the others learn of it.

steps.pyx says what is minimised and what a step is. Where the kernel matrix is in memory, steps are taken on all
variables, later on those that are free or violate: the problem is shrunk, its part of the matrix gathered row by row
when used, and gradients of the others are brought up to date when the small problem is solved. Without the matrix each
round takes the points that violate most, solves their small problem, and changes the gradient of all others once.

Invariant: the path of iterates depends on neither the number of threads nor on how the work is cut into slices.
"""

from libc.math cimport sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.blocks cimport give_back, take
from kernelrules.core.rows cimport PRODUCTS, WHOLE, add_change, find_block, row_cost
from kernelrules.core.status cimport NO_MEMORY, OK
from kernelrules.core.steps cimport (
    FAILED, GROUPS, MORE, NO_NUMBER, PAUSED, SOLVED, STALLED, Best, Outcome, View, scan_all, set_mask, solve_all,
)
from kernelrules.core.types cimport real_t


cdef enum:
    WORKING = 2048              # points of a working set whose rows are computed
    WIDE = 4096                 # and of one where many rows cannot be kept: fewer rounds compute fewer of them
    FEWEST = 64                 # and of one in hardly any memory
    NARROW = 512                # and of one whose products are: they cost much, and their block stays in cache
    ARRAYS = 7                  # of the local problem
    CHECK = 500                 # least steps between two looks at which points matter
    FEW_POINTS = 8192           # up to which a shrunk problem may have three quarters of them, beyond it half

WIDEST, LINEAR_SET = WIDE, NARROW   # for svm: points of the largest working set, and of one of a linear machine

cdef double SLICE = 3e8         # nanoseconds of a thread for a block, its solution, or rows: no signal is seen
cdef double SHRINK = 0.7        # a problem is shrunk further when this part of it, or less, matters
cdef double COARSE = 10.0       # times tol, to which a shrunk problem is solved before all points are looked at again
cdef double LOCAL = 0.1         # a working set is solved until its violation is this part of the whole's
cdef double LOCAL_WIDE = 0.3    # the same for wide ones, whose rows are dear: the next round knows better


# ---- working sets ----------------------------------------------------------------------------------------------

cdef Py_ssize_t count_points(const Dual *dual) noexcept nogil:
    """Points that the problem has; two groups over the same points count once."""
    cdef Py_ssize_t first = dual.segments[0].n, n = dual.n
    return first if dual.n_segments == 2 and dual.segments[0].point == dual.segments[1].point else n


cdef Py_ssize_t count_computed(const Dual *dual, const Store *store) noexcept nogil:
    """Points of a working set whose kernel values are computed: those between them take half of what the rows may, at
    most, and neither they nor rows that have to be there together take long."""
    cdef Py_ssize_t room = max(<Py_ssize_t> FEWEST, <Py_ssize_t> sqrt(store.n_slots * <double> store.n / 2))
    cdef Py_ssize_t q = WORKING
    cdef double cost = row_cost(store)
    if store.dense == NULL:                     # blocks come from whole rows
        q = min(q, store.n_slots)
        q = min(q, <Py_ssize_t> (3 * SLICE / cost)) if cost > 0 else q
    else:
        q = WIDE if store.n_slots < store.n // 2 and room >= WIDE else q
        q = min(q, room) if store.n_slots < store.n else q
        q = min(q, <Py_ssize_t> sqrt(2 * SLICE * store.n / cost))
    return max(<Py_ssize_t> 2, min(q, count_points(dual)))


cdef int start_work(Work *work, const Dual *dual, const Store *store, Py_ssize_t itemsize) noexcept nogil:
    """Memory for problems of this size. free_work() must follow."""
    cdef Py_ssize_t q = WORKING, n = dual.n
    cdef bint keeps_old = store.kind == PRODUCTS, whole = store.kind == WHOLE
    memset(work, 0, sizeof(Work))
    if store.kind == PRODUCTS:
        q = 2 * NARROW if n <= 2 * NARROW else NARROW
    elif whole:
        q = count_points(dual)
        q = q * 3 // 4 if q <= FEW_POINTS else q // 2
    else:
        q = count_computed(dual, store)
    work.size = q
    work.until_check = max(<Py_ssize_t> CHECK, min(q, <Py_ssize_t> 4 * CHECK))
    if whole and q < SMALL:
        return OK
    if whole:
        work.keep = <char *> malloc(store.n)
        work.present = <char *> malloc(q)
        work.pending = <double *> calloc(store.n, sizeof(double))
        if work.keep == NULL or work.present == NULL or work.pending == NULL:
            return NO_MEMORY
    work.members = <Py_ssize_t *> malloc(q * sizeof(Py_ssize_t))
    work.old_members = <Py_ssize_t *> malloc(q * sizeof(Py_ssize_t))
    work.before = <Py_ssize_t *> malloc(q * sizeof(Py_ssize_t))
    work.place = <Py_ssize_t *> malloc((1 if whole else store.n) * sizeof(Py_ssize_t))
    work.candidates = <Py_ssize_t *> malloc(n * sizeof(Py_ssize_t))
    work.keys = <double *> malloc(n * sizeof(double))
    work.rows = <const void **> malloc(q * sizeof(void *))
    work.block = take(q * q * itemsize)
    work.old_block = take((q * q if keeps_old else 1) * itemsize)
    work.diagonal = malloc(q * itemsize)
    work.segments = <Segment *> malloc(dual.n_segments * sizeof(Segment))
    work.origins = <int *> malloc(dual.n_segments * sizeof(int))
    work.numbers = <double *> malloc(ARRAYS * 2 * q * sizeof(double))
    if work.members == NULL or work.old_members == NULL or work.before == NULL or work.place == NULL \
            or work.candidates == NULL or work.keys == NULL or work.rows == NULL or work.block == NULL \
            or work.old_block == NULL or work.diagonal == NULL or work.segments == NULL or work.numbers == NULL \
            or work.origins == NULL:
        return NO_MEMORY
    for n in range(1 if whole else store.n):
        work.place[n] = -1
    return OK


cdef void free_work(Work *work) noexcept nogil:
    free(work.members)
    free(work.old_members)
    free(work.before)
    free(work.place)
    free(work.candidates)
    free(work.keys)
    free(work.rows)
    give_back(work.block)
    give_back(work.old_block)
    free(work.diagonal)
    free(work.segments)
    free(work.origins)
    free(work.numbers)
    free(work.keep)
    free(work.present)
    free(work.pending)
    memset(work, 0, sizeof(Work))


cdef void highest_first(double *keys, Py_ssize_t *items, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
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


cdef Py_ssize_t take_violators(const Dual *dual, Work *work, int group, bint upward, double other, double tol,
                               Py_ssize_t most) noexcept nogil:
    """Put the points of at most `most` variables that violate most in one direction into the set (work.place >= 0);
    `other` is the best of the opposite direction. How many points came in."""
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
        highest_first(work.keys, work.candidates, n_found, most)
    for k in range(min(n_found, min(most, work.size - work.n_members))):
        if work.place[work.candidates[k]] < 0:
            work.place[work.candidates[k]] = 0
            work.members[work.n_members] = work.candidates[k]
            work.n_members += 1
            n_in += 1
    return n_in


cdef bint is_free(const Dual *dual, Py_ssize_t point) noexcept nogil:
    """Whether a variable of the point lies between its bounds."""
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
    """Shell sort: a working set is short."""
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


cdef void choose_members(const Dual *dual, Work *work, const Best *best, double tol) noexcept nogil:
    """The next working set: the worst violators of both directions, then members of the last one, free ones first."""
    cdef Py_ssize_t i, share, fresh, wanted
    cdef int g, n_violating = 0, turn, worst = 0
    work.old_members, work.members = work.members, work.old_members
    work.n_old, work.n_members = work.n_members, 0
    for i in range(work.n_old):
        work.place[work.old_members[i]] = -1
    for g in range(GROUPS):
        n_violating += best[g].up + best[g].low > tol
        if best[g].up + best[g].low > best[worst].up + best[worst].low:
            worst = g
    fresh = work.size // 2 if work.n_old > 0 else work.size
    share = max(<Py_ssize_t> 1, fresh // (2 * max(n_violating, 1)))
    for g in range(GROUPS):
        if best[g].up + best[g].low > tol and (g == worst or work.size >= 4):     # a pair has to be of one group
            take_violators(dual, work, g, True, best[g].low, tol, share)
            take_violators(dual, work, g, False, best[g].up, tol, share)
    for turn in range(2):
        for i in range(work.n_old):
            wanted = work.old_members[i]
            if work.n_members < work.size and work.place[wanted] < 0 and is_free(dual, wanted) == (turn == 0):
                work.place[wanted] = 0
                work.members[work.n_members] = wanted
                work.n_members += 1
    sort_ascending(work.members, work.n_members)
    for i in range(work.n_members):
        work.place[work.members[i]] = i


cdef void match_old(Work *work) noexcept nogil:
    """work.before: where members stood in the last set. Both lists ascend."""
    cdef Py_ssize_t i, j = 0
    for i in range(work.n_members):
        while j < work.n_old and work.old_members[j] < work.members[i]:
            j += 1
        work.before[i] = j if j < work.n_old and work.old_members[j] == work.members[i] else -1


cdef Py_ssize_t first_at_least(const Py_ssize_t *items, Py_ssize_t n, Py_ssize_t value) noexcept nogil:
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = low + (high - low) // 2
        if items[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef Dual make_local(const Dual *dual, Work *work) noexcept nogil:
    """The problem of the members' variables alone; the others stay as they are."""
    cdef Dual local
    cdef const Segment *whole
    cdef Segment *part
    cdef Py_ssize_t n = 0, first, last, k, v, room = 2 * work.size
    cdef double *arrays = work.numbers
    cdef int s
    memset(&local, 0, sizeof(Dual))
    local.a, local.gradient, local.up, local.low = arrays, arrays + room, arrays + 2 * room, arrays + 3 * room
    local.lower, local.upper = arrays + 4 * room, arrays + 5 * room
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
            arrays[4 * room + n], arrays[5 * room + n] = dual.lower[v], dual.upper[v]
            n += 1
    local.n = n
    return local


cdef bint take_over(Dual *dual, const Dual *local, Work *work, double *change, bint by_point) noexcept nogil:
    """Copy the local solution into the whole one, and add to `change` what that changes of each member's beta; with
    by_point the entries of `change` are those of all points. Whether there was any change."""
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


cdef int spread(Dual *dual, Store *store, Work *work, const real_t *example) noexcept nogil:
    """Change the gradients of all by some of the last round's changes, the last of the list first."""
    cdef double *change = work.numbers + 6 * 2 * work.size
    cdef Py_ssize_t n = work.n_changed
    if row_cost(store) > 0:
        n = min(n, max(<Py_ssize_t> 1, <Py_ssize_t> (SLICE / row_cost(store))))
    work.n_changed -= n
    return add_change(store, work.candidates + work.n_changed, change + work.n_changed, n,
                      <const real_t **> work.rows, dual.segments, dual.n_segments, dual.gradient)


cdef int do_round(Dual *dual, Store *store, Work *work, const Best *best, double tol,
                  const real_t *example) noexcept nogil:
    """One working set: choose it, solve it, and begin to change everybody's gradient. Without any change the outcome is
    STALLED."""
    cdef const real_t **rows = <const real_t **> work.rows
    cdef real_t *diagonal = <real_t *> work.diagonal
    cdef double *change = work.numbers + 6 * 2 * work.size
    cdef double aim = tol
    cdef Dual local
    cdef View view
    cdef Py_ssize_t i, n_all = 0
    cdef int status, s
    choose_members(dual, work, best, tol)
    match_old(work)
    work.block, work.old_block = work.old_block if store.kind == PRODUCTS else work.block, \
        work.block if store.kind == PRODUCTS else work.old_block
    status = find_block(store, work.members, work.n_members, rows, work.before, <const real_t *> work.old_block,
                        work.n_old, <real_t *> work.block)
    if status != OK:
        return status
    for i in range(work.n_members):
        diagonal[i] = (<const real_t *> store.diagonal)[work.members[i]]
    local = make_local(dual, work)
    for s in range(dual.n_segments):
        n_all += dual.segments[s].n
    if local.n < n_all:
        aim = max(tol, (LOCAL_WIDE if work.size == WIDE else LOCAL) * dual.violation)
    memset(&view, 0, sizeof(View))
    view.matrix, view.stride = work.block, work.n_members
    local.outcome = solve_all(&local, store.simd, &view, diagonal, aim,
                              min(min(100 * work.size + 10000, <Py_ssize_t> (SLICE / local.n)),
                                  dual.max_steps - dual.n_steps))
    dual.n_steps += local.n_steps
    memset(change, 0, work.n_members * sizeof(double))
    if not take_over(dual, &local, work, change, False):
        dual.outcome = STALLED
        return OK
    for i in range(work.n_members):             # only those that changed count
        if change[i] != 0:
            work.candidates[work.n_changed] = work.members[i]
            change[work.n_changed] = change[i]
            work.n_changed += 1
    return spread(dual, store, work, example)


# ---- shrinking -------------------------------------------------------------------------------------------------

cdef Py_ssize_t mark(const Dual *dual, const Best *best, char *keep, Py_ssize_t n_points) noexcept nogil:
    """keep[point] = whether a variable of it is free or part of a violating pair. How many points are kept."""
    cdef const Segment *segment
    cdef Py_ssize_t k, v, n_kept = 0
    cdef double up, low
    cdef bint free_here
    cdef int s
    memset(keep, 0, n_points)
    for s in range(dual.n_segments):
        segment = &dual.segments[s]
        for k in range(segment.n):
            v = segment.start + k
            up, low = best[segment.group].up, best[segment.group].low
            free_here = dual.lower[v] < dual.a[v] < dual.upper[v] and (dual.a[v] != 0 or dual.kink == 0)
            if free_here or dual.up[v] - dual.gradient[v] + low > 0 or dual.low[v] + dual.gradient[v] + up > 0:
                keep[segment.point + k] = 1
    for k in range(n_points):
        n_kept += keep[k]
    return n_kept


cdef void shrink(Dual *dual, const Store *store, Work *work, const real_t *example) noexcept nogil:
    """Begin the local problem of the points in work.keep."""
    cdef Py_ssize_t i
    work.n_members = 0
    for i in range(store.n):
        if work.keep[i]:
            work.members[work.n_members] = i
            (<real_t *> work.diagonal)[work.n_members] = (<const real_t *> store.diagonal)[i]
            work.n_members += 1
    work.local = make_local(dual, work)
    work.local.n_steps = dual.n_steps           # a step is as long as it would be among all
    memset(work.present, 0, work.n_members)
    work.shrunk = True


cdef void shrink_further(Dual *dual, Work *work, const real_t *example) noexcept nogil:
    """Leave the members that are not in work.keep; what changed in them is noted as pending."""
    cdef Dual *local = &work.local
    cdef Segment *part
    cdef real_t *diagonal = <real_t *> work.diagonal
    cdef double *arrays = work.numbers
    cdef Py_ssize_t room = 2 * work.size, n = 0, k, first, start, kept, point = 0, which
    cdef int s
    take_over(dual, local, work, work.pending, True)
    for s in range(local.n_segments):
        part = &work.segments[s]
        first, start, kept = 0, n, 0
        for k in range(part.point):
            first += work.keep[k]
        for k in range(part.n):
            if work.keep[part.point + k]:
                for which in range(6):
                    arrays[which * room + n] = arrays[which * room + part.start + k]
                n += 1
                kept += 1
        part.start, part.n, part.point = start, kept, first
    local.n = n
    for k in range(work.n_members):
        if work.keep[k]:
            work.members[point], diagonal[point] = work.members[k], diagonal[k]
            point += 1
    work.n_members = point
    memset(work.present, 0, point)


cdef int unshrink(Dual *dual, Store *store, Work *work, const real_t *example) noexcept nogil:
    """Take over the local solution and bring all gradients up to date."""
    cdef Py_ssize_t i, batch = 0
    cdef const real_t **rows = <const real_t **> work.rows
    cdef int status = OK
    take_over(dual, &work.local, work, work.pending, True)
    work.shrunk = False
    for i in range(store.n):
        if work.pending[i] != 0:
            work.candidates[batch], work.keys[batch] = i, work.pending[i]
            work.pending[i] = 0
            batch += 1
        if batch == work.size or (i == store.n - 1 and batch > 0):
            status = add_change(store, work.candidates, work.keys, batch, rows, dual.segments, dual.n_segments,
                                dual.gradient)
            batch = 0
    return status


cdef double count_free(const Dual *dual) noexcept nogil:
    cdef Py_ssize_t v, n = 0
    for v in range(dual.n):
        n += dual.lower[v] < dual.a[v] < dual.upper[v] and (dual.a[v] != 0 or dual.kink == 0)
    return n


cdef void look_again(Dual *dual, const Store *store, Work *work, double tol, const real_t *example) noexcept nogil:
    """Shrink the problem, or shrink it further, where few enough points matter."""
    cdef Best best[GROUPS]
    cdef Dual *now = &work.local if work.shrunk else dual
    cdef Py_ssize_t n_points = work.n_members if work.shrunk else store.n, n_kept
    work.until_check = max(<Py_ssize_t> CHECK, min(n_points, <Py_ssize_t> 4 * CHECK))
    if dual.wait >= 0 and dual.n_steps - dual.resumed >= dual.wait + dual.cubic * count_free(now) ** 3 / now.n:
        dual.outcome = PAUSED
        return
    if work.keep == NULL or (work.shrunk and n_points < SMALL):
        return
    scan_all(now, store.simd, <const real_t *> NULL, <const real_t *> NULL, 0.0, best)
    if now.violation <= tol:
        return
    n_kept = mark(now, best, work.keep, n_points)
    if work.shrunk and n_kept <= SHRINK * n_points:
        shrink_further(dual, work, example)
    elif not work.shrunk and n_kept <= work.size:
        shrink(dual, store, work, example)


cdef void advance_whole(Dual *dual, Store *store, Work *work, double tol, Py_ssize_t n_steps,
                        const real_t *example) noexcept nogil:
    """`advance` with the matrix in memory."""
    cdef Py_ssize_t left = n_steps, before, batch
    cdef View view
    cdef Dual *now
    cdef double aim
    cdef Outcome outcome
    memset(&view, 0, sizeof(View))
    dual.outcome = MORE
    while dual.outcome == MORE and left > 0:
        now = &work.local if work.shrunk else dual
        batch, before = min(left, work.until_check), now.n_steps
        if work.shrunk:
            view.matrix, view.stride = work.block, work.n_members
            view.source, view.source_stride, view.present = store.matrix, store.stride, work.present
            view.members, view.n_members = work.members, work.n_members
            aim = COARSE * tol if dual.violation > COARSE * tol else tol
            outcome = solve_all(now, store.simd, &view, <const real_t *> work.diagonal, aim, batch)
            dual.n_steps += now.n_steps - before
        else:
            view.matrix, view.stride, view.source = store.matrix, store.stride, NULL
            outcome = solve_all(now, store.simd, &view, <const real_t *> store.diagonal, tol, batch)
        batch = now.n_steps - before
        left -= batch
        work.until_check -= batch
        if outcome != MORE and work.shrunk:
            dual.status = unshrink(dual, store, work, example)
            if dual.status != OK:
                dual.outcome = FAILED
                return
            if outcome == SOLVED:               # of the local problem: see what all points say
                look_again(dual, store, work, tol, example)
                dual.outcome = SOLVED if NO_NUMBER < dual.violation <= tol else MORE
            else:
                work.until_check = CHECK
        elif outcome != MORE:
            dual.outcome = outcome
        elif work.until_check <= 0:
            look_again(dual, store, work, tol, example)


cdef void advance(Dual *dual, Store *store, Work *work, double tol, Py_ssize_t n_steps,
                  const real_t *example) noexcept nogil:
    """Go on for at least n_steps steps, or until it is solved or stalled; dual.outcome says."""
    cdef Best best[GROUPS]
    cdef Py_ssize_t last = dual.n_steps + n_steps
    if store.kind == WHOLE:
        advance_whole(dual, store, work, tol, n_steps, example)
        return
    dual.outcome = MORE
    if work.n_changed > 0:
        last = 0
        dual.status = spread(dual, store, work, example)
        if dual.status != OK:
            dual.outcome = FAILED
    while dual.outcome == MORE and work.n_changed == 0:
        scan_all(dual, store.simd, <const real_t *> NULL, <const real_t *> NULL, 0.0, best)
        if dual.violation <= tol:
            dual.outcome = SOLVED if dual.violation > NO_NUMBER else STALLED
        elif dual.n_steps >= last:
            return
        else:
            dual.status = do_round(dual, store, work, best, tol, example)
            if dual.status != OK:
                dual.outcome = FAILED
