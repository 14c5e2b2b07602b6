"""The second figure of guide/svm.rst: several classes, regression, one class, and the choice of C.

docs/conf.py runs it; `python docs/figures/svm_kinds.py` writes svm_kinds.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import datasets, kernels, plot, svm

COLOURS = ["#1f5fa8", "#c44e52", "#2e8b57"]
DARK, GREY = "#333333", "#888888"


def plane(limit, n=240):
    """Return a grid of the plane: its coordinates, and its points as rows."""
    across, up = np.meshgrid(np.linspace(-limit, limit, n), np.linspace(-limit, limit, n))
    return across, up, np.c_[across.ravel(), up.ravel()]


def bare(axes, title):
    """Remove ticks and legend."""
    axes.get_legend().remove()
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal", title=title)


def draw_classes(axes):
    """Draw three classes by one machine per pair; regions where each class has one vote are hatched."""
    angle = 2 * np.pi * np.arange(3) / 3
    centres = np.c_[np.cos(angle), np.sin(angle)]
    y = np.repeat(np.arange(3), 25)
    X = centres[y] * 1.1 + 0.65 * np.random.default_rng(4).normal(size=(75, 2))
    model = svm.svc(X, y, C=10.0, kernel=kernels.RBF(1.0))
    plot.regions(model, X, y, axes)
    across, up, points = plane(2.9)
    first = svm.decision(model, points) > 0  # columns: 0 against 1, 0 against 2, 1 against 2
    tied = (first[:, 0] == first[:, 2]) & (first[:, 0] != first[:, 1])
    axes.contourf(across, up, tied.reshape(across.shape), levels=[0.5, 1.5], colors="none", hatches=["////"])
    bare(axes, "Three classes by votes; hatched: one vote each")


def draw_regression(axes):
    """Draw a curve and its tube, with rings around support vectors."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 6, 60))
    y = np.sin(x) + 0.2 * rng.normal(size=60)
    model = svm.svr(x[:, None], y, C=10.0, epsilon=0.25, kernel=kernels.RBF(0.5))
    grid = np.linspace(-0.1, 6.1, 300)
    curve = svm.predict(model, grid[:, None])
    axes.fill_between(grid, curve - 0.25, curve + 0.25, color=COLOURS[0], alpha=0.12, linewidth=0)
    axes.plot(grid, curve, color=COLOURS[0], linewidth=1.8)
    axes.scatter(x, y, s=14, color=DARK, zorder=3)
    axes.scatter(x[model.support], y[model.support], s=70, facecolor="none", edgecolor=GREY, linewidth=0.8)
    axes.set(xlabel="x", ylabel="y", xlim=(-0.1, 6.1), title="Regression, ε = 0.25; rings: support vectors")
    axes.spines[["top", "right"]].set_visible(False)


def draw_one_class(axes):
    """Draw the region of a one-class SVM."""
    rng = np.random.default_rng(2)
    X = np.r_[rng.normal([-1.2, -0.6], 0.5, size=(60, 2)), rng.normal([1.2, 0.8], 0.5, size=(60, 2))]
    model = svm.one_class(X, nu=0.1, kernel=kernels.RBF(0.7))
    plot.regions(model, X, ax=axes)
    bare(axes, "One class, ν = 0.1; rings: support vectors")


def draw_choice(axes):
    """Draw cross-validated errors on 1000 rows of Spambase, and the choices of both rules."""
    X, y, _, _ = datasets.spambase()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    some = np.random.default_rng(0).choice(len(X), 1000, replace=False)
    Cs = np.geomspace(0.01, 1000, 16)
    result = svm.tune(X[some], y[some], Cs=Cs, folds=10, rule="1se", rng=0, kernel=kernels.RBF(0.01))
    plot.cv_curve(result, axes)
    best = Cs[result.mean[0].argmin()]
    axes.axvline(best, color=COLOURS[1], linestyle="--", linewidth=1.2, label=f"minimum: C = {best:.3g}")
    axes.set(ylim=(None, None), title="Choosing C: 1000 rows of Spambase, γ = 0.01")
    axes.legend(frameon=False, fontsize=8)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(8.0, 7.6), layout="constrained", dpi=160)
    panels = figure.subplots(2, 2).flat
    for axes, draw_panel in zip(panels, [draw_classes, draw_regression, draw_one_class, draw_choice], strict=True):
        draw_panel(axes)
        axes.title.set_size(9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("svm_kinds.png")
