"""Plots: time to draw a tree, decision regions and a cross-validation curve on existing axes, up to pixels.

asv skips them if matplotlib is not installed.
"""

from ._common import Repeats, require
from ._tree_data import continuous, spam

N_POINTS = 400


def figure():
    """Return a figure without a window; let asv skip the benchmark if matplotlib is not available."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise NotImplementedError("no matplotlib") from error
    made = Figure(figsize=(8.0, 6.0))
    FigureCanvasAgg(made)
    return made


class Plot(Repeats):
    """Plots of a tree with 30 leaves on Spambase, and of an SVM on 400 points in the plane."""

    def setup(self):
        self.plot = require("plot", "tree", "regions", "cv_curve")
        figure()
        X, y = spam()
        X, y = X[::5], y[::5]
        self.cv = require("prune").cross_validate(X, y, folds=3, rng=0)
        self.tree = require("tree").grow(X, y, max_leaves=30)
        self.points, self.labels = continuous(N_POINTS, 5)
        self.points = self.points[:, :2] / 1024
        self.machine = require("svm").svc(self.points, self.labels, kernel=require("kernels").RBF(1.0))

    def time_tree(self):
        self.draw(self.plot.tree, self.tree)

    def time_regions(self):
        self.draw(self.plot.regions, self.machine, self.points, self.labels)

    def time_cv_curve(self):
        self.draw(self.plot.cv_curve, self.cv)

    def draw(self, function, *given):
        made = figure()
        function(*given, ax=made.add_subplot())
        made.canvas.draw()
