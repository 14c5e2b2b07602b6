"""Every labeling of a few points by trees, and complexities by all sign vectors: counted, not bounded."""

from itertools import product

import numpy as np


def splits(X, rows, categorical=()):
    """The two sides of every split of some rows that leaves neither side empty."""
    for j in range(X.shape[1]):
        values = sorted({X[i, j] for i in rows})
        if j in categorical:
            lefts = [
                {v for v, chosen in zip(values, flags, strict=True) if chosen}
                for flags in product([False, True], repeat=len(values))
            ]
        else:
            lefts = [{v for v in values if v <= cut} for cut in values]
        for left in lefts:
            inside = frozenset(i for i in rows if X[i, j] in left)
            if inside and len(inside) < len(rows):
                yield inside, rows - inside


def partitions(X, rows, n_leaves, categorical=()):
    """All partitions of the rows by trees with at most so many leaves."""
    found = {frozenset([rows])}
    for left_leaves in range(1, n_leaves):
        for left, right in splits(X, rows, categorical):
            for first in partitions(X, left, left_leaves, categorical):
                for second in partitions(X, right, n_leaves - len(first), categorical):
                    found.add(first | second)
    return found


def labelings(X, n_leaves, n_classes=2, categorical=()):
    """All label vectors of trees with at most so many leaves."""
    found = set()
    for partition in partitions(X, frozenset(range(len(X))), n_leaves, categorical):
        for labels in product(range(n_classes), repeat=len(partition)):
            vector = [0] * len(X)
            for members, label in zip(partition, labels, strict=True):
                for i in members:
                    vector[i] = label
            found.add(tuple(vector))
    return found


def complexity_of(vectors):
    """E max over the vectors of (1/n) Σ σᵢ vᵢ, over all 2^n sign vectors."""
    vectors = np.array(sorted(vectors), dtype=float)
    n = vectors.shape[1]
    signs = np.array(list(product([-1.0, 1.0], repeat=n)))
    return float((signs @ vectors.T).max(axis=1).mean() / n)


def kernel_complexity(K, a):
    """E (a/n) √(σᵀKσ) over all 2^n sign vectors."""
    n = len(K)
    signs = np.array(list(product([-1.0, 1.0], repeat=n)))
    return float(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", signs, K, signs), 0)).mean() * a / n)
