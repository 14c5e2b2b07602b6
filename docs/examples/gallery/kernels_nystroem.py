"""Nyström approximation

The Nyström method uses some points as landmarks. The error decreases with their number; the cost of a fit increases.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelrules import kernels

X = load_digits().data
kernel = kernels.RBF(0.001)
K = kernels.gram(X, kernel=kernel)
sizes = [10, 20, 40, 80, 160, 320, 640]
errors = []
for size in sizes:
    Z = kernels.nystroem(X, kernel, size, rng=0).transform(X)
    errors.append(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))

figure, ax = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
ax.loglog(sizes, errors, "o-")
ax.set(xlabel="landmarks of 1797 points", ylabel="relative error of the kernel matrix")
assert errors[-1] < 0.1 * errors[0]
