"""Choosing C and gamma

Breast cancer Wisconsin, 569 tumours with 30 measurements each. Five-fold cross-validation evaluates a grid; bars are
standard errors over folds. The one-standard-error rule takes the simplest machine, the one with the smallest C, below
the dotted line.
"""

from sklearn.datasets import load_breast_cancer

from kernelrules import plot, svm

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
found = svm.tune(X, y, Cs=[0.1, 0.3, 1, 3, 10, 30], gammas=[0.003, 0.03, 0.3], rule="1se", rng=0)
print(found)

ax = plot.cv_curve(found)
ax.set_ylim(0, 0.2)
assert found.mean.min() < 0.035
