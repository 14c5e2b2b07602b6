"""A ridge regression path

Ten measurements of 442 patients. One eigendecomposition gives the fits for 60 values of λ, and with them the
leave-one-out errors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from kernelrules import kernels, plot, ridge

X, y = load_diabetes(return_X_y=True)
found = ridge.path(X / X.std(axis=0), y, np.logspace(-4, 3, 60), kernels.Linear(), intercept=True)
print(found)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot.cv_curve(found, left)
plot.path(found, right)
assert found.loo_errors[found.best] < 3100
