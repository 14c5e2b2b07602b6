"""A margin and its support vectors

Two species of iris that no line separates, by two measurements of their petals. The solid line is the decision
boundary, the dashed lines are the edges of the margin, and rings mark the support vectors, which alone determine the
model. The certificate bounds the distance from the optimum.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from kernelrules import kernels, plot, svm

iris = load_iris()
rows = iris.target > 0
X, y = iris.data[rows][:, 2:], iris.target_names[iris.target[rows]]

figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, C in zip(panels, (0.1, 10.0), strict=True):
    model = svm.svc(X, y, C=C, kernel=kernels.Linear())
    plot.regions(model, X, y, ax, feature_names=iris.feature_names[2:])
    ax.set_title(f"C = {C:g}: margin {svm.margin(model):.2f} cm")
    print(model.certificate)
    assert model.certificate.gap < 1e-2 * model.certificate.primal
