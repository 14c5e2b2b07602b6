"""Thirty leaves, and still to be read

A tree for Spambase. Larger trees grow to the right, where a question has a line of its own. ``max_depth`` folds up what
is below.
"""

from kernelrules import datasets, plot, tree

X, y, names, _ = datasets.spambase()
grown = tree.grow(X, y, max_leaves=30)
print(grown)

ax = plot.tree(grown, feature_names=names, max_depth=6)
assert grown.n_leaves == 30
