"""A pipeline and a grid search

Handwritten digits with scikit-learn: an estimator of this package at the end of a pipeline, and ``GridSearchCV`` over
two of its parameters. ``model_`` is the result that the functions of ``kernelrules.svm`` take.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from kernelrules.estimators import KernelSVC

X, y = load_digits(return_X_y=True)
Cs, gammas = [0.1, 1.0, 10.0, 100.0], [0.0001, 0.0003, 0.001, 0.003]
pipeline = make_pipeline(PCA(24, random_state=0), KernelSVC())
search = GridSearchCV(pipeline, {"kernelsvc__C": Cs, "kernelsvc__gamma": gammas}, cv=3)
search.fit(X[::3], y[::3])
print(search.best_params_, f"accuracy on another third: {search.score(X[1::3], y[1::3]):.3f}", sep="\n")
print(search.best_estimator_[-1].model_)

figure, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
scores = search.cv_results_["mean_test_score"].reshape(len(Cs), len(gammas))
shades = ax.imshow(scores, vmin=0.9, cmap="Blues")
for place, score in np.ndenumerate(scores):
    ax.text(*place[::-1], f"{score:.3f}", ha="center", va="center", color="white" if score > 0.93 else "black")
ax.set(xlabel="gamma", ylabel="C", xticks=range(len(gammas)), yticks=range(len(Cs)))
ax.set(xticklabels=gammas, yticklabels=Cs, title="accuracy, three folds")
assert search.score(X[1::3], y[1::3]) > 0.96
