"""The first figure of guide/pruning.rst: cross-validated error against size on Spambase, as in figure 9.4 of The
Elements of Statistical Learning, and the pruned tree of each method.

docs/conf.py runs it; `python docs/figures/prune.py` writes prune.png here.
"""

import numpy as np
from _book import spam
from matplotlib.figure import Figure

from kernelrules import plot, prune, tree

BLUE, RED = "#1f5fa8", "#c44e52"
LARGEST = 45  # leaves shown; the curves are flat beyond


def draw_curve(axes, result, test_error, called):
    """Draw the errors of the nested trees with the choice of the 1-SE rule, and test errors; alphas on top."""
    plot.cv_curve(result, axes)
    errors = [test_error(alpha) for alpha in result.alphas]
    axes.plot(result.n_leaves, errors, color=RED, linewidth=1.3, marker=".", markersize=4, label=called)
    axes.set(xscale="linear", xlim=(0, LARGEST), ylim=(0, 0.45), ylabel="error rate", xlabel="leaves")
    axes.legend(frameon=False, fontsize=8)
    above = axes.secondary_xaxis("top")
    sizes = [int(result.n_leaves[np.abs(result.n_leaves - size).argmin()]) for size in (1, 5, 10, 20, 30, 40)]
    alphas = [result.alphas[result.n_leaves == size][0] for size in dict.fromkeys(sizes)]
    above.set_xticks(list(dict.fromkeys(sizes)), [f"{alpha:.2g}" for alpha in alphas], fontsize=8)
    above.set_xlabel("α", fontsize=9)


def draw_methods(axes, chosen, called):
    """Draw the leaves and the test error of the pruned tree of each method."""
    for name, (leaves, error) in chosen.items():
        axes.scatter(leaves, error, s=24, color=RED if name == "whole tree" else BLUE, zorder=3)
        axes.annotate(name, (leaves, error), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set(xscale="log", xlabel="leaves", ylabel=f"error rate, {called}", title="Pruned trees by method")
    axes.set_xlim(8, 600)
    axes.margins(y=0.15)


def draw(path):
    """Draw and save the figure."""
    X, y, _, test, called = spam()
    train = np.flatnonzero(~test)
    result = prune.cross_validate(X[train], y[train], criterion="entropy", rng=0)
    whole = result.grown

    def error(pruned):
        return float((tree.predict(pruned, X[test]) != y[test]).mean())

    mixed = np.random.default_rng(0).permutation(train)
    part, held = mixed[:2043], mixed[2043:]
    trees = {
        "whole tree": whole,
        "1-SE": result.tree,
        "to_size(17)": prune.to_size(whole, 17),
        "pessimistic": prune.pessimistic(whole),
        "mdl": prune.mdl(whole),
        "chi2(0.001)": prune.chi2(whole, 0.001),
        "reduced_error": prune.reduced_error(tree.grow(X[part], y[part], criterion="entropy"), X[held], y[held]),
    }
    figure = Figure(figsize=(9.6, 4.6), layout="constrained", dpi=160)
    left, right = figure.subplots(1, 2)
    draw_curve(left, result, lambda alpha: error(prune.cost_complexity(whole, alpha)), called)
    draw_methods(right, {name: (pruned.n_leaves, error(pruned)) for name, pruned in trees.items()}, called)
    for axes in (left, right):
        axes.title.set_size(10)
        axes.spines["right"].set_visible(False)
    right.spines["top"].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    draw("prune.png")
