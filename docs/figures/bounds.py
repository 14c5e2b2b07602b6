"""The figure of guide/bounds.rst: bounds on Spambase and errors on held-out rows.

docs/conf.py runs it; `python docs/figures/bounds.py` writes bounds.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import bounds, datasets, kernels, svm, tree

BLUE, RED, GREY = "#1f5fa8", "#c44e52", "#888888"


def panel(axes, across, found, errors, xlabel, title):
    """Draw the three parts of each bound, stacked, and the test error."""
    parts = np.array([[b.empirical, b.complexity, b.deviation] for b in found]).cumsum(axis=1)
    names = ("on the sample", "+ class of functions", "+ chance = bound")
    for k, (name, shade) in enumerate(zip(names, (0.45, 0.25, 0.12), strict=True)):
        below = parts[:, k - 1] if k else 0.0
        axes.fill_between(across, below, parts[:, k], color=BLUE, alpha=shade, linewidth=0, label=name)
    axes.plot(across, parts[:, 2], color=BLUE, linewidth=1.6)
    axes.plot(across, errors, color=RED, marker="o", markersize=3, linewidth=1.4, label="error on held-out rows")
    axes.axhline(1.0, color=GREY, linestyle=":", linewidth=1.0)
    axes.set(xscale="log", ylim=(0, 2.0), xlim=(across[0], across[-1]), xlabel=xlabel)
    axes.minorticks_off()
    axes.set_title(title, size=9)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)


def draw(path):
    """Draw and save the figure."""
    X, y, _, _ = datasets.spambase()
    train, test = np.split(np.random.default_rng(0).permutation(len(X)), [3000])
    scaled = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    Cs = np.geomspace(1e-3, 10.0, 7)
    models = svm.path(scaled[train], y[train], Cs, kernel=kernels.RBF("auto"))
    leaves = np.array([2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])
    grown = [tree.grow(X[train], y[train], growth="best", max_leaves=int(n)) for n in leaves]
    figure = Figure(figsize=(9.0, 3.9), layout="constrained", dpi=160)
    left, right = figure.subplots(1, 2)
    panel(
        left,
        Cs,
        [bounds.of_model(model, scaled[train], y[train]) for model in models],
        [np.mean(svm.predict(model, scaled[test]) != y[test]) for model in models],
        "C",
        "Support vector machines, γ = 1 (margin bound)",
    )
    panel(
        right,
        leaves,
        [bounds.of_tree(t, X[train], y[train]) for t in grown],
        [np.mean(tree.predict(t, X[test]) != y[test]) for t in grown],
        "leaves",
        "Trees (Massart's lemma)",
    )
    right.set_xticks(leaves[::2], [str(n) for n in leaves[::2]])
    figure.savefig(path)


if __name__ == "__main__":
    draw("bounds.png")
