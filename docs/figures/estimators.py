"""The figure of guide/estimators.rst: probabilities in the plane, from six labels on a graph and from all labels.

docs/conf.py runs it; `python docs/figures/estimators.py` writes estimators.png here.
"""

import numpy as np
from _moons import two_moons
from matplotlib.figure import Figure
from sklearn.calibration import CalibratedClassifierCV

from kernelrules.estimators import GraphClassifier, KernelSVC

BLUE, RED = "#1f5fa8", "#c44e52"


def draw(path):
    """Draw and save the figure."""
    figure = Figure(figsize=(9.0, 3.2), layout="constrained", dpi=160)
    X, y, labelled = two_moons()
    some = np.full(len(y), -1)
    some[labelled] = y[labelled]
    side = np.linspace(-1.5, 2.5, 201), np.linspace(-1.0, 1.5, 126)
    plane = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
    for axes, estimator, labels, large, name in zip(
        figure.subplots(1, 2),
        (GraphClassifier(), CalibratedClassifierCV(KernelSVC(C=10.0), cv=5)),
        (some, y),
        (labelled, []),
        ("GraphClassifier, six labels", "KernelSVC, calibrated, all labels"),
        strict=True,
    ):
        shares = estimator.fit(X, labels).predict_proba(plane)[:, 1].reshape(126, 201)
        shades = axes.contourf(*side, shares, levels=np.linspace(0, 1, 11), cmap="coolwarm", alpha=0.6)
        axes.scatter(*X.T, s=4, c=np.where(y == 1, RED, BLUE))
        axes.scatter(*X[large].T, s=60, c=np.where(y[large] == 1, RED, BLUE), edgecolor="black")
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.set_title(name, size=9)
    figure.colorbar(shades, ax=figure.axes, shrink=0.8)
    figure.savefig(path)


if __name__ == "__main__":
    draw("estimators.png")
