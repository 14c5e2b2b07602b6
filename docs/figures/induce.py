"""The figure of guide/induce.rst: rules as boxes, without pruning, pruned, and pruned and optimised.

docs/conf.py runs it; `python docs/figures/induce.py` writes induce.png here.
"""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kernelrules import rules

BLUE, RED, DARK = "#1f5fa8", "#c44e52", "#333333"
LIMIT = 2.0


def boxes():
    """Return points of a square; those in one of two boxes have class 1, and one label in twelve is wrong."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-LIMIT, LIMIT, size=(360, 2))
    first = (X[:, 0] > 0.2) & (X[:, 1] > -0.4) & (X[:, 1] < 1.4)
    second = (X[:, 0] < -0.5) & (X[:, 1] < -0.3)
    return X, (first | second) ^ (rng.random(360) < 1 / 12)


def draw_rules(axes, X, y, title, **options):
    """Draw the points, and the boxes of the rules in order."""
    found = rules.induce(X, y, rng=0, **options)
    for number, rule in enumerate(found, start=1):
        bounds = np.array([[-LIMIT, LIMIT]] * 2)
        for condition in rule.conditions:
            bounds[condition.feature] = np.clip([condition.low, condition.high], -LIMIT, LIMIT)
        (left, right), (low, high) = bounds
        box = {"xy": (left, low), "width": right - left, "height": high - low}
        axes.add_patch(Rectangle(**box, facecolor=RED, alpha=0.13))
        axes.add_patch(Rectangle(**box, facecolor="none", edgecolor=DARK, linewidth=0.8))
        axes.annotate(str(number), (left, high), (2, -2), textcoords="offset points", va="top", fontsize=7)
    for label, colour, marker in ((False, BLUE, "o"), (True, RED, "s")):
        axes.scatter(*X[y == label].T, s=6, marker=marker, color=colour, zorder=3)
    axes.set(xlim=(-LIMIT, LIMIT), ylim=(-LIMIT, LIMIT), xticks=[], yticks=[], aspect="equal")
    axes.set_title(f"{title}: {len(found)} rules, {found.n_conditions} conditions", fontsize=8)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(9.0, 3.3), layout="constrained", dpi=160)
    X, y = boxes()
    for axes, title, options in zip(
        figure.subplots(1, 3),
        ("grown, not pruned", "pruned", "and optimised"),
        ({"prune": False}, {"optimise": 0}, {}),
        strict=True,
    ):
        draw_rules(axes, X, y, title, **options)
    figure.savefig(path)


if __name__ == "__main__":
    draw("induce.png")
