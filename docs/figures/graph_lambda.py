"""The second figure of guide/graph.rst: fits for three values of λ, and the two symmetrisations.

docs/conf.py runs it; `python docs/figures/graph_lambda.py` writes graph_lambda.png here.
"""

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from kernelrules import graph

BLUE, RED, GREY = "#1f5fa8", "#c44e52", "#888888"


def draw_fits(axes):
    """Draw fits to a chain of points with noisy values at some of them."""
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0, 10, 120))
    labelled = np.arange(3, 120, 6)
    y = np.sin(t[labelled]) + 0.3 * rng.normal(size=len(labelled))
    W = graph.knn_graph(t[:, None], 4, "rbf")
    for lam, style in ((1e-5, ":"), (0.1, "-"), (10.0, "--")):
        axes.plot(t, graph.fit(W, y, lam, labelled).values, style, color=BLUE, label=f"λ = {lam:g}")
    axes.plot(t[labelled], y, "o", color=RED, label="labels")
    axes.set(xlabel="x", ylabel="f", title="values of 120 points, 20 of them labelled")
    axes.legend(fontsize=8)


def draw_edges(axes, X, how):
    """Draw the graph of three neighbours."""
    W = graph.knn_graph(X, 3, symmetrise=how)
    i, j = W.nonzero()
    axes.add_collection(LineCollection(np.stack([X[i], X[j]], axis=1), colors=GREY, linewidths=0.7, zorder=1))
    alone = np.diff(W.indptr) == 0
    axes.scatter(*X[~alone].T, s=12, color=BLUE, zorder=2)
    axes.scatter(*X[alone].T, s=28, facecolor="none", edgecolor=RED, zorder=2)
    axes.set(xticks=[], yticks=[], title=f"{how}: {W.nnz // 2} edges, {alone.sum()} isolated points")


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(10.0, 3.4), layout="constrained", dpi=160)
    fits, union, mutual = figure.subplots(1, 3)
    draw_fits(fits)
    rng = np.random.default_rng(2)
    X = np.vstack([0.6 * rng.normal(size=(60, 2)), 2.0 * rng.normal(size=(25, 2))])
    draw_edges(union, X, "union")
    draw_edges(mutual, X, "mutual")
    for axes in (fits, union, mutual):
        axes.title.set_size(9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("graph_lambda.png")
