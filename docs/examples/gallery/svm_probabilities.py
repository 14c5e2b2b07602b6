"""Calibrated probabilities

Two measurements of tumours. Platt's method converts decision values to probabilities. The lines mark probabilities of
10, 50 and 90 per cent that a tumour is malignant.
"""

from sklearn.datasets import load_breast_cancer

from kernelrules import kernels, plot, svm

data = load_breast_cancer()
columns = [1, 7]
X, y = data.data[:, columns], data.target_names[data.target]
X = (X - X.mean(axis=0)) / X.std(axis=0)
model = svm.calibrate(svm.svc(X, y, kernel=kernels.RBF(0.5)), X, y)

ax = plot.regions(model, X, y, feature_names=[f"{data.feature_names[j]}, standardised" for j in columns])
shares = svm.predict_proba(model, X)
assert (model.model.classes[shares.argmax(axis=1)] == y).mean() > 0.9
