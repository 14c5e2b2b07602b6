"""The second figure of guide/ridge.rst: the posterior band, and leave-one-out errors along a path of λ.

docs/conf.py runs it; `python docs/figures/ridge_process.py` writes ridge_process.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import kernels, ridge

BLUE, RED, GREY = "#1f5fa8", "#c44e52", "#888888"
KERNEL = kernels.RBF(gamma=4.0)


def gap_in_the_middle():
    """Return noisy points of a sine, with a gap between 0.2 and 1.1."""
    rng = np.random.default_rng(0)
    x = np.sort(np.concatenate([rng.uniform(-2, 0.2, 25), rng.uniform(1.1, 2, 12)]))
    return x, np.sin(3 * x) + 0.2 * rng.normal(size=len(x))


def draw_band(axes, x, y, lam):
    """Draw bands of two standard deviations of the function and of a new observation."""
    grid = np.linspace(-2.4, 2.4, 300)
    found = ridge.posterior(ridge.fit(x[:, None], y, lam, KERNEL), grid[:, None])
    for variance, alpha, label in (
        (found.variance + found.noise, 0.12, "± 2 deviations, observation"),
        (found.variance, 0.25, "± 2 deviations, function"),
    ):
        wide = 2 * np.sqrt(variance)
        axes.fill_between(grid, found.mean - wide, found.mean + wide, color=BLUE, alpha=alpha, linewidth=0, label=label)
    axes.plot(grid, found.mean, color=BLUE, linewidth=1.5, label="mean")
    axes.scatter(x, y, s=12, color="#333333", zorder=3)
    axes.set(xlabel="x", ylabel="f(x)", ylim=(-3.1, 2.3), title=f"posterior at the best λ = {lam:.1g}")
    axes.legend(frameon=False, fontsize=7, loc="lower left")


def draw_path(axes, path):
    """Draw the leave-one-out error against λ, with the degrees of freedom on a second axis."""
    axes.plot(path.lams, path.loo_errors, color=RED, linewidth=1.5, label="leave-one-out error")
    axes.plot(path.lams[path.best], path.loo_errors[path.best], "o", color=RED)
    axes.set(xscale="log", yscale="log", xlabel="λ", ylabel="mean squared error", title="60 values of λ")
    other = axes.twinx()
    other.plot(path.lams, path.dof, color=GREY, linestyle="--", linewidth=1.5, label="degrees of freedom")
    other.set(ylabel="degrees of freedom", ylim=(0, None))
    other.spines["top"].set_visible(False)
    lines = axes.get_lines()[:1] + other.get_lines()
    axes.legend(lines, [line.get_label() for line in lines], frameon=False, fontsize=8, loc="upper center")


def draw(path):
    """Draw and save the figure."""
    x, y = gap_in_the_middle()
    found = ridge.path(x[:, None], y, np.logspace(-7, 1, 60), KERNEL)
    figure = Figure(figsize=(8.0, 3.6), layout="constrained", dpi=160)
    left, right = figure.subplots(1, 2)
    draw_band(left, x, y, float(found.lams[found.best]))
    draw_path(right, found)
    for axes in (left, right):
        axes.title.set_size(9)
        axes.spines["top"].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    draw("ridge_process.png")
