"""Graphs by their definitions, in loops and dense matrices: neighbours, Laplacians, fits, walks."""

import numpy as np

EXACT = np.longdouble


def squares(X):
    """Squared distances between all rows, as longdouble; infinite on the diagonal."""
    X = np.asarray(X, dtype=EXACT)
    found = np.array([[((x - z) ** 2).sum() for z in X] for x in X], dtype=EXACT)
    np.fill_diagonal(found, np.inf)
    return found


def nearest(X, k):
    """The k nearest others of each row, of those at one distance the smaller index first."""
    return np.array([sorted(range(len(X)), key=lambda j: (row[j], j))[:k] for row in squares(X)])


def knn_graph(X, k, weight, how):
    """Dense weights: weight(distance) for every edge."""
    chosen, distance = nearest(X, k), np.sqrt(squares(X).astype(np.float64))
    W = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        for j in range(len(X)):
            one, other = j in chosen[i], i in chosen[j]
            if (one and other) or (how == "union" and (one or other)):
                W[i, j] = weight(distance[i, j])
    return W


def laplacian(W, normalised):
    """From the quadratic form: Σ over edges w_ij (e_i / √d_i - e_j / √d_j)(…)ᵀ."""
    m = len(W)
    degree = np.array([sum(W[i, j] for j in range(m) if j != i) for i in range(m)])
    L = np.zeros((m, m))
    for i in range(m):
        for j in range(i):
            if W[i, j] > 0:
                v = np.zeros(m)
                v[i], v[j] = 1, -1
                if normalised:
                    v[i], v[j] = 1 / np.sqrt(degree[i]), -1 / np.sqrt(degree[j])
                L += W[i, j] * np.outer(v, v)
    return L


def components(W):
    """The number of each point's component."""
    label = -np.ones(len(W), dtype=int)
    for seed in range(len(W)):
        if label[seed] < 0:
            todo = [seed]
            while todo:
                i = todo.pop()
                if label[i] < 0:
                    label[i] = seed
                    todo += [j for j in range(len(W)) if W[i, j] > 0 and j != i]
    return label


def fit(W, Y, lam, labelled, normalised=False, weight=None):
    """(J + λnL)⁻¹ [s y; 0], dense; every component holds a labelled point."""
    weight = np.ones(len(labelled)) if weight is None else np.asarray(weight, dtype=float)
    Y = np.asarray(Y, dtype=float)
    J, b = np.zeros(len(W)), np.zeros((len(W), *Y.shape[1:]))
    J[labelled] = weight
    b[labelled] = (weight * Y.T).T
    return np.linalg.solve(np.diag(J) + lam * weight.sum() * laplacian(W, normalised), b)


def objective(W, f, Y, lam, labelled, normalised=False, weight=None):
    """(1/n) Σ s (f - y)² + λ fᵀLf, over all columns."""
    weight = np.ones(len(labelled)) if weight is None else np.asarray(weight, dtype=float)
    error = (np.asarray(f)[labelled] - np.asarray(Y)).reshape(len(labelled), -1)
    f = np.asarray(f).reshape(len(W), -1)
    return (weight[:, None] * error**2).sum() / weight.sum() + lam * np.trace(f.T @ laplacian(W, normalised) @ f)


def steps_from(W, sources):
    """Edges on the shortest way from a source to each point; infinite where there is none."""
    steps = np.full(len(W), np.inf)
    steps[sources] = 0
    for _ in range(len(W)):
        for i in range(len(W)):
            for j in range(len(W)):
                if W[i, j] > 0:
                    steps[j] = min(steps[j], steps[i] + 1)
    return steps
