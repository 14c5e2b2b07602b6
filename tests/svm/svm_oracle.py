"""The five support vector machines as small quadratic programmes, written out and solved by an interior-point method.

    minimise ½ a'Qa + p'a    where 0 <= a <= upper and, for each group g, the sum over g of signs · a is targets[g]

A machine is such a problem over its rows (regression has two variables a row, one for each side of the tube), with the
scales of LIBSVM. Nothing here resembles SMO: what both find is right, or both are wrong in different ways.
"""

from dataclasses import dataclass

import numpy as np

KINDS = ("svc", "nu_svc", "svr", "nu_svr", "one_class")


@dataclass(frozen=True)
class Problem:
    """One machine; `rows[i]` and `sides[i]` say which row of K variable i belongs to, and with which sign."""

    kind: str
    K: np.ndarray
    rows: np.ndarray
    sides: np.ndarray
    p: np.ndarray
    upper: np.ndarray
    signs: np.ndarray
    group: np.ndarray
    targets: np.ndarray

    @property
    def Q(self):
        return np.outer(self.sides, self.sides) * self.K[np.ix_(self.rows, self.rows)]

    def product(self, a):
        """Qa, without writing Q out, which has four times the entries of K in regression."""
        return self.sides * (self.K @ self.coefficients(a))[self.rows]

    def objective(self, a):
        """What LIBSVM minimises, before nu-SVC is rescaled."""
        return 0.5 * a @ self.product(a) + self.p @ a

    def gradient(self, a):
        return self.product(a) + self.p

    def coefficients(self, a):
        """One signed coefficient a row of K, so that f = K c + b."""
        return np.bincount(self.rows, self.sides * a, minlength=len(self.K))


def problem(kind, K, y=None, *, C=1.0, nu=0.5, epsilon=0.1, weight=None):
    """The problem of one machine: y is ±1 for classification, numbers for regression, unused for one class.

    `weight` multiplies the upper bound of each row, as a row given so many times would.
    """
    n = len(K)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    one, rows = np.ones(n), np.arange(n)
    if kind == "svc":
        return Problem(kind, K, rows, y, -one, C * weight, y, np.zeros(n, int), np.zeros(1))
    if kind == "nu_svc":
        half = nu * weight.sum() / 2
        return Problem(kind, K, rows, y, 0 * one, weight, one, (y < 0).astype(int), np.array([half, half]))
    if kind == "one_class":
        return Problem(kind, K, rows, one, 0 * one, weight, one, np.zeros(n, int), np.array([nu * weight.sum()]))
    rows, sides = np.tile(rows, 2), np.repeat([1.0, -1.0], n)
    upper = C * np.tile(weight, 2)
    if kind == "svr":
        p = epsilon - sides * np.tile(y, 2)
        return Problem(kind, K, rows, sides, p, upper, sides, np.zeros(2 * n, int), np.zeros(1))
    half = C * nu * weight.sum() / 2
    group = (sides < 0).astype(int)
    return Problem(kind, K, rows, sides, -sides * np.tile(y, 2), upper, np.ones(2 * n), group, np.array([half, half]))


def solve(q, relative_gap=1e-9):
    """The minimiser of a convex problem, with a duality gap below `relative_gap`, or an AssertionError.

    Mehrotra's predictor and corrector on the variables whose upper bound is not zero. Every iterate is put back onto
    the constraints and judged by its gap: the best one is the answer, however the last steps fared in rounding.
    """
    live = q.upper > 0
    Q, p, u = q.Q[np.ix_(live, live)], q.p[live], q.upper[live]
    A = np.array([np.where(q.group == g, q.signs, 0.0)[live] for g in range(len(q.targets))])
    n, m = len(u), len(A)
    start = max(np.abs(Q @ u).max(), np.abs(p).max(), 1e-9)
    a, s, z, v, b = u / 2, u / 2, np.full(n, start), np.full(n, start), np.zeros(m)  # s is the distance to u

    best, least = None, np.inf
    for _ in range(100):
        full = np.zeros(len(q.upper))
        full[live] = a
        full = onto_constraints(q, full)
        found = gap(q, full)
        if found < least:
            best, least = full, found
        if least <= 1e-12 * max(1.0, abs(q.objective(best))):
            break
        residuals = Q @ a + p - A.T @ b - z + v, A @ a - q.targets, a + s - u
        mean = (a @ z + s @ v) / (2 * n)
        try:
            with np.errstate(all="raise", under="ignore"):
                aimless = _direction(Q, A, (a, s, z, v), residuals, 0.0, 0.0)
                reach = _longest((a, s, z, v), aimless)
                da, ds, dz, dv, _ = aimless
                reached = ((a + reach * da) @ (z + reach * dz) + (s + reach * ds) @ (v + reach * dv)) / (2 * n)
                aim = mean * (reached / mean) ** 3
                step = _direction(Q, A, (a, s, z, v), residuals, aim - da * dz, aim - ds * dv)
                length = 0.995 * _longest((a, s, z, v), step)
                a, s, z, v, b = (x + length * dx for x, dx in zip((a, s, z, v, b), step, strict=True))
        except (FloatingPointError, np.linalg.LinAlgError):
            break  # at the end of what float64 can tell apart

    allowed = relative_gap * max(1.0, abs(q.objective(best)))
    assert least <= allowed, f"the oracle stopped at a gap of {least:.3g}"
    return best


def _direction(Q, A, point, residuals, lower_aim, upper_aim):
    """Newton's step towards a z = lower_aim, s v = upper_aim and no residuals."""
    (a, s, z, v), (dual_left, equal_left, box_left) = point, residuals
    n, m = len(a), len(A)
    system = np.block([[Q + np.diag(z / a + v / s), -A.T], [A, np.zeros((m, m))]])
    right = -dual_left + (lower_aim / a - z) - (upper_aim / s - v) - v / s * box_left
    both = np.linalg.solve(system, np.concatenate([right, -equal_left]))
    da, db = both[:n], both[n:]
    ds = -box_left - da
    return da, ds, (lower_aim - z * da) / a - z, (upper_aim - v * ds) / s - v, db


def _longest(point, step):
    """The longest step up to 1 that leaves nothing negative."""
    x, dx = np.concatenate(point), np.concatenate(step[:4])
    falling = dx < 0
    return min(1.0, (-x[falling] / dx[falling]).min(initial=np.inf))


def onto_constraints(q, a):
    """The nearest point of the box that meets the equalities: one shift along the signs for each group.

    The sum grows with the shift, linearly between the shifts at which some variable meets a bound.
    """
    result = np.clip(a, 0, q.upper)
    for g, target in enumerate(q.targets):
        at = q.group == g
        signs, upper, start = q.signs[at], q.upper[at], a[at]
        shifts = np.sort(np.concatenate([-start * signs, (upper - start) * signs]))
        sums = np.clip(start + shifts[:, None] * signs, 0, upper) @ signs
        result[at] = np.clip(start + np.interp(target, sums, shifts) * signs, 0, upper)
    return result


# ---- certificates -----------------------------------------------------------------------------------------------


def feasible(q, a, atol=1e-9):
    """How far a leaves the box and the equalities, in units of the largest upper bound; it must be nothing."""
    scale = max(q.upper.max(), 1e-300)
    outside = max((-a).max(), (a - q.upper).max(), 0.0) / scale
    unequal = max(abs(q.signs[q.group == g] @ a[q.group == g] - t) for g, t in enumerate(q.targets)) / scale
    return outside <= atol and unequal <= atol * len(a)


def gap(q, a):
    """Duality gap: what the linear model at a could still gain over all feasible points, by its own dual in b."""
    G = q.gradient(a)
    total = a @ G
    for g, target in enumerate(q.targets):
        at = q.group == g
        signs, upper, kinks = q.signs[at], q.upper[at], q.signs[at] * G[at]
        # Σ upper · (signs b - G)+ - target b is convex, and its slope grows by `upper` at each kink: it is least at the
        # first one after which it does not fall.
        order = np.argsort(kinks)
        slopes = -target - upper[signs < 0].sum() + np.cumsum(upper[order])
        b = kinks[order[min(np.searchsorted(slopes, 0.0), len(order) - 1)]]
        total += upper @ np.maximum(0, signs * (b - kinks)) - target * b
    return total


def violation(q, a, atol=1e-12):
    """max(0, m(a) - M(a)), the larger of the groups': by how much the worst pair could still gain."""
    G, room = q.gradient(a), atol * q.upper
    worst = 0.0
    for g in range(len(q.targets)):
        at = q.group == g
        value = -q.signs * G
        below, above = a < q.upper - room, a > room
        up = at & np.where(q.signs > 0, below, above)
        low = at & np.where(q.signs > 0, above, below)
        if up.any() and low.any():
            worst = max(worst, value[up].max() - value[low].min())
    return worst


# ---- the primal problems, as they are printed ---------------------------------------------------------------------


def primal(kind, K, c, y=None, *, b=None, width=None, C=1.0, nu=0.5, epsilon=0.1, weight=None):
    """The primal objective of w = Σ c φ at intercept b, or at the best one; the free ρ or ε is `width`, or the best.

    svc         ½|w|² + C Σ w (1 - y f)+              svr         ½|w|² + C Σ w (|y - f| - ε)+
    nu_svc      ½|w|² - ν n ρ + Σ w (ρ - y f)+        nu_svr      ½|w|² + C (ν n ε + Σ w (y - f - ε)+ + w (f - y - ε)+)
    one_class   ½|w|² - ν n ρ + Σ w (ρ - w·φ)+        with f = w·φ + b, ρ = -b for one class, n the sum of the weights
    """
    weight = np.ones(len(K)) if weight is None else np.asarray(weight, dtype=float)
    n, f0 = weight.sum(), K @ c
    half_square = 0.5 * c @ f0

    # Each `value` is convex in b and linear between kinks: the best of these is the best of all.
    match kind:
        case "svc":

            def value(b):
                return half_square + C * np.maximum(0, 1 - y * (f0 + b)) @ weight

            kinks = y - f0
        case "svr":

            def value(b):
                return half_square + C * np.maximum(0, np.abs(y - f0 - b) - epsilon) @ weight

            kinks = np.concatenate([y - f0 - epsilon, y - f0 + epsilon])
        case "one_class":

            def value(b):
                return half_square + nu * n * b + np.maximum(0, -b - f0) @ weight

            kinks = -f0
        case "nu_svc":

            def value(b):
                margins = y * (f0 + b)
                widths = margins if width is None else np.array([width])
                misses = np.maximum(0, widths[:, None] - margins) @ weight  # with each margin as ρ
                return half_square + (misses - nu * n * widths).min()

            kinks = np.add.outer(-f0[y > 0], -f0[y < 0]).ravel() / 2
        case "nu_svr":

            def value(b):
                left = np.abs(y - f0 - b)
                if width is not None:  # by its two sides, since a machine that stopped early may have a tube below 0
                    sides = np.maximum(0, y - f0 - b - width) + np.maximum(0, f0 + b - y - width)
                    return half_square + C * (nu * n * width + sides @ weight)
                misses = np.maximum(0, left - left[:, None]) @ weight  # with each size of a residual as ε
                return half_square + C * (nu * n * left + misses).min()

            kinks = np.add.outer(y - f0, y - f0).ravel() / 2
        case _:
            raise AssertionError(kind)
    return value(b) if b is not None else min(map(value, np.unique(kinks)))


# ---- models ---------------------------------------------------------------------------------------------------------


def nu_scale(c, nu, weight_total):
    """ρ: what LIBSVM divides nu-SVC's coefficients by, read off the coefficients after the division."""
    return nu * weight_total / np.abs(c).sum()


def all_coefficients(model):
    """(n_machines, n_train): the coefficients of every training row, zero where it is no support vector."""
    full = np.zeros((len(model.dual_coef), model.n_train))
    full[:, model.support] = model.dual_coef
    return full


def variables(q, c):
    """The variables that fold to the coefficients c; of nu-SVR those with the least sum."""
    return np.maximum(0, q.sides * c[q.rows])


def assert_certified(certificate, kind, K, c, b, y=None, *, width=None, nu=0.5, weight=None, **parameters):
    """The certificate holds, and is what float64 gives for the coefficients c and the intercept b of one machine; of
    nu-SVR, `width` is its ε.

    Returns the coefficients on the scale of `problem`, and what their squares were divided by.
    """
    total = len(K) if weight is None else np.sum(weight)
    rho = nu_scale(c, nu, total) if kind == "nu_svc" else 1.0
    c = c * rho
    q = problem(kind, K, y, nu=nu, weight=weight, **parameters)
    a = variables(q, c)
    if kind == "nu_svr":
        for g, target in enumerate(q.targets):
            assert a[q.group == g].sum() <= target * (1 + 1e-9) + 1e-12
        assert (a <= q.upper * (1 + 1e-12)).all()
    else:
        assert feasible(q, a)
    dual = -q.objective(a) / rho**2
    width = rho if kind == "nu_svc" else width
    best = primal(kind, K, c, y, b=b * rho, width=width, nu=nu, weight=weight, **parameters) / rho**2
    near = 1e-9 * max(1.0, abs(best), abs(dual), np.abs(c) @ np.abs(K @ c) / rho**2)
    assert abs(certificate.dual - dual) <= near, f"dual {certificate.dual} is {dual}"
    assert abs(certificate.primal - best) <= near, f"primal {certificate.primal} is {best}"
    assert abs(certificate.gap - (certificate.primal - certificate.dual)) <= near
    assert certificate.gap >= -near
    if kind != "nu_svr":  # whose variables the coefficients do not tell
        worst = violation(q, a) / rho
        assert abs(certificate.kkt - worst) <= 1e-9 * max(1.0, np.abs(q.gradient(a)).max()) / min(rho, 1.0)
    return c, rho
