"""The dual solver of all support vector machines: sequential minimal optimisation on two levels.

    minimise  ½ βᵀKβ + pᵀβ + kink·Σ|a_v|   over  lower ≤ a ≤ upper,  Σ a_v fixed in each group,

where β of a point is the sum of its variables. Variables lie in segments, runs that belong to consecutive points and to
one group; C-SVC, ε-SVR and one-class have one group, ν-SVC and ν-SVR two. With the gradient g = Kβ + p a variable can
grow while up_v = -(slope of the kink) is finite and shrink while low_v is; the violation is, over the groups, the most
of max(up - g) + max(low + g), and the problem is solved when it is at most tol.

A step takes the variable i that wants most to grow and its partner j of second-order selection, and moves both to the
best point between their bounds and kinks. Where the matrix is in memory that is done on all variables, later on those
that are free or violate: the problem is shrunk, its part of the matrix gathered row by row when used, and gradients of
the others are brought up to date when the small problem is solved. Without the matrix each round takes the points that
violate most, solves their small problem, and changes the gradient of all others once.

Invariant: the sums of the groups never change, every a stays within its bounds, and the path of iterates depends on
neither the number of threads nor on how the work is cut into slices.
"""

from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from kernelrules.core.gram cimport better_step
from kernelrules.core.rows cimport CACHED, PRODUCTS, WHOLE, KernelRows, add_change, find_block, find_rows, gather_row
from kernelrules.core.simd cimport KR_NEVER, KR_NOTHING, descend, kr_scan, partner, pick
from kernelrules.core.status cimport NO_MEMORY, OK
from kernelrules.core.types cimport real_t

from time import perf_counter

from kernelrules.core.status import raise_for_status

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    WORKING = 2048              # points of a working set whose rows are computed
    NARROW = 512                # and of one whose products are: they cost much, and their block stays in cache
    ARRAYS = 7                  # of the local problem
    CHECK = 500                 # least steps between two looks at which points matter
    SMALL = 1024                # points below which shrinking saves nothing
    FEW_POINTS = 8192           # up to which a shrunk problem may have three quarters of them, beyond it half

NO_NUMBER = -1.5e301            # the highest of no numbers at all is KR_NOTHING, in both directions
cdef double ULPS = 1e-14        # of a gradient, that many steps leave uncertain
cdef double SHRINK = 0.7        # a problem is shrunk further when this part of it, or less, matters
cdef double COARSE = 10.0       # times tol, to which a shrunk problem is solved before all points are looked at again
cdef double LOCAL = 0.1         # a working set is solved until its violation is this part of the whole's


# ---- one variable ----------------------------------------------------------------------------------------------

cdef inline void set_mask(Dual *dual, Py_ssize_t v) noexcept nogil:
    """The slope of the kink on either side of a_v, or KR_NEVER at a bound."""
    cdef double a = dual.a[v], kink = dual.kink
    dual.up[v] = KR_NEVER if a >= dual.upper[v] else (-kink if a >= 0 else kink)
    dual.low[v] = KR_NEVER if a <= dual.lower[v] else (kink if a > 0 else -kink)


cdef void set_masks(Dual *dual) noexcept nogil:
    cdef Py_ssize_t v
    for v in range(dual.n):
        set_mask(dual, v)


cdef inline double ceiling(const Dual *dual, Py_ssize_t v) noexcept nogil:
    """How far a_v can grow before the slope changes."""
    return 0.0 if dual.kink > 0 and dual.a[v] < 0 and dual.upper[v] > 0 else dual.upper[v]


cdef inline double ground(const Dual *dual, Py_ssize_t v) noexcept nogil:
    """How far it can shrink."""
    return 0.0 if dual.kink > 0 and dual.a[v] > 0 and dual.lower[v] < 0 else dual.lower[v]


# ---- all variables together ------------------------------------------------------------------------------------

cdef int scan_all(Dual *dual, const void *simd, const real_t *row_i, const real_t *row_j, double step,
                  Best *best) noexcept nogil:
    """Change the gradient by step·(row_i - row_j), find the best of every group, and the group that violates most."""
    cdef const Segment *segment
    cdef kr_scan found
    cdef Best *here
    cdef const real_t *part_i = NULL
    cdef const real_t *part_j = NULL
    cdef int s, g, worst = 0
    for g in range(GROUPS):
        best[g].up = best[g].low = KR_NOTHING
        best[g].variable = -1
    for s in range(dual.n_segments):
        segment = &dual.segments[s]
        here = &best[segment.group]
        if row_i != NULL:
            part_i, part_j = row_i + segment.point, row_j + segment.point
        found = descend(simd, part_i, part_j, step, dual.up + segment.start, dual.low + segment.start,
                        dual.gradient + segment.start, segment.n)
        if found.up > here.up:
            here.up = found.up
            here.variable, here.point = segment.start + found.where, segment.point + found.where
        here.low = max(here.low, found.low)
    for g in range(1, GROUPS):
        if best[g].up + best[g].low > best[worst].up + best[worst].low:
            worst = g
    dual.violation = best[worst].up + best[worst].low
    return worst


cdef double move_pair(Dual *dual, Py_ssize_t i, Py_ssize_t j, double curve) noexcept nogil:
    """The best step of a_i up and a_j down between bounds and kinks; how far both went."""
    cdef double wanted = (dual.up[i] - dual.gradient[i] + dual.low[j] + dual.gradient[j]) / curve
    cdef double top = ceiling(dual, i), bottom = ground(dual, j)
    cdef double room_i = top - dual.a[i], room_j = dual.a[j] - bottom
    cdef double step = min(wanted, min(room_i, room_j)), a_i = dual.a[i], a_j = dual.a[j]
    dual.a[i] = top if step >= room_i else a_i + step
    dual.a[j] = bottom if step >= room_j else a_j - step
    set_mask(dual, i)
    set_mask(dual, j)
    if dual.a[i] == a_i and dual.a[j] == a_j:
        return 0.0
    return step


cdef double rounding(const Dual *dual) noexcept nogil:
    """A violation that gradients of this size cannot be told from zero by."""
    cdef double largest = 0
    cdef Py_ssize_t v
    for v in range(dual.n):
        largest = max(largest, fabs(dual.gradient[v]))
    return ULPS * largest


cdef struct View:                   # kernel rows of a problem's points
    const void *matrix
    Py_ssize_t stride
    const void *source              # where rows are gathered from when they are used; NULL: all are there
    Py_ssize_t source_stride
    const Py_ssize_t *members
    Py_ssize_t n_members
    char *present


cdef inline const real_t *row_of(const View *view, Py_ssize_t point, const real_t *example) noexcept nogil:
    cdef real_t *row = <real_t *> view.matrix + point * view.stride
    if view.source != NULL and not view.present[point]:
        gather_row(<const real_t *> view.source + view.members[point] * view.source_stride, view.members,
                   view.n_members, row)
        view.present[point] = 1
    return row


cdef Outcome solve_all(Dual *dual, const void *simd, const View *view, const real_t *diagonal, real_t *gains,
                       double tol, Py_ssize_t n_steps) noexcept nogil:
    """Steps until the violation is at most tol, or n_steps of them. `diagonal` has an entry a point, `gains` one a
    variable."""
    cdef Best best[GROUPS]
    cdef const Segment *segment
    cdef const real_t *row_i = NULL
    cdef const real_t *row_j = NULL
    cdef double step = 0, gain, most, curve, tau, k_ii
    # Differences of rounded kernel values below this are noise: a curvature that small counts as none.
    cdef double noise = 1e-7 if real_t is float else 1e-15
    cdef Py_ssize_t done = 0, i, j, where, point_j
    cdef int s, group
    while True:
        group = scan_all(dual, simd, row_i, row_j, step, best)
        if dual.violation <= tol:
            return SOLVED if dual.violation > NO_NUMBER else STALLED
        if done == n_steps:
            return MORE
        if dual.n_steps % CHECK == 0 and dual.violation <= rounding(dual):
            return STALLED
        i = best[group].variable
        if i < 0:
            return STALLED
        row_i = row_of(view, best[group].point, diagonal)
        k_ii = diagonal[best[group].point]
        tau = noise * fabs(k_ii) if k_ii != 0 else noise
        most, j, point_j = 0, -1, -1
        for s in range(dual.n_segments):
            segment = &dual.segments[s]
            if segment.group != group:
                continue
            where = partner(simd, row_i + segment.point, diagonal + segment.point, <real_t> k_ii, tau, best[group].up,
                            1.0 / dual.violation, dual.low + segment.start, dual.gradient + segment.start, segment.n,
                            gains, &gain)
            if where >= 0 and gain > most:
                most, j, point_j = gain, segment.start + where, segment.point + where
        if j < 0:
            return STALLED
        row_j = row_of(view, point_j, diagonal)
        curve = k_ii + <double> diagonal[point_j] - 2 * <double> row_i[point_j]
        step = move_pair(dual, i, j, max(curve, tau))
        if step == 0:
            return STALLED
        done += 1
        dual.n_steps += 1


# ---- working sets ----------------------------------------------------------------------------------------------

cdef Py_ssize_t count_points(const Dual *dual) noexcept nogil:
    """Points that the problem has; two groups over the same points count once."""
    cdef Py_ssize_t first = dual.segments[0].n, n = dual.n
    return first if dual.n_segments == 2 and dual.segments[0].point == dual.segments[1].point else n


cdef int start_work(Work *work, const Dual *dual, const Store *store, Py_ssize_t itemsize) noexcept nogil:
    """Memory for problems of this size. free_work() must follow."""
    cdef Py_ssize_t q = WORKING, n = dual.n
    cdef bint keeps_old = store.kind == PRODUCTS, whole = store.kind == WHOLE
    memset(work, 0, sizeof(Work))
    if store.kind == PRODUCTS:
        q = 2 * NARROW if n <= 2 * NARROW else NARROW
    elif store.kind == CACHED:
        q = min(q, store.n_slots)
    else:
        q = count_points(dual)
        q = q * 3 // 4 if q <= FEW_POINTS else q // 2
    work.size = q
    work.gains = malloc((n if whole else 2 * q) * itemsize)
    if work.gains == NULL:
        return NO_MEMORY
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
    work.block = malloc(q * q * itemsize)
    work.old_block = malloc((q * q if keeps_old else 1) * itemsize)
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
    free(work.block)
    free(work.old_block)
    free(work.diagonal)
    free(work.gains)
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


cdef int do_round(Dual *dual, Store *store, Work *work, const Best *best, double tol,
                  const real_t *example) noexcept nogil:
    """One working set: choose it, solve it, and change everybody's gradient. False in `outcome` terms is STALLED."""
    cdef const real_t **rows = <const real_t **> work.rows
    cdef real_t *diagonal = <real_t *> work.diagonal
    cdef double *change = work.numbers + 6 * 2 * work.size
    cdef double aim = tol
    cdef Dual local
    cdef View view
    cdef Py_ssize_t i, n_changed = 0, n_all = 0
    cdef int status, s
    choose_members(dual, work, best, tol)
    match_old(work)
    work.block, work.old_block = work.old_block if store.kind == PRODUCTS else work.block, \
        work.block if store.kind == PRODUCTS else work.old_block
    if store.kind != PRODUCTS:
        status = find_rows(store, work.members, work.n_members, rows)
        if status != OK:
            return status
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
        aim = max(tol, LOCAL * dual.violation)
    memset(&view, 0, sizeof(View))
    view.matrix, view.stride = work.block, work.n_members
    local.outcome = solve_all(&local, store.simd, &view, diagonal, <real_t *> work.gains, aim,
                              min(100 * work.size + 10000, dual.max_steps - dual.n_steps))
    dual.n_steps += local.n_steps
    memset(change, 0, work.n_members * sizeof(double))
    if not take_over(dual, &local, work, change, False):
        dual.outcome = STALLED
        return OK
    for i in range(work.n_members):             # only those that changed count
        if change[i] != 0:
            work.candidates[n_changed] = work.members[i]
            change[n_changed] = change[i]
            if store.kind != PRODUCTS:
                rows[n_changed] = rows[i]
            n_changed += 1
    add_change(store, work.candidates, change, n_changed, rows, dual.segments, dual.n_segments, dual.gradient)
    return OK


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
            status = find_rows(store, work.candidates, batch, rows)
            add_change(store, work.candidates, work.keys, batch, rows, dual.segments, dual.n_segments, dual.gradient)
            batch = 0
    return status


cdef void look_again(Dual *dual, const Store *store, Work *work, double tol, const real_t *example) noexcept nogil:
    """Shrink the problem, or shrink it further, where few enough points matter."""
    cdef Best best[GROUPS]
    cdef Dual *now = &work.local if work.shrunk else dual
    cdef Py_ssize_t n_points = work.n_members if work.shrunk else store.n, n_kept
    work.until_check = max(<Py_ssize_t> CHECK, min(n_points, <Py_ssize_t> 4 * CHECK))
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
            outcome = solve_all(now, store.simd, &view, <const real_t *> work.diagonal, <real_t *> work.gains, aim,
                                batch)
            dual.n_steps += now.n_steps - before
        else:
            view.matrix, view.stride, view.source = store.matrix, store.stride, NULL
            outcome = solve_all(now, store.simd, &view, <const real_t *> store.diagonal, <real_t *> work.gains, tol,
                                batch)
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
    while dual.outcome == MORE:
        scan_all(dual, store.simd, <const real_t *> NULL, <const real_t *> NULL, 0.0, best)
        if dual.violation <= tol:
            dual.outcome = SOLVED if dual.violation > NO_NUMBER else STALLED
        elif dual.n_steps >= last:
            return
        else:
            dual.status = do_round(dual, store, work, best, tol, example)
            if dual.status != OK:
                dual.outcome = FAILED


# ---- called from Python ----------------------------------------------------------------------------------------

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
        self.a, self.gradient = a.base, gradient.base
        self.kept = (lower, upper, a, gradient, masks, storage)
        set_masks(&self.dual)

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

    def look(self):
        """The violation for the gradient as it is now (the caller may have changed it)."""
        cdef Best best[GROUPS]
        cdef double example = 0
        scan_all(&self.dual, pick(0, &example), <const double *> NULL, <const double *> NULL, 0.0, best)
        return self.dual.violation


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


cdef bint is_open(const Dual *dual, Py_ssize_t max_steps) noexcept nogil:
    return dual.outcome == MORE and dual.n_steps < max_steps


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


def solve(KernelRows rows, machines, double tol, Py_ssize_t max_steps, int n_threads, tick=None, max_rows=None):
    """Solve the machines, all on the same rows, until each one's violation is at most tol or it took max_steps steps;
    or until max_rows kernel rows were computed in all.

    `tick(done, total, violation)` is called, and signals are looked at, several times a second. Machines are spread
    over the threads where their rows allow it; one alone uses the threads inside.
    """
    cdef Py_ssize_t n = len(machines), m, n_open = n, done, slice_steps = 500
    cdef bint apart = n > 1 and rows.store.kind != CACHED, single = rows.single
    cdef Job *jobs = <Job *> calloc(n, sizeof(Job))
    cdef Job **open_jobs = <Job **> malloc(n * sizeof(Job *))
    cdef Machine machine
    cdef Py_ssize_t largest = 0
    cdef Py_ssize_t most_rows = PY_SSIZE_T_MAX if max_rows is None else max_rows
    cdef double worst
    cdef int status = OK
    rows.give_failure()             # of an earlier call that something else ended
    if jobs == NULL or open_jobs == NULL:
        free(jobs)
        free(open_jobs)
        raise MemoryError("working memory could not be allocated")
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
        while n_open > 0 and rows.store.n_computed < most_rows:
            n_open, done, worst = 0, 0, 0.0
            for m in range(n):
                done += jobs[m].dual.n_steps
                worst = max(worst, jobs[m].dual.violation)
                if is_open(jobs[m].dual, max_steps):
                    open_jobs[n_open] = &jobs[m]
                    n_open += 1
                elif jobs[m].started:
                    settle_job(&jobs[m], single)
                    free_work(&jobs[m].work)
                    jobs[m].started = False
            started = perf_counter()
            if largest > 2 * SMALL:             # a few at a time: each has memory of its own for the shrunk problem
                n_open = min(n_open, <Py_ssize_t> n_threads)
            with nogil:
                if apart:
                    for m in prange(n_open, num_threads=n_threads, schedule="dynamic", chunksize=1):
                        run_job(open_jobs[m], tol, slice_steps, max_steps, single)
                else:
                    rows.store.n_threads = n_threads
                    if n_open > 0:
                        run_job(open_jobs[0], tol, slice_steps, max_steps, single)
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
