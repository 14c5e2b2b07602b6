"""Categories and missing values

Disease progression of diabetes patients from a table without preprocessing: sex and the decade of age are categories,
and a fifth of the body mass indices and of the blood pressures are missing. Nothing is encoded or imputed. A split
may separate any subset of the categories, and learns the side of rows with a missing value.
"""

import numpy as np
from sklearn.datasets import load_diabetes

from kernelrules import plot, tree

data = load_diabetes(scaled=False)
age, sex, bmi, pressure = data.data[:, :4].T
lost = np.random.default_rng(0).random((2, len(age))) < 0.2
table = np.empty((len(age), 4), dtype=object)
table[:, 0] = [f"{year // 10:.0f}0s" for year in age]
table[:, 1] = np.where(sex == 1, "female", "male")
table[:, 2] = np.where(lost[0], None, bmi)
table[:, 3] = np.where(lost[1], None, pressure)

names = ["age", "sex", "body mass index", "blood pressure"]
grown = tree.grow(table, data.target, criterion="squared_error", max_leaves=8, min_leaf=15)
print(grown)

ax = plot.tree(grown, feature_names=names)
assert grown.n_leaves == 8
assert {0, 2} <= set(grown.feature[grown.left >= 0].tolist())
assert grown.missing_seen[2:].all()
assert ((tree.predict(grown, table) - data.target) ** 2).mean() < 0.65 * data.target.var()
