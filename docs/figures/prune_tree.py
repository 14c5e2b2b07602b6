"""The second figure of guide/pruning.rst: the tree of 17 leaves, as in figure 9.5 of The Elements of Statistical
Learning.

docs/conf.py runs it; `python docs/figures/prune_tree.py` writes prune_tree.png here.
"""

from _book import spam
from matplotlib.figure import Figure

from kernelrules import plot, prune, tree


def draw(path):
    """Draw and save the figure."""
    X, y, names, test, called = spam()
    pruned = prune.to_size(tree.grow(X[~test], y[~test], criterion="entropy"), 17)
    wrong = (tree.predict(pruned, X[test]) != y[test]).mean()
    figure = Figure(figsize=(12.6, 6.8), dpi=160)
    axes = figure.add_axes((0, 0, 1, 0.95))
    plot.tree(pruned, axes, feature_names=names)
    figure.suptitle(f"17 leaves, wrong about {wrong:.1%} of {called}", fontsize=10)
    figure.savefig(path)


if __name__ == "__main__":
    draw("prune_tree.png")
