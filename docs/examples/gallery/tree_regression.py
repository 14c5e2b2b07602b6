"""Regression over a plane

Disease progression of diabetes patients against body mass index and blood pressure: the step function of a tree, and
the smooth surface of a ridge regression. The colour of a point is the observed value.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from kernelrules import kernels, plot, ridge, tree

data = load_diabetes(scaled=False)
X, y = data.data[:, 2:4], data.target
centre, scale = X.mean(axis=0), X.std(axis=0)
X = (X - centre) / scale
names = ["body mass index", "blood pressure"]

figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
stairs = tree.grow(X, y, criterion="squared_error", max_leaves=6)
smooth = ridge.fit(X, y, 0.05, kernels.RBF(0.1), intercept=True)
for ax, model, title in zip(panels, (stairs, smooth), ("tree with 6 leaves", "ridge, RBF kernel"), strict=True):
    plot.regions(model, X, y, ax, feature_names=names)
    ax.set_title(title)
assert ((ridge.predict(smooth, X) - y) ** 2).mean() < 0.7 * y.var()
