"""A drawn tree

Three kinds of wine by their chemistry. Bars show class shares, and the width of a line is proportional to the number
of rows that follow it. The test of a node is true on the left.
"""

from sklearn.datasets import load_wine

from kernelrules import export, plot, tree

wine = load_wine()
grown = tree.grow(wine.data, wine.target_names[wine.target], max_leaves=7)
print(export.to_text(grown, wine.feature_names))

ax = plot.tree(grown, feature_names=wine.feature_names)
assert (tree.predict(grown, wine.data) == wine.target_names[wine.target]).mean() > 0.95
