"""The second picture of guide/tree.rst: the impurities of two classes, and why misclassification sees too little.

docs/conf.py runs it; `python docs/figures/tree_criteria.py` writes tree_criteria.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import tree

COLOURS = {"gini": "#1f5fa8", "entropy": "#2e8b57", "misclassification": "#c44e52"}
STYLES = {"gini": "-", "entropy": "--", "misclassification": "-."}
GREY = "#888888"


def impurity(criterion, p):
    """Q as the package has it: that of the root of a tree on two rows with the weights 1 - p and p."""
    grown = tree.grow([[0.0], [0.0]], [0, 1], criterion=criterion, sample_weight=[1 - p, p])
    return grown.impurity[0]


def curve(criterion, shares):
    """Q at each share; none where one class has no weight."""
    return np.array([impurity(criterion, p) if 0 < p < 1 else 0.0 for p in shares])


def draw_curves(axes):
    """All three, scaled to 1 in the middle."""
    shares = np.linspace(0, 1, 201)
    for criterion, colour in COLOURS.items():
        values = curve(criterion, shares) / impurity(criterion, 0.5)
        axes.plot(shares, values, color=colour, linestyle=STYLES[criterion], label=criterion)
    axes.set(xlabel="share p of class 1", ylabel="Q(p) / Q(½)", title="The impurities, scaled to 1 at p = ½")
    axes.legend(frameon=False, fontsize=8, loc="lower center")


def draw_chords(axes):
    """A node of share 0.7 into halves of 0.5 and 0.9: the gain is the curve above the chord."""
    shares = np.linspace(0.4, 1, 121)
    for criterion in ("gini", "misclassification"):
        colour = COLOURS[criterion]
        axes.plot(shares, curve(criterion, shares), color=colour, linestyle=STYLES[criterion], label=criterion)
        ends = [impurity(criterion, p) for p in (0.5, 0.9)]
        axes.plot([0.5, 0.9], ends, color=GREY, linewidth=1.0, marker="o", markersize=4)
        axes.plot([0.7, 0.7], [np.mean(ends), impurity(criterion, 0.7)], color=colour, linewidth=3.0)
    axes.set(
        xlabel="share p of class 1", ylabel="Q(p)", title="0.7 into 0.5 and 0.9: gini gains, misclassification not"
    )
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def draw(path):
    """Write the picture."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained", dpi=160)
    for axes, draw_panel in zip(figure.subplots(1, 2), [draw_curves, draw_chords], strict=True):
        draw_panel(axes)
        axes.title.set_size(9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    draw("tree_criteria.png")
