"""Random Fourier features

Random Fourier features do not depend on the data: they are cosines along random directions, whose products equal the
kernel in expectation. The error decreases like one over the square root of their number, for any data. A linear model
of the features approximates the kernel model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelrules import kernels, ridge

X, y = load_digits(return_X_y=True)
kernel = kernels.RBF(0.001)
K = kernels.gram(X, kernel=kernel)
targets = np.where(y[:, None] == np.arange(10), 1.0, -1.0)  # each digit against the rest
train, test = slice(0, None, 2), slice(1, None, 2)


def accuracy(fit, Z):
    """Of the digit with the largest score, on the other half."""
    return (ridge.predict(fit, Z).argmax(axis=1) == y[test]).mean()


whole = accuracy(ridge.fit(X[train], targets[train], 1e-5, kernel), X[test])
sizes, errors, right = [25, 50, 100, 200, 400, 800, 1600], [], []
for size in sizes:
    Z = kernels.random_fourier(kernel, X.shape[1], size, rng=0).transform(X)
    errors.append(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))
    right.append(accuracy(ridge.fit(Z[train], targets[train], 1e-5, kernels.Linear()), Z[test]))

figure, (left, middle) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
left.loglog(sizes, errors, "o-", label="relative error of the kernel matrix")
left.loglog(sizes, errors[0] * np.sqrt(sizes[0] / np.array(sizes)), "k:", label="1/√features")
left.set(xlabel="features")
left.legend()
middle.semilogx(sizes, right, "o-", label="ridge on the features")
middle.axhline(whole, color="k", linestyle=":", label="ridge with the kernel")
middle.set(xlabel="features", ylabel="accuracy on the other half")
middle.legend()
slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
print(f"the error is proportional to features^{slope:.2f}; accuracy {right[-1]:.3f}, with the kernel {whole:.3f}")
assert -0.65 < slope < -0.4
assert right[-1] > whole - 0.02
