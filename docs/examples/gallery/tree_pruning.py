"""Choosing the size of a tree

Ten-fold cross-validation on half of Spambase. The error decreases and then increases with the size, because large
trees overfit. The one-standard-error rule takes the smallest tree whose error is within one standard error of the
smallest.
"""

import matplotlib.pyplot as plt

from kernelrules import datasets, plot, prune, tree

X, y, names, _ = datasets.spambase()
found = prune.cross_validate(X[::2], y[::2], rng=0)
error = (tree.predict(found.tree, X[1::2]) != y[1::2]).mean()
print(found, f"error on the other half {error:.3f}", sep="\n")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
plot.cv_curve(found, left)
left.set_ylim(0, 0.25)
plot.importances(found, right, feature_names=names, top=10)
assert error < 0.12
