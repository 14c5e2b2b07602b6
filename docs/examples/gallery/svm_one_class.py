"""Outliers by a one-class SVM

One class of handwritten digits, the zeros. A one-class SVM estimates the region of most of them; the digits with the
lowest decision values are the outliers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelrules import kernels, svm

digits = load_digits()
zeros = digits.data[digits.target == 0]
model = svm.one_class(zeros, nu=0.1, kernel=kernels.RBF(0.001))
values = svm.decision(model, zeros)
order = np.argsort(values)

figure, panels = plt.subplots(2, 8, figsize=(8, 2.6), layout="constrained")
for row, chosen, what in zip(panels, (order[:8], order[-8:]), ("strangest", "most usual"), strict=True):
    for ax, place in zip(row, chosen, strict=True):
        ax.imshow(zeros[place].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[], title=f"{values[place]:.2f}")
        ax.title.set_size(8)
    row[0].set_ylabel(what, size=9)

outside = (values < 0).mean()
others = svm.predict(model, digits.data[digits.target != 0]) == 1
print(f"{outside:.0%} of the zeros are outside, and {others.mean():.1%} of the other digits inside")
assert outside < 0.2
assert others.mean() < 0.05
