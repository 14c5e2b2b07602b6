"""The first picture of guide/svm.rst: one data set, four costs; the margin, the support vectors, the three cases.

docs/conf.py runs it; `python docs/figures/svm.py` writes svm.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import kernels, svm

BLUE, RED, GREY = "#1f5fa8", "#c44e52", "#888888"
MARKERS = ["o", "s"]
LIMITS = (-3.9, 3.9)


def two_clouds():
    """Thirty points of each class, which overlap a little."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + np.where(y == 1, 1.5, -1.5)[:, None] * [1.0, 0.6]
    return X, y


def draw_margin(axes, X, y, C):
    """The boundary f = 0 and the margin f = ±1; a ring around each support vector, filled points have no slack."""
    model = svm.svc(X, y, C=C, kernel=kernels.Linear(), tol=1e-6)
    grid = np.linspace(*LIMITS, 200)
    across, up = np.meshgrid(grid, grid)
    f = svm.decision(model, np.c_[across.ravel(), up.ravel()]).reshape(across.shape)
    axes.contourf(across, up, f, levels=[-1, 0, 1], colors=[BLUE, RED], alpha=0.10)
    axes.contour(across, up, f, levels=[-1, 0, 1], colors="#333333", linestyles=["--", "-", "--"], linewidths=1.2)
    slacks = svm.slacks(model, X, y)
    for label, colour in ((0, BLUE), (1, RED)):
        for case in (0, 1, 2):
            # A support vector on the margin has a slack of the size of the tolerance: it counts as none.
            mine = (y == label) & (np.where(slacks.values < 1e-3, 0, slacks.case) == case)
            face = {0: colour, 1: "white", 2: "white"}[case]
            axes.scatter(
                *X[mine].T, s=26, marker=MARKERS[label], facecolor=face, edgecolor=colour, linewidth=1.2, zorder=3
            )
            if case == 2:
                axes.scatter(*X[mine].T, s=26, marker="x", color=colour, linewidth=1.0, zorder=4)
    axes.scatter(*X[model.support].T, s=90, facecolor="none", edgecolor=GREY, linewidth=0.8, zorder=2)
    axes.set(
        xlim=LIMITS,
        ylim=LIMITS,
        xticks=[],
        yticks=[],
        aspect="equal",
        title=f"C = {C:g}: margin {svm.margin(model):.2f}, Σξ = {slacks.values.sum():.1f}, "
        f"{len(model.support)} support vectors",
    )


def draw(path):
    """Write the picture."""
    figure = Figure(figsize=(8.0, 8.2), layout="constrained", dpi=160)
    X, y = two_clouds()
    for axes, C in zip(figure.subplots(2, 2).flat, [0.01, 0.1, 1.0, 100.0], strict=True):
        draw_margin(axes, X, y, C)
        axes.title.set_size(9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("svm.png")
