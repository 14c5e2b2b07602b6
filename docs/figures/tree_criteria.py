"""The second figure of guide/tree.rst: the impurities of two classes, and a split without gain for misclassification.

docs/conf.py runs it; `python docs/figures/tree_criteria.py` writes tree_criteria.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import plot, tree

GREY = "#888888"


def impurity(criterion, p):
    """Return Q as the package computes it: at the root of a tree on two rows with weights 1 - p and p."""
    grown = tree.grow([[0.0], [0.0]], [0, 1], criterion=criterion, sample_weight=[1 - p, p])
    return grown.impurity[0]


def draw_chords(axes):
    """Draw the split of a node with share 0.7 into halves of 0.5 and 0.9; the gain is the curve above the chord."""
    plot.criteria(axes, names=("gini", "misclassification"), scaled=False)
    for line, criterion in zip(axes.get_lines()[:2], ("gini", "misclassification"), strict=True):
        ends = [impurity(criterion, p) for p in (0.5, 0.9)]
        axes.plot([0.5, 0.9], ends, color=GREY, linewidth=1.0, marker="o", markersize=4)
        middle = [np.mean(ends), impurity(criterion, 0.7)]
        axes.plot([0.7, 0.7], middle, color=line.get_color(), linewidth=3.0)
    axes.set(xlim=(0.4, 1), title="0.7 into 0.5 and 0.9: gini gains, misclassification does not")
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained", dpi=160)
    left, right = figure.subplots(1, 2)
    plot.criteria(left).set_title("The impurities, scaled to 1 at p = ½")
    left.legend(frameon=False, fontsize=8, loc="lower center")
    draw_chords(right)
    for axes in (left, right):
        axes.title.set_size(9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("tree_criteria.png")
