"""Generalisation bounds for trees

The bound on the error of every tree with a given number of leaves, from the training rows of Spambase alone, with
probability 0.95; and the error on the other half. The bound holds but is loose, because it covers every such tree.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelrules import bounds, datasets, tree

X, y, _, _ = datasets.spambase()
leaves = [2, 4, 8, 16, 32, 64]
trees = [tree.grow(X[::2], y[::2], max_leaves=n) for n in leaves]
promised = [bounds.of_tree(t, X[::2], y[::2]) for t in trees]
errors = [np.mean(tree.predict(t, X[1::2]) != y[1::2]) for t in trees]
print(promised[1])

figure, ax = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
ax.plot(leaves, [bound.total for bound in promised], "o-", label="bound")
ax.plot(leaves, [bound.empirical for bound in promised], "s--", label="training rows")
ax.plot(leaves, errors, "^-", label="other rows")
ax.set(xscale="log", xlabel="leaves", ylabel="error rate", ylim=(0, None))
ax.set_xticks(leaves, [str(n) for n in leaves])
ax.minorticks_off()
ax.legend(frameon=False)
assert all(error <= bound.total for error, bound in zip(errors, promised, strict=True))
