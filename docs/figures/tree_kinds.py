"""The third figure of guide/tree.rst: axis-parallel and oblique splits, leaves of a regression, a monotone tree.

docs/conf.py runs it; `python docs/figures/tree_kinds.py` writes tree_kinds.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import plot, tree

BLUE, RED, GREEN, DARK, GREY = "#1f5fa8", "#c44e52", "#2e8b57", "#333333", "#888888"


def slanted():
    """Return two classes on either side of a slanted line, slightly mixed."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(200, 2))
    return X, (X @ [1.0, 1.5] + 0.25 * rng.normal(size=200) > 0).astype(int)


def wave():
    """Return noisy points of a sine."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 6, 120))
    return x, np.sin(x) + 0.15 * rng.normal(size=120)


def rise():
    """Return noisy points of an increasing curve."""
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0, 6, 80))
    return x, np.sqrt(x) + 0.4 * rng.normal(size=80)


def draw_plane(axes, splits):
    """Draw the predictions over the plane."""
    X, y = slanted()
    grown = tree.grow(X, y, splits=splits, max_depth=None if splits == "axis" else 1)
    plot.regions(grown, X, y, axes, n_grid=400)
    axes.get_legend().remove()
    wrong = (tree.predict(grown, X) != y).sum()
    what = 'splits="axis"' if splits == "axis" else 'splits="oblique", depth 1'
    title = f"{what}: {grown.n_leaves} leaves, {wrong} points wrong"
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="", aspect="equal", title=title)


def draw_curves(axes, x, y, grown, title):
    """Draw the predictions of trees over their data."""
    grid = np.linspace(x.min(), x.max(), 1000)
    axes.scatter(x, y, s=9, color=GREY, zorder=1)
    for (label, one), colour in zip(grown.items(), [BLUE, RED], strict=True):
        axes.plot(grid, tree.predict(one, grid[:, None]), color=colour, linewidth=1.5, label=label)
    axes.set(xlabel="x", ylabel="y", title=title)
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(8.0, 7.6), layout="constrained", dpi=160)
    panels = figure.subplots(2, 2).flat
    draw_plane(panels[0], "axis")
    draw_plane(panels[1], "oblique")
    x, y = wave()
    leaves = {
        f'leaf="{leaf}"': tree.grow(x[:, None], y, criterion="squared_error", max_leaves=4, leaf=leaf)
        for leaf in ("constant", "linear")
    }
    draw_curves(panels[2], x, y, leaves, "Four leaves of a regression")
    x, y = rise()
    limits = {"criterion": "squared_error", "min_leaf": 4}
    free, rising = (tree.grow(x[:, None], y, monotone=signs, **limits) for signs in (None, [1]))
    draw_curves(panels[3], x, y, {"free": free, "monotone=[1]": rising}, "With and without a constraint, min_leaf=4")
    for axes in panels:
        axes.title.set_size(9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("tree_kinds.png")
