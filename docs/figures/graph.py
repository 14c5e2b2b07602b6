"""The first figure of guide/graph.rst: two moons with six labels; the graph, the fit on it, and a fit without it.

docs/conf.py runs it; `python docs/figures/graph.py` writes graph.png here.
"""

import numpy as np
from _moons import two_moons
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from kernelrules import graph, kernels, svm

BLUE, RED, GREY = "#1f5fa8", "#c44e52", "#888888"


def draw_points(axes, X, colour, labelled, y):
    """Draw all points, the labelled ones with a black edge."""
    axes.scatter(*X.T, s=9, c=colour, zorder=2)
    for label, marker in ((0, "o"), (1, "s")):
        mine = labelled[y[labelled] == label]
        axes.scatter(*X[mine].T, s=75, marker=marker, c=[RED if label else BLUE], edgecolor="black", zorder=3)
    axes.set(xticks=[], yticks=[], aspect="equal")


def colours(labels):
    """Return the colours of the classes."""
    return np.where(np.asarray(labels) == 1, RED, BLUE)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(9.0, 5.2), layout="constrained", dpi=160)
    (first, second), (third, fourth) = figure.subplots(2, 2)
    X, y, labelled = two_moons()
    W = graph.knn_graph(X, 8)
    i, j = W.nonzero()
    first.add_collection(LineCollection(np.stack([X[i], X[j]], axis=1), colors=GREY, linewidths=0.3, zorder=1))
    draw_points(first, X, GREY, labelled, y)
    first.set_title(f"{len(X)} points, 6 labels, graph of 8 neighbours ({W.nnz // 2} edges)", size=9)

    numbers = graph.fit(W, 2.0 * y[labelled] - 1, 0.001, labelled)
    shades = second.scatter(*X.T, s=0, c=numbers.values, cmap="coolwarm", vmin=-1, vmax=1)
    draw_points(second, X, shades.cmap(shades.norm(numbers.values)), labelled, y)
    figure.colorbar(shades, ax=second, shrink=0.8)
    second.set_title("values of a fit to −1 and 1", size=9)

    result = graph.fit(W, y[labelled], 0.001, labelled)
    draw_points(third, X, colours(result.labels), labelled, y)
    third.set_title(f"fit on the graph: {np.mean(result.labels == y):.1%} correct", size=9)

    alone = svm.predict(svm.svc(X[labelled], y[labelled], C=10.0, kernel=kernels.RBF(1.0)), X)
    draw_points(fourth, X, colours(alone), labelled, y)
    fourth.set_title(f"SVM on the 6 labelled points alone: {np.mean(alone == y):.1%} correct", size=9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("graph.png")
