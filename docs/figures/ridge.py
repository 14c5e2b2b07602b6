"""The first picture of guide/ridge.rst: four representations, one curve.

docs/conf.py runs it; `python docs/figures/ridge.py` writes ridge.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import kernels, ridge

FORMS = {
    "features": ("#1f5fa8", "-", 7.0),
    "kernel": ("#f2b134", "-", 4.5),
    "dual": ("#c44e52", "--", 2.2),
    "rkhs": ("#222222", ":", 1.8),
}
LAMS = (1e-5, 1e-2)


def bumps():
    """Thirty noisy points of a curve, unevenly spread."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, 30))
    return x, np.sin(5 * x) * (1 + x) + 0.15 * rng.normal(size=30)


def draw_forms(axes, lam):
    """The values of the unlabelled points of a grid, in every form."""
    x, y = bumps()
    grid = np.linspace(-1.05, 1.05, 211)
    kernel = kernels.Polynomial(degree=8)
    values = {
        form: ridge.fit(x[:, None], y, lam, kernel, unlabelled=grid[:, None], form=form).fitted[len(x) :]
        for form in FORMS
    }
    axes.scatter(x, y, s=16, color="#888888", zorder=1)
    for form, (colour, style, width) in FORMS.items():
        axes.plot(grid, values[form], color=colour, linestyle=style, linewidth=width, label=f'form="{form}"', zorder=2)
    apart = max(np.abs(found - values["kernel"]).max() for found in values.values())
    axes.set(xlabel="x", ylabel="f(x)", title=f"λ = {lam:g}: largest difference {apart:.0e}")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(path):
    """Write the picture."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained", dpi=160)
    for axes, lam in zip(figure.subplots(1, 2, sharey=True), LAMS, strict=True):
        draw_forms(axes, lam)
        axes.title.set_size(9)
    figure.savefig(path)


if __name__ == "__main__":
    draw("ridge.png")
