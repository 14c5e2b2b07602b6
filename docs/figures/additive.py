"""The figure of guide/additive.rst: weights along the path, the error that chooses λ, and the gap over all stumps.

docs/conf.py runs it; `python docs/figures/additive.py` writes additive.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import datasets, rules

BLUE, RED, DARK = "#1f5fa8", "#c44e52", "#333333"


def draw_path(axes, model):
    """Draw the weights of the rules against λ, those of the chosen λ in colour."""
    used = model.weights[0] != 0
    for j in np.argsort(used, kind="stable"):
        axes.semilogx(model.lams, model.coefficients[:, 0, j], color=BLUE if used[j] else "#bbbbbb", lw=0.8)
    axes.axvline(model.lams[model.chosen], color=DARK, lw=0.8, ls="--")
    axes.set(xlabel="λ", ylabel="weight")
    axes.invert_xaxis()
    axes.set_title(f"{len(model.rules)} rules, {len(model)} at the chosen λ", fontsize=8)


def draw_errors(axes, model):
    """Draw the cross-validated error with its standard error."""
    axes.errorbar(model.lams, model.error, model.se, color=BLUE, lw=0.8, elinewidth=0.5, ms=2, marker="o")
    best = model.error.argmin()
    axes.axhline(model.error[best] + model.se[best], color=RED, lw=0.8, ls=":")
    axes.axvline(model.lams[model.chosen], color=DARK, lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.set(xlabel="λ", ylabel="log loss, five folds")
    axes.set_title("the one-standard-error rule", fontsize=8)


def draw_gap(axes, X, y):
    """Draw the certified gap of stumps at every λ."""
    model = rules.additive(X, y, max_depth=1, folds=None, n_lams=25, max_rules=30, rng=0)
    axes.loglog(model.lams, model.primal[:, 0], color=BLUE, lw=1.0, label="objective")
    axes.loglog(model.lams, np.maximum(model.gap_all[:, 0], 1e-12), color=RED, lw=1.0, label="gap over all stumps")
    axes.axhline(1e-4 * model.primal[0, 0], color=DARK, lw=0.8, ls=":", label="tolerance")
    axes.invert_xaxis()
    axes.set(xlabel="λ")
    axes.legend(fontsize=7, frameon=False)
    axes.set_title("one condition per rule: certified", fontsize=8)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(9.6, 3.1), layout="constrained", dpi=160)
    X, y, names, _ = datasets.spambase()
    train = np.random.default_rng(0).permutation(len(X))[:1500]
    X, y = X[train], y[train]
    left, middle, right = figure.subplots(1, 3)
    model = rules.additive(X, y, feature_names=names, rng=0)
    draw_path(left, model)
    draw_errors(middle, model)
    draw_gap(right, X, y)
    figure.savefig(path)


if __name__ == "__main__":
    draw("additive.png")
