"""Steps of sequential minimal optimisation on all variables of a dual problem, whose kernel rows are at hand.

    minimise  ½ βᵀKβ + pᵀβ + kink·Σ|a_v|   over  lower ≤ a ≤ upper,  Σ a_v fixed in each group,

where β of a point is the sum of its variables. Variables lie in segments, runs that belong to consecutive points and to
one group; C-SVC, ε-SVR and one-class have one group, ν-SVC and ν-SVR two. With the gradient g = Kβ + p a variable can
grow while up_v = -(slope of the kink) is finite and shrink while low_v is; the violation is, over the groups, the most
of max(up - g) + max(low + g), and the problem is solved when it is at most tol.

A step takes the variable i that wants most to grow and its partner j of second-order selection, and moves both to the
best point between their bounds and kinks. Where steps come to more than one a variable, they undo each other's work, as
they do in coordinate descent: each then goes further than is best for its pair, by RELAX, which still lowers the
objective, by RELAX·(2 - RELAX) of what the best would.

Invariant: the sums of the groups never change, and every a stays within its bounds.
"""

from libc.math cimport fabs

from kernelrules.core.rows cimport Segment, gather_row
from kernelrules.core.simd cimport KR_NEVER, KR_NOTHING, descend, kr_scan, partner
from kernelrules.core.types cimport real_t

cdef enum:
    LOOK = 500                  # steps between two looks at what rounding has left
    EARLY = 500                 # steps, and one a variable, that go to the best point: problems that are easily solved

NO_NUMBER = -1.5e301            # the highest of no numbers at all is KR_NOTHING, in both directions
cdef double RELAX = 1.6         # times the best step, later
cdef double ULPS = 1e-14        # of a gradient, that many steps leave uncertain


# ---- one variable ----------------------------------------------------------------------------------------------

cdef void set_mask(Dual *dual, Py_ssize_t v) noexcept nogil:
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
    """The best step of a_i up and a_j down between bounds and kinks, or a longer one; how far both went."""
    cdef double relax = RELAX if dual.n_steps >= dual.n + EARLY else 1.0
    cdef double wanted = relax * (dual.up[i] - dual.gradient[i] + dual.low[j] + dual.gradient[j]) / curve
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


cdef inline const real_t *row_of(const View *view, Py_ssize_t point, const real_t *example) noexcept nogil:
    cdef real_t *row = <real_t *> view.matrix + point * view.stride
    if view.source != NULL and not view.present[point]:
        gather_row(<const real_t *> view.source + view.members[point] * view.source_stride, view.members,
                   view.n_members, row)
        view.present[point] = 1
    return row


cdef Outcome solve_all(Dual *dual, const void *simd, const View *view, const real_t *diagonal, double tol,
                       Py_ssize_t n_steps) noexcept nogil:
    """Steps until the violation is at most tol, or n_steps of them. `diagonal` has an entry a point."""
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
        if dual.n_steps % LOOK == 0 and dual.violation <= rounding(dual):
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
                            &gain)
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
