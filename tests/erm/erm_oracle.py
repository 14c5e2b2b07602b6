"""Regularised risk written out in feature space and minimised by scipy, and its losses one number at a time.

    P(w, b) = Σ wᵢ L(yᵢ (w·φᵢ + b)) / W + λ‖w‖²

Nothing here knows coefficients, duals or Newton's method of ours.
"""

import math

import numpy as np
from scipy.optimize import minimize


def squared(u):
    return (1 - u) ** 2


def logistic(u):
    return math.log1p(math.exp(-u)) if u > 0 else -u + math.log1p(math.exp(u))


def hinge(u):
    return max(0.0, 1 - u)


def squared_hinge(u):
    return max(0.0, 1 - u) ** 2


def exponential(u):
    return math.exp(-u)


def zero_one(u):
    return float(u <= 0)


def ramp(u):
    return min(1.0, max(0.0, 1 - u))


LOSSES = {loss.__name__: loss for loss in (squared, logistic, hinge, squared_hinge, exponential, zero_one, ramp)}
SLOPES = {
    "squared": lambda u: -2 * (1 - u),
    "logistic": lambda u: -1 / (1 + math.exp(u)),
    "squared_hinge": lambda u: -2 * max(0.0, 1 - u),
    "exponential": lambda u: -math.exp(-u),
}


def risk(theta, phi, y, lam, loss, weight, intercept):
    """P and its gradient at theta = (w, b), or (w,) without an intercept."""
    w, b = (theta[:-1], theta[-1]) if intercept else (theta, 0.0)
    u = y * (phi @ w + b)
    share = weight / weight.sum()
    value = sum(c * LOSSES[loss](each) for c, each in zip(share, u, strict=True)) + lam * w @ w
    slopes = share * y * [SLOPES[loss](each) for each in u]
    gradient = phi.T @ slopes + 2 * lam * w
    return value, np.append(gradient, slopes.sum()) if intercept else gradient


def minimum(phi, y, lam, loss, weight=None, intercept=False):
    """w, b and the least P that BFGS finds from 0."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    start = np.zeros(phi.shape[1] + intercept)
    found = minimize(
        risk, start, (phi, y, lam, loss, weight, intercept), jac=True, method="BFGS",
        options={"gtol": 1e-11, "maxiter": 3000},
    )  # fmt: skip
    w, b = (found.x[:-1], found.x[-1]) if intercept else (found.x, 0.0)
    return w, b, found.fun
