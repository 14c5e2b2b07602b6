"""A path over C

The number of support vectors against C, and the objective with the lower bound of its certificate. The two curves
coincide: at every C the fit is optimal to within its tolerance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from kernelrules import kernels, plot, svm

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
models = svm.path(X, y, np.geomspace(1e-3, 100, 16), kernel=kernels.RBF(0.03))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
plot.path(models, left)
plot.path(models, right, show="objective")
assert all(model.certificate.gap < 1e-2 * model.certificate.primal for model in models)
