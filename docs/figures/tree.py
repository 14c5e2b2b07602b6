"""The first figure of guide/tree.rst: the partition of a plane at depth 1, 2 and 4, and until leaves are pure.

docs/conf.py runs it; `python docs/figures/tree.py` writes tree.png here.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kernelrules import tree

BLUE, RED, DARK = "#1f5fa8", "#c44e52", "#333333"
LIMIT = 2.0


def ring():
    """Return points of a square; those near a circle have class 1, and one label in twelve is wrong."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-LIMIT, LIMIT, size=(240, 2))
    y = (np.abs(np.hypot(*X.T) - 1.1) < 0.45).astype(int)
    wrong = rng.random(240) < 1 / 12
    return X, np.where(wrong, 1 - y, y)


def boxes(grown):
    """Return the leaves and their boxes: the lowest and the highest value of both columns."""
    bounds = np.empty((grown.n_nodes, 2, 2))
    bounds[0] = [[-LIMIT, LIMIT]] * 2
    for node in np.flatnonzero(grown.left >= 0):  # parents come before their children
        column, cut = grown.feature[node], grown.threshold[node]
        for child, end in ((grown.left[node], 1), (grown.right[node], 0)):
            bounds[child] = bounds[node]
            bounds[child, column, end] = cut
    leaves = np.flatnonzero(grown.left < 0)
    return leaves, bounds[leaves]


def draw_partition(axes, X, y, max_depth):
    """Draw the boxes of the leaves, coloured by the class shares."""
    grown = tree.grow(X, y, max_depth=max_depth)
    for leaf, ((left, right), (low, high)) in zip(*boxes(grown), strict=True):
        share = grown.value[leaf, 1]
        colour, strength = (RED, share) if share > 0.5 else (BLUE, 1 - share)
        corner, width, height = (left, low), right - left, high - low
        axes.add_patch(Rectangle(corner, width, height, facecolor=colour, alpha=0.1 + 0.6 * (strength - 0.5)))
        axes.add_patch(Rectangle(corner, width, height, facecolor="none", edgecolor=DARK, linewidth=0.7))
    for label, colour, marker in ((0, BLUE, "o"), (1, RED, "s")):
        axes.scatter(*X[y == label].T, s=9, marker=marker, color=colour, zorder=3)
    wrong = (tree.predict(grown, X) != y).mean()
    what = "until leaves are pure" if max_depth is None else f"depth {max_depth}"
    axes.set(
        xlim=(-LIMIT, LIMIT),
        ylim=(-LIMIT, LIMIT),
        xticks=[],
        yticks=[],
        aspect="equal",
        title=f"{what}: {grown.n_leaves} leaves, {wrong:.0%} of the points wrong",
    )
    axes.title.set_size(9)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(8.0, 8.2), layout="constrained", dpi=160)
    X, y = ring()
    for axes, depth in zip(figure.subplots(2, 2).flat, [1, 2, 4, None], strict=True):
        draw_partition(axes, X, y, depth)
    figure.savefig(path)


if __name__ == "__main__":
    draw("tree.png")
