"""Graphs of neighbours and fits on them: time, peak memory, iterations and gaps."""

import numpy as np

from ._common import DTYPES, Repeats, csr, normal, require, rounded

POINTS = {"moons 20000": (20000, 2), "normal 5000x50": (5000, 50), "normal 3000x784": (3000, 784)}
GRAPHS = {"plane 100000": (100_000, 2), "space 30000": (30_000, 3), "normal 10000x10": (10_000, 10)}
LABELS = 50


def moons(n, seed=0):
    """Return two noisy half circles and the class of each point."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, np.pi, n), np.arange(n) % 2
    X = np.c_[np.cos(angle), np.sin(angle)]
    X[y == 1] = [1.0, 0.5] - X[y == 1]
    return X + 0.1 * rng.normal(size=X.shape), y


def points(n, p):
    """Return moons in the plane, or normal numbers in more dimensions."""
    return moons(n)[0] if p == 2 else normal((n, p))


class Neighbours(Repeats):
    params = (list(POINTS), DTYPES)
    param_names = ("points", "dtype")

    def setup(self, name, dtype):
        self.knn_graph = require("graph", "knn_graph").knn_graph
        self.X = points(*POINTS[name]).astype(dtype)

    def time_union(self, name, dtype):
        self.knn_graph(self.X, 10)

    def peakmem_union(self, name, dtype):
        self.knn_graph(self.X, 10)

    def track_edges(self, name, dtype):
        """Changes only if neighbours do."""
        return self.knn_graph(self.X, 10).nnz


class SparseNeighbours(Repeats):
    params = (["text", "a9a"],)
    param_names = ("rows",)

    def setup(self, kind):
        self.knn_graph = require("graph", "knn_graph").knn_graph
        self.X = csr(kind)

    def time_union(self, kind):
        self.knn_graph(self.X, 10)


class Fits(Repeats):
    params = (list(GRAPHS), [2, 10], [False, True])
    param_names = ("graph", "classes", "normalised")

    def setup(self, name, n_classes, normalised):
        graph = require("graph", "fit", "knn_graph")
        n, p = GRAPHS[name]
        W = graph.knn_graph(points(n, p), 10)
        labelled = np.random.default_rng(0).choice(n, LABELS, replace=False)
        y = np.arange(LABELS) % n_classes
        self.fit = lambda: graph.fit(W, y, 0.1, labelled, normalised=normalised, unreached="nan")

    def time_fit(self, name, n_classes, normalised):
        self.fit()

    def peakmem_fit(self, name, n_classes, normalised):
        self.fit()

    def track_steps(self, name, n_classes, normalised):
        return self.fit().certificate.iterations

    def track_relative_gap(self, name, n_classes, normalised):
        certificate = self.fit().certificate
        return rounded(certificate.gap / certificate.primal)
