"""The picture of guide/losses.rst: the losses over the margin, and how hard a point pulls under each.

docs/conf.py runs it; `python docs/figures/losses.py` writes losses.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import losses

STYLES = {
    "squared": ("#1f5fa8", "-", "squared"),
    "logistic": ("#c44e52", "-", "logistic / log 2"),
    "hinge": ("#2e8b57", "-", "hinge"),
    "squared_hinge": ("#e08e2b", "--", "squared hinge"),
    "exponential": ("#8a5fa8", "-", "exponential"),
    "zero_one": ("#333333", "-", "0/1"),
    "ramp": ("#333333", ":", "ramp"),
}


def draw(path):
    """Write the picture."""
    u = np.linspace(-2.2, 3.0, 1041)
    figure = Figure(figsize=(9.0, 3.9), layout="constrained", dpi=160)
    values, slopes = figure.subplots(1, 2)
    for name, (colour, line, label) in STYLES.items():
        loss = getattr(losses, name)
        scale = np.log(2) if name == "logistic" else 1.0
        values.plot(u, loss(u) / scale, color=colour, linestyle=line, linewidth=1.6, label=label)
        if name != "zero_one":
            slopes.plot(u, -loss.derivative(u) / scale, color=colour, linestyle=line, linewidth=1.6, label=label)
    values.set(ylim=(-0.1, 4.2), xlabel="margin u = y f(x)", ylabel="loss")
    values.set_title("Every loss is at least the 0/1 loss", size=9)
    values.legend(frameon=False, fontsize=8)
    slopes.set(ylim=(-2.2, 4.2), xlabel="margin u = y f(x)", ylabel="minus the derivative")
    slopes.set_title("How hard a point pulls", size=9)
    for axes in (values, slopes):
        axes.axvline(0.0, color="#bbbbbb", linewidth=0.8, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


if __name__ == "__main__":
    draw("losses.png")
