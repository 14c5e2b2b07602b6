"""The dual problem of the support vector machines, the SMO solver's passes over it one at a time, the ring of kernel
rows, and a second way to solve it.

    minimise  ½ βᵀKβ + linearᵀa + kink·Σ|a_v|   over  lower ≤ a ≤ upper,  Σ a_v fixed in each group,

where β of a point is the sum of its variables. A segment (start, n, point, group) is a run of n variables that belong
to consecutive points.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

EXACT = np.longdouble
NEVER = -1e300  # the mask of a variable that cannot move in a direction
EARLY, RELAX = 500, 1.6  # steps beyond one a variable that are the best ones; how much longer later ones are
NOISE = {np.dtype(np.float64): 1e-15, np.dtype(np.float32): 1e-7}  # curvature below which there is none, of k_ii


@dataclass(frozen=True)
class Dual:
    """One problem, with a point to start from. K may be float32: its values are then exact as they are."""

    K: np.ndarray
    segments: tuple[tuple[int, int, int, int], ...]
    lower: np.ndarray
    upper: np.ndarray
    linear: np.ndarray
    start: np.ndarray
    kink: float = 0.0

    @cached_property
    def values(self):
        """K in float64."""
        return self.K.astype(np.float64)

    @cached_property
    def points(self):
        """Of every variable its point."""
        return np.concatenate([np.arange(point, point + n) for _, n, point, _ in self.segments])

    @cached_property
    def groups(self):
        """Of every variable its group."""
        return np.concatenate([np.full(n, group) for _, n, _, group in self.segments])

    def beta(self, a):
        return np.bincount(self.points, a, minlength=len(self.K))

    def gradient(self, a):
        """Of the smooth part."""
        return (self.values @ self.beta(a))[self.points] + self.linear

    def objective(self, a):
        beta = self.beta(a)
        return 0.5 * beta @ self.values @ beta + self.linear @ a + self.kink * np.abs(a).sum()

    def sums(self, a):
        """Of each group that there is."""
        return np.array([a[self.groups == g].sum() for g in np.unique(self.groups)])

    def masks(self, a):
        """Minus the kink's slope above a, its slope below a; NEVER where a bound is in the way."""
        up = np.where(a >= self.upper, NEVER, np.where(a >= 0, -self.kink, self.kink))
        low = np.where(a <= self.lower, NEVER, np.where(a > 0, self.kink, -self.kink))
        return up, low

    def violation(self, a, gradient=None):
        """How much the worst pair of a group gains by a small step, for each unit of it."""
        gradient = self.gradient(a) if gradient is None else gradient
        up, low = self.masks(a)
        return max(
            (up - gradient)[self.groups == g].max() + (low + gradient)[self.groups == g].max()
            for g in np.unique(self.groups)
        )

    def excess(self, a, other):
        """By how much the objective at a may exceed that at `other`, which satisfies the same constraints.

        A convex function lies above its tangent, whose slope towards `other` is the violation at most for each unit
        that moves; where K is not positive semi-definite the curvature on the way is added.
        """
        way = self.beta(other) - self.beta(a)
        curvature = way @ self.values @ way
        return max(self.violation(a), 0.0) * np.abs(other - a).sum() / 2 + max(-curvature / 2, 0.0)


# ---- problems ---------------------------------------------------------------------------------------------------

LAYOUTS = ("one group", "two groups", "runs", "mixed runs", "twice", "twice in one group", "overlapping")


def make_segments(layout, n, rng):
    """Segments over n ≥ 2 points; no point has more than two variables."""
    middle = int(rng.integers(1, n))
    match layout:
        case "one group":
            lengths, points, groups = [n], [0], [0]
        case "two groups":
            lengths, points, groups = [middle, n - middle], [0, middle], [0, 1]
        case "runs" | "mixed runs":  # with gaps between them, in any order
            cuts = np.sort(rng.choice(n + 1, size=min(n + 1, 2 * int(rng.integers(1, 5))), replace=False))
            runs = rng.permutation(cuts[: len(cuts) // 2 * 2].reshape(-1, 2))
            lengths, points = list(runs[:, 1] - runs[:, 0]), list(runs[:, 0])
            groups = list(rng.integers(2, size=len(runs)) if layout == "mixed runs" else np.zeros(len(runs), dtype=int))
        case "twice":
            lengths, points, groups = [n, n], [0, 0], [0, 1]
        case "twice in one group":
            lengths, points, groups = [n, n], [0, 0], [0, 0]
        case "overlapping":
            first = int(rng.integers(0, n))
            lengths, points, groups = [middle, n - first], [0, first], [0, int(rng.integers(2))]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return tuple(
        (int(start), int(length), int(point), int(group))
        for start, length, point, group in zip(starts, lengths, points, groups, strict=False)
    )


def make_dual(rng, K, layout, kink=0.0, start="inside", shifted=False):
    """A random problem on K. Some variables have no room, or a side without room; `shifted` bounds leave out zero."""
    segments = make_segments(layout, len(K), rng)
    n = sum(segment[1] for segment in segments)
    width = rng.exponential(size=(2, n)) * rng.choice([0.0, 1.0, 1.0], size=(2, n))
    lower, upper, linear = -width[0], width[1], rng.normal(size=n)
    share = {"inside": rng.random(n), "corner": rng.integers(2, size=n), "zero": np.zeros(n)}[start]
    a = np.zeros(n) if start == "zero" else lower + share * (upper - lower)
    if shifted:
        shift = rng.normal(size=n)
        lower, upper, a = lower + shift, upper + shift, a + shift
    return Dual(K, segments, lower, upper, linear, np.clip(a, lower, upper), kink)


def with_ties(dual, kinds):
    """The problem with points of the same kind made equal in everything."""
    _, first, inverse = np.unique(kinds, return_index=True, return_inverse=True)
    same = first[inverse]
    _, first, inverse = np.unique(kinds[dual.points], return_index=True, return_inverse=True)
    numbers = {name: getattr(dual, name)[first[inverse]] for name in ("lower", "upper", "linear", "start")}
    return replace(dual, K=np.ascontiguousarray(dual.K[np.ix_(same, same)]), **numbers)


# ---- passes -----------------------------------------------------------------------------------------------------


def descend(row_i, row_j, step, up, low, gradient):
    """The gradient after a step of +step at i and -step at j; the place and value of the highest up - gradient, and the
    highest low + gradient."""
    gradient = gradient + step * (row_i.astype(np.float64) - row_j.astype(np.float64))
    where = int(np.argmax(up - gradient))
    return gradient, where, (up - gradient)[where], (low + gradient).max()


def partner(row_i, diagonal, k_ii, highest_up, violation, low, gradient):
    """The j whose pair with i promises the largest decrease, and all promises, in the type of the rows: only the
    violation is summed in float64. `row_i` and `diagonal` have an entry a variable. -1 where nothing is promised."""
    real = row_i.dtype.type
    least = real(noise_of(k_ii))
    with np.errstate(over="ignore"):  # of masks
        size = np.maximum(((low + gradient + highest_up) * (1.0 / violation)).astype(real), real(0))
    curve = (k_ii + diagonal) - real(2) * row_i
    gains = size * size / np.maximum(curve, least)
    return (int(np.argmax(gains)) if (gains > 0).any() else -1), gains


def noise_of(k_ii):
    """The curvature that counts as none."""
    size = abs(float(k_ii))
    return NOISE[np.dtype(type(k_ii))] * (size if size > 0 else 1.0)


def move_pair(dual, a, gradient, i, j, curve, n_taken=0):
    """a_i up and a_j down by as much as is best, or by more after many steps, but not past a bound or a kink. The new a
    and the step."""
    relax = RELAX if n_taken >= len(a) + EARLY else 1.0
    up, low = dual.masks(a)
    crosses_i = dual.kink > 0 and a[i] < 0 < dual.upper[i]
    crosses_j = dual.kink > 0 and dual.lower[j] < 0 < a[j]
    top = 0.0 if crosses_i else dual.upper[i]
    bottom = 0.0 if crosses_j else dual.lower[j]
    step = min(relax * (up[i] - gradient[i] + low[j] + gradient[j]) / curve, top - a[i], a[j] - bottom)
    moved = a.copy()
    moved[i] = top if step >= top - a[i] else a[i] + step
    moved[j] = bottom if step >= a[j] - bottom else a[j] - step
    return moved, step


def take_step(dual, diagonal, a, gradient, n_taken=0):
    """The pair and step that second-order selection chooses from here, after so many, with a and the gradient after it;
    None where there is no step to take."""
    up, low = dual.masks(a)
    best = None
    for g in np.unique(dual.groups):
        members = np.flatnonzero(dual.groups == g)
        nothing = np.zeros(len(members), dtype=dual.K.dtype)
        _, where, highest_up, highest_low = descend(nothing, nothing, 0.0, up[members], low[members], gradient[members])
        if best is None or highest_up + highest_low > best[0]:
            best = highest_up + highest_low, highest_up, members[where], members
    violation, highest_up, i, members = best
    if violation <= 0:
        return None
    point = dual.points[i]
    row_i, others = dual.K[point], dual.points[members]
    where, _ = partner(
        row_i[others], diagonal[others], diagonal[point], highest_up, violation, low[members], gradient[members]
    )
    if where < 0:
        return None
    j = members[where]
    k_ii, k_jj, k_ij = (float(k) for k in (diagonal[point], diagonal[dual.points[j]], row_i[dual.points[j]]))
    curve = max(k_ii + k_jj - 2 * k_ij, noise_of(diagonal[point]))
    moved, step = move_pair(dual, a, gradient, i, j, curve, n_taken)
    row_j = dual.K[dual.points[j]]
    after, *_ = descend(row_i[dual.points], row_j[dual.points], step, up, low, gradient)
    return i, j, step, moved, after


# ---- products ---------------------------------------------------------------------------------------------------


def product(K, coefficients):
    """K @ coefficients in extended precision, and how much float64 may lose of it, whatever the order of the sum."""
    K, coefficients = np.asarray(K, dtype=EXACT), np.asarray(coefficients, dtype=EXACT)
    ulp, tiny = EXACT(np.finfo(np.float64).eps), EXACT(np.finfo(np.float64).tiny)
    return K @ coefficients, (K.shape[-1] + 2) * (ulp * (np.abs(K) @ np.abs(coefficients)) + tiny)


# ---- kept rows --------------------------------------------------------------------------------------------------


class Ring:
    """Which rows the ring of slots holds. Rows that are there are used first. The others take the next slots, and the
    place of those in them, half of the ring at a time; from one half to the next the ring does not move. Where the ring
    holds all n rows, they come at once."""

    def __init__(self, n_slots, n):
        self.slots, self.head = [None] * n_slots, 0
        self.most = n_slots if n_slots >= n else max(n_slots // 2, 1)

    def ask(self, points):
        """Use these rows; the batches that have to be computed for it."""
        points, n_kept, batches = list(points), 0, []
        for i, point in enumerate(points):
            if point in self.slots:
                points[i], points[n_kept] = points[n_kept], point
                n_kept += 1
        missing, size = points[n_kept:], self.most
        for first in range(0, len(missing), size):
            batch, head = missing[first : first + size], self.head
            room = len(self.slots) - head
            batches += [part for part in (batch[:room], batch[room:]) if part]
            for point in batch:
                self.slots[self.head] = point
                self.head = (self.head + 1) % len(self.slots)
            if first + size < len(missing):
                self.head = head
        return batches


# ---- another solver ---------------------------------------------------------------------------------------------


def best_shift(curve, slope, kink, a_i, a_j, least, most):
    """The t in [least, most] with the smallest ½ curve t² + slope t + kink (|a_i + t| + |a_j - t|), by trying the ends,
    the kinks, and where each of the three pieces is flat."""

    def value(t):
        return 0.5 * curve * t * t + slope * t + kink * (abs(a_i + t) + abs(a_j - t))

    candidates = [least, most, -a_i, a_j]
    if curve > 0:
        candidates += [-(slope + side * kink) / curve for side in (-2, 0, 2)]
    return min((min(max(t, least), most) for t in candidates), key=value)


def solve_pairwise(dual, tol, most_steps=1000):
    """Exact coordinate descent: the pair that violates most is moved to its best place, across kinks too."""
    K, a = dual.values, dual.start.copy()
    for _ in range(most_steps):
        gradient = dual.gradient(a)
        up, low = dual.masks(a)
        violation, i, j = -np.inf, -1, -1
        for g in np.unique(dual.groups):
            members = np.flatnonzero(dual.groups == g)
            grows, shrinks = members[np.argmax((up - gradient)[members])], members[np.argmax((low + gradient)[members])]
            here = (up - gradient)[grows] + (low + gradient)[shrinks]
            if here > violation:
                violation, i, j = here, grows, shrinks
        if violation <= tol:
            break
        p, q = dual.points[i], dual.points[j]
        room_up = min(dual.upper[i] - a[i], a[j] - dual.lower[j])
        room_down = min(a[i] - dual.lower[i], dual.upper[j] - a[j])
        slope = gradient[i] - gradient[j]
        shift = best_shift(K[p, p] + K[q, q] - 2 * K[p, q], slope, dual.kink, a[i], a[j], -room_down, room_up)
        a[i] = min(max(a[i] + shift, dual.lower[i]), dual.upper[i])
        a[j] = min(max(a[j] - shift, dual.lower[j]), dual.upper[j])
    return a
