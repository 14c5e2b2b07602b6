"""Simplified rules of a tree

The rules of a tree repeat conditions. Simplified rules have fewer conditions, overlap, and are as accurate on new
rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from kernelrules import plot, rules, tree

data = load_breast_cancer()
X, y = data.data, data.target_names[data.target]
grown = tree.grow(X[::2], y[::2])
whole = rules.extract(grown, feature_names=list(data.feature_names))
short = rules.simplify(whole, X[::2], y[::2], method="pessimistic")
print(short)

figure, panels = plt.subplots(2, 1, figsize=(9, 5.5), layout="constrained")
for ax, listed in zip(panels, (whole, short), strict=True):
    plot.rules(listed, ax, top=8)
    error = (rules.predict(listed, X[1::2]) != y[1::2]).mean()
    ax.set_title(f"{len(listed)} rules, {listed.n_conditions} conditions, {error:.1%} wrong", loc="left", size=9)
assert short.n_conditions < whole.n_conditions
