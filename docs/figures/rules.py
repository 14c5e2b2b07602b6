"""The figure of guide/rules.rst: the rules of a tree as boxes, before and after simplification.

docs/conf.py runs it; `python docs/figures/rules.py` writes rules.png here.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kernelrules import plot, rules, tree

DARK = "#333333"
LIMIT = 2.0


def points(n, seed):
    """Return points of a cross of one class among another; one label in twelve is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-LIMIT, LIMIT, size=(n, 2))
    inside = (np.abs(X[:, 0]) < 0.5) | (np.abs(X[:, 1]) < 0.5)
    return X, np.where(inside ^ (rng.random(n) < 1 / 12), "red", "blue")


def box(rule):
    """Return the corner, width and height of the box that a rule covers."""
    low, high = np.full(2, -LIMIT), np.full(2, LIMIT)
    for condition in rule.conditions:
        low[condition.feature] = max(condition.low, -LIMIT)
        high[condition.feature] = min(condition.high, LIMIT)
    return low, *(high - low)


def draw_rules(axes, listed, X, y, title):
    """Draw the decision regions, the boxes of the rules, and the points."""
    plot.regions(listed, X, y, axes)
    for rule in listed:
        axes.add_patch(Rectangle(*box(rule), facecolor="none", edgecolor=DARK, linewidth=0.8))
    axes.set(
        xlim=(-LIMIT, LIMIT),
        ylim=(-LIMIT, LIMIT),
        xticks=[],
        yticks=[],
        aspect="equal",
        title=title,
        xlabel="",
        ylabel="",
    )
    axes.get_legend().remove()
    axes.title.set_size(9)


def draw(path):
    """Draw and save the figure."""
    X, y = points(300, 0)
    fresh, truth = points(4000, 1)
    whole = rules.extract(tree.grow(X, y))
    short = rules.simplify(whole, X, y, method="pessimistic", confidence=0.1)
    figure = Figure(figsize=(8.0, 4.8), layout="constrained", dpi=160)
    for axes, listed, what in zip(
        figure.subplots(1, 2), (whole, short), ("the rules of a tree", "simplified"), strict=True
    ):
        wrong = (rules.predict(listed, fresh) != truth).mean()
        title = f"{what}: {len(listed)} rules, {listed.n_conditions} conditions,\n{wrong:.0%} of fresh points wrong"
        draw_rules(axes, listed, X, y, title)
    figure.savefig(path)


if __name__ == "__main__":
    draw("rules.png")
