"""The figure of guide/losses.rst: the losses over the margin, and the force of a point under each.

docs/conf.py runs it; `python docs/figures/losses.py` writes losses.png here.
"""

from matplotlib.figure import Figure

from kernelrules import plot


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(9.0, 3.9), layout="constrained", dpi=160)
    values, slopes = figure.subplots(1, 2)
    plot.losses(values).set_title("Every loss is at least the 0/1 loss", size=9)
    plot.losses(slopes, derivative=True).set_title("Minus the derivative", size=9)
    slopes.get_legend().remove()
    figure.savefig(path)


if __name__ == "__main__":
    draw("losses.png")
