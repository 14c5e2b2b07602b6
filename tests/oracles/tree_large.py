"""The best split of a column of many rows, by cumulative sums in NumPy: as `oracles.tree`, but in floats.

Sums of whole numbers are exact below 2**53, so that only the last operations are rounded.
"""

from itertools import combinations

import numpy as np


def class_losses(counts, criterion):
    """W·Q of rows of class weights (m, K)."""
    W = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        match criterion:
            case "gini":
                return W - (counts**2).sum(axis=1) / W
            case "misclassification":
                return W - counts.max(axis=1)
        return W * np.log2(W) - np.where(counts > 0, counts * np.log2(counts), 0.0).sum(axis=1)


def prefix_losses(y, w, criterion, n_classes=None):
    """Loss of the first k rows for k = 1, 2, ..., n."""
    if n_classes:
        return class_losses(np.cumsum(w[:, None] * (y[:, None] == np.arange(n_classes)), axis=0), criterion)
    W = np.cumsum(w)
    with np.errstate(divide="ignore", invalid="ignore"):
        match criterion:
            case "squared_error":
                return np.cumsum(w * y * y) - np.cumsum(w * y) ** 2 / W
            case "poisson":
                S = np.cumsum(w * y)
                each = np.cumsum(w * np.where(y > 0, y * np.log(y), 0.0))
                return each - np.where(S > 0, S * np.log(S / W), 0.0)
    order = np.argsort(y, kind="stable")
    inside = np.tri(len(y), dtype=bool)[:, order] * w[order]
    running = np.cumsum(inside, axis=1)
    medians = y[order][(2 * running >= running[:, -1:]).argmax(axis=1)]
    return (inside * np.abs(y[order] - medians[:, None])).sum(axis=1)


def loss(y, w, criterion, n_classes=None):
    return prefix_losses(y, w, criterion, n_classes)[-1]


def gains_of_cuts(x, y, w, criterion, n_classes=None, min_leaf=1):
    """What is gained by each cut between different values, of those that leave rows enough on both sides."""
    order = np.argsort(x, kind="stable")
    x, y, w = x[order], y[order], w[order]
    ends = np.flatnonzero(x[1:] > x[:-1])
    ends = ends[(ends + 1 >= min_leaf) & (len(x) - 1 - ends >= min_leaf)]
    first = prefix_losses(y, w, criterion, n_classes)
    last = prefix_losses(y[::-1], w[::-1], criterion, n_classes)[::-1]
    return first[-1] - first[ends] - last[ends + 1]


def gains_of_subsets(x, y, w, criterion, n_classes=None, min_leaf=1):
    """What is gained by each subset of the levels, tried one by one."""
    levels, code = np.unique(x, return_inverse=True)
    whole, gains = loss(y, w, criterion, n_classes), []
    for size in range(1, len(levels)):
        for left in combinations(range(len(levels) - 1), size):
            inside = np.isin(code, left)
            if min(inside.sum(), (~inside).sum()) >= min_leaf:
                parts = (loss(y[part], w[part], criterion, n_classes) for part in (inside, ~inside))
                gains.append(whole - sum(parts))
    return np.array(gains)


def best_gain(x, y, w, criterion, n_classes=None, *, categorical=False, min_leaf=1):
    """The most that a split of the column gains; -inf if there is none. Missing values go to either side, or alone."""
    options = {"criterion": criterion, "n_classes": n_classes, "min_leaf": min_leaf}
    missing = np.isnan(x)
    if not categorical:
        sides = (-np.inf, np.inf) if missing.any() else (0.0,)
        gains = [gains_of_cuts(np.where(missing, side, x), y, w, **options) for side in sides]
        return max(of_side.max(initial=-np.inf) for of_side in gains)
    x = np.where(missing, np.inf, x)  # one more category
    if criterion == "absolute_error" or (n_classes or 0) > 2:
        return gains_of_subsets(x, y, w, **options).max(initial=-np.inf)
    code = np.unique(x, return_inverse=True)[1]
    means = np.bincount(code, w * y) / np.bincount(code, w)
    place = np.empty(len(means))
    place[np.argsort(means, kind="stable")] = np.arange(len(means))
    return gains_of_cuts(place[code], y, w, **options).max(initial=-np.inf)
