"""Thirty leaves, and still to be read

A tree for Spambase, all thirty leaves of it, at most six questions away. Larger trees grow to the right, where a
question has a line of its own, and the figure gets the room that they need.
"""

from kernelrules import datasets, plot, tree

X, y, names, _ = datasets.spambase()
grown = tree.grow(X, y, max_leaves=30, max_depth=6)
print(grown)

ax = plot.tree(grown, feature_names=names)
drawn = [text.get_text() for text in ax.texts]
assert grown.n_leaves == 30
assert sum("% of" in text for text in drawn) == 30  # what every leaf says
