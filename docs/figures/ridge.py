"""The first figure of guide/ridge.rst: four representations, one curve.

docs/conf.py runs it; `python docs/figures/ridge.py` writes ridge.png here.
"""

import numpy as np
from matplotlib.figure import Figure

from kernelrules import plot

LAMS = (1e-5, 1e-2)


def bumps():
    """Return thirty noisy points of a curve, unevenly spaced."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, 30))
    return x, np.sin(5 * x) * (1 + x) + 0.15 * rng.normal(size=30)


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(8.0, 3.6), layout="constrained", dpi=160)
    for axes, lam in zip(figure.subplots(1, 2, sharey=True), LAMS, strict=True):
        plot.ridge_forms(*bumps(), lam, ax=axes)
    figure.savefig(path)


if __name__ == "__main__":
    draw("ridge.png")
