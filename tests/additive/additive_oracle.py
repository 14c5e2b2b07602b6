"""Additive rules the slow way: dense columns, proximal gradients, every stump tried, every split tried."""

import itertools
import math

import numpy as np
from rules_oracle import holds


def losses(f, y, logistic):
    return np.logaddexp(0.0, f) - y * f if logistic else (y - f) ** 2 / 2


def objective(C, y, w, beta, intercept, lam, logistic):
    """(1/W) Σ w loss + λ ‖β‖₁; w is not normalised."""
    return (w / w.sum()) @ losses(C @ beta + intercept, y, logistic) + lam * np.abs(beta).sum()


def solve(C, y, w, lam, logistic, n_steps=20000):
    """Accelerated proximal gradients with restarts: (beta, intercept)."""
    w = w / w.sum()
    A = np.column_stack([C, np.ones(len(C))])
    step = 1 / (np.linalg.norm(A * np.sqrt(w)[:, None], 2) ** 2 * (0.25 if logistic else 1.0) + 1e-300)
    x = np.zeros(A.shape[1])
    z, t = x.copy(), 1.0
    for _ in range(n_steps):
        f = A @ z
        slope = 1 / (1 + np.exp(-f)) - y if logistic else f - y
        new = z - step * (A.T @ (w * slope))
        new[:-1] = np.sign(new[:-1]) * np.maximum(np.abs(new[:-1]) - step * lam, 0)
        if (z - new) @ (new - x) > 0:
            z, t = new.copy(), 1.0
        else:
            later = (1 + math.sqrt(1 + 4 * t * t)) / 2
            z, t = new + (t - 1) / later * (new - x), later
        if np.abs(new - x).max() < 1e-13:
            x = new
            break
        x = new
    return x[:-1], x[-1]


def rule_matrix(model, x):
    """0/1 columns of the model's rules, then its linear terms, for rows of numbers and codes."""
    columns = [[float(all(holds(c, row) for c in rule.conditions)) for row in x] for rule in model.rules]
    for term in model.linear:
        values = [term.scale * (min(max(row[term.feature], term.low), term.high) - term.mean) for row in x]
        columns.append([0.0 if math.isnan(value) else value for value in values])
    return np.array(columns).reshape(len(columns), len(x)).T


def best_stump(x, n_levels, s):
    """The largest |Σ s| over the rows of a stump of one column: thresholds or sets of levels, missing in or out."""
    missing, best = np.isnan(x), 0.0
    if n_levels:
        groups = [np.flatnonzero(x == level) for level in range(n_levels)] + [np.flatnonzero(missing)]
        for size in range(len(groups) + 1):
            for some in itertools.combinations(groups, size):
                best = max(best, abs(s[np.concatenate([[], *some]).astype(int)].sum()))
        return best
    for value in x[~missing]:
        for rows in (x <= value, (x <= value) | missing):
            best = max(best, abs(s[rows].sum()))
    return best


def splits(x, n_levels, rows):
    """Every way to send the rows of a node left by one column, as arrays of bool over these rows."""
    values = x[rows]
    missing = np.isnan(values)
    if n_levels:
        groups = [values == level for level in np.unique(values[~missing])] + ([missing] if missing.any() else [])
        for size in range(1, len(groups)):
            for some in itertools.combinations(groups, size):
                yield np.logical_or.reduce(some)
        return
    for value in np.unique(values[~missing]):
        yield values <= value
        if missing.any():
            yield (values <= value) | missing


def best_gain(X, n_levels, rows, s, w, min_rows):
    """What the best split takes off the squared error of s / w."""
    best = 0.0
    for column in range(X.shape[1]):
        for left in splits(X[:, column], n_levels[column], rows):
            a, b = rows[left], rows[~left]
            if min(len(a), len(b)) >= min_rows:
                best = max(best, gain(a, b, s, w))
    return best


def gain(a, b, s, w):
    both = np.concatenate([a, b])
    return sum(s[r].sum() ** 2 / w[r].sum() for r in (a, b)) - s[both].sum() ** 2 / w[both].sum()
