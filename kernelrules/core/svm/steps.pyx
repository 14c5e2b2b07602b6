"""SMO steps on all variables of a dual problem whose kernel rows are in memory.

    minimise  ½ βᵀKβ + pᵀβ + kink·Σ|a_v|   over  lower ≤ a ≤ upper,  Σ a_v fixed in each group,

where β of a point is the sum of its variables. Variables lie in segments: runs that belong to consecutive points and to
one group. C-SVC, ε-SVR and one-class problems have one group, ν-SVC and ν-SVR two. With the gradient g = Kβ + p, a
variable can grow while up_v = -(slope of the kink) is finite, and shrink while low_v is. The violation is the maximum,
over the groups, of max(up - g) + max(low + g); the problem is solved when it is at most tol.

A step takes the variable i with the largest up - g, and its partner j by second-order selection (Fan, Chen and Lin
2005, JMLR 6), and moves both to the minimum between their bounds and kinks (Platt 1998). Our own: after one step per
variable and EXACT_STEPS more, steps are OVER_RELAXATION times as long, as in successive over-relaxation, because later
steps undo part of earlier ones. Such a step still lowers the objective, by the share OVER_RELAXATION·(2 -
OVER_RELAXATION) of the exact step.

Invariant: the sums of the groups never change, and every a stays within its bounds.
"""

from libc.math cimport fabs

from kernelrules.core.svm.rows cimport RowStore, Segment, gather_row
from kernelrules.core.simd.dispatch cimport (
    KR_NEVER, KR_NOTHING, kr_partner_search, kr_scan, select_partner, update_gradient,
)
from kernelrules.core.base.types cimport real_t

cdef enum:
    STALL_CHECK_INTERVAL = 500  # steps between two comparisons of the violation with rounding
    EXACT_STEPS = 500           # with longer steps from the first one on, easy problems take up to twice as many steps

NAN_VIOLATION = -1.5e301        # the maximum over no numbers at all is KR_NOTHING, in both directions
cdef double OVER_RELAXATION = 1.6   # of 1.4 to 1.7: 1.6 takes the fewest steps over all (docs/developers/solver.rst)
cdef double GRADIENT_RTOL = 1e-14   # rounding error of a gradient after many steps, relative to its largest entry


# ---- one variable ----------------------------------------------------------------------------------------------

cdef void set_mask(Dual *dual, Py_ssize_t v) noexcept nogil:
    """Set up and low of a_v: the slope of the kink on either side, or KR_NEVER at a bound."""
    cdef double a = dual.a[v], kink = dual.kink
    dual.up[v] = KR_NEVER if a >= dual.upper[v] else (-kink if a >= 0 else kink)
    dual.low[v] = KR_NEVER if a <= dual.lower[v] else (kink if a > 0 else -kink)


cdef bint is_free(const Dual *dual, Py_ssize_t v) noexcept nogil:
    """Whether a_v lies between its bounds, and off the kink."""
    return dual.lower[v] < dual.a[v] < dual.upper[v] and (dual.a[v] != 0 or dual.kink == 0)


cdef void set_masks(Dual *dual) noexcept nogil:
    cdef Py_ssize_t v
    for v in range(dual.n):
        set_mask(dual, v)


cdef inline double upper_end(const Dual *dual, Py_ssize_t v) noexcept nogil:
    """The value up to which a_v can grow before the slope changes."""
    return 0.0 if dual.kink > 0 and dual.a[v] < 0 and dual.upper[v] > 0 else dual.upper[v]


cdef inline double lower_end(const Dual *dual, Py_ssize_t v) noexcept nogil:
    """The value down to which a_v can shrink before the slope changes."""
    return 0.0 if dual.kink > 0 and dual.a[v] > 0 and dual.lower[v] < 0 else dual.lower[v]


# ---- all variables together ------------------------------------------------------------------------------------

cdef int scan_all(Dual *dual, const void *simd, const real_t *row_i, const real_t *row_j, double step,
                  MaxViolation *best) noexcept nogil:
    """Change the gradient by step·(row_i - row_j), unless these are NULL. Finds the maximal violation of every group,
    and returns the group with the largest."""
    cdef const Segment *segment
    cdef kr_scan found
    cdef MaxViolation *here
    cdef const real_t *part_i = NULL
    cdef const real_t *part_j = NULL
    cdef int s, g, worst = 0
    for g in range(MAX_GROUPS):
        best[g].up = best[g].low = KR_NOTHING
        best[g].variable = -1
    for s in range(dual.n_segments):
        segment = &dual.segments[s]
        here = &best[segment.group]
        if row_i != NULL:
            part_i, part_j = row_i + segment.point, row_j + segment.point
        found = update_gradient(simd, part_i, part_j, step, dual.up + segment.start, dual.low + segment.start,
                                dual.gradient + segment.start, segment.n)
        if found.up > here.up:
            here.up = found.up
            here.variable, here.point = segment.start + found.where, segment.point + found.where
        here.low = max(here.low, found.low)
    for g in range(1, MAX_GROUPS):
        if best[g].up + best[g].low > best[worst].up + best[worst].low:
            worst = g
    dual.violation = best[worst].up + best[worst].low
    return worst


cdef double move_pair(Dual *dual, Py_ssize_t i, Py_ssize_t j, double curve) noexcept nogil:
    """Move a_i up and a_j down, to the minimum between bounds and kinks or further. Returns how far."""
    cdef double relax = OVER_RELAXATION if dual.n_steps >= dual.n + EXACT_STEPS else 1.0
    cdef double wanted = relax * (dual.up[i] - dual.gradient[i] + dual.low[j] + dual.gradient[j]) / curve
    cdef double top = upper_end(dual, i), bottom = lower_end(dual, j)
    cdef double room_i = top - dual.a[i], room_j = dual.a[j] - bottom
    cdef double step = min(wanted, min(room_i, room_j)), a_i = dual.a[i], a_j = dual.a[j]
    dual.a[i] = top if step >= room_i else a_i + step
    dual.a[j] = bottom if step >= room_j else a_j - step
    set_mask(dual, i)
    set_mask(dual, j)
    if dual.a[i] == a_i and dual.a[j] == a_j:
        return 0.0
    return step


cdef double rounding_error(const Dual *dual) noexcept nogil:
    """The rounding error of the gradient: a smaller violation cannot be distinguished from zero."""
    cdef double largest = 0
    cdef Py_ssize_t v
    for v in range(dual.n):
        largest = max(largest, fabs(dual.gradient[v]))
    return GRADIENT_RTOL * largest


cdef int find_violation(Dual *dual, const RowStore *store, MaxViolation *best) noexcept nogil:
    """Scan all variables without changing the gradient."""
    if store.single:
        return scan_all(dual, store.simd, <const float *> NULL, <const float *> NULL, 0.0, best)
    return scan_all(dual, store.simd, <const double *> NULL, <const double *> NULL, 0.0, best)


cdef inline const real_t *row_of(const RowView *view, real_t *matrix, Py_ssize_t point) noexcept nogil:
    """The kernel row of a point, in `matrix`, which is that of the view; gathered there when first used."""
    cdef real_t *row = matrix + point * view.stride
    if view.source != NULL and not view.present[point]:
        gather_row(<const real_t *> view.source + view.members[point] * view.source_stride, view.members,
                   view.n_members, row)
        view.present[point] = 1
    return row


cdef SolverOutcome take_typed_steps(Dual *dual, const void *simd, const RowView *view, const real_t *diagonal,
                                    double tol, Py_ssize_t n_steps) noexcept nogil:
    """take_steps, by the type of kernel values."""
    cdef MaxViolation best[MAX_GROUPS]
    cdef kr_partner_search search
    cdef const Segment *segment
    cdef real_t *matrix = <real_t *> view.matrix
    cdef const real_t *row_i = NULL
    cdef const real_t *row_j = NULL
    cdef double step = 0, gain, most, curve, tau, k_ii
    # A curvature below the rounding error of kernel values counts as zero.
    cdef double noise = 1e-7 if real_t is float else 1e-15
    cdef Py_ssize_t done = 0, i, j, where, point_j
    cdef int s, group
    while True:
        group = scan_all(dual, simd, row_i, row_j, step, best)
        if dual.violation <= tol:
            return SOLVED if dual.violation > NAN_VIOLATION else NO_PROGRESS
        if done == n_steps:
            return UNFINISHED
        if dual.n_steps % STALL_CHECK_INTERVAL == 0 and dual.violation <= rounding_error(dual):
            return NO_PROGRESS
        i = best[group].variable
        if i < 0:
            return NO_PROGRESS
        row_i = row_of(view, matrix, best[group].point)
        k_ii = diagonal[best[group].point]
        tau = noise * fabs(k_ii) if k_ii != 0 else noise
        search.tau, search.highest_up, search.inverse = tau, best[group].up, 1.0 / dual.violation
        most, j, point_j = 0, -1, -1
        for s in range(dual.n_segments):
            segment = &dual.segments[s]
            if segment.group != group:
                continue
            search.low, search.gradient, search.n = dual.low + segment.start, dual.gradient + segment.start, segment.n
            where = select_partner(simd, row_i + segment.point, diagonal + segment.point, <real_t> k_ii, &search, &gain)
            if where >= 0 and gain > most:
                most, j, point_j = gain, segment.start + where, segment.point + where
        if j < 0:
            return NO_PROGRESS
        row_j = row_of(view, matrix, point_j)
        curve = k_ii + <double> diagonal[point_j] - 2 * <double> row_i[point_j]
        step = move_pair(dual, i, j, max(curve, tau))
        if step == 0:
            return NO_PROGRESS
        done += 1
        dual.n_steps += 1


cdef SolverOutcome take_steps(Dual *dual, const RowStore *store, const RowView *view, const void *diagonal, double tol,
                              Py_ssize_t n_steps) noexcept nogil:
    """Take steps until the violation is at most tol, at most n_steps of them. `diagonal` has one entry per point."""
    if store.single:
        return take_typed_steps(dual, store.simd, view, <const float *> diagonal, tol, n_steps)
    return take_typed_steps(dual, store.simd, view, <const double *> diagonal, tol, n_steps)
