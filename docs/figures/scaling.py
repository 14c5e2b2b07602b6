"""The figure of benchmarks.rst: time and memory against the number of rows, with the fitted exponents.

The data are in docs/benchmarks_scaling.json. docs/conf.py runs it; `python docs/figures/scaling.py` writes
scaling.png here.
"""

import json
from pathlib import Path

from matplotlib.figure import Figure

MEASURED = Path(__file__).parents[1] / "benchmarks_scaling.json"
COLOURS = {"ours": "#1f5fa8", "scikit-learn": "#c44e52"}
TITLES = {"gram": "Gram matrix, RBF", "svm": "SVM, RBF, C = 1", "tree": "tree to purity"}
QUANTITIES = {"s": ("exponent of time", "seconds"), "MB": ("exponent of memory", "MB beyond the data")}


def draw(path):
    """Draw time and memory in two rows, with one column per problem."""
    report = json.loads(MEASURED.read_text())
    figure = Figure(figsize=(10.5, 6.2), layout="constrained")
    for row, (quantity, (slope, label)) in zip(figure.subplots(2, 3), QUANTITIES.items(), strict=True):
        for axes, (what, title) in zip(row, TITLES.items(), strict=True):
            for who, found in report[what].items():
                power = "" if found[slope] is None else f", n^{found[slope]:.2f}"
                axes.plot(found["n"], found[quantity], marker="o", markersize=4, color=COLOURS[who], label=who + power)
            axes.set(xscale="log", yscale="log", xlabel="rows", ylabel=label, title=title)
            axes.grid(color="#dddddd", linewidth=0.6)
            axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
