"""The second figure of guide/plots.rst: one panel for each function except plot.tree.

docs/conf.py runs it; `python docs/figures/plots.py` writes plots.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import datasets, kernels, plot, prune, ridge, rules, svm


def moons():
    """Return the points of two interleaved half circles."""
    rng = np.random.default_rng(3)
    angle, y = rng.uniform(0, np.pi, 120), np.arange(120) % 2
    X = np.c_[np.cos(angle), np.sin(angle)]
    X[y == 1] = [1.0, 0.5] - X[y == 1]
    return X + 0.2 * rng.normal(size=X.shape), np.where(y == 1, "below", "above")


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(9.6, 9.0), layout="constrained", dpi=160)
    upper, lower = figure.subfigures(2, 1, height_ratios=[2.6, 1.0])
    panels = upper.subplot_mosaic([["cv_curve", "regions"], ["path", "importances"]])
    panels["rules"] = lower.add_subplot()
    X, y, names, _ = datasets.spambase()
    found = prune.cross_validate(X[::4], y[::4], rng=0)
    plot.cv_curve(found, panels["cv_curve"])
    plot.importances(found, panels["importances"], feature_names=names, top=8)
    plot.rules(rules.induce(X[::4], y[::4], feature_names=names, rng=0), panels["rules"], top=8)
    points, labels = moons()
    plot.regions(svm.svc(points, labels, kernel=kernels.RBF(2.0)), points, labels, panels["regions"])
    scaled = (X[::4] - X.mean(axis=0)) / X.std(axis=0)
    plot.path(ridge.path(scaled, 1.0 * (y[::4] == "spam"), np.logspace(-4, 2, 40), kernels.Linear()), panels["path"])
    for name, axes in panels.items():
        axes.set_title(f"plot.{name}", size=9, loc="left")
    figure.savefig(path)


if __name__ == "__main__":
    draw("plots.png")
