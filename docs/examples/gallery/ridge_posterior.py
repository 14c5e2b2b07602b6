"""A Gaussian process

Ridge regression as the posterior mean of a Gaussian process, with its variance. The figure shows forty patients, with
bands of two standard deviations for the mean and for a new patient.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from kernelrules import kernels, ridge

data = load_diabetes(scaled=False)
some = np.random.default_rng(0).choice(len(data.target), 40, replace=False)
bmi, y = data.data[some, 2], data.target[some]
fit = ridge.fit((bmi[:, None] - 26) / 4, (y - 152) / 77, 0.02, kernels.RBF(0.3))
grid = np.linspace(15, 45, 200)
found = ridge.posterior(fit, (grid[:, None] - 26) / 4)

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
mean = 152 + 77 * found.mean
for variance, shade, label in (
    (found.variance + found.noise, 0.15, "a new patient"),
    (found.variance, 0.35, "the mean"),
):
    wide = 2 * 77 * np.sqrt(variance)
    ax.fill_between(grid, mean - wide, mean + wide, alpha=shade, color="#1f5fa8", linewidth=0, label=label)
ax.plot(grid, mean, color="#1f5fa8")
ax.scatter(bmi, y, s=14, color="#333333", zorder=3)
ax.set(xlabel="body mass index", ylabel="disease progression")
ax.legend(frameon=False)
inside = np.abs(y - np.interp(bmi, grid, mean)) < np.interp(bmi, grid, 2 * 77 * np.sqrt(found.variance + found.noise))
assert inside.mean() > 0.85
