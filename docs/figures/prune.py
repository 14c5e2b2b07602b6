"""The picture of guide/pruning.rst: cross-validated error against size on Spambase, and what each method chooses.

docs/conf.py runs it; `python docs/figures/prune.py` writes prune.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import datasets, plot, prune, tree

BLUE, RED = "#1f5fa8", "#c44e52"


def halves():
    """Two thirds of the e-mails to grow and prune on, the others to test."""
    X, y, *_ = datasets.spambase()
    order = np.random.default_rng(0).permutation(len(X))
    return X, y, order[:3065], order[3065:]


def draw_curve(axes, result, test_error):
    """Errors of the nested trees with the choice of the 1-SE rule, and those on test rows."""
    plot.cv_curve(result, axes)
    errors = [test_error(alpha) for alpha in result.alphas]
    axes.plot(result.n_leaves, errors, color=RED, linewidth=1.3, label="test rows")
    axes.set(ylabel="error rate", ylim=(0, 0.25), title="Spambase: error against size")
    axes.legend(frameon=False, fontsize=8)


def draw_methods(axes, chosen):
    """Leaves and test error of the trees that the methods leave."""
    for name, (leaves, error) in chosen.items():
        axes.scatter(leaves, error, s=24, color=RED if name == "whole tree" else BLUE, zorder=3)
        axes.annotate(name, (leaves, error), xytext=(5, 4), textcoords="offset points", fontsize=8)
    axes.set(xscale="log", xlabel="leaves", ylabel="error rate on the test rows", title="What each method leaves")
    axes.set_xlim(8, 600)
    axes.margins(y=0.15)


def draw(path):
    """Write the picture."""
    X, y, train, test = halves()
    result = prune.cross_validate(X[train], y[train], rng=0)
    whole = result.grown

    def error(pruned):
        return float((tree.predict(pruned, X[test]) != y[test]).mean())

    part, held = train[:2043], train[2043:]
    trees = {
        "whole tree": whole,
        "1-SE": result.tree,
        "to_size(17)": prune.to_size(whole, 17),
        "pessimistic": prune.pessimistic(whole),
        "mdl": prune.mdl(whole),
        "chi2(0.001)": prune.chi2(whole, 0.001),
        "reduced_error": prune.reduced_error(tree.grow(X[part], y[part]), X[held], y[held]),
    }
    figure = Figure(figsize=(9.6, 4.2), layout="constrained", dpi=160)
    left, right = figure.subplots(1, 2)
    draw_curve(left, result, lambda alpha: error(prune.cost_complexity(whole, alpha)))
    draw_methods(right, {name: (pruned.n_leaves, error(pruned)) for name, pruned in trees.items()})
    for axes in (left, right):
        axes.title.set_size(10)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    draw("prune.png")
