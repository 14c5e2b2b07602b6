"""A tree with thirty leaves

A tree for Spambase with thirty leaves and a depth of at most six. Large trees grow to the right, so that every test
has its own line, and the figure has the size that they need.
"""

from kernelrules import datasets, plot, tree

X, y, names, _ = datasets.spambase()
grown = tree.grow(X, y, max_leaves=30, max_depth=6)
print(grown)

ax = plot.tree(grown, feature_names=names)
drawn = [text.get_text() for text in ax.texts]
assert grown.n_leaves == 30
assert sum("% of" in text for text in drawn) == 30  # the text of every leaf
