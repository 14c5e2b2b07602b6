"""A sum of rules

Breast cancer Wisconsin. The score is the sum of the weights of all rules that hold; it is positive for a malignant
tumour. Of infinitely many possible rules, the L1 penalty selects a few; five-fold cross-validation chooses how many.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from kernelrules import plot, rules

data = load_breast_cancer()
X, y = data.data, data.target_names[data.target]
model = rules.additive(X[::2], y[::2], max_depth=2, feature_names=data.feature_names, rng=0)
error = (rules.predict(model, X[1::2]) != y[1::2]).mean()
print(model, f"error on the other half: {error:.3f}", sep="\n")

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained")
plot.cv_curve(model, left)
terms = [line.split(maxsplit=1) for line in str(model).splitlines()[:8]]  # the most important ones come first
weights, texts = [float(weight) for weight, _ in terms], [text for _, text in terms]
right.barh(texts, weights, color=["#c44e52" if weight > 0 else "#1f5fa8" for weight in weights])
right.tick_params(axis="y", labelsize=7)
right.invert_yaxis()
right.set(xlabel="weight, red towards malignant")
assert model.converged.all()
assert error < 0.1  # 0.053 to 0.085 with sixteen seeds
