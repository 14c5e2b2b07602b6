"""A tree to read

Three kinds of wine by their chemistry. Bars are the shares of the classes, lines are as thick as the rows that take
them; what is asked is true on the left.
"""

from sklearn.datasets import load_wine

from kernelrules import export, plot, tree

wine = load_wine()
grown = tree.grow(wine.data, wine.target_names[wine.target], max_leaves=7)
print(export.to_text(grown, wine.feature_names))

ax = plot.tree(grown, feature_names=wine.feature_names)
assert (tree.predict(grown, wine.data) == wine.target_names[wine.target]).mean() > 0.95
