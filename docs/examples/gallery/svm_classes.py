"""Three classes, three models

Decision regions of a support vector machine, a logistic kernel machine and a tree.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from kernelrules import erm, kernels, plot, svm, tree

iris = load_iris()
X, y = iris.data[:, :2], iris.target_names[iris.target]
models = {
    "svm.svc, RBF kernel": svm.svc(X, y, kernel=kernels.RBF(1.0)),
    "erm.fit, logistic loss": erm.fit(X, y, 1e-3, kernels.RBF(1.0)),
    "tree.grow, 8 leaves": tree.grow(X, y, max_leaves=8),
}

figure, panels = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
for ax, (name, model) in zip(panels, models.items(), strict=True):
    plot.regions(model, X, y, ax, feature_names=iris.feature_names[:2])
    ax.set_title(name)
assert (svm.predict(models["svm.svc, RBF kernel"], X) == y).mean() > 0.8
