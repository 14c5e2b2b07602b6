"""The figure of guide/kernels.rst: the kernels as curves, and the error of the two approximate feature maps.

docs/conf.py runs it; `python docs/figures/kernels.py` writes kernels.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import datasets, kernels

COLOURS = ["#555555", "#c44e52", "#1f5fa8", "#2e8b57", "#b8860b"]
DASHES = ["-", "--", "-", "-.", (0, (1, 1))]


def draw_curves(axes):
    """Draw k(x, 1) against x in one dimension."""
    x = np.linspace(-3, 3, 601)[:, None]
    shown = [
        ("linear", kernels.Linear()),
        ("polynomial, d = 2, γ = ½, c = 1", kernels.Polynomial(degree=2, gamma=0.5, coef0=1.0)),
        ("RBF, γ = 1", kernels.RBF(gamma=1.0)),
        ("Laplacian, γ = 1", kernels.Laplacian(gamma=1.0)),
        ("sigmoid, γ = 1, c = 0", kernels.Sigmoid(gamma=1.0)),
    ]
    for (label, kernel), colour, dashes in zip(shown, COLOURS, DASHES, strict=True):
        k = kernels.gram(x, [[1.0]], kernel)[:, 0]
        axes.plot(x[:, 0], k, color=colour, linestyle=dashes, label=label, linewidth=1.8)
    axes.axvline(1, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axes.set(xlim=(-3, 3), ylim=(-1.3, 2.3), xlabel="x", ylabel="k(x, 1)", title="Each kernel against the point 1")
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def draw_errors(axes):
    """Draw the relative error of Φ(X)Φ(X)ᵀ on 1000 standardised rows of Spambase, for five seeds."""
    X = datasets.spambase().X
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[np.random.default_rng(0).choice(len(X), 1000, replace=False)]
    kernel = kernels.RBF("auto").resolve(X)
    K = kernels.gram(X, kernel=kernel)
    sizes = [10, 20, 40, 80, 160, 320, 640]
    maps = [
        ("Nyström", "o", COLOURS[2], lambda m, seed: kernels.nystroem(X, kernel, m, rng=seed)),
        ("random Fourier", "s", COLOURS[1], lambda m, seed: kernels.random_fourier(kernel, X.shape[1], m, rng=seed)),
    ]
    for label, marker, colour, make in maps:
        errors = []
        for size in sizes:
            mapped = [make(size, seed).transform(X) for seed in range(5)]
            errors.append([np.linalg.norm(m @ m.T - K) / np.linalg.norm(K) for m in mapped])
        errors = np.array(errors)
        axes.plot(sizes, errors.mean(axis=1), color=colour, marker=marker, markersize=4, linewidth=1.8, label=label)
        axes.fill_between(sizes, errors.min(axis=1), errors.max(axis=1), color=colour, alpha=0.2, linewidth=0)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="components",
        ylabel="‖ΦΦᵀ − K‖ / ‖K‖",
        title="Approximate feature maps of the RBF kernel, γ = 1/57, on 1000 rows of Spambase",
    )
    axes.minorticks_off()
    axes.set_xticks(sizes, [str(size) for size in sizes])
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.legend(frameon=False, fontsize=8)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(7.2, 7.2), layout="constrained", dpi=160)
    top, bottom = figure.subplots(2, 1)
    draw_curves(top)
    draw_errors(bottom)
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_size(10)
    figure.savefig(path)


if __name__ == "__main__":
    draw("kernels.png")
