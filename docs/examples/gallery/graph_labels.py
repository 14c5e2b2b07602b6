"""Semi-supervised learning on a graph

Handwritten digits, of which only some have labels. A graph of neighbours propagates the labels. A support vector
machine that uses only the labelled points needs many more of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelrules import graph, kernels, svm

X, y = load_digits(return_X_y=True)
W = graph.knn_graph(X, 10, "rbf")
rng = np.random.default_rng(0)
counts = [1, 2, 4, 8, 16, 32]
right = {"graph.fit": [], "svm.svc": []}
for count in counts:
    labelled = np.concatenate([rng.choice(np.flatnonzero(y == c), count, replace=False) for c in range(10)])
    others = np.setdiff1d(np.arange(len(y)), labelled)
    spread = graph.fit(W, y[labelled], 0.1 / len(labelled), labelled, normalised=True).labels
    alone = svm.predict(svm.svc(X[labelled], y[labelled], C=10.0, kernel=kernels.RBF(0.001)), X)
    for name, labels in (("graph.fit", spread), ("svm.svc", alone)):
        right[name].append((labels[others] == y[others]).mean())

figure, ax = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
for name, marker in (("graph.fit", "o"), ("svm.svc", "s")):
    ax.plot(counts, right[name], marker=marker, label=name)
ax.set(xscale="log", xlabel="labels per class", ylabel="accuracy on the other digits", ylim=(0.4, 1.0))
ax.set_xticks(counts, [str(count) for count in counts])
ax.minorticks_off()
ax.legend(frameon=False)
assert right["graph.fit"][2] > right["svm.svc"][2]
