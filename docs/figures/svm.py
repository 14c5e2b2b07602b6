"""The first figure of guide/svm.rst: one data set, four costs; the margin, the support vectors, the three cases.

docs/conf.py runs it; `python docs/figures/svm.py` writes svm.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import kernels, plot, svm


def two_clouds():
    """Return thirty points of each of two slightly overlapping classes."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + np.where(y == 1, 1.5, -1.5)[:, None] * [1.0, 0.6]
    return X, y


def draw_margin(axes, X, y, C):
    """Draw the boundary, the margin and the support vectors, with their numbers."""
    model = svm.svc(X, y, C=C, kernel=kernels.Linear(), tol=1e-6)
    plot.regions(model, X, y, axes)
    slack = svm.slacks(model, X, y).values.sum()
    title = f"C = {C:g}: margin {svm.margin(model):.2f}, Σξ = {slack:.1f}, {len(model.support)} support vectors"
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal", title=title)
    axes.get_legend().remove()


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(8.0, 8.2), layout="constrained", dpi=160)
    X, y = two_clouds()
    for axes, C in zip(figure.subplots(2, 2).flat, [0.01, 0.1, 1.0, 100.0], strict=True):
        draw_margin(axes, X, y, C)
        axes.title.set_size(9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("svm.png")
