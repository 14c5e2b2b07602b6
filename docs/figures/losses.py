"""The picture of guide/losses.rst: the losses over the margin, and how hard a point pulls under each.

docs/conf.py runs it; `python docs/figures/losses.py` writes losses.png here.
"""

from matplotlib.figure import Figure

from kernelrules import plot


def draw(path):
    """Write the picture."""
    figure = Figure(figsize=(9.0, 3.9), layout="constrained", dpi=160)
    values, slopes = figure.subplots(1, 2)
    plot.losses(values).set_title("Every loss is at least the 0/1 loss", size=9)
    plot.losses(slopes, derivative=True).set_title("How hard a point pulls", size=9)
    slopes.get_legend().remove()
    figure.savefig(path)


if __name__ == "__main__":
    draw("losses.png")
