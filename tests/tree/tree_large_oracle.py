"""The best split of a column of many rows, by cumulative sums in NumPy: as `tree_oracle`, but in floats.

Sums of whole numbers are exact below 2**53, so that only the last operations are rounded.
"""

from itertools import combinations

import numpy as np


def class_losses(counts, criterion):
    """W·Q of class weights (..., K)."""
    W = counts.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        match criterion:
            case "gini":
                return W - (counts**2).sum(axis=-1) / W
            case "misclassification":
                return W - counts.max(axis=-1)
        return W * np.log2(W) - np.where(counts > 0, counts * np.log2(counts), 0.0).sum(axis=-1)


def prefix_losses(y, w, criterion, n_classes=None):
    """Loss of the first k rows for k = 1, 2, ..., n; of each column, where y and w have several."""
    if n_classes:
        return class_losses(np.cumsum(w[..., None] * (y[..., None] == np.arange(n_classes)), axis=0), criterion)
    W = np.cumsum(w, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        match criterion:
            case "squared_error":
                return np.cumsum(w * y * y, axis=0) - np.cumsum(w * y, axis=0) ** 2 / W
            case "poisson":
                S = np.cumsum(w * y, axis=0)
                each = np.cumsum(w * np.where(y > 0, y * np.log(y), 0.0), axis=0)
                return each - np.where(S > 0, S * np.log(S / W), 0.0)
    if y.ndim > 1:
        return np.column_stack([prefix_losses(*column, criterion) for column in zip(y.T, w.T, strict=True)])
    order = np.argsort(y, kind="stable")
    inside = np.tri(len(y), dtype=bool)[:, order] * w[order]
    running = np.cumsum(inside, axis=1)
    medians = y[order][(2 * running >= running[:, -1:]).argmax(axis=1)]
    return (inside * np.abs(y[order] - medians[:, None])).sum(axis=1)


def loss(y, w, criterion, n_classes=None):
    return prefix_losses(y, w, criterion, n_classes)[-1]


def best_cut(X, y, w, criterion, n_classes=None, min_leaf=1):
    """The most that is gained by a cut of any column between different values, of those that leave rows enough on both
    sides; -inf if there is none."""
    order = np.argsort(X, axis=0, kind="stable")
    X, y, w = np.take_along_axis(X, order, axis=0), y[order], w[order]
    first = prefix_losses(y, w, criterion, n_classes)
    last = prefix_losses(y[::-1], w[::-1], criterion, n_classes)[::-1]
    ends = np.arange(1, len(X))[:, None]  # rows on the left
    cuts = (X[1:] > X[:-1]) & (ends >= min_leaf) & (len(X) - ends >= min_leaf)
    return (first[-1] - first[:-1] - last[1:])[cuts].max(initial=-np.inf)


def best_subset(x, y, w, criterion, n_classes=None, min_leaf=1):
    """The most that is gained by a subset of the levels, all of which are tried; the last level stays right."""
    levels, code = np.unique(x, return_inverse=True)
    m, best = len(levels), -np.inf
    subsets = [left for size in range(1, m) for left in combinations(range(m - 1), size)]
    if not subsets:
        return best
    chosen = np.array([np.isin(np.arange(m), left) for left in subsets])
    rows = chosen @ np.bincount(code, minlength=m)
    allowed = np.minimum(rows, len(x) - rows) >= min_leaf
    whole = loss(y, w, criterion, n_classes)
    if n_classes:
        counts = np.bincount(code * n_classes + y.astype(int), w, m * n_classes).reshape(m, n_classes)
        parts = class_losses(chosen @ counts, criterion) + class_losses(~chosen @ counts, criterion)
        return (whole - parts)[allowed].max(initial=best)
    for left in chosen[allowed]:
        inside = left[code]
        best = max(best, whole - sum(loss(y[part], w[part], criterion) for part in (inside, ~inside)))
    return best


def best_gain(X, y, w, criterion, n_classes=None, *, categorical=(), min_leaf=1):
    """The most that a split of any column gains; -inf if there is none. Missing values go to either side, or alone."""
    options = {"criterion": criterion, "n_classes": n_classes, "min_leaf": min_leaf}
    cut, best = [], -np.inf
    for j, x in enumerate(X.T):
        missing = np.isnan(x)
        if j not in categorical:
            cut += [np.where(missing, side, x) for side in ((-np.inf, np.inf) if missing.any() else (0.0,))]
            continue
        x = np.where(missing, np.inf, x)  # one more category
        if criterion == "absolute_error" or (n_classes or 0) > 2:
            best = max(best, best_subset(x, y, w, **options))
            continue
        code = np.unique(x, return_inverse=True)[1]
        means = np.bincount(code, w * y) / np.bincount(code, w)
        place = np.empty(len(means))
        place[np.argsort(means, kind="stable")] = np.arange(len(means))
        cut.append(place[code])
    return max(best, best_cut(np.column_stack(cut), y, w, **options))
