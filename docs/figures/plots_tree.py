"""The first figure of guide/plots.rst: a tree for Spambase, as plot.tree draws it.

docs/conf.py runs it; `python docs/figures/plots_tree.py` writes plots_tree.png here.
"""

from matplotlib.figure import Figure

from kernelrules import datasets, plot, prune


def draw(path):
    """Draw and save the figure."""
    X, y, names, _ = datasets.spambase()
    found = prune.cross_validate(X, y, folds=5, rng=0)
    figure = Figure(figsize=(10.0, 3.6), dpi=160)
    plot.tree(prune.to_size(found.grown, 9), figure.add_axes((0, 0, 1, 1)), feature_names=names)
    figure.savefig(path)


if __name__ == "__main__":
    draw("plots_tree.png")
