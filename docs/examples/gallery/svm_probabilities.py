"""Probabilities from a machine

Two measures of tumours. Platt's method turns decision values into probabilities; the lines are where a tumour is
malignant with 10, 50 and 90 per cent.
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
